"""What is sewn, read from the mesh: edges without faces are stitches that pull their two ends together, as in Blender's own
cloth; edges marked as seams part the mesh into panels. Two attributes of edges say in which part of the time that an object
sews each stitch is sewn."""
import math

import numpy

from . import bridge, compat


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


TURN = ("toile_sew_from", "toile_sew_to")       # of the time between start and end, 0 to 1


def set_turns(mesh, turn_of):
    """`turn_of`: (from, to) of pairs of vertices, smaller first."""
    turns = numpy.array([turn_of.get((min(pair), max(pair)), (0, 0)) for pair in _edges(mesh).tolist()], numpy.float32)
    for column, name in enumerate(TURN):
        mesh.attributes.new(name, 'FLOAT', 'EDGE').data.foreach_set("value", numpy.ascontiguousarray(turns[:, column]))


def are_in_turns(mesh):
    return all(name in mesh.attributes for name in TURN)


def turns(mesh):
    """Part of the time in which each edge without faces is sewn, (n x 2); all of it if nothing else is said."""
    made = numpy.zeros((len(mesh.edges), 2), numpy.float32)
    for column, name in enumerate(TURN):
        kept = mesh.attributes.get(name)
        if kept is not None and kept.domain == 'EDGE' and kept.data_type == 'FLOAT':
            out = numpy.empty(len(mesh.edges), numpy.float32)
            kept.data.foreach_get("value", out)
            made[:, column] = numpy.clip(out, 0, 1)
    loose = numpy.ones(len(mesh.edges), bool)
    loose[_corner_edges(mesh)] = False
    made = made[loose]
    made[made[:, 1] <= made[:, 0]] = (0, 1)
    return made


def seam_edges(ob):
    """Edges between panels, (n x 2): where the UV map is cut if that makes the panels, else those marked as seams."""
    uv = compat.uv_layer(ob.data, ob.toile.garment.uv_map) if ob.toile.garment.panel_source == 'UV' else None
    return _edges(ob.data)[_marked(ob.data) if uv is None else uv_parts(ob.data, uv)]


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


UV_ROUNDING = 1e-5          # of a map's size: as far as corners of one place may be apart in it


def uv_parts(mesh, uv):
    """Edges across which a UV map, (corners x 2), does not go on: two faces have another (u, v) at one of its ends."""
    vertex = numpy.empty(len(mesh.loops), numpy.int32)
    mesh.loops.foreach_get("vertex_index", vertex)
    edge, follows = _corner_edges(mesh), _next_corners(mesh)
    turned = vertex > vertex[follows]
    ends = numpy.where(turned[:, None], numpy.hstack([uv[follows], uv]), numpy.hstack([uv, uv[follows]]))
    order = numpy.argsort(edge, kind="stable")
    edge, ends = edge[order], ends[order]
    rounding = UV_ROUNDING * numpy.abs(uv).max(initial=0)
    apart = (edge[1:] == edge[:-1]) & (numpy.abs(ends[1:] - ends[:-1]) > rounding).any(1)
    out = numpy.zeros(len(mesh.edges), bool)
    out[edge[1:][apart]] = True
    return out


def parting(ob):
    """Edges that part the panels of a garment, a truth for each; nothing where materials do."""
    mesh, source = ob.data, ob.toile.garment.panel_source
    if source == 'UV':
        uv = compat.uv_layer(mesh, ob.toile.garment.uv_map)
        if uv is None:
            raise bridge.Invalid("INVALID", f"\"{ob.name}\" has no UV map, and its panels are the islands of one. Unwrap it "
                                            "(U in Edit Mode), or choose another source of panels")
        return uv_parts(mesh, uv)
    return _marked(mesh) if source == 'SEAMS' else None


def _next_corners(mesh):
    """The corner after each in its face."""
    total = numpy.empty(len(mesh.polygons), numpy.int32)
    start = numpy.empty(len(mesh.polygons), numpy.int32)
    mesh.polygons.foreach_get("loop_total", total)
    mesh.polygons.foreach_get("loop_start", start)
    out = numpy.arange(1, len(mesh.loops) + 1, dtype=numpy.int32)
    out[start + total - 1] = start
    return out


def islands(mesh, parted):
    """Number of the piece that each polygon belongs to, where edges that are `parted` and borders part them."""
    total = numpy.empty(len(mesh.polygons), numpy.int32)
    start = numpy.empty(len(mesh.polygons), numpy.int32)
    mesh.polygons.foreach_get("loop_total", total)
    mesh.polygons.foreach_get("loop_start", start)
    owner = numpy.empty(len(mesh.loops), numpy.int32)
    corners = numpy.repeat(start - numpy.cumsum(total) + total, total) + numpy.arange(len(owner))
    owner[corners] = numpy.repeat(numpy.arange(len(total)), total)
    edge = _corner_edges(mesh)
    keep = numpy.nonzero(~parted[edge])[0]
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


def schedule(ob, pairs):
    """The seams as the scene takes them: what is sewn in the same frames is one."""
    garment, made = ob.toile.garment, {}
    facts = {"strength": max(1e-3, float(f"{garment.sew_strength:.7g}"))}
    if garment.sew_fold:
        facts["fold_angle"] = float(f"{math.degrees(garment.sew_fold):.7g}")
    if garment.use_sew_release:
        facts["release"] = garment.sew_release
    if not garment.use_sew_frames:
        return [{"pairs": pairs.tolist(), **facts}]
    time = max(0, garment.sew_end - garment.sew_start)
    parts = turns(ob.data) if garment.use_sew_turns else numpy.tile((0, 1), (len(pairs), 1))
    frames = garment.sew_start + numpy.round(parts * time).astype(int)
    for pair, span in zip(pairs.tolist(), frames.tolist()):
        made.setdefault(tuple(span), []).append(pair)
    return [{"pairs": made[span], "frames": list(span), **facts} for span in sorted(made)]
