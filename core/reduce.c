#include "reduce.h"

#include "solve_linear.h"

#include <math.h>
#include <string.h>

/* ---- bases ---- */

/* Unit vector v of the rank-one projection v v', from its longest column; the sign is that of a positive
 * largest part. */
static void axis_of(const double P[9], double v[3]) {
    int k = P[0] >= P[4] && P[0] >= P[8] ? 0 : P[4] >= P[8] ? 1 : 2;
    double length = sqrt(P[k] * P[k] + P[3 + k] * P[3 + k] + P[6 + k] * P[6 + k]);
    for (int i = 0; i < 3; i++)
        v[i] = P[3 * i + k] / length;
}

/* Two columns spanning the plane normal to p: eq. 13, by which U is continuous in p but where p_1 = 1. */
static void plane_of(const double p[3], double U[9]) {
    double s = sqrt(p[1] * p[1] + p[2] * p[2]);
    memset(U, 0, 9 * sizeof *U);
    if (s < 1e-12) {
        U[3] = U[7] = 1;
        return;
    }
    U[0] = s;
    U[3] = -p[0] * p[1] / s;
    U[6] = -p[0] * p[2] / s;
    double sign = p[2] > 0 || (p[2] == 0 && p[1] < 0) ? 1 : -1;
    U[4] = sign * p[2] / s;
    U[7] = -sign * p[1] / s;
}

int toile_basis_of(const double *S, double U[9]) {
    double trace = S[0] + S[5] + S[10], P[9], v[3];
    int rank = trace < 0.5   ? 0
               : trace < 1.5 ? 1
               : trace < 2.5 ? 2
                             : 3; /* not a number: 3, and found out later */
    memset(U, 0, 9 * sizeof *U);
    for (int k = 0; k < 9; k++)
        P[k] = rank == 1 ? S[4 * (k / 3) + k % 3] : (k % 4 == 0) - S[4 * (k / 3) + k % 3];
    if (rank == 3) {
        U[0] = U[4] = U[8] = 1;
    } else if (rank == 2) {
        axis_of(P, v);
        plane_of(v, U);
    } else if (rank == 1) {
        axis_of(P, v);
        for (int i = 0; i < 3; i++)
            U[3 * i] = v[i];
    }
    return rank;
}

/* ---- pattern ---- */

static int rank_of(const toile_reduced *r, int i) {
    return r->first[i + 1] - r->first[i];
}

static void build_pattern(toile_reduced *r) {
    const toile_pattern *p = r->pattern;
    int at = 0;
    for (int i = 0; i < p->n; i++)
        for (int a = 0; a < rank_of(r, i); a++) {
            r->begin[r->first[i] + a] = at;
            for (int c = a; c < rank_of(r, i); c++)
                r->row[at++] = r->first[i] + c;
            for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++)
                for (int c = 0; (!r->keep || r->keep[k]) && c < rank_of(r, p->column[k]); c++)
                    r->row[at++] = r->first[p->column[k]] + c;
        }
    r->size = r->first[p->n];
    r->begin[r->size] = at;
    r->structure++;
}

toile_status toile_reduced_make(toile_memory *memory, const toile_pattern *pattern, const unsigned char *keep,
                                bool fixed, toile_reduced *r, toile_error *error) {
    size_t n = (size_t)pattern->n, blocks = 0;
    for (int k = 0; k < pattern->off_count; k++)
        blocks += !keep || keep[k];
    size_t entries = 6 * n + 9 * blocks;
    *r = (toile_reduced){.memory = memory, .pattern = pattern, .keep = keep, .fixed = fixed};
    r->first = toile_alloc(memory, n + 1, sizeof(int));
    r->basis = toile_alloc(memory, 9 * n, sizeof(double));
    r->begin = toile_alloc(memory, 3 * n + 1, sizeof(int));
    r->row = toile_alloc(memory, entries, sizeof(int));
    r->value = toile_alloc(memory, entries, sizeof(double));
    r->scratch = toile_alloc(memory, 4 * n, sizeof(double));
    if (!r->first || !r->basis || !r->begin || !r->row || !r->value || !r->scratch) {
        toile_reduced_free(r);
        return toile_fail_memory(error, "the reduced system of the linear solver");
    }
    for (int i = 0; i <= pattern->n; i++)
        r->first[i] = 3 * i;
    build_pattern(r);
    return TOILE_OK;
}

void toile_reduced_free(toile_reduced *r) {
    if (!r->memory)
        return;
    void *blocks[] = {r->first, r->basis, r->begin, r->row, r->value, r->scratch};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(r->memory, blocks[i]);
    memset(r, 0, sizeof *r);
}

void toile_reduced_constrain(toile_reduced *r, const toile_constraints *c) {
    static const double IDENTITY[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    bool changed = false;
    int row = 0;
    for (int i = 0, k = 0; i < r->pattern->n; i++) {
        double *U = r->basis + 9 * (size_t)i;
        int rank = 3;
        if (k == c->count || c->particle[k] != i) {
            memcpy(U, IDENTITY, sizeof IDENTITY);
        } else {
            const double *S = c->filter + 12 * (size_t)k++;
            if (r->fixed) {
                for (int e = 0; e < 9; e++)
                    U[e] = S[4 * (e / 3) + e % 3];
            } else {
                rank = toile_basis_of(S, U);
            }
        }
        int next = r->first[i + 1];
        changed |= r->first[i] != row || next != row + rank;
        r->first[i] = row;
        row += rank;
    }
    r->first[r->pattern->n] = row;
    if (changed)
        build_pattern(r);
}

/* ---- values ---- */

void toile_project(const double *U, const double *B, const double *V, double *T) {
    double W[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            W[3 * i + j] = B[3 * i] * V[j] + B[3 * i + 1] * V[3 + j] + B[3 * i + 2] * V[6 + j];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            T[3 * i + j] = U[i] * W[j] + U[3 + i] * W[3 + j] + U[6 + i] * W[6 + j];
}

static bool is_identity(const double *U) {
    return U[0] == 1 && U[4] == 1 && U[8] == 1;
}

static void fill_particle(toile_reduced *r, int i, const double *diagonal, const double *off) {
    const toile_pattern *p = r->pattern;
    const double *A = diagonal + 12 * (size_t)i, *U = r->basis + 9 * (size_t)i;
    bool free = is_identity(U);
    int rank = rank_of(r, i);
    int at[3] = {0, 0, 0};
    double B[9] = {A[0], A[1], A[2], A[4], A[5], A[6], A[8], A[9], A[10]}, T[9];
    for (int a = 0; a < rank; a++)
        at[a] = r->begin[r->first[i] + a];
    if (!free) {
        double sigma = (B[0] + B[4] + B[8]) / 3;
        toile_project(U, B, U, T);
        for (int k = 0; k < 9; k++)
            B[k] = T[k] + (r->fixed ? sigma * ((k % 4 == 0) - U[k]) : 0);
    }
    for (int a = 0; a < rank; a++)
        for (int c = a; c < rank; c++)
            r->value[at[a]++] = B[3 * a + c];
    for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++) {
        if (r->keep && !r->keep[k])
            continue;
        const double *O = off + 9 * (size_t)k, *V = r->basis + 9 * (size_t)p->column[k];
        int columns = rank_of(r, p->column[k]);
        if (!free || !is_identity(V)) {
            toile_project(U, O, V, T);
            O = T;
        }
        for (int a = 0; a < rank; a++)
            for (int c = 0; c < columns; c++)
                r->value[at[a]++] = O[3 * a + c];
    }
}

void toile_reduced_fill(toile_reduced *r, const double *diagonal, const double *off, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (int i = 0; i < r->pattern->n; i++)
        fill_particle(r, i, diagonal, off);
}

void toile_reduced_restrict(const toile_reduced *r, const double *x, double *y) {
    for (int i = 0; i < r->pattern->n; i++) {
        const double *U = r->basis + 9 * (size_t)i, *xi = x + 4 * (size_t)i;
        double *yi = y + r->first[i];
        for (int a = 0; a < rank_of(r, i); a++)
            yi[a] = U[a] * xi[0] + U[3 + a] * xi[1] + U[6 + a] * xi[2];
    }
}

int64_t toile_reduced_right_side(toile_reduced *r, const toile_kernels *kernels, const toile_matrix *matrix,
                                 const toile_constraints *constraints, const double *b, double *right, int threads) {
    if (!constraints->count) {
        toile_reduced_restrict(r, b, right);
        return 0;
    }
    toile_multiply(kernels, matrix, constraints->z, r->scratch, threads);
    for (size_t i = 0; i < 4 * (size_t)r->pattern->n; i++)
        r->scratch[i] = b[i] - r->scratch[i];
    toile_reduced_restrict(r, r->scratch, right);
    return r->pattern->n;
}

void toile_reduced_expand(const toile_reduced *r, const double *z, const double *y, double *x) {
    for (int i = 0; i < r->pattern->n; i++) {
        const double *U = r->basis + 9 * (size_t)i, *yi = y + r->first[i];
        double *xi = x + 4 * (size_t)i, t[3] = {0};
        if (z)
            memcpy(t, z + 4 * (size_t)i, sizeof t);
        for (int a = 0; a < rank_of(r, i); a++)
            for (int k = 0; k < 3; k++)
                t[k] += U[3 * k + a] * yi[a];
        memcpy(xi, t, sizeof t);
        xi[3] = 0;
    }
}
