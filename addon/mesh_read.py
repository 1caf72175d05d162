"""A garment's mesh as the job takes it: faces of three or four corners, material coordinates, panels with their fabrics,
pins. Numpy in, numpy out, besides what is read from Blender's mesh.

Material coordinates may have a frame of their own in every face (bridge/toile.h): so a mesh that is not flat is cut to
exactly its own size, triangle by triangle, and only the grain's direction has to be chosen."""
import numpy

from . import bridge, compat
from .properties import FABRIC, MAPS, clean, value

LEVELS = 16                     # steps of a property map between weight 0 and 1
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

def _grain(faces, points, uv):
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
    warp, weft = _grain(faces, points, uv)
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


def pinned(ob):
    """Vertices that are held, rising."""
    held = weights(ob, ob.toile.garment.pin_group)
    if held is None:
        return numpy.empty(0, numpy.int64)
    found = numpy.nonzero(held > 0.5)[0]
    if len(found) == 0:
        raise bridge.Invalid("INVALID", f"\"{ob.name}\": no vertex of the pin group \"{ob.toile.garment.pin_group}\" has a "
                                        "weight above one half. Give it some, or clear the field")
    return found


def sewing_edges(mesh):
    """Edges that no face has, as pairs of vertices: Blender's own cloth sews along these."""
    if len(mesh.edges) == 0:
        return []
    loose = numpy.ones(len(mesh.edges), bool)
    loose[_get(mesh.loops, "edge_index", numpy.int32)] = False
    return _get(mesh.edges, "vertices", numpy.int32, 2).reshape(-1, 2)[loose].tolist()


# ---- panels and fabrics ----

def fabric(garment):
    return {row["id"]: value(garment, row) for row in FABRIC}


def _changed_fabric(base, levels, garment):
    """The fabric where the maps have these levels (0 to LEVELS)."""
    made, scale = dict(base), 1.0
    for (name, *_), level in zip(MAPS, levels):
        by = 1 + (getattr(garment, f"map_{name}") - 1) * level / LEVELS
        if name == "stretch":
            for key in ("stretch_warp", "stretch_weft", "shear"):
                made[key] = clean(made[key] * by)
        elif name == "bend":
            for key in ("bend_warp", "bend_weft"):
                made[key] = clean(made[key] * by)
        elif name == "density":
            made["density"] = clean(made["density"] * by)
        else:
            scale = clean(by)
    return made, scale


def panels(ob, faces):
    """Names, panel of each face, and what the scene says of panels that differ. Materials make panels, and so do the steps
    of property maps."""
    mesh, garment = ob.data, ob.toile.garment
    rows = [_get(mesh.polygons, "material_index", numpy.int32)[faces.polygons]]
    for name, *_ in MAPS:
        weight = weights(ob, getattr(garment, f"map_{name}_group"))
        if weight is None or getattr(garment, f"map_{name}") == 1:
            rows.append(numpy.zeros(len(faces.sizes), numpy.int32))
        else:
            mean = numpy.add.reduceat(weight[faces.vertices], faces.begin) / faces.sizes
            rows.append(numpy.rint(mean * LEVELS).astype(numpy.int32))
    kinds, face_panels = numpy.unique(numpy.stack(rows, axis=1), axis=0, return_inverse=True)
    base, names, differing = fabric(garment), [], {}
    for material, *levels in kinds.tolist():
        slot = mesh.materials[material] if material < len(mesh.materials) else None
        name = (slot.name if slot else "panel").replace("/", "_")[:80]
        if any(levels):
            name += " " + "-".join(str(n) for n in levels)
        while name in names:
            name += "'"
        names.append(name)
        if any(levels):
            made, scale = _changed_fabric(base, levels, garment)
            differing[name] = {"fabric": made, "scale": [scale, scale]}
    return names, face_panels.reshape(-1).astype(numpy.int32), differing


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
    """(Faces, material coordinates, panel names, face panels, differing panels) of a garment."""
    mesh, garment = ob.data, ob.toile.garment
    if len(mesh.polygons) == 0:
        raise bridge.Invalid("INVALID", f"\"{ob.name}\" has no faces. A garment is a surface: add faces, or take the "
                                        "object out")
    points = rest_points(ob, matrix, scale)
    uv = compat.uv_layer(mesh, garment.uv_map)
    faces = read_faces(mesh, points)
    if garment.rest_shape == 'UV':
        corner_uv = cut_to_uv(ob, faces, points, uv, garment.uv_scale * scale)
    else:
        corner_uv = cut_to_mesh(faces, points, uv)
    return (faces, corner_uv) + panels(ob, faces)
