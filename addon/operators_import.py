"""File > Import > Sewing Pattern: a GarmentCode pattern is cut, placed around the selected body by the program, and becomes
a garment whose sewing edges are ready to bake."""
import json
import os
import subprocess
import tempfile

import bpy
import numpy
from bpy.props import EnumProperty, FloatProperty, StringProperty
from bpy_extras.io_utils import ImportHelper

from . import bridge, capture, native, properties
from .operators_setup import SOLID

SECONDS = 300                   # that placing a pattern may take
GROUP = "Held While Sewn"


def write_body(ob, path, scale):
    """The body as it is shown now, in metres, as an OBJ file."""
    shown = ob.evaluated_get(bpy.context.evaluated_depsgraph_get())
    mesh = shown.to_mesh()
    try:
        if mesh is None or len(mesh.polygons) == 0:
            raise bridge.Invalid("INVALID", f"\"{ob.name}\" has no faces. The body is a surface")
        mesh.calc_loop_triangles()
        points = capture.world_points(mesh, shown.matrix_world, scale)
        corners = numpy.empty(3 * len(mesh.loop_triangles), numpy.int32)
        mesh.loop_triangles.foreach_get("vertices", corners)
        corners = corners.reshape(-1, 3)[:, ::-1 if shown.matrix_world.is_negative else 1] + 1
    finally:
        shown.to_mesh_clear()
    with open(path, "w", encoding="utf-8") as file:
        file.writelines("v %.7g %.7g %.7g\n" % tuple(p) for p in points)
        file.writelines("f %d %d %d\n" % tuple(c) for c in corners)


class Pieces:
    """What the program wrote of the cut pattern: points, faces with their (u, v), sewing edges, what is held."""

    def __init__(self, path):
        points, uv, faces, corner_uv, edges, held, names, panels = [], [], [], [], [], set(), [], []
        with open(path, encoding="utf-8") as file:
            for line in file:
                kind, _, rest = line.rstrip("\n").partition(" ")
                if kind == "v":
                    points.append([float(x) for x in rest.split()])
                elif kind == "vt":
                    uv.append([float(x) for x in rest.split()])
                elif kind == "g":
                    names.append(rest)
                elif kind == "f":
                    corners = [c.split("/") for c in rest.split()]
                    faces.append([int(v) - 1 for v, _ in corners])
                    corner_uv += [int(t) - 1 for _, t in corners]
                    panels.append(len(names) - 1)
                elif kind == "l":
                    edges.append([int(v) - 1 for v in rest.split()])
                elif kind == "p":
                    held.update(int(v) - 1 for v in rest.split())
        self.points, self.faces, self.edges = points, faces, edges
        self.uv = numpy.array(uv, numpy.float32)[corner_uv]
        self.held, self.panels, self.panel_names = sorted(held), panels, names


def make_object(context, name, pieces, scale):
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([[x / scale for x in p] for p in pieces.points], pieces.edges, pieces.faces)
    layer = mesh.uv_layers.new(name="Pattern")
    layer.data.foreach_set("uv", pieces.uv.ravel())
    for panel in pieces.panel_names:
        mesh.materials.append(bpy.data.materials.new(panel))
    mesh.polygons.foreach_set("material_index", numpy.array(pieces.panels, numpy.int32))
    mesh.update()
    ob = bpy.data.objects.new(name, mesh)
    context.collection.objects.link(ob)
    if pieces.held:
        ob.vertex_groups.new(name=GROUP).add(pieces.held, 1.0, 'REPLACE')
    for other in context.selected_objects:
        other.select_set(False)
    ob.select_set(True)
    context.view_layer.objects.active = ob
    return ob


def plan(scene, made):
    """The frames of sewing, and weight that comes after, as the program planned them; in frames of this scene."""
    rate = scene.render.fps / scene.render.fps_base / made["fps"]
    first = capture.frame_range(scene)[0]

    def frame(number):
        return first + round((number - made["frames"][0]) * rate)
    for key in ("gravity_delay", "gravity_ramp"):
        if key in made["settings"] and hasattr(scene.toile, key):
            setattr(scene.toile, key, made["settings"][key])
    return frame


class TOILE_OT_import_pattern(ImportHelper, bpy.types.Operator):
    """Cut a GarmentCode pattern and put its panels around the selected body, ready to be sewn by a bake"""
    bl_idname = "toile.import_pattern"
    bl_label = "Sewing Pattern"
    bl_options = {'REGISTER', 'UNDO'}

    filename_ext = ".json"
    filter_glob: StringProperty(default="*.json", options={'HIDDEN'})
    fabric: EnumProperty(name="Fabric", items=lambda self, context: properties.fabric_items(),
                         description="What it is made of")
    edge_length: FloatProperty(name="Edge Length", default=0.015, min=0.0005, max=0.2, precision=4, unit='LENGTH',
                               description="Of the mesh that is cut, in metres: shorter is finer and slower")

    @classmethod
    def poll(cls, context):
        return context.mode == 'OBJECT' and context.object is not None and context.object.type in SOLID

    def execute(self, context):
        scene, body = context.scene, context.object
        scale = scene.unit_settings.scale_length
        try:
            with tempfile.TemporaryDirectory(prefix="toile_") as folder:
                pieces, made, warnings = self._cut(body, folder, scale)
        except (bridge.Error, OSError, subprocess.TimeoutExpired) as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        if body.toile.role == 'NONE':
            body.toile.role = 'COLLIDER'
        ob = make_object(context, made["name"], pieces, scale)
        bpy.ops.toile.add(role='GARMENT', fabric=self.fabric, pin_group=GROUP if pieces.held else "")
        frame, garment = plan(scene, made), ob.toile.garment
        garment.use_sewing = garment.use_sew_frames = True
        garment.sew_start, garment.sew_end = (frame(f) for f in made["garments"][0]["seams"][0]["frames"])
        garment.rest_shape, garment.uv_map, garment.uv_scale = 'UV', "Pattern", 1.0 / scale
        if pieces.held:
            pin = made["pins"][0]
            garment.pin_axes = set(pin.get("axes", "xyz").upper())
            garment.use_pin_end, garment.pin_end = True, frame(pin["frames"][1])
        if scene.toile.use_scene_range:
            scene.frame_end = max(scene.frame_end, frame(made["frames"][1]))
        for line in warnings:
            self.report({'WARNING'}, line)
        self.report({'INFO'}, f"{len(pieces.panel_names)} panels, {len(pieces.edges)} stitches: Bake sews them")
        return {'FINISHED'}

    def _cut(self, body, folder, scale):
        """Runs the program; (pieces, the scene it made, its warnings)."""
        body_path, scene_path, mesh_path = (os.path.join(folder, n) for n in ("body.obj", "scene.json", "mesh.obj"))
        write_body(body, body_path, scale)
        command = [native.program(), "import", bpy.path.abspath(self.filepath), "--body", body_path, "-o", scene_path,
                   "--mesh", mesh_path, "--edge-length", f"{self.edge_length:.7g}", "--fabric", self.fabric]
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False,
                              env=native.environment())
        said = [line.removeprefix("toile: ") for line in done.stderr.splitlines() if line.startswith("toile: ")]
        if done.returncode:
            raise bridge.Invalid("INVALID", said[-1] if said else f"the program ended with code {done.returncode}")
        with open(scene_path, encoding="utf-8") as file:
            return Pieces(mesh_path), json.load(file), [line.removeprefix("warning: ") for line in said]


def _menu(self, context):
    self.layout.operator("toile.import_pattern", text="Sewing Pattern, GarmentCode (.json)")


def register():
    bpy.utils.register_class(TOILE_OT_import_pattern)
    bpy.types.TOPBAR_MT_file_import.append(_menu)


def unregister():
    bpy.types.TOPBAR_MT_file_import.remove(_menu)
    bpy.utils.unregister_class(TOILE_OT_import_pattern)
