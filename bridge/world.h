/* What the program and the tests may see of a world besides toile.h. */
#ifndef TOILE_WORLD_H
#define TOILE_WORLD_H

#include "sim.h"
#include "toile.h"

/* Null before toile_build. */
toile_sim *toile_world_sim(toile_world *world);

#endif
