/* What an element adds to a block of A, from its record (kernels.h). */
#ifndef TOILE_ELEMENT_BLOCK_H
#define TOILE_ELEMENT_BLOCK_H

#include "fast_lanes.h"
#include "kernels.h"

/* Blocks are three rows of four while they are made; what the fourth numbers are means nothing. */
typedef struct toile_sum {
    v4 even[2];      /* triangles, the symmetric part: xx xy xz yy, yz zz and two to ignore */
    v4 uv[3], vu[3]; /* H_uv as it is, and to be transposed */
    v4 row[3];       /* hinges */
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
    for (int k = 0; k < 2; k++)
        to->even[k] += aa * v4_loose(uu + 4 * k) + bb * v4_loose(vv + 4 * k);
    for (int k = 0; k < 3; k++) {
        v4 row = v4_loose(uv + 3 * k);
        to->uv[k] += ab * row;
        to->vu[k] += ba * row;
    }
}

TOILE_INLINE void add_hinge(const toile_assembly *a, int code, toile_sum *to) {
    const double *r = a->hinge + (size_t)(code >> 4) * TOILE_HINGE_RECORD;
    const double *p = r + 3 * ((code >> 2) & 3);
    v4 q = v4_loose(r + 3 * (code & 3)), factor = v4_set(r[13]); /* 0: explicit */
    for (int i = 0; i < 3; i++)
        to->row[i] += factor * v4_set(p[i]) * q;
}

/* Adds triangles and hinges to B. */
TOILE_INLINE void add_sum(const toile_sum *s, v4 B[3]) {
    const v4 *e = s->even;
    v4 turned[4] = {s->vu[0], s->vu[1], s->vu[2], s->vu[2]};
    v4_transpose(turned);
    B[0] += e[0] + (s->uv[0] + turned[0]) + s->row[0];
    B[1] += __builtin_shufflevector(e[0], e[1], 1, 3, 4, 4) + (s->uv[1] + turned[1]) + s->row[1];
    B[2] += __builtin_shufflevector(e[0], e[1], 2, 4, 5, 5) + (s->uv[2] + turned[2]) + s->row[2];
}

/* A slack or explicit spring adds zeros, which is faster than to ask. */
TOILE_INLINE void add_spring(const toile_assembly *a, int code, double sign, v4 B[3]) {
    const double *r = a->spring + (size_t)(code >> 1) * TOILE_SPRING_RECORD;
    v4 u = v4_row(r), f = v4_set(sign * r[3]) * u;
    double across = sign * r[4];
    B[0] = B[0] + v4_set(f[0]) * u + (v4){across, 0, 0, 0};
    B[1] = B[1] + v4_set(f[1]) * u + (v4){0, across, 0, 0};
    B[2] = B[2] + v4_set(f[2]) * u + (v4){0, 0, across, 0};
}

/* The nine numbers of B, row by row. */
TOILE_INLINE void store_block(const v4 B[3], double *to) {
    v4_store_loose(to, __builtin_shufflevector(B[0], B[1], 0, 1, 2, 4));
    v4_store_loose(to + 4, __builtin_shufflevector(B[1], B[2], 1, 2, 4, 5));
    to[8] = B[2][2];
}

TOILE_INLINE void store_block_single(const v4 B[3], float *to) {
    f4_store_loose(to, f4_of(__builtin_shufflevector(B[0], B[1], 0, 1, 2, 4)));
    f4_store_loose(to + 4, f4_of(__builtin_shufflevector(B[1], B[2], 1, 2, 4, 5)));
    to[8] = (float)B[2][2];
}

#endif
