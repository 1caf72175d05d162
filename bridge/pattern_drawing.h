/* Panels from the lines of a drawing: which lines are outlines, which of two is the sew line, where edges
 * begin, how the grain runs. The result is a pattern in GarmentCode's form (pattern_garmentcode.h), in
 * centimetres unless the companion says otherwise: every panel's origin is the middle of the box around it,
 * its warp as upright as quarter turns make it, its right side towards the viewer.
 *
 * A drawing has no seams and no places. A companion may give them: "pattern" with "panels" by name
 * ("translation", "rotation"; "piece": a panel of the drawing under another name; "mirror": turned over) and
 * "stitches". Panels that it does not name are left out; those without a place lie side by side in front of
 * the body. */
#ifndef TOILE_PATTERN_DRAWING_H
#define TOILE_PATTERN_DRAWING_H

#include "drawing.h"
#include "pattern_garmentcode.h"

/* `companion` may be null. */
toile_status toile_pattern_from_drawing(const toile_drawing *drawing, const json_t *companion,
                                        const char *companion_path, toile_garmentcode_log *log, void *user,
                                        json_t **root);

#endif
