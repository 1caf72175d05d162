/* Products of the fast solver: y = A x in single precision, and the same in double from the springs' records. */
#include "fast_kernels.h"

/* Springs: A x = M x + sum over links of w (w . (x_i - x_j)) + across (x_i - x_j). Eight numbers at a time: wider vectors than the
 * processor has are taken apart on the stack by compilers, ten times slower. */
TOILE_INLINE f8 pull_of(f8 w, f8 d) {
    f8 t = w * d;
    t += __builtin_shufflevector(t, t, 1, 0, 3, 2, 5, 4, 7, 6);
    t += __builtin_shufflevector(t, t, 2, 3, 0, 1, 6, 7, 4, 5);
    return f8_clean(w) * t + __builtin_shufflevector(w, w, 3, 3, 3, 3, 7, 7, 7, 7) * d;
}

/* Links from rows that lie side by side to columns that do. */
TOILE_INLINE void pull_run(const float *link, int count, const float *xi, const float *xj, float *yi, float *yj) {
    for (int k = 0; k < 4 * count; k += 8) {
        f8 pull = pull_of(*(const f8 *)(link + k), f8_loose(xi + k) - f8_loose(xj + k));
        __builtin_prefetch(link + k + 512); /* read once in order: 2 kB ahead */
        f8_store(yi + k, f8_loose(yi + k) + pull);
        f8_store(yj + k, f8_loose(yj + k) - pull);
    }
}

/* The same where the column is the next row: what is given to a row and taken from it goes there at once. */
TOILE_INLINE void pull_chain(const float *link, int count, const float *x, float *y) {
    f8 before = {0};
    for (int k = 0; k < 4 * count; k += 8) {
        f8 pull = pull_of(*(const f8 *)(link + k), f8_loose(x + k) - f8_loose(x + k + 4));
        f8_store(y + k, f8_loose(y + k) + (pull - __builtin_shufflevector(before, pull, 4, 5, 6, 7, 8, 9, 10, 11)));
        before = pull;
    }
    f4_store(y + 4 * count, f4_load(y + 4 * count) - __builtin_shufflevector(before, before, 4, 5, 6, 7));
}

/* Two loose links of a row, x of it twice: what they pull is taken off the other ends and given back. */
TOILE_INLINE f8 pull_pair(const float *link, const int *column, f8 xi, const float *x, float *target) {
    ptrdiff_t a = 4 * (ptrdiff_t)column[0], b = 4 * (ptrdiff_t)column[1];
    f8 pull = pull_of(*(const f8 *)link, xi - f8_join(f4_load(x + a), f4_load(x + b)));
    f4_store(target + a, f4_load(target + a) - __builtin_shufflevector(pull, pull, 0, 1, 2, 3));
    f4_store(target + b, f4_load(target + b) - __builtin_shufflevector(pull, pull, 4, 5, 6, 7));
    return pull;
}

/* M x for the six numbers xx, yy, zz, xy, xz, yz; the fourth of x is 0. */
TOILE_INLINE f4 inertia_times(const float *M, f4 x) {
    f4 side = f4_loose(M + 2); /* zz, xy, xz, yz */
    return f4_loose(M) * x + __builtin_shufflevector(side, side, 1, 1, 2, 2) * __builtin_shufflevector(x, x, 1, 0, 0, 3) +
           __builtin_shufflevector(side, side, 2, 3, 3, 3) * __builtin_shufflevector(x, x, 2, 2, 1, 3);
}

static void multiply_links(const toile_fast *f, const toile_pattern *pattern, int chunk, const float *x, float *y) {
    const toile_fast_links *l = &f->pattern.links;
    int begin = pattern->chunk_begin[chunk], end = pattern->chunk_begin[chunk + 1];
    float *spill = f->spill + 4 * (size_t)pattern->spill_begin[chunk], *beyond = spill - 4 * (ptrdiff_t)end;
    memset(spill, 0, 4 * (size_t)pattern->spill_count[chunk] * sizeof(float));
    for (int i = begin; i < end; i++) {
        f4_store(y + 4 * (size_t)i, inertia_times(f->inertia + 6 * (size_t)i, f4_load(x + 4 * (size_t)i)));
    }
    for (const toile_link_run *r = f->run + toile_fast_run_place(l, chunk), *last = r + f->run_count[chunk]; r < last; r++) {
        const float *link = f->link + 4 * (size_t)r->link;
        ptrdiff_t i = 4 * (ptrdiff_t)r->row, j = 4 * (ptrdiff_t)r->column;
        if (j - i == 4)
            pull_chain(link, r->count, x + i, y + i);
        else
            pull_run(link, r->count, x + i, x + j, y + i, (r->column < end ? y : beyond) + j);
    }
    for (int q = l->loose_row_begin[chunk]; q < l->loose_row_begin[chunk + 1]; q++) {
        int i = l->loose_row[q], k = l->loose_begin[i];
        f4 own = f4_load(x + 4 * (size_t)i);
        f8 xi = f8_join(own, own), sum = {0};
        for (; k < l->loose_split[i]; k += 2)
            sum += pull_pair(f->link + 4 * (size_t)k, l->to + k, xi, x, y);
        for (; k < l->loose_begin[i + 1]; k += 2)
            sum += pull_pair(f->link + 4 * (size_t)k, l->to + k, xi, x, beyond);
        f4_store(y + 4 * (size_t)i, f4_load(y + 4 * (size_t)i) + f8_fold(sum));
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
                __builtin_prefetch(O + 512); /* read once in order: 2 kB ahead */
                f4 o0 = f4_loose(O), o1 = f4_loose(O + 3), o2 = f4_loose(O + 6), xj = f4_load(x + j);
                r0 += o0 * xj;
                r1 += o1 * xj;
                r2 += o2 * xj;
                f4_store(target + j, f4_load(target + j) + (o0 * x0 + o1 * x1 + o2 * x2));
            }
        }
        own += f4_sums(r0, r1, r2);
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
TOILE_INLINE void multiply_row(const toile_fast_links *l, const toile_matrix *a, const double *record, int i, const double *x,
                               double *y) {
    const double *D = a->diagonal + 12 * (size_t)i;
    v4 xi = v4_load(x + 4 * (size_t)i), sum = v4_set(0);
    v4 own = v4_load(D) * v4_set(xi[0]) + v4_load(D + 4) * v4_set(xi[1]) + v4_load(D + 8) * v4_set(xi[2]);
    for (int k = l->begin[i]; k < l->begin[i + 1]; k++) {
        const double *r = record + (size_t)l->spring[k] * TOILE_SPRING_RECORD;
        v4 u = v4_row(r), xj = v4_load(x + 4 * (size_t)l->column[k]);
        sum += v4_set(r[3] * v4_sum(u * xj)) * u + v4_set(r[4]) * xj;
    }
    v4_store(y + 4 * (size_t)i, own - sum);
}

void TOILE_KERNEL(toile_fast_multiply_springs)(const toile_fast *f, const toile_matrix *a, const double *record, int chunk,
                                               const double *x, double *y) {
    for (int i = a->pattern->chunk_begin[chunk]; i < a->pattern->chunk_begin[chunk + 1]; i++)
        multiply_row(&f->pattern.links, a, record, i, x, y);
}
