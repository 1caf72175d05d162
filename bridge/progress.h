/* How far a long task is: a bar for people, a line now and then for logs, JSON lines for programs. */
#ifndef TOILE_PROGRESS_H
#define TOILE_PROGRESS_H

#include "toile.h"

#include <stdbool.h>

typedef enum toile_progress_mode {
    TOILE_PROGRESS_AUTO, /* a bar if stderr is a terminal, else lines */
    TOILE_PROGRESS_BAR,
    TOILE_PROGRESS_JSON,
    TOILE_PROGRESS_NONE,
    TOILE_PROGRESS_OPENJD, /* lines as OpenJobDescription workers read them on stdout */
    TOILE_PROGRESS_LINES /* what auto becomes when nobody is watching; not to be asked for */
} toile_progress_mode;

/* Texts of the modes that can be asked for, null-terminated, in the enum's order. */
extern const char *const toile_progress_modes[];

typedef struct toile_progress {
    toile_progress_mode mode;
    int first, last;             /* frames of the whole task */
    double started, frame_began; /* s, monotonic */
    double seconds_per_frame;    /* smoothed */
    double line_time;            /* when the last line was printed */
    int line_tenth;              /* tenths of the task at that time */
    bool bar_open;               /* the cursor stands behind a bar */
} toile_progress;

/* Seconds of a clock that never jumps. */
double toile_now(void);

/* `done` frames of first..last were there before this run. */
void toile_progress_start(toile_progress *progress, toile_progress_mode mode, const char *task,
                          const char *name, const char *file, int first, int last, int done);
/* `statistics` of this frame, or null for a task that has none. */
void toile_progress_frame(toile_progress *progress, int frame, const toile_statistics *statistics);
/* `outcome` is complete or stopped; `note` a sentence for people. */
void toile_progress_end(toile_progress *progress, const char *outcome, int frame, const char *note);
/* To stderr as `toile: message` in every mode. */
void toile_progress_error(toile_progress *progress, int exit_code, const char *message);
/* Something to look at that does not end the task. */
void toile_progress_warn(toile_progress *progress, const char *message);

#endif
