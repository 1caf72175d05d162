#include "fast_coarse.h"

#include "fast.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* Particles of a patch: fewer iterations with smaller ones, more time for their system. */
#define PATCH 100
/* Fewer patches are not worth the trouble. */
#define LEAST 4
/* Multiplications of the factor for each particle: some iterations' worth. */
#define WORK_MOST 1500.0
/* Cells of a piece of material along one side. */
#define CELLS_MOST 200
/* A pivot below this part of its diagonal is rounding. */
#define TINY 1e-10

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
    if (ok && m->springs_used) {
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
    return (c->pair = toile_alloc(memory, 9 * (size_t)c->pair_begin[count], sizeof(double))) &&
           (c->factor = toile_alloc(memory, (size_t)c->column[unknowns], sizeof(double))) &&
           (c->vector = toile_alloc(memory, unknowns, sizeof(double))) &&
           (c->shift = toile_alloc(memory, 4 * count, sizeof(float)));
}

void toile_coarse_free(toile_memory *memory, toile_coarse *c) {
    void *blocks[] = {c->patch,    c->begin,  c->row,  c->pair_begin, c->pair_to, c->crossing_begin,
                      c->crossing, c->column, c->pair, c->factor,     c->vector,  c->shift};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    memset(c, 0, sizeof *c);
}

/* ---- the system of the patches ---- */

/* B <- S B, or B S if `right`; rows of three and rows of four. */
static void filter(const double *S, bool right, double B[9]) {
    double R[9];
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            R[3 * a + b] = right ? B[3 * a] * S[b] + B[3 * a + 1] * S[4 + b] + B[3 * a + 2] * S[8 + b]
                                 : S[4 * a] * B[b] + S[4 * a + 1] * B[3 + b] + S[4 * a + 2] * B[6 + b];
    memcpy(B, R, sizeof R);
}

/* S D S of a row's part D, and the size of its diagonal block where S is nothing: patches that cannot move stand still. */
static void add_diagonal(const toile_fast *f, const toile_constraints *constraints, int i, const float *D, double to[9]) {
    const float *all = f->diagonal + 12 * (size_t)i;
    double B[9] = {D[0], D[1], D[2], D[4], D[5], D[6], D[8], D[9], D[10]};
    int own = f->constraint_of[i];
    if (own >= 0) {
        const double *S = constraints->filter + 12 * (size_t)own;
        double scale = ((double)all[0] + all[5] + all[10]) / 3;
        filter(S, false, B);
        filter(S, true, B);
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                B[3 * a + b] += scale * ((a == b) - S[4 * a + b]);
    }
    for (int k = 0; k < 9; k++)
        to[k] += B[k];
}

/* S B S of rows i and j. */
static void filter_block(const toile_fast *f, const toile_constraints *constraints, int i, int j, double B[9]) {
    if (f->constraint_of[i] >= 0)
        filter(constraints->filter + 12 * (size_t)f->constraint_of[i], false, B);
    if (f->constraint_of[j] >= 0)
        filter(constraints->filter + 12 * (size_t)f->constraint_of[j], true, B);
}

/* S w of a row. */
static void filter_vector(const toile_fast *f, const toile_constraints *constraints, int i, const float w[3], double to[3]) {
    const double *S = constraints->filter + 12 * (size_t)f->constraint_of[i];
    for (int a = 0; a < 3; a++)
        to[a] = f->constraint_of[i] < 0 ? w[a] : S[4 * a] * w[0] + S[4 * a + 1] * w[1] + S[4 * a + 2] * w[2];
}

/* sign (u v' + T) */
static void add_outer(double sign, const double u[3], const double v[3], const double T[9], double to[9]) {
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            to[3 * a + b] += sign * (u[a] * v[b] + T[3 * a + b]);
}

/* across S S of rows i and j. */
static void across_of(const toile_fast *f, const toile_constraints *constraints, int i, int j, double across, double T[9]) {
    for (int a = 0; a < 9; a++)
        T[a] = a % 4 == 0 ? across : 0;
    filter_block(f, constraints, i, j, T);
}

/* A spring within a patch, K = w w' + across, says nothing to its shifts, unless one of its ends is held: T K T with
 * T = S_i - S_j. */
static void add_held(const toile_fast *f, const toile_constraints *constraints, int i, double to[9]) {
    static const float AXIS[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const toile_fast_links *l = &f->pattern.links;
    for (int k = l->begin[i]; k < l->begin[i + 1]; k++) {
        int j = l->column[k];
        const float *w = f->spring + 4 * (size_t)l->spring[k];
        bool slack = w[0] == 0 && w[1] == 0 && w[2] == 0 && w[3] == 0;
        if (f->coarse.patch[j] != f->coarse.patch[i] || (f->constraint_of[j] >= 0 && j < i) || slack)
            continue;
        double u[3], v[3], T[3][3], R[9] = {0};
        filter_vector(f, constraints, i, w, u);
        filter_vector(f, constraints, j, w, v);
        for (int a = 0; a < 3; a++) {
            double mine[3], other[3];
            filter_vector(f, constraints, i, AXIS + 3 * a, mine);
            filter_vector(f, constraints, j, AXIS + 3 * a, other);
            u[a] -= v[a];
            for (int b = 0; b < 3; b++)
                T[a][b] = mine[b] - other[b];
        }
        for (int a = 0; a < 3; a++)
            for (int b = 0; b < 3; b++)
                R[3 * a + b] = w[3] * (T[a][0] * T[b][0] + T[a][1] * T[b][1] + T[a][2] * T[b][2]);
        add_outer(1, u, u, R, to);
    }
}

static void gather_springs(toile_fast *f, const toile_constraints *constraints, int g) {
    const toile_coarse *c = &f->coarse;
    double *own = c->pair + 9 * (size_t)c->pair_begin[g], none[9] = {0};
    for (int q = c->begin[g]; q < c->begin[g + 1]; q++) {
        int i = c->row[q];
        add_diagonal(f, constraints, i, f->inertia + 12 * (size_t)i, own);
        if (f->constraint_of[i] >= 0)
            add_held(f, constraints, i, own);
    }
    for (int k = c->crossing_begin[g], last = c->crossing_begin[g + 1]; k < last; k++) {
        const toile_crossing *x = &c->crossing[k];
        const float *w = f->spring + 4 * (size_t)x->spring;
        double u[3], v[3], T[9];
        /* springs of a patch lie far apart: half of the time was waiting for them */
        __builtin_prefetch(f->spring + 4 * (size_t)x[k + 16 < last ? 16 : 0].spring);
        if (w[0] == 0 && w[1] == 0 && w[2] == 0 && w[3] == 0) /* slack */
            continue;
        double *between = x->pair < 0 ? none : c->pair + 9 * (size_t)x->pair;
        if (f->constraint_of[x->row] < 0 && f->constraint_of[x->column] < 0) {
            for (int a = 0; a < 9; a++) {
                double K = (double)w[a / 3] * w[a % 3] + (a % 4 == 0 ? w[3] : 0);
                own[a] += K;
                between[a] -= K;
            }
            continue;
        }
        filter_vector(f, constraints, x->row, w, u);
        across_of(f, constraints, x->row, x->row, w[3], T);
        add_outer(1, u, u, T, own);
        filter_vector(f, constraints, x->column, w, v);
        across_of(f, constraints, x->row, x->column, w[3], T);
        add_outer(-1, u, v, T, between);
    }
}

static void gather_blocks(toile_fast *f, const toile_pattern *p, const toile_constraints *constraints, int g) {
    const toile_coarse *c = &f->coarse;
    const int *begin = f->live ? f->live->begin : p->row_begin;
    double *pair = c->pair + 9 * (size_t)c->pair_begin[g], D[9] = {0}, own[9] = {0};
    for (int q = c->begin[g]; q < c->begin[g + 1]; q++) {
        int i = c->row[q];
        add_diagonal(f, constraints, i, f->diagonal + 12 * (size_t)i, D);
        for (int at = begin[i]; at < begin[i + 1]; at++) {
            int k = toile_live_block(f->live, at), j = p->column[k], h = c->patch[j];
            double B[9], *to = g == h ? own : c->pair + 9 * (size_t)find_pair(c, g, h);
            for (int a = 0; a < 9; a++)
                B[a] = f->off[9 * (size_t)k + (size_t)a];
            filter_block(f, constraints, i, j, B);
            for (int a = 0; a < 9; a++)
                to[a] += B[a];
        }
    }
    for (int a = 0; a < 3; a++) /* blocks within the patch stand for their transposed too */
        for (int b = 0; b < 3; b++)
            pair[3 * a + b] = D[3 * a + b] + own[3 * a + b] + own[3 * b + a];
}

void toile_coarse_gather(toile_fast *f, const toile_pattern *p, const toile_constraints *constraints, int from, int to) {
    const toile_coarse *c = &f->coarse;
    for (int g = from; g < to; g++) {
        memset(c->pair + 9 * (size_t)c->pair_begin[g], 0, 9 * (size_t)(c->pair_begin[g + 1] - c->pair_begin[g]) * sizeof(double));
        if (f->spring)
            gather_springs(f, constraints, g);
        else
            gather_blocks(f, p, constraints, g);
    }
}

/* ---- its factor, L L' ---- */

/* A column from its diagonal down: element (row, column) is [row - column]. */
static double *column_of(const toile_coarse *c, int column) {
    return c->factor + c->column[column];
}

static int height_of(const toile_coarse *c, int column) {
    return c->column[column + 1] - c->column[column];
}

static void fill(const toile_coarse *c) {
    memset(c->factor, 0, (size_t)c->column[3 * c->count] * sizeof(double));
    for (int g = 0; g < c->count; g++)
        for (int k = c->pair_begin[g]; k < c->pair_begin[g + 1]; k++) {
            int h = c->pair_to[k];
            const double *B = c->pair + 9 * (size_t)k;
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++) {
                    int row = 3 * g + a, column = 3 * h + b;
                    if (row >= column)
                        column_of(c, column)[row - column] += B[3 * a + b];
                    else if (g != h)
                        column_of(c, row)[column - row] += B[3 * a + b];
                }
        }
}

void toile_coarse_factor(toile_coarse *c) {
    c->sound = false;
    if (!c->count)
        return;
    fill(c);
    for (int j = 0; j < 3 * c->count; j++) {
        double *own = column_of(c, j), given = c->pair[9 * (size_t)c->pair_begin[j / 3] + (size_t)(4 * (j % 3))];
        int height = height_of(c, j);
        if (!(own[0] > TINY * given)) /* NaN too */
            return;
        double inverse = 1 / sqrt(own[0]);
        for (int k = 1; k < height; k++)
            own[k] *= inverse;
        own[0] = inverse;
        for (int k = 1; k < height; k++) {
            double *to = column_of(c, j + k), by = own[k];
            for (int i = k; i < height; i++)
                to[i - k] -= by * own[i];
        }
    }
    c->sound = true;
}

/* ---- in every iteration ---- */

void toile_coarse_restrict(const toile_coarse *c, const float *r, int from, int to) {
    for (int g = from; g < to; g++) {
        double sum[3] = {0};
        for (int q = c->begin[g]; q < c->begin[g + 1]; q++)
            for (size_t i = 4 * (size_t)c->row[q], a = 0; a < 3; a++)
                sum[a] += r[i + a];
        memcpy(c->vector + 3 * (size_t)g, sum, sizeof sum);
    }
}

void toile_coarse_solve(const toile_coarse *c) {
    int n = 3 * c->count;
    double *y = c->vector;
    for (int j = 0; j < n; j++) {
        const double *own = column_of(c, j);
        int height = height_of(c, j);
        double by = y[j] *= own[0];
        for (int k = 1; k < height; k++)
            y[j + k] -= by * own[k];
    }
    for (int j = n - 1; j >= 0; j--) {
        const double *own = column_of(c, j);
        int height = height_of(c, j);
        double sum = 0;
        for (int k = 1; k < height; k++)
            sum += own[k] * y[j + k];
        y[j] = (y[j] - sum) * own[0];
        c->shift[4 * (j / 3) + j % 3] = (float)y[j];
    }
}
