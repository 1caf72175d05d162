/* How far wedges are, and what came out: a table, pictures, a contact sheet. */
#ifndef TOILE_WEDGE_REPORT_H
#define TOILE_WEDGE_REPORT_H

#include "wedge_plan.h"

/* A wedge as it is on disk. */
typedef struct toile_wedge_state {
    const char *name; /* waiting, running, stopped, failed, complete */
    bool complete;
    int done, frames; /* frames 0: nothing is known of it yet */
    char host[128];   /* of who worked on it last */
    char message[1024];
} toile_wedge_state;

void toile_wedge_look(const toile_plan *plan, int wedge, toile_wedge_state *state);

/* `toile wedge report`. */
int toile_wedge_report_command(int argc, char **argv);
/* Writes DIR/report; returns the exit code. frame INT_MIN: the last. */
int toile_wedge_report(const toile_plan *plan, int frame, int size);

#endif
