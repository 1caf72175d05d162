#include "shell.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846

/* Corners of a circle: what is left between chord and circle is r / 470, for the limb of a figure 0.1 mm. */
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

/* A surface of revolution about z: circles from bottom to top between two poles. */
static void revolve(toile_solid *s, const double (*ring)[2], int rings, double pole) {
    int *triangle = s->triangles, low = rings * AROUND, high = low + 1;
    s->shell[3 * low + 2] = -pole;
    s->shell[3 * high + 2] = pole;
    for (int r = 0; r < rings; r++)
        for (int k = 0; k < AROUND; k++) {
            double *at = s->shell + 3 * (r * AROUND + k), angle = 2 * PI * k / AROUND;
            int a = r * AROUND + k, b = r * AROUND + (k + 1) % AROUND;
            at[0] = ring[r][0] * cos(angle);
            at[1] = ring[r][0] * sin(angle);
            at[2] = ring[r][1];
            if (r == 0)
                triangle = put_triangle(triangle, low, b, a);
            if (r + 1 == rings) {
                triangle = put_triangle(triangle, high, a, b);
            } else {
                triangle = put_triangle(triangle, a, b, b + AROUND);
                triangle = put_triangle(triangle, a, b + AROUND, a + AROUND);
            }
        }
}

/* The circles of a shape, radius and height; half as many from pole to pole as corners around, a capsule has its equator twice. */
static int rings_of(const toile_solid *s, double ring[AROUND][2]) {
    double radius = s->size[0], half = s->shape == TOILE_SOLID_SPHERE ? 0 : s->size[1];
    int rings = 0;
    if (s->shape == TOILE_SOLID_CYLINDER) {
        for (; rings < 2; rings++)
            ring[rings][0] = radius, ring[rings][1] = rings ? half : -half;
        return rings;
    }
    for (int i = 1; i < AROUND / 2; i++) {
        double angle = PI * i / (AROUND / 2), across = radius * sin(angle), up = -radius * cos(angle);
        bool equator = i == AROUND / 4;
        if (i <= AROUND / 4)
            ring[rings][0] = across, ring[rings++][1] = up - half;
        if (i > AROUND / 4 || (equator && half > 0))
            ring[rings][0] = across, ring[rings++][1] = up + half;
    }
    return rings;
}

static double pole_of(const toile_solid *s) {
    return s->shape == TOILE_SOLID_SPHERE ? s->size[0] : s->shape == TOILE_SOLID_CAPSULE ? s->size[0] + s->size[1] : s->size[1];
}

toile_status toile_shell_make(toile_memory *memory, toile_solid *s, toile_error *error) {
    bool box = s->shape == TOILE_SOLID_BOX;
    double ring[AROUND][2];
    if (s->shape == TOILE_SOLID_PLANE)
        return TOILE_OK;
    int rings = box ? 0 : rings_of(s, ring);
    s->vertex_count = box ? 8 : rings * AROUND + 2;
    s->triangle_count = box ? 12 : 2 * rings * AROUND;
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
        revolve(s, (const double(*)[2])ring, rings, pole_of(s));
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
