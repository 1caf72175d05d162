/* Scene files: good ones load as written, bad ones are refused with file, line, path and advice, and nothing
 * crashes, hangs or leaks on garbage or without memory. Only scene.h and toile.h are used. */
#include "scene.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int passed, failed;
static char folder[64];

#define CHECK(condition, ...)                                     \
    do {                                                          \
        if (condition) {                                          \
            passed++;                                             \
        } else {                                                  \
            failed++;                                             \
            printf("FAILED %s:%d: %s: ", __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__);                                  \
            printf("\n");                                         \
        }                                                         \
    } while (0)

/* ---- memory that counts, is limited, and can fail ---- */

typedef struct meter {
    long long live;
    long calls, fail_at;            /* fail_at: number of the call that fails, -1 for none */
    size_t bytes, most;
} meter;

static void *meter_allocate(void *user, size_t size) {
    meter *m = user;
    if (m->calls++ == m->fail_at || size > m->most || m->bytes + size > m->most)
        return NULL;
    size_t *block = malloc(size + 64);
    if (!block)
        return NULL;
    *block = size;
    m->live++;
    m->bytes += size;
    return (char *)block + 64;
}

static void meter_release(void *user, void *pointer) {
    meter *m = user;
    size_t *block = (size_t *)(void *)((char *)pointer - 64);
    m->live--;
    m->bytes -= *block;
    free(block);
}

static char last_log[512];

static void keep_log(void *user, int level, const char *line) {
    (void)user;
    (void)level;
    snprintf(last_log, sizeof last_log, "%s", line);
}

static toile_hooks hooks_of(meter *m) {
    return (toile_hooks){meter_allocate, meter_release, keep_log, m};
}

/* ---- files ---- */

static const char *path_of(const char *name) {
    static char paths[4][200];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_bytes(const char *name, const void *bytes, size_t size) {
    unlink(path_of(name)); /* some file systems wait for the disk when a file is cut to nothing */
    FILE *file = fopen(path_of(name), "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        printf("cannot write %s\n", path_of(name));
        exit(1);
    }
}

static void write_text(const char *name, const char *text) {
    write_bytes(name, text, strlen(text));
}

/* `text` with its first `find` replaced; a static buffer. */
static const char *replaced(const char *text, const char *find, const char *with) {
    static char result[20000];
    const char *at = strstr(text, find);
    if (!at) {
        printf("the test's text has no \"%s\"\n", find);
        exit(1);
    }
    snprintf(result, sizeof result, "%.*s%s%s", (int)(at - text), text, with, at + strlen(find));
    return result;
}

static toile_scene *load_with(const char *text, const char *const *sets, int set_count, toile_error *error) {
    toile_scene *scene = NULL;
    *error = (toile_error){0};
    write_text("scene.json", text);
    toile_status status = toile_scene_load(NULL, path_of("scene.json"), sets, set_count, &scene, error);
    CHECK((status == TOILE_OK) == (scene != NULL), "status %d", status);
    return scene;
}

static toile_scene *load(const char *text) {
    toile_error error;
    toile_scene *scene = load_with(text, NULL, 0, &error);
    CHECK(scene, "%s", error.message);
    return scene;
}

/* ---- scenes ---- */

/* clang-format off */
static const char GOOD[] =
    "{\n"                                                                                          /* 1 */
    "  \"toile\": 1,\n"                                                                            /* 2 */
    "  \"name\": \"good\", \"description\": \"a \\\"scene\\\" of [tests] {\",\n"                   /* 3 */
    "  \"fps\": 25, \"frames\": [1, 60],\n"                                                        /* 4 */
    "  \"resolution\": 5,\n"                                                                       /* 5 */
    "  \"settings\": {\"cloth_model\": \"springs\", \"gravity\": [0, 0, -9.81],\n"                 /* 6 */
    "    \"time_step\": 0.01},\n"                                                                  /* 7 */
    "  \"fabrics\": {\"mine\": {\"base\": \"cotton\",\n"                                           /* 8 */
    "    \"density\": 0.2}},\n"                                                                    /* 9 */
    "  \"garments\": [\n"                                                                          /* 10 */
    "    {\"name\": \"sheet\", \"fabric\": \"mine\",\n"                                            /* 11 */
    "     \"grid\": {\"size\": [2,\n"                                                              /* 12 */
    "        1], \"diagonals\": \"alternate\"},\n"                                                 /* 13 */
    "     \"place\": {\"origin\": [0, 0, 1], \"rotate\": [90, 0, 0]}},\n"                          /* 14 */
    "    {\"name\": \"other\",\n"                                                                  /* 15 */
    "     \"grid\": {\"size\": [1, 1], \"resolution\": [3, 4]}, \"place\": {\"origin\": [9, 9, 9]}}],\n"
    "  \"colliders\": [\n"                                                                         /* 17 */
    "    {\"name\": \"ball\", \"shape\": \"sphere\", \"radius\": 0.15, \"friction\": 0.4,\n"       /* 18 */
    "     \"motion\": {\"keys\": [{\"frame\": 1, \"origin\": [0, 0, -3]},\n"                       /* 19 */
    "                             {\"frame\": 11, \"origin\": [1, 0, -3],\n"                       /* 20 */
    "                              \"rotate\": [0, 0, 90]}]}},\n"                                  /* 21 */
    "    {\"shape\": \"box\", \"size\": [1, 2, 3], \"place\": {\"origin\": [0, 0, -5]}}],\n"       /* 22 */
    "  \"pins\": [\n"                                                                              /* 23 */
    "    {\"garment\": \"sheet\",\n"                                                               /* 24 */
    "     \"select\": {\"corners\": [\"u0v1\", \"u1v1\"]},\n"                                      /* 25 */
    "     \"frames\": [1, 30]}]\n"                                                                 /* 26 */
    "}\n";
/* clang-format on */

static void test_good(void) {
    toile_scene *scene = load(GOOD);
    if (!scene)
        return;
    toile_world *world = toile_scene_world(scene);
    double xyz[75], numbers[3];
    int count;
    CHECK(strcmp(toile_scene_name(scene), "good") == 0, "%s", toile_scene_name(scene));
    CHECK(toile_scene_fps(scene) == 25, "fps");
    CHECK(toile_scene_first_frame(scene) == 1 && toile_scene_last_frame(scene) == 60, "frames");
    CHECK(toile_garment_count(world) == 2, "garments");
    CHECK(toile_vertex_count(world, 0) == 15, "5 x 3 of a 2 x 1 m sheet, not %d",
          toile_vertex_count(world, 0));
    CHECK(toile_vertex_count(world, 1) == 12, "3 x 4, not %d", toile_vertex_count(world, 1));
    CHECK(toile_get_numbers(world, "time_step", numbers, &count) == TOILE_OK && numbers[0] == 0.01,
          "time step");
    CHECK(toile_get_numbers(world, "cloth_model", numbers, &count) == TOILE_OK && numbers[0] == 1,
          "cloth model");

    /* Turned by 90 degrees about x, the sheet stands in the xz plane. */
    CHECK(toile_get_positions(world, 0, xyz) == TOILE_OK, "positions");
    CHECK(fabs(xyz[0] + 1) < 1e-12 && fabs(xyz[1]) < 1e-12 && fabs(xyz[2] - 0.5) < 1e-12, "%g %g %g", xyz[0],
          xyz[1], xyz[2]);
    CHECK(fabs(xyz[42] - 1) < 1e-12 && fabs(xyz[43]) < 1e-12 && fabs(xyz[44] - 1.5) < 1e-12, "%g %g %g",
          xyz[42], xyz[43], xyz[44]);
    CHECK(toile_scene_collider_count(scene) == 2, "colliders");
    CHECK(strcmp(toile_scene_collider_name(scene, 1), "collider_1") == 0, "%s",
          toile_scene_collider_name(scene, 1));
    toile_scene_free(scene);

    /* The least there can be, with a byte order mark, and a key written with an escape. */
    scene = load("\xef\xbb\xbf{\"toile\": 1, \"gar\\u006dents\": [{\"grid\": {\"size\": [1, 1], "
                 "\"resolution\": 3}}]}");
    CHECK(scene && strcmp(toile_scene_name(scene), "scene") == 0, "name of the file");
    CHECK(scene && toile_scene_fps(scene) == 24 && toile_scene_last_frame(scene) == 100, "defaults");
    toile_scene_free(scene);
}

/* ---- refusals ---- */

typedef struct bad {
    const char *find, *with;
    const char *message;            /* what the message must contain */
} bad;

static const bad BAD[] = {
    {"\"toile\": 1", "\"toile\": 2", "scene.json:2: toile: found 2; this program reads scene format 1"},
    {"\"toile\": 1,", "", "scene.json:1: \"toile\" is missing"},
    {"\"fps\": 25", "\"fps\": 0", "scene.json:4: fps: found 0; frames per second are greater than 0"},
    {"\"fps\": 25", "\"fps\": 1e999", "scene.json:4: not a scene in JSON: real number overflow"},
    {"\"fps\": 25", "\"fps\": NaN", "scene.json:4: not a scene in JSON"},
    {"\"fps\": 25", "\"fps\": 25, \"fps\": 25", "scene.json:4: not a scene in JSON: duplicate object key"},
    {"\"fps\": 25", "\"fsp\": 25", "scene.json:4: fsp: unknown key; did you mean \"fps\"?"},
    {"[1, 60]", "[60, 1]", "scene.json:4: frames: found [60, 1]; the first frame is not after the last"},
    {"[1, 60]", "[1.5, 60]", "scene.json:4: frames[0]: found 1.5; a frame is a whole number"},
    {"[1, 60]", "[1]", "scene.json:4: frames: found a list of 1; use [first, last]"},
    {"\"resolution\": 5", "\"resolution\": 5000", "scene.json:5: resolution: found 5000; a resolution is"},
    {"\"resolution\": 5", "\"resolution\": [3, 3]", "scene.json:5: resolution: found a list of 2"},
    {"0.01}", "7}", "scene.json:7: settings.time_step: found 7; use a number from 1e-06 to 0.1 s"},
    {"0.01}", "0.01, \"time_step_min\": 0.05}", "scene.json:7: settings.time_step_min: 0.05 s is longer"},
    {"time_step", "time_stop", "scene.json:7: settings.time_stop: unknown key; did you mean \"time_step\"?"},
    {"\"springs\"", "\"spring\"",
     "scene.json:6: settings.cloth_model: found \"spring\"; use \"continuum\" or"},
    {"[0, 0, -9.81]", "[0, 0]", "scene.json:6: settings.gravity: found a list of 2; use [x, y, z]"},
    {"[0, 0, -9.81]", "[0, 0, -1e9]", "scene.json:6: settings.gravity[2]: found -1e+09; use a number from"},
    {"\"cotton\"", "\"cotten\"",
     "scene.json:8: fabrics.mine.base: found \"cotten\"; did you mean \"cotton\"?"},
    {"\"density\": 0.2", "\"density\": -1",
     "scene.json:9: fabrics.mine.density: found -1; use a number from"},
    {"\"fabric\": \"mine\"", "\"fabric\": \"min\"",
     "scene.json:11: garments[0].fabric: found \"min\"; did you mean"},
    {"\"fabric\": \"mine\"", "\"fabric\": {\"bass\": 1}",
     "scene.json:11: garments[0].fabric.bass: unknown key"},
    {"\"fabric\": \"mine\"", "\"fabric\": 4",
     "scene.json:11: garments[0].fabric: found 4; use the name of a fabric"},
    {"        1]", "        -1]", "scene.json:13: garments[0].grid.size[1]: found -1; a size is in metres"},
    {"\"alternate\"", "\"both\"",
     "scene.json:13: garments[0].grid.diagonals: found \"both\"; use \"alternate\""},
    {"\"origin\": [0, 0, 1]", "\"origin\": [0, 0, \"1\"]", "garments[0].place.origin[2]: found \"1\""},
    {"\"name\": \"other\"", "\"name\": \"sheet\"",
     "scene.json:15: garments[1].name: found \"sheet\"; garments[0] "
     "already has this name"},
    {"\"name\": \"other\"", "\"name\": \"a/b\"",
     "scene.json:15: garments[1].name: found \"a/b\"; a name has"},
    {"\"name\": \"other\"", "\"name\": \"\"", "scene.json:15: garments[1].name: found \"\"; a name has"},
    {"\"name\": \"other\"", "\"name\": \"o\", \"obj\": \"x.obj\"",
     "scene.json:15: garments[1].obj: give \"grid\", \"obj\", \"abc\", \"mesh\" or \"panels\", only one"},
    {"\"name\": \"other\"", "\"name\": \"o\", \"uv\": \"flat\"",
     "scene.json:15: garments[1].uv: goes only with"},
    {"\"name\": \"other\"", "\"name\": \"o\", \"subdivide\": 1",
     "scene.json:15: garments[1].subdivide: goes only with \"obj\", \"abc\" or \"mesh\""},
    {"\"name\": \"other\"", "\"name\": \"o\", \"subdivide\": 5",
     "scene.json:15: garments[1].subdivide: found 5; a mesh is subdivided 0 to 4 times"},
    {"[3, 4]", "[3, 1]", "scene.json:16: garments[1].grid.resolution[1]: found 1"},
    {"[3, 4]", "\"3\"",
     "scene.json:16: garments[1].grid.resolution: found \"3\"; use the number of particles"},
    {"\"grid\": {\"size\": [1, 1], \"resolution\": [3, 4]}", "\"obj\": \"none.obj\"",
     "scene.json:16: garments[1].obj: cannot open"},
    {"\"grid\": {\"size\": [1, 1], \"resolution\": [3, 4]},", "",
     "scene.json:15: garments[1]: needs \"grid\", \"obj\", \"abc\", \"mesh\" or \"panels\""},
    {"\"sphere\"", "\"spere\"",
     "scene.json:18: colliders[0].shape: found \"spere\"; did you mean \"sphere\"?"},
    {"\"radius\": 0.15", "\"size\": 0.15",
     "scene.json:18: colliders[0].size: unknown key; did you mean \"side\"? known: radius, shape"},
    {"\"radius\": 0.15,", "", "scene.json:18: colliders[0]: \"radius\" is missing"},
    {"\"friction\": 0.4", "\"friction\": 0.4, \"friction_static\": 0.5",
     "colliders[0].friction_static: give"},
    {"\"friction\": 0.4", "\"friction_static\": 0.2, \"friction_kinetic\": 0.4",
     "scene.json:18: colliders[0].friction_kinetic: found 0.4; it is not greater than friction_static, 0.2"},
    {"\"frame\": 11", "\"frame\": 1",
     "scene.json:20: colliders[0].motion.keys[1].frame: found 1 after 1; frames"},
    {"\"frame\": 11,", "", "scene.json:20: colliders[0].motion.keys[1]: \"frame\" is missing"},
    {"[0, 0, 90]", "[0, 0, null]",
     "scene.json:21: colliders[0].motion.keys[1].rotate[2]: found null; an angle"},
    {"\"shape\": \"box\", \"size\": [1, 2, 3]", "\"shape\": \"mesh\"",
     "colliders[1]: needs \"obj\", \"obj_sequence\", \"abc\" or \"mesh\""},
    {"\"shape\": \"box\", \"size\": [1, 2, 3]", "\"shape\": \"mesh\", \"obj_sequence\": \"b_##.obj\"",
     "scene.json:22: colliders[1].obj_sequence: there is no"},
    {"\"shape\": \"box\", \"size\": [1, 2, 3]", "\"shape\": \"mesh\", \"obj_sequence\": \"b.obj\"",
     "scene.json:22: colliders[1].obj_sequence: found \"b.obj\"; a sequence has one group of #"},
    {"\"garment\": \"sheet\"", "\"garment\": \"shet\"",
     "scene.json:24: pins[0].garment: found \"shet\"; did you mean "
     "\"sheet\"? known: sheet, other"},
    {"\"u0v1\"", "\"u0v2\"", "scene.json:25: pins[0].select.corners[0]: found \"u0v2\"; use \"u0v0\","},
    {"\"corners\": [\"u0v1\", \"u1v1\"]", "\"vertices\": [0, 15]",
     "scene.json:25: pins[0].select.vertices[1]: found 15; "
     "garment \"sheet\" has vertices 0 to 14"},
    {"\"corners\": [\"u0v1\", \"u1v1\"]", "\"vertices\": [-1]",
     "pins[0].select.vertices[0]: found -1; a vertex"},
    {"\"corners\": [\"u0v1\", \"u1v1\"]", "\"within\": 1", "pins[0].select: needs \"corners\", \"edges\""},
    {"\"corners\": [\"u0v1\", \"u1v1\"]", "\"box\": [[5, 5, 5], [6, 6, 6]]",
     "scene.json:25: pins[0].select: selects none of the 15 vertices of \"sheet\", which starts between "
     "[-1, "},
    {"\"corners\": [\"u0v1\", \"u1v1\"]", "\"box\": [[5, 5, 5], [6, 4, 6]]",
     "pins[0].select.box: found 5 to 4 along y"},
    {"\"corners\": [\"u0v1\", \"u1v1\"]",
     "\"box\": [[5, 5, 5], [6, 4, 6]], \"sphere\": {\"center\": [0, 0, 0], "
     "\"radius\": 0}",
     "pins[0].select.sphere.radius: found 0; a size"},
    {"\"frames\": [1, 30]", "\"frames\": [30, 1]", "scene.json:26: pins[0].frames: found [30, 1]"},
    {"\"frames\": [1, 30]", "\"axes\": \"zx\"", "scene.json:26: pins[0].axes: found \"zx\"; use \"xyz\""},
    {"\"frames\": [1, 30]", "\"follow\": \"bal\"",
     "scene.json:26: pins[0].follow: found \"bal\"; did you mean \"ball\"?"},
    {"\"frames\": [1, 30]", "\"follow\": \"ball\", \"motion\": {\"keys\": [{\"frame\": 1}]}",
     "pins[0].follow: give"},
    {"\"frames\": [1, 30]", "\"motion\": {\"keys\": []}", "pins[0].motion.keys: found a list of 0"},
    {"\"frames\": [1, 30]", "\"grab\": 1", "scene.json:26: pins[0].grab: found 1; use true or false"},
    {"\"name\": \"other\"", "\"name\": \"o\", \"layer\": 0.5",
     "scene.json:15: garments[1].layer: found 0.5; a layer is a whole number"},
    {"\"friction\": 0.4", "\"side\": \"in\"",
     "scene.json:18: colliders[0].side: found \"in\"; use \"outside\", \"inside\" or \"both\""},
    {"\"pins\": [", "\"no_contact\": [[\"sheet\", \"bal\"]], \"pins\": [",
     "no_contact[0][1]: found \"bal\"; there is no garment and no collider of this name"},
    {"\"pins\": [", "\"no_contact\": [[\"ball\", \"sheet\"]], \"pins\": [",
     "no_contact[0][0]: found \"ball\", a collider; the first of a pair is a garment"},
    {"\"pins\": [", "\"no_contact\": [[\"shet\", \"ball\"]], \"pins\": [",
     "no_contact[0][0]: found \"shet\"; did you mean \"sheet\"?"},
    {"\"pins\": [", "\"no_contact\": [[\"sheet\"]], \"pins\": [", "no_contact[0]: found a list of 1; use [\"garment\","},
    {"\"pins\": [", "\"no_contact\": [\"sheet\"], \"pins\": [", "no_contact[0]: found \"sheet\"; use a pair"},
    {"\"pins\": [", "\"no_contact\": [{\"garment\": \"sheet\", \"select\": {\"vertices\": [99]}}], \"pins\": [",
     "no_contact[0].select.vertices[0]: found 99; garment \"sheet\" has vertices 0 to 14"},
    {"\"pins\": [", "\"no_contact\": [{\"garment\": \"sheet\", \"select\": {\"vertices\": [1]}, \"with\": \"air\"}], \"pins\": [",
     "no_contact[0].with: found \"air\"; use \"all\", \"cloth\" or \"colliders\""},
    {"\"pins\": [", "\"pins\": {},\n \"x\": [", "pins: found an object; use a list of at most 1000 pins"},
    {"}]\n}\n", "}]\n} x", "scene.json:27: not a scene in JSON: end of file expected"},
};

static void test_bad(void) {
    toile_error error;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        toile_scene *scene = load_with(replaced(GOOD, BAD[i].find, BAD[i].with), NULL, 0, &error);
        CHECK(!scene && strstr(error.message, BAD[i].message), "\"%s\" for \"%s\" gave: %s", BAD[i].with,
              BAD[i].message, error.message);
        toile_scene_free(scene);
    }
    static const char *const NOT_SCENES[] = {"",   "[]", "1",    "\"x\"",
                                             "{}", "{",  "[[[[", "{\"toile\": 1, \"garments\": []}"};
    for (size_t i = 0; i < sizeof NOT_SCENES / sizeof *NOT_SCENES; i++) {
        toile_scene *scene = load_with(NOT_SCENES[i], NULL, 0, &error);
        CHECK(!scene && error.status == TOILE_INVALID && strstr(error.message, "scene.json:1: "), "%s: %s",
              NOT_SCENES[i], error.message);
        toile_scene_free(scene);
    }
    /* Files that are not there, or not files. */
    toile_scene *scene;
    CHECK(toile_scene_load(NULL, path_of("nothing.json"), NULL, 0, &scene, &error) == TOILE_IO, "%s",
          error.message);
    CHECK(toile_scene_load(NULL, folder, NULL, 0, &scene, &error) == TOILE_IO, "%s", error.message);
    CHECK(mkfifo(path_of("pipe"), 0600) == 0 &&
              toile_scene_load(NULL, path_of("pipe"), NULL, 0, &scene, &error) == TOILE_IO,
          "%s", error.message);
    /* No buffer for the message. */
    write_text("scene.json", "{}");
    CHECK(toile_scene_load(NULL, path_of("scene.json"), NULL, 0, &scene, NULL) == TOILE_INVALID,
          "no message wanted");
}

/* ---- sets ---- */

static void test_sets(void) {
    static const struct {
        const char *set, *message;
    } REFUSED[] = {
        {"settings.time_step=7", "--set settings.time_step: found 7; use a number from 1e-06 to 0.1 s"},
        {"time_step=7", "--set time_step: found 7; use a number"},
        {"garments.sheet.grid={\"size\": [1, -1]}",
         "--set garments.sheet.grid: garments[0].grid.size[1]: found -1; a size"},
        {"garments.sheet.grid.size.1=-1", "--set garments.sheet.grid.size.1: found -1; a size"},
        {"garments.shet.name=x",
         "--set garments.shet.name: garments has no element \"shet\"; use 0 to 1 or a name; did"},
        {"garments.2.name=x", "--set garments.2.name: garments has no element \"2\""},
        {"garments.-1.name=x", "garments has no element \"-1\""},
        {"garments.sheet.name.x=1", "--set garments.sheet.name.x: garments[0].name is a single value"},
        {"garments.sheet.fabric=velvet", "--set garments.sheet.fabric: found \"velvet\"; known: cotton"},
        {"foo.bar=1", "--set foo.bar: foo: unknown key"},
        {"fps=fast", "--set fps: found \"fast\"; frames per second"},
        {"fps=1e999", "--set fps: found \"1e999\""},
        {"colliders.ball.motion.keys.1.frame=0", "--set colliders.ball.motion.keys.1.frame: found 0 after 1"},
        {"fps", "write it as path=value"},
        {"=1", "write it as path=value"},
        {"garments..x=1", "garments has no element \"\""},
        {"settings..x=1", "a part of the path is empty"},
        {"fps.=1", "fps is a single value"},
        {"\xff=1", "not UTF-8"},
        {"name=\xff", "not UTF-8"},
        {"pins.0.frames=[2, 1]", "--set pins.0.frames: found [2, 1]"},
    };
    toile_error error;
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        toile_scene *scene = load_with(GOOD, &REFUSED[i].set, 1, &error);
        CHECK(!scene && strstr(error.message, REFUSED[i].message), "\"%s\" gave: %s", REFUSED[i].set,
              error.message);
        toile_scene_free(scene);
    }

    const char *sets[] = {"resolution=9",
                          "garments.other.name=Cloth.001",
                          "garments.Cloth.001.grid.resolution=7",
                          "settings.gravity=[0, 0, 5]",
                          "preconditioner=block",
                          "colliders.ball.motion.keys.1.origin=[0,1,0]",
                          "colliders.0.motion.interpolation=smooth",
                          "pins.0.select={\"edges\": [\"v1\"]}",
                          "fabrics.yours.base=denim",
                          "garments.Cloth.001.fabric=yours"};
    toile_scene *scene = load_with(GOOD, sets, sizeof sets / sizeof *sets, &error);
    CHECK(scene, "%s", error.message);
    if (scene) {
        toile_world *world = toile_scene_world(scene);
        double numbers[3];
        int count;
        CHECK(toile_vertex_count(world, 0) == 45, "9 x 5, not %d", toile_vertex_count(world, 0));
        CHECK(toile_vertex_count(world, 1) == 49, "7 x 7, not %d", toile_vertex_count(world, 1));
        CHECK(strcmp(toile_garment_name(world, 1), "Cloth.001") == 0, "%s", toile_garment_name(world, 1));
        CHECK(toile_get_numbers(world, "gravity", numbers, &count) == TOILE_OK && numbers[2] == 5, "gravity");
        CHECK(strstr(toile_scene_resolved_json(scene), "\"base\": \"denim\""), "resolved");
        toile_scene_free(scene);
    }
    /* An error in the file keeps its line although there are sets. */
    scene = load_with(replaced(GOOD, "\"radius\": 0.15", "\"radius\": 0"), sets, 1, &error);
    CHECK(!scene && strstr(error.message, "scene.json:18: colliders[0].radius: found 0"), "%s",
          error.message);
    toile_scene_free(scene);
}

/* ---- OBJ files ---- */

static const char MESH_SCENE[] =
    "{\"toile\": 1, \"frames\": [1, 5], \"garments\": [{\"name\": \"m\", \"obj\": \"m.obj\"}],\n"
    " \"colliders\": [], \"pins\": []}\n";
static const char SQUARE[] = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
                             "f 1/1 2/2 3/3\nf 1/1 3/3 4/4\n";

static void test_obj_refused(void) {
    static const struct {
        const char *find, *with, *message;
    } REFUSED[] = {
        {"v 1 0 0\n", "v 1 zero 0\n", "m.obj:2: not a number: \"zero\""},
        {"v 1 0 0\n", "v 1 0x1 0\n", "m.obj:2: not a number: \"0x1\""},
        {"v 1 0 0\n", "v 1 0\n", "m.obj:2: too few numbers; a vertex has x y z"},
        {"v 1 0 0\n", "v 1 nan 0\n", "m.obj:2: not a number: \"nan\""},
        {"v 1 0 0\n", "v 1 1e999 0\n", "m.obj:2: not a finite number: \"1e999\""},
        {"v 1 0 0\n", "v 1e9 0 0\n", "m.obj:2: vertex 2 is 1e+09 m from the origin"},
        {"v 1 0 0\n", "v 1 0 0\nv 5 5 5\nv 6 6 6\n",
         "m.obj:5: 2 vertices are in no face (the first is vertex 5)"},
        {"v 1 0 0\n", "v 0 0 0\n", "m.obj:9: face 1 has no area (three corners in a line)"},
        {"v 1 0 0\n", "v 0.5 0.5 0\n", "m.obj:9: face 1 has no area (three corners in a line)"},
        {"vt 1 0\n", "vt 0.5 0.5\n", "m.obj:9: face 1 has no area in its vt coordinates"},
        {"vt 1 0\n", "vt 1\n", "m.obj:6: too few numbers; a vt has u v"},
        {"f 1/1 3/3 4/4\n", "f 1/1 3/3 4\n", "m.obj:10: face 2 has no vt"},
        {"f 1/1 3/3 4/4\n", "f 1 3 5\n", "m.obj:10: vertex 5; the file has 4 vertices"},
        {"f 1/1 3/3 4/4\n", "f 1/1 3/3 4/9\n", "m.obj:10: vt 9; the file has 4 vt"},
        {"f 1/1 3/3 4/4\n", "f 1 3 0\n", "m.obj:10: not a vertex of this file: \"0\""},
        {"f 1/1 3/3 4/4\n", "f 1 3 -5\n", "m.obj:10: not a vertex of this file: \"-5\""},
        {"f 1/1 3/3 4/4\n", "f 1 3 99999999999999999999\n", "m.obj:10: not a vertex of this file"},
        {"f 1/1 3/3 4/4\n", "f 1 3 4x\n", "m.obj:10: not a corner: \"4x\""},
        {"f 1/1 3/3 4/4\n", "f 1 3 4/4/\n", "m.obj:10: not a vn of this file"},
        {"f 1/1 3/3 4/4\n", "f 1 3\n", "m.obj:10: a face with fewer than 3 corners"},
        {"f 1/1 3/3 4/4\n", "f 1 3 3\n", "m.obj:10: a face with the same vertex twice: \"3\""},
        {"f 1/1 3/3 4/4\n", "f 1 2 3 4 1\n", "m.obj:10: a face with more than 4 corners; triangulate"},
        {"f 1/1 3/3 4/4\n", "f 3/3 1/1 4/4\n",
         "m.obj:10: this face and that of line 9 face opposite ways"},
        {"f 1/1 3/3 4/4\n", "f 1/1 3/3 4/4\nv 1 1 1\nf 3/1 1/2 5/3\n",
         "m.obj:12: the edge between vertices 1 and 3 has "
         "more than two faces"},
        {"f 1/1 3/3 4/4\n", "f 1/1 3/3 4/4\ncurv 1 2 3\n", "m.obj:11: not an OBJ statement: \"curv\""},
        {"f 1/1 2/2 3/3\nf 1/1 3/3 4/4\n", "", "m.obj: no faces"},
    };
    toile_error error;
    for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) {
        write_text("m.obj", replaced(SQUARE, REFUSED[i].find, REFUSED[i].with));
        toile_scene *scene = load_with(MESH_SCENE, NULL, 0, &error);
        CHECK(!scene && error.status == TOILE_INVALID && strstr(error.message, REFUSED[i].message),
              "%s gave: %s", REFUSED[i].with, error.message);
        toile_scene_free(scene);
    }
    /* A bent mesh is not flat; a flat one is. */
    write_text("m.obj", replaced(SQUARE, "v 1 0 0", "v 1 0 0.1"));
    toile_scene *scene =
        load_with(replaced(MESH_SCENE, "\"m.obj\"", "\"m.obj\", \"uv\": \"flat\""), NULL, 0, &error);
    CHECK(!scene && strstr(error.message, "panel \"panel\" is not flat: vertex"), "%s", error.message);
    toile_scene_free(scene);
    write_text("m.obj", SQUARE);
    scene = load_with(replaced(MESH_SCENE, "\"m.obj\"", "\"m.obj\", \"panels\": {\"front\": {}}"), NULL, 0,
                      &error);
    CHECK(!scene && strstr(error.message, "garments[0].panels.front: ") &&
              strstr(error.message, "known: panel"),
          "%s", error.message);
    toile_scene_free(scene);
    scene = load_with(replaced(MESH_SCENE, "\"pins\": []",
                               "\"pins\": [{\"garment\": \"m\", \"select\": {\"corners\": "
                               "[\"u0v0\"]}}]"),
                      NULL, 0, &error);
    CHECK(!scene &&
              strstr(error.message, "scene.json:2: pins[0].select.corners: garment \"m\" is not a grid"),
          "%s", error.message);
    toile_scene_free(scene);
}

/* Loads MESH_SCENE with more keys for its garment and gives its triangle count. */
static int triangles_of(const char *obj, const char *more) {
    toile_error error;
    char keys[300];
    snprintf(keys, sizeof keys, "\"m.obj\"%s", more);
    write_text("m.obj", obj);
    toile_scene *scene = load_with(replaced(MESH_SCENE, "\"m.obj\"", keys), NULL, 0, &error);
    if (!scene)
        printf("%s\n", error.message);
    int count = scene ? toile_triangle_count(toile_scene_world(scene), 0) : -1;
    toile_scene_free(scene);
    return count;
}

static void test_obj_read(void) {
    CHECK(triangles_of(SQUARE, "") == 2, "square");
    CHECK(triangles_of(
              "v 0 0 0\r\nv 1 0 0 1.0\r\nv\t1 1 \\\r\n 0\r\nv 0 1 0 0.5 0.5 0.5\r\n# path\\\r\nvt 0 0 0\r\n"
              "vt 1 0\r\nvt 1 1\r\nvt 0 1\r\nvn 0 0 1\r\ns off\r\nmtllib a.mtl\r\nl 1 2\r\np 1\r\n"
              "f -4/-4/1 -3/-3/1 \\\r\n -2/-2/1 -1/-1/1",
              "") == 2,
          "one quad, all notations");
    CHECK(triangles_of("v 0 0 0\rv 1 0 0\rv 0 1 0\rf 1 2 3\r", ", \"uv\": \"flat\"") == 1,
          "line ends of old");
    CHECK(triangles_of("f 1//1 2//1 3//1\nv 0 0 0\nv 1 0 0\nv 0 1 0\n", ", \"uv\": \"flat\"") == 1,
          "indices ahead");

    /* Two panels, by groups, by objects, by materials. */
    static const char *const KINDS[] = {"g", "o", "usemtl"};
    for (int k = 0; k < 3; k++) {
        char obj[500];
        snprintf(obj, sizeof obj,
                 "%sv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 1\n%s front panel \nf 1 2 3\n%s back\nf 1 3 4\n",
                 k == 2 ? "o Garment\n" : "", KINDS[k], KINDS[k]);
        CHECK(triangles_of(obj, ", \"uv\": \"flat\", \"panels\": {\"front panel\": {\"fabric\": \"silk\", "
                           "\"scale\": [0.9, 1]}, \"back\": {}}") == 2, "panels by %s", KINDS[k]);
    }

    /* Two panels of a cube's side, by their UV map alone; (u, v) that are the same by value go on, whatever their numbers. */
    static const char *const MAPPED = "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 2 0 0\nv 2 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\nvt 0 0\n"
                                      "vt 5 0\nvt 6 0\nvt 6 1\nvt 5 1\nf 1/1 2/2 3/3\nf 1/5 3/3 4/4\nf 2/6 5/7 6/8 3/9\n";
    CHECK(triangles_of(MAPPED, ", \"panels_from\": \"uv_islands\", \"panels\": {\"panel_1\": {}, \"panel_2\": {\"fabric\": \"silk\"}}") == 4,
          "islands");
    CHECK(triangles_of(MAPPED, ", \"panels_from\": \"uv_islands\", \"panels\": {\"panel_3\": {}}") == -1, "there are two");
    CHECK(triangles_of(MAPPED, ", \"panels\": {\"panel_2\": {}}") == -1, "by names there is one");
    CHECK(triangles_of("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", ", \"uv\": \"flat\", \"panels_from\": \"uv_islands\"") == -1, "no map");

    /* Scale and place; a warning for coordinates that are not in metres. */
    meter m = {.fail_at = -1, .most = (size_t)1 << 30};
    toile_hooks hooks = hooks_of(&m);
    toile_scene *scene;
    toile_error error = {0};
    double xyz[12] = {0};
    last_log[0] = 0;
    write_text("m.obj", SQUARE);
    write_text("scene.json", replaced(MESH_SCENE, "\"m.obj\"",
                                      "\"m.obj\", \"scale\": 0.01, \"place\": {\"origin\": "
                                      "[0, 0, 2], \"rotate\": [0, 0, 90]}"));
    CHECK(toile_scene_load(&hooks, path_of("scene.json"), NULL, 0, &scene, &error) == TOILE_OK, "%s",
          error.message);
    CHECK(strstr(last_log, "give \"uv_scale\" (here about 0.01)"), "log: %s", last_log);
    if (scene && toile_get_positions(toile_scene_world(scene), 0, xyz) == TOILE_OK)
        CHECK(fabs(xyz[3]) < 1e-9 && fabs(xyz[4] - 0.01) < 1e-9 && fabs(xyz[5] - 2) < 1e-9, "%g %g %g",
              xyz[3], xyz[4], xyz[5]);
    toile_scene_free(scene);
    CHECK(m.live == 0, "%lld blocks live", m.live);
}

/* ---- subdivided meshes ---- */

/* A quad in the plane z = 0 and, sewn to its edge y = 1, two triangles in the plane y = 1. In the material
 * the second panel lies elsewhere, so the seam's vertices have two (u, v) each. */
static const char SEWN[] =
    "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 1 1 -1\nv 0 1 -1\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
    "vt 5 0\nvt 6 0\nvt 6 1\nvt 5 1\n"
    "g front\nf 1/1 2/2 3/3 4/4\ng back\nf 4/5 3/6 5/7\nf 4/5 5/7 6/8\n";
enum { SEWN_VERTICES = 153, SEWN_TRIANGLES = 256 }; /* at most, after three times */

static bool on_seam(const double *x) {
    return x[1] == 1 && x[2] == 0;
}

/* Counts, seam, areas and (u, v) of the mesh after `times`. */
static void check_sewn(toile_world *world, int times) {
    static double xyz[3 * SEWN_VERTICES], uv[6 * SEWN_TRIANGLES];
    static int triangles[3 * SEWN_TRIANGLES], panels[SEWN_TRIANGLES];
    int n = 1 << times, vertices = toile_vertex_count(world, 0), count = toile_triangle_count(world, 0);
    /* Two sheets of n x n squares that share a row. */
    CHECK(vertices == 2 * (n + 1) * (n + 1) - (n + 1), "%d times: %d vertices", times, vertices);
    CHECK(count == 4 * n * n, "%d times: %d triangles", times, count);
    CHECK(toile_panel_count(world, 0) == 2 && strcmp(toile_panel_name(world, 0, 0), "front") == 0 &&
              strcmp(toile_panel_name(world, 0, 1), "back") == 0,
          "panels");
    if (vertices > SEWN_VERTICES || count > SEWN_TRIANGLES ||
        toile_get_positions(world, 0, xyz) != TOILE_OK ||
        toile_get_triangles(world, 0, triangles, panels, uv) != TOILE_OK) {
        CHECK(false, "%d times: %s", times, toile_message(world));
        return;
    }
    static const double FIRST[] = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 1, 1, -1, 0, 1, -1};
    CHECK(memcmp(xyz, FIRST, sizeof FIRST) == 0, "vertices of the file keep their numbers");

    /* No vertex twice, and those of the seam in both panels. */
    int same = 0, seam = 0, sewn = 0;
    for (int i = 0; i < vertices; i++) {
        for (int j = 0; j < i; j++)
            same += memcmp(xyz + 3 * i, xyz + 3 * j, 3 * sizeof *xyz) == 0;
        bool in[2] = {false, false};
        for (int t = 0; t < 3 * count; t++)
            if (triangles[t] == i)
                in[panels[t / 3]] = true;
        seam += on_seam(xyz + 3 * i);
        sewn += in[0] && in[1];
    }
    CHECK(same == 0 && seam == n + 1 && sewn == n + 1, "%d times: %d equal, %d on the seam, %d sewn", times,
          same, seam, sewn);

    /* Each panel's area, in space and material, and its (u, v), which are its coordinates. */
    double area[2][2] = {{0}};
    int astray = 0, outside_in = 0;
    for (int t = 0; t < count; t++) {
        const double *p[3], *q = uv + 6 * t;
        for (int k = 0; k < 3; k++) {
            p[k] = xyz + 3 * triangles[3 * t + k];
            bool back = panels[t] == 1;
            astray += q[2 * k] != p[k][0] + (back ? 5 : 0) || q[2 * k + 1] != (back ? -p[k][2] : p[k][1]);
        }
        int a = panels[t] == 1 ? 2 : 1; /* the panel is in the plane of x and this axis */
        double sign = panels[t] == 1 ? -1 : 1;
        double space =
            sign * ((p[1][0] - p[0][0]) * (p[2][a] - p[0][a]) - (p[2][0] - p[0][0]) * (p[1][a] - p[0][a]));
        double material = (q[2] - q[0]) * (q[5] - q[1]) - (q[4] - q[0]) * (q[3] - q[1]);
        area[panels[t]][0] += space / 2;
        area[panels[t]][1] += material / 2;
        outside_in += space <= 0 || material <= 0;
    }
    CHECK(astray == 0, "%d times: %d corners have another (u, v)", times, astray);
    CHECK(outside_in == 0, "%d times: %d triangles are turned over", times, outside_in);
    for (int i = 0; i < 4; i++)
        CHECK(fabs(area[i / 2][i % 2] - 1) < 1e-12, "%d times: area %g", times, area[i / 2][i % 2]);
}

/* With a pin on the seam: after a frame all of it is where it was, and the far edges are not. */
static void check_sewn_pin(const char *select, int times) {
    static double before[3 * SEWN_VERTICES], after[3 * SEWN_VERTICES];
    char sets[2][300];
    const char *all[2] = {sets[0], sets[1]};
    toile_error error;
    snprintf(sets[0], sizeof sets[0], "garments.m.subdivide=%d", times);
    snprintf(sets[1], sizeof sets[1], "pins=[{\"garment\": \"m\", \"select\": {%s}}]", select);
    toile_scene *scene = load_with(MESH_SCENE, all, 2, &error);
    CHECK(scene, "%s", error.message);
    if (!scene)
        return;
    toile_world *world = toile_scene_world(scene);
    toile_get_positions(world, 0, before);
    CHECK(toile_scene_prepare(scene, 2, &error) == TOILE_OK &&
              toile_advance(world, 1 / toile_scene_fps(scene)) >= 0 &&
              toile_get_positions(world, 0, after) == TOILE_OK,
          "%s", toile_message(world));
    int held = 0, moved = 0;
    for (int i = 0; i < toile_vertex_count(world, 0); i++) {
        double far = 0;
        for (int k = 0; k < 3; k++)
            far = fmax(far, fabs(after[3 * i + k] - before[3 * i + k]));
        held += on_seam(before + 3 * i) && far < 1e-9;
        moved += before[3 * i + 1] == 0 && far > 1e-4;
    }
    CHECK(held == (1 << times) + 1 && moved == (1 << times) + 1, "%s, %d times: %d held, %d moved", select,
          times, held, moved);
    toile_scene_free(scene);
}

static void test_subdivide(void) {
    static const char *const SETS[] = {"garments.m.subdivide=0", "garments.m.subdivide=1",
                                       "garments.m.subdivide=2", "garments.m.subdivide=3"};
    toile_error error;
    write_text("m.obj", SEWN);
    uint64_t fingerprint = 0;
    for (int times = 0; times <= 3; times++) {
        toile_scene *scene = load_with(MESH_SCENE, &SETS[times], 1, &error);
        CHECK(scene, "%s", error.message);
        if (!scene)
            continue;
        check_sewn(toile_scene_world(scene), times);
        CHECK(toile_scene_fingerprint(scene) != fingerprint, "it decides the result");
        fingerprint = toile_scene_fingerprint(scene);
        toile_scene_free(scene);
    }
    for (int times = 0; times <= 2; times++) {
        check_sewn_pin("\"box\": [[-0.1, 0.99, -0.01], [1.1, 1.01, 0.01]]", times);
        check_sewn_pin("\"sphere\": {\"center\": [0.5, 1, 0], \"radius\": 0.51}", times);
        check_sewn_pin("\"vertices\": [2, 3], \"within\": 0.5", times);
    }

    /* Panels laid flat, scaled; a panel's fabric. */
    CHECK(triangles_of(SEWN, ", \"uv\": \"flat\", \"scale\": 0.1, \"subdivide\": 4, \"panels\": {\"back\": "
                             "{\"fabric\": \"silk\"}}") == 4 * 256,
          "flat, four times");
    /* A quad that would fold over itself. */
    write_text("m.obj", replaced(SQUARE, "f 1/1 2/2 3/3\nf 1/1 3/3 4/4\n", "f 1/1 2/2 3/3 4/4\n"));
    toile_scene *scene = load_with(MESH_SCENE, &SETS[1], 1, &error);
    CHECK(scene && toile_vertex_count(toile_scene_world(scene), 0) == 9, "%s", error.message);
    toile_scene_free(scene);
    write_text(
        "m.obj",
        "v 0 0 0\nv 1 0 0\nv 0.2 0.3 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0.2 0.3\nvt 0 1\nf 1/1 2/2 3/3 4/4\n");
    scene = load_with(MESH_SCENE, &SETS[0], 1, &error);
    CHECK(scene, "%s", error.message);
    toile_scene_free(scene);
    scene = load_with(MESH_SCENE, &SETS[1], 1, &error);
    CHECK(!scene && strstr(error.message, "m.obj:9: face 1 is not convex in its material coordinates"), "%s",
          error.message);
    toile_scene_free(scene);
}

/* ---- scenes in memory ---- */

static void test_text(void) {
    toile_error error = {0};
    toile_scene *scene, *other;
    size_t length = sizeof MESH_SCENE - 1;
    char *exact = malloc(length); /* without a zero, so that sanitizers see who reads too far */
    if (!exact)
        return;
    memcpy(exact, MESH_SCENE, length);
    write_text("m.obj", SQUARE);

    /* As the file would be, in whose place there is none. */
    CHECK(toile_scene_load_text(NULL, exact, length, path_of("not_there.json"), NULL, 0, &scene, &error) ==
              TOILE_OK,
          "%s", error.message);
    CHECK(scene && strcmp(toile_scene_name(scene), "not_there") == 0, "name");
    other = load(MESH_SCENE);
    CHECK(scene && other && toile_scene_fingerprint(scene) == toile_scene_fingerprint(other), "fingerprint");
    toile_scene_free(scene);
    toile_scene_free(other);

    const char *set = "garments.m.subdivide=1";
    CHECK(toile_scene_load_text(NULL, exact, length, path_of("x.json"), &set, 1, &scene, &error) == TOILE_OK,
          "%s", error.message);
    CHECK(scene && toile_triangle_count(toile_scene_world(scene), 0) == 8, "sets");
    toile_scene_free(scene);

    /* Messages name what stands for the file. */
    CHECK(toile_scene_load_text(NULL, exact, length - 4, "the text", NULL, 0, &scene, &error) ==
                  TOILE_INVALID &&
              !scene && strstr(error.message, "the text:2: not a scene in JSON"),
          "%s", error.message);
    CHECK(toile_scene_load_text(NULL, exact, 0, "the text", NULL, 0, &scene, &error) == TOILE_INVALID, "%s",
          error.message);
    CHECK(toile_scene_load_text(NULL, exact, length, "the text", NULL, 0, &scene, &error) == TOILE_IO &&
              !scene && strstr(error.message, "the text:1: garments[0].obj: cannot open m.obj"),
          "%s", error.message);
    CHECK(toile_scene_load_text(NULL, NULL, 0, "the text", NULL, 0, &scene, &error) == TOILE_MISUSE, "%s",
          error.message);
    CHECK(toile_scene_load_text(NULL, exact, length, NULL, NULL, 0, &scene, &error) == TOILE_MISUSE, "%s",
          error.message);
    free(exact);
}

/* ---- written out ---- */

static void test_resolved(void) {
    toile_error error;
    char resolved[20000];
    toile_scene *scene = load(GOOD);
    if (!scene)
        return;
    uint64_t fingerprint = toile_scene_fingerprint(scene);
    snprintf(resolved, sizeof resolved, "%s", toile_scene_resolved_json(scene));
    CHECK(strstr(resolved, "\"solver_iterations_max\": 2000"), "every setting is in it");
    CHECK(strstr(resolved, "\"stretch_warp\": 4034.0") && strstr(resolved, "\"density\": 0.2,"),
          "every property is in it");
    CHECK(strstr(resolved, "\"name\": \"collider_1\""), "every name is in it");
    toile_scene_free(scene);

    scene = load(resolved);
    CHECK(scene && strcmp(toile_scene_resolved_json(scene), resolved) == 0,
          "what is written out reads back as itself");
    CHECK(scene && toile_scene_fingerprint(scene) == fingerprint, "and has the same fingerprint");
    toile_scene_free(scene);

    static const struct {
        const char *set;
        bool same;
    } CHANGES[] = {{"frames=[1, 90]", true},
                   {"name=x", true},
                   {"threads=3", true},
                   {"description=y", true},
                   {"fps=24", false},
                   {"time_step=0.005", false},
                   {"garments.sheet.fabric=silk", false},
                   {"garments.sheet.grid.resolution=6", false}};
    for (size_t i = 0; i < sizeof CHANGES / sizeof *CHANGES; i++) {
        scene = load_with(GOOD, &CHANGES[i].set, 1, &error);
        CHECK(scene && (toile_scene_fingerprint(scene) == fingerprint) == CHANGES[i].same, "%s",
              CHANGES[i].set);
        toile_scene_free(scene);
    }
    /* The bytes of mesh files count. */
    write_text("m.obj", SQUARE);
    scene = load(MESH_SCENE);
    fingerprint = scene ? toile_scene_fingerprint(scene) : 0;
    toile_scene_free(scene);
    write_text("m.obj", replaced(SQUARE, "v 1 1 0", "v 1 1.01 0"));
    scene = load(MESH_SCENE);
    CHECK(scene && toile_scene_fingerprint(scene) != fingerprint, "a changed mesh");
    toile_scene_free(scene);
}

/* ---- colliders ---- */

/* Volume inside; also checks that every edge is met once each way. */
static double volume_of(toile_scene *scene, int collider, double middle[3], bool closed) {
    int vertices = 0, triangles = 0, open = 0;
    const double *x = NULL;
    const int *t = NULL;
    toile_error error = {0};
    CHECK(toile_scene_collider_mesh(scene, collider, &vertices, &x, &triangles, &t, &error) == TOILE_OK, "%s",
          error.message);
    double volume = 0;
    memset(middle, 0, 3 * sizeof *middle);
    for (int i = 0; i < vertices; i++)
        for (int k = 0; k < 3; k++)
            middle[k] += x[3 * i + k] / vertices;
    for (int i = 0; i < triangles; i++) {
        double p[3][3];
        for (int a = 0; a < 3; a++)
            for (int k = 0; k < 3; k++)
                p[a][k] = x[3 * t[3 * i + a] + k] - middle[k];
        volume += (p[0][0] * (p[1][1] * p[2][2] - p[1][2] * p[2][1]) +
                   p[0][1] * (p[1][2] * p[2][0] - p[1][0] * p[2][2]) +
                   p[0][2] * (p[1][0] * p[2][1] - p[1][1] * p[2][0])) /
                  6;
        for (int a = 0; a < 3; a++) {
            int met = 0;
            for (int j = 0; j < triangles; j++)
                for (int b = 0; b < 3; b++)
                    met += t[3 * j + b] == t[3 * i + (a + 1) % 3] && t[3 * j + (b + 1) % 3] == t[3 * i + a];
            open += met != 1;
        }
    }
    CHECK((open == 0) == closed, "collider %d has %d open edges", collider, open);
    return volume;
}

static void test_collider_meshes(void) {
    static const double PI = 3.14159265358979323846;
    toile_scene *scene =
        load("{\"toile\": 1, \"garments\": [{\"grid\": {\"size\": [1, 1], \"resolution\": 3}, \"place\": "
             "{\"origin\": [0, 0, 50]}}], \"colliders\": ["
             "{\"shape\": \"sphere\", \"radius\": 2},"
             "{\"shape\": \"box\", \"size\": [1, 2, 3], \"place\": {\"origin\": [7, 0, 0]}},"
             "{\"shape\": \"capsule\", \"radius\": 1, \"length\": 3},"
             "{\"shape\": \"cylinder\", \"radius\": 1, \"length\": 3, \"motion\": {\"interpolation\": "
             "\"smooth\", \"keys\": [{\"frame\": 1}, {\"frame\": 5, \"origin\": [4, 0, 0]}]}},"
             "{\"shape\": \"plane\"}]}");
    if (!scene)
        return;
    double exact[] = {4 * PI / 3 * 8, 6, 4 * PI / 3 + 3 * PI, 3 * PI, 0}, middle[3];
    static const toile_shape SHAPES[] = {TOILE_SPHERE, TOILE_BOX, TOILE_CAPSULE, TOILE_CYLINDER, TOILE_PLANE};
    for (int i = 0; i < 5; i++) {
        double volume = volume_of(scene, i, middle, i < 4);
        CHECK(toile_scene_collider_shape(scene, i) == SHAPES[i], "shape of collider %d", i);
        CHECK(fabs(volume - exact[i]) <= 0.01 * exact[i] + 1e-12, "collider %d: %g, not %g", i, volume,
              exact[i]);
        CHECK(fabs(middle[0] - (i == 1 ? 7 : 0)) < 1e-9 && fabs(middle[2]) < 1e-9, "collider %d", i);
    }
    toile_error error;
    /* A quarter of the way in time is 5/32 of the way when eased. */
    CHECK(toile_scene_prepare(scene, 2, &error) == TOILE_OK, "%s", error.message);
    volume_of(scene, 3, middle, true);
    CHECK(fabs(middle[0] - 4 * 5.0 / 32) < 1e-9, "%g", middle[0]);
    CHECK(toile_scene_prepare(scene, 99, &error) == TOILE_OK, "%s", error.message);
    volume_of(scene, 3, middle, true);
    CHECK(fabs(middle[0] - 4) < 1e-9, "%g", middle[0]);
    int n;
    const double *x;
    const int *t;
    CHECK(toile_scene_collider_mesh(scene, 5, &n, &x, &n, &t, &error) == TOILE_MISUSE, "no such collider");
    toile_scene_free(scene);
}

static const char TETRA[] = "v %g 0 0\nv %g 1 0\nv %g 0 1\nv %g 0 0\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n";
static const char SEQUENCE_SCENE[] = "{\"toile\": 1, \"frames\": [1, 3], \"garments\": [{\"grid\": "
                                     "{\"size\": [1, 1], \"resolution\": 3}, \"place\": "
                                     "{\"origin\": [0, 0, 50]}}],\n"
                                     " \"colliders\": [{\"name\": \"body\", \"shape\": \"mesh\", "
                                     "\"obj_sequence\": \"b_###.obj\", \"scale\": 2}]}";

static void write_sequence(int first, int last) {
    for (int i = first; i <= last; i++) {
        char text[300], name[32];
        double x = i;
        snprintf(text, sizeof text, TETRA, x, x, x, x + 1);
        snprintf(name, sizeof name, "b_%03d.obj", i);
        write_text(name, text);
    }
}

static void test_sequence(void) {
    toile_error error;
    double middle[3];
    write_sequence(1, 3);
    toile_scene *scene = load(SEQUENCE_SCENE);
    if (scene) {
        CHECK(toile_scene_collider_shape(scene, 0) == TOILE_MESH, "shape");
        for (int frame = 1; frame <= 3; frame++) {
            CHECK(toile_scene_prepare(scene, frame, &error) == TOILE_OK, "%s", error.message);
            CHECK(fabs(volume_of(scene, 0, middle, true) - 8.0 / 6) < 1e-9, "volume");
            CHECK(fabs(middle[0] - 2 * (frame + 0.25)) < 1e-9, "frame %d at %g", frame, middle[0]);
        }
        CHECK(toile_scene_prepare(scene, 4, &error) == TOILE_IO &&
                  strstr(error.message, "frame 4, collider \"body\": cannot"),
              "%s", error.message);
        /* A file that differs. */
        write_text("b_002.obj", SQUARE);
        CHECK(toile_scene_prepare(scene, 2, &error) == TOILE_INVALID &&
                  strstr(error.message, "b_002.obj: has 4 vertices and "
                                        "2 faces; the first file"),
              "%s", error.message);
        write_sequence(2, 2);
        CHECK(toile_scene_prepare(scene, 2, &error) == TOILE_OK, "%s", error.message);
    }
    toile_scene_free(scene);

    scene = load_with(replaced(SEQUENCE_SCENE, "[1, 3]", "[1, 4]"), NULL, 0, &error);
    CHECK(!scene && error.status == TOILE_IO &&
              strstr(error.message, "scene.json:2: colliders[0].obj_sequence: there is no") &&
              strstr(error.message, "b_004.obj"),
          "%s", error.message);
    toile_scene_free(scene);
    const char *sets[] = {"frames=[-5, 9]", "colliders.body.hold=true", "colliders.body.sequence_first=2"};
    scene = load_with(SEQUENCE_SCENE, sets, 3, &error);
    CHECK(scene, "%s", error.message);
    if (scene) {
        static const int FRAMES[] = {-5, 2, 3, 9}, FILES[] = {2, 2, 3, 3};
        for (int i = 0; i < 4; i++) {
            CHECK(toile_scene_prepare(scene, FRAMES[i], &error) == TOILE_OK, "%s", error.message);
            volume_of(scene, 0, middle, true);
            CHECK(fabs(middle[0] - 2 * (FILES[i] + 0.25)) < 1e-9, "frame %d at %g", FRAMES[i], middle[0]);
        }
    }
    toile_scene_free(scene);
    const char *follow =
        "pins=[{\"garment\": \"garment_0\", \"select\": {\"vertices\": [0]}, \"follow\": \"body\"}]";
    scene = load_with(SEQUENCE_SCENE, &follow, 1, &error);
    CHECK(!scene && strstr(error.message, "--set pins: pins[0].follow: found \"body\", a sequence of files"),
          "%s", error.message);
    toile_scene_free(scene);
}

/* ---- pins ---- */

/* A 1 m sheet of 5 x 5 with one pin; advanced by one frame to `frame`, where is vertex `v`? */
static void pinned(const char *pin, int frame, int v, double at[3]) {
    char text[2000];
    toile_error error;
    double xyz[75];
    snprintf(text, sizeof text,
             "{\"toile\": 1, \"garments\": [{\"name\": \"s\", \"grid\": {\"size\": [1, 1], "
             "\"resolution\": 5}}], \"colliders\": [{\"name\": \"c\", \"shape\": \"sphere\", \"radius\": "
             "0.1, \"place\": "
             "{\"origin\": [0, 0, -9]}, \"motion\": {\"keys\": [{\"frame\": 1}, {\"frame\": 2, \"origin\": "
             "[0, 0, -8.99], "
             "\"rotate\": [0, 0, 1]}]}}], \"pins\": [{\"garment\": \"s\", %s}]}",
             pin);
    memset(at, 0, 3 * sizeof *at);
    toile_scene *scene = load_with(text, NULL, 0, &error);
    CHECK(scene, "%s", error.message);
    if (!scene)
        return;
    toile_world *world = toile_scene_world(scene);
    CHECK(toile_scene_prepare(scene, frame - 1, &error) == TOILE_OK && toile_place_inputs(world) == TOILE_OK,
          "%s", error.message);
    CHECK(toile_scene_prepare(scene, frame, &error) == TOILE_OK, "%s", error.message);
    CHECK(toile_advance(world, 1 / toile_scene_fps(scene)) >= 0, "%s", toile_message(world));
    CHECK(toile_get_positions(world, 0, xyz) == TOILE_OK, "%s", toile_message(world));
    memcpy(at, xyz + 3 * v, 3 * sizeof *at);
    toile_scene_free(scene);
}

static bool near(const double at[3], double x, double y, double z) {
    return fabs(at[0] - x) < 1e-6 && fabs(at[1] - y) < 1e-6 && fabs(at[2] - z) < 1e-6;
}

static void test_pins(void) {
    double at[3];
    pinned("\"select\": {\"corners\": [\"u1v0\"]}", 2, 4, at);
    CHECK(near(at, 0.5, -0.5, 0), "corner held: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"corners\": [\"u1v0\"]}", 2, 0, at);
    CHECK(at[2] < -1e-3, "another is free: %g", at[2]);
    pinned("\"select\": {\"corners\": [\"u1v0\"], \"within\": 0.25}", 2, 3, at);
    CHECK(near(at, 0.25, -0.5, 0), "corner grown: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"edges\": [\"v1\"]}", 2, 22, at);
    CHECK(near(at, 0, 0.5, 0), "edge held: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"edges\": [\"v1\"], \"within\": 0.3}", 2, 17, at);
    CHECK(near(at, 0, 0.25, 0), "edge grown: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"vertices\": [12], \"within\": 0.25}", 2, 7, at);
    CHECK(near(at, 0, -0.25, 0), "vertex grown: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"box\": [[-0.6, -0.6, 0], [-0.4, -0.4, 0]]}", 2, 0, at);
    CHECK(near(at, -0.5, -0.5, 0), "box: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"sphere\": {\"center\": [0.5, 0.5, 0], \"radius\": 0.01}}", 2, 24, at);
    CHECK(near(at, 0.5, 0.5, 0), "sphere: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"vertices\": [0]}, \"frames\": [1, 3]", 3, 0, at);
    CHECK(near(at, -0.5, -0.5, 0), "in its frames: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"vertices\": [0]}, \"frames\": [1, 3]", 4, 0, at);
    CHECK(at[2] < -1e-3, "after its frames: %g", at[2]);
    pinned("\"select\": {\"edges\": [\"u0\", \"u1\"]}, \"axes\": \"z\"", 2, 0, at);
    CHECK(fabs(at[2]) < 1e-6, "along one axis: %g", at[2]);
    pinned("\"select\": {\"vertices\": [0]}, \"motion\": {\"keys\": [{\"frame\": 1}, {\"frame\": 3, "
           "\"translate\": "
           "[0.02, 0, 0.04]}]}",
           2, 0, at);
    CHECK(near(at, -0.49, -0.5, 0.02), "moved: %g %g %g", at[0], at[1], at[2]);
    double c = cos(0.0174532925199433), s = sin(0.0174532925199433);
    pinned("\"select\": {\"edges\": [\"u0\", \"u1\", \"v0\", \"v1\"]}, \"motion\": {\"about\": [0, 0, 0], "
           "\"keys\": "
           "[{\"frame\": 1}, {\"frame\": 2, \"rotate\": [0, 0, 1]}]}",
           2, 24, at);
    CHECK(near(at, 0.5 * c - 0.5 * s, 0.5 * c + 0.5 * s, 0), "turned: %g %g %g", at[0], at[1], at[2]);
    pinned("\"select\": {\"edges\": [\"u0\", \"u1\", \"v0\", \"v1\"]}, \"follow\": \"c\"", 2, 24, at);
    CHECK(near(at, 0.5 * c - 0.5 * s, 0.5 * c + 0.5 * s, 0.01), "followed: %g %g %g", at[0], at[1], at[2]);
}

/* ---- what touches what ---- */

/* Where vertex 12, the middle of a sheet, is in frame `last` after falling onto a ball or into a bowl just below it. */
static double falls_until(int last, const char *collider, const char *more) {
    char text[1500];
    toile_error error;
    double at[75];
    snprintf(text, sizeof text,
             "{\"toile\": 1, \"frames\": [1, 9], \"resolution\": 5, \"garments\": [{\"name\": \"s\", \"grid\": {\"size\": [0.2, 0.2]}}],"
             " \"colliders\": [{\"name\": \"c\", %s}]%s}",
             collider, more);
    toile_scene *scene = load_with(text, NULL, 0, &error);
    CHECK(scene, "%s", error.message);
    if (!scene)
        return 0;
    for (int frame = 2; frame <= last; frame++)
        CHECK(toile_scene_prepare(scene, frame, &error) == TOILE_OK &&
                  toile_advance(toile_scene_world(scene), 1.0 / 24) >= 0, "%s", error.message);
    toile_get_positions(toile_scene_world(scene), 0, at);
    toile_scene_free(scene);
    return at[3 * 12 + 2];
}

static double falls_to(const char *collider, const char *more) {
    return falls_until(9, collider, more);
}

static void test_no_contact(void) {
#define BALL "\"shape\": \"sphere\", \"radius\": 0.5, \"place\": {\"origin\": [0, 0, -0.51]}"
    double held = falls_to(BALL, ""), free_fall = -0.3;
    CHECK(fabs(held + 0.01) < 0.01, "lies on the ball: %g", held);
    CHECK(falls_to(BALL, ", \"no_contact\": [[\"s\", \"c\"]]") < free_fall, "falls through an excluded ball");
    CHECK(falls_to(BALL, ", \"no_contact\": [[\"s\", \"s\"]]") == held, "excluding itself does not change the ball");
    CHECK(falls_to(BALL, ", \"no_contact\": [{\"garment\": \"s\", \"select\": {\"box\": [[-1, -1, -1], [1, 1, 1]]}}]") <
              free_fall, "all of it is exempt");
    CHECK(falls_to(BALL, ", \"no_contact\": [{\"garment\": \"s\", \"with\": \"cloth\", \"select\": {\"box\": [[-1, -1, -1], "
                         "[1, 1, 1]]}}]") == held, "exempt from cloth only");
    double bowl = falls_to("\"shape\": \"sphere\", \"radius\": 0.5, \"side\": \"inside\", \"place\": {\"origin\": [0, 0, 0.47]}", "");
    CHECK(bowl > -0.04 && bowl < -0.02, "rests in a bowl whose bottom is at -0.03: %g", bowl);
    double under = falls_to("\"shape\": \"plane\", \"side\": \"both\", \"place\": {\"origin\": [0, 0, -0.02]}", "");
    CHECK(under > -0.02 && under < -0.01, "rests on a sheet with two sides: %g", under);
    under = falls_to("\"shape\": \"plane\", \"side\": \"both\", \"place\": {\"origin\": [0, 0, -0.02], \"rotate\": [180, 0, 0]}", "");
    CHECK(under > -0.02 && under < -0.01, "and on its other side: %g", under);
    under = falls_to("\"shape\": \"plane\", \"side\": \"both\", \"place\": {\"origin\": [0, 0, 0.02]}", "");
    CHECK(under < free_fall, "falls away below it: %g", under);

    /* Falls for five frames, is grabbed where it is then, and moved on from there. */
#define FAR_BALL "\"shape\": \"sphere\", \"radius\": 0.1, \"place\": {\"origin\": [0, 0, -9]}"
    double fallen = falls_until(6, FAR_BALL, "");
    double lifted = falls_until(9, FAR_BALL, ", \"pins\": [{\"garment\": \"s\", \"select\": {\"vertices\": [12]}, \"frames\": [7, 9], "
                                "\"grab\": true, \"motion\": {\"keys\": [{\"frame\": 6}, {\"frame\": 8, \"translate\": [0, 0, 0.05]}]}}]");
    CHECK(fallen < -0.1 && fabs(lifted - fallen - 0.05) < 1e-9, "grabbed at %g, lifted to %g", fallen, lifted);
}

/* ---- garbage ---- */

static uint64_t random_state = 88172645463325252u;

static uint32_t random_below(uint32_t limit) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 33) % limit;
}

/* A few bytes changed, taken out, doubled or exchanged for something that is likely to hurt. */
static size_t mutate(char *text, size_t size, size_t room) {
    static const char *const HURTS[] = {
        "-1", "1e308", "1e999", "0", "null", "[]", "{}", "\"",   "99999999999", "nan",  "/",    "#",  "\\",
        "\n", "-",     ".",     "e", "{",    "[",  ",",  "\xff", "\x01",        "true", "4095", "g ", "f "};
    for (int times = 1 + (int)random_below(4); times > 0 && size > 8; times--) {
        size_t at = random_below((uint32_t)size), length;
        switch (random_below(4)) {
        case 0: text[at] = (char)random_below(256); break;
        case 1:
            length = 1 + random_below(8);
            length = at + length > size ? size - at : length;
            memmove(text + at, text + at + length, size - at - length);
            size -= length;
            break;
        case 2:
            length = 1 + random_below(40);
            length = at + length > size ? size - at : length;
            if (size + length > room)
                break;
            memmove(text + at + length, text + at, size - at);
            size += length;
            break;
        default: {
            const char *hurt = HURTS[random_below(sizeof HURTS / sizeof *HURTS)];
            length = strlen(hurt);
            if (at + length <= size)
                memcpy(text + at, hurt, length);
        }
        }
    }
    return size;
}

static const char FUZZ_SCENE[] =
    "{\"toile\": 1, \"frames\": [1, 3], \"resolution\": 4, \"fabrics\": {\"f\": {\"shear\": 9}},\n"
    " \"garments\": [{\"name\": \"m\", \"obj\": \"m.obj\", \"fabric\": \"f\", \"subdivide\": 1, \"panels\": "
    "{\"back\": "
    "{\"fabric\": \"silk\"}}},\n"
    "  {\"name\": \"s\", \"grid\": {\"size\": [1, 1]}, \"place\": {\"origin\": [0, 0, 3]}}],\n"
    " \"colliders\": [{\"shape\": \"mesh\", \"obj_sequence\": \"b_###.obj\", \"place\": {\"origin\": [0, 0, "
    "-9]}},\n"
    "  {\"name\": \"c\", \"shape\": \"capsule\", \"radius\": 0.1, \"length\": 1, \"place\": {\"origin\": [0, "
    "0, -5]},\n"
    "   \"motion\": {\"keys\": [{\"frame\": 1}, {\"frame\": 3, \"origin\": [1, 0, -5]}]}}],\n"
    " \"pins\": [{\"garment\": \"s\", \"select\": {\"corners\": [\"u0v0\"], \"within\": 0.4}, \"follow\": "
    "\"c\"},\n"
    "  {\"garment\": \"m\", \"select\": {\"vertices\": [0, 1]}, \"frames\": [1, 2],\n"
    "   \"motion\": {\"keys\": [{\"frame\": 1, \"translate\": [0, 0, 1]}]}},\n"
    "  {\"garment\": \"s\", \"select\": {\"vertices\": [3]}, \"frames\": [2, 3], \"grab\": true}],\n"
    " \"no_contact\": [[\"m\", \"c\"], [\"s\", \"m\"], {\"garment\": \"s\", \"select\": {\"edges\": [\"u0\"]}, \"with\": "
    "\"cloth\"}]}\n";
static const char FUZZ_OBJ[] = "# two panels\ng front\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nv 0 2 0\nv 1 2 "
                               "0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
                               "vt 0 2\nvt 1 2\nvn 0 0 1\ns 1\nf 1/1/1 2/2/1 3/3/1 \\\n 4/4/1\ng back\nf "
                               "-3/4 -4/3 -1/6\nf 4/4 6/6 5/5\n";

/* Loads what is written, and where it loads goes on with it. Only what happens to memory is judged. */
static void survive(long *loaded, long *leaked) {
    meter m = {.fail_at = -1, .most = (size_t)24 << 20};
    toile_hooks hooks = hooks_of(&m);
    toile_scene *scene = NULL;
    toile_error error = {0};
    toile_status status = toile_scene_load(&hooks, path_of("scene.json"), NULL, 0, &scene, &error);
    if (status == TOILE_OK) {
        ++*loaded;
        toile_scene_prepare(scene, 2, &error);
    }
    bool told = status == TOILE_OK || (status < 0 && error.message[0] && error.status == status);
    toile_scene_free(scene);
    *leaked += m.live != 0 || !told;
}

static void test_garbage(void) {
    static char text[8000];
    long loaded = 0, leaked = 0, before;
    write_sequence(1, 3);
    write_text("m.obj", FUZZ_OBJ);
    write_text("scene.json", FUZZ_SCENE);
    survive(&loaded, &leaked);
    CHECK(loaded == 1, "the scene that is damaged below is good");

    for (int i = 0; i < 500; i++) {
        size_t size = random_below(600);
        for (size_t k = 0; k < size; k++)
            text[k] = i % 2 ? (char)random_below(256) : "{}[]:,\"01-.eE truefalsn\n\\"[random_below(25)];
        write_bytes("scene.json", text, size);
        survive(&loaded, &leaked);
    }
    before = loaded;
    for (int i = 0; i < 1500; i++) {
        memcpy(text, FUZZ_SCENE, sizeof FUZZ_SCENE - 1);
        write_bytes("scene.json", text, mutate(text, sizeof FUZZ_SCENE - 1, sizeof text));
        survive(&loaded, &leaked);
    }
    CHECK(loaded > before, "some damage does no harm");
    write_text("scene.json", FUZZ_SCENE);
    before = loaded;
    for (int i = 0; i < 1500; i++) {
        size_t size = random_below(300);
        if (i % 4 == 0) {
            for (size_t k = 0; k < size; k++)
                text[k] = i % 8 ? (char)random_below(256) : "vtfgno 0123456789.-/\\\n\r\t#"[random_below(25)];
        } else {
            memcpy(text, FUZZ_OBJ, sizeof FUZZ_OBJ - 1);
            size = mutate(text, sizeof FUZZ_OBJ - 1, sizeof text);
        }
        write_bytes("m.obj", text, size);
        survive(&loaded, &leaked);
    }
    CHECK(loaded > before, "some damage does no harm");
    CHECK(leaked == 0, "%ld loads left memory behind or said nothing", leaked);

    /* One long line each. */
    size_t size = (size_t)4 << 20;
    char *line = malloc(size);
    if (line) {
        memset(line, '[', size);
        write_bytes("scene.json", line, size);
        survive(&loaded, &leaked);
        memset(line, '1', size);
        memcpy(line, "v ", 2);
        write_bytes("m.obj", line, size);
        write_text("scene.json", FUZZ_SCENE);
        survive(&loaded, &leaked);
        memcpy(line, "g ", 2);
        write_bytes("m.obj", line, size);
        survive(&loaded, &leaked);
        CHECK(leaked == 0, "a long line");
    }
    free(line);
}

/* ---- memory that runs out ---- */

static void test_no_memory(void) {
    toile_error error;
    long n = 0;
    toile_status status = TOILE_NO_MEMORY;
    write_sequence(1, 3);
    write_text("m.obj", FUZZ_OBJ);
    write_text("scene.json", FUZZ_SCENE);
    for (; status == TOILE_NO_MEMORY && n < 100000; n++) {
        meter m = {.fail_at = n, .most = (size_t)1 << 30};
        toile_hooks hooks = hooks_of(&m);
        toile_scene *scene = NULL;
        const char *set = "fps=24";
        status = toile_scene_load(&hooks, path_of("scene.json"), &set, 1, &scene, &error);
        if (status == TOILE_OK)
            status = toile_scene_prepare(scene, 2, &error);
        for (int i = 0; i < 2 && status == TOILE_OK; i++) {
            int count;
            const double *positions;
            const int *triangles;
            status = toile_scene_collider_mesh(scene, i, &count, &positions, &count, &triangles, &error);
        }
        toile_scene_free(scene);
        if (m.live != 0 || (status != TOILE_OK && status != TOILE_NO_MEMORY) ||
            (m.calls > n && status == TOILE_OK)) {
            CHECK(false, "call %ld: status %d, %lld blocks live: %s", n, status, m.live, error.message);
            break;
        }
    }
    CHECK(status == TOILE_OK && n > 30, "after %ld failures: %s", n, error.message);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/toile_scene_XXXXXX");
    if (!mkdtemp(folder)) {
        printf("cannot make a folder in /tmp\n");
        return 1;
    }
    test_good();
    test_bad();
    test_sets();
    test_obj_refused();
    test_obj_read();
    test_subdivide();
    test_text();
    test_resolved();
    test_collider_meshes();
    test_sequence();
    test_pins();
    test_no_contact();
    test_garbage();
    test_no_memory();

    static const char *const FILES[] = {"scene.json", "m.obj", "b_001.obj", "b_002.obj", "b_003.obj", "pipe"};
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
        unlink(path_of(FILES[i]));
    rmdir(folder);
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
