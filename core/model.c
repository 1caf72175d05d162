/* Builds the model: renumbers particles, turns fabrics into element stiffnesses that do not depend on the mesh, and
 * finds the pattern of the matrix with the elements that make up each block.
 *
 * Stiffness per element
 *   triangle  stiffness x material area: energy k/2 area (|w_u| - b_u)^2, so tension is k (|w_u| - b_u) per width on
 *             any mesh. (Baraff-Witkin's C = a(...) as printed gives a modulus proportional to the area.)
 *   hinge     coupled so that any bent sheet has the energy B area / (2 R^2) and no inner forces on any mesh, see hinge.c.
 *             (An unweighted hinge weakens under refinement.)
 *   spring    see add_springs.
 */
#include "model.h"

#include "force_bend.h"
#include "force_stretch.h"
#include "half_edge.h"
#include "integrate.h"
#include "join.h"
#include "order.h"
#include "sew.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LANES 8

/* Chunks of rows for threads: long against the bandwidth so that little spills from one into the next, and a number
 * that two and four threads divide well. */
#define CHUNKS_MAX 16
#define CHUNK_BANDS 4

typedef struct edge {
    int a, b;          /* knots (see builder), a < b */
    int triangle[2];   /* second is -1 on the border; indices over all garments */
    int opposite[2];   /* the third particle of each */
} edge;

/* Two vertices over all garments as (smaller << 32 | larger), and an angle, rad. */
typedef struct pair_value {
    uint64_t pair;
    double angle;
} pair_value;

/* Work data of a build; freed at the end. */
/* A connection as it goes into the model (model.h). */
typedef struct spring {
    double length, stiffness, damping, curve, onset, knee, limit, stiff_limit;
} spring;

typedef struct builder {
    toile_memory *memory;
    const toile_fabric *fabrics;
    const toile_garment *garments;
    const unsigned char *welded;
    int garment_count, vertex_count, triangle_count, quad_count, stitch_count;
    bool stretch_implicit, shear_implicit; /* of connections; triangles have one limit for both, with their stretch */
    /* A knot is a particle in the order of the vertices: one vertex, or all that welded stitches join. */
    int particle_count;   /* knots */
    int *knot;            /* of each vertex over all garments, (vertex_count) */
    int *place;           /* knot -> particle */
    int *vertex;          /* over all garments, (triangle_count x 3) */
    int *triangle;        /* their knots, (triangle_count x 3) */
    toile_fabric *cloth;  /* of each triangle, (triangle_count); null without maps */
    double *scale;        /* rest scales, (triangle_count x 2) */
    int *garment_of;      /* (triangle_count) */
    double *uv;           /* (triangle_count x 6) */
    double *fullness;     /* area of a triangle over that of its uv, more than 1 where seams gather it, (triangle_count) */
    const toile_panel **panel; /* (triangle_count) */
    int *quad_of;         /* quad of a triangle over all garments, or -1 */
    int *quad;            /* (quad_count x 4) */
    edge *edges;
    int edge_count;
    pair_value *folds;    /* rest angles of pairs of vertices that are edges, sorted, (fold_count) */
    pair_value *sewn;     /* fold angles of welded stitches, sorted, (sewn_count) */
    int fold_count, sewn_count;
    int *spring_pair;     /* knots, (spring_count x 2) */
    spring *springs;
    int spring_count, spring_capacity, stretch_count, axial_count;
} builder;

static double material_area(const double *uv) {
    return 0.5 * fabs((uv[2] - uv[0]) * (uv[5] - uv[1]) - (uv[3] - uv[1]) * (uv[4] - uv[0]));
}

static const toile_fabric *fabric_of(const builder *b, int triangle) {
    return b->cloth ? &b->cloth[triangle] : &b->fabrics[b->panel[triangle]->fabric];
}

static int round_up(int count) {
    return (count + LANES - 1) / LANES * LANES;
}

/* ---- edges ---- */

static int compare_edges(const void *p, const void *q) {
    const edge *x = p, *y = q;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return x->triangle[0] < y->triangle[0] ? -1 : x->triangle[0] > y->triangle[0];
}

static toile_status gather_faces(builder *b, toile_error *error) {
    size_t nt = (size_t)b->triangle_count;
    b->triangle = toile_alloc(b->memory, 3 * nt, sizeof(int));
    b->uv = toile_alloc(b->memory, 6 * nt, sizeof(double));
    b->fullness = toile_alloc(b->memory, nt, sizeof(double));
    b->panel = toile_alloc(b->memory, nt, sizeof *b->panel);
    b->vertex = toile_alloc(b->memory, 3 * nt, sizeof(int));
    b->scale = toile_alloc(b->memory, 2 * nt, sizeof(double));
    b->garment_of = toile_alloc(b->memory, nt, sizeof(int));
    b->quad_of = toile_alloc(b->memory, nt, sizeof(int));
    b->quad = toile_alloc(b->memory, 4 * (size_t)b->quad_count, sizeof(int));
    b->edges = toile_alloc(b->memory, 3 * nt, sizeof *b->edges);
    if (!b->triangle || !b->uv || !b->fullness || !b->panel || !b->vertex || !b->scale || !b->garment_of || !b->quad_of || !b->quad || !b->edges)
        return toile_fail_memory(error, "the model's faces");

    int t = 0, q = 0, base = 0;
    for (int g = 0; g < b->garment_count; g++) {
        const toile_garment *garment = &b->garments[g];
        for (int i = 0; i < garment->triangle_count; i++, t++) {
            for (int c = 0; c < 3; c++) {
                b->vertex[3 * t + c] = base + garment->triangles[3 * i + c];
                b->triangle[3 * t + c] = b->knot[b->vertex[3 * t + c]];
            }
            memcpy(b->uv + 6 * t, garment->corner_uv + 6 * i, 6 * sizeof(double));
            b->fullness[t] = 1;
            b->panel[t] = &garment->panels[garment->triangle_panels[i]];
            b->garment_of[t] = g;
            b->scale[2 * t] = b->panel[t]->scale_u;
            b->scale[2 * t + 1] = b->panel[t]->scale_v;
            b->quad_of[t] = i / 2 < garment->quad_count ? q + i / 2 : -1;
        }
        for (int i = 0; i < 4 * garment->quad_count; i++)
            b->quad[4 * q + i] = b->knot[base + garment->quads[i]];
        q += garment->quad_count;
        base += garment->vertex_count;
    }

    for (int i = 0; i < 3 * b->triangle_count; i++) {
        int p = b->triangle[i], r = b->triangle[i % 3 == 2 ? i - 2 : i + 1], o = b->triangle[i % 3 == 0 ? i + 2 : i - 1];
        b->edges[i] = (edge){p < r ? p : r, p < r ? r : p, {i / 3, -1}, {o, -1}};
    }
    qsort(b->edges, 3 * nt, sizeof *b->edges, compare_edges);
    for (int i = 0; i < 3 * b->triangle_count; i++) { /* a garment has at most two of each; where seams meet, pairs of them */
        edge *last = b->edge_count ? &b->edges[b->edge_count - 1] : NULL;
        if (last && last->a == b->edges[i].a && last->b == b->edges[i].b && last->triangle[1] < 0) {
            last->triangle[1] = b->edges[i].triangle[0];
            last->opposite[1] = b->edges[i].opposite[0];
        } else {
            b->edges[b->edge_count++] = b->edges[i];
        }
    }
    return TOILE_OK;
}

static const double *corner_uv(const builder *b, int triangle, int particle) {
    for (int c = 0; c < 2; c++)
        if (b->triangle[3 * triangle + c] == particle)
            return b->uv + 6 * triangle + 2 * c;
    return b->uv + 6 * triangle + 4;
}

/* The vertex, not the knot, of a triangle at a knot. */
static int vertex_at(const builder *b, int triangle, int knot) {
    for (int c = 0; c < 2; c++)
        if (b->triangle[3 * triangle + c] == knot)
            return b->vertex[3 * triangle + c];
    return b->vertex[3 * triangle + 2];
}

/* Do welded stitches make this edge? Then its sides have vertices of their own. */
static bool is_seam(const builder *b, const edge *e) {
    return e->triangle[1] >= 0 && (vertex_at(b, e->triangle[0], e->a) != vertex_at(b, e->triangle[1], e->a) ||
                                   vertex_at(b, e->triangle[0], e->b) != vertex_at(b, e->triangle[1], e->b));
}

/* Material vector along a half edge. */
static double side_length(const builder *b, const toile_half_edge *e, double **p, double **q) {
    *p = b->uv + 6 * e->triangle + 2 * e->corner;
    *q = b->uv + 6 * e->triangle + 2 * ((e->corner + 1) % 3);
    return hypot((*q)[0] - (*p)[0], (*q)[1] - (*p)[1]);
}

/* The sides of one sewn edge rest at the length of the shortest. */
static void gather_sides(builder *b, const toile_half_edge *sides, int count) {
    double *p, *q, least = INFINITY;
    for (int k = 0; k < count; k++)
        least = fmin(least, side_length(b, &sides[k], &p, &q));
    for (int k = 0; k < count; k++) {
        double ratio = least / side_length(b, &sides[k], &p, &q);
        if (!(ratio > 0 && ratio < 0.999))
            continue;
        for (int c = 0; c < 2; c++) {
            double middle = 0.5 * (p[c] + q[c]);
            p[c] = middle + ratio * (p[c] - middle);
            q[c] = middle + ratio * (q[c] - middle);
        }
        b->fullness[sides[k].triangle] /= ratio;
    }
}

/* Ease: where a seam joins edges of different lengths, the longer one lies in folds finer than the mesh once it is drawn
 * together. Along the seam its triangles then rest at the length of the shorter one; else they would be a stiff ring that
 * spreads the seam, by half the difference where both are of one fabric. Their mass stays. */
static toile_status gather_seams(builder *b, toile_error *error) {
    bool any = false;
    for (int i = 0; i < b->stitch_count && b->welded && !any; i++)
        any = b->welded[i] & TOILE_STITCH_GATHERED;
    if (!any)
        return TOILE_OK;
    int *one = toile_alloc(b->memory, (size_t)b->vertex_count, sizeof(int));
    int *corners = toile_alloc(b->memory, 3 * (size_t)b->triangle_count, sizeof(int));
    toile_half_edge *edges = NULL;
    for (int v = 0; v < b->vertex_count && one; v++)
        one[v] = v;
    for (int g = 0, base = 0, stitch = 0; g < b->garment_count && one; base += b->garments[g++].vertex_count)
        for (int i = 0; i < b->garments[g].stitch_count; i++, stitch++)
            if (b->welded[stitch] & TOILE_STITCH_GATHERED)
                toile_join(one, base + b->garments[g].stitches[i].a, base + b->garments[g].stitches[i].b);
    for (int i = 0; i < 3 * b->triangle_count && one && corners; i++)
        corners[i] = toile_join_find(one, b->vertex[i]);
    if (one && corners)
        edges = toile_half_edges(b->memory, corners, b->triangle_count);
    for (int i = 0, n = 3 * b->triangle_count, end; edges && i < n; i = end) {
        end = toile_next_edge(edges, n, i);
        bool within = edges[i].a == edges[i].b; /* a dart's tip, or an edge inside a panel: nothing is sewn along it */
        for (int k = i + 1; k < end; k++) {
            const toile_half_edge *e = &edges[k];
            int v = b->vertex[3 * e->triangle + e->corner], w = b->vertex[3 * e->triangle + (e->corner + 1) % 3];
            int x = b->vertex[3 * edges[i].triangle + edges[i].corner], y = b->vertex[3 * edges[i].triangle + (edges[i].corner + 1) % 3];
            within = within || e->triangle == edges[i].triangle || (v == x && w == y) || (v == y && w == x);
        }
        if (!within)
            gather_sides(b, edges + i, end - i);
    }
    toile_free(b->memory, one);
    toile_free(b->memory, corners);
    bool made = edges != NULL;
    toile_free(b->memory, edges);
    return made ? TOILE_OK : toile_fail_memory(error, "gathered seams");
}

static uint64_t pair_key(int a, int b) {
    return a < b ? (uint64_t)a << 32 | (uint64_t)b : (uint64_t)b << 32 | (uint64_t)a;
}

static const pair_value *find_pair(const pair_value *pairs, int count, uint64_t key) {
    int lo = 0, hi = count;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (pairs[mid].pair < key)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < count && pairs[lo].pair == key ? &pairs[lo] : NULL;
}

/* Rest angle of an inner edge if a crease or a seam gives it one, positive where the fronts fold together. */
static bool rest_fold(const builder *b, const edge *e, double *angle) {
    const pair_value *found = NULL;
    for (int side = 0; side < 2 && !found; side++)
        found = find_pair(b->folds, b->fold_count,
                          pair_key(vertex_at(b, e->triangle[side], e->a), vertex_at(b, e->triangle[side], e->b)));
    for (int end = 0; end < 2 && !found && is_seam(b, e); end++) {
        int knot = end ? e->b : e->a;
        found = find_pair(b->sewn, b->sewn_count,
                          pair_key(vertex_at(b, e->triangle[0], knot), vertex_at(b, e->triangle[1], knot)));
    }
    if (found)
        *angle = found->angle;
    return found != NULL;
}

static int compare_pair_values(const void *p, const void *q) {
    const pair_value *x = p, *y = q;
    return x->pair < y->pair ? -1 : x->pair > y->pair;
}

/* Creases and welded stitches with their angles. */
static toile_status gather_folds(builder *b, toile_error *error) {
    size_t creases = 0;
    for (int g = 0; g < b->garment_count; g++)
        creases += (size_t)b->garments[g].shaping.crease_count;
    b->folds = toile_alloc(b->memory, creases, sizeof *b->folds);
    b->sewn = toile_alloc(b->memory, (size_t)b->stitch_count, sizeof *b->sewn);
    if (!b->folds || !b->sewn)
        return toile_fail_memory(error, "the model's folds");
    for (int g = 0, base = 0, stitch = 0; g < b->garment_count; base += b->garments[g++].vertex_count) {
        const toile_garment *garment = &b->garments[g];
        for (int i = 0; i < garment->shaping.crease_count; i++) {
            const toile_crease *c = &garment->shaping.creases[i];
            b->folds[b->fold_count++] = (pair_value){pair_key(base + c->a, base + c->b), c->angle};
        }
        for (int i = 0; i < garment->stitch_count; i++, stitch++) {
            const toile_stitch *s = &garment->stitches[i];
            if (b->welded && b->welded[stitch] & TOILE_STITCH_WELDED)
                b->sewn[b->sewn_count++] =
                    (pair_value){pair_key(base + s->a, base + s->b), garment->seams[s->seam].fold_angle};
        }
    }
    qsort(b->folds, (size_t)b->fold_count, sizeof *b->folds, compare_pair_values);
    qsort(b->sewn, (size_t)b->sewn_count, sizeof *b->sewn, compare_pair_values);
    return TOILE_OK;
}

/* Which vertices are one particle. */
static toile_status tie_knots(builder *b, toile_error *error) {
    b->knot = toile_alloc(b->memory, (size_t)b->vertex_count, sizeof(int));
    if (!b->knot)
        return toile_fail_memory(error, "the model's particles");
    for (int v = 0; v < b->vertex_count; v++)
        b->knot[v] = v;
    for (int g = 0, base = 0, stitch = 0; g < b->garment_count; base += b->garments[g++].vertex_count)
        for (int i = 0; i < b->garments[g].stitch_count; i++, stitch++)
            if (b->welded && b->welded[stitch] & TOILE_STITCH_WELDED)
                toile_join(b->knot, base + b->garments[g].stitches[i].a, base + b->garments[g].stitches[i].b);
    for (int v = 0; v < b->vertex_count; v++)
        b->knot[v] = toile_join_find(b->knot, v);
    for (int v = 0; v < b->vertex_count; v++) /* the smallest comes first and has its number already */
        b->knot[v] = b->knot[v] == v ? b->particle_count++ : b->knot[b->knot[v]];
    return TOILE_OK;
}

/* Fabric and rest scales of every triangle where maps vary them. */
static toile_status apply_maps(builder *b, toile_error *error) {
    bool any = false;
    for (int g = 0; g < b->garment_count; g++)
        any = any || b->garments[g].shaping.map_count;
    if (!any)
        return TOILE_OK;
    b->cloth = toile_alloc(b->memory, (size_t)b->triangle_count, sizeof *b->cloth);
    if (!b->cloth)
        return toile_fail_memory(error, "the model's fabrics");
    for (int g = 0, t = 0; g < b->garment_count; g++) {
        const toile_garment *garment = &b->garments[g];
        for (int i = 0; i < garment->triangle_count; i++, t++) {
            const int *v = garment->triangles + 3 * i;
            b->cloth[t] = b->fabrics[b->panel[t]->fabric];
            for (int k = 0; k < garment->shaping.map_count; k++) {
                const toile_map *map = &garment->shaping.maps[k];
                double factor = (map->factors[v[0]] + map->factors[v[1]] + map->factors[v[2]]) / 3;
                if (map->field) /* all fields of a fabric are real */
                    *(double *)((char *)&b->cloth[t] + map->field->offset) *= factor;
                else
                    b->scale[2 * t + map->axis] *= factor;
            }
        }
    }
    return TOILE_OK;
}

/* ---- springs ---- */

/* Tensile modulus in direction (c, s) of an orthotropic sheet without transverse contraction, N/m. */
static double direction_modulus(const toile_fabric *f, double c, double s) {
    double tiny = 1e-9, ku = fmax(f->stretch_warp, tiny), kv = fmax(f->stretch_weft, tiny), ks = fmax(f->shear, tiny);
    return 1 / (c * c * c * c / ku + s * s * s * s / kv + c * c * s * s / ks);
}

/* Stiffening along one direction of threads, per unit of strain (force_stretch.h). */
static double thread_curve(double stiffening) {
    return (stiffening - 1) / TOILE_STRETCH_KNEE;
}

/* The sine of the shear angle at which threads jam, and the stiffening of shear from there on (force_stretch.h). */
static double lock_onset(const toile_fabric *f) {
    return sin(fmin(f->shear_lock, 1.5)); /* a map may make it larger than the fabric could be */
}

static double lock_curve(const toile_fabric *f) {
    double locked = TOILE_SHEAR_LOCKED * fmin(f->stretch_warp, f->stretch_weft);
    bool locks = f->shear_lock > 0 && f->shear > 0 && locked > f->shear;
    return locks ? (locked / f->shear - 1) / (2 * TOILE_STRETCH_KNEE) : 0;
}

/* Of what resists beyond the fabric's limit (force_stretch.h), N/m; 0: no limit, or not if it would be explicit. */
static double limit_stiffness(const toile_fabric *f, bool implicit) {
    return f->stretch_limit > 0 && implicit ? TOILE_LIMIT_STIFFER * fmax(f->stretch_warp, f->stretch_weft) : 0;
}

/* Stiffening in direction (c, s): each thread's, by its part in the strain; the lock of shear is left out. */
static double direction_curve(const toile_fabric *f, double c, double s) {
    double tiny = 1e-9, ku = fmax(f->stretch_warp, tiny), kv = fmax(f->stretch_weft, tiny);
    return (c * c * c * c / ku * thread_curve(f->stiffening_warp) + s * s * s * s / kv * thread_curve(f->stiffening_weft)) *
           direction_modulus(f, c, s);
}

static toile_status add_spring(builder *b, int i, int j, spring made, toile_error *error) {
    if (b->spring_count == b->spring_capacity) {
        int capacity = b->spring_capacity ? 2 * b->spring_capacity : 4096;
        int *pair = toile_grow(b->memory, b->spring_pair, 2 * (size_t)b->spring_count, 2 * (size_t)capacity, sizeof(int));
        if (pair)
            b->spring_pair = pair;
        spring *springs = toile_grow(b->memory, b->springs, (size_t)b->spring_count, (size_t)capacity, sizeof *springs);
        if (springs)
            b->springs = springs;
        if (!pair || !springs)
            return toile_fail_memory(error, "the model's springs");
        b->spring_capacity = capacity;
    }
    int s = b->spring_count++;
    b->spring_pair[2 * s] = i;
    b->spring_pair[2 * s + 1] = j;
    b->springs[s] = made;
    return TOILE_OK;
}

static bool is_diagonal(const builder *b, const edge *e) {
    return e->triangle[1] >= 0 && b->quad_of[e->triangle[0]] >= 0 &&
           b->quad_of[e->triangle[0]] == b->quad_of[e->triangle[1]];
}

/* Material length of an edge (with rest scales; the mean of its two sides) and, per side, direction and fabric. */
static double edge_length(const builder *b, const edge *e) {
    double length = 0;
    int sides = e->triangle[1] < 0 ? 1 : 2;
    for (int k = 0; k < sides; k++) {
        const double *p = corner_uv(b, e->triangle[k], e->a), *q = corner_uv(b, e->triangle[k], e->b);
        const double *scale = b->scale + 2 * e->triangle[k];
        length += hypot((q[0] - p[0]) * scale[0], (q[1] - p[1]) * scale[1]) / sides;
    }
    return length;
}

/* Inverse of a symmetric positive definite matrix, by Gauss-Jordan. */
static void invert_3(double a[3][3]) {
    for (int p = 0; p < 3; p++) {
        double pivot = 1 / a[p][p];
        a[p][p] = 1;
        for (int j = 0; j < 3; j++)
            a[p][j] *= pivot;
        for (int i = 0; i < 3; i++) {
            double factor = a[i][p];
            if (i == p)
                continue;
            a[i][p] = 0;
            for (int j = 0; j < 3; j++)
                a[i][j] -= factor * a[p][j];
        }
    }
}

/* Moduli of springs along the three edges of a triangle (edge c from corner c to the next), N/m, that together are nearest to
 * the fabric: a spring in direction (c, s) has the stiffness w d d', d = (c^2, s^2, c s), by strains (u, v, shear angle), and
 * sum w d d' is to be diag(k_u, k_v, G), in least squares with no w below nothing. (Van Gelder's (1998) springs, modulus x
 * area / length^2 of each edge on its own, let an irregular mesh stretch two to three times too far: where shear is soft
 * against stretch, as in all woven cloth, an edge a little off the thread has next to no modulus of its own.) */
static void triangle_moduli(const builder *b, int t, double w[3]) {
    const toile_fabric *f = &b->fabrics[b->panel[t]->fabric];
    const double *uv = b->uv + 6 * t;
    double d[3][3], A[3][3], r[3], best = INFINITY;
    for (int e = 0; e < 3; e++) {
        const double *p = uv + 2 * e, *q = uv + 2 * ((e + 1) % 3);
        double du = q[0] - p[0], dv = q[1] - p[1], l2 = du * du + dv * dv;
        d[e][0] = du * du / l2, d[e][1] = dv * dv / l2, d[e][2] = du * dv / l2;
        r[e] = d[e][0] * d[e][0] * f->stretch_warp + d[e][1] * d[e][1] * f->stretch_weft + d[e][2] * d[e][2] * f->shear;
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double product = d[i][0] * d[j][0] + d[i][1] * d[j][1] + d[i][2] * d[j][2];
            A[i][j] = product * product;
        }
    w[0] = w[1] = w[2] = 0;
    for (int used = 1; used < 8; used++) { /* every choice of springs; the best that needs none below nothing */
        double M[3][3], x[3], error = 0;
        bool good = true;
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                M[i][j] = (used >> i & 1) && (used >> j & 1) ? A[i][j] * (i == j ? 1 + 1e-12 : 1) : i == j;
        invert_3(M);
        for (int i = 0; i < 3; i++) {
            x[i] = 0;
            for (int j = 0; j < 3; j++)
                x[i] += (used >> i & 1) && (used >> j & 1) ? M[i][j] * r[j] : 0;
            good = good && x[i] >= 0;
        }
        for (int i = 0; i < 3; i++) { /* |sum w d d' - C|^2 less |C|^2 */
            error -= 2 * x[i] * r[i];
            for (int j = 0; j < 3; j++)
                error += x[i] * A[i][j] * x[j];
        }
        if (good && error < best) {
            best = error;
            memcpy(w, x, sizeof x);
        }
    }
}

static int edge_of(const builder *b, int t, int p, int q) {
    for (int e = 0; e < 2; e++) {
        int a = b->triangle[3 * t + e], c = b->triangle[3 * t + e + 1];
        if ((a == p && c == q) || (a == q && c == p))
            return e;
    }
    return 2;
}

/* Stretch along every edge. A side of the edge adds modulus x (area it stands for) / length^2: for a grid that is
 * k_u x width / length, half at the border; for other triangles see triangle_moduli. The diagonals of quads
 * stiffen a sheet that is pulled both ways by up to 2 G; pulled one way it narrows and they go slack, so nothing is taken
 * off for them. */
static toile_status add_stretch_springs(builder *b, toile_error *error) {
    for (int i = 0; i < b->edge_count; i++) {
        const edge *e = &b->edges[i];
        if (is_diagonal(b, e))
            continue;
        double length = edge_length(b, e), stiffness = 0, damping = 0, curve = 0, limit = INFINITY, stiff_limit = 0;
        for (int k = 0; k < 2 && e->triangle[k] >= 0; k++) {
            int t = e->triangle[k];
            const double *p = corner_uv(b, t, e->a), *q = corner_uv(b, t, e->b);
            const toile_fabric *f = fabric_of(b, t);
            double du = q[0] - p[0], dv = q[1] - p[1], l = hypot(du, dv);
            double modulus = direction_modulus(f, du / l, dv / l), area = material_area(b->uv + 6 * t);
            if (b->quad_of[t] >= 0) { /* half of its quad; triangles 2q and 2q + 1 stand side by side */
                int twin = t + 1 < b->triangle_count && b->quad_of[t + 1] == b->quad_of[t] ? t + 1 : t - 1;
                double quad = area + material_area(b->uv + 6 * twin);
                area = quad / 2;
            } else {
                double w[3];
                triangle_moduli(b, t, w);
                modulus = fmax(w[edge_of(b, t, e->a, e->b)], 1e-9);
            }
            stiffness += modulus * area / (l * l);
            if (f->stretch_limit > 0)
                limit = fmin(limit, 1 + f->stretch_limit);
            stiff_limit += limit_stiffness(f, b->stretch_implicit) * area / (l * l);
            curve += direction_curve(f, du / l, dv / l) * modulus * area / (l * l);
            damping += f->stretch_damping / (e->triangle[1] < 0 ? 1 : 2);
        }
        curve /= stiffness * length;
        toile_status status = add_spring(
            b, e->a, e->b, (spring){.length = length, .stiffness = stiffness, .damping = damping, .curve = curve, .knee = TOILE_STRETCH_KNEE * length,
                                 .limit = stiff_limit > 0 ? limit : 1, .stiff_limit = stiff_limit}, error);
        if (status != TOILE_OK)
            return status;
    }
    b->stretch_count = b->spring_count;
    return TOILE_OK;
}

/* A diagonal of a quad. Of the two only one is in extension under shear, so k = G l^2 / area makes the energy G/2 gamma^2 per
 * area. Sheared by an angle with the sine c it has the length sqrt(l^2 + 2 area c): so long it is where its lock sets in, and at
 * the knee. */
static spring shear_spring(const builder *b, const toile_fabric *f, double l, double area) {
    double c = lock_onset(f), onset = sqrt(l * l + 2 * area * c) - l;
    double knee = sqrt(l * l + 2 * area * (c + TOILE_STRETCH_KNEE)) - l - onset;
    return (spring){.length = l,
                    .stiffness = f->shear * l * l / area,
                    .damping = f->stretch_damping,
                    .onset = onset,
                    .limit = 1 + f->stretch_limit,
                    .stiff_limit = limit_stiffness(f, b->shear_implicit) * area / (l * l),
                    .knee = knee,
                    .curve = lock_curve(f) * TOILE_STRETCH_KNEE / knee};
}

/* Shear along both diagonals of every quad. */
static toile_status add_shear_springs(builder *b, toile_error *error) {
    for (int i = 0; i < b->edge_count; i++) {
        const edge *e = &b->edges[i];
        if (!is_diagonal(b, e))
            continue;
        int t0 = e->triangle[0], t1 = e->triangle[1];
        const toile_fabric *f = fabric_of(b, t0);
        const double *scale = b->scale + 2 * t0;
        double area = material_area(b->uv + 6 * t0) + material_area(b->uv + 6 * t1);
        const double *o0 = corner_uv(b, t0, e->opposite[0]), *o1 = corner_uv(b, t1, e->opposite[1]);
        double length = edge_length(b, e);
        double other = hypot((o1[0] - o0[0]) * scale[0], (o1[1] - o0[1]) * scale[1]);
        toile_status status = add_spring(b, e->a, e->b, shear_spring(b, f, length, area), error);
        if (status == TOILE_OK)
            status = add_spring(b, e->opposite[0], e->opposite[1], shear_spring(b, f, other, area), error);
        if (status != TOILE_OK)
            return status;
    }
    b->axial_count = b->spring_count;
    return TOILE_OK;
}

/* A bend connection of rest length L that stands for a strip with k_b = moment x width: its force is
 * 4 k_b / L^2 x f(s) (thesis 3.8, 3.9). */
static toile_status add_bend_spring(builder *b, int i, int j, double length, double k_b, double damping,
                                    toile_error *error) {
    return add_spring(b, i, j, (spring){.length = length, .stiffness = 4 * k_b / (length * length), .damping = damping}, error);
}

/* Moment per curvature at 45 degrees; if the fabric leaves it open, that of an orthotropic sheet whose twist is the
 * geometric mean of both. */
static double bias_moment(const toile_fabric *f) {
    return f->bend_bias > 0 ? f->bend_bias
                            : 0.25 * (f->bend_warp + f->bend_weft) + 0.5 * sqrt(f->bend_warp * f->bend_weft);
}

/* The eight next-nearest neighbours of a grid particle (thesis 3.2). Connections overlap by half, so a strip of
 * width w in one direction gets k_b = B w / 2; and directions share the moment: with B0 along the threads and Bd
 * along both diagonals a bend along a thread feels B0 + Bd / 2 and one at 45 degrees Bd + (B0u + B0v) / 4. Hence
 * Bd = (4 B_bias - B_u - B_v) / 3 and B0 = B - Bd / 2, with none below nothing. */
static toile_status add_grid_bends(builder *b, const toile_garment *g, int base, int first_triangle, toile_error *error) {
    const int *knot = b->knot + base;
    double u0 = INFINITY, u1 = -INFINITY, v0 = INFINITY, v1 = -INFINITY;
    for (int i = 0; i < 3 * g->triangle_count; i++) {
        u0 = fmin(u0, g->corner_uv[2 * i]), u1 = fmax(u1, g->corner_uv[2 * i]);
        v0 = fmin(v0, g->corner_uv[2 * i + 1]), v1 = fmax(v1, g->corner_uv[2 * i + 1]);
    }
    double du = (u1 - u0) / (g->nu - 1), dv = (v1 - v0) / (g->nv - 1), diagonal = hypot(du, dv);
    for (int j = 0; j < g->nv; j++)
        for (int i = 0; i < g->nu; i++) {
            int p = i + j * g->nu, quad = (i < g->nu - 1 ? i : i - 1) + (j < g->nv - 1 ? j : j - 1) * (g->nu - 1);
            int t = first_triangle + 2 * quad;
            const toile_fabric *f = fabric_of(b, t);
            const double *scale = b->scale + 2 * t;
            double bd = (4 * bias_moment(f) - f->bend_warp - f->bend_weft) / 3;
            bd = fmin(fmax(bd, 0), 2 * fmin(f->bend_warp, f->bend_weft));
            double bu = f->bend_warp - bd / 2, bv = f->bend_weft - bd / 2;
            double lu = 2 * du * scale[0], lv = 2 * dv * scale[1], ld = 2 * hypot(du * scale[0], dv * scale[1]);
            double wu = j == 0 || j == g->nv - 1 ? dv / 2 : dv, wv = i == 0 || i == g->nu - 1 ? du / 2 : du;
            double wd = du * dv / diagonal;
            toile_status status = TOILE_OK;
            if (i + 2 < g->nu)
                status = add_bend_spring(b, knot[p], knot[p + 2], lu, bu * wu / 2, f->bend_damping, error);
            if (status == TOILE_OK && j + 2 < g->nv)
                status = add_bend_spring(b, knot[p], knot[p + 2 * g->nu], lv, bv * wv / 2, f->bend_damping, error);
            if (status == TOILE_OK && i + 2 < g->nu && j + 2 < g->nv)
                status = add_bend_spring(b, knot[p], knot[p + 2 + 2 * g->nu], ld, bd * wd / 2, f->bend_damping, error);
            if (status == TOILE_OK && i >= 2 && j + 2 < g->nv)
                status = add_bend_spring(b, knot[p], knot[p - 2 + 2 * g->nu], ld, bd * wd / 2, f->bend_damping, error);
            if (status != TOILE_OK)
                return status;
        }
    return TOILE_OK;
}

/* Moment per curvature of a hinge: an edge along u bends the weft, one along v the warp (Baraff-Witkin 4.3 with the
 * roles named by what is bent). The mean of both sides where panels meet. */
static double hinge_moment(const builder *b, const edge *e) {
    double moment = 0;
    for (int k = 0; k < 2; k++) {
        const double *p = corner_uv(b, e->triangle[k], e->a), *q = corner_uv(b, e->triangle[k], e->b);
        const toile_fabric *f = fabric_of(b, e->triangle[k]);
        double du = (q[0] - p[0]) * (q[0] - p[0]), dv = (q[1] - p[1]) * (q[1] - p[1]);
        moment += 0.5 * (f->bend_weft * du + f->bend_warp * dv) / (du + dv);
    }
    return moment;
}

static double hinge_damping(const builder *b, const edge *e) {
    return 0.5 * (fabric_of(b, e->triangle[0])->bend_damping + fabric_of(b, e->triangle[1])->bend_damping);
}

/* Opposite vertices across an edge, unfolded into one plane. On a mesh of equilateral triangles the three directions
 * together feel (9/16) k_b L / A per curvature^2, hence k_b = 8/9 (A1 + A2) B / L. */
static toile_status add_mesh_bends(builder *b, toile_error *error) {
    for (int i = 0; i < b->edge_count; i++) {
        const edge *e = &b->edges[i];
        if (e->triangle[1] < 0 || (b->garments[b->garment_of[e->triangle[0]]].nu && !is_seam(b, e)))
            continue;
        /* place both third vertices in the frame of the edge: along it, and away from it to either side */
        double along[2], away[2];
        for (int k = 0; k < 2; k++) {
            const double *p = corner_uv(b, e->triangle[k], e->a), *q = corner_uv(b, e->triangle[k], e->b);
            const double *o = corner_uv(b, e->triangle[k], e->opposite[k]);
            const double *scale = b->scale + 2 * e->triangle[k];
            double ex = (q[0] - p[0]) * scale[0], ey = (q[1] - p[1]) * scale[1], l = hypot(ex, ey);
            double ox = (o[0] - p[0]) * scale[0], oy = (o[1] - p[1]) * scale[1];
            along[k] = (ox * ex + oy * ey) / l;
            away[k] = fabs(ox * ey - oy * ex) / l;
        }
        double length = hypot(along[1] - along[0], away[0] + away[1]), fold;
        if (rest_fold(b, e, &fold)) /* the connection resists only what folds it further */
            length = sqrt(fmax(length * length - 2 * away[0] * away[1] * (1 - cos(fold)), 1e-4 * length * length));
        double area = material_area(b->uv + 6 * e->triangle[0]) + material_area(b->uv + 6 * e->triangle[1]);
        toile_status status = add_bend_spring(b, e->opposite[0], e->opposite[1], length,
                                              8.0 / 9.0 * area * hinge_moment(b, e) / length, hinge_damping(b, e), error);
        if (status != TOILE_OK)
            return status;
    }
    return TOILE_OK;
}

static toile_status add_springs(builder *b, toile_error *error) {
    toile_status status;
    if ((status = add_stretch_springs(b, error)) != TOILE_OK || (status = add_shear_springs(b, error)) != TOILE_OK)
        return status;
    for (int g = 0, base = 0, triangle = 0; g < b->garment_count; g++) {
        const toile_garment *garment = &b->garments[g];
        if (garment->nu && (status = add_grid_bends(b, garment, base, triangle, error)) != TOILE_OK)
            return status;
        base += garment->vertex_count;
        triangle += garment->triangle_count;
    }
    return add_mesh_bends(b, error);
}

/* ---- elements of the model ---- */

static double *doubles(toile_memory *memory, int count) {
    return toile_alloc(memory, (size_t)count, sizeof(double));
}

static int *ints(toile_memory *memory, int count) {
    return toile_alloc(memory, (size_t)count, sizeof(int));
}

/* Pieces of material: triangles joined by edges at which their panel and their u and v agree, up to rounding. */
static void find_pieces(const builder *b, toile_triangles *t) {
    int *leader = t->piece; /* of each triangle; a leader leads itself and has the lowest number */
    for (int i = 0; i < t->count; i++)
        leader[i] = i;
    for (int e = 0; e < b->edge_count; e++) {
        int p = b->edges[e].triangle[0], q = b->edges[e].triangle[1];
        if (q < 0 || b->panel[p] != b->panel[q])
            continue;
        double apart = 0, rounding = 1e-6 * sqrt(material_area(b->uv + 6 * p));
        for (int side = 0; side < 2; side++) {
            int particle = side ? b->edges[e].b : b->edges[e].a;
            const double *of_p = corner_uv(b, p, particle), *of_q = corner_uv(b, q, particle);
            apart = fmax(apart, fmax(fabs(of_p[0] - of_q[0]), fabs(of_p[1] - of_q[1])));
        }
        bool same = apart <= rounding;
        while (same && leader[p] != p)
            p = leader[p] = leader[leader[p]];
        while (same && leader[q] != q)
            q = leader[q] = leader[leader[q]];
        if (same)
            leader[p > q ? p : q] = p < q ? p : q;
    }
    for (int i = 0; i < t->count; i++) /* leaders come before those they lead */
        leader[i] = leader[i] == i ? t->piece_count++ : leader[leader[i]];
}

static toile_status make_triangles(const builder *b, toile_model *m, toile_error *error) {
    toile_triangles *t = &m->triangles;
    t->count = b->triangle_count;
    t->padded = round_up(t->count);
    int n = t->padded;
    double **fields[] = {&t->a1,      &t->a2,      &t->b1,      &t->b2,      &t->area,    &t->scale_u, &t->scale_v,
                         &t->stiff_u, &t->stiff_v, &t->stiff_s, &t->curve_u, &t->curve_v, &t->curve_s, &t->lock,
                         &t->limit,   &t->stiff_limit, &t->reach, &t->damping, &t->air};
    bool ok = true;
    for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
        ok = (*fields[k] = doubles(m->memory, n)) && ok;
    for (int c = 0; c < 3; c++)
        ok = (t->vertex[c] = ints(m->memory, n)) && ok;
    ok = (t->corner = doubles(m->memory, 6 * n)) && ok;
    ok = (t->middle = doubles(m->memory, 2 * n)) && ok;
    ok = (t->piece = ints(m->memory, n)) && ok;
    ok = (t->panel = ints(m->memory, n)) && ok;
    if (!ok)
        return toile_fail_memory(error, "the model's triangles");
    find_pieces(b, t);

    for (int g = 0, i = 0, panels = 0; g < b->garment_count; panels += b->garments[g++].panel_count)
        for (int k = 0; k < b->garments[g].triangle_count; k++, i++)
            t->panel[i] = panels + b->garments[g].triangle_panels[k];
    for (int i = 0; i < t->count; i++) {
        const double *uv = b->uv + 6 * i;
        const toile_fabric *f = fabric_of(b, i);
        double du1 = uv[2] - uv[0], dv1 = uv[3] - uv[1], du2 = uv[4] - uv[0], dv2 = uv[5] - uv[1];
        double det = du1 * dv2 - du2 * dv1; /* eq. 9: (w_u w_v) = (x1 - x0, x2 - x0) (du1 du2; dv1 dv2)^-1 */
        t->a1[i] = dv2 / det;
        t->a2[i] = -dv1 / det;
        t->b1[i] = -du2 / det;
        t->b2[i] = du1 / det;
        t->area[i] = 0.5 * fabs(det);
        t->scale_u[i] = b->scale[2 * i];
        t->scale_v[i] = b->scale[2 * i + 1];
        t->stiff_u[i] = f->stretch_warp * t->area[i];
        t->stiff_v[i] = f->stretch_weft * t->area[i];
        t->stiff_s[i] = f->shear * t->area[i];
        t->curve_u[i] = thread_curve(f->stiffening_warp);
        t->curve_v[i] = thread_curve(f->stiffening_weft);
        t->curve_s[i] = lock_curve(f);
        t->lock[i] = lock_onset(f);
        t->stiff_limit[i] = limit_stiffness(f, b->stretch_implicit) * t->area[i];
        t->limit[i] = 1 + f->stretch_limit;
        t->reach[i] = t->stiff_limit[i] > 0 ? pow(t->limit[i] * fmin(t->scale_u[i], t->scale_v[i]), 2) : HUGE_VAL;
        t->damping[i] = f->stretch_damping;
        t->middle[2 * i] = (uv[0] + uv[2] + uv[4]) / 3;
        t->middle[2 * i + 1] = (uv[1] + uv[3] + uv[5]) / 3;
        t->air[i] = f->air;
        double *corner = t->corner + 6 * i;
        corner[0] = -(t->a1[i] + t->a2[i]);
        corner[1] = t->a1[i];
        corner[2] = t->a2[i];
        corner[3] = -(t->b1[i] + t->b2[i]);
        corner[4] = t->b1[i];
        corner[5] = t->b2[i];
        for (int c = 0; c < 3; c++) {
            int p = b->place[b->triangle[3 * i + c]];
            t->vertex[c][i] = p;
            double share = b->fullness[i] * t->area[i] / 3;
            m->mass[p] += share * f->density;
            m->area[p] += share;
            m->air_area[p] += share * f->air;
            m->friction[p] += share * f->friction; /* divided by the area in toile_model_build */
            m->half_thickness[p] = fmax(m->half_thickness[p], 0.5 * f->thickness);
        }
    }
    return TOILE_OK;
}

/* Bent at 45 degrees all three curvatures are k/2: B_bias = (B_u + B_v + D_uv) / 4. A twist softer than the mean of both threads,
 * or a thread next to nothing beside the other, would take more passes than hinge.c has. */
static void bend_stiffness(const toile_fabric *f, double stiffness[3]) {
    double least = fmax(1e-12, 1e-3 * fmax(f->bend_warp, f->bend_weft));
    double u = stiffness[0] = fmax(f->bend_warp, least), v = stiffness[1] = fmax(f->bend_weft, least);
    stiffness[2] = fmax(4 * bias_moment(f) - u - v, sqrt(u * v));
}

static void couple_hinges(const builder *b, toile_hinges *h, const int *triangle_hinge) {
    toile_hinge_range range = {1, 1};
    for (int t = 0; t < b->triangle_count; t++) {
        double p[3][2], stiffness[3];
        for (int c = 0; c < 3; c++) /* from the first corner, so that far-off coordinates lose nothing */
            for (int k = 0; k < 2; k++)
                p[c][k] = (b->uv[6 * t + 2 * c + k] - b->uv[6 * t + k]) * b->scale[2 * t + k];
        bend_stiffness(fabric_of(b, t), stiffness);
        toile_hinge_add(h, triangle_hinge + 3 * t, (const double(*)[2])p, stiffness, &range);
    }
    toile_hinge_finish(h, range);
}

/* Angle of an edge in the garment as it was given. */
static double start_angle(const builder *b, const edge *e, bool forward) {
    int t0 = e->triangle[0], t1 = e->triangle[1], base = 0, g = b->garment_of[t0];
    for (int k = 0; k < g; k++)
        base += b->garments[k].vertex_count;
    int v[4] = {vertex_at(b, t0, forward ? e->a : e->b), vertex_at(b, t0, forward ? e->b : e->a),
                vertex_at(b, t0, e->opposite[0]), vertex_at(b, t1, e->opposite[1])};
    double x[4][3];
    for (int c = 0; c < 4; c++)
        memcpy(x[c], b->garments[g].positions + 3 * (v[c] - base), sizeof x[c]);
    return toile_hinge_angle((const double(*)[3])x);
}

static toile_status make_hinges(const builder *b, toile_model *m, toile_error *error) {
    toile_hinges *h = &m->hinges;
    toile_status status = TOILE_OK;
    for (int i = 0; i < b->edge_count; i++)
        h->count += b->edges[i].triangle[1] >= 0;
    if (m->springs_used)
        h->count = 0;
    h->padded = round_up(h->count);
    int *triangle_hinge = ints(m->memory, 3 * b->triangle_count);
    bool ok = triangle_hinge && (h->rest = doubles(m->memory, h->padded)) && (h->damping = doubles(m->memory, h->padded)) &&
              (h->stiffness = doubles(m->memory, h->padded)) && (h->bound = doubles(m->memory, h->padded));
    for (int c = 0; c < 4; c++)
        ok = (h->vertex[c] = ints(m->memory, h->padded)) && ok;
    for (int c = 0; c < TOILE_HINGE_PARTNERS; c++) {
        ok = (h->partner[c] = ints(m->memory, h->padded)) && ok;
        ok = (h->share[c] = doubles(m->memory, h->padded)) && ok;
    }
    if (!ok) {
        status = toile_fail_memory(error, "the model's hinges");
        goto out;
    }
    for (int c = 0; c < TOILE_HINGE_PARTNERS; c++)
        for (int k = 0; k < h->padded; k++)
            h->partner[c][k] = k;
    for (int i = 0; i < 3 * b->triangle_count; i++)
        triangle_hinge[i] = -1;

    for (int i = 0, k = 0; h->count && i < b->edge_count; i++) {
        const edge *e = &b->edges[i];
        if (e->triangle[1] < 0)
            continue;
        /* the first triangle runs x0 -> x1 -> x2 in its own winding */
        const int *t = b->triangle + 3 * e->triangle[0];
        bool forward = (t[0] == e->a && t[1] == e->b) || (t[1] == e->a && t[2] == e->b) || (t[2] == e->a && t[0] == e->b);
        int v[4] = {forward ? e->a : e->b, forward ? e->b : e->a, e->opposite[0], e->opposite[1]};
        for (int side = 0; side < 2; side++)
            for (int c = 0; c < 3; c++) /* the slot of the corner across */
                if (b->triangle[3 * e->triangle[side] + c] == e->opposite[side])
                    triangle_hinge[3 * e->triangle[side] + c] = k;
        h->damping[k] = hinge_damping(b, e);
        for (int c = 0; c < 4; c++)
            h->vertex[c][k] = b->place[v[c]];
        double fold;
        if (rest_fold(b, e, &fold)) /* the hinge's angle is negative where the fronts fold together */
            h->rest[k] = -fold;
        else if (b->garments[b->garment_of[e->triangle[0]]].keep_start_angles && !is_seam(b, e))
            h->rest[k] = start_angle(b, e, forward);
        k++;
    }
    if (h->count)
        couple_hinges(b, h, triangle_hinge);
out:
    toile_free(m->memory, triangle_hinge);
    return status;
}

/* Stitches that are not welded, and pieces of elastic. */
static int count_ties(const builder *b) {
    int count = 0;
    for (int g = 0, stitch = 0, base = 0; g < b->garment_count; base += b->garments[g++].vertex_count) {
        const toile_garment *garment = &b->garments[g];
        for (int i = 0; i < garment->stitch_count; i++, stitch++) /* others may have welded its two ends */
            count += b->knot[base + garment->stitches[i].a] != b->knot[base + garment->stitches[i].b];
        count += garment->shaping.elastic_count;
    }
    return count;
}

/* Material length of the edge between two vertices of a garment; its two sides may differ. */
static double elastic_length(const toile_garment *g, const toile_elastic *elastic) {
    double length = 0;
    int sides = 0;
    for (int i = 0; i < 3 * g->triangle_count; i++) {
        int next = i % 3 == 2 ? i - 2 : i + 1, a = g->triangles[i], b = g->triangles[next];
        if ((a != elastic->a || b != elastic->b) && (a != elastic->b || b != elastic->a))
            continue;
        length += hypot(g->corner_uv[2 * next] - g->corner_uv[2 * i], g->corner_uv[2 * next + 1] - g->corner_uv[2 * i + 1]);
        sides++;
    }
    return sides ? length / sides : 1;
}

/* A stitch pulls as hard as its seam's strength when it is SEWING_SLACK longer than it should be; sew.c says more. Its
 * `length` is that of the start, which shrinks; of elastic it is the rest length. */
static void fill_ties(const builder *b, toile_springs *s) {
    int k = s->tie_begin, seams = 0;
    for (int g = 0, base = 0; g < b->garment_count; base += b->garments[g++].vertex_count) {
        const toile_garment *garment = &b->garments[g];
        for (int i = 0; i < garment->stitch_count; i++) {
            const toile_stitch *stitch = &garment->stitches[i];
            int knots[2] = {b->knot[base + stitch->a], b->knot[base + stitch->b]};
            if (knots[0] == knots[1])
                continue;
            const double *p = garment->positions + 3 * stitch->a, *q = garment->positions + 3 * stitch->b;
            s->vertex[0][k] = b->place[knots[0]];
            s->vertex[1][k] = b->place[knots[1]];
            s->length[k] = sqrt((q[0] - p[0]) * (q[0] - p[0]) + (q[1] - p[1]) * (q[1] - p[1]) + (q[2] - p[2]) * (q[2] - p[2]));
            s->stiffness[k] = garment->seams[stitch->seam].strength * garment->stitch_lengths[i] / TOILE_SEWING_SLACK;
            s->damping[k] = TOILE_SEWING_SLACK / TOILE_SEWING_SPEED;
            s->tie_seam[k++ - s->tie_begin] = seams + stitch->seam;
        }
        for (int i = 0; i < garment->shaping.elastic_count; i++) {
            const toile_elastic *elastic = &garment->shaping.elastics[i];
            double length = elastic_length(garment, elastic);
            s->vertex[0][k] = b->place[b->knot[base + elastic->a]];
            s->vertex[1][k] = b->place[b->knot[base + elastic->b]];
            s->length[k] = length * elastic->scale;
            s->stiffness[k] = elastic->stiffness / s->length[k];
            s->damping[k] = 0.002; /* as the fabrics' */
            s->tie_seam[k++ - s->tie_begin] = -1;
        }
        seams += garment->seam_count;
    }
}

/* A spring by the places of its ends. */
typedef struct placed_spring {
    int first, second, spring;
} placed_spring;

static int compare_placed(const void *p, const void *q) {
    const placed_spring *a = p, *b = q;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    if (a->second != b->second)
        return a->second < b->second ? -1 : 1;
    return a->spring < b->spring ? -1 : a->spring > b->spring;
}

/* Springs of each kind in the order of their particles: neighbours in the matrix are neighbours in memory. */
static placed_spring *place_springs(const builder *b, toile_memory *memory) {
    placed_spring *order = toile_alloc(memory, (size_t)b->spring_count, sizeof *order);
    for (int i = 0; order && i < b->spring_count; i++) {
        int x = b->place[b->spring_pair[2 * i]], y = b->place[b->spring_pair[2 * i + 1]];
        order[i] = (placed_spring){x < y ? x : y, x < y ? y : x, i};
    }
    int begin[] = {0, b->stretch_count, b->axial_count, b->spring_count};
    for (int kind = 0; order && kind < 3; kind++)
        if (begin[kind + 1] > begin[kind])
            qsort(order + begin[kind], (size_t)(begin[kind + 1] - begin[kind]), sizeof *order, compare_placed);
    return order;
}

static toile_status make_springs(const builder *b, toile_model *m, toile_error *error) {
    toile_springs *s = &m->springs;
    placed_spring *order = place_springs(b, m->memory);
    s->stretch_count = b->stretch_count;
    s->axial_count = b->axial_count;
    s->axial_padded = round_up(s->axial_count);
    s->bend_count = b->spring_count - b->axial_count;
    s->tie_begin = s->axial_padded + round_up(s->bend_count);
    s->tie_count = count_ties(b);
    s->padded = s->tie_begin + round_up(s->tie_count);
    bool ok = (s->tie_seam = ints(m->memory, s->tie_count)) && (s->length = doubles(m->memory, s->padded)) && (s->stiffness = doubles(m->memory, s->padded)) &&
              (s->damping = doubles(m->memory, s->padded)) && (s->curve = doubles(m->memory, s->padded)) &&
              (s->onset = doubles(m->memory, s->padded)) && (s->knee = doubles(m->memory, s->padded)) &&
              (s->limit = doubles(m->memory, s->padded)) && (s->stiff_limit = doubles(m->memory, s->padded)) && (s->vertex[0] = ints(m->memory, s->padded)) &&
              (s->vertex[1] = ints(m->memory, s->padded));
    if (!ok || !order) {
        toile_free(m->memory, order);
        return toile_fail_memory(error, "the model's springs");
    }
    for (int k = 0; k < s->padded; k++)
        s->length[k] = 1; /* padding: kernels divide by it */
    for (int at = 0; at < b->spring_count; at++) {
        int i = order[at].spring, k = at < b->axial_count ? at : s->axial_padded + at - b->axial_count;
        s->vertex[0][k] = b->place[b->spring_pair[2 * i]];
        s->vertex[1][k] = b->place[b->spring_pair[2 * i + 1]];
        s->length[k] = b->springs[i].length;
        s->stiffness[k] = b->springs[i].stiffness;
        s->damping[k] = b->springs[i].damping;
        s->curve[k] = b->springs[i].curve;
        s->onset[k] = b->springs[i].onset;
        s->knee[k] = b->springs[i].knee;
        s->limit[k] = b->springs[i].limit;
        s->stiff_limit[k] = b->springs[i].stiff_limit;
    }
    toile_free(m->memory, order);
    fill_ties(b, s);
    return TOILE_OK;
}

/* ---- pattern of the matrix ---- */

static int compare_keys(const void *p, const void *q) {
    uint64_t a = *(const uint64_t *)p, b = *(const uint64_t *)q;
    return a < b ? -1 : a > b;
}

/* Pairs (smaller << 32 | larger) of particles that share an element. */
static void find_pairs(const int *const *vertex, int arity, int count, uint64_t *keys, int *used) {
    for (int e = 0; e < count; e++)
        for (int i = 0; i < arity; i++)
            for (int j = i + 1; j < arity; j++) {
                uint64_t a = (uint64_t)vertex[i][e], b = (uint64_t)vertex[j][e];
                if (a != b)
                    keys[(*used)++] = a < b ? a << 32 | b : b << 32 | a;
            }
}

static int unique_keys(uint64_t *keys, int count) {
    qsort(keys, (size_t)count, sizeof *keys, compare_keys);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (!kept || keys[kept - 1] != keys[i])
            keys[kept++] = keys[i];
    return kept;
}

/* All pairs of particles that act on each other, from the elements in the model. Numbering: whatever `vertex` has. */
static toile_status collect_pairs(const toile_model *m, uint64_t **keys, int *count, toile_error *error) {
    const toile_triangles *t = &m->triangles;
    const toile_hinges *h = &m->hinges;
    const toile_springs *s = &m->springs;
    int64_t most = s->padded + (m->springs_used ? 0 : 3 * (int64_t)t->count + 6 * (int64_t)h->count);
    if (most > INT_MAX / 4)
        return toile_fail(error, TOILE_INVALID, "the garments have too many triangles (%d); lower the resolution", t->count);
    *keys = toile_alloc(m->memory, (size_t)most, sizeof **keys);
    if (!*keys)
        return toile_fail_memory(error, "the matrix pattern");
    int used = 0;
    find_pairs((const int *const *)s->vertex, 2, s->padded, *keys, &used);
    if (!m->springs_used) {
        find_pairs((const int *const *)t->vertex, 3, t->count, *keys, &used);
        find_pairs((const int *const *)h->vertex, 4, h->count, *keys, &used);
    }
    *count = unique_keys(*keys, used);
    return TOILE_OK;
}

static int find_block(const toile_pattern *p, int i, int j) {
    if (i == j)
        return i;
    int lo = p->row_begin[i], hi = p->row_begin[i + 1] - 1;
    while (lo < hi) {
        int mid = (lo + hi) / 2;
        if (p->column[mid] < j)
            lo = mid + 1;
        else
            hi = mid;
    }
    return p->n + lo;
}

/* For each block the elements that add to it, in ascending order: this order, not the threads, fixes the sums. */
static toile_status list_elements(toile_memory *memory, const toile_pattern *p, const int *const *vertex, int arity,
                                  int count, bool diagonal_only, int **begin, int **code, toile_error *error) {
    int blocks = p->n + p->off_count;
    *begin = ints(memory, blocks + 1);
    if (!*begin)
        return toile_fail_memory(error, "the matrix pattern");
    for (int pass = 0; pass < 2; pass++) {
        for (int e = 0; e < count; e++)
            for (int i = 0; i < arity; i++)
                for (int j = 0; j < arity; j++) {
                    int a = vertex[i][e], b = vertex[j][e];
                    if (a > b || (i != j && (a == b || diagonal_only)))
                        continue;
                    int block = find_block(p, a, b);
                    if (pass == 0)
                        (*begin)[block + 1]++;
                    else
                        (*code)[(*begin)[block]++] = arity == 2 ? 2 * e + i : 16 * e + 4 * i + j;
                }
        if (pass == 0) {
            for (int b = 0; b < blocks; b++)
                (*begin)[b + 1] += (*begin)[b];
            *code = ints(memory, (*begin)[blocks] + TOILE_CODES_AHEAD);
            if (!*code)
                return toile_fail_memory(error, "the matrix pattern");
        }
    }
    for (int b = blocks; b > 0; b--) /* the second pass moved every begin to its end */
        (*begin)[b] = (*begin)[b - 1];
    (*begin)[0] = 0;
    return TOILE_OK;
}

static void divide_chunks(toile_pattern *p) {
    int band = 1;
    for (int i = 0; i < p->n; i++)
        if (p->row_begin[i + 1] > p->row_begin[i] && p->column[p->row_begin[i + 1] - 1] - i > band)
            band = p->column[p->row_begin[i + 1] - 1] - i;
    int chunks = p->n / (CHUNK_BANDS * band);
    chunks = chunks < 2 ? 2 : chunks > CHUNKS_MAX ? CHUNKS_MAX : chunks & ~1;
    if (p->n < 2 * chunks)
        chunks = 1;
    p->chunk_count = chunks;
    /* equal shares of the off-diagonal blocks: they are the work */
    for (int c = 0, i = 0; c <= chunks; c++) {
        int64_t upto = (int64_t)p->off_count * c / chunks;
        while (i < p->n && (c == chunks || p->row_begin[i] < upto))
            i++;
        p->chunk_begin[c] = i;
    }
    p->spill_begin[0] = 0;
    for (int c = 0; c < chunks; c++) {
        int end = p->chunk_begin[c + 1], reach = end;
        for (int i = p->chunk_begin[c]; i < end; i++) {
            int k = p->row_begin[i];
            while (k < p->row_begin[i + 1] && p->column[k] < end)
                k++;
            p->row_split[i] = k;
            if (k < p->row_begin[i + 1] && p->column[p->row_begin[i + 1] - 1] >= reach)
                reach = p->column[p->row_begin[i + 1] - 1] + 1;
        }
        p->spill_count[c] = reach - end;
        p->spill_begin[c + 1] = p->spill_begin[c] + p->spill_count[c];
    }
}

/* Connected pieces: where no block reaches across. */
static toile_status find_components(toile_model *m, toile_error *error) {
    const toile_pattern *p = &m->pattern;
    for (int pass = 0; pass < 2; pass++) {
        int count = 0, reach = -1;
        for (int i = 0; i < p->n; i++) {
            if (i > reach) {
                if (pass)
                    m->component_begin[count] = i;
                count++;
            }
            int last = p->row_begin[i + 1] > p->row_begin[i] ? p->column[p->row_begin[i + 1] - 1] : i;
            reach = last > reach ? last : reach > i ? reach : i;
        }
        m->component_count = count;
        if (pass == 0 && !(m->component_begin = ints(m->memory, count + 1)))
            return toile_fail_memory(error, "the pieces of cloth");
    }
    m->component_begin[m->component_count] = p->n;
    return TOILE_OK;
}

static toile_status make_pattern(toile_model *m, toile_error *error) {
    toile_status status;
    toile_pattern *p = &m->pattern;
    uint64_t *keys = NULL;
    int count = 0;
    if ((status = collect_pairs(m, &keys, &count, error)) != TOILE_OK)
        return status;
    p->n = m->particle_count;
    p->off_count = count;
    bool ok = (p->row_begin = ints(m->memory, p->n + 1)) && (p->column = ints(m->memory, count)) &&
              (p->row_split = ints(m->memory, p->n)) && (p->chunk_begin = ints(m->memory, CHUNKS_MAX + 1)) &&
              (p->spill_count = ints(m->memory, CHUNKS_MAX)) && (p->spill_begin = ints(m->memory, CHUNKS_MAX + 1));
    if (!ok) {
        status = toile_fail_memory(error, "the matrix pattern");
        goto out;
    }
    for (int k = 0; k < count; k++) {
        p->row_begin[(keys[k] >> 32) + 1]++;
        p->column[k] = (int)(keys[k] & 0xffffffff);
    }
    for (int i = 0; i < p->n; i++)
        p->row_begin[i + 1] += p->row_begin[i];
    divide_chunks(p);

    const toile_springs *s = &m->springs;
    const int *const *tv = (const int *const *)m->triangles.vertex, *const *hv = (const int *const *)m->hinges.vertex;
    if ((status = list_elements(m->memory, p, tv, 3, m->triangles.count, m->springs_used, &p->triangle_begin,
                                &p->triangle_code, error)) != TOILE_OK ||
        (status = list_elements(m->memory, p, hv, 4, m->hinges.count, false, &p->hinge_begin, &p->hinge_code, error)) !=
            TOILE_OK)
        goto out;
    status = list_elements(m->memory, p, (const int *const *)s->vertex, 2, s->padded, false,
                           &p->spring_begin, &p->spring_code, error);
out:
    toile_free(m->memory, keys);
    return status;
}

/* Renumbers: a first model in the given order shows who acts on whom, RCM orders that graph. */
static toile_status order_particles(const builder *b, toile_model *m, toile_error *error) {
    int n = m->particle_count;
    int64_t most = 0;
    uint64_t *keys = NULL;
    int *begin = NULL, *neighbour = NULL;
    toile_status status = TOILE_OK;
    most = b->edge_count + count_ties(b);
    keys = toile_alloc(m->memory, (size_t)most, sizeof *keys);
    begin = ints(m->memory, n + 1);
    if (!keys || !begin) {
        status = toile_fail_memory(error, "the order of the particles");
        goto out;
    }
    int used = 0;
    for (int i = 0; i < b->edge_count; i++)
        if (!m->springs_used || !is_diagonal(b, &b->edges[i]))
            keys[used++] = (uint64_t)b->edges[i].a << 32 | (uint64_t)b->edges[i].b;
    for (int g = 0, base = 0; g < b->garment_count; base += b->garments[g++].vertex_count)
        for (int i = 0; i < b->garments[g].stitch_count; i++) {
            const toile_stitch *s = &b->garments[g].stitches[i];
            if (b->knot[base + s->a] != b->knot[base + s->b])
                keys[used++] = pair_key(b->knot[base + s->a], b->knot[base + s->b]);
        }
    used = unique_keys(keys, used);
    neighbour = ints(m->memory, 2 * used);
    if (!neighbour) {
        status = toile_fail_memory(error, "the order of the particles");
        goto out;
    }
    for (int k = 0; k < used; k++) {
        begin[keys[k] >> 32]++;
        begin[keys[k] & 0xffffffff]++;
    }
    for (int i = 0, sum = 0; i <= n; i++) {
        sum += begin[i];
        begin[i] = sum; /* end of row i, counted down below */
    }
    for (int k = used - 1; k >= 0; k--) {
        int a = (int)(keys[k] >> 32), c = (int)(keys[k] & 0xffffffff);
        neighbour[--begin[a]] = c;
        neighbour[--begin[c]] = a;
    }
    if (!toile_order_rcm(m->memory, n, begin, neighbour, b->place))
        status = toile_fail_memory(error, "the order of the particles");
out:
    toile_free(m->memory, keys);
    toile_free(m->memory, begin);
    toile_free(m->memory, neighbour);
    return status;
}

/* ---- all of it ---- */

toile_status toile_model_build(toile_memory *memory, const toile_settings *settings, const toile_fabric *fabrics,
                               const toile_garment *garments, int garment_count, toile_model **model,
                               toile_error *error) {
    return toile_model_build_welded(memory, settings, fabrics, garments, garment_count, NULL, model, error);
}

/* Numbers for `sewn`: joined particles get the smallest of theirs. */
static void mark_sewn(const builder *b, toile_model *m) {
    for (int i = 0; i < m->particle_count; i++)
        m->sewn[i] = i;
    for (int g = 0, base = 0; g < b->garment_count; base += b->garments[g++].vertex_count)
        for (int i = 0; i < b->garments[g].stitch_count; i++)
            toile_join(m->sewn, m->place[base + b->garments[g].stitches[i].a], m->place[base + b->garments[g].stitches[i].b]);
    for (int i = 0; i < m->particle_count; i++)
        m->sewn[i] = toile_join_find(m->sewn, i);
}

toile_status toile_model_build_welded(toile_memory *memory, const toile_settings *settings, const toile_fabric *fabrics,
                                      const toile_garment *garments, int garment_count, const unsigned char *welded,
                                      toile_model **model, toile_error *error) {
    int integrator = toile_integrator(settings);
    builder b = {.memory = memory, .fabrics = fabrics, .garments = garments, .garment_count = garment_count, .welded = welded};
    b.stretch_implicit = !toile_integrator_is_explicit(integrator);
    b.shear_implicit = b.stretch_implicit && integrator != TOILE_INTEGRATOR_IMEX;
    toile_status status = TOILE_OK;
    int64_t particles = 0, triangles = 0, stitches = 0;
    for (int g = 0; g < garment_count; g++) {
        stitches += garments[g].stitch_count;
        particles += garments[g].vertex_count;
        triangles += garments[g].triangle_count;
        b.quad_count += garments[g].quad_count;
    }
    if (particles > INT_MAX / 64 || triangles > INT_MAX / 64 || stitches > INT_MAX / 64)
        return toile_fail(error, TOILE_INVALID, "the garments have %lld vertices together; at most %d",
                          (long long)particles, INT_MAX / 64);
    b.vertex_count = (int)particles;
    b.triangle_count = (int)triangles;
    b.stitch_count = (int)stitches;

    toile_model *m = toile_alloc(memory, 1, sizeof *m);
    if (!m)
        return toile_fail_memory(error, "the model");
    m->memory = memory;
    if ((status = tie_knots(&b, error)) != TOILE_OK)
        goto out;
    m->vertex_count = b.vertex_count;
    m->particle_count = b.particle_count;
    m->garment_count = garment_count;
    m->springs_used = settings->cloth_model == TOILE_CLOTH_SPRINGS;
    m->garment_begin = ints(memory, garment_count + 1);
    m->place = ints(memory, m->vertex_count);
    m->sewn = ints(memory, m->particle_count);
    b.place = ints(memory, m->particle_count);
    m->mass = doubles(memory, m->particle_count);
    m->inverse_mass = doubles(memory, m->particle_count);
    m->area = doubles(memory, m->particle_count);
    m->air_area = doubles(memory, m->particle_count);
    m->half_thickness = doubles(memory, m->particle_count);
    m->friction = doubles(memory, m->particle_count);
    m->start = doubles(memory, 4 * m->particle_count);
    if (!m->garment_begin || !m->place || !m->sewn || !b.place || !m->mass || !m->inverse_mass || !m->area || !m->air_area ||
        !m->half_thickness || !m->friction || !m->start) {
        status = toile_fail_memory(error, "the model");
        goto out;
    }
    if ((status = gather_faces(&b, error)) != TOILE_OK || (status = gather_folds(&b, error)) != TOILE_OK ||
        (status = apply_maps(&b, error)) != TOILE_OK || (status = gather_seams(&b, error)) != TOILE_OK)
        goto out;
    if (m->springs_used && (status = add_springs(&b, error)) != TOILE_OK)
        goto out;
    if ((status = order_particles(&b, m, error)) != TOILE_OK)
        goto out;
    for (int g = 0, p = 0; g < garment_count; g++) {
        for (int i = 0; i < garments[g].vertex_count; i++, p++) {
            m->place[p] = b.place[b.knot[p]];
            memcpy(m->start + 4 * m->place[p], garments[g].positions + 3 * i, 3 * sizeof(double));
        }
        m->garment_begin[g + 1] = p;
    }
    mark_sewn(&b, m);
    if ((status = make_triangles(&b, m, error)) != TOILE_OK || (status = make_hinges(&b, m, error)) != TOILE_OK ||
        (status = make_springs(&b, m, error)) != TOILE_OK || (status = make_pattern(m, error)) != TOILE_OK ||
        (status = find_components(m, error)) != TOILE_OK)
        goto out;
    for (int i = 0; i < m->particle_count; i++) {
        m->inverse_mass[i] = 1 / m->mass[i];
        m->friction[i] /= m->area[i];
    }

out:
    toile_free(memory, b.knot);
    toile_free(memory, b.place);
    toile_free(memory, b.vertex);
    toile_free(memory, b.cloth);
    toile_free(memory, b.scale);
    toile_free(memory, b.garment_of);
    toile_free(memory, b.folds);
    toile_free(memory, b.sewn);
    toile_free(memory, b.triangle);
    toile_free(memory, b.uv);
    toile_free(memory, b.fullness);
    toile_free(memory, b.panel);
    toile_free(memory, b.quad_of);
    toile_free(memory, b.quad);
    toile_free(memory, b.edges);
    toile_free(memory, b.spring_pair);
    toile_free(memory, b.springs);
    if (status == TOILE_OK)
        *model = m;
    else
        toile_model_free(m);
    return status;
}

void toile_model_free(toile_model *m) {
    if (!m)
        return;
    toile_triangles *t = &m->triangles;
    toile_hinges *h = &m->hinges;
    toile_springs *s = &m->springs;
    toile_pattern *p = &m->pattern;
    void *blocks[] = {m->component_begin, m->garment_begin,  m->place,         m->sewn,       t->panel,         s->tie_seam,
                             m->mass,       m->inverse_mass, m->area,         m->start,
                      m->air_area,       m->half_thickness, m->friction,  t->curve_u,      t->curve_v,      t->air,
                      t->limit,          t->stiff_limit,   t->reach,      s->limit,        s->stiff_limit,
                      s->curve,          s->onset,         s->knee,       t->curve_s,      t->lock,
                      t->vertex[0],      t->vertex[1],     t->vertex[2],  t->a1,           t->a2,           t->b1,
                      t->b2,             t->area,          t->scale_u,    t->scale_v,      t->stiff_u,      t->stiff_v,
                      t->stiff_s,        t->damping,       t->corner,     t->middle,       t->piece,     h->vertex[0],    h->vertex[1],    h->vertex[2],
                      h->vertex[3],      h->bound,         h->stiffness,  h->rest,       h->damping,      s->vertex[0],    s->vertex[1],
                      s->length,         s->stiffness,     s->damping,    p->row_begin,    p->column,       p->row_split,
                      p->chunk_begin,    p->spill_count,   p->spill_begin, p->triangle_begin, p->triangle_code,
                      p->hinge_begin,    p->hinge_code,    p->spring_begin, p->spring_code};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(m->memory, blocks[i]);
    for (int c = 0; c < TOILE_HINGE_PARTNERS; c++) {
        toile_free(m->memory, h->partner[c]);
        toile_free(m->memory, h->share[c]);
    }
    toile_free(m->memory, m);
}
