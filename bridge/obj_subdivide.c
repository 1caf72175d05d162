/* A finer mesh of the same shape: every face is cut into four at the middles of its edges, triangles into
 * triangles and quads into quads. Nothing is smoothed, so that flat and straight stay flat and straight.
 *
 * A middle belongs to its edge, so faces that share an edge share it; in the material each face takes the
 * middle of its own corners. A seam, vertices with a (u, v) in either panel, therefore stays one. */
#include "obj.h"

#include <stdlib.h>
#include <string.h>

/* The edge from a corner to the next one of its face. */
typedef struct side {
    int low, high; /* its vertices */
    int corner;
} side;

static int compare_sides(const void *a, const void *b) {
    const side *p = a, *q = b;
    if (p->low != q->low)
        return p->low < q->low ? -1 : 1;
    if (p->high != q->high)
        return p->high < q->high ? -1 : 1;
    return (p->corner > q->corner) - (p->corner < q->corner);
}

/* Numbers the middles of edges from `next` on, in the order in which faces come to them: middles[c] is that
 * of the edge from corner c to the next. Gives the first number that is free, or -1 when memory is out. */
static int number_middles(toile_memory *memory, const toile_obj *obj, int next, int *middles) {
    side *sides = toile_alloc(memory, (size_t)obj->corner_count, sizeof *sides);
    if (!sides)
        return -1;
    int begin = 0;
    for (int f = 0; f < obj->face_count; begin += obj->face_sizes[f++])
        for (int k = 0; k < obj->face_sizes[f]; k++) {
            int a = obj->corner_vertices[begin + k];
            int b = obj->corner_vertices[begin + (k + 1) % obj->face_sizes[f]];
            sides[begin + k] = (side){a < b ? a : b, a < b ? b : a, begin + k};
        }
    qsort(sides, (size_t)obj->corner_count, sizeof *sides, compare_sides);

    /* First the corner that comes first along each edge, then its number. */
    for (int i = 0, first = 0; i < obj->corner_count; i++) {
        if (sides[i].low != sides[first].low || sides[i].high != sides[first].high)
            first = i;
        middles[sides[i].corner] = sides[first].corner;
    }
    for (int c = 0; c < obj->corner_count; c++)
        middles[c] = middles[c] == c ? next++ : middles[middles[c]];
    toile_free(memory, sides);
    return next;
}

/* A quad whose corners do not all turn the same way in the material would be cut into faces that overlap. */
static bool is_convex(const double *uv) {
    int left = 0;
    for (int k = 0; k < 4; k++) {
        const double *a = uv + 2 * k, *b = uv + 2 * ((k + 1) % 4), *c = uv + 2 * ((k + 2) % 4);
        left += (b[0] - a[0]) * (c[1] - b[1]) - (b[1] - a[1]) * (c[0] - b[0]) > 0;
    }
    return left == 0 || left == 4;
}

static void put_middle(const double *a, const double *b, int dimension, double *middle) {
    for (int i = 0; i < dimension; i++)
        middle[i] = (a[i] + b[i]) / 2;
}

/* Points of a face: its corners, the middles of its edges, and for a quad its middle. Children have the
 * corner that they keep at the same place, so that all of a quad's are cut alike. */
static const int OF_TRIANGLE[4][4] = {{0, 3, 5}, {3, 1, 4}, {5, 4, 2}, {3, 4, 5}};
static const int OF_QUAD[4][4] = {{0, 4, 8, 7}, {4, 1, 5, 8}, {8, 5, 2, 6}, {7, 8, 6, 3}};

/* Fills what `fine` has room for. `middles` as above; middles of quads are numbered from `next` on. */
static void cut_faces(const toile_obj *obj, const double *corner_uv, const int *middles, int next,
                      toile_obj *fine, double *fine_uv) {
    memcpy(fine->positions, obj->positions, 3 * (size_t)obj->vertex_count * sizeof *obj->positions);
    memcpy(fine->vertex_lines, obj->vertex_lines, (size_t)obj->vertex_count * sizeof *obj->vertex_lines);
    size_t begin = 0, corner = 0;
    for (int f = 0, child = 0; f < obj->face_count; begin += (size_t)obj->face_sizes[f++]) {
        int size = obj->face_sizes[f], points[9];
        double uv[9][2];
        for (int k = 0; k < size; k++) {
            points[k] = obj->corner_vertices[begin + (size_t)k];
            points[size + k] = middles[begin + (size_t)k];
            memcpy(uv[k], corner_uv + 2 * (begin + (size_t)k), sizeof uv[k]);
        }
        for (int k = 0; k < size; k++) {
            put_middle(uv[k], uv[(k + 1) % size], 2, uv[size + k]);
            put_middle(fine->positions + 3 * (size_t)points[k],
                       fine->positions + 3 * (size_t)points[(k + 1) % size], 3,
                       fine->positions + 3 * (size_t)points[size + k]);
            fine->vertex_lines[points[size + k]] = obj->face_lines[f];
        }
        if (size == 4) {
            points[8] = next++;
            put_middle(uv[4], uv[6], 2, uv[8]);
            put_middle(fine->positions + 3 * (size_t)points[4], fine->positions + 3 * (size_t)points[6], 3,
                       fine->positions + 3 * (size_t)points[8]);
            fine->vertex_lines[points[8]] = obj->face_lines[f];
        }
        for (int i = 0; i < 4; i++, child++) {
            const int *kept = size == 4 ? OF_QUAD[i] : OF_TRIANGLE[i];
            fine->face_sizes[child] = size;
            fine->face_lines[child] = obj->face_lines[f];
            fine->face_panels[child] = obj->face_panels[f];
            for (int k = 0; k < size; k++, corner++) {
                fine->corner_vertices[corner] = points[kept[k]];
                fine->corner_uvs[corner] = -1;
                memcpy(fine_uv + 2 * corner, uv[kept[k]], sizeof uv[0]);
            }
        }
    }
}

static toile_status cut_once(toile_memory *memory, toile_obj *obj, double **corner_uv, toile_error *error) {
    toile_status status = TOILE_OK;
    toile_obj fine = {0};
    double *fine_uv = NULL;
    int next = -1, quads = obj->corner_count - 3 * obj->face_count;
    int *middles = toile_alloc(memory, (size_t)obj->corner_count, sizeof *middles);
    if (middles)
        next = number_middles(memory, obj, obj->vertex_count, middles);
    if (next < 0) {
        status = toile_fail_memory(error, obj->path);
        goto out;
    }
    fine.vertex_count = next + quads;
    fine.face_count = 4 * obj->face_count;
    fine.corner_count = 4 * obj->corner_count;
    fine.positions = toile_alloc(memory, (size_t)fine.vertex_count, 3 * sizeof *fine.positions);
    fine.vertex_lines = toile_alloc(memory, (size_t)fine.vertex_count, sizeof *fine.vertex_lines);
    fine.face_sizes = toile_alloc(memory, (size_t)fine.face_count, sizeof *fine.face_sizes);
    fine.face_lines = toile_alloc(memory, (size_t)fine.face_count, sizeof *fine.face_lines);
    fine.face_panels = toile_alloc(memory, (size_t)fine.face_count, sizeof *fine.face_panels);
    fine.corner_vertices = toile_alloc(memory, (size_t)fine.corner_count, sizeof *fine.corner_vertices);
    fine.corner_uvs = toile_alloc(memory, (size_t)fine.corner_count, sizeof *fine.corner_uvs);
    fine_uv = toile_alloc(memory, (size_t)fine.corner_count, 2 * sizeof *fine_uv);
    if (!fine.positions || !fine.vertex_lines || !fine.face_sizes || !fine.face_lines || !fine.face_panels ||
        !fine.corner_vertices || !fine.corner_uvs || !fine_uv) {
        status = toile_fail_memory(error, obj->path);
        goto out;
    }
    cut_faces(obj, *corner_uv, middles, next, &fine, fine_uv);

    /* The file and its panels go on; what was cut is freed below. */
    toile_obj coarse = *obj;
    double *coarse_uv = *corner_uv;
    *obj = fine;
    obj->path = coarse.path;
    obj->hash = coarse.hash;
    obj->panel_count = coarse.panel_count;
    obj->panel_names = coarse.panel_names;
    *corner_uv = fine_uv;
    fine = coarse;
    fine_uv = coarse_uv;
    fine.path = NULL;
    fine.panel_count = 0;
    fine.panel_names = NULL;
out:
    toile_free(memory, middles);
    toile_free(memory, fine_uv);
    toile_obj_free(memory, &fine);
    return status;
}

toile_status toile_obj_subdivide(toile_memory *memory, toile_obj *obj, double **corner_uv, int times,
                                 toile_error *error) {
    toile_status status = TOILE_OK;
    size_t corner = 0;
    if (times <= 0)
        return TOILE_OK;
    if ((double)obj->face_count * (double)(1 << 2 * times) > TOILE_OBJ_FACES_MOST)
        return toile_fail(error, TOILE_INVALID,
                          "%s: its %d faces, subdivided %d times, would be more than %d", obj->path,
                          obj->face_count, times, TOILE_OBJ_FACES_MOST);
    for (int f = 0; f < obj->face_count; corner += (size_t)obj->face_sizes[f++])
        if (obj->face_sizes[f] == 4 && !is_convex(*corner_uv + 2 * corner))
            return toile_fail(
                error, TOILE_INVALID,
                "%s:%d: face %d is not convex in its material coordinates and cannot be subdivided; "
                "triangulate it",
                obj->path, obj->face_lines[f], f + 1);
    for (int i = 0; i < times && status == TOILE_OK; i++)
        status = cut_once(memory, obj, corner_uv, error);
    return status;
}
