/* Colliders as triangle meshes, for those who look at a scene rather than simulate it: primitives are
 * tessellated when first asked for. The simulation never sees these meshes. */
#include "scene_internal.h"

#include <math.h>
#include <string.h>

#define PI 3.14159265358979323846
enum { AROUND = 48 }; /* corners of a tessellated circle */

int toile_scene_collider_count(const toile_scene *scene) {
    return scene->collider_count;
}

const char *toile_scene_collider_name(const toile_scene *scene, int index) {
    return scene->colliders[index].name;
}

toile_shape toile_scene_collider_shape(const toile_scene *scene, int index) {
    return scene->colliders[index].shape;
}

toile_side toile_scene_collider_side(const toile_scene *scene, int index) {
    return scene->colliders[index].side;
}

static bool make_room(toile_memory *memory, collider *c, int vertices, int triangles) {
    c->local = toile_alloc(memory, (size_t)vertices, 3 * sizeof *c->local);
    c->moved = toile_alloc(memory, (size_t)vertices, 3 * sizeof *c->moved);
    c->triangles = toile_alloc(memory, (size_t)triangles, 3 * sizeof *c->triangles);
    if (!c->local || !c->moved || !c->triangles) {
        toile_free(memory, c->local);
        toile_free(memory, c->moved);
        toile_free(memory, c->triangles);
        c->local = c->moved = NULL;
        c->triangles = NULL;
        return false;
    }
    c->vertex_count = vertices;
    c->triangle_count = 0;
    return true;
}

static void add_triangle(collider *c, int a, int b, int d) {
    int *triangle = c->triangles + 3 * c->triangle_count++;
    triangle[0] = a;
    triangle[1] = b;
    triangle[2] = d;
}

/* A closed surface of revolution about z: `rings` circles from bottom to top between two poles. */
static bool revolve(toile_memory *memory, collider *c, const double (*ring)[2], int rings, double bottom,
                    double top) {
    if (!make_room(memory, c, rings * AROUND + 2, 2 * rings * AROUND))
        return false;
    int south = rings * AROUND, north = south + 1;
    c->local[3 * south + 2] = bottom;
    c->local[3 * north + 2] = top;
    for (int r = 0; r < rings; r++)
        for (int k = 0; k < AROUND; k++) {
            double *at = c->local + 3 * (r * AROUND + k), angle = 2 * PI * k / AROUND;
            int next = (k + 1) % AROUND, a = r * AROUND + k, b = r * AROUND + next;
            at[0] = ring[r][0] * cos(angle);
            at[1] = ring[r][0] * sin(angle);
            at[2] = ring[r][1];
            if (r == 0)
                add_triangle(c, south, b, a);
            if (r + 1 == rings) {
                add_triangle(c, north, a, b);
            } else {
                add_triangle(c, a, b, b + AROUND);
                add_triangle(c, a, b + AROUND, a + AROUND);
            }
        }
    return true;
}

static bool tessellate_round(toile_memory *memory, collider *c) {
    double ring[AROUND][2], radius = c->size[0], half = c->size[1];
    int rings = 0;
    if (c->shape == TOILE_CYLINDER) {
        ring[0][0] = ring[1][0] = radius;
        ring[0][1] = -half;
        ring[1][1] = half;
        return revolve(memory, c, ring, 2, -half, half);
    }
    /* Half as many steps from pole to pole as around; a capsule has its equator twice. */
    double straight = c->shape == TOILE_CAPSULE ? half : 0;
    for (int i = 1; i < AROUND / 2; i++) {
        double angle = PI * i / (AROUND / 2), across = radius * sin(angle), up = -radius * cos(angle);
        bool below = i <= AROUND / 4, above = i > AROUND / 4 || (i == AROUND / 4 && straight > 0);
        if (below) {
            ring[rings][0] = across;
            ring[rings++][1] = up - straight;
        }
        if (above) {
            ring[rings][0] = across;
            ring[rings++][1] = up + straight;
        }
    }
    return revolve(memory, c, ring, rings, -radius - straight, radius + straight);
}

static bool tessellate_box(toile_memory *memory, collider *c) {
    static const int FACES[6][4] = {{0, 2, 3, 1}, {4, 5, 7, 6}, {0, 1, 5, 4},
                                    {2, 6, 7, 3}, {0, 4, 6, 2}, {1, 3, 7, 5}};
    if (!make_room(memory, c, 8, 12))
        return false;
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 3; k++)
            c->local[3 * i + k] = i >> k & 1 ? c->size[k] : -c->size[k];
    for (int f = 0; f < 6; f++) {
        add_triangle(c, FACES[f][0], FACES[f][1], FACES[f][2]);
        add_triangle(c, FACES[f][0], FACES[f][2], FACES[f][3]);
    }
    return true;
}

static bool tessellate_plane(toile_memory *memory, collider *c) {
    static const double SQUARE[] = {-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0};
    if (!make_room(memory, c, 4, 2))
        return false;
    memcpy(c->local, SQUARE, sizeof SQUARE);
    add_triangle(c, 0, 1, 2);
    add_triangle(c, 0, 2, 3);
    return true;
}

toile_status toile_scene_collider_mesh(toile_scene *scene, int index, int *vertex_count,
                                       const double **positions, int *triangle_count, const int **triangles,
                                       toile_error *error) {
    if (index < 0 || index >= scene->collider_count)
        return toile_fail(error, TOILE_MISUSE, "there is no collider %d; the scene has %d", index,
                          scene->collider_count);
    collider *c = &scene->colliders[index];
    bool made = c->local != NULL;
    if (!made)
        made = c->shape == TOILE_BOX     ? tessellate_box(&scene->memory, c)
               : c->shape == TOILE_PLANE ? tessellate_plane(&scene->memory, c)
                                         : tessellate_round(&scene->memory, c);
    if (!made)
        return toile_fail_memory(error, "a collider's mesh");
    toile_pose pose = toile_motion_at(&c->motion, scene->frame);
    transform(&pose, 1, c->local, c->vertex_count, c->moved);
    *vertex_count = c->vertex_count;
    *positions = c->moved;
    *triangle_count = c->triangle_count;
    *triangles = c->triangles;
    return TOILE_OK;
}
