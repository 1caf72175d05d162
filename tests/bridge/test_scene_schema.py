#!/usr/bin/python3
"""The JSON Schema of a scene file: it is a valid schema, every sample satisfies it, and what it refuses the
loader refuses too. The program is taken from the environment variable TOILE (build/toile if unset)."""

import copy
import glob
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("TOILE", os.path.join(ROOT, "build", "toile"))
BAD_INPUT = 3

try:
    import jsonschema
    from jsonschema import Draft202012Validator
except ImportError:
    print("SKIPPED: the schema was NOT tested: install python3-jsonschema (apt install python3-jsonschema)")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(0)

passed = failed = 0


def check(condition, message):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        print("FAILED", message)


GOOD = {
    "toile": 1,
    "frames": [1, 2],
    "resolution": 4,
    "settings": {"gravity": [0, 0, -9.81], "time_step": 0.01, "cloth_model": "springs", "threads": 1},
    "fabrics": {"mine": {"base": "cotton", "density": 0.2}},
    "garments": [{"name": "sheet", "fabric": "mine", "grid": {"size": [1, 1]}, "layer": 2}],
    "colliders": [
        {"name": "ball", "shape": "sphere", "radius": 0.1, "friction": 0.3, "side": "outside",
         "place": {"origin": [0, 0, -1]}},
        {"shape": "box", "size": [1, 1, 1], "place": {"origin": [0, 0, -3]},
         "motion": {"keys": [{"frame": 1, "origin": [0, 0, -3]}], "interpolation": "smooth"}},
        {"shape": "plane", "place": {"origin": [0, 0, -5]}},
    ],
    "pins": [{"garment": "sheet", "select": {"corners": ["u0v0"], "within": 0.1}, "axes": "xyz", "grab": True}],
    "no_contact": [["sheet", "ball"], ["sheet", "sheet"],
                   {"garment": "sheet", "select": {"edges": ["u0"]}, "with": "colliders"}],
}

# Where, and what is put there; None takes the key away.
BROKEN = [
    (["toile"], 2),
    (["toile"], None),
    (["garments"], []),
    (["garments"], None),
    (["colour"], 1),
    (["fps"], 0),
    (["fps"], "24"),
    (["frames"], [1]),
    (["frames"], [1.5, 2]),
    (["resolution"], 1),
    (["settings", "time_stop"], 1),
    (["settings", "time_step"], 5),
    (["settings", "gravity"], [0, 0]),
    (["settings", "cloth_model"], "felt"),
    (["settings", "threads"], 1.5),
    (["fabrics", "mine", "weight"], 1),
    (["fabrics", "mine", "density"], -1),
    (["garments", 0, "grid"], None),
    (["garments", 0, "obj"], "x.obj"),
    (["garments", 0, "uv"], "flat"),
    (["garments", 0, "subdivide"], 1),
    (["garments", 0, "subdivide"], 5),
    (["garments", 0, "name"], "a/b"),
    (["garments", 0, "name"], ""),
    (["garments", 0, "grid", "size"], [1, -1]),
    (["garments", 0, "grid", "size"], [1, 0]),
    (["garments", 0, "grid", "resolution"], [4]),
    (["colliders", 0, "shape"], "ball"),
    (["colliders", 0, "radius"], None),
    (["colliders", 0, "length"], 1),
    (["colliders", 0, "friction_static"], 0.3),
    (["colliders", 1, "motion", "keys"], []),
    (["colliders", 1, "motion", "keys", 0, "frame"], None),
    (["colliders", 2, "shape"], "mesh"),
    (["pins", 0, "select"], {"within": 1}),
    (["pins", 0, "select", "corners"], ["u2v0"]),
    (["pins", 0, "axes"], "w"),
    (["pins", 0, "garment"], None),
    (["pins", 0, "grab"], 1),
    (["garments", 0, "layer"], 1.5),
    (["garments", 0, "layer"], 2000),
    (["colliders", 0, "side"], "left"),
    (["no_contact"], {}),
    (["no_contact", 0], ["sheet"]),
    (["no_contact", 0], ["sheet", 1]),
    (["no_contact", 0], "sheet"),
    (["no_contact", 2, "select"], None),
    (["no_contact", 2, "with"], "air"),
]


def changed(path, value):
    scene = copy.deepcopy(GOOD)
    node = scene
    for part in path[:-1]:
        node = node[part]
    if value is None:
        del node[path[-1]]
    else:
        node[path[-1]] = value
    return scene


def load(scene, folder):
    """Exit code and message of a bake of the scene."""
    path = os.path.join(folder, "scene.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(scene, file)
    command = [PROGRAM, "bake", path, "-o", os.path.join(folder, "scene.h5"), "--progress", "none"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return run.returncode, run.stderr.strip()


def main():
    text = subprocess.run([PROGRAM, "schema"], capture_output=True, text=True, timeout=60, check=True).stdout
    schema = json.loads(text)
    try:
        Draft202012Validator.check_schema(schema)
        check(True, "")
    except jsonschema.SchemaError as problem:
        check(False, "the schema itself: %s" % problem.message)
    validator = Draft202012Validator(schema)

    for path in sorted(glob.glob(os.path.join(ROOT, "samples", "scenes", "*.json"))):
        with open(path, encoding="utf-8") as file:
            scene = json.load(file)
        problems = ["%s: %s" % (list(e.absolute_path), e.message) for e in validator.iter_errors(scene)]
        check(not problems, "%s: %s" % (path, "; ".join(problems)))

    with tempfile.TemporaryDirectory() as folder:
        problems = [e.message for e in validator.iter_errors(GOOD)]
        check(not problems, "the schema refuses a good scene: %s" % problems)
        code, message = load(GOOD, folder)
        check(code == 0, "the program refuses a good scene: %s" % message)
        for path, value in BROKEN:
            scene = changed(path, value)
            check(not validator.is_valid(scene), "the schema takes %s = %r" % (path, value))
            code, message = load(scene, folder)
            check(code == BAD_INPUT and "scene.json:1: " in message,
                  "the program takes %s = %r: exit %d, %s" % (path, value, code, message))

    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
