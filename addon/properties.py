"""Properties: Object.toile and Scene.toile. Settings and fabric properties are made from the tables, one property a row."""
import math

import bpy
from bpy.props import (BoolProperty, CollectionProperty, EnumProperty, FloatProperty, FloatVectorProperty, IntProperty,
                       PointerProperty, StringProperty)

from . import compat, native

ROWS = {}               # (table, id) -> row of the table
SETTINGS, FABRIC = [], []
FABRICS = []            # named ones
_items = {}             # lists of enums, which Blender does not keep alive

MAPS = (                # vertex groups that change a fabric from place to place: id, label, what weight 1 does
    ("stretch", "Stretch", "Factor on stretch and shear stiffness where the weight is 1", 1.0, 0.0, 100.0),
    ("bend", "Bending", "Factor on bending stiffness where the weight is 1", 1.0, 0.0, 1000.0),
    ("density", "Density", "Factor on the weight of the fabric where the weight is 1", 1.0, 0.01, 100.0),
    ("shrink", "Shrink", "Size of the cut where the weight is 1: below 1 pulls the cloth together", 1.0, 0.1, 10.0),
    ("length", "Length", "Length of the cut along the warp where the weight is 1", 1.0, 0.1, 10.0),
)


# ---- from a row of a table to a property ----

def factor(row):
    """Very small numbers are shown in millionths: Blender shows at most six decimals."""
    return 1e6 if row["type"] == "real" and 0 < row["soft_max"] <= 1e-2 and row["unit"] != "1" else 1.0


def label(row):
    unit = row["unit"]
    if unit in ("1", "") or _unit(row) != 'NONE':
        return row["label"]
    return f"{row['label']} ({'µ' if factor(row) != 1 else ''}{unit})"


def _unit(row):
    if factor(row) != 1:
        return 'NONE'
    return {"m": 'LENGTH', "m/s": 'VELOCITY', "m/s^2": 'ACCELERATION'}.get(row["unit"], 'NONE')


def _changed(self, context):
    from . import outdated
    outdated.check_soon()


def _fabric_changed(self, context):
    """A value was changed by hand: the fabric is then nobody's."""
    if not _choosing and self.fabric != "custom":
        named = next(f for f in FABRICS if f["name"] == self.fabric)
        if any(abs(value(self, row) - named[row["id"]]) > 1e-5 * abs(named[row["id"]]) for row in FABRIC):
            self.fabric = "custom"
    _changed(self, context)


_choosing = []              # not empty while a fabric's values are set


def make(row, update=_changed):
    common = {"name": label(row), "description": row["tooltip"], "update": update}
    kind = row["type"]
    if kind == "boolean":
        return BoolProperty(default=row["default"], **common)
    if kind == "choice":
        items = [(c, c.replace("_", " ").capitalize(), "") for c in row["choices"]]
        _items[row["id"]] = items
        return EnumProperty(items=items, default=row["default"], **common)
    scale = factor(row)
    ranges = {key: row[name] * scale for key, name in
              (("min", "min"), ("max", "max"), ("soft_min", "soft_min"), ("soft_max", "soft_max"))}
    if kind == "integer":
        return IntProperty(default=row["default"], **{k: int(v) for k, v in ranges.items()}, **common)
    if kind == "vector":
        return FloatVectorProperty(size=3, default=row["default"], subtype='XYZ', unit=_unit(row), **ranges, **common)
    smallest = abs(row["default"]) * scale or 1.0
    precision = 6 if smallest < 0.001 else 4 if smallest < 1 else 3
    return FloatProperty(default=row["default"] * scale, precision=precision, unit=_unit(row),
                         step=max(1, min(1000, int(20 * smallest))), **ranges, **common)


def value(group, row, scale=1.0):
    """A property as the scene file takes it; `scale` is metres of one unit, for lengths. Blender keeps single precision:
    what was typed is taken, not its noise."""
    found = getattr(group, row["id"])
    scale = (scale if _unit(row) != 'NONE' else 1.0) / factor(row)
    if row["type"] == "vector":
        return [clean(v * scale) for v in found]
    if row["type"] == "real":
        return min(max(clean(found * scale), row["min"]), row["max"])
    return found


def clean(number):
    return float(f"{number:.7g}")


# ---- the groups ----

def _named_fabrics():
    items = [(f["name"], f["label"].split(",")[0].strip() or f["name"], f["source"]) for f in FABRICS]
    _items["fabric"] = [(n, n.replace("_", " ").capitalize(), f"{label}. {source}") for n, label, source in items]
    _items["fabric"].append(("custom", "Custom", "The values below, as they were changed"))
    return _items["fabric"]


def fabric_items():
    """The named ones, with their sources."""
    return _items["fabric"][:-1]


def _choose_fabric(self, context):
    _choosing.append(True)
    for fabric in FABRICS:
        if fabric["name"] == self.fabric:
            for row in FABRIC:
                setattr(self, row["id"], fabric[row["id"]] * factor(row))
    _choosing.pop()
    _changed(self, context)


def _is_collider(self, ob):
    return ob.toile.role == 'COLLIDER'


def _role_changed(self, context):
    from . import playback
    playback.forget_objects()
    _changed(self, context)


def _cache_changed(self, context):
    from . import playback
    playback.show_soon()


def _redraw(self, context):
    from . import jobs
    jobs.redraw()


def _choose_version(self, context):
    from . import versions
    versions.use(self.id_data, self.active_version)


class ToileBand(bpy.types.PropertyGroup):
    group: StringProperty(name="Group", update=_changed,
                          description="Vertices that the elastic runs along: every edge with both ends in it")
    stiffness: FloatProperty(name="Stiffness (N)", default=20, min=0.001, max=1e6, soft_max=200, update=_changed,
                             description="Pull of the elastic at twice its length, in newtons")
    scale: FloatProperty(name="Length", default=0.8, min=0.05, max=5, soft_min=0.3, soft_max=1, subtype='FACTOR',
                         update=_changed, description="Length at rest relative to the cloth that it is sewn to")


class ToileGarment(bpy.types.PropertyGroup):
    """Filled below with a property for each row of the fabric table."""


class ToileCollider(bpy.types.PropertyGroup):
    thickness: FloatProperty(name="Thickness", default=0.002, min=0, max=1, soft_max=0.05, unit='LENGTH', precision=4,
                             description="Distance kept free around the surface, added to that of the cloth",
                             update=_changed)
    friction: FloatProperty(name="Friction", default=0.3, min=0, max=100, soft_max=1, update=_changed,
                            description="Coulomb coefficient: 0 ice, 0.3 skin or smooth cloth, 1 rough wool")
    friction_kinetic: FloatProperty(name="Sliding", default=1, min=0, max=1, subtype='FACTOR', update=_changed,
                                    description="Share of the friction that is left once the cloth slides")


class ToileObject(bpy.types.PropertyGroup):
    role: EnumProperty(name="Role", default='NONE', update=_role_changed, items=[
        ('NONE', "None", ""), ('GARMENT', "Garment", "Cloth that is simulated"),
        ('COLLIDER', "Collider", "What cloth collides with")])
    garment: PointerProperty(type=ToileGarment)
    collider: PointerProperty(type=ToileCollider)
    cache_path: StringProperty(name="Cache", subtype='FILE_PATH', update=_cache_changed,
                               description="The file that this garment is played from", **compat.path_options())
    cache_known: StringProperty(options={'HIDDEN'}, description="Where the cache was when it was baked or loaded")
    cache_garment: StringProperty(name="Garment", update=_cache_changed, description="Its name in the cache")
    play: BoolProperty(name="Play", default=True, update=_cache_changed,
                       description="Show the cached frames; else the mesh as it is modelled")
    use_start: BoolProperty(name="Start from Applied Drape", default=False, update=_changed,
                            description="Begin the bake where the drape was applied as start shape")


class ToileVersion(bpy.types.PropertyGroup):
    path: StringProperty(name="Cache", subtype='FILE_PATH', **compat.path_options())
    known: StringProperty(options={'HIDDEN'}, description="Where the cache was when it was baked or loaded")
    inputs: StringProperty(description="Digest of everything that decided this bake")
    note: StringProperty(name="Note", description="What is special about this version")
    first: IntProperty()
    last: IntProperty()
    outdated: BoolProperty(description="Something was changed since this version was baked")


class ToileScene(bpy.types.PropertyGroup):
    """Filled below with a property for each row of the settings table."""


def _collider_side():
    sides = [('OUTSIDE', "Outside", "Cloth stays on the side that the normals point to"),
             ('INSIDE', "Inside", "Cloth stays on the other side: inside a box or a drum")]
    if native.knows("side"):
        sides.append(('BOTH', "Both", "Cloth may be on either side: a thin sheet"))
    return EnumProperty(name="Side", default='OUTSIDE', update=_changed, items=sides)


def _garment_properties():
    yield "fabric", EnumProperty(name="Fabric", items=_named_fabrics(), default=FABRICS[0]["name"], update=_choose_fabric,
                                 description="Measured fabrics; the values below are set from it and can be changed")
    for row in FABRIC:
        yield row["id"], make(dict(row, default=FABRICS[0][row["id"]]), _fabric_changed)
    yield "pin_group", StringProperty(name="Pin Group", update=_changed, description=(
        "Vertices with a weight above one half are held; with a stiffness, all that have a weight. They follow the mesh as "
        "modifiers above Toile move it, and weights that modifiers change"))
    yield "pin_stiffness", FloatProperty(
        name="Pin Stiffness (N/m)", min=0, max=1e6, soft_max=500, update=_changed,
        description="Of a spring that holds each pinned vertex, times its weight; 0 holds rigidly")
    yield "pin_axes", EnumProperty(name="Pin Axes", options={'ENUM_FLAG'}, default={'X', 'Y', 'Z'}, update=_changed, items=[
        (a, a, f"Hold along {a} of the world") for a in "XYZ"], description="Directions in which pins hold; none is all")
    yield "pin_surface", PointerProperty(
        name="Pin to Surface", type=bpy.types.Object, update=_changed, poll=_is_collider,
        description="A collider on whose surface pins stay where they are at the start, instead of following the mesh")
    yield "use_pin_end", BoolProperty(name="Release", update=_changed, description="Let go of the pins after a frame")
    yield "pin_end", IntProperty(name="After Frame", default=100, update=_changed, description="Last frame of the pins")
    yield "layer", IntProperty(name="Layer", default=0, min=-1000, max=1000, update=_changed,
                               description="Garments of a higher layer lie over those of lower ones")
    yield "use_sewing", BoolProperty(name="Sew Loose Edges", default=True, update=_changed, description=(
        "Edges without faces pull their two ends together, which then become one"))
    yield "sew_strength", FloatProperty(name="Strength (N/m)", default=100, min=1, max=1e6, soft_max=1000, update=_changed,
                                        description="Largest pull on a metre of seam while it is sewn")
    yield "use_sew_frames", BoolProperty(name="Schedule", update=_changed,
                                         description="Choose the frames of sewing; else the first second")
    yield "sew_start", IntProperty(name="Start", default=1, update=_changed, description="First frame of sewing")
    yield "sew_end", IntProperty(name="End", default=25, update=_changed, description="Frame at which it is closed")
    yield "use_sew_turns", BoolProperty(name="In Turn", default=True, update=_changed, description=(
        "Seams of an imported pattern are sewn one after the other between start and end, as their edges say"))
    yield "use_sew_release", BoolProperty(name="Open", update=_changed, description="Let the seams come apart again")
    yield "sew_release", IntProperty(name="At Frame", default=100, update=_changed, description="Frame at which they open")
    yield "sew_fold", FloatProperty(name="Fold", default=0, min=-math.pi, max=math.pi, subtype='ANGLE',
                                    update=_changed, description=(
        "Angle at rest across sewn edges: 0 is flat, positive folds right sides together"))
    yield "bands", CollectionProperty(type=ToileBand)
    yield "active_band", IntProperty(name="Band", min=0)
    yield "pressure", FloatProperty(name="Pressure (Pa)", default=0, min=-1e6, max=1e6, soft_min=-200, soft_max=200,
                                    update=_changed, description=(
        "On the back of the cloth: positive pushes towards its right side. Can be keyed"))
    yield "ignore", PointerProperty(name="Ignore", type=bpy.types.Collection, update=_changed,
                                    description="Garments and colliders of this collection go through this garment")
    yield "contact_group", StringProperty(name="No Contact Group", update=_changed,
                                          description="Vertices with a weight above one half touch nothing")
    yield "contact_with", EnumProperty(name="No Contact With", default='ALL', update=_changed, items=[
        ('ALL', "Anything", "Neither colliders nor cloth"), ('COLLIDERS', "Colliders", "Cloth they do touch"),
        ('CLOTH', "Cloth", "Colliders they do touch")], description="What those vertices do not touch")
    yield "panel_source", EnumProperty(name="Panels", default='MATERIALS', update=_changed, items=[
        ('MATERIALS', "Materials", "Each material is a panel"),
        ('SEAMS', "Marked Seams", "Edges marked as seams part the panels"),
        ('UV', "UV Islands", "Each island of the UV map is a panel")],
        description="What the pieces of the garment are; exports carry them as face sets")
    yield "rest_shape", EnumProperty(name="Rest Shape", default='MESH', update=_changed, items=[
        ('MESH', "Mesh", "The cloth is cut to the size of the mesh as it is modelled"),
        ('SHAPE_KEY', "Shape Key", "The cloth is cut to the size of a shape key"),
        ('UV', "UV Map", "The UV map is the flat pattern")],
        description="What the cloth is cut to; the scene's first frame is where it starts")
    yield "rest_key", StringProperty(name="Shape Key", update=_changed)
    yield "uv_map", StringProperty(name="UV Map", update=_changed, description=(
        "Gives the grain: u is the warp. Without one the warp runs along the object's Z"))
    yield "uv_scale", FloatProperty(name="UV Scale", default=0, min=0, soft_max=10, unit='LENGTH', update=_changed,
                                    description="Metres of one UV unit; 0: such that areas agree")
    yield "keep_folds", BoolProperty(name="Keep Folds", update=_changed,
                                     description="The mesh's own folds are at rest; else flat is")
    for name, text, tip, default, low, high in MAPS:
        yield f"map_{name}_group", StringProperty(name=f"{text} Group", update=_changed,
                                                  description="Vertex group that says where; empty: nowhere")
        yield f"map_{name}", FloatProperty(name=text, default=default, min=low, max=high, description=tip, update=_changed)


def _scene_properties():
    for row in SETTINGS:
        yield row["id"], make(row)
    yield "use_scene_gravity", BoolProperty(name="Scene Gravity", default=True, update=_changed,
                                            description="Take gravity from the scene's settings")
    yield "use_scene_range", BoolProperty(name="Scene Range", default=True, update=_changed,
                                          description="Bake the frames of the scene's timeline")
    yield "frame_start", IntProperty(name="Start", default=1, min=-1000000, max=1000000, update=_changed)
    yield "frame_end", IntProperty(name="End", default=250, min=-1000000, max=1000000, update=_changed)
    yield "directory", StringProperty(name="Folder", default="//toile_cache", subtype='DIR_PATH', description=(
        "Where caches and jobs are kept. Until the file is saved they are temporary"), **compat.path_options())
    yield "farm_directory", StringProperty(name="Farm Folder", subtype='DIR_PATH', description=(
        "Plan and results of the bakes that were last given to a farm"), **compat.path_options())
    yield "versions", CollectionProperty(type=ToileVersion)
    yield "active_version", IntProperty(name="Version", default=0, min=0, update=_choose_version)
    yield "show_stretch", BoolProperty(name="Stretch", update=_cache_changed, description=(
        "Colour the cloth by its stretch: blue is slack, green at rest, red stretched"))
    yield "stretch_range", FloatProperty(name="Range", default=0.05, min=0.001, soft_max=0.5, subtype='FACTOR',
                                         update=_cache_changed, description="Stretch that is shown red")
    yield "show_seams", BoolProperty(name="Seams", update=_redraw, description="Draw sewing edges and marked seams")
    yield "show_warp", BoolProperty(name="Warp", update=_redraw, description="Draw the direction of the warp on the cloth")
    yield "show_contacts", BoolProperty(name="Contacts", update=_cache_changed,
                                        description="Mark vertices that touch a collider")


CLASSES = (ToileBand, ToileGarment, ToileCollider, ToileObject, ToileVersion, ToileScene)


def _load_tables():
    settings = native.table("settings")
    SETTINGS[:], FABRIC[:] = settings["settings"], settings["fabric"]
    FABRICS[:] = native.table("fabrics")
    ROWS.update({("settings", row["id"]): row for row in SETTINGS})
    ROWS.update({("fabric", row["id"]): row for row in FABRIC})


def register():
    _load_tables()
    for group, properties in ((ToileGarment, _garment_properties), (ToileScene, _scene_properties)):
        group.__annotations__ = dict(properties())
    ToileCollider.__annotations__["side"] = _collider_side()
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    bpy.types.Object.toile = PointerProperty(type=ToileObject)
    bpy.types.Scene.toile = PointerProperty(type=ToileScene)


def unregister():
    del bpy.types.Scene.toile
    del bpy.types.Object.toile
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
    _items.clear()
