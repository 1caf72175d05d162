/* toile experiment validation: what its protocols share. A protocol is a function that measures, and tells each figure to
 * validation_within or validation_band, which print it, write it to the CSV and the table, and count what failed.
 *
 * Sheets never fail in the caller's face: the first error is kept, everything after it does nothing, figures become NaN and
 * fail their check. */
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
    const char *nature; /* why the figures told next may fail: the model's nature, said in the table; null: they may not */
} validation;

/* |found / expected - 1| at most `tolerance`; returns whether. */
bool validation_within(validation *v, const char *protocol, int model, const char *what, double found, double expected,
                       double tolerance);
/* low <= found <= high. */
bool validation_band(validation *v, const char *protocol, int model, const char *what, double found, double low, double high);

/* ---- sheets ---- */

/* Meshes of the protocols: m1 one diagonal, m2 alternating, m3 jittered by 20 %, and one turned by 45 degrees (a particle in
 * the middle of every cell). */
typedef enum mesh_kind { M1, M2, M3, M45, MESH_KINDS } mesh_kind;
extern const char *const VALIDATION_MESHES[MESH_KINDS];

typedef struct sheet {
    validation *v;
    toile_world *world;
    int model, fabric, garment, count; /* particles */
    int nu, nv;
    mesh_kind kind;
    double step;
    bool bad;
} sheet;

/* A world without air whose steps have equal length. */
sheet sheet_open(validation *v, int model, double step);
void sheet_close(sheet *s);
void sheet_set(sheet *s, const char *id, const char *text);
void sheet_fabric(sheet *s, double density, double stretch, double shear, double bend);
void sheet_property(sheet *s, const char *id, double value);
void sheet_damping(sheet *s, double stretch, double bend);
/* nu x nv particles from `origin` along the sides u and v; the warp is turned by `turn` in the sheet. */
void sheet_mesh(sheet *s, mesh_kind kind, int nu, int nv, const double origin[3], const double u[3], const double v[3],
                double turn);
/* Any mesh of triangles; uv as positions if null. */
void sheet_triangles(sheet *s, int count, const double *x, const double *uv, int faces, const int *triangles);
/* Holds particles with u index from..to - 1 (of the nu x nv); returns the pin. */
int sheet_hold_columns(sheet *s, int from, int to);
int sheet_hold(sheet *s, int count, const int *particles);
void sheet_build(sheet *s);
void sheet_advance(sheet *s, int steps);
/* Until nothing is faster than `speed`, at most `seconds`; whether it came to rest. */
bool sheet_settle(sheet *s, double seconds, double speed);
double *sheet_x(sheet *s, int particle);
double *sheet_v(sheet *s, int particle);
double sheet_mass(sheet *s, int particle);
/* Mean coordinate of the particles with u index `column`; NaN if the sheet is bad. */
double sheet_column(sheet *s, int column, int axis);
double sheet_elastic(sheet *s);
double sheet_energy(sheet *s);

/* ---- reference curves, each computed from its equation ---- */

/* a: heavy elastica B theta'' = -rho g (L - s) cos theta; x and drop at i / count of the length may be null. */
void reference_cantilever(double gamma, double *drop, double *reach, int count, double *x, double *z);
/* b: heart loop, phi'' = gamma (1/2 - s) sin phi - c cos phi; height over length. */
double reference_heart(double gamma, int count, double *x, double *z);
/* c: period of a pendulum over sqrt(l / g); omega sqrt(L / g) of mode k (1, 2, ...) of N hanging links, and its shape. */
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
