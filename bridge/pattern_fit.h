/* Panels placed around a body before they are sewn: bent around axes of their own and moved, so that they start outside
 * of the body, do not cross each other, and have short ways to what they are sewn to. */
#ifndef TOILE_PATTERN_FIT_H
#define TOILE_PATTERN_FIT_H

#include "body_field.h"
#include "pattern.h"

typedef struct toile_fit_report {
    double gap_before, gap_after;   /* root mean square way from vertex to vertex of all seams, m */
    double gap_widest;              /* m, after */
    int inside_before, inside;      /* vertices nearer to the body than the margin, before and after */
    int crossing_before, crossing;  /* pairs of panels that cross each other */
    int through;                    /* stitches whose straight way goes through the body, after */
    int worst_panel;                /* one that is still too near, or -1 */
} toile_fit_report;

/* How many panels have been placed, of how many; each is placed several times. */
typedef void toile_fit_progress(void *user, int done, int total);

/* Changes positions and bends of `panels`, which are those of the pattern, in the body's frame. The search is done on a
 * mesh with edges of `edge_length`. Where nothing is free, a panel stays as it is, and the report says so. `joins`,
 * (seam_count): seams that do not draw their panels to each other; `lower`, (panel_count): panels that lie below the others, and
 * count as body for them. `tell` may be null. */
toile_status toile_pattern_fit(toile_memory *memory, const toile_pattern *pattern, toile_pattern_panel *panels,
                               const bool *joins, const bool *lower, const toile_body_field *body, double margin,
                               double edge_length, toile_fit_progress *tell, void *user, toile_fit_report *report,
                               toile_error *error);

#endif
