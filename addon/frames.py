"""Cached frames for playback: opened caches, frames kept in memory, and a thread that reads ahead. Knows nothing of
Blender; the thread only calls the library, under one lock, since HDF5 serves one caller at a time."""
import collections
import os
import queue
import threading

import numpy

from . import bridge, native

AHEAD = 4               # frames read before they are asked for


class Frames:
    def __init__(self):
        self._lock = threading.Lock()
        self._caches = {}                               # path -> (identity of the file, cache)
        self._kept = collections.OrderedDict()          # (path, identity, garment, frame, what) -> array
        self._bytes = 0
        self.limit = 1 << 30
        self._wishes = queue.Queue()
        self._thread = None

    # ---- caches ----

    @staticmethod
    def _identity(path):
        info = os.stat(path)
        return info.st_dev, info.st_ino

    def _open(self, path):
        try:
            identity = self._identity(path)
        except OSError as error:
            self._drop(path)
            raise bridge.Failed("IO", f"the cache is missing: {path} ({error.strerror}). Bake again, or show where it is "
                                      "with Load") from error
        found = self._caches.get(path)
        if found and found[0] == identity and not found[1].moved:
            return found
        self._drop(path)
        found = self._caches[path] = (identity, native.library().open_cache(path))
        return found

    def _drop(self, path):
        found = self._caches.pop(path, None)
        if found:
            found[1].close()
        for key in [k for k in self._kept if k[0] == path]:
            self._bytes -= self._kept.pop(key).nbytes

    def info(self, path):
        """Header of a cache and its last finished frame."""
        with self._lock:
            cache = self._open(path)[1]
            return cache.info, cache.last

    def refresh(self, path):
        """Looks for new frames; the last finished one."""
        with self._lock:
            cache = self._open(path)[1]
            cache.refresh()
            if cache.moved:
                cache = self._open(path)[1]
            return cache.last

    def figures(self, path, frame):
        with self._lock:
            return self._open(path)[1].figures(frame)

    def strain(self, path, garment, positions, strain):
        with self._lock:
            self._open(path)[1].strain(garment, positions, strain)

    # ---- frames ----

    def get(self, path, garment, frame, what="positions"):
        """A frame's array, which must not be changed. Frames outside are the first and the last finished one."""
        with self._lock:
            return self._get(path, garment, frame, what)

    def _get(self, path, garment, frame, what):
        identity, cache = self._open(path)
        if garment not in cache.garments:
            raise bridge.Invalid("INVALID", f"the cache {path} has no garment \"{garment}\"; it has: "
                                            + ", ".join(cache.garments))
        if frame > cache.last:
            cache.refresh()
        frame = max(cache.first, min(frame, cache.last))
        key = (path, identity, garment, frame, what)
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
            return found
        array = numpy.empty((cache.vertex_count(garment), 3), numpy.float32)
        cache.read(frame, garment, **{what: array})
        array.flags.writeable = False
        self._kept[key] = array
        self._bytes += array.nbytes
        while self._bytes > self.limit and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].nbytes
        return array

    def wish(self, path, garment, frame):
        """Has the frames after this one read in the background."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._read_ahead, name="toile-frames", daemon=True)
            self._thread.start()
        self._wishes.put((path, garment, frame))

    def _read_ahead(self):
        while True:
            wish = self._wishes.get()
            while not self._wishes.empty() and wish is not None:   # only the newest matters
                wish = self._wishes.get()
            if wish is None:
                return
            path, garment, frame = wish
            for ahead in range(frame + 1, frame + 1 + AHEAD):
                if not self._wishes.empty():
                    break
                try:
                    with self._lock:
                        if path in self._caches and ahead <= self._caches[path][1].last:
                            self._get(path, garment, ahead, "positions")
                except Exception:                                # what is wrong is said when the frame is shown
                    break

    def close(self):
        if self._thread is not None:
            self._wishes.put(None)
            self._thread.join()
            self._thread = None
        with self._lock:
            for path in list(self._caches):
                self._drop(path)

    def forget(self, path):
        with self._lock:
            self._drop(path)
