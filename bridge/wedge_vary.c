#include "wedge_vary.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIST_MOST = 16 << 20, KEYS_MOST = 64 };

/* One key and its values; a range of random draws has none but its ends. */
typedef struct axis {
    char *key;
    json_t *values; /* array */
    bool open;      /* draws anywhere between low and high */
    double low, high;
    bool log;
} axis;

/* ---- values ---- */

json_t *toile_set_value(const char *text) {
    json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    return value ? value : json_string(text);
}

/* With so many digits that 0.2 + 0.4 is 0.6; a whole number is one. */
static json_t *number_value(double value, int digits) {
    char text[64];
    snprintf(text, sizeof text, "%.*g", digits, value);
    double rounded = strtod(text, NULL);
    return rounded == rint(rounded) && fabs(rounded) < 1e15 ? json_integer((json_int_t)rounded)
                                                            : json_real(rounded);
}

static bool read_double(const char **at, double *value) {
    char *end;
    *value = strtod(*at, &end);
    bool read = end != *at && isfinite(*value);
    *at = end;
    return read;
}

/* "lo:hi", "lo:hi:n" or "lo:hi:n:log"; false if the text is none of them. n 0: not given. */
static bool read_range(const char *text, double *low, double *high, double *count, bool *log) {
    const char *at = text;
    *count = 0;
    *log = false;
    if (!read_double(&at, low) || *at++ != ':' || !read_double(&at, high))
        return false;
    if (*at == ':') {
        at++;
        if (!read_double(&at, count))
            return false;
    }
    if (strcmp(at, ":log") == 0) {
        *log = true;
        at += 4;
    }
    return *at == 0;
}

static toile_status fill_range(axis *a, const char *text, double count, toile_error *error) {
    if (!(count >= 1 && count == rint(count) && count <= TOILE_WEDGES_MOST))
        return toile_fail(error, TOILE_INVALID,
                          "--vary %s=%s: the number of values must be whole, from 1 to %d", a->key, text,
                          TOILE_WEDGES_MOST);
    for (int i = 0; i < (int)count; i++) {
        double t = count > 1 ? i / (count - 1) : 0;
        double value = a->log ? a->low * pow(a->high / a->low, t) : a->low + (a->high - a->low) * t;
        json_array_append_new(a->values, number_value(value, 12));
    }
    return TOILE_OK;
}

/* Cuts at commas that are not within brackets or quotes. */
static toile_status fill_list(axis *a, char *text, toile_error *error) {
    int depth = 0;
    bool quoted = false;
    char *begin = text;
    for (char *at = text;; at++) {
        if (*at == '"' && (at == text || at[-1] != '\\'))
            quoted = !quoted;
        depth += !quoted && (*at == '[' || *at == '{');
        depth -= !quoted && (*at == ']' || *at == '}');
        if (*at && (quoted || depth > 0 || *at != ','))
            continue;
        bool last = !*at;
        *at = 0;
        if (!*begin)
            return toile_fail(error, TOILE_INVALID, "--vary %s: a value between commas is empty", a->key);
        if (json_array_append_new(a->values, toile_set_value(begin)) != 0)
            return toile_fail(error, TOILE_INVALID, "--vary %s: a value is not UTF-8 text", a->key);
        if (last)
            return TOILE_OK;
        begin = at + 1;
    }
}

static toile_status read_axis(const char *text, bool random, axis *a, toile_error *error) {
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1])
        return toile_fail(
            error, TOILE_INVALID,
            "--vary %.80s: write it as KEY=a,b,c or KEY=lo:hi:n, for example friction=0.2:0.8:4", text);
    a->key = strndup(text, (size_t)(equals - text));
    a->values = json_array();
    char *rest = strdup(equals + 1);
    toile_status status = a->key && a->values && rest ? TOILE_OK : toile_fail_memory(error, "what varies");
    double count;
    if (status == TOILE_OK && read_range(rest, &a->low, &a->high, &count, &a->log)) {
        if (a->log && !(a->low > 0 && a->high > 0))
            status = toile_fail(error, TOILE_INVALID, "--vary %s: a logarithmic range has both ends above 0",
                                text);
        else if (count == 0 && !random)
            status =
                toile_fail(error, TOILE_INVALID,
                           "--vary %s: how many values? Write %s:4, or draw with --random N", text, text);
        else if (count == 0)
            a->open = true;
        else
            status = fill_range(a, rest, count, error);
    } else if (status == TOILE_OK) {
        status = fill_list(a, rest, error);
    }
    free(rest);
    return status;
}

/* ---- combinations ---- */

static toile_status add(json_t *list, json_t *name, json_t *values, toile_error *error) {
    json_t *entry = json_object();
    if (name)
        json_object_set_new(entry, "name", name);
    json_object_set_new(entry, "values", values);
    return json_array_append_new(list, entry) == 0 ? TOILE_OK : toile_fail_memory(error, "the plan");
}

/* The last key turns fastest, as the digits of a number do. */
static toile_status make_grid(axis *axes, int count, json_t *list, toile_error *error) {
    double total = 1;
    for (int i = 0; i < count; i++)
        total *= (double)json_array_size(axes[i].values);
    if (total > TOILE_WEDGES_MOST)
        return toile_fail(
            error, TOILE_INVALID,
            "%.0f combinations; the most is %d. Vary fewer things, or draw some with --random N", total,
            TOILE_WEDGES_MOST);
    toile_status status = TOILE_OK;
    for (int w = 0; w < (int)total && status == TOILE_OK; w++) {
        json_t *values = json_object();
        int rest = w, stride = (int)total;
        for (int i = 0; i < count; i++) {
            int size = (int)json_array_size(axes[i].values);
            stride /= size;
            json_object_set(values, axes[i].key, json_array_get(axes[i].values, (size_t)(rest / stride)));
            rest %= stride;
        }
        status = add(list, count == 0 ? json_string("bake") : NULL, values, error);
    }
    return status;
}

/* SplitMix64 (Steele, Lea, Flood 2014): the same draws on every machine. */
static uint64_t draw(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static toile_status make_random(axis *axes, int count, int number, int seed, json_t *list,
                                toile_error *error) {
    uint64_t state = (uint64_t)seed;
    toile_status status = TOILE_OK;
    if (number > TOILE_WEDGES_MOST)
        return toile_fail(error, TOILE_INVALID, "--random %d: the most is %d", number, TOILE_WEDGES_MOST);
    for (int w = 0; w < number && status == TOILE_OK; w++) {
        json_t *values = json_object();
        for (int i = 0; i < count; i++) {
            const axis *a = &axes[i];
            uint64_t bits = draw(&state);
            double t = (double)(bits >> 11) * 0x1p-53;
            if (a->open)
                json_object_set_new(
                    values, a->key,
                    number_value(a->log ? a->low * pow(a->high / a->low, t) : a->low + (a->high - a->low) * t,
                                 6));
            else
                json_object_set(values, a->key,
                                json_array_get(a->values, (size_t)(t * (double)json_array_size(a->values))));
        }
        status = add(list, NULL, values, error);
    }
    return status;
}

/* ---- a list ---- */

static toile_status read_list_file(const char *path, char **text, toile_error *error) {
    FILE *file = fopen(path, "r");
    *text = malloc(LIST_MOST + 1);
    size_t size = file && *text ? fread(*text, 1, LIST_MOST, file) : 0;
    bool failed = !file || ferror(file);
    int reason = errno;
    if (file)
        fclose(file);
    if (!*text)
        return toile_fail_memory(error, "the list");
    (*text)[size] = 0;
    if (failed)
        return toile_fail(error, TOILE_IO, "--list %s cannot be read: %s", path, strerror(reason));
    if (size == LIST_MOST)
        return toile_fail(error, TOILE_INVALID, "--list %s: it is larger than %d MB", path, LIST_MOST >> 20);
    if (strlen(*text) != size)
        return toile_fail(error, TOILE_INVALID, "--list %s: it is not text", path);
    return TOILE_OK;
}

/* The next field of a row (RFC 4180: quotes around commas, two quotes for one), cut off in place. *end: the
 * row ends. */
static char *next_field(char **at, bool *end) {
    char *from = *at, *to = *at, *field = *at;
    bool quoted = *from == '"';
    from += quoted;
    while (*from && (quoted || (*from != ',' && *from != '\n'))) {
        if (quoted && *from == '"') {
            if (from[1] != '"') {
                quoted = false;
                from++;
                continue;
            }
            from++;
        }
        *to++ = *from++;
    }
    *end = *from != ',';
    *at = *from ? from + 1 : from;
    *to = 0;
    if (to > field && to[-1] == '\r')
        to[-1] = 0;
    return field;
}

static toile_status read_row(char **at, char **keys, int count, const char *path, int row, json_t *list,
                             toile_error *error) {
    json_t *values = json_object(), *name = NULL;
    bool end = false;
    int field = 0;
    toile_status status = TOILE_OK;
    for (; !end && field < count; field++) {
        char *text = next_field(at, &end);
        if (strcmp(keys[field], "name") == 0) {
            json_decref(name);
            name = *text ? json_string(text) : NULL;
        } else if (!*text || json_object_set_new(values, keys[field], toile_set_value(text)) != 0) {
            status = toile_fail(error, TOILE_INVALID, "--list %s, row %d: no value for %s", path, row,
                                keys[field]);
        }
    }
    if (status == TOILE_OK && (field != count || !end))
        status = toile_fail(error, TOILE_INVALID,
                            "--list %s, row %d: the first row has %d columns, this one has %s", path, row,
                            count, end ? "fewer" : "more");
    if (status != TOILE_OK) {
        json_decref(values);
        json_decref(name);
        return status;
    }
    return add(list, name, values, error);
}

static toile_status make_list(const char *path, json_t *list, toile_error *error) {
    char *text = NULL, *keys[KEYS_MOST];
    int count = 0;
    bool end = false;
    toile_status status = read_list_file(path, &text, error);
    char *at = text;
    while (status == TOILE_OK && !end) {
        if (count == KEYS_MOST)
            status = toile_fail(error, TOILE_INVALID, "--list %s: more than %d columns", path, KEYS_MOST);
        else if (!*(keys[count++] = next_field(&at, &end)))
            status = toile_fail(error, TOILE_INVALID,
                                "--list %s: the first row names the key of each column; column %d has none",
                                path, count);
    }
    for (int row = 2; status == TOILE_OK && *at; row++) {
        if (*at == '\n' || (*at == '\r' && at[1] == '\n')) { /* an empty line */
            at += 1 + (*at == '\r');
            continue;
        }
        if (json_array_size(list) == TOILE_WEDGES_MOST)
            status =
                toile_fail(error, TOILE_INVALID, "--list %s: more than %d rows", path, TOILE_WEDGES_MOST);
        else
            status = read_row(&at, keys, count, path, row, list, error);
    }
    free(text);
    if (status == TOILE_OK && json_array_size(list) == 0)
        status = toile_fail(error, TOILE_INVALID,
                            "--list %s: there is no row below the first, which names the keys", path);
    return status;
}

/* ---- interface ---- */

toile_status toile_vary(const toile_plan_request *request, json_t **combinations, toile_error *error) {
    axis axes[KEYS_MOST] = {0};
    json_t *list = json_array();
    toile_status status = list ? TOILE_OK : toile_fail_memory(error, "the plan");
    if (status == TOILE_OK && request->vary_count > KEYS_MOST)
        status = toile_fail(error, TOILE_INVALID, "--vary: %d keys; the most is %d", request->vary_count,
                            KEYS_MOST);
    for (int i = 0; i < request->vary_count && status == TOILE_OK; i++) {
        status = read_axis(request->vary[i], request->random > 0, &axes[i], error);
        for (int j = 0; j < i && status == TOILE_OK; j++)
            if (strcmp(axes[i].key, axes[j].key) == 0)
                status = toile_fail(error, TOILE_INVALID,
                                    "--vary %s is there twice; give all its values at once", axes[i].key);
    }
    if (status == TOILE_OK)
        status = request->list_path ? make_list(request->list_path, list, error)
                 : request->random > 0
                     ? make_random(axes, request->vary_count, request->random, request->seed, list, error)
                     : make_grid(axes, request->vary_count, list, error);
    for (int i = 0; i < request->vary_count && i < KEYS_MOST; i++) {
        free(axes[i].key);
        json_decref(axes[i].values);
    }
    if (status != TOILE_OK) {
        json_decref(list);
        list = NULL;
    }
    *combinations = list;
    return status;
}
