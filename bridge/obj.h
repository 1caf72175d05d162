/* Mesh files: Wavefront OBJ, read whole, every number and index checked.
 *
 * Understood: v, vt, f (triangles and quads, negative indices), l (edges without faces), g, o and usemtl as
 * names of panels, line continuation, any line length and line end. Known and skipped: vn, s, p, mtllib and the
 * display attributes. Everything else is refused with the line it is on. */
#ifndef TOILE_OBJ_H
#define TOILE_OBJ_H

#include "error.h"
#include "memory.h"

#include <stdbool.h>

typedef struct toile_obj {
    char *path;
    uint64_t hash;                  /* of the file's bytes */
    int vertex_count;
    double *positions;              /* as in the file, (vertex_count x 3) */
    int *vertex_lines;              /* where each is in the file, (vertex_count) */
    int uv_count;
    double *uvs;                    /* as in the file, (uv_count x 2) */
    int face_count, corner_count;
    int *face_sizes;                /* 3 or 4, (face_count) */
    int *face_lines;                /* (face_count) */
    int *face_panels;               /* (face_count) */
    int *corner_vertices;           /* from 0, (corner_count) */
    int *corner_uvs;                /* from 0, -1 for none, (corner_count) */
    int line_count;                 /* edges without faces */
    int *lines;                     /* their vertices, (line_count x 2) */
    int panel_count;                /* at least 1; those that have faces */
    char **panel_names;             /* unique, (panel_count) */
} toile_obj;

/* A whole file with a zero after its last byte. Only regular files, and no longer than `most` bytes. */
toile_status toile_read_file(toile_memory *memory, const char *path, size_t most, char **text, size_t *size,
                             toile_error *error);

/* Panels are the groups (g), without groups the objects (o), without objects the materials (usemtl); without
 * any there is one panel, "panel". On failure there is nothing to free. */
toile_status toile_obj_read(toile_memory *memory, const char *path, toile_obj *obj, toile_error *error);
void toile_obj_free(toile_memory *memory, toile_obj *obj);

/* Panels are then the islands of the file's UV map, "panel_1", "panel_2", ... in the order of their first faces. Refuses faces without
 * (u, v); the panels are then as they were. */
toile_status toile_obj_panels_by_uv(toile_memory *memory, toile_obj *obj, toile_error *error);

/* A surface that can be simulated or collided with: no face without area, no edge with more than two faces,
 * faces that share an edge turned the same way, and, where `all_used`, every vertex in a face. `scale` is
 * what positions are multiplied by. */
toile_status toile_obj_check(toile_memory *memory, const toile_obj *obj, double scale, bool all_used,
                             toile_error *error);
/* Of that, only that no vertex is too far out. */
toile_status toile_obj_check_positions(const toile_obj *obj, double scale, toile_error *error);

/* Material coordinates in metres, (corner_count x 2): the file's vt, or the position of each panel's corners
 * in that panel's plane, with u along the file's x as far as the plane allows. Refuses faces without area in
 * them. */
toile_status toile_obj_uv_from_file(const toile_obj *obj, double scale, double *corner_uv,
                                    toile_error *error);
toile_status toile_obj_uv_flat(toile_memory *memory, const toile_obj *obj, double scale, double *corner_uv,
                               toile_error *error);

/* Cuts every face into four at the middles of its edges, `times` (0 to 4) times over. *corner_uv, made with
 * `memory` and filled by one of the above, is exchanged for that of the finer mesh; the file's own vt are
 * gone from it. Vertices of the file keep their numbers. Refuses quads that are not convex in the material.
 */
enum { TOILE_OBJ_FACES_MOST = 30000000 }; /* of a finer mesh; a garment has at most about as many */
toile_status toile_obj_subdivide(toile_memory *memory, toile_obj *obj, double **corner_uv, int times,
                                 toile_error *error);

/* Area of all faces with these coordinates of each corner (of each vertex with `by_vertex`), dimension 2
 * or 3. */
double toile_obj_area(const toile_obj *obj, const double *coordinates, int dimension, bool by_vertex);

#endif
