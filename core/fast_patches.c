/* The system of the coarse level's patches (fast_coarse.h): gathered, factored, and solved in every iteration. Sums that go over
 * several numbers are made four lanes wide whatever the processor has, so that the bits are the same. */
#include "fast_kernels.h"

#include <stddef.h>

/* A pivot below this part of its diagonal is rounding. */
#define TINY 1e-10

/* ---- gathering: C = P' S A S P + s (I - S) ---- */

/* A 3x3 block in rows of four; the fourth numbers are loose. */
typedef struct wide {
    v4 r[3];
} wide;

TOILE_INLINE v4 widen(f4 a) {
    return (v4){a[0], a[1], a[2], a[3]};
}

TOILE_INLINE wide wide_zero(void) {
    return (wide){{v4_set(0), v4_set(0), v4_set(0)}};
}

TOILE_INLINE wide wide_load(const float *row0, const float *row1, const float *row2) {
    return (wide){{widen(f4_loose(row0)), widen(f4_loose(row1)), widen(f4_loose(row2))}};
}

TOILE_INLINE void wide_add(wide *to, wide B) {
    for (int a = 0; a < 3; a++)
        to->r[a] += B.r[a];
}

TOILE_INLINE wide wide_scaled(double s, wide B) {
    for (int a = 0; a < 3; a++)
        B.r[a] *= v4_set(s);
    return B;
}

TOILE_INLINE wide wide_times(wide X, wide Y) {
    wide R;
    for (int a = 0; a < 3; a++)
        R.r[a] = v4_set(X.r[a][0]) * Y.r[0] + v4_set(X.r[a][1]) * Y.r[1] + v4_set(X.r[a][2]) * Y.r[2];
    return R;
}

TOILE_INLINE wide wide_turned(wide B) { /* transposed */
    return (wide){{{B.r[0][0], B.r[1][0], B.r[2][0], 0}, {B.r[0][1], B.r[1][1], B.r[2][1], 0}, {B.r[0][2], B.r[1][2], B.r[2][2], 0}}};
}

TOILE_INLINE void add_to(double *pair, wide B) {
    for (int a = 0; a < 3; a++)
        v4_store(pair + 4 * a, v4_load(pair + 4 * a) + B.r[a]);
}

/* S of a row. */
static wide filter_at(const toile_fast *f, const toile_constraints *constraints, int i) {
    int own = f->constraint_of[i];
    if (own < 0)
        return (wide){{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}}};
    const double *S = constraints->filter + 12 * (size_t)own;
    return (wide){{v4_load(S), v4_load(S + 4), v4_load(S + 8)}};
}

/* S_i B S_j */
static wide filtered(const toile_fast *f, const toile_constraints *constraints, int i, int j, wide B) {
    return wide_times(wide_times(filter_at(f, constraints, i), B), filter_at(f, constraints, j));
}

TOILE_INLINE wide block_at(const float *D) {
    return wide_load(D, D + 4, D + 8);
}

TOILE_INLINE wide inertia_block(const float *M) {
    return (wide){{{M[0], M[3], M[4], 0}, {M[3], M[1], M[5], 0}, {M[4], M[5], M[2], 0}}};
}

/* S B S of a row's part B, and the size of its diagonal block where S is nothing: patches that cannot move stand still. */
TOILE_INLINE void add_diagonal(const toile_fast *f, const toile_constraints *constraints, int i, wide B, wide *to) {
    if (f->constraint_of[i] >= 0) {
        const float *all = f->diagonal + 12 * (size_t)i;
        wide S = filter_at(f, constraints, i);
        double scale = ((double)all[0] + all[5] + all[10]) / 3;
        B = filtered(f, constraints, i, i, B);
        for (int a = 0; a < 3; a++) {
            B.r[a] -= v4_set(scale) * S.r[a];
            B.r[a][a] += scale;
        }
    }
    wide_add(to, B);
}

/* A spring's block w w' + across. */
TOILE_INLINE wide spring_block(const float *w) {
    v4 u = widen(f4_load(w));
    wide K = {{v4_set(u[0]) * u, v4_set(u[1]) * u, v4_set(u[2]) * u}};
    for (int a = 0; a < 3; a++)
        K.r[a][a] += u[3];
    return K;
}

TOILE_INLINE bool is_slack(const float *w) {
    return w[0] == 0 && w[1] == 0 && w[2] == 0 && w[3] == 0;
}

/* A spring within a patch says nothing to its shifts, unless one of its ends is held: T K T with T = S_i - S_j. */
static void add_held(const toile_fast *f, const toile_constraints *constraints, int i, wide *to) {
    const toile_fast_links *l = &f->pattern.links;
    for (int k = l->begin[i]; k < l->begin[i + 1]; k++) {
        int j = l->column[k];
        const float *w = f->spring + 4 * (size_t)l->spring[k];
        if (f->coarse.patch[j] != f->coarse.patch[i] || (f->constraint_of[j] >= 0 && j < i) || is_slack(w))
            continue;
        wide T = filter_at(f, constraints, i);
        wide_add(&T, wide_scaled(-1, filter_at(f, constraints, j)));
        wide_add(to, wide_times(wide_times(T, spring_block(w)), T));
    }
}

static void gather_springs(toile_fast *f, const toile_constraints *constraints, int g) {
    const toile_coarse *c = &f->coarse;
    wide own = wide_zero(), between = own;
    for (int q = c->begin[g]; q < c->begin[g + 1]; q++) {
        int i = c->row[q];
        add_diagonal(f, constraints, i, inertia_block(f->inertia + 6 * (size_t)i), &own);
        if (f->constraint_of[i] >= 0)
            add_held(f, constraints, i, &own);
    }
    int pair = -1; /* that `between` is of */
    for (int k = c->crossing_begin[g], last = c->crossing_begin[g + 1]; k < last; k++) {
        const toile_crossing *x = &c->crossing[k];
        const float *w = f->spring + 4 * (size_t)x->spring;
        /* springs of a patch lie far apart: half of the time was waiting for them */
        __builtin_prefetch(f->spring + 4 * (size_t)x[k + 16 < last ? 16 : 0].spring);
        if (x->pair != pair) {
            if (pair >= 0)
                add_to(c->pair + 12 * (size_t)pair, between);
            between = wide_zero();
            pair = x->pair;
        }
        bool held = f->constraint_of[x->row] >= 0 || f->constraint_of[x->column] >= 0;
        if ((pair < 0 && !held) || is_slack(w))
            continue;
        wide K = spring_block(w);
        if (held) { /* close_patches takes S_i K S_j for S_i K S_i */
            wide mine = filtered(f, constraints, x->row, x->row, K);
            K = filtered(f, constraints, x->row, x->column, K);
            wide_add(&own, mine);
            wide_add(&own, wide_scaled(-1, K));
        }
        wide_add(&between, wide_scaled(-1, K));
    }
    if (pair >= 0)
        add_to(c->pair + 12 * (size_t)pair, between);
    add_to(c->pair + 12 * (size_t)c->pair_begin[g], own);
}

static void gather_blocks(toile_fast *f, const toile_pattern *p, const toile_constraints *constraints, int g) {
    const toile_coarse *c = &f->coarse;
    const int *begin = f->live ? f->live->begin : p->row_begin;
    int self = c->pair_begin[g];
    wide diagonal = wide_zero(), own = diagonal;
    for (int q = c->begin[g]; q < c->begin[g + 1]; q++) {
        int i = c->row[q];
        bool held = f->constraint_of[i] >= 0;
        add_diagonal(f, constraints, i, block_at(f->diagonal + 12 * (size_t)i), &diagonal);
        for (int at = begin[i]; at < begin[i + 1]; at++) {
            int k = toile_live_block(f->live, at), j = p->column[k];
            const float *O = f->off + 9 * (size_t)k;
            wide B = wide_load(O, O + 3, O + 6);
            if (held || f->constraint_of[j] >= 0)
                B = filtered(f, constraints, i, j, B);
            if (c->pair_of[k] == self)
                wide_add(&own, B);
            else
                add_to(c->pair + 12 * (size_t)c->pair_of[k], B);
        }
    }
    wide_add(&diagonal, own); /* blocks within the patch stand for their transposed too */
    wide_add(&diagonal, wide_turned(own));
    add_to(c->pair + 12 * (size_t)self, diagonal);
}

void TOILE_KERNEL(toile_coarse_gather)(toile_fast *f, const toile_pattern *p, const toile_constraints *constraints, int from, int to) {
    const toile_coarse *c = &f->coarse;
    for (int g = from; g < to; g++) {
        memset(c->pair + 12 * (size_t)c->pair_begin[g], 0, 12 * (size_t)(c->pair_begin[g + 1] - c->pair_begin[g]) * sizeof(double));
        if (f->spring)
            gather_springs(f, constraints, g);
        else
            gather_blocks(f, p, constraints, g);
    }
}

/* ---- the factor, L L' ---- */

/* What springs between patches give to each patch's own block, from the blocks between them. */
static void close_patches(const toile_coarse *c) {
    for (int g = 0; g < c->count; g++)
        for (int k = c->pair_begin[g] + 1; k < c->pair_begin[g + 1]; k++) {
            const double *B = c->pair + 12 * (size_t)k;
            wide between = {{v4_load(B), v4_load(B + 4), v4_load(B + 8)}};
            add_to(c->pair + 12 * (size_t)c->pair_begin[g], wide_scaled(-1, between));
            add_to(c->pair + 12 * (size_t)c->pair_begin[c->pair_to[k]], wide_scaled(-1, wide_turned(between)));
        }
}

/* The three columns of a patch, from the first one's diagonal down: they end in the same row. Element (row, column) of the first
 * is [0][row - column]; all three are indexed alike, by rows below the first one's diagonal. */
typedef struct columns {
    double *of[3];
    int height; /* of the first */
} columns;

TOILE_INLINE columns columns_of(const toile_coarse *c, int g) {
    const int *at = c->column + 3 * g;
    return (columns){{c->factor + at[0], c->factor + at[1] - 1, c->factor + at[2] - 2}, at[1] - at[0]};
}

static void fill(const toile_coarse *c) {
    memset(c->factor, 0, (size_t)c->column[3 * c->count] * sizeof(double));
    for (int g = 0; g < c->count; g++)
        for (int k = c->pair_begin[g]; k < c->pair_begin[g + 1]; k++) {
            int h = c->pair_to[k];
            const double *B = c->pair + 12 * (size_t)k;
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++) {
                    int row = 3 * g + a, column = 3 * h + b;
                    if (row >= column)
                        c->factor[c->column[column] + row - column] += B[4 * a + b];
                    else if (g != h)
                        c->factor[c->column[row] + column - row] += B[4 * a + b];
                }
        }
}

/* Factors the three columns among themselves; their diagonals become inverses. */
static bool factor_columns(columns o, const double *given) {
    for (int j = 0; j < 3; j++) {
        double *own = o.of[j];
        if (!(own[j] > TINY * given[5 * j])) /* NaN too */
            return false;
        double inverse = 1 / sqrt(own[j]);
        own[j] = inverse;
        for (int i = j + 1; i < o.height; i++)
            own[i] *= inverse;
        for (int k = j + 1; k < 3; k++) {
            double *to = o.of[k], by = own[k];
            for (int i = k; i < o.height; i++)
                to[i] -= by * own[i];
        }
    }
    return true;
}

void TOILE_KERNEL(toile_coarse_factor)(toile_coarse *c) {
    c->sound = false;
    if (!c->count)
        return;
    if (c->crossing)
        close_patches(c);
    fill(c);
    for (int g = 0; g < c->count; g++) {
        columns o = columns_of(c, g);
        if (!factor_columns(o, c->pair + 12 * (size_t)c->pair_begin[g]))
            return;
        const double *restrict x = o.of[0], *restrict y = o.of[1], *restrict z = o.of[2];
        for (int k = 3; k < o.height; k++) { /* what the three take off later columns */
            double *restrict to = c->factor + c->column[3 * g + k] - k, bx = x[k], by = y[k], bz = z[k];
            for (int i = k; i < o.height; i++)
                to[i] -= bx * x[i] + by * y[i] + bz * z[i];
        }
    }
    c->sound = true;
}

/* ---- in every iteration ---- */

void TOILE_KERNEL(toile_coarse_restrict)(const toile_coarse *c, const float *r, int from, int to) {
    for (int g = from; g < to; g++) {
        v4 sum = v4_set(0);
        for (int q = c->begin[g]; q < c->begin[g + 1]; q++)
            sum += widen(f4_load(r + 4 * (size_t)c->row[q]));
        for (int a = 0; a < 3; a++)
            c->vector[3 * g + a] = sum[a];
    }
}

double TOILE_KERNEL(toile_coarse_solve)(const toile_coarse *c) {
    double norm2 = 0;
    for (int g = 0; g < c->count; g++) {
        columns o = columns_of(c, g);
        const double *restrict x = o.of[0], *restrict y = o.of[1], *restrict z = o.of[2];
        double *restrict v = c->vector + 3 * (size_t)g;
        double a = v[0] * x[0], b = (v[1] - a * x[1]) * y[1], d = (v[2] - a * x[2] - b * y[2]) * z[2];
        v[0] = a;
        v[1] = b;
        v[2] = d;
        norm2 += a * a + b * b + d * d;
        for (int i = 3; i < o.height; i++)
            v[i] -= a * x[i] + b * y[i] + d * z[i];
    }
    for (int g = c->count - 1; g >= 0; g--) {
        columns o = columns_of(c, g);
        const double *x = o.of[0], *y = o.of[1], *z = o.of[2];
        double *v = c->vector + 3 * (size_t)g;
        v4 sum[3] = {v4_set(0), v4_set(0), v4_set(0)};
        int i = 3;
        for (; i + 4 <= o.height; i += 4) {
            v4 w = (v4) * (const v4u *)(v + i);
            sum[0] += (v4) * (const v4u *)(x + i) * w;
            sum[1] += (v4) * (const v4u *)(y + i) * w;
            sum[2] += (v4) * (const v4u *)(z + i) * w;
        }
        double a = v4_sum(sum[0]), b = v4_sum(sum[1]), d = v4_sum(sum[2]);
        for (; i < o.height; i++) {
            a += x[i] * v[i];
            b += y[i] * v[i];
            d += z[i] * v[i];
        }
        v[2] = (v[2] - d) * z[2];
        v[1] = (v[1] - b - y[2] * v[2]) * y[1];
        v[0] = (v[0] - a - x[1] * v[1] - x[2] * v[2]) * x[0];
        for (int k = 0; k < 3; k++)
            c->shift[4 * g + k] = (float)v[k];
    }
    return norm2;
}
