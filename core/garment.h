/* A garment as it was given, checked, copied and cut into triangles. Constant afterwards. */
#ifndef TOILE_GARMENT_H
#define TOILE_GARMENT_H

#include "error.h"
#include "memory.h"
#include "seam.h"
#include "settings.h"
#include "shaping.h"

#include <stdbool.h>

typedef struct toile_panel {
    char *name;
    int fabric;
    double scale_u, scale_v; /* rest scales b_u, b_v (Baraff-Witkin eq. 10) */
} toile_panel;

typedef struct toile_garment {
    char *name;
    int vertex_count, triangle_count, panel_count, quad_count;
    double *positions;    /* start, m, (vertex_count x 3) */
    int *triangles;       /* (triangle_count x 3) */
    int *triangle_panels; /* (triangle_count) */
    double *corner_uv;    /* material coordinates, m, (triangle_count x 3 x 2) */
    int *quads;           /* faces that were given with four corners, (quad_count x 4); triangles 2q, 2q+1 come of them */
    toile_panel *panels;
    int nu, nv;           /* particle grid, 0 if it is not one */
    bool keep_start_angles;
    int layer;            /* a higher one lies over a lower one */
    unsigned char *exempt; /* from contact: bits of contact_rules.h, (vertex_count), or null: none */
    int seam_count, stitch_count;
    toile_seam *seams;
    toile_stitch *stitches;
    double *stitch_lengths; /* of seam that each stitch stands for, m, (stitch_count) */
    toile_shaping shaping;
} toile_garment;

/* Input of toile_garment_make; the fields are those of toile_mesh in toile.h. */
typedef struct toile_garment_input {
    const char *name;
    int vertex_count;
    const double *positions;
    int face_count;
    const int *face_sizes, *face_vertices;
    const double *corner_uv;
    int panel_count;
    const char *const *panel_names;
    const int *panel_fabrics;
    const double *panel_scales;
    const int *face_panels;
    bool keep_start_angles;
    int nu, nv;                    /* grid, or 0 */
    const unsigned char *diagonals; /* per face: 1 cuts a quad from corner 1 to 3, 0 from 0 to 2; null: shorter one */
    int seam_count, stitch_count;
    const toile_seam *seams;
    const toile_stitch *stitches;
} toile_garment_input;

/* Refuses what cannot be simulated: empty meshes, indices out of range, numbers that are not finite, triangles
 * without area, edges of more than two faces or with faces that disagree, vertices without a face, seams that would
 * sew two corners of a triangle together. */
toile_status toile_garment_make(toile_memory *memory, const toile_garment_input *input, int fabric_count,
                                toile_garment *garment, toile_error *error);
/* One more seam: pairs of vertices, (count x 2). */
toile_status toile_garment_sew(toile_memory *memory, toile_garment *garment, const toile_seam *seam, const int *pairs,
                               int count, toile_error *error);
void toile_garment_free(toile_memory *memory, toile_garment *garment);

#endif
