/* Waists of a pattern: edges labelled `lower_interface`, which hang at the waist of the body. GarmentCode puts a skirt below
 * the bodice that it is sewn to, however long that is; the skirt belongs at the waist, with a bodice that is longer hanging
 * over it. So all that hangs at a waist is raised to it before panels are placed. */
#ifndef TOILE_PATTERN_WAIST_H
#define TOILE_PATTERN_WAIST_H

#include "pattern_garmentcode.h"

/* Moves panels upwards or downwards, so that the middle of each waist is at `height`, m. `joins`, (seam_count), gets which
 * seams join a waist to another part; `lower`, (panel_count), which panels hang at one that is joined so. */
toile_status toile_pattern_raise(toile_memory *memory, toile_garmentcode *read, double height, bool *joins, bool *lower,
                                 toile_error *error);

/* How far the part of a panel that is sewn to a waist from above begins below it, m, and how high it begins; 0: it does not.
 * To be asked after raising. */
double toile_pattern_overhang(const toile_garmentcode *read, double height, const bool *joins, int panel, double *begins);

#endif
