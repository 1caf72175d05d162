/* Job files in HDF5 (JOB.md). Unlike a cache a job has one writer, who renames it when it is done, and
 * readers that come later.
 *
 * HDF5 works through the file driver that caches use too (hdf5_driver.c). */
#include "job_hdf5.h"

#include "cache.h"
#include "hash.h"
#include "hdf5_driver.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFLATE_LEVEL 1
#define MOST (1 << 28)         /* vertices, faces: what fits a chunk */
#define SCENE_MOST (256 << 20) /* bytes */
#define DEFLATE_MOST 1100      /* no deflated byte makes more; larger arrays are no file of ours */
#define UNIQUE_ROW (-1)
#define END_MARK "TOILEJOB" /* last 16 bytes of a job: this, and the hash of all before */
#define HASH_BLOCK ((size_t)1 << 20)

typedef struct track {
    char *name;
    hid_t positions; /* dataset, (rows x vertex_count x 3) */
    toile_job_track info;
    int row_count, last_row; /* last_row: in `last`, or UNIQUE_ROW */
    double *last;            /* row written or read last, (vertex_count x 3) */
    int *rows;               /* row of each frame, (frame_count) */
    uint64_t *checksums;     /* of each row, (row_count) */
} track;

struct toile_job_file {
    toile_memory *memory;
    toile_hdf5_device device;
    char *path, *temporary; /* temporary: while it is written, else null */
    char *scene;
    hid_t file, meshes, tracks;
    int track_count;
    track *track;
    H5E_auto2_t print; /* of the host, put back after each call */
    void *print_data;
    char reason[200];
};

/* ---- the whole file ---- */

/* The hash of the first `size` bytes, block by block. */
static bool hash_file(toile_memory *memory, int fd, int64_t size, uint64_t *hash) {
    char *block = toile_alloc(memory, HASH_BLOCK, 1);
    *hash = TOILE_HASH_SEED;
    int64_t at = 0;
    while (block && at < size) {
        size_t wanted = size - at < (int64_t)HASH_BLOCK ? (size_t)(size - at) : HASH_BLOCK, have = 0;
        while (have < wanted) {
            ssize_t done = pread(fd, block + have, wanted - have, (off_t)(at + (int64_t)have));
            if (done < 0 && errno == EINTR)
                continue;
            if (done <= 0)
                break;
            have += (size_t)done;
        }
        if (have < wanted)
            break;
        *hash = toile_hash(*hash, block, wanted);
        at += (int64_t)wanted;
    }
    toile_free(memory, block);
    return block && at >= size;
}

/* Whether the file is as it was written. HDF5 leaks when it meets damage, so it never sees it. A file without
 * the mark at its end, which another program wrote, is believed as far as its checksums go. */
static bool file_is_whole(toile_memory *memory, int fd) {
    struct stat info;
    uint64_t end[2], hash;
    if (fstat(fd, &info) || info.st_size < (off_t)sizeof end ||
        pread(fd, end, sizeof end, info.st_size - (off_t)sizeof end) != (ssize_t)sizeof end)
        return false;
    if (memcmp(end, END_MARK, sizeof *end) != 0)
        return true;
    return hash_file(memory, fd, info.st_size - (int64_t)sizeof end, &hash) && hash == end[1];
}

/* Whether its metadata has checksums: superblocks from version 2 on. Ours are; h5py makes old ones unless told. */
static bool has_checksums(int fd) {
    unsigned char version = 0;
    return pread(fd, &version, 1, 8) == 1 && version >= 2;
}

/* ---- HDF5 without noise ---- */

static void enter(toile_job_file *f) {
    f->reason[0] = 0;
    f->device.no_memory = false;
    errno = 0;
    H5Eget_auto2(H5E_DEFAULT, &f->print, &f->print_data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
}

static toile_status leave(toile_job_file *f, toile_status status) {
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, f->print, f->print_data);
    return status;
}

/* After reading: what looks damaged or missing may only be out of memory. */
static toile_status leave_read(toile_job_file *f, toile_status status, toile_error *error) {
    leave(f, status);
    return status < 0 && f->device.no_memory ? toile_fail_memory(error, "a job") : status;
}

static herr_t take_reason(unsigned index, const H5E_error2_t *entry, void *user) {
    toile_job_file *f = user;
    if (index == 0 && entry->desc)
        snprintf(f->reason, sizeof f->reason, "%s", entry->desc);
    return 0;
}

static bool ok(toile_job_file *f, int64_t result) {
    if (result < 0 && !f->reason[0])
        H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_reason, f);
    return result >= 0;
}

static void drop(hid_t *id) {
    if (*id > 0)
        H5Idec_ref(*id);
    *id = 0;
}

static toile_status fail_write(toile_job_file *f, toile_error *error) {
    f->device.discard = true;
    if (f->device.write_error)
        return toile_fail(error, TOILE_IO, "cannot write %.500s: %s; %s", f->path,
                          strerror(f->device.write_error), toile_io_advice(f->device.write_error));
    return toile_fail(error, TOILE_IO, "cannot write %.500s: %s; check the disk and the memory", f->path,
                      f->reason[0] ? f->reason : "an earlier write failed");
}

/* Whether all went well, also on disk. */
static toile_status written(toile_job_file *f, bool done, toile_error *error) {
    return done && !f->device.discard ? TOILE_OK : fail_write(f, error);
}

static toile_status fail_format(const toile_job_file *f, toile_error *error, const char *what,
                                const char *name) {
    return toile_fail(error, TOILE_FORMAT,
                      "%.300s: %s%s%.100s%s%s%s; the job is damaged or not one: write it again", f->path,
                      what, name ? " of " : "", name ? name : "", f->reason[0] ? " (HDF5: \"" : "", f->reason,
                      f->reason[0] ? "\")" : "");
}

/* A name as a link: '%', '/' and a leading '.' written as in a cache (FORMAT.md). False if it does not fit.
 */
static bool link_of(const char *name, char link[static 400]) {
    size_t used = 0;
    for (const char *at = name; *at; at++) {
        const char *code = *at == '%' ? "%25" : *at == '/' ? "%2F" : *at == '.' && at == name ? "%2E" : NULL;
        size_t size = code ? 3 : 1;
        if (used + size >= 400)
            return false;
        memcpy(link + used, code ? code : at, size);
        used += size;
    }
    link[used] = 0;
    return used > 0;
}

/* ---- making and closing ---- */

static toile_job_file *new_file(toile_memory *memory, const char *path) {
    toile_job_file *f = toile_alloc(memory, 1, sizeof *f);
    if (!f)
        return NULL;
    f->memory = f->device.memory = memory;
    f->device.fd = -1;
    f->path = toile_copy_text(memory, path);
    if (f->path)
        return f;
    toile_free(memory, f);
    return NULL;
}

static bool close_hdf5(toile_job_file *f) {
    bool good = true;
    for (int i = 0; i < f->track_count; i++)
        drop(&f->track[i].positions);
    drop(&f->meshes);
    drop(&f->tracks);
    if (f->file > 0) {
        good = ok(f, H5Fclose(f->file));
        if (!good) { /* the second time nothing is written, so that it closes */
            f->device.discard = true;
            H5Fclose(f->file);
        }
    }
    f->file = 0;
    return good && !f->device.discard;
}

void toile_job_file_close(toile_job_file *f) {
    if (!f)
        return;
    toile_memory *memory = f->memory;
    enter(f);
    f->device.discard = true; /* whoever wants things written has finished the job before */
    close_hdf5(f);
    if (f->device.fd >= 0)
        close(f->device.fd);
    leave(f, TOILE_OK);
    if (f->temporary)
        unlink(f->temporary);
    for (int i = 0; i < f->track_count; i++) {
        toile_free(memory, f->track[i].name);
        toile_free(memory, f->track[i].last);
        toile_free(memory, f->track[i].rows);
        toile_free(memory, f->track[i].checksums);
    }
    toile_free(memory, f->track);
    toile_free(memory, f->scene);
    toile_free(memory, f->temporary);
    toile_free(memory, f->path);
    if (!f->device.in_use) /* should HDF5 hold on to the file in spite of all: a leak is better */
        toile_free(memory, f);
}

/* ---- writing ---- */

static hid_t simple_space(int rank, const hsize_t *dims, const hsize_t *most) {
    return rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, dims, most);
}

static bool put_attribute(toile_job_file *f, hid_t object, const char *name, hid_t stored, hid_t given,
                          const void *value) {
    hid_t space = simple_space(0, NULL, NULL), attribute = 0;
    bool done = ok(f, space) &&
                ok(f, attribute = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT)) &&
                ok(f, H5Awrite(attribute, given, value));
    drop(&attribute);
    drop(&space);
    return done;
}

static hid_t text_type(size_t size) {
    hid_t type = H5Tcopy(H5T_C_S1);
    if (type > 0) {
        H5Tset_size(type, size ? size : 1);
        H5Tset_strpad(type, H5T_STR_NULLPAD);
        H5Tset_cset(type, H5T_CSET_UTF8);
    }
    return type;
}

static bool put_text(toile_job_file *f, hid_t object, const char *name, const char *text) {
    hid_t type = text_type(strlen(text));
    bool done = ok(f, type) && put_attribute(f, object, name, type, type, text);
    drop(&type);
    return done;
}

/* Chunks of `chunk` in the first dimension, shuffled and deflated; arrays that grow begin empty. */
static hid_t make_dataset(toile_job_file *f, hid_t group, const char *name, hid_t type, int rank,
                          const hsize_t *dims, hsize_t chunk, bool grows) {
    hsize_t chunks[3], most[3], now[3];
    size_t size = H5Tget_size(type);
    for (int i = 0; i < rank; i++) {
        chunks[i] = most[i] = now[i] = dims[i];
        size *= i ? dims[i] : 1;
    }
    chunks[0] = chunk < 1 ? 1 : chunk;
    while (!grows && chunks[0] > 1 && chunks[0] * size > ((size_t)1 << 20))
        chunks[0] /= 2;
    if (grows) {
        now[0] = 0;
        most[0] = H5S_UNLIMITED;
    }
    hid_t space = simple_space(rank, now, most), list = 0, dataset = 0;
    bool done = ok(f, space) && ok(f, list = H5Pcreate(H5P_DATASET_CREATE)) &&
                ok(f, H5Pset_chunk(list, rank, chunks)) && ok(f, H5Pset_shuffle(list)) &&
                ok(f, H5Pset_deflate(list, DEFLATE_LEVEL)) &&
                ok(f, dataset = H5Dcreate2(group, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT));
    drop(&list);
    drop(&space);
    return done ? dataset : 0;
}

static bool put_array(toile_job_file *f, hid_t group, const char *name, hid_t stored, hid_t given, int rank,
                      const hsize_t *dims, const void *values) {
    hid_t dataset = make_dataset(f, group, name, stored, rank, dims, dims[0], false);
    bool done = dataset > 0 && ok(f, H5Dwrite(dataset, given, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    drop(&dataset);
    return done;
}

toile_status toile_job_file_create(toile_memory *memory, const char *path, toile_job_file **file,
                                   toile_error *error) {
    *file = NULL;
    toile_job_file *f = new_file(memory, path);
    size_t size = strlen(path) + 32;
    if (f)
        f->temporary = toile_alloc(memory, size, 1);
    if (!f || !f->temporary) {
        toile_job_file_close(f);
        return toile_fail_memory(error, "a job");
    }
    snprintf(f->temporary, size, "%s.new-%ld", path, (long)getpid());
    f->device.fd = open(f->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (f->device.fd < 0) {
        toile_status status = toile_fail(error, TOILE_IO, "cannot write %.500s: %s; %s", path,
                                         strerror(errno), toile_io_advice(errno));
        toile_job_file_close(f);
        return status;
    }
    enter(f);
    hid_t access = toile_hdf5_access(&f->device);
    int32_t version = TOILE_JOB_VERSION;
    bool done = access > 0 && ok(f, f->file = H5Fcreate(f->temporary, H5F_ACC_TRUNC, H5P_DEFAULT, access)) &&
                put_text(f, f->file, "format", "toile-job") &&
                put_attribute(f, f->file, "version", H5T_STD_I32LE, H5T_NATIVE_INT32, &version) &&
                ok(f, f->meshes = H5Gcreate2(f->file, "meshes", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)) &&
                ok(f, f->tracks = H5Gcreate2(f->file, "tracks", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    drop(&access);
    toile_status status = written(f, done, error);
    leave(f, status);
    if (status == TOILE_OK)
        *file = f;
    else
        toile_job_file_close(f);
    return status;
}

static toile_status check_writable(const toile_job_file *f, toile_error *error) {
    if (!f->temporary)
        return toile_fail(error, TOILE_MISUSE, "%.300s is finished; make a new job to write another",
                          f->path);
    return TOILE_OK;
}

static hid_t make_group(toile_job_file *f, hid_t parent, const char *kind, const char *name,
                        toile_error *error) {
    char link[400];
    if (!link_of(name, link)) {
        toile_fail(error, TOILE_INVALID, "a %s of the job has no name, or one that is too long", kind);
        return 0;
    }
    if (H5Lexists(parent, link, H5P_DEFAULT) > 0) {
        toile_fail(error, TOILE_INVALID, "the job already has a %s \"%.100s\"; names are unique", kind, name);
        return 0;
    }
    hid_t group = H5Gcreate2(parent, link, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    if (!ok(f, group) || !put_text(f, group, "name", name)) {
        drop(&group);
        fail_write(f, error);
    }
    return group;
}

static uint64_t mesh_checksum(const toile_job_array *m) {
    int counts[4] = {m->vertex_count, m->face_count, m->corner_count, m->panel_count};
    uint64_t h = toile_hash(TOILE_HASH_SEED, counts, sizeof counts);
    h = toile_hash(h, m->positions, (size_t)m->vertex_count * 3 * sizeof(double));
    h = toile_hash(h, m->face_sizes, (size_t)m->face_count * sizeof(int));
    h = toile_hash(h, m->face_vertices, (size_t)m->corner_count * sizeof(int));
    if (m->corner_uv)
        h = toile_hash(h, m->corner_uv, (size_t)m->corner_count * 2 * sizeof(double));
    if (m->face_panels)
        h = toile_hash(h, m->face_panels, (size_t)m->face_count * sizeof(int));
    for (int i = 0; i < m->panel_count; i++)
        h = toile_hash(h, m->panel_names[i], strlen(m->panel_names[i]));
    return h;
}

static bool put_panel_names(toile_job_file *f, hid_t group, const toile_job_array *m) {
    size_t size = 1;
    hsize_t count = (hsize_t)m->panel_count;
    for (int i = 0; i < m->panel_count; i++)
        size = strlen(m->panel_names[i]) > size ? strlen(m->panel_names[i]) : size;
    char *texts = toile_alloc(f->memory, (size_t)m->panel_count, size);
    hid_t type = text_type(size);
    for (int i = 0; texts && i < m->panel_count; i++)
        memcpy(texts + (size_t)i * size, m->panel_names[i], strlen(m->panel_names[i]));
    bool done = texts && ok(f, type) && put_array(f, group, "panel_names", type, type, 1, &count, texts);
    drop(&type);
    toile_free(f->memory, texts);
    return done;
}

toile_status toile_job_file_put_mesh(toile_job_file *f, const toile_job_array *m, toile_error *error) {
    toile_status status = check_writable(f, error);
    if (status != TOILE_OK)
        return status;
    if (m->vertex_count < 1 || m->face_count < 1 || m->vertex_count > MOST || m->corner_count > MOST)
        return toile_fail(error, TOILE_INVALID,
                          "\"%.100s\" has %d vertices and %d faces; a mesh has at least one of both", m->name,
                          m->vertex_count, m->face_count);
    enter(f);
    hid_t group = make_group(f, f->meshes, "mesh", m->name, error);
    if (group <= 0)
        return leave(f, error->status);
    hsize_t points[2] = {(hsize_t)m->vertex_count, 3}, faces = (hsize_t)m->face_count,
            corners[2] = {(hsize_t)m->corner_count, 2};
    uint64_t checksum = mesh_checksum(m);
    bool done =
        put_array(f, group, "positions", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, points, m->positions) &&
        put_array(f, group, "face_sizes", H5T_STD_I32LE, H5T_NATIVE_INT, 1, &faces, m->face_sizes) &&
        put_array(f, group, "face_vertices", H5T_STD_I32LE, H5T_NATIVE_INT, 1, corners, m->face_vertices) &&
        put_attribute(f, group, "checksum", H5T_STD_U64LE, H5T_NATIVE_UINT64, &checksum);
    if (done && m->corner_uv)
        done = put_array(f, group, "corner_uv", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, corners, m->corner_uv);
    if (done && m->face_panels)
        done = put_array(f, group, "face_panels", H5T_STD_I32LE, H5T_NATIVE_INT, 1, &faces, m->face_panels);
    if (done && m->panel_count > 0)
        done = put_panel_names(f, group, m);
    drop(&group);
    return leave(f, written(f, done, error));
}

static track *new_track(toile_job_file *f, const char *name, int vertex_count) {
    track *grown =
        toile_grow(f->memory, f->track, (size_t)f->track_count, (size_t)f->track_count + 1, sizeof *grown);
    if (!grown)
        return NULL;
    f->track = grown;
    track *t = &grown[f->track_count++];
    t->name = toile_copy_text(f->memory, name);
    t->last = toile_alloc(f->memory, (size_t)vertex_count, 3 * sizeof *t->last);
    t->last_row = UNIQUE_ROW;
    t->info.vertex_count = vertex_count;
    return t->name && t->last ? t : NULL;
}

toile_status toile_job_file_begin_track(toile_job_file *f, const char *name, int first_frame,
                                        int vertex_count, int *index, toile_error *error) {
    toile_status status = check_writable(f, error);
    if (status != TOILE_OK)
        return status;
    if (vertex_count < 1 || vertex_count > MOST)
        return toile_fail(error, TOILE_INVALID, "track \"%.100s\" has %d vertices; it needs at least one",
                          name, vertex_count);
    enter(f);
    hid_t group = make_group(f, f->tracks, "track", name, error);
    if (group <= 0)
        return leave(f, error->status);
    track *t = new_track(f, name, vertex_count);
    hsize_t dims[3] = {0, (hsize_t)vertex_count, 3};
    int32_t first = first_frame;
    if (!t) {
        drop(&group);
        return leave(f, toile_fail_memory(error, "a track"));
    }
    t->info.first_frame = first_frame;
    t->positions = make_dataset(f, group, "positions", H5T_IEEE_F64LE, 3, dims, 1, true);
    bool done =
        t->positions > 0 && put_attribute(f, group, "first_frame", H5T_STD_I32LE, H5T_NATIVE_INT32, &first);
    drop(&group);
    *index = f->track_count - 1;
    return leave(f, written(f, done, error));
}

/* Reads or writes one row of a track. */
static bool move_row(toile_job_file *f, const track *t, int row, double *values, bool write) {
    hsize_t start[3] = {(hsize_t)row, 0, 0}, count[3] = {1, (hsize_t)t->info.vertex_count, 3};
    hid_t space = H5Dget_space(t->positions), one = simple_space(3, count, NULL);
    bool done = ok(f, space) && ok(f, one) &&
                ok(f, H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL)) &&
                ok(f, write ? H5Dwrite(t->positions, H5T_NATIVE_DOUBLE, one, space, H5P_DEFAULT, values)
                            : H5Dread(t->positions, H5T_NATIVE_DOUBLE, one, space, H5P_DEFAULT, values));
    drop(&one);
    drop(&space);
    return done;
}

/* Room for one more in an array whose room doubles at powers of two. */
static bool room(toile_job_file *f, void **array, int count, size_t size) {
    if (count & (count - 1))
        return true;
    void *grown = toile_grow(f->memory, *array, (size_t)count, count ? 2 * (size_t)count : 1, size);
    if (grown)
        *array = grown;
    return grown != NULL;
}

toile_status toile_job_file_append(toile_job_file *f, int index, const double *positions,
                                   toile_error *error) {
    toile_status status = check_writable(f, error);
    if (status != TOILE_OK)
        return status;
    if (index < 0 || index >= f->track_count)
        return toile_fail(error, TOILE_MISUSE, "there is no track %d; the job has %d", index, f->track_count);
    track *t = &f->track[index];
    size_t size = (size_t)t->info.vertex_count * 3 * sizeof *t->last;
    if (!room(f, (void **)&t->rows, t->info.frame_count, sizeof *t->rows) ||
        !room(f, (void **)&t->checksums, t->row_count, sizeof *t->checksums))
        return toile_fail_memory(error, "a track");
    if (t->row_count > 0 && memcmp(t->last, positions, size) == 0) {
        t->rows[t->info.frame_count++] = t->row_count - 1;
        return TOILE_OK;
    }
    enter(f);
    hsize_t dims[3] = {(hsize_t)t->row_count + 1, (hsize_t)t->info.vertex_count, 3};
    memcpy(t->last, positions, size);
    if (!ok(f, H5Dset_extent(t->positions, dims)) || !move_row(f, t, t->row_count, t->last, true) ||
        f->device.discard)
        return leave(f, fail_write(f, error));
    t->checksums[t->row_count] = toile_hash(TOILE_HASH_SEED, positions, size);
    t->rows[t->info.frame_count++] = t->row_count++;
    return leave(f, TOILE_OK);
}

static uint64_t track_checksum(const track *t) {
    int32_t facts[3] = {t->info.first_frame, t->info.frame_count, t->info.vertex_count};
    uint64_t h = toile_hash(TOILE_HASH_SEED, facts, sizeof facts);
    h = toile_hash(h, t->rows, (size_t)t->info.frame_count * sizeof *t->rows);
    return toile_hash(h, t->checksums, (size_t)t->row_count * sizeof *t->checksums);
}

static bool finish_track(toile_job_file *f, track *t) {
    char link[400];
    hsize_t frames = (hsize_t)t->info.frame_count, rows = (hsize_t)t->row_count;
    uint64_t checksum = track_checksum(t);
    link_of(t->name, link);
    hid_t group = H5Gopen2(f->tracks, link, H5P_DEFAULT);
    bool done = ok(f, group) &&
                put_array(f, group, "rows", H5T_STD_I32LE, H5T_NATIVE_INT, 1, &frames, t->rows) &&
                put_array(f, group, "checksums", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &rows, t->checksums) &&
                put_attribute(f, group, "checksum", H5T_STD_U64LE, H5T_NATIVE_UINT64, &checksum);
    drop(&group);
    return done;
}

/* What is in the temporary file is on disk when it gets its name. */
static int settle(toile_job_file *f) {
    struct stat info;
    uint64_t end[2] = {0};
    memcpy(end, END_MARK, sizeof *end);
    errno = EIO;
    if (fstat(f->device.fd, &info) || !hash_file(f->memory, f->device.fd, info.st_size, &end[1]) ||
        pwrite(f->device.fd, end, sizeof end, info.st_size) != (ssize_t)sizeof end)
        return errno;
    if (fsync(f->device.fd) || rename(f->temporary, f->path))
        return errno;
    return toile_sync_folder(f->path);
}

toile_status toile_job_file_finish(toile_job_file *f, const char *scene, toile_error *error) {
    toile_status status = check_writable(f, error);
    if (status != TOILE_OK)
        return status;
    for (int i = 0; i < f->track_count; i++)
        if (f->track[i].info.frame_count == 0)
            return toile_fail(error, TOILE_INVALID, "track \"%.100s\" of the job has no frame",
                              f->track[i].name);
    enter(f);
    hsize_t size = (hsize_t)strlen(scene);
    bool done = !f->device.discard && size > 0 && size < SCENE_MOST &&
                put_array(f, f->file, "scene", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &size, scene);
    for (int i = 0; done && i < f->track_count; i++)
        done = finish_track(f, &f->track[i]);
    if (!done)
        return leave(f, fail_write(f, error));
    if (!close_hdf5(f))
        return leave(f, fail_write(f, error));
    leave(f, TOILE_OK);
    int number = settle(f);
    if (number)
        return toile_fail(error, TOILE_IO, "cannot write %.500s: %s; %s", f->path, strerror(number),
                          toile_io_advice(number));
    toile_free(f->memory, f->temporary);
    f->temporary = NULL;
    return TOILE_OK;
}

/* ---- reading: shapes and storage are checked before anything is believed ---- */

bool toile_job_file_is(const char *path) {
    unsigned char start[8] = {0};
    struct stat info;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && read(fd, start, 8) == 8 &&
              memcmp(start, "\211HDF\r\n\032\n", 8) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

/* Whether `name` in the group is a plain link: others lead to other files. */
static bool plain_link(hid_t group, const char *name) {
    H5L_info_t info;
    return H5Lexists(group, name, H5P_DEFAULT) > 0 && H5Lget_info(group, name, &info, H5P_DEFAULT) >= 0 &&
           info.type == H5L_TYPE_HARD;
}

static bool storage_is_ours(toile_job_file *f, hid_t dataset, uint64_t bytes) {
    hid_t list = H5Dget_create_plist(dataset);
    bool good = ok(f, list) && H5Pget_layout(list) != H5D_VIRTUAL && H5Pget_external_count(list) == 0;
    for (int i = 0; good && i < H5Pget_nfilters(list); i++) {
        unsigned flags;
        size_t count = 0;
        H5Z_filter_t filter = H5Pget_filter2(list, (unsigned)i, &flags, &count, NULL, 0, NULL, NULL);
        good =
            filter == H5Z_FILTER_SHUFFLE || filter == H5Z_FILTER_DEFLATE || filter == H5Z_FILTER_FLETCHER32;
    }
    drop(&list);
    return good && bytes / DEFLATE_MOST <= H5Dget_storage_size(dataset) + 1;
}

/* Opens a dataset of a class, size of element and rank, and gives its dimensions. 0 if it is not so. */
static hid_t open_array(toile_job_file *f, hid_t group, const char *name, H5T_class_t class, size_t size,
                        int rank, hsize_t *dims) {
    hid_t dataset = plain_link(group, name) ? H5Dopen2(group, name, H5P_DEFAULT) : 0, type = 0, space = 0;
    if (dataset <= 0)
        return 0;
    uint64_t bytes = size;
    bool good = ok(f, type = H5Dget_type(dataset)) && ok(f, space = H5Dget_space(dataset)) &&
                H5Tget_class(type) == class && H5Tget_size(type) == size &&
                H5Sget_simple_extent_ndims(space) == rank &&
                H5Sget_simple_extent_dims(space, dims, NULL) == rank;
    for (int i = 0; good && i < rank; i++) {
        good = dims[i] <= MOST;
        bytes = good ? bytes * dims[i] : 0;
        good = good && bytes < (uint64_t)1 << 42;
    }
    good = good && storage_is_ours(f, dataset, bytes);
    drop(&type);
    drop(&space);
    if (!good)
        drop(&dataset);
    return dataset;
}

/* A whole array into new memory, or null. Of the dimensions those that are not 0 must be met. */
static void *read_array(toile_job_file *f, hid_t group, const char *name, H5T_class_t class, size_t size,
                        hid_t wanted, int rank, hsize_t *dims) {
    hsize_t found[3] = {0};
    hid_t dataset = open_array(f, group, name, class, size, rank, found);
    size_t count = 1;
    bool good = dataset > 0;
    for (int i = 0; good && i < rank; i++) {
        good = dims[i] == 0 || dims[i] == found[i];
        dims[i] = found[i];
        count *= found[i];
    }
    void *values = good ? toile_alloc(f->memory, count + 1, size) : NULL;
    if (values && !ok(f, H5Dread(dataset, wanted, H5S_ALL, H5S_ALL, H5P_DEFAULT, values))) {
        toile_free(f->memory, values);
        values = NULL;
    }
    drop(&dataset);
    return values;
}

static bool read_number(toile_job_file *f, hid_t object, const char *name, hid_t wanted, size_t size,
                        void *value) {
    hid_t attribute = H5Aexists(object, name) > 0 ? H5Aopen(object, name, H5P_DEFAULT) : 0, type = 0;
    bool good = attribute > 0 && ok(f, type = H5Aget_type(attribute)) && H5Tget_class(type) == H5T_INTEGER &&
                H5Tget_size(type) == size && H5Aget_storage_size(attribute) == size &&
                ok(f, H5Aread(attribute, wanted, value));
    drop(&type);
    drop(&attribute);
    return good;
}

static bool is_job(toile_job_file *f) {
    char text[10] = "";
    hid_t attribute = H5Aexists(f->file, "format") > 0 ? H5Aopen(f->file, "format", H5P_DEFAULT) : 0;
    hid_t type = attribute > 0 ? H5Aget_type(attribute) : 0;
    bool good = type > 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 &&
                H5Tget_size(type) == 9 && ok(f, H5Aread(attribute, type, text));
    drop(&type);
    drop(&attribute);
    return good && strcmp(text, "toile-job") == 0;
}

static toile_status read_head(toile_job_file *f, toile_error *error) {
    int32_t version = 0;
    hsize_t size = 0;
    if (!is_job(f))
        return toile_fail(error, TOILE_FORMAT,
                          "%.300s is an HDF5 file but not a job; give a job or a scene in JSON", f->path);
    if (!read_number(f, f->file, "version", H5T_NATIVE_INT32, 4, &version) || version < 1)
        return fail_format(f, error, "no version", NULL);
    if (version > TOILE_JOB_VERSION)
        return toile_fail(error, TOILE_FORMAT,
                          "%.300s has job format %d; this Toile reads up to %d, use a newer one", f->path,
                          version, TOILE_JOB_VERSION);
    f->scene = read_array(f, f->file, "scene", H5T_INTEGER, 1, H5T_NATIVE_UINT8, 1, &size);
    if (!f->scene || size == 0 || size > SCENE_MOST)
        return fail_format(f, error, "no scene", NULL);
    if (!plain_link(f->file, "meshes") || !ok(f, f->meshes = H5Gopen2(f->file, "meshes", H5P_DEFAULT)) ||
        !plain_link(f->file, "tracks") || !ok(f, f->tracks = H5Gopen2(f->file, "tracks", H5P_DEFAULT)))
        return fail_format(f, error, "no meshes or tracks", NULL);
    return TOILE_OK;
}

toile_status toile_job_file_open(toile_memory *memory, const char *path, toile_job_file **file,
                                 toile_error *error) {
    *file = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return toile_fail(error, TOILE_IO, "cannot open %.500s: %s", path, strerror(errno));
    toile_job_file *f = toile_job_file_is(path) ? new_file(memory, path) : NULL;
    if (!f) {
        close(fd);
        return toile_job_file_is(path)
                   ? toile_fail_memory(error, "a job")
                   : toile_fail(error, TOILE_FORMAT, "%.500s is not a job: it is not in HDF5", path);
    }
    f->device.fd = fd;
    f->device.piecewise = has_checksums(fd);
    if (!file_is_whole(memory, fd)) {
        toile_status status = fail_format(f, error, "it is not as it was written", NULL);
        toile_job_file_close(f);
        return status;
    }
    enter(f);
    hid_t access = toile_hdf5_access(&f->device);
    toile_status status;
    if (access > 0 && ok(f, f->file = H5Fopen(path, H5F_ACC_RDONLY, access)))
        status = read_head(f, error);
    else
        status = fail_format(f, error, "it cannot be opened", NULL);
    drop(&access);
    status = leave_read(f, status, error);
    if (status == TOILE_OK)
        *file = f;
    else
        toile_job_file_close(f);
    return status;
}

const char *toile_job_file_scene(const toile_job_file *f) {
    return f->scene;
}

const char *toile_job_file_path(const toile_job_file *f) {
    return f->path;
}

/* All members of a group with their names, cut to a message. */
static herr_t list_name(hid_t group, const char *name, const H5L_info_t *info, void *text) {
    (void)group, (void)info;
    size_t used = strlen(text);
    snprintf((char *)text + used, 400 - used, "%s%s", used ? ", " : "", name);
    return 0;
}

static hid_t open_member(toile_job_file *f, hid_t parent, const char *kind, const char *name,
                         toile_error *error) {
    char link[400], text[400] = "";
    hid_t group = link_of(name, link) && plain_link(parent, link) ? H5Gopen2(parent, link, H5P_DEFAULT) : 0;
    if (group > 0)
        return group;
    H5Literate(parent, H5_INDEX_NAME, H5_ITER_INC, NULL, list_name, text);
    toile_fail(error, TOILE_INVALID, "%.300s has no %s \"%.100s\"; it has: %s", f->path, kind, name,
               *text ? text : "none");
    return 0;
}

void toile_job_file_free_mesh(toile_memory *memory, toile_job_array *m) {
    for (int i = 0; m->panel_names && i < m->panel_count; i++)
        toile_free(memory, (void *)m->panel_names[i]);
    const void *const owned[] = {m->name,      m->positions,   m->face_sizes, m->face_vertices,
                                 m->corner_uv, m->face_panels, m->panel_names};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        toile_free(memory, (void *)owned[i]);
    *m = (toile_job_array){0};
}

static bool read_panel_names(toile_job_file *f, hid_t group, toile_job_array *m) {
    hsize_t count = 0;
    hid_t dataset = plain_link(group, "panel_names") ? H5Dopen2(group, "panel_names", H5P_DEFAULT) : 0,
          type = 0;
    if (dataset <= 0)
        return false;
    type = H5Dget_type(dataset);
    size_t size =
        type > 0 && H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0 ? H5Tget_size(type) : 0;
    drop(&dataset);
    char *texts = size > 0 && size < 4096
                      ? read_array(f, group, "panel_names", H5T_STRING, size, type, 1, &count)
                      : NULL;
    const char **names = texts ? toile_alloc(f->memory, count, sizeof *names) : NULL;
    bool good = names != NULL;
    m->panel_names = names;
    for (hsize_t i = 0; good && i < count; i++) {
        char name[4097];
        snprintf(name, sizeof name, "%.*s", (int)size, texts + i * size);
        names[i] = toile_copy_text(f->memory, name);
        m->panel_count++;
        good = names[i] != NULL;
    }
    drop(&type);
    toile_free(f->memory, texts);
    return good;
}

/* Faces of 3 or 4 corners that name vertices and panels that exist. */
static bool mesh_fits(const toile_job_array *m) {
    int corners = 0;
    for (int i = 0; i < m->face_count; i++) {
        if (m->face_sizes[i] < 3 || m->face_sizes[i] > 4)
            return false;
        corners += m->face_sizes[i];
        if (m->face_panels && (m->face_panels[i] < 0 || m->face_panels[i] >= m->panel_count))
            return false;
    }
    for (int i = 0; i < m->corner_count; i++)
        if (m->face_vertices[i] < 0 || m->face_vertices[i] >= m->vertex_count)
            return false;
    return corners == m->corner_count;
}

static bool read_mesh(toile_job_file *f, hid_t group, toile_job_array *m) {
    hsize_t points[2] = {0, 3}, faces = 0, corners = 0;
    m->positions = read_array(f, group, "positions", H5T_FLOAT, 8, H5T_NATIVE_DOUBLE, 2, points);
    m->face_sizes = read_array(f, group, "face_sizes", H5T_INTEGER, 4, H5T_NATIVE_INT, 1, &faces);
    m->face_vertices = read_array(f, group, "face_vertices", H5T_INTEGER, 4, H5T_NATIVE_INT, 1, &corners);
    m->vertex_count = (int)points[0];
    m->face_count = (int)faces;
    m->corner_count = (int)corners;
    if (!m->positions || !m->face_sizes || !m->face_vertices || points[0] == 0 || faces == 0 || corners == 0)
        return false;
    hsize_t uv[2] = {corners, 2};
    if (H5Lexists(group, "corner_uv", H5P_DEFAULT) > 0 &&
        !(m->corner_uv = read_array(f, group, "corner_uv", H5T_FLOAT, 8, H5T_NATIVE_DOUBLE, 2, uv)))
        return false;
    if (H5Lexists(group, "face_panels", H5P_DEFAULT) > 0 &&
        !(m->face_panels = read_array(f, group, "face_panels", H5T_INTEGER, 4, H5T_NATIVE_INT, 1, &faces)))
        return false;
    if (H5Lexists(group, "panel_names", H5P_DEFAULT) > 0 && !read_panel_names(f, group, m))
        return false;
    return mesh_fits(m);
}

toile_status toile_job_file_read_mesh(toile_job_file *f, const char *name, toile_job_array *m,
                                      uint64_t *checksum, toile_error *error) {
    *m = (toile_job_array){0};
    enter(f);
    toile_status status = TOILE_OK;
    uint64_t stored = 0;
    hid_t group = open_member(f, f->meshes, "mesh", name, error);
    if (group <= 0)
        return leave_read(f, error->status, error);
    if (!read_mesh(f, group, m))
        status = fail_format(f, error, "the mesh is not whole", name);
    else if (!read_number(f, group, "checksum", H5T_NATIVE_UINT64, 8, &stored) || stored != mesh_checksum(m))
        status = fail_format(f, error, "the checksum differs", name);
    else if (!(m->name = toile_copy_text(f->memory, name)))
        status = toile_fail_memory(error, "a mesh");
    if (checksum)
        *checksum = stored;
    drop(&group);
    if (status != TOILE_OK)
        toile_job_file_free_mesh(f->memory, m);
    return leave_read(f, status, error);
}

static bool track_fits(const track *t, uint64_t stored) {
    for (int i = 0; i < t->info.frame_count; i++)
        if (t->rows[i] < 0 || t->rows[i] >= t->row_count)
            return false;
    return track_checksum(t) == stored;
}

static toile_status load_track(toile_job_file *f, hid_t group, const char *name, toile_error *error) {
    hsize_t dims[3] = {0, 0, 3}, frames = 0, rows;
    int32_t first = 0;
    uint64_t stored = 0;
    hid_t positions = open_array(f, group, "positions", H5T_FLOAT, 8, 3, dims);
    if (positions <= 0 || dims[0] == 0 || dims[1] == 0 || dims[2] != 3) {
        drop(&positions);
        return fail_format(f, error, "the track is not whole", name);
    }
    track *t = new_track(f, name, (int)dims[1]);
    if (!t) {
        drop(&positions);
        return toile_fail_memory(error, "a track");
    }
    t->positions = positions;
    rows = dims[0];
    t->rows = read_array(f, group, "rows", H5T_INTEGER, 4, H5T_NATIVE_INT, 1, &frames);
    t->checksums = read_array(f, group, "checksums", H5T_INTEGER, 8, H5T_NATIVE_UINT64, 1, &rows);
    t->info.frame_count = (int)frames;
    t->row_count = (int)dims[0];
    bool good = t->rows && t->checksums && frames > 0 &&
                read_number(f, group, "first_frame", H5T_NATIVE_INT32, 4, &first) &&
                read_number(f, group, "checksum", H5T_NATIVE_UINT64, 8, &stored);
    t->info.first_frame = first;
    t->info.checksum = stored;
    return good && track_fits(t, stored) ? TOILE_OK : fail_format(f, error, "the track is damaged", name);
}

toile_status toile_job_file_find_track(toile_job_file *f, const char *name, int *index, toile_job_track *info,
                                       toile_error *error) {
    int i = 0;
    while (i < f->track_count && (!f->track[i].name || strcmp(f->track[i].name, name) != 0))
        i++;
    if (i == f->track_count) {
        enter(f);
        hid_t group = open_member(f, f->tracks, "track", name, error);
        if (group <= 0)
            return leave_read(f, error->status, error);
        toile_status status = load_track(f, group, name, error);
        drop(&group);
        status = leave_read(f, status, error);
        if (status != TOILE_OK) {
            if (i < f->track_count) { /* what there is of it is not to be found again */
                toile_free(f->memory, f->track[i].name);
                f->track[i].name = NULL;
            }
            return status;
        }
    }
    *index = i;
    *info = f->track[i].info;
    return TOILE_OK;
}

toile_status toile_job_file_read_track(toile_job_file *f, int index, int frame, double *positions,
                                       toile_error *error) {
    track *t = &f->track[index];
    int at = frame - t->info.first_frame;
    at = at < 0 ? 0 : at >= t->info.frame_count ? t->info.frame_count - 1 : at;
    int row = t->rows[at];
    size_t size = (size_t)t->info.vertex_count * 3 * sizeof *t->last;
    if (row != t->last_row) {
        enter(f);
        t->last_row = UNIQUE_ROW;
        if (!move_row(f, t, row, t->last, false) ||
            toile_hash(TOILE_HASH_SEED, t->last, size) != t->checksums[row])
            return leave_read(f, fail_format(f, error, "a frame is damaged in the track", t->name), error);
        t->last_row = row;
        leave(f, TOILE_OK);
    }
    memcpy(positions, t->last, size);
    return TOILE_OK;
}
