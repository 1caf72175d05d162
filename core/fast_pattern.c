/* The constant part of the fast solver: order of elimination, pattern of the factor, links of the springs. */
#include "fast_pattern.h"

#include <stdlib.h>
#include <string.h>

/* An edge of the factor's graph seen from one of its ends. */
typedef struct arc {
    int from, to; /* positions, from < to */
    int source;
} arc;

static int *ints(toile_memory *memory, int count) {
    return toile_alloc(memory, (size_t)count, sizeof(int));
}

static int compare_arcs(const void *a, const void *b) {
    const arc *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Is connection or block k in the matrix core? Stretch connections, blocks with triangles; and ties. */
static bool in_core(const toile_model *m, int k) {
    if (m->springs_used)
        return k < m->springs.stretch_count || toile_is_tie(&m->springs, k);
    const int *begin = m->pattern.triangle_begin + m->particle_count + k;
    const int *tie = m->pattern.spring_begin + m->particle_count + k;
    return begin[1] > begin[0] || tie[1] > tie[0];
}

/* Edge k of the graph: rows i < j. Springs: stretch connections; triangles: off-diagonal blocks. */
static void edge_of(const toile_model *m, int k, int *row_of, int *i, int *j) {
    if (m->springs_used) {
        int a = m->springs.vertex[0][k], b = m->springs.vertex[1][k];
        *i = a < b ? a : b;
        *j = a < b ? b : a;
    } else {
        *i = row_of[k];
        *j = m->pattern.column[k];
    }
}

/* Where each row is eliminated: rows [0, a) upwards, rows [a + m, n) downwards, the m rows between last. m is the least
 * that leaves no edge between the streams. */
static void order_positions(const toile_model *m, toile_fast_pattern *f, int edges, int *row_of, int *position) {
    int n = f->n, a = n / 2, end = a;
    for (int k = 0; k < edges; k++) {
        int i, j;
        edge_of(m, k, row_of, &i, &j);
        if (in_core(m, k) && i < a && j >= end)
            end = j + 1;
    }
    if (end > n - n / 4) /* too tangled for two: one stream */
        a = end = n;
    for (int i = 0; i < n; i++) {
        position[i] = i < a ? i : i >= end ? a + (n - 1 - i) : n - (end - a) + (i - a);
        f->row[position[i]] = i;
    }
    f->stream_begin[0] = 0;
    f->stream_begin[1] = a;
    f->stream_begin[2] = n - (end - a);
    f->stream_begin[3] = n;
}

static int find_later(const toile_fast_pattern *f, const int *position, int from, int to) {
    int lo = f->begin[from], hi = f->begin[from + 1] - 1;
    while (lo <= hi) {
        int mid = (lo + hi) / 2, at = position[f->column[mid]];
        if (at == to)
            return mid;
        if (at < to)
            lo = mid + 1;
        else
            hi = mid - 1;
    }
    return -1;
}

/* Eliminating a row changes block (j, k) of its later neighbours j <= k. If the pattern does not have it, triangles note the
 * pair with target -1 (see add_to_diagonals in fast_factor.c); neighbours along stretch connections are all but orthogonal, and
 * nothing is lost without. */
static bool list_updates(toile_memory *memory, toile_fast_pattern *f, const int *position, bool dropped) {
    f->update_begin = ints(memory, f->off_count + 1);
    if (!f->update_begin)
        return false;
    for (int pass = 0; pass < 2; pass++) {
        int count = 0;
        for (int p = 0; p < f->n; p++)
            for (int k = f->begin[p]; k < f->begin[p + 1]; k++) {
                f->update_begin[k] = count;
                for (int j = f->begin[p]; j <= k; j++) {
                    int target = j == k ? f->column[k] : find_later(f, position, position[f->column[j]], position[f->column[k]]);
                    if (target < 0 && !dropped)
                        continue;
                    if (pass) {
                        f->update_with[count] = j;
                        f->update_target[count] = target < 0 ? -1 : j == k ? target : f->n + target;
                    }
                    count++;
                }
            }
        f->update_begin[f->off_count] = f->update_count = count;
        if (pass == 0 && (!(f->update_with = ints(memory, count)) || !(f->update_target = ints(memory, count))))
            return false;
    }
    return true;
}

static bool list_links(toile_memory *memory, const toile_model *m, toile_fast_pattern *f) {
    const toile_pattern *p = &m->pattern;
    int total = 0;
    if (!(f->link_begin = ints(memory, f->n + 1)))
        return false;
    for (int i = 0; i < f->n; i++) {
        f->link_begin[i] = total;
        total += (p->spring_begin[i + 1] - p->spring_begin[i] + 3) / 4 * 4;
    }
    f->link_begin[f->n] = total;
    if (!(f->link_column = ints(memory, total)) || !(f->link_spring = ints(memory, total)))
        return false;
    for (int i = 0; i < f->n; i++) {
        int at = f->link_begin[i];
        for (int k = p->spring_begin[i]; k < p->spring_begin[i + 1]; k++, at++) {
            int spring = p->spring_code[k] >> 1, second = p->spring_code[k] & 1;
            f->link_column[at] = m->springs.vertex[1 - second][spring];
            f->link_spring[at] = spring;
        }
        for (; at < f->link_begin[i + 1]; at++) {
            f->link_column[at] = i;
            f->link_spring[at] = m->springs.padded;
        }
    }
    return true;
}

bool toile_fast_pattern_make(toile_memory *memory, const toile_model *m, toile_fast_pattern *f) {
    const toile_pattern *p = &m->pattern;
    int candidates = m->springs_used ? m->springs.padded : p->off_count, edges = 0;
    memset(f, 0, sizeof *f);
    f->n = m->particle_count;
    int *position = ints(memory, f->n), *row_of = ints(memory, p->off_count);
    arc *arcs = toile_alloc(memory, (size_t)candidates, sizeof *arcs);
    bool ok = position && row_of && arcs && (f->row = ints(memory, f->n)) && (f->begin = ints(memory, f->n + 1)) &&
              (f->split = ints(memory, f->n)) && (f->column = ints(memory, candidates)) && (f->source = ints(memory, candidates)) &&
              (f->source_begin = ints(memory, candidates + 1));
    if (ok) {
        for (int i = 0; i < f->n; i++)
            for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++)
                row_of[k] = i;
        order_positions(m, f, candidates, row_of, position);
        for (int k = 0; k < candidates; k++) {
            if (!in_core(m, k))
                continue;
            int i, j;
            edge_of(m, k, row_of, &i, &j);
            bool forward = position[i] < position[j];
            arcs[edges++] = (arc){position[forward ? i : j], position[forward ? j : i], forward || m->springs_used ? k : -1 - k};
        }
        qsort(arcs, (size_t)edges, sizeof *arcs, compare_arcs);
        for (int k = 0; k < edges; k++) {
            if (k == 0 || compare_arcs(&arcs[k - 1], &arcs[k])) { /* a new block */
                f->begin[arcs[k].from + 1]++;
                f->source_begin[f->off_count] = k;
                f->column[f->off_count++] = f->row[arcs[k].to];
            }
            f->source[k] = arcs[k].source;
        }
        f->source_begin[f->off_count] = edges;
        for (int i = 0; i < f->n; i++) {
            f->begin[i + 1] += f->begin[i];
            int k = f->begin[i];
            while (k < f->begin[i + 1] && position[f->column[k]] < f->stream_begin[TOILE_STREAMS])
                k++;
            f->split[i] = k;
        }
        ok = list_updates(memory, f, position, !m->springs_used) && (!m->springs_used || list_links(memory, m, f));
    }
    toile_free(memory, position);
    toile_free(memory, row_of);
    toile_free(memory, arcs);
    return ok;
}

void toile_fast_pattern_free(toile_memory *memory, toile_fast_pattern *f) {
    int *blocks[] = {f->row,         f->begin,       f->split,      f->column,      f->source, f->source_begin,    f->update_begin,
                     f->update_with, f->update_target, f->link_begin, f->link_column, f->link_spring};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    memset(f, 0, sizeof *f);
}
