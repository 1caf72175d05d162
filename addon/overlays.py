"""Overlays: stretch as a colour attribute of the mesh; contacts, seams and the warp drawn over the viewport."""
import bpy
import numpy

from . import bridge, capture, compat, mesh_read, modifier, playback, sewing

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
    """Those of world points (metres) that touch a collider: nearer than all thicknesses (half the cloth's) and a little."""
    from mathutils.bvhtree import BVHTree
    depsgraph, scale, found = bpy.context.evaluated_depsgraph_get(), scene.unit_settings.scale_length, []
    cloth = 0.5 * mesh_read.fabric(ob.toile.garment)["thickness"] / scale
    for collider in capture.objects(scene, 'COLLIDER'):
        tree = BVHTree.FromObject(collider, depsgraph) if collider.type == 'MESH' else None
        if tree is None:
            continue
        matrix = collider.evaluated_get(depsgraph).matrix_world
        inverse, size = matrix.inverted_safe(), matrix.median_scale
        reach = 1.1 * (scene.toile.contact_thickness + collider.toile.collider.thickness + cloth)
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


# ---- seams and warp ----

WARP_MOST = 2000            # marks in a garment


def garment_points(ob):
    """Where its vertices are shown, object space."""
    mesh = ob.data
    points = numpy.empty((len(mesh.vertices), 3), numpy.float32)
    found = mesh.attributes.get(modifier.POSITION)
    if found is not None and ob.toile.play and len(found.data) == len(points):
        found.data.foreach_get("vector", points.ravel())
    else:
        compat.get_positions(mesh, points)
    return points


def _to_world(ob, points):
    m = numpy.array(ob.matrix_world)
    return (points @ m[:3, :3].T + m[:3, 3]).astype(numpy.float32)


def seam_lines(ob):
    """Ends of sewing edges and of marked seams in the world, (2 n x 3)."""
    edges = numpy.concatenate((sewing.loose_edges(ob.data), sewing.seam_edges(ob)))
    return _to_world(ob, garment_points(ob))[edges.ravel()]


def warp_lines(ob):
    """A short line along the warp in the middle of faces, (2 n x 3)."""
    mesh, points = ob.data, _to_world(ob, garment_points(ob)).astype(numpy.float64)
    if len(mesh.polygons) == 0:
        return numpy.empty((0, 3), numpy.float32)
    faces = mesh_read.read_faces(mesh, points)
    warp, _ = mesh_read.grain(faces, points, compat.uv_layer(mesh, ob.toile.garment.uv_map))
    corner = points[faces.vertices]
    middle = numpy.add.reduceat(corner, faces.begin) / faces.sizes[:, None]
    size = numpy.linalg.norm(corner[faces.begin + 1] - corner[faces.begin], axis=1, keepdims=True)
    step = max(1, len(middle) // WARP_MOST)
    middle, reach = middle[::step], 0.35 * (warp * size)[::step]
    return numpy.stack((middle - reach, middle + reach), axis=1).reshape(-1, 3).astype(numpy.float32)


def _draw_lines(scene):
    import gpu
    from gpu_extras.batch import batch_for_shader
    shader = gpu.shader.from_builtin(compat.UNIFORM_COLOR)
    gpu.state.blend_set('ALPHA')
    for wanted, lines, colour in ((scene.toile.show_seams, seam_lines, (0.1, 0.9, 0.4, 0.9)),
                                  (scene.toile.show_warp, warp_lines, (1.0, 0.85, 0.1, 0.8))):
        for ob in capture.objects(scene, 'GARMENT') if wanted else ():
            found = lines(ob) if ob.visible_get() and ob.mode == 'OBJECT' else ()
            if len(found):
                shader.bind()
                shader.uniform_float("color", colour)
                batch_for_shader(shader, 'LINES', {"pos": found.tolist()}).draw(shader)
    gpu.state.blend_set('NONE')


def _draw():
    scene = bpy.context.scene
    if scene.toile.show_seams or scene.toile.show_warp:
        _draw_lines(scene)
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
