/* Products of the fast solver: y = A x in single precision, and the same in double from the springs' records. */
#include "fast_kernels.h"

/* Two connections from a row, x of it twice: K d of each, d the difference of their ends, is taken off the other ends and
 * given back. */
TOILE_INLINE f8 pull_pair(const float *link, const int *column, f8 xi, const float *x, float *target) {
    ptrdiff_t a = 4 * (ptrdiff_t)column[0], b = 4 * (ptrdiff_t)column[1];
    f8 w = *(const f8 *)link, d = xi - f8_join(f4_load(x + a), f4_load(x + b)), t = w * d;
    t += __builtin_shufflevector(t, t, 1, 0, 3, 2, 5, 4, 7, 6);
    t += __builtin_shufflevector(t, t, 2, 3, 0, 1, 6, 7, 4, 5);
    f8 pull = f8_clean(w) * t + __builtin_shufflevector(w, w, 3, 3, 3, 3, 7, 7, 7, 7) * d;
    f4_store(target + a, f4_load(target + a) - __builtin_shufflevector(pull, pull, 0, 1, 2, 3));
    f4_store(target + b, f4_load(target + b) - __builtin_shufflevector(pull, pull, 4, 5, 6, 7));
    return pull;
}

/* Springs, each once, from the lower of its rows: A x = M x + sum over links of w (w . (x_i - x_j)) + across (x_i - x_j). Eight
 * numbers at a time: wider vectors than the processor has are taken apart on the stack by compilers, ten times slower. */
static void multiply_links(const toile_fast *f, const toile_pattern *pattern, int chunk, const float *x, float *y) {
    const toile_fast_pattern *p = &f->pattern;
    int begin = pattern->chunk_begin[chunk], end = pattern->chunk_begin[chunk + 1];
    float *spill = f->spill + 4 * (size_t)pattern->spill_begin[chunk];
    memset(y + 4 * (size_t)begin, 0, 4 * (size_t)(end - begin) * sizeof(float));
    memset(spill, 0, 4 * (size_t)pattern->spill_count[chunk] * sizeof(float));
    for (int i = begin; i < end; i++) {
        const float *M = f->inertia + 12 * (size_t)i;
        f4 own = f4_load(x + 4 * (size_t)i);
        f8 xi = f8_join(own, own), sum = {0};
        int k = p->half_begin[i];
        for (; k < p->half_split[i]; k += 2)
            sum += pull_pair(f->link + 4 * (size_t)k, p->half_column + k, xi, x, y);
        for (; k < p->half_begin[i + 1]; k += 2)
            sum += pull_pair(f->link + 4 * (size_t)k, p->half_column + k, xi, x, spill - 4 * (ptrdiff_t)end);
        own = f4_rows(f4_load(M), f4_load(M + 4), f4_load(M + 8), own) + f8_fold(sum);
        f4_store(y + 4 * (size_t)i, f4_load(y + 4 * (size_t)i) + own);
    }
}

/* Blocks of the upper half, each used twice; see matrix.c. The fourth numbers of y are loose until the spill is added. */
TOILE_INLINE void multiply_blocks(const toile_fast *f, const toile_live *live, const toile_pattern *p, int chunk, const float *x,
                                  float *y) {
    int begin = p->chunk_begin[chunk], end = p->chunk_begin[chunk + 1];
    float *spill = f->spill + 4 * (size_t)p->spill_begin[chunk];
    memset(y + 4 * (size_t)begin, 0, 4 * (size_t)(end - begin) * sizeof(float));
    memset(spill, 0, 4 * (size_t)p->spill_count[chunk] * sizeof(float));
    for (int i = begin; i < end; i++) {
        const float *D = f->diagonal + 12 * (size_t)i;
        f4 xi = f4_load(x + 4 * (size_t)i), x0 = f4_set(xi[0]), x1 = f4_set(xi[1]), x2 = f4_set(xi[2]);
        f4 r0 = f4_set(0), r1 = r0, r2 = r0;
        f4 own = f4_load(D) * x0 + f4_load(D + 4) * x1 + f4_load(D + 8) * x2;
        for (int half = 0; half < 2; half++) {
            int from, to;
            toile_live_range(live, p, i, half, &from, &to);
            float *target = half ? spill - 4 * (ptrdiff_t)end : y;
            for (int at = from; at < to; at++) {
                int k = toile_live_block(live, at);
                ptrdiff_t j = 4 * (ptrdiff_t)p->column[k];
                const float *O = f->off + 9 * (size_t)k;
                f4 o0 = f4_loose(O), o1 = f4_loose(O + 3), o2 = f4_loose(O + 6), xj = f4_load(x + j);
                r0 += o0 * xj;
                r1 += o1 * xj;
                r2 += o2 * xj;
                f4_store(target + j, f4_load(target + j) + (o0 * x0 + o1 * x1 + o2 * x2));
            }
        }
        own += (f4){f4_sum(r0), f4_sum(r1), f4_sum(r2), 0};
        f4_store(y + 4 * (size_t)i, f4_load(y + 4 * (size_t)i) + own);
    }
}

void TOILE_KERNEL(toile_fast_multiply)(const toile_fast *f, const toile_pattern *p, int chunk, const float *x, float *y) {
    if (f->spring)
        multiply_links(f, p, chunk, x, y);
    else if (f->live)
        multiply_blocks(f, f->live, p, chunk, x, y);
    else
        multiply_blocks(f, NULL, p, chunk, x, y);
}

void TOILE_KERNEL(toile_fast_multiply_spill)(const toile_fast *f, const toile_pattern *p, int chunk, float *y) {
    int begin = p->chunk_begin[chunk], end = p->chunk_begin[chunk + 1];
    for (int c = 0; c < chunk; c++) {
        int first = p->chunk_begin[c + 1], last = first + p->spill_count[c];
        for (int i = first > begin ? first : begin; i < (last < end ? last : end); i++) {
            float *yi = y + 4 * (size_t)i;
            f4_store(yi, f4_load(yi) + f4_load(f->spill + 4 * (size_t)(p->spill_begin[c] + i - first)));
        }
    }
    for (int i = begin; i < end && !f->spring; i++)
        f4_store(y + 4 * (size_t)i, f4_clean(f4_load(y + 4 * (size_t)i)));
}

/* Row i of y = A x in double, from the springs' records; A's diagonal blocks are assembled. */
TOILE_INLINE void multiply_row(const toile_fast_pattern *p, const toile_matrix *a, const double *record, int i, const double *x,
                               double *y) {
    const double *D = a->diagonal + 12 * (size_t)i;
    v4 xi = v4_load(x + 4 * (size_t)i), sum = v4_set(0);
    v4 own = v4_load(D) * v4_set(xi[0]) + v4_load(D + 4) * v4_set(xi[1]) + v4_load(D + 8) * v4_set(xi[2]);
    for (int k = p->link_begin[i]; k < p->link_begin[i + 1]; k++) {
        const double *r = record + (size_t)p->link_spring[k] * TOILE_SPRING_RECORD;
        v4 u = v4_row(r), xj = v4_load(x + 4 * (size_t)p->link_column[k]);
        sum += v4_set(r[3] * v4_sum(u * xj)) * u + v4_set(r[4]) * xj;
    }
    v4_store(y + 4 * (size_t)i, own - sum);
}

void TOILE_KERNEL(toile_fast_multiply_springs)(const toile_fast *f, const toile_matrix *a, const double *record, int chunk,
                                               const double *x, double *y) {
    for (int i = a->pattern->chunk_begin[chunk]; i < a->pattern->chunk_begin[chunk + 1]; i++)
        multiply_row(&f->pattern, a, record, i, x, y);
}
