"""Panels: the same body under Properties > Physics and in the sidebar's Toile tab. What a setting is called, and its range,
comes from the tables; here is only which ones come first."""
import textwrap

import bpy

from . import (compat, farm, jobs, modifier, native, operators_bake, paths, playback, properties, sewing, shaping,
               statistics, versions)

# Settings that most artists touch; all others are folded away by their groups.
BASIC = ("time_step", "contact_thickness", "wind_velocity")
BASIC_FABRIC = ("density", "stretch_warp", "stretch_weft", "bend_warp", "bend_weft")


def message(layout, text, icon='ERROR'):
    region, scale = bpy.context.region, bpy.context.preferences.system.ui_scale
    width = max(18, int(((region.width if region else 320) - 70 * scale) / (7.2 * scale)))
    column = layout.column(align=True)
    column.scale_y = 0.8
    for i, line in enumerate(textwrap.wrap(text, width)):
        column.label(text=line, icon=icon if i == 0 else 'BLANK1', translate=False)


def garment_of(context):
    ob = context.object
    return ob if ob is not None and ob.toile.role == 'GARMENT' else None


# ---- bodies ----

def draw_bake(layout, context):
    scene = context.scene
    problem = native.problem()
    if problem:
        box = layout.box()
        box.alert = True
        message(box, problem)
        return
    bake = jobs.of(scene)
    capture = operators_bake.state["capture"]
    column = layout.column()
    if capture is not None:
        compat.progress(column, capture.done / capture.total, f"Capturing {capture.done} of {capture.total}")
    elif bake is not None and bake.state == 'running':
        done, rest = bake.parts()
        compat.progress(column, bake.done_frames / max(1, bake.frames), done)
        if rest:
            column.label(text=rest, icon='BLANK1', translate=False)
        column.operator("toile.cancel", icon='CANCEL')
    else:
        row = column.row(align=True)
        row.scale_y = 1.3
        row.operator_context = 'INVOKE_DEFAULT'
        row.operator("toile.bake", icon='PHYSICS')
        row.operator("toile.farm", text="", icon='NETWORK_DRIVE')
        version = versions.active(scene)
        if bake is not None and bake.state in ('stopped', 'failed') and bake.done_frames:
            row.operator("toile.resume", icon='PLAY')
        if version is not None and version.outdated:
            message(column, "This bake is from other settings. It still plays; bake again to bring it up to date", 'INFO')
    if bake is not None and bake.state in ('failed', 'stopped') and bake.message:
        box = column.box()
        box.alert = bake.state == 'failed'
        message(box, bake.message, 'ERROR' if bake.state == 'failed' else 'INFO')
        if bake.vertices and bake.object:
            box.operator("toile.select_problem", icon='RESTRICT_SELECT_OFF')
    elif operators_bake.state["error"]:
        box = column.box()
        box.alert = True
        message(box, operators_bake.state["error"])
    for warning in (bake.warnings[-2:] if bake is not None else ()):
        message(column, warning, 'INFO')
    ob = garment_of(context)
    if ob is not None and playback.key_of(ob) in playback.errors:
        box = column.box()
        box.alert = True
        message(box, playback.errors[playback.key_of(ob)])
    if not bpy.data.is_saved:
        message(column, "The file is not saved: this bake is temporary", 'INFO')


def draw_garment(layout, context):
    ob = garment_of(context)
    garment = ob.toile.garment
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.prop(garment, "fabric")
    layout.prop_search(garment, "pin_group", ob, "vertex_groups")
    sub = layout.row()
    sub.active = bool(garment.pin_group)
    sub.prop(garment, "pin_stiffness")
    sub = layout.row()
    sub.active = bool(garment.pin_group)
    sub.prop(garment, "pin_axes")
    sub = layout.row()
    sub.active = bool(garment.pin_group)
    sub.prop(garment, "pin_surface")
    row = layout.row(heading="Release")
    row.active = bool(garment.pin_group)
    row.prop(garment, "use_pin_end", text="")
    sub = row.row()
    sub.active = garment.use_pin_end
    sub.prop(garment, "pin_end", text="")


def draw_fabric(layout, context):
    garment = garment_of(context).toile.garment
    layout.use_property_split = True
    layout.use_property_decorate = False
    for basic in (True, False):
        column = layout.column(align=True)
        for row in properties.FABRIC:
            if (row["id"] in BASIC_FABRIC) == basic:
                column.prop(garment, row["id"])


def draw_shape(layout, context):
    ob = garment_of(context)
    garment = ob.toile.garment
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.prop(garment, "rest_shape")
    if garment.rest_shape == 'SHAPE_KEY' and ob.data.shape_keys:
        layout.prop_search(garment, "rest_key", ob.data.shape_keys, "key_blocks")
    layout.prop_search(garment, "uv_map", ob.data, "uv_layers")
    if garment.rest_shape == 'UV':
        layout.prop(garment, "uv_scale")
    layout.prop(garment, "keep_folds")
    if ob.data.attributes.get(modifier.START) is not None:
        layout.prop(ob.toile, "use_start")
    layout.operator_menu_enum("toile.apply", "target", icon='CHECKMARK')


def draw_sewing(layout, context):
    ob = garment_of(context)
    garment = ob.toile.garment
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.prop(garment, "panel_source")
    layout.prop(garment, "use_sewing")
    column = layout.column()
    column.active = garment.use_sewing
    column.prop(garment, "sew_strength")
    column.prop(garment, "sew_fold")
    for use, names in (("use_sew_frames", ("sew_start", "sew_end")), ("use_sew_release", ("sew_release",))):
        column.prop(garment, use)
        sub = column.column(align=True)
        sub.active = getattr(garment, use)
        for name in names:
            sub.prop(garment, name)
        if use == "use_sew_frames" and sewing.are_in_turns(ob.data):
            sub.prop(garment, "use_sew_turns")


def draw_maps(layout, context):
    ob = garment_of(context)
    garment = ob.toile.garment
    layout.use_property_split = True
    layout.use_property_decorate = False
    for name, *_ in properties.MAPS:
        column = layout.column(align=True)
        column.prop_search(garment, f"map_{name}_group", ob, "vertex_groups")
        sub = column.column()
        sub.active = bool(getattr(garment, f"map_{name}_group"))
        sub.prop(garment, f"map_{name}", text="at Weight 1")


def draw_collider(layout, context):
    collider = context.object.toile.collider
    layout.use_property_split = True
    layout.use_property_decorate = False
    for name in ("thickness", "friction", "friction_kinetic", "side"):
        layout.prop(collider, name)


def draw_settings(layout, context):
    scene = context.scene.toile
    layout.use_property_split = True
    layout.use_property_decorate = False
    column = layout.column(heading="Frames")
    column.prop(scene, "use_scene_range")
    if not scene.use_scene_range:
        sub = column.column(align=True)
        sub.prop(scene, "frame_start")
        sub.prop(scene, "frame_end")
    column.prop(scene, "use_scene_gravity")
    for row in properties.SETTINGS:
        if row["id"] in BASIC:
            layout.prop(scene, row["id"])


def draw_advanced(layout, context):
    scene = context.scene.toile
    layout.use_property_split = True
    layout.use_property_decorate = False
    group = None
    for row in properties.SETTINGS:
        if row["id"] in BASIC:
            continue
        if row["group"] != group:
            group = row["group"]
            layout.label(text=group.capitalize())
            column = layout.column()
        sub = column.column()
        sub.active = row["id"] != "gravity" or not scene.use_scene_gravity
        sub.prop(scene, row["id"])


def draw_cache(layout, context):
    scene = context.scene
    row = layout.row()
    row.template_list("TOILE_UL_versions", "", scene.toile, "versions", scene.toile, "active_version", rows=2)
    column = row.column(align=True)
    column.operator("toile.version_add", icon='ADD', text="")
    column.operator("toile.version_remove", icon='REMOVE', text="")
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.prop(scene.toile, "directory")
    ob = garment_of(context)
    if ob is not None:
        layout.prop(ob.toile, "play")
    row = layout.row(align=True)
    row.operator_context = 'INVOKE_DEFAULT'
    row.operator("toile.load", icon='FILE_FOLDER')
    row.operator("toile.free", icon='TRASH')
    row = layout.row(align=True)
    row.operator_context = 'INVOKE_DEFAULT'
    row.operator("toile.write_job", icon='FILE_TICK')
    row.operator("toile.export", icon='EXPORT')


def draw_overlays(layout, context):
    scene = context.scene.toile
    row = layout.row(align=True)
    row.operator("toile.show_stretch", icon='COLOR', depress=scene.show_stretch)
    row.prop(scene, "show_contacts", toggle=True, icon='SNAP_FACE')
    row = layout.row(align=True)
    row.prop(scene, "show_seams", toggle=True, icon='MOD_LINEART')
    row.prop(scene, "show_warp", toggle=True, icon='ORIENTATION_NORMAL')
    sub = layout.row()
    sub.active = scene.show_stretch
    sub.prop(scene, "stretch_range")


class TOILE_UL_versions(bpy.types.UIList):
    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index=0, flt_flag=0):
        cache = paths.of_version(item) if item.path else ""
        bake = jobs.running.get(cache)
        shown = 'TIME' if bake else 'ERROR' if item.outdated else 'CHECKMARK' if item.inputs else 'DOT'
        row = layout.row()
        row.prop(item, "name", text="", emboss=False, icon=shown)
        if item.outdated:
            row.label(text="outdated")


# ---- Properties > Physics ----

class Physics:
    bl_space_type = 'PROPERTIES'
    bl_region_type = 'WINDOW'
    bl_context = "physics"


class Garment:
    @classmethod
    def poll(cls, context):
        return garment_of(context) is not None


class TOILE_PT_garment(Physics, Garment, bpy.types.Panel):
    bl_label = "Toile Garment"

    def draw_header_preset(self, context):
        bpy.types.TOILE_PT_fabric_presets.draw_panel_header(self.layout)

    def draw(self, context):
        draw_garment(self.layout, context)
        draw_bake(self.layout, context)


class TOILE_PT_collider(Physics, bpy.types.Panel):
    bl_label = "Toile Collider"

    @classmethod
    def poll(cls, context):
        return context.object is not None and context.object.toile.role == 'COLLIDER'

    def draw(self, context):
        draw_collider(self.layout, context)


def sub_panel(name, label, body, parent, closed=True, preset=None, sidebar=False, poll_garment=True):
    """A panel made of a body. Panels of the sidebar are the same ones elsewhere."""
    def draw(self, context):
        body(self.layout, context)
    members = {"bl_label": label, "bl_parent_id": parent, "draw": draw,
               "bl_options": {'DEFAULT_CLOSED'} if closed else set()}
    if poll_garment:
        members["poll"] = classmethod(lambda cls, context: garment_of(context) is not None)
    if preset:
        members["draw_header_preset"] = lambda self, context: getattr(bpy.types, preset).draw_panel_header(self.layout)
    return type(name, (Sidebar if sidebar else Physics, bpy.types.Panel), members)


# ---- sidebar ----

class Sidebar:
    bl_space_type = 'VIEW_3D'
    bl_region_type = 'UI'
    bl_category = "Toile"


class TOILE_PT_sidebar(Sidebar, bpy.types.Panel):
    bl_label = "Toile"

    def draw(self, context):
        layout, ob = self.layout, context.object
        role = ob.toile.role if ob is not None else 'NONE'
        if role == 'NONE':
            column = layout.column(align=True)
            column.operator("toile.add", text="Toile Garment", icon='MOD_CLOTH').role = 'GARMENT'
            column.operator("toile.add", text="Toile Collider", icon='MOD_PHYSICS').role = 'COLLIDER'
        else:
            row = layout.row()
            row.label(text=f"{ob.name}: {role.capitalize()}", icon='MOD_CLOTH' if role == 'GARMENT' else 'MOD_PHYSICS',
                      translate=False)
            row.operator("toile.remove", text="", icon='X')
        if role == 'GARMENT':
            draw_garment(layout, context)
            layout.operator_menu_enum("toile.pin", "side", icon='PINNED')
        elif role == 'COLLIDER':
            draw_collider(layout, context)
        draw_bake(layout, context)


BODIES = (
    # name, label, body, closed, preset, needs a garment
    ("fabric", "Fabric", draw_fabric, True, None, True),
    ("shape", "Shape", draw_shape, True, None, True),
    ("sewing", "Sewing", draw_sewing, True, None, True),
    ("shaping", "Shaping", shaping.draw, True, None, True),
    ("maps", "Property Maps", draw_maps, True, None, True),
    ("contact", "Contact", shaping.draw_contact, True, None, True),
    ("settings", "Simulation", draw_settings, True, "TOILE_PT_settings_presets", False),
    ("cache", "Cache", draw_cache, True, None, False),
    ("farm", "Farm", farm.draw, True, None, False),
    ("overlays", "Overlays", draw_overlays, True, None, False),
    ("statistics", "Statistics", statistics.draw, True, None, True),
)


def _panels():
    made = [TOILE_UL_versions, TOILE_PT_garment, TOILE_PT_collider, TOILE_PT_sidebar]
    for place, parent, sidebar in (("garment", "TOILE_PT_garment", False), ("sidebar", "TOILE_PT_sidebar", True)):
        for name, label, body, closed, preset, needs in BODIES:
            made.append(sub_panel(f"TOILE_PT_{place}_{name}", label, body, parent, closed, preset, sidebar,
                                  needs or not sidebar))
        made.append(sub_panel(f"TOILE_PT_{place}_advanced", "Advanced", draw_advanced, f"TOILE_PT_{place}_settings", True,
                              None, sidebar, not sidebar))
    return made


CLASSES = []


def draw_physics_buttons(self, context):
    """The buttons beside Blender's own in the Physics tab."""
    ob = context.object
    if ob is None or ob.type not in {'MESH', 'CURVE', 'SURFACE', 'META', 'FONT'}:
        return
    layout = self.layout.column(align=True)
    for role, label, icon in (('GARMENT', "Toile Garment", 'MOD_CLOTH'), ('COLLIDER', "Toile Collider", 'MOD_PHYSICS')):
        if ob.toile.role == role:
            layout.operator("toile.remove", text=label, icon='X')
        elif not (role == 'GARMENT' and ob.type != 'MESH'):
            layout.operator("toile.add", text=label, icon=icon).role = role


def register():
    CLASSES[:] = _panels()
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    bpy.types.PHYSICS_PT_add.append(draw_physics_buttons)


def unregister():
    bpy.types.PHYSICS_PT_add.remove(draw_physics_buttons)
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
    CLASSES.clear()
