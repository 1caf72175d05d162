#include "coupling.h"

#include <string.h>

bool toile_couplings_make(toile_memory *memory, int particles, int chunks, toile_couplings *c) {
    memset(c, 0, sizeof *c);
    c->row = toile_alloc(memory, (size_t)particles, sizeof(int));
    c->begin = toile_alloc(memory, (size_t)particles + 1, sizeof(int));
    c->slot = toile_alloc(memory, (size_t)particles + 1, sizeof(int));
    c->chunk_begin = toile_alloc(memory, (size_t)chunks + 1, sizeof(int));
    return c->row && c->begin && c->slot && c->chunk_begin;
}

void toile_couplings_free(toile_memory *memory, toile_couplings *c) {
    void *blocks[] = {c->item, c->row, c->begin, c->entry, c->chunk_begin, c->slot, c->pull, c->single, c->single_pull};
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
        void *single = toile_grow(memory, c->single, 12 * had, 12 * room, sizeof *c->single);
        c->single = single ? single : c->single;
        void *single_pull = toile_grow(memory, c->single_pull, 4 * had, 4 * room, sizeof *c->single_pull);
        c->single_pull = single_pull ? single_pull : c->single_pull;
        if (!item || !entry || !pull || !single || !single_pull)
            return NULL;
        c->capacity = (int)room;
    }
    return &c->item[c->count++];
}

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
        float *single = c->single + 12 * (size_t)i;
        for (int k = 3; k >= 0; k--) {
            if (item->particle[k] >= 0)
                c->entry[--slot[item->particle[k]]] = 4 * i + k;
            single[k] = (float)item->weight[k];
        }
        for (int k = 0; k < 6; k++)
            single[4 + k] = (float)item->tensor[k];
    }
}

static void times(const double *T, const double *u, double *r) {
    r[0] = T[0] * u[0] + T[1] * u[1] + T[2] * u[2];
    r[1] = T[1] * u[0] + T[3] * u[1] + T[4] * u[2];
    r[2] = T[2] * u[0] + T[4] * u[1] + T[5] * u[2];
}

void toile_couplings_assemble(const toile_couplings *c, double *diagonal, float *single, float *inertia, double *b) {
    static const int PLACE[9] = {0, 1, 2, 1, 3, 4, 2, 4, 5};
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
            if (single)
                single[12 * i + k] = (float)diagonal[12 * i + k];
            if (inertia)
                inertia[12 * i + k] += (float)sum[k];
        }
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

static void times_single(const float *T, const float *u, float *r) {
    r[0] = T[0] * u[0] + T[1] * u[1] + T[2] * u[2];
    r[1] = T[1] * u[0] + T[3] * u[1] + T[4] * u[2];
    r[2] = T[2] * u[0] + T[4] * u[1] + T[5] * u[2];
}

void toile_couplings_pull_single(const toile_couplings *c, int begin, int end, const float *x) {
    for (int i = begin; i < end; i++) {
        const int *p = c->item[i].particle;
        const float *own = c->single + 12 * (size_t)i;
        float u[3] = {0, 0, 0};
        for (int k = 0; k < 4; k++)
            for (int a = 0; p[k] >= 0 && a < 3; a++)
                u[a] += own[k] * x[4 * (size_t)p[k] + (size_t)a];
        times_single(own + 4, u, c->single_pull + 4 * (size_t)i);
    }
}

void toile_couplings_add_rows_single(const toile_couplings *c, int chunk, const float *x, float *y) {
    for (int r = c->chunk_begin[chunk]; r < c->chunk_begin[chunk + 1]; r++) {
        float *yi = y + 4 * (size_t)c->row[r];
        for (int e = c->begin[r]; e < c->begin[r + 1]; e++) {
            const float *single = c->single + 12 * (size_t)(c->entry[e] / 4);
            const float *pull = c->single_pull + 4 * (size_t)(c->entry[e] / 4);
            float w = single[c->entry[e] % 4], own[3];
            times_single(single + 4, x + 4 * (size_t)c->row[r], own);
            for (int k = 0; k < 3; k++)
                yi[k] += w * (pull[k] - w * own[k]);
        }
    }
}
