/* A particle between two surfaces that face each other needs its distance from both, and room for the layers of cloth between
 * them. Where at the end of a step there will be less, no contact can be solved: each surface pushes the cloth into the other,
 * layers are crushed, and every step is cut in vain. Such a particle rides instead: a drag takes it along with the mean of the two
 * surfaces, stronger across the gap, and to the middle between them, so that it stays there while they pass through each other, and
 * layers keep their order. It is not in contact with solids meanwhile. When there is room again, or when it is in a mere crease out of
 * which contact.c knows the way, it is let go.
 *
 * A drag, because a constraint takes any force: the cloth of a walk with pinched armpits (R10b, of 11,376 triangles) was stretched by up
 * to 2.3 between what rode and what a surface held off beside it, 1.3 to 1.8 with drag. What is inside of a solid beside a rider is not held off
 * either, which would be against the rider, but dragged outwards slowly. And let go as a crease, because one particle that rode on in an
 * armpit that had opened kept all cloth around it from contact, until the arm was through it (18 pairs for 17 frames).
 *
 * Only what is between two surfaces while they are still apart is caught, so that the two sides of a thin solid are no pinch. */
#include "pinch.h"

#include "integrate.h"
#include "sim.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

/* Room at which cloth is caught, in parts of what it needs, and at which it is let go. */
#define CLOSES 0.75
#define OPENS 1.0
/* Only what closes faster than this pinches, m/s, or overlaps: into a narrow crease of a body that stands still cloth is drawn by its own
 * tension, and contact.c keeps it out. What rides already is let go there where the two meet at an angle (26 degrees), which leaves a way
 * out; between walls it waits for room. */
#define CLOSING 0.02
#define WEDGE -0.9
/* Layers that room is made for at most: more are crushed. */
#define LAYERS_MOST 8
/* How far a surface may be from a particle that rides, m. */
#define REACH 0.05
/* Drag along the surfaces, in masses per time_step: it holds cloth against its weight, not against its own tension, which else
 * would grow with the way that the surfaces slide over each other. */
#define DRAG 300.0
/* Across them: 3000 does as well with one start, but what it is drawn to is not the middle everywhere, and some triangles reach 2. */
#define ACROSS 1000.0
/* How fast it is drawn to the middle, 1/s, and at most, m/s. */
#define HOME 10.0
#define HOME_SPEED 0.2
/* What is drawn in beside riders is dragged outwards this fast, m/s: not at all leaves pairs after the pinch. */
#define OUT_SPEED 0.1

/* The nearest surface that looks along `way`. */
static bool nearest_facing(const toile_sim *sim, int i, double radius, const double way[3], double h, toile_hit *best, int *solid) {
    double least = radius;
    *solid = -1;
    for (int s = 0; s < sim->solid_count; s++) {
        toile_hit hit;
        if (!toile_touches_solid(&sim->rules, i, s) ||
            !toile_solid_facing(&sim->solids[s], sim->state.x + 4 * (size_t)i, least, way, h, &hit) || fabs(hit.distance) > least)
            continue;
        least = fabs(hit.distance);
        *best = hit;
        *solid = s;
    }
    return *solid >= 0;
}

/* How far particle i would be from a surface at the step's begin, m. */
static double before(const toile_sim *sim, int i, double h, const toile_hit *hit) {
    double away = 0;
    for (int k = 0; k < 3; k++)
        away += hit->normal[k] * (sim->state.x[4 * (size_t)i + (size_t)k] - hit->point[k] + h * hit->velocity[k]);
    return away;
}

/* How far the particle is beside one of the two, m. */
static double beside(const toile_sim *sim, int i, const toile_hit hit[2]) {
    double most2 = 0;
    for (int j = 0; j < 2; j++) {
        double away[3];
        for (int k = 0; k < 3; k++)
            away[k] = sim->state.x[4 * (size_t)i + (size_t)k] - hit[j].point[k];
        double along = dot(away, hit[j].normal);
        most2 = fmax(most2, dot(away, away) - along * along);
    }
    return sqrt(most2);
}

/* Is the particle between the two at the step's begin? Over the tip of a needle, whose faces look away from each other too, it is
 * more beside than before them. */
static bool is_between(const toile_sim *sim, int i, double h, double gap, const toile_hit hit[2]) {
    double above = before(sim, i, h, &hit[0]), below = before(sim, i, h, &hit[1]);
    return above > -gap && below > -gap && above + below > 0 && beside(sim, i, hit) < 0.5 * (above + below);
}

bool toile_beside_rider(const toile_sim *sim, int i) {
    const toile_skin *skin = &sim->self.skin;
    for (int a = sim->self.on ? skin->around_begin[i] : 0; sim->self.on && a < skin->around_begin[i + 1]; a++)
        for (int c = 0; c < 3; c++)
            if (sim->state.touch[skin->triangle[3 * skin->around[a] + c]].mode & TOILE_TOUCH_RIDE)
                return true;
    return false;
}

static double drag_of(const toile_sim *sim, int i, double masses) {
    return masses * sim->model->mass[i] / sim->settings->time_step;
}

/* Rides, if there is too little room. */
static bool find_ride(const toile_sim *sim, int i, double h, toile_found *found) {
    const toile_touch *touch = &sim->state.touch[i];
    bool rode = touch->mode & TOILE_TOUCH_RIDE;
    if (!rode && found->solid < 0)
        return false;
    bool known = rode || toile_beside_rider(sim, i);
    double way[3], back[3], gap = sim->settings->contact_thickness + sim->model->half_thickness[i];
    memcpy(way, rode ? touch->direction : found->normal, sizeof way);
    for (int k = 0; k < 3; k++)
        back[k] = -way[k];
    double thickness = sim->self.on && sim->settings->self_collision == TOILE_SELF_ON ? sim->self.thickness[i] : 0;
    double most = 2 * gap + (LAYERS_MOST - 1) * thickness, far = most;
    for (int s = 0; s < sim->self.nearest_count; s++)
        far = fmax(far, most + 2 * h / sim->frame_seconds * sim->self.solid_way[s]);
    toile_hit hit[2];
    int solid[2];
    if (!nearest_facing(sim, i, known ? REACH : far, back, h, &hit[1], &solid[1]) ||
        !nearest_facing(sim, i, known ? REACH : far, way, h, &hit[0], &solid[0]))
        return false;
    double facing = dot(hit[0].normal, hit[1].normal), room = 0, opening = 0, normal[3];
    if (facing > 0)
        return false;
    sub(hit[0].normal, hit[1].normal, normal);
    double length = sqrt(dot(normal, normal));
    for (int k = 0; k < 3; k++) {
        normal[k] /= length;
        room += normal[k] * (hit[1].point[k] - hit[0].point[k]);
        opening += normal[k] * (hit[1].velocity[k] - hit[0].velocity[k]);
    }
    if (room > 0 && opening > -CLOSING && (!rode || facing > WEDGE))
        return false;
    gap += fmax(sim->solids[solid[0]].thickness, sim->solids[solid[1]].thickness);
    bool followed = known && room < 0 && beside(sim, i, hit) < gap - room;
    if (!rode && !followed && !is_between(sim, i, h, gap, hit))
        return false;
    double part = rode ? OPENS : CLOSES;
    if (room > part * most)
        return false;
    int layers = room > part * 2 * gap && thickness > 0 ? 1 + toile_skin_layers(&sim->self.skin, sim->state.x, hit[0].point, hit[1].point, i) : 1;
    if (room > part * (2 * gap + (layers - 1) * thickness))
        return false;
    bool explicit = toile_integrator_is_explicit(toile_integrator(sim->settings));
    *found = (toile_found){.solid = solid[0], .mode = TOILE_TOUCH_RIDE, .face = -1, .other = -1, .left = -1};
    found->turning = drag_of(sim, i, DRAG);
    found->across = explicit ? 0 : drag_of(sim, i, ACROSS);
    double off = 0;
    for (int k = 0; k < 3; k++) {
        double speed = 0.5 * (hit[0].velocity[k] + hit[1].velocity[k]), middle = 0.5 * (hit[0].point[k] + hit[1].point[k]);
        found->normal[k] = normal[k];
        found->surface[k] = speed;
        off += normal[k] * (middle - sim->state.x[4 * (size_t)i + (size_t)k] - h * speed);
    }
    double home = fmax(-HOME_SPEED, fmin(HOME_SPEED, HOME * off));
    for (int k = 0; k < 3; k++)
        found->surface[k] += home * normal[k];
    return true;
}

/* Is dragged, if it is inside of a solid beside what rides. */
static bool is_drawn(const toile_sim *sim, int i, toile_found *found) {
    if (found->solid < 0 || !sim->self.on || !(sim->self.tangled[i] & TOILE_TANGLED_SOLID) || !toile_beside_rider(sim, i) ||
        toile_integrator_is_explicit(toile_integrator(sim->settings)))
        return false;
    for (int k = 0; k < 3; k++)
        found->surface[k] += OUT_SPEED * found->normal[k];
    found->mode = TOILE_TOUCH_RIDE;
    found->drawn = true;
    found->face = found->other = found->left = -1;
    found->turning = found->across = drag_of(sim, i, DRAG);
    return true;
}

bool toile_is_caught(const toile_sim *sim, int i) {
    return toile_rides(sim, i) || (sim->work.riders && sim->self.on && sim->self.tangled[i] & TOILE_TANGLED_SOLID);
}

void toile_pinch_find(toile_sim *sim, double h) {
    toile_work *w = &sim->work;
    int riders = 0;
    if (!sim->solid_count)
        return;
#pragma omp parallel for schedule(dynamic, 64) num_threads(sim->threads) if (sim->threads > 1) reduction(+ : riders)
    for (int i = 0; i < sim->model->particle_count; i++) {
        bool rides = find_ride(sim, i, h, &w->found[i]);
        if (!rides && !is_drawn(sim, i, &w->found[i]))
            continue;
        riders += rides;
        memset(w->alter + 4 * (size_t)i, 0, 4 * sizeof(double));
        memset(w->friction + 4 * (size_t)i, 0, 4 * sizeof(double));
    }
    w->riders = riders;
    sim->frame.riders = riders > sim->frame.riders ? riders : sim->frame.riders;
}
