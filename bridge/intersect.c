/* Exact triangle tests over a bounding volume tree.
 *
 * Signs of determinants: a double evaluation with a forward error bound decides nearly always; what it leaves
 * open is added up without error as an expansion, a sum of doubles that do not overlap (Shewchuk, "Adaptive
 * precision floating-point arithmetic and fast robust geometric predicates", 1997, theorem 10). Differences
 * are kept as the rounded value and its exact rest, so the sign is exact for any doubles, not only for those
 * of like size.
 *
 * Broad phase: triangles sorted along a Morton curve; halving that order again and again is the tree. */
#include "intersect.h"

#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- exact signs ---- */

/* Six products of three two-part numbers, each at most four doubles. */
enum { EXPANSION_PARTS = 6 * 8 * 4 };

typedef struct expansion {
    int count;
    double part[EXPANSION_PARTS]; /* do not overlap, smallest first, none zero */
} expansion;

typedef struct exact_difference {
    double value, rest; /* a - b = value + rest, without error */
} exact_difference;

static exact_difference subtract(double a, double b) {
    double value = a - b;
    double b_part = a - value;
    double a_part = value + b_part;
    return (exact_difference){value, (a - a_part) + (b_part - b)};
}

static void expansion_add(expansion *sum, double term) {
    if (term == 0)
        return;
    int kept = 0;
    for (int i = 0; i < sum->count; i++) {
        double part = sum->part[i];
        double total = term + part;
        double part_taken = total - term;
        double rest = (term - (total - part_taken)) + (part - part_taken);
        term = total;
        if (rest != 0)
            sum->part[kept++] = rest;
    }
    if (term != 0)
        sum->part[kept++] = term;
    sum->count = kept;
}

static int expansion_sign(const expansion *sum) {
    return sum->count == 0 ? 0 : sum->part[sum->count - 1] > 0 ? 1 : -1;
}

static void expansion_add_product(expansion *sum, double a, double b, double c) {
    double ab = a * b;
    double ab_rest = fma(a, b, -ab);
    double high = ab * c, low = ab_rest * c;
    expansion_add(sum, fma(ab_rest, c, -low));
    expansion_add(sum, low);
    expansion_add(sum, fma(ab, c, -high));
    expansion_add(sum, high);
}

static void expansion_add_differences(expansion *sum, double sign, exact_difference a, exact_difference b,
                                      exact_difference c) {
    const double as[2] = {a.value, a.rest}, bs[2] = {b.value, b.rest}, cs[2] = {c.value, c.rest};
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; k < 2; k++)
                if (as[i] != 0 && bs[j] != 0 && cs[k] != 0)
                    expansion_add_product(sum, sign * as[i], bs[j], cs[k]);
}

int toile_orient3d(const double *a, const double *b, const double *c, const double *d) {
    double ax = a[0] - d[0], ay = a[1] - d[1], az = a[2] - d[2];
    double bx = b[0] - d[0], by = b[1] - d[1], bz = b[2] - d[2];
    double cx = c[0] - d[0], cy = c[1] - d[1], cz = c[2] - d[2];
    double det = az * (bx * cy - by * cx) + bz * (cx * ay - cy * ax) + cz * (ax * by - ay * bx);
    double size = fabs(az) * (fabs(bx * cy) + fabs(by * cx)) + fabs(bz) * (fabs(cx * ay) + fabs(cy * ax)) +
                  fabs(cz) * (fabs(ax * by) + fabs(ay * bx));
    /* Shewchuk's bound is (7 + 56 e) e = 7.8e-16 for e = 2^-53. */
    double bound = 1e-15 * size;
    if (det > bound || -det > bound)
        return det > 0 ? 1 : -1;
    if (size == 0)
        return 0;

    exact_difference m[3][3];
    const double *rows[3] = {a, b, c};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            m[i][k] = subtract(rows[i][k], d[k]);
    expansion sum = {.count = 0};
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3, k = (i + 2) % 3;
        expansion_add_differences(&sum, 1, m[0][i], m[1][j], m[2][k]);
        expansion_add_differences(&sum, -1, m[0][i], m[1][k], m[2][j]);
    }
    return expansion_sign(&sum);
}

/* Side of the line a, b that c is on in the plane of two axes; 1 is left. */
static int orient2d(const double *a, const double *b, const double *c, int u, int v) {
    double left = (a[u] - c[u]) * (b[v] - c[v]), right = (a[v] - c[v]) * (b[u] - c[u]);
    double det = left - right;
    double size = fabs(left) + fabs(right);
    double bound = 5e-16 * size; /* (3 + 16 e) e = 3.4e-16 */
    if (det > bound || -det > bound)
        return det > 0 ? 1 : -1;
    if (size == 0)
        return 0;
    const exact_difference one = {1, 0};
    expansion sum = {.count = 0};
    expansion_add_differences(&sum, 1, subtract(a[u], c[u]), subtract(b[v], c[v]), one);
    expansion_add_differences(&sum, -1, subtract(a[v], c[v]), subtract(b[u], c[u]), one);
    return expansion_sign(&sum);
}

/* ---- two triangles ---- */

static bool same_side(int a, int b, int c) {
    return (a >= 0 && b >= 0 && c >= 0) || (a <= 0 && b <= 0 && c <= 0);
}

/* An edge whose ends are on sides sp and sq of the triangle's plane. An edge that lies in the plane is left
 * to the other edges of its triangle: where it meets t, one of them or an edge of t does too. */
static bool edge_hits(const double *p, const double *q, int sp, int sq, const double *const t[3]) {
    if (sp * sq > 0 || (sp == 0 && sq == 0))
        return false;
    return same_side(toile_orient3d(p, q, t[0], t[1]), toile_orient3d(p, q, t[1], t[2]),
                     toile_orient3d(p, q, t[2], t[0]));
}

static bool inside_flat(const double *p, const double *const t[3], int u, int v) {
    return same_side(orient2d(t[0], t[1], p, u, v), orient2d(t[1], t[2], p, u, v),
                     orient2d(t[2], t[0], p, u, v));
}

/* p, known to be on the line through a and b, is between them. */
static bool between_flat(const double *a, const double *b, const double *p, int u, int v) {
    return fmin(a[u], b[u]) <= p[u] && p[u] <= fmax(a[u], b[u]) && fmin(a[v], b[v]) <= p[v] &&
           p[v] <= fmax(a[v], b[v]);
}

static bool edges_cross_flat(const double *a, const double *b, const double *p, const double *q, int u,
                             int v) {
    int sp = orient2d(a, b, p, u, v), sq = orient2d(a, b, q, u, v);
    int sa = orient2d(p, q, a, u, v), sb = orient2d(p, q, b, u, v);
    if (sp * sq < 0 && sa * sb < 0)
        return true;
    return (sp == 0 && between_flat(a, b, p, u, v)) || (sq == 0 && between_flat(a, b, q, u, v)) ||
           (sa == 0 && between_flat(p, q, a, u, v)) || (sb == 0 && between_flat(p, q, b, u, v));
}

static bool edge_meets_flat(const double *p, const double *q, const double *const t[3], int u, int v) {
    return inside_flat(p, t, u, v) || edges_cross_flat(t[0], t[1], p, q, u, v) ||
           edges_cross_flat(t[1], t[2], p, q, u, v) || edges_cross_flat(t[2], t[0], p, q, u, v);
}

/* First of the two axes along which a triangle with area still has area; the second is the next one around.
 */
static int flat_axis(const double *const t[3]) {
    int u = 0;
    while (u < 2 && orient2d(t[0], t[1], t[2], u, (u + 1) % 3) == 0)
        u++;
    return u;
}

static bool degenerate(const double *const t[3]) {
    return orient2d(t[0], t[1], t[2], 0, 1) == 0 && orient2d(t[0], t[1], t[2], 1, 2) == 0 &&
           orient2d(t[0], t[1], t[2], 2, 0) == 0;
}

/* Triangles in one plane whose first `shared` corners are the same. */
static bool meet_flat(const double *const s[3], const double *const t[3], int shared) {
    int u = flat_axis(t), v = (u + 1) % 3;
    if (shared == 2)
        return orient2d(s[0], s[1], s[2], u, v) * orient2d(s[0], s[1], t[2], u, v) > 0;
    if (shared == 1)
        return edge_meets_flat(s[1], s[2], t, u, v) || edge_meets_flat(t[1], t[2], s, u, v);
    for (int i = 0; i < 3; i++)
        if (edge_meets_flat(s[i], s[(i + 1) % 3], t, u, v))
            return true;
    return inside_flat(t[0], s, u, v);
}

/* Triangles with area, of which the first `shared` corners are the same, meet beyond what they share. */
static bool triangles_meet(const double *const s[3], const double *const t[3], int shared) {
    if (shared == 3)
        return true;
    int side_s[3] = {0}, side_t[3] = {0};
    bool flat = true;
    for (int i = shared; i < 3; i++) {
        side_s[i] = toile_orient3d(t[0], t[1], t[2], s[i]);
        flat = flat && side_s[i] == 0;
    }
    if (flat)
        return meet_flat(s, t, shared);
    if (shared == 2)
        return false; /* two planes meet in the line of the shared edge only */
    if (shared == 0 && side_s[0] * side_s[1] > 0 && side_s[0] * side_s[2] > 0)
        return false;
    for (int i = shared; i < 3; i++)
        side_t[i] = toile_orient3d(s[0], s[1], s[2], t[i]);

    /* From a shared corner any ray that stays in both leaves one of them through the edge opposite the
     * corner, so those two edges decide. */
    if (shared == 1)
        return edge_hits(s[1], s[2], side_s[1], side_s[2], t) ||
               edge_hits(t[1], t[2], side_t[1], side_t[2], s);
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3;
        if (edge_hits(s[i], s[j], side_s[i], side_s[j], t) || edge_hits(t[i], t[j], side_t[i], side_t[j], s))
            return true;
    }
    return false;
}

/* ---- a surface and its tree ---- */

typedef struct box {
    double low[3], high[3];
} box;

enum { LEAF_TRIANGLES = 4 };

struct toile_surface {
    toile_memory *memory;
    int vertex_count, triangle_count, used_count, degenerate;
    bool closed;
    double *positions;
    int *triangles;
    box *boxes; /* of each triangle */
    int *order; /* triangles with area along the Morton curve, (used_count) */
    box *nodes; /* heap order: children of i are 2i+1, 2i+2; spans follow from halving [0, used_count) */
    int node_count;
};

static bool boxes_meet(const box *a, const box *b) {
    for (int k = 0; k < 3; k++)
        if (a->low[k] > b->high[k] || b->low[k] > a->high[k])
            return false;
    return true;
}

static void box_cover(box *b, const box *other) {
    for (int k = 0; k < 3; k++) {
        b->low[k] = fmin(b->low[k], other->low[k]);
        b->high[k] = fmax(b->high[k], other->high[k]);
    }
}

static void corners(const toile_surface *surface, int triangle, const double *corner[3]) {
    for (int i = 0; i < 3; i++)
        corner[i] = surface->positions + 3 * (size_t)surface->triangles[3 * (size_t)triangle + i];
}

static uint64_t spread_bits(uint64_t x) {
    x &= 0x1fffff;
    x = (x | x << 32) & 0x001f00000000ffff;
    x = (x | x << 16) & 0x001f0000ff0000ff;
    x = (x | x << 8) & 0x100f00f00f00f00f;
    x = (x | x << 4) & 0x10c30c30c30c30c3;
    return (x | x << 2) & 0x1249249249249249;
}

typedef struct morton {
    uint64_t code;
    int triangle;
} morton;

static int compare_morton(const void *left, const void *right) {
    const morton *a = left, *b = right;
    if (a->code != b->code)
        return a->code < b->code ? -1 : 1;
    return (a->triangle > b->triangle) - (a->triangle < b->triangle);
}

static void build_nodes(toile_surface *surface, int node, int first, int count) {
    box cover = surface->boxes[surface->order[first]];
    if (count <= LEAF_TRIANGLES) {
        for (int i = 1; i < count; i++)
            box_cover(&cover, &surface->boxes[surface->order[first + i]]);
    } else {
        int half = count / 2;
        build_nodes(surface, 2 * node + 1, first, half);
        build_nodes(surface, 2 * node + 2, first + half, count - half);
        cover = surface->nodes[2 * node + 1];
        box_cover(&cover, &surface->nodes[2 * node + 2]);
    }
    surface->nodes[node] = cover;
}

typedef struct edge {
    int low, high, direction;
} edge;

static int compare_edges(const void *left, const void *right) {
    const edge *a = left, *b = right;
    if (a->low != b->low)
        return a->low < b->low ? -1 : 1;
    return (a->high > b->high) - (a->high < b->high);
}

static toile_status find_closed(toile_surface *surface, toile_error *error) {
    size_t count = 3 * (size_t)surface->triangle_count;
    edge *edges = toile_alloc(surface->memory, count, sizeof *edges);
    if (!edges)
        return toile_fail_memory(error, "the edges of a surface");
    for (size_t i = 0; i < count; i++) {
        const int *t = surface->triangles + i / 3 * 3;
        int a = t[i % 3], b = t[(i + 1) % 3];
        edges[i] = a < b ? (edge){a, b, 1} : (edge){b, a, -1};
    }
    qsort(edges, count, sizeof *edges, compare_edges);
    surface->closed = count > 0;
    for (size_t i = 0; i < count && surface->closed;) {
        int balance = 0;
        size_t j = i;
        for (; j < count && compare_edges(&edges[i], &edges[j]) == 0; j++)
            balance += edges[j].direction;
        surface->closed = balance == 0;
        i = j;
    }
    toile_free(surface->memory, edges);
    return TOILE_OK;
}

toile_status toile_surface_create(toile_memory *memory, int vertex_count, const double *positions,
                                  int triangle_count, const int *triangles, toile_surface **result,
                                  toile_error *error) {
    *result = NULL;
    toile_status status = TOILE_OK;
    morton *codes = NULL;
    toile_surface *surface = toile_alloc(memory, 1, sizeof *surface);
    if (!surface)
        return toile_fail_memory(error, "a surface");
    size_t vertices = (size_t)vertex_count, faces = (size_t)triangle_count;
    surface->memory = memory;
    surface->vertex_count = vertex_count;
    surface->triangle_count = triangle_count;
    surface->positions = toile_alloc(memory, 3 * vertices, sizeof(double));
    surface->triangles = toile_alloc(memory, 3 * faces, sizeof(int));
    surface->boxes = toile_alloc(memory, faces, sizeof(box));
    surface->order = toile_alloc(memory, faces, sizeof(int));
    codes = toile_alloc(memory, faces, sizeof *codes);
    if (!surface->positions || !surface->triangles || !surface->boxes || !surface->order || !codes) {
        status = toile_fail_memory(error, "a surface");
        goto out;
    }
    memcpy(surface->positions, positions, 3 * vertices * sizeof(double));
    memcpy(surface->triangles, triangles, 3 * faces * sizeof(int));

    box all = {{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}};
    for (int t = 0; t < triangle_count; t++) {
        const double *corner[3];
        corners(surface, t, corner);
        box *b = &surface->boxes[t];
        for (int k = 0; k < 3; k++) {
            b->low[k] = fmin(corner[0][k], fmin(corner[1][k], corner[2][k]));
            b->high[k] = fmax(corner[0][k], fmax(corner[1][k], corner[2][k]));
        }
        box_cover(&all, b);
        if (degenerate(corner))
            surface->degenerate++;
        else
            codes[surface->used_count++].triangle = t;
    }
    double extent = 0;
    for (int k = 0; k < 3; k++)
        extent = fmax(extent, all.high[k] - all.low[k]);
    double scale = extent > 0 ? 2097151.0 / extent : 0;
    for (int i = 0; i < surface->used_count; i++) {
        const box *b = &surface->boxes[codes[i].triangle];
        for (int k = 0; k < 3; k++) {
            double centre = 0.5 * (b->low[k] + b->high[k]) - all.low[k];
            codes[i].code |= spread_bits((uint64_t)(centre * scale)) << k;
        }
    }
    qsort(codes, (size_t)surface->used_count, sizeof *codes, compare_morton);
    for (int i = 0; i < surface->used_count; i++)
        surface->order[i] = codes[i].triangle;

    /* Halves differ by at most one, so the tree is complete down to one level above its deepest leaves. */
    surface->node_count = 1;
    for (int span = surface->used_count; span > LEAF_TRIANGLES; span = (span + 1) / 2)
        surface->node_count = 2 * surface->node_count + 1;
    surface->nodes = toile_alloc(memory, (size_t)surface->node_count, sizeof(box));
    if (!surface->nodes) {
        status = toile_fail_memory(error, "a surface's tree");
        goto out;
    }
    if (surface->used_count > 0)
        build_nodes(surface, 0, 0, surface->used_count);
    status = find_closed(surface, error);
out:
    toile_free(memory, codes);
    if (status < 0)
        toile_surface_free(surface);
    else
        *result = surface;
    return status;
}

void toile_surface_free(toile_surface *surface) {
    if (!surface)
        return;
    toile_memory *memory = surface->memory;
    toile_free(memory, surface->positions);
    toile_free(memory, surface->triangles);
    toile_free(memory, surface->boxes);
    toile_free(memory, surface->order);
    toile_free(memory, surface->nodes);
    toile_free(memory, surface);
}

int toile_surface_degenerate(const toile_surface *surface) {
    return surface->degenerate;
}

bool toile_surface_closed(const toile_surface *surface) {
    return surface->closed;
}

/* ---- counting ---- */

typedef struct query {
    const toile_surface *from, *in;
    int triangle; /* of `from` */
    int64_t *count;
    toile_meet *meet; /* or null */
    void *user;
} query;

/* Moves corners that the two triangles have in common to the front of both; returns how many. */
static int align_shared(int s[3], int t[3]) {
    int shared = 0;
    for (int i = 0; i < 3; i++)
        for (int j = shared; j < 3; j++)
            if (s[i] == t[j]) {
                int keep = t[shared];
                t[shared] = t[j];
                t[j] = keep;
                keep = s[shared];
                s[shared] = s[i];
                s[i] = keep;
                shared++;
                break;
            }
    return shared;
}

static void test_pair(const query *q, int other) {
    int s[3], t[3], shared = 0;
    memcpy(s, q->from->triangles + 3 * (size_t)q->triangle, sizeof s);
    memcpy(t, q->in->triangles + 3 * (size_t)other, sizeof t);
    if (q->from == q->in)
        shared = align_shared(s, t);
    const double *sp[3], *tp[3];
    for (int i = 0; i < 3; i++) {
        sp[i] = q->from->positions + 3 * (size_t)s[i];
        tp[i] = q->in->positions + 3 * (size_t)t[i];
    }
    if (!triangles_meet(sp, tp, shared))
        return;
    ++*q->count;
    if (q->meet)
        q->meet(q->user, q->triangle, other);
}

static void visit(const query *q, int node, int first, int count) {
    const box *b = &q->from->boxes[q->triangle];
    if (*q->count >= TOILE_INTERSECT_LIMIT || !boxes_meet(b, &q->in->nodes[node]))
        return;
    if (count > LEAF_TRIANGLES) {
        int half = count / 2;
        visit(q, 2 * node + 1, first, half);
        visit(q, 2 * node + 2, first + half, count - half);
        return;
    }
    for (int i = first; i < first + count; i++) {
        int other = q->in->order[i];
        if ((q->from != q->in || other > q->triangle) && boxes_meet(b, &q->in->boxes[other]))
            test_pair(q, other);
    }
}

int64_t toile_intersect_each(const toile_surface *a, const toile_surface *b, toile_meet *meet, void *user) {
    int64_t count = 0;
    if (b->used_count == 0)
        return 0;
    for (int i = 0; i < a->used_count; i++)
        visit(&(query){a, b, a->order[i], &count, meet, user}, 0, 0, b->used_count);
    return count;
}

int64_t toile_intersect_pair(const toile_surface *a, const toile_surface *b) {
    return toile_intersect_each(a, b, NULL, NULL);
}

int64_t toile_intersect_self(const toile_surface *surface) {
    return toile_intersect_pair(surface, surface);
}

/* ---- inside ---- */

/* Side of p moved by an infinitely small step along x and a smaller one along y, so that a vertical line
 * through an edge or a vertex of a closed surface goes through exactly one of the triangles there. */
static int side_moved(const double *a, const double *b, const double *p) {
    int side = orient2d(a, b, p, 0, 1);
    if (side != 0)
        return side;
    if (a[1] != b[1])
        return a[1] > b[1] ? 1 : -1;
    return (b[0] > a[0]) - (b[0] < a[0]);
}

typedef struct climb {
    const double *point;
    int winding;  /* how often the surface closes around the point */
    bool touched; /* the point is on the surface */
} climb;

/* The vertical ray upwards: leaving through a triangle that faces up counts 1, entering through one facing
 * down -1. */
static void climb_nodes(const toile_surface *surface, climb *ray, int node, int first, int count) {
    const double *p = ray->point;
    const box *b = &surface->nodes[node];
    if (p[0] < b->low[0] || p[0] > b->high[0] || p[1] < b->low[1] || p[1] > b->high[1] || p[2] > b->high[2])
        return;
    if (count > LEAF_TRIANGLES) {
        int half = count / 2;
        climb_nodes(surface, ray, 2 * node + 1, first, half);
        climb_nodes(surface, ray, 2 * node + 2, first + half, count - half);
        return;
    }
    const box here = {{p[0], p[1], p[2]}, {p[0], p[1], p[2]}};
    for (int i = first; i < first + count; i++) {
        const double *t[3];
        int triangle = surface->order[i];
        corners(surface, triangle, t);
        if (boxes_meet(&here, &surface->boxes[triangle]) && toile_orient3d(t[0], t[1], t[2], p) == 0) {
            int u = flat_axis(t);
            ray->touched = ray->touched || inside_flat(p, t, u, (u + 1) % 3);
        }
        int facing = side_moved(t[0], t[1], p);
        if (facing == 0 || side_moved(t[1], t[2], p) != facing || side_moved(t[2], t[0], p) != facing)
            continue;
        if (toile_orient3d(t[0], t[1], t[2], p) == facing)
            ray->winding += facing;
    }
}

bool toile_surface_contains(const toile_surface *surface, const double point[3]) {
    climb ray = {point, 0, false};
    if (surface->used_count > 0)
        climb_nodes(surface, &ray, 0, 0, surface->used_count);
    return !ray.touched && ray.winding > 0;
}

/* ---- a whole frame ---- */

static double stretch_of(const toile_garment_view *garment, const float *positions, int triangle) {
    const int *t = garment->triangles + 3 * (size_t)triangle;
    const float *uv = garment->corner_uv + 6 * (size_t)triangle;
    double du1 = (double)uv[2] - uv[0], dv1 = (double)uv[3] - uv[1];
    double du2 = (double)uv[4] - uv[0], dv2 = (double)uv[5] - uv[1];
    double area = du1 * dv2 - du2 * dv1, along_u = 0, along_v = 0;
    if (area == 0)
        return 0;
    /* w_u and w_v of Baraff-Witkin 1998, equation 9. */
    for (int k = 0; k < 3; k++) {
        double d1 = (double)positions[3 * (size_t)t[1] + (size_t)k] - positions[3 * (size_t)t[0] + (size_t)k];
        double d2 = (double)positions[3 * (size_t)t[2] + (size_t)k] - positions[3 * (size_t)t[0] + (size_t)k];
        double wu = (d1 * dv2 - d2 * dv1) / area, wv = (d2 * du1 - d1 * du2) / area;
        along_u += wu * wu;
        along_v += wv * wv;
    }
    return sqrt(fmax(along_u, along_v)) - 1;
}

static int compare_places(const void *a, const void *b) {
    const double *p = *(const double *const *)a, *q = *(const double *const *)b;
    for (int k = 0; k < 3; k++)
        if (p[k] != q[k])
            return p[k] < q[k] ? -1 : 1;
    return p < q ? -1 : p > q;
}

/* Seam twins: vertices of a garment that seams have made one stand at one place to the last bit, and are one here. Corners
 * of the triangles that use the others are changed to the first of them. */
static toile_status join_twins(toile_memory *memory, const double *points, int count, int *corners, size_t corner_count,
                               int base, toile_error *error) {
    const double **order = toile_alloc(memory, (size_t)count, sizeof *order);
    int *first = toile_alloc(memory, (size_t)count, sizeof *first);
    if (!order || !first) {
        toile_free(memory, order);
        toile_free(memory, first);
        return toile_fail_memory(error, "the vertices of a frame");
    }
    for (int i = 0; i < count; i++)
        order[i] = points + 3 * (size_t)i;
    qsort(order, (size_t)count, sizeof *order, compare_places);
    for (int i = 0; i < count; i++) {
        int own = (int)((order[i] - points) / 3);
        bool twin = i > 0 && memcmp(order[i], order[i - 1], 3 * sizeof(double)) == 0;
        first[own] = twin ? first[(order[i - 1] - points) / 3] : own;
    }
    for (size_t i = 0; i < corner_count; i++)
        corners[i] = base + first[corners[i] - base];
    toile_free(memory, order);
    toile_free(memory, first);
    return TOILE_OK;
}

/* What a frame is judged with. */
typedef struct bench {
    int garment_count;
    const toile_garment_view *garments;
    int vertex_count;
    double *points;              /* of all garments, m, (vertex_count x 3) */
    int *vertex_begin;           /* first vertex of each garment, (garment_count + 1) */
    int *triangles;              /* of all garments */
    int *triangle_garment;       /* of each triangle */
    bool *inside;                /* vertices inside any collider */
    toile_surface *cloth;
    const toile_sim *sim;        /* knows what is excluded from contact; null: nothing is */
    int collider;                /* being judged, or -1 */
    const toile_surface *solid;
    toile_judgement *judgement;
} bench;

/* All garments as one surface, so that one pass finds a garment's crossings with itself and with the others. */
static toile_status join_garments(toile_memory *memory, const float *const *positions, bench *b, toile_error *error) {
    size_t vertices = 0, faces = 0, vertex = 0, face = 0;
    for (int g = 0; g < b->garment_count; g++) {
        vertices += (size_t)b->garments[g].vertex_count;
        faces += (size_t)b->garments[g].triangle_count;
    }
    b->triangles = toile_alloc(memory, 3 * faces, sizeof *b->triangles);
    b->triangle_garment = toile_alloc(memory, faces, sizeof *b->triangle_garment);
    b->vertex_begin = toile_alloc(memory, (size_t)b->garment_count + 1, sizeof *b->vertex_begin);
    b->points = toile_alloc(memory, 3 * vertices, sizeof *b->points);
    b->inside = toile_alloc(memory, vertices, sizeof *b->inside);
    if (!b->triangles || !b->triangle_garment || !b->vertex_begin || !b->points || !b->inside)
        return toile_fail_memory(error, "the garments of a frame");
    for (int g = 0; g < b->garment_count; g++) {
        const toile_garment_view *garment = &b->garments[g];
        for (size_t i = 0; i < 3 * (size_t)garment->triangle_count; i++)
            b->triangles[3 * face + i] = garment->triangles[i] + (int)vertex;
        for (int i = 0; i < garment->triangle_count; i++)
            b->triangle_garment[face++] = g;
        for (size_t i = 0; i < 3 * (size_t)garment->vertex_count; i++)
            b->points[3 * vertex + i] = (double)positions[g][i];
        size_t corner_count = 3 * (size_t)garment->triangle_count;
        toile_status status = join_twins(memory, b->points + 3 * vertex, garment->vertex_count,
                                         b->triangles + 3 * face - corner_count, corner_count, (int)vertex, error);
        if (status < 0)
            return status;
        vertex += (size_t)garment->vertex_count;
        b->vertex_begin[g + 1] = (int)vertex;
    }
    b->vertex_count = (int)vertices;
    return toile_surface_create(memory, (int)vertices, b->points, (int)faces, b->triangles, &b->cloth, error);
}

static void release(toile_memory *memory, bench *b) {
    toile_free(memory, b->triangles);
    toile_free(memory, b->triangle_garment);
    toile_free(memory, b->vertex_begin);
    toile_free(memory, b->points);
    toile_free(memory, b->inside);
    toile_surface_free(b->cloth);
}

/* The meeting of a garment with another or a collider, new if there was none; null if there are too many. */
static toile_meeting *meeting_of(const bench *b, int garment, int other, const double *place) {
    toile_judgement *j = b->judgement;
    bool collider = b->collider >= 0;
    for (int i = 0; i < j->meeting_count; i++) {
        toile_meeting *m = &j->meetings[i];
        if (m->garment == garment && m->other == other && m->collider == collider)
            return m;
    }
    if (j->meeting_count == TOILE_MEETINGS_MOST)
        return NULL;
    toile_meeting *m = &j->meetings[j->meeting_count++];
    *m = (toile_meeting){.garment = garment, .other = other, .collider = collider};
    memcpy(m->place, place, sizeof m->place);
    return m;
}

/* Number that the simulation gives a vertex of the joined garments. */
static int particle_of(const bench *b, int vertex) {
    return b->sim->model->place[vertex];
}

/* Whether the scene wants no contact of two triangles: of their garments, or of one of their vertices. */
static bool excluded(const bench *b, int triangle, int other) {
    if (!b->sim || (!b->sim->rules.any_apart && !b->sim->rules.any_exempt))
        return false;
    for (int i = 0; i < 3; i++) {
        int p = particle_of(b, b->triangles[3 * (size_t)triangle + (size_t)i]);
        if (b->collider >= 0 && !toile_touches_solid(&b->sim->rules, p, b->collider))
            return true;
        for (int k = 0; b->collider < 0 && k < 3; k++)
            if (!toile_touches_cloth(&b->sim->rules, p, particle_of(b, b->triangles[3 * (size_t)other + (size_t)k])))
                return true;
    }
    return false;
}

static void note_pair(void *user, int triangle, int other) {
    const bench *b = user;
    toile_judgement *j = b->judgement;
    if (excluded(b, triangle, other)) {
        j->excluded_pairs++;
        return;
    }
    const double *mine[3], *its[3];
    double middle[3];
    corners(b->cloth, triangle, mine);
    corners(b->collider >= 0 ? b->solid : b->cloth, other, its);
    for (int k = 0; k < 3; k++)
        middle[k] = (mine[0][k] + mine[1][k] + mine[2][k] + its[0][k] + its[1][k] + its[2][k]) / 6;
    int first = b->triangle_garment[triangle], second = b->collider;
    if (b->collider < 0) {
        second = b->triangle_garment[other];
        if (second < first) {
            int keep = first;
            first = second;
            second = keep;
        }
        j->cloth_pairs++;
    } else {
        j->collider_pairs++;
    }
    toile_meeting *m = meeting_of(b, first, second, middle);
    if (m)
        m->pairs++;
}

static void note_inside(const bench *b, int garment, int vertex) {
    const double *p = b->points + 3 * (size_t)vertex;
    toile_meeting *m = meeting_of(b, garment, b->collider, p);
    if (m)
        m->inside++;
    if (!b->inside[vertex])
        b->judgement->inside++;
    b->inside[vertex] = true;
}

/* A plane is drawn as a square, but is solid all the way below it. What is on the surface is not inside. */
static bool is_inside(const bench *b, bool plane, toile_side side, const double *p) {
    if (plane) {
        const double *t[3];
        corners(b->solid, 0, t);
        return (side == TOILE_INSIDE ? -1 : 1) * toile_orient3d(t[0], t[1], t[2], p) > 0;
    }
    climb ray = {p, 0, false};
    if (b->solid->used_count > 0)
        climb_nodes(b->solid, &ray, 0, 0, b->solid->used_count);
    return !ray.touched && (side == TOILE_INSIDE ? ray.winding == 0 : ray.winding != 0);
}

static toile_status judge_collider(toile_memory *memory, bench *b, toile_scene *scene, toile_error *error) {
    bool plane = toile_scene_collider_shape(scene, b->collider) == TOILE_PLANE;
    toile_side side = toile_scene_collider_side(scene, b->collider);
    int vertices, faces;
    const double *positions;
    const int *triangles;
    toile_surface *solid = NULL;
    toile_status status =
        toile_scene_collider_mesh(scene, b->collider, &vertices, &positions, &faces, &triangles, error);
    if (status >= 0)
        status = toile_surface_create(memory, vertices, positions, faces, triangles, &solid, error);
    if (status < 0)
        return status;
    b->solid = solid;
    toile_intersect_each(b->cloth, solid, note_pair, b);
    if (side != TOILE_BOTH_SIDES && !plane && !solid->closed)
        b->judgement->open_colliders++;
    if (side != TOILE_BOTH_SIDES && (plane || solid->closed))
        for (int g = 0; g < b->garment_count; g++)
            for (int i = b->vertex_begin[g]; i < b->vertex_begin[g + 1]; i++)
                if ((!b->sim || toile_touches_solid(&b->sim->rules, particle_of(b, i), b->collider)) &&
                    is_inside(b, plane, side, b->points + 3 * (size_t)i))
                    note_inside(b, g, i);
    toile_surface_free(solid);
    return TOILE_OK;
}

toile_status toile_judge_frame(toile_memory *memory, int garment_count, const toile_garment_view *garments,
                               const float *const *positions, toile_scene *scene, toile_judgement *judgement,
                               toile_error *error) {
    *judgement = (toile_judgement){.finite = true};
    for (int g = 0; g < garment_count; g++) {
        for (size_t i = 0; i < 3 * (size_t)garments[g].vertex_count; i++)
            judgement->finite = judgement->finite && isfinite(positions[g][i]);
        for (int t = 0; t < garments[g].triangle_count; t++)
            judgement->max_stretch = fmax(judgement->max_stretch, stretch_of(&garments[g], positions[g], t));
    }
    if (!judgement->finite)
        return TOILE_OK;

    bench b = {.garment_count = garment_count, .garments = garments, .collider = -1, .judgement = judgement};
    toile_status status = join_garments(memory, positions, &b, error);
    /* A scene of other garments knows nothing about these. */
    const toile_sim *sim = scene ? toile_world_sim(toile_scene_world(scene)) : NULL;
    if (status >= 0 && sim && sim->model->particle_count == b.vertex_count && sim->model->garment_count == garment_count)
        b.sim = sim;
    if (status >= 0) {
        judgement->degenerate = b.cloth->degenerate;
        toile_intersect_each(b.cloth, b.cloth, note_pair, &b);
    }
    for (int c = 0; scene && c < toile_scene_collider_count(scene) && status >= 0; c++) {
        b.collider = c;
        status = judge_collider(memory, &b, scene, error);
    }
    release(memory, &b);
    return status;
}
