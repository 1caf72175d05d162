#include "json_place.h"

#include <jansson.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void toile_place_text(const toile_place *place, char *text, size_t size) {
    if (!place->parent) {
        text[0] = 0;
        return;
    }
    toile_place_text(place->parent, text, size);
    size_t used = strlen(text);
    if (place->key)
        snprintf(text + used, size - used, "%s%s", used ? "." : "", place->key);
    else
        snprintf(text + used, size - used, "[%zu]", place->index);
}

/* The text was parsed before, so the scanner trusts its grammar; it still never leaves it. */
typedef struct scanner {
    const char *at, *end;
    int line;
    int found;                      /* line of the innermost place found so far */
} scanner;

static char peek(const scanner *s) {
    return s->at < s->end ? *s->at : 0;
}

static void advance(scanner *s) {
    if (s->at < s->end && *s->at++ == '\n')
        s->line++;
}

static void skip_space(scanner *s) {
    while (s->at < s->end && strchr(" \t\r\n", *s->at) && *s->at)
        advance(s);
}

static void skip_string(scanner *s) {
    advance(s);
    while (s->at < s->end && *s->at != '"') {
        if (*s->at == '\\')
            advance(s);
        advance(s);
    }
    advance(s);
}

static void skip_value(scanner *s) {
    char c = peek(s);
    if (c == '"') {
        skip_string(s);
    } else if (c == '{' || c == '[') {
        size_t depth = 0;
        do {
            c = peek(s);
            if (c == '"') {
                skip_string(s);
                continue;
            }
            depth += c == '{' || c == '[';
            depth -= c == '}' || c == ']';
            advance(s);
        } while (depth > 0 && s->at < s->end);
    } else {
        while (s->at < s->end && !strchr(",]}", *s->at))
            advance(s);
    }
}

/* A key with escapes in it is read by the JSON library. */
static bool same_key(const char *quoted, size_t length, const char *key) {
    if (!memchr(quoted, '\\', length))
        return length == strlen(key) + 2 && memcmp(quoted + 1, key, length - 2) == 0;
    json_t *value = json_loadb(quoted, length, JSON_DECODE_ANY, NULL);
    bool same = json_is_string(value) && strcmp(json_string_value(value), key) == 0;
    json_decref(value);
    return same;
}

/* Moves from the start of a value to the start of the value inside it that `place` names. */
static bool enter(scanner *s, const toile_place *place) {
    if (peek(s) != (place->key ? '{' : '['))
        return false;
    advance(s);
    for (size_t index = 0; s->at < s->end; index++) {
        skip_space(s);
        if (peek(s) == '}' || peek(s) == ']')
            return false;
        int line = s->line;
        bool here = !place->key && index == place->index;
        if (place->key) {
            const char *quoted = s->at;
            skip_string(s);
            here = same_key(quoted, (size_t)(s->at - quoted), place->key);
            skip_space(s);
            advance(s); /* the colon */
            skip_space(s);
        }
        if (here) {
            s->found = line;
            return true;
        }
        skip_value(s);
        skip_space(s);
        if (peek(s) == ',')
            advance(s);
    }
    return false;
}

static bool find(scanner *s, const toile_place *place) {
    if (!place->parent) {
        skip_space(s);
        s->found = s->line;
        return true;
    }
    return find(s, place->parent) && enter(s, place);
}

int toile_place_line(const toile_source *source, const toile_place *place, bool *found) {
    scanner s = {source->text, source->text + source->size, 1, 1};
    *found = find(&s, place);
    return s.found;
}

static bool begins_path(const char *path, const char *start) {
    size_t length = strlen(start);
    return strncmp(path, start, length) == 0 && (!path[length] || path[length] == '.' || path[length] == '[');
}

/* The set that a place came from: the last one that put it or something around it there, or, if the file has
 * no such place, one that put something inside it. */
static const toile_source_set *set_of(const toile_source *source, const char *path, bool in_text) {
    for (int i = source->set_count - 1; i >= 0; i--)
        if (begins_path(path, source->sets[i].path))
            return &source->sets[i];
    if (!in_text && *path)
        for (int i = source->set_count - 1; i >= 0; i--)
            if (begins_path(source->sets[i].path, path))
                return &source->sets[i];
    return NULL;
}

toile_status toile_place_fail(const toile_source *source, const toile_place *place, toile_error *error,
                              toile_status status, const char *format, ...) {
    char message[sizeof error->message], path[TOILE_PLACE_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);

    toile_place_text(place, path, sizeof path);
    bool in_text;
    int line = toile_place_line(source, place, &in_text);
    const toile_source_set *set = set_of(source, path, in_text);
    const char *colon = *path ? ": " : "";
    if (!set)
        return toile_fail(error, status, "%s:%d: %s%s%s", source->file, line, path, colon, message);
    if (strcmp(set->path, path) == 0)
        return toile_fail(error, status, "--set %s: %s", set->written, message);
    return toile_fail(error, status, "--set %s: %s%s%s", set->written, path, colon, message);
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Letters added, lost, changed or swapped with a neighbour between two texts, of which the first 47 bytes
 * count. */
static size_t distance(const char *a, const char *b) {
    enum { MOST = 48 };
    size_t rows[MOST][MOST], m = strnlen(a, MOST - 1), n = strnlen(b, MOST - 1);
    for (size_t i = 0; i <= m; i++)
        for (size_t j = 0; j <= n; j++) {
            size_t best = i + j;
            if (i > 0 && j > 0) {
                best = least(rows[i - 1][j], rows[i][j - 1]) + 1;
                best = least(best, rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            }
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = least(best, rows[i - 2][j - 2] + 1);
            rows[i][j] = best;
        }
    return rows[m][n];
}

void toile_known_names(const char *name, const char *const *known, int count, char *text, size_t size) {
    size_t used = 0, closest = SIZE_MAX;
    const char *best = NULL;
    for (int i = 0; i < count; i++) {
        size_t d = distance(name, known[i]);
        if (d < closest) {
            closest = d;
            best = known[i];
        }
    }
    text[0] = 0;
    if (best && closest <= 1 + strlen(best) / 4)
        used += (size_t)snprintf(text, size, "did you mean \"%.64s\"? ", best);
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%.64s", i ? ", " : "known: ", known[i]);
    if (count == 0 && used < size)
        snprintf(text + used, size - used, "there are none");
}
