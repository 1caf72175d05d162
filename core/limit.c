/* A step on the tangent stretches what turns fast, and does not know of connections that are slack before it and taut after:
 * in impacts a handful of elements out of thousands grow by a little too much, and the step would be cut for all. Instead
 * these are brought back to what is allowed, one after the other (Provot 1995; with velocities, Bridson 2003 section 4.2):
 * along the gradient of their stretch, by inverse mass, so that momentum is kept; pins do not move, contacts only along their
 * surface. Where a larger region is overstretched the step is wrong, not an element, and it is cut as before. */
#include "limit.h"
#include "kernels.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

#define SWEEPS 12 /* over the elements found */

/* Growth up to which an element is brought back: a particle that was thrown by more than its edges are long is no detail. */
#define WORTH 1.0

/* Growth, in parts of what is allowed, that counts where there is more stretch than usual. At 0.25 it added up over steps: a ball that
 * strikes a sheet of 41 x 41 stretched it by 5.2 % in the median of 25 starts, and by 3.9 % now. In crushed cloth layers that are brought
 * back in every step are driven into each other (R4, frames 27 to 61: 301,132 hits with 0.03, 39,380 with 0.25, stretch under the plunger
 * 1.51 and 1.36). Cloth under load that was let be hooked on needles for good (R5: 5.5, and 1.31 with 0.03; before fabrics had limits). */
#define ADDS_UP 0.03
#define ADDS_UP_CRUSHED 0.25

/* Of what is allowed, how much an element that is to grow may, so that neighbours that move meanwhile do not end above it. */
#define AIM 0.9

/* How fast cloth under load may stretch, 1/s: bodies move so; what contacts do wrong is faster. */
#define RATE 3.0

/* Share of the elements beyond usual stretch from which on cloth is under load, and contacts with itself, for each of its particles,
 * above which it is crushed. */
#define LOADED 0.02
#define CRUSHED 0.25

/* The least that particles in contact may yield along an element, in parts of what free ones would. */
#define LEAST_GIVE 0.1

/* Beyond the fabric's limit: an element that takes a load over from one there may grow this far beyond it in one step. */
#define TAKES 0.05

/* Growth that is let pass where solids hold the cloth in their midst, in parts of what is allowed elsewhere: there shorter steps
 * do not make it less. */
#define EXCUSED 4.0

/* One direction of a triangle, or a connection: stretch = |sum of weight x|. */
typedef struct strand {
    int count, particle[3];
    double weight[3];
} strand;

static strand strand_of(const toile_model *m, int e, int direction) {
    if (m->springs_used) {
        double w = 1 / m->springs.length[e];
        return (strand){2, {m->springs.vertex[0][e], m->springs.vertex[1][e]}, {-w, w}};
    }
    const toile_triangles *t = &m->triangles;
    double scale = direction ? t->scale_v[e] : t->scale_u[e];
    double a = (direction ? t->b1 : t->a1)[e] / scale, b = (direction ? t->b2 : t->a2)[e] / scale;
    return (strand){3, {t->vertex[0][e], t->vertex[1][e], t->vertex[2][e]}, {-a - b, a, b}};
}

/* The largest stretch that counts as a growth of at most `most` (kernels.h). */
static double allowed(double before, double most) {
    double u = fmax(before, 1) - 1, usual = fmax(u, TOILE_STRETCH_USUAL);
    double o = u + most <= usual ? u + most : (u + sqrt(u * u + 4 * most * usual)) / 2;
    return 1 + o;
}

/* Growth that would be allowed, but adds to more than is usual: steps in a row would add up. */
static bool adds_up(double before, double after, double part) {
    return after - 1 > TOILE_STRETCH_USUAL + part && after - before > part;
}

/* The stretch of the candidate along the direction that an element had: all of it that the solve knew of. An element that was slack
 * was not known to resist. */
static double foreseen(const toile_sim *sim, const strand *s, double before, double h) {
    double from[3] = {0}, to[3] = {0};
    for (int c = 0; c < s->count; c++)
        for (int k = 0; k < 3; k++) {
            size_t at = 4 * (size_t)s->particle[c] + (size_t)k;
            from[k] += s->weight[c] * sim->state.x[at];
            to[k] += s->weight[c] * sim->work.next_x[at];
        }
    return before > 1 ? fmin(dot(from, to) / before, before + RATE * h) : before;
}

/* What an element is brought back to: half of what is allowed, and not beyond the usual. But not less than was foreseen, which is
 * what its tension and that of its neighbours ask for: brought back from there, anew in every step, it is held where nothing else
 * holds it. In an armpit particles were so, against 5 N, and their triangles stretched to 1.8. */
static double target_of(double before, double most, double foreseen) {
    double u = fmax(before, 1) - 1;
    return 1 + fmax(fmax(u, fmin(u + 0.5 * most, TOILE_STRETCH_USUAL)), fmin(foreseen, allowed(before, AIM * most)) - 1);
}

/* Where the values of an element are in `stretch`. */
static size_t place(const toile_model *m, int e, int direction) {
    return m->springs_used ? (size_t)e : 2 * (size_t)(e / 8 * 8) + 8 * (size_t)direction + (size_t)(e % 8);
}

/* The part of `direction` in which particle i is free. */
static void free_part(const toile_work *w, int i, const double *direction, double *out) {
    const toile_found *found = &w->found[i];
    bool touches = toile_found_holds(found), fixed = w->held[i] || (touches && found->mode == TOILE_TOUCH_STICK); /* or in one axis only */
    double along = touches ? dot(found->normal, direction) : 0, line[3];
    for (int k = 0; k < 3; k++)
        out[k] = fixed ? 0 : direction[k] - (touches ? along * found->normal[k] : 0);
    if (fixed || !touches || found->other < 0)
        return;
    cross(found->normal, found->crease, line); /* of a crease */
    along = dot(line, direction) / dot(line, line);
    for (int k = 0; k < 3; k++)
        out[k] = along * line[k];
}

/* Brings one strand of the candidate down to `target`. */
static void shorten(toile_sim *sim, const strand *s, double target, double reach) {
    toile_work *w = &sim->work;
    double d[3] = {0}, length, give = 0, whole = 0, way[3][3];
    for (int c = 0; c < s->count; c++)
        for (int k = 0; k < 3; k++)
            d[k] += s->weight[c] * w->next_x[4 * (size_t)s->particle[c] + (size_t)k];
    length = sqrt(dot(d, d));
    if (length <= target)
        return;
    for (int k = 0; k < 3; k++)
        d[k] /= length;
    for (int c = 0; c < s->count; c++) {
        free_part(w, s->particle[c], d, way[c]);
        double factor = s->weight[c] / sim->model->mass[s->particle[c]];
        for (int k = 0; k < 3; k++)
            way[c][k] *= factor;
        give += s->weight[c] * dot(way[c], d);
        whole += s->weight[c] * factor;
    }
    if (give <= LEAST_GIVE * whole)
        return; /* contacts let it yield sideways only: far, for little */
    for (int c = 0; c < s->count; c++)
        for (int k = 0; k < 3; k++) {
            size_t at = 4 * (size_t)s->particle[c] + (size_t)k;
            double step = -(length - target) / give * way[c][k];
            w->next_x[at] += step;
            w->next_v[at] += step / reach;
            w->solution[at] += step / reach;
        }
}

/* Are there so many contacts that layers cannot give way? */
static bool is_crushed(const toile_sim *sim) {
    return sim->self.on && sim->self.couplings.count > CRUSHED * sim->model->particle_count;
}

/* Does much of the cloth bear more than is usual? Then it is under load; a blow stretches a few places. But cloth that crosses a solid
 * hangs from contacts that hold it by mistake, and is to be torn off them, and layers that are crushed burst if nothing holds them. */
static bool under_load(const toile_sim *sim) {
    const toile_model *m = sim->model;
    const toile_self *self = &sim->self;
    if (sim->work.riders || (self->on && (self->crossings[0] || self->crossings[1])) || is_crushed(sim))
        return false;
    int directions = m->springs_used ? 1 : 2, elements = m->springs_used ? m->springs.stretch_count : m->triangles.count;
    int count = 0;
    for (int e = 0; e < elements; e++)
        for (int k = 0; k < directions; k++)
            count += sim->work.stretch[place(m, e, k)] > 1 + TOILE_STRETCH_USUAL;
    return count > LOADED * elements;
}

/* Can an element of this one's block have grown by more than is allowed, or to what adds up? */
static bool may_be_over(const toile_sim *sim, int element) {
    const double *extreme = sim->work.extreme + 2 * (size_t)(element / TOILE_STRETCH_BLOCK);
    return extreme[0] > 0.99 * sim->settings->stretch_change_max || extreme[1] > 1 + TOILE_STRETCH_USUAL; /* 0.99: rounding */
}

/* In most steps no block has one, and the elements need not be looked through. */
static bool any_may_be_over(const toile_sim *sim) {
    bool any = false;
    for (int e = 0; e < toile_stretch_elements(sim->model) && !any; e += TOILE_STRETCH_BLOCK)
        any = may_be_over(sim, e);
    return any;
}

/* Is the larger principal stretch of triangle e, or the stretch of a connection, beyond its fabric's limit at the state? */
static bool is_strained(const toile_sim *sim, int e) {
    const toile_model *m = sim->model;
    const double *x = sim->state.x;
    if (m->springs_used)
        return m->springs.stiff_limit[e] > 0 && sim->work.stretch[e] > m->springs.limit[e];
    const toile_triangles *t = &m->triangles;
    const double *p = x + 4 * (size_t)t->vertex[0][e], *q = x + 4 * (size_t)t->vertex[1][e], *r = x + 4 * (size_t)t->vertex[2][e];
    double wu[3], wv[3];
    for (int k = 0; k < 3; k++) {
        wu[k] = t->a1[e] * (q[k] - p[k]) + t->a2[e] * (r[k] - p[k]);
        wv[k] = t->b1[e] * (q[k] - p[k]) + t->b2[e] * (r[k] - p[k]);
    }
    double uu = dot(wu, wu), vv = dot(wv, wv), uv = dot(wu, wv);
    if (!(fmax(uu, vv) + fabs(uv) > t->reach[e]))
        return false;
    uu /= t->scale_u[e] * t->scale_u[e], vv /= t->scale_v[e] * t->scale_v[e], uv /= t->scale_u[e] * t->scale_v[e];
    double half = 0.5 * (uu - vv);
    return 0.5 * (uu + vv) + sqrt(half * half + uv * uv) > t->limit[e] * t->limit[e];
}

/* Which particles have an element that is? Most steps do not ask. */
static void find_strained(toile_sim *sim) {
    const toile_model *m = sim->model;
    toile_work *w = &sim->work;
    int elements = m->springs_used ? m->springs.stretch_count : m->triangles.count, corners = m->springs_used ? 2 : 3;
    memset(w->strained, 0, (size_t)m->particle_count);
    for (int e = 0; e < elements; e++)
        for (int c = 0; c < corners && is_strained(sim, e); c++)
            w->strained[m->springs_used ? m->springs.vertex[c][e] : m->triangles.vertex[c][e]] = 1;
    w->strained_known = true;
}

void toile_limit_begin(toile_sim *sim) {
    sim->work.strained_known = sim->work.solved_known = false;
}

void toile_limit_keep(toile_sim *sim) {
    toile_work *w = &sim->work;
    size_t directions = sim->model->springs_used ? 1 : 2;
    memcpy(w->solved_stretch, w->next_stretch, directions * (size_t)toile_stretch_elements(sim->model) * sizeof *w->solved_stretch);
    w->solved_known = true;
}

/* The stretch that the solve gave an element, if the candidate was changed after it. */
static double solved_or(const toile_sim *sim, size_t at, double after) {
    return sim->work.solved_known ? sim->work.solved_stretch[at] : after;
}

/* Does an element grow because it takes a load over from one beyond its limit, on to what it may bear? Brought back it would hand that load to
 * its neighbours again, in every step: a shirt's armpit stood at 1.38 for ten frames where 1.26 balances (R10a, permuted). */
static bool takes_over(toile_sim *sim, int e, const strand *s, double after) {
    const toile_model *m = sim->model;
    double limit = (m->springs_used ? m->springs.limit : m->triangles.limit)[e];
    bool beside = false, limited = (m->springs_used ? m->springs.stiff_limit : m->triangles.stiff_limit)[e] > 0;
    if (!limited || after > limit + TAKES)
        return false;
    if (!sim->work.strained_known)
        find_strained(sim);
    for (int c = 0; c < s->count; c++)
        beside = beside || sim->work.strained[s->particle[c]];
    return beside;
}

/* Elements that grew too much, into the list; -1: too many, or one by far too much. */
static int find_over(toile_sim *sim, bool loaded, double h) {
    const toile_model *m = sim->model;
    toile_work *w = &sim->work;
    double most = sim->settings->stretch_change_max, part = (is_crushed(sim) ? ADDS_UP_CRUSHED : ADDS_UP) * most;
    int directions = m->springs_used ? 1 : 2, elements = m->springs_used ? m->springs.stretch_count : m->triangles.count;
    int count = 0, room = elements / 32 < TOILE_LIMIT_MOST ? elements / 32 : TOILE_LIMIT_MOST;
    for (int e = 0; e < elements; e++) {
        if (e % TOILE_STRETCH_BLOCK == 0 && !may_be_over(sim, e)) {
            e += TOILE_STRETCH_BLOCK - 1;
            continue;
        }
        for (int k = 0; k < directions; k++) {
            size_t at = place(m, e, k);
            double before = w->stretch[at], after = w->next_stretch[at];
            if (after <= allowed(before, most) && !adds_up(before, after, part))
                continue;
            strand s = strand_of(m, e, k);
            if (loaded && after <= allowed(before, most) && !adds_up(fmax(before, foreseen(sim, &s, before, h)), after, part))
                continue;
            if (after <= allowed(solved_or(sim, at, after), most) && takes_over(sim, e, &s, after))
                continue;
            if (count == room || after > before + WORTH)
                return -1;
            w->over[count++] = 2 * e + k;
        }
    }
    return count;
}

bool toile_limit_stretch(toile_sim *sim, const toile_scheme *scheme, double change) {
    const toile_model *m = sim->model;
    toile_work *w = &sim->work;
    double most = sim->settings->stretch_change_max;
    if (scheme->procedure != TOILE_LINEAR || change <= ADDS_UP * most || !any_may_be_over(sim))
        return false;
    bool loaded = under_load(sim);
    int count = find_over(sim, loaded, scheme->h);
    for (int sweep = 0; count > 0 && sweep < SWEEPS; sweep++)
        for (int o = 0; o < count; o++) {
            int e = w->over[o] / 2, k = w->over[o] % 2;
            strand s = strand_of(m, e, k);
            double before = w->stretch[place(m, e, k)], solved = solved_or(sim, place(m, e, k), 0);
            double target = target_of(before, most, loaded ? foreseen(sim, &s, before, scheme->h) : before);
            shorten(sim, &s, solved > target && takes_over(sim, e, &s, solved) ? solved : target, scheme->reach);
        }
    return count > 0;
}

bool toile_limit_relax(toile_sim *sim, const toile_scheme *scheme) {
    const toile_model *m = sim->model;
    toile_work *w = &sim->work;
    const double *limit = m->springs_used ? m->springs.limit : m->triangles.limit;
    const double *stiff = m->springs_used ? m->springs.stiff_limit : m->triangles.stiff_limit;
    int directions = m->springs_used ? 1 : 2, elements = m->springs_used ? m->springs.stretch_count : m->triangles.count, count = 0;
    for (int e = 0; e < elements && w->solved_known; e++)
        for (int k = 0; k < directions; k++) {
            size_t at = place(m, e, k);
            if (stiff[e] > 0 && w->next_stretch[at] > limit[e] + TAKES && count < TOILE_LIMIT_MOST &&
                w->next_stretch[at] > w->solved_stretch[at] + sim->settings->stretch_change_max)
                w->over[count++] = 2 * e + k;
        }
    for (int sweep = 0; count > 0 && sweep < SWEEPS; sweep++)
        for (int o = 0; o < count; o++) {
            strand s = strand_of(m, w->over[o] / 2, w->over[o] % 2);
            shorten(sim, &s, w->solved_stretch[place(m, w->over[o] / 2, w->over[o] % 2)], scheme->reach);
        }
    return count > 0;
}

bool toile_limit_excuses(toile_sim *sim) {
    const toile_model *m = sim->model;
    const toile_work *w = &sim->work;
    double most = sim->settings->stretch_change_max;
    int directions = m->springs_used ? 1 : 2, elements = m->springs_used ? m->springs.stretch_count : m->triangles.count;
    for (int e = 0; e < elements; e++)
        for (int k = 0; k < directions; k++) {
            double before = w->stretch[place(m, e, k)], after = w->next_stretch[place(m, e, k)];
            if (after <= allowed(before, most))
                continue;
            strand s = strand_of(m, e, k);
            if (after <= allowed(solved_or(sim, place(m, e, k), after), most) && takes_over(sim, e, &s, after))
                continue;
            bool caught = false;
            for (int c = 0; w->riders && c < s.count; c++)
                caught = caught || toile_is_caught(sim, s.particle[c]);
            if (!caught || !(after <= allowed(before, EXCUSED * most)))
                return false;
        }
    return true;
}
