/* Panels of a mesh by its UV map: faces are of one panel as long as the map goes on from one to the next,
 * that is, as long as both ends of the edge between them have the same (u, v), up to rounding, on both sides.
 */
#include "obj.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ISLAND_MOST = 10000 };

/* As far as corners of one place may be apart, in parts of the map's size: what programs round (u, v) to. */
#define ROUNDING 1e-5

/* One side of an edge: its vertices, smaller first, its face, and the corner of each vertex there. */
typedef struct side {
    int vertex[2], face, corner[2];
} side;

static int by_edge(const void *x, const void *y) {
    const side *a = x, *b = y;
    for (int k = 0; k < 2; k++)
        if (a->vertex[k] != b->vertex[k])
            return a->vertex[k] < b->vertex[k] ? -1 : 1;
    return a->face < b->face ? -1 : a->face > b->face;
}

/* The first face of the island that a face is known to be of. */
static int first_of(int *parent, int face) {
    while (parent[face] != face)
        face = parent[face] = parent[parent[face]];
    return face;
}

/* Does the map go on across the edge of these two sides? */
static bool goes_on(const toile_obj *obj, const side *a, const side *b, double rounding) {
    for (int end = 0; end < 2; end++)
        for (int k = 0; k < 2; k++)
            if (fabs(obj->uvs[2 * obj->corner_uvs[a->corner[end]] + k] -
                     obj->uvs[2 * obj->corner_uvs[b->corner[end]] + k]) > rounding)
                return false;
    return true;
}

static void list_sides(const toile_obj *obj, side *sides) {
    for (int f = 0, first = 0; f < obj->face_count; first += obj->face_sizes[f++])
        for (int k = 0; k < obj->face_sizes[f]; k++) {
            int from = first + k, to = first + (k + 1) % obj->face_sizes[f];
            bool turned = obj->corner_vertices[from] > obj->corner_vertices[to];
            int a = turned ? to : from, b = turned ? from : to;
            sides[from] = (side){{obj->corner_vertices[a], obj->corner_vertices[b]}, f, {a, b}};
        }
    qsort(sides, (size_t)obj->corner_count, sizeof *sides, by_edge);
}

/* Islands are numbered by their first face, so that a file gives the same names every time. */
static int number_islands(const toile_obj *obj, int *parent, int *number) {
    int count = 0;
    for (int f = 0; f < obj->face_count; f++) {
        int first = first_of(parent, f);
        number[f] = first == f ? count++ : number[first];
    }
    return count;
}

toile_status toile_obj_panels_by_uv(toile_memory *memory, toile_obj *obj, toile_error *error) {
    for (int i = 0; i < obj->corner_count; i++)
        if (obj->corner_uvs[i] < 0)
            return toile_fail(error, TOILE_INVALID,
                              "%.300s: it has faces without (u, v), so that its UV map does not tell panels "
                              "apart; unwrap the mesh, or leave \"panels_from\" out",
                              obj->path);
    size_t faces = (size_t)obj->face_count;
    side *sides = toile_alloc(memory, (size_t)obj->corner_count, sizeof *sides);
    int *parent = toile_alloc(memory, faces, sizeof *parent),
        *number = toile_alloc(memory, faces, sizeof *number);
    char **names = NULL;
    toile_status status = TOILE_OK;
    if (!sides || !parent || !number) {
        status = toile_fail_memory(error, "the islands of a UV map");
        goto out;
    }
    for (int f = 0; f < obj->face_count; f++)
        parent[f] = f;
    list_sides(obj, sides);
    double rounding = 0;
    for (int i = 0; i < 2 * obj->uv_count; i++)
        rounding = fmax(rounding, ROUNDING * fabs(obj->uvs[i]));
    for (int i = 1; i < obj->corner_count; i++) {
        const side *a = &sides[i - 1], *b = &sides[i];
        if (a->vertex[0] != b->vertex[0] || a->vertex[1] != b->vertex[1] || !goes_on(obj, a, b, rounding))
            continue;
        int p = first_of(parent, a->face), q = first_of(parent, b->face);
        parent[p < q ? q : p] = p < q ? p : q;
    }
    int count = number_islands(obj, parent, number);
    if (count > ISLAND_MOST) {
        status =
            toile_fail(error, TOILE_INVALID,
                       "%.300s: its UV map has %d islands, and a garment has at most %d panels; most faces "
                       "seem to lie apart in it: unwrap the mesh by its seams, or leave \"panels_from\" out",
                       obj->path, count, ISLAND_MOST);
        goto out;
    }
    names = toile_alloc(memory, (size_t)count, sizeof *names);
    bool full = names != NULL;
    for (int i = 0; full && i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "panel_%d", i + 1);
        full = (names[i] = toile_copy_text(memory, name)) != NULL;
    }
    for (int i = 0; full && i < obj->panel_count; i++)
        toile_free(memory, obj->panel_names[i]);
    for (int i = 0; !full && names && i < count; i++)
        toile_free(memory, names[i]);
    toile_free(memory, full ? (void *)obj->panel_names : (void *)names);
    if (!full) {
        status = toile_fail_memory(error, "the islands of a UV map");
        goto out;
    }
    toile_free(memory, obj->face_panels);
    obj->face_panels = number;
    obj->panel_names = names;
    obj->panel_count = count;
    number = NULL;
out:
    toile_free(memory, sides);
    toile_free(memory, parent);
    toile_free(memory, number);
    return status;
}
