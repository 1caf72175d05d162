#ifndef TOILE_FAST_PATTERN_H
#define TOILE_FAST_PATTERN_H

#include "fast.h"

/* For steps of this length, s. False if memory is short; free it in any case. */
bool toile_fast_pattern_make(toile_memory *memory, const toile_model *model, double step, toile_fast_pattern *pattern);
void toile_fast_pattern_free(toile_memory *memory, toile_fast_pattern *pattern);

#endif
