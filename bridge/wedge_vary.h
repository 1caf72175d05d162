/* What varies in a wedge: "KEY=a,b,c", ranges, CSV lists, random draws; as JSON values. */
#ifndef TOILE_WEDGE_VARY_H
#define TOILE_WEDGE_VARY_H

#include "error.h"
#include "wedge_plan.h"

/* All combinations that a request asks for: an array of {"name": text or absent, "values": {key: value}}, in
 * order. */
toile_status toile_vary(const toile_plan_request *request, json_t **combinations, toile_error *error);

/* A value as --set reads it: JSON, or else a text. A new reference; null if it is not UTF-8. */
json_t *toile_set_value(const char *text);

#endif
