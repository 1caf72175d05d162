# SPDX-License-Identifier: GPL-3.0-or-later
"""Contact sheet of a baked garment on its figure.

    blender -b --factory-startup --python-exit-code 1 --python samples/render.py -- --objs DIR --out sheet.png

DIR holds one OBJ per frame, as `toile export CACHE.h5 -o DIR/cloth.obj --colliders` writes them:
cloth_0001.obj ... and cloth_collider_0001.obj ... (or body_0001.obj ...); other names by --cloth and
--body, with # signs for the frame. Each moment is one view of --size pixels, side by side. The cloth's
pattern comes from its material coordinates (vt), so the grain of every panel shows; --uv FILE.obj gives
them if the frames have none.
"""
import argparse
import glob
import math
import os
import re
import sys
import time

import bpy
import numpy as np


def arguments():
    own = sys.argv[sys.argv.index("--") + 1:] if "--" in sys.argv else []
    parser = argparse.ArgumentParser(prog="render.py", description=__doc__.split("\n")[0])
    parser.add_argument("--objs", default=".", help="folder of the frames")
    parser.add_argument("--cloth", default="cloth_####.obj", help="names of the cloth's files")
    parser.add_argument("--body", help="names of the body's files, if not as above; there may be none")
    parser.add_argument("--uv", help="OBJ with the cloth's faces and vt, if the frames have none")
    parser.add_argument("--frames", help="moments, as 1,20,40; else some evenly from first to last")
    parser.add_argument("--count", type=int, default=6, help="how many moments if --frames is not given")
    parser.add_argument("--size", default="480x640", help="pixels of one moment")
    parser.add_argument("--engine", default="eevee", choices=("cycles", "eevee", "workbench"))
    parser.add_argument("--samples", type=int, default=8, help="per pixel; cycles needs 32 or more")
    parser.add_argument("--view", type=float, default=28, help="degrees from the front, seen from above")
    parser.add_argument("--color", default="0.022,0.115,0.165", help="of the cloth, linear red, green, blue")
    parser.add_argument("--out", required=True)
    return parser.parse_args(own)


# ---- frames ----

def file_of(folder, pattern, frame):
    name = re.sub("#+", lambda m: "%0*d" % (len(m.group()), frame), pattern)
    return os.path.join(folder, name)


def frames_in(folder, pattern):
    """Numbers of the frames that are there."""
    parts = re.split("#+", os.path.basename(pattern))
    expression = re.compile("(\\d+)".join(re.escape(p) for p in parts) + "$")
    where = os.path.join(folder, os.path.dirname(pattern))
    found = (expression.match(os.path.basename(p)) for p in glob.glob(os.path.join(glob.escape(where), "*")))
    return sorted(int(m.group(1)) for m in found if m)


def read_obj(path):
    """Positions, material coordinates, and faces as lists of (vertex, vt or -1)."""
    positions, coordinates, faces = [], [], []
    with open(path, encoding="utf-8") as file:
        for line in file:
            words = line.split()
            if not words:
                continue
            if words[0] == "v":
                positions.append([float(w) for w in words[1:4]])
            elif words[0] == "vt":
                coordinates.append([float(w) for w in words[1:3]])
            elif words[0] == "f":
                face = []
                for corner in words[1:]:
                    index = corner.split("/")
                    v = int(index[0])
                    t = int(index[1]) if len(index) > 1 and index[1] else 0
                    face.append((v - 1 if v > 0 else len(positions) + v,
                                 t - 1 if t > 0 else len(coordinates) + t if t < 0 else -1))
                faces.append(face)
    if not positions or not faces:
        raise SystemExit("render.py: %s has no vertices or no faces" % path)
    return np.array(positions, np.float32), np.array(coordinates, np.float32).reshape(-1, 2), faces


def seam_marks(faces, coordinates, count):
    """1 at vertices on a seam (its two faces differ in material coordinates) or on a border, else 0."""
    sides, marks = {}, np.zeros(count, np.float32)
    place = [tuple(c) for c in np.round(coordinates * 1e5).astype(int).tolist()]
    for face in faces:
        for a, b in zip(face, face[1:] + face[:1]):
            key = (min(a[0], b[0]), max(a[0], b[0]))
            vt = tuple(place[c[1]] for c in sorted((a, b)))
            sides.setdefault(key, []).append(vt)
    for (a, b), vts in sides.items():
        if len(vts) != 2 or vts[0] != vts[1]:
            marks[a] = marks[b] = 1
    return marks


# ---- scene ----

def make_mesh(name, positions, coordinates, faces, material):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata(positions.tolist(), [], [[c[0] for c in face] for face in faces])
    if len(coordinates) and faces[0][0][1] >= 0:
        layer = mesh.uv_layers.new(name="material")
        flat = np.array([coordinates[c[1]] for face in faces for c in face], np.float32)
        layer.data.foreach_set("uv", flat.ravel())
        mark = mesh.attributes.new("seam", "FLOAT", "POINT")
        mark.data.foreach_set("value", seam_marks(faces, coordinates, len(positions)))
    mesh.polygons.foreach_set("use_smooth", np.ones(len(mesh.polygons), bool))
    mesh.materials.append(material)
    mesh.update()
    thing = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(thing)
    return thing


def set_input(shader, names, value):
    """Inputs of the principled shader were renamed in Blender 4."""
    for name in names:
        if name in shader.inputs:
            shader.inputs[name].default_value = value
            return


def plain_material(name, color, roughness):
    material = bpy.data.materials.new(name)
    material.use_nodes = True
    shader = material.node_tree.nodes["Principled BSDF"]
    shader.inputs["Base Color"].default_value = (*color, 1)
    shader.inputs["Roughness"].default_value = roughness
    set_input(shader, ("Specular", "Specular IOR Level"), 0.25)
    material.diffuse_color = (*color, 1)
    return material


def cloth_material(color):
    """Woven stripes along the grain, every eighth stronger, and darker seams."""
    material = plain_material("cloth", color, 0.85)
    tree = material.node_tree
    nodes, links = tree.nodes, tree.links
    shader = nodes["Principled BSDF"]
    set_input(shader, ("Sheen", "Sheen Weight"), 0.1)

    def math_node(operation, a, b=None):
        node = nodes.new("ShaderNodeMath")
        node.operation = operation
        for socket, value in zip(node.inputs, (a, b)):
            if isinstance(value, (int, float)):
                socket.default_value = value
            elif value is not None:
                links.new(value, socket)
        return node.outputs[0]

    def stripes(coordinate, spacing, width):
        """1 inside a stripe of `width`, 0 elsewhere, with soft borders of a millimetre."""
        middle = math_node("PINGPONG", coordinate, spacing / 2)
        node = nodes.new("ShaderNodeMapRange")
        node.interpolation_type = "SMOOTHSTEP"
        links.new(middle, node.inputs["Value"])
        node.inputs["From Min"].default_value = width / 2 - 0.0005
        node.inputs["From Max"].default_value = width / 2 + 0.0005
        node.inputs["To Min"].default_value = 1
        node.inputs["To Max"].default_value = 0
        return node.outputs[0]

    uv = nodes.new("ShaderNodeUVMap")
    uv.uv_map = "material"
    split = nodes.new("ShaderNodeSeparateXYZ")
    links.new(uv.outputs[0], split.inputs[0])
    u, v = split.outputs[0], split.outputs[1]
    across, along = stripes(v, 0.040, 0.0030), stripes(u, 0.040, 0.0030)
    fine = math_node("MULTIPLY", math_node("ADD", stripes(v, 0.010, 0.005), stripes(u, 0.010, 0.005)), 0.05)
    pattern = math_node("ADD", math_node("MULTIPLY", math_node("ADD", across, along), 0.42), fine)

    light = tuple(min(1.0, 0.35 * c + 0.42) for c in color)
    ramp = nodes.new("ShaderNodeValToRGB")
    ramp.color_ramp.elements[0].color = (*color, 1)
    ramp.color_ramp.elements[1].color = (*light, 1)
    links.new(pattern, ramp.inputs[0])

    seam = nodes.new("ShaderNodeAttribute")
    seam.attribute_name = "seam"
    edge = nodes.new("ShaderNodeMapRange")
    edge.interpolation_type = "SMOOTHSTEP"
    links.new(seam.outputs["Fac"], edge.inputs["Value"])
    edge.inputs["From Min"].default_value = 0.70
    edge.inputs["From Max"].default_value = 0.85
    mix = nodes.new("ShaderNodeMixRGB")
    mix.inputs[2].default_value = (*(0.30 * c for c in color), 1)
    links.new(math_node("MULTIPLY", edge.outputs[0], 0.85), mix.inputs[0])
    links.new(ramp.outputs[0], mix.inputs[1])
    links.new(mix.outputs[0], shader.inputs["Base Color"])
    return material


def light(name, place, at, size, power, color=(1, 1, 1)):
    """A soft square of light; with no size a spot with a soft border, which leaves no edge on the wall."""
    data = bpy.data.lights.new(name, "AREA" if size else "SPOT")
    data.energy, data.color = power, color
    if size:
        data.size = size
    else:
        data.spot_size, data.spot_blend, data.shadow_soft_size = math.radians(55), 1, 0.3
    lamp = bpy.data.objects.new(name, data)
    lamp.location = place
    lamp.rotation_euler = track(place, at)
    bpy.context.scene.collection.objects.link(lamp)
    return lamp


def track(place, at):
    import mathutils
    return (mathutils.Vector(at) - mathutils.Vector(place)).to_track_quat("-Z", "Y").to_euler()


def set_up(options, width, height):
    scene = bpy.context.scene
    for thing in list(bpy.data.objects):
        bpy.data.objects.remove(thing)
    scene.render.resolution_x, scene.render.resolution_y = width, height
    scene.render.resolution_percentage = 100
    scene.render.image_settings.file_format = "PNG"
    scene.view_settings.view_transform = "Filmic"
    scene.view_settings.look = "Medium High Contrast"
    scene.view_settings.exposure = 0.3
    if options.engine == "cycles":
        scene.render.engine = "CYCLES"
        scene.cycles.device = "CPU"
        scene.cycles.samples = options.samples
        scene.cycles.use_adaptive_sampling = True
        scene.cycles.adaptive_threshold = 0.03
        scene.cycles.max_bounces = 3
        scene.cycles.diffuse_bounces = 2
        scene.cycles.caustics_reflective = scene.cycles.caustics_refractive = False
        scene.cycles.use_denoising = False
        scene.render.use_persistent_data = False
    elif options.engine == "eevee":
        engines = {e.identifier for e in bpy.types.RenderSettings.bl_rna.properties["engine"].enum_items}
        scene.render.engine = "BLENDER_EEVEE_NEXT" if "BLENDER_EEVEE_NEXT" in engines else "BLENDER_EEVEE"
        scene.eevee.taa_render_samples = options.samples
        for name in ("use_gtao", "use_soft_shadows"):
            if hasattr(scene.eevee, name):
                setattr(scene.eevee, name, True)
    else:
        scene.render.engine = "BLENDER_WORKBENCH"
        scene.display.shading.color_type = "MATERIAL"
        scene.display.shading.show_cavity = scene.display.shading.show_shadows = True

    world = scene.world or bpy.data.worlds.new("World")
    scene.world = world
    world.use_nodes = True
    background = world.node_tree.nodes["Background"]
    background.inputs[0].default_value = (0.86, 0.88, 0.92, 1)
    background.inputs[1].default_value = 0.28

    camera = bpy.data.objects.new("camera", bpy.data.cameras.new("camera"))
    camera.data.lens = 70
    camera.data.sensor_fit = "VERTICAL"
    camera.data.sensor_height = 36
    scene.collection.objects.link(camera)
    scene.camera = camera
    return scene, camera


def floor_and_wall(material, angle):
    """A floor that bends up into a wall behind the figure, as in a photographer's studio."""
    profile = [(-6.0, 0.0), (2.2, 0.0)]
    profile += [(2.2 + 1.2 * math.sin(a), 1.2 - 1.2 * math.cos(a)) for a in np.linspace(0.1, math.pi / 2, 14)]
    profile += [(3.4, 6.0)]
    c, s = math.cos(angle), math.sin(angle)
    points, faces = [], []
    for back, up in profile:
        for side in (-8, 8):
            points.append((side * c - back * s, side * s + back * c, up))
    for i in range(len(profile) - 1):
        faces.append([(2 * i, -1), (2 * i + 1, -1), (2 * i + 3, -1), (2 * i + 2, -1)])
    return make_mesh("floor", np.array(points, np.float32), np.zeros((0, 2)), faces, material)


# ---- pictures ----

def render_moment(scene, camera, options, frame, uv, materials, scratch):
    things = []
    positions, coordinates, faces = read_obj(file_of(options.objs, options.cloth, frame))
    if uv:
        if len(uv[0]) != len(positions):
            raise SystemExit("render.py: %s has %d vertices, the cloth %d"
                             % (options.uv, len(uv[0]), len(positions)))
        coordinates, faces = uv[1], uv[2]
    cloth = make_mesh("cloth", positions, coordinates, faces, materials["cloth"])
    thick = cloth.modifiers.new("thickness", "SOLIDIFY")
    thick.thickness, thick.offset = 0.0015, 0
    things.append(cloth)
    middle = positions
    stem = options.cloth.replace("#", "collider_#", 1)
    names = [options.body] if options.body else ["body_####.obj", stem]
    body_file = next((p for p in (file_of(options.objs, n, frame) for n in names) if os.path.exists(p)), None)
    if body_file:
        positions, coordinates, faces = read_obj(body_file)
        body = make_mesh("body", positions, np.zeros((0, 2)), faces, materials["body"])
        smooth = body.modifiers.new("smooth", "SUBSURF")
        smooth.levels = smooth.render_levels = 1
        things.append(body)
        middle = np.concatenate([middle, positions])

    # The camera keeps its direction and height and goes along with the figure.
    low, high = middle.min(0), middle.max(0)
    if render_moment.aim is None:
        tall = max(high[2] - low[2], 0.5)
        render_moment.aim = (float(low[2] + high[2]) / 2 - 0.015 * tall, float(tall))
    height, tall = render_moment.aim
    across = np.median(middle, axis=0)
    angle = math.radians(options.view)
    distance = tall * 1.12 / 36 * 70
    at = (float(across[0]), float(across[1]), height)
    camera.location = (at[0] + distance * math.sin(angle), at[1] - distance * math.cos(angle),
                       height + 0.10 * distance)
    camera.rotation_euler = track(camera.location, at)
    stage = bpy.data.objects["stage"]
    stage.location = (at[0], at[1], 0)

    scene.render.filepath = scratch
    bpy.ops.render.render(write_still=True)
    image = bpy.data.images.load(scratch, check_existing=False)
    pixels = np.empty(image.size[0] * image.size[1] * 4, np.float32)
    image.pixels.foreach_get(pixels)
    pixels = pixels.reshape(image.size[1], image.size[0], 4)
    bpy.data.images.remove(image)
    for thing in things:
        mesh = thing.data
        bpy.data.objects.remove(thing)
        bpy.data.meshes.remove(mesh)
    return pixels


render_moment.aim = None


def main():
    options = arguments()
    began = time.time()
    width, height = (int(n) for n in options.size.lower().split("x"))
    if options.frames:
        frames = [int(f) for f in options.frames.split(",")]
    else:
        found = frames_in(options.objs, options.cloth)
        if not found:
            raise SystemExit("render.py: no %s in %s" % (options.cloth, options.objs))
        pick = np.linspace(0, len(found) - 1, min(options.count, len(found)))
        frames = [found[int(round(p))] for p in pick]
    missing = [f for f in frames if not os.path.exists(file_of(options.objs, options.cloth, f))]
    if missing:
        raise SystemExit("render.py: %s is missing" % file_of(options.objs, options.cloth, missing[0]))

    scene, camera = set_up(options, width, height)
    color = tuple(float(c) for c in options.color.split(","))
    materials = {"cloth": cloth_material(color), "body": plain_material("body", (0.50, 0.37, 0.295), 0.5)}
    stage = bpy.data.objects.new("stage", None)
    scene.collection.objects.link(stage)
    angle = math.radians(options.view)
    parts = [floor_and_wall(plain_material("floor", (0.60, 0.58, 0.55), 0.8), angle)]
    for name, place, size, power, tint in (
            ("key", (-2.4, -2.4, 3.0), 1.3, 190, (1.0, 0.94, 0.86)),
            ("fill", (2.8, -2.2, 1.6), 2.2, 14, (0.80, 0.90, 1.0)),
            ("rim", (1.5, 2.1, 2.7), 0, 220, (1.0, 0.98, 0.95))):
        c, s = math.cos(angle), math.sin(angle)
        turned = (place[0] * c - place[1] * s, place[0] * s + place[1] * c, place[2])
        parts.append(light(name, turned, (0, 0, 0.8), size, power, tint))
    for part in parts:
        part.parent = stage
    uv = read_obj(options.uv) if options.uv else None

    scratch = os.path.abspath(options.out) + ".part.png"
    views = []
    for frame in frames:
        views.append(render_moment(scene, camera, options, frame, uv, materials, scratch))
    os.remove(scratch)

    gap = np.ones((height, max(2, width // 120), 4), np.float32)
    row = [views[0]]
    for view in views[1:]:
        row += [gap, view]
    sheet = np.concatenate(row, axis=1)
    image = bpy.data.images.new("sheet", sheet.shape[1], sheet.shape[0])
    image.pixels.foreach_set(np.ascontiguousarray(sheet, np.float32).ravel())
    image.filepath_raw, image.file_format = os.path.abspath(options.out), "PNG"
    image.save()
    which, size = ", ".join(map(str, frames)), "%d x %d" % (sheet.shape[1], sheet.shape[0])
    print("render.py: %s: %d moments (frames %s), %s, %.1f s"
          % (options.out, len(frames), which, size, time.time() - began))
    sys.exit(0)


main()
