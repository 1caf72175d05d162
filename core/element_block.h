/* What an element adds to a block of A, from its record (kernels.h). */
#ifndef TOILE_ELEMENT_BLOCK_H
#define TOILE_ELEMENT_BLOCK_H

#include "kernels.h"
#include "lanes.h"

/* A block while triangles and hinges are added to it, four numbers at a time. */
typedef struct toile_sum {
    v4 even[2];     /* the symmetric part: xx xy xz yy, yz zz and two to ignore */
    v4 uv[2], vu[2]; /* H_uv as it is, and to be transposed; the ninth numbers are apart */
    double uv_last, vu_last;
    v4 row[3];      /* hinges, with a fourth number to ignore */
} toile_sum;

/* Three or four numbers and whatever follows them, all within a record. */
TOILE_INLINE v4 v4_loose(const double *p) {
    return (v4) * (const v4u *)p;
}

/* Adds what triangle `code` gives to a block: a a' H_uu + b b' H_vv + a b' H_uv + b a' H_uv', see model.h. */
TOILE_INLINE void add_triangle(const toile_assembly *a, int code, toile_sum *to) {
    int t = code >> 4, p = (code >> 2) & 3, q = code & 3;
    const double *c = a->model->triangles.corner + 6 * (size_t)t;
    const double *r = a->triangle + (size_t)t * TOILE_TRIANGLE_RECORD, *uu = r + 6, *vv = r + 12, *uv = r + 18;
    v4 aa = v4_set(c[p] * c[q]), bb = v4_set(c[p + 3] * c[q + 3]), ab = v4_set(c[p] * c[q + 3]), ba = v4_set(c[p + 3] * c[q]);
    for (int k = 0; k < 2; k++) {
        to->even[k] += aa * v4_loose(uu + 4 * k) + bb * v4_loose(vv + 4 * k);
        to->uv[k] += ab * v4_loose(uv + 4 * k);
        to->vu[k] += ba * v4_loose(uv + 4 * k);
    }
    to->uv_last += ab[0] * uv[8];
    to->vu_last += ba[0] * uv[8];
}

TOILE_INLINE void add_hinge(const toile_assembly *a, int code, toile_sum *to) {
    const double *r = a->hinge + (size_t)(code >> 4) * TOILE_HINGE_RECORD;
    const double *p = r + 3 * ((code >> 2) & 3);
    v4 q = v4_loose(r + 3 * (code & 3)), factor = v4_set(r[13]); /* 0: explicit */
    for (int i = 0; i < 3; i++)
        to->row[i] += factor * v4_set(p[i]) * q;
}

/* Adds triangles and hinges to B. */
TOILE_INLINE void add_sum(const toile_sum *s, double B[9]) {
    const v4 *e = s->even, *u = s->uv, *v = s->vu, *h = s->row;
    B[0] += e[0][0] + (u[0][0] + v[0][0]) + h[0][0];
    B[1] += e[0][1] + (u[0][1] + v[0][3]) + h[0][1];
    B[2] += e[0][2] + (u[0][2] + v[1][2]) + h[0][2];
    B[3] += e[0][1] + (u[0][3] + v[0][1]) + h[1][0];
    B[4] += e[0][3] + (u[1][0] + v[1][0]) + h[1][1];
    B[5] += e[1][0] + (u[1][1] + v[1][3]) + h[1][2];
    B[6] += e[0][2] + (u[1][2] + v[0][2]) + h[2][0];
    B[7] += e[1][0] + (u[1][3] + v[1][1]) + h[2][1];
    B[8] += e[1][1] + (s->uv_last + s->vu_last) + h[2][2];
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

/* The same into rows of four, the same bits; a slack or explicit spring adds zeros, which is faster than to ask. */
TOILE_INLINE void add_spring_rows(const toile_assembly *a, int code, double sign, v4 B[3]) {
    const double *r = a->spring + (size_t)(code >> 1) * TOILE_SPRING_RECORD;
    v4 u = v4_row(r), f = v4_set(sign * r[3]) * u;
    double across = sign * r[4];
    B[0] = B[0] + v4_set(f[0]) * u + (v4){across, 0, 0, 0};
    B[1] = B[1] + v4_set(f[1]) * u + (v4){0, across, 0, 0};
    B[2] = B[2] + v4_set(f[2]) * u + (v4){0, 0, across, 0};
}

#endif
