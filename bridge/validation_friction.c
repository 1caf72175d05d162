/* Protocol f: friction on an incline and around a cylinder. */
#include "validation.h"

#include <string.h>

typedef struct slide {
    double drift, acceleration; /* m after 2 s; m/s^2 between 0.25 and 0.75 s */
} slide;

typedef enum surface { PLANE_SURFACE, MESH_SURFACE, CLOTH_SURFACE, SURFACES } surface;

static slide incline(validation *v, int model, surface on, double mu, double angle) {
    enum { CELLS = 8, PLANE = 12, LONG = 81, WIDE = 16 }; /* cloth below: cells of 4 cm */
    double h = 1.0 / 120, down[3] = {cos(angle), 0, -sin(angle)}, normal[3] = {sin(angle), 0, cos(angle)},
           side = 0.3, origin[3], u[3];
    double across[3] = {0, side, 0}, x[(PLANE + 1) * (PLANE + 1)][3], speed[2] = {0, 0}, start = 0, end = 0;
    int triangles[2 * PLANE * PLANE][3], t = 0;
    trial s = trial_open(v, model, h);
    trial_set(&s, "solver_tolerance",
              "0.01"); /* as it comes: what it leaves must not shake the cloth loose */
    trial_fabric(&s, 0.2, 4000, 50, 1e-5);
    for (int k = 0; k < 3; k++) {
        u[k] = side * down[k];
        origin[k] = -0.5 * u[k] - 0.5 * across[k] + 0.002 * normal[k];
    }
    trial_mesh(&s, M2, CELLS + 1, CELLS + 1, origin, u, across, 0);
    for (int i = 0; i <= PLANE; i++)
        for (int j = 0; j <= PLANE; j++)
            for (int k = 0; k < 3; k++)
                x[i + j * (PLANE + 1)][k] =
                    (-1.07 + 7.0 * i / PLANE) * down[k] + (k == 1) * (-1.03 + 2.0 * j / PLANE);
    for (int i = 0; i < PLANE; i++)
        for (int j = 0; j < PLANE; j++) {
            int a = i + j * (PLANE + 1), b = a + 1, c = b + PLANE + 1, d = c - 1;
            memcpy(triangles[t++], (int[]){a, b, c}, sizeof *triangles);
            memcpy(triangles[t++], (int[]){a, c, d}, sizeof *triangles);
        }
    if (on == CLOTH_SURFACE) {
        int below, held[LONG * WIDE];
        toile_grid grid = {.name = "below", .nu = LONG, .nv = WIDE, .fabric = s.fabric,
                           .diagonals = TOILE_DIAGONALS_ALTERNATE, .v_axis = {0, 0.6, 0}};
        for (int k = 0; k < 3; k++) {
            grid.origin[k] = -0.487 * down[k] - 0.283 * (k == 1);
            grid.u_axis[k] = 3.2 * down[k];
        }
        for (int i = 0; i < LONG * WIDE; i++)
            held[i] = i;
        trial_set(&s, "self_collision", "on");
        trial_set(&s, "self_thickness", "0.002");
        trial_set(&s, "self_friction", experiment_text("%g", mu));
        s.bad = s.bad || toile_add_grid(s.world, &grid, &below) < 0 ||
                toile_add_pin(s.world, &(toile_pin){below, LONG * WIDE, held, {true, true, true}}, NULL) < 0;
    }
    bool mesh = on == MESH_SURFACE;
    toile_collider plane = {.name = "plane",
                            .shape = mesh ? TOILE_MESH : TOILE_PLANE,
                            .friction_static = mu,
                            .friction_kinetic = mu,
                            .rotation = {cos(angle / 2), 0, sin(angle / 2), 0}};
    if (mesh) {
        plane.vertex_count = (PLANE + 1) * (PLANE + 1), plane.positions = x[0];
        plane.triangle_count = t, plane.triangles = triangles[0];
    }
    if (!s.bad && on != CLOTH_SURFACE && toile_add_collider(s.world, &plane, NULL) < 0)
        s.bad = true;
    trial_build(&s);
    for (int f = 0; f <= 240 && !s.bad; f++) {
        double w = 0, at = 0;
        for (int i = 0; i < s.count; i++)
            for (int k = 0; k < 3; k++) {
                w += trial_v(&s, i)[k] * down[k] / s.count;
                at += trial_x(&s, i)[k] * down[k] / s.count;
            }
        if (f == 0)
            start = at;
        if (f == 30 || f == 90)
            speed[f == 90] = w;
        end = at;
        if (f < 240)
            trial_advance(&s, 1);
    }
    bool bad = s.bad;
    trial_close(&s);
    return bad ? (slide){NAN, NAN} : (slide){end - start, (speed[1] - speed[0]) / 0.5};
}

/* How far the end of the long side of a strip over a cylinder of 96 sides moves in 1.5 s at most, in radii. It starts in place,
 * wrapped by pi. `long_side` in radii of the wrapped strip. */
static double capstan(validation *v, int model, double mu, double long_side) {
    enum { SIDES = 96, N = 6 };
    double radius = 0.05, spacing = radius / N, gap = 0.002, outer = radius + gap, most = 0;
    double short_side = 5 * outer, length = short_side + PI * outer + long_side * outer;
    int n = (int)(length / spacing + 0.5), t = 0;
    static double x[2 * SIDES][3];
    static int triangles[2 * SIDES][3];
    trial s = trial_open(v, model, 1.0 / 240);
    trial_set(&s, "solver_tolerance", "0.01");
    trial_fabric(&s, 0.2, 4000, 50, 0.005 * 0.2 * G * pow(radius, 3));
    trial_damping(&s, 0.005, 0.005);
    trial_mesh(&s, M2, n + 1, 5, (double[]){0, 0, 0}, (double[]){length, 0, 0}, (double[]){0, 4 * spacing, 0},
               0);
    for (int i = 0; i < SIDES; i++) /* along y, wider than the strip */
        for (int e = 0; e < 2; e++) {
            double a = 2 * PI * i / SIDES;
            memcpy(x[2 * i + e], (double[]){radius * cos(a), e ? 0.5 : -0.5, radius * sin(a)}, sizeof *x);
        }
    for (int i = 0; i < SIDES; i++) {
        int a = 2 * i, b = a + 1, c = 2 * ((i + 1) % SIDES), d = c + 1;
        memcpy(triangles[t++], (int[]){a, b, d}, sizeof *triangles); /* outwards */
        memcpy(triangles[t++], (int[]){a, d, c}, sizeof *triangles);
    }
    toile_collider roll = {.name = "roll",
                           .shape = TOILE_MESH,
                           .friction_static = mu,
                           .friction_kinetic = mu,
                           .vertex_count = 2 * SIDES,
                           .positions = x[0],
                           .triangle_count = t,
                           .triangles = triangles[0]};
    if (!s.bad && toile_add_collider(s.world, &roll, NULL) < 0)
        s.bad = true;
    trial_build(&s);
    for (int i = 0; i <= n && !s.bad; i++)
        for (int j = 0; j < 5; j++) {
            double at = length * i / n - short_side, *p = trial_x(&s, i + j * (n + 1)),
                   angle = PI - at / outer;
            p[0] = at < 0 ? -outer : at > PI * outer ? outer : outer * cos(angle);
            p[2] = at < 0 ? at : at > PI * outer ? -(at - PI * outer) : outer * sin(angle);
        }
    trial_advance(&s, 24); /* it takes up its weight */
    double before = trial_column(&s, n, 2);
    for (int i = 0; i < 36 && !s.bad; i++) {
        trial_advance(&s, 10);
        most = fmax(most, fabs(before - trial_column(&s, n, 2)) / radius);
    }
    bool bad = s.bad;
    trial_close(&s);
    return bad ? NAN : most;
}

void validation_friction(validation *v) {
    static const double MU[] = {0.1, 0.3, 0.5, 0.8};
    plot *p = plot_create("f: incline", "angle, degrees", "acceleration, m/s^2");
    double degree = PI / 180;
    for (int c = v->e->quick ? 2 : 0; c < (v->e->quick ? 3 : 4); c++) {
        int line = plot_series(p, c ? NULL : "g (sin a - mu cos a)", PLOT_LINE);
        for (double a = atan(MU[c]); a < 1; a += 0.02)
            plot_add(p, line, a / degree, G * (sin(a) - MU[c] * cos(a)));
    }
    for (int m = 0; m < MODEL_COUNT; m++) {
        int points = plot_series(p, VALIDATION_MODELS[m], PLOT_POINTS);
        for (int c = v->e->quick ? 2 : 0; c < (v->e->quick ? 3 : 4) && !experiment_stopping(v->e); c++)
            for (surface on = PLANE_SURFACE; on < (v->e->quick ? MESH_SURFACE : SURFACES); on++) {
                double mu = MU[c], critical = atan(mu), above = critical + 0.5 * degree,
                       steep = critical + 10 * degree;
                double creep = 2 * G * (sin(above) - mu * cos(above)),
                       fast = G * (sin(steep) - mu * cos(steep));
                static const char *const SHAPES[] = {"plane", "mesh", "cloth"};
                const char *shape = SHAPES[on];
                validation_band(
                    v, "f", m, experiment_text("%s, mu %g, 0.5 deg below: drift in 2 s, mm", shape, mu),
                    1000 * fabs(incline(v, m, on, mu, critical - 0.5 * degree).drift), -INFINITY, 1);
                validation_band(
                    v, "f", m,
                    experiment_text("%s, mu %g, 0.5 deg above: distance in 2 s / expected", shape, mu),
                    incline(v, m, on, mu, above).drift / creep, 0.5, 1.5);
                double found = incline(v, m, on, mu, steep).acceleration;
                validation_within(v, "f", m,
                                  experiment_text("%s, mu %g, 10 deg above: acceleration", shape, mu), found,
                                  fast, 0.03);
                plot_add(p, points, steep / degree, found);
            }
    }
    experiment_plot(v->e, "_f_incline", &p, 1, 1);
    for (int m = 0; m < MODEL_COUNT && !v->e->quick; m++)
        for (int c = 2; c <= 4 && !experiment_stopping(v->e); c++) {
            double mu = 0.1 * c, lift = 2 * mu / (1 + mu * mu),
                   critical = (5 + lift) * exp(mu * PI) + lift;
            validation_band(v, "f", m, experiment_text("capstan, mu %g, 0.93 of L_crit: slip, radii", mu),
                            capstan(v, m, mu, 0.93 * critical), -INFINITY, 0.1);
            validation_band(v, "f", m, experiment_text("capstan, mu %g, 1.07 of L_crit: slip, radii", mu),
                            capstan(v, m, mu, 1.07 * critical), 0.3, INFINITY);
        }
}
