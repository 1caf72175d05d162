/* atan2 of our own: the same bits on every machine (libm's differ between versions and processors), and written so
 * that eight lanes can run it. Range reduction and rational approximation as in Cephes atan (Moshier): error below
 * 2e-16 relative. lanes.h has the same for eight lanes; a test compares them. */
#ifndef TOILE_ANGLE_H
#define TOILE_ANGLE_H

#include <math.h>

#define TOILE_ATAN_P0 -8.750608600031904122785e-1
#define TOILE_ATAN_P1 -1.615753718733365076637e1
#define TOILE_ATAN_P2 -7.500855792314704667340e1
#define TOILE_ATAN_P3 -1.228866684490136173410e2
#define TOILE_ATAN_P4 -6.485021904942025371773e1
#define TOILE_ATAN_Q0 2.485846490142306297962e1
#define TOILE_ATAN_Q1 1.650270098316988542046e2
#define TOILE_ATAN_Q2 4.328810604912902668951e2
#define TOILE_ATAN_Q3 4.853903996359136964868e2
#define TOILE_ATAN_Q4 1.945506571482613964425e2
#define TOILE_PI 3.14159265358979323846

static inline double toile_atan2(double y, double x) {
    double ax = fabs(x), ay = fabs(y);
    double big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    double t = small / (big > 1e-300 ? big : 1e-300); /* in [0, 1] */
    double shift = 0;
    if (t > 0.66) {
        t = (t - 1) / (t + 1);
        shift = TOILE_PI / 4;
    }
    double z = t * t;
    double p = (((TOILE_ATAN_P0 * z + TOILE_ATAN_P1) * z + TOILE_ATAN_P2) * z + TOILE_ATAN_P3) * z + TOILE_ATAN_P4;
    double q = ((((z + TOILE_ATAN_Q0) * z + TOILE_ATAN_Q1) * z + TOILE_ATAN_Q2) * z + TOILE_ATAN_Q3) * z + TOILE_ATAN_Q4;
    double a = t + t * (z * p / q) + shift;
    if (ay > ax)
        a = TOILE_PI / 2 - a;
    if (x < 0)
        a = TOILE_PI - a;
    return y < 0 ? -a : a;
}

#endif
