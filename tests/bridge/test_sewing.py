#!/usr/bin/python3
"""Sewing, settling and shaping through scene files: loose edges of an OBJ, resume across the weld, jobs, a start from a
cache, maps and pins with keys, and what is refused.

    test_sewing.py [NAME...]       TOILE names the program (build/toile)

Ends with `N passed, M failed`."""
import json
import os

import h5py
import numpy

from program import main, run

os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"
NU, NV = 9, 7


def bake(scene, cache, *more, expect=0):
    done = run("bake", scene, "-o", cache, "--threads", 1, "--progress", "json", *more)
    assert done.returncode == expect, f"exit code {done.returncode}\n{done.stderr}"
    return [json.loads(line) for line in done.stdout.splitlines()] if expect == 0 else done


def pairs():
    """Both upright sides of two panels that stand opposite each other."""
    side = NU * NV
    return [[j * NU + i, side + j * NU + i] for j in range(NV) for i in (0, NU - 1)]


def write_tube(folder, lines=True):
    """Two panels 0.3 x 0.2 m, 8 cm apart, sewing edges between them as Blender writes them."""
    with open(os.path.join(folder, "tube.obj"), "w") as f:
        for p in range(2):
            for j in range(NV):
                for i in range(NU):
                    bulge = 0.03 * numpy.sin(numpy.pi * i / (NU - 1))
                    f.write(f"v {0.3 * i / (NU - 1) - 0.15} {(2 * p - 1) * (0.04 + bulge)} {0.2 * j / (NV - 1)}\n")
        for p in range(2):
            for j in range(NV):
                for i in range(NU):
                    f.write(f"vt {0.3 * i / (NU - 1)} {0.2 * j / (NV - 1)}\n")
        for p in range(2):
            f.write(f"g {'back' if p else 'front'}\n")
            for j in range(NV - 1):
                for i in range(NU - 1):
                    c = [p * NU * NV + (j + b) * NU + i + a + 1 for a, b in ((0, 0), (1, 0), (1, 1), (0, 1))]
                    c = c[::-1] if p else c
                    f.write("f " + " ".join(f"{v}/{v}" for v in c) + "\n")
        for a, b in pairs() if lines else []:
            f.write(f"l {a + 1} {b + 1}\n")


def scene(folder, name="scene.json", **more):
    text = {"toile": 1, "fps": 24, "frames": [1, 12],
            "garments": [{"name": "tube", "obj": "tube.obj", "fabric": "cotton",
                          "sewing": [{"name": "sides", "loose_edges": True, "frames": [1, 6]}]}],
            "pins": [{"garment": "tube", "select": {"vertices": [0, NU - 1]}}]}
    text.update(more)
    path = os.path.join(folder, name)
    with open(path, "w") as f:
        json.dump(text, f)
    return path


def hashes(cache):
    with h5py.File(cache) as f:
        return [int(h) for h in f["frames/state_hash"][:]] if "frames/state_hash" in f else find(f, "state_hash")


def find(f, name):
    found = []
    f.visititems(lambda path, item: found.append(item[:].tolist()) if path.endswith(name) else None)
    return found


def positions(cache, garment="tube"):
    with h5py.File(cache) as f:
        return f[f"garments/{garment}/positions"][:]


def welded(x):
    a, b = numpy.array(pairs()).T
    return int((x[a] == x[b]).all(axis=1).sum())


def loose_edges_are_sewn(folder):
    write_tube(folder)
    bake(scene(folder), folder + "/a.h5")
    x = positions(folder + "/a.h5")
    assert x.shape == (12, 2 * NU * NV, 3), x.shape
    assert welded(x[0]) == 0 and welded(x[-1]) == 2 * NV, (welded(x[0]), welded(x[-1]))
    # the same as a list of pairs, and as a job
    bake(scene(folder, garments=[{"name": "tube", "obj": "tube.obj", "fabric": "cotton",
                                  "sewing": [{"name": "sides", "pairs": pairs(), "frames": [1, 6]}]}]), folder + "/b.h5")
    assert hashes(folder + "/a.h5") == hashes(folder + "/b.h5")
    assert run("pack", scene(folder), "-o", folder + "/job.h5").returncode == 0
    bake(folder + "/job.h5", folder + "/c.h5")
    assert hashes(folder + "/a.h5") == hashes(folder + "/c.h5")


def never_through(folder):
    """A curtain hangs between the lower stitches: they stay open and are named, however late it is; the others close."""
    write_tube(folder)
    tube = {"name": "tube", "obj": "tube.obj", "fabric": "cotton", "sewing": [{"name": "sides", "loose_edges": True, "frames": [1, 8]}]}
    curtain = {"name": "curtain", "fabric": "silk", "grid": {"size": [0.5, 0.13], "resolution": [21, 7]},
               "place": {"origin": [0, 0, 0.045], "rotate": [90, 0, 0]}}
    bake(scene(folder, garments=[tube, curtain], frames=[1, 110], settings={"gravity": [0, 0, 0]},
               pins=[{"garment": "curtain", "select": {"box": [[-0.26, -1, -1], [-0.23, 1, 1]]}},
                     {"garment": "curtain", "select": {"box": [[0.23, -1, -1], [0.26, 1, 1]]}}]), folder + "/a.h5", "--report", folder + "/a.json")
    x, report = positions(folder + "/a.h5"), json.load(open(folder + "/a.json"))
    assert 0 < welded(x[-1]) < 2 * NV, welded(x[-1])
    judged = json.loads(run("verify", folder + "/a.h5", "--json").stdout)
    assert judged["cloth_pairs"] == 0, judged["cloth_pairs"]
    (seam,) = report["open_seams"]
    assert seam["stitches"] == report["open_stitches"] == 2 * NV - welded(x[-1]), (seam, welded(x[-1]))
    assert seam["name"] == "sides" and set(seam["panels"]) == {"front", "back"} and 0 < seam["widest_gap"] < 0.02, seam


def released(folder):
    write_tube(folder)
    sewing = [{"loose_edges": True, "frames": [1, 4], "release": 9}]
    garment = {"name": "tube", "obj": "tube.obj", "fabric": "cotton", "sewing": sewing,
               "pressure": [{"keys": [{"frame": 8, "value": 0}, {"frame": 9, "value": 200}]}]}
    bake(scene(folder, garments=[garment], frames=[1, 14]), folder + "/a.h5")
    x = positions(folder + "/a.h5")
    assert welded(x[7]) == 2 * NV and welded(x[13]) < 4, (welded(x[7]), welded(x[13]))


def resumes(folder):
    """Stopped before, at and after the weld."""
    write_tube(folder)
    path = scene(folder, settle={"frames": 3})
    bake(path, folder + "/whole.h5")
    wanted = hashes(folder + "/whole.h5")
    for stop in (2, 5, 6, 7, 9):
        cache = f"{folder}/part{stop}.h5"
        bake(path, cache, "--frames", f"1-{stop}")
        bake(path, cache, "--resume")
        assert hashes(cache) == wanted, f"differs after a stop at frame {stop}"


def settles(folder):
    write_tube(folder)
    settings = {"gravity_ramp": 0.3}
    pins = [{"garment": "tube", "select": {"vertices": [0, NU - 1]}},
            {"garment": "tube", "select": {"vertices": [NU // 2]}, "frames": [-100, -60]}]
    events = bake(scene(folder, settle={"frames": 100, "speed": 0.05}, frames=[1, 3], settings=settings, pins=pins),
                  folder + "/a.h5")
    told = [e for e in events if e["event"] == "settle"]
    assert told and told[0]["open_stitches"] == 2 * NV and told[-1]["open_stitches"] == 0, told[-1:]
    assert len(told) == 100 or told[-1]["speed"] <= 0.05
    x = positions(folder + "/a.h5")
    assert len(x) == 3 and welded(x[0]) == 2 * NV
    with h5py.File(folder + "/a.h5") as f:
        time = f["frames/time"][:] if "frames/time" in f else numpy.array(find(f, "time")[0])
    assert abs(time[0]) < 1e-9 and abs(time[2] - 2 / 24) < 1e-9, time
    # the draped state as another bake's start: its seams are closed there
    garment = {"name": "tube", "obj": "tube.obj", "fabric": "cotton", "sewing": [{"loose_edges": True, "frames": [1, 1]}]}
    path = scene(folder, "next.json", start={"cache": "a.h5", "frame": 3}, garments=[garment], frames=[1, 3])
    bake(path, folder + "/b.h5")
    y = positions(folder + "/b.h5")
    assert (y[0] == x[2]).all() and welded(y[2]) == 2 * NV
    moved = numpy.abs(y[2][[0, NU - 1]] - x[2][[0, NU - 1]]).max()
    assert moved < 1e-6, f"the pins moved by {moved}"
    bake(path, folder + "/b.h5", "--resume")
    assert run("pack", path, "-o", folder + "/job.h5").returncode == 0
    os.rename(folder + "/a.h5", folder + "/moved.h5")
    bake(folder + "/job.h5", folder + "/c.h5")
    assert hashes(folder + "/c.h5") == hashes(folder + "/b.h5")
    os.rename(folder + "/moved.h5", folder + "/a.h5")
    done = bake(scene(folder, "bad.json", start={"cache": "a.h5", "frame": 9}), folder + "/c.h5", expect=3)
    assert "start.frame" in done.stderr and "1 to 3" in done.stderr, done.stderr


def sheet(folder, **more):
    text = {"toile": 1, "frames": [1, 10],
            "garments": [{"name": "tube", "fabric": "cotton", "grid": {"size": [0.4, 0.4], "resolution": 9}}]}
    text["garments"][0].update(more.pop("garment", {}))
    text.update(more)
    path = os.path.join(folder, "sheet.json")
    with open(path, "w") as f:
        json.dump(text, f)
    return path


def maps_with_keys(folder):
    maps = [{"property": "scale_u", "values": [0.8] * 81,
             "keys": [{"frame": 1, "value": 0}, {"frame": 9, "value": 1}]},
            {"property": "density", "select": {"edges": ["u0"]}, "value": 3}]
    path = sheet(folder, garment={"maps": maps}, settings={"gravity": [0, 0, 0]}, frames=[1, 60])
    bake(path, folder + "/a.h5")
    x = positions(folder + "/a.h5")
    width = x[:, 8, 0] - x[:, 0, 0]
    assert abs(width[0] - 0.4) < 1e-6 and abs(width[-1] - 0.32) < 5e-3, width[[0, -1]]
    bake(path, folder + "/b.h5", "--frames", "1-5")
    bake(path, folder + "/b.h5", "--resume")
    assert hashes(folder + "/a.h5") == hashes(folder + "/b.h5")


def creases_and_bands(folder):
    middle = [[4 + 9 * j, 13 + 9 * j] for j in range(8)]
    garment = {"creases": [{"edges": middle, "angle": 60}], "elastic": [{"select": {"edges": ["v1"]}, "scale": 0.5}],
               "fabric": {"base": "cotton", "bend_warp": 0.02, "bend_weft": 0.02, "bend_damping": 0.02}}
    path = sheet(folder, garment=garment, settings={"gravity": [0, 0, 0]}, frames=[1, 40])
    bake(path, folder + "/a.h5")
    x = positions(folder + "/a.h5")[-1]
    assert x[4, 2] < x[0, 2] - 0.01 and x[4, 2] < x[8, 2] - 0.01, x[[0, 4, 8]]


def pins_of_all_kinds(folder):
    ball = {"name": "ball", "shape": "sphere", "radius": 0.05, "place": {"origin": [-0.2, -0.2, -0.1]},
            "motion": {"keys": [{"frame": 1, "origin": [-0.2, -0.2, -0.1]}, {"frame": 9, "origin": [-0.2, -0.2, 0.1]}]}}
    pins = [{"garment": "tube", "select": {"corners": ["u0v0"]}, "surface": "ball"},
            {"garment": "tube", "select": {"corners": ["u1v0"]}, "curve": [[0.2, -0.2, 1], [0.2, -0.2, -1]],
             "motion": {"keys": [{"frame": 1}, {"frame": 9, "translate": [-0.1, 0, 0]}]}},
            {"garment": "tube", "select": {"corners": ["u0v1"]}, "stiffness": 50, "axes": "z"}]
    path = sheet(folder, pins=pins, colliders=[ball])
    bake(path, folder + "/a.h5")
    x = positions(folder + "/a.h5")
    assert abs(x[9, 0] - [-0.2, -0.2, 0.2]).max() < 1e-5, x[9, 0]
    assert abs(x[9, 8, :2] - [0.1, -0.2]).max() < 1e-5 and x[9, 8, 2] < 0.1, x[9, 8]
    bake(path, folder + "/b.h5", "--frames", "1-4")
    bake(path, folder + "/b.h5", "--resume")
    assert hashes(folder + "/a.h5") == hashes(folder + "/b.h5")


def refused(folder):
    write_tube(folder, lines=False)
    grid = {"name": "tube", "grid": {"size": [1, 1], "resolution": 5}}
    bad = [({"garments": [{"name": "t", "obj": "tube.obj", "sewing": [{"loose_edges": True}]}], "pins": []}, "loose_edges"),
           ({"garments": [dict(grid, sewing=[{"loose_edges": True}])]}, "garments[0].sewing[0].loose_edges"),
           ({"garments": [dict(grid, sewing=[{"pairs": [[0, 99]]}])]}, "sewing[0].pairs[0]"),
           ({"garments": [dict(grid, sewing=[{"pairs": [[0, 1]]}])]}, "one triangle"),
           ({"garments": [dict(grid, sewing=[{"pairs": [[0]]}])]}, "sewing[0].pairs[0]"),
           ({"garments": [dict(grid, sewing=[{"pairs": [[0, 9]], "release": "x"}])]}, "release"),
           ({"garments": [dict(grid, maps=[{"property": "weight", "values": [1] * 25}])]}, "weight"),
           ({"garments": [dict(grid, maps=[{"property": "density", "values": [1] * 24}])]}, "maps[0].values"),
           ({"garments": [dict(grid, maps=[{"property": "density", "values": [0] * 25}])]}, "maps[0].values[0]"),
           ({"garments": [dict(grid, creases=[{"edges": [[0, 2]], "angle": 9}])]}, "not an edge"),
           ({"garments": [dict(grid, creases=[{"select": {"vertices": [0, 24]}, "angle": 9}])]}, "no edge"),
           ({"garments": [dict(grid, elastic=[{"edges": [[0, 1]], "scale": 0}])]}, "elastic[0].scale"),
           ({"garments": [dict(grid, pressure=[{"value": 1e9}])]}, "pressure[0].value"),
           ({"garments": [dict(grid, pressure=[{"value": 1, "panel": "x"}])]}, "pressure[0].panel"),
           ({"garments": [grid], "pins": [{"garment": "tube", "select": {"vertices": [0]}, "surface": "x"}]}, "surface"),
           ({"garments": [grid], "pins": [{"garment": "tube", "select": {"vertices": [0]}, "curve": [[0, 0, 0]]}]}, "curve"),
           ({"garments": [grid], "pins": [], "start": {"cache": "none.h5"}}, "start.cache"),
           ({"garments": [grid], "pins": [], "settle": {"frames": 0}}, "settle.frames")]
    for change, says in bad:
        change.setdefault("pins", [])
        done = bake(scene(folder, "bad.json", **change), folder + "/x.h5", expect=5 if says == "start.cache" else 3)
        assert says in done.stderr and "bad.json:" in done.stderr, f"{says}: {done.stderr}"


TESTS = [loose_edges_are_sewn, never_through, released, resumes, settles, maps_with_keys, creases_and_bands, pins_of_all_kinds, refused]


if __name__ == "__main__":
    main({test.__name__: test for test in TESTS})
