/* Seams that are sewn: pairs of vertices that are pulled together and become one. Part of the public interface. */
#ifndef TOILE_SEAM_H
#define TOILE_SEAM_H

#include "status.h"

/* Edges that are sewn together. From `begin` on the pull brings their pairs of vertices together within `duration`; pairs
 * that have closed are then welded into one particle with several (u, v). Start from toile_default_seam(). */
typedef struct toile_seam {
    const char *name;      /* or null */
    double begin;          /* sewing starts, s after the simulation does */
    double duration;       /* time in which the pairs close, s, >= 0 */
    double release;        /* the seam comes apart again, s of toile_time; infinite: never */
    double fold_angle;     /* at rest across the welded seam, rad: 0 is flat, positive folds the fronts together */
    double strength;       /* largest pull while sewing, N per metre of seam, > 0 */
} toile_seam;

/* Two vertices that become one. A vertex may be in several stitches; all that hang together become one particle. */
typedef struct toile_stitch {
    int seam, a, b;
} toile_stitch;

/* A second of sewing from the start, flat, never released. */
TOILE_API toile_seam toile_default_seam(void);

#endif
