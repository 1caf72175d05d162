/* Sheets of the thesis' experiments (Boxerman 2003): a square grid of connections whose constants are those
 * of single connections, in the thesis' units, and whose particles all have mass density x spacing^2.
 *
 * What differs from the thesis: there is no air damping (ours is quadratic), and the sizes of sphere and
 * table, which it does not give, are chosen. */
#ifndef TOILE_EXPERIMENT_SHEET_H
#define TOILE_EXPERIMENT_SHEET_H

#include "experiment.h"
#include "world.h"

typedef enum sheet_scene {
    SHEET_CORNERS,
    SHEET_TABLE,
    SHEET_SPHERE,
    SHEET_GROUND,
    SHEET_CENTRE,
    SHEET_FOUR
} sheet_scene;

typedef struct sheet {
    sheet_scene scene;
    int n;                                            /* n x n particles */
    double spacing, density;                          /* m, kg/m^2 */
    double stretch, shear;                            /* N/m; 0: damping alone */
    double bend;                                      /* k_s of thesis eq. 3.8, N */
    double damp_stretch, damp_shear;                  /* N s/m */
    double friction, off_centre;                      /* off_centre: share of the sheet's size */
    double step;                                      /* s, never cut */
    const char *integrator, *solver, *preconditioner; /* null: backward_euler, mpcg, constrained */
    bool own_stop; /* stop at an error in the energy norm instead of as the thesis does */
    bool decompose;
    bool bends_explicit; /* with aimex, whatever the criterion says */
    int threads;
} sheet;

/* Null: e->error says why. */
toile_world *sheet_make(experiment *e, const sheet *s);
/* Another length of the steps from now on. */
void sheet_set_step(toile_world *world, double step);
/* Numerical stiffness (h/m)(k_s h + 2 k_d) of the stiffer kind of connection, thesis eq. 4.8. */
double sheet_kappa(const sheet *s, double step);

/* What a run cost. */
typedef struct sheet_cost {
    bool sound; /* every number finite */
    double cpu; /* s, of the calling thread */
    double iterations, rows, solves, steps, components, contacts, largest_stretch;
    double implicit_share; /* of connections, mean */
} sheet_cost;
/* Frames of `frame` seconds until `seconds` have passed; false in `sound` if it blew up. */
sheet_cost sheet_run(toile_world *world, double seconds, double frame);

/* Kinetic, elastic and potential, J. */
double sheet_energy(const toile_sim *sim);
/* Total energy may exceed that of the start by this share of the work that gravity has done. Undamped
 * fb_euler keeps a bounded error of first order, and what is unstable gains orders of magnitude. */
#define SHEET_MARGIN 0.3
/* The longest step that stays stable for so many steps, by bisection to two digits; NaN: e->error says why.
 */
double sheet_critical_step(experiment *e, const sheet *s, int steps);

/* The sheet as lines, seen from a corner above: `colour` gives a connection's colour, 0xffffff leaves it out.
 */
typedef unsigned (*sheet_colour)(const toile_sim *sim, int connection, void *user);
void sheet_draw(plot *p, const toile_sim *sim, sheet_colour colour, void *user);
/* The edge of the table. */
void sheet_draw_table(plot *p, const sheet *s);
/* A point of space in the picture. */
void sheet_view(const double x[3], double *right, double *up);

#endif
