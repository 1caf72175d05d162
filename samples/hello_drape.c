/* A sheet falls on a sphere: the smallest program with Toile. Prints how far it came, with the value to expect. */
#include "toile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void check(toile_world *world, toile_status status) {
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", toile_status_name(status), toile_message(world));
        exit(1);
    }
}

int main(void) {
    enum { N = 41 };
    toile_world *world;
    int fabric, sheet;
    check(NULL, toile_create(NULL, &world));
    check(world, toile_set(world, "cloth_model", "continuum"));
    check(world, toile_add_fabric(world, "cotton", &fabric));

    toile_grid grid = {.name = "sheet", .nu = N, .nv = N, .origin = {-0.5, -0.5, 0.32}, .u_axis = {1, 0, 0},
                       .v_axis = {0, 1, 0}, .fabric = fabric};
    check(world, toile_add_grid(world, &grid, &sheet));
    toile_collider sphere = {.name = "sphere", .shape = TOILE_SPHERE, .size = {0.3}, .friction_static = 0.4,
                             .friction_kinetic = 0.3};
    check(world, toile_add_collider(world, &sphere, NULL));
    check(world, toile_build(world));

    for (int frame = 0; frame < 60; frame++)
        check(world, toile_advance(world, 1.0 / 24));

    static double xyz[N * N * 3];
    double top = -INFINITY, bottom = INFINITY;
    check(world, toile_get_positions(world, sheet, xyz));
    for (int i = 0; i < N * N; i++) {
        top = fmax(top, xyz[3 * i + 2]);
        bottom = fmin(bottom, xyz[3 * i + 2]);
    }
    printf("top %.3f m (expected 0.302: on the sphere), lowest corner %.2f m (expected below -0.1)\n", top, bottom);
    toile_destroy(world);
    return fabs(top - 0.302) < 0.002 && bottom < -0.1 ? 0 : 1;
}
