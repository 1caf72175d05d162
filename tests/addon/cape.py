# From a factory-new Blender to a rendered cape on an animated armature: blender -b --python cape.py -- ADDON.zip OUT.png
import bpy, sys
bpy.ops.preferences.addon_install(filepath=sys.argv[-2])
bpy.ops.preferences.addon_enable(module="toile")
bpy.ops.object.armature_add(radius=1.2)
rig = bpy.context.object
bpy.ops.mesh.primitive_cylinder_add(radius=0.35, depth=1.2, location=(0, 0, 0.6))
bpy.ops.toile.add(role='COLLIDER')
rig.select_set(True); bpy.context.view_layer.objects.active = rig
bpy.ops.object.parent_set(type='ARMATURE_AUTO')
rig.pose.bones[0].keyframe_insert("location", frame=1)
rig.pose.bones[0].location.x = 0.5
rig.pose.bones[0].keyframe_insert("location", frame=24)
bpy.ops.mesh.primitive_grid_add(x_subdivisions=40, y_subdivisions=40, size=1.8, location=(0, 0, 1.22))
bpy.ops.toile.add(role='GARMENT', fabric="silk")
bpy.context.scene.frame_end = 24
bpy.ops.toile.bake()
bpy.context.scene.frame_set(24)
bpy.context.scene.render.engine, bpy.context.scene.render.filepath = 'BLENDER_WORKBENCH', sys.argv[-1]
bpy.ops.render.render(write_still=True)
