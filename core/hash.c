#include "hash.h"

#include <string.h>

#define PRIME UINT64_C(0x100000001b3)

static uint64_t mix(uint64_t h) { /* finaliser of splitmix64 (Steele, Lea, Flood 2014) */
    h ^= h >> 30;
    h *= UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 27;
    h *= UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

uint64_t toile_hash(uint64_t seed, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    uint64_t h = seed ^ mix((uint64_t)size);
    size_t words = size / 8;
    for (size_t i = 0; i < words; i++, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        h = (h ^ word) * PRIME;
        h ^= h >> 32; /* so that high bits reach low ones */
    }
    uint64_t tail = 0;
    for (size_t i = 0; i < size % 8; i++)
        tail |= (uint64_t)at[i] << (8 * i);
    return mix((h ^ tail) * PRIME);
}
