"""A garment's mesh as the job takes it: faces of three or four corners, material coordinates, panels with their fabrics,
pins. Numpy in, numpy out, besides what is read from Blender's mesh.

Material coordinates may have a frame of their own in every face (bridge/toile.h): so a mesh that is not flat is cut to
exactly its own size, triangle by triangle, and only the grain's direction has to be chosen."""
import numpy

from . import bridge, compat, sewing
from .properties import FABRIC, MAPS, clean, value

LEVELS = 16                     # steps of soft pins between weight 0 and 1
FLAT = 1e-3                     # a quad bent by more than this share of its size is cut into triangles


class Faces:
    """Corners of all faces: sizes, loops (places in the mesh's corners), vertices, polygon of each."""

    def __init__(self, sizes, loops, vertices, polygons):
        self.sizes, self.loops, self.vertices, self.polygons = sizes, loops, vertices, polygons
        self.begin = numpy.concatenate(([0], numpy.cumsum(sizes)[:-1])).astype(numpy.int64)


def _get(collection, name, dtype, width=1):
    out = numpy.empty(len(collection) * width, dtype)
    collection.foreach_get(name, out)
    return out


def read_faces(mesh, points):
    """Quads that are nearly flat stay, everything else becomes triangles."""
    start, total = _get(mesh.polygons, "loop_start", numpy.int32), _get(mesh.polygons, "loop_total", numpy.int32)
    vertices = _get(mesh.loops, "vertex_index", numpy.int32)
    keep = total == 3
    quads = numpy.nonzero(total == 4)[0]
    if len(quads):
        corner = points[vertices[start[quads][:, None] + numpy.arange(4)]]
        across, along = corner[:, 2] - corner[:, 0], corner[:, 3] - corner[:, 1]
        normal = numpy.cross(across, along)
        length = numpy.linalg.norm(normal, axis=1)
        height = numpy.abs(((corner[:, 1] - corner[:, 0]) * normal).sum(1))
        keep[quads] = height <= FLAT * length * numpy.linalg.norm(across, axis=1)
    kept = numpy.nonzero(keep)[0]
    sizes = total[kept]
    loops = numpy.repeat(start[kept], sizes) + _count_up(sizes)
    polygons = kept.astype(numpy.int32)
    if len(kept) < len(total):
        mesh.calc_loop_triangles()
        owner = _get(mesh.loop_triangles, "polygon_index", numpy.int32)
        cut = _get(mesh.loop_triangles, "loops", numpy.int32, 3).reshape(-1, 3)
        chosen = ~keep[owner]
        sizes = numpy.concatenate((sizes, numpy.full(chosen.sum(), 3, numpy.int32)))
        loops = numpy.concatenate((loops, cut[chosen].ravel()))
        polygons = numpy.concatenate((polygons, owner[chosen]))
    return Faces(sizes.astype(numpy.int32), loops, vertices[loops], polygons)


def _count_up(sizes):
    """0 1 2 0 1 2 3 ... for sizes 3, 4, ..."""
    ends = numpy.cumsum(sizes)
    return numpy.arange(ends[-1] if len(ends) else 0) - numpy.repeat(ends - sizes, sizes)


# ---- material coordinates ----

def grain(faces, points, uv):
    """Unit warp direction in every face: along u of the UV map, else along Z, else (faces that lie flat) along X."""
    p = points[faces.vertices]
    a, b, c = (p[faces.begin + k] for k in range(3))
    e1, e2 = b - a, c - a
    normal = numpy.cross(e1, e2)
    normal /= numpy.maximum(numpy.linalg.norm(normal, axis=1, keepdims=True), 1e-30)
    warp = numpy.tile([0.0, 0.0, 1.0], (len(a), 1))
    warp[numpy.abs(normal[:, 2]) > 0.9] = (1.0, 0.0, 0.0)
    if uv is not None:
        t = uv[faces.loops].astype(numpy.float64)
        d1, d2 = t[faces.begin + 1] - t[faces.begin], t[faces.begin + 2] - t[faces.begin]
        det = d1[:, 0] * d2[:, 1] - d2[:, 0] * d1[:, 1]
        good = numpy.abs(det) > 1e-14
        along = (e1 * d2[:, 1:2] - e2 * d1[:, 1:2]) * numpy.sign(det)[:, None]
        warp[good] = along[good]
    warp = warp - normal * (warp * normal).sum(1, keepdims=True)
    length = numpy.linalg.norm(warp, axis=1, keepdims=True)
    e1n = e1 / numpy.maximum(numpy.linalg.norm(e1, axis=1, keepdims=True), 1e-30)
    warp = numpy.where(length > 1e-12, warp / numpy.maximum(length, 1e-30), e1n)
    return warp, numpy.cross(normal, warp)


def cut_to_mesh(faces, points, uv):
    """Every face as large as in `points` (metres), laid flat with its warp along u."""
    warp, weft = grain(faces, points, uv)
    p = points[faces.vertices] - numpy.repeat(points[faces.vertices[faces.begin]], faces.sizes, axis=0)
    return numpy.stack(((p * numpy.repeat(warp, faces.sizes, axis=0)).sum(1),
                        (p * numpy.repeat(weft, faces.sizes, axis=0)).sum(1)), axis=1)


def _areas(faces, coordinates):
    """Area of all faces together, of two- or three-dimensional corners."""
    c = numpy.pad(coordinates, ((0, 0), (0, 3 - coordinates.shape[1])))
    quads = faces.begin[faces.sizes == 4]
    corners = [(faces.begin, 1, 2), (quads, 2, 3)]
    return sum(0.5 * numpy.linalg.norm(numpy.cross(c[a + i] - c[a], c[a + j] - c[a]), axis=1).sum() for a, i, j in corners)


def cut_to_uv(ob, faces, points, uv, scale):
    if uv is None:
        raise bridge.Invalid("INVALID", f"\"{ob.name}\" has no UV map to be cut to. Unwrap it, or choose another rest shape")
    corner = uv[faces.loops].astype(numpy.float64)
    if scale == 0:
        flat = _areas(faces, corner)
        if flat <= 0:
            raise bridge.Invalid("INVALID", f"\"{ob.name}\": its UV map has no area. Unwrap it, or choose another "
                                            "rest shape")
        scale = (_areas(faces, points[faces.vertices]) / flat) ** 0.5
    return corner * scale


# ---- vertex groups ----

def weights(ob, name):
    """Weights of a vertex group, (vertices); None if no group is named. Raises if the group is not there."""
    if not name:
        return None
    group = ob.vertex_groups.get(name)
    if group is None:
        raise bridge.Invalid("INVALID", f"\"{ob.name}\" has no vertex group \"{name}\". Choose another, or clear the field")
    out, index = numpy.zeros(len(ob.data.vertices)), group.index
    for v in ob.data.vertices:
        for g in v.groups:
            if g.group == index:
                out[v.index] = g.weight
                break
    return out


def _no_pins(ob):
    need = "" if ob.toile.garment.pin_stiffness else " above one half"
    return bridge.Invalid("INVALID", f"\"{ob.name}\": no vertex of the pin group \"{ob.toile.garment.pin_group}\" has a "
                                     f"weight{need}. Give it some, or clear the field")


def pin_levels(ob, weight, steps=LEVELS):
    """How firmly each vertex is held, in `steps` steps; 0: not at all. Rigid pins hold or do not."""
    if ob.toile.garment.pin_stiffness > 0:
        return numpy.ceil(numpy.clip(weight, 0, 1) * steps - 1e-6).astype(numpy.int32)
    return numpy.where(weight > 0.5, steps, 0)


def pins(ob):
    """[(vertices, rising; stiffness in N/m, 0 for rigid)] of a garment, one for each step of its weights."""
    weight = weights(ob, ob.toile.garment.pin_group)
    if weight is None:
        return []
    levels = pin_levels(ob, weight)
    made = [(numpy.nonzero(levels == n)[0], clean(ob.toile.garment.pin_stiffness * n / LEVELS))
            for n in numpy.unique(levels) if n > 0]
    if not made:
        raise _no_pins(ob)
    return made


def moving_pins(ob, weight, first):
    """The same where weights change, (frames x vertices): [(vertices, stiffness, first frame, last frame)]. As many steps
    as a scene has room for."""
    for steps in (LEVELS, 8, 4, 2, 1):
        found = {}
        levels = numpy.stack([pin_levels(ob, w, steps) for w in weight])
        for v in numpy.nonzero(levels.any(axis=0))[0]:
            column = levels[:, v]
            bounds = numpy.concatenate(([0], numpy.nonzero(numpy.diff(column))[0] + 1, [len(column)]))
            for a, b in zip(bounds[:-1], bounds[1:]):
                if column[a]:
                    found.setdefault((int(column[a]), int(a), int(b)), []).append(int(v))
        if len(found) <= 500:
            break
    if not found:
        raise _no_pins(ob)
    if len(found) > 900:
        raise bridge.Invalid("INVALID", f"\"{ob.name}\": the weights of its pin group change in too many ways. Let fewer "
                                        "frames change them, or set the pin stiffness to 0")
    stiffness = ob.toile.garment.pin_stiffness
    return [(numpy.array(vertices), clean(stiffness * level / steps), first + a, first + b - 1)
            for (level, a, b), vertices in sorted(found.items())]


def pinned(ob):
    """Vertices that are held, rising."""
    found = [vertices for vertices, _ in pins(ob)]
    return numpy.sort(numpy.concatenate(found)) if found else numpy.empty(0, numpy.int64)


# ---- panels and fabrics ----

def fabric(garment):
    return {row["id"]: value(garment, row) for row in FABRIC}


ACTS_ON = {"stretch": ("stretch_warp", "stretch_weft", "shear"), "bend": ("bend_warp", "bend_weft"),
           "density": ("density",), "shrink": ("scale_u", "scale_v"), "length": ("scale_u",)}


def map_amounts(ob):
    """What weight 1 does in each map now."""
    return [getattr(ob.toile.garment, f"map_{name}") for name, *_ in MAPS]


def _keys(amounts, most, first):
    """Of amounts that change from frame to frame, relative to the largest, where they are not on a straight line."""
    part = (amounts - 1) / (most - 1)
    bent = numpy.abs(numpy.diff(part, 2)) > 1e-6
    kept = numpy.nonzero(numpy.concatenate(([True], bent, [True])))[0]
    return [{"frame": first + int(i), "value": clean(part[i])} for i in kept]


def maps(ob, amounts, first):
    """Factors on the fabric, vertex by vertex, as the scene takes them; `amounts` of all frames from the first on."""
    made, garment = [], ob.toile.garment
    for (name, *_), now in zip(MAPS, numpy.array(amounts).T):
        weight, most = weights(ob, getattr(garment, f"map_{name}_group")), now[numpy.argmax(numpy.abs(now - 1))]
        if weight is None or most == 1:
            continue
        factors = numpy.clip(1 + (most - 1) * weight, 0.001, 1000)
        entry = {"values": [clean(f) for f in factors.tolist()]}
        if (now != most).any():
            entry["keys"] = _keys(now, most, first)
        made += [{"property": key, **entry} for key in ACTS_ON[name]]
    return made


def panels(ob, faces):
    """Names, and the panel of each face: its material, the piece between marked seams, or the island of the UV map."""
    mesh, parted = ob.data, sewing.parting(ob)
    if parted is not None:
        pieces = sewing.islands(mesh, parted)
        return [f"panel {i + 1}" for i in range(pieces.max() + 1)], pieces[faces.polygons]
    kinds, face_panels = numpy.unique(_get(mesh.polygons, "material_index", numpy.int32)[faces.polygons],
                                      return_inverse=True)
    names = []
    for material in kinds.tolist():
        slot = mesh.materials[material] if material < len(mesh.materials) else None
        name = (slot.name if slot else "panel").replace("/", "_")[:80]
        while name in names:
            name += "'"
        names.append(name)
    return names, face_panels.reshape(-1).astype(numpy.int32)


# ---- the whole garment ----

def rest_points(ob, matrix, scale):
    """The shape that the cloth is cut to, metres: the mesh or a shape key, at the object's size."""
    mesh, garment = ob.data, ob.toile.garment
    points = numpy.empty((len(mesh.vertices), 3), numpy.float32)
    if garment.rest_shape == 'SHAPE_KEY':
        key = mesh.shape_keys.key_blocks.get(garment.rest_key) if mesh.shape_keys else None
        if key is None:
            raise bridge.Invalid("INVALID", f"\"{ob.name}\" has no shape key \"{garment.rest_key}\". Choose another, or "
                                            "another rest shape")
        key.data.foreach_get("co", points.ravel())
    else:
        compat.get_positions(mesh, points)
    return points.astype(numpy.float64) @ (numpy.array(matrix, numpy.float64)[:3, :3].T * scale)


def read(ob, matrix, scale):
    """(Faces, material coordinates, panel names, face panels) of a garment."""
    mesh, garment = ob.data, ob.toile.garment
    if len(mesh.polygons) == 0:
        raise bridge.Invalid("INVALID", f"\"{ob.name}\" has no faces. A garment is a surface: add faces, or take the "
                                        "object out")
    flat = [axis for axis, size in zip("XYZ", matrix.to_scale()) if abs(size) < 1e-9]
    if flat:
        raise bridge.Invalid("INVALID", f"garment \"{ob.name}\" is scaled to nothing along {' and '.join(flat)}. Give it a "
                                        "scale there, or a parent that has one")
    points = rest_points(ob, matrix, scale)
    uv = compat.uv_layer(mesh, garment.uv_map)
    faces = read_faces(mesh, points)
    if garment.rest_shape == 'UV':
        corner_uv = cut_to_uv(ob, faces, points, uv, garment.uv_scale * scale)
    else:
        corner_uv = cut_to_mesh(faces, points, uv)
    return (faces, corner_uv) + panels(ob, faces)
