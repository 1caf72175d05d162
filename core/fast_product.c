/* Products of the fast solver: y = A x in single precision, and the same in double from the springs' records. */
#include "fast_kernels.h"

/* w (w . x_j) + across x_j of two connections; the fourth number of x is 0, that of the sum is loose. */
TOILE_INLINE f8 pull_pair(const float *link, const int *column, const float *x) {
    f8 w = *(const f8 *)link, xj = f8_join(f4_load(x + 4 * (size_t)column[0]), f4_load(x + 4 * (size_t)column[1]));
    f8 t = w * xj;
    t += __builtin_shufflevector(t, t, 1, 0, 3, 2, 5, 4, 7, 6);
    t += __builtin_shufflevector(t, t, 2, 3, 0, 1, 6, 7, 4, 5);
    return w * t + __builtin_shufflevector(w, w, 3, 3, 3, 3, 7, 7, 7, 7) * xj;
}

/* Springs of a chunk's rows, four at a time: A x = D x - sum over links of w (w . x_j) + across x_j. Two halves of eight: wider
 * vectors than the processor has are taken apart on the stack by compilers, ten times slower. */
static void multiply_links(const toile_fast *f, int begin, int end, const float *x, float *y) {
    const toile_fast_pattern *p = &f->pattern;
    for (int i = begin; i < end; i++) {
        const float *D = f->diagonal + 12 * (size_t)i;
        f4 own = f4_rows(f4_load(D), f4_load(D + 4), f4_load(D + 8), f4_load(x + 4 * (size_t)i));
        f8 low = {0}, high = {0};
        for (int k = p->link_begin[i]; k < p->link_begin[i + 1]; k += 4) {
            low += pull_pair(f->link + 4 * (size_t)k, p->link_column + k, x);
            high += pull_pair(f->link + 4 * (size_t)k + 8, p->link_column + k + 2, x);
        }
        f4_store(y + 4 * (size_t)i, f4_clean(own - f8_fold(low + high)));
    }
}

/* Blocks of the upper half, each used twice; see matrix.c. The fourth numbers of y are loose until the spill is added. */
static void multiply_blocks(const toile_fast *f, const toile_pattern *p, int chunk, const float *x, float *y) {
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
            int from = half ? p->row_split[i] : p->row_begin[i], to = half ? p->row_begin[i + 1] : p->row_split[i];
            float *target = half ? spill - 4 * (ptrdiff_t)end : y;
            for (int k = from; k < to; k++) {
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
        multiply_links(f, p->chunk_begin[chunk], p->chunk_begin[chunk + 1], x, y);
    else
        multiply_blocks(f, p, chunk, x, y);
}

void TOILE_KERNEL(toile_fast_multiply_spill)(const toile_fast *f, const toile_pattern *p, int chunk, float *y) {
    if (f->spring)
        return;
    int begin = p->chunk_begin[chunk], end = p->chunk_begin[chunk + 1];
    for (int c = 0; c < chunk; c++) {
        int first = p->chunk_begin[c + 1], last = first + p->spill_count[c];
        for (int i = first > begin ? first : begin; i < (last < end ? last : end); i++) {
            float *yi = y + 4 * (size_t)i;
            f4_store(yi, f4_load(yi) + f4_load(f->spill + 4 * (size_t)(p->spill_begin[c] + i - first)));
        }
    }
    for (int i = begin; i < end; i++)
        f4_store(y + 4 * (size_t)i, f4_clean(f4_load(y + 4 * (size_t)i)));
}

/* y = A x for the rows of a chunk, in double, from the springs' records; A's diagonal blocks are assembled. */
void TOILE_KERNEL(toile_fast_multiply_springs)(const toile_fast *f, const toile_matrix *a, const double *record, int chunk,
                                               const double *x, double *y) {
    const toile_fast_pattern *p = &f->pattern;
    for (int i = a->pattern->chunk_begin[chunk]; i < a->pattern->chunk_begin[chunk + 1]; i++) {
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
}
