/* Cloth against colliders: constraints on single particles (Baraff-Witkin 1998 sections 5.4, 6; Boxerman 2003 3.4.2).
 *
 * A particle that comes within thickness of a surface during the step, or is inside, or was in contact and has not been
 * released, may not move along the normal other than with the surface (z), and is brought to the surface by position
 * alteration (y). Sticking fixes all three directions. What the constraint had to push is the residual of the solve:
 * if it pulled, the particle is released; if its tangential part is larger than friction allows, it slides and feels
 * kinetic friction of the normal force; when sliding stops or turns round, it grips.
 *
 * Gripping is friction that yields: the force at which sliding stopped, plus a soft drag, which is added to it after every step
 * (so a spring that is anchored where sliding stopped). Beyond the limit it slides again, well below it sticks. To stick at
 * once would be wrong: the constraint holds with any force for a step, and of a strip around a cylinder some particles always
 * just stopped; so it held 1.2 times what the capstan equation allows.
 *
 * A released particle moves with the surface for one step and is then caught again only if it approaches: so cloth that
 * is lifted off is not held by half-steps of contact.
 *
 * In a crease of a mesh (an armpit) a particle touches two faces and is held off both: it may move along the crease only. With
 * the nearest face alone it would be thrown from one to the other in every step, and a particle that is pressed there with a
 * thousand times its weight shakes a whole shirt, which then creeps. What the constraint pushed is shared out between the two
 * normals; the face that would have to pull is left alone until it is approached. */
#include "integrate.h"
#include "pin.h"
#include "sim.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

/* How far beyond thickness a surface is looked for, besides the way the particle goes in the step: what is deeper inside
 * than this is not found (m). */
#define REACH 0.05

/* Share of the speed with which a particle is taken out of a solid if a neighbour is pinched (pinch.c). At full speed, 2 m/s, edges of
 * R10b were torn to twice their length. */
#define SLOWEST 0.05

/* Drag of gripping, in masses per time_step: chosen on the strip over a cylinder; 1 and 2 did as well. */
#define GRIP 3
/* And no less than what takes the limit at this slip, m/s, or at the slip that there is: a particle that taut cloth presses on with
 * a hundred times its weight would else be drawn back by millimetres before its friction lets up, and a shirt never rests. From
 * 1e-2 to 1e-4 a shirt comes to rest; at 1e-2 and 1e-3 strips on a cylinder hold and slip as they should. */
#define GRIP_SPEED 1e-3
/* Friction below this share of its limit sticks. Nearer to it particles stick that will not hold; further off they creep. */
#define STICKS 0.8
/* How much faster than it slid friction may throw a particle back before it is held, m/s: what friction of a cloth's own weight
 * does in a step of 1/120 s. 0.02 takes a sixth more iterations on the skirt, this none. */
#define BACK 0.1

/* A particle that lay in a crease still does while it is no further than this part of its gap off the second face. */
#define CREASE_REACH 0.1

/* Share, squared, of the room around a particle in which it is sure to meet nothing, whatever rounding does. */
#define CLEAR_ENOUGH 0.99

/* Distance that particle i keeps from a collider's surface, m. */
static double gap_of(const toile_sim *sim, const toile_solid *solid, int i) {
    return solid->thickness + sim->settings->contact_thickness + sim->model->half_thickness[i];
}

/* The distance that it keeps where it hit. Over a sharp edge or corner it is that of the cloth's own edges and faces there, in
 * planes that begin where the faces' gap ends: a particle that keeps more is a knob that hooks behind a needle's tip. */
static double gap_at(const toile_sim *sim, const toile_solid *solid, int i, const toile_hit *hit) {
    return gap_of(sim, solid, i) * fmin(1, TOILE_EDGE_SHARE / fmax(hit->sharp, TOILE_EDGE_SHARE));
}

/* A surface with two sides keeps a particle on the one where it is at the step's begin. */
static void choose_side(const double *x, double h, toile_hit *hit) {
    double side = 0;
    for (int k = 0; k < 3; k++)
        side += hit->normal[k] * (x[k] - (hit->point[k] - h * hit->velocity[k]));
    if (side >= 0)
        return;
    hit->distance = -hit->distance;
    for (int k = 0; k < 3; k++)
        hit->normal[k] = -hit->normal[k];
}

/* Free particles far from a mesh need not ask it every time: where it was found outside, it stays so until it or the mesh has
 * gone that far. Takes the ways since the last question off what is clear. */
static void use_clearance(const toile_sim *sim, int i, const double *p) {
    const toile_self *self = &sim->self;
    double *asked = self->asked + 4 * (size_t)i, way[3] = {p[0] - asked[0], p[1] - asked[1], p[2] - asked[2]};
    double gone = sqrt(dot(way, way)), part = fabs(sim->frame_part - asked[3]);
    for (int s = 0; s < self->nearest_count; s++)
        self->clear[(size_t)i * (size_t)self->nearest_count + (size_t)s] -= (float)(1.0001 * (gone + part * self->solid_way[s]) + 1e-7);
    memcpy(asked, p, 3 * sizeof *asked);
    asked[3] = sim->frame_part;
}

static double least_of(double a, double b) {
    return a < b ? a : b;
}

/* How far p is from a collider at least, 0 if that is not known, after it was asked for: primitives always tell. */
static double clear_of(const toile_solid *solid, const toile_hit *hit, float clear) {
    return solid->shape == TOILE_SOLID_MESH ? clear : solid->side == TOILE_SOLID_BOTH ? 0 : hit->distance;
}

/* The collider that matters for particle i at p: the one it was in contact with unless another is nearer. `room` becomes how far
 * it is from all of them at least. */
static bool nearest_solid(const toile_sim *sim, int i, const double *p, double way, double reach, double h,
                          toile_hit *best, int *solid, int *face, double *room) {
    double least = INFINITY;
    bool touches = sim->state.touch[i].solid >= 0;
    *room = INFINITY;
    if (sim->self.nearest_count)
        use_clearance(sim, i, p);
    for (int s = 0; s < sim->solid_count; s++) {
        const toile_solid *candidate = &sim->solids[s];
        double gap = gap_of(sim, candidate, i);
        bool known = s < sim->self.nearest_count;
        int none = -1, *triangle = known ? &sim->self.nearest[(size_t)i * (size_t)sim->self.nearest_count + (size_t)s] : &none;
        float nothing = 0, *clear = known ? &sim->self.clear[(size_t)i * (size_t)sim->self.nearest_count + (size_t)s] : &nothing;
        toile_hit hit;
        if (!toile_touches_solid(&sim->rules, i, s))
            continue;
        if (!touches && *clear > gap + way) {
            *room = least_of(*room, *clear);
            continue;
        }
        *clear = 0;
        bool mesh = candidate->shape == TOILE_SOLID_MESH, near_only = !mesh && !touches && candidate->side != TOILE_SOLID_BOTH;
        double radius = near_only ? gap : gap + way + reach; /* what is free is caught within the gap; meshes also tell the clearance */
        bool found = toile_solid_nearest_from(candidate, p, radius, gap + way, h, triangle, &hit);
        if (found && mesh && candidate->side == TOILE_SOLID_OUTSIDE)
            *clear = (float)hit.distance;
        *room = least_of(*room, clear_of(candidate, &hit, *clear));
        if (!found)
            continue;
        if (candidate->side == TOILE_SOLID_BOTH)
            choose_side(sim->state.x + 4 * (size_t)i, h, &hit);
        gap = gap_at(sim, candidate, i, &hit);
        if (hit.distance - gap < least) {
            least = hit.distance - gap;
            *best = hit;
            *solid = s;
            *face = *triangle;
        }
    }
    return least < INFINITY;
}

/* How fast particle i is taken out of a solid, m/s. */
static double way_out(const toile_sim *sim, int i) {
    return sim->settings->contact_correction_speed * (toile_beside_rider(sim, i) ? SLOWEST : 1);
}

/* The way that a held particle has to go along the normal, beside the surface's, m. */
static double missing_to(const toile_sim *sim, int i, double h, const toile_hit *hit, double gap, bool kept, bool caught) {
    const toile_settings *set = sim->settings;
    const double *x = sim->state.x + 4 * (size_t)i;
    double missing = gap - h * dot(hit->velocity, hit->normal);
    for (int k = 0; k < 3; k++)
        missing += hit->normal[k] * (hit->point[k] - x[k]);
    if (missing > 0) /* inside the gap: take back a part, not faster than allowed */
        return fmin(missing * set->contact_correction, h * way_out(sim, i));
    return kept && !caught ? 0 : missing; /* resting a little off the surface: do not pull it on */
}

/* A vector of the plane of two unit normals that has these parts along them. */
static void combine(const double a[3], double along_a, const double b[3], double along_b, double out[3]) {
    double c = dot(a, b), over = 1 / (1 - c * c), of_a = (along_a - c * along_b) * over, of_b = (along_b - c * along_a) * over;
    for (int k = 0; k < 3; k++)
        out[k] = of_a * a[k] + of_b * b[k];
}

/* Holds particle i to the surface it hit: y, and friction of the normal force. */
static void hold_to_surface(const toile_sim *sim, int i, double h, const toile_hit *hit, int s, bool kept, bool caught,
                            toile_found *found) {
    const toile_settings *set = sim->settings;
    const toile_solid *solid = &sim->solids[s];
    const toile_touch *touch = &sim->state.touch[i];
    const double *v = sim->state.v + 4 * (size_t)i;
    double *y = sim->work.alter + 4 * (size_t)i, *friction = sim->work.friction + 4 * (size_t)i;
    double gap = gap_at(sim, solid, i, hit), relative[3];
    for (int k = 0; k < 3; k++)
        relative[k] = v[k] - hit->velocity[k];
    double approach = dot(relative, hit->normal);
    found->solid = s;
    memcpy(found->normal, hit->normal, sizeof found->normal);
    memcpy(found->surface, hit->velocity, sizeof found->surface);

    /* y: from where it would be if it moved with the surface, to the surface */
    double missing = missing_to(sim, i, h, hit, gap, kept, caught);
    for (int k = 0; k < 3; k++)
        y[k] = missing * hit->normal[k];

    if (sim->self.on && sim->self.tangled[i] & TOILE_TANGLED_SOLID) { /* what presses it there is no weight that friction is of */
        found->force = found->turning = 0;
        found->mode = TOILE_TOUCH_SLIDE;
        memset(found->direction, 0, sizeof found->direction);
        return;
    }

    /* friction: how hard is it pressed on, and does it stick? */
    double mass = sim->model->mass[i], slip[3], speed;
    for (int k = 0; k < 3; k++)
        slip[k] = relative[k] - approach * hit->normal[k];
    speed = sqrt(dot(slip, slip));
    if (kept) {
        found->force = touch->force;
        found->mode = touch->mode & TOILE_TOUCH_MODE;
    } else { /* the blow that stops it, spread over the step */
        found->force = approach < 0 ? -mass * approach / h : 0;
        found->mode = TOILE_TOUCH_SLIDE;
    }
    memset(found->direction, 0, sizeof found->direction);
    found->turning = 0;
    if (found->mode == TOILE_TOUCH_GRIP) { /* the drag is in the system: force_external.c */
        double away = dot(touch->direction, hit->normal); /* the surface may have turned */
        double limit = solid->friction_static * sim->model->friction[i] * found->force;
        found->turning = fmax(GRIP * mass / set->time_step, limit / fmax(speed, GRIP_SPEED));
        for (int k = 0; k < 3; k++) {
            found->direction[k] = touch->direction[k] - away * hit->normal[k];
            friction[k] = -limit * found->direction[k];
        }
    }
    if (found->mode != TOILE_TOUCH_SLIDE)
        return;
    bool still = speed * mass <= 1e-9 * h * found->force || speed == 0;
    double hold = solid->friction_kinetic * sim->model->friction[i] * found->force, stop = mass * speed / h;
    /* friction turns with the slip: d f / d v = - mu N / |slip| across it. Left explicit, it shakes slow cloth apart, for a
     * step's friction can be many times its slip. */
    found->turning = hold / fmax(speed, 0.01 * h * hold / mass + 1e-12);
    for (int k = 0; k < 3; k++) {
        found->direction[k] = !still ? slip[k] / speed : kept ? touch->direction[k] : 0;
        friction[k] = -(kept ? hold : fmin(hold, stop)) * found->direction[k];
    }
    /* A particle that strikes is not nailed to the spot: friction takes at most its slip, its neighbours may pull it on.
     * And it slips until it strikes: without that part of its way, cloth that lands on a sphere would be crowded by
     * height / radius. Either, left out, costs a dozen short steps at every landing. */
    if (!kept && missing < 0 && approach < 0)
        for (int k = 0; k < 3; k++)
            y[k] -= fmin(missing / approach, h) * h * friction[k] / mass;
}

/* A particle that is held to `first` lies in a crease: it is held off the second face too. */
static void hold_in_crease(const toile_sim *sim, int i, double h, const toile_hit *first, const toile_hit *second, bool kept,
                           bool caught, toile_found *found) {
    double *y = sim->work.alter + 4 * (size_t)i, gap = gap_at(sim, &sim->solids[found->solid], i, second);
    double missing = missing_to(sim, i, h, second, gap, kept, caught), most = h * sim->settings->contact_correction_speed;
    memcpy(found->crease, second->normal, sizeof found->crease);
    found->crease_speed = dot(second->velocity, second->normal);
    combine(first->normal, dot(y, first->normal), second->normal, missing, y);
    double way = sqrt(dot(y, y));
    for (int k = 0; way > most && k < 3; k++)
        y[k] *= most / way;
}

/* Where particle i is at the end of the step if nothing stops it. */
static void unhindered(const toile_sim *sim, int i, double h, double p[3]) {
    for (size_t k = 0; k < 3; k++)
        p[k] = sim->state.x[4 * (size_t)i + k] + h * sim->state.v[4 * (size_t)i + k];
}

static void find_contact(const toile_sim *sim, int i, double h, toile_found *found) {
    const double *v = sim->state.v + 4 * (size_t)i;
    const toile_touch *touch = &sim->state.touch[i];
    found->solid = found->face = found->other = found->left = -1;

    double p[3], relative[3], way = h * sqrt(dot(v, v));
    unhindered(sim, i, h, p);
    toile_hit hit, second;
    int s = -1, face = -1, other = -1;
    if (!nearest_solid(sim, i, p, way, REACH, h, &hit, &s, &face, &found->clear))
        return;
    double gap = gap_at(sim, &sim->solids[s], i, &hit);
    for (int k = 0; k < 3; k++)
        relative[k] = v[k] - hit.velocity[k];
    bool kept = touch->solid == s && !(touch->mode & TOILE_TOUCH_RIDE) && hit.distance < gap + REACH;
    bool caught = hit.distance < 0 || (hit.distance < gap && dot(relative, hit.normal) < 0);
    if (!kept && !caught)
        return;
    double reach = (1 + CREASE_REACH) * gap_of(sim, &sim->solids[s], i);
    bool two = false, two_kept = false, two_caught = false;
    if (hit.distance > 0 && hit.distance < reach && toile_solid_crease(&sim->solids[s], p, reach, face, hit.normal, &other, &second)) {
        int left = kept ? (touch->mode >> TOILE_TOUCH_LEFT_SHIFT) - 1 : -1;
        if (face == left && !caught) { /* what was let go is still the nearest */
            toile_hit swap = hit;
            hit = second, second = swap;
            int number = face;
            face = other, other = number;
        }
        for (int k = 0; k < 3; k++)
            relative[k] = v[k] - second.velocity[k];
        two_kept = kept && touch->mode & TOILE_TOUCH_CREASE;
        two_caught = second.distance < gap_at(sim, &sim->solids[s], i, &second) && dot(relative, second.normal) < 0;
        two = two_kept || two_caught;
        found->left = !two && other == left ? left : -1;
    }
    hold_to_surface(sim, i, h, &hit, s, kept, caught, found);
    found->face = face;
    if (two) {
        found->other = other;
        hold_in_crease(sim, i, h, &hit, &second, two_kept, two_caught, found);
    }
}

void toile_find_contacts(toile_sim *sim, double h) {
    toile_work *w = &sim->work;
    size_t n = (size_t)sim->model->particle_count;
    double begin = (sim->state.time - sim->frame_begin) / sim->frame_seconds, end = begin + h / sim->frame_seconds;
    end = end > 1 - 1e-9 ? 1 : end;
    sim->frame_part = end;
    for (int s = 0; s < sim->solid_count; s++)
        toile_solid_move(&sim->solids[s], begin, end, sim->frame_seconds);
    memset(w->alter, 0, 4 * n * sizeof(double));
    memset(w->friction, 0, 4 * n * sizeof(double));
#pragma omp parallel for schedule(dynamic, 256) num_threads(sim->threads) if (sim->threads > 1)
    for (size_t i = 0; i < n; i++)
        find_contact(sim, (int)i, h, &w->found[i]);
}

/* Has friction thrown a particle back, faster than it slid? */
static bool thrown_back(const toile_sim *sim, int i) {
    const toile_found *found = &sim->work.found[i];
    const double *v = sim->state.v + 4 * (size_t)i, *next = sim->work.next_v + 4 * (size_t)i;
    double before = 0, after = 0, unit = sqrt(dot(found->direction, found->direction));
    for (int k = 0; k < 3; k++) {
        before += (v[k] - found->surface[k]) * found->direction[k];
        after += (next[k] - found->surface[k]) * found->direction[k];
    }
    return (found->mode == TOILE_TOUCH_SLIDE || found->mode == TOILE_TOUCH_GRIP) && after < -fmax(before, 0) - unit * BACK;
}

/* What was thrown back is not held fast: a constraint takes any force, and taut cloth that was held anew in every step stretched to
 * twice its length over an armpit, by ten times what friction allows. It is dragged, in the system, with its friction at the
 * slip it was thrown with. */
static void drag_thrown(const toile_sim *sim, int i) {
    toile_found *found = &sim->work.found[i];
    const toile_solid *solid = &sim->solids[found->solid];
    const double *next = sim->work.next_v + 4 * (size_t)i;
    double slip[3], away = 0;
    for (int k = 0; k < 3; k++)
        away += (next[k] - found->surface[k]) * found->normal[k];
    for (int k = 0; k < 3; k++)
        slip[k] = next[k] - found->surface[k] - away * found->normal[k];
    double limit = solid->friction_kinetic * sim->model->friction[i] * found->force;
    found->mode = TOILE_TOUCH_GRIP;
    found->turning = limit / fmax(sqrt(dot(slip, slip)), GRIP_SPEED);
    memset(found->direction, 0, sizeof found->direction);
    memset(sim->work.friction + 4 * (size_t)i, 0, 4 * sizeof(double));
}

bool toile_hold_thrown(toile_sim *sim) {
    int thrown = 0;
    if (!sim->solid_count)
        return false;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1) reduction(+ : thrown)
    for (int i = 0; i < sim->model->particle_count; i++)
        if (sim->work.found[i].solid >= 0 && thrown_back(sim, i)) {
            drag_thrown(sim, i);
            thrown++;
        }
    return thrown > 0;
}

bool toile_find_missed(toile_sim *sim, double h) {
    toile_work *w = &sim->work;
    int missed = 0;
    if (!sim->solid_count)
        return false;
#pragma omp parallel for schedule(dynamic, 256) num_threads(sim->threads) if (sim->threads > 1) reduction(+ : missed)
    for (int i = 0; i < sim->model->particle_count; i++) {
        const double *p = w->next_x + 4 * (size_t)i, *x = sim->state.x + 4 * (size_t)i;
        double asked[3], off[3], way[3], room;
        toile_found *found = &w->found[i];
        toile_hit hit;
        int s = -1, face = -1;
        if (found->solid >= 0 || w->held[i])
            continue;
        unhindered(sim, i, h, asked);
        sub(p, asked, off);
        if (dot(off, off) < CLEAR_ENOUGH * found->clear * found->clear && found->clear > 0)
            continue; /* it cannot have come to a surface from where it was asked for */
        sub(p, x, way);
        if (!nearest_solid(sim, i, p, sqrt(dot(way, way)), 0, h, &hit, &s, &face, &room) || hit.distance >= 0)
            continue;
        hold_to_surface(sim, i, h, &hit, s, false, true, found);
        found->face = face;
        missed++;
    }
    return missed > 0;
}

void toile_set_constraints(toile_sim *sim, double h) {
    toile_work *w = &sim->work;
    toile_constraints *c = &w->constraints;
    const toile_pattern *pattern = &sim->model->pattern;
    size_t n = (size_t)sim->model->particle_count;
    memset(c->z, 0, 4 * n * sizeof(double));
    toile_hold_particles(sim, h);
    c->count = 0;
    for (int chunk = 0; chunk < pattern->chunk_count; chunk++) {
        c->chunk_begin[chunk] = c->count;
        for (int i = pattern->chunk_begin[chunk]; i < pattern->chunk_begin[chunk + 1]; i++) {
            toile_found *found = &w->found[i];
            double *S = c->filter + 12 * (size_t)c->count, *z = c->z + 4 * (size_t)i;
            if (w->held[i]) { /* a pin is stronger than a contact */
                found->solid = -1;
                memset(w->alter + 4 * (size_t)i, 0, 4 * sizeof(double));
                memset(w->friction + 4 * (size_t)i, 0, 4 * sizeof(double));
                memset(S, 0, 12 * sizeof *S);
                for (int k = 0; k < 3; k++)
                    S[5 * k] = !(w->held[i] >> k & 1);
                for (int k = 0; k < 9 && w->held[i] == TOILE_HELD_CURVE; k++)
                    S[4 * (k / 3) + k % 3] = found->direction[k / 3] * found->direction[k % 3];
            } else if (toile_found_holds(found)) {
                const double *v = sim->state.v + 4 * (size_t)i, *nrm = found->normal;
                double change[3];
                for (int k = 0; k < 3; k++)
                    change[k] = found->surface[k] - v[k];
                double along = dot(change, nrm);
                bool stick = found->mode == TOILE_TOUCH_STICK;
                memset(S, 0, 12 * sizeof *S);
                for (int k = 0; k < 3; k++) {
                    z[k] = stick ? change[k] : along * nrm[k];
                    for (int l = 0; l < 3; l++)
                        S[4 * k + l] = stick ? 0 : (k == l) - nrm[k] * nrm[l];
                }
                if (found->other >= 0 && !stick) {
                    double line[3], size;
                    cross(nrm, found->crease, line);
                    size = dot(line, line);
                    combine(nrm, along, found->crease, found->crease_speed - dot(v, found->crease), z);
                    for (int k = 0; k < 9; k++)
                        S[4 * (k / 3) + k % 3] = line[k / 3] * line[k % 3] / size;
                }
            } else {
                continue;
            }
            c->particle[c->count++] = i;
        }
    }
    c->chunk_begin[pattern->chunk_count] = c->count;
}

/* After a step in which it gripped: friction is what it was (`before`, of which found->direction is a share) and what the drag
 * took; kept as share of its limit, so that it goes with the normal force. */
static void update_grip(const toile_found *found, const double slip[3], double before, double limit, toile_touch *touch) {
    double share[3], size;
    for (int k = 0; k < 3; k++)
        share[k] = limit > 0 ? (before * found->direction[k] + found->turning * slip[k]) / limit : 0;
    size = sqrt(dot(share, share));
    touch->mode = !(limit > 0) || size > 1 ? TOILE_TOUCH_SLIDE : size < STICKS ? TOILE_TOUCH_STICK : TOILE_TOUCH_GRIP;
    for (int k = 0; k < 3; k++)
        touch->direction[k] = touch->mode == TOILE_TOUCH_STICK ? 0 : share[k] / (size > 1 ? size : 1);
}

/* Shares what pushed a particle in a crease out between its faces. Returns the face that would have to pull, -1 if none. `normal`
 * becomes that of all that presses, `force` how hard. */
static int share_push(const toile_found *found, const double push[3], double normal[3], double *force) {
    const double *a = found->normal, *b = found->crease;
    double c = dot(a, b), on_a = dot(push, a), on_b = dot(push, b), of_a = (on_a - c * on_b) / (1 - c * c), of_b = (on_b - c * on_a) / (1 - c * c);
    int left = of_a < 0 && of_a <= of_b ? found->face : of_b < 0 ? found->other : -1;
    *force = left < 0 ? of_a + of_b : left == found->face ? on_b : on_a;
    memcpy(normal, left == found->face ? b : a, 3 * sizeof *normal);
    return left;
}

void toile_update_contacts(toile_sim *sim, const double *residual, double h) {
    toile_work *w = &sim->work;
    bool grips = !toile_integrator_is_explicit(toile_integrator(sim->settings)); /* drag has to be implicit */
    if (!sim->solid_count && !sim->self.on)
        return;
    for (int i = 0; i < sim->model->particle_count; i++) {
        toile_touch *touch = &sim->state.touch[i];
        const toile_found *found = &w->found[i];
        if (found->solid < 0 || (found->mode == TOILE_TOUCH_RIDE && found->drawn)) { /* what friction between layers owes is press.c's */
            bool layers = touch->solid < 0;
            *touch = (toile_touch){
                .solid = -1, .force = layers ? touch->force : 0, .direction = {layers ? touch->direction[0] : 0}};
            continue;
        }
        if (found->mode == TOILE_TOUCH_RIDE) { /* pulled or pushed, until there is room */
            *touch = (toile_touch){.solid = found->solid, .mode = TOILE_TOUCH_RIDE};
            memcpy(touch->direction, found->normal, sizeof touch->direction);
            continue;
        }
        const toile_solid *solid = &sim->solids[found->solid];
        const double *push = residual + 4 * (size_t)i, *v = sim->state.v + 4 * (size_t)i;
        double normal = dot(push, found->normal), relative[3], tangent[3], slip[3];
        for (int k = 0; k < 3; k++)
            relative[k] = v[k] - found->surface[k];
        for (int k = 0; k < 3; k++) {
            tangent[k] = push[k] - normal * found->normal[k];
            slip[k] = relative[k] - dot(relative, found->normal) * found->normal[k];
        }
        int left = found->left;
        if (found->other >= 0) {
            double on[3], line[3];
            left = share_push(found, push, on, &normal);
            cross(found->normal, found->crease, line);
            for (int k = 0; k < 3; k++)
                tangent[k] = left < 0 ? line[k] * dot(push, line) / dot(line, line) : push[k] - normal * on[k];
        }
        if (normal < 0) { /* it would have to pull */
            *touch = (toile_touch){.solid = -1};
            continue;
        }
        touch->solid = found->solid;
        touch->force = normal / h;
        touch->mode = found->mode;
        memset(touch->direction, 0, sizeof touch->direction);
        bool tangled = sim->self.on && sim->self.tangled[i] & TOILE_TANGLED_SOLID;
        double hold = sqrt(dot(tangent, tangent)), limit = solid->friction_static * sim->model->friction[i] * normal;
        if (found->mode == TOILE_TOUCH_GRIP) {
            update_grip(found, slip, solid->friction_static * sim->model->friction[i] * found->force, limit / h, touch);
        } else if (found->mode == TOILE_TOUCH_STICK) {
            if (hold > limit) {
                touch->mode = TOILE_TOUCH_SLIDE;
                for (int k = 0; k < 3; k++)
                    touch->direction[k] = -tangent[k] / hold;
            }
        } else if (dot(slip, found->direction) <= 0 && solid->friction_kinetic > 0 && !tangled) {
            bool grip = grips && solid->friction_static > 0;
            touch->mode = grip ? TOILE_TOUCH_GRIP : TOILE_TOUCH_STICK;
            for (int k = 0; grip && k < 3; k++) /* from kinetic friction on, as share of static */
                touch->direction[k] = solid->friction_kinetic / solid->friction_static * found->direction[k];
        } else {
            memcpy(touch->direction, found->direction, sizeof touch->direction);
        }
        touch->mode |= left >= 0 ? (left + 1) << TOILE_TOUCH_LEFT_SHIFT : found->other >= 0 ? TOILE_TOUCH_CREASE : 0;
    }
}

int toile_sim_penetrations(const toile_sim *sim, double *deepest) {
    int count = 0;
    double most = 0;
#pragma omp parallel for schedule(dynamic, 256) num_threads(sim->threads) if (sim->threads > 1) reduction(+ : count) reduction(max : most)
    for (int i = 0; i < sim->model->particle_count; i++) {
        double depth = 0;
        for (int s = 0; s < sim->solid_count; s++) {
            toile_hit hit;
            const toile_solid *solid = &sim->solids[s];
            double gap = gap_of(sim, solid, i);
            if (solid->side != TOILE_SOLID_BOTH && toile_touches_solid(&sim->rules, i, s) &&
                toile_solid_nearest(solid, sim->state.x + 4 * (size_t)i, REACH, gap, 1, &hit) && -hit.distance > depth)
                depth = -hit.distance;
        }
        count += depth > 1e-7;
        most = depth > most ? depth : most;
    }
    *deepest = most;
    return count;
}
