/* HDF5's way to the file, for caches and jobs. Four reasons to have one of our own:
 *
 * HDF5 orders its writes so that the file is whole between any two of them, but not within one: a process
 * that is killed leaves half an object header (the kernel ends a write at a page), and with it a dataset that
 * nobody can open. So in files that grow what is written over older bytes waits for a commit, and goes to the
 * file by a journal (hdf5_journal.h). What is written behind their end, frames above all, goes there at once.
 *
 * When a write fails (disk full) the driver remembers it, throws that write and all later ones away, and
 * tells HDF5 that all is well: the library can close and free everything, and the file stays as at the last
 * flush. Told of the failure, 1.10.8 keeps datasets and file open and crashes at exit.
 *
 * Two handles of one process do not share a metadata cache, so a reader beside a writer behaves as in two
 * processes.
 *
 * HDF5's file locks, which fail on many network folders, are left out. */
#include "hdf5_driver.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

#define HEADER_START 34      /* bytes of an object header before its messages, at most */
#define HEADER_MAX (1 << 20) /* bytes of one piece of it; a message has at most 64 KB */
#define HEADER_PIECES 64     /* that it may have: each can lead to others, and back */
#define CONTINUATION 0x10    /* the message that leads from one piece to the next */
#ifndef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
#define HEADER_ATTEMPTS 10 /* to read an object header that is being written, 1 ms apart */
#else                      /* nobody writes a fuzzer's files */
#define HEADER_ATTEMPTS 1
#endif

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t fapl, haddr_t maximum) {
    (void)name; /* the file is open already; H5Pset_driver carried the device here */
    (void)maximum;
    toile_hdf5_device *const *info = H5Pget_driver_info(fapl);
    if (!info || (*info)->in_use)
        return NULL;
    toile_hdf5_device *device = *info;
    if ((flags & H5F_ACC_TRUNC) && ftruncate(device->fd, 0)) {
        device->write_error = errno;
        return NULL;
    }
    memset(&device->base, 0, sizeof device->base);
    device->eoa = 0;
    device->in_use = true;
    return &device->base;
}

static herr_t driver_close(H5FD_t *file) {
    toile_hdf5_device *device = (toile_hdf5_device *)file;
    if (device->journaled)
        toile_hdf5_commit(device);
    device->in_use = false;
    return 0;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags) {
    /* HDF5 asks this without a file too. Metadata is not accumulated where others read along: SWMR needs
     * each piece written when the library says so. */
    const toile_hdf5_device *device = (const toile_hdf5_device *)file;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
    *flags |= !device || device->piecewise ? H5FD_FEAT_SUPPORTS_SWMR_IO : H5FD_FEAT_ACCUMULATE_METADATA;
    return 0;
}

static haddr_t driver_get_eoa(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    return ((const toile_hdf5_device *)file)->eoa;
}

static herr_t driver_set_eoa(H5FD_t *file, H5FD_mem_t type, haddr_t address) {
    (void)type;
    ((toile_hdf5_device *)file)->eoa = address;
    return 0;
}

static haddr_t driver_get_eof(const H5FD_t *file, H5FD_mem_t type) {
    (void)type;
    struct stat info;
    return fstat(((const toile_hdf5_device *)file)->fd, &info) ? HADDR_UNDEF : (haddr_t)info.st_size;
}

/* Past the end of the file are zeros: what is allocated but not written yet. */
bool toile_hdf5_read(toile_hdf5_device *device, haddr_t address, size_t size, void *bytes) {
    if (address > INT64_MAX || size > INT64_MAX - address)
        return false;
    for (size_t have = 0; have < size;) {
        ssize_t done = pread(device->fd, (char *)bytes + have, size - have, (off_t)(address + have));
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            device->read_error = errno;
            return false;
        }
        if (done == 0) {
            memset((char *)bytes + have, 0, size - have);
            break;
        }
        have += (size_t)done;
    }
    /* A reader looks after it has read: as long as the journal stands, its changes and no others were being
     * made. When it is gone they are all made. */
    if (device->journal.size && !device->journaled && !toile_journal_stands(&device->journal, device->fd))
        device->journal.size = 0;
    toile_journal_overlay(&device->journal, address, bytes, size);
    return true;
}

/* The checksum of HDF5's metadata: Bob Jenkins's lookup3, hashlittle() from 0. */
static uint32_t lookup3(const unsigned char *bytes, size_t size) {
#define ROTATE(x, k) ((x) << (k) | (x) >> (32 - (k)))
    uint32_t a, b, c;
    a = b = c = 0xdeadbeef + (uint32_t)size;
    for (bool last = size == 0; !last;) {
        last = size <= 12;
        uint32_t words[3] = {0};
        for (size_t i = 0; i < (last ? size : 12); i++)
            words[i / 4] |= (uint32_t)bytes[i] << (8 * (i % 4));
        a += words[0];
        b += words[1];
        c += words[2];
        if (!last) {
            a -= c, a ^= ROTATE(c, 4), c += b;
            b -= a, b ^= ROTATE(a, 6), a += c;
            c -= b, c ^= ROTATE(b, 8), b += a;
            a -= c, a ^= ROTATE(c, 16), c += b;
            b -= a, b ^= ROTATE(a, 19), a += c;
            c -= b, c ^= ROTATE(b, 4), b += a;
            bytes += 12;
            size -= 12;
        } else {
            c ^= b, c -= ROTATE(b, 14);
            a ^= c, a -= ROTATE(c, 11);
            b ^= a, b -= ROTATE(a, 25);
            c ^= b, c -= ROTATE(b, 16);
            a ^= c, a -= ROTATE(c, 4);
            b ^= a, b -= ROTATE(a, 14);
            c ^= b, c -= ROTATE(b, 24);
        }
    }
    return c;
#undef ROTATE
}

void toile_hdf5_wait(long milliseconds) {
    nanosleep(&(struct timespec){.tv_nsec = milliseconds * 1000000}, NULL);
}

static uint64_t little_endian(const unsigned char *at, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++)
        value |= (uint64_t)at[i] << (8 * i);
    return value;
}

/* Whether `size` bytes of an object header (version 2), whose messages begin at `messages`, end with their
 * checksum, and the same of its continuations. `between` is the size of what precedes each message. */
static bool block_is_whole(toile_hdf5_device *device, haddr_t address, uint64_t size, size_t messages,
                           size_t between, int *pieces_left) {
    if (size < messages + 4 || size > HEADER_MAX || --*pieces_left < 0)
        return false;
    unsigned char *bytes = toile_alloc(device->memory, size, 1);
    if (!bytes) {
        device->no_memory = true;
        return false;
    }
    size_t end = size - 4;
    bool whole =
        toile_hdf5_read(device, address, size, bytes) && lookup3(bytes, end) == little_endian(bytes + end, 4);
    for (size_t at = messages; whole && at + between <= end;) {
        const unsigned char *content = bytes + at + between;
        size_t length = little_endian(bytes + at + 1, 2);
        if (bytes[at] == CONTINUATION)
            whole = length >= 16 && at + between + 16 <= end &&
                    block_is_whole(device, little_endian(content, 8), little_endian(content + 8, 8), 4,
                                   between, pieces_left);
        at += between + length;
    }
    toile_free(device->memory, bytes);
    return whole;
}

/* The same for all of the object header that begins with `start`. */
static bool header_is_whole(toile_hdf5_device *device, haddr_t address, const unsigned char *start) {
    unsigned flags = start[5];
    size_t prefix = 6 + (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0), width = (size_t)1 << (flags & 3);
    uint64_t length = little_endian(start + prefix, width);
    if (length > HEADER_MAX)
        return false;
    device->header_start = address; /* HDF5 reads the rest of a long one by itself */
    device->header_end = address + prefix + width + length + 4;
    return block_is_whole(device, address, prefix + width + length + 4, prefix + width, flags & 4 ? 6 : 4,
                          &(int){HEADER_PIECES});
}

/* HDF5 1.10.8 checks its metadata itself, but of an object header that is damaged it loses a piece of memory,
 * and complains about that on the terminal when the process exits. So those do not get as far as that. Nor do
 * headers of the old kind, which have no checksum and are not in our files. */
static bool metadata_is_whole(toile_hdf5_device *device, haddr_t address, const unsigned char *bytes,
                              size_t size) {
    static const char others[][5] = {"EAHD", "EAIB", "FAHD", "FRHP",
                                     "FHIB", "FSHD", "SMTB"}; /* read as this type too */
    if (address > device->header_start && address < device->header_end)
        return true;
    if (size >= HEADER_START && memcmp(bytes, "OHDR", 4) == 0)
        return header_is_whole(device, address, bytes);
    if (size > 8 && memcmp(bytes, "OCHK", 4) == 0) /* the continuation of one */
        return lookup3(bytes, size - 4) == little_endian(bytes + size - 4, 4);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (size > 4 && memcmp(bytes, others[i], 4) == 0)
            return true;
    return false;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                          void *bytes) {
    (void)dxpl;
    toile_hdf5_device *device = (toile_hdf5_device *)file;
    /* A writer may be in the middle of it. */
    int attempts = device->base.access_flags & H5F_ACC_SWMR_READ ? HEADER_ATTEMPTS : 1;
    for (int i = 0; i < attempts; i++) {
        if (i > 0)
            toile_hdf5_wait(1);
        if (!toile_hdf5_read(device, address, size, bytes))
            return -1;
        if (type != H5FD_MEM_OHDR || !device->piecewise || metadata_is_whole(device, address, bytes, size))
            return 0;
    }
    H5Epush2(H5E_DEFAULT, __FILE__, __func__, __LINE__, H5E_ERR_CLS, H5E_VFL, H5E_READERROR,
             "an object header is damaged");
    return -1;
}

/* Never fails as far as HDF5 can tell. */
static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t address, size_t size,
                           const void *bytes) {
    (void)type;
    (void)dxpl;
    toile_hdf5_device *device = (toile_hdf5_device *)file;
    if (device->discard)
        return 0;
    if (address > INT64_MAX || size > INT64_MAX - address)
        return -1;
    /* What lies behind the settled end waits too where it follows a write that does, or their order would
     * change. */
    if (device->journaled &&
        ((int64_t)address < device->settled || toile_journal_meets(&device->journal, address, size))) {
        if (!toile_journal_add(device->memory, &device->journal, address, bytes, size)) {
            device->no_memory = true;
            device->discard = true;
        }
        return 0;
    }
    for (const char *at = bytes; size > 0;) {
        ssize_t done = pwrite(device->fd, at, size, (off_t)address);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0) {
            device->write_error = errno;
            device->discard = true;
            return 0;
        }
        at += done;
        size -= (size_t)done;
        address += (haddr_t)done;
    }
    return 0;
}

static herr_t driver_truncate(H5FD_t *file, hid_t dxpl, hbool_t closing) {
    (void)dxpl;
    (void)closing;
    toile_hdf5_device *device = (toile_hdf5_device *)file;
    haddr_t end = driver_get_eof(file, H5FD_MEM_DEFAULT);
    if (device->discard || end == device->eoa)
        return 0;
    if (device->journaled && end > device->eoa)
        return 0; /* the commit does it, when nothing leads there any more */
    if (ftruncate(device->fd, (off_t)device->eoa)) {
        device->write_error = errno;
        device->discard = true;
    }
    return 0;
}

/* Locks nothing; but only for a driver that has these does HDF5 mark a file that is being written. */
static herr_t driver_lock(H5FD_t *file, hbool_t write) {
    (void)file;
    (void)write;
    return 0;
}

static herr_t driver_unlock(H5FD_t *file) {
    (void)file;
    return 0;
}

/* No `cmp`: each open file is a file of its own to HDF5. */
static const H5FD_class_t driver_class = {
#if H5_VERSION_GE(1, 14, 0)
    .version = H5FD_CLASS_VERSION,
    .value = H5_VFD_RESERVED, /* the first value free for others */
#endif
    .name = "toile",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(toile_hdf5_device *),
    .open = driver_open,
    .close = driver_close,
    .query = driver_query,
    .get_eoa = driver_get_eoa,
    .set_eoa = driver_set_eoa,
    .get_eof = driver_get_eof,
    .read = driver_read,
    .write = driver_write,
    .truncate = driver_truncate,
    .lock = driver_lock,
    .unlock = driver_unlock,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

bool toile_hdf5_mend(toile_hdf5_device *device) {
    int failed = toile_journal_find(device->memory, &device->journal, device->fd);
    if (failed == ENOMEM)
        device->no_memory = true;
    else if (failed)
        device->read_error = failed;
    else if (device->journaled && (failed = toile_journal_replay(&device->journal, device->fd)))
        device->write_error = failed;
    if (!failed && device->journaled)
        toile_hdf5_settle(device);
    return !failed;
}

void toile_hdf5_settle(toile_hdf5_device *device) {
    struct stat info;
    device->journaled = true;
    device->settled = fstat(device->fd, &info) ? INT64_MAX : (int64_t)info.st_size; /* not known: all of it */
}

bool toile_hdf5_commit(toile_hdf5_device *device) {
    if (device->discard) {
        device->journal.size = 0;
        return false;
    }
    if (device->journal.size == 0)
        return true;
    int failed = toile_journal_commit(&device->journal, device->fd, (int64_t)device->eoa);
    if (failed) {
        device->write_error = failed;
        device->discard = true;
        return false;
    }
    device->settled = (int64_t)device->eoa;
    return true;
}

hid_t toile_hdf5_access(toile_hdf5_device *device) {
    hid_t list = H5Pcreate(H5P_FILE_ACCESS), driver = list > 0 ? H5FDregister(&driver_class) : 0;
    bool done = driver > 0 && H5Pset_driver(list, driver, &device) >= 0 &&
                H5Pset_libver_bounds(list, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0;
    if (driver > 0)
        H5FDunregister(driver); /* the list and the file keep it alive */
    if (done)
        return list;
    if (list > 0)
        H5Idec_ref(list);
    return H5I_INVALID_HID;
}
