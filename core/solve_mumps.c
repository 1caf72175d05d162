#include "solve_mumps.h"

#include "reduce.h"

#include <dmumps_c.h>
#include <math.h>
#include <omp.h>

enum {
    JOB_BEGIN = -1,
    JOB_END = -2,
    JOB_ANALYSE = 1,
    JOB_FACTOR_AND_SOLVE = 5,
    WORLD = -987654,
    NOT_DEFINITE = -10,
    NO_MEMORY = -13
};

struct toile_mumps {
    toile_memory *memory;
    toile_reduced reduced;
    DMUMPS_STRUC_C mumps;
    bool begun;
    int structure;
    int *row, *column; /* of each entry, from 1 */
    double *y;         /* right side, then answer, (3 n) */
};

static int run(toile_mumps *m, int job) {
    int levels = omp_get_max_active_levels();
    omp_set_max_active_levels(0);
    m->mumps.job = job;
    dmumps_c(&m->mumps);
    omp_set_max_active_levels(levels);
    return m->mumps.infog[0];
}

toile_status toile_mumps_make(toile_memory *memory, const toile_model *model, bool fixed,
                              toile_mumps **solver, toile_error *error) {
    toile_mumps *m = toile_alloc(memory, 1, sizeof *m);
    if (!m)
        return toile_fail_memory(error, "the direct solver");
    m->memory = memory;
    toile_status status = toile_reduced_make(memory, &model->pattern, NULL, fixed, &m->reduced, error);
    size_t entries = 6 * (size_t)model->particle_count + 9 * (size_t)model->pattern.off_count;
    if (status == TOILE_OK &&
        (!(m->row = toile_alloc(memory, entries, sizeof(int))) ||
         !(m->column = toile_alloc(memory, entries, sizeof(int))) ||
         !(m->y = toile_alloc(memory, 3 * (size_t)model->particle_count, sizeof(double)))))
        status = toile_fail_memory(error, "the direct solver");
    if (status == TOILE_OK) {
        m->mumps.par = 1;
        m->mumps.sym = 1; /* positive definite */
        m->mumps.comm_fortran = WORLD;
        m->begun = run(m, JOB_BEGIN) >= 0;
        if (!m->begun)
            status = toile_fail_memory(error, "the direct solver");
    }
    if (status != TOILE_OK) {
        toile_mumps_free(m);
        return status;
    }
    for (int k = 0; k < 3; k++)
        m->mumps.icntl[k] = -1; /* no output */
    m->mumps.icntl[3] = 0;
    m->mumps.icntl[6] = 5;   /* METIS */
    m->mumps.icntl[13] = 50; /* % more work space than estimated */
    *solver = m;
    return TOILE_OK;
}

void toile_mumps_free(toile_mumps *m) {
    if (!m)
        return;
    if (m->begun)
        run(m, JOB_END);
    toile_reduced_free(&m->reduced);
    toile_free(m->memory, m->row);
    toile_free(m->memory, m->column);
    toile_free(m->memory, m->y);
    toile_free(m->memory, m);
}

static int analyse(toile_mumps *m) {
    const toile_reduced *r = &m->reduced;
    for (int c = 0; c < r->size; c++)
        for (int k = r->begin[c]; k < r->begin[c + 1]; k++) {
            m->row[k] = r->row[k] + 1;
            m->column[k] = c + 1;
        }
    m->mumps.n = r->size;
    m->mumps.nnz = r->begin[r->size];
    m->mumps.irn = m->row;
    m->mumps.jcn = m->column;
    m->structure = r->structure;
    return run(m, JOB_ANALYSE);
}

toile_status toile_mumps_solve(toile_mumps *m, toile_system *system, toile_error *error) {
    toile_reduced *r = &m->reduced;
    double sum = 0;
    int info = 0;
    system->converged = false;
    system->iterations = 0;
    system->components = 1;
    toile_reduced_constrain(r, system->constraints);
    toile_reduced_fill(r, system->matrix->diagonal, system->matrix->off, system->threads);
    system->row_multiplies = toile_reduced_right_side(r, system->kernels, system->matrix, system->constraints,
                                                      system->b, m->y, system->threads);
    for (int k = 0; k < r->begin[r->size]; k++)
        sum += fabs(r->value[k]);
    if (!isfinite(sum))
        return TOILE_OK;
    if (r->size && m->structure != r->structure)
        info = analyse(m);
    if (r->size && info >= 0) {
        m->mumps.a = r->value;
        m->mumps.rhs = m->y;
        info = run(m, JOB_FACTOR_AND_SOLVE);
    }
    /* without pivoting a negative pivot is counted, not refused */
    bool indefinite = r->size && info >= 0 && m->mumps.infog[11] > 0;
    if (indefinite || info == NOT_DEFINITE || (info < 0 && info != NO_MEMORY)) {
        toile_fail(error, TOILE_DIVERGED, "the matrix of the step is not positive definite (MUMPS says %d)",
                   info);
        return TOILE_OK;
    }
    if (info == NO_MEMORY)
        return toile_fail_memory(error, "the factor of the direct solver; linear_solver mpcg needs far less");
    for (int i = 0; i < r->size; i++)
        if (!isfinite(m->y[i]))
            return TOILE_OK;
    toile_reduced_expand(r, system->constraints->z, m->y, system->x);
    system->converged = true;
    return TOILE_OK;
}
