"""From the scene to a job: garments once, then collider meshes and pins as Blender evaluates them, frame by frame.

A Capture is asked for one frame at a time (step), so that the caller can show progress and let Blender draw in between.
Whatever happens, finish() or abandon() puts the scene back as it was."""
import os

import bpy
import numpy

from . import bridge, compat, mesh_read, modifier, native, playback, sewing, shaping
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


def _finite(ob, what, points, frame):
    bad = numpy.nonzero(~numpy.isfinite(points).all(axis=1))[0]
    if len(bad):
        raise bridge.Invalid("INVALID", f"{what} \"{ob.name}\": vertex {bad[0]} is nowhere (not a number) at frame {frame}. "
                                        "Delete it, or look at the modifiers and drivers that move it")


class Capture:
    def __init__(self, context, job_path):
        self.scene = scene = context.scene
        self.first, self.last = frame_range(scene)
        self._kept = (scene.frame_current, scene.frame_subframe)
        self._hidden, self._disabled, self.left_out = [], [], []
        self.garments, self.colliders = (self._taking_part(context, objects(scene, role))
                                         for role in ('GARMENT', 'COLLIDER'))
        if not self.garments:
            raise bridge.Invalid("INVALID", "there is no garment to bake; " + self.left_out_text() if self.left_out else
                                 "there is no garment in the scene. Select a mesh and press Physics > Toile Garment")
        self.names = job_names(self.garments)
        self.collider_names = job_names(self.colliders)
        self._instances = {}                # place in a collection instance: (name in the job, instancer's full name)
        self.scale = scene.unit_settings.scale_length
        self.fps = scene.render.fps / scene.render.fps_base
        self.frame = self.first
        self._tracks, self._counts, self._pins, self._moving, self._amounts = {}, {}, {}, {}, {}
        self._colliders, self._garments_json, self._pins_json = [], [], []
        self._pressure = {name: [] for name in self.names.values()}
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

    @property
    def owners(self):
        """Full name of the object that each name in the job stands for."""
        return {**{job: full for full, job in list(self.names.items()) + list(self.collider_names.items())},
                **dict(self._instances.values())}

    # ---- the scene as it is captured, and back ----

    def _taking_part(self, context, obs):
        """Those that Blender evaluates: not what is in a collection that is excluded or disabled."""
        here, depsgraph = set(context.view_layer.objects), context.evaluated_depsgraph_get()
        part = [ob for ob in obs if ob in here and (ob.hide_viewport or ob.evaluated_get(depsgraph).is_evaluated)]
        self.left_out += [ob.name for ob in obs if ob not in part]
        return part

    def left_out_text(self):
        names = ", ".join(f"\"{name}\"" for name in self.left_out)
        return f"left out: {names}, in a collection that is excluded or disabled in the viewport. Enable it in the outliner"

    def _hide(self):
        """Garments show their modifiers above Toile only: what they are before the simulation. What is disabled in the
        viewport is enabled: Blender would not move it."""
        for ob in self.garments + self.colliders:
            if ob.hide_viewport:
                self._disabled.append(ob)
                ob.hide_viewport = False
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
        for ob in self._disabled:
            try:
                ob.hide_viewport = True
            except ReferenceError:
                pass
        self._hidden, self._disabled = [], []
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
            shown = ob.evaluated_get(depsgraph)
            if not shown.is_evaluated or shown.hide_viewport:
                raise bridge.Invalid("INVALID", (
                    f"collider \"{ob.name}\" is disabled in the viewport at frame {self.frame}, by a key or a driver. A "
                    "collider stays to the end: take that out, or hide it in renders only"))
            self._collider(ob, self.collider_names[ob.name_full], shown, shown.matrix_world)
        if any(ob.instance_type == 'COLLECTION' for ob in self.scene.objects):
            self._instanced_colliders(depsgraph)
        for ob in self.garments:
            self._amounts.setdefault(self.names[ob.name_full], []).append(mesh_read.map_amounts(ob))
            self._garment(ob, depsgraph)
            self._pressure[self.names[ob.name_full]].append(ob.evaluated_get(depsgraph).toile.garment.pressure)
        self.frame += 1
        return self.frame > self.last

    def _instanced_colliders(self, depsgraph):
        """Colliders that collection instances show, as characters are that were linked without an override."""
        found = set()
        for one in depsgraph.object_instances:
            if not one.is_instance or one.parent.instance_type != 'COLLECTION':
                continue
            owner, ob = one.parent.original, one.object.original
            if ob.toile.role != 'COLLIDER':
                continue
            key = (owner.name_full, ob.name_full, tuple(one.persistent_id))
            if self.frame == self.first:
                label = f"{owner.name} {ob.name}".replace("/", "_")[:80]
                while label in self.owners:
                    label += "'"
                self._instances[key] = (label, owner.name_full)
            if key in self._instances:
                found.add(key)
                self._collider(ob, self._instances[key][0], one.object, one.matrix_world.copy())
        for label, owner in (self._instances[key] for key in self._instances.keys() - found):
            raise bridge.Invalid("INVALID", f"collider \"{label}\" is no longer shown by its instance at frame "
                                            f"{self.frame}. A collider stays to the end: keep the instance enabled")

    def _collider(self, ob, name, shown, matrix):
        mesh = shown.to_mesh()
        try:
            if mesh is None or len(mesh.polygons) == 0:
                raise bridge.Invalid("INVALID", f"collider \"{ob.name}\" has no faces at frame {self.frame}. A collider "
                                                "is a surface: give it faces, or take it out")
            counts = (len(mesh.vertices), len(mesh.polygons), len(mesh.loops))
            points = world_points(mesh, matrix, self.scale)
            _finite(ob, "collider", points, self.frame)
            if self.frame == self.first:
                self._counts[name] = counts
                self._add_collider(ob, name, mesh, points, matrix.is_negative)
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
        _finite(ob, "garment", points, self.frame)
        if self.frame == self.first:
            self._add_garment(ob, name, shown, points)
        for track, held in self._pins[name]:
            if track is not None:
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
        bands = shaping.elastic(ob)
        if bands:
            entry["elastic"] = bands
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
        """Adds a pin to the scene; its track, to be filled (none if it stays on a surface), and its vertices."""
        pin = {"garment": name, "name": f"pins {name} {len(self._pins_json) + 1}", "select": {"vertices": held.tolist()}}
        surface = self._surface(ob)
        pin["surface" if surface else "track"] = surface or pin["name"]
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
        return (None, held) if surface else self._track(pin["name"], held)

    def _track(self, name, held):
        return self.job.add_track(name, self.first, len(held)), held

    def _surface(self, ob):
        """Name of the collider to whose surface a garment's pins go, or nothing."""
        target = ob.toile.garment.pin_surface
        if target is None:
            return None
        if target.name_full not in self.collider_names:
            raise bridge.Invalid("INVALID", f"\"{ob.name}\" is pinned to the surface of \"{target.name}\", which is no "
                                            "collider of this bake. Make it one, or clear Pin to Surface")
        return self.collider_names[target.name_full]

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
                for points, _ in seen if track is not None else ():
                    self.job.add_frame(track, points[held])

    def finish(self):
        """Writes the scene into the job and puts everything back."""
        self._add_moving_pins()
        for ob, entry in zip(self.garments, self._garments_json):
            factors = mesh_read.maps(ob, self._amounts[entry["name"]], self.first)
            if factors:
                entry["maps"] = factors
            pressure = shaping.pressure(self._pressure[entry["name"]], self.first)
            if pressure:
                entry["pressure"] = pressure
        scene = {"toile": 1, "name": "".join(c if c.isprintable() and c != "/" else "_" for c in self.scene.name)[:100],
                 "fps": clean(self.fps), "frames": [self.first, self.last], "settings": settings(self.scene),
                 "garments": self._garments_json, "colliders": self._colliders, "pins": self._pins_json}
        left_out = shaping.no_contact(self.garments, self.names, self.collider_names)
        if left_out:
            scene["no_contact"] = left_out
        self.job.finish(scene)
        self.job = None
        self._restore()
        return scene
