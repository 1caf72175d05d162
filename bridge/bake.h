/* A scene becomes a cache, frame by frame, in a way that can be stopped at any time and continued to the same
 * bits. */
#ifndef TOILE_BAKE_H
#define TOILE_BAKE_H

#include "progress.h"

#include <stdbool.h>

typedef struct toile_frame_range {
    bool given;
    int first, last;
} toile_frame_range;

typedef struct toile_bake_options {
    const char *scene_path, *cache_path;
    const char *report_path;  /* or null */
    toile_frame_range frames; /* instead of the scene's; with resume its first one is where frames are made anew */
    bool resume;              /* go on after the last frame */
    bool force;               /* with resume: even if the scene has changed */
    double position_error;    /* m; above 0: stored positions may be off by as much, and are smaller */
    int threads;              /* below 0: as the scene says, but no more than the process was given */
    const char *const *sets;  /* "path=value" */
    int set_count;
    toile_progress_mode progress;
    const char *heartbeat_path; /* or null: a file that shows how far the bake is and that it lives */
    double grace;             /* s that the frame in work may take after a signal; below 0: as long as it needs */
} toile_bake_options;

/* Seconds that are long for a frame and well below what queues give between a signal and the end (Slurm: 30). */
#define TOILE_BAKE_GRACE 10.0

/* Runs the bake, tells about it on stderr and stdout, and returns the program's exit code. For the time it
 * runs it takes over SIGINT, SIGTERM, SIGHUP and SIGUSR1 unless they are ignored: the first ends the bake
 * after the frame in work, or after `grace` without it; the second ends that frame at once. */
int toile_bake(const toile_bake_options *options);

#endif
