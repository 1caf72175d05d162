/* PC2 and MDD. Numbers go through bytes, so that the host's byte order does not matter. */
#include "pointcache.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char PC2_MARK[12] = "POINTCACHE2"; /* with its NUL */

enum { PC2_HEADER = 32, PC2_VERSION = 1, MDD_HEADER = 8, CHUNK = 4096 /* floats at a time */ };

static const char *kind_name(toile_pointcache_kind kind) {
    return kind == TOILE_PC2 ? "PC2" : "MDD";
}

static void put32(unsigned char *at, uint32_t value, toile_pointcache_kind kind) {
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(value >> (kind == TOILE_MDD ? 24 - 8 * i : 8 * i));
}

static uint32_t get32(const unsigned char *at, toile_pointcache_kind kind) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)at[i] << (kind == TOILE_MDD ? 24 - 8 * i : 8 * i);
    return value;
}

static uint32_t float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float bits_float(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* ---- writing ---- */

struct toile_pointcache_writer {
    toile_memory *memory;
    FILE *file;
    char *path;
    toile_pointcache_def def;
    int written; /* frames */
    int failure; /* errno of the first write that failed */
};

static void write_bytes(toile_pointcache_writer *w, const void *bytes, size_t size) {
    errno = 0;
    if (!w->failure && fwrite(bytes, 1, size, w->file) != size)
        w->failure = errno ? errno : EIO;
}

static void write_header(toile_pointcache_writer *w) {
    const toile_pointcache_def *def = &w->def;
    unsigned char header[PC2_HEADER];
    if (def->kind == TOILE_PC2) {
        memcpy(header, PC2_MARK, sizeof PC2_MARK);
        put32(header + 12, PC2_VERSION, def->kind);
        put32(header + 16, (uint32_t)def->point_count, def->kind);
        put32(header + 20, float_bits((float)def->first_frame), def->kind);
        put32(header + 24, float_bits(1), def->kind);
        put32(header + 28, (uint32_t)def->frame_count, def->kind);
        write_bytes(w, header, PC2_HEADER);
        return;
    }
    put32(header, (uint32_t)def->frame_count, def->kind);
    put32(header + 4, (uint32_t)def->point_count, def->kind);
    write_bytes(w, header, MDD_HEADER);
    for (int i = 0; i < def->frame_count; i++) {
        put32(header, float_bits((float)(((double)def->first_frame + i) / def->fps)), def->kind);
        write_bytes(w, header, 4);
    }
}

static toile_status write_failed(const toile_pointcache_writer *w, toile_error *error) {
    return toile_fail(error, TOILE_IO, "%.500s cannot be written: %s", w->path, strerror(w->failure));
}

static void writer_free(toile_pointcache_writer *w) {
    toile_memory *memory = w->memory;
    toile_free(memory, w->path);
    toile_free(memory, w);
}

toile_status toile_pointcache_create(toile_memory *memory, const char *path, const toile_pointcache_def *def,
                                     toile_pointcache_writer **writer, toile_error *error) {
    *writer = NULL;
    if (def->point_count < 0 || def->frame_count < 0 || (def->kind == TOILE_MDD && !(def->fps > 0)))
        return toile_fail(error, TOILE_INVALID, "%.500s: counts below 0 or no frames per second", path);
    toile_pointcache_writer *w = toile_alloc(memory, 1, sizeof *w);
    char *copy = toile_copy_text(memory, path);
    if (!w || !copy) {
        toile_free(memory, w);
        toile_free(memory, copy);
        return toile_fail_memory(error, "a point cache");
    }
    *w = (toile_pointcache_writer){memory, fopen(path, "wb"), copy, *def, 0, 0};
    if (!w->file)
        w->failure = errno;
    else
        write_header(w);
    if (w->failure) {
        toile_status status = write_failed(w, error);
        if (w->file)
            fclose(w->file);
        writer_free(w);
        return status;
    }
    *writer = w;
    return TOILE_OK;
}

toile_status toile_pointcache_append(toile_pointcache_writer *w, const float *positions, toile_error *error) {
    if (w->written == w->def.frame_count)
        return toile_fail(error, TOILE_MISUSE, "%.500s was to have %d frames; this would be one more",
                          w->path, w->def.frame_count);
    unsigned char bytes[4 * CHUNK];
    size_t count = 3 * (size_t)w->def.point_count;
    for (size_t start = 0; start < count && !w->failure; start += CHUNK) {
        size_t part = count - start < CHUNK ? count - start : CHUNK;
        for (size_t i = 0; i < part; i++)
            put32(bytes + 4 * i, float_bits(positions[start + i]), w->def.kind);
        write_bytes(w, bytes, 4 * part);
    }
    if (w->failure)
        return write_failed(w, error);
    w->written++;
    return TOILE_OK;
}

toile_status toile_pointcache_finish(toile_pointcache_writer *w, toile_error *error) {
    if (!w)
        return TOILE_OK;
    toile_status status = TOILE_OK;
    errno = 0;
    if (!w->failure && (fflush(w->file) != 0 || fsync(fileno(w->file)) != 0))
        w->failure = errno ? errno : EIO;
    if (fclose(w->file) != 0 && !w->failure)
        w->failure = errno ? errno : EIO;
    if (w->failure)
        status = write_failed(w, error);
    else if (w->written < w->def.frame_count)
        status = toile_fail(error, TOILE_MISUSE, "%.500s was to have %d frames and got %d", w->path,
                            w->def.frame_count, w->written);
    writer_free(w);
    return status;
}

/* ---- reading ---- */

struct toile_pointcache_reader {
    toile_memory *memory;
    FILE *file;
    char *path;
    toile_pointcache_info info;
    int64_t frames_at; /* offset of the first frame */
};

static toile_status read_bytes(toile_pointcache_reader *r, void *bytes, size_t size, toile_error *error) {
    errno = 0;
    if (fread(bytes, 1, size, r->file) == size)
        return TOILE_OK;
    if (ferror(r->file))
        return toile_fail(error, TOILE_IO, "%.500s cannot be read: %s", r->path,
                          strerror(errno ? errno : EIO));
    return toile_fail(error, TOILE_FORMAT, "%.500s ends inside its %s header; write it again", r->path,
                      kind_name(r->info.kind));
}

/* A count as it stands in a header; -1 is never a count. */
static int read_count(const unsigned char *at, toile_pointcache_kind kind) {
    uint32_t value = get32(at, kind);
    return value > INT32_MAX ? -1 : (int)value;
}

static toile_status read_pc2_header(toile_pointcache_reader *r, toile_error *error) {
    unsigned char header[PC2_HEADER];
    toile_pointcache_info *info = &r->info;
    toile_status status = read_bytes(r, header, sizeof header, error);
    if (status < 0)
        return status;
    if (memcmp(header, PC2_MARK, sizeof PC2_MARK) != 0)
        return toile_fail(error, TOILE_FORMAT, "%.500s is not a PC2 point cache", r->path);
    uint32_t version = get32(header + 12, info->kind);
    if (version != PC2_VERSION)
        return toile_fail(error, TOILE_FORMAT, "%.500s is a PC2 point cache of version %u; only 1 is known",
                          r->path, version);
    info->point_count = read_count(header + 16, info->kind);
    info->first_frame = (double)bits_float(get32(header + 20, info->kind));
    info->frame_step = (double)bits_float(get32(header + 24, info->kind));
    info->frame_count = read_count(header + 28, info->kind);
    r->frames_at = PC2_HEADER;
    return TOILE_OK;
}

/* The times, once for first and last, once to see whether they are evenly spaced. */
static toile_status read_mdd_times(toile_pointcache_reader *r, toile_error *error) {
    toile_pointcache_info *info = &r->info;
    bool even = info->frame_count > 1;
    for (int pass = 0; pass < 2; pass++) {
        double step =
            info->frame_count > 1 ? (info->last_time - info->first_time) / (info->frame_count - 1) : 0;
        if (fseeko(r->file, MDD_HEADER, SEEK_SET) != 0)
            return toile_fail(error, TOILE_IO, "%.500s cannot be read: %s", r->path, strerror(errno));
        for (int i = 0; i < info->frame_count; i++) {
            unsigned char bytes[4];
            toile_status status = read_bytes(r, bytes, sizeof bytes, error);
            if (status < 0)
                return status;
            double time = (double)bits_float(get32(bytes, info->kind));
            if (pass == 0 && i == 0)
                info->first_time = time;
            if (pass == 0)
                info->last_time = time;
            /* Stamps are float32: half a unit in the last place, and some for those who add up steps. */
            else if (!(fabs(time - (info->first_time + step * i)) <= 1e-3 * step + 1e-6 * fabs(time)))
                even = false;
        }
    }
    double step = even ? (info->last_time - info->first_time) / (info->frame_count - 1) : 0;
    if (step > 0 && isfinite(1 / step)) {
        double nearest = round(1 / step);
        info->fps = fabs(1 / step - nearest) < 1e-4 * nearest ? nearest : 1 / step;
    }
    return TOILE_OK;
}

static toile_status read_mdd_header(toile_pointcache_reader *r, int64_t size, toile_error *error) {
    unsigned char header[MDD_HEADER];
    toile_pointcache_info *info = &r->info;
    toile_status status = read_bytes(r, header, sizeof header, error);
    if (status < 0)
        return status;
    info->frame_count = read_count(header, info->kind);
    info->point_count = read_count(header + 4, info->kind);
    r->frames_at = MDD_HEADER + 4 * (int64_t)info->frame_count;
    if (info->frame_count < 0 || info->point_count < 0)
        return TOILE_OK; /* refused by who called */
    if (r->frames_at > size)
        return toile_fail(error, TOILE_FORMAT,
                          "%.500s ends inside its MDD header (%d frames, %d points, %lld bytes); it is cut "
                          "off or no MDD point cache",
                          r->path, info->frame_count, info->point_count, (long long)size);
    return read_mdd_times(r, error);
}

toile_status toile_pointcache_open(toile_memory *memory, const char *path, toile_pointcache_kind kind,
                                   toile_pointcache_reader **reader, toile_error *error) {
    struct stat about;
    toile_status status;
    *reader = NULL;
    toile_pointcache_reader *r = toile_alloc(memory, 1, sizeof *r);
    if (!r)
        return toile_fail_memory(error, "a point cache");
    *r = (toile_pointcache_reader){
        .memory = memory, .file = fopen(path, "rb"), .path = toile_copy_text(memory, path)};
    r->info.kind = kind;
    if (!r->path) {
        status = toile_fail_memory(error, "a point cache");
        goto out;
    }
    if (!r->file || fstat(fileno(r->file), &about) != 0) {
        status = toile_fail(error, TOILE_IO, "%.500s cannot be read: %s", path, strerror(errno));
        goto out;
    }
    status = kind == TOILE_PC2 ? read_pc2_header(r, error) : read_mdd_header(r, about.st_size, error);
    if (status < 0)
        goto out;
    toile_pointcache_info *info = &r->info;
    if (info->point_count < 0 || info->frame_count < 0) {
        status = toile_fail(error, TOILE_FORMAT,
                            "%.500s: its %s header has counts below 0; it is damaged or of another format",
                            path, kind_name(kind));
        goto out;
    }
    int64_t frame_size = 12 * (int64_t)info->point_count, rest = about.st_size - r->frames_at;
    int64_t fit = frame_size > 0 ? rest / frame_size : info->frame_count;
    info->stored_frames = fit < info->frame_count ? (int)fit : info->frame_count;
    if (info->stored_frames == info->frame_count)
        info->extra_bytes = rest - frame_size * info->frame_count;
    *reader = r;
    return TOILE_OK;
out:
    toile_pointcache_close(r);
    return status;
}

const toile_pointcache_info *toile_pointcache_get_info(const toile_pointcache_reader *r) {
    return &r->info;
}

toile_status toile_pointcache_read(toile_pointcache_reader *r, int frame, float *positions,
                                   toile_error *error) {
    if (frame < 0 || frame >= r->info.stored_frames)
        return toile_fail(error, TOILE_INVALID, "%.500s has %d frames; there is no number %d", r->path,
                          r->info.stored_frames, frame);
    size_t count = 3 * (size_t)r->info.point_count;
    if (fseeko(r->file, (off_t)(r->frames_at + 4 * (int64_t)count * frame), SEEK_SET) != 0)
        return toile_fail(error, TOILE_IO, "%.500s cannot be read: %s", r->path, strerror(errno));
    unsigned char bytes[4 * CHUNK];
    for (size_t start = 0; start < count; start += CHUNK) {
        size_t part = count - start < CHUNK ? count - start : CHUNK;
        toile_status status = read_bytes(r, bytes, 4 * part, error);
        if (status < 0)
            return status;
        for (size_t i = 0; i < part; i++)
            positions[start + i] = bits_float(get32(bytes + 4 * i, r->info.kind));
    }
    return TOILE_OK;
}

void toile_pointcache_close(toile_pointcache_reader *r) {
    if (!r)
        return;
    toile_memory *memory = r->memory;
    if (r->file)
        fclose(r->file);
    toile_free(memory, r->path);
    toile_free(memory, r);
}
