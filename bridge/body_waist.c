#include "body_waist.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define LOWEST 0.53                 /* of the height: above the hips of every adult */
#define HIGHEST 0.71                /* below the chest */
#define STEP 0.01                   /* m */
#define GAP 0.03                    /* m between the trunk and an arm beside it */

typedef struct spot {
    double x, z;
} spot;

static int compare_spots(const void *a, const void *b) {
    const spot *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return (p->z > q->z) - (p->z < q->z);
}

/* Points where a plane cuts the edges of triangles; each edge is there twice. */
static int slice(const double *positions, int triangle_count, const int *triangles, double y, spot *spots) {
    int count = 0;
    for (int i = 0; i < 3 * triangle_count; i++) {
        const double *a = positions + 3 * (size_t)triangles[i];
        const double *b = positions + 3 * (size_t)triangles[i % 3 == 2 ? i - 2 : i + 1];
        if ((a[1] < y) == (b[1] < y))
            continue;
        double t = (y - a[1]) / (b[1] - a[1]);
        spots[count++] = (spot){a[0] + t * (b[0] - a[0]), a[2] + t * (b[2] - a[2])};
    }
    return count;
}

static double side(const spot *a, const spot *b, const spot *c) {
    return (b->x - a->x) * (c->z - a->z) - (b->z - a->z) * (c->x - a->x);
}

/* Length of a tape around points sorted by x: their convex hull (Andrew 1979). `hull` has room for twice as many. */
static double tape(const spot *spots, int count, spot *hull) {
    int size = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0, bottom = size + (pass == 0); i < count; i++) {
            const spot *p = &spots[pass ? count - 1 - i : i];
            while (size > bottom && side(&hull[size - 2], &hull[size - 1], p) <= 0)
                size--;
            hull[size++] = *p;
        }
    double length = 0;
    for (int i = 0; i + 1 < size; i++)
        length += hypot(hull[i + 1].x - hull[i].x, hull[i + 1].z - hull[i].z);
    return length;
}

toile_status toile_body_waist(toile_memory *memory, int vertex_count, const double *positions, int triangle_count,
                              const int *triangles, double *height, double *girth, toile_error *error) {
    double low = INFINITY, high = -INFINITY, left = INFINITY, right = -INFINITY;
    for (int i = 0; i < vertex_count; i++) {
        low = fmin(low, positions[3 * (size_t)i + 1]);
        high = fmax(high, positions[3 * (size_t)i + 1]);
        left = fmin(left, positions[3 * (size_t)i]);
        right = fmax(right, positions[3 * (size_t)i]);
    }
    double middle = 0.5 * (left + right);
    spot *spots = toile_alloc(memory, 3 * (size_t)triangle_count, sizeof *spots);
    spot *hull = toile_alloc(memory, 6 * (size_t)triangle_count + 2, sizeof *hull);
    *girth = INFINITY;
    *height = low + 0.61 * (high - low);
    for (double y = low + LOWEST * (high - low); spots && hull && y <= low + HIGHEST * (high - low); y += STEP) {
        int count = slice(positions, triangle_count, triangles, y, spots), first = 0, last = count;
        qsort(spots, (size_t)count, sizeof *spots, compare_spots);
        /* from the middle to the first gap on either side */
        for (int i = 1; i < count; i++)
            if (spots[i].x - spots[i - 1].x > GAP) {
                if (spots[i].x < middle)
                    first = i;
                else if (last == count && spots[i - 1].x > middle)
                    last = i;
            }
        double around = last - first > 8 ? tape(spots + first, last - first, hull) : INFINITY;
        if (around < *girth) {
            *girth = around;
            *height = y;
        }
    }
    bool made = spots && hull;
    toile_free(memory, spots);
    toile_free(memory, hull);
    return made ? TOILE_OK : toile_fail_memory(error, "the body's waist");
}
