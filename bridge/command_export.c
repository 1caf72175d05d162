/* `toile export`: a cache for other tools. One row of FORMATS is one format; here are the options, the loop
 * over frames, progress, and what a signal does. */
#include "commands.h"

#include "export_job.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const toile_export_format *const FORMATS[] = {&toile_export_abc, &toile_export_pc2, &toile_export_mdd,
                                                     &toile_export_obj, &toile_export_xmf};

static const char *const UPS[] = {"y", "z", NULL}; /* in the order of toile_up */

/* Beyond these float32 positions lose their meaning. */
static const double SCALE_MIN = 1e-6, SCALE_MAX = 1e6;

static const toile_export_format *find_format(const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < COUNT(FORMATS); i++) {
        size_t tail = strlen(FORMATS[i]->ending);
        if (length > tail && strcasecmp(path + length - tail, FORMATS[i]->ending) == 0)
            return FORMATS[i];
    }
    return NULL;
}

static void list_formats(bool with_colliders, char *list, size_t size) {
    list[0] = 0;
    for (int i = 0; i < COUNT(FORMATS); i++) {
        size_t used = strlen(list);
        if (!with_colliders || FORMATS[i]->colliders)
            snprintf(list + used, size - used, "%s%s (%s)", used ? ", " : "", FORMATS[i]->ending,
                     FORMATS[i]->label);
    }
}

/* ---- signals: the frame in work is finished, then nothing more is written ---- */

static volatile sig_atomic_t stopped;

static void on_signal(int number) {
    (void)number;
    stopped = 1;
}

static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP};

static void catch_signals(struct sigaction *before) {
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < COUNT(SIGNALS); i++) {
        sigaction(SIGNALS[i], NULL, &before[i]);
        /* nohup and background shells ignore some of them on purpose. */
        if (before[i].sa_handler != SIG_IGN)
            sigaction(SIGNALS[i], &action, NULL);
    }
}

static void release_signals(const struct sigaction *before) {
    for (int i = 0; i < COUNT(SIGNALS); i++)
        sigaction(SIGNALS[i], &before[i], NULL);
}

/* ---- the job ---- */

static toile_status choose_garments(toile_export *job) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    char list[512] = "";
    size_t most = 0;
    job->garments = toile_alloc(&job->memory, (size_t)header->garment_count, sizeof *job->garments);
    if (!job->garments)
        return toile_fail_memory(&job->error, "the garments");
    for (int g = 0; g < header->garment_count; g++) {
        const toile_garment_view *garment = &header->garments[g];
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", garment->name);
        if (job->garment_name && strcmp(job->garment_name, garment->name) != 0)
            continue;
        job->garments[job->garment_count++] = g;
        most = (size_t)garment->vertex_count > most ? (size_t)garment->vertex_count : most;
    }
    if (job->garment_count == 0)
        return toile_fail(&job->error, TOILE_INVALID, "--garment %s: %s has no such garment; it has: %s",
                          job->garment_name ? job->garment_name : "", job->cache_path, list);
    job->positions = toile_alloc(&job->memory, 3 * most, sizeof(float));
    job->velocities = toile_alloc(&job->memory, 3 * most, sizeof(float));
    return job->positions && job->velocities ? TOILE_OK : toile_fail_memory(&job->error, "a frame");
}

static toile_status check_output(toile_export *job) {
    struct stat cache, output;
    if (stat(job->cache_path, &cache) == 0 && stat(job->output, &output) == 0 &&
        cache.st_dev == output.st_dev && cache.st_ino == output.st_ino)
        return toile_fail(&job->error, TOILE_INVALID, "%s is the cache itself; choose another name",
                          job->output);
    return TOILE_OK;
}

static toile_status write_frames(toile_export *job, const toile_export_format *format, int *frame) {
    void *state = NULL;
    toile_status status = format->begin(job, &state);
    if (status >= 0)
        toile_progress_start(&job->progress, (toile_progress_mode)job->mode, "export",
                             toile_cache_get_header(job->cache)->scene_name, job->output, job->first,
                             job->last, 0);
    for (*frame = job->first; *frame <= job->last && status >= 0; ++*frame) {
        if (stopped)
            break;
        if (job->scene)
            status = toile_scene_prepare(job->scene, *frame, &job->error);
        if (status >= 0)
            status = format->frame(job, state, *frame);
        if (status >= 0)
            toile_progress_frame(&job->progress, *frame, NULL);
    }
    if (status >= 0 && stopped)
        status = TOILE_CANCELLED;
    toile_status ended = format->end(job, state, status >= 0);
    return status < 0 ? status : ended;
}

static int run_export(toile_export *job, const toile_export_format *format) {
    int exit_code = TOILE_EXIT_INPUT, frame = 0, first_index, last_index;
    char note[TOILE_PATH_SIZE + 128];
    toile_status status = toile_cache_open(&job->memory, job->cache_path, &job->cache, &job->error);
    if (status >= 0)
        status = check_output(job);
    if (status >= 0)
        status = choose_garments(job);
    if (status < 0)
        goto out;
    if (!toile_choose_frames(&job->range, job->cache, job->cache_path, &first_index, &last_index))
        goto out;
    job->first = toile_cache_get_header(job->cache)->first_frame + first_index;
    job->last = toile_cache_get_header(job->cache)->first_frame + last_index;
    if (!(job->fps > 0))
        job->fps = toile_cache_get_header(job->cache)->fps;
    if (job->colliders) {
        job->scene = toile_open_cache_scene(job->cache, job->scene_path, &job->error);
        if (!job->scene) {
            status = job->error.status;
            goto out;
        }
    }
    status = write_frames(job, format, &frame);
    if (status < 0)
        goto out;
    int count = job->last - job->first + 1;
    snprintf(note, sizeof note, "done: %d frame%s to %s", count, count == 1 ? "" : "s", job->output);
    toile_progress_end(&job->progress, "complete", job->last, note);
    exit_code = 0;
out:
    if (status == TOILE_CANCELLED) {
        snprintf(note, sizeof note, "the export to %s was stopped at frame %d of %d to %d; start it again",
                 job->output, frame, job->first, job->last);
        toile_progress_end(&job->progress, "stopped", frame, note);
    } else if (status < 0) {
        toile_progress_error(&job->progress, toile_status_exit_code(status), job->error.message);
    }
    if (status < 0)
        exit_code = toile_status_exit_code(status);
    toile_free(&job->memory, job->positions);
    toile_free(&job->memory, job->velocities);
    toile_free(&job->memory, job->garments);
    toile_scene_free(job->scene);
    toile_cache_close(job->cache, NULL);
    return exit_code;
}

/* ---- the command ---- */

int toile_command_export(int argc, char **argv) {
    enum { UP_BY_FORMAT = -1 };
    static const char *const operands[] = {"CACHE.h5"};
    char output[TOILE_PATH_SIZE];
    toile_export job = {
        .mode = TOILE_PROGRESS_AUTO, .up = UP_BY_FORMAT, .scale = 1, .subframes = 1, .shutter = 0.5};
    double offset = 0;
    int exit_code;
    char list[256];
    const toile_option options[] = {
        {"--output", "-o", TOILE_OPTION_TEXT, &job.output, "OUT.abc", "where to; the ending says the format",
         NULL},
        {"--frames", NULL, TOILE_OPTION_FRAMES, &job.range, "A-B", "only these frames", NULL},
        {"--fps", NULL, TOILE_OPTION_NUMBER, &job.fps, "F",
         "frames per second of what is written; else the cache's", NULL},
        {"--offset", NULL, TOILE_OPTION_NUMBER, &offset, "N", "added to the frame numbers, also below 0",
         NULL},
        {"--subframes", NULL, TOILE_OPTION_WHOLE, &job.subframes, "N",
         "samples per frame, for motion blur (.abc): 1 to 64, by positions and velocities", NULL},
        {"--shutter", NULL, TOILE_OPTION_NUMBER, &job.shutter, "S",
         "part of a frame that they span: above 0, below 1; 0.5", NULL},
        {"--stretch", NULL, TOILE_OPTION_FLAG, &job.stretch, NULL, "the stretch of every face too (.abc)",
         NULL},
        {"--garment", NULL, TOILE_OPTION_TEXT, &job.garment_name, "NAME", "only this garment", NULL},
        {"--up", NULL, TOILE_OPTION_CHOICE, &job.up, "y|z",
         "the upward axis of what is written: y for .abc, z for the others", UPS},
        {"--scale", NULL, TOILE_OPTION_NUMBER, &job.scale, "S", "units per metre: 100 writes centimetres",
         NULL},
        {"--colliders", NULL, TOILE_OPTION_FLAG, &job.colliders, NULL,
         "the scene's colliders too (.abc, .obj)", NULL},
        {"--scene", NULL, TOILE_OPTION_TEXT, &job.scene_path, "SCENE.json",
         "take the colliders of this scene, not of the one kept in the cache", NULL},
        {"--progress", NULL, TOILE_OPTION_CHOICE, &job.mode, "MODE", "auto, bar, json or none",
         toile_progress_modes},
    };
    const toile_syntax syntax = {
        "toile export CACHE.h5 -o OUT.{abc,pc2,mdd,obj,xmf} [--frames A-B] [--fps F] [--offset N] "
        "[--subframes N "
        "[--shutter S]] [--stretch] [--garment NAME] [--up y|z] [--scale S] [--colliders [--scene "
        "SCENE.json]]",
        "Writes finished frames for other tools. A file appears when it is whole; an export that is stopped\n"
        "leaves none behind.\n"
        "  .abc  one archive: positions, velocities, material coordinates (uv, in metres), panels as face\n"
        "        sets, start shape as Pref; frame F is at F / fps seconds\n"
        "  .pc2, .mdd  positions only, to be laid over the mesh; several garments become OUT_NAME.pc2, ...\n"
        "  .obj  a file per frame (OUT_0001.obj, ...; colliders OUT_collider_0001.obj, ...), panels as "
        "groups\n"
        "  .xmf  a description of the cache itself for ParaView, as the bake leaves beside it",
        options,
        COUNT(options),
        operands,
        COUNT(operands)};
    if (!toile_parse_options(&syntax, argc, argv, &job.cache_path, &exit_code))
        return exit_code;
    if (!job.output)
        return toile_complain(TOILE_EXIT_USAGE, "where to? Give the output: -o OUT.abc");
    if (job.scene_path && !job.colliders)
        return toile_complain(TOILE_EXIT_USAGE, "--scene goes with --colliders");
    if (!(job.scale >= SCALE_MIN && job.scale <= SCALE_MAX))
        return toile_complain(TOILE_EXIT_USAGE, "--scale %g: it must be from %g to %g", job.scale, SCALE_MIN,
                              SCALE_MAX);
    if (!(job.fps >= 0 && job.fps <= 1e4))
        return toile_complain(TOILE_EXIT_USAGE, "--fps %g: it must be above 0 and at most 10000", job.fps);
    if (!(offset == (int)offset && offset >= -1000000 && offset <= 1000000))
        return toile_complain(TOILE_EXIT_USAGE,
                              "--offset %g: it must be a whole number from -1000000 to 1000000", offset);
    job.offset = (int)offset;
    if (job.subframes < 1 || job.subframes > 64)
        return toile_complain(TOILE_EXIT_USAGE, "--subframes %d: it must be from 1 to 64", job.subframes);
    if (!(job.shutter > 0 && job.shutter < 1))
        return toile_complain(TOILE_EXIT_USAGE, "--shutter %g: it must be above 0 and below 1", job.shutter);
    const toile_export_format *format = find_format(job.output);
    job.output = toile_output_path(job.output, output, sizeof output);
    if (!format) {
        list_formats(false, list, sizeof list);
        return toile_complain(TOILE_EXIT_USAGE,
                              "%s: the ending says the format, and this one is unknown; there is %s",
                              job.output, list);
    }
    if (job.colliders && !format->colliders) {
        list_formats(true, list, sizeof list);
        return toile_complain(TOILE_EXIT_USAGE, "--colliders: %s holds no colliders; there is %s",
                              format->ending, list);
    }
    if ((job.subframes > 1 || job.stretch) && format != &toile_export_abc)
        return toile_complain(TOILE_EXIT_USAGE, "%s goes with .abc only",
                              job.stretch ? "--stretch" : "--subframes");
    if ((job.fps > 0 || offset != 0) && !format->retimes)
        return toile_complain(TOILE_EXIT_USAGE,
                              "--fps and --offset: %s describes the cache as it is; there is .abc",
                              format->ending);
    if (job.up == UP_BY_FORMAT)
        job.up = (int)format->up;
    job.progress.mode = (toile_progress_mode)job.mode;
    toile_memory_init(&job.memory, NULL);
    struct sigaction before[COUNT(SIGNALS)];
    catch_signals(before);
    exit_code = run_export(&job, format);
    release_signals(before);
    return exit_code;
}
