"""Presets of fabrics and settings, saved as Blender saves its own: Python files under scripts/presets/toile."""
import bpy
from bl_operators.presets import AddPresetBase
from bl_ui.utils import PresetPanel

from . import properties


class TOILE_MT_fabric_presets(bpy.types.Menu):
    bl_label = "Fabric Presets"
    preset_subdir = "toile/fabric"
    preset_operator = "script.execute_preset"
    draw = bpy.types.Menu.draw_preset


class TOILE_MT_settings_presets(bpy.types.Menu):
    bl_label = "Settings Presets"
    preset_subdir = "toile/settings"
    preset_operator = "script.execute_preset"
    draw = bpy.types.Menu.draw_preset


class TOILE_PT_fabric_presets(PresetPanel, bpy.types.Panel):
    bl_label = "Fabric Presets"
    preset_subdir = "toile/fabric"
    preset_operator = "script.execute_preset"
    preset_add_operator = "toile.fabric_preset_add"


class TOILE_PT_settings_presets(PresetPanel, bpy.types.Panel):
    bl_label = "Settings Presets"
    preset_subdir = "toile/settings"
    preset_operator = "script.execute_preset"
    preset_add_operator = "toile.settings_preset_add"


class TOILE_OT_fabric_preset_add(AddPresetBase, bpy.types.Operator):
    """Keep this fabric under a name"""
    bl_idname = "toile.fabric_preset_add"
    bl_label = "Add Fabric Preset"
    preset_menu = "TOILE_MT_fabric_presets"
    preset_subdir = "toile/fabric"
    preset_defines = ["garment = bpy.context.object.toile.garment"]

    @property
    def preset_values(self):
        return [f"garment.{row['id']}" for row in properties.FABRIC]


class TOILE_OT_settings_preset_add(AddPresetBase, bpy.types.Operator):
    """Keep these settings under a name"""
    bl_idname = "toile.settings_preset_add"
    bl_label = "Add Settings Preset"
    preset_menu = "TOILE_MT_settings_presets"
    preset_subdir = "toile/settings"
    preset_defines = ["settings = bpy.context.scene.toile"]

    @property
    def preset_values(self):
        return [f"settings.{row['id']}" for row in properties.SETTINGS]


CLASSES = (TOILE_MT_fabric_presets, TOILE_MT_settings_presets, TOILE_PT_fabric_presets, TOILE_PT_settings_presets,
           TOILE_OT_fabric_preset_add, TOILE_OT_settings_preset_add)


def register():
    for cls in CLASSES:
        bpy.utils.register_class(cls)


def unregister():
    for cls in reversed(CLASSES):
        bpy.utils.unregister_class(cls)
