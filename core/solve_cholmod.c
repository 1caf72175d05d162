#include "solve_cholmod.h"

#include "factor_cholmod.h"

#include <math.h>

struct toile_cholmod {
    toile_memory *memory;
    toile_reduced reduced;
    toile_cholesky *cholesky;
    double *y; /* right side, then answer, (3 n) */
};

toile_status toile_cholmod_make(toile_memory *memory, const toile_model *model, bool fixed,
                                toile_cholmod **solver, toile_error *error) {
    toile_cholmod *s = toile_alloc(memory, 1, sizeof *s);
    if (!s)
        return toile_fail_memory(error, "the direct solver");
    s->memory = memory;
    toile_status status = toile_reduced_make(memory, &model->pattern, NULL, fixed, &s->reduced, error);
    if (status == TOILE_OK)
        status = toile_cholesky_make(memory, &s->cholesky, error);
    if (status == TOILE_OK && !(s->y = toile_alloc(memory, 3 * (size_t)model->particle_count, sizeof *s->y)))
        status = toile_fail_memory(error, "the direct solver");
    if (status != TOILE_OK) {
        toile_cholmod_free(s);
        return status;
    }
    *solver = s;
    return TOILE_OK;
}

void toile_cholmod_free(toile_cholmod *s) {
    if (!s)
        return;
    toile_reduced_free(&s->reduced);
    toile_cholesky_free(s->cholesky);
    toile_free(s->memory, s->y);
    toile_free(s->memory, s);
}

toile_status toile_cholmod_solve(toile_cholmod *s, toile_system *system, toile_error *error) {
    system->converged = false;
    system->iterations = 0;
    system->components = 1;
    toile_reduced_constrain(&s->reduced, system->constraints);
    toile_reduced_fill(&s->reduced, system->matrix->diagonal, system->matrix->off, system->threads);
    system->row_multiplies = toile_reduced_right_side(&s->reduced, system->kernels, system->matrix, system->constraints,
                                                      system->b, s->y, system->threads);
    toile_status status = toile_cholesky_factor(s->cholesky, &s->reduced, error);
    if (status == TOILE_OK)
        status = toile_cholesky_solve(s->cholesky, s->y, s->y, error);
    if (status != TOILE_OK)
        return status == TOILE_DIVERGED ? TOILE_OK : status;
    for (int i = 0; i < s->reduced.size; i++)
        if (!isfinite(s->y[i])) {
            toile_fail(error, TOILE_DIVERGED, "the right side of the step has numbers that are not finite");
            return TOILE_OK;
        }
    toile_reduced_expand(&s->reduced, system->constraints->z, s->y, system->x);
    system->converged = true;
    return TOILE_OK;
}

int toile_cholmod_analyses(const toile_cholmod *s) {
    return toile_cholesky_analyses(s->cholesky);
}
