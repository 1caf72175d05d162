/* `toile export`: a cache for other tools. One row of FORMATS is one format. */
#include "commands.h"

#include "cache.h"
#include "progress.h"
#include "scene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

enum { PATH_SIZE = 4096 };

typedef struct export_job {
    const char *cache_path, *output, *garment_name, *scene_path;
    bool colliders;
    toile_frame_range range;
    int mode;
    toile_memory memory;
    toile_error error;
    toile_cache *cache;
    toile_scene *scene;
    int first_index, last_index;
    float *positions; /* of one garment */
    toile_progress progress;
} export_job;

/* ---- a file that appears only when it is whole ---- */

typedef struct output_file {
    FILE *file;
    const char *path;
    char temporary[PATH_SIZE];
} output_file;

static toile_status output_open(output_file *output, const char *path, toile_error *error) {
    output->path = path;
    if (snprintf(output->temporary, PATH_SIZE, "%s.%ld.tmp", path, (long)getpid()) >= PATH_SIZE)
        return toile_fail(error, TOILE_INVALID, "the name is too long: %s", path);
    output->file = fopen(output->temporary, "wb");
    if (!output->file)
        return toile_fail(error, TOILE_IO, "%s cannot be written: %s", path, strerror(errno));
    return TOILE_OK;
}

static toile_status output_close(output_file *output, bool keep, toile_error *error) {
    bool whole = !ferror(output->file);
    whole = fclose(output->file) == 0 && whole;
    if (keep && whole && rename(output->temporary, output->path) == 0)
        return TOILE_OK;
    toile_status status =
        keep ? toile_fail(error, TOILE_IO, "%s cannot be written: %s", output->path, strerror(errno))
             : error->status;
    unlink(output->temporary);
    return status;
}

/* ---- OBJ ---- */

/* OUT.obj and what goes between name and ending: "_collider", the frame. */
static toile_status obj_path(const export_job *job, const char *insert, int frame, char *path,
                             toile_error *error) {
    size_t stem = strlen(job->output) - strlen(".obj");
    char number[16] = "";
    if (job->last_index > job->first_index)
        snprintf(number, sizeof number, "_%04d", frame);
    if (snprintf(path, PATH_SIZE, "%.*s%s%s.obj", (int)stem, job->output, insert, number) >= PATH_SIZE)
        return toile_fail(error, TOILE_INVALID, "the name is too long: %s", job->output);
    return TOILE_OK;
}

/* Spaces end a name in OBJ. */
static void print_name(FILE *file, const char *key, const char *name) {
    fprintf(file, "%s ", key);
    for (; *name; name++)
        fputc(*name == ' ' || *name == '\t' || *name == '\n' ? '_' : *name, file);
    fputc('\n', file);
}

/* Nine digits bring every float32 back to the same bits. */
static void write_garment(FILE *file, const toile_garment_view *garment, const float *positions,
                          int vertex_base, int uv_base) {
    print_name(file, "o", garment->name);
    for (int i = 0; i < garment->vertex_count; i++)
        fprintf(file, "v %.9g %.9g %.9g\n", (double)positions[3 * i], (double)positions[3 * i + 1],
                (double)positions[3 * i + 2]);
    for (int i = 0; i < 3 * garment->triangle_count; i++)
        fprintf(file, "vt %.9g %.9g\n", (double)garment->corner_uv[2 * i],
                (double)garment->corner_uv[2 * i + 1]);
    for (int p = 0; p < garment->panel_count; p++) {
        print_name(file, "g", garment->panel_names[p]);
        for (int t = 0; t < garment->triangle_count; t++) {
            const int *v = garment->triangles + 3 * (size_t)t;
            if (garment->triangle_panels[t] == p)
                fprintf(file, "f %d/%d %d/%d %d/%d\n", vertex_base + v[0] + 1, uv_base + 3 * t + 1,
                        vertex_base + v[1] + 1, uv_base + 3 * t + 2, vertex_base + v[2] + 1,
                        uv_base + 3 * t + 3);
        }
    }
}

static bool wanted(const export_job *job, const toile_garment_view *garment) {
    return !job->garment_name || strcmp(job->garment_name, garment->name) == 0;
}

static toile_status write_garments(export_job *job, int index, int frame) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    char path[PATH_SIZE];
    output_file output;
    toile_status status = obj_path(job, "", frame, path, &job->error);
    if (status >= 0)
        status = output_open(&output, path, &job->error);
    if (status < 0)
        return status;
    fprintf(output.file, "# Toile %s, scene %s, frame %d, metres\n", toile_version(), header->scene_name,
            frame);
    int vertex_base = 0, uv_base = 0;
    for (int g = 0; g < header->garment_count && status >= 0; g++) {
        const toile_garment_view *garment = &header->garments[g];
        if (!wanted(job, garment))
            continue;
        status = toile_cache_read(job->cache, index, g, job->positions, NULL, &job->error);
        if (status >= 0)
            write_garment(output.file, garment, job->positions, vertex_base, uv_base);
        vertex_base += garment->vertex_count;
        uv_base += 3 * garment->triangle_count;
    }
    return output_close(&output, status >= 0, &job->error);
}

static toile_status write_colliders(export_job *job, int frame) {
    char path[PATH_SIZE];
    output_file output;
    toile_status status = toile_scene_prepare(job->scene, frame, &job->error);
    if (status >= 0)
        status = obj_path(job, "_collider", frame, path, &job->error);
    if (status >= 0)
        status = output_open(&output, path, &job->error);
    if (status < 0)
        return status;
    fprintf(output.file, "# Toile %s, colliders, frame %d, metres\n", toile_version(), frame);
    int base = 1;
    for (int c = 0; c < toile_scene_collider_count(job->scene) && status >= 0; c++) {
        int vertices, faces;
        const double *positions;
        const int *triangles;
        status =
            toile_scene_collider_mesh(job->scene, c, &vertices, &positions, &faces, &triangles, &job->error);
        if (status < 0)
            break;
        print_name(output.file, "g", toile_scene_collider_name(job->scene, c));
        for (int i = 0; i < vertices; i++)
            fprintf(output.file, "v %.9g %.9g %.9g\n", positions[3 * i], positions[3 * i + 1],
                    positions[3 * i + 2]);
        for (int t = 0; t < faces; t++)
            fprintf(output.file, "f %d %d %d\n", base + triangles[3 * t], base + triangles[3 * t + 1],
                    base + triangles[3 * t + 2]);
        base += vertices;
    }
    return output_close(&output, status >= 0, &job->error);
}

static toile_status export_obj(export_job *job) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    int first = header->first_frame + job->first_index, last = header->first_frame + job->last_index;
    toile_progress_start(&job->progress, (toile_progress_mode)job->mode, "export", header->scene_name,
                         job->output, first, last, 0);
    toile_status status = TOILE_OK;
    for (int frame = first; frame <= last && status >= 0; frame++) {
        status = write_garments(job, frame - header->first_frame, frame);
        if (status >= 0 && job->scene)
            status = write_colliders(job, frame);
        if (status >= 0)
            toile_progress_frame(&job->progress, frame, NULL);
    }
    return status;
}

/* ---- formats ---- */

/* A null `write` is a format that is planned: it is refused by name instead of as unknown. */
static const struct format {
    const char *ending, *label;
    toile_status (*write)(export_job *job);
} FORMATS[] = {
    {".obj", "OBJ, a file per frame", export_obj},
    {".abc", "Alembic", NULL},
    {".pc2", "PC2 point cache", NULL},
    {".mdd", "MDD point cache", NULL},
};

static const struct format *find_format(const char *path) {
    size_t length = strlen(path);
    for (int i = 0; i < COUNT(FORMATS); i++) {
        size_t tail = strlen(FORMATS[i].ending);
        if (length > tail && strcasecmp(path + length - tail, FORMATS[i].ending) == 0)
            return &FORMATS[i];
    }
    return NULL;
}

static int refuse_format(const char *path, const struct format *format) {
    char list[128] = "";
    for (int i = 0; i < COUNT(FORMATS); i++) {
        size_t used = strlen(list);
        if (FORMATS[i].write)
            snprintf(list + used, sizeof list - used, "%s%s (%s)", used ? ", " : "", FORMATS[i].ending,
                     FORMATS[i].label);
    }
    if (format)
        return toile_complain(TOILE_EXIT_USAGE, "%s: export to %s (%s) does not exist yet; there is %s", path,
                              format->ending, format->label, list);
    return toile_complain(TOILE_EXIT_USAGE,
                          "%s: the ending says the format, and this one is unknown; there is %s", path, list);
}

/* ---- the command ---- */

static toile_status check_garment(export_job *job) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    char list[512] = "";
    for (int g = 0; g < header->garment_count; g++) {
        if (wanted(job, &header->garments[g]))
            return TOILE_OK;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", header->garments[g].name);
    }
    return toile_fail(&job->error, TOILE_INVALID, "--garment %s: %s has no such garment; it has: %s",
                      job->garment_name, job->cache_path, list);
}

static int run_export(export_job *job, const struct format *format) {
    size_t most = 0;
    int exit_code = TOILE_EXIT_INPUT;
    toile_status status = toile_cache_open(&job->memory, job->cache_path, &job->cache, &job->error);
    if (status >= 0)
        status = check_garment(job);
    if (status < 0)
        goto out;
    if (!toile_choose_frames(&job->range, job->cache, job->cache_path, &job->first_index, &job->last_index))
        goto out;
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    for (int g = 0; g < header->garment_count; g++)
        if ((size_t)header->garments[g].vertex_count > most)
            most = (size_t)header->garments[g].vertex_count;
    job->positions = toile_alloc(&job->memory, 3 * most, sizeof(float));
    if (!job->positions) {
        status = toile_fail_memory(&job->error, "a frame");
        goto out;
    }
    if (job->colliders) {
        job->scene = toile_open_cache_scene(job->cache, job->scene_path, &job->error);
        if (!job->scene) {
            status = job->error.status;
            goto out;
        }
    }
    status = format->write(job);
    if (status < 0)
        goto out;
    int last = header->first_frame + job->last_index, count = job->last_index - job->first_index + 1;
    char note[PATH_SIZE + 64];
    snprintf(note, sizeof note, "done: %d frame%s to %s", count, count == 1 ? "" : "s", job->output);
    toile_progress_end(&job->progress, "complete", last, note);
    exit_code = 0;
out:
    if (status < 0) {
        exit_code = toile_status_exit_code(status);
        toile_progress_error(&job->progress, exit_code, job->error.message);
    }
    toile_free(&job->memory, job->positions);
    toile_scene_free(job->scene);
    toile_cache_close(job->cache, NULL);
    return exit_code;
}

int toile_command_export(int argc, char **argv) {
    static const char *const operands[] = {"CACHE.h5"};
    export_job job = {.mode = TOILE_PROGRESS_AUTO};
    int exit_code;
    const toile_option options[] = {
        {"--output", "-o", TOILE_OPTION_TEXT, &job.output, "OUT.obj",
         "where to; several frames become OUT_0001.obj, OUT_0002.obj, ...", NULL},
        {"--frames", NULL, TOILE_OPTION_FRAMES, &job.range, "A-B", "only these frames", NULL},
        {"--garment", NULL, TOILE_OPTION_TEXT, &job.garment_name, "NAME", "only this garment", NULL},
        {"--colliders", NULL, TOILE_OPTION_FLAG, &job.colliders, NULL,
         "the scene's colliders too, as OUT_collider_0001.obj, ...", NULL},
        {"--scene", NULL, TOILE_OPTION_TEXT, &job.scene_path, "SCENE.json",
         "take the colliders of this scene, not of the one kept in the cache", NULL},
        {"--progress", NULL, TOILE_OPTION_CHOICE, &job.mode, "MODE", "auto, bar, json or none",
         toile_progress_modes},
    };
    const toile_syntax syntax = {
        "toile export CACHE.h5 -o OUT.obj [--frames A-B] [--garment NAME] [--colliders [--scene SCENE.json]]",
        "Writes finished frames for other tools; the ending of OUT says the format. OBJ: positions in "
        "metres, z as in\n"
        "the scene, material coordinates as vt, panels as groups. A file appears when it is whole.",
        options,
        COUNT(options),
        operands,
        COUNT(operands)};
    if (!toile_parse_options(&syntax, argc, argv, &job.cache_path, &exit_code))
        return exit_code;
    if (!job.output)
        return toile_complain(TOILE_EXIT_USAGE, "where to? Give the output: -o OUT.obj");
    if (job.scene_path && !job.colliders)
        return toile_complain(TOILE_EXIT_USAGE, "--scene goes with --colliders");
    const struct format *format = find_format(job.output);
    if (!format || !format->write)
        return refuse_format(job.output, format);
    job.progress.mode = (toile_progress_mode)job.mode;
    toile_memory_init(&job.memory, NULL);
    return run_export(&job, format);
}
