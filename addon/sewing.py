"""What is sewn, read from the mesh: edges without faces are stitches that pull their two ends together, as in Blender's own
cloth; edges marked as seams part the mesh into panels."""
import math

import numpy

from . import bridge


def _edges(mesh):
    out = numpy.empty(2 * len(mesh.edges), numpy.int32)
    mesh.edges.foreach_get("vertices", out)
    return out.reshape(-1, 2)


def _corner_edges(mesh):
    """The edge that each corner of a face begins."""
    out = numpy.empty(len(mesh.loops), numpy.int32)
    mesh.loops.foreach_get("edge_index", out)
    return out


def _marked(mesh):
    out = numpy.empty(len(mesh.edges), bool)
    mesh.edges.foreach_get("use_seam", out)
    return out


def loose_edges(mesh):
    """Edges that no face has, (n x 2)."""
    loose = numpy.ones(len(mesh.edges), bool)
    loose[_corner_edges(mesh)] = False
    return _edges(mesh)[loose]


def seam_edges(mesh):
    """Edges that are marked as seams, (n x 2)."""
    return _edges(mesh)[_marked(mesh)]


def stitches(ob):
    """Pairs of vertices that are sewn together, (n x 2). Both must be part of the cloth."""
    pairs = loose_edges(ob.data) if ob.toile.garment.use_sewing else numpy.empty((0, 2), numpy.int32)
    used = numpy.zeros(len(ob.data.vertices), bool)
    corners = numpy.empty(len(ob.data.loops), numpy.int32)
    ob.data.loops.foreach_get("vertex_index", corners)
    used[corners] = True
    if not used[pairs].all():
        lost = int(pairs[~used[pairs]][0])
        raise bridge.Invalid("INVALID", f"\"{ob.name}\": vertex {lost} has a sewing edge but no face. Both ends of a sewing "
                                        "edge belong to the cloth: delete the edge, or add a face")
    return pairs


def islands(mesh):
    """Number of the piece that each polygon belongs to, where marked seams and borders part them."""
    total = numpy.empty(len(mesh.polygons), numpy.int32)
    start = numpy.empty(len(mesh.polygons), numpy.int32)
    mesh.polygons.foreach_get("loop_total", total)
    mesh.polygons.foreach_get("loop_start", start)
    owner = numpy.empty(len(mesh.loops), numpy.int32)
    corners = numpy.repeat(start - numpy.cumsum(total) + total, total) + numpy.arange(len(owner))
    owner[corners] = numpy.repeat(numpy.arange(len(total)), total)
    edge = _corner_edges(mesh)
    keep = numpy.nonzero(~_marked(mesh)[edge])[0]
    keep = keep[numpy.argsort(edge[keep], kind="stable")]
    edge, owner = edge[keep], owner[keep]
    same = edge[1:] == edge[:-1]
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
    if garment.sew_fold:
        made["fold_angle"] = float(f"{math.degrees(garment.sew_fold):.7g}")
    if garment.use_sew_frames:
        made["frames"] = [garment.sew_start, max(garment.sew_start, garment.sew_end)]
    if garment.use_sew_release:
        made["release"] = garment.sew_release
    return made
