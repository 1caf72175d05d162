"""A background render of three frames, as on a farm. blender_render.py -- (make ZIP | play | plain) FOLDER [EXPECTED]

make bakes and saves the file; play opens it with the add-on and renders; plain opens the file that was exported to PC2,
without the add-on, and renders."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bpy
import numpy

from inside import ARGUMENTS, activate, ball, check, frames, grid, op, run

MODE = ARGUMENTS[0]
FOLDER = next(a for a in ARGUMENTS if a.startswith("/") and not a.endswith(".zip"))
FRAMES = (1, 4, 6)


def picture(path):
    image = bpy.data.images.load(path)
    image.colorspace_settings.name = "Non-Color"
    pixels = numpy.empty(image.size[0] * image.size[1] * 4, numpy.float32)
    image.pixels.foreach_get(pixels)
    size = tuple(image.size)
    bpy.data.images.remove(image)
    return pixels.reshape(size[1], size[0], 4)[:, :, :3]


def make():
    bpy.ops.preferences.addon_install(filepath=next(a for a in ARGUMENTS if a.endswith(".zip")), overwrite=True)
    bpy.ops.preferences.addon_enable(module="toile")
    bpy.ops.wm.save_userpref()
    sheet = grid(n=20, z=0.42)
    sheet.color = (0.8, 0.2, 0.1, 1)
    for polygon in sheet.data.polygons:
        polygon.use_smooth = True
    ball(location=(0, 0, 0.2)).color = (0.2, 0.4, 0.8, 1)
    bpy.ops.object.camera_add(location=(1.4, -1.4, 1.0), rotation=(1.15, 0, 0.785))
    scene = bpy.context.scene
    scene.camera = bpy.context.object
    scene.render.engine = 'BLENDER_WORKBENCH'
    scene.display.shading.color_type = 'OBJECT'
    scene.display.shading.light = 'STUDIO'
    scene.render.resolution_x, scene.render.resolution_y, scene.render.resolution_percentage = 160, 120, 100
    scene.view_settings.view_transform = 'Standard'
    frames(8)
    bpy.ops.wm.save_as_mainfile(filepath=os.path.join(FOLDER, "shot.blend"))
    activate(sheet)
    op("bake")
    bpy.ops.wm.save_mainfile()
    op("export", filepath="//drape.pc2", format='PC2')
    bpy.ops.wm.save_as_mainfile(filepath=os.path.join(FOLDER, "plain.blend"))
    check(os.path.exists(os.path.join(FOLDER, "drape.pc2")), "no PC2")


def render(kind):
    bpy.ops.wm.open_mainfile(filepath=os.path.join(FOLDER, "shot.blend" if kind == "play" else "plain.blend"))
    check(("toile" in bpy.context.preferences.addons) == (kind == "play"), "the add-on is on, or is not")
    scene = bpy.context.scene
    scene.frame_start, scene.frame_end, scene.frame_step = FRAMES[0], FRAMES[-1], 1
    out = os.path.join(FOLDER, kind)
    for frame in FRAMES:
        scene.frame_set(frame)
        scene.render.filepath = os.path.join(out, f"{frame:02}.png")
        bpy.ops.render.render(write_still=True)
    # the same as an animation: every frame by the render's own frame change
    scene.frame_set(1)
    scene.render.filepath = os.path.join(out, "anim_")
    bpy.ops.render.render(animation=True)
    for frame in FRAMES:
        still, moving = picture(os.path.join(out, f"{frame:02}.png")), picture(os.path.join(out, f"anim_{frame:04}.png"))
        check(numpy.abs(still - moving).max() < 0.02, f"frame {frame}: still and animation differ")
    first, last = (picture(os.path.join(out, f"{f:02}.png")) for f in (FRAMES[0], FRAMES[-1]))
    check((numpy.abs(first - last).max(axis=2) > 0.1).mean() > 0.02, "nothing moves")
    check(len(numpy.unique(first.reshape(-1, 3).round(2), axis=0)) > 20, "the picture is empty")


def play():
    render("play")
    expected = ARGUMENTS[-1]
    for frame in FRAMES:
        found = picture(os.path.join(FOLDER, "play", f"{frame:02}.png"))
        file = os.path.join(expected, f"drape_{frame:02}.png")
        wanted = picture(file) if os.path.exists(file) else numpy.zeros_like(found)
        share = (numpy.abs(found - wanted).max(axis=2) > 0.15).mean()
        check(share < 0.03, f"frame {frame}: {100 * share:.1f} % of the picture differ from {file}")


def plain():
    render("plain")
    for frame in FRAMES:
        a, b = (picture(os.path.join(FOLDER, kind, f"{frame:02}.png")) for kind in ("play", "plain"))
        check(numpy.abs(a - b).max() < 0.1, f"frame {frame}: PC2 without the add-on differs by {numpy.abs(a - b).max()}")


ARGUMENTS[:] = [a for a in ARGUMENTS if a.startswith("/")]
run([{"make": make, "play": play, "plain": plain}[MODE]])
