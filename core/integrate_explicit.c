/* Explicit steps. Without a matrix every particle is on its own: dv = z + S h f / m, so pins and contacts are
 * kept exactly, and what they pushed is m dv - h f. In constrained directions a particle moves at v + z
 * during the whole step.
 *
 *   forward_euler  x' = x + h v,  v' = v + h f(x, v) / m     (thesis eq. 4.4)
 *   fb_euler       v' = v + h f(x, v) / m,  x' = x + h v'    (thesis eq. 4.5)
 *   rk4            the classical Runge-Kutta method          (Jiang 2021) */
#include "integrate.h"

#include "stability.h"

#include <string.h>

/* Forces, N, at (x, v) and a time; drag blocks for the step's check. */
static void forces(toile_sim *sim, const double *x, const double *v, double time, double *f) {
    toile_evaluate_at(sim, x, v, time, 0, 0);
    toile_gather(sim, 1, f);
}

/* a = S f / m */
static void accelerations(const toile_sim *sim, const double *f, double *a) {
    const double *inverse_mass = sim->model->inverse_mass;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < 4 * sim->model->particle_count; i++)
        a[i] = f[i] * inverse_mass[i / 4];
    toile_filter(&sim->work.constraints, a);
}

/* to = base + scale x step */
static void add(const toile_sim *sim, const double *base, double scale, const double *step, double *to) {
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < 4 * sim->model->particle_count; i++)
        to[i] = base[i] + scale * step[i];
}

/* `way` (x' - x - y) and mean forces `f` of the four stages; v0 are the velocities with z. */
static void runge_kutta(toile_sim *sim, double h, const double *v0, double *way, double *f) {
    static const double AT[4] = {0, 0.5, 0.5, 1}, WEIGHT[4] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
    toile_work *w = &sim->work;
    int count = 4 * sim->model->particle_count;
    double *x = w->at_x, *v = w->at_v, *stage = w->q, *a = w->s;
    memset(way, 0, (size_t)count * sizeof(double));
    memset(f, 0, (size_t)count * sizeof(double));
    for (int k = 0; k < 4; k++) {
        /* v still holds the stage before: its velocity leads here */
        add(sim, sim->state.x, AT[k] * h, k ? v : v0, x);
        if (k)
            add(sim, v0, AT[k] * h, a, v);
        else
            memcpy(v, v0, (size_t)count * sizeof(double));
        forces(sim, x, v, sim->state.time + AT[k] * h, stage);
        accelerations(sim, stage, a);
        add(sim, way, WEIGHT[k] * h, v, way);
        add(sim, f, WEIGHT[k], stage, f);
    }
}

bool toile_step_explicitly(toile_sim *sim, const toile_scheme *scheme) {
    toile_work *w = &sim->work;
    const toile_state *state = &sim->state;
    const double *mass = sim->model->mass;
    double h = scheme->h, *f = w->b, *v0 = w->next_v, *way = w->next_x, *a = w->p;
    int count = 4 * sim->model->particle_count;
    memset(w->ahead, 0, (size_t)count * sizeof(double));
    add(sim, state->v, 1, w->constraints.z, v0);

    if (scheme->integrator == TOILE_INTEGRATOR_RK4) {
        runge_kutta(sim, h, v0, way, f);
    } else {
        forces(sim, state->x, state->v, state->time, f);
        for (int i = 0; i < count; i++)
            way[i] = h * v0[i];
    }
    accelerations(sim, f, a);
    bool backward = scheme->integrator == TOILE_INTEGRATOR_FB_EULER;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < count; i++) {
        w->solution[i] = w->constraints.z[i] + h * a[i];
        w->next_v[i] = state->v[i] + w->solution[i];
        w->next_x[i] = state->x[i] + (backward ? h * w->next_v[i] : way[i]) + w->alter[i];
        w->r[i] = mass[i / 4] * w->solution[i] - h * f[i];
    }
    return toile_drag_is_stable(sim, scheme->integrator, h);
}
