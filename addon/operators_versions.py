"""Versions of a bake: new, remove, free, load."""
import os

import bpy
from bpy.props import BoolProperty, StringProperty

from . import bridge, capture, jobs, modifier, paths, playback, versions


class TOILE_OT_version_add(bpy.types.Operator):
    """Another version: the next bake goes there, this one stays to be compared"""
    bl_idname = "toile.version_add"
    bl_label = "Add Version"
    bl_options = {'REGISTER', 'UNDO'}

    name: StringProperty(name="Name", description="Empty: a number")

    def execute(self, context):
        versions.new(context.scene, self.name)
        return {'FINISHED'}


class TOILE_OT_version_remove(bpy.types.Operator):
    """Take the active version off the list"""
    bl_idname = "toile.version_remove"
    bl_label = "Remove Version"
    bl_options = {'REGISTER', 'UNDO'}

    delete: BoolProperty(name="Delete Files", default=False, description="Delete its cache and job, too; not undone")

    @classmethod
    def poll(cls, context):
        return versions.active(context.scene) is not None

    def execute(self, context):
        scene = context.scene
        version = versions.active(scene)
        if paths.absolute(version.path) in jobs.running:
            self.report({'ERROR'}, f"\"{version.name}\" is being baked; cancel it first")
            return {'CANCELLED'}
        if self.delete:
            versions.delete_files(version)
        scene.toile.versions.remove(scene.toile.active_version)
        scene.toile.active_version = max(0, scene.toile.active_version - 1)
        return {'FINISHED'}


class TOILE_OT_free(bpy.types.Operator):
    """Delete the active version's cache and job from disk. Garments show their mesh again"""
    bl_idname = "toile.free"
    bl_label = "Free"
    bl_options = {'UNDO'}

    @classmethod
    def poll(cls, context):
        version = versions.active(context.scene)
        return version is not None and bool(version.path)

    def invoke(self, context, event):
        return context.window_manager.invoke_confirm(self, event)

    def execute(self, context):
        scene = context.scene
        version = versions.active(scene)
        cache = paths.of_version(version)
        if paths.absolute(version.path) in jobs.running:
            self.report({'ERROR'}, f"\"{version.name}\" is being baked; cancel it first")
            return {'CANCELLED'}
        removed = versions.delete_files(version)
        jobs.finished.pop(cache, None)
        for ob in capture.objects(scene, 'GARMENT'):
            if ob.library is None and paths.of(ob) == cache:
                ob.toile.cache_path = ""
                found = modifier.find(ob)
                if found:
                    modifier.show(found, False)
                playback.errors.pop(playback.key_of(ob), None)
        version.inputs, version.outdated = "", False
        self.report({'INFO'}, f"deleted {len(removed)} files of \"{version.name}\"")
        return {'FINISHED'}


class TOILE_OT_load(bpy.types.Operator):
    """Play garments from a cache that was baked elsewhere, or that was moved"""
    bl_idname = "toile.load"
    bl_label = "Load"
    bl_options = {'REGISTER', 'UNDO'}

    filepath: StringProperty(subtype='FILE_PATH')
    filter_glob: StringProperty(default="*.h5", options={'HIDDEN'})
    version: StringProperty(name="Version", description="Name of the version; empty: the active one is led there")

    def invoke(self, context, event):
        context.window_manager.fileselect_add(self)
        return {'RUNNING_MODAL'}

    def execute(self, context):
        scene, path = context.scene, paths.absolute(self.filepath)
        try:
            info, last = playback.store.info(path)
        except bridge.Error as error:
            self.report({'ERROR'}, str(error))
            return {'CANCELLED'}
        garments = {g["name"]: g["vertices"] for g in info["garments"]}
        names = capture.job_names(capture.objects(scene, 'GARMENT'))
        fitting = self._fit(context, garments, names)
        if not fitting:
            self.report({'ERROR'}, f"no garment of this scene is in {os.path.basename(path)}, which has: " + ", ".join(
                f"{n} ({v} vertices)" for n, v in garments.items()))
            return {'CANCELLED'}
        version = versions.active(scene) if not self.version else None
        version = version or versions.new(scene, self.version or os.path.splitext(os.path.basename(path))[0])
        version.path, version.known = paths.relative(path), path
        version.first, version.last = info["first_frame"], info["last_frame"]
        for ob, name in fitting:
            modifier.ensure(ob)
            ob.toile.cache_garment, ob.toile.cache_known = name, path
            ob.toile.cache_path = version.path
        playback.show_soon()
        self.report({'INFO'}, f"frames {info['first_frame']} to {last} of {len(fitting)} garments")
        return {'FINISHED'}

    @staticmethod
    def _fit(context, garments, names):
        """Garments by their name in the cache, and then the active mesh if it alone can be meant."""
        fitting = []
        for ob in capture.objects(context.scene, 'GARMENT'):
            for name in (ob.toile.cache_garment, names[ob.name_full]):
                if garments.get(name) == len(ob.data.vertices):
                    fitting.append((ob, name))
                    break
        ob = context.object
        if not fitting and ob is not None and ob.type == 'MESH' and len(garments) == 1:
            name, count = next(iter(garments.items()))
            if count == len(ob.data.vertices):
                ob.toile.role = 'GARMENT'
                fitting.append((ob, name))
        return fitting


CLASSES = (TOILE_OT_version_add, TOILE_OT_version_remove, TOILE_OT_free, TOILE_OT_load)


def register():
    for cls in CLASSES:
        bpy.utils.register_class(cls)


def unregister():
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
