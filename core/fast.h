/* The fast solver's own picture of the system: single precision, in the order in which an incomplete factor eliminates.
 *
 * Springs are multiplied connection by connection (4 numbers each, no matrix is assembled), triangles as 3x3 blocks of the
 * upper half. The preconditioner is a block incomplete Cholesky factor of the matrix core (Ye et al.): stretch connections, with
 * shear where that is stiff, or triangles; bends where they are stiff; plus the diagonal of everything; built from elements so that
 * it is positive definite. Fill of level 1 is kept but on chains of stretch and beside bends. What is far is left to a coarse level
 * (fast_coarse.h).
 *
 * Order decides what such a factor is worth. Rows are numbered by reverse Cuthill-McKee over the edges (model.c), so that
 * chains of stretch are eliminated from end to end. Two streams of rows run towards each other, one from each end, so that
 * two threads can work; the rows where they meet come last. */
#ifndef TOILE_FAST_H
#define TOILE_FAST_H

#include "coupling.h"
#include "fast_coarse.h"
#include "fast_links.h"
#include "kernels.h"

enum { TOILE_STREAMS = 2, TOILE_FAST_SUMS = 9 };

/* Constant. A position is a place in the order of elimination; stream s has positions [stream_begin[s],
 * stream_begin[s + 1]), the rows in the middle are the last. */
typedef struct toile_fast_pattern {
    int n, off_count, update_count;
    bool bends;         /* are bends in the core? */
    bool chains;        /* are chains of stretch, without fill, all of the core? */
    int stream_begin[TOILE_STREAMS + 2];
    int *row;           /* of each position, (n) */
    int *begin;         /* first later neighbour of each position, (n + 1) */
    int *split;         /* first later neighbour among the rows where streams meet, (n) */
    int *column;        /* row of a later neighbour */
    int *source_begin;  /* first source of a block; fill has none */
    int *source;        /* springs: a connection; triangles: off-diagonal of the matrix, -1 - it if transposed */
    /* per block to a later row: which blocks of the same row it meets in the elimination, and what that changes: below n the
     * diagonal of a row, from n on a block, -1 nothing that the pattern has */
    int *update_begin, *update_with, *update_target;
    toile_fast_links links; /* springs */
} toile_fast_pattern;

/* So many links that are all nothing are left out of a product: bends of cloth that is taut. */
enum { TOILE_LINKS_SLACK = 8 };

/* Where a chunk's runs begin when they are cut at links that are nothing; with chunk = chunks the room for all. */
static inline int toile_fast_run_place(const toile_fast_links *l, int chunk) {
    return l->run_begin[chunk] + l->run_link[chunk] / TOILE_LINKS_SLACK;
}

typedef struct toile_fast {
    toile_fast_pattern pattern;
    float *spring;      /* direction x sqrt(along), across: of each spring and one empty, (springs + 1) x 4 */
    float *link;        /* the same in the order of the product, (links.room x 4) */
    toile_link_run *run; /* the runs without what is slack or explicit, (toile_fast_run_place) */
    int *run_count;     /* of each chunk, (chunks) */
    float *inertia;     /* springs: the diagonal without them, xx, yy, zz, xy, xz, yz, (n x 6) */
    float *off;         /* triangles: off-diagonal blocks of the matrix, 9 each and 3 more */
    float *core;        /* triangles: the same without the hinges' part; null if the factor wants that too */
    const toile_live *live; /* triangles: blocks that are not 0; null: any may be something */
    float *diagonal;    /* rows of four, (n x 12) */
    float *spill;
    float *inverse;     /* D^-1 by position, rows of four, (n x 12) */
    float *lower;       /* D^-1 times the block to a later row, by position, (off_count x 9 + 3) */
    float *work_off;    /* while factoring, (off_count x 12) */
    float *work_diagonal; /* by row, (n x 12) */
    float *meet_off, *meet_diagonal, *meet_vector; /* what the second stream does to the rows where streams meet */
    int *constraint_of; /* constraint of a particle or -1, (n) */
    float *b, *e, *r, *p, *s, *q; /* (n x 4) */
    double *partial;    /* (TOILE_FAST_SUMS x chunks) */
    bool sound[TOILE_STREAMS + 1]; /* did the factor of each stream succeed? */
    double norm2[TOILE_STREAMS + 2]; /* parts of r' P^-1 r: of each stream, of the rows where they meet, of the coarse level */
    toile_coarse coarse;
} toile_fast;

/* Raises of the diagonal, relative: none, and dropped fill is made up for; all but none, and it is not; and so on. The last stands for
 * a factor that cannot fail (fast_factor.c), with a raise of the first. */
#define TOILE_SHIFT_PLAIN 1e-9
#define TOILE_SHIFT_FIRST 1e-3
#define TOILE_SHIFT_GROWTH 3.0
#define TOILE_SHIFT_LAST 0.2
static inline double toile_shift_after(double shift) {
    double more = shift == 0 ? TOILE_SHIFT_PLAIN : shift < TOILE_SHIFT_FIRST ? TOILE_SHIFT_FIRST : shift * TOILE_SHIFT_GROWTH;
    return shift < TOILE_SHIFT_LAST && more > TOILE_SHIFT_LAST ? TOILE_SHIFT_LAST : more;
}

/* One rung back: a raise that one rough moment needed is not kept for good. */
static inline double toile_shift_before(double shift) {
    return shift > TOILE_SHIFT_FIRST ? shift / TOILE_SHIFT_GROWTH : shift == TOILE_SHIFT_FIRST ? TOILE_SHIFT_PLAIN : 0;
}

/* One run: x += correction that brings the residual S (b - A x) down. */
typedef struct toile_fast_job {
    toile_fast *fast;
    const toile_pattern *pattern; /* of the matrix: chunks */
    const toile_constraints *constraints;
    const toile_couplings *couplings; /* null: none */
    bool fresh;                  /* a new matrix: factor first */
    double shift;                /* in: where to begin; out: what held */
    const double *b;             /* (n x 4) */
    const double *older;         /* for the guess: what the step before the last did, (n x 4), or null */
    double *residual, *x;
    double tolerance;            /* relative error of x in the energy norm */
    double reduction;            /* of the error in this run: what single precision can do */
    double energy;               /* x' A x at the start */
    int iterations_max, threads;
    int iterations;              /* out */
    bool converged;              /* out: x is good enough */
    double gained;               /* out: what the run took off the squared error */
    bool sound;                  /* out: false if the factor or the numbers broke down */
} toile_fast_job;

/* fast.c; for steps of this length, s. False if memory is short: free it in any case. */
bool toile_fast_make(toile_memory *memory, const toile_model *model, double step, toile_fast *fast);
void toile_fast_free(toile_memory *memory, toile_fast *fast);

#endif
