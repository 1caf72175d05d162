#!/usr/bin/python3
"""The built program from outside: what it prints, which exit codes it ends with, and that a bake which was stopped,
killed or run on another number of threads gives the same bits.

    test_program.py [NAME...]      TOILE names the program (build/toile)

Ends with `N passed, M failed`."""
import json
import os
import resource
import signal
import subprocess
from fractions import Fraction

from program import TOILE, fails, main, ok, run, tests_of

REPORT_KEYS = """frames vertices triangles steps rejected_steps seconds seconds_per_frame stages iterations
    row_multiplies integrator linear_solver preconditioner components_mean threads max_stretch penetrations
    intersections peak_rss_mb state_hash""".split()
STAGES = "evaluate assemble solve collide_solid collide_self write".split()


# ---- helpers ----

def scene(folder, name="drape", frames=(1, 10), resolution=13, **more):
    """A cloth that falls onto a ball, held at one corner."""
    content = {
        "toile": 1, "name": name, "fps": 24, "frames": list(frames), "resolution": resolution,
        "garments": [{"name": "cloth", "fabric": "cotton", "grid": {"size": [0.6, 0.6]},
                      "place": {"origin": [0, 0, 0.22]}}],
        "colliders": [{"name": "ball", "shape": "sphere", "radius": 0.2, "place": {"origin": [0, 0, 0]},
                       "motion": {"keys": [{"frame": 1, "origin": [0, 0, 0]}, {"frame": 9, "origin": [0.05, 0, 0]}]}}],
        "pins": [{"garment": "cloth", "select": {"corners": ["u0v0"]}}],
    }
    content.update(more)
    path = os.path.join(folder, name + ".json")
    with open(path, "w") as file:
        json.dump(content, file)
    return path


def bake(path, cache, *args):
    return ok("bake", path, "-o", cache, "--progress", "none", *args)


def frames_of(cache):
    """State hash and checksum of every frame; they say all about a bake."""
    done = run("verify", cache, "--json")
    assert done.returncode in (0, 4), done.stderr
    return [(f["frame"], f["state_hash"], f["checksum"]) for f in json.loads(done.stdout)["frames"]]


def start_bake(path, cache, *args):
    return subprocess.Popen([TOILE, "bake", path, "-o", cache, "--progress", "json", *args], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def wait_for_frame(process, frame):
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "frame" and event["frame"] >= frame:
            return
    raise AssertionError("the bake ended before frame %d: %s" % (frame, process.stderr.read()))


def obj(path):
    data = {"v": [], "vt": [], "f": [], "g": []}
    with open(path) as file:
        for line in file:
            words = line.split()
            if words and words[0] in data:
                data[words[0]].append(words[1:])
    return data


# ---- help and usage ----

def test_help_and_version(folder):
    assert ok("--version").stdout.startswith("toile 0.")
    commands = ["bake", "info", "verify", "export", "settings", "fabrics", "solvers", "schema"]
    text = ok("--help").stdout
    for command in commands:
        assert command in text
        assert "Usage: toile " + command in ok(command, "--help").stdout


def test_bad_usage(folder):
    path = scene(folder)
    out = os.path.join(folder, "x.h5")
    fails(2)
    fails(2, "bkae", says=["did you mean bake", "verify"])
    fails(2, "bake", says="SCENE.json")
    fails(2, "bake", path, says="-o")
    fails(2, "bake", path, "-o", says="needs a value")
    fails(2, "bake", path, path, "-o", out, says="too many")
    fails(2, "bake", path, "-o", out, "--thread", "2", says=["did you mean --threads", "--resume"])
    fails(2, "bake", path, "-o", out, "--threads", "two", says="whole number")
    fails(2, "bake", path, "-o", out, "--frames", "9-3", says="frame range")
    fails(2, "bake", path, "-o", out, "--progress", "jsn", says=["json", "did you mean"])
    fails(2, "bake", path, "-o", out, "--resume=yes", says="no value")
    fails(2, "bake", path, "-o", out, "--force", says="--resume")
    assert not os.path.exists(out)


def test_bad_input(folder):
    path = scene(folder)
    out = os.path.join(folder, "x.h5")
    fails(5, "bake", os.path.join(folder, "none.json"), "-o", out)
    broken = os.path.join(folder, "broken.json")
    with open(broken, "w") as file:
        file.write('{"toile": 1, "garments": [')
    fails(3, "bake", broken, "-o", out, says="broken.json")
    fails(3, "bake", path, "-o", out, "--set", "settings.time_stp=0.01", says=["time_stp", "time_step"])
    fails(3, "bake", path, "-o", out, "--set", "settings.time_step=-1", says="time_step")
    fails(3, "bake", path, "-o", out, "--set", "nonsense", says="nonsense")
    fails(3, "bake", path, "-o", out, "--frames", "4-8", says="--frames 1-8")
    fails(5, "info", os.path.join(folder, "none.h5"))
    fails(5, "verify", os.path.join(folder, "none.h5"))
    fails(3, "verify", path)
    assert not os.path.exists(out)


# ---- bake, info, verify ----

def test_bake_info_verify(folder):
    # Low enough that the cloth does not reach it: triangles as large as these cut off some of a ball that they lie on.
    ball = {"shape": "sphere", "radius": 0.05, "place": {"origin": [0, 0, -0.2]}}
    path, cache = scene(folder, frames=(3, 8), colliders=[ball]), os.path.join(folder, "a.h5")
    bake(path, cache)
    info = json.loads(ok("info", cache, "--json").stdout)
    assert info["complete"] is True and info["frames"] == 6 and info["first_frame"] == 3 and info["last_frame"] == 8
    assert info["fps"] == 24 and info["scene"] == "drape"
    garment = info["garments"][0]
    assert garment["name"] == "cloth" and garment["vertices"] == 169 and garment["triangles"] == 288
    assert sum(p["triangles"] for p in garment["panels"]) == 288
    low, high = garment["bounds_first"]
    assert abs(low[0] + 0.3) < 1e-6 and abs(high[1] - 0.3) < 1e-6 and abs(high[2] - 0.22) < 1e-6
    text = ok("info", cache).stdout
    assert "complete" in text and "169 vertices" in text

    verdict = json.loads(ok("verify", cache, "--json").stdout)
    assert verdict["clean"] and verdict["complete"] and verdict["colliders_checked"], verdict
    assert [f["frame"] for f in verdict["frames"]] == list(range(3, 9))
    assert abs(verdict["frames"][0]["max_stretch"]) < 1e-5 and 0 < verdict["max_stretch"] < 0.2
    assert "clean: 6 frames" in ok("verify", cache).stdout
    part = json.loads(ok("verify", cache, "--frames", "4-5", "--json").stdout)
    assert [f["frame"] for f in part["frames"]] == [4, 5]
    fails(3, "verify", cache, "--frames", "4-9", says="3 to 8")
    assert run("verify", cache, "--max-stretch", "1e-9").returncode == 4


def test_report(folder):
    path, cache, report = scene(folder), os.path.join(folder, "a.h5"), os.path.join(folder, "r.json")
    bake(path, cache, "--report=" + report)
    with open(report) as file:
        r = json.load(file)
    missing = [k for k in REPORT_KEYS if r.get(k) is None]
    assert not missing, missing
    assert not [s for s in STAGES if not isinstance(r["stages"].get(s), (int, float))], r["stages"]
    assert r["frames"] == 10 and r["vertices"] == 169 and r["triangles"] == 288
    assert r["intersections"] == 0
    through, its = os.path.join(folder, "through.h5"), os.path.join(folder, "through.json")
    sheet = {"fabric": "cotton", "grid": {"size": [0.6, 0.6]}}
    crossing = [{"name": "cloth", "place": {"origin": [0, 0, 0.5]}, **sheet},
                {"name": "curtain", "place": {"origin": [0, 0, 0.5], "rotate": [80, 0, 0]}, **sheet}]
    bake(scene(folder, "through", garments=crossing, settings={"self_collision": "off"}), through, "--report=" + its)
    last = json.loads(run("verify", through, "--frames", "10", "--json").stdout)
    with open(its) as file:
        assert json.load(file)["intersections"] == last["cloth_pairs"] + last["collider_pairs"] > 0
    assert len(r["state_hash"]) == 16 and int(r["state_hash"], 16)
    assert r["integrator"] == "backward_euler" and r["linear_solver"] == "auto" and r["solver_choice"]["iterative"] > 0
    assert r["per_frame"]["frame"] == list(range(2, 11))
    assert r["state_hash"] == frames_of(cache)[-1][1]
    assert r["steps"] >= 9 * 5 and r["stages"]["write"] > 0 and r["peak_rss_mb"] > 1
    fails(5, "bake", path, "-o", cache, "--progress", "none", "--report", os.path.join(folder, "no", "r.json"))


def test_set(folder):
    path = scene(folder)
    steps = []
    for step in ("0.01", "0.005"):
        report = os.path.join(folder, "r.json")
        bake(path, os.path.join(folder, "a.h5"), "--set", "settings.time_step=" + step, "--set=resolution=7",
             "--report", report)
        with open(report) as file:
            r = json.load(file)
        assert r["vertices"] == 49
        steps.append(r["steps"])
    assert steps[1] > 1.5 * steps[0], steps


def test_progress_json(folder):
    path, cache = scene(folder), os.path.join(folder, "a.h5")
    done = ok("bake", path, "-o", cache, "--progress", "json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert events[0]["event"] == "start" and events[-1]["event"] == "done"
    assert events[0]["done"] == 1 and events[0]["frame"] == 2 and events[0]["first"] == 1
    frames = [e for e in events if e["event"] == "frame"]
    assert [e["frame"] for e in frames] == list(range(2, 11)) and all(e["frames"] == 10 for e in frames)
    assert all(e["seconds"] >= 0 and e["eta"] >= 0 and e["steps"] > 0 for e in frames) and frames[-1]["eta"] == 0
    assert done.stderr == ""
    done = run("bake", path, "-o", os.path.join(folder, "no", "a.h5"), "--progress", "json")
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "error" and done.stderr.startswith("toile: ")
    assert ok("bake", path, "-o", cache, "--progress", "none").stdout == ""
    assert "100 %" in ok("bake", path, "-o", cache).stderr
    assert "[####" in ok("bake", path, "-o", cache, "--progress", "bar").stderr


def test_start_is_on_disk(folder):
    """What the first line calls done is on disk by then, and a bake that is killed there goes on."""
    path = scene(folder, frames=(1, 200), resolution=25)
    for i in range(5):
        cache = os.path.join(folder, "s%d.h5" % i)
        process = start_bake(path, cache)
        event = json.loads(process.stdout.readline())
        process.kill()
        process.communicate()
        assert event["event"] == "start" and event["done"] == 1, event
        assert len(frames_of(cache)) >= 1
        ok("bake", path, "-o", cache, "--resume", "--frames", "1-3", "--progress", "none")


def test_reader_goes_away(folder):
    path, cache = scene(folder), os.path.join(folder, "a.h5")
    process = start_bake(path, cache)
    process.stdout.close()
    assert process.wait(120) == 0, process.stderr.read()
    assert len(frames_of(cache)) == 10
    process = subprocess.Popen([TOILE, "settings"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.wait(60) >= 0 and process.stderr.read() == ""


# ---- the same bits ----

def test_threads_identical(folder):
    path = scene(folder)
    caches = []
    for threads in (1, 2, 3):
        caches.append(os.path.join(folder, "t%d.h5" % threads))
        bake(path, caches[-1], "--threads", threads)
    assert frames_of(caches[0]) == frames_of(caches[1]) == frames_of(caches[2])


def stopped_bake(folder, how, second=False):
    path = scene(folder, frames=(1, 40), resolution=25)
    whole, cache = os.path.join(folder, "whole.h5"), os.path.join(folder, "a.h5")
    bake(path, whole)
    process = start_bake(path, cache)
    wait_for_frame(process, 6)
    process.send_signal(how)
    if second:
        process.send_signal(signal.SIGINT)
    process.stdout.read()
    code, text = process.wait(120), process.stderr.read()
    info = json.loads(ok("info", cache, "--json").stdout)
    assert 6 <= info["frames"] < 40 and not info["complete"], info
    assert "not complete" in ok("info", cache).stdout
    done = ok("bake", path, "-o", cache, "--resume", "--progress", "json")
    first = next(json.loads(line) for line in done.stdout.splitlines() if '"frame"' in line and '"steps"' in line)
    assert first["frame"] in (info["frames"], info["frames"] + 1), (first, info)
    assert frames_of(cache) == frames_of(whole)
    return code, text


def test_sigterm_then_resume(folder):
    code, text = stopped_bake(folder, signal.SIGTERM)
    assert code == 75 and text.startswith("toile: ") and "--resume" in text, (code, text)


def test_two_signals_then_resume(folder):
    code, text = stopped_bake(folder, signal.SIGTERM, second=True)
    assert code == 75 and "--resume" in text, (code, text)


def test_kill_then_resume(folder):
    code, _ = stopped_bake(folder, signal.SIGKILL)
    assert code == -signal.SIGKILL


def test_longer_range_later(folder):
    path = scene(folder)
    whole, cache = os.path.join(folder, "whole.h5"), os.path.join(folder, "a.h5")
    bake(path, whole)
    bake(path, cache, "--frames", "1-4")
    assert len(frames_of(cache)) == 4
    bake(path, cache, "--frames", "5-7", "--resume")
    fails(3, "bake", path, "-o", cache, "--frames", "9-10", "--resume", says="--frames 8-10")
    bake(path, cache, "--resume")
    assert frames_of(cache) == frames_of(whole)
    assert json.loads(ok("info", cache, "--json").stdout)["complete"]


def test_resume_of_a_changed_scene(folder):
    path, cache = scene(folder), os.path.join(folder, "a.h5")
    bake(path, cache, "--frames", "1-4")
    before = frames_of(cache)
    fails(3, "bake", path, "-o", cache, "--resume", "--set", "settings.time_step=0.002",
          says=["settings.time_step", "0.002", "--force"])
    fails(3, "bake", path, "-o", cache, "--resume", "--set", "garments[0].fabric=denim", says="fabric")
    assert frames_of(cache) == before
    done = ok("bake", path, "-o", cache, "--resume", "--force", "--set", "settings.time_step=0.002")
    assert "settings.time_step" in done.stderr
    after = frames_of(cache)
    assert len(after) == 10 and after[:4] == before
    # Threads and the frame range do not decide the result.
    bake(path, cache, "--frames", "1-4")
    bake(path, cache, "--resume", "--threads", "2")


def test_resume_with_nothing_to_do(folder):
    path, cache = scene(folder), os.path.join(folder, "a.h5")
    fails(5, "bake", path, "-o", cache, "--resume")
    bake(path, cache)
    before, report = frames_of(cache), os.path.join(folder, "r.json")
    assert "complete already" in ok("bake", path, "-o", cache, "--resume", "--report", report).stderr
    assert frames_of(cache) == before
    with open(report) as file:
        assert json.load(file)["state_hash"] == before[-1][1]
    for name in os.listdir(folder):
        if name.startswith("a.h5.state"):
            os.remove(os.path.join(folder, name))
    fails(5, "bake", path, "-o", cache, "--resume", "--frames", "1-12", says="without --resume")
    other = os.path.join(folder, "b.h5")
    bake(path, other, "--set", "settings.gravity=[0,0,-5]", "--frames", "1-4")
    bake(path, cache, "--frames", "1-4")
    with open(other + ".state", "rb") as source, open(cache + ".state", "wb") as target:
        target.write(source.read())
    assert run("bake", path, "-o", cache, "--resume").returncode == 3


# ---- files ----

def test_overwriting(folder):
    path, out = scene(folder), os.path.join(folder, "precious.h5")
    with open(out, "w") as file:
        file.write("a thesis")
    fails(3, "bake", path, "-o", out, says="not a readable Toile cache")
    with open(out) as file:
        assert file.read() == "a thesis"
    fails(3, "bake", path, "-o", path, says="not a readable Toile cache")
    fails(3, "bake", path, "-o", folder)
    with open(out, "w"):
        pass
    bake(path, out, "--frames", "1-3")
    bake(path, out, "--frames", "1-2")
    assert len(frames_of(out)) == 2


def test_no_right_to_write(folder):
    path = scene(folder)
    fails(5, "bake", path, "-o", os.path.join(folder, "none", "a.h5"))
    closed = os.path.join(folder, "closed")
    os.mkdir(closed)
    os.chmod(closed, 0o555)
    # Root may write anywhere but into the kernel's own folders.
    where = "/proc" if os.geteuid() == 0 else closed
    fails(5, "bake", path, "-o", os.path.join(where, "a.h5"))
    cache = os.path.join(folder, "a.h5")
    bake(path, cache, "--frames", "1-2")
    fails(5, "export", cache, "-o", os.path.join(where, "a.obj"))


def test_disk_full(folder):
    path = scene(folder, frames=(1, 20), resolution=25)
    whole, cache = os.path.join(folder, "whole.h5"), os.path.join(folder, "a.h5")
    bake(path, whole)
    limit = os.path.getsize(whole) // 2
    done = subprocess.run([TOILE, "bake", path, "-o", cache, "--progress", "none"], capture_output=True, text=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert done.returncode == 5 and done.stderr.startswith("toile: ") and "are kept" in done.stderr, done
    assert 1 <= json.loads(ok("info", cache, "--json").stdout)["frames"] < 20
    bake(path, cache, "--resume")
    assert frames_of(cache) == frames_of(whole)


def test_damaged_cache(folder):
    path, cache = scene(folder), os.path.join(folder, "a.h5")
    bake(path, cache)
    with open(cache, "rb") as file:
        data = file.read()
    codes = []
    for i in range(40):
        damaged = bytearray(data)
        at = len(data) * (2 * i + 1) // 80
        damaged[at:at + 16] = b"\xa5" * 16
        with open(cache, "wb") as file:
            file.write(damaged)
        # HDF5 1.10 loses memory of its own over damaged metadata; a build with sanitizers need not mind.
        codes.append(run("verify", cache, environment={"LSAN_OPTIONS": "detect_leaks=0"}).returncode)
    # Some of a file is slack in which nothing is kept; what is kept is noticed.
    assert set(codes) <= {0, 3, 4, 5} and sum(c != 0 for c in codes) >= 10, codes
    with open(cache, "wb") as file:
        file.write(data[:len(data) // 2])
    assert run("verify", cache, environment={"LSAN_OPTIONS": "detect_leaks=0"}).returncode in (3, 4, 5)
    assert run("info", cache, environment={"LSAN_OPTIONS": "detect_leaks=0"}).returncode in (0, 3, 5)


def test_export_obj(folder):
    path, cache = scene(folder), os.path.join(folder, "a.h5")
    bake(path, cache, "--frames", "1-3")
    one = os.path.join(folder, "one.obj")
    ok("export", cache, "-o", one, "--frames", "2")
    data = obj(one)
    assert len(data["v"]) == 169 and len(data["f"]) == 288 and len(data["vt"]) == 3 * 288 and len(data["g"]) >= 1
    corners = [tuple(map(int, c.split("/"))) for f in data["f"] for c in f]
    assert min(c[0] for c in corners) == 1 and max(c[0] for c in corners) == 169
    assert sorted(c[1] for c in corners) == list(range(1, 3 * 288 + 1))
    ok("export", cache, "-o", os.path.join(folder, "all.obj"), "--colliders", "--garment", "cloth")
    for frame in (1, 2, 3):
        assert len(obj(os.path.join(folder, "all_%04d.obj" % frame))["v"]) == 169
        assert obj(os.path.join(folder, "all_collider_%04d.obj" % frame))["g"] == [["ball"]]
    info = json.loads(ok("info", one, "--json").stdout)
    assert info["kind"] == "obj" and info["vertices"] == 169 and info["triangles"] == 288
    assert not [name for name in os.listdir(folder) if name.endswith(".tmp")]
    fails(2, "export", cache, says="-o")
    fails(2, "export", cache, "-o", "x.stl", says=["unknown", ".obj"])
    fails(3, "export", cache, "-o", one, "--garment", "hat", says=["hat", "cloth"])


def test_info_of_others(folder):
    for name, content, says in (("a.abc", b"Ogawa\xff\0\1", "Alembic"), ("a.pc2", b"POINTCACHE2\0\1\0\0\0", "PC2"),
                                ("a.txt", b"hello", "no format")):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(content)
        fails(3, "info", path, says=says)
    fails(3, "info", folder, says="not a file")


# ---- what verify finds ----

def sign(a, b, c, d):
    m = [[x - y for x, y in zip(p, d)] for p in (a, b, c)]
    det = (m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
           + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]))
    return (det > 0) - (det < 0)


def pierces(s, t):
    """An edge of s goes through t; for pairs in general position."""
    for i in range(3):
        p, q = s[i], s[(i + 1) % 3]
        if sign(*t, p) * sign(*t, q) < 0:
            sides = {sign(p, q, t[j], t[(j + 1) % 3]) for j in range(3)}
            if len(sides) == 1:
                return True
    return False


def test_verify_counts_crossings(folder):
    garments = [{"name": "a", "grid": {"size": [1, 1], "resolution": 5}},
                {"name": "b", "grid": {"size": [1, 1], "resolution": 4},
                 "place": {"origin": [0.313, 0.127, 0.071], "rotate": [77, 13, 29]}}]
    path = scene(folder, garments=garments, colliders=[], pins=[])
    cache, mesh = os.path.join(folder, "a.h5"), os.path.join(folder, "a.obj")
    bake(path, cache, "--frames", "1-1")
    done = run("verify", cache, "--json")
    verdict = json.loads(done.stdout)
    ok("export", cache, "-o", mesh)
    data = obj(mesh)
    points = [tuple(Fraction(float(x)) for x in v) for v in data["v"]]
    triangles = [[points[int(c.split("/")[0]) - 1] for c in f] for f in data["f"]]
    first, second = triangles[:32], triangles[32:]
    count = sum(pierces(s, t) or pierces(t, s) for s in first for t in second)
    assert count > 5 and verdict["cloth_pairs"] == count, (count, verdict["cloth_pairs"])
    assert done.returncode == 4 and verdict["colliders_checked"]
    assert "NOT CLEAN" in run("verify", cache).stdout


def test_verify_finds_cloth_in_colliders(folder):
    cache = os.path.join(folder, "a.h5")
    colliders = [{"shape": "sphere", "radius": 1, "place": {"origin": [0, 0, 0.22]}}]
    path = scene(folder, colliders=colliders, pins=[])
    bake(path, cache, "--frames", "1-1")
    frame = json.loads(run("verify", cache, "--json").stdout)["frames"][0]
    assert frame["inside_colliders"] == 169 and frame["collider_pairs"] == 0, frame
    path = scene(folder, colliders=[{"shape": "plane", "place": {"origin": [0, 0, 3]}}], pins=[])
    bake(path, cache, "--frames", "1-1")
    done = run("verify", cache, "--json")
    assert json.loads(done.stdout)["inside_colliders"] == 169 and done.returncode == 4
    path = scene(folder, colliders=[{"shape": "box", "size": [0.2, 0.2, 0.2], "place": {"origin": [0, 0, 0.22]}}])
    bake(path, cache, "--frames", "1-1")
    frame = json.loads(run("verify", cache, "--json").stdout)["frames"][0]
    assert 0 < frame["inside_colliders"] < 60 and frame["collider_pairs"] > 0, frame


def test_verify_without_the_scene(folder):
    path, cache = scene(folder), os.path.join(folder, "a.h5")
    bake(path, cache, "--frames", "1-2")
    away = os.path.join(folder, "elsewhere.json")
    os.rename(path, away)
    done = ok("verify", cache, "--scene", away, "--json")
    assert json.loads(done.stdout)["colliders_checked"]
    fails(5, "verify", cache, "--scene", path)
    # The cache keeps the scene itself; only mesh files can be missing.
    assert json.loads(ok("verify", cache, "--json").stdout)["colliders_checked"]
    mesh = os.path.join(folder, "floor.obj")
    with open(mesh, "w") as file:
        file.write("v -2 -2 -1\nv 2 -2 -1\nv 2 2 -1\nv -2 2 -1\nf 1 2 3 4\n")
    path = scene(folder, colliders=[{"shape": "mesh", "obj": "floor.obj"}])
    bake(path, cache, "--frames", "1-2")
    verdict = json.loads(ok("verify", cache, "--json").stdout)
    assert verdict["colliders_checked"] and verdict["open_colliders"] == 1
    os.remove(mesh)
    assert "COLLIDERS WERE NOT CHECKED" in ok("verify", cache).stdout
    assert json.loads(ok("verify", cache, "--json").stdout)["colliders_checked"] is False


# ---- tables ----

def test_tables(folder):
    settings = json.loads(ok("settings", "--json").stdout)
    step = next(s for s in settings["settings"] if s["id"] == "time_step")
    assert step["unit"] == "s" and step["min"] < step["default"] < step["max"] and step["tooltip"]
    assert any(f["id"] == "density" for f in settings["fabric"])
    text = ok("settings").stdout
    assert "time_step" in text and max(map(len, text.splitlines())) <= 120
    assert "| `time_step` |" in ok("settings", "--markdown").stdout
    fabrics = json.loads(ok("fabrics", "--json").stdout)
    assert all(f["source"] and f["density"] > 0 for f in fabrics) and "cotton" in ok("fabrics").stdout
    solvers = json.loads(ok("solvers", "--json").stdout)
    assert {"cloth_model", "integrator", "linear_solver", "preconditioner", "drag_model"} <= set(solvers)
    assert all(choice["meaning"] for choices in solvers.values() for choice in choices), solvers
    assert all(sum(choice["default"] for choice in choices) == 1 for choices in solvers.values())
    assert "* " in ok("solvers").stdout
    assert json.loads(ok("schema").stdout)["$schema"].startswith("https://json-schema.org")


if __name__ == "__main__":
    main(tests_of(globals()))
