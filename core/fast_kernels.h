/* Kernels of the fast solver of one instruction set (TOILE_ISA). */
#ifndef TOILE_FAST_KERNELS_H
#define TOILE_FAST_KERNELS_H

#include "fast.h"
#include "fast_lanes.h"
#include "kernels_table.h"

/* fast_product.c */
void TOILE_KERNEL(toile_fast_multiply)(const toile_fast *f, const toile_pattern *p, int chunk, const float *x, float *y);
void TOILE_KERNEL(toile_fast_multiply_spill)(const toile_fast *f, const toile_pattern *p, int chunk, float *y);
void TOILE_KERNEL(toile_fast_multiply_springs)(const toile_fast *f, const toile_matrix *a, const double *record, int chunk,
                                               const double *x, double *y);
/* fast_factor.c; forward gives the stream's part of q' P^-1 q */
bool TOILE_KERNEL(toile_fast_factor)(const toile_fast *f, const toile_constraints *constraints, double shift, int stream);
double TOILE_KERNEL(toile_fast_forward)(const toile_fast *f, int stream, float *q);
void TOILE_KERNEL(toile_fast_backward)(const toile_fast *f, int stream, float *q);
/* fast_patches.c; in this order, each after all threads are done with the one before: patches [from, to) of C; its factor; patches of
 * P' r; C^-1 of that, which gives r' P C^-1 P' r. The second and the last are for one thread */
void TOILE_KERNEL(toile_coarse_gather)(toile_fast *f, const toile_pattern *p, const toile_constraints *constraints, int from, int to);
void TOILE_KERNEL(toile_coarse_factor)(toile_coarse *c);
void TOILE_KERNEL(toile_coarse_restrict)(const toile_coarse *c, const float *r, int from, int to);
double TOILE_KERNEL(toile_coarse_solve)(const toile_coarse *c);
/* fast_guess.c: from dv in x the first guess, its residual and energy */
void TOILE_KERNEL(toile_fast_guess)(toile_fast_job *job);
/* solve_fast.c */
void TOILE_KERNEL(toile_fast_solve)(toile_fast_job *job);

#endif
