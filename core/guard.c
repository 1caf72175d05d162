/* Checks the way of a candidate and makes it free of new intersections: impulses (Bridson, Fedkiw and Anderson 2002, section
 * 7.3), then zones that move as one (zone.h), and last cloth that solids pinch. All of it
 * goes over pairs sorted by key, so results do not depend on threads. */
#include "press.h"
#include "sim.h"
#include "vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Distance kept while moving, in thicknesses: what rounding and the next step need. */
#define LEAST_GAP 0.02

/* No particle is pushed further than so many times what a gap lacks. */
#define THROW 4.0

/* ---- hits ---- */

/* No way of A against B longer than this: each against the mean way of all. */
static double relative_way(const double begin[4][3], const double end[4][3], int split) {
    double mean[3], longest2[2] = {0, 0};
    for (int k = 0; k < 3; k++)
        mean[k] = 0.25 * (end[0][k] - begin[0][k] + end[1][k] - begin[1][k] + end[2][k] - begin[2][k] + end[3][k] - begin[3][k]);
    for (int i = 0; i < 4; i++) {
        double way[3];
        for (int k = 0; k < 3; k++)
            way[k] = end[i][k] - begin[i][k] - mean[k];
        longest2[i >= split] = fmax(longest2[i >= split], dot(way, way));
    }
    return sqrt(longest2[0]) + sqrt(longest2[1]);
}

/* Finds the time of impact of a pair. Most never go as far as they are apart at the begin. */
static void check_pair(const toile_sim *sim, toile_pair *pair) {
    const toile_skin *skin = &sim->self.skin;
    double begin[4][3], end[4][3], t;
    toile_near near;
    toile_ccd_kind kind = toile_pair_kind(pair);
    toile_pair_points(skin->begin, pair, begin);
    toile_pair_points(skin->end, pair, end);
    pair->time = 2;
    double keep = LEAST_GAP * toile_pair_thickness(sim, pair);
    double way = relative_way((const double(*)[3])begin, (const double(*)[3])end, kind == TOILE_CCD_VF ? 1 : 2);
    if (pair->clear < 0) { /* nearly always the first of several questions in a step */
        toile_nearest(kind, (const double(*)[3])begin, &near);
        pair->clear = (float)near.distance;
    }
    if (pair->clear - way > 2 * keep || toile_pair_tangled(sim, pair))
        return;
    if (!toile_ccd(kind, (const double(*)[3])begin, (const double(*)[3])end, keep, 0.1 * keep, &t))
        return;
    if (t == 0) { /* nearer than that from the start: may not come much nearer */
        toile_nearest(kind, (const double(*)[3])begin, &near);
        keep = fmin(keep, 0.5 * near.distance);
        if (!(near.distance > 1e-10) ||
            !toile_ccd(kind, (const double(*)[3])begin, (const double(*)[3])end, keep, 0.1 * keep, &t))
            return;
    }
    pair->time = (float)t;
}

static int compare_hits(const void *p, const void *q) {
    uint64_t a = ((const toile_press *)p)->pair.key, b = ((const toile_press *)q)->pair.key;
    return a < b ? -1 : a > b;
}

/* Hits among the found pairs; `all` or only those with points that moved since. */
static void find_hits(toile_sim *sim, bool all) {
    toile_self *s = &sim->self;
    const unsigned char *moved = s->touched;
#pragma omp parallel for schedule(dynamic, 64) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < s->found.count; i++) {
        const int *p = s->found.pair[i].point;
        if (all || s->found.pair[i].time < 0 || moved[p[0]] || moved[p[1]] || moved[p[2]] || moved[p[3]])
            check_pair(sim, &s->found.pair[i]);
    }
    int count = 0;
    for (int i = 0; i < s->found.count; i++)
        count += s->found.pair[i].time <= 1;
    if (s->hit_capacity < count) {
        toile_free(sim->memory, s->hit);
        s->hit = toile_alloc(sim->memory, 2 * (size_t)count + 64, sizeof *s->hit);
        s->hit_capacity = s->hit ? 2 * count + 64 : 0;
        if (!s->hit) {
            toile_fail_memory(&sim->trouble, "contacts of cloth with cloth");
            s->hit_count = 0;
            return;
        }
    }
    s->hit_count = 0;
    for (int i = 0; i < s->found.count; i++) {
        if (s->found.pair[i].time > 1)
            continue;
        toile_press *hit = &s->hit[s->hit_count++];
        double x[4][3], t = s->found.pair[i].time, y[4][3];
        toile_near near;
        hit->pair = s->found.pair[i];
        hit->time = t;
        toile_pair_points(s->skin.begin, &hit->pair, x);
        toile_pair_points(s->skin.end, &hit->pair, y);
        for (int a = 0; a < 4; a++)
            for (int k = 0; k < 3; k++)
                y[a][k] = x[a][k] + t * (y[a][k] - x[a][k]);
        toile_nearest(toile_pair_kind(&hit->pair), (const double(*)[3])y, &near);
        memcpy(hit->weight, near.weight, sizeof hit->weight);
        hit->gap = 0;
        for (int k = 0; k < 3; k++) {
            hit->normal[k] = near.distance > 0 ? near.vector[k] / near.distance : 0;
            for (int a = 0; a < 4; a++)
                hit->gap += hit->normal[k] * near.weight[a] * x[a][k];
        }
    }
    if (s->hit_count > 1)
        qsort(s->hit, (size_t)s->hit_count, sizeof *s->hit, compare_hits);
}

/* Layers nearer than this share of their thickness are wedged: at 0.8 ordinary blows went to impulses too, and a sheet hit by a ball
 * stretched by up to 9 %; 0.25 and 0.4 do as well on it and on twisted tubes. */
#define WEDGED 0.25

/* Is it a hit that a new solve may avoid? Particles on a collider's face are contact.c's, and what is pinched moves as it has to.
 * Crushed layers are pressed apart already, all that is left is a pair here and there, and impulses are enough: solved again they
 * come back elsewhere, as often as one likes. */
static bool is_new(const toile_sim *sim, const toile_pair *pair) {
    const toile_self *s = &sim->self;
    bool crushed = pair->clear >= 0 && pair->clear < WEDGED * toile_pair_thickness(sim, pair);
    return !toile_pair_held_off(s, pair) && !toile_pair_caught(sim, pair) && (!crushed || toile_pair_with_solid(s, pair));
}

/* After the last solve of a step: particles that it has thrown into a primitive are set on it. Pairs know its shell at most, which is
 * within: a sheet on a ball was left 0.3 mm inside. */
static void set_on_primitives(toile_sim *sim, double h) {
    toile_work *w = &sim->work;
    for (int s = 0; s < sim->solid_count; s++) {
        const toile_solid *solid = &sim->solids[s];
        if (solid->shape == TOILE_SOLID_MESH)
            continue;
        for (int i = 0; i < sim->model->particle_count; i++) {
            double *x = w->next_x + 4 * (size_t)i;
            toile_hit hit;
            if (w->found[i].solid >= 0 || w->held[i] || !toile_touches_solid(&sim->rules, i, s) ||
                !toile_solid_nearest(solid, x, 0, 0, h, &hit) || hit.distance >= 0)
                continue;
            for (int k = 0; k < 3; k++) {
                double step = -hit.distance * hit.normal[k];
                x[k] += step;
                w->next_v[4 * (size_t)i + (size_t)k] += step / h;
                w->solution[4 * (size_t)i + (size_t)k] += step / h;
            }
        }
    }
}

bool toile_self_missed(toile_sim *sim, double h, bool again) {
    toile_self *s = &sim->self;
    if (!s->on)
        return false;
    if (!again)
        set_on_primitives(sim, h);
    s->moved = false;
    toile_self_set_points(sim, sim->work.next_x);
    toile_self_search(sim, false);
    find_hits(sim, true);
    sim->frame.hits += s->hit_count;
    int new = 0;
    for (int i = 0; i < s->hit_count; i++)
        new += is_new(sim, &s->hit[i].pair);
    if (!again || !new)
        return false;
    bool ok = true;
    toile_press_release(sim, h);
    for (int i = 0; ok && i < s->hit_count; i++)
        if (is_new(sim, &s->hit[i].pair)) {
            s->hit[i].time = fmax(s->hit[i].time, 1e-9);
            ok = toile_press_apart(sim, &s->hit[i], sim->state.v, h);
        }
    if (!ok)
        toile_fail_memory(&sim->trouble, "contacts of cloth with cloth");
    toile_press_sort(sim);
    return true;
}

int toile_self_meet(toile_sim *sim, const double *x, const int *joined) {
    toile_self *s = &sim->self;
    if (!s->on)
        return 0;
    toile_self_look(sim, 0);
    toile_self_set_points(sim, sim->state.x);
    memcpy(s->skin.end, x, 4 * (size_t)s->skin.cloth_points * sizeof *x);
    toile_self_search(sim, false);
    int kept = 0;
    for (int i = 0; i < s->found.count; i++)
        if (!toile_pair_shares(&s->found.pair[i], joined, s->skin.cloth_points)) /* else they become neighbours */
            s->found.pair[kept++] = s->found.pair[i];
    s->found.count = kept;
    s->skin.listed = false; /* pairs are missing now */
    find_hits(sim, true);
    return s->skin.flooded ? 1 : s->hit_count;
}

/* ---- guard: impulses, then zones ---- */

/* How much a particle yields to a push along an axis, 1/kg. */
static double yield_of(const toile_sim *sim, int p, int axis) {
    return p >= sim->self.skin.cloth_points || sim->work.held[p] >> axis & 1 ? 0 : sim->model->inverse_mass[p];
}

/* Moves the ends of a hit's points apart, by mass, until the gap along the normal of the hit is wide enough. */
static void push_apart(toile_sim *sim, const toile_press *hit) {
    toile_self *s = &sim->self;
    const double *n = hit->normal;
    double goal = 0.25 * toile_pair_thickness(sim, &hit->pair), gap = 0, yielding = 0;
    goal = fmin(goal, fmax(hit->gap, 4 * LEAST_GAP * toile_pair_thickness(sim, &hit->pair)));
    for (int i = 0; i < 4; i++) {
        int p = hit->pair.point[i];
        for (int k = 0; k < 3; k++) {
            gap += n[k] * hit->weight[i] * s->skin.end[4 * (size_t)p + (size_t)k];
            yielding += hit->weight[i] * hit->weight[i] * n[k] * n[k] * yield_of(sim, p, k);
        }
    }
    if (gap >= goal || !(yielding > 0))
        return;
    double push = (goal - gap) / yielding, longest = 0;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++)
            longest = fmax(longest, push * fabs(hit->weight[i] * n[k]) * yield_of(sim, hit->pair.point[i], k));
    if (longest > THROW * (goal - gap)) /* the only one that yields is far from where it hit */
        push *= THROW * (goal - gap) / longest;
    for (int i = 0; i < 4; i++) {
        int p = hit->pair.point[i];
        for (int k = 0; k < 3; k++)
            s->skin.end[4 * (size_t)p + (size_t)k] += push * hit->weight[i] * n[k] * yield_of(sim, p, k);
        s->touched[p] = 1;
    }
}

/* Are all hits left with solids that push the same cloth in opposite directions? Zones are those of the hits. */
static bool is_pinched(toile_sim *sim) {
    toile_self *s = &sim->self;
    int n = s->skin.cloth_points, pinched = 0;
    memset(s->votes, 0, 4 * (size_t)n * sizeof(double));
    for (int i = 0; i < s->hit_count; i++) {
        const toile_press *hit = &s->hit[i];
        if (!toile_pair_with_solid(s, &hit->pair))
            return false;
        int side = hit->pair.point[0] < n ? 1 : -1; /* the normal is from the second to the first */
        for (int a = 0; a < 4; a++) {
            int p = hit->pair.point[a];
            if (p >= n)
                continue;
            const toile_found *found = &sim->work.found[p];
            double *first = s->votes + 4 * (size_t)toile_zone_leader(&s->zones, p);
            if (toile_found_holds(found) && side * dot(found->normal, hit->normal) < 0)
                first[3] = 2;
            if (first[3] == 0) {
                first[3] = 1;
                for (int k = 0; k < 3; k++)
                    first[k] = side * hit->normal[k];
            } else if (side * dot(first, hit->normal) < 0) {
                first[3] = 2;
            }
        }
    }
    for (int i = 0; i < s->hit_count; i++) {
        bool own = false;
        for (int a = 0; a < 4; a++)
            if (s->hit[i].pair.point[a] < n)
                own = own || s->votes[4 * (size_t)toile_zone_leader(&s->zones, s->hit[i].pair.point[a]) + 3] == 2;
        pinched += own;
    }
    return pinched == s->hit_count;
}

bool toile_self_guard(toile_sim *sim, double h, bool small) {
    enum { IMPULSE_PASSES = 12, ZONE_PASSES = 12 };
    toile_self *s = &sim->self;
    toile_work *w = &sim->work;
    int n = s->skin.cloth_points;
    if (!s->on || !s->hit_count)
        return true; /* `moved` is false: toile_self_missed has said so */
    s->moved = true;
    for (int pass = 0; pass < IMPULSE_PASSES && s->hit_count; pass++) {
        memset(s->touched, 0, (size_t)s->skin.point_count);
        for (int i = 0; i < s->hit_count; i++)
            push_apart(sim, &s->hit[i]);
        if (pass % 4 == 3) /* what was pushed may have left where pairs were looked for */
            toile_self_search(sim, false);
        find_hits(sim, false);
    }
    if (s->hit_count) {
        sim->frame.zones++;
        toile_zones_begin(sim);
        memset(s->touched, 0, (size_t)s->skin.point_count);
        for (int pass = 0; pass < ZONE_PASSES && s->hit_count; pass++) {
            toile_zones_join(sim);
            toile_self_search(sim, false);
            find_hits(sim, false);
        }
    }
    /* nothing may hide outside of where it was looked for */
    if (!s->hit_count) {
        toile_self_search(sim, false);
        find_hits(sim, false);
    }
    for (size_t i = 0; i < 4 * (size_t)n; i++) {
        double change = s->skin.end[i] - w->next_x[i];
        w->next_x[i] = s->skin.end[i];
        w->next_v[i] += change / h;
        w->solution[i] += change / h;
    }
    if (s->hit_count && small && is_pinched(sim)) {
        sim->frame.pinched += s->hit_count;
        return true;
    }
    return s->hit_count == 0;
}
