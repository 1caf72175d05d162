/* Nearest points on colliders: closed forms for primitives, a bounding-volume tree for meshes (Baraff-Witkin section
 * 6: leaves are faces, split along coordinate axes). The tree is refitted every step and rebuilt when it has become
 * twice as large. Inside or outside of a mesh is told by angle-weighted pseudonormals, which are right at edges and
 * vertices too (Baerentzen and Aanaes 2005). */
#include "solid.h"

#include "angle.h"
#include "half_edge.h"
#include "shell.h"
#include "tree.h"
#include "vec3.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAF_SIZE 4
#define TREE_DEPTH_MAX 64

/* ---- poses ---- */

static void rotate(const double *q, const double *v, double *r) {
    double t[3], s[3];
    if (q[1] == 0 && q[2] == 0 && q[3] == 0) { /* most primitives are not turned, and are asked for every particle */
        for (int k = 0; k < 3; k++)
            r[k] = v[k];
        return;
    }
    cross(q + 1, v, t);
    for (int k = 0; k < 3; k++)
        t[k] = 2 * t[k];
    cross(q + 1, t, s);
    for (int k = 0; k < 3; k++)
        r[k] = v[k] + q[0] * t[k] + s[k];
}

static void to_world(const toile_pose *pose, const double *local, double *world) {
    rotate(pose->rotation, local, world);
    for (int k = 0; k < 3; k++)
        world[k] += pose->position[k];
}

static void to_local(const toile_pose *pose, const double *world, double *local) {
    double d[3], inverse[4] = {pose->rotation[0], -pose->rotation[1], -pose->rotation[2], -pose->rotation[3]};
    sub(world, pose->position, d);
    rotate(inverse, d, local);
}

void toile_pose_outward(const toile_pose *pose, const double local[3], double world[3]) {
    to_world(pose, local, world);
}

void toile_pose_inward(const toile_pose *pose, const double world[3], double local[3]) {
    to_local(pose, world, local);
}

/* Linear in position, normalised linear in rotation: no library function, so the same bits everywhere. */
static toile_pose between(const toile_pose *a, const toile_pose *b, double t) {
    toile_pose r;
    double same = 0, norm = 0;
    for (int k = 0; k < 4; k++)
        same += a->rotation[k] * b->rotation[k];
    for (int k = 0; k < 4; k++) {
        double end = same < 0 ? -b->rotation[k] : b->rotation[k];
        r.rotation[k] = (1 - t) * a->rotation[k] + t * end;
        norm += r.rotation[k] * r.rotation[k];
    }
    norm = sqrt(norm);
    for (int k = 0; k < 4; k++)
        r.rotation[k] /= norm;
    for (int k = 0; k < 3; k++)
        r.position[k] = (1 - t) * a->position[k] + t * b->position[k];
    return r;
}

toile_status toile_pose_make(const double position[3], const double rotation[4], const char *name, toile_pose *pose,
                             toile_error *error) {
    double norm = 0;
    for (int k = 0; k < 4; k++)
        norm += rotation[k] * rotation[k];
    if (norm == 0) {
        *pose = (toile_pose){{0}, {1, 0, 0, 0}};
    } else {
        norm = sqrt(norm);
        if (!(fabs(norm - 1) < 1e-3))
            return toile_fail(error, TOILE_INVALID, "collider \"%s\": its rotation has length %g; a quaternion w, x, y, z "
                              "of length 1 is wanted", name, norm);
        for (int k = 0; k < 4; k++)
            pose->rotation[k] = rotation[k] / norm;
    }
    for (int k = 0; k < 3; k++) {
        if (!(fabs(position[k]) < 1e6))
            return toile_fail(error, TOILE_INVALID, "collider \"%s\": its position has coordinate %g; use finite numbers "
                              "below 1000 km", name, position[k]);
        pose->position[k] = position[k];
    }
    return TOILE_OK;
}

/* ---- making ---- */

static toile_status check_primitive(const toile_solid_input *in, toile_error *error) {
    static const int NUMBERS[] = {1, 3, 2, 2, 0};
    static const char *const WHAT[] = {"radius", "half extents", "radius and half length", "radius and half length", ""};
    for (int k = 0; k < NUMBERS[in->shape]; k++)
        if (!(in->size[k] > 0 && in->size[k] < 1e6))
            return toile_fail(error, TOILE_INVALID, "collider \"%s\": its size (%s, in metres) has %g; use numbers greater "
                              "than 0", in->name, WHAT[in->shape], in->size[k]);
    return TOILE_OK;
}

static toile_status check_mesh(const toile_solid_input *in, toile_error *error) {
    if (in->vertex_count < 3 || in->triangle_count < 1 || !in->positions || !in->triangles)
        return toile_fail(error, TOILE_INVALID, "collider \"%s\": the mesh is empty (%d vertices, %d triangles)", in->name,
                          in->vertex_count, in->triangle_count);
    if (in->vertex_count > INT_MAX / 64 || in->triangle_count > INT_MAX / 64)
        return toile_fail(error, TOILE_INVALID, "collider \"%s\": %d vertices and %d triangles are too many", in->name,
                          in->vertex_count, in->triangle_count);
    for (int i = 0; i < 3 * in->vertex_count; i++)
        if (!(fabs(in->positions[i]) < 1e6))
            return toile_fail(error, TOILE_INVALID, "collider \"%s\": vertex %d has coordinate %g; use finite numbers below "
                              "1000 km", in->name, i / 3, in->positions[i]);
    for (int i = 0; i < 3 * in->triangle_count; i++)
        if (in->triangles[i] < 0 || in->triangles[i] >= in->vertex_count)
            return toile_fail(error, TOILE_INVALID, "collider \"%s\": triangle %d uses vertex %d; there are %d vertices",
                              in->name, i / 3, in->triangles[i], in->vertex_count);
    return TOILE_OK;
}

/* Neighbours across edges and triangles around vertices. A body may be ragged: where an edge has more than two
 * triangles or two that disagree, neighbours are left out and the mesh counts as open. */
static bool link_mesh(toile_memory *memory, toile_solid *s) {
    int n = 3 * s->triangle_count;
    toile_half_edge *edges = toile_half_edges(memory, s->triangles, s->triangle_count);
    if (!edges)
        return false;
    for (int i = 0; i < n; i++) {
        s->neighbour[i] = -1;
        s->around_begin[s->triangles[i] + 1]++;
    }
    s->closed = true;
    for (int i = 0, j; i < n; i = j) {
        j = toile_next_edge(edges, n, i);
        const toile_half_edge *e = &edges[i], *f = &edges[i + 1];
        if (j - i == 2 && e->forward != f->forward) {
            s->neighbour[3 * e->triangle + e->corner] = f->triangle;
            s->neighbour[3 * f->triangle + f->corner] = e->triangle;
        } else {
            s->closed = false;
        }
    }
    toile_free(memory, edges);
    for (int v = 0; v < s->vertex_count; v++)
        s->around_begin[v + 1] += s->around_begin[v];
    for (int i = n - 1; i >= 0; i--) /* counts each begin down to its place; end of v is begin of v + 1 */
        s->around[--s->around_begin[s->triangles[i] + 1]] = i / 3 * 4 + i % 3;
    for (int v = 0; v < s->vertex_count; v++)
        s->around_begin[v] = s->around_begin[v + 1];
    s->around_begin[s->vertex_count] = n;
    return true;
}

/* A closed mesh whose triangles run the wrong way round is turned: cloth around it would count as inside. */
static bool turn_outward(toile_memory *memory, toile_solid *s, const double *x) {
    double volume = 0;
    for (int t = 0; s->closed && t < s->triangle_count; t++) {
        double p[3][3], n[3];
        for (int c = 0; c < 3; c++)
            sub(x + 3 * s->triangles[3 * t + c], x, p[c]);
        cross(p[1], p[2], n);
        volume += dot(p[0], n);
    }
    if (!(volume < 0))
        return true;
    for (int t = 0; t < s->triangle_count; t++) {
        int corner = s->triangles[3 * t];
        s->triangles[3 * t] = s->triangles[3 * t + 1];
        s->triangles[3 * t + 1] = corner;
    }
    memset(s->around_begin, 0, ((size_t)s->vertex_count + 1) * sizeof *s->around_begin);
    return link_mesh(memory, s);
}

static void fit_leaf(const toile_solid *s, toile_bvh_node *node) {
    for (int k = 0; k < 3; k++) {
        node->lo[k] = INFINITY;
        node->hi[k] = -INFINITY;
    }
    for (int i = node->first; i < node->first + node->count; i++)
        for (int c = 0; c < 3; c++) {
            const double *p = s->x + 3 * s->triangles[3 * s->order[i] + c];
            for (int k = 0; k < 3; k++) {
                node->lo[k] = p[k] < node->lo[k] ? p[k] : node->lo[k];
                node->hi[k] = p[k] > node->hi[k] ? p[k] : node->hi[k];
            }
        }
}

static double refit(toile_solid *s) {
    double area = 0;
    for (int i = s->node_count - 1; i >= 0; i--) {
        toile_bvh_node *node = &s->nodes[i];
        if (!node->right) {
            fit_leaf(s, node);
        } else {
            const toile_bvh_node *l = node + 1, *r = &s->nodes[node->right];
            for (int k = 0; k < 3; k++) {
                node->lo[k] = l->lo[k] < r->lo[k] ? l->lo[k] : r->lo[k];
                node->hi[k] = l->hi[k] > r->hi[k] ? l->hi[k] : r->hi[k];
            }
        }
        double d[3];
        sub(node->hi, node->lo, d);
        area += d[0] * d[1] + d[1] * d[2] + d[2] * d[0];
    }
    return area;
}

static void rebuild(toile_solid *s) {
    for (int t = 0; t < s->triangle_count; t++) {
        s->order[t] = t;
        for (int k = 0; k < 3; k++)
            s->centre[3 * t + k] = (s->x[3 * s->triangles[3 * t] + k] + s->x[3 * s->triangles[3 * t + 1] + k] +
                                    s->x[3 * s->triangles[3 * t + 2] + k]) / 3;
    }
    struct {
        int first, count, parent;
    } stack[TREE_DEPTH_MAX];
    int depth = 0;
    s->node_count = 0;
    stack[depth++] = (__typeof__(stack[0])){0, s->triangle_count, -1};
    while (depth) {
        int first = stack[depth - 1].first, count = stack[depth - 1].count, parent = stack[depth - 1].parent;
        depth--;
        int at = s->node_count++;
        if (parent >= 0)
            s->nodes[parent].right = at;
        s->nodes[at] = (toile_bvh_node){{0}, {0}, 0, first, count};
        if (count <= LEAF_SIZE)
            continue;
        double lo[3] = {INFINITY, INFINITY, INFINITY}, hi[3] = {-INFINITY, -INFINITY, -INFINITY};
        for (int i = first; i < first + count; i++)
            for (int k = 0; k < 3; k++) {
                double c = s->centre[3 * s->order[i] + k];
                lo[k] = c < lo[k] ? c : lo[k];
                hi[k] = c > hi[k] ? c : hi[k];
            }
        int axis = hi[1] - lo[1] > hi[0] - lo[0];
        axis = hi[2] - lo[2] > hi[axis] - lo[axis] ? 2 : axis;
        toile_select_half(s->centre, s->order + first, count, axis);
        int left = count / 2;
        /* halves: depth is log2 of the count. The left child comes next, the right one when the left is done */
        stack[depth++] = (__typeof__(stack[0])){first + left, count - left, at};
        stack[depth++] = (__typeof__(stack[0])){first, left, -1};
    }
    s->built_area = refit(s);
}

static toile_status make_mesh(toile_memory *memory, const toile_solid_input *in, toile_solid *s, toile_error *error) {
    size_t nv = (size_t)in->vertex_count, nt = (size_t)in->triangle_count;
    s->vertex_count = in->vertex_count;
    s->triangle_count = in->triangle_count;
    bool ok = (s->triangles = toile_alloc(memory, 3 * nt, sizeof(int))) &&
              (s->neighbour = toile_alloc(memory, 3 * nt, sizeof(int))) &&
              (s->around_begin = toile_alloc(memory, nv + 2, sizeof(int))) &&
              (s->around = toile_alloc(memory, 3 * nt, sizeof(int))) &&
              (s->from_x = toile_alloc(memory, 3 * nv, sizeof(double))) &&
              (s->to_x = toile_alloc(memory, 3 * nv, sizeof(double))) &&
              (s->x = toile_alloc(memory, 3 * nv, sizeof(double))) &&
              (s->velocity = toile_alloc(memory, 3 * nv, sizeof(double))) &&
              (s->nodes = toile_alloc(memory, 2 * nt, sizeof *s->nodes)) &&
              (s->order = toile_alloc(memory, nt, sizeof(int))) &&
              (s->centre = toile_alloc(memory, 3 * nt, sizeof(double)));
    if (!ok)
        return toile_fail_memory(error, "a collider mesh");
    memcpy(s->triangles, in->triangles, 3 * nt * sizeof(int));
    memcpy(s->from_x, in->positions, 3 * nv * sizeof(double));
    memcpy(s->to_x, in->positions, 3 * nv * sizeof(double));
    memcpy(s->x, in->positions, 3 * nv * sizeof(double));
    if (!link_mesh(memory, s) || !turn_outward(memory, s, in->positions))
        return toile_fail_memory(error, "a collider mesh");
    rebuild(s);
    return TOILE_OK;
}

toile_status toile_solid_make(toile_memory *memory, const toile_solid_input *in, toile_solid *s, toile_error *error) {
    memset(s, 0, sizeof *s);
    if (!in->name || !*in->name)
        return toile_fail(error, TOILE_INVALID, "a collider has no name; give it one");
    if ((int)in->shape < 0 || in->shape > TOILE_SOLID_MESH)
        return toile_fail(error, TOILE_INVALID, "collider \"%s\": shape %d does not exist", in->name, (int)in->shape);
    if (!(in->thickness >= 0 && in->thickness <= 1))
        return toile_fail(error, TOILE_INVALID, "collider \"%s\": its thickness is %g m; use 0 to 1", in->name,
                          in->thickness);
    if (!(in->friction_static >= 0 && in->friction_static <= 1000) || !(in->friction_kinetic >= 0) ||
        in->friction_kinetic > in->friction_static)
        return toile_fail(error, TOILE_INVALID, "collider \"%s\": friction is %g static and %g kinetic; use 0 or more, "
                          "kinetic not above static", in->name, in->friction_static, in->friction_kinetic);
    toile_status status = in->shape == TOILE_SOLID_MESH ? check_mesh(in, error) : check_primitive(in, error);
    if (status != TOILE_OK)
        return status;
    if ((status = toile_pose_make(in->position, in->rotation, in->name, &s->from, error)) != TOILE_OK)
        return status;
    s->to = s->before = s->now = s->from;
    s->still = true;
    s->shape = in->shape;
    memcpy(s->size, in->size, sizeof s->size);
    s->thickness = in->thickness;
    s->friction_static = in->friction_static;
    s->friction_kinetic = in->friction_kinetic;
    s->side = in->side;
    s->name = toile_copy_text(memory, in->name);
    if (!s->name)
        status = toile_fail_memory(error, "a collider's name");
    else
        status = s->shape == TOILE_SOLID_MESH ? make_mesh(memory, in, s, error) : toile_shell_make(memory, s, error);
    if (status != TOILE_OK)
        toile_solid_free(memory, s);
    return status;
}

void toile_solid_free(toile_memory *memory, toile_solid *s) {
    void *blocks[] = {s->name, s->shell, s->triangles, s->neighbour, s->around_begin, s->around, s->from_x,
                      s->to_x, s->x,         s->velocity,  s->nodes,        s->order,  s->centre};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    memset(s, 0, sizeof *s);
}

/* ---- moving ---- */

void toile_solid_move(toile_solid *s, double begin, double end, double frame) {
    s->before = between(&s->from, &s->to, begin);
    s->now = between(&s->from, &s->to, end);
    s->still = memcmp(&s->before, &s->now, sizeof s->now) == 0;
    if (!s->vertex_count)
        return;
    bool moves = memcmp(s->from_x, s->to_x, 3 * (size_t)s->vertex_count * sizeof(double)) != 0;
    bool there = !moves && memcmp(s->x, s->to_x, 3 * (size_t)s->vertex_count * sizeof(double)) == 0;
    for (int i = 0; i < 3 * s->vertex_count; i++) {
        s->x[i] = (1 - end) * s->from_x[i] + end * s->to_x[i];
        s->velocity[i] = (s->to_x[i] - s->from_x[i]) / frame;
    }
    if (!there && !s->shell && refit(s) > 2 * s->built_area)
        rebuild(s);
}

void toile_solid_arrive(toile_solid *s) {
    s->from = s->to;
    if (s->vertex_count)
        memcpy(s->from_x, s->to_x, 3 * (size_t)s->vertex_count * sizeof(double));
}

/* ---- nearest points ---- */

/* The distance of a point in the primitive's own axes, and the normal there; that only if it is at most `radius` away. */
static double away_from(const toile_solid *s, const double l[3], double radius, double n[3]) {
    double distance;
    n[0] = n[1] = n[2] = 0;
    switch (s->shape) {
    case TOILE_SOLID_SPHERE:
    case TOILE_SOLID_CAPSULE: {
        double half = s->shape == TOILE_SOLID_CAPSULE ? s->size[1] : 0;
        double z = l[2] > half ? half : l[2] < -half ? -half : l[2];
        double d[3] = {l[0], l[1], l[2] - z}, r = sqrt(dot(d, d));
        distance = r - s->size[0];
        for (int k = 0; distance <= radius && k < 3; k++)
            n[k] = r > 1e-12 ? d[k] / r : k == 0;
        return distance;
    }
    case TOILE_SOLID_BOX: {
        double d[3], out = 0;
        int deepest = 0;
        for (int k = 0; k < 3; k++) {
            d[k] = fabs(l[k]) - s->size[k];
            if (d[k] > d[deepest])
                deepest = k;
            if (d[k] > 0)
                out += d[k] * d[k];
        }
        if (out > 0) {
            distance = sqrt(out);
            for (int k = 0; distance <= radius && k < 3; k++)
                n[k] = d[k] > 0 ? copysign(d[k] / distance, l[k]) : 0;
        } else {
            distance = d[deepest];
            n[deepest] = copysign(1, l[deepest]);
        }
        return distance;
    }
    case TOILE_SOLID_CYLINDER: {
        double r = sqrt(l[0] * l[0] + l[1] * l[1]), side = r - s->size[0], cap = fabs(l[2]) - s->size[1];
        double ux = r > 1e-12 ? l[0] / r : 1, uy = r > 1e-12 ? l[1] / r : 0, uz = copysign(1, l[2]);
        if (side > 0 && cap > 0) {
            distance = sqrt(side * side + cap * cap);
            n[0] = ux * side / distance, n[1] = uy * side / distance, n[2] = uz * cap / distance;
        } else if (side > cap) {
            distance = side;
            n[0] = ux, n[1] = uy;
        } else {
            distance = cap;
            n[2] = uz;
        }
        return distance;
    }
    default: /* plane */
        n[2] = 1;
        return l[2];
    }
}

static double greater(double a, double b) { /* fmax, in line */
    return a > b ? a : b;
}

/* hit->distance is told in any case. */
static bool nearest_primitive(const toile_solid *s, const double p[3], double radius, double h, toile_hit *hit) {
    double l[3], n[3], local[3], then[3], now[3];
    to_local(&s->now, p, l);
    double distance = hit->distance = away_from(s, l, radius, n);
    if (distance > radius)
        return false;
    for (int k = 0; k < 3; k++)
        local[k] = l[k] - distance * n[k];
    to_world(&s->now, local, now);
    if (s->still)
        memcpy(then, now, sizeof then);
    else
        to_world(&s->before, local, then);
    rotate(s->now.rotation, n, hit->normal);
    for (int k = 0; k < 3; k++) {
        hit->point[k] = now[k];
        hit->velocity[k] = (now[k] - then[k]) / h;
    }
    /* at an edge: how far from the face that it leans to most */
    double along = 1;
    if (distance > 0 && s->shape == TOILE_SOLID_BOX)
        along = greater(fabs(n[0]), greater(fabs(n[1]), fabs(n[2])));
    if (distance > 0 && s->shape == TOILE_SOLID_CYLINDER)
        along = greater(fabs(n[2]), sqrt(n[0] * n[0] + n[1] * n[1]));
    hit->sharp = along < 1 ? sqrt(1 - along * along) : 0;
    return true;
}

/* Nearest point of a triangle with barycentric weights (Ericson 2005, 5.1.5). Returns the feature: 0 face, 1..3 edge
 * from corner feature - 1 to the next, 4..6 corner feature - 4. */
static int nearest_triangle(const double *p, const double *a, const double *b, const double *c, double w[3]) {
    double ab[3], ac[3], ap[3], bp[3], cp[3];
    sub(b, a, ab), sub(c, a, ac), sub(p, a, ap);
    double d1 = dot(ab, ap), d2 = dot(ac, ap);
    if (d1 <= 0 && d2 <= 0) {
        w[0] = 1, w[1] = w[2] = 0;
        return 4;
    }
    sub(p, b, bp);
    double d3 = dot(ab, bp), d4 = dot(ac, bp);
    if (d3 >= 0 && d4 <= d3) {
        w[1] = 1, w[0] = w[2] = 0;
        return 5;
    }
    double vc = d1 * d4 - d3 * d2;
    if (vc <= 0 && d1 >= 0 && d3 <= 0) {
        w[1] = d1 / (d1 - d3), w[0] = 1 - w[1], w[2] = 0;
        return 1;
    }
    sub(p, c, cp);
    double d5 = dot(ab, cp), d6 = dot(ac, cp);
    if (d6 >= 0 && d5 <= d6) {
        w[2] = 1, w[0] = w[1] = 0;
        return 6;
    }
    double vb = d5 * d2 - d1 * d6;
    if (vb <= 0 && d2 >= 0 && d6 <= 0) {
        w[2] = d2 / (d2 - d6), w[0] = 1 - w[2], w[1] = 0;
        return 3;
    }
    double va = d3 * d6 - d5 * d4;
    if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
        w[2] = (d4 - d3) / ((d4 - d3) + (d5 - d6)), w[1] = 1 - w[2], w[0] = 0;
        return 2;
    }
    double sum = va + vb + vc;
    w[1] = vb / sum, w[2] = vc / sum, w[0] = 1 - w[1] - w[2];
    return 0;
}

static void face_normal(const toile_solid *s, int t, double *n) {
    const double *a = s->x + 3 * s->triangles[3 * t], *b = s->x + 3 * s->triangles[3 * t + 1];
    const double *c = s->x + 3 * s->triangles[3 * t + 2];
    double ab[3], ac[3];
    sub(b, a, ab), sub(c, a, ac);
    cross(ab, ac, n);
    double length = sqrt(dot(n, n));
    for (int k = 0; k < 3; k++)
        n[k] = length > 1e-300 ? n[k] / length : 0;
}

static void pseudonormal(const toile_solid *s, int t, int feature, double *n) {
    face_normal(s, t, n);
    double m[3];
    if (feature >= 1 && feature <= 3) {
        int other = s->neighbour[3 * t + feature - 1];
        if (other >= 0) {
            face_normal(s, other, m);
            for (int k = 0; k < 3; k++)
                n[k] += m[k];
        }
    } else if (feature >= 4) {
        int v = s->triangles[3 * t + feature - 4];
        memset(n, 0, 3 * sizeof *n);
        for (int i = s->around_begin[v]; i < s->around_begin[v + 1]; i++) {
            int u = s->around[i] / 4, corner = s->around[i] % 4;
            const double *p = s->x + 3 * v, *q = s->x + 3 * s->triangles[3 * u + (corner + 1) % 3];
            const double *r = s->x + 3 * s->triangles[3 * u + (corner + 2) % 3];
            double a[3], b[3], c[3];
            sub(q, p, a), sub(r, p, b);
            cross(a, b, c);
            double angle = toile_atan2(sqrt(dot(c, c)), dot(a, b));
            face_normal(s, u, m);
            for (int k = 0; k < 3; k++)
                n[k] += angle * m[k];
        }
    }
}

/* Sine of the angle between a direction and the nearest normal of the faces at an edge or a corner. */
static double sharpness(const toile_solid *s, int t, int feature, const double *direction) {
    double n[3], most;
    face_normal(s, t, n);
    most = dot(n, direction);
    if (feature <= 3 && s->neighbour[3 * t + feature - 1] >= 0) {
        face_normal(s, s->neighbour[3 * t + feature - 1], n);
        most = fmax(most, dot(n, direction));
    } else if (feature >= 4) {
        int v = s->triangles[3 * t + feature - 4];
        for (int i = s->around_begin[v]; i < s->around_begin[v + 1]; i++) {
            face_normal(s, s->around[i] / 4, n);
            most = fmax(most, dot(n, direction));
        }
    }
    return most > 0 ? sqrt(fmax(1 - most * most, 0)) : 1;
}

static double box_distance2(const toile_bvh_node *node, const double *p) {
    double d2 = 0;
    for (int k = 0; k < 3; k++) {
        double d = p[k] < node->lo[k] ? node->lo[k] - p[k] : p[k] > node->hi[k] ? p[k] - node->hi[k] : 0;
        d2 += d * d;
    }
    return d2;
}

/* The nearest triangle so far, and its point. */
typedef struct nearest {
    int triangle, feature;
    double d2, weight[3];
    const double *way; /* only triangles that look there; null: all */
} nearest;

/* Cosine of 60 degrees: further from a direction a surface does not face it. */
#define FACES 0.5

/* How much a normal agrees with a direction, on the side of the solid on which cloth is. */
static double faces(const toile_solid *s, const double *n, const double *way) {
    double along = dot(n, way);
    return s->side == TOILE_SOLID_BOTH ? fabs(along) : s->side == TOILE_SOLID_INSIDE ? -along : along;
}

static void look_at(const toile_solid *s, const double *p, int t, nearest *best) {
    const int *v = s->triangles + 3 * t;
    const double *a = s->x + 3 * v[0], *b = s->x + 3 * v[1], *c = s->x + 3 * v[2];
    double u[3], d2 = 0;
    int f = nearest_triangle(p, a, b, c, u);
    for (int k = 0; k < 3; k++) {
        double d = p[k] - (u[0] * a[k] + u[1] * b[k] + u[2] * c[k]);
        d2 += d * d;
    }
    /* ties by index, so that neither the tree's shape nor where it began can change the answer */
    if (!(d2 < best->d2 || (d2 == best->d2 && (best->triangle < 0 || t < best->triangle))))
        return;
    double n[3];
    if (best->way && (face_normal(s, t, n), !(faces(s, n, best->way) > FACES)))
        return;
    *best = (nearest){t, f, d2, {u[0], u[1], u[2]}, best->way};
}

/* The nearest triangle to p that is nearer than `best`, beginning with `first` if that is one. */
static void find_nearest(const toile_solid *s, const double p[3], int first, nearest *best) {
    struct {
        int node;
        double d2;
    } stack[TREE_DEPTH_MAX];
    int depth = 0;
    nearest found = *best;
    stack[0].node = 0, stack[0].d2 = box_distance2(&s->nodes[0], p);
    if (stack[0].d2 <= found.d2) {
        depth = 1;
        if (first >= 0 && first < s->triangle_count)
            look_at(s, p, first, &found);
    }
    while (depth) {
        depth--;
        if (stack[depth].d2 > found.d2)
            continue;
        const toile_bvh_node *node = &s->nodes[stack[depth].node];
        if (node->right) { /* the nearer child last, so that it is looked at first */
            int l = stack[depth].node + 1, r = node->right;
            double to_l = box_distance2(&s->nodes[l], p), to_r = box_distance2(&s->nodes[r], p);
            bool left_first = to_l <= to_r;
            stack[depth].node = left_first ? r : l, stack[depth].d2 = left_first ? to_r : to_l;
            depth += stack[depth].d2 <= found.d2;
            stack[depth].node = left_first ? l : r, stack[depth].d2 = left_first ? to_l : to_r;
            depth += stack[depth].d2 <= found.d2;
            continue;
        }
        for (int i = node->first; i < node->first + node->count; i++)
            look_at(s, p, s->order[i], &found);
    }
    *best = found;
}

/* The point of the nearest triangle, and how it moves. */
static void point_of(const toile_solid *s, const nearest *found, toile_hit *hit) {
    const int *v = s->triangles + 3 * found->triangle;
    const double *w = found->weight;
    for (int k = 0; k < 3; k++) {
        hit->point[k] = w[0] * s->x[3 * v[0] + k] + w[1] * s->x[3 * v[1] + k] + w[2] * s->x[3 * v[2] + k];
        hit->velocity[k] =
            w[0] * s->velocity[3 * v[0] + k] + w[1] * s->velocity[3 * v[1] + k] + w[2] * s->velocity[3 * v[2] + k];
    }
}

static bool nearest_mesh(const toile_solid *s, const double p[3], double radius, double open_depth, int *triangle, toile_hit *hit) {
    nearest found = {-1, 0, radius * radius, {1, 0, 0}, NULL};
    find_nearest(s, p, *triangle, &found);
    int best = *triangle = found.triangle, feature = found.feature;
    double best2 = found.d2;
    if (best < 0)
        return false;
    double away[3], n[3];
    point_of(s, &found, hit);
    for (int k = 0; k < 3; k++)
        away[k] = p[k] - hit->point[k];
    pseudonormal(s, best, feature, n);
    double distance = sqrt(best2), length = sqrt(dot(n, n)), side = dot(away, n);
    if (!(length > 1e-300))
        return false; /* a fold so sharp that it has no outside */
    bool inside = side < 0;
    if (inside && !s->closed && distance > open_depth)
        return false;
    hit->distance = inside ? -distance : distance;
    /* away from the surface where that direction is well known, the pseudonormal on it */
    for (int k = 0; k < 3; k++)
        hit->normal[k] = distance > 1e-9 && feature ? away[k] / hit->distance : n[k] / length;
    hit->sharp = feature && !inside ? sharpness(s, best, feature, hit->normal) : 0;
    return true;
}

/* Cosines between the normals of a crease: what is flatter has one normal as well as two, and where it is as sharp as a slit
 * both cannot be kept away from. */
#define CREASE_FLAT 0.9998
#define CREASE_SLIT -0.8

/* Is the nearest point of a triangle, of this feature, nearest within the surface around it too? On a face it is; on an edge if
 * the triangle across has the same; corners are left out. */
static bool is_minimum(const toile_solid *s, const double *p, int t, int feature) {
    double w[3];
    if (feature == 0)
        return true;
    int across = feature <= 3 ? s->neighbour[3 * t + feature - 1] : -1, from = s->triangles[3 * t + (feature - 1) % 3];
    if (across < 0)
        return false;
    const int *v = s->triangles + 3 * across;
    int other = nearest_triangle(p, s->x + 3 * v[0], s->x + 3 * v[1], s->x + 3 * v[2], w);
    return other >= 1 && other <= 3 && s->neighbour[3 * across + other - 1] == t && (v[other - 1] == from || v[other % 3] == from);
}

static void look_for_crease(const toile_solid *s, const double *p, int t, const double *normal, nearest *best) {
    const int *v = s->triangles + 3 * t;
    nearest found = {t, 0, 0, {0}, NULL};
    double away[3], n[3];
    found.feature = nearest_triangle(p, s->x + 3 * v[0], s->x + 3 * v[1], s->x + 3 * v[2], found.weight);
    for (int k = 0; k < 3; k++)
        away[k] = p[k] - (found.weight[0] * s->x[3 * v[0] + k] + found.weight[1] * s->x[3 * v[1] + k] + found.weight[2] * s->x[3 * v[2] + k]);
    found.d2 = dot(away, away);
    if (found.d2 > best->d2 || (found.d2 == best->d2 && best->triangle >= 0 && t > best->triangle))
        return;
    face_normal(s, t, n);
    double distance = sqrt(found.d2), together = dot(away, normal);
    if (distance > 1e-9 && dot(away, n) > 0 && together < CREASE_FLAT * distance && together > CREASE_SLIT * distance &&
        is_minimum(s, p, t, found.feature))
        *best = found;
}

bool toile_solid_crease(const toile_solid *s, const double p[3], double radius, int first, const double normal[3], int *triangle,
                        toile_hit *hit) {
    nearest found = {-1, 0, radius * radius, {1, 0, 0}, NULL};
    int stack[TREE_DEPTH_MAX], depth = 0;
    if (s->shape != TOILE_SOLID_MESH || s->side != TOILE_SOLID_OUTSIDE)
        return false;
    stack[depth++] = 0;
    while (depth) {
        int at = stack[--depth];
        const toile_bvh_node *node = &s->nodes[at];
        if (box_distance2(node, p) > found.d2)
            continue;
        if (node->right) {
            stack[depth++] = node->right;
            stack[depth++] = at + 1;
            continue;
        }
        for (int i = node->first; i < node->first + node->count; i++)
            if (s->order[i] != first)
                look_for_crease(s, p, s->order[i], normal, &found);
    }
    if ((*triangle = found.triangle) < 0)
        return false;
    const int *v = s->triangles + 3 * found.triangle;
    const double *w = found.weight;
    hit->distance = sqrt(found.d2);
    for (int k = 0; k < 3; k++) {
        hit->point[k] = w[0] * s->x[3 * v[0] + k] + w[1] * s->x[3 * v[1] + k] + w[2] * s->x[3 * v[2] + k];
        hit->velocity[k] =
            w[0] * s->velocity[3 * v[0] + k] + w[1] * s->velocity[3 * v[1] + k] + w[2] * s->velocity[3 * v[2] + k];
        hit->normal[k] = (p[k] - hit->point[k]) / hit->distance;
    }
    hit->sharp = found.feature ? sharpness(s, found.triangle, found.feature, hit->normal) : 0;
    return true;
}

bool toile_solid_nearest_from(const toile_solid *s, const double p[3], double radius, double open_depth, double h,
                              int *triangle, toile_hit *hit) {
    bool mesh = s->shape == TOILE_SOLID_MESH;
    if (s->side == TOILE_SOLID_OUTSIDE)
        return mesh ? nearest_mesh(s, p, radius, open_depth, triangle, hit) : nearest_primitive(s, p, radius, h, hit);
    if (!(mesh ? nearest_mesh(s, p, radius, INFINITY, triangle, hit) : nearest_primitive(s, p, INFINITY, h, hit)))
        return false;
    if (s->side == TOILE_SOLID_BOTH)
        return fabs(hit->distance) <= radius;
    hit->distance = -hit->distance;
    hit->sharp = 0;
    for (int k = 0; k < 3; k++)
        hit->normal[k] = -hit->normal[k];
    return hit->distance <= radius && (s->closed || !mesh || -hit->distance <= open_depth);
}

bool toile_solid_nearest(const toile_solid *s, const double p[3], double radius, double open_depth, double h,
                         toile_hit *hit) {
    int none = -1;
    return toile_solid_nearest_from(s, p, radius, open_depth, h, &none, hit);
}

bool toile_solid_facing(const toile_solid *s, const double p[3], double radius, const double way[3], double h, toile_hit *hit) {
    if (s->shape == TOILE_SOLID_MESH) {
        nearest found = {-1, 0, radius * radius, {1, 0, 0}, way};
        find_nearest(s, p, -1, &found);
        if (found.triangle < 0)
            return false;
        point_of(s, &found, hit);
        face_normal(s, found.triangle, hit->normal);
    } else if (!nearest_primitive(s, p, radius, h, hit) || hit->distance < -radius || !(faces(s, hit->normal, way) > FACES)) {
        return false;
    }
    double away[3], turn = s->side == TOILE_SOLID_INSIDE || (s->side == TOILE_SOLID_BOTH && dot(hit->normal, way) < 0) ? -1 : 1;
    sub(p, hit->point, away);
    for (int k = 0; k < 3; k++)
        hit->normal[k] *= turn;
    hit->distance = copysign(sqrt(dot(away, away)), dot(away, hit->normal));
    hit->sharp = 0;
    return true;
}
