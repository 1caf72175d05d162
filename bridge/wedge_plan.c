#include "wedge_plan.h"

#include "bake_change.h"
#include "cache.h"
#include "job.h"
#include "scene.h"
#include "wedge_sets.h"
#include "wedge_vary.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MOST = 96, TRIED_MOST = 64 };
#define PLAN_MOST ((size_t)256 << 20) /* bytes */

/* ---- files ---- */

toile_status toile_make_folder(const char *path, toile_error *error) {
    char part[TOILE_WEDGE_PATH];
    if (snprintf(part, sizeof part, "%s", path) >= (int)sizeof part)
        return toile_fail(error, TOILE_INVALID, "the path is too long: %.200s...", path);
    for (char *at = part + 1;; at++) {
        if (*at && *at != '/')
            continue;
        char kept = *at;
        struct stat info;
        *at = 0;
        if (mkdir(part, 0777) != 0 && !(stat(part, &info) == 0 && S_ISDIR(info.st_mode)))
            return toile_fail(error, TOILE_IO, "the folder %s cannot be made: %s", part,
                              strerror(errno == EEXIST ? ENOTDIR : errno));
        *at = kept;
        if (!kept)
            return TOILE_OK;
    }
}

toile_status toile_write_text(const char *path, const char *text, size_t size, bool executable,
                              toile_error *error) {
    char temporary[TOILE_WEDGE_PATH + 32];
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid());
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, executable ? 0777 : 0666);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool written = file && fwrite(text, 1, size, file) == size && fflush(file) == 0 && fsync(fd) == 0;
    int reason = errno;
    written = file && fclose(file) == 0 && written;
    if (written && rename(temporary, path) == 0)
        return TOILE_OK;
    reason = written ? errno : reason;
    unlink(temporary);
    return toile_fail(error, TOILE_IO, "%s cannot be written: %s; %s", path, strerror(reason),
                      toile_io_advice(reason));
}

void toile_plain_name(const char *text, char *name, size_t size) {
    size_t used = 0;
    for (; *text && used + 1 < size; text++) {
        bool plain = isalnum((unsigned char)*text) || strchr(".-", *text);
        if (plain)
            name[used++] = *text;
        else if (used > 0 && name[used - 1] != '_' && name[used - 1] != '-')
            name[used++] = '_';
    }
    while (used > 0 && strchr("_.-", name[used - 1]))
        used--;
    name[used] = 0;
}

/* ---- the scene in the folder ---- */

static bool names_file(const json_t *root, const char *key) {
    static const char *const LISTS[] = {"garments", "colliders"};
    for (int list = 0; list < 2; list++) {
        size_t i;
        json_t *object;
        json_array_foreach(json_object_get(root, LISTS[list]), i, object) {
            if (json_object_get(object, key))
                return true;
        }
    }
    return false;
}

/* A job never changes, so a second name for it does; across file systems it is copied. */
static toile_status copy_job(const char *from, const char *to, toile_error *error) {
    char temporary[TOILE_WEDGE_PATH + 32], *buffer = NULL;
    enum { PIECE = 1 << 20 };
    bool copied = false;
    snprintf(temporary, sizeof temporary, "%s.%ld.tmp", to, (long)getpid());
    unlink(temporary);
    if (link(from, temporary) == 0) {
        copied = true;
    } else {
        FILE *in = fopen(from, "rb"), *out = in ? fopen(temporary, "wb") : NULL;
        buffer = malloc(PIECE);
        size_t got = 0;
        copied = in && out && buffer;
        while (copied && (got = fread(buffer, 1, PIECE, in)) > 0)
            copied = fwrite(buffer, 1, got, out) == got;
        copied = copied && !ferror(in) && fflush(out) == 0 && fsync(fileno(out)) == 0;
        int reason = errno;
        if (in)
            fclose(in);
        if (out)
            copied = fclose(out) == 0 && copied;
        errno = reason;
        free(buffer);
    }
    if (copied && rename(temporary, to) == 0) {
        unlink(temporary); /* of two names for one file, rename leaves both */
        return TOILE_OK;
    }
    int reason = errno;
    unlink(temporary);
    return toile_fail(error, TOILE_IO, "%s cannot be copied to %s: %s; %s", from, to, strerror(reason),
                      toile_io_advice(reason));
}

static bool is_job(const char *path) {
    unsigned char magic[8] = {0};
    FILE *file = fopen(path, "rb");
    bool hdf5 = file && fread(magic, 1, 8, file) == 8 && memcmp(magic, "\x89HDF\r\n\x1a\n", 8) == 0;
    if (file)
        fclose(file);
    return hdf5;
}

/* What a scene is made of decides how it is brought along. */
typedef enum scene_kind {
    SCENE_JOB,    /* a job: as it is */
    SCENE_MESHES, /* a scene file that names mesh files: packed with them, as a job */
    SCENE_PLAIN,  /* one that names none: as it is, for people to read */
    SCENE_OTHERS  /* one with files that cannot be packed (archives, jobs): named by whole paths */
} scene_kind;

static scene_kind kind_of(const char *path) {
    if (is_job(path))
        return SCENE_JOB;
    json_t *root = json_load_file(path, 0, NULL);
    bool meshes = names_file(root, "obj") || names_file(root, "obj_sequence");
    bool others = names_file(root, "abc") || json_object_get(root, "job");
    json_decref(root);
    return others ? SCENE_OTHERS : meshes ? SCENE_MESHES : SCENE_PLAIN;
}

static const char *name_in_folder(scene_kind kind) {
    return kind == SCENE_JOB || kind == SCENE_MESHES ? "job.h5" : "scene.json";
}

static toile_status copy_scene(const char *from, const char *to, toile_error *error) {
    json_error_t problem;
    json_t *root = json_load_file(from, JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        return toile_fail(error, TOILE_INVALID, "%s:%d: %s", from, problem.line > 0 ? problem.line : 1,
                          problem.text);
    const char *job = json_string_value(json_object_get(root, "job"));
    char *whole = realpath(from, NULL), *slash = whole ? strrchr(whole, '/') : NULL;
    toile_point_to_files(root, from);
    if (job && job[0] != '/' && slash)
        json_object_set_new(root, "job", json_sprintf("%.*s/%s", (int)(slash - whole), whole, job));
    char *text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    toile_status status =
        text ? toile_write_text(to, text, strlen(text), false, error) : toile_fail_memory(error, "the scene");
    free(text);
    free(whole);
    json_decref(root);
    return status;
}

static toile_status bring_scene(const toile_plan_request *request, scene_kind kind, toile_error *error) {
    char target[TOILE_WEDGE_PATH];
    snprintf(target, sizeof target, "%.4000s/%s", request->folder, name_in_folder(kind));
    switch (kind) {
    case SCENE_JOB: return copy_job(request->scene_path, target, error);
    case SCENE_MESHES: return toile_job_pack(request->scene_path, NULL, 0, target, error);
    default: return copy_scene(request->scene_path, target, error);
    }
}

/* ---- names ---- */

static void name_wedge(const json_t *entry, int index, int digits, char name[NAME_MOST]) {
    char text[1024] = "", plain[NAME_MOST];
    const char *given = json_string_value(json_object_get(entry, "name")), *key;
    json_t *value;
    if (given)
        snprintf(text, sizeof text, "%s", given);
    json_object_foreach(json_object_get(entry, "values"), key, value) {
        const char *dot = strrchr(key, '.');
        char *dumped = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
        size_t used = strlen(text);
        if (!given)
            snprintf(text + used, sizeof text - used, "%s%s-%s", used ? " " : "", dot ? dot + 1 : key,
                     json_is_string(value) ? json_string_value(value)
                     : dumped              ? dumped
                                           : "");
        free(dumped);
    }
    toile_plain_name(text, plain, sizeof plain - 12);
    snprintf(name, NAME_MOST, plain[0] ? "%0*d_%s" : "%0*d", digits, index, plain);
}

/* ---- making ---- */

/* Loads the scene as a wedge has it. `resolved` may be null. */
static toile_status try_wedge(const char *scene_path, const json_t *common, const json_t *own,
                              json_t **resolved, toile_error *error) {
    size_t count = json_array_size(common) + json_array_size(own), n = 0, i;
    const char **sets = calloc(count + 1, sizeof *sets);
    json_t *text;
    toile_scene *scene = NULL;
    if (!sets)
        return toile_fail_memory(error, "the plan");
    json_array_foreach((json_t *)common, i, text) {
        sets[n++] = json_string_value(text);
    }
    json_array_foreach((json_t *)own, i, text) {
        sets[n++] = json_string_value(text);
    }
    toile_status status = toile_scene_load(NULL, scene_path, sets, (int)n, &scene, error);
    if (status >= 0 && resolved) {
        *resolved = json_loads(toile_scene_resolved_json(scene), 0, NULL);
        if (!*resolved)
            status = toile_fail_memory(error, "the scene");
    }
    toile_scene_free(scene);
    free(sets);
    return status;
}

/* Whether a wedge has a value that none before it had. */
static bool has_news(const json_t *values, json_t *seen) {
    bool news = false;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)values, key, value) {
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
        json_t *pair = json_sprintf("%s=%s", key, text ? text : "");
        const char *name = pair ? json_string_value(pair) : NULL;
        if (name && !json_object_get(seen, name)) {
            news = true;
            json_object_set_new(seen, name, json_true());
        }
        json_decref(pair);
        free(text);
    }
    return news;
}

static toile_status plan_wedges(const char *scene_path, const json_t *scene, bool fixed, json_t *combinations,
                                const json_t *common, json_t *wedges, toile_error *error) {
    int count = (int)json_array_size(combinations), digits = 3, tried = 0;
    for (int most = 1000; most <= count - 1; most *= 10)
        digits++;
    json_t *seen = json_object();
    toile_status status = seen ? TOILE_OK : toile_fail_memory(error, "the plan");
    for (int i = 0; i < count && status >= 0; i++) {
        json_t *entry = json_array_get(combinations, (size_t)i), *values = json_object_get(entry, "values");
        json_t *sets = json_array();
        char name[NAME_MOST];
        name_wedge(entry, i, digits, name);
        status =
            sets ? toile_wedge_sets(scene, fixed, values, sets, error) : toile_fail_memory(error, "the plan");
        if (status >= 0 && tried < TRIED_MOST && has_news(values, seen)) {
            toile_error inner;
            tried++;
            if ((status = try_wedge(scene_path, common, sets, NULL, &inner)) < 0)
                toile_fail(error, status, "wedge %s: %.900s", name, inner.message);
        }
        json_t *wedge = json_pack("{s:s, s:O, s:O}", "name", name, "values", values, "set", sets);
        if (status >= 0 && (!wedge || json_array_append(wedges, wedge) != 0))
            status = toile_fail_memory(error, "the plan");
        json_decref(wedge);
        json_decref(sets);
    }
    json_decref(seen);
    return status;
}

static json_t *texts(const char *const *items, int count) {
    json_t *list = json_array();
    for (int i = 0; i < count; i++)
        json_array_append_new(list, json_string(items[i]));
    return list;
}

static json_t *compose(const toile_plan_request *request, const char *scene_name, json_t *common,
                       json_t *wedges) {
    json_t *root = json_pack("{s:i, s:s, s:O, s:o}", "toile_wedge", 1, "scene", scene_name, "common", common,
                             "vary", texts(request->vary, request->vary_count));
    if (request->frames.given)
        json_object_set_new(root, "frames", json_pack("[i,i]", request->frames.first, request->frames.last));
    if (request->random > 0) {
        json_object_set_new(root, "random", json_integer(request->random));
        json_object_set_new(root, "seed", json_integer(request->seed));
    }
    if (request->list_path)
        json_object_set_new(root, "list", json_string(request->list_path));
    json_object_set(root, "wedges", wedges);
    return root;
}

/* A plan that is there already must be the same one. */
static toile_status compare_plan(const toile_plan_request *request, const json_t *root, bool *there,
                                 toile_error *error) {
    toile_plan old;
    *there = false;
    if (!toile_plan_exists(request->folder))
        return TOILE_OK;
    toile_status status = toile_plan_read(request->folder, &old, error);
    if (status < 0)
        return status;
    *there = true;
    char *before = json_dumps(old.root, JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
    char *now = json_dumps(root, JSON_SORT_KEYS | JSON_REAL_PRECISION(12));
    bool same = before && now && strcmp(before, now) == 0;
    free(before);
    free(now);
    toile_plan_free(&old);
    return same ? TOILE_OK
                : toile_fail(error, TOILE_INVALID,
                             "%s has another plan (or it was edited). Bake that one with: toile wedge %s "
                             "--index N; or take another "
                             "folder for this one",
                             request->folder, request->folder);
}

toile_status toile_plan_make(const toile_plan_request *request, toile_plan *plan, char *notes, size_t size,
                             toile_error *error) {
    json_t *combinations = NULL, *scene = NULL, *root = NULL;
    json_t *common = texts(request->sets, request->set_count), *wedges = json_array();
    char path[TOILE_WEDGE_PATH], *text = NULL;
    bool there = false;
    *plan = (toile_plan){0};
    notes[0] = 0;
    toile_status status =
        common && wedges ? toile_vary(request, &combinations, error) : toile_fail_memory(error, "the plan");
    if (status >= 0)
        status = try_wedge(request->scene_path, common, NULL, &scene, error);
    scene_kind kind = status >= 0 ? kind_of(request->scene_path) : SCENE_PLAIN;
    bool fixed = kind == SCENE_JOB || kind == SCENE_MESHES;
    if (status >= 0)
        status = plan_wedges(request->scene_path, scene, fixed, combinations, common, wedges, error);
    if (status >= 0) {
        root = compose(request, name_in_folder(kind), common, wedges);
        status = root ? compare_plan(request, root, &there, error) : toile_fail_memory(error, "the plan");
    }
    /* Only now that all is known to fit: a typing mistake leaves nothing behind. */
    if (status >= 0 && !there)
        status = toile_make_folder(request->folder, error);
    if (status >= 0 && !there)
        status = bring_scene(request, kind, error);
    if (status >= 0 && !there) {
        text = json_dumps(root, JSON_INDENT(1) | JSON_REAL_PRECISION(12));
        snprintf(path, sizeof path, "%.4000s/plan.json", request->folder);
        status = text ? toile_write_text(path, text, strlen(text), false, error)
                      : toile_fail_memory(error, "the plan");
    }
    if (kind == SCENE_OTHERS)
        snprintf(
            notes, size,
            "the scene names files that cannot be packed; they must be at the same place on every machine");
    char own[400] = "";
    if (scene)
        toile_wedge_own_fabrics(scene, own, sizeof own);
    for (int i = 0; own[0] && i < request->vary_count; i++)
        if (strncmp(request->vary[i], "fabric=", 7) == 0 && !notes[0])
            snprintf(notes, size, "panels of %.300s have fabrics of their own, which stay as they are", own);
    if (status >= 0)
        status = toile_plan_read(request->folder, plan, error);
    free(text);
    json_decref(root);
    json_decref(scene);
    json_decref(combinations);
    json_decref(common);
    json_decref(wedges);
    return status;
}

/* ---- reading ---- */

static bool ends_with(const char *text, const char *tail) {
    size_t length = strlen(text), rest = strlen(tail);
    return length >= rest && strcmp(text + length - rest, tail) == 0;
}

static void plan_file(const char *path, char file[TOILE_WEDGE_PATH]) {
    struct stat info;
    bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    size_t length = strlen(path);
    while (folder && length > 1 && path[length - 1] == '/')
        length--;
    snprintf(file, TOILE_WEDGE_PATH, folder ? "%.*s/plan.json" : "%.*s", (int)length, path);
}

bool toile_plan_exists(const char *path) {
    char file[TOILE_WEDGE_PATH];
    plan_file(path, file);
    return ends_with(file, "plan.json") && access(file, F_OK) == 0;
}

static bool all_texts(const json_t *list) {
    size_t i;
    json_t *item;
    json_array_foreach((json_t *)list, i, item) {
        if (!json_is_string(item))
            return false;
    }
    return json_is_array(list);
}

/* A name becomes part of paths, so it may not lead elsewhere. */
static bool is_plain(const char *name) {
    char plain[NAME_MOST * 2];
    if (!name || !*name || strlen(name) >= sizeof plain || name[0] == '.' || name[0] == '-')
        return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == strlen(name);
}

static toile_status check_plan(const toile_plan *plan, const char *file, toile_error *error) {
    const json_t *root = plan->root, *wedges = json_object_get(root, "wedges"),
                 *frames = json_object_get(root, "frames");
    if (json_integer_value(json_object_get(root, "toile_wedge")) != 1)
        return toile_fail(error, TOILE_FORMAT, "%s is not a plan of a wedge (\"toile_wedge\": 1)", file);
    if (!json_is_string(json_object_get(root, "scene")))
        return toile_fail(error, TOILE_INVALID,
                          "%s: \"scene\" names the scene or job, seen from the plan's folder", file);
    if (json_object_get(root, "common") && !all_texts(json_object_get(root, "common")))
        return toile_fail(error, TOILE_INVALID, "%s: \"common\" is a list of texts \"path=value\"", file);
    if (frames && !(json_array_size(frames) == 2 && json_is_integer(json_array_get(frames, 0)) &&
                    json_is_integer(json_array_get(frames, 1))))
        return toile_fail(error, TOILE_INVALID, "%s: \"frames\" is [first, last]", file);
    if (json_array_size(wedges) == 0 || json_array_size(wedges) > TOILE_WEDGES_MOST)
        return toile_fail(error, TOILE_INVALID, "%s: \"wedges\" is a list of 1 to %d", file,
                          TOILE_WEDGES_MOST);
    json_t *names = json_object(), *wedge;
    toile_status status = names ? TOILE_OK : toile_fail_memory(error, "the plan");
    size_t i;
    json_array_foreach((json_t *)wedges, i, wedge) {
        const char *name = json_string_value(json_object_get(wedge, "name"));
        if (status < 0)
            break;
        if (!is_plain(name))
            status = toile_fail(error, TOILE_INVALID,
                                "%s: wedge %zu needs a \"name\" of letters, digits, dots, dashes and "
                                "underscores, beginning with a letter "
                                "or digit",
                                file, i);
        else if (json_object_get(names, name))
            status = toile_fail(error, TOILE_INVALID, "%s: two wedges are called %s", file, name);
        else if (!all_texts(json_object_get(wedge, "set")))
            status = toile_fail(error, TOILE_INVALID,
                                "%s: \"set\" of wedge %s is a list of texts \"path=value\"", file, name);
        else if (json_object_get(wedge, "values") && !json_is_object(json_object_get(wedge, "values")))
            status = toile_fail(error, TOILE_INVALID, "%s: \"values\" of wedge %s is an object", file, name);
        else
            json_object_set_new(names, name, json_true());
    }
    json_decref(names);
    return status;
}

toile_status toile_plan_read(const char *path, toile_plan *plan, toile_error *error) {
    char file[TOILE_WEDGE_PATH];
    struct stat info;
    json_error_t problem;
    *plan = (toile_plan){0};
    plan_file(path, file);
    if (stat(file, &info) != 0)
        return toile_fail(error, TOILE_IO,
                          "%s: there is no plan: %s. Make one with: toile wedge JOB --vary KEY=a,b -o %s",
                          file, strerror(errno), path);
    if ((size_t)info.st_size > PLAN_MOST)
        return toile_fail(error, TOILE_INVALID, "%s is too large for a plan", file);
    plan->root = json_load_file(file, JSON_REJECT_DUPLICATES, &problem);
    if (!plan->root)
        return toile_fail(error, TOILE_INVALID, "%s:%d: %s", file, problem.line > 0 ? problem.line : 1,
                          problem.text);
    toile_status status = check_plan(plan, file, error);
    const char *slash = strrchr(file, '/');
    snprintf(plan->folder, sizeof plan->folder, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
    plan->count = (int)json_array_size(json_object_get(plan->root, "wedges"));
    if (status < 0)
        toile_plan_free(plan);
    return status;
}

void toile_plan_free(toile_plan *plan) {
    json_decref(plan->root);
    *plan = (toile_plan){0};
}

/* ---- of a plan ---- */

static const json_t *wedge_of(const toile_plan *plan, int wedge) {
    return json_array_get(json_object_get(plan->root, "wedges"), (size_t)wedge);
}

const char *toile_plan_name(const toile_plan *plan, int wedge) {
    return json_string_value(json_object_get(wedge_of(plan, wedge), "name"));
}

const json_t *toile_plan_values(const toile_plan *plan, int wedge) {
    return json_object_get(wedge_of(plan, wedge), "values");
}

void toile_plan_path(const toile_plan *plan, int wedge, const char *ending, char path[TOILE_WEDGE_PATH]) {
    const char *name = toile_plan_name(plan, wedge);
    snprintf(path, TOILE_WEDGE_PATH, "%.3600s/%s/%s%s", plan->folder, name, name, ending);
}

void toile_plan_scene(const toile_plan *plan, char path[TOILE_WEDGE_PATH]) {
    const char *scene = json_string_value(json_object_get(plan->root, "scene"));
    snprintf(path, TOILE_WEDGE_PATH, scene[0] == '/' ? "%.0s%s" : "%.2000s/%.2000s", plan->folder, scene);
}

toile_status toile_plan_make_folder(const toile_plan *plan, int wedge, toile_error *error) {
    char path[TOILE_WEDGE_PATH];
    snprintf(path, sizeof path, "%.3600s/%s", plan->folder, toile_plan_name(plan, wedge));
    return toile_make_folder(path, error);
}

const char **toile_plan_sets(const toile_plan *plan, int wedge, int *count) {
    const json_t *lists[] = {json_object_get(plan->root, "common"),
                             json_object_get(wedge_of(plan, wedge), "set")};
    const char **sets = calloc(json_array_size(lists[0]) + json_array_size(lists[1]) + 1, sizeof *sets);
    *count = 0;
    for (int list = 0; sets && list < 2; list++) {
        size_t i;
        json_t *text;
        json_array_foreach((json_t *)lists[list], i, text) {
            sets[(*count)++] = json_string_value(text);
        }
    }
    return sets;
}

toile_frame_range toile_plan_frames(const toile_plan *plan) {
    const json_t *frames = json_object_get(plan->root, "frames");
    return (toile_frame_range){frames != NULL, (int)json_integer_value(json_array_get(frames, 0)),
                               (int)json_integer_value(json_array_get(frames, 1))};
}
