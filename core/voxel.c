#include "voxel.h"

#include <math.h>
#include <string.h>

bool toile_voxels_make(toile_memory *memory, int particles, toile_voxels *v) {
    v->table_size = 64;
    while (v->table_size < 2 * particles)
        v->table_size *= 2;
    v->first = toile_alloc(memory, (size_t)v->table_size, sizeof *v->first);
    v->next = toile_alloc(memory, (size_t)particles, sizeof *v->next);
    v->cell = toile_alloc(memory, 3 * (size_t)particles, sizeof *v->cell);
    return v->first && v->next && v->cell;
}

void toile_voxels_free(toile_memory *memory, toile_voxels *v) {
    toile_free(memory, v->first);
    toile_free(memory, v->next);
    toile_free(memory, v->cell);
    memset(v, 0, sizeof *v);
}

static int place_of(const toile_voxels *v, const int64_t *cell) {
    uint64_t h = (uint64_t)cell[0] * 73856093u ^ (uint64_t)cell[1] * 19349663u ^ (uint64_t)cell[2] * 83492791u;
    return (int)((h ^ h >> 17) & (uint64_t)(v->table_size - 1));
}

static bool are_joined(const toile_skin *s, int p, int q) {
    if (s->same[p] == s->same[q])
        return true;
    for (int i = s->around_begin[p]; i < s->around_begin[p + 1]; i++)
        for (int c = 0; c < 3; c++)
            if (s->same[s->triangle[3 * s->around[i] + c]] == s->same[q])
                return true;
    return false;
}

static bool add(const toile_skin *s, int p, int q, toile_pairs *pairs) {
    if (pairs->count == pairs->capacity) {
        size_t room = 2 * (size_t)pairs->capacity + 1024;
        toile_pair *more = toile_grow(s->memory, pairs->pair, (size_t)pairs->count, room, sizeof *more);
        if (!more)
            return false;
        pairs->pair = more;
        pairs->capacity = (int)room;
    }
    pairs->pair[pairs->count++] = (toile_pair){.key = (uint64_t)p << 31 | (uint64_t)q, .point = {p, q, q, q}};
    return true;
}

bool toile_voxels_search(toile_voxels *v, const toile_skin *s, const double *x, double reach, toile_pairs *pairs) {
    pairs->count = 0;
    for (int i = 0; i < v->table_size; i++)
        v->first[i] = -1;
    for (int p = 0; p < s->cloth_points; p++) {
        int64_t *own = v->cell + 3 * (size_t)p;
        for (int k = 0; k < 3; k++)
            own[k] = (int64_t)floor(x[4 * (size_t)p + (size_t)k] / reach);
        for (int n = 0; n < 27; n++) {
            int64_t beside[3] = {own[0] + n % 3 - 1, own[1] + n / 3 % 3 - 1, own[2] + n / 9 - 1};
            for (int q = v->first[place_of(v, beside)]; q >= 0; q = v->next[q]) {
                double d2 = 0;
                for (size_t k = 0; k < 3; k++) {
                    double d = x[4 * (size_t)p + k] - x[4 * (size_t)q + k];
                    d2 += d * d;
                }
                bool here = memcmp(v->cell + 3 * (size_t)q, beside, sizeof beside) == 0; /* chains of other voxels end up here too */
                if (here && d2 < reach * reach && !are_joined(s, p, q) && !add(s, p, q, pairs))
                    return false;
            }
        }
        int place = place_of(v, own);
        v->next[p] = v->first[place];
        v->first[place] = p;
    }
    toile_pairs_sort(pairs);
    return true;
}
