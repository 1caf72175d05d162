#include "coupling.h"

#include "fast_lanes.h"

#include <string.h>

bool toile_couplings_make(toile_memory *memory, int particles, int chunks, toile_couplings *c) {
    memset(c, 0, sizeof *c);
    c->row = toile_alloc(memory, (size_t)particles, sizeof(int));
    c->begin = toile_alloc(memory, (size_t)particles + 1, sizeof(int));
    c->slot = toile_alloc(memory, (size_t)particles + 1, sizeof(int));
    c->chunk_begin = toile_alloc(memory, (size_t)chunks + 1, sizeof(int));
    c->single_own = toile_alloc(memory, 12 * (size_t)particles, sizeof(float));
    return c->row && c->begin && c->slot && c->chunk_begin && c->single_own;
}

void toile_couplings_free(toile_memory *memory, toile_couplings *c) {
    void *blocks[] = {c->item, c->row, c->begin, c->entry, c->chunk_begin, c->slot, c->pull, c->single, c->single_pull, c->single_weight, c->single_own};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    memset(c, 0, sizeof *c);
}

toile_coupling *toile_couplings_add(toile_memory *memory, toile_couplings *c) {
    if (c->count == c->capacity) {
        size_t room = 2 * (size_t)c->capacity + 1024, had = (size_t)c->capacity;
        void *item = toile_grow(memory, c->item, had, room, sizeof *c->item);
        c->item = item ? item : c->item;
        void *entry = toile_grow(memory, c->entry, 4 * had, 4 * room, sizeof *c->entry);
        c->entry = entry ? entry : c->entry;
        void *pull = toile_grow(memory, c->pull, 4 * had, 4 * room, sizeof *c->pull);
        c->pull = pull ? pull : c->pull;
        void *single = toile_grow(memory, c->single, had, room, sizeof *c->single);
        c->single = single ? single : c->single;
        void *single_pull = toile_grow(memory, c->single_pull, 4 * had, 4 * room, sizeof *c->single_pull);
        c->single_pull = single_pull ? single_pull : c->single_pull;
        void *single_weight = toile_grow(memory, c->single_weight, 4 * had, 4 * room, sizeof *c->single_weight);
        c->single_weight = single_weight ? single_weight : c->single_weight;
        if (!item || !entry || !pull || !single || !single_pull || !single_weight)
            return NULL;
        c->capacity = (int)room;
    }
    return &c->item[c->count++];
}

/* Of a symmetric tensor's nine numbers among its six. */
static const int PLACE[9] = {0, 1, 2, 1, 3, 4, 2, 4, 5};

void toile_couplings_sort(toile_couplings *c, int particles, const int *chunk_begin, int chunks) {
    int *slot = c->slot, sum = 0;
    memset(slot, 0, ((size_t)particles + 1) * sizeof *slot);
    for (int i = 0; i < c->count; i++)
        for (int k = 0; k < 4; k++)
            if (c->item[i].particle[k] >= 0)
                slot[c->item[i].particle[k]]++;
    c->row_count = 0;
    for (int p = 0, chunk = 0; p < particles; p++) {
        while (chunk < chunks && chunk_begin[chunk] <= p)
            c->chunk_begin[chunk++] = c->row_count;
        if (slot[p]) {
            c->row[c->row_count] = p;
            c->begin[c->row_count++] = sum;
            sum += slot[p];
        }
        slot[p] = sum; /* end of its entries, counted down below */
    }
    c->chunk_begin[chunks] = c->row_count;
    c->begin[c->row_count] = sum;
    for (int i = c->count - 1; i >= 0; i--) {
        const toile_coupling *item = &c->item[i];
        toile_coupling_single *single = &c->single[i];
        for (int k = 3; k >= 0; k--) {
            single->particle[k] = item->particle[k] >= 0 ? item->particle[k] : 0;
            single->weight[k] = (float)item->weight[k];
            if (item->particle[k] < 0)
                continue;
            int e = --slot[item->particle[k]];
            c->entry[e] = 4 * i + k;
            c->single_weight[e] = single->weight[k];
        }
        for (int k = 0; k < 12; k++)
            single->tensor[k] = k % 4 < 3 ? (float)item->tensor[PLACE[k / 4 * 3 + k % 4]] : 0;
    }
}

static void times(const double *T, const double *u, double *r) {
    r[0] = T[0] * u[0] + T[1] * u[1] + T[2] * u[2];
    r[1] = T[1] * u[0] + T[3] * u[1] + T[4] * u[2];
    r[2] = T[2] * u[0] + T[4] * u[1] + T[5] * u[2];
}

/* xx, yy, zz, xy, xz, yz in rows of four. */
static const int SIX[6] = {0, 5, 10, 1, 2, 6};

void toile_couplings_assemble(toile_couplings *c, double *diagonal, float *single, float *inertia, double *b) {
    for (int r = 0; r < c->row_count; r++) {
        size_t i = (size_t)c->row[r];
        double sum[12] = {0};
        for (int e = c->begin[r]; e < c->begin[r + 1]; e++) {
            const toile_coupling *item = &c->item[c->entry[e] / 4];
            double w = item->weight[c->entry[e] % 4], known[3];
            times(item->tensor, item->known, known);
            for (int k = 0; k < 3; k++) {
                b[4 * i + (size_t)k] += w * (item->push[k] - known[k]);
                for (int l = 0; l < 3; l++)
                    sum[4 * k + l] += w * w * item->tensor[PLACE[3 * k + l]];
            }
        }
        for (size_t k = 0; k < 12; k++) {
            diagonal[12 * i + k] += sum[k];
            c->single_own[12 * (size_t)r + k] = (float)sum[k];
            if (single)
                single[12 * i + k] = (float)diagonal[12 * i + k];
        }
        for (size_t k = 0; k < 6 && inertia; k++)
            inertia[6 * i + k] += (float)sum[SIX[k]];
    }
}

void toile_couplings_pull(const toile_couplings *c, int begin, int end, const double *x) {
    for (int i = begin; i < end; i++) {
        const toile_coupling *item = &c->item[i];
        double u[3] = {0, 0, 0};
        for (int k = 0; k < 4; k++)
            for (int a = 0; item->particle[k] >= 0 && a < 3; a++)
                u[a] += item->weight[k] * x[4 * (size_t)item->particle[k] + (size_t)a];
        times(item->tensor, u, c->pull + 4 * (size_t)i);
    }
}

void toile_couplings_add_rows(const toile_couplings *c, int chunk, const double *x, double *y) {
    for (int r = c->chunk_begin[chunk]; r < c->chunk_begin[chunk + 1]; r++) {
        const double *xi = x + 4 * (size_t)c->row[r];
        double *yi = y + 4 * (size_t)c->row[r];
        for (int e = c->begin[r]; e < c->begin[r + 1]; e++) {
            const toile_coupling *item = &c->item[c->entry[e] / 4];
            const double *pull = c->pull + 4 * (size_t)(c->entry[e] / 4);
            double w = item->weight[c->entry[e] % 4], own[3];
            times(item->tensor, xi, own);
            for (int k = 0; k < 3; k++)
                yi[k] += w * (pull[k] - w * own[k]);
        }
    }
}

void toile_couplings_pull_single(const toile_couplings *c, int begin, int end, const float *x) {
    for (int i = begin; i < end; i++) {
        const toile_coupling_single *s = &c->single[i];
        f4 u = f4_set(0);
        for (int k = 0; k < 4; k++)
            u += f4_set(s->weight[k]) * f4_loose(x + 4 * (size_t)s->particle[k]);
        f4_store(c->single_pull + 4 * (size_t)i, f4_rows(f4_loose(s->tensor), f4_loose(s->tensor + 4), f4_loose(s->tensor + 8), u));
    }
}

/* All of the couplings, less what the diagonal has of them. */
void toile_couplings_add_rows_single(const toile_couplings *c, int chunk, const float *x, float *y) {
    for (int r = c->chunk_begin[chunk]; r < c->chunk_begin[chunk + 1]; r++) {
        size_t i = 4 * (size_t)c->row[r];
        const float *own = c->single_own + 12 * (size_t)r;
        f4 sum = f4_set(0);
        for (int e = c->begin[r]; e < c->begin[r + 1]; e++)
            sum += f4_set(c->single_weight[e]) * f4_load(c->single_pull + 4 * (size_t)(c->entry[e] / 4));
        sum -= f4_rows(f4_loose(own), f4_loose(own + 4), f4_loose(own + 8), f4_loose(x + i));
        f4_store(y + i, f4_loose(y + i) + sum);
    }
}
