"""Patterns in GarmentCode's format made here, for a body of usual size: centimetres, y up, the front towards +z.

Loops of fronts run counter-clockwise and those of backs clockwise, as GarmentCode has them, so that the end of one edge of a
stitch meets the beginning of the other."""
import math


def panel(points, at, turn=0, curves=None, labels=None, back=False):
    """Points run counter-clockwise; edge i goes from point i to the next. A back is turned over: its edges keep their numbers."""
    count = len(points)
    edges = [{"endpoints": [i, (i + 1) % count]} for i in range(count)]
    for i, curve in (curves or {}).items():
        edges[i]["curvature"] = curve
    for i, label in (labels or {}).items():
        edges[i]["label"] = label
    made = {"translation": list(at), "rotation": [0, 0, turn], "vertices": [list(p) for p in points], "edges": edges}
    return reverse(made) if back else made


def reverse(made):
    """The same outline walked the other way: edge i is edge count - 1 - i then."""
    def turned(edge):
        edge = dict(edge, endpoints=edge["endpoints"][::-1])
        curve = edge.get("curvature")
        if curve and curve["type"] == "circle":
            radius, large, right = curve["params"]
            edge["curvature"] = {"type": "circle", "params": [radius, large, 1 - right]}
        elif curve:
            edge["curvature"] = {"type": curve["type"], "params": [[1 - a, -b] for a, b in curve["params"][::-1]]}
        return edge
    return dict(made, edges=[turned(e) for e in made["edges"][::-1]])


def mirror(made):
    """On the other side of the body, walked the same way around."""
    (x, y, z), (_, _, turn) = made["translation"], made["rotation"]
    made = dict(made, translation=[-x, y, z], rotation=[0, 0, -turn], vertices=[[-a, b] for a, b in made["vertices"]])
    for edge in made["edges"]:
        curve = edge.get("curvature")
        if curve and curve["type"] == "circle":
            curve = {"type": "circle", "params": [curve["params"][0], curve["params"][1], 1 - curve["params"][2]]}
        elif curve:
            curve = {"type": curve["type"], "params": [[a, -b] for a, b in curve["params"]]}
        if curve:
            made = dict(made, edges=[dict(e, curvature=curve) if e is edge else e for e in made["edges"]])
    return reverse(made)


def bow(a, b):
    return {"type": "quadratic", "params": [[a, b]]}


def pattern(panels, stitches):
    return {"properties": {"curvature_coords": "relative", "units_in_meter": 100},
            "pattern": {"panels": panels,
                        "stitches": [[{"panel": p, "edge": e}, {"panel": q, "edge": f}] for p, e, q, f in stitches]}}


def last(count, edge):
    """Number of an edge after the panel was turned over or mirrored."""
    return count - 1 - edge


def slanted_skirt():
    """Two darts in the back, a hem that falls to one side."""
    waist = "lower_interface"
    front = panel([(-28, -60), (28, -45), (26, -20), (23, 0), (-23, 0), (-26, -20)], (0, 108, 25), labels={3: waist})
    back = panel([(-28, -60), (28, -45), (27, -20), (23, 0), (11.5, 0), (10, -12), (8.5, 0), (-8.5, 0), (-10, -12), (-11.5, 0),
                  (-23, 0), (-27, -20)], (0, 108, -20), labels={3: waist, 6: waist, 9: waist}, back=True)
    b = lambda edge: last(12, edge)
    return pattern({"front": front, "back": back},
                   [("front", 1, "back", b(1)), ("front", 2, "back", b(2)), ("front", 4, "back", b(10)), ("front", 5, "back", b(11)),
                    ("back", b(4), "back", b(5)), ("back", b(7), "back", b(8))])


def circle_skirt():
    """Two half rings of 45 cm on a waistband."""
    inner, outer, open_by = 14.2, 59.2, math.radians(4)
    c, s = math.cos(open_by), -math.sin(open_by)
    ring = [(-inner * c, inner * s), (-outer * c, outer * s), (outer * c, outer * s), (inner * c, inner * s)]
    arcs = {1: {"type": "circle", "params": [outer, 0, 1]}, 3: {"type": "circle", "params": [inner, 0, 0]}}
    half = inner * (math.pi - 2 * open_by)
    band = [(-half / 2, 0), (half / 2, 0), (half / 2, 4), (-half / 2, 4)]
    top = {2: "lower_interface"}
    return pattern({"front": panel(ring, (0, 104, 25), curves=arcs), "back": panel(ring, (0, 104, -20), curves=arcs, back=True),
                    "band_front": panel(band, (0, 105, 25), labels=top), "band_back": panel(band, (0, 105, -20), labels=top, back=True)},
                   [("front", 0, "back", last(4, 0)), ("front", 2, "back", last(4, 2)), ("front", 3, "band_front", 0),
                    ("back", last(4, 3), "band_back", last(4, 0)), ("band_front", 1, "band_back", last(4, 1)),
                    ("band_front", 3, "band_back", last(4, 3))])


def trousers():
    waist = {5: "lower_interface"}
    front = [(0, 0), (-5, -31), (2, -98), (22, -98), (26, -22), (21.5, 0)]
    back = [(0, 0), (-10, -31), (2, -98), (22, -98), (27, -22), (21.5, 0)]
    left_f = panel(front, (5.5, 109, 20), curves={0: bow(0.75, 0.12)}, labels=waist)
    left_b = panel(back, (10.5, 109, -20), curves={0: bow(0.75, 0.2)}, labels=waist, back=True)
    panels = {"left_f": left_f, "left_b": left_b, "right_f": mirror(left_f), "right_b": mirror(left_b)}
    f, b = (lambda e: e), (lambda e: last(6, e))
    stitches = [("left_f", f(0), "right_f", b(0)), ("left_b", b(0), "right_b", f(0))]
    for e in (1, 3, 4):
        stitches += [("left_f", f(e), "left_b", b(e)), ("right_f", b(e), "right_b", f(e))]
    return pattern(panels, stitches)


def with_sleeves(front, back, left_f, left_b):
    """A body of eight edges on each side, and sleeves of two panels of four."""
    b, s = (lambda e: last(8, e)), (lambda e: last(4, e))
    return pattern({"front": front, "back": back, "left_f": left_f, "left_b": left_b, "right_f": mirror(left_f), "right_b": mirror(left_b)},
                   [("front", 1, "back", b(1)), ("front", 7, "back", b(7)), ("front", 3, "back", b(3)), ("front", 5, "back", b(5)),
                    ("front", 2, "left_f", 1), ("back", b(2), "left_b", s(1)), ("front", 6, "right_f", s(1)), ("back", b(6), "right_b", 1),
                    ("left_f", 0, "left_b", s(0)), ("left_f", 2, "left_b", s(2)), ("right_f", s(0), "right_b", 0), ("right_f", s(2), "right_b", 2)])


def puffed_tunic():
    """Sleeves whose heads are a third longer than the armholes."""
    outline = [(-27, 0), (27, 0), (27, 37), (17.5, 58), (8, 62), (-8, 62), (-17.5, 58), (-27, 37)]
    holes = {2: bow(0.55, 0.2), 6: bow(0.45, 0.2)}
    front = panel(outline, (0, 78.5, 25), curves={**holes, 4: bow(0.5, 0.5)})
    back = panel(outline, (0, 78.5, -20), curves={**holes, 4: bow(0.5, 0.15)}, back=True)
    sleeve = [(0, 0), (-30, 0), (-22, -30), (0, -20)]
    left_f = panel(sleeve, (53.5, 111, 17.5), turn=-50, curves={1: bow(0.5, -0.1)})
    left_b = panel(sleeve, (53.5, 111, -12.5), turn=-50, curves={1: bow(0.5, -0.1)}, back=True)
    return with_sleeves(front, back, left_f, left_b)


def wrap_skirt():
    """One panel around the body, closed behind, with four darts."""
    waist, half, deep = {}, 48, 11
    top = [(half, 0)]
    for middle in (30, 15, -15, -30):
        top += [(middle + 1.5, 0), (middle, -deep), (middle - 1.5, 0)]
    top.append((-half, 0))
    points = [(-half - 1, -50), (half + 1, -50)] + top
    for edge in range(2, len(points) - 1):
        if points[edge][1] == points[edge + 1][1]:
            waist[edge] = "lower_interface"
    darts = [("skirt", e, "skirt", e + 1) for e in range(2, len(points) - 2) if points[e + 1][1] == -deep]
    return pattern({"skirt": panel(points, (0, 108, 25), labels=waist)}, [("skirt", 1, "skirt", len(points) - 1)] + darts)


def strapless_top():
    """A tube around the chest, held up by its upper edge."""
    outline = [(-21, 0), (21, 0), (24.5, 22), (-24.5, 22)]
    labels = {2: "strapless_top"}
    return pattern({"front": panel(outline, (0, 108, 25), curves={2: bow(0.5, 0.05)}, labels=labels),
                    "back": panel(outline, (0, 108, -20), labels=labels, back=True)},
                   [("front", 1, "back", last(4, 1)), ("front", 3, "back", last(4, 3))])


def one_shoulder():
    """A tunic over the left shoulder only, longer on that side."""
    outline = [(-25, -4), (25, -16), (25, 36), (17.5, 57.5), (6, 60), (-25, 33)]
    curves = {2: bow(0.55, 0.2), 4: bow(0.4, 0.15)}
    return pattern({"front": panel(outline, (0, 80, 25), curves=curves), "back": panel(outline, (0, 80, -20), curves=curves, back=True)},
                   [("front", 1, "back", last(6, 1)), ("front", 5, "back", last(6, 5)), ("front", 3, "back", last(6, 3))])


def long_sleeves():
    """A loose shirt whose sleeves reach the wrists."""
    outline = [(-28, 0), (28, 0), (28, 37), (18.5, 58), (9, 62), (-9, 62), (-18.5, 58), (-28, 37)]
    holes = {2: bow(0.55, 0.2), 6: bow(0.45, 0.2)}
    front = panel(outline, (0, 78.5, 25), curves={**holes, 4: bow(0.5, 0.5)})
    back = panel(outline, (0, 78.5, -20), curves={**holes, 4: bow(0.5, 0.15)}, back=True)
    sleeve = [(0, 0), (-52, 0), (-48, -22.5), (0, -14)]
    left_f = panel(sleeve, (65, 101, 17.5), turn=-42, curves={1: bow(0.5, -0.08)})
    left_b = panel(sleeve, (65, 101, -12.5), turn=-42, curves={1: bow(0.5, -0.08)}, back=True)
    return with_sleeves(front, back, left_f, left_b)


ALL = {"slanted_skirt": slanted_skirt, "circle_skirt": circle_skirt, "trousers": trousers, "puffed_tunic": puffed_tunic,
       "wrap_skirt": wrap_skirt, "strapless_top": strapless_top, "one_shoulder": one_shoulder, "long_sleeves": long_sleeves}
