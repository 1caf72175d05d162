/* A file as HDF5's driver layer sees it, shared by caches and jobs. */
#ifndef TOILE_HDF5_DRIVER_H
#define TOILE_HDF5_DRIVER_H

#include "memory.h"

#include <hdf5.h>
#include <stdbool.h>

/* First member as the library wants it. The owner sets memory, fd and piecewise, and frees the device only when
 * it is not in use. */
typedef struct toile_hdf5_device {
    H5FD_t base;
    toile_memory *memory;
    int fd; /* open, of the owner */
    /* Metadata goes to and from the file piece by piece, as SWMR needs it; damaged object headers are then kept from HDF5. */
    bool piecewise;
    haddr_t eoa;                      /* end of what HDF5 has allocated */
    haddr_t header_start, header_end; /* of the object header that was read last */
    bool in_use;                      /* between driver_open and driver_close */
    bool discard;                     /* writes are thrown away: set at the first that fails */
    int write_error, read_error;      /* errno of the first failure */
    bool no_memory;
} toile_hdf5_device;

/* A property list that leads to our driver and this device; negative on failure. */
hid_t toile_hdf5_access(toile_hdf5_device *device);

/* Gives a writer time to finish what is half written. */
void toile_hdf5_wait(long milliseconds);

#endif
