/* The cheap look at cloth against cloth: particles against particles in voxels (Boxerman 2003, section 3.4.1). */
#ifndef TOILE_VOXEL_H
#define TOILE_VOXEL_H

#include "skin.h"

typedef struct toile_voxels {
    int table_size;       /* a power of two */
    int *first, *next;    /* chains of particles: of each place of the table, (table_size); after each particle, (n); -1: end */
    int64_t *cell;        /* of each particle, (n x 3) */
} toile_voxels;

bool toile_voxels_make(toile_memory *memory, int particles, toile_voxels *voxels);
void toile_voxels_free(toile_memory *memory, toile_voxels *voxels);

/* Particles within `reach` (m) of each other that no triangle and no seam joins, as pairs of a vertex and a triangle that is
 * one point; sorted. False if memory is short. */
bool toile_voxels_search(toile_voxels *voxels, const toile_skin *skin, const double *x, double reach, toile_pairs *pairs);

#endif
