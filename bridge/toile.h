/* Toile: garments made of seamed panels, simulated against moving bodies.
 *
 * Conventions
 *   Units      SI everywhere: metres, kilograms, seconds, newtons. Z is up only because gravity says so.
 *   Order      output arrays and handles come last.
 *   Status     every call that can fail returns toile_status: 0 fine, > 0 usable with a warning, < 0 failed. After a
 *              failure toile_message() says what, where and what to do. A failed call leaves the world as it was.
 *   Ownership  whatever you pass in is copied; whatever create gives, destroy takes. Text returned by the library
 *              lives until the next call on the same world.
 *   Threads    one thread at a time per world; different worlds may be used at the same time. toile_cancel() alone
 *              may be called from any thread or signal handler.
 *   Phases     add and set things, toile_build(), then advance frame by frame. Settings and objects are fixed by
 *              toile_build(); colliders and pins move afterwards.
 *   The library never prints, exits, or crashes on bad input.
 */
#ifndef TOILE_H
#define TOILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "status.h" /* codes, and their names, texts and exit codes */
#include "seam.h"   /* toile_seam, toile_stitch, toile_default_seam */

#define TOILE_VERSION_MAJOR 0
#define TOILE_VERSION_MINOR 1
#define TOILE_VERSION_PATCH 0
#define TOILE_VERSION "0.1.0"

typedef struct toile_world toile_world;

/* Host hooks, all optional. `allocate` may return null; `log` gets one line without newline, level 0 info, 1 warning. */
typedef struct toile_hooks {
    void *(*allocate)(void *user, size_t size);
    void (*release)(void *user, void *pointer);
    void (*log)(void *user, int level, const char *line);
    void *user;
} toile_hooks;

TOILE_API const char *toile_version(void);
TOILE_API toile_status toile_create(const toile_hooks *hooks, toile_world **world);
TOILE_API void toile_destroy(toile_world *world);

/* The message of the last call that failed on this world; "" if none did. Never null, also for a null world. */
TOILE_API const char *toile_message(const toile_world *world);

/* ---- settings and fabrics: see `toile settings` and `toile fabrics` for ids, units, ranges ---- */

/* Text form: a number, "true", a choice, or "0,0,-9.81". */
TOILE_API toile_status toile_set(toile_world *world, const char *id, const char *text);
TOILE_API toile_status toile_set_numbers(toile_world *world, const char *id, const double *values, int count);
TOILE_API toile_status toile_get_numbers(toile_world *world, const char *id, double values[3], int *count);

/* A new fabric that begins as a copy of the named one (null: the default fabric). */
TOILE_API toile_status toile_add_fabric(toile_world *world, const char *base, int *fabric);
TOILE_API toile_status toile_set_fabric(toile_world *world, int fabric, const char *id, double value);

/* ---- garments ---- */

/* A garment given as a mesh of triangles and quads. Seams are either vertices shared by panels, whose corners have a
 * (u, v) of each panel (Baraff-Witkin 1998, footnote 3), or stitches between vertices, which are sewn. */
typedef struct toile_mesh {
    const char *name;               /* unique among garments */
    int vertex_count;
    const double *positions;        /* start, m, (vertex_count x 3) */
    int face_count;
    const int *face_sizes;          /* 3 or 4 each, (face_count) */
    const int *face_vertices;       /* (sum of face_sizes) */
    const double *corner_uv;        /* material coordinates, m, (sum of face_sizes x 2) */
    int panel_count;                /* at least 1 */
    const char *const *panel_names; /* (panel_count) or null */
    const int *panel_fabrics;       /* fabric of each panel, (panel_count) */
    const double *panel_scales;     /* rest scales b_u, b_v of each panel, (panel_count x 2), or null for 1 */
    const int *face_panels;         /* panel of each face, (face_count), or null: all in panel 0 */
    bool keep_start_angles;         /* true: the start shape's fold angles are at rest; false: flat is */
    int seam_count, stitch_count;   /* pairs of vertices to sew, or 0 */
    const toile_seam *seams;        /* (seam_count) */
    const toile_stitch *stitches;   /* (stitch_count) */
} toile_mesh;
TOILE_API toile_status toile_add_mesh(toile_world *world, const toile_mesh *mesh, int *garment);

/* Sews pairs of a garment's vertices, (count x 2): another way than toile_mesh has, for grids too. */
TOILE_API toile_status toile_add_seam(toile_world *world, int garment, const toile_seam *seam, const int *pairs, int count);
/* A factor for each vertex, (vertex_count), on a property of the fabric, or on the rest scales: "scale_u", "scale_v". */
TOILE_API toile_status toile_add_map(toile_world *world, int garment, const char *property, const double *factors, int *map);
/* Edges, as pairs of neighbouring vertices (count x 2), that are bent at rest, rad; positive folds the fronts together. */
TOILE_API toile_status toile_add_crease(toile_world *world, int garment, const int *edges, int count, double angle);
/* Elastic along such edges: N per unit of strain, and its rest length relative to the edges'. */
TOILE_API toile_status toile_add_elastic(toile_world *world, int garment, const int *edges, int count, double stiffness,
                                         double scale);

typedef enum toile_diagonals { TOILE_DIAGONALS_ALTERNATE, TOILE_DIAGONALS_LEFT, TOILE_DIAGONALS_RIGHT } toile_diagonals;

/* A garment that is one rectangular panel: nu x nv particles, u (warp) along the first axis, particle i + j * nu at
 * origin + u_axis * i / (nu - 1) + v_axis * j / (nv - 1). */
typedef struct toile_grid {
    const char *name;
    int nu, nv;                     /* at least 2 each */
    double origin[3], u_axis[3], v_axis[3]; /* m; the axes' lengths are the panel's size, and they are orthogonal */
    int fabric;
    toile_diagonals diagonals;
} toile_grid;
TOILE_API toile_status toile_add_grid(toile_world *world, const toile_grid *grid, int *garment);

/* ---- colliders ---- */

typedef enum toile_shape {
    TOILE_SPHERE,   /* size[0] radius */
    TOILE_BOX,      /* size half extents */
    TOILE_CAPSULE,  /* along local z: size[0] radius, size[1] half length of the straight part */
    TOILE_CYLINDER, /* along local z: size[0] radius, size[1] half length */
    TOILE_PLANE,    /* local z = 0, solid below */
    TOILE_MESH      /* triangles, counter-clockwise seen from outside */
} toile_shape;

/* Where the cloth is: around a body, in a container, or on either side of a thin sheet. */
typedef enum toile_side { TOILE_OUTSIDE, TOILE_INSIDE, TOILE_BOTH_SIDES } toile_side;

typedef struct toile_collider {
    const char *name;               /* unique among colliders */
    toile_shape shape;
    double size[3];                 /* m */
    double thickness;               /* m, added to the cloth's */
    double friction_static;         /* Coulomb, >= 0; kinetic must not be larger */
    double friction_kinetic;
    double position[3];             /* start pose, m */
    double rotation[4];             /* start pose, unit quaternion w, x, y, z; all zero means none */
    int vertex_count;               /* mesh only */
    const double *positions;        /* world space, m, (vertex_count x 3) */
    int triangle_count;
    const int *triangles;           /* (triangle_count x 3) */
    toile_side side;
} toile_collider;
TOILE_API toile_status toile_add_collider(toile_world *world, const toile_collider *collider, int *index);

/* ---- pins ---- */

typedef struct toile_pin {
    int garment;
    int count;
    const int *vertices;            /* of the garment, (count) */
    bool axes[3];                   /* world axes that are held; at least one */
} toile_pin;
TOILE_API toile_status toile_add_pin(toile_world *world, const toile_pin *pin, int *index);
/* The pin holds by a spring to each vertex's target, N/m; 0: rigidly. */
TOILE_API toile_status toile_soften_pin(toile_world *world, int pin, double stiffness);
/* Targets follow the collider, at the place where the vertices are when the pin comes on: the nearest triangle of a mesh. */
TOILE_API toile_status toile_pin_to_collider(toile_world *world, int pin, int collider);
/* The vertices slide along a line of two or more points, m, (count x 3). For a pin that holds all three axes. */
TOILE_API toile_status toile_pin_to_curve(toile_world *world, int pin, const double *points, int count);

/* ---- what touches what: all before toile_build ---- */

/* Garments over garments: one of a higher layer lies over those of lower ones. 0 unless told. */
TOILE_API toile_status toile_set_layer(toile_world *world, int garment, int layer);
/* No contact between two garments; of one with itself if they are the same. */
TOILE_API toile_status toile_exclude_garments(toile_world *world, int garment, int other);
TOILE_API toile_status toile_exclude_collider(toile_world *world, int garment, int collider);
/* Vertices of a garment without contact: with cloth, with colliders, or with both. Adds to what was told before. */
TOILE_API toile_status toile_exempt_vertices(toile_world *world, int garment, int count, const int *vertices,
                                             bool from_cloth, bool from_colliders);

/* ---- running ---- */

TOILE_API toile_status toile_build(toile_world *world);

/* Where things are at the end of the next frame; during the frame they move there linearly. What is not told stays.
 * Poses are for primitives, vertices for meshes. On the first frame the start is the pose given at toile_add. */
TOILE_API toile_status toile_pose_collider(toile_world *world, int collider, const double position[3],
                                           const double rotation[4]);
TOILE_API toile_status toile_deform_collider(toile_world *world, int collider, const double *positions);
/* Targets of a pin's vertices at the end of the next frame, (count x 3). */
TOILE_API toile_status toile_move_pin(toile_world *world, int pin, const double *positions);
/* Points of the line that a pin's vertices slide on, at the end of the next frame, (curve_count x 3). */
TOILE_API toile_status toile_move_curve(toile_world *world, int pin, const double *points);
/* A pin that is off holds nothing; when it goes on, its vertices move to their targets within the frame. */
TOILE_API toile_status toile_enable_pin(toile_world *world, int pin, bool on);
/* A pin that grabs takes its vertices, in every frame, from where they are rather than from their last targets. At any
 * time. */
TOILE_API toile_status toile_grab_pin(toile_world *world, int pin, bool grabs);

/* Pressure on a panel's back, N/m^2, at the end of the next frame; panel -1: on all of the garment's. */
TOILE_API toile_status toile_set_pressure(toile_world *world, int garment, int panel, double pressure);
/* New factors of a map from the next frame on. The model is built anew for them. */
TOILE_API toile_status toile_change_map(toile_world *world, int garment, int map, const double *factors);

/* Another start than the garment's own: positions and velocities (null: at rest), m, m/s, (vertex_count x 3). */
TOILE_API toile_status toile_set_start(toile_world *world, int garment, const double *positions, const double *velocities);
/* The time it is now, s: seams go by it. Told before the first frame, gravity_delay and gravity_ramp begin there too. */
TOILE_API toile_status toile_set_time(toile_world *world, double seconds);

/* Advances by one frame of `seconds`, in as many steps as it takes. */
TOILE_API toile_status toile_advance(toile_world *world, double seconds);

/* Makes a running toile_advance stop before its next step with TOILE_CANCELLED; the world then stays at the end of
 * the frame before. Any thread, signal handlers too. Stays set until called with false. */
TOILE_API void toile_cancel(toile_world *world, bool cancel);

/* ---- results ---- */

TOILE_API int toile_garment_count(const toile_world *world);
TOILE_API const char *toile_garment_name(const toile_world *world, int garment);
TOILE_API int toile_vertex_count(const toile_world *world, int garment);
TOILE_API int toile_triangle_count(const toile_world *world, int garment);
TOILE_API int toile_panel_count(const toile_world *world, int garment);
TOILE_API const char *toile_panel_name(const toile_world *world, int garment, int panel);
/* Each fills caller-owned arrays in the vertex order given at toile_add; (vertex_count x 3). */
TOILE_API toile_status toile_get_positions(const toile_world *world, int garment, double *xyz);
TOILE_API toile_status toile_get_velocities(const toile_world *world, int garment, double *xyz);
/* Triangles after quads were split, (triangle_count x 3), their panels and corner (u, v) (triangle_count x 6).
 * Any may be null. */
TOILE_API toile_status toile_get_triangles(const toile_world *world, int garment, int *vertices, int *panels,
                                           double *corner_uv);
/* Pairs of vertices that are sewn, with their seams, (stitch_count). */
TOILE_API int toile_stitch_count(const toile_world *world, int garment);
TOILE_API toile_status toile_get_stitches(const toile_world *world, int garment, toile_stitch *stitches);

typedef enum toile_stage {
    TOILE_STAGE_EVALUATE,
    TOILE_STAGE_ASSEMBLE,
    TOILE_STAGE_SOLVE,
    TOILE_STAGE_COLLIDE_SOLID,
    TOILE_STAGE_COLLIDE_SELF,
    TOILE_STAGE_COUNT
} toile_stage;

/* Sums over the last frame, or over all frames since toile_build. */
typedef struct toile_statistics {
    int frames;
    int64_t steps, rejected_steps, forced_steps; /* forced: taken at the smallest step in spite of its stretch change */
    int64_t iterations, row_multiplies;
    double seconds;                              /* wall time */
    double stages[TOILE_STAGE_COUNT];            /* seconds */
    double max_stretch;                          /* largest strain of any warp, weft or stretch connection */
    int contacts;                                /* particles held by colliders, at the end */
    int penetrations;                            /* particles inside a collider's surface, at the end */
    double deepest;                              /* m, of those */
    double step_min, step_max;                   /* s */
    double kinetic_energy, elastic_energy, potential_energy; /* J, at the end */
    double speed;                                /* root mean square over the mass, m/s, at the end: is it at rest? */
    int open_stitches;                           /* not yet welded, at the end */
    double widest_gap;                           /* m, of those */
    int particles;                               /* vertices less those that seams have joined */
} toile_statistics;
TOILE_API toile_status toile_get_statistics(const toile_world *world, bool whole_run, toile_statistics *statistics);

/* 64-bit hash of the state that decides the next step. Equal for any number of threads. */
TOILE_API uint64_t toile_state_hash(const toile_world *world);
TOILE_API double toile_time(const toile_world *world);
TOILE_API int toile_threads(const toile_world *world);

/* The whole state as bytes: restoring it into a world built from the same input continues to the same bits. The
 * caller then tells pins and colliders where they are (toile_place_inputs) and where they go. */
TOILE_API size_t toile_state_size(const toile_world *world);
TOILE_API toile_status toile_save_state(const toile_world *world, void *bytes, size_t size);
TOILE_API toile_status toile_restore_state(toile_world *world, const void *bytes, size_t size);
/* Takes the collider and pin targets told so far as reached, without moving time: for a start in mid-scene. */
TOILE_API toile_status toile_place_inputs(toile_world *world);

/* ---- tables, for interfaces that are made from them ---- */

/* What `toile settings --json` and `toile fabrics --json` print, for the caller to free with toile_free_text. Null when
 * memory is out. */
TOILE_API char *toile_settings_json(void);
TOILE_API char *toile_fabrics_json(void);
TOILE_API void toile_free_text(char *text);

/* ---- reading caches; a reader is used by one thread at a time ---- */

typedef struct toile_reader toile_reader;

/* Opens a cache, also one that a bake still writes. Gives a reader even when it fails (unless memory is out), for its
 * message; close that too. */
TOILE_API toile_status toile_reader_open(const char *path, toile_reader **reader);
TOILE_API void toile_reader_close(toile_reader *reader);
TOILE_API const char *toile_reader_message(const toile_reader *reader);
/* Looks for new frames. TOILE_WARNING: another file is at the path now, or none; open it again. */
TOILE_API toile_status toile_reader_refresh(toile_reader *reader);
/* Scene, garments, frame range and the scene's text as one JSON object; lives as long as the reader. */
TOILE_API const char *toile_reader_json(const toile_reader *reader);
TOILE_API int toile_reader_frame_count(const toile_reader *reader); /* finished, from first_frame on */
TOILE_API int toile_reader_vertex_count(const toile_reader *reader, int garment);
/* One frame by position (0 is first_frame) into the caller's arrays, (vertex_count x 3); either may be null. */
TOILE_API toile_status toile_reader_read(toile_reader *reader, int index, int garment, float *positions,
                                         float *velocities);
/* The figures of a frame, in the order of "figures" in toile_reader_json; as many as there are, at most `room`. */
TOILE_API toile_status toile_reader_figures(toile_reader *reader, int index, double *figures, int room, int *count);
/* Largest strain of the triangles around each vertex, (vertex_count), of positions as read: warp or weft, whichever is
 * more; compression counts as negative where nothing is stretched. */
TOILE_API toile_status toile_reader_strain(toile_reader *reader, int garment, const float *positions, float *strain);

/* ---- writing jobs: a scene and its arrays in one file that any machine can bake ---- */

typedef struct toile_job toile_job;

/* A mesh as in toile_mesh, with names for panels and without fabrics, which the scene gives. */
typedef struct toile_job_mesh {
    const char *name;               /* unique among the job's meshes */
    int vertex_count;
    const double *positions;
    int face_count;
    const int *face_sizes;
    const int *face_vertices;
    const double *corner_uv;        /* or null */
    int panel_count;
    const char *const *panel_names; /* or null with panel_count 0 */
    const int *face_panels;         /* or null */
} toile_job_mesh;

/* The file appears at `path` with toile_job_finish. Gives a job even when it fails (unless memory is out), for its
 * message. */
TOILE_API toile_status toile_job_create(const char *path, toile_job **job);
TOILE_API const char *toile_job_message(const toile_job *job);
TOILE_API toile_status toile_job_add_mesh(toile_job *job, const toile_job_mesh *mesh);
/* Positions that change from frame to frame, for "track" of a collider or pin. */
TOILE_API toile_status toile_job_add_track(toile_job *job, const char *name, int first_frame, int vertex_count, int *track);
TOILE_API toile_status toile_job_add_frame(toile_job *job, int track, const double *positions);
/* `scene`: the text of a scene file, whose garments and colliders name meshes and tracks of the job. */
TOILE_API toile_status toile_job_finish(toile_job *job, const char *scene);
/* Frees the job; a file that is not finished is removed. */
TOILE_API void toile_job_destroy(toile_job *job);
/* Loads and builds a finished job or a scene without running it: what is wrong is said now. `message` gets the text. */
TOILE_API toile_status toile_job_check(const char *path, char *message, size_t size);

/* Memory of this world: allocations asked for so far, still live, and bytes. Any may be null. */
TOILE_API void toile_memory_use(const toile_world *world, uint64_t *calls, uint64_t *live, size_t *bytes, size_t *peak);

#ifdef __cplusplus
}
#endif
#endif
