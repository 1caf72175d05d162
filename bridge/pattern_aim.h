/* A pattern that was placed for a smaller body or for other arms, brought to this one: what does not hang at
 * a waist is raised as a whole, and sleeves are turned around their armholes until arms are in them. */
#ifndef TOILE_PATTERN_AIM_H
#define TOILE_PATTERN_AIM_H

#include "body_field.h"
#include "pattern_garmentcode.h"

/* Changes positions and rotations of panels, those of `read` too. `joins`, (seam_count): seams at a waist,
 * see pattern_waist.h. The search is done on a mesh with edges of `edge_length`, m; what is good enough as it
 * is stays. */
toile_status toile_pattern_aim(toile_memory *memory, toile_garmentcode *read, const bool *joins,
                               const toile_body_field *body, double edge_length, toile_error *error);

#endif
