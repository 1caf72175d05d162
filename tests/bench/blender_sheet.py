"""Blender's own cloth on the sheets of `toile bench`: prints one line of JSON with CPU milliseconds per frame.

    blender -b -t 1 --factory-startup --python-exit-code 1 --python tests/bench/blender_sheet.py -- \
        --scene pinned --res 81 --frames 24 [--mass areal|preset] [--dist 0.004]

The scenes: a 1 m sheet of res x res vertices that hangs by two corners (pinned), falls on a ball of 0.3 m (sphere), or hangs
upright and is hit by a ball of 0.15 m at 3 m/s (ball). Fabric: Blender's preset Cotton with its 5 steps per frame; "areal"
makes 0.3 a mass per square metre instead of per vertex, so that resolutions compare. Only frame_set is timed.
"""
import argparse
import json
import sys
import time

import bpy

FPS = 24


def add_mesh(name, vertices, faces):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(vertices, [], faces)
    item = bpy.data.objects.new(name, mesh)
    bpy.context.collection.objects.link(item)
    return item


def add_sheet(res, upright, height):
    step = 1 / (res - 1)
    vertices = []
    for j in range(res):
        for i in range(res):
            u, v = i * step - 0.5, j * step - 0.5
            vertices.append((u, 0, v) if upright else (u, v, height))
    faces = [(j * res + i, j * res + i + 1, (j + 1) * res + i + 1, (j + 1) * res + i)
             for j in range(res - 1) for i in range(res - 1)]
    return add_mesh("sheet", vertices, faces)


def add_ball(radius, at):
    bpy.ops.mesh.primitive_uv_sphere_add(segments=64, ring_count=32, radius=radius, location=at)
    return bpy.context.object


def fly(ball, frames, speed):
    """Straight along y, a key at each end."""
    for frame in (1, frames + 1):
        ball.location.y = -1 + speed * (frame - 1) / FPS
        ball.keyframe_insert("location", frame=frame)
    for curve in ball.animation_data.action.fcurves:
        for key in curve.keyframe_points:
            key.interpolation = "LINEAR"


def build(options):
    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps = FPS
    scene.frame_start, scene.frame_end = 1, options.frames + 1
    scene.gravity = (0, 0, -9.81)
    res = options.res
    balls = []
    sheet = add_sheet(res, options.scene == "ball", 0.345 if options.scene == "sphere" else 0)
    if options.scene == "sphere":
        balls.append(add_ball(0.3, (0, 0, 0)))
    elif options.scene == "ball":
        balls.append(add_ball(0.15, (0, -1, -0.1)))
        fly(balls[0], options.frames, 3.0)
    for ball in balls:
        ball.modifiers.new("collision", "COLLISION")
        ball.collision.thickness_outer = options.dist

    modifier = sheet.modifiers.new("cloth", "CLOTH")
    fabric, contact = modifier.settings, modifier.collision_settings
    fabric.quality = 5
    fabric.mass, fabric.air_damping = 0.3, 1.0
    fabric.tension_stiffness = fabric.compression_stiffness = fabric.shear_stiffness = 15
    fabric.tension_damping = fabric.compression_damping = fabric.shear_damping = 5
    fabric.bending_stiffness = 0.5
    if options.mass == "areal":
        fabric.mass = 0.3 / (res * res)
        fabric.air_damping = 1.0 / (res * res)
    if options.scene != "sphere":
        pins = sheet.vertex_groups.new(name="pins")
        pins.add([res * (res - 1), res * res - 1], 1.0, "REPLACE")
        fabric.vertex_group_mass = "pins"
    contact.use_collision = bool(balls)
    contact.use_self_collision = False
    contact.distance_min = options.dist
    modifier.point_cache.frame_start, modifier.point_cache.frame_end = 1, options.frames + 1
    return sheet


def largest_strain(sheet, res):
    mesh = sheet.evaluated_get(bpy.context.evaluated_depsgraph_get()).data
    most, rest = 0.0, 1 / (res - 1)
    for j in range(res):
        for i in range(res):
            here = mesh.vertices[j * res + i].co
            if i + 1 < res:
                most = max(most, (mesh.vertices[j * res + i + 1].co - here).length / rest - 1)
            if j + 1 < res:
                most = max(most, (mesh.vertices[(j + 1) * res + i].co - here).length / rest - 1)
    return most


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scene", choices=("pinned", "sphere", "ball"), default="pinned")
    parser.add_argument("--res", type=int, default=41)
    parser.add_argument("--frames", type=int, default=24)
    parser.add_argument("--mass", choices=("areal", "preset"), default="areal")
    parser.add_argument("--dist", type=float, default=0.004)
    options = parser.parse_args(sys.argv[sys.argv.index("--") + 1:])
    sheet = build(options)
    scene = bpy.context.scene
    scene.frame_set(1)
    begin = time.process_time()
    for frame in range(2, options.frames + 2):
        scene.frame_set(frame)
    spent = time.process_time() - begin
    print(json.dumps({"scene": options.scene, "res": options.res, "frames": options.frames,
                      "blender": bpy.app.version_string, "cpu_ms_per_frame": 1e3 * spent / options.frames,
                      "stretch": largest_strain(sheet, options.res)}), flush=True)


main()
