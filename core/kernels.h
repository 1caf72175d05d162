/* The hot loops, each compiled for several instruction sets and chosen once at run time. All variants give the same
 * bits (lanes.h); a test holds them to it.
 *
 * Element outputs, one record per element:
 *   triangle  G_u(3) G_v(3)  H_uu(6) H_vv(6) H_uv(9), padded to 28
 *   hinge     gradient(12)  moment  factor  bend  moment of another pass
 *   spring    direction(3)  along  across  G(3)
 * where G is force + (d force / d x) d with d = h v + y, the bracket of Baraff-Witkin eq. 18, and H what the element
 * adds to A = M - h df/dv - h^2 df/dx, positive semi-definite by construction. Of an element that is treated explicitly
 * G is the force and H exactly 0. */
#ifndef TOILE_KERNELS_H
#define TOILE_KERNELS_H

#include "live.h"
#include "model.h"

#include <stdbool.h>

enum { TOILE_TRIANGLE_RECORD = 28, TOILE_HINGE_RECORD = 16, TOILE_SPRING_RECORD = 8 };

/* The matrix A: diagonal blocks as three rows of four (last 0), off-diagonal blocks as nine numbers row by row. */
typedef struct toile_matrix {
    const toile_pattern *pattern;
    double *diagonal; /* (n x 12) */
    double *off;      /* (off_count x 9, and 3 more so that a row can be read as four) */
    double *spill;    /* what transposed blocks of a chunk add to rows after it, (spill total x 4) */
    const toile_live *live; /* blocks that are not 0; null: any may be something */
} toile_matrix;

/* Stretch that is nothing unusual in a moving garment. */
#define TOILE_STRETCH_USUAL 0.03

/* Where and how elements are evaluated. */
typedef struct toile_evaluation {
    const toile_model *model;
    const double *x, *v; /* positions and velocities of the forces, (n x 4) */
    const double *d;     /* known way from x to the step's end, m, (n x 4) */
    double h;            /* of A, s; 0: forces only, H = 0 */
    double turn;         /* step taken on the tangent from x, whose false stretch is left out (force_stretch.c), s */
    /* 1: implicit, 0: explicit, per element (per triangle for its stretch and its shear); null: all implicit */
    const double *stretch_share, *shear_share, *hinge_share, *spring_share;
} toile_evaluation;

struct toile_fast;
struct toile_fast_job;
struct toile_part;

/* What an assembly reads. */
typedef struct toile_assembly {
    const toile_model *model;
    double h;
    const double *triangle, *hinge, *spring; /* element records */
    const double *force;                     /* external, N, (n x 4) */
    const double *drag;                      /* external -h df/dv blocks: xx xy xz yy yz zz 0 0, (n x 8) */
    struct toile_fast *fast;                 /* also fill this in, or null */
    bool diagonal_only;                      /* off-diagonal blocks are not wanted in double (fast.h multiplies without) */
} toile_assembly;

/* Constraints of the particles that have any; S and z of thesis eq. 5.2. */
typedef struct toile_constraints {
    int count;
    int *particle;    /* ascending */
    int *chunk_begin; /* first of each chunk of rows, (chunks + 1) */
    double *filter;   /* S, three rows of four, (count x 12) */
    double *z;        /* (I - S) z: velocity changes in the constrained directions, m/s, (n x 4), 0 elsewhere */
} toile_constraints;

typedef struct toile_solve {
    toile_matrix *matrix;
    const toile_constraints *constraints;
    const struct toile_couplings *couplings; /* null: none */
    const double *b;        /* (n x 4) */
    double *x;              /* in: guess; out: answer, (n x 4) */
    double *r, *p, *s, *q;  /* scratch, (n x 4) each */
    double *inverse;        /* S P^-1 S blocks, three rows of four, (n x 12) */
    struct toile_fast *fast; /* its incomplete factor is used instead of `inverse` if not null */
    /* or this, q = S P^-1 S r in all rows by one thread; false: there is no answer */
    bool (*whole)(void *self, const double *r, double *q);
    void *self;
    /* of a system that is part of a larger one whose other directions are known: */
    const double *outer;    /* right side of that one in these directions, (n x 4); null: b */
    double energy;          /* what the known directions add to |x|_A^2 of the guess, kg m^2/s^2 */
    double *partial;        /* (4 x chunks) */
    double tolerance;       /* relative error in the energy norm (solve_stop.h) */
    bool thesis;            /* stop as the thesis does instead: delta <= tolerance2 delta_0 */
    double tolerance2;
    int iterations_max, threads;
    int iterations;         /* out */
    int products;           /* out: matrix products done */
    bool converged;         /* out */
    bool failed;            /* out: `whole` said so */
} toile_solve;

typedef struct toile_kernels {
    const char *name;
    /* elements [begin, end), multiples of 8 */
    void (*triangles)(const toile_evaluation *at, int begin, int end, double *record);
    /* bends: angles less rest, and room for moments, see sim.h */
    void (*hinges)(const toile_evaluation *at, int begin, int end, double *bends, double *record);
    /* after all hinges: their moments, in passes [0, passes of the model's hinges), each after all of the one before */
    void (*moments)(const toile_model *m, int pass, int begin, int end, double *bends, double *record);
    void (*springs)(const toile_evaluation *at, int begin, int end, double *record);
    /* stretch of each triangle in u and v, or of each stretch spring: largest change against `before` and largest
     * value; `now` receives the values. Elements [begin, end). Growth from u to o above rest counts as
     * (o - u) max(1, o / max(u, TOILE_STRETCH_USUAL)). */
    void (*stretch)(const toile_model *m, const double *x, int begin, int end, const double *before, double *now,
                    double *largest_change, double *largest);
    /* rows of one chunk: A and b */
    void (*assemble)(const toile_assembly *a, int chunk, toile_matrix *matrix, double *b);
    /* springs [begin, end) in the form of the fast solver (fast.h) */
    void (*convert_springs)(const double *record, int begin, int end, float *spring);
    /* rows of one chunk: b only, with the same bits */
    void (*gather)(const toile_assembly *a, int chunk, double *b);
    /* y = A x, in two parts with a barrier between: all chunks of the first, then all of the second */
    void (*multiply)(const toile_matrix *a, int chunk, const double *x, double *y);
    void (*multiply_spill)(const toile_matrix *a, int chunk, double *y);
    /* corrected modified PCG, thesis Fig. 5.2; `inverse` or `factor` is filled in by the caller */
    void (*mpcg)(toile_solve *solve);
    /* a part of a system on its own (solve_part.h): iterations, 0 if solved directly, -1 if it did not end well */
    int (*part)(const struct toile_part *part);
    /* one row of y = A x from the records of its elements; A's diagonal is assembled */
    void (*multiply_row)(const toile_assembly *a, const toile_matrix *matrix, int row, const double *x, double *y);
    /* the fast solver (fast.h), and rows of a chunk of its product in double from the springs' records */
    void (*fast_guess)(struct toile_fast_job *job);
    void (*fast_solve)(struct toile_fast_job *job);
    void (*fast_multiply_springs)(const struct toile_fast *f, const toile_matrix *a, const double *record, int chunk,
                                  const double *x, double *y);
} toile_kernels;

/* The best this machine runs, or the named one ("sse2", "avx2", "avx512"); null if it cannot run it. */
const toile_kernels *toile_kernels_find(const char *name);

#endif
