#include "solve_decompose.h"

#include "lanes.h"
#include "solve_linear.h"
#include "solve_part.h"

struct toile_decompose {
    toile_memory *memory;
    const toile_model *model;
    int *part;          /* of each particle, -1: fully constrained, (n) */
    int *parent;        /* union-find, (n) */
    int *begin;         /* first member of each part, (n + 1) */
    int *member;        /* particles by part, ascending, (n) */
    int *constraint_of; /* of each particle or -1, (n) */
    int *place;         /* position of a particle in its part, (n) */
    int *iterations;    /* of each part, (n); -1: not solved */
    int *link_begin;    /* first link of each particle, (n + 1) */
    int *link;          /* off-diagonal blocks within a part that are not zero, (off_count) */
    int count;
    double *inverse;       /* S P^-1 S, (n x 12) */
    double *right, *outer; /* S (b - A (I - S) z) and A (I - S) z, (n x 4) like the rest */
    double *r, *p, *s, *q;
};

toile_status toile_decompose_make(toile_memory *memory, const toile_model *model, toile_decompose **solver,
                                  toile_error *error) {
    size_t n = (size_t)model->particle_count;
    toile_decompose *d = toile_alloc(memory, 1, sizeof *d);
    if (!d)
        return toile_fail_memory(error, "the linear solver");
    d->memory = memory;
    d->model = model;
    int **ints[] = {&d->part,          &d->parent, &d->begin,     &d->member,
                    &d->constraint_of, &d->place,  &d->iterations, &d->link_begin};
    double **vectors[] = {&d->right, &d->outer, &d->r, &d->p, &d->s, &d->q};
    bool ok = (d->inverse = toile_alloc(memory, 12 * n, sizeof(double))) != NULL;
    ok = (d->link = toile_alloc(memory, (size_t)model->pattern.off_count, sizeof(int))) && ok;
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        ok = (*ints[i] = toile_alloc(memory, n + 1, sizeof(int))) && ok;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        ok = (*vectors[i] = toile_alloc(memory, 4 * n, sizeof(double))) && ok;
    if (!ok) {
        toile_decompose_free(d);
        return toile_fail_memory(error, "the linear solver");
    }
    *solver = d;
    return TOILE_OK;
}

void toile_decompose_free(toile_decompose *d) {
    if (!d)
        return;
    void *blocks[] = {d->part,       d->parent, d->begin,   d->member, d->constraint_of, d->place, d->iterations,
                      d->link_begin, d->link,   d->inverse, d->right,  d->outer,         d->r,     d->p,
                      d->s,          d->q};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(d->memory, blocks[i]);
    toile_free(d->memory, d);
}

const int *toile_decompose_parts(const toile_decompose *d) {
    return d->part;
}

/* ---- parts ---- */

static bool is_zero(const double *block, int count) {
    for (int i = 0; i < count; i++)
        if (block[i] != 0)
            return false;
    return true;
}

static int root_of(int *parent, int i) {
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* The lower of two roots becomes the root of both, so that the outcome does not depend on anything but the
 * graph. */
static void join(int *parent, int i, int j) {
    int a = root_of(parent, i), b = root_of(parent, j);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static void find_parts(toile_decompose *d, const toile_system *system) {
    const toile_pattern *p = &d->model->pattern;
    const toile_constraints *c = system->constraints;
    int n = p->n, *parent = d->parent, *part = d->part;
    for (int i = 0; i < n; i++) {
        parent[i] = i;
        part[i] = 0;
        d->constraint_of[i] = -1;
    }
    for (int k = 0; k < c->count; k++) {
        d->constraint_of[c->particle[k]] = k;
        if (is_zero(c->filter + 12 * (size_t)k, 12))
            part[c->particle[k]] = -1;
    }
    int links = 0;
    for (int i = 0; i < n; i++) {
        d->link_begin[i] = links;
        for (int k = p->row_begin[i]; part[i] >= 0 && k < p->row_begin[i + 1]; k++)
            if (part[p->column[k]] >= 0 && !is_zero(system->matrix->off + 9 * (size_t)k, 9)) {
                join(parent, i, p->column[k]);
                d->link[links++] = k;
            }
    }
    d->link_begin[n] = links;

    /* number them by their first particle, and list their members in order */
    d->count = 0;
    for (int i = 0; i < n; i++)
        if (part[i] >= 0) {
            int root = root_of(parent, i);
            part[i] = root == i ? d->count++ : part[root]; /* a root comes before its members */
        }
    memset(d->begin, 0, ((size_t)d->count + 1) * sizeof(int));
    for (int i = 0; i < n; i++)
        if (part[i] >= 0)
            d->place[i] = d->begin[part[i] + 1]++;
    for (int k = 0; k < d->count; k++)
        d->begin[k + 1] += d->begin[k];
    for (int i = 0; i < n; i++)
        if (part[i] >= 0)
            d->member[d->begin[part[i]] + d->place[i]] = i;
}

/* ---- all of them ---- */

/* right = S (b - A (I - S) z), and x = S x0. Returns rows multiplied. */
static int64_t prepare(toile_decompose *d, const toile_system *system) {
    const toile_constraints *c = system->constraints;
    size_t n = (size_t)d->model->particle_count;
    toile_solve solve = {
        .matrix = system->matrix, .constraints = c, .inverse = d->inverse, .threads = system->threads};
    toile_precondition(&solve, TOILE_PRECONDITIONER_CONSTRAINED);
    if (c->count)
        toile_multiply(system->kernels, system->matrix, c->z, d->outer, system->threads);
    else
        memset(d->outer, 0, 4 * n * sizeof(double));
    for (size_t i = 0; i < 4 * n; i++)
        d->right[i] = system->b[i] - d->outer[i];
    for (int k = 0; k < c->count; k++) {
        size_t i = 4 * (size_t)c->particle[k];
        const double *S = c->filter + 12 * (size_t)k;
        v4_store(d->right + i, block_times(S, v4_load(d->right + i)));
        v4_store(system->x + i, block_times(S, v4_load(system->x + i)));
    }
    return c->count ? (int64_t)n : 0;
}

void toile_decompose_solve(toile_decompose *d, toile_system *system) {
    const toile_constraints *c = system->constraints;
    system->row_multiplies = prepare(d, system);
    find_parts(d, system);
#pragma omp parallel for schedule(dynamic, 1) num_threads(system->threads) if (system->threads > 1)
    for (int k = 0; k < d->count; k++) {
        toile_part part = {.system = system,
                           .count = d->begin[k + 1] - d->begin[k],
                           .member = d->member + d->begin[k],
                           .constraint_of = d->constraint_of,
                           .place = d->place,
                           .link_begin = d->link_begin,
                           .link = d->link,
                           .inverse = d->inverse,
                           .right = d->right,
                           .outer = d->outer,
                           .r = d->r,
                           .p = d->p,
                           .s = d->s,
                           .q = d->q};
        d->iterations[k] = system->kernels->part(&part);
    }
    for (int k = 0; k < c->count; k++) {
        size_t i = 4 * (size_t)c->particle[k];
        v4_store(system->x + i, v4_load(system->x + i) + v4_load(c->z + i));
    }
    system->components = d->count;
    system->iterations = 0;
    system->converged = true;
    for (int k = 0; k < d->count; k++) {
        int rows = d->begin[k + 1] - d->begin[k], taken = d->iterations[k];
        system->converged = system->converged && taken >= 0;
        system->iterations = taken > system->iterations ? taken : system->iterations;
        system->row_multiplies += (int64_t)(taken + 1) * rows; /* a direct solve goes over each row once */
    }
    for (size_t i = 0; i < 4 * (size_t)d->model->particle_count; i++)
        system->converged = system->converged && isfinite(system->x[i]);
}
