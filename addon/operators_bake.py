"""Bake, cancel, resume, write a job. From the interface a bake captures frame by frame in a modal operator, so that the
window draws and Escape works; in scripts and in the background it captures in one go."""
import os
import time

import bpy
from bpy.props import BoolProperty, IntProperty, StringProperty

from . import bridge, capture, jobs, outdated, paths, versions

SLICE = 0.06                # s of capture between two redraws


def problem_of(error):
    """What went wrong, kept where the panel finds it."""
    state["error"] = str(error)
    return str(error)


state = {"error": "", "capture": None}       # error: of the last capture; capture: the one that runs


class Captures:
    """Mixed into operators that write a job: a modal capture, or one that waits."""

    def begin(self, context):
        """Path of the job to write."""
        raise NotImplementedError

    def captured(self, context, names):
        raise NotImplementedError

    def _open(self, context):
        if state["capture"] is not None:
            raise bridge.Invalid("INVALID", "another capture runs; wait for it or press Escape")
        state["error"] = ""
        self._capture = state["capture"] = capture.Capture(context, self.begin(context))

    def _close(self, context, finished):
        made, self._capture = self._capture, None
        state["capture"] = None
        if not finished:
            made.abandon()
            return
        try:
            made.finish()
        except bridge.Error:
            made.abandon()
            raise
        if made.left_out:
            self.report({'WARNING'}, made.left_out_text())
        self.captured(context, made.owners, made.names)

    def _failed(self, context, error):
        if self._capture is not None:
            self._close(context, False)
        state["capture"] = None
        self.report({'ERROR'}, problem_of(error))
        jobs.redraw()
        return {'CANCELLED'}

    def execute(self, context):
        self._capture = None
        manager = context.window_manager
        try:
            self._open(context)
            manager.progress_begin(0, self._capture.total)
            while not self._capture.step():
                manager.progress_update(self._capture.done)
            manager.progress_end()
            self._close(context, True)
        except (bridge.Error, OSError) as error:
            return self._failed(context, error)
        return {'FINISHED'}

    def invoke(self, context, event):
        if bpy.app.background:
            return self.execute(context)
        self._capture = None
        try:
            self._open(context)
        except (bridge.Error, OSError) as error:
            return self._failed(context, error)
        self._timer = context.window_manager.event_timer_add(0.01, window=context.window)
        context.window_manager.modal_handler_add(self)
        return {'RUNNING_MODAL'}

    def _leave(self, context):
        context.window_manager.event_timer_remove(self._timer)
        context.workspace.status_text_set(None)
        jobs.redraw()

    def modal(self, context, event):
        if event.type == 'ESC':
            self._close(context, False)
            self._leave(context)
            self.report({'INFO'}, "the bake was cancelled before it began")
            return {'CANCELLED'}
        if event.type != 'TIMER':
            return {'PASS_THROUGH'}
        began = time.perf_counter()
        try:
            done = False
            while not done and time.perf_counter() - began < SLICE:
                done = self._capture.step()
            made = self._capture
            context.workspace.status_text_set(
                f"Toile: capturing frame {made.frame} ({made.done} of {made.total}), Esc stops")
            jobs.redraw()
            if not done:
                return {'RUNNING_MODAL'}
            self._leave(context)
            self._close(context, True)
        except (bridge.Error, OSError, ReferenceError) as error:
            self._leave(context)
            return self._failed(context, error)
        return {'FINISHED'}


class TOILE_OT_bake(Captures, bpy.types.Operator):
    """Simulate all garments of the scene in a process of its own. Blender stays usable, finished frames play at once"""
    bl_idname = "toile.bake"
    bl_label = "Bake"
    bl_options = {'UNDO'}       # what is noted in the file stays when a later step is undone; no redo panel, it would bake

    version: StringProperty(name="Version", description="Name of the version to bake; empty: the active one")
    new_version: BoolProperty(name="New Version", description="Keep the active version and bake another")
    wait: BoolProperty(name="Wait", description="Return when the bake is done; always so in the background",
                       options={'SKIP_SAVE'})
    threads: IntProperty(name="Threads", default=-1, min=-1, description="-1: as in the settings", options={'SKIP_SAVE'})

    @classmethod
    def poll(cls, context):
        if context.mode != 'OBJECT':
            cls.poll_message_set("leave the edit or paint mode first")
        return context.scene is not None and context.mode == 'OBJECT'

    def begin(self, context):
        scene = context.scene
        index = versions.find(scene, self.version) if self.version else -1
        if index >= 0:
            scene.toile.active_version = index
        elif self.new_version or self.version or versions.active(scene) is None:
            versions.new(scene, self.version)
        version = versions.active(scene)
        if not version.path or (paths.absolute(version.path).startswith(bpy.app.tempdir) and bpy.data.is_saved):
            version.path = paths.relative(paths.new_cache(scene, version.name))
        self._cache = paths.absolute(version.path)
        if self._cache in jobs.running:
            raise bridge.Invalid("INVALID", f"\"{version.name}\" is being baked; cancel it first")
        os.makedirs(os.path.dirname(self._cache), exist_ok=True)
        return paths.job_of(self._cache)

    def captured(self, context, names, garment_names):
        scene = context.scene
        bake = jobs.Bake(scene.name, paths.job_of(self._cache), self._cache, names, threads=self.threads)
        jobs.start(bake)
        versions.begin(scene, versions.active(scene), garment_names)
        versions.active(scene).inputs = outdated.digest(scene)
        follow(self, bake)


def follow(operator, bake):
    """Watches a bake; in the background and when asked, until it ends."""
    if bake.cache not in jobs.running:
        jobs.start(bake)
    if not (bpy.app.background or operator.wait):
        return
    bake.wait()
    jobs.ended(bake)
    if bake.state == 'failed':
        raise bridge.Failed("DIVERGED", bake.message)
    if bake.state == 'stopped':
        operator.report({'WARNING'}, bake.message)


class TOILE_OT_resume(bpy.types.Operator):
    """Go on with a bake that was cancelled or ended early, from its last finished frame"""
    bl_idname = "toile.resume"
    bl_label = "Resume"
    bl_options = {'REGISTER'}

    wait: BoolProperty(name="Wait", description="Return when the bake is done; always so in the background",
                       options={'SKIP_SAVE'})
    threads: IntProperty(name="Threads", default=-1, min=-1, description="-1: as in the settings", options={'SKIP_SAVE'})

    @classmethod
    def poll(cls, context):
        version = context.scene and versions.active(context.scene)
        return bool(version) and os.path.exists(paths.job_of(paths.of_version(version)))

    def execute(self, context):
        scene = context.scene
        cache = paths.of_version(versions.active(scene))
        if cache in jobs.running:
            self.report({'ERROR'}, "it is being baked")
            return {'CANCELLED'}
        garments, colliders = capture.objects(scene, 'GARMENT'), capture.objects(scene, 'COLLIDER')
        names = {job: full for obs in (colliders, garments) for full, job in capture.job_names(obs).items()}
        try:
            follow(self, jobs.Bake(scene.name, paths.job_of(cache), cache, names, resume=os.path.exists(cache),
                                   threads=self.threads))
        except (bridge.Error, OSError) as error:
            self.report({'ERROR'}, problem_of(error))
            return {'CANCELLED'}
        return {'FINISHED'}


class TOILE_OT_cancel(bpy.types.Operator):
    """End the bake after the frame in work. What is finished stays, and Resume goes on from there"""
    bl_idname = "toile.cancel"
    bl_label = "Cancel"
    bl_options = {'REGISTER'}

    kill: BoolProperty(name="At Once", description="Do not wait for the frame in work", options={'SKIP_SAVE'})

    @classmethod
    def poll(cls, context):
        return bool(jobs.running)

    def execute(self, context):
        bake = jobs.of(context.scene)
        for one in [bake] if bake and bake.state == 'running' else list(jobs.running.values()):
            one.stop(kill=self.kill or one.stopping)
        jobs.redraw()
        return {'FINISHED'}


class TOILE_OT_write_job(Captures, bpy.types.Operator):
    """Write everything a bake needs into one file, for another machine: toile bake JOB.h5 -o CACHE.h5"""
    bl_idname = "toile.write_job"
    bl_label = "Write Job"
    bl_options = {'REGISTER'}

    filepath: StringProperty(subtype='FILE_PATH', description="The job to write; empty: beside the caches")
    filter_glob: StringProperty(default="*.h5", options={'HIDDEN'})

    @classmethod
    def poll(cls, context):
        if context.mode != 'OBJECT':
            cls.poll_message_set("leave the edit or paint mode first")
        return context.scene is not None and context.mode == 'OBJECT'

    def invoke(self, context, event):
        if not self.filepath:
            self.filepath = os.path.join(paths.folder(context.scene), paths.plain(context.scene.name) + ".job.h5")
        context.window_manager.fileselect_add(self)
        return {'RUNNING_MODAL'}

    def modal(self, context, event):
        return {'PASS_THROUGH'}

    def begin(self, context):
        path = self.filepath or os.path.join(paths.folder(context.scene), paths.plain(context.scene.name) + ".job.h5")
        self.filepath = paths.absolute(path)
        return self.filepath

    def captured(self, context, names, garment_names):
        self.report({'INFO'}, f"wrote {self.filepath}; bake it anywhere with: toile bake {os.path.basename(self.filepath)} "
                              "-o CACHE.h5, and bring the cache back with Load")


CLASSES = (TOILE_OT_bake, TOILE_OT_resume, TOILE_OT_cancel, TOILE_OT_write_job)


def register():
    for cls in CLASSES:
        bpy.utils.register_class(cls)


def unregister():
    if state["capture"] is not None:
        state["capture"].abandon()
        state["capture"] = None
    state["error"] = ""
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
