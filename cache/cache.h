/* The cache: an HDF5 file that a bake appends finished frames to and everyone else reads. FORMAT.md specifies it.
 *
 * Status as in core/status.h. Every call that fails leaves a message in its toile_error. A handle is used by one
 * thread at a time. Nothing is printed; HDF5's own error stack is silenced and quoted in the message. */
#ifndef TOILE_CACHE_H
#define TOILE_CACHE_H

#include "error.h"
#include "frame.h"
#include "memory.h"

#include <stdbool.h>

#define TOILE_CACHE_VERSION 1

typedef struct toile_cache toile_cache;

/* What is known before the first frame. Texts are copied. */
typedef struct toile_cache_header {
    const char *scene_name;
    const char *settings_json;      /* the scene as it was run, with every setting: for people and for --resume */
    const char *library_version;
    uint64_t fingerprint;           /* hash of all input that decides the result */
    double fps;
    int first_frame, last_frame;    /* planned */
    int garment_count;
    const toile_garment_view *garments;
} toile_cache_header;

/* Creates (replacing an existing file only by renaming a complete new one over it) and appends. A frame is seen by
 * readers only when all of it is on disk. */
toile_status toile_cache_create(toile_memory *memory, const char *path, const toile_cache_header *header,
                                toile_cache **cache, toile_error *error);
/* Opens for appending after `keep_through` frame: later frames are dropped. Also after a crash of the writer. */
toile_status toile_cache_reopen(toile_memory *memory, const char *path, int keep_through, toile_cache **cache,
                                toile_error *error);
/* After a failure the file holds the frames it held before, and nothing more is written: close, and reopen when
 * there is room. */
toile_status toile_cache_append(toile_cache *cache, const toile_frame_view *frame, toile_error *error);

/* Opens for reading; works while another process appends and after a crash of the writer. */
toile_status toile_cache_open(toile_memory *memory, const char *path, toile_cache **cache, toile_error *error);

/* Writes what is pending and frees the handle. The handle is gone whatever is returned. Null is fine. */
toile_status toile_cache_close(toile_cache *cache, toile_error *error);

/* Views live until close. */
const toile_cache_header *toile_cache_get_header(const toile_cache *cache);
int toile_cache_frame_count(const toile_cache *cache);  /* finished frames, contiguous from first_frame */
/* Looks for frames that were appended since; readers of a growing file. TOILE_WARNING: the handle still reads
 * its file, but the path now leads to another one (a new bake) or to none: open it again. */
toile_status toile_cache_refresh(toile_cache *cache, toile_error *error);

/* One frame by position (0 is first_frame). Buffers are the caller's, (vertex_count x 3); either may be null. */
toile_status toile_cache_read(toile_cache *cache, int index, int garment, float *positions, float *velocities,
                              toile_error *error);
typedef struct toile_cache_frame {
    int frame;
    double time;
    uint64_t state_hash, checksum;
    toile_frame_numbers numbers;
} toile_cache_frame;
toile_status toile_cache_read_frame(toile_cache *cache, int index, toile_cache_frame *frame, toile_error *error);
/* Reads a frame back and compares its checksum; TOILE_FORMAT with the frame's number if it differs. */
toile_status toile_cache_check(toile_cache *cache, int index, toile_error *error);

/* ---- checkpoint: the exact state after a frame, beside the cache (PATH + ".state"), replaced atomically ---- */

toile_status toile_checkpoint_write(const char *cache_path, uint64_t fingerprint, int frame, const void *state,
                                    size_t size, toile_error *error);
/* *state is allocated from memory and given to the caller. TOILE_IO when there is none, TOILE_FORMAT when damaged. */
toile_status toile_checkpoint_read(toile_memory *memory, const char *cache_path, uint64_t *fingerprint, int *frame,
                                   void **state, size_t *size, toile_error *error);
void toile_checkpoint_remove(const char *cache_path);

/* ---- for the files of this folder ---- */

/* What to do about an errno, as the end of a message. */
const char *toile_io_advice(int error_number);
/* Makes a new or renamed name in the folder of `path` survive a power cut. 0 or an errno. */
int toile_sync_folder(const char *path);

#endif
