/* Reading caches through the public interface: check, call cache.h, keep the message. */
#include "cache.h"
#include "toile.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct toile_reader {
    toile_memory memory;
    toile_error error;
    toile_cache *cache; /* null after a failed open */
    char *json;
};

static const char *const FIGURES[] = {
#define FIGURE(id) #id,
    TOILE_FRAME_NUMBERS(FIGURE)
#undef FIGURE
};
enum { FIGURE_COUNT = sizeof FIGURES / sizeof *FIGURES };
_Static_assert(sizeof(toile_frame_numbers) == FIGURE_COUNT * sizeof(double), "figures are doubles in a row");

/* Everything that does not grow. */
static char *describe(const toile_cache *cache) {
    const toile_cache_header *h = toile_cache_get_header(cache);
    json_t *garments = json_array(), *figures = json_array();
    for (int g = 0; g < h->garment_count; g++)
        json_array_append_new(garments,
                              json_pack("{s:s, s:i, s:i, s:i}", "name", h->garments[g].name, "vertices",
                                        h->garments[g].vertex_count, "triangles",
                                        h->garments[g].triangle_count, "panels", h->garments[g].panel_count));
    for (int i = 0; i < FIGURE_COUNT; i++)
        json_array_append_new(figures, json_string(FIGURES[i]));
    char fingerprint[20];
    snprintf(fingerprint, sizeof fingerprint, "%016llx", (unsigned long long)h->fingerprint);
    json_t *object = json_pack("{s:s, s:s, s:s, s:f, s:i, s:i, s:o, s:o, s:s}", "scene_name", h->scene_name,
                               "library_version", h->library_version, "fingerprint", fingerprint, "fps",
                               h->fps, "first_frame", h->first_frame, "last_frame", h->last_frame, "garments",
                               garments, "figures", figures, "scene", h->settings_json);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return text;
}

toile_status toile_reader_open(const char *path, toile_reader **reader) {
    if (!path || !reader)
        return TOILE_MISUSE;
    toile_memory memory;
    toile_memory_init(&memory, NULL);
    toile_reader *r = *reader = toile_alloc(&memory, 1, sizeof *r);
    if (!r)
        return TOILE_NO_MEMORY;
    r->memory = memory;
    toile_status status = toile_cache_open(&r->memory, path, &r->cache, &r->error);
    if (status < 0)
        return status;
    r->json = describe(r->cache);
    return r->json ? status : toile_fail_memory(&r->error, "a cache's description");
}

void toile_reader_close(toile_reader *r) {
    if (!r)
        return;
    toile_cache_close(r->cache, NULL);
    free(r->json);
    toile_memory memory = r->memory;
    toile_free(&memory, r);
}

const char *toile_reader_message(const toile_reader *r) {
    return r ? r->error.message : "there is no reader: toile_reader_open failed or was not called";
}

static toile_status is_open(const toile_reader *r) {
    if (!r)
        return TOILE_MISUSE;
    return r->cache ? TOILE_OK
                    : toile_fail((toile_error *)&r->error, TOILE_MISUSE, "the cache was not opened");
}

static toile_status check_garment(toile_reader *r, int garment) {
    toile_status status = is_open(r);
    if (status != TOILE_OK)
        return status;
    int count = toile_cache_get_header(r->cache)->garment_count;
    if (garment < 0 || garment >= count)
        return toile_fail(&r->error, TOILE_INVALID, "garment %d does not exist; the cache has %d", garment,
                          count);
    return TOILE_OK;
}

toile_status toile_reader_refresh(toile_reader *r) {
    toile_status status = is_open(r);
    return status != TOILE_OK ? status : toile_cache_refresh(r->cache, &r->error);
}

const char *toile_reader_json(const toile_reader *r) {
    return r && r->json ? r->json : "{}";
}

int toile_reader_frame_count(const toile_reader *r) {
    return r && r->cache ? toile_cache_frame_count(r->cache) : 0;
}

int toile_reader_vertex_count(const toile_reader *r, int garment) {
    if (!r || !r->cache || garment < 0 || garment >= toile_cache_get_header(r->cache)->garment_count)
        return 0;
    return toile_cache_get_header(r->cache)->garments[garment].vertex_count;
}

toile_status toile_reader_read(toile_reader *r, int index, int garment, float *positions, float *velocities) {
    toile_status status = check_garment(r, garment);
    return status != TOILE_OK ? status
                              : toile_cache_read(r->cache, index, garment, positions, velocities, &r->error);
}

toile_status toile_reader_figures(toile_reader *r, int index, double *figures, int room, int *count) {
    toile_cache_frame frame;
    toile_status status = is_open(r);
    if (status != TOILE_OK)
        return status;
    if (!figures || !count || room < 0)
        return toile_fail(&r->error, TOILE_MISUSE, "there is no place for the figures");
    status = toile_cache_read_frame(r->cache, index, &frame, &r->error);
    *count = status < 0 ? 0 : room < FIGURE_COUNT ? room : FIGURE_COUNT;
    memcpy(figures, &frame.numbers, (size_t)*count * sizeof *figures);
    return status;
}

/* Strain of a triangle with corners x and material coordinates uv: |w_u| - 1 and |w_v| - 1 (Baraff-Witkin
 * 1998, eq. 9); the one that is farther from rest. */
static double triangle_strain(const float *const x[3], const float *uv) {
    double du1 = uv[2] - uv[0], dv1 = uv[3] - uv[1], du2 = uv[4] - uv[0], dv2 = uv[5] - uv[1];
    double det = du1 * dv2 - du2 * dv1, wu = 0, wv = 0;
    if (det == 0)
        return 0;
    for (int k = 0; k < 3; k++) {
        double a = (double)x[1][k] - x[0][k], b = (double)x[2][k] - x[0][k];
        double u = (a * dv2 - b * dv1) / det, v = (b * du1 - a * du2) / det;
        wu += u * u;
        wv += v * v;
    }
    double u = sqrt(wu) - 1, v = sqrt(wv) - 1;
    return fabs(u) > fabs(v) ? u : v;
}

toile_status toile_reader_strain(toile_reader *r, int garment, const float *positions, float *strain) {
    toile_status status = check_garment(r, garment);
    if (status != TOILE_OK)
        return status;
    if (!positions || !strain)
        return toile_fail(&r->error, TOILE_MISUSE, "there are no positions, or no place for the strain");
    const toile_garment_view *g = &toile_cache_get_header(r->cache)->garments[garment];
    for (int v = 0; v < g->vertex_count; v++)
        strain[v] = -1;
    for (int t = 0; t < g->triangle_count; t++) {
        const int *corner = g->triangles + 3 * t;
        const float *x[3];
        for (int c = 0; c < 3; c++)
            x[c] = positions + 3 * (size_t)corner[c];
        float value = (float)triangle_strain(x, g->corner_uv + 6 * (size_t)t);
        for (int c = 0; c < 3; c++)
            if (value > strain[corner[c]])
                strain[corner[c]] = value;
    }
    return TOILE_OK;
}
