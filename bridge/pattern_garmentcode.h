/* Patterns of GarmentCode: JSON with panels, edges with relative curves, stitches. Read strictly where a mistake would
 * change the garment; what is known to exist and not used is told to the log.
 *
 * Beyond what GarmentCode writes, for patterns that come from drawings (pattern_drawing.h): a curvature "through" whose
 * params are points in units of the file; a panel's "grain" in degrees, and "clockwise": its edges run that way round seen
 * from its right side; a stitch's side as a list of edges, in the order in which the first side is walked. */
#ifndef TOILE_PATTERN_GARMENTCODE_H
#define TOILE_PATTERN_GARMENTCODE_H

#include "pattern.h"

#include <jansson.h>

typedef struct toile_garmentcode_label {
    int panel, edge;
    const char *label;
} toile_garmentcode_label;

typedef struct toile_garmentcode {
    toile_pattern pattern;          /* lengths in metres; y is up */
    toile_pattern_panel *panels;    /* those of the pattern */
    double (*origin)[3], (*rotate)[3]; /* as written: m, degrees; (panel_count) */
    int label_count;
    toile_garmentcode_label *labels;
    /* what the above points to */
    json_t *root;
    toile_pattern_edge *edges;
    double (*points)[3];            /* that edges go through */
    int *loop_sizes;
    toile_pattern_seam *seams;
    toile_pattern_side *sides;
} toile_garmentcode;

typedef void toile_garmentcode_log(void *user, const char *line);

/* `length` bytes of text; `path` is for messages. */
toile_status toile_garmentcode_read(toile_memory *memory, const char *path, const char *text, size_t length,
                                    double edge_length, toile_garmentcode_log *log, void *user, toile_garmentcode *read,
                                    toile_error *error);
/* The same of a JSON value, which is taken over. */
toile_status toile_garmentcode_take(toile_memory *memory, const char *path, json_t *root, double edge_length,
                                    toile_garmentcode_log *log, void *user, toile_garmentcode *read, toile_error *error);
/* Along an edge, m. */
double toile_garmentcode_length(const toile_garmentcode *read, int panel, int edge);
void toile_garmentcode_free(toile_memory *memory, toile_garmentcode *read);

#endif
