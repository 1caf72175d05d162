/* Alembic archives: the whole tree, every property, every sample that the budget allows, all geometry. */
#include "fuzz.h"

#include "abc.h"

#include <string.h>

enum { SAMPLES = 4, READS = 400 }; /* per property, in all: an input takes milliseconds */

typedef struct walk {
    abc_reader *reader;
    int reads;
} walk;

static void read_property(walk *w, abc_property *property, int depth) {
    abc_property_info info;
    abc_property_get_info(property, &info);
    if (info.kind == ABC_COMPOUND) {
        for (size_t i = 0; i < abc_property_child_count(property) && w->reads > 0 && depth < 40; i++)
            read_property(w, abc_property_child(property, i), depth + 1);
        return;
    }
    abc_sample sample = {0};
    double time;
    for (uint64_t i = 0; i < info.samples && i < SAMPLES && w->reads-- > 0; i++) {
        abc_property_read(w->reader, property, i, &sample);
        abc_property_time(w->reader, property, i, &time);
    }
    if (info.samples)
        abc_property_read(w->reader, property, info.samples - 1, &sample);
    abc_sample_free(w->reader, &sample);
}

static void read_mesh(walk *w, abc_object *object) {
    abc_mesh_info info;
    abc_mesh_sample sample = {0};
    abc_param_sample values = {0};
    float sum = 0;
    if (abc_mesh_get_info(w->reader, object, &info) < 0)
        return;
    for (uint64_t i = 0; i < info.samples && i < SAMPLES && w->reads-- > 0; i++) {
        if (abc_mesh_read(w->reader, object, i, &sample) < 0)
            continue;
        for (size_t c = 0; c < sample.corner_count; c++) /* what a caller would do with the indices */
            sum += sample.positions[3 * (size_t)sample.face_indices[c]];
        for (size_t c = 0; sample.uvs.values && sample.uvs.indices && c < sample.uvs.index_count; c++)
            sum += ((const float *)sample.uvs.values)[2 * (size_t)sample.uvs.indices[c]];
        for (size_t p = 0; p < info.param_count && p < 8; p++)
            abc_param_read(w->reader, object, abc_mesh_param(w->reader, object, p), i, ABC_TURN_POINT,
                           &values);
    }
    if (sum == 12345.678f) /* the sum is used, so that it is made */
        w->reads--;
    abc_param_sample_free(w->reader, &values);
    abc_mesh_sample_free(w->reader, &sample);
}

static void read_object(walk *w, abc_object *object, int depth) {
    abc_property *top = NULL;
    abc_object *original = NULL;
    char path[200];
    int visible;
    abc_object_path(object, path, sizeof path);
    if (abc_object_resolve(w->reader, object, &original) >= 0)
        object = original;
    if (abc_object_properties(w->reader, object, &top) >= 0 && top)
        read_property(w, top, 0);
    abc_object_visibility(w->reader, object, 0, &visible);
    switch (abc_object_schema(object)) {
    case ABC_SCHEMA_XFORM: {
        abc_xform_info info;
        double matrix[16];
        bool inherits;
        if (abc_xform_get_info(w->reader, object, &info) >= 0)
            for (uint64_t i = 0; i < info.samples && i < SAMPLES && w->reads-- > 0; i++)
                abc_xform_read(w->reader, object, i, matrix, &inherits);
        break;
    }
    case ABC_SCHEMA_POLYMESH:
    case ABC_SCHEMA_SUBD: read_mesh(w, object); break;
    case ABC_SCHEMA_FACESET: {
        abc_sample faces = {0};
        bool exclusive;
        abc_faceset_read(w->reader, object, 0, &faces, &exclusive);
        abc_sample_free(w->reader, &faces);
        break;
    }
    default: break;
    }
    for (size_t i = 0; i < abc_object_child_count(object) && w->reads > 0 && depth < 40; i++)
        read_object(w, abc_object_child(object, i), depth + 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, FUZZ_MEMORY};
    const toile_allocator ours = fuzz_allocator(&limit);
    const abc_allocator allocator = {ours.allocate, ours.release, ours.user};
    abc_reader_options options = abc_reader_default_options();
    abc_archive_info info;
    double start, end;
    walk w = {.reads = READS};
    options.allocator = &allocator;
    options.z_up = size & 1;
    if (abc_reader_open_memory(data, size, &options, &w.reader) >= 0) {
        abc_reader_info(w.reader, &info);
        abc_reader_time_range(w.reader, &start, &end);
        for (size_t i = 0; i < abc_reader_time_sampling_count(w.reader); i++)
            abc_time_near(abc_reader_time_sampling(w.reader, i), 10, 0.1);
        read_object(&w, abc_reader_top(w.reader), 0);
    }
    abc_reader_close(w.reader);
    fuzz_check_memory(NULL, &limit);
    return 0;
}

/* ---- seeds ---- */

static void write_mesh(abc_writer *writer, abc_wobject *parent, const char *name, uint32_t sampling,
                       int frames, bool changing) {
    static const float points[] = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0.5f, 0.5f, 1};
    static const float uvs[] = {0, 0, 1, 0, 1, 1, 0, 1};
    static const int32_t counts[] = {4, 3}, corners[] = {0, 1, 2, 3, 0, 1, 4}, set[] = {1};
    static const uint32_t uv_corners[] = {0, 1, 2, 3, 0, 1, 2};
    float moved[15];
    abc_wmesh *mesh = NULL;
    abc_wparam *param = NULL;
    abc_wfaceset *faces = NULL;
    abc_wmesh_create(parent, &(abc_wmesh_def){name, sampling, "map"}, &mesh);
    for (int f = 0; f < frames; f++) {
        for (int i = 0; i < 15; i++)
            moved[i] = points[i] + 0.25f * (float)f;
        abc_mesh_data data = {.positions = moved,
                              .point_count = 5,
                              .face_counts = counts,
                              .face_count = changing && f % 2 ? 1 : 2,
                              .face_indices = corners,
                              .corner_count = changing && f % 2 ? 4 : 7,
                              .velocities = points};
        if (!changing)
            data.uvs = (abc_values){uvs, 4, uv_corners, 7, ABC_SCOPE_CORNER};
        abc_wmesh_write(mesh, &data);
        if (f == 0)
            abc_wmesh_add_param(mesh,
                                &(abc_wparam_def){.name = "Pref",
                                                  .pod = ABC_FLOAT,
                                                  .extent = 3,
                                                  .scope = ABC_SCOPE_POINT,
                                                  .interpretation = "vector",
                                                  .turn = ABC_TURN_POINT},
                                &param);
        abc_wparam_write(param, points, 5, NULL, 0);
    }
    abc_wmesh_add_faceset(mesh, "front", true, 0, &faces);
    abc_wfaceset_write(faces, set, changing ? 0 : 1);
    (void)writer;
}

void fuzz_seeds(fuzz_put *put, void *user) {
    for (int kind = 0; kind < 4; kind++) {
        const char *path = fuzz_scratch();
        static const double cycle[] = {0, 0.01}, all[] = {0, 0.1, 0.3, 0.35};
        const abc_time_sampling samplings[] = {{ABC_UNIFORM, 1 / 24.0, cycle, 1, 0},
                                               {ABC_CYCLIC, 1 / 24.0, cycle, 2, 0},
                                               {ABC_ACYCLIC, 0, all, 4, 0}};
        double matrix[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
        abc_writer_options options = abc_writer_default_options();
        abc_writer *writer = NULL;
        abc_wxform *xform = NULL;
        uint32_t sampling = 0;
        options.no_sync = true;
        options.application = "seed";
        options.fps = 24;
        abc_writer_open(path, &options, &writer);
        abc_writer_add_time_sampling(writer, &samplings[kind % 3], &sampling);
        abc_wxform_create(abc_writer_top(writer), "root", sampling, &xform);
        for (int f = 0; f < 4; f++) {
            matrix[12] = f;
            abc_wxform_write(xform, matrix, true);
        }
        write_mesh(writer, abc_wxform_object(xform), "mesh", sampling, 4, kind == 3);
        const abc_wproperty_def text = {"text", ABC_ARRAY, kind & 1 ? ABC_WSTRING : ABC_STRING,
                                        1,      0,         {NULL, 0}};
        abc_wproperty *property = NULL;
        abc_wproperty_create(abc_wobject_properties(abc_writer_top(writer)), &text, &property);
        abc_wproperty_write(property, (const char *const[]){"one", "zwei", ""}, 3);
        abc_writer_finish(writer);
        abc_writer_close(writer);
        fuzz_put_file(path, put, user);
    }
}
