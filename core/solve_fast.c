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

/* ---- vectors of a chunk's rows ---- */

typedef struct chunk {
    size_t begin, count; /* numbers, four for each row */
} chunk;

TOILE_INLINE chunk chunk_of(const toile_pattern *pattern, int c) {
    size_t begin = 4 * (size_t)pattern->chunk_begin[c];
    return (chunk){begin, 4 * (size_t)pattern->chunk_begin[c + 1] - begin};
}

/* Four rows at a time: sums of one alone would wait for each other. */
TOILE_INLINE float chunk_dot(chunk c, const float *a, const float *b) {
    f8 sum[2] = {{0}, {0}};
    size_t i = c.begin, end = c.begin + c.count;
    for (; i + 16 <= end; i += 16) {
        sum[0] += f8_loose(a + i) * f8_loose(b + i);
        sum[1] += f8_loose(a + i + 8) * f8_loose(b + i + 8);
    }
    f4 rest = f8_fold(sum[0] + sum[1]);
    for (; i < end; i += 4)
        rest += f4_load(a + i) * f4_load(b + i);
    return f4_sum(rest);
}

/* Of p in a chunk and what its rows gave to those beyond it: together the chunk's part of p' A p, while it is near. */
TOILE_INLINE float chunk_curvature(const toile_fast *f, const toile_pattern *pattern, int c, const float *p, const float *s) {
    const float *spill = f->spill + 4 * (size_t)pattern->spill_begin[c], *beyond = p + 4 * (size_t)pattern->chunk_begin[c + 1];
    return chunk_dot(chunk_of(pattern, c), p, s) + chunk_dot((chunk){0, 4 * (size_t)pattern->spill_count[c]}, beyond, spill);
}

/* What rows of s = A p get from other chunks and from couplings, filtered. */
TOILE_INLINE void finish_product(const toile_fast_job *job, int c) {
    const toile_fast *f = job->fast;
    TOILE_KERNEL(toile_fast_multiply_spill)(f, job->pattern, c, f->s);
    if (job->couplings)
        toile_couplings_add_rows_single(job->couplings, c, f->p, f->s);
    filter_single(job->constraints, c, f->s);
}

/* r -= alpha s, and a copy of r in q. */
TOILE_INLINE void chunk_advance(chunk c, float alpha, const float *restrict s, float *restrict r, float *restrict q) {
    for (size_t i = c.begin; i < c.begin + c.count; i++)
        q[i] = r[i] -= alpha * s[i];
}

/* e += alpha p with the last direction, and then the next: p = S (q + shift) + beta p. */
TOILE_INLINE void chunk_turn(const toile_fast_job *job, int c, float alpha, float beta) {
    const toile_fast *f = job->fast;
    const toile_coarse *coarse = &f->coarse;
    f4 a = f4_set(alpha), b = f4_set(beta);
    for (int i = job->pattern->chunk_begin[c]; i < job->pattern->chunk_begin[c + 1]; i++) {
        size_t at = 4 * (size_t)i;
        f4 p = f4_load(f->p + at), q = f4_load(f->q + at);
        if (coarse->sound)
            q += f4_load(coarse->shift + 4 * (size_t)coarse->patch[i]);
        f4_store(f->e + at, f4_load(f->e + at) + a * p);
        f4_store(f->p + at, q + b * p);
    }
    filter_single(job->constraints, c, f->p);
}

void TOILE_KERNEL(toile_fast_solve)(toile_fast_job *job) {
    toile_fast *f = job->fast;
    const toile_pattern *pattern = job->pattern;
    const toile_constraints *constraints = job->constraints;
    int chunks = pattern->chunk_count;
    double *sum_c = f->partial + chunks, *sum_e = sum_c + chunks;
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
            f4_store(p + i, f4_set(0));
        }
        toile_barrier_wait(&barrier);
        if (sound)
            precondition(f, r, &team);
        FOR_MY_CHUNKS(c) chunk_turn(job, c, 0, 0);
        toile_barrier_wait(&barrier);
        double delta = norm_of(f);
        toile_stop stop = toile_stop_begin(job->tolerance, job->energy * inverse_scale * inverse_scale);
        int count = 0;
        double gained = 0;
        float alpha = 0; /* of the direction that e has not got yet */
        sound = sound && delta == delta;
        /* a residual that is nothing against the answer: P is near enough to A to say so */
        bool good = scale == 0 || delta <= 1e-4 * stop.tolerance2 * stop.energy, done = good;
        while (sound && !done && count < job->iterations_max) {
            FOR_MY_CHUNKS(c) {
                TOILE_KERNEL(toile_fast_multiply)(f, pattern, c, p, s);
                sum_c[c] = chunk_curvature(f, pattern, c, p, s);
                sum_e[c] = chunk_dot(chunk_of(pattern, c), p, f->b);
            }
            pull_couplings_single(job->couplings, &team, p);
            toile_barrier_wait(&barrier);
            if (job->couplings) {
                FOR_MY_CHUNKS(c) {
                    finish_product(job, c);
                    sum_c[c] = chunk_dot(chunk_of(pattern, c), p, s);
                }
                toile_barrier_wait(&barrier);
            }
            double curvature = sum_chunks(sum_c, chunks);
            count++;
            sound = curvature > 0;
            if (!sound)
                break;
            alpha = (float)(delta / curvature);
            good = toile_stop_step(&stop, delta / curvature, delta, sum_chunks(sum_e, chunks));
            gained += delta / curvature * delta;
            good = good && ROUNDING * ROUNDING * gained <= stop.tolerance2 * stop.energy;
            done = good || (stop.count >= TOILE_STOP_LEAST && stop.error2 <= job->reduction * job->reduction * gained);
            if (done)
                break;
            FOR_MY_CHUNKS(c) {
                if (!job->couplings)
                    finish_product(job, c);
                chunk_advance(chunk_of(pattern, c), alpha, s, r, q);
            }
            toile_barrier_wait(&barrier);
            precondition(f, r, &team);
            double last = delta;
            delta = norm_of(f);
            sound = delta > 0;
            FOR_MY_CHUNKS(c) chunk_turn(job, c, alpha, (float)(delta / last));
            alpha = 0;
            toile_barrier_wait(&barrier);
        }
        FOR_MY_CHUNKS(c) FOR_ROWS(c, i) {
            f4 a = f4_load(e + i);
            if (alpha != 0)
                a += f4_set(alpha) * f4_load(p + i);
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
