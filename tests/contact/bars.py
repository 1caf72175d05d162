#!/usr/bin/python3
"""The bars of contact, through the program: garments on moving bodies without one intersection, friction as Coulomb has it.

    bars.py [NAME...] [--small] [--cost] [--keep DIR] [--threads N] [--set P=V] [--timeout S]

dress     a body of 47,500 triangles raises its arms three quarters of the way from A- to T-pose and lowers them in 48
          frames, in a tube dress of 6,144 vertices (needs ../shared/garmentcode)
skirt     a flared skirt of 6,144 vertices on stepping legs (Blender's peer benchmark)
rest      the same from the third second after its legs have stopped: what contact takes of a step (--cost)
sleeve    a sleeve of 3,840 vertices on an arm that bends by 115 degrees, the forearm inside the upper arm there
figure    a garment of 8,748 vertices and 17,334 triangles on a moving body of 18,000 triangles
incline   a sheet on a plane, on a mesh, on another sheet: sticks below and slides above atan(mu) by half a degree
capstan   a strip over a cylinder: holds at 0.93 and slips at 1.07 of the critical length

--small   the size that tests/run uses; --cost: processor time is judged too (skirt 0.34 s, figure 0.6 s a frame), which makes
sense on a quiet machine only. Ends with `N passed, M failed`."""
import json
import math
import os
import resource
import shutil
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import judge
import neutral
import scenes

SHARED = os.path.join(neutral.ROOT, "..", "shared")
if os.path.exists(os.path.join(SHARED, "validation", "isect.py")):
    sys.path.insert(0, os.path.join(SHARED, "validation"))
    import isect
    count_pairs = lambda v, f: isect.self_intersections(v, f)["pairs"]
    count_between = lambda v, f, w, g: isect.mesh_mesh(v, f, w, g)["pairs"]
    def inside(w, g, v):
        near = v[((v > w.min(0)) & (v < w.max(0))).all(1)]
        return int(isect.inside(w, g, near).sum()) if len(near) else 0
else:
    count_pairs, count_between, inside = judge.count_pairs, judge.count_between, judge.inside

FPS = 24
passed = failed = skipped = 0
options = {"small": False, "cost": False, "keep": None, "threads": 1, "set": [], "timeout": 7200.0}


def say(good, text):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print("%-4s %s" % ("ok" if good else "BAD", text), flush=True)


# ---- scenes as matrices ----

def turn_about(axis, radians):
    m = np.eye(4)
    m[:3, :3] = neutral.turn(axis, math.degrees(radians))
    return m


def shift(x, y, z):
    m = np.eye(4)
    m[:3, 3] = x, y, z
    return m


def smooth(t, a, b):
    u = min(1, max(0, (t - a) / (b - a)))
    return u * u * (3 - 2 * u)


class Solid:
    """A mesh with a matrix for every frame, or with positions for every frame."""

    def __init__(self, name, vertices, faces, matrices=None, positions=None):
        self.name, self.vertices, self.faces, self.matrices, self.positions = name, vertices, faces, matrices, positions

    def at(self, frame):
        if self.positions is not None:
            return self.positions[frame]
        return self.vertices @ self.matrices[frame][:3, :3].T + self.matrices[frame][:3, 3]

    def write(self, folder, friction):
        made = {"name": self.name, "shape": "mesh", "friction": friction}
        if self.positions is not None:
            for frame, x in enumerate(self.positions):
                neutral.save(os.path.join(folder, "%s_%04d.obj" % (self.name, frame)), x, self.faces)
            made["obj_sequence"] = self.name + "_####.obj"
        else:
            neutral.save(os.path.join(folder, self.name + ".obj"), self.vertices, self.faces)
            made["obj"] = self.name + ".obj"
            made["motion"] = {"keys": [{"frame": n, "origin": list(m[:3, 3]), "rotate": neutral.euler(m[:3, :3])}
                                       for n, m in enumerate(self.matrices)]}
        return made


def capsule(radius, length, around=32, rings=10, along=8):
    """From the origin along -z."""
    quarter = np.linspace(0, math.pi / 2, rings + 1)
    profile = [(radius * math.sin(t), -length - radius * math.cos(t)) for t in quarter]
    profile += [(radius, -length + length * k / along) for k in range(1, along)]
    profile += [(radius * math.cos(t), radius * math.sin(t)) for t in quarter]
    return scenes.capped([(0, profile[0][1])] + profile[1:-1] + [(0, profile[-1][1])], around)


def tube(around, along, radius_of, top, length):
    """About the z axis, from the top down."""
    angle = 2 * math.pi * np.arange(around) / around
    rows = [np.stack([radius_of(s) * np.cos(angle), radius_of(s) * np.sin(angle), np.full(around, top - length * s)], 1)
            for s in np.linspace(0, 1, along)]
    return np.concatenate(rows), scenes.quads(around, along, True)[:, [0, 2, 1]]


def write(folder, name, cloth, solids, frames, pins, settings=None, friction=0.3, fabric="cotton"):
    os.makedirs(folder, exist_ok=True)
    vertices, faces = cloth
    neutral.save(os.path.join(folder, "cloth.obj"), vertices, faces, neutral.material(vertices, faces))
    made = {"toile": 1, "name": name, "fps": FPS, "frames": [0, frames - 1], "settings": settings or {},
            "garments": [{"name": "cloth", "fabric": fabric, "obj": "cloth.obj"}],
            "colliders": [solid.write(folder, friction) for solid in solids], "pins": pins}
    path = os.path.join(folder, "scene.json")
    with open(path, "w") as file:
        json.dump(made, file)
    return path


def follow(vertices, matrices):
    """A pin that rides on a thing whose matrix at frame 0 is the first."""
    back = np.linalg.inv(matrices[0])
    keys = []
    for n, m in enumerate(matrices):
        way = m @ back
        keys.append({"frame": n, "translate": list(way[:3, 3]), "rotate": neutral.euler(way[:3, :3])})
    return {"garment": "cloth", "select": {"vertices": [int(v) for v in vertices]}, "motion": {"about": [0, 0, 0], "keys": keys}}


def bake(path, folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [word for text in options["set"] for word in ("--set", text)]
    baked = neutral.bake(path, folder, options["threads"], None, words, options["timeout"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    baked.processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return baked


def check_clean(name, folder, path, cloth, solids, frames, stretch, cost=None):
    baked = bake(path, folder)
    if baked.positions is None:
        say(False, "%s: no frame was made; toile bake ended with %s: %s" % (name, baked.code, baked.said[-400:]))
        return None
    rest, faces = cloth
    rows = []
    for n, p in enumerate(baked.positions):
        now = [(solid.at(n), solid.faces) for solid in solids]
        rows.append((count_pairs(p, faces), sum(count_between(p, faces, v, f) for v, f in now), sum(inside(v, f, p) for v, f in now)))
    rows = np.array(rows)
    np.savetxt(os.path.join(folder, "pairs.csv"), np.column_stack([np.arange(len(rows)), rows]), "%d", ",",
               header="frame,cloth_cloth,cloth_collider,inside", comments="")
    largest = max(judge.stretches(rest, faces, p).max() for p in baked.positions)
    done, per_frame = len(baked.positions), baked.processor / max(1, len(baked.positions) - 1)
    stages = baked.report.get("stages", {})
    total = sum(stages.values()) or 1
    first = lambda c: "" if not c.any() else " from frame %d" % np.flatnonzero(c)[0]
    print("%s: %d vertices, %d triangles, %d of %d frames, %.3f s of processor time a frame, %d steps, %d rejected, collision %.0f %%" % (
        name, len(rest), len(faces), done, frames, per_frame, baked.report.get("steps", 0), baked.report.get("rejected_steps", 0),
        100 * (stages.get("collide_solid", 0) + stages.get("collide_self", 0)) / total))
    say(done == frames and baked.code == 0, "%s: all frames%s" % (name, "" if baked.code == 0 else ": " + baked.said[-300:]))
    say(np.isfinite(baked.positions).all(), "%s: finite" % name)
    say(rows[:, 0].max() == 0, "%s: cloth with cloth, max %d pairs%s" % (name, rows[:, 0].max(), first(rows[:, 0])))
    say(rows[:, 1].max() == 0, "%s: cloth with colliders, max %d pairs%s" % (name, rows[:, 1].max(), first(rows[:, 1])))
    say(rows[:, 2].max() == 0, "%s: inside a collider, max %d vertices%s" % (name, rows[:, 2].max(), first(rows[:, 2])))
    say(largest <= stretch, "%s: largest stretch %.3f (limit %.2f)" % (name, largest, stretch))
    if cost and options["cost"]:
        say(per_frame <= cost, "%s: %.3f s of processor time a frame (bar %.2f)" % (name, per_frame, cost))
    return baked


# ---- garments ----

def write_skirt(folder, still=0):
    """`still`: frames in which nothing moves any more."""
    around, along, frames = (48, 24, 20) if options["small"] else (96, 64, 61)
    cloth = tube(around, along, lambda s: 0.135 + 0.215 * s, 0.06, 0.5)
    times = np.arange(frames) / FPS
    hip = [turn_about([0, 0, 1], math.radians(25) * smooth(t, 0, 0.5) * math.sin(2 * math.pi * 0.8 * t)) for t in times]
    solids = [Solid("pelvis", *scenes.sphere(0.12, 36), hip)]
    for side in (1, -1):
        swing = [math.radians(38) * smooth(t, 0, 0.5) * math.sin(2 * math.pi * t) * side for t in times]
        solids.append(Solid("leg_%s" % ("l" if side > 0 else "r"), *capsule(0.065, 0.75),
                            [h @ shift(0.075 * side, 0, -0.03) @ turn_about([1, 0, 0], a) for h, a in zip(hip, swing)]))
    return write(folder, "skirt", cloth, solids, frames + still, [follow(range(around), hip)]), cloth, solids, frames


def skirt(folder):
    path, cloth, solids, frames = write_skirt(folder)
    check_clean("skirt", folder, path, cloth, solids, frames, 1.3, 0.34)


def rest(folder):
    if not options["cost"]:
        print("rest: measured with --cost only")
        return
    path, _, _, frames = write_skirt(folder, 4 * FPS)
    settled = neutral.bake(path, folder, options["threads"], frames + 3 * FPS)
    report = os.path.join(folder, "rest.json")
    done = subprocess.run([neutral.TOILE, "bake", path, "-o", os.path.join(folder, "cache.h5"), "--resume", "--progress", "none",
                           "--threads", str(options["threads"]), "--report", report], capture_output=True, text=True)
    if settled.code or done.returncode:
        say(False, "rest: toile bake ended with %s and %s: %s" % (settled.code, done.returncode, done.stderr[-300:]))
        return
    with open(report) as file:
        stages = json.load(file)["stages"]
    stages.pop("write")
    share = (stages["collide_solid"] + stages["collide_self"]) / sum(stages.values())
    say(share <= 0.5, "rest: contact takes %.0f %% of a step (bar 50)" % (100 * share))


def sleeve(folder):
    around, along, frames = (24, 40, 36) if options["small"] else (48, 80, 61)
    cloth = tube(around, along, lambda s: 0.058 - 0.006 * s, -0.02, 0.52)
    times = np.arange(frames) / FPS * (61 / frames)
    shoulder = [turn_about([0, 1, 0], math.radians(50) * smooth(t, 0.25, 1.75)) for t in times]
    elbow = [m @ shift(0, 0, -0.30) @ turn_about([1, 0, 0], math.radians(115) * smooth(t, 0.25, 1.5)) @
             turn_about([0, 0, 1], math.radians(60) * smooth(t, 1.25, 2.25)) for m, t in zip(shoulder, times)]
    solids = [Solid("upper_arm", *capsule(0.042, 0.30), shoulder), Solid("forearm", *capsule(0.036, 0.30), elbow)]
    path = write(folder, "sleeve", cloth, solids, frames, [follow(range(around), shoulder)])
    check_clean("sleeve", folder, path, cloth, solids, frames, 1.3)


def figure(folder):
    """Torso and two legs of 18,000 triangles in all, walking and turning; a long dress."""
    around, along, frames = (27, 36, 16) if options["small"] else (81, 108, 49)
    fine = 0.4 if options["small"] else 1
    cloth = tube(around, along, lambda s: 0.165 + 0.02 * math.cos(math.pi * s) + 0.14 * s * s, 0.42, 1.05)
    times = np.arange(frames) / FPS
    hip = [turn_about([0, 0, 1], math.radians(20) * smooth(t, 0, 0.5) * math.sin(2 * math.pi * 0.7 * t)) for t in times]
    torso = capsule(0.13, 0.4, int(70 * fine), int(24 * fine), int(24 * fine))
    solids = [Solid("torso", torso[0] + [0, 0, 0.4], torso[1], hip)]
    for side in (1, -1):
        swing = [math.radians(32) * smooth(t, 0, 0.5) * math.sin(2 * math.pi * t) * side for t in times]
        solids.append(Solid("leg_%s" % ("l" if side > 0 else "r"), *capsule(0.062, 0.75, int(44 * fine), int(14 * fine), int(20 * fine)),
                            [h @ shift(0.07 * side, 0, -0.03) @ turn_about([1, 0, 0], a) for h, a in zip(hip, swing)]))
    print("figure: body of %d triangles" % sum(len(s.faces) for s in solids))
    path = write(folder, "figure", cloth, solids, frames, [follow(range(around), hip)])
    check_clean("figure", folder, path, cloth, solids, frames, 1.3, 0.6)


def dress(folder):
    global skipped
    source = os.path.join(SHARED, "garmentcode", "mean_all.obj")
    if not os.path.exists(source):
        print("SKIPPED dress: ../shared/garmentcode/mean_all.obj is not there")
        skipped += 1
        return
    upright = lambda v: np.stack([v[:, 0], -v[:, 2], v[:, 1]], 1)
    a, faces = neutral.load(source)
    t, _ = neutral.load(os.path.join(SHARED, "garmentcode", "mean_all_tpose.obj"))
    a, t = upright(a), upright(t)
    around, along, frames = (48, 30, 12) if options["small"] else (96, 64, 48)
    blend = [0.375 * (1 - math.cos(2 * math.pi * n / (frames - 1))) for n in range(frames)]
    body = Solid("body", a, faces, positions=[a + s * (t - a) for s in blend])
    # Around the torso: support function of each level with its neighbours, 15 mm off; below the hips no narrower again.
    torso = np.concatenate([p[abs(a[:, 0]) < 0.2] for p in (a, a + 0.375 * (t - a), a + 0.75 * (t - a))])
    angle = 2 * math.pi * np.arange(around) / around
    u = np.stack([np.cos(angle), np.sin(angle)], 1)
    rows, widest = [], np.zeros(around)
    for z in np.linspace(1.19, 0.5, along):
        level = torso[abs(torso[:, 2] - z) < 0.03][:, :2]
        radius = (level @ u.T).max(0)
        if z < 0.95:
            widest = radius = np.maximum(radius, widest)
        rows.append(np.column_stack([(radius + 0.015)[:, None] * u, np.full(around, z)]))
    cloth = np.concatenate(rows), scenes.quads(around, along, True)[:, [0, 2, 1]]
    start = count_between(*cloth, body.at(0), faces)
    if start:
        say(False, "dress: starts with %d pairs with the body: the test's own mistake" % start)
        return
    own = [count_pairs(body.at(n), faces) for n in (0, frames // 2)]
    print("dress: the body's own intersecting pairs: %d at the start, %d with the arms up" % tuple(own))
    pins = [{"garment": "cloth", "select": {"vertices": list(range(around))}}]
    path = write(folder, "dress", cloth, [body], frames, pins, friction=0.4)
    check_clean("dress", folder, path, cloth, [body], frames, 1.3)


# ---- friction ----

def slide(folder, surface, mu, degrees, seconds):
    """Mean position along the slope at every frame of a sheet on a slope: gravity is tilted, the slope is level."""
    a = math.radians(degrees)
    gap = 0.002
    garments = [{"name": "sheet", "fabric": "felt", "grid": {"size": [0.3, 0.3], "resolution": 9}, "place": {"origin": [0, 0, gap]}}]
    made = {"toile": 1, "fps": FPS, "frames": [0, round(seconds * FPS)], "garments": garments, "colliders": [], "pins": [],
            "fabrics": {"felt": {"density": 0.2, "stretch_warp": 4000, "stretch_weft": 4000, "shear": 50, "bend_warp": 1e-5, "bend_weft": 1e-5}},
            "settings": {"gravity": [9.81 * math.sin(a), 0, -9.81 * math.cos(a)], "drag_model": "none", "contact_thickness": gap,
                         "self_friction": mu, "self_thickness": gap, "self_collision": "on" if surface == "cloth" else "off"}}
    os.makedirs(folder, exist_ok=True)
    if surface == "plane":
        made["colliders"] = [{"shape": "plane", "friction": mu}]
    elif surface == "mesh":
        vertices, faces = scenes.sheet(4, 41, 0)
        neutral.save(os.path.join(folder, "slope.obj"), vertices + [1.013, 0.017, 0], faces)
        made["colliders"] = [{"shape": "mesh", "obj": "slope.obj", "friction": mu}]
    else:
        garments.append({"name": "slope", "fabric": "felt", "grid": {"size": [2.4, 0.6], "resolution": [61, 16]}, "place": {"origin": [0.713, 0.017, 0]}})
        made["pins"] = [{"garment": "slope", "select": {"box": [[-9, -9, -9], [9, 9, 9]]}}]
    path = os.path.join(folder, "scene.json")
    with open(path, "w") as file:
        json.dump(made, file)
    baked = bake(path, folder)
    if baked.code != 0 or baked.positions is None:
        return None
    return baked.positions[:, :81, 0].mean(1)


def incline(folder):
    for surface in ("plane", "mesh", "cloth"):
        for mu in ([0.3] if options["small"] else [0.1, 0.3, 0.5, 0.8]):
            critical = math.degrees(math.atan(mu))
            below, above = slide(folder, surface, mu, critical - 0.5, 2), slide(folder, surface, mu, critical + 0.5, 2)
            steep = slide(folder, surface, mu, critical + 10, 1)
            if below is None or above is None or steep is None:
                say(False, "incline, %s, mu %g: the bake failed" % (surface, mu))
                continue
            drift, expected = below[-1] - below[0], lambda angle: 9.81 * (math.sin(math.radians(angle)) - mu * math.cos(math.radians(angle)))
            say(abs(drift) < 0.001, "incline, %s, mu %g: drifts %.3f mm in 2 s half a degree below" % (surface, mu, 1000 * drift))
            way = above[-1] - above[0]
            say(way > 0.3 * 2 * expected(critical + 0.5), "incline, %s, mu %g: slides %.1f mm in 2 s half a degree above (expected %.1f)" % (
                surface, mu, 1000 * way, 2000 * expected(critical + 0.5)))
            # second difference over frames 6, 12, 18: free of where and how fast it began
            found = (steep[18] - 2 * steep[12] + steep[6]) / (6 / FPS) ** 2
            say(abs(found / expected(critical + 10) - 1) < 0.03, "incline, %s, mu %g: %.3f m/s^2 at + 10 degrees (expected %.3f)" % (
                surface, mu, found, expected(critical + 10)))


def capstan(folder):
    """Lutz's strip over a cylinder: L_crit / R = (L_short / R + c) exp(mu pi) + c, c = 2 mu / (1 + mu^2)."""
    radius, gap, width = 0.1, 0.002, 0.04
    for shape in ("cylinder", "mesh"):
        for mu in ([0.3] if options["small"] else [0.2, 0.3, 0.4]):
            c = 2 * mu / (1 + mu * mu)
            r = radius + gap
            critical, short = r * ((5 + c) * math.exp(mu * math.pi) + c), 5 * r
            for share in (0.93, 1.07):
                long = share * critical
                whole = short + math.pi * r + long
                n = 1 + round(whole / 0.015)
                s = np.linspace(0, whole, n)
                over = np.clip((s - short) / r, 0, math.pi)
                x, z = -r * np.cos(over), r * np.sin(over) - np.clip(short - s, 0, None) - np.clip(s - short - math.pi * r, 0, None)
                vertices = np.concatenate([np.stack([x, np.full(n, y), z], 1) for y in np.linspace(-width / 2, width / 2, 4)])
                flat = np.concatenate([np.stack([s, np.full(n, y)], 1) for y in np.linspace(-width / 2, width / 2, 4)])
                faces = scenes.quads(n, 4)
                os.makedirs(folder, exist_ok=True)
                neutral.save(os.path.join(folder, "strip.obj"), vertices, faces, flat[faces])
                made = {"toile": 1, "fps": FPS, "frames": [0, 36], "colliders": [{"shape": "cylinder", "radius": radius, "length": 0.3,
                        "friction": mu, "place": {"rotate": [90, 0, 0]}}], "garments": [{"name": "strip", "fabric": "tape", "obj": "strip.obj"}],
                        "fabrics": {"tape": {"density": 0.2, "stretch_warp": 4000, "stretch_weft": 4000, "shear": 200, "bend_warp": 5e-6, "bend_weft": 5e-6}},
                        "settings": {"drag_model": "none", "contact_thickness": gap, "self_collision": "off"}}
                if shape == "mesh":
                    rod, around = scenes.rod(radius, 0.3, 96)
                    neutral.save(os.path.join(folder, "rod.obj"), rod @ neutral.turn([0, 0, 1], 90).T, around)
                    made["colliders"] = [{"shape": "mesh", "obj": "rod.obj", "friction": mu}]
                path = os.path.join(folder, "scene.json")
                with open(path, "w") as file:
                    json.dump(made, file)
                baked = bake(path, folder)
                if baked.code != 0 or baked.positions is None:
                    say(False, "capstan, %s, mu %g: the bake failed: %s" % (shape, mu, baked.said[-300:]))
                    continue
                # the end of the long side, less what it hangs longer once it carries its weight
                end = baked.positions[:, [n - 1, 2 * n - 1, 3 * n - 1, 4 * n - 1], 2].mean(1)
                late = end[12] - end[-1]
                slips = late > 0.01
                say(slips == (share > 1), "capstan, %s, mu %g, %.2f of the critical length: %s, %.1f mm in the last second" % (
                    shape, mu, share, "slips" if slips else "holds", 1000 * late))


BARS = {"skirt": skirt, "rest": rest, "sleeve": sleeve, "figure": figure, "dress": dress, "incline": incline, "capstan": capstan}


def main():
    words, names = sys.argv[1:], []
    while words:
        word = words.pop(0)
        if word in ("-h", "--help"):
            print(__doc__)
            return 0
        key = word[2:] if word.startswith("--") else None
        if key is None:
            names.append(word)
        elif key in ("small", "cost"):
            options[key] = True
        elif key == "set":
            options["set"].append(words.pop(0))
        elif key in options:
            options[key] = type(options[key])(words.pop(0)) if options[key] is not None else words.pop(0)
        else:
            sys.exit("bars.py: unknown option %s" % word)
    unknown = [name for name in names if name not in BARS]
    if unknown:
        sys.exit("bars.py: no bar is named %s; there are %s" % (unknown[0], ", ".join(BARS)))
    base = options["keep"] or tempfile.mkdtemp(prefix="bars-")
    try:
        for name in names or BARS:
            BARS[name](os.path.join(base, name))
    finally:
        if not options["keep"]:
            shutil.rmtree(base, ignore_errors=True)
    print("%d passed, %d failed" % (passed, failed) + (", %d skipped" % skipped if skipped else ""))
    return 0 if failed == 0 and passed + skipped else 1


if __name__ == "__main__":
    sys.exit(main())
