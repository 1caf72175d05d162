#include "press.h"

#include "sim.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

/* Couplings resist approach with so many times the mass they stop: a layer sinks in by g h^2 / (60 RETURN) under the weight of
 * one like it. As the gap closes they grow stiffer (stiffening), up to the second number in a step of full length. In a shorter one
 * that would be ever more newtons per metre, when inertia alone gives more already: walls that crush cloth would press it with tons. */
#define STIFFNESS 60.0
#define STIFFNESS_MAX 200000.0
/* A contact that lasts is taken for one while it parts no faster than what this acceleration makes in a step, m/s^2. */
#define LIFT 20.0
/* Between two solves of a step a contact of crumpled layers is kept while it parts no faster than what this acceleration makes, m/s^2. With
 * 20 a shirt's shoulder (R10a) is as calm, but layers that land hold each other more (R1: 1.15 at most, and 1.11). */
#define PARTS 5.0
/* Friction is made from a guess of the normal force; what the guess was wrong by is owed to the next step, up to this share of
 * the guess. Chosen on slopes: at 0 they slide half as far as they should, at 0.7 springs creep 2 mm, at 1 sheets do. */
#define OWED_MOST 0.5
/* What would need so many times the friction there is to stop it slides, also if it did not before. */
#define SURE 3.0
/* Share of what is missing to thickness that is given back in a step of full length, and how fast at most, m/s. A shorter step
 * gives back as much in the same time, not in the same number of steps: else a crushed rope bursts wherever a step is cut. */
#define RETURN 0.2
#define RETURN_SPEED 0.5

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

/* A fabric's factor on one side of a contact: points [begin, end) of its pair. */
static double fabric_friction(const toile_sim *sim, const toile_press *press, int begin, int end) {
    double factor = 0;
    for (int i = begin; i < end; i++)
        factor += fabs(press->weight[i]) * sim->model->friction[press->pair.point[i]];
    return factor;
}

/* Against a collider its own times the fabric's, as on its faces (contact.c); between layers the setting times the geometric mean
 * of both fabrics': two layers of one fabric have its factor, and which lies on which makes no difference. */
static void friction_of(const toile_sim *sim, const toile_press *press, double *still, double *sliding) {
    const toile_skin *skin = &sim->self.skin;
    int split = toile_pair_kind(&press->pair) == TOILE_CCD_VF ? 1 : 2;
    int first = skin->solid_of[press->pair.point[0]], second = skin->solid_of[press->pair.point[3]];
    double mine = first < 0 ? fabric_friction(sim, press, 0, split) : 1, its = second < 0 ? fabric_friction(sim, press, split, 4) : 1;
    *still = *sliding = sim->settings->self_friction * sqrt(mine * its);
    if (first >= 0 || second >= 0) {
        const toile_solid *solid = &sim->solids[skin->solids[first >= 0 ? first : second].solid];
        *still = solid->friction_static * mine * its;
        *sliding = solid->friction_kinetic * mine * its;
    }
}

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

/* Of the two sides of a contact after a solve, dv (n x 4), m/s. */
static void relative_velocity(const toile_coupling *item, const double *dv, double u[3]) {
    memcpy(u, item->known, 3 * sizeof *u);
    for (int a = 0; a < 4; a++)
        for (int k = 0; item->particle[a] >= 0 && k < 3; k++)
            u[k] += item->weight[a] * dv[4 * (size_t)item->particle[a] + (size_t)k];
}

/* What strikes is found by many pairs. Pressed by all of them, some have to pull: they would hold the cloth where it is, or throw it.
 * But what is within its thickness already and hardly parts is hit in the next solve if it is let go: crumpled cloth on a shoulder (R10a,
 * frames 78 to 83) had more hits after each solve, which impulses then undid by stretching it, in every step anew. If what
 * touches solids is kept too, a ball that strikes a sheet stretches it more (5.2 % in the median of five starts, 4.6). */
void toile_press_release(toile_sim *sim, double h) {
    toile_couplings *c = &sim->self.couplings;
    int kept = 0;
    for (int i = 0; i < c->count; i++) {
        double u[3], lift = c->item[i].layers ? h * PARTS : 0;
        relative_velocity(&c->item[i], sim->work.solution, u);
        if (dot(u, c->item[i].normal) <= c->item[i].target + lift)
            c->item[kept++] = c->item[i];
    }
    c->count = kept;
}

/* After the step: which contacts slide, which press? A particle goes with the contacts that press it most. */
void toile_press_remember(toile_sim *sim) {
    toile_self *s = &sim->self;
    const toile_couplings *c = &s->couplings;
    double *votes = s->votes, *pressed = votes + sim->model->particle_count, *guessed = pressed + sim->model->particle_count,
           *owing = guessed + sim->model->particle_count;
    for (int r = 0; r < c->row_count; r++)
        votes[c->row[r]] = pressed[c->row[r]] = guessed[c->row[r]] = owing[c->row[r]] = 0;
    for (int i = 0; i < c->count; i++) {
        const toile_coupling *item = &c->item[i];
        double u[3], slip[3];
        relative_velocity(item, sim->state.dv, u);
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

/* Factor on the stiffness as the gap closes; near = thickness / gap. The tension of twisted cloth presses with some thousand times
 * its weight: with the square layers are pressed to a twentieth of their thickness, where every step is a hit and every hit a
 * pass. From KNEE on it grows with the 8th power, which holds them at a third, and most steps have no hit. With the 8th power from the
 * start what merely strikes is thrown back: a sheet hit by a ball stretched by 9 % (4.5), and layers on a body rested less. KNEE was
 * chosen on that sheet and on small twisted tubes. */
#define KNEE 1.5
static double stiffening(double near, double *power) {
    double near2 = near * near, over = near / KNEE, over2 = over * over;
    *power = near > 1 ? over > 1 ? 8 : 2 : 0;
    return near > 1 ? near2 * (over > 1 ? over2 * over2 * over2 : 1) : 1;
}

/* Keeps the pair of a contact from coming nearer than thickness within the step; v are the velocities it is linear about. */
bool toile_press_apart(toile_sim *sim, const toile_press *press, const double *v, double h) {
    toile_self *s = &sim->self;
    const toile_model *m = sim->model;
    const double *n = press->normal;
    double thickness = toile_pair_thickness(sim, &press->pair), yielding = 0, u[3] = {0, 0, 0};
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
        target = fmin(RETURN * missing / fmax(h, sim->settings->time_step), RETURN_SPEED);
    /* What stays out of itself is left alone. But what was pressed on is held until it would have to be pulled: else layers at
     * rest fall freely every other step. */
    bool kept = press->gap < 1.02 * thickness && approach < target + h * LIFT && most_did(sim, press, TOILE_TOUCH_PRESSED);
    if (approach >= target && press->time == 0 && !kept)
        return true;
    toile_coupling *c = toile_couplings_add(sim->memory, &s->couplings);
    if (!c)
        return false;
    memset(c, 0, sizeof *c);
    double near = thickness / fmax(press->gap, 1e-3 * thickness), part = fmin(h / sim->settings->time_step, 1);
    double power, most = fmax(STIFFNESS, STIFFNESS_MAX * part * part), stiffness = fmin(STIFFNESS * stiffening(near, &power), most) / yielding;
    /* What is pressed together presses with S(gap) x target(gap). Where that falls off with the gap faster than by S, the step has to
     * know: else what is crushed in one step bursts in the next, is crushed again in the one after, and every other step is cut. */
    double pressed = stiffness * target, falls = missing > 0 ? pressed * h * (power / fmax(press->gap, 1e-3 * thickness) + 1 / missing) : 0;
    if (falls > stiffness)
        stiffness = falls, target = pressed / falls;
    /* how hard will it press? What is pressed in already presses on; what comes at it is stopped once */
    double blow = (fmin(target, 0) - approach) / (1 / stiffness + yielding);
    double guess = stiffness * fmax(target, 0) + fmax(blow, 0), force = guess * (1 + owed(sim, press));
    double slip[3], still, sliding, turning = 0;
    friction_of(sim, press, &still, &sliding);
    for (int k = 0; k < 3; k++)
        slip[k] = u[k] - approach * n[k];
    double speed = sqrt(dot(slip, slip)), grip = still > 0 ? STIFFNESS / yielding : 0;
    /* Crushed cloth has forces that a step's friction cannot answer explicitly: there it is drag, and creeps. */
    bool crushed = press->gap < TOILE_CRUSHED * thickness, slips = still * force * SURE < speed / yielding;
    bool slides = !crushed && still > 0 && speed > 0 && (slips || most_did(sim, press, TOILE_TOUCH_RUB));
    if (crushed)
        grip = fmin(grip, sliding * force / fmax(speed, 1e-12));
    else if (slides) /* no more than what broke it loose */
        force = fmin(force, (grip + 1 / yielding) * speed / fmax(sliding, 1e-12));
    memcpy(c->normal, n, sizeof c->normal);
    c->stiffness = stiffness, c->target = target, c->grip = grip, c->friction = still;
    c->guess = guess, c->used = slides ? force : -1;
    c->layers = missing > 0 && !toile_pair_with_solid(s, &press->pair);
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

void toile_press_sort(toile_sim *sim) {
    const toile_pattern *p = &sim->model->pattern;
    toile_couplings_sort(&sim->self.couplings, p->n, p->chunk_begin, p->chunk_count);
}

bool toile_pair_caught(const toile_sim *sim, const toile_pair *pair) {
    for (int i = 0; i < 4; i++)
        if (pair->point[i] >= sim->self.skin.cloth_points || !toile_is_caught(sim, pair->point[i]))
            return false;
    return true;
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
    double room = near.distance / toile_pair_thickness(sim, pair), slope = 0.02 + 5 * fmax(0.9 - room, 0);
    if (!(near.distance > 1e-9) || toile_pair_tangled(sim, pair) || toile_pair_caught(sim, pair) || (!particles && !toile_pair_is_least(&s->skin, pair, &near, slope)))
        return true;
    press.gap = near.distance;
    for (int k = 0; k < 3; k++)
        press.normal[k] = near.vector[k] / near.distance;
    memcpy(press.weight, near.weight, sizeof press.weight);
    return toile_press_apart(sim, &press, sim->state.v, h);
}

void toile_self_find(toile_sim *sim, double h, bool linear) {
    toile_self *s = &sim->self;
    s->couplings.count = s->couplings.row_count = 0;
    if (!s->on || !linear)
        return;
    toile_self_set_points(sim, sim->state.x);
    bool ok = true, cheap = sim->settings->self_collision == TOILE_SELF_CHEAP;
    for (int i = 0; ok && i < s->near.count; i++)
        ok = press_near(sim, &s->near.pair[i], false, h);
    if (ok && cheap)
        ok = toile_voxels_search(&s->voxels, &s->skin, sim->state.x, s->voxel, &s->particles);
    for (int i = 0; ok && cheap && i < s->particles.count; i++)
        if (toile_pair_may_touch(sim, &s->particles.pair[i]))
            ok = press_near(sim, &s->particles.pair[i], true, h);
    if (!ok)
        toile_fail_memory(&sim->trouble, "contacts of cloth with cloth");
    toile_press_sort(sim);
    sim->frame.couplings += s->couplings.count;
}

void toile_self_assemble(toile_sim *sim) {
    toile_work *w = &sim->work;
    bool fast = toile_solves_fast(sim->settings);
    if (sim->self.couplings.count)
        toile_couplings_assemble(&sim->self.couplings, w->matrix.diagonal, fast ? w->fast.diagonal : NULL, fast ? w->fast.inertia : NULL,
                                 w->b);
}
