/* Point caches: the positions of one mesh, frame after frame, without its faces. Two formats that most tools
 * read.
 *
 *   PC2   little endian: "POINTCACHE2\0", int32 version 1, int32 points, float32 first frame, float32 frames
 * between samples, int32 samples, then per sample float32 (points x 3) MDD   big endian: int32 frames, int32
 * points, float32 (frames) times in s, then per frame float32 (points x 3)
 *
 * Status and messages as in cache.h. A handle is used by one thread at a time. Files larger than memory are
 * fine. */
#ifndef TOILE_POINTCACHE_H
#define TOILE_POINTCACHE_H

#include "error.h"
#include "memory.h"

#include <stdint.h>

typedef enum toile_pointcache_kind { TOILE_PC2, TOILE_MDD } toile_pointcache_kind;

typedef struct toile_pointcache_def {
    toile_pointcache_kind kind;
    int point_count, frame_count;
    int first_frame;
    double fps; /* MDD: frame F is at F / fps, where a scene of that fps plays it */
} toile_pointcache_def;

typedef struct toile_pointcache_writer toile_pointcache_writer;

/* Creates or empties `path`. */
toile_status toile_pointcache_create(toile_memory *memory, const char *path, const toile_pointcache_def *def,
                                     toile_pointcache_writer **writer, toile_error *error);
/* The next frame; positions are (point_count x 3). */
toile_status toile_pointcache_append(toile_pointcache_writer *writer, const float *positions,
                                     toile_error *error);
/* Forces all to disk and frees the writer, whatever is returned. TOILE_MISUSE when frames are missing. Null
 * is fine.
 */
toile_status toile_pointcache_finish(toile_pointcache_writer *writer, toile_error *error);

typedef struct toile_pointcache_info {
    toile_pointcache_kind kind;
    int point_count, frame_count;   /* as the file says */
    int stored_frames;              /* how many of them are there in full */
    int64_t extra_bytes;            /* behind the last frame; 0 when frames are missing */
    double first_frame, frame_step; /* PC2 */
    double first_time, last_time;   /* MDD, s */
    double fps; /* MDD; 0 when the times are not evenly spaced or there are fewer than two */
} toile_pointcache_info;

typedef struct toile_pointcache_reader toile_pointcache_reader;

/* Trusts nothing in the file. A file that ends early is opened if its header is whole: see stored_frames. */
toile_status toile_pointcache_open(toile_memory *memory, const char *path, toile_pointcache_kind kind,
                                   toile_pointcache_reader **reader, toile_error *error);
const toile_pointcache_info *toile_pointcache_get_info(const toile_pointcache_reader *reader);
/* A frame below stored_frames into the caller's (point_count x 3). */
toile_status toile_pointcache_read(toile_pointcache_reader *reader, int frame, float *positions,
                                   toile_error *error);
void toile_pointcache_close(toile_pointcache_reader *reader);

#endif
