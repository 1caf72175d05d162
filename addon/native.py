"""Where the native library and program are, and the tables that they came with."""
import json
import os
import platform
import shutil
import stat
import sys

from . import bridge, compat

FOLDER = os.path.dirname(os.path.realpath(__file__))

_library = None
_problem = ""
_known = {}                 # keys of scene files that were asked for


def _platform():
    system = {"linux": "linux", "win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
    machine = platform.machine().lower()
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)
    return f"{system}-{machine}"


def folder():
    return os.path.join(FOLDER, "lib", _platform())


def library():
    """The library; raises bridge.Error in words. Loaded once, by a versioned name, so that an update never meets a file
    that is in use."""
    global _library, _problem
    if _library is None:
        try:
            if not os.path.isdir(folder()):
                made = ", ".join(sorted(os.listdir(os.path.join(FOLDER, "lib")))) or "no system"
                raise bridge.Error("IO", f"this copy of the add-on has no library for {_platform()}; it was made for {made}")
            _library = bridge.load(os.path.join(folder(), f"libtoile-{bridge.VERSION}.so"))
            _problem = ""
        except (bridge.Error, OSError) as error:
            _problem = str(error)
            raise error if isinstance(error, bridge.Error) else bridge.Error("IO", str(error))
    return _library


def problem():
    """Why the library cannot be used, or an empty text."""
    try:
        library()
    except bridge.Error:
        pass
    return _problem


def forget():
    global _library, _problem
    _library, _problem = None, ""


def program():
    """The program, ready to run. A zip keeps no permissions, and an add-on folder may be read-only: then it is copied."""
    path = os.path.join(folder(), f"toile-{bridge.VERSION}")
    if not os.path.exists(path):
        raise bridge.Error("IO", f"the program is not there: {path}. Install the add-on again")
    if os.access(path, os.X_OK):
        return path
    try:
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        return path
    except OSError:
        copy = os.path.join(compat.user_folder(), bridge.VERSION)
        shutil.copytree(folder(), copy, dirs_exist_ok=True)
        path = os.path.join(copy, os.path.basename(path))
        os.chmod(path, 0o755)
        return path


def environment():
    """For the program: what Blender's own start script set up is not for it."""
    return {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}


def knows(key):
    """Whether scene files have this key, in this version of the library."""
    def look(node):
        if isinstance(node, dict):
            return key in node.get("properties", ()) or any(look(v) for v in node.values())
        return isinstance(node, list) and any(look(v) for v in node)
    if key not in _known:
        _known[key] = look(table("schema"))
    return _known[key]


def table(name):
    """settings, fabrics or schema, as the program printed them when the add-on was made: panels need no library."""
    with open(os.path.join(FOLDER, "tables", name + ".json"), encoding="utf-8") as file:
        return json.load(file)
