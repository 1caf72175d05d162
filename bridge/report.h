/* The figures of a bake as one JSON object, for farms, comparisons and tests. */
#ifndef TOILE_REPORT_H
#define TOILE_REPORT_H

#include "error.h"
#include "toile.h"

#include <jansson.h>

typedef struct toile_report {
    double write_seconds;                             /* cache and checkpoint */
    json_t *frame, *seconds, *max_stretch, *contacts; /* arrays, one entry per frame of this run */
} toile_report;

/* What the report says besides the world's own figures. */
typedef struct toile_report_facts {
    const char *outcome; /* complete, stopped or failed */
    const char *message; /* of a failure, else "" */
    const char *scene_path, *cache_path;
    double fps;
    int first_frame, last_frame; /* planned */
    int finished;                /* frames in the cache, the start frame included */
    int resumed_from;            /* frame that was continued from, or first_frame */
    int64_t intersections;       /* triangle pairs, last finished frame */
    json_t *start, *left;        /* who meets whom at the start and in the last finished frame, arrays; or null */
    json_t *colliders;           /* that cross themselves at the start, array; or null */
} toile_report_facts;

toile_status toile_report_start(toile_report *report, toile_error *error);
void toile_report_frame(toile_report *report, int frame, const toile_statistics *statistics);
/* Written to a temporary name and renamed, so that a reader never sees half of it. */
toile_status toile_report_write(const toile_report *report, const char *path, toile_world *world,
                                const toile_report_facts *facts, toile_error *error);
void toile_report_free(toile_report *report);

#endif
