/* The springs as the fast product takes them: each once, from the lower of its rows, two between the same rows as one.
 *
 * Rows are numbered level by level (order.c), so on a mesh with any regularity the next row's link goes to the next column. Such
 * links make a run: two of them are multiplied at a time from vectors that lie side by side in memory, without an index. What is
 * left over are loose links of a row, by twos. On a grid of 161 x 161 nearly all are in runs, and within the iterations
 * the product takes 0.27 ms instead of 0.72; on a mesh with diagonals at random a quarter are. */
#ifndef TOILE_FAST_LINKS_H
#define TOILE_FAST_LINKS_H

#include "memory.h"
#include "model.h"

/* Links from rows row, row + 1, ... to column, column + 1, ... */
typedef struct toile_link_run {
    int row, column;
    int count; /* even */
    int link;  /* the first */
} toile_link_run;

typedef struct toile_fast_links {
    int *begin;           /* first link of a row to any other, (n + 1) */
    int *column, *spring; /* of these */
    /* each once, as the product takes them: all runs, then what is loose */
    int *order;           /* spring of each, and another between the same rows or the empty one, (room x 2) */
    int room;
    toile_link_run *run;
    int *run_begin;       /* first run of each chunk, (chunks + 1) */
    int *run_link;        /* first link of each chunk's runs, (chunks + 1) */
    /* loose links of a row to higher ones: first, (n + 1), first to a row beyond the chunk, (n); an odd one is followed by the
     * empty spring to the same row */
    int *loose_begin, *loose_split;
    int *to;              /* column of a loose link, (room) */
    int *loose_row;       /* rows that have loose links, (n) */
    int *loose_row_begin; /* first of each chunk, (chunks + 1) */
    bool *taken;          /* scratch: of each link, is it in the order? */
} toile_fast_links;

/* False if memory is short: free it in any case. */
bool toile_fast_links_make(toile_memory *memory, const toile_model *model, toile_fast_links *links);
void toile_fast_links_free(toile_memory *memory, toile_fast_links *links);
/* Lists runs and loose links anew, of springs with a share alone; null: of all. */
void toile_fast_links_list(const toile_model *model, const double *share, toile_fast_links *links);

#endif
