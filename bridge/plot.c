#include "plot.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pixels of a panel. */
enum { WIDTH = 460, HEIGHT = 320, LEFT = 64, RIGHT = 14, TOP = 30, BOTTOM = 46, TEXT = 96 };

typedef struct curve {
    char name[TEXT];
    plot_style style;
    double *xy; /* (count x 2) */
    int count, capacity;
} curve;

typedef struct segment {
    double x0, y0, x1, y1, width;
    unsigned colour;
} segment;

struct plot {
    char title[TEXT], x_label[TEXT], y_label[TEXT];
    bool log_x, log_y, equal, failed;
    double limits[4]; /* x_min, x_max, y_min, y_max; NaN: from the data */
    curve *curves;
    int curve_count, curve_capacity;
    segment *segments;
    int segment_count, segment_capacity;
};

/* One axis: value -> pixel. */
typedef struct axis {
    double min, max; /* of the axis, as logarithms where it is logarithmic */
    double from, to; /* pixels */
    bool log;
} axis;

/* ---- what a plot holds ---- */

plot *plot_create(const char *title, const char *x_label, const char *y_label) {
    plot *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    snprintf(p->title, TEXT, "%s", title ? title : "");
    snprintf(p->x_label, TEXT, "%s", x_label ? x_label : "");
    snprintf(p->y_label, TEXT, "%s", y_label ? y_label : "");
    for (int i = 0; i < 4; i++)
        p->limits[i] = NAN;
    return p;
}

void plot_free(plot *p) {
    if (!p)
        return;
    for (int i = 0; i < p->curve_count; i++)
        free(p->curves[i].xy);
    free(p->curves);
    free(p->segments);
    free(p);
}

void plot_log(plot *p, bool x, bool y) {
    if (p)
        p->log_x = x, p->log_y = y;
}

void plot_limits(plot *p, double x_min, double x_max, double y_min, double y_max) {
    if (p)
        memcpy(p->limits, (double[]){x_min, x_max, y_min, y_max}, sizeof p->limits);
}

void plot_equal(plot *p) {
    if (p)
        p->equal = true;
}

/* Room for one more; the block stays as it is when memory runs out. */
static bool make_room(plot *p, void **block, int count, int *capacity, size_t size) {
    if (count < *capacity)
        return true;
    int more = *capacity ? 2 * *capacity : 16;
    void *grown = more > *capacity ? realloc(*block, (size_t)more * size) : NULL;
    if (!grown) {
        p->failed = true;
        return false;
    }
    *block = grown;
    *capacity = more;
    return true;
}

int plot_series(plot *p, const char *name, plot_style style) {
    if (!p || !make_room(p, (void **)&p->curves, p->curve_count, &p->curve_capacity, sizeof *p->curves))
        return -1;
    curve *c = &p->curves[p->curve_count];
    *c = (curve){.style = style};
    snprintf(c->name, TEXT, "%s", name ? name : "");
    return p->curve_count++;
}

void plot_add(plot *p, int series, double x, double y) {
    if (!p || series < 0 || series >= p->curve_count)
        return;
    curve *c = &p->curves[series];
    if (!make_room(p, (void **)&c->xy, c->count, &c->capacity, 2 * sizeof *c->xy))
        return;
    c->xy[2 * c->count] = x;
    c->xy[2 * c->count + 1] = y;
    c->count++;
}

void plot_segment(plot *p, double x0, double y0, double x1, double y1, unsigned colour, double width) {
    if (!p || !isfinite(x0 + y0 + x1 + y1) ||
        !make_room(p, (void **)&p->segments, p->segment_count, &p->segment_capacity, sizeof *p->segments))
        return;
    p->segments[p->segment_count++] = (segment){x0, y0, x1, y1, width, colour};
}

unsigned plot_colour(int number) {
    /* Okabe and Ito's set, which colour-blind readers tell apart, and darker ones after it */
    static const unsigned COLOURS[] = {0x0072b2, 0xd55e00, 0x009e73, 0xcc79a7, 0xe69f00, 0x56b4e9,
                                       0x000000, 0x8c510a, 0x6a3d9a, 0x7f7f7f, 0x1b7837, 0xb2182b};
    _Static_assert(sizeof COLOURS / sizeof *COLOURS == PLOT_COLOURS, "as many as plot.h says");
    return COLOURS[(unsigned)number % PLOT_COLOURS];
}

/* ---- axes ---- */

static bool usable(const axis *a, double value) {
    return isfinite(value) && (!a->log || value > 0);
}

static double place(const axis *a, double value) {
    double t = (a->log ? log10(value) : value) - a->min;
    return a->from + (a->to - a->from) * t / (a->max - a->min);
}

static void widen(axis *a, double value) {
    if (!usable(a, value))
        return;
    double t = a->log ? log10(value) : value;
    a->min = fmin(a->min, t);
    a->max = fmax(a->max, t);
}

/* The step of a linear axis: 1, 2 or 5 times a power of ten, about five to an axis. */
static double tick_step(double range) {
    double power = pow(10, floor(log10(range / 5))), rest = range / 5 / power;
    return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
}

/* Bounds that were asked for, else the data's with some air; never empty. */
static void finish_axis(axis *a, double asked_min, double asked_max) {
    if (!(a->min <= a->max))
        a->min = 0, a->max = 1;
    double air = 0.04 * (a->max - a->min);
    if (a->log || a->min < 0 || a->min > 0.2 * a->max) /* else: from zero */
        a->min -= air;
    else
        a->min = 0;
    a->max += air;
    if (usable(a, asked_min))
        a->min = a->log ? log10(asked_min) : asked_min;
    if (usable(a, asked_max))
        a->max = a->log ? log10(asked_max) : asked_max;
    if (!(a->max - a->min > 1e-12 * (fabs(a->max) + fabs(a->min)) + 1e-300)) {
        double half = fabs(a->max) > 0 ? 0.5 * fabs(a->max) : 0.5;
        a->min -= half;
        a->max += half;
    }
}

static void make_axes(const plot *p, double left, double top, axis *x, axis *y) {
    *x = (axis){INFINITY, -INFINITY, left + LEFT, left + WIDTH - RIGHT, p->log_x};
    *y = (axis){INFINITY, -INFINITY, top + HEIGHT - BOTTOM, top + TOP, p->log_y};
    for (int i = 0; i < p->curve_count; i++)
        for (int k = 0; k < p->curves[i].count; k++) {
            double at[2] = {p->curves[i].xy[2 * k], p->curves[i].xy[2 * k + 1]};
            if (usable(x, at[0]) && usable(y, at[1]))
                widen(x, at[0]), widen(y, at[1]);
        }
    for (int i = 0; i < p->segment_count; i++) {
        const segment *s = &p->segments[i];
        widen(x, s->x0), widen(x, s->x1), widen(y, s->y0), widen(y, s->y1);
    }
    if (!p->equal) {
        finish_axis(x, p->limits[0], p->limits[1]);
        finish_axis(y, p->limits[2], p->limits[3]);
        return;
    }
    if (!(x->min <= x->max))
        *x = (axis){0, 1, x->from, x->to, false}, *y = (axis){0, 1, y->from, y->to, false};
    x->from = left + 10, x->to = left + WIDTH - 10, y->from = top + HEIGHT - 10;
    double scale = fmax((x->max - x->min) / (x->to - x->from), (y->max - y->min) / (y->from - y->to));
    scale = scale > 0 ? scale : 1;
    double x_mid = 0.5 * (x->min + x->max), y_mid = 0.5 * (y->min + y->max);
    double x_half = 0.5 * scale * (x->to - x->from), y_half = 0.5 * scale * (y->from - y->to);
    x->min = x_mid - x_half, x->max = x_mid + x_half;
    y->min = y_mid - y_half, y->max = y_mid + y_half;
}

/* ---- SVG ---- */

static void write_text(FILE *file, double x, double y, const char *attributes, const char *text) {
    fprintf(file, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, attributes);
    for (; *text; text++)
        switch (*text) {
        case '<': fputs("&lt;", file); break;
        case '>': fputs("&gt;", file); break;
        case '&': fputs("&amp;", file); break;
        default: fputc(*text, file);
        }
    fputs("</text>\n", file);
}

/* A tick of either axis with its number; `named` false leaves the number out. */
static void write_tick(FILE *file, const axis *x, const axis *y, bool along_x, double value, bool named) {
    const axis *a = along_x ? x : y;
    double at = place(a, value), low = fmin(a->from, a->to) - 0.5, high = fmax(a->from, a->to) + 0.5;
    char text[32];
    if (!(at >= low && at <= high))
        return;
    snprintf(text, sizeof text, "%g", value);
    if (along_x) {
        fprintf(file, "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#ddd\"/>\n", at, y->from, y->to);
        if (named)
            write_text(file, at, y->from + 15, "text-anchor=\"middle\"", text);
    } else {
        fprintf(file, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#ddd\"/>\n", x->from, at, x->to);
        if (named)
            write_text(file, x->from - 6, at + 4, "text-anchor=\"end\"", text);
    }
}

static void write_ticks(FILE *file, const axis *x, const axis *y, bool along_x) {
    const axis *a = along_x ? x : y;
    if (!a->log) {
        double step = tick_step(a->max - a->min);
        for (long k = lround(ceil(a->min / step - 1e-9)); k * step <= a->max + 1e-9 * step; k++)
            write_tick(file, x, y, along_x, k == 0 ? 0 : (double)k * step, true);
        return;
    }
    int first = (int)floor(a->min), last = (int)ceil(a->max), every = 1 + (last - first) / 8;
    for (int k = first; k <= last; k++) {
        write_tick(file, x, y, along_x, pow(10, k), (k - first) % every == 0);
        for (int d = 2; d < 10 && last - first <= 3; d++) /* few decades: numbers at 2 and 5 too */
            write_tick(file, x, y, along_x, d * pow(10, k), last - first <= 2 && (d == 2 || d == 5));
    }
}

static void write_frame(FILE *file, const plot *p, const axis *x, const axis *y) {
    char turned[96];
    write_ticks(file, x, y, true);
    write_ticks(file, x, y, false);
    fprintf(file, "<path d=\"M%.1f %.1fV%.1fH%.1f\" fill=\"none\" stroke=\"#333\"/>\n", x->from, y->to,
            y->from, x->to);
    write_text(file, 0.5 * (x->from + x->to), y->from + 34, "text-anchor=\"middle\"", p->x_label);
    double at_x = x->from - LEFT + 13, at_y = 0.5 * (y->from + y->to);
    snprintf(turned, sizeof turned, "text-anchor=\"middle\" transform=\"rotate(-90 %.1f %.1f)\"", at_x, at_y);
    write_text(file, at_x, at_y, turned, p->y_label);
}

static void write_curve(FILE *file, const curve *c, int number, const axis *x, const axis *y) {
    unsigned colour = plot_colour(number);
    bool dots = c->style == PLOT_POINTS || c->style == PLOT_LINE_POINTS;
    if (c->style != PLOT_POINTS) {
        bool drawing = false, any = false;
        for (int k = 0; k < c->count; k++) {
            double at[2] = {c->xy[2 * k], c->xy[2 * k + 1]};
            bool good = usable(x, at[0]) && usable(y, at[1]);
            if (good) {
                fprintf(file, "%s%c%.1f %.1f", any ? "" : "<path d=\"", drawing ? 'L' : 'M', place(x, at[0]),
                        place(y, at[1]));
                any = true;
            }
            drawing = good;
        }
        if (any)
            fprintf(file,
                    "\" fill=\"none\" stroke=\"#%06x\" stroke-width=\"1.6\" stroke-linejoin=\"round\"%s/>\n",
                    colour, c->style == PLOT_DASHED ? " stroke-dasharray=\"6 4\"" : "");
    }
    for (int k = 0; dots && k < c->count; k++)
        if (usable(x, c->xy[2 * k]) && usable(y, c->xy[2 * k + 1]))
            fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%s\" fill=\"#%06x\" fill-opacity=\"0.7\"/>\n",
                    place(x, c->xy[2 * k]), place(y, c->xy[2 * k + 1]), c->count > 100 ? "1.6" : "2.8",
                    colour);
}

/* How much of a curve lies in a rectangle: its points, and for lines some between them. */
static int points_inside(const curve *c, const axis *x, const axis *y, double left, double top, double width,
                         double height) {
    int inside = 0, between = c->style == PLOT_POINTS ? 1 : 16;
    for (int j = 0; j < c->count; j++) {
        const double *at = &c->xy[2 * j], *next = &c->xy[2 * (j + 1 < c->count ? j + 1 : j)];
        if (!usable(x, at[0]) || !usable(y, at[1]) || !usable(x, next[0]) || !usable(y, next[1]))
            continue;
        for (int k = 0; k < between; k++) {
            double t = (double)k / between;
            double px = (1 - t) * place(x, at[0]) + t * place(x, next[0]) - left;
            double py = (1 - t) * place(y, at[1]) + t * place(y, next[1]) - top;
            inside += px > 0 && px < width && py > 0 && py < height;
        }
    }
    return inside;
}

/* Lines one under the other in the corner where the least of the curves is. */
static void write_legend(FILE *file, const plot *p, const axis *x, const axis *y) {
    int lines = 0;
    size_t longest = 0;
    for (int i = 0; i < p->curve_count; i++)
        if (p->curves[i].name[0]) {
            lines++;
            longest = strlen(p->curves[i].name) > longest ? strlen(p->curves[i].name) : longest;
        }
    if (lines == 0)
        return;
    double width = 30 + 6.2 * (double)longest, height = 16 * lines + 4;
    int corner = 0, best = -1;
    for (int k = 0; k < 4; k++) { /* top right, top left, bottom right, bottom left */
        double left = k % 2 ? x->from + 6 : x->to - width - 6, top = k / 2 ? y->from - height - 6 : y->to + 6;
        int inside = 0;
        for (int i = 0; i < p->curve_count; i++)
            inside += points_inside(&p->curves[i], x, y, left - 4, top - 4, width + 8, height + 8);
        if (best < 0 || inside < best)
            best = inside, corner = k;
    }
    double left = corner % 2 ? x->from + 6 : x->to - width - 6,
           top = corner / 2 ? y->from - height - 6 : y->to + 6;
    fprintf(
        file,
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#fff\" fill-opacity=\"0.8\"/>\n",
        left, top, width, height);
    for (int i = 0, line = 0; i < p->curve_count; i++) {
        const curve *c = &p->curves[i];
        if (!c->name[0])
            continue;
        double at = top + 12 + 16 * line++;
        if (c->style != PLOT_POINTS)
            fprintf(file, "<path d=\"M%.1f %.1fh20\" stroke=\"#%06x\" stroke-width=\"1.6\"%s/>\n", left + 4,
                    at, plot_colour(i), c->style == PLOT_DASHED ? " stroke-dasharray=\"6 4\"" : "");
        if (c->style == PLOT_POINTS || c->style == PLOT_LINE_POINTS)
            fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.8\" fill=\"#%06x\"/>\n", left + 14, at,
                    plot_colour(i));
        write_text(file, left + 28, at + 4, "", c->name);
    }
}

/* Segments of one colour and width in one path, in the order given: later ones are on top. A dot is a line of
 * no length with a round cap. */
static void write_segments(FILE *file, const plot *p, const axis *x, const axis *y) {
    for (int i = 0; i < p->segment_count;) {
        const segment *first = &p->segments[i];
        fputs("<path d=\"", file);
        for (; i < p->segment_count; i++) {
            const segment *s = &p->segments[i];
            if (s->colour != first->colour || s->width != first->width)
                break;
            fprintf(file, "M%.1f %.1f", place(x, s->x0), place(y, s->y0));
            if (s->x0 == s->x1 && s->y0 == s->y1)
                fputs("h0", file);
            else
                fprintf(file, "L%.1f %.1f", place(x, s->x1), place(y, s->y1));
        }
        fprintf(file, "\" stroke=\"#%06x\" stroke-width=\"%g\" stroke-linecap=\"round\"/>\n",
                first->colour & 0xffffff, first->width);
    }
}

static void write_panel(FILE *file, const plot *p, int number, double left, double top) {
    axis x, y;
    make_axes(p, left, top, &x, &y);
    write_text(file, left + 0.5 * WIDTH, top + 19,
               "text-anchor=\"middle\" font-size=\"13\" font-weight=\"bold\"", p->title);
    if (!p->equal)
        write_frame(file, p, &x, &y);
    fprintf(file,
            "<clipPath id=\"c%d\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/></clipPath>\n",
            number, x.from - 3, y.to - 3, x.to - x.from + 6, y.from - y.to + 6);
    fprintf(file, "<g clip-path=\"url(#c%d)\">\n", number);
    write_segments(file, p, &x, &y);
    for (int i = 0; i < p->curve_count; i++)
        write_curve(file, &p->curves[i], i, &x, &y);
    fputs("</g>\n", file);
    write_legend(file, p, &x, &y);
}

toile_status plot_write(plot *const *panels, int count, int columns, const char *path, toile_error *error) {
    for (int i = 0; i < count; i++)
        if (!panels[i] || panels[i]->failed)
            return toile_fail_memory(error, "a plot");
    FILE *file = fopen(path, "w");
    if (!file)
        return toile_fail(error, TOILE_IO, "%s cannot be written: %s", path, strerror(errno));
    columns = columns < 1 ? 1 : columns;
    int rows = (count + columns - 1) / columns, width = WIDTH * (count < columns ? count : columns),
        height = HEIGHT * rows;
    fprintf(
        file,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
        "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
        width, height, width, height, width, height);
    for (int i = 0; i < count; i++)
        write_panel(file, panels[i], i, (double)WIDTH * (i % columns), (double)HEIGHT * (i / columns));
    fputs("</svg>\n", file);
    bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad)
        return toile_fail(error, TOILE_IO, "%s could not be written to the end: is the disk full?", path);
    return TOILE_OK;
}
