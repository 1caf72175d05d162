/* Vectors of three doubles, for code that is not hot. */
#ifndef TOILE_VEC3_H
#define TOILE_VEC3_H

static inline double dot(const double *a, const double *b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static inline void sub(const double *a, const double *b, double *r) {
    for (int k = 0; k < 3; k++)
        r[k] = a[k] - b[k];
}

static inline void cross(const double *a, const double *b, double *r) {
    r[0] = a[1] * b[2] - a[2] * b[1];
    r[1] = a[2] * b[0] - a[0] * b[2];
    r[2] = a[0] * b[1] - a[1] * b[0];
}

#endif
