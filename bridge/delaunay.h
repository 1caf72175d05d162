/* Constrained Delaunay triangulation of points on a lattice of whole numbers.
 *
 * Points are inserted one by one and edges flipped until the circle through every triangle's corners is empty
 * (Lawson 1977); segments are put in by flipping what crosses them (Sloan 1993). With whole numbers both tests,
 * on which side of a line and whether inside a circle, are exact: points of a grid, of which three are on a line
 * and four on a circle everywhere, are no special case. The same input gives the same triangles. */
#ifndef TOILE_DELAUNAY_H
#define TOILE_DELAUNAY_H

#include "memory.h"

#include <stdbool.h>
#include <stdint.h>

/* Coordinates are from 0 to this: differences, products of two and of four of them stay exact in 64 and 128 bits. */
enum { TOILE_LATTICE = 1 << 26 };

typedef struct toile_delaunay_triangle {
    int v[3];           /* counter-clockwise */
    int next[3];        /* triangle across the edge opposite of v[i], or -1 */
    bool fixed[3];      /* that edge is a segment */
    bool inside;        /* written by toile_delaunay_fill */
} toile_delaunay_triangle;

typedef struct toile_delaunay {
    toile_memory *memory;
    int point_count, point_room;    /* the first four are corners of a square around everything */
    int32_t (*points)[2];
    int *any;                       /* a triangle of each point, (point_room) */
    int triangle_count;
    toile_delaunay_triangle *triangles;
    int *stack;                     /* edges to look at, triangle x 3 + corner */
    int stack_count, stack_room;
    int last;                       /* triangle where the next search begins */
    bool failed;                    /* memory ran out */
} toile_delaunay;

enum { TOILE_DELAUNAY_FIRST = 4 };  /* number of the first point that was put in */

/* Room for `points` of them. False: memory is out. */
bool toile_delaunay_make(toile_memory *memory, int points, toile_delaunay *d);
void toile_delaunay_free(toile_delaunay *d);

/* Twice the area of the triangle a, b, c; positive if it is counter-clockwise. */
int64_t toile_delaunay_side(const toile_delaunay *d, int a, int b, int c);

/* Puts a point in as number `index` and returns that; or the number of the point already there. With `only_inside`, -1
 * for one that is in a triangle that is not inside. */
int toile_delaunay_insert(toile_delaunay *d, int index, const int32_t point[2], bool only_inside);

/* Makes the segment an edge. False if it cannot be: `meets` is then a point it goes through (and -1), or the ends of
 * the segment it crosses. */
bool toile_delaunay_segment(toile_delaunay *d, int a, int b, int meets[2]);

/* Tells inside from outside: whoever comes from far away is inside after an odd number of segments. */
void toile_delaunay_fill(toile_delaunay *d);

/* Flips edges until all are Delaunay again: all of them, or those on the stack. */
void toile_delaunay_restore_all(toile_delaunay *d);
void toile_delaunay_restore(toile_delaunay *d);
void toile_delaunay_push(toile_delaunay *d, int triangle, int corner);
/* Replaces the edge opposite of the corner by the other diagonal, which the caller knows to be inside. */
void toile_delaunay_flip(toile_delaunay *d, int triangle, int corner);

/* Triangles around a point, counter-clockwise; returns how many, or 0 if there are more than `room`. */
int toile_delaunay_around(const toile_delaunay *d, int point, int *triangles, int room);

/* The triangle with the edge from a to b on its boundary in this direction, and the corner opposite; -1 if none. */
int toile_delaunay_edge(const toile_delaunay *d, int a, int b, int *corner);

static inline int toile_corner_of(const toile_delaunay_triangle *t, int point) {
    return t->v[0] == point ? 0 : t->v[1] == point ? 1 : 2;
}

#endif
