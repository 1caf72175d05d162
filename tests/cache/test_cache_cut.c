/* A writer that is killed, at every byte where that can matter: test_cache_cut [NAME] runs the tests whose
 * name contains NAME.
 *
 * A kill leaves a file that some of the writes reached in full, the next one in part (the kernel ends a write
 * at a page when the process is to die), and later ones not at all. So instead of killing at random instants,
 * which meets the dangerous ones once in hundreds of times, all writes of a bake are recorded, and every such
 * file is made from them and looked at: it opens, every frame that was told is in it and right, and the bake
 * goes on from there.
 *
 * The linker leads the library's pwrite, ftruncate and syncs here (CMakeLists.txt). */
#include "cache.h"
#include "hdf5_journal.h"

#include <fcntl.h>
#include <hdf5.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A look takes ten times as long under a sanitizer: fewer of them there. */
#ifdef __SANITIZE_ADDRESS__
#define FEWER 8
#else
#define FEWER 1
#endif

static int failures;

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            failures++;                                                                                      \
            fprintf(stderr, "  %s:%d: failed: %s; %s\n", __FILE__, __LINE__, #condition, error.message);     \
        }                                                                                                    \
    } while (0)

static char folder[64], path[128];
static toile_memory memory;
static toile_error error;

/* ---- recording ---- */

typedef struct operation {
    int64_t at;           /* of a write; of a truncation the new size */
    int64_t size;         /* -1: a truncation */
    unsigned char *bytes; /* of a write */
    int least, most;      /* frames that must and that may be in the file meanwhile */
} operation;

static operation *operations;
static int operation_count, operation_room;
static bool recording;
static int least, most; /* of the call that is being made */

/* What is done to the cache; beside it there are its lock and others. */
static void record(int fd, int64_t at, int64_t size, const void *bytes) {
    struct stat mine, there;
    if (!recording || fstat(fd, &mine) || stat(path, &there) || mine.st_ino != there.st_ino)
        return;
    if (operation_count == operation_room) {
        operation_room = operation_room ? 2 * operation_room : 1024;
        operations = realloc(operations, (size_t)operation_room * sizeof *operations);
    }
    operation *o = &operations[operation_count++];
    *o = (operation){at, size, size > 0 ? malloc((size_t)size) : NULL, least, most};
    if (!operations || (size > 0 && !o->bytes))
        abort();
    if (size > 0)
        memcpy(o->bytes, bytes, (size_t)size);
}

static void forget(void) {
    for (int i = 0; i < operation_count; i++)
        free(operations[i].bytes);
    free(operations);
    operations = NULL;
    operation_count = operation_room = 0;
}

ssize_t __real_pwrite(int fd, const void *bytes, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t size, off_t at) {
    record(fd, (int64_t)at, (int64_t)size, bytes);
    return __real_pwrite(fd, bytes, size, at);
}

int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size) {
    record(fd, (int64_t)size, -1, NULL);
    return __real_ftruncate(fd, size);
}

/* No kill undoes what the kernel has; without waiting for the disk there is time for more looks. */
int __wrap_fsync(int fd);
int __wrap_fsync(int fd) {
    (void)fd;
    return 0;
}
int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd) {
    (void)fd;
    return 0;
}

/* ---- a file as the kill leaves it ---- */

typedef struct image {
    unsigned char *bytes;
    int64_t size, room;
} image;

static void resize(image *m, int64_t size) {
    if (size > m->room) {
        m->room = 2 * size;
        m->bytes = realloc(m->bytes, (size_t)m->room);
        if (!m->bytes)
            abort();
    }
    if (size > m->size)
        memset(m->bytes + m->size, 0, (size_t)(size - m->size));
    m->size = size;
}

/* The first `cut` bytes of a write, or a truncation. */
static void apply(image *m, const operation *o, int64_t cut) {
    if (o->size < 0) {
        resize(m, o->at);
        return;
    }
    if (cut > 0 && o->at + cut > m->size)
        resize(m, o->at + cut);
    if (cut > 0)
        memcpy(m->bytes + o->at, o->bytes, (size_t)cut);
}

static void load(image *m, const char *where) {
    FILE *file = fopen(where, "rb");
    m->size = 0;
    if (!file || fseek(file, 0, SEEK_END))
        abort();
    long size = ftell(file);
    rewind(file);
    resize(m, size);
    if (fread(m->bytes, 1, (size_t)size, file) != (size_t)size)
        abort();
    fclose(file);
}

static void save(const image *m) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (fd < 0 || write(fd, m->bytes, (size_t)m->size) != m->size || close(fd))
        abort();
}

/* ---- a bake ---- */

enum { FIRST = 3, GARMENTS = 2, MOST_VERTICES = 400 };
static int vertices[GARMENTS];
static toile_garment_view garments[GARMENTS];
static toile_cache_header header;

static void make_scene(int first, int second) {
    static float rest[3 * MOST_VERTICES], uv[6];
    static const int triangles[] = {0, 1, 2}, panels[] = {0};
    static const char *const names[] = {"all"};
    vertices[0] = first;
    vertices[1] = second;
    for (int g = 0; g < GARMENTS; g++)
        garments[g] =
            (toile_garment_view){g ? "cape" : "skirt", vertices[g], 1, 1, rest, triangles, panels, uv, names};
    header = (toile_cache_header){.scene_name = "cut",
                                  .settings_json = "{}",
                                  .library_version = "0",
                                  .fingerprint = 9,
                                  .fps = 24,
                                  .first_frame = FIRST,
                                  .last_frame = 10000,
                                  .garment_count = GARMENTS,
                                  .garments = garments};
}

/* Frames are told apart by their numbers, and frames that were baked again by `take`. */
static void fill(float *numbers, int count, int frame, int garment, int take) {
    for (int i = 0; i < count; i++)
        numbers[i] = (float)(i % 97) + 0.37f * (float)frame + 1000.f * (float)garment + 1e4f * (float)take;
}

static float positions[GARMENTS][3 * MOST_VERTICES], velocities[GARMENTS][3 * MOST_VERTICES];

static toile_status stage(toile_cache *cache, int frame, int take) {
    const float *x[GARMENTS], *v[GARMENTS];
    for (int g = 0; g < GARMENTS; g++) {
        fill(positions[g], 3 * vertices[g], frame, g, take);
        fill(velocities[g], 3 * vertices[g], -frame, g, take);
        x[g] = positions[g];
        v[g] = velocities[g];
    }
    const toile_frame_view view = {.frame = frame,
                                   .time = (frame - FIRST) / 24.0,
                                   .state_hash = 1000 + (uint64_t)frame,
                                   .positions = x,
                                   .velocities = v,
                                   .numbers = {.steps = frame}};
    return toile_cache_stage(cache, &view, &error);
}

/* `count` frames more, committed together. */
static void bake(toile_cache *cache, int count, int take) {
    int before = toile_cache_frame_count(cache);
    least = before;
    most = before + count;
    for (int i = 0; i < count; i++)
        CHECK(stage(cache, FIRST + before + i, take) == TOILE_OK);
    CHECK(toile_cache_commit(cache, &error) == TOILE_OK);
    least = most;
}

/* Frame `index` is that of one of the takes. */
static bool frame_is_right(toile_cache *cache, int index, int takes) {
    static float x[3 * MOST_VERTICES], v[3 * MOST_VERTICES];
    toile_cache_frame row;
    if (toile_cache_check(cache, index, &error) != TOILE_OK ||
        toile_cache_read_frame(cache, index, &row, &error) != TOILE_OK || row.frame != FIRST + index ||
        row.state_hash != 1000 + (uint64_t)row.frame || row.numbers.steps != row.frame)
        return false;
    int take = -1;
    for (int g = 0; g < GARMENTS; g++) {
        size_t bytes = (size_t)vertices[g] * 12;
        if (toile_cache_read(cache, index, g, x, v, &error) != TOILE_OK)
            return false;
        for (int t = 0; take < 0 && t < takes; t++) {
            fill(positions[g], 3 * vertices[g], row.frame, g, t);
            take = memcmp(x, positions[g], bytes) == 0 ? t : take;
        }
        fill(positions[g], 3 * vertices[g], row.frame, g, take);
        fill(velocities[g], 3 * vertices[g], -row.frame, g, take);
        if (take < 0 || memcmp(x, positions[g], bytes) != 0 || memcmp(v, velocities[g], bytes) != 0)
            return false;
    }
    return true;
}

/* ---- looking ---- */

static int looks, resumes;

/* As any reader does. The number of frames, -1 if something is wrong. Of a long bake only the last frames. */
static int look(int takes) {
    toile_cache *cache = NULL;
    looks++;
    if (toile_cache_open(&memory, path, &cache, &error) != TOILE_OK)
        return -1;
    int count = toile_cache_frame_count(cache);
    bool good = true;
    for (int i = count > 40 ? count - 8 : 0; good && i < count; i++)
        good = frame_is_right(cache, i, takes);
    return toile_cache_close(cache, &error) == TOILE_OK && good ? count : -1;
}

static bool plain_open_works(void) {
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (file > 0)
        H5Fclose(file);
    return file > 0;
}

/* The bake goes on. */
static bool resume(int count, int takes) {
    toile_cache *cache = NULL;
    resumes++;
    if (toile_cache_reopen(&memory, path, INT_MAX, &cache, &error) != TOILE_OK)
        return false;
    bool good = toile_cache_frame_count(cache) == count && stage(cache, FIRST + count, 0) == TOILE_OK &&
                toile_cache_commit(cache, &error) == TOILE_OK;
    good = toile_cache_close(cache, &error) == TOILE_OK && good;
    return good && look(takes) == count + 1 && plain_open_works();
}

/* What is in the file after `index` operations and `cut` bytes of the next. */
static bool try_cut(const image *m, int index, int64_t cut, int takes, bool go_on) {
    const operation *o = &operations[index < operation_count ? index : operation_count - 1];
    save(m);
    error.message[0] = '\0';
    int count = look(takes);
    bool good = count >= o->least && count <= o->most;
    if (good && go_on)
        good = resume(count, takes);
    if (!good) {
        failures++;
        fprintf(stderr,
                "  killed in operation %d of %d (%s of %lld at %lld) after %lld bytes: %d frames, %d to %d "
                "wanted; %s\n",
                index, operation_count, o->size < 0 ? "truncation" : "write", (long long)o->size,
                (long long)o->at, (long long)cut, count, o->least, o->most, error.message);
    }
    return good;
}

/* Every prefix of what was recorded since `start`, with the write behind it cut: at each page, after its
 * first byte, in its middle, before its last. Of a long recording every `stride`-th operation. */
static void try_all(const image *start, int takes, int stride) {
    image m = {0}, part = {0};
    resize(&m, start->size);
    memcpy(m.bytes, start->bytes, (size_t)start->size);
    recording = false;
    for (int i = 0; i <= operation_count && failures < 5; i++) {
        const operation *o = &operations[i];
        bool wanted = i % stride == 0;
        if (wanted)
            try_cut(&m, i, 0, takes, i % (7 * stride) == 0 || i == operation_count);
        if (i == operation_count)
            break;
        for (int64_t page = o->at / 4096 + 1; wanted && o->size > 0 && page * 4096 < o->at + o->size;
             page++) {
            resize(&part, m.size);
            memcpy(part.bytes, m.bytes, (size_t)m.size);
            apply(&part, o, page * 4096 - o->at);
            try_cut(&part, i, page * 4096 - o->at, takes, page % 3 == 0);
        }
        const int64_t cuts[] = {1, o->size / 2, o->size - 1};
        for (int k = 0; k < 3; k++)
            if (wanted && cuts[k] > 0 && cuts[k] < o->size && (FEWER == 1 || k == 1)) {
                resize(&part, m.size);
                memcpy(part.bytes, m.bytes, (size_t)m.size);
                apply(&part, o, cuts[k]);
                try_cut(&part, i, cuts[k], takes, (i + k) % 11 == 0);
            }
        apply(&m, o, o->size);
    }
    free(m.bytes);
    free(part.bytes);
}

static void begin(image *start) {
    load(start, path);
    recording = true;
}

/* ---- tests ---- */

static void test_append(void) {
    image start = {0};
    toile_cache *cache = NULL;
    make_scene(MOST_VERTICES, 9);
    CHECK(toile_cache_create(&memory, path, &header, &cache, &error) == TOILE_OK);
    begin(&start);
    /* Past 4 and 20 frames the index of the chunks gets new blocks. */
    for (int i = 0; i < 22; i++)
        bake(cache, 1, 0);
    bake(cache, 3, 0);
    CHECK(toile_cache_close(cache, &error) == TOILE_OK);
    try_all(&start, 1, FEWER);
    free(start.bytes);
}

static void test_drop(void) {
    image start = {0};
    toile_cache *cache = NULL;
    make_scene(50, 120);
    CHECK(toile_cache_create(&memory, path, &header, &cache, &error) == TOILE_OK);
    for (int i = 0; i < 24; i++)
        bake(cache, 1, 0);
    CHECK(toile_cache_close(cache, &error) == TOILE_OK);
    begin(&start);
    least = 10;
    most = 24;
    CHECK(toile_cache_reopen(&memory, path, FIRST + 9, &cache, &error) == TOILE_OK);
    for (int i = 0; i < 5; i++)
        bake(cache, 1, 1);
    CHECK(toile_cache_close(cache, &error) == TOILE_OK);
    try_all(&start, 2, FEWER);
    free(start.bytes);
}

/* The blocks of the index are of several pages by then. */
static void test_long(void) {
    image start = {0};
    toile_cache *cache = NULL;
    make_scene(3, 4);
    CHECK(toile_cache_create(&memory, path, &header, &cache, &error) == TOILE_OK);
    bake(cache, 250, 0);
    bake(cache, 1270, 0);
    begin(&start);
    for (int i = 0; i < 24; i++)
        bake(cache, 1, 0);
    CHECK(toile_cache_close(cache, &error) == TOILE_OK);
    try_all(&start, 1, 7 * FEWER);
    free(start.bytes);
}

/* Killed again while the reopen mends what the first kill left. */
static void test_twice(void) {
    image start = {0}, torn = {0};
    toile_cache *cache = NULL;
    int tried = 0;
    make_scene(30, 40);
    CHECK(toile_cache_create(&memory, path, &header, &cache, &error) == TOILE_OK);
    for (int i = 0; i < 4; i++)
        bake(cache, 1, 0);
    begin(&start);
    bake(cache, 1, 0);
    recording = false;
    CHECK(toile_cache_close(cache, &error) == TOILE_OK);

    operation *first = operations;
    int first_count = operation_count;
    operations = NULL;
    operation_count = operation_room = 0;
    for (int i = 0; i < first_count && failures < 5; i += 5 * FEWER) {
        resize(&torn, 0);
        resize(&torn, start.size);
        memcpy(torn.bytes, start.bytes, (size_t)start.size);
        for (int k = 0; k <= i; k++)
            apply(&torn, &first[k], k < i ? first[k].size : first[k].size / 2);
        save(&torn);
        recording = true;
        least = 4;
        most = 5;
        CHECK(toile_cache_reopen(&memory, path, INT_MAX, &cache, &error) == TOILE_OK);
        recording = false;
        CHECK(toile_cache_close(cache, &error) == TOILE_OK);
        try_all(&torn, 1, 3);
        forget();
        tried++;
    }
    operations = first;
    operation_count = first_count;
    printf("  %d files of a killed writer\n", tried);
    free(start.bytes);
    free(torn.bytes);
}

/* Readers beside a writer see each of these instants too, and the file goes on changing under them. */
static void test_beside(void) {
    image start = {0}, m = {0};
    toile_cache *cache = NULL, *reader = NULL;
    make_scene(60, 20);
    CHECK(toile_cache_create(&memory, path, &header, &cache, &error) == TOILE_OK);
    for (int i = 0; i < 3; i++)
        bake(cache, 1, 0);
    begin(&start);
    for (int i = 0; i < 4; i++)
        bake(cache, 1, 0);
    CHECK(toile_cache_close(cache, &error) == TOILE_OK);
    recording = false;
    for (int opened = 0; opened < operation_count && failures < 5; opened += FEWER) {
        m.size = 0;
        resize(&m, start.size);
        memcpy(m.bytes, start.bytes, (size_t)start.size);
        for (int i = 0; i < opened; i++)
            apply(&m, &operations[i], operations[i].size);
        const operation *next = &operations[opened];
        apply(&m, next, next->size / 2);
        save(&m);
        CHECK(toile_cache_open(&memory, path, &reader, &error) == TOILE_OK);
        int count = toile_cache_frame_count(reader), fd = open(path, O_RDWR);
        CHECK(reader && fd >= 0 && count >= next->least && count <= next->most);
        bool good = reader != NULL;
        for (int i = opened; good && i < operation_count; i++) {
            const operation *o = &operations[i];
            good = o->size < 0 ? __real_ftruncate(fd, (off_t)o->at) == 0
                               : __real_pwrite(fd, o->bytes, (size_t)o->size, (off_t)o->at) == o->size;
            if (!good || (i - opened) % 17 != 16)
                continue;
            /* With what the handle knows, and looking anew. */
            for (int f = 0; good && f < count; f++)
                good = frame_is_right(reader, f, 1);
            good = good && toile_cache_refresh(reader, &error) == TOILE_OK;
            count = toile_cache_frame_count(reader);
            good = good && count >= o->least && count <= o->most;
            looks++;
        }
        if (!good) {
            failures++;
            fprintf(stderr, "  opened in operation %d of %d: %s\n", opened, operation_count, error.message);
        }
        close(fd);
        CHECK(toile_cache_close(reader, &error) == TOILE_OK);
    }
    free(start.bytes);
    free(m.bytes);
}

/* The journal by itself, on a file of 100 bytes: a whole one is found, any other is none. */
static void test_journal(void) {
    unsigned char before[100], wanted[100], seen[100], other[10];
    toile_journal journal = {0}, found = {0};
    image start = {0}, m = {0};
    for (int i = 0; i < 100; i++)
        before[i] = wanted[i] = (unsigned char)i;
    memset(other, 200, sizeof other);
    memcpy(wanted + 5, other, 10);
    memcpy(wanted + 12, other, 3);
    memcpy(wanted + 90, other, 10);
    start = (image){before, 100, 0};
    save(&start);
    CHECK(toile_journal_add(&memory, &journal, 5, other, 10) &&
          toile_journal_add(&memory, &journal, 12, other, 3) &&
          toile_journal_add(&memory, &journal, 90, other, 10));
    CHECK(toile_journal_meets(&journal, 0, 6) && !toile_journal_meets(&journal, 0, 5) &&
          !toile_journal_meets(&journal, 15, 75) && toile_journal_meets(&journal, 14, 1) &&
          toile_journal_meets(&journal, 99, 50));
    int fd = open(path, O_RDWR);
    recording = true;
    CHECK(toile_journal_commit(&journal, fd, 100) == 0 && journal.size == 0);
    recording = false;
    CHECK(pread(fd, seen, 100, 0) == 100 && memcmp(seen, wanted, 100) == 0 && lseek(fd, 0, SEEK_END) == 100);
    CHECK(operation_count == 5 && operations[0].at == 100 && operations[0].size == 3 * 16 + 23 + 40);

    /* Every cut of every write: the changes are all found, from the whole journal on, or none is made. */
    resize(&m, 100);
    memcpy(m.bytes, before, 100);
    for (int i = 0; i < operation_count; i++)
        for (int64_t cut = 0; cut <= operations[i].size; cut++) {
            apply(&m, &operations[i], cut);
            save(&m);
            CHECK(toile_journal_find(&memory, &found, fd) == 0 && pread(fd, seen, 100, 0) == 100);
            toile_journal_overlay(&found, 0, seen, 100);
            bool whole = i > 0 || cut == operations[0].size;
            CHECK((found.size > 0) == whole && memcmp(seen, whole ? wanted : before, 100) == 0);
            CHECK(toile_journal_replay(&found, fd) == 0 && pread(fd, seen, 100, 0) == 100);
            CHECK(memcmp(seen, whole ? wanted : before, 100) == 0);
        }

    /* Damaged anywhere it is none; a reader sees when it goes, and when another takes its place. */
    for (int64_t i = 100; i < m.size; i++) {
        m.bytes[i] ^= 4;
        save(&m);
        CHECK(toile_journal_find(&memory, &found, fd) == 0 && found.size == 0);
        m.bytes[i] ^= 4;
    }
    save(&m);
    CHECK(toile_journal_find(&memory, &found, fd) == 0 && found.size > 0 && toile_journal_stands(&found, fd));
    CHECK(__real_ftruncate(fd, 100) == 0 && !toile_journal_stands(&found, fd));
    save(&m);
    CHECK(toile_journal_stands(&found, fd));
    CHECK(__real_pwrite(fd, "x", 1, (off_t)m.size) == 1 && !toile_journal_stands(&found, fd));

    /* Changes that reach behind the end, of which the file then keeps what it is to: the journal is out of
     * their way. */
    forget();
    CHECK(__real_ftruncate(fd, 100) == 0 && toile_journal_add(&memory, &journal, 95, other, 10));
    recording = true;
    CHECK(toile_journal_commit(&journal, fd, 103) == 0 && lseek(fd, 0, SEEK_END) == 103);
    recording = false;
    CHECK(operation_count == 3 && operations[0].at == 105);
    /* One that is not where it says is not believed. */
    m.size = 100;
    operations[0].at = 100;
    apply(&m, &operations[0], operations[0].size);
    save(&m);
    CHECK(toile_journal_find(&memory, &found, fd) == 0 && found.size == 0);
    toile_journal_free(&memory, &journal);
    toile_journal_free(&memory, &found);
    close(fd);
    free(m.bytes);
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        void (*run)(void);
    } tests[] = {
        {"journal", test_journal}, {"append", test_append}, {"drop", test_drop},
        {"long", test_long},       {"twice", test_twice},   {"beside", test_beside},
    };
    int passed = 0, failed = 0;
    const char *temporary = getenv("TMPDIR");
    setvbuf(stdout, NULL, _IONBF, 0);
    toile_memory_init(&memory, NULL);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    snprintf(folder, sizeof folder, "%.40s/test_cache_cut_XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        perror(folder);
        return 1;
    }
    snprintf(path, sizeof path, "%s/cache.h5", folder);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        if (argc > 1 && !strstr(tests[i].name, argv[1]))
            continue;
        printf("%s\n", tests[i].name);
        failures = looks = resumes = 0;
        tests[i].run();
        printf("  %d writes and truncations, %d looks, %d resumes\n", operation_count, looks, resumes);
        forget();
        recording = false;
        CHECK(memory.live == 0);
        unlink(path);
        failures ? failed++ : passed++;
        if (failures)
            printf("%s FAILED\n", tests[i].name);
    }
    CHECK(rmdir(folder) == 0);
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
