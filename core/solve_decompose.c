#include "solve_decompose.h"

#include "lanes.h"
#include "solve_linear.h"
#include "solve_stop.h"

/* Parts of so few particles are solved directly: a dense factor then costs less than some tens of iterations.
 */
enum { DIRECT_MOST = 16, DIRECT_ROWS = 3 * DIRECT_MOST };

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

/* ---- one part ---- */

/* All that a part needs; its members' rows of the global vectors are its own. */
typedef struct job {
    toile_decompose *d;
    const toile_system *system;
    int part, count;
    const int *member;
} job;

#define FOR_MEMBERS(job, i) for (int k_ = 0, i; k_ < (job)->count && ((i = (job)->member[k_]), true); k_++)

static double dot_of(const job *j, const double *a, const double *b) {
    v4 sum = v4_set(0);
    FOR_MEMBERS(j, i) sum += v4_load(a + 4 * (size_t)i) * v4_load(b + 4 * (size_t)i);
    return v4_sum(sum);
}

static void filter(const job *j, double *y) {
    FOR_MEMBERS(j, i) if (j->d->constraint_of[i] >= 0) {
        double *yi = y + 4 * (size_t)i;
        v4_store(yi, block_times(j->system->constraints->filter + 12 * (size_t)j->d->constraint_of[i],
                                 v4_load(yi)));
    }
}

/* out = A in, rows and columns of the part only, and of them only what is not zero: slack and explicit
 * connections cost nothing. */
static void multiply(const job *j, const double *in, double *out) {
    const toile_pattern *p = &j->d->model->pattern;
    const toile_matrix *A = j->system->matrix;
    FOR_MEMBERS(j, i)
    v4_store(out + 4 * (size_t)i, block_times(A->diagonal + 12 * (size_t)i, v4_load(in + 4 * (size_t)i)));
    FOR_MEMBERS(j, i) {
        v4 x = v4_load(in + 4 * (size_t)i), r0 = v4_set(0), r1 = v4_set(0), r2 = v4_set(0);
        for (int l = j->d->link_begin[i]; l < j->d->link_begin[i + 1]; l++) {
            int k = j->d->link[l];
            size_t other = 4 * (size_t)p->column[k];
            const double *O = A->off + 9 * (size_t)k;
            v4 o0 = v4_row(O), o1 = v4_row(O + 3), o2 = v4_row(O + 6), y = v4_load(in + other);
            r0 += o0 * y;
            r1 += o1 * y;
            r2 += o2 * y;
            v4_store(out + other,
                     v4_load(out + other) + (o0 * v4_set(x[0]) + o1 * v4_set(x[1]) + o2 * v4_set(x[2])));
        }
        double *own = out + 4 * (size_t)i;
        v4_store(own, v4_load(own) + (v4){v4_sum(r0), v4_sum(r1), v4_sum(r2), 0});
    }
}

/* q = S P^-1 S r; returns r' q. */
static double precondition(const job *j, const double *r, double *q) {
    FOR_MEMBERS(j, i)
    v4_store(q + 4 * (size_t)i, block_times(j->d->inverse + 12 * (size_t)i, v4_load(r + 4 * (size_t)i)));
    return dot_of(j, r, q);
}

/* x' M x: no more than |x|_A^2, and never negative. */
static double kinetic(const job *j, const double *x) {
    double sum = 0;
    FOR_MEMBERS(j, i) {
        v4 xi = v4_load(x + 4 * (size_t)i);
        sum += j->d->model->mass[i] * v4_sum(xi * xi);
    }
    return sum;
}

/* MPCG (thesis Fig. 5.2). x comes in as S x0 and goes out as S x. Returns iterations, -1 if it did not end
 * well.
 *
 * The size of the answer is x' A x + 2 x' A (I - S) z over the part; what the dead ends have of it is not in
 * here, and where they move that makes it too small or negative. Then the kinetic part stands for it. */
static int iterate(const job *j, double *x) {
    toile_decompose *d = j->d;
    const double *z = j->system->constraints->z;
    double *r = d->r, *p = d->p, *s = d->s, *q = d->q;
    multiply(j, x, s);
    double energy = dot_of(j, x, s) + 2 * dot_of(j, x, d->outer) + dot_of(j, z, d->outer);
    FOR_MEMBERS(j, i)
    v4_store(r + 4 * (size_t)i, v4_load(d->right + 4 * (size_t)i) - v4_load(s + 4 * (size_t)i));
    filter(j, r);
    double delta = precondition(j, r, p);
    toile_stop stop = toile_stop_begin(j->system->tolerance, energy);
    int count = 0;
    bool converged = toile_stop_at_once(delta);
    while (!converged && delta == delta && count < j->system->iterations_max) {
        multiply(j, p, s);
        filter(j, s);
        double curvature = dot_of(j, p, s);
        count++;
        if (!(curvature > 0))
            return -1;
        double alpha = delta / curvature, pb = dot_of(j, p, j->system->b);
        FOR_MEMBERS(j, i) {
            size_t e = 4 * (size_t)i;
            v4_store(x + e, v4_load(x + e) + v4_set(alpha) * v4_load(p + e));
            v4_store(r + e, v4_load(r + e) - v4_set(alpha) * v4_load(s + e));
        }
        converged = toile_stop_step(&stop, alpha, delta, pb) ||
                    (stop.count >= TOILE_STOP_LEAST && stop.error2 <= stop.tolerance2 * kinetic(j, x));
        double last = delta;
        delta = precondition(j, r, q);
        converged = converged || toile_stop_at_once(delta);
        v4 beta = v4_set(delta / last);
        FOR_MEMBERS(j, i) {
            size_t e = 4 * (size_t)i;
            v4_store(p + e, v4_load(q + e) + beta * v4_load(p + e));
        }
    }
    return converged && delta == delta ? count : -1;
}

/* Rows 3a.. and columns 3b.. of the dense matrix get S_i B S_j. */
static void put_block(const job *j, int i, int other, const double B[9], double *M, int rows) {
    static const double IDENTITY[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    const toile_constraints *c = j->system->constraints;
    const double *S =
        j->d->constraint_of[i] >= 0 ? c->filter + 12 * (size_t)j->d->constraint_of[i] : IDENTITY;
    const double *T =
        j->d->constraint_of[other] >= 0 ? c->filter + 12 * (size_t)j->d->constraint_of[other] : IDENTITY;
    double W[9];
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            W[3 * a + b] = S[4 * a] * B[b] + S[4 * a + 1] * B[3 + b] + S[4 * a + 2] * B[6 + b];
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            double t = W[3 * a] * T[b] + W[3 * a + 1] * T[4 + b] + W[3 * a + 2] * T[8 + b];
            int row = 3 * j->d->place[i] + a, column = 3 * j->d->place[other] + b;
            M[column * rows + row] = t; /* the lower half: `other` comes later */
        }
}

/* S A S + sigma (I - S) of the part, dense, lower half by rows. */
static void fill_dense(const job *j, double *M, int rows) {
    const toile_pattern *p = &j->d->model->pattern;
    const toile_matrix *A = j->system->matrix;
    memset(M, 0, (size_t)(rows * rows) * sizeof *M);
    FOR_MEMBERS(j, i) {
        const double *D = A->diagonal + 12 * (size_t)i;
        double B[9] = {D[0], D[1], D[2], D[4], D[5], D[6], D[8], D[9], D[10]};
        put_block(j, i, i, B, M, rows);
        if (j->d->constraint_of[i] >= 0) {
            const double *S = j->system->constraints->filter + 12 * (size_t)j->d->constraint_of[i];
            double sigma = (B[0] + B[4] + B[8]) / 3;
            int at = 3 * j->d->place[i];
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++)
                    M[(at + a) * rows + at + b] += sigma * ((a == b) - S[4 * a + b]);
        }
        for (int l = j->d->link_begin[i]; l < j->d->link_begin[i + 1]; l++) {
            int k = j->d->link[l];
            put_block(j, i, p->column[k], A->off + 9 * (size_t)k, M, rows);
        }
    }
}

static bool solve_directly(const job *j, double *x) {
    double M[DIRECT_ROWS * DIRECT_ROWS], y[DIRECT_ROWS];
    int rows = 3 * j->count;
    fill_dense(j, M, rows);
    FOR_MEMBERS(j, i) memcpy(y + 3 * j->d->place[i], j->d->right + 4 * (size_t)i, 3 * sizeof *y);
    for (int c = 0; c < rows; c++) /* M = L L', by rows */
        for (int r = c; r < rows; r++) {
            double t = M[r * rows + c];
            for (int k = 0; k < c; k++)
                t -= M[r * rows + k] * M[c * rows + k];
            if (r == c && !(t > 0))
                return false;
            M[r * rows + c] = r == c ? sqrt(t) : t / M[c * rows + c];
        }
    for (int r = 0; r < rows; r++) {
        for (int k = 0; k < r; k++)
            y[r] -= M[r * rows + k] * y[k];
        y[r] /= M[r * rows + r];
    }
    for (int r = rows - 1; r >= 0; r--) {
        for (int k = r + 1; k < rows; k++)
            y[r] -= M[k * rows + r] * y[k];
        y[r] /= M[r * rows + r];
    }
    FOR_MEMBERS(j, i) memcpy(x + 4 * (size_t)i, y + 3 * j->d->place[i], 3 * sizeof *y);
    filter(j, x);
    return true;
}

static int solve_part(const job *j, double *x) {
    if (j->count <= DIRECT_MOST)
        return solve_directly(j, x) ? 0 : -1;
    return iterate(j, x);
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
        job j = {d, system, k, d->begin[k + 1] - d->begin[k], d->member + d->begin[k]};
        d->iterations[k] = solve_part(&j, system->x);
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
