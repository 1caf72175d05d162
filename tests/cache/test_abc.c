/* Tests of libabc: round trips on data made here, sharing, limits, refusals, damaged and hostile
 * files, failing memory and disks, and the shared corpus if it is there.
 *
 *   test_abc [NAME]         run all tests, or those whose name contains NAME
 *   test_abc --write FILE   write the sample archive that test_abc_oracle.py checks value by value
 *   test_abc --dump FILE    print an archive as JSON
 *   test_abc --rewrite A B  read A, write it again as B
 *   test_abc --time         answer time queries from standard input
 *
 * TOILE_SHARED names the shared folder (default ../shared).
 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "abc_internal.h"

#include <dirent.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int passed, failed, skipped;
static int bad; /* failed checks of the running test */
static char folder[200];

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            bad++;                                                                                 \
            printf("  %s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                       \
        }                                                                                          \
    } while (0)

/* Writer and reader calls that must succeed, with the message if they do not. */
#define WOK(writer, call)                                                                          \
    do {                                                                                           \
        abc_status status_ = (call);                                                               \
        if (status_ != ABC_OK) {                                                                   \
            bad++;                                                                                 \
            printf("  %s:%d: %s = %d: %s\n", __FILE__, __LINE__, #call, (int)status_,              \
                   abc_writer_message(writer));                                                    \
        }                                                                                          \
    } while (0)
#define ROK(reader, call)                                                                          \
    do {                                                                                           \
        abc_status status_ = (call);                                                               \
        if (status_ != ABC_OK) {                                                                   \
            bad++;                                                                                 \
            printf("  %s:%d: %s = %d: %s\n", __FILE__, __LINE__, #call, (int)status_,              \
                   abc_reader_message(reader));                                                    \
        }                                                                                          \
    } while (0)

static const char *path_of(const char *name) {
    static char paths[4][500];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static uint8_t *load(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    *size = 0;
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    uint8_t *bytes = malloc(length > 0 ? (size_t)length : 1);
    *size = fread(bytes, 1, (size_t)length, file);
    fclose(file);
    return bytes;
}

static uint32_t crc32_of(const void *data, size_t size) {
    const uint8_t *bytes = data;
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int k = 0; k < 8; k++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
    }
    return ~crc;
}

static uint64_t random_state;
static uint32_t random_next(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33);
}

/* ---------------------------------------------------------------- the sample archive */

enum { COLUMNS = 6, ROWS = 5, POINTS = COLUMNS * ROWS, FACES = (COLUMNS - 1) * (ROWS - 1) };
enum { CORNERS = 4 * FACES, FRAMES = 24 };

/* All numbers are exact in float, so the oracle can compute them too. */
static float grid_position(int point, int axis, int frame) {
    int i = point % COLUMNS, j = point / COLUMNS;
    return axis == 0 ? i * 0.25f : axis == 1 ? j * 0.5f : frame * 0.125f + i * j * 0.0625f;
}

typedef struct grid {
    float positions[3 * POINTS];
    float velocities[3 * POINTS];
    float uvs[2 * POINTS];
    float normals[3 * CORNERS];
    float stretch[POINTS];
    int32_t counts[FACES];
    int32_t indices[CORNERS];
    uint32_t uv_indices[CORNERS];
    int32_t panels[FACES];
} grid;

static void grid_fill(grid *g, int frame) {
    for (int p = 0; p < POINTS; p++) {
        for (int k = 0; k < 3; k++) {
            g->positions[3 * p + k] = grid_position(p, k, frame);
            g->velocities[3 * p + k] = k == 2 ? 3.0f : 0.5f * (float)frame;
        }
        g->uvs[2 * p] = (float)(p % COLUMNS) * 0.125f;
        g->uvs[2 * p + 1] = (float)(p / COLUMNS) * 0.25f;
        g->stretch[p] = 1.0f + (float)frame * 0.25f + (float)p;
    }
    for (int f = 0; f < FACES; f++) {
        int p = f / (COLUMNS - 1) * COLUMNS + f % (COLUMNS - 1);
        const int corner[4] = {p, p + 1, p + COLUMNS + 1, p + COLUMNS};
        g->counts[f] = 4;
        g->panels[f] = f % 3;
        for (int c = 0; c < 4; c++) {
            g->indices[4 * f + c] = corner[c];
            g->uv_indices[4 * f + c] = (uint32_t)corner[c];
            g->normals[3 * (4 * f + c)] = (float)c;
            g->normals[3 * (4 * f + c) + 1] = (float)f;
            g->normals[3 * (4 * f + c) + 2] = 1.0f;
        }
    }
}

static abc_mesh_data grid_data(const grid *g) {
    return (abc_mesh_data){
        .positions = g->positions,
        .point_count = POINTS,
        .face_counts = g->counts,
        .face_count = FACES,
        .face_indices = g->indices,
        .corner_count = CORNERS,
        .velocities = g->velocities,
        .uvs = {g->uvs, POINTS, g->uv_indices, CORNERS, ABC_SCOPE_CORNER},
        .normals = {g->normals, CORNERS, NULL, 0, ABC_SCOPE_CORNER},
    };
}

static const double identity[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};

static abc_status write_shirt(abc_writer *w, uint32_t sampling) {
    abc_wxform *xform = NULL;
    abc_wmesh *mesh = NULL;
    abc_wparam *panel = NULL, *rest = NULL, *stretch = NULL, *label = NULL, *tint = NULL;
    abc_wfaceset *set = NULL;
    const abc_wmesh_def def = {"ShirtShape", sampling, "UVMap"};
    const abc_wparam_def panel_def = {"panel", ABC_INT32, 1, ABC_SCOPE_FACE, NULL, false, 0, {0}};
    const abc_wparam_def rest_def = {"Pref", ABC_FLOAT,      3,  ABC_SCOPE_POINT, "vector",
                                     false,  ABC_TURN_POINT, {0}};
    const abc_wparam_def stretch_def = {"stretch", ABC_FLOAT, 1, ABC_SCOPE_POINT,
                                        NULL,      false,     0, {0}};
    const abc_wparam_def label_def = {"label", ABC_STRING, 1, ABC_SCOPE_MESH, NULL, false, 0, {0}};
    const abc_wparam_def tint_def = {"tint", ABC_FLOAT, 3, ABC_SCOPE_CORNER, "rgb", true, 0, {0}};
    const float tints[6] = {1.0f, 0.0f, 0.0f, 0.0f, 0.0f, 1.0f};
    const char *const text = "caf\xc3\xa9";
    uint32_t tint_indices[CORNERS];
    int32_t front[FACES / 2];
    static grid g;
    abc_status status = abc_wxform_create(abc_writer_top(w), "Shirt", sampling, &xform);
    if (status >= 0)
        status = abc_wmesh_create(abc_wxform_object(xform), &def, &mesh);
    if (status >= 0)
        status = abc_wmesh_add_param(mesh, &panel_def, &panel);
    if (status >= 0)
        status = abc_wmesh_add_param(mesh, &rest_def, &rest);
    if (status >= 0)
        status = abc_wmesh_add_param(mesh, &stretch_def, &stretch);
    if (status >= 0)
        status = abc_wmesh_add_param(mesh, &label_def, &label);
    if (status >= 0)
        status = abc_wmesh_add_param(mesh, &tint_def, &tint);
    for (int i = 0; i < CORNERS; i++)
        tint_indices[i] = i % 3 == 0;
    for (int frame = 0; status >= 0 && frame < FRAMES; frame++) {
        double m[16];
        memcpy(m, identity, sizeof m);
        m[12] = frame * 0.5;
        m[13] = frame * 0.25;
        m[14] = 2.0;
        grid_fill(&g, frame);
        abc_mesh_data data = grid_data(&g);
        /* Topology and uvs come once; later samples leave them out. */
        if (frame) {
            data.face_counts = data.face_indices = NULL;
            data.uvs.values = NULL;
        }
        status = abc_wxform_write(xform, m, true);
        if (status >= 0)
            status = abc_wmesh_write(mesh, &data);
        if (status >= 0)
            status = abc_wparam_write(stretch, g.stretch, POINTS, NULL, 0);
        if (status >= 0 && frame == 0)
            status = abc_wparam_write(panel, g.panels, FACES, NULL, 0);
        if (status >= 0 && frame == 0)
            status = abc_wparam_write(rest, g.positions, POINTS, NULL, 0);
        if (status >= 0 && frame == 0)
            status = abc_wparam_write(label, &text, 1, NULL, 0);
        if (status >= 0 && frame == 0)
            status = abc_wparam_write(tint, tints, 2, tint_indices, CORNERS);
    }
    for (int i = 0; i < FACES / 2; i++)
        front[i] = 2 * i;
    if (status >= 0)
        status = abc_wmesh_add_faceset(mesh, "front", true, 0, &set);
    if (status >= 0)
        status = abc_wfaceset_write(set, front, FACES / 2);
    return status;
}

/* Topology that changes, at times of its own. */
static abc_status write_morph(abc_writer *w) {
    const double times[3] = {0.0, 0.1, 0.35};
    const abc_time_sampling acyclic = {ABC_ACYCLIC, 0.0, times, 2, 0};
    const float points[12] = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0};
    const int32_t three = 3, four = 4, corners[4] = {0, 1, 2, 3};
    uint32_t sampling = 0;
    abc_wmesh *mesh = NULL;
    abc_status status = abc_writer_add_time_sampling(w, &acyclic, &sampling);
    if (status >= 0)
        status = abc_writer_add_time(w, sampling, times[2]);
    const abc_wmesh_def def = {"Morph", sampling, NULL};
    if (status >= 0)
        status = abc_wmesh_create(abc_writer_top(w), &def, &mesh);
    for (int i = 0; status >= 0 && i < 3; i++) {
        bool quad = i == 1;
        const abc_mesh_data data = {.positions = points,
                                    .point_count = quad ? 4 : 3,
                                    .face_counts = quad ? &four : &three,
                                    .face_count = 1,
                                    .face_indices = corners,
                                    .corner_count = quad ? 4 : 3,
                                    .velocities = i == 1 ? points : NULL};
        status = abc_wmesh_write(mesh, &data);
    }
    return status;
}

/* Every type, a cyclic sampling, higher rank, samples that change late and stop early. */
static abc_status write_plain(abc_writer *w) {
    static const abc_pair pairs[] = {{"zeta", "1"}, {"alpha", "two words"}, {"empty", ""}};
    const abc_metadata metadata = {pairs, 3};
    const double cycle[2] = {0.0, 0.01};
    const abc_time_sampling cyclic = {ABC_CYCLIC, 0.04, cycle, 2, 0};
    const uint64_t block[6] = {1, 2, 3, 4, 5, UINT64_MAX}, dims[2] = {2, 3};
    const char *const words[3] = {"one", "", "dr\xc3\xa4i \xf0\x9f\x91\x95"};
    uint32_t sampling = 0;
    abc_wobject *object = NULL;
    abc_wproperty *p = NULL;
    uint8_t bytes[64];
    for (int i = 0; i < 64; i++)
        bytes[i] = (uint8_t)(i * 3 + 1);
    abc_status status = abc_writer_add_time_sampling(w, &cyclic, &sampling);
    if (status >= 0)
        status = abc_wobject_create(abc_writer_top(w), "plain node", &metadata, &object);
    if (status < 0)
        return status;
    abc_wproperty *top = abc_wobject_properties(object);
    for (int pod = ABC_BOOL; status >= 0 && pod <= ABC_DOUBLE; pod++) {
        abc_wproperty_def def = {abc_pod_name((abc_pod)pod), ABC_ARRAY, (abc_pod)pod, 2, 0, {0}};
        status = abc_wproperty_create(top, &def, &p);
        if (status >= 0)
            status = abc_wproperty_write(p, bytes, 3);
    }
    abc_wproperty_def late = {"late", ABC_SCALAR, ABC_INT32, 1, sampling, metadata};
    if (status >= 0)
        status = abc_wproperty_create(top, &late, &p);
    for (int i = 0; status >= 0 && i < 20; i++) {
        int32_t value = i < 5 ? 7 : i < 8 ? 8 : i < 11 ? 9 : 7;
        status = abc_wproperty_write(p, &value, 1);
    }
    abc_wproperty_def rank = {"rank2", ABC_ARRAY, ABC_UINT64, 1, 0, {0}};
    if (status >= 0)
        status = abc_wproperty_create(top, &rank, &p);
    if (status >= 0)
        status = abc_wproperty_write_dims(p, block, 2, dims);
    for (int pod = ABC_STRING; status >= 0 && pod <= ABC_WSTRING; pod++) {
        abc_wproperty_def def = {abc_pod_name((abc_pod)pod), ABC_ARRAY, (abc_pod)pod, 1, 0, {0}};
        status = abc_wproperty_create(top, &def, &p);
        if (status >= 0)
            status = abc_wproperty_write(p, words, 3);
        if (status >= 0)
            status = abc_wproperty_write(p, NULL, 0);
    }
    abc_wproperty_def none = {"none", ABC_ARRAY, ABC_FLOAT, 3, 0, {0}};
    return status < 0 ? status : abc_wproperty_create(top, &none, &p);
}

static abc_status write_sample(const char *path, const abc_allocator *allocator, char *message) {
    abc_writer_options options = abc_writer_default_options();
    abc_writer *w = NULL;
    uint32_t sampling = 0;
    options.application = "test_abc";
    options.description = "sample archive";
    options.units = "m";
    options.fps = 24.0;
    options.first_frame = 1.0;
    options.last_frame = FRAMES;
    options.no_sync = true;
    options.allocator = allocator;
    abc_status status = abc_writer_open(path, &options, &w);
    if (status >= 0)
        status = abc_writer_add_uniform(w, 1.0 / 24.0, 1.0 / 24.0, &sampling);
    if (status >= 0)
        status = write_shirt(w, sampling);
    if (status >= 0)
        status = write_morph(w);
    if (status >= 0)
        status = write_plain(w);
    if (status >= 0)
        status = abc_writer_finish(w);
    if (message)
        snprintf(message, 300, "%s", abc_writer_message(w));
    abc_writer_close(w);
    return status;
}

/* ---------------------------------------------------------------- walking an archive */

typedef struct walk {
    abc_reader *reader;
    abc_status worst; /* first failure, else any warning */
    char message[300];
    uint64_t objects, properties, samples, meshes, mesh_samples, bytes;
    abc_sample sample;
    abc_mesh_sample mesh;
    abc_param_sample param;
} walk;

static void walk_note(walk *w, abc_status status) {
    if (status == ABC_OK || w->worst < 0 || (status > 0 && w->worst > 0))
        return;
    w->worst = status;
    snprintf(w->message, sizeof w->message, "%s", abc_reader_message(w->reader));
    if (!w->message[0])
        bad++, printf("  a failed call left no message\n");
}

/* Claimed sample counts may be huge: the first ones and the last stand for all. */
static uint64_t walk_next(uint64_t i, uint64_t samples) {
    return i + 1 == 40 && samples > 41 ? samples - 1 : i + 1;
}

static void walk_property(walk *w, abc_property *p) {
    abc_property_info info;
    abc_property_get_info(p, &info);
    w->properties++;
    for (size_t i = 0; i < abc_property_child_count(p); i++)
        walk_property(w, abc_property_child(p, i));
    if (info.kind == ABC_COMPOUND)
        return;
    for (uint64_t i = 0; i < info.samples; i = walk_next(i, info.samples)) {
        double time = 0.0;
        abc_status status = abc_property_read(w->reader, p, i, &w->sample);
        walk_note(w, status);
        walk_note(w, abc_property_time(w->reader, p, i, &time));
        if (status >= 0)
            w->bytes += crc32_of(w->sample.data, w->sample.size) & 1;
        w->samples++;
    }
}

static void walk_mesh(walk *w, abc_object *object) {
    abc_mesh_info info;
    abc_status status = abc_mesh_get_info(w->reader, object, &info);
    walk_note(w, status);
    if (status < 0)
        return;
    w->meshes++;
    for (uint64_t i = 0; i < info.samples; i = walk_next(i, info.samples)) {
        status = abc_mesh_read(w->reader, object, i, &w->mesh);
        walk_note(w, status);
        w->mesh_samples++;
        for (size_t k = 0; status >= 0 && k < info.param_count; k++)
            walk_note(w, abc_param_read(w->reader, object, abc_mesh_param(w->reader, object, k), i,
                                        ABC_TURN_NONE, &w->param));
    }
}

static void walk_object(walk *w, abc_object *object) {
    abc_property *top = NULL;
    abc_object *original = NULL;
    char path[64];
    int visible = 0;
    bool flag = false;
    w->objects++;
    abc_object_path(object, path, sizeof path);
    walk_note(w, abc_object_resolve(w->reader, object, &original));
    abc_status status = abc_object_properties(w->reader, object, &top);
    walk_note(w, status);
    if (status >= 0)
        walk_property(w, top);
    walk_note(w, abc_object_visibility(w->reader, object, 0, &visible));
    if (abc_object_schema(object) == ABC_SCHEMA_POLYMESH ||
        abc_object_schema(object) == ABC_SCHEMA_SUBD)
        walk_mesh(w, object);
    if (abc_object_schema(object) == ABC_SCHEMA_FACESET)
        walk_note(w, abc_faceset_read(w->reader, object, 0, &w->sample, &flag));
    if (abc_object_schema(object) == ABC_SCHEMA_XFORM) {
        abc_xform_info info = {0};
        walk_note(w, abc_xform_get_info(w->reader, object, &info));
        for (uint64_t i = 0; i < info.samples; i = walk_next(i, info.samples)) {
            double matrix[16];
            walk_note(w, abc_xform_read(w->reader, object, i, matrix, &flag));
        }
    }
    for (size_t i = 0; i < abc_object_child_count(object); i++)
        walk_object(w, abc_object_child(object, i));
}

/* Reads everything there is; the worst status of all calls. */
static abc_status walk_all(abc_reader *reader, abc_status opened, walk *w) {
    abc_archive_info info;
    double start = 0.0, end = 0.0;
    *w = (walk){.reader = reader};
    walk_note(w, opened);
    if (opened >= 0) {
        walk_note(w, abc_reader_info(reader, &info));
        walk_note(w, abc_reader_time_range(reader, &start, &end));
        walk_object(w, abc_reader_top(reader));
    }
    abc_sample_free(reader, &w->sample);
    abc_mesh_sample_free(reader, &w->mesh);
    abc_param_sample_free(reader, &w->param);
    return w->worst;
}

static abc_status walk_memory(const void *data, size_t size, walk *w) {
    abc_reader *reader = NULL;
    abc_status opened = abc_reader_open_memory(data, size, NULL, &reader);
    abc_status status = walk_all(reader, opened, w);
    abc_reader_close(reader);
    return status;
}

/* ---------------------------------------------------------------- tests: parts */

static bool key_is(abc_key key, const char *hex) {
    char text[40] = "";
    const uint8_t *bytes = (const uint8_t *)&key;
    for (int i = 0; i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    return strcmp(text, hex) == 0;
}

static void test_hashes(void) {
    static const struct {
        size_t size;
        const char *murmur, *spooky;
    } vectors[] = {
        {0, "00000000000000000000000000000000", "1909f56bfc062723c751e8b465ee728b"},
        {1, "593e6a30ddc66a72e4a8b5c52711714e", "30ff9c894cfa874ba576111a658bb681"},
        {15, "f4e4ad805e4b6aba6df2e8f78f5a0ee0", "e9fcf3a55725ff8055ed74303024919f"},
        {16, "a14e8f2fc599b0c448fe2ad91902677d", "edc4d07c4d236b99d7fa5d200f8f808a"},
        {33, "1a2ff7c4d85767b1a6602d0756ee7191", "94b71aac8f356b1207bdec8cda71747d"},
        {191, "91e3e16619f3e91f1604030f96e65dcd", "0400e72167558b5a43cb7a1aa68bbebf"},
        {192, "3d7b95f707df0e3fe5ec7e5bf42b7b69", "cfb9b3c11f23d54b76f4d66207440df7"},
        {1000, "49aadcbaef89f70a6b54bbd9b9a1d80b", "051ba518322d078548bfb5a92c671224"},
    };
    uint8_t message[1000];
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)(7 * i + 3);
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        CHECK(key_is(abc_murmur(message, vectors[i].size), vectors[i].murmur));
        CHECK(key_is(abc_spooky(message, vectors[i].size), vectors[i].spooky));
    }
    /* Published: MurmurHash3_x64_128, seed 0, as two words. */
    abc_key fox = abc_murmur("The quick brown fox jumps over the lazy dog", 43);
    CHECK(fox.word[0] == 0xe34bbc7bbc071b6cu && fox.word[1] == 0x7a433ca9c49a9347u);
    abc_key fold = abc_spooky_fold((abc_key){{1, 2}}, (abc_key){{3, 4}});
    CHECK(fold.word[0] == 0xd05bc6ce4c6b2efeu && fold.word[1] == 0x8616ffe259af1463u);
}

static void test_numbers(void) {
    char text[40];
    double value = 0.0;
    abc_format_number(text, sizeof text, 23.976);
    CHECK(strcmp(text, "23.976") == 0 && abc_parse_number(text, &value) &&
          fabs(value - 23.976) < 1e-12);
    CHECK(abc_parse_number("-25.000000", &value) && value == -25.0);
    CHECK(!abc_parse_number("", &value) && !abc_parse_number("1,5", &value) &&
          !abc_parse_number(".", &value));
}

static void test_time(void) {
    const double start = 1.0 / 24.0, cycle[3] = {0.0, 0.1, 0.25}, own[4] = {0.0, 0.5, 0.75, 2.0};
    const abc_time_sampling uniform = {ABC_UNIFORM, 1.0 / 24.0, &start, 1, 0};
    const abc_time_sampling cyclic = {ABC_CYCLIC, 1.0, cycle, 3, 0};
    const abc_time_sampling acyclic = {ABC_ACYCLIC, 0.0, own, 4, 0};
    for (uint64_t i = 0; i < 100; i++) {
        double t = abc_time_of(&uniform, i);
        CHECK(abc_time_floor(&uniform, 100, t) == i && abc_time_ceil(&uniform, 100, t) == i);
        CHECK(abc_time_near(&uniform, 100, t + 0.001) == i);
    }
    CHECK(abc_time_of(&cyclic, 7) == 2.1 && abc_time_floor(&cyclic, 9, 2.2) == 7);
    CHECK(abc_time_ceil(&cyclic, 9, 2.2) == 8 && abc_time_near(&cyclic, 9, 2.22) == 8);
    CHECK(abc_time_floor(&acyclic, 4, 0.74) == 1 && abc_time_near(&acyclic, 4, 0.74) == 2);
    CHECK(abc_time_floor(&acyclic, 4, 99.0) == 3 && abc_time_floor(&acyclic, 4, NAN) == 0);
    CHECK(isnan(abc_time_of(&acyclic, 4)) && abc_time_ceil(&acyclic, 9, 1.9) == 3);
    CHECK(abc_time_floor(&uniform, 0, 5.0) == 0);
}

/* ---------------------------------------------------------------- tests: round trips */

static void check_grid(const abc_mesh_sample *s, int frame) {
    static grid g;
    grid_fill(&g, frame);
    CHECK(s->point_count == POINTS && s->face_count == FACES && s->corner_count == CORNERS);
    if (s->point_count != POINTS || s->corner_count != CORNERS)
        return;
    CHECK(memcmp(s->positions, g.positions, sizeof g.positions) == 0);
    CHECK(memcmp(s->face_counts, g.counts, sizeof g.counts) == 0);
    CHECK(memcmp(s->face_indices, g.indices, sizeof g.indices) == 0);
    CHECK(s->velocities && memcmp(s->velocities, g.velocities, sizeof g.velocities) == 0);
    CHECK(s->uvs.values && s->uvs.value_count == POINTS && s->uvs.scope == ABC_SCOPE_CORNER);
    CHECK(s->uvs.values && memcmp(s->uvs.values, g.uvs, sizeof g.uvs) == 0);
    CHECK(s->uvs.indices && memcmp(s->uvs.indices, g.uv_indices, sizeof g.uv_indices) == 0);
    CHECK(s->normals.values && !s->normals.indices);
    CHECK(s->normals.values && memcmp(s->normals.values, g.normals, sizeof g.normals) == 0);
    CHECK(s->bounds[0] == 0.0 && s->bounds[3] == (COLUMNS - 1) * 0.25);
}

static void test_round_trip(void) {
    const char *path = path_of("sample.abc");
    abc_reader *r = NULL;
    abc_object *object = NULL;
    abc_archive_info info;
    abc_mesh_info mesh;
    abc_xform_info xform;
    abc_mesh_sample sample = {0};
    abc_param_sample param = {0};
    abc_sample faces = {0};
    double matrix[16], start = 0.0, end = 0.0;
    bool flag = false;
    CHECK(write_sample(path, NULL, NULL) == ABC_OK);
    ROK(r, abc_reader_open(path, NULL, &r));
    ROK(r, abc_reader_info(r, &info));
    CHECK(info.application && strcmp(info.application, "test_abc") == 0);
    CHECK(info.units && strcmp(info.units, "m") == 0 && info.fps == 24.0);
    CHECK(info.has_frames && info.first_frame == 1.0 && info.last_frame == FRAMES);
    CHECK(info.object_count == 5 && info.library_version == 10812);
    CHECK(abc_reader_time_sampling_count(r) == 4);
    ROK(r, abc_reader_time_range(r, &start, &end));
    CHECK(start == 0.0 && fabs(end - 1.0) < 1e-12);

    ROK(r, abc_reader_find(r, "/Shirt", &object));
    ROK(r, abc_xform_get_info(r, object, &xform));
    CHECK(xform.samples == FRAMES && !xform.constant && !xform.identity &&
          xform.time_sampling == 1);
    ROK(r, abc_xform_read(r, object, 10, matrix, &flag));
    CHECK(flag && matrix[12] == 5.0 && matrix[13] == 2.5 && matrix[14] == 2.0 && matrix[0] == 1.0);

    ROK(r, abc_reader_find(r, "/Shirt/ShirtShape", &object));
    ROK(r, abc_mesh_get_info(r, object, &mesh));
    CHECK(mesh.samples == FRAMES && mesh.topology == ABC_DEFORMING && mesh.param_count == 5);
    CHECK(mesh.has_uvs && mesh.has_normals && mesh.has_velocities);
    CHECK(mesh.uv_name && strcmp(mesh.uv_name, "UVMap") == 0);
    for (int frame = 0; frame < FRAMES; frame++) {
        ROK(r, abc_mesh_read(r, object, (uint64_t)frame, &sample));
        check_grid(&sample, frame);
        ROK(r, abc_param_read(r, object, abc_mesh_param(r, object, 2), (uint64_t)frame,
                              ABC_TURN_NONE, &param));
        CHECK(param.value_count == POINTS &&
              ((const float *)param.values)[3] == 4.0f + frame * 0.25f);
    }
    ROK(r, abc_param_read(r, object, abc_mesh_param(r, object, 0), 3, ABC_TURN_NONE, &param));
    CHECK(param.pod == ABC_INT32 && param.value_count == FACES && param.scope == ABC_SCOPE_FACE);
    CHECK(((const int32_t *)param.values)[5] == 2);
    ROK(r, abc_param_read(r, object, abc_mesh_param(r, object, 1), 9, ABC_TURN_POINT, &param));
    CHECK(param.value_count == POINTS && ((const float *)param.values)[3] == 0.25f);
    ROK(r, abc_param_read(r, object, abc_mesh_param(r, object, 3), 0, ABC_TURN_NONE, &param));
    CHECK(param.pod == ABC_STRING && strcmp(param.values, "caf\xc3\xa9") == 0);
    ROK(r, abc_param_read(r, object, abc_mesh_param(r, object, 4), 0, ABC_TURN_NONE, &param));
    CHECK(param.indices && param.index_count == CORNERS && param.indices[0] == 1 &&
          param.indices[1] == 0);

    ROK(r, abc_reader_find(r, "/Shirt/ShirtShape/front", &object));
    ROK(r, abc_faceset_read(r, object, 0, &faces, &flag));
    CHECK(flag && faces.count == FACES / 2 && ((const int32_t *)faces.data)[3] == 6);

    ROK(r, abc_reader_find(r, "/Morph", &object));
    ROK(r, abc_mesh_get_info(r, object, &mesh));
    CHECK(mesh.samples == 3 && mesh.topology == ABC_CHANGING);
    ROK(r, abc_mesh_read(r, object, 0, &sample));
    CHECK(sample.point_count == 3 && !sample.velocities && !sample.uvs.values);
    ROK(r, abc_mesh_read(r, object, 1, &sample));
    CHECK(sample.point_count == 4 && sample.velocities && sample.face_indices[3] == 3);
    ROK(r, abc_mesh_read(r, object, 2, &sample));
    CHECK(sample.point_count == 3 && !sample.velocities);
    CHECK(abc_mesh_read(r, object, 3, &sample) == ABC_INVALID);
    CHECK(abc_reader_find(r, "/Shirt/Nothing", &object) == ABC_MISSING &&
          strlen(abc_reader_message(r)));
    CHECK(abc_xform_read(r, abc_reader_top(r), 0, matrix, &flag) == ABC_MISSING);
    abc_sample_free(r, &faces);
    abc_param_sample_free(r, &param);
    abc_mesh_sample_free(r, &sample);
    abc_reader_close(r);
}

static void test_plain_properties(void) {
    abc_reader *r = NULL;
    abc_object *object = NULL;
    abc_property *top = NULL;
    abc_property_info info;
    abc_sample sample = {0};
    char path[32];
    CHECK(write_sample(path_of("plain.abc"), NULL, NULL) == ABC_OK);
    ROK(r, abc_reader_open(path_of("plain.abc"), NULL, &r));
    ROK(r, abc_reader_find(r, "plain node", &object));
    CHECK(abc_object_path(object, path, sizeof path) == 11 && strcmp(path, "/plain node") == 0);
    CHECK(abc_object_path(object, path, 4) == 11 && strcmp(path, "/pl") == 0);
    CHECK(abc_object_schema(object) == ABC_SCHEMA_NONE);
    CHECK(abc_object_metadata(object)->count == 2);
    CHECK(strcmp(abc_metadata_get(abc_object_metadata(object), "alpha"), "two words") == 0);
    ROK(r, abc_object_properties(r, object, &top));
    CHECK(abc_property_child_count(top) == 17);
    for (int pod = ABC_BOOL; pod <= ABC_DOUBLE; pod++) {
        abc_property *p = abc_property_find(top, abc_pod_name((abc_pod)pod));
        abc_property_get_info(p, &info);
        ROK(r, abc_property_read(r, p, 0, &sample));
        CHECK(info.pod == (abc_pod)pod && info.extent == 2 && info.constant && sample.count == 3);
        CHECK(sample.size == 6 * abc_pod_size(info.pod) && ((uint8_t *)sample.data)[4] == 13);
    }
    abc_property *late = abc_property_find(top, "late");
    abc_property_get_info(late, &info);
    CHECK(info.samples == 20 && info.stored == 8 && !info.constant);
    for (int i = 0; i < 20; i++) {
        int32_t value = i < 5 ? 7 : i < 8 ? 8 : i < 11 ? 9 : 7;
        double time = 0.0;
        ROK(r, abc_property_read(r, late, (uint64_t)i, &sample));
        CHECK(*(int32_t *)sample.data == value);
        ROK(r, abc_property_time(r, late, (uint64_t)i, &time));
        CHECK(fabs(time - (i / 2 * 0.04 + i % 2 * 0.01)) < 1e-12);
    }
    ROK(r, abc_property_read(r, abc_property_find(top, "rank2"), 0, &sample));
    CHECK(sample.count == 6 && sample.rank == 2 && sample.dims[0] == 2 && sample.dims[1] == 3);
    for (int pod = ABC_STRING; pod <= ABC_WSTRING; pod++) {
        abc_property *p = abc_property_find(top, abc_pod_name((abc_pod)pod));
        ROK(r, abc_property_read(r, p, 0, &sample));
        CHECK(sample.count == 3 &&
              memcmp(sample.data, "one\0\0dr\xc3\xa4i \xf0\x9f\x91\x95", 16) == 0);
        ROK(r, abc_property_read(r, p, 1, &sample));
        CHECK(sample.count == 0 && sample.size == 0);
    }
    CHECK(abc_property_read(r, abc_property_find(top, "none"), 0, &sample) == ABC_MISSING);
    CHECK(abc_property_read(r, late, 20, &sample) == ABC_INVALID);
    CHECK(strstr(abc_reader_message(r), "/plain node") && strstr(abc_reader_message(r), "late"));
    abc_sample_free(r, &sample);
    abc_reader_close(r);
}

static void test_space(void) {
    abc_writer_options wo = abc_writer_default_options();
    abc_reader_options ro = abc_reader_default_options();
    abc_writer *w = NULL;
    abc_reader *r = NULL;
    abc_wxform *xform = NULL;
    abc_wmesh *mesh = NULL;
    abc_object *object = NULL;
    abc_mesh_sample sample = {0};
    static grid g;
    /* A quarter turn about Z with a translation: columns are images of the axes. */
    const double turn[16] = {0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 1, 2, 4, 1};
    double m[16];
    bool inherits = true;
    const char *path = path_of("space.abc");
    wo.z_up = true;
    wo.scale = 8.0;
    wo.no_sync = true;
    grid_fill(&g, 3);
    const abc_mesh_data data = grid_data(&g);
    WOK(w, abc_writer_open(path, &wo, &w));
    WOK(w, abc_wxform_create(abc_writer_top(w), "x", 0, &xform));
    WOK(w, abc_wxform_write(xform, turn, false));
    WOK(w, abc_wmesh_create(abc_wxform_object(xform), &(abc_wmesh_def){"m", 0, NULL}, &mesh));
    WOK(w, abc_wmesh_write(mesh, &data));
    WOK(w, abc_writer_finish(w));
    abc_writer_close(w);

    /* As stored: (x, z, -y) * 8, faces reversed, normals turned but not scaled. */
    ro.keep_winding = true;
    ROK(r, abc_reader_open(path, &ro, &r));
    ROK(r, abc_reader_find(r, "/x/m", &object));
    ROK(r, abc_mesh_read(r, object, 0, &sample));
    for (int p = 0; p < POINTS; p++) {
        CHECK(sample.positions[3 * p] == 8.0f * g.positions[3 * p]);
        CHECK(sample.positions[3 * p + 1] == 8.0f * g.positions[3 * p + 2]);
        CHECK(sample.positions[3 * p + 2] == -8.0f * g.positions[3 * p + 1]);
        CHECK(sample.velocities[3 * p + 1] == 8.0f * g.velocities[3 * p + 2]);
    }
    for (int c = 0; c < 4; c++) {
        CHECK(sample.face_indices[c] == g.indices[3 - c]);
        CHECK(sample.uvs.indices[c] == g.uv_indices[3 - c]);
        CHECK(((const float *)sample.normals.values)[3 * c + 1] == g.normals[3 * (3 - c) + 2]);
    }
    ROK(r, abc_reader_find(r, "/x", &object));
    ROK(r, abc_xform_read(r, object, 0, m, &inherits));
    CHECK(!inherits && m[12] == 8.0 && m[13] == 32.0 && m[14] == -16.0);
    /* x still goes to caller y, which is file -z; the up axis y stays. */
    CHECK(m[0] == 0.0 && m[2] == -1.0 && m[5] == 1.0);
    abc_mesh_sample_free(r, &sample);
    abc_reader_close(r);

    ro = (abc_reader_options){.z_up = true, .scale = 8.0};
    ROK(r, abc_reader_open(path, &ro, &r));
    ROK(r, abc_reader_find(r, "/x/m", &object));
    ROK(r, abc_mesh_read(r, object, 0, &sample));
    check_grid(&sample, 3);
    ROK(r, abc_reader_find(r, "/x", &object));
    ROK(r, abc_xform_read(r, object, 0, m, &inherits));
    for (int k = 0; k < 16; k++)
        CHECK(m[k] == turn[k]);
    abc_mesh_sample_free(r, &sample);
    abc_reader_close(r);
}

static void test_identical(void) {
    size_t first = 0, second = 0;
    CHECK(write_sample(path_of("a.abc"), NULL, NULL) == ABC_OK);
    CHECK(write_sample(path_of("b.abc"), NULL, NULL) == ABC_OK);
    uint8_t *a = load(path_of("a.abc"), &first), *b = load(path_of("b.abc"), &second);
    CHECK(first > 1000 && first == second && memcmp(a, b, first) == 0);
    free(a);
    free(b);
}

static uint64_t size_of_repeats(int frames, bool moving) {
    abc_writer_options options = abc_writer_default_options();
    abc_writer *w = NULL;
    abc_wmesh *mesh = NULL;
    static grid g;
    options.no_sync = true;
    WOK(w, abc_writer_open(path_of("repeat.abc"), &options, &w));
    WOK(w, abc_wmesh_create(abc_writer_top(w), &(abc_wmesh_def){"m", 0, NULL}, &mesh));
    for (int i = 0; i < frames; i++) {
        grid_fill(&g, moving ? i % 2 : 0);
        const abc_mesh_data data = grid_data(&g);
        WOK(w, abc_wmesh_write(mesh, &data));
    }
    WOK(w, abc_writer_finish(w));
    uint64_t size = abc_writer_bytes(w);
    abc_writer_close(w);
    return size;
}

static void test_sharing(void) {
    /* Equal samples only count; alternating ones cost a word pair each, not a payload. */
    CHECK(size_of_repeats(1, false) == size_of_repeats(200, false));
    uint64_t two = size_of_repeats(2, true), many = size_of_repeats(102, true);
    CHECK(many - two <= 100 * (16 + 16 + 8));
    abc_reader *r = NULL;
    abc_object *object = NULL;
    abc_mesh_sample sample = {0};
    ROK(r, abc_reader_open(path_of("repeat.abc"), NULL, &r));
    ROK(r, abc_reader_find(r, "/m", &object));
    for (uint64_t i = 0; i < 102; i++) {
        ROK(r, abc_mesh_read(r, object, i, &sample));
        check_grid(&sample, (int)(i % 2));
    }
    abc_mesh_sample_free(r, &sample);
    abc_reader_close(r);
}

/* Sample counts, names and metadata lengths at which the encoding changes. */
static void test_many_samples(void) {
    static const uint32_t counts[] = {1, 2, 255, 256, 65535, 65536, 70001};
    enum { KINDS = sizeof counts / sizeof counts[0] };
    abc_writer_options options = abc_writer_default_options();
    abc_writer *w = NULL;
    abc_reader *r = NULL;
    abc_property *top = NULL;
    abc_sample sample = {0};
    char name[400], text[300];
    options.no_sync = true;
    WOK(w, abc_writer_open(path_of("many.abc"), &options, &w));
    abc_wproperty *root = abc_wobject_properties(abc_writer_top(w)), *p = NULL;
    for (int k = 0; k < KINDS; k++) {
        snprintf(name, sizeof name, "count%u", counts[k]);
        abc_wproperty_def def = {name, k % 2 ? ABC_ARRAY : ABC_SCALAR, ABC_UINT32, 1, 0, {0}};
        WOK(w, abc_wproperty_create(root, &def, &p));
        for (uint32_t i = 0; i < counts[k]; i++) {
            uint32_t value = i / 3;
            WOK(w, abc_wproperty_write(p, &value, 1));
        }
    }
    /* More different metadata than the table holds, and long names. */
    for (int i = 0; i < 300; i++) {
        snprintf(text, sizeof text, "%0*d", i % 2 ? 290 : 5, i);
        memset(name, 'n', sizeof name);
        snprintf(name + 300, sizeof name - 300, "%d", i);
        const abc_pair pair = {"k", text};
        abc_wproperty_def def = {i % 3 ? name : name + 299, ABC_SCALAR, ABC_INT8, 1, 0, {&pair, 1}};
        WOK(w, abc_wproperty_create(root, &def, &p));
    }
    WOK(w, abc_writer_finish(w));
    abc_writer_close(w);
    ROK(r, abc_reader_open(path_of("many.abc"), NULL, &r));
    ROK(r, abc_object_properties(r, abc_reader_top(r), &top));
    CHECK(abc_property_child_count(top) == KINDS + 300);
    for (int k = 0; k < KINDS && bad == 0; k++) {
        abc_property_info info;
        abc_property_get_info(abc_property_child(top, (size_t)k), &info);
        CHECK(info.samples == counts[k]);
        for (uint32_t i = 0; i < counts[k]; i++) {
            ROK(r, abc_property_read(r, abc_property_child(top, (size_t)k), i, &sample));
            CHECK(*(uint32_t *)sample.data == i / 3);
        }
    }
    for (int i = 0; i < 300; i++) {
        abc_property_info info;
        abc_property_get_info(abc_property_child(top, (size_t)(KINDS + i)), &info);
        const char *value = abc_metadata_get(&info.metadata, "k");
        CHECK(value && atoi(value) == i && strlen(value) == (i % 2 ? 290u : 5u));
    }
    abc_sample_free(r, &sample);
    abc_reader_close(r);
}

static void test_deep(void) {
    abc_writer *w = NULL;
    abc_reader *r = NULL;
    abc_writer_options options = abc_writer_default_options();
    options.no_sync = true;
    walk all;
    WOK(w, abc_writer_open(path_of("deep.abc"), &options, &w));
    abc_wobject *object = abc_writer_top(w), *next = NULL;
    for (int i = 0; i < ABC_MAX_DEPTH; i++) {
        WOK(w, abc_wobject_create(object, "n", NULL, &next));
        object = next;
    }
    CHECK(abc_wobject_create(object, "n", NULL, &next) == ABC_INVALID && !next);
    WOK(w, abc_writer_finish(w));
    abc_writer_close(w);
    abc_status status = abc_reader_open(path_of("deep.abc"), NULL, &r);
    CHECK(walk_all(r, status, &all) == ABC_OK && all.objects == ABC_MAX_DEPTH + 1);
    abc_reader_close(r);
}

/* ---------------------------------------------------------------- tests: refusals */

static void test_misuse(void) {
    abc_writer *w = NULL;
    abc_wobject *object = NULL;
    abc_wproperty *p = NULL;
    abc_wmesh *mesh = NULL;
    abc_wparam *param = NULL;
    uint32_t index = 0;
    static grid g;
    const double nan_time = NAN;
    const abc_time_sampling bad_times = {ABC_UNIFORM, 1.0, &nan_time, 1, 0};
    abc_writer_options options = abc_writer_default_options();
    options.no_sync = true;
    WOK(w, abc_writer_open(path_of("misuse.abc"), &options, &w));
    abc_wobject *top = abc_writer_top(w);
    WOK(w, abc_wobject_create(top, "a", NULL, &object));
    CHECK(abc_wobject_create(top, "a", NULL, &object) == ABC_INVALID);
    CHECK(strstr(abc_writer_message(w), "exists already") != NULL);
    CHECK(abc_wobject_create(top, "", NULL, &object) == ABC_INVALID);
    CHECK(abc_wobject_create(top, "a/b", NULL, &object) == ABC_INVALID);
    CHECK(abc_wobject_create(NULL, "a", NULL, &object) == ABC_MISUSE);
    CHECK(abc_writer_set_metadata(w, "key", "a=b") == ABC_INVALID);
    CHECK(abc_writer_add_uniform(w, 0.0, 0.0, &index) == ABC_INVALID);
    CHECK(abc_writer_add_uniform(w, 0.0, -1.0, &index) == ABC_INVALID);
    CHECK(abc_writer_add_time_sampling(w, &bad_times, &index) == ABC_INVALID);
    CHECK(abc_writer_add_time(w, 0, 3.0) == ABC_INVALID);
    abc_wproperty_def def = {"p", ABC_SCALAR, ABC_FLOAT, 0, 0, {0}};
    CHECK(abc_wproperty_create(abc_wobject_properties(top), &def, &p) == ABC_INVALID);
    def.extent = 1;
    def.time_sampling = 7;
    CHECK(abc_wproperty_create(abc_wobject_properties(top), &def, &p) == ABC_INVALID);
    def.time_sampling = 0;
    WOK(w, abc_wproperty_create(abc_wobject_properties(top), &def, &p));
    CHECK(abc_wproperty_repeat(p) == ABC_MISUSE);
    CHECK(abc_wproperty_write(p, g.positions, 2) == ABC_INVALID);
    CHECK(abc_wproperty_write(p, NULL, 1) == ABC_MISUSE);

    WOK(w, abc_wmesh_create(top, &(abc_wmesh_def){"m", 0, NULL}, &mesh));
    grid_fill(&g, 0);
    abc_mesh_data data = grid_data(&g), wrong = data;
    const abc_wparam_def pd = {"q", ABC_FLOAT, 1, ABC_SCOPE_FACE, NULL, false, 0, {0}};
    WOK(w, abc_wmesh_add_param(mesh, &pd, &param));
    CHECK(abc_wparam_write(param, g.stretch, FACES, NULL, 0) == ABC_MISUSE);
    wrong.positions = NULL;
    CHECK(abc_wmesh_write(mesh, &wrong) == ABC_MISUSE);
    wrong = data;
    wrong.corner_count--;
    CHECK(abc_wmesh_write(mesh, &wrong) == ABC_INVALID);
    wrong = data;
    wrong.point_count = 3;
    CHECK(abc_wmesh_write(mesh, &wrong) == ABC_INVALID);
    wrong = data;
    wrong.uvs.value_count = 3;
    CHECK(abc_wmesh_write(mesh, &wrong) == ABC_INVALID);
    g.counts[1] = 2;
    CHECK(abc_wmesh_write(mesh, &data) == ABC_INVALID);
    g.counts[1] = 4;
    g.indices[5] = -1;
    CHECK(abc_wmesh_write(mesh, &data) == ABC_INVALID);
    grid_fill(&g, 0);
    g.positions[7] = INFINITY;
    CHECK(abc_wmesh_write(mesh, &data) == ABC_INVALID && strstr(abc_writer_message(w), "point 2"));
    CHECK(strstr(abc_writer_message(w), "/m"));
    grid_fill(&g, 0);
    /* After all refusals the archive is still good. */
    WOK(w, abc_wmesh_write(mesh, &data));
    CHECK(abc_wparam_write(param, g.stretch, FACES + 1, NULL, 0) == ABC_INVALID);
    WOK(w, abc_wparam_write(param, g.stretch, FACES, NULL, 0));
    CHECK(abc_wparam_write(param, g.stretch, FACES, NULL, 0) == ABC_MISUSE);
    WOK(w, abc_writer_finish(w));
    CHECK(abc_wmesh_write(mesh, &data) == ABC_MISUSE);
    CHECK(abc_writer_finish(w) == ABC_MISUSE);
    abc_writer_close(w);
    size_t size = 0;
    walk all;
    uint8_t *bytes = load(path_of("misuse.abc"), &size);
    CHECK(walk_memory(bytes, size, &all) == ABC_OK && all.mesh_samples == 1);
    free(bytes);

    CHECK(abc_writer_open("/nonexistent/folder/x.abc", NULL, &w) == ABC_IO);
    CHECK(strlen(abc_writer_message(w)) > 0 && abc_writer_finish(w) == ABC_IO);
    abc_writer_close(w);
    options.scale = 0.0;
    CHECK(abc_writer_open(path_of("x.abc"), &options, &w) == ABC_INVALID);
    abc_writer_close(w);
    abc_writer_close(NULL);
    abc_reader_close(NULL);
}

/* Acyclic samplings may be completed after a refused finish. */
static void test_missing_times(void) {
    abc_writer *w = NULL;
    abc_wproperty *p = NULL;
    const double zero = 0.0;
    const abc_time_sampling acyclic = {ABC_ACYCLIC, 0.0, &zero, 1, 0};
    uint32_t index = 0;
    WOK(w, abc_writer_open(path_of("times.abc"), NULL, &w));
    WOK(w, abc_writer_add_time_sampling(w, &acyclic, &index));
    abc_wproperty_def def = {"p", ABC_SCALAR, ABC_INT32, 1, index, {0}};
    WOK(w, abc_wproperty_create(abc_wobject_properties(abc_writer_top(w)), &def, &p));
    for (int32_t i = 0; i < 3; i++)
        WOK(w, abc_wproperty_write(p, &i, 1));
    CHECK(abc_writer_finish(w) == ABC_MISUSE);
    WOK(w, abc_writer_add_time(w, index, 0.5));
    CHECK(abc_writer_add_time(w, index, 0.5) == ABC_INVALID);
    WOK(w, abc_writer_add_time(w, index, 0.75));
    WOK(w, abc_writer_finish(w));
    abc_writer_close(w);
}

static void test_refused_files(void) {
    abc_reader *r = NULL;
    abc_writer *w = NULL;
    abc_archive_info info;
    static const uint8_t hdf5[32] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    CHECK(abc_reader_open_memory(hdf5, sizeof hdf5, NULL, &r) == ABC_FORMAT);
    CHECK(strstr(abc_reader_message(r), "HDF5") != NULL);
    CHECK(abc_reader_top(r) == NULL && abc_reader_info(r, &info) == ABC_MISUSE);
    abc_reader_close(r);
    CHECK(abc_reader_open_memory("hello, this is text", 19, NULL, &r) == ABC_FORMAT);
    abc_reader_close(r);
    CHECK(abc_reader_open(path_of("does not exist.abc"), NULL, &r) == ABC_IO);
    abc_reader_close(r);
    CHECK(abc_reader_open(folder, NULL, &r) < 0);
    abc_reader_close(r);
    /* Interrupted writing: closed without finish. */
    WOK(w, abc_writer_open(path_of("cut.abc"), NULL, &w));
    CHECK(write_shirt(w, 0) == ABC_OK);
    abc_writer_close(w);
    CHECK(abc_reader_open(path_of("cut.abc"), NULL, &r) == ABC_FORMAT);
    CHECK(strstr(abc_reader_message(r), "never finished") != NULL);
    abc_reader_close(r);
}

/* ---------------------------------------------------------------- tests: hostile files */

static void put(uint8_t *file, size_t at, uint64_t word) {
    memcpy(file + at, &word, 8);
}

/* Hand-made archives whose object groups lead back to themselves or fan out without end. */
static void test_loops(void) {
    static uint8_t file[4096];
    walk all;
    const uint64_t data = (uint64_t)1 << 63;
    for (int variant = 0; variant < 3; variant++) {
        memset(file, 0, sizeof file);
        memcpy(file, "Ogawa\xff\0\1", 8);
        put(file, 8, 16); /* root: six children at 24 */
        put(file, 16, 6);
        put(file, 24, data | 100);
        put(file, 32, data | 112);
        put(file, 40, 200);
        put(file, 48, data);
        put(file, 56, data | 128);
        put(file, 64, data);
        put(file, 100, 4);
        put(file, 112, 4);
        const int32_t version = 10812;
        memcpy(file + 120, &version, 4);
        put(file, 128, 24); /* one sampling: max 1, period 1, time 0 */
        const double one = 1.0;
        memcpy(file + 140, &one, 8);
        file[148] = 1;
        /* Object at 200: properties, children, headers. Each level doubles in variants 1 and 2. */
        int levels = variant == 0 ? 1 : 40;
        for (int level = 0; level < levels; level++) {
            size_t at = 200 + 48 * (size_t)level;
            uint64_t next = variant == 0 ? 200 : at + 48;
            put(file, at, 4);
            put(file, at + 8, variant == 2 ? 200 : 0);
            put(file, at + 16, next);
            put(file, at + 24, next);
            put(file, at + 32, data | 3000);
        }
        put(file, 3000, 44); /* headers of two children "a", "b" and the hashes */
        memcpy(file + 3008, "\1\0\0\0a\0\1\0\0\0b\0", 12);
        CHECK(walk_memory(file, sizeof file, &all) == ABC_FORMAT);
        CHECK(all.objects == 0 && strlen(all.message) > 0);
    }
}

/* How many times the usual number of damaged files to try: TEST_ABC_EFFORT, 1 without it. */
static int effort(void) {
    const char *text = getenv("TEST_ABC_EFFORT");
    int times = text ? atoi(text) : 1;
    return times > 0 ? times : 1;
}

/* Reads all of an archive with 1 % or a few of its bytes changed. Half of the rounds spare the
 * payloads and hit the structure at the end of the file. */
static abc_status walk_damaged(const uint8_t *good, size_t size, int round) {
    walk all;
    uint8_t *damaged = malloc(size);
    memcpy(damaged, good, size);
    size_t from = round % 2 ? 16 : size - size / 8;
    size_t hits = round % 4 < 2 ? (size - from) / 100 : 1 + random_next() % 4;
    for (size_t i = 0; i < hits; i++)
        damaged[from + random_next() % (size - from)] = (uint8_t)random_next();
    /* Words copied to other places make offsets that exist but are wrong: loops and confusions. */
    if (round % 5 == 4 && size > 64) {
        memcpy(damaged, good, size);
        for (uint32_t i = 0; i <= random_next() % 3; i++)
            memcpy(damaged + size - 8 - random_next() % (size / 4),
                   good + size - 8 - random_next() % (size / 4), 8);
    }
    abc_status status = walk_memory(damaged, size, &all);
    free(damaged);
    return status;
}

/* The sample archive in many truncations, and with 1 % of its bytes changed a thousand times. Any
 * status is right as long as nothing is read out of bounds: the sanitizers watch. */
static void test_damage(void) {
    size_t size = 0;
    walk all;
    CHECK(write_sample(path_of("damage.abc"), NULL, NULL) == ABC_OK);
    uint8_t *good = load(path_of("damage.abc"), &size);
    CHECK(walk_memory(good, size, &all) == ABC_OK);
    printf("  %" PRIu64 " objects, %" PRIu64 " properties, %" PRIu64 " samples in %zu bytes\n",
           all.objects, all.properties, all.samples, size);
    int refused = 0, truncated = 0, read = 0;
    for (size_t length = 0; length < size; length += length < 64 || size - length < 600 ? 1 : 97) {
        /* A copy of its own, so that the sanitizer sees the end. */
        uint8_t *cut = malloc(length ? length : 1);
        memcpy(cut, good, length);
        CHECK(walk_memory(cut, length, &all) < 0);
        free(cut);
        truncated++;
    }
    random_state = 20240601;
    int rounds = 1000 * effort();
    for (int round = 0; round < rounds; round++) {
        abc_status status = walk_damaged(good, size, round);
        refused += status < 0;
        read += status >= 0;
    }
    printf("  %d truncations refused; %d damaged: %d refused, %d read\n", truncated, rounds,
           refused, read);
    CHECK(refused > 0);
    free(good);
}

/* ---------------------------------------------------------------- tests: memory and disk */

typedef struct failing {
    long left; /* allocations that still succeed; negative: all */
    long live;
    long calls;
} failing;

static void *failing_allocate(void *user, size_t size) {
    failing *f = user;
    f->calls++;
    if (f->left == 0)
        return NULL;
    f->left -= f->left > 0;
    f->live++;
    return malloc(size);
}

static void failing_release(void *user, void *pointer) {
    ((failing *)user)->live--;
    free(pointer);
}

static void test_allocation_failure(void) {
    failing f = {-1, 0, 0};
    const abc_allocator allocator = {failing_allocate, failing_release, &f};
    abc_reader_options options = abc_reader_default_options();
    long writes = 0, reads = 0;
    options.allocator = &allocator;
    for (long n = 0;; n++, writes++) {
        char message[300] = "";
        f = (failing){n, 0, 0};
        abc_status status = write_sample(path_of("memory.abc"), &allocator, message);
        CHECK(f.live == 0);
        if (status == ABC_OK)
            break;
        CHECK(status == ABC_NO_MEMORY && strlen(message) > 0);
        /* What is left must not pass for an archive. Opening it every time would take long. */
        if (n % 16 == 0) {
            abc_reader *r = NULL;
            CHECK(n < 8 || abc_reader_open(path_of("memory.abc"), NULL, &r) < 0);
            abc_reader_close(r);
        }
        if (bad)
            break;
    }
    for (long n = 0;; n++, reads++) {
        abc_reader *r = NULL;
        walk all;
        f = (failing){n, 0, 0};
        abc_status status = abc_reader_open(path_of("memory.abc"), &options, &r);
        if (r)
            status = walk_all(r, status, &all);
        abc_reader_close(r);
        CHECK(f.live == 0);
        if (status == ABC_OK)
            break;
        CHECK(status == ABC_NO_MEMORY);
        if (bad)
            break;
    }
    printf("  %ld write and %ld read allocations failed in turn\n", writes, reads);
    CHECK(writes > 50 && reads > 10);
}

static void test_disk_full(void) {
    struct rlimit old, limit;
    size_t size = 0;
    int refused = 0;
    CHECK(write_sample(path_of("full.abc"), NULL, NULL) == ABC_OK);
    free(load(path_of("full.abc"), &size));
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    for (size_t room = 0; room < size; room += 1 + size / 40) {
        char message[300] = "";
        limit = old;
        limit.rlim_cur = room;
        setrlimit(RLIMIT_FSIZE, &limit);
        abc_status status = write_sample(path_of("full.abc"), NULL, message);
        setrlimit(RLIMIT_FSIZE, &old);
        CHECK(status == ABC_IO && strlen(message) > 0);
        abc_reader *r = NULL;
        CHECK(abc_reader_open(path_of("full.abc"), NULL, &r) == ABC_FORMAT);
        abc_reader_close(r);
        refused++;
    }
    signal(SIGXFSZ, SIG_DFL);
    printf("  %d sizes of disk\n", refused);
}

/* ---------------------------------------------------------------- tests: instances, visibility */

static void test_instances(void) {
    static const abc_pair pair = {"isInstance", "1"};
    const abc_metadata instance = {&pair, 1};
    abc_writer *w = NULL;
    abc_reader *r = NULL;
    abc_wobject *object = NULL;
    abc_wproperty *p = NULL;
    abc_object *from = NULL, *to = NULL;
    const char *const targets[3] = {"/real", "/loop", "/missing"};
    const char *const names[3] = {"copy", "loop", "lost"};
    const int8_t hidden = 0;
    int visible = 7;
    WOK(w, abc_writer_open(path_of("instance.abc"), NULL, &w));
    WOK(w, abc_wobject_create(abc_writer_top(w), "real", NULL, &object));
    abc_wproperty_def seen = {"visible", ABC_SCALAR, ABC_INT8, 1, 0, {0}};
    WOK(w, abc_wproperty_create(abc_wobject_properties(object), &seen, &p));
    WOK(w, abc_wproperty_write(p, &hidden, 1));
    for (int i = 0; i < 3; i++) {
        abc_wproperty_def def = {".instanceSource", ABC_SCALAR, ABC_STRING, 1, 0, {0}};
        WOK(w, abc_wobject_create(abc_writer_top(w), names[i], &instance, &object));
        WOK(w, abc_wproperty_create(abc_wobject_properties(object), &def, &p));
        WOK(w, abc_wproperty_write(p, &targets[i], 1));
    }
    WOK(w, abc_writer_finish(w));
    abc_writer_close(w);
    ROK(r, abc_reader_open(path_of("instance.abc"), NULL, &r));
    ROK(r, abc_reader_find(r, "/copy", &from));
    ROK(r, abc_object_resolve(r, from, &to));
    CHECK(to && strcmp(abc_object_name(to), "real") == 0);
    ROK(r, abc_object_visibility(r, to, 0, &visible));
    CHECK(visible == 0);
    ROK(r, abc_object_visibility(r, from, 0, &visible));
    CHECK(visible == -1);
    ROK(r, abc_reader_find(r, "/loop", &from));
    CHECK(abc_object_resolve(r, from, &to) == ABC_FORMAT && !to);
    ROK(r, abc_reader_find(r, "/lost", &from));
    CHECK(abc_object_resolve(r, from, &to) == ABC_MISSING);
    abc_reader_close(r);
}

/* ---------------------------------------------------------------- rewriting and dumping */

/* Texts of a sample as the pointers the writer wants; the caller frees them. */
static const char **texts_of(const abc_sample *sample, size_t count) {
    const char **texts = malloc((count ? count : 1) * sizeof *texts);
    const char *text = sample->data;
    for (size_t i = 0; i < count; i++, text += strlen(text) + 1)
        texts[i] = text;
    return texts;
}

static abc_status copy_property(abc_reader *r, abc_writer *w, abc_property *from, abc_wproperty *to,
                                const uint32_t *samplings) {
    abc_sample sample = {0};
    abc_status status = ABC_OK;
    for (size_t i = 0; status >= 0 && i < abc_property_child_count(from); i++) {
        abc_property *p = abc_property_child(from, i);
        abc_property_info info;
        abc_wproperty *made = NULL;
        abc_property_get_info(p, &info);
        abc_wproperty_def def = {
            info.name,    info.kind, info.pod, info.extent, samplings[info.time_sampling],
            info.metadata};
        status = abc_wproperty_create(to, &def, &made);
        if (status >= 0 && info.kind == ABC_COMPOUND)
            status = copy_property(r, w, p, made, samplings);
        for (uint64_t k = 0; status >= 0 && k < info.samples; k++) {
            status = abc_property_read(r, p, k, &sample);
            if (status < 0) {
                fprintf(stderr, "%s\n", abc_reader_message(r));
                break;
            }
            size_t count = (size_t)sample.count * info.extent;
            const char **texts = info.pod >= ABC_STRING ? texts_of(&sample, count) : NULL;
            const void *data = texts ? (const void *)texts : sample.data;
            status = sample.rank ? abc_wproperty_write_dims(made, data, sample.rank, sample.dims)
                                 : abc_wproperty_write(made, data, 1);
            free(texts);
        }
    }
    abc_sample_free(r, &sample);
    return status;
}

static abc_status copy_object(abc_reader *r, abc_writer *w, abc_object *from, abc_wobject *to,
                              const uint32_t *samplings) {
    abc_property *top = NULL;
    abc_status status = abc_object_properties(r, from, &top);
    if (status >= 0)
        status = copy_property(r, w, top, abc_wobject_properties(to), samplings);
    for (size_t i = 0; status >= 0 && i < abc_object_child_count(from); i++) {
        abc_object *child = abc_object_child(from, i);
        abc_wobject *made = NULL;
        status = abc_wobject_create(to, abc_object_name(child), abc_object_metadata(child), &made);
        if (status >= 0)
            status = copy_object(r, w, child, made, samplings);
    }
    return status;
}

static abc_status rewrite(const char *from, const char *to) {
    abc_reader *r = NULL;
    abc_writer *w = NULL;
    abc_archive_info info;
    abc_writer_options options = abc_writer_default_options();
    uint32_t *samplings = NULL;
    options.no_sync = true;
    abc_status status = abc_reader_open(from, NULL, &r);
    if (status >= 0)
        status = abc_reader_info(r, &info);
    if (status >= 0)
        status = abc_writer_open(to, &options, &w);
    samplings = calloc(abc_reader_time_sampling_count(r) + 1, sizeof *samplings);
    for (size_t i = 0; status >= 0 && i < info.metadata.count; i++)
        status =
            abc_writer_set_metadata(w, info.metadata.pairs[i].key, info.metadata.pairs[i].value);
    for (size_t i = 0; status >= 0 && i < abc_reader_time_sampling_count(r); i++)
        status = abc_writer_add_time_sampling(w, abc_reader_time_sampling(r, i), &samplings[i]);
    if (status >= 0)
        status = copy_object(r, w, abc_reader_top(r), abc_writer_top(w), samplings);
    if (status >= 0)
        status = abc_writer_finish(w);
    if (status < 0)
        fprintf(stderr, "%s%s\n", abc_reader_message(r), w ? abc_writer_message(w) : "");
    free(samplings);
    abc_reader_close(r);
    abc_writer_close(w);
    return status;
}

/* A rewritten archive holds the same, so rewriting it again makes the same bytes. */
static void test_rewrite(void) {
    size_t first = 0, second = 0, third = 0;
    CHECK(write_sample(path_of("one.abc"), NULL, NULL) == ABC_OK);
    CHECK(rewrite(path_of("one.abc"), path_of("two.abc")) == ABC_OK);
    CHECK(rewrite(path_of("two.abc"), path_of("three.abc")) == ABC_OK);
    uint8_t *a = load(path_of("one.abc"), &first), *b = load(path_of("two.abc"), &second);
    uint8_t *c = load(path_of("three.abc"), &third);
    CHECK(first == second && second == third && memcmp(b, c, third) == 0);
    free(a);
    free(b);
    free(c);
}

static void print_text(const char *text) {
    putchar('"');
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            printf("\\%c", *text);
        else if ((unsigned char)*text < 32)
            printf("\\u%04x", *text);
        else
            putchar(*text);
    }
    putchar('"');
}

static void print_metadata(const abc_metadata *metadata) {
    printf("{");
    for (size_t i = 0; i < metadata->count; i++) {
        printf(i ? "," : "");
        print_text(metadata->pairs[i].key);
        printf(":");
        print_text(metadata->pairs[i].value);
    }
    printf("}");
}

static void dump_property(abc_reader *r, abc_property *p) {
    static const char *const kinds[] = {"compound", "scalar", "array"};
    abc_property_info info;
    abc_sample sample = {0};
    abc_property_get_info(p, &info);
    printf("{\"name\":");
    print_text(info.name);
    printf(",\"kind\":\"%s\",\"md\":", kinds[info.kind]);
    print_metadata(&info.metadata);
    if (info.kind == ABC_COMPOUND) {
        printf(",\"props\":[");
        for (size_t i = 0; i < abc_property_child_count(p); i++) {
            printf(i ? "," : "");
            dump_property(r, abc_property_child(p, i));
        }
        printf("]}");
        return;
    }
    printf(",\"pod\":\"%s\",\"extent\":%u,\"ts\":%u,\"samples\":%" PRIu64
           ",\"constant\":%s,\"data\":[",
           abc_pod_name(info.pod), info.extent, info.time_sampling, info.samples,
           info.constant ? "true" : "false");
    for (uint64_t i = 0; i < info.samples; i++) {
        abc_status status = abc_property_read(r, p, i, &sample);
        printf("%s{\"status\":%d", i ? "," : "", (int)status);
        if (status >= 0) {
            printf(",\"dims\":[");
            for (uint32_t k = 0; k < sample.rank; k++)
                printf("%s%" PRIu64, k ? "," : "", sample.dims[k]);
            printf(sample.rank ? "]" : "1]");
        }
        if (status >= 0 && info.pod >= ABC_STRING) {
            const char *text = sample.data;
            printf(",\"strings\":[");
            for (uint64_t k = 0; k < sample.count * info.extent; k++, text += strlen(text) + 1) {
                printf(k ? "," : "");
                print_text(text);
            }
            printf("]");
        } else if (status >= 0) {
            printf(",\"crc32\":\"%08x\"", crc32_of(sample.data, sample.size));
        }
        printf("}");
    }
    printf("]}");
    abc_sample_free(r, &sample);
}

static void dump_geometry(abc_reader *r, abc_object *object) {
    abc_mesh_info mesh = {0};
    abc_xform_info xform = {0};
    abc_mesh_sample sample = {0};
    abc_schema schema = abc_object_schema(object);
    if (schema == ABC_SCHEMA_XFORM && abc_xform_get_info(r, object, &xform) >= 0) {
        printf(",\"xform\":{\"samples\":%" PRIu64 ",\"constant\":%s,\"frames\":[", xform.samples,
               xform.constant ? "true" : "false");
        for (uint64_t i = 0; i < xform.samples; i++) {
            double m[16];
            bool inherits = false;
            abc_status status = abc_xform_read(r, object, i, m, &inherits);
            printf("%s{\"status\":%d,\"inherits\":%s,\"matrix\":[", i ? "," : "", (int)status,
                   inherits ? "true" : "false");
            for (int k = 0; k < 16; k++)
                printf("%s%.17g", k ? "," : "", m[k]);
            printf("]}");
        }
        printf("]}");
    }
    if ((schema == ABC_SCHEMA_POLYMESH || schema == ABC_SCHEMA_SUBD) &&
        abc_mesh_get_info(r, object, &mesh) >= 0) {
        static const char *const kinds[] = {"constant", "homogenous", "heterogenous"};
        printf(",\"mesh\":{\"samples\":%" PRIu64 ",\"ts\":%u,\"topology\":\"%s\",\"frames\":[",
               mesh.samples, mesh.time_sampling, kinds[mesh.topology]);
        for (uint64_t i = 0; i < mesh.samples; i++) {
            abc_status status = abc_mesh_read(r, object, i, &sample);
            printf("%s{\"status\":%d,\"points\":%zu,\"indices\":%zu,\"faces\":%zu", i ? "," : "",
                   (int)status, sample.point_count, sample.corner_count, sample.face_count);
            printf(",\"P_crc32\":\"%08x\",\"indices_crc32\":\"%08x\",\"counts_crc32\":\"%08x\"",
                   crc32_of(sample.positions, 12 * sample.point_count),
                   crc32_of(sample.face_indices, 4 * sample.corner_count),
                   crc32_of(sample.face_counts, 4 * sample.face_count));
            if (sample.velocities)
                printf(",\"velocities_crc32\":\"%08x\"",
                       crc32_of(sample.velocities, 12 * sample.point_count));
            if (sample.uvs.values)
                printf(",\"uv_vals_crc32\":\"%08x\"",
                       crc32_of(sample.uvs.values, 8 * sample.uvs.value_count));
            printf("}");
        }
        printf("]}");
        abc_mesh_sample_free(r, &sample);
    }
}

static void dump_object(abc_reader *r, abc_object *object) {
    size_t length = abc_object_path(object, NULL, 0);
    char *path = malloc(length + 1);
    abc_property *top = NULL;
    abc_object_path(object, path, length + 1);
    printf("{\"path\":");
    print_text(path);
    printf(",\"schema\":");
    print_text(abc_object_schema_name(object));
    printf(",\"md\":");
    print_metadata(abc_object_metadata(object));
    dump_geometry(r, object);
    printf(",\"props\":[");
    if (abc_object_properties(r, object, &top) >= 0)
        for (size_t i = 0; i < abc_property_child_count(top); i++) {
            printf(i ? "," : "");
            dump_property(r, abc_property_child(top, i));
        }
    printf("],\"children\":[");
    for (size_t i = 0; i < abc_object_child_count(object); i++) {
        printf(i ? "," : "");
        dump_object(r, abc_object_child(object, i));
    }
    printf("]}");
    free(path);
}

/* Geometry as stored, to be compared with what the reference library reads. */
static int dump(const char *path) {
    static const char *const kinds[] = {"uniform", "cyclic", "acyclic"};
    abc_reader_options options = abc_reader_default_options();
    abc_reader *r = NULL;
    abc_archive_info info;
    double start = 0.0, end = 0.0;
    options.keep_winding = true;
    if (abc_reader_open(path, &options, &r) < 0 || abc_reader_info(r, &info) < 0) {
        fprintf(stderr, "%s\n", abc_reader_message(r));
        abc_reader_close(r);
        return 1;
    }
    abc_reader_time_range(r, &start, &end);
    printf("{\"lib\":%d,\"archive_md\":", (int)info.library_version);
    print_metadata(&info.metadata);
    printf(",\"time_range\":[%.17g,%.17g],\"ts\":[", start, end);
    for (size_t i = 0; i < abc_reader_time_sampling_count(r); i++) {
        const abc_time_sampling *s = abc_reader_time_sampling(r, i);
        printf("%s{\"kind\":\"%s\",\"tpc\":", i ? "," : "", kinds[s->kind]);
        s->kind == ABC_ACYCLIC ? printf("null") : printf("%.17g", s->period);
        printf(",\"max\":%" PRIu64 ",\"times\":[", s->max_samples);
        for (size_t k = 0; k < s->time_count; k++)
            printf("%s%.17g", k ? "," : "", s->times[k]);
        printf("]}");
    }
    printf("],\"top\":");
    dump_object(r, abc_reader_top(r));
    printf("}\n");
    abc_reader_close(r);
    return 0;
}

/* Lines "kind period count times... samples queries times..." to lines of floor, ceil, near. */
static int answer_times(void) {
    int kind = 0;
    abc_time_sampling s = {0};
    while (scanf("%d %lf %zu", &kind, &s.period, &s.time_count) == 3) {
        double *times = malloc(s.time_count * sizeof *times), t = 0.0;
        uint64_t samples = 0, queries = 0;
        for (size_t i = 0; i < s.time_count; i++)
            if (scanf("%lf", &times[i]) != 1)
                return 1;
        s.kind = (abc_time_kind)kind;
        s.times = times;
        if (scanf("%" SCNu64 " %" SCNu64, &samples, &queries) != 2)
            return 1;
        while (queries-- && scanf("%lf", &t) == 1)
            printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", abc_time_floor(&s, samples, t),
                   abc_time_ceil(&s, samples, t), abc_time_near(&s, samples, t));
        free(times);
    }
    return 0;
}

/* ---------------------------------------------------------------- tests: the shared corpus */

static const char *corpus(const char *part) {
    static char path[400];
    const char *shared = getenv("TOILE_SHARED");
    snprintf(path, sizeof path, "%s/corpus/abc/%s", shared ? shared : "../shared", part);
    return path;
}

/* Other writers lay their files out differently, so they break differently too. */
static void damage_file(const char *path) {
    size_t size = 0;
    uint8_t *good = load(path, &size);
    int rounds = size < 50000 ? 20 * effort() : 0;
    for (int round = 0; round < rounds; round++)
        walk_damaged(good, size, round);
    free(good);
}

/* What reading one file may cost, also if it is hostile. */
enum { MOST_BYTES = 256 << 20, BLOCK_HEAD = 16 };
static const double most_seconds = 1.0;

typedef struct used_memory {
    size_t now, peak;
} used_memory;

static void *counting_allocate(void *user, size_t size) {
    used_memory *used = user;
    uint8_t *block = size <= MOST_BYTES ? malloc(size + BLOCK_HEAD) : NULL;
    if (size > MOST_BYTES)
        used->peak = SIZE_MAX;
    if (!block)
        return NULL;
    memcpy(block, &size, sizeof size);
    used->now += size;
    used->peak = used->now > used->peak ? used->now : used->peak;
    return block + BLOCK_HEAD;
}

static void counting_release(void *user, void *pointer) {
    used_memory *used = user;
    size_t size = 0;
    if (!pointer)
        return;
    memcpy(&size, (uint8_t *)pointer - BLOCK_HEAD, sizeof size);
    used->now -= size;
    free((uint8_t *)pointer - BLOCK_HEAD);
}

static double processor_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Walks every .abc of a folder; returns how many there were, or -1 without the folder. */
static int walk_folder(const char *part, bool good, int counts[3]) {
    char path[700];
    DIR *directory = opendir(corpus(part));
    int files = 0;
    if (!directory)
        return -1;
    for (struct dirent *entry; (entry = readdir(directory));) {
        size_t length = strlen(entry->d_name);
        abc_reader *r = NULL;
        walk all;
        if (length < 5 || strcmp(entry->d_name + length - 4, ".abc") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", corpus(part), entry->d_name);
        used_memory used = {0, 0};
        const abc_allocator allocator = {counting_allocate, counting_release, &used};
        abc_reader_options options = abc_reader_default_options();
        options.allocator = &allocator;
        double began = processor_seconds();
        abc_status opened = abc_reader_open(path, &options, &r);
        abc_status status = walk_all(r, opened, &all);
        double spent = processor_seconds() - began;
        if (!good && (spent >= most_seconds || used.peak >= MOST_BYTES))
            printf("  %s: %.2f s, %zu bytes\n", entry->d_name, spent, used.peak);
        CHECK(good || (spent < most_seconds && used.peak < MOST_BYTES));
        files++;
        counts[status < 0 ? 0 : status > 0 ? 1 : 2]++;
        if (good && status != ABC_OK)
            printf("  %s: %d %s\n", entry->d_name, (int)status, all.message);
        if (!good && status >= 0)
            printf("  %s: %s %s\n", entry->d_name, status ? "warned:" : "read", all.message);
        if (good)
            CHECK(status >= 0);
        abc_reader_close(r);
        if (good)
            damage_file(path);
    }
    closedir(directory);
    return files;
}

static bool test_corpus(void) {
    static const char *const good[] = {"made", "wild"};
    static const char *const malformed[] = {"malformed", "malformed-upstream"};
    for (int i = 0; i < 4; i++) {
        const char *part = i < 2 ? good[i] : malformed[i - 2];
        int counts[3] = {0, 0, 0};
        int files = walk_folder(part, i < 2, counts);
        if (files < 0) {
            printf("SKIPPED: corpus: no folder %s (set TOILE_SHARED)\n", corpus(part));
            return false;
        }
        printf("  %s: %d files, %d read, %d with warnings, %d refused\n", part, files, counts[2],
               counts[1], counts[0]);
        CHECK(files > 0);
        /* The rest breaks rules no reader depends on; the reference library reads them as well. */
        CHECK(i < 2 || counts[0] > files * 4 / 5);
    }
    return true;
}

static bool test_corpus_hashes(void) {
    FILE *file = fopen(corpus("hashvec.txt"), "r");
    uint8_t message[4096];
    size_t size = 0;
    char murmur[40], spooky[40];
    int lines = 0;
    if (!file) {
        printf("SKIPPED: corpus hashes: no %s (set TOILE_SHARED)\n", corpus("hashvec.txt"));
        return false;
    }
    for (size_t i = 0; i < sizeof message; i++)
        message[i] = (uint8_t)(7 * i + 3);
    for (; fscanf(file, "%zu %39s %39s", &size, murmur, spooky) == 3 && size <= sizeof message;
         lines++) {
        CHECK(key_is(abc_murmur(message, size), murmur));
        CHECK(key_is(abc_spooky(message, size), spooky));
    }
    fclose(file);
    printf("  %d vectors\n", lines);
    CHECK(lines > 0);
    return true;
}

/* ---------------------------------------------------------------- main */

typedef struct test {
    const char *name;
    void (*run)(void);
    bool (*run_optional)(void); /* false: skipped */
} test;

static const test tests[] = {
    {"hashes", test_hashes, NULL},
    {"numbers", test_numbers, NULL},
    {"time", test_time, NULL},
    {"round_trip", test_round_trip, NULL},
    {"plain_properties", test_plain_properties, NULL},
    {"space", test_space, NULL},
    {"identical", test_identical, NULL},
    {"sharing", test_sharing, NULL},
    {"many_samples", test_many_samples, NULL},
    {"deep", test_deep, NULL},
    {"misuse", test_misuse, NULL},
    {"missing_times", test_missing_times, NULL},
    {"refused_files", test_refused_files, NULL},
    {"instances", test_instances, NULL},
    {"rewrite", test_rewrite, NULL},
    {"loops", test_loops, NULL},
    {"damage", test_damage, NULL},
    {"allocation_failure", test_allocation_failure, NULL},
    {"disk_full", test_disk_full, NULL},
    {"corpus", NULL, test_corpus},
    {"corpus_hashes", NULL, test_corpus_hashes},
};

static void remove_folder(void) {
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (entry->d_name[0] != '.')
            remove(path_of(entry->d_name));
    if (directory)
        closedir(directory);
    rmdir(folder);
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        char message[300];
        abc_status status = write_sample(argv[2], NULL, message);
        if (status < 0)
            fprintf(stderr, "%s\n", message);
        return status < 0;
    }
    if (argc == 3 && strcmp(argv[1], "--dump") == 0)
        return dump(argv[2]);
    if (argc == 4 && strcmp(argv[1], "--rewrite") == 0)
        return rewrite(argv[2], argv[3]) < 0;
    if (argc == 2 && strcmp(argv[1], "--time") == 0)
        return answer_times();
    const char *root = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/test_abc.XXXXXX",
             root && strlen(root) < 100 ? root : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        bool ran = true;
        if (argc > 1 && !strstr(tests[i].name, argv[1]))
            continue;
        bad = 0;
        printf("%s\n", tests[i].name);
        fflush(stdout);
        if (tests[i].run)
            tests[i].run();
        else
            ran = tests[i].run_optional();
        passed += ran && !bad;
        failed += bad != 0;
        skipped += !ran;
        if (bad)
            printf("FAILED: %s (%d checks)\n", tests[i].name, bad);
    }
    remove_folder();
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed != 0;
}
