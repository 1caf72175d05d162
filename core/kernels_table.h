/* Names of the kernels of one instruction set (TOILE_ISA), for the sources that are compiled once for each. */
#ifndef TOILE_KERNELS_TABLE_H
#define TOILE_KERNELS_TABLE_H

#include "kernels.h"
#include "lanes.h"

typedef void toile_element_kernel(const toile_evaluation *at, int begin, int end, double *record);
typedef void toile_stretch_kernel(const toile_model *m, const double *x, int begin, int end, const double *before,
                                  double *now, double *largest_change, double *largest);
toile_element_kernel TOILE_KERNEL(toile_triangles), TOILE_KERNEL(toile_springs);
void TOILE_KERNEL(toile_hinges)(const toile_evaluation *at, int begin, int end, double *bends, double *record);
toile_stretch_kernel TOILE_KERNEL(toile_stretch);
void TOILE_KERNEL(toile_moments)(const toile_model *m, int pass, int begin, int end, double *bends, double *record);
void TOILE_KERNEL(toile_assemble)(const toile_assembly *a, int chunk, toile_matrix *matrix, double *b);
void TOILE_KERNEL(toile_convert_springs)(const double *record, int begin, int end, float *spring);
void TOILE_KERNEL(toile_gather)(const toile_assembly *a, int chunk, double *b);
void TOILE_KERNEL(toile_multiply)(const toile_matrix *a, int chunk, const double *x, double *y);
void TOILE_KERNEL(toile_multiply_spill)(const toile_matrix *a, int chunk, double *y);
void TOILE_KERNEL(toile_multiply_row)(const toile_assembly *a, const toile_matrix *matrix, int i, const double *x, double *y);
void TOILE_KERNEL(toile_mpcg)(toile_solve *solve);
int TOILE_KERNEL(toile_part)(const struct toile_part *part);

#endif
