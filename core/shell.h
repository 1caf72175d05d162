/* The edges and corners of boxes and cylinders, as a mesh that moves with them: particles are held off by closed forms (solid.c), but
 * between its particles cloth would hang through a sharp edge. A cylinder's rims have corners, whose chords lie inside. */
#ifndef TOILE_SHELL_H
#define TOILE_SHELL_H

#include "solid.h"

/* Of a primitive that has edges; nothing of others. After its pose `from`. */
toile_status toile_shell_make(toile_memory *memory, toile_solid *solid, toile_error *error);
/* `to` has changed. */
void toile_shell_pose(toile_solid *solid);

#endif
