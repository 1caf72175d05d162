/* Zones: particles that move as one because nothing else kept them apart (Provot 1997; Bridson, Fedkiw and Anderson 2002, section
 * 7.5). A zone moves and turns as its mass does, d = c + w x r, c and w from its momenta; with a collider or pin in it, as these.
 *
 * w x r is a straight way, not an arc: all that it does to distances is to make them a little longer, by (w t)^2 / 2. So
 * within a zone nothing approaches, at no time of the step. */
#ifndef TOILE_ZONE_H
#define TOILE_ZONE_H

#include "memory.h"

#include <stdbool.h>

struct toile_sim;

/* The motion of a zone, at its leader. */
typedef struct toile_zone {
    double mass, centre[3]; /* kg, m, at the step's begin */
    double way[3], turn[3]; /* c and w over the step, m and rad; while they are summed: momenta */
    double inertia[6];      /* xx xy xz yy yz zz, kg m^2 */
} toile_zone;

typedef struct toile_zones {
    int *leader;        /* of each particle's zone, or towards it, (n) */
    unsigned char *in;  /* in a zone of more than one, (n) */
    double *way;        /* of each particle before it was in one, m, (n x 4) */
    toile_zone *zone;   /* (n) */
} toile_zones;

bool toile_zones_make(toile_memory *memory, int particles, toile_zones *zones);
void toile_zones_free(toile_memory *memory, toile_zones *zones);

/* Every particle is its own, and goes the way from the skin's begin to its end. */
void toile_zones_begin(struct toile_sim *sim);
/* The particles of every hit become one zone; ends of the skin are moved, and told of in `touched`. */
void toile_zones_join(struct toile_sim *sim);
/* The leader of a particle's zone. */
int toile_zone_leader(toile_zones *zones, int particle);

#endif
