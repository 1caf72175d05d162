/* A scene file (JSON) becomes a world. Strict: whatever is not understood is refused with file, line, key
 * path, the value found and what is allowed. `toile schema` prints the schema it is checked against. */
#ifndef TOILE_SCENE_H
#define TOILE_SCENE_H

#include "error.h"
#include "memory.h"
#include "toile.h"

typedef struct toile_scene toile_scene;

/* Reads the file, applies `sets`, checks everything, and builds the world (toile_build included). Hooks as in
 * toile_create. Either everything is made or nothing.
 *
 * A set is "path=value". The path's elements are separated by dots; an element of a list is its index or, for
 * objects with a name, that name: "garments.sheet.grid.resolution=81",
 * "colliders.ball.motion.keys.1.origin=[0, 1, 0]". The id of a setting alone is short for "settings.ID". The
 * value is JSON or, if it is not, a text. Objects on the way are made if they are missing, and the result is
 * checked like a file. */
toile_status toile_scene_load(const toile_hooks *hooks, const char *path, const char *const *sets,
                              int set_count, toile_scene **scene, toile_error *error);
/* The same for a scene that is in memory: `length` bytes of text, which need not end with a zero. `path`
 * stands for the file: messages name it, and files that the scene names are seen from its folder. It need not
 * exist. */
toile_status toile_scene_load_text(const toile_hooks *hooks, const char *text, size_t length,
                                   const char *path, const char *const *sets, int set_count,
                                   toile_scene **scene, toile_error *error);
void toile_scene_free(toile_scene *scene);

toile_world *toile_scene_world(const toile_scene *scene);
const char *toile_scene_name(const toile_scene *scene);
double toile_scene_fps(const toile_scene *scene);
int toile_scene_first_frame(const toile_scene *scene);
int toile_scene_last_frame(const toile_scene *scene);
/* The scene after --set, with every setting and fabric property written out: what the cache keeps. */
const char *toile_scene_resolved_json(const toile_scene *scene);
/* Hash of all input that decides the result: resolved scene less frame range, name and threads, and the bytes
 * of every mesh file it names (files of a sequence that are read later are hashed by name and size). */
uint64_t toile_scene_fingerprint(const toile_scene *scene);

/* Tells the world where colliders and pins are at the end of frame `frame` (reads the sequence's file of that
 * frame, interpolates keyframes, switches pins). Call with the next frame before each toile_advance. To start
 * at frame N (first frame or resume): call with N, then toile_place_inputs(world). */
toile_status toile_scene_prepare(toile_scene *scene, int frame, toile_error *error);

/* Settles the garments with everything else where it is at the first frame, until they are at rest and sewn or "settle" has
 * had its frames. `go_on` hears of every one of them and may stop it. For the start of a bake, after toile_place_inputs. */
int toile_scene_settle_frames(const toile_scene *scene); /* at most; 0: none */
toile_status toile_scene_settle(toile_scene *scene, bool (*go_on)(void *user, int frame, int most, const toile_statistics *now),
                                void *user, toile_error *error);

/* The first garment as it starts, as an OBJ file: groups are panels, vt metres of the cloth, l what is sewn, p what pins hold. */
toile_status toile_scene_write_obj(toile_scene *scene, const char *path, toile_error *error);

/* Every collider as a triangle mesh at the pose last prepared: for verify, pictures, viewers. Primitives are
 * tessellated, planes are cut to a square of 2 m. The arrays are the scene's and stay until the next prepare.
 * Colliders are numbered from 0 to their count less 1. */
int toile_scene_collider_count(const toile_scene *scene);
const char *toile_scene_collider_name(const toile_scene *scene, int collider);
toile_shape toile_scene_collider_shape(const toile_scene *scene, int collider);
toile_side toile_scene_collider_side(const toile_scene *scene, int collider);
toile_status toile_scene_collider_mesh(toile_scene *scene, int collider, int *vertex_count,
                                       const double **positions, int *triangle_count, const int **triangles,
                                       toile_error *error);

/* JSON Schema (draft 2020-12) of a scene file as text, allocated with malloc for the caller to free. Null
 * when out of memory. */
char *toile_scene_schema(void);

#endif
