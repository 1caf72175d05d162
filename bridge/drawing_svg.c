/* SVG: paths and basic shapes with transforms, units from width, height and viewBox. The XML is scanned tag
 * by tag: entities are not expanded, and what is in defs and drawn by `use` (logos, notches, buttons) is no
 * panel. FreeSewing says by classes what a line is: "fabric" is sewn, "fabric sa" is its allowance. */
#include "drawing.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MOST 200
#define ATTRIBUTES_MOST 64  /* of a tag; more are not looked at */
#define PIXEL (0.0254 / 96) /* m, CSS */

typedef struct span {
    const char *text;
    size_t length;
} span;

typedef struct attribute {
    span name, value;
} attribute;

typedef struct level {
    span name;
    int at;          /* line of the file */
    toile_affine to; /* m */
    int piece;
    bool hidden;
} level;

typedef struct reader {
    toile_drawing *d;
    const char *text, *end;
    double unit; /* m, if asked for; 0: as the file says */
    int depth, attribute_count;
    bool root; /* has been seen */
    attribute attributes[ATTRIBUTES_MOST];
    level levels[DEPTH_MOST + 1];
} reader;

static bool is(span s, const char *word) {
    return s.length == strlen(word) && memcmp(s.text, word, s.length) == 0;
}

static span attribute_of(const reader *r, const char *name) {
    for (int i = 0; i < r->attribute_count; i++)
        if (is(r->attributes[i].name, name))
            return r->attributes[i].value;
    return (span){NULL, 0};
}

static bool contains(span s, const char *word) {
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.length; i++)
        if (memcmp(s.text + i, word, n) == 0)
            return true;
    return false;
}

/* Is one of the words in a list that spaces part? */
static bool has_word(span s, const char *const *words) {
    for (size_t i = 0; i < s.length;) {
        size_t n = 0;
        while (i + n < s.length && !isspace((unsigned char)s.text[i + n]))
            n++;
        for (int k = 0; words[k]; k++)
            if (is((span){s.text + i, n}, words[k]))
                return true;
        i += n + 1;
    }
    return false;
}

/* ---- numbers ---- */

/* The next number of a list, whatever parts it from the one before; a flag of an arc is one digit. */
static bool next_number(reader *r, span *s, bool flag, double *number) {
    size_t n = 0;
    bool point = false, power = false;
    while (s->length > 0 && (isspace((unsigned char)*s->text) || *s->text == ','))
        s->text++, s->length--;
    while (n < s->length && !(flag && n == 1)) {
        char c = s->text[n];
        bool sign = (c == '+' || c == '-') && (n == 0 || s->text[n - 1] == 'e' || s->text[n - 1] == 'E');
        bool dot = c == '.' && !point && !power, e = (c == 'e' || c == 'E') && !power && n > 0;
        if (!isdigit((unsigned char)c) && !sign && !dot && !e)
            break;
        point = point || dot;
        power = power || e;
        n++;
    }
    if (!toile_drawing_number(s->text, n, number)) {
        toile_drawing_refuse(r->d, "a number is expected at \"%.*s\"", (int)(s->length < 24 ? s->length : 24),
                             s->text);
        return false;
    }
    s->text += n;
    s->length -= n;
    return true;
}

static double plain_number(reader *r, const char *name, double otherwise) {
    span s = attribute_of(r, name);
    double number = otherwise;
    if (s.length > 0)
        next_number(r, &s, false, &number);
    return number;
}

/* A length with its unit, in metres; 0: there is none, or it is a part of something. */
static double length_of(reader *r, const char *name) {
    static const struct {
        const char *name;
        double size;
    } UNITS[] = {{"mm", 0.001},      {"cm", 0.01},  {"in", 0.0254}, {"pt", 0.0254 / 72},
                 {"pc", 0.0254 / 6}, {"px", PIXEL}, {"", PIXEL}};
    span s = attribute_of(r, name);
    double number;
    if (s.length == 0 || !next_number(r, &s, false, &number))
        return 0;
    while (s.length > 0 && isspace((unsigned char)s.text[s.length - 1]))
        s.length--;
    for (size_t i = 0; i < sizeof UNITS / sizeof *UNITS; i++)
        if (is(s, UNITS[i].name))
            return number * UNITS[i].size;
    return 0;
}

/* ---- transforms ---- */

static void read_transform(reader *r, span s, toile_affine to) {
    while (r->d->status == TOILE_OK) {
        double v[6] = {0};
        int count = 0;
        size_t n = 0;
        while (s.length > 0 && (isspace((unsigned char)*s.text) || *s.text == ','))
            s.text++, s.length--;
        if (s.length == 0)
            return;
        while (n < s.length && isalpha((unsigned char)s.text[n]))
            n++;
        span name = {s.text, n};
        s.text += n;
        s.length -= n;
        while (s.length > 0 && isspace((unsigned char)*s.text))
            s.text++, s.length--;
        bool fine = s.length > 0 && *s.text == '(';
        if (fine)
            s.text++, s.length--;
        while (fine && s.length > 0 && *s.text != ')' && count < 6 && next_number(r, &s, false, &v[count])) {
            count++;
            while (s.length > 0 && (isspace((unsigned char)*s.text) || *s.text == ','))
                s.text++, s.length--;
        }
        fine = fine && s.length > 0 && *s.text == ')';
        if (fine)
            s.text++, s.length--;
        toile_affine m = {1, 0, 0, 1, 0, 0};
        if (fine && is(name, "matrix") && count == 6) {
            memcpy(m, v, sizeof m);
        } else if (fine && is(name, "translate") && (count == 1 || count == 2)) {
            m[4] = v[0];
            m[5] = v[1];
        } else if (fine && is(name, "scale") && (count == 1 || count == 2)) {
            m[0] = v[0];
            m[3] = count == 2 ? v[1] : v[0];
        } else if (fine && is(name, "rotate") && (count == 1 || count == 3)) {
            double a = v[0] * M_PI / 180, c = cos(a), q = sin(a);
            memcpy(m, (toile_affine){c, q, -q, c, v[1] - c * v[1] + q * v[2], v[2] - q * v[1] - c * v[2]},
                   sizeof m);
        } else if (fine && is(name, "skewX") && count == 1) {
            m[2] = tan(v[0] * M_PI / 180);
        } else if (fine && is(name, "skewY") && count == 1) {
            m[1] = tan(v[0] * M_PI / 180);
        } else {
            toile_drawing_refuse(r->d, "the transform \"%.*s\" is not understood",
                                 (int)(name.length < 24 ? name.length : 24), name.text);
            return;
        }
        toile_affine_join(to, m, to);
    }
}

/* What an <svg> says of its size; y turns upwards at the outermost. */
static void read_viewport(reader *r, bool outermost, toile_affine to) {
    double width = length_of(r, "width"), height = length_of(r, "height"), box[4] = {0},
           scale[2] = {PIXEL, PIXEL};
    span view = attribute_of(r, "viewBox");
    int count = 0;
    while (view.length > 0 && count < 4 && next_number(r, &view, false, &box[count]))
        count++;
    if (!outermost) { /* a drawing in a drawing */
        if (count == 4 && box[2] > 0 && box[3] > 0 && width > 0 && height > 0)
            toile_drawing_refuse(r->d,
                                 "an <svg> inside of another has a viewBox of its own; make it a group");
        toile_affine_join(to, (toile_affine){1, 0, 0, 1, plain_number(r, "x", 0), plain_number(r, "y", 0)},
                          to);
        return;
    }
    if (r->unit > 0) {
        scale[0] = scale[1] = r->unit;
    } else if (count == 4 && box[2] > 0 && box[3] > 0 && (width > 0 || height > 0)) {
        scale[0] = width > 0 ? width / box[2] : height / box[3];
        scale[1] = height > 0 ? height / box[3] : scale[0];
        if (fabs(scale[0] - scale[1]) > 0.02 * scale[0]) /* else it was rounded: preserveAspectRatio */
            scale[0] = scale[1] = fmin(scale[0], scale[1]);
    } else if (!(width > 0 && height > 0)) {
        snprintf(r->d->remark, sizeof r->d->remark,
                 "the file does not say its size in a unit; its numbers are taken as pixels of 1/96 inch "
                 "(--units)");
    }
    memcpy(to, (toile_affine){scale[0], 0, 0, -scale[1], -scale[0] * box[0], scale[1] * box[1]},
           sizeof(toile_affine));
}

/* ---- shapes ---- */

/* What is drawn by the element's attributes. */
typedef struct pen {
    reader *r;
    const level *in;
    toile_affine to;
    toile_line_use use;
    span name;
} pen;

/* False: it is not shown, or is a note to the reader. */
static bool begin_shape(pen *p, reader *r) {
    static const char *const NOTES[] = {"note",   "mark",   "help",     "hidden", "dashed",
                                        "dotted", "lashed", "scalebox", "logo",   NULL};
    static const char *const FABRIC[] = {"fabric", NULL}, *const ALLOWANCE[] = {"sa", NULL};
    const level *in = &r->levels[r->depth];
    span class = attribute_of(r, "class"), marker = attribute_of(r, "marker-start"),
         label = attribute_of(r, "inkscape:label");
    *p = (pen){
        .r = r, .in = in, .use = TOILE_LINE_PLAIN, .name = label.length > 0 ? label : attribute_of(r, "id")};
    if (in->hidden)
        return false;
    memcpy(p->to, in->to, sizeof p->to);
    read_transform(r, attribute_of(r, "transform"), p->to);
    if (contains(marker, "grainline") ||
        (contains(marker, "cutonfold") && contains(attribute_of(r, "data-text"), "rainline")))
        p->use = TOILE_LINE_GRAIN;
    else if (has_word(class, NOTES))
        return false;
    else if (has_word(class, ALLOWANCE))
        p->use = TOILE_LINE_CUT;
    else if (has_word(class, FABRIC))
        p->use = TOILE_LINE_SEW;
    return true;
}

static void begin_line(const pen *p) {
    toile_drawing_line(p->r->d, p->in->piece, p->use, p->name.text, p->name.length);
}

static void put(const pen *p, double x, double y) {
    toile_drawing_point(p->r->d, p->to, x, y);
}

/* An arc from one point to another, SVG 1.1 appendix F.6.5 and F.6.6. */
static void draw_arc(const pen *p, const double a[2], const double v[7]) {
    double b[2] = {v[5], v[6]}, radii[2] = {fabs(v[0]), fabs(v[1])}, turn = v[2] * M_PI / 180, c = cos(turn),
           s = sin(turn);
    double half[2] = {0.5 * (a[0] - b[0]), 0.5 * (a[1] - b[1])};
    double x = c * half[0] + s * half[1], y = -s * half[0] + c * half[1];
    if (!(radii[0] > 0 && radii[1] > 0) || (half[0] == 0 && half[1] == 0)) {
        put(p, b[0], b[1]);
        return;
    }
    double over = x * x / (radii[0] * radii[0]) + y * y / (radii[1] * radii[1]);
    if (over > 1) {
        radii[0] *= sqrt(over);
        radii[1] *= sqrt(over);
        over = 1;
    }
    double far = sqrt(fmax(0, 1 / over - 1)) * ((v[3] != 0) == (v[4] != 0) ? -1 : 1);
    double u = far * radii[0] * y / radii[1], w = -far * radii[1] * x / radii[0];
    double centre[2] = {c * u - s * w + 0.5 * (a[0] + b[0]), s * u + c * w + 0.5 * (a[1] + b[1])};
    double begin = atan2((y - w) / radii[1], (x - u) / radii[0]),
           end = atan2((-y - w) / radii[1], (-x - u) / radii[0]);
    double sweep = end - begin;
    if (v[4] != 0 && sweep < 0)
        sweep += 2 * M_PI;
    if (v[4] == 0 && sweep > 0)
        sweep -= 2 * M_PI;
    toile_drawing_arc(p->r->d, p->to, centre, radii, turn, begin, sweep);
}

static void draw_path(const pen *p, span s) {
    static const char LETTERS[] = "MLHVCSQTAZ";
    static const int COUNTS[] = {2, 2, 1, 1, 6, 4, 4, 2, 7, 0};
    toile_drawing *d = p->r->d;
    double at[2] = {0, 0}, start[2] = {0, 0}, control[2] = {0, 0};
    char command = 0, before = 0;
    bool open = false;
    while (d->status == TOILE_OK) {
        while (s.length > 0 && (isspace((unsigned char)*s.text) || *s.text == ','))
            s.text++, s.length--;
        if (s.length == 0)
            return;
        if (isalpha((unsigned char)*s.text)) {
            command = *s.text++;
            s.length--;
        } else if (command == 'Z' || command == 'z') {
            command = 0;
        }
        char kind = (char)toupper((unsigned char)command);
        const char *found = kind ? strchr(LETTERS, kind) : NULL;
        if (!found || (!before && kind != 'M')) {
            toile_drawing_refuse(
                d, "a path has \"%.*s\"; it begins with M and has the commands M L H V C S Q T A Z",
                (int)(s.length < 24 ? s.length : 24) + (command != 0), s.text - (command != 0));
            return;
        }
        double v[7];
        int count = COUNTS[found - LETTERS];
        bool relative = islower((unsigned char)command) != 0;
        for (int i = 0; i < count; i++) {
            if (!next_number(p->r, &s, kind == 'A' && (i == 3 || i == 4), &v[i]))
                return;
            if (relative && kind != 'A')
                v[i] += kind == 'V' ? at[1] : at[i % 2];
            else if (relative && i >= 5)
                v[i] += at[i - 5];
        }
        if (kind == 'M') {
            memcpy(start, v, sizeof start);
            memcpy(at, v, sizeof at);
            open = false;
            command = relative ? 'l' : 'L'; /* what follows are lines */
            before = kind;
            continue;
        }
        if (kind == 'Z') {
            if (open)
                toile_drawing_close(d);
            memcpy(at, start, sizeof at);
            open = false;
            before = kind;
            continue;
        }
        if (!open) {
            begin_line(p);
            put(p, at[0], at[1]);
            open = true;
        }
        double c[4][2] = {{at[0], at[1]}};
        double mirrored[2] = {2 * at[0] - control[0], 2 * at[1] - control[1]};
        bool smooth = kind == 'S' ? before == 'C' || before == 'S' : before == 'Q' || before == 'T';
        switch (kind) {
        case 'L':
            memcpy(at, v, sizeof at);
            put(p, at[0], at[1]);
            break;
        case 'H':
        case 'V':
            at[kind == 'V'] = v[0];
            put(p, at[0], at[1]);
            break;
        case 'A':
            draw_arc(p, at, v);
            memcpy(at, v + 5, sizeof at);
            break;
        case 'C':
        case 'S':
            memcpy(c[1], kind == 'C' ? v : smooth ? mirrored : at, sizeof c[1]);
            memcpy(c[2], v + count - 4, sizeof c[2]);
            memcpy(c[3], v + count - 2, sizeof c[3]);
            memcpy(control, c[2], sizeof control);
            memcpy(at, c[3], sizeof at);
            toile_drawing_cubic(d, p->to, (const double(*)[2])c);
            break;
        default: /* Q, T: as a cubic */
            memcpy(control, kind == 'Q' ? v : smooth ? mirrored : at, sizeof control);
            memcpy(c[3], v + count - 2, sizeof c[3]);
            for (int k = 0; k < 2; k++) {
                c[1][k] = (c[0][k] + 2 * control[k]) / 3;
                c[2][k] = (c[3][k] + 2 * control[k]) / 3;
            }
            memcpy(at, c[3], sizeof at);
            toile_drawing_cubic(d, p->to, (const double(*)[2])c);
            break;
        }
        before = kind;
    }
}

static void draw_points(const pen *p, span s, bool closed) {
    double v[2];
    begin_line(p);
    for (;;) {
        while (s.length > 0 && (isspace((unsigned char)*s.text) || *s.text == ','))
            s.text++, s.length--;
        if (s.length == 0 || !next_number(p->r, &s, false, &v[0]) || !next_number(p->r, &s, false, &v[1]))
            break;
        put(p, v[0], v[1]);
    }
    if (closed)
        toile_drawing_close(p->r->d);
}

static void draw_rect(const pen *p) {
    reader *r = p->r;
    double x = plain_number(r, "x", 0), y = plain_number(r, "y", 0), w = plain_number(r, "width", 0),
           h = plain_number(r, "height", 0);
    double rx = plain_number(r, "rx", -1), ry = plain_number(r, "ry", -1);
    if (!(w > 0 && h > 0))
        return;
    rx = fmin(rx < 0 ? fmax(ry, 0) : rx, 0.5 * w);
    ry = fmin(ry < 0 ? fmax(rx, 0) : ry, 0.5 * h);
    double inner[4][2] = {
        {x + w - rx, y + ry}, {x + w - rx, y + h - ry}, {x + rx, y + h - ry}, {x + rx, y + ry}};
    begin_line(p);
    for (int k = 0; k < 4; k++) { /* corner by corner, each a quarter of an ellipse */
        double begin = (k - 1) * M_PI / 2;
        put(p, inner[k][0] + rx * round(cos(begin)), inner[k][1] + ry * round(sin(begin)));
        if (rx > 0 && ry > 0)
            toile_drawing_arc(r->d, p->to, inner[k], (double[2]){rx, ry}, 0, begin, M_PI / 2);
    }
    toile_drawing_close(r->d);
}

static void draw_ellipse(const pen *p, double rx, double ry) {
    double centre[2] = {plain_number(p->r, "cx", 0), plain_number(p->r, "cy", 0)};
    if (!(rx > 0 && ry > 0))
        return;
    begin_line(p);
    put(p, centre[0] + rx, centre[1]);
    toile_drawing_arc(p->r->d, p->to, centre, (double[2]){rx, ry}, 0, 0, 2 * M_PI);
    toile_drawing_close(p->r->d);
}

static void draw_shape(reader *r, span name) {
    pen p;
    bool line = is(name, "line");
    if (!(line || is(name, "path") || is(name, "polygon") || is(name, "polyline") || is(name, "rect") ||
          is(name, "circle") || is(name, "ellipse")) ||
        !begin_shape(&p, r))
        return;
    if (is(name, "path")) {
        draw_path(&p, attribute_of(r, "d"));
    } else if (is(name, "rect")) {
        draw_rect(&p);
    } else if (is(name, "circle")) {
        double radius = plain_number(r, "r", 0);
        draw_ellipse(&p, radius, radius);
    } else if (is(name, "ellipse")) {
        draw_ellipse(&p, plain_number(r, "rx", 0), plain_number(r, "ry", 0));
    } else if (line) {
        begin_line(&p);
        put(&p, plain_number(r, "x1", 0), plain_number(r, "y1", 0));
        put(&p, plain_number(r, "x2", 0), plain_number(r, "y2", 0));
    } else {
        draw_points(&p, attribute_of(r, "points"), is(name, "polygon"));
    }
}

/* ---- tags ---- */

static void step(reader *r, size_t count) {
    for (size_t i = 0; i < count; i++)
        r->d->at += r->text[i] == '\n';
    r->text += count;
}

/* Goes behind the next place of a word; refuses the file if there is none. */
static void skip_to(reader *r, const char *word, const char *what) {
    size_t n = strlen(word);
    for (const char *t = r->text; t + n <= r->end; t++)
        if (*t == *word && memcmp(t, word, n) == 0) {
            step(r, (size_t)(t - r->text) + n);
            return;
        }
    toile_drawing_refuse(r->d, "the file is cut off in %s; save or copy it again", what);
}

/* <!DOCTYPE ...>, with what it may declare in brackets: never looked at, so no entity grows. */
static void skip_declaration(reader *r) {
    int inside = 0;
    for (const char *t = r->text; t < r->end; t++) {
        inside += *t == '[' ? 1 : *t == ']' ? -1 : 0;
        if (*t == '>' && inside <= 0) {
            step(r, (size_t)(t - r->text) + 1);
            return;
        }
    }
    toile_drawing_refuse(r->d, "the file is cut off in a declaration; save or copy it again");
}

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '-' || c == '_' || c == ':' || c == '.' ||
           (unsigned char)c >= 0x80;
}

static span read_name(reader *r) {
    const char *t = r->text;
    while (t < r->end && is_name(*t))
        t++;
    span name = {r->text, (size_t)(t - r->text)};
    r->text = t;
    return name;
}

static void skip_spaces(reader *r) {
    const char *t = r->text;
    while (t < r->end && isspace((unsigned char)*t))
        t++;
    step(r, (size_t)(t - r->text));
}

/* Reads attributes up to the end of a tag; gives whether it ends itself. */
static bool read_attributes(reader *r, span name) {
    int begins = r->d->at;
    r->attribute_count = 0;
    while (r->d->status == TOILE_OK) {
        skip_spaces(r);
        if (r->text < r->end && *r->text == '>') {
            r->text++;
            return false;
        }
        if (r->end - r->text >= 2 && r->text[0] == '/' && r->text[1] == '>') {
            r->text += 2;
            return true;
        }
        attribute a = {.name = read_name(r)};
        skip_spaces(r);
        bool fine = a.name.length > 0 && r->text < r->end && *r->text == '=';
        if (fine) {
            r->text++;
            skip_spaces(r);
            fine = r->text < r->end && (*r->text == '"' || *r->text == '\'');
        }
        const char *stop = fine ? memchr(r->text + 1, *r->text, (size_t)(r->end - r->text - 1)) : NULL;
        if (!stop) {
            toile_drawing_refuse(r->d, "<%.*s> of line %d %s", (int)(name.length < 32 ? name.length : 32),
                                 name.text, begins,
                                 fine || r->text >= r->end ? "is cut off; save or copy the file again"
                                                           : "has something that is no attribute=\"value\"");
            return false;
        }
        a.value = (span){r->text + 1, (size_t)(stop - r->text - 1)};
        step(r, a.value.length + 2);
        if (r->attribute_count < ATTRIBUTES_MOST)
            r->attributes[r->attribute_count++] = a;
    }
    return false;
}

/* What an element changes for those in it. */
static void open_level(reader *r, span name, span bare) {
    static const char *const HIDING[] = {"hidden", NULL};
    static const char *const UNSEEN[] = {"defs",    "symbol", "marker",   "clipPath", "mask",
                                         "pattern", "text",   "metadata", "style",    NULL};
    if (r->depth >= DEPTH_MOST) {
        toile_drawing_refuse(r->d, "elements are nested more than %d deep; ungroup some", DEPTH_MOST);
        return;
    }
    const level *out = &r->levels[r->depth];
    level *in = &r->levels[++r->depth];
    *in = *out;
    in->name = name;
    in->at = r->d->at;
    span style = attribute_of(r, "style"), label = attribute_of(r, "inkscape:label"),
         id = label.length > 0 ? label : attribute_of(r, "id");
    in->hidden = out->hidden || is(attribute_of(r, "display"), "none") || contains(style, "display:none") ||
                 has_word(attribute_of(r, "class"), HIDING);
    for (int i = 0; UNSEEN[i]; i++)
        in->hidden = in->hidden || is(bare, UNSEEN[i]);
    if (is(bare, "svg"))
        read_viewport(r, r->depth == 1, in->to);
    read_transform(r, attribute_of(r, "transform"), in->to);
    if (is(bare, "g") && id.length > 0 && !in->hidden) {
        for (size_t i = 0; i + 6 < id.length; i++) /* FreeSewing: fs-stack-NAME-part-NAME */
            if (memcmp(id.text + i, "-part-", 6) == 0) {
                id = (span){id.text + i + 6, id.length - i - 6};
                break;
            }
        in->piece = toile_drawing_piece(r->d, id.text, id.length);
    }
}

static void close_level(reader *r) {
    span name = read_name(r);
    const level *in = &r->levels[r->depth];
    if (r->depth == 0 || name.length != in->name.length ||
        memcmp(name.text, in->name.text, name.length) != 0) {
        toile_drawing_refuse(r->d, "</%.*s> closes what is not open; the innermost is <%.*s> of line %d",
                             (int)(name.length < 32 ? name.length : 32), name.text,
                             (int)(in->name.length < 32 ? in->name.length : 32),
                             r->depth ? in->name.text : "", in->at);
        return;
    }
    r->depth--;
    skip_to(r, ">", "a tag");
}

static void read_tag(reader *r) {
    span name = read_name(r), bare = name;
    const char *colon = memchr(name.text, ':', name.length);
    if (colon)
        bare = (span){colon + 1, name.length - (size_t)(colon + 1 - name.text)};
    if (name.length == 0 || (!r->root && !is(bare, "svg"))) {
        toile_drawing_refuse(r->d, "<%.*s is not the beginning of an SVG drawing",
                             (int)(name.length < 32 ? name.length : 32), name.text);
        return;
    }
    r->root = true;
    bool ends = read_attributes(r, name);
    if (r->d->status != TOILE_OK)
        return;
    draw_shape(r, bare);
    if (!ends)
        open_level(r, name, bare);
}

toile_status toile_svg_read(toile_drawing *d, const char *text, size_t length, double unit) {
    reader *r = toile_alloc(d->memory, 1, sizeof *r);
    if (!r)
        return d->status = toile_fail_memory(d->error, "a drawing");
    *r = (reader){.d = d, .text = text, .end = text + length, .unit = unit};
    toile_drawing_piece(d, "", 0);
    while (d->status == TOILE_OK) {
        const char *next = r->text < r->end ? memchr(r->text, '<', (size_t)(r->end - r->text)) : NULL;
        if (!next)
            break;
        step(r, (size_t)(next - r->text) + 1);
        size_t left = (size_t)(r->end - r->text);
        if (left >= 3 && memcmp(r->text, "!--", 3) == 0)
            skip_to(r, "-->", "a comment");
        else if (left >= 8 && memcmp(r->text, "![CDATA[", 8) == 0)
            skip_to(r, "]]>", "a CDATA section");
        else if (left >= 1 && *r->text == '?')
            skip_to(r, "?>", "a processing instruction");
        else if (left >= 1 && *r->text == '!')
            skip_declaration(r);
        else if (left >= 1 && *r->text == '/') {
            r->text++;
            close_level(r);
        } else {
            read_tag(r);
        }
    }
    if (d->status == TOILE_OK && !r->root)
        toile_drawing_refuse(d, "there is no <svg>; this is no SVG drawing");
    if (d->status == TOILE_OK && r->depth > 0)
        toile_drawing_refuse(
            d, "the file is cut off: <%.*s> of line %d is not closed; save or copy it again",
            (int)(r->levels[r->depth].name.length < 32 ? r->levels[r->depth].name.length : 32),
            r->levels[r->depth].name.text, r->levels[r->depth].at);
    toile_free(d->memory, r);
    return d->status;
}
