"""The library for Python: ctypes over bridge/toile.h, without bpy. The only door between the add-on and C.

    library = toile.load("/path/to/libtoile.so")
    cache = library.open_cache("cape.h5")
    cache.read(12, "Cape", positions)            # into the caller's float32 array, nothing is copied
    with library.create_job("cape.job.h5") as job:
        job.add_mesh("Body", points, sizes, corners)
        job.finish(scene)

Calls that fail raise toile.Error with the library's words. Arrays are numpy arrays or anything with a buffer; those that
the library fills must be C-contiguous and of the right type. An object is used by one thread at a time. Calls release
Python's lock while they run."""
import ctypes
import json
import os
import sys

import numpy

VERSION = "0.1.0"           # of the header that this file follows


class Error(Exception):
    """What went wrong, where, and what to do: the library's message. `status` is its name, such as INVALID."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Invalid(Error):
    """The input is not acceptable."""


class Failed(Error):
    """The simulation, the memory or the disk failed."""


STATUS = {1: "WARNING", -1: "INVALID", -2: "NO_MEMORY", -3: "DIVERGED", -4: "IO", -5: "FORMAT", -6: "MISUSE",
          -7: "CANCELLED"}

_text, _int, _status, _handle = ctypes.c_char_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p
_double_p, _float_p, _int_p = (ctypes.POINTER(t) for t in (ctypes.c_double, ctypes.c_float, ctypes.c_int))


class _Mesh(ctypes.Structure):                  # toile_job_mesh
    _fields_ = [("name", _text), ("vertex_count", _int), ("positions", _double_p), ("face_count", _int),
                ("face_sizes", _int_p), ("face_vertices", _int_p), ("corner_uv", _double_p), ("panel_count", _int),
                ("panel_names", ctypes.POINTER(_text)), ("face_panels", _int_p)]


# Every function that is used: result, arguments.
_FUNCTIONS = {
    "toile_version": (_text, []),
    "toile_settings_json": (ctypes.c_void_p, []),
    "toile_fabrics_json": (ctypes.c_void_p, []),
    "toile_free_text": (None, [ctypes.c_void_p]),
    "toile_reader_open": (_status, [_text, ctypes.POINTER(_handle)]),
    "toile_reader_close": (None, [_handle]),
    "toile_reader_message": (_text, [_handle]),
    "toile_reader_refresh": (_status, [_handle]),
    "toile_reader_json": (_text, [_handle]),
    "toile_reader_frame_count": (_int, [_handle]),
    "toile_reader_vertex_count": (_int, [_handle, _int]),
    "toile_reader_read": (_status, [_handle, _int, _int, ctypes.c_void_p, ctypes.c_void_p]),
    "toile_reader_figures": (_status, [_handle, _int, _double_p, _int, _int_p]),
    "toile_reader_strain": (_status, [_handle, _int, ctypes.c_void_p, ctypes.c_void_p]),
    "toile_job_create": (_status, [_text, ctypes.POINTER(_handle)]),
    "toile_job_message": (_text, [_handle]),
    "toile_job_add_mesh": (_status, [_handle, ctypes.POINTER(_Mesh)]),
    "toile_job_add_track": (_status, [_handle, _text, _int, _int, _int_p]),
    "toile_job_add_frame": (_status, [_handle, _int, ctypes.c_void_p]),
    "toile_job_finish": (_status, [_handle, _text]),
    "toile_job_destroy": (None, [_handle]),
    "toile_job_check": (_status, [_text, ctypes.c_char_p, ctypes.c_size_t]),
}


def load(path):
    """The library at `path`. Raises Error in words if it is not there, does not load, or is of another version.

    RTLD_DEEPBIND: the library and what it brings find their own symbols first, whatever HDF5 the host has."""
    if not os.path.exists(path):
        raise Error("IO", f"the library is not there: {path}. Install the add-on again")
    mode = ctypes.DEFAULT_MODE | getattr(os, "RTLD_LOCAL", 0) | getattr(os, "RTLD_NOW", 0) | getattr(os, "RTLD_DEEPBIND", 0)
    try:
        handle = ctypes.CDLL(os.path.realpath(path), mode=mode)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(handle, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise Error("IO", f"the library cannot be loaded: {error}. Install the add-on that was made for this system "
                          f"({sys.platform})") from error
    version = handle.toile_version().decode()
    if version != VERSION:
        raise Error("FORMAT", f"the library is version {version} but the add-on was made for {VERSION}; restart Blender "
                              "after an update, or install the add-on again")
    return Library(handle)


def _fail(status, message):
    name = STATUS.get(status, str(status))
    kind = Invalid if name in ("INVALID", "MISUSE", "FORMAT") else Failed
    raise kind(name, message.decode(errors="replace") or name)


def _input(array, dtype, shape):
    """`array` as the library takes it, copied only if it has another type or order."""
    array = numpy.ascontiguousarray(array, dtype=dtype)
    if array.size != int(numpy.prod(shape)):
        raise ValueError(f"an array of {array.size} numbers; {shape} are needed")
    return array


def _output(array, size):
    if array.dtype != numpy.float32 or not array.flags.c_contiguous or not array.flags.writeable or array.size != size:
        raise ValueError(f"an array of {size} float32 that can be written is needed")
    return array.ctypes.data


class Library:
    def __init__(self, handle):
        self.handle = handle

    @property
    def version(self):
        return self.handle.toile_version().decode()

    def _table(self, function):
        pointer = function()
        if not pointer:
            raise Failed("NO_MEMORY", "memory ran out")
        try:
            return json.loads(ctypes.string_at(pointer))
        finally:
            self.handle.toile_free_text(pointer)

    def settings(self):
        """{"version", "settings": [rows], "fabric": [rows]}: id, type, group, default, ranges, unit, label, tooltip."""
        return self._table(self.handle.toile_settings_json)

    def fabrics(self):
        return self._table(self.handle.toile_fabrics_json)

    def open_cache(self, path):
        return Cache(self.handle, path)

    def create_job(self, path):
        return Job(self.handle, path)

    def check_job(self, path):
        """Loads and builds a job or scene without running it; raises Error with what is wrong."""
        message = ctypes.create_string_buffer(1100)
        status = self.handle.toile_job_check(os.fsencode(path), message, len(message))
        if status < 0:
            _fail(status, message.value)


class Cache:
    """A cache, also one that grows. Frames are numbered as in the scene."""

    def __init__(self, handle, path):
        self._c, self._reader, self.path = handle, _handle(), path
        status = handle.toile_reader_open(os.fsencode(path), ctypes.byref(self._reader))
        if status < 0:
            message = handle.toile_reader_message(self._reader)
            self.close()
            _fail(status, message)
        self.info = json.loads(handle.toile_reader_json(self._reader))
        self.garments = {g["name"]: i for i, g in enumerate(self.info["garments"])}
        self.first = self.info["first_frame"]
        self.moved = False          # another file is at the path now

    def close(self):
        reader, self._reader = self._reader, None
        if reader:
            self._c.toile_reader_close(reader)

    def _check(self, status):
        if status < 0:
            _fail(status, self._c.toile_reader_message(self._reader))
        return status

    def refresh(self):
        """Looks for new frames; True if there are any. Sets `moved` if another file took the path."""
        before = self.frame_count
        self.moved = self._check(self._c.toile_reader_refresh(self._reader)) > 0
        return self.frame_count > before

    @property
    def frame_count(self):
        return self._c.toile_reader_frame_count(self._reader)

    @property
    def last(self):
        """Last finished frame; first - 1 if there is none."""
        return self.first + self.frame_count - 1

    def vertex_count(self, garment):
        return self._c.toile_reader_vertex_count(self._reader, self.garments[garment])

    def read(self, frame, garment, positions=None, velocities=None):
        """Fills float32 arrays of (vertices x 3)."""
        index = self.garments[garment]
        size = 3 * self._c.toile_reader_vertex_count(self._reader, index)
        self._check(self._c.toile_reader_read(
            self._reader, frame - self.first, index, None if positions is None else _output(positions, size),
            None if velocities is None else _output(velocities, size)))

    def figures(self, frame):
        """The frame's figures by name: steps, iterations, seconds, max_stretch, contacts, ..."""
        names, count = self.info["figures"], _int()
        values = (ctypes.c_double * len(names))()
        self._check(self._c.toile_reader_figures(self._reader, frame - self.first, values, len(names), ctypes.byref(count)))
        return dict(zip(names, values[:count.value]))

    def strain(self, garment, positions, strain):
        """Largest strain around each vertex at float32 positions, into a float32 array."""
        count = self.vertex_count(garment)
        self._check(self._c.toile_reader_strain(self._reader, self.garments[garment], _output(positions, 3 * count),
                                                _output(strain, count)))


class Job:
    """A job that is being written. Leaving it without finish() leaves no file."""

    def __init__(self, handle, path):
        self._c, self._job = handle, _handle()
        status = handle.toile_job_create(os.fsencode(path), ctypes.byref(self._job))
        if status < 0:
            message = handle.toile_job_message(self._job)
            self.close()
            _fail(status, message)
        self._counts = []

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def close(self):
        job, self._job = self._job, None
        if job:
            self._c.toile_job_destroy(job)

    def _check(self, status):
        if status < 0:
            _fail(status, self._c.toile_job_message(self._job))

    def add_mesh(self, name, positions, face_sizes, face_vertices, corner_uv=None, panel_names=(), face_panels=None):
        sizes = numpy.ascontiguousarray(face_sizes, dtype=numpy.int32)
        corners = _input(face_vertices, numpy.int32, (int(sizes.sum()),))
        positions = numpy.ascontiguousarray(positions, dtype=numpy.float64)
        uv = None if corner_uv is None else _input(corner_uv, numpy.float64, (len(corners), 2))
        panels = None if face_panels is None else _input(face_panels, numpy.int32, (len(sizes),))
        names = (_text * max(len(panel_names), 1))(*[n.encode() for n in panel_names])

        def pointer(array, kind):
            return None if array is None else array.ctypes.data_as(kind)
        mesh = _Mesh(name.encode(), positions.size // 3, pointer(positions, _double_p), len(sizes), pointer(sizes, _int_p),
                     pointer(corners, _int_p), pointer(uv, _double_p), len(panel_names), names, pointer(panels, _int_p))
        self._check(self._c.toile_job_add_mesh(self._job, ctypes.byref(mesh)))

    def add_track(self, name, first_frame, vertex_count):
        """Positions for every frame from first_frame on; gives the number for add_frame."""
        track = _int()
        self._check(self._c.toile_job_add_track(self._job, name.encode(), first_frame, vertex_count, ctypes.byref(track)))
        self._counts.append(vertex_count)
        return track.value

    def add_frame(self, track, positions):
        positions = _input(positions, numpy.float64, (self._counts[track], 3))
        self._check(self._c.toile_job_add_frame(self._job, track, positions.ctypes.data))

    def finish(self, scene):
        """`scene`: a dict in the form of a scene file, or its text."""
        text = scene if isinstance(scene, str) else json.dumps(scene, indent=1)
        self._check(self._c.toile_job_finish(self._job, text.encode()))
        self.close()
