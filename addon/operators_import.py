"""File > Import > Sewing Pattern: a GarmentCode pattern, or a drawing of panels (DXF, SVG) with a file that sews them, is
cut, placed around the selected body by the program, and becomes a garment whose sewing edges are ready to bake. A drawing
alone becomes flat panels in front of the body. From the interface the program works beside Blender: the window stays
usable, the status bar says how far it is, Escape ends it."""
import json
import os
import subprocess
import tempfile
import time

import bpy
import numpy
from bpy.props import EnumProperty, FloatProperty, StringProperty
from bpy_extras.io_utils import ImportHelper

from . import bridge, capture, native, properties, sewing
from .operators_setup import SOLID

SECONDS = 300                   # that placing a pattern may take in a script
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
        points, uv, faces, corner_uv, edges, seams, held, names, panels = [], [], [], [], [], [], [], [], []
        seam = 0
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
                elif kind == "o" and rest.startswith("seam "):
                    seam = int(rest.removeprefix("seam "))
                elif kind == "l":
                    edges.append([int(v) - 1 for v in rest.split()])
                    seams.append(seam)
                elif kind == "p":
                    held.append([int(v) - 1 for v in rest.split()])
        self.points, self.faces, self.edges, self.seams = points, faces, edges, seams
        self.uv = numpy.array(uv, numpy.float32)[corner_uv]
        self.pins, self.panels, self.panel_names = held, panels, names      # of pins the vertices

    def held(self):
        return sorted({v for pin in self.pins for v in pin})


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
    if pieces.pins:
        ob.vertex_groups.new(name=GROUP).add(pieces.held(), 1.0, 'REPLACE')
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


def in_turn(ob, pieces, made, frame):
    """Each seam in its own frames, which are parts of the time that the object sews."""
    spans = [seam["frames"] for seam in made["garments"][0]["seams"]]
    first, last = min(a for a, _ in spans), max(b for _, b in spans)
    parts = [[(f - first) / max(1, last - first) for f in span] for span in spans]
    sewing.set_turns(ob.data, {(min(e), max(e)): parts[seam] for e, seam in zip(pieces.edges, pieces.seams)})
    ob.toile.garment.sew_start, ob.toile.garment.sew_end = frame(first), frame(last)


def raise_pins(ob, pieces, made, frame, scale):
    """What the program raises while it is sewn: a shape key that comes meanwhile, which pins follow."""
    moved = [(pin["motion"]["keys"], held) for pin, held in zip(made["pins"], pieces.pins) if "motion" in pin]
    if not moved:
        return
    ob.shape_key_add(name="Basis")
    key = ob.shape_key_add(name="Raised While Sewn", from_mix=False)
    for keys, held in moved:
        for v in held:
            key.data[v].co = [(x + d) / scale for x, d in zip(pieces.points[v], keys[-1]["translate"])]
    for amount, at in ((0.0, moved[0][0][0]), (1.0, moved[0][0][-1])):
        key.value = amount
        key.keyframe_insert("value", frame=frame(at["frame"]))


def animate_maps(ob, pieces, made, frame):
    """Panels that are stiff until they are sewn, and what is shorter until it is joined: vertex groups, and keys of what
    they do."""
    points, panel_of = numpy.array(pieces.points), numpy.zeros(len(pieces.points), int)
    panel_of[numpy.array(pieces.faces)] = numpy.array(pieces.panels)[:, None]
    for name, group, kinds in (("bend", "Stiff While Sewn", ("bend_warp", "bend_weft")),
                               ("length", "Short While Sewn", ("scale_u",))):
        found = [m for m in made["garments"][0].get("maps", []) if m["property"] in kinds and m["value"] != 1]
        if not found:
            continue
        most = max((m["value"] for m in found), key=lambda value: abs(value - 1))
        weight = numpy.zeros(len(points))
        for m in found:
            low, high = numpy.array(m["select"]["box"])
            chosen = ((points >= low) & (points <= high)).all(axis=1)
            if "panels" in m["select"]:
                chosen &= numpy.isin(panel_of, [pieces.panel_names.index(p) for p in m["select"]["panels"]])
            weight[chosen] = numpy.maximum(weight[chosen], (m["value"] - 1) / (most - 1))
        kept = ob.vertex_groups.new(name=group)
        for w in numpy.unique(weight[weight > 0]):
            kept.add(numpy.nonzero(weight == w)[0].tolist(), float(w), 'REPLACE')
        setattr(ob.toile.garment, f"map_{name}_group", group)
        for key in found[0]["keys"]:
            setattr(ob.toile.garment, f"map_{name}", 1 + key["value"] * (most - 1))
            ob.keyframe_insert(f"toile.garment.map_{name}", frame=frame(key["frame"]))


class Placing:
    """The program at work: a process of its own, in a folder that goes with it."""

    def __init__(self, pattern, body, scale, edge_length, fabric, companion=""):
        self.pattern, self.body, self.scale = pattern, body.name, scale
        self.began, self.done, self.total, self._read = time.monotonic(), 0, 0, 0
        self._folder = tempfile.TemporaryDirectory(prefix="toile_")
        try:
            write_body(body, self._path("body.obj"), scale)
            command = [native.program(), "import", pattern, "--body", self._path("body.obj"), "-o", self._path("scene.json"),
                       "--mesh", self._path("mesh.obj"), "--edge-length", f"{edge_length:.7g}", "--fabric", fabric,
                       "--progress", "json"] + (["--sewing", companion] if companion else [])
            with open(self._path("out"), "wb") as out, open(self._path("err"), "wb") as err:
                self.process = subprocess.Popen(command, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                                env=native.environment(), start_new_session=True)
        except BaseException:
            self._folder.cleanup()
            raise

    def _path(self, name):
        return os.path.join(self._folder.name, name)

    def poll(self):
        """Reads on how far it is; True while it runs."""
        alive = self.process.poll() is None
        with open(self._path("out"), "rb") as out:
            out.seek(self._read)
            text = out.read()
        end = text.rfind(b"\n") + 1
        self._read += end
        for line in text[:end].splitlines():
            if line.startswith(b"{"):
                event = json.loads(line)
                self.done, self.total = event["done"], event["total"]
        return alive

    def text(self):
        far = f"{100 * self.done // self.total} %, " if self.total else ""
        return f"placing {os.path.basename(self.pattern)} around {self.body}: {far}{time.monotonic() - self.began:.0f} s"

    def result(self):
        """(pieces, the scene it made, its warnings) of a process that has ended."""
        with open(self._path("err"), encoding="utf-8", errors="replace") as err:
            said = [line.strip().removeprefix("toile: ") for line in err if line.startswith("toile: ")]
        code = self.process.returncode
        if code:
            raise bridge.Invalid("INVALID", said[-1] if said else f"the program ended with code {code}")
        with open(self._path("scene.json"), encoding="utf-8") as file:
            return Pieces(self._path("mesh.obj")), json.load(file), [line.removeprefix("warning: ") for line in said]

    def close(self):
        """Ends what still runs, and takes the folder away."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._folder.cleanup()


state = {"placing": None}       # the one that runs from the interface


class TOILE_OT_import_pattern(ImportHelper, bpy.types.Operator):
    """Cut a GarmentCode pattern, or panels drawn in DXF or SVG, and put them around the selected body, ready to be sewn"""
    bl_idname = "toile.import_pattern"
    bl_label = "Sewing Pattern"
    bl_options = {'UNDO'}       # no redo panel: it would place the panels again while the window waits

    filename_ext = ".json"
    filter_glob: StringProperty(default="*.json;*.dxf;*.svg", options={'HIDDEN'})
    fabric: EnumProperty(name="Fabric", items=lambda self, context: properties.fabric_items(),
                         description="What it is made of")
    edge_length: FloatProperty(name="Edge Length", default=0.015, min=0.0005, max=0.2, precision=4, unit='LENGTH',
                               description="Of the mesh that is cut, in metres: shorter is finer and slower")
    companion: StringProperty(name="Sewing", subtype='FILE_PATH', options={'SKIP_SAVE'},
                              description="Of a DXF or SVG drawing: the JSON file that places and sews its panels. "
                              "Without one they lie flat in front of the body")
    asked = False               # by a person, in a window: it must not wait

    @classmethod
    def poll(cls, context):
        return context.mode == 'OBJECT' and context.object is not None and context.object.type in SOLID

    def invoke(self, context, event):
        self.asked = not bpy.app.background
        if self.properties.is_property_set("filepath") and self.filepath:
            return self.execute(context)
        return super().invoke(context, event)

    def execute(self, context):
        """From a script it returns when all is there; from the interface the window stays usable meanwhile."""
        if state["placing"] is not None:
            self.report({'ERROR'}, "another pattern is being placed; wait for it or press Escape")
            return {'CANCELLED'}
        try:
            placing = Placing(bpy.path.abspath(self.filepath), context.object, context.scene.unit_settings.scale_length,
                              self.edge_length, self.fabric, bpy.path.abspath(self.companion))
        except (bridge.Error, OSError) as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        if self.asked:
            return self._begin(context, placing)
        try:
            placing.process.wait(SECONDS)
            return self._take(context, placing)
        except subprocess.TimeoutExpired:
            self.report({'ERROR'}, f"the panels were not placed in {SECONDS} s; use a larger edge length")
            return {'CANCELLED'}
        finally:
            placing.close()

    # ---- from the interface ----

    def _begin(self, context, placing):
        window = context.window or context.window_manager.windows[0]
        state["placing"] = placing
        self._timer = context.window_manager.event_timer_add(0.1, window=window)
        context.window_manager.modal_handler_add(self)
        return {'RUNNING_MODAL'}

    def modal(self, context, event):
        placing = state["placing"]
        if event.type == 'ESC' or placing is None:
            self.cancel(context)
            self.report({'INFO'}, "the import was cancelled")
            return {'CANCELLED'}
        if event.type != 'TIMER':
            return {'PASS_THROUGH'}
        alive = placing.poll()
        held = "" if alive or context.mode == 'OBJECT' else "; it comes when you leave Edit Mode"
        context.workspace.status_text_set(f"Toile: {placing.text()}{held}, Esc stops")
        if alive or held:
            return {'PASS_THROUGH'}
        try:
            return self._take(context, placing)
        finally:
            self.cancel(context)

    def cancel(self, context):
        """Also called by Blender, when a file is loaded meanwhile."""
        placing, state["placing"] = state["placing"], None
        if placing is not None:
            placing.close()
        context.window_manager.event_timer_remove(self._timer)
        if context.workspace:
            context.workspace.status_text_set(None)

    # ---- what came of it ----

    def _take(self, context, placing):
        scene, body = context.scene, context.scene.objects.get(placing.body)
        try:
            pieces, made, warnings = placing.result()
        except (bridge.Error, OSError) as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        if body is not None and body.toile.role == 'NONE':
            body.toile.role = 'COLLIDER'
        ob = make_object(context, made["name"], pieces, placing.scale)
        bpy.ops.toile.add(role='GARMENT', fabric=self.fabric, pin_group=GROUP if pieces.pins else "")
        garment = ob.toile.garment
        if made["garments"][0]["seams"]:
            self._sew(scene, ob, pieces, made, placing.scale)
        garment.rest_shape, garment.uv_map, garment.uv_scale = 'UV', "Pattern", 1.0 / placing.scale
        for line in warnings:
            self.report({'WARNING'}, line)
        what = "Bake sews them" if pieces.edges else "place them, and join their borders by sewing edges"
        self.report({'INFO'}, f"{len(pieces.panel_names)} panels, {len(pieces.edges)} stitches: {what}")
        return {'FINISHED'}

    def _sew(self, scene, ob, pieces, made, scale):
        """The program's plan of what is sewn and held when."""
        frame, garment = plan(scene, made), ob.toile.garment
        garment.use_sewing = garment.use_sew_frames = True
        in_turn(ob, pieces, made, frame)
        animate_maps(ob, pieces, made, frame)
        if pieces.pins:
            raise_pins(ob, pieces, made, frame, scale)
            pin = made["pins"][0]
            garment.pin_stiffness = pin.get("stiffness", 0)
            garment.pin_axes = set(pin.get("axes", "xyz").upper())
            garment.use_pin_end, garment.pin_end = True, frame(pin["frames"][1])
        if scene.toile.use_scene_range:
            scene.frame_end = max(scene.frame_end, frame(made["frames"][1]))


def _menu(self, context):
    self.layout.operator("toile.import_pattern", text="Sewing Pattern (.json, .dxf, .svg)")


def register():
    bpy.utils.register_class(TOILE_OT_import_pattern)
    bpy.types.TOPBAR_MT_file_import.append(_menu)


def unregister():
    if state["placing"] is not None:
        state["placing"].close()
        state["placing"] = None
    bpy.types.TOPBAR_MT_file_import.remove(_menu)
    bpy.utils.unregister_class(TOILE_OT_import_pattern)
