"""What is sewn, read from the mesh: edges without faces are stitches that pull their two ends together, as in Blender's own
cloth; edges marked as seams part the mesh into panels."""
import numpy

from . import bridge


def _edges(mesh):
    out = numpy.empty(2 * len(mesh.edges), numpy.int32)
    mesh.edges.foreach_get("vertices", out)
    return out.reshape(-1, 2)


def _keys(a, b):
    """One number for each pair of vertices, whatever their order."""
    return numpy.minimum(a, b).astype(numpy.int64) << 32 | numpy.maximum(a, b)


def _face_edges(mesh):
    """(key, polygon) of every corner's edge."""
    start, total = (numpy.empty(len(mesh.polygons), numpy.int32) for _ in range(2))
    mesh.polygons.foreach_get("loop_start", start)
    mesh.polygons.foreach_get("loop_total", total)
    vertices = numpy.empty(len(mesh.loops), numpy.int32)
    mesh.loops.foreach_get("vertex_index", vertices)
    owner = numpy.repeat(numpy.arange(len(total), dtype=numpy.int32), total)
    ends = numpy.cumsum(total)
    loops = numpy.arange(len(vertices)) if len(total) == 0 or (start == ends - total).all() else \
        numpy.concatenate([numpy.arange(s, s + t) for s, t in zip(start, total)])
    following = numpy.arange(1, len(loops) + 1)
    following[ends - 1] = ends - total
    corner = vertices[loops]
    return _keys(corner, corner[following]), owner


def loose_edges(mesh):
    """Edges that no face has, (n x 2)."""
    edges = _edges(mesh)
    if len(edges) == 0:
        return edges
    return edges[~numpy.isin(_keys(edges[:, 0], edges[:, 1]), _face_edges(mesh)[0])]


def seam_edges(mesh):
    """Edges that are marked as seams, (n x 2)."""
    marked = numpy.empty(len(mesh.edges), bool)
    mesh.edges.foreach_get("use_seam", marked)
    return _edges(mesh)[marked]


def stitches(ob):
    """Pairs of vertices that are sewn together. Both must be part of the cloth."""
    pairs = loose_edges(ob.data)
    used = numpy.zeros(len(ob.data.vertices), bool)
    corners = numpy.empty(len(ob.data.loops), numpy.int32)
    ob.data.loops.foreach_get("vertex_index", corners)
    used[corners] = True
    if len(pairs) == 0:
        raise bridge.Invalid("INVALID", f"\"{ob.name}\" has no edges to sew. Connect the borders of its pieces by edges "
                                        "without faces (select two vertices, F), or turn Sew off")
    if not used[pairs].all():
        lost = int(pairs[~used[pairs]][0])
        raise bridge.Invalid("INVALID", f"\"{ob.name}\": vertex {lost} has a sewing edge but no face. Both ends of a sewing "
                                        "edge belong to the cloth: delete the edge, or add a face")
    return pairs


def islands(mesh):
    """Number of the piece that each polygon belongs to, where marked seams and borders part them."""
    keys, owner = _face_edges(mesh)
    cut = seam_edges(mesh)
    keep = ~numpy.isin(keys, _keys(cut[:, 0], cut[:, 1]))
    order = numpy.argsort(keys[keep], kind="stable")
    keys, owner = keys[keep][order], owner[keep][order]
    same = keys[1:] == keys[:-1]
    a, b = owner[:-1][same], owner[1:][same]
    # The smallest number runs through each piece: along edges, then along what is known already.
    piece = numpy.arange(len(mesh.polygons), dtype=numpy.int32)
    while True:
        least = numpy.minimum(piece[a], piece[b])
        before = piece.copy()
        numpy.minimum.at(piece, a, least)
        numpy.minimum.at(piece, b, least)
        piece = piece[piece]
        if (piece == before).all():
            return numpy.unique(piece, return_inverse=True)[1].astype(numpy.int32)


def schedule(garment, pairs):
    """The seam as the scene takes it."""
    made = {"pairs": pairs.tolist(), "strength": max(1e-3, float(f"{garment.sew_strength:.7g}"))}
    if garment.use_sew_frames:
        made["frames"] = [garment.sew_start, max(garment.sew_start, garment.sew_end)]
    if garment.use_sew_release:
        made["release"] = garment.sew_release
    return made
