/* Protocol i: mesh and direction make no difference; patch tests. */
#include "integrate.h"
#include "validation.h"

#include <string.h>

#define NOT_A_GRID                                                                                           \
    "connections know the directions they happen to have: only a grid along warp and weft has the fabric's " \
    "own stretch, shear "                                                                                    \
    "and bend"

/* Force that stretches a strip by 10 %, N/m; the warp lies at `turn` to the pull. Its end may narrow. */
static double pull(validation *v, int model, mesh_kind kind, double turn) {
    enum { NU = 41, NV = 9 };
    double k = 1000, force = 0, target[3 * NV], width = 0.2;
    int end[NV], pin = -1;
    trial s = trial_open(v, model, 1.0 / 50);
    trial_set(&s, "gravity", "0,0,0");
    trial_fabric(&s, 0.2, k, k / 2, 1e-5); /* isotropic without contraction: G = k / 2 */
    trial_damping(&s, 0.02, 0.02);
    trial_mesh(&s, kind, NU, NV, (double[]){0, 0, 0}, (double[]){1, 0, 0}, (double[]){0, width, 0}, turn);
    trial_hold_columns(&s, 0, 1);
    for (int j = 0; j < NV; j++)
        end[j] = NU - 1 + j * NU;
    if (!s.bad && toile_add_pin(s.world, &(toile_pin){s.garment, NV, end, {true, false, true}}, &pin) < 0)
        s.bad = true;
    trial_build(&s);
    for (int f = 1; f <= 50 && !s.bad; f++) {
        for (int j = 0; j < NV; j++)
            target[3 * j] = 1 + 0.1 * f / 50, target[3 * j + 1] = width * j / (NV - 1), target[3 * j + 2] = 0;
        toile_move_pin(s.world, pin, target);
        trial_advance(&s, 1);
    }
    trial_settle(&s, 10, 1e-5);
    toile_sim *sim = s.bad ? NULL : toile_world_sim(s.world);
    for (int j = 0; j < NV && sim; j++) /* what the constraint adds in a step is an impulse */
        force += sim->work.r[4 * (size_t)sim->model->place[end[j]]] / s.step / width;
    trial_close(&s);
    return sim ? force : NAN;
}

/* H / W at Gamma 5 of strips on other meshes; two columns clamped, N = 40. */
static double cantilever(validation *v, int model, mesh_kind kind, double turn) {
    double density = 0.2, length = 0.3, n = 40, du = length / n;
    trial s = trial_open(v, model, 1.0 / 30);
    trial_fabric(&s, density, 4000, 2000, density * G * pow(length, 3) / 5);
    trial_damping(&s, 0.002, 0.02);
    trial_mesh(&s, kind, 42, 9, (double[]){-du, 0, 0}, (double[]){length + du, 0, 0}, (double[]){0, 0.06, 0},
               turn);
    trial_hold_columns(&s, 0, 2);
    trial_build(&s);
    trial_settle(&s, 20, 1e-5);
    double found = -trial_column(&s, 41, 2) / trial_column(&s, 41, 0);
    trial_close(&s);
    return found;
}

/* Heights of the corners of a 0.5 m square on a ball of 0.2 m: largest less least. */
static double corners(validation *v, int model, toile_diagonals diagonals, double *mean) {
    enum { N = 31 };
    static const int PLACES[4] = {0, N - 1, N * (N - 1), N * N - 1};
    trial s = trial_open(v, model, 1.0 / 120);
    trial_set(&s, "solver_tolerance", "1e-4");
    trial_fabric(&s, 0.2, 4000, 50, 2e-5);
    trial_damping(&s, 0.01, 0.05);
    s.count = N * N;
    toile_grid grid = {.name = "sheet",
                       .nu = N,
                       .nv = N,
                       .origin = {-0.25, -0.25, 0.203},
                       .u_axis = {0.5, 0, 0},
                       .v_axis = {0, 0.5, 0},
                       .fabric = s.fabric,
                       .diagonals = diagonals};
    toile_collider ball = {.name = "ball",
                           .shape = TOILE_SPHERE,
                           .size = {0.2},
                           .friction_static = 0.3,
                           .friction_kinetic = 0.3};
    if (!s.bad &&
        (toile_add_grid(s.world, &grid, &s.garment) < 0 || toile_add_collider(s.world, &ball, NULL) < 0))
        s.bad = true;
    trial_build(&s);
    trial_settle(&s, 3, 2e-3);
    double least = INFINITY, most = -INFINITY;
    *mean = 0;
    for (int i = 0; i < 4 && !s.bad; i++) {
        double z = trial_x(&s, PLACES[i])[2];
        least = fmin(least, z), most = fmax(most, z), *mean += z / 4;
    }
    bool bad = s.bad;
    trial_close(&s);
    return bad ? NAN : most - least;
}

/* Largest force on inner particles of m3 after an affine map in the plane, over k times the length of a cell.
 */
static double affine(validation *v, int model) {
    double k = 4000, worst = 0;
    trial s = trial_open(v, model, 1.0 / 120);
    trial_set(&s, "gravity", "0,0,0");
    trial_fabric(&s, 0.2, k, 500, 0);
    trial_mesh(&s, M3, 13, 13, (double[]){0, 0, 0}, (double[]){0.6, 0, 0}, (double[]){0, 0.6, 0}, 0);
    trial_build(&s);
    for (int i = 0; i < s.count && !s.bad; i++) {
        double *p = trial_x(&s, i), x = p[0], y = p[1];
        p[0] = 1.05 * x + 0.03 * y, p[1] = 0.02 * x + 1.03 * y;
    }
    if (!s.bad) {
        toile_sim *sim = toile_world_sim(s.world);
        memset(sim->work.ahead, 0, 4 * (size_t)sim->model->particle_count * sizeof(double));
        toile_evaluate_at(sim, sim->state.x, sim->state.v, 0, 0, 0);
        toile_gather(sim, 1, sim->work.b);
        for (int j = 1; j < 12; j++)
            for (int i = 1; i < 12; i++)
                for (int c = 0; c < 3; c++)
                    worst =
                        fmax(worst, fabs(sim->work.b[4 * (size_t)sim->model->place[i + 13 * j] + (size_t)c]));
    }
    bool bad = s.bad;
    trial_close(&s);
    return bad ? NAN : worst / (k * 0.05);
}

/* Bending energy of a sheet rolled to a radius of 40 cells about an axis at `angle` to v, over B area / (2
 * R^2). The half cell along each rolled end has no hinge: 39/40 of it are there. */
static double roll(validation *v, int model, mesh_kind kind, double angle) {
    enum { N = 40 };
    double bend = 1e-4, radius = 0.3, length = radius;
    trial s = trial_open(v, model, 0.01);
    trial_fabric(&s, 0.2, 0, 0, bend);
    trial_mesh(&s, kind, N + 1, N + 1, (double[]){0, 0, 0}, (double[]){length, 0, 0},
               (double[]){0, length, 0}, 0);
    trial_build(&s);
    for (int i = 0; i < s.count && !s.bad; i++) {
        double *x = trial_x(&s, i), c = cos(angle), d = sin(angle), along = c * x[0] + d * x[1],
               across = -d * x[0] + c * x[1];
        double p = radius * sin(along / radius);
        x[2] = radius * (1 - cos(along / radius));
        x[0] = c * p - d * across;
        x[1] = d * p + c * across;
    }
    double found = trial_elastic(&s) / (bend * length * length / (2 * radius * radius)) / (39.0 / 40);
    trial_close(&s);
    return found;
}

/* Change of the elastic energy of a crumpled sheet by turning and moving it, relative. */
static double moved(validation *v, int model) {
    trial s = trial_open(v, model, 0.01);
    trial_fabric(&s, 0.2, 4000, 50, 1e-4);
    trial_mesh(&s, M2, 11, 11, (double[]){0, 0, 0}, (double[]){0.5, 0, 0}, (double[]){0, 0.5, 0}, 0);
    trial_build(&s);
    uint64_t seed = 3;
    for (int i = 0; i < s.count && !s.bad; i++)
        for (int k = 0; k < 3; k++)
            trial_x(&s, i)[k] += 0.02 * ((double)(experiment_random(&seed) >> 11) / 9007199254740992.0 - 0.5);
    double before = trial_elastic(&s), c = cos(0.7), d = sin(0.7);
    for (int i = 0; i < s.count && !s.bad; i++) {
        double *p = trial_x(&s, i), x = p[0], y = p[1], z = p[2];
        p[0] = c * x - d * y + 1, p[1] = c * c * y + c * d * x - d * z - 2,
        p[2] = d * d * x + d * c * y + c * z + 0.5;
    }
    double after = trial_elastic(&s);
    trial_close(&s);
    return fabs(after / before - 1);
}

void validation_bias(validation *v) {
    static const double TURNS[] = {0, PI / 8, PI / 4};
    for (int m = 0; m < MODEL_COUNT && !experiment_stopping(v->e); m++) {
        double least = INFINITY, most = 0;
        v->nature = m == SPRINGS ? NOT_A_GRID : NULL;
        for (int t = 0; t < 3; t++) {
            double found = pull(v, m, M2, TURNS[t]);
            least = fmin(least, found), most = fmax(most, found);
        }
        for (mesh_kind kind = M1; kind <= M45; kind += M45 - M1) {
            double found = pull(v, m, kind, 0);
            least = fmin(least, found), most = fmax(most, found);
        }
        validation_within(v, "i", m,
                          "pull for a strain of 10 %, warp and mesh at 0, 22.5, 45 deg: most / least",
                          most / least, 1, 0.05);

        least = INFINITY, most = 0;
        for (int c = 0; c < 5; c++) {
            double found = cantilever(v, m,
                                      c == 0   ? M1
                                      : c == 1 ? M45
                                               : M2,
                                      c < 3    ? 0
                                      : c == 3 ? PI / 4
                                               : PI / 2);
            least = fmin(least, found), most = fmax(most, found);
        }
        validation_within(v, "i", m, "cantilever H/W, mesh and warp at 0, 45, 90 deg: largest / least",
                          most / least, 1, 0.06);

        static const toile_diagonals DIAGONALS[] = {TOILE_DIAGONALS_LEFT, TOILE_DIAGONALS_RIGHT,
                                                    TOILE_DIAGONALS_ALTERNATE};
        static const char *const NAMES[] = {"left", "right", "alternating"};
        v->nature = NULL;
        for (int d = 0; d < 3 && !v->e->quick; d++) {
            double mean, spread = corners(v, m, DIAGONALS[d], &mean);
            validation_band(v, "i", m,
                            experiment_text("square on a ball, %s diagonals: corners differ by, m", NAMES[d]),
                            spread, -INFINITY, 0.015);
        }
        v->nature = m == SPRINGS ? NOT_A_GRID : NULL;
        validation_band(v, "i", m, "patch test: inner force after an affine map of m3, over k", affine(v, m),
                        -INFINITY, 1e-9);
        static const struct {
            mesh_kind kind;
            double angle, tolerance;
        } ROLLS[] = {{M1, 0, 0.03},      {M2, 0, 0.03},  {M1, PI / 4, 0.03},
                     {M2, PI / 4, 0.03}, {M45, 0, 0.03}, {M3, 0, 0.10}};
        for (int r = 0; r < 6; r++)
            validation_within(v, "i", m,
                              experiment_text("energy of a rolled sheet / (B A / 2 R^2), %s at %.0f deg",
                                              VALIDATION_MESHES[ROLLS[r].kind], ROLLS[r].angle * 180 / PI),
                              roll(v, m, ROLLS[r].kind, ROLLS[r].angle), 1, ROLLS[r].tolerance);
        v->nature = NULL;
        validation_band(v, "i", m, "energy changed by a rigid motion, relative", moved(v, m), -INFINITY,
                        1e-12);
    }
}
