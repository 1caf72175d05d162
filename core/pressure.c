/* Pressure on panels: every triangle is pushed along its front's normal, p x area, a third at each corner. It moves with the
 * cloth (a follower load); its derivative is small beside that of stretch and left out of the matrix. */
#include "sew.h"

#include "vec3.h"

#include <string.h>

void toile_add_pressure(toile_sim *sim, const double *x, double time) {
    const toile_triangles *t = &sim->model->triangles;
    const toile_pattern *p = &sim->model->pattern;
    bool any = false;
    for (int k = 0; k < sim->panel_count; k++)
        any = any || sim->pressure_from[k] != 0 || sim->pressure_to[k] != 0;
    if (!any)
        return;
    double end = (time - sim->frame_begin) / sim->frame_seconds;
    end = end < 0 ? 0 : end > 1 ? 1 : end;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < sim->model->particle_count; i++) {
        double *f = sim->work.force + 4 * (size_t)i;
        for (int k = p->triangle_begin[i]; k < p->triangle_begin[i + 1]; k++) {
            int e = p->triangle_code[k] >> 4, panel = t->panel[e];
            double pressure = (1 - end) * sim->pressure_from[panel] + end * sim->pressure_to[panel], a[3], b[3], n[3];
            const double *o = x + 4 * (size_t)t->vertex[0][e];
            sub(x + 4 * (size_t)t->vertex[1][e], o, a);
            sub(x + 4 * (size_t)t->vertex[2][e], o, b);
            cross(a, b, n);
            for (int c = 0; c < 3; c++)
                f[c] += pressure * n[c] / 6;
        }
    }
}

void toile_pressure_arrive(toile_sim *sim) {
    if (sim->panel_count)
        memcpy(sim->pressure_from, sim->pressure_to, (size_t)sim->panel_count * sizeof(double));
}
