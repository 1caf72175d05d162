/* Status codes of every call that can fail.
 *
 *   0 fine,  > 0 usable with a warning,  < 0 failed.
 *
 * One list makes the enum, the names, the program's exit codes and the documentation. Columns: name, value,
 * exit code of the program, one sentence.
 */
#ifndef TOILE_STATUS_H
#define TOILE_STATUS_H

#define TOILE_STATUS_LIST(X)                                                                          \
    X(OK, 0, 0, "done")                                                                               \
    X(WARNING, 1, 0, "done, with something to look at in the log")                                    \
    X(INVALID, -1, 3, "the input is not acceptable; the message names the value and what is allowed") \
    X(NO_MEMORY, -2, 4, "memory ran out; nothing was changed")                                        \
    X(DIVERGED, -3, 4, "the simulation failed at the smallest time step; the last state is kept")     \
    X(IO, -4, 5, "a file could not be read or written")                                               \
    X(FORMAT, -5, 3, "a file is damaged or of another format")                                        \
    X(MISUSE, -6, 2, "a call was made in the wrong order or with a null handle")                      \
    X(CANCELLED, -7, 75, "stopped on request; what was finished is kept")

typedef enum toile_status {
#define TOILE_STATUS_ENUM(name, value, exit_code, text) TOILE_##name = value,
    TOILE_STATUS_LIST(TOILE_STATUS_ENUM)
#undef TOILE_STATUS_ENUM
} toile_status;

#define TOILE_API __attribute__((visibility("default")))

TOILE_API const char *toile_status_name(toile_status status);
TOILE_API const char *toile_status_text(toile_status status);
/* What a program that ends with this status should return. */
TOILE_API int toile_status_exit_code(toile_status status);

#endif
