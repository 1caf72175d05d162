"""Figures of a bake: those of the frame in view, sums by stage from the bake's report, and a small graph over all frames."""
import json
import os

import bpy
import bpy.utils.previews
import numpy
from bpy.props import EnumProperty

from . import bridge, paths, playback

CURVES = (("seconds", "Seconds", "Time spent on each frame"), ("iterations", "Iterations", "Of the linear solver"),
          ("max_stretch", "Stretch", "Largest stretch"), ("contacts", "Contacts", "Vertices held by colliders"))
SIZE = 128                  # pixels of the graph
MOST = 100                  # frames whose figures are read at one drawing
_previews = None
_series = {}                # cache path -> list of figures by frame
_drawn = None               # what the graph shows


def series(path):
    """Figures of every finished frame; only new ones are read, and not so many that drawing would wait."""
    info, last = playback.store.info(path)
    known = _series.setdefault((path, info["fingerprint"]), [])
    begin = info["first_frame"] + len(known)
    for frame in range(begin, min(last + 1, begin + MOST)):
        known.append(playback.store.figures(path, frame))
    return info["first_frame"], known


def at(scene, path):
    """Figures of the frame in view and its number."""
    first, known = series(path)
    if not known:
        return None, None
    index = max(0, min(scene.frame_current - first, len(known) - 1))
    return first + index, known[index]


def report(path):
    """The bake's own report, or None."""
    try:
        with open(paths.report_of(path), encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return None


def picture(values, mark=None):
    """A curve from left to right, filled below, with a line at the marked place: (SIZE x SIZE x 4), bottom row first."""
    image = numpy.zeros((SIZE, SIZE, 4), numpy.float32)
    image[:, :, :] = (0.12, 0.12, 0.12, 1)
    values = numpy.nan_to_num(numpy.asarray(values, float))
    if len(values):
        top = max(values.max(), 1e-12)
        at_pixel = numpy.interp(numpy.linspace(0, len(values) - 1, SIZE), numpy.arange(len(values)), values)
        heights = numpy.clip(numpy.rint(at_pixel / top * (SIZE - 8)), 0, SIZE - 1).astype(int)
        rows = numpy.arange(SIZE)[:, None]
        image[rows[:, 0][:, None] <= heights[None, :]] = (0.25, 0.38, 0.55, 1)
        image[numpy.abs(rows - heights[None, :]) <= 1] = (0.55, 0.75, 1.0, 1)
        if mark is not None and len(values) > 1:
            column = int(round(mark / (len(values) - 1) * (SIZE - 1)))
            image[:, min(max(column, 0), SIZE - 1)] = (1.0, 0.6, 0.1, 1)
    return image


def graph(scene, path, name):
    """Icon of the graph, drawn again only when it would look different."""
    global _drawn, _previews
    first, known = series(path)
    wanted = (path, name, len(known), scene.frame_current)
    if _previews is None:
        _previews = bpy.utils.previews.new()
    if "graph" not in _previews or _drawn != wanted:
        preview = _previews["graph"] if "graph" in _previews else _previews.new("graph")
        preview.image_size = (SIZE, SIZE)
        preview.image_pixels_float.foreach_set(picture([f[name] for f in known], scene.frame_current - first).ravel()) \
            if hasattr(preview.image_pixels_float, "foreach_set") else None
        _drawn = wanted
    return _previews["graph"].icon_id


def draw(layout, context):
    """The body of the statistics panel."""
    ob, scene = context.object, context.scene
    path = paths.of(ob) if ob and ob.toile.cache_path else ""
    if not path or not os.path.exists(path):
        layout.label(text="No cache yet", icon='INFO')
        return
    try:
        frame, figures = at(scene, path)
        if figures is None:
            return
        info, last = playback.store.info(path)
        if context.area and info["first_frame"] + len(series(path)[1]) <= last:
            context.area.tag_redraw()
        choice = context.window_manager.toile_curve
        layout.row().prop(context.window_manager, "toile_curve", expand=True)
        layout.template_icon(icon_value=graph(scene, path, choice), scale=7)
    except bridge.Error as error:
        layout.label(text=str(error), icon='ERROR', translate=False)
        return
    grid = layout.column(align=True)
    for text, shown in (
            (f"Frame {frame}", f"{figures['seconds']:.3g} s"),
            ("Steps", f"{figures['steps']:.0f}, {figures['rejected_steps']:.0f} taken back"),
            ("Iterations", f"{figures['iterations']:.0f}"),
            ("Largest stretch", f"{100 * figures['max_stretch']:.2f} %"),
            ("Contacts", f"{figures['contacts']:.0f}"),
            ("Inside colliders", f"{figures['penetrations']:.0f}")):
        row = grid.split(factor=0.5)
        row.label(text=text)
        row.label(text=shown, translate=False)
    found = report(path)
    if found:
        box = layout.column(align=True)
        box.label(text=f"{found['seconds']:.3g} s for {found['frames']} frames", translate=False)
        total = sum(found["stages"].values()) or 1
        for stage, seconds in found["stages"].items():
            row = box.split(factor=0.5)
            row.label(text=stage.replace("_", " ").capitalize())
            row.label(text=f"{seconds:.3g} s, {100 * seconds / total:.0f} %", translate=False)


def register():
    bpy.types.WindowManager.toile_curve = EnumProperty(name="Curve", items=CURVES)


def unregister():
    global _previews, _drawn
    del bpy.types.WindowManager.toile_curve
    if _previews is not None:
        bpy.utils.previews.remove(_previews)
        _previews = None
    _series.clear()
    _drawn = None
