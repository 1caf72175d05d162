/* The Ogawa container: a 16-byte header, then data blocks (size, bytes) and groups (count, child
 * words) in any order. A child word is a file offset, its top bit saying data or group.
 *
 * Reading trusts nothing: a block is handed out only after its offset and count were compared, by
 * subtraction, with the size of the file. Writing only appends, until freeze() goes back to set the
 * root offset and then the finished flag; a file interrupted before that is refused by every
 * reader.
 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "abc_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define ABC_HEADER_SIZE 16
#define ABC_FROZEN_AT 5
#define ABC_ROOT_AT 8
#define ABC_FROZEN 0xff

static const char ABC_DAMAGED[] = "the file is damaged, export it again";

/* ---------------------------------------------------------------- source */

abc_status abc_source_open(abc_core *core, abc_source *source, const char *path) {
    source->file = fopen(path, "rb");
    if (!source->file)
        return abc_fail(core, ABC_IO,
                        "cannot open '%.400s': %s; check the name and the permissions", path,
                        strerror(errno));
    off_t size = -1;
    if (fseeko(source->file, 0, SEEK_END) == 0)
        size = ftello(source->file);
    if (size < 0)
        return abc_fail(core, ABC_IO,
                        "cannot find the size of '%.400s': %s; is it an ordinary file?", path,
                        strerror(errno));
    source->size = (uint64_t)size;
    return ABC_OK;
}

void abc_source_close(abc_source *source) {
    if (source->file)
        fclose(source->file);
    source->file = NULL;
}

abc_status abc_source_read(abc_core *core, const abc_source *source, uint64_t offset, void *to,
                           size_t size) {
    if (offset > source->size || size > source->size - offset)
        return abc_fail(core, ABC_FORMAT, "%llu bytes at offset %llu reach past the end (%llu); %s",
                        (unsigned long long)size, (unsigned long long)offset,
                        (unsigned long long)source->size, ABC_DAMAGED);
    if (size == 0)
        return ABC_OK;
    if (source->memory) {
        memcpy(to, source->memory + offset, size);
        return ABC_OK;
    }
    errno = 0;
    if (fseeko(source->file, (off_t)offset, SEEK_SET) != 0 ||
        fread(to, 1, size, source->file) != size)
        return abc_fail(core, ABC_IO, "cannot read %llu bytes at offset %llu: %s; check the disk",
                        (unsigned long long)size, (unsigned long long)offset,
                        errno ? strerror(errno) : "the file became shorter");
    return ABC_OK;
}

/* Both kinds of block start with a number of units, which must lie in the file. */
static abc_status abc_source_block(abc_core *core, const abc_source *source, uint64_t offset,
                                   uint64_t unit, const char *kind, abc_block *block) {
    if (offset < ABC_HEADER_SIZE || offset > source->size || source->size - offset < 8)
        return abc_fail(core, ABC_FORMAT, "%s offset %llu is outside the file (%llu bytes); %s",
                        kind, (unsigned long long)offset, (unsigned long long)source->size,
                        ABC_DAMAGED);
    uint64_t count = 0;
    abc_status status = abc_source_read(core, source, offset, &count, sizeof count);
    if (status < 0)
        return status;
    if (count > (source->size - offset - 8) / unit)
        return abc_fail(core, ABC_FORMAT,
                        "%s at offset %llu claims %llu entries, more than fit; %s", kind,
                        (unsigned long long)offset, (unsigned long long)count, ABC_DAMAGED);
    *block = (abc_block){offset + 8, count};
    return ABC_OK;
}

abc_status abc_source_group(abc_core *core, const abc_source *source, uint64_t word,
                            abc_block *group) {
    *group = (abc_block){0, 0};
    if (word == ABC_EMPTY_GROUP)
        return ABC_OK;
    if (word & ABC_DATA_BIT)
        return abc_fail(core, ABC_FORMAT, "data (offset %llu) where a group belongs; %s",
                        (unsigned long long)(word & ~ABC_DATA_BIT), ABC_DAMAGED);
    return abc_source_block(core, source, word, 8, "group", group);
}

abc_status abc_source_data(abc_core *core, const abc_source *source, uint64_t word,
                           abc_block *data) {
    *data = (abc_block){0, 0};
    if (word == ABC_EMPTY_DATA)
        return ABC_OK;
    if (!(word & ABC_DATA_BIT))
        return abc_fail(core, ABC_FORMAT, "a group (offset %llu) where data belongs; %s",
                        (unsigned long long)word, ABC_DAMAGED);
    return abc_source_block(core, source, word & ~ABC_DATA_BIT, 1, "data", data);
}

abc_status abc_source_child(abc_core *core, const abc_source *source, abc_block group,
                            uint64_t index, uint64_t *word) {
    if (index >= group.count)
        return abc_fail(core, ABC_FORMAT, "group at offset %llu has %llu children, not %llu; %s",
                        (unsigned long long)group.offset, (unsigned long long)group.count,
                        (unsigned long long)index + 1, ABC_DAMAGED);
    return abc_source_read(core, source, group.offset + 8 * index, word, 8);
}

abc_status abc_source_root(abc_core *core, const abc_source *source, abc_block *root) {
    static const uint8_t hdf5[4] = {0x89, 'H', 'D', 'F'};
    uint8_t header[ABC_HEADER_SIZE] = {0};
    size_t size = source->size < sizeof header ? (size_t)source->size : sizeof header;
    abc_status status = abc_source_read(core, source, 0, header, size);
    if (status < 0)
        return status;
    if (size >= sizeof hdf5 && memcmp(header, hdf5, sizeof hdf5) == 0)
        return abc_fail(
            core, ABC_FORMAT,
            "this .abc is of the old HDF5 kind, which is not read here; convert it with "
            "abcconvert -toOgawa or export it again as Ogawa");
    if (size < sizeof header || memcmp(header, "Ogawa", 5) != 0)
        return abc_fail(
            core, ABC_FORMAT,
            "not an Alembic file (its first bytes are not 'Ogawa'); choose another file");
    if (header[6] != 0 || header[7] != 1)
        return abc_fail(core, ABC_FORMAT, "Ogawa version %d is not known (only 1); export it again",
                        header[6] << 8 | header[7]);
    if (header[ABC_FROZEN_AT] != ABC_FROZEN)
        return abc_fail(core, ABC_FORMAT,
                        "the file was never finished: its export was interrupted or is still "
                        "running; export it again");
    uint64_t word = 0;
    memcpy(&word, header + ABC_ROOT_AT, sizeof word);
    status = abc_source_group(core, source, word, root);
    if (status < 0)
        abc_prefix(core, "root: ");
    return status;
}

/* ---------------------------------------------------------------- sink */

static abc_status abc_sink_fail(abc_core *core, const abc_sink *sink, const char *what) {
    return abc_fail(core, ABC_IO, "cannot %s at offset %llu: %s; check free space and permissions",
                    what, (unsigned long long)sink->position,
                    errno ? strerror(errno) : "unknown cause");
}

static abc_status abc_sink_write(abc_core *core, abc_sink *sink, const void *data, size_t size) {
    errno = 0;
    if (size && fwrite(data, 1, size, sink->file) != size)
        return abc_sink_fail(core, sink, "write");
    sink->position += size;
    return ABC_OK;
}

abc_status abc_sink_open(abc_core *core, abc_sink *sink, const char *path) {
    static const uint8_t header[ABC_HEADER_SIZE] = {'O', 'g', 'a', 'w', 'a', 0, 0, 1};
    sink->file = fopen(path, "wb");
    if (!sink->file)
        return abc_fail(core, ABC_IO, "cannot create '%.400s': %s; check folder and permissions",
                        path, strerror(errno));
    return abc_sink_write(core, sink, header, sizeof header);
}

void abc_sink_close(abc_sink *sink) {
    if (sink->file)
        fclose(sink->file);
    sink->file = NULL;
}

abc_status abc_sink_data(abc_core *core, abc_sink *sink, const void *head, size_t head_size,
                         const void *body, size_t body_size, uint64_t *word) {
    uint64_t size = (uint64_t)head_size + body_size;
    *word = sink->position | ABC_DATA_BIT;
    if (size == 0) {
        *word = ABC_EMPTY_DATA;
        return ABC_OK;
    }
    abc_status status = abc_sink_write(core, sink, &size, sizeof size);
    if (status >= 0)
        status = abc_sink_write(core, sink, head, head_size);
    if (status >= 0)
        status = abc_sink_write(core, sink, body, body_size);
    return status;
}

abc_status abc_sink_group(abc_core *core, abc_sink *sink, const uint64_t *words, size_t count,
                          uint64_t *word) {
    uint64_t size = count;
    *word = sink->position;
    if (count == 0) {
        *word = ABC_EMPTY_GROUP;
        return ABC_OK;
    }
    abc_status status = abc_sink_write(core, sink, &size, sizeof size);
    if (status >= 0)
        status = abc_sink_write(core, sink, words, count * sizeof *words);
    return status;
}

/* Everything written so far reaches the disk before anything after. */
static int abc_sink_barrier(const abc_sink *sink) {
    if (fflush(sink->file) != 0)
        return -1;
    return sink->sync && fsync(fileno(sink->file)) != 0 ? -1 : 0;
}

abc_status abc_sink_freeze(abc_core *core, abc_sink *sink, uint64_t root) {
    static const uint8_t frozen = ABC_FROZEN;
    errno = 0;
    if (abc_sink_barrier(sink) != 0 || fseeko(sink->file, ABC_ROOT_AT, SEEK_SET) != 0 ||
        fwrite(&root, sizeof root, 1, sink->file) != 1 || abc_sink_barrier(sink) != 0 ||
        fseeko(sink->file, ABC_FROZEN_AT, SEEK_SET) != 0 ||
        fwrite(&frozen, 1, 1, sink->file) != 1 || abc_sink_barrier(sink) != 0)
        return abc_sink_fail(core, sink, "finish the file");
    int closed = fclose(sink->file);
    sink->file = NULL;
    return closed == 0 ? ABC_OK : abc_sink_fail(core, sink, "close the file");
}
