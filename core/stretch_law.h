/* The stretch law of force_stretch.h, eight at a time. */
#ifndef TOILE_STRETCH_LAW_H
#define TOILE_STRETCH_LAW_H

#include "force_stretch.h"
#include "lanes.h"

TOILE_INLINE v8 stretch_law(v8 e, v8 onset, v8 curve, v8 knee, v8 *slope) {
    v8 beyond = e - onset, q = v8_min(v8_max(beyond, v8_set(0)), knee);
    *slope = 1 + 2 * curve * q;
    return e + curve * q * (2 * beyond - q);
}

/* That of the limit, in parts of its stiffness. */
TOILE_INLINE v8 limit_law(v8 beyond, v8 *slope) {
    v8 q = v8_min(v8_max(beyond, v8_set(0)), v8_set(TOILE_LIMIT_KNEE));
    *slope = q / TOILE_LIMIT_KNEE;
    return q * (2 * beyond - q) / (2 * TOILE_LIMIT_KNEE);
}

#endif
