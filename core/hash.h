/* 64-bit hash of bytes, the same on every little-endian machine. Not cryptographic: it tells states apart and finds
 * damage. FNV-1a over 8-byte words with a final mix. */
#ifndef TOILE_HASH_H
#define TOILE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define TOILE_HASH_SEED UINT64_C(0xcbf29ce484222325)
uint64_t toile_hash(uint64_t seed, const void *bytes, size_t size);

#endif
