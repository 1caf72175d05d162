#include "fast_coarse.h"

#include "fast.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Particles of a patch: fewer iterations with smaller ones, more time for their system. */
#define PATCH 100
/* Fewer patches are not worth the trouble. */
#define LEAST 4
/* Multiplications of the factor for each particle: some iterations' worth. */
#define WORK_MOST 1500.0
/* Cells of a piece of material along one side. */
#define CELLS_MOST 200

static int *ints(toile_memory *memory, size_t count) {
    return toile_alloc(memory, count, sizeof(int));
}

/* ---- patches: near squares of the material, along warp and weft. Round ones of the same size take half as many iterations
 * again, because what is stretched is cut at an angle ---- */

/* A piece of material is cut into nu x nv cells. */
typedef struct cutting {
    double low[2], high[2], area; /* m, m, m^2 */
    int rows, cells[2], first;    /* first cell of the piece */
} cutting;

/* Each row lies where its first triangle does. */
static void place_rows(const toile_triangles *t, cutting *piece, int *triangle_of) {
    for (int e = 0; e < t->count; e++) {
        cutting *own = &piece[t->piece[e]];
        own->area += t->area[e];
        for (int k = 0; k < 2; k++) {
            double at = t->middle[2 * e + k];
            own->low[k] = own->rows && own->low[k] < at ? own->low[k] : at;
            own->high[k] = own->rows && own->high[k] > at ? own->high[k] : at;
        }
        for (int k = 0; k < 3; k++) {
            int *of = &triangle_of[t->vertex[k][e]];
            own->rows += *of < 0;
            *of = *of < 0 ? e : *of;
        }
    }
}

/* Gives the number of cells of all pieces. */
static int cut(int pieces, cutting *piece) {
    int count = 0;
    for (int i = 0; i < pieces; i++) {
        cutting *own = &piece[i];
        double edge = sqrt(PATCH * own->area / (own->rows > 1 ? own->rows : 1));
        for (int k = 0; k < 2; k++) {
            double cells = edge > 0 ? round((own->high[k] - own->low[k]) / edge) : 1;
            own->cells[k] = cells < 1 ? 1 : cells > CELLS_MOST ? CELLS_MOST : (int)cells;
        }
        own->first = count;
        count += own->cells[0] * own->cells[1];
    }
    return count;
}

static int cell_of(const toile_triangles *t, const cutting *piece, int e) {
    const cutting *own = &piece[t->piece[e]];
    int at[2];
    for (int k = 0; k < 2; k++) {
        double share = (t->middle[2 * e + k] - own->low[k]) / (own->high[k] - own->low[k]);
        int cell = share > 0 ? (int)(share * own->cells[k]) : 0; /* 0 for NaN */
        at[k] = cell < own->cells[k] ? cell : own->cells[k] - 1;
    }
    return own->first + at[0] + own->cells[0] * at[1];
}

static int leader_of(int *leader, int cell) {
    while (leader[cell] != cell)
        cell = leader[cell] = leader[leader[cell]];
    return cell;
}

/* Slivers join what is beside them. */
static void join_slivers(const toile_pattern *p, const int *cell, int *size, int *leader) {
    for (int i = 0; i < p->n; i++)
        for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++) {
            int a = leader_of(leader, cell[i]), b = leader_of(leader, cell[p->column[k]]);
            int small = size[a] < size[b] ? size[a] : size[b];
            if (a == b || small >= PATCH / 3 || size[a] + size[b] > 2 * PATCH)
                continue;
            leader[b] = a;
            size[a] += size[b];
        }
}

/* Patches are numbered as they are met, so that their system is as narrow as the rows' order. */
static bool find_patches(toile_memory *memory, const toile_model *m, toile_coarse *c) {
    const toile_triangles *t = &m->triangles;
    int n = m->particle_count, *triangle_of = ints(memory, (size_t)n), cells = 0;
    int *size = NULL, *leader = NULL, *number = NULL;
    cutting *piece = toile_alloc(memory, (size_t)t->piece_count + 1, sizeof *piece);
    bool ok = triangle_of && piece;
    if (ok) {
        for (int i = 0; i < n; i++)
            triangle_of[i] = -1;
        place_rows(t, piece, triangle_of);
        cells = cut(t->piece_count, piece) + 1; /* the last is for rows without a triangle */
        ok = (size = ints(memory, (size_t)cells)) && (leader = ints(memory, (size_t)cells)) &&
             (number = ints(memory, (size_t)cells));
    }
    for (int i = 0; ok && i < n; i++) {
        c->patch[i] = triangle_of[i] < 0 ? cells - 1 : cell_of(t, piece, triangle_of[i]);
        size[c->patch[i]]++;
    }
    for (int k = 0; ok && k < cells; k++)
        leader[k] = k;
    if (ok)
        join_slivers(&m->pattern, c->patch, size, leader);
    for (int k = 0; ok && k < cells; k++)
        number[k] = -1;
    for (int i = 0; ok && i < n; i++) {
        int *own = &number[leader_of(leader, c->patch[i])];
        *own = *own < 0 ? c->count++ : *own;
        c->patch[i] = *own;
    }
    toile_free(memory, triangle_of);
    toile_free(memory, piece);
    toile_free(memory, size);
    toile_free(memory, leader);
    toile_free(memory, number);
    return ok;
}

static void list_rows(const toile_pattern *p, toile_coarse *c) {
    for (int i = 0; i < p->n; i++)
        c->begin[c->patch[i] + 1]++;
    for (int g = 0; g < c->count; g++)
        c->begin[g + 1] += c->begin[g];
    for (int i = 0; i < p->n; i++)
        c->row[c->begin[c->patch[i]]++] = i;
    for (int g = c->count; g > 0; g--)
        c->begin[g] = c->begin[g - 1];
    c->begin[0] = 0;
}

static int find_pair(const toile_coarse *c, int g, int to) {
    for (int k = c->pair_begin[g]; k < c->pair_begin[g + 1]; k++)
        if (c->pair_to[k] == to)
            return k;
    return -1;
}

static void list_pairs(const toile_pattern *p, toile_coarse *c) {
    int count = 0;
    for (int g = 0; g < c->count; g++) {
        c->pair_begin[g] = count;
        c->pair_to[count++] = g;
        c->pair_begin[g + 1] = count;
        for (int q = c->begin[g]; q < c->begin[g + 1]; q++)
            for (int i = c->row[q], k = p->row_begin[i]; k < p->row_begin[i + 1]; k++)
                if (find_pair(c, g, c->patch[p->column[k]]) < 0) {
                    c->pair_to[count++] = c->patch[p->column[k]];
                    c->pair_begin[g + 1] = count;
                }
    }
}

static int by_pair(const void *a, const void *b) {
    const toile_crossing *x = a, *y = b;
    return x->pair != y->pair ? x->pair - y->pair : x->spring - y->spring;
}

static void list_crossings(const toile_springs *s, toile_coarse *c) {
    for (int pass = 0; pass < 2; pass++) {
        for (int e = 0; e < s->padded; e++)
            for (int k = 0; k < 2; k++) {
                int i = s->vertex[k][e], j = s->vertex[1 - k][e], g = c->patch[i], h = c->patch[j];
                if (g == h)
                    continue;
                int at = c->crossing_begin[g + !pass]++; /* counts, and then goes to the end of the patch's */
                if (pass)
                    c->crossing[at] = (toile_crossing){i, j, e, i < j ? find_pair(c, g, h) : -1};
            }
        for (int g = 0; g < c->count && pass == 0; g++)
            c->crossing_begin[g + 1] += c->crossing_begin[g];
    }
    for (int g = c->count; g > 0; g--)
        c->crossing_begin[g] = c->crossing_begin[g - 1];
    c->crossing_begin[0] = 0;
    for (int g = 0; g < c->count; g++)
        qsort(c->crossing + c->crossing_begin[g], (size_t)(c->crossing_begin[g + 1] - c->crossing_begin[g]), sizeof *c->crossing, by_pair);
}

static void list_blocks(const toile_pattern *p, toile_coarse *c) {
    for (int i = 0; i < p->n; i++)
        for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++)
            c->pair_of[k] = find_pair(c, c->patch[i], c->patch[p->column[k]]);
}

/* Where elimination can put something: no column reaches less far down than one before it. Gives the work of a factor. */
static double find_envelope(toile_coarse *c, int *reach) {
    double work = 0, size = 0;
    for (int g = 0; g < c->count; g++)
        reach[g] = g;
    for (int g = 0; g < c->count; g++)
        for (int k = c->pair_begin[g]; k < c->pair_begin[g + 1]; k++) {
            int a = g < c->pair_to[k] ? g : c->pair_to[k], b = g + c->pair_to[k] - a;
            reach[a] = b > reach[a] ? b : reach[a];
        }
    for (int j = 0; j < 3 * c->count; j++) {
        int g = j / 3;
        if (g > 0 && reach[g - 1] > reach[g])
            reach[g] = reach[g - 1];
        double height = 3.0 * (reach[g] + 1) - j;
        work += 0.5 * height * height;
        size += height;
        c->column[j + 1] = size < INT_MAX ? (int)size : INT_MAX;
    }
    return work;
}

/* Patches, their pairs and the envelope; no patches if that is too much work. */
static bool lay_out(toile_memory *memory, const toile_model *m, toile_coarse *c) {
    const toile_pattern *p = &m->pattern;
    size_t n = (size_t)p->n;
    if (!(c->patch = ints(memory, n)) || !(c->row = ints(memory, n)) || !find_patches(memory, m, c))
        return false;
    size_t count = (size_t)c->count, pairs = count + (size_t)p->off_count;
    int *reach = ints(memory, count);
    bool ok = reach && (c->begin = ints(memory, count + 1)) && (c->pair_begin = ints(memory, count + 1)) &&
              (c->column = ints(memory, 3 * count + 1)) && (c->pair_to = ints(memory, pairs));
    if (ok) {
        list_rows(p, c);
        list_pairs(p, c);
        if (find_envelope(c, reach) > WORK_MOST * p->n)
            c->count = 0;
    }
    toile_free(memory, reach);
    if (!ok || !c->count)
        return ok;
    if (!m->springs_used) {
        ok = (c->pair_of = ints(memory, (size_t)p->off_count + 1));
        if (ok)
            list_blocks(p, c);
    } else {
        ok = (c->crossing_begin = ints(memory, count + 1)) &&
             (c->crossing = toile_alloc(memory, 2 * (size_t)m->springs.padded, sizeof *c->crossing));
        if (ok)
            list_crossings(&m->springs, c);
    }
    return ok;
}

bool toile_coarse_make(toile_memory *memory, const toile_model *m, toile_coarse *c) {
    memset(c, 0, sizeof *c);
    if (m->particle_count < LEAST * PATCH)
        return true;
    if (!lay_out(memory, m, c))
        return false;
    size_t count = (size_t)c->count, unknowns = 3 * count;
    return (c->pair = toile_alloc(memory, 12 * (size_t)c->pair_begin[count], sizeof(double))) &&
           (c->factor = toile_alloc(memory, (size_t)c->column[unknowns], sizeof(double))) &&
           (c->vector = toile_alloc(memory, unknowns, sizeof(double))) &&
           (c->shift = toile_alloc(memory, 4 * count, sizeof(float)));
}

void toile_coarse_free(toile_memory *memory, toile_coarse *c) {
    void *blocks[] = {c->patch,    c->begin,  c->row,  c->pair_begin, c->pair_to, c->crossing_begin,
                      c->crossing, c->pair_of, c->column, c->pair, c->factor, c->vector, c->shift};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    memset(c, 0, sizeof *c);
}
