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


def trousers(hem=((2, -98), (22, -98))):
    waist = {5: "lower_interface"}
    front = [(0, 0), (-5, -31), *hem, (26, -22), (21.5, 0)]
    back = [(0, 0), (-10, -31), *hem, (27, -22), (21.5, 0)]
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
    outline = [(-27, 0), (27, 0), (27, 37), (18, 58), (11.5, 60.5), (-11.5, 60.5), (-18, 58), (-27, 37)]
    holes = {2: bow(0.55, 0.2), 6: bow(0.45, 0.2)}
    front = panel(outline, (0, 78.5, 25), curves={**holes, 4: bow(0.5, 0.5)})
    back = panel(outline, (0, 78.5, -20), curves={**holes, 4: bow(0.5, 0.15)}, back=True)
    sleeve = [(0, 0), (-30, 0), (-22, -30), (0, -20)]
    left_f = panel(sleeve, (53.5, 111, 17.5), turn=-50, curves={1: bow(0.5, -0.1)})
    left_b = panel(sleeve, (53.5, 111, -12.5), turn=-50, curves={1: bow(0.5, -0.1)}, back=True)
    return with_sleeves(front, back, left_f, left_b)


def wrap_skirt():
    """One panel around the body, closed behind, with four darts."""
    waist, half, deep = {}, 54, 11
    top = [(half, 0)]
    for middle in (30, 15, -15, -30):
        top += [(middle + 2.4, 0), (middle, -deep), (middle - 2.4, 0)]
    top.append((-half, 0))
    points = [(-half - 1, -50), (half + 1, -50)] + top
    for edge in range(2, len(points) - 1):
        if points[edge][1] == points[edge + 1][1]:
            waist[edge] = "lower_interface"
    darts = [("skirt", e, "skirt", e + 1) for e in range(2, len(points) - 2) if points[e + 1][1] == -deep]
    return pattern({"skirt": panel(points, (0, 108, 25), labels=waist)}, [("skirt", 1, "skirt", len(points) - 1)] + darts)


def strapless_top():
    """A tube around the chest, held up by its upper edge."""
    outline = [(-24, 0), (24, 0), (25.5, 22), (-25.5, 22)]
    labels = {2: "strapless_top"}
    return pattern({"front": panel(outline, (0, 108, 25), curves={2: bow(0.5, 0.05)}, labels=labels),
                    "back": panel(outline, (0, 108, -20), labels=labels, back=True)},
                   [("front", 1, "back", last(4, 1)), ("front", 3, "back", last(4, 3))])


def one_shoulder():
    """A tunic over the left shoulder only, longer on that side."""
    outline = [(-28, -4), (28, -16), (26, 36), (17.5, 57.5), (6, 60), (-26, 33)]
    curves = {2: bow(0.55, 0.2), 4: bow(0.4, 0.15)}
    return pattern({"front": panel(outline, (0, 80, 25), curves=curves), "back": panel(outline, (0, 80, -20), curves=curves, back=True)},
                   [("front", 1, "back", last(6, 1)), ("front", 5, "back", last(6, 5)), ("front", 3, "back", last(6, 3))])


def long_sleeves():
    """A loose shirt whose sleeves reach the wrists. Heads are 9 cm high: with 4 cm sleeves stand level, and on arms that hang are
    6 % too tight over the shoulders."""
    outline = [(-28, 0), (28, 0), (28, 37), (18.5, 58), (11, 61), (-11, 61), (-18.5, 58), (-28, 37)]
    holes = {2: bow(0.55, 0.2), 6: bow(0.45, 0.2)}
    front = panel(outline, (0, 78.5, 25), curves={**holes, 4: bow(0.5, 0.5)})
    back = panel(outline, (0, 78.5, -20), curves={**holes, 4: bow(0.5, 0.15)}, back=True)
    sleeve = [(0, 0), (-52, 0), (-43, -22.5), (0, -14)]
    left_f = panel(sleeve, (65, 101, 17.5), turn=-42, curves={1: bow(0.5, -0.08)})
    left_b = panel(sleeve, (65, 101, -12.5), turn=-42, curves={1: bow(0.5, -0.08)}, back=True)
    return with_sleeves(front, back, left_f, left_b)


def collar_and_cuffs():
    """A shirt with long sleeves that are gathered into cuffs, and a collar that stands."""
    made = long_sleeves()
    panels, stitches = made["pattern"]["panels"], made["pattern"]["stitches"]
    sew = lambda p, e, q, f: stitches.append([{"panel": p, "edge": e}, {"panel": q, "edge": f}])
    rectangle = lambda half, high: [(-half, 0), (half, 0), (half, high), (-half, high)]
    panels["collar_f"] = panel(rectangle(14, 4), (0, 142, 22))
    panels["collar_b"] = panel(rectangle(11.2, 4), (0, 146, -16), back=True)
    cuff = [(2, -12.5), (8, -12), (8, -2), (2, -1.5)]
    panels["cuff_lf"] = panel(cuff, (65, 101, 17.5), turn=-42)
    panels["cuff_lb"] = panel(cuff, (65, 101, -12.5), turn=-42, back=True)
    panels["cuff_rf"], panels["cuff_rb"] = mirror(panels["cuff_lf"]), mirror(panels["cuff_lb"])
    b, s = (lambda e: last(8, e)), (lambda e: last(4, e))
    sew("front", 4, "collar_f", 0), sew("back", b(4), "collar_b", s(0))
    sew("collar_f", 1, "collar_b", s(1)), sew("collar_f", 3, "collar_b", s(3))
    sew("left_f", 3, "cuff_lf", 3), sew("left_b", s(3), "cuff_lb", s(3)), sew("right_f", s(3), "cuff_rf", s(3)), sew("right_b", 3, "cuff_rb", 3)
    for e in (0, 2):
        sew("cuff_lf", e, "cuff_lb", s(e)), sew("cuff_rf", s(e), "cuff_rb", e)
    return made


def banded_trousers():
    """Trousers on a waistband. From waist to waist through the crotch they have 70 cm, the body 82."""
    front = [(0, 0), (-6, -29), (2, -94), (24, -94), (28, -21), (22, 0)]
    back = [(0, 0), (-11, -29), (2, -94), (24, -94), (29, -21), (22, 0)]
    left_f = panel(front, (5.5, 105, 20), curves={0: bow(0.75, 0.14)})
    left_b = panel(back, (10.5, 105, -20), curves={0: bow(0.75, 0.22)}, back=True)
    band = [(-22, 0), (0, 0), (22, 0), (21.7, 4), (-21.7, 4)]
    panels = {"left_f": left_f, "left_b": left_b, "right_f": mirror(left_f), "right_b": mirror(left_b),
              "band_f": panel(band, (0, 105, 20), labels={3: "lower_interface"}),
              "band_b": panel(band, (0, 105, -20), labels={3: "lower_interface"}, back=True)}
    b, w = (lambda e: last(6, e)), (lambda e: last(5, e))
    stitches = [("left_f", 0, "right_f", b(0)), ("left_b", b(0), "right_b", 0), ("left_f", 5, "band_f", 1), ("right_f", b(5), "band_f", 0),
                ("left_b", b(5), "band_b", w(1)), ("right_b", 5, "band_b", w(0)), ("band_f", 2, "band_b", w(2)), ("band_f", 4, "band_b", w(4))]
    for e in (1, 3, 4):
        stitches += [("left_f", e, "left_b", b(e)), ("right_f", b(e), "right_b", e)]
    return pattern(panels, stitches)


def pencil_skirt():
    """Narrow at the hem, darts in the back, a slit behind, on a waistband."""
    front = [(-24, -58), (24, -58), (27.5, -20), (21.5, 0), (-21.5, 0), (-27.5, -20)]
    half = [(0, -58), (24, -58), (27.5, -20), (23.5, 0), (12, 0), (10.75, -12), (9.5, 0), (0, 0), (0, -36)]
    back_l = panel(half, (0.5, 104, -20), back=True)
    band = [(-21.5, 0), (21.5, 0), (21.2, 4), (-21.2, 4)]
    split = [(-21, 0), (-9.5, 0), (0, 0), (9.5, 0), (21, 0), (20.7, 4), (-20.7, 4)]
    panels = {"front": panel(front, (0, 104, 25)), "back_l": back_l, "back_r": mirror(back_l),
              "band_f": panel(band, (0, 104.5, 25), labels={2: "lower_interface"}),
              "band_b": panel(split, (0, 104.5, -20), labels={5: "lower_interface"}, back=True)}
    b, w = (lambda e: last(9, e)), (lambda e: last(7, e))
    return pattern(panels, [("front", 1, "back_l", b(1)), ("front", 2, "back_l", b(2)), ("front", 5, "back_r", 1), ("front", 4, "back_r", 2),
                            ("back_l", b(4), "back_l", b(5)), ("back_r", 4, "back_r", 5), ("back_l", b(7), "back_r", 7),
                            ("front", 3, "band_f", 0), ("back_l", b(3), "band_b", w(3)), ("back_l", b(6), "band_b", w(2)),
                            ("back_r", 6, "band_b", w(1)), ("back_r", 3, "band_b", w(0)), ("band_f", 1, "band_b", w(1 + 3)),
                            ("band_f", 3, "band_b", w(6))])


def godet_skirt():
    """Triangles are set into the lower half of the sides."""
    outline = [(-29, -55), (29, -55), (28, -28), (22, 0), (-22, 0), (-28, -28)]
    godet = [(-9, -27), (9, -27), (0, 0)]
    labels = {3: "lower_interface"}
    panels = {"front": panel(outline, (0, 108, 25), labels=labels), "back": panel(outline, (0, 108, -20), labels=labels, back=True),
              "godet_l": dict(panel(godet, (40, 79, 2)), rotation=[0, 90, 0]), "godet_r": dict(panel(godet, (-40, 79, 2)), rotation=[0, -90, 0])}
    b = lambda e: last(6, e)
    return pattern(panels, [("front", 2, "back", b(2)), ("front", 4, "back", b(4)), ("front", 1, "godet_l", 2), ("back", b(1), "godet_l", 1),
                            ("front", 5, "godet_r", 1), ("back", b(5), "godet_r", 2)])


def fitted_bodice():
    """Darts from the waist and in the sides, no sleeves."""
    front = [(-25.2, 0), (-12, 0), (-10.5, 13), (-9, 0), (9, 0), (10.5, 13), (12, 0), (25.2, 0), (26, 14), (14, 17), (26, 16.5), (26.5, 23),
             (17.5, 43), (10.5, 45.5), (-10.5, 45.5), (-17.5, 43), (-26.5, 23), (-26, 16.5), (-14, 17), (-26, 14)]
    back = [(-24, 0), (-11.5, 0), (-10.2, 12), (-9, 0), (9, 0), (10.2, 12), (11.5, 0), (24, 0), (24.7, 14), (25, 20.6), (17.5, 43), (10.5, 45.5),
            (-10.5, 45.5), (-17.5, 43), (-25, 20.6), (-24.7, 14)]
    b = lambda e: last(16, e)
    return pattern({"front": panel(front, (0, 98, 27), curves={11: bow(0.45, 0.22), 13: bow(0.5, 0.4), 15: bow(0.55, 0.22)}),
                    "back": panel(back, (0, 98, -22), curves={9: bow(0.45, 0.2), 11: bow(0.5, 0.12), 13: bow(0.55, 0.2)}, back=True)},
                   [("front", 1, "front", 2), ("front", 5, "front", 4), ("front", 8, "front", 9), ("front", 18, "front", 17),
                    ("back", b(1), "back", b(2)), ("back", b(4), "back", b(5)), ("front", 7, "back", b(7)), ("front", 10, "back", b(8)),
                    ("front", 19, "back", b(15)), ("front", 16, "back", b(14)), ("front", 12, "back", b(10)), ("front", 14, "back", b(12))])


def wide_legs():
    """Trousers of 80 cm around each hem."""
    return trousers(hem=((-4, -98), (36, -98)))


def jumpsuit():
    """Trousers sewn to a bodice without sleeves."""
    made = trousers()
    panels, stitches = made["pattern"]["panels"], made["pattern"]["stitches"]
    sew = lambda p, e, q, f: stitches.append([{"panel": p, "edge": e}, {"panel": q, "edge": f}])
    outline = [(-21.5, 0), (0, 0), (21.5, 0), (26.5, 26), (17.5, 46), (10.5, 48.5), (-10.5, 48.5), (-17.5, 46), (-26.5, 26)]
    holes = {3: bow(0.45, 0.22), 7: bow(0.55, 0.22)}
    panels["front"] = panel(outline, (0, 95, 25), curves={**holes, 5: bow(0.5, 0.4)})
    panels["back"] = panel(outline, (0, 95, -20), curves={**holes, 5: bow(0.5, 0.12)}, back=True)
    t, b = (lambda e: last(6, e)), (lambda e: last(9, e))
    sew("left_f", 5, "front", 1), sew("right_f", t(5), "front", 0), sew("left_b", t(5), "back", b(1)), sew("right_b", 5, "back", b(0))
    for e in (2, 4, 6, 8):
        sew("front", e, "back", b(e))
    return made


def kimono():
    """Sleeves and body are one piece, along arms that hang."""
    outline = [(-27, 0), (27, 0), (27, 33), (47.3, 18.2), (61.7, 34.8), (20, 59.5), (11.5, 62), (-11.5, 62), (-20, 59.5), (-61.7, 34.8),
               (-47.3, 18.2), (-27, 33)]
    b = lambda e: last(12, e)
    return pattern({"front": panel(outline, (0, 78.5, 25), curves={6: bow(0.5, 0.5)}),
                    "back": panel(outline, (0, 78.5, -20), curves={6: bow(0.5, 0.15)}, back=True)},
                   [("front", e, "back", b(e)) for e in (1, 2, 4, 5, 7, 8, 10, 11)])


def poncho():
    """Two pieces that are sewn over shoulders and arms, open at the sides."""
    outline = [(-55, 0), (55, 0), (60, 36), (12, 62), (-12, 62), (-60, 36)]
    b = lambda e: last(6, e)
    return pattern({"front": panel(outline, (0, 78.5, 25), curves={3: bow(0.5, 0.5)}),
                    "back": panel(outline, (0, 78.5, -20), curves={3: bow(0.5, 0.15)}, back=True)},
                   [("front", 2, "back", b(2)), ("front", 4, "back", b(4))])


def raglan():
    """Sleeves that reach the neck."""
    outline = [(-28, 0), (28, 0), (28, 36), (12, 60), (-12, 60), (-28, 36)]
    front = panel(outline, (0, 78.5, 25), curves={3: bow(0.5, 0.4)})
    back = panel(outline, (0, 78.5, -20), curves={3: bow(0.5, 0.12)}, back=True)
    sleeve = [(0, 0), (-62, 0), (-43, -22.5), (0, -14)]
    left_f = panel(sleeve, (65, 101, 17.5), turn=-42)
    left_b = panel(sleeve, (65, 101, -12.5), turn=-42, back=True)
    b, s = (lambda e: last(6, e)), (lambda e: last(4, e))
    return pattern({"front": front, "back": back, "left_f": left_f, "left_b": left_b, "right_f": mirror(left_f), "right_b": mirror(left_b)},
                   [("front", 1, "back", b(1)), ("front", 5, "back", b(5)), ("front", 2, "left_f", 1), ("back", b(2), "left_b", s(1)),
                    ("front", 4, "right_f", s(1)), ("back", b(4), "right_b", 1), ("left_f", 0, "left_b", s(0)), ("left_f", 2, "left_b", s(2)),
                    ("right_f", s(0), "right_b", 0), ("right_f", s(2), "right_b", 2)])


def bandeau():
    """A band of 14 cm around the chest."""
    outline = [(-24.5, 0), (24.5, 0), (25.5, 14), (-25.5, 14)]
    labels = {2: "strapless_top"}
    return pattern({"front": panel(outline, (0, 114, 25), labels=labels), "back": panel(outline, (0, 114, -20), labels=labels, back=True)},
                   [("front", 1, "back", last(4, 1)), ("front", 3, "back", last(4, 3))])


ALL = {"slanted_skirt": slanted_skirt, "circle_skirt": circle_skirt, "trousers": trousers, "puffed_tunic": puffed_tunic,
       "wrap_skirt": wrap_skirt, "strapless_top": strapless_top, "one_shoulder": one_shoulder, "long_sleeves": long_sleeves,
       "collar_and_cuffs": collar_and_cuffs, "banded_trousers": banded_trousers,
       "pencil_skirt": pencil_skirt, "godet_skirt": godet_skirt, "fitted_bodice": fitted_bodice, "wide_legs": wide_legs,
       "jumpsuit": jumpsuit, "kimono": kimono, "poncho": poncho, "raglan": raglan, "bandeau": bandeau}
