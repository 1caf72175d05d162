#include "factor_cholmod.h"

#include <cholmod.h>
#include <dlfcn.h>
#include <math.h>
#include <omp.h>
#include <string.h>

/* Below this METIS is not worth its time: AMD's factor is then as good (measured on sheets). */
#define METIS_LEAST 1000

struct toile_cholesky {
    toile_memory *memory;
    cholmod_common common;
    cholmod_factor *factor;
    cholmod_dense *x, *y, *e; /* of cholmod_solve2, kept between solves */
    int structure;            /* of the reduced system that was analysed; 0: none */
    int analyses;
    double flops;
    int size;
    int (*get_blas_threads)(void); /* of OpenBLAS; null if the BLAS is another */
    void (*set_blas_threads)(int);
};

typedef struct alone {
    int levels, blas;
} alone;

/* CHOLMOD 3 opens a team of four threads for loops of some microseconds, whatever the machine has; on two
 * cores that makes a factor two to three times slower. It has no setting for it, but OpenMP has: no level may
 * be parallel. A threaded OpenBLAS does the same harm in its own way. */
static alone go_alone(const toile_cholesky *c) {
    alone a = {omp_get_max_active_levels(),
               c->get_blas_threads && c->set_blas_threads ? c->get_blas_threads() : 1};
    omp_set_max_active_levels(0);
    if (a.blas != 1)
        c->set_blas_threads(1);
    return a;
}

static void go_back(const toile_cholesky *c, alone a) {
    omp_set_max_active_levels(a.levels);
    if (a.blas != 1)
        c->set_blas_threads(a.blas);
}

toile_status toile_cholesky_make(toile_memory *memory, toile_cholesky **cholesky, toile_error *error) {
    toile_cholesky *c = toile_alloc(memory, 1, sizeof *c);
    if (!c)
        return toile_fail_memory(error, "the direct solver");
    c->memory = memory;
    if (!cholmod_start(&c->common)) {
        toile_free(memory, c);
        return toile_fail_memory(error, "the direct solver");
    }
    c->common.print = 0;
    c->common.error_handler = NULL;
    c->common.try_catch = 1; /* no message either */
    c->common.supernodal = CHOLMOD_SUPERNODAL;
    c->common.quick_return_if_not_posdef = 1;
    *(void **)&c->get_blas_threads = dlsym(RTLD_DEFAULT, "openblas_get_num_threads");
    *(void **)&c->set_blas_threads = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    *cholesky = c;
    return TOILE_OK;
}

static void forget(toile_cholesky *c) {
    cholmod_free_factor(&c->factor, &c->common);
    c->structure = 0;
}

void toile_cholesky_free(toile_cholesky *c) {
    if (!c)
        return;
    forget(c);
    cholmod_free_dense(&c->x, &c->common);
    cholmod_free_dense(&c->y, &c->common);
    cholmod_free_dense(&c->e, &c->common);
    cholmod_finish(&c->common);
    toile_free(c->memory, c);
}

/* What CHOLMOD's status means for us. */
static toile_status judge(const toile_cholesky *c, toile_error *error) {
    switch (c->common.status) {
    case CHOLMOD_OK:
    case CHOLMOD_DSMALL: return TOILE_OK;
    case CHOLMOD_NOT_POSDEF:
        return toile_fail(error, TOILE_DIVERGED,
                          "the matrix of the step is not positive definite: a mass, a stiffness or a "
                          "position is out of hand; take a smaller time_step or look for extreme values");
    case CHOLMOD_TOO_LARGE:
        return toile_fail(error, TOILE_NO_MEMORY,
                          "the factor of the direct solver is too large to be numbered; use another "
                          "linear_solver for a model of %d particles' rows",
                          c->size);
    default:
        return toile_fail_memory(error, "the factor of the direct solver; linear_solver mpcg needs far less");
    }
}

static cholmod_factor *analyse_by(toile_cholesky *c, cholmod_sparse *A, int ordering, double *flops) {
    c->common.nmethods = 1;
    c->common.method[0].ordering = ordering;
    c->common.postorder = 1;
    cholmod_factor *f = cholmod_analyze(A, &c->common);
    *flops = c->common.fl;
    return f;
}

/* What cholmod_solve2 needs, made beforehand: if it has to make it itself and cannot, it crashes
 * (CHOLMOD 3.0.14). */
static toile_status make_vectors(toile_cholesky *c, toile_error *error) {
    struct {
        cholmod_dense **vector;
        size_t rows;
    } all[] = {{&c->x, c->factor->n}, {&c->y, c->factor->n}, {&c->e, c->factor->maxesize}};
    for (int i = 0; i < 3; i++) {
        if (*all[i].vector && (*all[i].vector)->nzmax >= all[i].rows)
            continue;
        cholmod_free_dense(all[i].vector, &c->common);
        *all[i].vector = cholmod_allocate_dense(all[i].rows, 1, all[i].rows, CHOLMOD_REAL, &c->common);
        if (!*all[i].vector)
            return judge(c, error);
    }
    return TOILE_OK;
}

static toile_status analyse(toile_cholesky *c, cholmod_sparse *A, int structure, toile_error *error) {
    double other_flops;
    forget(c);
    c->factor = analyse_by(c, A, CHOLMOD_AMD, &c->flops);
    if (!c->factor)
        return judge(c, error);
    if (A->nrow >= METIS_LEAST) {
        cholmod_factor *other = analyse_by(c, A, CHOLMOD_METIS, &other_flops);
        if (other && other_flops < c->flops) {
            cholmod_free_factor(&c->factor, &c->common);
            c->factor = other;
            c->flops = other_flops;
        } else {
            cholmod_free_factor(&other, &c->common);
        }
    }
    c->structure = structure;
    c->analyses++;
    return make_vectors(c, error);
}

toile_status toile_cholesky_factor(toile_cholesky *c, toile_reduced *matrix, toile_error *error) {
    size_t n = (size_t)matrix->size;
    cholmod_sparse A = {.nrow = n,
                        .ncol = n,
                        .nzmax = (size_t)matrix->begin[n],
                        .p = matrix->begin,
                        .i = matrix->row,
                        .x = matrix->value,
                        .stype = -1,
                        .itype = CHOLMOD_INT,
                        .xtype = CHOLMOD_REAL,
                        .dtype = CHOLMOD_DOUBLE,
                        .sorted = 1,
                        .packed = 1};
    toile_status status = TOILE_OK;
    c->size = matrix->size;
    if (!c->size)
        return TOILE_OK;
    for (size_t k = 0; k < A.nzmax; k++)
        if (!(fabs(matrix->value[k]) < 1e300))
            return toile_fail(error, TOILE_DIVERGED,
                              "the matrix of the step has numbers that are not finite");
    alone before = go_alone(c);
    if (!c->factor || c->structure != matrix->structure)
        status = analyse(c, &A, matrix->structure, error);
    if (status == TOILE_OK) {
        c->common.status = CHOLMOD_OK;
        cholmod_factorize(&A, c->factor, &c->common);
        status = judge(c, error);
    }
    go_back(c, before);
    if (status == TOILE_NO_MEMORY)
        forget(c);
    return status;
}

toile_status toile_cholesky_solve(toile_cholesky *c, const double *b, double *x, toile_error *error) {
    size_t n = (size_t)c->size;
    cholmod_dense B = {.nrow = n,
                       .ncol = 1,
                       .nzmax = n,
                       .d = n,
                       .x = (double *)b,
                       .xtype = CHOLMOD_REAL,
                       .dtype = CHOLMOD_DOUBLE};
    if (!n)
        return TOILE_OK;
    alone before = go_alone(c);
    int done = cholmod_solve2(CHOLMOD_A, c->factor, &B, NULL, &c->x, NULL, &c->y, &c->e, &c->common);
    go_back(c, before);
    if (!done)
        return judge(c, error);
    memcpy(x, c->x->x, n * sizeof *x);
    return TOILE_OK;
}

double toile_cholesky_flops(const toile_cholesky *c) {
    return c->flops;
}

int toile_cholesky_analyses(const toile_cholesky *c) {
    return c->analyses;
}
