#include "wedge_report.h"

#include "cache.h"
#include "commands.h"
#include "intersect.h"
#include "picture.h"
#include "scene.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

enum {
    FRESH_SECONDS = 30, /* a heartbeat older than this is of a process that is gone */
    JUDGED_MOST = 9,    /* frames in which crossings are counted */
    SHEET_MOST = 8192   /* pixels of the sheet in either direction */
};

/* ---- how far ---- */

static void look_at_heartbeat(const toile_plan *plan, int wedge, toile_wedge_state *s) {
    char path[TOILE_WEDGE_PATH];
    struct stat info;
    toile_plan_path(plan, wedge, ".heartbeat.json", path);
    json_t *beat = json_load_file(path, 0, NULL);
    const char *state = json_string_value(json_object_get(beat, "state"));
    const char *host = json_string_value(json_object_get(beat, "host"));
    const char *message = json_string_value(json_object_get(beat, "message"));
    if (state && host) {
        snprintf(s->host, sizeof s->host, "%s", host);
        bool fresh = stat(path, &info) == 0 && difftime(time(NULL), info.st_mtime) < FRESH_SECONDS;
        if (strcmp(state, "failed") == 0)
            s->name = "failed";
        else if ((strcmp(state, "running") == 0 || strcmp(state, "stopping") == 0) && fresh)
            s->name = "running";
        if (message && strcmp(s->name, "failed") == 0)
            snprintf(s->message, sizeof s->message, "%s", message);
    }
    json_decref(beat);
}

void toile_wedge_look(const toile_plan *plan, int wedge, toile_wedge_state *s) {
    char path[TOILE_WEDGE_PATH];
    toile_memory memory;
    toile_cache *cache = NULL;
    *s = (toile_wedge_state){.name = "waiting"};
    toile_memory_init(&memory, NULL);
    toile_plan_path(plan, wedge, ".h5", path);
    if (toile_cache_open(&memory, path, &cache, NULL) >= 0) {
        const toile_cache_header *header = toile_cache_get_header(cache);
        s->done = toile_cache_frame_count(cache);
        s->frames = header->last_frame - header->first_frame + 1;
        s->complete = s->done >= s->frames;
        s->name = "stopped";
        toile_cache_close(cache, NULL);
    }
    look_at_heartbeat(plan, wedge, s);
    if (s->complete)
        s->name = "complete";
}

/* ---- what came out ---- */

typedef struct row {
    toile_wedge_state state;
    bool shown; /* there is a frame to be seen */
    int frame;  /* that one */
    double steps, rejected, iterations, seconds, stretch, contacts, penetrations, kinetic;
    int64_t crossings, crossings_most; /* of that frame, and the most in any that was looked at */
    int inside;
    bool colliders; /* crossings with colliders and vertices inside were counted, too */
    uint64_t hash;
    double megabytes;
    double low[3], high[3]; /* along the camera's axes */
} row;

typedef struct report {
    const toile_plan *plan;
    int frame, size; /* asked for */
    toile_memory memory;
    toile_error error;
    row *rows;
    char folder[TOILE_WEDGE_PATH];
    json_t *keys; /* what varies, in order */
} report;

static float **read_positions(report *r, toile_cache *cache, int index) {
    const toile_cache_header *header = toile_cache_get_header(cache);
    float **positions = toile_alloc(&r->memory, (size_t)header->garment_count, sizeof *positions);
    toile_status status = positions ? TOILE_OK : toile_fail_memory(&r->error, "a frame");
    for (int g = 0; g < header->garment_count && status >= 0; g++) {
        positions[g] = toile_alloc(&r->memory, 3 * (size_t)header->garments[g].vertex_count, sizeof(float));
        status = positions[g] ? toile_cache_read(cache, index, g, positions[g], NULL, &r->error)
                              : toile_fail_memory(&r->error, "a frame");
    }
    if (status >= 0)
        return positions;
    for (int g = 0; positions && g < header->garment_count; g++)
        toile_free(&r->memory, positions[g]);
    toile_free(&r->memory, positions);
    return NULL;
}

static void free_positions(report *r, toile_cache *cache, float **positions) {
    for (int g = 0; positions && g < toile_cache_get_header(cache)->garment_count; g++)
        toile_free(&r->memory, positions[g]);
    toile_free(&r->memory, positions);
}

static void add_numbers(row *w, const toile_cache_frame *f) {
    w->steps += f->numbers.steps;
    w->rejected += f->numbers.rejected_steps;
    w->iterations += f->numbers.iterations;
    w->seconds += f->numbers.seconds;
    w->stretch = fmax(w->stretch, f->numbers.max_stretch);
    w->penetrations = fmax(w->penetrations, f->numbers.penetrations);
    w->contacts = f->numbers.contacts;
    w->kinetic = f->numbers.kinetic_energy;
    w->hash = f->state_hash;
}

static void reach(row *w, const double *seen) {
    for (int k = 0; k < 3; k++)
        if (fabs(seen[k]) < 1e6) {
            w->low[k] = fmin(w->low[k], seen[k]);
            w->high[k] = fmax(w->high[k], seen[k]);
        }
}

/* The box around the cloth, and around the colliders as far as they are near it, along the camera's axes. */
static void measure_box(row *w, const toile_cache_header *header, float **positions, toile_scene *scene) {
    for (int k = 0; k < 3; k++) {
        w->low[k] = 1e30;
        w->high[k] = -1e30;
    }
    for (int g = 0; g < header->garment_count; g++)
        for (int v = 0; v < header->garments[g].vertex_count; v++) {
            const float *at = positions[g] + 3 * (size_t)v;
            double seen[3];
            toile_camera_see((const double[3]){at[0], at[1], at[2]}, seen);
            reach(w, seen);
        }
    double low[3], high[3], size = 0;
    memcpy(low, w->low, sizeof low);
    memcpy(high, w->high, sizeof high);
    for (int k = 0; k < 3; k++)
        size = fmax(size, high[k] - low[k]);
    for (int c = 0; scene && c < toile_scene_collider_count(scene); c++) {
        int vertices, triangles;
        const double *at;
        const int *corners;
        if (toile_scene_collider_mesh(scene, c, &vertices, &at, &triangles, &corners, NULL) < 0)
            continue;
        for (int v = 0; v < vertices; v++) {
            double seen[3];
            toile_camera_see(at + 3 * (size_t)v, seen);
            for (int k = 0; k < 3; k++)
                seen[k] = fmin(fmax(seen[k], low[k] - 0.3 * size), high[k] + 0.3 * size);
            reach(w, seen);
        }
    }
}

static toile_status judge(report *r, row *w, toile_cache *cache, toile_scene *scene, int index) {
    const toile_cache_header *header = toile_cache_get_header(cache);
    toile_judgement judgement = {0};
    float **positions = read_positions(r, cache, index);
    toile_status status = positions ? TOILE_OK : r->error.status;
    if (status >= 0 && scene)
        status = toile_scene_prepare(scene, header->first_frame + index, &r->error);
    if (status >= 0)
        status = toile_judge_frame(&r->memory, header->garment_count, header->garments,
                                   (const float *const *)positions, scene, &judgement, &r->error);
    if (status >= 0) {
        int64_t pairs = judgement.cloth_pairs + judgement.collider_pairs;
        w->crossings_most = pairs > w->crossings_most ? pairs : w->crossings_most;
        if (header->first_frame + index == w->frame) {
            w->crossings = pairs;
            w->inside = judgement.inside;
            measure_box(w, header, positions, scene);
        }
    }
    free_positions(r, cache, positions);
    return status;
}

/* Figures of one wedge; a cache that cannot be read says so in its row and spoils no other. */
static toile_status gather_frames(report *r, int wedge, toile_cache *cache) {
    row *w = &r->rows[wedge];
    const toile_cache_header *header = toile_cache_get_header(cache);
    int count = toile_cache_frame_count(cache);
    toile_status status = TOILE_OK;
    if (count == 0)
        return TOILE_OK;
    int last = header->first_frame + count - 1;
    w->frame = r->frame < header->first_frame || r->frame > last ? last : r->frame;
    for (int i = 0; i < count && status >= 0; i++) {
        toile_cache_frame frame;
        if ((status = toile_cache_read_frame(cache, i, &frame, &r->error)) >= 0)
            add_numbers(w, &frame);
    }
    toile_error unread;
    toile_scene *scene = toile_open_cache_scene(cache, NULL, &unread);
    w->colliders = scene != NULL;
    for (int i = 0; i < JUDGED_MOST && status >= 0; i++) {
        int index = count > JUDGED_MOST ? (int)((int64_t)(count - 1) * (i + 1) / JUDGED_MOST) : i;
        if (index < count && index != w->frame - header->first_frame)
            status = judge(r, w, cache, scene, index);
    }
    if (status >= 0)
        status = judge(r, w, cache, scene, w->frame - header->first_frame);
    w->shown = status >= 0;
    toile_scene_free(scene);
    return status;
}

static void gather(report *r, int wedge) {
    row *w = &r->rows[wedge];
    char path[TOILE_WEDGE_PATH];
    struct stat info;
    toile_cache *cache = NULL;
    toile_wedge_look(r->plan, wedge, &w->state);
    toile_plan_path(r->plan, wedge, ".h5", path);
    w->megabytes = stat(path, &info) == 0 ? (double)info.st_size / 1e6 : 0;
    if (w->state.frames == 0)
        return;
    toile_status status = toile_cache_open(&r->memory, path, &cache, &r->error);
    if (status >= 0)
        status = gather_frames(r, wedge, cache);
    if (status < 0) {
        w->state.name = "damaged";
        w->state.complete = false;
        snprintf(w->state.message, sizeof w->state.message, "%s", r->error.message);
    }
    toile_cache_close(cache, NULL);
}

/* ---- pictures ---- */

/* Linear colours that differ from each other and from the grey of bodies. */
static const double CLOTH[][3] = {
    {0.13, 0.27, 0.5}, {0.52, 0.16, 0.1}, {0.5, 0.36, 0.08}, {0.1, 0.36, 0.2}, {0.34, 0.14, 0.4}};
static const double BODY[3] = {0.55, 0.52, 0.48};

static toile_status add_meshes(report *r, toile_cache *cache, toile_scene *scene, int frame,
                               toile_picture *picture) {
    const toile_cache_header *header = toile_cache_get_header(cache);
    float **positions = read_positions(r, cache, frame - header->first_frame);
    toile_status status = positions ? TOILE_OK : r->error.status;
    if (status >= 0 && scene)
        status = toile_scene_prepare(scene, frame, &r->error);
    for (int c = 0; scene && status >= 0 && c < toile_scene_collider_count(scene); c++) {
        int vertices, triangles;
        const double *at;
        const int *corners;
        status = toile_scene_collider_mesh(scene, c, &vertices, &at, &triangles, &corners, &r->error);
        if (status >= 0)
            status = toile_picture_add(picture, vertices, at, triangles, corners, BODY, &r->error);
    }
    for (int g = 0; g < header->garment_count && status >= 0; g++) {
        const toile_garment_view *garment = &header->garments[g];
        double *exact = toile_alloc(&r->memory, 3 * (size_t)garment->vertex_count, sizeof *exact);
        if (!exact) {
            status = toile_fail_memory(&r->error, "a picture");
            break;
        }
        for (size_t i = 0; i < 3 * (size_t)garment->vertex_count; i++)
            exact[i] = positions[g][i];
        status = toile_picture_add(picture, garment->vertex_count, exact, garment->triangle_count,
                                   garment->triangles, CLOTH[g % COUNT(CLOTH)], &r->error);
        toile_free(&r->memory, exact);
    }
    free_positions(r, cache, positions);
    return status;
}

static toile_status draw_wedge(report *r, int wedge, const toile_camera *camera, toile_picture *picture,
                               toile_image *image) {
    char path[TOILE_WEDGE_PATH];
    toile_cache *cache = NULL;
    toile_error unread;
    toile_plan_path(r->plan, wedge, ".h5", path);
    toile_status status = toile_cache_open(&r->memory, path, &cache, &r->error);
    toile_scene *scene = status >= 0 ? toile_open_cache_scene(cache, NULL, &unread) : NULL;
    toile_picture_clear(picture);
    if (status >= 0)
        status = add_meshes(r, cache, scene, r->rows[wedge].frame, picture);
    if (status >= 0)
        status = toile_picture_draw(picture, camera, image, &r->error);
    toile_scene_free(scene);
    toile_cache_close(cache, NULL);
    if (status >= 0) {
        snprintf(path, sizeof path, "%.3900s/%s.png", r->folder, toile_plan_name(r->plan, wedge));
        status = toile_image_write_png(&r->memory, image, path, &r->error);
    }
    return status;
}

/* "fabric=denim friction=0.4". */
static void describe_values(const report *r, int wedge, const char *between, char *text, size_t size) {
    const char *key;
    json_t *value;
    text[0] = 0;
    json_object_foreach((json_t *)toile_plan_values(r->plan, wedge), key, value) {
        char *dumped = json_is_string(value)
                           ? NULL
                           : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
        const char *dot = strrchr(key, '.');
        size_t used = strlen(text);
        snprintf(text + used, size - used, "%s%s=%s", used ? between : "", dot ? dot + 1 : key,
                 dumped                  ? dumped
                 : json_is_string(value) ? json_string_value(value)
                                         : "");
        free(dumped);
    }
    if (!text[0])
        snprintf(text, size, "%s", toile_plan_name(r->plan, wedge));
}

typedef struct sheet {
    toile_image image;
    int columns, tile, caption, margin;
} sheet;

static toile_status make_sheet(report *r, sheet *s) {
    int count = r->plan->count;
    s->columns = (int)ceil(sqrt(1.2 * count));
    s->columns = s->columns < 1 ? 1 : s->columns > count ? count : s->columns;
    int rows = (count + s->columns - 1) / s->columns;
    s->tile = r->size;
    s->margin = s->tile / 32 + 1;
    s->caption = s->tile / 5;
    while (s->tile > 16 && (s->columns * (s->tile + s->margin) > SHEET_MOST ||
                            rows * (s->tile + s->caption + s->margin) > SHEET_MOST)) {
        s->tile /= 2;
        s->margin = s->tile / 32 + 1;
        s->caption = s->tile / 5;
    }
    return toile_image_create(&r->memory, s->columns * (s->tile + s->margin) + s->margin,
                              rows * (s->tile + s->caption + s->margin) + s->margin, 255, &s->image,
                              &r->error);
}

/* Half the size is the mean of four pixels. */
static void halve(toile_image *image) {
    int width = image->width / 2, height = image->height / 2;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int i = 0; i < 3; i++) {
                const uint8_t *at =
                    image->rgb + 3 * ((size_t)(2 * y) * (size_t)image->width + (size_t)(2 * x)) + i;
                int sum = at[0] + at[3] + at[3 * (size_t)image->width] + at[3 * (size_t)image->width + 3];
                image->rgb[3 * ((size_t)y * (size_t)width + (size_t)x) + (size_t)i] =
                    (uint8_t)((sum + 2) / 4);
            }
    image->width = width;
    image->height = height;
}

static void put_tile(const report *r, sheet *s, int wedge, toile_image *picture) {
    static const uint8_t DARK[3] = {40, 40, 40}, DIM[3] = {110, 110, 110}, ALARM[3] = {190, 60, 20},
                         EMPTY[3] = {225, 225, 225};
    const row *w = &r->rows[wedge];
    int left = s->margin + wedge % s->columns * (s->tile + s->margin);
    int top = s->margin + wedge / s->columns * (s->tile + s->caption + s->margin);
    char values[512], line[256];
    toile_image_box(&s->image, left, top, s->tile, s->tile, EMPTY);
    if (picture->rgb) {
        while (picture->width > s->tile)
            halve(picture);
        toile_image_copy(picture, &s->image, left, top);
    }
    double letters = s->caption / 4.2, room = s->tile;
    describe_values(r, wedge, "  ", values, sizeof values);
    snprintf(line, sizeof line, "%03d  %.230s", wedge, values);
    toile_image_text(&s->image, left, top + s->tile + 0.25 * letters, letters, room, DARK, line);
    if (w->shown && w->inside)
        snprintf(line, sizeof line, "stretch %.1f%%  %" PRId64 " cross  %d inside", 100 * w->stretch,
                 w->crossings, w->inside);
    else if (w->shown)
        snprintf(line, sizeof line, "stretch %.1f%%  %" PRId64 " cross", 100 * w->stretch, w->crossings);
    else
        snprintf(line, sizeof line, "%s", w->state.name);
    toile_image_text(&s->image, left, top + s->tile + 1.6 * letters, letters, room,
                     w->crossings || w->inside ? ALARM : DIM, line);
    snprintf(line, sizeof line, "%.3g s  frame %d", w->seconds, w->frame);
    if (w->shown)
        toile_image_text(&s->image, left, top + s->tile + 2.95 * letters, letters, room, DIM, line);
    if (!w->state.complete && w->shown) {
        snprintf(line, sizeof line, "%s %d/%d", w->state.name, w->state.done, w->state.frames);
        toile_image_text(&s->image, left + letters / 2, top + letters / 2, letters, room, ALARM, line);
    }
}

static toile_status draw_all(report *r) {
    double low[3] = {1e30, 1e30, 1e30}, high[3] = {-1e30, -1e30, -1e30};
    toile_picture *picture = NULL;
    sheet s = {0};
    for (int w = 0; w < r->plan->count; w++)
        for (int k = 0; r->rows[w].shown && k < 3; k++) {
            low[k] = fmin(low[k], r->rows[w].low[k]);
            high[k] = fmax(high[k], r->rows[w].high[k]);
        }
    for (int k = 0; k < 3; k++)
        if (!(low[k] <= high[k])) /* nothing is there yet */
            low[k] = high[k] = 0;
    /* One camera for all, so that they can be compared. */
    toile_camera camera = toile_camera_to_fit(low, high);
    toile_status status = toile_picture_create(&r->memory, r->size, &picture, &r->error);
    if (status >= 0)
        status = make_sheet(r, &s);
    for (int w = 0; w < r->plan->count && status >= 0; w++) {
        toile_image image = {0};
        if (r->rows[w].shown)
            status = draw_wedge(r, w, &camera, picture, &image);
        if (status >= 0)
            put_tile(r, &s, w, &image);
        toile_image_free(&r->memory, &image);
    }
    char path[TOILE_WEDGE_PATH];
    snprintf(path, sizeof path, "%.4000s/contact.png", r->folder);
    if (status >= 0)
        status = toile_image_write_png(&r->memory, &s.image, path, &r->error);
    toile_image_free(&r->memory, &s.image);
    toile_picture_free(picture);
    return status;
}

/* ---- tables ---- */

static json_t *row_object(const report *r, int wedge) {
    const row *w = &r->rows[wedge];
    char hash[17], picture[256];
    snprintf(hash, sizeof hash, "%016" PRIx64, w->hash);
    snprintf(picture, sizeof picture, "%s.png", toile_plan_name(r->plan, wedge));
    json_t *object = json_pack("{s:i, s:s}", "index", wedge, "name", toile_plan_name(r->plan, wedge)), *key;
    size_t i;
    json_array_foreach(r->keys, i, key) {
        json_t *value = json_object_get(toile_plan_values(r->plan, wedge), json_string_value(key));
        json_object_set(object, json_string_value(key), value ? value : json_null());
    }
    json_object_set_new(object, "state", json_string(w->state.name));
    json_object_set_new(object, "frames", json_integer(w->state.done));
    json_object_set_new(object, "frames_planned", json_integer(w->state.frames));
    json_object_set_new(object, "seconds", json_real(w->seconds));
    json_object_set_new(object, "seconds_per_frame",
                        json_real(w->state.done > 1 ? w->seconds / (w->state.done - 1) : 0));
    json_object_set_new(object, "steps", json_integer((json_int_t)w->steps));
    json_object_set_new(object, "rejected_steps", json_integer((json_int_t)w->rejected));
    json_object_set_new(object, "iterations", json_integer((json_int_t)w->iterations));
    json_object_set_new(object, "max_stretch", json_real(isfinite(w->stretch) ? w->stretch : -1));
    json_object_set_new(object, "penetrations_most", json_integer((json_int_t)w->penetrations));
    json_object_set_new(object, "intersections", w->shown ? json_integer(w->crossings) : json_null());
    json_object_set_new(object, "intersections_most",
                        w->shown ? json_integer(w->crossings_most) : json_null());
    json_object_set_new(object, "inside_colliders",
                        w->shown && w->colliders ? json_integer(w->inside) : json_null());
    json_object_set_new(object, "kinetic_energy", json_real(isfinite(w->kinetic) ? w->kinetic : -1));
    json_object_set_new(object, "megabytes", json_real(w->megabytes));
    json_object_set_new(object, "state_hash", w->shown ? json_string(hash) : json_null());
    json_object_set_new(object, "picture", w->shown ? json_string(picture) : json_null());
    json_object_set_new(object, "message", json_string(w->state.message));
    return object;
}

static void put_text(FILE *out, const json_t *value, bool quoted) {
    char *dumped = json_is_string(value) || json_is_null(value)
                       ? NULL
                       : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(6));
    const char *text = dumped ? dumped : json_is_string(value) ? json_string_value(value) : "";
    bool quotes = quoted && strpbrk(text, ",\"\n");
    if (quotes)
        fputc('"', out);
    for (; *text; text++) {
        if (!quoted && *text == '<')
            fputs("&lt;", out);
        else if (!quoted && *text == '&')
            fputs("&amp;", out);
        else if (quotes && *text == '"')
            fputs("\"\"", out);
        else
            fputc(*text, out);
    }
    if (quotes)
        fputc('"', out);
    free(dumped);
}

static void write_csv(FILE *out, const json_t *rows) {
    size_t i;
    json_t *object, *value;
    const char *key;
    json_array_foreach((json_t *)rows, i, object) {
        bool first = true;
        json_object_foreach(object, key, value) {
            if (i == 0)
                fprintf(out, "%s%s", first ? "" : ",", key);
            first = false;
        }
        if (i == 0)
            fputc('\n', out);
        first = true;
        json_object_foreach(object, key, value) {
            if (!first)
                fputc(',', out);
            put_text(out, value, true);
            first = false;
        }
        fputc('\n', out);
    }
}

static void write_html(FILE *out, const report *r, const json_t *rows) {
    size_t i;
    json_t *object, *value;
    const char *key;
    int complete = 0;
    for (int w = 0; w < r->plan->count; w++)
        complete += r->rows[w].state.complete;
    fprintf(
        out,
        "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Wedges</title>\n<style>\n"
        "body { font: 14px sans-serif; margin: 2em; color: #222 }\n"
        "table { border-collapse: collapse }\n"
        "td, th { border-bottom: 1px solid #ddd; padding: 4px 8px; text-align: right; white-space: nowrap }\n"
        "th { cursor: pointer; position: sticky; top: 0; background: #fff }\n"
        "img { width: 160px; display: block }\n"
        "</style>\n<h1>%d of %d wedges complete</h1>\n"
        "<p>A click on a heading sorts. Intersections are triangle pairs of the frame that is shown; "
        "\"most\" is of up to %d frames "
        "spread over the bake. <a href=\"contact.png\">Contact sheet</a>, <a "
        "href=\"table.csv\">CSV</a>.</p>\n<table>\n",
        complete, r->plan->count, JUDGED_MOST);
    json_array_foreach((json_t *)rows, i, object) {
        if (i == 0) {
            fputs("<thead><tr><th>picture</th>", out);
            json_object_foreach(object, key, value) {
                if (strcmp(key, "picture") != 0)
                    fprintf(out, "<th>%s</th>", key);
            }
            fputs("</tr></thead>\n<tbody>\n", out);
        }
        const char *picture = json_string_value(json_object_get(object, "picture"));
        fputs("<tr><td>", out);
        if (picture)
            fprintf(out, "<a href=\"%s\"><img src=\"%s\" alt=\"\"></a>", picture, picture);
        fputs("</td>", out);
        json_object_foreach(object, key, value) {
            if (strcmp(key, "picture") == 0)
                continue;
            fputs("<td>", out);
            put_text(out, value, false);
            fputs("</td>", out);
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody></table>\n<script>\n"
          "document.querySelectorAll('th').forEach((th, i) => th.addEventListener('click', () => {\n"
          "  const body = document.querySelector('tbody'), rows = [...body.rows], up = th.dataset.up = "
          "th.dataset.up === '1' ? '' : '1';\n"
          "  const of = row => row.cells[i].textContent;\n"
          "  rows.sort((a, b) => (of(a) - of(b) || of(a).localeCompare(of(b))) * (up ? 1 : -1)).forEach(row "
          "=> body.append(row));\n"
          "}));\n</script>\n",
          out);
}

typedef enum table_kind { TABLE_CSV, TABLE_HTML, TABLE_JSON } table_kind;

static toile_status write_table(report *r, const json_t *rows, table_kind kind, const char *name) {
    char path[TOILE_WEDGE_PATH], *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out && kind == TABLE_CSV)
        write_csv(out, rows);
    else if (out && kind == TABLE_HTML)
        write_html(out, r, rows);
    else if (out)
        json_dumpf(rows, out, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    bool written = out && fclose(out) == 0;
    snprintf(path, sizeof path, "%.4000s/%s", r->folder, name);
    toile_status status = written ? toile_write_text(path, text, size, false, &r->error)
                                  : toile_fail_memory(&r->error, "the report");
    free(text);
    return status;
}

static toile_status write_tables(report *r) {
    json_t *rows = json_array();
    for (int w = 0; w < r->plan->count; w++)
        json_array_append_new(rows, row_object(r, w));
    toile_status status = write_table(r, rows, TABLE_CSV, "table.csv");
    if (status >= 0)
        status = write_table(r, rows, TABLE_HTML, "index.html");
    if (status >= 0)
        status = write_table(r, rows, TABLE_JSON, "table.json");
    json_decref(rows);
    return status;
}

/* ---- the report ---- */

/* Keys in the order in which they first appear. */
static json_t *collect_keys(const toile_plan *plan) {
    json_t *keys = json_array(), *seen = json_object(), *value;
    const char *key;
    for (int w = 0; w < plan->count; w++)
        json_object_foreach((json_t *)toile_plan_values(plan, w), key, value) {
            if (!json_object_get(seen, key)) {
                json_object_set_new(seen, key, json_true());
                json_array_append_new(keys, json_string(key));
            }
        }
    json_decref(seen);
    return keys;
}

int toile_wedge_report(const toile_plan *plan, int frame, int size) {
    report r = {.plan = plan, .frame = frame, .size = size, .keys = collect_keys(plan)};
    int complete = 0;
    toile_memory_init(&r.memory, NULL);
    r.rows = toile_alloc(&r.memory, (size_t)plan->count, sizeof *r.rows);
    snprintf(r.folder, sizeof r.folder, "%.4000s/report", plan->folder);
    toile_status status =
        r.rows ? toile_make_folder(r.folder, &r.error) : toile_fail_memory(&r.error, "the report");
    for (int w = 0; w < plan->count && status >= 0; w++) {
        gather(&r, w);
        complete += r.rows[w].state.complete;
    }
    if (status >= 0)
        status = draw_all(&r);
    if (status >= 0)
        status = write_tables(&r);
    int exit_code = status < 0 ? toile_complain_error(&r.error) : 0;
    if (status >= 0) {
        printf("%d of %d wedges are complete\n", complete, plan->count);
        for (int w = 0; w < plan->count; w++)
            if (!r.rows[w].state.complete)
                printf("  %s: %s %s\n", toile_plan_name(plan, w), r.rows[w].state.name,
                       r.rows[w].state.message);
        printf("%s/index.html, table.csv, table.json, contact.png\n", r.folder);
    }
    toile_free(&r.memory, r.rows);
    json_decref(r.keys);
    return exit_code;
}

int toile_wedge_report_command(int argc, char **argv) {
    static const char *const operand_names[] = {"DIR"};
    const char *folder = NULL;
    double frame = NAN;
    int size = 400, exit_code;
    toile_plan plan;
    toile_error error;
    const toile_option options[] = {
        {"--frame", NULL, TOILE_OPTION_NUMBER, &frame, "F", "the frame that is shown; else the last of each",
         NULL},
        {"--size", NULL, TOILE_OPTION_WHOLE, &size, "N", "pixels of a picture; 400", NULL},
    };
    const toile_syntax syntax = {"toile wedge report DIR [--frame F] [--size N]",
                                 "What came out of a wedge, so far: DIR/report/index.html and table.csv "
                                 "(values, state, time, steps, stretch, intersections,\n"
                                 "hash), a picture of each, and contact.png with all of them from one place. "
                                 "Needs no Blender and no screen.",
                                 options,
                                 COUNT(options),
                                 operand_names,
                                 COUNT(operand_names)};
    if (!toile_parse_options(&syntax, argc, argv, &folder, &exit_code))
        return exit_code;
    if (size < 32 || size > 2048)
        return toile_complain(TOILE_EXIT_USAGE, "--size %d: it must be from 32 to 2048", size);
    if (toile_plan_read(folder, &plan, &error) < 0)
        return toile_complain_error(&error);
    exit_code = toile_wedge_report(&plan, fabs(frame) < 1e9 ? (int)frame : INT_MIN, size);
    toile_plan_free(&plan);
    return exit_code;
}
