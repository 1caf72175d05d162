"""Scenes of contact made by code, in the neutral form of robustness/scenes.json: layers on a sphere, a twisted tube, a
funnel, a bed of needles, a compactor, a pinched sleeve, a sheet pulled through a ring, linked loops, an armpit that closes.

    scenes.py FOLDER [--small]      writes scenes.json and meshes/*.obj

A frozen cloth passes none of them: each has pins that move, or asks for a way covered. Metres, z up, 24 frames/s."""
import json
import math
import os
import sys

import numpy as np

import neutral

FPS = 24
CLOTH = {"areal_density": 0.2, "stretch_N_per_m": 1000.0, "shear_N_per_m": 100.0, "bending_N_m": 5e-6}
REST = [{"t": 0.0, "translate": [0, 0, 0]}]


# ---- meshes ----

def quads(nu, nv, round_u=False):
    """Triangles of nu x nv vertices in rows along u, diagonals alternating; closed along u if it is round."""
    faces = []
    for j in range(nv - 1):
        for i in range(nu if round_u else nu - 1):
            a, b = j * nu + i, j * nu + (i + 1) % nu
            c, d = b + nu, a + nu
            faces += [[a, b, c], [a, c, d]] if (i + j) % 2 == 0 else [[a, b, d], [b, c, d]]
    return np.array(faces)


def sheet(size, n, height, degrees=0.0, length=None):
    """size x length metres with n vertices along size, centred on the z axis."""
    length = length or size
    m = 1 + round((n - 1) * length / size)
    x, y = np.meshgrid(np.linspace(-size / 2, size / 2, n), np.linspace(-length / 2, length / 2, m))
    vertices = np.stack([x.ravel(), y.ravel(), np.full(n * m, float(height))], 1)
    return vertices @ neutral.turn([0, 0, 1], degrees).T, quads(n, m)


def tube(radius, length, around, along):
    """Open, about the x axis, rows of `around` vertices."""
    a = 2 * math.pi * np.arange(around) / around
    vertices = np.concatenate([np.stack([np.full(around, x), radius * np.cos(a), radius * np.sin(a)], 1)
                               for x in np.linspace(-length / 2, length / 2, along)])
    return vertices, quads(around, along, True)


def revolved(profile, around):
    """Solid about the z axis from a closed profile of (r, z), counter-clockwise with r to the right and z up."""
    a = 2 * math.pi * np.arange(around) / around
    rows = [np.stack([r * np.cos(a), r * np.sin(a), np.full(around, float(z))], 1) for r, z in profile]
    return np.concatenate(rows + rows[:1])[:around * len(profile)], wrapped(around, len(profile))


def wrapped(around, rows):
    faces = []
    for j in range(rows):
        for i in range(around):
            a, b = j * around + i, j * around + (i + 1) % around
            c, d = (j + 1) % rows * around + (i + 1) % around, (j + 1) % rows * around + i
            faces += [[a, b, c], [a, c, d]]
    return np.array(faces)


def capped(profile, around):
    """Solid about the z axis from a profile of (r, z) that begins and ends on the axis, from below to above."""
    a = 2 * math.pi * np.arange(around) / around
    rows = [np.stack([r * np.cos(a), r * np.sin(a), np.full(around, float(z))], 1) for r, z in profile[1:-1]]
    vertices = np.concatenate(rows + [np.array([[0, 0, profile[0][1]], [0, 0, profile[-1][1]]], float)])
    faces = []
    for j in range(len(rows) - 1):
        for i in range(around):
            p, q = j * around + i, j * around + (i + 1) % around
            faces += [[p, q, q + around], [p, q + around, p + around]]
    low, high, top = len(vertices) - 2, len(vertices) - 1, (len(rows) - 1) * around
    for i in range(around):
        faces += [[low, (i + 1) % around, i], [high, top + i, top + (i + 1) % around]]
    return vertices, np.array(faces)


def sphere(radius, around):
    angles = np.linspace(-math.pi / 2, math.pi / 2, around // 2 + 1)
    return capped([(radius * math.cos(a), radius * math.sin(a)) for a in angles], around)


def rod(radius, length, around):
    """Along the x axis, with flat ends."""
    vertices, faces = capped([(0, -length / 2)] + [(radius, z) for z in np.linspace(-length / 2, length / 2, 9)] + [(0, length / 2)], around)
    return vertices @ neutral.turn([0, 1, 0], 90).T, faces


def box(low, high):
    x, y, z = zip(low, high)
    vertices = np.array([[x[i & 1], y[i >> 1 & 1], z[i >> 2]] for i in range(8)], float)
    faces = [[0, 2, 3], [0, 3, 1], [4, 5, 7], [4, 7, 6], [0, 1, 5], [0, 5, 4], [2, 6, 7], [2, 7, 3], [0, 4, 6], [0, 6, 2],
             [1, 3, 7], [1, 7, 5]]
    return vertices, np.array(faces)


def join(parts):
    offset = np.cumsum([0] + [len(v) for v, _ in parts])
    return np.vstack([v for v, _ in parts]), np.vstack([f + o for (_, f), o in zip(parts, offset)])


# ---- scenes ----

class Book:
    def __init__(self, folder):
        self.folder, self.scenes = folder, []
        os.makedirs(os.path.join(folder, "meshes"), exist_ok=True)

    def mesh(self, name, mesh):
        path = "meshes/%s.obj" % name
        neutral.save(os.path.join(self.folder, path), *mesh)
        return path

    def add(self, name, frames, cloth, colliders, wanted, friction=(0.2, 0.2), gravity=-9.81, gap=0.001):
        """cloth: (mesh, pins) each; colliders: (mesh, motion) each, or (mesh, positions in every frame)."""
        tag = name.split("_")[0].lower()
        wanted = {"intersecting_pairs_every_frame": 0, "cloth_collider_pairs_every_frame": 0, "nonfinite": 0, **wanted}
        self.scenes.append({
            "name": name, "gravity": [0, 0, gravity], "frames": frames, "fps": FPS, "contact_gap_m": gap,
            "material": CLOTH, "friction": {"cloth_cloth": friction[0], "cloth_collider": friction[1]},
            "cloth": [{"mesh": self.mesh("%s_cloth%d" % (tag, i), m), "pins": pins} for i, (m, pins) in enumerate(cloth)],
            "colliders": [self.collider("%s_solid%d" % (tag, i), m, motion) for i, (m, motion) in enumerate(colliders)],
            "pass": wanted})

    def collider(self, name, mesh, motion):
        made = {"mesh": self.mesh(name, mesh)}
        if isinstance(motion, list):
            return {**made, "motion": motion}
        path = "meshes/%s.npz" % name
        np.savez(os.path.join(self.folder, path), V=np.stack([motion[:, :, 0], motion[:, :, 2], -motion[:, :, 1]], 2))  # y up
        return {**made, "animation": path}


def layers(book, small):
    count, n, frames = (3, 17, 30) if small else (5, 33, 72)
    cloth = [(sheet(0.5, n, 0.17 + 0.005 * i, 13.0 * i), []) for i in range(count)]
    solids = [(sphere(0.15, 24 if small else 48), REST), (box([-1, -1, -0.3], [1, 1, -0.25]), REST)]
    wanted = {"max_stretch": 1.08, "lowest_below_m": 0.05, "layers_on_axis": True}
    book.add("O1_layers_on_a_sphere", frames, cloth, solids, wanted if small else {**wanted, "rest_speed_m_s": 0.1}, (0.3, 0.3))


def twisted_tube(book, small):
    around, along, seconds, turns = (24, 17, 1.5, 1.0) if small else (64, 49, 5.0, 3.0)
    def pin(side):
        box_ = [[-1, -1, -1], [-0.1499, 1, 1]] if side < 0 else [[0.1499, -1, -1], [1, 1, 1]]
        return {"select_box": box_, "axis": [1, 0, 0], "center": [0, 0, 0], "motion": [
            {"t": 0, "translate": [0, 0, 0], "rotate_deg": 0},
            {"t": seconds, "translate": [-side * 0.05, 0, 0], "rotate_deg": side * 180 * turns}]}
    book.add("O2_twisted_tube", round(FPS * seconds) + 1, [(tube(0.08, 0.3, around, along), [pin(-1), pin(1)])], [],
             {"max_stretch": 1.6, "zones_at_most": 10} if small else {"max_stretch": 1.6}, gravity=0)  # pressed, not frozen


def funnel(book, small):
    n, frames, count = (17, 48, 1) if small else (33, 96, 2)
    wall = 0.01
    inner = [(0.22, 0.2), (0.06, 0.03), (0.06, -0.1)]
    solid = revolved(inner + [(r + wall, z) for r, z in reversed(inner)], 24 if small else 48)
    plunger = capped([(0, 0.27), (0.035, 0.27), (0.035, 0.9), (0, 0.9)], 16)
    seconds = (frames - 1) / FPS
    down = [{"t": 0, "translate": [0, 0, 0]}, {"t": 0.3, "translate": [0, 0, 0]}, {"t": seconds, "translate": [0, 0, -0.42]}]
    book.add("O3_funnel", frames, [(sheet(0.3, n, 0.22 + 0.01 * i, 20 * i), []) for i in range(count)],
             [(solid, REST), (plunger, down)], {"max_stretch": 1.3, "lowest_below_m": -0.05})


def needles(book, small):
    n, frames, side = (25, 36, 3) if small else (49, 60, 6)
    step = 0.06
    places = [(step * (i - (side - 1) / 2), step * (j - (side - 1) / 2)) for i in range(side) for j in range(side)]
    bed = join([(v + [x, y, 0], f) for x, y in places for v, f in [capped([(0, 0), (0.003, 0), (0, 0.05)], 4)]])
    size = step * side
    vertices, faces = sheet(size, n, 0.055)
    held = [int(i) for i in np.flatnonzero((vertices[:, 0] < -size / 2 + 1e-6) & (abs(vertices[:, 1]) < size / 6))]
    off = frames / FPS - 0.55
    pull = {"indices": held, "from_t": round(off * FPS) / FPS, "motion": [
        {"t": round(off * FPS) / FPS, "translate": [0, 0, 0]}, {"t": frames / FPS, "translate": [-0.2, 0, 0.1]}]}
    book.add("O4_needles", frames, [((vertices, faces), [pull])], [(bed, REST), (box([-1, -1, -0.05], [1, 1, -0.0005]), REST)],
             {"max_stretch": 1.4})


def compactor(book, small):
    n, frames, count = (17, 40, 1) if small else (33, 84, 2)
    half, closed = 0.2, 0.075 if small else 0.065
    shut, hold = (frames - 1) / FPS * 0.55, (frames - 1) / FPS * 0.7
    end = (frames - 1) / FPS
    solids = []
    for axis in range(3):
        for side in (-1, 1):
            low, high = [-0.4] * 3, [0.4] * 3
            low[axis], high[axis] = (half, half + 0.1) if side > 0 else (-half - 0.1, -half)
            way = [0.0, 0.0, 0.0]
            way[axis] = -side * (half - closed)
            solids.append((box(low, high), [{"t": 0, "translate": [0, 0, 0]}, {"t": shut, "translate": way},
                                            {"t": hold, "translate": way}, {"t": end, "translate": [0, 0, 0]}]))
    vertices, faces = sheet(0.3, n, 0)
    cloth = [((vertices @ neutral.turn([1, 0.3 - i, 0], 12).T + [0, 0, 0.14 * i - 0.06], faces), []) for i in range(count)]
    book.add("O5_compactor", frames, cloth, solids, {"max_stretch": 1.3, "box_half_m": [
        [0, half], [shut, closed], [hold, closed], [end, half]]}, (0.1, 0.1), gravity=0)


def sleeve(book, small, gap):
    around, along, frames = (32, 21, 36) if small else (64, 49, 60)
    pins = [{"select_box": [[-1, -1, -1], [-0.1499, 1, 1]], "motion": REST}]
    close = 0.1 - 0.03 - gap
    end = (frames - 1) / FPS
    def way(side):
        return [{"t": 0, "translate": [0, 0, 0]}, {"t": end * 0.4, "translate": [0, 0, side * close]},
                {"t": end * 0.5, "translate": [0, 0, side * close]}, {"t": end * 0.75, "translate": [0, 0, 0]}]
    solids = [(rod(0.03, 0.4, 24), REST), (box([-0.05, -0.1, 0.1], [0.05, 0.1, 0.16]), way(-1)),
              (box([-0.05, -0.1, -0.16], [0.05, 0.1, -0.1]), way(1))]
    wanted = {"max_stretch": 1.4}
    if gap < 0.002:
        wanted.update(max_stretch=1.6, max_speed_m_s=5.0, pinched_frames=[[int(frames * 0.3), frames - 7]])
    book.add("O6%s_sleeve" % ("a" if gap > 0 else "b"), frames, [(tube(0.045, 0.3, around, along), pins)], solids, wanted, (0.2, 0.4))


def ring(book, small):
    n, frames = (21, 40) if small else (49, 84)
    a = np.linspace(0, 2 * math.pi, 13)[:-1]
    solid = revolved([(0.06 + 0.012 * math.cos(t), 0.012 * math.sin(t)) for t in a], 32 if small else 64)
    size = 0.26
    vertices, faces = sheet(size, n, 0.02)
    order = np.argsort(np.linalg.norm(vertices[:, :2], axis=1), kind="stable")
    seconds = (frames - 8) / FPS
    pull = {"indices": [int(i) for i in order[:5]], "motion": [
        {"t": 0, "translate": [0, 0, 0]}, {"t": 0.3, "translate": [0, 0, -0.02]}, {"t": seconds, "translate": [0, 0, -0.34]}]}
    book.add("O7_ring", frames, [((vertices, faces), [pull])], [(solid, REST)], {"max_stretch": 1.5, "highest_below_m": -0.01}, (0.1, 0.1))


def loops(book, small):
    around, rows, frames = (40, 4, 36) if small else (96, 7, 60)
    vertices, faces = tube(0.1, 0.03, around, rows)                          # about the x axis
    first = vertices @ neutral.turn([0, 1, 0], 90).T                         # about z, in the xy plane
    second = vertices @ neutral.turn([0, 0, 1], 90).T + [0.1, 0, 0]          # about y, in the xz plane
    seconds = (frames - 1) / FPS
    def pull(box_, way):
        return [{"select_box": box_, "motion": [{"t": 0, "translate": [0, 0, 0]}, {"t": seconds, "translate": [way, 0, 0]}]}]
    row = [rows // 2 * around, (rows // 2 + 1) * around]
    book.add("O8_linked_loops", frames, [((first, faces), pull([[-1, -0.04, -1], [-0.08, 0.04, 1]], -0.12)),
                                         ((second, faces), pull([[0.18, -1, -0.04], [1, 1, 0.04]], 0.12))], [],
             {"max_stretch": 1.3, "linked_lines": [[0, row], [1, row]]}, (0.02, 0), gravity=0)


def armpit(book, small):
    """A body in one piece, whose arm comes down into its trunk, with the sleeve and the trunk's cloth between them, and up overhead."""
    rows, frames = (24, 44) if small else (48, 84)
    shoulder, end = np.array([0.18, 0, 0.0]), (frames - 1) / FPS
    keys = [(0, 40), (0.08, 40), (0.33, -7), (0.42, -7), (0.6, 40), (0.9, 125), (1, 125)]
    lowered = lambda t: float(np.interp(t, [end * k for k, _ in keys], [d for _, d in keys]))
    trunk = capped([(0, -0.4)] + [(0.12, z) for z in np.linspace(-0.4, 0.08, 13)] + [(0, 0.08)], 32)
    vertices, faces = rod(0.045, 0.4, 20)
    hanging = lambda v: (v + [0.2, 0, 0]) @ neutral.turn([0, 1, 0], 90).T       # from the origin downwards
    arm = lambda degrees, v: hanging(v) @ neutral.turn([0, 1, 0], -degrees).T + shoulder
    body = lambda degrees: join([trunk, (arm(degrees, vertices), faces)])
    positions = np.stack([body(lowered(n / FPS))[0] for n in range(frames)])
    around = rows * 4 // 3
    sleeve_, sleeve_faces = tube(0.055, 0.24, around, rows)
    first = (arm(lowered(0), sleeve_ - [0.02, 0, 0]), sleeve_faces)
    pin = {"indices": [i for i in range(around) if sleeve_[i, 2] > 0.02], "axis": [0, 1, 0], "center": [float(x) for x in shoulder], "motion": [
        {"t": end * k, "translate": [0, 0, 0], "rotate_deg": lowered(0) - d} for k, d in keys]}
    around = 2 * rows
    dress, dress_faces = tube(0.128, 0.28, around, rows)
    second = (dress @ neutral.turn([0, 1, 0], 90).T - [0, 0, 0.18], dress_faces)
    held = {"indices": [int(i) for i in np.flatnonzero(second[0][:, 2] > -0.0401)], "motion": REST}
    book.add("O9_armpit", frames, [(first, [pin]), (second, [held])], [(body(lowered(0)), positions)],
             {"max_stretch": 1.15, "max_speed_m_s": 6.0, "pinched_frames": [[int(frames * 0.25), int(frames * 0.6)]]}, (0.2, 0.4))


def make(folder, small=False):
    """Returns the path of the scene file."""
    book = Book(folder)
    layers(book, small)
    twisted_tube(book, small)
    funnel(book, small)
    needles(book, small)
    compactor(book, small)
    sleeve(book, small, 0.004)
    sleeve(book, small, -0.003)
    ring(book, small)
    loops(book, small)
    armpit(book, small)
    path = os.path.join(folder, "scenes.json")
    with open(path, "w") as file:
        json.dump({"version": 1, "scenes": book.scenes}, file, indent=1)
    return path


if __name__ == "__main__":
    folders = [word for word in sys.argv[1:] if not word.startswith("-")]
    if len(folders) != 1:
        sys.exit(__doc__)
    print(make(folders[0], "--small" in sys.argv))
