/* Protocols c, h, j: motion. */
#include "integrate.h"
#include "validation.h"

#include <string.h>

/* ---- c: free fall ---- */

/* The integrators, their order, and how far a fall is late: z = -g t^2 / 2 - late g h t / 2. */
static const struct {
    const char *name;
    int order;
    double late, stretch;
} INTEGRATORS[] = {
    {"backward_euler", 1, 1, 5}, {"newton", 1, 1, 5},         {"imex", 1, 1, 5}, {"aimex", 1, 1, 5},
    {"fb_euler", 1, 1, 5},       {"forward_euler", 1, -1, 5}, {"rk4", 4, 0, 5},  {"bdf2", 2, NAN, 5},
    {"sbdf2", 2, NAN, 5}};
enum { INTEGRATOR_COUNT = sizeof INTEGRATORS / sizeof *INTEGRATORS };

static void fall(validation *v, int model, int integrator) {
    enum { STEPS = 60 };
    double h = 1.0 / 1000, t = STEPS * h, worst = 0, lowest = INFINITY, highest = -INFINITY;
    double expected = -0.5 * G * t * t - INTEGRATORS[integrator].late * 0.5 * G * h * t;
    bool first = integrator == 0; /* the rest with soft cloth: the explicit ones need it */
    trial s = trial_open(v, model, h);
    trial_set(&s, "integrator", INTEGRATORS[integrator].name);
    trial_set(&s, "solver_tolerance", "1e-12");
    trial_fabric(&s, 0.2, first ? 4000 : 50, first ? 50 : 5, first ? 1e-5 : 1e-7);
    trial_mesh(&s, M2, 13, 9, (double[]){0, 0, 0}, (double[]){1.2, 0, 0}, (double[]){0, 0.8, 0}, 0);
    trial_build(&s);
    trial_advance(&s, STEPS);
    for (int i = 0; i < s.count && !s.bad; i++) {
        double z = trial_x(&s, i)[2];
        lowest = fmin(lowest, z), highest = fmax(highest, z);
        worst = fmax(worst, fabs(z / expected - 1));
    }
    bool bad = s.bad;
    trial_close(&s);
    validation_band(
        v, "c", model,
        experiment_text("free fall, %s: off its closed form, relative", INTEGRATORS[integrator].name),
        bad ? NAN : worst, -INFINITY, 1e-9);
    validation_band(v, "c", model, experiment_text("free fall, %s: spread, m", INTEGRATORS[integrator].name),
                    bad ? NAN : highest - lowest, -INFINITY, 1e-10);
}

/* ---- c: order of convergence ---- */

/* Positions after 0.24 s of a soft sheet that hangs in a frame, stretched by 10 %: everything stays taut and
 * smooth. */
static void swing(validation *v, int model, const char *integrator, int steps, double *x) {
    enum { NU = 5, NV = 6 };
    double start[NU * NV][3], uv[NU * NV][2];
    int triangles[2 * (NU - 1) * (NV - 1)][3], edge[NU * NV], held = 0, faces = 0;
    for (int i = 0; i < NU * NV; i++) {
        int a = i % NU, b = i / NU;
        uv[i][0] = 0.1 * a, uv[i][1] = 0.1 * b;
        start[i][0] = 1.1 * uv[i][0], start[i][1] = 1.1 * uv[i][1], start[i][2] = 0;
        if (a == 0 || b == 0 || a == NU - 1 || b == NV - 1)
            edge[held++] = i;
        if (a == NU - 1 || b == NV - 1)
            continue;
        memcpy(triangles[faces++], (int[]){i, i + 1, i + 1 + NU}, sizeof *triangles);
        memcpy(triangles[faces++], (int[]){i, i + 1 + NU, i + NU}, sizeof *triangles);
    }
    trial s = trial_open(v, model, 0.24 / steps);
    trial_set(&s, "integrator", integrator);
    trial_set(&s, "solver_tolerance", "1e-12");
    trial_set(&s, "newton_tolerance", "1e-8");
    trial_set(&s, "aimex_threshold", "0.008");
    trial_set(&s, "gravity", "0.3,0.2,-1");
    trial_fabric(&s, 0.5, 5, 0.1, 1e-8);
    trial_damping(&s, 0.01, 0.01);
    trial_triangles(&s, NU * NV, start[0], uv[0], faces, triangles[0]);
    trial_hold(&s, held, edge);
    trial_build(&s);
    trial_advance(&s, steps);
    for (int i = 0; i < 90; i++)
        x[i] = s.bad ? NAN : trial_x(&s, i / 3)[i % 3];
    trial_close(&s);
}

static double apart(const double *a, const double *b) {
    double worst = 0;
    for (int i = 0; i < 90; i++)
        worst = isfinite(a[i]) && isfinite(b[i]) ? fmax(worst, fabs(a[i] - b[i])) : NAN;
    return worst;
}

static void convergence(validation *v) {
    plot *p = plot_create("c: order of convergence", "step, s", "error, m");
    plot_log(p, true, true);
    for (int m = 0; m < MODEL_COUNT; m++) {
        double exact[90], x[90];
        swing(v, m, "rk4", 1536, exact);
        for (int i = 0; i < INTEGRATOR_COUNT && !experiment_stopping(v->e); i++) {
            double error[2];
            int at = plot_series(p, m ? NULL : INTEGRATORS[i].name, PLOT_LINE_POINTS);
            for (int k = 0; k < 2; k++) {
                int steps = (INTEGRATORS[i].order == 4 ? 48 : 96) << k;
                swing(v, m, INTEGRATORS[i].name, steps, x);
                error[k] = apart(x, exact);
                plot_add(p, at, 0.24 / steps, error[k]);
            }
            validation_band(v, "c", m, experiment_text("order of %s", INTEGRATORS[i].name),
                            log2(error[0] / error[1]), INTEGRATORS[i].order - 0.25,
                            INTEGRATORS[i].order + 0.25);
        }
    }
    experiment_plot(v->e, "_c_order", &p, 1, 1);
}

/* ---- c: pendulum and energy ---- */

static void pendulum(validation *v, int model) {
    double length = 0.5, amplitude = 10 * PI / 180,
           expected = reference_pendulum(amplitude) * sqrt(length / G), h = expected / 500;
    double c = cos(amplitude), d = sin(amplitude), crossing[3] = {0}, left = NAN, gain = 0;
    trial s = trial_open(v, model, h);
    trial_fabric(&s, 0.2, 4000, 1000, 0);
    trial_damping(&s, 0, 0);
    trial_mesh(&s, M1, 2, 2, (double[]){0, 0, 0}, (double[]){length * d, 0, -length * c},
               (double[]){0, 0.5, 0}, 0);
    trial_hold_columns(&s, 0, 1);
    trial_build(&s);
    double start = trial_energy(&s),
           lowest = s.bad ? 0 : -length * (trial_mass(&s, 1) + trial_mass(&s, 3)) * G;
    double before = trial_column(&s, 1, 0), peak = start;
    for (int f = 1, seen = 0; f <= 10000 && !s.bad; f++) {
        trial_advance(&s, 1);
        double x = trial_column(&s, 1, 0), now = trial_energy(&s);
        if (seen < 3 && (x < 0) != (before < 0))
            crossing[seen++] = (f - 1 + before / (before - x)) * h;
        if (f == 500)
            left = (now - lowest) / (start - lowest);
        gain = fmax(gain, (now - peak) / (start - lowest));
        peak = fmin(peak, now);
        before = x;
    }
    bool bad = s.bad;
    trial_close(&s);
    double wh = 2 * PI / 500, euler = pow(1 + wh * wh, -500);
    validation_within(v, "c", model, "period of a pendulum at 10 degrees, s",
                      bad ? NAN : crossing[2] - crossing[0], expected, 0.01);
    validation_band(v, "c", model, "energy lost in a period / backward Euler's own", (1 - left) / (1 - euler),
                    -INFINITY, 1.15);
    validation_band(v, "c", model, "largest gain of energy in 20 periods, relative", bad ? NAN : gain,
                    -INFINITY, 1e-6);
}

/* ---- c: modes of a hanging strip ---- */

static double hanging_mode(validation *v, int model, int mode, double *expected) {
    enum { N = 40, M = 2 };
    double length = 1, shape[N + 1], most = 0, du = length / N;
    *expected = reference_chain_mode(N, mode, shape) * sqrt(G / length);
    double first = reference_chain_mode(N, 1, (double[N + 1]){0}) * sqrt(G / length),
           h = 2 * PI / first / 400;
    if (mode > 1)
        h = 2 * PI / *expected / 400;
    for (int i = 0; i <= N; i++)
        most = fmax(most, fabs(shape[i]));
    trial s = trial_open(v, model, h);
    trial_fabric(&s, 0.2, 2e4, 100, 0.2 * G * pow(length, 3) / 1e6);
    trial_damping(&s, 0, 0);
    trial_mesh(&s, M2, N + 1, M + 1, (double[]){0, 0, 0}, (double[]){0, 0, -length}, (double[]){0, M * du, 0},
               0);
    trial_hold_columns(&s, 0, 1);
    trial_build(&s);
    double z = 0, amount = 0.02 * length / most, before = 0;
    for (int i = 1; i <= N && !s.bad;
         i++) { /* links keep their length; the stretch by the weight below is there from the start */
        double y0 = amount * shape[i - 1], y1 = amount * shape[i],
               link = du * (1 + 0.2 * G * du * (N - i + 0.5) / 2e4);
        z -= sqrt(link * link - (y1 - y0) * (y1 - y0));
        for (int j = 0; j <= M; j++)
            trial_x(&s, i + j * (N + 1))[0] = y1, trial_x(&s, i + j * (N + 1))[2] = z;
    }
    double crossing[3] = {0};
    for (int f = 0, seen = 0; f < 1400 && seen < 3 && !s.bad; f++) { /* projected on the mode */
        double now = 0;
        for (int i = 1; i <= N; i++)
            now += (i == N ? 0.5 : 1) * shape[i] * trial_column(&s, i, 0);
        if (f > 0 && (now < 0) != (before < 0))
            crossing[seen++] = (f - 1 + before / (before - now)) * h;
        before = now;
        trial_advance(&s, 1);
    }
    double found = s.bad ? NAN : 2 * PI / (crossing[2] - crossing[0]);
    trial_close(&s);
    return found;
}

void validation_motion(validation *v) {
    for (int m = 0; m < MODEL_COUNT && !experiment_stopping(v->e); m++) {
        for (int i = 0; i < INTEGRATOR_COUNT; i++)
            if (isfinite(INTEGRATORS[i].late)) /* those of two steps begin with one of another kind */
                fall(v, m, i);
        pendulum(v, m);
        for (int mode = 1; mode <= 2; mode++) {
            double expected, found = hanging_mode(v, m, mode, &expected);
            validation_within(v, "c", m, experiment_text("hanging strip, mode %d, rad/s", mode), found,
                              expected, mode == 1 ? 0.015 : 0.04);
        }
    }
    convergence(v);
}

/* ---- h: waves ---- */

static trial stretched_strip(validation *v, int model, int n, double h, double k, double strain, int *left,
                             int *right) {
    trial s = trial_open(v, model, h);
    trial_fabric(&s, 0.2, k, 0.0125 * k, 1e-8);
    trial_damping(&s, 0, 0);
    trial_mesh(&s, M2, n + 1, 3, (double[]){0, 0, 0}, (double[]){1 / (1 + strain), 0, 0},
               (double[]){0, 2.0 / n, 0}, 0);
    *left = trial_hold_columns(&s, 0, 1);
    *right = trial_hold_columns(&s, n, n + 1);
    trial_set(&s, "gravity", "0,0,0");
    trial_build(&s);
    for (int i = 0; i < s.count && !s.bad; i++) /* evenly stretched to 1 m */
        trial_x(&s, i)[0] *= 1 + strain;
    if (!s.bad) {
        double target[9];
        for (int j = 0; j < 3; j++)
            target[3 * j] = 1, target[3 * j + 1] = j * 1.0 / n, target[3 * j + 2] = 0;
        toile_move_pin(s.world, *right, target);
        toile_place_inputs(s.world);
    }
    return s;
}

/* rad/s of the first transverse mode. */
static double transverse(validation *v, int model, double *expected) {
    enum { N = 40 };
    double k = 2000, strain = 0.01, tension = k * strain,
           mass = 0.2 / (1 + strain); /* per width; per area as it is */
    *expected = 2 * N * sqrt(tension / mass) * sin(PI / (2 * N));
    double h = 2 * PI / *expected / 400, crossing[3] = {0}, before = 0;
    int left, right;
    trial s = stretched_strip(v, model, N, h, k, strain, &left, &right);
    for (int i = 1; i < N && !s.bad; i++)
        for (int j = 0; j < 3; j++)
            trial_x(&s, i + j * (N + 1))[2] = 1e-3 * sin(PI * i / N);
    for (int f = 0, seen = 0; f < 1000 && seen < 3 && !s.bad; f++) {
        double now = 0;
        for (int i = 1; i < N; i++)
            now += sin(PI * i / N) * trial_column(&s, i, 2);
        if (f > 0 && (now < 0) != (before < 0))
            crossing[seen++] = (f - 1 + before / (before - now)) * h;
        before = now;
        trial_advance(&s, 1);
    }
    double found = s.bad ? NAN : 2 * PI / (crossing[2] - crossing[0]);
    trial_close(&s);
    return found;
}

/* One end moves a little: how fast the push travels from a quarter to three quarters of the way, at half of
 * its height. */
static double pulse(validation *v, int model, plot *p) {
    enum { N = 160 };
    double k = 200, strain = 0.05, speed = sqrt(k / 0.2) * (1 + strain), h = 1 / speed / 2000,
           time[2] = {NAN, NAN}, rest[2], last[2];
    int left, right, station[2] = {N / 4, 3 * N / 4};
    trial s = stretched_strip(v, model, N, h, k, strain, &left, &right);
    for (int e = 0; e < 2; e++)
        last[e] = rest[e] = trial_column(&s, station[e], 0);
    int series[2] = {plot_series(p, experiment_text("%s, 1/4", VALIDATION_MODELS[model]), PLOT_LINE),
                     plot_series(p, experiment_text("%s, 3/4", VALIDATION_MODELS[model]), PLOT_LINE)};
    double move = -2e-3;
    for (int f = 1; f < 2000 && !s.bad && isnan(time[1]); f++) {
        double target[9], ramp = fmin(f / 100.0, 1);
        for (int j = 0; j < 3; j++)
            target[3 * j] = move * ramp, target[3 * j + 1] = j * 1.0 / N, target[3 * j + 2] = 0;
        toile_move_pin(s.world, left, target);
        trial_advance(&s, 1);
        for (int e = 0; e < 2; e++) {
            double now = trial_column(&s, station[e], 0), half = rest[e] + 0.5 * move;
            if (isnan(time[e]) && now < half)
                time[e] = (f - 1 + (last[e] - half) / (last[e] - now)) * h;
            last[e] = now;
            if (f % 10 == 0)
                plot_add(p, series[e], 1000 * f * h, 1000 * (rest[e] - now));
        }
    }
    double found = s.bad ? NAN : 0.5 / (time[1] - time[0]);
    trial_close(&s);
    return found / (1 + strain); /* on the cloth itself */
}

void validation_waves(validation *v) {
    plot *p = plot_create("h: a push along the strip", "time, ms", "displacement, mm");
    for (int m = 0; m < MODEL_COUNT && !experiment_stopping(v->e); m++) {
        double expected, found = transverse(v, m, &expected);
        validation_within(v, "h", m, "first transverse mode of a stretched strip, rad/s", found, expected,
                          0.01);
        validation_within(v, "h", m, "speed of a push along the strip, m/s", pulse(v, m, p), sqrt(200 / 0.2),
                          0.03);
    }
    experiment_plot(v->e, "_h_waves", &p, 1, 1);
}

/* ---- j: rigid motion ---- */

/* Largest force that damping adds to a deformed sheet in rigid motion, over the largest it adds in any
 * motion. */
static double rigid_force(validation *v, int model) {
    double largest[3] = {0, 0, 0}, *still = NULL;
    toile_sim *sim = NULL;
    trial s = trial_open(v, model, 1.0 / 120);
    trial_fabric(&s, 0.2, 4000, 50, 1e-4);
    trial_property(&s, "stiffening_warp", 3);
    trial_damping(&s, 0.01, 0.01);
    trial_mesh(&s, M2, 9, 9, (double[]){0, 0, 0}, (double[]){0.4, 0, 0}, (double[]){0, 0.4, 0}, 0);
    trial_build(&s);
    uint64_t seed = 5;
    sim = s.bad ? NULL : toile_world_sim(s.world);
    double forces[81][3], omega[3] = {2, -3, 1};
    for (int i = 0; sim && i < 81; i++)
        for (int k = 0; k < 3; k++)
            trial_x(&s, i)[k] += 0.01 * ((double)(experiment_random(&seed) >> 11) / 9007199254740992.0 - 0.5);
    for (int move = 0; sim && move < 3; move++) { /* still, rigid, any */
        for (int i = 0; i < 81; i++) {
            const double *x = trial_x(&s, i);
            double *w = trial_v(&s, i);
            for (int k = 0; k < 3; k++)
                w[k] = move == 0 ? 0
                       : move == 1
                           ? 1 + omega[(k + 1) % 3] * x[(k + 2) % 3] - omega[(k + 2) % 3] * x[(k + 1) % 3]
                           : (double)(experiment_random(&seed) >> 11) / 9007199254740992.0 - 0.5;
        }
        memset(sim->work.ahead, 0, 4 * (size_t)sim->model->particle_count * sizeof(double));
        toile_evaluate_at(sim, sim->state.x, sim->state.v, 0, 0, 0);
        toile_gather(sim, 1, sim->work.b);
        still = sim->work.b;
        for (int i = 0; i < 81; i++)
            for (int k = 0; k < 3; k++) {
                double f = still[4 * (size_t)sim->model->place[i] + (size_t)k];
                if (move == 0)
                    forces[i][k] = f;
                largest[move] = fmax(largest[move], move ? fabs(f - forces[i][k]) : fabs(f));
            }
    }
    trial_close(&s);
    return sim ? largest[1] / largest[2] : NAN;
}

/* Angular momentum left after 1 s at 1 rev/s about the normal. */
static double spin(validation *v, int model, double h, double damping, double *drift) {
    double before = 0, after = 0, p[2] = {0, 0}, omega = 2 * PI, moving = 0;
    trial s = trial_open(v, model, h);
    trial_set(&s, "gravity", "0,0,0");
    trial_set(&s, "solver_tolerance", "1e-10");
    trial_fabric(&s, 0.2, 4000, 1000, 1e-3); /* rho omega^2 R^2 / k = 1.6e-4 */
    trial_damping(&s, damping, damping);
    trial_mesh(&s, M2, 9, 9, (double[]){-0.2, -0.2, 0}, (double[]){0.4, 0, 0}, (double[]){0, 0.4, 0}, 0);
    trial_build(&s);
    for (int i = 0; i < 81 && !s.bad; i++) {
        double *x = trial_x(&s, i), *w = trial_v(&s, i), m = trial_mass(&s, i);
        w[0] = -omega * x[1], w[1] = omega * x[0];
        before += m * (x[0] * w[1] - x[1] * w[0]);
        moving += m * sqrt(w[0] * w[0] + w[1] * w[1]);
    }
    trial_advance(&s, (int)(1 / h + 0.5));
    for (int i = 0; i < 81 && !s.bad; i++) {
        double *x = trial_x(&s, i), *w = trial_v(&s, i), m = trial_mass(&s, i);
        after += m * (x[0] * w[1] - x[1] * w[0]);
        p[0] += m * w[0], p[1] += m * w[1];
    }
    *drift = s.bad ? NAN : sqrt(p[0] * p[0] + p[1] * p[1]) / moving;
    bool bad = s.bad;
    trial_close(&s);
    return bad ? NAN : after / before;
}

void validation_rigid(validation *v) {
    double h = 1.0 / 240, omega = 2 * PI, scheme = 1 / sqrt(1 + 2 * omega * omega * h), drift;
    for (int m = 0; m < MODEL_COUNT && !experiment_stopping(v->e); m++) {
        validation_band(v, "j", m, "damping force of a rigid motion / that of any", rigid_force(v, m),
                        -INFINITY, 1e-10);
        double free = spin(v, m, h, 0, &drift), damped = spin(v, m, h, 0.002, &drift);
        validation_within(v, "j", m, "spin after 1 s, damped against undamped", damped, free, 0.001);
        validation_band(v, "j", m, experiment_text("spin left after 1 s (the scheme itself: %.4f)", scheme),
                        damped, scheme - 0.02, 1.0001);
        validation_band(v, "j", m, "linear momentum gained, relative", drift, -INFINITY, 1e-9);
    }
}
