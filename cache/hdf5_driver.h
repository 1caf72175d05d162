/* A file as HDF5's driver layer sees it, shared by caches and jobs. */
#ifndef TOILE_HDF5_DRIVER_H
#define TOILE_HDF5_DRIVER_H

#include "hdf5_journal.h"
#include "memory.h"

#include <hdf5.h>
#include <stdbool.h>

/* First member as the library wants it. The owner sets memory, fd, piecewise and journaled, and frees the device
 * only when it is not in use. */
typedef struct toile_hdf5_device {
    H5FD_t base;
    toile_memory *memory;
    int fd; /* open, of the owner */
    /* Metadata goes to and from the file piece by piece, as SWMR needs it; damaged object headers are then kept from HDF5. */
    bool piecewise;
    /* A writer of a file that others have: nothing before `settled` is changed but by whole journals. Behind it
     * lies what no reader has a way to yet. */
    bool journaled;
    int64_t settled;
    toile_journal journal;            /* of a writer: changes to be made; of a reader: those that a writer left */
    haddr_t eoa;                      /* end of what HDF5 has allocated */
    haddr_t header_start, header_end; /* of the object header that was read last */
    bool in_use;                      /* between driver_open and driver_close */
    bool discard;                     /* writes are thrown away: set at the first that fails */
    int write_error, read_error;      /* errno of the first failure */
    bool no_memory;
} toile_hdf5_device;

/* A property list that leads to our driver and this device; negative on failure. */
hid_t toile_hdf5_access(toile_hdf5_device *device);

/* To be called before the file is opened: makes the changes that a writer left unfinished when it died, or has
 * them shown to a reader. False with write_error, read_error or no_memory set. */
bool toile_hdf5_mend(toile_hdf5_device *device);
/* From here on the device is journaled; the file is whole as it is now. */
void toile_hdf5_settle(toile_hdf5_device *device);
/* What HDF5 has written so far takes effect, all of it or none. False if it did not; then nothing more is
 * written. */
bool toile_hdf5_commit(toile_hdf5_device *device);
/* Bytes of the file as HDF5 would see them. False with read_error set. */
bool toile_hdf5_read(toile_hdf5_device *device, haddr_t address, size_t size, void *bytes);

/* Gives a writer time to finish what is half written. */
void toile_hdf5_wait(long milliseconds);

#endif
