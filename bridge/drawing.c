#include "drawing.h"

#include "pattern.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MOST 300000 /* some 150 MB while panels are made of them */
#define LINES_MOST 100000
#define FAR 1e4         /* m; what is farther is no drawing of clothes */
#define CHORD 2e-5      /* m that chords may leave a curve */
#define PARTS_MOST 1000 /* of a curve */

void toile_drawing_init(toile_drawing *d, toile_memory *memory, const char *path, toile_error *error) {
    *d = (toile_drawing){.memory = memory, .path = path, .error = error, .status = TOILE_OK, .at = 1};
}

void toile_drawing_free(toile_drawing *d) {
    toile_free(d->memory, d->pieces);
    toile_free(d->memory, d->lines);
    toile_free(d->memory, d->points);
    d->pieces = NULL;
    d->lines = NULL;
    d->points = NULL;
}

toile_status toile_drawing_refuse(toile_drawing *d, const char *format, ...) {
    char text[700];
    va_list args;
    if (d->status != TOILE_OK)
        return d->status;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return d->status = toile_fail(d->error, TOILE_INVALID, "%.200s:%d: %s", d->path, d->at, text);
}

/* Room for one more; false: something failed. */
static bool room_for(toile_drawing *d, void **block, int count, int *room, int most, size_t size,
                     const char *what) {
    if (d->status != TOILE_OK)
        return false;
    if (count >= most) {
        toile_drawing_refuse(d, "there are more than %d %s; is it a drawing of pattern pieces?", most, what);
        return false;
    }
    if (count < *room)
        return true;
    int more = *room ? 2 * *room : 64;
    void *grown = toile_grow(d->memory, *block, (size_t)*room, (size_t)more, size);
    if (!grown) {
        d->status = toile_fail_memory(d->error, "a drawing");
        return false;
    }
    *block = grown;
    *room = more;
    return true;
}

/* Valid UTF-8 without what names of panels may not have. */
static void copy_name(char to[64], const char *name, size_t length) {
    size_t n = 0, i = 0;
    while (i < length && (unsigned char)name[i] <= ' ')
        i++;
    while (i < length && n < 60) {
        unsigned char c = (unsigned char)name[i];
        size_t more = c < 0x80 ? 0 : c >= 0xC2 && c < 0xE0 ? 1 : c >= 0xE1 && c < 0xED ? 2 : 4;
        bool whole = more < 3 && i + more < length && n + more < 63;
        for (size_t k = 1; whole && k <= more; k++)
            whole = ((unsigned char)name[i + k] & 0xC0) == 0x80;
        if (!whole || c < ' ' || c == 127 || c == '/') {
            to[n++] = '_';
            i++;
            continue;
        }
        for (size_t k = 0; k <= more; k++)
            to[n++] = name[i++];
    }
    while (n > 0 && to[n - 1] == ' ')
        n--;
    to[n] = 0;
}

int toile_drawing_piece(toile_drawing *d, const char *name, size_t length) {
    if (!room_for(d, (void **)&d->pieces, d->piece_count, &d->piece_room, TOILE_PATTERN_PANELS,
                  sizeof *d->pieces, "pieces"))
        return 0;
    copy_name(d->pieces[d->piece_count].name, name, length);
    return d->piece_count++;
}

void toile_drawing_line(toile_drawing *d, int piece, toile_line_use use, const char *name, size_t length) {
    if (!room_for(d, (void **)&d->lines, d->line_count, &d->line_room, LINES_MOST, sizeof *d->lines, "lines"))
        return;
    toile_line *line = &d->lines[d->line_count++];
    *line = (toile_line){.piece = piece, .use = use, .first = d->point_count, .at = d->at};
    copy_name(line->name, name, length);
}

static void add_point(toile_drawing *d, const double p[2]) {
    if (!room_for(d, (void **)&d->points, d->point_count, &d->point_room, POINTS_MOST, sizeof *d->points,
                  "points"))
        return;
    if (!(fabs(p[0]) <= FAR && fabs(p[1]) <= FAR)) {
        toile_drawing_refuse(d, "a point is at [%g, %g] m; are the units right?", p[0], p[1]);
        return;
    }
    memcpy(d->points[d->point_count++], p, 2 * sizeof *p);
    d->lines[d->line_count - 1].count++;
}

void toile_affine_apply(const toile_affine m, double x, double y, double to[2]) {
    to[0] = m[0] * x + m[2] * y + m[4];
    to[1] = m[1] * x + m[3] * y + m[5];
}

void toile_affine_join(const toile_affine a, const toile_affine b, toile_affine both) {
    toile_affine m;
    for (int k = 0; k < 2; k++) {
        m[k] = a[k] * b[0] + a[2 + k] * b[1];
        m[2 + k] = a[k] * b[2] + a[2 + k] * b[3];
        m[4 + k] = a[k] * b[4] + a[2 + k] * b[5] + a[4 + k];
    }
    memcpy(both, m, sizeof m);
}

void toile_drawing_point(toile_drawing *d, const toile_affine to, double x, double y) {
    double p[2];
    toile_affine_apply(to, x, y, p);
    add_point(d, p);
}

void toile_drawing_cubic(toile_drawing *d, const toile_affine to, const double points[4][2]) {
    double p[4][2], bent = 0;
    for (int i = 0; i < 4; i++)
        toile_affine_apply(to, points[i][0], points[i][1], p[i]);
    for (int i = 0; i < 2; i++)
        bent = fmax(bent,
                    hypot(p[i][0] - 2 * p[i + 1][0] + p[i + 2][0], p[i][1] - 2 * p[i + 1][1] + p[i + 2][1]));
    /* chords of n equal steps of the parameter leave it by at most 6/8 of the second difference / n^2 */
    double wanted = fmin(fmax(8, ceil(sqrt(0.75 * bent / CHORD))), PARTS_MOST);
    int parts = wanted >= 8 ? (int)wanted : 8;
    for (int i = 1; i <= parts; i++) {
        double t = (double)i / parts, s = 1 - t, at[2];
        for (int k = 0; k < 2; k++)
            at[k] =
                s * s * s * p[0][k] + 3 * s * s * t * p[1][k] + 3 * s * t * t * p[2][k] + t * t * t * p[3][k];
        add_point(d, at);
    }
}

void toile_drawing_arc(toile_drawing *d, const toile_affine to, const double centre[2], const double radii[2],
                       double turn, double begin, double sweep) {
    double size = fmax(radii[0], radii[1]) * sqrt(fabs(to[0] * to[3] - to[1] * to[2]));
    double step = fmin(M_PI / 16, 2 * acos(fmax(0, 1 - CHORD / fmax(size, CHORD))));
    double wanted = fmin(fmax(1, ceil(fabs(sweep) / fmax(step, 1e-3))), PARTS_MOST * 8);
    int parts = wanted >= 1 ? (int)wanted : 1;
    for (int i = 1; i <= parts; i++) {
        double a = begin + sweep * i / parts, x = radii[0] * cos(a), y = radii[1] * sin(a);
        toile_drawing_point(d, to, centre[0] + x * cos(turn) - y * sin(turn),
                            centre[1] + x * sin(turn) + y * cos(turn));
    }
}

void toile_drawing_close(toile_drawing *d) {
    if (d->status == TOILE_OK && d->line_count > 0)
        d->lines[d->line_count - 1].closed = true;
}

bool toile_drawing_number(const char *text, size_t length, double *number) {
    char copy[64], *end;
    while (length > 0 && strchr(" \t\r\n", text[0]))
        text++, length--;
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        length--;
    if (length == 0 || length >= sizeof copy)
        return false;
    for (size_t i = 0; i < length; i++) { /* no words such as nan, no hexadecimals */
        if (!text[i] || !strchr("0123456789+-.eE", text[i]))
            return false;
        copy[i] = text[i];
    }
    copy[length] = 0;
    *number = strtod(copy, &end);
    return *end == 0 && isfinite(*number);
}
