/* Short keys of a wedge written out as --set takes them: "fabric" is that of every garment, "friction" of
 * every collider. */
#ifndef TOILE_WEDGE_SETS_H
#define TOILE_WEDGE_SETS_H

#include "error.h"

#include <jansson.h>
#include <stdbool.h>

/* `scene` is resolved (every name and fabric written out), `grids_fixed`: so are the resolutions of its
 * grids. `sets` gets texts of the form path=value. */
toile_status toile_wedge_sets(const json_t *scene, bool grids_fixed, const json_t *values, json_t *sets,
                              toile_error *error);

/* Names of garments whose panels have fabrics of their own, which a new fabric of the garment leaves as they
 * are; "" if none. */
void toile_wedge_own_fabrics(const json_t *scene, char *names, size_t size);

#endif
