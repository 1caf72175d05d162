"""Scrubbing 100,000 vertices against the fastest way to push them, in turns; and a frame change without garments.
blender_speed.py -- ZIP"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import bpy
import numpy

from inside import ARGUMENTS, FOLDER, check, run

bpy.ops.preferences.addon_install(filepath=ARGUMENTS[0], overwrite=True)
bpy.ops.preferences.addon_enable(module="toile")
from toile import native, playback

N, FRAMES = 316, 24         # 99,856 vertices


def sheet(name, x):
    bpy.ops.mesh.primitive_grid_add(x_subdivisions=N - 1, y_subdivisions=N - 1, size=1, location=(x, 0, 0))
    bpy.context.object.name = name
    return bpy.context.object


def write_cache(path):
    """A cache of this size: a sheet in free fall, in large steps."""
    scene = {"toile": 1, "fps": 24, "frames": [1, FRAMES], "garments": [{"name": "Sheet", "grid": {
        "size": [1, 1], "resolution": [N, N]}}], "settings": {"drag_model": "none", "time_step": 0.1, "threads": 1}}
    import json
    with open(path + ".json", "w", encoding="utf-8") as file:
        json.dump(scene, file)
    subprocess.run([native.program(), "bake", path + ".json", "-o", path, "--progress", "none"], check=True)


def touched(ob):
    """The evaluated mesh is there."""
    return len(ob.evaluated_get(bpy.context.evaluated_depsgraph_get()).data.vertices)


def scrubbing():
    path = os.path.join(FOLDER, "fast.h5")
    write_cache(path)
    scene = bpy.context.scene
    scene.frame_end = FRAMES
    plain = sheet("Plain", 0)
    moves = [(numpy.random.default_rng(f).random((N * N, 3)) * 0.01).astype(numpy.float32).ravel() for f in range(4)]
    played = sheet("Played", 0)
    bpy.ops.toile.load(filepath=path)
    check(played.toile.role == 'GARMENT', "not loaded")
    other = bpy.data.scenes.new("Plain")
    scene.collection.objects.unlink(plain)
    other.collection.objects.link(plain)
    window, pushes, shows, cold = bpy.context.window, [], [], []
    for turn in range(3):
        for frame in range(1, FRAMES + 1):
            window.scene = other
            began = time.perf_counter()
            plain.data.vertices.foreach_set("co", moves[frame % 4])
            plain.data.update()
            other.view_layers[0].update()
            touched(plain)
            pushes.append(time.perf_counter() - began)
            window.scene = scene
            began = time.perf_counter()
            scene.frame_set(frame)
            touched(played)
            (cold if turn == 0 else shows).append(time.perf_counter() - began)
    push, show, first = (1000 * float(numpy.median(t)) for t in (pushes, shows, cold))
    print(f"scrub: {N * N} vertices, fastest push {push:.1f} ms, frame change {show:.1f} ms ({show / push:.2f} of it), read "
          f"from disk for the first time {first:.1f} ms ({first / push:.2f}); shortest {1000 * min(pushes):.1f}, "
          f"{1000 * min(shows):.1f}, {1000 * min(cold):.1f} ms")
    check(show <= 1.5 * push or min(shows) <= 1.5 * min(pushes), f"{show:.1f} ms against {push:.1f} ms")


def nothing_to_show():
    scene = bpy.context.scene
    for i in range(200):
        scene.collection.objects.link(bpy.data.objects.new(f"Empty {i}", None))
    scene.frame_set(1)
    counts = []
    for _ in range(2000):
        began = time.perf_counter()
        playback.toile_frame_pre(scene, None)
        playback.toile_frame_post(scene, None)
        counts.append(time.perf_counter() - began)
    began = time.perf_counter()
    for frame in range(50):
        scene.frame_set(frame)
    whole = (time.perf_counter() - began) / 50
    spent = float(numpy.median(counts))
    print(f"frame change without garments: handlers {1e6 * spent:.1f} us of {1e6 * whole:.0f} us")
    check(spent < 20e-6, f"{spent} s of {whole} s")


run([nothing_to_show, scrubbing])
