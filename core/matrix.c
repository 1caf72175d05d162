/* The block matrix: assembled row by row from element records, multiplied from its upper half.
 *
 * Rows are cut into chunks that never depend on the number of threads. A chunk gathers its own rows, so every sum has
 * one order and assembly needs no locks and no colouring. In a product each stored block acts twice: on its row, and
 * transposed on its column's row. Columns beyond the chunk's end go to the chunk's spill, which is added after a
 * barrier, chunk by chunk in order. */
#include "element_block.h"
#include "fast.h"
#include "kernels_table.h"

/* All that elements add to the diagonal block of row i. */
TOILE_INLINE void add_diagonal(const toile_assembly *a, int i, double B[9]) {
    const toile_pattern *p = &a->model->pattern;
    for (int k = p->spring_begin[i]; k < p->spring_begin[i + 1]; k++)
        add_spring(a, p->spring_code[k], 1, B);
    if (!a->model->springs_used) {
        for (int k = p->triangle_begin[i]; k < p->triangle_begin[i + 1]; k++)
            add_triangle(a, p->triangle_code[k], B);
        for (int k = p->hinge_begin[i]; k < p->hinge_begin[i + 1]; k++)
            add_hinge(a, p->hinge_code[k], B);
    }
}

/* Right side of eq. 18 for one particle: h (f + (df/dx)(h v + y)). */
TOILE_INLINE v4 gather_rhs(const toile_assembly *a, int i) {
    const toile_pattern *p = &a->model->pattern;
    v4 sum = v4_load(a->force + 4 * (size_t)i);
    for (int k = p->spring_begin[i]; k < p->spring_begin[i + 1]; k++) {
        int code = p->spring_code[k];
        v4 g = v4_row(a->spring + (size_t)(code >> 1) * TOILE_SPRING_RECORD + 5);
        sum = code & 1 ? sum - g : sum + g;
    }
    if (!a->model->springs_used) {
        for (int k = p->triangle_begin[i]; k < p->triangle_begin[i + 1]; k++) {
            int t = p->triangle_code[k] >> 4, c = p->triangle_code[k] & 3;
            const double *r = a->triangle + (size_t)t * TOILE_TRIANGLE_RECORD;
            const double *corner = a->model->triangles.corner + 6 * (size_t)t;
            sum += v4_set(corner[c]) * v4_row(r) + v4_set(corner[c + 3]) * v4_row(r + 3);
        }
        for (int k = p->hinge_begin[i]; k < p->hinge_begin[i + 1]; k++) {
            const double *r = a->hinge + (size_t)(p->hinge_code[k] >> 4) * TOILE_HINGE_RECORD;
            sum += v4_set(r[12]) * v4_row(r + 3 * (p->hinge_code[k] & 3));
        }
    }
    return v4_set(a->h) * sum;
}

TOILE_INLINE void store_diagonal(const toile_assembly *a, toile_matrix *matrix, int i, const double B[9]) {
    double *D = matrix->diagonal + 12 * (size_t)i;
    for (int k = 0; k < 3; k++)
        v4_store(D + 4 * k, v4_row(B + 3 * k));
    for (int k = 0; k < 12 && a->fast; k++)
        a->fast->diagonal[12 * (size_t)i + (size_t)k] = (float)D[k];
}

/* What the fast product reads of a row of springs; B has its inertia. */
TOILE_INLINE void copy_links(const toile_assembly *a, int i, const double B[9]) {
    const toile_fast_pattern *f = &a->fast->pattern;
    float *link = a->fast->link, *inertia = a->fast->inertia + 12 * (size_t)i;
    for (int k = 0; k < 3; k++)
        for (int c = 0; c < 3; c++)
            inertia[4 * k + c] = (float)B[3 * k + c];
    for (int k = f->half_begin[i]; k < f->half_begin[i + 1]; k++)
        memcpy(link + 4 * (size_t)k, a->fast->spring + 4 * (size_t)f->half_spring[k], 4 * sizeof *link);
}

/* Diagonal block and right side of one row of springs in one go. Slack and explicit ones are not in the matrix. */
TOILE_INLINE void assemble_springs(const toile_assembly *a, int i, toile_matrix *matrix, double *b, double B[9]) {
    const toile_pattern *p = &a->model->pattern;
    v4 sum = v4_load(a->force + 4 * (size_t)i);
    for (int k = p->spring_begin[i]; k < p->spring_begin[i + 1]; k++) {
        int code = p->spring_code[k];
        const double *r = a->spring + (size_t)(code >> 1) * TOILE_SPRING_RECORD;
        if (r[3] != 0 || r[4] != 0)
            add_spring(a, code, 1, B);
        v4 g = v4_row(r + 5);
        sum = code & 1 ? sum - g : sum + g;
    }
    v4_store(b + 4 * (size_t)i, v4_set(a->h) * sum);
    store_diagonal(a, matrix, i, B);
}

void TOILE_KERNEL(toile_assemble)(const toile_assembly *a, int chunk, toile_matrix *matrix, double *b) {
    const toile_pattern *p = &a->model->pattern;
    const toile_live *live = matrix->live;
    bool springs = a->model->springs_used;
    for (int i = p->chunk_begin[chunk]; i < p->chunk_begin[chunk + 1]; i++) {
        double mass = a->model->mass[i];
        const double *g = a->drag + 8 * (size_t)i;
        double B[10] = {mass + g[0], g[1], g[2], g[1], mass + g[3], g[4], g[2], g[4], mass + g[5]};
        if (springs) {
            if (a->fast)
                copy_links(a, i, B);
            assemble_springs(a, i, matrix, b, B);
        } else {
            add_diagonal(a, i, B);
            store_diagonal(a, matrix, i, B);
            v4_store(b + 4 * (size_t)i, gather_rhs(a, i));
        }
        const int *begin = live ? live->begin : p->row_begin;
        for (int at = begin[i]; at < begin[i + 1] && !a->diagonal_only; at++) {
            int k = toile_live_block(live, at);
            double O[9] = {0};
            for (int s = p->spring_begin[p->n + k]; s < p->spring_begin[p->n + k + 1]; s++)
                add_spring(a, p->spring_code[s], -1, O);
            if (!springs) {
                for (int t = p->triangle_begin[p->n + k]; t < p->triangle_begin[p->n + k + 1]; t++)
                    add_triangle(a, p->triangle_code[t], O);
                for (int c = 0; c < 9 && a->fast && a->fast->core; c++)
                    a->fast->core[9 * (size_t)k + (size_t)c] = (float)O[c];
                for (int e = p->hinge_begin[p->n + k]; e < p->hinge_begin[p->n + k + 1]; e++)
                    add_hinge(a, p->hinge_code[e], O);
                for (int c = 0; c < 9 && a->fast; c++)
                    a->fast->off[9 * (size_t)k + (size_t)c] = (float)O[c];
            }
            memcpy(matrix->off + 9 * (size_t)k, O, sizeof O);
        }
    }
}

/* Springs [begin, end) as the fast product wants them: K = w w' + across. */
void TOILE_KERNEL(toile_convert_springs)(const double *record, int begin, int end, float *spring) {
    for (int s = begin; s < end; s++) {
        const double *r = record + (size_t)s * TOILE_SPRING_RECORD;
        double root = sqrt(r[3] > 0 ? r[3] : 0);
        float w[4] = {(float)(r[0] * root), (float)(r[1] * root), (float)(r[2] * root), (float)r[4]};
        memcpy(spring + 4 * (size_t)s, w, sizeof w);
    }
}

void TOILE_KERNEL(toile_gather)(const toile_assembly *a, int chunk, double *b) {
    const toile_pattern *p = &a->model->pattern;
    for (int i = p->chunk_begin[chunk]; i < p->chunk_begin[chunk + 1]; i++)
        v4_store(b + 4 * (size_t)i, gather_rhs(a, i));
}

TOILE_INLINE void multiply_chunk(const toile_matrix *a, const toile_live *live, int chunk, const double *x, double *y) {
    const toile_pattern *p = a->pattern;
    int begin = p->chunk_begin[chunk], end = p->chunk_begin[chunk + 1];
    double *spill = a->spill + 4 * (size_t)p->spill_begin[chunk];
    memset(y + 4 * (size_t)begin, 0, 4 * (size_t)(end - begin) * sizeof(double));
    memset(spill, 0, 4 * (size_t)p->spill_count[chunk] * sizeof(double));
    for (int i = begin; i < end; i++) {
        const double *D = a->diagonal + 12 * (size_t)i;
        v4 xi = v4_load(x + 4 * (size_t)i);
        v4 x0 = v4_set(xi[0]), x1 = v4_set(xi[1]), x2 = v4_set(xi[2]);
        /* row sums stay in lanes until the row is done; a symmetric diagonal block can be taken by columns */
        v4 r0 = v4_set(0), r1 = v4_set(0), r2 = v4_set(0);
        v4 own = v4_load(D) * x0 + v4_load(D + 4) * x1 + v4_load(D + 8) * x2;
        for (int half = 0; half < 2; half++) {
            int from, to;
            toile_live_range(live, p, i, half, &from, &to);
            double *target = half ? spill : y;
            size_t shift = half ? 4 * (size_t)end : 0;
            for (int at = from; at < to; at++) {
                int k = toile_live_block(live, at);
                size_t j = 4 * (size_t)p->column[k];
                const double *O = a->off + 9 * (size_t)k;
                v4 o0 = v4_row(O), o1 = v4_row(O + 3), o2 = v4_row(O + 6), xj = v4_load(x + j);
                r0 += o0 * xj;
                r1 += o1 * xj;
                r2 += o2 * xj;
                double *yj = target + (j - shift);
                v4_store(yj, v4_load(yj) + (o0 * x0 + o1 * x1 + o2 * x2));
            }
        }
        own += (v4){v4_sum(r0), v4_sum(r1), v4_sum(r2), 0};
        v4_store(y + 4 * (size_t)i, v4_load(y + 4 * (size_t)i) + own);
    }
}

void TOILE_KERNEL(toile_multiply)(const toile_matrix *a, int chunk, const double *x, double *y) {
    if (a->live)
        multiply_chunk(a, a->live, chunk, x, y);
    else
        multiply_chunk(a, NULL, chunk, x, y);
}

void TOILE_KERNEL(toile_multiply_spill)(const toile_matrix *a, int chunk, double *y) {
    const toile_pattern *p = a->pattern;
    int begin = p->chunk_begin[chunk], end = p->chunk_begin[chunk + 1];
    for (int c = 0; c < chunk; c++) {
        int first = p->chunk_begin[c + 1], last = first + p->spill_count[c];
        for (int i = first > begin ? first : begin; i < (last < end ? last : end); i++) {
            double *yi = y + 4 * (size_t)i;
            v4_store(yi, v4_load(yi) + v4_load(a->spill + 4 * (size_t)(p->spill_begin[c] + i - first)));
        }
    }
}
