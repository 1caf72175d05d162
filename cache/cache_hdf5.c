/* The cache as an HDF5 file (FORMAT.md). Written with 1.10's single-writer/multiple-reader mode (SWMR), in
 * which the library writes metadata in an order that keeps the file readable between any two writes; a journal
 * (hdf5_driver.c) keeps it so within them, for a process that is killed there.
 *
 *   skeleton     all groups, datasets and attributes, no frames, under another name; then renamed into place
 *   append       streams and columns of the frame, flush, sync; then its number in frames/frame: the commit
 *   read         frames/frame decides how many frames there are; whatever lies beyond is not looked at
 *
 * HDF5 reads and writes through a file driver of ours (hdf5_driver.c): after a failed write the file stays as
 * at the last commit. Its own file locks are left out there; a lock of ours keeps two writers apart where locks
 * work.
 *
 * A file is checked against the format before anything in it is believed: links and storage that lead to
 * other files, filters beyond our own, sizes that the file cannot hold are all refused at open. */
#include "cache.h"
#include "hash.h"
#include "hdf5_driver.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#define DEFLATE_LEVEL 1           /* 4 and 6 measured 1 % smaller on 100,000 vertices, and slower to write */
#define COLUMN_CHUNK 256          /* frames per chunk of a column: 2 KB each */
#define COLUMN_CHUNK_MAX 65536    /* more is no file of ours */
#define MAX_VERTICES (1 << 28)    /* a chunk is one frame, and HDF5 limits it to 4 GB */
#define MAX_PACKED (1 << 26)      /* vertices whose chunk zlib takes at once; more go through HDF5 */
#define MAX_DAMAGED (1 << 20)     /* frames that are looked for in a damaged file */
#define UNCOMMITTED INT32_MIN     /* fill value of frames/frame: never a frame number */
#define LOCK_BYTE (INT64_MAX - 1) /* far beyond any data, apart from locks on the whole file by others */
#define SUPERBLOCK_START 12       /* bytes of it that we look at */
#define SUPERBLOCK_WRITE 1        /* its flags: open for writing, */
#define SUPERBLOCK_SWMR 4         /* and in SWMR mode */
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define READ_ATTEMPTS 22   /* at metadata: HDF5 waits 1, 2, 4.. ns, 4 ms in all; its own 100 never end */
#define OPEN_ATTEMPTS 3    /* a writer may close, or drop frames, between two looks at its file */
#else                      /* nobody writes a fuzzer's files */
#define READ_ATTEMPTS 1
#define OPEN_ATTEMPTS 1
#endif

enum { POSITIONS, VELOCITIES, STREAM_COUNT };
static const char *const stream_names[STREAM_COUNT] = {"positions", "velocities"};

typedef enum kind { KIND_INT32, KIND_UINT64, KIND_FLOAT32, KIND_FLOAT64 } kind;

/* Columns of frames/, where each value sits in a toile_cache_frame. The figures may be missing, so that a
 * list that grew still opens older files; they then read as not-a-number. */
typedef struct column {
    const char *name;
    kind kind;
    bool required;
    size_t offset;
} column;
static const column columns[] = {
    {"frame", KIND_INT32, true, offsetof(toile_cache_frame, frame)}, /* the commit */
    {"time", KIND_FLOAT64, true, offsetof(toile_cache_frame, time)},
    {"state_hash", KIND_UINT64, true, offsetof(toile_cache_frame, state_hash)},
    {"checksum", KIND_UINT64, true, offsetof(toile_cache_frame, checksum)},
#define NUMBER_COLUMN(id) {#id, KIND_FLOAT64, false, offsetof(toile_cache_frame, numbers.id)},
    TOILE_FRAME_NUMBERS(NUMBER_COLUMN)
#undef NUMBER_COLUMN
};
#define COLUMN_COUNT ((int)(sizeof columns / sizeof *columns))
#define COMMIT 0

struct toile_cache {
    toile_memory *memory;
    char *path;
    toile_hdf5_device device;
    bool writable, swmr;
    bool away;                         /* the file of a writer was deleted or moved */
    int64_t size;                      /* of the file at the last commit */
    bool lenient;                      /* damage that does not hinder reading is let pass */
    toile_lock *lock;                  /* of a writer */
    hid_t file, columns[COLUMN_COUNT]; /* 0: none */
    hid_t (*streams)[STREAM_COUNT];    /* per garment */
    toile_garment_view *garments;      /* owns what it points to */
    toile_cache_header header;         /* its texts too */
    int frame_count;
    bool plain; /* all streams are stored as ours are: chunks of a frame, shuffled, deflated */
    unsigned char *planes, *packed; /* of one frame of the largest garment; null before they are needed */
    size_t planes_size, packed_size;
    int staged;       /* frames behind them that wait for their commit */
    char reason[256]; /* innermost message of HDF5 in this call */
};

static hid_t file_type(kind kind) {
    switch (kind) {
    case KIND_INT32: return H5T_STD_I32LE;
    case KIND_UINT64: return H5T_STD_U64LE;
    case KIND_FLOAT32: return H5T_IEEE_F32LE;
    case KIND_FLOAT64: break;
    }
    return H5T_IEEE_F64LE;
}

static hid_t memory_type(kind kind) {
    switch (kind) {
    case KIND_INT32: return H5T_NATIVE_INT32;
    case KIND_UINT64: return H5T_NATIVE_UINT64;
    case KIND_FLOAT32: return H5T_NATIVE_FLOAT;
    case KIND_FLOAT64: break;
    }
    return H5T_NATIVE_DOUBLE;
}

/* ---- errors ---- */

/* The host may use HDF5 too: its error printing is put back after each of our calls. */
typedef struct quiet {
    H5E_auto2_t function;
    void *data;
    bool saved;
} quiet;

static void enter(toile_cache *cache, quiet *quiet) {
    cache->reason[0] = '\0';
    cache->device.read_error = 0;
    cache->device.no_memory = false;
    quiet->saved = H5Eget_auto2(H5E_DEFAULT, &quiet->function, &quiet->data) >= 0;
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static void leave(const quiet *quiet) {
    H5Eclear2(H5E_DEFAULT);
    if (quiet->saved)
        H5Eset_auto2(H5E_DEFAULT, quiet->function, quiet->data);
}

static herr_t take_reason(unsigned index, const H5E_error2_t *entry, void *user) {
    toile_cache *cache = user;
    if (index == 0 && entry->desc)
        snprintf(cache->reason, sizeof cache->reason, "%s", entry->desc);
    return 0;
}

/* Wraps every call of HDF5 that may fail. The library forgets its errors at the next call, so the reason is
 * taken here and not when the message is made. */
static bool ok(toile_cache *cache, int64_t result) {
    if (result < 0 && !cache->reason[0])
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, cache);
    return result >= 0;
}

static void release(hid_t *id) {
    if (*id > 0)
        H5Idec_ref(*id);
    *id = 0;
}

static toile_status fail_system(const toile_cache *cache, toile_error *error, const char *what, int number) {
    return toile_fail(error, TOILE_IO, "cannot %s %.500s: %s; %s", what, cache->path, strerror(number),
                      toile_io_advice(number));
}

/* For a failed write: of the disk if the driver saw one fail, else of HDF5. */
static toile_status fail_write(const toile_cache *cache, toile_error *error) {
    if (cache->device.write_error)
        return fail_system(cache, error, "write", cache->device.write_error);
    if (cache->device.no_memory)
        return toile_fail_memory(error, "a cache");
    return toile_fail(error, TOILE_IO, "cannot write %.500s: %s; check the disk and the memory, then resume",
                      cache->path, cache->reason[0] ? cache->reason : "an earlier write failed");
}

/* For a file that is not as FORMAT.md says: what is wrong, printf form. */
__attribute__((format(printf, 3, 4))) static toile_status
fail_format(const toile_cache *cache, toile_error *error, const char *format, ...) {
    char what[400];
    if (cache->device.no_memory)
        return toile_fail_memory(error, "a cache");
    if (cache->device.read_error)
        return fail_system(cache, error, "read", cache->device.read_error);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    return toile_fail(error, TOILE_FORMAT,
                      "%.300s: %s%s%s%s; the file is damaged or was not written by Toile: bake "
                      "again or restore a copy",
                      cache->path, what, cache->reason[0] ? " (HDF5: \"" : "", cache->reason,
                      cache->reason[0] ? "\")" : "");
}

/* ---- texts ---- */

/* Whoever reads a name in Python decodes it, so it has to be UTF-8 (RFC 3629: no overlong forms, no
 * surrogates). */
static bool is_utf8(const char *text) {
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        int more = *at < 0x80             ? 0
                   : (*at & 0xe0) == 0xc0 ? 1
                   : (*at & 0xf0) == 0xe0 ? 2
                   : (*at & 0xf8) == 0xf0 ? 3
                                          : -1;
        if (more < 0)
            return false;
        uint32_t code = more == 0 ? *at : *at & (0x3fu >> more);
        at++;
        for (int i = 0; i < more; i++, at++) {
            if ((*at & 0xc0) != 0x80) /* also the end of the text */
                return false;
            code = code << 6 | (*at & 0x3f);
        }
        static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
        if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
            return false;
    }
    return true;
}

/* A name as a link in HDF5, where '/' separates and "." is the group itself. Null when memory is out. */
static char *encode_name(toile_memory *memory, const char *name) {
    char *encoded = toile_alloc(memory, strlen(name) + 1, 3);
    if (!encoded)
        return NULL;
    char *at = encoded;
    for (const char *c = name; *c; c++) {
        if (*c == '/' || *c == '%' || (*c == '.' && c == name))
            at += sprintf(at, "%%%02X", (unsigned char)*c);
        else
            *at++ = *c;
    }
    return encoded;
}

static uint64_t hash_text(uint64_t hash, const char *text) {
    return toile_hash(hash, text, strlen(text));
}

/* Over all that is written before the first frame, so that damage to it is found at open. FORMAT.md. */
static uint64_t header_checksum(const toile_cache_header *header) {
    uint64_t hash = TOILE_HASH_SEED;
    hash = hash_text(hash, header->scene_name);
    hash = hash_text(hash, header->settings_json);
    hash = hash_text(hash, header->library_version);
    hash = toile_hash(hash, &header->fingerprint, 8);
    hash = toile_hash(hash, &header->fps, 8);
    hash = toile_hash(hash, (int32_t[]){header->first_frame, header->last_frame, header->garment_count}, 12);
    for (int i = 0; i < header->garment_count; i++) {
        const toile_garment_view *garment = &header->garments[i];
        size_t vertices = (size_t)garment->vertex_count, triangles = (size_t)garment->triangle_count;
        hash = hash_text(hash, garment->name);
        hash = toile_hash(hash, garment->rest_positions, vertices * 12);
        hash = toile_hash(hash, garment->triangles, triangles * 12);
        hash = toile_hash(hash, garment->triangle_panels, triangles * 4);
        hash = toile_hash(hash, garment->corner_uv, triangles * 24);
        for (int k = 0; k < garment->panel_count; k++)
            hash = hash_text(hash, garment->panel_names[k]);
    }
    return hash;
}

/* Of a frame, before its garments are added. */
static uint64_t frame_checksum(int frame, double time, uint64_t state_hash) {
    int64_t number = frame;
    unsigned char head[24];
    memcpy(head, &number, 8);
    memcpy(head + 8, &time, 8);
    memcpy(head + 16, &state_hash, 8);
    return toile_hash(TOILE_HASH_SEED, head, sizeof head);
}

/* ---- opening and closing the file ---- */

static int64_t file_size(const toile_cache *cache) {
    struct stat info;
    return fstat(cache->device.fd, &info) ? 0 : (int64_t)info.st_size;
}

/* Closes what HDF5 has open. False if something could not be written. */
static bool close_file(toile_cache *cache) {
    bool good = true;
    for (int i = 0; i < COLUMN_COUNT; i++)
        release(&cache->columns[i]);
    for (int i = 0; cache->streams && i < cache->header.garment_count; i++)
        for (int k = 0; k < STREAM_COUNT; k++)
            release(&cache->streams[i][k]);
    if (cache->file > 0) {
        good = ok(cache, H5Fclose(cache->file));
        if (!good) { /* the second time nothing is written, so that it closes */
            cache->device.discard = true;
            H5Fclose(cache->file);
        }
        cache->file = 0;
    }
    return good && !cache->device.discard;
}

/* Frees the handle, without a word. */
static void destroy(toile_cache *cache) {
    if (!cache)
        return;
    cache->device.discard = true; /* whoever wants things written has closed the file before */
    close_file(cache);
    if (cache->device.fd >= 0)
        close(cache->device.fd);
    cache->device.fd = -1;
    toile_memory *memory = cache->memory;
    if (!cache->device.in_use)
        toile_journal_free(memory, &cache->device.journal);
    for (int i = 0; cache->garments && i < cache->header.garment_count; i++) {
        toile_garment_view *garment = &cache->garments[i];
        const void *const owned[] = {garment->name,      garment->rest_positions,
                                     garment->triangles, garment->triangle_panels,
                                     garment->corner_uv, garment->panel_names};
        for (size_t k = 0; k < sizeof owned / sizeof *owned; k++)
            toile_free(memory, (void *)owned[k]);
    }
    toile_free(memory, cache->garments);
    toile_free(memory, cache->streams);
    toile_free(memory, cache->planes);
    toile_free(memory, cache->packed);
    toile_free(memory, (void *)cache->header.scene_name);
    toile_free(memory, (void *)cache->header.settings_json);
    toile_free(memory, (void *)cache->header.library_version);
    toile_free(memory, (void *)cache->header.inputs_json);
    toile_free(memory, cache->path);
    toile_lock_release(cache->lock);
    /* Should HDF5 hold on to the file in spite of all, it would come back to the device at exit: a leak is
     * better. */
    if (!cache->device.in_use)
        toile_free(memory, cache);
}

static toile_cache *new_cache(toile_memory *memory, const char *path, toile_error *error) {
    toile_cache *cache = toile_alloc(memory, 1, sizeof *cache);
    if (cache) {
        cache->memory = cache->device.memory = memory;
        cache->device.piecewise = true;
        cache->device.fd = -1;
        cache->path = toile_copy_text(memory, path);
    }
    if (!cache || !cache->path) {
        toile_free(memory, cache);
        toile_fail_memory(error, "a cache");
        return NULL;
    }
    return cache;
}

/* Keeps a second writer away from the file at fd. Where locks do not work there is no protection. */
static bool lock_for_writing(int fd) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = LOCK_BYTE, .l_len = 1};
    return !fcntl(fd, F_OFD_SETLK, &lock) || (errno != EAGAIN && errno != EACCES);
}

void toile_cache_sweep(const char *path) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    int length = slash ? (int)(slash - path) + 1 : 0;
    char folder[PATH_MAX + 1], file[PATH_MAX + 300];
    snprintf(folder, sizeof folder, "%.*s", length ? length : 1, length ? path : ".");
    DIR *list = opendir(folder);
    size_t size = strlen(base);
    for (struct dirent *entry; list && (entry = readdir(list));)
        if (strncmp(entry->d_name, base, size) == 0 && strncmp(entry->d_name + size, ".new-", 5) == 0) {
            snprintf(file, sizeof file, "%.*s%s", length, path, entry->d_name);
            unlink(file);
        }
    if (list)
        closedir(list);
}

static toile_status fail_locked(const toile_cache *cache, toile_error *error) {
    return toile_fail(error, TOILE_IO,
                      "cannot write %.500s: another process is writing it; wait for it or stop it",
                      cache->path);
}

static toile_status open_path(toile_cache *cache, bool write, toile_error *error) {
    struct stat info;
    /* Not to hang on a pipe. */
    cache->device.fd = open(cache->path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK);
    if (cache->device.fd < 0 || fstat(cache->device.fd, &info))
        return fail_system(cache, error, "open", errno);
    if (!S_ISREG(info.st_mode))
        return toile_fail(error, TOILE_IO,
                          "cannot open %.500s: it is not a file; choose the file that the bake wrote",
                          cache->path);
    cache->writable = cache->device.journaled = write;
    return write && !lock_for_writing(cache->device.fd) ? fail_locked(cache, error) : TOILE_OK;
}

/* Looks at the file before HDF5 does: the flags of its superblock, or a message that says what else it is. */
static toile_status read_superblock(toile_cache *cache, int *flags, toile_error *error) {
    unsigned char start[SUPERBLOCK_START] = {0};
    int64_t size = file_size(cache);
    if (!toile_hdf5_read(&cache->device, 0, sizeof start, start))
        return fail_system(cache, error, "read", cache->device.read_error);
    if (size == 0)
        return toile_fail(error, TOILE_FORMAT, "%.500s is empty; bake again or restore a copy", cache->path);
    if (size < SUPERBLOCK_START || memcmp(start, "\211HDF\r\n\032\n", 8) != 0)
        return toile_fail(error, TOILE_FORMAT,
                          "%.500s is not an HDF5 file; choose the file that the bake wrote", cache->path);
    /* 3 is what SWMR asks for. Older kinds of file have no checksums, and the library is less safe with them.
     */
    if (start[8] != 3 || start[9] != 8 || start[10] != 8)
        return toile_fail(error, TOILE_FORMAT,
                          "%.500s is an HDF5 file but not a Toile cache, or another program "
                          "rewrote it in an older form; choose the file that the bake wrote",
                          cache->path);
    *flags = start[11];
    return TOILE_OK;
}

/* A property list that leads to our driver and this device; 0 on failure. */
static hid_t access_list(toile_cache *cache, bool write) {
    hid_t fapl = 0;
    hbool_t yes = 1;
    bool done = ok(cache, fapl = toile_hdf5_access(&cache->device)) &&
                ok(cache, H5Pset_metadata_read_attempts(fapl, READ_ATTEMPTS));
    /* What the tool h5clear does to a file whose writer died: forget the flags, and do not mind that the file
     * is shorter than what was allocated in it. */
    if (done && write)
        done = ok(cache, H5Pset(fapl, "clear_status_flags", &yes));
    if (done && (write || cache->lenient))
        done = ok(cache, H5Pset(fapl, "skip_eof_check", &yes));
    if (!done)
        release(&fapl);
    return fapl;
}

static toile_status open_file(toile_cache *cache, toile_error *error) {
    int flags = 0;
    if (!toile_hdf5_mend(&cache->device))
        return cache->device.write_error ? fail_write(cache, error)
                                         : fail_format(cache, error, "its end cannot be read");
    toile_status status = read_superblock(cache, &flags, error);
    if (status != TOILE_OK)
        return status;
    if (!cache->writable && (flags & SUPERBLOCK_WRITE) && !(flags & SUPERBLOCK_SWMR))
        return toile_fail(error, TOILE_FORMAT,
                          "%.500s is open for writing in another program, or that program "
                          "crashed; close it, or run h5clear -s on the file",
                          cache->path);
    cache->swmr = flags & SUPERBLOCK_SWMR;
    unsigned mode = cache->writable ? H5F_ACC_RDWR | H5F_ACC_SWMR_WRITE
                    : cache->swmr   ? H5F_ACC_RDONLY | H5F_ACC_SWMR_READ
                                    : H5F_ACC_RDONLY;
    hid_t fapl = access_list(cache, cache->writable);
    if (fapl > 0 && !ok(cache, cache->file = H5Fopen(cache->path, mode, fapl)))
        cache->file = 0;
    release(&fapl);
    /* A writer that died may have written past the end that the superblock states. */
    if (cache->file > 0 && cache->writable && !ok(cache, H5Fincrement_filesize(cache->file, 0)))
        return fail_write(cache, error);
    if (cache->file > 0)
        return TOILE_OK;
    return cache->device.write_error ? fail_write(cache, error)
                                     : fail_format(cache, error, "it cannot be opened");
}

/* ---- reading: every piece is checked before it is used ---- */

/* Whether `name` is a plain link: others lead to other files. 1 yes, 0 there is none, -1 it is something
 * else. */
static int find_link(toile_cache *cache, hid_t group, const char *name) {
    H5L_info_t info;
    htri_t exists = H5Lexists(group, name, H5P_DEFAULT);
    if (exists == 0)
        return 0;
    if (!ok(cache, exists) || !ok(cache, H5Lget_info(group, name, &info, H5P_DEFAULT)))
        return -1;
    return info.type == H5L_TYPE_HARD ? 1 : -1;
}

static toile_status open_group(toile_cache *cache, hid_t parent, const char *name, hid_t *group,
                               toile_error *error) {
    if (find_link(cache, parent, name) != 1 || !ok(cache, *group = H5Gopen2(parent, name, H5P_DEFAULT)))
        return fail_format(cache, error, "group %.100s is missing or unreadable", name);
    return TOILE_OK;
}

static toile_status read_number(toile_cache *cache, hid_t object, const char *name, kind kind, void *value,
                                toile_error *error) {
    hid_t attribute = 0, type = 0, space = 0;
    bool good = ok(cache, attribute = H5Aopen(object, name, H5P_DEFAULT)) &&
                ok(cache, type = H5Aget_type(attribute)) && ok(cache, space = H5Aget_space(attribute)) &&
                H5Tequal(type, file_type(kind)) > 0 && H5Sget_simple_extent_type(space) == H5S_SCALAR &&
                ok(cache, H5Aread(attribute, memory_type(kind), value));
    release(&space);
    release(&type);
    release(&attribute);
    return good ? TOILE_OK : fail_format(cache, error, "attribute %s is missing or unreadable", name);
}

/* *text is allocated. */
static toile_status read_text(toile_cache *cache, hid_t object, const char *name, const char **text,
                              toile_error *error) {
    hid_t attribute = 0, type = 0, space = 0;
    char *copy = NULL;
    bool good = false;
    size_t size = 0;
    toile_status status = TOILE_OK;
    if (ok(cache, attribute = H5Aopen(object, name, H5P_DEFAULT)) &&
        ok(cache, type = H5Aget_type(attribute)) && ok(cache, space = H5Aget_space(attribute)) &&
        H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
        H5Sget_simple_extent_type(space) == H5S_SCALAR)
        size = H5Tget_size(type);
    if (size > 0 && (int64_t)size <= file_size(cache)) {
        copy = toile_alloc(cache->memory, size + 1, 1);
        if (!copy) {
            status = toile_fail_memory(error, "the texts of a cache");
            goto out;
        }
        good = ok(cache, H5Aread(attribute, type, copy)) && is_utf8(copy);
    }
    if (!good) {
        status = fail_format(cache, error, "attribute %s is missing or not a text", name);
        goto out;
    }
    *text = copy;
    copy = NULL;
out:
    release(&space);
    release(&type);
    release(&attribute);
    toile_free(cache->memory, copy);
    return status;
}

/* Whether the file can hold what a dataset that does not grow says it holds. Else a few bytes could ask for
 * any amount of memory. */
static bool holds(const toile_cache *cache, hid_t dataset, uint64_t bytes) {
    uint64_t stored = bytes ? H5Dget_storage_size(dataset) : 0;
    return stored <= (uint64_t)file_size(cache) && bytes <= stored;
}

#define ANY UINT64_MAX /* as a dimension: whatever it is, told to the caller */

/* Opens a dataset if its type and dimensions are the ones given. chunk is null for one that does not grow,
 * else its largest chunk. *type_size (may be null) asks for texts of fixed length. */
static toile_status open_dataset(toile_cache *cache, hid_t group, const char *where, const char *name,
                                 kind kind, int rank, hsize_t *dims, const hsize_t *chunk, size_t *type_size,
                                 hid_t *dataset, toile_error *error) {
    hid_t type = 0, space = 0, list = 0;
    hsize_t real[3], real_chunk[3];
    const char *wrong = NULL;
    if (find_link(cache, group, name) != 1 || !ok(cache, *dataset = H5Dopen2(group, name, H5P_DEFAULT)))
        return fail_format(cache, error, "dataset %.200s/%s is missing or unreadable", where, name);
    if (!ok(cache, type = H5Dget_type(*dataset)) || !ok(cache, space = H5Dget_space(*dataset)) ||
        !ok(cache, list = H5Dget_create_plist(*dataset)))
        wrong = "unreadable";
    else if (type_size ? H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0
                       : H5Tequal(type, file_type(kind)) <= 0)
        wrong = "of a wrong type";
    else if (H5Sget_simple_extent_ndims(space) != rank ||
             H5Sget_simple_extent_dims(space, real, NULL) != rank)
        wrong = "of wrong dimensions";
    for (int i = 0; !wrong && i < rank; i++) {
        if (dims[i] == ANY)
            dims[i] = real[i];
        else if (dims[i] != real[i])
            wrong = "of wrong dimensions";
    }
    if (!wrong && H5Pget_external_count(list) != 0)
        wrong = "stored in another file";
    if (!wrong) {
        H5D_layout_t layout = H5Pget_layout(list);
        if (chunk ? layout != H5D_CHUNKED : layout != H5D_CONTIGUOUS && layout != H5D_COMPACT)
            wrong = "stored in a wrong layout";
        else if (chunk && H5Pget_chunk(list, rank, real_chunk) != rank)
            wrong = "unreadable";
        for (int i = 0; !wrong && chunk && i < rank; i++)
            if (real_chunk[i] > chunk[i])
                wrong = "stored in too large chunks";
    }
    /* A filter we do not know would have HDF5 look for a plug-in. */
    int filters = wrong ? 0 : H5Pget_nfilters(list);
    for (int i = 0; !wrong && i < filters; i++) {
        unsigned flags;
        size_t values = 0;
        H5Z_filter_t filter = H5Pget_filter2(list, (unsigned)i, &flags, &values, NULL, 0, NULL, NULL);
        if (filter != H5Z_FILTER_DEFLATE && filter != H5Z_FILTER_SHUFFLE && filter != H5Z_FILTER_FLETCHER32)
            wrong = "stored with an unknown filter";
    }
    if (!wrong && filters < 0)
        wrong = "unreadable";
    if (type_size)
        *type_size = wrong ? 0 : H5Tget_size(type);
    release(&list);
    release(&space);
    release(&type);
    if (!wrong)
        return TOILE_OK;
    release(dataset);
    return fail_format(cache, error, "dataset %.200s/%s is %s", where, name, wrong);
}

/* Reads all of a dataset that does not grow into *data, which is allocated. */
static toile_status read_array(toile_cache *cache, hid_t group, const char *where, const char *name,
                               kind kind, int rank, hsize_t *dims, const void **data, toile_error *error) {
    hid_t dataset = 0;
    void *block = NULL;
    toile_status status =
        open_dataset(cache, group, where, name, kind, rank, dims, NULL, NULL, &dataset, error);
    if (status != TOILE_OK)
        return status;
    /* All of ours are of four bytes. */
    uint64_t bytes = 4;
    bool fits = true;
    for (int i = 0; i < rank; i++)
        fits = fits && dims[i] <= INT_MAX && !__builtin_mul_overflow(bytes, dims[i], &bytes);
    if (!fits || !holds(cache, dataset, bytes)) {
        status = fail_format(cache, error, "dataset %.200s/%s is larger than the file can hold", where, name);
        goto out;
    }
    block = toile_alloc(cache->memory, bytes, 1);
    if (!block) {
        status = toile_fail_memory(error, "the garments of a cache");
        goto out;
    }
    if (bytes > 0 && !ok(cache, H5Dread(dataset, memory_type(kind), H5S_ALL, H5S_ALL, H5P_DEFAULT, block))) {
        status = fail_format(cache, error, "dataset %.200s/%s cannot be read", where, name);
        goto out;
    }
    *data = block;
    block = NULL;
out:
    release(&dataset);
    toile_free(cache->memory, block);
    return status;
}

static toile_status read_panel_names(toile_cache *cache, hid_t group, const char *where,
                                     toile_garment_view *garment, toile_error *error) {
    hid_t dataset = 0, type = 0;
    hsize_t count = ANY;
    size_t size = 0;
    char *raw = NULL, **names = NULL;
    toile_status status =
        open_dataset(cache, group, where, "panel_names", KIND_INT32, 1, &count, NULL, &size, &dataset, error);
    if (status != TOILE_OK)
        return status;
    uint64_t bytes = 0;
    if (count > INT_MAX || size == 0 || __builtin_mul_overflow((uint64_t)count, (uint64_t)size, &bytes) ||
        !holds(cache, dataset, bytes)) {
        status =
            fail_format(cache, error, "dataset %.200s/panel_names is larger than the file can hold", where);
        goto out;
    }
    /* One block: the pointers, then the texts, each with room for its end. */
    raw = toile_alloc(cache->memory, bytes, 1);
    names = toile_alloc(cache->memory, count, sizeof *names + size + 1);
    if (!raw || !names) {
        status = toile_fail_memory(error, "the garments of a cache");
        goto out;
    }
    bool good = count == 0 || (ok(cache, type = H5Dget_type(dataset)) &&
                               ok(cache, H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw)));
    char *text = (char *)(names + count);
    for (hsize_t i = 0; good && i < count; i++, text += size + 1) {
        names[i] = text;
        memcpy(text, raw + i * size, size);
        good = is_utf8(text);
    }
    if (!good) {
        status = fail_format(cache, error, "dataset %.200s/panel_names cannot be read", where);
        goto out;
    }
    garment->panel_count = (int)count;
    garment->panel_names = (const char *const *)names;
    names = NULL;
out:
    release(&type);
    release(&dataset);
    toile_free(cache->memory, raw);
    toile_free(cache->memory, names);
    return status;
}

/* For views of a caller and of a file alike: null, or what is wrong with the indices. */
static const char *check_indices(const toile_garment_view *garment) {
    for (int i = 0; i < garment->triangle_count * 3; i++)
        if (garment->triangles[i] < 0 || garment->triangles[i] >= garment->vertex_count)
            return "a triangle names a vertex that does not exist";
    int panels = garment->panel_count > 1 ? garment->panel_count : 1;
    for (int i = 0; i < garment->triangle_count; i++)
        if (garment->triangle_panels[i] < -1 || garment->triangle_panels[i] >= panels)
            return "a triangle names a panel that does not exist";
    return NULL;
}

static toile_status load_garment(toile_cache *cache, hid_t garments, const char *link, toile_error *error) {
    hid_t group = 0;
    int32_t index = -1;
    toile_garment_view *garment = NULL;
    char *encoded = NULL, where[160];
    snprintf(where, sizeof where, "garments/%.140s", link);
    toile_status status = open_group(cache, garments, link, &group, error);
    if (status == TOILE_OK)
        status = read_number(cache, group, "index", KIND_INT32, &index, error);
    if (status != TOILE_OK)
        goto out;
    if (index < 0 || index >= cache->header.garment_count || cache->garments[index].name) {
        status = fail_format(cache, error, "%s has an index that is out of range or taken", where);
        goto out;
    }
    garment = &cache->garments[index];
    status = read_text(cache, group, "name", &garment->name, error);
    if (status != TOILE_OK)
        goto out;
    encoded = encode_name(cache->memory, garment->name);
    if (!encoded) {
        status = toile_fail_memory(error, "the garments of a cache");
        goto out;
    }
    if (strcmp(encoded, link) != 0) {
        status = fail_format(cache, error, "%s has the name of another garment", where);
        goto out;
    }

    hsize_t rest[] = {ANY, 3}, corners[] = {ANY, 3}, panels[] = {0}, uv[] = {0, 3, 2};
    status = read_array(cache, group, where, "rest_positions", KIND_FLOAT32, 2, rest,
                        (const void **)&garment->rest_positions, error);
    if (status == TOILE_OK)
        status = read_array(cache, group, where, "triangles", KIND_INT32, 2, corners,
                            (const void **)&garment->triangles, error);
    panels[0] = uv[0] = corners[0];
    if (status == TOILE_OK)
        status = read_array(cache, group, where, "triangle_panels", KIND_INT32, 1, panels,
                            (const void **)&garment->triangle_panels, error);
    if (status == TOILE_OK)
        status = read_array(cache, group, where, "corner_uv", KIND_FLOAT32, 3, uv,
                            (const void **)&garment->corner_uv, error);
    if (status == TOILE_OK)
        status = read_panel_names(cache, group, where, garment, error);
    if (status != TOILE_OK)
        goto out;
    if (rest[0] < 1 || rest[0] > MAX_VERTICES || corners[0] > INT_MAX / 3) {
        status = fail_format(cache, error, "%s has no vertices or too many", where);
        goto out;
    }
    garment->vertex_count = (int)rest[0];
    garment->triangle_count = (int)corners[0];
    const char *wrong = check_indices(garment);
    if (wrong)
        status = fail_format(cache, error, "%s: %s", where, wrong);
out:
    toile_free(cache->memory, encoded);
    release(&group);
    return status;
}

/* Reads what stays the same for all frames. */
static toile_status load_header(toile_cache *cache, toile_error *error) {
    toile_cache_header *header = &cache->header;
    hid_t root = cache->file, garments = 0;
    char *link = NULL;
    const char *format = NULL;
    int32_t version = 0, first = 0, last = 0, count = 0;
    uint64_t stated = 0;

    htri_t exists = H5Aexists(root, "format");
    toile_status status = exists > 0 ? read_text(cache, root, "format", &format, error) : TOILE_OK;
    if (status == TOILE_NO_MEMORY)
        goto out;
    if (exists == 0 || (format && strcmp(format, "toile") != 0)) {
        status = toile_fail(error, TOILE_FORMAT,
                            "%.500s is an HDF5 file but not a Toile cache; choose the file that "
                            "the bake wrote",
                            cache->path);
        goto out;
    }
    if (!format) {
        ok(cache, exists);
        status = fail_format(cache, error, "its header cannot be read");
        goto out;
    }
    status = read_number(cache, root, "version", KIND_INT32, &version, error);
    if (status != TOILE_OK)
        goto out;
    if (version > TOILE_CACHE_VERSION) {
        status = toile_fail(error, TOILE_FORMAT,
                            "%.500s is a cache of version %d, this Toile reads up to %d; update "
                            "Toile or bake again",
                            cache->path, (int)version, TOILE_CACHE_VERSION);
        goto out;
    }
    if (version != TOILE_CACHE_VERSION) {
        status = fail_format(cache, error, "its version is %d", (int)version);
        goto out;
    }

    const struct {
        const char *name;
        kind kind;
        void *value;
    } numbers[] = {
        {"fingerprint", KIND_UINT64, &header->fingerprint},
        {"fps", KIND_FLOAT64, &header->fps},
        {"first_frame", KIND_INT32, &first},
        {"last_frame", KIND_INT32, &last},
        {"garment_count", KIND_INT32, &count},
        {"header_checksum", KIND_UINT64, &stated},
    };
    for (size_t i = 0; status == TOILE_OK && i < sizeof numbers / sizeof *numbers; i++)
        status = read_number(cache, root, numbers[i].name, numbers[i].kind, numbers[i].value, error);
    if (status == TOILE_OK)
        status = read_text(cache, root, "scene_name", &header->scene_name, error);
    if (status == TOILE_OK)
        status = read_text(cache, root, "settings", &header->settings_json, error);
    if (status == TOILE_OK)
        status = read_text(cache, root, "library_version", &header->library_version, error);
    if (status == TOILE_OK && H5Aexists(root, "position_error") > 0)
        status = read_number(cache, root, "position_error", KIND_FLOAT64, &header->position_error, error);
    if (status == TOILE_OK && H5Aexists(root, "velocity_error") > 0)
        status = read_number(cache, root, "velocity_error", KIND_FLOAT64, &header->velocity_error, error);
    if (status == TOILE_OK && H5Aexists(root, "inputs") > 0)
        status = read_text(cache, root, "inputs", &header->inputs_json, error);
    if (status == TOILE_OK)
        status = open_group(cache, root, "garments", &garments, error);
    if (status != TOILE_OK)
        goto out;
    header->first_frame = first;
    header->last_frame = last;

    /* Each garment takes a few hundred bytes at least: more than the file can hold are not believed. */
    H5G_info_t info;
    if (!ok(cache, H5Gget_info(garments, &info)) || count < 0 || info.nlinks != (hsize_t)count ||
        count > file_size(cache) / 64) {
        status = fail_format(cache, error, "the number of garments is not the one stated");
        goto out;
    }
    header->garments = cache->garments = toile_alloc(cache->memory, (size_t)count, sizeof *cache->garments);
    cache->streams = toile_alloc(cache->memory, (size_t)count, sizeof *cache->streams);
    if (!cache->garments || !cache->streams) {
        status = toile_fail_memory(error, "the garments of a cache");
        goto out;
    }
    header->garment_count = count;
    for (int i = 0; i < count; i++) {
        ssize_t length =
            H5Lget_name_by_idx(garments, ".", H5_INDEX_NAME, H5_ITER_INC, (hsize_t)i, NULL, 0, H5P_DEFAULT);
        if (!ok(cache, length) || length > file_size(cache)) {
            status = fail_format(cache, error, "a garment's name cannot be read");
            goto out;
        }
        link = toile_alloc(cache->memory, (size_t)length + 1, 1);
        if (!link) {
            status = toile_fail_memory(error, "the garments of a cache");
            goto out;
        }
        if (!ok(cache, H5Lget_name_by_idx(garments, ".", H5_INDEX_NAME, H5_ITER_INC, (hsize_t)i, link,
                                          (size_t)length + 1, H5P_DEFAULT))) {
            status = fail_format(cache, error, "a garment's name cannot be read");
            goto out;
        }
        status = load_garment(cache, garments, link, error);
        if (status != TOILE_OK)
            goto out;
        toile_free(cache->memory, link);
        link = NULL;
    }
    if (header_checksum(header) != stated && !cache->lenient)
        status = fail_format(cache, error, "the checksum of its header is not the one stated");
out:
    toile_free(cache->memory, link);
    toile_free(cache->memory, (void *)format);
    release(&garments);
    return status;
}

/* Counts the leading entries of frames/frame that are as they must be. An entry that is counted in the
 * dataset's length but was never written (a crash while frames were dropped, a file that lies) has the fill
 * value and ends them. */
static toile_status count_frames(toile_cache *cache, hsize_t length, toile_error *error) {
    hid_t dataset = cache->columns[COMMIT], space = 0, memory_space = 0;
    int32_t numbers[1024];
    hsize_t block = sizeof numbers / sizeof *numbers, at = 0;
    toile_status status = TOILE_OK;
    cache->frame_count = 0;
    if (length > INT_MAX)
        return fail_format(cache, error, "frames/frame is too long");
    if (cache->lenient) { /* the numbers are known without it, and the checksums say which frames are good */
        cache->frame_count = length < MAX_DAMAGED ? (int)length : MAX_DAMAGED;
        return TOILE_OK;
    }
    bool good = ok(cache, space = H5Dget_space(dataset)), all = true;
    while (good && all && at < length) {
        hsize_t count = length - at < block ? length - at : block;
        release(&memory_space);
        good = ok(cache, memory_space = H5Screate_simple(1, &count, NULL)) &&
               ok(cache, H5Sselect_hyperslab(space, H5S_SELECT_SET, &at, NULL, &count, NULL)) &&
               ok(cache, H5Dread(dataset, H5T_NATIVE_INT32, memory_space, space, H5P_DEFAULT, numbers));
        for (hsize_t i = 0; good && all && i < count; i++) {
            all = numbers[i] == (int64_t)cache->header.first_frame + cache->frame_count;
            cache->frame_count += all;
        }
        at += count;
    }
    if (!good) {
        cache->frame_count = 0;
        status = fail_format(cache, error, "frames/frame cannot be read");
    }
    release(&memory_space);
    release(&space);
    return status;
}

/* Chunks of one frame, shuffled and deflated, in that order. */
static bool is_plain(toile_cache *cache, hid_t stream, int vertices) {
    hid_t list = 0;
    hsize_t chunk[3];
    unsigned flags;
    size_t none = 0;
    bool plain = ok(cache, list = H5Dget_create_plist(stream)) && H5Pget_chunk(list, 3, chunk) == 3 &&
                 chunk[0] == 1 && chunk[1] == (hsize_t)vertices && chunk[2] == 3 &&
                 H5Pget_nfilters(list) == 2 &&
                 H5Pget_filter2(list, 0, &flags, &none, NULL, 0, NULL, NULL) == H5Z_FILTER_SHUFFLE;
    none = 0;
    plain = plain && H5Pget_filter2(list, 1, &flags, &none, NULL, 0, NULL, NULL) == H5Z_FILTER_DEFLATE;
    release(&list);
    return plain;
}

/* Opens the datasets that grow. The commit first: what is opened later is at least as long. */
static toile_status open_frames(toile_cache *cache, toile_error *error) {
    hid_t group = 0;
    const hsize_t column_chunk[] = {COLUMN_CHUNK_MAX};
    hsize_t shortest = ANY;
    cache->plain = true;
    toile_status status = open_group(cache, cache->file, "frames", &group, error);
    for (int i = 0; status == TOILE_OK && i < COLUMN_COUNT; i++) {
        hsize_t length = ANY;
        if (!columns[i].required && find_link(cache, group, columns[i].name) == 0)
            continue;
        status = open_dataset(cache, group, "frames", columns[i].name, columns[i].kind, 1, &length,
                              column_chunk, NULL, &cache->columns[i], error);
        if (status == TOILE_OK && i == COMMIT)
            status = count_frames(cache, length, error);
        shortest = length < shortest ? length : shortest;
    }
    release(&group);
    for (int i = 0; status == TOILE_OK && i < cache->header.garment_count; i++) {
        const toile_garment_view *garment = &cache->garments[i];
        char where[160], *encoded = encode_name(cache->memory, garment->name), *path = NULL;
        if (encoded) {
            path = toile_alloc(cache->memory, strlen(encoded) + sizeof "garments/", 1);
            snprintf(where, sizeof where, "garments/%.140s", encoded);
        }
        if (path) {
            sprintf(path, "garments/%s", encoded);
            status = ok(cache, group = H5Gopen2(cache->file, path, H5P_DEFAULT))
                         ? TOILE_OK
                         : fail_format(cache, error, "group %s is unreadable", where);
        } else {
            status = toile_fail_memory(error, "the garments of a cache");
        }
        toile_free(cache->memory, path);
        toile_free(cache->memory, encoded);
        for (int k = 0; status == TOILE_OK && k < STREAM_COUNT; k++) {
            const hsize_t chunk[] = {1, (hsize_t)garment->vertex_count, 3};
            hsize_t dims[] = {ANY, (hsize_t)garment->vertex_count, 3};
            status = open_dataset(cache, group, where, stream_names[k], KIND_FLOAT32, 3, dims, chunk, NULL,
                                  &cache->streams[i][k], error);
            shortest = dims[0] < shortest ? dims[0] : shortest;
            cache->plain = cache->plain && status == TOILE_OK &&
                           is_plain(cache, cache->streams[i][k], garment->vertex_count);
        }
        release(&group);
    }
    if (status == TOILE_OK && shortest < (hsize_t)cache->frame_count && cache->lenient)
        cache->frame_count = (int)shortest;
    if (status == TOILE_OK && shortest < (hsize_t)cache->frame_count)
        status = fail_format(cache, error, "%d frames are stated but only %d are there", cache->frame_count,
                             (int)shortest);
    if (status != TOILE_OK)
        cache->frame_count = 0;
    return status;
}

/* Opens for reading what device.fd leads to; the header only the first time. */
static toile_status open_for_reading(toile_cache *cache, toile_error *error) {
    toile_status status = TOILE_OK;
    for (int attempt = 0; attempt < OPEN_ATTEMPTS; attempt++) {
        if (attempt > 0)
            toile_hdf5_wait(10L << attempt);
        cache->reason[0] = '\0';
        status = open_file(cache, error);
        if (status == TOILE_OK && !cache->garments) {
            status = load_header(cache, error);
            if (status != TOILE_OK) { /* written before anyone saw the file: it will not get better */
                close_file(cache);
                return status;
            }
        }
        if (status == TOILE_OK)
            status = open_frames(cache, error);
        if (status == TOILE_OK)
            return TOILE_OK;
        close_file(cache);
        /* A writer that closes, begins again or drops frames meanwhile can be the reason. */
        int flags = 0;
        if (status != TOILE_FORMAT || read_superblock(cache, &flags, NULL) != TOILE_OK ||
            (!cache->swmr && !(flags & SUPERBLOCK_SWMR)))
            return status;
    }
    return status;
}

/* ---- writing ---- */

static bool put_number(toile_cache *cache, hid_t object, const char *name, kind kind, const void *value) {
    hid_t space = 0, attribute = 0;
    bool good =
        ok(cache, space = H5Screate(H5S_SCALAR)) &&
        ok(cache, attribute = H5Acreate2(object, name, file_type(kind), space, H5P_DEFAULT, H5P_DEFAULT)) &&
        ok(cache, H5Awrite(attribute, memory_type(kind), value));
    release(&attribute);
    release(&space);
    return good;
}

/* Of fixed length: HDF5 keeps texts of variable length in a heap without checksums. 0 on failure. */
static hid_t text_type(toile_cache *cache, size_t size) {
    hid_t type = 0;
    if (ok(cache, type = H5Tcopy(H5T_C_S1)) && ok(cache, H5Tset_size(type, size ? size : 1)) &&
        ok(cache, H5Tset_strpad(type, H5T_STR_NULLPAD)) && ok(cache, H5Tset_cset(type, H5T_CSET_UTF8)))
        return type;
    release(&type);
    return 0;
}

static bool put_text(toile_cache *cache, hid_t object, const char *name, const char *text) {
    hid_t space = 0, attribute = 0, type = text_type(cache, strlen(text));
    bool good = type > 0 && ok(cache, space = H5Screate(H5S_SCALAR)) &&
                ok(cache, attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT)) &&
                ok(cache, H5Awrite(attribute, type, text));
    release(&attribute);
    release(&space);
    release(&type);
    return good;
}

/* A dataset that does not grow; memory and file type may be the same. */
static bool put_array(toile_cache *cache, hid_t group, const char *name, hid_t type, hid_t from, int rank,
                      const hsize_t *dims, const void *data) {
    hid_t space = 0, list = 0, dataset = 0;
    bool good = ok(cache, space = H5Screate_simple(rank, dims, NULL)) &&
                ok(cache, list = H5Pcreate(H5P_DATASET_CREATE)) &&
                ok(cache, H5Pset_obj_track_times(list, 0)) &&
                ok(cache, dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT)) &&
                (dims[0] == 0 || ok(cache, H5Dwrite(dataset, from, H5S_ALL, H5S_ALL, H5P_DEFAULT, data)));
    release(&dataset);
    release(&list);
    release(&space);
    return good;
}

/* A dataset that grows with the frames; vertices 0 is a column. */
static bool put_growing(toile_cache *cache, hid_t group, const char *name, kind kind, int vertices) {
    hid_t space = 0, list = 0, dataset = 0;
    int32_t fill = UNCOMMITTED;
    int rank = vertices ? 3 : 1;
    hsize_t dims[] = {0, (hsize_t)vertices, 3}, most[] = {H5S_UNLIMITED, (hsize_t)vertices, 3};
    hsize_t chunk[] = {vertices ? 1 : COLUMN_CHUNK, (hsize_t)vertices, 3};
    bool good =
        ok(cache, space = H5Screate_simple(rank, dims, most)) &&
        ok(cache, list = H5Pcreate(H5P_DATASET_CREATE)) && ok(cache, H5Pset_obj_track_times(list, 0)) &&
        ok(cache, H5Pset_chunk(list, rank, chunk)) &&
        (!vertices || (ok(cache, H5Pset_shuffle(list)) && ok(cache, H5Pset_deflate(list, DEFLATE_LEVEL)))) &&
        (kind != KIND_INT32 || ok(cache, H5Pset_fill_value(list, H5T_NATIVE_INT32, &fill))) &&
        ok(cache, dataset = H5Dcreate2(group, name, file_type(kind), space, H5P_DEFAULT, list, H5P_DEFAULT));
    release(&dataset);
    release(&list);
    release(&space);
    return good;
}

/* Times are left out everywhere: the same bake gives the same bytes. */
static hid_t put_group(toile_cache *cache, hid_t parent, const char *name) {
    hid_t list = 0, group = 0;
    if (ok(cache, list = H5Pcreate(H5P_GROUP_CREATE)) && ok(cache, H5Pset_obj_track_times(list, 0)) &&
        !ok(cache, group = H5Gcreate2(parent, name, H5P_DEFAULT, list, H5P_DEFAULT)))
        group = 0;
    release(&list);
    return group;
}

static toile_status put_garment(toile_cache *cache, hid_t garments, int32_t index,
                                const toile_garment_view *garment, toile_error *error) {
    hid_t group = 0, type = 0;
    char *encoded = encode_name(cache->memory, garment->name), *names = NULL;
    toile_status status = TOILE_OK;
    size_t longest = 1;
    for (int i = 0; i < garment->panel_count; i++) {
        size_t length = strlen(garment->panel_names[i]);
        longest = length > longest ? length : longest;
    }
    names = toile_alloc(cache->memory, (size_t)garment->panel_count, longest);
    if (!encoded || !names) {
        status = toile_fail_memory(error, "the names of a garment");
        goto out;
    }
    for (int i = 0; i < garment->panel_count; i++)
        memcpy(names + (size_t)i * longest, garment->panel_names[i], strlen(garment->panel_names[i]));

    hsize_t vertices = (hsize_t)garment->vertex_count, triangles = (hsize_t)garment->triangle_count;
    const hsize_t rest[] = {vertices, 3}, corners[] = {triangles, 3}, uv[] = {triangles, 3, 2};
    const hsize_t panels[] = {(hsize_t)garment->panel_count};
    hid_t f32 = file_type(KIND_FLOAT32), from_f32 = memory_type(KIND_FLOAT32);
    hid_t i32 = file_type(KIND_INT32), from_i32 = memory_type(KIND_INT32);
    bool good =
        (group = put_group(cache, garments, encoded)) > 0 && (type = text_type(cache, longest)) > 0 &&
        put_text(cache, group, "name", garment->name) &&
        put_number(cache, group, "index", KIND_INT32, &index) &&
        put_array(cache, group, "rest_positions", f32, from_f32, 2, rest, garment->rest_positions) &&
        put_array(cache, group, "triangles", i32, from_i32, 2, corners, garment->triangles) &&
        put_array(cache, group, "triangle_panels", i32, from_i32, 1, corners, garment->triangle_panels) &&
        put_array(cache, group, "corner_uv", f32, from_f32, 3, uv, garment->corner_uv) &&
        put_array(cache, group, "panel_names", type, type, 1, panels, names);
    for (int k = 0; good && k < STREAM_COUNT; k++)
        good = put_growing(cache, group, stream_names[k], KIND_FLOAT32, garment->vertex_count);
    if (!good)
        status = fail_write(cache, error);
out:
    release(&type);
    release(&group);
    toile_free(cache->memory, names);
    toile_free(cache->memory, encoded);
    return status;
}

/* Writes a complete cache without frames to device.fd and closes it. */
static toile_status write_skeleton(toile_cache *cache, const toile_cache_header *header, toile_error *error) {
    hid_t list = 0, garments = 0, frames = 0, fapl = access_list(cache, false);
    const int32_t version = TOILE_CACHE_VERSION, first = header->first_frame, last = header->last_frame;
    const int32_t count = header->garment_count;
    const uint64_t checksum = header_checksum(header);
    toile_status status = TOILE_OK;
    bool good =
        fapl > 0 && ok(cache, list = H5Pcreate(H5P_FILE_CREATE)) &&
        ok(cache, H5Pset_obj_track_times(list, 0)) &&
        ok(cache, H5Pset_attr_phase_change(list, 32, 0)) && /* attributes stay in the group's header */
        ok(cache, cache->file = H5Fcreate(cache->path, H5F_ACC_TRUNC, list, fapl)) &&
        put_text(cache, cache->file, "format", "toile") &&
        put_number(cache, cache->file, "version", KIND_INT32, &version) &&
        put_text(cache, cache->file, "library_version", header->library_version) &&
        put_text(cache, cache->file, "scene_name", header->scene_name) &&
        put_text(cache, cache->file, "settings", header->settings_json) &&
        put_number(cache, cache->file, "fingerprint", KIND_UINT64, &header->fingerprint) &&
        put_number(cache, cache->file, "fps", KIND_FLOAT64, &header->fps) &&
        put_number(cache, cache->file, "first_frame", KIND_INT32, &first) &&
        put_number(cache, cache->file, "last_frame", KIND_INT32, &last) &&
        put_number(cache, cache->file, "garment_count", KIND_INT32, &count) &&
        put_number(cache, cache->file, "header_checksum", KIND_UINT64, &checksum) &&
        (!(header->position_error > 0) ||
         (put_number(cache, cache->file, "position_error", KIND_FLOAT64, &header->position_error) &&
          put_number(cache, cache->file, "velocity_error", KIND_FLOAT64, &header->velocity_error))) &&
        (!header->inputs_json || put_text(cache, cache->file, "inputs", header->inputs_json)) &&
        (garments = put_group(cache, cache->file, "garments")) > 0 &&
        (frames = put_group(cache, cache->file, "frames")) > 0;
    for (int i = 0; good && i < COLUMN_COUNT; i++)
        good = put_growing(cache, frames, columns[i].name, columns[i].kind, 0);
    for (int i = 0; good && status == TOILE_OK && i < count; i++)
        status = put_garment(cache, garments, i, &header->garments[i], error);
    release(&frames);
    release(&garments);
    release(&list);
    release(&fapl);
    if (!good || status != TOILE_OK)
        cache->device.discard = true;
    good = close_file(cache) && good;
    return good || status != TOILE_OK ? status : fail_write(cache, error);
}

/* What was written takes effect: after a kill it is there in whole or not at all. */
static bool flush(toile_cache *cache) {
    return ok(cache, H5Fflush(cache->file, H5F_SCOPE_LOCAL)) && toile_hdf5_commit(&cache->device);
}

/* Forces to disk all that HDF5 has written. */
static bool sync_data(toile_cache *cache) {
    if (!fdatasync(cache->device.fd))
        return true;
    cache->device.write_error = errno;
    return false;
}

/* One frame of a dataset, to or from memory; vertices 0 is a column. Exactly one of `source` and `target`. */
static bool transfer(toile_cache *cache, hid_t dataset, kind kind, int vertices, int index,
                     const void *source, void *target) {
    hid_t space = 0, memory_space = 0;
    hsize_t start[] = {(hsize_t)index, 0, 0}, count[] = {1, (hsize_t)vertices, 3};
    bool good =
        ok(cache, space = H5Dget_space(dataset)) &&
        ok(cache, memory_space = H5Screate_simple(vertices ? 3 : 1, count, NULL)) &&
        ok(cache, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL)) &&
        ok(cache, source ? H5Dwrite(dataset, memory_type(kind), memory_space, space, H5P_DEFAULT, source)
                         : H5Dread(dataset, memory_type(kind), memory_space, space, H5P_DEFAULT, target));
    release(&memory_space);
    release(&space);
    return good;
}

/* ---- chunks of our own making ----
 *
 * What HDF5's shuffle and deflate make of a frame, made and read without them: after shuffling, all first
 * bytes of the numbers come first, then all second ones. The lower bytes of positions and velocities are
 * noise, on which deflate spends most of its time to gain nothing, writing and reading. So those planes go
 * into the stream as stored blocks, which are as good a deflate stream as any to other readers, and the
 * others are deflated. */

static void *zlib_allocate(void *user, unsigned count, unsigned size) {
    return toile_alloc(user, count, size);
}

static void zlib_release(void *user, void *block) {
    toile_free(user, block);
}

static bool reserve(toile_cache *cache, unsigned char **block, size_t *size, size_t wanted) {
    if (wanted <= *size)
        return true;
    toile_free(cache->memory, *block);
    *block = toile_alloc(cache->memory, wanted, 1);
    *size = *block ? wanted : 0;
    cache->device.no_memory = cache->device.no_memory || !*block;
    return *block != NULL;
}

/* Whether a sample of the bytes is spread about evenly. Of even ones the chance that two are equal is 1/256.
 */
static bool is_noise(const unsigned char *bytes, size_t size) {
    enum { SAMPLE = 4096 };
    unsigned counts[256] = {0};
    double pairs = 0;
    if (size < 4 * SAMPLE)
        return false;
    for (size_t i = 0; i < SAMPLE; i++)
        counts[bytes[i * (size / SAMPLE)]]++;
    for (int i = 0; i < 256; i++)
        pairs += (double)counts[i] * (counts[i] - 1.0);
    return pairs / ((double)SAMPLE * (SAMPLE - 1)) < 1.25 / 256;
}

/* The chunk of a frame in cache->packed; 0 when memory is out. */
static size_t pack_frame(toile_cache *cache, const float *numbers, size_t count) {
    if (!reserve(cache, &cache->planes, &cache->planes_size, 4 * count))
        return 0;
    for (unsigned k = 0; k < 4; k++) {
        unsigned char *plane = cache->planes + k * count;
        for (size_t i = 0; i < count; i++) {
            uint32_t word;
            memcpy(&word, numbers + i, sizeof word);
            plane[i] = (unsigned char)(word >> (8 * k));
        }
    }
    z_stream z = {.zalloc = zlib_allocate, .zfree = zlib_release, .opaque = cache->memory};
    if (deflateInit(&z, DEFLATE_LEVEL) != Z_OK) {
        cache->device.no_memory = true;
        return 0;
    }
    size_t packed = 0;
    if (reserve(cache, &cache->packed, &cache->packed_size, deflateBound(&z, (uLong)(4 * count)) + 4096)) {
        z.next_out = cache->packed;
        z.avail_out = (uInt)cache->packed_size;
        bool good = true;
        for (size_t k = 0; good && k < 4; k++) {
            good = deflateParams(&z, is_noise(cache->planes + k * count, count) ? 0 : DEFLATE_LEVEL,
                                 Z_DEFAULT_STRATEGY) == Z_OK;
            z.next_in = cache->planes + k * count;
            z.avail_in = (uInt)count;
            int done = good ? deflate(&z, k == 3 ? Z_FINISH : Z_NO_FLUSH) : Z_ERRNO;
            good = good && (k == 3 ? done == Z_STREAM_END : done == Z_OK) && z.avail_in == 0;
        }
        packed = good ? (size_t)z.total_out : 0;
    }
    deflateEnd(&z);
    return packed;
}

/* Back from `size` bytes in cache->packed. False if they are no whole frame. */
static bool unpack_frame(toile_cache *cache, size_t size, float *numbers, size_t count) {
    if (!reserve(cache, &cache->planes, &cache->planes_size, 4 * count))
        return false;
    z_stream z = {.zalloc = zlib_allocate, .zfree = zlib_release, .opaque = cache->memory};
    z.next_in = cache->packed;
    z.avail_in = (uInt)size;
    z.next_out = cache->planes;
    z.avail_out = (uInt)(4 * count);
    if (inflateInit(&z) != Z_OK) {
        cache->device.no_memory = true;
        return false;
    }
    bool whole = inflate(&z, Z_FINISH) == Z_STREAM_END && z.total_out == 4 * count;
    inflateEnd(&z);
    const unsigned char *a = cache->planes, *b = a + count, *c = b + count, *d = c + count;
    for (size_t i = 0; whole && i < count; i++) {
        uint32_t word = (uint32_t)a[i] | (uint32_t)b[i] << 8 | (uint32_t)c[i] << 16 | (uint32_t)d[i] << 24;
        memcpy(numbers + i, &word, sizeof word);
    }
    return whole;
}

/* One frame of a stream, by chunk where the file is stored as ours are. */
static bool write_stream(toile_cache *cache, hid_t stream, int vertices, int index, const float *source) {
    const hsize_t offset[] = {(hsize_t)index, 0, 0};
    if (!cache->plain || vertices > MAX_PACKED)
        return transfer(cache, stream, KIND_FLOAT32, vertices, index, source, NULL);
    size_t size = pack_frame(cache, source, 3 * (size_t)vertices);
    return size > 0 && ok(cache, H5Dwrite_chunk(stream, H5P_DEFAULT, 0, offset, size, cache->packed));
}

static bool fetch_stream(toile_cache *cache, hid_t stream, int vertices, int index, float *target) {
    const hsize_t offset[] = {(hsize_t)index, 0, 0};
    hsize_t size = 0;
    uint32_t mask = 0;
    /* Where a chunk is not as ours are, or damaged, HDF5 has the last word. */
    if (cache->plain && vertices <= MAX_PACKED &&
        ok(cache, H5Dget_chunk_storage_size(stream, offset, &size)) && size > 0 &&
        size <= (hsize_t)vertices * 24 + 4096) {
        if (!reserve(cache, &cache->packed, &cache->packed_size, size))
            return false;
        if (ok(cache, H5Dread_chunk(stream, H5P_DEFAULT, offset, &mask, cache->packed)) && mask == 0 &&
            unpack_frame(cache, size, target, 3 * (size_t)vertices))
            return true;
        if (cache->device.no_memory)
            return false;
    }
    return transfer(cache, stream, KIND_FLOAT32, vertices, index, NULL, target);
}

static bool set_length(toile_cache *cache, hid_t dataset, int vertices, int length) {
    const hsize_t dims[] = {(hsize_t)length, (hsize_t)vertices, 3};
    return dataset <= 0 || ok(cache, H5Dset_extent(dataset, dims));
}

/* Makes the file `length` frames long, the commit first, so that no reader looks for what goes away. */
static bool drop_frames(toile_cache *cache, int length) {
    bool good = set_length(cache, cache->columns[COMMIT], 0, length) && flush(cache);
    for (int i = COMMIT + 1; good && i < COLUMN_COUNT; i++)
        good = set_length(cache, cache->columns[i], 0, length);
    for (int i = 0; good && i < cache->header.garment_count; i++)
        for (int k = 0; good && k < STREAM_COUNT; k++)
            good = set_length(cache, cache->streams[i][k], cache->garments[i].vertex_count, length);
    good = good && flush(cache);
    if (good)
        cache->frame_count = length;
    return good;
}

/* All columns of a frame but the commit. */
static bool put_columns(toile_cache *cache, int at, const toile_cache_frame *row) {
    bool good = true;
    for (int i = COMMIT + 1; good && i < COLUMN_COUNT; i++)
        if (cache->columns[i] > 0)
            good = set_length(cache, cache->columns[i], 0, at + 1) &&
                   transfer(cache, cache->columns[i], columns[i].kind, 0, at,
                            (const char *)row + columns[i].offset, NULL);
    return good;
}

/* What is staged to disk, then its commit. */
static bool commit_frames(toile_cache *cache) {
    int count = cache->frame_count + cache->staged;
    bool good = flush(cache) && sync_data(cache) && set_length(cache, cache->columns[COMMIT], 0, count);
    for (int at = cache->frame_count; good && at < count; at++)
        good = transfer(cache, cache->columns[COMMIT], KIND_INT32, 0, at,
                        &(int32_t){cache->header.first_frame + at}, NULL);
    good = good && flush(cache);
    if (good) {
        cache->frame_count = count;
        cache->staged = 0;
    }
    return good;
}

/* ---- copying frames as they are stored ---- */

/* Frame `at` of one stream: its chunk, or its numbers where the two files store them differently. *room is
 * grown. */
static bool copy_stream(toile_cache *cache, toile_cache *from, hid_t target, hid_t source, int vertices,
                        int at, bool raw, void **room, hsize_t *size) {
    const hsize_t offset[] = {(hsize_t)at, 0, 0};
    hsize_t bytes = (hsize_t)vertices * 12;
    uint32_t mask = 0;
    if (raw && (!ok(from, H5Dget_chunk_storage_size(source, offset, &bytes)) || bytes == 0 ||
                bytes > (hsize_t)vertices * 24 + 4096))
        return false;
    if (bytes > *size) {
        toile_free(cache->memory, *room);
        *room = toile_alloc(cache->memory, bytes, 1);
        *size = *room ? bytes : 0;
        if (!*room) {
            cache->device.no_memory = true;
            return false;
        }
    }
    if (!set_length(cache, target, vertices, at + 1))
        return false;
    if (raw)
        return ok(from, H5Dread_chunk(source, H5P_DEFAULT, offset, &mask, *room)) &&
               ok(cache, H5Dwrite_chunk(target, H5P_DEFAULT, mask, offset, bytes, *room));
    return transfer(from, source, KIND_FLOAT32, vertices, at, NULL, *room) &&
           transfer(cache, target, KIND_FLOAT32, vertices, at, *room, NULL);
}

static toile_status copy_frames(toile_cache *cache, toile_cache *from, int count, toile_error *error) {
    void *room = NULL;
    hsize_t size = 0;
    bool good = true;
    /* Frame by frame, as they were written: what is cut off the end of a file are then its last frames. */
    for (int at = 0; good && at < count; at++) {
        toile_cache_frame row = {0};
        for (int g = 0; good && g < cache->header.garment_count; g++)
            for (int k = 0; good && k < STREAM_COUNT; k++)
                good = copy_stream(cache, from, cache->streams[g][k], from->streams[g][k],
                                   cache->garments[g].vertex_count, at, cache->plain && from->plain, &room,
                                   &size);
        for (int i = 0; good && i < COLUMN_COUNT; i++) {
            char *value = (char *)&row + columns[i].offset;
            if (from->columns[i] > 0)
                good = transfer(from, from->columns[i], columns[i].kind, 0, at, NULL, value);
            else
                memcpy(value, &(double){NAN}, sizeof(double));
        }
        good = good && put_columns(cache, at, &row);
        /* The columns, which are in memory until then, get their places near the front. */
        good = good && (at > 0 || flush(cache));
    }
    toile_free(cache->memory, room);
    cache->staged = good ? count : 0;
    if (good && commit_frames(cache))
        return TOILE_OK;
    if (!cache->device.write_error && !cache->device.no_memory)
        return fail_format(from, error, "its frames cannot be copied");
    return fail_write(cache, error);
}

/* ---- interface ---- */

/* The garments of two caches are the same as far as frames go. */
static toile_status check_same(const toile_cache_header *header, const toile_cache *from, int keep,
                               toile_error *error) {
    bool same = header->garment_count == from->header.garment_count &&
                header->first_frame == from->header.first_frame && keep >= 0 && keep <= from->frame_count;
    for (int g = 0; same && g < header->garment_count; g++)
        same = strcmp(header->garments[g].name, from->garments[g].name) == 0 &&
               header->garments[g].vertex_count == from->garments[g].vertex_count;
    return same ? TOILE_OK
                : toile_fail(error, TOILE_INVALID,
                             "%.400s has other garments, another first frame or fewer than %d frames: "
                             "nothing can be taken over "
                             "from it; bake anew",
                             from->path, keep);
}

/* Refuses what could not be read back. */
static toile_status check_header(const toile_cache_header *header, toile_error *error) {
    if (!header->scene_name || !header->settings_json || !header->library_version ||
        (header->garment_count > 0 && !header->garments))
        return toile_fail(error, TOILE_MISUSE, "a cache was asked for with a null text or garment");
    if (!is_utf8(header->scene_name) || !is_utf8(header->settings_json) ||
        !is_utf8(header->library_version) || (header->inputs_json && !is_utf8(header->inputs_json)))
        return toile_fail(error, TOILE_INVALID,
                          "the scene's name or settings are not UTF-8; save the scene as UTF-8");
    if (header->garment_count < 0 || !(header->fps > 0) || isinf(header->fps) ||
        header->last_frame < header->first_frame || header->first_frame == UNCOMMITTED)
        return toile_fail(error, TOILE_INVALID,
                          "a cache of %d garments, frames %d to %d at %g frames per second "
                          "cannot be made; give a rate above 0 and a last frame not before the first",
                          header->garment_count, header->first_frame, header->last_frame, header->fps);
    for (int i = 0; i < header->garment_count; i++) {
        const toile_garment_view *garment = &header->garments[i];
        if (!garment->name || !*garment->name || !is_utf8(garment->name))
            return toile_fail(error, TOILE_INVALID,
                              "garment %d has no name, or one that is not UTF-8; name it", i);
        for (int k = 0; k < i; k++)
            if (strcmp(header->garments[k].name, garment->name) == 0)
                return toile_fail(error, TOILE_INVALID, "two garments are named \"%.200s\"; rename one",
                                  garment->name);
        if (garment->vertex_count < 1 || garment->vertex_count > MAX_VERTICES ||
            garment->triangle_count < 0 || garment->triangle_count > INT_MAX / 3 || garment->panel_count < 0)
            return toile_fail(error, TOILE_INVALID,
                              "garment \"%.200s\" has %d vertices, %d triangles and %d panels; "
                              "1 to %d vertices can be cached",
                              garment->name, garment->vertex_count, garment->triangle_count,
                              garment->panel_count, MAX_VERTICES);
        if (!garment->rest_positions || (garment->panel_count > 0 && !garment->panel_names) ||
            (garment->triangle_count > 0 &&
             (!garment->triangles || !garment->triangle_panels || !garment->corner_uv)))
            return toile_fail(error, TOILE_MISUSE, "garment \"%.200s\" has a null array", garment->name);
        for (int k = 0; k < garment->panel_count; k++)
            if (!garment->panel_names[k] || !is_utf8(garment->panel_names[k]))
                return toile_fail(error, TOILE_INVALID,
                                  "panel %d of garment \"%.200s\" has no name, or one that is "
                                  "not UTF-8; name it",
                                  k, garment->name);
        const char *wrong = check_indices(garment);
        if (wrong)
            return toile_fail(error, TOILE_INVALID, "garment \"%.200s\": %s; repair its mesh", garment->name,
                              wrong);
    }
    return TOILE_OK;
}

toile_status toile_cache_create(toile_memory *memory, const char *path, const toile_cache_header *header,
                                toile_cache **result, toile_error *error) {
    return toile_cache_create_from(memory, path, header, NULL, 0, result, error);
}

toile_status toile_cache_create_from(toile_memory *memory, const char *path, const toile_cache_header *header,
                                     toile_cache *from, int keep, toile_cache **result, toile_error *error) {
    if (!memory || !path || !*path || !header || !result)
        return toile_fail(error, TOILE_MISUSE, "toile_cache_create was called with a null pointer");
    *result = NULL;
    toile_status status = check_header(header, error);
    if (status == TOILE_OK && from)
        status = check_same(header, from, keep, error);
    if (status != TOILE_OK)
        return status;
    char *new_path = NULL;
    struct stat info;
    quiet quiet;
    toile_cache *cache = new_cache(memory, path, error);
    if (!cache)
        return TOILE_NO_MEMORY;
    enter(cache, &quiet);

    /* What is there now: a folder cannot be replaced, and a bake that is writing must not lose its file. */
    if (!stat(path, &info) && !S_ISREG(info.st_mode)) {
        status =
            toile_fail(error, TOILE_IO, "cannot write %.500s: it is not a file; choose another name", path);
        goto out;
    }
    status = toile_lock_take(memory, path, &cache->lock, error);
    if (status != TOILE_OK)
        goto out;
    toile_cache_sweep(path);
    int old = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    bool locked = old >= 0 && !lock_for_writing(old);
    if (old >= 0)
        close(old);
    if (locked) {
        status = fail_locked(cache, error);
        goto out;
    }

    /* The process in the name: two that create at the same time do not write into each other's file. */
    size_t size = strlen(path) + 32;
    new_path = toile_alloc(memory, size, 1);
    if (!new_path) {
        status = toile_fail_memory(error, "a cache");
        goto out;
    }
    snprintf(new_path, size, "%s.new-%ld", path, (long)getpid());
    unlink(new_path);
    cache->device.fd = open(new_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (cache->device.fd < 0) {
        status = fail_system(cache, error, "create", errno);
        goto out;
    }
    cache->writable = true;
    lock_for_writing(cache->device.fd);
    status = write_skeleton(cache, header, error);
    if (status == TOILE_OK)
        status = open_file(cache, error);
    if (status == TOILE_OK)
        status = load_header(cache, error);
    if (status == TOILE_OK)
        status = open_frames(cache, error);
    if (status == TOILE_OK && from)
        status = copy_frames(cache, from, keep, error);
    if (status != TOILE_OK)
        goto out;
    if (!flush(cache) || !sync_data(cache)) {
        status = fail_write(cache, error);
        goto out;
    }
    toile_hdf5_settle(&cache->device); /* from here on others have it */
    if (rename(new_path, path)) {
        status = fail_system(cache, error, "replace", errno);
        goto out;
    }
    toile_free(memory, new_path);
    new_path = NULL; /* not to be removed */
    int failed = toile_sync_folder(path);
    if (failed)
        status = fail_system(cache, error, "secure", failed);
out:
    if (new_path && cache->device.fd >= 0)
        unlink(new_path);
    toile_free(memory, new_path);
    if (status == TOILE_OK)
        *result = cache;
    else
        destroy(cache);
    leave(&quiet);
    return status;
}

static toile_status open_cache(toile_memory *memory, const char *path, bool lenient, toile_cache **result,
                               toile_error *error) {
    if (!memory || !path || !result)
        return toile_fail(error, TOILE_MISUSE, "toile_cache_open was called with a null pointer");
    *result = NULL;
    quiet quiet;
    toile_cache *cache = new_cache(memory, path, error);
    if (!cache)
        return TOILE_NO_MEMORY;
    cache->lenient = lenient;
    enter(cache, &quiet);
    toile_status status = open_path(cache, false, error);
    if (status == TOILE_OK)
        status = open_for_reading(cache, error);
    if (status == TOILE_OK)
        *result = cache;
    else
        destroy(cache);
    leave(&quiet);
    return status;
}

toile_status toile_cache_open(toile_memory *memory, const char *path, toile_cache **result,
                              toile_error *error) {
    return open_cache(memory, path, false, result, error);
}

toile_status toile_cache_open_damaged(toile_memory *memory, const char *path, toile_cache **result,
                                      toile_error *error) {
    return open_cache(memory, path, true, result, error);
}

toile_status toile_cache_reopen(toile_memory *memory, const char *path, int keep_through,
                                toile_cache **result, toile_error *error) {
    /* Read only first: a file that is not right is refused before anything in it is changed. */
    toile_status status = toile_cache_open(memory, path, result, error);
    if (status != TOILE_OK)
        return status;
    toile_cache_close(*result, NULL);
    *result = NULL;

    quiet quiet;
    toile_cache *cache = new_cache(memory, path, error);
    if (!cache)
        return TOILE_NO_MEMORY;
    enter(cache, &quiet);
    status = toile_lock_take(memory, path, &cache->lock, error);
    if (status == TOILE_OK)
        status = open_path(cache, true, error);
    if (status == TOILE_OK)
        status = open_file(cache, error);
    if (status == TOILE_OK)
        status = load_header(cache, error);
    if (status == TOILE_OK)
        status = open_frames(cache, error);
    if (status == TOILE_OK) {
        int64_t keep = (int64_t)keep_through - cache->header.first_frame + 1;
        keep = keep < 0 ? 0 : keep > cache->frame_count ? cache->frame_count : keep;
        if (!drop_frames(cache, (int)keep) || !sync_data(cache))
            status = fail_write(cache, error);
    }
    if (status == TOILE_OK)
        *result = cache;
    else
        destroy(cache);
    leave(&quiet);
    return status;
}

/* Writes what an unnamed file holds to a new one; an errno, or 0. It appears whole, and replaces nothing. */
static int save_as(int from, const char *path) {
    char block[1 << 16], new_path[PATH_MAX + 32];
    snprintf(new_path, sizeof new_path, "%s.new-%ld", path, (long)getpid());
    int to = open(new_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666), failed = to < 0 ? errno : 0;
    for (off_t at = 0; !failed;) {
        ssize_t size = pread(from, block, sizeof block, at);
        if (size == 0)
            break;
        ssize_t done = size < 0 ? -1 : pwrite(to, block, (size_t)size, at);
        if (done > 0)
            at += done;
        else if (done == 0 || errno != EINTR)
            failed = done == 0 ? ENOSPC : errno;
    }
    if (!failed && fsync(to))
        failed = errno;
    if (to >= 0)
        close(to);
    if (!failed && link(new_path, path))
        /* There are file systems without. */
        failed = errno == EEXIST || access(path, F_OK) == 0 ? EEXIST : rename(new_path, path) ? errno : 0;
    if (to >= 0)
        unlink(new_path);
    return failed ? failed : toile_sync_folder(path);
}

/* The name leads elsewhere. A file that was deleted is written again under its name, or one beside it, so that the bake can
 * go on; once. */
static toile_status fail_away(toile_cache *cache, bool deleted, toile_error *error) {
    static const char *const endings[] = {"", ".saved"};
    char path[PATH_MAX];
    int failed = ENOENT;
    for (int i = 0; i < 2 && deleted && !cache->away && failed; i++) {
        snprintf(path, sizeof path, "%s%s", cache->path, endings[i]);
        failed = save_as(cache->device.fd, path);
    }
    bool first = !cache->away;
    cache->away = true;
    if (!deleted || !first)
        return toile_fail(error, TOILE_IO,
                          "%.500s was moved, deleted or replaced while it was being written; put it back, then resume",
                          cache->path);
    if (failed)
        return toile_fail(error, TOILE_IO,
                          "%.500s was deleted while it was being written, and cannot be saved: %s; bake again",
                          cache->path, strerror(failed));
    return toile_fail(error, TOILE_IO,
                      "%.500s was deleted while it was being written; its frames were saved to %.500s: resume, or delete "
                      "that too",
                      cache->path, path);
}

/* Neither deleted, moved, cut nor taken over by another since. */
static toile_status check_ours(toile_cache *cache, toile_error *error) {
    struct stat mine, there;
    if (!fstat(cache->device.fd, &mine)) {
        bool missing = stat(cache->path, &there) != 0;
        if (missing ? errno == ENOENT : there.st_ino != mine.st_ino || there.st_dev != mine.st_dev)
            return fail_away(cache, mine.st_nlink == 0, error);
        if (mine.st_size < cache->size)
            return toile_fail(error, TOILE_IO,
                              "%.500s was cut off by another program while it was being written; see what can be saved "
                              "with toile recover",
                              cache->path);
    }
    if (!toile_lock_beat(cache->lock))
        return toile_fail(
            error, TOILE_IO,
            "another process took %.500s over because this one did not answer for long, or its lock was "
            "deleted; stop the other one, then resume",
            cache->path);
    return TOILE_OK;
}

/* The file stays as at the last commit, and nothing more is written. */
static toile_status give_up(toile_cache *cache, toile_error *error) {
    cache->device.discard = true;
    cache->staged = 0;
    return fail_write(cache, error);
}

toile_status toile_cache_stage(toile_cache *cache, const toile_frame_view *frame, toile_error *error) {
    if (!cache || !frame || (cache->header.garment_count > 0 && (!frame->positions || !frame->velocities)))
        return toile_fail(error, TOILE_MISUSE, "toile_cache_append was called with a null pointer");
    if (!cache->writable)
        return toile_fail(error, TOILE_MISUSE, "%.500s is open for reading; reopen it to append",
                          cache->path);
    if (cache->device.discard) /* since an append that failed */
        return fail_write(cache, error);
    int at = cache->frame_count + cache->staged;
    int64_t next = (int64_t)cache->header.first_frame + at;
    if (frame->frame != next || next >= INT_MAX)
        return toile_fail(error, TOILE_MISUSE, "frame %d was appended to %.500s where frame %lld is next",
                          frame->frame, cache->path, (long long)next);
    toile_cache_frame row = {.frame = frame->frame,
                             .time = frame->time,
                             .state_hash = frame->state_hash,
                             .checksum = frame_checksum(frame->frame, frame->time, frame->state_hash),
                             .numbers = frame->numbers};
    for (int i = 0; i < cache->header.garment_count; i++) {
        size_t bytes = (size_t)cache->garments[i].vertex_count * 12;
        if (!frame->positions[i] || !frame->velocities[i])
            return toile_fail(error, TOILE_MISUSE,
                              "frame %d has no positions or velocities for garment \"%.200s\"", frame->frame,
                              cache->garments[i].name);
        row.checksum = toile_hash(row.checksum, frame->positions[i], bytes);
        row.checksum = toile_hash(row.checksum, frame->velocities[i], bytes);
    }
    toile_status status = check_ours(cache, error);
    if (status != TOILE_OK)
        return status;

    quiet quiet;
    enter(cache, &quiet);
    bool good = true;
    for (int i = 0; good && i < cache->header.garment_count; i++) {
        int vertices = cache->garments[i].vertex_count;
        const float *const data[STREAM_COUNT] = {frame->positions[i], frame->velocities[i]};
        for (int k = 0; good && k < STREAM_COUNT; k++)
            good = set_length(cache, cache->streams[i][k], vertices, at + 1) &&
                   write_stream(cache, cache->streams[i][k], vertices, at, data[k]);
    }
    good = good && put_columns(cache, at, &row);
    leave(&quiet);
    if (!good)
        return give_up(cache, error);
    cache->staged++;
    return TOILE_OK;
}

toile_status toile_cache_commit(toile_cache *cache, toile_error *error) {
    if (!cache)
        return toile_fail(error, TOILE_MISUSE, "toile_cache_commit was called with a null handle");
    if (cache->device.discard)
        return fail_write(cache, error);
    toile_status status = check_ours(cache, error);
    if (status != TOILE_OK || cache->staged == 0)
        return status;
    quiet quiet;
    enter(cache, &quiet);
    bool good = commit_frames(cache);
    leave(&quiet);
    cache->size = file_size(cache);
    return good ? TOILE_OK : give_up(cache, error);
}

toile_status toile_cache_append(toile_cache *cache, const toile_frame_view *frame, toile_error *error) {
    toile_status status = toile_cache_stage(cache, frame, error);
    return status == TOILE_OK ? toile_cache_commit(cache, error) : status;
}

void toile_cache_beat(toile_cache *cache) {
    if (cache)
        toile_lock_beat(cache->lock);
}

toile_status toile_cache_rename(toile_cache *cache, const char *path, toile_error *error) {
    if (!cache || !path || !cache->writable)
        return toile_fail(error, TOILE_MISUSE, "toile_cache_rename needs a cache that is open for writing");
    char *copy = toile_copy_text(cache->memory, path);
    if (!copy)
        return toile_fail_memory(error, "a cache");
    /* The lock first: whoever looks in between finds both names taken. */
    if (!toile_lock_move(cache->lock, path) || rename(cache->path, path)) {
        toile_status status = errno == ENOMEM ? toile_fail_memory(error, "the name of a cache")
                                              : fail_system(cache, error, "rename", errno);
        toile_free(cache->memory, copy);
        return status;
    }
    toile_free(cache->memory, cache->path);
    cache->path = copy;
    int failed = toile_sync_folder(path);
    return failed ? fail_system(cache, error, "secure", failed) : TOILE_OK;
}

toile_status toile_cache_close(toile_cache *cache, toile_error *error) {
    if (!cache)
        return TOILE_OK;
    quiet quiet;
    toile_status status = TOILE_OK;
    enter(cache, &quiet);
    /* A handle that failed says so again: whoever only looks at close must not think that all is well. */
    if (cache->writable && (!close_file(cache) || !sync_data(cache)))
        status = fail_write(cache, error);
    destroy(cache);
    leave(&quiet);
    return status;
}

const toile_cache_header *toile_cache_get_header(const toile_cache *cache) {
    return cache ? &cache->header : NULL;
}

int toile_cache_frame_count(const toile_cache *cache) {
    return cache ? cache->frame_count : 0;
}

toile_status toile_cache_refresh(toile_cache *cache, toile_error *error) {
    if (!cache)
        return toile_fail(error, TOILE_MISUSE, "toile_cache_refresh was called with a null handle");
    if (cache->writable)
        return TOILE_OK;
    /* Opened anew rather than refreshed: that also follows a writer that closed, died, or began again since.
     */
    quiet quiet;
    struct stat mine, there;
    enter(cache, &quiet);
    close_file(cache);
    cache->frame_count = 0;
    toile_status status = open_for_reading(cache, error);
    leave(&quiet);
    if (status == TOILE_OK && !fstat(cache->device.fd, &mine) &&
        (stat(cache->path, &there) || mine.st_ino != there.st_ino || mine.st_dev != there.st_dev))
        status = toile_fail(error, TOILE_WARNING,
                            "%.500s was deleted or replaced by a new bake; open it again", cache->path);
    return status;
}

static toile_status check_index(const toile_cache *cache, int index, toile_error *error) {
    if (!cache)
        return toile_fail(error, TOILE_MISUSE, "a frame was asked for with a null handle");
    if (index < 0 || index >= cache->frame_count)
        return toile_fail(error, TOILE_INVALID, "%.500s has %d finished frames, there is none at position %d",
                          cache->path, cache->frame_count, index);
    return TOILE_OK;
}

static toile_status read_stream(toile_cache *cache, int index, int garment, int stream, float *target,
                                toile_error *error) {
    const toile_garment_view *view = &cache->garments[garment];
    if (fetch_stream(cache, cache->streams[garment][stream], view->vertex_count, index, target))
        return TOILE_OK;
    return fail_format(cache, error, "%s of garment \"%.100s\" in frame %d cannot be read",
                       stream_names[stream], view->name, cache->header.first_frame + index);
}

toile_status toile_cache_read(toile_cache *cache, int index, int garment, float *positions, float *velocities,
                              toile_error *error) {
    toile_status status = check_index(cache, index, error);
    if (status != TOILE_OK)
        return status;
    if (garment < 0 || garment >= cache->header.garment_count)
        return toile_fail(error, TOILE_INVALID, "%.500s has %d garments, there is none at position %d",
                          cache->path, cache->header.garment_count, garment);
    quiet quiet;
    enter(cache, &quiet);
    if (positions)
        status = read_stream(cache, index, garment, POSITIONS, positions, error);
    if (status == TOILE_OK && velocities)
        status = read_stream(cache, index, garment, VELOCITIES, velocities, error);
    leave(&quiet);
    return status;
}

toile_status toile_cache_read_frame(toile_cache *cache, int index, toile_cache_frame *frame,
                                    toile_error *error) {
    toile_status status = check_index(cache, index, error);
    if (status != TOILE_OK)
        return status;
    if (!frame)
        return toile_fail(error, TOILE_MISUSE, "toile_cache_read_frame was called with a null pointer");
    quiet quiet;
    enter(cache, &quiet);
    for (int i = 0; status == TOILE_OK && i < COLUMN_COUNT; i++) {
        char *target = (char *)frame + columns[i].offset;
        if (i == COMMIT && cache->lenient)
            continue; /* known without it */
        if (cache->columns[i] > 0 &&
            transfer(cache, cache->columns[i], columns[i].kind, 0, index, NULL, target))
            continue;
        /* A figure that is missing, or in a damaged file lost, is not a number; frames do not depend on it.
         */
        if (cache->columns[i] <= 0 || (cache->lenient && !columns[i].required))
            memcpy(target, &(double){NAN}, sizeof(double));
        else
            status = fail_format(cache, error, "frames/%s of frame %d cannot be read", columns[i].name,
                                 cache->header.first_frame + index);
    }
    if (cache->lenient)
        frame->frame = cache->header.first_frame + index;
    leave(&quiet);
    return status;
}

toile_status toile_cache_check(toile_cache *cache, int index, toile_error *error) {
    toile_cache_frame frame;
    toile_status status = toile_cache_read_frame(cache, index, &frame, error);
    if (status != TOILE_OK)
        return status;
    float *scratch = NULL;
    uint64_t checksum = frame_checksum(frame.frame, frame.time, frame.state_hash);
    quiet quiet;
    enter(cache, &quiet);
    for (int i = 0; i < cache->header.garment_count; i++) {
        size_t bytes = (size_t)cache->garments[i].vertex_count * 12;
        toile_free(cache->memory, scratch);
        scratch = toile_alloc(cache->memory, bytes, 1);
        if (!scratch) {
            status = toile_fail_memory(error, "a frame of a cache");
            goto out;
        }
        for (int k = 0; k < STREAM_COUNT; k++) {
            status = read_stream(cache, index, i, k, scratch, error);
            if (status != TOILE_OK)
                goto out;
            checksum = toile_hash(checksum, scratch, bytes);
        }
    }
    if (checksum != frame.checksum)
        status = fail_format(cache, error, "the checksum of frame %d is not the one stated", frame.frame);
out:
    toile_free(cache->memory, scratch);
    leave(&quiet);
    return status;
}
