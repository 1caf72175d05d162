/* Wavefront OBJ: read, checked as a surface, flattened, subdivided. */
#include "fuzz.h"

#include "obj.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, FUZZ_MEMORY};
    const toile_allocator allocator = fuzz_allocator(&limit);
    toile_memory memory;
    toile_obj obj = {0};
    toile_error error;
    toile_memory_init(&memory, &allocator);
    if (toile_obj_read(&memory, fuzz_file(data, size), &obj, &error) == TOILE_OK) {
        double *uv = toile_alloc(&memory, (size_t)obj.corner_count, 2 * sizeof *uv);
        toile_obj_check_positions(&obj, 1, &error);
        if (uv && toile_obj_check(&memory, &obj, 1, true, &error) == TOILE_OK) {
            toile_obj_uv_from_file(&obj, 1, uv, &error);
            if (toile_obj_uv_flat(&memory, &obj, 1, uv, &error) == TOILE_OK)
                toile_obj_subdivide(&memory, &obj, &uv, 1, &error);
        }
        toile_free(&memory, uv);
        toile_obj_free(&memory, &obj);
    }
    fuzz_check_memory(&memory, &limit);
    return 0;
}

void fuzz_seeds(fuzz_put *put, void *user) {
    static const char *const texts[] = {
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nvt 1 1\ng front\nf 1/1 2/2 3/3\ng "
        "back\nf 2/2 4/4 3/3\n",
        "# quads\no a\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 2 1e-1\nv 1 2 .1\nusemtl m\ns off\nf -6 -5 -4 "
        "-3\nf 4 3 6 5\n",
        "v 0 0 0 \\\n1\nv 1 0 0\r\nv 0 1 0\r\nvn 0 0 1\nf 1//1 2//1 3//1\nmtllib x.mtl\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put(user, texts[i], strlen(texts[i]));
}
