/* Continuous collision by conservative advancement along separating directions.
 *
 * At time t take the nearest points and the unit direction n between them. For any fixed n the gap seen along
 * n,
 *
 *   gap(t) = min over a in A of n.a(t)  -  max over b in B of n.b(t)  =  min over pairs of n.(a(t) - b(t)),
 *
 * bounds the distance of the convex hulls from below, whatever n is: an inexact nearest point costs time,
 * never a hit. Every n.(a - b) is linear in t, so the moment at which gap(t) falls to the target is a minimum
 * of quotients, without a root finder. Until then nothing can have come within the target: go there, look
 * again, until the distance is within the tolerance (hit) or t is past 1 (none). Additive CCD (Li, Kaufman,
 * Jiang 2021, Codimensional IPC, section 6.2) advances by distance over speed; seen along n a fast motion
 * that runs past the other primitive costs nothing, and head-on motion arrives in one advance.
 *
 * Rounding: points are taken relative to one of the four at t = 0, so that errors are some 1e-15 of the
 * extent of the query however far it is from the origin. The target is the separation plus half the
 * tolerance; with a tolerance of 1e-12 of the extent or more, errors cannot use up that half.
 *
 * The cubic's roots (Provot 1997; Bridson et al. 2002) were not taken: coplanar motion has no cubic, and
 * double roots are where collisions of cloth happen. */
#include "ccd.h"

#include "vec3.h"

#include <math.h>
#include <string.h>

/* Advances until a query is called a hit where it stands. Of the queries tested, 99.9 % end within 12. */
#define ADVANCES_MAX 200
#define PLAIN_ADVANCES 4

/* ---- nearest points ---- */

/* Nearest point of the segment from a, along ab, to p. Returns its parameter. */
static double along_segment(const double *p, const double *a, const double *ab) {
    double ap[3], length2 = dot(ab, ab), s;
    sub(p, a, ap);
    s = dot(ap, ab);
    return !(s > 0) ? 0 : s >= length2 ? 1 : s / length2;
}

/* Keeps the shorter of two vectors between primitives. */
static bool take_nearer(const double *vector, double *best2, toile_near *near) {
    double d2 = dot(vector, vector);
    if (!(d2 < *best2))
        return false;
    *best2 = d2;
    memcpy(near->vector, vector, sizeof near->vector);
    return true;
}

/* Point p against edge i-j of x, with p's weight sign and index. */
static void point_edge(const double x[4][3], int p, int i, int j, double sign, double *best2,
                       toile_near *near) {
    double edge[3], v[3];
    sub(x[j], x[i], edge);
    double s = along_segment(x[p], x[i], edge);
    for (int k = 0; k < 3; k++)
        v[k] = sign * (x[p][k] - (x[i][k] + s * edge[k]));
    if (take_nearer(v, best2, near)) {
        memset(near->weight, 0, sizeof near->weight);
        near->weight[p] = sign;
        near->weight[i] = -sign * (1 - s);
        near->weight[j] = -sign * s;
    }
}

static void nearest_vf(const double x[4][3], toile_near *near) {
    double ab[3], ac[3], ap[3], n[3], best2 = INFINITY;
    sub(x[2], x[1], ab), sub(x[3], x[1], ac), sub(x[0], x[1], ap);
    cross(ab, ac, n);
    double n2 = dot(n, n);
    if (n2 > 1e-24 * dot(ab, ab) * dot(ac, ac)) { /* else the triangle is as good as its edges */
        double m[3];
        cross(ap, ac, m);
        double u = dot(m, n) / n2;
        cross(ab, ap, m);
        double v = dot(m, n) / n2;
        if (u >= 0 && v >= 0 && u + v <= 1) {
            double height = dot(ap, n) / n2;
            for (int k = 0; k < 3; k++)
                near->vector[k] = height * n[k];
            near->distance = fabs(height) * sqrt(n2);
            near->weight[0] = 1;
            near->weight[1] = -(1 - u - v);
            near->weight[2] = -u;
            near->weight[3] = -v;
            return;
        }
    }
    point_edge(x, 0, 1, 2, 1, &best2, near);
    point_edge(x, 0, 2, 3, 1, &best2, near);
    point_edge(x, 0, 3, 1, 1, &best2, near);
    near->distance = sqrt(best2);
}

static void nearest_ee(const double x[4][3], toile_near *near) {
    double u[3], v[3], w[3], best2 = INFINITY;
    sub(x[1], x[0], u), sub(x[3], x[2], v), sub(x[0], x[2], w);
    double a = dot(u, u), b = dot(u, v), c = dot(v, v), d = dot(u, w), e = dot(v, w), det = a * c - b * b;
    if (det > 1e-12 * a * c) {
        double s = (b * e - c * d) / det, t = (a * e - b * d) / det;
        if (s >= 0 && s <= 1 && t >= 0 && t <= 1) {
            for (int k = 0; k < 3; k++)
                near->vector[k] = w[k] + s * u[k] - t * v[k];
            near->distance = sqrt(dot(near->vector, near->vector));
            near->weight[0] = 1 - s;
            near->weight[1] = s;
            near->weight[2] = -(1 - t);
            near->weight[3] = -t;
            return;
        }
    }
    point_edge(x, 0, 2, 3, 1, &best2, near); /* the nearest pair has an end in it */
    point_edge(x, 1, 2, 3, 1, &best2, near);
    point_edge(x, 2, 0, 1, -1, &best2, near);
    point_edge(x, 3, 0, 1, -1, &best2, near);
    near->distance = sqrt(best2);
}

void toile_nearest(toile_ccd_kind kind, const double x[4][3], toile_near *near) {
    if (kind == TOILE_CCD_VF)
        nearest_vf(x, near);
    else
        nearest_ee(x, near);
}

/* ---- advancement ---- */

/* One query, seen from its first point. */
typedef struct motion {
    toile_ccd_kind kind;
    int split; /* points of A are [0, split), of B [split, 4) */
    double x[4][3], v[4][3];
    double touch, target; /* distances: a hit, and what is kept while advancing */
} motion;

/* A moment of it: where the points are, and the unit direction from the nearest point of B to that of A. */
typedef struct moment {
    double t, p[4][3], n[3];
} moment;

/* False if they are within the touching distance at t. */
static bool look(const motion *m, double t, moment *now) {
    toile_near near;
    now->t = t;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            now->p[i][k] = m->x[i][k] + t * m->v[i][k];
    toile_nearest(m->kind, (const double(*)[3])now->p, &near);
    for (int k = 0; k < 3; k++)
        now->n[k] = near.vector[k] / near.distance;
    return near.distance > m->touch;
}

/* Until when does the gap along the direction of now stay above the target? Now itself if the nearest points
 * are too poor to tell. */
static double free_until(const motion *m, const moment *now) {
    double at[4], rate[4], ahead = INFINITY;
    for (int i = 0; i < 4; i++) {
        at[i] = dot(now->n, now->p[i]);
        rate[i] = dot(now->n, m->v[i]);
    }
    for (int a = 0; a < m->split; a++)
        for (int b = m->split; b < 4; b++) {
            double room = at[a] - at[b] - m->target, r = rate[a] - rate[b];
            if (!(room > 0))
                return now->t;
            if (r < 0 && room < -r * ahead)
                ahead = room / -r;
        }
    return now->t + ahead;
}

/* Free all the time between two moments, along a direction that turns from the one's to the other's? The gap
 * of two points along (1 - s) n0 + s n1 is quadratic in s, and no smaller than the least of its Bernstein
 * coefficients; the direction is nowhere longer than 1. */
static bool free_between(const motion *m, const moment *first, const moment *second) {
    double at[4][3];
    for (int i = 0; i < 4; i++) {
        at[i][0] = dot(first->n, first->p[i]);
        at[i][1] = 0.5 * (dot(first->n, second->p[i]) + dot(second->n, first->p[i]));
        at[i][2] = dot(second->n, second->p[i]);
    }
    for (int a = 0; a < m->split; a++)
        for (int b = m->split; b < 4; b++)
            for (int k = 0; k < 3; k++)
                if (!(at[a][k] - at[b][k] > m->target))
                    return false;
    return true;
}

/* Far apart along an axis all the time? Most pairs that a tree finds are. */
static bool apart_on_axes(double x[4][3], double v[4][3], int split, double target) {
    for (int k = 0; k < 3; k++) {
        double lo_a = INFINITY, hi_a = -INFINITY, lo_b = INFINITY, hi_b = -INFINITY;
        for (int i = 0; i < 4; i++) {
            double p = x[i][k], q = p + v[i][k], lo = p < q ? p : q, hi = p < q ? q : p;
            if (i < split) {
                lo_a = lo < lo_a ? lo : lo_a;
                hi_a = hi > hi_a ? hi : hi_a;
            } else {
                lo_b = lo < lo_b ? lo : lo_b;
                hi_b = hi > hi_b ? hi : hi_b;
            }
        }
        if (lo_a - hi_b > target || lo_b - hi_a > target)
            return true;
    }
    return false;
}

/* From the begin to the end, or to the first moment beyond which nothing is known. Where the primitives turn,
 * a fixed direction holds for ever shorter times; so after a few advances a leap along a turning direction is
 * tried first. It doubles when that holds and is halved when it does not. */
static bool advance(const motion *m, double *time) {
    moment now, later;
    double leap = 0;
    bool apart = look(m, 0, &now);
    for (int pass = 0; apart && pass < ADVANCES_MAX; pass++) {
        double until = free_until(m, &now);
        if (until > 1)
            return false;
        if (pass >= PLAIN_ADVANCES && leap > until - now.t) {
            if (look(m, now.t + leap < 1 ? now.t + leap : 1, &later) && free_between(m, &now, &later)) {
                if (later.t == 1)
                    return false;
                now = later;
                leap *= 2;
                continue;
            }
            leap *= 0.5;
        } else {
            leap = 2 * (until - now.t);
        }
        if (until == now.t)
            break;
        apart = look(m, until, &now);
    }
    *time = now.t;
    return true;
}

bool toile_ccd(toile_ccd_kind kind, const double begin[4][3], const double end[4][3], double separation,
               double tolerance, double *time) {
    motion m = {.kind = kind,
                .split = kind == TOILE_CCD_VF ? 1 : 2,
                .touch = separation + tolerance,
                .target = separation + 0.5 * tolerance};
    for (int k = 0; k < 3; k++) {
        double origin = begin[0][k], drift = end[0][k] - begin[0][k];
        for (int i = 0; i < 4;
             i++) { /* seen from the first point, which then rests: only relative motion matters */
            m.x[i][k] = begin[i][k] - origin;
            m.v[i][k] = (end[i][k] - begin[i][k]) - drift;
        }
    }
    return !apart_on_axes(m.x, m.v, m.split, m.target) && advance(&m, time);
}
