/* Meshes of a scene straight from an Alembic archive, read when they are asked for: one frame at a time,
 * nothing is kept.
 *
 * All meshes below the chosen object are taken together. Transforms above them are applied, also animated
 * ones; between samples positions and matrices go in straight lines, before the first and after the last they
 * stand still. Subdivision meshes are taken as their cage. Polygons become triangles and quads. */
#ifndef TOILE_SCENE_ABC_H
#define TOILE_SCENE_ABC_H

#include "obj.h"

typedef struct toile_abc toile_abc;

/* `object` is a path in the archive, of a mesh or of what is above meshes; null for the whole archive. */
toile_status toile_abc_open(toile_memory *memory, const char *path, const char *object, bool y_up,
                            toile_abc **abc, toile_error *error);
void toile_abc_close(toile_abc *abc);

bool toile_abc_moves(const toile_abc *abc);
bool toile_abc_changes(const toile_abc *abc); /* its faces, in the course of time */
/* Of size and end of the file, where an archive keeps the hashes of all it holds. */
uint64_t toile_abc_hash(const toile_abc *abc);

/* Everything at a time, s. Panels are the face sets (those that exclude each other, if there are), else the
 * meshes. */
toile_status toile_abc_mesh(toile_abc *abc, double time, toile_obj *obj, toile_error *error);
/* Only positions, (vertex_count x 3). */
toile_status toile_abc_positions(toile_abc *abc, double time, int vertex_count, double *positions,
                                 toile_error *error);

/* For faces that change: no more triangles than this at any time, and all triangles at a time, each with
 * corners of its own, the last one repeated up to `count`; (count x 9). */
toile_status toile_abc_most_triangles(toile_abc *abc, int *count, toile_error *error);
toile_status toile_abc_triangles(toile_abc *abc, double time, int count, double *positions,
                                 toile_error *error);

#endif
