#include "half_edge.h"

#include <stdlib.h>

static int compare(const void *p, const void *q) {
    const toile_half_edge *x = p, *y = q;
    if (x->a != y->a)
        return x->a < y->a ? -1 : 1;
    if (x->b != y->b)
        return x->b < y->b ? -1 : 1;
    return x->triangle < y->triangle ? -1 : x->triangle > y->triangle;
}

toile_half_edge *toile_half_edges(toile_memory *memory, const int *triangles, int triangle_count) {
    int n = 3 * triangle_count;
    toile_half_edge *edges = toile_alloc(memory, (size_t)n, sizeof *edges);
    if (!edges)
        return NULL;
    for (int i = 0; i < n; i++) {
        int p = triangles[i], q = triangles[i % 3 == 2 ? i - 2 : i + 1];
        edges[i] = (toile_half_edge){p < q ? p : q, p < q ? q : p, i / 3, i % 3, p < q};
    }
    qsort(edges, (size_t)n, sizeof *edges, compare);
    return edges;
}
