/* Forces of ties: stitches being sewn, and elastic.
 *
 * A stitch is a spring that only pulls. Its rest length falls from that of the start to nothing while the seam is sewn:
 * with k = strength x length of seam / slack the pull is bounded by the strength, and damped against the speed at which the
 * schedule closes it, not against rest, so that sewing is neither held back nor overshoots. In the matrix stand the
 * derivatives along the stitch and, because it is taut, across it (Choi-Ko 2002 eq. 3 as for any spring): a stitch may be of
 * no length and stays stiff in all directions. Whoever has not met his partner when the time is up is pulled harder and
 * harder, for cloth around a body may be tight.
 *
 * Both ends get the same force with opposite signs: momentum is kept. */
#include "sew.h"

#include "integrate.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

/* How much harder a stitch pulls that is late, per duration of its seam or quarter second, and at most. */
#define LATE_GROWTH 9.0
#define LATE_SECONDS 0.25
#define LATE_MOST 100.0

/* What a seam asks of its stitches at a time. */
typedef struct schedule {
    bool on;
    double left;   /* rest length relative to the start's, 1 to 0 */
    double rate;   /* of it, 1/s, <= 0 */
    double force;  /* relative to the strength */
} schedule;

static schedule at_time(const toile_seam *seam, double time, double start, bool may_grow) {
    double since = time - start - seam->begin;
    schedule s = {.on = since >= 0 && time < seam->release, .left = 1, .force = 1};
    if (!s.on)
        return s;
    if (since < seam->duration) {
        s.left = 1 - since / seam->duration;
        s.rate = -1 / seam->duration;
    } else {
        s.left = 0;
        double late = (since - seam->duration) / fmax(seam->duration, LATE_SECONDS);
        s.force = may_grow ? fmin(1 + LATE_GROWTH * late, LATE_MOST) : 1;
    }
    return s;
}

const toile_seam *toile_sim_seam(const toile_sim *sim, int seam) {
    int g = 0;
    while (seam >= sim->garments[g].seam_count)
        seam -= sim->garments[g++].seam_count;
    return &sim->garments[g].seams[seam];
}

/* Record of one tie. `along` and `across` are derivatives, see force_spring.c. */
static void evaluate(const toile_springs *s, int e, const schedule *plan, const double *x, const double *v, const double *d,
                     double h, double *record) {
    size_t i = 4 * (size_t)s->vertex[0][e], j = 4 * (size_t)s->vertex[1][e];
    double u[3], dv[3], dd[3];
    sub(x + j, x + i, u);
    sub(v + j, v + i, dv);
    sub(d + j, d + i, dd);
    memset(record, 0, TOILE_SPRING_RECORD * sizeof *record);
    double length = sqrt(dot(u, u));
    for (int k = 0; k < 3; k++)
        u[k] = length > 1e-12 ? u[k] / length : 0;
    double rest = s->length[e] * plan->left, stiffness = s->stiffness[e] * plan->force, ahead = dot(u, dd);
    if (!plan->on || fmax(length, length + ahead) < rest)
        return;
    /* the most it pulls: a stitch by its strength, elastic without bound */
    double most = s->tie_seam[e - s->tie_begin] < 0 ? INFINITY : stiffness * TOILE_SEWING_SLACK;
    double excess = length - rest, slope = stiffness * excess < most ? stiffness : 0;
    double force = fmin(stiffness * excess, most), viscosity = stiffness * s->damping[e];
    double across = length > 1e-12 ? fmax(force, 0) / length : slope;
    if (h > 0) /* never stiffer across than along: the fast product has no negative `along` (matrix.c) */
        across = fmin(across, slope + viscosity / h);
    double pull = force + viscosity * (dot(u, dv) - s->length[e] * plan->rate) + (slope - across) * ahead;
    for (int k = 0; k < 3; k++) {
        record[k] = u[k];
        record[5 + k] = pull * u[k] + across * dd[k];
    }
    record[3] = h * (h * slope + viscosity) - h * h * across;
    record[4] = h * h * across;
}

void toile_evaluate_ties(toile_sim *sim, const double *x, const double *v, const double *d, double h) {
    const toile_springs *s = &sim->model->springs;
    bool may_grow = !toile_integrator_is_explicit(toile_integrator(sim->settings));
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1 && s->tie_count > 256)
    for (int k = 0; k < s->tie_count; k++) {
        schedule plan = {.on = true, .left = 1, .force = 1};
        if (s->tie_seam[k] >= 0)
            plan = at_time(toile_sim_seam(sim, s->tie_seam[k]), sim->state.time, sim->begin_time, may_grow);
        int e = s->tie_begin + k;
        evaluate(s, e, &plan, x, v, d, h, sim->work.spring + (size_t)e * TOILE_SPRING_RECORD);
    }
}
