/* The journal at the end of a file that is being changed (hdf5_journal.h; FORMAT.md, "The journal").
 *
 * Why it is right, for a process that dies at any instant. The kernel has then taken all writes before that
 * instant, the first bytes of one, and none after it. Of commit's writes that is
 *   in the journal:  its last bytes are missing, so there is no whole one at the end of the file, and nothing
 *                    before it has changed;
 *   in the changes:  the journal is whole, and making all changes over those that are made gives the same;
 *   in the cut:      a truncation is done or not; if not, as before.
 * In replay the same holds from the second on. What a journal says stays true until it is cut off, since
 * nothing else is written between.
 *
 * It lies behind the end and not in a file of its own so that it cannot be lost, left behind or met by
 * another file of the same name; and HDF5 does not look there. */
#include "hdf5_journal.h"

#include "hash.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAGIC "TOILEJN1"
enum { RECORD_HEAD = 16, END_SIZE = TOILE_JOURNAL_END, END_HASHED = 32 };
#define ROOM_LEAST 65536 /* two garments of a usual bake need 40 KB */

static uint64_t get(const unsigned char *at) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

static void put(unsigned char *at, uint64_t value) {
    for (int i = 0; i < 8; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

static int write_at(int fd, const void *bytes, size_t size, int64_t at) {
    for (const char *from = bytes; size > 0;) {
        ssize_t done = pwrite(fd, from, size, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        from += done;
        size -= (size_t)done;
        at += done;
    }
    return 0;
}

/* *whole is false where the file ends before. */
static int read_at(int fd, void *bytes, size_t size, int64_t at, bool *whole) {
    *whole = false;
    for (char *to = bytes; size > 0;) {
        ssize_t done = pread(fd, to, size, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno;
        if (done == 0)
            return 0;
        to += done;
        size -= (size_t)done;
        at += done;
    }
    *whole = true;
    return 0;
}

static bool is_hash(uint64_t stated, const void *bytes, size_t size) {
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return stated == toile_hash(TOILE_HASH_SEED, bytes, size);
#else /* a fuzzer does not get past it */
    (void)stated, (void)bytes, (void)size;
    return true;
#endif
}

/* ---- records: address, size, bytes ---- */

typedef struct change {
    uint64_t address, size;
    const unsigned char *bytes;
} change;

/* The record at *at, which then is behind it; false at the end. */
static bool next_change(const toile_journal *j, size_t *at, change *c) {
    if (*at >= j->size)
        return false;
    *c = (change){get(j->bytes + *at), get(j->bytes + *at + 8), j->bytes + *at + RECORD_HEAD};
    *at += RECORD_HEAD + c->size;
    return true;
}

bool toile_journal_add(toile_memory *memory, toile_journal *j, uint64_t address, const void *bytes,
                       size_t size) {
    size_t wanted = j->size + RECORD_HEAD + size + END_SIZE;
    if (wanted > j->room) {
        size_t room = 2 * wanted > ROOM_LEAST ? 2 * wanted : ROOM_LEAST;
        unsigned char *block = toile_grow(memory, j->bytes, j->size, room, 1);
        if (!block)
            return false;
        j->bytes = block;
        j->room = room;
    }
    unsigned char *record = j->bytes + j->size;
    put(record, address);
    put(record + 8, size);
    memcpy(record + RECORD_HEAD, bytes, size);
    j->size += RECORD_HEAD + size;
    return true;
}

bool toile_journal_meets(const toile_journal *j, uint64_t address, size_t size) {
    change c;
    for (size_t at = 0; next_change(j, &at, &c);)
        if (c.address < address + size && address < c.address + c.size)
            return true;
    return false;
}

void toile_journal_overlay(const toile_journal *j, uint64_t address, void *bytes, size_t size) {
    change c;
    for (size_t at = 0; next_change(j, &at, &c);) {
        uint64_t from = c.address > address ? c.address : address;
        uint64_t to = c.address + c.size < address + size ? c.address + c.size : address + size;
        if (from < to)
            memcpy((unsigned char *)bytes + (from - address), c.bytes + (from - c.address), to - from);
    }
}

/* In the order in which they were noted: readers beside a writer of HDF5 count on it. */
static int make_changes(const toile_journal *j, int fd) {
    change c;
    int failed = 0;
    for (size_t at = 0; !failed && next_change(j, &at, &c);)
        failed = write_at(fd, c.bytes, c.size, (int64_t)c.address);
    return failed;
}

/* ---- in the file ---- */

int toile_journal_commit(toile_journal *j, int fd, int64_t end) {
    struct stat info;
    if (j->size == 0)
        return 0;
    if (fstat(fd, &info))
        return errno;
    /* Behind all that is there, and all that the changes reach. */
    int64_t start = info.st_size > end ? info.st_size : end;
    change c;
    for (size_t at = 0; next_change(j, &at, &c);)
        if ((int64_t)(c.address + c.size) > start)
            start = (int64_t)(c.address + c.size);
    unsigned char *tail = j->bytes + j->size;
    memcpy(tail, MAGIC, 8);
    put(tail + 8, (uint64_t)start);
    put(tail + 16, j->size);
    put(tail + 24, toile_hash(TOILE_HASH_SEED, j->bytes, j->size));
    put(tail + END_HASHED, toile_hash(TOILE_HASH_SEED, tail, END_HASHED));
    int failed = write_at(fd, j->bytes, j->size + END_SIZE, start);
    bool standing = !failed;
    if (standing)
        failed = make_changes(j, fd);
    /* Cut off when it is of no more use, or could not be written, on a full disk for one. Not when changes
     * failed. */
    if ((!failed && ftruncate(fd, (off_t)end)) || (!standing && ftruncate(fd, info.st_size)))
        failed = failed ? failed : errno;
    if (!failed)
        j->size = 0;
    return failed;
}

/* Whether these are records that change nothing but what is before `start`. */
static bool are_records(const unsigned char *bytes, size_t size, uint64_t start) {
    size_t at = 0;
    while (size - at >= RECORD_HEAD) {
        uint64_t address = get(bytes + at), length = get(bytes + at + 8);
        at += RECORD_HEAD;
        if (length > size - at || address > start || length > start - address)
            return false;
        at += length;
    }
    return at == size;
}

int toile_journal_find(toile_memory *memory, toile_journal *j, int fd) {
    struct stat info;
    unsigned char tail[END_SIZE];
    bool whole;
    j->size = 0;
    if (fstat(fd, &info))
        return errno;
    if (info.st_size < END_SIZE)
        return 0;
    int failed = read_at(fd, tail, sizeof tail, info.st_size - END_SIZE, &whole);
    if (failed || !whole || memcmp(tail, MAGIC, 8) != 0 || !is_hash(get(tail + END_HASHED), tail, END_HASHED))
        return failed;
    /* Compared with the file before anything of that size is allocated. */
    uint64_t start = get(tail + 8), size = get(tail + 16), before = (uint64_t)info.st_size - END_SIZE;
    if (size == 0 || size > before || start != before - size)
        return 0;
    toile_free(memory, j->bytes);
    j->room = 0;
    j->bytes = toile_alloc(memory, size + END_SIZE, 1);
    if (!j->bytes)
        return ENOMEM;
    j->room = size + END_SIZE;
    failed = read_at(fd, j->bytes, size, (int64_t)start, &whole);
    if (failed || !whole || !is_hash(get(tail + 24), j->bytes, size) || !are_records(j->bytes, size, start))
        return failed;
    memcpy(j->bytes + size, tail, END_SIZE);
    j->size = size;
    j->start = (int64_t)start;
    return 0;
}

bool toile_journal_stands(const toile_journal *j, int fd) {
    struct stat info;
    unsigned char tail[END_SIZE];
    bool whole;
    int64_t at = j->start + (int64_t)j->size;
    return !fstat(fd, &info) && info.st_size == at + END_SIZE &&
           !read_at(fd, tail, sizeof tail, at, &whole) && whole &&
           memcmp(tail, j->bytes + j->size, END_SIZE) == 0;
}

int toile_journal_replay(toile_journal *j, int fd) {
    if (j->size == 0)
        return 0;
    int failed = make_changes(j, fd);
    if (!failed && ftruncate(fd, (off_t)j->start))
        failed = errno;
    if (!failed)
        j->size = 0;
    return failed;
}

void toile_journal_free(toile_memory *memory, toile_journal *j) {
    toile_free(memory, j->bytes);
    *j = (toile_journal){0};
}
