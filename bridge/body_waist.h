/* Where a standing body is narrowest between hips and chest, and how high trousers go. */
#ifndef TOILE_BODY_WAIST_H
#define TOILE_BODY_WAIST_H

#include "error.h"
#include "memory.h"

/* Height of the waist, m; y is up. The girth of a slice is that of a tape around it, arms left out. */
toile_status toile_body_waist(toile_memory *memory, int vertex_count, const double *positions, int triangle_count,
                              const int *triangles, double *height, double *girth, toile_error *error);

/* Lowers `height`, m, until a tape of `rise` goes from front to back through the crotch, both ends at that
 * height. */
toile_status toile_body_hang(toile_memory *memory, int vertex_count, const double *positions,
                             int triangle_count, const int *triangles, double rise, double *height,
                             toile_error *error);

#endif
