#include "solve_corepcg.h"

#include "element_block.h"
#include "factor_cholmod.h"
#include "pcg.h"

#include <string.h>

struct toile_corepcg {
    toile_memory *memory;
    const toile_model *model;
    toile_reduced full, core;
    toile_cholesky *cholesky;
    toile_pcg pcg;
    unsigned char *keep; /* off-diagonal blocks of the core, (off_count) */
    double *off;         /* their values, (off_count x 9) */
    toile_error *error;  /* of the solve going on */
    toile_status status;
};

static bool is_core_spring(const toile_model *m, int code) {
    return code >> 1 < m->springs.stretch_count || toile_is_tie(&m->springs, code >> 1);
}

static bool is_core_block(const toile_model *m, int k) {
    const toile_pattern *p = &m->pattern;
    int block = p->n + k;
    if (!m->springs_used && p->triangle_begin[block] < p->triangle_begin[block + 1])
        return true;
    for (int e = p->spring_begin[block]; e < p->spring_begin[block + 1]; e++)
        if (is_core_spring(m, p->spring_code[e]))
            return true;
    return false;
}

static void core_block(const toile_assembly *a, int k, double B[9]) {
    const toile_model *m = a->model;
    const toile_pattern *p = &m->pattern;
    int block = p->n + k;
    memset(B, 0, 9 * sizeof *B);
    for (int e = p->spring_begin[block]; e < p->spring_begin[block + 1]; e++)
        if (is_core_spring(m, p->spring_code[e]))
            add_spring(a, p->spring_code[e], -1, B);
    if (!m->springs_used) {
        toile_sum sum = {0};
        for (int e = p->triangle_begin[block]; e < p->triangle_begin[block + 1]; e++)
            add_triangle(a, p->triangle_code[e], &sum);
        add_sum(&sum, B);
    }
}

static bool apply(void *self, const double *r, double *q) {
    toile_corepcg *c = self;
    c->status = toile_cholesky_solve(c->cholesky, r, q, c->error);
    return c->status == TOILE_OK;
}

toile_status toile_corepcg_make(toile_memory *memory, const toile_model *model, bool fixed,
                                toile_corepcg **solver, toile_error *error) {
    const toile_pattern *p = &model->pattern;
    toile_corepcg *c = toile_alloc(memory, 1, sizeof *c);
    if (!c)
        return toile_fail_memory(error, "the linear solver");
    c->memory = memory;
    c->model = model;
    toile_status status = TOILE_OK;
    c->keep = toile_alloc(memory, (size_t)p->off_count, 1);
    c->off = toile_alloc(memory, 9 * (size_t)p->off_count, sizeof(double));
    if (!c->keep || !c->off)
        status = toile_fail_memory(error, "the linear solver");
    for (int k = 0; status == TOILE_OK && k < p->off_count; k++)
        c->keep[k] = is_core_block(model, k);
    if (status == TOILE_OK)
        status = toile_reduced_make(memory, p, NULL, fixed, &c->full, error);
    if (status == TOILE_OK)
        status = toile_reduced_make(memory, p, c->keep, fixed, &c->core, error);
    if (status == TOILE_OK)
        status = toile_pcg_make(memory, p, &c->pcg, error);
    if (status == TOILE_OK)
        status = toile_cholesky_make(memory, &c->cholesky, error);
    if (status != TOILE_OK) {
        toile_corepcg_free(c);
        return status;
    }
    c->pcg.whole = apply;
    c->pcg.self = c;
    *solver = c;
    return TOILE_OK;
}

void toile_corepcg_free(toile_corepcg *c) {
    if (!c)
        return;
    toile_reduced_free(&c->full);
    toile_reduced_free(&c->core);
    toile_pcg_free(&c->pcg);
    toile_cholesky_free(c->cholesky);
    toile_free(c->memory, c->keep);
    toile_free(c->memory, c->off);
    toile_free(c->memory, c);
}

toile_status toile_corepcg_solve(toile_corepcg *c, toile_system *system, const toile_assembly *assembly,
                                 toile_error *error) {
    const toile_pattern *p = &c->model->pattern;
    int threads = system->threads;
    system->converged = false;
    system->iterations = 0;
    system->row_multiplies = 0;
    system->components = 1;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int k = 0; k < p->off_count; k++)
        if (c->keep[k])
            core_block(assembly, k, c->off + 9 * (size_t)k);
    toile_reduced_constrain(&c->core, system->constraints);
    toile_reduced_fill(&c->core, system->matrix->diagonal, c->off, threads);
    toile_status status = toile_cholesky_factor(c->cholesky, &c->core, error);
    if (status != TOILE_OK)
        return status == TOILE_DIVERGED ? TOILE_OK : status;
    toile_reduced_constrain(&c->full, system->constraints);
    toile_reduced_fill(&c->full, system->matrix->diagonal, system->matrix->off, threads);
    c->error = error;
    c->status = TOILE_OK;
    toile_pcg_solve(&c->pcg, &c->full, system);
    return c->status;
}
