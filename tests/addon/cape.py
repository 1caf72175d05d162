# From a factory-new Blender to a rendered cape on an animated armature: blender -b --python cape.py -- ADDON.zip OUT.png
import bpy, sys
bpy.ops.preferences.addon_install(filepath=sys.argv[-2])
bpy.ops.preferences.addon_enable(module="toile")
bpy.ops.object.delete()                                                    # the cube
bpy.ops.mesh.primitive_uv_sphere_add(radius=0.6, location=(0, 0, 0.2))     # the body
bpy.ops.toile.add(role='COLLIDER')
bpy.ops.mesh.primitive_grid_add(x_subdivisions=40, y_subdivisions=40, location=(0, -0.65, 0), rotation=(1.57, 0, 0))
bpy.ops.toile.add(role='GARMENT', fabric="cotton")                         # the cape
bpy.ops.toile.pin(side='Y_MAX')
bpy.ops.object.armature_add(radius=1.6)
bpy.ops.object.select_by_type(type='MESH', extend=True)
bpy.ops.object.parent_set(type='ARMATURE_AUTO')
for frame, bpy.context.object.pose.bones[0].location.z in ((1, 1), (24, -0.5)):
    bpy.context.object.pose.bones[0].keyframe_insert("location", frame=frame)
bpy.context.scene.frame_end = 24
bpy.ops.toile.bake()
bpy.context.scene.frame_set(20)
bpy.context.scene.render.engine, bpy.context.scene.render.filepath = 'BLENDER_WORKBENCH', sys.argv[-1]
bpy.ops.render.render(write_still=True)
