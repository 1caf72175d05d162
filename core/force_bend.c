/* Bending of hinges, eight at a time (Baraff-Witkin 1998, 4.3, 4.5; plain form of the angle: force_plain.c), in two
 * stages: the angle and gradient of each hinge, then all moments together in passes over the hinges (hinge.c).
 *
 * force = -moment grad theta, S moment = theta - rest + tau dtheta/dt. The matrix gets bound grad grad': the diagonal bound is
 * no softer than the moments, keeps the matrix as narrow as hinges one by one, and errs on the side of stability; the second
 * derivative of theta is indefinite and left out. So a hinge is its gradient and two numbers. */
#include "kernels_table.h"

void TOILE_KERNEL(toile_hinges)(const toile_evaluation *at, int begin, int end, double *bends, double *record) {
    const toile_hinges *t = &at->model->hinges;
    const double *x = at->x, *v = at->v, *d = at->d;
    v8 h = v8_set(at->h), tiny = v8_set(1e-30);
    for (int e = begin; e < end; e += 8) {
        v8x3 x0 = v8_gather(x, t->vertex[0] + e), x1 = v8_gather(x, t->vertex[1] + e);
        v8x3 x2 = v8_gather(x, t->vertex[2] + e), x3 = v8_gather(x, t->vertex[3] + e);
        v8x3 edge = v8_sub(x1, x0), a = v8_sub(x2, x0), b = v8_sub(x3, x0);
        v8x3 n1 = v8_cross(edge, a), n2 = v8_cross(b, edge);
        v8 length = v8_sqrt(v8_max(v8_dot(edge, edge), tiny));
        v8 angle = v8_atan2(v8_dot(v8_cross(n1, n2), edge) / length, v8_dot(n1, n2));

        v8x3 m1 = v8_scale(1 / v8_max(v8_dot(n1, n1), tiny), n1), m2 = v8_scale(1 / v8_max(v8_dot(n2, n2), tiny), n2);
        v8 over = 1 / length;
        v8x3 g[4];
        g[2] = v8_scale(-length, m1);
        g[3] = v8_scale(-length, m2);
        g[0] = v8_blend(-v8_dot(v8_sub(x2, x1), edge) * over, m1, -v8_dot(v8_sub(x3, x1), edge) * over, m2);
        g[1] = v8_blend(v8_dot(a, edge) * over, m1, v8_dot(b, edge) * over, m2);

        v8 rate = v8_set(0), ahead = v8_set(0);
        for (int c = 0; c < 4; c++) {
            rate += v8_dot(g[c], v8_gather(v, t->vertex[c] + e));
            ahead += v8_dot(g[c], v8_gather(d, t->vertex[c] + e));
        }
        if (at->hinge_share) {
            v8 share = v8_load(at->hinge_share + e);
            ahead *= share;
            h = at->h * share;
        }
        v8 damping = v8_load(t->damping + e);
        v8 bend = angle - v8_load(t->rest + e) + damping * rate + ahead;
        v8 factor = h * v8_load(t->bound + e) * (h + damping);

        double *to = record + (size_t)e * TOILE_HINGE_RECORD;
        v8 out[16] = {g[0].x, g[0].y, g[0].z, g[1].x, g[1].y, g[1].z, g[2].x, g[2].y, g[2].z, g[3].x, g[3].y, g[3].z,
                      v8_set(0), factor, v8_set(0), v8_set(0)}; /* the moment follows (toile_moments) */
        for (int k = 0; k < 16; k += 4)
            v8_scatter4(to + k, TOILE_HINGE_RECORD, out + k);
        memcpy(bends + e, &bend, sizeof bend);
    }
}

/* One pass of Chebyshev's iteration. Moments go to and fro between two arrays of their own: as numbers of the records they would
 * bring all of these from memory in every pass. */
void TOILE_KERNEL(toile_moments)(const toile_model *m, int pass, int begin, int end, double *bends, double *record) {
    const toile_hinges *t = &m->hinges;
    const double *bend = bends, *stiffness = t->stiffness;
    int even = pass % 2;
    double *to = bends + (1 + even) * t->padded, relax = t->relax[pass], carry = t->carry[pass];
    const double *from = bends + (2 - even) * t->padded;
    if (pass == 0) {
#pragma omp simd
        for (int e = begin; e < end; e++)
            to[e] = -relax * stiffness[e] * bend[e];
    } else {
        const int *p0 = t->partner[0], *p1 = t->partner[1], *p2 = t->partner[2], *p3 = t->partner[3];
        const double *s0 = t->share[0], *s1 = t->share[1], *s2 = t->share[2], *s3 = t->share[3];
        double known = pass > 1;
#pragma omp simd
        for (int e = begin; e < end; e++) {
            double left = -stiffness[e] * bend[e] - from[e];
            left -= s0[e] * from[p0[e]] + s1[e] * from[p1[e]] + s2[e] * from[p2[e]] + s3[e] * from[p3[e]];
            to[e] = from[e] + carry * (from[e] - known * to[e]) + relax * left;
        }
    }
    for (int e = begin; pass == t->passes - 1 && e < end; e++)
        record[(size_t)e * TOILE_HINGE_RECORD + 12] = to[e];
}
