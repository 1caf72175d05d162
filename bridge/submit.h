/* Wedges to a queue: one description (DIR/farm.json) from which the files of every engine are made. An engine
 * is one submit_*.c and one row of the table in command_submit.c. Files are for people to read and change. */
#ifndef TOILE_SUBMIT_H
#define TOILE_SUBMIT_H

#include "wedge_plan.h"

#include <stdio.h>

typedef struct toile_farm {
    const toile_plan *plan;
    char name[64];                  /* of the job, plain */
    char folder[TOILE_WEDGE_PATH];  /* of the plan, whole path */
    char program[TOILE_WEDGE_PATH]; /* toile, as the nodes find it */
    char output[TOILE_WEDGE_PATH];  /* where the engine's files go */
    int cpus, memory, minutes;      /* of a bake: processors, MB (0: not said), longest run */
    int slots;                      /* bakes at a time; 0: as many as the queue allows */
    char formats[64];               /* to export to: "abc", or "" */
    char partition[64];             /* of Slurm, or "" */
    char manager[256];              /* of Flamenco: http://HOST:8080 */
    int mode;                       /* toile_progress_mode, of local */
} toile_farm;

/* Seconds: before the time limit a task is told; it leaves within the grace and what writing takes; a lost
 * machine's lock is gone. */
enum { TOILE_FARM_NOTICE = 90, TOILE_FARM_GRACE = 20, TOILE_FARM_WAIT = 90, TOILE_FARM_RETRIES = 3 };

typedef struct toile_engine {
    const char *name;
    /* Writes the files into farm->output. */
    toile_status (*write)(const toile_farm *farm, toile_error *error);
    /* Runs them; returns the exit code. */
    int (*run)(const toile_farm *farm);
} toile_engine;

extern const toile_engine toile_engine_slurm, toile_engine_openjd, toile_engine_flamenco, toile_engine_local;

/* ---- shared ---- */

/* Prints a text such that a shell reads it as one word. */
void toile_put_word(FILE *out, const char *text);
/* Prints a text in double quotes as JSON has it, which YAML and JavaScript read, too. */
void toile_put_quoted(FILE *out, const char *text);

/* A file that is printed into memory and then written whole. */
typedef struct toile_text_file {
    FILE *out;
    char *text;
    size_t size;
} toile_text_file;
toile_status toile_text_begin(toile_text_file *file, toile_error *error);
/* Writes it into farm->output. */
toile_status toile_text_end(toile_text_file *file, const toile_farm *farm, const char *name, bool executable,
                            toile_error *error);

/* Runs a program in farm->output and waits; the exit code, or -1 if there is no such program. */
int toile_run_program(const toile_farm *farm, char *const arguments[]);

#endif
