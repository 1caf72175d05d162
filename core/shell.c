#include "shell.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Corners of a rim: what is left between chord and circle is r / 470, for the limb of a figure 0.2 mm. */
enum { AROUND = 48 };

static int *put_triangle(int *to, int a, int b, int c) {
    to[0] = a, to[1] = b, to[2] = c;
    return to + 3;
}

static void fill_box(toile_solid *s) {
    static const int FACES[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4}, {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    int *triangle = s->triangles;
    for (int v = 0; v < 8; v++)
        for (int k = 0; k < 3; k++)
            s->shell[3 * v + k] = v >> k & 1 ? s->size[k] : -s->size[k];
    for (int f = 0; f < 6; f++) {
        triangle = put_triangle(triangle, FACES[f][0], FACES[f][1], FACES[f][2]);
        triangle = put_triangle(triangle, FACES[f][0], FACES[f][2], FACES[f][3]);
    }
}

/* Two rims and the middles of both caps. */
static void fill_cylinder(toile_solid *s) {
    int *triangle = s->triangles, low = 2 * AROUND, high = low + 1;
    s->shell[3 * low + 2] = -s->size[1];
    s->shell[3 * high + 2] = s->size[1];
    for (int k = 0; k < AROUND; k++) {
        int next = (k + 1) % AROUND;
        for (int top = 0; top < 2; top++) {
            double *at = s->shell + 3 * (top * AROUND + k), angle = 2 * PI * k / AROUND;
            at[0] = s->size[0] * cos(angle);
            at[1] = s->size[0] * sin(angle);
            at[2] = top ? s->size[1] : -s->size[1];
        }
        triangle = put_triangle(triangle, low, next, k);
        triangle = put_triangle(triangle, high, AROUND + k, AROUND + next);
        triangle = put_triangle(triangle, k, next, AROUND + next);
        triangle = put_triangle(triangle, k, AROUND + next, AROUND + k);
    }
}

toile_status toile_shell_make(toile_memory *memory, toile_solid *s, toile_error *error) {
    bool box = s->shape == TOILE_SOLID_BOX;
    if (!box && s->shape != TOILE_SOLID_CYLINDER)
        return TOILE_OK;
    s->vertex_count = box ? 8 : 2 * AROUND + 2;
    s->triangle_count = box ? 12 : 4 * AROUND;
    size_t numbers = 3 * (size_t)s->vertex_count;
    s->triangles = toile_alloc(memory, 3 * (size_t)s->triangle_count, sizeof(int));
    double **fields[] = {&s->shell, &s->from_x, &s->to_x, &s->x, &s->velocity};
    bool ok = s->triangles;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        ok = (*fields[i] = toile_alloc(memory, numbers, sizeof(double))) && ok;
    if (!ok)
        return toile_fail_memory(error, "a collider's edges");
    if (box)
        fill_box(s);
    else
        fill_cylinder(s);
    s->closed = true;
    toile_shell_pose(s);
    memcpy(s->from_x, s->to_x, numbers * sizeof(double));
    memcpy(s->x, s->to_x, numbers * sizeof(double));
    return TOILE_OK;
}

void toile_shell_pose(toile_solid *s) {
    for (int v = 0; s->shell && v < s->vertex_count; v++)
        toile_pose_outward(&s->to, s->shell + 3 * v, s->to_x + 3 * v);
}
