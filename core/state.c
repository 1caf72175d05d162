#include "state.h"

#include "hash.h"

#include <math.h>
#include <string.h>

toile_status toile_state_make(toile_memory *memory, const toile_model *m, bool history, toile_state *s, toile_error *error) {
    memset(s, 0, sizeof *s);
    size_t n = (size_t)m->particle_count;
    s->n = m->particle_count;
    s->x = toile_alloc(memory, 4 * n, sizeof(double));
    s->v = toile_alloc(memory, 4 * n, sizeof(double));
    s->dv = toile_alloc(memory, 4 * n, sizeof(double));
    s->older = toile_alloc(memory, 4 * n, sizeof(double));
    s->touch = toile_alloc(memory, n, sizeof *s->touch);
    s->dx = history ? toile_alloc(memory, 4 * n, sizeof(double)) : NULL;
    if (!s->x || !s->v || !s->dv || !s->older || !s->touch || (history && !s->dx)) {
        toile_state_free(memory, s);
        return toile_fail_memory(error, "the state");
    }
    memcpy(s->x, m->start, 4 * n * sizeof(double));
    for (int i = 0; i < s->n; i++)
        s->touch[i].solid = -1;
    s->patience = 2;
    return TOILE_OK;
}

void toile_state_free(toile_memory *memory, toile_state *s) {
    toile_free(memory, s->x);
    toile_free(memory, s->v);
    toile_free(memory, s->dv);
    toile_free(memory, s->older);
    toile_free(memory, s->touch);
    toile_free(memory, s->dx);
    memset(s, 0, sizeof *s);
}

void toile_state_copy(const toile_state *from, toile_state *to) {
    size_t n = (size_t)from->n;
    memcpy(to->x, from->x, 4 * n * sizeof(double));
    memcpy(to->v, from->v, 4 * n * sizeof(double));
    memcpy(to->dv, from->dv, 4 * n * sizeof(double));
    memcpy(to->older, from->older, 4 * n * sizeof(double));
    memcpy(to->touch, from->touch, n * sizeof *from->touch);
    if (from->dx)
        memcpy(to->dx, from->dx, 4 * n * sizeof(double));
    to->last_step = from->last_step;
    to->time = from->time;
    to->shift = from->shift;
    to->level = from->level;
    to->successes = from->successes;
    to->patience = from->patience;
    to->trying = from->trying;
    to->direct_left = from->direct_left;
}

/* The numbers that are not arrays, as they are written. */
static void pack(const toile_state *s, double time[2], int32_t control[6]) {
    time[0] = s->time;
    time[1] = s->shift;
    control[0] = s->level;
    control[1] = s->successes;
    control[2] = s->patience;
    control[3] = s->trying;
    control[4] = s->direct_left;
    control[5] = 0; /* keeps what follows aligned */
}

uint64_t toile_state_hash_of(const toile_state *s) {
    size_t n = (size_t)s->n;
    double time[2];
    int32_t control[6];
    pack(s, time, control);
    uint64_t h = toile_hash(TOILE_HASH_SEED, s->x, 4 * n * sizeof(double));
    h = toile_hash(h, s->v, 4 * n * sizeof(double));
    h = toile_hash(h, s->dv, 4 * n * sizeof(double));
    h = toile_hash(h, s->older, 4 * n * sizeof(double));
    h = toile_hash(h, s->touch, n * sizeof *s->touch);
    h = toile_hash(h, time, sizeof time);
    h = toile_hash(h, control, sizeof control);
    if (s->dx) {
        h = toile_hash(h, s->dx, 4 * n * sizeof(double));
        h = toile_hash(h, &s->last_step, sizeof s->last_step);
    }
    return h;
}

size_t toile_state_bytes(const toile_state *s) {
    size_t history = s->dx ? (4 * (size_t)s->n + 1) * sizeof(double) : 0;
    return 2 * sizeof(double) + 6 * sizeof(int32_t) + (size_t)s->n * (16 * sizeof(double) + sizeof(toile_touch)) + history;
}

void toile_state_write(const toile_state *s, void *bytes) {
    char *at = bytes;
    size_t vector = 4 * (size_t)s->n * sizeof(double);
    double time[2];
    int32_t control[6];
    pack(s, time, control);
    memcpy(at, time, sizeof time), at += sizeof time;
    memcpy(at, control, sizeof control), at += sizeof control;
    memcpy(at, s->x, vector), at += vector;
    memcpy(at, s->v, vector), at += vector;
    memcpy(at, s->dv, vector), at += vector;
    memcpy(at, s->older, vector), at += vector;
    memcpy(at, s->touch, (size_t)s->n * sizeof *s->touch), at += (size_t)s->n * sizeof *s->touch;
    if (s->dx) {
        memcpy(at, s->dx, vector), at += vector;
        memcpy(at, &s->last_step, sizeof s->last_step);
    }
}

static bool all_finite(const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, bytes + i * sizeof value, sizeof value);
        if (!isfinite(value))
            return false;
    }
    return true;
}

toile_status toile_state_read(toile_state *s, int solid_count, const void *bytes, size_t size, toile_error *error) {
    if (size != toile_state_bytes(s))
        return toile_fail(error, TOILE_FORMAT,
                          "the saved state has %zu bytes, this scene needs %zu: it belongs to another scene", size,
                          toile_state_bytes(s));
    const char *at = bytes;
    size_t vector = 4 * (size_t)s->n * sizeof(double), doubles = 16 * (size_t)s->n;
    double time[2];
    int32_t control[6];
    memcpy(time, at, sizeof time), at += sizeof time;
    memcpy(control, at, sizeof control), at += sizeof control;
    const char *touches = at + 4 * vector, *history = touches + (size_t)s->n * sizeof *s->touch;
    if (!all_finite(at, doubles) || (s->dx && !all_finite(history, 4 * (size_t)s->n + 1)))
        return toile_fail(error, TOILE_FORMAT, "the saved state holds a number that is not finite: it is damaged");
    for (int i = 0; i < s->n; i++) {
        toile_touch touch;
        memcpy(&touch, touches + (size_t)i * sizeof touch, sizeof touch);
        if (touch.solid < -1 || touch.solid >= solid_count || !isfinite(touch.force))
            return toile_fail(error, TOILE_FORMAT, "the saved state touches collider %d; there are %d: it is damaged",
                              touch.solid, solid_count);
    }
    if (!isfinite(time[0]) || !(time[1] >= 0 && time[1] <= 1) || control[0] < 0 || control[0] > 60 || control[4] < 0 || control[4] > 1000 || control[2] < 1 || control[2] > 40)
        return toile_fail(error, TOILE_FORMAT, "the saved state has an impossible time or step length: it is damaged");
    s->time = time[0];
    s->shift = time[1];
    s->level = control[0];
    s->successes = control[1];
    s->patience = control[2];
    s->trying = control[3];
    s->direct_left = control[4];
    memcpy(s->x, at, vector), at += vector;
    memcpy(s->v, at, vector), at += vector;
    memcpy(s->dv, at, vector), at += vector;
    memcpy(s->older, at, vector);
    memcpy(s->touch, touches, (size_t)s->n * sizeof *s->touch);
    if (s->dx) {
        memcpy(s->dx, history, vector);
        memcpy(&s->last_step, history + vector, sizeof s->last_step);
    }
    return TOILE_OK;
}
