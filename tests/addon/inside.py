"""What the tests that run inside Blender share: checks, a runner, and small scenes."""
import os
import sys
import tempfile
import traceback

import bpy
import numpy

ARGUMENTS = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
passed = failed = 0
used = set()                # operators that were called
FOLDER = tempfile.mkdtemp(prefix="toile_addon_")


def check(condition, text=""):
    global passed, failed
    if condition:
        passed += 1
    else:
        failed += 1
        frame = sys._getframe(1)
        print(f"FAILED {frame.f_code.co_name}:{frame.f_lineno}: {text}")


def near(a, b, tolerance, text=""):
    difference = float(numpy.abs(numpy.asarray(a, float) - numpy.asarray(b, float)).max())
    global passed, failed
    if difference <= tolerance:
        passed += 1
    else:
        failed += 1
        frame = sys._getframe(1)
        print(f"FAILED {frame.f_code.co_name}:{frame.f_lineno}: {text}: differs by {difference}, at most {tolerance}")


def op(name, /, **arguments):
    """An operator of the add-on; remembered, so that the last test knows which ones were never called."""
    used.add(name)
    return getattr(bpy.ops.toile, name)(**arguments)


def refused(name, says, /, **arguments):
    """The operator fails and says these words."""
    global passed, failed
    try:
        op(name, **arguments)
        message = "it was done"
    except RuntimeError as error:
        message = str(error)
    if all(word in message for word in ([says] if isinstance(says, str) else says)):
        passed += 1
    else:
        failed += 1
        print(f"FAILED {sys._getframe(1).f_code.co_name}: {name} should say {says!r}, not: {message}")
    return message


def run(tests):
    """Runs functions, each in an empty file; prints the closing line and ends Blender."""
    global failed
    wanted = [a for a in ARGUMENTS if not a.startswith("/")]
    for test in tests:
        if wanted and not any(w in test.__name__ for w in wanted):
            continue
        print(f"-- {test.__name__}", flush=True)
        try:
            bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
            if bpy.context.scene.frame_current != 1:
                bpy.context.scene.frame_set(1)
            test()
        except Exception:
            failed += 1
            print(f"FAILED {test.__name__} ended early")
            traceback.print_exc(file=sys.stdout)
    print(f"{passed} passed, {failed} failed", flush=True)
    sys.exit(0 if failed == 0 and passed else 1)


# ---- scenes ----

def activate(ob):
    for other in bpy.context.selected_objects:
        other.select_set(False)
    ob.select_set(True)
    bpy.context.view_layer.objects.active = ob
    return ob


def grid(name="Sheet", n=12, size=0.8, z=0.5, fabric="cotton"):
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=n, y_subdivisions=n, size=size, location=(0, 0, z))
    ob = bpy.context.object
    ob.name = name
    op("add", role='GARMENT', fabric=fabric)
    return ob


def ball(name="Ball", radius=0.2, location=(0, 0, 0), **more):
    bpy.ops.mesh.primitive_uv_sphere_add(radius=radius, location=location, segments=24, ring_count=16)
    ob = bpy.context.object
    ob.name = name
    op("add", role='COLLIDER')
    for key, value in more.items():
        setattr(ob.toile.collider, key, value)
    return ob


def frames(last, first=1):
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = first, last


def shown(ob, depsgraph=None):
    """World positions of the evaluated object."""
    depsgraph = depsgraph or bpy.context.evaluated_depsgraph_get()
    found = ob.evaluated_get(depsgraph)
    points = numpy.empty((len(found.data.vertices), 3), numpy.float32)
    found.data.vertices.foreach_get("co", points.ravel())
    matrix = numpy.array(found.matrix_world)
    return points @ matrix[:3, :3].T + matrix[:3, 3]


def save(name, folder=None):
    path = os.path.join(folder or FOLDER, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    bpy.ops.wm.save_as_mainfile(filepath=path)
    return path
