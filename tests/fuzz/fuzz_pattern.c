/* Sewing patterns: read as GarmentCode, cut, sewn; and scenes with panels. */
#include "fuzz.h"

#include "pattern_garmentcode.h"
#include "scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void ignore(void *user, const char *line) {
    size_t *length = user;
    *length += strlen(line);
}

/* A mesh that was accepted is one: corners are there, every triangle has an area. */
static void check_mesh(const toile_pattern_mesh *m) {
    for (int t = 0; t < m->triangle_count; t++) {
        const int *v = m->triangles + 3 * (size_t)t;
        const double *uv = m->corner_uv + 6 * (size_t)t;
        double area = (uv[2] - uv[0]) * (uv[5] - uv[1]) - (uv[3] - uv[1]) * (uv[4] - uv[0]);
        for (int k = 0; k < 3; k++)
            if (v[k] < 0 || v[k] >= m->vertex_count)
                abort();
        if (!(fabs(area) > 0))
            abort();
    }
    for (int i = 0; i < m->stitch_count; i++)
        if (m->stitches[i].a < 0 || m->stitches[i].a >= m->vertex_count || m->stitches[i].b < 0 ||
            m->stitches[i].b >= m->vertex_count)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, 2 << 20}; /* some 4000 vertices: larger meshes only take longer */
    const toile_allocator allocator = fuzz_allocator(&limit);
    toile_memory memory;
    toile_error error;
    size_t length = 0;
    toile_memory_init(&memory, &allocator);
    if (size > 9 && memcmp(data, "{\"toile\":", 9) == 0) {
        const toile_hooks hooks = {.allocate = allocator.allocate, .release = allocator.release, .user = allocator.user};
        toile_scene *scene = NULL;
        toile_scene_load_text(&hooks, (const char *)data, size, "/nowhere/scene.json", NULL, 0, &scene, &error);
        toile_scene_free(scene);
    } else {
        toile_garmentcode read;
        toile_pattern_mesh mesh;
        toile_pattern_where where;
        if (toile_garmentcode_read(&memory, "pattern.json", (const char *)data, size, 0.05, ignore, &length, &read, &error) ==
            TOILE_OK) {
            if (toile_pattern_make(&memory, &read.pattern, &mesh, &where, &error) == TOILE_OK) {
                check_mesh(&mesh);
                toile_pattern_mesh_free(&memory, &mesh);
            }
            toile_garmentcode_free(&memory, &read);
        }
    }
    fuzz_check_memory(&memory, &limit);
    return 0;
}

/* Panels of `corners` corners with all kinds of edges, sewn in a row. */
static void put_pattern(fuzz_put *put, void *user, int panels, int corners, double size) {
    char text[20000];
    int used = snprintf(text, sizeof text, "{\"pattern\":{\"panels\":{");
    for (int p = 0; p < panels; p++) {
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "%s\"p%d\":{\"translation\":[%d,0,20],\"rotation\":[0,%d,0],\"vertices\":[", p ? "," : "", p, 10 * p, 30 * p);
        for (int i = 0; i < corners; i++)
            used += snprintf(text + used, sizeof text - (size_t)used, "%s[%.4g,%.4g]", i ? "," : "",
                             size * cos(6.28318 * i / corners), size * sin(6.28318 * i / corners));
        used += snprintf(text + used, sizeof text - (size_t)used, "],\"edges\":[");
        for (int i = 0; i < corners; i++) {
            static const char *const KINDS[] = {"", ",\"curvature\":{\"type\":\"quadratic\",\"params\":[[0.5,0.1]]}",
                                                ",\"curvature\":{\"type\":\"cubic\",\"params\":[[0.3,-0.1],[0.7,0.1]]}",
                                                ",\"curvature\":{\"type\":\"circle\",\"params\":[40,0,1]}",
                                                ",\"curvature\":[0.4,0.05],\"label\":\"lower_interface\""};
            used += snprintf(text + used, sizeof text - (size_t)used, "%s{\"endpoints\":[%d,%d]%s}", i ? "," : "", i,
                             (i + 1) % corners, KINDS[(p + i) % 5]);
        }
        used += snprintf(text + used, sizeof text - (size_t)used, "]}");
    }
    used += snprintf(text + used, sizeof text - (size_t)used, "},\"stitches\":[");
    for (int p = 0; p + 1 < panels; p++)
        used += snprintf(text + used, sizeof text - (size_t)used,
                         "%s[{\"panel\":\"p%d\",\"edge\":0},{\"panel\":\"p%d\",\"edge\":%d}%s]", p ? "," : "", p, p + 1,
                         corners - 1, p % 2 ? ",\"right_wrong\"" : "");
    used += snprintf(text + used, sizeof text - (size_t)used,
                     "]},\"properties\":{\"curvature_coords\":\"relative\",\"units_in_meter\":100}}");
    put(user, text, (size_t)used);
}

void fuzz_seeds(fuzz_put *put, void *user) {
    put_pattern(put, user, 1, 4, 20);
    put_pattern(put, user, 3, 5, 25);
    put_pattern(put, user, 6, 8, 30);
    static const char *const SCENES[] = {
        "{\"toile\":1,\"garments\":[{\"name\":\"g\",\"edge_length\":0.05,\"panels\":[{\"name\":\"a\",\"outline\":[{\"from\":[0,0]"
        "},{\"from\":[0.3,0],\"control\":[[0.35,0.1]]},{\"from\":[0.3,0.3],\"arc\":{\"radius\":0.3}},{\"from\":[0,0.3],\"name\":"
        "\"top\"}],\"holes\":[[{\"from\":[0.1,0.1]},{\"from\":[0.2,0.1]},{\"from\":[0.15,0.2]}]],\"grain\":45,\"place\":{"
        "\"origin\":[0,0,1],\"bend\":{\"radius\":0.2,\"axis\":90}}},{\"name\":\"b\",\"outline\":[{\"from\":[0,0]},{\"from\":[0.4,"
        "0],\"edge_length\":0.02},{\"from\":[0.4,0.2]}],\"finer\":[{\"center\":[0.3,0.05],\"radius\":0.02,\"edge_length\":0.02}]"
        "}],\"seams\":[{\"a\":[{\"panel\":\"a\",\"edge\":0}],\"b\":[{\"panel\":\"b\",\"edge\":0,\"reverse\":true}],\"frames\":[1,"
        "9],\"strength\":50,\"fold_angle\":30,\"release\":20}]}],\"pins\":[{\"garment\":\"g\",\"select\":{\"panel_edges\":[{"
        "\"panel\":\"a\",\"edge\":\"top\"}]}}]}",
        "{\"toile\":1,\"garments\":[{\"edge_length\":0.1,\"panels\":[{\"name\":\"a\",\"outline\":[{\"from\":[0,0]},{\"from\":[0.3,"
        "0]},{\"from\":[0.3,0.3]},{\"from\":[0.2,0.3]},{\"from\":[0.15,0.1]},{\"from\":[0.1,0.3]},{\"from\":[0,0.3]}]}],"
        "\"seams\":[{\"name\":\"dart\",\"a\":[{\"panel\":\"a\",\"edge\":3}],\"b\":[{\"panel\":\"a\",\"edge\":4,\"reverse\":true}]"
        "}]}]}"};
    for (size_t i = 0; i < sizeof SCENES / sizeof *SCENES; i++)
        put(user, SCENES[i], strlen(SCENES[i]));
}
