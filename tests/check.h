/* The few macros the C tests share. A test program lists its tests with RUN and ends with FINISH. */
#ifndef TOILE_CHECK_H
#define TOILE_CHECK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_passed, check_failed, check_skipped;
static const char *check_name = "";

/* One check. The text after the condition (printf form) says what was found. */
#define CHECK(condition, ...)                                                      \
    do {                                                                           \
        if (condition) {                                                           \
            check_passed++;                                                        \
        } else {                                                                   \
            check_failed++;                                                        \
            printf("FAILED %s (%s:%d): %s: ", check_name, __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__);                                                   \
            printf("\n");                                                          \
        }                                                                          \
    } while (0)

#define SKIP(...)                                \
    do {                                         \
        check_skipped++;                         \
        printf("SKIPPED %s: ", check_name);      \
        printf(__VA_ARGS__);                     \
        printf("\n");                            \
    } while (0)

/* Runs a test unless a name was given on the command line that it does not contain. */
#define RUN(test)                                                \
    do {                                                         \
        if (argc < 2 || strstr(#test, argv[1])) {                \
            check_name = #test;                                  \
            test();                                              \
            fflush(stdout);                                      \
        }                                                        \
    } while (0)

#define FINISH()                                                                        \
    do {                                                                                \
        printf("%d passed, %d failed", check_passed, check_failed);                     \
        if (check_skipped)                                                              \
            printf(", %d skipped", check_skipped);                                      \
        printf("\n");                                                                   \
        return check_failed || !check_passed;                                           \
    } while (0)

/* Repeatable random numbers in [0, 1): xorshift64* (Vigna 2016). */
static unsigned long long check_seed = 88172645463325252ull;
static inline double random_unit(void) {
    check_seed ^= check_seed >> 12;
    check_seed ^= check_seed << 25;
    check_seed ^= check_seed >> 27;
    return (double)(check_seed * 2685821657736338717ull >> 11) / 9007199254740992.0;
}
static inline double random_between(double a, double b) {
    return a + (b - a) * random_unit();
}

#endif
