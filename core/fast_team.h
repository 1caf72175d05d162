/* What the threads of one solve do together: factoring, and applying the factor. Every thread of the team calls these. */
#ifndef TOILE_FAST_TEAM_H
#define TOILE_FAST_TEAM_H

#include "barrier.h"
#include "fast_kernels.h"

#include <immintrin.h>
#include <omp.h>

/* Numbers below 1e-38 count as zero: far from a blow directions fade into such numbers, and the processor is a hundred times
 * slower with them. (Flush to zero and denormals are zero, of this thread and until it is undone.) */
static inline unsigned toile_flush_tiny(void) {
    unsigned rounding = _mm_getcsr();
    _mm_setcsr(rounding | 0x8040u);
    return rounding;
}

static inline void toile_restore_rounding(unsigned rounding) {
    _mm_setcsr(rounding);
}

typedef struct team {
    toile_barrier *barrier;
    int thread, threads;
    int chunk_begin, chunk_end; /* chunks of rows that are this thread's: contiguous, so that they stay in its cache */
} team;

/* The calling thread's place in its team; every thread of it calls this once, with one barrier. */
static inline team join_team(toile_barrier *barrier, int chunks) {
    int thread = omp_get_thread_num(), threads = omp_get_num_threads();
#pragma omp single
    barrier->threads = threads;
    return (team){barrier, thread, threads, chunks * thread / threads, chunks * (thread + 1) / threads};
}

#define FOR_MY_CHUNKS(c) for (int c = mine; c < mine_end; c++)
#define FOR_ROWS(c, i) for (size_t i = 4 * (size_t)pattern->chunk_begin[c]; i < 4 * (size_t)pattern->chunk_begin[c + 1]; i += 4)
#define FOR_MY_STREAMS(s) for (int s = team->thread; s < TOILE_STREAMS; s += team->threads)

TOILE_INLINE double sum_chunks(const double *partial, int chunks) {
    double sum = 0;
    for (int c = 0; c < chunks; c++)
        sum += partial[c];
    return sum;
}

/* Filters y in place in the chunk's constrained particles. S is symmetric: rows are columns. */
TOILE_INLINE void filter_chunk(const toile_constraints *c, int chunk, double *y) {
    for (int k = c->chunk_begin[chunk]; k < c->chunk_begin[chunk + 1]; k++) {
        double *yi = y + 4 * (size_t)c->particle[k];
        v4_store(yi, block_times(c->filter + 12 * (size_t)k, v4_load(yi)));
    }
}

TOILE_INLINE void filter_single(const toile_constraints *c, int chunk, float *y) {
    for (int k = c->chunk_begin[chunk]; k < c->chunk_begin[chunk + 1]; k++) {
        const double *S = c->filter + 12 * (size_t)k;
        float *yi = y + 4 * (size_t)c->particle[k];
        v4 a = v4_load(S) * v4_set(yi[0]) + v4_load(S + 4) * v4_set(yi[1]) + v4_load(S + 8) * v4_set(yi[2]);
        f4_store(yi, (f4){(float)a[0], (float)a[1], (float)a[2], 0});
    }
}

/* This thread's part of the couplings' products; rows are added after the next barrier. */
TOILE_INLINE void pull_couplings(const toile_couplings *c, const team *team, const double *x) {
    if (c)
        toile_couplings_pull(c, toile_share(c->count, team->thread, team->threads),
                             toile_share(c->count, team->thread + 1, team->threads), x);
}

TOILE_INLINE void pull_couplings_single(const toile_couplings *c, const team *team, const float *x) {
    if (c)
        toile_couplings_pull_single(c, toile_share(c->count, team->thread, team->threads),
                                    toile_share(c->count, team->thread + 1, team->threads), x);
}

/* q = P^-1 q in place. If r, which q is a copy of, is given, the shifts of the patches are found beside it, to be added. Leaves what
 * norm_of adds up: the sum needs no look at q and r. */
static inline void precondition(toile_fast *f, const float *r, const team *team) {
    const toile_coarse *coarse = r && f->coarse.sound ? &f->coarse : NULL;
    if (coarse)
        TOILE_KERNEL(toile_coarse_restrict)(coarse, r, toile_share(coarse->count, team->thread, team->threads),
                              toile_share(coarse->count, team->thread + 1, team->threads));
    FOR_MY_STREAMS(s) f->norm2[s] = TOILE_KERNEL(toile_fast_forward)(f, s, f->q);
    toile_barrier_wait(team->barrier);
    if (team->thread == 0) {
        f->norm2[TOILE_STREAMS] = TOILE_KERNEL(toile_fast_forward)(f, TOILE_STREAMS, f->q);
        TOILE_KERNEL(toile_fast_backward)(f, TOILE_STREAMS, f->q);
    }
    if (team->thread == team->threads - 1)
        f->norm2[TOILE_STREAMS + 1] = coarse ? TOILE_KERNEL(toile_coarse_solve)(coarse) : 0;
    toile_barrier_wait(team->barrier);
    FOR_MY_STREAMS(s) TOILE_KERNEL(toile_fast_backward)(f, s, f->q);
    toile_barrier_wait(team->barrier);
}

/* r' P^-1 r, the coarse level included. */
TOILE_INLINE double norm_of(const toile_fast *f) {
    double sum = 0;
    for (int k = 0; k < TOILE_STREAMS + 2; k++)
        sum += f->norm2[k];
    return sum;
}

/* Factors, and the coarse level with it if a pattern is given; the shift goes up until no pivot fails. f->sound[TOILE_STREAMS] says
 * whether one held. */
static inline void prepare(toile_fast *f, const toile_pattern *pattern, const toile_constraints *constraints, double *shift,
                           const team *team) {
    int n = f->pattern.n, mine = team->chunk_begin, mine_end = team->chunk_end;
    for (int i = (int)((int64_t)n * team->thread / team->threads); i < (int)((int64_t)n * (team->thread + 1) / team->threads); i++)
        f->constraint_of[i] = -1;
    toile_barrier_wait(team->barrier);
    FOR_MY_CHUNKS(c)
        for (int k = constraints->chunk_begin[c]; k < constraints->chunk_begin[c + 1]; k++)
            f->constraint_of[constraints->particle[k]] = k;
    toile_barrier_wait(team->barrier);
    if (pattern) {
        TOILE_KERNEL(toile_coarse_gather)(f, pattern, constraints, toile_share(f->coarse.count, team->thread, team->threads),
                            toile_share(f->coarse.count, team->thread + 1, team->threads));
        toile_barrier_wait(team->barrier);
        if (team->thread == team->threads - 1)
            TOILE_KERNEL(toile_coarse_factor)(&f->coarse);
    }
    for (double raise = *shift; raise <= TOILE_SHIFT_LAST; raise = toile_shift_after(raise)) {
        FOR_MY_STREAMS(s) f->sound[s] = TOILE_KERNEL(toile_fast_factor)(f, constraints, raise, s);
        toile_barrier_wait(team->barrier);
        if (team->thread == 0) {
            *shift = raise;
            f->sound[TOILE_STREAMS] = f->sound[0] && f->sound[1] &&
                                      TOILE_KERNEL(toile_fast_factor)(f, constraints, raise, TOILE_STREAMS);
        }
        toile_barrier_wait(team->barrier);
        if (f->sound[TOILE_STREAMS])
            break;
        toile_barrier_wait(team->barrier); /* before the next attempt writes `sound` */
    }
}

#endif
