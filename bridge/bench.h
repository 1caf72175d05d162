/* What the benchmarks share: systems of real steps, solvers by name, other programs. Everything is measured
 * in one run and reported as ratios, because other programs and other machines change seconds but hardly
 * their ratios. */
#ifndef TOILE_BENCH_H
#define TOILE_BENCH_H

#include "solve.h"
#include "world.h"

#include <jansson.h>

/* CPU time of this thread, s. */
double bench_cpu(void);
double bench_median(double *values, int count); /* sorts them */

/* ---- systems: bench_systems.c ---- */

enum { BENCH_SYSTEMS = 5 };

/* One linear system of a step, with copies of all that made it. */
typedef struct bench_system {
    toile_matrix matrix;
    toile_constraints constraints;
    toile_assembly assembly;
    double *b;
    double *previous; /* dv of the step before */
    double *exact;    /* direct solution */
    double size2;     /* |exact|_A^2 */
} bench_system;

/* A scene and systems sampled from its steps. */
typedef struct bench_case {
    char name[48];
    toile_world *world;
    toile_sim *sim;
    toile_memory memory;
    double step; /* s */
    bench_system systems[BENCH_SYSTEMS];
    int count;
    double *x, *difference, *product; /* scratch, (n x 4) */
    int contacts;                     /* of the last system */
} bench_case;

typedef struct bench_cloth {
    bool springs;
    int n;           /* n x n particles; a tube has 96 x 91 */
    bool tube, ball; /* a tube around a ball, or a sheet hit by one; without: it hangs */
    bool drape;      /* a sheet that lies down on a ball and sticks to it */
    bool slides;     /* or slides on it */
    double stretch, shear, bend, density, step;
    double jitter;    /* of inner vertices, in edges */
    bool shuffled;    /* vertices in random order */
    int first, every; /* steps at which systems are taken */
    bool thin;        /* the matrix of IMEX: stretch alone is implicit (springs) */
} bench_cloth;

/* The sheets of Ye, Webber and Wang 2008, section 5: mass of a node, shear, bend and step are theirs. */
bench_cloth bench_ye_grid(int n, double stretch);
/* False: the message was printed. Free it in any case. */
bool bench_make_case(const char *name, const bench_cloth *cloth, bench_case *c);
void bench_free_case(bench_case *c);

/* |x - x*|_A / |x*|_A of the case's x. */
double bench_error(bench_case *c, const bench_system *system);

/* ---- solvers: bench_solve.c ---- */

typedef struct bench_solver bench_solver;

/* "cholmod", "corepcg", "upcg", "decompose", "mpcg_none", "mpcg_diagonal", "mpcg_constrained", "auto",
 * "mumps". Null if this build has no such solver. */
bench_solver *bench_solver_make(const char *name, bench_case *c);
void bench_solver_free(bench_solver *solver);

typedef struct bench_run {
    double seconds, wall; /* CPU of the calling thread, and wall time */
    int iterations;
    int64_t rows;
    int components;
    bool sound;
} bench_run;

/* Solves from zero into the case's x. `effort` is what bench_effort found. */
bench_run bench_solve(bench_solver *solver, const bench_system *system, double effort, int threads);

/* What to give bench_solve so that the true error is just below `error`: a tolerance, or for mpcg a number of
 * iterations. NaN if the solver does not get there. */
double bench_effort(bench_solver *solver, const bench_system *system, double error);

/* Seconds of a product with A, as `auto` does it and from its blocks in double; false without `auto`. */
bool bench_products(bench_case *c, const bench_system *system, double *own, double *blocks);
/* The same as the papers do it: all blocks by rows, double. NaN if it goes wrong. */
double bench_full_product(bench_case *c, const bench_system *system);
/* CPU seconds of what surrounds a solve in a step: elements, and assembly for `auto` and of all blocks. */
bool bench_step_parts(bench_case *c, const bench_system *system, double *evaluate, double *assemble_auto,
                      double *assemble_all);

/* ---- other programs: bench_peers.c ---- */

/* CPU seconds per frame of our own cloth and of theirs on one thread; false (and a loud line on stderr) if
 * the other program is not there. */
bool bench_blender(const char *script, int n, int frames, double *ours, double *theirs);
bool bench_bullet(const char *source, int n, int frames, double *ours, double *theirs, double *our_stretch,
                  double *their_stretch);

/* The sheets of `bench step`: "pinned", "sphere" or "ball", cotton, 1 m. */
toile_status bench_make_sheet(const char *scene, const char *model, int n, int threads, toile_world **out);

/* ---- the benchmark: bench_solvers.c ---- */

/* Starts the program again if the linear algebra library has to be told what processor it runs on. */
void bench_wake_blas(void);

/* `only`: keys that contain this; null: all. */
int bench_solvers(const char *only, bool json, const char *blender_script, const char *bullet_source);

#endif
