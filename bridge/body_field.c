#include "body_field.h"

#include "solid.h"

#include <math.h>
#include <string.h>

toile_status toile_body_field_make(toile_memory *memory, int vertex_count, const double *positions, int triangle_count,
                                   const int *triangles, double step, double around, toile_body_field *f,
                                   toile_error *error) {
    double high[3];
    toile_solid solid;
    toile_solid_input input = {.name = "body",
                               .shape = TOILE_SOLID_MESH,
                               .vertex_count = vertex_count,
                               .positions = positions,
                               .triangle_count = triangle_count,
                               .triangles = triangles};
    memset(f, 0, sizeof *f);
    toile_status status = toile_solid_make(memory, &input, &solid, error);
    if (status != TOILE_OK)
        return status;
    f->step = step;
    size_t nodes = 1;
    for (int k = 0; k < 3; k++) {
        f->low[k] = high[k] = positions[k];
        for (int i = 1; i < vertex_count; i++) {
            f->low[k] = fmin(f->low[k], positions[3 * (size_t)i + (size_t)k]);
            high[k] = fmax(high[k], positions[3 * (size_t)i + (size_t)k]);
        }
        f->low[k] -= around;
        f->count[k] = 2 + (int)((high[k] + around - f->low[k]) / step);
        nodes *= (size_t)f->count[k];
    }
    f->distance = toile_alloc(memory, nodes, sizeof *f->distance);
    if (!f->distance) {
        toile_solid_free(memory, &solid);
        return toile_fail_memory(error, "distances from the body");
    }
    float *to = f->distance;
    for (int z = 0; z < f->count[2]; z++)
        for (int y = 0; y < f->count[1]; y++) {
            /* along a row the distance changes by at most the step: the last one bounds the search */
            double reach = 10;
            for (int x = 0; x < f->count[0]; x++) {
                double p[3] = {f->low[0] + x * step, f->low[1] + y * step, f->low[2] + z * step};
                toile_hit hit;
                bool found = toile_solid_nearest(&solid, p, reach, reach, 1, &hit);
                *to++ = (float)(found ? hit.distance : reach);
                reach = (found ? fabs(hit.distance) : reach) + 1.01 * step;
            }
        }
    toile_solid_free(memory, &solid);
    return TOILE_OK;
}

void toile_body_field_free(toile_memory *memory, toile_body_field *f) {
    toile_free(memory, f->distance);
    memset(f, 0, sizeof *f);
}

double toile_body_distance(const toile_body_field *f, const double p[3]) {
    int at[3];
    double part[3], beyond = 0;
    for (int k = 0; k < 3; k++) {
        double g = (p[k] - f->low[k]) / f->step, inside = fmin(fmax(g, 0), f->count[k] - 1.001);
        beyond = hypot(beyond, (g - inside) * f->step);
        at[k] = (int)inside;
        part[k] = inside - at[k];
    }
    double sum = 0;
    for (int c = 0; c < 8; c++) {
        size_t node = 0;
        double weight = 1;
        for (int k = 2; k >= 0; k--) {
            int up = c >> k & 1;
            node = node * (size_t)f->count[k] + (size_t)(at[k] + up);
            weight *= up ? part[k] : 1 - part[k];
        }
        sum += weight * f->distance[node];
    }
    return fmax(sum, beyond);
}
