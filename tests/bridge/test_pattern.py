#!/usr/bin/python3
"""Sewing patterns from outside: `toile import` on patterns made here and on those of ../shared/garmentcode, scenes with
panels, and what is refused with panel and edge named.

    test_pattern.py [NAME...]      TOILE names the program (build/toile)

Ends with `N passed, M failed`."""
import json
import math
import os
import sys
import tempfile

from program import ROOT, SHARED, Skip, fails, main, ok, run, tests_of

sys.path.insert(0, os.path.join(ROOT, "tests", "contact"))
import patterns

GARMENTCODE = os.path.join(SHARED, "garmentcode")
os.environ["OMP_NUM_THREADS"] = "1"


def write(folder, name, content):
    path = os.path.join(folder, name)
    with open(path, "w") as file:
        file.write(content if isinstance(content, str) else json.dumps(content))
    return path


# ---- a body and patterns ----

def figure(folder, scale=1, z_up=False):
    """A torso: an egg of 1.7 m height, 34 cm wide, 24 cm deep, as an OBJ file with y upwards."""
    n, m = 24, 16
    lines = []
    for j in range(1, m):
        a = math.pi * j / m
        for i in range(n):
            b = 2 * math.pi * i / n
            p = (0.17 * math.sin(a) * math.cos(b), 0.85 - 0.85 * math.cos(a), 0.12 * math.sin(a) * math.sin(b))
            lines.append(p)
    lines += [(0, 0, 0), (0, 1.7, 0)]
    faces = []
    for j in range(m - 2):
        for i in range(n):
            a, b = j * n + i, j * n + (i + 1) % n
            faces += [(a, a + n, b), (b, a + n, b + n)]
    for i in range(n):
        faces += [((m - 1) * n, i, (i + 1) % n), ((m - 1) * n + 1, (m - 2) * n + (i + 1) % n, (m - 2) * n + i)]
    text = ""
    for x, y, z in lines:
        if z_up:
            x, y, z = x, -z, y
        text += f"v {scale * x:.6g} {scale * y:.6g} {scale * z:.6g}\n"
    text += "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in faces)
    return write(folder, "figure.obj", text)


def tube():
    """A skirt of two rectangles with a curved hem, 104 cm around, as GarmentCode writes it."""
    def panel(z, turn):
        points = [[0, 0], [52, 0], [52, 40], [0, 40]]
        edges = [{"endpoints": [0, 1], "curvature": {"type": "quadratic", "params": [[0.5, -0.05]]}}, {"endpoints": [1, 2]},
                 {"endpoints": [2, 3], "label": "lower_interface"}, {"endpoints": [3, 0]}]
        if turn:  # the back runs the other way round, seen from the front
            points = [points[i] for i in (0, 3, 2, 1)]
            edges = [{"endpoints": [0, 1]}, {"endpoints": [1, 2], "label": "lower_interface"}, {"endpoints": [2, 3]},
                     {"endpoints": [3, 0], "curvature": {"type": "quadratic", "params": [[0.5, 0.05]]}}]
        return {"translation": [-26, 60, z], "rotation": [0, 0, 0], "vertices": points, "edges": edges}
    return {"pattern": {"panels": {"front": panel(30, False), "back": panel(-30, True)},
                        "stitches": [[{"panel": "front", "edge": 1}, {"panel": "back", "edge": 2}],
                                     [{"panel": "front", "edge": 3}, {"panel": "back", "edge": 0}]]},
            "properties": {"curvature_coords": "relative", "units_in_meter": 100}, "parameters": {}}


def imported(folder, pattern, *more, body=None):
    path = write(folder, "tube_specification.json", pattern)
    scene = os.path.join(folder, "scene.json")
    done = ok("import", path, "--body", body or figure(folder), "-o", scene, *more)
    with open(scene) as file:
        return scene, json.load(file), done


def bake(scene, cache, frames, *more):
    ok("bake", scene, "-o", cache, "--frames", f"1-{frames}", "--progress", "none", "--threads", "1", *more)


# ---- tests ----

def test_import_makes_a_scene(folder):
    scene, content, done = imported(folder, tube(), "--edge-length", "0.04", "--fabric", "denim")
    garment = content["garments"][0]
    assert garment["fabric"] == "denim" and garment["edge_length"] == 0.04
    assert [p["name"] for p in garment["panels"]] == ["front", "back"] and len(garment["seams"]) == 2
    assert content["colliders"][0]["obj"] == "figure.obj", content["colliders"]
    held = [pin["select"]["panel_edges"][0] for pin in content["pins"]]
    assert {(h["panel"], h["edge"]) for h in held} == {("front", 2), ("back", 1)}, held
    for pin, panel in zip(content["pins"], garment["panels"]):
        up = pin.get("motion", {"keys": [0, {"translate": [0, 0, 0]}]})["keys"][1]["translate"][2]
        waist = panel["place"]["origin"][1] + 0.4 + up
        assert abs(waist - 1.7 * 0.71) < 0.03, f"waists are where an egg is narrowest above its middle, not at {waist}"
        assert abs(up) < 0.02, f"the panel starts there already, but goes up by {up}"
        assert pin["stiffness"] > 0, "seams are stronger"
    assert content["settings"]["gravity_delay"] > 0
    front = garment["panels"][0]
    assert abs(front["outline"][1]["from"][0] - 0.52) < 1e-9, "centimetres became metres"
    assert abs(front["outline"][0]["control"][0][1] + 0.05 * 0.52) < 1e-9
    assert front["place"]["bend"]["radius"] > 0, "bent around the figure"
    assert "2 panels, 2 seams" in done.stdout, done.stdout
    assert "warning" not in done.stderr, done.stderr


def dress():
    """The tube with a bodice as wide, 20 cm too long: its lower edge is sewn to the waist."""
    made = tube()
    panels, stitches = made["pattern"]["panels"], made["pattern"]["stitches"]
    for name, z in (("upper_front", 30), ("upper_back", -30)):
        side = 1 if z > 0 else -1
        edges = [{"endpoints": [i, (i + 1) % 4]} for i in range(4)]
        points = [[0, 0], [60, 0], [60, 40], [0, 40]][::side]
        panels[name] = {"translation": [-30, 101, z], "rotation": [0, 0, 0], "vertices": points, "edges": edges}
    stitches += [[{"panel": "upper_front", "edge": 1}, {"panel": "upper_back", "edge": 1}],
                 [{"panel": "upper_front", "edge": 3}, {"panel": "upper_back", "edge": 3}],
                 [{"panel": "upper_front", "edge": 0}, {"panel": "front", "edge": 2}],
                 [{"panel": "upper_back", "edge": 2}, {"panel": "back", "edge": 1}]]
    return made


def test_what_is_too_long_hangs_over_the_waist(folder):
    scene, content, _ = imported(folder, dress(), "--edge-length", "0.04")
    garment = content["garments"][0]
    shrunk = [m for m in garment["maps"] if m["property"] == "scale_u"]
    assert [m["select"]["panels"] for m in shrunk] == [["upper_front"], ["upper_back"]], garment["maps"]
    assert all(m["value"] < 0.7 and m["keys"][-1]["value"] == 0 for m in shrunk)
    frames = [s["frames"] for s in garment["seams"]]
    assert frames[4][0] >= frames[0][1] and frames[4] == frames[5] and frames[0] == frames[3], frames
    cache = os.path.join(folder, "start.h5")
    bake(scene, cache, 1)
    frame = json.loads(run("verify", cache, "--json").stdout)["frames"][0]
    assert frame["collider_pairs"] == 0 and frame["cloth_pairs"] == 0 and frame["inside_colliders"] == 0, frame
    # the bodice starts around the skirt, not within it
    import h5py
    import numpy as np
    with h5py.File(cache) as file:
        g = file["garments/garment"]
        x, tri, panel = g["positions"][0], g["triangles"][:], g["triangle_panels"][:]
    far = [np.abs(x[np.unique(tri[panel == k])]) for k in range(4)]
    low = lambda k: far[k][far[k][:, 2] < 1.15][:, 1].max()
    assert low(2) > low(0) and low(3) > low(1), [low(k) for k in range(4)]


def test_import_starts_outside_and_is_the_same_twice(folder):
    scene, content, _ = imported(folder, tube(), "--edge-length", "0.03")
    again = imported(folder, tube(), "--edge-length", "0.03")[1]
    assert content == again
    cache = os.path.join(folder, "start.h5")
    bake(scene, cache, 1)
    done = run("verify", cache, "--json")
    frame = json.loads(done.stdout)["frames"][0]
    assert frame["collider_pairs"] == 0 and frame["cloth_pairs"] == 0 and frame["inside_colliders"] == 0, frame


def test_tubes_are_closed_first_and_stiff(folder):
    """A skirt on a waistband: its sides are sewn before the two are joined, the band's with that, and panels are stiff until then. A
    band that nothing holds is drawn to the skirt meanwhile."""
    made = tube()
    panels, stitches = made["pattern"]["panels"], made["pattern"]["stitches"]
    for panel in list(panels.values()):
        for edge in panel["edges"]:
            edge.pop("label", None)
    for name, z in (("band_front", 30), ("band_back", -30)):
        side = 1 if z > 0 else -1
        panels[name] = {"translation": [-30, 125, z], "rotation": [0, 0, 0], "vertices": [[0, 0], [60, 0], [60, 6], [0, 6]][::side],
                        "edges": [{"endpoints": [i, (i + 1) % 4]} for i in range(4)]}
    stitches += [[{"panel": "band_front", "edge": 1}, {"panel": "band_back", "edge": 1}],
                 [{"panel": "band_front", "edge": 3}, {"panel": "band_back", "edge": 3}],
                 [{"panel": "band_front", "edge": 0}, {"panel": "front", "edge": 2}],
                 [{"panel": "band_back", "edge": 2}, {"panel": "back", "edge": 1}]]
    garment = imported(folder, made, "--edge-length", "0.05")[1]["garments"][0]
    frames = [s["frames"] for s in garment["seams"]]
    assert frames[0] == frames[1] and frames[2] == frames[3] and frames[4] == frames[5] == [frames[0][0], frames[2][1]], frames
    panels["band_front"]["edges"][2]["label"] = panels["band_back"]["edges"][0]["label"] = "lower_interface"
    garment = imported(folder, made, "--edge-length", "0.05")[1]["garments"][0]
    frames = [s["frames"] for s in garment["seams"]]
    assert frames[0] == frames[1] and frames[2] == frames[3] == frames[4] == frames[5], frames
    assert frames[4][0] >= frames[0][1], "joined when it is closed"
    for name in ("bend_warp", "bend_weft"):
        (stiff,) = [m for m in garment["maps"] if m["property"] == name]
        assert stiff["value"] > 100 and stiff["keys"][-1]["value"] == 0, stiff
        assert stiff["keys"][0]["value"] == 1 and stiff["keys"][0]["frame"] >= frames[4][1], stiff


def test_inseams_are_sewn_before_outseams(folder):
    """Where two tubes part there is least room. Sleeves, whose seams all end at the body, are closed at once."""
    for name in ("trousers", "banded_trousers"):
        made = patterns.ALL[name]()
        garment = imported(folder, made, "--edge-length", "0.05")[1]["garments"][0]
        seams = {((s["a"][0]["panel"], s["a"][0]["edge"]), s["b"][0]["panel"]): s["frames"] for s in garment["seams"]}
        inner = [seams[("left_f", 1), "left_b"], seams[("right_f", 4), "right_b"]]
        outer = [seams[("left_f", e), "left_b"] for e in (3, 4)] + [seams[("right_f", e), "right_b"] for e in (1, 2)]
        assert inner[0] == inner[1] and all(o == outer[0] for o in outer) and outer[0][0] >= inner[0][1], (name, seams)
        assert seams[("left_f", 0), "right_f"][0] >= outer[0][1], "the crotch is sewn when both legs are closed"
    garment = imported(folder, patterns.puffed_tunic(), "--edge-length", "0.05")[1]["garments"][0]
    closed = [s["frames"] for s in garment["seams"] if {s["a"][0]["panel"][-2:], s["b"][0]["panel"][-2:]} == {"_f", "_b"}]
    assert len(closed) == 4 and all(c == closed[0] for c in closed), closed


def test_import_is_sewn(folder):
    scene, content, _ = imported(folder, tube(), "--edge-length", "0.05")
    cache = os.path.join(folder, "sewn.h5")
    bake(scene, cache, content["garments"][0]["seams"][0]["frames"][1] + 6)
    import h5py
    with h5py.File(cache) as file:
        positions = file["garments/garment/positions"][:]
        uv, triangles = file["garments/garment/corner_uv"][:], file["garments/garment/triangles"][:]
    # the sides of the front (u = 0 .. is its height, v its width) lie on those of the back
    panels = positions.shape[1] // 2
    first, last = positions[0], positions[-1]
    import numpy as np
    sides = {}
    for t, corners in zip(triangles.reshape(-1), uv.reshape(-1, 2)):
        sides[int(t)] = corners
    gaps = []
    for a in sides:
        for b in sides:
            if a < panels <= b and np.allclose(sides[a], sides[b], atol=1e-6) and abs(sides[a][1] + 0.26) > 0.255:
                gaps.append((np.linalg.norm(first[a] - first[b]), np.linalg.norm(last[a] - last[b])))
    assert len(gaps) >= 16, len(gaps)
    assert max(g[0] for g in gaps) > 0.005 and max(g[1] for g in gaps) < 1e-4, gaps


def test_bodies_of_other_units_and_axes(folder):
    for scale, z_up in ((100, False), (1, True)):
        with tempfile.TemporaryDirectory() as own:
            scene, content, done = imported(own, tube(), "--edge-length", "0.05", body=figure(own, scale, z_up))
            body = content["colliders"][0]
            assert body.get("scale", 1) == 1 / scale, body
            assert ("place" in body) == (not z_up), body
            assert scale == 1 or "centimetres" in done.stderr
            cache = os.path.join(own, "a.h5")
            bake(scene, cache, 1)
            ok("verify", cache)


def test_what_is_not_used_is_said(folder):
    pattern = tube()
    pattern["pattern"]["panels"]["front"]["buttons"] = 3
    pattern["pattern"]["panels"]["front"]["edges"][0]["trim"] = "lace"
    pattern["pattern"]["stitches"].append([{"panel": "front", "edge": 1}, {"panel": "back", "edge": 1}])
    pattern["properties"]["fabric_weight"] = 1
    done = imported(folder, pattern, "--edge-length", "0.05")[2]
    for word in ('panel "front": "buttons"', 'panel "front", edge 0: "trim"', "stitch 2: edge 1 of panel \"front\"",
                 'properties: "fabric_weight"'):
        assert word in done.stderr, f"{word!r} not in\n{done.stderr}"


def test_malformed_patterns(folder):
    body = figure(folder)
    out = os.path.join(folder, "no.json")

    def refuse(change, *says):
        pattern = tube()
        text = change(pattern)
        path = write(folder, "bad.json", text if isinstance(text, str) else pattern)
        fails(3, "import", path, "--body", body, "-o", out, "--edge-length", "0.05", says=says)
        assert not os.path.exists(out), "a scene was written"

    panel = lambda p: p["pattern"]["panels"]["front"]
    refuse(lambda p: panel(p)["edges"].pop(), 'panel "front", edge 2', "open")
    refuse(lambda p: panel(p)["edges"][1].update(endpoints=[1, 9]), 'panel "front", edge 1', "vertex 9")
    refuse(lambda p: panel(p)["edges"][2].update(endpoints=[3, 2]), 'panel "front", edge 2', "open")
    refuse(lambda p: panel(p)["vertices"].__setitem__(1, [0, 0]), 'panel "front", edge 0', "no length")
    refuse(lambda p: panel(p)["vertices"].__setitem__(2, [-33, 11.3]), 'panel "front"', "crosses")
    refuse(lambda p: panel(p)["vertices"].__setitem__(2, ["a", 1]), 'panel "front", edge 1', "not two numbers")
    refuse(lambda p: panel(p)["edges"][0].update(curvature={"type": "spiral", "params": []}), 'panel "front", edge 0', "spiral")
    refuse(lambda p: panel(p)["edges"][0].update(curvature={"type": "cubic", "params": [[0, 1]]}), 'panel "front", edge 0')
    refuse(lambda p: panel(p)["edges"][0].update(curvature={"type": "circle", "params": [-4, 0, 1]}), 'panel "front", edge 0')
    refuse(lambda p: p["pattern"]["stitches"][0][1].update(edge=17), 'panel "back"', "no edge 17")
    refuse(lambda p: p["pattern"]["stitches"][0][1].update(panel="sleeve"), 'no panel "sleeve"')
    refuse(lambda p: p["pattern"]["stitches"][0].pop(), "stitch 0")
    refuse(lambda p: panel(p)["edges"][0].update(curvature=3), 'panel "front", edge 0', "curvature")
    refuse(lambda p: p["properties"].update(units_in_meter=0.01), "units")
    refuse(lambda p: p["properties"].update(units_in_meter="cm"), "units_in_meter", "no number")
    refuse(lambda p: p["pattern"].update(stitches={"a": 1}), "stitches", "no list")
    refuse(lambda p: p["pattern"]["stitches"].append([{"panel": "front", "edge": 0}] * 2), "stitch 2", 'edge 0 of panel "front"', "itself")
    refuse(lambda p: p["properties"].update(units_in_meter=1), 'panel "front"', "units right")
    refuse(lambda p: (panel(p).update(translation=[0, 0, 0]), p["properties"].update(units_in_meter=1)), 'panel "front"', "unit right")
    thin = lambda p, wide: [panel(p)["edges"][0].pop("curvature"), panel(p).update(vertices=[[0, 0], [wide, 0], [wide, 40], [0, 40]])]
    refuse(lambda p: thin(p, 0.001), 'panel "front"', "wide", "units right")
    refuse(lambda p: (p["pattern"]["stitches"].clear(), p["pattern"]["stitches"].append([{"panel": "front", "edge": 0}, {"panel": "back", "edge": 0}]),
                      thin(p, 1.0)), "seam 0", 'panel "back", edge 0', "gathered into 0.01 m")
    refuse(lambda p: p["properties"].update(units_in_meter=-100), "units_in_meter")
    refuse(lambda p: p["pattern"].update(panels={}), "0 panels")
    refuse(lambda p: p["pattern"].update(panels=[]), "panels")
    refuse(lambda p: p.pop("pattern"), "no GarmentCode pattern")
    refuse(lambda p: json.dumps(p)[:-40], "not a pattern in JSON")
    refuse(lambda p: "[" * 100000, "not a pattern in JSON")
    refuse(lambda p: "", "not a pattern in JSON")
    refuse(lambda p: p["pattern"].update(panels={f"p{i}": {} for i in range(30000)}), "30000 panels")
    fails(5, "import", os.path.join(folder, "none.json"), "--body", body, "-o", out)
    good = write(folder, "good.json", tube())
    fails(5, "import", good, "--body", os.path.join(folder, "none.obj"), "-o", out)
    fails(2, "import", good, "-o", out, says="--body")
    fails(2, "import", good, "--body", body, "-o", out, "--fabric", "steel", says="steel")
    fails(2, "import", good, "--body", body, "-o", out, "--edge-length", "-1", says="--edge-length")


def square(name, x=0.0, **more):
    return {"name": name, "outline": [{"from": [0, 0]}, {"from": [0.2, 0], "name": "right"}, {"from": [0.2, 0.2]},
                                      {"from": [0, 0.2], "name": "left"}],
            "place": {"origin": [x, 0, 0.5]}, **more}


def scene_of(folder, panels, seams=(), **more):
    return write(folder, "panels.json", {
        "toile": 1, "frames": [1, 3], "settings": {"threads": 1},
        "garments": [{"name": "g", "fabric": "cotton", "edge_length": 0.05, "panels": panels, "seams": list(seams)}], **more})


def test_scene_of_panels(folder):
    seam = {"a": [{"panel": "one", "edge": "right"}], "b": [{"panel": "two", "edge": "left", "reverse": True}], "frames": [1, 3]}
    scene = scene_of(folder, [square("one"), square("two", 0.22, fabric="silk", grain=45)], [seam],
                     pins=[{"garment": "g", "select": {"panel_edges": [{"panel": "one", "edge": "left"}]}}])
    cache = os.path.join(folder, "panels.h5")
    bake(scene, cache, 3)
    info = json.loads(ok("info", cache, "--json").stdout)
    text = json.dumps(info)
    assert "one" in text and "two" in text, text
    fine = os.path.join(folder, "fine.h5")
    bake(scene, fine, 1, "--set", "garments.g.edge_length=0.02")
    import h5py
    with h5py.File(cache) as a, h5py.File(fine) as b:
        coarse, many = a["garments/g/positions"].shape[1], b["garments/g/positions"].shape[1]
        assert 45 < coarse < 65 and 200 < many < 300, (coarse, many)
        still = a["garments/g/positions"][:]
    assert abs(still[0] - still[-1]).max() > 1e-3, "nothing moves"


def test_scenes_that_are_refused(folder):
    def refuse(panels, seams=(), says=(), **more):
        fails(3, "bake", scene_of(folder, panels, seams, **more), "-o", os.path.join(folder, "x.h5"), says=says)
    side = lambda panel, edge: [{"panel": panel, "edge": edge}]
    one = square("one")
    refuse([one, one], says="panels[0] already has this name")
    refuse([one], [{"a": side("one", "right"), "b": side("two", 0)}], says='garments[0].seams[0].b[0].panel: found "two"')
    refuse([one], [{"a": side("one", "right"), "b": side("one", "top")}], says=['found "top"', "right"])
    refuse([one], [{"a": side("one", 0), "b": side("one", 4)}], says="edges 0 to 3")
    refuse([one], [{"a": side("one", 0), "b": side("one", 0)}], says=["seams[0]", "already sewn"])
    bow = square("bow")
    bow["outline"][2]["from"] = [-0.17, 0.131]
    refuse([bow], says=["garments[0].panels[0].outline", 'panel "bow"', "crosses"])
    refuse([square("fine", edge_length=1e-7)], says=['panel "fine"', "edge_length larger"])
    refuse([square("hole", holes=[[{"from": [1, 1]}, {"from": [1.1, 1]}, {"from": [1, 1.1]}]])], says=["holes[0]", "no hole inside"])
    refuse([one], says="panel_edges", pins=[{"garment": "g", "select": {"panel_edges": side("one", "bottom")}}])
    box = {"box": [[-9, -9, -9], [9, 9, 9]], "panels": ["two"]}
    refuse([one], says=['select.panels[0]: found "two"', "no such panel"], pins=[{"garment": "g", "select": box}])
    grid = {"name": "g", "grid": {"size": [1, 1]}, "seams": []}
    fails(3, "bake", write(folder, "grid.json", {"toile": 1, "garments": [grid]}), "-o", os.path.join(folder, "x.h5"),
          says='goes only with "panels"')


def test_many_panels_in_a_scene(folder):
    panels = [square(f"p{i}", 0.25 * i, edge_length=0.1) for i in range(1500)]
    seams = [{"a": [{"panel": f"p{i}", "edge": 1}], "b": [{"panel": f"p{i + 1}", "edge": 3, "reverse": True}]}
             for i in range(1499)]
    scene = scene_of(folder, panels, seams)
    ok("pack", scene, "-o", os.path.join(folder, "many.job.h5"))


def garmentcode(name):
    path = os.path.join(GARMENTCODE, name)
    if not os.path.exists(path):
        raise Skip(f"{path} is not there")
    return path


def test_garmentcode(folder):
    body = garmentcode("mean_all.obj")
    for name, panels, seams in (("shirt_mean", 8, 18), ("dress_pencil", 6, 23)):
        scene = os.path.join(folder, name + ".json")
        done = ok("import", garmentcode(name + "_specification.json"), "--body", body, "-o", scene)
        assert f"{panels} panels, {seams} seams" in done.stdout, done.stdout
        assert "warning" not in done.stderr, done.stderr
        cache = os.path.join(folder, name + ".h5")
        bake(scene, cache, 1)
        frame = json.loads(run("verify", cache, "--json").stdout)["frames"][0]
        assert frame["collider_pairs"] == 0 and frame["inside_colliders"] == 0, f"{name}: {frame}"
        angles = []
        import h5py
        with h5py.File(cache) as file:
            for tri in file["garments/garment/corner_uv"][:]:
                for k in range(3):
                    a, b = tri[(k + 1) % 3] - tri[k], tri[(k + 2) % 3] - tri[k]
                    angles.append(math.degrees(abs(math.atan2(a[0] * b[1] - a[1] * b[0], a @ b))))
            lengths = [math.dist(t[0], t[1]) for t in file["garments/garment/corner_uv"][:]]
        assert min(angles) > 20, f"{name}: smallest angle {min(angles)}"
        assert 0.008 < sum(lengths) / len(lengths) < 0.0125, f"{name}: edges are {sum(lengths) / len(lengths)} m on average"
        print(f"{name}: {len(angles) // 3} triangles, smallest angle {min(angles):.1f} degrees; {done.stdout.strip()}")


def start_of(folder, name):
    """Points of each panel where a pattern of tests/contact/patterns.py starts around the body: metres, z upwards."""
    pattern = write(folder, name + ".json", patterns.ALL[name]())
    mesh, points, panels = os.path.join(folder, "start.obj"), [], {}
    ok("import", pattern, "--body", os.path.join(GARMENTCODE, "mean_all.obj"), "-o", os.path.join(folder, "scene.json"), "--mesh", mesh,
       "--edge-length", 0.03)
    with open(mesh) as file:
        for line in file:
            kind, *words = line.split() or [""]
            if kind == "v":
                points.append([float(x) for x in words])
            elif kind == "g":
                panel = panels.setdefault(words[0], set())
            elif kind == "f":
                panel.update(int(w.split("/")[0]) - 1 for w in words)
    return {panel: [points[i] for i in corners] for panel, corners in panels.items()}


def widest_gap(points, at, low, high):
    """Largest angle without points, seen from `at`, in a range of heights."""
    angles = sorted(math.atan2(y - at[1], x - at[0]) for x, y, z in points if low < z < high)
    return math.degrees(max(b - a for a, b in zip(angles, angles[1:] + [angles[0] + 2 * math.pi])))


def test_panels_start_around_their_part_of_the_body(folder):
    garmentcode("mean_all.obj")
    start = start_of(folder, "trousers")
    for side, x in (("left", 0.1), ("right", -0.1)):
        gap = widest_gap(start[side + "_f"] + start[side + "_b"], (x, 0), 0.4, 0.7)
        assert gap < 150, f"{side} leg: {gap:.0f} degrees around it are free, it is not in its panels"
    gap = widest_gap(start_of(folder, "wrap_skirt")["skirt"], (0, 0), 0.7, 1.0)
    assert gap < 150, f"one panel leaves {gap:.0f} degrees around the body free"


def test_jumpsuit_is_not_drawn_into_the_crotch(folder):
    """Trousers that hang on a bodice start lower the shorter they are through the crotch; alone they slide down by themselves."""
    body = garmentcode("mean_all.obj")

    def waist(made):
        scene = os.path.join(folder, "scene.json")
        ok("import", write(folder, "jumpsuit.json", made), "--body", body, "-o", scene, "--edge-length", 0.03)
        content = json.load(open(scene))
        panels = {p["name"]: p for p in content["garments"][0]["panels"]}
        (pin,) = [p for p in content["pins"] if p["select"]["panel_edges"][0]["panel"] == "left_f"]
        panel = panels["left_f"]
        assert panel["outline"][5]["from"][1] == panel["outline"][0]["from"][1] == 0, "the waist is level"
        return panel["place"]["origin"][1] + (pin["motion"]["keys"][-1]["translate"][2] if "motion" in pin else 0)

    alone, joined = waist(patterns.trousers()), waist(patterns.jumpsuit())
    deeper = patterns.jumpsuit()
    for panel in deeper["pattern"]["panels"].values():
        for point in panel["vertices"]:
            point[1] -= 12 if point[1] < -30 else 0
    assert 0.02 < alone - joined < 0.1, (alone, joined)
    assert abs(waist(deeper) - alone) < 0.011, (alone, waist(deeper))


def test_pattern_goes_to_another_body(folder):
    """Arms that are raised two fifths of the way to T-pose, and shoulders 10 cm above those that the pattern is placed for."""
    body, raised = garmentcode("mean_all.obj"), os.path.join(folder, "raised.obj")
    with open(garmentcode("mean_all_tpose.obj")) as file:
        goals = [[float(x) for x in line.split()[1:4]] for line in file if line.startswith("v ")]
    with open(body) as file, open(raised, "w") as mixed:
        for line in file:
            if line.startswith("v "):
                line = "v %.6f %.6f %.6f\n" % tuple(0.6 * float(x) + 0.4 * y for x, y in zip(line.split()[1:4], goals.pop(0)))
            mixed.write(line)

    def placed(made, on):
        scene = os.path.join(folder, "scene.json")
        done = ok("import", write(folder, "raglan.json", made), "--body", on, "-o", scene, "--edge-length", 0.03)
        return {p["name"]: p["place"] for p in json.load(open(scene))["garments"][0]["panels"]}, done.stdout

    as_cut, _ = placed(patterns.raglan(), body)
    assert as_cut["left_f"]["rotate"] == [0, 0, -42] and as_cut["right_b"]["rotate"] == [0, 0, 42], "the pattern's own body"
    arms, said = placed(patterns.raglan(), raised)
    for side, sign in (("left", 1), ("right", -1)):
        turn = sign * arms[side + "_f"]["rotate"][2] + 42
        assert 8 < turn < 40 and arms[side + "_f"]["rotate"] == arms[side + "_b"]["rotate"], f"{side} sleeve turned by {turn}"
    assert " 0 of them through the body" in said, said
    low = patterns.raglan()
    for panel in low["pattern"]["panels"].values():
        panel["translation"][1] -= 10
    low, said = placed(low, body)
    for name in ("front", "back"):
        lost = as_cut[name]["origin"][1] - low[name]["origin"][1]
        assert -0.06 < lost < 0.06, f"{name}: {lost} m too low"


if __name__ == "__main__":
    main(tests_of(globals()))
