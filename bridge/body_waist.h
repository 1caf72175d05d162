/* Where a standing body is narrowest between hips and chest. */
#ifndef TOILE_BODY_WAIST_H
#define TOILE_BODY_WAIST_H

#include "error.h"
#include "memory.h"

/* Height of the waist, m; y is up. The girth of a slice is that of a tape around it, arms left out. */
toile_status toile_body_waist(toile_memory *memory, int vertex_count, const double *positions, int triangle_count,
                              const int *triangles, double *height, double *girth, toile_error *error);

#endif
