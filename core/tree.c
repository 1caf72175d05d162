#include "tree.h"

#include <math.h>
#include <string.h>

#define DEPTH_MAX 64

void toile_select_half(const double *place, int *order, int count, int axis) {
    int lo = 0, hi = count - 1, middle = count / 2;
#define LESS(p, q) \
    (place[3 * (p) + axis] < place[3 * (q) + axis] || (place[3 * (p) + axis] == place[3 * (q) + axis] && (p) < (q)))
    while (lo < hi) {
        int pivot = order[(lo + hi) / 2], i = lo, j = hi;
        while (i <= j) {
            while (LESS(order[i], pivot))
                i++;
            while (LESS(pivot, order[j]))
                j--;
            if (i <= j) {
                int t = order[i];
                order[i++] = order[j];
                order[j--] = t;
            }
        }
        if (middle <= j)
            hi = j;
        else if (middle >= i)
            lo = i;
        else
            return;
    }
#undef LESS
}

static void split(toile_tree *t, const double *place, const int *piece, int *order) {
    struct {
        int first, count, parent;
    } stack[DEPTH_MAX];
    int depth = 0, used = 0;
    stack[depth++] = (__typeof__(stack[0])){0, t->count, -1};
    while (depth) {
        int first = stack[depth - 1].first, count = stack[depth - 1].count, parent = stack[depth - 1].parent;
        int *own = order + first, at = used++;
        depth--;
        if (parent >= 0)
            t->nodes[parent].right = at;
        bool whole = piece != NULL;
        for (int i = 1; whole && i < count; i++)
            whole = piece[own[i]] == piece[own[0]];
        t->nodes[at] = (toile_tree_node){0, count == 1 ? own[0] : count, whole, false, false, false};
        if (count == 1) {
            t->leaf_of[own[0]] = at;
            continue;
        }
        double lo[3] = {INFINITY, INFINITY, INFINITY}, hi[3] = {-INFINITY, -INFINITY, -INFINITY};
        for (int i = 0; i < count; i++)
            for (int k = 0; k < 3; k++) {
                double c = place[3 * own[i] + k];
                lo[k] = c < lo[k] ? c : lo[k];
                hi[k] = c > hi[k] ? c : hi[k];
            }
        int axis = hi[1] - lo[1] > hi[0] - lo[0];
        axis = hi[2] - lo[2] > hi[axis] - lo[axis] ? 2 : axis;
        toile_select_half(place, own, count, axis);
        /* halves: depth is log2 of the count. The left child comes next, the right one when the left is done */
        stack[depth++] = (__typeof__(stack[0])){first + count / 2, count - count / 2, at};
        stack[depth++] = (__typeof__(stack[0])){first, count / 2, -1};
    }
}

bool toile_tree_make(toile_memory *memory, int count, const double *place, const int *piece, toile_tree *t) {
    size_t nodes = count ? 2 * (size_t)count - 1 : 0;
    t->count = count;
    t->nodes = toile_alloc(memory, nodes, sizeof *t->nodes);
    t->leaf_of = toile_alloc(memory, (size_t)count, sizeof *t->leaf_of);
    t->box = toile_alloc(memory, nodes, sizeof *t->box);
    t->turn = piece ? toile_alloc(memory, 2 * nodes, sizeof *t->turn) : NULL;
    int *order = toile_alloc(memory, (size_t)count, sizeof *order);
    bool ok = t->nodes && t->leaf_of && t->box && (t->turn || !piece) && order;
    if (ok && count) {
        for (int i = 0; i < count; i++)
            order[i] = i;
        split(t, place, piece, order);
    }
    toile_free(memory, order);
    return ok;
}

void toile_tree_free(toile_memory *memory, toile_tree *t) {
    void *blocks[] = {t->nodes, t->leaf_of, t->box, t->turn};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    memset(t, 0, sizeof *t);
}

static void join(const toile_box *a, const toile_box *b, toile_box *r) {
    for (int k = 0; k < 4; k++) {
        r->lo[k] = a->lo[k] < b->lo[k] ? a->lo[k] : b->lo[k];
        r->hi[k] = a->hi[k] > b->hi[k] ? a->hi[k] : b->hi[k];
    }
}

void toile_tree_refit(toile_tree *t) {
    for (int i = 2 * t->count - 2; i >= 0; i--) {
        int r = t->nodes[i].right;
        if (!r)
            continue;
        t->nodes[i].fresh = t->nodes[i + 1].fresh || t->nodes[r].fresh;
        if (!t->nodes[i].fresh)
            continue;
        t->nodes[i].even = t->nodes[i + 1].even && t->nodes[r].even;
        join(&t->box[i + 1], &t->box[r], &t->box[i]);
        for (int d = 0; t->turn && d < 2; d++)
            join(&t->turn[2 * (i + 1) + d], &t->turn[2 * r + d], &t->turn[2 * i + d]);
    }
}
