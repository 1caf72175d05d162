#include "kernels.h"

#include <string.h>

#define DECLARE(isa) extern const toile_kernels toile_kernels_##isa;
DECLARE(sse2)
DECLARE(avx2)
DECLARE(avx512)

const toile_kernels *toile_kernels_find(const char *name) {
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512dq");
    if (name ? avx512 && strcmp(name, "avx512") == 0 : avx512)
        return &toile_kernels_avx512;
    if (name ? avx2 && strcmp(name, "avx2") == 0 : avx2)
        return &toile_kernels_avx2;
    return !name || strcmp(name, "sse2") == 0 ? &toile_kernels_sse2 : NULL;
}
