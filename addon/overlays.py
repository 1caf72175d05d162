"""Overlays: stretch as a colour attribute of the mesh, contacts as points drawn over the viewport."""
import bpy
import numpy

from . import bridge, capture, compat, modifier, playback

_handle = None
_points = {}                # scene name -> {object: contact points in the world, (n x 3)}


# ---- stretch ----

def colours(strain, most):
    """Blue slack, green at rest, red at `most` and above; RGBA."""
    t = numpy.clip(strain / most, -1, 1)
    out = numpy.ones((len(t), 4), numpy.float32)
    out[:, 0] = numpy.clip(t, 0, 1)
    out[:, 1] = 1 - numpy.abs(t)
    out[:, 2] = numpy.clip(-t, 0, 1)
    return out


def _show_stretch(scene, ob, points, path):
    found = ob.data.attributes.get(modifier.STRETCH)
    if not scene.toile.show_stretch:
        if found is not None:
            ob.data.attributes.remove(found)
        return
    strain = numpy.empty(len(points), numpy.float32)
    playback.store.strain(path, ob.toile.cache_garment, numpy.array(points), strain)
    attribute = modifier.attribute(ob.data, modifier.STRETCH, 'FLOAT_COLOR')
    attribute.data.foreach_set("color", colours(strain, scene.toile.stretch_range).ravel())
    if found is None:
        ob.data.color_attributes.active_color = ob.data.color_attributes[modifier.STRETCH]


# ---- contacts ----

def contacts(scene, ob, points):
    """Those of world points (metres) that touch a collider: nearer than both thicknesses and a little."""
    from mathutils.bvhtree import BVHTree
    depsgraph, scale, found = bpy.context.evaluated_depsgraph_get(), scene.unit_settings.scale_length, []
    for collider in capture.objects(scene, 'COLLIDER'):
        tree = BVHTree.FromObject(collider, depsgraph) if collider.type == 'MESH' else None
        if tree is None:
            continue
        matrix = collider.evaluated_get(depsgraph).matrix_world
        inverse, size = matrix.inverted_safe(), matrix.median_scale
        reach = 1.1 * (scene.toile.contact_thickness + collider.toile.collider.thickness)
        local = points.astype(numpy.float64) / scale @ numpy.array(inverse)[:3, :3].T + numpy.array(inverse)[:3, 3]
        for i, place in enumerate(local):
            if tree.find_nearest(place, reach / size)[0] is not None:
                found.append(points[i] / scale)
    return numpy.array(found, numpy.float32).reshape(-1, 3)


def _show_contacts(scene, ob, points):
    shown = _points.setdefault(scene.name, {})
    if scene.toile.show_contacts and not bpy.app.background:
        shown[ob.name] = contacts(scene, ob, points)
    else:
        shown.pop(ob.name, None)


def _draw():
    scene = bpy.context.scene
    if not scene.toile.show_contacts:
        return
    import gpu
    from gpu_extras.batch import batch_for_shader
    places = [p for p in _points.get(scene.name, {}).values() if len(p)]
    if not places:
        return
    shader = gpu.shader.from_builtin(compat.UNIFORM_COLOR)
    gpu.state.point_size_set(5)
    gpu.state.blend_set('ALPHA')
    shader.bind()
    shader.uniform_float("color", (1.0, 0.35, 0.05, 0.9))
    batch_for_shader(shader, 'POINTS', {"pos": numpy.concatenate(places).tolist()}).draw(shader)
    gpu.state.blend_set('NONE')
    gpu.state.point_size_set(1)


def _written(scene, ob, points, path):
    try:
        _show_stretch(scene, ob, points, path)
        _show_contacts(scene, ob, points)
    except bridge.Error as error:
        print(f"Toile: overlay of {ob.name}: {error}")


class TOILE_OT_show_stretch(bpy.types.Operator):
    """Colour the cloth by its stretch in the viewports of this window"""
    bl_idname = "toile.show_stretch"
    bl_label = "Show Stretch"
    bl_options = {'REGISTER', 'UNDO'}

    def execute(self, context):
        scene = context.scene
        scene.toile.show_stretch = not scene.toile.show_stretch
        for window in context.window_manager.windows:
            for area in window.screen.areas:
                if area.type == 'VIEW_3D':
                    area.spaces.active.shading.color_type = 'VERTEX' if scene.toile.show_stretch else 'MATERIAL'
        playback.show_soon()
        return {'FINISHED'}


def register():
    global _handle
    bpy.utils.register_class(TOILE_OT_show_stretch)
    playback.listen(_written)
    if not bpy.app.background:
        _handle = bpy.types.SpaceView3D.draw_handler_add(_draw, (), 'WINDOW', 'POST_VIEW')


def unregister():
    global _handle
    if _handle is not None:
        bpy.types.SpaceView3D.draw_handler_remove(_handle, 'WINDOW')
        _handle = None
    playback.unlisten(_written)
    _points.clear()
    bpy.utils.unregister_class(TOILE_OT_show_stretch)
