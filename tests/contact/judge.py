"""A judge of contact that shares nothing with what it judges: triangles that meet, vertices inside closed colliders,
stretch, and whatever else a neutral scene (neutral.py) asks for under "pass".

Signs of determinants are taken in double precision where their error bound allows it (Shewchuk 1997, 3-D orientation
filter), and in rational numbers where not, so that a count is exact for the positions given. Triangles that meet only in
a vertex or edge that they share do not count; a touch does."""
import os
from fractions import Fraction

import numpy as np

import neutral

EPSILON = 2.0 ** -53
FILTER = (7 + 56 * EPSILON) * EPSILON


# ---- signs ----

def orient(a, b, c, d):
    """Sign of the volume of a, b, c, d, and whether it is certain; arrays (n, 3)."""
    p, q, r = a - d, b - d, c - d
    x = q[:, 1] * r[:, 2], q[:, 2] * r[:, 1]
    y = r[:, 1] * p[:, 2], r[:, 2] * p[:, 1]
    z = p[:, 1] * q[:, 2], p[:, 2] * q[:, 1]
    value = p[:, 0] * (x[0] - x[1]) + q[:, 0] * (y[0] - y[1]) + r[:, 0] * (z[0] - z[1])
    size = abs(p[:, 0]) * (abs(x[0]) + abs(x[1])) + abs(q[:, 0]) * (abs(y[0]) + abs(y[1])) + abs(r[:, 0]) * (abs(z[0]) + abs(z[1]))
    return np.sign(value).astype(np.int8), abs(value) > FILTER * size


def exact_orient(a, b, c, d):
    p, q, r = ([u - v for u, v in zip(w, d)] for w in (a, b, c))
    value = (p[0] * (q[1] * r[2] - q[2] * r[1]) + q[0] * (r[1] * p[2] - r[2] * p[1]) + r[0] * (p[1] * q[2] - p[2] * q[1]))
    return (value > 0) - (value < 0)


def exact_side(a, b, c):
    value = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    return (value > 0) - (value < 0)


def exact_meets(p, q, a, b, c):
    """Whether the segment p q and the triangle a b c have a point in common."""
    p, q, a, b, c = ([Fraction(float(x)) for x in point] for point in (p, q, a, b, c))
    s, t = exact_orient(a, b, c, p), exact_orient(a, b, c, q)
    if s * t > 0:
        return False
    if s or t:
        sides = {exact_orient(p, q, a, b), exact_orient(p, q, b, c), exact_orient(p, q, c, a)} - {0}
        return len(sides) < 2
    u, v = [x - y for x, y in zip(b, a)], [x - y for x, y in zip(c, a)]
    normal = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]
    keep = [k for k in range(3) if k != max(range(3), key=lambda k: abs(normal[k]))]
    p, q, a, b, c = ([point[k] for k in keep] for point in (p, q, a, b, c))
    around = exact_side(a, b, c)
    for point in (p, q):
        if all(exact_side(*edge, point) * around >= 0 for edge in ((a, b), (b, c), (c, a))):
            return True
    for e, f in ((a, b), (b, c), (c, a)):
        if exact_side(p, q, e) * exact_side(p, q, f) <= 0 and exact_side(e, f, p) * exact_side(e, f, q) <= 0:
            if any((exact_side(p, q, e), exact_side(p, q, f), exact_side(e, f, p), exact_side(e, f, q))):
                return True
            if all(min(p[k], q[k]) <= max(e[k], f[k]) and min(e[k], f[k]) <= max(p[k], q[k]) for k in (0, 1)):
                return True
    return False


def apart(segment, triangle):
    """Pairs between which a direction in the triangle's plane shows a gap that rounding cannot make: (n,)."""
    points = np.concatenate([segment, triangle], axis=1)
    points = points - points.mean(1, keepdims=True)
    size = abs(points).max((1, 2))
    normal = np.cross(triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 0])
    edges = [triangle[:, 1] - triangle[:, 0], triangle[:, 2] - triangle[:, 1], triangle[:, 0] - triangle[:, 2],
             segment[:, 1] - segment[:, 0]]
    edges += [segment[:, i] - triangle[:, j] for i in range(2) for j in range(3)]
    found = np.zeros(len(segment), bool)
    for direction in [np.cross(normal, e) for e in edges] + [segment[:, 1] - segment[:, 0]]:
        length = np.linalg.norm(direction, axis=1)
        length[length == 0] = 1
        along = np.einsum("nkx,nx->nk", points, direction / length[:, None])
        gap = np.maximum(along[:, :2].min(1) - along[:, 2:].max(1), along[:, 2:].min(1) - along[:, :2].max(1))
        found |= gap > 1e-13 * size
    return found


def meets(segment, triangle):
    """Whether each segment (n, 2, 3) and triangle (n, 3, 3) have a point in common."""
    p, q = segment[:, 0], segment[:, 1]
    a, b, c = triangle[:, 0], triangle[:, 1], triangle[:, 2]
    s, certain_s = orient(a, b, c, p)
    t, certain_t = orient(a, b, c, q)
    same_side = (s == t) & certain_s & certain_t & (s != 0)
    x, certain_x = orient(p, q, a, b)
    y, certain_y = orient(p, q, b, c)
    z, certain_z = orient(p, q, c, a)
    beside = (certain_x & certain_y & (x * y < 0)) | (certain_y & certain_z & (y * z < 0)) | (certain_z & certain_x & (z * x < 0))
    found = certain_s & certain_t & (s * t < 0) & certain_x & certain_y & certain_z & (x == y) & (y == z)
    # A line that goes past the triangle misses it unless the two are in one plane, which "beside" cannot tell.
    crossing = certain_s | certain_t
    open_ = np.flatnonzero(~(same_side | (beside & crossing) | found))
    open_ = open_[~apart(segment[open_], triangle[open_])]
    for i in open_:
        found[i] = exact_meets(p[i], q[i], a[i], b[i], c[i])
    return found


# ---- meshes ----

def neighbours(low, high, owner):
    """Pairs (n, 2) of boxes of different owners, or of one mesh with itself if owner is None, that overlap."""
    extent = np.median((high - low).max(1))
    cell = max(2 * extent, 1e-9)
    first, last = np.floor(low / cell).astype(np.int64), np.floor(high / cell).astype(np.int64)
    counts = last - first + 1
    total = counts.prod(1)
    large = np.flatnonzero(total > 100)
    small = np.flatnonzero(total <= 100)
    found = []
    each = np.repeat(small, total[small])
    number = np.arange(len(each)) - np.repeat(np.cumsum(total[small]) - total[small], total[small])
    n = counts[each]
    at = first[each] + np.stack([number % n[:, 0], number // n[:, 0] % n[:, 1], number // (n[:, 0] * n[:, 1])], 1)
    _, key = np.unique(at, axis=0, return_inverse=True)
    key = key.reshape(-1)
    order = np.argsort(key, kind="stable")
    key, each = key[order], each[order]
    step = 1
    while True:
        same = np.flatnonzero(key[step:] == key[:-step]) if step < len(key) else []
        if len(same) == 0:
            break
        i, j = each[same], each[same + step]
        overlap = (low[i] <= high[j]).all(1) & (low[j] <= high[i]).all(1) & (i != j)
        if owner is not None:
            overlap &= owner[i] != owner[j]
        found.append(np.sort(np.stack([i[overlap], j[overlap]], 1), axis=1))
        step += 1
    for i in large:
        j = np.flatnonzero((low[i] <= high).all(1) & (low <= high[i]).all(1))
        j = j[j != i] if owner is None else j[owner[j] != owner[i]]
        found.append(np.sort(np.stack([np.full(len(j), i), j], 1), axis=1))
    return np.unique(np.concatenate(found), axis=0) if found else np.zeros((0, 2), np.int64)


def folded(corners, faces, pairs):
    """Pairs that share two vertices and lie on each other exactly."""
    count = 0
    for i, j in pairs:
        shared = [v for v in faces[i] if v in faces[j]]
        if len(shared) == 3:
            count += 1
            continue
        p = corners[i][[v not in shared for v in faces[i]]][0]
        q = corners[j][[v not in shared for v in faces[j]]][0]
        a, b = (corners[i][list(faces[i]).index(v)] for v in shared)
        if exact_orient(*([Fraction(float(x)) for x in w] for w in (a, b, p, q))) != 0:
            continue
        a, b, p, q = ([Fraction(float(x)) for x in w] for w in (a, b, p, q))
        e = [y - x for x, y in zip(a, b)]
        def off(w):
            t = sum(x * (y - z) for x, y, z in zip(e, w, a)) / sum(x * x for x in e)
            return [y - z - t * x for x, y, z in zip(e, w, a)]
        count += sum(x * y for x, y in zip(off(p), off(q))) > 0
    return count


def count_pairs(vertices, faces, owner=None):
    """Pairs of triangles that meet: of a mesh with itself, or of triangles with different owners."""
    corners = vertices[faces]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    whole = np.isfinite(corners).all((1, 2)) & (area > 0)
    corners, faces = corners[whole], faces[whole]
    owner = None if owner is None else owner[whole]
    pairs = neighbours(corners.min(1), corners.max(1), owner)
    if len(pairs) == 0:
        return 0
    same = faces[pairs[:, 0]][:, :, None] == faces[pairs[:, 1]][:, None, :]
    shared = same.sum((1, 2))
    count = 0
    # Nothing shared: six edges against the other triangle.
    free = pairs[shared == 0]
    hit = np.zeros(len(free), bool)
    for one, other in ((0, 1), (1, 0)):
        for k in range(3):
            left = np.flatnonzero(~hit)
            mine, its = corners[free[left, one]], corners[free[left, other]]
            hit[left] = meets(mine[:, [k, (k + 1) % 3]], its)
    count += int(hit.sum())
    # One vertex shared: the edges opposite to it.
    touching, at = pairs[shared == 1], same[shared == 1]
    hit = np.zeros(len(touching), bool)
    for one, other, k in ((0, 1, at.any(2).argmax(1)), (1, 0, at.any(1).argmax(1))):
        mine = corners[touching[:, one]]
        rows = np.arange(len(mine))
        segment = np.stack([mine[rows, (k + 1) % 3], mine[rows, (k + 2) % 3]], 1)
        left = np.flatnonzero(~hit)
        hit[left] = meets(segment[left], corners[touching[left, other]])
    count += int(hit.sum())
    # An edge shared: only triangles folded flat onto each other, which are rare enough to be asked one by one.
    beside = pairs[shared >= 2]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    if len(beside):
        flat = np.einsum("nx,nx->n", normal[beside[:, 0]], normal[beside[:, 1]])
        turned = direction_of_shared(faces, beside)
        count += folded(corners, faces, beside[np.where(turned, flat < -1 + 1e-9, flat > 1 - 1e-9)])
    return count


def direction_of_shared(faces, pairs):
    """Whether two triangles run through their shared edge in opposite directions, as in an oriented mesh: then they
    lie on each other when their normals are opposite."""
    a, b = faces[pairs[:, 0]], faces[pairs[:, 1]]
    opposite = np.zeros(len(pairs), bool)
    for i in range(3):
        for j in range(3):
            opposite |= (a[:, i] == b[:, (j + 1) % 3]) & (a[:, (i + 1) % 3] == b[:, j])
    return opposite


def count_between(v1, f1, v2, f2):
    low, high = v2.min(0), v2.max(0)
    near = ((v1[f1].min(1) <= high) & (v1[f1].max(1) >= low)).all(1)
    faces = np.concatenate([f1[near], f2 + len(v1)])
    return count_pairs(np.concatenate([v1, v2]), faces, np.repeat([0, 1], [near.sum(), len(f2)]))


def inside(vertices, faces, points):
    """How many points a closed mesh winds around (van Oosterom and Strackee 1983, solid angle)."""
    low, high = vertices.min(0), vertices.max(0)
    points = points[((points > low) & (points < high)).all(1)]
    count = 0
    for part in np.array_split(points, max(1, len(points) * len(faces) // 2000000)):
        a, b, c = (vertices[faces[:, k]][None] - part[:, None] for k in range(3))
        la, lb, lc = (np.linalg.norm(w, axis=2) for w in (a, b, c))
        dot = lambda p, q: (p * q).sum(2)
        bottom = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb
        angle = 2 * np.arctan2(dot(a, np.cross(b, c)), bottom)
        count += int((abs(angle.sum(1)) > 2 * np.pi).sum())
    return count


def stretches(rest, faces, vertices):
    """Largest singular value of every triangle's deformation gradient."""
    def frame(points):
        a, b = points[faces[:, 1]] - points[faces[:, 0]], points[faces[:, 2]] - points[faces[:, 0]]
        return a, b
    a, b = frame(rest)
    length = np.linalg.norm(a, axis=1)
    x = (a * b).sum(1) / length
    y = np.linalg.norm(np.cross(a, b), axis=1) / length
    p, q = frame(vertices)
    u = p / length[:, None]                                # image of the unit vector along a
    v = (q - u * x[:, None]) / y[:, None]
    e, f, g = (u * u).sum(1), (u * v).sum(1), (v * v).sum(1)
    return np.sqrt((e + g) / 2 + np.sqrt(((e - g) / 2) ** 2 + f * f))


def linking(a, b):
    """Gauss linking number of two closed lines: signed solid angles of all pairs of their segments (Klenin and
    Langowski 2000, method 1a)."""
    total = 0.0
    following = np.roll(b, -1, axis=0)
    for p, q in zip(a, np.roll(a, -1, axis=0)):
        corners = [b - p, following - p, following - q, b - q]
        normals = [np.cross(corners[k], corners[(k + 1) % 4]) for k in range(4)]
        normals = [n / (np.linalg.norm(n, axis=1)[:, None] + 1e-300) for n in normals]
        angle = sum(np.arcsin(np.clip((normals[k] * normals[(k + 1) % 4]).sum(1), -1, 1)) for k in range(4))
        total += (angle * np.sign((np.cross(following - b, q - p) * corners[0]).sum(1))).sum()
    return total / (4 * np.pi)


# ---- scenes ----

def counts(scene, folder, positions, pairs=count_pairs, between=count_between, inside=inside):
    """(cloth with cloth, cloth with colliders, vertices inside a collider) of every frame up to one that is not finite."""
    parts = [neutral.load(os.path.join(folder, c["mesh"])) for c in scene["cloth"]]
    offset = np.cumsum([0] + [len(v) for v, _ in parts])
    faces = np.vstack([f + o for (_, f), o in zip(parts, offset)])
    colliders = [(c, *neutral.load(os.path.join(folder, c["mesh"]))) for c in scene["colliders"]]
    rows = []
    for frame, p in enumerate(positions):
        if not np.isfinite(p).all():
            break
        now = [(neutral.posed(c, v, frame / scene["fps"], frame, folder), f) for c, v, f in colliders]
        rows.append((pairs(p, faces), sum(between(p, faces, v, f) for v, f in now), sum(inside(v, f, p) for v, f in now)))
    return np.array(rows).reshape(-1, 3)


def judge(scene, folder, positions, counted, out=print):
    """Prints a line per criterion; returns whether all hold. `positions`: (frames, vertices, 3), `counted`: as counts()
    says."""
    wanted, fps = scene["pass"], scene["fps"]
    parts = [neutral.load(os.path.join(folder, c["mesh"])) for c in scene["cloth"]]
    offset = np.cumsum([0] + [len(v) for v, _ in parts])
    rest = np.vstack([v for v, _ in parts])
    faces = np.vstack([f + o for (_, f), o in zip(parts, offset)])
    good = True

    def say(what, holds, text):
        nonlocal good
        good &= bool(holds)
        out("%-4s %-45s %s" % ("ok" if holds else "BAD", what, text))

    say("frames", len(positions) >= scene["frames"], "%d of %d" % (len(positions), scene["frames"]))
    say("finite", np.isfinite(positions).all(), "%d non-finite numbers" % (~np.isfinite(positions)).sum())
    if not np.isfinite(positions).all():
        return False
    say("starts in the given state", abs(positions[0] - rest).max() < 1e-5, "")
    worst, held = 0.0, 0
    for c, o, (start, _) in zip(scene["cloth"], offset, parts):
        for pin in c["pins"]:
            at = neutral.pinned(pin, start)
            begin = int(round(pin.get("from_t", 0.0) * fps))
            held += len(at)
            if begin < len(positions):
                base = positions[begin, o + at] if begin else start[at]
                for frame in range(begin, len(positions)):
                    target = neutral.posed(pin, base, frame / fps, frame, folder)
                    worst = max(worst, abs(target - positions[frame, o + at]).max())
    if held:
        say("pins follow their motion", worst < 2e-3, "%d vertices, worst %.2e m" % (held, worst))
    own, met, within = counted.T
    say("cloth-cloth pairs", max(own) == 0, "max %d, frames with any: %d" % (max(own), sum(n > 0 for n in own)))
    free = [n for n in range(len(positions)) if not any(a <= n <= b for a, b in wanted.get("pinched_frames", []))]
    bad = max([met[n] for n in free], default=0), max([within[n] for n in free], default=0)
    say("cloth-collider pairs", bad[0] == 0, "max %d, in frames %s" % (bad[0], [n for n in free if met[n]][:5]))
    say("vertices inside a collider", bad[1] == 0, "max %d" % bad[1])
    largest = max(stretches(rest, faces, p).max() for p in positions)
    say("largest stretch", largest <= wanted["max_stretch"], "%.3f (limit %.2f)" % (largest, wanted["max_stretch"]))
    speed = np.linalg.norm(np.diff(positions, axis=0), axis=2) * fps if len(positions) > 1 else np.zeros((1, 1))
    if "max_speed_m_s" in wanted:
        say("largest speed", speed.max() <= wanted["max_speed_m_s"], "%.2f m/s" % speed.max())
    if "rest_speed_m_s" in wanted:
        late = np.percentile(speed[-6:], 95)
        say("at rest in the end", late < wanted["rest_speed_m_s"], "95th percentile %.4f m/s" % late)
    z = positions[-1][:, 2]
    for key, value in (("lowest_below_m", z.min()), ("highest_below_m", z.max())):
        if key in wanted:
            say(key.replace("_", " "), value < wanted[key], "%.3f (limit %.3f)" % (value, wanted[key]))
    if "lowest_above_m" in wanted:
        say("lowest above m", z.min() > wanted["lowest_above_m"], "%.3f (limit %.3f)" % (z.min(), wanted["lowest_above_m"]))
    if "box_half_m" in wanted:
        times, halves = zip(*wanted["box_half_m"])
        over = max(abs(p).max() - np.interp(n / fps, times, halves) for n, p in enumerate(positions))
        say("inside the walls", over <= 0, "%.2e m over" % over)
    if "linked_lines" in wanted:
        (m, a), (n, b) = wanted["linked_lines"]
        line = lambda p: (p[offset[m]:][a[0]:a[1]], p[offset[n]:][b[0]:b[1]])
        numbers = [linking(*line(p)) for p in [rest, *positions]]
        say("linking number", abs(abs(numbers[0]) - 1) < 0.1 and max(abs(x - numbers[0]) for x in numbers) < 0.1,
            "%.3f, then %.3f to %.3f" % (numbers[0], min(numbers), max(numbers)))
    if "layers_on_axis" in wanted:
        wrong = sum(heights(p[o:o + len(v)], f)[1] > heights(p[q:q + len(w)], g)[0]
                    for p in positions for o, (v, f), q, (w, g) in zip(offset, parts, offset[1:], parts[1:]))
        say("layer order at the axis", wrong == 0, "%d inversions" % wrong)
    return good


def heights(vertices, faces):
    """Lowest and highest z over the z axis; (inf, -inf) where there is nothing."""
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    side = lambda p, q: p[:, 0] * q[:, 1] - p[:, 1] * q[:, 0]
    u, v, w = side(b, c), side(c, a), side(a, b)
    total = u + v + w
    over = ((u >= 0) & (v >= 0) & (w >= 0) | (u <= 0) & (v <= 0) & (w <= 0)) & (abs(total) > 1e-14)
    if not over.any():
        return np.inf, -np.inf
    z = ((u * a[:, 2] + v * b[:, 2] + w * c[:, 2])[over]) / total[over]
    return z.min(), z.max()
