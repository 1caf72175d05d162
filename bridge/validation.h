/* toile experiment validation: what its protocols share. A protocol is a function that measures, and tells
 * each figure to validation_within or validation_band, which print it, write it to the CSV and the table, and
 * count what failed.
 *
 * Sheets never fail in the caller's face: the first error is kept, everything after it does nothing, figures
 * become NaN and fail their check. */
#ifndef TOILE_VALIDATION_H
#define TOILE_VALIDATION_H

#include "experiment.h"
#include "world.h"

#include <math.h>

#define PI 3.14159265358979323846
#define G 9.81

enum { CONTINUUM, SPRINGS, MODEL_COUNT };
extern const char *const VALIDATION_MODELS[MODEL_COUNT];

typedef struct validation {
    experiment *e;
    int passed, failed, by_nature;
    const char *nature; /* why the figures told next may fail: the model's nature, said in the table; null:
                           they may not */
} validation;

/* |found / expected - 1| at most `tolerance`; returns whether. */
bool validation_within(validation *v, const char *protocol, int model, const char *what, double found,
                       double expected, double tolerance);
/* low <= found <= high. */
bool validation_band(validation *v, const char *protocol, int model, const char *what, double found,
                     double low, double high);

/* ---- trials: a world with one sheet ---- */

/* Meshes of the protocols: m1 one diagonal, m2 alternating, m3 jittered by 20 %, and one turned by 45 degrees
 * (a particle in the middle of every cell). */
typedef enum mesh_kind { M1, M2, M3, M45, MESH_KINDS } mesh_kind;
extern const char *const VALIDATION_MESHES[MESH_KINDS];

typedef struct trial {
    validation *v;
    toile_world *world;
    int model, fabric, garment, count; /* particles */
    int nu, nv;
    mesh_kind kind;
    double step;
    bool bad;
} trial;

/* A world without air whose steps have equal length. */
trial trial_open(validation *v, int model, double step);
void trial_close(trial *s);
void trial_set(trial *s, const char *id, const char *text);
void trial_fabric(trial *s, double density, double stretch, double shear, double bend);
void trial_property(trial *s, const char *id, double value);
void trial_damping(trial *s, double stretch, double bend);
/* nu x nv particles from `origin` along the sides u and v; the warp is turned by `turn` in the sheet. */
void trial_mesh(trial *s, mesh_kind kind, int nu, int nv, const double origin[3], const double u[3],
                const double v[3], double turn);
/* Any mesh of triangles; uv as positions if null. */
void trial_triangles(trial *s, int count, const double *x, const double *uv, int faces, const int *triangles);
/* Holds particles with u index from..to - 1 (of the nu x nv); returns the pin. */
int trial_hold_columns(trial *s, int from, int to);
int trial_hold(trial *s, int count, const int *particles);
void trial_build(trial *s);
void trial_advance(trial *s, int steps);
/* Until nothing is faster than `speed`, at most `seconds`; whether it came to rest. */
bool trial_settle(trial *s, double seconds, double speed);
/* The figure, or NaN if more than a hundredth of the particles are faster than 1 mm/s: nothing at rest was measured. What a
 * model cannot do by its nature may tremble. */
double trial_at_rest(trial *s, double found);
double *trial_x(trial *s, int particle);
double *trial_v(trial *s, int particle);
double trial_mass(trial *s, int particle);
/* Mean coordinate of the particles with u index `column`; NaN if the sheet is bad. */
double trial_column(trial *s, int column, int axis);
double trial_elastic(trial *s);
double trial_energy(trial *s);

/* ---- reference curves, each computed from its equation ---- */

/* a: heavy elastica B theta'' = -rho g (L - s) cos theta; x and drop at i / count of the length may be null.
 */
void reference_cantilever(double gamma, double *drop, double *reach, int count, double *x, double *z);
/* b: heart loop, phi'' = gamma (1/2 - s) sin phi - c cos phi; height over length. */
double reference_heart(double gamma, int count, double *x, double *z);
/* c: period of a pendulum over sqrt(l / g); omega sqrt(L / g) of mode k (1, 2, ...) of N hanging links, and
 * its shape. */
double reference_pendulum(double amplitude);
double reference_chain_mode(int links, int mode, double *shape);
/* d: sag over span of N rigid links, and a over span of the catenary. */
double reference_catenary(double length, int links, double *a);

/* ---- the protocols ---- */

void validation_cantilever(validation *v);
void validation_heart(validation *v);
void validation_motion(validation *v);
void validation_catenary(validation *v);
void validation_stretch(validation *v);
void validation_friction(validation *v);
void validation_drape(validation *v);
void validation_waves(validation *v);
void validation_bias(validation *v);
void validation_rigid(validation *v);

bool experiment_validation(experiment *e);

#endif
