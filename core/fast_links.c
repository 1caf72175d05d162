#include "fast_links.h"

#include <string.h>

/* Shorter runs are not worth their own loop. */
#define RUN_LEAST 6

static int *ints(toile_memory *memory, int count) {
    return toile_alloc(memory, (size_t)count, sizeof(int));
}

static bool list_all(toile_memory *memory, const toile_model *m, toile_fast_links *l) {
    const toile_pattern *p = &m->pattern;
    int n = p->n, total = p->spring_begin[n];
    if (!(l->begin = ints(memory, n + 1)) || !(l->column = ints(memory, total)) || !(l->spring = ints(memory, total)))
        return false;
    memcpy(l->begin, p->spring_begin, ((size_t)n + 1) * sizeof(int));
    for (int k = 0; k < total; k++) {
        int spring = p->spring_code[k] >> 1, second = p->spring_code[k] & 1;
        l->column[k] = m->springs.vertex[1 - second][spring];
        l->spring[k] = spring;
    }
    return true;
}

bool toile_fast_links_make(toile_memory *memory, const toile_model *m, toile_fast_links *l) {
    memset(l, 0, sizeof *l);
    if (!list_all(memory, m, l))
        return false;
    int n = m->particle_count, chunks = m->pattern.chunk_count, once = l->begin[n] / 2;
    l->room = once + 2 * n + 1; /* a row may have an odd number of links on both sides of the chunk's end */
    if (!(l->order = ints(memory, 2 * l->room)) || !(l->to = ints(memory, l->room)) || !(l->run_begin = ints(memory, chunks + 1)) ||
        !(l->run_link = ints(memory, chunks + 1)) || !(l->loose_begin = ints(memory, n + 1)) || !(l->loose_split = ints(memory, n)) ||
        !(l->loose_row = ints(memory, n)) || !(l->loose_row_begin = ints(memory, chunks + 1)) ||
        !(l->run = toile_alloc(memory, (size_t)(once / RUN_LEAST) + 1, sizeof *l->run)) ||
        !(l->taken = toile_alloc(memory, (size_t)l->begin[n], sizeof *l->taken)))
        return false;
    toile_fast_links_list(m, NULL, l);
    return true;
}

void toile_fast_links_free(toile_memory *memory, toile_fast_links *l) {
    void *blocks[] = {l->begin, l->column, l->spring, l->order, l->run, l->run_begin, l->run_link, l->loose_begin, l->loose_split,
                      l->to, l->loose_row, l->loose_row_begin, l->taken};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    memset(l, 0, sizeof *l);
}

/* A link from `row` to `column` that is free, not taken yet; -1: none. */
static int find_free(const toile_fast_links *l, const double *share, int row, int column) {
    for (int k = l->begin[row]; k < l->begin[row + 1]; k++)
        if (l->column[k] == column && !l->taken[k] && (!share || share[l->spring[k]] != 0))
            return k;
    return -1;
}

/* Takes the link and another between the same rows, if there is one, as number `at` of the order. */
static void take(toile_fast_links *l, const double *share, int row, int link, int empty, int at) {
    l->taken[link] = true;
    int other = find_free(l, share, row, l->column[link]);
    if (other >= 0)
        l->taken[other] = true;
    l->order[2 * at] = l->spring[link];
    l->order[2 * at + 1] = other >= 0 ? l->spring[other] : empty;
}

/* Rows from `row` on, before `end`, that have a free link so far ahead, on the same side of the chunk's end. */
static int measure_run(const toile_fast_links *l, const double *share, int n, int row, int end, int ahead) {
    int count = 0, most = row + ahead < end ? end - ahead : end;
    most = most < n - ahead ? most : n - ahead;
    while (row + count < most && find_free(l, share, row + count, row + count + ahead) >= 0)
        count++;
    return count & ~1;
}

static int list_runs(const toile_model *m, const double *share, toile_fast_links *l) {
    const toile_pattern *p = &m->pattern;
    int at = 0, runs = 0;
    memset(l->taken, 0, (size_t)l->begin[p->n] * sizeof *l->taken);
    for (int c = 0; c < p->chunk_count; c++) {
        int end = p->chunk_begin[c + 1];
        l->run_begin[c] = runs;
        l->run_link[c] = at;
        for (int i = p->chunk_begin[c]; i < end; i++)
            for (int k = l->begin[i]; k < l->begin[i + 1]; k++) {
                int ahead = l->column[k] - i;
                int count = ahead > 0 && !l->taken[k] ? measure_run(l, share, p->n, i, end, ahead) : 0;
                if (count < RUN_LEAST)
                    continue;
                l->run[runs++] = (toile_link_run){i, i + ahead, count, at};
                for (int row = i; row < i + count; row++)
                    take(l, share, row, find_free(l, share, row, row + ahead), m->springs.padded, at++);
            }
    }
    l->run_begin[p->chunk_count] = runs;
    l->run_link[p->chunk_count] = at;
    return at;
}

/* Free links of row i to rows [from, to), made even. */
static int list_loose(toile_fast_links *l, const double *share, int i, int from, int to, int empty, int at) {
    int first = at;
    for (int k = l->begin[i]; k < l->begin[i + 1]; k++)
        if (l->column[k] >= from && l->column[k] < to && !l->taken[k] && (!share || share[l->spring[k]] != 0)) {
            l->to[at] = l->column[k];
            take(l, share, i, k, empty, at++);
        }
    if ((at - first) % 2) {
        l->to[at] = l->to[at - 1];
        l->order[2 * at] = l->order[2 * at + 1] = empty;
        at++;
    }
    return at;
}

void toile_fast_links_list(const toile_model *m, const double *share, toile_fast_links *l) {
    const toile_pattern *p = &m->pattern;
    int at = list_runs(m, share, l), rows = 0;
    for (int c = 0; c < p->chunk_count; c++) {
        l->loose_row_begin[c] = rows;
        for (int i = p->chunk_begin[c], end = p->chunk_begin[c + 1]; i < end; i++) {
            l->loose_begin[i] = at;
            l->loose_split[i] = at = list_loose(l, share, i, i + 1, end, m->springs.padded, at);
            at = list_loose(l, share, i, end, p->n, m->springs.padded, at);
            if (at > l->loose_begin[i])
                l->loose_row[rows++] = i;
        }
    }
    l->loose_row_begin[p->chunk_count] = rows;
    l->loose_begin[p->n] = at;
}
