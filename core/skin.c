#include "skin.h"

#include "half_edge.h"
#include "vec3.h"

#include <emmintrin.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* Node pairs that the search is divided into, so that threads have enough to share. */
#define TASKS_WANTED 256
#define DEPTH_MAX 160

/* A patch of material cannot touch itself while all its normals, at the begin and at the end of a step, are within 60 degrees of each other and its warp directions
 * within 75: seen along the normal it then lies as in the material, only sheared and shortened. (Volino and Magnenat-Thalmann
 * 1994 use the normals; on a compact patch of nearly isometric cloth the warp directions stand for the outline.) */
#define CALM_NORMALS 0.5f
#define CALM_WARP 0.26f
/* The triangles around one point: each within 50 degrees of their mean. */
#define CALM_FAN 0.64

/* Points that drift by no more than this share of the heights of their triangles turn none by more than 8 degrees, which leaves calm
 * patches calm. Heights, not edges: crushed cloth has triangles like needles, whose normals turn over within nothing. */
#define DRIFT_SHARE 0.07

/* Pairs of a triangle of the cloth, and of a collider, on average, that a search is given up at. A shirt has 3 to 5 in all, also while
 * it is pinched; of one that had flown apart there were 6 GB. */
#define MOST_PAIRS 512
#define MOST_PAIRS_SOLID 64

/* Kind of a record that is no pair: two triangles that cross. */
#define CROSSING 2

/* What one thread has found. */
struct toile_finder {
    toile_pair *pair;
    bool crossings;      /* those too? */
    int count, capacity; /* count may be more than capacity: then the search is done again with more room */
    int most;            /* and beyond this it is given up */
    char pad[32];        /* threads write to neighbours */
};

/* ---- making ---- */

/* Unique edges of triangles [begin, end), and which triangle tests which. */
static bool add_edges(toile_skin *s, int begin, int end) {
    int count = 3 * (end - begin);
    toile_half_edge *edges = toile_half_edges(s->memory, s->triangle + 3 * begin, end - begin);
    if (!edges)
        return false;
    for (int i = 0, j; i < count; i = j) {
        j = toile_next_edge(edges, count, i);
        s->edge[2 * s->edge_count] = edges[i].a;
        s->edge[2 * s->edge_count + 1] = edges[i].b;
        for (int k = i; k < j; k++)
            s->edge_of[3 * (begin + edges[k].triangle) + edges[k].corner] = s->edge_count;
        s->owns[begin + edges[i].triangle] |= (unsigned char)(8 << edges[i].corner);
        s->edge_owner[s->edge_count] = begin + edges[i].triangle;
        s->beside[2 * s->edge_count] = begin + edges[i].triangle;
        s->beside[2 * s->edge_count + 1] = j - i > 1 ? begin + edges[i + 1].triangle : -1;
        s->edge_count++;
    }
    toile_free(s->memory, edges);
    return true;
}

static void own_points(toile_skin *s, int begin, int end) {
    for (int t = begin; t < end; t++)
        for (int c = 0; c < 3; c++) {
            int p = s->triangle[3 * t + c];
            if (s->point_owner[p] >= 0)
                continue;
            s->owns[t] |= (unsigned char)(1 << c);
            s->point_owner[p] = t;
        }
}

static bool list_around(toile_skin *s) {
    int n = 3 * s->cloth_triangles;
    s->around_begin = toile_alloc(s->memory, (size_t)s->cloth_points + 2, sizeof(int));
    s->around = toile_alloc(s->memory, (size_t)n, sizeof(int));
    if (!s->around_begin || !s->around)
        return false;
    for (int i = 0; i < n; i++)
        s->around_begin[s->triangle[i] + 2]++;
    for (int p = 0; p < s->cloth_points; p++)
        s->around_begin[p + 2] += s->around_begin[p + 1];
    for (int i = 0; i < n; i++)
        s->around[s->around_begin[s->triangle[i] + 1]++] = i / 3;
    return true;
}

/* Points of stitches that are open, in `open`, and those whose triangles may lie on each other although they all face the same way:
 * beside such a stitch, or because they hang together at the point only. */
static bool mark_loose(toile_skin *s, unsigned char *open) {
    int *count = toile_alloc(s->memory, (size_t)s->cloth_points, sizeof *count);
    if (!count)
        return false;
    for (int p = 0; p < s->cloth_points; p++)
        count[s->same[p]]++;
    for (int p = 0; p < s->cloth_points; p++)
        s->sewing = (open[p] = count[s->same[p]] > 1) || s->sewing;
    memset(count, 0, (size_t)s->cloth_points * sizeof *count);
    for (int e = 0; e < s->edge_count; e++)
        for (int k = 0; k < 2 && s->beside[2 * e + 1] < 0; k++)
            count[s->edge[2 * e + k]]++;
    for (int p = 0; p < s->cloth_points; p++)
        s->loose[p] = count[p] > 2;
    for (int i = 0; i < 3 * s->cloth_triangles; i++)
        for (int k = 0; k < 3; k++)
            s->loose[s->triangle[i]] |= open[s->triangle[i / 3 * 3 + k]];
    toile_free(s->memory, count);
    return true;
}

/* Pieces of material with fewer triangles than this tell nothing of what lies beside what: a mesh that is cut to its own shape, or
 * unwrapped face by face, has a piece for each. */
#define PIECE_LEAST 8

/* Where triangles are for the tree: in the material if that hangs together, which stays a good order however the cloth folds; else at the
 * start. By the order of the file alone a search took 20 times as long where vertices and triangles were shuffled. */
static bool place_triangles(toile_skin *s, const toile_model *m, double *place) {
    const toile_triangles *t = &m->triangles;
    int *size = toile_alloc(s->memory, (size_t)t->piece_count, sizeof *size);
    double extent = 0;
    if (!size)
        return false;
    for (int i = 0; i < t->count; i++)
        size[t->piece[i]]++;
    for (int i = 0; i < t->count; i++) {
        bool whole = size[t->piece[i]] >= PIECE_LEAST;
        for (int k = 0; whole && k < 2; k++)
            place[3 * i + k] = t->middle[2 * i + k];
        for (int c = 0; !whole && c < 3; c++)
            for (int k = 0; k < 3; k++)
                place[3 * i + k] += m->start[4 * (size_t)t->vertex[c][i] + (size_t)k] / 3;
        for (int k = 0; k < 3; k++)
            extent = fmax(extent, fabs(place[3 * i + k]));
    }
    /* pieces, and panels without any, far from each other, so that they are parted first */
    for (int i = 0; i < t->count; i++)
        place[3 * i + 2] += 4 * extent * (size[t->piece[i]] >= PIECE_LEAST ? t->piece[i] : t->piece_count + t->panel[i]);
    toile_free(s->memory, size);
    return true;
}

static bool make_cloth_tree(toile_skin *s, const toile_model *m, const unsigned char *open) {
    const toile_triangles *t = &m->triangles;
    double *place = toile_alloc(s->memory, 3 * (size_t)t->count, sizeof(double));
    int *piece = toile_alloc(s->memory, (size_t)t->count, sizeof *piece);
    bool ok = place && piece && place_triangles(s, m, place);
    for (int i = 0; ok && i < t->count; i++) { /* the sides of an open seam may lie on each other: a piece for each triangle */
        const int *v = s->triangle + 3 * i;
        piece[i] = open[v[0]] || open[v[1]] || open[v[2]] ? -1 - i : t->piece[i];
    }
    ok = ok && toile_tree_make(s->memory, t->count, place, piece, &s->tree);
    toile_free(s->memory, place);
    toile_free(s->memory, piece);
    return ok;
}

static bool make_solid_tree(toile_skin *s, const toile_solid *solid, toile_skin_solid *own) {
    double *place = toile_alloc(s->memory, 3 * (size_t)solid->triangle_count, sizeof(double));
    if (!place)
        return false;
    for (int t = 0; t < solid->triangle_count; t++)
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < 3; k++)
                place[3 * t + k] += solid->from_x[3 * solid->triangles[3 * t + c] + k] / 3;
    bool ok = toile_tree_make(s->memory, solid->triangle_count, place, NULL, &own->tree);
    toile_free(s->memory, place);
    return ok;
}

static void measure_edges(toile_skin *s, const toile_model *m) {
    for (int p = 0; p < s->cloth_points; p++) {
        double sum = 0;
        int count = 0;
        for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++) {
            int t = s->around[i];
            sum += sqrt(2 * m->triangles.area[t]); /* the short sides of a half square; in the material, whatever the start */
            count++;
        }
        s->mean_edge[p] = count ? sum / count : 0;
    }
}

int toile_skin_usual_pairs(const toile_skin *s) {
    int solid = s->triangle_count - s->cloth_triangles, most = 8 * s->cloth_triangles; /* what is finer than the cloth counts more */
    return 4 * s->cloth_triangles + 2 * (solid < most ? solid : most) + 1024;
}

int toile_skin_most_pairs(const toile_skin *s) {
    double most = MOST_PAIRS * (double)s->cloth_triangles + MOST_PAIRS_SOLID * (double)(s->triangle_count - s->cloth_triangles) + 1e6;
    return most < 1e9 ? (int)most : 1000000000;
}

toile_status toile_skin_make(toile_memory *memory, const toile_model *m, const toile_solid *solids, int solid_count, int threads,
                             toile_skin *s, toile_error *error) {
    memset(s, 0, sizeof *s);
    s->memory = memory;
    s->cloth_points = s->point_count = m->particle_count;
    s->cloth_triangles = s->triangle_count = m->triangles.count;
    for (int i = 0; i < solid_count; i++)
        if (toile_has_edges(&solids[i])) {
            s->solid_count++;
            s->point_count += solids[i].vertex_count;
            s->triangle_count += solids[i].triangle_count;
        }
    size_t points = (size_t)s->point_count, triangles = (size_t)s->triangle_count;
    s->triangle = toile_alloc(memory, 3 * triangles, sizeof(int));
    s->edge = toile_alloc(memory, 6 * triangles, sizeof(int));
    s->edge_of = toile_alloc(memory, 3 * triangles, sizeof(int));
    s->beside = toile_alloc(memory, 6 * triangles, sizeof(int));
    s->owns = toile_alloc(memory, triangles, 1);
    s->point_owner = toile_alloc(memory, points, sizeof(int));
    s->edge_owner = toile_alloc(memory, 3 * triangles, sizeof(int));
    s->solid_of = toile_alloc(memory, points, sizeof(int));
    s->same = toile_alloc(memory, points, sizeof(int));
    s->mean_edge = toile_alloc(memory, (size_t)s->cloth_points, sizeof(double));
    s->solids = toile_alloc(memory, (size_t)s->solid_count, sizeof *s->solids);
    s->begin = toile_alloc(memory, 4 * points, sizeof(double));
    s->end = toile_alloc(memory, 4 * points, sizeof(double));
    s->at = toile_alloc(memory, 4 * points, sizeof(double));
    s->fresh = toile_alloc(memory, points + triangles, 1);
    s->normal = toile_alloc(memory, 4 * triangles, sizeof(float));
    s->hold = toile_alloc(memory, (size_t)s->cloth_points, sizeof(float));
    s->calm = toile_alloc(memory, (size_t)s->cloth_points, 1);
    s->loose = toile_alloc(memory, (size_t)s->cloth_points, 1);
    s->tangled = toile_alloc(memory, points, 1);
    s->finders = toile_alloc(memory, (size_t)threads, sizeof *s->finders);
    s->finder_count = threads;
    bool ok = s->triangle && s->edge && s->edge_of && s->beside && s->owns && s->point_owner && s->edge_owner && s->solid_of && s->same &&
              s->mean_edge && s->solids && s->begin && s->end && s->at && s->fresh && s->normal && s->hold && s->calm && s->loose && s->tangled && s->finders;
    if (ok) {
        for (int p = 0; p < s->point_count; p++)
            s->point_owner[p] = -1;
        for (int t = 0; t < s->cloth_triangles; t++)
            for (int c = 0; c < 3; c++)
                s->triangle[3 * t + c] = m->triangles.vertex[c][t];
        for (int p = 0; p < s->cloth_points; p++)
            s->solid_of[p] = -1;
        for (int p = 0; p < s->point_count; p++)
            s->same[p] = p < s->cloth_points ? m->sewn[p] : p;
        unsigned char *open = s->fresh; /* not used before the first search */
        ok = add_edges(s, 0, s->cloth_triangles) && list_around(s) && mark_loose(s, open) && make_cloth_tree(s, m, open);
        s->cloth_edges = s->edge_count;
    }
    if (ok) {
        own_points(s, 0, s->cloth_triangles);
        measure_edges(s, m);
    }
    for (int i = 0, k = 0, point = s->cloth_points, triangle = s->cloth_triangles; ok && i < solid_count; i++) {
        const toile_solid *solid = &solids[i];
        if (!toile_has_edges(solid))
            continue;
        s->solids[k] = (toile_skin_solid){.solid = i, .point_begin = point, .triangle_begin = triangle};
        for (int j = 0; j < 3 * solid->triangle_count; j++)
            s->triangle[3 * triangle + j] = point + solid->triangles[j];
        for (int j = 0; j < solid->vertex_count; j++)
            s->solid_of[point + j] = k;
        ok = add_edges(s, triangle, triangle + solid->triangle_count) && make_solid_tree(s, solid, &s->solids[k]);
        own_points(s, triangle, triangle + solid->triangle_count);
        point += solid->vertex_count;
        triangle += solid->triangle_count;
        k++;
    }
    for (int i = 0; ok && i < threads; i++) {
        int usual = toile_skin_usual_pairs(s);
        s->finders[i].pair = toile_alloc(memory, (size_t)usual, sizeof *s->finders[i].pair);
        s->finders[i].capacity = s->finders[i].pair ? usual : 0;
        ok = s->finders[i].pair != NULL;
    }
    s->crossed.pair = ok ? toile_alloc(memory, 256, sizeof *s->crossed.pair) : NULL;
    s->crossed.capacity = s->crossed.pair ? 256 : 0;
    if (ok && s->crossed.pair)
        return TOILE_OK;
    toile_skin_free(s);
    return toile_fail_memory(error, "what finds cloth that touches cloth");
}

void toile_skin_free(toile_skin *s) {
    if (!s->memory)
        return;
    for (int i = 0; s->solids && i < s->solid_count; i++)
        toile_tree_free(s->memory, &s->solids[i].tree);
    for (int i = 0; s->finders && i < s->finder_count; i++)
        toile_free(s->memory, s->finders[i].pair);
    toile_tree_free(s->memory, &s->tree);
    void *blocks[] = {s->triangle, s->edge, s->edge_of, s->beside, s->owns, s->around_begin, s->around, s->solid_of, s->same, s->mean_edge,
                      s->solids, s->point_owner, s->edge_owner, s->begin, s->end, s->at, s->fresh, s->hold, s->normal, s->calm, s->loose, s->tangled, s->crossed.pair, s->finders, s->task};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(s->memory, blocks[i]);
    memset(s, 0, sizeof *s);
}

/* ---- refitting ---- */

/* Bounds of a triangle's way with room to every side, rounded outwards. */
static void box_of(const toile_skin *s, int t, double room, toile_box *box) {
    double lo[3] = {INFINITY, INFINITY, INFINITY}, hi[3] = {-INFINITY, -INFINITY, -INFINITY};
    for (int c = 0; c < 3; c++) {
        const double *a = s->begin + 4 * (size_t)s->triangle[3 * t + c], *b = s->at + 4 * (size_t)s->triangle[3 * t + c];
        for (int k = 0; k < 3; k++) {
            double l = a[k] < b[k] ? a[k] : b[k], h = a[k] < b[k] ? b[k] : a[k];
            lo[k] = l < lo[k] ? l : lo[k];
            hi[k] = h > hi[k] ? h : hi[k];
        }
    }
    for (int k = 0; k < 3; k++) {
        double slack = room + 1.5e-7 * (fabs(lo[k]) + fabs(hi[k]));
        box->lo[k] = (float)(lo[k] - slack);
        box->hi[k] = (float)(hi[k] + slack);
    }
}

static void unit(double *v, float *out) {
    double length = sqrt(dot(v, v)), inverse = length > 1e-300 ? 1 / length : 0;
    for (int k = 0; k < 3; k++)
        out[k] = (float)(v[k] * inverse);
}

/* Unit normal of a triangle at these places of points, and direction of the warp. */
static void turn_of(const toile_skin *s, const toile_model *m, int t, const double *x, float normal[3], float warp[3]) {
    const int *v = s->triangle + 3 * t;
    const double *a = x + 4 * (size_t)v[0], *b = x + 4 * (size_t)v[1], *c = x + 4 * (size_t)v[2];
    double ab[3], ac[3], n[3], w[3];
    sub(b, a, ab), sub(c, a, ac);
    cross(ab, ac, n);
    unit(n, normal);
    if (!warp)
        return;
    for (int k = 0; k < 3; k++)
        w[k] = m->triangles.a1[t] * ab[k] + m->triangles.a2[t] * ac[k];
    unit(w, warp);
}

static void fit_triangle(toile_skin *s, const toile_model *m, int t, double room, toile_tree *tree, int leaf) {
    float *normal = s->normal + 4 * (size_t)t, now[2][3], before[2][3];
    box_of(s, t, room, &tree->box[leaf]);
    turn_of(s, m, t, s->at, normal, tree->turn ? now[1] : NULL);
    if (!tree->turn)
        return;
    memcpy(now[0], normal, sizeof now[0]);
    turn_of(s, m, t, s->begin, before[0], before[1]);
    for (int d = 0; d < 2; d++)
        for (int k = 0; k < 3; k++) {
            tree->turn[2 * leaf + d].lo[k] = now[d][k] < before[d][k] ? now[d][k] : before[d][k];
            tree->turn[2 * leaf + d].hi[k] = now[d][k] > before[d][k] ? now[d][k] : before[d][k];
        }
}

static bool fan_is_calm(const toile_skin *s, int p) {
    double mean[3] = {0, 0, 0};
    if (s->loose[p])
        return false;
    for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++)
        for (int k = 0; k < 3; k++)
            mean[k] += s->normal[4 * (size_t)s->around[i] + (size_t)k];
    double least = CALM_FAN * sqrt(dot(mean, mean));
    for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++) {
        const float *n = s->normal + 4 * (size_t)s->around[i];
        if (!(n[0] * mean[0] + n[1] * mean[1] + n[2] * mean[2] > least))
            return false;
    }
    return true;
}

/* Points that are no longer where they were looked for. Returns whether any of [begin, end) is. */
static bool mark_moved(toile_skin *s, int begin, int end, double drift, bool same_begin) {
    bool any = false;
    for (int p = begin; p < end; p++) {
        const double *x = s->end + 4 * (size_t)p, *from = s->begin + 4 * (size_t)p;
        double *at = s->at + 4 * (size_t)p, now[3], before[3];
        double most = p < s->cloth_points ? fmin(drift, s->hold[p]) : drift;
        sub(x, at, now), sub(from, at, before);
        bool moved = !s->listed || dot(now, now) > most * most || (!same_begin && dot(before, before) > most * most);
        if (moved)
            memcpy(at, x, 4 * sizeof *at);
        s->fresh[p] = moved;
        any = any || moved;
    }
    return any;
}

static bool is_fresh(const toile_skin *s, int t) {
    return s->fresh[s->point_count + t];
}

static bool fan_is_fresh(const toile_skin *s, int p) {
    for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++)
        if (is_fresh(s, s->around[i]))
            return true;
    return false;
}

/* The least height of the triangles around a point, where they were looked for. */
static double least_height(const toile_skin *s, int p) {
    double least = INFINITY;
    for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++) {
        const int *v = s->triangle + 3 * s->around[i];
        double e[3][3], n[3], longest2 = 0;
        for (int c = 0; c < 3; c++) {
            sub(s->at + 4 * (size_t)v[(c + 1) % 3], s->at + 4 * (size_t)v[c], e[c]);
            longest2 = fmax(longest2, dot(e[c], e[c]));
        }
        cross(e[0], e[1], n);
        least = fmin(least, longest2 > 0 ? sqrt(dot(n, n) / longest2) : 0);
    }
    return least;
}

/* New boxes for triangles [begin, begin + tree->count) that have moved. */
static void fit_triangles(toile_skin *s, const toile_model *m, int begin, double room, toile_tree *tree, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int i = 0; i < tree->count; i++) {
        const int *v = s->triangle + 3 * (begin + i);
        bool fresh = s->fresh[v[0]] || s->fresh[v[1]] || s->fresh[v[2]];
        tree->nodes[tree->leaf_of[i]].fresh = fresh;
        s->fresh[s->point_count + begin + i] = fresh;
        if (fresh)
            fit_triangle(s, m, begin + i, room, tree, tree->leaf_of[i]);
    }
}

/* The least that the product of two unit vectors within the bounds can be. */
static float least_product(const toile_box *b) {
    float sum = 0;
    for (int k = 0; k < 3; k++) {
        float l = b->lo[k], h = b->hi[k];
        sum += l > 0 ? l * l : h < 0 ? h * h : l * h;
    }
    return sum;
}

static void look_again(toile_skin *s, int t) {
    s->fresh[s->point_count + t] = s->tree.nodes[s->tree.leaf_of[t]].fresh = true;
}

/* Which fans are calm now. In one that no longer is nothing was looked for: its triangles are, all of them, however little those that
 * made it so are. Before the tree is refitted. */
static void calm_fans(toile_skin *s, int threads) {
    enum { LOST = 2 };
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int p = 0; p < s->cloth_points; p++)
        if (fan_is_fresh(s, p)) {
            bool calm = fan_is_calm(s, p);
            s->calm[p] = calm ? 1 : s->calm[p] ? LOST : 0;
            s->hold[p] = (float)(DRIFT_SHARE * least_height(s, p));
        }
    for (int p = 0; p < s->cloth_points; p++) {
        if (s->calm[p] != LOST)
            continue;
        s->calm[p] = 0;
        for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++)
            look_again(s, s->around[i]);
    }
    for (int t = 0; t < s->cloth_triangles; t++) {
        const int *v = s->triangle + 3 * t;
        if (is_fresh(s, t))
            s->tree.nodes[s->tree.leaf_of[t]].even = s->calm[v[0]] && s->calm[v[1]] && s->calm[v[2]];
    }
}

/* The same for patches, after it. Triangles around a patch count too, which its points' fans stand for: one that turns over beside it
 * folds it. */
static void calm_patches(toile_skin *s) {
    toile_tree *t = &s->tree;
    int end = 2 * t->count - 1, again = 0; /* below `again` all is to be looked for */
    for (int i = 0; i < end; i++) {
        toile_tree_node *node = &t->nodes[i];
        int size = node->right ? 2 * node->item - 1 : 1;
        if (i >= again && !node->fresh) {
            i += size - 1;
            continue;
        }
        bool calm = node->right && node->whole && node->even && least_product(&t->turn[2 * i]) > CALM_NORMALS &&
                    least_product(&t->turn[2 * i + 1]) > CALM_WARP;
        if (node->calm && !calm && i + size > again)
            again = i + size;
        node->calm = calm;
        if (i < again)
            node->fresh = true;
        if (i < again && !node->right)
            s->fresh[s->point_count + node->item] = true;
    }
}

static void refit(toile_skin *s, const toile_model *m, toile_reach reach, bool same_begin, int threads) {
    double room = reach.cloth > 0 ? 0.5 * reach.cloth : 0, rest = reach.solid > room ? reach.solid - room : 0;
    mark_moved(s, 0, s->cloth_points, reach.drift, same_begin);
    fit_triangles(s, m, 0, room, &s->tree, threads);
    calm_fans(s, threads);
    toile_tree_refit(&s->tree);
    calm_patches(s);
    for (int i = 0; i < s->solid_count; i++) {
        toile_skin_solid *solid = &s->solids[i];
        int end = i + 1 < s->solid_count ? s->solids[i + 1].point_begin : s->point_count;
        bool moved = mark_moved(s, solid->point_begin, end, reach.drift, same_begin), was = solid->tree.count && solid->tree.nodes[0].fresh;
        if (!moved && !was)
            continue;
        fit_triangles(s, m, solid->triangle_begin, rest, &solid->tree, threads);
        toile_tree_refit(&solid->tree);
    }
    s->listed = true;
}

/* Takes out the pairs that are looked for anew. */
static void drop_fresh(const toile_skin *s, toile_pairs *pairs) {
    int kept = 0;
    for (int i = 0; i < pairs->count; i++) {
        const toile_pair *pair = &pairs->pair[i];
        int first = (int)(pair->key >> 31 & 0x7fffffff), second = (int)(pair->key & 0x7fffffff);
        bool edges = toile_pair_kind(pair) == TOILE_CCD_EE;
        if (!is_fresh(s, edges ? s->edge_owner[first] : s->point_owner[first]) && !is_fresh(s, edges ? s->edge_owner[second] : second))
            pairs->pair[kept++] = *pair;
    }
    pairs->count = kept;
}

/* ---- the search ---- */

static void emit(struct toile_finder *f, int kind, int first, int second, int p0, int p1, int p2, int p3) {
    if (f->count < f->capacity)
        f->pair[f->count] = (toile_pair){(uint64_t)kind << 62 | (uint64_t)first << 31 | (uint64_t)second, {p0, p1, p2, p3}, -1, -1};
    f->count++;
}

/* The corners of a triangle where the step begins and where it is, side by side, seen from one point so that it works far from the
 * origin. */
typedef struct corners {
    __m128d x[3], y[3], z[3];
} corners;

static corners corners_from(const toile_skin *s, const int *v, const double *from) {
    corners c;
    for (int i = 0; i < 3; i++) {
        const double *p = s->begin + 4 * (size_t)v[i], *q = s->at + 4 * (size_t)v[i];
        c.x[i] = _mm_sub_pd(_mm_set_pd(q[0], p[0]), _mm_set1_pd(from[0]));
        c.y[i] = _mm_sub_pd(_mm_set_pd(q[1], p[1]), _mm_set1_pd(from[1]));
        c.z[i] = _mm_sub_pd(_mm_set_pd(q[2], p[2]), _mm_set1_pd(from[2]));
    }
    return c;
}

/* Least and most of the corners along a direction, at both times. */
static inline void extent_along(const corners *c, const double *n, __m128d *lo, __m128d *hi) {
    __m128d nx = _mm_set1_pd(n[0]), ny = _mm_set1_pd(n[1]), nz = _mm_set1_pd(n[2]), p[3];
    for (int i = 0; i < 3; i++)
        p[i] = _mm_add_pd(_mm_add_pd(_mm_mul_pd(nx, c->x[i]), _mm_mul_pd(ny, c->y[i])), _mm_mul_pd(nz, c->z[i]));
    *lo = _mm_min_pd(_mm_min_pd(p[0], p[1]), p[2]);
    *hi = _mm_max_pd(_mm_max_pd(p[0], p[1]), p[2]);
}

/* Are both of these gaps, at begin and end, wider than `far`? Gaps along a direction of squared length `scale`. */
static inline bool wider(__m128d gap, __m128d far, __m128d scale) {
    __m128d apart = _mm_cmpgt_pd(gap, _mm_setzero_pd());
    return _mm_movemask_pd(_mm_and_pd(apart, _mm_cmpgt_pd(_mm_mul_pd(gap, gap), _mm_mul_pd(_mm_mul_pd(far, far), scale)))) == 3;
}

/* Do the ways of two triangles stay more than `reach`, and what rounding may take off it, apart along n, of any length? Straight ways:
 * at both ends is always. */
static inline bool apart_along(const double *n, const corners *a, const corners *b, double reach) {
    __m128d lo_a, hi_a, lo_b, hi_b, far = _mm_set1_pd(reach * 1.000001), scale = _mm_set1_pd(dot(n, n));
    extent_along(a, n, &lo_a, &hi_a);
    extent_along(b, n, &lo_b, &hi_b);
    return wider(_mm_sub_pd(lo_a, hi_b), far, scale) || wider(_mm_sub_pd(lo_b, hi_a), far, scale);
}

static bool apart_across(const toile_skin *s, int t, const corners *a, const corners *b, double reach) {
    const float *n = s->normal + 4 * (size_t)t;
    return apart_along((double[3]){n[0], n[1], n[2]}, a, b, reach);
}

static bool ways_meet(const toile_skin *s, const int *a, int na, const int *b, int nb, double reach) {
    for (int k = 0; k < 3; k++) {
        double lo_a = INFINITY, hi_a = -INFINITY, lo_b = INFINITY, hi_b = -INFINITY;
        for (int i = 0; i < na; i++) {
            double p = s->begin[4 * (size_t)a[i] + (size_t)k], q = s->at[4 * (size_t)a[i] + (size_t)k];
            double l = p < q ? p : q, h = p < q ? q : p;
            lo_a = l < lo_a ? l : lo_a, hi_a = h > hi_a ? h : hi_a;
        }
        for (int i = 0; i < nb; i++) {
            double p = s->begin[4 * (size_t)b[i] + (size_t)k], q = s->at[4 * (size_t)b[i] + (size_t)k];
            double l = p < q ? p : q, h = p < q ? q : p;
            lo_b = l < lo_b ? l : lo_b, hi_b = h > hi_b ? h : hi_b;
        }
        if (lo_a - hi_b > reach || lo_b - hi_a > reach)
            return false;
    }
    return true;
}

/* Directions in the triangle's plane, across each edge: what tells neighbours in a flat sheet apart. */
static bool apart_beside(const toile_skin *s, int t, const corners *a, const corners *b, double reach) {
    const int *v = s->triangle + 3 * t;
    const float *n = s->normal + 4 * (size_t)t;
    double nd[3] = {n[0], n[1], n[2]};
    for (int c = 0; c < 3; c++) {
        double edge[3], across[3];
        sub(s->at + 4 * (size_t)v[(c + 1) % 3], s->at + 4 * (size_t)v[c], edge);
        cross(edge, nd, across);
        if (apart_along(across, a, b, reach))
            return true;
    }
    return false;
}

static bool among(int p, const int *points, int count) {
    for (int i = 0; i < count; i++)
        if (p == points[i])
            return true;
    return false;
}

static void test_points(const toile_skin *s, struct toile_finder *f, int owner, int other, double reach) {
    const int *v = s->triangle + 3 * owner, *w = s->triangle + 3 * other;
    for (int c = 0; c < 3; c++)
        if (s->owns[owner] >> c & 1 && !among(v[c], w, 3) && ways_meet(s, &v[c], 1, w, 3, reach))
            emit(f, 0, v[c], other, v[c], w[0], w[1], w[2]);
}

static void test_edges(const toile_skin *s, struct toile_finder *f, int a, int b, double reach) {
    for (int i = 0; i < 3; i++) {
        int e = s->edge_of[3 * a + i];
        for (int j = 0; s->owns[a] >> (3 + i) & 1 && j < 3; j++) {
            int g = s->edge_of[3 * b + j];
            if (!(s->owns[b] >> (3 + j) & 1))
                continue;
            const int *p = s->edge + 2 * (e < g ? e : g), *q = s->edge + 2 * (e < g ? g : e);
            if (!among(p[0], q, 2) && !among(p[1], q, 2) && ways_meet(s, p, 2, q, 2, reach))
                emit(f, 1, e < g ? e : g, e < g ? g : e, p[0], p[1], q[0], q[1]);
        }
    }
}

/* Six times the volume of a tetrahedron. */
static double volume(const double *a, const double *b, const double *c, const double *d) {
    double ab[3], ac[3], ad[3], n[3];
    sub(b, a, ab), sub(c, a, ac), sub(d, a, ad);
    cross(ab, ac, n);
    return dot(n, ad);
}

/* Does an edge of triangle a pass through triangle b at the end? */
static bool pierces(const toile_skin *s, int a, int b) {
    const int *v = s->triangle + 3 * a, *w = s->triangle + 3 * b;
    const double *t[3];
    for (int i = 0; i < 3; i++)
        t[i] = s->end + 4 * (size_t)w[i];
    for (int i = 0; i < 3; i++) {
        int p = v[i], q = v[(i + 1) % 3];
        if (among(p, w, 3) || among(q, w, 3))
            continue;
        const double *x = s->end + 4 * (size_t)p, *y = s->end + 4 * (size_t)q;
        double from = volume(t[0], t[1], t[2], x), to = volume(t[0], t[1], t[2], y);
        if (!(from * to < 0))
            continue;
        double e0 = volume(x, y, t[0], t[1]), e1 = volume(x, y, t[1], t[2]), e2 = volume(x, y, t[2], t[0]);
        if ((e0 > 0 && e1 > 0 && e2 > 0) || (e0 < 0 && e1 < 0 && e2 < 0))
            return true;
    }
    return false;
}

int toile_skin_layers(const toile_skin *s, const double *x, const double a[3], const double b[3], int but) {
    toile_box way = {{0}, {0}};
    int count = 0, stack[DEPTH_MAX], depth = 0;
    for (int k = 0; k < 3; k++) {
        way.lo[k] = (float)(fmin(a[k], b[k]) - 1.5e-7 * (fabs(a[k]) + fabs(b[k])));
        way.hi[k] = (float)(fmax(a[k], b[k]) + 1.5e-7 * (fabs(a[k]) + fabs(b[k])));
    }
    if (s->tree.count)
        stack[depth++] = 0;
    while (depth) {
        int node = stack[--depth];
        if (!toile_boxes_meet(&s->tree.box[node], &way))
            continue;
        if (s->tree.nodes[node].right) {
            stack[depth++] = s->tree.nodes[node].right;
            stack[depth++] = node + 1;
            continue;
        }
        const int *v = s->triangle + 3 * s->tree.nodes[node].item;
        const double *t[3] = {x + 4 * (size_t)v[0], x + 4 * (size_t)v[1], x + 4 * (size_t)v[2]};
        if (among(but, v, 3) || !(volume(t[0], t[1], t[2], a) * volume(t[0], t[1], t[2], b) < 0))
            continue;
        double e0 = volume(a, b, t[0], t[1]), e1 = volume(a, b, t[1], t[2]), e2 = volume(a, b, t[2], t[0]);
        count += (e0 > 0 && e1 > 0 && e2 > 0) || (e0 < 0 && e1 < 0 && e2 < 0);
    }
    return count;
}

/* All that two triangles of the skin have to do with each other. */
static void test_features(const toile_skin *s, struct toile_finder *f, int a, int b, double reach) {
    test_points(s, f, a, b, reach);
    test_points(s, f, b, a, reach);
    test_edges(s, f, a, b, reach);
    if (f->crossings && (pierces(s, a, b) || pierces(s, b, a)))
        emit(f, CROSSING, a, b, 0, 0, 0, 0);
}

/* Two triangles whose boxes meet. Those that share a point are that point's (look_around). */
static void test_triangles(const toile_skin *s, struct toile_finder *f, int a, int b, double reach) {
    const int *v = s->triangle + 3 * a, *w = s->triangle + 3 * b;
    if (among(v[0], w, 3) || among(v[1], w, 3) || among(v[2], w, 3))
        return;
    const double *from = s->begin + 4 * (size_t)v[0];
    corners mine = corners_from(s, v, from), its = corners_from(s, w, from);
    if (!apart_across(s, a, &mine, &its, reach) && !apart_across(s, b, &mine, &its, reach) && !apart_beside(s, a, &mine, &its, reach) &&
        !apart_beside(s, b, &mine, &its, reach))
        test_features(s, f, a, b, reach);
}

/* Triangles around a point whose fan is not calm, those that share another one that is not at the first of them. Not left to the
 * tree: two of a fan may be alone in a calm patch, and the one between them, in another, turned over. */
static void look_around(const toile_skin *s, struct toile_finder *f, int p, double reach) {
    for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++)
        for (int j = i + 1; j < s->around_begin[p + 1]; j++) {
            int a = s->around[i], b = s->around[j];
            bool mine = is_fresh(s, a) || is_fresh(s, b);
            for (int c = 0; mine && c < 3; c++) {
                int q = s->triangle[3 * a + c];
                mine = q == p || !among(q, s->triangle + 3 * b, 3) || (!s->calm[q] && q > p);
            }
            if (mine)
                test_features(s, f, a, b, reach);
        }
}

/* One node pair: gives those it leads to, up to three, as (node, node); leaves are tested at once. */
static int open_pair(const toile_skin *s, struct toile_finder *f, const toile_tree *other, int triangle_begin, int a, int b,
                     toile_reach reach, int next[6]) {
    const toile_tree *t = &s->tree;
    if (f->count > f->most)
        return 0;
    if (other == t && a == b) {
        int r = t->nodes[a].right;
        if (!r || !t->nodes[a].fresh || t->nodes[a].calm)
            return 0;
        next[0] = r, next[1] = r, next[2] = a + 1, next[3] = a + 1, next[4] = a + 1, next[5] = r;
        return 3;
    }
    if (!(t->nodes[a].fresh || other->nodes[b].fresh) || !toile_boxes_meet(&t->box[a], &other->box[b]))
        return 0;
    int right_a = t->nodes[a].right, right_b = other->nodes[b].right;
    if (!right_a && !right_b) {
        test_triangles(s, f, t->nodes[a].item, triangle_begin + other->nodes[b].item,
                       other == t ? reach.cloth : reach.solid);
        return 0;
    }
    if (right_a && (!right_b || t->nodes[a].item >= other->nodes[b].item)) {
        next[0] = right_a, next[1] = b, next[2] = a + 1, next[3] = b;
    } else {
        next[0] = a, next[1] = right_b, next[2] = a, next[3] = b + 1;
    }
    return 2;
}

static void look_into(const toile_skin *s, struct toile_finder *f, const int *task, toile_reach reach) {
    int stack[2 * DEPTH_MAX + 6], depth = 0;
    const toile_tree *other = task[0] < 0 ? &s->tree : &s->solids[task[0]].tree;
    int triangle_begin = task[0] < 0 ? 0 : s->solids[task[0]].triangle_begin;
    stack[depth++] = task[1];
    stack[depth++] = task[2];
    while (depth) {
        int b = stack[--depth], a = stack[--depth];
        depth += 2 * open_pair(s, f, other, triangle_begin, a, b, reach, stack + depth);
    }
}

/* Opens pairs of nodes, first ones first, until there are enough for all threads. Returns how many. */
static int divide(const toile_skin *s, struct toile_finder *f, toile_reach reach, int *task, int capacity) {
    int first = 0, count = 0, next[6];
    if (reach.cloth >= 0 && s->tree.count)
        task[0] = -1, task[1] = task[2] = 0, count++;
    for (int i = 0; reach.solid >= 0 && i < s->solid_count; i++)
        if (s->tree.count && s->solids[i].tree.count)
            task[3 * count] = i, task[3 * count + 1] = task[3 * count + 2] = 0, count++;
    while (first < count && count - first < TASKS_WANTED && count + 3 <= capacity) {
        int *own = task + 3 * first++;
        const toile_tree *other = own[0] < 0 ? &s->tree : &s->solids[own[0]].tree;
        int found = open_pair(s, f, other, own[0] < 0 ? 0 : s->solids[own[0]].triangle_begin, own[1], own[2], reach, next);
        for (int i = 0; i < found; i++, count++)
            task[3 * count] = own[0], task[3 * count + 1] = next[2 * i], task[3 * count + 2] = next[2 * i + 1];
    }
    memmove(task, task + 3 * first, 3 * (size_t)(count - first) * sizeof(int));
    return count - first;
}

static bool make_room(toile_memory *memory, toile_pair **pair, int *capacity, int wanted) {
    if (wanted <= *capacity)
        return true;
    int room = wanted + wanted / 2 + 1024;
    toile_pair *more = toile_grow(memory, *pair, (size_t)*capacity, (size_t)room, sizeof **pair);
    if (!more)
        return false;
    *pair = more;
    *capacity = room;
    return true;
}

void toile_skin_mark_crossing(toile_skin *s, int a, int b) {
    bool solid = b >= s->cloth_triangles;
    s->crossings[solid]++;
    for (int c = 0; c < 3; c++) {
        s->tangled[s->triangle[3 * a + c]] |= solid ? TOILE_TANGLED_SOLID : TOILE_TANGLED_CLOTH;
        s->tangled[s->triangle[3 * b + c]] |= solid ? TOILE_TANGLED_SOLID : TOILE_TANGLED_CLOTH;
    }
}

toile_status toile_skin_search(toile_skin *s, const toile_model *m, toile_reach reach, bool same_begin, bool crossings,
                               int threads, toile_pairs *pairs, toile_error *error) {
    threads = threads < s->finder_count ? threads : s->finder_count;
    int capacity = 8 * TASKS_WANTED + s->solid_count, crossed = 0;
    int total = 0, most = toile_skin_most_pairs(s);
    if (s->task_capacity < capacity) {
        toile_free(s->memory, s->task);
        s->task_capacity = 0;
        if (!(s->task = toile_alloc(s->memory, 3 * (size_t)capacity, sizeof(int))))
            return toile_fail_memory(error, "the search for contacts");
        s->task_capacity = capacity;
    }
    s->listed = s->listed && !crossings; /* everything is asked whether it crosses */
    if (!s->listed)
        pairs->count = 0;
    if (reach.cloth >= 0)
        reach.cloth += 2 * reach.drift;
    if (reach.solid >= 0)
        reach.solid += 2 * reach.drift;
    refit(s, m, reach, same_begin, threads);
    drop_fresh(s, pairs);
    for (bool enough = false; !enough;) {
        for (int i = 0; i < s->finder_count; i++) {
            s->finders[i].count = 0;
            s->finders[i].crossings = crossings;
            s->finders[i].most = most;
        }
        int tasks = divide(s, &s->finders[0], reach, s->task, capacity);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1)
        for (int i = 0; i < tasks; i++)
            look_into(s, &s->finders[omp_get_thread_num()], s->task + 3 * i, reach);
#pragma omp parallel for schedule(dynamic, 256) num_threads(threads) if (threads > 1)
        for (int p = 0; p < s->cloth_points; p++)
            if (reach.cloth >= 0 && !s->calm[p] && s->finders[omp_get_thread_num()].count <= most)
                look_around(s, &s->finders[omp_get_thread_num()], p, reach.cloth);
        enough = true;
        s->flooded = false;
        total = 0;
        for (int i = 0; i < s->finder_count; i++) {
            struct toile_finder *f = &s->finders[i];
            enough = enough && f->count <= f->capacity;
            s->flooded = s->flooded || f->count > most - total; /* whoever has counted how much of it */
            total += s->flooded ? 0 : f->count;
        }
        if (s->flooded) {
            pairs->count = s->crossed.count = s->crossings[0] = s->crossings[1] = 0;
            memset(s->tangled, 0, (size_t)s->point_count);
            s->listed = false;
            return TOILE_OK;
        }
        for (int i = 0; !enough && i < s->finder_count; i++) /* any thread may get most of it next time */
            if (!make_room(s->memory, &s->finders[i].pair, &s->finders[i].capacity, total)) {
                s->listed = false;
                return toile_fail_memory(error, "the search for contacts");
            }
    }
    for (int i = 0; crossings && i < s->finder_count; i++)
        for (int j = 0; j < s->finders[i].count; j++)
            crossed += s->finders[i].pair[j].key >> 62 == CROSSING;
    if (!make_room(s->memory, &pairs->pair, &pairs->capacity, pairs->count + total) ||
        !make_room(s->memory, &s->crossed.pair, &s->crossed.capacity, crossed)) {
        s->listed = false;
        return toile_fail_memory(error, "the search for contacts");
    }
    s->crossed.count = s->crossings[0] = s->crossings[1] = 0;
    memset(s->tangled, 0, (size_t)s->point_count);
    for (int i = 0; i < s->finder_count; i++)
        for (int j = 0; j < s->finders[i].count; j++) {
            const toile_pair *pair = &s->finders[i].pair[j];
            if (pair->key >> 62 == CROSSING) {
                toile_skin_mark_crossing(s, (int)(pair->key >> 31 & 0x7fffffff), (int)(pair->key & 0x7fffffff));
                s->crossed.pair[s->crossed.count++] = *pair;
            } else
                pairs->pair[pairs->count++] = *pair;
        }
    return TOILE_OK;
}

/* ---- what is least ---- */

#define ZERO_WEIGHT 1e-9

/* Does the surface beside an edge, from a point on it, lead towards `way`? */
static bool leads_beside(const toile_skin *s, int edge, int but, const double *way, double slope) {
    const double *a = s->begin + 4 * (size_t)s->edge[2 * edge], *b = s->begin + 4 * (size_t)s->edge[2 * edge + 1];
    double along[3];
    sub(b, a, along);
    double length2 = dot(along, along);
    for (int i = 0; i < 2; i++) {
        int t = s->beside[2 * edge + i];
        if (t < 0 || t == but)
            continue;
        for (int c = 0; c < 3; c++) {
            int p = s->triangle[3 * t + c];
            if (p == s->edge[2 * edge] || p == s->edge[2 * edge + 1])
                continue;
            double to[3];
            sub(s->begin + 4 * (size_t)p, a, to);
            double part = length2 > 0 ? dot(to, along) / length2 : 0;
            for (int k = 0; k < 3; k++)
                to[k] -= part * along[k];
            if (dot(to, way) > slope * sqrt(dot(to, to) * dot(way, way)))
                return true;
        }
    }
    return false;
}

static bool leads_around(const toile_skin *s, int p, const double *way, double slope) {
    if (p >= s->cloth_points)
        return false;
    for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++)
        for (int c = 0; c < 3; c++) {
            int q = s->triangle[3 * s->around[i] + c];
            double to[3];
            sub(s->begin + 4 * (size_t)q, s->begin + 4 * (size_t)p, to);
            if (q != p && dot(to, way) > slope * sqrt(dot(to, to) * dot(way, way)))
                return true;
        }
    return false;
}

bool toile_pair_is_least(const toile_skin *s, const toile_pair *pair, const toile_near *near, double slope) {
    int first = (int)(pair->key >> 31 & 0x7fffffff), second = (int)(pair->key & 0x7fffffff);
    double back[3] = {-near->vector[0], -near->vector[1], -near->vector[2]};
    if (toile_pair_kind(pair) == TOILE_CCD_EE) {
        for (int i = 0; i < 4; i++)
            if (fabs(near->weight[i]) < ZERO_WEIGHT)
                return false; /* ends: a vertex and a triangle say it */
        return !leads_beside(s, first, -1, back, slope) && !leads_beside(s, second, -1, near->vector, slope);
    }
    int zeros = 0, zero = 0, corner = 0;
    for (int c = 0; c < 3; c++) {
        bool none = fabs(near->weight[1 + c]) < ZERO_WEIGHT;
        zeros += none;
        zero = none ? c : zero;
        corner = none ? corner : c;
    }
    if (leads_around(s, first, back, slope))
        return false;
    if (zeros == 1) /* on the edge across from the corner that has no weight */
        return !leads_beside(s, s->edge_of[3 * second + (zero + 1) % 3], second, near->vector, slope);
    return zeros == 0 || !leads_around(s, s->triangle[3 * second + corner], near->vector, slope);
}

static int compare_pairs(const void *p, const void *q) {
    uint64_t a = ((const toile_pair *)p)->key, b = ((const toile_pair *)q)->key;
    return a < b ? -1 : a > b;
}

void toile_pairs_sort(toile_pairs *pairs) {
    if (pairs->count > 1)
        qsort(pairs->pair, (size_t)pairs->count, sizeof *pairs->pair, compare_pairs);
}
