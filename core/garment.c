#include "garment.h"

#include "half_edge.h"
#include "join.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Smallest area of a triangle relative to its longest edge squared: below this its shape cannot be told from a line
 * in double precision once positions are differences of metres. */
#define AREA_MIN 1e-7

static double distance2(const double *p, const double *q, int n) {
    double d = 0;
    for (int k = 0; k < n; k++)
        d += (p[k] - q[k]) * (p[k] - q[k]);
    return d;
}

static double area_world(const double *p, const double *q, const double *r) {
    double a[3], b[3];
    for (int k = 0; k < 3; k++) {
        a[k] = q[k] - p[k];
        b[k] = r[k] - p[k];
    }
    double x = a[1] * b[2] - a[2] * b[1], y = a[2] * b[0] - a[0] * b[2], z = a[0] * b[1] - a[1] * b[0];
    return 0.5 * sqrt(x * x + y * y + z * z);
}

static double area_material(const double *p, const double *q, const double *r) {
    return 0.5 * ((q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]));
}

static double longest2(const double *p, const double *q, const double *r, int n) {
    double a = distance2(p, q, n), b = distance2(q, r, n), c = distance2(r, p, n);
    return fmax(a, fmax(b, c));
}

static toile_status check_faces(const toile_garment_input *in, int fabric_count, toile_error *error) {
    const char *name = in->name;
    for (int p = 0; p < in->panel_count; p++) {
        if (in->panel_fabrics[p] < 0 || in->panel_fabrics[p] >= fabric_count)
            return toile_fail(error, TOILE_INVALID, "garment \"%s\": panel %d has fabric %d; there are %d fabrics", name,
                              p, in->panel_fabrics[p], fabric_count);
        for (int k = 0; in->panel_scales && k < 2; k++) {
            double b = in->panel_scales[2 * p + k];
            if (!(b >= 0.01 && b <= 100))
                return toile_fail(error, TOILE_INVALID,
                                  "garment \"%s\": panel %d has rest scale %g; use 0.01 to 100 (1 is as cut)", name, p, b);
        }
    }
    for (int i = 0; i < 3 * in->vertex_count; i++)
        if (!isfinite(in->positions[i]) || fabs(in->positions[i]) > 1e6)
            return toile_fail(error, TOILE_INVALID,
                              "garment \"%s\": vertex %d has coordinate %g; use finite numbers below 1000 km", name, i / 3,
                              in->positions[i]);
    for (int f = 0, at = 0; f < in->face_count; at += in->face_sizes[f], f++) {
        int size = in->face_sizes[f];
        if (size != 3 && size != 4)
            return toile_fail(error, TOILE_INVALID,
                              "garment \"%s\": face %d has %d corners; use triangles and quads (triangulate it first)",
                              name, f, size);
        if (in->face_panels && (in->face_panels[f] < 0 || in->face_panels[f] >= in->panel_count))
            return toile_fail(error, TOILE_INVALID, "garment \"%s\": face %d is in panel %d; there are %d panels", name, f,
                              in->face_panels[f], in->panel_count);
        for (int c = 0; c < size; c++) {
            int v = in->face_vertices[at + c];
            if (v < 0 || v >= in->vertex_count)
                return toile_fail(error, TOILE_INVALID, "garment \"%s\": face %d uses vertex %d; there are %d vertices",
                                  name, f, v, in->vertex_count);
            for (int d = 0; d < c; d++)
                if (in->face_vertices[at + d] == v)
                    return toile_fail(error, TOILE_INVALID, "garment \"%s\": face %d uses vertex %d twice", name, f, v);
            for (int k = 0; k < 2; k++)
                if (!isfinite(in->corner_uv[2 * (at + c) + k]))
                    return toile_fail(error, TOILE_INVALID,
                                      "garment \"%s\": face %d, vertex %d has a material coordinate that is not finite",
                                      name, f, v);
        }
    }
    return TOILE_OK;
}

/* Cuts quads and fills the triangle arrays. A quad is cut along its shorter diagonal in the material unless told. */
static toile_status cut_triangles(const toile_garment_input *in, toile_garment *g, toile_error *error) {
    int t = 0, q = 0;
    /* quads first, so that triangles 2q and 2q + 1 belong to quad q */
    for (int pass = 4; pass >= 3; pass--) {
        for (int f = 0, at = 0; f < in->face_count; at += in->face_sizes[f], f++) {
            if (in->face_sizes[f] != pass)
                continue;
            const int *v = in->face_vertices + at;
            const double *uv = in->corner_uv + 2 * at;
            static const int CUT[2][6] = {{0, 1, 2, 0, 2, 3}, {0, 1, 3, 1, 2, 3}};
            int cut = 0;
            if (pass == 4) {
                cut = in->diagonals ? in->diagonals[f] : distance2(uv + 2, uv + 6, 2) < distance2(uv, uv + 4, 2);
                memcpy(g->quads + 4 * q++, v, 4 * sizeof(int));
            }
            for (int k = 0; k < 3 * (pass - 2); k++) {
                int c = CUT[cut][k];
                g->triangles[3 * t + k] = v[c];
                g->corner_uv[2 * (3 * t + k)] = uv[2 * c];
                g->corner_uv[2 * (3 * t + k) + 1] = uv[2 * c + 1];
            }
            for (int k = 0; k < pass - 2; k++, t++) {
                g->triangle_panels[t] = in->face_panels ? in->face_panels[f] : 0;
                const int *tv = g->triangles + 3 * t;
                const double *a = g->positions + 3 * tv[0], *b = g->positions + 3 * tv[1], *c = g->positions + 3 * tv[2];
                const double *tuv = g->corner_uv + 6 * t;
                double area = area_material(tuv, tuv + 2, tuv + 4), size = longest2(tuv, tuv + 2, tuv + 4, 2);
                if (!(fabs(area) > AREA_MIN * size))
                    return toile_fail(error, TOILE_INVALID,
                                      "garment \"%s\": face %d (vertices %d, %d, %d) has no area in the material; check its "
                                      "(u, v) coordinates",
                                      g->name, f, tv[0], tv[1], tv[2]);
                if (!(area_world(a, b, c) > AREA_MIN * longest2(a, b, c, 3)))
                    return toile_fail(error, TOILE_INVALID,
                                      "garment \"%s\": face %d (vertices %d, %d, %d) has no area; remove it or merge its "
                                      "vertices",
                                      g->name, f, tv[0], tv[1], tv[2]);
            }
        }
    }
    return TOILE_OK;
}

static toile_status check_edges(toile_memory *memory, const toile_garment *g, toile_error *error) {
    toile_status status = TOILE_OK;
    int n = 3 * g->triangle_count;
    toile_half_edge *edges = toile_half_edges(memory, g->triangles, g->triangle_count);
    unsigned char *used = toile_alloc(memory, (size_t)g->vertex_count, 1);
    if (!edges || !used) {
        status = toile_fail_memory(error, "a garment's edges");
        goto out;
    }
    for (int i = 0; i < n; i++)
        used[g->triangles[i]] = 1;
    for (int i = 0, j; i < n; i = j) {
        j = toile_next_edge(edges, n, i);
        if (j - i > 2) {
            status = toile_fail(error, TOILE_INVALID,
                                "garment \"%s\": the edge between vertices %d and %d has %d faces; cloth has at most two "
                                "(split the mesh there)",
                                g->name, edges[i].a, edges[i].b, j - i);
            goto out;
        }
        if (j - i == 2 && edges[i].forward == edges[i + 1].forward) {
            status = toile_fail(error, TOILE_INVALID,
                                "garment \"%s\": the two faces at the edge between vertices %d and %d face opposite ways; "
                                "make the normals consistent",
                                g->name, edges[i].a, edges[i].b);
            goto out;
        }
    }
    int unused = 0, first = -1;
    for (int v = g->vertex_count - 1; v >= 0; v--)
        if (!used[v]) {
            unused++;
            first = v;
        }
    if (unused)
        status = toile_fail(error, TOILE_INVALID,
                            "garment \"%s\": %d vert%s no face, first vertex %d; a particle without cloth has no mass, "
                            "remove %s",
                            g->name, unused, unused == 1 ? "ex has" : "ices have", first, unused == 1 ? "it" : "them");
out:
    toile_free(memory, edges);
    toile_free(memory, used);
    return status;
}

/* ---- seams ---- */

toile_seam toile_default_seam(void) {
    return (toile_seam){.duration = 1, .release = INFINITY, .strength = 100};
}

static toile_status check_seams(const toile_garment_input *in, toile_error *error) {
    if (in->seam_count < 0 || in->stitch_count < 0 || in->stitch_count > INT_MAX / 64 || (in->seam_count && !in->seams) ||
        (in->stitch_count && !in->stitches))
        return toile_fail(error, TOILE_INVALID, "garment \"%s\": %d seams with %d stitches are not possible", in->name,
                          in->seam_count, in->stitch_count);
    for (int s = 0; s < in->seam_count; s++) {
        const toile_seam *seam = &in->seams[s];
        const char *name = seam->name ? seam->name : "";
        if (!(fabs(seam->begin) < 1e6) || !(seam->duration >= 0 && seam->duration < 1e6) || isnan(seam->release))
            return toile_fail(error, TOILE_INVALID,
                              "garment \"%s\": seam %d \"%s\" is sewn from %g s for %g s and released at %g s; use finite "
                              "times and a duration of 0 or more",
                              in->name, s, name, seam->begin, seam->duration, seam->release);
        if (!(fabs(seam->fold_angle) <= 3.1416) || !(seam->strength > 0 && seam->strength <= 1e6))
            return toile_fail(error, TOILE_INVALID,
                              "garment \"%s\": seam %d \"%s\" has fold angle %g and strength %g; use -pi to pi rad, and more "
                              "than 0 up to 1e6 N/m",
                              in->name, s, name, seam->fold_angle, seam->strength);
    }
    for (int i = 0; i < in->stitch_count; i++) {
        const toile_stitch *st = &in->stitches[i];
        if (st->seam < 0 || st->seam >= in->seam_count || st->a < 0 || st->a >= in->vertex_count || st->b < 0 ||
            st->b >= in->vertex_count)
            return toile_fail(error, TOILE_INVALID,
                              "garment \"%s\": stitch %d of seam %d joins vertices %d and %d; there are %d seams and %d "
                              "vertices",
                              in->name, i, st->seam, st->a, st->b, in->seam_count, in->vertex_count);
    }
    return TOILE_OK;
}

/* No triangle may lose a side when all seams are closed. */
static toile_status check_closed(toile_memory *memory, const toile_garment *g, toile_error *error) {
    toile_status status = TOILE_OK;
    int *parent = toile_alloc(memory, (size_t)g->vertex_count, sizeof *parent);
    if (!parent)
        return toile_fail_memory(error, "a garment's seams");
    for (int v = 0; v < g->vertex_count; v++)
        parent[v] = v;
    for (int i = 0; i < g->stitch_count; i++)
        toile_join(parent, g->stitches[i].a, g->stitches[i].b);
    for (int t = 0; t < 3 * g->triangle_count && status == TOILE_OK; t++) {
        int a = g->triangles[t], b = g->triangles[t % 3 == 2 ? t - 2 : t + 1];
        if (toile_join_find(parent, a) == toile_join_find(parent, b))
            status = toile_fail(error, TOILE_INVALID,
                                "garment \"%s\", panel \"%s\": the seams sew vertices %d and %d together, which are two "
                                "corners of one triangle; sew fewer pairs or make the mesh finer there",
                                g->name, g->panels[g->triangle_panels[t / 3]].name, a, b);
    }
    toile_free(memory, parent);
    return status;
}

/* Half of the border at either vertex, the smaller of the two: the seam a stitch stands for. Inside a panel the edges around
 * a vertex say how far its neighbours are. */
static toile_status measure_stitches(toile_memory *memory, toile_garment *g, toile_error *error) {
    int n = 3 * g->triangle_count;
    toile_half_edge *edges = toile_half_edges(memory, g->triangles, g->triangle_count);
    double *border = toile_alloc(memory, (size_t)g->vertex_count, sizeof(double));
    double *shortest = toile_alloc(memory, (size_t)g->vertex_count, sizeof(double));
    if (!edges || !border || !shortest) {
        toile_free(memory, edges), toile_free(memory, border), toile_free(memory, shortest);
        return toile_fail_memory(error, "a garment's seams");
    }
    for (int i = 0, j; i < n; i = j) {
        j = toile_next_edge(edges, n, i);
        int begin = 3 * edges[i].triangle + edges[i].corner, end = edges[i].corner == 2 ? begin - 2 : begin + 1;
        double length = sqrt(distance2(g->corner_uv + 2 * begin, g->corner_uv + 2 * end, 2));
        for (int k = 0; k < 2; k++) {
            int v = k ? edges[i].b : edges[i].a;
            border[v] += j - i == 1 ? length / 2 : 0;
            shortest[v] = shortest[v] > 0 ? fmin(shortest[v], length) : length;
        }
    }
    for (int i = 0; i < g->stitch_count; i++) {
        int a = g->stitches[i].a, b = g->stitches[i].b;
        double at_a = border[a] > 0 ? border[a] : shortest[a], at_b = border[b] > 0 ? border[b] : shortest[b];
        g->stitch_lengths[i] = fmin(at_a, at_b);
    }
    toile_free(memory, edges);
    toile_free(memory, border);
    toile_free(memory, shortest);
    return TOILE_OK;
}

static toile_status copy_seams(toile_memory *memory, const toile_garment_input *in, toile_garment *g, toile_error *error) {
    g->seams = toile_alloc(memory, (size_t)in->seam_count, sizeof *g->seams);
    g->stitches = toile_alloc(memory, (size_t)in->stitch_count, sizeof *g->stitches);
    g->stitch_lengths = toile_alloc(memory, (size_t)in->stitch_count, sizeof(double));
    if (!g->seams || !g->stitches || !g->stitch_lengths)
        return toile_fail_memory(error, "a garment's seams");
    for (int s = 0; s < in->seam_count; s++) {
        g->seams[s] = in->seams[s];
        g->seams[s].name = toile_copy_text(memory, in->seams[s].name ? in->seams[s].name : "");
        g->seam_count = s + 1;
        if (!g->seams[s].name)
            return toile_fail_memory(error, "a seam's name");
    }
    for (int i = 0; i < in->stitch_count; i++) /* a vertex sewn to itself is closed already */
        if (in->stitches[i].a != in->stitches[i].b)
            g->stitches[g->stitch_count++] = in->stitches[i];
    if (!g->stitch_count)
        return TOILE_OK;
    toile_status status = check_closed(memory, g, error);
    return status == TOILE_OK ? measure_stitches(memory, g, error) : status;
}

toile_status toile_garment_sew(toile_memory *memory, toile_garment *g, const toile_seam *seam, const int *pairs, int count,
                               toile_error *error) {
    size_t seams = (size_t)g->seam_count, stitches = (size_t)g->stitch_count, more = count > 0 ? (size_t)count : 0;
    int had = g->stitch_count;
    toile_seam *grown = toile_grow(memory, g->seams, seams, seams + 1, sizeof *grown);
    g->seams = grown ? grown : g->seams;
    toile_stitch *list = grown ? toile_grow(memory, g->stitches, stitches, stitches + more, sizeof *list) : NULL;
    g->stitches = list ? list : g->stitches;
    double *lengths = list ? toile_grow(memory, g->stitch_lengths, stitches, stitches + more, sizeof *lengths) : NULL;
    g->stitch_lengths = lengths ? lengths : g->stitch_lengths;
    char *name = lengths ? toile_copy_text(memory, seam->name ? seam->name : "") : NULL;
    if (!name)
        return toile_fail_memory(error, "a seam");
    g->seams[g->seam_count] = *seam;
    g->seams[g->seam_count++].name = name;
    for (int i = 0; i < count; i++)
        if (pairs[2 * i] != pairs[2 * i + 1])
            g->stitches[g->stitch_count++] = (toile_stitch){g->seam_count - 1, pairs[2 * i], pairs[2 * i + 1]};
    const toile_garment_input all = {.name = g->name, .vertex_count = g->vertex_count, .seam_count = g->seam_count,
                                     .stitch_count = g->stitch_count, .seams = g->seams, .stitches = g->stitches};
    toile_status status = check_seams(&all, error);
    if (status == TOILE_OK)
        status = check_closed(memory, g, error);
    if (status == TOILE_OK)
        status = measure_stitches(memory, g, error);
    if (status != TOILE_OK) {
        g->stitch_count = had;
        toile_free(memory, (char *)g->seams[--g->seam_count].name);
    }
    return status;
}

toile_status toile_garment_make(toile_memory *memory, const toile_garment_input *in, int fabric_count,
                                toile_garment *g, toile_error *error) {
    toile_status status;
    memset(g, 0, sizeof *g);
    if (!in->name || !*in->name)
        return toile_fail(error, TOILE_INVALID, "a garment has no name; give it one");
    if (in->vertex_count < 3 || in->face_count < 1 || !in->positions || !in->face_sizes || !in->face_vertices ||
        !in->corner_uv || in->panel_count < 1 || !in->panel_fabrics)
        return toile_fail(error, TOILE_INVALID, "garment \"%s\": the mesh is empty (%d vertices, %d faces)", in->name,
                          in->vertex_count, in->face_count);
    if (in->vertex_count > INT_MAX / 64 || in->face_count > INT_MAX / 64)
        return toile_fail(error, TOILE_INVALID, "garment \"%s\": %d vertices and %d faces are too many; at most %d",
                          in->name, in->vertex_count, in->face_count, INT_MAX / 64);
    if ((status = check_faces(in, fabric_count, error)) != TOILE_OK || (status = check_seams(in, error)) != TOILE_OK)
        return status;

    for (int f = 0; f < in->face_count; f++) {
        g->triangle_count += in->face_sizes[f] - 2;
        g->quad_count += in->face_sizes[f] == 4;
    }
    size_t nv = (size_t)in->vertex_count, nt = (size_t)g->triangle_count;
    g->vertex_count = in->vertex_count;
    g->panel_count = in->panel_count;
    g->nu = in->nu;
    g->nv = in->nv;
    g->keep_start_angles = in->keep_start_angles;
    g->name = toile_copy_text(memory, in->name);
    g->positions = toile_alloc(memory, 3 * nv, sizeof(double));
    g->triangles = toile_alloc(memory, 3 * nt, sizeof(int));
    g->triangle_panels = toile_alloc(memory, nt, sizeof(int));
    g->corner_uv = toile_alloc(memory, 6 * nt, sizeof(double));
    g->quads = toile_alloc(memory, 4 * (size_t)g->quad_count, sizeof(int));
    g->panels = toile_alloc(memory, (size_t)g->panel_count, sizeof *g->panels);
    if (!g->name || !g->positions || !g->triangles || !g->triangle_panels || !g->corner_uv || !g->quads || !g->panels) {
        status = toile_fail_memory(error, "a garment");
        goto fail;
    }
    memcpy(g->positions, in->positions, 3 * nv * sizeof(double));
    for (int p = 0; p < g->panel_count; p++) {
        toile_panel *panel = &g->panels[p];
        panel->fabric = in->panel_fabrics[p];
        panel->scale_u = in->panel_scales ? in->panel_scales[2 * p] : 1;
        panel->scale_v = in->panel_scales ? in->panel_scales[2 * p + 1] : 1;
        panel->name = toile_copy_text(memory, in->panel_names && in->panel_names[p] ? in->panel_names[p] : in->name);
        if (!panel->name) {
            status = toile_fail_memory(error, "a panel's name");
            goto fail;
        }
    }
    if ((status = cut_triangles(in, g, error)) != TOILE_OK || (status = check_edges(memory, g, error)) != TOILE_OK ||
        (status = copy_seams(memory, in, g, error)) != TOILE_OK)
        goto fail;
    return TOILE_OK;

fail:
    toile_garment_free(memory, g);
    return status;
}

void toile_garment_free(toile_memory *memory, toile_garment *g) {
    for (int p = 0; g->panels && p < g->panel_count; p++)
        toile_free(memory, g->panels[p].name);
    for (int s = 0; g->seams && s < g->seam_count; s++)
        toile_free(memory, (char *)g->seams[s].name);
    toile_free(memory, g->seams);
    toile_free(memory, g->stitches);
    toile_free(memory, g->stitch_lengths);
    toile_shaping_free(memory, &g->shaping);
    toile_free(memory, g->name);
    toile_free(memory, g->positions);
    toile_free(memory, g->triangles);
    toile_free(memory, g->triangle_panels);
    toile_free(memory, g->corner_uv);
    toile_free(memory, g->quads);
    toile_free(memory, g->panels);
    toile_free(memory, g->exempt);
    memset(g, 0, sizeof *g);
}
