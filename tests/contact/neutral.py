"""Scenes of contact in a neutral form (scenes.json: cloths, colliders and pins as OBJ meshes with motions in seconds)
as scenes of Toile, and what a bake made of them. Positions are metres with z up, frame 0 is the start."""
import json
import math
import os
import signal
import subprocess
import time

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOILE = os.path.abspath(os.environ.get("TOILE", os.path.join(ROOT, "build", "toile")))


# ---- meshes ----

def load(path):
    """Vertices (n, 3) and triangles (m, 3) of an OBJ file; faces with more corners become fans."""
    vertices, faces = [], []
    for line in open(path):
        word = line.split()
        if not word:
            continue
        if word[0] == "v":
            vertices.append([float(x) for x in word[1:4]])
        elif word[0] == "f":
            corner = [int(text.split("/")[0]) for text in word[1:]]
            corner = [i - 1 if i > 0 else len(vertices) + i for i in corner]
            faces += [[corner[0], corner[k], corner[k + 1]] for k in range(1, len(corner) - 1)]
    return np.array(vertices, float).reshape(-1, 3), np.array(faces, np.int64).reshape(-1, 3)


def save(path, vertices, faces, corner_uv=None):
    lines = ["v %.17g %.17g %.17g" % tuple(v) for v in vertices]
    if corner_uv is None:
        lines += ["f %d %d %d" % tuple(f + 1) for f in faces]
    else:
        lines += ["vt %.17g %.17g" % tuple(uv) for uv in corner_uv.reshape(-1, 2)]
        lines += ["f %d/%d %d/%d %d/%d" % (f[0] + 1, 3 * i + 1, f[1] + 1, 3 * i + 2, f[2] + 1, 3 * i + 3)
                  for i, f in enumerate(faces)]
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


def material(vertices, faces):
    """A (u, v) for every corner, (m, 3, 2), that keeps each triangle's start shape. The warp runs along the direction
    of the mesh, an edge or a principal axis, that lies best in all triangles; where it does not, along the next best.
    It turns with the mesh."""
    corners = vertices[faces]
    edges = corners[0][[1, 2, 0]] - corners[0]
    edges = edges[np.argsort(np.linalg.norm(edges, axis=1))]
    _, _, axes = np.linalg.svd(vertices - vertices.mean(0), full_matrices=False)
    candidates = np.vstack([edges / np.linalg.norm(edges, axis=1)[:, None], axes])
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    normal = normal / area[:, None]
    within = 1 - (normal @ candidates.T) ** 2                       # squared length in the triangle's plane
    order = np.argsort(-np.round(area @ within / area.sum(), 6), kind="stable")
    u = np.zeros_like(normal)
    for c in reversed(order):
        lies = within[:, c] > 0.01
        flat = candidates[c] - normal * (normal @ candidates[c])[:, None]
        u[lies] = flat[lies] / np.linalg.norm(flat[lies], axis=1)[:, None]
    v = np.cross(normal, u)
    from_first = corners - corners[:, :1]
    return np.stack([np.einsum("fkx,fx->fk", from_first, u), np.einsum("fkx,fx->fk", from_first, v)], 2)


# ---- motions ----

def turn(axis, degrees):
    a = np.asarray(axis, float) / np.linalg.norm(axis)
    k = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    t = math.radians(degrees)
    return np.eye(3) + math.sin(t) * k + (1 - math.cos(t)) * k @ k


def euler(r):
    """Degrees about x, then y, then z."""
    y = math.atan2(-r[2, 0], math.hypot(r[0, 0], r[1, 0]))
    if math.hypot(r[0, 0], r[1, 0]) > 1e-12:
        x, z = math.atan2(r[2, 1], r[2, 2]), math.atan2(r[1, 0], r[0, 0])
    else:
        x, z = math.atan2(-r[1, 2], r[1, 1]), 0.0
    return [math.degrees(x), math.degrees(y), math.degrees(z)]


def pose(moved, seconds):
    """Rotation and translation that a motion has at a time: p -> r (p - center) + center + translation."""
    keys = moved["motion"]
    times = [key["t"] for key in keys]
    shift = np.array([np.interp(seconds, times, [key["translate"][i] for key in keys]) for i in range(3)])
    degrees = np.interp(seconds, times, [key.get("rotate_deg", 0.0) for key in keys])
    return turn(moved.get("axis", [0, 0, 1]), degrees), shift


def moves(moved):
    return len({(tuple(k["translate"]), k.get("rotate_deg", 0.0)) for k in moved["motion"]}) > 1


def bodies(collider, folder):
    """Positions of an animated collider at every frame, z up: the archive has y up."""
    frames = np.load(os.path.join(folder, collider["animation"]))["V"].astype(float)
    return np.stack([frames[:, :, 0], -frames[:, :, 2], frames[:, :, 1]], 2)


def posed(collider, start, seconds, frame, folder):
    """Where a collider is."""
    if "animation" in collider:
        if "_frames" not in collider:
            collider["_frames"] = bodies(collider, folder)
        return collider["_frames"][min(frame, len(collider["_frames"]) - 1)]
    r, shift = pose(collider, seconds)
    center = np.array(collider.get("center", [0, 0, 0]), float)
    return (start - center) @ r.T + center + shift


def pinned(pin, start):
    if "indices" in pin:
        return np.array(pin["indices"])
    low, high = np.array(pin["select_box"][0]), np.array(pin["select_box"][1])
    return np.flatnonzero(((start >= low) & (start <= high)).all(1))


# ---- to Toile ----

_settings = None


def known_settings():
    global _settings
    if _settings is None:
        said = json.loads(subprocess.check_output([TOILE, "settings", "--json"], text=True))
        rows = said["settings"] if isinstance(said, dict) else said
        _settings = {row["id"] for row in rows}
    return _settings


def write(scene, folder, into, settings=None, world=None):
    """Writes the scene and its meshes into a folder and returns the scene's path. `folder` is what the neutral scene's
    file names are seen from, `world` (variants.py) where it is put."""
    import variants
    world = world or variants.World()
    os.makedirs(into, exist_ok=True)
    fps, last = scene["fps"], scene["frames"] - 1
    cloth = scene["material"]
    gap = scene["contact_gap_m"]
    wanted = {"gravity": list(world.vectors(scene["gravity"])), "contact_thickness": gap, "self_collision": "on", "self_thickness": gap,
              "self_friction": scene["friction"]["cloth_cloth"], **(settings or {})}
    made = {"toile": 1, "name": scene["name"], "fps": fps, "frames": [0, last],
            "settings": {k: v for k, v in wanted.items() if k in known_settings()},
            "fabrics": {"cloth": {"density": cloth["areal_density"], "stretch_warp": cloth["stretch_N_per_m"],
                                  "stretch_weft": cloth["stretch_N_per_m"], "shear": cloth["shear_N_per_m"],
                                  "bend_warp": cloth["bending_N_m"], "bend_weft": cloth["bending_N_m"]}},
            "garments": [], "colliders": [], "pins": []}
    for i, given in enumerate(scene["cloth"]):
        vertices, faces = load(os.path.join(folder, given["mesh"]))
        name = "cloth_%d" % i
        placed, order, number = world.order(vertices, faces)
        save(os.path.join(into, name + ".obj"), placed, order, material(placed, order))
        made["garments"].append({"name": name, "fabric": "cloth", "obj": name + ".obj", **given.get("toile", {})})
        made["pins"] += [write_pin(pin, name, number[pinned(pin, vertices)], fps, last, world) for pin in given["pins"]]
    for i, given in enumerate(scene["colliders"]):
        name = "collider_%d" % i
        made["colliders"].append(write_collider(given, name, folder, into, fps, last, world))
        made["colliders"][-1]["friction"] = scene["friction"]["cloth_collider"]
        made["colliders"][-1].update(given.get("toile", {}))
    path = os.path.join(into, "scene.json")
    with open(path, "w") as file:
        json.dump(made, file, indent=1)
    return path


def write_pin(pin, garment, vertices, fps, last, world):
    made = {"garment": garment, "select": {"vertices": [int(v) for v in vertices]}}
    begin = 0
    if "from_t" in pin:
        begin = int(round(pin["from_t"] * fps))
        made.update(grab=True, frames=[begin + 1, last])
    if moves(pin):
        keys = []
        for frame in range(begin, last + 1):
            r, shift = pose(pin, frame / fps)
            keys.append({"frame": frame, "translate": list(world.vectors(shift)), "rotate": euler(world.rotation(r))})
        made["motion"] = {"keys": keys, "about": list(world.points(pin.get("center", [0, 0, 0])))}
    return made


def write_collider(given, name, folder, into, fps, last, world):
    vertices, faces = load(os.path.join(folder, given["mesh"]))
    if "animation" in given:
        for frame, positions in enumerate(bodies(given, folder)[:last + 1]):
            save(os.path.join(into, "%s_%04d.obj" % (name, frame)), world.points(positions), faces)
        return {"name": name, "shape": "mesh", "obj_sequence": name + "_####.obj", "hold": True}
    save(os.path.join(into, name + ".obj"), world.points(vertices), faces)
    made = {"name": name, "shape": "mesh", "obj": name + ".obj"}
    if moves(given):
        center = world.points(given.get("center", [0, 0, 0]))
        keys = []
        for frame in range(last + 1):
            r, shift = pose(given, frame / fps)
            r, shift = world.rotation(r), world.vectors(shift)
            keys.append({"frame": frame, "origin": list(center + shift - r @ center), "rotate": euler(r)})
        made["motion"] = {"keys": keys}
    return made


# ---- baking ----

class Baked:
    """What came of a bake: exit code, what it said, seconds it took and seconds of processor time, report, positions of all
    cloths (frames, vertices, 3)."""

    def __init__(self, code, said, seconds, processor, report, positions):
        self.code, self.said, self.seconds, self.processor = code, said, seconds, processor
        self.report, self.positions = report, positions


def bake(path, folder, threads=1, frames=None, options=(), timeout=None):
    """A bake that takes longer than `timeout` seconds is stopped; what it has made counts."""
    import h5py
    cache, report = os.path.join(folder, "cache.h5"), os.path.join(folder, "report.json")
    for old in (cache, report):
        if os.path.exists(old):
            os.remove(old)
    command = [TOILE, "bake", path, "-o", cache, "--threads", str(threads), "--progress", "none", "--report", report]
    if frames is not None:
        command += ["--frames", "0-%d" % (frames - 1)]
    began, used = time.time(), os.times()
    child = subprocess.Popen(command + list(options), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={"OMP_WAIT_POLICY": "passive", **os.environ})
    try:
        said, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGINT)
        try:
            said, _ = child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            child.kill()
            said, _ = child.communicate()
    seconds, now = time.time() - began, os.times()
    processor = now.children_user + now.children_system - used.children_user - used.children_system
    positions = None
    try:
        with h5py.File(cache, "r", swmr=True) as file:      # also one whose writer was killed
            names = [g["name"] for g in json.load(open(path))["garments"]]
            each = [file["garments/%s/positions" % name][...] for name in names]
            positions = np.concatenate([e[:min(map(len, each))] for e in each], axis=1).astype(float)
    except (OSError, KeyError):
        pass
    whole = json.load(open(report)) if os.path.exists(report) else {}
    return Baked(child.returncode, said.strip(), seconds, processor, whole, positions)
