/* `toile recover`: what can be saved of a damaged cache, and saving it. A frame is saved if it can be read
 * and its checksum is right; runs of such frames become caches of their own. */
#include "commands.h"

#include "cache.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))
enum { RUNS_MOST = 1000, PATH_SIZE = 4096 };

typedef struct run {
    int first, last; /* positions */
} run;

typedef struct recovery {
    const char *path, *output;
    toile_memory memory;
    toile_error error;
    toile_cache *cache;
    run runs[RUNS_MOST];
    int run_count, lost;
} recovery;

/* ---- what is good ---- */

static void find_runs(recovery *r) {
    toile_error first_reason = {0};
    for (int i = 0; i < toile_cache_frame_count(r->cache); i++) {
        toile_error error;
        if (toile_cache_check(r->cache, i, &error) != TOILE_OK) {
            if (r->lost++ == 0)
                first_reason = error;
            continue;
        }
        if (r->run_count > 0 && r->runs[r->run_count - 1].last == i - 1)
            r->runs[r->run_count - 1].last = i;
        else if (r->run_count < RUNS_MOST)
            r->runs[r->run_count++] = (run){i, i};
    }
    if (r->lost)
        toile_complain(0, "the first damage: %s", first_reason.message);
}

/* Whether the file is as it should be, so that nothing needs to be saved. */
static bool is_sound(recovery *r) {
    toile_cache *cache = NULL;
    bool sound = toile_cache_open(&r->memory, r->path, &cache, NULL) == TOILE_OK &&
                 toile_cache_frame_count(cache) == toile_cache_frame_count(r->cache);
    toile_cache_close(cache, NULL);
    return sound && r->lost == 0;
}

static void tell(const recovery *r, bool sound) {
    const toile_cache_header *header = toile_cache_get_header(r->cache);
    int count = toile_cache_frame_count(r->cache), good = count - r->lost;
    printf("%s: scene %s, %d garment%s, %d frame%s, %d of them good\n", r->path, header->scene_name,
           header->garment_count, header->garment_count == 1 ? "" : "s", count, count == 1 ? "" : "s", good);
    for (int i = 0; i < r->run_count; i++)
        printf("  frames %d to %d\n", header->first_frame + r->runs[i].first,
               header->first_frame + r->runs[i].last);
    if (sound)
        printf("nothing is damaged\n");
    else if (!r->output && good > 0)
        printf("save them with: toile recover %s -o SAVED.h5\n", r->path);
}

/* ---- saving ---- */

/* The state after the last frame of the run, or before, so that the bake can go on. */
static bool save_checkpoint(recovery *r, const char *path, const run *run) {
    const toile_cache_header *header = toile_cache_get_header(r->cache);
    uint64_t fingerprint;
    int frame;
    void *state = NULL;
    size_t size;
    bool saved = run->first == 0 &&
                 toile_checkpoint_find(&r->memory, r->path, header->first_frame + run->last, &fingerprint,
                                       &frame, &state, &size, NULL) == TOILE_OK &&
                 toile_checkpoint_write(path, fingerprint, frame, state, size, NULL) == TOILE_OK;
    toile_free(&r->memory, state);
    return saved;
}

static toile_status copy_run(recovery *r, toile_cache *target, const run *run) {
    const toile_cache_header *header = toile_cache_get_header(r->cache);
    size_t garments = (size_t)header->garment_count;
    float **arrays = toile_alloc(&r->memory, 2 * garments, sizeof *arrays);
    toile_status status = arrays ? TOILE_OK : toile_fail_memory(&r->error, "a frame");
    for (size_t i = 0; status >= 0 && i < 2 * garments; i++) {
        arrays[i] =
            toile_alloc(&r->memory, (size_t)header->garments[i % garments].vertex_count, 3 * sizeof(float));
        if (!arrays[i])
            status = toile_fail_memory(&r->error, "a frame");
    }
    for (int f = run->first; f <= run->last && status >= 0; f++) {
        toile_cache_frame frame;
        status = toile_cache_read_frame(r->cache, f, &frame, &r->error);
        for (size_t g = 0; g < garments && status >= 0; g++)
            status = toile_cache_read(r->cache, f, (int)g, arrays[g], arrays[garments + g], &r->error);
        const toile_frame_view view = {.frame = frame.frame,
                                       .time = frame.time,
                                       .state_hash = frame.state_hash,
                                       .numbers = frame.numbers,
                                       .positions = (const float *const *)arrays,
                                       .velocities = (const float *const *)(arrays + garments)};
        if (status >= 0)
            status = toile_cache_append(target, &view, &r->error);
    }
    for (size_t i = 0; arrays && i < 2 * garments; i++)
        toile_free(&r->memory, arrays[i]);
    toile_free(&r->memory, arrays);
    return status;
}

static toile_status save_run(recovery *r, const char *path, const run *run) {
    toile_cache_header header = *toile_cache_get_header(r->cache);
    toile_cache *target = NULL;
    struct stat info;
    if (stat(path, &info) == 0)
        return toile_fail(&r->error, TOILE_IO, "%s exists and is left alone; choose another name", path);
    header.first_frame += run->first;
    if (header.last_frame < header.first_frame)
        header.last_frame = header.first_frame + run->last - run->first;
    toile_status status = toile_cache_create(&r->memory, path, &header, &target, &r->error);
    if (status >= 0)
        status = copy_run(r, target, run);
    toile_status closed = toile_cache_close(target, status < 0 ? NULL : &r->error);
    status = status < 0 ? status : closed;
    if (status < 0)
        return status;
    bool resumable = save_checkpoint(r, path, run);
    printf("saved frames %d to %d as %s%s\n", header.first_frame, header.first_frame + run->last - run->first,
           path, resumable ? "; bake --resume goes on from there" : "");
    return TOILE_OK;
}

/* The first run under the name itself, others with their frames in it. */
static toile_status save_all(recovery *r) {
    const toile_cache_header *header = toile_cache_get_header(r->cache);
    const char *dot = strrchr(r->output, '.'), *slash = strrchr(r->output, '/');
    int stem = dot && (!slash || dot > slash) ? (int)(dot - r->output) : (int)strlen(r->output);
    toile_status status = TOILE_OK;
    for (int i = 0; i < r->run_count && status >= 0; i++) {
        char path[PATH_SIZE];
        int length = i == 0 ? snprintf(path, sizeof path, "%s", r->output)
                            : snprintf(path, sizeof path, "%.*s_%d-%d%s", stem, r->output,
                                       header->first_frame + r->runs[i].first,
                                       header->first_frame + r->runs[i].last, r->output + stem);
        status = length < PATH_SIZE
                     ? save_run(r, path, &r->runs[i])
                     : toile_fail(&r->error, TOILE_INVALID, "the name is too long: %.200s...", r->output);
    }
    return status;
}

int toile_command_recover(int argc, char **argv) {
    static const char *const operands[] = {"CACHE.h5"};
    recovery *r = calloc(1, sizeof *r);
    int exit_code;
    if (!r)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory");
    const toile_option options[] = {
        {"--output", "-o", TOILE_OPTION_TEXT, &r->output, "SAVED.h5", "save the good frames as this cache",
         NULL},
    };
    const toile_syntax syntax = {"toile recover CACHE.h5 [-o SAVED.h5]",
                                 "Says which frames of a damaged cache are good, and saves them. Several "
                                 "runs of good frames become several\n"
                                 "caches: SAVED.h5, SAVED_40-90.h5. The damaged file is not changed. Without "
                                 "-o the exit code is 0 if nothing\n"
                                 "is damaged, else 4.",
                                 options,
                                 COUNT(options),
                                 operands,
                                 COUNT(operands)};
    if (!toile_parse_options(&syntax, argc, argv, &r->path, &exit_code)) {
        free(r);
        return exit_code;
    }
    toile_memory_init(&r->memory, NULL);
    toile_status status = toile_cache_open_damaged(&r->memory, r->path, &r->cache, &r->error);
    if (status < 0) {
        exit_code =
            toile_complain(toile_status_exit_code(status), "nothing can be saved: %s", r->error.message);
        free(r);
        return exit_code;
    }
    find_runs(r);
    bool sound = is_sound(r);
    tell(r, sound);
    exit_code = sound ? 0 : TOILE_EXIT_FAILED;
    if (r->output) {
        status = r->run_count > 0 ? save_all(r)
                                  : toile_fail(&r->error, TOILE_FORMAT,
                                               "%s has no good frame; nothing was saved", r->path);
        exit_code = status < 0 ? toile_complain_error(&r->error) : 0;
    }
    toile_cache_close(r->cache, NULL);
    free(r);
    return exit_code;
}
