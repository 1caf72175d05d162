/* A step can have no answer in numbers: solids have closed on cloth in a way that nothing lets go of in time, or have driven it
 * through itself until everything meets everything. Then for one step nothing is solved. Particles that are held go where they
 * are taken, those that touch solids go with these, and the others with the mean of their neighbours, or of all. Nothing is checked:
 * what crosses after it is pulled apart as what starts crossed is (tangle.c). */
#include "rest.h"

#include "sim.h"

#include <math.h>
#include <string.h>

/* How often velocities are handed on to neighbours: so many edges from what is known they are the mean. */
#define SWEEPS 32

/* Velocities that are known: of pins, solids and rides; the fourth number says so. Returns how many. */
static int known_velocities(const toile_sim *sim, double *u) {
    const toile_work *w = &sim->work;
    int known = 0;
    for (int i = 0; i < sim->model->particle_count; i++) {
        const double *z = w->constraints.z + 4 * (size_t)i, *v = sim->state.v + 4 * (size_t)i;
        bool touches = w->found[i].solid >= 0;
        double *own = u + 4 * (size_t)i;
        memset(own, 0, 4 * sizeof *own);
        if (!w->held[i] && !touches)
            continue;
        for (int k = 0; k < 3; k++) {
            own[k] = touches ? w->found[i].surface[k] : v[k] + z[k];
            if (!isfinite(own[k]))
                own[k] = 0;
        }
        own[3] = 1;
        known++;
    }
    return known;
}

bool toile_rest(toile_sim *sim, double h) {
    toile_work *w = &sim->work;
    toile_state *s = &sim->state;
    const toile_triangles *t = &sim->model->triangles;
    int n = sim->model->particle_count;
    double *u = w->next_v, *sum = w->next_x, mean[4] = {0, 0, 0, 0};
    toile_find_contacts(sim, h);
    toile_set_constraints(sim, h);
    int known = known_velocities(sim, u);
    if (!known && !sim->self.couplings.count && !(sim->self.on && sim->self.skin.flooded))
        return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3 && (u[4 * (size_t)i + 3] > 0 || !known); k++)
            mean[k] += (known ? u : s->v)[4 * (size_t)i + (size_t)k] / (known ? known : n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3 && u[4 * (size_t)i + 3] == 0; k++)
            u[4 * (size_t)i + (size_t)k] = mean[k];
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        memset(sum, 0, 4 * (size_t)n * sizeof *sum);
        for (int e = 0; e < t->count; e++)
            for (int c = 0; c < 3; c++) {
                double *own = sum + 4 * (size_t)t->vertex[c][e];
                const double *a = u + 4 * (size_t)t->vertex[(c + 1) % 3][e], *b = u + 4 * (size_t)t->vertex[(c + 2) % 3][e];
                for (int k = 0; k < 3; k++)
                    own[k] += a[k] + b[k];
                own[3] += 2;
            }
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 3 && u[4 * (size_t)i + 3] == 0 && sum[4 * (size_t)i + 3] > 0; k++)
                u[4 * (size_t)i + (size_t)k] = sum[4 * (size_t)i + (size_t)k] / sum[4 * (size_t)i + 3];
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < 3; k++) {
            size_t at = 4 * (size_t)i + (size_t)k;
            s->x[at] += h * u[at];
            s->v[at] = u[at];
            s->dv[at] = 0;
        }
        if (!(s->touch[i].mode & TOILE_TOUCH_RIDE))
            s->touch[i] = (toile_touch){.solid = -1};
    }
    s->time += h;
    s->last_step = 0;
    sim->self.near_known = sim->self.skin.listed = false;
    sim->frame.rested++;
    return true;
}
