/* Conjugate gradients in single precision with the incomplete factor, for a correction to a residual that was made in
 * double precision. One team of threads does all of it; sums are made per chunk of rows and added in chunk order by every
 * thread for itself, so the bits do not depend on the number of threads. */
#include "fast_team.h"
#include "solve_stop.h"

/* Relative error in the energy norm that a run leaves behind unseen: its residual is updated, not measured. */
#define ROUNDING 1e-5

/* Largest number of the residual, so that single precision works near 1. */
static double largest(const toile_fast_job *job, const toile_pattern *pattern, const team *team) {
    int mine = team->chunk_begin, mine_end = team->chunk_end;
    double *partial = job->fast->partial, most = 0;
    FOR_MY_CHUNKS(c) {
        partial[c] = 0;
        FOR_ROWS(c, i) for (int k = 0; k < 3; k++) {
            double a = fabs(job->residual[i + (size_t)k]);
            partial[c] = a > partial[c] ? a : partial[c];
        }
    }
    toile_barrier_wait(team->barrier);
    for (int c = 0; c < pattern->chunk_count; c++)
        most = partial[c] > most ? partial[c] : most;
    return most;
}

void TOILE_KERNEL(toile_fast_solve)(toile_fast_job *job) {
    toile_fast *f = job->fast;
    const toile_pattern *pattern = job->pattern;
    const toile_constraints *constraints = job->constraints;
    int chunks = pattern->chunk_count;
    double *sum_a = f->partial + chunks, *sum_b = sum_a + chunks, *sum_c = sum_b + chunks, *sum_e = sum_c + chunks;
    float *e = f->e, *r = f->r, *p = f->p, *s = f->s, *q = f->q;
    toile_barrier barrier = {0};
    int wanted = job->threads < chunks ? job->threads : chunks;
    job->iterations = 0;
    job->converged = job->sound = false;

#pragma omp parallel num_threads(wanted) if (wanted > 1)
    {
        team team = join_team(&barrier, chunks);
        int mine = team.chunk_begin, mine_end = team.chunk_end;
        unsigned rounding = toile_flush_tiny();
        if (job->fresh)
            prepare(f, pattern, constraints, &job->shift, &team);
        double scale = largest(job, pattern, &team);
        double inverse_scale = scale > 0 ? 1 / scale : 0;
        bool sound = f->sound[TOILE_STREAMS] && scale < 1e30; /* false for NaN */
        FOR_MY_CHUNKS(c) FOR_ROWS(c, i) {
            v4 a = v4_load(job->residual + i) * v4_set(inverse_scale);
            f4 b = {(float)a[0], (float)a[1], (float)a[2], 0};
            v4 full = v4_load(job->b + i) * v4_set(inverse_scale);
            f4_store(f->b + i, (f4){(float)full[0], (float)full[1], (float)full[2], 0});
            f4_store(r + i, b);
            f4_store(q + i, b);
            f4_store(e + i, f4_set(0));
        }
        toile_barrier_wait(&barrier);
        if (sound)
            precondition(f, r, &team);
        FOR_MY_CHUNKS(c) {
            add_shifts(f, pattern, c, q);
            filter_single(constraints, c, q);
            f4 sum = f4_set(0);
            FOR_ROWS(c, i) {
                f4_store(p + i, f4_load(q + i));
                sum += f4_load(q + i) * f4_load(r + i);
            }
            sum_a[c] = f4_sum(sum);
        }
        toile_barrier_wait(&barrier);
        double delta = sum_chunks(sum_a, chunks);
        toile_stop stop = toile_stop_begin(job->tolerance, job->energy * inverse_scale * inverse_scale);
        int count = 0;
        double gained = 0;
        sound = sound && delta == delta;
        /* a residual that is nothing against the answer: P is near enough to A to say so */
        bool good = scale == 0 || delta <= 1e-4 * stop.tolerance2 * stop.energy, done = good;
        while (sound && !done && count < job->iterations_max) {
            FOR_MY_CHUNKS(c) TOILE_KERNEL(toile_fast_multiply)(f, pattern, c, p, s);
            pull_couplings_single(job->couplings, &team, p);
            toile_barrier_wait(&barrier);
            FOR_MY_CHUNKS(c) {
                TOILE_KERNEL(toile_fast_multiply_spill)(f, pattern, c, s);
                if (job->couplings)
                    toile_couplings_add_rows_single(job->couplings, c, p, s);
                filter_single(constraints, c, s);
                f4 sum = f4_set(0), with_b = sum;
                FOR_ROWS(c, i) {
                    f4 pi = f4_load(p + i);
                    sum += pi * f4_load(s + i);
                    with_b += pi * f4_load(f->b + i);
                }
                sum_c[c] = f4_sum(sum);
                sum_e[c] = f4_sum(with_b);
            }
            toile_barrier_wait(&barrier);
            double curvature = sum_chunks(sum_c, chunks);
            count++;
            sound = curvature > 0;
            if (!sound)
                break;
            f4 alpha = f4_set((float)(delta / curvature));
            good = toile_stop_step(&stop, delta / curvature, delta, sum_chunks(sum_e, chunks));
            gained += delta / curvature * delta;
            good = good && ROUNDING * ROUNDING * gained <= stop.tolerance2 * stop.energy;
            done = good || (stop.count >= TOILE_STOP_LEAST && stop.error2 <= job->reduction * job->reduction * gained);
            FOR_MY_CHUNKS(c) FOR_ROWS(c, i) {
                f4_store(e + i, f4_load(e + i) + alpha * f4_load(p + i));
                f4 ri = f4_load(r + i) - alpha * f4_load(s + i);
                f4_store(r + i, ri);
                f4_store(q + i, ri);
            }
            toile_barrier_wait(&barrier);
            if (done)
                break;
            precondition(f, r, &team);
            double *sum_d = count & 1 ? sum_b : sum_a; /* in turn: another thread may still be reading the last one */
            FOR_MY_CHUNKS(c) {
                add_shifts(f, pattern, c, q);
                filter_single(constraints, c, q);
                f4 sum = f4_set(0);
                FOR_ROWS(c, i) sum += f4_load(q + i) * f4_load(r + i);
                sum_d[c] = f4_sum(sum);
            }
            toile_barrier_wait(&barrier);
            double last = delta;
            delta = sum_chunks(sum_d, chunks);
            sound = delta > 0;
            f4 beta = f4_set((float)(delta / last));
            FOR_MY_CHUNKS(c) FOR_ROWS(c, i) f4_store(p + i, f4_load(q + i) + beta * f4_load(p + i));
            toile_barrier_wait(&barrier);
        }
        FOR_MY_CHUNKS(c) FOR_ROWS(c, i) {
            f4 a = f4_load(e + i);
            v4_store(job->x + i, v4_load(job->x + i) + v4_set(scale) * (v4){a[0], a[1], a[2], 0});
        }
        toile_restore_rounding(rounding);
        if (team.thread == 0) {
            job->iterations = count;
            job->converged = sound && good;
            job->sound = sound;
            job->gained = gained * scale * scale;
        }
    }
}
