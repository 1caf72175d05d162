/* Tests of cache/: test_cache [NAME] runs those whose name contains NAME.
 * test_cache --write FILE [MS] writes the file that test_cache_h5py.py reads, waiting MS before each frame.
 *
 * Whatever may crash, be killed or run out of disk does so in a child process. */
#include "cache.h"
#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- small macros ---- */

/* Forks under a sanitizer are slow: fewer of them there. */
#ifdef __SANITIZE_ADDRESS__
#define FEWER 4
#else
#define FEWER 1
#endif

static int failures; /* in the running test */

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            failures++;                                                                                      \
            fprintf(stderr, "  %s:%d: failed: %s\n", __FILE__, __LINE__, #condition);                        \
        }                                                                                                    \
    } while (0)
#define CHECK_STATUS(call, wanted)                                                                           \
    do {                                                                                                     \
        error.message[0] = '\0';                                                                             \
        toile_status got_ = (call);                                                                          \
        if (got_ != (wanted)) {                                                                              \
            failures++;                                                                                      \
            fprintf(stderr, "  %s:%d: %s gave %s, not %s: %s\n", __FILE__, __LINE__, #call,                  \
                    toile_status_name(got_), toile_status_name(wanted), error.message);                      \
        }                                                                                                    \
    } while (0)
#define CHECK_OK(call) CHECK_STATUS(call, TOILE_OK)
#define CHECK_MESSAGE(text)                                                                                  \
    do {                                                                                                     \
        if (!strstr(error.message, text)) {                                                                  \
            failures++;                                                                                      \
            fprintf(stderr, "  %s:%d: no \"%s\" in: %s\n", __FILE__, __LINE__, text, error.message);         \
        }                                                                                                    \
    } while (0)

static char folder[64], path[128], other[128];
static toile_error error;
static toile_memory memory;

/* The same numbers in every run. */
static uint32_t random_state;
static uint32_t random_number(uint32_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    random_state ^= random_state << 5;
    return random_state % below;
}

static void pause_ms(double ms) {
    struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(fmod(ms, 1000) * 1e6)};
    nanosleep(&time, NULL);
}

/* ---- a made-up scene; test_cache_h5py.py knows the same formulas ---- */

enum { MAX_GARMENTS = 48, FIRST = 5 };

static const char *const panel_names[] = {"front", "dos", "ärmel"};
typedef struct scene {
    toile_cache_header header;
    toile_garment_view garments[MAX_GARMENTS];
    char names[MAX_GARMENTS][64];
    float *positions[MAX_GARMENTS], *velocities[MAX_GARMENTS];
    toile_frame_view frame;
} scene;

/* Garment g has vertices + g vertices in a strip. */
static scene *make_scene(int garments, int vertices) {
    scene *s = calloc(1, sizeof *s);
    s->header = (toile_cache_header){.scene_name = "prüfung",
                                     .settings_json = "{\"gravity\": [0, 0, -9.81]}",
                                     .library_version = "1.2.3",
                                     .fingerprint = UINT64_C(0xfedcba9876543210),
                                     .fps = 24,
                                     .first_frame = FIRST,
                                     .last_frame = FIRST + 99,
                                     .garment_count = garments,
                                     .garments = s->garments};
    for (int g = 0; g < garments; g++) {
        int n = vertices + g, t = n - 2;
        snprintf(s->names[g], sizeof s->names[g], "garment %d", g);
        float *rest = malloc(sizeof(float) * 3 * (size_t)n), *uv = malloc(sizeof(float) * 6 * (size_t)t);
        int *triangles = malloc(sizeof(int) * 3 * (size_t)t), *panels = malloc(sizeof(int) * (size_t)t);
        for (int i = 0; i < 3 * n; i++)
            rest[i] = (float)(g + 0.25 * i);
        for (int i = 0; i < t; i++) {
            for (int k = 0; k < 3; k++)
                triangles[3 * i + k] = i + k;
            for (int k = 0; k < 6; k++)
                uv[6 * i + k] = (float)(0.125 * (6 * i + k));
            panels[i] = i % 3;
        }
        s->garments[g] = (toile_garment_view){s->names[g], n, t, 3, rest, triangles, panels, uv, panel_names};
        s->positions[g] = malloc(sizeof(float) * 3 * (size_t)n);
        s->velocities[g] = malloc(sizeof(float) * 3 * (size_t)n);
    }
    return s;
}

static void free_scene(scene *s) {
    for (int g = 0; g < s->header.garment_count; g++) {
        free((void *)s->garments[g].rest_positions);
        free((void *)s->garments[g].triangles);
        free((void *)s->garments[g].triangle_panels);
        free((void *)s->garments[g].corner_uv);
        free(s->positions[g]);
        free(s->velocities[g]);
    }
    free(s);
}

static float position(int frame, int garment, int i) {
    return (float)(((frame * 7919 + garment * 104729 + i * 31) % 4096) / 64.0 - 32);
}

static float velocity(int frame, int garment, int i) {
    return (float)(((frame * 3571 + garment * 7 + i * 17) % 2048) / 128.0);
}

static const toile_frame_view *make_frame(scene *s, int frame) {
    for (int g = 0; g < s->header.garment_count; g++)
        for (int i = 0; i < 3 * s->garments[g].vertex_count; i++) {
            s->positions[g][i] = position(frame, g, i);
            s->velocities[g][i] = velocity(frame, g, i);
        }
    s->frame = (toile_frame_view){.frame = frame,
                                  .time = (frame - FIRST) / 24.0,
                                  .state_hash = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)frame,
                                  .positions = (const float *const *)s->positions,
                                  .velocities = (const float *const *)s->velocities};
    double *numbers = (double *)&s->frame.numbers;
    for (size_t i = 0; i < sizeof s->frame.numbers / sizeof(double); i++)
        numbers[i] = frame + (double)i / 16;
    return &s->frame;
}

static toile_status append(toile_cache *cache, scene *s, int count) {
    toile_status status = TOILE_OK;
    for (int i = 0; status == TOILE_OK && i < count; i++)
        status = toile_cache_append(cache, make_frame(s, FIRST + toile_cache_frame_count(cache)), &error);
    return status;
}

/* Whether frame `index` holds what make_frame gives. */
static bool frame_is_right(toile_cache *cache, scene *s, int index) {
    toile_cache_frame frame;
    const toile_frame_view *wanted = make_frame(s, FIRST + index);
    if (toile_cache_check(cache, index, &error) || toile_cache_read_frame(cache, index, &frame, &error))
        return false;
    bool right = frame.frame == wanted->frame && frame.time == wanted->time &&
                 frame.state_hash == wanted->state_hash &&
                 memcmp(&frame.numbers, &wanted->numbers, sizeof frame.numbers) == 0;
    for (int g = 0; right && g < s->header.garment_count; g++) {
        size_t bytes = sizeof(float) * 3 * (size_t)s->garments[g].vertex_count;
        float *p = malloc(bytes), *v = malloc(bytes);
        right = toile_cache_read(cache, index, g, p, v, &error) == TOILE_OK &&
                memcmp(p, wanted->positions[g], bytes) == 0 && memcmp(v, wanted->velocities[g], bytes) == 0;
        free(p);
        free(v);
    }
    return right;
}

static bool frames_are_right(toile_cache *cache, scene *s, int count) {
    bool right = toile_cache_frame_count(cache) == count;
    for (int i = 0; right && i < count; i++)
        right = frame_is_right(cache, s, i);
    return right;
}

static bool header_is_right(const toile_cache *cache, const scene *s) {
    const toile_cache_header *got = toile_cache_get_header(cache), *wanted = &s->header;
    bool right = strcmp(got->scene_name, wanted->scene_name) == 0 &&
                 strcmp(got->settings_json, wanted->settings_json) == 0 &&
                 strcmp(got->library_version, wanted->library_version) == 0 &&
                 got->fingerprint == wanted->fingerprint && got->fps == wanted->fps &&
                 got->first_frame == wanted->first_frame && got->last_frame == wanted->last_frame &&
                 got->garment_count == wanted->garment_count;
    for (int g = 0; right && g < wanted->garment_count; g++) {
        const toile_garment_view *a = &got->garments[g], *b = &wanted->garments[g];
        size_t n = (size_t)b->vertex_count, t = (size_t)b->triangle_count;
        right = strcmp(a->name, b->name) == 0 && a->vertex_count == b->vertex_count &&
                a->triangle_count == b->triangle_count && a->panel_count == b->panel_count &&
                memcmp(a->rest_positions, b->rest_positions, n * 12) == 0 &&
                (t == 0 || (memcmp(a->triangles, b->triangles, t * 12) == 0 &&
                            memcmp(a->triangle_panels, b->triangle_panels, t * 4) == 0 &&
                            memcmp(a->corner_uv, b->corner_uv, t * 24) == 0));
        for (int k = 0; right && k < b->panel_count; k++)
            right = strcmp(a->panel_names[k], b->panel_names[k]) == 0;
    }
    return right;
}

/* Writes a finished cache of `frames` to `where`. */
static void write_cache(const char *where, scene *s, int frames) {
    toile_cache *cache = NULL;
    CHECK_OK(toile_cache_create(&memory, where, &s->header, &cache, &error));
    if (cache)
        CHECK_OK(append(cache, s, frames));
    CHECK_OK(toile_cache_close(cache, &error));
}

static void check_cache(const char *where, scene *s, int frames) {
    toile_cache *cache = NULL;
    CHECK_OK(toile_cache_open(&memory, where, &cache, &error));
    if (cache) {
        CHECK(header_is_right(cache, s));
        CHECK(frames_are_right(cache, s, frames));
    }
    CHECK_OK(toile_cache_close(cache, &error));
}

/* What a plain `h5py.File(path)` does. */
static bool plain_open_works(const char *where) {
    H5E_auto2_t function;
    void *data;
    H5Eget_auto2(H5E_DEFAULT, &function, &data);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    hid_t file = H5Fopen(where, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file >= 0)
        H5Fclose(file);
    H5Eset_auto2(H5E_DEFAULT, function, data);
    return file >= 0;
}

/* ---- bytes of files ---- */

static unsigned char *read_bytes(const char *where, size_t *size) {
    FILE *file = fopen(where, "rb");
    struct stat info;
    fstat(fileno(file), &info);
    unsigned char *bytes = malloc((size_t)info.st_size + 1);
    *size = fread(bytes, 1, (size_t)info.st_size, file);
    fclose(file);
    return bytes;
}

static void write_bytes(const char *where, const void *bytes, size_t size) {
    FILE *file = fopen(where, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size);
    if (file)
        fclose(file);
}

/* ---- tests ---- */

static void test_round_trip(void) {
    scene *s = make_scene(2, 300);
    write_cache(path, s, 7);
    check_cache(path, s, 7);
    CHECK(plain_open_works(path));
    write_cache(path, s, 0);
    check_cache(path, s, 0);
    free_scene(s);
}

static void test_long_and_wide(void) {
    scene *s = make_scene(MAX_GARMENTS, 3); /* more than one storage form of HDF5 for links */
    char *settings = malloc(1 << 20);
    const size_t lengths[] = {400, 500, 5000, 65400, 65535, 65536, (1 << 20) - 1}; /* and for texts */
    s->header.settings_json = settings;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(settings, 'x', lengths[i]);
        settings[lengths[i]] = '\0';
        write_cache(path, s, 3);
        check_cache(path, s, 3);
    }
    free(settings);
    free_scene(s);
    s = make_scene(1, 4); /* several chunks of columns, several levels of the chunk index */
    write_cache(path, s, 700);
    check_cache(path, s, 700);
    free_scene(s);
}

static void test_no_triangles(void) {
    scene *s = make_scene(1, 2);
    s->garments[0].panel_count = 0;
    write_cache(path, s, 2);
    check_cache(path, s, 2);
    free_scene(s);
    s = make_scene(0, 0);
    s->header.settings_json = "";
    write_cache(path, s, 2);
    check_cache(path, s, 2);
    free_scene(s);
}

static void test_reopen_and_drop(void) {
    scene *s = make_scene(2, 100);
    const struct {
        int written, keep_through, kept;
    } cases[] = {{10, FIRST + 3, 4},  {10, FIRST - 1, 0}, {10, INT_MIN, 0},       {10, INT_MAX, 10},
                 {10, FIRST + 9, 10}, {0, FIRST, 0},      {600, FIRST + 299, 300}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        toile_cache *cache = NULL;
        write_cache(path, s, cases[i].written);
        CHECK_OK(toile_cache_reopen(&memory, path, cases[i].keep_through, &cache, &error));
        CHECK(header_is_right(cache, s));
        CHECK(toile_cache_frame_count(cache) == cases[i].kept);
        CHECK_OK(append(cache, s, 5));
        CHECK_OK(toile_cache_close(cache, &error));
        check_cache(path, s, cases[i].kept + 5);
        CHECK(plain_open_works(path));
    }
    /* Without frames appended: what was dropped stays dropped, in the streams too. */
    toile_cache *cache = NULL;
    CHECK_OK(toile_cache_reopen(&memory, path, FIRST + 1, &cache, &error));
    CHECK_OK(toile_cache_close(cache, &error));
    check_cache(path, s, 2);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, "garments/garment 1/positions", H5P_DEFAULT),
          space = H5Dget_space(dataset);
    hsize_t dims[3] = {0};
    CHECK(H5Sget_simple_extent_dims(space, dims, NULL) == 3 && dims[0] == 2 && dims[1] == 101 &&
          dims[2] == 3);
    H5Sclose(space);
    H5Dclose(dataset);
    H5Fclose(file);
    free_scene(s);
}

static void test_names(void) {
    static const char *const names[] = {"Hemd Größe 38", "日本の着物", "a/b", ".",    "..", "./x",  "/",
                                        "%2F",           "a%b",        " ",   "x.y/", "👗",  "a\nb", "a\\b",
                                        "positions",     "garments"};
    scene *s = make_scene((int)(sizeof names / sizeof *names), 5);
    for (int g = 0; g < s->header.garment_count; g++)
        s->garments[g].name = names[g];
    write_cache(path, s, 3);
    check_cache(path, s, 3);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    CHECK(H5Lexists(file, "garments/a%2Fb/positions", H5P_DEFAULT) > 0);
    CHECK(H5Lexists(file, "garments/%2E./positions", H5P_DEFAULT) > 0);
    CHECK(H5Lexists(file, "garments/%252F/positions", H5P_DEFAULT) > 0);
    CHECK(H5Lexists(file, "garments/日本の着物/positions", H5P_DEFAULT) > 0);
    H5Fclose(file);
    free_scene(s);
}

static void test_bad_input(void) {
    toile_cache *cache = NULL;
    scene *s = make_scene(2, 10);
    const toile_cache_header header = s->header;
    const toile_garment_view garment = s->garments[1];
    int *wrong = calloc(100, sizeof(int));
    const char *bad_panels[] = {"a", "\xff", "c"};
#define REFUSED(change, status)                                                                              \
    do {                                                                                                     \
        change;                                                                                              \
        CHECK_STATUS(toile_cache_create(&memory, path, &s->header, &cache, &error), status);                 \
        CHECK(!cache && error.message[0] && access(path, F_OK) != 0);                                        \
        s->header = header;                                                                                  \
        s->garments[1] = garment;                                                                            \
    } while (0)
    REFUSED(s->header.scene_name = NULL, TOILE_MISUSE);
    REFUSED(s->header.garments = NULL, TOILE_MISUSE);
    REFUSED(s->header.scene_name = "\xc3", TOILE_INVALID);
    REFUSED(s->header.settings_json = "\xed\xa0\x80", TOILE_INVALID);
    REFUSED(s->header.settings_json = "\xc0\x80", TOILE_INVALID);
    REFUSED(s->header.settings_json = "\xf5\x80\x80\x80", TOILE_INVALID);
    REFUSED(s->header.garment_count = -1, TOILE_INVALID);
    REFUSED(s->header.fps = 0, TOILE_INVALID);
    REFUSED(s->header.fps = NAN, TOILE_INVALID);
    REFUSED(s->header.last_frame = FIRST - 1, TOILE_INVALID);
    REFUSED(s->garments[1].name = "", TOILE_INVALID);
    REFUSED(s->garments[1].name = "\x80", TOILE_INVALID);
    REFUSED(s->garments[1].name = s->garments[0].name, TOILE_INVALID);
    REFUSED(s->garments[1].vertex_count = 0, TOILE_INVALID);
    REFUSED(s->garments[1].vertex_count = -1, TOILE_INVALID);
    REFUSED(s->garments[1].triangle_count = -1, TOILE_INVALID);
    REFUSED(s->garments[1].triangle_count = INT_MAX, TOILE_INVALID);
    REFUSED(s->garments[1].panel_names = bad_panels, TOILE_INVALID);
    REFUSED(s->garments[1].corner_uv = NULL, TOILE_MISUSE);
    REFUSED(wrong[0] = 11; s->garments[1].triangles = wrong, TOILE_INVALID);
    REFUSED(wrong[0] = -1; s->garments[1].triangles = wrong, TOILE_INVALID);
    REFUSED(wrong[0] = 3; s->garments[1].triangle_panels = wrong, TOILE_INVALID);
#undef REFUSED
    CHECK_STATUS(toile_cache_create(NULL, path, &header, &cache, &error), TOILE_MISUSE);
    CHECK_STATUS(toile_cache_open(&memory, NULL, &cache, &error), TOILE_MISUSE);

    CHECK_OK(toile_cache_create(&memory, path, &s->header, &cache, &error));
    CHECK_STATUS(toile_cache_append(cache, make_frame(s, FIRST + 1), &error), TOILE_MISUSE);
    CHECK_STATUS(toile_cache_append(NULL, make_frame(s, FIRST), &error), TOILE_MISUSE);
    CHECK_OK(append(cache, s, 1));
    CHECK_STATUS(toile_cache_append(cache, make_frame(s, FIRST), &error), TOILE_MISUSE);
    toile_frame_view hole = *make_frame(s, FIRST + 1);
    hole.velocities = (const float *const[]){s->velocities[0], NULL};
    CHECK_STATUS(toile_cache_append(cache, &hole, &error), TOILE_MISUSE);
    CHECK_OK(append(cache, s, 1)); /* none of that hurt */
    CHECK_STATUS(toile_cache_read(cache, 2, 0, NULL, NULL, &error), TOILE_INVALID);
    CHECK_STATUS(toile_cache_read(cache, -1, 0, NULL, NULL, &error), TOILE_INVALID);
    CHECK_STATUS(toile_cache_read(cache, 0, 2, NULL, NULL, &error), TOILE_INVALID);
    CHECK_STATUS(toile_cache_check(NULL, 0, &error), TOILE_MISUSE);
    CHECK(frames_are_right(cache, s, 2)); /* a writer can read too */
    CHECK_OK(toile_cache_close(cache, &error));
    CHECK_OK(toile_cache_open(&memory, path, &cache, &error));
    CHECK_STATUS(toile_cache_append(cache, make_frame(s, FIRST + 2), &error), TOILE_MISUSE);
    CHECK_OK(toile_cache_close(cache, &error));
    CHECK_OK(toile_cache_close(NULL, &error));
    CHECK(toile_cache_get_header(NULL) == NULL && toile_cache_frame_count(NULL) == 0);
    free(wrong);
    free_scene(s);
}

/* Changes an attribute or more of a finished file with plain HDF5. */
static void change_file(const char *where, void (*change)(hid_t file)) {
    hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110);
    hid_t file = H5Fopen(where, H5F_ACC_RDWR, fapl);
    CHECK(file >= 0);
    if (file >= 0) {
        change(file);
        CHECK(H5Fclose(file) >= 0);
    }
    H5Pclose(fapl);
}

static void set_int(hid_t file, const char *name, int value) {
    hid_t attribute = H5Aopen(file, name, H5P_DEFAULT);
    CHECK(H5Awrite(attribute, H5T_NATIVE_INT, &value) >= 0);
    H5Aclose(attribute);
}

static void newer_version(hid_t file) {
    set_int(file, "version", 2);
}
static void no_format(hid_t file) {
    H5Adelete(file, "format");
}

static void test_messages(void) {
    toile_cache *cache = NULL;
    scene *s = make_scene(1, 1000);
    char deep[160];
    CHECK_STATUS(toile_cache_open(&memory, path, &cache, &error), TOILE_IO);
    CHECK_MESSAGE(path);
    CHECK_MESSAGE("No such file");
    snprintf(deep, sizeof deep, "%s/missing/x.h5", folder);
    CHECK_STATUS(toile_cache_create(&memory, deep, &s->header, &cache, &error), TOILE_IO);
    CHECK_MESSAGE("check that the folder exists");
    CHECK_STATUS(toile_cache_create(&memory, folder, &s->header, &cache, &error), TOILE_IO);
    CHECK_MESSAGE("not a file");
    CHECK_STATUS(toile_cache_open(&memory, folder, &cache, &error), TOILE_IO);
    CHECK_MESSAGE("not a file");
    CHECK_STATUS(toile_cache_reopen(&memory, folder, FIRST, &cache, &error), TOILE_IO);
    CHECK_STATUS(toile_cache_create(&memory, "/proc/x.h5", &s->header, &cache, &error), TOILE_IO);
    CHECK(mkfifo(other, 0666) == 0);
    CHECK_STATUS(toile_cache_open(&memory, other, &cache, &error), TOILE_IO);
    unlink(other);
    if (geteuid() != 0) {
        chmod(folder, 0555);
        CHECK_STATUS(toile_cache_create(&memory, path, &s->header, &cache, &error), TOILE_IO);
        CHECK_MESSAGE("a folder you may write to");
        chmod(folder, 0777);
    }

    write_bytes(path, "", 0);
    CHECK_STATUS(toile_cache_open(&memory, path, &cache, &error), TOILE_FORMAT);
    CHECK_MESSAGE("is empty");
    write_bytes(path, "solid cube\n", 11);
    CHECK_STATUS(toile_cache_open(&memory, path, &cache, &error), TOILE_FORMAT);
    CHECK_MESSAGE("not an HDF5 file");
    for (int latest = 0; latest < 2; latest++) {
        hid_t fapl = H5Pcreate(H5P_FILE_ACCESS);
        if (latest)
            H5Pset_libver_bounds(fapl, H5F_LIBVER_V110, H5F_LIBVER_V110);
        hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, fapl);
        H5Fclose(file);
        H5Pclose(fapl);
        CHECK_STATUS(toile_cache_open(&memory, path, &cache, &error), TOILE_FORMAT);
        CHECK_MESSAGE("not a Toile cache");
    }
    write_cache(path, s, 2);
    change_file(path, newer_version);
    CHECK_STATUS(toile_cache_open(&memory, path, &cache, &error), TOILE_FORMAT);
    CHECK_MESSAGE("update Toile");
    write_cache(path, s, 2);
    change_file(path, no_format);
    CHECK_STATUS(toile_cache_open(&memory, path, &cache, &error), TOILE_FORMAT);
    CHECK_MESSAGE("not a Toile cache");
    write_cache(path, s, 5);
    struct stat info;
    stat(path, &info);
    CHECK(truncate(path, info.st_size - 1000) == 0);
    CHECK_STATUS(toile_cache_open(&memory, path, &cache, &error), TOILE_FORMAT);
    CHECK_MESSAGE("truncated");
    CHECK_STATUS(toile_cache_reopen(&memory, path, FIRST, &cache, &error), TOILE_FORMAT);
    stat(path, &info);

    /* Neither the host's error printing nor its absence is changed. */
    H5E_auto2_t before, after;
    void *data;
    H5Eget_auto2(H5E_DEFAULT, &before, &data);
    toile_cache_open(&memory, path, &cache, &error);
    H5Eget_auto2(H5E_DEFAULT, &after, &data);
    CHECK(before != NULL && before == after);
    free_scene(s);
}

static void test_replace(void) {
    toile_cache *writer = NULL, *reader = NULL, *second = NULL;
    scene *s = make_scene(1, 50);
    write_cache(path, s, 4);
    CHECK_OK(toile_cache_open(&memory, path, &reader, &error));
    /* A create that is refused leaves the old file. */
    s->header.fps = -1;
    CHECK_STATUS(toile_cache_create(&memory, path, &s->header, &writer, &error), TOILE_INVALID);
    s->header.fps = 24;
    check_cache(path, s, 4);
    CHECK_OK(toile_cache_refresh(reader, &error));
    /* One that succeeds replaces it; who has it open keeps it, and is told. */
    CHECK_OK(toile_cache_create(&memory, path, &s->header, &writer, &error));
    check_cache(path, s, 0);
    CHECK_STATUS(toile_cache_refresh(reader, &error), TOILE_WARNING);
    CHECK(frames_are_right(reader, s, 4));
    CHECK_OK(toile_cache_close(reader, &error));
    /* A file that is being written is not taken away. */
    CHECK_STATUS(toile_cache_create(&memory, path, &s->header, &second, &error), TOILE_IO);
    CHECK_MESSAGE("another process is writing");
    CHECK_STATUS(toile_cache_reopen(&memory, path, FIRST, &second, &error), TOILE_IO);
    CHECK_MESSAGE("another process is writing");
    CHECK_OK(append(writer, s, 2));
    check_cache(path, s, 2);
    /* Unless someone deletes it: then its frames are written again, and it can go on. */
    unlink(path);
    CHECK_STATUS(append(writer, s, 1), TOILE_IO);
    CHECK_MESSAGE("its frames were saved to");
    unlink(path);
    CHECK_STATUS(append(writer, s, 1), TOILE_IO); /* not a second time */
    CHECK(access(path, F_OK) != 0);
    CHECK_OK(toile_cache_close(writer, &error));
    write_cache(path, s, 2);
    CHECK_OK(toile_cache_reopen(&memory, path, INT_MAX, &writer, &error));
    CHECK_OK(append(writer, s, 1));
    unlink(path);
    CHECK_STATUS(append(writer, s, 1), TOILE_IO);
    CHECK_OK(toile_cache_close(writer, &error));
    CHECK_OK(toile_cache_reopen(&memory, path, INT_MAX, &writer, &error));
    CHECK_OK(append(writer, s, 2));
    CHECK_OK(toile_cache_close(writer, &error));
    check_cache(path, s, 5);
    /* Or puts something else in its place. */
    CHECK_OK(toile_cache_reopen(&memory, path, INT_MAX, &writer, &error));
    CHECK_OK(append(writer, s, 1));
    unlink(path);
    write_bytes(path, (const unsigned char *)"mine", 4);
    CHECK_STATUS(append(writer, s, 1), TOILE_IO);
    CHECK_MESSAGE(".saved");
    CHECK_OK(toile_cache_close(writer, &error));
    char saved[160];
    snprintf(saved, sizeof saved, "%s.saved", path);
    check_cache(saved, s, 6);
    /* Or moves it, or cuts it off. */
    CHECK(rename(saved, path) == 0);
    CHECK_OK(toile_cache_reopen(&memory, path, INT_MAX, &writer, &error));
    CHECK(rename(path, other) == 0);
    CHECK_STATUS(append(writer, s, 1), TOILE_IO);
    CHECK_MESSAGE("was moved");
    CHECK_OK(toile_cache_close(writer, &error));
    check_cache(other, s, 6);
    CHECK_OK(toile_cache_reopen(&memory, other, INT_MAX, &writer, &error));
    CHECK_OK(append(writer, s, 1));
    CHECK(truncate(other, 2000) == 0);
    CHECK_STATUS(append(writer, s, 1), TOILE_IO);
    CHECK_MESSAGE("was cut off");
    toile_cache_close(writer, &error);
    unlink(other);
    free_scene(s);
}

static void test_read_beside_writer(void) {
    toile_cache *writer = NULL, *reader = NULL;
    scene *s = make_scene(2, 60);
    CHECK_OK(toile_cache_create(&memory, path, &s->header, &writer, &error));
    CHECK_OK(toile_cache_open(&memory, path, &reader, &error));
    for (int i = 1; i <= 20; i++) {
        CHECK_OK(append(writer, s, 1));
        CHECK(toile_cache_frame_count(reader) == i - 1);
        CHECK_OK(toile_cache_refresh(reader, &error));
        CHECK(frames_are_right(reader, s, i));
    }
    /* Closed, begun again, frames dropped: the reader follows. */
    CHECK_OK(toile_cache_close(writer, &error));
    CHECK_OK(toile_cache_refresh(reader, &error));
    CHECK(frames_are_right(reader, s, 20));
    CHECK_OK(toile_cache_reopen(&memory, path, FIRST + 9, &writer, &error));
    CHECK_OK(append(writer, s, 3));
    CHECK_OK(toile_cache_refresh(reader, &error));
    CHECK(frames_are_right(reader, s, 13));
    CHECK_OK(toile_cache_close(reader, &error));
    CHECK_OK(toile_cache_close(writer, &error));
    free_scene(s);
}

/* A child that creates (or reopens) the cache and appends until it is killed or has `frames`. */
static pid_t start_writer(scene *s, bool reopen, int keep_through, int frames) {
    pid_t child = fork();
    if (child)
        return child;
    toile_cache *cache = NULL;
    toile_memory own;
    toile_memory_init(&own, NULL);
    toile_status status = reopen ? toile_cache_reopen(&own, path, keep_through, &cache, &error)
                                 : toile_cache_create(&own, path, &s->header, &cache, &error);
    while (status == TOILE_OK && toile_cache_frame_count(cache) < frames)
        status = append(cache, s, 1);
    if (status == TOILE_OK)
        status = toile_cache_close(cache, &error);
    if (status != TOILE_OK)
        fprintf(stderr, "  writer: %s\n", error.message);
    _exit(status == TOILE_OK && own.live == 0 ? 0 : 1);
}

static bool ended_well(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_growing(void) {
    enum { FRAMES = 150 };
    toile_cache *reader = NULL;
    scene *s = make_scene(2, 2000);
    unlink(path);
    pid_t child = start_writer(s, false, 0, FRAMES);
    for (int i = 0; i < 1000 && access(path, F_OK) != 0; i++)
        pause_ms(2);
    CHECK_OK(toile_cache_open(&memory, path, &reader, &error));
    int seen = 0, looks = 0;
    time_t limit = time(NULL) + 120;
    while (reader && seen < FRAMES && time(NULL) < limit && !failures) {
        CHECK_OK(toile_cache_refresh(reader, &error));
        int count = toile_cache_frame_count(reader);
        CHECK(count >= seen && count <= FRAMES);
        for (; seen < count; seen++)
            CHECK(frame_is_right(reader, s, seen));
        if (count > 0)
            CHECK(frame_is_right(reader, s, (int)random_number((uint32_t)count)));
        looks++;
    }
    CHECK(seen == FRAMES);
    CHECK(ended_well(child));
    CHECK_OK(toile_cache_close(reader, &error));
    check_cache(path, s, FRAMES);
    CHECK(plain_open_works(path));
    free_scene(s);
    printf("  %d looks while %d frames were written\n", looks, FRAMES);
}

/* Creation, appending and reopening are each killed at random instants. */
static void test_kill(void) {
    enum { TIMES = 40 / FEWER };
    toile_cache *cache = NULL;
    scene *s = make_scene(2, 400);
    int shortest = INT_MAX, longest = 0, early = 0;
    for (int i = 0; i < TIMES; i++) {
        unlink(path);
        pid_t child = start_writer(s, false, 0, INT_MAX);
        pause_ms(random_number(200) + random_number(1000) / 1000.0);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        char unfinished[160];
        snprintf(unfinished, sizeof unfinished, "%s.new-%ld", path, (long)child);
        early += unlink(unfinished) == 0;
        if (access(path, F_OK) != 0)
            continue; /* before its file was in place */
        CHECK_OK(toile_cache_open(&memory, path, &cache, &error));
        int count = toile_cache_frame_count(cache), kept = count;
        CHECK(header_is_right(cache, s) && frames_are_right(cache, s, count));
        CHECK_OK(toile_cache_close(cache, &error));
        shortest = count < shortest ? count : shortest;
        longest = count > longest ? count : longest;

        /* Killed again in a reopen that drops half of the frames. */
        int keep = count / 2;
        child = start_writer(s, true, FIRST + keep - 1, INT_MAX);
        pause_ms(random_number(40) + random_number(1000) / 1000.0);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        CHECK_OK(toile_cache_open(&memory, path, &cache, &error));
        count = toile_cache_frame_count(cache);
        CHECK(count >= keep && frames_are_right(cache, s, count));
        CHECK_OK(toile_cache_close(cache, &error));

        kept = random_number((uint32_t)count + 1);
        CHECK_OK(toile_cache_reopen(&memory, path, FIRST + kept - 1, &cache, &error));
        CHECK(toile_cache_frame_count(cache) == kept);
        CHECK_OK(append(cache, s, 3));
        CHECK_OK(toile_cache_close(cache, &error));
        check_cache(path, s, kept + 3);
        CHECK(plain_open_works(path));
    }
    printf("  killed %d times: %d in create, else with %d to %d frames written\n", TIMES, early, shortest,
           longest);
    free_scene(s);
}

/* Opens, reads and appends to what may be damaged. Any status will do; a crash or a wrong frame will not. The
 * codes are none that a sanitizer exits with. */
enum { REFUSED = 50, UNHURT, NOT_GIVEN_BACK, LIED };
static int try_damaged(scene *s, int frames) {
    toile_memory own;
    toile_memory_init(&own, NULL);
    toile_cache *cache = NULL;
    bool good = false, lie = false;
    if (toile_cache_open(&own, path, &cache, &error) == TOILE_OK) {
        int count = toile_cache_frame_count(cache);
        good = count == frames && header_is_right(cache, s);
        for (int i = 0; i < count && i < frames; i++) {
            bool checked = toile_cache_check(cache, i, &error) == TOILE_OK,
                 right = frame_is_right(cache, s, i);
            toile_cache_frame frame;
            /* The figures are not in the checksum. */
            lie = lie ||
                  (checked && !right && toile_cache_read_frame(cache, i, &frame, &error) == TOILE_OK &&
                   memcmp(&frame.numbers, &make_frame(s, FIRST + i)->numbers, sizeof frame.numbers) == 0);
            good = good && checked && right;
        }
        toile_cache_close(cache, &error);
    }
    if (toile_cache_reopen(&own, path, FIRST + frames / 2, &cache, &error) == TOILE_OK) {
        append(cache, s, 2);
        toile_cache_close(cache, &error);
    }
    bool open_still = H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) > 0;
    return own.live || open_still ? NOT_GIVEN_BACK : lie ? LIED : good ? UNHURT : REFUSED;
}

static void test_damage(void) {
    enum { FRAMES = 6, TIMES = 400 / FEWER };
    scene *s = make_scene(2, 40);
    size_t sizes[2];
    unsigned char *originals[2]; /* of a finished file, and of one whose writer died */
    write_cache(path, s, FRAMES);
    originals[0] = read_bytes(path, &sizes[0]);
    toile_cache *cache = NULL;
    CHECK_OK(toile_cache_create(&memory, path, &s->header, &cache, &error));
    CHECK_OK(append(cache, s, FRAMES));
    originals[1] = read_bytes(path, &sizes[1]);
    CHECK_OK(toile_cache_close(cache, &error));

    int refused = 0, unhurt = 0, crashes = 0;
    for (int i = 0; i < TIMES; i++) {
        size_t size = sizes[i % 2];
        unsigned char *bytes = malloc(size);
        memcpy(bytes, originals[i % 2], size);
        switch (i / 2 % 4) {
        case 0: /* one byte in a hundred */
            for (size_t k = 0; k < size / 100; k++)
                bytes[random_number((uint32_t)size)] = (unsigned char)random_number(256);
            break;
        case 1: /* a few bytes */
            for (size_t k = 0; k < 3; k++)
                bytes[random_number((uint32_t)size)] ^= (unsigned char)(1 << random_number(8));
            break;
        case 2: size = random_number((uint32_t)size); break;
        case 3: { /* a lost block */
            size_t at = random_number((uint32_t)size);
            memset(bytes + at, 0, size - at < 512 ? size - at : 512);
            break;
        }
        }
        write_bytes(path, bytes, size);
        free(bytes);
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            int outcome = try_damaged(s, FRAMES);
            exit(outcome); /* not _exit: HDF5 tidies up at exit, and must not crash there either */
        }
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED) {
            refused++;
        } else if (WIFEXITED(status) && WEXITSTATUS(status) == UNHURT) {
            unhurt++;
        } else {
            crashes++;
            fprintf(stderr, "  damage %d: exit %d, signal %d\n", i,
                    WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        }
    }
    CHECK(crashes == 0);
    printf("  %d damaged files: %d refused in whole or part, %d unhurt where it matters, %d crashes\n", TIMES,
           refused, unhurt, crashes);
    free(originals[0]);
    free(originals[1]);
    free_scene(s);
}

/* ---- hostile files: made with HDF5 itself, so that its checksums are right ---- */

#define GARMENT "garments/garment 0/"

static void replace_dataset(hid_t file, const char *name, hid_t type, int rank, const hsize_t *dims,
                            const hsize_t *most, const hsize_t *chunk) {
    H5Ldelete(file, name, H5P_DEFAULT);
    hid_t space = H5Screate_simple(rank, dims, most), list = H5Pcreate(H5P_DATASET_CREATE);
    if (chunk)
        H5Pset_chunk(list, rank, chunk);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    CHECK(dataset >= 0);
    H5Dclose(dataset);
    H5Pclose(list);
    H5Sclose(space);
}

static void set_dims(hid_t file, const char *name, hsize_t a, hsize_t b, hsize_t c) {
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    CHECK(H5Dset_extent(dataset, (hsize_t[]){a, b, c}) >= 0);
    H5Dclose(dataset);
}

static void poke_int(hid_t file, const char *name, int value) {
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    int *data = calloc((size_t)H5Sget_simple_extent_npoints(space), sizeof(int));
    H5Dread(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    data[1] = value;
    CHECK(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0);
    free(data);
    H5Sclose(space);
    H5Dclose(dataset);
}

static void put_attribute(hid_t file, const char *name, hid_t type, hid_t space, const void *data) {
    H5Adelete(file, name);
    hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    CHECK(attribute >= 0 && (!data || H5Awrite(attribute, type, data) >= 0));
    H5Aclose(attribute);
    H5Sclose(space);
}

static void h_no_garments(hid_t f) {
    H5Ldelete(f, "garments", H5P_DEFAULT);
}
static void h_no_frames(hid_t f) {
    H5Ldelete(f, "frames", H5P_DEFAULT);
}
static void h_no_checksum(hid_t f) {
    H5Ldelete(f, "frames/checksum", H5P_DEFAULT);
}
static void h_no_positions(hid_t f) {
    H5Ldelete(f, GARMENT "positions", H5P_DEFAULT);
}
static void h_no_fps(hid_t f) {
    H5Adelete(f, "fps");
}
static void h_old_version(hid_t f) {
    set_int(f, "version", 0);
}
static void h_count(hid_t f) {
    set_int(f, "garment_count", 2);
}
static void h_negative_count(hid_t f) {
    set_int(f, "garment_count", -1);
}
static void h_index(hid_t f) {
    hid_t group = H5Gopen2(f, GARMENT, H5P_DEFAULT);
    set_int(group, "index", 7);
    H5Gclose(group);
}
static void h_renamed(hid_t f) {
    H5Lmove(f, GARMENT, f, "garments/other", H5P_DEFAULT, H5P_DEFAULT);
}
static void h_changed(hid_t f) {
    set_int(f, "last_frame", 77);
}
static void h_triangle_high(hid_t f) {
    poke_int(f, GARMENT "triangles", 40);
}
static void h_triangle_low(hid_t f) {
    poke_int(f, GARMENT "triangles", -1);
}
static void h_panel(hid_t f) {
    poke_int(f, GARMENT "triangle_panels", 3);
}
static void h_short_stream(hid_t f) {
    set_dims(f, GARMENT "velocities", 2, 40, 3);
}
static void h_short_column(hid_t f) {
    set_dims(f, "frames/time", 2, 0, 0);
}
static void h_endless(hid_t f) {
    set_dims(f, "frames/frame", UINT64_C(1) << 40, 0, 0);
}
static void h_many_frames(hid_t f) {
    set_dims(f, "frames/frame", INT_MAX, 0, 0);
}
static void h_huge_rest(hid_t f) { /* never written, so it takes no room in the file */
    replace_dataset(f, GARMENT "rest_positions", H5T_IEEE_F32LE, 2, (hsize_t[]){1 << 28, 3}, NULL, NULL);
}
static void h_huge_chunked(hid_t f) {
    replace_dataset(f, GARMENT "triangles", H5T_STD_I32LE, 2, (hsize_t[]){INT_MAX / 3, 3}, NULL,
                    (hsize_t[]){1000, 3});
}
static void h_huge_dims(hid_t f) {
    replace_dataset(f, GARMENT "corner_uv", H5T_IEEE_F32LE, 3, (hsize_t[]){UINT64_C(1) << 62, 3, 2}, NULL,
                    (hsize_t[]){10, 3, 2});
}
static void h_rest_rank(hid_t f) {
    replace_dataset(f, GARMENT "rest_positions", H5T_IEEE_F32LE, 1, (hsize_t[]){120}, NULL, NULL);
}
static void h_rest_width(hid_t f) {
    replace_dataset(f, GARMENT "rest_positions", H5T_IEEE_F32LE, 2, (hsize_t[]){40, 4}, NULL, NULL);
}
static void h_no_vertices(hid_t f) {
    replace_dataset(f, GARMENT "rest_positions", H5T_IEEE_F32LE, 2, (hsize_t[]){0, 3}, NULL, NULL);
}
static void h_type(hid_t f) {
    replace_dataset(f, GARMENT "rest_positions", H5T_STD_I32LE, 2, (hsize_t[]){40, 3}, NULL, NULL);
}
static void h_type_text(hid_t f) {
    replace_dataset(f, GARMENT "panel_names", H5T_STD_I32LE, 1, (hsize_t[]){3}, NULL, NULL);
}
static void h_type_variable(hid_t f) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    replace_dataset(f, GARMENT "panel_names", type, 1, (hsize_t[]){3}, NULL, NULL);
    H5Tclose(type);
}
static void h_panel_texts(hid_t f) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, 1 << 30);
    replace_dataset(f, GARMENT "panel_names", type, 1, (hsize_t[]){1 << 30}, NULL, NULL);
    H5Tclose(type);
}
static void h_stream_vertices(hid_t f) {
    replace_dataset(f, GARMENT "positions", H5T_IEEE_F32LE, 3, (hsize_t[]){9, 41, 3},
                    (hsize_t[]){H5S_UNLIMITED, 41, 3}, (hsize_t[]){1, 41, 3});
}
static void h_stream_chunk(hid_t f) {
    replace_dataset(f, GARMENT "positions", H5T_IEEE_F32LE, 3, (hsize_t[]){9, 40, 3},
                    (hsize_t[]){H5S_UNLIMITED, 40, 3}, (hsize_t[]){1 << 20, 40, 3});
}
static void h_stream_contiguous(hid_t f) {
    replace_dataset(f, GARMENT "positions", H5T_IEEE_F32LE, 3, (hsize_t[]){9, 40, 3}, NULL, NULL);
}
static void h_column_type(hid_t f) {
    replace_dataset(f, "frames/time", H5T_IEEE_F32LE, 1, (hsize_t[]){9}, (hsize_t[]){H5S_UNLIMITED},
                    (hsize_t[]){256});
}
static void h_column_chunk(hid_t f) {
    replace_dataset(f, "frames/steps", H5T_IEEE_F64LE, 1, (hsize_t[]){9}, (hsize_t[]){H5S_UNLIMITED},
                    (hsize_t[]){1 << 28});
}
static void h_group_for_dataset(hid_t f) {
    H5Ldelete(f, "frames/time", H5P_DEFAULT);
    H5Gclose(H5Gcreate2(f, "frames/time", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}
static void h_external_link(hid_t f) {
    H5Ldelete(f, GARMENT "positions", H5P_DEFAULT);
    H5Lcreate_external("/etc/passwd", "/x", f, GARMENT "positions", H5P_DEFAULT, H5P_DEFAULT);
}
static void h_soft_link(hid_t f) {
    H5Ldelete(f, GARMENT "positions", H5P_DEFAULT);
    H5Lcreate_soft("/" GARMENT "velocities", f, GARMENT "positions", H5P_DEFAULT, H5P_DEFAULT);
}
static void h_external_data(hid_t f) {
    H5Ldelete(f, GARMENT "rest_positions", H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, (hsize_t[]){40, 3}, NULL);
    H5Pset_external(list, "/etc/passwd", 0, 480);
    H5Dclose(H5Dcreate2(f, GARMENT "rest_positions", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(list);
}
static void h_virtual_data(hid_t f) {
    H5Ldelete(f, GARMENT "rest_positions", H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(2, (hsize_t[]){40, 3}, NULL);
    H5Pset_virtual(list, space, "/etc/passwd", "/x", space);
    H5Dclose(H5Dcreate2(f, GARMENT "rest_positions", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(list);
}
static void h_filter(hid_t f) {
    H5Ldelete(f, GARMENT "positions", H5P_DEFAULT);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hid_t space = H5Screate_simple(3, (hsize_t[]){9, 40, 3}, (hsize_t[]){H5S_UNLIMITED, 40, 3});
    H5Pset_chunk(list, 3, (hsize_t[]){1, 40, 3});
    H5Pset_filter(list, 32015, H5Z_FLAG_OPTIONAL, 0, NULL);
    H5Dclose(H5Dcreate2(f, GARMENT "positions", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(list);
}
static void h_text_number(hid_t f) {
    put_attribute(f, "scene_name", H5T_STD_I32LE, H5Screate(H5S_SCALAR), &(int){5});
}
static void h_number_text(hid_t f) {
    put_attribute(f, "fps", H5T_C_S1, H5Screate(H5S_SCALAR), "x");
}
static void h_text_variable(hid_t f) {
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    put_attribute(f, "scene_name", type, H5Screate(H5S_SCALAR), &(const char *){"x"});
    H5Tclose(type);
}
static void h_text_latin(hid_t f) {
    put_attribute(f, "scene_name", H5T_C_S1, H5Screate(H5S_SCALAR), "\xe4");
}
static void h_array_attribute(hid_t f) {
    double many[1000] = {0};
    put_attribute(f, "fps", H5T_IEEE_F64LE, H5Screate_simple(1, (hsize_t[]){1000}, NULL), many);
}
static void h_null_attribute(hid_t f) {
    put_attribute(f, "fps", H5T_IEEE_F64LE, H5Screate(H5S_NULL), NULL);
}

static void test_hostile(void) {
    static const struct {
        const char *name;
        void (*change)(hid_t file);
        const char *message;
    } cases[] = {
        {"no_garments", h_no_garments, "garments"},
        {"no_frames", h_no_frames, "frames"},
        {"no_checksum", h_no_checksum, "frames/checksum is missing"},
        {"no_positions", h_no_positions, "positions is missing"},
        {"no_fps", h_no_fps, "attribute fps"},
        {"old_version", h_old_version, "version is 0"},
        {"count", h_count, "number of garments"},
        {"negative_count", h_negative_count, "number of garments"},
        {"index", h_index, "index"},
        {"renamed", h_renamed, "name of another garment"},
        {"changed", h_changed, "checksum of its header"},
        {"triangle_high", h_triangle_high, "names a vertex"},
        {"triangle_low", h_triangle_low, "names a vertex"},
        {"panel", h_panel, "names a panel"},
        {"short_stream", h_short_stream, "9 frames are stated but only 2"},
        {"short_column", h_short_column, "9 frames are stated but only 2"},
        {"endless", h_endless, "too long"},
        {"huge_rest", h_huge_rest, "larger than the file"},
        {"huge_chunked", h_huge_chunked, "wrong layout"},
        {"huge_dims", h_huge_dims, "of wrong dimensions"},
        {"rest_rank", h_rest_rank, "of wrong dimensions"},
        {"rest_width", h_rest_width, "of wrong dimensions"},
        {"no_vertices", h_no_vertices, "no vertices"},
        {"type", h_type, "of a wrong type"},
        {"type_text", h_type_text, "of a wrong type"},
        {"type_variable", h_type_variable, "of a wrong type"},
        {"panel_texts", h_panel_texts, "larger than the file"},
        {"stream_vertices", h_stream_vertices, "of wrong dimensions"},
        {"stream_chunk", h_stream_chunk, "too large chunks"},
        {"stream_contiguous", h_stream_contiguous, "wrong layout"},
        {"column_type", h_column_type, "of a wrong type"},
        {"column_chunk", h_column_chunk, "too large chunks"},
        {"group_for_dataset", h_group_for_dataset, "frames/time"},
        {"external_link", h_external_link, "positions is missing"},
        {"soft_link", h_soft_link, "positions is missing"},
        {"external_data", h_external_data, "another file"},
        {"virtual_data", h_virtual_data, "wrong layout"},
        {"filter", h_filter, "unknown filter"},
        {"text_number", h_text_number, "attribute scene_name"},
        {"number_text", h_number_text, "attribute fps"},
        {"text_variable", h_text_variable, "attribute scene_name"},
        {"text_latin", h_text_latin, "attribute scene_name"},
        {"array_attribute", h_array_attribute, "attribute fps"},
        {"null_attribute", h_null_attribute, "attribute fps"},
    };
    scene *s = make_scene(1, 40);
    write_cache(path, s, 9);
    size_t size;
    unsigned char *bytes = read_bytes(path, &size);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        toile_cache *cache = NULL;
        int before = failures;
        write_bytes(path, bytes, size);
        change_file(path, cases[i].change);
        CHECK_STATUS(toile_cache_open(&memory, path, &cache, &error), TOILE_FORMAT);
        CHECK_MESSAGE(cases[i].message);
        CHECK_MESSAGE(path);
        toile_cache_close(cache, NULL);
        CHECK(memory.peak_bytes < 64 << 20);
        CHECK_STATUS(toile_cache_reopen(&memory, path, FIRST, &cache, &error), TOILE_FORMAT);
        toile_cache_close(cache, NULL);
        if (failures > before)
            fprintf(stderr, "  in hostile file %s\n", cases[i].name);
    }
    /* Frames that are stated but not there are not counted. */
    write_bytes(path, bytes, size);
    change_file(path, h_many_frames);
    check_cache(path, s, 9);
    free(bytes);
    free_scene(s);
}

/* A figure that a file does not have reads as not-a-number, and the file can still be appended to. */
static void h_no_contacts(hid_t f) {
    H5Ldelete(f, "frames/contacts", H5P_DEFAULT);
}

static void test_missing_figure(void) {
    toile_cache *cache = NULL;
    toile_cache_frame frame;
    scene *s = make_scene(1, 10);
    write_cache(path, s, 3);
    change_file(path, h_no_contacts);
    CHECK_OK(toile_cache_reopen(&memory, path, INT_MAX, &cache, &error));
    CHECK_OK(append(cache, s, 1));
    CHECK_OK(toile_cache_check(cache, 3, &error));
    CHECK_OK(toile_cache_read_frame(cache, 3, &frame, &error));
    CHECK(isnan(frame.numbers.contacts) && frame.numbers.steps == FIRST + 3);
    CHECK_OK(toile_cache_close(cache, &error));
    free_scene(s);
}

/* ---- memory and disk that run out ---- */

static int allocations_left; /* < 0: no limit */

static void *failing_allocate(void *user, size_t size) {
    (void)user;
    if (allocations_left == 0)
        return NULL;
    allocations_left -= allocations_left > 0;
    return malloc(size);
}

static void failing_release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

static toile_status use_everything(toile_memory *limited, scene *s) {
    toile_cache *cache = NULL;
    void *state = NULL;
    size_t size;
    uint64_t fingerprint;
    int frame;
    toile_status status = toile_cache_create(limited, path, &s->header, &cache, &error);
    if (status == TOILE_OK)
        status = append(cache, s, 2);
    if (status == TOILE_OK)
        status = toile_cache_check(cache, 1, &error);
    toile_cache_close(cache, NULL);
    if (status == TOILE_OK)
        status = toile_cache_reopen(limited, path, FIRST, &cache, &error);
    if (status == TOILE_OK) {
        status = append(cache, s, 1);
        toile_cache_close(cache, NULL);
    }
    if (status == TOILE_OK)
        status = toile_cache_open(limited, path, &cache, &error);
    if (status == TOILE_OK) {
        status = toile_cache_refresh(cache, &error);
        if (status == TOILE_OK)
            status = toile_cache_check(cache, 1, &error);
        toile_cache_close(cache, NULL);
    }
    if (status == TOILE_OK)
        status = toile_checkpoint_write(path, 1, FIRST, "state", 5, &error);
    if (status == TOILE_OK)
        status = toile_checkpoint_read(limited, path, &fingerprint, &frame, &state, &size, &error);
    toile_free(limited, state);
    return status;
}

static void test_no_memory(void) {
    scene *s = make_scene(2, 10);
    toile_memory limited;
    toile_allocator allocator = {failing_allocate, failing_release, NULL};
    int n = 0;
    toile_status status = TOILE_NO_MEMORY;
    for (; status == TOILE_NO_MEMORY && n < 10000; n++) {
        toile_memory_init(&limited, &allocator);
        allocations_left = n;
        status = use_everything(&limited, s);
        CHECK(limited.live == 0 && limited.bytes == 0);
        CHECK(status == TOILE_OK || error.message[0]);
    }
    CHECK(status == TOILE_OK);
    CHECK(n > 50);
    printf("  %d allocations failed in turn\n", n - 1);
    allocations_left = -1;
    toile_checkpoint_remove(path);
    free_scene(s);
}

/* The size of a file is limited, which writes see as a full disk. The limit is met in every phase of a bake.
 */
static void test_disk_full(void) {
    scene *s = make_scene(2, 200);
    write_cache(path, s, 8);
    struct stat info;
    stat(path, &info);
    int in_create = 0, in_append = 0, in_close = 0;
    for (off_t limit = 0; limit < info.st_size + 512; limit += 331) {
        write_cache(path, s, 1); /* what must not be lost when the new one cannot be created */
        pid_t child = fork();
        if (child == 0) {
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)limit, (rlim_t)limit});
            toile_memory own;
            toile_memory_init(&own, NULL);
            toile_cache *cache = NULL;
            failures = 0;
            int code = 100;
            if (toile_cache_create(&own, path, &s->header, &cache, &error) == TOILE_OK) {
                toile_status status = append(cache, s, 8);
                code = toile_cache_frame_count(cache);
                if (status != TOILE_OK) {
                    CHECK(status == TOILE_IO);
                    CHECK_MESSAGE("free some disk space");
                    CHECK_STATUS(append(cache, s, 1), TOILE_IO);
                    CHECK_STATUS(toile_cache_close(cache, &error), TOILE_IO);
                } else if (toile_cache_close(cache, &error) != TOILE_OK) {
                    CHECK_MESSAGE("free some disk space");
                    code = 50;
                }
            } else {
                CHECK_MESSAGE("free some disk space");
            }
            CHECK(own.live == 0);
            free_scene(s); /* or the leak check at exit has the last word on the exit code */
            exit(failures ? 200 : code);
        }
        int status = 0;
        waitpid(child, &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) != 200);
        int code = WIFEXITED(status) ? WEXITSTATUS(status) : 200;
        int frames = code == 100 ? 1 : code == 50 ? 8 : code;
        in_create += code == 100;
        in_close += code == 50;
        in_append += code < 8;
        check_cache(path, s, frames);
        /* With room again the bake goes on. */
        toile_cache *cache = NULL;
        CHECK_OK(toile_cache_reopen(&memory, path, INT_MAX, &cache, &error));
        CHECK(toile_cache_frame_count(cache) == frames);
        CHECK_OK(append(cache, s, 2));
        CHECK_OK(toile_cache_close(cache, &error));
        check_cache(path, s, frames + 2);
        CHECK(plain_open_works(path));
        if (failures) {
            fprintf(stderr, "  at a limit of %ld bytes\n", (long)limit);
            break;
        }
    }
    CHECK(in_create > 0 && in_append > 0);
    printf("  full %d times in create, %d in append, %d in close\n", in_create, in_append, in_close);
    free_scene(s);
}

/* ---- checkpoint ---- */

static toile_status read_checkpoint(void **state, size_t *size, int *frame, uint64_t *fingerprint) {
    return toile_checkpoint_read(&memory, path, fingerprint, frame, state, size, &error);
}

static void test_checkpoint(void) {
    unsigned char state[1000];
    char state_path[160];
    void *got = NULL;
    size_t size;
    int frame;
    uint64_t fingerprint;
    snprintf(state_path, sizeof state_path, "%s.state", path);
    for (size_t i = 0; i < sizeof state; i++)
        state[i] = (unsigned char)random_number(256);

    CHECK_STATUS(read_checkpoint(&got, &size, &frame, &fingerprint), TOILE_IO);
    CHECK_MESSAGE(state_path);
    CHECK_OK(toile_checkpoint_write(path, 42, -7, NULL, 0, &error));
    CHECK_OK(read_checkpoint(&got, &size, &frame, &fingerprint));
    CHECK(size == 0 && frame == -7 && fingerprint == 42);
    toile_free(&memory, got);
    CHECK_OK(toile_checkpoint_write(path, UINT64_MAX, 12, state, sizeof state, &error));
    CHECK_OK(read_checkpoint(&got, &size, &frame, &fingerprint));
    CHECK(size == sizeof state && frame == 12 && fingerprint == UINT64_MAX && memcmp(got, state, size) == 0);
    toile_free(&memory, got);

    /* Every byte changed in turn, every length. */
    size_t length;
    unsigned char *bytes = read_bytes(state_path, &length);
    CHECK(length == sizeof state + 48);
    for (size_t i = 0; i < length; i++) {
        bytes[i] ^= 0x10;
        write_bytes(state_path, bytes, length);
        CHECK_STATUS(read_checkpoint(&got, &size, &frame, &fingerprint), TOILE_FORMAT);
        CHECK(!got);
        bytes[i] ^= 0x10;
        write_bytes(state_path, bytes, i);
        CHECK_STATUS(read_checkpoint(&got, &size, &frame, &fingerprint), TOILE_FORMAT);
    }
    write_bytes(state_path, bytes, length);
    FILE *file = fopen(state_path, "ab");
    fputc(0, file);
    fclose(file);
    CHECK_STATUS(read_checkpoint(&got, &size, &frame, &fingerprint), TOILE_FORMAT);
    bytes[8] = 2;
    write_bytes(state_path, bytes, length);
    CHECK_STATUS(read_checkpoint(&got, &size, &frame, &fingerprint), TOILE_FORMAT);
    CHECK_MESSAGE("update Toile");
    free(bytes);

    /* A full disk leaves the old one. */
    CHECK_OK(toile_checkpoint_write(path, 1, 2, state, sizeof state, &error));
    pid_t child = fork();
    if (child == 0) {
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){500, 500});
        toile_status status = toile_checkpoint_write(path, 3, 4, state, sizeof state, &error);
        _exit(status == TOILE_IO && strstr(error.message, "free some disk space") ? 0 : 1);
    }
    CHECK(ended_well(child));
    CHECK_OK(read_checkpoint(&got, &size, &frame, &fingerprint));
    CHECK(frame == 2 && fingerprint == 1 && memcmp(got, state, sizeof state) == 0);
    toile_free(&memory, got);
    char new_path[160];
    snprintf(new_path, sizeof new_path, "%s.state.new", path);
    CHECK(access(new_path, F_OK) != 0);

    /* Killed at any instant: one of them is there, whole. */
    for (int i = 0; i < 20; i++) {
        child = fork();
        if (child == 0)
            for (int k = 0;; k++)
                if (toile_checkpoint_write(path, (uint64_t)k, k, state, sizeof state, &error))
                    _exit(1);
        pause_ms(random_number(20));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        CHECK_OK(read_checkpoint(&got, &size, &frame, &fingerprint));
        toile_free(&memory, got);
    }
    toile_checkpoint_remove(path);
    CHECK(access(state_path, F_OK) != 0);
    CHECK_STATUS(toile_checkpoint_write("/missing/x.h5", 1, 1, state, 1, &error), TOILE_IO);
    CHECK_MESSAGE("check that the folder exists");
    CHECK_STATUS(toile_checkpoint_write(NULL, 1, 1, state, 1, &error), TOILE_MISUSE);
    CHECK_STATUS(toile_checkpoint_write(path, 1, 1, NULL, 1, &error), TOILE_MISUSE);
}

/* ---- the writing thread ---- */

static int told[64], told_count;
static void tell(void *user, int frame) {
    (void)user;
    told[told_count++ % 64] = frame;
}

/* Pushes frames and states as a bake does. */
static toile_status push_frames(toile_cache_writer *writer, scene *s, int count) {
    toile_status status = TOILE_OK;
    for (int f = FIRST; f < FIRST + count && status == TOILE_OK; f++) {
        toile_cache_slot slot;
        status = toile_cache_writer_slot(writer, &slot, &error);
        if (status != TOILE_OK)
            break;
        const toile_frame_view *view = make_frame(s, f);
        for (int g = 0; g < s->header.garment_count; g++) {
            size_t bytes = sizeof(float) * 3 * (size_t)s->garments[g].vertex_count;
            memcpy(slot.positions[g], view->positions[g], bytes);
            memcpy(slot.velocities[g], view->velocities[g], bytes);
        }
        toile_cache_writer_push(writer, view);
        void *state = f % 5 == 0 ? toile_cache_writer_state(writer) : NULL;
        if (state) {
            memset(state, f, 1000);
            toile_cache_writer_push_state(writer, f);
        }
    }
    return status;
}

static void test_writer(void) {
    enum { FRAMES = 60 };
    scene *s = make_scene(2, 500);
    toile_memory own;
    toile_memory_init(&own, NULL);
    toile_cache *cache = NULL;
    toile_cache_writer *writer = NULL;
    CHECK_OK(toile_cache_create(&own, path, &s->header, &cache, &error));
    toile_cache_writer_def def = {.cache = cache, .path = path, .fingerprint = 9, .state_size = 1000, .on_frame = tell};
    told_count = 0;
    CHECK_OK(toile_cache_writer_start(&memory, &def, &writer, &error));
    CHECK_OK(push_frames(writer, s, FRAMES));
    CHECK_OK(toile_cache_writer_wait(writer, &error));
    int checkpoint = toile_cache_writer_checkpoint(writer);
    CHECK_OK(toile_cache_writer_finish(writer, &error));
    CHECK(told_count == FRAMES && told[(FRAMES - 1) % 64] == FIRST + FRAMES - 1);
    CHECK_OK(toile_cache_close(cache, &error));
    check_cache(path, s, FRAMES);
    void *state;
    size_t size;
    uint64_t fingerprint;
    int frame;
    CHECK_OK(toile_checkpoint_read(&memory, path, &fingerprint, &frame, &state, &size, &error));
    CHECK(frame == checkpoint && frame % 5 == 0 && fingerprint == 9 && size == 1000 && ((unsigned char *)state)[999] == frame);
    toile_free(&memory, state);
    CHECK(own.live == 0);

    /* The disk is full at some time: the thread says so, what was told of is there, and memory comes back. */
    for (int limit = 20000; limit < 400000; limit += 35000) {
        pid_t child = fork();
        if (child == 0) {
            signal(SIGXFSZ, SIG_IGN);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){(rlim_t)limit, (rlim_t)limit});
            told_count = 0;
            if (toile_cache_create(&own, path, &s->header, &cache, &error) != TOILE_OK)
                _exit(strstr(error.message, "free some disk space") ? 0 : 1);
            def.cache = cache;
            if (toile_cache_writer_start(&memory, &def, &writer, &error))
                _exit(1);
            push_frames(writer, s, FRAMES);
            toile_status status = toile_cache_writer_finish(writer, &error);
            bool good = status == TOILE_OK || (status == TOILE_IO && strstr(error.message, "free some disk space"));
            toile_cache_close(cache, NULL);
            good = good && toile_cache_open(&own, path, &cache, NULL) == TOILE_OK && toile_cache_frame_count(cache) >= told_count &&
                   frames_are_right(cache, s, toile_cache_frame_count(cache));
            toile_cache_close(cache, NULL);
            _exit(good && own.live == 0 && memory.live == 0 ? 0 : 2);
        }
        CHECK(ended_well(child));
    }
    toile_checkpoint_remove(path);
    free_scene(s);
}

/* A cache that begins with another's frames. */
static void test_copy(void) {
    scene *s = make_scene(2, 300);
    toile_cache *from = NULL, *cache = NULL;
    write_cache(path, s, 9);
    unsigned char *bytes;
    size_t size;
    for (int keep = 0; keep <= 9; keep += 3) {
        CHECK_OK(toile_cache_open(&memory, path, &from, &error));
        s->header.last_frame = FIRST + 20 + keep;
        s->header.settings_json = keep ? "{\"changed\": true}" : "{}";
        CHECK_OK(toile_cache_create_from(&memory, other, &s->header, from, keep, &cache, &error));
        CHECK_OK(toile_cache_close(from, &error));
        CHECK_OK(append(cache, s, 2));
        CHECK_OK(toile_cache_close(cache, &error));
        check_cache(other, s, keep + 2);
    }
    /* Over the file that it comes from: the old one stays until the new one is whole. */
    CHECK_OK(toile_cache_open(&memory, path, &from, &error));
    CHECK_OK(toile_cache_create_from(&memory, path, &s->header, from, 5, &cache, &error));
    CHECK_OK(toile_cache_close(from, &error));
    CHECK_OK(toile_cache_rename(cache, other, &error));
    CHECK_OK(append(cache, s, 1));
    CHECK_OK(toile_cache_close(cache, &error));
    CHECK(access(path, F_OK) != 0);
    check_cache(other, s, 6);
    /* Other garments are refused. */
    scene *t = make_scene(2, 301);
    CHECK_OK(toile_cache_open(&memory, other, &from, &error));
    CHECK_STATUS(toile_cache_create_from(&memory, path, &t->header, from, 5, &cache, &error), TOILE_INVALID);
    CHECK_OK(toile_cache_close(from, &error));
    /* Cut off: with leniency the first frames are good. */
    CHECK_OK(toile_cache_reopen(&memory, other, INT_MAX, &cache, &error));
    CHECK_OK(append(cache, s, 30));
    CHECK_OK(toile_cache_close(cache, &error));
    bytes = read_bytes(other, &size);
    write_bytes(path, bytes, size - size / 3);
    CHECK(toile_cache_open(&memory, path, &cache, &error) != TOILE_OK);
    CHECK_OK(toile_cache_open_damaged(&memory, path, &cache, &error));
    int good = 0;
    for (int i = 0; i < toile_cache_frame_count(cache); i++)
        good += toile_cache_check(cache, i, &error) == TOILE_OK;
    printf("  %d good of %d frames in two thirds of a file\n", good, toile_cache_frame_count(cache));
    CHECK(toile_cache_frame_count(cache) == 36 && good >= 10 && good < 36);
    CHECK_OK(toile_cache_close(cache, &error));
    free(bytes);
    unlink(other);
    free_scene(s);
    free_scene(t);
}

/* A bake that goes on in a copy of a cache's frames, each allocation failing in turn: those of the bake's
 * thread, then those of the cache, which the writing thread uses too. */
typedef struct counter {
    int left; /* < 0: no limit */
} counter;

static void *counted_allocate(void *user, size_t size) {
    counter *c = user;
    if (c->left == 0)
        return NULL;
    c->left -= c->left > 0;
    return malloc(size);
}

static toile_status go_on_in_copy(toile_memory *bake, toile_memory *own, scene *s) {
    toile_cache *from = NULL, *cache = NULL;
    toile_cache_writer *writer = NULL;
    toile_status status = toile_cache_open(own, path, &from, &error);
    if (status == TOILE_OK)
        status = toile_cache_create_from(own, other, &s->header, from, 2, &cache, &error);
    toile_cache_close(from, NULL);
    if (status == TOILE_OK) {
        const toile_cache_writer_def def = {.cache = cache, .path = other, .state_size = 1000, .on_frame = tell};
        status = toile_cache_writer_start(bake, &def, &writer, &error);
    }
    if (status == TOILE_OK) {
        toile_cache_slot slot;
        status = toile_cache_writer_slot(writer, &slot, &error);
        const toile_frame_view *view = make_frame(s, FIRST + 2);
        for (int g = 0; g < s->header.garment_count; g++) {
            size_t bytes = sizeof(float) * 3 * (size_t)s->garments[g].vertex_count;
            memcpy(slot.positions[g], view->positions[g], bytes);
            memcpy(slot.velocities[g], view->velocities[g], bytes);
        }
        toile_cache_writer_push(writer, view);
        void *state = toile_cache_writer_state(writer);
        memset(state, 7, 1000);
        toile_cache_writer_push_state(writer, FIRST + 2);
        status = toile_cache_writer_finish(writer, &error);
    }
    if (status == TOILE_OK)
        status = toile_cache_rename(cache, path, &error);
    toile_status closed = toile_cache_close(cache, status == TOILE_OK ? &error : NULL);
    return status == TOILE_OK ? closed : status;
}

static void test_no_memory_going_on(void) {
    scene *s = make_scene(2, 40);
    counter limits[2];
    toile_memory memories[2];
    for (int limited = 0; limited < 2; limited++) {
        int n = 0;
        toile_status status = TOILE_NO_MEMORY;
        for (; status == TOILE_NO_MEMORY && n < 10000; n++) {
            write_cache(path, s, 3);
            for (int i = 0; i < 2; i++) {
                const toile_allocator allocator = {counted_allocate, failing_release, &limits[i]};
                limits[i].left = i == limited ? n : -1;
                toile_memory_init(&memories[i], &allocator);
            }
            told_count = 0;
            error.message[0] = 0;
            status = go_on_in_copy(&memories[0], &memories[1], s);
            CHECK(memories[0].live == 0 && memories[1].live == 0);
            CHECK(status == TOILE_OK || error.message[0]);
            check_cache(path, s, 3); /* the old one or the new one, whole */
            toile_checkpoint_remove(other);
        }
        CHECK_OK(status);
        CHECK(n > (limited ? 50 : 8) && told_count == 1);
        printf("  %d allocations failed in turn\n", n - 1);
    }
    unlink(other);
    toile_checkpoint_remove(path);
    free_scene(s);
}

static void test_lock(void) {
    toile_lock *lock = NULL, *second = NULL;
    char file[160];
    snprintf(file, sizeof file, "%s.lock", path);
    CHECK_OK(toile_lock_take(&memory, path, &lock, &error));
    CHECK_STATUS(toile_lock_take(&memory, path, &second, &error), TOILE_IO);
    CHECK_MESSAGE("another process is writing it");
    CHECK(toile_lock_beat(lock));
    CHECK(toile_lock_move(lock, other) && access(file, F_OK) != 0);
    CHECK_OK(toile_lock_take(&memory, path, &second, &error));
    toile_lock_release(second);
    CHECK(access(file, F_OK) != 0);
    snprintf(file, sizeof file, "%s.lock", other);
    unlink(file);
    CHECK(!toile_lock_beat(lock)); /* someone took it away */
    toile_lock_release(lock);
    /* Of many that want it at once, one has it. A dead one's is taken over. */
    for (int round = 0; round < 10; round++) {
        pid_t children[6];
        int told[2], over[2], winners = 0;
        CHECK(pipe(told) == 0 && pipe(over) == 0);
        for (int i = 0; i < 6; i++)
            if ((children[i] = fork()) == 0) {
                char end;
                close(over[1]);
                bool mine = toile_lock_take(&memory, path, &lock, &error) == TOILE_OK;
                if (write(told[1], mine ? "x" : "-", 1) != 1)
                    _exit(1);
                while (read(over[0], &end, 1) > 0) { /* until all have tried: a dead one's may be taken */
                }
                _exit(0); /* without release */
            }
        char taken;
        for (int i = 0; i < 6 && read(told[0], &taken, 1) == 1; i++)
            winners += taken == 'x';
        close(over[1]);
        for (int i = 0; i < 6; i++)
            waitpid(children[i], NULL, 0);
        close(over[0]);
        close(told[0]);
        close(told[1]);
        CHECK(winners == 1);
    }
    /* One killed while it put a dead one's lock aside leaves no file for ever; one that lives keeps its lock. */
    char dead[200], alive[200];
    snprintf(file, sizeof file, "%s.lock", path);
    snprintf(dead, sizeof dead, "%s.stale-1", file);
    snprintf(alive, sizeof alive, "%s.stale-2", file);
    CHECK(rename(file, dead) == 0); /* of the last winner above */
    CHECK_OK(toile_lock_take(&memory, path, &lock, &error));
    CHECK(access(dead, F_OK) != 0);
    CHECK(link(file, alive) == 0);
    toile_lock_release(lock);
    CHECK_OK(toile_lock_take(&memory, path, &lock, &error));
    CHECK(access(alive, F_OK) == 0);
    toile_lock_release(lock);
    unlink(alive);
    CHECK(access(file, F_OK) != 0);
}

/* ---- the program ---- */

/* HDF5 loses memory of its own when a file is damaged; ours is counted. Asked for by the leak checker, if
 * any. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
    return "leak:libhdf5";
}

static int write_for_h5py(const char *where, double wait) {
    scene *s = make_scene(2, 50);
    s->garments[1].name = "Rock/übergrößen";
    toile_cache *cache = NULL;
    toile_status status = toile_cache_create(&memory, where, &s->header, &cache, &error);
    for (int i = 0; status == TOILE_OK && i < 12; i++) {
        if (wait > 0)
            pause_ms(wait);
        status = append(cache, s, 1);
    }
    if (status == TOILE_OK)
        status = toile_cache_close(cache, &error);
    if (status != TOILE_OK)
        fprintf(stderr, "%s\n", error.message);
    free_scene(s);
    return status == TOILE_OK ? 0 : 1;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"round_trip", test_round_trip},
        {"long_and_wide", test_long_and_wide},
        {"no_triangles", test_no_triangles},
        {"reopen_and_drop", test_reopen_and_drop},
        {"names", test_names},
        {"bad_input", test_bad_input},
        {"messages", test_messages},
        {"replace", test_replace},
        {"read_beside_writer", test_read_beside_writer},
        {"growing", test_growing},
        {"kill", test_kill},
        {"damage", test_damage},
        {"hostile", test_hostile},
        {"missing_figure", test_missing_figure},
        {"no_memory", test_no_memory},
        {"disk_full", test_disk_full},
        {"checkpoint", test_checkpoint},
        {"writer", test_writer},
        {"copy", test_copy},
        {"no_memory_going_on", test_no_memory_going_on},
        {"lock", test_lock},
    };
    setvbuf(stdout, NULL, _IONBF, 0);
    toile_memory_init(&memory, NULL);
    if (argc > 2 && strcmp(argv[1], "--write") == 0)
        return write_for_h5py(argv[2], argc > 3 ? atof(argv[3]) : 0);

    int passed = 0, failed = 0;
    const char *temporary = getenv("TMPDIR");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc > 1 && !strstr(tests[i].name, argv[1]))
            continue;
        printf("%s\n", tests[i].name);
        snprintf(folder, sizeof folder, "%.40s/test_cache_XXXXXX", temporary ? temporary : "/tmp");
        if (!mkdtemp(folder)) {
            perror(folder);
            return 1;
        }
        snprintf(path, sizeof path, "%s/cache.h5", folder);
        snprintf(other, sizeof other, "%s/other", folder);
        random_state = 12345;
        failures = 0;
        tests[i].run();
        CHECK(memory.live == 0);
        CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
        /* Nothing is left beside what was asked for. */
        unlink(path);
        char lock[160];
        snprintf(lock, sizeof lock, "%s.lock", path);
        unlink(lock); /* of a writer that was killed */
        CHECK(rmdir(folder) == 0);
        failures ? failed++ : passed++;
        if (failures)
            printf("%s FAILED\n", tests[i].name);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
