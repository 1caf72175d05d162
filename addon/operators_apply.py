"""What is shown becomes part of the mesh: as the start of the next bake, as its shape, or as a shape key."""
import bpy
import numpy
from bpy.props import EnumProperty

from . import bridge, compat, modifier, playback


class TOILE_OT_apply(bpy.types.Operator):
    """Apply the drape of the current frame to the active garment"""
    bl_idname = "toile.apply"
    bl_label = "Apply Drape"
    bl_options = {'REGISTER', 'UNDO'}

    target: EnumProperty(name="As", default='START', items=[
        ('START', "Start Shape", "The next bake begins here; the cut of the cloth stays as it was"),
        ('MESH', "Mesh", "The mesh takes this shape, which is then both cut and start"),
        ('SHAPE_KEY', "Shape Key", "A shape key takes this shape"),
        ('CLEAR', "Clear Start", "Forget the start shape: the next bake begins from the mesh")])

    @classmethod
    def poll(cls, context):
        ob = context.object
        return ob is not None and ob.toile.role == 'GARMENT' and ob.mode == 'OBJECT' and ob.library is None

    def execute(self, context):
        ob = context.object
        mesh = ob.data
        if self.target == 'CLEAR':
            ob.toile.use_start = False
            if mesh.attributes.get(modifier.START) is not None:
                mesh.attributes.remove(mesh.attributes[modifier.START])
            return {'FINISHED'}
        try:
            playback.show(context.scene, ob, ob.matrix_world)
        except bridge.Error as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        points = numpy.empty((len(mesh.vertices), 3), numpy.float32)
        mesh.attributes[modifier.POSITION].data.foreach_get("vector", points.ravel())
        if self.target == 'START':
            modifier.attribute(mesh, modifier.START).data.foreach_set("vector", points.ravel())
            ob.toile.use_start = True
        elif self.target == 'MESH':
            if mesh.shape_keys:
                self.report({'ERROR'}, f"\"{ob.name}\" has shape keys; apply the drape as a shape key instead")
                return {'CANCELLED'}
            compat.set_positions(mesh, points)
            ob.toile.play = False
        else:
            if mesh.shape_keys is None:
                ob.shape_key_add(name="Basis", from_mix=False)
            key = ob.shape_key_add(name=f"Drape {context.scene.frame_current}", from_mix=False)
            key.data.foreach_set("co", points.ravel())
        return {'FINISHED'}


def register():
    bpy.utils.register_class(TOILE_OT_apply)


def unregister():
    bpy.utils.unregister_class(TOILE_OT_apply)
