/* Cloth that crosses itself or a solid already: garments that start inside one another, cloth that was pinched. The guard keeps
 * new crossings out (self.h); this pulls the old ones apart. */
#ifndef TOILE_TANGLE_H
#define TOILE_TANGLE_H

#include "skin.h"

struct toile_sim;

typedef struct toile_tangle {
    toile_pairs crossing; /* pairs of triangles that cross at the state, by key */
    double *pull;         /* of each particle: direction x weight, and weight, (n x 4); null before the first crossing */
} toile_tangle;

/* Takes over the crossings that the last search found: its end has become the state. */
void toile_tangle_keep(struct toile_sim *sim);
/* Adds the pull to the forces of a step, and what it presses to its couplings, if it is one of a linear system. After
 * toile_self_find. */
void toile_tangle_pull(struct toile_sim *sim, double h, bool linear);
void toile_tangle_free(struct toile_sim *sim);

#endif
