/* A primitive as a mesh that moves with it, inside of its surface. Particles are held off by closed forms (solid.c), but between its
 * particles cloth would hang through sharp edges, cut the corner between two primitives, and sink into what is small. */
#ifndef TOILE_SHELL_H
#define TOILE_SHELL_H

#include "solid.h"

/* Nothing of a plane, which has no edges. After its pose `from`. */
toile_status toile_shell_make(toile_memory *memory, toile_solid *solid, toile_error *error);
/* `to` has changed. */
void toile_shell_pose(toile_solid *solid);

#endif
