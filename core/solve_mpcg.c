/* Corrected modified preconditioned conjugate gradients: Boxerman 2003, Fig. 5.2 (after Ascher and Boxerman 2003 and
 * Baraff-Witkin 1998 section 5.3), on the block matrix.
 *
 * Constraints are S and z: the answer has exactly z in the constrained directions, and the equations hold in the rest.
 * The preconditioner comes as S P^-1 S (solve_linear.c), so directions stay filtered without a filter of their own.
 * One team of threads runs all iterations. Sums are made per chunk and added in chunk order by every thread for
 * itself: the same bits for any number of threads. */
#include "barrier.h"
#include "kernels_table.h"

#include <omp.h>

TOILE_INLINE v4 block_times(const double *B, v4 x) {
    return v4_load(B) * v4_set(x[0]) + v4_load(B + 4) * v4_set(x[1]) + v4_load(B + 8) * v4_set(x[2]);
}

/* Filters y in place in the chunk's constrained particles. S is symmetric: rows are columns. */
TOILE_INLINE void filter_chunk(const toile_constraints *c, int chunk, double *y) {
    for (int k = c->chunk_begin[chunk]; k < c->chunk_begin[chunk + 1]; k++) {
        double *yi = y + 4 * (size_t)c->particle[k];
        v4_store(yi, block_times(c->filter + 12 * (size_t)k, v4_load(yi)));
    }
}

/* h = S P^-1 S a in the rows of a chunk; returns a . h. */
TOILE_INLINE double precondition_chunk(const toile_solve *solve, int chunk, const double *a, double *h) {
    const toile_pattern *p = solve->matrix->pattern;
    v4 sum = v4_set(0);
    if (solve->factor) {
        TOILE_KERNEL(toile_apply_factor)(solve, chunk, a, h);
        filter_chunk(solve->constraints, chunk, h); /* single precision leaves the range of S a little; z must hold exactly */
    }
    for (size_t i = 4 * (size_t)p->chunk_begin[chunk]; i < 4 * (size_t)p->chunk_begin[chunk + 1]; i += 4) {
        v4 ai = v4_load(a + i);
        if (!solve->factor)
            v4_store(h + i, block_times(solve->inverse + 3 * i, ai));
        sum += ai * v4_load(h + i);
    }
    return v4_sum(sum);
}

TOILE_INLINE double sum_chunks(const double *partial, int chunks) {
    double sum = 0;
    for (int c = 0; c < chunks; c++)
        sum += partial[c];
    return sum;
}

/* Whose chunk is it? Contiguous shares, so that a thread keeps its part of the matrix in its cache. */
TOILE_INLINE int share(int chunks, int thread, int threads) {
    return chunks * thread / threads;
}

#define FOR_MY_CHUNKS(c) for (int c = mine; c < mine_end; c++)
#define FOR_ROWS(c, i) for (size_t i = 4 * (size_t)pattern->chunk_begin[c]; i < 4 * (size_t)pattern->chunk_begin[c + 1]; i += 4)

void TOILE_KERNEL(toile_mpcg)(toile_solve *solve) {
    const toile_matrix *A = solve->matrix;
    const toile_pattern *pattern = A->pattern;
    const toile_constraints *constraints = solve->constraints;
    const double *b = solve->b, *z = constraints->z;
    double *x = solve->x, *r = solve->r, *p = solve->p, *s = solve->s, *q = solve->q;
    int chunks = pattern->chunk_count;
    double *sum_a = solve->partial, *sum_b = sum_a + chunks, *sum_c = sum_b + chunks;
    int threads = solve->threads < chunks ? solve->threads : chunks;
    int iterations = 0, products = 0;
    bool converged = false;
    toile_barrier barrier = {0};

#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int thread = omp_get_thread_num(), team = omp_get_num_threads();
#pragma omp single
        barrier.threads = team; /* may be fewer than asked for */
        int mine = share(chunks, thread, team), mine_end = share(chunks, thread + 1, team);

        /* b^ = S (b - A (I - S) z), and its measure in the preconditioner's norm */
        FOR_MY_CHUNKS(c) TOILE_KERNEL(toile_multiply)(A, c, z, s);
        toile_barrier_wait(&barrier);
        FOR_MY_CHUNKS(c) {
            TOILE_KERNEL(toile_multiply_spill)(A, c, s);
            FOR_ROWS(c, i) v4_store(s + i, v4_load(b + i) - v4_load(s + i));
            filter_chunk(constraints, c, s);
            sum_a[c] = precondition_chunk(solve, c, s, q);
            /* x = S x0 + (I - S) z */
            filter_chunk(constraints, c, x);
            for (int k = constraints->chunk_begin[c]; k < constraints->chunk_begin[c + 1]; k++) {
                size_t i = 4 * (size_t)constraints->particle[k];
                v4_store(x + i, v4_load(x + i) + v4_load(z + i));
            }
        }
        toile_barrier_wait(&barrier);
        double goal = solve->tolerance2 * sum_chunks(sum_a, chunks);

        /* r = S (b - A x), p = S P^-1 r */
        FOR_MY_CHUNKS(c) TOILE_KERNEL(toile_multiply)(A, c, x, s);
        toile_barrier_wait(&barrier);
        FOR_MY_CHUNKS(c) {
            TOILE_KERNEL(toile_multiply_spill)(A, c, s);
            FOR_ROWS(c, i) v4_store(r + i, v4_load(b + i) - v4_load(s + i));
            filter_chunk(constraints, c, r);
            sum_b[c] = precondition_chunk(solve, c, r, p);
        }
        toile_barrier_wait(&barrier);
        double delta = sum_chunks(sum_b, chunks);
        int count = 0;
        bool sound = delta == delta && goal == goal;
        while (sound && delta > goal && count < solve->iterations_max) {
            FOR_MY_CHUNKS(c) TOILE_KERNEL(toile_multiply)(A, c, p, s);
            toile_barrier_wait(&barrier);
            FOR_MY_CHUNKS(c) {
                TOILE_KERNEL(toile_multiply_spill)(A, c, s);
                filter_chunk(constraints, c, s);
                v4 sum = v4_set(0);
                FOR_ROWS(c, i) sum += v4_load(p + i) * v4_load(s + i);
                sum_c[c] = v4_sum(sum);
            }
            toile_barrier_wait(&barrier);
            double curvature = sum_chunks(sum_c, chunks);
            count++;
            sound = curvature > 0; /* false for NaN too: A is positive definite, so something is broken */
            v4 alpha = v4_set(sound ? delta / curvature : 0);
            double *sum_d = count & 1 ? sum_a : sum_b; /* in turn: another thread may still be reading the last one */
            FOR_MY_CHUNKS(c) {
                FOR_ROWS(c, i) {
                    v4_store(x + i, v4_load(x + i) + alpha * v4_load(p + i));
                    v4_store(r + i, v4_load(r + i) - alpha * v4_load(s + i));
                }
                sum_d[c] = precondition_chunk(solve, c, r, q);
            }
            toile_barrier_wait(&barrier);
            double last = delta;
            delta = sum_chunks(sum_d, chunks);
            sound = sound && delta == delta;
            v4 beta = v4_set(delta / last);
            FOR_MY_CHUNKS(c) FOR_ROWS(c, i) v4_store(p + i, v4_load(q + i) + beta * v4_load(p + i));
            toile_barrier_wait(&barrier);
        }
        if (thread == 0) { /* all threads have the same numbers */
            iterations = count;
            products = count + 2;
            converged = sound && delta <= goal;
        }
    }
    solve->iterations = iterations;
    solve->products = products;
    solve->converged = converged;
}
