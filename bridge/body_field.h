/* Distance to a body, sampled on a grid: asked very often while panels are placed around it. */
#ifndef TOILE_BODY_FIELD_H
#define TOILE_BODY_FIELD_H

#include "error.h"
#include "memory.h"

typedef struct toile_body_field {
    double low[3], step;            /* m */
    int count[3];
    float *distance;                /* m, negative inside, x fastest */
} toile_body_field;

/* Of a closed mesh, counter-clockwise seen from outside; `step` and what is left around it in metres. */
toile_status toile_body_field_make(toile_memory *memory, int vertex_count, const double *positions, int triangle_count,
                                   const int *triangles, double step, double around, toile_body_field *field,
                                   toile_error *error);
void toile_body_field_free(toile_memory *memory, toile_body_field *field);

/* A copy, to be freed like the first. */
toile_status toile_body_field_copy(toile_memory *memory, const toile_body_field *field, toile_body_field *copy, toile_error *error);

/* In a copy, what lies over the body counts as body, with all that is between the two: (triangle_count x 3) corners among
 * `positions`. Distances from it are right up to twice the step. */
void toile_body_field_cover(const toile_body_field *bare, toile_body_field *copy, const double *positions, int triangle_count,
                            const int *triangles);

/* Interpolated; outside of the grid a bound from below. */
double toile_body_distance(const toile_body_field *field, const double p[3]);

#endif
