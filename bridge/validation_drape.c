/* Protocol g: Cusick drape (BS 5058, ISO 9073-9). A disc of 30 cm lies on one of 18 cm that clamps it; the
 * share of the ring's shadow that is left when it hangs is the drape coefficient. */
#include "validation.h"

#include <stdlib.h>
#include <string.h>

#define RADIUS 0.15
#define SUPPORT 0.09

/* ---- the disc ---- */

typedef struct disc {
    double spacing;
    int side, count, faces, held_count;
    double *x; /* flat, (count x 3) */
    int *triangles, *held;
    int *at; /* particle at a grid point or -1, (side x side) */
} disc;

static void disc_free(disc *d) {
    free(d->x);
    free(d->triangles);
    free(d->held);
    free(d->at);
}

static void to_circle(double *p, double radius) {
    double r = hypot(p[0], p[1]);
    p[0] *= radius / r, p[1] *= radius / r;
}

/* A square grid cut to the disc, its border moved onto the circle; and what is near the clamp moved onto a
 * circle half a cell outside the support: the hinges there bend the half cell on either side of them, so the
 * bend begins at the support. */
static bool disc_make(disc *d, mesh_kind kind, double spacing, bool *whole) {
    int half = (int)(RADIUS / spacing) + 2, n = 2 * half + 1;
    double clamp = SUPPORT + spacing / 2, (*grid)[2] = malloc((size_t)(n * n) * sizeof *grid);
    bool *border = calloc((size_t)(n * n), sizeof *border);
    uint64_t seed = 11;
    *d = (disc){.spacing = spacing,
                .side = n,
                .x = malloc((size_t)(n * n) * 3 * sizeof(double)),
                .triangles = malloc((size_t)(n * n) * 6 * sizeof(int)),
                .held = malloc((size_t)(n * n) * sizeof(int)),
                .at = malloc((size_t)(n * n) * sizeof(int))};
    *whole = grid && border && d->x && d->triangles && d->held && d->at;
    if (!*whole)
        goto out;
    for (int i = 0; i < n * n; i++) {
        grid[i][0] = (i % n - half) * spacing, grid[i][1] = (i / n - half) * spacing;
        d->at[i] = -1;
    }
#define KEPT(a) (hypot(grid[a][0], grid[a][1]) < RADIUS + 0.3 * spacing)
#define CELL(c) (KEPT(c) && KEPT(c + 1) && KEPT(c + n) && KEPT(c + n + 1))
    for (int i = 1; i < n - 1; i++)
        for (int j = 1; j < n - 1; j++) {
            int c = i + j * n, cells = CELL(c) + CELL(c - 1) + CELL(c - n) + CELL(c - n - 1);
            border[c] = cells > 0 && cells < 4;
            d->at[c] = cells > 0 ? d->count++ : -1;
        }
    for (int c = 0; c < n * (n - 1); c++) {
        if (c % n == n - 1 || !CELL(c))
            continue;
        int q[4] = {c, c + 1, c + n + 1, c + n};
        static const int CUT[2][6] = {{0, 1, 2, 0, 2, 3}, {0, 1, 3, 1, 2, 3}};
        const int *cut = CUT[kind == M1 || ((c % n + c / n) & 1)];
        for (int t = 0; t < 6; t += 3) {
            int p[3] = {q[cut[t]], q[cut[t + 1]], q[cut[t + 2]]};
            if (border[p[0]] && border[p[1]] && border[p[2]])
                continue; /* all but flat once it is on the circle */
            for (int k = 0; k < 3; k++)
                d->triangles[3 * d->faces + k] = d->at[p[k]];
            d->faces++;
        }
    }
    for (int i = 0; i < n * n; i++) {
        if (d->at[i] < 0)
            continue;
        double *p = d->x + 3 * d->at[i], r = hypot(grid[i][0], grid[i][1]);
        p[0] = grid[i][0], p[1] = grid[i][1], p[2] = 0;
        if (border[i]) {
            to_circle(p, RADIUS);
        } else if (fabs(r - clamp) < 0.4 * spacing) {
            to_circle(p, clamp);
        } else if (kind == M3) {
            for (int k = 0; k < 2; k++)
                p[k] += 0.4 * spacing * ((double)(experiment_random(&seed) >> 11) / 9007199254740992.0 - 0.5);
        }
        if (hypot(p[0], p[1]) < clamp + 1e-9)
            d->held[d->held_count++] = d->at[i];
    }
out:
    free(grid);
    free(border);
    return *whole;
}

/* Particles that no triangle has (a corner on the circle whose triangles were left out) are taken away. */
static void disc_compact(disc *d) {
    int *to = malloc((size_t)d->count * sizeof *to), n = 0, held = 0;
    if (!to)
        return;
    memset(to, -1, (size_t)d->count * sizeof *to);
    for (int i = 0; i < 3 * d->faces; i++)
        to[d->triangles[i]] = 0;
    for (int i = 0; i < d->count; i++)
        if (to[i] == 0) {
            memcpy(d->x + 3 * n, d->x + 3 * i, 3 * sizeof *d->x);
            to[i] = n++;
        }
    for (int i = 0; i < 3 * d->faces; i++)
        d->triangles[i] = to[d->triangles[i]];
    for (int i = 0; i < d->held_count; i++)
        d->held[held++] = to[d->held[i]];
    for (int i = 0; i < d->side * d->side; i++)
        d->at[i] = d->at[i] < 0 ? -1 : to[d->at[i]];
    d->count = n;
    free(to);
}

/* ---- the shadow ---- */

typedef struct drape {
    double coefficient; /* % */
    int folds;
} drape;

enum { PIXELS = 680, ANGLES = 360, SMOOTH = 3 /* degrees to either side */ };
#define PIXEL 0.0005
#define RISE 0.002 /* m */

static bool covers(const double *a, const double *b, const double *c, double x, double y) {
    double p = (b[0] - a[0]) * (y - a[1]) - (b[1] - a[1]) * (x - a[0]),
           q = (c[0] - b[0]) * (y - b[1]) - (c[1] - b[1]) * (x - b[0]);
    double r = (a[0] - c[0]) * (y - c[1]) - (a[1] - c[1]) * (x - c[0]);
    return (p >= 0 && q >= 0 && r >= 0) || (p <= 0 && q <= 0 && r <= 0);
}

/* Folds as they are counted on the shadow: maxima of its outline that stand out by RISE from the minima on both sides. (Its
 * strongest harmonic instead tells 2 of a cloth that is stiffer one way, whose shadow is an ellipse with folds on it.) */
static int count_folds(const double rim[ANGLES]) {
    double smooth[ANGLES];
    int first = 0, count = 0;
    for (int a = 0; a < ANGLES; a++) {
        smooth[a] = 0;
        for (int k = -SMOOTH; k <= SMOOTH; k++)
            smooth[a] += rim[(a + k + ANGLES) % ANGLES] / (2 * SMOOTH + 1);
        first = smooth[a] < smooth[first] ? a : first;
    }
    double turn = smooth[first]; /* the least since the last maximum, or the most since the last minimum */
    bool rising = false;
    for (int a = 1; a <= ANGLES; a++) {
        double now = smooth[(first + a) % ANGLES];
        turn = rising ? fmax(turn, now) : fmin(turn, now);
        if (rising ? now < turn - RISE : now > turn + RISE) {
            count += rising;
            rising = !rising;
            turn = now;
        }
    }
    return count;
}

static drape measure(const disc *d, const double *x) {
    drape out = {NAN, 0};
    unsigned char *dark = calloc(PIXELS * PIXELS, 1);
    double rim[ANGLES] = {0}, area = 0;
    if (!dark)
        return out;
    for (int t = 0; t < d->faces; t++) {
        const double *p[3];
        double low[2] = {1, 1}, high[2] = {-1, -1};
        for (int c = 0; c < 3; c++) {
            p[c] = x + 3 * d->triangles[3 * t + c];
            for (int k = 0; k < 2; k++)
                low[k] = fmin(low[k], p[c][k]), high[k] = fmax(high[k], p[c][k]);
        }
        int from[2], to[2];
        for (int k = 0; k < 2; k++) {
            from[k] = (int)fmin(fmax(low[k] / PIXEL + PIXELS / 2, 0), PIXELS - 1);
            to[k] = (int)fmin(fmax(high[k] / PIXEL + PIXELS / 2, 0), PIXELS - 1);
        }
        for (int j = from[1]; j <= to[1]; j++)
            for (int i = from[0]; i <= to[0]; i++)
                dark[i + j * PIXELS] |=
                    covers(p[0], p[1], p[2], (i + 0.5 - PIXELS / 2) * PIXEL, (j + 0.5 - PIXELS / 2) * PIXEL);
    }
    for (int i = 0; i < PIXELS * PIXELS; i++) {
        double px = (i % PIXELS + 0.5 - PIXELS / 2) * PIXEL, py = (i / PIXELS + 0.5 - PIXELS / 2) * PIXEL,
               r = hypot(px, py);
        bool on = dark[i] || r < SUPPORT;
        area += on ? PIXEL * PIXEL : 0;
        int angle = (int)((atan2(py, px) / (2 * PI) + 0.5) * ANGLES) % ANGLES;
        if (on)
            rim[angle] = fmax(rim[angle], r);
    }
    out.folds = count_folds(rim);
    out.coefficient = 100 * (area - PI * SUPPORT * SUPPORT) / (PI * (RADIUS * RADIUS - SUPPORT * SUPPORT));
    free(dark);
    return out;
}

/* ---- hanging ---- */

typedef struct cloth {
    const char *name; /* a named fabric, or null: isotropic with the bend below */
    double bend;
} cloth;

/* The start: a few millimetres of waves around the rim, or it could rest on the saddle of a shape without
 * folds. */
static void ripple(disc *d, int start) {
    double phase[13];
    uint64_t seed = 77 + (uint64_t)start;
    for (int k = 2; k <= 12; k++)
        phase[k] = 2 * PI * (double)(experiment_random(&seed) >> 11) / 9007199254740992.0;
    for (int i = 0; i < d->count; i++) {
        double *p = d->x + 3 * i, out = (hypot(p[0], p[1]) - SUPPORT - d->spacing / 2) / (RADIUS - SUPPORT),
               angle = atan2(p[1], p[0]);
        for (int k = 2; k <= 12 && out > 0; k++)
            p[2] += 1.5e-3 * out * out * cos(k * angle + phase[k]);
    }
}

static drape hang_disc(validation *v, int model, cloth of, mesh_kind kind, double spacing, int start,
                       plot *picture) {
    drape out = {NAN, 0};
    disc d;
    bool whole;
    double *x = NULL;
    trial s = trial_open(v, model, 1.0 / 60);
    if (!disc_make(&d, kind, spacing, &whole))
        goto out;
    disc_compact(&d);
    trial_set(&s, "solver_tolerance", "1e-3");
    trial_set(&s, "time_step_min", "1e-4");
    trial_set(&s, "stretch_change_max", "0.1");
    trial_fabric(&s, 0.2, 4000, 40, of.bend);
    if (of.name && !s.bad && toile_add_fabric(s.world, of.name, &s.fabric) < 0)
        s.bad = true;
    trial_damping(&s, 0.01, 0.02); /* to come to rest soon: the shape at rest does not depend on it */
    ripple(&d, start);
    trial_triangles(&s, d.count, d.x, NULL, d.faces, d.triangles); /* cut flat: (u, v) is (x, y) */
    trial_hold(&s, d.held_count, d.held);
    trial_build(&s);
    trial_advance(&s, 45);
    trial_settle(&s, v->e->quick ? 3 : 5, 1e-3);
    x = malloc((size_t)d.count * 3 * sizeof *x);
    if (!s.bad && x && toile_get_positions(s.world, s.garment, x) >= 0) {
        out = measure(&d, x);
        for (int i = 0; picture && i < d.side * d.side;
             i++) /* every other thread, seen from the front and above */
            for (int way = 0; way < 2; way++) {
                int j = way ? i + d.side : i + 1, a = d.at[i], b = j < d.side * d.side ? d.at[j] : -1;
                if (a < 0 || b < 0 || ((way ? i % d.side : i / d.side) & 1))
                    continue;
                double y = 0.5 * (x[3 * a + 1] + x[3 * b + 1]);
                int grey = (int)fmin(fmax(190 * (y + RADIUS) / (2 * RADIUS), 0), 190);
                plot_segment(picture, x[3 * a], x[3 * a + 2] + 0.45 * x[3 * a + 1], x[3 * b],
                             x[3 * b + 2] + 0.45 * x[3 * b + 1], (unsigned)(grey << 16 | grey << 8 | grey),
                             0.7);
            }
    }
out:
    free(x);
    disc_free(&d);
    trial_close(&s);
    return out;
}

static double mean_of_starts(validation *v, int model, cloth of, mesh_kind kind, double spacing, int starts) {
    double sum = 0;
    for (int i = 0; i < starts && !experiment_stopping(v->e); i++)
        sum += hang_disc(v, model, of, kind, spacing, i, NULL).coefficient / starts;
    return sum;
}

/* Bands of measured coefficients, %. */
static const struct {
    const char *name, *source;
    double low, high;
} BANDS[] = {
    {"cotton", "Gan, Ly, Steven 1991: 68.4", 60, 76}, {"cotton_light", "Gan, Ly, Steven 1991: 68.4", 60, 76},
    {"silk", "Matsudaira, Yang 2003", 20, 40},        {"wool", "worsted suiting", 40, 70},
    {"leather", "Memon et al. 2021", 47, 70},         {"denim", "heavy twill", 70, 90}};
enum { BAND_COUNT = sizeof BANDS / sizeof *BANDS };

static void drape_fabrics(validation *v) {
    int count, columns = 6;
    const toile_named_fabric *named = toile_named_fabrics(&count);
    plot *panels[64];
    int panel = 0;
    for (int f = 0; f < count && panel < 64 && !experiment_stopping(v->e); f++) {
        int band = 0;
        while (band < BAND_COUNT && strcmp(BANDS[band].name, named[f].name) != 0)
            band++;
        if (v->e->quick && strcmp(named[f].name, "cotton") != 0)
            continue;
        plot *picture = panels[panel++] = plot_create(named[f].name, NULL, NULL);
        plot_equal(picture);
        drape found = hang_disc(v, CONTINUUM, (cloth){named[f].name, 1e-5}, M2, 0.0075, 0, picture);
        bool measured = band < BAND_COUNT;
        validation_band(v, "g", CONTINUUM,
                        experiment_text("drape of %s, %%%s%s", named[f].name,
                                        measured ? "; measured: " : "; no measurement",
                                        measured ? BANDS[band].source : ""),
                        found.coefficient, measured ? BANDS[band].low : 0, measured ? BANDS[band].high : 100);
        if (found.coefficient < 90)
            validation_band(v, "g", CONTINUUM, experiment_text("folds of %s", named[f].name), found.folds, 4,
                            14);
    }
    if (panel)
        experiment_plot(v->e, "_g_drape", panels, panel, panel < columns ? panel : columns);
}

/* Of the continuum: springs have shown in `a` that their bend depends on the mesh. */
static void drape_lengths(validation *v) {
    static const double LENGTHS[] = {0.012, 0.018, 0.024, 0.03, 0.04};
    plot *p = plot_create("g: drape over bending length", "(B / rho g)^(1/3), cm", "drape coefficient, %");
    int at = plot_series(p, "continuum", PLOT_LINE_POINTS);
    double last = 0, least_growth = INFINITY;
    for (int i = 0; i < 5 && !experiment_stopping(v->e); i++) {
        double found =
            hang_disc(v, CONTINUUM, (cloth){NULL, 0.2 * G * pow(LENGTHS[i], 3)}, M2, 0.0075, 0, NULL)
                .coefficient;
        plot_add(p, at, 100 * LENGTHS[i], found);
        least_growth = fmin(least_growth, found - last);
        last = found;
    }
    validation_band(v, "g", CONTINUUM, "least growth of the coefficient with bending length, points",
                    least_growth, 0, INFINITY);
    experiment_plot(v->e, "_g_length", &p, 1, 1);
}

static void drape_meshes(validation *v) {
    cloth cotton = {"cotton", 1e-5};
    double base = mean_of_starts(v, CONTINUUM, cotton, M2, 0.0075, 3);
    for (mesh_kind kind = M1; kind <= M3; kind++)
        for (int fine = 0; fine < 2 && !experiment_stopping(v->e); fine++)
            if (kind != M2 || fine)
                validation_band(v, "g", CONTINUUM,
                                experiment_text("cotton, %s, %s mm against m2, 7.5 mm, points",
                                                VALIDATION_MESHES[kind], fine ? "5" : "7.5"),
                                mean_of_starts(v, CONTINUUM, cotton, kind, fine ? 0.005 : 0.0075, 3) - base,
                                -4, 4);
    double coarse = mean_of_starts(v, CONTINUUM, cotton, M2, 0.012, 3);
    for (int times = 2; times <= 4; times *= 2)
        validation_band(
            v, "g", CONTINUUM, experiment_text("cotton, mesh %dx finer than 12 mm, points", times),
            mean_of_starts(v, CONTINUUM, cotton, M2, 0.012 / times, times == 4 ? 1 : 3) - coarse, -3, 3);
}

void validation_drape(validation *v) {
    drape_fabrics(v);
    v->nature = NULL;
    if (!v->e->quick && !experiment_stopping(v->e)) {
        drape_lengths(v);
        drape_meshes(v);
        v->nature = "bending of connections depends on the mesh (see a)";
        validation_band(v, "g", SPRINGS, "drape of cotton, %",
                        hang_disc(v, SPRINGS, (cloth){"cotton", 1e-5}, M2, 0.0075, 0, NULL).coefficient,
                        BANDS[0].low, BANDS[0].high);
    }
}
