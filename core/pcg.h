/* Preconditioned conjugate gradients on the reduced system: uPCG of Ye, Webber and Wang 2008, section 2
 * and 3. The preconditioner is the caller's. The same bits for any number of threads. */
#ifndef TOILE_PCG_H
#define TOILE_PCG_H

#include "reduce.h"
#include "solve.h"

typedef struct toile_pcg {
    toile_memory *memory;
    double *y;             /* answer, (3 n) like the rest */
    double *right, *plain; /* U' (b - A (I - S) z) and U' b */
    double *r, *p, *s, *q;
    double *partial; /* (4 x chunks) */
    /* q = P^-1 r: in the rows of a chunk, or, if `chunk` is null, in all at once on one thread */
    void (*chunk)(const void *self, int chunk, const double *r, double *q);
    bool (*whole)(void *self, const double *r, double *q);
    void *self;
} toile_pcg;

toile_status toile_pcg_make(toile_memory *memory, const toile_pattern *pattern, toile_pcg *pcg,
                            toile_error *error);
void toile_pcg_free(toile_pcg *pcg);

/* Solves the system, whose matrix is in `matrix` already. Sets all results of the system. */
void toile_pcg_solve(toile_pcg *pcg, toile_reduced *matrix, toile_system *system);

#endif
