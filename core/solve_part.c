/* One part of a system on its own (solve_decompose.h): directly if it is small, else by MPCG with the constrained
 * preconditioner. By one thread; a part touches no rows but its members'. */
#include "solve_part.h"

#include "kernels_table.h"
#include "solve_stop.h"

/* Parts of so few particles are solved directly: a dense factor then costs less than some tens of iterations. */
enum { DIRECT_MOST = 16, DIRECT_ROWS = 3 * DIRECT_MOST };

#define FOR_MEMBERS(part, i) for (int k_ = 0, i; k_ < (part)->count && ((i = (part)->member[k_]), true); k_++)

static double dot_of(const toile_part *part, const double *a, const double *b) {
    v4 sum = v4_set(0);
    FOR_MEMBERS(part, i) sum += v4_load(a + 4 * (size_t)i) * v4_load(b + 4 * (size_t)i);
    return v4_sum(sum);
}

static void filter(const toile_part *part, double *y) {
    FOR_MEMBERS(part, i) if (part->constraint_of[i] >= 0) {
        double *yi = y + 4 * (size_t)i;
        v4_store(yi, block_times(part->system->constraints->filter + 12 * (size_t)part->constraint_of[i],
                                 v4_load(yi)));
    }
}

/* out = A in, rows and columns of the part only, and of them only what is not zero: slack and explicit
 * connections cost nothing. */
static void multiply(const toile_part *part, const double *in, double *out) {
    const toile_pattern *p = &part->system->model->pattern;
    const toile_matrix *A = part->system->matrix;
    FOR_MEMBERS(part, i)
    v4_store(out + 4 * (size_t)i, block_times(A->diagonal + 12 * (size_t)i, v4_load(in + 4 * (size_t)i)));
    FOR_MEMBERS(part, i) {
        v4 x = v4_load(in + 4 * (size_t)i), r0 = v4_set(0), r1 = v4_set(0), r2 = v4_set(0);
        for (int l = part->link_begin[i]; l < part->link_begin[i + 1]; l++) {
            int k = part->link[l];
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
static double precondition(const toile_part *part, const double *r, double *q) {
    FOR_MEMBERS(part, i)
    v4_store(q + 4 * (size_t)i, block_times(part->inverse + 12 * (size_t)i, v4_load(r + 4 * (size_t)i)));
    return dot_of(part, r, q);
}

/* x' M x: no more than |x|_A^2, and never negative. */
static double kinetic(const toile_part *part, const double *x) {
    double sum = 0;
    FOR_MEMBERS(part, i) {
        v4 xi = v4_load(x + 4 * (size_t)i);
        sum += part->system->model->mass[i] * v4_sum(xi * xi);
    }
    return sum;
}

/* MPCG (thesis Fig. 5.2). x comes in as S x0 and goes out as S x. Returns iterations, -1 if it did not end
 * well.
 *
 * The size of the answer is x' A x + 2 x' A (I - S) z over the part; what the dead ends have of it is not in
 * here, and where they move that makes it too small or negative. Then the kinetic part stands for it. */
static int iterate(const toile_part *part, double *x) {
    const double *z = part->system->constraints->z;
    double *r = part->r, *p = part->p, *s = part->s, *q = part->q;
    multiply(part, x, s);
    double energy = dot_of(part, x, s) + 2 * dot_of(part, x, part->outer) + dot_of(part, z, part->outer);
    FOR_MEMBERS(part, i)
    v4_store(r + 4 * (size_t)i, v4_load(part->right + 4 * (size_t)i) - v4_load(s + 4 * (size_t)i));
    filter(part, r);
    double delta = precondition(part, r, p);
    toile_stop stop = toile_stop_begin(part->system->tolerance, energy);
    int count = 0;
    bool converged = toile_stop_at_once(delta);
    while (!converged && delta == delta && count < part->system->iterations_max) {
        multiply(part, p, s);
        filter(part, s);
        double curvature = dot_of(part, p, s);
        count++;
        if (!(curvature > 0))
            return -1;
        double alpha = delta / curvature, pb = dot_of(part, p, part->system->b);
        FOR_MEMBERS(part, i) {
            size_t e = 4 * (size_t)i;
            v4_store(x + e, v4_load(x + e) + v4_set(alpha) * v4_load(p + e));
            v4_store(r + e, v4_load(r + e) - v4_set(alpha) * v4_load(s + e));
        }
        converged = toile_stop_step(&stop, alpha, delta, pb) ||
                    (stop.count >= TOILE_STOP_LEAST && stop.error2 <= stop.tolerance2 * kinetic(part, x));
        double last = delta;
        delta = precondition(part, r, q);
        converged = converged || toile_stop_at_once(delta);
        v4 beta = v4_set(delta / last);
        FOR_MEMBERS(part, i) {
            size_t e = 4 * (size_t)i;
            v4_store(p + e, v4_load(q + e) + beta * v4_load(p + e));
        }
    }
    return converged && delta == delta ? count : -1;
}

/* Rows 3a.. and columns 3b.. of the dense matrix get S_i B S_j. */
static void put_block(const toile_part *part, int i, int other, const double B[9], double *M, int rows) {
    static const double IDENTITY[12] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0};
    const toile_constraints *c = part->system->constraints;
    const double *S =
        part->constraint_of[i] >= 0 ? c->filter + 12 * (size_t)part->constraint_of[i] : IDENTITY;
    const double *T =
        part->constraint_of[other] >= 0 ? c->filter + 12 * (size_t)part->constraint_of[other] : IDENTITY;
    double W[9];
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++)
            W[3 * a + b] = S[4 * a] * B[b] + S[4 * a + 1] * B[3 + b] + S[4 * a + 2] * B[6 + b];
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            double t = W[3 * a] * T[b] + W[3 * a + 1] * T[4 + b] + W[3 * a + 2] * T[8 + b];
            int row = 3 * part->place[i] + a, column = 3 * part->place[other] + b;
            M[column * rows + row] = t; /* the lower half: `other` comes later */
        }
}

/* S A S + sigma (I - S) of the part, dense, lower half by rows. */
static void fill_dense(const toile_part *part, double *M, int rows) {
    const toile_pattern *p = &part->system->model->pattern;
    const toile_matrix *A = part->system->matrix;
    memset(M, 0, (size_t)(rows * rows) * sizeof *M);
    FOR_MEMBERS(part, i) {
        const double *D = A->diagonal + 12 * (size_t)i;
        double B[9] = {D[0], D[1], D[2], D[4], D[5], D[6], D[8], D[9], D[10]};
        put_block(part, i, i, B, M, rows);
        if (part->constraint_of[i] >= 0) {
            const double *S = part->system->constraints->filter + 12 * (size_t)part->constraint_of[i];
            double sigma = (B[0] + B[4] + B[8]) / 3;
            int at = 3 * part->place[i];
            for (int a = 0; a < 3; a++)
                for (int b = 0; b < 3; b++)
                    M[(at + a) * rows + at + b] += sigma * ((a == b) - S[4 * a + b]);
        }
        for (int l = part->link_begin[i]; l < part->link_begin[i + 1]; l++) {
            int k = part->link[l];
            put_block(part, i, p->column[k], A->off + 9 * (size_t)k, M, rows);
        }
    }
}

static bool solve_directly(const toile_part *part, double *x) {
    double M[DIRECT_ROWS * DIRECT_ROWS], y[DIRECT_ROWS];
    int rows = 3 * part->count;
    fill_dense(part, M, rows);
    FOR_MEMBERS(part, i) memcpy(y + 3 * part->place[i], part->right + 4 * (size_t)i, 3 * sizeof *y);
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
    FOR_MEMBERS(part, i) memcpy(x + 4 * (size_t)i, y + 3 * part->place[i], 3 * sizeof *y);
    filter(part, x);
    return true;
}

int TOILE_KERNEL(toile_part)(const toile_part *part) {
    if (part->count <= DIRECT_MOST)
        return solve_directly(part, part->system->x) ? 0 : -1;
    return iterate(part, part->system->x);
}
