/* What `toile export` gives to a format and what a format gives back. A format is one export_*.c and one row
 * of the table in command_export.c, which owns the loop over frames, progress, and signals. */
#ifndef TOILE_EXPORT_JOB_H
#define TOILE_EXPORT_JOB_H

#include "bake.h"
#include "cache.h"
#include "progress.h"
#include "scene.h"

#include <stdbool.h>

enum { TOILE_PATH_SIZE = 4096, TOILE_NAME_SIZE = 208 };

typedef enum toile_up { TOILE_UP_Y, TOILE_UP_Z } toile_up;

typedef struct toile_export {
    const char *cache_path, *output, *garment_name, *scene_path;
    bool colliders;
    toile_frame_range range;
    int mode; /* toile_progress_mode */
    int up;   /* toile_up of what is written; the scene is Z up */
    double scale;
    double fps;       /* that the output plays at; the cache's own unless asked otherwise */
    int offset;       /* added to frame numbers */
    int subframes;    /* samples per frame, at least 1 (.abc) */
    double shutter;   /* part of a frame that they span */
    bool stretch;     /* write the stretch of every face (.abc) */

    toile_memory memory;
    toile_error error;
    toile_cache *cache;
    toile_scene *scene; /* prepared for the frame in work; null without --colliders */
    int first, last;    /* frames */
    int *garments;      /* which of the cache's are wanted, (garment_count) */
    int garment_count;
    float *positions, *velocities; /* room for the largest of them, (x 3) */
    toile_progress progress;
} toile_export;

/* A format. `state` is its own; null before begin. Calls report through job->error. */
typedef struct toile_export_format {
    const char *ending, *label;
    toile_up up;    /* unless --up says otherwise */
    bool colliders; /* can hold them */
    bool retimes;   /* can hold another rate, other frame numbers */
    toile_status (*begin)(toile_export *job, void **state);
    toile_status (*frame)(toile_export *job, void *state, int frame);
    /* Always called once after begin, even a failed one. keep: everything is written, make the files appear;
     * otherwise leave none behind. Frees the state. */
    toile_status (*end)(toile_export *job, void *state, bool keep);
} toile_export_format;

extern const toile_export_format toile_export_obj, toile_export_abc, toile_export_pc2, toile_export_mdd, toile_export_xmf;

/* ---- for the formats ---- */

/* Positions, and velocities unless null, of a garment by its number in the cache. */
toile_status toile_export_read(toile_export *job, int frame, int garment, float *positions,
                               float *velocities);

/* A point of the scene in the axes and unit of the output. */
void toile_export_place(const toile_export *job, const double from[3], double to[3]);

/* names[count - 1] becomes `name` with only letters, digits, '_', '-' and non-ASCII in it, and unlike those
 * before it: what file systems, Alembic and the tools that read it can all bear. `fallback` stands for an
 * empty one. */
void toile_export_name(const char *name, const char *fallback, char (*names)[TOILE_NAME_SIZE], int count);

/* A file that appears under its name only when it is whole: until then it is PATH.PID.tmp in the same folder.
 */
typedef struct toile_export_file {
    char path[TOILE_PATH_SIZE], temporary[TOILE_PATH_SIZE];
} toile_export_file;

/* Makes the temporary file, empty. On failure there is none and `temporary` is "". */
toile_status toile_export_file_begin(toile_export_file *file, const char *path, toile_error *error);
/* Renames; what is in the file must be on disk by now. */
toile_status toile_export_file_keep(toile_export_file *file, toile_error *error);
/* Removes the temporary file if there still is one. */
void toile_export_file_drop(toile_export_file *file);

#endif
