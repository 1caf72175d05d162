#!/usr/bin/python3
"""A bake and its cache from outside: killed at random, resumed, changed in the middle, locked, damaged, described for
ParaView, stored with a stated error.

    test_bake_cache.py [NAME...]       TOILE names the program (build/toile)

TOILE_KILLS is how often a bake is killed (6; the bar is 200). Ends with `N passed, M failed`."""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import xml.etree.ElementTree as ElementTree

import h5py
import numpy

from program import ROOT, Skip, TOILE, fails, main, ok, run, tests_of

DATA = os.path.join(ROOT, "tests", "data")
os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"


# ---- helpers ----

def scene(folder, name="drape", frames=(1, 12), resolution=11, **more):
    content = {
        "toile": 1, "name": name, "fps": 24, "frames": list(frames), "resolution": resolution,
        "garments": [{"name": "cloth", "fabric": "cotton", "grid": {"size": [0.6, 0.6]}, "place": {"origin": [0, 0, 0.22]}}],
        "colliders": [{"name": "ball", "shape": "sphere", "radius": 0.2,
                       "motion": {"keys": [{"frame": 1, "origin": [0, 0, 0]}, {"frame": 9, "origin": [0.05, 0, 0]}]}}],
        "pins": [{"garment": "cloth", "select": {"corners": ["u0v0"]}}],
    }
    content.update(more)
    path = os.path.join(folder, name + ".json")
    with open(path, "w") as file:
        json.dump(content, file)
    return path


def bake(path, cache, *args):
    return ok("bake", path, "-o", cache, "--progress", "none", "--threads", "1", *args)


def frames_of(cache):
    done = run("verify", cache, "--json")
    assert done.returncode in (0, 4), done.stderr
    return [(f["frame"], f["state_hash"], f["checksum"]) for f in json.loads(done.stdout)["frames"]]


def info(cache):
    return json.loads(ok("info", cache, "--json").stdout)


def attributes(cache):
    with h5py.File(cache, "r", libver="latest", swmr=True) as file:
        return {k: (v.decode() if isinstance(v, bytes) else v) for k, v in file.attrs.items()}


def leftovers(folder, *known):
    return [n for n in os.listdir(folder) if ".tmp" in n or ".new" in n or ".lock" in n or ".redo" in n]


# ---- killed ----

def test_kills(folder):
    """Killed at any instant: no finished frame is lost, and the resumed bake has the bits of one that was not."""
    times = int(os.environ.get("TOILE_KILLS", "6"))
    path = scene(folder, frames=(1, 30), resolution=17)
    whole, cache = os.path.join(folder, "whole.h5"), os.path.join(folder, "a.h5")
    began = time.monotonic()
    bake(path, whole)
    span = time.monotonic() - began
    wanted, chance, kills, resumes, seen = frames_of(whole), random.Random(4711), 0, 0, set()
    while kills < times:
        for name in os.listdir(folder):
            if name.startswith("a.h5"):
                os.remove(os.path.join(folder, name))
        first = True
        while True:
            arguments = [TOILE, "bake", path, "-o", cache, "--progress", "json", "--threads", "1"]
            if not first:
                arguments.append("--resume")
            process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            if kills < times:
                try:
                    process.wait(chance.uniform(0, 1.1 * span))
                except subprocess.TimeoutExpired:
                    process.kill()
                    kills += 1
            out, text = process.communicate()
            told = [json.loads(line) for line in out.splitlines() if line.endswith("}")]
            told = [e["frame"] for e in told if e["event"] == "frame"]
            if process.returncode == 0:
                break
            assert process.returncode == -signal.SIGKILL, text
            first = not os.path.exists(cache) or not os.path.exists(cache + ".state")
            if os.path.exists(cache):
                done = info(cache)["frames"]
                assert not told or done >= told[-1], (done, told)
                assert frames_of(cache) == wanted[:done] if done else True
                seen.add(done)
            resumes += not first
        assert frames_of(cache) == wanted
    print("  killed %d times (%d resumed), with %d different numbers of frames" % (kills, resumes, len(seen)))
    shutil.rmtree(folder)
    os.mkdir(folder)


def test_kill_while_replacing(folder):
    """The same where frames are being replaced: the cache is the old one or the new one, never less."""
    path = scene(folder, frames=(1, 24), resolution=15)
    old, cache = os.path.join(folder, "old.h5"), os.path.join(folder, "a.h5")
    change = ["--set", "settings.gravity=[0,0,-5]"]
    bake(path, cache)
    shutil.copy(cache, old)
    before, stopped = frames_of(cache), 0
    for frame in (8, 9, 12, 15, 20, 23, 99):
        process = subprocess.Popen([TOILE, "bake", path, "-o", cache, "--progress", "json", "--threads", "1", "--resume",
                                    "--frames", "8-24", *change], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "frame" and event["frame"] >= frame:
                process.kill()
                break
        _, text = process.communicate()
        stopped += process.returncode == -signal.SIGKILL
        assert process.returncode in (0, -signal.SIGKILL), text
        now = frames_of(cache)
        assert len(now) == 24 and (now == before or now[:7] == before[:7]), (len(now), now == before)
        assert process.returncode == 0 or frame > 12 or now == before, frame
    assert process.returncode == 0 and stopped >= 3, stopped
    assert now[:7] == before[:7] and now[-1] != before[-1]
    # As it comes out without being killed.
    quiet = os.path.join(folder, "b.h5")
    bake(path, quiet)
    bake(path, quiet, "--resume", "--frames", "8-24", *change)
    assert frames_of(quiet) == now
    bake(path, cache, "--resume", *change)
    assert not leftovers(folder), leftovers(folder)


# ---- going on ----

def test_header_follows(folder):
    path, cache = scene(folder), os.path.join(folder, "a.h5")
    bake(path, cache, "--frames", "1-4")
    assert attributes(cache)["last_frame"] == 4 and info(cache)["complete"]
    bake(path, cache, "--frames", "1-6", "--resume")
    assert attributes(cache)["last_frame"] == 6 and info(cache)["frames"] == 6
    before = attributes(cache)
    bake(path, cache, "--resume", "--force", "--set", "settings.time_step=0.002")
    after = attributes(cache)
    assert after["last_frame"] == 12 and after["fingerprint"] != before["fingerprint"]
    assert json.loads(after["settings"])["settings"]["time_step"] == 0.002
    # And so the changed scene is the scene of the bake from now on.
    assert "complete already" in ok("bake", path, "-o", cache, "--resume", "--set", "settings.time_step=0.002").stderr
    fails(3, "bake", path, "-o", cache, "--resume", "--frames", "1-14", says="settings.time_step")
    whole = os.path.join(folder, "whole.h5")
    bake(path, whole, "--frames", "1-6")
    assert frames_of(cache)[:6] == frames_of(whole)


def test_start_frame(folder):
    path, cache = scene(folder, frames=(1, 20)), os.path.join(folder, "a.h5")
    bake(path, cache)
    before = frames_of(cache)
    bake(path, cache, "--resume", "--frames", "9-20")  # nothing changed: the same frames come out
    assert frames_of(cache) == before
    fails(3, "bake", path, "-o", cache, "--resume", "--set", "settings.gravity=[0,0,-5]",
          says=["settings.gravity", "--force", "--frames N-20"])
    done = ok("bake", path, "-o", cache, "--resume", "--frames", "9-20", "--set", "settings.gravity=[0,0,-5]")
    assert "settings.gravity" in done.stderr
    after = frames_of(cache)
    assert len(after) == 20 and after[:8] == before[:8] and not set(after[8:]) & set(before[8:])
    assert not leftovers(folder), leftovers(folder)
    fails(3, "bake", path, "-o", cache, "--resume", "--frames", "23-25", "--set", "settings.gravity=[0,0,-5]",
          says="--frames 21-25")


def test_old_frames_stay(folder):
    path, cache = scene(folder, frames=(1, 40), resolution=21), os.path.join(folder, "a.h5")
    change = ["--set", "settings.gravity=[0,0,-5]"]
    bake(path, cache)
    before = frames_of(cache)
    process = subprocess.Popen([TOILE, "bake", path, "-o", cache, "--progress", "json", "--threads", "1", "--resume",
                                "--frames", "5-40", *change], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "frame" and event["frame"] >= 10:
            break
    process.send_signal(signal.SIGSTOP)
    assert frames_of(cache) == before, "old frames are gone while new ones are written"
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    process.stdout.read()
    text = process.stderr.read()
    assert process.wait(60) == 75 and "stay until" in text and "--resume" in text, text
    assert frames_of(cache) == before and os.path.exists(cache + ".redo")
    bake(path, cache, "--resume", *change)
    after = frames_of(cache)
    assert len(after) == 40 and after[:4] == before[:4] and after[4] != before[4] and not leftovers(folder)
    bake(path, cache, "--resume", *change)


def test_changed_file_is_named(folder):
    mesh, path = os.path.join(folder, "sheet.obj"), os.path.join(folder, "s.json")
    text = "v 0 0 1\nv 1 0 1\nv 0 1 1\nv 1 1 1\nf 1 2 4\nf 1 4 3\n"
    with open(mesh, "w") as file:
        file.write(text)
    with open(path, "w") as file:
        json.dump({"toile": 1, "frames": [1, 6], "garments": [{"obj": "sheet.obj", "uv": "flat", "subdivide": 2}]}, file)
    cache = os.path.join(folder, "a.h5")
    bake(path, cache, "--frames", "1-3")
    with open(mesh, "w") as file:
        file.write(text.replace("v 1 1 1", "v 1 1.01 1"))
    fails(3, "bake", path, "-o", cache, "--resume", says=["the content of sheet.obj", "--force"])
    with open(mesh, "w") as file:
        file.write(text)
    bake(path, cache, "--resume")


def test_damaged_checkpoint(folder):
    path, cache = scene(folder, frames=(1, 40), resolution=25), os.path.join(folder, "a.h5")
    whole = os.path.join(folder, "whole.h5")
    bake(path, whole)
    bake(path, cache, "--frames", "1-20")
    bake(path, cache, "--frames", "1-30", "--resume")
    assert [n for n in os.listdir(folder) if n.startswith("a.h5.state-")], os.listdir(folder)
    with open(cache + ".state", "r+b") as file:
        file.seek(100)
        file.write(b"garbage")
    bake(path, cache, "--resume")
    assert frames_of(cache) == frames_of(whole)


# ---- locks ----

def lock_text(host, boot, pid, start=0):
    return "toile lock 1\nhost %s\nboot %s\npid %d\nstart %d\nsince 1700000000\n" % (host, boot, pid, start)


def boot_of():
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip() + "/" + os.readlink("/proc/self/ns/pid")


def test_locks(folder):
    path, cache = scene(folder, frames=(1, 400), resolution=15), os.path.join(folder, "a.h5")
    process = subprocess.Popen([TOILE, "bake", path, "-o", cache, "--progress", "json", "--threads", "1"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if '"frame"' in line:
            break
    fails(5, "bake", path, "-o", cache, says=["another process is writing it", "process %d" % process.pid])
    fails(5, "bake", path, "-o", cache, "--resume", says="process %d" % process.pid)
    with open(cache + ".lock") as file:
        assert "host %s" % socket.gethostname() in file.read()
    process.kill()
    process.communicate()
    assert os.path.exists(cache + ".lock")
    count = info(cache)["frames"]
    bake(path, cache, "--resume", "--frames", "1-%d" % (count + 2))  # a dead one's lock is in nobody's way
    assert not os.path.exists(cache + ".lock")

    lock = cache + ".lock"
    with open(lock, "w") as file:  # held elsewhere, and touched just now
        file.write(lock_text("otherhost", "elsewhere", 1))
    fails(5, "bake", path, "-o", cache, says="on otherhost")
    os.utime(lock, (time.time() - 30,) * 2)
    fails(5, "bake", path, "-o", cache, says="on otherhost")
    os.utime(lock, (time.time() - 90,) * 2)
    bake(path, cache, "--frames", "1-3")
    with open(lock, "w") as file:  # a process number that another process has by now
        file.write(lock_text(socket.gethostname(), boot_of(), os.getpid(), 1))
    bake(path, cache, "--frames", "1-3")
    with open("/proc/self/stat") as file:
        start = int(file.read().rsplit(")", 1)[1].split()[19])
    with open(lock, "w") as file:
        file.write(lock_text(socket.gethostname(), boot_of(), os.getpid(), start))
    fails(5, "bake", path, "-o", cache, says="process %d" % os.getpid())
    os.remove(lock)


def test_lock_taken_over(folder):
    """A writer that slept while another took its cache must not go on writing."""
    path, cache = scene(folder, frames=(1, 20000), resolution=9), os.path.join(folder, "a.h5")
    process = subprocess.Popen([TOILE, "bake", path, "-o", cache, "--progress", "json", "--threads", "1"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in process.stdout:
        if '"event":"frame"' in line: # on disk; the start is told of before
            break
    with open(cache + ".lock.other", "w") as file:
        file.write(lock_text("otherhost", "elsewhere", 1))
    os.rename(cache + ".lock.other", cache + ".lock")
    process.stdout.read()
    text = process.stderr.read()
    assert process.wait(60) == 5 and "took" in text, text
    assert os.path.exists(cache + ".lock")  # the other's
    os.remove(cache + ".lock")
    assert info(cache)["frames"] >= 1


# ---- smaller, open, damaged ----

def test_position_error(folder):
    path = scene(folder, frames=(1, 12), resolution=41)
    exact, rough = os.path.join(folder, "exact.h5"), os.path.join(folder, "rough.h5")
    bake(path, exact)
    bake(path, rough, "--position-error", "1e-4", "--frames", "1-6")
    bake(path, rough, "--resume")
    fails(3, "bake", path, "-o", rough, "--resume", "--position-error", "1e-3", says="one")
    with h5py.File(exact) as a, h5py.File(rough) as b:
        error, per_second = b.attrs["position_error"], b.attrs["velocity_error"]
        assert 2.5e-5 < error <= 1e-4 and error * 12 < per_second <= 1e-4 * 24 and "position_error" not in a.attrs
        x, y = (f["garments/cloth/positions"][:].astype(float) for f in (a, b))
        assert 0 < abs(x - y).max() <= error + 1e-7 * abs(x).max()
        u, v = (f["garments/cloth/velocities"][:].astype(float) for f in (a, b))
        assert 0 < abs(u - v).max() <= per_second + 1e-6 * abs(u).max()
        assert (a["frames/state_hash"][:] == b["frames/state_hash"][:]).all()
        sizes = [sum(f["garments/cloth/" + n].id.get_storage_size() for n in ("positions", "velocities")) for f in (a, b)]
    assert run("verify", rough).returncode in (0, 4)
    assert sizes[1] < 0.6 * sizes[0], sizes
    print("  %.2f of the size at 0.1 mm" % (sizes[1] / sizes[0]))


def xdmf_frames(path):
    """What an XDMF reader makes of it: {garment: (triangles, panels)}, [(time, {garment: (positions, velocities)})]."""
    tree = ElementTree.parse(path)
    folder, files, fixed, frames = os.path.dirname(path), {}, {}, []

    def values(item):
        if item.get("ItemType") == "HyperSlab":
            slab, source = list(item)
            start, stride, count = numpy.array(slab.text.split(), int).reshape(3, 3)
            assert (stride == 1).all()
            data = values(source)
            return data[tuple(slice(s, s + c) for s, c in zip(start, count))].reshape(dims(item))
        name, where = item.text.strip().split(":", 1)
        name = os.path.join(folder, name)
        file = files.setdefault(name, h5py.File(name, "r"))
        data = file[where]
        assert data.shape == dims(item) or (len(data.shape) == 3 and data.shape == dims(item)), (data.shape, dims(item))
        return data[:]

    def dims(item):
        return tuple(int(n) for n in item.get("Dimensions").split())

    top = tree.getroot().find("Domain/Grid")
    assert top.get("CollectionType") == "Temporal"
    for grid in top.findall("Grid"):
        parts = {}
        for garment in grid.findall("Grid"):
            name, topology = garment.get("Name"), garment.find("Topology")
            if topology.get("Reference") is None:
                fixed[name] = values(topology.find("DataItem"))
            attributes = {a.get("Name"): values(a.find("DataItem")) for a in garment.findall("Attribute")}
            parts[name] = (values(garment.find("Geometry/DataItem")), attributes["velocity"], attributes["panel"])
        frames.append((float(grid.find("Time").get("Value")), parts))
    for file in files.values():
        file.close()
    return fixed, frames


def test_xdmf(folder):
    garments = [{"name": "a", "grid": {"size": [0.5, 0.5]}, "place": {"origin": [0, 0, 1]}},
                {"name": "b & <c>.%", "grid": {"size": [0.3, 0.2]}, "place": {"origin": [2, 0, 1]}}]
    path, cache = scene(folder, frames=(3, 8), garments=garments, pins=[], colliders=[]), os.path.join(folder, "a.h5")
    bake(path, cache)
    other = os.path.join(folder, "part.xmf")
    ok("export", cache, "-o", other, "--frames", "5-6", "--progress", "none")
    for file, first, count in ((cache + ".xmf", 0, 6), (other, 2, 2)):
        fixed, frames = xdmf_frames(file)
        assert len(frames) == count
        with h5py.File(cache) as h5:
            groups = {g.attrs["name"].decode(): g for g in h5["garments"].values()}
            assert set(groups) == set(fixed) == {"a", "b & <c>.%"}
            for name, group in groups.items():
                assert (fixed[name] == group["triangles"][:]).all()
                for i, (t, parts) in enumerate(frames):
                    assert t == h5["frames/time"][first + i]
                    assert (parts[name][0] == group["positions"][first + i]).all()
                    assert (parts[name][1] == group["velocities"][first + i]).all()
    fails(2, "export", cache, "-o", other, "--fps", "30")


def test_recover(folder):
    path, cache = scene(folder, frames=(1, 30), resolution=15), os.path.join(folder, "a.h5")
    bake(path, cache)
    before = frames_of(cache)
    assert "nothing is damaged" in ok("recover", cache).stdout
    with open(cache, "rb") as file:
        sound = file.read()
    with h5py.File(cache) as file:
        chunk = file["garments/cloth/positions"].id.get_chunk_info_by_coord((11, 0, 0))
        tail = file["garments/cloth/velocities"].id.get_chunk_info_by_coord((20, 0, 0)).byte_offset

    # One frame in the middle: two runs.
    bad = os.path.join(folder, "bad.h5")
    with open(bad, "wb") as file:
        file.write(sound)
        file.seek(chunk.byte_offset + 40)
        file.write(b"\0" * 30)
    out = run("recover", bad)
    assert out.returncode == 4 and "29 of them good" in out.stdout and "frames 1 to 11" in out.stdout, out.stdout
    shutil.copy(cache + ".state", bad + ".state")
    saved = os.path.join(folder, "saved.h5")
    ok("recover", bad, "-o", saved)
    assert frames_of(saved) == before[:11]
    assert frames_of(os.path.join(folder, "saved_13-30.h5")) == before[12:]
    fails(5, "recover", bad, "-o", saved, says="left alone")

    # Cut off: what a copy that was broken off leaves. What is saved can be resumed from an earlier checkpoint.
    cut = os.path.join(folder, "cut.h5")
    with open(cut, "wb") as file:
        file.write(sound[:tail])
    for name in os.listdir(folder):
        if name.startswith("a.h5.state"):
            shutil.copy(os.path.join(folder, name), os.path.join(folder, "cut" + name[1:]))
    saved = os.path.join(folder, "from_cut.h5")
    ok("recover", cut, "-o", saved)
    kept = frames_of(saved)
    assert 15 <= len(kept) <= 20 and kept == before[:len(kept)], len(kept)
    bake(path, saved, "--resume")
    assert frames_of(saved) == before

    # The header's checksum and the commits: the frames do not need them.
    with h5py.File(cache, "r+") as file:
        file.attrs["header_checksum"] = numpy.uint64(1)
        file["frames/frame"][7] = -5
    fails(3, "verify", cache)
    ok("recover", cache, "-o", os.path.join(folder, "third.h5"))
    assert frames_of(os.path.join(folder, "third.h5")) == before

    with open(bad, "wb") as file:
        file.write(sound[:700])
    fails(3, "recover", bad, says="nothing can be saved")
    fails(5, "recover", os.path.join(folder, "none.h5"), says="nothing can be saved")


def test_small_disk(folder):
    """A disk of 3 MB: a clear error, every frame that was told of readable, and the same bits once there is room."""
    mount = os.path.join(folder, "disk")
    os.mkdir(mount)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", mount], capture_output=True).returncode:
        raise Skip("a tmpfs cannot be mounted here (needs root)")
    try:
        path, cache = scene(folder, frames=(1, 60), resolution=61), os.path.join(mount, "a.h5")
        done = run("bake", path, "-o", cache, "--progress", "json", "--threads", "1")
        told = [json.loads(l)["frame"] for l in done.stdout.splitlines() if '"event": "frame"' in l or '"event":"frame"' in l]
        assert done.returncode == 5 and "free some disk space" in done.stderr, done.stderr
        count = info(cache)["frames"]
        assert count >= 2 and (not told or count >= told[-1]), (count, told)
        subprocess.run(["mount", "-o", "remount,size=64m", mount], check=True)
        bake(path, cache, "--resume")
        whole = os.path.join(folder, "whole.h5")
        bake(path, whole)
        assert frames_of(cache) == frames_of(whole)
    finally:
        subprocess.run(["umount", mount], check=True)


def test_links(folder):
    """A link as output is followed, also to a file that is not there yet; what stands beside a cache stands there too."""
    path = scene(folder)
    disk = os.path.join(folder, "disk")
    os.mkdir(disk)
    for name in ("a.h5", "a.abc"):
        os.symlink(os.path.join("disk", name), os.path.join(folder, name))
    cache = os.path.join(folder, "a.h5")
    bake(path, cache, "--frames", "1-4")
    bake(path, cache, "--resume")
    ok("export", cache, "-o", os.path.join(folder, "a.abc"), "--progress", "none")
    assert os.path.islink(cache) and os.path.islink(os.path.join(folder, "a.abc"))
    assert {"a.h5", "a.h5.state", "a.h5.xmf", "a.abc"} <= set(os.listdir(disk)), os.listdir(disk)
    assert len(frames_of(cache)) == 12
    assert not [n for n in os.listdir(folder) if n.startswith("a.h5.")], os.listdir(folder)


def test_vanished(folder):
    """Deleted, moved or taken away with its folder while it is baked: said as it is; a deleted one is saved and goes on."""
    path, whole = scene(folder, frames=(1, 60), resolution=31), os.path.join(folder, "whole.h5")
    bake(path, whole)
    for how in ("deleted", "moved", "folder"):
        inside = os.path.join(folder, how)
        os.mkdir(inside)
        cache = os.path.join(inside, "a.h5")
        process = subprocess.Popen([TOILE, "bake", path, "-o", cache, "--progress", "json", "--threads", "1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in process.stdout:
            if '"frame":5,' in line:
                break
        if how == "deleted":
            os.remove(cache)
        elif how == "moved":
            os.rename(cache, cache + ".away")
        else:
            while os.path.exists(inside):  # new files may come while it goes
                shutil.rmtree(inside, ignore_errors=True)
        _, text = process.communicate()
        assert process.returncode == 5, (how, process.returncode, text)
        if how == "folder":
            assert "cannot be saved" in text and "are kept" not in text, text
            continue
        assert ("its frames were saved to" if how == "deleted" else "was moved") in text, text
        if how == "moved":
            assert "are kept" not in text, text
            os.rename(cache + ".away", cache)
        assert info(cache)["frames"] >= 5
        bake(path, cache, "--resume")
        assert frames_of(cache) == frames_of(whole)


def test_released_versions(folder):
    """Caches of every format version that was released stay readable; checkpoints of the same."""
    with open(os.path.join(DATA, "cache_v1.json")) as file:
        wanted = json.load(file)
    cache = os.path.join(DATA, "cache_v1.h5")
    about = info(cache)
    assert about["frames"] == len(wanted["frames"]) and about["scene"] == wanted["scene"]
    assert [list(f) for f in frames_of(cache)] == wanted["frames"]
    out = os.path.join(folder, "f.obj")
    ok("export", cache, "-o", out, "--frames", wanted["frames"][-1][0], "--progress", "none")
    with open(out) as file:
        lines = [line.split() for line in file if line.startswith("v ")]
    assert [[float(x) for x in line[1:]] for line in lines[:4]] == wanted["first_vertices"]


if __name__ == "__main__":
    main(tests_of(globals()))
