/* Bending of hinges, eight at a time (Baraff-Witkin 1998, 4.3, 4.5; plain form of the angle: force_plain.c), in two
 * stages: the angle and gradient of each hinge, then all moments together in passes over the hinges (hinge.c).
 *
 * force = -moment grad theta, S moment = theta - rest + tau dtheta/dt. The matrix gets bound grad grad': the diagonal bound is
 * no softer than the moments, keeps the matrix as narrow as hinges one by one, and errs on the side of stability; the second
 * derivative of theta is indefinite and left out. So a hinge is its gradient and two numbers. */
#include "kernels_table.h"

void TOILE_KERNEL(toile_hinges)(const toile_evaluation *at, int begin, int end, double *record) {
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
        for (int l = 0; l < 8; l++, to += TOILE_HINGE_RECORD) {
            for (int c = 0; c < 4; c++) {
                to[3 * c] = g[c].x[l];
                to[3 * c + 1] = g[c].y[l];
                to[3 * c + 2] = g[c].z[l];
            }
            to[13] = factor[l];
            to[14] = bend[l];
        }
    }
}

void TOILE_KERNEL(toile_moments)(const toile_model *m, int pass, int begin, int end, double *record, double *scratch) {
    const toile_hinges *t = &m->hinges;
    size_t n = (size_t)t->padded;
    double relax = t->relax[pass], carry = t->carry[pass], *due = scratch, *next = due + (pass % 2 ? 2 : 1) * n;
    const double *now = due + (pass % 2 ? 1 : 2) * n;
    for (int e = begin; e < end && pass == 0; e++) {
        due[e] = -t->stiffness[e] * record[(size_t)e * TOILE_HINGE_RECORD + 14];
        next[e] = relax * due[e];
    }
    for (int e = begin; e < end && pass > 0; e++) {
        double left = due[e] - now[e], before = pass > 1 ? next[e] : 0;
        for (int k = 0; k < TOILE_HINGE_PARTNERS; k++)
            left -= t->share[k][e] * now[t->partner[k][e]];
        next[e] = now[e] + carry * (now[e] - before) + relax * left;
    }
    for (int e = begin; e < end && pass == t->passes - 1; e++)
        record[(size_t)e * TOILE_HINGE_RECORD + 12] = next[e];
}
