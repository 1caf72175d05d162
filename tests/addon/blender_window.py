"""A real window: panels are drawn, a bake is started and cancelled, the window answers meanwhile, screenshots are kept.
blender_window.py -- ZIP FOLDER     (run by test_addon.py under Xvfb; FOLDER gets the pictures and `result`)

Everything happens in timer steps, since nothing is drawn until the main loop turns."""
import json
import os
import signal
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "contact")]

import bpy

import inside
import patterns
from inside import ARGUMENTS, activate, check, op

ZIP, FOLDER = ARGUMENTS[0], ARGUMENTS[1]
PATTERN = os.path.join(FOLDER, "skirt_specification.json")
bpy.context.preferences.view.show_splash = False
bpy.ops.preferences.addon_install(filepath=ZIP, overwrite=True)
bpy.ops.preferences.addon_enable(module="toile")
from toile import capture, jobs, operators_bake, operators_import, panels, playback, versions


beats = []                  # (time, what is going on, processor time of the main thread)
timed = {}


def measure(module, name, label):
    """Wraps a function of the add-on so that the time it holds the main thread is known."""
    function = getattr(module, name)

    def wrapped(*arguments, **more):
        began = time.perf_counter()
        try:
            return function(*arguments, **more)
        finally:
            timed.setdefault(label, []).append(time.perf_counter() - began)
    setattr(module, name, wrapped)
    return function


panels.unregister()         # statistics and overlays stand open, to be seen in the pictures
measure(panels, "draw_bake", "drawing")
for body in panels.BODIES:
    setattr(panels, "timed_" + body[0], body[2])
    measure(panels, "timed_" + body[0], "drawing")
panels.BODIES = tuple(body[:2] + (getattr(panels, "timed_" + body[0]), body[0] not in ("statistics", "overlays", "cache"))
                      + body[4:] for body in panels.BODIES)
panels.register()
measure(jobs.Bake, "poll", "poll")
measure(jobs, "_show_new", "show")
measure(jobs, "_status", "status")
measure(capture.Capture, "step", "one frame of capture")
measure(operators_import.Placing, "poll", "poll")


def beat():
    beats.append((time.perf_counter(), phase, time.thread_time()))
    return 0.01


phase = "setup"


def area(kind):
    window = bpy.context.window_manager.windows[0]
    found = next(a for a in window.screen.areas if a.type == kind)
    return window, found, next(r for r in found.regions if r.type == 'WINDOW')


def shot(name):
    window, found, region = area('VIEW_3D')
    with bpy.context.temp_override(window=window, area=found, region=region):
        bpy.ops.screen.screenshot(filepath=os.path.join(FOLDER, name))


def click(x, y):
    """A real click, in pixels from the top left."""
    subprocess.run(["xdotool", "mousemove", str(x), str(y), "click", "1"], check=False)


def call(name, **arguments):
    window, found, region = area('VIEW_3D')
    with bpy.context.temp_override(window=window, area=found, region=region):
        inside.used.add(name)
        return getattr(bpy.ops.toile, name)('INVOKE_DEFAULT', **arguments)


def tries(name, counts={}):
    counts[name] = counts.get(name, 0) + 1
    return counts[name]


# ---- steps: each is called until it returns seconds to the next one; None: again soon ----

def make_scene():
    global body, cape
    scene = bpy.context.scene
    bpy.data.objects.remove(bpy.data.objects["Cube"])
    bpy.ops.mesh.primitive_uv_sphere_add(radius=0.5, location=(0, 0, 1), segments=32, ring_count=20)
    body = bpy.context.object
    body.name = "Body"
    body.keyframe_insert("location", frame=1)
    body.location.x = 1
    body.keyframe_insert("location", frame=60)
    op("add", role='COLLIDER')
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=60, y_subdivisions=60, size=2, location=(0, 0, 1.55))
    cape = bpy.context.object
    cape.name = "Cape"
    scene.frame_end = 300
    bpy.ops.wm.save_as_mainfile(filepath=os.path.join(FOLDER, "window.blend"))
    window, properties, region = area('PROPERTIES')
    properties.spaces.active.context = 'PHYSICS'
    view = area('VIEW_3D')[1]
    view.spaces.active.show_region_ui = True
    return 0.8


def physics_tab():
    shot("1_physics_buttons.png")
    return 0.5


def make_garment():
    activate(cape)
    op("add", role='GARMENT', fabric="cotton")
    return 0.6


def sidebar():
    view = area('VIEW_3D')[1]
    tabs = next(r for r in view.regions if r.type == 'UI')
    if hasattr(tabs, "active_panel_category"):
        tabs.active_panel_category = "Toile"
    else:
        height = bpy.context.window_manager.windows[0].height
        click(tabs.x + tabs.width - 8, height - (tabs.y + tabs.height) + 168)
    return 1.0


def panels_drawn():
    shot("2_garment.png")
    return 0.5


def start():
    global phase
    phase = "capture"
    call("bake")
    return 0.1


def capturing():
    if operators_bake.state["capture"] is not None:
        return None
    global phase
    phase = "bake"
    check(len(jobs.running) == 1, f"nothing runs: {operators_bake.state['error']}")
    check(operators_bake.state["error"] == "", operators_bake.state["error"])
    return 2.0


def baking():
    bake = next(iter(jobs.running.values()), None)
    if bake is not None and bake.done_frames < 4:
        return None
    check(bake is not None, "ended too soon to be seen")
    shot("3_baking.png")
    return 0.5


def cancel():
    global phase
    phase = "cancel"
    call("cancel")
    return 0.2


def stopping():
    if jobs.running:
        return None
    bake = jobs.of(bpy.context.scene)
    check(bake.state == 'stopped', f"{bake.state}: {bake.message}")
    return 0.5


def resume():
    global phase
    call("resume")
    phase = "bake"
    return 0.3


def resumed():
    bake = next(iter(jobs.running.values()), None)
    if bake is not None and bake.done_frames < 10:
        return None
    check(bake is None or bake.done_frames > 3, "did not go on")
    global phase
    phase = "kill"
    check(bake is not None, "ended too soon to be killed")
    if bake is not None:
        call("cancel", kill=True)
    return 0.3


def killed():
    if jobs.running:
        return None
    bake = jobs.of(bpy.context.scene)
    check(bake.state in ('failed', 'complete'), f"{bake.state}: {bake.message}")
    bpy.context.scene.frame_set(9)
    return 0.5


def show_results():
    op("show_stretch")
    bpy.context.scene.toile.show_contacts = True
    bpy.context.scene.frame_set(8)
    return 0.7


def results_drawn():
    shot("4_result.png")
    return 0.5


def change():
    """A setting is changed: the version is marked, the panel says so."""
    cape.toile.garment.density = 0.5
    bpy.context.scene.toile.show_stretch = False
    for edge in cape.data.edges:
        edge.use_seam = edge.index % 7 == 0
    bpy.context.scene.toile.show_seams = bpy.context.scene.toile.show_warp = True
    return 0.8


def changed():
    if not versions.active(bpy.context.scene).outdated and tries("changed") < 50:
        return None
    check(versions.active(bpy.context.scene).outdated, "not marked")
    shot("lines.png")
    return 0.2


def escape():
    """Escape during the capture ends it."""
    bpy.context.scene.frame_end = 2000
    call("bake", new_version=True)
    return 0.3


def escaped():
    if operators_bake.state["capture"] is not None:
        subprocess.run(["xdotool", "mousemove", "600", "500", "key", "Escape"], check=False)
        if tries("escaped") < 40:
            return None
    check(operators_bake.state["capture"] is None, "Escape does not end the capture")
    check(playback.paused == 0 and not jobs.running, "not put back")
    return 0.3


def place():
    """A pattern is placed while the window answers; the garment comes by itself."""
    global phase
    with open(PATTERN, "w", encoding="utf-8") as file:
        json.dump(patterns.slanted_skirt(), file)
    activate(body)
    phase = "placing"
    check(call("import_pattern", filepath=PATTERN, edge_length=0.01) == {'RUNNING_MODAL'}, "not modal")
    placed = operators_import.state["placing"]
    check(placed is not None and placed.process.poll() is None and bpy.data.objects.get("skirt") is None, "the window waited for it")
    return 0.05


def placing():
    global phase
    if operators_import.state["placing"] is not None:
        return None
    phase = "placed"
    check(any(b[1] == "placing" for b in beats), "the main loop did not turn while a pattern was placed")
    skirt = bpy.data.objects.get("skirt")
    check(skirt is not None and skirt.toile.role == 'GARMENT' and len(skirt.data.materials) == 2, "no garment came of it")
    return 0.2


def place_again():
    activate(body)
    call("import_pattern", filepath=PATTERN, edge_length=0.004)
    placed_no_more.process = operators_import.state["placing"].process
    os.kill(placed_no_more.process.pid, signal.SIGSTOP)     # a busy machine shows the next step after seconds: not done by then
    return 0.3


def placed_no_more():
    """Escape ends the program, and nothing comes of it."""
    placed = operators_import.state["placing"]
    if placed is not None:
        subprocess.run(["xdotool", "mousemove", "600", "500", "key", "Escape"], check=False)
        if tries("placed_no_more") < 40:
            return None
    check(operators_import.state["placing"] is None, "Escape does not end it")
    check(placed_no_more.process.poll() is not None, "the program runs on")
    check(sum(ob.name.startswith("skirt") for ob in bpy.data.objects) == 1, "a garment came although it was cancelled")
    return 0.2


def finish():
    for label, most in (("poll", 0.1), ("show", 0.1), ("status", 0.1), ("drawing", 0.1)):
        worst = max(timed.get(label, [0]))
        check(worst < most, f"{label} held the main thread for {1000 * worst:.0f} ms")
    gaps = {}
    for (a, p, s), (b, q, t) in zip(beats, beats[1:]):
        if p == q:
            gaps.setdefault(p, []).append(b - a)
            gaps.setdefault(p + ", processor time", []).append(t - s)
    for name, values in gaps.items():
        values.sort()
        print(f"gaps of the main loop, {name}: median {1000 * values[len(values) // 2]:.0f} ms, largest "
              f"{1000 * values[-1]:.0f} ms of {len(values)}")
    for label, values in timed.items():
        print(f"held by {label}: largest {1000 * max(values):.1f} ms of {len(values)} calls")
    for name in ("1_physics_buttons.png", "2_garment.png", "3_baking.png", "4_result.png"):
        path = os.path.join(FOLDER, name)
        check(os.path.exists(path) and os.path.getsize(path) > 20000, f"{name} is missing or empty")
    return 0.1


STEPS = [make_scene, physics_tab, make_garment, sidebar, panels_drawn, start, capturing, baking, cancel, stopping, resume,
         resumed, killed, show_results, results_drawn, change, changed, escape, escaped, place,
         placing, place_again, placed_no_more, finish]
began = time.monotonic()


def runner():
    step = STEPS[0]
    try:
        wait = step()
        if time.monotonic() - began > 180:
            check(False, f"{step.__name__} never ends")
            STEPS.clear()
    except Exception:
        traceback.print_exc(file=sys.stdout)
        check(False, f"{step.__name__} ended early")
        STEPS.clear()
        wait = 0.1
    if wait is None and STEPS:
        return 0.1
    if STEPS:
        STEPS.pop(0)
    if STEPS:
        return wait
    with open(os.path.join(FOLDER, "result"), "w", encoding="utf-8") as file:
        file.write(f"{inside.passed} passed, {inside.failed} failed\n")
    print(f"{inside.passed} passed, {inside.failed} failed", flush=True)
    bpy.ops.wm.quit_blender()
    return None


bpy.app.timers.register(beat, first_interval=0.5, persistent=True)
bpy.app.timers.register(runner, first_interval=1.5, persistent=True)
