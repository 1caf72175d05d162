/* The message that goes with a status: what went wrong, where, and what to do next. */
#ifndef TOILE_ERROR_H
#define TOILE_ERROR_H

#include "status.h"

typedef struct toile_error {
    toile_status status;
    char message[1024];
} toile_error;

/* Stores status and message (printf form) and returns the status. `error` may be null. */
toile_status toile_fail(toile_error *error, toile_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for memory that could not be had: `what` names the thing it was for. */
toile_status toile_fail_memory(toile_error *error, const char *what);

#endif
