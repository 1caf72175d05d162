/* What an element adds to a block of A, from its record (kernels.h). */
#ifndef TOILE_ELEMENT_BLOCK_H
#define TOILE_ELEMENT_BLOCK_H

#include "kernels.h"
#include "lanes.h"

/* Adds what triangle `code` gives to a block: a a' H_uu + b b' H_vv + a b' H_uv + b a' H_uv', see model.h. */
TOILE_INLINE void add_triangle(const toile_assembly *a, int code, double B[9]) {
    int t = code >> 4, p = (code >> 2) & 3, q = code & 3;
    const double *c = a->model->triangles.corner + 6 * (size_t)t;
    const double *r = a->triangle + (size_t)t * TOILE_TRIANGLE_RECORD, *uu = r + 6, *vv = r + 12, *uv = r + 18;
    double aa = c[p] * c[q], bb = c[p + 3] * c[q + 3], ab = c[p] * c[q + 3], ba = c[p + 3] * c[q];
    double xy = aa * uu[1] + bb * vv[1], xz = aa * uu[2] + bb * vv[2], yz = aa * uu[4] + bb * vv[4];
    B[0] += aa * uu[0] + bb * vv[0] + (ab + ba) * uv[0];
    B[1] += xy + ab * uv[1] + ba * uv[3];
    B[2] += xz + ab * uv[2] + ba * uv[6];
    B[3] += xy + ab * uv[3] + ba * uv[1];
    B[4] += aa * uu[3] + bb * vv[3] + (ab + ba) * uv[4];
    B[5] += yz + ab * uv[5] + ba * uv[7];
    B[6] += xz + ab * uv[6] + ba * uv[2];
    B[7] += yz + ab * uv[7] + ba * uv[5];
    B[8] += aa * uu[5] + bb * vv[5] + (ab + ba) * uv[8];
}

TOILE_INLINE void add_hinge(const toile_assembly *a, int code, double B[9]) {
    const double *r = a->hinge + (size_t)(code >> 4) * TOILE_HINGE_RECORD;
    const double *p = r + 3 * ((code >> 2) & 3), *q = r + 3 * (code & 3);
    if (r[13] == 0) /* explicit */
        return;
    for (int i = 0; i < 3; i++) {
        double f = r[13] * p[i];
        for (int j = 0; j < 3; j++)
            B[3 * i + j] += f * q[j];
    }
}

TOILE_INLINE void add_spring(const toile_assembly *a, int code, double sign, double B[9]) {
    const double *r = a->spring + (size_t)(code >> 1) * TOILE_SPRING_RECORD;
    double along = sign * r[3], across = sign * r[4];
    for (int i = 0; i < 3; i++) {
        double f = along * r[i];
        for (int j = 0; j < 3; j++)
            B[3 * i + j] += f * r[j];
        B[4 * i] += across;
    }
}

#endif
