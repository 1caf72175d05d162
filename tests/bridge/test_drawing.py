#!/usr/bin/python3
"""Panels from drawings: `toile import` of DXF and SVG files made here, in the forms that pattern programs write; what a
companion sews; and what is refused with file, line, piece and panel named.

    test_drawing.py [NAME...]      TOILE names the program (build/toile)

Ends with `N passed, M failed`."""
import json
import math
import os
import re
import time

from program import fails, main, ok, run, tests_of
from test_pattern import bake, figure, write


# ---- what the program lists ----

def listed(path, *more):
    """{name: (area, grain, [(length, from, to) of edges])} in metres, degrees and centimetres, and what it warned of."""
    done, panels = ok("import", path, "--edge-length", "0.005", *more), {}
    for line in done.stdout.splitlines():
        panel = re.match(r'panel "(.*)": \d+ edges, ([\d.]+) m2, grain ([\d.]+) degrees', line)
        edge = re.match(r"  edge (\d+): ([\d.]+) m, \[(\S+), (\S+)\] to \[(\S+), (\S+)\]", line)
        if panel:
            edges = []
            panels[panel[1]] = float(panel[2]), float(panel[3]), edges
        else:
            assert int(edge[1]) == len(edges), line
            numbers = [float(x) for x in edge.groups()[1:]]
            edges.append((numbers[0], numbers[1:3], numbers[3:]))
    return panels, done.stderr


def near(a, b, part=1e-3):
    assert abs(a - b) <= part * abs(b), f"{a} is not {b}"


def svg(body, size='width="400mm" height="400mm" viewBox="0 0 400 400"'):
    return f'<?xml version="1.0"?>\n<svg {size} xmlns="http://www.w3.org/2000/svg">\n{body}\n</svg>\n'


def one(folder, body, *more, **size):
    panels, warnings = listed(write(folder, "one.svg", svg(body, **size)), *more)
    assert len(panels) == 1, panels
    return list(panels.values())[0], warnings


# ---- DXF ----

def pairs(*items):
    return "".join(f"{code:>3}\n{value}\n" for code, value in items)


def section(name, *content):
    return pairs((0, "SECTION"), (2, name)) + "".join(content) + pairs((0, "ENDSEC"))


def dxf(*sections):
    return "".join(sections) + pairs((0, "EOF"))


def header(**variables):
    return section("HEADER", *(pairs((9, "$" + name), (70, value)) for name, value in variables.items()))


def block(name, *entities):
    return pairs((0, "BLOCK"), (8, "1"), (2, name), (70, 0), (10, 0), (20, 0)) + "".join(entities) + pairs((0, "ENDBLK"), (8, "1"))


def polyline(layer, points, closed=True):
    text = pairs((0, "POLYLINE"), (8, layer), (66, 1), (10, 0), (20, 0), (70, 1 if closed else 0))
    for x, y, *bulge in points:
        text += pairs((0, "VERTEX"), (8, layer), (10, x), (20, y)) + (pairs((42, bulge[0])) if bulge else "")
    return text + pairs((0, "SEQEND"), (8, layer))


def lwpolyline(layer, points, closed=True):
    text = pairs((0, "LWPOLYLINE"), (8, layer), (90, len(points)), (70, 1 if closed else 0))
    for x, y, *bulge in points:
        text += pairs((10, x), (20, y)) + (pairs((42, bulge[0])) if bulge else "")
    return text


def line(layer, a, b):
    return pairs((0, "LINE"), (8, layer), (10, a[0]), (20, a[1]), (11, b[0]), (21, b[1]))


def label(text, layer="1"):
    return pairs((0, "TEXT"), (8, layer), (10, 0), (20, 0), (40, 5), (1, text))


def box(x, y, w, h):
    return [(x, y), (x + w, y), (x + w, y + h), (x, y + h)]


# ---- SVG ----

def test_path_commands(folder):
    """Each command, absolute and relative, against the area by Green's theorem."""
    def cubic(a, b, c, d):
        def at(t):
            s = 1 - t
            return [s**3 * a[k] + 3 * s * s * t * b[k] + 3 * s * t * t * c[k] + t**3 * d[k] for k in (0, 1)]
        return [at(i / 2000) for i in range(2001)]

    def quadratic(a, b, c):
        return cubic(a, [(a[k] + 2 * b[k]) / 3 for k in (0, 1)], [(c[k] + 2 * b[k]) / 3 for k in (0, 1)], c)

    def area(points):
        return abs(sum(a[0] * b[1] - a[1] * b[0] for a, b in zip(points, points[1:] + points[:1]))) / 2e6
    expected = area([[50, 50], [250, 50], [250, 100]] + cubic((250, 100), (300, 120), (300, 180), (250, 200))
                    + cubic((250, 200), (200, 220), (240, 290), (200, 300)) + quadratic((200, 300), (170, 350), (140, 300))
                    + quadratic((140, 300), (110, 250), (80, 300)) + [[50, 300]])
    absolute = "M50,50L250,50V100C300 120 300 180 250 200S240,290,200,300Q170 350 140 300T80 300H50Z"
    relative = "m50 50l200 0v50c50,20,50,80,0,100s-10 90-50 100q-30 50-60 0t-60 0h-30z"
    for d in (absolute, relative):
        (got, _, edges), _ = one(folder, f'<path d="{d}"/>')
        near(got, expected, 5e-4)
        assert len(edges) >= 5, edges
    # numbers that touch, flags that touch, lines that follow a move, an ellipse that must grow to reach
    half = math.pi * 60 * 30 / 2 / 1e6
    for d in ("M40 200a60 30 0 0 1 120 0z", "M40,200A60,30,0,01160,200Z", "m40 200a6 3 0 01120 0z"):
        near(one(folder, f'<path d="{d}"/>')[0][0], half)
    near(one(folder, '<path d="M10 10 110 10 110.5.1e3 10 100z"/>')[0][0], 90 * 100.25 / 1e6, 1e-3)
    near(one(folder, '<path d="M0 200 a 100 50 90 1 0 100 0 z"/>')[0][0], math.pi * 50 * 100 / 2 / 1e6)     # turned by 90 degrees


def test_shapes(folder):
    near(one(folder, '<rect x="10" y="20" width="200" height="100"/>')[0][0], 0.02)
    near(one(folder, '<rect x="10" y="20" width="200" height="100" rx="20"/>')[0][0], 0.02 - (4 - math.pi) * 0.02**2)
    near(one(folder, '<ellipse cx="150" cy="150" rx="100" ry="50"/>')[0][0], math.pi * 0.1 * 0.05)
    (got, _, edges), _ = one(folder, '<circle cx="150" cy="150" r="100"/>')
    near(got, math.pi * 0.01)
    assert len(edges) == 2, "a line without corners is parted in two"
    near(edges[0][0], math.pi * 0.1)
    near(one(folder, '<polygon points="10,10 210,10 210 110, 10 110"/>')[0][0], 0.02)
    (got, _, edges), _ = one(folder, '<polyline points="10,10 210,10 210 110 10 110 10 10"/>')
    near(got, 0.02)
    # y is upwards, the first corner that is drawn begins edge 0, and the outline runs counter-clockwise
    assert [e[1] for e in edges] == [[-10, 5], [-10, -5], [10, -5], [10, 5]], edges


def test_transforms_and_units(folder):
    rect = '<rect width="100" height="50"/>'
    for size, metres in (('width="400mm" height="400mm" viewBox="0 0 400 400"', 0.001), ('width="20cm" height="20cm" viewBox="0 0 400 400"', 0.0005),
                         ('width="4in" height="4in" viewBox="10 10 400 400"', 0.000254), ('width="400" height="400"', 0.0254 / 96),
                         ('width="800px" height="800px" viewBox="0 0 400 400"', 0.0254 / 48)):
        (got, _, _), warnings = one(folder, rect, size=size)
        near(got, 5000 * metres**2)
        assert "units" not in warnings, warnings
    (got, _, _), warnings = one(folder, rect, size='viewBox="0 0 400 400"')
    near(got, 5000 * (0.0254 / 96)**2)
    assert "--units" in warnings, warnings
    near(one(folder, rect, "--units", "cm", size='viewBox="0 0 400 400"')[0][0], 0.5)
    nested = f'<g transform="translate(50,60) rotate(30 3 4)"><g transform="scale(2 0.5),skewX(20)"><g transform="matrix(0 1 -1 0 5 5)">{rect}</g></g></g>'
    near(one(folder, nested)[0][0], 0.005)
    # turned over, it still runs counter-clockwise: what is drawn is seen
    shape = '<path transform="scale(-1,1)" d="M-10 10H-210L-110 110z"/>'
    edges = one(folder, shape)[0][2]
    assert sum(a[1][0] * a[2][1] - a[1][1] * a[2][0] for a in edges) > 0, edges


FREESEWING = """<style type="text/css"> <![CDATA[ path { fill: none } </g> ]]> </style>
<defs><g id="logo"><path d="M0 0H300V300H0z"/></g><marker id="m"><path d="M0 0H200V200z"/></marker></defs>
<!-- Start of group <g> -->
<g id="fs-container"><g id="fs-stack-x.front" transform="translate(20, 20)"><g id="fs-stack-x.front-part-x.front">
<path class="fabric" id="fs-1" d="M 0,0 L 0,200 L 100,200 C 110,150 110,50 100,0 z" />
<path class="fabric sa" id="fs-2" d="M -10,-10 L -10,230 L 110,230 L 120,-10 z" />
<path class="note" marker-start="url(#grainlineFrom)" marker-end="url(#grainlineTo)" id="fs-3" d="M 50,150 L 50,50" />
<path class="scalebox" d="M 20 20 h 50 v 50 h -50 z"/><path class="hidden" d="M -50 -50 h 300 v 300 h -300 z"/>
<text data-x="1">a &#160; &lt;b</text><use xlink:href="#logo"/></g></g>
<g id="fs-stack-x.strap-part-x.strap" transform="translate(200 0)"><path class="fabric" d="M 0,0 h 100 v 30 h -100 z"/>
<path class="note" marker-start="url(#grainlineFrom)" d="M 20,15 h 60"/></g>
<g display="none" id="off"><path class="fabric" d="M 0 0 h 100 v 100 h -100z"/></g></g>"""


def test_classes_say_what_lines_are(folder):
    panels, warnings = listed(write(folder, "a.svg", svg(FREESEWING)))
    assert list(panels) == ["x.front", "x.strap"], panels
    near(panels["x.front"][0], 0.02 + 2 / 3 * 0.0075 * 0.2 * 0.9, 0.01)
    assert panels["x.front"][1] == 90 and len(panels["x.front"][2]) == 4
    area, grain, edges = panels["x.strap"]
    near(area, 0.003)
    assert grain == 90 and abs(edges[1][1][1] - edges[1][2][1]) == 10, f"the warp is upright: turned a quarter, {edges}"
    assert "inside" not in warnings, warnings


def test_two_parallel_lines(folder):
    """Without classes or layers, the inner of two lines along each other is sewn, also if it has a dart; other lines are marks."""
    dart = "M100 100H160L180 220L200 100H300V300H100z"
    for inner, area in (("M100 100H300V300H100z", 0.04), (dart, 0.04 - 0.5 * 0.04 * 0.12)):
        panels, warnings = listed(write(folder, "a.svg", svg(f'<g><path d="{inner} M85 85H315V330H85z"/></g><path d="M10 10h40v40h-40z"/>')))
        assert sorted(round(p[0], 6) for p in panels.values()) == [0.0016, round(area, 6)], panels
        assert "inside" not in warnings, warnings
    panels, warnings = listed(write(folder, "a.svg", svg('<path id="bag" d="M10 10h380v380h-380z"/><rect x="100" y="100" width="90" height="90"/>')))
    assert list(panels) == ["bag"] and "1 closed lines inside" in warnings, (panels, warnings)
    near(panels["bag"][0], 0.38**2)


# ---- DXF ----

def test_pieces_in_blocks(folder):
    """AAMA and ASTM: the sew line is the panel, layer 7 is the warp, texts say names and units."""
    front = block("P1", polyline("1", box(0, 0, 220, 320)), polyline("14", box(10, 10, 200, 300)), line("7", (50, 100), (150, 100)),
                  polyline("84", box(0, 0, 220, 320)), label("Piece Name: Front Left"), lwpolyline("8", box(50, 50, 30, 30)),
                  pairs((0, "POINT"), (8, "4"), (10, 110), (20, 0)))
    back = block("P2", lwpolyline("1", box(0, 0, 200, 300) + [(0, 0)]), line("7", (50, 50), (80, 250)), label("Quantity: 2"))
    same = block("P2", lwpolyline("1", box(0, 0, 100, 300)))
    insert = section("ENTITIES", pairs((0, "INSERT"), (8, "1"), (2, "P1"), (10, 0), (20, 0)), polyline("0", box(0, 0, 900, 900)))
    blocks = section("BLOCKS", block("*Model_Space", polyline("1", box(0, 0, 90, 90))), front, back, same)
    path = write(folder, "a.dxf", dxf(header(INSUNITS=4), blocks, insert).replace("\n", "\r\n"))
    panels, warnings = listed(path)
    assert list(panels) == ["Front Left", "P2", "P2 2"], panels
    near(panels["Front Left"][0], 0.06)
    assert panels["Front Left"][1] == 90 and panels["Front Left"][2][0][1] == [15, -10], "turned until the warp is upright"
    near(panels["P2"][0], 0.06)
    near(panels["P2"][1], math.degrees(math.atan2(200, 30)), 1e-3)
    assert len(panels["P2"][2]) == 4 and "units" not in warnings, warnings
    for units, metres in (({"INSUNITS": 1}, 0.0254), ({"INSUNITS": 5}, 0.01), ({"INSUNITS": 0, "MEASUREMENT": 1}, 0.001), ({"MEASUREMENT": 0}, 0.0254)):
        small = section("BLOCKS", block("P", polyline("1", box(0, 0, 20, 30))))
        near(listed(write(folder, "a.dxf", dxf(header(**units), small)))[0]["P"][0], 600 * metres**2)
    for says, metres in (("UNITS: METRIC", 0.001), ("Units: English", 0.0254)):
        small = section("BLOCKS", block("P", polyline("1", box(0, 0, 20, 30)))) + section("ENTITIES", label(says))
        near(listed(write(folder, "a.dxf", dxf(header(INSUNITS=6), small)))[0]["P"][0], 600 * metres**2)
    panels, warnings = listed(write(folder, "a.dxf", dxf(section("BLOCKS", block("P", polyline("1", box(0, 0, 20, 30)))))))
    near(panels["P"][0], 0.0006)
    assert "millimetres" in warnings, warnings
    near(listed(write(folder, "a.dxf", dxf(section("BLOCKS", block("P", polyline("1", box(0, 0, 20, 30)))))), "--units", "in")[0]["P"][0], 600 * 0.0254**2)


def test_curves_of_dxf(folder):
    """Bulges both ways, and an outline in pieces: line, arc, spline, polyline, in any order and direction."""
    lens = [(0, 0, 1), (200, 0, 0.4142135624)]      # half a circle below, a quarter of a larger one above
    radius = 200 / math.sqrt(2)
    expected = (math.pi * 100**2 / 2 + (math.pi / 4 - 0.5) * radius**2) / 1e6
    for form in (polyline, lwpolyline):
        panels, _ = listed(write(folder, "a.dxf", dxf(header(INSUNITS=4), section("ENTITIES", form("cut", lens)))))
        near(panels["panel"][0], expected)
        near(sum(e[0] for e in panels["panel"][2]), (math.pi * 100 + math.pi / 2 * radius) / 1000)
    spline = pairs((0, "SPLINE"), (8, "0"), (70, 8), (71, 2), *((40, k) for k in (0, 0, 0, 1, 1, 1)), (10, 0), (20, 200), (10, -100), (20, 100), (10, 0), (20, 0))
    arc = pairs((0, "ARC"), (8, "0"), (10, 300), (20, 100), (40, 100), (50, 270), (51, 90))
    parts = [line("0", (0, 0), (300, 0)), spline, arc, lwpolyline("0", [(0, 200), (150, 200), (300, 200)], closed=False)]
    expected = (300 * 200 + math.pi * 100**2 / 2 + 2 / 3 * 200 * 50) / 1e6
    for order in ((0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)):
        panels, _ = listed(write(folder, "a.dxf", dxf(header(INSUNITS=4), section("ENTITIES", *(parts[i] for i in order)))))
        near(panels["panel"][0], expected)
        assert len(panels["panel"][2]) == 2, "a tangent arc is no corner, the spline meets lines at two"
    whole = section("ENTITIES", pairs((0, "CIRCLE"), (8, "0"), (10, 0), (20, 0), (40, 50)),
                    pairs((0, "ELLIPSE"), (8, "0"), (10, 300), (20, 0), (11, 0), (21, 100), (40, 0.5), (41, 0), (42, 2 * math.pi)))
    panels, _ = listed(write(folder, "a.dxf", dxf(header(INSUNITS=4), whole)))
    near(panels["panel"][0], math.pi * 0.05**2)
    near(panels["panel 2"][0], math.pi * 0.1 * 0.05)


# ---- companions ----

SKIRT = svg('<g id="half"><path d="M0 0H260V350Q130 380 0 350z"/></g><g id="pocket"><path d="M300 0h90v90h-90z"/></g>')
COMPANION = {"pattern": {
    "panels": {"fl": {"piece": "half", "translation": [13.2, 95, 25]}, "fr": {"piece": "half", "mirror": True, "translation": [-13.2, 95, 25]},
               "br": {"piece": "half", "translation": [-13.2, 95, -25], "rotation": [0, 180, 0]},
               "bl": {"piece": "half", "mirror": True, "translation": [13.2, 95, -25], "rotation": [0, 180, 0]}},
    "stitches": [[{"panel": "fl", "edge": 0}, {"panel": "fr", "edge": 0}], [{"panel": "bl", "edge": 0}, {"panel": "br", "edge": 0}],
                 [{"panel": "fl", "edge": 2}, {"panel": "bl", "edge": 2}], [{"panel": "fr", "edge": 2}, {"panel": "br", "edge": 2}]]}}


def test_flat_without_a_companion(folder):
    path, scene, mesh = write(folder, "skirt.svg", SKIRT), os.path.join(folder, "s.json"), os.path.join(folder, "m.obj")
    done = ok("import", path, "--body", figure(folder), "-o", scene, "--mesh", mesh, "--edge-length", "0.03")
    assert 'panel "half": 4 edges' in done.stdout and "--sewing" in done.stderr, done
    with open(scene) as file:
        garment = json.load(file)["garments"][0]
    assert [p["name"] for p in garment["panels"]] == ["half", "pocket"] and not garment["seams"]
    boxes = []
    for p in garment["panels"]:
        assert p["place"]["origin"][2] == 1 and "bend" not in p["place"], "flat, in front of the body"
        x = [p["place"]["origin"][0] + e["from"][0] for e in p["outline"]]
        boxes.append((min(x), max(x)))
    assert boxes[0][1] < boxes[1][0], f"side by side: {boxes}"
    bake(scene, os.path.join(folder, "flat.h5"), 2)


def test_companion_sews(folder):
    path, sewing = write(folder, "skirt.svg", SKIRT), write(folder, "sewing.json", COMPANION)
    scene = os.path.join(folder, "s.json")
    done = ok("import", path, "--sewing", sewing, "--body", figure(folder), "-o", scene, "--edge-length", "0.04")
    assert "4 panels, 4 seams" in done.stdout and 'does not name panel "pocket"' in done.stderr, done
    with open(scene) as file:
        garment = json.load(file)["garments"][0]
    panels = {p["name"]: p["outline"] for p in garment["panels"]}
    assert ["through" in e for e in panels["fl"]] == [False, True, False, False], "the hem is one edge through points"

    def ends(side):
        """Where a walk along one edge begins and ends, as the companion places it."""
        outline, n = panels[side["panel"]], side["edge"]
        points = [outline[n]["from"], outline[(n + 1) % len(outline)]["from"]]
        said = COMPANION["pattern"]["panels"][side["panel"]]
        turn = -1 if "rotation" in said else 1
        points = [(said["translation"][0] / 100 + turn * x, y) for x, y in points]
        return points[::-1] if side.get("reverse") else points
    for seam in garment["seams"]:
        (a,), (b,) = seam["a"], seam["b"]
        for p, q in zip(ends(a), ends(b)):
            assert math.dist(p, q) < 0.01, f"{seam}: {ends(a)} to {ends(b)}, twisted"
    cache = os.path.join(folder, "c.h5")
    bake(scene, cache, max(s["frames"][1] for s in garment["seams"]) + 4)
    import h5py
    import numpy as np
    mesh = os.path.join(folder, "m.obj")
    ok("import", path, "--sewing", sewing, "--body", figure(folder), "-o", scene, "--edge-length", "0.04", "--mesh", mesh)
    with open(mesh) as file:
        stitches = np.array([[int(v) - 1 for v in text.split()[1:]] for text in file if text.startswith("l ")])
    with h5py.File(cache) as file:
        last = file["garments/garment/positions"][-1]
    gaps = np.linalg.norm(last[stitches[:, 0]] - last[stitches[:, 1]], axis=1)
    assert len(gaps) >= 36 and gaps.max() < 1e-4, (len(gaps), gaps.max())


def test_one_edge_to_many(folder):
    """A side of a stitch may be a list, and is walked in its order."""
    body = '<g id="long"><path d="M0 0h300v90h-300z"/></g><g id="a"><path d="M0 120h100v90h-100z"/></g><g id="b"><path d="M0 240h200v90h-200z"/></g>'
    sewing = {"pattern": {"panels": {n: {"translation": [0, 100 + 10 * i, 30]} for i, n in enumerate(("long", "a", "b"))},
                          "stitches": [[{"panel": "long", "edge": 2}, [{"panel": "b", "edge": 0}, {"panel": "a", "edge": 0}]]]}}
    scene = os.path.join(folder, "s.json")
    ok("import", write(folder, "a.svg", svg(body)), "--sewing", write(folder, "s1.json", sewing), "--body", figure(folder), "-o", scene,
       "--edge-length", "0.04")
    with open(scene) as file:
        (seam,) = json.load(file)["garments"][0]["seams"]
    assert [s["panel"] for s in seam["a"]] == ["long"] and not seam["a"][0].get("reverse"), seam
    assert [(s["panel"], s.get("reverse")) for s in seam["b"]] == [("b", True), ("a", True)], seam


def test_companions_that_are_refused(folder):
    path, body, out = write(folder, "skirt.svg", SKIRT), figure(folder), os.path.join(folder, "no.json")

    def refuse(change, *says):
        companion = json.loads(json.dumps(COMPANION))
        text = change(companion["pattern"])
        fails(3, "import", path, "--sewing", write(folder, "bad.json", text if isinstance(text, str) else companion), "--body", body, "-o", out, says=says)
        assert not os.path.exists(out)
    refuse(lambda p: p["panels"]["fl"].update(piece="sleeve"), "bad.json", 'panel "sleeve" is no panel of')
    refuse(lambda p: p["panels"].update(fl=3), 'panel "fl" is no object')
    refuse(lambda p: p["panels"]["fl"].update(mirror=1), 'panel "fl"', '"mirror"')
    refuse(lambda p: p["panels"]["fl"].update(translation=[1]), 'panel "fl"', "three numbers")
    refuse(lambda p: p["stitches"][0][0].update(edge=4), 'panel "fl" has no edge 4')
    refuse(lambda p: p["stitches"][0].__setitem__(0, []), "stitch 0", "empty")
    refuse(lambda p: p["stitches"][0].__setitem__(0, [{"panel": "fl", "edge": 0}] * 2), "stitch 0", "itself")
    refuse(lambda p: p["stitches"][0][1].update(panel="half"), 'no panel "half"')
    refuse(lambda p: "{", "bad.json:1", "not JSON")
    refuse(lambda p: "{}", "pattern")
    fails(2, "import", path, "--sewing", path, says="--body")
    fails(2, "import", write(folder, "a.json", "{}"), "--sewing", path, "--body", body, "-o", out, says="for drawings")


# ---- what is refused ----

def test_malformed_drawings(folder):
    def refuse(name, text, *says):
        began = time.monotonic()
        fails(3, "import", write(folder, name, text), says=(name, *says))
        assert time.monotonic() - began < 20, f"{name}: took {time.monotonic() - began:.0f} s"
    good = svg(FREESEWING)
    for part in (0.2, 0.5, 0.9):
        refuse("cut.svg", good[:int(part * len(good))], "cut off")
    refuse("a.svg", "", "no <svg>")
    refuse("a.svg", "<html></html>", "a.svg:1", "not the beginning")
    refuse("a.svg", svg("<g>" * 5000 + "</g>" * 5000), "nested more than 200")
    refuse("a.svg", svg("<g><path></g>"), "a.svg:3", "closes what is not open")
    refuse("a.svg", svg('<path d=M0 0/>'), "a.svg:3", "no attribute")
    for d, says in (("M 0 0 L nan 9 z", "number"), ("M 0 0 L 1e999 9 z", "number"), ("L 0 0", "begins with M"), ("M 0 0 X 4", "commands"),
                    ("M 0 0 L 3", "number"), ("M 0 0 L 1e9 0 9 9 z", "units right")):
        refuse("a.svg", svg(f'<path d="{d}"/>'), "a.svg:3", says)
    refuse("a.svg", svg('<path transform="fold(3)" d="M0 0H9V9z"/>'), 'transform "fold"')
    refuse("a.svg", svg('<path d="M0 0H90V90"/>'), "no closed line")
    refuse("a.svg", svg('<g id="bow"><path d="M0 0H90L0 70 L90 80z"/></g>'), 'panel "bow"', "crosses")
    refuse("a.svg", svg('<g id="big"><path d="M0 0H90V90z"/></g>', size='width="90000mm" viewBox="0 0 300 300"'), 'piece "big"', "m large", "--units")
    refuse("a.svg", svg('<g id="f"><path class="fabric" d="M0 0H90V90L5 30"/></g>'), 'piece "f"', "open", "0.0304 m apart")
    refuse("a.svg", svg('<path d="M0 0h1v1h-1z"/>' * 4000 + '<path d="M0 0h90v90z"/>' * 4000), "more than 3000 closed lines")
    refuse("a.svg", svg('<path d="M0 0' + "h.1v.1" * 400000 + 'z"/>'), "more than 300000 points")
    refuse("a.svg", svg("".join(f'<g id="p{i}"></g>' for i in range(30000))), "more than 20000 pieces")
    # an entity bomb stays what it is: a declaration nobody reads; `use` of itself too
    bomb = '<!DOCTYPE svg [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;">]>\n'
    panels, _ = listed(write(folder, "bomb.svg", bomb + svg('<text>&c;</text><g id="u"><use href="#u"/><path d="M0 0H90V90z"/></g>')))
    assert list(panels) == ["u"], panels

    piece = section("BLOCKS", block("FRONT", polyline("1", box(0, 0, 200, 300))))
    good = dxf(header(INSUNITS=4), piece)
    for part in (0.3, 0.6, 0.95):
        refuse("cut.dxf", good[:int(part * len(good))], "cut off")
    refuse("a.dxf", "", "EOF")
    refuse("a.dxf", "AutoCAD Binary DXF\r\n\x1a", "a.dxf:1", "group code")
    refuse("a.dxf", good.replace("200", "nan"), "no number")
    refuse("a.dxf", good.replace("200", "1e400"), "no number")
    refuse("a.dxf", good.replace("200", "2e9"), "units right")
    refuse("a.dxf", dxf(header(INSUNITS=6), piece), 'piece "FRONT"', "300 m large")
    refuse("a.dxf", dxf(section("BLOCKS", block("FRONT", polyline("1", box(0, 0, 200, 300), closed=False)))), 'piece "FRONT"', "open", "0.3 m apart")
    refuse("a.dxf", dxf(section("BLOCKS", block("BOW", polyline("1", [(0, 0), (90, 0), (0, 70), (90, 80)])))), 'panel "BOW"', "crosses")
    refuse("a.dxf", dxf(section("ENTITIES", line("0", (0, 0), (9, 9)))), "no closed line")
    refuse("a.dxf", dxf(section("ENTITIES", pairs((0, "SPLINE"), (8, "0"), (71, 3), (40, 0), (10, 0), (20, 0)))), "spline", "knots")
    refuse("a.dxf", dxf(section("ENTITIES", pairs((0, "SPLINE"), (8, "0"), *((10, 0) for _ in range(6000))))), "spline has more than")
    assert run("import", os.path.join(folder, "none.dxf")).returncode == 5


if __name__ == "__main__":
    main(tests_of(globals()))
