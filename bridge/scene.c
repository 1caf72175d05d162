/* From a scene file to a world, and the world's colliders and pins from frame to frame.
 *
 * Loading goes: text -> JSON -> sets -> form checked by scene_schema.c -> settings, fabrics, garments,
 * colliders, pins told to the world -> toile_build -> resolved text and fingerprint. After the form is
 * checked, reading a value cannot fail; what is refused below is what the form cannot know: names, files, and
 * how values fit together. */
#include "scene.h"

#include "hash.h"
#include "json_place.h"
#include "motion.h"
#include "obj.h"
#include "settings.h"

#include <jansson.h>

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PI 3.14159265358979323846
#define SCENE_MOST ((size_t)256 << 20) /* bytes of a scene file */
enum {
    RESOLUTION = 41,                /* particles along the longer side of a grid, if nobody says */
    GROWN_MOST = 1000,              /* vertices that "within" can grow: the work is this times the garment */
    NAMES_MOST = 1100,              /* names in one message; more than any list of a scene has */
    AROUND = 48,                    /* corners of a tessellated circle */
};
#define FRICTION 0.3

typedef struct garment {
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

static toile_status no_memory(const loader *l) {
    return toile_fail_memory(l->error, "the scene");
}

/* What the world says of a call that failed, with the place that it was about. */
static toile_status world_refuses(const loader *l, const toile_place *place, toile_status status) {
    return toile_place_fail(&l->source, place, l->error, status, "%s", toile_message(l->scene->world));
}

/* ---- values whose form has been checked; a key that is missing leaves what was there ---- */

static void read_number(const json_t *object, const char *key, double *value) {
    const json_t *number = json_object_get(object, key);
    if (number)
        *value = json_number_value(number);
}

static void read_int(const json_t *object, const char *key, int *value) {
    const json_t *number = json_object_get(object, key);
    if (number)
        *value = (int)json_number_value(number);
}

static void read_bool(const json_t *object, const char *key, bool *value) {
    const json_t *boolean = json_object_get(object, key);
    if (boolean)
        *value = json_is_true(boolean);
}

static void read_vector(const json_t *object, const char *key, int count, double *values) {
    const json_t *list = json_object_get(object, key);
    for (int i = 0; list && i < count; i++)
        values[i] = json_number_value(json_array_get(list, (size_t)i));
}

static const char *read_text(const json_t *object, const char *key, const char *otherwise) {
    const json_t *text = json_object_get(object, key);
    return text ? json_string_value(text) : otherwise;
}

static toile_status read_frames(const loader *l, const json_t *object, const toile_place *place, int *first,
                                int *last) {
    double frames[2] = {*first, *last};
    toile_place here = {place, "frames", 0};
    read_vector(object, "frames", 2, frames);
    if (frames[0] > frames[1])
        return REFUSE(&here, "found [%g, %g]; the first frame is not after the last", frames[0], frames[1]);
    *first = (int)frames[0];
    *last = (int)frames[1];
    return TOILE_OK;
}

/* ---- names ---- */

static const char *name_of_garment(const toile_scene *scene, int i) {
    return scene->garments[i].name;
}

static const char *name_of_collider(const toile_scene *scene, int i) {
    return scene->colliders[i].name;
}

static const char *name_of_pin(const toile_scene *scene, int i) {
    return scene->pins[i].name;
}

typedef const char *name_of(const toile_scene *scene, int i);

static int find_name(const toile_scene *scene, name_of *of, int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(of(scene, i), name) == 0)
            return i;
    return -1;
}

static toile_status refuse_name(const loader *l, const toile_place *place, const char *name, name_of *of,
                                int count) {
    const char *known[NAMES_MOST];
    char text[600];
    for (int i = 0; i < count; i++)
        known[i] = of(l->scene, i);
    toile_known_names(name, known, count, text, sizeof text);
    return REFUSE(place, "found \"%.64s\"; %s", name, text);
}

/* The name of the i-th garment, collider or pin: as written, or its kind and number. */
static toile_status take_name(const loader *l, const json_t *object, const toile_place *place, name_of *of,
                              const char *kind, char **name) {
    char made[32];
    snprintf(made, sizeof made, "%s_%zu", kind, place->index);
    const char *text = read_text(object, "name", made);
    int before = find_name(l->scene, of, (int)place->index, text);
    toile_place here = {place, "name", 0};
    if (before >= 0)
        return REFUSE(&here, "found \"%.64s\"; %ss[%d] already has this name", text, kind, before);
    *name = toile_copy_text(l->memory, text);
    return *name ? TOILE_OK : no_memory(l);
}

/* ---- sets ---- */

/* The length of `name` if the path begins with it as a whole element, else 0. */
static size_t element_matches(const char *path, const char *name) {
    size_t length = strlen(name);
    bool same = length > 0 && strncmp(path, name, length) == 0 && (!path[length] || path[length] == '.');
    return same ? length : 0;
}

/* The element that a path begins with in an object: the longest key that is there, since names may have dots,
 * or what ends at the next dot. */
static size_t match_key(const json_t *object, const char *path) {
    size_t best = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        size_t length = element_matches(path, key);
        if (length > best)
            best = length;
    }
    return best ? best : strcspn(path, ".");
}

/* The same in a list: a name of one of its objects, or an index. Returns false if there is none. */
static bool match_index(const json_t *list, const char *path, size_t *length, size_t *index) {
    *length = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *name = json_object_get(json_array_get(list, i), "name");
        size_t matched = json_is_string(name) ? element_matches(path, json_string_value(name)) : 0;
        if (matched > *length) {
            *length = matched;
            *index = i;
        }
    }
    if (*length > 0)
        return true;
    *length = strcspn(path, ".");
    if (*length == 0 || *length > 9 || strspn(path, "0123456789") != *length)
        return false;
    *index = (size_t)strtoul(path, NULL, 10);
    return *index < json_array_size(list);
}

static toile_status refuse_element(const loader *l, const toile_source_set *set, const json_t *list,
                                   const char *path, size_t length) {
    const char *known[NAMES_MOST];
    char element[65], text[600];
    int count = 0;
    snprintf(element, sizeof element, "%.*s", (int)(length < 64 ? length : 64), path);
    for (size_t i = 0; i < json_array_size(list) && count < NAMES_MOST; i++) {
        const json_t *name = json_object_get(json_array_get(list, i), "name");
        if (json_is_string(name))
            known[count++] = json_string_value(name);
    }
    toile_known_names(element, known, count, text, sizeof text);
    return toile_fail(l->error, TOILE_INVALID,
                      "--set %s: %s has no element \"%s\"; use 0 to %zu or a name; %s", set->written,
                      set->path, element, json_array_size(list) - (json_array_size(list) > 0), text);
}

/* Puts `value` where the path says, making objects on the way. `set->path` grows along. */
static toile_status put_value(const loader *l, toile_source_set *set, const char *path, json_t *value) {
    json_t *node = l->root;
    for (;;) {
        size_t used = strlen(set->path), length = 0, index = 0;
        json_t *child = NULL;
        char key[TOILE_PLACE_TEXT];
        if (json_is_object(node)) {
            length = match_key(node, path);
            if (length == 0 || length >= sizeof key)
                return toile_fail(l->error, TOILE_INVALID,
                                  "--set %s: a part of the path is empty or too long", set->written);
            memcpy(key, path, length);
            key[length] = 0;
            snprintf(set->path + used, sizeof set->path - used, "%s%s", used ? "." : "", key);
        } else if (json_is_array(node)) {
            if (!match_index(node, path, &length, &index))
                return refuse_element(l, set, node, path, length);
            snprintf(set->path + used, sizeof set->path - used, "[%zu]", index);
        } else {
            return toile_fail(l->error, TOILE_INVALID, "--set %s: %s is a single value and has no parts",
                              set->written, set->path);
        }

        bool last = !path[length];
        if (json_is_object(node)) {
            child = last ? json_incref(value) : json_incref(json_object_get(node, key));
            if (!child)
                child = json_object();
            if (json_object_set_new(node, key, child) != 0)
                return toile_fail(l->error, TOILE_INVALID, "--set %s: not UTF-8 text", set->written);
        } else {
            if (last && json_array_set(node, index, value) != 0)
                return no_memory(l);
            child = json_array_get(node, index);
        }
        if (last)
            return TOILE_OK;
        node = child;
        path += length + 1;
    }
}

static toile_status apply_set(const loader *l, toile_source_set *set, const char *text) {
    const char *equals = strchr(text, '=');
    size_t length = equals ? (size_t)(equals - text) : 0;
    if (length == 0 || length >= sizeof set->written)
        return toile_fail(l->error, TOILE_INVALID, "--set %.80s: write it as path=value, for example "
                          "settings.time_step=0.01", text);
    memcpy(set->written, text, length);
    set->written[length] = 0;

    json_t *value = json_loads(equals + 1, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    if (!value)
        value = json_string(equals + 1);
    if (!value)
        return toile_fail(l->error, TOILE_INVALID, "--set %s: the value is not UTF-8 text", set->written);

    /* The id of a setting alone is short for settings.id. */
    char path[sizeof set->written + 16];
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    bool setting = toile_find_field(fields, count, set->written) != NULL;
    snprintf(path, sizeof path, "%s%s", setting ? "settings." : "", set->written);
    toile_status status = put_value(l, set, path, value);
    json_decref(value);
    return status;
}

/* ---- settings and fabrics ---- */

static toile_status load_settings(const loader *l) {
    const json_t *object = json_object_get(l->root, "settings");
    toile_place place = {&WHOLE, "settings", 0};
    toile_settings settings = toile_default_settings();
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        const toile_field *field = toile_find_field(fields, count, key);
        toile_place here = {&place, key, 0};
        toile_status status;
        double numbers[3] = {json_is_true(value) ? 1 : json_number_value(value)};
        if (json_is_string(value)) {
            status = toile_set(l->scene->world, key, json_string_value(value));
            toile_set_field_text(field, &settings, json_string_value(value), NULL);
        } else {
            int size = json_is_array(value) ? 3 : 1;
            for (int i = 0; i < 3 && json_is_array(value); i++)
                numbers[i] = json_number_value(json_array_get(value, (size_t)i));
            status = toile_set_numbers(l->scene->world, key, numbers, size);
            toile_set_field_numbers(field, &settings, numbers, size, NULL);
        }
        if (status < 0)
            return world_refuses(l, &here, status);
    }

    /* How settings fit together: the message begins with the one at fault, which is what tells the line. */
    toile_error inner;
    if (toile_check_settings(&settings, "settings", &inner) != TOILE_OK) {
        char id[64] = "";
        int length = 0;
        sscanf(inner.message, "settings.%63[a-z0-9_]: %n", id, &length);
        toile_place here = {&place, id, 0};
        return REFUSE(&here, "%s", inner.message + length);
    }
    return TOILE_OK;
}

/* The number in loader.fabrics of a fabric's name; -1 if there is none. */
static int number_of_fabric(const loader *l, const char *name) {
    int named_count, number;
    const toile_named_fabric *named = toile_named_fabrics(&named_count);
    for (int i = 0; i < named_count; i++)
        if (strcmp(named[i].name, name) == 0)
            return 1 + i;
    number = 1 + named_count;
    const char *key;
    json_t *value;
    json_object_foreach(json_object_get(l->root, "fabrics"), key, value) {
        if (strcmp(key, name) == 0)
            return number;
        number++;
    }
    return -1;
}

static toile_status refuse_fabric(const loader *l, const toile_place *place, const char *name,
                                  bool scene_too) {
    const char *known[NAMES_MOST], *key;
    char text[600];
    int count;
    json_t *value;
    const toile_named_fabric *named = toile_named_fabrics(&count);
    for (int i = 0; i < count; i++)
        known[i] = named[i].name;
    json_object_foreach(json_object_get(l->root, "fabrics"), key, value) {
        if (scene_too && count < NAMES_MOST)
            known[count++] = key;
    }
    toile_known_names(name, known, count, text, sizeof text);
    return REFUSE(place, "found \"%.64s\"; %s", name, text);
}

/* A fabric of the world from an object with its properties; null: the default fabric. */
static toile_status make_fabric(const loader *l, const json_t *object, const char *base,
                                const toile_place *place, int *fabric) {
    toile_status status = toile_add_fabric(l->scene->world, base, fabric);
    if (status < 0)
        return world_refuses(l, place, status);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        toile_place here = {place, key, 0};
        if (strcmp(key, "base") == 0)
            continue;
        status = toile_set_fabric(l->scene->world, *fabric, key, json_number_value(value));
        if (status < 0)
            return world_refuses(l, &here, status);
    }
    return TOILE_OK;
}

static toile_status check_base(const loader *l, const json_t *object, const toile_place *place) {
    const char *base = read_text(object, "base", NULL);
    toile_place here = {place, "base", 0};
    return !base || toile_find_fabric(base) ? TOILE_OK : refuse_fabric(l, &here, base, false);
}

static toile_status check_fabrics(loader *l) {
    const json_t *object = json_object_get(l->root, "fabrics");
    toile_place place = {&WHOLE, "fabrics", 0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)object, key, value) {
        toile_place here = {&place, key, 0};
        if (toile_find_fabric(key))
            return REFUSE(&here, "a fabric of this name comes with Toile; choose another, and give this one "
                                 "as its base");
        toile_status status = check_base(l, value, &here);
        if (status != TOILE_OK)
            return status;
    }
    int named_count;
    toile_named_fabrics(&named_count);
    size_t count = 1 + (size_t)named_count + json_object_size(object);
    l->fabrics = toile_alloc(l->memory, count, sizeof *l->fabrics);
    if (!l->fabrics)
        return no_memory(l);
    for (size_t i = 0; i < count; i++)
        l->fabrics[i] = -1;
    return TOILE_OK;
}

/* The world's fabric for a "fabric" value: a name, an object or null. Each name is made once. */
static toile_status use_fabric(const loader *l, const json_t *value, const toile_place *place, int *fabric) {
    if (json_is_object(value)) {
        toile_status status = check_base(l, value, place);
        return status != TOILE_OK ? status
                                  : make_fabric(l, value, read_text(value, "base", NULL), place, fabric);
    }
    const char *name = json_string_value(value), *base = NULL;
    int number = name ? number_of_fabric(l, name) : 0;
    if (number < 0)
        return refuse_fabric(l, place, name, true);
    if (l->fabrics[number] < 0) {
        const json_t *object = name ? json_object_get(json_object_get(l->root, "fabrics"), name) : NULL;
        base = object ? read_text(object, "base", NULL) : name;
        toile_status status = make_fabric(l, object, base, place, &l->fabrics[number]);
        if (status != TOILE_OK)
            return status;
    }
    *fabric = l->fabrics[number];
    return TOILE_OK;
}

/* ---- files and places ---- */

static void read_place(const json_t *object, toile_key *key) {
    const json_t *place = json_object_get(object, "place");
    read_vector(place, "origin", 3, key->origin);
    read_vector(place, "rotate", 3, key->rotate);
}

/* Files are seen from the scene file's folder. */
static char *path_of(const toile_scene *scene, toile_memory *memory, const char *file) {
    const char *folder = file[0] == '/' ? "" : scene->folder;
    size_t size = strlen(folder) + strlen(file) + 1;
    char *path = toile_alloc(memory, size, 1);
    if (path)
        snprintf(path, size, "%s%s", folder, file);
    return path;
}

/* A file that cannot be opened is the scene's mistake; what is wrong in it has its own name and line. */
static toile_status blame(const loader *l, const toile_place *place, toile_status status) {
    if (status != TOILE_IO)
        return status;
    toile_error inner = *l->error;
    return toile_place_fail(&l->source, place, l->error, status, "%s", inner.message);
}

static void transform(const toile_pose *pose, double scale, const double *from, int count, double *to) {
    for (size_t i = 0; i < 3 * (size_t)count; i += 3) {
        double scaled[3] = {scale * from[i], scale * from[i + 1], scale * from[i + 2]};
        toile_pose_apply(pose, scaled, to + i);
    }
}

/* ---- garments ---- */

/* A resolution is a pair, or one number for the longer side with squares kept as square as they can be. */
static void read_resolution(const loader *l, const json_t *grid, const double size[2], int counts[2]) {
    const json_t *value = json_object_get(grid, "resolution");
    if (!value)
        value = json_object_get(l->root, "resolution");
    if (json_is_array(value)) {
        for (size_t i = 0; i < 2; i++)
            counts[i] = (int)json_number_value(json_array_get(value, i));
        return;
    }
    int along = value ? (int)json_number_value(value) : RESOLUTION;
    double longer = fmax(size[0], size[1]);
    for (int i = 0; i < 2; i++) {
        counts[i] = 1 + (int)lround((along - 1) * (size[i] / longer));
        if (counts[i] < 2)
            counts[i] = 2;
    }
}

static toile_status load_grid(const loader *l, const json_t *object, const toile_place *place, garment *g) {
    const json_t *value = json_object_get(object, "grid");
    toile_place here = {place, "grid", 0}, fabric_place = {place, "fabric", 0};
    static const char *const DIAGONALS[] = {"alternate", "left", "right"};
    toile_grid grid = {.name = g->name};
    int counts[2];
    read_vector(value, "size", 2, g->size);
    read_resolution(l, value, g->size, counts);
    g->nu = grid.nu = counts[0];
    g->nv = grid.nv = counts[1];
    while (strcmp(DIAGONALS[grid.diagonals], read_text(value, "diagonals", "alternate")) != 0)
        grid.diagonals++;

    toile_key key = {0};
    read_place(object, &key);
    toile_pose pose = toile_pose_from(key.origin, key.rotate);
    toile_pose_apply(&pose, (double[3]){-g->size[0] / 2, -g->size[1] / 2, 0}, grid.origin);
    toile_pose_turn(&pose, (double[3]){g->size[0], 0, 0}, grid.u_axis);
    toile_pose_turn(&pose, (double[3]){0, g->size[1], 0}, grid.v_axis);

    toile_status status = use_fabric(l, json_object_get(object, "fabric"), &fabric_place, &grid.fabric);
    if (status != TOILE_OK)
        return status;
    status = toile_add_grid(l->scene->world, &grid, &g->index);
    if (status < 0)
        return world_refuses(l, &here, status);

    g->vertex_count = g->nu * g->nv;
    g->start = toile_alloc(l->memory, (size_t)g->vertex_count, 3 * sizeof *g->start);
    if (!g->start)
        return no_memory(l);
    for (int j = 0, v = 0; j < g->nv; j++)
        for (int i = 0; i < g->nu; i++, v++)
            for (int k = 0; k < 3; k++)
                g->start[3 * v + k] =
                    grid.origin[k] + grid.u_axis[k] * i / (g->nu - 1) + grid.v_axis[k] * j / (g->nv - 1);
    return TOILE_OK;
}

/* Fabric and rest scales of every panel: the garment's, then what "panels" says. */
static toile_status load_panels(const loader *l, const json_t *object, const toile_place *place,
                                const toile_obj *obj, int *fabrics, double *scales) {
    const json_t *panels = json_object_get(object, "panels");
    toile_place fabric_place = {place, "fabric", 0}, panels_place = {place, "panels", 0};
    int fabric;
    toile_status status = use_fabric(l, json_object_get(object, "fabric"), &fabric_place, &fabric);
    if (status != TOILE_OK)
        return status;
    for (int i = 0; i < obj->panel_count; i++) {
        fabrics[i] = fabric;
        scales[2 * i] = scales[2 * i + 1] = 1;
    }
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)panels, key, value) {
        toile_place here = {&panels_place, key, 0}, inside = {&here, "fabric", 0};
        int i = 0;
        while (i < obj->panel_count && strcmp(obj->panel_names[i], key) != 0)
            i++;
        if (i == obj->panel_count) {
            char text[600];
            toile_known_names(key, (const char *const *)obj->panel_names, obj->panel_count, text,
                              sizeof text);
            return REFUSE(&here, "%s has no such panel; %s", obj->path, text);
        }
        const json_t *own = json_object_get(value, "fabric");
        if (own)
            status = use_fabric(l, own, &inside, &fabrics[i]);
        if (status != TOILE_OK)
            return status;
        read_vector(value, "scale", 2, scales + 2 * i);
    }
    return TOILE_OK;
}

/* Material coordinates that are not in metres are the commonest mistake with unwrapped meshes. */
static void warn_of_area(const loader *l, const garment *g, const toile_obj *obj, const double *corner_uv) {
    double space = toile_obj_area(obj, g->start, 3, true),
           material = toile_obj_area(obj, corner_uv, 2, false);
    char line[300];
    if (!l->scene->hooks.log || (material > space / 4 && material < space * 4))
        return;
    snprintf(line, sizeof line,
             "garment \"%.64s\": its material coordinates cover %.3g m^2 but it starts with %.3g m^2; "
             "if they are not in metres, give \"uv_scale\" (here about %.3g)",
             g->name, material, space, sqrt(space / material));
    l->scene->hooks.log(l->scene->hooks.user, 1, line);
}

static toile_status load_mesh(loader *l, const json_t *object, const toile_place *place, garment *g) {
    toile_status status = TOILE_OK;
    toile_obj obj = {0};
    double *corner_uv = NULL, *panel_scales = NULL, scale = 1, uv_scale = 1;
    int *panel_fabrics = NULL;
    toile_key key = {0};
    toile_place here = {place, "obj", 0};
    char *path = path_of(l->scene, l->memory, read_text(object, "obj", ""));
    if (!path) {
        status = no_memory(l);
        goto out;
    }
    status = blame(l, &here, toile_obj_read(l->memory, path, &obj, l->error));
    if (status != TOILE_OK)
        goto out;
    l->files = toile_hash(l->files, &obj.hash, sizeof obj.hash);
    read_number(object, "scale", &scale);
    read_number(object, "uv_scale", &uv_scale);
    status = toile_obj_check(l->memory, &obj, scale, true, l->error);
    if (status != TOILE_OK)
        goto out;

    g->vertex_count = obj.vertex_count;
    g->start = toile_alloc(l->memory, (size_t)obj.vertex_count, 3 * sizeof *g->start);
    corner_uv = toile_alloc(l->memory, (size_t)obj.corner_count, 2 * sizeof *corner_uv);
    panel_fabrics = toile_alloc(l->memory, (size_t)obj.panel_count, sizeof *panel_fabrics);
    panel_scales = toile_alloc(l->memory, (size_t)obj.panel_count, 2 * sizeof *panel_scales);
    if (!g->start || !corner_uv || !panel_fabrics || !panel_scales) {
        status = no_memory(l);
        goto out;
    }
    read_place(object, &key);
    toile_pose pose = toile_pose_from(key.origin, key.rotate);
    transform(&pose, scale, obj.positions, obj.vertex_count, g->start);
    if (strcmp(read_text(object, "uv", "file"), "flat") == 0)
        status = toile_obj_uv_flat(l->memory, &obj, scale * uv_scale, corner_uv, l->error);
    else
        status = toile_obj_uv_from_file(&obj, uv_scale, corner_uv, l->error);
    if (status != TOILE_OK)
        goto out;
    warn_of_area(l, g, &obj, corner_uv);
    status = load_panels(l, object, place, &obj, panel_fabrics, panel_scales);
    if (status != TOILE_OK)
        goto out;

    toile_mesh mesh = {
        .name = g->name,
        .vertex_count = obj.vertex_count,
        .positions = g->start,
        .face_count = obj.face_count,
        .face_sizes = obj.face_sizes,
        .face_vertices = obj.corner_vertices,
        .corner_uv = corner_uv,
        .panel_count = obj.panel_count,
        .panel_names = (const char *const *)obj.panel_names,
        .panel_fabrics = panel_fabrics,
        .panel_scales = panel_scales,
        .face_panels = obj.face_panels,
    };
    read_bool(object, "keep_start_angles", &mesh.keep_start_angles);
    status = toile_add_mesh(l->scene->world, &mesh, &g->index);
    if (status < 0)
        status = world_refuses(l, &here, status);
    else
        status = TOILE_OK;
out:
    toile_free(l->memory, path);
    toile_free(l->memory, corner_uv);
    toile_free(l->memory, panel_fabrics);
    toile_free(l->memory, panel_scales);
    toile_obj_free(l->memory, &obj);
    return status;
}

static toile_status load_garments(loader *l) {
    toile_scene *scene = l->scene;
    const json_t *list = json_object_get(l->root, "garments");
    toile_place place = {&WHOLE, "garments", 0};
    size_t count = json_array_size(list);
    scene->garments = toile_alloc(l->memory, count, sizeof *scene->garments);
    if (!scene->garments)
        return no_memory(l);
    scene->garment_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        toile_place here = {&place, NULL, i};
        garment *g = &scene->garments[i];
        toile_status status = take_name(l, object, &here, name_of_garment, "garment", &g->name);
        if (status == TOILE_OK)
            status = json_object_get(object, "grid") ? load_grid(l, object, &here, g)
                                                     : load_mesh(l, object, &here, g);
        if (status != TOILE_OK)
            return status;
    }
    return TOILE_OK;
}

/* ---- motions ---- */

/* Keys take what they do not say from `rest`. */
static toile_status load_motion(const loader *l, const json_t *object, const toile_place *place,
                                const char *origin, toile_motion *motion) {
    const json_t *value = json_object_get(object, "motion"), *keys = json_object_get(value, "keys");
    toile_place motion_place = {place, "motion", 0}, keys_place = {&motion_place, "keys", 0};
    if (!value)
        return TOILE_OK;
    motion->smooth = strcmp(read_text(value, "interpolation", "linear"), "smooth") == 0;
    motion->keys = toile_alloc(l->memory, json_array_size(keys), sizeof *motion->keys);
    if (!motion->keys)
        return no_memory(l);
    motion->key_count = (int)json_array_size(keys);
    for (int i = 0; i < motion->key_count; i++) {
        const json_t *item = json_array_get(keys, (size_t)i);
        toile_key *key = &motion->keys[i];
        *key = motion->rest;
        read_number(item, "frame", &key->frame);
        read_vector(item, origin, 3, key->origin);
        read_vector(item, "rotate", 3, key->rotate);
        if (i > 0 && !(key->frame > key[-1].frame)) {
            toile_place item_place = {&keys_place, NULL, (size_t)i}, here = {&item_place, "frame", 0};
            return REFUSE(&here, "found %g after %g; frames increase from key to key", key->frame,
                          key[-1].frame);
        }
    }
    return TOILE_OK;
}

/* ---- colliders ---- */

static toile_status take_obj(toile_memory *memory, const toile_obj *obj, collider *c, toile_error *error) {
    if (c->local && (obj->vertex_count != c->vertex_count || obj->face_count != c->face_count))
        return toile_fail(error, TOILE_INVALID,
                          "%s: has %d vertices and %d faces; the first file of the sequence has %d "
                          "and %d, and all must be equal",
                          obj->path, obj->vertex_count, obj->face_count, c->vertex_count, c->face_count);
    if (!c->local) {
        c->vertex_count = obj->vertex_count;
        c->face_count = obj->face_count;
        c->local = toile_alloc(memory, (size_t)obj->vertex_count, 3 * sizeof *c->local);
        c->moved = toile_alloc(memory, (size_t)obj->vertex_count, 3 * sizeof *c->moved);
        c->triangles = toile_alloc(memory, 2 * (size_t)obj->face_count, 3 * sizeof *c->triangles);
        if (!c->local || !c->moved || !c->triangles)
            return toile_fail_memory(error, obj->path);
        const int *corner = obj->corner_vertices;
        for (int f = 0; f < obj->face_count; corner += obj->face_sizes[f++])
            for (int k = 2; k < obj->face_sizes[f]; k++) {
                int *triangle = c->triangles + 3 * (size_t)c->triangle_count++;
                triangle[0] = corner[0];
                triangle[1] = corner[k - 1];
                triangle[2] = corner[k];
            }
    }
    for (size_t i = 0; i < 3 * (size_t)obj->vertex_count; i++)
        c->local[i] = c->scale * obj->positions[i];
    return TOILE_OK;
}

static char *sequence_path(toile_memory *memory, const collider *c, int number) {
    size_t size = strlen(c->before) + strlen(c->after) + (size_t)c->digits + 16;
    char *path = toile_alloc(memory, size, 1);
    if (path)
        snprintf(path, size, "%s%0*d%s", c->before, c->digits, number, c->after);
    return path;
}

/* Reads the file that a sequence shows at a frame, unless it is there already; tells whether it was read. */
static toile_status read_sequence(toile_scene *scene, collider *c, int frame, bool *read,
                                  toile_error *error) {
    toile_status status = TOILE_OK;
    toile_obj obj = {0};
    int number = frame;
    if (c->hold)
        number = frame < c->first_file ? c->first_file : frame > c->last_file ? c->last_file : frame;
    *read = !c->local || number != c->file;
    if (!*read)
        return TOILE_OK;
    char *path = sequence_path(&scene->memory, c, number);
    if (!path) {
        status = toile_fail_memory(error, "a file name");
        goto out;
    }
    /* Skin may fold to nothing in the course of a motion: only the first file must be a clean surface. */
    status = toile_obj_read(&scene->memory, path, &obj, error);
    if (status == TOILE_OK)
        status = c->local ? toile_obj_check_positions(&obj, c->scale, error)
                          : toile_obj_check(&scene->memory, &obj, c->scale, false, error);
    if (status == TOILE_OK)
        status = take_obj(&scene->memory, &obj, c, error);
    if (status == TOILE_OK)
        c->file = number;
out:
    toile_free(&scene->memory, path);
    toile_obj_free(&scene->memory, &obj);
    return status;
}

/* Splits the name at its # signs and finds how far the files go. All their names and sizes are hashed. */
static toile_status find_sequence(loader *l, const json_t *object, const toile_place *place, collider *c) {
    const char *pattern = read_text(object, "obj_sequence", "");
    size_t start = strcspn(pattern, "#"), digits = strspn(pattern + start, "#");
    toile_place here = {place, "obj_sequence", 0};
    if (digits == 0 || digits > 9 || strchr(pattern + start + digits, '#'))
        return REFUSE(&here,
                      "found \"%.64s\"; a sequence has one group of # signs that stands for the frame, as in "
                      "body_####.obj",
                      pattern);
    c->sequence = true;
    c->digits = (int)digits;
    c->before = path_of(l->scene, l->memory, pattern);
    c->after = toile_copy_text(l->memory, pattern + start + digits);
    if (!c->before || !c->after)
        return no_memory(l);
    c->before[strlen(c->before) - strlen(pattern) + start] = 0;
    c->first_file = l->scene->first;
    read_int(object, "sequence_first", &c->first_file);
    read_bool(object, "hold", &c->hold);

    struct stat info;
    for (c->last_file = c->first_file - 1; c->last_file < INT_MAX / 2; c->last_file++) {
        char *path = sequence_path(l->memory, c, c->last_file + 1);
        if (!path)
            return no_memory(l);
        bool there = stat(path, &info) == 0;
        if (there) {
            uint64_t size = (uint64_t)info.st_size;
            const char *name = strrchr(path, '/');
            name = name ? name + 1 : path;
            l->files = toile_hash(toile_hash(l->files, name, strlen(name)), &size, sizeof size);
        }
        toile_free(l->memory, path);
        if (!there)
            break;
    }

    /* Better now than in the middle of a bake. */
    int missing = l->scene->first < c->first_file ? l->scene->first : c->last_file + 1;
    bool lacks = c->hold ? c->last_file < c->first_file : missing <= l->scene->last;
    if (!lacks)
        return TOILE_OK;
    char *path = sequence_path(l->memory, c, missing);
    if (!path)
        return no_memory(l);
    toile_status status = toile_place_fail(&l->source, &here, l->error, TOILE_IO,
                                           "there is no %s; give a file for every frame, or \"hold\": true "
                                           "to keep the first and last ones that are there",
                                           path);
    toile_free(l->memory, path);
    return status;
}

static toile_status load_collider_mesh(loader *l, const json_t *object, const toile_place *place,
                                       collider *c) {
    toile_status status;
    toile_obj obj = {0};
    c->scale = 1;
    read_number(object, "scale", &c->scale);
    if (json_object_get(object, "obj_sequence")) {
        toile_place here = {place, "obj_sequence", 0};
        bool read;
        status = find_sequence(l, object, place, c);
        return status != TOILE_OK
                   ? status
                   : blame(l, &here, read_sequence(l->scene, c, l->scene->first, &read, l->error));
    }
    toile_place here = {place, "obj", 0};
    char *path = path_of(l->scene, l->memory, read_text(object, "obj", ""));
    if (!path)
        return no_memory(l);
    status = blame(l, &here, toile_obj_read(l->memory, path, &obj, l->error));
    if (status == TOILE_OK)
        status = toile_obj_check(l->memory, &obj, c->scale, false, l->error);
    if (status == TOILE_OK)
        status = take_obj(l->memory, &obj, c, l->error);
    l->files = toile_hash(l->files, &obj.hash, sizeof obj.hash);
    toile_free(l->memory, path);
    toile_obj_free(l->memory, &obj);
    return status;
}

static toile_status load_collider(loader *l, const json_t *object, const toile_place *place, collider *c) {
    static const char *const SHAPES[] = {
        [TOILE_SPHERE] = "sphere", [TOILE_BOX] = "box",     [TOILE_CAPSULE] = "capsule",
        [TOILE_CYLINDER] = "cylinder", [TOILE_PLANE] = "plane", [TOILE_MESH] = "mesh"};
    toile_collider made = {.name = c->name};
    while (strcmp(SHAPES[c->shape], read_text(object, "shape", "")) != 0)
        c->shape++;
    made.shape = c->shape;

    /* Sizes of a scene are whole lengths, those of the world half lengths. */
    if (c->shape == TOILE_BOX) {
        read_vector(object, "size", 3, c->size);
        for (int i = 0; i < 3; i++)
            c->size[i] /= 2;
    } else if (c->shape != TOILE_MESH) {
        read_number(object, "radius", &c->size[0]);
        read_number(object, "length", &c->size[1]);
        c->size[1] /= 2;
    }
    memcpy(made.size, c->size, sizeof made.size);

    read_number(object, "thickness", &made.thickness);
    double friction = FRICTION;
    read_number(object, "friction", &friction);
    read_number(object, "friction_kinetic", &friction);
    made.friction_static = friction;
    read_number(object, "friction_static", &made.friction_static);
    made.friction_kinetic = json_object_get(object, "friction_kinetic") ? friction : made.friction_static;
    toile_place friction_place = {place, "friction_kinetic", 0};
    if (made.friction_kinetic > made.friction_static)
        return REFUSE(&friction_place, "found %g; it is not greater than friction_static, %g",
                      made.friction_kinetic, made.friction_static);

    read_place(object, &c->motion.rest);
    toile_status status = load_motion(l, object, place, "origin", &c->motion);
    if (status != TOILE_OK)
        return status;
    toile_pose pose = toile_motion_at(&c->motion, l->scene->first);
    if (c->shape == TOILE_MESH) {
        status = load_collider_mesh(l, object, place, c);
        if (status != TOILE_OK)
            return status;
        transform(&pose, 1, c->local, c->vertex_count, c->moved);
        made.vertex_count = c->vertex_count;
        made.positions = c->moved;
        made.triangle_count = c->triangle_count;
        made.triangles = c->triangles;
    } else {
        memcpy(made.position, pose.position, sizeof made.position);
        memcpy(made.rotation, pose.rotation, sizeof made.rotation);
    }
    status = toile_add_collider(l->scene->world, &made, &c->index);
    return status < 0 ? world_refuses(l, place, status) : TOILE_OK;
}

static toile_status load_colliders(loader *l) {
    toile_scene *scene = l->scene;
    const json_t *list = json_object_get(l->root, "colliders");
    toile_place place = {&WHOLE, "colliders", 0};
    size_t count = json_array_size(list);
    scene->colliders = toile_alloc(l->memory, count, sizeof *scene->colliders);
    if (!scene->colliders)
        return no_memory(l);
    scene->collider_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        toile_place here = {&place, NULL, i};
        collider *c = &scene->colliders[i];
        toile_status status = take_name(l, object, &here, name_of_collider, "collider", &c->name);
        if (status == TOILE_OK)
            status = load_collider(l, object, &here, c);
        if (status != TOILE_OK)
            return status;
    }
    return TOILE_OK;
}

/* ---- pins ---- */

static double distance(const double *a, const double *b) {
    return hypot(hypot(a[0] - b[0], a[1] - b[1]), a[2] - b[2]);
}

/* Corners ("u0v1") and edges ("u0") of a grid: each letter and digit names the side whose distance counts. A
 * corner is near two sides, an edge near one. */
static void select_on_grid(const garment *g, const char *name, double within, bool *chosen) {
    for (int j = 0, v = 0; j < g->nv; j++)
        for (int i = 0; i < g->nu; i++, v++) {
            double far[2] = {0, 0};
            for (const char *side = name; *side; side += 2) {
                bool along_v = *side == 'v';
                int last = (along_v ? g->nv : g->nu) - 1, at = along_v ? j : i;
                far[along_v] = g->size[along_v] * (side[1] == '0' ? at : last - at) / last;
            }
            /* Ten digits are enough to put a particle that is exactly at the distance inside. */
            if (hypot(far[0], far[1]) <= within * (1 + 1e-10))
                chosen[v] = true;
        }
}

static toile_status select_sides(const loader *l, const json_t *select, const toile_place *place,
                                 const char *key, const garment *g, double within, bool *chosen) {
    const json_t *list = json_object_get(select, key);
    toile_place here = {place, key, 0};
    if (list && g->nu == 0)
        return REFUSE(&here, "garment \"%.64s\" is not a grid; select vertices, box or sphere", g->name);
    for (size_t i = 0; i < json_array_size(list); i++)
        select_on_grid(g, json_string_value(json_array_get(list, i)), within, chosen);
    return TOILE_OK;
}

static toile_status select_vertices(const loader *l, const json_t *select, const toile_place *place,
                                    const garment *g, double within, bool *chosen) {
    const json_t *list = json_object_get(select, "vertices");
    toile_place here = {place, "vertices", 0};
    if (within > 0 && json_array_size(list) > GROWN_MOST)
        return REFUSE(
            &here,
            "found a list of %zu; \"within\" grows at most %d vertices, list all that are held instead",
            json_array_size(list), GROWN_MOST);
    for (size_t i = 0; i < json_array_size(list); i++) {
        int vertex = (int)json_number_value(json_array_get(list, i));
        toile_place item = {&here, NULL, i};
        if (vertex >= g->vertex_count)
            return REFUSE(&item, "found %d; garment \"%.64s\" has vertices 0 to %d", vertex, g->name,
                          g->vertex_count - 1);
        chosen[vertex] = true;
        for (int v = 0; v < g->vertex_count && within > 0; v++)
            if (distance(g->start + 3 * (size_t)v, g->start + 3 * (size_t)vertex) <= within * (1 + 1e-10))
                chosen[v] = true;
    }
    return TOILE_OK;
}

static toile_status select_regions(const loader *l, const json_t *select, const toile_place *place,
                                   const garment *g, bool *chosen) {
    const json_t *box = json_object_get(select, "box"), *sphere = json_object_get(select, "sphere");
    double low[3] = {0}, high[3] = {0}, center[3] = {0}, radius = 0;
    toile_place here = {place, "box", 0};
    for (size_t i = 0; box && i < 3; i++) {
        low[i] = json_number_value(json_array_get(json_array_get(box, 0), i));
        high[i] = json_number_value(json_array_get(json_array_get(box, 1), i));
        if (low[i] > high[i])
            return REFUSE(&here, "found %g to %g along %c; the first corner is the smallest", low[i], high[i],
                          "xyz"[i]);
    }
    read_vector(sphere, "center", 3, center);
    read_number(sphere, "radius", &radius);
    for (int v = 0; v < g->vertex_count; v++) {
        const double *at = g->start + 3 * (size_t)v;
        bool in_box = box != NULL;
        for (int i = 0; i < 3; i++)
            in_box = in_box && at[i] >= low[i] && at[i] <= high[i];
        if (in_box || (sphere && distance(at, center) <= radius))
            chosen[v] = true;
    }
    return TOILE_OK;
}

/* Fills the pin's vertices from its "select": all that any part of it selects. */
static toile_status select_pin(const loader *l, const json_t *object, const toile_place *place,
                               const garment *g, pin *p) {
    const json_t *select = json_object_get(object, "select");
    toile_place here = {place, "select", 0};
    double within = 0, low[3], high[3];
    bool *chosen = toile_alloc(l->memory, (size_t)g->vertex_count, sizeof *chosen);
    if (!chosen)
        return no_memory(l);
    read_number(select, "within", &within);
    toile_status status = select_sides(l, select, &here, "corners", g, within, chosen);
    if (status == TOILE_OK)
        status = select_sides(l, select, &here, "edges", g, within, chosen);
    if (status == TOILE_OK)
        status = select_vertices(l, select, &here, g, within, chosen);
    if (status == TOILE_OK)
        status = select_regions(l, select, &here, g, chosen);
    if (status != TOILE_OK)
        goto out;

    for (int v = 0; v < g->vertex_count; v++)
        p->count += chosen[v];
    if (p->count == 0) {
        for (int k = 0; k < 3; k++)
            low[k] = high[k] = g->start[k];
        for (size_t i = 0; i < 3 * (size_t)g->vertex_count; i++) {
            low[i % 3] = fmin(low[i % 3], g->start[i]);
            high[i % 3] = fmax(high[i % 3], g->start[i]);
        }
        status = REFUSE(&here,
                        "selects none of the %d vertices of \"%.64s\", which starts between [%g, %g, %g] and "
                        "[%g, %g, %g]",
                        g->vertex_count, g->name, low[0], low[1], low[2], high[0], high[1], high[2]);
        goto out;
    }
    p->vertices = toile_alloc(l->memory, (size_t)p->count, sizeof *p->vertices);
    p->start = toile_alloc(l->memory, (size_t)p->count, 3 * sizeof *p->start);
    p->target = toile_alloc(l->memory, (size_t)p->count, 3 * sizeof *p->target);
    if (!p->vertices || !p->start || !p->target) {
        status = no_memory(l);
        goto out;
    }
    for (int v = 0, n = 0; v < g->vertex_count; v++)
        if (chosen[v]) {
            memcpy(p->start + 3 * (size_t)n, g->start + 3 * (size_t)v, 3 * sizeof *p->start);
            p->vertices[n++] = v;
        }
out:
    toile_free(l->memory, chosen);
    return status;
}

static toile_status load_pin(const loader *l, const json_t *object, const toile_place *place, pin *p) {
    toile_scene *scene = l->scene;
    toile_place garment_place = {place, "garment", 0}, follow_place = {place, "follow", 0};
    const char *name = read_text(object, "garment", "");
    int index = find_name(scene, name_of_garment, scene->garment_count, name);
    if (index < 0)
        return refuse_name(l, &garment_place, name, name_of_garment, scene->garment_count);
    const garment *g = &scene->garments[index];
    toile_status status = select_pin(l, object, place, g, p);
    if (status != TOILE_OK)
        return status;

    p->limited = json_object_get(object, "frames") != NULL;
    status = read_frames(l, object, place, &p->first, &p->last);
    if (status == TOILE_OK)
        status = load_motion(l, object, place, "translate", &p->motion);
    if (status != TOILE_OK)
        return status;

    const char *follow = read_text(object, "follow", NULL);
    if (follow) {
        int followed = find_name(scene, name_of_collider, scene->collider_count, follow);
        if (followed < 0)
            return refuse_name(l, &follow_place, follow, name_of_collider, scene->collider_count);
        p->followed = &scene->colliders[followed];
        if (p->followed->sequence)
            return REFUSE(&follow_place,
                          "found \"%.64s\", a sequence of files, which has no single motion; follow a "
                          "collider that has, or give the pin its own",
                          follow);
    }

    /* Without a point to turn about: the middle of the box around the pin, which no resolution changes. */
    for (int k = 0; k < 3; k++) {
        double low = p->start[k], high = low;
        for (int i = 1; i < p->count; i++) {
            low = fmin(low, p->start[3 * (size_t)i + (size_t)k]);
            high = fmax(high, p->start[3 * (size_t)i + (size_t)k]);
        }
        p->about[k] = (low + high) / 2;
    }
    read_vector(json_object_get(object, "motion"), "about", 3, p->about);

    toile_pin made = {.garment = g->index, .count = p->count, .vertices = p->vertices};
    for (const char *axis = read_text(object, "axes", "xyz"); *axis; axis++)
        made.axes[*axis - 'x'] = true;
    status = toile_add_pin(scene->world, &made, &p->index);
    return status < 0 ? world_refuses(l, place, status) : TOILE_OK;
}

static toile_status load_pins(loader *l) {
    toile_scene *scene = l->scene;
    const json_t *list = json_object_get(l->root, "pins");
    toile_place place = {&WHOLE, "pins", 0};
    size_t count = json_array_size(list);
    scene->pins = toile_alloc(l->memory, count, sizeof *scene->pins);
    if (!scene->pins)
        return no_memory(l);
    scene->pin_count = (int)count;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(list, i);
        toile_place here = {&place, NULL, i};
        pin *p = &scene->pins[i];
        toile_status status = take_name(l, object, &here, name_of_pin, "pin", &p->name);
        if (status == TOILE_OK)
            status = load_pin(l, object, &here, p);
        if (status != TOILE_OK)
            return status;
    }
    return TOILE_OK;
}

/* ---- the scene written out ---- */

/* A value of a settings or fabric struct as JSON. */
static json_t *field_value(const toile_field *field, const void *source) {
    double values[3];
    toile_get_field(field, source, values);
    switch (field->type) {
    case TOILE_FIELD_REAL: return json_real(values[0]);
    case TOILE_FIELD_INT: return json_integer((json_int_t)values[0]);
    case TOILE_FIELD_BOOL: return json_boolean(values[0] != 0);
    case TOILE_FIELD_CHOICE: return json_string(field->choices[(int)values[0]]);
    case TOILE_FIELD_VEC3: return json_pack("[f,f,f]", values[0], values[1], values[2]);
    }
    return NULL;
}

/* Adds every field that an object does not have, from the struct at `source`. */
static bool fill_fields(json_t *object, const toile_field *fields, int count, const void *source) {
    for (int i = 0; i < count; i++)
        if (!json_object_get(object, fields[i].id) &&
            json_object_set_new(object, fields[i].id, field_value(&fields[i], source)) != 0)
            return false;
    return true;
}

/* A fabric by name or object becomes an object with every property: a new reference; null: no memory. */
static json_t *whole_fabric(const json_t *fabrics, const json_t *value) {
    const char *name = json_string_value(value);
    const json_t *given = name ? json_object_get(fabrics, name) : value;
    json_t *whole = given ? json_deep_copy(given) : json_object();
    if (name && !given && json_object_set_new(whole, "base", json_string(name)) != 0)
        goto fail;
    const char *base = read_text(whole, "base", NULL);
    toile_fabric standard = base ? toile_find_fabric(base)->fabric : toile_default_fabric();
    int count;
    const toile_field *fields = toile_fabric_fields(&count);
    if (whole && fill_fields(whole, fields, count, &standard))
        return whole;
fail:
    json_decref(whole);
    return NULL;
}

static bool fill_fabric(const json_t *fabrics, json_t *object, bool always) {
    const json_t *value = json_object_get(object, "fabric");
    return (!value && !always) || json_object_set_new(object, "fabric", whole_fabric(fabrics, value)) == 0;
}

static bool fill_names(const json_t *list, const toile_scene *scene, name_of *of) {
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_object_set_new(json_array_get(list, i), "name", json_string(of(scene, (int)i))) != 0)
            return false;
    return true;
}

/* Writes into the scene what it left to defaults: settings, fabrics, names, frames and resolutions. Reading
 * the result gives the same scene. */
static bool fill_scene(const loader *l) {
    const toile_scene *scene = l->scene;
    json_t *root = l->root, *fabrics = json_object_get(root, "fabrics"), *item;
    const char *key;
    if (!json_object_get(root, "settings") && json_object_set_new(root, "settings", json_object()) != 0)
        return false;
    toile_settings settings = toile_default_settings();
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    bool filled = fill_fields(json_object_get(root, "settings"), fields, count, &settings) &&
                  json_object_set_new(root, "name", json_string(scene->name)) == 0 &&
                  json_object_set_new(root, "fps", json_real(scene->fps)) == 0 &&
                  json_object_set_new(root, "frames", json_pack("[i,i]", scene->first, scene->last)) == 0 &&
                  fill_names(json_object_get(root, "garments"), scene, name_of_garment) &&
                  fill_names(json_object_get(root, "colliders"), scene, name_of_collider) &&
                  fill_names(json_object_get(root, "pins"), scene, name_of_pin);
    for (int i = 0; filled && i < scene->garment_count; i++) {
        json_t *object = json_array_get(json_object_get(root, "garments"), (size_t)i);
        json_t *grid = json_object_get(object, "grid");
        const garment *g = &scene->garments[i];
        if (grid)
            filled = json_object_set_new(grid, "resolution", json_pack("[i,i]", g->nu, g->nv)) == 0;
        filled = filled && fill_fabric(fabrics, object, true);
        json_object_foreach(json_object_get(object, "panels"), key, item) {
            filled = filled && fill_fabric(fabrics, item, false);
        }
    }
    json_object_foreach(fabrics, key, item) {
        toile_fabric standard = toile_default_fabric();
        const char *base = read_text(item, "base", NULL);
        if (base)
            standard = toile_find_fabric(base)->fabric;
        fields = toile_fabric_fields(&count);
        filled = filled && fill_fields(item, fields, count, &standard);
    }
    return filled;
}

/* Rewrites the real numbers of a JSON text with the fewest digits that read back the same: 0.22, not
 * 0.22000000000000000. The text only gets shorter. */
static void shorten_numbers(char *text) {
    const char *from = text;
    char *to = text;
    while (*from) {
        if (*from == '"') {
            do {
                if (*from == '\\')
                    *to++ = *from++;
                *to++ = *from++;
            } while (*from != '"');
            *to++ = *from++;
            continue;
        }
        size_t length = strspn(from, "+-.0123456789eE");
        char number[64];
        if (length == 0 || length >= sizeof number || !memchr(from, '.', length)) {
            *to++ = *from++;
            for (; length > 1; length--)
                *to++ = *from++;
            continue;
        }
        double value = strtod(from, NULL);
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(number, sizeof number, "%.*g", digits, value);
            if (strtod(number, NULL) == value)
                break;
        }
        if (!strpbrk(number, ".e"))
            strcat(number, ".0");
        if (strlen(number) > length)
            snprintf(number, sizeof number, "%.*s", (int)length, from);
        memcpy(to, number, strlen(number));
        to += strlen(number);
        from += length;
    }
    *to = 0;
}

static toile_status write_resolved(const loader *l) {
    char *text = fill_scene(l) ? json_dumps(l->root, JSON_INDENT(2)) : NULL;
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", NULL);
    if (text && plain) {
        locale_t before = uselocale(plain);
        shorten_numbers(text);
        uselocale(before);
        l->scene->resolved = toile_copy_text(l->memory, text);
    }
    if (plain)
        freelocale(plain);
    free(text);
    return l->scene->resolved ? TOILE_OK : no_memory(l);
}

/* Of the scene as it is written out, less what does not decide the result. */
static toile_status take_fingerprint(const loader *l) {
    static const char *const LEFT_OUT[] = {"$schema", "name", "description", "frames", "resolution"};
    toile_status status = TOILE_OK;
    json_t *copy = json_deep_copy(l->root);
    for (size_t i = 0; i < sizeof LEFT_OUT / sizeof *LEFT_OUT; i++)
        json_object_del(copy, LEFT_OUT[i]);
    json_object_del(json_object_get(copy, "settings"), "threads");
    char *text = json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS);
    if (text)
        l->scene->fingerprint = toile_hash(l->files, text, strlen(text));
    else
        status = no_memory(l);
    free(text);
    json_decref(copy);
    return status;
}

/* ---- loading ---- */

static toile_status parse(loader *l, const char *path, const char *const *sets, int set_count) {
    size_t size;
    toile_status status = toile_read_file(l->memory, path, SCENE_MOST, &l->text, &size, l->error);
    if (status != TOILE_OK)
        return status;
    /* Some editors begin files with a byte order mark, which JSON has not. */
    size_t mark = size >= 3 && memcmp(l->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    l->source = (toile_source){.file = path, .text = l->text + mark, .size = size - mark};
    json_error_t problem;
    l->root = json_loadb(l->source.text, l->source.size, JSON_REJECT_DUPLICATES, &problem);
    if (!l->root)
        return toile_fail(
            l->error, json_error_code(&problem) == json_error_out_of_memory ? TOILE_NO_MEMORY : TOILE_INVALID,
            "%s:%d: not a scene in JSON: %s", path, problem.line > 0 ? problem.line : 1, problem.text);

    l->sets = toile_alloc(l->memory, (size_t)set_count, sizeof *l->sets);
    if (!l->sets)
        return no_memory(l);
    l->source.sets = l->sets;
    if (set_count > 0 && !json_is_object(l->root))
        set_count = 0; /* the form is refused below */
    for (int i = 0; i < set_count; i++) {
        status = apply_set(l, &l->sets[i], sets[i]);
        if (status != TOILE_OK)
            return status;
        l->source.set_count = i + 1;
    }
    return toile_scene_check_form(&l->source, l->root, l->error);
}

/* Name, folder, rate and range. */
static toile_status load_head(const loader *l, const char *path) {
    toile_scene *scene = l->scene;
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    char stem[129];
    size_t length = strcspn(file, ".");
    snprintf(stem, sizeof stem, "%.*s", (int)(length < 128 ? length : 128), file);
    scene->fps = 24;
    scene->first = 1;
    scene->last = 100;
    read_number(l->root, "fps", &scene->fps);
    toile_status status = read_frames(l, l->root, &WHOLE, &scene->first, &scene->last);
    if (status != TOILE_OK)
        return status;
    scene->frame = scene->first;
    scene->name = toile_copy_text(l->memory, read_text(l->root, "name", *stem ? stem : "scene"));
    scene->folder = toile_copy_text(l->memory, path);
    if (!scene->name || !scene->folder)
        return no_memory(l);
    scene->folder[file - path] = 0;
    return TOILE_OK;
}

static toile_status build(const loader *l) {
    toile_scene *scene = l->scene;
    toile_status status = toile_build(scene->world);
    if (status < 0)
        return world_refuses(l, &WHOLE, status);
    for (int i = 0; i < scene->garment_count; i++) {
        toile_free(&scene->memory, scene->garments[i].start);
        scene->garments[i].start = NULL;
    }
    return TOILE_OK;
}

toile_status toile_scene_load(const toile_hooks *hooks, const char *path, const char *const *sets,
                              int set_count, toile_scene **scene, toile_error *error) {
    if (!path || !scene || set_count < 0 || (set_count > 0 && !sets))
        return toile_fail(error, TOILE_MISUSE, "toile_scene_load needs a path and a place for the scene");
    toile_error unwanted;
    toile_memory memory;
    toile_allocator allocator = {0};
    if (hooks)
        allocator = (toile_allocator){hooks->allocate, hooks->release, hooks->user};
    toile_memory_init(&memory, &allocator);
    loader l = {.error = error ? error : &unwanted, .files = TOILE_HASH_SEED};
    *scene = NULL;
    l.scene = toile_alloc(&memory, 1, sizeof *l.scene);
    if (!l.scene)
        return toile_fail_memory(error, "the scene");
    l.scene->memory = memory;
    l.memory = &l.scene->memory;
    if (hooks)
        l.scene->hooks = *hooks;

    toile_status status = parse(&l, path, sets, set_count);
    if (status == TOILE_OK)
        status = load_head(&l, path);
    if (status == TOILE_OK && toile_create(hooks, &l.scene->world) < 0)
        status = no_memory(&l);
    if (status == TOILE_OK)
        status = load_settings(&l);
    if (status == TOILE_OK)
        status = check_fabrics(&l);
    if (status == TOILE_OK)
        status = load_garments(&l);
    if (status == TOILE_OK)
        status = load_colliders(&l);
    if (status == TOILE_OK)
        status = load_pins(&l);
    if (status == TOILE_OK)
        status = build(&l);
    if (status == TOILE_OK)
        status = write_resolved(&l);
    if (status == TOILE_OK)
        status = take_fingerprint(&l);

    json_decref(l.root);
    toile_free(l.memory, l.text);
    toile_free(l.memory, l.sets);
    toile_free(l.memory, l.fabrics);
    if (status == TOILE_OK)
        *scene = l.scene;
    else
        toile_scene_free(l.scene);
    return status;
}

void toile_scene_free(toile_scene *scene) {
    if (!scene)
        return;
    toile_memory memory = scene->memory;
    toile_destroy(scene->world);
    for (int i = 0; i < scene->garment_count; i++) {
        toile_free(&memory, scene->garments[i].name);
        toile_free(&memory, scene->garments[i].start);
    }
    for (int i = 0; i < scene->collider_count; i++) {
        collider *c = &scene->colliders[i];
        toile_free(&memory, c->name);
        toile_free(&memory, c->motion.keys);
        toile_free(&memory, c->local);
        toile_free(&memory, c->moved);
        toile_free(&memory, c->triangles);
        toile_free(&memory, c->before);
        toile_free(&memory, c->after);
    }
    for (int i = 0; i < scene->pin_count; i++) {
        pin *p = &scene->pins[i];
        toile_free(&memory, p->name);
        toile_free(&memory, p->motion.keys);
        toile_free(&memory, p->vertices);
        toile_free(&memory, p->start);
        toile_free(&memory, p->target);
    }
    toile_free(&memory, scene->garments);
    toile_free(&memory, scene->colliders);
    toile_free(&memory, scene->pins);
    toile_free(&memory, scene->name);
    toile_free(&memory, scene->folder);
    toile_free(&memory, scene->resolved);
    toile_free(&memory, scene);
}

toile_world *toile_scene_world(const toile_scene *scene) {
    return scene->world;
}

const char *toile_scene_name(const toile_scene *scene) {
    return scene->name;
}

double toile_scene_fps(const toile_scene *scene) {
    return scene->fps;
}

int toile_scene_first_frame(const toile_scene *scene) {
    return scene->first;
}

int toile_scene_last_frame(const toile_scene *scene) {
    return scene->last;
}

const char *toile_scene_resolved_json(const toile_scene *scene) {
    return scene->resolved;
}

uint64_t toile_scene_fingerprint(const toile_scene *scene) {
    return scene->fingerprint;
}

/* ---- from frame to frame ---- */

static toile_status prepare_collider(toile_scene *scene, collider *c, int frame, toile_error *error) {
    bool read = false;
    toile_status status = TOILE_OK;
    if (c->sequence) {
        toile_error inner;
        status = read_sequence(scene, c, frame, &read, &inner);
        if (status != TOILE_OK)
            return toile_fail(error, status, "frame %d, collider \"%.64s\": %s", frame, c->name,
                              inner.message);
    }
    if (!read && c->motion.key_count == 0)
        return TOILE_OK;
    toile_pose pose = toile_motion_at(&c->motion, frame);
    if (c->shape == TOILE_MESH) {
        transform(&pose, 1, c->local, c->vertex_count, c->moved);
        status = toile_deform_collider(scene->world, c->index, c->moved);
    } else {
        status = toile_pose_collider(scene->world, c->index, pose.position, pose.rotation);
    }
    if (status < 0)
        return toile_fail(error, status, "frame %d, collider \"%.64s\": %s", frame, c->name,
                          toile_message(scene->world));
    return TOILE_OK;
}

static toile_status prepare_pin(toile_scene *scene, pin *p, int frame, toile_error *error) {
    toile_status status = TOILE_OK;
    if (p->limited)
        status = toile_enable_pin(scene->world, p->index, frame >= p->first && frame <= p->last);
    if (status >= 0 && (p->followed || p->motion.key_count > 0)) {
        toile_pose pose;
        if (p->followed) {
            toile_pose start = toile_motion_at(&p->followed->motion, scene->first);
            toile_pose back = toile_pose_inverse(&start), now = toile_motion_at(&p->followed->motion, frame);
            pose = toile_pose_join(&now, &back);
        } else {
            /* Turn about the point, then move: p -> R (p - about) + about + translation. */
            double turned[3];
            pose = toile_motion_at(&p->motion, frame);
            toile_pose_turn(&pose, p->about, turned);
            for (int k = 0; k < 3; k++)
                pose.position[k] += p->about[k] - turned[k];
        }
        transform(&pose, 1, p->start, p->count, p->target);
        status = toile_move_pin(scene->world, p->index, p->target);
    }
    if (status < 0)
        return toile_fail(error, status, "frame %d, pin \"%.64s\": %s", frame, p->name,
                          toile_message(scene->world));
    return TOILE_OK;
}

toile_status toile_scene_prepare(toile_scene *scene, int frame, toile_error *error) {
    toile_status status = TOILE_OK;
    for (int i = 0; i < scene->collider_count && status == TOILE_OK; i++)
        status = prepare_collider(scene, &scene->colliders[i], frame, error);
    for (int i = 0; i < scene->pin_count && status == TOILE_OK; i++)
        status = prepare_pin(scene, &scene->pins[i], frame, error);
    if (status == TOILE_OK)
        scene->frame = frame;
    return status;
}

/* ---- colliders as meshes ---- */

int toile_scene_collider_count(const toile_scene *scene) {
    return scene->collider_count;
}

const char *toile_scene_collider_name(const toile_scene *scene, int index) {
    return scene->colliders[index].name;
}

static bool make_room(toile_memory *memory, collider *c, int vertices, int triangles) {
    c->local = toile_alloc(memory, (size_t)vertices, 3 * sizeof *c->local);
    c->moved = toile_alloc(memory, (size_t)vertices, 3 * sizeof *c->moved);
    c->triangles = toile_alloc(memory, (size_t)triangles, 3 * sizeof *c->triangles);
    if (!c->local || !c->moved || !c->triangles) {
        toile_free(memory, c->local);
        toile_free(memory, c->moved);
        toile_free(memory, c->triangles);
        c->local = c->moved = NULL;
        c->triangles = NULL;
        return false;
    }
    c->vertex_count = vertices;
    c->triangle_count = 0;
    return true;
}

static void add_triangle(collider *c, int a, int b, int d) {
    int *triangle = c->triangles + 3 * c->triangle_count++;
    triangle[0] = a;
    triangle[1] = b;
    triangle[2] = d;
}

/* A closed surface of revolution about z: `rings` circles from bottom to top between two poles. */
static bool revolve(toile_memory *memory, collider *c, const double (*ring)[2], int rings, double bottom,
                    double top) {
    if (!make_room(memory, c, rings * AROUND + 2, 2 * rings * AROUND))
        return false;
    int south = rings * AROUND, north = south + 1;
    c->local[3 * south + 2] = bottom;
    c->local[3 * north + 2] = top;
    for (int r = 0; r < rings; r++)
        for (int k = 0; k < AROUND; k++) {
            double *at = c->local + 3 * (r * AROUND + k), angle = 2 * PI * k / AROUND;
            int next = (k + 1) % AROUND, a = r * AROUND + k, b = r * AROUND + next;
            at[0] = ring[r][0] * cos(angle);
            at[1] = ring[r][0] * sin(angle);
            at[2] = ring[r][1];
            if (r == 0)
                add_triangle(c, south, b, a);
            if (r + 1 == rings) {
                add_triangle(c, north, a, b);
            } else {
                add_triangle(c, a, b, b + AROUND);
                add_triangle(c, a, b + AROUND, a + AROUND);
            }
        }
    return true;
}

static bool tessellate_round(toile_memory *memory, collider *c) {
    double ring[AROUND][2], radius = c->size[0], half = c->size[1];
    int rings = 0;
    if (c->shape == TOILE_CYLINDER) {
        ring[0][0] = ring[1][0] = radius;
        ring[0][1] = -half;
        ring[1][1] = half;
        return revolve(memory, c, ring, 2, -half, half);
    }
    /* Half as many steps from pole to pole as around; a capsule has its equator twice. */
    double straight = c->shape == TOILE_CAPSULE ? half : 0;
    for (int i = 1; i < AROUND / 2; i++) {
        double angle = PI * i / (AROUND / 2), across = radius * sin(angle), up = -radius * cos(angle);
        bool below = i <= AROUND / 4, above = i > AROUND / 4 || (i == AROUND / 4 && straight > 0);
        if (below) {
            ring[rings][0] = across;
            ring[rings++][1] = up - straight;
        }
        if (above) {
            ring[rings][0] = across;
            ring[rings++][1] = up + straight;
        }
    }
    return revolve(memory, c, ring, rings, -radius - straight, radius + straight);
}

static bool tessellate_box(toile_memory *memory, collider *c) {
    static const int FACES[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4},
                                    {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    if (!make_room(memory, c, 8, 12))
        return false;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++)
            c->local[3 * i + k] = i >> k & 1 ? c->size[k] : -c->size[k];
    for (int f = 0; f < 6; f++) {
        add_triangle(c, FACES[f][0], FACES[f][1], FACES[f][2]);
        add_triangle(c, FACES[f][0], FACES[f][2], FACES[f][3]);
    }
    return true;
}

static bool tessellate_plane(toile_memory *memory, collider *c) {
    static const double SQUARE[] = {-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0};
    if (!make_room(memory, c, 4, 2))
        return false;
    memcpy(c->local, SQUARE, sizeof SQUARE);
    add_triangle(c, 0, 1, 2);
    add_triangle(c, 0, 2, 3);
    return true;
}

toile_status toile_scene_collider_mesh(toile_scene *scene, int index, int *vertex_count,
                                       const double **positions, int *triangle_count, const int **triangles,
                                       toile_error *error) {
    if (index < 0 || index >= scene->collider_count)
        return toile_fail(error, TOILE_MISUSE, "there is no collider %d; the scene has %d", index,
                          scene->collider_count);
    collider *c = &scene->colliders[index];
    bool made = c->local != NULL;
    if (!made)
        made = c->shape == TOILE_BOX     ? tessellate_box(&scene->memory, c)
               : c->shape == TOILE_PLANE ? tessellate_plane(&scene->memory, c)
                                         : tessellate_round(&scene->memory, c);
    if (!made)
        return toile_fail_memory(error, "a collider's mesh");
    toile_pose pose = toile_motion_at(&c->motion, scene->frame);
    transform(&pose, 1, c->local, c->vertex_count, c->moved);
    *vertex_count = c->vertex_count;
    *positions = c->moved;
    *triangle_count = c->triangle_count;
    *triangles = c->triangles;
    return TOILE_OK;
}
