/* A job file: everything a bake needs in one HDF5 file, so that it runs on any machine. JOB.md specifies it.
 *
 * A job is a scene (JSON text) and the arrays that the scene names: meshes, and tracks, which are positions
 * that change from frame to frame. It is written under another name and appears when it is whole. Status and
 * messages as in cache.h. A handle is used by one thread at a time. */
#ifndef TOILE_JOB_HDF5_H
#define TOILE_JOB_HDF5_H

#include "error.h"
#include "memory.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TOILE_JOB_VERSION 1

typedef struct toile_job_file toile_job_file;

typedef struct toile_job_array {
    const char *name; /* unique among meshes */
    int vertex_count, face_count, corner_count, panel_count;
    const double *positions;        /* m, (vertex_count x 3) */
    const int *face_sizes;          /* 3 or 4, (face_count) */
    const int *face_vertices;       /* (corner_count) */
    const double *corner_uv;        /* m, (corner_count x 2), or null */
    const int *face_panels;         /* (face_count), or null */
    const char *const *panel_names; /* (panel_count) */
} toile_job_array;

/* ---- writing ---- */

toile_status toile_job_file_create(toile_memory *memory, const char *path, toile_job_file **file,
                                   toile_error *error);
toile_status toile_job_file_put_mesh(toile_job_file *file, const toile_job_array *mesh, toile_error *error);
/* Tracks are numbered from 0 in the order they are begun; several may grow at the same time. */
toile_status toile_job_file_begin_track(toile_job_file *file, const char *name, int first_frame,
                                        int vertex_count, int *track, toile_error *error);
/* The next frame of a track, (vertex_count x 3). A frame like the one before takes no room. */
toile_status toile_job_file_append(toile_job_file *file, int track, const double *positions,
                                   toile_error *error);
/* Writes the scene and makes the file appear under its name. Nothing can be written afterwards. */
toile_status toile_job_file_finish(toile_job_file *file, const char *scene, toile_error *error);

/* ---- reading ---- */

/* Whether the file begins like HDF5. False also when it cannot be read. */
bool toile_job_file_is(const char *path);
toile_status toile_job_file_open(toile_memory *memory, const char *path, toile_job_file **file,
                                 toile_error *error);
const char *toile_job_file_scene(const toile_job_file *file);
const char *toile_job_file_path(const toile_job_file *file);
/* Fills arrays that the caller frees with toile_job_file_free_mesh; their checksum is verified and, unless
 * null, given. */
toile_status toile_job_file_read_mesh(toile_job_file *file, const char *name, toile_job_array *mesh,
                                      uint64_t *checksum, toile_error *error);
void toile_job_file_free_mesh(toile_memory *memory, toile_job_array *mesh);

typedef struct toile_job_track {
    int first_frame, frame_count, vertex_count;
    uint64_t checksum; /* of all its frames */
} toile_job_track;
toile_status toile_job_file_find_track(toile_job_file *file, const char *name, int *track,
                                       toile_job_track *info, toile_error *error);
/* Positions at a frame; frames before the first and after the last are those. */
toile_status toile_job_file_read_track(toile_job_file *file, int track, int frame, double *positions,
                                       toile_error *error);

/* Closes and frees; an unfinished file is removed. Null is fine. */
void toile_job_file_close(toile_job_file *file);

#endif
