"""Whether a bake still fits the scene: a digest of everything that decides it, compared with the one it was baked from.
Nothing is deleted; the panel says so."""
import hashlib
import json

import bpy
import numpy

from . import bridge, capture, compat, mesh_read, sewing


def _mesh_digest(ob, digest):
    mesh = ob.data
    points = numpy.empty((len(mesh.vertices), 3), numpy.float32)
    compat.get_positions(mesh, points)
    digest.update(points.tobytes())
    for collection, name in ((mesh.loops, "vertex_index"), (mesh.polygons, "loop_start"), (mesh.polygons, "material_index")):
        out = numpy.empty(len(collection), numpy.int32)
        collection.foreach_get(name, out)
        digest.update(out.tobytes())


WEIGHTS_MOST = 30000        # vertices whose weights are looked at: more would hold up the window


def _sewing_digest(ob, digest):
    garment, mesh = ob.toile.garment, ob.data
    groups = {garment.pin_group, garment.contact_group} | {band.group for band in garment.bands}
    groups |= {getattr(garment, f"map_{name}_group") for name, *_ in mesh_read.MAPS}
    for name in sorted(groups & {g.name for g in ob.vertex_groups}) if len(mesh.vertices) <= WEIGHTS_MOST else ():
        digest.update(mesh_read.weights(ob, name).tobytes())
    if garment.use_sewing:
        digest.update(sewing.loose_edges(mesh).tobytes())
        digest.update(sewing.turns(mesh).tobytes())
    if garment.panel_source != 'MATERIALS':
        digest.update(sewing.seam_edges(ob).tobytes())


def _plain(value):
    """The same from one start of Blender to the next."""
    if isinstance(value, bpy.types.ID):
        return value.name_full
    if isinstance(value, bpy.types.bpy_prop_collection):
        return [[_plain(getattr(item, n)) for n in item.bl_rna.properties.keys() if n != "rna_type"] for item in value]
    return capture.clean(value) if isinstance(value, float) else sorted(value) if isinstance(value, set) else value


def _garment_facts(ob):
    g = ob.toile.garment
    moving = compat.animated(ob)
    names = [n for n in g.bl_rna.properties.keys() if n not in ("rna_type", "name", "fabric", "active_band") and
             "toile.garment." + n not in moving]
    facts = {n: getattr(g, n) for n in names}
    return {"facts": {k: _plain(v) for k, v in facts.items()},
            "start": ob.toile.use_start}


def digest(scene):
    """Of settings, garments with their meshes, and colliders; not of threads, nor of how things are animated."""
    facts = {"settings": capture.settings(scene), "range": capture.frame_range(scene)[0], "fps": scene.render.fps,
             "fps_base": scene.render.fps_base, "unit": scene.unit_settings.scale_length}
    facts["settings"].pop("threads", None)
    made = hashlib.blake2b(digest_size=12)
    for ob in sorted(capture.objects(scene, 'GARMENT'), key=lambda o: o.name_full):
        facts["garment " + (ob.toile.cache_garment or ob.name_full)] = _garment_facts(ob)
        _mesh_digest(ob, made)
        _sewing_digest(ob, made)
    for ob in sorted(capture.objects(scene, 'COLLIDER'), key=lambda o: o.name_full):
        scale, side = scene.unit_settings.scale_length, ob.toile.collider.side
        facts["collider " + ob.name_full] = [capture.collider_facts(ob, scale), side]
    made.update(json.dumps(facts, sort_keys=True, default=str).encode())
    return made.hexdigest()


def check(scene):
    """Marks the versions of a scene that were baked from something else."""
    if not scene.toile.versions or scene.library is not None:
        return
    now = digest(scene)
    for version in scene.toile.versions:
        stale = bool(version.inputs) and version.inputs != now
        if version.outdated != stale:
            version.outdated = stale


def check_soon():
    """From property updates, which may come in a row."""
    if bpy.app.background:
        _check_now()
    elif not bpy.app.timers.is_registered(_check_now):
        bpy.app.timers.register(_check_now, first_interval=0.2)


def _check_now():
    scene = getattr(bpy.context, "scene", None)
    if scene is not None:
        check(scene)
    return None


def stop():
    if bpy.app.timers.is_registered(_check_now):
        bpy.app.timers.unregister(_check_now)
