/* Block incomplete Cholesky in a fixed pattern (fast_pattern.c), A ~ L D L', in single precision: it only steers the iteration.
 *
 * Constraints are in the factored matrix, S A S + s (I - S), so the answer stays in the range of S and the pattern never
 * changes. With fill dropped a pivot can fail; then the diagonal is raised and all is factored again (Manteuffel 1980). */
#include "fast_kernels.h"

typedef struct block {
    f4 r[3];
} block;

TOILE_INLINE block load_block(const float *p) {
    return (block){{f4_load(p), f4_load(p + 4), f4_load(p + 8)}};
}

TOILE_INLINE void store_block(float *p, block b) {
    f4_store(p, b.r[0]);
    f4_store(p + 4, b.r[1]);
    f4_store(p + 8, b.r[2]);
}

/* X Y */
TOILE_INLINE block times(block X, block Y) {
    block R;
    for (int i = 0; i < 3; i++)
        R.r[i] = f4_rows(Y.r[0], Y.r[1], Y.r[2], X.r[i]);
    return R;
}

/* T - X' Y */
TOILE_INLINE block minus_transposed_times(block T, block X, block Y) {
    for (int i = 0; i < 3; i++)
        T.r[i] -= f4_set(X.r[0][i]) * Y.r[0] + f4_set(X.r[1][i]) * Y.r[1] + f4_set(X.r[2][i]) * Y.r[2];
    return T;
}

TOILE_INLINE block filter_of(const toile_constraints *c, int constraint) {
    const double *S = c->filter + 12 * (size_t)constraint;
    block R;
    for (int i = 0; i < 3; i++)
        R.r[i] = (f4){(float)S[4 * i], (float)S[4 * i + 1], (float)S[4 * i + 2], 0};
    return R;
}

/* Inverse of a symmetric block, in double; false unless it is clearly positive definite against `size`. */
TOILE_INLINE bool invert(block B, double size, block *R) {
    double a = B.r[0][0], b = B.r[0][1], c = B.r[0][2], d = B.r[1][1], e = B.r[1][2], f = B.r[2][2];
    double A = d * f - e * e, Bc = c * e - b * f, C = b * e - c * d, det = a * A + b * Bc + c * C;
    double least = 1e-7 * size, minor = a * d - b * b;
    if (!(a > least) || !(minor > least * a) || !(det > least * minor))
        return false;
    double s = 1 / det;
    R->r[0] = (f4){(float)(A * s), (float)(Bc * s), (float)(C * s), 0};
    R->r[1] = (f4){(float)(Bc * s), (float)((a * f - c * c) * s), (float)((b * c - a * e) * s), 0};
    R->r[2] = (f4){(float)(C * s), (float)((b * c - a * e) * s), (float)(minor * s), 0};
    return true;
}

/* The block to a later row as the elements give it: the stretch connection alone, or the matrix's block. */
TOILE_INLINE block source_block(const toile_fast *f, int k) {
    const toile_fast_pattern *p = &f->pattern;
    if (f->spring) {
        block R = {{f4_set(0), f4_set(0), f4_set(0)}};
        for (int s = p->source_begin[k]; s < p->source_begin[k + 1]; s++) {
            const float *w = f->spring + 4 * (size_t)p->source[s];
            f4 u = f4_clean(f4_load(w));
            R.r[0] -= u * f4_set(w[0]) + (f4){w[3], 0, 0, 0};
            R.r[1] -= u * f4_set(w[1]) + (f4){0, w[3], 0, 0};
            R.r[2] -= u * f4_set(w[2]) + (f4){0, 0, w[3], 0};
        }
        return R;
    }
    if (p->source_begin[k] == p->source_begin[k + 1])
        return (block){{f4_set(0), f4_set(0), f4_set(0)}};
    int source = p->source[p->source_begin[k]];
    const float *O = (f->core ? f->core : f->off) + 9 * (size_t)(source < 0 ? -1 - source : source);
    if (source >= 0)
        return (block){{f4_clean(f4_loose(O)), f4_clean(f4_loose(O + 3)), f4_clean(f4_loose(O + 6))}};
    return (block){{(f4){O[0], O[3], O[6], 0}, (f4){O[1], O[4], O[7], 0}, (f4){O[2], O[5], O[8], 0}}};
}

/* S A S + s (I - S) with the diagonal raised, positions [begin, end). */
static void fill(const toile_fast *f, const toile_constraints *constraints, double shift, int begin, int end) {
    const toile_fast_pattern *p = &f->pattern;
    float raise = (float)(1 + (shift < TOILE_SHIFT_LAST ? shift : TOILE_SHIFT_FIRST));
    for (int at = begin; at < end; at++) {
        int i = p->row[at], own = f->constraint_of[i];
        block D = load_block(f->diagonal + 12 * (size_t)i), S = {{f4_set(0)}};
        if (own >= 0) {
            S = filter_of(constraints, own);
            float scale = (D.r[0][0] + D.r[1][1] + D.r[2][2]) / 3;
            D = times(times(S, D), S);
            for (int a = 0; a < 3; a++) {
                D.r[a] -= f4_set(scale) * S.r[a];
                D.r[a][a] += scale;
            }
        }
        D.r[0] *= (f4){raise, 1, 1, 1}, D.r[1] *= (f4){1, raise, 1, 1}, D.r[2] *= (f4){1, 1, raise, 1};
        store_block(f->work_diagonal + 12 * (size_t)i, D);
        for (int k = p->begin[at]; k < p->begin[at + 1]; k++) {
            block O = source_block(f, k);
            int other = f->constraint_of[p->column[k]];
            if (own >= 0)
                O = times(S, O);
            if (other >= 0)
                O = times(O, filter_of(constraints, other));
            store_block(f->work_off + 12 * (size_t)k, O);
        }
    }
}

/* Rows where streams meet get updates from each; those of the second stream are kept apart until it is done. */
TOILE_INLINE float *target_of(const toile_fast *f, int stream, int target) {
    const toile_fast_pattern *p = &f->pattern;
    int middle = p->stream_begin[TOILE_STREAMS];
    if (target < p->n) {
        int first = p->stream_begin[1], count = p->n - middle;
        bool apart = stream == 1 && target >= first && target < first + count;
        return apart ? f->meet_diagonal + 12 * (size_t)(target - first) : f->work_diagonal + 12 * (size_t)target;
    }
    int k = target - p->n, first = p->begin[middle];
    return stream == 1 && k >= first ? f->meet_off + 12 * (size_t)(k - first) : f->work_off + 12 * (size_t)k;
}

/* Fill -X' W between two rows that the pattern has no block for is put on both diagonals instead, so that the factor keeps what
 * the matrix does to cloth that moves as a whole (Gustafsson 1978, relaxed): all of what adds to them, which makes up for what
 * the factor loses and can only make it more definite, and half of what takes off (measured 0, 0.5, 0.8, 0.9 beside the coarse
 * level; without that, more is better). Where a pivot fails for it all is done again without; with bends, of which much is
 * dropped, only without what takes off. On chains of stretch it failed on nearly every sheet and where it held took as many
 * iterations (161 x 161, 60 N/m: 12.9 instead of 12.7): there fill is dropped. */
#define FILL_KEPT 0.5f
TOILE_INLINE void add_to_diagonals(const toile_fast *f, int stream, int i, int j, block X, block W, bool plain) {
    if (f->pattern.chains || (plain && !f->pattern.bends))
        return;
    block F = minus_transposed_times((block){{f4_set(0), f4_set(0), f4_set(0)}}, X, W);
    float xy = 0.5f * (F.r[0][1] + F.r[1][0]), xz = 0.5f * (F.r[0][2] + F.r[2][0]), yz = 0.5f * (F.r[1][2] + F.r[2][1]);
    bool adds = F.r[0][0] + F.r[1][1] + F.r[2][2] > 0; /* of hinges; chains of stretch give blocks that do both */
    if (plain && !adds)
        return;
    f4 kept = f4_set(adds ? 1 : FILL_KEPT);
    float *rows[2] = {target_of(f, stream, i), target_of(f, stream, j)};
    for (int k = 0; k < 2; k++) {
        block D = load_block(rows[k]);
        D.r[0] += kept * (f4){F.r[0][0], xy, xz, 0};
        D.r[1] += kept * (f4){xy, F.r[1][1], yz, 0};
        D.r[2] += kept * (f4){xz, yz, F.r[2][2], 0};
        store_block(rows[k], D);
    }
}

/* The last resort: what row k and row j of the eliminated row's blocks Y and X gave to their diagonals is given back, so that with
 * the dropped -X' D^-1 Y a positive semi-definite matrix is added, [X Y]' D^-1 [X Y], and no pivot can fail (in blocks what Ajiz and
 * Jennings 1984 do). */
TOILE_INLINE void give_back(const toile_fast *f, int stream, int i, block X, block I) {
    float *row = target_of(f, stream, i);
    block D = load_block(row), W = times(I, X);
    for (int a = 0; a < 3; a++)
        D.r[a] += f4_set(X.r[0][a]) * W.r[0] + f4_set(X.r[1][a]) * W.r[1] + f4_set(X.r[2][a]) * W.r[2];
    store_block(row, D);
}

bool TOILE_KERNEL(toile_fast_factor)(const toile_fast *f, const toile_constraints *constraints, double shift, int stream) {
    const toile_fast_pattern *p = &f->pattern;
    int begin = p->stream_begin[stream], end = p->stream_begin[stream + 1], middle = p->stream_begin[TOILE_STREAMS];
    int met = p->n - middle, met_off = p->off_count - p->begin[middle];
    if (stream == 0) /* the first stream fills for the middle */
        fill(f, constraints, shift, middle, p->n);
    if (stream == 1) {
        memset(f->meet_diagonal, 0, 12 * (size_t)met * sizeof(float));
        memset(f->meet_off, 0, 12 * (size_t)met_off * sizeof(float));
    }
    if (stream < TOILE_STREAMS) {
        fill(f, constraints, shift, begin, end);
    } else {
        for (size_t k = 0; k < 12 * (size_t)met; k++)
            f->work_diagonal[12 * (size_t)p->stream_begin[1] + k] += f->meet_diagonal[k];
        for (size_t k = 0; k < 12 * (size_t)met_off; k++)
            f->work_off[12 * (size_t)p->begin[middle] + k] += f->meet_off[k];
    }
    for (int at = begin; at < end; at++) {
        int i = p->row[at];
        const float *A = f->diagonal + 12 * (size_t)i;
        block I;
        if (!invert(load_block(f->work_diagonal + 12 * (size_t)i), (double)A[0] + A[5] + A[10], &I))
            return false;
        store_block(f->inverse + 12 * (size_t)at, I);
        for (int k = p->begin[at]; k < p->begin[at + 1]; k++) {
            block W = times(I, load_block(f->work_off + 12 * (size_t)k));
            float *lower = f->lower + 9 * (size_t)k;
            f4_store_loose(lower, W.r[0]); /* fourth numbers are overwritten by the next row; after the last another stream may be */
            f4_store_loose(lower + 3, W.r[1]);
            for (int b = 0; b < 3; b++)
                lower[6 + b] = W.r[2][b];
            for (int u = p->update_begin[k]; u < p->update_begin[k + 1]; u++) {
                block X = load_block(f->work_off + 12 * (size_t)p->update_with[u]);
                if (p->update_target[u] < 0) {
                    int j = p->column[p->update_with[u]];
                    if (shift < TOILE_SHIFT_LAST) {
                        add_to_diagonals(f, stream, j, p->column[k], X, W, shift > 0);
                    } else {
                        give_back(f, stream, j, X, I);
                        give_back(f, stream, p->column[k], load_block(f->work_off + 12 * (size_t)k), I);
                    }
                    continue;
                }
                float *T = target_of(f, stream, p->update_target[u]);
                store_block(T, minus_transposed_times(load_block(T), X, W));
            }
        }
    }
    return true;
}

/* L D y = q in place (q is L^-1 q, then D^-1 of it); streams 0 and 1 side by side, then the middle as stream 2. Gives the stream's
 * part of q' P^-1 q = q' L^-T D^-1 L^-1 q. */
double TOILE_KERNEL(toile_fast_forward)(const toile_fast *f, int stream, float *q) {
    const toile_fast_pattern *p = &f->pattern;
    int middle_row = p->stream_begin[1], middle = p->stream_begin[TOILE_STREAMS];
    size_t met = (size_t)(p->n - middle);
    v4 norm2 = v4_set(0);
    float *meet = stream == 1 ? f->meet_vector - 4 * (ptrdiff_t)middle_row : q;
    if (stream == 1)
        memset(f->meet_vector, 0, 4 * met * sizeof(float));
    if (stream == TOILE_STREAMS)
        for (size_t k = 0; k < 4 * met; k += 4) {
            float *y = q + 4 * (size_t)middle_row + k;
            f4_store(y, f4_load(y) + f4_load(f->meet_vector + k));
        }
    for (int at = p->stream_begin[stream]; at < p->stream_begin[stream + 1]; at++) {
        float *own = q + 4 * (size_t)p->row[at];
        f4 y = f4_load(own), y0 = f4_set(y[0]), y1 = f4_set(y[1]), y2 = f4_set(y[2]);
        const float *W = f->lower + 9 * (size_t)p->begin[at];
        int k = p->begin[at];
        for (; k < p->split[at]; k++, W += 9) {
            float *to = q + 4 * (size_t)p->column[k];
            f4_store(to, f4_load(to) - (f4_loose(W) * y0 + f4_loose(W + 3) * y1 + f4_loose(W + 6) * y2));
        }
        for (; k < p->begin[at + 1]; k++, W += 9) {
            float *to = meet + 4 * (ptrdiff_t)p->column[k];
            f4_store(to, f4_load(to) - (f4_loose(W) * y0 + f4_loose(W + 3) * y1 + f4_loose(W + 6) * y2));
        }
        const float *I = f->inverse + 12 * (size_t)at;
        f4 done = f4_load(I) * y0 + f4_load(I + 4) * y1 + f4_load(I + 8) * y2, part = y * done;
        f4_store(own, done);
        norm2 += (v4){part[0], part[1], part[2], part[3]};
    }
    return v4_sum(norm2);
}

/* L' x = q in place: the middle first, then the streams. */
void TOILE_KERNEL(toile_fast_backward)(const toile_fast *f, int stream, float *q) {
    const toile_fast_pattern *p = &f->pattern;
    for (int at = p->stream_begin[stream + 1] - 1; at >= p->stream_begin[stream]; at--) {
        f4 r0 = f4_set(0), r1 = r0, r2 = r0;
        const float *W = f->lower + 9 * (size_t)p->begin[at + 1];
        for (int k = p->begin[at + 1] - 1; k >= p->begin[at]; k--) { /* the row that was done last comes last: all else is ready */
            W -= 9;
            f4 x = f4_load(q + 4 * (size_t)p->column[k]);
            r0 += f4_loose(W) * x;
            r1 += f4_loose(W + 3) * x;
            r2 += f4_loose(W + 6) * x;
        }
        float *own = q + 4 * (size_t)p->row[at];
        f4_store(own, f4_load(own) - f4_sums(r0, r1, r2));
    }
}
