/* Triangles to a shaded picture, in plain C: what a bake looks like, on machines without a screen or Blender.
 * Z is up. */
#ifndef TOILE_PICTURE_H
#define TOILE_PICTURE_H

#include "image.h"

#include <stdbool.h>

typedef struct toile_picture toile_picture;

typedef struct toile_camera {
    double eye[3], right[3], up[3], forward[3];
    double focal; /* half pictures per unit at distance 1 */
} toile_camera;

toile_status toile_picture_create(toile_memory *memory, int size, toile_picture **picture,
                                  toile_error *error);
void toile_picture_free(toile_picture *picture);

/* Takes everything out again. */
void toile_picture_clear(toile_picture *picture);
/* Copies a mesh: m, (vertex_count x 3). `colour` is linear, 0 to 1. Triangles with a number that is not
 * finite are left out. */
toile_status toile_picture_add(toile_picture *picture, int vertex_count, const double *positions,
                               int triangle_count, const int *triangles, const double colour[3],
                               toile_error *error);

/* Cameras look from the front, a little from the right and from above. A point seen along their axes (to the
 * right, up, away): what boxes to fit are made of. */
void toile_camera_see(const double point[3], double seen[3]);
/* As near as a box, measured along these axes, still fits. */
toile_camera toile_camera_to_fit(const double low[3], const double high[3]);

toile_status toile_picture_draw(toile_picture *picture, const toile_camera *camera, toile_image *image,
                                toile_error *error);

#endif
