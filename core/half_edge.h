/* The edges of a triangle mesh, sorted so that the sides of one edge stand together. */
#ifndef TOILE_HALF_EDGE_H
#define TOILE_HALF_EDGE_H

#include "memory.h"

#include <stdbool.h>

typedef struct toile_half_edge {
    int a, b;             /* vertices, a < b */
    int triangle, corner; /* runs from this corner to the next */
    bool forward;         /* from a to b */
} toile_half_edge;

/* Three of each triangle, by (a, b, triangle). From `memory`; null when that is out. */
toile_half_edge *toile_half_edges(toile_memory *memory, const int *triangles, int triangle_count);

/* First of the next edge after that at i, in an array of n. */
static inline int toile_next_edge(const toile_half_edge *edges, int n, int i) {
    int j = i + 1;
    while (j < n && edges[j].a == edges[i].a && edges[j].b == edges[i].b)
        j++;
    return j;
}

#endif
