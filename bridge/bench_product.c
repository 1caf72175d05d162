/* The product that the papers' solvers spend their time in: block compressed rows, both halves, double (Ye,
 * Webber and Wang 2008, section 3). Ours is measured against it. */
#include "bench.h"

#include "lanes.h"
#include "solve_linear.h"

#include <stdlib.h>

/* All blocks by rows (BCSR): what the papers multiply with. */
typedef struct full_matrix {
    int n, *begin, *column;
    double *block; /* rows of three, 9 each and 3 more */
} full_matrix;

static bool make_full(const bench_system *system, full_matrix *f) {
    const toile_pattern *p = system->matrix.pattern;
    size_t blocks = (size_t)p->n + 2 * (size_t)p->off_count;
    *f = (full_matrix){p->n, calloc((size_t)p->n + 2, sizeof(int)), malloc(blocks * sizeof(int)),
                       malloc((9 * blocks + 3) * sizeof(double))};
    if (!f->begin || !f->column || !f->block)
        return false;
    for (int i = 0; i < p->n; i++) {
        f->begin[i + 2] += 1 + p->row_begin[i + 1] - p->row_begin[i];
        for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++)
            f->begin[p->column[k] + 2]++;
    }
    for (int i = 0; i < p->n; i++)
        f->begin[i + 2] += f->begin[i + 1];
    for (int i = 0; i < p->n;
         i++) { /* begin[i + 1] is where row i goes on; lower blocks come before, in order */
        const double *D = system->matrix.diagonal + 12 * (size_t)i;
        int at = f->begin[i + 1]++;
        f->column[at] = i;
        for (int e = 0; e < 9; e++)
            f->block[9 * (size_t)at + (size_t)e] = D[4 * (e / 3) + e % 3];
        for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++) {
            const double *O = system->matrix.off + 9 * (size_t)k;
            int mine = f->begin[i + 1]++, other = f->begin[p->column[k] + 1]++;
            f->column[mine] = p->column[k];
            f->column[other] = i;
            for (int e = 0; e < 9; e++) {
                f->block[9 * (size_t)mine + (size_t)e] = O[e];
                f->block[9 * (size_t)other + (size_t)e] = O[3 * (e % 3) + e / 3];
            }
        }
    }
    return true;
}

static void free_full(full_matrix *f) {
    free(f->begin);
    free(f->column);
    free(f->block);
}

/* (No calls that pass vectors: clang minds them in a function of several versions.) */
__attribute__((target_clones("avx2", "default"))) static void multiply_full(const full_matrix *f,
                                                                            const double *x, double *y) {
    for (int i = 0; i < f->n; i++) {
        v4 r0 = {0, 0, 0, 0}, r1 = r0, r2 = r0;
        for (int k = f->begin[i]; k < f->begin[i + 1]; k++) {
            const double *B = f->block + 9 * (size_t)k;
            v4 xj = *(const v4 *)(x + 4 * (size_t)f->column[k]); /* the fourth is 0 */
            r0 += *(const v4u *)B * xj;
            r1 += *(const v4u *)(B + 3) * xj;
            r2 += *(const v4u *)(B + 6) * xj;
        }
        double *to = y + 4 * (size_t)i;
        to[0] = (r0[0] + r0[1]) + (r0[2] + r0[3]), to[1] = (r1[0] + r1[1]) + (r1[2] + r1[3]);
        to[2] = (r2[0] + r2[1]) + (r2[2] + r2[3]), to[3] = 0;
    }
}

double bench_full_product(bench_case *c, const bench_system *system) {
    size_t n = 4 * (size_t)c->sim->model->particle_count;
    double best = INFINITY, worst = 0, most = 0;
    full_matrix all;
    bool ok = make_full(system, &all);
    for (int turn = 0; ok && turn < 15; turn++) {
        double begin = bench_cpu();
        multiply_full(&all, system->exact, c->difference);
        best = fmin(best, bench_cpu() - begin);
    }
    toile_multiply(c->sim->kernels, &system->matrix, system->exact, c->product, 1);
    for (size_t i = 0; ok && i < n; i++) { /* is it the same product? */
        worst = fmax(worst, fabs(c->product[i] - c->difference[i]));
        most = fmax(most, fabs(system->matrix.diagonal[12 * (i / 4)] * system->exact[i]));
    }
    free_full(&all);
    return ok && worst <= 1e-9 * most ? best : NAN;
}
