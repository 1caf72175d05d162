#include "progress.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

const char *const toile_progress_modes[] = {"auto", "bar", "json", "none", "openjd", NULL};

/* A log gets a line at every tenth of the task, and at least this often, s. */
static const double LINE_SECONDS = 30;

double toile_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* A reader that went away must not end a bake, so failures of stdout are left alone. */
static void print_event(json_t *event) {
    char *text = event ? json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    if (text) {
        puts(text);
        fflush(stdout);
    }
    free(text);
    json_decref(event);
}

/* https://github.com/OpenJobDescription/openjd-specifications/wiki: lines that a worker looks for in the output. */
static void print_openjd(const char *key, const char *text) {
    printf("openjd_%s: %s\n", key, text);
    fflush(stdout);
}

static void close_bar(toile_progress *progress) {
    if (progress->bar_open)
        fputc('\n', stderr);
    progress->bar_open = false;
}

void toile_progress_start(toile_progress *progress, toile_progress_mode mode, const char *task,
                          const char *name, const char *file, int first, int last, int done) {
    if (mode == TOILE_PROGRESS_AUTO)
        mode = isatty(STDERR_FILENO) ? TOILE_PROGRESS_BAR : TOILE_PROGRESS_LINES;
    double now = toile_now();
    *progress = (toile_progress){
        .mode = mode, .first = first, .last = last, .started = now, .frame_began = now, .line_time = now};
    int frames = last - first + 1;
    progress->line_tenth = frames > 0 ? 10 * done / frames : 0;
    if (mode == TOILE_PROGRESS_JSON)
        print_event(json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i}", "event", "start", "task", task,
                              "name", name, "file", file, "frame", first + done, "frames", frames, "first",
                              first, "done", done));
    else if (mode != TOILE_PROGRESS_NONE && done < frames)
        fprintf(stderr, "%s %s: frames %d to %d%s\n", task, name, first + done, last,
                done > 1 ? " (continued)" : "");
}

/* 95 as 1:35, 3700 as 1:01:40. */
static void format_duration(double seconds, char *text, size_t size) {
    long s = seconds < 1e9 ? (long)(seconds + 0.5) : 999999999;
    if (s >= 3600)
        snprintf(text, size, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(text, size, "%ld:%02ld", s / 60, s % 60);
}

static void describe(const toile_progress *progress, int frame, double eta,
                     const toile_statistics *statistics, char *text, size_t size) {
    int frames = progress->last - progress->first + 1, done = frame - progress->first + 1;
    char left[32];
    format_duration(eta, left, sizeof left);
    int used = snprintf(text, size, "frame %d/%d  %d %%  %.3g s/frame  ETA %s", done, frames,
                        100 * done / frames, progress->seconds_per_frame, left);
    if (statistics && used > 0 && (size_t)used < size)
        snprintf(text + used, size - (size_t)used,
                 "  %lld steps  %lld iterations  stretch %.1f %%  %d contacts", (long long)statistics->steps,
                 (long long)statistics->iterations, 100 * statistics->max_stretch, statistics->contacts);
}

static void draw_bar(toile_progress *progress, int frame, const char *text) {
    enum { BAR = 24 };
    struct winsize window;
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : 100;
    int frames = progress->last - progress->first + 1, done = frame - progress->first + 1;
    char bar[BAR + 1];
    int filled = (int)((long long)BAR * done / frames);
    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)filled);
    bar[BAR] = 0;
    /* One column stays free: a full line would wrap, and the carriage return would not reach its start. */
    int room = columns - (BAR + 3) - 1;
    fprintf(stderr, "\r[%s] %.*s\033[K", bar, room > 0 ? room : 0, text);
    fflush(stderr);
    progress->bar_open = true;
}

void toile_progress_frame(toile_progress *progress, int frame, const toile_statistics *statistics) {
    double now = toile_now(), seconds = now - progress->frame_began;
    progress->frame_began = now;
    /* Frames get slower as cloth comes to rest on things, so the recent ones say most about those to come. */
    progress->seconds_per_frame =
        progress->seconds_per_frame == 0 ? seconds : 0.85 * progress->seconds_per_frame + 0.15 * seconds;
    double eta = progress->seconds_per_frame * (progress->last - frame);
    int frames = progress->last - progress->first + 1, done = frame - progress->first + 1;

    if (progress->mode == TOILE_PROGRESS_JSON) {
        json_t *event = json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:f}", "event", "frame", "frame", frame,
                                  "frames", frames, "done", done, "seconds", seconds, "elapsed",
                                  now - progress->started, "eta", eta);
        json_t *figures =
            !statistics
                ? NULL
                : json_pack("{s:I, s:I, s:I, s:f, s:i, s:i}", "steps", (json_int_t)statistics->steps,
                            "rejected_steps", (json_int_t)statistics->rejected_steps, "iterations",
                            (json_int_t)statistics->iterations, "max_stretch", statistics->max_stretch,
                            "contacts", statistics->contacts, "penetrations", statistics->penetrations);
        if (event && figures)
            json_object_update(event, figures);
        json_decref(figures);
        print_event(event);
        return;
    }
    if (progress->mode == TOILE_PROGRESS_NONE)
        return;
    char text[256];
    describe(progress, frame, eta, statistics, text, sizeof text);
    if (progress->mode == TOILE_PROGRESS_OPENJD) {
        char percent[32];
        snprintf(percent, sizeof percent, "%.2f", 100.0 * done / frames);
        print_openjd("progress", percent);
        print_openjd("status", text);
        return;
    }
    int tenth = 10 * done / frames;
    if (progress->mode == TOILE_PROGRESS_BAR) {
        draw_bar(progress, frame, text);
    } else if (tenth > progress->line_tenth || now - progress->line_time >= LINE_SECONDS) {
        fprintf(stderr, "%s\n", text);
        progress->line_tenth = tenth;
        progress->line_time = now;
    }
}

void toile_progress_end(toile_progress *progress, const char *outcome, int frame, const char *note) {
    close_bar(progress);
    if (progress->mode == TOILE_PROGRESS_JSON)
        print_event(json_pack("{s:s, s:s, s:i, s:i, s:f, s:i, s:s}", "event", "done", "outcome", outcome,
                              "frame", frame, "frames", progress->last - progress->first + 1, "seconds",
                              toile_now() - progress->started, "eta", 0, "message", note));
    /* How to go on is worth a line even to those who want no progress. */
    if (strcmp(outcome, "stopped") == 0)
        fprintf(stderr, "toile: %s\n", note);
    else if (progress->mode != TOILE_PROGRESS_JSON && progress->mode != TOILE_PROGRESS_NONE)
        fprintf(stderr, "%s\n", note);
}

void toile_progress_error(toile_progress *progress, int exit_code, const char *message) {
    close_bar(progress);
    if (progress->mode == TOILE_PROGRESS_JSON)
        print_event(
            json_pack("{s:s, s:i, s:s}", "event", "error", "exit_code", exit_code, "message", message));
    if (progress->mode == TOILE_PROGRESS_OPENJD)
        print_openjd("fail", message);
    fprintf(stderr, "toile: %s\n", message);
}

void toile_progress_warn(toile_progress *progress, const char *message) {
    close_bar(progress);
    if (progress->mode == TOILE_PROGRESS_JSON)
        print_event(json_pack("{s:s, s:s}", "event", "warning", "message", message));
    if (progress->mode != TOILE_PROGRESS_NONE)
        fprintf(stderr, "toile: warning: %s\n", message);
}
