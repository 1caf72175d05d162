/* What the files of the scene loader share: the scene itself, what loading needs besides, and small readers.
 * Each kind of thing (garment, collider, pin) has its file, which loads, prepares and frees it. */
#ifndef TOILE_SCENE_INTERNAL_H
#define TOILE_SCENE_INTERNAL_H

#include "job_hdf5.h"
#include "json_place.h"
#include "motion.h"
#include "pattern.h"
#include "scene.h"

#include <jansson.h>

enum { NAMES_MOST = 1100 };         /* names in one message; more than any list of a scene has */

typedef struct garment {
    char *name;
    int index;                      /* in the world */
    int vertex_count;
    double *start;                  /* world space, m, (vertex_count x 3); until the scene is loaded */
    double *begin;                  /* positions, then velocities, of the cache it begins from, or null; as long */
    int nu, nv;                     /* of a grid, else 0 */
    double size[2];                 /* of a grid, m */
    toile_pattern_mesh pattern;     /* of panels; until the scene is loaded */
    json_t *panel_numbers;          /* of panels by name; as long */
} garment;

typedef struct collider {
    char *name;
    int index;                      /* in the world */
    toile_shape shape;
    toile_side side;
    double size[3];                 /* as the world takes it */
    toile_motion motion;
    int vertex_count, triangle_count, face_count;
    double *local;                  /* before the motion, m, (vertex_count x 3); primitives: when asked for */
    double *moved;                  /* world space at the pose last asked for, (vertex_count x 3) */
    int *triangles;                 /* (triangle_count x 3) */
    double scale;                   /* of the mesh file's positions */
    bool sequence;                  /* one file per frame: before, number in `digits` digits, after */
    char *before, *after;
    int digits;
    int first_file, last_file;
    int file;                       /* number of the file in `local` */
    bool hold;
    int track;                      /* of the job, or -1 */
    struct toile_abc *abc;          /* or null: an archive that it is read from at every frame */
    double abc_offset;              /* frames, added to the scene's */
    bool loose;                     /* its faces change: triangles without common corners, put in place at once */
} collider;

typedef struct pin {
    char *name;
    int index;                      /* in the world */
    int count;
    int *vertices;                  /* (count) */
    double *start, *target;         /* world space, m, (count x 3) */
    int first, last;                /* frames at which it holds */
    bool limited;                   /* not all of them */
    toile_motion motion;            /* translation and rotation from the start, about a point */
    double about[3];
    bool elsewhere;                 /* its start is that of a cache, not the garment's own */
    int curve_count;                /* points of a line that it slides on, or 0 */
    double *curve, *curve_now;      /* world space, m, (curve_count x 3) */
    const collider *followed;       /* or null */
    int track;                      /* of the job, or -1 */
    int garment;                    /* in the world */
    double *here;                   /* null, or it grabs: all positions of the garment now, m */
} pin;

/* A number that changes from frame to frame. */
typedef struct number_key {
    double frame, value;
} number_key;
typedef struct number_curve {
    int count;
    number_key *keys;
} number_curve;

typedef struct scene_map {
    int garment, index;             /* in the world */
    int count;
    double *full, *now;             /* factors at amount 1, and as last told, (count) */
    number_curve amount;            /* or no keys: it stays */
} scene_map;

typedef struct scene_pressure {
    int garment, panel;             /* in the world; panel -1: all */
    number_curve value;             /* N/m^2 */
} scene_pressure;

struct toile_scene {
    toile_memory memory;
    toile_hooks hooks;
    toile_world *world;
    toile_job_file *job;            /* that its meshes are in, or null */
    char *name, *folder;            /* folder: of the scene file, with its slash, or "" */
    double fps;
    int first, last;
    int frame;                      /* last prepared */
    int garment_count, collider_count, pin_count;
    garment *garments;
    collider *colliders;
    pin *pins;
    int map_count, pressure_count;
    scene_map *maps;
    scene_pressure *pressures;
    int settle_frames;              /* at most, before the first frame */
    double settle_speed;            /* m/s, at which it counts as at rest */
    int before_first;               /* frames that the one being settled is before the first, else 0 */
    char *resolved;
    uint64_t fingerprint;
};

/* What only loading needs. */
typedef struct loader {
    toile_scene *scene;
    toile_memory *memory;
    toile_error *error;
    json_t *root;
    char *text;                     /* of the file; null if the caller has the text */
    toile_source source;
    toile_source_set *sets;
    int *fabrics;                   /* of the world: default, named, the scene's; -1 until one is used */
    uint64_t files;                 /* hash of the mesh files */
} loader;

static const toile_place WHOLE = {NULL, NULL, 0};

#define REFUSE(place, ...) toile_place_fail(&l->source, place, l->error, TOILE_INVALID, __VA_ARGS__)

static inline toile_status no_memory(const loader *l) {
    return toile_fail_memory(l->error, "the scene");
}

/* What the world says of a call that failed, with the place that it was about. */
static inline toile_status world_refuses(const loader *l, const toile_place *place, toile_status status) {
    return toile_place_fail(&l->source, place, l->error, status, "%s", toile_message(l->scene->world));
}

/* ---- values whose form has been checked; a key that is missing leaves what was there ---- */

static inline void read_number(const json_t *object, const char *key, double *value) {
    const json_t *number = json_object_get(object, key);
    if (number)
        *value = json_number_value(number);
}

static inline void read_int(const json_t *object, const char *key, int *value) {
    const json_t *number = json_object_get(object, key);
    if (number)
        *value = (int)json_number_value(number);
}

static inline void read_bool(const json_t *object, const char *key, bool *value) {
    const json_t *boolean = json_object_get(object, key);
    if (boolean)
        *value = json_is_true(boolean);
}

static inline void read_vector(const json_t *object, const char *key, int count, double *values) {
    const json_t *list = json_object_get(object, key);
    for (int i = 0; list && i < count; i++)
        values[i] = json_number_value(json_array_get(list, (size_t)i));
}

static inline const char *read_text(const json_t *object, const char *key, const char *otherwise) {
    const json_t *text = json_object_get(object, key);
    return text ? json_string_value(text) : otherwise;
}

static inline void read_place(const json_t *object, toile_key *key) {
    const json_t *place = json_object_get(object, "place");
    read_vector(place, "origin", 3, key->origin);
    read_vector(place, "rotate", 3, key->rotate);
}

static inline void transform(const toile_pose *pose, double scale, const double *from, int count,
                             double *to) {
    for (size_t i = 0; i < 3 * (size_t)count; i += 3) {
        double scaled[3] = {scale * from[i], scale * from[i + 1], scale * from[i + 2]};
        toile_pose_apply(pose, scaled, to + i);
    }
}

/* ---- names ---- */

static inline const char *name_of_garment(const toile_scene *scene, int i) {
    return scene->garments[i].name;
}

static inline const char *name_of_collider(const toile_scene *scene, int i) {
    return scene->colliders[i].name;
}

static inline const char *name_of_pin(const toile_scene *scene, int i) {
    return scene->pins[i].name;
}

typedef const char *name_of(const toile_scene *scene, int i);

/* ---- scene_read.c ---- */

/* "frames" of an object; what was there stays if it has none. */
toile_status toile_scene_read_frames(const loader *l, const json_t *object, const toile_place *place,
                                     int *first, int *last);
/* The name of a garment, collider or pin, of which the place has the index: as written, or kind and index. */
toile_status toile_scene_take_name(const loader *l, const json_t *object, const toile_place *place,
                                   name_of *of, const char *kind, char **name);
/* -1 if there is none. */
int toile_scene_find_name(const toile_scene *scene, name_of *of, int count, const char *name);
toile_status toile_scene_refuse_name(const loader *l, const toile_place *place, const char *name, name_of *of,
                                     int count);
/* Files are seen from the scene file's folder. For the caller to free; null when memory is out. */
char *toile_scene_path_of(const toile_scene *scene, toile_memory *memory, const char *file);
/* Says where the scene names a file that could not be read; other errors stay as they are, since what is
 * wrong in a file has its own name and line. Returns the status. */
toile_status toile_scene_blame_file(const loader *l, const toile_place *place, toile_status status);
/* "motion" of an object. `origin` is what its keys call the position; they take what they do not say from
 * `rest`. */
toile_status toile_scene_load_motion(const loader *l, const json_t *object, const toile_place *place,
                                     const char *origin, toile_motion *motion);

/* The job that a "mesh" or "track" is in; refuses when the scene has none. */
toile_status toile_scene_need_job(const loader *l, const toile_place *place);
/* Finds the track that an object names, which must have `vertices` positions; -1 if it names none. */
toile_status toile_scene_load_track(loader *l, const json_t *object, const toile_place *place, int vertices, int *track);

/* ---- scene_schema.c, scene_set.c, scene_fabric.c ---- */

/* Keys, kinds of values, ranges and counts of a whole scene, by the tables that the schema is made from. */
toile_status toile_scene_check_form(const toile_source *source, const json_t *scene, toile_error *error);
/* Puts the value of a "path=value" into the scene, and both spellings of the path into `set`. */
toile_status toile_scene_apply_set(const loader *l, toile_source_set *set, const char *text);
toile_status toile_scene_load_settings(const loader *l);
toile_status toile_scene_check_fabrics(loader *l);
/* The world's fabric for a "fabric" value: a name, an object or null. Each name is made once. */
toile_status toile_scene_use_fabric(const loader *l, const json_t *value, const toile_place *place,
                                    int *fabric);

/* ---- scene_garment.c, scene_panels.c, scene_collider.c, scene_pin.c ---- */

toile_status toile_scene_load_garments(loader *l);
void toile_scene_free_garments(toile_scene *scene);
/* A garment of panels and seams. */
toile_status toile_scene_load_panels(const loader *l, const json_t *object, const toile_place *place, garment *g);
/* The panel and edge that {"panel", "edge"} names; `panels` is the garment's list. */
toile_status toile_scene_find_edge(const loader *l, const json_t *object, const json_t *panels, const garment *g,
                                   const toile_place *place, int *panel, int *edge);
/* What only loading needs of it. */
void toile_scene_drop_pattern(toile_memory *memory, garment *g);
/* Needs nothing loaded before. */
toile_status toile_scene_load_colliders(loader *l);
/* Those that are put in place at once rather than moved there: true if one of them is elsewhere now. */
toile_status toile_scene_place_collider(toile_scene *scene, collider *c, int frame, bool *placed, toile_error *error);
toile_status toile_scene_prepare_collider(toile_scene *scene, collider *c, int frame, toile_error *error);
void toile_scene_free_colliders(toile_scene *scene);
/* Needs garments and colliders. */
toile_status toile_scene_load_pins(loader *l);
toile_status toile_scene_prepare_pin(toile_scene *scene, pin *p, int frame, toile_error *error);
void toile_scene_free_pins(toile_scene *scene);

/* ---- scene_contact.c ---- */

/* Needs garments and colliders. */
toile_status toile_scene_load_no_contact(loader *l);

/* Marks what "select" of an object selects of garment `index`; refuses if that is nothing. */
toile_status toile_scene_select(const loader *l, const json_t *object, const toile_place *place, int index, const garment *g,
                                bool *chosen);

/* ---- scene_shaping.c ---- */

/* Schedule, strength and fold angle of a seam. */
toile_status toile_scene_read_seam(const loader *l, const json_t *object, const toile_place *place, toile_seam *seam);
/* Writes a file's edges without faces into the scene as pairs, where "sewing" asks for them. */
toile_status toile_scene_take_loose_edges(const loader *l, const json_t *object, const toile_place *place, const int *lines,
                                          int count);
/* Needs garments. */
toile_status toile_scene_load_shaping(loader *l);
toile_status toile_scene_prepare_shaping(toile_scene *scene, int frame, toile_error *error);
void toile_scene_free_shaping(toile_scene *scene);

/* ---- scene_start.c ---- */

/* Needs garments; pins need it. */
toile_status toile_scene_load_start(loader *l);
/* After toile_build. */
toile_status toile_scene_take_start(const loader *l);

/* ---- scene_resolved.c ---- */

/* Fills l->root with what it left to defaults and keeps it as the scene's text. */
toile_status toile_scene_write_resolved(const loader *l);
/* Of the filled scene and its mesh files. */
toile_status toile_scene_take_fingerprint(const loader *l);

#endif
