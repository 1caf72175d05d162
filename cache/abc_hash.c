/* The two hashes of the format: MurmurHash3_x64_128 (Austin Appleby) keys the samples, SpookyHash
 * V2 (Bob Jenkins) sums up properties and objects. Both algorithms are in the public domain; seeds
 * are zero throughout. No reader checks them, but readers that cache use sample keys as identity.
 */
#include "abc_internal.h"

#include <string.h>

static uint64_t abc_rotate(uint64_t x, int bits) {
    return x << bits | x >> (64 - bits);
}

/* The first `size` (at most 8) bytes as a number, zero extended. */
static uint64_t abc_load(const uint8_t *bytes, size_t size) {
    uint64_t word = 0;
    memcpy(&word, bytes, size);
    return word;
}

/* ---------------------------------------------------------------- MurmurHash3_x64_128 */

#define ABC_MURMUR_1 0x87c37b91114253d5u
#define ABC_MURMUR_2 0x4cf5ad432745937fu

static uint64_t abc_murmur_first(uint64_t k) {
    return abc_rotate(k * ABC_MURMUR_1, 31) * ABC_MURMUR_2;
}

static uint64_t abc_murmur_second(uint64_t k) {
    return abc_rotate(k * ABC_MURMUR_2, 33) * ABC_MURMUR_1;
}

static uint64_t abc_murmur_final(uint64_t k) {
    k = (k ^ k >> 33) * 0xff51afd7ed558ccdu;
    k = (k ^ k >> 33) * 0xc4ceb9fe1a85ec53u;
    return k ^ k >> 33;
}

abc_key abc_murmur(const void *data, size_t size) {
    const uint8_t *bytes = data;
    const size_t blocks = size / 16, tail = size % 16;
    uint64_t a = 0, b = 0;
    for (size_t i = 0; i < blocks; i++, bytes += 16) {
        a ^= abc_murmur_first(abc_load(bytes, 8));
        a = (abc_rotate(a, 27) + b) * 5 + 0x52dce729;
        b ^= abc_murmur_second(abc_load(bytes + 8, 8));
        b = (abc_rotate(b, 31) + a) * 5 + 0x38495ab5;
    }
    if (tail > 8)
        b ^= abc_murmur_second(abc_load(bytes + 8, tail - 8));
    if (tail > 0)
        a ^= abc_murmur_first(abc_load(bytes, tail < 8 ? tail : 8));
    a ^= size;
    b ^= size;
    a += b;
    b += a;
    a = abc_murmur_final(a);
    b = abc_murmur_final(b);
    a += b;
    b += a;
    return (abc_key){{a, b}};
}

/* ---------------------------------------------------------------- SpookyHash V2 */

#define ABC_SPOOKY_FILL 0xdeadbeefdeadbeefu
#define ABC_SPOOKY_LANES 12
#define ABC_SPOOKY_BLOCK (ABC_SPOOKY_LANES * 8)
#define ABC_SPOOKY_SHORT 192 /* shorter messages take the four-lane form */

static void abc_spooky_short_mix(uint64_t h[4]) {
    static const int turns[12] = {50, 52, 30, 41, 54, 48, 38, 37, 62, 34, 5, 36};
    for (int i = 0; i < 12; i++) {
        uint64_t *x = &h[(i + 2) % 4];
        *x = abc_rotate(*x, turns[i]) + h[(i + 3) % 4];
        h[i % 4] ^= *x;
    }
}

static void abc_spooky_short_end(uint64_t h[4]) {
    static const int turns[11] = {15, 52, 26, 51, 28, 9, 47, 54, 32, 25, 63};
    for (int i = 0; i < 11; i++) {
        uint64_t *x = &h[(i + 3) % 4], *y = &h[(i + 2) % 4];
        *x ^= *y;
        *y = abc_rotate(*y, turns[i]);
        *x += *y;
    }
}

static abc_key abc_spooky_short(const uint8_t *bytes, size_t size) {
    uint64_t h[4] = {0, 0, ABC_SPOOKY_FILL, ABC_SPOOKY_FILL};
    size_t left = size;
    for (; left >= 32; left -= 32, bytes += 32) {
        h[2] += abc_load(bytes, 8);
        h[3] += abc_load(bytes + 8, 8);
        abc_spooky_short_mix(h);
        h[0] += abc_load(bytes + 16, 8);
        h[1] += abc_load(bytes + 24, 8);
    }
    if (left >= 16) {
        h[2] += abc_load(bytes, 8);
        h[3] += abc_load(bytes + 8, 8);
        abc_spooky_short_mix(h);
        left -= 16;
        bytes += 16;
    }
    h[3] += (uint64_t)size << 56;
    if (left == 0) {
        h[2] += ABC_SPOOKY_FILL;
        h[3] += ABC_SPOOKY_FILL;
    } else {
        h[2] += abc_load(bytes, left < 8 ? left : 8);
        if (left > 8)
            h[3] += abc_load(bytes + 8, left - 8);
    }
    abc_spooky_short_end(h);
    return (abc_key){{h[0], h[1]}};
}

static void abc_spooky_mix(uint64_t h[ABC_SPOOKY_LANES], const uint8_t *bytes) {
    static const int turns[ABC_SPOOKY_LANES] = {11, 32, 43, 31, 17, 28, 39, 57, 55, 54, 22, 46};
    for (int i = 0; i < ABC_SPOOKY_LANES; i++) {
        uint64_t *last = &h[(i + 11) % ABC_SPOOKY_LANES];
        h[i] += abc_load(bytes + 8 * i, 8);
        h[(i + 2) % ABC_SPOOKY_LANES] ^= h[(i + 10) % ABC_SPOOKY_LANES];
        *last ^= h[i];
        h[i] = abc_rotate(h[i], turns[i]);
        *last += h[(i + 1) % ABC_SPOOKY_LANES];
    }
}

static void abc_spooky_end(uint64_t h[ABC_SPOOKY_LANES]) {
    static const int turns[ABC_SPOOKY_LANES] = {44, 15, 34, 21, 38, 33, 10, 13, 38, 53, 42, 54};
    for (int i = 0; i < ABC_SPOOKY_LANES; i++) {
        uint64_t *last = &h[(i + 11) % ABC_SPOOKY_LANES], *next = &h[(i + 1) % ABC_SPOOKY_LANES];
        *last += *next;
        h[(i + 2) % ABC_SPOOKY_LANES] ^= *last;
        *next = abc_rotate(*next, turns[i]);
    }
}

abc_key abc_spooky(const void *data, size_t size) {
    const uint8_t *bytes = data;
    if (size < ABC_SPOOKY_SHORT)
        return abc_spooky_short(bytes, size);
    uint64_t h[ABC_SPOOKY_LANES];
    for (int i = 0; i < ABC_SPOOKY_LANES; i++)
        h[i] = i % 3 == 2 ? ABC_SPOOKY_FILL : 0;
    size_t left = size;
    for (; left >= ABC_SPOOKY_BLOCK; left -= ABC_SPOOKY_BLOCK, bytes += ABC_SPOOKY_BLOCK)
        abc_spooky_mix(h, bytes);
    /* The rest, zero padded, with its length in the last byte, is only added. */
    uint8_t rest[ABC_SPOOKY_BLOCK] = {0};
    memcpy(rest, bytes, left);
    rest[ABC_SPOOKY_BLOCK - 1] = (uint8_t)left;
    for (int i = 0; i < ABC_SPOOKY_LANES; i++)
        h[i] += abc_load(rest + 8 * i, 8);
    for (int round = 0; round < 3; round++)
        abc_spooky_end(h);
    return (abc_key){{h[0], h[1]}};
}

abc_key abc_spooky_fold(abc_key sum, abc_key digest) {
    uint64_t h[4] = {sum.word[0], sum.word[1], digest.word[0], digest.word[1]};
    abc_spooky_short_end(h);
    return (abc_key){{h[0], h[1]}};
}
