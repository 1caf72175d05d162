"""Export: Alembic and OBJ by the program; PC2 and MDD for Blender's own Mesh Cache modifier, in the object's space, so that
a farm renders without the add-on."""
import os
import struct
import subprocess

import bpy
import numpy
from bpy.props import BoolProperty, EnumProperty, StringProperty

from . import bridge, capture, modifier, native, paths, playback


class TOILE_OT_export(bpy.types.Operator):
    """Write the cached frames for other tools"""
    bl_idname = "toile.export"
    bl_label = "Export"
    bl_options = {'REGISTER', 'UNDO'}

    filepath: StringProperty(subtype='FILE_PATH', description="Several garments become several files with PC2 and MDD")
    format: EnumProperty(name="Format", default='ABC', items=[
        ('ABC', "Alembic", "One archive with positions, velocities, UVs and panels"),
        ('PC2', "PC2", "Positions for Blender's Mesh Cache modifier"),
        ('MDD', "MDD", "Positions for Blender's Mesh Cache modifier and other tools"),
        ('OBJ', "OBJ Sequence", "A file for every frame")])
    set_up: BoolProperty(name="Set Up Mesh Cache", default=True, description=(
        "Play the exported PC2 or MDD with Blender's own modifier instead of Toile's"))

    @classmethod
    def poll(cls, context):
        return any(ob.toile.cache_path for ob in capture.objects(context.scene, 'GARMENT'))

    def invoke(self, context, event):
        if not self.filepath:
            self.filepath = os.path.splitext(bpy.data.filepath)[0] or "garment"
        context.window_manager.fileselect_add(self)
        return {'RUNNING_MODAL'}

    def draw(self, context):
        self.layout.prop(self, "format")
        if self.format in {'PC2', 'MDD'}:
            self.layout.prop(self, "set_up")

    def execute(self, context):
        garments = [ob for ob in capture.objects(context.scene, 'GARMENT') if ob.toile.cache_path]
        ending = "." + self.format.lower()
        base = paths.absolute(self.filepath)
        base = base[:-4] if base.lower().endswith(ending) else base
        try:
            os.makedirs(os.path.dirname(base), exist_ok=True)
            if self.format in {'PC2', 'MDD'}:
                for ob in garments:
                    path = base + (f"_{paths.plain(ob.name)}" if len(garments) > 1 else "") + ending
                    write_points(context.scene, ob, path, self.format)
                    if self.set_up:
                        set_up(context.scene, ob, path, self.format)
            else:
                for cache in sorted({paths.of(ob) for ob in garments}):
                    self._run(cache, base + ending)
        except (bridge.Error, OSError) as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        self.report({'INFO'}, f"wrote {base}{ending}")
        return {'FINISHED'}

    @staticmethod
    def _run(cache, path):
        done = subprocess.run([native.program(), "export", cache, "-o", path, "--progress", "none"], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            raise bridge.Failed("IO", done.stderr.strip().removeprefix("toile: ") or f"the export ended with code "
                                                                                     f"{done.returncode}")


def _matrices(scene, ob, first, last):
    """The object's matrix at every frame; it is evaluated only if it moves."""
    if not playback._moves(ob):
        return [ob.matrix_world.copy()] * (last - first + 1)
    kept, found = scene.frame_current, []
    playback.paused += 1
    try:
        for frame in range(first, last + 1):
            scene.frame_set(frame)
            found.append(ob.matrix_world.copy())
    finally:
        playback.paused -= 1
        scene.frame_set(kept)
    return found


def write_points(scene, ob, path, kind):
    """PC2 (little-endian, http://www.footools.com/plugins/docs/PointCache2_README.html) or MDD (big-endian)."""
    cache = paths.of(ob)
    info, last = playback.store.info(cache)
    first, count = info["first_frame"], len(ob.data.vertices)
    frames = last - first + 1
    matrices = _matrices(scene, ob, first, last)
    part = path + ".part"
    with open(part, "wb") as out:
        if kind == 'PC2':
            out.write(struct.pack("<12siiffi", b"POINTCACHE2\0", 1, count, first, 1.0, frames))
        else:
            out.write(struct.pack(">ii", frames, count))
            out.write(numpy.array([(first + i) / info["fps"] for i in range(frames)], ">f4").tobytes())
        for i, matrix in enumerate(matrices):
            points = playback.store.get(cache, ob.toile.cache_garment, first + i)
            if len(points) != count:
                raise bridge.Invalid("INVALID", f"\"{ob.name}\" has {count} vertices but was baked with {len(points)}; "
                                                "bake again")
            local = playback._local(points, matrix, scene.unit_settings.scale_length)
            out.write(local.astype("<f4" if kind == 'PC2' else ">f4").tobytes())
    os.replace(part, path)


def set_up(scene, ob, path, kind):
    """Blender's Mesh Cache modifier in the place of Toile's."""
    own = modifier.find(ob)
    index = ob.modifiers.find(own.name) if own else len(ob.modifiers)
    made = ob.modifiers.get("Toile Export") or ob.modifiers.new("Toile Export", 'MESH_CACHE')
    made.cache_format = kind
    made.filepath = paths.relative(path)
    info, _ = playback.store.info(paths.of(ob))
    made.frame_start = info["first_frame"]
    made.play_mode, made.time_mode, made.interpolation = 'SCENE', 'FRAME', 'LINEAR'
    made.forward_axis, made.up_axis, made.deform_mode = 'POS_Y', 'POS_Z', 'OVERWRITE'
    from . import compat
    if ob.modifiers.find(made.name) != index:
        compat.move_modifier(ob, made.name, index)
    ob.toile.play = False
    if own:
        modifier.show(own, False)


def register():
    bpy.utils.register_class(TOILE_OT_export)


def unregister():
    bpy.utils.unregister_class(TOILE_OT_export)
