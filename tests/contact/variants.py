"""The same scene in another world: turned, far from the origin, with its vertices and triangles in another order, or faster. A bake is
made there and its positions are brought back, so that the judge sees the scene it knows."""
import copy
import os

import numpy as np

import neutral

NAMES = ("rotated", "far", "permuted", "fast")
FASTER = 1.5
NAMES_TIMES = ("after_release", "box_half_m", "pinched_frames")   # what is asked for at certain times
FAR = np.array([100.0, -70.0, 30.0])            # m; a cache's single precision is 8e-6 m there
AXIS, DEGREES = [0.3, -0.8, 0.52], 117.0


class World:
    """p -> turned p + far; order[new] = old for the vertices of each cloth."""

    def __init__(self, variant=None):
        self.turned = neutral.turn(AXIS, DEGREES) if variant == "rotated" else np.eye(3)
        self.far = FAR if variant == "far" else np.zeros(3)
        self.shuffles = variant == "permuted"
        self.orders = []

    def points(self, p):
        return np.asarray(p, float) @ self.turned.T + self.far

    def vectors(self, v):
        return np.asarray(v, float) @ self.turned.T

    def rotation(self, r):
        return self.turned @ r @ self.turned.T

    def order(self, vertices, faces):
        """A cloth as it is given to the program, and for each old vertex its new number."""
        n, random = len(vertices), np.random.default_rng(4)
        order = random.permutation(n) if self.shuffles else np.arange(n)
        number = np.empty(n, int)
        number[order] = np.arange(n)
        self.orders.append(number)
        faces = number[faces]
        if self.shuffles:
            faces = np.roll(random.permutation(faces), 1, axis=1)
        return self.points(vertices[order]), faces, number

    def back(self, positions):
        """(frames, vertices, 3) of all cloths as the scene has them."""
        offset = np.cumsum([0] + [len(number) for number in self.orders])
        columns = np.concatenate([o + number for o, number in zip(offset, self.orders)])
        return (positions[:, columns] - self.far) @ self.turned


def faster(scene, folder):
    """The scene with motions in less time and file names that hold from anywhere; None where what is asked for names times."""
    if any("animation" in c for c in scene["colliders"]) or any("_frames_" in key or key in NAMES_TIMES for key in scene["pass"]):
        return None
    made = copy.deepcopy(scene)
    for thing in made["cloth"] + made["colliders"]:
        thing["mesh"] = os.path.join(os.path.abspath(folder), thing["mesh"])
    for moved in made["colliders"] + [pin for cloth in made["cloth"] for pin in cloth["pins"]]:
        begin = moved.get("from_t", 0.0)
        for key in moved["motion"]:
            key["t"] = begin + (key["t"] - begin) / FASTER
    return made
