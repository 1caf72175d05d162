#include "body_waist.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define LOWEST 0.53                 /* of the height: above the hips of every adult */
#define HIGHEST 0.71                /* below the chest */
#define STEP 0.01                   /* m */
#define GAP 0.03                    /* m between the trunk and an arm beside it */
#define LEGS 0.4                    /* of the height: below every crotch */

/* In a plane: x and z, or z and y. */
typedef struct spot {
    double x, z;
} spot;

static int compare_spots(const void *a, const void *b) {
    const spot *p = a, *q = b;
    if (p->x != q->x)
        return p->x < q->x ? -1 : 1;
    return (p->z > q->z) - (p->z < q->z);
}

/* Points where a plane across an axis cuts the edges of triangles; each edge is there twice. */
static int slice(const double *positions, int triangle_count, const int *triangles, int axis, double at,
                 spot *spots) {
    int u = axis == 1 ? 0 : 2, v = axis == 1 ? 2 : 1;
    int count = 0;
    for (int i = 0; i < 3 * triangle_count; i++) {
        const double *a = positions + 3 * (size_t)triangles[i];
        const double *b = positions + 3 * (size_t)triangles[i % 3 == 2 ? i - 2 : i + 1];
        if ((a[axis] < at) == (b[axis] < at))
            continue;
        double t = (at - a[axis]) / (b[axis] - a[axis]);
        spots[count++] = (spot){a[u] + t * (b[u] - a[u]), a[v] + t * (b[v] - a[v])};
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

/* Where its feet and its head are; its middle between left and right. */
static double extent(int vertex_count, const double *positions, double *low, double *high) {
    double left = INFINITY, right = -INFINITY;
    *low = INFINITY;
    *high = -INFINITY;
    for (int i = 0; i < vertex_count; i++) {
        const double *p = positions + 3 * (size_t)i;
        *low = fmin(*low, p[1]);
        *high = fmax(*high, p[1]);
        left = fmin(left, p[0]);
        right = fmax(right, p[0]);
    }
    return 0.5 * (left + right);
}

toile_status toile_body_waist(toile_memory *memory, int vertex_count, const double *positions,
                              int triangle_count, const int *triangles, double *height, double *girth,
                              toile_error *error) {
    double low, high, middle = extent(vertex_count, positions, &low, &high);
    spot *spots = toile_alloc(memory, 3 * (size_t)triangle_count, sizeof *spots);
    spot *hull = toile_alloc(memory, 6 * (size_t)triangle_count + 2, sizeof *hull);
    *girth = INFINITY;
    *height = low + 0.61 * (high - low);
    for (double y = low + LOWEST * (high - low); spots && hull && y <= low + HIGHEST * (high - low); y += STEP) {
        int count = slice(positions, triangle_count, triangles, 1, y, spots), first = 0, last = count;
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

/* Of a tape from front to back, both at a height, around what of the middle is below it: all around, without
 * the way across. */
static double tape_below(const spot *spots, int count, double height, spot *below, spot *hull) {
    double front = -INFINITY, back = INFINITY;
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (spots[i].z < height) {
            below[kept++] = spots[i];
            front = spots[i].z > height - 2 * STEP ? fmax(front, spots[i].x) : front;
            back = spots[i].z > height - 2 * STEP ? fmin(back, spots[i].x) : back;
        }
    return front > back ? tape(below, kept, hull) - (front - back) : INFINITY;
}

toile_status toile_body_hang(toile_memory *memory, int vertex_count, const double *positions,
                             int triangle_count, const int *triangles, double rise, double *height,
                             toile_error *error) {
    double low, high, middle = extent(vertex_count, positions, &low, &high);
    spot *spots = toile_alloc(memory, 3 * (size_t)triangle_count, sizeof *spots);
    spot *below = toile_alloc(memory, 3 * (size_t)triangle_count, sizeof *below);
    spot *hull = toile_alloc(memory, 6 * (size_t)triangle_count + 2, sizeof *hull);
    bool made = spots && below && hull;
    if (made) {
        int all = slice(positions, triangle_count, triangles, 0, middle, spots), count = 0;
        for (int i = 0; i < all; i++)
            if (spots[i].z > low + LEGS * (high - low))
                spots[count++] = spots[i];
        qsort(spots, (size_t)count, sizeof *spots, compare_spots);
        double least = low + LOWEST * (high - low);
        while (*height - STEP > least && tape_below(spots, count, *height, below, hull) > rise)
            *height -= STEP;
    }
    toile_free(memory, hull);
    toile_free(memory, below);
    toile_free(memory, spots);
    return made ? TOILE_OK : toile_fail_memory(error, "the body's waist");
}
