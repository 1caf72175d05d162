/* DXF in text form, as pattern makers exchange it (AAMA-292, ASTM D6673: a block for every piece, layer 1 the
 * cut line, 14 the sew line, 7 the grain line) and as drawing programs write it (closed lines of any layer
 * among the entities). */
#include "drawing.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SPLINE_MOST 5000 /* points of a spline */
#define DEGREE_MOST 10

typedef struct pair {
    int code;
    const char *value;
    size_t length;
} pair;

typedef enum entity_kind {
    OTHER,
    LINE,
    ARC,
    CIRCLE,
    ELLIPSE,
    POLYLINE,
    LWPOLYLINE,
    SPLINE,
    TEXT
} entity_kind;

/* What has been read of an entity; which codes mean what depends on its kind. */
typedef struct entity {
    entity_kind kind;
    char layer[16];
    double x[2], y[2], radius, angles[2];
    int flags, degree;
    bool started; /* a polyline has its line */
    bool has_vertex;
    double vertex[3]; /* x, y, bulge to the next */
    double before[3], first[3];
    bool any; /* before and first are set */
    const char *text;
    size_t text_length;
    int control_count, knot_count;
    double control[SPLINE_MOST][2], knots[SPLINE_MOST + DEGREE_MOST + 1];
} entity;

enum { OUTSIDE = -1, SYSTEM = -2 }; /* in no block; in one of the program itself */

typedef struct reader {
    toile_drawing *d;
    const char *text, *end;
    double unit;          /* 0: not said */
    bool from_text, told; /* said by a text; any said */
    int block;            /* piece, or one of the below */
    bool draw, pieces;    /* whether this way through the file draws, and what: blocks or entities */
    bool coded;           /* blocks have layer 1 or 14: pieces as AAMA and ASTM write them */
    entity *e;
} reader;

/* ---- pairs of lines ---- */

static bool next_line(reader *r, const char **line, size_t *length) {
    if (r->text >= r->end)
        return false;
    const char *stop = memchr(r->text, '\n', (size_t)(r->end - r->text));
    *line = r->text;
    *length = (size_t)((stop ? stop : r->end) - r->text);
    r->text = stop ? stop + 1 : r->end;
    while (*length > 0 && isspace((unsigned char)(*line)[*length - 1]))
        --*length;
    r->d->at++;
    return true;
}

/* False at the end of the file, or where it is refused. */
static bool next_pair(reader *r, pair *p) {
    const char *line;
    size_t length;
    double code;
    if (r->d->status != TOILE_OK || !next_line(r, &line, &length))
        return false;
    if (r->text >= r->end) {
        toile_drawing_refuse(r->d, "the file is cut off after a group code; save or copy it again");
        return false;
    }
    if (!toile_drawing_number(line, length, &code) || code != floor(code) || fabs(code) > 2000) {
        toile_drawing_refuse(
            r->d, "\"%.*s\" is no group code; a DXF file in text form has a number on every other line%s",
            (int)(length < 32 ? length : 32), line,
            length > 20 && memcmp(line, "AutoCAD Binary DXF", 18) == 0 ? ", save this one as text" : "");
        return false;
    }
    p->code = (int)code;
    next_line(r, &p->value, &p->length);
    return true;
}

static bool is(const pair *p, const char *word) {
    return p->length == strlen(word) && memcmp(p->value, word, p->length) == 0;
}

static double number(reader *r, const pair *p) {
    double value = 0;
    if (!toile_drawing_number(p->value, p->length, &value))
        toile_drawing_refuse(r->d, "\"%.*s\" is no number that a drawing can have",
                             (int)(p->length < 32 ? p->length : 32), p->value);
    return value;
}

/* ---- entities ---- */

static bool on_layer(const entity *e, const char *layer) {
    return strcmp(e->layer, layer) == 0;
}

/* Begins a line for what is on a layer of panels; false: it is not drawn. */
static bool begin(reader *r) {
    const entity *e = r->e;
    toile_line_use use = TOILE_LINE_PLAIN;
    r->coded = r->coded || (r->block >= 0 && (on_layer(e, "1") || on_layer(e, "14")));
    if (!r->draw || r->block == SYSTEM || r->pieces != (r->block >= 0))
        return false;
    if (r->coded) {
        if (on_layer(e, "1")) {
            use = TOILE_LINE_CUT;
        } else if (on_layer(e, "14")) {
            use = TOILE_LINE_SEW;
        } else if (on_layer(e, "7")) {
            use = TOILE_LINE_GRAIN;
        } else if (e->layer[0] >= '2' && e->layer[0] <= '9' && !on_layer(e, "8")) {
            return false; /* turn and curve points, notches, annotations, lines to validate others by */
        } else if (e->layer[0] == '1' && isdigit((unsigned char)e->layer[1])) {
            return false; /* stripe and plaid lines, cutouts, mirror lines */
        }
    }
    toile_drawing_line(r->d, r->block >= 0 ? r->block : 0, use, "", 0);
    return true;
}

static void scale_of(const reader *r, toile_affine to) {
    memcpy(to, (toile_affine){r->unit, 0, 0, r->unit, 0, 0}, sizeof(toile_affine));
}

/* From a vertex to the next: a bulge is the tangent of a quarter of the angle that an arc goes through. */
static void draw_side(reader *r, const double a[3], const double b[3]) {
    toile_affine to;
    scale_of(r, to);
    double chord = hypot(b[0] - a[0], b[1] - a[1]), bulge = a[2];
    if (fabs(bulge) < 1e-6 || !(chord > 0)) {
        toile_drawing_point(r->d, to, b[0], b[1]);
        return;
    }
    double sweep = 4 * atan(bulge), away = chord * (1 - bulge * bulge) / (4 * bulge),
           radius = hypot(0.5 * chord, away);
    double centre[2] = {0.5 * (a[0] + b[0]) - away * (b[1] - a[1]) / chord,
                        0.5 * (a[1] + b[1]) + away * (b[0] - a[0]) / chord};
    toile_drawing_arc(r->d, to, centre, (double[2]){radius, radius}, 0,
                      atan2(a[1] - centre[1], a[0] - centre[0]), sweep);
}

/* The vertex of a polyline whose codes have all been read. */
static void flush_vertex(reader *r) {
    entity *e = r->e;
    if (!e->has_vertex)
        return;
    e->has_vertex = false;
    if (!e->started)
        return;
    if (e->any) {
        draw_side(r, e->before, e->vertex);
    } else {
        toile_affine to;
        scale_of(r, to);
        toile_drawing_point(r->d, to, e->vertex[0], e->vertex[1]);
        memcpy(e->first, e->vertex, sizeof e->first);
    }
    memcpy(e->before, e->vertex, sizeof e->before);
    e->any = true;
}

static void end_polyline(reader *r) {
    entity *e = r->e;
    flush_vertex(r);
    if (e->started && e->any && (e->flags & 1)) {
        draw_side(r, e->before, e->first);
        toile_drawing_close(r->d);
    }
    e->kind = OTHER;
}

/* De Boor's algorithm at a parameter in the knots' range. */
static void spline_point(const entity *e, double t, double at[2]) {
    int n = e->degree, k = n;
    double p[DEGREE_MOST + 1][2];
    while (k + 1 < e->control_count && e->knots[k + 1] <= t)
        k++;
    for (int i = 0; i <= n; i++)
        memcpy(p[i], e->control[k - n + i], sizeof p[i]);
    for (int level = 1; level <= n; level++)
        for (int i = n; i >= level; i--) {
            double low = e->knots[k - n + i], span = e->knots[i + 1 + k - level] - low,
                   a = span > 0 ? (t - low) / span : 0;
            for (int c = 0; c < 2; c++)
                p[i][c] = (1 - a) * p[i - 1][c] + a * p[i][c];
        }
    memcpy(at, p[n], 2 * sizeof *at);
}

static void draw_spline(reader *r) {
    const entity *e = r->e;
    toile_affine to;
    scale_of(r, to);
    if (e->degree < 1 || e->degree > DEGREE_MOST || e->control_count <= e->degree ||
        e->knot_count != e->control_count + e->degree + 1) {
        toile_drawing_refuse(r->d,
                             "a spline of degree %d has %d control points and %d knots; it takes %d knots",
                             e->degree, e->control_count, e->knot_count, e->control_count + e->degree + 1);
        return;
    }
    if (!begin(r))
        return;
    for (int i = e->degree; i < e->control_count; i++) {
        double from = e->knots[i], size = e->knots[i + 1] - from, at[2];
        for (int s = i == e->degree ? 0 : 1; s <= 24; s++) {
            if (!(size > 0) && s > 0)
                break;
            spline_point(e, s == 24 ? from + size * (1 - 1e-12) : from + size * s / 24, at);
            toile_drawing_point(r->d, to, at[0], at[1]);
        }
    }
    if (e->flags & 1)
        toile_drawing_close(r->d);
}

static void draw_round(reader *r) {
    const entity *e = r->e;
    toile_affine to;
    scale_of(r, to);
    double centre[2] = {e->x[0], e->y[0]}, radii[2] = {e->radius, e->radius}, turn = 0;
    double from = e->angles[0], sweep = e->angles[1] - from;
    if (e->kind == ELLIPSE) { /* end of the longer axis from the centre, ratio of the axes, parameters */
        radii[0] = hypot(e->x[1], e->y[1]);
        radii[1] = e->radius * radii[0];
        turn = atan2(e->y[1], e->x[1]);
    } else {
        from *= M_PI / 180;
        sweep *= M_PI / 180;
    }
    bool whole =
        e->kind == CIRCLE || (e->kind == ELLIPSE && fabs(fabs(sweep) - 2 * M_PI) < 1e-6) || sweep == 0;
    if (whole)
        sweep = 2 * M_PI;
    else
        sweep -= 2 * M_PI * floor(sweep / (2 * M_PI)); /* counter-clockwise */
    if (!(radii[0] > 0 && radii[1] > 0) || !begin(r))
        return;
    double x = radii[0] * cos(from), y = radii[1] * sin(from);
    toile_drawing_point(r->d, to, centre[0] + x * cos(turn) - y * sin(turn),
                        centre[1] + x * sin(turn) + y * cos(turn));
    toile_drawing_arc(r->d, to, centre, radii, turn, from, sweep);
    if (whole)
        toile_drawing_close(r->d);
}

/* What a text says after a key such as "Piece Name:", whatever its case. */
static bool says(const entity *e, const char *key, const char **value, size_t *length) {
    size_t n = strlen(key);
    if (e->text_length < n)
        return false;
    for (size_t i = 0; i < n; i++)
        if (tolower((unsigned char)e->text[i]) != key[i])
            return false;
    *value = e->text + n;
    *length = e->text_length - n;
    while (*length > 0 && (**value == ' ' || **value == ':'))
        ++*value, --*length;
    return *length > 0;
}

static void read_text(reader *r) {
    const char *value;
    size_t length;
    if (says(r->e, "units", &value, &length)) {
        char first = (char)tolower((unsigned char)*value);
        r->from_text = r->told = true;
        r->unit = first == 'm' ? 0.001 : first == 'e' || first == 'i' ? 0.0254 : r->unit;
    }
    if (r->pieces && r->block >= 0 && r->d->status == TOILE_OK && says(r->e, "piece name", &value, &length)) {
        int made = toile_drawing_piece(r->d, value, length); /* for its name */
        if (r->d->status == TOILE_OK && r->d->pieces[made].name[0])
            r->d->pieces[r->block] = r->d->pieces[made];
        r->d->piece_count -= r->d->status == TOILE_OK;
    }
}

/* An entity whose codes have all been read. */
static void end_entity(reader *r) {
    entity *e = r->e;
    toile_affine to;
    switch (e->kind) {
    case LINE:
        if (begin(r)) {
            scale_of(r, to);
            for (int i = 0; i < 2; i++)
                toile_drawing_point(r->d, to, e->x[i], e->y[i]);
        }
        break;
    case ARC:
    case CIRCLE:
    case ELLIPSE: draw_round(r); break;
    case SPLINE: draw_spline(r); break;
    case LWPOLYLINE:
    case POLYLINE: end_polyline(r); break;
    case TEXT: read_text(r); break;
    case OTHER: break;
    }
    e->kind = OTHER;
}

static entity_kind kind_of(const pair *p) {
    static const struct {
        const char *name;
        entity_kind kind;
    } KINDS[] = {{"LINE", LINE},       {"ARC", ARC},           {"CIRCLE", CIRCLE},
                 {"ELLIPSE", ELLIPSE}, {"POLYLINE", POLYLINE}, {"LWPOLYLINE", LWPOLYLINE},
                 {"SPLINE", SPLINE},   {"TEXT", TEXT},         {"MTEXT", TEXT}};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (is(p, KINDS[i].name))
            return KINDS[i].kind;
    return OTHER;
}

static void begin_entity(reader *r, const pair *p) {
    entity *e = r->e;
    if (e->kind == POLYLINE && is(p, "VERTEX")) { /* its vertices are entities of their own */
        flush_vertex(r);
        e->started = e->started || begin(r);
        e->has_vertex = true;
        memset(e->vertex, 0, sizeof e->vertex);
        return;
    }
    end_entity(r);
    *e = (entity){0};
    e->kind = kind_of(p);
    e->angles[1] = e->kind == ELLIPSE ? 2 * M_PI : 0;
    e->degree = 3;
}

static void spline_code(reader *r, const pair *p) {
    entity *e = r->e;
    if (p->code == 40 ? e->knot_count >= SPLINE_MOST + DEGREE_MOST : e->control_count >= SPLINE_MOST) {
        toile_drawing_refuse(r->d, "a spline has more than %d points", SPLINE_MOST - 1);
        return;
    }
    if (p->code == 40)
        e->knots[e->knot_count++] = number(r, p);
    else if (p->code == 10)
        e->control[e->control_count++][0] = number(r, p);
    else if (e->control_count > 0)
        e->control[e->control_count - 1][1] = number(r, p);
}

static void entity_code(reader *r, const pair *p) {
    entity *e = r->e;
    bool poly = e->kind == POLYLINE || e->kind == LWPOLYLINE;
    switch (p->code) {
    case 8:
        if (!(e->kind == POLYLINE && e->has_vertex))
            snprintf(e->layer, sizeof e->layer, "%.*s", (int)(p->length < 15 ? p->length : 15), p->value);
        break;
    case 10:
        if (e->kind == LWPOLYLINE) {
            flush_vertex(r);
            e->started = e->started || begin(r);
            e->has_vertex = true;
            memset(e->vertex, 0, sizeof e->vertex);
        }
        /* fall through */
    case 20:
        if (e->kind == SPLINE)
            spline_code(r, p);
        else if (poly && e->has_vertex)
            e->vertex[p->code == 20] = number(r, p);
        else if (e->kind != OTHER && !poly)
            *(p->code == 10 ? &e->x[0] : &e->y[0]) = number(r, p);
        break;
    case 11:
    case 21:
        if (e->kind == LINE || e->kind == ELLIPSE)
            *(p->code == 11 ? &e->x[1] : &e->y[1]) = number(r, p);
        break;
    case 40:
        if (e->kind == SPLINE)
            spline_code(r, p);
        else if (e->kind == ARC || e->kind == CIRCLE || e->kind == ELLIPSE)
            e->radius = number(r, p);
        break;
    case 41:
    case 42:
        if (poly && p->code == 42 && e->has_vertex)
            e->vertex[2] = number(r, p);
        else if (e->kind == ELLIPSE)
            e->angles[p->code - 41] = number(r, p);
        break;
    case 50:
    case 51:
        if (e->kind == ARC)
            e->angles[p->code - 50] = number(r, p);
        break;
    case 70:
        if (e->kind == SPLINE || e->kind == LWPOLYLINE || (e->kind == POLYLINE && !e->has_vertex))
            e->flags = (int)fmin(fmax(number(r, p), 0), 1e6);
        break;
    case 71:
        if (e->kind == SPLINE)
            e->degree = (int)fmin(fmax(number(r, p), 0), 100);
        break;
    case 1:
        if (e->kind == TEXT) {
            e->text = p->value;
            e->text_length = p->length;
        }
        break;
    default: break;
    }
}

/* ---- the file ---- */

static void header_unit(reader *r, const pair *variable, const pair *value) {
    static const double UNITS[] = {0, 0.0254, 0.3048, 0, 0.001, 0.01, 1};
    double code;
    if (r->from_text || value->code != 70)
        return;
    code = number(r, value);
    if (is(variable, "$INSUNITS") && code >= 1 && code <= 6 && UNITS[(int)code] > 0) {
        r->unit = UNITS[(int)code];
        r->told = r->from_text = true; /* nothing else is asked */
    } else if (is(variable, "$MEASUREMENT") && !r->told) {
        r->unit = code == 0 ? 0.0254 : 0.001;
        r->told = true;
    }
}

/* One way through the file. */
static void pass(reader *r, const char *text, bool draw, bool pieces) {
    pair p, variable = {0};
    bool in_header = false, ended = false, named = false;
    toile_drawing *d = r->d;
    d->at = 0;
    r->text = text;
    r->draw = draw;
    r->pieces = pieces;
    r->block = OUTSIDE;
    *r->e = (entity){0};
    while (!ended && next_pair(r, &p)) {
        if (p.code == 0) {
            begin_entity(r, &p);
            if (is(&p, "BLOCK")) {
                r->block = SYSTEM;
                named = false;
            } else if (is(&p, "ENDBLK")) {
                r->block = OUTSIDE;
            } else if (is(&p, "EOF")) {
                ended = true;
            } else if (is(&p, "ENDSEC")) {
                in_header = false;
            }
        } else if (p.code == 2 && r->block == SYSTEM && !named) {
            named = true;
            if (p.length > 0 && p.value[0] != '*' && p.value[0] != '$')
                r->block = draw && pieces ? toile_drawing_piece(d, p.value, p.length) : 0;
        } else if (p.code == 2 && is(&p, "HEADER")) {
            in_header = true;
        } else if (p.code == 9 && in_header) {
            variable = p;
        } else if (in_header && !draw) {
            header_unit(r, &variable, &p);
        } else {
            entity_code(r, &p);
        }
    }
    if (d->status == TOILE_OK && !ended)
        toile_drawing_refuse(d, "the file is cut off: it has no EOF at its end; save or copy it again");
}

toile_status toile_dxf_read(toile_drawing *d, const char *text, size_t length, double unit) {
    reader state = {.d = d, .end = text + length}, *r = &state;
    r->e = toile_alloc(d->memory, 1, sizeof *r->e);
    if (!r->e)
        return d->status = toile_fail_memory(d->error, "a drawing");
    /* First what the rest depends on: units, which texts at the end may say, and whether blocks are pieces.
     */
    pass(r, text, false, true);
    if (unit > 0) {
        r->unit = unit;
    } else if (!(r->unit > 0)) {
        r->unit = 0.001;
        snprintf(d->remark, sizeof d->remark,
                 "the file does not say its units; millimetres are taken (--units)");
    }
    if (!r->coded && d->status == TOILE_OK) {
        toile_drawing_piece(d, "", 0);
        pass(r, text, true, false);
    }
    if (d->line_count == 0 && d->status == TOILE_OK) {
        d->piece_count = 0;
        pass(r, text, true, true);
    }
    toile_free(d->memory, r->e);
    return d->status;
}
