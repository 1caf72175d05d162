/* Scene files: read, checked, built. What a scene asks for is limited by memory, as a host would. */
#include "fuzz.h"

#include "scene.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, 16 << 20};
    const toile_allocator allocator = fuzz_allocator(&limit);
    const toile_hooks hooks = {
        .allocate = allocator.allocate, .release = allocator.release, .user = allocator.user};
    toile_scene *scene = NULL;
    toile_error error;
    if (toile_scene_load_text(&hooks, (const char *)data, size, "/nowhere/scene.json", NULL, 0, &scene,
                              &error) >= 0) {
        toile_scene_prepare(scene, toile_scene_first_frame(scene), &error);
        for (int i = 0; i < toile_scene_collider_count(scene) && i < 8; i++) {
            int vertices, triangles;
            const double *positions;
            const int *corners;
            toile_scene_collider_mesh(scene, i, &vertices, &positions, &triangles, &corners, &error);
        }
    }
    toile_scene_free(scene);
    fuzz_check_memory(NULL, &limit);
    return 0;
}

void fuzz_seeds(fuzz_put *put, void *user) {
    static const char *const texts[] = {"{\"toile\":1,\"fps\":24,\"frames\":[1,5],\"resolution\":3,"
                                        "\"garments\":[{\"name\":\"a\",\"fabric\":\"cotton\",\"grid\":{"
                                        "\"size\":[1,1]}}]}",
                                        "{\"toile\":1,\"settings\":{\"time_step\":0.005,\"gravity\":[0,0,-9."
                                        "81],\"threads\":1},\"fabrics\":{\"x\":{\"base\":"
                                        "\"denim\"}},\"garments\":[{\"fabric\":\"x\",\"grid\":{\"size\":[1,0."
                                        "5],\"resolution\":[3,2],\"diagonals\":\"left\"},"
                                        "\"place\":{\"origin\":[0,0,1],\"rotate\":[10,20,30]}}],"
                                        "\"colliders\":[{\"shape\":\"sphere\",\"radius\":0.2,\"motion\":{"
                                        "\"keys\":[{\"frame\":1},{\"frame\":4,\"origin\":[0,1,0]}],"
                                        "\"interpolation\":\"smooth\"}},{\"shape\":\"box\",\"size\":[1,"
                                        "1,1]},{\"shape\":\"plane\",\"friction\":0.4},{\"shape\":\"capsule\","
                                        "\"radius\":0.1,\"length\":0.3}],\"pins\":[{"
                                        "\"garment\":\"garment_0\",\"select\":{\"corners\":[\"u0v1\"],"
                                        "\"within\":0.1},\"frames\":[1,3],\"axes\":\"xy\"}]}",
                                        "{\"toile\":1,\"garments\":[{\"obj\":\"a.obj\",\"panels\":{\"p\":{"
                                        "\"fabric\":\"silk\"}}}],\"colliders\":[{\"shape\":"
                                        "\"mesh\",\"obj_sequence\":\"b_##.obj\",\"hold\":true}]}",
                                        ("{\"toile\":1,\"garments\":[{\"abc\":\"a.abc\",\"object\":\"/"
                                        "x\"}],\"colliders\":[{\"shape\":\"mesh\",\"abc\":\"b.abc\"}]}")};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        put(user, texts[i], strlen(texts[i]));
}
