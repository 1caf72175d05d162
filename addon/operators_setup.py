"""Operators that make garments and colliders, and pin vertices."""
import bpy
from bpy.props import EnumProperty, StringProperty

from . import modifier, playback, properties

SOLID = {'MESH', 'CURVE', 'SURFACE', 'META', 'FONT'}


class TOILE_OT_add(bpy.types.Operator):
    """Make the active object a garment or a collider"""
    bl_idname = "toile.add"
    bl_label = "Add Toile"
    bl_options = {'REGISTER', 'UNDO'}

    role: EnumProperty(name="Role", items=[('GARMENT', "Garment", "Cloth that is simulated"),
                                           ('COLLIDER', "Collider", "What cloth collides with")])
    fabric: StringProperty(name="Fabric", description="Name of a fabric; empty: cotton")
    pin_group: StringProperty(name="Pin Group", description="Vertex group that is held")

    @classmethod
    def poll(cls, context):
        ob = context.object
        return ob is not None and ob.type in SOLID and ob.library is None

    def execute(self, context):
        ob = context.object
        if self.role == 'GARMENT' and ob.type != 'MESH':
            self.report({'ERROR'}, f"\"{ob.name}\" is not a mesh. Convert it: Object > Convert > Mesh")
            return {'CANCELLED'}
        ob.toile.role = self.role
        if self.role == 'GARMENT':
            names = [f["name"] for f in properties.FABRICS]
            if self.fabric and self.fabric not in names:
                self.report({'ERROR'}, f"there is no fabric \"{self.fabric}\"; there is: {', '.join(names)}")
                return {'CANCELLED'}
            if self.fabric:
                ob.toile.garment.fabric = self.fabric
            if self.pin_group:
                ob.toile.garment.pin_group = self.pin_group
            modifier.ensure(ob)
        return {'FINISHED'}


class TOILE_OT_remove(bpy.types.Operator):
    """Take the active object out of the simulation. Caches on disk stay"""
    bl_idname = "toile.remove"
    bl_label = "Remove Toile"
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def poll(cls, context):
        return context.object is not None and context.object.toile.role != 'NONE' and context.object.mode != 'EDIT'

    def execute(self, context):
        ob = context.object
        if ob.toile.role == 'GARMENT':
            modifier.remove(ob)
            ob.toile.cache_path = ob.toile.cache_garment = ""
        ob.toile.role = 'NONE'
        playback.errors.pop(playback.key_of(ob), None)
        return {'FINISHED'}


class TOILE_OT_pin(bpy.types.Operator):
    """Hold the selected vertices (edit mode) or those along one side of the garment"""
    bl_idname = "toile.pin"
    bl_label = "Pin"
    bl_options = {'REGISTER', 'UNDO'}

    side: EnumProperty(name="Side", default='SELECTED', items=[
        ('SELECTED', "Selected", "The vertices that are selected in edit mode"),
        ('X_MIN', "-X", ""), ('X_MAX', "+X", ""), ('Y_MIN', "-Y", ""), ('Y_MAX', "+Y", ""), ('Z_MIN', "-Z", ""),
        ('Z_MAX', "+Z", "")])
    group: StringProperty(name="Group", default="Pin", description="Vertex group that they are put into")

    @classmethod
    def poll(cls, context):
        return context.object is not None and context.object.toile.role == 'GARMENT'

    def execute(self, context):
        ob = context.object
        editing = ob.mode == 'EDIT'
        if editing:
            bpy.ops.object.mode_set(mode='OBJECT')
        vertices = ob.data.vertices
        if self.side == 'SELECTED':
            chosen = [v.index for v in vertices if v.select]
        else:
            axis, high = 'XYZ'.index(self.side[0]), self.side.endswith("MAX")
            places = [v.co[axis] for v in vertices]
            end, size = (max(places) if high else min(places)), max(places) - min(places)
            chosen = [v.index for v in vertices if abs(v.co[axis] - end) <= 1e-4 * size]
        group = ob.vertex_groups.get(self.group) or ob.vertex_groups.new(name=self.group)
        group.remove(range(len(vertices)))
        if chosen:
            group.add(chosen, 1.0, 'REPLACE')
        ob.toile.garment.pin_group = group.name
        if editing:
            bpy.ops.object.mode_set(mode='EDIT')
        if not chosen:
            self.report({'WARNING'}, "no vertex is selected, so nothing is pinned")
        return {'FINISHED'}


class TOILE_OT_select_problem(bpy.types.Operator):
    """Select the vertices that the last error is about"""
    bl_idname = "toile.select_problem"
    bl_label = "Select Vertices"
    bl_options = {'REGISTER', 'UNDO'}

    def execute(self, context):
        from . import jobs
        bake = jobs.of(context.scene)
        ob = context.scene.objects.get(bake.object) if bake and bake.object else None
        if ob is None or ob.type != 'MESH':
            self.report({'ERROR'}, "the last bake has no error that names an object of this scene")
            return {'CANCELLED'}
        if context.object and context.object.mode != 'OBJECT':
            bpy.ops.object.mode_set(mode='OBJECT')
        for other in context.selected_objects:
            other.select_set(False)
        ob.select_set(True)
        context.view_layer.objects.active = ob
        wanted = set(bake.vertices)
        for collection in (ob.data.polygons, ob.data.edges):
            collection.foreach_set("select", [False] * len(collection))
        ob.data.vertices.foreach_set("select", [i in wanted for i in range(len(ob.data.vertices))])
        context.tool_settings.mesh_select_mode = (True, False, False)
        bpy.ops.object.mode_set(mode='EDIT')
        return {'FINISHED'}


CLASSES = (TOILE_OT_add, TOILE_OT_remove, TOILE_OT_pin, TOILE_OT_select_problem)


def register():
    for cls in CLASSES:
        bpy.utils.register_class(cls)


def unregister():
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
