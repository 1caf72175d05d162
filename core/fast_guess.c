/* Where the fast solver begins, in single precision: x = S (t dv) + (I - S) z with the t that has the least energy. t = 0 and
 * t = 1 are both too good to choose between beforehand (impact, smooth motion). Good for errors that single precision can
 * reach; finer ones take the same guess in double (solve.c). */
#include "fast_team.h"

/* The rows of a chunk in single precision; true if any is not 0. */
static bool take(const toile_pattern *pattern, int c, const double *from, float *to) {
    double any = 0;
    FOR_ROWS(c, i) {
        f4_store(to + i, (f4){(float)from[i], (float)from[i + 1], (float)from[i + 2], 0});
        any += fabs(from[i]) + fabs(from[i + 1]) + fabs(from[i + 2]);
    }
    return any != 0;
}

/* y = A x by all threads; x may change after it. */
static void product(const toile_fast_job *job, const team *team, const float *x, float *y) {
    int mine = team->chunk_begin, mine_end = team->chunk_end;
    FOR_MY_CHUNKS(c) TOILE_KERNEL(toile_fast_multiply)(job->fast, job->pattern, c, x, y);
    pull_couplings_single(job->couplings, team, x);
    toile_barrier_wait(team->barrier);
    FOR_MY_CHUNKS(c) {
        TOILE_KERNEL(toile_fast_multiply_spill)(job->fast, job->pattern, c, y);
        if (job->couplings)
            toile_couplings_add_rows_single(job->couplings, c, x, y);
    }
    toile_barrier_wait(team->barrier);
}

void TOILE_KERNEL(toile_fast_guess)(toile_fast_job *job) {
    toile_fast *f = job->fast;
    const toile_pattern *pattern = job->pattern;
    const toile_constraints *constraints = job->constraints;
    int chunks = pattern->chunk_count;
    double *given = f->partial, *driving = given + chunks, *along = driving + chunks, *curved = along + chunks,
           *energy = curved + chunks, *x = job->x;
    const double *z = constraints->z, *b = job->b;
    toile_barrier barrier = {0};
    int wanted = job->threads < chunks ? job->threads : chunks;

#pragma omp parallel num_threads(wanted) if (wanted > 1)
    {
        team team = join_team(&barrier, chunks);
        int mine = team.chunk_begin, mine_end = team.chunk_end;
        unsigned rounding = toile_flush_tiny();
        FOR_MY_CHUNKS(c) {
            filter_chunk(constraints, c, x);
            given[c] = take(pattern, c, x, f->p);
            driving[c] = take(pattern, c, z, f->e);
        }
        toile_barrier_wait(&barrier);
        bool guessed = sum_chunks(given, chunks) > 0, driven = sum_chunks(driving, chunks) > 0;
        if (guessed)
            product(job, &team, f->p, f->s);
        if (driven)
            product(job, &team, f->e, f->q);
        FOR_MY_CHUNKS(c) {
            v4 with_b = v4_set(0), with_own = with_b;
            if (guessed)
                FOR_ROWS(c, i) {
                    f4 s = f4_load(f->s + i);
                    v4 xi = v4_load(x + i), own = {s[0], s[1], s[2], 0};
                    with_b += xi * v4_load(b + i) - own * v4_load(z + i);
                    with_own += xi * own;
                }
            along[c] = v4_sum(with_b);
            curved[c] = v4_sum(with_own);
        }
        toile_barrier_wait(&barrier);
        double curvature = sum_chunks(curved, chunks), best = curvature > 0 ? sum_chunks(along, chunks) / curvature : 0;
        v4 t = v4_set(best == best ? best : 0);
        FOR_MY_CHUNKS(c) {
            v4 sum = v4_set(0);
            FOR_ROWS(c, i) {
                v4 xi = v4_load(z + i), own = v4_set(0);
                if (guessed) {
                    f4 s = f4_load(f->s + i);
                    xi += t * v4_load(x + i);
                    own += t * (v4){s[0], s[1], s[2], 0};
                }
                if (driven) {
                    f4 q = f4_load(f->q + i);
                    own += (v4){q[0], q[1], q[2], 0};
                }
                v4_store(x + i, xi);
                v4_store(job->residual + i, v4_load(b + i) - own);
                sum += xi * own;
            }
            energy[c] = v4_sum(sum);
            filter_chunk(constraints, c, job->residual);
        }
        toile_barrier_wait(&barrier);
        if (team.thread == 0)
            job->energy = sum_chunks(energy, chunks);
        toile_restore_rounding(rounding);
    }
}
