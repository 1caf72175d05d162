"""What shapes a garment beyond its cut, and what it does not touch: elastic bands, pressure, contact left out."""
import bpy
import numpy
from bpy.props import StringProperty

from . import bridge, mesh_read
from .properties import clean


def chosen(ob, name):
    """Vertices of a group with a weight above one half, rising; raises if there are none."""
    found = numpy.nonzero(mesh_read.weights(ob, name) > 0.5)[0]
    if len(found) == 0:
        raise bridge.Invalid("INVALID", f"\"{ob.name}\": no vertex of the group \"{name}\" has a weight above one half. "
                                        "Give it some, or clear the field")
    return found


def elastic(ob):
    """Bands as the scene takes them: along every edge of the mesh that has both ends in the band's group."""
    made, mesh = [], ob.data
    ends = numpy.empty(2 * len(mesh.edges), numpy.int32)
    mesh.edges.foreach_get("vertices", ends)
    ends = ends.reshape(-1, 2)
    loose = numpy.empty(len(mesh.edges), bool)
    mesh.edges.foreach_get("is_loose", loose)
    for band in ob.toile.garment.bands:
        if not band.group:
            raise bridge.Invalid("INVALID", f"\"{ob.name}\" has an elastic band without a vertex group. Choose the vertices "
                                            "that it runs along, or remove the band")
        inside = numpy.zeros(len(mesh.vertices), bool)
        inside[chosen(ob, band.group)] = True
        edges = ends[inside[ends].all(axis=1) & ~loose]
        if len(edges) == 0:
            raise bridge.Invalid("INVALID", f"\"{ob.name}\": no edge has both ends in the group \"{band.group}\", so no "
                                            "elastic can run along it. Add the vertices between them")
        made.append({"edges": edges.tolist(), "stiffness": clean(band.stiffness), "scale": clean(band.scale)})
    return made


def pressure(values, first):
    """Of one value for each frame: nothing, a value, or keys."""
    values = [clean(v) for v in values]
    if not any(values):
        return []
    if len(set(values)) == 1:
        return [{"value": values[0]}]
    return [{"keys": [{"frame": first + i, "value": v} for i, v in enumerate(values)]}]


def no_contact(garments, names, collider_names):
    """Parts of garments that touch nothing, and pairs that go through each other."""
    made = []
    for ob in garments:
        garment, name = ob.toile.garment, names[ob.name_full]
        if garment.contact_group:
            made.append({"garment": name, "select": {"vertices": chosen(ob, garment.contact_group).tolist()},
                         "with": garment.contact_with.lower()})
        for other in garment.ignore.all_objects if garment.ignore else ():
            found = names.get(other.name_full) or collider_names.get(other.name_full)
            if found and other != ob and [found, name] not in made:
                made.append([name, found])
    return made


# ---- interface ----

class TOILE_UL_bands(bpy.types.UIList):
    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index):
        layout.label(text=item.group or "no vertices yet", icon='GROUP_VERTEX', translate=not item.group)


def draw(layout, context):
    garment = context.object.toile.garment
    layout.label(text="Elastic Bands")
    row = layout.row()
    row.template_list("TOILE_UL_bands", "", garment, "bands", garment, "active_band", rows=2)
    column = row.column(align=True)
    column.operator("toile.band_add", icon='ADD', text="")
    column.operator("toile.band_remove", icon='REMOVE', text="")
    layout.use_property_split = True
    if garment.active_band < len(garment.bands):
        band, column = garment.bands[garment.active_band], layout.column()
        column.use_property_decorate = False
        column.prop_search(band, "group", context.object, "vertex_groups")
        column.prop(band, "stiffness")
        column.prop(band, "scale")
    layout.separator()
    layout.prop(garment, "pressure")


def draw_contact(layout, context):
    ob = context.object
    garment = ob.toile.garment
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.prop(garment, "layer")
    layout.prop(garment, "ignore")
    layout.prop_search(garment, "contact_group", ob, "vertex_groups")
    sub = layout.row()
    sub.active = bool(garment.contact_group)
    sub.prop(garment, "contact_with")


class Bands:
    bl_options = {'REGISTER', 'UNDO'}

    @classmethod
    def poll(cls, context):
        return context.object is not None and context.object.toile.role == 'GARMENT'


class TOILE_OT_band_add(Bands, bpy.types.Operator):
    """Sew elastic along the edges of a vertex group: waistbands, cuffs, gathers"""
    bl_idname = "toile.band_add"
    bl_label = "Add Elastic Band"

    group: StringProperty(name="Group", description="Vertices that it runs along; in edit mode: empty takes those selected")

    def execute(self, context):
        ob = context.object
        garment, name = ob.toile.garment, self.group
        if not name and ob.mode == 'EDIT':
            bpy.ops.object.mode_set(mode='OBJECT')
            picked = [v.index for v in ob.data.vertices if v.select]
            if picked:
                group = ob.vertex_groups.new(name="Elastic")
                group.add(picked, 1.0, 'REPLACE')
                name = group.name
            bpy.ops.object.mode_set(mode='EDIT')
        garment.bands.add().group = name
        garment.active_band = len(garment.bands) - 1
        return {'FINISHED'}


class TOILE_OT_band_remove(Bands, bpy.types.Operator):
    """Take the chosen elastic band off. Its vertex group stays"""
    bl_idname = "toile.band_remove"
    bl_label = "Remove Elastic Band"

    def execute(self, context):
        garment = context.object.toile.garment
        if not garment.bands:
            self.report({'ERROR'}, f"\"{context.object.name}\" has no elastic band")
            return {'CANCELLED'}
        garment.bands.remove(min(garment.active_band, len(garment.bands) - 1))
        garment.active_band = max(0, min(garment.active_band, len(garment.bands) - 1))
        from . import outdated
        outdated.check_soon()
        return {'FINISHED'}


CLASSES = (TOILE_UL_bands, TOILE_OT_band_add, TOILE_OT_band_remove)


def register():
    for cls in CLASSES:
        bpy.utils.register_class(cls)


def unregister():
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
