/* Eight doubles at a time, four for one particle. Compiler vectors (gcc and clang) make the same source SSE2, AVX2 or
 * AVX-512, and because every operation is element by element and contraction is off, all three give the same bits. */
#ifndef TOILE_LANES_H
#define TOILE_LANES_H

#include "angle.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Kernel sources are compiled once per instruction set; TOILE_ISA is sse2, avx2 or avx512. */
#define TOILE_JOIN_(a, b) a##_##b
#define TOILE_JOIN(a, b) TOILE_JOIN_(a, b)
#define TOILE_KERNEL(name) TOILE_JOIN(name, TOILE_ISA)

typedef double v4 __attribute__((vector_size(32)));
typedef double v4u __attribute__((vector_size(32), aligned(8)));
typedef int64_t m4 __attribute__((vector_size(32)));
typedef double v8 __attribute__((vector_size(64)));
typedef int64_t m8 __attribute__((vector_size(64)));

typedef struct v8x3 {
    v8 x, y, z;
} v8x3;

#define TOILE_INLINE static inline __attribute__((always_inline))

TOILE_INLINE v8 v8_set(double a) {
    return (v8){a, a, a, a, a, a, a, a};
}

TOILE_INLINE v8 v8_load(const double *p) {
    return *(const v8 *)p; /* all arrays are 64-byte aligned and padded */
}

TOILE_INLINE v8 v8_select(m8 mask, v8 yes, v8 no) {
    return (v8)((mask & (m8)yes) | (~mask & (m8)no));
}

TOILE_INLINE bool v8_any(m8 mask) {
    int64_t any = 0;
    for (int l = 0; l < 8; l++)
        any |= mask[l];
    return any != 0;
}

TOILE_INLINE v8 v8_max(v8 a, v8 b) {
    return v8_select(a > b, a, b);
}

TOILE_INLINE v8 v8_min(v8 a, v8 b) {
    return v8_select(a < b, a, b);
}

TOILE_INLINE v8 v8_sqrt(v8 a) {
    for (int l = 0; l < 8; l++)
        a[l] = sqrt(a[l]);
    return a;
}

TOILE_INLINE v8 v8_abs(v8 a) {
    return (v8)((m8)a & INT64_C(0x7fffffffffffffff));
}

TOILE_INLINE v8 v8_dot(v8x3 a, v8x3 b) {
    return a.x * b.x + a.y * b.y + a.z * b.z;
}

TOILE_INLINE v8x3 v8_cross(v8x3 a, v8x3 b) {
    return (v8x3){a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

TOILE_INLINE v8x3 v8_sub(v8x3 a, v8x3 b) {
    return (v8x3){a.x - b.x, a.y - b.y, a.z - b.z};
}

TOILE_INLINE v8x3 v8_scale(v8 s, v8x3 a) {
    return (v8x3){s * a.x, s * a.y, s * a.z};
}

TOILE_INLINE v8x3 v8_add(v8x3 a, v8x3 b) {
    return (v8x3){a.x + b.x, a.y + b.y, a.z + b.z};
}

/* s a + t b */
TOILE_INLINE v8x3 v8_blend(v8 s, v8x3 a, v8 t, v8x3 b) {
    return (v8x3){s * a.x + t * b.x, s * a.y + t * b.y, s * a.z + t * b.z};
}

/* Four rows of four become columns. */
TOILE_INLINE void v4_transpose(v4 r[4]) {
    v4 a = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6), b = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
    v4 c = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6), d = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

TOILE_INLINE v8 v8_join(v4 low, v4 high) {
    return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* Vectors of eight particles. */
TOILE_INLINE v8x3 v8_gather(const double *x, const int *index) {
    v4 r[2][4];
    for (int half = 0; half < 2; half++) {
        for (int l = 0; l < 4; l++)
            r[half][l] = *(const v4 *)(x + 4 * (size_t)index[4 * half + l]);
        v4_transpose(r[half]);
    }
    return (v8x3){v8_join(r[0][0], r[1][0]), v8_join(r[0][1], r[1][1]), v8_join(r[0][2], r[1][2])};
}

/* Four numbers of eight records that lie side by side, the first at `record`. */
TOILE_INLINE void v8_scatter4(double *record, int stride, const v8 a[4]) {
    v4 low[4], high[4];
    for (int k = 0; k < 4; k++) {
        low[k] = __builtin_shufflevector(a[k], a[k], 0, 1, 2, 3);
        high[k] = __builtin_shufflevector(a[k], a[k], 4, 5, 6, 7);
    }
    v4_transpose(low);
    v4_transpose(high);
    for (int l = 0; l < 4; l++) {
        *(v4u *)(record + (size_t)(l * stride)) = (v4u)low[l];
        *(v4u *)(record + (size_t)((l + 4) * stride)) = (v4u)high[l];
    }
}

/* toile_atan2 of angle.h, lane by lane the same operations in the same order. */
TOILE_INLINE v8 v8_atan2(v8 y, v8 x) {
    v8 ax = v8_abs(x), ay = v8_abs(y);
    m8 steep = ay > ax;
    v8 big = v8_select(ax > ay, ax, ay), small = v8_select(ax > ay, ay, ax);
    v8 t = small / v8_max(big, v8_set(1e-300));
    m8 high = t > 0.66;
    t = v8_select(high, (t - 1) / (t + 1), t);
    v8 z = t * t;
    v8 p = (((TOILE_ATAN_P0 * z + TOILE_ATAN_P1) * z + TOILE_ATAN_P2) * z + TOILE_ATAN_P3) * z + TOILE_ATAN_P4;
    v8 q = ((((z + TOILE_ATAN_Q0) * z + TOILE_ATAN_Q1) * z + TOILE_ATAN_Q2) * z + TOILE_ATAN_Q3) * z + TOILE_ATAN_Q4;
    v8 a = t + t * (z * p / q) + v8_select(high, v8_set(TOILE_PI / 4), v8_set(0));
    a = v8_select(steep, TOILE_PI / 2 - a, a);
    a = v8_select(x < 0, TOILE_PI - a, a);
    return v8_select(y < 0, -a, a);
}

/* ---- one particle ---- */

TOILE_INLINE v4 v4_load(const double *p) {
    return *(const v4 *)p;
}

TOILE_INLINE void v4_store(double *p, v4 a) {
    *(v4 *)p = a;
}

TOILE_INLINE v4 v4_set(double a) {
    return (v4){a, a, a, a};
}

/* The fourth becomes 0. */
TOILE_INLINE v4 v4_clean(v4 a) {
    const m4 mask = {-1, -1, -1, 0};
    return (v4)((m4)a & mask);
}

/* Three doubles from anywhere; the fourth, whatever it is, becomes 0. Reads 8 bytes beyond. */
TOILE_INLINE v4 v4_row(const double *p) {
    return v4_clean((v4) * (const v4u *)p);
}

TOILE_INLINE void v4_store_loose(double *p, v4 a) {
    *(v4u *)p = (v4u)a;
}

TOILE_INLINE double v4_sum(v4 a) {
    return (a[0] + a[1]) + (a[2] + a[3]);
}

/* v4_sum of three, in lanes 0 to 2: the same bits. */
TOILE_INLINE v4 v4_sums(v4 a, v4 b, v4 c) {
    v4 none = v4_set(0);
    v4 ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    v4 cn = __builtin_shufflevector(c, none, 0, 4, 2, 6) + __builtin_shufflevector(c, none, 1, 5, 3, 7);
    return __builtin_shufflevector(ab, cn, 0, 1, 4, 5) + __builtin_shufflevector(ab, cn, 2, 3, 6, 7);
}

/* B x of a symmetric block in three rows of four: rows are columns. */
TOILE_INLINE v4 block_times(const double *B, v4 x) {
    return v4_load(B) * v4_set(x[0]) + v4_load(B + 4) * v4_set(x[1]) + v4_load(B + 8) * v4_set(x[2]);
}

#endif
