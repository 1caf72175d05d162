#include "obj.h"

#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MOST ((size_t)1 << 30)    /* bytes; keeps every count and line number within an int */
#define COORDINATE_MOST 1e5            /* m; doubles get too coarse for contact farther out */
#define EDGE_LEAST 1e-9                /* m */
#define THINNEST 1e-6                  /* height over longest side at which a triangle counts as a line */
#define FLATNESS 1e-4                  /* distance from the plane over size at which a panel is not flat */
enum { NAME_MOST = 255, PANEL_MOST = 10000, TOKEN_MOST = 400 };

toile_status toile_read_file(toile_memory *memory, const char *path, size_t most, char **text, size_t *size,
                             toile_error *error) {
    toile_status status = TOILE_OK;
    char *block = NULL;
    size_t used = 0;
    struct stat info;
    /* Without waiting, so that a pipe in place of a file cannot hang us. */
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return toile_fail(error, TOILE_IO, "cannot open %s: %s", path, strerror(errno));
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode)) {
        status = toile_fail(error, TOILE_IO, "cannot read %s: it is not a file", path);
        goto out;
    }
    if ((uintmax_t)info.st_size > most) {
        status = toile_fail(error, TOILE_INVALID, "%s: has %.0f MB; at most %.0f MB are read", path,
                            (double)info.st_size / 1e6, (double)most / 1e6);
        goto out;
    }
    block = toile_alloc(memory, (size_t)info.st_size + 1, 1);
    if (!block) {
        status = toile_fail_memory(error, path);
        goto out;
    }
    while (used < (size_t)info.st_size) {
        ssize_t got = read(file, block + used, (size_t)info.st_size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            status = toile_fail(error, TOILE_IO, "cannot read %s: %s", path, strerror(errno));
            goto out;
        }
        if (got == 0)
            break;
        used += (size_t)got;
    }
    block[used] = 0;
    *text = block;
    *size = used;
    block = NULL;
out:
    toile_free(memory, block);
    close(file);
    return status;
}

/* ---- words and numbers ---- */

typedef struct word {
    const char *start;
    size_t length;
} word;

typedef struct reader {
    toile_memory *memory;
    toile_error *error;
    toile_obj *obj;
    const char *at, *end;           /* a zero byte stands at `end` */
    int line;                       /* of `at` */
    int first_line;                 /* of the statement being read: where messages point */
    locale_t plain;                 /* numbers have a point, whatever the host's language */
    int vertex_capacity, uv_capacity, face_capacity, corner_capacity, line_capacity;
    struct names {                  /* panels by group, object or material */
        word pending;               /* name of the faces to come */
        int current;                /* its number, -1 until a face asks for it */
        int count, capacity;
        char **list;
        uint64_t *hashes;
        int *face_names;            /* (face_capacity) */
    } names[3];
} reader;

static toile_status refuse(const reader *r, const char *what, const char *advice) {
    return toile_fail(r->error, TOILE_INVALID, "%s:%d: %s; %s", r->obj->path, r->first_line, what, advice);
}

static toile_status refuse_word(const reader *r, const char *what, word w, const char *advice) {
    return toile_fail(r->error, TOILE_INVALID, "%s:%d: %s \"%.*s\"; %s", r->obj->path, r->first_line, what,
                      (int)(w.length < 40 ? w.length : 40), w.start, advice);
}

static toile_status no_memory(const reader *r) {
    return toile_fail_memory(r->error, r->obj->path);
}

static bool is_line_end(char c) {
    return c == '\n' || c == '\r';
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static void skip_line_end(reader *r) {
    bool pair = r->at + 1 < r->end && r->at[0] == '\r' && r->at[1] == '\n';
    r->at += pair ? 2 : 1;
    r->line++;
}

static bool at_continuation(const reader *r) {
    return r->at + 1 < r->end && r->at[0] == '\\' && is_line_end(r->at[1]);
}

static void skip_blanks(reader *r) {
    while (r->at < r->end) {
        if (at_continuation(r)) {
            r->at++;
            skip_line_end(r);
        } else if (is_blank(*r->at)) {
            r->at++;
        } else {
            break;
        }
    }
}

static void skip_line(reader *r) {
    while (r->at < r->end && !is_line_end(*r->at)) {
        if (at_continuation(r)) {
            r->at++;
            skip_line_end(r);
        } else {
            r->at++;
        }
    }
    if (r->at < r->end)
        skip_line_end(r);
}

/* The next word of the statement; false at its end. */
static bool next_word(reader *r, word *w) {
    skip_blanks(r);
    w->start = r->at;
    while (r->at < r->end && !is_line_end(*r->at) && !is_blank(*r->at) && !at_continuation(r))
        r->at++;
    w->length = (size_t)(r->at - w->start);
    return w->length > 0 && *w->start != '#';
}

static bool is_word(word w, const char *text) {
    return w.length == strlen(text) && memcmp(w.start, text, w.length) == 0;
}

static toile_status read_numbers(reader *r, int count, double *numbers) {
    word w;
    for (int i = 0; i < count; i++) {
        if (!next_word(r, &w))
            return refuse(r, "too few numbers", count == 3 ? "a vertex has x y z" : "a vt has u v");
        size_t plain = 0;
        while (plain < w.length && w.start[plain] && strchr("+-.0123456789eE", w.start[plain]))
            plain++;
        char *end = NULL;
        if (plain == w.length && w.length <= TOKEN_MOST)
            numbers[i] = strtod_l(w.start, &end, r->plain);
        if (end != w.start + w.length)
            return refuse_word(r, "not a number:", w, "coordinates are written like 0.25 or 2.5e-1");
        if (!isfinite(numbers[i]))
            return refuse_word(r, "not a finite number:", w, "correct it in the program that wrote the file");
    }
    return TOILE_OK;
}

/* Reads an index that may count back from `count` and leaves it from 0; those ahead of `count` are checked
 * when the file is read. */
static bool read_index(const char **at, const char *end, int count, int *index) {
    bool back = *at < end && **at == '-';
    const char *first = back ? ++*at : *at;
    long long value = 0;
    while (*at < end && **at >= '0' && **at <= '9' && value <= INT_MAX)
        value = value * 10 + (*(*at)++ - '0');
    if (*at == first || value == 0 || value > INT_MAX || (back && value > count))
        return false;
    *index = (int)(back ? count - value : value - 1);
    return true;
}

/* What faces without a name belong to. */
static const word UNNAMED = {"panel", 5};

/* ---- growing arrays ---- */

/* A block with room for `more` elements after its first `count`; null when there is no memory, and then the
 * old one stays. */
static void *reserve(toile_memory *memory, void *block, int *capacity, int count, int more, size_t size) {
    if (count + more <= *capacity)
        return block;
    int wanted = 2 * (count + more) + 64; /* FILE_MOST keeps this within an int */
    void *grown = toile_grow(memory, block, (size_t)count, (size_t)wanted, size);
    if (grown)
        *capacity = wanted;
    return grown;
}

/* Arrays that grow together share a capacity, which the caller sets to `after` once all of them have it. */
#define GROW(array, capacity, count, more, width)                                                        \
    do {                                                                                                 \
        int before = (capacity);                                                                         \
        void *grown = reserve(r->memory, array, &before, count, more, sizeof *(array) * (size_t)(width)); \
        if (!grown)                                                                                      \
            return no_memory(r);                                                                         \
        array = grown;                                                                                   \
        after = before;                                                                                  \
    } while (0)

/* ---- statements ---- */

static toile_status read_vertex(reader *r) {
    toile_obj *obj = r->obj;
    int after = 0;
    GROW(obj->positions, r->vertex_capacity, obj->vertex_count, 1, 3);
    GROW(obj->vertex_lines, r->vertex_capacity, obj->vertex_count, 1, 1);
    r->vertex_capacity = after;
    obj->vertex_lines[obj->vertex_count] = r->first_line;
    toile_status status = read_numbers(r, 3, obj->positions + 3 * (size_t)obj->vertex_count);
    obj->vertex_count += status == TOILE_OK;
    return status;
}

static toile_status read_uv(reader *r) {
    toile_obj *obj = r->obj;
    int after = 0;
    GROW(obj->uvs, r->uv_capacity, obj->uv_count, 1, 2);
    r->uv_capacity = after;
    toile_status status = read_numbers(r, 2, obj->uvs + 2 * (size_t)obj->uv_count);
    obj->uv_count += status == TOILE_OK;
    return status;
}

static toile_status read_corner(reader *r, word w, int *vertex, int *uv) {
    static const char ADVICE[] =
        "a corner is written v, v/vt, v//vn or v/vt/vn, counted from 1 or back from -1";
    const char *at = w.start, *end = w.start + w.length;
    *uv = -1;
    if (!read_index(&at, end, r->obj->vertex_count, vertex))
        return refuse_word(r, "not a vertex of this file:", w, ADVICE);
    if (at < end && *at == '/') {
        at++;
        if (at < end && *at != '/' && !read_index(&at, end, r->obj->uv_count, uv))
            return refuse_word(r, "not a vt of this file:", w, ADVICE);
        if (at < end && *at == '/') {
            int normal;
            at++;
            if (!read_index(&at, end, INT_MAX, &normal))
                return refuse_word(r, "not a vn of this file:", w, ADVICE);
        }
    }
    return at == end ? TOILE_OK : refuse_word(r, "not a corner:", w, ADVICE);
}

/* The number of the name that is pending, added to the list if it is new. */
static toile_status name_face(reader *r, struct names *names, int *number) {
    if (names->current < 0) {
        word w = names->pending;
        uint64_t hash = toile_hash(TOILE_HASH_SEED, w.start, w.length);
        int i = 0;
        while (i < names->count && (names->hashes[i] != hash || !is_word(w, names->list[i])))
            i++;
        if (i == names->count) {
            if (i == PANEL_MOST)
                return refuse(r, "more than 10000 groups, objects or materials", "join some of them");
            int after = 0;
            GROW(names->list, names->capacity, i, 1, 1);
            GROW(names->hashes, names->capacity, i, 1, 1);
            names->capacity = after;
            names->list[i] = toile_alloc(r->memory, w.length + 1, 1);
            if (!names->list[i])
                return no_memory(r);
            memcpy(names->list[i], w.start, w.length);
            names->hashes[i] = hash;
            names->count++;
        }
        names->current = i;
    }
    *number = names->current;
    return TOILE_OK;
}

static toile_status read_face(reader *r) {
    toile_obj *obj = r->obj;
    int after = 0;
    GROW(obj->face_sizes, r->face_capacity, obj->face_count, 1, 1);
    GROW(obj->face_lines, r->face_capacity, obj->face_count, 1, 1);
    for (int k = 0; k < 3; k++)
        GROW(r->names[k].face_names, r->face_capacity, obj->face_count, 1, 1);
    r->face_capacity = after;
    GROW(obj->corner_vertices, r->corner_capacity, obj->corner_count, 4, 1);
    GROW(obj->corner_uvs, r->corner_capacity, obj->corner_count, 4, 1);
    r->corner_capacity = after;

    int *vertices = obj->corner_vertices + obj->corner_count, *uvs = obj->corner_uvs + obj->corner_count;
    int size = 0;
    for (word w; next_word(r, &w); size++) {
        if (size == 4)
            return refuse(r, "a face with more than 4 corners", "triangulate the mesh");
        toile_status status = read_corner(r, w, &vertices[size], &uvs[size]);
        if (status != TOILE_OK)
            return status;
        for (int k = 0; k < size; k++)
            if (vertices[k] == vertices[size])
                return refuse_word(r, "a face with the same vertex twice:", w, "remove degenerate faces");
    }
    if (size < 3)
        return refuse(r, "a face with fewer than 3 corners", "remove it");
    for (int k = 0; k < 3; k++) {
        toile_status status = name_face(r, &r->names[k], &r->names[k].face_names[obj->face_count]);
        if (status != TOILE_OK)
            return status;
    }
    obj->face_sizes[obj->face_count] = size;
    obj->face_lines[obj->face_count] = r->first_line;
    obj->face_count++;
    obj->corner_count += size;
    return TOILE_OK;
}

/* A line through two or more vertices: edges that no face has, as Blender writes sewing edges. */
static toile_status read_line(reader *r) {
    toile_obj *obj = r->obj;
    int before = -1, vertex, uv;
    for (word w; next_word(r, &w); before = vertex) {
        toile_status status = read_corner(r, w, &vertex, &uv);
        if (status != TOILE_OK)
            return status;
        if (before < 0 || before == vertex)
            continue;
        int after = 0;
        GROW(obj->lines, r->line_capacity, obj->line_count, 1, 2);
        r->line_capacity = after;
        obj->lines[2 * (size_t)obj->line_count] = before;
        obj->lines[2 * (size_t)obj->line_count + 1] = vertex;
        obj->line_count++;
    }
    return TOILE_OK;
}

/* A name is the rest of the line: programs write spaces in it. */
static toile_status read_name(reader *r, struct names *names) {
    skip_blanks(r);
    word w = {r->at, 0};
    while (r->at < r->end && !is_line_end(*r->at)) {
        if ((unsigned char)*r->at < 32 && !is_blank(*r->at))
            return refuse(r, "a name with control characters", "rename it");
        r->at++;
    }
    w.length = (size_t)(r->at - w.start);
    while (w.length > 0 && is_blank(w.start[w.length - 1]))
        w.length--;
    if (w.length > NAME_MOST)
        return refuse_word(r, "a name longer than 255 bytes:", w, "shorten it");
    names->pending = w.length > 0 ? w : UNNAMED;
    names->current = -1;
    return TOILE_OK;
}

static toile_status read_statement(reader *r) {
    static const char *const SKIPPED[] = {"vn",     "s",          "p",         "mtllib",
                                          "vp",     "lod",        "bevel",     "mg",       "usemap",
                                          "maplib", "shadow_obj", "trace_obj", "c_interp", "d_interp"};
    static const char *const NAMES[] = {"g", "o", "usemtl"};
    word w;
    r->first_line = r->line;
    if (!next_word(r, &w)) {
        /* A backslash at the end of a comment is a path's, not a continuation. */
        while (r->at < r->end && !is_line_end(*r->at))
            r->at++;
        return TOILE_OK;
    }
    if (is_word(w, "v"))
        return read_vertex(r);
    if (is_word(w, "vt"))
        return read_uv(r);
    if (is_word(w, "f"))
        return read_face(r);
    if (is_word(w, "l"))
        return read_line(r);
    for (int k = 0; k < 3; k++)
        if (is_word(w, NAMES[k]))
            return read_name(r, &r->names[k]);
    for (size_t k = 0; k < sizeof SKIPPED / sizeof *SKIPPED; k++)
        if (is_word(w, SKIPPED[k]))
            return TOILE_OK;
    return refuse_word(r, "not an OBJ statement:", w, "export the mesh as a polygonal OBJ file");
}

/* Positive indices may point ahead, so they can be checked only now. */
static toile_status check_indices(const toile_obj *obj, toile_error *error) {
    const int *vertex = obj->corner_vertices, *uv = obj->corner_uvs;
    for (int f = 0; f < obj->face_count; f++)
        for (int k = 0; k < obj->face_sizes[f]; k++, vertex++, uv++) {
            if (*vertex >= obj->vertex_count)
                return toile_fail(error, TOILE_INVALID, "%s:%d: vertex %d; the file has %d vertices",
                                  obj->path, obj->face_lines[f], *vertex + 1, obj->vertex_count);
            if (*uv >= obj->uv_count)
                return toile_fail(error, TOILE_INVALID, "%s:%d: vt %d; the file has %d vt", obj->path,
                                  obj->face_lines[f], *uv + 1, obj->uv_count);
        }
    for (int i = 0; i < 2 * obj->line_count; i++)
        if (obj->lines[i] >= obj->vertex_count)
            return toile_fail(error, TOILE_INVALID, "%s: a line (l) uses vertex %d; the file has %d vertices", obj->path,
                              obj->lines[i] + 1, obj->vertex_count);
    return TOILE_OK;
}

toile_status toile_obj_read(toile_memory *memory, const char *path, toile_obj *obj, toile_error *error) {
    char *text = NULL;
    size_t size = 0;
    reader r = {.memory = memory, .error = error, .obj = obj, .line = 1};
    memset(obj, 0, sizeof *obj);
    toile_status status = toile_read_file(memory, path, FILE_MOST, &text, &size, error);
    if (status != TOILE_OK)
        return status;
    for (int k = 0; k < 3; k++)
        r.names[k] = (struct names){.pending = UNNAMED, .current = -1};
    r.plain = newlocale(LC_NUMERIC_MASK, "C", NULL);
    obj->path = toile_copy_text(memory, path);
    if (!r.plain || !obj->path) {
        status = toile_fail_memory(error, path);
        goto out;
    }

    obj->hash = toile_hash(TOILE_HASH_SEED, text, size);
    r.at = text;
    r.end = text + size;
    while (r.at < r.end) {
        status = read_statement(&r);
        if (status != TOILE_OK)
            goto out;
        skip_line(&r);
    }
    if (obj->face_count == 0) {
        status = toile_fail(error, TOILE_INVALID, "%s: no faces; export a mesh, not points or lines", path);
        goto out;
    }
    status = check_indices(obj, error);
    if (status != TOILE_OK)
        goto out;

    /* Groups before objects before materials, but the first that tells panels apart: many programs put a
     * whole garment in one object and its panels in materials. */
    int kind = 0;
    while (kind < 2 && r.names[kind].count < 2)
        kind++;
    if (r.names[kind].count < 2) {
        kind = 2;
        while (kind > 0 && strcmp(r.names[kind].list[0], UNNAMED.start) == 0)
            kind--;
    }
    obj->panel_count = r.names[kind].count;
    obj->panel_names = r.names[kind].list;
    obj->face_panels = r.names[kind].face_names;
    r.names[kind].count = 0;
    r.names[kind].list = NULL;
    r.names[kind].face_names = NULL;
out:
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < r.names[k].count; i++)
            toile_free(memory, r.names[k].list[i]);
        toile_free(memory, r.names[k].list);
        toile_free(memory, r.names[k].hashes);
        toile_free(memory, r.names[k].face_names);
    }
    if (r.plain)
        freelocale(r.plain);
    toile_free(memory, text);
    if (status != TOILE_OK)
        toile_obj_free(memory, obj);
    return status;
}

void toile_obj_free(toile_memory *memory, toile_obj *obj) {
    for (int i = 0; i < obj->panel_count; i++)
        toile_free(memory, obj->panel_names[i]);
    toile_free(memory, obj->panel_names);
    toile_free(memory, obj->path);
    toile_free(memory, obj->positions);
    toile_free(memory, obj->vertex_lines);
    toile_free(memory, obj->uvs);
    toile_free(memory, obj->face_sizes);
    toile_free(memory, obj->face_lines);
    toile_free(memory, obj->lines);
    toile_free(memory, obj->face_panels);
    toile_free(memory, obj->corner_vertices);
    toile_free(memory, obj->corner_uvs);
    memset(obj, 0, sizeof *obj);
}

/* ---- what a surface must be ---- */

/* Corners of the triangles that a face can be split into: both ways for a quad, because whoever splits it
 * chooses. */
static const int SPLITS[4][3] = {{0, 1, 2}, {0, 2, 3}, {0, 1, 3}, {1, 2, 3}};

static double doubled_area(const double *a, const double *b, const double *c, int dimension,
                           double *longest) {
    double u[3] = {0}, v[3] = {0}, sides[3] = {0};
    for (int i = 0; i < dimension; i++) {
        u[i] = b[i] - a[i];
        v[i] = c[i] - a[i];
        sides[0] += u[i] * u[i];
        sides[1] += v[i] * v[i];
        sides[2] += (v[i] - u[i]) * (v[i] - u[i]);
    }
    *longest = sqrt(fmax(sides[0], fmax(sides[1], sides[2])));
    return hypot(hypot(u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2]), u[0] * v[1] - u[1] * v[0]);
}

/* Refuses faces that are lines or points, in space or in material coordinates. */
static toile_status check_areas(const toile_obj *obj, const double *coordinates, int dimension,
                                bool by_vertex, double scale, const char *where, toile_error *error) {
    size_t corner = 0;
    for (int f = 0; f < obj->face_count; f++) {
        const double *at[4];
        for (int k = 0; k < obj->face_sizes[f]; k++, corner++) {
            size_t index = by_vertex ? (size_t)obj->corner_vertices[corner] : corner;
            at[k] = coordinates + (size_t)dimension * index;
        }
        for (int t = 0; t < (obj->face_sizes[f] == 4 ? 4 : 1); t++) {
            double longest, area = doubled_area(at[SPLITS[t][0]], at[SPLITS[t][1]], at[SPLITS[t][2]],
                                                dimension, &longest);
            if (!(area > THINNEST * longest * longest) || !(longest * fabs(scale) > EDGE_LEAST))
                return toile_fail(error, TOILE_INVALID,
                                  "%s:%d: face %d has no area%s (three corners in a line); "
                                  "remove degenerate faces or merge vertices by distance",
                                  obj->path, obj->face_lines[f], f + 1, where);
        }
    }
    return TOILE_OK;
}

/* An edge of a face: its vertices in order make the key, the way it runs is kept beside. */
typedef struct edge {
    int low, high;
    int face;
    bool down;                      /* from high to low */
} edge;

static int compare_edges(const void *a, const void *b) {
    const edge *p = a, *q = b;
    if (p->low != q->low)
        return p->low < q->low ? -1 : 1;
    if (p->high != q->high)
        return p->high < q->high ? -1 : 1;
    return (p->face > q->face) - (p->face < q->face);
}

static toile_status check_edges(toile_memory *memory, const toile_obj *obj, toile_error *error) {
    toile_status status = TOILE_OK;
    size_t count = 0;
    edge *edges = toile_alloc(memory, (size_t)obj->corner_count, sizeof *edges);
    if (!edges)
        return toile_fail_memory(error, obj->path);
    for (int f = 0; f < obj->face_count; f++) {
        const int *vertices = obj->corner_vertices + count;
        for (int k = 0, size = obj->face_sizes[f]; k < size; k++) {
            int a = vertices[k], b = vertices[(k + 1) % size];
            edges[count++] = (edge){a < b ? a : b, a < b ? b : a, f, a > b};
        }
    }
    qsort(edges, count, sizeof *edges, compare_edges);
    for (size_t i = 1; i < count && status == TOILE_OK; i++) {
        const edge *p = &edges[i - 1], *q = &edges[i], *r = i + 1 < count ? &edges[i + 1] : NULL;
        if (p->low != q->low || p->high != q->high)
            continue;
        int a = p->low + 1, b = p->high + 1;
        if (r && r->low == q->low && r->high == q->high)
            status =
                toile_fail(error, TOILE_INVALID,
                           "%s:%d: the edge between vertices %d and %d has more than two "
                           "faces (also those of lines %d and %d); a surface has one or two at every edge",
                           obj->path, obj->face_lines[r->face], a, b, obj->face_lines[p->face],
                           obj->face_lines[q->face]);
        else if (p->down == q->down)
            status = toile_fail(error, TOILE_INVALID,
                                "%s:%d: this face and that of line %d face opposite ways "
                                "(edge between vertices %d and %d); make all normals point the same way",
                                obj->path, obj->face_lines[q->face], obj->face_lines[p->face], a, b);
    }
    toile_free(memory, edges);
    return status;
}

toile_status toile_obj_check_positions(const toile_obj *obj, double scale, toile_error *error) {
    for (size_t i = 0; i < 3 * (size_t)obj->vertex_count; i++)
        if (!(fabs(obj->positions[i] * scale) <= COORDINATE_MOST))
            return toile_fail(error, TOILE_INVALID,
                              "%s:%d: vertex %d is %g m from the origin; at most %g m are "
                              "possible, is the scale right?",
                              obj->path, obj->vertex_lines[i / 3], (int)(i / 3) + 1,
                              fabs(obj->positions[i] * scale), COORDINATE_MOST);
    return TOILE_OK;
}

static toile_status check_all_used(toile_memory *memory, const toile_obj *obj, toile_error *error) {
    toile_status status = TOILE_OK;
    bool *used = toile_alloc(memory, (size_t)obj->vertex_count, sizeof *used);
    if (!used)
        return toile_fail_memory(error, obj->path);
    for (int i = 0; i < obj->corner_count; i++)
        used[obj->corner_vertices[i]] = true;
    int unused = 0, first = 0;
    for (int i = obj->vertex_count - 1; i >= 0; i--)
        if (!used[i]) {
            unused++;
            first = i;
        }
    if (unused > 0)
        status = toile_fail(error, TOILE_INVALID,
                            "%s:%d: %d vert%s in no face (the first is vertex %d) and would have "
                            "no mass; remove loose vertices",
                            obj->path, obj->vertex_lines[first], unused, unused == 1 ? "ex is" : "ices are",
                            first + 1);
    toile_free(memory, used);
    return status;
}

toile_status toile_obj_check(toile_memory *memory, const toile_obj *obj, double scale, bool all_used,
                             toile_error *error) {
    toile_status status = toile_obj_check_positions(obj, scale, error);
    if (status == TOILE_OK && all_used)
        status = check_all_used(memory, obj, error);
    if (status == TOILE_OK)
        status = check_areas(obj, obj->positions, 3, true, scale, "", error);
    if (status == TOILE_OK)
        status = check_edges(memory, obj, error);
    return status;
}

/* ---- material coordinates ---- */

toile_status toile_obj_uv_from_file(const toile_obj *obj, double scale, double *corner_uv,
                                    toile_error *error) {
    size_t corner = 0;
    for (int f = 0; f < obj->face_count; f++)
        for (int k = 0; k < obj->face_sizes[f]; k++, corner++) {
            int uv = obj->corner_uvs[corner];
            if (uv < 0)
                return toile_fail(error, TOILE_INVALID,
                                  "%s:%d: face %d has no vt; unwrap the mesh in metres, or give "
                                  "\"uv\": \"flat\" if its panels are flat",
                                  obj->path, obj->face_lines[f], f + 1);
            for (int i = 0; i < 2; i++) {
                corner_uv[2 * corner + (size_t)i] = obj->uvs[2 * (size_t)uv + (size_t)i] * scale;
                if (!(fabs(corner_uv[2 * corner + (size_t)i]) <= COORDINATE_MOST))
                    return toile_fail(error, TOILE_INVALID,
                                      "%s:%d: face %d has a vt of %g m; at most %g m are "
                                      "possible, is uv_scale right?",
                                      obj->path, obj->face_lines[f], f + 1,
                                      fabs(corner_uv[2 * corner + (size_t)i]), COORDINATE_MOST);
            }
        }
    return check_areas(obj, corner_uv, 2, false, 1, " in its vt coordinates", error);
}

/* The plane of a panel: through a point, with two axes in it. */
typedef struct plane {
    const double *point;            /* of its first corner */
    double normal[3];               /* first the sum of its faces' */
    double u[3], v[3];
    double size;                    /* largest distance of a corner from the point */
} plane;

static void cross(const double a[3], const double b[3], double c[3]) {
    for (int i = 0; i < 3; i++)
        c[i] = a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3];
}

static double dot(const double a[3], const double b[3]) {
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static bool normalise(double a[3]) {
    double length = sqrt(dot(a, a));
    for (int i = 0; i < 3 && length > 0; i++)
        a[i] /= length;
    return length > 0;
}

static void offset(const double *point, const double *from, double out[3]) {
    for (int i = 0; i < 3; i++)
        out[i] = point[i] - from[i];
}

static bool lay_plane(plane *p) {
    if (!normalise(p->normal))
        return false;
    /* u is x laid into the plane; in a plane across x it is y. */
    double axis[3] = {1, 0, 0};
    if (fabs(p->normal[0]) > 0.9) {
        axis[0] = 0;
        axis[1] = 1;
    }
    cross(p->normal, axis, p->v);
    normalise(p->v);
    cross(p->v, p->normal, p->u);
    return true;
}

toile_status toile_obj_uv_flat(toile_memory *memory, const toile_obj *obj, double scale, double *corner_uv,
                               toile_error *error) {
    toile_status status = TOILE_OK;
    plane *planes = toile_alloc(memory, (size_t)obj->panel_count, sizeof *planes);
    if (!planes)
        return toile_fail_memory(error, obj->path);

    /* Each panel's point, normal and size. */
    size_t corner = 0;
    for (int f = 0; f < obj->face_count; f++) {
        plane *p = &planes[obj->face_panels[f]];
        const int *vertices = obj->corner_vertices + corner;
        if (!p->point)
            p->point = obj->positions + 3 * (size_t)vertices[0];
        double previous[3], next[3], turn[3];
        offset(obj->positions + 3 * (size_t)vertices[0], p->point, previous);
        p->size = fmax(p->size, sqrt(dot(previous, previous)));
        for (int k = 1; k <= obj->face_sizes[f]; k++) {
            offset(obj->positions + 3 * (size_t)vertices[k % obj->face_sizes[f]], p->point, next);
            p->size = fmax(p->size, sqrt(dot(next, next)));
            cross(previous, next, turn);
            for (int i = 0; i < 3; i++)
                p->normal[i] += turn[i];
            memcpy(previous, next, sizeof next);
        }
        corner += (size_t)obj->face_sizes[f];
    }
    for (int i = 0; i < obj->panel_count; i++)
        if (!lay_plane(&planes[i])) {
            status = toile_fail(error, TOILE_INVALID,
                                "%s: panel \"%s\" is not flat; unwrap the mesh and use \"uv\": "
                                "\"file\"",
                                obj->path, obj->panel_names[i]);
            goto out;
        }

    corner = 0;
    for (int f = 0; f < obj->face_count; f++)
        for (int k = 0; k < obj->face_sizes[f]; k++, corner++) {
            const plane *p = &planes[obj->face_panels[f]];
            double from[3];
            offset(obj->positions + 3 * (size_t)obj->corner_vertices[corner], p->point, from);
            if (fabs(dot(from, p->normal)) > FLATNESS * p->size) {
                status =
                    toile_fail(error, TOILE_INVALID,
                               "%s:%d: panel \"%s\" is not flat: vertex %d is %g m off its "
                               "plane; unwrap the mesh and use \"uv\": \"file\"",
                               obj->path, obj->face_lines[f], obj->panel_names[obj->face_panels[f]],
                               obj->corner_vertices[corner] + 1, fabs(dot(from, p->normal)) * fabs(scale));
                goto out;
            }
            corner_uv[2 * corner] = scale * (dot(p->point, p->u) + dot(from, p->u));
            corner_uv[2 * corner + 1] = scale * (dot(p->point, p->v) + dot(from, p->v));
        }
    status = check_areas(obj, corner_uv, 2, false, 1, " in its panel's plane", error);
out:
    toile_free(memory, planes);
    return status;
}

double toile_obj_area(const toile_obj *obj, const double *coordinates, int dimension, bool by_vertex) {
    double sum = 0;
    size_t corner = 0;
    for (int f = 0; f < obj->face_count; f++) {
        const double *at[4];
        for (int k = 0; k < obj->face_sizes[f]; k++, corner++) {
            size_t index = by_vertex ? (size_t)obj->corner_vertices[corner] : corner;
            at[k] = coordinates + (size_t)dimension * index;
        }
        double longest;
        for (int k = 2; k < obj->face_sizes[f]; k++)
            sum += doubled_area(at[0], at[k - 1], at[k], dimension, &longest) / 2;
    }
    return sum;
}
