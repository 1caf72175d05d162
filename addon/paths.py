"""Where caches and jobs are: paths that survive a moved or renamed .blend file."""
import os
import re

import bpy


def absolute(path, library=None):
    """A path as stored, on this machine. Files written on other systems may have other slashes."""
    path = path.replace("\\", "/")
    return os.path.normpath(bpy.path.abspath(path, library=library)) if path else ""


def find(path, library=None, known=""):
    """Like absolute; if nothing is there, where it was when it was baked (the .blend file was saved elsewhere), or the same
    name beside the .blend file or in its toile_cache folder (only the caches were moved)."""
    full = absolute(path, library)
    if not full or os.path.exists(full):
        return full
    if known and os.path.basename(known) == os.path.basename(full) and os.path.exists(known):
        return known
    blend = library.filepath if library else bpy.data.filepath
    base = os.path.dirname(bpy.path.abspath(blend)) if blend else ""
    for folder in ("toile_cache", "") if base else ():
        other = os.path.join(base, folder, os.path.basename(full))
        if os.path.exists(other):
            return other
    return full


def of(ob):
    """The cache that an object plays from."""
    return find(ob.toile.cache_path, ob.library, ob.toile.cache_known)


def of_version(version):
    return find(version.path, version.id_data.library, version.known)


def relative(path):
    """As it should be stored: beside the .blend file if that is possible."""
    if not bpy.data.is_saved:
        return path
    try:
        return bpy.path.relpath(path)
    except ValueError:              # another drive
        return path


def plain(name):
    """A name that every file system bears."""
    return re.sub(r"[^\w.-]+", "_", name).strip("._")[:60] or "bake"


def folder(scene):
    """The folder for new caches, made if it is missing. Temporary while the file has no place of its own."""
    stored = scene.toile.directory
    if stored.startswith("//") and not bpy.data.is_saved:
        path = os.path.join(bpy.app.tempdir, "toile_cache")
    else:
        path = absolute(stored or "//toile_cache")
    os.makedirs(path, exist_ok=True)
    return path


def new_cache(scene, version):
    """A path for a version's cache that no other version has."""
    stem = plain(os.path.splitext(os.path.basename(bpy.data.filepath))[0]) if bpy.data.is_saved else "unsaved"
    name = f"{stem}_{plain(scene.name)}_{plain(version)}"
    taken = {absolute(v.path) for s in bpy.data.scenes for v in s.toile.versions}
    path, number = os.path.join(folder(scene), name + ".h5"), 2
    while path in taken:
        path, number = os.path.join(folder(scene), f"{name}_{number}.h5"), number + 1
    return path


def job_of(cache):
    return os.path.splitext(cache)[0] + ".job.h5"


def log_of(cache):
    return os.path.splitext(cache)[0] + ".log"


def report_of(cache):
    return os.path.splitext(cache)[0] + ".report.json"


def rebase(old_folder):
    """After the .blend file was saved elsewhere: relative paths lead to the same files as before."""
    owners = [v for s in bpy.data.scenes for v in s.toile.versions]
    for owner, name in [(v, "path") for v in owners] + [(o.toile, "cache_path") for o in bpy.data.objects]:
        path = getattr(owner, name)
        if path.startswith("//") and owner.id_data.library is None:
            before = os.path.normpath(os.path.join(old_folder, path[2:]))
            if before != absolute(path) and os.path.exists(before) and not os.path.exists(absolute(path)):
                setattr(owner, name, relative(before))
        elif os.path.isabs(path) and os.path.exists(path) and not path.startswith(bpy.app.tempdir):
            short = relative(path)
            if not short.startswith("//.."):
                setattr(owner, name, short)
