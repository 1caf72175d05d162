/* Which off-diagonal blocks have an implicit element: the others are exactly 0, and assembly and products leave them out. Listed
 * anew when shares change (stability.c); the blocks keep their places, so that solvers that factor see one pattern. */
#ifndef TOILE_LIVE_H
#define TOILE_LIVE_H

#include "memory.h"
#include "model.h"

typedef struct toile_live {
    int *begin; /* first live block of each row, (n + 1) */
    int *split; /* first of the row whose column lies beyond the row's chunk, (n) */
    int *block; /* off-diagonals, ascending, (off_count) */
    int *soft;  /* in each row's list of springs: from here on all are explicit and give it only their force, (n) */
} toile_live;

/* Blocks of row i that stay in its chunk, or lead beyond it. */
static inline void toile_live_range(const toile_live *live, const toile_pattern *p, int i, bool beyond, int *from, int *to) {
    const int *begin = live ? live->begin : p->row_begin, *split = live ? live->split : p->row_split;
    *from = beyond ? split[i] : begin[i];
    *to = beyond ? begin[i + 1] : split[i];
}

static inline int toile_live_block(const toile_live *live, int at) {
    return live ? live->block[at] : at;
}

/* Null if memory is short. On its own, so that the matrix may point at it while simulations change places (weld.c). */
toile_live *toile_live_make(toile_memory *memory, const toile_pattern *pattern);
void toile_live_free(toile_memory *memory, toile_live *live);

struct toile_sim;
/* From the shares of the elements; what has died becomes 0. */
void toile_live_list(struct toile_sim *sim);

#endif
