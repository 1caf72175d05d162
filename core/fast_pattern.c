/* The constant part of the fast solver: order of elimination, pattern of the factor. */
#include "fast_pattern.h"

#include "force_spring.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* An edge of the factor's graph seen from one of its ends. */
typedef struct arc {
    int from, to; /* positions, from < to */
    int source;
} arc;
#define NO_SOURCE INT_MIN

static int *ints(toile_memory *memory, int count) {
    return toile_alloc(memory, (size_t)count, sizeof(int));
}

static int compare_arcs(const void *a, const void *b) {
    const arc *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

/* Which connections the core has beside those of stretch, and ties. */
typedef struct extent {
    bool shear, bend;
} extent;

/* Shear that is stiff against stretch belongs to the core too: without it a sheet of 81 x 81 with 300 against 6000 N/m takes
 * 80 iterations instead of 29; from 0.01 on that pays for the larger factor (measured 0.0017 to 0.05). So long as it is stiff
 * against inertia as well, h^2 k > m: with 0.3 against 60 N/m on 161 x 161 it saves 2 of 12 iterations at twice the time. */
#define SHEAR_OVER_STRETCH 0.01
#define SHEAR_OVER_INERTIA 10

/* So does bend, which near rest is all but a jump: a flat hanging sheet of 161 x 161 takes 60 iterations instead of 260. At
 * 81 x 81, 1300 times its inertia, it is a draw. */
#define BEND_OVER_INERTIA 1000

/* The same of hinges, whose stiffness against inertia goes with the fourth power of the mesh: cotton at steps of 1/120 s takes 12
 * iterations instead of 38 at 161 x 161 and 10 instead of 24 at 121 x 121, and three quarters of the time. At 81 x 81 it is a
 * draw. */
#define HINGE_OVER_INERTIA 1

static double inertia_of(const toile_model *m, double step) {
    double mass = 0;
    for (int i = 0; i < m->particle_count; i++)
        mass += m->mass[i];
    return mass / (step * step * m->particle_count);
}

/* A hinge's moment per angle over the area of a particle is a force per way. */
static extent extent_of_hinges(const toile_model *m, double step) {
    double moment = 0, area = 0;
    for (int e = 0; e < m->hinges.count; e++)
        moment += m->hinges.bound[e];
    for (int i = 0; i < m->particle_count; i++)
        area += m->area[i];
    double bend = m->hinges.count ? moment / m->hinges.count * m->particle_count / area : 0;
    return (extent){.bend = bend > HINGE_OVER_INERTIA * inertia_of(m, step)};
}

static extent extent_of(const toile_model *m, double step) {
    const toile_springs *s = &m->springs;
    if (!m->springs_used)
        return extent_of_hinges(m, step);
    double stretch = 0, shear = 0, bend = 0, inertia = inertia_of(m, step), jump = -toile_bend_polynomial(1 - TOILE_BEND_LINEAR, NULL);
    int sheared = s->axial_count - s->stretch_count;
    for (int k = 0; k < s->axial_count; k++)
        *(k < s->stretch_count ? &stretch : &shear) += s->stiffness[k];
    for (int k = s->axial_padded; k < s->axial_padded + s->bend_count; k++)
        bend += jump * s->stiffness[k] / (TOILE_BEND_LINEAR * s->length[k]);
    return (extent){shear * s->stretch_count > SHEAR_OVER_STRETCH * stretch * sheared &&
                        shear > SHEAR_OVER_INERTIA * inertia * sheared,
                    bend > BEND_OVER_INERTIA * inertia * s->bend_count};
}

/* Is connection or block k in the matrix core? Stretch connections (and stiff shear and bend), blocks with triangles (and stiff
 * hinges); and ties. */
static bool in_core(const toile_model *m, extent more, int k) {
    const toile_springs *s = &m->springs;
    if (m->springs_used)
        return k < s->stretch_count || (more.shear && k < s->axial_count) ||
               (more.bend && k >= s->axial_padded && k < s->axial_padded + s->bend_count) || toile_is_tie(s, k);
    const int *begin = m->pattern.triangle_begin + m->particle_count + k;
    const int *tie = m->pattern.spring_begin + m->particle_count + k;
    return more.bend || begin[1] > begin[0] || tie[1] > tie[0];
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
static void order_positions(const toile_model *m, toile_fast_pattern *f, extent more, int edges, int *row_of, int *position) {
    int n = f->n, a = n / 2, end = a;
    for (int k = 0; k < edges; k++) {
        int i, j;
        edge_of(m, k, row_of, &i, &j);
        if (in_core(m, more, k) && i < a && j >= end)
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

/* Eliminating a row changes block (j, k) of its later neighbours j <= k. If the pattern does not have it, the pair is noted with
 * target -1 (see add_to_diagonals in fast_factor.c). */
static bool list_updates(toile_memory *memory, toile_fast_pattern *f, const int *position) {
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

/* Blocks between later neighbours of a row that have none: where eliminating the row puts something (level 1). Appends arcs
 * without a source, each as often as it is found; counts them if `arcs` is null. */
static int list_fill(const toile_fast_pattern *f, const int *position, arc *arcs) {
    int count = 0;
    for (int p = 0; p < f->n; p++)
        for (int k = f->begin[p]; k < f->begin[p + 1]; k++)
            for (int j = f->begin[p]; j < k; j++) {
                int from = position[f->column[j]], to = position[f->column[k]];
                if (find_later(f, position, from, to) >= 0)
                    continue;
                if (arcs)
                    arcs[count] = (arc){from, to, NO_SOURCE};
                count++;
            }
    return count;
}

/* Blocks from their arcs, sorted. */
static void fill_blocks(toile_fast_pattern *f, const arc *arcs, int count) {
    int sources = 0;
    memset(f->begin, 0, ((size_t)f->n + 1) * sizeof(int));
    f->off_count = 0;
    for (int k = 0; k < count; k++) {
        if (k == 0 || compare_arcs(&arcs[k - 1], &arcs[k])) { /* a new block */
            f->begin[arcs[k].from + 1]++;
            f->source_begin[f->off_count] = sources;
            f->column[f->off_count++] = f->row[arcs[k].to];
        }
        if (arcs[k].source != NO_SOURCE)
            f->source[sources++] = arcs[k].source;
    }
    f->source_begin[f->off_count] = sources;
    for (int i = 0; i < f->n; i++)
        f->begin[i + 1] += f->begin[i];
}

static bool make_blocks(toile_memory *memory, toile_fast_pattern *f, int count) {
    return (f->column = ints(memory, count)) && (f->source = ints(memory, count)) && (f->source_begin = ints(memory, count + 1));
}

/* The pattern of the core, and then that of its factor: with the fill of level 1, which takes irregular triangles from 115 to 55
 * iterations and from a diagonal raised by 0.08 to one by 0.009, regular ones from 120 to 40. Level 2 brings little more.
 * Chains of stretch alone do without: neighbours along them are all but orthogonal; so do patterns with bend, which are fill enough:
 * more takes fewer iterations, but longer. */
static bool find_blocks(toile_memory *memory, const toile_model *m, toile_fast_pattern *f, extent more, int candidates,
                        int *row_of, const int *position) {
    arc *arcs = toile_alloc(memory, (size_t)candidates, sizeof *arcs);
    int edges = 0;
    bool ok = arcs && make_blocks(memory, f, candidates);
    for (int k = 0; ok && k < candidates; k++) {
        if (!in_core(m, more, k))
            continue;
        int i, j;
        edge_of(m, k, row_of, &i, &j);
        bool forward = position[i] < position[j];
        arcs[edges++] = (arc){position[forward ? i : j], position[forward ? j : i], forward || m->springs_used ? k : -1 - k};
    }
    if (ok) {
        qsort(arcs, (size_t)edges, sizeof *arcs, compare_arcs);
        fill_blocks(f, arcs, edges);
    }
    if (ok && !more.bend && (!m->springs_used || more.shear)) {
        int more = list_fill(f, position, NULL);
        arc *grown = toile_grow(memory, arcs, (size_t)edges, (size_t)edges + (size_t)more, sizeof *arcs);
        if (!grown) {
            toile_free(memory, arcs);
            return false;
        }
        arcs = grown;
        list_fill(f, position, arcs + edges);
        edges += more;
        qsort(arcs, (size_t)edges, sizeof *arcs, compare_arcs);
        toile_free(memory, f->column);
        toile_free(memory, f->source);
        toile_free(memory, f->source_begin);
        f->column = f->source = f->source_begin = NULL;
        ok = make_blocks(memory, f, edges);
        if (ok)
            fill_blocks(f, arcs, edges);
    }
    toile_free(memory, arcs);
    return ok;
}

bool toile_fast_pattern_make(toile_memory *memory, const toile_model *m, double step, toile_fast_pattern *f) {
    const toile_pattern *p = &m->pattern;
    int candidates = m->springs_used ? m->springs.padded : p->off_count;
    memset(f, 0, sizeof *f);
    f->n = m->particle_count;
    int *position = ints(memory, f->n), *row_of = ints(memory, p->off_count);
    bool ok = position && row_of && (f->row = ints(memory, f->n)) && (f->begin = ints(memory, f->n + 1)) &&
              (f->split = ints(memory, f->n));
    if (ok) {
        for (int i = 0; i < f->n; i++)
            for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++)
                row_of[k] = i;
        extent more = extent_of(m, step);
        f->bends = more.bend;
        f->chains = m->springs_used && !more.bend && !more.shear;
        order_positions(m, f, more, candidates, row_of, position);
        ok = find_blocks(memory, m, f, more, candidates, row_of, position);
    }
    for (int i = 0; ok && i < f->n; i++) {
        int k = f->begin[i];
        while (k < f->begin[i + 1] && position[f->column[k]] < f->stream_begin[TOILE_STREAMS])
            k++;
        f->split[i] = k;
    }
    ok = ok && list_updates(memory, f, position) &&
         (!m->springs_used || toile_fast_links_make(memory, m, &f->links));
    toile_free(memory, position);
    toile_free(memory, row_of);
    return ok;
}

void toile_fast_pattern_free(toile_memory *memory, toile_fast_pattern *f) {
    int *blocks[] = {f->row,          f->begin,        f->split,       f->column,       f->source,
                     f->source_begin, f->update_begin, f->update_with, f->update_target};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    toile_fast_links_free(memory, &f->links);
    memset(f, 0, sizeof *f);
}
