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
    double position_error, velocity_error; /* m, m/s: largest difference to what was simulated; 0: none but float32 */
    const char *inputs_json;        /* or null: {"file": "what it was like"} of every file the scene names */
} toile_cache_header;

/* Creates (replacing an existing file only by renaming a complete new one over it) and appends. A frame is seen by
 * readers only when all of it is on disk. */
toile_status toile_cache_create(toile_memory *memory, const char *path, const toile_cache_header *header,
                                toile_cache **cache, toile_error *error);
/* The same, beginning with the first `keep` frames of another cache with the same garments: so that a header changes, or a
 * bake goes another way from a frame on, while the old file stays until the new one is whole. Frames are copied as they
 * are stored. */
toile_status toile_cache_create_from(toile_memory *memory, const char *path, const toile_cache_header *header,
                                     toile_cache *from, int keep, toile_cache **cache, toile_error *error);
/* Opens for appending after `keep_through` frame: later frames are dropped. Also after a crash of the writer. */
toile_status toile_cache_reopen(toile_memory *memory, const char *path, int keep_through, toile_cache **cache,
                                toile_error *error);
/* After a failure the file holds the frames it held before, and nothing more is written: close, and reopen when
 * there is room. */
toile_status toile_cache_append(toile_cache *cache, const toile_frame_view *frame, toile_error *error);
/* The two halves of append, for several frames that reach the disk together: stage each, then commit all. */
toile_status toile_cache_stage(toile_cache *cache, const toile_frame_view *frame, toile_error *error);
toile_status toile_cache_commit(toile_cache *cache, toile_error *error);
/* Shows others that the writer is alive; to be called every few seconds when nothing is appended. */
void toile_cache_beat(toile_cache *cache);
/* Removes what was being created there (CACHE.new-PROCESS) by processes that died. For the holder of the lock. */
void toile_cache_sweep(const char *path);
/* Puts the file that is being written under another name, over what is there, with its lock. */
toile_status toile_cache_rename(toile_cache *cache, const char *path, toile_error *error);

/* Opens what can be opened of a damaged file: a header or an end that is not as stated is let pass, and which frames are
 * good toile_cache_check says. */
toile_status toile_cache_open_damaged(toile_memory *memory, const char *path, toile_cache **cache, toile_error *error);

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

/* ---- lock: one writer per file, also where byte locks do not work ---- */

typedef struct toile_lock toile_lock;

/* CACHE.lock. TOILE_IO with who holds it. Caches that are open for writing hold theirs. */
toile_status toile_lock_take(toile_memory *memory, const char *cache_path, toile_lock **lock, toile_error *error);
/* Touches it now and then; false when another has taken it over. */
bool toile_lock_beat(toile_lock *lock);
/* Renames it, over one that is there; false with errno set. */
bool toile_lock_move(toile_lock *lock, const char *cache_path);
void toile_lock_release(toile_lock *lock);

/* ---- checkpoints: the exact state after a frame, beside the cache, each replaced whole ----
 *
 * PATH.state is the newest. Before it is replaced it becomes PATH.state-FRAME; of these the two newest and up to
 * five spread over the rest are kept, so that a bake can be taken up again from earlier frames. */

toile_status toile_checkpoint_write(const char *cache_path, uint64_t fingerprint, int frame, const void *state,
                                    size_t size, toile_error *error);
/* *state is allocated from memory and given to the caller. TOILE_IO when there is none, TOILE_FORMAT when damaged. */
toile_status toile_checkpoint_read(toile_memory *memory, const char *cache_path, uint64_t *fingerprint, int *frame,
                                   void **state, size_t *size, toile_error *error);
/* The newest one that is whole and not after frame `most`. Also when PATH.state itself is missing or damaged. */
toile_status toile_checkpoint_find(toile_memory *memory, const char *cache_path, int most, uint64_t *fingerprint, int *frame,
                                   void **state, size_t *size, toile_error *error);
void toile_checkpoint_remove(const char *cache_path);
/* Those of another cache take the place of the ones at and after frame `from`. */
void toile_checkpoint_move(const char *old_path, const char *new_path, int from);

/* ---- writing on a thread of its own ----
 *
 * The bake fills a slot and pushes it; the thread compresses, writes and syncs, several frames at once when the disk is
 * slow. From start to finish nobody else may use the cache handle, nor the memory it was made with, nor HDF5. */

typedef struct toile_cache_writer toile_cache_writer;

typedef struct toile_cache_writer_def {
    toile_cache *cache;
    const char *path;               /* of the cache, for checkpoints; copied */
    uint64_t fingerprint;           /* of the checkpoints */
    size_t state_size;
    toile_lock *lock;               /* a second one to be kept alive, or null */
    /* Called by the thread when a frame is on disk, before anyone waiting is told. May be null. */
    void (*on_frame)(void *user, int frame);
    void *user;
} toile_cache_writer_def;

typedef struct toile_cache_slot {
    float **positions, **velocities; /* per garment, to be filled */
} toile_cache_slot;

toile_status toile_cache_writer_start(toile_memory *memory, const toile_cache_writer_def *def, toile_cache_writer **writer,
                                      toile_error *error);
/* A slot for the next frame. Waits only if all are waiting for the disk. Fails with what the thread failed with. */
toile_status toile_cache_writer_slot(toile_cache_writer *writer, toile_cache_slot *slot, toile_error *error);
/* The frame in the slot; positions and velocities of the view are not looked at. */
void toile_cache_writer_push(toile_cache_writer *writer, const toile_frame_view *view);
/* Room for a checkpoint after the frame pushed last; null if one is still waiting for the disk: try after the next. */
void *toile_cache_writer_state(toile_cache_writer *writer);
void toile_cache_writer_push_state(toile_cache_writer *writer, int frame);
/* Frame of the newest checkpoint on disk, INT_MIN without one. */
int toile_cache_writer_checkpoint(toile_cache_writer *writer);
/* Until all that was pushed is on disk. */
toile_status toile_cache_writer_wait(toile_cache_writer *writer, toile_error *error);
/* Seconds that callers waited for a slot, so far. */
double toile_cache_writer_waited(toile_cache_writer *writer);
/* Waits, ends the thread, frees the writer; the cache stays open. Null is fine. */
toile_status toile_cache_writer_finish(toile_cache_writer *writer, toile_error *error);

/* ---- for the files of this folder ---- */

/* What to do about an errno, as the end of a message. */
const char *toile_io_advice(int error_number);
/* Makes a new or renamed name in the folder of `path` survive a power cut. 0 or an errno. */
int toile_sync_folder(const char *path);

#endif
