#include "pattern_fit.h"

#include "intersect.h"

#include <math.h>
#include <string.h>

enum {
    SWEEPS = 6,       /* over all panels, one after the other */
    SLIDES = 4,       /* parts of the way in its plane that are tried */
    PANELS_MOST = 200, /* more are left as they are placed: each is tried against all others */
    AROUND_PLACES = 20, /* that are tried for a panel that goes around the body */
    WAY_POINTS = 6    /* looked at between the two vertices of a stitch */
};

/* Radii that panels are bent with, m: from a wrist to a wide skirt. */
static const double RADII[] = {0.05, 0.065, 0.08, 0.1, 0.125, 0.15, 0.18, 0.22, 0.27, 0.35, 0.5};
enum { RADIUS_COUNT = sizeof RADII / sizeof *RADII };

#define MOVE_MOST 0.3               /* m, along the panel's normal */
#define SLIDE_MOST 0.25             /* m, in the panel's plane */
#define MOVE_STEP 0.01
#define ACROSS_STEP 0.03            /* m, of the ways that are tried for two panels that an arm leaves */
#define NEAR 0.01                   /* m; a stitch this short is as good as closed */
#define THROUGH 12.0                 /* weight of the way inside the body beside the way itself */
#define OVERLAP 2.0                 /* weight of a way between edges that lie over each other's panels: sewn, they would cross */
#define STAY 0.05                   /* weight of having moved, for every stitch of the panel */
#define STRAY 0.5                   /* m for every stitch of a panel that has left its part of the body */
#define INSIDE 0.3                  /* of the radius from the body that still count as in it: legs stand apart */
#define FACING 0.2                  /* of a panel that is before the body: it is bent around it, not away from it */
#define SHADOW_STEP 0.03            /* m, of the body seen along a panel's normal */
#define SHRINK 0.97                 /* panels touch where they are sewn; only what remains of them is to be free */

typedef struct stitch_list {
    int *begin, *items;             /* stitches of each panel */
} stitch_list;

/* The body seen along a panel's normal, to tell whether the panel is still before (or behind) the part of it that it was
 * placed for: two panels that are sewn to a tube come together most easily beside the leg. */
typedef struct shadow {
    double axes[3][3];              /* of the panel, the last is its normal */
    double low[2];
    int count[2];
    float *depth;                   /* of the body's middle along the normal, NaN beside it; (count[1] x count[0]) */
    int side, kept;                 /* of the body, and how many vertices were there at the start */
} shadow;

typedef struct fitter {
    toile_memory *memory;
    const toile_pattern *pattern;
    toile_pattern_panel *panels;
    const toile_body_field *body;
    double margin;
    toile_pattern_mesh mesh;
    stitch_list of_panel;
    int *vertex_panel;              /* (vertex_count) */
    int *inner;                     /* of each vertex of a stitch, one farther inside of its panel */
    double *start;                  /* where each panel's origin was, (panel_count x 3) */
    double *trial;                  /* positions of one panel */
    double *shrunk;                 /* the same towards its middle */
    toile_surface **surfaces;       /* shrunk, of every panel */
    shadow *shadows;                /* of every panel */
    toile_fit_progress *tell;
    void *user;
    int placed;                     /* panels, over all sweeps */
} fitter;

/* What a panel could be like. */
typedef struct candidate {
    double radius, axis, at[2];
    double move[3];                 /* from its start */
    double ends[2];                 /* of the line it is bent around, along it */
    bool around;                    /* bent by more than half a turn: the body belongs inside */
    double cost;
} candidate;

enum { TRIED_MOST = 8 };            /* candidates of a panel that are looked at for crossings, best first */

static double dot3(const double *a, const double *b) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static int count_of(const fitter *f, int panel) {
    return f->mesh.panel_begin[panel + 1] - f->mesh.panel_begin[panel];
}

/* ---- how good a placement is ---- */

static void place_panel(const fitter *f, int panel, const candidate *c, double *to) {
    toile_pattern_panel p = f->panels[panel];
    p.bend_radius = c->radius;
    p.bend_axis = c->axis;
    memcpy(p.bend_at, c->at, sizeof p.bend_at);
    for (int k = 0; k < 3; k++)
        p.pose.position[k] = f->start[3 * panel + k] + c->move[k];
    for (int i = 0, n = count_of(f, panel), first = f->mesh.panel_begin[panel]; i < n; i++)
        toile_pattern_place(&p, f->mesh.flat + 2 * (size_t)(first + i), to + 3 * (size_t)i);
}

/* Smallest distance from the body, once it is known to be too small. */
static double clearance(const fitter *f, const double *x, int count, const double move[3], double enough) {
    double least = INFINITY;
    for (int i = 0; i < count && least >= enough; i++) {
        double p[3] = {x[3 * i] + move[0], x[3 * i + 1] + move[1], x[3 * i + 2] + move[2]};
        least = fmin(least, toile_body_distance(f->body, p));
    }
    return least;
}

/* Length of a straight way, more for what of it goes through the body. Lengths, not their squares: what is closed stays
 * closed, and what is far comes. */
static double way_cost(const fitter *f, const double *a, const double *b) {
    double inside = 0, length2 = NEAR * NEAR;
    for (int k = 0; k < 3; k++)
        length2 += (b[k] - a[k]) * (b[k] - a[k]);
    for (int i = 1; i <= WAY_POINTS; i++) {
        double t = (double)i / (WAY_POINTS + 1), p[3];
        for (int k = 0; k < 3; k++)
            p[k] = (1 - t) * a[k] + t * b[k];
        inside += toile_body_distance(f->body, p) < 0.5 * f->margin;
    }
    return sqrt(length2) * (1 + THROUGH * inside / WAY_POINTS);
}

/* Panels that move together: one, or two that are sewn to each other. Where their vertices are: of the first one, `x` if
 * it is not null; else where they are now. Both are moved by `move`. */
typedef struct group {
    int panels[2];
    const double *x;
    double move[3];
} group;

static bool in_group(const group *g, int panel) {
    return panel == g->panels[0] || panel == g->panels[1];
}

static void vertex_at(const fitter *f, const group *g, int v, double p[3]) {
    int panel = f->vertex_panel[v], own = v - f->mesh.panel_begin[panel];
    bool moves = in_group(g, panel);
    const double *at = moves && g->x ? g->x + 3 * (size_t)own : f->mesh.positions + 3 * (size_t)v;
    for (int k = 0; k < 3; k++)
        p[k] = at[k] + (moves ? g->move[k] : 0);
}

/* Does the way from an edge to its partner begin over its own panel, and end over the other's? */
static bool is_overlapping(const fitter *f, const group *g, const toile_stitch *s, const double a[3], const double b[3]) {
    double p[3], q[3], from_a = 0, from_b = 0, in_a = 0, in_b = 0, length = 0;
    vertex_at(f, g, f->inner[s->a], p);
    vertex_at(f, g, f->inner[s->b], q);
    for (int k = 0; k < 3; k++) {
        double way = b[k] - a[k];
        from_a += way * (p[k] - a[k]);
        from_b -= way * (q[k] - b[k]);
        in_a += (p[k] - a[k]) * (p[k] - a[k]);
        in_b += (q[k] - b[k]) * (q[k] - b[k]);
        length += way * way;
    }
    return from_a > 0.3 * sqrt(in_a * length) && from_b > 0.3 * sqrt(in_b * length);
}

/* Of all stitches of the group. Those within it change, too: one panel is bent, and two may leave what is between them. */
static double seam_cost(const fitter *f, const group *g) {
    double sum = 0;
    bool pair = g->panels[0] != g->panels[1];
    for (int n = 0; n < (pair ? 2 : 1); n++)
        for (int i = f->of_panel.begin[g->panels[n]]; i < f->of_panel.begin[g->panels[n] + 1]; i++) {
            const toile_stitch *s = &f->mesh.stitches[f->of_panel.items[i]];
            double a[3], b[3];
            if (n == 1 && in_group(g, f->vertex_panel[s->a]) && in_group(g, f->vertex_panel[s->b]))
                continue; /* counted already */
            vertex_at(f, g, s->a, a);
            vertex_at(f, g, s->b, b);
            sum += way_cost(f, a, b) * (is_overlapping(f, g, s, a, b) ? 1 + OVERLAP : 1);
        }
    return sum + STAY * (f->of_panel.begin[g->panels[0] + 1] - f->of_panel.begin[g->panels[0]]) * sqrt(dot3(g->move, g->move));
}

/* The way to partners in other panels that lowers their sum the most: shorter ones weigh more. */
static void mean_way(const fitter *f, const group *g, double way[3]) {
    double weights = 0;
    way[0] = way[1] = way[2] = 0;
    for (int n = 0; n < (g->panels[0] == g->panels[1] ? 1 : 2); n++)
        for (int i = f->of_panel.begin[g->panels[n]]; i < f->of_panel.begin[g->panels[n] + 1]; i++) {
            const toile_stitch *s = &f->mesh.stitches[f->of_panel.items[i]];
            bool a = in_group(g, f->vertex_panel[s->a]), b = in_group(g, f->vertex_panel[s->b]);
            if (a && b)
                continue;
            double own[3], other[3], d[3], length2 = NEAR * NEAR;
            vertex_at(f, g, a ? s->a : s->b, own);
            vertex_at(f, g, a ? s->b : s->a, other);
            for (int k = 0; k < 3; k++) {
                d[k] = other[k] - own[k];
                length2 += d[k] * d[k];
            }
            for (int k = 0; k < 3; k++)
                way[k] += d[k] / sqrt(length2);
            weights += 1 / sqrt(length2);
        }
    for (int k = 0; k < 3; k++)
        way[k] = weights > 0 ? way[k] / weights : 0;
}

/* ---- before its part of the body ---- */

/* Where a line along the normal goes through the body: half way between the first and the last point in it. */
static float middle_depth(const fitter *f, const shadow *s, double a, double b, const double depths[2]) {
    double first = NAN, last = NAN;
    for (double d = depths[0]; d <= depths[1]; d += SHADOW_STEP) {
        double p[3];
        for (int k = 0; k < 3; k++)
            p[k] = a * s->axes[0][k] + b * s->axes[1][k] + d * s->axes[2][k];
        if (toile_body_distance(f->body, p) <= 0) { /* in it: 0 */
            first = isnan(first) ? d : first;
            last = d;
        }
    }
    return (float)(0.5 * (first + last));
}

/* Vertices before the body (side 1) or behind it (-1). */
static int count_side(const shadow *s, const double *x, int count, const double move[3], int side) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        double p[3] = {x[3 * i] + move[0], x[3 * i + 1] + move[1], x[3 * i + 2] + move[2]};
        int a = (int)floor((dot3(p, s->axes[0]) - s->low[0]) / SHADOW_STEP + 0.5);
        int b = (int)floor((dot3(p, s->axes[1]) - s->low[1]) / SHADOW_STEP + 0.5);
        if (a < 0 || b < 0 || a >= s->count[0] || b >= s->count[1])
            continue;
        double depth = s->depth[a + (size_t)b * (size_t)s->count[0]]; /* NaN: on neither side */
        found += side * (dot3(p, s->axes[2]) - depth) > 0;
    }
    return found;
}

static toile_status cast_shadow(fitter *f, int panel, toile_error *error) {
    shadow *s = &f->shadows[panel];
    double range[3][2];
    for (int axis = 0; axis < 3; axis++) {
        toile_pose_turn(&f->panels[panel].pose, (double[3]){axis == 0, axis == 1, axis == 2}, s->axes[axis]);
        range[axis][0] = range[axis][1] = 0;
        for (int k = 0; k < 3; k++) {
            double low = s->axes[axis][k] * f->body->low[k];
            double high = s->axes[axis][k] * (f->body->low[k] + f->body->step * (f->body->count[k] - 1));
            range[axis][0] += fmin(low, high);
            range[axis][1] += fmax(low, high);
        }
    }
    for (int k = 0; k < 2; k++) {
        s->low[k] = range[k][0];
        s->count[k] = 1 + (int)((range[k][1] - range[k][0]) / SHADOW_STEP);
    }
    s->depth = toile_alloc(f->memory, (size_t)s->count[0] * (size_t)s->count[1], sizeof *s->depth);
    if (!s->depth)
        return toile_fail_memory(error, "panels");
    for (int b = 0; b < s->count[1]; b++)
        for (int a = 0; a < s->count[0]; a++)
            s->depth[a + (size_t)b * (size_t)s->count[0]] =
                middle_depth(f, s, s->low[0] + a * SHADOW_STEP, s->low[1] + b * SHADOW_STEP, range[2]);
    const double *x = f->mesh.positions + 3 * (size_t)f->mesh.panel_begin[panel];
    int before = count_side(s, x, count_of(f, panel), (double[3]){0, 0, 0}, 1);
    int behind = count_side(s, x, count_of(f, panel), (double[3]){0, 0, 0}, -1);
    s->side = before >= behind ? 1 : -1;
    s->kept = before >= behind ? before : behind;
    return TOILE_OK;
}

static double stray_cost(const fitter *f, int panel, const double *x, const double move[3], bool around) {
    const shadow *s = &f->shadows[panel];
    int count = count_of(f, panel), kept = count_side(s, x, count, move, s->side);
    int stitches = f->of_panel.begin[panel + 1] - f->of_panel.begin[panel];
    kept += around ? count_side(s, x, count, move, -s->side) : 0;
    return kept < s->kept ? STRAY * stitches * (s->kept - kept) / count : 0;
}

/* Of a panel that goes around: how much of the line in its middle is not in the body. */
static double hollow_cost(const fitter *f, int panel, const candidate *c, const double move[3]) {
    enum { POINTS = 8 };
    int stitches = f->of_panel.begin[panel + 1] - f->of_panel.begin[panel], outside = 0;
    toile_pose pose = f->panels[panel].pose;
    for (int k = 0; k < 3; k++)
        pose.position[k] = f->start[3 * panel + k] + move[k];
    for (int i = 0; i < POINTS && c->around; i++) {
        double t = c->ends[0] + (c->ends[1] - c->ends[0]) * (i + 0.5) / POINTS, p[3];
        toile_pose_apply(&pose, (double[3]){c->at[0] + t * cos(c->axis), c->at[1] + t * sin(c->axis), -c->radius}, p);
        outside += toile_body_distance(f->body, p) > INSIDE * fabs(c->radius);
    }
    return STRAY * stitches * outside / POINTS;
}

/* From where the seams want it outwards along the normal, both ways: the first places that are free of the body. What goes
 * around the body is free in many, and may be sewn behind it only in some. */
static void move_out(const fitter *f, int panel, const double slide[3], const double normal[3], double wanted, candidate *best) {
    bool around = best->around;
    int count = count_of(f, panel);
    for (int side = -1; side <= 1; side += 2) {
        int places = around ? AROUND_PLACES : 1;
        for (double by = 0; by <= 2 * MOVE_MOST && places > 0; by += MOVE_STEP) {
            double at = wanted + side * by;
            group g = {{panel, panel}, f->trial, {0, 0, 0}};
            if (fabs(at) > MOVE_MOST + 1e-9)
                break;
            for (int k = 0; k < 3; k++)
                g.move[k] = slide[k] + at * normal[k];
            if (clearance(f, f->trial, count, g.move, f->margin) < f->margin)
                continue;
            double cost = seam_cost(f, &g) + stray_cost(f, panel, f->trial, g.move, around) + hollow_cost(f, panel, best, g.move);
            if (cost < best->cost) {
                best->cost = cost;
                memcpy(best->move, g.move, sizeof g.move);
            }
            places--;
        }
    }
}

/* The best move that keeps the panel off the body: a part of the way in its plane, then along its normal. False: there
 * is none. */
static bool move_candidate(const fitter *f, int panel, candidate *c) {
    double normal[3], way[3], slide[3];
    memset(c->move, 0, sizeof c->move);
    c->cost = INFINITY;
    place_panel(f, panel, c, f->trial);
    toile_pose_turn(&f->panels[panel].pose, (double[3]){0, 0, 1}, normal);
    mean_way(f, &(group){{panel, panel}, f->trial, {0, 0, 0}}, way);
    double out = dot3(way, normal), wanted = fmax(-MOVE_MOST, fmin(MOVE_MOST, out));
    for (int k = 0; k < 3; k++)
        slide[k] = way[k] - out * normal[k];
    double far = sqrt(dot3(slide, slide)), most = far > SLIDE_MOST ? SLIDE_MOST / far : 1;
    for (int part = 0; part <= SLIDES; part++) {
        double to[3];
        for (int k = 0; k < 3; k++)
            to[k] = slide[k] * most * part / SLIDES;
        move_out(f, panel, to, normal, wanted, c);
    }
    return isfinite(c->cost);
}

/* ---- crossings ---- */

static toile_status make_surface(fitter *f, int panel, const double *x, toile_surface **surface, toile_error *error) {
    int count = count_of(f, panel), first = f->mesh.panel_begin[panel], triangles = 0;
    double middle[3] = {0, 0, 0};
    for (int i = 0; i < 3 * count; i++)
        middle[i % 3] += x[i] / count;
    for (int i = 0; i < 3 * count; i++)
        f->shrunk[i] = middle[i % 3] + SHRINK * (x[i] - middle[i % 3]);
    int begin = 0;
    while (f->mesh.triangle_panels[begin] != panel)
        begin++;
    while (begin + triangles < f->mesh.triangle_count && f->mesh.triangle_panels[begin + triangles] == panel)
        triangles++;
    int *corners = toile_alloc(f->memory, (size_t)triangles, 3 * sizeof *corners);
    if (!corners)
        return toile_fail_memory(error, "panels");
    for (int i = 0; i < 3 * triangles; i++)
        corners[i] = f->mesh.triangles[3 * begin + i] - first;
    toile_status status = toile_surface_create(f->memory, count, f->shrunk, triangles, corners, surface, error);
    toile_free(f->memory, corners);
    return status;
}

static int crossings(const fitter *f, int panel, const toile_surface *surface) {
    int count = 0;
    for (int i = 0; i < f->pattern->panel_count; i++)
        count += i != panel && f->surfaces[i] && toile_intersect_pair(surface, f->surfaces[i]) > 0;
    return count;
}

/* ---- the search ---- */

static void keep_best(candidate *list, int *count, const candidate *c) {
    int at = *count < TRIED_MOST ? (*count)++ : TRIED_MOST;
    for (; at > 0 && list[at - 1].cost > c->cost; at--)
        if (at < TRIED_MOST)
            list[at] = list[at - 1];
    if (at < TRIED_MOST)
        list[at] = *c;
}

static toile_status fit_panel(fitter *f, int panel, toile_error *error) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    candidate list[TRIED_MOST];
    int count = 0;
    for (int i = f->mesh.panel_begin[panel]; i < f->mesh.panel_begin[panel + 1]; i++)
        for (int k = 0; k < 2; k++) {
            low[k] = fmin(low[k], f->mesh.flat[2 * i + k]);
            high[k] = fmax(high[k], f->mesh.flat[2 * i + k]);
        }
    const shadow *seen = &f->shadows[panel];
    int only = seen->kept > FACING * count_of(f, panel) ? seen->side : 0;
    candidate flat = {0};
    if (move_candidate(f, panel, &flat))
        keep_best(list, &count, &flat);
    for (int axis = 0; axis < 2; axis++)
        for (int part = 0; part < 3; part++)
            for (int r = 0; r < 2 * RADIUS_COUNT; r++) {
                int across = 1 - axis;
                candidate c = {.radius = r % 2 ? -RADII[r / 2] : RADII[r / 2], .axis = axis * M_PI / 2};
                c.at[0] = 0.5 * (low[0] + high[0]);
                c.at[1] = 0.5 * (low[1] + high[1]);
                c.at[across] = low[across] + 0.5 * part * (high[across] - low[across]);
                /* no panel meets itself: at most 300 degrees around */
                double far = fmax(high[across] - c.at[across], c.at[across] - low[across]);
                if (only * c.radius < 0 || far / RADII[r / 2] * (part == 1 ? 2 : 1) > 5.2)
                    continue;
                c.around = (high[across] - low[across]) / RADII[r / 2] > M_PI;
                c.ends[0] = low[axis] - c.at[axis];
                c.ends[1] = high[axis] - c.at[axis];
                if (move_candidate(f, panel, &c))
                    keep_best(list, &count, &c);
            }
    toile_status status = TOILE_OK;
    for (int i = 0; i < count && status == TOILE_OK; i++) {
        toile_surface *surface = NULL;
        place_panel(f, panel, &list[i], f->trial);
        status = make_surface(f, panel, f->trial, &surface, error);
        bool good = status == TOILE_OK && crossings(f, panel, surface) == 0;
        if (!good) {
            toile_surface_free(surface);
            continue;
        }
        toile_surface_free(f->surfaces[panel]);
        f->surfaces[panel] = surface;
        toile_pattern_panel *p = &f->panels[panel];
        p->bend_radius = list[i].radius;
        p->bend_axis = list[i].axis;
        memcpy(p->bend_at, list[i].at, sizeof p->bend_at);
        for (int k = 0; k < 3; k++)
            p->pose.position[k] = f->start[3 * panel + k] + list[i].move[k];
        memcpy(f->mesh.positions + 3 * (size_t)f->mesh.panel_begin[panel], f->trial,
               3 * (size_t)count_of(f, panel) * sizeof *f->trial);
        break;
    }
    return status;
}

static double pair_cost(const fitter *f, const group *g) {
    double cost = seam_cost(f, g);
    for (int n = 0; n < 2; n++)
        cost += stray_cost(f, g->panels[n], f->mesh.positions + 3 * (size_t)f->mesh.panel_begin[g->panels[n]], g->move, false);
    return cost;
}

/* Moves both if nothing is in the way but each other: they do not come nearer. */
static toile_status move_pair(fitter *f, const group *g, bool *done, toile_error *error) {
    int a = g->panels[0], b = g->panels[1];
    bool free = true;
    toile_status status = TOILE_OK;
    toile_surface *moved[2] = {NULL, NULL}, *old[2] = {f->surfaces[a], f->surfaces[b]};
    f->surfaces[a] = f->surfaces[b] = NULL;
    for (int n = 0; n < 2 && status == TOILE_OK; n++) {
        int panel = g->panels[n], count = count_of(f, panel);
        const double *x = f->mesh.positions + 3 * (size_t)f->mesh.panel_begin[panel];
        for (int i = 0; i < 3 * count; i++)
            f->trial[i] = x[i] + g->move[i % 3];
        status = make_surface(f, panel, f->trial, &moved[n], error);
        free = free && status == TOILE_OK && crossings(f, panel, moved[n]) == 0;
    }
    for (int n = 0; n < 2; n++) {
        int panel = g->panels[n];
        double *x = f->mesh.positions + 3 * (size_t)f->mesh.panel_begin[panel];
        f->surfaces[panel] = free ? moved[n] : old[n];
        toile_surface_free(free ? old[n] : moved[n]);
        for (int i = 0; free && i < 3 * count_of(f, panel); i++)
            x[i] += g->move[i % 3];
        for (int k = 0; free && k < 3; k++)
            f->panels[panel].pose.position[k] += g->move[k];
    }
    *done = free;
    return status;
}

static bool is_clear(const fitter *f, const group *g) {
    bool clear = true;
    for (int n = 0; n < 2; n++)
        clear = clear && clearance(f, f->mesh.positions + 3 * (size_t)f->mesh.panel_begin[g->panels[n]], count_of(f, g->panels[n]),
                                   g->move, f->margin) >= f->margin;
    return clear;
}

/* Does a way between the two go through the body? */
static bool is_pierced(const fitter *f, const group *g) {
    for (int i = f->of_panel.begin[g->panels[0]]; i < f->of_panel.begin[g->panels[0] + 1]; i++) {
        const toile_stitch *s = &f->mesh.stitches[f->of_panel.items[i]];
        const double *a = f->mesh.positions + 3 * (size_t)s->a, *b = f->mesh.positions + 3 * (size_t)s->b;
        double length2 = NEAR * NEAR;
        for (int k = 0; k < 3; k++)
            length2 += (b[k] - a[k]) * (b[k] - a[k]);
        if (in_group(g, f->vertex_panel[s->a]) && in_group(g, f->vertex_panel[s->b]) && way_cost(f, a, b) > 1.01 * sqrt(length2))
            return true;
    }
    return false;
}

/* Two panels that are sewn to each other, such as the halves of a sleeve, together: neither would leave the other. The way to what they
 * are sewn to; and where an arm would leave them through a seam, all ways in the plane of the first. */
static toile_status fit_pair(fitter *f, int a, int b, toile_error *error) {
    enum { ACROSS = 9, MOVES = SLIDES + ACROSS * ACROSS };
    double moves[MOVES][3], costs[MOVES], way[3], axes[2][3];
    group g = {{a, b}, NULL, {0, 0, 0}};
    double before = pair_cost(f, &g);
    int count = SLIDES;
    mean_way(f, &g, way);
    double far = sqrt(dot3(way, way)), most = far > SLIDE_MOST ? SLIDE_MOST / far : 1;
    for (int i = 0; i < 3 * SLIDES; i++)
        moves[i / 3][i % 3] = way[i % 3] * most * (SLIDES - i / 3) / SLIDES;
    toile_pose_turn(&f->panels[a].pose, (double[3]){1, 0, 0}, axes[0]);
    toile_pose_turn(&f->panels[a].pose, (double[3]){0, 1, 0}, axes[1]);
    if (is_pierced(f, &g))
        for (int i = 0; i < ACROSS * ACROSS; i++, count++)
            for (int k = 0; k < 3; k++)
                moves[count][k] = ACROSS_STEP * ((i % ACROSS - ACROSS / 2) * axes[0][k] + (i / ACROSS - ACROSS / 2) * axes[1][k]);
    for (int i = 0; i < count; i++) {
        memcpy(g.move, moves[i], sizeof g.move);
        costs[i] = is_clear(f, &g) ? pair_cost(f, &g) : INFINITY;
    }
    toile_status status = TOILE_OK;
    for (bool done = false; !done && status == TOILE_OK;) {
        int best = 0;
        for (int i = 1; i < count; i++)
            best = costs[i] < costs[best] ? i : best;
        if (!(costs[best] <= 0.98 * before))
            break;
        memcpy(g.move, moves[best], sizeof g.move);
        costs[best] = INFINITY;
        status = move_pair(f, &g, &done, error);
    }
    return status;
}

/* Every two panels of a round that a seam joins, once. */
static toile_status fit_pairs(fitter *f, const bool *lower, bool round, toile_error *error) {
    toile_status status = TOILE_OK;
    for (int i = 0; i < f->mesh.stitch_count && status == TOILE_OK; i++) {
        int a = f->vertex_panel[f->mesh.stitches[i].a], b = f->vertex_panel[f->mesh.stitches[i].b];
        bool again = a == b || lower[a] != round || lower[b] != round;
        for (int j = 0; j < i && !again; j++) {
            int c = f->vertex_panel[f->mesh.stitches[j].a], d = f->vertex_panel[f->mesh.stitches[j].b];
            again = (a == c && b == d) || (a == d && b == c);
        }
        if (!again)
            status = fit_pair(f, a, b, error);
    }
    return status;
}

static toile_status fit_round(fitter *f, const bool *lower, bool round, toile_error *error) {
    toile_status status = TOILE_OK;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (int i = 0; i < f->pattern->panel_count && status == TOILE_OK; i++)
            if (lower[i] == round) {
                status = fit_panel(f, i, error);
                if (f->tell)
                    f->tell(f->user, ++f->placed, SWEEPS * f->pattern->panel_count);
            }
        if (status == TOILE_OK)
            status = fit_pairs(f, lower, round, error);
    }
    return status;
}

/* Those below, as if the others were not there. */
static toile_status fit_lower(fitter *f, const bool *lower, toile_error *error) {
    toile_surface **all = f->surfaces;
    f->surfaces = toile_alloc(f->memory, (size_t)f->pattern->panel_count, sizeof(toile_surface *));
    if (!f->surfaces) {
        f->surfaces = all;
        return toile_fail_memory(error, "panels");
    }
    for (int i = 0; i < f->pattern->panel_count; i++)
        f->surfaces[i] = lower[i] ? all[i] : NULL;
    toile_status status = fit_round(f, lower, true, error);
    for (int i = 0; i < f->pattern->panel_count; i++)
        all[i] = lower[i] ? f->surfaces[i] : all[i];
    toile_free(f->memory, f->surfaces);
    f->surfaces = all;
    return status;
}

/* The others, over them. */
static toile_status fit_over(fitter *f, const bool *lower, toile_error *error) {
    const toile_body_field *bare = f->body;
    toile_body_field covered;
    toile_status status = toile_body_field_copy(f->memory, bare, &covered, error);
    if (status != TOILE_OK)
        return status;
    for (int t = 0; t < f->mesh.triangle_count; t++)
        if (lower[f->mesh.triangle_panels[t]])
            toile_body_field_cover(bare, &covered, f->mesh.positions, 1, f->mesh.triangles + 3 * (size_t)t);
    f->body = &covered;
    status = fit_round(f, lower, false, error);
    f->body = bare;
    toile_body_field_free(f->memory, &covered);
    return status;
}

/* ---- before and after ---- */

static void measure(const fitter *f, double *gap, double *widest, int *inside, int *crossing, int *through, int *worst) {
    double sum = 0;
    *inside = *crossing = *through = 0;
    *widest = 0;
    *worst = -1;
    for (int i = 0; i < f->mesh.stitch_count; i++) {
        const double *a = f->mesh.positions + 3 * f->mesh.stitches[i].a, *b = f->mesh.positions + 3 * f->mesh.stitches[i].b;
        double d2 = (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]);
        sum += d2;
        *widest = fmax(*widest, sqrt(d2));
        *through += way_cost(f, a, b) > 1.01 * sqrt(d2 + NEAR * NEAR);
    }
    *gap = f->mesh.stitch_count ? sqrt(sum / f->mesh.stitch_count) : 0;
    for (int i = 0; i < f->mesh.vertex_count; i++)
        if (toile_body_distance(f->body, f->mesh.positions + 3 * i) < f->margin - 1e-9) {
            ++*inside;
            *worst = f->vertex_panel[i];
        }
    for (int i = 0; i < f->pattern->panel_count && f->surfaces[0]; i++)
        *crossing += crossings(f, i, f->surfaces[i]);
    *crossing /= 2;
}

/* Of the neighbours of each vertex the one that lies most in the direction of its triangles. */
static toile_status find_inner(fitter *f, toile_error *error) {
    const double *flat = f->mesh.flat;
    double(*inward)[2] = toile_alloc(f->memory, (size_t)f->mesh.vertex_count, sizeof *inward);
    f->inner = toile_alloc(f->memory, (size_t)f->mesh.vertex_count, sizeof *f->inner);
    if (!inward || !f->inner) {
        toile_free(f->memory, inward);
        return toile_fail_memory(error, "seams");
    }
    for (int i = 0; i < 3 * f->mesh.triangle_count; i++) {
        const int *t = f->mesh.triangles + i / 3 * 3, v = t[i % 3];
        for (int k = 0; k < 2; k++)
            inward[v][k] += flat[2 * t[0] + k] + flat[2 * t[1] + k] + flat[2 * t[2] + k] - 3 * flat[2 * v + k];
    }
    for (int i = 0; i < f->mesh.vertex_count; i++)
        f->inner[i] = i;
    for (int i = 0; i < 3 * f->mesh.triangle_count; i++) {
        const int *t = f->mesh.triangles + i / 3 * 3, v = t[i % 3];
        for (int n = 0; n < 3; n++) {
            double in[2] = {0, 0};
            for (int k = 0; k < 2; k++) {
                in[0] += inward[v][k] * (flat[2 * f->inner[v] + k] - flat[2 * v + k]);
                in[1] += inward[v][k] * (flat[2 * t[n] + k] - flat[2 * v + k]);
            }
            f->inner[v] = in[1] > in[0] ? t[n] : f->inner[v];
        }
    }
    toile_free(f->memory, inward);
    return TOILE_OK;
}

static toile_status list_stitches(fitter *f, toile_error *error) {
    int panels = f->pattern->panel_count;
    f->of_panel.begin = toile_alloc(f->memory, (size_t)panels + 2, sizeof(int));
    f->of_panel.items = toile_alloc(f->memory, 2 * (size_t)f->mesh.stitch_count, sizeof(int));
    f->vertex_panel = toile_alloc(f->memory, (size_t)f->mesh.vertex_count, sizeof(int));
    if (!f->of_panel.begin || !f->of_panel.items || !f->vertex_panel)
        return toile_fail_memory(error, "seams");
    for (int p = 0; p < panels; p++)
        for (int i = f->mesh.panel_begin[p]; i < f->mesh.panel_begin[p + 1]; i++)
            f->vertex_panel[i] = p;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < f->mesh.stitch_count; i++) {
            int a = f->vertex_panel[f->mesh.stitches[i].a], b = f->vertex_panel[f->mesh.stitches[i].b];
            for (int side = 0; side < (a == b ? 1 : 2); side++) {
                int p = side ? b : a;
                if (pass == 0)
                    f->of_panel.begin[p + 2]++;
                else
                    f->of_panel.items[f->of_panel.begin[p + 1]++] = i;
            }
        }
        for (int p = 2; pass == 0 && p < panels + 2; p++)
            f->of_panel.begin[p] += f->of_panel.begin[p - 1];
    }
    return TOILE_OK;
}

toile_status toile_pattern_fit(toile_memory *memory, const toile_pattern *pattern, toile_pattern_panel *panels,
                               const bool *joins, const bool *lower, const toile_body_field *body, double margin,
                               double edge_length, toile_fit_progress *tell, void *user, toile_fit_report *report,
                               toile_error *error) {
    fitter f = {.memory = memory, .pattern = pattern, .panels = panels, .body = body, .margin = margin, .tell = tell, .user = user};
    int count = pattern->panel_count, largest = 0;
    memset(report, 0, sizeof *report);
    report->worst_panel = -1;
    /* A coarse copy: the mesh is only looked at. */
    toile_pattern coarse = *pattern;
    toile_pattern_panel *rough = toile_alloc(memory, (size_t)count, sizeof *rough);
    toile_status status = rough ? TOILE_OK : toile_fail_memory(error, "panels");
    for (int i = 0; i < count && rough; i++) {
        rough[i] = panels[i];
        rough[i].edge_length = fmax(edge_length, panels[i].edge_length);
        rough[i].finer_count = 0;
    }
    coarse.panels = rough;
    if (status == TOILE_OK)
        status = toile_pattern_make(memory, &coarse, &f.mesh, NULL, error);
    toile_free(memory, rough);
    if (status != TOILE_OK)
        return status;
    int kept = 0;
    for (int i = 0; i < f.mesh.stitch_count; i++)
        if (!joins[f.mesh.stitches[i].seam])
            f.mesh.stitches[kept++] = f.mesh.stitches[i];
    f.mesh.stitch_count = kept;
    status = list_stitches(&f, error);
    if (status == TOILE_OK)
        status = find_inner(&f, error);
    for (int i = 0; i < count; i++)
        largest = count_of(&f, i) > largest ? count_of(&f, i) : largest;
    f.start = toile_alloc(memory, (size_t)count, 3 * sizeof *f.start);
    f.trial = toile_alloc(memory, (size_t)largest, 3 * sizeof *f.trial);
    f.shrunk = toile_alloc(memory, (size_t)largest, 3 * sizeof *f.shrunk);
    f.surfaces = toile_alloc(memory, (size_t)count, sizeof(toile_surface *));
    f.shadows = toile_alloc(memory, (size_t)count, sizeof *f.shadows);
    if (status == TOILE_OK && (!f.shadows || !f.start || !f.trial || !f.shrunk || !f.surfaces))
        status = toile_fail_memory(error, "panels");
    bool few = count <= PANELS_MOST;
    for (int i = 0; i < count && status == TOILE_OK; i++) {
        memcpy(f.start + 3 * i, panels[i].pose.position, 3 * sizeof *f.start);
        if (few)
            status = make_surface(&f, i, f.mesh.positions + 3 * (size_t)f.mesh.panel_begin[i], &f.surfaces[i], error);
        if (few && status == TOILE_OK)
            status = cast_shadow(&f, i, error);
    }
    double unused;
    int none;
    if (status == TOILE_OK)
        measure(&f, &report->gap_before, &unused, &report->inside_before, &report->crossing_before, &none, &none);
    bool layers = few && memchr(lower, true, (size_t)count);
    if (status == TOILE_OK && layers)
        status = fit_lower(&f, lower, error);
    if (status == TOILE_OK && few)
        status = layers ? fit_over(&f, lower, error) : fit_round(&f, lower, false, error);
    if (status == TOILE_OK)
        measure(&f, &report->gap_after, &report->gap_widest, &report->inside, &report->crossing, &report->through,
                &report->worst_panel);
    for (int i = 0; i < count && f.surfaces; i++)
        toile_surface_free(f.surfaces[i]);
    for (int i = 0; i < count && f.shadows; i++)
        toile_free(memory, f.shadows[i].depth);
    toile_free(memory, f.shadows);
    toile_free(memory, f.surfaces);
    toile_free(memory, f.start);
    toile_free(memory, f.trial);
    toile_free(memory, f.shrunk);
    toile_free(memory, f.of_panel.begin);
    toile_free(memory, f.of_panel.items);
    toile_free(memory, f.vertex_panel);
    toile_free(memory, f.inner);
    toile_pattern_mesh_free(memory, &f.mesh);
    return status;
}
