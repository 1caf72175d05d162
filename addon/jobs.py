"""Bakes as separate processes, watched by a timer. Their progress comes through a file that the timer reads on, so nothing
ever waits for them and no thread touches Blender. A bake that is killed or crashes leaves its finished frames."""
import atexit
import json
import os
import re
import signal
import subprocess
import time

import bpy

from . import bridge, native, paths, playback, preferences

INTERVAL = 0.25             # s between two looks

running = {}                # cache path -> Bake
finished = {}               # cache path -> Bake, the last that ended
state = {"text": None}      # what the status bar shows


class Bake:
    """One process. States: running, complete, stopped, failed."""

    def __init__(self, scene_name, job, cache, names, resume=False, threads=-1):
        self.scene_name, self.job, self.cache = scene_name, job, cache
        self.names = names                      # name in the job -> object's full name
        self.state, self.message = 'running', ""
        self.frame = self.first = self.frames = self.done_frames = 0
        self.seconds = self.eta = self.elapsed = 0.0
        self.warnings, self.stopping, self.shown = [], False, -1
        self.object, self.vertices = "", []     # what an error is about
        self._read = 0
        self.log = paths.log_of(cache)
        command = [native.program(), "bake", job, "-o", cache, "--progress", "json", "--report", paths.report_of(cache)]
        if resume:
            command.append("--resume")
        if threads >= 0:
            command += ["--threads", str(threads)]
        with open(self.log, "wb") as log, open(self.log + ".err", "wb") as err:
            self.process = subprocess.Popen(command, stdout=log, stderr=err, stdin=subprocess.DEVNULL,
                                            env=native.environment(), start_new_session=True)
        choice = preferences.get()
        if (choice is None or choice.nice) and hasattr(os, "setpriority"):
            try:
                os.setpriority(os.PRIO_PROCESS, self.process.pid, 5)
            except OSError:
                pass

    def poll(self):
        """Reads what is new in the log; True while the process runs."""
        alive = self.process.poll() is None
        with open(self.log, "rb") as log:
            log.seek(self._read)
            text = log.read()
        end = text.rfind(b"\n") + 1
        self._read += end
        for line in text[:end].splitlines():
            try:
                self._take(json.loads(line))
            except ValueError:
                pass
        if not alive and self.state == 'running':
            self._died(self.process.returncode)
        if not alive:
            self._tidy()
        return alive

    def _take(self, event):
        kind = event.get("event")
        if kind == "start":
            self.first, self.frames, self.frame = event["first"], event["frames"], event["first"] + event["done"] - 1
            self.done_frames = event["done"]
        elif kind == "frame":
            self.frame, self.frames, self.done_frames = event["frame"], event["frames"], event["done"]
            self.eta, self.elapsed = event["eta"], event["elapsed"]
            self.seconds = event["seconds"] if not self.seconds else 0.8 * self.seconds + 0.2 * event["seconds"]
        elif kind == "warning":
            self.warnings.append(event["message"])
        elif kind == "error":
            self._fail(event["message"])
        elif kind == "done":
            self.state, self.eta = ('complete' if event["outcome"] == "complete" else 'stopped'), 0.0
            if self.state == 'stopped':
                self.message = f"stopped after frame {event['frame']}; Resume goes on from there"

    def _died(self, code):
        with open(self.log + ".err", encoding="utf-8", errors="replace") as err:
            lines = [line.removeprefix("toile: ").strip() for line in err if line.startswith("toile: ")]
        if code == 75:
            self.state, self.message = 'stopped', lines[-1] if lines else "stopped; Resume goes on"
        elif code < 0:
            name = signal.Signals(-code).name if -code in iter(signal.Signals) else str(-code)
            self._fail(f"the bake process was ended from outside ({name}). Its finished frames are kept: Resume goes on "
                       "from there")
        else:
            self._fail(lines[-1] if lines else f"the bake process ended with code {code}; see {self.log}.err")

    def _fail(self, message):
        self.state = 'failed'
        # the place in the job's text means nothing to an artist
        self.message = re.sub(r"^.*?\.h5:\d+: (?:[\w\[\]._]+: )?", "", message)
        named = re.search(r'(?:garment|collider|mesh) "([^"]*)"', self.message)
        if named:
            name = named.group(1)
            self.object = self.names.get(name) or self.names.get(name.split(" ", 1)[-1], "")
            if self.object and self.object != name:
                self.message = self.message.replace(f'"{name}"', f'"{self.object}"', 1)
        self.vertices = problem_vertices(self.message)

    def _tidy(self):
        try:
            if os.path.getsize(self.log + ".err") == 0:
                os.remove(self.log + ".err")
        except OSError:
            pass

    def stop(self, kill=False):
        """Asks the process to end after the frame in work, or ends it now."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
        self.stopping = True

    def wait(self):
        while self.poll():
            time.sleep(0.02)

    def parts(self):
        """How far it is, and how long it takes."""
        if self.stopping:
            return "Stopping after this frame", ""
        if not self.frames:
            return "Starting", ""
        left = f", {duration(self.eta)} left" if self.done_frames > 1 else ""
        return f"Frame {self.frame}: {self.done_frames} of {self.frames}", f"{self.seconds:.2g} s per frame{left}"

    def text(self):
        """One line for the status bar."""
        return ", ".join(part for part in self.parts() if part)


def duration(seconds):
    seconds = int(seconds + 0.5)
    return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}" if seconds >= 3600 else \
        f"{seconds // 60}:{seconds % 60:02}"


def problem_vertices(message):
    """Vertices that a message names, such as "vertices 3 and 4", "vertices 1, 2, 3" or "vertex 7"."""
    found = []
    for part in re.findall(r"vert(?:ex|ices) (\d+(?:(?:, | and )\d+)*)", message):
        found += [int(n) for n in re.findall(r"\d+", part)]
    return sorted(set(found))


# ---- watching ----

def start(bake):
    running[bake.cache] = bake
    playback.growing.add(bake.cache)
    finished.pop(bake.cache, None)
    if not bpy.app.background and not bpy.app.timers.is_registered(watch):
        bpy.app.timers.register(watch, first_interval=0.05, persistent=True)


def watch():
    """The timer. Takes microseconds unless there is something new to show."""
    for cache, bake in list(running.items()):
        alive = bake.poll()
        if bake.frame != bake.shown and bake.frames:
            bake.shown = bake.frame
            _show_new(cache)
        if not alive:
            ended(bake)
    shown = next(iter(running.values())).text() if running else None
    if shown != state["text"]:
        state["text"] = shown
        _status()
        redraw()
    return INTERVAL if running else None


def _show_new(cache):
    try:
        last = playback.store.refresh(cache)
    except bridge.Error:
        return                  # not there yet
    scene = getattr(bpy.context, "scene", None)
    # the frame in view has just been finished, or could not be shown before
    if scene is not None and (scene.frame_current >= last - 1 or playback.errors):
        playback.show_all(scene)


def ended(bake):
    running.pop(bake.cache, None)
    playback.growing.discard(bake.cache)
    finished[bake.cache] = bake
    _show_new(bake.cache)
    if bake.state == 'failed':
        print(f"Toile: {bake.message}")


def _status():
    text = f"Toile: {state['text']}" if state["text"] else None
    for window in bpy.context.window_manager.windows if bpy.context.window_manager else ():
        if window.workspace:
            window.workspace.status_text_set(text)


def redraw():
    manager = bpy.context.window_manager
    for window in manager.windows if manager else ():
        for area in window.screen.areas:
            if area.type in {'PROPERTIES', 'VIEW_3D'}:
                for region in area.regions:
                    if region.type in {'WINDOW', 'UI'} and (area.type == 'PROPERTIES' or region.type == 'UI'):
                        region.tag_redraw()


def of(scene):
    """The bake of a scene's active version that runs or ran last, or None."""
    from . import versions
    version = versions.active(scene)
    if version is None or not version.path:
        return None
    cache = paths.absolute(version.path)
    return running.get(cache) or finished.get(cache)


def _stop_all():
    """Blender ends: so do its bakes, resumable."""
    for bake in list(running.values()):
        bake.stop()


def register():
    atexit.register(_stop_all)


def unregister():
    _stop_all()
    for bake in list(running.values()):
        try:
            bake.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            bake.stop(kill=True)
            bake.process.wait()
    running.clear()
    playback.growing.clear()
    finished.clear()
    if bpy.app.timers.is_registered(watch):
        bpy.app.timers.unregister(watch)
    state["text"] = None
    if not bpy.app.background:
        _status()
    atexit.unregister(_stop_all)
    from . import outdated
    outdated.stop()
