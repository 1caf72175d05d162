/* Scenes that take garments and colliders straight from Alembic archives: transforms, interpolation, faces
 * that change, panels and material coordinates, refusals, and whatever the shared corpus has. Archives are
 * made here with libabc. */
#include "check.h"

#include "abc.h"
#include "scene.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[200];
static toile_error error;

static const char *path_of(const char *name) {
    static char paths[4][400];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static toile_scene *load(const char *text) {
    toile_scene *scene = NULL;
    error = (toile_error){0};
    toile_status status =
        toile_scene_load_text(NULL, text, strlen(text), path_of("scene.json"), NULL, 0, &scene, &error);
    CHECK((status >= 0) == (scene != NULL), "status %d", status);
    return scene;
}

/* ---- archives ---- */

static const float POINTS[] = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0.5f, 0.5f, 1};
static const int32_t COUNTS[] = {4, 3, 3, 3, 3}, CORNERS[] = {3, 2, 1, 0, 0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4};

typedef struct made {
    abc_writer *writer;
    abc_wobject *parent;
    uint32_t sampling;
} made;

static made begin(const char *name, abc_time_kind kind, bool z_up) {
    static const double times[] = {0, 0.01, 0.5};
    abc_writer_options options = abc_writer_default_options();
    made m = {0};
    options.no_sync = true;
    options.z_up = z_up;
    CHECK(abc_writer_open(path_of(name), &options, &m.writer) >= 0, "%s", abc_writer_message(m.writer));
    const abc_time_sampling sampling = {kind, 1 / 24.0, times,
                                        kind == ABC_UNIFORM  ? 1
                                        : kind == ABC_CYCLIC ? 2
                                                             : 3,
                                        0};
    abc_writer_add_time_sampling(m.writer, &sampling, &m.sampling);
    m.parent = abc_writer_top(m.writer);
    return m;
}

static void end(made *m) {
    CHECK(abc_writer_finish(m->writer) >= 0, "%s", abc_writer_message(m->writer));
    abc_writer_close(m->writer);
}

static abc_wmesh *pyramid(made *m, const char *name, int samples, bool changing) {
    abc_wmesh *mesh = NULL;
    float moved[15];
    CHECK(abc_wmesh_create(m->parent, &(abc_wmesh_def){name, m->sampling, NULL}, &mesh) >= 0, "%s",
          abc_writer_message(m->writer));
    for (int f = 0; f < samples; f++) {
        for (int i = 0; i < 15; i++)
            moved[i] = POINTS[i] + (i % 3 == 0 ? (float)f : 0);
        const abc_mesh_data data = {.positions = moved,
                                    .point_count = 5,
                                    .face_counts = COUNTS,
                                    .face_count = changing && f % 2 ? 3 : 5,
                                    .face_indices = CORNERS,
                                    .corner_count = changing && f % 2 ? 10 : 16};
        CHECK(abc_wmesh_write(mesh, &data) >= 0, "%s", abc_writer_message(m->writer));
    }
    return mesh;
}

static void go_below(made *m, const char *name, int samples, double (*entry)(int sample, int k),
                     bool inherits) {
    abc_wxform *xform = NULL;
    double matrix[16];
    abc_wxform_create(m->parent, name, m->sampling, &xform);
    for (int f = 0; f < samples; f++) {
        for (int k = 0; k < 16; k++)
            matrix[k] = entry(f, k);
        abc_wxform_write(xform, matrix, inherits);
    }
    m->parent = abc_wxform_object(xform);
}

static double moving(int sample, int k) { /* 2 along y per sample */
    return k == 13 ? 2.0 * sample : k % 5 == 0;
}
static double doubled(int sample, int k) {
    (void)sample;
    return k == 15 ? 1 : k % 5 == 0 ? 2 : 0;
}
static double mirrored(int sample, int k) {
    (void)sample;
    return k == 0 ? -1 : k % 5 == 0;
}

/* ---- colliders ---- */

typedef struct mesh {
    int vertices, triangles;
    const double *x;
    const int *t;
} mesh;

static mesh mesh_at(toile_scene *scene, int collider, int frame) {
    mesh m = {0};
    CHECK(toile_scene_prepare(scene, frame, &error) >= 0, "%s", error.message);
    CHECK(toile_scene_collider_mesh(scene, collider, &m.vertices, &m.x, &m.triangles, &m.t, &error) >= 0,
          "%s", error.message);
    return m;
}

static bool near(const double *p, double x, double y, double z) {
    return fabs(p[0] - x) < 1e-6 && fabs(p[1] - y) < 1e-6 && fabs(p[2] - z) < 1e-6;
}

/* Six times the volume: positive when faces look outwards. */
static double volume(const mesh *m) {
    double sum = 0;
    for (int i = 0; i < m->triangles; i++) {
        const double *a = m->x + 3 * m->t[3 * i], *b = m->x + 3 * m->t[3 * i + 1],
                     *c = m->x + 3 * m->t[3 * i + 2];
        sum += a[0] * (b[1] * c[2] - b[2] * c[1]) + a[1] * (b[2] * c[0] - b[0] * c[2]) +
               a[2] * (b[0] * c[1] - b[1] * c[0]);
    }
    return sum;
}

#define SCENE(colliders)                                                                                     \
    "{\"toile\":1,\"fps\":24,\"frames\":[0,9],\"garments\":[{\"grid\":{\"size\":[1,1],\"resolution\":3},"    \
    "\"place\":{\"origin\":[0,0,50]}}],"                                                                     \
    "\"colliders\":[" colliders "]}"

static void test_hierarchy(void) {
    made m = begin("tree.abc", ABC_UNIFORM, true);
    go_below(&m, "root", 4, moving, true);
    go_below(&m, "large", 1, doubled, true);
    pyramid(&m, "body", 4, false);
    end(&m);
    toile_scene *scene =
        load(SCENE("{\"shape\":\"mesh\",\"abc\":\"tree.abc\",\"scale\":0.5,\"place\":{\"origin\":[0,0,1]}}"));
    CHECK(scene, "%s", error.message);
    if (!scene)
        return;
    /* Twice as large, then moved, then halved by the scene, then placed; the pyramid itself goes along x. */
    for (int frame = 0; frame < 6; frame++) {
        mesh got = mesh_at(scene, 0, frame);
        int f = frame < 3 ? frame : 3;
        CHECK(got.vertices == 5 && got.triangles == 6, "%d %d", got.vertices, got.triangles);
        CHECK(near(got.x, f, f, 1) && near(got.x + 12, f + 0.5, f + 0.5, 2), "frame %d: %g %g %g", frame,
              got.x[0], got.x[1], got.x[2]);
        CHECK(fabs(volume(&got) - 2) < 1e-6, "%g", volume(&got));
    }
    toile_scene_free(scene);
    /* Part of the tree, a frame later, and what is Y up. */
    scene = load(SCENE(
        "{\"shape\":\"mesh\",\"abc\":\"tree.abc\",\"object\":\"/root/large/body\",\"frame_offset\":1}"));
    CHECK(scene && near(mesh_at(scene, 0, 0).x, 2, 2, 0), "%s", error.message);
    toile_scene_free(scene);
    scene = load(SCENE("{\"shape\":\"mesh\",\"abc\":\"tree.abc\",\"up\":\"z\"}"));
    CHECK(scene && near(mesh_at(scene, 0, 1).x + 12, 3, 2, -3), "%s", error.message);
    toile_scene_free(scene);
    CHECK(!load(SCENE("{\"shape\":\"mesh\",\"abc\":\"tree.abc\",\"object\":\"/root/x\"}")) &&
              strstr(error.message, "/root/large/body"),
          "%s", error.message);
}

static void test_mirror_and_inherit(void) {
    made m = begin("mirror.abc", ABC_UNIFORM, true);
    go_below(&m, "far", 4, moving, true);
    go_below(&m, "own", 1, mirrored, false); /* does not inherit */
    pyramid(&m, "body", 1, false);
    end(&m);
    toile_scene *scene = load(SCENE("{\"shape\":\"mesh\",\"abc\":\"mirror.abc\"}"));
    CHECK(scene, "%s", error.message);
    if (scene) {
        mesh got = mesh_at(scene, 0, 3);
        CHECK(near(got.x + 3, -1, 0, 0) && volume(&got) > 1.9, "%g %g", got.x[3], volume(&got));
    }
    toile_scene_free(scene);
}

/* Samples at 0, 0.01, 0.5 s (acyclic) and at 0, 0.01, 1/24, ... (cyclic) seen at frames of 24 per second. */
static void test_between_samples(void) {
    for (int kind = ABC_CYCLIC; kind <= ABC_ACYCLIC; kind++) {
        made m = begin("times.abc", (abc_time_kind)kind, true);
        pyramid(&m, "body", 3, false);
        end(&m);
        toile_scene *scene = load(SCENE("{\"shape\":\"mesh\",\"abc\":\"times.abc\"}"));
        CHECK(scene, "%s", error.message);
        if (!scene)
            continue;
        double expected = kind == ABC_CYCLIC ? 2 : 1 + (1 / 24.0 - 0.01) / 0.49;
        mesh got = mesh_at(scene, 0, 1);
        CHECK(fabs(got.x[0] - expected) < 1e-6, "kind %d: %g, not %g", kind, got.x[0], expected);
        got = mesh_at(scene, 0, 0);
        CHECK(near(got.x, 0, 0, 0), "%g", got.x[0]);
        toile_scene_free(scene);
    }
}

static void test_changing_faces(void) {
    made m = begin("open.abc", ABC_UNIFORM, true);
    pyramid(&m, "body", 6, true);
    end(&m);
    toile_scene *scene = load(SCENE("{\"shape\":\"mesh\",\"abc\":\"open.abc\"}"));
    CHECK(scene, "%s", error.message);
    for (int frame = 0; scene && frame < 6; frame++) {
        mesh got = mesh_at(scene, 0, frame);
        CHECK(got.triangles == 6, "%d", got.triangles);
        double far = 0;
        int different = 1;
        for (int t = 0; t < got.triangles; t++) {
            for (int k = 0; k < 9; k += 3)
                far = fmax(far, got.x[9 * t + k]);
            different += t > 0 && memcmp(got.x + 9 * t, got.x + 9 * (t - 1), 9 * sizeof(double)) != 0;
        }
        CHECK(fabs(far - (frame + 1)) < 1e-6, "frame %d reaches %g", frame, far);
        CHECK(different == (frame % 2 ? 4 : 6), "frame %d has %d triangles", frame, different);
        if (frame > 0)
            CHECK(toile_advance(toile_scene_world(scene), 1 / 24.0) >= 0, "%s",
                  toile_message(toile_scene_world(scene)));
    }
    toile_scene_free(scene);
    CHECK(!load("{\"toile\":1,\"garments\":[{\"abc\":\"open.abc\",\"uv\":\"flat\"}]}") &&
              strstr(error.message, "faces change"),
          "%s", error.message);
}

/* ---- garments ---- */

static void write_cloth(void) {
    static const float points[] = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 2, 0, 0, 2, 1, 0},
                       uvs[] = {0, 0, 1, 0, 1, 1, 0, 1, 2, 0, 2, 1};
    static const int32_t counts[] = {4, 3, 3}, corners[] = {0, 1, 2, 3, 1, 4, 5, 1, 5, 2}, left[] = {0},
                         right[] = {1, 2};
    made m = begin("cloth.abc", ABC_UNIFORM, true);
    abc_wmesh *mesh = NULL;
    abc_wfaceset *set = NULL;
    uint32_t index[10];
    for (int i = 0; i < 10; i++)
        index[i] = (uint32_t)corners[i];
    abc_wmesh_create(m.parent, &(abc_wmesh_def){"cloth", m.sampling, "UVMap"}, &mesh);
    const abc_mesh_data data = {
        points, 6, counts, 3, corners, 10, NULL, {uvs, 6, index, 10, ABC_SCOPE_CORNER}, {0}};
    abc_wmesh_write(mesh, &data);
    abc_wmesh_add_faceset(mesh, "left", true, 0, &set);
    abc_wfaceset_write(set, left, 1);
    abc_wmesh_add_faceset(mesh, "right", true, 0, &set);
    abc_wfaceset_write(set, right, 2);
    abc_wmesh_add_faceset(mesh, "material_x", false, 0, &set);
    abc_wfaceset_write(set, right, 2);
    end(&m);
}

static void test_garment(void) {
    write_cloth();
    toile_scene *scene = load("{\"toile\":1,\"fps\":24,\"frames\":[1,3],\"garments\":[{\"name\":\"g\","
                              "\"abc\":\"cloth.abc\",\"panels\":{"
                              "\"right\":{\"fabric\":\"denim\"}}}]}");
    CHECK(scene, "%s", error.message);
    if (scene) {
        toile_world *world = toile_scene_world(scene);
        double uv[24], x[18];
        int panels[4];
        CHECK(toile_panel_count(world, 0) == 2 && strcmp(toile_panel_name(world, 0, 1), "right") == 0,
              "%d panels", toile_panel_count(world, 0));
        CHECK(toile_triangle_count(world, 0) == 4 && toile_vertex_count(world, 0) == 6, "%d",
              toile_triangle_count(world, 0));
        CHECK(toile_get_triangles(world, 0, NULL, panels, uv) >= 0 && toile_get_positions(world, 0, x) >= 0,
              "%s", toile_message(world));
        CHECK(panels[0] == 0 && panels[1] == 0 && panels[2] == 1 && panels[3] == 1, "%d %d", panels[0],
              panels[3]);
        CHECK(near(x + 15, 2, 1, 0) && uv[18] + uv[20] + uv[22] == 4, "%g %g", x[15],
              uv[18] + uv[20] + uv[22]);
        CHECK(toile_scene_prepare(scene, 2, &error) >= 0 && toile_advance(world, 1 / 24.0) >= 0, "%s",
              toile_message(world));
    }
    toile_scene_free(scene);
    CHECK(!load("{\"toile\":1,\"garments\":[{\"abc\":\"cloth.abc\",\"panels\":{\"rigth\":{}}}]}") &&
              strstr(error.message, "right"),
          "%s", error.message);
}

/* ---- memory that runs out ---- */

typedef struct meter {
    long calls, fail_at, live;
} meter;

static void *meter_allocate(void *user, size_t size) {
    meter *m = user;
    void *block = m->calls++ == m->fail_at ? NULL : malloc(size);
    m->live += block != NULL;
    return block;
}

static void meter_release(void *user, void *pointer) {
    ((meter *)user)->live -= pointer != NULL;
    free(pointer);
}

/* Each allocation fails in turn, from the reading of the archives to a frame in between two samples: for a collider in a
 * moving tree, one whose faces change, and a garment with panels. */
static void test_no_memory(void) {
    made m = begin("tree.abc", ABC_UNIFORM, true);
    go_below(&m, "root", 4, moving, true);
    pyramid(&m, "body", 4, false);
    end(&m);
    m = begin("open.abc", ABC_UNIFORM, true);
    pyramid(&m, "body", 6, true);
    end(&m);
    write_cloth();
    const char *text = "{\"toile\":1,\"fps\":25,\"frames\":[0,9],\"garments\":[{\"abc\":\"cloth.abc\","
                       "\"panels\":{\"right\":{\"fabric\":\"denim\"}},\"place\":{\"origin\":[0,0,50]}}],\"colliders\":["
                       "{\"shape\":\"mesh\",\"abc\":\"tree.abc\"},{\"shape\":\"mesh\",\"abc\":\"open.abc\"}]}";
    toile_status status = TOILE_NO_MEMORY;
    long n = 0;
    for (; status == TOILE_NO_MEMORY && n < 100000; n++) {
        meter counts = {.fail_at = n};
        const toile_hooks hooks = {.allocate = meter_allocate, .release = meter_release, .user = &counts};
        toile_scene *scene = NULL;
        error = (toile_error){0};
        status = toile_scene_load_text(&hooks, text, strlen(text), path_of("scene.json"), NULL, 0, &scene, &error);
        for (int frame = 0; frame < 3 && status >= 0; frame++) {
            status = toile_scene_prepare(scene, frame, &error);
            if (status >= 0 && frame > 0) {
                status = toile_advance(toile_scene_world(scene), 1 / 25.0);
                if (status < 0)
                    snprintf(error.message, sizeof error.message, "%s", toile_message(toile_scene_world(scene)));
            }
        }
        for (int i = 0; i < 2 && status >= 0; i++) {
            mesh got;
            status = toile_scene_collider_mesh(scene, i, &got.vertices, &got.x, &got.triangles, &got.t, &error);
        }
        toile_scene_free(scene);
        if (counts.live != 0 || (status < 0 && (status != TOILE_NO_MEMORY || !error.message[0])) ||
            (counts.calls > n && status >= 0)) {
            CHECK(false, "call %ld: status %d, %ld blocks live: %s", n, status, counts.live, error.message);
            break;
        }
    }
    CHECK(status >= 0 && n > 100, "after %ld failures: %s", n, error.message);
    printf("  %ld allocations failed in turn\n", n - 1);
}

/* ---- refusals and the corpus ---- */

static void test_refusals(void) {
    FILE *file = fopen(path_of("old.abc"), "wb");
    fputs("\211HDF\r\n\032\n and more", file);
    fclose(file);
    CHECK(!load(SCENE("{\"shape\":\"mesh\",\"abc\":\"old.abc\"}")) && strstr(error.message, "abcconvert"),
          "%s", error.message);
    CHECK(!load(SCENE("{\"shape\":\"mesh\",\"abc\":\"none.abc\"}")) && error.status == TOILE_IO, "%s",
          error.message);
    CHECK(!load(SCENE("{\"shape\":\"mesh\",\"obj\":\"a.obj\",\"object\":\"/x\"}")) &&
              strstr(error.message, "abc"),
          "%s", error.message);
    CHECK(!load("{\"toile\":1,\"garments\":[{\"abc\":\"a.abc\",\"obj\":\"a.obj\"}]}") &&
              strstr(error.message, "only one of them"),
          "%s", error.message);
    made m = begin("empty.abc", ABC_UNIFORM, true);
    end(&m);
    CHECK(!load(SCENE("{\"shape\":\"mesh\",\"abc\":\"empty.abc\"}")) && strstr(error.message, "no mesh"),
          "%s", error.message);
}

static void test_corpus(void) {
    const char *shared = getenv("TOILE_SHARED") ? getenv("TOILE_SHARED") : "../shared";
    int taken = 0, refused = 0;
    static const char *const parts[] = {"made", "wild", "malformed", "malformed-upstream"};
    for (int i = 0; i < 4; i++) {
        char list[600], text[2000];
        snprintf(list, sizeof list, "%s/corpus/abc/%s", shared, parts[i]);
        DIR *open = opendir(list);
        for (struct dirent *entry; open && (entry = readdir(open));) {
            if (!strstr(entry->d_name, ".abc"))
                continue;
            char *whole = realpath(list, NULL);
            snprintf(text, sizeof text, SCENE("{\"shape\":\"mesh\",\"scale\":0.001,\"abc\":\"%s/%s\"}"),
                     whole, entry->d_name);
            free(whole);
            toile_scene *scene = load(text);
            for (int frame = 0; scene && frame < 3; frame++)
                if (toile_scene_prepare(scene, frame, &error) < 0)
                    CHECK(error.message[0], "no message");
            scene ? taken++ : refused++;
            CHECK(scene || error.message[0], "%s: refused without a word", entry->d_name);
            toile_scene_free(scene);
        }
        if (open)
            closedir(open);
    }
    if (taken + refused == 0)
        SKIP("no corpus in %s (set TOILE_SHARED)", shared);
    else
        printf("  corpus as colliders: %d taken, %d refused\n", taken, refused);
    if (taken + refused)
        CHECK(taken >= 20, "only %d of the corpus could be taken", taken);
}

int main(int argc, char **argv) {
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%.100s/test_scene_abc_XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return 1;
    RUN(test_hierarchy);
    RUN(test_mirror_and_inherit);
    RUN(test_between_samples);
    RUN(test_changing_faces);
    RUN(test_garment);
    RUN(test_no_memory);
    RUN(test_refusals);
    RUN(test_corpus);
    char command[300];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command))
        return 1;
    FINISH();
}
