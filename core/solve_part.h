/* One part of a system that has fallen apart, as its kernel gets it. */
#ifndef TOILE_SOLVE_PART_H
#define TOILE_SOLVE_PART_H

#include "solve.h"

typedef struct toile_part {
    const toile_system *system; /* its x comes in as S x0 and goes out as S x, in the part's rows */
    int count;
    const int *member;          /* particles, ascending, (count) */
    /* of all particles: */
    const int *constraint_of;   /* or -1, (n) */
    const int *place;           /* in its part, (n) */
    const int *link_begin;      /* first link of each, (n + 1) */
    const int *link;            /* off-diagonal blocks within parts that are not zero */
    const double *inverse;      /* S P^-1 S, (n x 12) */
    const double *right;        /* S (b - A (I - S) z), (n x 4) like the rest */
    const double *outer;        /* A (I - S) z */
    double *r, *p, *s, *q;      /* scratch */
} toile_part;

#endif
