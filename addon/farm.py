"""Bakes on a farm: the scene as a wedge (many values) or a single bake, given to a queue by the program, and what comes back
as versions. All that is known of a wedge is in its folder; here is only which folder, and a look at it now and then."""
import atexit
import json
import os
import signal
import subprocess

import bpy
from bpy.props import BoolProperty, EnumProperty, IntProperty, StringProperty

from . import bridge, compat, jobs, native, operators_bake, paths, versions

INTERVAL = 2.0              # s between two looks
SHOWN = 16                  # wedges in the panel

running = {}                # folder -> process of a queue on this machine
looks = {}                  # folder -> what the last look found, a list as `toile wedge status --json` prints it
_looking = {}               # folder -> process that looks

ICONS = {"complete": 'CHECKMARK', "running": 'TIME', "failed": 'ERROR', "stopped": 'PAUSE', "waiting": 'DOT'}


def _environment():
    return {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}


def call(*arguments):
    """Runs the program; its output. Raises bridge.Error with what it complained about."""
    done = subprocess.run([native.program(), *map(str, arguments)], capture_output=True, text=True, env=_environment(),
                          stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        lines = [line.removeprefix("toile: ") for line in done.stderr.splitlines() if line.startswith("toile: ")]
        raise bridge.Failed("INVALID", lines[-1] if lines else
                            f"the program ended with code {done.returncode}: {done.stderr[-300:]}")
    return done.stdout


def status(folder):
    """Every wedge of a folder: index, name, values, state, cache, done, frames, host, message."""
    looks[folder] = json.loads(call("wedge", "status", folder, "--json"))
    return looks[folder]


def folder_of(scene):
    return paths.absolute(scene.toile.farm_directory) if scene.toile.farm_directory else ""


def new_folder(scene):
    """A folder beside the caches that has no plan yet."""
    base, number = os.path.join(paths.folder(scene), paths.plain(scene.name) + "_farm"), 2
    path = base
    while os.path.exists(os.path.join(path, "plan.json")):
        path, number = f"{base}_{number}", number + 1
    return path


# ---- watching ----

def watch_soon():
    if not bpy.app.background and not bpy.app.timers.is_registered(_watch):
        bpy.app.timers.register(_watch, first_interval=0.1, persistent=True)


def _watch():
    """The timer. Starts a look and takes what the one before has found; waits for nothing."""
    scene = getattr(bpy.context, "scene", None)
    folder = folder_of(scene) if scene is not None else ""
    for path, process in list(_looking.items()):
        if process.poll() is None:
            continue
        _looking.pop(path)
        try:
            looks[path] = json.loads(process.stdout.read())
        except ValueError:
            looks.pop(path, None)
        process.stdout.close()
        jobs.redraw()
    for path, process in list(running.items()):
        if process.poll() is not None:
            running.pop(path)
    if not folder or not os.path.exists(os.path.join(folder, "plan.json")):
        return None
    found = looks.get(folder)
    if found is not None and all(w["state"] in ("complete", "failed") for w in found) and folder not in running:
        return None
    if folder not in _looking:
        _looking[folder] = subprocess.Popen([native.program(), "wedge", "status", folder, "--json"], stdout=subprocess.PIPE,
                                            stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=_environment())
    return INTERVAL


def stop_all():
    """Blender ends: so does its queue, in order; submitted again it goes on."""
    for process in running.values():
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)


# ---- operators ----

class TOILE_OT_farm(operators_bake.Captures, bpy.types.Operator):
    """Bake with many values at once, or once, on other machines or on this one. What is done comes back with Load"""
    bl_idname = "toile.farm"
    bl_label = "On the Farm"
    bl_options = {'UNDO'}

    engine: EnumProperty(name="Queue", default='LOCAL', items=[
        ('LOCAL', "This Machine", "A few bakes at a time, here"),
        ('SLURM', "Slurm", "sbatch must work on this machine"),
        ('OPENJD', "Open Job Description", "A template for Deadline Cloud and others"),
        ('FLAMENCO', "Flamenco", "Flamenco 3.3 or later, with the job type toile_wedge.js")])
    vary: StringProperty(name="Vary", description=(
        "What varies, separated by semicolons: fabric=cotton,denim; friction=0.2:0.8:4. Names of settings, fabric and its "
        "properties, friction, or paths as toile bake --set takes them. Empty: one bake"))
    directory: StringProperty(name="Folder", subtype='DIR_PATH', description=(
        "For the plan and all that comes of it, on a disk that the nodes see; empty: a new one beside the caches"))
    resume: BoolProperty(name="Go On", options={'SKIP_SAVE'},
                         description="Submit what is in the folder again instead of capturing")
    export: EnumProperty(name="Export", default='NONE', items=[
        ('NONE', "Nothing", ""), ('ABC', "Alembic", ""), ('PC2', "PC2", ""), ('MDD', "MDD", ""), ('OBJ', "OBJ", "")])
    cpus: IntProperty(name="Processors", default=1, min=1, max=256, description="Of one bake")
    slots: IntProperty(name="At a Time", default=0, min=0, max=10000,
                       description="Bakes at the same time; 0: as many as the queue allows")
    minutes: IntProperty(name="Minutes", default=240, min=3, max=1000000,
                         description="Longest run of a task; it goes on in another")
    program: StringProperty(name="Program", subtype='FILE_PATH',
                            description="toile as the nodes find it; empty: the one of this add-on")
    manager: StringProperty(name="Manager", default="http://localhost:8080", description="Address of the Flamenco Manager")
    write_only: BoolProperty(name="Only Write Files",
                             description="Write the queue's files for reading and changing, and submit nothing")
    wait: BoolProperty(name="Wait", options={'SKIP_SAVE'},
                       description="This Machine: return when all is done; always so in the background")

    confirmed: BoolProperty(options={'HIDDEN', 'SKIP_SAVE'})       # the dialog was answered

    _asked = False

    @classmethod
    def poll(cls, context):
        return context.scene is not None and context.mode == 'OBJECT'

    def invoke(self, context, event):
        if bpy.app.background:
            return self.execute(context)
        if self.confirmed:
            return operators_bake.Captures.invoke(self, context, event)
        self._asked = True
        return context.window_manager.invoke_props_dialog(self, width=420)

    def draw(self, context):
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        for name in ("engine", "vary", "directory", "export", "cpus", "slots", "minutes"):
            layout.prop(self, name)
        if self.engine == 'FLAMENCO':
            layout.prop(self, "manager")
        if self.engine != 'LOCAL':
            layout.prop(self, "program")
        layout.prop(self, "write_only")

    def execute(self, context):
        if self._asked and not self.resume:     # what a dialog ends with cannot go on frame by frame; another call can
            chosen = {name: getattr(self, name) for name in self.__annotations__}
            bpy.ops.toile.farm('INVOKE_DEFAULT', **dict(chosen, confirmed=True))
            return {'FINISHED'}
        if not self.resume:
            return operators_bake.Captures.execute(self, context)
        self._capture = None
        try:
            self._folder = paths.absolute(self.directory) if self.directory else folder_of(context.scene)
            self._submit(context)
        except (bridge.Error, OSError) as error:
            return self._failed(context, error)
        return {'FINISHED'}

    def begin(self, context):
        self._folder = paths.absolute(self.directory).rstrip("/") if self.directory else new_folder(context.scene)
        if self._folder in running:
            raise bridge.Invalid("INVALID", f"{self._folder} is being baked; choose another folder")
        os.makedirs(os.path.dirname(self._folder), exist_ok=True)
        return self._folder + ".job.h5"

    def captured(self, context, names, garment_names):
        job = self._folder + ".job.h5"
        vary = [a for v in self.vary.split(";") if v.strip() for a in ("--vary", v.strip())]
        try:
            if vary:
                call("wedge", job, *vary, "-o", self._folder)
            else:
                call("submit", job, "-o", self._folder, "--engine", "local", "--write-only",
                     os.path.join(self._folder, "farm", "local"))
        finally:
            os.remove(job)              # the folder has its own
        self._submit(context)

    def _submit(self, context):
        context.scene.toile.farm_directory = paths.relative(self._folder)
        arguments = ["submit", self._folder, "--engine", self.engine.lower(), "--cpus", self.cpus, "--slots", self.slots,
                     "--minutes", self.minutes, "--export", self.export.lower(), "--manager", self.manager]
        if self.program:
            arguments += ["--program", self.program]
        out = os.path.join(self._folder, "farm", self.engine.lower())
        if self.write_only:
            call(*arguments, "--write-only", out)
            self.report({'INFO'}, f"wrote {out}")
        elif self.engine == 'LOCAL':
            self._start(arguments)
        else:
            self.report({'INFO'}, call(*arguments).strip() or f"submitted {self._folder}")
        looks.pop(self._folder, None)
        watch_soon()

    def _start(self, arguments):
        os.makedirs(self._folder, exist_ok=True)
        with open(os.path.join(self._folder, "farm.log"), "wb") as log:
            process = subprocess.Popen([native.program(), *map(str, arguments), "--progress", "json"], stdout=log,
                                       stderr=log, stdin=subprocess.DEVNULL, env=_environment(), start_new_session=True)
        running[self._folder] = process
        if not (bpy.app.background or self.wait):
            return
        code = process.wait()
        running.pop(self._folder)
        failed = [w for w in status(self._folder) if w["state"] != "complete"]
        if code == 75:
            self.report({'WARNING'}, f"stopped with {len(failed)} of {len(looks[self._folder])} to do; Go On continues")
        elif code != 0:
            raise bridge.Failed("INVALID", f"{len(failed)} of {len(looks[self._folder])} are not complete; see "
                                f"{self._folder}/farm.log " + (failed[0]["message"] if failed else ""))


class TOILE_OT_farm_cancel(bpy.types.Operator):
    """End the bakes of the farm that runs on this machine. What is finished stays, and On the Farm with Go On continues"""
    bl_idname = "toile.farm_cancel"
    bl_label = "Cancel"

    @classmethod
    def poll(cls, context):
        return bool(running)

    def execute(self, context):
        stop_all()
        return {'FINISHED'}


class TOILE_OT_farm_load(bpy.types.Operator):
    """Play what came back: each wedge becomes a version"""
    bl_idname = "toile.farm_load"
    bl_label = "Load from Farm"
    bl_options = {'REGISTER', 'UNDO'}

    directory: StringProperty(name="Folder", subtype='DIR_PATH', description="Of the wedges; empty: the scene's last one")
    index: IntProperty(name="Wedge", default=-1, min=-1, description="Its number; -1: all that are complete")

    def execute(self, context):
        scene = context.scene
        folder = paths.absolute(self.directory).rstrip("/") if self.directory else folder_of(scene)
        try:
            if not folder:
                raise bridge.Invalid("INVALID", "which folder? Nothing of this scene is on the farm yet")
            found = status(folder)
            if self.index >= len(found):
                raise bridge.Invalid("INVALID", f"there is no wedge {self.index}; {folder} has 0 to {len(found) - 1}")
            wanted = [w for w in found if w["state"] == "complete"] if self.index < 0 else [found[self.index]]
            if not wanted or wanted[0]["done"] == 0:
                raise bridge.Invalid("INVALID", f"nothing is finished in {folder} yet")
        except (bridge.Error, OSError) as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        for wedge in wanted:
            self._load(scene, wedge)
        scene.toile.farm_directory = paths.relative(folder)
        self.report({'INFO'}, f"{len(wanted)} versions")
        return {'FINISHED'}

    @staticmethod
    def _load(scene, wedge):
        known = versions.find(scene, wedge["name"])
        if known >= 0:
            scene.toile.active_version = known
        bpy.ops.toile.load(filepath=wedge["cache"], version="" if known >= 0 else wedge["name"])
        versions.active(scene).note = ", ".join(f"{k} {v}" for k, v in (wedge["values"] or {}).items())


class TOILE_OT_farm_report(bpy.types.Operator):
    """Make table and contact sheet of what is there, and open the sheet as an image of this file"""
    bl_idname = "toile.farm_report"
    bl_label = "Contact Sheet"

    directory: StringProperty(name="Folder", subtype='DIR_PATH', description="Of the wedges; empty: the scene's last one")

    def execute(self, context):
        folder = paths.absolute(self.directory).rstrip("/") if self.directory else folder_of(context.scene)
        sheet = os.path.join(folder, "report", "contact.png")
        try:
            call("wedge", "report", folder)
            image = bpy.data.images.load(sheet, check_existing=True)
        except (bridge.Error, RuntimeError) as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        image.reload()
        for area in context.screen.areas if context.screen else ():
            if area.type == 'IMAGE_EDITOR':
                area.spaces.active.image = image
        self.report({'INFO'}, f"{sheet}; in the Image Editor: {image.name}")
        return {'FINISHED'}


# ---- panel ----

def draw(layout, context):
    scene = context.scene
    folder = folder_of(scene)
    row = layout.row()
    row.operator_context = 'INVOKE_DEFAULT'
    row.operator("toile.farm", icon='NETWORK_DRIVE')
    layout.use_property_split = True
    layout.use_property_decorate = False
    layout.prop(scene.toile, "farm_directory")
    if not folder:
        return
    found = looks.get(folder)
    if found is None:
        watch_soon()
        return
    done = sum(w["state"] == "complete" for w in found)
    compat.progress(layout, done / max(1, len(found)), f"{done} of {len(found)} complete")
    if folder in running:
        layout.operator("toile.farm_cancel", icon='CANCEL')
    row = layout.row(align=True)
    row.operator("toile.farm_load", icon='IMPORT', text="Load All")
    row.operator("toile.farm_report", icon='IMAGE_DATA')
    column = layout.column(align=True)
    for wedge in found[:SHOWN]:
        row = column.row()
        row.label(text=f"{wedge['name']}  {wedge['done']}/{wedge['frames']}", icon=ICONS.get(wedge["state"], 'DOT'),
                  translate=False)
        if wedge["done"]:
            row.operator("toile.farm_load", text="", icon='IMPORT').index = wedge["index"]
    if len(found) > SHOWN:
        column.label(text=f"{len(found) - SHOWN} more", translate=False)


CLASSES = (TOILE_OT_farm, TOILE_OT_farm_cancel, TOILE_OT_farm_load, TOILE_OT_farm_report)


def register():
    for cls in CLASSES:
        bpy.utils.register_class(cls)
    atexit.register(stop_all)


def unregister():
    stop_all()
    atexit.unregister(stop_all)
    if bpy.app.timers.is_registered(_watch):
        bpy.app.timers.unregister(_watch)
    running.clear()
    looks.clear()
    _looking.clear()
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
