"""Toile for Blender: garments that are baked by a separate process and played from a cache.

One topic, one file; this one only says what is registered, in which order. Nothing here or below imports the native
library at import time: if it cannot be loaded the panels still appear and say why (native.py)."""
bl_info = {
    "name": "Toile",
    "author": "Toile developers",
    "version": (0, 1, 0),
    "blender": (3, 4, 0),
    "location": "Properties > Physics, 3D View > Sidebar > Toile",
    "description": "Garments of real fabrics, simulated against moving bodies and baked in the background",
    "category": "Physics",
}

from . import (preferences, properties, translations, modifier, playback, overlays, statistics, jobs, operators_setup,
               shaping, operators_bake, operators_versions, operators_apply, operators_export, operators_import, farm,
               presets, panels)

# Each has register() and unregister(). Properties come before what uses them.
TOPICS = (preferences, properties, translations, playback, overlays, statistics, jobs, operators_setup, shaping,
          operators_bake, operators_versions, operators_apply, operators_export, operators_import, farm, presets, panels)


def register():
    done = []
    try:
        for topic in TOPICS:
            topic.register()
            done.append(topic)
    except Exception:
        for topic in reversed(done):
            topic.unregister()
        raise


def unregister():
    for topic in reversed(TOPICS):
        topic.unregister()
