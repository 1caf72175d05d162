/* Corrected modified preconditioned conjugate gradients: Boxerman 2003, Fig. 5.2 (after Ascher and Boxerman 2003 and
 * Baraff-Witkin 1998 section 5.3), on the block matrix.
 *
 * Constraints are S and z: the answer has exactly z in the constrained directions, and the equations hold in the rest.
 * The preconditioner comes as S P^-1 S (solve_linear.c), as the incomplete factor of the fast solver, or as the caller's own, so
 * directions stay filtered without a filter of their own. One team of threads runs all iterations. Sums are made per chunk and added
 * in chunk order by every thread for itself: the same bits for any number of threads. */
#include "fast_team.h"
#include "solve_stop.h"

/* h = P^-1 a by the incomplete factor, not yet filtered. */
static void apply_factor(const toile_solve *solve, const team *team, const double *a, double *h) {
    const toile_pattern *pattern = solve->matrix->pattern;
    toile_fast *f = solve->fast;
    int mine = team->chunk_begin, mine_end = team->chunk_end;
    double scale = 0; /* single precision has its range: work with numbers near 1 */
    FOR_MY_CHUNKS(c) {
        double most = 0;
        FOR_ROWS(c, i) for (int k = 0; k < 3; k++)
            most = fabs(a[i + (size_t)k]) > most ? fabs(a[i + (size_t)k]) : most;
        f->partial[c] = most;
    }
    toile_barrier_wait(team->barrier);
    for (int c = 0; c < pattern->chunk_count; c++)
        scale = f->partial[c] > scale ? f->partial[c] : scale;
    double inverse = scale > 0 ? 1 / scale : 0;
    FOR_MY_CHUNKS(c) FOR_ROWS(c, i) {
        v4 t = v4_load(a + i) * v4_set(inverse);
        f4_store(f->q + i, (f4){(float)t[0], (float)t[1], (float)t[2], 0});
    }
    toile_barrier_wait(team->barrier);
    precondition(f, NULL, team);
    FOR_MY_CHUNKS(c) FOR_ROWS(c, i) {
        f4 t = f4_load(f->q + i);
        v4_store(h + i, v4_set(scale) * (v4){t[0], t[1], t[2], 0});
    }
}

/* h = S P^-1 S a. `partial` receives a . h of each chunk; ends with a barrier. */
static void apply(toile_solve *solve, const team *team, const double *a, double *h, double *partial) {
    const toile_pattern *pattern = solve->matrix->pattern;
    int mine = team->chunk_begin, mine_end = team->chunk_end;
    if (solve->fast)
        apply_factor(solve, team, a, h);
    if (solve->whole) {
        toile_barrier_wait(team->barrier);
        if (team->thread == 0)
            solve->failed = !solve->whole(solve->self, a, h) || solve->failed;
        toile_barrier_wait(team->barrier);
    }
    FOR_MY_CHUNKS(c) {
        v4 sum = v4_set(0);
        if (solve->fast) /* single precision leaves the range of S a little; z must hold exactly */
            filter_chunk(solve->constraints, c, h);
        FOR_ROWS(c, i) {
            v4 ai = v4_load(a + i);
            if (!solve->fast && !solve->whole)
                v4_store(h + i, block_times(solve->inverse + 3 * i, ai));
            sum += ai * v4_load(h + i);
        }
        partial[c] = v4_sum(sum);
    }
    toile_barrier_wait(team->barrier);
}

void TOILE_KERNEL(toile_mpcg)(toile_solve *solve) {
    const toile_matrix *A = solve->matrix;
    const toile_pattern *pattern = A->pattern;
    const toile_constraints *constraints = solve->constraints;
    const toile_couplings *couplings = solve->couplings;
    const double *b = solve->b, *outer = solve->outer ? solve->outer : b, *z = constraints->z;
    double *x = solve->x, *r = solve->r, *p = solve->p, *s = solve->s, *q = solve->q;
    int chunks = pattern->chunk_count;
    double *sum_a = solve->partial, *sum_b = sum_a + chunks, *sum_c = sum_b + chunks, *sum_e = sum_c + chunks;
    int wanted = solve->threads < chunks ? solve->threads : chunks;
    int iterations = 0, products = 0;
    double shift = 0;
    bool converged = false;
    toile_barrier barrier = {0};
    solve->failed = false;

#pragma omp parallel num_threads(wanted) if (wanted > 1)
    {
        team team = join_team(&barrier, chunks);
        int mine = team.chunk_begin, mine_end = team.chunk_end;
        if (solve->fast)
            prepare(solve->fast, NULL, constraints, &shift, &team); /* in double it goes without the coarse level */

        double goal = 0;
        if (solve->thesis) { /* of b^ = S (b - A (I - S) z), in the preconditioner's norm */
            FOR_MY_CHUNKS(c) TOILE_KERNEL(toile_multiply)(A, c, z, s);
            pull_couplings(couplings, &team, z);
            toile_barrier_wait(&barrier);
            FOR_MY_CHUNKS(c) {
                TOILE_KERNEL(toile_multiply_spill)(A, c, s);
                if (couplings)
                    toile_couplings_add_rows(couplings, c, z, s);
                FOR_ROWS(c, i) v4_store(s + i, v4_load(b + i) - v4_load(s + i));
                filter_chunk(constraints, c, s);
            }
            toile_barrier_wait(&barrier);
            apply(solve, &team, s, q, sum_a);
            goal = solve->tolerance2 * sum_chunks(sum_a, chunks);
        }

        FOR_MY_CHUNKS(c) {
            /* x = S x0 + (I - S) z */
            filter_chunk(constraints, c, x);
            for (int k = constraints->chunk_begin[c]; k < constraints->chunk_begin[c + 1]; k++) {
                size_t i = 4 * (size_t)constraints->particle[k];
                v4_store(x + i, v4_load(x + i) + v4_load(z + i));
            }
        }
        toile_barrier_wait(&barrier);

        /* r = S (b - A x), p = S P^-1 r */
        FOR_MY_CHUNKS(c) TOILE_KERNEL(toile_multiply)(A, c, x, s);
        pull_couplings(couplings, &team, x);
        toile_barrier_wait(&barrier);
        FOR_MY_CHUNKS(c) {
            TOILE_KERNEL(toile_multiply_spill)(A, c, s);
            if (couplings)
                toile_couplings_add_rows(couplings, c, x, s);
            v4 energy = v4_set(0);
            FOR_ROWS(c, i) {
                energy += v4_load(x + i) * v4_load(s + i);
                v4_store(r + i, v4_load(b + i) - v4_load(s + i));
            }
            sum_e[c] = v4_sum(energy);
            filter_chunk(constraints, c, r);
        }
        toile_barrier_wait(&barrier);
        toile_stop stop = toile_stop_begin(solve->tolerance, solve->energy + sum_chunks(sum_e, chunks));
        apply(solve, &team, r, p, sum_b);
        double delta = sum_chunks(sum_b, chunks);
        int count = 0;
        bool sound = delta == delta && goal == goal && !solve->failed;
        bool done = solve->thesis ? delta <= goal : delta == 0;
        while (sound && !done && count < solve->iterations_max) {
            FOR_MY_CHUNKS(c) TOILE_KERNEL(toile_multiply)(A, c, p, s);
            pull_couplings(couplings, &team, p);
            toile_barrier_wait(&barrier);
            FOR_MY_CHUNKS(c) {
                TOILE_KERNEL(toile_multiply_spill)(A, c, s);
                if (couplings)
                    toile_couplings_add_rows(couplings, c, p, s);
                filter_chunk(constraints, c, s);
                v4 sum = v4_set(0), with_b = sum;
                FOR_ROWS(c, i) {
                    v4 pi = v4_load(p + i);
                    sum += pi * v4_load(s + i);
                    with_b += pi * v4_load(outer + i);
                }
                sum_c[c] = v4_sum(sum);
                sum_e[c] = v4_sum(with_b);
            }
            toile_barrier_wait(&barrier);
            double curvature = sum_chunks(sum_c, chunks);
            count++;
            sound = curvature > 0; /* false for NaN too: A is positive definite, so something is broken */
            v4 alpha = v4_set(sound ? delta / curvature : 0);
            bool exact = sound && toile_stop_step(&stop, delta / curvature, delta, sum_chunks(sum_e, chunks));
            double *sum_d = count & 1 ? sum_a : sum_b; /* in turn: another thread may still be reading the last one */
            bool blocks = !solve->fast && !solve->whole;
            FOR_MY_CHUNKS(c) {
                v4 sum = v4_set(0);
                FOR_ROWS(c, i) {
                    v4 ri = v4_load(r + i) - alpha * v4_load(s + i);
                    v4_store(x + i, v4_load(x + i) + alpha * v4_load(p + i));
                    v4_store(r + i, ri);
                    if (blocks) {
                        v4 qi = block_times(solve->inverse + 3 * i, ri);
                        v4_store(q + i, qi);
                        sum += ri * qi;
                    }
                }
                sum_d[c] = v4_sum(sum);
            }
            if (blocks)
                toile_barrier_wait(&barrier);
            else
                apply(solve, &team, r, q, sum_d);
            double last = delta;
            delta = sum_chunks(sum_d, chunks);
            sound = sound && delta == delta && !solve->failed;
            done = solve->thesis ? delta <= goal : exact || delta == 0;
            v4 beta = v4_set(delta / last);
            FOR_MY_CHUNKS(c) FOR_ROWS(c, i) v4_store(p + i, v4_load(q + i) + beta * v4_load(p + i));
            toile_barrier_wait(&barrier);
        }
        if (team.thread == 0) { /* all threads have the same numbers */
            iterations = count;
            products = count + 1 + solve->thesis;
            converged = sound && done;
        }
    }
    solve->iterations = iterations;
    solve->products = products;
    solve->converged = converged;
}
