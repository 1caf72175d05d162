/* The block matrix: assembled row by row from element records, multiplied from its upper half.
 *
 * Rows are cut into chunks that never depend on the number of threads. A chunk gathers its own rows, so every sum has
 * one order and assembly needs no locks and no colouring. In a product each stored block acts twice: on its row, and
 * transposed on its column's row. Columns beyond the chunk's end go to the chunk's spill, which is added after a
 * barrier, chunk by chunk in order. */
#include "element_block.h"
#include "fast.h"
#include "kernels_table.h"

/* Records lie where elements were met first, blocks where rows were: a third of the time went into waiting for them. */
TOILE_INLINE void fetch_triangle(const toile_assembly *a, int code) {
    size_t t = (size_t)(code >> 4);
    const double *r = a->triangle + t * TOILE_TRIANGLE_RECORD;
    __builtin_prefetch(a->model->triangles.corner + 6 * t);
    __builtin_prefetch(r + 6);
    __builtin_prefetch(r + 14);
    __builtin_prefetch(r + 22);
}

TOILE_INLINE void fetch_hinge(const toile_assembly *a, int code) {
    const double *r = a->hinge + (size_t)(code >> 4) * TOILE_HINGE_RECORD;
    __builtin_prefetch(r);
    __builtin_prefetch(r + 8);
}

/* All that elements add to the diagonal block of row i. */
TOILE_INLINE void add_diagonal(const toile_assembly *a, int i, v4 B[3]) {
    const toile_pattern *p = &a->model->pattern;
    for (int k = p->spring_begin[i]; k < p->spring_begin[i + 1]; k++)
        add_spring(a, p->spring_code[k], 1, B);
    if (!a->model->springs_used) {
        toile_sum sum = {0};
        for (int k = p->triangle_begin[i]; k < p->triangle_begin[i + 1]; k++) {
            fetch_triangle(a, p->triangle_code[k + TOILE_CODES_AHEAD]);
            add_triangle(a, p->triangle_code[k], &sum);
        }
        for (int k = p->hinge_begin[i]; k < p->hinge_begin[i + 1]; k++) {
            fetch_hinge(a, p->hinge_code[k + TOILE_CODES_AHEAD]);
            add_hinge(a, p->hinge_code[k], &sum);
        }
        add_sum(&sum, B);
    }
}

TOILE_INLINE v4 add_force(const toile_assembly *a, int code, v4 sum) {
    v4 g = v4_row(a->spring + (size_t)(code >> 1) * TOILE_SPRING_RECORD + 5);
    return code & 1 ? sum - g : sum + g;
}

/* Right side of eq. 18 for one particle: h (f + (df/dx)(h v + y)). */
TOILE_INLINE v4 gather_rhs(const toile_assembly *a, int i) {
    const toile_pattern *p = &a->model->pattern;
    v4 sum = v4_load(a->force + 4 * (size_t)i);
    for (int k = p->spring_begin[i]; k < p->spring_begin[i + 1]; k++)
        sum = add_force(a, p->spring_code[k], sum);
    if (!a->model->springs_used) {
        for (int k = p->triangle_begin[i]; k < p->triangle_begin[i + 1]; k++) {
            int t = p->triangle_code[k] >> 4, c = p->triangle_code[k] & 3;
            const double *r = a->triangle + (size_t)t * TOILE_TRIANGLE_RECORD;
            const double *corner = a->model->triangles.corner + 6 * (size_t)t;
            sum += v4_set(corner[c]) * v4_row(r) + v4_set(corner[c + 3]) * v4_row(r + 3);
        }
        for (int k = p->hinge_begin[i]; k < p->hinge_begin[i + 1]; k++) {
            const double *r = a->hinge + (size_t)(p->hinge_code[k] >> 4) * TOILE_HINGE_RECORD;
            sum += v4_set(r[12]) * v4_row(r + 3 * (p->hinge_code[k] & 3));
        }
    }
    return v4_set(a->h) * sum;
}

TOILE_INLINE void store_diagonal(const toile_assembly *a, toile_matrix *matrix, int i, const v4 B[3]) {
    double *D = matrix->diagonal + 12 * (size_t)i;
    for (int k = 0; k < 3; k++)
        v4_store(D + 4 * k, v4_clean(B[k]));
    for (int k = 0; k < 3 && a->fast; k++)
        f4_store(a->fast->diagonal + 12 * (size_t)i + 4 * k, f4_of(v4_clean(B[k])));
}

/* What the fast product reads of a row of springs: mass, and drag as the assembly has it. */
TOILE_INLINE void copy_inertia(const toile_assembly *a, int i, double mass, const double drag[6]) {
    float *inertia = a->fast->inertia + 6 * (size_t)i;
    const double part[6] = {mass + drag[0], mass + drag[3], mass + drag[5], drag[1], drag[2], drag[4]};
    for (int k = 0; k < 6; k++)
        inertia[k] = (float)part[k];
}

/* Springs between the same rows have one direction: their K add up to one of the same form. */
TOILE_INLINE void join_springs(const float *a, const float *b, float *to) {
    float aa = a[0] * a[0] + a[1] * a[1] + a[2] * a[2], bb = b[0] * b[0] + b[1] * b[1] + b[2] * b[2];
    const float *longer = aa > bb ? a : b;
    float most = aa > bb ? aa : bb, grow = most > 0 ? sqrtf((aa + bb) / most) : 0;
    for (int k = 0; k < 3; k++)
        to[k] = grow * longer[k];
    to[3] = a[3] + b[3];
}

static void copy_links(const toile_fast *f, int empty, int begin, int end) {
    const int *order = f->pattern.links.order;
    for (int k = begin; k < end; k++) {
        float *to = f->link + 4 * (size_t)k;
        const float *first = f->spring + 4 * (size_t)order[2 * k];
        if (order[2 * k + 1] == empty)
            memcpy(to, first, 4 * sizeof *to);
        else
            join_springs(first, f->spring + 4 * (size_t)order[2 * k + 1], to);
    }
}

/* Are links [begin, end) of the product all nothing? */
TOILE_INLINE bool are_slack(const float *link, int begin, int end) {
    int any = 0;
    for (size_t k = 4 * (size_t)begin; k < 4 * (size_t)end; k++)
        any |= link[k] != 0;
    return !any;
}

/* The chunk's runs without stretches of links that are nothing. */
static void cut_runs(const toile_fast *f, int chunk) {
    const toile_fast_links *l = &f->pattern.links;
    toile_link_run *first = f->run + toile_fast_run_place(l, chunk), *next = first;
    for (const toile_link_run *r = l->run + l->run_begin[chunk], *last = l->run + l->run_begin[chunk + 1]; r < last; r++) {
        bool open = false;
        for (int from = 0; from < r->count; from += TOILE_LINKS_SLACK) {
            int to = from + TOILE_LINKS_SLACK < r->count ? from + TOILE_LINKS_SLACK : r->count;
            bool slack = to - from == TOILE_LINKS_SLACK && are_slack(f->link, r->link + from, r->link + to);
            if (!slack && open)
                next[-1].count += to - from;
            else if (!slack)
                *next++ = (toile_link_run){r->row + from, r->column + from, to - from, r->link + from};
            open = !slack;
        }
    }
    f->run_count[chunk] = (int)(next - first);
}

/* Diagonal block and right side of one row of springs in one go; B has its inertia. */
TOILE_INLINE void assemble_springs(const toile_assembly *a, int i, toile_matrix *matrix, double *b, v4 B[3]) {
    const toile_pattern *p = &a->model->pattern;
    v4 sum = v4_load(a->force + 4 * (size_t)i);
    int k = p->spring_begin[i], soft = matrix->live ? matrix->live->soft[i] : p->spring_begin[i + 1];
    for (; k < soft; k++) {
        add_spring(a, p->spring_code[k], 1, B);
        sum = add_force(a, p->spring_code[k], sum);
    }
    for (; k < p->spring_begin[i + 1]; k++)
        sum = add_force(a, p->spring_code[k], sum);
    v4_store(b + 4 * (size_t)i, v4_set(a->h) * sum);
    store_diagonal(a, matrix, i, B);
}

/* Triangles and hinges of off-diagonal block k; O has its ties. */
TOILE_INLINE void assemble_elements(const toile_assembly *a, int k, v4 O[3]) {
    const toile_pattern *p = &a->model->pattern;
    toile_sum sum = {0};
    for (int t = p->triangle_begin[p->n + k]; t < p->triangle_begin[p->n + k + 1]; t++) {
        fetch_triangle(a, p->triangle_code[t + TOILE_CODES_AHEAD]);
        add_triangle(a, p->triangle_code[t], &sum);
    }
    if (a->fast && a->fast->core) {
        v4 core[3] = {O[0], O[1], O[2]};
        add_sum(&sum, core);
        store_block_single(core, a->fast->core + 9 * (size_t)k);
    }
    for (int e = p->hinge_begin[p->n + k]; e < p->hinge_begin[p->n + k + 1]; e++) {
        fetch_hinge(a, p->hinge_code[e + TOILE_CODES_AHEAD]);
        add_hinge(a, p->hinge_code[e], &sum);
    }
    add_sum(&sum, O);
    if (a->fast)
        store_block_single(O, a->fast->off + 9 * (size_t)k);
}

void TOILE_KERNEL(toile_assemble)(const toile_assembly *a, int chunk, toile_matrix *matrix, double *b) {
    const toile_pattern *p = &a->model->pattern;
    const toile_live *live = matrix->live;
    bool springs = a->model->springs_used;
    if (springs && a->fast) {
        const toile_fast_links *l = &a->fast->pattern.links;
        int empty = a->model->springs.padded;
        copy_links(a->fast, empty, l->run_link[chunk], l->run_link[chunk + 1]);
        cut_runs(a->fast, chunk);
        copy_links(a->fast, empty, l->loose_begin[p->chunk_begin[chunk]], l->loose_begin[p->chunk_begin[chunk + 1]]);
    }
    for (int i = p->chunk_begin[chunk]; i < p->chunk_begin[chunk + 1]; i++) {
        double mass = a->model->mass[i];
        const double *g = a->drag + 8 * (size_t)i;
        v4 D[3] = {{mass + g[0], g[1], g[2], 0}, {g[1], mass + g[3], g[4], 0}, {g[2], g[4], mass + g[5], 0}};
        if (springs) {
            if (a->fast)
                copy_inertia(a, i, mass, g);
            assemble_springs(a, i, matrix, b, D);
        } else {
            add_diagonal(a, i, D);
            store_diagonal(a, matrix, i, D);
            v4_store(b + 4 * (size_t)i, gather_rhs(a, i));
        }
        const int *begin = live ? live->begin : p->row_begin;
        for (int at = begin[i]; at < begin[i + 1] && !(springs && a->diagonal_only); at++) {
            int k = toile_live_block(live, at);
            v4 O[3] = {v4_set(0), v4_set(0), v4_set(0)};
            for (int s = p->spring_begin[p->n + k]; s < p->spring_begin[p->n + k + 1]; s++)
                add_spring(a, p->spring_code[s], -1, O);
            if (!springs)
                assemble_elements(a, k, O);
            if (!a->diagonal_only)
                store_block(O, matrix->off + 9 * (size_t)k);
        }
    }
}

/* Springs [begin, end) as the fast product wants them: K = w w' + across. */
void TOILE_KERNEL(toile_convert_springs)(const double *record, int begin, int end, float *spring) {
    for (int s = begin; s < end; s++) {
        const double *r = record + (size_t)s * TOILE_SPRING_RECORD;
        double root = sqrt(r[3] > 0 ? r[3] : 0);
        float w[4] = {(float)(r[0] * root), (float)(r[1] * root), (float)(r[2] * root), (float)r[4]};
        memcpy(spring + 4 * (size_t)s, w, sizeof w);
    }
}

void TOILE_KERNEL(toile_gather)(const toile_assembly *a, int chunk, double *b) {
    const toile_pattern *p = &a->model->pattern;
    for (int i = p->chunk_begin[chunk]; i < p->chunk_begin[chunk + 1]; i++)
        v4_store(b + 4 * (size_t)i, gather_rhs(a, i));
}

/* H x for the six numbers of a symmetric H. */
TOILE_INLINE v4 even_times(const double *H, v4 x) {
    return (v4){H[0] * x[0] + H[1] * x[1] + H[2] * x[2], H[1] * x[0] + H[3] * x[1] + H[4] * x[2],
                H[2] * x[0] + H[4] * x[1] + H[5] * x[2], 0};
}

/* What the other corners of a triangle do to corner p. */
TOILE_INLINE v4 pull_triangle(const toile_assembly *a, int code, const double *x) {
    const toile_triangles *all = &a->model->triangles;
    int t = code >> 4, p = code & 3;
    const double *c = all->corner + 6 * (size_t)t, *r = a->triangle + (size_t)t * TOILE_TRIANGLE_RECORD, *H = r + 18;
    v4 u = v4_set(0), v = u;
    for (int q = 0; q < 3; q++)
        if (q != p) {
            v4 xq = v4_load(x + 4 * (size_t)all->vertex[q][t]);
            u += v4_set(c[q]) * xq;
            v += v4_set(c[q + 3]) * xq;
        }
    v4 Hv = {H[0] * v[0] + H[1] * v[1] + H[2] * v[2], H[3] * v[0] + H[4] * v[1] + H[5] * v[2],
             H[6] * v[0] + H[7] * v[1] + H[8] * v[2], 0};
    v4 Hu = v4_row(H) * v4_set(u[0]) + v4_row(H + 3) * v4_set(u[1]) + v4_row(H + 6) * v4_set(u[2]);
    return v4_set(c[p]) * (even_times(r + 6, u) + Hv) + v4_set(c[p + 3]) * (Hu + even_times(r + 12, v));
}

TOILE_INLINE v4 pull_hinge(const toile_assembly *a, int code, const double *x) {
    int e = code >> 4, p = code & 3;
    const double *r = a->hinge + (size_t)e * TOILE_HINGE_RECORD;
    double turn = 0;
    for (int q = 0; q < 4; q++)
        if (q != p)
            turn += v4_sum(v4_row(r + 3 * q) * v4_load(x + 4 * (size_t)a->model->hinges.vertex[q][e]));
    return v4_set(r[13] * turn) * v4_row(r + 3 * p);
}

void TOILE_KERNEL(toile_multiply_row)(const toile_assembly *a, const toile_matrix *matrix, int i, const double *x, double *y) {
    const toile_pattern *p = &a->model->pattern;
    v4 sum = block_times(matrix->diagonal + 12 * (size_t)i, v4_load(x + 4 * (size_t)i));
    for (int k = p->spring_begin[i]; k < p->spring_begin[i + 1]; k++) {
        int s = p->spring_code[k] >> 1, other = a->model->springs.vertex[!(p->spring_code[k] & 1)][s];
        const double *r = a->spring + (size_t)s * TOILE_SPRING_RECORD;
        v4 u = v4_row(r), xj = v4_load(x + 4 * (size_t)other);
        sum -= v4_set(r[3] * v4_sum(u * xj)) * u + v4_set(r[4]) * xj;
    }
    if (!a->model->springs_used) {
        for (int k = p->triangle_begin[i]; k < p->triangle_begin[i + 1]; k++)
            sum += pull_triangle(a, p->triangle_code[k], x);
        for (int k = p->hinge_begin[i]; k < p->hinge_begin[i + 1]; k++)
            sum += pull_hinge(a, p->hinge_code[k], x);
    }
    v4_store(y + 4 * (size_t)i, sum);
}

TOILE_INLINE void multiply_chunk(const toile_matrix *a, const toile_live *live, int chunk, const double *x, double *y) {
    const toile_pattern *p = a->pattern;
    int begin = p->chunk_begin[chunk], end = p->chunk_begin[chunk + 1];
    double *spill = a->spill + 4 * (size_t)p->spill_begin[chunk];
    memset(y + 4 * (size_t)begin, 0, 4 * (size_t)(end - begin) * sizeof(double));
    memset(spill, 0, 4 * (size_t)p->spill_count[chunk] * sizeof(double));
    for (int i = begin; i < end; i++) {
        const double *D = a->diagonal + 12 * (size_t)i;
        v4 xi = v4_load(x + 4 * (size_t)i);
        v4 x0 = v4_set(xi[0]), x1 = v4_set(xi[1]), x2 = v4_set(xi[2]);
        /* row sums stay in lanes until the row is done; a symmetric diagonal block can be taken by columns */
        v4 r0 = v4_set(0), r1 = v4_set(0), r2 = v4_set(0);
        v4 own = v4_load(D) * x0 + v4_load(D + 4) * x1 + v4_load(D + 8) * x2;
        for (int half = 0; half < 2; half++) {
            int from, to;
            toile_live_range(live, p, i, half, &from, &to);
            double *target = half ? spill : y;
            size_t shift = half ? 4 * (size_t)end : 0;
            for (int at = from; at < to; at++) {
                int k = toile_live_block(live, at);
                size_t j = 4 * (size_t)p->column[k];
                const double *O = a->off + 9 * (size_t)k;
                v4 o0 = v4_row(O), o1 = v4_row(O + 3), o2 = v4_row(O + 6), xj = v4_load(x + j);
                r0 += o0 * xj;
                r1 += o1 * xj;
                r2 += o2 * xj;
                double *yj = target + (j - shift);
                v4_store(yj, v4_load(yj) + (o0 * x0 + o1 * x1 + o2 * x2));
            }
        }
        own += v4_sums(r0, r1, r2);
        v4_store(y + 4 * (size_t)i, v4_load(y + 4 * (size_t)i) + own);
    }
}

void TOILE_KERNEL(toile_multiply)(const toile_matrix *a, int chunk, const double *x, double *y) {
    if (a->live)
        multiply_chunk(a, a->live, chunk, x, y);
    else
        multiply_chunk(a, NULL, chunk, x, y);
}

void TOILE_KERNEL(toile_multiply_spill)(const toile_matrix *a, int chunk, double *y) {
    const toile_pattern *p = a->pattern;
    int begin = p->chunk_begin[chunk], end = p->chunk_begin[chunk + 1];
    for (int c = 0; c < chunk; c++) {
        int first = p->chunk_begin[c + 1], last = first + p->spill_count[c];
        for (int i = first > begin ? first : begin; i < (last < end ? last : end); i++) {
            double *yi = y + 4 * (size_t)i;
            v4_store(yi, v4_load(yi) + v4_load(a->spill + 4 * (size_t)(p->spill_begin[c] + i - first)));
        }
    }
}
