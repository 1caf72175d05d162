#include "solve_corepcg.h"

#include "element_block.h"
#include "factor_cholmod.h"

#include <math.h>
#include <string.h>

struct toile_corepcg {
    toile_memory *memory;
    const toile_model *model;
    toile_reduced core;
    toile_cholesky *cholesky;
    unsigned char *keep; /* off-diagonal blocks of the core, (off_count) */
    double *off;         /* their values, (off_count x 9) */
    double *y;           /* a residual in the core's rows, (3 n) */
    double *r, *p, *s, *q; /* (n x 4) */
    double *partial;     /* (4 x chunks) */
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
    v4 rows[3] = {v4_set(0), v4_set(0), v4_set(0)};
    for (int e = p->spring_begin[block]; e < p->spring_begin[block + 1]; e++)
        if (is_core_spring(m, p->spring_code[e]))
            add_spring(a, p->spring_code[e], -1, rows);
    if (!m->springs_used) {
        toile_sum sum = {0};
        for (int e = p->triangle_begin[block]; e < p->triangle_begin[block + 1]; e++)
            add_triangle(a, p->triangle_code[e], &sum);
        add_sum(&sum, rows);
    }
    store_block(rows, B);
}

/* q = U (U' core U)^-1 U' r: on the directions that are free this is the reduced system's own preconditioner, so MPCG with it takes
 * the steps that plain conjugate gradients take there. */
static bool apply(void *self, const double *r, double *q) {
    toile_corepcg *c = self;
    if (c->status != TOILE_OK)
        return false;
    toile_reduced_restrict(&c->core, r, c->y);
    c->status = toile_cholesky_solve(c->cholesky, c->y, c->y, c->error);
    if (c->status != TOILE_OK)
        return false;
    toile_reduced_expand(&c->core, NULL, c->y, q);
    return true;
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
    c->y = toile_alloc(memory, 3 * (size_t)p->n, sizeof(double));
    c->partial = toile_alloc(memory, 4 * (size_t)p->chunk_count, sizeof(double));
    double **vectors[] = {&c->r, &c->p, &c->s, &c->q};
    bool ok = c->keep && c->off && c->y && c->partial;
    for (size_t k = 0; k < sizeof vectors / sizeof *vectors; k++)
        ok = (*vectors[k] = toile_alloc(memory, 4 * (size_t)p->n, sizeof(double))) && ok;
    if (!ok)
        status = toile_fail_memory(error, "the linear solver");
    for (int k = 0; status == TOILE_OK && k < p->off_count; k++)
        c->keep[k] = is_core_block(model, k);
    if (status == TOILE_OK)
        status = toile_reduced_make(memory, p, c->keep, fixed, &c->core, error);
    if (status == TOILE_OK)
        status = toile_cholesky_make(memory, &c->cholesky, error);
    if (status != TOILE_OK) {
        toile_corepcg_free(c);
        return status;
    }
    *solver = c;
    return TOILE_OK;
}

void toile_corepcg_free(toile_corepcg *c) {
    if (!c)
        return;
    toile_reduced_free(&c->core);
    toile_cholesky_free(c->cholesky);
    void *blocks[] = {c->keep, c->off, c->y, c->r, c->p, c->s, c->q, c->partial};
    for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++)
        toile_free(c->memory, blocks[k]);
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
    c->error = error;
    c->status = TOILE_OK;
    toile_solve solve = {.matrix = system->matrix,
                         .constraints = system->constraints,
                         .b = system->b,
                         .x = system->x,
                         .r = c->r,
                         .p = c->p,
                         .s = c->s,
                         .q = c->q,
                         .whole = apply,
                         .self = c,
                         .partial = c->partial,
                         .tolerance = system->tolerance,
                         .iterations_max = system->iterations_max,
                         .threads = threads};
    system->kernels->mpcg(&solve);
    system->iterations = solve.iterations;
    system->row_multiplies = (int64_t)solve.products * p->n;
    system->converged = solve.converged;
    for (size_t i = 0; i < 4 * (size_t)p->n; i++)
        system->converged = system->converged && isfinite(system->x[i]);
    return c->status;
}
