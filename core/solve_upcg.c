#include "solve_upcg.h"

#include "pcg.h"

#include <math.h>
#include <string.h>

struct toile_upcg {
    toile_memory *memory;
    toile_reduced reduced;
    toile_pcg pcg;
    double *inverse; /* of the diagonal blocks, by rows of 3, unused ones 0, (n x 9) */
};

/* Inverse of a symmetric block of `rank` rows, by its Cholesky factor; rows that fail are left to the
 * diagonal. */
static void invert(const double B[9], int rank, double R[9]) {
    double L[9] = {0}, Y[9] = {0};
    bool ok = true;
    for (int j = 0; j < rank; j++)
        for (int i = j; i < rank; i++) {
            double t = B[3 * j + i];
            for (int k = 0; k < j; k++)
                t -= L[3 * i + k] * L[3 * j + k];
            if (i == j)
                ok = ok && t > 0;
            L[3 * i + j] = i == j ? sqrt(t) : t / L[4 * j];
        }
    memset(R, 0, 9 * sizeof *R);
    if (!ok) {
        for (int k = 0; k < rank; k++)
            R[4 * k] = 1 / B[4 * k];
        return;
    }
    for (int c = 0; c < rank; c++) { /* columns of the identity */
        for (int i = c; i < rank; i++) {
            double t = i == c;
            for (int k = c; k < i; k++)
                t -= L[3 * i + k] * Y[3 * k + c];
            Y[3 * i + c] = t / L[4 * i];
        }
        for (int i = rank - 1; i >= 0; i--) {
            double t = Y[3 * i + c];
            for (int k = i + 1; k < rank; k++)
                t -= L[3 * k + i] * R[3 * k + c];
            R[3 * i + c] = t / L[4 * i];
        }
    }
}

/* The diagonal block of particle i, from the columns that begin with it. */
static void invert_block(toile_upcg *u, int i) {
    const toile_reduced *m = &u->reduced;
    int first = m->first[i], rank = m->first[i + 1] - first;
    double B[9] = {0};
    for (int a = 0; a < rank; a++)
        for (int c = a; c < rank; c++)
            B[3 * a + c] = m->value[m->begin[first + a] + c - a];
    invert(B, rank, u->inverse + 9 * (size_t)i);
}

static void apply(const void *self, int chunk, const double *r, double *q) {
    const toile_upcg *u = self;
    const toile_reduced *m = &u->reduced;
    for (int i = m->pattern->chunk_begin[chunk]; i < m->pattern->chunk_begin[chunk + 1]; i++) {
        const double *R = u->inverse + 9 * (size_t)i, *ri = r + m->first[i];
        double *qi = q + m->first[i];
        int rank = m->first[i + 1] - m->first[i];
        if (rank == 3) {
            for (int a = 0; a < 3; a++)
                qi[a] = R[3 * a] * ri[0] + R[3 * a + 1] * ri[1] + R[3 * a + 2] * ri[2];
            continue;
        }
        for (int a = 0; a < rank; a++) {
            double sum = 0;
            for (int c = 0; c < rank; c++)
                sum += R[3 * a + c] * ri[c];
            qi[a] = sum;
        }
    }
}

toile_status toile_upcg_make(toile_memory *memory, const toile_model *model, toile_upcg **solver,
                             toile_error *error) {
    toile_upcg *u = toile_alloc(memory, 1, sizeof *u);
    if (!u)
        return toile_fail_memory(error, "the linear solver");
    u->memory = memory;
    toile_status status = toile_reduced_make(memory, &model->pattern, NULL, false, &u->reduced, error);
    if (status == TOILE_OK)
        status = toile_pcg_make(memory, &model->pattern, &u->pcg, error);
    if (status == TOILE_OK &&
        !(u->inverse = toile_alloc(memory, 9 * (size_t)model->particle_count, sizeof(double))))
        status = toile_fail_memory(error, "the linear solver");
    if (status != TOILE_OK) {
        toile_upcg_free(u);
        return status;
    }
    u->pcg.chunk = apply;
    u->pcg.self = u;
    *solver = u;
    return TOILE_OK;
}

void toile_upcg_free(toile_upcg *u) {
    if (!u)
        return;
    toile_reduced_free(&u->reduced);
    toile_pcg_free(&u->pcg);
    toile_free(u->memory, u->inverse);
    toile_free(u->memory, u);
}

void toile_upcg_solve(toile_upcg *u, toile_system *system) {
    int n = u->reduced.pattern->n;
    toile_reduced_constrain(&u->reduced, system->constraints);
    toile_reduced_fill(&u->reduced, system->matrix->diagonal, system->matrix->off, system->threads);
#pragma omp parallel for schedule(static) num_threads(system->threads) if (system->threads > 1)
    for (int i = 0; i < n; i++)
        invert_block(u, i);
    toile_pcg_solve(&u->pcg, &u->reduced, system);
}
