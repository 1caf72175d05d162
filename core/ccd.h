/* When do two moving primitives first come within a distance of each other? Vertex against triangle and edge
 * against edge, every vertex on a straight line at constant speed (ccd.c says how, and why the answer is
 * never late). */
#ifndef TOILE_CCD_H
#define TOILE_CCD_H

#include <stdbool.h>

typedef enum toile_ccd_kind {
    TOILE_CCD_VF, /* points: vertex, then the triangle's three */
    TOILE_CCD_EE  /* points: two of the first edge, two of the second */
} toile_ccd_kind;

/* Nearest points: weights of the four points, signed so that the vector from the second primitive (the
 * triangle, the second edge) to the first is their weighted sum. Degenerate primitives are the point sets
 * they are. */
typedef struct toile_near {
    double distance;  /* m */
    double vector[3]; /* from the second to the first, m */
    double weight[4];
} toile_near;
void toile_nearest(toile_ccd_kind kind, const double x[4][3], toile_near *near);

/* Do they come within `separation` (m, >= 0) between begin (t = 0) and end (t = 1)? True whenever they do;
 * then *time is not later than the first such moment. True also, at a moment not later, if they come within
 * separation + tolerance but not quite within separation. `tolerance` (m) must be well above rounding: 1e-12
 * of the primitives' extent or more. */
bool toile_ccd(toile_ccd_kind kind, const double begin[4][3], const double end[4][3], double separation,
               double tolerance, double *time);

#endif
