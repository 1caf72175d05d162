"""Playback: cached frames drive the meshes. One handler before every frame change writes positions into an attribute; the
modifier (modifier.py) shows them.

What can go wrong is said once per cause and kept for the panel; the mesh then stays as it was last shown."""
import os

import bpy
import numpy
from bpy.app.handlers import persistent

from . import bridge, frames, modifier, paths, preferences

store = frames.Frames()
paused = 0                  # while meshes are captured
growing = set()             # caches that are being baked: not there yet is no error
errors = {}                 # key of an object -> why it cannot be shown
_garments = {}              # scene name -> keys of objects
_known = -1                 # objects in the file when they were last looked through
_used = {}                  # key -> matrix that the shown positions were made with
_listeners = []             # called after positions were written: overlays


def key_of(ob):
    return ob.name, ob.library.filepath if ob.library else None


def find(key):
    return bpy.data.objects.get(key)


def listen(function):
    _listeners.append(function)


def unlisten(function):
    if function in _listeners:
        _listeners.remove(function)


def forget_objects():
    global _known
    _known = -1


def garments(scene):
    """Keys of the garments to show in a scene: its own, and those that are only instanced. Cheap when nothing changed."""
    global _known
    count = len(bpy.data.objects)
    if count != _known:
        _garments.clear()
        _known = count
        for ob in bpy.data.objects:
            if ob.toile.role == 'GARMENT' and ob.toile.cache_path and ob.type == 'MESH':
                scenes = [s.name for s in ob.users_scene] or [s.name for s in bpy.data.scenes]
                for name in scenes:
                    _garments.setdefault(name, []).append(key_of(ob))
    found = _garments.get(scene.name, ())
    if any(find(key) is None for key in found):         # renamed: looked through again
        forget_objects()
        return garments(scene)
    return found


# ---- one garment ----

def _interpolate(path, garment, frame, part, fps):
    """Positions between two frames: the cubic that has both frames' positions and velocities."""
    a, b = store.get(path, garment, frame), store.get(path, garment, frame + 1)
    if a is b:
        return a
    va, vb = (store.get(path, garment, f, "velocities") for f in (frame, frame + 1))
    t, h = part, 1.0 / fps
    h00, h10 = 2 * t**3 - 3 * t**2 + 1, t**3 - 2 * t**2 + t
    h01, h11 = -2 * t**3 + 3 * t**2, t**3 - t**2
    return (a * numpy.float32(h00) + va * numpy.float32(h10 * h) + b * numpy.float32(h01)
            + vb * numpy.float32(h11 * h)).astype(numpy.float32)


def _local(points, matrix, scale, directions=False):
    """World metres to the object's own space, float32."""
    m = numpy.array(matrix.inverted_safe(), numpy.float64)
    if scale == 1 and numpy.array_equal(m, numpy.identity(4)):
        return points
    rotation = (m[:3, :3].T / scale).astype(numpy.float32)
    out = points @ rotation
    if not directions:
        out += m[:3, 3].astype(numpy.float32)
    return out


def _write(mesh, name, values):
    data = modifier.attribute(mesh, name).data
    if mesh.library is None:
        data.foreach_set("vector", numpy.ascontiguousarray(values, numpy.float32).ravel())
        return
    for item, value in zip(data, values.tolist()):      # foreach_set does nothing, without a word, to linked data
        item.vector = value


def positions_of(scene, ob):
    """World positions (metres) that a garment has at the scene's frame, and the cache's path; raises bridge.Error."""
    path, garment = paths.of(ob), ob.toile.cache_garment
    frame, part = scene.frame_current, scene.frame_subframe
    if part > 0:
        return _interpolate(path, garment, frame, part, store.info(path)[0]["fps"]), path
    return store.get(path, garment, frame), path


def show(scene, ob, matrix):
    """Writes the scene's frame into the mesh. Raises bridge.Error; the mesh then stays as it was."""
    mesh = ob.data
    points, path = positions_of(scene, ob)
    if len(points) != len(mesh.vertices):
        raise bridge.Invalid("INVALID", f"the mesh has {len(mesh.vertices)} vertices but was baked with {len(points)}; bake "
                                        "again")
    if ob.mode == 'EDIT':
        return
    scale = scene.unit_settings.scale_length
    _write(mesh, modifier.POSITION, _local(points, matrix, scale))
    _write_velocity(scene, ob, mesh, path, matrix, scale)
    mesh.update()
    found = modifier.find(ob)
    if found:
        modifier.show(found, True)
    if scene.frame_subframe == 0:
        store.wish(path, ob.toile.cache_garment, scene.frame_current)
    for listener in _listeners:
        listener(scene, ob, points, path)


def _moves(ob):
    """Whether the object itself is animated: then Cycles samples the mesh between frames instead of using velocities."""
    animation = ob.animation_data
    return bool(ob.parent or ob.constraints or (animation and (animation.action or animation.drivers)))


def _write_velocity(scene, ob, mesh, path, matrix, scale):
    wanted = scene.render.use_motion_blur and not _moves(ob)
    if wanted:
        velocities = store.get(path, ob.toile.cache_garment, scene.frame_current, "velocities")
        _write(mesh, modifier.VELOCITY, _local(velocities, matrix, scale, directions=True))
    elif mesh.attributes.get(modifier.VELOCITY) is not None:
        mesh.attributes.remove(mesh.attributes[modifier.VELOCITY])


def _fail(key, message):
    if errors.get(key) != message:
        errors[key] = message
        print(f"Toile: {key[0]}: {message}")


def _show_one(scene, key, matrix=None):
    ob = find(key)
    if ob is None or ob.toile.role != 'GARMENT':
        return
    if not ob.toile.play:
        found = modifier.find(ob)
        if found:
            modifier.show(found, False)
        return
    try:
        matrix = (matrix or ob.matrix_world).copy()
        show(scene, ob, matrix)
        _used[key] = matrix
        errors.pop(key, None)
    except bridge.Error as error:
        if paths.absolute(ob.toile.cache_path, ob.library) not in growing:
            _fail(key, str(error))
    except (RuntimeError, ValueError, ReferenceError) as error:
        _fail(key, f"the frame could not be shown: {error}")


def show_all(scene):
    for key in list(garments(scene)):
        _show_one(scene, key)


# ---- handlers ----

@persistent
def toile_frame_pre(scene, depsgraph=None):
    if paused:
        return
    for key in garments(scene):
        _show_one(scene, key)


@persistent
def toile_frame_post(scene, depsgraph=None):
    """Objects that moved in this frame were shown with the matrix of the last one: those are shown again."""
    if not _used or paused or depsgraph is None:
        return
    for key in garments(scene):
        ob = find(key)
        if ob is not None and key in _used and _moves(ob) and ob.toile.play:
            matrix = ob.evaluated_get(depsgraph).matrix_world
            if matrix != _used[key]:
                _show_one(scene, key, matrix)


@persistent
def toile_refresh(*unused):
    """After loading, undo and redo the attribute may be from another time."""
    forget_objects()
    errors.clear()
    _used.clear()
    show_soon()


@persistent
def toile_save_pre(*unused):
    global _folder_before
    _folder_before = os.path.dirname(bpy.data.filepath) if bpy.data.is_saved else ""


@persistent
def toile_save_post(*unused):
    now = os.path.dirname(bpy.data.filepath)
    if _folder_before != now:
        paths.rebase(_folder_before)


_folder_before = ""


def show_soon():
    """From property updates and handlers, where meshes must not be changed."""
    forget_objects()
    if bpy.app.background:
        _show_now()
    elif not bpy.app.timers.is_registered(_show_now):
        bpy.app.timers.register(_show_now, first_interval=0.0)


def _show_now():
    limit = preferences.get()
    if limit:
        store.limit = limit.memory << 20
    scene = getattr(bpy.context, "scene", None)
    if scene is not None and not paused:
        try:
            show_all(scene)
        except AttributeError:          # properties are gone: the add-on is being removed
            pass
    return None


_HANDLERS = (("frame_change_pre", toile_frame_pre), ("frame_change_post", toile_frame_post), ("load_post", toile_refresh),
             ("undo_post", toile_refresh), ("redo_post", toile_refresh), ("save_pre", toile_save_pre),
             ("save_post", toile_save_post))


def register():
    for name, function in _HANDLERS:
        handlers = getattr(bpy.app.handlers, name)
        for old in [h for h in handlers if getattr(h, "__name__", "") == function.__name__]:
            handlers.remove(old)
        handlers.append(function)
    forget_objects()


def unregister():
    for name, function in _HANDLERS:
        handlers = getattr(bpy.app.handlers, name)
        if function in handlers:
            handlers.remove(function)
    if bpy.app.timers.is_registered(_show_now):
        bpy.app.timers.unregister(_show_now)
    store.close()
    errors.clear()
    _garments.clear()
    _used.clear()
