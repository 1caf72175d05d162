/* What a tailor does to a garment besides cutting and sewing it: maps that vary its fabric from place to place, creases,
 * elastic bands. Added to a garment before the model is built; values of a map may change between frames. */
#ifndef TOILE_SHAPING_H
#define TOILE_SHAPING_H

#include "error.h"
#include "memory.h"

struct toile_garment;

/* A factor for each vertex on a property of the fabric, or on the rest scales b_u, b_v. A triangle takes the mean of its
 * corners. */
typedef struct toile_map {
    const struct toile_field *field; /* of the fabric; null: a rest scale */
    int axis;                        /* without field: 0 for b_u, 1 for b_v */
    double *factors;                 /* (vertex_count) */
} toile_map;

/* An edge of the mesh that is bent at rest. */
typedef struct toile_crease {
    int a, b;
    double angle; /* rad, positive folds the fronts together */
} toile_crease;

/* A piece of elastic along an edge of the mesh. */
typedef struct toile_elastic {
    int a, b;
    double stiffness; /* N per unit of strain */
    double scale;     /* rest length relative to the edge's in the material */
} toile_elastic;

typedef struct toile_shaping {
    toile_map *maps;
    toile_crease *creases;
    toile_elastic *elastics;
    int map_count, crease_count, elastic_count;
} toile_shaping;

/* Property: an id of the fabric table, "scale_u" or "scale_v". Values are copied. */
toile_status toile_shaping_map(toile_memory *memory, struct toile_garment *garment, const char *property,
                               const double *factors, int *map, toile_error *error);
toile_status toile_shaping_change(struct toile_garment *garment, int map, const double *factors, toile_error *error);
/* Edges as pairs of vertices, (count x 2); every pair must be an edge of the mesh. */
toile_status toile_shaping_crease(toile_memory *memory, struct toile_garment *garment, const int *edges, int count,
                                  double angle, toile_error *error);
toile_status toile_shaping_elastic(toile_memory *memory, struct toile_garment *garment, const int *edges, int count,
                                   double stiffness, double scale, toile_error *error);
void toile_shaping_free(toile_memory *memory, toile_shaping *shaping);

#endif
