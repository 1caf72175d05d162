/* What the files of the scene loader share: the scene itself, what loading needs besides, and small readers. Each
 * kind of thing (garment, collider, pin) has its file, which loads, prepares and frees it. */
#ifndef TOILE_SCENE_INTERNAL_H
#define TOILE_SCENE_INTERNAL_H

#include "json_place.h"
#include "motion.h"
#include "scene.h"

#include <jansson.h>

enum { NAMES_MOST = 1100 };         /* names in one message; more than any list of a scene has */

    char *name;
    int index;                      /* in the world */
    int vertex_count;
    double *start;                  /* world space, m, (vertex_count x 3); until the scene is loaded */
    int nu, nv;                     /* of a grid, else 0 */
    double size[2];                 /* of a grid, m */
} garment;

typedef struct collider {
    char *name;
    int index;                      /* in the world */
    toile_shape shape;
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
    const collider *followed;       /* or null */
} pin;

struct toile_scene {
    toile_memory memory;
    toile_hooks hooks;
    toile_world *world;
    char *name, *folder;            /* folder: of the scene file, with its slash, or "" */
    double fps;
    int first, last;
    int frame;                      /* last prepared */
    int garment_count, collider_count, pin_count;
    garment *garments;
    collider *colliders;
    pin *pins;
    char *resolved;
    uint64_t fingerprint;
};

/* What only loading needs. */
typedef struct loader {
    toile_scene *scene;
    toile_memory *memory;
    toile_error *error;
    json_t *root;
    char *text;
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

static inline void transform(const toile_pose *pose, double scale, const double *from, int count, double *to) {
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
