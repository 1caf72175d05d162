#include "self.h"

#include "sim.h"
#include "vec3.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Couplings resist approach with so many times the mass they stop: a layer sinks in by g h^2 / (60 RETURN) under the weight of
 * one like it. As the gap closes they grow stiffer, up to the second number. */
#define STIFFNESS 60.0
#define STIFFNESS_MAX 20000.0
/* A contact that lasts is taken for one while it parts no faster than what this acceleration makes in a step, m/s^2. */
#define LIFT 20.0
/* Friction is made from a guess of the normal force; what the guess was wrong by is owed to the next step, up to this share of
 * the guess. Chosen on slopes: at 0 they slide half as far as they should, at 0.7 springs creep 2 mm, at 1 sheets do. */
#define OWED_MOST 0.5
/* Gap in thicknesses below which layers count as crushed. */
#define CRUSHED 0.8
/* Share of what is missing to thickness that is given back in a step, and how fast at most, m/s. */
#define RETURN 0.2
#define RETURN_SPEED 0.5

/* Of an edge in the material: the thickest that cloth may be against itself without neighbours but one touching. */
#define THICKEST 0.5
/* Default thickness in edges, and its largest, m. */
#define USUAL 0.25
#define USUAL_MAX 0.003
/* Edges and corners of colliders are kept at this share of the distance that particles keep. */
#define EDGE_SHARE 0.25

/* How near counts as near, in thicknesses. */
#define NEAR 2.0

/* Distance kept while moving, in thicknesses: what rounding and the next step need. */
#define LEAST_GAP 0.02

/* How deep inside a solid cloth is still known to be inside, m. */
#define INSIDE 0.05

/* ---- making ---- */

static bool wanted(const toile_sim *sim) {
    if (sim->settings->self_collision != TOILE_SELF_OFF)
        return true;
    for (int i = 0; i < sim->solid_count; i++)
        if (sim->solids[i].shape == TOILE_SOLID_MESH)
            return true;
    return false;
}

/* Do the solids still have the meshes that the skin was made from? */
static bool fits(const toile_sim *sim) {
    const toile_skin *skin = &sim->self.skin;
    int k = 0;
    if (!skin->memory)
        return false;
    for (int i = 0; i < sim->solid_count; i++) {
        const toile_solid *s = &sim->solids[i];
        if (s->shape != TOILE_SOLID_MESH)
            continue;
        if (k == skin->solid_count || skin->solids[k].solid != i || skin->solids[k].tree.count != s->triangle_count)
            return false;
        const int *first = skin->triangle + 3 * skin->solids[k].triangle_begin;
        for (int j = 0; j < 3 * s->triangle_count; j++)
            if (first[j] != skin->solids[k].point_begin + s->triangles[j])
                return false;
        k++;
    }
    return k == skin->solid_count;
}

void toile_self_free(toile_sim *sim) {
    toile_self *s = &sim->self;
    toile_skin_free(&s->skin);
    void *blocks[] = {s->tangled, s->particles.pair, s->thickness, s->near.pair, s->found.pair, s->time, s->hit, s->way, s->touched, s->zone, s->zone_way};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(sim->memory, blocks[i]);
    toile_couplings_free(sim->memory, &s->couplings);
    toile_voxels_free(sim->memory, &s->voxels);
    memset(s, 0, sizeof *s);
}

static double collider_gap(const toile_sim *sim, int solid) {
    return EDGE_SHARE * (sim->solids[sim->self.skin.solids[solid].solid].thickness + sim->settings->contact_thickness);
}

/* A property of the mesh unless it is set. */
static void set_thickness(toile_sim *sim) {
    toile_self *s = &sim->self;
    double given = sim->settings->self_thickness, most = 0, mean = 0;
    int n = sim->model->particle_count;
    for (int i = 0; i < n; i++)
        mean += s->skin.mean_edge[i] / n;
    bool cheap = sim->settings->self_collision == TOILE_SELF_CHEAP;
    for (int i = 0; i < n; i++) {
        double usual = cheap ? THICKEST * mean : fmin(USUAL * mean, USUAL_MAX);
        s->thickness[i] = fmin(given > 0 ? given : usual, THICKEST * s->skin.mean_edge[i]);
        most = fmax(most, s->thickness[i]);
    }
    bool self = sim->settings->self_collision == TOILE_SELF_ON;
    s->reach = (toile_reach){self ? NEAR * most : -1, -1};
    s->voxel = NEAR * most;
    for (int i = 0; i < s->skin.solid_count; i++)
        s->reach.solid = fmax(s->reach.solid, NEAR * collider_gap(sim, i));
}

toile_status toile_self_begin(toile_sim *sim, toile_error *error) {
    toile_self *s = &sim->self;
    s->near_known = false;
    s->on = wanted(sim);
    if (!s->on || fits(sim))
        return TOILE_OK;
    toile_self_free(sim);
    s->on = true;
    const toile_model *m = sim->model;
    toile_status status = toile_skin_make(sim->memory, m, sim->solids, sim->solid_count, sim->threads, &s->skin, error);
    if (status != TOILE_OK)
        return status;
    size_t n = (size_t)m->particle_count, points = (size_t)s->skin.point_count;
    s->thickness = toile_alloc(sim->memory, n, sizeof(double));
    s->way = toile_alloc(sim->memory, 4 * points, sizeof(double));
    s->touched = toile_alloc(sim->memory, points, 1);
    s->zone = toile_alloc(sim->memory, n, sizeof(int));
    s->zone_way = toile_alloc(sim->memory, 4 * n, sizeof(double));
    s->tangled = toile_alloc(sim->memory, n, 1);
    int usual = toile_skin_usual_pairs(&s->skin);
    s->near.pair = toile_alloc(sim->memory, (size_t)usual, sizeof *s->near.pair);
    s->found.pair = toile_alloc(sim->memory, (size_t)usual, sizeof *s->found.pair);
    s->time = toile_alloc(sim->memory, (size_t)usual, sizeof *s->time);
    s->hit = toile_alloc(sim->memory, 1024, sizeof *s->hit);
    s->near.capacity = s->found.capacity = s->time_capacity = usual;
    s->hit_capacity = 1024;
    bool ok = s->near.pair && s->found.pair && s->time && s->hit && s->tangled && s->thickness && s->way && s->touched && s->zone && s->zone_way &&
              toile_couplings_make(sim->memory, m->particle_count, m->pattern.chunk_count, &s->couplings) &&
              (sim->settings->self_collision != TOILE_SELF_CHEAP ||
               toile_voxels_make(sim->memory, m->particle_count, &s->voxels));
    if (!ok) {
        toile_self_free(sim);
        return toile_fail_memory(error, "what keeps cloth off cloth");
    }
    set_thickness(sim);
    return TOILE_OK;
}

/* ---- geometry of a pair ---- */

/* The distance that a pair keeps, m. */
static double thickness_of(const toile_sim *sim, const toile_pair *pair) {
    const toile_self *s = &sim->self;
    double least = INFINITY;
    for (int i = 0; i < 4; i++) {
        int p = pair->point[i], solid = s->skin.solid_of[p];
        double own = solid >= 0 ? collider_gap(sim, solid) : s->thickness[p];
        least = own < least ? own : least;
    }
    return least;
}

static bool with_solid(const toile_self *s, const toile_pair *pair) {
    int n = s->skin.cloth_points;
    return pair->point[0] >= n || pair->point[1] >= n || pair->point[3] >= n;
}

/* A particle of the cloth against a collider's face: contact.c holds it off. */
static bool held_off_already(const toile_self *s, const toile_pair *pair) {
    return toile_pair_kind(pair) == TOILE_CCD_VF && pair->point[1] >= s->skin.cloth_points;
}

/* Velocity of a point at the state, m/s. */
static void velocity_of(const toile_sim *sim, int p, const double *v, double out[3]) {
    const toile_skin *skin = &sim->self.skin;
    if (p < skin->cloth_points) {
        memcpy(out, v + 4 * (size_t)p, 3 * sizeof(double));
        return;
    }
    const toile_skin_solid *own = &skin->solids[skin->solid_of[p]];
    memcpy(out, sim->solids[own->solid].velocity + 3 * (size_t)(p - own->point_begin), 3 * sizeof(double));
}

static void friction_of(const toile_sim *sim, const toile_pair *pair, double *still, double *sliding) {
    for (int i = 0; i < 4; i++) {
        int solid = sim->self.skin.solid_of[pair->point[i]];
        if (solid >= 0) {
            *still = sim->solids[sim->self.skin.solids[solid].solid].friction_static;
            *sliding = sim->solids[sim->self.skin.solids[solid].solid].friction_kinetic;
            return;
        }
    }
    *still = *sliding = sim->settings->self_friction;
}

/* ---- couplings ---- */

/* Did most of the particles of a contact slide, or were they pressed on, in the last step? */
static bool most_did(const toile_sim *sim, const toile_press *press, int bit) {
    double votes = 0;
    for (int i = 0; i < 4; i++)
        if (press->pair.point[i] < sim->self.skin.cloth_points)
            votes += fabs(press->weight[i]) * (sim->state.touch[press->pair.point[i]].mode & bit ? 1 : -1);
    return votes > 0;
}

/* What friction owes the contacts of these particles, in parts of the guess. */
static double owed(const toile_sim *sim, const toile_press *press) {
    double sum = 0, weight = 0;
    for (int i = 0; i < 4; i++) {
        int p = press->pair.point[i];
        if (p >= sim->self.skin.cloth_points || sim->state.touch[p].solid >= 0 || !(sim->state.touch[p].direction[0] > 0))
            continue;
        sum += fabs(press->weight[i]) * sim->state.touch[p].force / sim->state.touch[p].direction[0];
        weight += fabs(press->weight[i]);
    }
    return weight > 0 ? fmin(fmax(sum / weight, -OWED_MOST), OWED_MOST) : 0;
}

/* After the step: which contacts slide, which press? A particle goes with the contacts that press it most. */
static void remember_sliding(toile_sim *sim) {
    toile_self *s = &sim->self;
    const toile_couplings *c = &s->couplings;
    double *votes = s->zone_way, *pressed = votes + sim->model->particle_count, *guessed = pressed + sim->model->particle_count,
           *owing = guessed + sim->model->particle_count;
    for (int r = 0; r < c->row_count; r++)
        votes[c->row[r]] = pressed[c->row[r]] = guessed[c->row[r]] = owing[c->row[r]] = 0;
    for (int i = 0; i < c->count; i++) {
        const toile_coupling *item = &c->item[i];
        double u[3], slip[3];
        memcpy(u, item->known, sizeof u);
        for (int a = 0; a < 4; a++)
            for (int k = 0; item->particle[a] >= 0 && k < 3; k++)
                u[k] += item->weight[a] * sim->state.dv[4 * (size_t)item->particle[a] + (size_t)k];
        double away = dot(u, item->normal), force = item->stiffness * (item->target - away);
        for (int k = 0; k < 3; k++)
            slip[k] = u[k] - away * item->normal[k];
        bool slides = dot(item->direction, item->direction) > 0
                          ? dot(slip, item->direction) > 0
                          : item->grip * sqrt(dot(slip, slip)) > item->friction * fmax(force, 0);
        for (int a = 0; a < 4; a++)
            if (item->particle[a] >= 0) {
                votes[item->particle[a]] += (slides ? 1 : -1) * fmax(force, 0) * fabs(item->weight[a]);
                pressed[item->particle[a]] += force * fabs(item->weight[a]);
                guessed[item->particle[a]] += item->guess * fabs(item->weight[a]);
                owing[item->particle[a]] += item->used >= 0 ? (force - item->used) * fabs(item->weight[a]) : 0;
            }
    }
    for (int r = 0; r < c->row_count; r++) {
        int p = c->row[r];
        toile_touch *touch = &sim->state.touch[p];
        touch->mode |= (votes[p] > 0 ? TOILE_TOUCH_RUB : 0) | (pressed[p] > 0 ? TOILE_TOUCH_PRESSED : 0);
        if (touch->solid < 0) {
            double most = OWED_MOST * guessed[p];
            touch->force = fmin(fmax(touch->force + owing[p], -most), most);
            touch->direction[0] = guessed[p];
        }
    }
}

/* Keeps the pair of a contact from coming nearer than thickness within the step; v are the velocities it is linear about. */
static bool press_apart(toile_sim *sim, const toile_press *press, const double *v, double h) {
    toile_self *s = &sim->self;
    const toile_model *m = sim->model;
    const double *n = press->normal;
    double thickness = thickness_of(sim, &press->pair), yielding = 0, u[3] = {0, 0, 0};
    for (int i = 0; i < 4; i++) {
        int p = press->pair.point[i];
        double w = press->weight[i], vi[3];
        velocity_of(sim, p, v, vi);
        for (int k = 0; k < 3; k++)
            u[k] += w * vi[k];
        if (p < s->skin.cloth_points)
            yielding += w * w * m->inverse_mass[p];
    }
    if (!(yielding > 0))
        return true;
    double approach = dot(u, n), missing = thickness - press->gap, target = missing / h;
    if (missing > 0)
        target = fmin(RETURN * target, RETURN_SPEED);
    /* What stays out of itself is left alone. But what was pressed on is held until it would have to be pulled: else layers at
     * rest fall freely every other step. */
    bool kept = press->gap < 1.02 * thickness && approach < target + h * LIFT && most_did(sim, press, TOILE_TOUCH_PRESSED);
    if (approach >= target && press->time == 0 && !kept)
        return true;
    toile_coupling *c = toile_couplings_add(sim->memory, &s->couplings);
    if (!c)
        return false;
    double near = thickness / fmax(press->gap, 1e-3 * thickness);
    double stiffness = fmin(STIFFNESS * (near > 1 ? near * near : 1), STIFFNESS_MAX) / yielding;
    /* how hard will it press? What is pressed in already presses on; what comes at it is stopped once */
    double blow = (fmin(target, 0) - approach) / (1 / stiffness + yielding);
    double guess = stiffness * fmax(target, 0) + fmax(blow, 0), force = guess * (1 + owed(sim, press));
    double slip[3], still, sliding, turning = 0;
    friction_of(sim, &press->pair, &still, &sliding);
    for (int k = 0; k < 3; k++)
        slip[k] = u[k] - approach * n[k];
    double speed = sqrt(dot(slip, slip)), grip = still > 0 ? STIFFNESS / yielding : 0;
    /* Crushed cloth has forces that a step's friction cannot answer explicitly: there it is drag, and creeps. */
    bool crushed = press->gap < CRUSHED * thickness, slides = !crushed && still > 0 && speed > 0 && most_did(sim, press, TOILE_TOUCH_RUB);
    if (crushed)
        grip = fmin(grip, sliding * force / fmax(speed, 1e-12));
    else if (slides) /* no more than what broke it loose */
        force = fmin(force, (grip + 1 / yielding) * speed / fmax(sliding, 1e-12));
    memset(c, 0, sizeof *c);
    memcpy(c->normal, n, sizeof c->normal);
    c->stiffness = stiffness, c->target = target, c->grip = grip, c->friction = still;
    c->guess = guess, c->used = slides ? force : -1;
    if (slides) { /* friction turns with the slip, see contact.c */
        turning = fmin(sliding * force / speed, grip);
        for (int k = 0; k < 3; k++)
            c->direction[k] = slip[k] / speed;
    }
    const double *d = c->direction;
    double across = slides ? turning : grip;
    static const int ROW[6] = {0, 0, 0, 1, 1, 2}, COLUMN[6] = {0, 1, 2, 1, 2, 2};
    for (int k = 0; k < 6; k++)
        c->tensor[k] = (stiffness - across) * n[ROW[k]] * n[COLUMN[k]] - across * d[ROW[k]] * d[COLUMN[k]] +
                       (ROW[k] == COLUMN[k] ? across : 0);
    for (int k = 0; k < 3; k++) {
        c->push[k] = stiffness * target * n[k] - sliding * force * d[k];
        c->known[k] = u[k];
    }
    for (int i = 0; i < 4; i++) {
        bool cloth = press->pair.point[i] < s->skin.cloth_points && press->weight[i] != 0;
        c->particle[i] = cloth ? press->pair.point[i] : -1;
        c->weight[i] = cloth ? press->weight[i] : 0;
    }
    return true;
}

static void sort_couplings(toile_sim *sim) {
    const toile_pattern *p = &sim->model->pattern;
    toile_couplings_sort(&sim->self.couplings, p->n, p->chunk_begin, p->chunk_count);
}

/* Points at the step's begin, and the candidate's (or the state again) at its end. */
static void set_points(toile_sim *sim, const double *end) {
    toile_skin *skin = &sim->self.skin;
    size_t n = 4 * (size_t)skin->cloth_points;
    memcpy(skin->begin, sim->state.x, n * sizeof(double));
    memcpy(skin->end, end, n * sizeof(double));
    double begin = (sim->state.time - sim->frame_begin) / sim->frame_seconds;
    bool moves = end != sim->state.x;
    for (int i = 0; i < skin->solid_count; i++) {
        const toile_solid *solid = &sim->solids[skin->solids[i].solid];
        double *from = skin->begin + 4 * (size_t)skin->solids[i].point_begin, *to = skin->end + 4 * (size_t)skin->solids[i].point_begin;
        bool same = true;
        for (int p = 0; p < solid->vertex_count; p++)
            for (int k = 0; k < 3; k++) {
                double a = solid->from_x[3 * p + k], b = solid->to_x[3 * p + k];
                double here = a == b ? a : (1 - begin) * a + begin * b, there = a != b && moves ? solid->x[3 * p + k] : here;
                same = same && from[4 * p + k] == here && to[4 * p + k] == there;
                from[4 * p + k] = here;
                to[4 * p + k] = there;
            }
        skin->solids[i].fitted = skin->solids[i].fitted && same;
    }
}

/* Do the scene's rules let all particles of the one touch all of the other? */
static bool may_touch(const toile_sim *sim, const toile_pair *pair) {
    const toile_skin *skin = &sim->self.skin;
    int split = toile_pair_kind(pair) == TOILE_CCD_VF ? 1 : 2;
    for (int a = 0; a < split; a++)
        for (int b = split; b < 4; b++) {
            int p = pair->point[a], q = pair->point[b];
            int solid = p >= skin->cloth_points ? skin->solid_of[p] : skin->solid_of[q];
            bool may = solid < 0 ? toile_touches_cloth(&sim->rules, p, q)
                                 : toile_touches_solid(&sim->rules, p < q ? p : q, skin->solids[solid].solid);
            if (!may)
                return false;
        }
    return true;
}

/* Of the crossings that were found those that the rules forbid: the others are meant. */
static void keep_crossings(toile_sim *sim) {
    toile_skin *skin = &sim->self.skin;
    int kept = 0;
    skin->crossings[0] = skin->crossings[1] = 0;
    memset(skin->tangled, 0, (size_t)skin->point_count);
    for (int i = 0; i < skin->crossed.count; i++) {
        int a = (int)(skin->crossed.pair[i].key >> 31 & 0x7fffffff), b = (int)(skin->crossed.pair[i].key & 0x7fffffff);
        bool may = true;
        for (int c = 0; may && c < 3; c++) { /* each corner of the one against the other, as if it were near */
            const int *t = skin->triangle + 3 * b;
            toile_pair corner = {0, {skin->triangle[3 * a + c], t[0], t[1], t[2]}};
            may = may_touch(sim, &corner);
        }
        if (!may)
            continue;
        skin->crossed.pair[kept++] = skin->crossed.pair[i];
        toile_skin_mark_crossing(skin, a, b);
    }
    skin->crossed.count = kept;
}

static void search(toile_sim *sim) {
    toile_self *s = &sim->self;
    toile_error error;
    if (toile_skin_search(&s->skin, sim->model, s->reach, sim->threads, &s->found, &error) != TOILE_OK) {
        sim->trouble = error;
        s->found.count = 0;
    }
    if (!sim->rules.any_apart && !sim->rules.any_exempt)
        return;
    int kept = 0;
    for (int i = 0; i < s->found.count; i++)
        if (may_touch(sim, &s->found.pair[i]))
            s->found.pair[kept++] = s->found.pair[i];
    s->found.count = kept;
    keep_crossings(sim);
}

/* Particles that are tangled where the search was made for. Where solids hold cloth that has no side left to go to, it may be
 * inside without a triangle that says so. */
static void keep_tangles(toile_sim *sim) {
    toile_self *s = &sim->self;
    const toile_skin *skin = &s->skin;
    memcpy(s->tangled, skin->tangled, (size_t)skin->cloth_points);
    memcpy(s->crossings, skin->crossings, sizeof s->crossings);
    toile_tangle_keep(sim);
    if (!skin->crossings[1])
        return;
#pragma omp parallel for schedule(dynamic, 64) num_threads(sim->threads) if (sim->threads > 1)
    for (int p = 0; p < skin->cloth_points; p++)
        for (int i = 0; i < skin->solid_count && !(s->tangled[p] & TOILE_TANGLED_SOLID); i++) {
            const toile_solid *solid = &sim->solids[skin->solids[i].solid];
            toile_hit hit;
            if (solid->closed && toile_solid_nearest(solid, skin->end + 4 * (size_t)p, INSIDE, 0, 1, &hit) && hit.distance < 0)
                s->tangled[p] |= TOILE_TANGLED_SOLID;
        }
}

/* A pair of which both sides are tangled already: what keeps others apart would keep them together. */
static bool is_tangled(const toile_self *s, const toile_pair *pair) {
    int n = s->skin.cloth_points, split = toile_pair_kind(pair) == TOILE_CCD_VF ? 1 : 2;
    bool first = false, second = false, solid = false;
    for (int i = 0; i < 4; i++) {
        int p = pair->point[i];
        if (p >= n)
            continue;
        solid = solid || s->tangled[p] & TOILE_TANGLED_SOLID;
        if (i < split)
            first = first || s->tangled[p] & TOILE_TANGLED_CLOTH;
        else
            second = second || s->tangled[p] & TOILE_TANGLED_CLOTH;
    }
    return with_solid(s, pair) ? solid : first && second;
}

/* Of the found pairs those that are near at the end. */
static void keep_near(toile_sim *sim) {
    toile_self *s = &sim->self;
    if (s->near.capacity < s->found.count) {
        toile_pair *more = toile_grow(sim->memory, s->near.pair, 0, (size_t)s->found.capacity, sizeof *more);
        if (!more) {
            toile_fail_memory(&sim->trouble, "contacts of cloth with cloth");
            return;
        }
        s->near.pair = more;
        s->near.capacity = s->found.capacity;
    }
    s->near.count = 0;
    for (int i = 0; i < s->found.count; i++) {
        const toile_pair *pair = &s->found.pair[i];
        double x[4][3];
        toile_near near;
        if (held_off_already(s, pair))
            continue;
        toile_pair_points(s->skin.end, pair, x);
        toile_nearest(toile_pair_kind(pair), (const double(*)[3])x, &near);
        if (near.distance < 0.999 * (with_solid(s, pair) ? s->reach.solid : s->reach.cloth))
            s->near.pair[s->near.count++] = *pair;
    }
    toile_pairs_sort(&s->near);
    keep_tangles(sim);
    s->near_known = true;
}

/* A coupling for a pair that is near, if it needs one. False if memory is short. */
static bool press_near(toile_sim *sim, const toile_pair *pair, bool particles, double h) {
    toile_self *s = &sim->self;
    toile_press press = {.pair = *pair};
    double x[4][3];
    toile_near near;
    toile_pair_points(s->skin.begin, pair, x);
    toile_nearest(toile_pair_kind(pair), (const double(*)[3])x, &near);
    /* layers that lie on each other are pressed straight; where cloth is crushed every pair counts */
    double room = near.distance / thickness_of(sim, pair), slope = 0.02 + 5 * fmax(0.9 - room, 0);
    if (!(near.distance > 1e-9) || is_tangled(s, pair) || (!particles && !toile_pair_is_least(&s->skin, pair, &near, slope)))
        return true;
    press.gap = near.distance;
    for (int k = 0; k < 3; k++)
        press.normal[k] = near.vector[k] / near.distance;
    memcpy(press.weight, near.weight, sizeof press.weight);
    return press_apart(sim, &press, sim->state.v, h);
}

void toile_self_find(toile_sim *sim, double h, bool linear) {
    toile_self *s = &sim->self;
    s->couplings.count = s->couplings.row_count = 0;
    if (!s->on)
        return;
    if (!s->near_known) {
        set_points(sim, sim->state.x);
        search(sim);
        keep_near(sim);
    }
    if (!linear)
        return;
    set_points(sim, sim->state.x);
    bool ok = true, cheap = sim->settings->self_collision == TOILE_SELF_CHEAP;
    for (int i = 0; ok && i < s->near.count; i++)
        ok = press_near(sim, &s->near.pair[i], false, h);
    if (ok && cheap)
        ok = toile_voxels_search(&s->voxels, &s->skin, sim->state.x, s->voxel, &s->particles);
    for (int i = 0; ok && cheap && i < s->particles.count; i++)
        if (may_touch(sim, &s->particles.pair[i]))
            ok = press_near(sim, &s->particles.pair[i], true, h);
    if (!ok)
        toile_fail_memory(&sim->trouble, "contacts of cloth with cloth");
    sort_couplings(sim);
    sim->frame.couplings += s->couplings.count;
}

void toile_self_assemble(toile_sim *sim) {
    toile_work *w = &sim->work;
    if (sim->self.couplings.count)
        toile_couplings_assemble(&sim->self.couplings, w->matrix.diagonal, toile_solves_fast(sim->settings) ? w->fast.diagonal : NULL,
                                 w->b);
}

/* ---- hits ---- */

static void check_pair(const toile_sim *sim, const toile_pair *pair, float *time) {
    const toile_skin *skin = &sim->self.skin;
    double begin[4][3], end[4][3], t;
    toile_near near;
    toile_pair_points(skin->begin, pair, begin);
    toile_pair_points(skin->end, pair, end);
    *time = 2;
    if (is_tangled(&sim->self, pair))
        return;
    double keep = LEAST_GAP * thickness_of(sim, pair);
    if (!toile_ccd(toile_pair_kind(pair), (const double(*)[3])begin, (const double(*)[3])end, keep, 0.1 * keep, &t))
        return;
    if (t == 0) { /* nearer than that from the start: may not come much nearer */
        toile_nearest(toile_pair_kind(pair), (const double(*)[3])begin, &near);
        keep = fmin(keep, 0.5 * near.distance);
        if (!(near.distance > 1e-10) ||
            !toile_ccd(toile_pair_kind(pair), (const double(*)[3])begin, (const double(*)[3])end, keep, 0.1 * keep, &t))
            return;
    }
    *time = (float)t;
}

static int compare_hits(const void *p, const void *q) {
    uint64_t a = ((const toile_press *)p)->pair.key, b = ((const toile_press *)q)->pair.key;
    return a < b ? -1 : a > b;
}

/* Hits among the found pairs; `all` or only those with points that moved since. */
static void find_hits(toile_sim *sim, bool all) {
    toile_self *s = &sim->self;
    if (s->time_capacity < s->found.count) {
        toile_free(sim->memory, s->time);
        s->time = toile_alloc(sim->memory, (size_t)s->found.capacity, sizeof *s->time);
        s->time_capacity = s->time ? s->found.capacity : 0;
        if (!s->time) {
            toile_fail_memory(&sim->trouble, "contacts of cloth with cloth");
            s->hit_count = 0;
            return;
        }
    }
    const unsigned char *moved = s->touched;
#pragma omp parallel for schedule(dynamic, 64) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < s->found.count; i++) {
        const int *p = s->found.pair[i].point;
        if (all || moved[p[0]] || moved[p[1]] || moved[p[2]] || moved[p[3]])
            check_pair(sim, &s->found.pair[i], &s->time[i]);
    }
    int count = 0;
    for (int i = 0; i < s->found.count; i++)
        count += s->time[i] <= 1;
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
        if (s->time[i] > 1)
            continue;
        toile_press *hit = &s->hit[s->hit_count++];
        double x[4][3], t = s->time[i], y[4][3];
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

bool toile_self_missed(toile_sim *sim, double h, bool again) {
    toile_self *s = &sim->self;
    if (!s->on)
        return false;
    s->moved = false;
    set_points(sim, sim->work.next_x);
    search(sim);
    find_hits(sim, true);
    sim->frame.hits += s->hit_count;
    if (!again || !s->hit_count)
        return false;
    bool ok = true;
    for (int i = 0; ok && i < s->hit_count; i++)
        if (!held_off_already(s, &s->hit[i].pair)) {
            s->hit[i].time = fmax(s->hit[i].time, 1e-9);
            ok = press_apart(sim, &s->hit[i], sim->state.v, h);
        }
    if (!ok)
        toile_fail_memory(&sim->trouble, "contacts of cloth with cloth");
    sort_couplings(sim);
    return true;
}

void toile_self_commit(toile_sim *sim) {
    toile_self *s = &sim->self;
    if (!s->on)
        return;
    remember_sliding(sim);
    if (s->moved)
        s->near_known = false; /* the pairs were found on another way */
    else
        keep_near(sim);
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
    double goal = 0.25 * thickness_of(sim, &hit->pair), gap = 0, yielding = 0;
    goal = fmin(goal, fmax(hit->gap, 4 * LEAST_GAP * thickness_of(sim, &hit->pair)));
    for (int i = 0; i < 4; i++) {
        int p = hit->pair.point[i];
        for (int k = 0; k < 3; k++) {
            gap += n[k] * hit->weight[i] * s->skin.end[4 * (size_t)p + (size_t)k];
            yielding += hit->weight[i] * hit->weight[i] * n[k] * n[k] * yield_of(sim, p, k);
        }
    }
    if (gap >= goal || !(yielding > 0))
        return;
    double push = (goal - gap) / yielding;
    for (int i = 0; i < 4; i++) {
        int p = hit->pair.point[i];
        for (int k = 0; k < 3; k++)
            s->skin.end[4 * (size_t)p + (size_t)k] += push * hit->weight[i] * n[k] * yield_of(sim, p, k);
        s->touched[p] = 1;
    }
}

static int leader_of(int *zone, int p) {
    while (zone[p] != p)
        p = zone[p] = zone[zone[p]];
    return p;
}

/* The particles of every hit become one zone, which moves as one: with its centre of mass, or with the collider or pin it has
 * met. Within a zone nothing approaches any more. */
static void join_zones(toile_sim *sim) {
    toile_self *s = &sim->self;
    const toile_skin *skin = &s->skin;
    int n = skin->cloth_points;
    for (int i = 0; i < s->hit_count; i++) {
        const int *p = s->hit[i].pair.point;
        int first = -1;
        for (int a = 0; a < 4; a++) {
            if (p[a] >= n)
                continue;
            int leader = leader_of(s->zone, p[a]);
            s->touched[p[a]] = 2; /* in a zone */
            if (first >= 0 && leader != first)
                s->zone[leader > first ? leader : first] = leader > first ? first : leader;
            first = leader_of(s->zone, p[a]);
        }
    }
    memset(s->zone_way, 0, 4 * (size_t)n * sizeof(double));
    for (int p = 0; p < n; p++) {
        if (s->touched[p] != 2)
            continue;
        double *way = s->zone_way + 4 * (size_t)leader_of(s->zone, p), mass = sim->model->mass[p];
        if (sim->work.held[p])
            mass *= 1e6;
        way[3] += mass;
        for (size_t k = 0; k < 3; k++)
            way[k] += mass * s->way[4 * (size_t)p + k];
    }
    for (int i = 0; i < s->hit_count; i++) { /* a collider outweighs them */
        const int *p = s->hit[i].pair.point;
        int cloth = -1;
        for (int a = 0; a < 4; a++)
            cloth = p[a] < n ? leader_of(s->zone, p[a]) : cloth;
        for (int a = 0; cloth >= 0 && a < 4; a++) {
            if (p[a] < n)
                continue;
            double *way = s->zone_way + 4 * (size_t)cloth, mass = 1e4 * fabs(s->hit[i].weight[a]) + 1;
            way[3] += mass;
            for (size_t k = 0; k < 3; k++)
                way[k] += mass * (skin->end[4 * (size_t)p[a] + k] - skin->begin[4 * (size_t)p[a] + k]);
        }
    }
    for (int p = 0; p < n; p++) {
        if (s->touched[p] != 2 || sim->work.held[p])
            continue;
        const double *way = s->zone_way + 4 * (size_t)leader_of(s->zone, p);
        for (size_t k = 0; k < 3; k++)
            s->skin.end[4 * (size_t)p + k] = s->skin.begin[4 * (size_t)p + k] + way[k] / way[3];
    }
}

/* Are all hits left with solids that push the same cloth in opposite directions? Zones are those of the hits. */
static bool is_pinched(toile_sim *sim) {
    toile_self *s = &sim->self;
    int n = s->skin.cloth_points, pinched = 0;
    memset(s->zone_way, 0, 4 * (size_t)n * sizeof(double));
    for (int i = 0; i < s->hit_count; i++) {
        const toile_press *hit = &s->hit[i];
        if (!with_solid(s, &hit->pair))
            return false;
        int side = hit->pair.point[0] < n ? 1 : -1; /* the normal is from the second to the first */
        for (int a = 0; a < 4; a++) {
            int p = hit->pair.point[a];
            if (p >= n)
                continue;
            const toile_found *found = &sim->work.found[p];
            double *first = s->zone_way + 4 * (size_t)leader_of(s->zone, p);
            if (found->solid >= 0 && side * dot(found->normal, hit->normal) < 0)
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
                own = own || s->zone_way[4 * (size_t)leader_of(s->zone, s->hit[i].pair.point[a]) + 3] == 2;
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
        if (pass % 4 == 3) { /* what was pushed may have left where pairs were looked for */
            search(sim);
            find_hits(sim, true);
        } else {
            find_hits(sim, false);
        }
    }
    if (s->hit_count) {
        sim->frame.zones++;
        for (int p = 0; p < n; p++)
            s->zone[p] = p;
        for (size_t i = 0; i < 4 * (size_t)n; i++)
            s->way[i] = s->skin.end[i] - s->skin.begin[i];
        memset(s->touched, 0, (size_t)s->skin.point_count);
        for (int pass = 0; pass < ZONE_PASSES && s->hit_count; pass++) {
            join_zones(sim);
            search(sim);
            find_hits(sim, true);
        }
    }
    /* nothing may hide outside of where it was looked for */
    if (!s->hit_count) {
        search(sim);
        find_hits(sim, true);
    }
    for (size_t i = 0; i < 4 * (size_t)n; i++) {
        double change = s->skin.end[i] - w->next_x[i];
        w->next_x[i] += change;
        w->next_v[i] += change / h;
        w->solution[i] += change / h;
    }
    if (s->hit_count && small && is_pinched(sim)) {
        sim->frame.pinched += s->hit_count;
        return true;
    }
    return s->hit_count == 0;
}
