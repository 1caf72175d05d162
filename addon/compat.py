"""What differs between Blender 3.4 and 5.x. Nothing else asks for versions."""
import bpy

VERSION = bpy.app.version
UNIFORM_COLOR = 'UNIFORM_COLOR' if VERSION >= (4, 0, 0) else '3D_UNIFORM_COLOR'


def path_options():
    """For StringProperty that may hold a // path: 4.5 and later want to be told, earlier ones refuse the word."""
    return {'options': {'PATH_SUPPORTS_BLEND_RELATIVE'}} if VERSION >= (4, 5, 0) else {}


def get_positions(mesh, out):
    """Vertex positions into a float32 array of (vertices x 3)."""
    attribute = mesh.attributes.get("position")
    if attribute is not None:
        attribute.data.foreach_get("vector", out.ravel())
    else:
        mesh.vertices.foreach_get("co", out.ravel())


def set_positions(mesh, values):
    attribute = mesh.attributes.get("position")
    if attribute is not None:
        attribute.data.foreach_set("vector", values.ravel())
    else:
        mesh.vertices.foreach_set("co", values.ravel())
    mesh.update()


def progress(layout, factor, text):
    if hasattr(layout, "progress"):
        layout.progress(factor=factor, text=text)
    else:
        layout.label(text=text, icon='TIME')


def user_folder():
    """A folder of the add-on that may be written and that stays."""
    if hasattr(bpy.utils, "extension_path_user") and __package__.startswith("bl_ext."):
        return bpy.utils.extension_path_user(__package__, create=True)
    return bpy.utils.user_resource('DATAFILES', path="toile", create=True)


def add_geometry_sockets(tree):
    """Geometry in, geometry out."""
    if hasattr(tree, "interface"):
        tree.interface.new_socket("Geometry", in_out='INPUT', socket_type='NodeSocketGeometry')
        tree.interface.new_socket("Geometry", in_out='OUTPUT', socket_type='NodeSocketGeometry')
    else:
        tree.inputs.new('NodeSocketGeometry', "Geometry")
        tree.outputs.new('NodeSocketGeometry', "Geometry")
    if hasattr(tree, "is_modifier"):
        tree.is_modifier = True


def move_modifier(ob, name, index):
    if hasattr(ob.modifiers, "move"):
        ob.modifiers.move(ob.modifiers.find(name), index)
    else:
        with bpy.context.temp_override(object=ob, active_object=ob):
            bpy.ops.object.modifier_move_to_index(modifier=name, index=index)


def set_active_color(mesh, attribute):
    mesh.color_attributes.active_color = attribute


def animated(ob):
    """Paths of an object's properties that have keys."""
    action = ob.animation_data.action if ob.animation_data else None
    if action is None:
        return set()
    if hasattr(action, "fcurves"):
        curves = action.fcurves
    else:                       # Blender 5: in layers
        curves = [c for layer in action.layers for strip in layer.strips for bag in strip.channelbags for c in bag.fcurves]
    return {c.data_path for c in curves}


def uv_layer(mesh, name):
    """Corner (u, v) of a UV map, or of the active one; None if there is none."""
    import numpy
    layer = mesh.uv_layers.get(name) if name else mesh.uv_layers.active
    if layer is None:
        return None
    out = numpy.empty(2 * len(mesh.loops), numpy.float32)
    if hasattr(layer, "uv"):
        layer.uv.foreach_get("vector", out)
    else:
        layer.data.foreach_get("uv", out)
    return out.reshape(-1, 2)
