/* PC2 and MDD: one file per garment, OUT.pc2 for a single one, else OUT_NAME.pc2. They hold positions only
 * and are laid over a mesh that has the faces, such as the first frame as OBJ. All files appear at the end.
 */
#include "export_job.h"

#include "pointcache.h"

#include <stdio.h>
#include <string.h>

typedef struct point_file {
    toile_export_file file;
    toile_pointcache_writer *writer;
} point_file;

static toile_status begin_kind(toile_export *job, toile_pointcache_kind kind, void **state) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    int count = job->garment_count;
    point_file *files = toile_alloc(&job->memory, (size_t)count, sizeof *files);
    char(*names)[TOILE_NAME_SIZE] = toile_alloc(&job->memory, (size_t)count, sizeof *names);
    *state = files;
    toile_status status = files && names ? TOILE_OK : toile_fail_memory(&job->error, "the point caches");
    size_t stem = strlen(job->output) - strlen(".pc2");
    for (int i = 0; i < count && status >= 0; i++) {
        const toile_garment_view *garment = &header->garments[job->garments[i]];
        char path[TOILE_PATH_SIZE];
        int length;
        toile_export_name(garment->name, "garment", names, i + 1);
        if (count == 1)
            length = snprintf(path, sizeof path, "%s", job->output);
        else
            length = snprintf(path, sizeof path, "%.*s_%s%s", (int)stem, job->output, names[i],
                              job->output + stem);
        status = length < TOILE_PATH_SIZE
                     ? toile_export_file_begin(&files[i].file, path, &job->error)
                     : toile_fail(&job->error, TOILE_INVALID, "the name is too long: %.200s...", job->output);
        const toile_pointcache_def def = {kind, garment->vertex_count, job->last - job->first + 1,
                                          job->first + job->offset, job->fps};
        if (status >= 0)
            status = toile_pointcache_create(&job->memory, files[i].file.temporary, &def, &files[i].writer,
                                             &job->error);
    }
    toile_free(&job->memory, names);
    return status;
}

static toile_status begin_pc2(toile_export *job, void **state) {
    return begin_kind(job, TOILE_PC2, state);
}

static toile_status begin_mdd(toile_export *job, void **state) {
    return begin_kind(job, TOILE_MDD, state);
}

static toile_status write_frame(toile_export *job, void *state, int frame) {
    point_file *files = state;
    toile_status status = TOILE_OK;
    for (int i = 0; i < job->garment_count && status >= 0; i++) {
        int garment = job->garments[i];
        status = toile_export_read(job, frame, garment, job->positions, NULL);
        int count = toile_cache_get_header(job->cache)->garments[garment].vertex_count;
        for (int v = 0; v < count && status >= 0; v++) {
            float *p = job->positions + 3 * (size_t)v;
            double placed[3];
            toile_export_place(job, (const double[3]){(double)p[0], (double)p[1], (double)p[2]}, placed);
            for (int k = 0; k < 3; k++)
                p[k] = (float)placed[k];
        }
        if (status >= 0)
            status = toile_pointcache_append(files[i].writer, job->positions, &job->error);
    }
    return status;
}

static toile_status end(toile_export *job, void *state, bool keep) {
    point_file *files = state;
    toile_status status = TOILE_OK;
    if (!files)
        return status;
    /* All of them whole before the first one appears. */
    for (int i = 0; i < job->garment_count; i++) {
        toile_status finished =
            toile_pointcache_finish(files[i].writer, keep && status >= 0 ? &job->error : NULL);
        if (keep && status >= 0)
            status = finished;
    }
    for (int i = 0; i < job->garment_count; i++) {
        if (keep && status >= 0)
            status = toile_export_file_keep(&files[i].file, &job->error);
        toile_export_file_drop(&files[i].file);
    }
    toile_free(&job->memory, files);
    return status;
}

const toile_export_format toile_export_pc2 = {".pc2",    "PC2 point cache", TOILE_UP_Z, false, true,
                                              begin_pc2, write_frame,       end},
                          toile_export_mdd = {".mdd",    "MDD point cache", TOILE_UP_Z, false, true,
                                              begin_mdd, write_frame,       end};
