#include "pin.h"

#include "vec3.h"

#include <math.h>
#include <string.h>

void toile_hold_free(toile_memory *memory, toile_hold *hold) {
    void *blocks[] = {hold->vertex, hold->particle, hold->from,   hold->to,         hold->target,
                      hold->normal, hold->triangle, hold->anchor, hold->curve_from, hold->curve_to};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    memset(hold, 0, sizeof *hold);
}

/* ---- on a surface ---- */

/* Weights of corners 1 and 2 of the point of a triangle that is nearest to p (Ericson 2005, 5.1.5); returns its squared
 * distance. */
static double nearest_on_triangle(const double *a, const double *b, const double *c, const double *p, double weight[2]) {
    double ab[3], ac[3], ap[3], bp[3], cp[3];
    sub(b, a, ab), sub(c, a, ac), sub(p, a, ap), sub(p, b, bp), sub(p, c, cp);
    double d1 = dot(ab, ap), d2 = dot(ac, ap), d3 = dot(ab, bp), d4 = dot(ac, bp), d5 = dot(ab, cp), d6 = dot(ac, cp);
    double va = d3 * d6 - d5 * d4, vb = d5 * d2 - d1 * d6, vc = d1 * d4 - d3 * d2, v = 0, w = 0;
    if (d1 <= 0 && d2 <= 0) {
        v = w = 0;
    } else if (d3 >= 0 && d4 <= d3) {
        v = 1;
    } else if (vc <= 0 && d1 >= 0 && d3 <= 0) {
        v = d1 / (d1 - d3);
    } else if (d6 >= 0 && d5 <= d6) {
        w = 1;
    } else if (vb <= 0 && d2 >= 0 && d6 <= 0) {
        w = d2 / (d2 - d6);
    } else if (va <= 0 && d4 - d3 >= 0 && d5 - d6 >= 0) {
        w = (d4 - d3) / ((d4 - d3) + (d5 - d6));
        v = 1 - w;
    } else {
        v = vb / (va + vb + vc);
        w = vc / (va + vb + vc);
    }
    double distance2 = 0;
    for (int k = 0; k < 3; k++) {
        double d = p[k] - (a[k] + v * ab[k] + w * ac[k]);
        distance2 += d * d;
    }
    weight[0] = v;
    weight[1] = w;
    return distance2;
}

/* Three vectors that turn with a triangle: along its first edge, across it in the plane, and its normal. */
static void triangle_frame(const double *a, const double *b, const double *c, double frame[3][3]) {
    double ab[3], ac[3];
    sub(b, a, ab), sub(c, a, ac);
    cross(ab, ac, frame[2]);
    double along = sqrt(dot(ab, ab)), area = sqrt(dot(frame[2], frame[2]));
    for (int k = 0; k < 3; k++) {
        frame[0][k] = along > 1e-300 ? ab[k] / along : 0;
        frame[2][k] = area > 1e-300 ? frame[2][k] / area : 0;
    }
    cross(frame[2], frame[0], frame[1]);
}

static void corners_of(const toile_solid *s, const double *x, int triangle, const double *corner[3]) {
    for (int c = 0; c < 3; c++)
        corner[c] = x + 3 * s->triangles[3 * triangle + c];
}

/* The anchor of particle j of a hold: on a mesh the nearest triangle, two weights and what is left in the triangle's frame;
 * on a primitive its place in the primitive's frame. */
static void anchor_particle(toile_hold *hold, const toile_solid *s, int j, const double *p) {
    double *anchor = hold->anchor + 5 * j;
    memset(anchor, 0, 5 * sizeof *anchor);
    if (s->shape != TOILE_SOLID_MESH) {
        toile_pose_inward(&s->from, p, anchor);
        return;
    }
    double least = INFINITY;
    const double *c[3];
    for (int t = 0; t < s->triangle_count; t++) {
        double weight[2];
        corners_of(s, s->from_x, t, c);
        double distance2 = nearest_on_triangle(c[0], c[1], c[2], p, weight);
        if (distance2 < least) {
            least = distance2;
            hold->triangle[j] = t;
            memcpy(anchor, weight, sizeof weight);
        }
    }
    double frame[3][3], rest[3];
    corners_of(s, s->from_x, hold->triangle[j], c);
    triangle_frame(c[0], c[1], c[2], frame);
    for (int k = 0; k < 3; k++)
        rest[k] = p[k] - (c[0][k] + anchor[0] * (c[1][k] - c[0][k]) + anchor[1] * (c[2][k] - c[0][k]));
    for (int k = 0; k < 3; k++)
        anchor[2 + k] = dot(rest, frame[k]);
}

/* Where an anchor is at the frame's begin or end. */
static void anchored_place(const toile_hold *hold, const toile_solid *s, int j, bool end, double *place) {
    const double *anchor = hold->anchor + 5 * j, *c[3];
    if (s->shape != TOILE_SOLID_MESH) {
        toile_pose_outward(end ? &s->to : &s->from, anchor, place);
        return;
    }
    double frame[3][3];
    corners_of(s, end ? s->to_x : s->from_x, hold->triangle[j], c);
    triangle_frame(c[0], c[1], c[2], frame);
    for (int k = 0; k < 3; k++)
        place[k] = c[0][k] + anchor[0] * (c[1][k] - c[0][k]) + anchor[1] * (c[2][k] - c[0][k]) + anchor[2] * frame[0][k] +
                   anchor[3] * frame[1][k] + anchor[4] * frame[2][k];
}

void toile_prepare_holds(toile_sim *sim) {
    for (int p = 0; p < sim->hold_count; p++) {
        toile_hold *hold = &sim->holds[p];
        hold->anchored = hold->anchored && hold->on;
        for (int j = 0; hold->on && (hold->grabs || !hold->was_on) && j < hold->count; j++)
            memcpy(hold->from + 3 * j, sim->state.x + 4 * (size_t)hold->particle[j], 3 * sizeof(double));
        if (!hold->on || !hold->anchor)
            continue;
        const toile_solid *solid = &sim->solids[hold->solid];
        for (int j = 0; j < hold->count; j++) {
            if (!hold->anchored)
                anchor_particle(hold, solid, j, sim->state.x + 4 * (size_t)hold->particle[j]);
            anchored_place(hold, solid, j, false, hold->from + 3 * j);
            anchored_place(hold, solid, j, true, hold->to + 3 * j);
        }
        hold->anchored = true;
    }
}

void toile_holds_arrive(toile_sim *sim) {
    for (int p = 0; p < sim->hold_count; p++) {
        toile_hold *hold = &sim->holds[p];
        memcpy(hold->from, hold->to, 3 * (size_t)hold->count * sizeof(double));
        if (hold->curve_from)
            memcpy(hold->curve_from, hold->curve_to, 3 * (size_t)hold->curve_count * sizeof(double));
        hold->was_on = hold->on;
    }
}

/* ---- on a curve ---- */

/* Nearest point of the polyline at part `end` of the frame, and its direction there. Beyond its ends there is no direction:
 * the end holds. */
static void nearest_on_curve(const toile_hold *hold, double end, const double *p, double *place, double *tangent) {
    double least = INFINITY;
    for (int s = 0; s + 1 < hold->curve_count; s++) {
        double a[3], d[3], ap[3];
        for (int k = 0; k < 3; k++) {
            int i = 3 * s + k;
            a[k] = (1 - end) * hold->curve_from[i] + end * hold->curve_to[i];
            d[k] = (1 - end) * hold->curve_from[i + 3] + end * hold->curve_to[i + 3] - a[k];
            ap[k] = p[k] - a[k];
        }
        double length2 = dot(d, d), t = length2 > 0 ? dot(ap, d) / length2 : 0, distance2 = 0, q[3];
        bool beyond = (t < 0 && s == 0) || (t > 1 && s + 2 == hold->curve_count);
        t = t < 0 ? 0 : t > 1 ? 1 : t;
        for (int k = 0; k < 3; k++) {
            q[k] = a[k] + t * d[k];
            distance2 += (p[k] - q[k]) * (p[k] - q[k]);
        }
        if (distance2 >= least)
            continue;
        least = distance2;
        memcpy(place, q, sizeof q);
        for (int k = 0; k < 3; k++)
            tangent[k] = beyond || length2 == 0 ? 0 : d[k] / sqrt(length2);
    }
}

/* ---- in a step ---- */

/* Where particle j of a hold is to be at part `end` of the frame; `free`: direction in which it may go, or 0. */
static void target_of(const toile_sim *sim, const toile_hold *hold, int j, double end, double *target, double *free) {
    memset(free, 0, 3 * sizeof *free);
    if (hold->curve_from) {
        nearest_on_curve(hold, end, sim->state.x + 4 * (size_t)hold->particle[j], target, free);
        return;
    }
    for (int k = 0; k < 3; k++)
        target[k] = (1 - end) * hold->from[3 * j + k] + end * hold->to[3 * j + k];
}

void toile_hold_particles(toile_sim *sim, double h) {
    toile_work *w = &sim->work;
    double end = (sim->state.time - sim->frame_begin + h) / sim->frame_seconds;
    end = end > 1 - 1e-9 ? 1 : end;
    memset(w->held, 0, (size_t)sim->model->particle_count);
    for (int p = 0; p < sim->hold_count; p++) {
        toile_hold *hold = &sim->holds[p];
        for (int j = 0; hold->on && j < hold->count; j++) {
            int i = hold->particle[j];
            double target[3], along[3];
            target_of(sim, hold, j, end, target, along);
            if (hold->stiffness > 0) {
                memcpy(hold->target + 3 * j, target, sizeof target);
                memcpy(hold->normal + 3 * j, along, sizeof along);
                continue;
            }
            const double *x = sim->state.x + 4 * (size_t)i, *v = sim->state.v + 4 * (size_t)i;
            double *z = w->constraints.z + 4 * (size_t)i, change[3];
            for (int k = 0; k < 3; k++)
                change[k] = (target[k] - x[k]) / h - v[k];
            bool slides = hold->curve_from && dot(along, along) > 0;
            double own = slides ? dot(change, along) : 0;
            for (int k = 0; k < 3; k++) {
                if (!hold->axes[k])
                    continue;
                z[k] = change[k] - own * along[k];
                w->held[i] |= (unsigned char)(1 << k);
            }
            if (slides) {
                w->held[i] = TOILE_HELD_CURVE;
                memcpy(w->found[i].direction, along, sizeof along);
            }
        }
    }
}

void toile_add_soft_holds(toile_sim *sim, const double *x, const double *d, double h) {
    for (int p = 0; p < sim->hold_count; p++) {
        const toile_hold *hold = &sim->holds[p];
        for (int j = 0; hold->on && hold->stiffness > 0 && j < hold->count; j++) {
            size_t i = (size_t)hold->particle[j];
            double *f = sim->work.force + 4 * i, *g = sim->work.drag + 8 * i, pull[3];
            const double *free = hold->normal + 3 * j;
            for (int k = 0; k < 3; k++)
                pull[k] = hold->axes[k] ? hold->stiffness * (hold->target[3 * j + k] - x[4 * i + (size_t)k] - d[4 * i + (size_t)k]) : 0;
            double along = dot(pull, free), c = h * h * hold->stiffness;
            for (int k = 0; k < 3; k++)
                f[k] += pull[k] - along * free[k];
            g[0] += hold->axes[0] ? c * (1 - free[0] * free[0]) : 0;
            g[3] += hold->axes[1] ? c * (1 - free[1] * free[1]) : 0;
            g[5] += hold->axes[2] ? c * (1 - free[2] * free[2]) : 0;
            g[1] -= c * free[0] * free[1];
            g[2] -= c * free[0] * free[2];
            g[4] -= c * free[1] * free[2];
        }
    }
}

/* ---- as bytes: per pin on a surface a flag of 8 bytes, then triangle (8) and anchor (40) of each particle ---- */

enum { ANCHOR_BYTES = 48 };

size_t toile_holds_bytes(const toile_sim *sim) {
    size_t bytes = 0;
    for (int p = 0; p < sim->hold_count; p++)
        if (sim->holds[p].anchor)
            bytes += 8 + ANCHOR_BYTES * (size_t)sim->holds[p].count;
    return bytes;
}

void toile_holds_write(const toile_sim *sim, void *bytes) {
    char *at = bytes;
    for (int p = 0; p < sim->hold_count; p++) {
        const toile_hold *hold = &sim->holds[p];
        if (!hold->anchor)
            continue;
        int64_t flag = hold->anchored;
        memcpy(at, &flag, 8), at += 8;
        for (int j = 0; j < hold->count; j++, at += ANCHOR_BYTES) {
            int64_t triangle = hold->triangle[j];
            memcpy(at, &triangle, 8);
            memcpy(at + 8, hold->anchor + 5 * j, 40);
        }
    }
}

toile_status toile_holds_read(toile_sim *sim, const void *bytes, toile_error *error) {
    for (int pass = 0; pass < 2; pass++) { /* look first, then take */
        const char *at = bytes;
        for (int p = 0; p < sim->hold_count; p++) {
            toile_hold *hold = &sim->holds[p];
            if (!hold->anchor)
                continue;
            int64_t flag, triangle;
            memcpy(&flag, at, 8), at += 8;
            bool good = flag == 0 || flag == 1;
            for (int j = 0; good && j < hold->count; j++, at += ANCHOR_BYTES) {
                double anchor[5];
                memcpy(&triangle, at, 8);
                memcpy(anchor, at + 8, sizeof anchor);
                int most = sim->solids[hold->solid].shape == TOILE_SOLID_MESH ? sim->solids[hold->solid].triangle_count : 1;
                good = triangle >= 0 && triangle < most;
                for (int k = 0; k < 5; k++)
                    good = good && isfinite(anchor[k]);
                if (good && pass) {
                    hold->triangle[j] = (int)triangle;
                    memcpy(hold->anchor + 5 * j, anchor, sizeof anchor);
                }
            }
            if (!good)
                return toile_fail(error, TOILE_FORMAT, "the saved state has an impossible pin: it is damaged");
            if (pass)
                hold->anchored = flag;
        }
    }
    return TOILE_OK;
}
