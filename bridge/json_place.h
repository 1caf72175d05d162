/* Where a value of a scene is, for messages: the JSON library keeps no positions, so a value is known by its
 * path, and when something is wrong a small scanner walks the text along that path to find the line. Values
 * that came from
 * `--set` are named by it instead. */
#ifndef TOILE_JSON_PLACE_H
#define TOILE_JSON_PLACE_H

#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A path, last element first; places live on the stack of whoever walks down the values. */
typedef struct toile_place {
    const struct toile_place *parent; /* null: the whole scene */
    const char *key;                  /* member of an object; null: element of an array */
    size_t index;
} toile_place;

enum { TOILE_PLACE_TEXT = 384 };      /* bytes of a path as text; longer ones are cut */

typedef struct toile_source_set {
    char written[TOILE_PLACE_TEXT];   /* the path as the user wrote it */
    char path[TOILE_PLACE_TEXT];      /* the same as toile_place_text gives it */
} toile_source_set;

typedef struct toile_source {
    const char *file;                 /* as the user wrote it */
    const char *text;
    size_t size;
    const toile_source_set *sets;
    int set_count;
} toile_source;

/* "garments[0].grid.size[1]"; "" for the whole scene. */
void toile_place_text(const toile_place *place, char *text, size_t size);

/* Line (from 1) of the place or, if it is not in the text, of the innermost thing around it that is. */
int toile_place_line(const toile_source *source, const toile_place *place, bool *found);

/* Stores "FILE:LINE: path: message", or "--set path: message" for what a set put there, and returns the
 * status. */
toile_status toile_place_fail(const toile_source *source, const toile_place *place, toile_error *error,
                              toile_status status, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* For messages about a name that is not known: `did you mean "x"? known: a, b, c`, cut to size. */
void toile_known_names(const char *name, const char *const *known, int count, char *text, size_t size);

#endif
