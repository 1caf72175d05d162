#!/usr/bin/python3
"""Wedges, the manners of a bake on a node, and the files for queues; Slurm itself is in test_slurm.py.

    test_farm.py [NAME...]      TOILE_BUILD names the build folder (build)

Ends with `N passed, M failed[, K skipped]`."""
import csv
import http.server
import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zlib

import h5py
import numpy
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOILE = os.path.abspath(os.path.join(os.environ.get("TOILE_BUILD", os.path.join(ROOT, "build")), "toile"))
SPHERE = os.path.join(ROOT, "samples/scenes/sphere.json")
FOLDER = tempfile.mkdtemp(prefix="toile_farm_")
passed = failed = skipped = 0


def check(condition, text=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        frame = sys._getframe(1)
        print(f"FAILED {frame.f_code.co_name}:{frame.f_lineno}: {text}")


def skip(text):
    global skipped
    skipped += 1
    print(f"SKIPPED {text}")


def run(*arguments, **options):
    return subprocess.run([TOILE, *map(str, arguments)], capture_output=True, text=True, timeout=200, check=False,
                          **options)


def start(*arguments, **options):
    return subprocess.Popen([TOILE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **options)


def refused(code, words, *arguments, **options):
    """It fails with this exit code and says these words."""
    global passed, failed
    done = run(*arguments, **options)
    if done.returncode == code and all(word in done.stderr for word in words):
        passed += 1
    else:
        failed += 1
        print(f"FAILED {sys._getframe(1).f_code.co_name}: toile {' '.join(map(str, arguments))} should end with {code} and say {words}, "
              f"not {done.returncode}: {done.stderr[:500]}")


def folder(name):
    return os.path.join(FOLDER, name)


def plan_of(path):
    with open(path + "/plan.json", encoding="utf-8") as file:
        return json.load(file)


def values_of(path):
    return [w["values"] for w in plan_of(path)["wedges"]]


def path_of(plan, index, ending):
    name = plan_of(plan)["wedges"][index]["name"]
    return f"{plan}/{name}/{name}{ending}"


def hashes(cache):
    with h5py.File(cache, "r") as f:
        return f["frames/state_hash"][:].tolist()


def frames_in(cache):
    try:
        with h5py.File(cache, "r", swmr=True, libver="latest") as f:
            return int(f["frames/state_hash"].shape[0])
    except (OSError, KeyError):
        return 0


def small(name, *more, vary=("fabric=cotton,denim",), frames="1-6", resolution=15):
    """A plan of small bakes."""
    path = folder(name)
    arguments = [a for v in vary for a in ("--vary", v)]
    done = run("wedge", SPHERE, *arguments, "-o", path, "--set", f"resolution={resolution}", "--frames", frames, *more)
    check(done.returncode == 0, done.stderr)
    return path


def alone(path, index, name):
    """The same bake by itself, never stopped."""
    plan, cache = plan_of(path), folder(name)
    sets = [a for s in plan["common"] + plan["wedges"][index]["set"] for a in ("--set", s)]
    done = run("bake", os.path.join(path, plan["scene"]), "-o", cache, "--threads", 1, "--frames",
               "{}-{}".format(*plan["frames"]), *sets)
    check(done.returncode == 0, done.stderr)
    return hashes(cache)


def wait_for(condition, what, seconds=60):
    end = time.time() + seconds
    while not condition():
        if time.time() > end:
            raise RuntimeError(f"{what}: not within {seconds} s")
        time.sleep(0.02)


# ---- plans ----

def plans():
    path = small("grid", vary=("fabric=cotton,denim", "friction=0.2:0.8:4"))
    values = values_of(path)
    check(values == [{"fabric": f, "friction": x} for f in ("cotton", "denim") for x in (0.2, 0.4, 0.6, 0.8)],
          f"{values}")
    names = [w["name"] for w in plan_of(path)["wedges"]]
    check(names[0] == "000_fabric-cotton_friction-0.2" and len(set(names)) == 8, f"{names}")
    check(plan_of(path)["wedges"][5]["set"] == ["garments.sheet.fabric=denim", "colliders.sphere.friction=0.4"],
          f"{plan_of(path)['wedges'][5]}")
    # the same again changes nothing; another is refused
    before = os.stat(path + "/plan.json").st_mtime_ns
    small("grid", vary=("fabric=cotton,denim", "friction=0.2:0.8:4"))
    check(os.stat(path + "/plan.json").st_mtime_ns == before, "the same plan was written again")
    refused(3, ["another plan"], "wedge", SPHERE, "--vary", "fabric=silk", "-o", path)

    path = small("log", vary=("stretch_warp=10:1000:3:log", "wind_velocity=[0,0,0],[0,2,0]",
                              "colliders.sphere.radius=0.3"))
    check([v["stretch_warp"] for v in values_of(path)] == [10, 10, 100, 100, 1000, 1000], f"{values_of(path)}")
    check(values_of(path)[1]["wind_velocity"] == [0, 2, 0], "a vector")
    made = plan_of(path)["wedges"][3]["set"]
    fabric = json.loads(next(s for s in made if s.startswith("garments.sheet.fabric=")).split("=", 1)[1])
    check("colliders.sphere.radius=0.3" in made and "wind_velocity=[0,2,0]" in made and fabric["stretch_warp"] == 100,
          f"{made}")
    # a fabric and one of its properties together
    path = small("both", vary=("fabric=denim,silk", "density=0.5"))
    check(json.loads(plan_of(path)["wedges"][1]["set"][0].split("=", 1)[1]) == {"base": "silk", "density": 0.5},
          f"{plan_of(path)}")

    one = small("random", "--random", 5, "--seed", 7, vary=("friction=0:1", "fabric=cotton,denim,silk"))
    two = small("random2", "--random", 5, "--seed", 7, vary=("friction=0:1", "fabric=cotton,denim,silk"))
    other = small("random3", "--random", 5, "--seed", 8, vary=("friction=0:1", "fabric=cotton,denim,silk"))
    check(values_of(one) == values_of(two) != values_of(other), "a seed gives the same draws, another one others")
    check(all(0 <= v["friction"] <= 1 for v in values_of(one)) and len({v["friction"] for v in values_of(one)}) == 5,
          "draws")

    with open(folder("list.csv"), "w", encoding="utf-8") as file:
        file.write('name,fabric,wind_velocity\nsoft one,silk,"[0, 1, 0]"\r\n,denim,"[0,0,0]"\n\n')
    check(run("wedge", SPHERE, "--list", folder("list.csv"), "-o", folder("list")).returncode == 0, "a list")
    check(values_of(folder("list")) == [{"fabric": "silk", "wind_velocity": [0, 1, 0]},
                                        {"fabric": "denim", "wind_velocity": [0, 0, 0]}]
          and plan_of(folder("list"))["wedges"][0]["name"] == "000_soft_one", f"{plan_of(folder('list'))['wedges']}")


def mistakes():
    """Are found when the plan is made, say what to do, and leave nothing behind."""
    none = folder("none")
    for words, *arguments in (
            (["did you mean", "denim"], "--vary", "fabric=cotton,denin"),
            (["--vary frikction", "friction"], "--vary", "frikction=0.1,0.2"),
            (["how many values"], "--vary", "friction=0:1"),
            (["KEY=a,b,c"], "--vary", "friction"),
            (["empty"], "--vary", "friction=0.1,,0.2"),
            (["twice"], "--vary", "friction=0.1", "--vary", "friction=0.2"),
            (["above 0"], "--vary", "friction=0:1:3:log"),
            (["friction", "found -1"], "--vary", "friction=0.5,-1"),
            (["the most is"], "--vary", "friction=0:1:1000", "--vary", "thickness=0:1:1000"),
            (["garments.nobody"], "--vary", "garments.nobody.fabric=silk"),
            (["cannot be read"], "--list", folder("no.csv"))):
        done = run("wedge", SPHERE, *arguments, "-o", none)
        check(done.returncode in (3, 5) and all(w in done.stderr for w in words),
              f"{arguments}: {done.returncode} {done.stderr}")
    check(not os.path.exists(none), "something was left behind")
    refused(2, ["what varies"], "wedge", SPHERE, "-o", none)
    refused(2, ["-o DIR"], "wedge", SPHERE, "--vary", "friction=0.1")
    path = small("mistakes")
    refused(2, ["0 to 1"], "wedge", path, "--index", 2)
    refused(2, ["--export goes with"], "wedge", path, "--export", "abc")
    refused(3, ["not finished"], "wedge", path, "--index", 0, "--export", "abc")
    refused(2, ["did you mean"], "submit", path, "--engine", "slrm")
    refused(3, ["export nope"], "submit", path, "--engine", "local", "--export", "nope")
    # plans that were edited, by hand or in bad faith
    good = plan_of(path)
    for change, word in ((lambda p: p["wedges"][0].update(name="../../x"), "name"),
                         (lambda p: p["wedges"][0].update(name="a/b"), "name"),
                         (lambda p: p["wedges"][0].update(name=good["wedges"][1]["name"]), "two wedges"),
                         (lambda p: p["wedges"][0].update(set=[1]), "set"), (lambda p: p.update(wedges=[]), "wedges"),
                         (lambda p: p.update(frames=[1, "x"]), "frames"),
                         (lambda p: p.update(toile_wedge=2), "not a plan"),
                         (lambda p: p.update(scene=3), "scene"),
                         (lambda p: p["wedges"][0].update(values=[]), "values")):
        edited = json.loads(json.dumps(good))
        change(edited)
        with open(path + "/plan.json", "w", encoding="utf-8") as file:
            json.dump(edited, file)
        done = run("wedge", path, "--index", 0)
        check(done.returncode == 3 and word in done.stderr, f"{word}: {done.returncode} {done.stderr}")
    for text in ("", "{", "[" * 100000, '{"toile_wedge": 1}', "null"):
        with open(path + "/plan.json", "w", encoding="utf-8") as file:
            file.write(text)
        check(run("wedge", path, "--index", 0).returncode == 3, f"a plan of {text[:20]!r}")


# ---- one wedge ----

def by_index():
    path = small("index", vary=("fabric=cotton,silk",))
    done = run("wedge", path, "--index", 1, "--threads", 1)
    cache = path_of(path, 1, ".h5")
    check(done.returncode == 0 and frames_in(cache) == 6, done.stderr)
    check(hashes(cache) == alone(path, 1, "index_alone.h5"), "other bits than a bake by itself")
    before = os.stat(cache).st_mtime_ns
    done = run("wedge", path, "--index", 1, "--threads", 1)
    check(done.returncode == 0 and "complete already" in done.stderr and os.stat(cache).st_mtime_ns == before,
          done.stderr)
    # a plan with --index in one go, as a script might
    done = run("wedge", SPHERE, "--vary", "fabric=cotton,silk", "-o", path, "--set", "resolution=15", "--frames", "1-6",
               "--index", 0)
    check(done.returncode == 0 and frames_in(path_of(path, 0, ".h5")) == 6, done.stderr)
    check(hashes(path_of(path, 0, ".h5")) != hashes(cache), "cotton and silk came out the same")
    # killed before the first checkpoint: begun anew, not refused
    os.remove(cache + ".state")
    for state in [f for f in os.listdir(os.path.dirname(cache)) if ".state-" in f]:
        os.remove(os.path.join(os.path.dirname(cache), state))
    with h5py.File(cache, "r") as f:
        kept = f["frames/state_hash"][:].tolist()
    done = run("wedge", path, "--index", 1, "--threads", 1)
    check(done.returncode == 0 and hashes(cache) == kept, f"{done.returncode} {done.stderr}")
    done = run("wedge", path, "--index", 1, "--export", "abc")
    check(done.returncode == 0 and os.path.exists(path_of(path, 1, ".abc")), done.stderr)
    check("already" in run("wedge", path, "--index", 1, "--export", "abc").stderr, "exported twice")
    state = json.loads(run("wedge", "status", path, "--json").stdout)
    check([s["state"] for s in state] == ["complete", "complete"] and state[1]["values"] == {"fabric": "silk"},
          f"{state}")


def from_jobs():
    """A scene with mesh files is packed, a job is taken along; the folder alone is enough, wherever it goes."""
    scene = os.path.join(ROOT, "samples/scenes/arm_bend.json")
    arguments = ["--vary", "fabric=cotton,jersey", "--frames", "1-3"]
    check(run("wedge", scene, *arguments, "-o", folder("packed")).returncode == 0, "packed")
    check(run("pack", scene, "-o", folder("arm.job.h5")).returncode == 0, "pack")
    check(run("wedge", folder("arm.job.h5"), *arguments, "-o", folder("job")).returncode == 0, "job")
    shutil.copytree(folder("packed"), folder("moved"))
    for name in ("packed", "job", "moved"):
        done = run("wedge", folder(name), "--index", 1, "--threads", 1)
        check(done.returncode == 0, done.stderr)
    check(run("bake", scene, "-o", folder("arm.h5"), "--frames", "1-3", "--threads", 1, "--set",
              "garments.0.fabric=jersey").returncode == 0, "")
    for name in ("packed", "job", "moved"):
        check(hashes(path_of(folder(name), 1, ".h5")) == hashes(folder("arm.h5")), f"{name}: other bits than the scene")
    # grids of a job have their resolution written out
    check(run("pack", SPHERE, "-o", folder("sphere.job.h5")).returncode == 0, "pack")
    done = run("wedge", folder("sphere.job.h5"), "--vary", "resolution=9,13", "-o", folder("grids"), "--frames", "1-2")
    check(done.returncode == 0 and run("wedge", folder("grids"), "--index", 1).returncode == 0, done.stderr)
    with h5py.File(path_of(folder("grids"), 1, ".h5"), "r") as f:
        check(f["garments/sheet/positions"].shape[1] == 169, f"{f['garments/sheet/positions'].shape}")


# ---- manners ----

SLOW = ("--set", "time_step=0.0001")        # 417 steps a frame


def long_frames():
    """A frame that takes long is given up after the grace; nothing that was finished is lost, and the bits stay the same."""
    path = small("slow", *SLOW, vary=("fabric=cotton",), frames="1-3", resolution=49)
    cache, beat = path_of(path, 0, ".h5"), path_of(path, 0, ".heartbeat.json")
    for number, at_least in ((signal.SIGTERM, 1), (signal.SIGUSR1, 2)):
        task = start("wedge", path, "--index", 0, "--threads", 1, "--grace", 0.2, "--progress", "none")
        wait_for(lambda: frames_in(cache) >= at_least and os.path.exists(beat), "a frame")
        wait_for(lambda: json.load(open(beat, encoding="utf-8"))["process"] == task.pid, "its heartbeat")
        had = frames_in(cache)
        time.sleep(0.1)
        asked = time.time()
        task.send_signal(number)
        _, errors = task.communicate(timeout=60)
        took = time.time() - asked
        check(task.returncode == 75 and "stopped after frame" in errors, f"{task.returncode} {errors}")
        check(frames_in(cache) >= had, "a finished frame was lost")
        print(f"left {took:.2f} s after {number.name}, with a grace of 0.2 s")
        check(json.load(open(beat, encoding="utf-8"))["state"] == "stopped", "the heartbeat says otherwise")
    check(frames_in(cache) < 3, "it was not stopped in the middle")
    done = run("wedge", path, "--index", 0, "--threads", 1)
    check(done.returncode == 0 and "(continued)" in done.stderr, done.stderr)
    check(hashes(cache) == alone(path, 0, "slow_alone.h5"), "other bits than a bake never stopped")
    state = json.load(open(beat, encoding="utf-8"))
    check(state["state"] == "complete" and state["done"] == state["frames"] == 3 and state["percent"] == 100
          and state["host"], f"{state}")


def one_writer():
    path = small("writers", *SLOW, vary=("fabric=cotton",), frames="1-3", resolution=21)
    beat = path_of(path, 0, ".heartbeat.json")
    first = start("wedge", path, "--index", 0, "--threads", 1)
    wait_for(lambda: os.path.exists(beat), "a heartbeat")
    refused(5, ["another process is writing", str(first.pid)], "wedge", path, "--index", 0)
    check(json.load(open(beat, encoding="utf-8"))["process"] == first.pid, "the second speaks for the first")
    # one that waits finds it done
    done = run("wedge", path, "--index", 0, "--threads", 1, "--wait", 100)
    first.communicate(timeout=60)
    check(first.returncode == 0 and done.returncode == 0 and "complete already" in done.stderr,
          f"{done.returncode} {done.stderr}")


def lost_machine():
    """The lock of a machine that was lost is told of, and waited for until it expires."""
    path = small("lost", vary=("fabric=cotton",), frames="1-3")
    os.makedirs(os.path.dirname(path_of(path, 0, ".h5")))
    lock = path_of(path, 0, ".h5.lock")
    with open(lock, "w", encoding="utf-8") as file:
        file.write("toile lock 1\nhost elsewhere\nboot unknown\npid 1234\nstart 5\nsince 1700000000\n")
    refused(5, ["process 1234 on elsewhere", "expires by itself"], "wedge", path, "--index", 0)
    os.utime(lock, (time.time() - 57, time.time() - 57))
    done = run("wedge", path, "--index", 0, "--threads", 1, "--wait", 60)
    check(done.returncode == 0 and frames_in(path_of(path, 0, ".h5")) == 3, f"{done.returncode} {done.stderr}")


def full_disk():
    path = small("disk", vary=("fabric=cotton",), frames="1-8")
    limited = run("wedge", path, "--index", 0, "--threads", 1,
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000)))
    check(limited.returncode == 5 and len(limited.stderr.splitlines()[-1]) > 30,
          f"{limited.returncode} {limited.stderr}")
    done = run("wedge", path, "--index", 0, "--threads", 1)
    check(done.returncode == 0 and hashes(path_of(path, 0, ".h5")) == alone(path, 0, "disk_alone.h5"),
          f"{done.returncode} {done.stderr}")
    os.chmod(path, 0o777)
    refused(5, ["cannot be made"], "wedge", SPHERE, "--vary", "friction=0.1", "-o", "/proc/no/such")


HANGING = """
#include <unistd.h>
static int calls;
int fdatasync(int fd) { (void)fd; if (++calls == 6) sleep(14); return 0; }
int fsync(int fd) { return fdatasync(fd); }
"""


def slow_disk():
    """TOILE_LONG=1: a disk that hangs for 14 s is told of; the heart beats on, and the frames are what they were."""
    if not os.environ.get("TOILE_LONG"):
        return
    with open(folder("hang.c"), "w", encoding="utf-8") as file:
        file.write(HANGING)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder("hang.so"), folder("hang.c")], check=True)
    path = small("hangs", vary=("fabric=cotton",), frames="1-40", resolution=9)
    beat = path_of(path, 0, ".heartbeat.json")
    task = start("wedge", path, "--index", 0, "--threads", 1, env={**os.environ, "LD_PRELOAD": folder("hang.so")})
    wait_for(lambda: os.path.exists(beat), "a heartbeat")
    time.sleep(8)
    check(time.time() - os.stat(beat).st_mtime < 5, "no heartbeat while the disk hangs")
    _, errors = task.communicate(timeout=100)
    check(task.returncode == 0 and "for the disk of" in errors, f"{task.returncode} {errors}")
    check(hashes(path_of(path, 0, ".h5")) == alone(path, 0, "hangs_alone.h5"), "other bits")


def processors():
    """Threads are what the allocation has, unless --threads says otherwise."""
    def threads(*more, **environment):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "OMP"))}
        done = run("bake", SPHERE, "-o", folder("threads.h5"), "--set", "resolution=5", "--frames", "1-2", "--report",
                   folder("threads.json"),
                   *more, env={**clean, "OMP_WAIT_POLICY": "passive", **environment})
        check(done.returncode == 0, done.stderr)
        return json.load(open(folder("threads.json"), encoding="utf-8"))["threads"]
    here = len(os.sched_getaffinity(0))
    check(threads(SLURM_CPUS_PER_TASK="1") == 1, "SLURM_CPUS_PER_TASK=1")
    check(threads(SLURM_CPUS_PER_TASK="1000") <= here, "more than the machine may give")
    check(threads("--threads", "3", SLURM_CPUS_PER_TASK="1") == 3, "--threads 3")
    check(threads("--set", "threads=1") == 1, "the scene's own, lower")
    for nonsense in ("", "0", "-2", "x", "99999999999"):
        check(threads(SLURM_CPUS_PER_TASK=nonsense) <= here, f"SLURM_CPUS_PER_TASK={nonsense}")
    if shutil.which("taskset"):
        done = subprocess.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), TOILE, "bake", SPHERE, "-o",
                               folder("t.h5"), "--set",
                               "resolution=5", "--frames", "1-2", "--report", folder("t.json")], check=False)
        check(done.returncode == 0 and json.load(open(folder("t.json"), encoding="utf-8"))["threads"] == 1,
              "one processor")


# ---- the report ----

def read_png(path):
    """Rows of pixels; checks form and checksums on the way."""
    with open(path, "rb") as file:
        data = file.read()
    check(data[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG")
    at, packed, size = 8, b"", None
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        check(struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(name + body),
              f"{name}: checksum")
        if name == b"IHDR":
            size = struct.unpack(">IIBBBBB", body)
        elif name == b"IDAT":
            packed += body
        at += 12 + length
    width, height = size[:2]
    check(size[2:] == (8, 2, 0, 0, 0) and name == b"IEND", f"{size}")
    rows = numpy.frombuffer(zlib.decompress(packed), numpy.uint8).reshape(height, 1 + 3 * width)
    check((rows[:, 0] == 1).all(), "filter")
    return numpy.cumsum(rows[:, 1:].reshape(height, width, 3), axis=1, dtype=numpy.uint8)


def report():
    path = small("report", vary=("fabric=cotton,denim", "friction=0.2,0.8"), frames="1-12")
    for index in (0, 1, 2):
        check(run("wedge", path, "--index", index, "--threads", 1).returncode == 0, f"{index}")
    done = run("wedge", "report", path, "--size", 200)
    check(done.returncode == 0 and "3 of 4" in done.stdout, done.stdout + done.stderr)
    with open(path + "/report/table.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    check([r["state"] for r in rows] == ["complete"] * 3 + ["waiting"]
          and [r["fabric"] for r in rows] == ["cotton"] * 2 + ["denim"] * 2, f"{rows}")
    for index in (0, 1, 2):
        row, cache = rows[index], path_of(path, index, ".h5")
        with h5py.File(cache, "r") as f:
            numbers = {k: f["frames"][k][:] for k in ("steps", "max_stretch", "seconds")}
        check(int(row["steps"]) == numbers["steps"].sum()
              and abs(float(row["max_stretch"]) - numbers["max_stretch"].max()) < 1e-4, f"{row}")
        check(int(row["state_hash"], 16) == hashes(cache)[-1] & (2 ** 64 - 1), "the hash is another")
        verified = json.loads(run("verify", cache, "--json", "--frames", "12-12").stdout)
        check(int(row["intersections"]) == verified["cloth_pairs"] + verified["collider_pairs"], f"{row} {verified}")
    picture = read_png(path + "/report/" + rows[0]["picture"]).astype(int)
    check(picture.shape == (200, 200, 3), f"{picture.shape}")
    blue = (picture[..., 2] > picture[..., 0] + 30).mean()
    check(0.05 < blue < 0.9, f"cloth covers {blue:.3f} of the picture")
    rim = numpy.concatenate([picture[0], picture[-1], picture[:, 0], picture[:, -1]])
    check((abs(rim[:, 0] - rim[:, 2]) < 8).all(), "the cloth reaches out of the picture")
    sheet = read_png(path + "/report/contact.png")
    check(sheet.shape[0] > 200 and sheet.shape[1] > 400, f"{sheet.shape}")
    with open(path + "/report/index.html", encoding="utf-8") as file:
        html = file.read()
    check(all(r["picture"] in html for r in rows[:3]) and "3 of 4 wedges complete" in html, "the page")
    # damaged caches spoil one row
    with open(path_of(path, 1, ".h5"), "r+b") as file:
        file.seek(3000)
        file.write(os.urandom(20000))
    done = run("wedge", "report", path)
    states = [r["state"] for r in json.load(open(path + "/report/table.json", encoding="utf-8"))]
    check(done.returncode == 0 and states[0] == states[2] == "complete" and states[1] != "complete",
          f"{states} {done.stderr}")


# ---- queues ----

def local_queue():
    """Bounded, cancelled in order, gone on with, a killed one started again; the same bits in the end."""
    path = small("queue", *SLOW, vary=("fabric=cotton,denim", "friction=0.2,0.8"), frames="1-3", resolution=15)
    task = start("submit", path, "--engine", "local", "--slots", 2, "--export", "pc2", "--progress", "json")
    wait_for(lambda: frames_in(path_of(path, 0, ".h5")) >= 2, "a frame")
    task.send_signal(signal.SIGINT)
    output, errors = task.communicate(timeout=120)
    check(task.returncode == 75 and "goes on" in errors, f"{task.returncode} {errors}")
    task = start("submit", path, "--engine", "local", "--progress", "json")
    victim = path_of(path, 3, ".h5.lock")
    wait_for(lambda: os.path.exists(victim), "the last one")
    with open(victim, encoding="utf-8") as file:
        os.kill(int(re.search(r"pid (\d+)", file.read()).group(1)), signal.SIGKILL)
    more, errors = task.communicate(timeout=180)
    check(task.returncode == 0, f"{task.returncode} {errors}")
    running, most = set(), 0
    for line in (output + more).splitlines():
        event = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "wedge":
            (running.add if event["state"] in ("baking", "exporting") else running.discard)(event["index"])
            most = max(most, len(running))
    check(most == 2, f"{most} at a time")
    check('"exit_code":137' in more, f"the killed one was not seen:\n{more}")
    for index in range(4):
        check(hashes(path_of(path, index, ".h5")) == alone(path, index, f"queue_{index}.h5"),
              f"wedge {index}: other bits")
        check(os.path.exists(path_of(path, index, ".pc2")), "kept description: export")
    check(os.path.exists(path + "/report/contact.png"), "no report")
    done = run("submit", SPHERE, "-o", folder("single"), "--engine", "local", "--set", "resolution=7", "--frames",
               "1-3")
    check(done.returncode == 0 and frames_in(folder("single") + "/000_bake/000_bake.h5") == 3, done.stderr)
    # one that cannot be baked is told of, and the others are not held up
    edited = plan_of(folder("single"))
    edited["wedges"].append({"name": "bad", "set": ["garments.sheet.fabric=nope"]})
    with open(folder("single") + "/plan.json", "w", encoding="utf-8") as file:
        json.dump(edited, file)
    done = run("submit", folder("single"), "--engine", "local")
    check(done.returncode == 3 and "bad ended with 3" in done.stderr, f"{done.returncode} {done.stderr}")


# Of the 2023-09 specification: what an object may have, and what it must.
OPENJD = {
    "template": ({"specificationVersion", "name", "steps"},
                 {"description", "parameterDefinitions", "jobEnvironments", "$schema"}),
    "PATH": ({"name", "type"}, {"description", "default", "allowedValues", "minLength", "maxLength", "objectType",
                                "dataFlow", "userInterface"}),
    "STRING": ({"name", "type"}, {"description", "default", "allowedValues", "minLength", "maxLength",
                                  "userInterface"}),
    "step": ({"name", "script"}, {"description", "dependencies", "stepEnvironments", "hostRequirements",
                                  "parameterSpace"}),
    "action": ({"command"}, {"args", "timeout", "cancelation"}),
    "task parameter": ({"name", "type", "range"}, set()),
}


def openjd_form(kind, thing):
    must, may = OPENJD[kind]
    check(isinstance(thing, dict) and must <= set(thing) and set(thing) <= must | may, f"{kind}: {thing}")


def openjd():
    path = small("openjd", vary=("friction=0.1:0.9:5",))
    done = run("submit", path, "--engine", "openjd", "--write-only", folder("ojd"), "--export", "abc", "--cpus", 2,
               "--memory", 4000)
    check(done.returncode == 0, done.stderr)
    with open(folder("ojd") + "/template.yaml", encoding="utf-8") as file:
        template = yaml.safe_load(file)
    openjd_form("template", template)
    check(template["specificationVersion"] == "jobtemplate-2023-09" and 1 <= len(template["name"]) <= 128,
          template["name"])
    known = {"Session.WorkingDirectory", "Session.PathMappingRulesFile"}
    for parameter in template["parameterDefinitions"]:
        openjd_form(parameter["type"], parameter)
        check(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", parameter["name"]), parameter["name"])
        if parameter["type"] == "PATH":
            check(parameter["objectType"] in ("FILE", "DIRECTORY")
                  and parameter["dataFlow"] in ("NONE", "IN", "OUT", "INOUT")
                  and not str(parameter.get("default", "")).startswith("/"), f"{parameter}")
        known |= {"Param." + parameter["name"], "RawParam." + parameter["name"]}
    seen = set()
    for step in template["steps"]:
        openjd_form("step", step)
        here = set(known)
        for parameter in step.get("parameterSpace", {}).get("taskParameterDefinitions", []):
            openjd_form("task parameter", parameter)
            check(parameter["type"] == "INT" and parameter["range"] == "0-4", f"{parameter}")
            here |= {"Task.Param." + parameter["name"], "Task.RawParam." + parameter["name"]}
        check(all(set(d) == {"dependsOn"} and d["dependsOn"] in seen for d in step.get("dependencies", [])), f"{step}")
        seen.add(step["name"])
        check(set(step["script"]) == {"actions"} and set(step["script"]["actions"]) == {"onRun"}, f"{step['script']}")
        action = step["script"]["actions"]["onRun"]
        openjd_form("action", action)
        check(all(isinstance(a, str) for a in action["args"]), f"{action['args']}")
        for text in [action["command"]] + action["args"]:
            check(all(r.strip() in here for r in re.findall(r"\{\{(.*?)\}\}", text)), f"{text}: unknown reference")
        if "timeout" in action:
            check(isinstance(action["timeout"], int) and action["timeout"] > 0, f"{action}")
            cancel = action["cancelation"]
            check(cancel["mode"] == "NOTIFY_THEN_TERMINATE" and 0 < cancel["notifyPeriodInSeconds"] <= 600, f"{cancel}")
        for amount in step.get("hostRequirements", {}).get("amounts", []):
            check(amount["name"] in ("amount.worker.vcpu", "amount.worker.memory") and amount["min"] in (2, 4000),
                  f"{amount}")
    check(seen == {"Bake", "Export", "Report"}, f"{seen}")
    # run as a worker would, after the references are resolved
    with open(folder("ojd") + "/parameter_values.yaml", encoding="utf-8") as file:
        values = {"Param." + v["name"]: v["value"] for v in yaml.safe_load(file)["parameterValues"]}
    values.update({"Param." + p["name"]: p["default"] for p in template["parameterDefinitions"] if "default" in p})
    for step in template["steps"]:
        for index in range(5) if "parameterSpace" in step else (0,):
            action = step["script"]["actions"]["onRun"]
            words = [re.sub(r"\{\{(.*?)\}\}", lambda m: {**values, "Task.Param.Index": str(index)}[m.group(1).strip()],
                            t)
                     for t in [action["command"]] + action["args"]]
            done = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
            check(done.returncode == 0, f"{words}: {done.stderr}")
            if step["name"] == "Bake" and index == 0:
                lines = [float(x) for x in re.findall(r"^openjd_progress: ([\d.]+)$", done.stdout, re.M)]
                check(lines and lines == sorted(lines) and lines[-1] == 100 and "openjd_status: " in done.stdout,
                      done.stdout)
    check(os.path.exists(path + "/report/contact.png") and os.path.exists(path_of(path, 4, ".abc")),
          "nothing came of it")


RUN_JOB_TYPE = """
const fs = require('fs'), vm = require('vm');
const author = {
    Task: (name, type) => ({ name, type, commands: [], needs: [],
        addCommand(c) { this.commands.push(c); }, addDependency(t) { this.needs.push(t.name); } }),
    Command: (name, parameters) => ({ name, parameters })
};
const context = vm.createContext({ author, String, JSON });
vm.runInContext(fs.readFileSync(process.argv[2], 'utf8'), context);
const job = JSON.parse(fs.readFileSync(process.argv[3], 'utf8')), tasks = [];
job.addTask = t => tasks.push(t);
context.job = job;
vm.runInContext('compileJob(job)', context);
console.log(JSON.stringify({ type: vm.runInContext('JOB_TYPE', context), tasks }));
"""


def flamenco():
    path = small("flamenco", vary=("friction=0.1,0.2,0.3",))
    got = []

    class Manager(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *arguments):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Manager)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    if shutil.which("curl"):
        done = run("submit", path, "--engine", "flamenco", "--export", "abc", "--manager",
                   f"http://127.0.0.1:{server.server_port}")
        check(done.returncode == 0 and len(got) == 1 and got[0][0] == "/api/v3/jobs"
              and got[0][1] == "application/json", f"{got} {done.stderr}")
        refused(4, ["--manager"], "submit", path, "--engine", "flamenco", "--manager", "http://127.0.0.1:1")
    else:
        skip("flamenco: no curl, the job was not posted")
    server.shutdown()
    out = folder("fl")
    check(run("submit", path, "--engine", "flamenco", "--export", "abc", "--write-only", out).returncode == 0,
          "write only")
    with open(out + "/job.json", encoding="utf-8") as file:
        job = json.load(file)
    # SubmittedJob of flamenco-openapi.yaml
    check({"name", "type", "priority", "submitter_platform"} <= set(job)
          <= {"name", "type", "type_etag", "priority", "settings", "metadata", "submitter_platform", "storage",
              "worker_tag", "initial_status"},
          f"{job}")
    check(job["type"] == "toile-wedge" and isinstance(job["priority"], int) and job["submitter_platform"] == "linux"
          and all(isinstance(v, str) for v in job["metadata"].values()), f"{job}")
    if not shutil.which("node"):
        skip("flamenco: no JavaScript (nodejs) here, the job type was not run")
        return
    with open(folder("run.js"), "w", encoding="utf-8") as file:
        file.write(RUN_JOB_TYPE)
    done = subprocess.run(["node", folder("run.js"), out + "/toile_wedge.js", out + "/job.json"], capture_output=True,
                          text=True, timeout=60,
                          check=False)
    check(done.returncode == 0, done.stderr)
    made = json.loads(done.stdout)
    # AvailableJobSetting: keys, types, choices; and what the job sets is there
    kinds = {"string": str, "int32": int, "float": float, "bool": bool}
    rows = {s["key"]: s for s in made["type"]["settings"]}
    for row in rows.values():
        check(set(row) <= {"key", "type", "subtype", "choices", "propargs", "description", "label", "default", "eval",
                           "evalInfo", "visible",
                           "required", "editable"} and row["type"] in kinds and row.get("subtype", "dir_path") in
              ("file_path", "dir_path", "file_name", "hashed_file_path") and row.get("visible", "visible") in
              ("visible", "hidden", "submission", "web"), f"{row}")
    check(made["type"]["label"] and set(job["settings"]) == set(rows), f"{job['settings']}")
    for key, value in job["settings"].items():
        check(isinstance(value, kinds[rows[key]["type"]]) and value in rows[key].get("choices", [value]),
              f"{key}: {value}")
    tasks = {t["name"]: t for t in made["tasks"]}
    check(list(tasks) == [f"{what}-{i}" for i in range(3) for what in ("bake", "export")] + ["report"],
          f"{list(tasks)}")
    check(tasks["export-1"]["needs"] == ["bake-1"] and tasks["report"]["needs"] == ["export-0", "export-1", "export-2"],
          f"{tasks}")
    for task in tasks.values():
        command = task["commands"][0]
        check(task["type"] == "misc" and command["name"] == "exec"
              and all(isinstance(a, str) for a in command["parameters"]["args"]), f"{task}")
        ran = subprocess.run([command["parameters"]["exe"], *command["parameters"]["args"]], capture_output=True,
                             text=True, timeout=100,
                             check=False)
        check(ran.returncode == 0, f"{command}: {ran.stderr}")
    check(os.path.exists(path + "/report/contact.png"), "nothing came of it")


def one_description():
    """Options are kept for the next engine; files say what was asked for; strange paths are one word."""
    path = small("it's a $(name)", vary=("friction=0.1,0.2",))
    check(run("submit", path, "--engine", "slurm", "--write-only", folder("sl"), "--cpus", 3, "--minutes", 30,
              "--memory", 500, "--partition",
              "cloth", "--export", "obj").returncode == 0, "slurm")
    check(run("submit", path, "--engine", "local", "--write-only", folder("lo")).returncode == 0, "local")
    kept = json.load(open(path + "/farm.json", encoding="utf-8"))
    check((kept["cpus"], kept["minutes"], kept["memory_mb"], kept["partition"], kept["export"]) == (3, 30, 500, "cloth",
                                                                                                    "obj"), f"{kept}")
    text = {name: open(folder("sl") + "/" + name, encoding="utf-8").read() for name in ("bake.sbatch", "export.sbatch",
                                                                                        "report.sbatch", "submit.sh")}
    for line in ("--array=0-1", "--requeue", "--cpus-per-task=3", "--time=30", "--mem=500M", "--partition=cloth",
                 "--signal=B:USR1@90"):
        check(f"#SBATCH {line}" in text["bake.sbatch"], f"{line} is missing")
    check("--dependency=aftercorr:$bake" in text["submit.sh"] and "--export obj" in text["export.sbatch"],
          text["submit.sh"])
    for name in list(text) + ["../lo/run.sh"]:
        done = subprocess.run(["bash", "-n", folder("sl") + "/" + name], capture_output=True, text=True, check=False)
        check(done.returncode == 0, f"{name}: {done.stderr}")
    done = subprocess.run([folder("lo") + "/run.sh"], capture_output=True, text=True, timeout=100, check=False)
    check(done.returncode == 0 and "2 of 2" in done.stdout and frames_in(path_of(path, 1, ".h5")) == 6,
          done.stdout + done.stderr)


TESTS = (plans, mistakes, by_index, from_jobs, long_frames, one_writer, lost_machine, full_disk, slow_disk, processors,
         report,
         local_queue, openjd, flamenco,
         one_description)


def main():
    global failed
    os.environ.update(OMP_WAIT_POLICY="passive")
    for test in TESTS:
        if len(sys.argv) > 1 and not any(name in test.__name__ for name in sys.argv[1:]):
            continue
        began = time.time()
        try:
            test()
        except Exception:
            failed += 1
            print(f"FAILED {test.__name__} ended early")
            traceback.print_exc(file=sys.stdout)
        print(f"-- {test.__name__} {time.time() - began:.1f} s", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    sys.exit(1 if failed else 0)


main()
