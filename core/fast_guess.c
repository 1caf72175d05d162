/* Where the fast solver begins, in single precision: x = S (t dv + u (dv - older)) + (I - S) z with the t and u that have the least
 * energy, dv and older being what the last two steps did. t = 0 and t = 1 are both too good to choose between beforehand (impact,
 * smooth motion); u follows motion that changes evenly: a cotton sheet of 161 x 161 that swings by two corners takes 9
 * iterations instead of 15 for it. (A third step brings no more.) Good for errors that single precision
 * can reach; finer ones take t alone in double (solve.c). */
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

/* dv - older of a chunk; true if any is not 0. */
static bool take_change(const toile_fast_job *job, int c, float *to) {
    const toile_pattern *pattern = job->pattern;
    double any = 0;
    FOR_ROWS(c, i) {
        v4 change = v4_load(job->x + i) - v4_load(job->older + i);
        f4_store(to + i, (f4){(float)change[0], (float)change[1], (float)change[2], 0});
        any += fabs(change[0]) + fabs(change[1]) + fabs(change[2]);
    }
    filter_single(job->constraints, c, to);
    return any != 0;
}

TOILE_INLINE v4 widened(const float *a) {
    f4 s = f4_load(a);
    return (v4){s[0], s[1], s[2], 0};
}

/* Below this part of its two vectors' energy what is new in the second is rounding. */
#define PARALLEL 1e-6

/* t and u of least energy: [uu uw; uw ww] (t, u) = (ub, wb). */
static void best_of(double uu, double uw, double ww, double ub, double wb, double *t, double *u) {
    double det = uu * ww - uw * uw;
    *t = uu > 0 ? ub / uu : 0;
    *u = 0;
    if (det > PARALLEL * uu * ww) {
        *t = (ub * ww - wb * uw) / det;
        *u = (wb * uu - ub * uw) / det;
    }
    if (!isfinite(*t) || !isfinite(*u))
        *t = *u = 0;
}

void TOILE_KERNEL(toile_fast_guess)(toile_fast_job *job) {
    toile_fast *f = job->fast;
    const toile_pattern *pattern = job->pattern;
    const toile_constraints *constraints = job->constraints;
    int chunks = pattern->chunk_count;
    enum { GIVEN, CHANGED, DRIVEN, UB, UU, UW, WW, WB, ENERGY, SUMS };
    _Static_assert((int)SUMS == (int)TOILE_FAST_SUMS, "room for the sums");
    double *sum[SUMS], *x = job->x;
    for (int k = 0; k < SUMS; k++)
        sum[k] = f->partial + (size_t)k * (size_t)chunks;
    const double *z = constraints->z, *b = job->b;
    toile_barrier barrier = {0};
    int wanted = job->threads < chunks ? job->threads : chunks;

#pragma omp parallel num_threads(wanted) if (wanted > 1)
    {
        team team = join_team(&barrier, chunks);
        int mine = team.chunk_begin, mine_end = team.chunk_end;
        unsigned rounding = toile_flush_tiny();
        FOR_MY_CHUNKS(c) {
            sum[CHANGED][c] = job->older && take_change(job, c, f->r);
            filter_chunk(constraints, c, x);
            sum[GIVEN][c] = take(pattern, c, x, f->p);
            sum[DRIVEN][c] = take(pattern, c, z, f->e);
        }
        toile_barrier_wait(&barrier);
        bool guessed = sum_chunks(sum[GIVEN], chunks) > 0, driven = sum_chunks(sum[DRIVEN], chunks) > 0;
        bool changed = guessed && sum_chunks(sum[CHANGED], chunks) > 0;
        if (guessed)
            product(job, &team, f->p, f->s);
        if (changed)
            product(job, &team, f->r, f->b);
        if (driven)
            product(job, &team, f->e, f->q);
        FOR_MY_CHUNKS(c) {
            v4 ub = v4_set(0), uu = ub, uw = ub, ww = ub, wb = ub;
            if (guessed)
                FOR_ROWS(c, i) {
                    v4 u = v4_load(x + i), au = widened(f->s + i);
                    ub += u * v4_load(b + i) - au * v4_load(z + i);
                    uu += u * au;
                    if (changed) {
                        v4 w = widened(f->r + i), aw = widened(f->b + i);
                        wb += w * v4_load(b + i) - aw * v4_load(z + i);
                        uw += u * aw;
                        ww += w * aw;
                    }
                }
            sum[UB][c] = v4_sum(ub);
            sum[UU][c] = v4_sum(uu);
            sum[UW][c] = v4_sum(uw);
            sum[WW][c] = v4_sum(ww);
            sum[WB][c] = v4_sum(wb);
        }
        toile_barrier_wait(&barrier);
        double t, u;
        best_of(sum_chunks(sum[UU], chunks), sum_chunks(sum[UW], chunks), sum_chunks(sum[WW], chunks), sum_chunks(sum[UB], chunks),
                sum_chunks(sum[WB], chunks), &t, &u);
        FOR_MY_CHUNKS(c) {
            v4 energy = v4_set(0);
            FOR_ROWS(c, i) {
                v4 xi = v4_load(z + i), own = v4_set(0);
                if (guessed) {
                    xi += v4_set(t) * v4_load(x + i);
                    own += v4_set(t) * widened(f->s + i);
                }
                if (changed) {
                    xi += v4_set(u) * widened(f->r + i);
                    own += v4_set(u) * widened(f->b + i);
                }
                if (driven)
                    own += widened(f->q + i);
                v4_store(x + i, xi);
                v4_store(job->residual + i, v4_load(b + i) - own);
                energy += xi * own;
            }
            sum[ENERGY][c] = v4_sum(energy);
            filter_chunk(constraints, c, job->residual);
        }
        toile_barrier_wait(&barrier);
        if (team.thread == 0)
            job->energy = sum_chunks(sum[ENERGY], chunks);
        toile_restore_rounding(rounding);
    }
}
