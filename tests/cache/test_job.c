/* Job files: round trip, what is refused, memory and disk that run out, damage. */
#include "check.h"

#include "hash.h"
#include "job_hdf5.h"
#include "toile.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[128];

enum { VERTICES = 5, FRAMES = 6 };
static const double POINTS[VERTICES * 3] = {0, 0, 0, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0.5, 2, 1.0 / 3};
static const int SIZES[2] = {4, 3}, CORNERS[7] = {0, 1, 2, 3, 3, 2, 4}, PANELS[2] = {0, 1};
static const double UV[14] = {0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 0, 0.5, 1};
static const char *const NAMES[2] = {"front", "back of it"};
static const char SCENE[] =
    "{\"toile\": 1, \"frames\": [1, 3], \"garments\": [{\"name\": \"cloth\", \"mesh\": \"a b.%\"}],"
    "\"pins\": [{\"garment\": \"cloth\", \"select\": {\"vertices\": [1]}, \"track\": \"pin\"}]}";

static void track_at(int frame, double *xyz) {
    memcpy(xyz, POINTS, sizeof POINTS);
    xyz[2] = frame / 2; /* frames in pairs are alike */
}

static toile_job_array mesh(void) {
    return (toile_job_array){.name = "a b.%",
                             .vertex_count = VERTICES,
                             .face_count = 2,
                             .corner_count = 7,
                             .panel_count = 2,
                             .positions = POINTS,
                             .face_sizes = SIZES,
                             .face_vertices = CORNERS,
                             .corner_uv = UV,
                             .face_panels = PANELS,
                             .panel_names = NAMES};
}

static toile_status write_job(toile_memory *memory, toile_error *error) {
    toile_job_file *file = NULL;
    int track = 0, pin = 0;
    double xyz[VERTICES * 3];
    toile_job_array m = mesh();
    toile_status status = toile_job_file_create(memory, path, &file, error);
    if (status == TOILE_OK)
        status = toile_job_file_put_mesh(file, &m, error);
    if (status == TOILE_OK)
        status = toile_job_file_begin_track(file, "body", 10, VERTICES, &track, error);
    if (status == TOILE_OK)
        status = toile_job_file_begin_track(file, "pin", 1, 1, &pin, error);
    for (int f = 0; status == TOILE_OK && f < FRAMES; f++) {
        track_at(f, xyz);
        status = toile_job_file_append(file, track, xyz, error);
        if (status == TOILE_OK)
            status = toile_job_file_append(file, pin, POINTS + 3, error);
    }
    if (status == TOILE_OK)
        status = toile_job_file_finish(file, SCENE, error);
    toile_job_file_close(file);
    return status;
}

/* Everything in the file as it was given; the status of the first thing that fails. */
static toile_status read_job(toile_memory *memory, toile_error *error, bool *same) {
    toile_job_file *file = NULL;
    toile_job_array m = {0};
    toile_job_track info;
    int track;
    double xyz[VERTICES * 3], expected[VERTICES * 3];
    *same = false;
    toile_status status = toile_job_file_open(memory, path, &file, error);
    if (status != TOILE_OK)
        return status;
    status = toile_job_file_read_mesh(file, "a b.%", &m, NULL, error);
    if (status == TOILE_OK) {
        *same = m.vertex_count == VERTICES && m.corner_count == 7 &&
                memcmp(m.positions, POINTS, sizeof POINTS) == 0 &&
                memcmp(m.face_vertices, CORNERS, sizeof CORNERS) == 0 &&
                memcmp(m.corner_uv, UV, sizeof UV) == 0 &&
                memcmp(m.face_panels, PANELS, sizeof PANELS) == 0 &&
                strcmp(m.panel_names[1], NAMES[1]) == 0 && strcmp(toile_job_file_scene(file), SCENE) == 0;
        status = toile_job_file_find_track(file, "body", &track, &info, error);
    }
    if (status == TOILE_OK)
        *same =
            *same && info.first_frame == 10 && info.frame_count == FRAMES && info.vertex_count == VERTICES;
    for (int f = -2; status == TOILE_OK && f < FRAMES + 2; f++) {
        status = toile_job_file_read_track(file, track, 10 + f, xyz, error);
        track_at(f < 0 ? 0 : f < FRAMES ? f : FRAMES - 1, expected);
        *same = *same && memcmp(xyz, expected, sizeof xyz) == 0;
    }
    toile_job_file_free_mesh(memory, &m);
    toile_job_file_close(file);
    return status;
}

static void round_trip(void) {
    toile_memory memory;
    toile_error error = {0};
    bool same;
    toile_memory_init(&memory, NULL);
    CHECK(write_job(&memory, &error) == TOILE_OK, "%s", error.message);
    CHECK(toile_job_file_is(path), "not HDF5");
    CHECK(read_job(&memory, &error, &same) == TOILE_OK && same, "%s", error.message);
    CHECK(memory.live == 0, "%llu allocations are left", (unsigned long long)memory.live);
}

static void refused(void) {
    toile_memory memory;
    toile_error error = {0};
    toile_job_file *file = NULL;
    toile_job_array m = mesh();
    toile_job_track info;
    int track;
    toile_memory_init(&memory, NULL);
    CHECK(toile_job_file_create(&memory, "/nonexistent/x.h5", &file, &error) == TOILE_IO && !file, "%s",
          error.message);
    CHECK(toile_job_file_create(&memory, path, &file, &error) == TOILE_OK, "%s", error.message);
    CHECK(toile_job_file_put_mesh(file, &m, &error) == TOILE_OK, "%s", error.message);
    CHECK(toile_job_file_put_mesh(file, &m, &error) == TOILE_INVALID &&
              strstr(error.message, "already has a mesh"),
          "%s", error.message);
    CHECK(toile_job_file_begin_track(file, "t", 1, 1, &track, &error) == TOILE_OK, "%s", error.message);
    CHECK(toile_job_file_finish(file, SCENE, &error) == TOILE_INVALID && strstr(error.message, "no frame"),
          "%s", error.message);
    CHECK(toile_job_file_append(file, 7, POINTS, &error) == TOILE_MISUSE, "%s", error.message);
    toile_job_file_close(file);
    CHECK(toile_job_file_open(&memory, "/nonexistent/x.h5", &file, &error) == TOILE_IO, "%s", error.message);
    CHECK(write_job(&memory, &error) == TOILE_OK, "%s", error.message);
    CHECK(toile_job_file_open(&memory, path, &file, &error) == TOILE_OK, "%s", error.message);
    CHECK(toile_job_file_read_mesh(file, "c", &m, NULL, &error) == TOILE_INVALID &&
              strstr(error.message, "it has: a"),
          "%s", error.message);
    CHECK(toile_job_file_find_track(file, "c", &track, &info, &error) == TOILE_INVALID &&
              strstr(error.message, "body, pin"),
          "%s", error.message);
    CHECK(toile_job_file_append(file, 0, POINTS, &error) == TOILE_MISUSE, "%s", error.message);
    toile_job_file_close(file);
    CHECK(memory.live == 0, "%llu allocations are left", (unsigned long long)memory.live);
}

typedef struct failing {
    int left;
} failing;

static void *allocate(void *user, size_t size) {
    failing *f = user;
    return f->left-- > 0 ? malloc(size) : NULL;
}

static void release(void *user, void *pointer) {
    (void)user;
    free(pointer);
}

static void memory_runs_out(void) {
    toile_error error = {0};
    bool same;
    for (int n = 0;; n++) {
        failing f = {n};
        toile_memory memory;
        toile_memory_init(&memory, &(toile_allocator){allocate, release, &f});
        unlink(path);
        toile_status status = write_job(&memory, &error);
        if (status == TOILE_OK)
            status = read_job(&memory, &error, &same);
        CHECK(memory.live == 0, "after %d allocations %llu are left", n, (unsigned long long)memory.live);
        if (status == TOILE_OK) {
            CHECK(n > 10 && same, "only %d allocations", n);
            return;
        }
        CHECK(status == TOILE_NO_MEMORY || status == TOILE_IO || status == TOILE_FORMAT, "allocation %d: %s",
              n, error.message);
    }
}

/* A limit on the size of files stands for a full disk. Nothing must be left under the job's name, and HDF5
 * must close. */
static void disk_full(void) {
    toile_memory memory;
    toile_error error = {0};
    struct stat info;
    struct rlimit before;
    toile_memory_init(&memory, NULL);
    CHECK(write_job(&memory, &error) == TOILE_OK && stat(path, &info) == 0, "%s", error.message);
    getrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_IGN);
    int failures = 0;
    for (rlim_t size = 0; size < (rlim_t)info.st_size; size += 97) {
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){size, before.rlim_max});
        unlink(path);
        toile_status status = write_job(&memory, &error);
        failures += status < 0;
        CHECK(status == TOILE_IO && !toile_job_file_is(path), "%lld bytes: %s", (long long)size,
              error.message);
    }
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK(failures > 20, "%d", failures);
    CHECK(write_job(&memory, &error) == TOILE_OK, "%s", error.message);
    CHECK(memory.live == 0, "%llu allocations are left", (unsigned long long)memory.live);
}

/* Bytes turned over everywhere: an error, or what was written. Never a crash, never other numbers. */
static void damage(void) {
    toile_memory memory;
    toile_error error = {0};
    struct stat info;
    toile_memory_init(&memory, NULL);
    CHECK(write_job(&memory, &error) == TOILE_OK && stat(path, &info) == 0, "%s", error.message);
    int found = 0, wrong = 0;
    for (int i = 0; i < 1500; i++) {
        int fd = open(path, O_RDWR);
        off_t at = (off_t)(random_unit() * (double)info.st_size);
        unsigned char byte, other;
        bool same;
        if (pread(fd, &byte, 1, at) != 1)
            break;
        other = (unsigned char)(byte ^ (1 + (int)(random_unit() * 255)));
        CHECK(pwrite(fd, &other, 1, at) == 1, "cannot damage");
        toile_status status = read_job(&memory, &error, &same);
        found += status < 0;
        wrong += status == TOILE_OK && !same;
        CHECK(pwrite(fd, &byte, 1, at) == 1, "cannot repair");
        close(fd);
    }
    CHECK(found > 100 && wrong == 0, "found %d, unnoticed %d", found, wrong);
    CHECK(memory.live == 0, "%llu allocations are left", (unsigned long long)memory.live);
}

static void public_calls(void) {
    toile_job *job = NULL;
    int track;
    char message[600] = "";
    const toile_job_mesh m = {.name = "a b.%",
                              .vertex_count = VERTICES,
                              .positions = POINTS,
                              .face_count = 2,
                              .face_sizes = SIZES,
                              .face_vertices = CORNERS,
                              .corner_uv = UV,
                              .panel_count = 2,
                              .panel_names = NAMES,
                              .face_panels = PANELS};
    toile_job_mesh bad = m;
    bad.vertex_count = 4;
    bad.name = "bad";
    CHECK(toile_job_create("/nonexistent/x.h5", &job) == TOILE_IO && *toile_job_message(job), "%s",
          toile_job_message(job));
    CHECK(toile_job_add_mesh(job, &m) == TOILE_MISUSE, "%s", toile_job_message(job));
    toile_job_destroy(job);
    CHECK(toile_job_create(path, &job) == TOILE_OK, "%s", toile_job_message(job));
    CHECK(toile_job_add_mesh(job, &bad) == TOILE_INVALID && strstr(toile_job_message(job), "uses vertex 4"),
          "%s", toile_job_message(job));
    CHECK(toile_job_add_mesh(job, &m) == TOILE_OK, "%s", toile_job_message(job));
    CHECK(toile_job_add_track(job, "pin", 1, 1, &track) == TOILE_OK, "%s", toile_job_message(job));
    CHECK(toile_job_add_frame(job, track, POINTS + 3) == TOILE_OK, "%s", toile_job_message(job));
    CHECK(toile_job_finish(job, SCENE) == TOILE_OK, "%s", toile_job_message(job));
    toile_job_destroy(job);
    CHECK(toile_job_check(path, message, sizeof message) == TOILE_OK && !*message, "%s", message);
    CHECK(toile_job_check("/nonexistent/x.h5", message, sizeof message) == TOILE_IO && *message, "%s",
          message);
    char *settings = toile_settings_json(), *fabrics = toile_fabrics_json();
    CHECK(settings && strstr(settings, "time_step") && fabrics && strstr(fabrics, "cotton"), "tables");
    toile_free_text(settings);
    toile_free_text(fabrics);
}

int main(int argc, char **argv) {
    snprintf(folder, sizeof folder, "/tmp/toile_job_XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/a.h5", folder);
    RUN(round_trip);
    RUN(refused);
    RUN(memory_runs_out);
    RUN(disk_full);
    RUN(damage);
    RUN(public_calls);
    unlink(path);
    rmdir(folder);
    FINISH();
}
