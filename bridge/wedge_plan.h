/* A wedge: one scene baked with many values. The plan is a JSON file in a folder of its own, beside a copy of
 * the scene, so that the folder alone is all that another machine needs:
 *
 *   DIR/plan.json            what varies, and every combination by name, with the --set that it is baked with
 *   DIR/scene.json, job.h5   the scene, or the scene with its meshes
 *   DIR/NAME/NAME.h5         a cache for each; beside it .heartbeat.json, .report.json and what was exported
 *   DIR/report/              table, pictures, contact sheet
 *
 * People may edit the plan: it is read strictly, and only what it says is done. */
#ifndef TOILE_WEDGE_PLAN_H
#define TOILE_WEDGE_PLAN_H

#include "bake.h"
#include "error.h"

#include <jansson.h>
#include <stdbool.h>

enum { TOILE_WEDGE_PATH = 4096, TOILE_WEDGES_MOST = 100000 };

typedef struct toile_plan {
    char folder[TOILE_WEDGE_PATH]; /* without a slash at its end */
    json_t *root;
    int count;
} toile_plan;

/* What is asked for. */
typedef struct toile_plan_request {
    const char *scene_path; /* scene or job */
    const char *folder;
    const char *const *vary; /* "KEY=a,b,c", "KEY=lo:hi:n", "KEY=lo:hi:n:log", with random "KEY=lo:hi" */
    int vary_count;
    const char *const *sets; /* common to all */
    int set_count;
    const char *list_path; /* or null: CSV with a key per column and a wedge per row */
    int random;            /* how many; 0: the grid of all combinations */
    int seed;
    toile_frame_range frames;
} toile_plan_request;

/* Makes the folder, the scene in it and the plan. Values that the scene refuses are found here, not on the
 * farm: each is tried once. A folder that has a plan is left alone unless the new plan is the same. `notes`
 * gets what the user should know, or
 * "". */
toile_status toile_plan_make(const toile_plan_request *request, toile_plan *plan, char *notes, size_t size,
                             toile_error *error);
/* Whether there is a plan: `path` is a folder with one, or the plan itself. */
bool toile_plan_exists(const char *path);
toile_status toile_plan_read(const char *path, toile_plan *plan, toile_error *error);
void toile_plan_free(toile_plan *plan);

/* Of a wedge, 0 to count - 1. */
const char *toile_plan_name(const toile_plan *plan, int wedge);
const json_t *toile_plan_values(const toile_plan *plan, int wedge); /* {key: value} as they were varied */
/* DIR/NAME/NAME + ending. */
void toile_plan_path(const toile_plan *plan, int wedge, const char *ending, char path[TOILE_WEDGE_PATH]);
void toile_plan_scene(const toile_plan *plan, char path[TOILE_WEDGE_PATH]);
/* Makes DIR/NAME. */
toile_status toile_plan_make_folder(const toile_plan *plan, int wedge, toile_error *error);
/* The common sets and the wedge's own; the array is to be freed, the texts are the plan's. Null: no memory.
 */
const char **toile_plan_sets(const toile_plan *plan, int wedge, int *count);
toile_frame_range toile_plan_frames(const toile_plan *plan);

/* A folder and those above it. */
toile_status toile_make_folder(const char *path, toile_error *error);
/* A text file that appears when it is whole. */
toile_status toile_write_text(const char *path, const char *text, size_t size, bool executable,
                              toile_error *error);
/* A text's words as one name that every file system bears. */
void toile_plain_name(const char *text, char *name, size_t size);

#endif
