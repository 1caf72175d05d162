/* XDMF: a description of the cache itself, for ParaView. No numbers are copied. */
#include "export_job.h"

#include "xdmf.h"

static toile_status begin(toile_export *job, void **state) {
    *state = NULL;
    if (job->garment_name || job->scale != 1 || job->up != TOILE_UP_Z)
        return toile_fail(&job->error, TOILE_INVALID,
                          "%.300s describes the whole cache as it is: leave out --garment, --scale and --up",
                          job->output);
    return TOILE_OK;
}

static toile_status write_frame(toile_export *job, void *state, int frame) {
    (void)job;
    (void)state;
    (void)frame;
    return TOILE_OK;
}

static toile_status end(toile_export *job, void *state, bool keep) {
    (void)state;
    int first = toile_cache_get_header(job->cache)->first_frame;
    return keep ? toile_xdmf_write(&job->memory, job->cache, job->cache_path, job->output, job->first - first,
                                   job->last - first, &job->error)
                : TOILE_OK;
}

const toile_export_format toile_export_xmf = {".xmf", "XDMF for ParaView", TOILE_UP_Z, false, false,
                                              begin,  write_frame,         end};
