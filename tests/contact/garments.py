#!/usr/bin/python3
"""Patterns of ../shared/garmentcode from their JSON to a body that raises its arms, through the program.

    garments.py [shirt] [dress] [NAME of patterns.py]...
        [--edge M] [--frames N] [--keep DIR] [--threads N] [--set P=V] [--down] [--pattern FILE]...

shirt and dress are those of ../shared/garmentcode, the others are made by patterns.py (trousers, collar_and_cuffs, godet_skirt, ...).

drape     imported, sewn and draped on the body in A-pose until it is at rest: all seams welded, no pair of triangles
          that meet, cloth with cloth or with the body, stretch along warp and weft below 5 % outside of seams
arms      from there, while the body raises its arms three quarters of the way to T-pose in --frames frames (48; --down:
          and lowers them again in as many): no pair in any frame

--edge is the length of the mesh's edges in metres (0.01); --pattern takes another pattern. Judged with `toile verify`
and, where ../shared/validation is there, the last frames with its judge. Ends with `N passed, M failed`."""
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bars
import neutral
import patterns

PATTERNS = {"shirt": "shirt_mean_specification.json", "dress": "dress_pencil_specification.json"}
DATA = os.path.join(bars.SHARED, "garmentcode")
options = {"edge": 0.01, "frames": 48, "keep": None, "threads": 1, "set": [], "down": False}


def program(*words):
    done = subprocess.run([neutral.TOILE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={"OMP_WAIT_POLICY": "passive", **os.environ})
    return done.returncode, done.stdout


def bake(scene, cache):
    words = [word for text in options["set"] for word in ("--set", text)]
    code, said = program("bake", scene, "-o", cache, "--threads", options["threads"], "--report", cache + ".report.json", *words)
    bars.say(code == 0, "%s: baked%s" % (os.path.basename(cache), "" if code == 0 else ", exit code %d: %s" % (code, said[-300:])))
    return json.load(open(cache + ".report.json")) if os.path.exists(cache + ".report.json") else {}


def verify(cache, *words):
    code, said = program("verify", cache, "--json", *words)
    return json.loads(said[said.index("{"):])


# ---- stretch beside and outside of seams ----

def stretches(cache, frame):
    """Of every triangle along warp or weft, and whether it has a corner on a seam that is sewn."""
    with h5py.File(cache, "r") as file:
        g = file["garments/garment"]
        x, tri, uv = g["positions"][frame].astype(float), g["triangles"][:], g["corner_uv"][:]
        speed = np.linalg.norm(g["velocities"][frame], axis=1)
    a, b = uv[:, 1] - uv[:, 0], uv[:, 2] - uv[:, 0]
    det = (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0])[:, None]
    p, q = x[tri[:, 1]] - x[tri[:, 0]], x[tri[:, 2]] - x[tri[:, 0]]
    u, v = (p * b[:, 1:] - q * a[:, 1:]) / det, (q * a[:, :1] - p * b[:, :1]) / det
    most = np.maximum(np.linalg.norm(u, axis=1), np.linalg.norm(v, axis=1)) - 1
    _, where, count = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    sewn = (count[where.reshape(-1)] > 1)[tri].any(1)
    return most, sewn, x[tri].mean(1), speed


# ---- drape ----

def drape(name, pattern, folder):
    scene, cache = os.path.join(folder, name + ".json"), os.path.join(folder, name + ".h5")
    code, said = program("import", pattern, "--body", os.path.join(DATA, "mean_all.obj"), "-o", scene, "--edge-length", options["edge"])
    print(said.strip())
    bars.say(code == 0, "%s: imported" % name)
    if code != 0:
        return None
    report = bake(scene, cache)
    last = json.load(open(scene))["frames"][1]
    judged = verify(cache, "--frames", "%d-%d" % (last - 11, last))
    most, sewn, at, speed = stretches(cache, -1)
    worst = np.argmax(np.where(sewn, -1, most))
    bars.say(report.get("open_stitches") == 0, "%s: %s stitches open" % (name, report.get("open_stitches")))
    bars.say(judged["cloth_pairs"] == 0, "%s: cloth with cloth in the last 12 frames, %d pairs" % (name, judged["cloth_pairs"]))
    bars.say(judged["collider_pairs"] == 0 and judged["inside_colliders"] == 0, "%s: with the body, %d pairs, %d vertices inside" % (
        name, judged["collider_pairs"], judged["inside_colliders"]))
    bars.say(most[worst] < 0.05, "%s: stretch outside of seams %.2f %% at (%.2f, %.2f, %.2f)" % (name, 100 * most[worst], *at[worst]))
    seam = np.argmax(np.where(sewn, most, -1))
    print("%s: at seams %.2f %% at (%.2f, %.2f, %.2f); at rest: %.1f mm/s on average, %.1f at most" % (
        name, 100 * most[seam], *at[seam], 1000 * math.sqrt((speed ** 2).mean()), 1000 * speed.max()))
    if hasattr(bars, "isect"):
        with h5py.File(cache, "r") as file:
            x, tri = file["garments/garment/positions"][-1].astype(float), file["garments/garment/triangles"][:]
        _, first, one = np.unique(x, axis=0, return_index=True, return_inverse=True)
        pairs = bars.count_pairs(x[first], one.reshape(-1)[tri])
        bars.say(pairs == 0, "%s: the neutral judge, last frame, %d pairs" % (name, pairs))
    return scene, cache


# ---- arms ----

def raise_arms(name, scene, cache, folder):
    a, faces = neutral.load(os.path.join(DATA, "mean_all.obj"))
    t, _ = neutral.load(os.path.join(DATA, "mean_all_tpose.obj"))
    count = options["frames"]
    parts = [0.375 * (1 - math.cos(math.pi * n / count)) for n in range(count + 1)]
    if options["down"]:
        parts += parts[-2::-1]
    for n, part in enumerate(parts):
        neutral.save(os.path.join(folder, "arms_%04d.obj" % n), a + part * (t - a), faces)
    made = json.load(open(scene))
    last = made["frames"][1]
    body = made["colliders"][0]
    del body["obj"]
    body["obj_sequence"] = "arms_####.obj"
    made.update(frames=[0, len(parts) - 1], start={"cache": os.path.basename(cache), "frame": last}, pins=[])
    made["settings"].pop("gravity_delay"), made["settings"].pop("gravity_ramp")
    made["garments"][0].pop("maps", None)
    for seam in made["garments"][0]["seams"]:
        seam["frames"] = [0, 0]
    moving, moved = os.path.join(folder, name + "_arms.json"), os.path.join(folder, name + "_arms.h5")
    with open(moving, "w") as file:
        json.dump(made, file)
    bake(moving, moved)
    judged = verify(moved)
    bars.say(judged["frames_checked"] == len(parts), "%s, arms: %d of %d frames" % (name, judged["frames_checked"], len(parts)))
    for key, what in (("cloth_pairs", "cloth with cloth"), ("collider_pairs", "with the body"), ("inside_colliders", "vertices inside")):
        bad = [f["frame"] for f in judged["frames"] if f.get(key)]
        bars.say(judged[key] == 0, "%s, arms: %s, %d in all frames%s" % (name, what, judged[key], ", first in %d" % bad[0] if bad else ""))
    most, sewn, at, _ = stretches(moved, count)
    worst = np.argmax(np.where(sewn, -1, most))
    print("%s, arms raised: stretch outside of seams %.2f %% at (%.2f, %.2f, %.2f), at seams %.2f %%" % (
        name, 100 * most[worst], *at[worst], 100 * most[sewn].max()))


def main():
    wanted, words = [], sys.argv[1:]
    while words:
        word = words.pop(0)
        if word == "--down":
            options["down"] = True
        elif word == "--pattern":
            wanted.append(words.pop(0))
        elif word.startswith("--") and word[2:] in options and words:
            value = words.pop(0)
            kind = type(options[word[2:]])
            options[word[2:]] = options[word[2:]] + [value] if kind is list else value if kind is type(None) else kind(value)
        elif word in PATTERNS or word in patterns.ALL:
            wanted.append(word)
        else:
            sys.exit(__doc__)
    if not os.path.exists(DATA):
        print("SKIPPED: ../shared/garmentcode is not there\n0 passed, 0 failed, 1 skipped")
        return
    folder = options["keep"] or tempfile.mkdtemp()
    os.makedirs(folder, exist_ok=True)
    for pattern in wanted or PATTERNS:
        path = os.path.join(DATA, PATTERNS[pattern]) if pattern in PATTERNS else pattern
        if pattern in patterns.ALL:
            path = os.path.join(folder, pattern + "_specification.json")
            with open(path, "w") as file:
                json.dump(patterns.ALL[pattern](), file)
        name = pattern if pattern in PATTERNS else os.path.basename(pattern).split(".")[0]
        draped = drape(name, path, folder)
        if draped:
            raise_arms(name, *draped, folder)
    if not options["keep"]:
        shutil.rmtree(folder)
    print("%d passed, %d failed" % (bars.passed, bars.failed))
    sys.exit(bars.failed > 0)


main()
