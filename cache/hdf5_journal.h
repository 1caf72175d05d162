/* Changes to a file that take effect together: whatever write a process is killed in, they are all found
 * again or none.
 *
 * They are gathered in memory, put behind the end of the file in one piece with a checksum, then made in
 * their places, then cut off again. A whole journal at the end of a file says that its changes may be half
 * made: whoever writes the file next makes them all (toile_journal_replay), whoever reads sees them on top of
 * what is there (toile_journal_overlay). Without one none of them was begun, or all are done. FORMAT.md gives
 * the bytes.
 *
 * Not thread-safe. Functions that give an int give an errno, or 0. */
#ifndef TOILE_HDF5_JOURNAL_H
#define TOILE_HDF5_JOURNAL_H

#include "memory.h"

#include <stdbool.h>
#include <stdint.h>

enum { TOILE_JOURNAL_END = 40 }; /* bytes behind the records */

typedef struct toile_journal {
    unsigned char *bytes; /* records, as in the file; behind them room for the end */
    size_t size, room;    /* of the records; of the block */
    int64_t start;        /* of one that was found: where in the file its records begin */
} toile_journal;

/* Notes a change. False when memory is out. */
bool toile_journal_add(toile_memory *memory, toile_journal *journal, uint64_t address, const void *bytes,
                       size_t size);
/* Whether a change that is noted meets these bytes of the file. */
bool toile_journal_meets(const toile_journal *journal, uint64_t address, size_t size);
/* Makes the changes to `bytes`, which were read at `address`. */
void toile_journal_overlay(const toile_journal *journal, uint64_t address, void *bytes, size_t size);
/* Makes all changes to the file, which then ends at `end`, and forgets them. After a failure the file is as
 * before, or the journal stays in it. */
int toile_journal_commit(toile_journal *journal, int fd, int64_t end);

/* The one at the end of the file, or an empty one if there is none that is whole. ENOMEM, or what a read
 * failed with. */
int toile_journal_find(toile_memory *memory, toile_journal *journal, int fd);
/* Whether the one that was found is there still. */
bool toile_journal_stands(const toile_journal *journal, int fd);
/* Makes the changes of one that was found, and cuts it off. */
int toile_journal_replay(toile_journal *journal, int fd);

void toile_journal_free(toile_memory *memory, toile_journal *journal);

#endif
