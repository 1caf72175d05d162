"""The add-on without its library, and with a damaged one: it registers, says what is wrong in words, and harms nothing.
blender_missing.py -- ZIP"""
import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bpy

from inside import ARGUMENTS, check, frames, grid, refused, run

bpy.ops.preferences.addon_install(filepath=ARGUMENTS[0], overwrite=True)
FOLDER = glob.glob(os.path.join(bpy.utils.user_resource('SCRIPTS'), "addons", "toile", "lib", "*"))[0]
LIBRARY = glob.glob(os.path.join(FOLDER, "libtoile-*.so"))[0]
PROGRAM = glob.glob(os.path.join(FOLDER, "toile-*"))[0]


def library_is_gone():
    os.rename(LIBRARY, LIBRARY + ".away")
    bpy.ops.preferences.addon_enable(module="toile")
    from toile import native
    check("toile" in bpy.context.preferences.addons, "not enabled")
    check("not there" in native.problem() and "Install the add-on again" in native.problem(), native.problem())
    sheet = grid()
    check(sheet.toile.garment.density > 0, "no properties")
    frames(3)
    refused("bake", "not there")
    bpy.context.scene.frame_set(2)
    sheet.toile.cache_path, sheet.toile.cache_garment = __file__, "x"
    from toile import playback
    bpy.context.scene.frame_set(3)
    check("not there" in playback.errors[playback.key_of(sheet)], f"{playback.errors}")


def library_is_damaged():
    from toile import native
    with open(LIBRARY, "wb") as file:
        file.write(b"\x7fELF nonsense" * 1000)
    native.forget()
    check("cannot be loaded" in native.problem(), native.problem())
    os.remove(LIBRARY)


def library_is_back():
    from toile import jobs, native
    os.rename(LIBRARY + ".away", LIBRARY)
    native.forget()
    check(native.problem() == "", native.problem())
    grid()
    frames(3)
    os.rename(PROGRAM, PROGRAM + ".away")
    refused("bake", "program is not there")
    check(not jobs.running, "something runs")
    os.rename(PROGRAM + ".away", PROGRAM)
    check(bpy.ops.toile.bake() == {'FINISHED'}, "does not bake")
    bpy.ops.preferences.addon_disable(module="toile")


run([library_is_gone, library_is_damaged, library_is_back])
