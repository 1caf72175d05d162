"""From the scene to a job: garments once, then collider meshes and pins as Blender evaluates them, frame by frame.

A Capture is asked for one frame at a time (step), so that the caller can show progress and let Blender draw in between.
Whatever happens, finish() or abandon() puts the scene back as it was."""
import os

import bpy
import numpy

from . import bridge, compat, mesh_read, modifier, native, playback, sewing
from .properties import SETTINGS, clean, value


def frame_range(scene):
    t = scene.toile
    if t.use_scene_range:
        return scene.frame_start, scene.frame_end
    return t.frame_start, max(t.frame_start, t.frame_end)


def objects(scene, role):
    return [ob for ob in scene.objects if ob.toile.role == role and (role != 'GARMENT' or ob.type == 'MESH')]


def job_names(obs):
    """A name for each object that the job bears: unique, no slash, not too long."""
    names, taken = {}, set()
    for ob in obs:
        base = "".join(c if c.isprintable() and c != "/" else "_" for c in ob.name)[:100] or "object"
        name, number = base, 2
        while name in taken:
            name, number = f"{base} {number}", number + 1
        taken.add(name)
        names[ob.name_full] = name
    return names


def settings(scene):
    scale = scene.unit_settings.scale_length
    made = {row["id"]: value(scene.toile, row, scale) for row in SETTINGS}
    if scene.toile.use_scene_gravity and "gravity" in made:
        made["gravity"] = [clean(g * scale) for g in scene.gravity] if scene.use_gravity else [0.0, 0.0, 0.0]
    return made


def collider_facts(ob, scale):
    c = ob.toile.collider
    both = {"side": "both"} if c.side == 'BOTH' else {}
    return {**both, "thickness": clean(min(c.thickness * scale, 1.0)), "friction_static": clean(c.friction),
            "friction_kinetic": clean(c.friction * c.friction_kinetic)}


def world_points(mesh, matrix, scale):
    """Vertices in the world, metres."""
    local = numpy.empty((len(mesh.vertices), 3), numpy.float32)
    compat.get_positions(mesh, local)
    m = numpy.array(matrix, numpy.float64)
    # single precision is what Blender had; the job then packs well
    return ((local @ m[:3, :3].T + m[:3, 3]) * scale).astype(numpy.float32)


class Capture:
    def __init__(self, context, job_path):
        self.scene = scene = context.scene
        self.first, self.last = frame_range(scene)
        self.garments, self.colliders = objects(scene, 'GARMENT'), objects(scene, 'COLLIDER')
        if not self.garments:
            raise bridge.Invalid("INVALID", "there is no garment in the scene. Select a mesh and press "
                                            "Physics > Toile Garment")
        self.names = job_names(self.garments)
        self.collider_names = job_names(self.colliders)
        self.scale = scene.unit_settings.scale_length
        self.fps = scene.render.fps / scene.render.fps_base
        self.frame = self.first
        self._kept = (scene.frame_current, scene.frame_subframe)
        self._hidden = []
        self._tracks, self._counts, self._pins, self._moving, self._amounts = {}, {}, {}, {}, {}
        self._colliders, self._garments_json, self._pins_json = [], [], []
        os.makedirs(os.path.dirname(job_path), exist_ok=True)
        self.job = native.library().create_job(job_path)
        playback.paused += 1
        try:
            self._hide()
        except Exception:
            self.abandon()
            raise

    @property
    def total(self):
        return self.last - self.first + 1

    @property
    def done(self):
        return self.frame - self.first

    # ---- the scene as it is captured, and back ----

    def _hide(self):
        """Garments show their modifiers above Toile only: what they are before the simulation."""
        for ob in self.garments:
            modifier.ensure(ob)
            modifier.put_below(ob)
            below = False
            for m in ob.modifiers:
                below = below or m == modifier.find(ob)
                if below and m.show_viewport:
                    self._hidden.append((ob, m.name))
                    m.show_viewport = False

    def _restore(self):
        for ob, name in self._hidden:
            try:
                ob.modifiers[name].show_viewport = True
            except (KeyError, ReferenceError):
                pass
        self._hidden = []
        playback.paused -= 1
        self.scene.frame_set(self._kept[0], subframe=self._kept[1])

    def abandon(self):
        if self.job is not None:
            self.job.close()
            self.job = None
            try:
                self._restore()
            except ReferenceError:          # another file was loaded
                pass

    # ---- frames ----

    def step(self):
        """Captures one frame; True when there are no more."""
        self.scene.frame_set(self.frame)
        depsgraph = bpy.context.evaluated_depsgraph_get()
        for ob in self.colliders:
            self._collider(ob, depsgraph)
        for ob in self.garments:
            self._amounts.setdefault(self.names[ob.name_full], []).append(mesh_read.map_amounts(ob))
            self._garment(ob, depsgraph)
        self.frame += 1
        return self.frame > self.last

    def _collider(self, ob, depsgraph):
        shown = ob.evaluated_get(depsgraph)
        mesh = shown.to_mesh()
        try:
            if mesh is None or len(mesh.polygons) == 0:
                raise bridge.Invalid("INVALID", f"collider \"{ob.name}\" has no faces at frame {self.frame}. A collider "
                                                "is a surface: give it faces, or take it out")
            name, counts = self.collider_names[ob.name_full], (len(mesh.vertices), len(mesh.polygons), len(mesh.loops))
            points = world_points(mesh, shown.matrix_world, self.scale)
            if self.frame == self.first:
                self._counts[name] = counts
                self._add_collider(ob, name, mesh, points, shown.matrix_world.is_negative)
            if counts != self._counts[name]:
                raise bridge.Invalid("INVALID", (
                    f"collider \"{ob.name}\" has {counts[0]} vertices and {counts[1]} faces at frame {self.frame} but "
                    f"{self._counts[name][0]} and {self._counts[name][1]} at frame {self.first}. A collider keeps its "
                    "vertices and faces: turn off modifiers that change them, such as Decimate, Boolean, Remesh or Build"))
            self.job.add_frame(self._tracks[name], points)
        finally:
            shown.to_mesh_clear()

    def _add_collider(self, ob, name, mesh, points, mirrored):
        mesh.calc_loop_triangles()
        corners = numpy.empty(3 * len(mesh.loop_triangles), numpy.int32)
        mesh.loop_triangles.foreach_get("vertices", corners)
        corners = corners.reshape(-1, 3)
        if mirrored != (ob.toile.collider.side == 'INSIDE'):
            corners = corners[:, ::-1]
        sizes = numpy.full(len(corners), 3, numpy.int32)
        self.job.add_mesh("collider " + name, points, sizes, corners.ravel())
        self._tracks[name] = self.job.add_track("collider " + name, self.first, len(points))
        self._colliders.append({"name": name, "shape": "mesh", "mesh": "collider " + name, "track": "collider " + name,
                                **collider_facts(ob, self.scale)})

    def _garment(self, ob, depsgraph):
        name = self.names[ob.name_full]
        if self.frame > self.first and not self._pins[name] and name not in self._moving:
            return
        shown = ob.evaluated_get(depsgraph)
        mesh = shown.data
        if len(mesh.vertices) != len(ob.data.vertices):
            culprit = next((m.name for m in ob.modifiers if m.show_viewport and m.type not in modifier.DEFORMING),
                           "a modifier")
            raise bridge.Invalid("INVALID", (
                f"garment \"{ob.name}\" has {len(mesh.vertices)} vertices after its modifiers but {len(ob.data.vertices)} "
                f"before. Move \"{culprit}\" below the Toile modifier, or apply it"))
        points = world_points(mesh, shown.matrix_world, self.scale)
        if self.frame == self.first:
            self._add_garment(ob, name, shown, points)
        for track, held in self._pins[name]:
            self.job.add_frame(track, points[held])
        if name in self._moving:
            self._moving[name].append((points, mesh_read.weights(shown, ob.toile.garment.pin_group)))

    def _add_garment(self, ob, name, shown, points):
        faces, uv, panel_names, face_panels = mesh_read.read(ob, shown.matrix_world, self.scale)
        if ob.toile.use_start and ob.data.attributes.get(modifier.START) is not None:
            start = numpy.empty((len(points), 3), numpy.float32)
            ob.data.attributes[modifier.START].data.foreach_get("vector", start.ravel())
            m = numpy.array(shown.matrix_world, numpy.float64)
            points = ((start @ m[:3, :3].T + m[:3, 3]) * self.scale).astype(numpy.float32)
        vertices = faces.vertices
        if shown.matrix_world.is_negative:
            order = numpy.concatenate([numpy.arange(b + s - 1, b - 1, -1) for b, s in zip(faces.begin, faces.sizes)])
            vertices, uv = vertices[order], uv[order]
        self.job.add_mesh("garment " + name, points, faces.sizes, vertices, uv, panel_names, face_panels)
        entry = {"name": name, "mesh": "garment " + name, "fabric": mesh_read.fabric(ob.toile.garment),
                 "keep_start_angles": ob.toile.garment.keep_folds}
        garment = ob.toile.garment
        if garment.layer and native.knows("layer"):
            entry["layer"] = garment.layer
        mesh_read.maps(ob, self._amounts[name], self.first)     # raises if a group is not there
        pairs = sewing.stitches(ob)
        if len(pairs):
            entry["sewing"] = sewing.schedule(ob, pairs)
        self._garments_json.append(entry)
        if garment.pin_group and modifier.changes_weights(ob, garment.pin_group):
            mesh_read.weights(ob, garment.pin_group)    # raises if the group is not there
            self._pins[name], self._moving[name] = [], []
        else:
            self._pins[name] = [self._pin(ob, name, held, stiffness) for held, stiffness in mesh_read.pins(ob)]

    def _pin(self, ob, name, held, stiffness, frames=None):
        """Adds a pin to the scene; its track, to be filled, and its vertices."""
        pin = {"garment": name, "name": f"pins {name} {len(self._pins_json) + 1}", "select": {"vertices": held.tolist()}}
        pin["track"] = pin["name"]
        if stiffness:
            pin["stiffness"] = stiffness
        axes = "".join(a for a in "xyz" if a.upper() in ob.toile.garment.pin_axes)
        if axes not in ("xyz", ""):
            pin["axes"] = axes
        end = ob.toile.garment.pin_end if ob.toile.garment.use_pin_end else None
        if frames is not None or end is not None:
            first, last = frames or (self.first, self.last)
            last = last if end is None else min(last, end)
            pin["frames"] = [min(first, last), last]
        self._pins_json.append(pin)
        return self.job.add_track(pin["name"], self.first, len(held)), held

    def _add_moving_pins(self):
        """Those whose weights change are known when all frames are."""
        for ob in self.garments:
            name = self.names[ob.name_full]
            seen = self._moving.get(name)
            if not seen:
                continue
            end = ob.toile.garment.pin_end if ob.toile.garment.use_pin_end else self.last
            for held, stiffness, first, last in mesh_read.moving_pins(ob, [w for _, w in seen], self.first):
                if first > end:
                    continue
                track, held = self._pin(ob, name, held, stiffness, (first, last))
                for points, _ in seen:
                    self.job.add_frame(track, points[held])

    def finish(self):
        """Writes the scene into the job and puts everything back."""
        self._add_moving_pins()
        for ob, entry in zip(self.garments, self._garments_json):
            factors = mesh_read.maps(ob, self._amounts[entry["name"]], self.first)
            if factors:
                entry["maps"] = factors
        scene = {"toile": 1, "name": "".join(c if c.isprintable() and c != "/" else "_" for c in self.scene.name)[:100],
                 "fps": clean(self.fps), "frames": [self.first, self.last], "settings": settings(self.scene),
                 "garments": self._garments_json, "colliders": self._colliders, "pins": self._pins_json}
        self.job.finish(scene)
        self.job = None
        self._restore()
        return scene
