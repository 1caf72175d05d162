/* Lines of a drawing of sewing pattern pieces, in metres with y upwards, before it is known which of them are
 * panels. Curves come as points: chords stay within 0.02 mm of them. */
#ifndef TOILE_DRAWING_H
#define TOILE_DRAWING_H

#include "error.h"
#include "memory.h"

#include <stdbool.h>

typedef enum toile_line_use {
    TOILE_LINE_PLAIN, /* the file does not say */
    TOILE_LINE_CUT,   /* with seam allowance */
    TOILE_LINE_SEW,   /* without */
    TOILE_LINE_GRAIN  /* the warp runs along it */
} toile_line_use;

typedef struct toile_line {
    int piece;
    toile_line_use use;
    bool closed;
    int first, count; /* points */
    int at;           /* line of the file */
    char name[64];    /* its own, or empty */
} toile_line;

typedef struct toile_piece {
    char name[64]; /* or empty */
} toile_piece;

typedef struct toile_drawing {
    toile_memory *memory;
    const char *path; /* for messages */
    toile_error *error;
    toile_status status; /* of the first thing that failed; nothing is added after it */
    int at;              /* line of the file that is read */
    int piece_count, line_count, point_count;
    int piece_room, line_room, point_room;
    toile_piece *pieces;
    toile_line *lines;
    double (*points)[2];
    char remark[200]; /* what should be said about units, or empty */
} toile_drawing;

typedef double toile_affine[6]; /* x' = a0 x + a2 y + a4, y' = a1 x + a3 y + a5 */

void toile_drawing_init(toile_drawing *drawing, toile_memory *memory, const char *path, toile_error *error);
void toile_drawing_free(toile_drawing *drawing);

/* Refuses the file at its present line. */
toile_status toile_drawing_refuse(toile_drawing *drawing, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Names may be of any bytes and length; they are made fit for messages and files. */
int toile_drawing_piece(toile_drawing *drawing, const char *name, size_t length);
void toile_drawing_line(toile_drawing *drawing, int piece, toile_line_use use, const char *name,
                        size_t length);
/* To the line begun last. */
void toile_drawing_point(toile_drawing *drawing, const toile_affine to, double x, double y);
void toile_drawing_cubic(toile_drawing *drawing, const toile_affine to,
                         const double points[4][2]); /* all but the first */
/* Part of an ellipse with axes turned by `turn`; all but its first point. */
void toile_drawing_arc(toile_drawing *drawing, const toile_affine to, const double centre[2],
                       const double radii[2], double turn, double begin, double sweep);
void toile_drawing_close(toile_drawing *drawing);

void toile_affine_join(const toile_affine outer, const toile_affine inner, toile_affine both);
void toile_affine_apply(const toile_affine m, double x, double y, double to[2]);

/* A number that is all of `length` characters but spaces around it, finite; false if not. */
bool toile_drawing_number(const char *text, size_t length, double *number);

/* `length` bytes of a file. `unit`: metres of a unit of the file, 0: as it says. */
toile_status toile_dxf_read(toile_drawing *drawing, const char *text, size_t length, double unit);
toile_status toile_svg_read(toile_drawing *drawing, const char *text, size_t length, double unit);

#endif
