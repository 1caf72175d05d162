"""Every operator and every promise of the add-on, in headless Blender. blender_operators.py -- TEST.zip [NAME...]"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bpy
import numpy

from inside import (ARGUMENTS, FOLDER, activate, ball, check, frames, grid, near, op, refused, run, save, shown, used)

ZIP = next(a for a in ARGUMENTS if a.endswith(".zip"))
if "toile" not in bpy.context.preferences.addons:
    bpy.ops.preferences.addon_install(filepath=ZIP, overwrite=True)
    bpy.ops.preferences.addon_enable(module="toile")
from toile import (bridge, capture, jobs, mesh_read, modifier, native, operators_bake, operators_import, outdated, overlays,
                   paths, playback, properties, sewing, statistics, versions)


def drape(n=12, last=6, saved=None):
    """A sheet over a ball, baked."""
    sheet, body = grid(n=n), ball(location=(0, 0, 0.25))
    frames(last)
    if saved:
        save(saved)
    activate(sheet)
    op("bake")
    return sheet, body


def cached(ob, frame):
    return playback.store.get(paths.of(ob), ob.toile.cache_garment, frame)


# ---- the add-on itself ----

def tables():
    check(native.problem() == "", native.problem())
    library = native.library()
    check(library.settings() == native.table("settings"), "the settings in the zip are not the library's")
    check(library.fabrics() == native.table("fabrics"), "the fabrics in the zip are not the library's")
    import toile
    check(".".join(map(str, toile.bl_info["version"])) == library.version, "versions differ")
    with open(os.path.join(native.FOLDER, "blender_manifest.toml"), encoding="utf-8") as file:
        check(f'version = "{library.version}"' in file.read(), "the manifest has another version")
    scene, sheet = bpy.context.scene, grid()
    made = capture.settings(scene)
    for row in properties.SETTINGS:
        if row["type"] == "real":
            check(abs(made[row["id"]] - row["default"]) <= 1e-6 * abs(row["default"]), f"{row['id']}: {made[row['id']]}")
        elif row["id"] != "gravity":
            check(made[row["id"]] == row["default"], f"{row['id']}: {made[row['id']]}")
        prop = scene.toile.bl_rna.properties[row["id"]]
        check(prop.description == row["tooltip"] and prop.name.startswith(row["label"]), prop.name)
    for fabric in properties.FABRICS:
        sheet.toile.garment.fabric = fabric["name"]
        found = mesh_read.fabric(sheet.toile.garment)
        for row in properties.FABRIC:
            wanted = fabric[row["id"]]
            check(abs(found[row["id"]] - wanted) <= 1e-6 * abs(wanted), f"{fabric['name']} {row['id']}")


def registered_twice():
    """Unregister leaves nothing behind, and register after it works."""
    def snapshot():
        return {name for name in dir(bpy.types) if "TOILE" in name.upper()}, \
            {name: [h.__name__ for h in getattr(bpy.app.handlers, name) if "toile" in getattr(h, "__name__", "").lower()]
             for name in dir(bpy.app.handlers) if isinstance(getattr(bpy.app.handlers, name), list)}, \
            [f for f in bpy.types.PHYSICS_PT_add.draw._draw_funcs if "toile" in f.__module__]
    bpy.ops.preferences.addon_disable(module="toile")
    types, handlers, drawn = snapshot()
    check(not types, f"left behind: {types}")
    check(not any(handlers.values()), f"left behind: {handlers}")
    check(not drawn, f"left behind: {drawn}")
    check(not hasattr(bpy.types.Object, "toile") and not hasattr(bpy.types.Scene, "toile"), "properties are left")
    check(not hasattr(bpy.ops.toile, "bake") or "bake" not in dir(bpy.ops.toile), "operators are left")
    check(not [t for t in threading.enumerate() if t.name.startswith("toile")], "a thread is left")
    bpy.ops.preferences.addon_enable(module="toile")
    bpy.ops.preferences.addon_disable(module="toile")
    bpy.ops.preferences.addon_enable(module="toile")
    types, handlers, drawn = snapshot()
    check(all(len(h) <= 1 for h in handlers.values()) and len(handlers["frame_change_pre"]) == 1, f"{handlers}")
    check(len(drawn) == 1, f"{drawn}")
    grid()
    check(bpy.context.object.toile.role == 'GARMENT', "does not work after it was registered again")


def translated():
    view = bpy.context.preferences.view
    view.language, view.use_translate_interface, view.use_translate_tooltips = "fr_FR", True, True
    check(bpy.app.translations.pgettext_iface("Toile Garment") == "Vêtement Toile", "no translation")
    view.language = "en_US"
    check(bpy.app.translations.pgettext_iface("Toile Garment") == "Toile Garment", "still translated")


def added_and_removed():
    sheet = grid()
    found = modifier.find(sheet)
    check(found is not None and not found.show_viewport, "no modifier, or it is shown before there is a cache")
    op("pin", side='Y_MAX')
    check(len(mesh_read.pinned(sheet)) == 13 and sheet.toile.garment.pin_group == "Pin", "pins")
    bpy.ops.object.mode_set(mode='EDIT')
    bpy.ops.mesh.select_all(action='SELECT')
    op("pin")
    check(sheet.mode == 'EDIT', "left edit mode")
    bpy.ops.object.mode_set(mode='OBJECT')
    check(len(mesh_read.pinned(sheet)) == len(sheet.data.vertices), "selected vertices are not pinned")
    op("remove")
    check(modifier.find(sheet) is None and sheet.toile.role == 'NONE', "not removed")
    bpy.ops.object.text_add()
    refused("add", "not a mesh", role='GARMENT')
    op("add", role='COLLIDER')
    activate(sheet)
    refused("add", ["no fabric", "cotton"], role='GARMENT', fabric="concrete")


def modifiers_in_order():
    bpy.ops.mesh.primitive_plane_add()
    ob = bpy.context.object
    for kind in ('ARMATURE', 'SUBSURF', 'SOLIDIFY'):
        ob.modifiers.new(kind, kind)
    op("add", role='GARMENT')
    check([m.type for m in ob.modifiers] == ['ARMATURE', 'NODES', 'SUBSURF', 'SOLIDIFY'], [m.type for m in ob.modifiers])
    ob.modifiers.clear()
    op("add", role='GARMENT')
    for kind in ('ARMATURE', 'SMOOTH'):     # as parenting adds it; and one to smooth the result
        ob.modifiers.new(kind, kind)
    frames(2)
    op("bake")
    check([m.type for m in ob.modifiers] == ['ARMATURE', 'NODES', 'SMOOTH'], [m.type for m in ob.modifiers])


def presets():
    sheet = grid()
    sheet.toile.garment.density = 0.77
    check(sheet.toile.garment.fabric == "custom", "a changed fabric keeps its name")
    sheet.toile.garment.fabric = "denim"
    check(sheet.toile.garment.fabric == "denim" and abs(sheet.toile.garment.density - 0.324) < 1e-6, "a chosen fabric")
    sheet.toile.garment.density = 0.77
    op("fabric_preset_add", name="Heavy Stuff")
    sheet.toile.garment.density = 0.1
    file = os.path.join(bpy.utils.user_resource('SCRIPTS', path="presets/toile/fabric"), "Heavy_Stuff.py")
    check(os.path.exists(file), file)
    bpy.ops.script.execute_preset(filepath=file, menu_idname="TOILE_MT_fabric_presets")
    check(abs(sheet.toile.garment.density - 0.77) < 1e-6, f"{sheet.toile.garment.density}")
    bpy.context.scene.toile.time_step = 0.003
    op("settings_preset_add", name="Fine")
    bpy.context.scene.toile.time_step = 0.01
    file = os.path.join(bpy.utils.user_resource('SCRIPTS', path="presets/toile/settings"), "Fine.py")
    bpy.ops.script.execute_preset(filepath=file, menu_idname="TOILE_MT_settings_presets")
    check(abs(bpy.context.scene.toile.time_step - 0.003) < 1e-8, f"{bpy.context.scene.toile.time_step}")


# ---- baking ----

def baked():
    sheet, body = drape()
    bake = jobs.of(bpy.context.scene)
    check(bake.state == 'complete' and bake.frame == 6, f"{bake.state}: {bake.message}")
    for frame in (1, 3, 6, 2):
        bpy.context.scene.frame_set(frame)
        near(shown(sheet), cached(sheet, frame), 1e-6, f"frame {frame}")
    bpy.context.scene.frame_set(6)
    check(shown(sheet)[:, 2].min() < 0.45, "the sheet did not fall")
    rest = numpy.empty((len(sheet.data.vertices), 3), numpy.float32)
    sheet.data.vertices.foreach_get("co", rest.ravel())
    near(rest[:, 2], 0, 0, "the mesh itself was changed")
    bpy.context.scene.frame_set(50)
    near(shown(sheet), cached(sheet, 6), 1e-6, "after the end")
    bpy.context.scene.frame_set(-5)
    near(shown(sheet), cached(sheet, 1), 1e-6, "before the start")
    check(not playback.errors, f"{playback.errors}")


def triangles():
    """A sheet whose quads are cut already: which way a square one is cut otherwise hangs on its last digit."""
    sheet = grid()
    bpy.ops.object.mode_set(mode='EDIT')
    bpy.ops.mesh.select_all(action='SELECT')
    bpy.ops.mesh.quads_convert_to_tris(quad_method='FIXED')
    bpy.ops.object.mode_set(mode='OBJECT')
    return sheet


def transformed():
    """Rotated, scaled and mirrored objects, and other units, show the same drape in the world."""
    sheet, body = triangles(), ball(location=(0, 0, 0.25))
    frames(6)
    activate(sheet)
    op("bake")
    expected = cached(sheet, 3).copy()
    bpy.context.scene.toile.versions.clear()
    sheet.rotation_euler, sheet.scale, sheet.location = (0, 0, 0.5), (2, -2, 0.5), (0, 0, 0.5)
    points = numpy.empty((len(sheet.data.vertices), 3), numpy.float32)
    sheet.data.vertices.foreach_get("co", points.ravel())
    bpy.context.view_layer.update()
    world = numpy.array(sheet.matrix_world.inverted())
    wanted = points + (0, 0, 0.5)
    sheet.data.vertices.foreach_set("co", (wanted @ world[:3, :3].T + world[:3, 3]).astype(numpy.float32).ravel())
    op("bake")
    bpy.context.scene.frame_set(6)
    near(shown(sheet), cached(sheet, 6), 2e-6, "in the object's space")
    near(cached(sheet, 3), expected, 1e-3, "the same drape when the ball is touched")
    # the object moves after the bake: the cache is where it was baked
    sheet.location.x += 3
    bpy.context.view_layer.update()
    bpy.context.scene.frame_set(5)
    bpy.context.scene.frame_set(6)
    near(shown(sheet), cached(sheet, 6), 2e-6, "moved object")


def units():
    sheet, body = triangles(), ball(location=(0, 0, 0.25))
    frames(6)
    op("bake")
    expected = cached(sheet, 3).copy()
    bpy.context.scene.toile.versions.clear()
    bpy.context.scene.unit_settings.scale_length = 0.01
    bpy.context.scene.gravity = (0, 0, -981)
    for ob in (sheet, body):
        ob.scale, ob.location = (100, 100, 100), ob.location * 100
    bpy.context.scene.toile.contact_thickness *= 100        # lengths are in the scene's unit
    body.toile.collider.thickness *= 100
    op("bake")
    near(cached(sheet, 3), expected, 1e-4, "centimetres")
    bpy.context.scene.frame_set(6)
    near(shown(sheet), cached(sheet, 6) * 100, 1e-3, "shown in centimetres")


def armature_collider():
    bpy.ops.object.armature_add(location=(0, 0, -0.3))
    rig = bpy.context.object
    body = ball(radius=0.2)
    activate(rig)
    body.select_set(True)
    bpy.ops.object.parent_set(type='ARMATURE_AUTO')
    bone = rig.pose.bones[0]
    bone.keyframe_insert("location", frame=1)
    bone.location = (0, 0.3, 0)
    bone.keyframe_insert("location", frame=10)
    sheet = grid(n=16, z=0.22)
    frames(10)
    op("bake")
    bpy.context.scene.frame_set(10)
    centre = shown(body).mean(axis=0)
    check(centre[2] > 0.25, f"the body did not rise: {centre}")
    distance = numpy.linalg.norm(shown(sheet) - centre, axis=1)
    check(distance.min() > 0.195, f"cloth inside the body: {distance.min()}")
    check(shown(sheet)[:, 2].max() > 0.4, "the cloth was not lifted")


def animated_modifiers():
    """Shape keys and an animated modifier move a collider."""
    body = ball(radius=0.2)
    body.shape_key_add(name="Basis")
    key = body.shape_key_add(name="Tall")
    for point in key.data:
        point.co.z *= 1.5
    key.value = 0
    key.keyframe_insert("value", frame=1)
    key.value = 1
    key.keyframe_insert("value", frame=8)
    cast = body.modifiers.new("Cast", 'CAST')
    cast.factor = 0
    cast.keyframe_insert("factor", frame=1)
    cast.factor = 0.4
    cast.keyframe_insert("factor", frame=8)
    sheet = grid(n=16, z=0.22)
    frames(8)
    op("bake")
    bpy.context.scene.frame_set(8)
    top = shown(body)[:, 2].max()
    check(top > 0.22, f"the body did not grow: {top}")
    check(shown(sheet)[:, 2].max() > top - 0.01, "cloth sank into the body")


def hidden_colliders():
    """What is hidden or disabled in the viewport moves all the same; what is excluded takes no part, and that is said; a
    collection instance shows its colliders to the cloth."""
    def lifted(arrange):
        bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
        sheet, sphere = grid(n=10), ball(location=(0, 0, 0.2))
        sphere.shape_key_add(name="Basis")
        key = sphere.shape_key_add(name="Up")
        for point in key.data:
            point.co.z += 0.5
        for frame, amount in ((1, 0), (8, 1)):
            key.value = amount
            key.keyframe_insert("value", frame=frame)
        frames(8)
        arrange(sphere)
        activate(sheet)
        op("bake")
        bpy.context.scene.frame_set(8)
        return shown(sheet)[:, 2].max(), sphere

    def into_collection(sphere):
        made = bpy.data.collections.new("Body")
        made.objects.link(sphere)
        bpy.context.collection.objects.unlink(sphere)
        return made

    def excluded(sphere):
        bpy.context.scene.collection.children.link(into_collection(sphere))
        bpy.context.view_layer.layer_collection.children["Body"].exclude = True

    def disabled(sphere):
        bpy.context.scene.collection.children.link(into_collection(sphere))
        bpy.data.collections["Body"].hide_viewport = True

    def instanced(sphere):
        empty = bpy.data.objects.new("Character", None)
        empty.instance_type, empty.instance_collection = 'COLLECTION', into_collection(sphere)
        bpy.context.collection.objects.link(empty)

    check(lifted(lambda sphere: sphere.hide_set(True))[0] > 0.8, "a collider that is hidden does not move")
    top, sphere = lifted(lambda sphere: setattr(sphere, "hide_viewport", True))
    check(top > 0.8 and sphere.hide_viewport, "a collider that is disabled in the viewport does not move, or was enabled")
    check(lifted(instanced)[0] > 0.8, "a collider in a collection instance is not seen")
    for arrange in (excluded, disabled):
        check(lifted(arrange)[0] < 0.5, f"{arrange.__name__}: a collider that Blender does not evaluate stands in the way")
    top, sphere = lifted(lambda sphere: sphere.keyframe_insert("hide_viewport", frame=1))
    check(top > 0.8, "a key that shows the collider hides it")
    sphere.hide_viewport = True
    sphere.keyframe_insert("hide_viewport", frame=4)
    bpy.context.scene.frame_set(1)
    refused("bake", ["Ball", "disabled", "frame 4"])
    bpy.context.object.hide_set(False)
    bpy.context.scene.collection.children.link(into_collection(bpy.context.object))     # the garment
    bpy.context.view_layer.layer_collection.children["Body"].exclude = True
    refused("bake", ["Sheet", "excluded"])


def no_place():
    """Coordinates that are no numbers, and an object without a size: said in the artist's words."""
    sheet = grid()
    sheet.data.vertices[3].co.x = float("nan")
    frames(3)
    refused("bake", ['"Sheet"', "vertex 3", "frame 1"])
    sheet.data.vertices[3].co.x = -0.3
    sheet.scale.y = 0
    refused("bake", ['"Sheet"', "along Y"])


def pins_follow():
    bpy.ops.object.armature_add(location=(0, 0, 0))
    rig = bpy.context.object
    bone = rig.pose.bones[0]
    sheet = grid(z=0)
    op("pin", side='X_MIN')
    mod = sheet.modifiers.new("Armature", 'ARMATURE')
    mod.object = rig
    group = sheet.vertex_groups.new(name="Bone")
    group.add(range(len(sheet.data.vertices)), 1.0, 'REPLACE')
    from toile import compat
    compat.move_modifier(sheet, "Armature", 0)
    bone.keyframe_insert("location", frame=1)
    bone.location = (0.2, 0.1, 0)
    bone.keyframe_insert("location", frame=6)
    frames(6)
    activate(sheet)
    op("bake")
    held = mesh_read.pinned(sheet)
    start = shown_base(sheet, 1)
    for frame in (2, 4, 6):
        near(cached(sheet, frame)[held], shown_base(sheet, frame)[held], 1e-5, f"pins at frame {frame}")
    check(numpy.abs(shown_base(sheet, 6)[held] - start[held]).max() > 0.15, "the pins did not move")
    sheet.toile.garment.use_pin_end, sheet.toile.garment.pin_end = True, 3
    op("bake")
    free, held_up = cached(sheet, 6)[held][:, 2].mean(), shown_base(sheet, 6)[held][:, 2].mean()
    check(free < held_up - 0.005, "the pins were not released")
    group = sheet.toile.garment
    group.pin_group = "Nothing"
    refused("bake", ["Sheet", "no vertex group \"Nothing\""])
    sheet.vertex_groups.new(name="Empty")
    group.pin_group = "Empty"
    refused("bake", ["Sheet", "weight above one half"])


def shown_base(ob, frame):
    """The garment before the simulation."""
    found = modifier.find(ob)
    playback.paused += 1
    found.show_viewport = False
    bpy.context.scene.frame_set(frame)
    points = shown(ob)
    found.show_viewport = True
    playback.paused -= 1
    return points


def mistakes():
    """What is wrong is said with the object's name and what to do."""
    refused("bake", ["no garment", "Toile Garment"])
    sheet, body = grid(), ball(location=(0, 0, 0.25))
    frames(4)
    build = body.modifiers.new("Build", 'BUILD')
    build.frame_start, build.frame_duration = 1, 200
    build.frame_start = -60
    message = refused("bake", ["Ball", "frame 2", "Decimate"])
    check(bpy.context.scene.frame_current == 1, "the frame was not put back")
    check(operators_bake.state["error"] and operators_bake.state["error"] in message, "the panel does not know")
    check(playback.paused == 0, "playback stays off")
    body.modifiers.clear()
    sub = sheet.modifiers.new("Subdivision", 'SUBSURF')
    from toile import compat
    compat.move_modifier(sheet, sub.name, 0)
    refused("bake", ["Sheet", "Subdivision", "below"])
    sheet.modifiers.remove(sub)
    sheet.toile.garment.rest_shape = 'UV'
    while sheet.data.uv_layers:
        sheet.data.uv_layers.remove(sheet.data.uv_layers[0])
    refused("bake", ["Sheet", "no UV map"])
    sheet.toile.garment.rest_shape = 'SHAPE_KEY'
    refused("bake", ["Sheet", "no shape key"])


def problem_selected():
    """An edge with three faces: the bake names it, and its vertices are selected when asked."""
    mesh = bpy.data.meshes.new("Fin")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0.5, 0, 1)], [],
                     [(0, 1, 2), (1, 3, 2), (0, 4, 1), (0, 1, 4)])
    ob = bpy.data.objects.new("Fin/1", mesh)
    bpy.context.collection.objects.link(ob)
    activate(ob)
    op("add", role='GARMENT')
    frames(3)
    refused("bake", ["Fin", "vertices 0 and 1"])
    bake = jobs.of(bpy.context.scene)
    check(bake.state == 'failed' and bake.object == ob.name and bake.vertices == [0, 1], f"{bake.object} {bake.vertices}")
    op("select_problem")
    check(ob.mode == 'EDIT', "not in edit mode")
    bpy.ops.object.mode_set(mode='OBJECT')
    check([v.index for v in mesh.vertices if v.select] == [0, 1], [v.index for v in mesh.vertices if v.select])


def _interrupt(how, after=2):
    """Sends a signal to the bake when some frames are done; touches nothing of Blender."""
    def act():
        for _ in range(2000):
            for bake in list(jobs.running.values()):
                if bake.done_frames > after:
                    how(bake)
                    return
            time.sleep(0.005)
    thread = threading.Thread(target=act)
    thread.start()
    return thread


def cancelled_and_resumed():
    sheet, body = drape(n=40, last=40)
    whole = [cached(sheet, f).copy() for f in (1, 20, 40)]
    playback.store.forget(paths.of(sheet))
    thread = _interrupt(lambda bake: bake.stop())
    op("bake")
    thread.join()
    bake = jobs.of(bpy.context.scene)
    check(bake.state == 'stopped' and "Resume" in bake.message, f"{bake.state}: {bake.message}")
    last = playback.store.refresh(bake.cache)
    check(2 < last < 40, f"stopped at {last}")
    bpy.context.scene.frame_set(2)
    near(shown(sheet), cached(sheet, 2), 1e-6, "the finished part plays")
    op("resume")
    check(jobs.of(bpy.context.scene).state == 'complete', jobs.of(bpy.context.scene).message)
    for frame, points in zip((1, 20, 40), whole):
        near(cached(sheet, frame), points, 0, f"frame {frame} after resume")
    check(not bpy.ops.toile.cancel.poll(), "nothing runs, but cancel is offered")
    used.add("cancel")


def killed():
    """SIGKILL: the session is unharmed, the message says so, and resume brings the same bits."""
    sheet, body = drape(n=40, last=40)
    whole = cached(sheet, 40).copy()
    playback.store.forget(paths.of(sheet))
    thread = _interrupt(lambda bake: os.kill(bake.process.pid, signal.SIGKILL))
    refused("bake", ["SIGKILL", "Resume"])
    thread.join()
    check(jobs.of(bpy.context.scene).state == 'failed' and not jobs.running, "still thought to run")
    bpy.context.scene.frame_set(2)
    near(shown(sheet), cached(sheet, 2), 1e-6, "the finished part plays")
    op("resume")
    near(cached(sheet, 40), whole, 0, "after resume")


def grows():
    """Frames can be shown while the bake still writes."""
    sheet, body = grid(n=40), ball(location=(0, 0, 0.25))
    frames(60)
    activate(sheet)
    seen = []
    waiting = jobs.Bake.wait

    def wait(bake):
        while bake.poll():
            if bake.done_frames > 3 and len(seen) < 5:
                bpy.context.scene.frame_set(bake.frame)
                seen.append((bake.frame, shown(sheet).copy()))
            time.sleep(0.01)
    jobs.Bake.wait = wait
    try:
        op("bake")
    finally:
        jobs.Bake.wait = waiting
    check(len(seen) == 5, f"{len(seen)} frames were seen while it baked")
    for frame, points in seen:
        near(points, cached(sheet, frame), 1e-6, f"frame {frame} while it baked")


# ---- what stays right afterwards ----

def undone():
    save("undone.blend")
    sheet, body = drape()
    bpy.ops.ed.undo_push(message="baked")
    bpy.context.scene.frame_set(6)
    bpy.ops.ed.undo_push(message="frame")
    sheet.location.x = 1
    bpy.ops.ed.undo_push(message="moved")
    bpy.ops.ed.undo()
    sheet = bpy.data.objects["Sheet"]
    check(sheet.location.x == 0, "not undone")
    bpy.context.scene.frame_set(4)
    near(shown(sheet), cached(sheet, 4), 1e-6, "after undo")
    bpy.ops.ed.redo()
    sheet = bpy.data.objects["Sheet"]
    near(shown(sheet), cached(sheet, bpy.context.scene.frame_current), 1e-6, "after redo")


def saved_and_moved():
    folder = os.path.join(FOLDER, "first")
    sheet, body = drape(saved=os.path.join(folder, "a.blend"))
    check(sheet.toile.cache_path.startswith("//toile_cache/"), sheet.toile.cache_path)
    bpy.context.scene.frame_set(5)
    expected = shown(sheet).copy()
    save("a.blend", folder)
    bpy.ops.wm.open_mainfile(filepath=os.path.join(folder, "a.blend"))
    near(shown(bpy.data.objects["Sheet"]), expected, 1e-6, "after reload, before any frame change")
    bpy.context.scene.frame_set(3)
    near(shown(bpy.data.objects["Sheet"]), cached(bpy.data.objects["Sheet"], 3), 1e-6, "after reload")
    # the folder is moved, the file renamed
    moved = os.path.join(FOLDER, "second")
    playback.store.forget(paths.of(bpy.data.objects["Sheet"]))
    shutil.move(folder, moved)
    os.rename(os.path.join(moved, "a.blend"), os.path.join(moved, "b.blend"))
    bpy.ops.wm.open_mainfile(filepath=os.path.join(moved, "b.blend"))
    bpy.context.scene.frame_set(4)
    sheet = bpy.data.objects["Sheet"]
    near(shown(sheet), cached(sheet, 4), 1e-6, "moved and renamed")
    # Save As somewhere else leads to the same caches
    save("c.blend", os.path.join(FOLDER, "third", "deep"))
    check(os.path.exists(paths.absolute(sheet.toile.cache_path)), f"Save As lost {sheet.toile.cache_path}")
    bpy.context.scene.frame_set(2)
    near(shown(sheet), cached(sheet, 2), 1e-6, "saved elsewhere")
    # and so does a bake whose file is saved elsewhere once, and opened there
    op("bake", version="Again")
    points = cached(sheet, 3).copy()
    save("d.blend", os.path.join(FOLDER, "fourth", "deeper", "still"))
    bpy.ops.wm.open_mainfile(filepath=bpy.data.filepath)
    sheet = bpy.data.objects["Sheet"]
    bpy.context.scene.frame_set(3)
    near(shown(sheet), points, 1e-6, "saved elsewhere and opened")
    check(not playback.errors, f"{playback.errors}")


def renamed_and_copied():
    sheet, body = drape()
    sheet.name = "Something Else"
    bpy.context.scene.frame_set(4)
    near(shown(sheet), cached(sheet, 4), 1e-6, "renamed")
    activate(sheet)
    bpy.ops.object.duplicate()
    copy = bpy.context.object
    check(copy != sheet and copy.data != sheet.data, "no copy")
    bpy.context.scene.frame_set(5)
    near(shown(copy), cached(sheet, 5), 1e-6, "the copy")
    near(shown(sheet), cached(sheet, 5), 1e-6, "the original")
    bpy.data.objects.remove(sheet)
    bpy.context.scene.frame_set(6)
    near(shown(copy), cached(copy, 6), 1e-6, "the copy alone")


def several():
    """Two garments in one scene, and another scene with its own."""
    a = grid("A", z=0.5)
    b = grid("B", n=8, z=0.8, fabric="silk")
    ball(location=(0, 0, 0.2))
    frames(4)
    op("bake")
    first = bpy.context.scene
    second = bpy.data.scenes.new("Second")
    bpy.context.window.scene = second
    c = grid("C", n=10)
    frames(5)
    op("bake")
    check(paths.of(a) == paths.of(b) != paths.of(c), "caches")
    second.frame_set(5)
    near(shown(c), cached(c, 5), 1e-6, "the second scene")
    bpy.context.window.scene = first
    first.frame_set(3)
    near(shown(a), cached(a, 3), 1e-6, "A")
    near(shown(b), cached(b, 3), 1e-6, "B")
    check(len(cached(a, 3)) != len(cached(b, 3)), "they are the same")


def linked():
    """A baked character from a library: linked object, linked collection instance, linked scene."""
    folder = os.path.join(FOLDER, "library")
    sheet, body = drape(saved=os.path.join(folder, "character.blend"))
    collection = bpy.data.collections.new("Character")
    bpy.context.scene.collection.children.link(collection)
    for ob in (sheet, body):
        collection.objects.link(ob)
    expected = [cached(sheet, f).copy() for f in range(1, 7)]
    source = save("character.blend", folder)
    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    save("shot.blend", os.path.join(FOLDER, "shots"))
    with bpy.data.libraries.load(source, link=True, relative=True) as (there, here):
        here.collections, here.scenes = ["Character"], ["Scene"]
    instance = bpy.data.objects.new("Instance", None)
    instance.instance_type, instance.instance_collection = 'COLLECTION', here.collections[0]
    instance.location = (2, 0, 0)
    bpy.context.scene.collection.objects.link(instance)
    for frame in (3, 5):
        bpy.context.scene.frame_set(frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        found = [(i.object.data, numpy.array(i.matrix_world)) for i in depsgraph.object_instances
                 if i.object.name == "Sheet"]
        check(len(found) == 1, f"{len(found)} instances")
        for mesh, matrix in found:
            points = numpy.empty((len(mesh.vertices), 3), numpy.float32)
            mesh.vertices.foreach_get("co", points.ravel())
            world = points @ matrix[:3, :3].T + matrix[:3, 3]
            near(world, expected[frame - 1] + (2, 0, 0), 1e-5, f"instance, frame {frame}")
    linked_scene = next(s for s in bpy.data.scenes if s.library)
    bpy.context.window.scene = linked_scene
    linked_scene.frame_set(4)
    near(shown(linked_scene.objects["Sheet"]), expected[3], 1e-6, "linked scene")
    check(not playback.errors, f"{playback.errors}")


def missing_cache():
    sheet, body = drape()
    bpy.context.scene.frame_set(4)
    last_good = shown(sheet).copy()
    path = paths.of(sheet)
    playback.store.forget(path)
    os.rename(path, path + ".away")
    bpy.context.scene.frame_set(5)
    near(shown(sheet), last_good, 0, "the last good state")
    check("missing" in playback.errors.get(playback.key_of(sheet), ""), f"{playback.errors}")
    os.rename(path + ".away", path)
    bpy.context.scene.frame_set(6)
    near(shown(sheet), cached(sheet, 6), 1e-6, "back again")
    check(not playback.errors, f"{playback.errors}")
    # not a cache at all
    playback.store.forget(path)
    shutil.copy(path, path + ".away")
    with open(path, "wb") as file:
        file.write(b"nonsense" * 100)
    bpy.context.scene.frame_set(5)
    check("not an HDF5 file" in playback.errors.get(playback.key_of(sheet), ""), f"{playback.errors}")
    os.remove(path)
    os.rename(path + ".away", path)
    # another mesh
    bpy.ops.object.mode_set(mode='EDIT')
    bpy.ops.mesh.select_all(action='SELECT')
    bpy.ops.mesh.subdivide()
    bpy.ops.object.mode_set(mode='OBJECT')
    bpy.context.scene.frame_set(4)
    check("bake again" in playback.errors.get(playback.key_of(sheet), ""), f"{playback.errors}")


def marked_outdated():
    sheet, body = drape()
    version = versions.active(bpy.context.scene)
    check(not version.outdated, "new bake")
    before = sheet.toile.garment.density
    for change, back in (
            (lambda: setattr(sheet.toile.garment, "density", 0.5), lambda: setattr(sheet.toile.garment, "density", before)),
            (lambda: setattr(bpy.context.scene.toile, "time_step", 0.001),
             lambda: bpy.context.scene.toile.property_unset("time_step")),
            (lambda: setattr(body.toile.collider, "friction", 0.9), lambda: setattr(body.toile.collider, "friction", 0.3))):
        change()
        outdated.check(bpy.context.scene)
        check(version.outdated, "a change is not noticed")
        check(os.path.exists(paths.of_version(version)), "the cache was deleted")
        back()
        outdated.check(bpy.context.scene)
        check(not version.outdated, "it was changed back")
    bpy.context.scene.toile.threads = 1
    outdated.check(bpy.context.scene)
    check(not version.outdated, "threads do not decide the result")
    op("pin", side='X_MIN')
    outdated.check(bpy.context.scene)
    check(version.outdated, "pins are not noticed")
    sheet.toile.garment.pin_group = ""
    outdated.check(bpy.context.scene)
    check(not version.outdated, "the pins are gone")
    sheet.data.vertices[0].co.z += 0.1
    outdated.check(bpy.context.scene)
    check(version.outdated, "an edit of the mesh is not noticed")
    bpy.context.scene.frame_set(4)
    near(shown(sheet), cached(sheet, 4), 1e-6, "it still plays")


def compared():
    """Versions: two fabrics, switched back and forth, removed, freed."""
    sheet, body = drape(saved="compared.blend")
    stiff = cached(sheet, 6).copy()
    op("version_add", name="Silk")
    sheet.toile.garment.fabric = "silk"
    op("bake")
    soft = cached(sheet, 6).copy()
    check(numpy.abs(stiff - soft).max() > 1e-4, "both are alike")
    scene = bpy.context.scene
    check([v.name for v in scene.toile.versions] == ["Bake 1", "Silk"], [v.name for v in scene.toile.versions])
    scene.frame_set(6)
    for index, points in ((0, stiff), (1, soft), (0, stiff)):
        scene.toile.active_version = index
        near(shown(sheet), points, 1e-6, f"version {index}")
    op("bake", version="Silk", threads=1)
    near(cached(sheet, 6), soft, 0, "the same bake by name, on one thread")
    op("bake", new_version=True)
    check(len(scene.toile.versions) == 3, "no new version")
    file = paths.of_version(versions.active(scene))
    op("version_remove", delete=True)
    check(not os.path.exists(file) and len(scene.toile.versions) == 2, "not removed")
    scene.toile.active_version = 0
    file = paths.of_version(versions.active(scene))
    op("free")
    check(not os.path.exists(file) and not os.path.exists(paths.job_of(file)), "not freed")
    scene.frame_set(5)
    near(shown(sheet)[:, 2], 0.5, 1e-6, "the modelled mesh is shown")
    scene.toile.active_version = 1
    near(shown(sheet), cached(sheet, 5), 1e-6, "the other version still plays")


def applied():
    sheet, body = drape()
    scene = bpy.context.scene
    scene.frame_set(6)
    draped = shown(sheet).copy()
    op("apply", target='START')
    op("bake", version="From there")
    near(cached(sheet, 1), draped, 1e-6, "the bake starts at the drape")
    scene.toile.active_version = 0
    scene.frame_set(6)
    op("apply", target='CLEAR')
    op("apply", target='SHAPE_KEY')
    check("Drape 6" in sheet.data.shape_keys.key_blocks, "no shape key")
    refused("apply", "shape keys", target='MESH')
    sheet.shape_key_clear()
    op("apply", target='MESH')
    near(shown(sheet), draped, 1e-6, "the mesh takes the shape")
    check(not sheet.toile.play, "still played")


def kept():
    """Five materials, UVs and smoothness stay, through modifiers below."""
    sheet, body = grid(), ball(location=(0, 0, 0.25))
    for i in range(5):
        sheet.data.materials.append(bpy.data.materials.new(f"M{i}"))
    for i, polygon in enumerate(sheet.data.polygons):
        polygon.material_index, polygon.use_smooth = i % 5, True
    uv = numpy.empty(2 * len(sheet.data.loops), numpy.float32)
    sheet.data.uv_layers.active.data.foreach_get("uv", uv)
    frames(4)
    activate(sheet)
    op("bake")
    bpy.context.scene.frame_set(4)
    found = sheet.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    now = numpy.empty(2 * len(found.loops), numpy.float32)
    found.uv_layers.active.data.foreach_get("uv", now)
    near(now, uv, 0, "UVs")
    check([p.material_index for p in found.polygons] == [i % 5 for i in range(len(found.polygons))], "materials")
    check(all(p.use_smooth for p in found.polygons) and len(found.materials) == 5, "smoothness")
    info, _ = playback.store.info(paths.of(sheet))
    check(info["garments"][0]["panels"] == 5, f"{info['garments']}")
    sheet.modifiers.new("Subdivision", 'SUBSURF').levels = 1
    bpy.context.scene.frame_set(3)
    found = sheet.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    check(len(found.vertices) > 3 * len(sheet.data.vertices), "subdivision below is not seen")
    middle = numpy.array([v.co for v in found.vertices]).mean(axis=0) + numpy.array(sheet.location)
    near(middle, cached(sheet, 3).mean(axis=0), 0.01, "subdivision follows")


def baked_scene(ob):
    return json.loads(playback.store.info(paths.of(ob))[0]["scene"])


def property_maps():
    """Maps act vertex by vertex; a shrunk part pulls together."""
    sheet = grid(n=20, z=0)
    bpy.context.scene.use_gravity = False
    group = sheet.vertex_groups.new(name="Tight")
    for v in sheet.data.vertices:
        group.add([v.index], min(1.0, max(0.0, 0.5 + 4 * v.co.x)), 'REPLACE')
    sheet.toile.garment.map_shrink_group, sheet.toile.garment.map_shrink = "Tight", 0.7
    frames(8)
    op("bake")
    points, right = cached(sheet, 8), numpy.array([v.co.x for v in sheet.data.vertices]) > 0.2
    left = numpy.array([v.co.x for v in sheet.data.vertices]) < -0.2
    tight, loose = numpy.ptp(points[right][:, 1]), numpy.ptp(points[left][:, 1])
    check(tight < 0.75 and loose > tight + 0.02, f"tight {tight}, loose {loose}")
    info, _ = playback.store.info(paths.of(sheet))
    check(info["garments"][0]["panels"] == 1, f"a map is no panel: {info['garments']}")
    maps = {m["property"]: numpy.array(m["values"]) for m in baked_scene(sheet)["garments"][0]["maps"]}
    check(set(maps) == {"scale_u", "scale_v"} and len(numpy.unique(maps["scale_u"].round(5))) > 5, f"{list(maps)}: not smooth")
    near(maps["scale_u"], 1 - 0.3 * numpy.clip([0.5 + 4 * v.co.x for v in sheet.data.vertices], 0, 1), 1e-5, "factors")
    for amount, frame in ((1.0, 1), (0.7, 3), (0.7, 4)):
        sheet.toile.garment.map_shrink = amount
        sheet.keyframe_insert("toile.garment.map_shrink", frame=frame)
    for curve in sheet.animation_data.action.fcurves:
        for key in curve.keyframe_points:
            key.interpolation = 'LINEAR'
    op("bake")
    keys = baked_scene(sheet)["garments"][0]["maps"][0]["keys"]
    near([(k["frame"], k["value"]) for k in keys][:2], [(1, 0), (3, 1)], 1e-6, "keys of a map")
    sheet.animation_data_clear()
    sheet.toile.garment.map_bend_group, sheet.toile.garment.map_bend = "Gone", 2
    refused("bake", "no vertex group \"Gone\"")


def shaped():
    """Elastic draws a tube in, keyed pressure lifts a sheet, seams have their fold."""
    around, rows = 40, 16
    angle = numpy.arange(around) * 2 * numpy.pi / around
    points = [(0.2 * numpy.cos(a), 0.2 * numpy.sin(a), 0.03 * k) for k in range(rows) for a in angle]
    faces = [(k * around + i, k * around + (i + 1) % around, (k + 1) * around + (i + 1) % around, (k + 1) * around + i)
             for k in range(rows - 1) for i in range(around)]
    mesh = bpy.data.meshes.new("Cylinder")
    mesh.from_pydata(points, [], faces)
    tube = bpy.data.objects.new("Cylinder", mesh)
    bpy.context.collection.objects.link(tube)
    activate(tube)
    op("add", role='GARMENT', fabric="jersey")
    group = tube.vertex_groups.new(name="Rim")
    op("band_add")
    refused("bake", ["Cylinder", "without a vertex group"])
    tube.toile.garment.bands[0].group = "Rim"
    refused("bake", ["Cylinder", "Rim", "weight"])
    rim = [v.index for v in tube.data.vertices if v.co.z > 0.44]
    group.add([rim[0]], 1.0, 'REPLACE')
    refused("bake", ["Rim", "both ends"])
    group.add(rim, 1.0, 'REPLACE')
    tube.toile.garment.bands[0].stiffness, tube.toile.garment.bands[0].scale = 200, 0.7
    bpy.context.scene.use_gravity = False
    frames(20)
    op("bake")
    bpy.context.scene.frame_set(20)
    points = shown(tube)

    def girth(ring):
        return numpy.linalg.norm(numpy.roll(points[ring], 1, axis=0) - points[ring], axis=1).sum() / (0.4 * numpy.pi)
    check(girth(rim) < 0.85, f"the elastic does not draw the rim in: {girth(rim)} of its girth")
    check(0.95 < girth(slice(0, around)) < 1.05, f"the other rim is drawn in too: {girth(slice(0, around))} of its girth")
    marked = outdated.digest(bpy.context.scene)
    tube.toile.garment.bands[0].scale = 0.8
    check(outdated.digest(bpy.context.scene) != marked, "a changed band does not mark the bake as outdated")
    op("band_remove")
    check(len(tube.toile.garment.bands) == 0, "the band is still there")
    refused("band_remove", "no elastic band")

    bpy.ops.wm.read_homefile(use_empty=True, use_factory_startup=True)
    sheet = grid(n=10)
    op("pin", side='X_MIN')
    garment = sheet.toile.garment
    for frame, value in ((1, 0), (8, 0), (12, 60)):
        garment.pressure = value
        sheet.keyframe_insert("toile.garment.pressure", frame=frame)
    frames(20)
    op("bake")
    keys = baked_scene(sheet)["garments"][0]["pressure"][0]["keys"]
    check(keys[0] == {"frame": 1, "value": 0} and keys[-1] == {"frame": 20, "value": 60}, f"keys of the pressure: {keys}")
    bpy.context.scene.frame_set(8)
    low = shown(sheet)[:, 2].mean()
    bpy.context.scene.frame_set(20)
    check(low < 0.5 and shown(sheet)[:, 2].mean() > low + 0.05, "the pressure does not lift the sheet")
    pieces = _two_pieces()
    pieces.toile.garment.sew_fold = numpy.pi / 4
    near(sewing.schedule(pieces, sewing.stitches(pieces))[0]["fold_angle"], 45, 1e-4, "the fold of a seam, degrees")


def not_touched():
    """A vertex group and a collection that contact leaves out; pins that stay on a collider's surface."""
    sheet, sphere = grid(n=10, z=0.3), ball()
    frames(16)
    garment = sheet.toile.garment
    garment.contact_group = "All"
    sheet.vertex_groups.new(name="All")
    refused("bake", ["Sheet", "All"])
    sheet.vertex_groups["All"].add(range(len(sheet.data.vertices)), 1.0, 'REPLACE')
    garment.contact_with = 'CLOTH'

    def lowest():
        op("bake")
        bpy.context.scene.frame_set(16)
        low = shown(sheet)[:, 2]
        bpy.context.scene.frame_set(1)
        return low.max()

    check(lowest() > 0.15, "cloth that still touches colliders fell through")
    garment.contact_with = 'COLLIDERS'
    check(lowest() < 0, "cloth that touches no collider lies on one")
    garment.contact_group = ""
    away = bpy.data.collections.new("Away")
    away.objects.link(sphere)
    garment.ignore = away
    check(lowest() < 0, "a collider in the collection that is ignored holds the cloth")
    garment.ignore = None
    activate(sheet)
    op("pin", side='X_MIN')
    garment.pin_surface = sphere
    sphere.keyframe_insert("location", frame=1)
    sphere.location.z = 0.5
    sphere.keyframe_insert("location", frame=16)
    op("bake")
    held = mesh_read.pinned(sheet)
    before = shown(sheet)[held]
    bpy.context.scene.frame_set(16)
    near(shown(sheet)[held], before + [0, 0, 0.5], 1e-3, "pins on a surface do not move with it")
    bpy.context.scene.frame_set(1)
    op_role = sphere.toile.role
    sphere.toile.role = 'NONE'
    refused("bake", ["Sheet", "Ball", "no collider"])
    sphere.toile.role = op_role


def soft_pins():
    """A spring gives way, the less the larger its weight; a rigid pin does not."""
    sheet = grid(n=10, z=0)
    group = sheet.vertex_groups.new(name="Soft")
    side = {v.index: v.co.x for v in sheet.data.vertices if abs(v.co.x) > 0.39}
    for index, x in side.items():
        group.add([index], 1.0 if x > 0 else 0.25, 'REPLACE')
    sheet.toile.garment.pin_group = "Soft"
    frames(12)
    sheet.toile.garment.pin_stiffness = 1.0
    op("bake")
    firm, weak = ([i for i, x in side.items() if (x > 0) == positive] for positive in (True, False))
    fallen = -cached(sheet, 12)[:, 2]
    check(0.001 < fallen[firm].mean() < fallen[weak].mean(), f"{fallen[firm].mean()} {fallen[weak].mean()}")
    stiffness = sorted(p["stiffness"] for p in baked_scene(sheet)["pins"])
    near(stiffness, [0.25, 1.0], 1e-6, "stiffness")
    sheet.toile.garment.pin_stiffness = 0
    op("bake")
    near(cached(sheet, 12)[firm][:, 2], 0, 1e-5, "rigid pins")
    check(cached(sheet, 12)[weak][:, 2].max() < -0.01, "a weight of a quarter is not held")


def pins_change():
    """Weights that a modifier animates: held, let go, and held again where it is then."""
    sheet = grid(n=8, z=0)
    op("pin", side='X_MIN')
    held = mesh_read.pinned(sheet)
    edit = sheet.modifiers.new("Weights", 'VERTEX_WEIGHT_EDIT')
    edit.vertex_group, edit.default_weight, edit.use_add, edit.use_remove = "Pin", 0.0, False, False
    edit.mask_constant = 0.0
    edit.falloff_type = 'STEP'      # below one half becomes 0, above 1
    edit.invert_falloff = True      # so that the pins have 0
    for frame, influence in ((1, 0.0), (4, 0.0), (5, 1.0)):
        edit.mask_constant = influence
        edit.keyframe_insert("mask_constant", frame=frame)
    for curve in sheet.animation_data.action.fcurves:
        for key in curve.keyframe_points:
            key.interpolation = 'CONSTANT'
    frames(10)
    op("bake")
    near(cached(sheet, 4)[held][:, 2], 0, 1e-5, "held at first")
    check(cached(sheet, 10)[held][:, 2].max() < -0.01, f"let go: {cached(sheet, 10)[held][:, 2]}")
    pins = baked_scene(sheet)["pins"]
    check(len(pins) == 1 and pins[0]["frames"] == [1, 4], f"{[(p['name'], p.get('frames')) for p in pins]}")


def _two_pieces(gap=0.1):
    """Two square sheets side by side, joined by edges without faces."""
    import bmesh
    sheet = grid(n=6, size=0.4, z=0)
    mesh = bmesh.new()
    mesh.from_mesh(sheet.data)
    copy = bmesh.ops.duplicate(mesh, geom=mesh.verts[:] + mesh.edges[:] + mesh.faces[:])["geom"]
    moved = [v for v in copy if isinstance(v, bmesh.types.BMVert)]
    for v in moved:
        v.co.x += 0.4 + gap
    mine = sorted((v for v in mesh.verts if v not in moved and v.co.x > 0.199), key=lambda v: v.co.y)
    other = sorted((v for v in moved if v.co.x < 0.201 + gap), key=lambda v: v.co.y)
    for a, b in zip(mine, other):
        mesh.edges.new((a, b))
    mesh.to_mesh(sheet.data)
    mesh.free()
    return sheet


def sewn():
    """Edges without faces are sewn: two pieces become one, in the frames that were asked for, and part again."""
    sheet = _two_pieces()
    bpy.context.scene.use_gravity = False
    garment = sheet.toile.garment
    pairs = sewing.loose_edges(sheet.data)
    check(len(pairs) == 7, f"{len(pairs)} sewing edges")
    garment.use_sew_frames, garment.sew_start, garment.sew_end = True, 2, 12
    frames(16)
    op("bake")
    gaps = [numpy.linalg.norm(cached(sheet, f)[pairs[:, 0]] - cached(sheet, f)[pairs[:, 1]], axis=1).max() for f in (1, 2, 16)]
    near(gaps[:2], 0.1, 0.005, "before it is sewn")
    check(gaps[2] < 1e-5, f"not closed: {gaps}")
    near(overlays.seam_lines(sheet).reshape(-1, 2, 3)[:, 0, 0], 0.2, 0.1, "overlay of seams")
    garment.use_sew_release, garment.sew_release = True, 14
    outdated.check(bpy.context.scene)
    check(versions.active(bpy.context.scene).outdated, "a schedule decides the result")
    check("release" in sewing.schedule(sheet, pairs)[0], "release")
    garment.use_sewing = False
    op("bake")
    near(numpy.linalg.norm(cached(sheet, 16)[pairs[:, 0]] - cached(sheet, 16)[pairs[:, 1]], axis=1), 0.1, 0.005, "not sewn")
    garment.use_sewing = True
    sheet.data.vertices.add(1)
    sheet.data.edges.add(1)
    sheet.data.edges[-1].vertices = (0, len(sheet.data.vertices) - 1)
    refused("bake", ["Sheet", "has a sewing edge but no face"])


def seam_panels():
    """Edges marked as seams part the panels."""
    sheet = grid(n=10, z=0)
    points = numpy.array([v.co for v in sheet.data.vertices])
    for edge in sheet.data.edges:
        edge.use_seam = bool(numpy.abs(points[list(edge.vertices)][:, 0]).max() < 1e-6)
    sheet.toile.garment.panel_source = 'SEAMS'
    frames(2)
    op("bake")
    info, _ = playback.store.info(paths.of(sheet))
    check(info["garments"][0]["panels"] == 2, f"{info['garments']}")
    pieces = sewing.islands(sheet.data, sewing.parting(sheet))
    side = numpy.array([p.center.x > 0 for p in sheet.data.polygons])
    check(all(len(set(pieces[side == s].tolist())) == 1 for s in (True, False)) and len(set(pieces.tolist())) == 2, "pieces")
    check(len(overlays.seam_lines(sheet)) == 2 * 10, f"{len(overlays.seam_lines(sheet))}")
    warp = overlays.warp_lines(sheet).reshape(-1, 2, 3)
    along = warp[:, 1] - warp[:, 0]
    check(len(warp) == 100 and numpy.abs(along[:, 0]).min() > 5 * numpy.abs(along[:, 1:]).max(), "the warp runs along u")
    for name in ("show_seams", "show_warp"):
        setattr(bpy.context.scene.toile, name, True)


def uv_panels():
    """The islands of the UV map are panels, without a marked seam; a mesh without a map is named."""
    sheet = grid(n=10, z=0)
    mesh = sheet.data
    right = numpy.array([p.center.x > 0 for p in mesh.polygons])
    for polygon in mesh.polygons:
        for corner in polygon.loop_indices:
            mesh.uv_layers.active.data[corner].uv[0] += 3 if right[polygon.index] else 0
    sheet.toile.garment.panel_source = 'UV'
    frames(2)
    op("bake")
    info, _ = playback.store.info(paths.of(sheet))
    check(info["garments"][0]["panels"] == 2, f"{info['garments']}")
    pieces = sewing.islands(mesh, sewing.parting(sheet))
    check(len(set(pieces.tolist())) == 2 and len({*zip(pieces.tolist(), right.tolist())}) == 2, "islands are the halves")
    check(len(overlays.seam_lines(sheet)) == 2 * 10, f"{len(overlays.seam_lines(sheet))}")
    before = outdated.digest(bpy.context.scene)
    for corner in mesh.polygons[0].loop_indices:
        mesh.uv_layers.active.data[corner].uv[1] += 2
    check(outdated.digest(bpy.context.scene) != before, "another island makes the bake outdated")
    mesh.uv_layers.remove(mesh.uv_layers.active)
    refused("bake", ["Sheet", "has no UV map"])


def pattern_imported():
    """A pattern on a body becomes a garment that a bake sews together."""
    shared = os.environ.get("TOILE_SHARED", "")
    folder = os.path.join(shared, "garmentcode")
    if not os.path.exists(folder):
        print("SKIPPED pattern_imported: no garmentcode in TOILE_SHARED")
        return
    bpy.ops.mesh.primitive_cube_add(size=0.2)
    refused("import_pattern", "specification", filepath=os.path.join(folder, "none_specification.json"))
    with open(os.path.join(folder, "mean_all.obj"), encoding="utf-8") as file:
        lines = [line.split() for line in file]
    points = [[float(x) for x in line[1:4]] for line in lines if line and line[0] == "v"]
    size = max(p[1] for p in points) - min(p[1] for p in points)
    scale = 1.0 if size < 3 else 0.01
    mesh = bpy.data.meshes.new("Body")
    mesh.from_pydata([(scale * x, -scale * z, scale * y) for x, y, z in points], [],
                     [[int(c.split("/")[0]) - 1 for c in line[1:]] for line in lines if line and line[0] == "f"])
    body = bpy.data.objects.new("Body", mesh)
    bpy.context.collection.objects.link(body)
    activate(body)
    op("import_pattern", filepath=os.path.join(folder, "dress_pencil_specification.json"), edge_length=0.04, fabric="jersey")
    dress = bpy.context.object
    garment, pairs = dress.toile.garment, sewing.loose_edges(dress.data)
    check(body.toile.role == 'COLLIDER' and dress.toile.role == 'GARMENT' and garment.fabric == "jersey", "roles")
    check(len(pairs) > 20 and garment.use_sewing and garment.sew_end > garment.sew_start, f"{len(pairs)} stitches")
    check(len(dress.data.materials) >= 4 and garment.rest_shape == 'UV' and garment.uv_map == "Pattern", "panels")
    areas = mesh_read._areas(mesh_read.read_faces(dress.data, numpy.array([v.co for v in dress.data.vertices], float)),
                             numpy.array([d.uv for d in dress.data.uv_layers["Pattern"].data]))
    check(0.3 < areas < 6, f"{areas} m^2 of cloth")
    pairs = pairs[sewing.turns(dress.data)[:, 0] == 0]      # what is sewn first
    open_ends = numpy.array([v.co for v in dress.data.vertices])[pairs]
    frames(4)
    op("bake")
    now = cached(dress, 4)[pairs]
    gaps = [numpy.linalg.norm(x[:, 0] - x[:, 1], axis=1).mean() for x in (open_ends, now)]
    check(gaps[1] < gaps[0], f"nothing pulls: {gaps}")
    check(playback.store.info(paths.of(dress))[0]["garments"][0]["panels"] == len(dress.data.materials), "panel names")
    planned(dress, body, folder)


DRAWING = ('<svg width="40cm" height="40cm" viewBox="0 0 400 400"><g id="front"><path d="M0 0H390V300Q190 330 0 300z"/></g>'
           '<g id="back"><path d="M0 340h390v60H0z"/></g></svg>')


def drawing_imported():
    """A drawing becomes flat panels; with its companion, panels around the body with sewing edges."""
    bpy.ops.mesh.primitive_uv_sphere_add(radius=0.15, location=(0, 0, 0.6))
    body = bpy.context.object
    body.scale = 1, 1, 4
    folder = bpy.app.tempdir
    with open(folder + "/skirt.svg", "w", encoding="utf-8") as file:
        file.write(DRAWING)
    with open(folder + "/sewing.json", "w", encoding="utf-8") as file:
        json.dump({"pattern": {"panels": {"front": {"translation": [0, 60, 30]},
                                          "again": {"piece": "front", "translation": [0, 60, -30], "rotation": [0, 180, 0]}},
                               "stitches": [[{"panel": "front", "edge": 0}, {"panel": "again", "edge": 2}]]}}, file)
    refused("import_pattern", "none.svg", filepath=folder + "/none.svg")
    op("import_pattern", filepath=folder + "/skirt.svg", edge_length=0.04)
    flat = bpy.context.object
    points = numpy.array([v.co for v in flat.data.vertices])
    check(flat.toile.role == 'GARMENT' and [m.name for m in flat.data.materials] == ["front", "back"], "panels")
    check(len(sewing.loose_edges(flat.data)) == 0 and not flat.toile.garment.use_sew_frames, "nothing is sewn")
    check(numpy.ptp(points[:, 1]) < 1e-6 and points[:, 1].max() < -0.5, "flat, in front of the body")
    uv = numpy.array([d.uv for d in flat.data.uv_layers["Pattern"].data])
    areas = mesh_read._areas(mesh_read.read_faces(flat.data, points.astype(float)), uv)
    check(abs(areas - (0.39 * 0.3 + 2 / 3 * 0.39 * 0.015 + 0.39 * 0.06)) < 0.002, f"{areas} m^2")
    activate(body)
    op("import_pattern", filepath=folder + "/skirt.svg", companion=folder + "/sewing.json", edge_length=0.04)
    sewn_up = bpy.context.object
    check(len(sewing.loose_edges(sewn_up.data)) >= 7 and sewn_up.toile.garment.use_sewing, "sewing edges")
    check(len(sewn_up.data.materials) == 2, "the panels that the companion names")


def planned(dress, body, folder):
    """What is baked is the program's own plan: seams in their turns, stiff and short meanwhile, waists that are raised."""
    garment = dress.toile.garment
    with tempfile.TemporaryDirectory() as made:
        operators_import.write_body(body, made + "/body.obj", 1.0)
        subprocess.run([native.program(), "import", os.path.join(folder, "dress_pencil_specification.json"), "--body",
                        made + "/body.obj", "-o", made + "/plan.json", "--edge-length", "0.04", "--fabric", "jersey"],
                       check=True, capture_output=True, env=native.environment())
        with open(made + "/plan.json", encoding="utf-8") as file:
            plan = json.load(file)
    scene = bpy.context.scene
    scene.frame_end = plan["frames"][1]
    taken = capture.Capture(bpy.context, os.path.join(bpy.app.tempdir, "plan.toilejob"))
    while not taken.step():
        pass
    entry = taken.finish()
    baked_garment = entry["garments"][0]
    spans = {tuple(s["frames"]) for s in plan["garments"][0]["seams"]}
    check({tuple(s["frames"]) for s in baked_garment["sewing"]} == spans and len(spans) > 1, f"{spans}: turns")
    maps = {}
    for m in baked_garment["maps"]:
        maps[m["property"]] = ([k["frame"] for k in m["keys"]], [k["value"] for k in m["keys"]], numpy.array(m["values"]))
    for m in plan["garments"][0]["maps"]:
        frames_of, amounts, values = maps[m["property"]]
        for key in m["keys"]:
            near(numpy.interp(key["frame"], frames_of, amounts), key["value"], 1e-4, f"{m['property']} at {key['frame']}")
        most = max((o["value"] for o in plan["garments"][0]["maps"] if o["property"][:4] == m["property"][:4]),
                   key=lambda value: abs(value - 1))
        near(values[numpy.argmax(numpy.abs(values - 1))], most, 1e-3 * most, m["property"])
    pin = entry["pins"][0]
    near(pin["stiffness"], plan["pins"][0]["stiffness"], 1e-4, "stiffness")
    check(pin["frames"] == plan["pins"][0]["frames"] and pin["axes"] == "z", f"{pin['frames']}")
    up = [max((k["translate"][2] for k in p["motion"]["keys"]), key=abs) for p in plan["pins"] if "motion" in p]
    key = dress.data.shape_keys.key_blocks[-1] if up else None
    if key:
        basis = dress.data.shape_keys.key_blocks[0]
        moved = [(k.co - b.co).z for k, b in zip(key.data, basis.data) if (k.co - b.co).length > 1e-9]
        check(all(min(abs(z - u) for u in up) < 1e-5 for z in moved) and len(moved) > 5, f"{moved[:3]}, {up}")
    garment.use_sew_turns = False
    check(len(sewing.schedule(dress, sewing.stitches(dress))) == 1, "at once")
    garment.use_sew_turns = True
    version = outdated.digest(scene)
    scene.frame_set(60)
    check(outdated.digest(scene) == version, "another frame looks like another garment")


def rest_shapes():
    """Cut to the mesh, to a shape key, to the UV map: how large the cloth is in the material."""
    def areas(sheet):
        mesh = bpy.context.evaluated_depsgraph_get() and sheet.data
        faces, uv, *_ = mesh_read.read(sheet, sheet.matrix_world, 1.0)
        check(len(mesh.polygons) > 0)
        return mesh_read._areas(faces, uv)
    sheet = grid(n=6, size=1, z=0)
    near(areas(sheet), 1.0, 1e-5, "mesh")
    sheet.scale = (2, 1, 1)
    bpy.context.view_layer.update()
    near(areas(sheet), 2.0, 1e-5, "scaled object")
    sheet.scale = (1, 1, 1)
    bpy.context.view_layer.update()
    sheet.shape_key_add(name="Basis")
    key = sheet.shape_key_add(name="Large")
    for point in key.data:
        point.co *= 3
    sheet.toile.garment.rest_shape, sheet.toile.garment.rest_key = 'SHAPE_KEY', "Large"
    near(areas(sheet), 9.0, 1e-4, "shape key")
    sheet.toile.garment.rest_shape = 'UV'
    near(areas(sheet), 1.0, 1e-4, "UV map with areas that agree")
    sheet.toile.garment.uv_scale = 2
    near(areas(sheet), 4.0, 1e-4, "UV map at two metres")
    # a bent mesh is cut to its own size, however it lies
    body = ball(radius=0.5)
    activate(body)
    op("add", role='GARMENT')
    faces, uv, names, panels = mesh_read.read(body, body.matrix_world, 1.0)
    points = mesh_read.rest_points(body, body.matrix_world, 1.0)
    near(mesh_read._areas(faces, uv), mesh_read._areas(faces, points[faces.vertices]), 1e-4, "a ball")
    check(numpy.isfinite(uv).all(), "not finite")


def between_frames():
    """Sub-frames lie on a smooth curve, and velocities are there for Cycles when there is motion blur."""
    sheet, body = drape(last=6)
    scene = bpy.context.scene
    scene.frame_set(3, subframe=0.5)
    middle = shown(sheet)
    linear = (cached(sheet, 3) + cached(sheet, 4)) / 2
    near(middle, linear, 0.01, "half way")
    path, garment = paths.of(sheet), sheet.toile.cache_garment
    velocity = playback.store.get(path, garment, 3, "velocities")
    scene.frame_set(3, subframe=0.01)
    near(shown(sheet), cached(sheet, 3) + velocity * (0.01 / 24), 2e-5, "just after")
    check(sheet.data.attributes.get("velocity") is None, "velocities without motion blur")
    scene.render.use_motion_blur = True
    scene.frame_set(3)
    found = numpy.empty((len(velocity), 3), numpy.float32)
    sheet.data.attributes["velocity"].data.foreach_get("vector", found.ravel())
    near(found, velocity, 1e-6, "velocities")
    evaluated = sheet.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    check(evaluated.attributes.get("velocity") is not None, "velocities do not pass the modifier")
    scene.render.use_motion_blur = False
    scene.frame_set(4)
    check(sheet.data.attributes.get("velocity") is None, "velocities stay")


def motion_blur():
    """Cycles blurs a falling sheet by its velocities, just as it does when it samples the frames in between itself."""
    sheet = grid(n=4, size=0.4, z=1)
    scene = bpy.context.scene
    frames(8)
    op("bake")
    bpy.ops.object.camera_add(location=(0, -2, 0.7), rotation=(1.5708, 0, 0))
    scene.camera = bpy.context.object
    scene.world = bpy.data.worlds.new("World")
    scene.render.engine, scene.cycles.samples, scene.cycles.use_denoising = 'CYCLES', 32, False
    scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = 64, 64, 100
    scene.render.film_transparent = True
    sheet.rotation_euler.x = 1.2        # the cache stays where it is; the sheet is seen from its edge: a line that falls
    scene.frame_set(6)

    def rendered(name):
        scene.render.filepath = os.path.join(FOLDER, name + ".png")
        bpy.ops.render.render(write_still=True)
        image = bpy.data.images.load(scene.render.filepath)
        pixels = numpy.empty(64 * 64 * 4, numpy.float32)
        image.pixels.foreach_get(pixels)
        return pixels.reshape(64, 64, 4)[:, :, 3]
    sharp = rendered("sharp")
    scene.render.use_motion_blur, scene.render.motion_blur_shutter = True, 1.0
    scene.frame_set(6)
    check(sheet.data.attributes.get("velocity") is not None, "no velocities")
    blurred = rendered("blurred")
    empty = bpy.data.objects.new("Parent", None)
    scene.collection.objects.link(empty)
    sheet.parent = empty
    scene.frame_set(6)
    check(sheet.data.attributes.get("velocity") is None, "velocities of an object that may move")
    sampled = rendered("sampled")

    def rows(alpha):
        """Height of what is covered, weighted: mean and spread of the rows."""
        weight = alpha.sum(axis=1)
        mean = (weight * numpy.arange(64)).sum() / weight.sum()
        return mean, (weight * (numpy.arange(64) - mean) ** 2).sum() / weight.sum()
    check(rows(blurred)[1] > 1.5 * rows(sharp)[1], f"not blurred: {rows(sharp)} {rows(blurred)}")
    near(rows(blurred)[0], rows(sampled)[0], 0.5, "blurred elsewhere than the frames in between")
    near(rows(blurred)[1] / rows(sampled)[1], 1, 0.25, "blurred by another length")


def moving_object():
    """A garment whose object is animated: shown where it was baked, at every frame."""
    sheet, body = grid(), ball(location=(0, 0, 0.25))
    sheet.keyframe_insert("location", frame=1)
    sheet.location.x = 0.5
    sheet.keyframe_insert("location", frame=6)
    frames(6)
    bpy.context.scene.frame_set(1)
    activate(sheet)
    op("bake")
    for frame in (2, 6, 3):
        bpy.context.scene.frame_set(frame)
        near(shown(sheet), cached(sheet, frame), 1e-5, f"frame {frame}")
    op("export", filepath=os.path.join(FOLDER, "moving"), format='PC2')
    for frame in (2, 6, 3):
        bpy.context.scene.frame_set(frame)
        near(shown(sheet), cached(sheet, frame), 1e-5, f"PC2, frame {frame}")


def exported():
    sheet, body = drape()
    sheet.rotation_euler.z = 0.3
    bpy.context.view_layer.update()
    base = os.path.join(FOLDER, "export", "drape")
    op("export", filepath=base + ".abc", format='ABC')
    check(os.path.getsize(base + ".abc") > 1000, "Alembic")
    op("export", filepath=base, format='OBJ')
    check(sorted(f for f in os.listdir(os.path.dirname(base)) if f.endswith(".obj"))
          == [f"drape_{i:04}.obj" for i in range(1, 7)], os.listdir(os.path.dirname(base)))
    for kind in ('PC2', 'MDD'):
        op("export", filepath=base, format=kind)
        check(not sheet.toile.play and not modifier.find(sheet).show_viewport, "both play")
        for frame in (1, 4, 6):
            bpy.context.scene.frame_set(frame)
            near(shown(sheet), cached(sheet, frame), 1e-5, f"{kind}, frame {frame}")
    sheet.modifiers.remove(sheet.modifiers["Toile Export"])
    sheet.toile.play = True
    bpy.context.scene.frame_set(2)
    near(shown(sheet), cached(sheet, 2), 1e-5, "played again")
    refused("export", "", filepath="/proc/nowhere/x", format='ABC')


def job_elsewhere():
    """A job is baked by the program alone, and its cache comes back."""
    sheet, body = drape()
    expected = cached(sheet, 6).copy()
    job, cache = os.path.join(FOLDER, "farm.job.h5"), os.path.join(FOLDER, "farm.h5")
    op("write_job", filepath=job)
    subprocess.run([native.program(), "bake", job, "-o", cache, "--progress", "none", "--threads", "1"], check=True)
    op("free")
    refused("load", "missing", filepath=os.path.join(FOLDER, "nothing.h5"))
    op("load", filepath=cache, version="Farm")
    near(cached(sheet, 6), expected, 0, "the same bits")
    bpy.context.scene.frame_set(6)
    near(shown(sheet), expected, 1e-6, "shown")
    other = grid("Other", n=5)
    bpy.data.objects.remove(sheet)
    activate(other)
    refused("load", ["no garment", "Sheet (169 vertices)"], filepath=cache)


def farmed():
    """A wedge from the scene through a queue of this machine, and back as versions; files for other queues."""
    from toile import farm
    sheet, _ = grid(n=8), ball(location=(0, 0, 0.25))
    frames(8)
    save("farmed/scene.blend")
    activate(sheet)
    folder = os.path.join(FOLDER, "farmed", "wedges")
    before = [o.name for o in bpy.data.objects]
    op("farm", vary="fabric=cotton,silk; friction=0.1,0.9", directory=folder, slots=2, export='PC2')
    found = farm.status(folder)
    check([w["state"] for w in found] == ["complete"] * 4
          and found[3]["values"] == {"fabric": "silk", "friction": 0.9}, f"{found}")
    check(all(os.path.exists(w["cache"][:-3] + ".pc2") for w in found), "not exported")
    check(not os.path.exists(folder + ".job.h5") and os.path.exists(folder + "/job.h5"), "the job is where it should not be")
    check(bpy.context.scene.toile.farm_directory == "//wedges" and [o.name for o in bpy.data.objects] == before, "the file")
    op("farm_load")
    scene = bpy.context.scene
    check([v.name for v in scene.toile.versions] == [w["name"] for w in found]
          and scene.toile.versions[3].note == "fabric silk, friction 0.9",
          f"{[(v.name, v.note) for v in scene.toile.versions]}")
    seen = []
    for index in range(4):
        scene.toile.active_version = index
        scene.frame_set(8)
        near(shown(sheet), cached(sheet, 8), 1e-6, f"version {index} plays its own cache")
        seen.append(shown(sheet))
    check(numpy.abs(seen[0] - seen[3]).max() > 1e-3, "cotton and silk look the same")
    # again: no second version; a single one; one that is not there
    op("farm_load", index=2)
    check(len(scene.toile.versions) == 4 and scene.toile.active_version == 2, f"{scene.toile.active_version}")
    refused("farm_load", "no wedge 9", index=9)
    # the bake of the scene itself is the wedge with the scene's own values
    activate(sheet)
    op("farm", directory=folder + "_one")
    op("bake", version="alone")
    alone, one = cached(sheet, 8), farm.status(folder + "_one")
    op("farm_load", directory=folder + "_one", index=0)
    check(len(one) == 1 and numpy.array_equal(cached(sheet, 8), alone), "a bake on the farm is another than one here")
    # stopped by someone else, and gone on with
    op("farm", directory=folder + "_one", resume=True)
    # files for other queues, and mistakes
    for engine, name in (('SLURM', "bake.sbatch"), ('OPENJD', "template.yaml"), ('FLAMENCO', "toile_wedge.js")):
        op("farm", directory=folder, resume=True, engine=engine, write_only=True, cpus=3)
        check(os.path.exists(os.path.join(folder, "farm", engine.lower(), name)), f"{engine}: no {name}")
    refused("farm", ["fabric", "denim"], vary="fabric=denin", directory=folder + "_bad")
    check(not os.path.exists(folder + "_bad"), "a mistake left a folder behind")
    refused("farm", "another plan", vary="fabric=denim", directory=folder)
    refused("farm_load", "no plan", directory=folder + "_bad")
    op("farm_report")
    image = bpy.data.images.get("contact.png")
    check(image is not None and image.size[0] > 400, "no contact sheet")
    check(not bpy.ops.toile.farm_cancel.poll() and not farm.running, "something still runs")


def farm_cancelled():
    from toile import farm
    sheet, _ = grid(n=24), ball(location=(0, 0, 0.25))
    frames(24)
    save("farm_cancelled/scene.blend")
    activate(sheet)
    folder, whole = (os.path.join(FOLDER, "farm_cancelled", name) for name in ("wedges", "whole"))

    def act():
        for _ in range(4000):
            if farm.running and any(f.endswith(".h5.lock") for _, _, files in os.walk(folder) for f in files):
                time.sleep(0.3)
                farm.stop_all()         # what the button does; operators are for the main thread
                return
            time.sleep(0.005)
    thread = threading.Thread(target=act)
    thread.start()
    op("farm", vary="friction=0.2,0.7", directory=folder, slots=1)
    thread.join()
    states = [w["state"] for w in farm.status(folder)]
    check("complete" not in states[1:] and not farm.running, f"{states}")
    op("farm", directory=folder, resume=True)
    op("farm", vary="friction=0.2,0.7", directory=whole)
    for index in (0, 1):
        frames_of = []
        for path in (folder, whole):
            op("farm_load", directory=path, index=index)
            frames_of.append(cached(sheet, 24).copy())
        check(farm.status(folder)[index]["state"] == "complete" and numpy.array_equal(*frames_of),
              f"wedge {index} came out differently")
    check(not bpy.ops.toile.farm_cancel.poll(), "nothing runs, but cancel is offered")
    used.add("farm_cancel")


def figures():
    sheet, body = drape()
    path, scene = paths.of(sheet), bpy.context.scene
    scene.frame_set(6)
    frame, found = statistics.at(scene, path)
    check(frame == 6 and found["steps"] >= 5 and found["max_stretch"] > 0, f"{found}")
    check(statistics.report(path)["stages"]["solve"] > 0, "no report")
    image = statistics.picture([1, 2, 3, 2], 1)
    check(image.shape == (statistics.SIZE, statistics.SIZE, 4) and image.max() <= 1, "picture")
    check(statistics.graph(scene, path, "seconds") > 0 or bpy.app.background, "graph")
    op("show_stretch")
    scene.frame_set(5)
    attribute = sheet.data.color_attributes.get(modifier.STRETCH)
    check(attribute is not None and attribute.domain == 'POINT', "no colours")
    colours = numpy.empty((len(sheet.data.vertices), 4), numpy.float32)
    attribute.data.foreach_get("color", colours.ravel())
    strain = numpy.empty(len(colours), numpy.float32)
    playback.store.strain(path, sheet.toile.cache_garment, numpy.array(cached(sheet, 5)), strain)
    near(colours, overlays.colours(strain, scene.toile.stretch_range), 1e-6, "colours")
    near(strain.max(), statistics.at(scene, path)[1]["max_stretch"], 0.01, "stretch")
    op("show_stretch")
    scene.frame_set(4)
    check(sheet.data.color_attributes.get(modifier.STRETCH) is None, "colours stay")
    scene.frame_set(6)
    touching = overlays.contacts(scene, sheet, cached(sheet, 6))
    distance = numpy.linalg.norm(cached(sheet, 6) - (0, 0, 0.25), axis=1) - 0.2
    # one is where points are, the other what held them in the last step, which may have lifted them off: each for itself
    check(0 < len(touching) <= (distance < 0.0055).sum(), f"{len(touching)} shown, {numpy.sort(distance)[:5]}")
    check(0 < found["contacts"] <= (distance < 0.0065).sum(), f"{found['contacts']} told, {numpy.sort(distance)[:5]}")
    check(len(touching) > 0 and numpy.linalg.norm(touching - (0, 0, 0.25), axis=1).max() < 0.206, "far away")


def every_operator_called():
    every = {name for name in dir(bpy.ops.toile) if not name.startswith("_")}
    check(every <= used, f"never called: {every - used}")


run([tables, registered_twice, translated, added_and_removed, modifiers_in_order, presets, baked, transformed, units,
     armature_collider, animated_modifiers, hidden_colliders, no_place, pins_follow, mistakes, problem_selected,
     cancelled_and_resumed, killed, grows,
     undone, saved_and_moved, renamed_and_copied, several, linked, missing_cache, marked_outdated, compared, applied, kept,
     property_maps, shaped, not_touched, soft_pins, pins_change, sewn, seam_panels, uv_panels, pattern_imported, drawing_imported,
     rest_shapes, between_frames, motion_blur, moving_object, exported, job_elsewhere, farmed, farm_cancelled, figures]
    + ([every_operator_called] if not [a for a in ARGUMENTS if not a.startswith("/")] else []))
