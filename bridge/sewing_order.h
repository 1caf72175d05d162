/* When what is sewn: the plan of a drape of a pattern on a body, at 24 frames a second. It is sewn without weight, then weight
 * comes, then there is time to come to rest.
 *
 * Tubes are closed first, as a tailor does, and darts; then they are joined: a sleeve that is drawn to its armhole while its
 * seams are open loses the arm. Bands that nothing holds are drawn to their panels from the beginning: what floats until its
 * turn is pushed away by what is sewn beside it, as a piece of a cuff to the other side of the hand. Where two tubes part,
 * inside of the legs, they are closed before the other seams: legs stand too near to each other for panels that have the leg in
 * their middle, and sewn on both sides at once trousers on a waistband drew their inseams, 3 cm beside the ankle where they
 * start, over it to the outside.
 * What is sewn to a waist from above and is too long is joined to it when it hangs on the shoulders: it shrinks to the length
 * that there is, is joined, and grows again, so that it hangs over the waist. Pushed together it would crumple. */
#ifndef TOILE_SEWING_ORDER_H
#define TOILE_SEWING_ORDER_H

#include "pattern_garmentcode.h"

enum {
    TOILE_PLAN_FPS = 24,
    /* frames */
    TOILE_PLAN_FIRST = 1,
    TOILE_PLAN_PARTED = 13, /* the insides of legs are closed */
    TOILE_PLAN_TUBES = 25,  /* tubes and darts are */
    TOILE_PLAN_SEWN = 49,   /* and what joins them */
    TOILE_PLAN_WEIGHT = 61, /* all weight is there */
    TOILE_PLAN_SHRUNK = 73, /* what is too long above a waist has its least length */
    TOILE_PLAN_JOINED = 85, /* it is sewn to the waist */
    TOILE_PLAN_GROWN = 133, /* it has its own length again */
    /* how many */
    TOILE_PLAN_HELD = 24, /* pins hold after all is sewn */
    TOILE_PLAN_REST = 108 /* and then it comes to rest */
};

/* N m. Panels are as stiff as card until they are sewn: soft ones crumple where seams meet and are gathered,
 * and a fold is caught in an armpit for good. A tunic with puffed sleeves at 2 cm has 13 stitches open as
 * soft as it is, 6 with a tenth of this, none with this. */
#define TOILE_SEWN_BEND 6e-3

typedef struct toile_sewing_order {
    const toile_garmentcode *read;
    const bool *joins; /* seams that join a waist to what is above, (seam_count); see pattern_waist.h */
    bool grows;        /* something shrinks until it is joined there */
} toile_sewing_order;

/* Do seams make a tube of the panel and another one? */
bool toile_in_tube(const toile_sewing_order *order, int panel);

/* Of trousers: from waist to waist through the crotch, m. INFINITY: there are no legs. */
double toile_sewn_rise(const toile_sewing_order *order);

/* Frames in which a seam is sewn: the first and the last. */
void toile_sewn_when(const toile_sewing_order *order, int seam, int frames[2]);

#endif
