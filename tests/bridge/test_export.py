#!/usr/bin/python3
"""`toile export` and `toile info` from outside: every format is read back by something that Toile did not write, and
compared with the numbers of the OBJ export. An export that is stopped or fails leaves nothing behind.

    test_export.py [NAME...]       TOILE names the program (build/toile)

Alembic is read with py_ogawa.py of the shared folder ($TOILE_SHARED, else ../shared from the repository root), which
needs numpy; point caches are read here and, if there is a Blender, by its Mesh Cache modifier.

Ends with `N passed, M failed`."""
import fcntl
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from program import SHARED, Skip, TOILE, fails, main, ok, run, tests_of

FIRST, LAST, FPS = 3, 12, 24
FRAMES = range(FIRST, LAST + 1)
CLOTH, SIDE = "cloth", "side.piece 2"  # the second one needs cleaning
SIDE_CLEAN = "side_piece_2"


# ---- helpers ----

def export(cache, out, *args):
    return ok("export", cache, "-o", out, "--progress", "none", *args)


def info(path):
    return json.loads(ok("info", path, "--json").stdout)


def bake(folder, name="c", frames=(FIRST, LAST), resolution=9, garments=None, colliders=None):
    content = {
        "toile": 1, "name": "drape; a=b", "fps": FPS, "frames": list(frames), "resolution": resolution,
        "garments": garments or [
            {"name": CLOTH, "fabric": "cotton", "grid": {"size": [0.6, 0.6]}, "place": {"origin": [0, 0.1, 0.22]}},
            {"name": SIDE, "grid": {"size": [0.2, 0.3], "resolution": 4}, "place": {"origin": [1, 0.2, 0.5]}}],
        "colliders": colliders if colliders is not None else [
            {"name": "ball", "shape": "sphere", "radius": 0.2, "place": {"origin": [0, 0, 0]},
             "motion": {"keys": [{"frame": 1, "origin": [0, 0, 0]}, {"frame": 9, "origin": [0.05, 0, 0]}]}},
            {"name": "floor", "shape": "plane", "place": {"origin": [0, 0, -1]}}],
    }
    path, cache = os.path.join(folder, name + ".json"), os.path.join(folder, name + ".h5")
    with open(path, "w") as file:
        json.dump(content, file)
    ok("bake", path, "-o", cache, "--progress", "none", "--threads", "1")
    return cache


shared_folder = None


def main_cache():
    """The bake that most tests read, made once."""
    global shared_folder
    if not shared_folder:
        shared_folder = tempfile.TemporaryDirectory()
        bake(shared_folder.name)
    return os.path.join(shared_folder.name, "c.h5")


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def obj(path):
    """{object: (vertices, faces, uvs per corner, panels per face)}; faces count from 0 in their object."""
    result, base, name = {}, 0, None
    uvs = []
    with open(path) as file:
        for line in file:
            words = line.split()
            if not words:
                continue
            if words[0] in ("o", "g") and (words[0] == "o" or name is None or not result[name][4]):
                if name is not None:
                    base += len(result[name][0])
                name = words[1]
                result[name] = ([], [], [], [], words[0] == "o")
            elif words[0] == "v":
                result[name][0].append(tuple(float(x) for x in words[1:4]))
            elif words[0] == "vt":
                uvs.append((float(words[1]), float(words[2])))
            elif words[0] == "g":
                panel = words[1]
            elif words[0] == "f":
                corners = [c.split("/") for c in words[1:]]
                result[name][1].append([int(c[0]) - 1 - base for c in corners])
                if result[name][4]:
                    result[name][2].append([uvs[int(c[1]) - 1] for c in corners])
                    result[name][3].append(panel)
    return result


def obj_frames(folder, *args):
    """Per frame, the garments as the OBJ export has them."""
    export(main_cache(), os.path.join(folder, "ref.obj"), *args)
    return {f: obj(os.path.join(folder, "ref_%04d.obj" % f)) for f in FRAMES}


def read_pc2(path):
    with open(path, "rb") as file:
        data = file.read()
    mark, version, points, start, rate, samples = struct.unpack_from("<12siiffi", data)
    assert mark == b"POINTCACHE2\0" and version == 1, (mark, version)
    assert len(data) == 32 + 12 * points * samples, len(data)
    values = struct.unpack_from("<%df" % (3 * points * samples), data, 32)
    return start, rate, frames_from(values, points, samples)


def read_mdd(path):
    with open(path, "rb") as file:
        data = file.read()
    samples, points = struct.unpack_from(">ii", data)
    assert len(data) == 8 + 4 * samples + 12 * points * samples, len(data)
    times = struct.unpack_from(">%df" % samples, data, 8)
    values = struct.unpack_from(">%df" % (3 * points * samples), data, 8 + 4 * samples)
    return times, frames_from(values, points, samples)


def frames_from(values, points, samples):
    return [[tuple(values[3 * (s * points + p):][:3]) for p in range(points)] for s in range(samples)]


def floats(points):
    return [tuple(f32(x) for x in p) for p in points]


def y_up(points):
    return [(x, z, -y) for x, y, z in points]


def leftovers(folder):
    return sorted(name for name in os.listdir(folder) if name.endswith(".tmp"))


def oracle():
    path = os.path.join(SHARED, "tools", "py_ogawa.py")
    if not os.path.exists(path):
        raise Skip("there is no %s (set TOILE_SHARED)" % path)
    spec = importlib.util.spec_from_file_location("py_ogawa", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise Skip("py_ogawa.py: %s; run this with a python3 that has numpy" % error)
    return module


# ---- point caches ----

def test_pc2(folder):
    ref, out = obj_frames(folder), os.path.join(folder, "o.pc2")
    export(main_cache(), out)
    assert sorted(n for n in os.listdir(folder) if n.endswith(".pc2")) == ["o_cloth.pc2", "o_%s.pc2" % SIDE_CLEAN]
    for garment, path in ((CLOTH, "o_cloth.pc2"), (SIDE.replace(" ", "_"), "o_%s.pc2" % SIDE_CLEAN)):
        start, rate, frames = read_pc2(os.path.join(folder, path))
        assert start == FIRST and rate == 1 and len(frames) == len(FRAMES)
        for f in FRAMES:
            assert frames[f - FIRST] == floats(ref[f][garment][0]), (garment, f)
    export(main_cache(), out, "--garment", CLOTH, "--frames", "5-6", "--up", "y", "--scale", "100")
    start, rate, frames = read_pc2(out)
    assert start == 5 and len(frames) == 2
    expected = [tuple(f32(100 * x) for x in p) for p in y_up(ref[6][CLOTH][0])]
    assert all(abs(a - b) <= 1e-5 for p, q in zip(frames[1], expected) for a, b in zip(p, q))
    about = info(out)
    assert about["kind"] == "pc2" and about["vertices"] == 81 and about["frames"] == about["frames_stored"] == 2
    assert about["complete"] is True and about["first_frame"] == 5 and about["frame_step"] == 1
    low = [min(p[k] for p in frames[0]) for k in range(3)]
    assert all(abs(a - b) < 1e-4 for a, b in zip(about["bounds_first"][0], low)), about
    assert not leftovers(folder)


def test_mdd(folder):
    ref, out = obj_frames(folder), os.path.join(folder, "o.mdd")
    export(main_cache(), out, "--garment", SIDE)
    times, frames = read_mdd(out)
    assert list(times) == [f32(f / FPS) for f in FRAMES], times
    for f in FRAMES:
        assert frames[f - FIRST] == floats(ref[f][SIDE.replace(" ", "_")][0]), f
    about = info(out)
    assert about["kind"] == "mdd" and about["vertices"] == len(frames[0]) and about["frames"] == len(FRAMES)
    assert about["fps"] == FPS and abs(about["first_time"] - FIRST / FPS) < 1e-7 and about["complete"] is True
    assert "complete" in ok("info", out).stdout
    export(main_cache(), out, "--garment", CLOTH, "--frames", "7")
    times, frames = read_mdd(out)
    assert len(times) == 1 and frames[0] == floats(ref[7][CLOTH][0])
    assert info(out)["fps"] is None


def test_truncated_point_caches(folder):
    for ending, header in (("pc2", 32), ("mdd", 8 + 4 * len(FRAMES))):
        out = os.path.join(folder, "o." + ending)
        export(main_cache(), out, "--garment", CLOTH)
        with open(out, "rb") as file:
            data = file.read()
        frame = 12 * 81
        for size, stored in ((len(data) - 1, len(FRAMES) - 1), (header + 3 * frame, 3), (header, 0)):
            with open(out, "wb") as file:
                file.write(data[:size])
            about = info(out)
            assert about["complete"] is False and about["frames_stored"] == stored, (size, about)
            assert "NOT COMPLETE" in ok("info", out).stdout
        for size in range(0 if ending == "mdd" else 12, header):
            with open(out, "wb") as file:
                file.write(data[:size])
            fails(3, "info", out)
        with open(out, "wb") as file:
            file.write(data + b"more")
        about = info(out)
        assert about["complete"] is False and about["extra_bytes"] == 4


def test_hostile_point_caches(folder):
    for name, data in (
            ("a.pc2", struct.pack("<12siiffi", b"POINTCACHE2\0", 1, 2**31 - 1, 0, 1, 2**31 - 1)),
            ("a.pc2", struct.pack("<12siiffi", b"POINTCACHE2\0", 1, 0, float("nan"), float("inf"), 2**31 - 1)),
            ("a.mdd", struct.pack(">iiff", 2, 0, float("nan"), float("inf"))),
            ("a.mdd", struct.pack(">iiff", 2, 2**31 - 1, 1, 1)),
            ("a.mdd", struct.pack(">iif", 1, 1, 0) + struct.pack(">fff", float("nan"), 1, float("inf")))):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        ok("info", path)
        info(path)
    for name, data in (
            ("a.pc2", struct.pack("<12siiffi", b"POINTCACHE2\0", 1, -1, 0, 1, 1)),
            ("a.pc2", struct.pack("<12siiffi", b"POINTCACHE2\0", 1, 1, 0, 1, -5)),
            ("a.pc2", struct.pack("<12siiffi", b"POINTCACHE2\0", 7, 1, 0, 1, 1)),
            ("a.pc2", b"hello"), ("a.abc", b"hello"), ("a.mdd", b"hello"), ("a.mdd", b""),
            ("a.mdd", struct.pack(">ii", 2**31 - 1, 1)), ("a.mdd", struct.pack(">ii", 1, -1))):
        path = os.path.join(folder, name)
        with open(path, "wb") as file:
            file.write(data)
        fails(3, "info", path, says=name)


# ---- Alembic ----

def meshes(about):
    return {o["path"]: o for o in about["objects"] if "PolyMesh" in o["schema"]}


def test_abc_info(folder):
    ref, out = obj_frames(folder), os.path.join(folder, "o.abc")
    export(main_cache(), out)
    about = info(out)
    version = ok("--version").stdout.split()[1]
    assert about["kind"] == "abc" and about["container"] == "Ogawa" and about["complete"] is True
    assert about["application"] == "Toile " + version and about["units"] == "m" and about["fps"] == FPS
    assert "metres" in about["description"] and "drape" in about["description"]
    assert about["first_frame"] == FIRST and about["last_frame"] == LAST
    assert abs(about["start"] - FIRST / FPS) < 1e-9 and abs(about["end"] - LAST / FPS) < 1e-9
    found = meshes(about)
    side = "/%s/%sShape" % (SIDE_CLEAN, SIDE_CLEAN)
    assert set(found) == {"/cloth/clothShape", side}, set(found)
    cloth = found["/cloth/clothShape"]
    assert cloth["vertices"] == 81 and cloth["faces"] == 128 and cloth["samples"] == len(FRAMES)
    assert cloth["topology"] == "deforming" and cloth["velocities"] and cloth["uvs"] and cloth["fps"] == FPS
    assert {"panel", "Pref"} <= set(cloth["params"])
    for end, frame in (("bounds_first", FIRST), ("bounds_last", LAST)):
        points = y_up(ref[frame][CLOTH][0])
        box = [[min(p[k] for p in points) for k in range(3)], [max(p[k] for p in points) for k in range(3)]]
        assert all(abs(a - b) < 1e-6 for x, y in zip(box, cloth[end]) for a, b in zip(x, y)), (end, box, cloth[end])
    text = ok("info", out).stdout
    assert "81 vertices" in text and "24 per second" in text and "complete" in text
    # Equal input, equal file.
    export(main_cache(), os.path.join(folder, "p.abc"))
    with open(out, "rb") as a, open(os.path.join(folder, "p.abc"), "rb") as b:
        assert a.read() == b.read()
    assert not leftovers(folder)


def check_mesh(archive, path, ref, name, turn, frames, scale=1):
    mesh = archive.top.find(path)
    geom = mesh.props[".geom"]
    assert mesh.md[b"schema"] == b"AbcGeom_PolyMesh_v1", mesh.md
    assert mesh.md[b"schemaObjTitle"] == b"AbcGeom_PolyMesh_v1:.geom"
    positions = geom["P"]
    assert positions.nsamples == len(frames)
    sampling = archive.ts[positions.ts]
    assert sampling.kind == "uniform"
    vertices, faces, uvs, panels, _ = ref[frames[0]][name]
    for i, f in enumerate(frames):
        assert abs(sampling.time(i) - f / FPS) < 1e-9
        points = [tuple(map(float, p)) for p in positions.value(i)]
        expected = [tuple(scale * x for x in p) for p in turn(ref[f][name][0])]
        assert all(abs(a - b) <= 1e-6 * scale for p, q in zip(points, expected) for a, b in zip(p, q)), (name, f)
        box = [float(x) for x in geom[".selfBnds"].value(i).ravel()]
        assert box == [min(p[k] for p in points) for k in range(3)] + [max(p[k] for p in points) for k in range(3)]
    # Faces turn the other way round in a file, and corners with them.
    assert list(geom[".faceCounts"].value(0)) == [3] * len(faces)
    corners = [list(map(int, geom[".faceIndices"].value(0)[3 * t:3 * t + 3])) for t in range(len(faces))]
    order = sorted(range(len(faces)), key=lambda t: tuple(sorted(corners[t])))
    back = sorted(range(len(faces)), key=lambda t: tuple(sorted(faces[t])))
    pairs = [(a, b) for a, b in zip(order, back)]
    for a, b in pairs:
        assert corners[a][::-1] in (faces[b], faces[b][1:] + faces[b][:1], faces[b][2:] + faces[b][:2])
    return mesh, geom, corners, pairs


def test_abc_oracle(folder):
    py, ref, out = oracle(), obj_frames(folder), os.path.join(folder, "o.abc")
    for args, turn in (((), y_up), (("--up", "z"), list)):
        export(main_cache(), out, *args)
        archive = py.Archive(out)
        counts = py.verify(archive)
        assert counts["key_bad"] == counts["hash_bad"] == counts["bits_bad"] == 0, counts
        for name, clean in ((CLOTH, CLOTH), (SIDE.replace(" ", "_"), SIDE_CLEAN)):
            assert archive.top.find(clean).md[b"schema"] == b"AbcGeom_Xform_v3"
            path = "%s/%sShape" % (clean, clean)
            mesh, geom, corners, pairs = check_mesh(archive, path, ref, name, turn, list(FRAMES))
            vertices, faces, uvs, panels, _ = ref[FIRST][name]
            # Topology takes one place, whatever the frames.
            assert len(geom[".faceIndices"].words) == 2 and len(geom["uv"][".vals"].words) == 2
            uv = geom["uv"]
            assert uv.md[b"geoScope"] == b"fvr" and uv.md[b"sourceName"] == b"UVMap"
            values, indices = uv[".vals"].value(0), uv[".indices"].value(0)
            assert len(indices) == 3 * len(faces) and len(values) < len(indices)
            for a, b in pairs:
                for k in range(3):
                    stored = tuple(map(float, values[indices[3 * a + k]]))
                    at = faces[b].index(corners[a][k])
                    assert stored == tuple(map(f32, uvs[b][at])), (stored, uvs[b][at])
            params = geom[".arbGeomParams"]
            panel = params["panel"]
            assert panel.md[b"geoScope"] == b"uni" and len(panel.value(0)) == len(faces)
            pref = params["Pref"]
            assert pref.md[b"geoScope"] == b"vtx" and pref.md[b"interpretation"] == b"vector"
            assert len(pref.value(0)) == len(vertices)
            first = [tuple(map(float, p)) for p in pref.value(0)]
            assert all(abs(a - b) < 1e-6 for p, q in zip(first, turn(vertices)) for a, b in zip(p, q))
            sets = {c.name.decode(): c.props[".faceset"] for c in mesh.children}
            assert len(sets) == len(set(panels))
            assert sorted(int(f) for s in sets.values() for f in s[".faces"].value(0)) == list(range(len(faces)))
            # Velocities are per second: they agree with how far the points go, along the same axes.
            speeds = geom[".velocities"]
            assert speeds.nsamples == len(FRAMES) and speeds.md[b"interpretation"] == b"vector"
            if clean == SIDE_CLEAN:
                before, after = geom["P"].value(4), geom["P"].value(6)
                for v, p, q in zip(speeds.value(5), before, after):
                    path = [float(b - a) * FPS / 2 for a, b in zip(p, q)]
                    assert max(map(abs, path)) > 0.5
                    assert all(abs(float(x) - y) < 0.05 for x, y in zip(v, path)), (v, path)


def test_abc_part(folder):
    py, ref, out = oracle(), obj_frames(folder), os.path.join(folder, "o.abc")
    export(main_cache(), out, "--frames", "5-7", "--garment", CLOTH, "--scale", "100")
    archive = py.Archive(out)
    assert [c.name for c in archive.top.children] == [b"cloth"]
    check_mesh(archive, "cloth/clothShape", ref, CLOTH, y_up, [5, 6, 7], 100)
    about = info(out)
    assert about["units"] == "cm" and about["first_frame"] == 5 and abs(about["start"] - 5 / FPS) < 1e-9


def test_abc_retimed(folder):
    """Another rate and other frame numbers: the same points at other times, faster or slower."""
    py, out, plain = oracle(), os.path.join(folder, "o.abc"), os.path.join(folder, "p.abc")
    export(main_cache(), plain)
    export(main_cache(), out, "--fps", "48", "--offset", "-2")
    a, b = (py.Archive(x).top.find("cloth/clothShape").props[".geom"] for x in (plain, out))
    sampling = py.Archive(out).ts[b["P"].ts]
    assert sampling.kind == "uniform"
    assert all(abs(sampling.time(i) - (FIRST - 2 + i) / 48) < 1e-9 for i in range(2))
    assert (a["P"].value(4) == b["P"].value(4)).all()
    assert abs(2 * a[".velocities"].value(4) - b[".velocities"].value(4)).max() < 1e-6
    assert info(out)["fps"] == 48 and info(out)["first_frame"] == FIRST - 2
    export(main_cache(), os.path.join(folder, "f.obj"), "--frames", "4-5", "--offset", "100")
    assert sorted(n for n in os.listdir(folder) if n.endswith(".obj")) == ["f_0104.obj", "f_0105.obj"]
    for name, words in (("o.pc2", ["--offset", "7"]), ("o.mdd", ["--fps", "12"])):
        export(main_cache(), os.path.join(folder, name), "--garment", CLOTH, *words)
    assert info(os.path.join(folder, "o.pc2"))["first_frame"] == FIRST + 7
    assert abs(info(os.path.join(folder, "o.mdd"))["fps"] - 12) < 1e-3


def test_abc_subframes(folder):
    """Samples within the shutter: at whole frames the cached ones, between them on the cubic, after the last straight on."""
    py, out, plain = oracle(), os.path.join(folder, "o.abc"), os.path.join(folder, "p.abc")
    export(main_cache(), plain)
    export(main_cache(), out, "--subframes", "3", "--shutter", "0.8", "--colliders")
    archive, whole = py.Archive(out), py.Archive(plain)
    counts = py.verify(archive)
    assert counts["key_bad"] == counts["hash_bad"] == counts["bits_bad"] == 0, counts
    a, b = (x.top.find("cloth/clothShape").props[".geom"] for x in (whole, archive))
    sampling, n = archive.ts[b["P"].ts], len(FRAMES)
    assert sampling.kind == "cyclic" and b["P"].nsamples == b[".velocities"].nsamples == 3 * n
    for i in range(n):
        for k in range(3):
            u = 0.4 * k
            assert abs(sampling.time(3 * i + k) - (FIRST + i + u) / FPS) < 1e-9
            x0, v0 = a["P"].value(i).astype(float), a[".velocities"].value(i).astype(float)
            if i + 1 < n:
                x1, v1 = a["P"].value(i + 1).astype(float), a[".velocities"].value(i + 1).astype(float)
                expected = ((2 * u**3 - 3 * u**2 + 1) * x0 + (u**3 - 2 * u**2 + u) * v0 / FPS + (3 * u**2 - 2 * u**3) * x1 +
                            (u**3 - u**2) * v1 / FPS)
            else:
                expected = x0 + u * v0 / FPS
            assert abs(b["P"].value(3 * i + k) - expected).max() < 1e-6, (i, k)
        assert abs(b[".velocities"].value(3 * i) - a[".velocities"].value(i)).max() < 1e-4
    ball = archive.top.find("ball/ballShape").props[".geom"]["P"]
    assert ball.nsamples == n and archive.ts[ball.ts].kind == "uniform"
    fails(2, "export", main_cache(), "-o", out, "--subframes", "0")
    fails(2, "export", main_cache(), "-o", out, "--subframes", "2", "--shutter", "1")
    fails(2, "export", main_cache(), "-o", os.path.join(folder, "o.pc2"), "--subframes", "2", says=".abc")


def test_abc_stretch_and_fabrics(folder):
    py, out = oracle(), os.path.join(folder, "o.abc")
    export(main_cache(), out, "--stretch")
    geom = py.Archive(out).top.find("cloth/clothShape").props[".geom"]
    stretch = geom[".arbGeomParams"]["stretch"]
    assert stretch.md[b"geoScope"] == b"uni" and stretch.nsamples == len(FRAMES)
    assert abs(stretch.value(0)).max() < 1e-5 and 1e-4 < stretch.value(len(FRAMES) - 1).max() < 0.5
    mesh = os.path.join(folder, "two.obj")
    with open(mesh, "w") as file:
        file.write("v 0 0 1\nv 1 0 1\nv 2 0 1\nv 0 1 1\nv 1 1 1\nv 2 1 1\ng left\nf 1 2 5 4\ng right\nf 2 3 6 5\n")
    garment = {"name": "two", "obj": "two.obj", "uv": "flat", "fabric": "cotton", "panels": {"right": {"fabric": "denim"}}}
    cache = bake(folder, "two", (1, 2), garments=[garment], colliders=[])
    export(cache, out)
    sets = {c.name.decode(): [int(f) for f in c.props[".faceset"][".faces"].value(0)]
            for c in py.Archive(out).top.find("two/twoShape").children}
    assert set(sets) == {"left", "right", "material_cotton", "material_denim"}, sets
    assert sets["left"] == sets["material_cotton"] and sets["right"] == sets["material_denim"], sets


def test_abc_as_scene(folder):
    """What was exported is a collider, and a garment, of another scene."""
    out, path = os.path.join(folder, "o.abc"), os.path.join(folder, "s.json")
    export(main_cache(), out, "--garment", CLOTH)
    with open(path, "w") as file:
        json.dump({"toile": 1, "fps": FPS, "frames": [FIRST, LAST],
                   "garments": [{"name": "again", "abc": "o.abc", "place": {"origin": [0, 0, 1]}}],
                   "colliders": [{"name": "old", "shape": "mesh", "abc": "o.abc", "object": "/cloth"}]}, file)
    cache = os.path.join(folder, "s.h5")
    ok("bake", path, "-o", cache, "--progress", "none", "--threads", "1")
    ok("export", cache, "-o", os.path.join(folder, "c.obj"), "--colliders", "--progress", "none")
    ref = obj_frames(folder)
    for f in FRAMES:
        with open(os.path.join(folder, "c_collider_%04d.obj" % f)) as file:
            points = [tuple(map(float, line.split()[1:])) for line in file if line.startswith("v ")]
        assert all(abs(a - b) < 1e-6 for p, q in zip(points, ref[f][CLOTH][0]) for a, b in zip(p, q)), f


def test_abc_colliders(folder):
    out = os.path.join(folder, "o.abc")
    export(main_cache(), out, "--colliders")
    export(main_cache(), os.path.join(folder, "r.obj"), "--colliders", "--frames", "5-6")
    balls = {f: obj(os.path.join(folder, "r_collider_%04d.obj" % f))["ball"] for f in (5, 6)}
    found = meshes(info(out))
    assert set(found) == {"/cloth/clothShape", "/%s/%sShape" % (SIDE_CLEAN, SIDE_CLEAN), "/ball/ballShape",
                          "/floor/floorShape"}, set(found)
    assert found["/ball/ballShape"]["topology"] == "deforming" and found["/floor/floorShape"]["topology"] == "static"
    assert found["/ball/ballShape"]["vertices"] == len(balls[5][0])
    py = oracle()
    archive = py.Archive(out)
    positions = archive.top.find("ball/ballShape").props[".geom"]["P"]
    for f in (5, 6):
        expected = y_up(balls[f][0])
        assert all(abs(float(a) - b) < 1e-6 for p, q in zip(positions.value(f - FIRST), expected) for a, b in zip(p, q))
    assert balls[5][0] != balls[6][0]


def test_obj_axes(folder):
    export(main_cache(), os.path.join(folder, "z.obj"), "--frames", "5", "--colliders")
    export(main_cache(), os.path.join(folder, "y.obj"), "--frames", "5", "--colliders", "--up", "y", "--scale", "2")
    for suffix in ("", "_collider"):
        z, y = obj(os.path.join(folder, "z%s.obj" % suffix)), obj(os.path.join(folder, "y%s.obj" % suffix))
        assert set(z) == set(y)
        for name in z:
            expected = [(2 * a, 2 * b, 2 * c) for a, b, c in y_up(z[name][0])]
            assert all(abs(a - b) < 1e-7 for p, q in zip(y[name][0], expected) for a, b in zip(p, q))
            assert z[name][1] == y[name][1]


def test_same_names(folder):
    """Names that become the same when cleaned stay apart."""
    garments = [{"name": name, "grid": {"size": [0.1, 0.1], "resolution": 3}, "place": {"origin": [i, 0, 0]}}
                for i, name in enumerate(["a b", "a.b", "a_b", "é"])]
    cache = bake(folder, frames=(1, 2), garments=garments, colliders=[])
    export(cache, os.path.join(folder, "o.abc"))
    assert set(meshes(info(os.path.join(folder, "o.abc")))) == {
        "/a_b/a_bShape", "/a_b_2/a_b_2Shape", "/a_b_3/a_b_3Shape", "/é/éShape"}
    export(cache, os.path.join(folder, "o.mdd"))
    assert {n for n in os.listdir(folder) if n.endswith(".mdd")} == {
        "o_a_b.mdd", "o_a_b_2.mdd", "o_a_b_3.mdd", "o_é.mdd"}
    x = [read_mdd(os.path.join(folder, "o_%s.mdd" % n))[1][0][0][0] for n in ("a_b", "a_b_2", "a_b_3", "é")]
    assert all(b - a > 0.9 for a, b in zip(x, x[1:])), x


# ---- hostile archives ----

def test_damaged_abc(folder):
    out, damaged = os.path.join(folder, "o.abc"), os.path.join(folder, "d.abc")
    export(main_cache(), out, "--colliders")
    with open(out, "rb") as file:
        data = file.read()
    codes = []
    dice = random.Random(7)
    for i in range(200):
        bad = bytearray(data)
        if i % 4 == 0:
            bad = bad[:dice.randrange(len(bad))]
        else:
            # The structure is written last.
            at = dice.randrange(len(bad) * (0 if i % 4 == 1 else 9) // 10, len(bad))
            for k in range(at, min(at + dice.choice((1, 8, 40)), len(bad))):
                bad[k] = dice.randrange(256)
        with open(damaged, "wb") as file:
            file.write(bad)
        done = run("info", damaged, "--json")
        codes.append(done.returncode)
        assert done.returncode in (0, 3, 4, 5) and (done.returncode == 0) == (done.stderr == ""), done
        if done.stdout:
            assert (json.loads(done.stdout)["complete"] is True) == (done.returncode == 0)
    assert codes.count(3) > 60, codes


def test_unfinished_abc(folder):
    out = os.path.join(folder, "o.abc")
    export(main_cache(), out)
    with open(out, "r+b") as file:
        file.seek(5)
        file.write(b"\0")
    done = fails(3, "info", out, "--json", says="Alembic")
    assert json.loads(done.stdout)["complete"] is False
    with open(out, "wb") as file:
        file.write(b"\x89HDF\r\n\x1a\n" + bytes(100))
    done = fails(3, "info", out, "--json", says=["Alembic", "HDF5"])
    assert json.loads(done.stdout)["container"] == "HDF5"


def test_corpus(folder):
    """Archives of other programs, and broken ones, are described or refused."""
    corpus = os.path.join(SHARED, "corpus")
    paths = sorted(os.path.join(at, n) for at, _, names in os.walk(corpus) for n in names if n.endswith(".abc"))
    if not paths:
        raise Skip("no .abc files under " + corpus)
    codes = [run("info", path, "--json").returncode for path in paths]
    assert set(codes) <= {0, 3, 4, 5}, set(codes)
    refused = [path for path, code in zip(paths, codes) if code and "malformed" not in path]
    assert not refused, refused
    print("  corpus: %d archives, %d described, %d refused" % (len(codes), codes.count(0), len(codes) - codes.count(0)))


# ---- usage and failures ----

def test_usage(folder):
    cache = main_cache()
    before = os.listdir(folder)
    fails(2, "export", cache, says="-o")
    fails(2, "export", cache, "-o", os.path.join(folder, "x.stl"),
          says=["unknown", ".abc", ".pc2", ".mdd", ".obj", "Alembic"])
    fails(2, "export", cache, "-o", os.path.join(folder, ".abc/x"), says="unknown")
    fails(2, "export", cache, "-o", os.path.join(folder, "x.pc2"), "--colliders", says=["--colliders", ".abc"])
    fails(2, "export", cache, "-o", os.path.join(folder, "x.abc"), "--scene", "s.json", says="--colliders")
    fails(2, "export", cache, "-o", os.path.join(folder, "x.abc"), "--up", "x", says="--up")
    for scale in ("0", "-1", "nan", "inf", "1e9", "ten"):
        fails(2, "export", cache, "-o", os.path.join(folder, "x.abc"), "--scale=" + scale, says="--scale")
    for ending in ("abc", "pc2", "mdd", "obj"):
        out = os.path.join(folder, "x." + ending)
        fails(3, "export", cache, "-o", out, "--garment", "hat", says=["hat", CLOTH])
        fails(3, "export", cache, "-o", out, "--frames", "1-4", says="3 to 12")
        fails(5, "export", cache, "-o", os.path.join(folder, "no", "x." + ending), says="cannot be written")
    fails(5, "export", os.path.join(folder, "none.h5"), "-o", os.path.join(folder, "x.abc"))
    assert os.listdir(folder) == before
    os.mkdir(os.path.join(folder, "dir.abc"))
    fails(5, "export", cache, "-o", os.path.join(folder, "dir.abc"), says="folder")
    # A cache that happens to be called .abc is not written over.
    odd = os.path.join(folder, "odd.abc")
    shutil.copy(cache, odd)
    fails(3, "export", odd, "-o", odd, says="cache itself")


def test_read_only_folder(folder):
    closed = os.path.join(folder, "closed")
    os.mkdir(closed)
    os.chmod(closed, 0o555)
    try:
        if os.access(closed, os.W_OK):
            # root may write everywhere; /proc nobody may
            closed = "/proc"
        for ending in ("abc", "pc2", "mdd", "obj"):
            fails(5, "export", main_cache(), "-o", os.path.join(closed, "x." + ending), "--garment", CLOTH,
                  says="cannot be written")
    finally:
        os.chmod(os.path.join(folder, "closed"), 0o755)


def test_disk_full(folder):
    for ending in ("abc", "pc2", "mdd", "obj"):
        out = os.path.join(folder, "x." + ending)
        limit = 2000
        done = run("export", main_cache(), "-o", out, "--progress", "none", "--garment", CLOTH,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        assert done.returncode == 5 and done.stderr.startswith("toile: "), (ending, done)
        assert os.listdir(folder) == [], (ending, os.listdir(folder))


def stopped_export(cache, out, how):
    """Stops an export half way: its progress goes into a pipe too small for it, where it waits."""
    read, write = os.pipe()
    fcntl.fcntl(write, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)
    process = subprocess.Popen([TOILE, "export", cache, "-o", out, "--progress", "json"], stdout=write,
                               stderr=subprocess.PIPE, text=True,
                               # a shell that runs the tests in the background has SIGINT ignored
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    os.close(write)
    folder = os.path.dirname(out)
    deadline = time.monotonic() + 60
    while not (leftovers(folder) and process.poll() is None) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None and leftovers(folder), "the export does not wait"
    time.sleep(0.1)
    process.send_signal(how)
    with os.fdopen(read) as pipe:
        events = pipe.read()
    text = process.stderr.read()
    return process.wait(60), text, events


def test_stopped_export(folder):
    cache = bake(folder, frames=(1, 80), resolution=4, colliders=[],
                 garments=[{"name": CLOTH, "grid": {"size": [0.1, 0.1]}}])
    target = os.path.join(folder, "out")
    os.mkdir(target)
    for ending in ("abc", "pc2", "mdd"):
        out = os.path.join(target, "o." + ending)
        for how in (signal.SIGTERM, signal.SIGINT):
            code, text, events = stopped_export(cache, out, how)
            assert code == 75 and "stopped" in text and '"stopped"' in events, (code, text)
            assert os.listdir(target) == [], os.listdir(target)
        # What was there before stays as it was.
        with open(out, "w") as file:
            file.write("old")
        code, text, _ = stopped_export(cache, out, signal.SIGTERM)
        with open(out) as file:
            assert code == 75 and file.read() == "old" and os.listdir(target) == [os.path.basename(out)]
        os.remove(out)
        code, _, _ = stopped_export(cache, out, signal.SIGKILL)
        assert code == -signal.SIGKILL and not os.path.exists(out)
        for name in leftovers(target):
            if ending == "abc":
                fails(3, "info", os.path.join(target, name), says="Alembic")
            os.remove(os.path.join(target, name))
        export(cache, out)
        assert info(out)["complete"] is True
        os.remove(out)


def test_partly_baked(folder):
    """A bake that still runs, or was stopped, is exported as far as it is."""
    cache = bake(folder, frames=(1, 3))
    out = os.path.join(folder, "o.abc")
    export(cache, out)
    assert info(out)["last_frame"] == 3


# ---- Blender ----

BLENDER = """
import bpy, json, sys
job = json.load(open(sys.argv[sys.argv.index('--') + 1]))
scene = bpy.context.scene
scene.render.fps = job['fps']
result = {}
for kind in ('pc2', 'mdd'):
    mesh = bpy.data.meshes.new('m')
    mesh.from_pydata(job['vertices'], [], job['faces'])
    thing = bpy.data.objects.new('o', mesh)
    scene.collection.objects.link(thing)
    cache = thing.modifiers.new('c', 'MESH_CACHE')
    cache.cache_format = kind.upper()
    cache.filepath = job[kind]
    cache.time_mode = 'TIME' if kind == 'mdd' else 'FRAME'
    cache.frame_start = 0 if kind == 'mdd' else job['first']
    for frame in job['frames']:
        scene.frame_set(frame)
        seen = thing.evaluated_get(bpy.context.evaluated_depsgraph_get()).to_mesh()
        result['%s %d' % (kind, frame)] = [list(v.co) for v in seen.vertices]
json.dump(result, open(job['result'], 'w'))
"""


def test_blender_plays_point_caches(folder):
    blender = shutil.which("blender")
    if not blender:
        raise Skip("there is no Blender on PATH")
    ref = obj_frames(folder)
    vertices, faces = ref[FIRST][CLOTH][:2]
    paths = {kind: os.path.join(folder, "o." + kind) for kind in ("pc2", "mdd")}
    for path in paths.values():
        export(main_cache(), path, "--garment", CLOTH)
    job = {"fps": FPS, "first": FIRST, "frames": [FIRST, 6, 9, LAST], "vertices": vertices, "faces": faces,
           "result": os.path.join(folder, "r.json"), **paths}
    script, request = os.path.join(folder, "b.py"), os.path.join(folder, "j.json")
    with open(script, "w") as file:
        file.write(BLENDER)
    with open(request, "w") as file:
        json.dump(job, file)
    done = subprocess.run([blender, "-b", "--factory-startup", "--python-exit-code", "1", "-P", script, "--", request],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    with open(job["result"]) as file:
        result = json.load(file)
    for kind in ("pc2", "mdd"):
        for f in job["frames"]:
            worst = max(abs(a - b) for p, q in zip(result["%s %d" % (kind, f)], ref[f][CLOTH][0])
                        for a, b in zip(p, q))
            assert worst < 1e-6, (kind, f, worst)
    assert result["pc2 %d" % FIRST] != result["pc2 %d" % LAST]


if __name__ == "__main__":
    main(tests_of(globals()))
