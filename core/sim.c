/* Making and freeing a simulation, and what is measured of it between frames. */
#include "sim.h"

#include "force_bend.h"
#include "force_spring.h"
#include "force_stretch.h"
#include "integrate.h"
#include "stability.h"

#include <omp.h>
#include <string.h>

static toile_status make_work(toile_sim *sim, toile_error *error) {
    toile_work *w = &sim->work;
    const toile_model *m = sim->model;
    const toile_pattern *p = &m->pattern;
    size_t n = (size_t)m->particle_count, t = (size_t)m->triangles.padded;
    int integrator = toile_integrator(sim->settings);
    bool two_step = toile_integrator_has_history(integrator), newton = integrator == TOILE_INTEGRATOR_NEWTON;
    size_t elsewhere = two_step || newton || integrator == TOILE_INTEGRATOR_RK4 ? 4 * n : 0; /* forces not at the state */
    size_t elements = t > (size_t)m->springs.padded ? t : (size_t)m->springs.padded;
    struct {
        double **field;
        size_t count;
    } fields[] = {{&w->next_x, 4 * n},
                  {&w->next_v, 4 * n},
                  {&w->solution, 4 * n},
                  {&w->friction, 4 * n},
                  {&w->force, 4 * n},
                  {&w->drag, 8 * n},
                  {&w->triangle_air, 8 * t},
                  {&w->alter, 4 * n},
                  {&w->ahead, 4 * n},
                  {&w->at_x, elsewhere},
                  {&w->at_v, elsewhere},
                  {&w->shift, 4 * n},
                  {&w->balance, newton ? 4 * n : 0},
                  {&w->last_balance, newton ? 4 * n : 0},
                  {&w->direction, newton ? 4 * n : 0},
                  {&w->triangle, m->springs_used ? 0 : t * TOILE_TRIANGLE_RECORD},
                  {&w->hinge, (size_t)m->hinges.padded * TOILE_HINGE_RECORD},
                  {&w->bend, 3 * (size_t)m->hinges.padded},
                  {&w->spring, (size_t)m->springs.padded * TOILE_SPRING_RECORD + 12} /* one empty */,
                  {&w->stretch, 2 * elements},
                  {&w->next_stretch, 2 * elements},
                  {&w->solved_stretch, 2 * elements},
                  {&w->extreme, 2 * (elements / 8 + 1)},
                  {&w->matrix.diagonal, 12 * n},
                  {&w->matrix.off, 9 * (size_t)p->off_count + 3},
                  {&w->matrix.spill, 4 * (size_t)p->spill_begin[p->chunk_count]},
                  {&w->b, 4 * n},
                  {&w->r, 4 * n},
                  {&w->p, 4 * n},
                  {&w->s, 4 * n},
                  {&w->q, 4 * n},
                  {&w->inverse, 12 * n},
                  {&w->partial, 4 * (size_t)p->chunk_count},
                  {&w->constraints.filter, 12 * n},
                  {&w->constraints.z, 4 * n}};
    bool ok = true;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        ok = (*fields[i].field = toile_alloc(sim->memory, fields[i].count, sizeof(double))) && ok;
    ok = (w->constraints.particle = toile_alloc(sim->memory, n, sizeof(int))) && ok;
    ok = (w->constraints.chunk_begin = toile_alloc(sim->memory, (size_t)p->chunk_count + 1, sizeof(int))) && ok;
    ok = (w->found = toile_alloc(sim->memory, n, sizeof *w->found)) && ok;
    if (toile_solves_fast(sim->settings))
        ok = ok && toile_fast_make(sim->memory, m, sim->settings->time_step, &w->fast);
    ok = (w->held = toile_alloc(sim->memory, n, 1)) && ok;
    ok = (w->strained = toile_alloc(sim->memory, n, 1)) && ok;
    if (!ok)
        return toile_fail_memory(error, "the work space of the steps");
    w->matrix.pattern = p;
    toile_status status = toile_stability_make(sim, error);
    if (status == TOILE_OK)
        status = toile_stability_check(sim, error);
    return status == TOILE_OK ? toile_state_make(sim->memory, m, two_step, &w->backup, error) : status;
}

toile_status toile_sim_make(toile_memory *memory, const toile_settings *settings, toile_model *model, toile_sim *sim,
                            toile_error *error) {
    memset(sim, 0, sizeof *sim);
    sim->memory = memory;
    sim->settings = settings;
    sim->kernels = toile_kernels_find(NULL);
    sim->threads = settings->threads ? settings->threads : omp_get_num_procs();
    sim->model = model;
    bool history = toile_integrator_has_history(toile_integrator(settings));
    toile_status status = toile_state_make(memory, model, history, &sim->state, error);
    if (status == TOILE_OK)
        status = make_work(sim, error);
    if (status != TOILE_OK) {
        sim->model = NULL; /* stays the caller's */
        toile_sim_free(sim);
    }
    return status;
}

void toile_sim_free(toile_sim *sim) {
    if (!sim->memory)
        return;
    toile_work *w = &sim->work;
    void *blocks[] = {w->next_x, w->next_v, w->solution, w->friction, w->force, w->drag, w->triangle_air, w->alter, w->ahead,
                      w->at_x, w->at_v, w->shift, w->balance, w->last_balance, w->direction,
                      w->triangle, w->hinge, w->bend, w->spring, w->stretch, w->next_stretch, w->solved_stretch, w->extreme, w->matrix.diagonal,
                      w->matrix.off, w->matrix.spill, w->b, w->r, w->p, w->s, w->q, w->inverse, w->partial,
                      w->constraints.filter, w->constraints.z, w->constraints.particle, w->constraints.chunk_begin,
                      w->found, w->held, w->strained};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(sim->memory, blocks[i]);
    toile_fast_free(sim->memory, &w->fast);
    toile_self_free(sim);
    toile_tangle_free(sim);
    toile_solvers_free(&sim->solvers);
    toile_stability_free(sim);
    toile_state_free(sim->memory, &w->backup);
    toile_free(sim->memory, sim->welded);
    toile_free(sim->memory, sim->pressure_from);
    toile_state_free(sim->memory, &sim->state);
    toile_contact_rules_free(sim->memory, &sim->rules);
    toile_model_free(sim->model);
    memset(sim, 0, sizeof *sim);
}

static void corners(const double *x, const int *const *vertex, int count, int e, double out[][3]) {
    for (int c = 0; c < count; c++)
        memcpy(out[c], x + 4 * (size_t)vertex[c][e], 3 * sizeof(double));
}

toile_energies toile_sim_energies(const toile_sim *sim) {
    const toile_model *m = sim->model;
    const double *x = sim->state.x;
    toile_energies e = {0, 0, 0};
    for (int i = 0; i < m->particle_count; i++) {
        const double *v = sim->state.v + 4 * (size_t)i, *p = x + 4 * (size_t)i, *g = sim->settings->gravity;
        e.kinetic += 0.5 * m->mass[i] * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        e.potential -= m->mass[i] * (g[0] * p[0] + g[1] * p[1] + g[2] * p[2]);
    }
    double c[4][3];
    const toile_triangles *t = &m->triangles;
    for (int i = 0; i < t->count && !m->springs_used; i++) {
        toile_triangle_element element = {t->a1[i], t->a2[i], t->b1[i], t->b2[i], t->scale_u[i], t->scale_v[i],
                                          t->stiff_u[i], t->stiff_v[i], t->stiff_s[i], t->damping[i],
                                          t->curve_u[i], t->curve_v[i], t->curve_s[i], t->lock[i],
                                          t->limit[i], t->stiff_limit[i]};
        corners(x, (const int *const *)t->vertex, 3, i, c);
        e.elastic += toile_triangle_energy(&element, (const double(*)[3])c);
    }
    const toile_hinges *h = &m->hinges;
    double *bend = sim->work.bend, *moment = bend + h->count;
    for (int i = 0; i < h->count; i++) {
        corners(x, (const int *const *)h->vertex, 4, i, c);
        bend[i] = toile_hinge_angle((const double(*)[3])c) - h->rest[i];
    }
    toile_hinge_moments(h, bend, moment, moment + h->count);
    for (int i = 0; i < h->count; i++)
        e.elastic += 0.5 * moment[i] * bend[i];
    const toile_springs *s = &m->springs;
    for (int i = 0; i < s->tie_begin; i++) {
        toile_spring_element element = {i >= s->axial_padded, s->length[i], s->stiffness[i], s->damping[i],
                                        s->curve[i], s->onset[i], s->knee[i], s->limit[i], s->stiff_limit[i]};
        if (element.stiffness == 0)
            continue;
        corners(x, (const int *const *)s->vertex, 2, i, c);
        e.elastic += toile_spring_energy(&element, (const double(*)[3])c);
    }
    return e;
}
