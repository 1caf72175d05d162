/* toile bench ccd: collision queries with known answers, from a file of records of 28 little-endian doubles:
 * four points at t = 0, the same at t = 1, 1 if they meet, the first time as an interval (low, high), the
 * least distance if they do not. The tolerance of a query is a millionth of its extent: a conservative test
 * may call a hit what comes closer than that. */
#include "commands.h"

#include "ccd.h"
#include "sim.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORD = 28, EXPECTED = 24, TIME_LOW, TIME_HIGH, DISTANCE };
#define TOLERANCE 1e-6 /* of the extent */
#define EARLY 1e-3     /* of the step: earlier than this before the true time needs nearness for an excuse */

typedef struct answer {
    bool hit;
    double time;
} answer;

typedef struct score {
    int hits, missed, late, early, false_hits, excused;
} score;

static double extent_of(const double *record) {
    double extent = 0;
    for (int k = 0; k < 3; k++) {
        double lo = INFINITY, hi = -INFINITY;
        for (int i = 0; i < 8; i++) {
            lo = fmin(lo, record[3 * i + k]);
            hi = fmax(hi, record[3 * i + k]);
        }
        extent = fmax(extent, hi - lo);
    }
    return extent;
}

static answer ask(toile_ccd_kind kind, const double *record, double tolerance) {
    answer a = {false, 2};
    a.hit =
        toile_ccd(kind, (const double(*)[3])record, (const double(*)[3])(record + 12), 0, tolerance, &a.time);
    return a;
}

static double distance_at(toile_ccd_kind kind, const double *record, double t) {
    double x[4][3];
    toile_near near;
    for (int i = 0; i < 12; i++)
        x[i / 3][i % 3] = record[i] + t * (record[12 + i] - record[i]);
    toile_nearest(kind, (const double(*)[3])x, &near);
    return near.distance;
}

static void judge(toile_ccd_kind kind, const double *record, answer a, double tolerance, score *s) {
    bool expected = record[EXPECTED] != 0;
    s->hits += expected;
    if (expected && !a.hit)
        s->missed++;
    else if (expected && a.time > record[TIME_HIGH])
        s->late++;
    else if (expected && a.time < record[TIME_LOW] - EARLY && distance_at(kind, record, a.time) > tolerance)
        s->early++;
    else if (!expected && a.hit && record[DISTANCE] > tolerance)
        s->false_hits++;
    else if (!expected && a.hit)
        s->excused++;
}

/* The whole file, or null after a complaint. */
static double *read_queries(const char *path, int *count, int *exit_code) {
    FILE *file = fopen(path, "rb");
    double *data = NULL;
    long size = 0;
    if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0 || fseek(file, 0, SEEK_SET)) {
        *exit_code = toile_complain(TOILE_EXIT_IO, "%s cannot be read", path);
    } else if (size == 0 || size % (RECORD * 8) || size / (RECORD * 8) > 50000000) {
        *exit_code = toile_complain(TOILE_EXIT_INPUT, "%s has %ld bytes; records of %d are wanted", path,
                                    size, RECORD * 8);
    } else if (!(data = malloc((size_t)size))) {
        *exit_code = toile_complain(TOILE_EXIT_FAILED, "not enough memory for %ld bytes of queries", size);
    } else if (fread(data, 1, (size_t)size, file) != (size_t)size) {
        *exit_code = toile_complain(TOILE_EXIT_IO, "%s ended early", path);
        free(data);
        data = NULL;
    }
    for (long i = 0; data && i < size / 8; i++)
        if (!isfinite(data[i])) {
            *exit_code = toile_complain(TOILE_EXIT_INPUT, "%s: query %ld holds a number that is not finite",
                                        path, i / RECORD);
            free(data);
            data = NULL;
        }
    if (file)
        fclose(file);
    *count = (int)(size / (RECORD * 8));
    return data;
}

/* Nanoseconds of one query: the fastest of several rounds over all. */
static double measure(toile_ccd_kind kind, const double *data, int count, answer *answers) {
    double fastest = INFINITY;
    for (int turn = 0; turn < 5; turn++) {
        double begin = toile_clock();
        for (int i = 0; i < count; i++)
            answers[i] =
                ask(kind, data + RECORD * (size_t)i, 0.5 * TOLERANCE * extent_of(data + RECORD * (size_t)i));
        fastest = fmin(fastest, toile_clock() - begin);
    }
    return 1e9 * fastest / count;
}

int toile_bench_ccd(const char *path, const char *kind_name, bool json) {
    if (!path || !kind_name || (strcmp(kind_name, "vf") != 0 && strcmp(kind_name, "ee") != 0))
        return toile_complain(TOILE_EXIT_USAGE, "bench ccd wants --queries FILE.f64 and --kind vf or ee");
    toile_ccd_kind kind = strcmp(kind_name, "vf") == 0 ? TOILE_CCD_VF : TOILE_CCD_EE;
    int count = 0, exit_code = 0;
    double *data = read_queries(path, &count, &exit_code);
    if (!data)
        return exit_code;
    answer *answers = malloc((size_t)count * sizeof *answers);
    if (!answers) {
        free(data);
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for %d answers", count);
    }
    double ns = measure(kind, data, count, answers);
    score s = {0};
    json_t *wrong = json_array();
    for (int i = 0; i < count; i++) {
        const double *record = data + RECORD * (size_t)i;
        score before = s;
        judge(kind, record, answers[i], TOLERANCE * extent_of(record), &s);
        if (s.missed + s.late + s.early + s.false_hits >
                before.missed + before.late + before.early + before.false_hits &&
            json_array_size(wrong) < 100)
            json_array_append_new(wrong, json_integer(i));
    }
    free(answers);
    free(data);
    if (json)
        return toile_print_json(json_pack("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:f,s:o}", "queries", count, "hits",
                                          s.hits, "missed", s.missed, "late", s.late, "early", s.early,
                                          "false_hits", s.false_hits, "near_hits", s.excused, "ns_per_query",
                                          ns, "wrong", wrong));
    json_decref(wrong);
    printf("%d queries (%d hits): %d missed, %d late, %d early, %d false hits (%d more within tolerance), "
           "%.0f ns each\n",
           count, s.hits, s.missed, s.late, s.early, s.false_hits, s.excused, ns);
    return 0;
}
