/* The state: the least that decides the next step. What a checkpoint saves and a hash covers. */
#ifndef TOILE_STATE_H
#define TOILE_STATE_H

#include "model.h"

/* How a particle stands to the collider it touches. */
enum { TOILE_TOUCH_STICK = 1, TOILE_TOUCH_SLIDE = 2, TOILE_TOUCH_GRIP = 3,
       /* bits, for cloth against cloth and against the edges of colliders: slides, is pressed on */
       TOILE_TOUCH_RUB = 4, TOILE_TOUCH_PRESSED = 8, TOILE_TOUCH_LAYER = 12,
       TOILE_TOUCH_MODE = 3,
       /* lies in a crease: both of its faces press */
       TOILE_TOUCH_CREASE = 16,
       /* rides with two surfaces that have closed on it (pinch.c) */
       TOILE_TOUCH_RIDE = 32,
       /* from this bit on: a face of the collider that would have to pull, and is left alone until it is approached, + 1 */
       TOILE_TOUCH_LEFT_SHIFT = 6 };

typedef struct toile_touch {
    int32_t solid;       /* -1: none */
    int32_t mode;
    double force;        /* normal force of the last step, N: friction of the next */
    double direction[3]; /* of sliding, or of the pull that made it slide, unit; gripping: of friction, as share of its
                          * limit; riding: from its solid to the other surface; 0 if none */
    /* of a particle that touches no collider, if layers press it (press.c): force is what friction owes it, direction[0] the
     * normal impulse guessed in the last step, both N s */
} toile_touch;

typedef struct toile_state {
    int n;
    double *x;           /* positions, m, (n x 4), written by commit */
    double *v;           /* velocities, m/s, (n x 4) */
    double *dv;          /* velocity change of the last step: the solver's first guess, m/s, (n x 4) */
    double *older;       /* that of the step before it, m/s, (n x 4) */
    toile_touch *touch;  /* (n) */
    double time;         /* s since the start */
    double shift;        /* raise of the incomplete factor's diagonal that held in the last step */
    int32_t direct_left; /* steps to solve directly before the fast solver is tried again */
    /* history of two-step integrators. dv and dx are what a step did in free directions; in constrained ones a particle
     * counts as having always moved at its velocity: a blow is no trend */
    double *dx;          /* way of the last step, m, (n x 4); null in one-step integrators */
    double last_step;    /* its length, s; 0: none yet */
    /* step length, Baraff-Witkin section 7: time_step / 2^level */
    int32_t level;
    int32_t successes;   /* steps accepted since the level changed */
    int32_t patience;    /* successes wanted before a longer step is tried */
    int32_t trying;      /* the level was lowered and has not yet had a success */
} toile_state;

toile_status toile_state_make(toile_memory *memory, const toile_model *model, bool history, toile_state *state,
                              toile_error *error);
void toile_state_free(toile_memory *memory, toile_state *state);
void toile_state_copy(const toile_state *from, toile_state *to);

uint64_t toile_state_hash_of(const toile_state *state);

/* As bytes, little endian, in a fixed layout; history comes last and only if there is any. */
size_t toile_state_bytes(const toile_state *state);
void toile_state_write(const toile_state *state, void *bytes);
/* Refuses bytes of another size or with numbers that are not finite. */
toile_status toile_state_read(toile_state *state, int solid_count, const void *bytes, size_t size, toile_error *error);

#endif
