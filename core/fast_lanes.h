/* Four floats for one particle, eight for two connections; see lanes.h. */
#ifndef TOILE_FAST_LANES_H
#define TOILE_FAST_LANES_H

#include "lanes.h"

typedef float f4 __attribute__((vector_size(16)));
typedef float f4u __attribute__((vector_size(16), aligned(4)));
typedef int i4 __attribute__((vector_size(16)));
typedef float f8 __attribute__((vector_size(32)));
typedef float f8u __attribute__((vector_size(32), aligned(16)));
typedef int i8 __attribute__((vector_size(32)));

TOILE_INLINE f4 f4_set(float a) {
    return (f4){a, a, a, a};
}

TOILE_INLINE f4 f4_load(const float *p) {
    return *(const f4 *)p;
}

TOILE_INLINE void f4_store(float *p, f4 a) {
    *(f4 *)p = a;
}

/* Three floats and whatever follows them. */
TOILE_INLINE f4 f4_loose(const float *p) {
    return (f4) * (const f4u *)p;
}

TOILE_INLINE void f4_store_loose(float *p, f4 a) {
    *(f4u *)p = (f4u)a;
}

/* Rounded. */
TOILE_INLINE f4 f4_of(v4 a) {
    return __builtin_convertvector(a, f4);
}

/* The fourth becomes 0. */
TOILE_INLINE f4 f4_clean(f4 a) {
    const i4 mask = {-1, -1, -1, 0};
    return (f4)((i4)a & mask);
}

TOILE_INLINE float f4_sum(f4 a) {
    return (a[0] + a[1]) + (a[2] + a[3]);
}

/* The sums of three, side by side: a row of a block times a vector each. */
TOILE_INLINE f4 f4_sums(f4 a, f4 b, f4 c) {
    f4 zero = f4_set(0);
    f4 ab = __builtin_shufflevector(a, b, 0, 2, 4, 6) + __builtin_shufflevector(a, b, 1, 3, 5, 7);
    f4 c0 = __builtin_shufflevector(c, zero, 0, 2, 4, 6) + __builtin_shufflevector(c, zero, 1, 3, 5, 7);
    return __builtin_shufflevector(ab, c0, 0, 2, 4, 6) + __builtin_shufflevector(ab, c0, 1, 3, 5, 7);
}

/* B' x for the rows of B: the sum of rows times the numbers of x. */
TOILE_INLINE f4 f4_rows(f4 r0, f4 r1, f4 r2, f4 x) {
    return r0 * f4_set(x[0]) + r1 * f4_set(x[1]) + r2 * f4_set(x[2]);
}

/* Two particles that lie side by side. */
TOILE_INLINE f8 f8_loose(const float *p) {
    return (f8) * (const f8u *)p;
}

TOILE_INLINE void f8_store(float *p, f8 a) {
    *(f8u *)p = (f8u)a;
}

/* The fourth and the eighth become 0. */
TOILE_INLINE f8 f8_clean(f8 a) {
    const i8 mask = {-1, -1, -1, 0, -1, -1, -1, 0};
    return (f8)((i8)a & mask);
}

TOILE_INLINE f8 f8_join(f4 a, f4 b) {
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
}

/* The sum of the two halves. */
TOILE_INLINE f4 f8_fold(f8 a) {
    return __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
}

#endif
