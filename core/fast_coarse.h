/* The coarse level of the fast solver: patches of some hundred particles that move as one.
 *
 * An incomplete factor knows what is near; what is far it learns by a patch of cloth per iteration, and stretch waves cross a whole
 * garment in one step. So what the factor gives is added to by the answer of a small system, A seen by patches that can only be
 * shifted: C = P' S A S P, plus s (I - S), with P = 1 on the particles of a patch (two-level additive Schwarz; Nicolaides 1987,
 * Toselli and Widlund 2005, ch. 3). C is factored in double precision within its envelope (fast_patches.c). A cotton sheet of 161 x 161 that
 * hangs by two corners takes 12 iterations instead of 35 beside a factor with its bends, springs 12 instead of 51.
 *
 * Pairs of layers that press on each other (coupling.h) are in the diagonal of A alone, as in the factor. Tried on dumped systems
 * and dropped: affine shifts (8 iterations instead of 9 at three times the unknowns), smoothed patches (7 to 8, but each block of A
 * then adds to four of C), applying the levels one after the other (7, with two more products each). */
#ifndef TOILE_FAST_COARSE_H
#define TOILE_FAST_COARSE_H

#include "memory.h"
#include "model.h"

/* A spring from a row of a patch to one of another. */
typedef struct toile_crossing {
    int row, column, spring;
    int pair; /* of the patches, -1: the other patch has it */
} toile_crossing;

typedef struct toile_coarse {
    int count;          /* patches; 0: none, where a mesh is small or its patches too entangled */
    int *patch;         /* of each row, (n) */
    int *begin, *row;   /* rows of each patch, ascending, (count + 1), (n) */
    int *pair_begin;    /* pairs of a patch and one that blocks of its rows lead to, itself first, (count + 1) */
    int *pair_to;
    int *crossing_begin; /* springs: crossings of each patch, (count + 1) */
    toile_crossing *crossing; /* those of a pair one after the other */
    int *pair_of;       /* triangles: of each off-diagonal block of the matrix, (off_count) */
    int *column;        /* first number of each column of the factor, (3 x count + 1) */
    double *pair;       /* 3x3 blocks, rows of four whose fourth numbers mean nothing, (pairs x 12) */
    double *factor;     /* lower triangle, column by column, each from its diagonal (there the inverse) to the end of its envelope */
    double *vector;     /* right side, then answer, (3 x count) */
    float *shift;       /* the answer, (4 x count) */
    bool sound;         /* does the factor stand? */
} toile_coarse;

/* False if memory is short: free it in any case. */
bool toile_coarse_make(toile_memory *memory, const toile_model *model, toile_coarse *coarse);
void toile_coarse_free(toile_memory *memory, toile_coarse *coarse);

#endif
