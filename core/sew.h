/* Sewing: stitches that pull their two vertices together, and are welded when they have met. */
#ifndef TOILE_SEW_H
#define TOILE_SEW_H

#include "sim.h"

/* A stitch pulls with its seam's full strength when it is this much longer than it should be by now, m. */
#define TOILE_SEWING_SLACK 0.01
/* Speed, relative to what the schedule asks, at which its damping alone is as strong, m/s. */
#define TOILE_SEWING_SPEED 1.0

/* Records of all ties at (x, v), in the form of the springs' (kernels.h); d is the known way to the step's end. */
void toile_evaluate_ties(toile_sim *sim, const double *x, const double *v, const double *d, double h);

/* Which garments the simulation is of: seams are sewn and welded from these. They stay the caller's. Before the first
 * frame. */
toile_status toile_sim_dress(toile_sim *sim, const toile_fabric *fabrics, const toile_garment *garments, int garment_count,
                             toile_error *error);

/* Between frames: welds stitches that have met, takes seams apart whose time has come. Where that changes anything, the
 * model, the state and the work space are made anew, with every momentum as it was. */
toile_status toile_sim_sew(toile_sim *sim, toile_error *error);
/* The same for given flags (from a saved state), and also if nothing changed but the garments' maps. */
toile_status toile_sim_rebuild(toile_sim *sim, const unsigned char *welded, toile_error *error);

/* After the model has changed: the particles that pins hold. */
void toile_sim_place_holds(toile_sim *sim);

/* A seam by its number over all garments. */
const toile_seam *toile_sim_seam(const toile_sim *sim, int seam);

/* Stitches that are neither welded nor released, and the widest gap among them, m. */
int toile_sim_open_stitches(const toile_sim *sim, double *widest);
/* Those of one seam. */
typedef struct toile_open_seam {
    int count, of;         /* open stitches, and all that it has */
    double widest;         /* gap, m */
    double place[3];       /* where that is, m */
    const char *panels[2]; /* that it joins there; null: they have no name */
} toile_open_seam;
toile_open_seam toile_sim_open_seam(const toile_sim *sim, int garment, int seam);

/* pressure.c: adds what presses on panels to the external forces; at a frame's end the next one's begin. */
void toile_add_pressure(toile_sim *sim, const double *x, double time);
void toile_pressure_arrive(toile_sim *sim);

/* The state as bytes, with what is welded: of one size whatever is. */
size_t toile_sim_state_bytes(const toile_sim *sim);
void toile_sim_state_write(const toile_sim *sim, void *bytes);
toile_status toile_sim_state_read(toile_sim *sim, const void *bytes, size_t size, toile_error *error);
uint64_t toile_sim_state_hash(const toile_sim *sim);

#endif
