#include "solve_linear.h"

#include <math.h>
#include <string.h>

bool toile_invert_block(const double *B, double *R) {
    double a = B[0], b = B[1], c = B[2], d = B[5], e = B[6], f = B[10];
    double A = d * f - e * e, D = a * f - c * c, F = a * d - b * b;
    double Bc = c * e - b * f, C = b * e - c * d, E = b * c - a * e;
    double det = a * A + b * Bc + c * C;
    if (!(det > 0) || !(a > 0))
        return false;
    double s = 1 / det;
    /* written one by one: copied from an array, every copy waits for the numbers that were just put there */
    R[0] = A * s, R[1] = R[4] = Bc * s, R[2] = R[8] = C * s;
    R[5] = D * s, R[6] = R[9] = E * s, R[10] = F * s;
    R[3] = R[7] = R[11] = 0;
    return true;
}

/* R = X Y for blocks in rows of four. */
static void times(const double *X, const double *Y, double *R) {
    double r[12] = {0};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            r[4 * i + j] = X[4 * i] * Y[j] + X[4 * i + 1] * Y[4 + j] + X[4 * i + 2] * Y[8 + j];
    memcpy(R, r, sizeof r);
}

static void sandwich(const double *S, double *B) {
    double t[12];
    times(S, B, t);
    times(t, S, B);
}

static void inverse_block(const double *C, int preconditioner, double *R) {
    static const double IDENTITY[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    memcpy(R, IDENTITY, sizeof IDENTITY);
    if (preconditioner == TOILE_PRECONDITIONER_NONE)
        return;
    if (preconditioner == TOILE_PRECONDITIONER_DIAGONAL || !toile_invert_block(C, R))
        for (int k = 0; k < 3; k++)
            R[5 * k] = 1 / C[5 * k];
}

void toile_precondition(toile_solve *solve, int preconditioner) {
    const toile_constraints *c = solve->constraints;
    int n = solve->matrix->pattern->n;
#pragma omp parallel for schedule(static) num_threads(solve->threads) if (solve->threads > 1)
    for (int i = 0; i < n; i++)
        inverse_block(solve->matrix->diagonal + 12 * (size_t)i, preconditioner, solve->inverse + 12 * (size_t)i);
    for (int k = 0; k < c->count; k++) {
        size_t i = 12 * (size_t)c->particle[k];
        const double *S = c->filter + 12 * (size_t)k;
        double *R = solve->inverse + i;
        if (preconditioner >= TOILE_PRECONDITIONER_CONSTRAINED) {
            /* (S C S + (I - S))^-1: the inverse of S C + (I - S) on the range of S, and symmetric */
            double P[12];
            memcpy(P, solve->matrix->diagonal + i, sizeof P);
            double scale = (P[0] + P[5] + P[10]) / 3; /* in place of 1, so that the block is well scaled */
            sandwich(S, P);
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++)
                    P[4 * a + b] += scale * ((a == b) - S[4 * a + b]);
            inverse_block(P, preconditioner, R);
        }
        sandwich(S, R);
    }
}

void toile_multiply(const toile_kernels *kernels, const toile_matrix *matrix, const double *x, double *y, int threads) {
    int chunks = matrix->pattern->chunk_count;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
#pragma omp for schedule(static)
        for (int c = 0; c < chunks; c++)
            kernels->multiply(matrix, c, x, y);
#pragma omp for schedule(static)
        for (int c = 0; c < chunks; c++)
            kernels->multiply_spill(matrix, c, y);
    }
}
