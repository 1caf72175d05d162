/* Block incomplete Cholesky without fill, chunk by chunk: a preconditioner that cuts the iterations of MPCG several times.
 *
 * Each chunk of rows (model.h) is factored on its own, so chunks run in parallel and give the same bits for any number of
 * threads; what couples chunks is left to the iteration. Within a chunk A ~ L D L' in 3x3 blocks on the pattern of A. Rows
 * are in RCM order, without which this kind of factor is worth little. Constraints are in the factored matrix:
 * S A S + s (I - S), so that the answer stays in the range of S. The factor is kept in single precision: it only steers.
 *
 * Without fill a pivot can fail on irregular meshes; then the diagonal is raised and the chunk factored again (Manteuffel
 * 1980). The raise starts anew every time, because one that were remembered would have to be part of the state. */
#include "kernels_table.h"

/* A raise beyond the last makes the factor no better than diagonal blocks, at twice the price (measured on 161 x 161
 * triangle sheets); then all chunks go without, because a mixture is worse than either. */
#define SHIFT_FIRST 1e-3
#define SHIFT_LAST 2e-2

typedef float f4 __attribute__((vector_size(16)));
typedef float f4u __attribute__((vector_size(16), aligned(4)));

TOILE_INLINE f4 f4_row(const float *p) {
    typedef int i4 __attribute__((vector_size(16)));
    const i4 mask = {-1, -1, -1, 0};
    return (f4)((i4)(f4) * (const f4u *)p & mask);
}

TOILE_INLINE f4 f4_set(float a) {
    return (f4){a, a, a, a};
}

TOILE_INLINE float f4_sum(f4 a) {
    return (a[0] + a[1]) + (a[2] + a[3]);
}

/* R = X' Y for 3x3 blocks, subtracted from T. */
TOILE_INLINE void subtract_product(const double *X, const double *Y, double *T) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            T[3 * i + j] -= X[i] * Y[j] + X[3 + i] * Y[3 + j] + X[6 + i] * Y[6 + j];
}

TOILE_INLINE void product(const double *X, const double *Y, double *R) {
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            R[3 * i + j] = X[3 * i] * Y[j] + X[3 * i + 1] * Y[3 + j] + X[3 * i + 2] * Y[6 + j];
}

/* Inverse of a symmetric block; false unless it is clearly positive definite against `size`. */
static bool invert(const double *B, double size, double *R) {
    double a = B[0], b = B[1], c = B[2], d = B[4], e = B[5], f = B[8];
    double A = d * f - e * e, Bc = c * e - b * f, C = b * e - c * d, det = a * A + b * Bc + c * C;
    double least = 1e-8 * size;
    if (!(a > least) || !(a * d - b * b > least * least) || !(det > least * least * least))
        return false;
    R[0] = A / det, R[1] = R[3] = Bc / det, R[2] = R[6] = C / det;
    R[4] = (a * f - c * c) / det, R[5] = R[7] = (b * c - a * e) / det, R[8] = (a * d - b * b) / det;
    return true;
}

/* The rows of a chunk into w: S A S + s (I - S), diagonal raised by `shift`. */
static void copy_chunk(const toile_solve *solve, int chunk, double shift, const int *constraint_of) {
    const toile_pattern *p = solve->matrix->pattern;
    toile_factor *f = solve->factor;
    for (int i = p->chunk_begin[chunk]; i < p->chunk_begin[chunk + 1]; i++) {
        const double *A = solve->matrix->diagonal + 12 * (size_t)i;
        double *D = f->work_diagonal + 9 * (size_t)i, S[9] = {0}, T[9];
        for (int k = 0; k < 9; k++)
            D[k] = A[4 * (k / 3) + k % 3];
        const double *filter = constraint_of[i] >= 0 ? solve->constraints->filter + 12 * (size_t)constraint_of[i] : NULL;
        if (filter) {
            double scale = (D[0] + D[4] + D[8]) / 3;
            for (int k = 0; k < 9; k++)
                S[k] = filter[4 * (k / 3) + k % 3];
            product(S, D, T);
            product(T, S, D);
            for (int k = 0; k < 9; k++)
                D[k] += scale * ((k % 4 == 0) - S[k]);
        }
        for (int k = 0; k < 9; k += 4)
            D[k] *= 1 + shift;
        for (int k = p->row_begin[i]; k < p->row_split[i]; k++) {
            double *O = f->work_off + 9 * (size_t)k;
            memcpy(O, solve->matrix->off + 9 * (size_t)k, 9 * sizeof *O);
            int other = constraint_of[p->column[k]];
            if (filter) {
                product(S, O, T);
                memcpy(O, T, sizeof T);
            }
            if (other >= 0) {
                const double *right = solve->constraints->filter + 12 * (size_t)other;
                double R[9];
                for (int c = 0; c < 9; c++)
                    R[c] = right[4 * (c / 3) + c % 3];
                product(O, R, T);
                memcpy(O, T, sizeof T);
            }
        }
    }
}

/* Eliminates row by row; the updates that stay on the pattern were listed with the model. */
static bool factor_rows(const toile_solve *solve, int chunk) {
    const toile_pattern *p = solve->matrix->pattern;
    toile_factor *f = solve->factor;
    for (int i = p->chunk_begin[chunk]; i < p->chunk_begin[chunk + 1]; i++) {
        double *D = f->work_diagonal + 9 * (size_t)i, I[9], scaled[9];
        const double *A = solve->matrix->diagonal + 12 * (size_t)i;
        if (!invert(D, A[0] + A[5] + A[10], I))
            return false;
        for (int k = 0; k < 9; k++)
            f->diagonal[9 * (size_t)i + (size_t)k] = (float)I[k];
        for (int k = p->row_begin[i]; k < p->row_split[i]; k++) {
            const double *O = f->work_off + 9 * (size_t)k;
            for (int c = 0; c < 9; c++)
                f->off[9 * (size_t)k + (size_t)c] = (float)O[c];
            product(I, O, scaled); /* D^-1 O_ik: row k of the update below */
            for (int u = p->update_begin[k]; u < p->update_begin[k + 1]; u++) {
                int with = p->update_with[u], target = p->update_target[u];
                double *T = target < p->n ? f->work_diagonal + 9 * (size_t)target : f->work_off + 9 * (size_t)(target - p->n);
                /* A_jk -= O_ij' D^-1 O_ik, j the column of `with`, j <= k */
                subtract_product(f->work_off + 9 * (size_t)with, scaled, T);
            }
        }
    }
    return true;
}

bool TOILE_KERNEL(toile_factor)(toile_solve *solve, int chunk, const int *constraint_of) {
    bool done = false;
    for (double shift = SHIFT_FIRST; !done && shift <= SHIFT_LAST; shift *= 4) {
        copy_chunk(solve, chunk, shift, constraint_of);
        done = factor_rows(solve, chunk);
    }
    return done;
}

/* q = (L D L')^-1 r in the rows of a chunk. */
void TOILE_KERNEL(toile_apply_factor)(const toile_solve *solve, int chunk, const double *r, double *q) {
    const toile_pattern *p = solve->matrix->pattern;
    const toile_factor *f = solve->factor;
    int begin = p->chunk_begin[chunk], end = p->chunk_begin[chunk + 1];
    float *y = f->vector; /* rows of four, by particle: chunks do not meet */
    double scale = 0;     /* single precision has its range: work with numbers near 1 */
    for (size_t i = 4 * (size_t)begin; i < 4 * (size_t)end; i++)
        scale = fabs(r[i]) > scale ? fabs(r[i]) : scale;
    double inverse_scale = scale > 0 ? 1 / scale : 0;
    for (size_t i = 4 * (size_t)begin; i < 4 * (size_t)end; i++)
        y[i] = (float)(r[i] * inverse_scale);
    for (int i = begin; i < end; i++) {
        const float *I = f->diagonal + 9 * (size_t)i;
        float *yi = y + 4 * (size_t)i;
        f4 t = f4_row(I) * f4_set(yi[0]) + f4_row(I + 3) * f4_set(yi[1]) + f4_row(I + 6) * f4_set(yi[2]);
        *(f4 *)yi = t;
        f4 t0 = f4_set(t[0]), t1 = f4_set(t[1]), t2 = f4_set(t[2]);
        for (int k = p->row_begin[i]; k < p->row_split[i]; k++) {
            const float *O = f->off + 9 * (size_t)k;
            f4 *yj = (f4 *)(y + 4 * (size_t)p->column[k]);
            *yj -= f4_row(O) * t0 + f4_row(O + 3) * t1 + f4_row(O + 6) * t2;
        }
    }
    for (int i = end - 1; i >= begin; i--) {
        f4 r0 = f4_set(0), r1 = f4_set(0), r2 = f4_set(0);
        for (int k = p->row_begin[i]; k < p->row_split[i]; k++) {
            const float *O = f->off + 9 * (size_t)k;
            f4 yj = *(const f4 *)(y + 4 * (size_t)p->column[k]);
            r0 += f4_row(O) * yj;
            r1 += f4_row(O + 3) * yj;
            r2 += f4_row(O + 6) * yj;
        }
        const float *I = f->diagonal + 9 * (size_t)i;
        float *yi = y + 4 * (size_t)i;
        f4 *z = (f4 *)yi;
        *z -= f4_row(I) * f4_set(f4_sum(r0)) + f4_row(I + 3) * f4_set(f4_sum(r1)) + f4_row(I + 6) * f4_set(f4_sum(r2));
        v4_store(q + 4 * (size_t)i, (v4){scale * yi[0], scale * yi[1], scale * yi[2], 0});
    }
}
