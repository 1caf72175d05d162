"""Preferences: how much memory playback may use, and whether the library is well."""
import textwrap

import bpy

from . import native


class ToilePreferences(bpy.types.AddonPreferences):
    bl_idname = __package__

    memory: bpy.props.IntProperty(
        name="Playback Memory", description="Frames kept in memory so that scrubbing does not read them again",
        default=1024, min=16, soft_max=16384, subtype='NONE')
    nice: bpy.props.BoolProperty(
        name="Bake in the Background", default=True,
        description="Give the bake a lower priority than Blender, so that the window stays quick")

    def draw(self, context):
        layout = self.layout
        problem = native.problem()
        if problem:
            box = layout.box()
            box.alert = True
            for i, line in enumerate(textwrap.wrap(problem, 90)):
                box.label(text=line, icon='ERROR' if i == 0 else 'BLANK1', translate=False)
        else:
            layout.label(text=f"Toile {native.library().version}", icon='CHECKMARK', translate=False)
        layout.use_property_split = True
        layout.prop(self, "memory", text="Playback Memory (MB)")
        layout.prop(self, "nice")


def get():
    addon = bpy.context.preferences.addons.get(__package__)
    return addon.preferences if addon else None


def register():
    bpy.utils.register_class(ToilePreferences)


def unregister():
    bpy.utils.unregister_class(ToilePreferences)
