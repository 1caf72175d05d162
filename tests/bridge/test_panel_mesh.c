/* Panels and patterns: that meshes conform to their outlines, have good angles and the outline's area, and that both
 * sides of a seam have the same vertices. On patterns made here: rectangle, circle skirt, panel with a hole, tee shirt,
 * skirt with dart and pleats; and on random outlines. */
#include "check.h"

#include "half_edge.h"
#include "pattern.h"

typedef struct outline {
    toile_pattern_edge edges[64];
    int sizes[4];
    toile_pattern_panel panel;
    int count;
} outline;

static toile_memory memory;

static void begin_outline(outline *o, const char *name, double edge_length) {
    memset(o, 0, sizeof *o);
    o->panel = (toile_pattern_panel){.name = name, .loop_count = 1, .edge_length = edge_length, .pose = {.rotation = {1}}};
}

static toile_pattern_edge *add_edge(outline *o, double x, double y) {
    toile_pattern_edge *e = &o->edges[o->count++];
    e->curve.from[0] = x;
    e->curve.from[1] = y;
    o->sizes[o->panel.loop_count - 1]++;
    return e;
}

static void add_curve(outline *o, double x, double y, double cx, double cy) {
    toile_pattern_edge *e = add_edge(o, x, y);
    e->curve.control_count = 1;
    e->curve.control[0][0] = cx;
    e->curve.control[0][1] = cy;
}

static void add_arc(outline *o, double x, double y, double radius, bool clockwise) {
    toile_pattern_edge *e = add_edge(o, x, y);
    e->curve.arc = true;
    e->curve.radius = radius;
    e->curve.clockwise = clockwise;
}

static void begin_hole(outline *o) {
    o->panel.loop_count++;
}

static const toile_pattern_panel *finish_outline(outline *o) {
    o->panel.loop_sizes = o->sizes;
    o->panel.edges = o->edges;
    return &o->panel;
}

static toile_status make(const toile_pattern_panel *panels, int panel_count, const toile_pattern_seam *seams, int seam_count,
                         toile_pattern_mesh *mesh, toile_error *error) {
    toile_pattern pattern = {"test", panel_count, seam_count, panels, seams};
    return toile_pattern_make(&memory, &pattern, mesh, NULL, error);
}

/* ---- properties of every mesh ---- */

static double area_of(const double *a, const double *b, const double *c) {
    return 0.5 * ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]));
}

static double smallest_angle(const double *a, const double *b, const double *c) {
    const double *p[3] = {a, b, c};
    double least = 180;
    for (int k = 0; k < 3; k++) {
        const double *q = p[(k + 1) % 3], *r = p[(k + 2) % 3], *o = p[k];
        double x[2] = {q[0] - o[0], q[1] - o[1]}, y[2] = {r[0] - o[0], r[1] - o[1]};
        least = fmin(least, fabs(atan2(x[0] * y[1] - x[1] * y[0], x[0] * y[0] + x[1] * y[1])) * 180 / M_PI);
    }
    return least;
}

/* Area inside the polyline of a panel's border as it was sampled. */
static double border_area(const toile_pattern_mesh *m, int panel) {
    double sum = 0;
    for (int e = m->edge_base[panel]; e < m->edge_base[panel + 1]; e++)
        for (int i = 0; i < m->edge_count[e]; i++) {
            const double *a = m->flat + 2 * toile_pattern_vertex(m, e, i), *b = m->flat + 2 * toile_pattern_vertex(m, e, i + 1);
            sum += 0.5 * (a[0] * b[1] - a[1] * b[0]);
        }
    return sum;
}

/* `loops` of the panel; holes are written clockwise here, so that areas add up. */
static void check_panel(const char *what, const toile_pattern_mesh *m, int panel, int loops, double edge_length,
                        double least_angle) {
    int triangles = 0, first = m->panel_begin[panel], vertices = m->panel_begin[panel + 1] - first, wrong_side = 0, up = 0;
    double area = 0, angle = 180, longest = 0;
    int *own = malloc(3 * sizeof(int) * (size_t)m->triangle_count);
    for (int t = 0; t < m->triangle_count; t++) {
        if (m->triangle_panels[t] != panel)
            continue;
        const int *v = m->triangles + 3 * t;
        const double *a = m->flat + 2 * v[0], *b = m->flat + 2 * v[1], *c = m->flat + 2 * v[2];
        double signed_area = area_of(a, b, c);
        up += signed_area > 0;
        area += fabs(signed_area);
        angle = fmin(angle, smallest_angle(a, b, c));
        for (int k = 0; k < 3; k++) {
            const double *p = m->flat + 2 * v[k], *q = m->flat + 2 * v[(k + 1) % 3];
            longest = fmax(longest, hypot(p[0] - q[0], p[1] - q[1]));
            wrong_side += v[k] < first || v[k] >= first + vertices;
            own[3 * triangles + k] = v[k] - first;
        }
        triangles++;
    }
    CHECK(wrong_side == 0, "%s: %d corners in another panel", what, wrong_side);
    CHECK(up == 0 || up == triangles, "%s: %d of %d triangles face the other way", what, up, triangles);
    CHECK(angle > least_angle, "%s: smallest angle %.2f degrees", what, angle);
    CHECK(fabs(angle - m->smallest_angle) < 0.01 || angle > m->smallest_angle, "%s: %.3f told, %.3f found", what,
          m->smallest_angle, angle);
    CHECK(longest < 2.2 * edge_length, "%s: longest edge %g of %g", what, longest, edge_length);
    double wanted = border_area(m, panel);
    CHECK(fabs(area - fabs(wanted)) < 1e-6 * area, "%s: area %.9g, the outline has %.9g", what, area, fabs(wanted));

    /* Edges: each used once or twice, those used once are exactly the border's segments; Euler's formula. */
    toile_half_edge *half = toile_half_edges(&memory, own, triangles);
    int edges = 0, border = 0, segments = 0, others = 0, chords = 0, used = 0;
    int border_vertices = 0;
    for (int e = m->edge_base[panel]; e < m->edge_base[panel + 1]; e++)
        border_vertices += m->edge_count[e];
    for (int i = 0, j; i < 3 * triangles; i = j) {
        j = toile_next_edge(half, 3 * triangles, i);
        edges++;
        others += j - i > 2;
        if (j - i == 1)
            border++;
        else
            chords += half[i].a < border_vertices && half[i].b < border_vertices;
    }
    for (int e = m->edge_base[panel]; e < m->edge_base[panel + 1]; e++)
        for (int i = 0; i < m->edge_count[e]; i++) {
            int a = toile_pattern_vertex(m, e, i) - first, b = toile_pattern_vertex(m, e, i + 1) - first;
            segments++;
            for (int k = 0; k < 3 * triangles; k++)
                if ((half[k].a == a && half[k].b == b) || (half[k].a == b && half[k].b == a)) {
                    used++;
                    break;
                }
        }
    CHECK(others == 0, "%s: %d edges with more than two triangles", what, others);
    CHECK(border == segments && used == segments, "%s: %d border edges, %d segments, %d of them edges", what, border, segments,
          used);
    CHECK(chords == 0, "%s: %d edges straight across, between two points of the border", what, chords);
    CHECK(vertices - edges + triangles == 2 - loops, "%s: Euler characteristic %d with %d loops", what,
          vertices - edges + triangles, loops);
    toile_free(&memory, half);
    free(own);
}

/* ---- single panels ---- */

static void rectangle_is_a_grid(void) {
    outline o;
    begin_outline(&o, "rectangle", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.2, 0);
    add_edge(&o, 0.2, 0.1);
    add_edge(&o, 0, 0.1);
    toile_pattern_mesh m;
    toile_error error = {0};
    CHECK(make(finish_outline(&o), 1, NULL, 0, &m, &error) == TOILE_OK, "%s", error.message);
    check_panel("rectangle", &m, 0, 1, 0.01, 44.9);
    CHECK(m.vertex_count == 21 * 11 && m.triangle_count == 2 * 20 * 10, "%d vertices, %d triangles", m.vertex_count,
          m.triangle_count);
    int off = 0;
    for (int i = 0; i < 2 * m.vertex_count; i++)
        off += fabs(m.flat[i] * 100 - round(m.flat[i] * 100)) > 1e-4;
    CHECK(off == 0, "%d coordinates off the grid", off);
    /* both diagonals about equally often */
    int rising = 0, falling = 0;
    for (int t = 0; t < m.triangle_count; t++)
        for (int k = 0; k < 3; k++) {
            const double *a = m.flat + 2 * m.triangles[3 * t + k], *b = m.flat + 2 * m.triangles[3 * t + (k + 1) % 3];
            double x = b[0] - a[0], y = b[1] - a[1];
            rising += x * y > 1e-6;
            falling += x * y < -1e-6;
        }
    CHECK(abs(rising - falling) < 20, "%d rising diagonals, %d falling", rising, falling);
    toile_pattern_mesh_free(&memory, &m);
}

static void grain_turns_the_grid(void) {
    outline o;
    begin_outline(&o, "bias", 0.01);
    o.panel.grain = M_PI / 4;
    add_edge(&o, 0, 0);
    add_edge(&o, 0.2, 0);
    add_edge(&o, 0.2, 0.2);
    add_edge(&o, 0, 0.2);
    toile_pattern_mesh m;
    toile_error error = {0};
    CHECK(make(finish_outline(&o), 1, NULL, 0, &m, &error) == TOILE_OK, "%s", error.message);
    check_panel("bias", &m, 0, 1, 0.01, 20);
    /* u runs along the warp: the diagonal */
    double worst = 0;
    for (int i = 0; i < 3 * m.triangle_count; i++) {
        const double *p = m.flat + 2 * m.triangles[i], *uv = m.corner_uv + 2 * i;
        worst = fmax(worst, fabs(uv[0] - (p[0] + p[1]) * M_SQRT1_2) + fabs(uv[1] - (p[1] - p[0]) * M_SQRT1_2));
    }
    CHECK(worst < 1e-12, "(u, v) off by %g", worst);
    toile_pattern_mesh_free(&memory, &m);
}

static void holes_and_arcs(void) {
    outline o;
    toile_pattern_mesh m;
    toile_error error = {0};
    begin_outline(&o, "half circle skirt", 0.02); /* waist 0.12 m, hem 0.6 m */
    add_arc(&o, -0.12, 0, 0.12, true);
    add_edge(&o, 0.12, 0);
    add_arc(&o, 0.6, 0, 0.6, false);
    add_edge(&o, -0.6, 0);
    CHECK(make(finish_outline(&o), 1, NULL, 0, &m, &error) == TOILE_OK, "%s", error.message);
    check_panel("half circle skirt", &m, 0, 1, 0.02, 20);
    double exact = 0.5 * M_PI * (0.6 * 0.6 - 0.12 * 0.12);
    CHECK(fabs(fabs(border_area(&m, 0)) - exact) < 0.002 * exact, "area %g, exact %g", border_area(&m, 0), exact);
    toile_pattern_mesh_free(&memory, &m);

    begin_outline(&o, "window", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.3, 0);
    add_edge(&o, 0.3, 0.2);
    add_edge(&o, 0, 0.2);
    begin_hole(&o);
    add_arc(&o, 0.06, 0.1, 0.04, true);
    add_arc(&o, 0.14, 0.1, 0.04, true);
    begin_hole(&o);
    add_edge(&o, 0.2, 0.05);
    add_edge(&o, 0.2, 0.15);
    add_edge(&o, 0.27, 0.1);
    CHECK(make(finish_outline(&o), 1, NULL, 0, &m, &error) == TOILE_OK, "%s", error.message);
    check_panel("window", &m, 0, 3, 0.01, 20);
    toile_pattern_mesh_free(&memory, &m);
}

static void finer_where_asked(void) {
    outline o;
    toile_pattern_mesh m;
    toile_error error = {0};
    toile_finer area = {{0.1, 0.1}, 0.03, 0.0025};
    begin_outline(&o, "fine", 0.01);
    o.panel.finer = &area;
    o.panel.finer_count = 1;
    add_edge(&o, 0, 0)->edge_length = 0.002;
    add_edge(&o, 0.2, 0);
    add_edge(&o, 0.2, 0.2);
    add_edge(&o, 0, 0.2);
    CHECK(make(finish_outline(&o), 1, NULL, 0, &m, &error) == TOILE_OK, "%s", error.message);
    check_panel("fine", &m, 0, 1, 0.01, 20);
    CHECK(m.edge_count[0] == 100 && m.edge_count[2] == 20, "%d and %d segments", m.edge_count[0], m.edge_count[2]);
    double longest = 0;
    for (int i = 0; i < 3 * m.triangle_count; i++) {
        const double *a = m.flat + 2 * m.triangles[i], *b = m.flat + 2 * m.triangles[i - i % 3 + (i + 1) % 3];
        if (hypot(a[0] - 0.1, a[1] - 0.1) < 0.025)
            longest = fmax(longest, hypot(a[0] - b[0], a[1] - b[1]));
    }
    CHECK(longest < 1.6 * 0.0025, "longest edge in the finer area %g", longest);
    toile_pattern_mesh_free(&memory, &m);
}

/* Stars with random radii and curved sides: whatever the outline, the mesh is one. */
static void random_outlines(void) {
    double worst = 90;
    for (int run = 0; run < 60; run++) {
        outline o;
        toile_pattern_mesh m;
        toile_error error = {0};
        begin_outline(&o, "random", random_between(0.006, 0.03));
        o.panel.grain = random_between(-1, 1);
        int corners = 5 + (int)random_between(0, 12);
        double turn = random_between(0, 6);
        for (int i = 0; i < corners; i++) {
            double angle = turn + 2 * M_PI * i / corners, r = random_between(0.14, 0.22);
            double next = angle + M_PI / corners, rc = random_between(0.15, 0.2);
            if (i % 2)
                add_curve(&o, r * cos(angle), r * sin(angle), rc * cos(next), rc * sin(next));
            else
                add_edge(&o, r * cos(angle), r * sin(angle));
        }
        toile_status status = make(finish_outline(&o), 1, NULL, 0, &m, &error);
        CHECK(status == TOILE_OK, "outline %d: %s", run, error.message);
        if (status != TOILE_OK)
            continue;
        char name[32];
        snprintf(name, sizeof name, "random %d", run);
        check_panel(name, &m, 0, 1, o.panel.edge_length, 20);
        worst = fmin(worst, m.smallest_angle);
        toile_pattern_mesh_free(&memory, &m);
    }
    printf("random outlines: smallest angle %.1f degrees\n", worst);
}

/* ---- seams ---- */

static void check_seams(const toile_pattern_mesh *m, const toile_pattern_panel *panels, const toile_pattern_seam *seams,
                        int seam_count) {
    for (int s = 0; s < seam_count; s++) {
        int segments[2] = {0, 0}, stitches = 0, wrong = 0;
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < seams[s].count[k]; i++)
                segments[k] += m->edge_count[m->edge_base[seams[s].sides[k][i].panel] + seams[s].sides[k][i].edge];
        CHECK(segments[0] == segments[1], "seam %d: %d and %d segments", s, segments[0], segments[1]);
        for (int i = 0; i < m->stitch_count; i++)
            if (m->stitches[i].seam == s) {
                stitches++;
                wrong += m->stitches[i].a == m->stitches[i].b;
            }
        CHECK(wrong == 0 && stitches >= segments[0], "seam %d: %d stitches, %d of them of a vertex to itself", s, stitches,
              wrong);
    }
    /* Everything welded is a surface: no edge has three triangles or two that run the same way, no triangle is lost. */
    int *root = malloc(sizeof(int) * (size_t)m->vertex_count), *welded = malloc(3 * sizeof(int) * (size_t)m->triangle_count);
    for (int i = 0; i < m->vertex_count; i++)
        root[i] = i;
    for (bool more = true; more;) {
        more = false;
        for (int i = 0; i < m->stitch_count; i++) {
            int a = root[m->stitches[i].a], b = root[m->stitches[i].b], low = a < b ? a : b;
            more = more || a != b;
            root[m->stitches[i].a] = root[m->stitches[i].b] = low;
        }
        for (int i = 0; i < m->vertex_count; i++)
            root[i] = root[root[i]];
    }
    int lost = 0, many = 0, same = 0;
    for (int i = 0; i < 3 * m->triangle_count; i++)
        welded[i] = root[m->triangles[i]];
    for (int t = 0; t < m->triangle_count; t++) {
        const int *v = welded + 3 * t;
        lost += v[0] == v[1] || v[1] == v[2] || v[2] == v[0];
    }
    toile_half_edge *half = toile_half_edges(&memory, welded, m->triangle_count);
    for (int i = 0, j; i < 3 * m->triangle_count; i = j) {
        j = toile_next_edge(half, 3 * m->triangle_count, i);
        many += j - i > 2;
        same += j - i == 2 && half[i].forward == half[i + 1].forward;
    }
    CHECK(lost == 0 && many == 0 && same == 0, "%s and others: %d triangles lost, %d edges of more than two, %d turned",
          panels[0].name, lost, many, same);
    toile_free(&memory, half);
    free(root);
    free(welded);
}

#define SIDE(panel, edge, reverse) \
    { panel, edge, reverse }
#define SEAM(n, a, m, b) \
    { .count = {n, m}, .sides = {a, b} }

/* Front and back of a tee shirt, back longer at the shoulder, sleeves of one piece around two armholes. */
static void tee_shirt(void) {
    outline front, back, sleeve;
    begin_outline(&front, "front", 0.012);
    add_edge(&front, -0.25, 0);                  /* 0 hem */
    add_edge(&front, 0.25, 0);                   /* 1 right side */
    add_curve(&front, 0.25, 0.4, 0.17, 0.45);    /* 2 right armhole */
    add_edge(&front, 0.2, 0.6);                  /* 3 right shoulder */
    add_curve(&front, 0.08, 0.63, 0, 0.5);       /* 4 neck */
    add_edge(&front, -0.08, 0.63);               /* 5 left shoulder */
    add_curve(&front, -0.2, 0.6, -0.17, 0.45);   /* 6 left armhole */
    add_edge(&front, -0.25, 0.4);                /* 7 left side */
    back = front;
    back.panel.name = "back";
    back.edges[4].curve.control[0][1] = 0.6;
    back.edges[3].curve.from[0] = 0.21;          /* longer shoulder: gathered */
    begin_outline(&sleeve, "sleeve", 0.012);
    add_edge(&sleeve, -0.18, 0);
    add_edge(&sleeve, 0.18, 0);                  /* 1 underarm */
    add_edge(&sleeve, 0.2, 0.15);                /* 2 cap, front and back */
    sleeve.edges[2].curve.control_count = 2;
    memcpy(sleeve.edges[2].curve.control, (double[2][2]){{0.1, 0.35}, {-0.1, 0.35}}, sizeof(double[2][2]));
    add_edge(&sleeve, -0.2, 0.15);               /* 3 underarm */
    toile_pattern_panel panels[4] = {*finish_outline(&front), *finish_outline(&back), *finish_outline(&sleeve),
                                     *finish_outline(&sleeve)};
    static const toile_pattern_side s[][2] = {
        {SIDE(0, 1, false)}, {SIDE(1, 1, false)},                    /* right side: the back lies face down */
        {SIDE(0, 7, false)}, {SIDE(1, 7, false)},
        {SIDE(0, 3, false)}, {SIDE(1, 3, false)},
        {SIDE(0, 5, false)}, {SIDE(1, 5, false)},
        {SIDE(2, 2, false)}, {SIDE(0, 2, true), SIDE(1, 2, false)},  /* one edge to two */
        {SIDE(3, 2, false)}, {SIDE(1, 6, true), SIDE(0, 6, false)},
        {SIDE(2, 1, false)}, {SIDE(2, 3, true)},
        {SIDE(3, 1, false)}, {SIDE(3, 3, true)},
    };
    toile_pattern_seam seams[8] = {SEAM(1, s[0], 1, s[1]),   SEAM(1, s[2], 1, s[3]),   SEAM(1, s[4], 1, s[5]),
                                   SEAM(1, s[6], 1, s[7]),   SEAM(1, s[8], 2, s[9]),   SEAM(1, s[10], 2, s[11]),
                                   SEAM(1, s[12], 1, s[13]), SEAM(1, s[14], 1, s[15])};
    toile_pattern_mesh m;
    toile_error error = {0};
    toile_status status = make(panels, 4, seams, 8, &m, &error);
    CHECK(status == TOILE_OK, "%s", error.message);
    if (status != TOILE_OK)
        return;
    for (int i = 0; i < 4; i++)
        check_panel(panels[i].name, &m, i, 1, 0.012, 20);
    check_seams(&m, panels, seams, 8);
    toile_pattern_mesh_free(&memory, &m);
}

/* A skirt of one piece: a dart, waist gathered to a band of half its length, band of two pieces (many to many). */
static void gathered_skirt(void) {
    outline skirt, band;
    begin_outline(&skirt, "skirt", 0.015);
    add_edge(&skirt, 0, 0);
    add_edge(&skirt, 1.2, 0);
    add_edge(&skirt, 1.2, 0.6);                  /* 2 waist */
    add_edge(&skirt, 0.62, 0.6);                 /* 3 dart */
    add_edge(&skirt, 0.6, 0.48);                 /* 4 dart */
    add_edge(&skirt, 0.58, 0.6);                 /* 5 waist */
    add_edge(&skirt, 0, 0.6);
    begin_outline(&band, "band", 0.015);
    add_edge(&band, 0, 0);
    add_edge(&band, 0.3, 0);
    add_edge(&band, 0.3, 0.04);
    add_edge(&band, 0, 0.04);
    toile_pattern_panel panels[3] = {*finish_outline(&skirt), *finish_outline(&band), *finish_outline(&band)};
    static const toile_pattern_side s[][2] = {
        {SIDE(0, 3, false)}, {SIDE(0, 4, true)},
        {SIDE(0, 2, true), SIDE(0, 5, true)}, {SIDE(1, 0, true), SIDE(2, 0, true)},
        {SIDE(1, 1, false)}, {SIDE(2, 3, true)},
        {SIDE(0, 1, false)}, {SIDE(0, 6, true)},
    };
    /* waist: walked from left to right on both */
    static const toile_pattern_side waist[2] = {SIDE(0, 5, true), SIDE(0, 2, true)}, bands[2] = {SIDE(1, 0, false), SIDE(2, 0, false)};
    toile_pattern_seam seams[4] = {SEAM(1, s[0], 1, s[1]), SEAM(2, waist, 2, bands), SEAM(1, s[4], 1, s[5]), SEAM(1, s[6], 1, s[7])};
    toile_pattern_mesh m;
    toile_error error = {0};
    toile_status status = make(panels, 3, seams, 4, &m, &error);
    CHECK(status == TOILE_OK, "%s", error.message);
    if (status != TOILE_OK)
        return;
    for (int i = 0; i < 3; i++)
        check_panel(panels[i].name, &m, i, 1, 0.015, 20);
    check_seams(&m, panels, seams, 4);
    /* gathered evenly: all segments of the waist are as long as each other, and so are the band's */
    double least = INFINITY, most = 0;
    for (int i = 0; i < m.edge_count[5]; i++) {
        const double *a = m.flat + 2 * toile_pattern_vertex(&m, 5, i), *b = m.flat + 2 * toile_pattern_vertex(&m, 5, i + 1);
        least = fmin(least, hypot(a[0] - b[0], a[1] - b[1]));
        most = fmax(most, hypot(a[0] - b[0], a[1] - b[1]));
    }
    CHECK(most < 1.001 * least, "segments of the waist from %g to %g", least, most);
    toile_pattern_mesh_free(&memory, &m);
}

/* Corners of one side in the middle of the other's edges get partners there. */
static void corners_meet_vertices(void) {
    outline one, three;
    begin_outline(&one, "one", 0.01);
    add_edge(&one, 0, 0);
    add_edge(&one, 0.3, 0);
    add_edge(&one, 0.3, 0.1);
    add_edge(&one, 0, 0.1);
    begin_outline(&three, "three", 0.01);
    add_edge(&three, 0, 0);
    add_edge(&three, 0.05, 0);
    add_edge(&three, 0.173, 0);
    add_edge(&three, 0.33, 0);
    add_edge(&three, 0.33, 0.1);
    add_edge(&three, 0, 0.1);
    toile_pattern_panel panels[2] = {*finish_outline(&one), *finish_outline(&three)};
    static const toile_pattern_side a[1] = {SIDE(0, 2, false)}, b[3] = {SIDE(1, 2, true), SIDE(1, 1, true), SIDE(1, 0, true)};
    toile_pattern_seam seam = SEAM(1, a, 3, b);
    toile_pattern_mesh m;
    toile_error error = {0};
    CHECK(make(panels, 2, &seam, 1, &m, &error) == TOILE_OK, "%s", error.message);
    check_seams(&m, panels, &seam, 1);
    double worst = 0;
    for (int i = 0; i < m.stitch_count; i++) {
        const double *p = m.flat + 2 * m.stitches[i].a, *q = m.flat + 2 * m.stitches[i].b;
        worst = fmax(worst, fabs(p[0] / 0.3 - q[0] / 0.33));
    }
    CHECK(worst < 1e-9, "partners at different parts of the length: %g", worst);
    toile_pattern_mesh_free(&memory, &m);
}

/* ---- placing ---- */

static void bending_keeps_lengths(void) {
    toile_pattern_panel p = {.bend_radius = 0.2, .bend_axis = 1.2, .bend_at = {0.05, 0.02}, .pose = {{1, 2, 3}, {1, 0, 0, 0}}};
    double worst = 0;
    for (int run = 0; run < 100; run++) {
        double a[2] = {random_between(-0.3, 0.3), random_between(-0.3, 0.3)}, d = 1e-5, turn = random_between(0, 6);
        double b[2] = {a[0] + d * cos(turn), a[1] + d * sin(turn)}, x[3], y[3];
        toile_pattern_place(&p, a, x);
        toile_pattern_place(&p, b, y);
        worst = fmax(worst, fabs(hypot(hypot(x[0] - y[0], x[1] - y[1]), x[2] - y[2]) / d - 1));
    }
    CHECK(worst < 1e-4, "stretched by %g", worst);
    double fixed[2] = {0.05, 0.02}, at[3];
    toile_pattern_place(&p, fixed, at);
    CHECK(fabs(at[0] - 1.05) + fabs(at[1] - 2.02) + fabs(at[2] - 3) < 1e-12, "%g %g %g", at[0], at[1], at[2]);
}

/* ---- what is refused ---- */

static void refuse(const char *what, const toile_pattern_panel *panels, int panel_count, const toile_pattern_seam *seams,
                   int seam_count, const char *says) {
    toile_pattern_mesh m;
    toile_error error = {0};
    uint64_t live = memory.live;
    toile_status status = make(panels, panel_count, seams, seam_count, &m, &error);
    CHECK(status == TOILE_INVALID && strstr(error.message, says), "%s: status %d, \"%s\" does not say \"%s\"", what, status,
          error.message, says);
    CHECK(memory.live == live, "%s: memory not given back", what);
}

static void bad_outlines(void) {
    outline o;
    begin_outline(&o, "bow", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.2, 0.23);
    add_edge(&o, 0.2, 0);
    add_edge(&o, 0, 0.2);
    refuse("crossing", finish_outline(&o), 1, NULL, 0, "panel \"bow\", edge 0: crosses edge 2");
    begin_outline(&o, "spike", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.2, 0);
    add_edge(&o, 0.1, 0);
    add_edge(&o, 0.1, 0.2);
    refuse("going back", finish_outline(&o), 1, NULL, 0, "panel \"spike\", edge 1: touches");
    begin_outline(&o, "point", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.2, 0);
    add_edge(&o, 0.2, 0);
    add_edge(&o, 0, 0.2);
    refuse("no length", finish_outline(&o), 1, NULL, 0, "panel \"point\", edge 1: has no length");
    begin_outline(&o, "miles", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 2000, 0);
    add_edge(&o, 0, 2000);
    refuse("units", finish_outline(&o), 1, NULL, 0, "are the units right?");
    begin_outline(&o, "field", 0.0001);
    add_edge(&o, 0, 0);
    add_edge(&o, 900, 0);
    add_edge(&o, 0, 900);
    refuse("too fine", finish_outline(&o), 1, NULL, 0, "make edge_length larger");
    begin_outline(&o, "nan", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, NAN, 0);
    add_edge(&o, 0, 0.2);
    refuse("not a number", finish_outline(&o), 1, NULL, 0, "panel \"nan\"");
    begin_outline(&o, "outside", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.1, 0);
    add_edge(&o, 0, 0.1);
    begin_hole(&o);
    add_edge(&o, 0.2, 0.2);
    add_edge(&o, 0.3, 0.2);
    add_edge(&o, 0.2, 0.3);
    refuse("hole outside", finish_outline(&o), 1, NULL, 0, "no hole inside");
    for (int i = 3; i < 6; i++) {
        o.edges[i].curve.from[0] -= 0.18;
        o.edges[i].curve.from[1] -= 0.18;
    }
    refuse("hole across", finish_outline(&o), 1, NULL, 0, "crosses edge");
    begin_outline(&o, "line", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.1, 0);
    refuse("no area", finish_outline(&o), 1, NULL, 0, "panel \"line\", edge 1: touches");
}

static void bad_seams(void) {
    outline o;
    begin_outline(&o, "square", 0.01);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.1, 0);
    add_edge(&o, 0.1, 0.1);
    add_edge(&o, 0, 0.1);
    toile_pattern_panel panels[2] = {*finish_outline(&o), o.panel};
    toile_pattern_side a[2] = {SIDE(0, 0, false), SIDE(0, 0, false)}, b[1] = {SIDE(1, 4, true)}, c[1] = {SIDE(2, 0, true)},
                       d[1] = {SIDE(1, 0, true)}, e[1] = {SIDE(0, 2, false)};
    toile_pattern_seam missing = SEAM(1, a, 1, b), nowhere = SEAM(1, a, 1, c), twice = SEAM(2, a, 1, d), mobius = SEAM(1, a, 1, e);
    refuse("missing edge", panels, 2, &missing, 1, "edge 4 of panel \"square\", which has edges 0 to 3");
    refuse("missing panel", panels, 2, &nowhere, 1, "panel 2; there are 2");
    refuse("twice", panels, 2, &twice, 1, "already sewn by seam 0");
    refuse("one-sided", panels, 2, &mobius, 1, "half turn");
}

/* Time grows with the number of panels, not with its square. */
static void thousands_of_panels(void) {
    enum { MOST = 4000 };
    outline o;
    begin_outline(&o, "patch", 0.05);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.1, 0);
    add_edge(&o, 0.1, 0.1);
    add_edge(&o, 0, 0.1);
    finish_outline(&o);
    toile_pattern_panel *panels = malloc(MOST * sizeof *panels);
    toile_pattern_seam *seams = calloc(MOST, sizeof *seams);
    toile_pattern_side(*sides)[2] = calloc(MOST, sizeof *sides);
    for (int i = 0; i < MOST; i++) {
        panels[i] = o.panel;
        sides[i][0] = (toile_pattern_side)SIDE(i, 1, false);
        sides[i][1] = (toile_pattern_side)SIDE(i + 1, 3, true);
        seams[i] = (toile_pattern_seam)SEAM(1, &sides[i][0], 1, &sides[i][1]);
    }
    toile_pattern_mesh m;
    toile_error error = {0};
    CHECK(make(panels, MOST, seams, MOST - 1, &m, &error) == TOILE_OK, "%s", error.message);
    CHECK(m.vertex_count == MOST * 9 && m.stitch_count == (MOST - 1) * 3, "%d vertices, %d stitches", m.vertex_count,
          m.stitch_count);
    toile_pattern_mesh_free(&memory, &m);
    free(panels);
    free(seams);
    free(sides);
}

static void *fail_later(void *user, size_t size) {
    int *left = user;
    return (*left)-- > 0 ? malloc(size) : NULL;
}
static void give_back(void *user, void *block) {
    (void)user;
    free(block);
}

/* Every allocation in turn fails: it is said, and nothing is lost. */
static void memory_runs_out(void) {
    outline o;
    begin_outline(&o, "square", 0.03);
    add_edge(&o, 0, 0);
    add_edge(&o, 0.1, 0);
    add_curve(&o, 0.1, 0.1, 0.05, 0.12);
    add_edge(&o, 0, 0.1);
    toile_pattern_side a = SIDE(0, 1, false), b = SIDE(0, 3, true);
    toile_pattern_seam seam = SEAM(1, &a, 1, &b);
    toile_pattern pattern = {"test", 1, 1, finish_outline(&o), &seam};
    for (int n = 0;; n++) {
        int left = n;
        toile_allocator allocator = {fail_later, give_back, &left};
        toile_memory own;
        toile_pattern_mesh m;
        toile_error error = {0};
        toile_memory_init(&own, &allocator);
        toile_status status = toile_pattern_make(&own, &pattern, &m, NULL, &error);
        if (status == TOILE_OK)
            toile_pattern_mesh_free(&own, &m);
        CHECK(status == TOILE_OK || status == TOILE_NO_MEMORY, "allocation %d: status %d, %s", n, status, error.message);
        CHECK(own.live == 0, "allocation %d: %d blocks not given back", n, (int)own.live);
        if (status == TOILE_OK || n > 2000)
            break;
    }
}

int main(int argc, char **argv) {
    toile_memory_init(&memory, NULL);
    RUN(rectangle_is_a_grid);
    RUN(grain_turns_the_grid);
    RUN(holes_and_arcs);
    RUN(finer_where_asked);
    RUN(random_outlines);
    RUN(tee_shirt);
    RUN(gathered_skirt);
    RUN(corners_meet_vertices);
    RUN(bending_keeps_lengths);
    RUN(bad_outlines);
    RUN(bad_seams);
    RUN(thousands_of_panels);
    RUN(memory_runs_out);
    check_name = "memory";
    CHECK(memory.live == 0, "%d blocks are left", (int)memory.live);
    FINISH();
}
