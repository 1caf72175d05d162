/* The curves that panels are cut along: lines, quadratic and cubic Beziers, arcs of circles, lines through many points;
 * measured and divided by arc length. */
#ifndef TOILE_PATTERN_CURVE_H
#define TOILE_PATTERN_CURVE_H

#include <stdbool.h>

enum { TOILE_CURVE_PARTS = 64 };

typedef struct toile_curve {
    double from[2], to[2];          /* m */
    int control_count;              /* Bezier: 0 line, 1 quadratic, 2 cubic */
    double control[2][2];
    bool arc;                       /* of a circle instead */
    double radius;                  /* m; at least half the distance of the ends, else that is taken */
    bool large;                     /* the longer way around */
    bool clockwise;
    int point_count;                /* through these points instead, both ends among them; 0: not */
    const double (*points)[3];      /* x, y, length up to there, m; see toile_curve_through */
} toile_curve;

typedef struct toile_curve_measure {
    double length;                  /* m */
    double turning;                 /* sum of all changes of direction, radians */
    double upto[TOILE_CURVE_PARTS + 1]; /* length at equal steps of the parameter */
} toile_curve_measure;

/* The point at a parameter from 0 to 1. */
void toile_curve_point(const toile_curve *curve, double t, double point[2]);
void toile_curve_measure_of(const toile_curve *curve, toile_curve_measure *measure);
/* Fills in the lengths of the points that the curve goes through. */
void toile_curve_through(toile_curve *curve, double (*points)[3], int count);
/* The parameter at a part of the length, from 0 to 1. */
double toile_curve_at(const toile_curve *curve, const toile_curve_measure *measure, double part);

#endif
