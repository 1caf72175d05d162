/* Where an edge with direction e passes through a triangle with normal n, the line in which the edge's own triangle cuts the
 * other begins there and runs on along r. Moving the edge along r - 2 (e . r) / (e . n) n, and the triangle against it, makes
 * that line shorter (Volino and Magnenat-Thalmann, "Resolving surface collisions through intersection contour minimization",
 * 2006, section 3). Summed over all edges the contours shrink until they vanish; which side is the right one need not be known.
 * Where it is, because the two are garments of different layers, they are pulled to their sides instead, the upper one away from the
 * body: else a shirt that starts with most of it outside of its jacket would end over it.
 *
 * Against a solid that has an outside the right side is known too, and taut cloth presses a ridge of it through with far more than any
 * pull that does no harm: where no particle is inside, crossings stayed for good. There the two are pressed apart in the system, as
 * other contacts are (press.h), outwards from the solid's face; but not beside what rides with it (pinch.h), which has to stay.
 *
 * The pull is a force that brings a particle to a speed and not beyond, so that it cannot explode; particles inside a
 * solid are brought out by contact.c besides. */
#include "tangle.h"

#include "press.h"
#include "sim.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

/* Speed at which a crossing is pulled out, m/s, and the largest acceleration for it, m/s^2: it has to lift cloth that lies on
 * itself, no more. */
#define SPEED 0.5
#define ACCELERATION 100.0

void toile_tangle_free(toile_sim *sim) {
    toile_free(sim->memory, sim->tangle.crossing.pair);
    toile_free(sim->memory, sim->tangle.pull);
    memset(&sim->tangle, 0, sizeof sim->tangle);
}

void toile_tangle_keep(toile_sim *sim) {
    toile_tangle *t = &sim->tangle;
    const toile_pairs *crossed = &sim->self.skin.crossed;
    t->crossing.count = 0;
    if (crossed->count == 0)
        return;
    if (t->crossing.capacity < crossed->count) {
        toile_pair *more = toile_grow(sim->memory, t->crossing.pair, 0, (size_t)crossed->capacity, sizeof *more);
        if (!more) {
            toile_fail_memory(&sim->trouble, "cloth that crosses itself");
            return;
        }
        t->crossing.pair = more;
        t->crossing.capacity = crossed->capacity;
    }
    memcpy(t->crossing.pair, crossed->pair, (size_t)crossed->count * sizeof *crossed->pair);
    t->crossing.count = crossed->count;
    toile_pairs_sort(&t->crossing); /* the order of sums */
}

static double normalise(double *a) {
    double length = sqrt(dot(a, a));
    for (int k = 0; k < 3 && length > 0; k++)
        a[k] /= length;
    return length;
}

static bool normal_of(const double *const t[3], double n[3]) {
    double ab[3], ac[3];
    sub(t[1], t[0], ab), sub(t[2], t[0], ac);
    cross(ab, ac, n);
    return normalise(n) > 1e-300;
}

/* Weights of the point where the line through p and q passes through a triangle; false if it passes outside. */
static bool passes(const double *p, const double *q, const double *const t[3], const double n[3], double *share, double weight[3]) {
    double at[3], pt[3], qt[3], area[3], sum = 0;
    sub(p, t[0], pt), sub(q, t[0], qt);
    double from = dot(pt, n), to = dot(qt, n);
    if (!(from * to < 0))
        return false;
    *share = from / (from - to);
    for (int k = 0; k < 3; k++)
        at[k] = p[k] + *share * (q[k] - p[k]);
    for (int i = 0; i < 3; i++) {
        double a[3], b[3], c[3];
        sub(t[(i + 1) % 3], at, a), sub(t[(i + 2) % 3], at, b);
        cross(a, b, c);
        area[i] = dot(c, n);
        if (area[i] < 0)
            return false;
        sum += area[i];
    }
    for (int i = 0; i < 3; i++)
        weight[i] = sum > 0 ? area[i] / sum : 1.0 / 3;
    return true;
}

static void add_pull(toile_sim *sim, int point, double weight, const double *way) {
    if (point >= sim->model->particle_count)
        return; /* a solid's */
    double *pull = sim->tangle.pull + 4 * (size_t)point;
    for (int k = 0; k < 3; k++)
        pull[k] += weight * way[k];
    pull[3] += fabs(weight);
}

/* How far a solid can be for garments to lie over each other on it, m. */
#define BODY_REACH 0.5

/* Which way is up from a point of cloth: away from the nearest solid, or, where there is none, where the faces of the upper
 * garment look. */
static void outward_at(const toile_sim *sim, const double *at, const double *normal, double out[3]) {
    double near = BODY_REACH;
    memcpy(out, normal, 3 * sizeof *out);
    for (int i = 0; i < sim->solid_count; i++) {
        toile_hit hit;
        if (!toile_solid_nearest(&sim->solids[i], at, near, near, 1, &hit) || hit.distance >= near)
            continue;
        near = fmax(hit.distance, 0); /* inside of one there is no nearer one */
        memcpy(out, hit.normal, sizeof hit.normal);
    }
}

/* Which of two triangles is of the upper garment: 1 the first, -1 the second, 0 neither. */
static int upper_of(const toile_sim *sim, int p, int q) {
    const toile_contact_rules *rules = &sim->rules;
    if (!rules->any_layers || p >= sim->model->particle_count || q >= sim->model->particle_count)
        return 0;
    int a = rules->layer[rules->garment[p]], b = rules->layer[rules->garment[q]];
    return (a > b) - (a < b);
}

/* A triangle of the cloth that rides with solids crosses one of these: that is meant. */
static bool rides_with_solid(const toile_sim *sim, const int *cloth, const int *solid) {
    int n = sim->model->particle_count;
    return solid[0] >= n && cloth[0] < n && (toile_rides(sim, cloth[0]) || toile_rides(sim, cloth[1]) || toile_rides(sim, cloth[2]));
}

/* How deep cloth counts as pressed through, in its edges: decides how fast it comes out. Judged on the shirt with pinched armpits (R10b)
 * alone. */
#define THROUGH 0.5

/* Is the outside of a triangle's solid known? */
static bool has_outside(const toile_sim *sim, const int *triangle) {
    const toile_skin *skin = &sim->self.skin;
    if (triangle[0] < skin->cloth_points)
        return false;
    const toile_solid *solid = &sim->solids[skin->solids[skin->solid_of[triangle[0]]].solid];
    return solid->closed && solid->side == TOILE_SOLID_OUTSIDE;
}

/* Presses cloth outwards where an edge passes through a triangle, one of which is a solid's; `outward` is the normal of its face.
 * Of its points only the heaviest count: they say how it moves. */
static void press_out(toile_sim *sim, const int edge[2], double share, const int *triangle, const double weight[3],
                      const double outward[3], double h) {
    const toile_skin *skin = &sim->self.skin;
    bool cloth_edge = edge[0] < skin->cloth_points;
    double along[2] = {1 - share, share}, turn = cloth_edge ? 1 : -1;
    toile_press press = {.gap = -THROUGH * skin->mean_edge[cloth_edge ? edge[0] : triangle[0]]};
    if (cloth_edge) {
        int light = weight[0] < weight[1] ? (weight[0] < weight[2] ? 0 : 2) : weight[1] < weight[2] ? 1 : 2;
        int p = (light + 1) % 3, q = (light + 2) % 3;
        double sum = weight[p] + weight[q];
        press.pair = (toile_pair){.key = (uint64_t)1 << 62, .point = {edge[0], edge[1], triangle[p], triangle[q]}};
        memcpy(press.weight, (double[]){along[0], along[1], -weight[p] / sum, -weight[q] / sum}, sizeof press.weight);
    } else {
        press.pair = (toile_pair){.key = 0, .point = {edge[share > 0.5], triangle[0], triangle[1], triangle[2]}};
        memcpy(press.weight, (double[]){1, -weight[0], -weight[1], -weight[2]}, sizeof press.weight);
    }
    for (int k = 0; k < 3; k++)
        press.normal[k] = turn * outward[k];
    if (!toile_press_apart(sim, &press, sim->state.v, h))
        toile_fail_memory(&sim->trouble, "cloth that crosses a solid");
}

/* Is any corner of a triangle beside cloth that rides? */
static bool beside_rider(const toile_sim *sim, const int *triangle) {
    return toile_beside_rider(sim, triangle[0]) || toile_beside_rider(sim, triangle[1]) || toile_beside_rider(sim, triangle[2]);
}

/* Edges of triangle a that pass through triangle b. */
static void add_edges(toile_sim *sim, int a, int b, double h, bool linear) {
    const toile_skin *skin = &sim->self.skin;
    const int *mine = skin->triangle + 3 * a, *its = skin->triangle + 3 * b;
    const double *s[3], *t[3];
    double n_a[3], n_b[3], weight[3], share;
    for (int i = 0; i < 3; i++) {
        s[i] = skin->begin + 4 * (size_t)mine[i];
        t[i] = skin->begin + 4 * (size_t)its[i];
    }
    if (!normal_of(s, n_a) || !normal_of(t, n_b))
        return;
    int upper = upper_of(sim, mine[0], its[0]);
    if (rides_with_solid(sim, mine, its) || rides_with_solid(sim, its, mine))
        return;
    const int *cloth = mine[0] < skin->cloth_points ? mine : its;
    bool out = linear && (has_outside(sim, mine) || has_outside(sim, its)) && !beside_rider(sim, cloth);
    for (int i = 0; i < 3; i++) {
        int j = (i + 1) % 3;
        if (!passes(s[i], s[j], t, n_b, &share, weight))
            continue;
        if (out) {
            press_out(sim, (int[]){mine[i], mine[j]}, share, its, weight, cloth == mine ? n_b : n_a, h);
            continue;
        }
        double e[3], inward[3], r[3], way[3];
        sub(s[j], s[i], e), sub(s[(i + 2) % 3], s[i], inward);
        normalise(e);
        cross(n_a, n_b, r);
        if (!(normalise(r) > 1e-9))
            continue; /* in one plane: no line */
        double along = dot(inward, e), into = 0;
        for (int k = 0; k < 3; k++)
            into += r[k] * (inward[k] - along * e[k]);
        double side = into < 0 ? -1 : 1, steep = dot(e, n_b), flat = side * dot(e, r);
        steep = copysign(fmax(fabs(steep), 0.05), steep); /* an edge that only grazes would be pulled to infinity */
        for (int k = 0; k < 3; k++)
            way[k] = side * r[k] - 2 * flat / steep * n_b[k];
        if (upper) {
            outward_at(sim, s[i], upper > 0 ? n_a : n_b, way);
            for (int k = 0; k < 3; k++)
                way[k] *= upper;
        }
        /* long where the contour bends sharply, next to nothing where it runs straight on: then only the sum counts */
        add_pull(sim, mine[i], 1 - share, way);
        add_pull(sim, mine[j], share, way);
        for (int k = 0; k < 3; k++)
            add_pull(sim, its[k], -weight[k], way);
    }
}

void toile_tangle_pull(toile_sim *sim, double h, bool linear) {
    toile_tangle *t = &sim->tangle;
    size_t n = (size_t)sim->model->particle_count;
    if (!sim->self.on || t->crossing.count == 0)
        return;
    if (!t->pull && !(t->pull = toile_alloc(sim->memory, 4 * n, sizeof *t->pull))) {
        toile_fail_memory(&sim->trouble, "cloth that crosses itself");
        return;
    }
    memset(t->pull, 0, 4 * n * sizeof *t->pull);
    for (int i = 0; i < t->crossing.count; i++) {
        int a = (int)(t->crossing.pair[i].key >> 31 & 0x7fffffff), b = (int)(t->crossing.pair[i].key & 0x7fffffff);
        add_edges(sim, a, b, h, linear);
        add_edges(sim, b, a, h, linear);
    }
    if (linear)
        toile_press_sort(sim);
    for (size_t i = 0; i < n; i++) {
        double *pull = t->pull + 4 * i;
        const double *v = sim->state.v + 4 * i;
        double strength = normalise(pull) / fmax(pull[3], 1e-300);
        if (!(strength > 0.01))
            continue;
        /* up to the speed, half of it where the sum is as long as a single unit */
        double missing = SPEED * strength / (1 + strength) * 2 - dot(v, pull);
        double force = sim->model->mass[i] * fmin(fmax(missing, 0) / h, ACCELERATION);
        for (int k = 0; k < 3; k++)
            sim->work.friction[4 * i + (size_t)k] += force * pull[k];
    }
}
