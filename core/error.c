#include "error.h"

#include <stdarg.h>
#include <stdio.h>

toile_status toile_fail(toile_error *error, toile_status status, const char *format, ...) {
    if (error) {
        error->status = status;
        va_list args;
        va_start(args, format);
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
    }
    return status;
}

toile_status toile_fail_memory(toile_error *error, const char *what) {
    return toile_fail(error, TOILE_NO_MEMORY,
                      "not enough memory for %s; close other programs or lower the resolution", what);
}

const char *toile_status_name(toile_status status) {
    switch (status) {
#define CASE(name, value, exit_code, text) \
    case TOILE_##name: return #name;
        TOILE_STATUS_LIST(CASE)
#undef CASE
    }
    return "UNKNOWN";
}

const char *toile_status_text(toile_status status) {
    switch (status) {
#define CASE(name, value, exit_code, text) \
    case TOILE_##name: return text;
        TOILE_STATUS_LIST(CASE)
#undef CASE
    }
    return "unknown status";
}

int toile_status_exit_code(toile_status status) {
    switch (status) {
#define CASE(name, value, exit_code, text) \
    case TOILE_##name: return exit_code;
        TOILE_STATUS_LIST(CASE)
#undef CASE
    }
    return 4;
}
