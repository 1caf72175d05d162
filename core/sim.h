/* A simulation: model, state, what moves around it, and the work space of its steps. */
#ifndef TOILE_SIM_H
#define TOILE_SIM_H

#include "contact_rules.h"
#include "fast.h"
#include "kernels.h"
#include "model.h"
#include "pinch.h"
#include "self.h"
#include "settings.h"
#include "solid.h"
#include "state.h"
#include "tangle.h"

#include <stdatomic.h>

/* Particles held by a pin. */
typedef struct toile_hold {
    int count;
    int *vertex;        /* over all garments, (count) */
    int *particle;      /* of each, (count) */
    bool axes[3];
    bool on, was_on;
    bool grabs;         /* every frame begins where the particles are, not at their last targets */
    double *from, *to;  /* targets at the frame's begin and end, (count x 3) */
    double stiffness;   /* of a spring to each target, N/m; 0: rigid */
    double *target;     /* of the springs at the step's end, (count x 3) */
    double *normal;     /* direction in which a spring leaves its particle free, or 0, (count x 3) */
    int solid;          /* the collider whose surface they are held to, if there are anchors */
    int *triangle;      /* of its mesh, (count); else null */
    double *anchor;     /* see pin.c, (count x 5); null: not on a surface */
    bool anchored;
    int curve_count;    /* points of the line they slide on */
    double *curve_from, *curve_to; /* at the frame's begin and end, (curve_count x 3); null: not on a curve */
} toile_hold;

/* In `held`: free along found->direction only. */
enum { TOILE_HELD_CURVE = 8 };

typedef enum toile_stage_index { STAGE_EVALUATE, STAGE_ASSEMBLE, STAGE_SOLVE, STAGE_SOLID, STAGE_SELF, STAGE_COUNT } toile_stage_index;

typedef struct toile_counters {
    int frames;
    int64_t steps, rejected, forced, iterations, row_multiplies, solves, fast_solves, direct_solves, components;
    int64_t limited;           /* steps shorter than time_step because an explicit part would else be unstable */
    int64_t newton_iterations;
    int64_t couplings;         /* contacts of cloth with cloth, sum over the steps */
    int64_t hits, zones;       /* found on the way of a candidate; steps in which parts had to move as one */
    int64_t pinched;           /* contacts let go because solids closed on the cloth from two sides */
    int64_t rested;            /* steps that had no answer, in which all went with what surrounds it (rest.c) */
    int64_t riders;            /* particles that rode with solids for that, the most in any step */
    double implicit_share;     /* sum over the steps: share of elements treated implicitly */
    double seconds, stages[STAGE_COUNT];
    double max_stretch, step_min, step_max;
} toile_counters;

/* Contact of a particle as found for one step. */
typedef struct toile_found {
    double normal[3];
    double surface[3];  /* velocity of the surface, m/s */
    double force;       /* normal force to take for friction, N */
    double turning;     /* resistance to slip, kg/s: sliding, across its direction; gripping and riding, in all */
    double across;      /* riding: resistance along the normal, kg/s; 0: a constraint holds it there */
    bool drawn;         /* rides because its neighbours do */
    int solid, mode;
    double direction[3]; /* as in toile_touch */
    int face, other;     /* of its mesh; -1: none. `other` is the second face of a crease that it lies in */
    int left;            /* a face beside it that it was let go from; -1: none */
    double crease[3];    /* normal of the second face */
    double crease_speed; /* and velocity along it, m/s */
    double clear;        /* no collider is nearer than this to where it goes if nothing stops it, m; 0: not known */
} toile_found;

/* How stiff the explicit parts are, and which elements are explicit (stability.c). */
typedef struct toile_stability {
    double step;                       /* longest stable step, s; infinite if nothing is explicit */
    int particle;                      /* the one that says so; -1: none */
    double *stiffness, *viscosity;     /* of what is always explicit, per particle, N/m, N s/m, (n) or null */
    /* 1 implicit, 0 explicit; null if the integrator treats all elements alike */
    double *stretch_share, *shear_share, *hinge_share, *spring_share;
    toile_live *live;                  /* what that leaves of the matrix */
    double share_step;                 /* the step that the shares are for, s, as a float */
    double implicit_share;             /* mean of the shares */
} toile_stability;

/* Elements that a step may bring back instead of being cut (limit.c), and how many are looked at together. */
enum { TOILE_LIMIT_MOST = 4096, TOILE_STRETCH_BLOCK = 512 };

/* Everything derived: may be thrown away between steps. Sized once, no allocation in a step. */
typedef struct toile_work {
    double *next_x, *next_v;           /* the candidate, (n x 4) */
    double *solution;                  /* dv of the candidate, (n x 4) */
    const double *older;               /* for the first solve of a step: what the step before the last did, or null; not owned */
    double *friction;                  /* of contacts, N, (n x 4) */
    int riders;                        /* particles that are pinched (pinch.c) */
    double *force, *drag;              /* external, see toile_assembly */
    double *triangle_air;              /* force(3) n(3) factor 0 of each triangle, (triangles x 8) */
    double *alter, *ahead;             /* y of eq. 17, and d = h v + y, (n x 4) */
    double *at_x, *at_v;               /* where forces are taken if not at the state, (n x 4) or null */
    double *shift;                     /* x' = x + reach v' + shift (integrate.h), (n x 4) */
    double *balance, *last_balance;    /* M dv - h f of a Newton iterate and of the one before, kg m/s, (n x 4) or null */
    double *direction, downhill;       /* of the last Newton iteration, and solution . balance there */
    toile_stability stability;
    double *triangle, *hinge, *spring; /* element records */
    double *bend;                      /* of hinges: angles less rest, moments of this and the last pass, (padded x 3) */
    double *stretch, *next_stretch;    /* see kernels.h */
    double *extreme;                   /* per TOILE_STRETCH_BLOCK elements: largest change, largest value */
    unsigned char *strained;           /* particles of elements beyond their limit (limit.c), if that is known, (n) */
    bool strained_known, solved_known;
    double *solved_stretch;            /* next_stretch before the guard, if that is known */
    int over[TOILE_LIMIT_MOST];        /* elements brought back (limit.c): 2 x element + direction */
    toile_assembly assembly;           /* what the matrix was made from */
    toile_matrix matrix;
    double *b, *r, *p, *s, *q, *inverse, *partial;
    toile_fast fast;
    toile_constraints constraints;
    toile_found *found;                /* (n) */
    unsigned char *held;               /* axes held by pins as bits, (n) */
    toile_state backup;                /* state at the frame's begin */
} toile_work;

/* The papers' solvers, each made when it is first needed. */
typedef struct toile_solvers {
    struct toile_cholmod *cholmod;
    struct toile_upcg *upcg;
    struct toile_corepcg *corepcg;
    struct toile_decompose *decompose;
} toile_solvers;
void toile_solvers_free(toile_solvers *solvers);

typedef struct toile_sim {
    toile_memory *memory;
    const toile_settings *settings;
    const toile_kernels *kernels;
    int threads;
    toile_model *model;
    toile_state state;
    toile_work work;
    toile_solvers solvers;
    toile_error trouble; /* what ended a step for good, e.g. memory */
    toile_solid *solids;
    int solid_count;
    toile_hold *holds;
    int hold_count;
    toile_contact_rules rules;
    toile_self self;
    toile_tangle tangle;
    /* what the model is built from again when seams are welded (sew.h); null: never */
    const toile_fabric *fabrics;
    const toile_garment *garments;
    int garment_count, stitch_count;
    unsigned char *welded, *next_welded; /* stitches over all garments, (stitch_count) */
    unsigned char *corner;               /* which of them are where seams meet, (stitch_count) */
    bool maps_changed;
    int panel_count;                     /* of all garments */
    double *pressure_from, *pressure_to; /* at the frame's begin and end, N/m^2, (panel_count) */
    double begin_time;                   /* of the simulation, s: gravity grows from there (gravity_ramp) */
    double frame_seconds, frame_begin; /* the frame being made: length, and time at its begin */
    double frame_part;                 /* where solids are in it, 0 to 1 */
    toile_counters frame, total;
    atomic_bool cancel;
} toile_sim;

/* Takes the model. Solids and holds stay the caller's. */
toile_status toile_sim_make(toile_memory *memory, const toile_settings *settings, toile_model *model, toile_sim *sim,
                            toile_error *error);
void toile_sim_free(toile_sim *sim);

/* One frame in as many steps as it takes (step.c). On failure the state is that of the frame's begin. */
toile_status toile_sim_advance(toile_sim *sim, double seconds, toile_error *error);

/* Joules. */
typedef struct toile_energies {
    double kinetic, elastic, potential;
} toile_energies;
toile_energies toile_sim_energies(const toile_sim *sim);

/* Particles inside a collider's surface now (thickness not counted), and the deepest, m. */
int toile_sim_penetrations(const toile_sim *sim, double *deepest);

/* ---- the stages of a step, in order; each is in the file of its name ---- */

/* contact.c: moves the solids to the step's end, finds contacts, and sets constraints, y and friction. */
void toile_find_contacts(toile_sim *sim, double h);
void toile_set_constraints(toile_sim *sim, double h);
/* After a solve: friction stops what slides and does no more. For particles that it has thrown back it becomes drag for this step
 * (contact.c); true if there are any: solve again. */
bool toile_hold_thrown(toile_sim *sim);
/* After a solve: free particles that the candidate puts inside a solid get a contact. True if there were any: then the
 * step has to be solved again. */
bool toile_find_missed(toile_sim *sim, double h);
/* After the solve: constraint forces (residual) decide who is released, who slides and who sticks. */
void toile_update_contacts(toile_sim *sim, const double *residual, double h);

/* solve.c: A dv = b from the guess in work.solution; constraint impulses A dv - b in work.r. False if it did not converge. */
bool toile_solve_step(toile_sim *sim, double h);
/* Below this relative error single precision needs help: the residual is made anew in double and the rest solved for. */
#define TOILE_SINGLE_PRECISION 1e-3

/* Triangles or stretch connections, with what fills up the last eight. */
static inline int toile_stretch_elements(const toile_model *m) {
    return m->springs_used ? (m->springs.stretch_count + 7) / 8 * 8 : m->triangles.padded;
}

/* Is the fast solver's picture of the system (fast.h) wanted? */
static inline bool toile_solves_fast(const toile_settings *s) {
    return !s->decompose && (s->linear_solver == TOILE_SOLVER_AUTO || (s->linear_solver == TOILE_SOLVER_MPCG &&
                                                                     s->preconditioner == TOILE_PRECONDITIONER_INCOMPLETE));
}

/* force_external.c: gravity, drag, wind, gusts at given positions, velocities and time, and friction; drag blocks for a
 * matrix of step h. */
void toile_external_forces(toile_sim *sim, const double *x, const double *v, double time, double h);

double toile_clock(void); /* s, monotonic */

#endif
