#include "pattern_drawing.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SAME 1e-4             /* m; points nearer are one */
#define MEET 5e-4             /* m; ends of lines nearer are joined */
#define CORNER (M_PI / 6)     /* an outline that turns by more begins an edge */
#define EDGE_LEAST 2e-3       /* m; of two corners nearer than this, the sharper one counts */
#define MARK 0.01             /* m; smaller closed lines are marks */
#define ALLOWANCE_MOST 0.04   /* m from a cut line to the sew line in it, on average */
#define ALLOWANCE_CORNER 0.15 /* m, at corners */
#define SIZE_LEAST 0.002      /* m, of a panel */
#define SIZE_MOST 20.0
#define ALLOWANCE_AREA 0.25 /* a sew line encloses more than this part of what the cut line does */
#define GAP 0.05            /* m between panels that lie side by side */
#define FRONT 1.0           /* m that they lie in front of the body's middle */
#define JOINED_MOST 5000    /* open lines of a piece that are tried to be joined */
#define LOOPS_MOST 3000     /* closed lines of a piece */

typedef struct loop {
    const toile_line *line; /* the first of those it is made of */
    toile_line_use use;
    int count;
    double (*points)[2]; /* m, counter-clockwise */
    double area, low[2], high[2];
    bool inside; /* of another of its use */
    bool taken;  /* as a sew line */
} loop;

typedef struct maker {
    const toile_drawing *d;
    toile_memory *memory;
    const json_t *companion;
    const char *companion_path;
    toile_garmentcode_log *log;
    void *user;
    int loop_count, loop_room; /* of the piece that is worked on */
    loop *loops;
    json_t *drawn; /* panels by name: {"vertices", "edges", "grain", "size"}, in metres */
    json_t *used;  /* how often names were wanted */
    int inner;
} maker;

static __attribute__((format(printf, 2, 3))) void warn(const maker *m, const char *format, ...) {
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (m->log)
        m->log(m->user, text);
}

static toile_status no_memory(const maker *m) {
    return toile_fail_memory(m->d->error, "a drawing's panels");
}

static double distance(const double a[2], const double b[2]) {
    return hypot(a[0] - b[0], a[1] - b[1]);
}

/* ---- closed lines ---- */

static void free_loops(maker *m) {
    for (int i = 0; i < m->loop_count; i++)
        toile_free(m->memory, m->loops[i].points);
    m->loop_count = 0;
}

/* Takes over the points. Those that are nowhere new are left out; what encloses nothing is no loop. */
static toile_status add_loop(maker *m, const toile_line *line, double (*points)[2], int count) {
    loop l = {.line = line,
              .use = line->use,
              .points = points,
              .low = {INFINITY, INFINITY},
              .high = {-INFINITY, -INFINITY}};
    for (int i = 0; i < count; i++)
        if (l.count == 0 || distance(points[i], points[l.count - 1]) > SAME)
            memmove(points[l.count++], points[i], sizeof *points);
    while (l.count > 1 && distance(points[0], points[l.count - 1]) <= SAME)
        l.count--;
    for (int i = 0; i < l.count; i++) {
        const double *p = points[i], *q = points[(i + 1) % l.count];
        l.area += 0.5 * (p[0] * q[1] - p[1] * q[0]);
        for (int k = 0; k < 2; k++) {
            l.low[k] = fmin(l.low[k], p[k]);
            l.high[k] = fmax(l.high[k], p[k]);
        }
    }
    if (l.count < 3 ||
        (l.use == TOILE_LINE_PLAIN && fmax(l.high[0] - l.low[0], l.high[1] - l.low[1]) < MARK)) {
        toile_free(m->memory, points);
        return TOILE_OK;
    }
    for (int i = 1, j = l.count - 1; l.area < 0 && i < j; i++, j--) { /* the first point stays it */
        double swap[2];
        memcpy(swap, points[i], sizeof swap);
        memcpy(points[i], points[j], sizeof swap);
        memcpy(points[j], swap, sizeof swap);
    }
    l.area = fabs(l.area);
    if (m->loop_count == LOOPS_MOST) {
        toile_free(m->memory, points);
        return toile_fail(
            m->d->error, TOILE_INVALID,
            "%.200s:%d: piece \"%s\" has more than %d closed lines; is it a drawing of pattern pieces?",
            m->d->path, line->at, m->d->pieces[line->piece].name, LOOPS_MOST);
    }
    if (m->loop_count == m->loop_room) {
        int room = m->loop_room ? 2 * m->loop_room : 16;
        loop *grown = toile_grow(m->memory, m->loops, (size_t)m->loop_room, (size_t)room, sizeof *grown);
        if (!grown) {
            toile_free(m->memory, points);
            return no_memory(m);
        }
        m->loops = grown;
        m->loop_room = room;
    }
    m->loops[m->loop_count++] = l;
    return TOILE_OK;
}

static bool is_closed(const maker *m, const toile_line *line) {
    if (line->count < 3)
        return false;
    const double(*p)[2] = (const double(*)[2])m->d->points + line->first;
    return line->closed || distance(p[0], p[line->count - 1]) <= MEET;
}

static toile_status add_closed(maker *m, const toile_line *line) {
    double(*points)[2] = toile_alloc(m->memory, (size_t)line->count, sizeof *points);
    if (!points)
        return no_memory(m);
    memcpy(points, m->d->points + line->first, (size_t)line->count * sizeof *points);
    return add_loop(m, line, points, line->count);
}

/* Joins open lines of one use whose ends meet. `open` lists them, and loses those that are joined; what stays
 * open is told by the smallest gap that was left, m. */
static toile_status join_lines(maker *m, const toile_line **open, int count, double *gap) {
    *gap = INFINITY;
    for (int first = 0; first < count; first++) {
        if (!open[first])
            continue;
        const toile_line *line = open[first];
        int total = line->count, room = line->count;
        double(*points)[2] = toile_alloc(m->memory, (size_t)room, sizeof *points);
        bool grows = true;
        if (!points)
            return no_memory(m);
        memcpy(points, m->d->points + line->first, (size_t)total * sizeof *points);
        open[first] = NULL;
        while (grows && distance(points[0], points[total - 1]) > MEET) {
            grows = false;
            for (int i = first + 1; i < count && !grows; i++) {
                if (!open[i])
                    continue;
                const double(*more)[2] = (const double(*)[2])m->d->points + open[i]->first;
                int n = open[i]->count;
                bool ahead = distance(points[total - 1], more[0]) <= MEET;
                if (!ahead && distance(points[total - 1], more[n - 1]) > MEET)
                    continue;
                double(*grown)[2] =
                    toile_grow(m->memory, points, (size_t)total, (size_t)(total + n), sizeof *points);
                if (!grown) {
                    toile_free(m->memory, points);
                    return no_memory(m);
                }
                points = grown;
                for (int k = 0; k < n; k++)
                    memcpy(points[total + k], more[ahead ? k : n - 1 - k], sizeof *points);
                total += n;
                open[i] = NULL;
                grows = true;
            }
        }
        if (total > 2 && distance(points[0], points[total - 1]) <= MEET) {
            toile_status status = add_loop(m, line, points, total);
            if (status != TOILE_OK)
                return status;
        } else {
            *gap = fmin(*gap, distance(points[0], points[total - 1]));
            toile_free(m->memory, points);
        }
    }
    return TOILE_OK;
}

/* All closed lines of a piece; `lines` are its lines. */
static toile_status find_loops(maker *m, const toile_line *const *lines, int count, double *gap) {
    const toile_line **open = toile_alloc(m->memory, (size_t)count, sizeof *open);
    toile_status status = open ? TOILE_OK : no_memory(m);
    *gap = INFINITY;
    for (int i = 0; i < count && status == TOILE_OK; i++)
        if (lines[i]->use != TOILE_LINE_GRAIN && is_closed(m, lines[i]))
            status = add_closed(m, lines[i]);
    for (int use = TOILE_LINE_PLAIN; use <= TOILE_LINE_SEW && status == TOILE_OK; use++) {
        int found = 0;
        double left;
        for (int i = 0; i < count; i++)
            if ((int)lines[i]->use == use && lines[i]->count > 1 && !is_closed(m, lines[i]))
                open[found++] = lines[i];
        if (found > JOINED_MOST)
            continue;
        status = join_lines(m, open, found, &left);
        if (use != TOILE_LINE_PLAIN)
            *gap = fmin(*gap, left);
    }
    toile_free(m->memory, open);
    return status;
}

static bool encloses_point(const loop *l, const double p[2]) {
    bool in = false;
    for (int i = 0, j = l->count - 1; i < l->count; j = i++) {
        const double *a = l->points[i], *b = l->points[j];
        if ((a[1] > p[1]) != (b[1] > p[1]) && p[0] < (b[0] - a[0]) * (p[1] - a[1]) / (b[1] - a[1]) + a[0])
            in = !in;
    }
    return in;
}

/* Lines may share parts, as a fold does: the middle of all points of the inner one decides beside the box. */
static bool encloses(const loop *outer, const loop *inner) {
    for (int k = 0; k < 2; k++)
        if (inner->low[k] < outer->low[k] - SAME || inner->high[k] > outer->high[k] + SAME)
            return false;
    if (inner->area >= outer->area)
        return false;
    int in = 0, tried = inner->count < 8 ? inner->count : 8;
    for (int i = 0; i < tried; i++) { /* middles of sides: corners of both may be one */
        int at = (int)((size_t)i * (size_t)inner->count / (size_t)tried);
        const double *a = inner->points[at], *b = inner->points[(at + 1) % inner->count];
        in += encloses_point(outer, (double[2]){0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1])});
    }
    return 2 * in > tried;
}

/* Does a cut line go along a line inside of it? That one may have darts, which are far from the cut line; but
 * the cut line is everywhere near. */
static bool runs_along(const loop *cut, const loop *inner) {
    double sum = 0, whole = 0;
    for (int i = 0; i < cut->count; i++) {
        const double *p = cut->points[i];
        double near = INFINITY, length = distance(p, cut->points[(i + 1) % cut->count]) +
                                         distance(p, cut->points[(i + cut->count - 1) % cut->count]);
        for (int j = 0; j < inner->count; j++) {
            const double *a = inner->points[j], *b = inner->points[(j + 1) % inner->count];
            double x = b[0] - a[0], y = b[1] - a[1],
                   t = ((p[0] - a[0]) * x + (p[1] - a[1]) * y) / (x * x + y * y);
            t = fmin(fmax(t, 0), 1);
            near = fmin(near, hypot(a[0] + t * x - p[0], a[1] + t * y - p[1]));
        }
        if (near > ALLOWANCE_CORNER)
            return false;
        sum += near * length;
        whole += length;
    }
    return sum <= ALLOWANCE_MOST * whole;
}

/* The largest line inside of a cut line that runs along it; null: there is none. */
static loop *sew_line_of(maker *m, const loop *cut) {
    loop *best = NULL;
    for (int i = 0; i < m->loop_count; i++) {
        loop *l = &m->loops[i];
        if (l->use != TOILE_LINE_PLAIN || l == cut || l->area < ALLOWANCE_AREA * cut->area ||
            (best && l->area < best->area) || (double)l->count * cut->count > 1e7 || !encloses(cut, l))
            continue;
        if (runs_along(cut, l))
            best = l;
    }
    return best;
}

/* ---- a panel ---- */

static double turn_at(const double (*p)[2], int count, int i) {
    const double *a = p[(i + count - 1) % count], *b = p[i], *c = p[(i + 1) % count];
    double u[2] = {b[0] - a[0], b[1] - a[1]}, v[2] = {c[0] - b[0], c[1] - b[1]};
    return fabs(atan2(u[0] * v[1] - u[1] * v[0], u[0] * v[0] + u[1] * v[1]));
}

/* Marks where edges begin, at least two. Gives how many there are. */
static int find_corners(const double (*p)[2], int count, bool *corner) {
    int found = 0, last = -1, first = -1;
    double upto = 0, last_at = 0, first_at = 0, whole = 0;
    for (int i = 0; i < count; i++) {
        if (turn_at(p, count, i) > CORNER) {
            bool near = last >= 0 && upto - last_at < EDGE_LEAST;
            if (!near || turn_at(p, count, i) > turn_at(p, count, last)) {
                if (near)
                    corner[last] = false;
                found += !near;
                corner[i] = true;
                first_at = first < 0 || (near && first == last) ? upto : first_at;
                first = first < 0 || (near && first == last) ? i : first;
                last = i;
                last_at = upto;
            }
        }
        upto += distance(p[i], p[(i + 1) % count]);
    }
    whole = upto;
    if (found > 2 && whole - last_at + first_at < EDGE_LEAST) {
        corner[last] = false;
        found--;
    }
    if (found >= 2)
        return found;
    if (first < 0) {
        corner[0] = true;
        first = 0;
    }
    upto = 0;
    int i = first;
    while (upto < 0.5 * whole && (i + 1) % count != first) {
        upto += distance(p[i], p[(i + 1) % count]);
        i = (i + 1) % count;
    }
    i = i == first ? (first + count / 2) % count : i;
    corner[i] = true;
    return 2;
}

static json_t *point_json(const double p[2], const double middle[2]) {
    return json_pack("[f,f]", p[0] - middle[0], p[1] - middle[1]);
}

/* Angle of the warp, degrees: of the grain line in the outline, or of any if there is but one panel. */
static double grain_of(const maker *m, const toile_line *const *lines, int count, const loop *outline,
                       bool alone) {
    for (int i = 0; i < count; i++) {
        if (lines[i]->use != TOILE_LINE_GRAIN || lines[i]->count < 2)
            continue;
        const double(*p)[2] = (const double(*)[2])m->d->points + lines[i]->first;
        const double *a = p[0], *b = p[lines[i]->count - 1];
        if (distance(a, b) > SAME &&
            (alone || encloses_point(outline, (double[2]){0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1])})))
            return atan2(b[1] - a[1], b[0] - a[0]) * 180 / M_PI;
    }
    return 90;
}

static toile_status add_panel(maker *m, const toile_line *const *lines, int count, const loop *l,
                              bool alone) {
    double grain = grain_of(m, lines, count, l, alone),
           middle[2] = {0.5 * (l->low[0] + l->high[0]), 0.5 * (l->low[1] + l->high[1])};
    double size[2] = {l->high[0] - l->low[0], l->high[1] - l->low[1]};
    if (!(fmax(size[0], size[1]) >= SIZE_LEAST && fmax(size[0], size[1]) <= SIZE_MOST))
        return toile_fail(m->d->error, TOILE_INVALID,
                          "%.200s:%d: piece \"%s\": an outline is %.3g m large; panels have %g to %g m, are "
                          "the units right (--units)?",
                          m->d->path, l->line->at, m->d->pieces[l->line->piece].name, fmax(size[0], size[1]),
                          SIZE_LEAST, SIZE_MOST);
    bool *corner = toile_alloc(m->memory, (size_t)l->count, sizeof *corner);
    if (!corner)
        return no_memory(m);
    if (fabs(cos(grain * M_PI / 180)) > 0.7072) { /* lies: a quarter turn, counter-clockwise */
        for (int i = 0; i < l->count; i++) {
            double x = l->points[i][0];
            l->points[i][0] = -l->points[i][1];
            l->points[i][1] = x;
        }
        double swap = middle[0];
        middle[0] = -middle[1];
        middle[1] = swap;
        swap = size[0];
        size[0] = size[1];
        size[1] = swap;
        grain += 90;
    }
    grain -= 180 * floor(grain / 180);
    const double(*p)[2] = (const double(*)[2])l->points;
    int edges_found = find_corners(p, l->count, corner), first = 0;
    while (!corner[first])
        first++;
    json_t *vertices = json_array(), *edges = json_array(), *through = NULL;
    for (int i = 0; i < l->count; i++) {
        int at = (first + i) % l->count;
        if (corner[at]) {
            int number = (int)json_array_size(vertices);
            through = json_array();
            json_array_append_new(vertices, point_json(p[at], middle));
            json_array_append_new(edges, json_pack("{s:[i,i],s:{s:s,s:o}}", "endpoints", number,
                                                   (number + 1) % edges_found, "curvature", "type", "through",
                                                   "params", through));
        } else {
            json_array_append_new(through, point_json(p[at], middle));
        }
    }
    toile_free(m->memory, corner);
    char base[64], name[80];
    const char *piece = m->d->pieces[l->line->piece].name;
    bool named = alone ? *piece : !*l->line->name && *piece;
    snprintf(base, sizeof base, "%s", named ? piece : *l->line->name ? l->line->name : "panel");
    snprintf(name, sizeof name, "%s", base);
    json_int_t before = json_integer_value(json_object_get(m->used, base));
    do {
        before++;
        if (before > 1)
            snprintf(name, sizeof name, "%s %d", base, (int)before);
    } while (json_object_get(m->drawn, name));
    json_t *panel = json_pack("{s:o,s:o,s:f,s:[f,f]}", "vertices", vertices, "edges", edges, "grain", grain,
                              "size", size[0], size[1]);
    if (!panel || json_object_set_new(m->used, base, json_integer(before)) != 0 ||
        json_object_set_new(m->drawn, name, panel) != 0)
        return no_memory(m);
    return TOILE_OK;
}

/* ---- a piece ---- */

static toile_status read_piece(maker *m, const toile_line *const *lines, int count) {
    double gap;
    toile_line_use use = TOILE_LINE_PLAIN;
    int coded = 0, outer = 0;
    toile_status status = find_loops(m, lines, count, &gap);
    for (int i = 0; i < m->loop_count; i++) /* sew line before cut line before any */
        use = m->loops[i].use > use ? m->loops[i].use : use;
    for (int i = 0; i < count; i++)
        coded += lines[i]->use == TOILE_LINE_CUT || lines[i]->use == TOILE_LINE_SEW;
    if (status == TOILE_OK && coded > 0 && use == TOILE_LINE_PLAIN)
        status =
            toile_fail(m->d->error, TOILE_INVALID,
                       "%.200s:%d: piece \"%s\": the outline is open: its ends are %.3g m apart; close it "
                       "where it is drawn",
                       m->d->path, lines[0]->at, m->d->pieces[lines[0]->piece].name, isfinite(gap) ? gap : 0);
    for (int i = 0; i < m->loop_count && status == TOILE_OK; i++) {
        loop *l = &m->loops[i];
        for (int k = 0; k < m->loop_count && !l->inside && l->use == use; k++)
            l->inside = k != i && m->loops[k].use == use && encloses(&m->loops[k], l);
        outer += l->use == use && !l->inside;
    }
    for (int i = 0; i < m->loop_count && status == TOILE_OK; i++) {
        loop *l = &m->loops[i], *sew = NULL;
        if (l->use != use || l->inside)
            continue;
        if (use != TOILE_LINE_SEW)
            sew = sew_line_of(m, l);
        if (sew)
            sew->taken = true;
        status = add_panel(m, lines, count, sew ? sew : l, outer == 1);
    }
    for (int i = 0; i < m->loop_count; i++)
        m->inner += m->loops[i].use == use && m->loops[i].inside && !m->loops[i].taken;
    free_loops(m);
    return status;
}

/* Lines by piece, in the order of the file. */
static toile_status read_pieces(maker *m) {
    const toile_drawing *d = m->d;
    const toile_line **sorted = toile_alloc(m->memory, (size_t)d->line_count, sizeof *sorted);
    int *begin = toile_alloc(m->memory, (size_t)d->piece_count + 2, sizeof *begin);
    toile_status status = sorted && begin ? TOILE_OK : no_memory(m);
    for (int i = 0; i < d->line_count && status == TOILE_OK; i++)
        begin[d->lines[i].piece + 2]++;
    for (int i = 1; i <= d->piece_count && status == TOILE_OK; i++)
        begin[i + 1] += begin[i];
    for (int i = 0; i < d->line_count && status == TOILE_OK; i++)
        sorted[begin[d->lines[i].piece + 1]++] = &d->lines[i];
    for (int i = 0; i < d->piece_count && status == TOILE_OK; i++)
        if (begin[i + 1] > begin[i])
            status = read_piece(m, sorted + begin[i], begin[i + 1] - begin[i]);
    toile_free(m->memory, sorted);
    toile_free(m->memory, begin);
    if (status == TOILE_OK && json_object_size(m->drawn) == 0)
        status = toile_fail(d->error, TOILE_INVALID,
                            "%.200s: has no closed line that could be a panel, of %d lines; join the ends of "
                            "the outlines where they are "
                            "drawn",
                            d->path, d->line_count);
    return status;
}

/* ---- the pattern ---- */

/* Points of the drawing in the unit of the pattern, turned over if asked for. */
static json_t *scaled(const json_t *point, double scale, bool mirror) {
    double x = json_number_value(json_array_get(point, 0)), y = json_number_value(json_array_get(point, 1));
    return json_pack("[f,f]", (mirror ? -scale : scale) * x, scale * y);
}

static json_t *scaled_list(const json_t *points, double scale, bool mirror) {
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(points); i++)
        json_array_append_new(list, scaled(json_array_get(points, i), scale, mirror));
    return list;
}

static json_t *panel_json(const json_t *drawn, const json_t *said, double scale, bool mirror) {
    json_t *panel = said ? json_copy((json_t *)said) : json_object(), *edges = json_array();
    const json_t *list = json_object_get(drawn, "edges");
    double grain = json_number_value(json_object_get(drawn, "grain"));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *edge = json_array_get(list, i),
                     *params = json_object_get(json_object_get(edge, "curvature"), "params");
        json_t *made = json_pack("{s:O}", "endpoints", json_object_get(edge, "endpoints"));
        if (json_array_size(params) > 0)
            json_object_set_new(
                made, "curvature",
                json_pack("{s:s,s:o}", "type", "through", "params", scaled_list(params, scale, mirror)));
        json_array_append_new(edges, made);
    }
    json_object_del(panel, "piece");
    json_object_del(panel, "mirror");
    json_object_set_new(panel, "vertices", scaled_list(json_object_get(drawn, "vertices"), scale, mirror));
    json_object_set_new(panel, "edges", edges);
    json_object_set_new(panel, "grain", json_real(mirror ? 180 - grain : grain));
    if (mirror)
        json_object_set_new(panel, "clockwise", json_true());
    return panel;
}

/* Rows of panels that nobody has placed, from the floor upwards. */
static void lay_out(json_t *panels, const json_t *sizes, double scale) {
    const char *name;
    json_t *panel;
    double area = 0, width = 0, row[2] = {0, 0}, at[2] = {0, GAP};
    json_object_foreach(panels, name, panel) {
        const json_t *size = json_object_get(sizes, name);
        double x = json_number_value(json_array_get(size, 0)) + GAP,
               y = json_number_value(json_array_get(size, 1)) + GAP;
        area += x * y;
        width = fmax(width, x);
    }
    width = fmax(width, fmax(3.0, 1.5 * sqrt(area)));
    json_object_foreach(panels, name, panel) {
        const json_t *size = json_object_get(sizes, name);
        double x = json_number_value(json_array_get(size, 0)), y = json_number_value(json_array_get(size, 1));
        if (json_object_get(panel, "translation"))
            continue;
        if (at[0] > 0 && at[0] + x > width) {
            at[0] = 0;
            at[1] += row[1] + GAP;
            row[1] = 0;
        }
        json_object_set_new(panel, "translation",
                            json_pack("[f,f,f]", scale * (at[0] + 0.5 * x - 0.5 * width),
                                      scale * (at[1] + 0.5 * y), scale * FRONT));
        at[0] += x + GAP;
        row[1] = fmax(row[1], y);
    }
}

static toile_status take_panel(const maker *m, const char *name, const json_t *said, double scale,
                               json_t *panels, json_t *sizes, json_t *seen) {
    const json_t *piece = json_object_get(said, "piece"), *mirror = json_object_get(said, "mirror");
    const char *of = piece ? json_string_value(piece) : name;
    const json_t *drawn = of ? json_object_get(m->drawn, of) : NULL;
    if (said && !json_is_object(said))
        return toile_fail(m->d->error, TOILE_INVALID,
                          "%.200s: panel \"%.64s\" is no object; use {\"translation\": [x, y, z]}",
                          m->companion_path, name);
    if (!drawn)
        return toile_fail(
            m->d->error, TOILE_INVALID,
            "%.200s: panel \"%.64s\" is no panel of %.200s; `toile import` of it alone lists them",
            m->companion_path, of ? of : name, m->d->path);
    if (mirror && !json_is_boolean(mirror))
        return toile_fail(m->d->error, TOILE_INVALID, "%.200s: panel \"%.64s\": \"mirror\" is true or false",
                          m->companion_path, name);
    if (said && !json_object_get(said, "translation"))
        warn(m, "panel \"%.64s\" has no \"translation\": it lies in front of the body", name);
    if (json_object_set_new(panels, name, panel_json(drawn, said, scale, json_is_true(mirror))) != 0 ||
        json_object_set(sizes, name, json_object_get(drawn, "size")) != 0 ||
        json_object_set_new(seen, of, json_true()) != 0)
        return no_memory(m);
    return TOILE_OK;
}

static toile_status join_companion(const maker *m, json_t **root) {
    const json_t *pattern = json_object_get(m->companion, "pattern"),
                 *said = json_object_get(pattern, "panels");
    const json_t *units = json_object_get(json_object_get(m->companion, "properties"), "units_in_meter");
    double scale = json_is_number(units) ? json_number_value(units) : 100;
    json_t *panels = json_object(), *sizes = json_object(), *seen = json_object(),
           *stitches = json_object_get(pattern, "stitches"), *item;
    const char *name;
    toile_status status = panels && sizes && seen ? TOILE_OK : no_memory(m);
    if (status == TOILE_OK && m->companion && !json_is_object(pattern))
        status = toile_fail(m->d->error, TOILE_INVALID,
                            "%.200s: has no \"pattern\" with \"panels\" and \"stitches\"", m->companion_path);
    if (status == TOILE_OK && !(scale >= 0.001 && scale <= 1e6))
        status =
            toile_fail(m->d->error, TOILE_INVALID, "%.200s: \"units_in_meter\" is %g; 100 is for centimetres",
                       m->companion_path, scale);
    if (status == TOILE_OK && said && !json_is_object(said))
        status = toile_fail(m->d->error, TOILE_INVALID, "%.200s: \"panels\" is no object with panels by name",
                            m->companion_path);
    json_object_foreach(said ? (json_t *)said : m->drawn, name, item) {
        if (status == TOILE_OK)
            status = take_panel(m, name, said ? item : NULL, scale, panels, sizes, seen);
    }
    json_object_foreach(m->drawn, name, item) {
        if (status == TOILE_OK && said && !json_object_get(seen, name))
            warn(m, "%.200s does not name panel \"%.64s\": it is left out", m->companion_path, name);
    }
    if (status == TOILE_OK) {
        lay_out(panels, sizes, scale);
        *root = json_pack("{s:{s:O,s:o},s:{s:f,s:s}}", "pattern", "panels", panels, "stitches",
                          stitches ? json_incref(stitches) : json_array(), "properties", "units_in_meter",
                          scale, "curvature_coords", "absolute");
        if (!*root)
            status = no_memory(m);
    }
    json_decref(panels);
    json_decref(sizes);
    json_decref(seen);
    return status;
}

toile_status toile_pattern_from_drawing(const toile_drawing *d, const json_t *companion,
                                        const char *companion_path, toile_garmentcode_log *log, void *user,
                                        json_t **root) {
    maker state = {.d = d,
                   .memory = d->memory,
                   .companion = companion,
                   .companion_path = companion_path,
                   .log = log,
                   .user = user};
    maker *m = &state;
    *root = NULL;
    m->drawn = json_object();
    m->used = json_object();
    toile_status status = m->drawn && m->used ? read_pieces(m) : no_memory(m);
    if (status == TOILE_OK && d->remark[0])
        warn(m, "%s", d->remark);
    if (status == TOILE_OK && m->inner > 0)
        warn(m, "%d closed lines inside of panels are taken as marks, not as outlines or holes", m->inner);
    if (status == TOILE_OK)
        status = join_companion(m, root);
    free_loops(m);
    toile_free(m->memory, m->loops);
    json_decref(m->drawn);
    json_decref(m->used);
    return status;
}
