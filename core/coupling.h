/* What holds cloth off cloth within one linear solve: each coupling is a symmetric tensor T that resists the relative velocity
 * u = sum of w_i v_i of up to four particles, so A gains w_i w_j T. The pattern of A is fixed, so only diagonal blocks go into
 * the matrix (and into its factor); the rest is multiplied coupling by coupling. */
#ifndef TOILE_COUPLING_H
#define TOILE_COUPLING_H

#include "memory.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct toile_coupling {
    int particle[4];  /* -1: none, or no particle of the cloth */
    double weight[4]; /* 0 where there is none */
    double tensor[6]; /* T: xx xy xz yy yz zz, kg */
    double push[3];   /* impulse at u = 0, N s: b gains w_i (push - T u_known) */
    double known[3];  /* the part of u that is known beforehand, m/s */
    /* what it was made from (press.c) */
    double normal[3], direction[3]; /* of the contact; of slip, 0 while it sticks */
    double stiffness, target;       /* normal impulse is stiffness x (target - u . normal), kg, m/s */
    double grip;                    /* of sticking, kg */
    double friction;                /* static */
    double guess, used;             /* normal impulse guessed before the step; that friction was made from, -1: sticks; N s */
    bool layers;                    /* of cloth that are nearer than their thickness */
} toile_coupling;

/* The same for the products within a solve: all that they need of it side by side. */
typedef struct toile_coupling_single {
    int particle[4];  /* 0, with weight 0, where there is none */
    float weight[4];
    float tensor[12]; /* T by rows, each padded to 4 */
} toile_coupling_single;

typedef struct toile_couplings {
    int count, capacity;
    toile_coupling *item;
    int row_count;        /* particles that have any */
    int *row, *begin;     /* ascending; first of their entries, (row_count + 1) */
    int *entry;           /* coupling * 4 + corner, (4 x count) */
    int *chunk_begin;     /* first row of each chunk, (chunks + 1) */
    int *slot;            /* scratch, (particles + 1) */
    double *pull;         /* T u, (capacity x 4) */
    toile_coupling_single *single; /* (capacity) */
    float *single_pull;   /* (capacity x 4) */
    float *single_weight; /* of each entry, (4 x capacity) */
    float *single_own;    /* what assembly added to the diagonal block of each row, (particles x 12) */
} toile_couplings;

bool toile_couplings_make(toile_memory *memory, int particles, int chunks, toile_couplings *couplings);
void toile_couplings_free(toile_memory *memory, toile_couplings *couplings);
/* Room for one more; null if memory is short. Not in the sum until toile_couplings_sort. */
toile_coupling *toile_couplings_add(toile_memory *memory, toile_couplings *couplings);
/* Which particle has which, in an order that depends on nothing else. */
void toile_couplings_sort(toile_couplings *couplings, int particles, const int *chunk_begin, int chunks);
/* Adds the diagonal blocks to `diagonal` (and `single` and `inertia`, if not null, which is of springs alone), and the right side
 * to b. */
void toile_couplings_assemble(toile_couplings *couplings, double *diagonal, float *single, float *inertia, double *b);

/* y += off-diagonal part of the couplings times x: all of the first, then, when all threads are done, the rows. Couplings
 * [begin, end); rows of a chunk. */
void toile_couplings_pull(const toile_couplings *couplings, int begin, int end, const double *x);
void toile_couplings_add_rows(const toile_couplings *couplings, int chunk, const double *x, double *y);
void toile_couplings_pull_single(const toile_couplings *couplings, int begin, int end, const float *x);
void toile_couplings_add_rows_single(const toile_couplings *couplings, int chunk, const float *x, float *y);

static inline int toile_share(int count, int thread, int threads) {
    return (int)((long long)count * thread / threads);
}

#endif
