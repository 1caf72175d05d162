"""Bakes as named versions of a scene: which one plays, and where its files are."""
import os

from . import capture, outdated, paths, playback


def active(scene):
    t = scene.toile
    return t.versions[t.active_version] if 0 <= t.active_version < len(t.versions) else None


def new(scene, name=""):
    """A version with a name of its own, made the active one. It has no cache yet."""
    taken = {v.name for v in scene.toile.versions}
    name, number = name or f"Bake {len(taken) + 1}", 2
    base = name
    while name in taken:
        name, number = f"{base}.{number:03}", number + 1
    version = scene.toile.versions.add()
    version.name = name
    scene.toile.active_version = len(scene.toile.versions) - 1
    return version


def find(scene, name):
    return next((i for i, v in enumerate(scene.toile.versions) if v.name == name), -1)


def begin(scene, version, names):
    """A bake of this version starts: garments play from its cache as it grows."""
    first, last = capture.frame_range(scene)
    version.first, version.last, version.outdated = first, last, False
    version.known = paths.absolute(version.path)
    for ob in capture.objects(scene, 'GARMENT'):
        if ob.library is None and ob.name_full in names:
            ob.toile.cache_garment = names[ob.name_full]
            ob.toile.cache_known = version.known
            ob.toile.cache_path = version.path


def use(scene, index):
    """Plays the garments of a scene from a version."""
    if not 0 <= index < len(scene.toile.versions):
        return
    version = scene.toile.versions[index]
    for ob in capture.objects(scene, 'GARMENT'):
        if ob.library is None and version.path:
            ob.toile.cache_known = version.known
            ob.toile.cache_path = version.path
    playback.show_soon()


def files(version):
    """Everything on disk that belongs to a version."""
    cache = paths.of_version(version)
    made = [cache, cache + ".state", paths.job_of(cache), paths.log_of(cache), paths.report_of(cache)] if cache else []
    return [f for f in made if os.path.isfile(f)]


def delete_files(version):
    cache = paths.of_version(version)
    playback.store.forget(cache)
    removed = files(version)
    for file in removed:
        os.remove(file)
    return removed
