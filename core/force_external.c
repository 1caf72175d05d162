/* Forces from outside: gravity, air drag against still or moving air, and gusts.
 *
 *   particle  f = -1/2 rho c A |n . r| r, r the velocity relative to the air, n the particle's normal, A its area
 *             (Boxerman 2003 eq. 3.17, with the sign that opposes r whichever way n points)
 *   triangle  f = -1/2 rho c A |n . r| (n . r) n, a third to each corner (Baraff-Witkin 1998 4.4: opposes velocities
 *             along the normal only)
 *   gust      f = A p sin(2 pi (f t - s / lambda)), s the way along (1, 1, 1)/sqrt 3: a sine of place and time
 *             (Jiang 2021), as a pressure so that the mesh does not matter
 * What goes into the matrix is the positive semi-definite part of -df/dv, lumped on the particles. */
#include "integrate.h"

#include <math.h>
#include <string.h>

/* Area normal and, in triangle mode, drag of each triangle. */
static void triangle_air(const toile_sim *sim, const double *x, const double *v, double h) {
    const toile_triangles *t = &sim->model->triangles;
    const toile_settings *set = sim->settings;
    double *out = sim->work.triangle_air, scale = 0.5 * set->air_density * set->drag_coefficient;
    bool drag = set->drag_model == TOILE_DRAG_TRIANGLE;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int e = 0; e < t->count; e++) {
        const double *p[3], *w[3];
        for (int c = 0; c < 3; c++) {
            p[c] = x + 4 * (size_t)t->vertex[c][e];
            w[c] = v + 4 * (size_t)t->vertex[c][e];
        }
        double a[3], b[3], n[3], *r = out + 8 * (size_t)e;
        for (int k = 0; k < 3; k++) {
            a[k] = p[1][k] - p[0][k];
            b[k] = p[2][k] - p[0][k];
        }
        n[0] = 0.5 * (a[1] * b[2] - a[2] * b[1]);
        n[1] = 0.5 * (a[2] * b[0] - a[0] * b[2]);
        n[2] = 0.5 * (a[0] * b[1] - a[1] * b[0]);
        if (!drag) {
            memcpy(r + 3, n, sizeof n);
            continue;
        }
        double area = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]), normal_speed = 0;
        for (int k = 0; k < 3; k++) {
            n[k] /= area > 1e-300 ? area : 1;
            normal_speed += n[k] * ((w[0][k] + w[1][k] + w[2][k]) / 3 - set->wind_velocity[k]);
        }
        double strength = scale * t->air[e] * area * fabs(normal_speed);
        for (int k = 0; k < 3; k++) {
            r[k] = -strength * normal_speed * n[k] / 3;
            r[k + 3] = n[k];
        }
        r[6] = h * 2 * strength / 3; /* -h df/dv = this x n n' on each corner */
    }
}

/* Part of gravity that acts at a time: none at first, then growing, if the settings say so. */
static double weight_at(const toile_sim *sim, double time) {
    const toile_settings *set = sim->settings;
    double since = time - sim->begin_time - set->gravity_delay;
    if (set->gravity_delay == 0 && set->gravity_ramp == 0)
        return 1;
    return since <= 0 ? 0 : since >= set->gravity_ramp ? 1 : since / set->gravity_ramp;
}

void toile_external_forces(toile_sim *sim, const double *x, const double *v, double time, double h) {
    const toile_model *m = sim->model;
    const toile_settings *set = sim->settings;
    const toile_pattern *pattern = &m->pattern;
    double *force = sim->work.force, *drag = sim->work.drag;
    bool by_triangle = set->drag_model == TOILE_DRAG_TRIANGLE, by_particle = set->drag_model == TOILE_DRAG_PARTICLE;
    double strength = 0.5 * set->air_density * set->drag_coefficient, weight = weight_at(sim, time);
    if (strength == 0)
        by_triangle = by_particle = false;
    bool turning = !toile_integrator_is_explicit(toile_integrator(set)); /* their steps are short against any slip */
    bool gusts = set->gust_pressure[0] != 0 || set->gust_pressure[1] != 0 || set->gust_pressure[2] != 0;
    if (by_triangle || by_particle)
        triangle_air(sim, x, v, h);

#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int i = 0; i < m->particle_count; i++) {
        double *f = force + 4 * (size_t)i, *g = drag + 8 * (size_t)i;
        const double *vi = v + 4 * (size_t)i, *xi = x + 4 * (size_t)i;
        double n[3] = {0, 0, 0};
        memset(g, 0, 8 * sizeof *g);
        for (int k = 0; k < 3; k++)
            f[k] = sim->work.friction[4 * (size_t)i + (size_t)k] + weight * m->mass[i] * set->gravity[k];
        for (int k = pattern->triangle_begin[i]; (by_triangle || by_particle) && k < pattern->triangle_begin[i + 1]; k++) {
            const double *r = sim->work.triangle_air + 8 * (size_t)(pattern->triangle_code[k] >> 4), *tn = r + 3;
            for (int c = 0; c < 3; c++) {
                f[c] += by_triangle ? r[c] : 0;
                n[c] += tn[c];
            }
            if (by_triangle) {
                g[0] += r[6] * tn[0] * tn[0], g[1] += r[6] * tn[0] * tn[1], g[2] += r[6] * tn[0] * tn[2];
                g[3] += r[6] * tn[1] * tn[1], g[4] += r[6] * tn[1] * tn[2], g[5] += r[6] * tn[2] * tn[2];
            }
        }
        if (by_particle) {
            double length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]), speed = 0, relative[3];
            for (int k = 0; k < 3; k++) {
                relative[k] = vi[k] - set->wind_velocity[k];
                speed += n[k] / (length > 1e-300 ? length : 1) * relative[k];
            }
            double pull = strength * m->air_area[i] * fabs(speed);
            for (int k = 0; k < 3; k++)
                f[k] -= pull * relative[k];
            g[0] += h * pull, g[3] += h * pull, g[5] += h * pull;
        }
        const toile_found *slide = &sim->work.found[i];
        if (turning && slide->solid >= 0 && slide->mode == TOILE_TOUCH_SLIDE) {
            const double *a = slide->normal, *d = slide->direction;
            double c = h * slide->turning;
            g[0] += c * (1 - a[0] * a[0] - d[0] * d[0]), g[1] -= c * (a[0] * a[1] + d[0] * d[1]);
            g[2] -= c * (a[0] * a[2] + d[0] * d[2]), g[3] += c * (1 - a[1] * a[1] - d[1] * d[1]);
            g[4] -= c * (a[1] * a[2] + d[1] * d[2]), g[5] += c * (1 - a[2] * a[2] - d[2] * d[2]);
        }
        if (turning && slide->solid >= 0 && (slide->mode == TOILE_TOUCH_GRIP || slide->mode == TOILE_TOUCH_RIDE)) {
            const double *a = slide->normal, *u = slide->surface;
            double c = slide->turning, away = (vi[0] - u[0]) * a[0] + (vi[1] - u[1]) * a[1] + (vi[2] - u[2]) * a[2];
            for (int k = 0; k < 3; k++)
                f[k] -= c * (vi[k] - u[k] - away * a[k]);
            c *= h;
            g[0] += c * (1 - a[0] * a[0]), g[1] -= c * a[0] * a[1], g[2] -= c * a[0] * a[2];
            g[3] += c * (1 - a[1] * a[1]), g[4] -= c * a[1] * a[2], g[5] += c * (1 - a[2] * a[2]);
            if (slide->mode == TOILE_TOUCH_RIDE) {
                double across = slide->across;
                for (int k = 0; k < 3; k++)
                    f[k] -= across * away * a[k];
                across *= h;
                g[0] += across * a[0] * a[0], g[1] += across * a[0] * a[1], g[2] += across * a[0] * a[2];
                g[3] += across * a[1] * a[1], g[4] += across * a[1] * a[2], g[5] += across * a[2] * a[2];
            }
        }
        if (gusts) {
            double way = (xi[0] + xi[1] + xi[2]) / sqrt(3.0);
            double wave = sin(2 * 3.14159265358979323846 * (set->gust_frequency * time - way / set->gust_wavelength));
            for (int k = 0; k < 3; k++)
                f[k] += m->air_area[i] * set->gust_pressure[k] * wave;
        }
    }
}
