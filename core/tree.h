/* A tree of boxes over triangles, one triangle per leaf. Its shape is made once, from where triangles lie in the
 * material (cloth) or at the start (colliders); boxes are refitted as it moves. Children of node i are i + 1 and `right`. */
#ifndef TOILE_TREE_H
#define TOILE_TREE_H

#include "memory.h"

#include <stdbool.h>
#include <xmmintrin.h>

typedef struct toile_tree_node {
    int right; /* 0: a leaf */
    int item;  /* of a leaf: its triangle; else how many leaves are below */
    bool whole; /* all below is of one piece of material */
    bool fresh; /* something below has a new box */
    bool even;  /* all points below have calm fans */
    bool calm;  /* nothing below can touch anything else below: it was not looked for */
} toile_tree_node;

typedef struct toile_box {
    float lo[4], hi[4];
} toile_box;

typedef struct toile_tree {
    int count;              /* leaves; nodes are 2 count - 1 */
    toile_tree_node *nodes; /* (2 count - 1) */
    int *leaf_of;           /* node of each triangle, (count) */
    toile_box *box;         /* where it is during the step, (nodes) */
    toile_box *turn;        /* cloth: bounds of unit normals, then of warp directions, (2 x nodes); else null */
} toile_tree;

/* Splits at the median of the longest extent of `place` (count x 3), again and again. `piece` (count) says what is one piece of
 * material, null if nothing is; then there are no turns. False if memory is short: free it in any case. */
bool toile_tree_make(toile_memory *memory, int count, const double *place, const int *piece, toile_tree *tree);
void toile_tree_free(toile_memory *memory, toile_tree *tree);

/* Moves the items with the smaller half of the places (x 3) along `axis` to the front (Hoare's selection; ties by index, so that
 * a tree is the same every time). */
void toile_select_half(const double *place, int *order, int count, int axis);

/* Boxes of the inner nodes above leaves that are fresh, from those of the leaves; which inner nodes are fresh. */
void toile_tree_refit(toile_tree *tree);

/* All comparisons at once: branches would be guessed wrong half of the time. The fourth numbers are 0 in all. */
static inline bool toile_boxes_meet(const toile_box *a, const toile_box *b) {
    __m128 left = _mm_cmple_ps(_mm_loadu_ps(a->lo), _mm_loadu_ps(b->hi)), right = _mm_cmple_ps(_mm_loadu_ps(b->lo), _mm_loadu_ps(a->hi));
    return _mm_movemask_ps(_mm_and_ps(left, right)) == 15;
}

#endif
