"""The modifier that shows cached positions: geometry nodes which put every vertex where the attribute says.

The mesh itself is never changed. So its modelled shape stays the rest shape, undo and editing stay safe, the last frame
shown is saved with the file, and modifiers find their place: what moves pins above (armature, shape keys), what refines
below (subdivision, thickness)."""
import bpy

from . import compat

NAME = "Toile"
TREE = ".Toile Playback"
POSITION = "toile_position"     # point attribute, float vector, object space
START = "toile_start"           # where an applied drape begins, the same
VELOCITY = "velocity"           # what Cycles takes for motion blur, per second
STRETCH = "toile_stretch"       # colour, for the overlay

# Modifiers that only move vertices; Toile comes after them and before all others.
DEFORMING = {'ARMATURE', 'CAST', 'CURVE', 'DISPLACE', 'HOOK', 'LAPLACIANDEFORM', 'LATTICE', 'MESH_DEFORM', 'SHRINKWRAP',
             'SIMPLE_DEFORM', 'SMOOTH', 'CORRECTIVE_SMOOTH', 'LAPLACIANSMOOTH', 'SURFACE_DEFORM', 'WARP', 'WAVE',
             'VERTEX_WEIGHT_EDIT', 'VERTEX_WEIGHT_MIX', 'VERTEX_WEIGHT_PROXIMITY', 'MESH_CACHE', 'MESH_SEQUENCE_CACHE'}
# Those that carry a garment along with a body: below Toile they would carry the baked cloth a second time.
CARRYING = {'ARMATURE', 'HOOK', 'LATTICE', 'MESH_DEFORM', 'SURFACE_DEFORM'}


def _tree():
    tree = bpy.data.node_groups.get((TREE, None)) if hasattr(bpy.data.node_groups, "get") else None
    tree = tree or next((t for t in bpy.data.node_groups if t.name == TREE and t.library is None), None)
    if tree is not None:
        return tree
    tree = bpy.data.node_groups.new(TREE, 'GeometryNodeTree')
    compat.add_geometry_sockets(tree)
    start, end = tree.nodes.new('NodeGroupInput'), tree.nodes.new('NodeGroupOutput')
    named, place = tree.nodes.new('GeometryNodeInputNamedAttribute'), tree.nodes.new('GeometryNodeSetPosition')
    named.data_type = 'FLOAT_VECTOR'
    named.inputs["Name"].default_value = POSITION
    start.location, named.location, place.location, end.location = (-400, 0), (-400, -150), (-150, 0), (100, 0)
    value = next(s for s in named.outputs if s.enabled and s.type == 'VECTOR')
    tree.links.new(start.outputs[0], place.inputs["Geometry"])
    tree.links.new(value, place.inputs["Position"])
    tree.links.new(place.outputs["Geometry"], end.inputs[0])
    return tree


def _weighs(modifier, group):
    """Whether it changes the weights of a vertex group."""
    return bool(group) and modifier.type.startswith('VERTEX_WEIGHT_') and group in (
        getattr(modifier, "vertex_group", ""), getattr(modifier, "vertex_group_a", ""))


def changes_weights(ob, group):
    """Whether a modifier above Toile changes the weights of a vertex group."""
    for modifier in ob.modifiers:
        if modifier == find(ob):
            break
        if _weighs(modifier, group):
            return True
    return False


def find(ob):
    for modifier in ob.modifiers:
        if modifier.type == 'NODES' and modifier.node_group and modifier.node_group.name.startswith(TREE):
            return modifier
    return None


def ensure(ob):
    """The object's modifier, made and put in its place if there is none. None for objects that cannot have one."""
    found = find(ob)
    if found or ob.library or ob.type != 'MESH':
        return found
    made = ob.modifiers.new(NAME, 'NODES')
    if made is None:
        return None
    own = made.node_group      # some versions make one for every new modifier
    made.node_group = _tree()
    if own is not None and own != made.node_group and own.users == 0:
        bpy.data.node_groups.remove(own)
    show(made, False)
    index = max((i + 1 for i, modifier in enumerate(ob.modifiers) if modifier.type in DEFORMING), default=0)
    if ob.modifiers.find(made.name) != index:
        compat.move_modifier(ob, made.name, index)
    return find(ob)


def put_below(ob):
    """Moves Toile's modifier below those that carry the garment, or change the weights of its pins: new ones come at the
    end."""
    found = find(ob)
    if found is None or ob.library is not None:
        return
    group = ob.toile.garment.pin_group
    last = max((i for i, modifier in enumerate(ob.modifiers) if modifier.type in CARRYING or _weighs(modifier, group)),
               default=-1)
    if last > ob.modifiers.find(found.name):
        compat.move_modifier(ob, found.name, last)


def remove(ob):
    found = find(ob)
    if found:
        ob.modifiers.remove(found)
    for name in (POSITION, START, VELOCITY, STRETCH):
        attribute = ob.data.attributes.get(name) if ob.type == 'MESH' else None
        if attribute is not None and ob.library is None:
            ob.data.attributes.remove(attribute)


def show(modifier, on):
    """Only what changes is touched: each change evaluates the object again."""
    if modifier.show_viewport != on:
        modifier.show_viewport = on
    if modifier.show_render != on:
        modifier.show_render = on


def attribute(mesh, name, kind='FLOAT_VECTOR'):
    """The point attribute of that name, made if it is missing or of another kind."""
    found = mesh.attributes.get(name)
    if found is not None and (found.domain != 'POINT' or found.data_type != kind):
        mesh.attributes.remove(found)
        found = None
    return found if found is not None else mesh.attributes.new(name, kind, 'POINT')
