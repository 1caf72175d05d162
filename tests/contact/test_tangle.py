#!/usr/bin/python3
"""Starts that cross already: told by name and place, pulled apart, never refused, never exploding.

    test_tangle.py          TOILE names the program (build/toile)

Ends with `N passed, M failed`."""
import json
import os
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import judge
import neutral
import scenes

passed = failed = 0


def check(good, text):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    if not good:
        print("FAILED " + text)


def bake(name, garments, colliders, frames, settings, layers=None):
    """Report, what was said, and positions; every garment is at rest as it starts."""
    with tempfile.TemporaryDirectory() as folder:
        for kind, meshes in (("garment", garments), ("collider", colliders)):
            for i, (v, f) in enumerate(meshes):
                neutral.save(os.path.join(folder, "%s_%d.obj" % (kind, i)), v, f, neutral.material(v, f) if kind == "garment" else None)
        scene = {"toile": 1, "name": name, "frames": [0, frames], "settings": settings,
                 "garments": [{"obj": "garment_%d.obj" % i} for i in range(len(garments))],
                 "colliders": [{"shape": "mesh", "obj": "collider_%d.obj" % i} for i in range(len(colliders))]}
        for i, thing in enumerate(scene["garments"]):
            thing["name"] = "cloth_%d" % i
            if layers:
                thing["layer"] = layers[i]
        path, report = os.path.join(folder, "scene.json"), os.path.join(folder, "report.json")
        json.dump(scene, open(path, "w"))
        done = subprocess.run([neutral.TOILE, "bake", path, "-o", os.path.join(folder, "c.h5"), "--threads", "1", "--progress", "json",
                               "--report", report], capture_output=True, text=True)
        check(done.returncode == 0, "%s: exit code %d: %s" % (name, done.returncode, done.stderr))
        import h5py
        with h5py.File(os.path.join(folder, "c.h5"), "r") as file:
            each = [file["garments/cloth_%d/positions" % i][...] for i in range(len(garments))]
        return json.load(open(report)), done.stdout + done.stderr, np.concatenate(each, axis=1).astype(float)


def calm(name, positions, rest, faces):
    speed = np.linalg.norm(np.diff(positions, axis=0), axis=2).max() * 24
    check(np.isfinite(positions).all() and speed < 5, "%s: largest speed %.2f m/s" % (name, speed))
    largest = max(judge.stretches(rest, faces, p).max() for p in positions[2:])
    check(largest < 1.3, "%s: stretched by %.2f" % (name, largest))


def bump():
    """A sheet with a bump through another one. Nothing but the pull takes it out: no weight, and both are at rest."""
    flat, faces = scenes.sheet(0.5, 21, 0)
    bent = flat + 0
    bent[:, 2] = -0.01 + 0.04 * np.exp(-((bent[:, 0] - 0.05) ** 2 + (bent[:, 1] + 0.03) ** 2) / 0.06 ** 2)
    report, said, positions = bake("bump", [(flat, faces), (bent, faces)], [], 12, {"gravity": [0, 0, 0]})
    first = report["intersections_at_start"]
    both = np.concatenate([faces, faces + len(flat)])
    check(len(first) == 1 and (first[0]["garment"], first[0]["with"]) == ("cloth_0", "cloth_1") and
          first[0]["pairs"] == judge.count_pairs(positions[0], both) > 50, "told of the start: %s" % first)
    check(np.linalg.norm(np.array(first[0]["at"]) - [0.05, -0.03, 0]) < 0.1, "told where: %s" % first[0]["at"])
    check("cloth_0" in said and "crosses at the start" in said, "said so: %s" % said[:300])
    left = judge.count_pairs(positions[-1], both)
    check(left == 0 and report["intersections"] == 0 and report["intersections_left"] == [], "%d pairs left" % left)
    calm("bump", positions, np.concatenate([flat, bent]), both)


def sunk():
    """A sheet that starts with its middle inside a ball."""
    vertices, faces = scenes.sheet(0.4, 21, 0.12)
    ball = scenes.sphere(0.15, 24)
    report, said, positions = bake("sunk", [(vertices, faces)], [ball], 16, {})
    first = report["intersections_at_start"]
    check(len(first) == 1 and first[0]["with"] == "collider_0" and first[0]["inside"] == judge.inside(*ball, positions[0]) > 10,
          "told of the start: %s" % first)
    left = judge.count_between(positions[-1], faces, *ball), judge.inside(*ball, positions[-1])
    check(left == (0, 0) and report["intersections_left"] == [], "left: %d pairs, %d inside" % left)
    calm("sunk", positions, vertices, faces)


def crossed_body():
    """A collider of two rods through each other: told, and the cloth on it stays clean."""
    rod, faces = scenes.rod(0.05, 0.4, 16)
    body = scenes.join([(rod, faces), (rod @ neutral.turn([0, 0, 1], 90).T + [0.01, 0.02, 0], faces)])
    vertices, cloth = scenes.sheet(0.3, 21, 0.06)
    report, said, positions = bake("crossed_body", [(vertices, cloth)], [body], 12, {})
    told = report["colliders_crossing"]
    check(len(told) == 1 and told[0]["collider"] == "collider_0" and told[0]["pairs"] == judge.count_pairs(*body) > 10, "told: %s" % told)
    check("crosses itself" in said, "said so: %s" % said[:300])
    check(report["intersections_at_start"] == [] and judge.count_between(positions[-1], cloth, *body) == 0, "the cloth is clean")
    calm("crossed_body", positions, vertices, cloth)


def layers():
    """Two tubes on a rod, one with three quarters of it outside of the other: each ends on the side of its layer, whichever that is."""
    n, rows = 48, 17
    angle, height = np.meshgrid(np.arange(n) * 2 * np.pi / n, np.linspace(-0.1, 0.1, rows))
    at = np.arange(n * rows).reshape(rows, n)
    a, b, c, d = at[:-1], np.roll(at, -1, 1)[:-1], np.roll(at, -1, 1)[1:], at[1:]
    faces = np.concatenate([np.stack([a, b, c], 2).reshape(-1, 3), np.stack([a, c, d], 2).reshape(-1, 3)])

    def tube(radius):
        return np.stack([height, radius * np.cos(angle), radius * np.sin(angle)], 2).reshape(-1, 3)

    even = tube(0.12 + 0 * angle)
    uneven = tube(0.12 + 0.008 * np.where(np.cos(angle) < 0.7, 1, -1))  # three quarters of it outside
    rod = scenes.rod(0.1, 0.4, 32)
    for order in ((0, 1), (1, 0)):
        report, said, positions = bake("layers %s" % (order,), [(even, faces), (uneven, faces)], [rod], 36,
                                       {"gravity": [0, 0, 0], "air_density": 20}, order)
        both = np.concatenate([faces, faces + len(even)])
        left = judge.count_pairs(positions[-1], both)
        first, second = (np.linalg.norm(p[:, 1:], axis=1) for p in np.split(positions[-1], 2))
        right = (second > first) if order == (0, 1) else (second < first)  # one of two tubes that do not cross is inside; wrinkles shift vertices
        check(left == 0 and right.mean() > 0.9, "layers %s: %d pairs left, %.3f on their side" % (order, left, right.mean()))
        calm("layers", positions, np.concatenate([even, uneven]), both)


for test in (bump, sunk, crossed_body, layers):
    test()
print("%d passed, %d failed" % (passed, failed))
sys.exit(1 if failed else 0)
