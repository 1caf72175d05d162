/* One table of kernels; compiled once per instruction set. */
#include "fast_kernels.h"

#define TEXT_(a) #a
#define TEXT(a) TEXT_(a)

extern const toile_kernels TOILE_KERNEL(toile_kernels);
const toile_kernels TOILE_KERNEL(toile_kernels) = {
    TEXT(TOILE_ISA),
    TOILE_KERNEL(toile_triangles),
    TOILE_KERNEL(toile_hinges),
    TOILE_KERNEL(toile_moments),
    TOILE_KERNEL(toile_springs),
    TOILE_KERNEL(toile_stretch),
    TOILE_KERNEL(toile_assemble),
    TOILE_KERNEL(toile_convert_springs),
    TOILE_KERNEL(toile_gather),
    TOILE_KERNEL(toile_multiply),
    TOILE_KERNEL(toile_multiply_spill),
    TOILE_KERNEL(toile_mpcg),
    TOILE_KERNEL(toile_part),
    TOILE_KERNEL(toile_multiply_row),
    TOILE_KERNEL(toile_fast_guess),
    TOILE_KERNEL(toile_fast_solve),
    TOILE_KERNEL(toile_fast_multiply_springs),
};
