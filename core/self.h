/* Cloth against cloth, and cloth against the edges and corners of collider meshes (contact.c holds particles off surfaces).
 *
 * Before a solve, pairs that are near and would come nearer than thickness get a coupling (coupling.h): a stiff, damped push
 * along the line between them and friction across it, inside the linear system. After it, the candidate is a straight way from
 * a state without intersections; continuous collision (ccd.h) checks that way. What it still finds goes back into the system;
 * what is left then is pushed apart by impulses (guard.c), or the step is cut.
 *
 * self.c knows the pairs, press.c makes couplings of them, guard.c checks the way. */
#ifndef TOILE_SELF_H
#define TOILE_SELF_H

#include "coupling.h"
#include "skin.h"
#include "voxel.h"
#include "zone.h"

struct toile_sim;

/* Edges and corners of colliders are kept at this share of the distance that particles keep from faces. */
#define TOILE_EDGE_SHARE 0.25

/* A contact of this step. */
typedef struct toile_press {
    toile_pair pair;
    double normal[3]; /* from the second to the first */
    double weight[4]; /* of the nearest points, see toile_near */
    double gap;       /* m */
    double time;      /* of a hit, in parts of the step; 0 of one that was near */
} toile_press;

typedef struct toile_self {
    bool on;                 /* anything to do at all? */
    toile_skin skin;
    double *thickness;       /* of the cloth at each of its particles, m, (n) */
    toile_reach reach;       /* how near is near, m */
    toile_pairs near;        /* at the state, sorted */
    bool near_known;
    /* what contact.c knows of particles and colliders from when it last asked */
    int nearest_count;       /* colliders */
    int *nearest;            /* triangle of each that was nearest: where the next search begins, (n x nearest_count) */
    float *clear;            /* a mesh's surface is no nearer than this, and the particle is outside, m, (n x nearest_count) */
    double *asked;           /* where the particle was and which part of the frame it was, (n x 4) */
    double *solid_way;       /* longest way of a vertex in the frame, m, (nearest_count) */
    double searched;         /* time of the state from which the way led that `found` was last searched for, s */
    toile_voxels voxels;     /* of the cheap mode */
    toile_pairs particles;   /* near each other in it */
    double voxel;            /* m */
    unsigned char *tangled;  /* particles in a tangle at the state, TOILE_TANGLED_..., (n) */
    int crossings[2];        /* crossing pairs of triangles at the state: cloth with cloth, cloth with solids */
    toile_pairs found;       /* near each other somewhere on the way to the candidate */
    toile_press *hit;        /* sorted */
    int hit_count, hit_capacity;
    toile_couplings couplings;
    bool moved;              /* the guard changed the candidate */
    unsigned char *touched;  /* guard: points that moved since pairs were last checked, (points) */
    toile_zones zones;       /* guard */
    double *votes;           /* scratch: what contacts say of particles, (n x 4) */
} toile_self;

/* Before a frame: makes what is needed for the solids as they are now. */
toile_status toile_self_begin(struct toile_sim *sim, toile_error *error);
void toile_self_free(struct toile_sim *sim);

/* Before a step: pairs that are near at the state, if that is not known yet. Solids are `ahead` s later already. */
void toile_self_look(struct toile_sim *sim, double ahead);
/* Couplings of the pairs that are near; none if the step does not solve one linear system that they can be part of. */
void toile_self_find(struct toile_sim *sim, double h, bool linear);
/* Into A and b. */
void toile_self_assemble(struct toile_sim *sim);
/* Checks the candidate's way. True if it hits something that a new solve may avoid, and it may be solved `again`: couplings were
 * added. */
bool toile_self_missed(struct toile_sim *sim, double h, bool again);
/* Makes the candidate free of new intersections, false if that did not succeed. After toile_self_missed. In a small step cloth
 * that solids close on from two sides is let go: no step is short enough for that. */
bool toile_self_guard(struct toile_sim *sim, double h, bool small);
/* How much the straight way from the state to x, (n x 4), on which colliders stand still, hits: `hit`. Particles with one number in
 * `joined`, (n), are one at its end. Before a frame's first step, after toile_self_begin. */
int toile_self_meet(struct toile_sim *sim, const double *x, const int *joined);
/* The candidate has become the state. */
void toile_self_commit(struct toile_sim *sim);

/* ---- between self.c, press.c and guard.c ---- */

/* Has a point of its first side the same number as one of its second? Those from `count` on have none. */
bool toile_pair_shares(const toile_pair *pair, const int *number, int count);
/* The distance that a pair keeps, m. */
double toile_pair_thickness(const struct toile_sim *sim, const toile_pair *pair);
bool toile_pair_with_solid(const toile_self *self, const toile_pair *pair);
/* A particle of the cloth against a collider's face: contact.c holds it off. */
bool toile_pair_held_off(const toile_self *self, const toile_pair *pair);
/* Do the scene's rules let all particles of the one touch all of the other? */
bool toile_pair_may_touch(const struct toile_sim *sim, const toile_pair *pair);
/* Both sides are tangled already, or cloth rides with solids: what keeps others apart would keep them together. */
bool toile_pair_tangled(const struct toile_sim *sim, const toile_pair *pair);
/* Solids hold all of its particles: what is pinched together cannot be pressed apart, only thrown aside. */
bool toile_pair_caught(const struct toile_sim *sim, const toile_pair *pair);
/* Points at the step's begin, and the candidate's (or the state again) at its end. */
void toile_self_set_points(struct toile_sim *sim, const double *end);
/* `found`: pairs that are near each other somewhere on that way; and who crosses at its end, if asked. */
void toile_self_search(struct toile_sim *sim, bool crossings);
/* `near`: of these, those that are near at the end; and who is tangled there. */
void toile_self_keep_near(struct toile_sim *sim, double ahead);

#endif
