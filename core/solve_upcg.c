#include "solve_upcg.h"

#include "reduce.h"
#include "solve_linear.h"

#include <math.h>
#include <string.h>

/* U' A U in blocks of three rows: those that a particle has fewer directions than that for are 0, in the matrix and in every
 * vector, and blocks of particles that are held altogether are not gone over. So the iterations are MPCG's, with nothing
 * to filter. */
struct toile_upcg {
    toile_memory *memory;
    const toile_pattern *pattern;
    int size;               /* directions of all particles */
    int *rank;              /* of each particle, (n) */
    double *basis;          /* U_i by rows of 3, unused columns 0, (n x 9) */
    toile_matrix matrix;
    toile_live *live;       /* blocks between particles that are not held */
    toile_constraints none;
    double *inverse;        /* of its diagonal blocks, (n x 12) */
    double *right, *outer;  /* U' (b - A (I - S) z) and U' b, (n x 4) like the rest */
    double *y, *r, *p, *s, *q;
    double *partial;        /* (4 x chunks) */
};

toile_status toile_upcg_make(toile_memory *memory, const toile_model *model, toile_upcg **solver, toile_error *error) {
    const toile_pattern *pattern = &model->pattern;
    size_t n = (size_t)pattern->n, chunks = (size_t)pattern->chunk_count;
    toile_upcg *u = toile_alloc(memory, 1, sizeof *u);
    if (!u)
        return toile_fail_memory(error, "the linear solver");
    *u = (toile_upcg){.memory = memory, .pattern = pattern, .matrix.pattern = pattern};
    struct {
        double **at;
        size_t count;
    } arrays[] = {{&u->basis, 9 * n},
                  {&u->matrix.diagonal, 12 * n},
                  {&u->matrix.off, 9 * (size_t)pattern->off_count + 3},
                  {&u->matrix.spill, 4 * (size_t)pattern->spill_begin[chunks]},
                  {&u->inverse, 12 * n},
                  {&u->right, 4 * n},
                  {&u->outer, 4 * n},
                  {&u->y, 4 * n},
                  {&u->r, 4 * n},
                  {&u->p, 4 * n},
                  {&u->s, 4 * n},
                  {&u->q, 4 * n},
                  {&u->partial, 4 * chunks}};
    bool ok = (u->rank = toile_alloc(memory, n, sizeof(int))) && (u->live = toile_live_make(memory, pattern)) &&
              (u->none.chunk_begin = toile_alloc(memory, chunks + 1, sizeof(int)));
    for (size_t k = 0; ok && k < sizeof arrays / sizeof *arrays; k++)
        ok = (*arrays[k].at = toile_alloc(memory, arrays[k].count, sizeof(double)));
    if (!ok) {
        toile_upcg_free(u);
        return toile_fail_memory(error, "the linear solver");
    }
    memset(u->none.chunk_begin, 0, (chunks + 1) * sizeof(int));
    memset(u->matrix.off, 0, (9 * (size_t)pattern->off_count + 3) * sizeof(double));
    *solver = u;
    return TOILE_OK;
}

void toile_upcg_free(toile_upcg *u) {
    if (!u)
        return;
    void *blocks[] = {u->rank,  u->none.chunk_begin, u->basis, u->matrix.diagonal, u->matrix.off, u->matrix.spill, u->inverse,
                      u->right, u->outer,            u->y,     u->r,               u->p,          u->s,            u->q,
                      u->partial};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(u->memory, blocks[i]);
    toile_live_free(u->memory, u->live);
    toile_free(u->memory, u);
}

/* ---- the reduced matrix ---- */

static void find_bases(toile_upcg *u, const toile_constraints *c) {
    static const double IDENTITY[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    u->size = 0;
    for (int i = 0, k = 0; i < u->pattern->n; i++) {
        double *U = u->basis + 9 * (size_t)i;
        bool held = k < c->count && c->particle[k] == i;
        u->rank[i] = held ? toile_basis_of(c->filter + 12 * (size_t)k++, U) : 3;
        if (!held)
            memcpy(U, IDENTITY, sizeof IDENTITY);
        u->size += u->rank[i];
    }
}

/* Blocks that have anything to do, of those that the whole matrix has. */
static void list_blocks(toile_upcg *u, const toile_matrix *whole) {
    const toile_pattern *p = u->pattern;
    toile_live *live = u->live;
    int count = 0;
    for (int i = 0; i < p->n; i++) {
        live->begin[i] = count;
        for (int half = 0; half < 2; half++) {
            int from, to;
            toile_live_range(whole->live, p, i, half, &from, &to);
            if (half)
                live->split[i] = count;
            for (int at = from; at < to; at++) {
                int k = toile_live_block(whole->live, at);
                if (u->rank[i] && u->rank[p->column[k]])
                    live->block[count++] = k;
            }
        }
    }
    live->begin[p->n] = count;
    u->matrix.live = count < p->off_count ? live : NULL;
}

/* Inverse of a diagonal block in its first `rank` rows and columns; one that has none is left to its diagonal. */
static void invert(const double D[12], int rank, double R[12]) {
    double B[12], scale = (D[0] + D[5] + D[10]) / (rank > 0 ? rank : 1);
    memcpy(B, D, sizeof B);
    for (int k = rank; k < 3; k++)
        B[5 * k] = scale;
    memset(R, 0, sizeof B);
    if (!toile_invert_block(B, R))
        for (int k = 0; k < rank; k++)
            R[5 * k] = 1 / D[5 * k];
    for (int k = rank; k < 3; k++)
        R[5 * k] = 0;
}

static void fill_row(toile_upcg *u, const toile_matrix *whole, int i) {
    const toile_pattern *p = u->pattern;
    const double *A = whole->diagonal + 12 * (size_t)i, *U = u->basis + 9 * (size_t)i;
    double *D = u->matrix.diagonal + 12 * (size_t)i, B[9] = {A[0], A[1], A[2], A[4], A[5], A[6], A[8], A[9], A[10]}, T[9];
    if (u->rank[i] < 3) {
        toile_project(U, B, U, T);
        memcpy(B, T, sizeof B);
    }
    for (int k = 0; k < 12; k++)
        D[k] = k % 4 < 3 ? B[3 * (k / 4) + k % 4] : 0;
    invert(D, u->rank[i], u->inverse + 12 * (size_t)i);
    const int *begin = u->matrix.live ? u->live->begin : p->row_begin;
    for (int at = begin[i]; at < begin[i + 1]; at++) {
        int k = toile_live_block(u->matrix.live, at), j = p->column[k];
        double *to = u->matrix.off + 9 * (size_t)k;
        if (u->rank[i] < 3 || u->rank[j] < 3)
            toile_project(U, whole->off + 9 * (size_t)k, u->basis + 9 * (size_t)j, to);
        else
            memcpy(to, whole->off + 9 * (size_t)k, 9 * sizeof *to);
    }
}

/* ---- the solve ---- */

/* y = U' x, unused directions 0. */
static void restrict_vector(const toile_upcg *u, const double *x, double *y) {
    for (int i = 0; i < u->pattern->n; i++) {
        const double *U = u->basis + 9 * (size_t)i, *xi = x + 4 * (size_t)i;
        for (size_t a = 0; a < 3; a++)
            y[4 * (size_t)i + a] = U[a] * xi[0] + U[3 + a] * xi[1] + U[6 + a] * xi[2];
        y[4 * (size_t)i + 3] = 0;
    }
}

/* Right sides, the first guess, and what (I - S) z is worth beside it: 2 x' A (I - S) z + z' (I - S) A (I - S) z. */
static double prepare(toile_upcg *u, const toile_system *system) {
    const double *z = system->constraints->z;
    double energy = 0;
    restrict_vector(u, system->b, u->outer);
    restrict_vector(u, system->x, u->y);
    memcpy(u->right, u->outer, 4 * (size_t)u->pattern->n * sizeof(double));
    if (!system->constraints->count)
        return 0;
    toile_multiply(system->kernels, system->matrix, z, u->s, system->threads);
    for (size_t i = 0; i < 4 * (size_t)u->pattern->n; i++) {
        energy += z[i] * u->s[i];
        u->s[i] = system->b[i] - u->s[i];
    }
    restrict_vector(u, u->s, u->right);
    for (size_t i = 0; i < 4 * (size_t)u->pattern->n; i++)
        energy += 2 * u->y[i] * (u->outer[i] - u->right[i]);
    return energy;
}

/* x = U y + (I - S) z; false if it has numbers that are not finite. */
static bool expand(const toile_upcg *u, toile_system *system) {
    bool finite = true;
    for (int i = 0; i < u->pattern->n; i++) {
        const double *U = u->basis + 9 * (size_t)i, *y = u->y + 4 * (size_t)i, *z = system->constraints->z + 4 * (size_t)i;
        double *x = system->x + 4 * (size_t)i;
        for (int k = 0; k < 3; k++) {
            x[k] = z[k] + U[3 * k] * y[0] + U[3 * k + 1] * y[1] + U[3 * k + 2] * y[2];
            finite = finite && isfinite(x[k]);
        }
        x[3] = 0;
    }
    return finite;
}

void toile_upcg_solve(toile_upcg *u, toile_system *system) {
    find_bases(u, system->constraints);
    list_blocks(u, system->matrix);
#pragma omp parallel for schedule(static) num_threads(system->threads) if (system->threads > 1)
    for (int i = 0; i < u->pattern->n; i++)
        fill_row(u, system->matrix, i);
    toile_solve solve = {.matrix = &u->matrix,
                         .constraints = &u->none,
                         .b = u->right,
                         .x = u->y,
                         .r = u->r,
                         .p = u->p,
                         .s = u->s,
                         .q = u->q,
                         .inverse = u->inverse,
                         .energy = prepare(u, system),
                         .outer = u->outer,
                         .partial = u->partial,
                         .tolerance = system->tolerance,
                         .iterations_max = system->iterations_max,
                         .threads = system->threads};
    system->kernels->mpcg(&solve);
    system->components = 1;
    system->iterations = solve.iterations;
    system->row_multiplies =
        (int64_t)solve.products * ((u->size + 2) / 3) + (system->constraints->count ? u->pattern->n : 0);
    system->converged = expand(u, system) && solve.converged;
}
