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

/* Nodes around a point are no farther from the body than from it. */
static void stamp(toile_body_field *f, const double p[3]) {
    int low[3], high[3];
    for (int k = 0; k < 3; k++) {
        double g = (p[k] - f->low[k]) / f->step;
        low[k] = (int)fmin(fmax(ceil(g - 2), 0), f->count[k]);
        high[k] = (int)fmin(fmax(floor(g + 2), -1), f->count[k] - 1);
    }
    for (int z = low[2]; z <= high[2]; z++)
        for (int y = low[1]; y <= high[1]; y++)
            for (int x = low[0]; x <= high[0]; x++) {
                float *to = f->distance + ((size_t)z * (size_t)f->count[1] + (size_t)y) * (size_t)f->count[0] + (size_t)x;
                double dx = f->low[0] + x * f->step - p[0], dy = f->low[1] + y * f->step - p[1], dz = f->low[2] + z * f->step - p[2];
                *to = fminf(*to, (float)sqrt(dx * dx + dy * dy + dz * dz));
            }
}

/* From a point straight to the body: against the slope of the distance, as far as the distance is. */
static void stamp_way(const toile_body_field *bare, toile_body_field *f, const double p[3]) {
    double slope[3], length = 0, far = toile_body_distance(bare, p);
    for (int k = 0; k < 3; k++) {
        double a[3] = {p[0], p[1], p[2]}, b[3] = {p[0], p[1], p[2]};
        a[k] -= 0.5 * f->step;
        b[k] += 0.5 * f->step;
        slope[k] = toile_body_distance(bare, b) - toile_body_distance(bare, a);
        length += slope[k] * slope[k];
    }
    length = length > 0 ? sqrt(length) : INFINITY;
    for (double t = 0; t <= fmax(far, 0); t += 0.5 * f->step) {
        double q[3] = {p[0] - t * slope[0] / length, p[1] - t * slope[1] / length, p[2] - t * slope[2] / length};
        stamp(f, q);
    }
}

toile_status toile_body_field_copy(toile_memory *memory, const toile_body_field *f, toile_body_field *copy, toile_error *error) {
    size_t nodes = (size_t)f->count[0] * (size_t)f->count[1] * (size_t)f->count[2];
    *copy = *f;
    copy->distance = toile_alloc(memory, nodes, sizeof *copy->distance);
    if (!copy->distance)
        return toile_fail_memory(error, "distances from the body");
    memcpy(copy->distance, f->distance, nodes * sizeof *copy->distance);
    return TOILE_OK;
}

void toile_body_field_cover(const toile_body_field *bare, toile_body_field *f, const double *positions, int triangle_count,
                            const int *triangles) {
    for (int i = 0; i < triangle_count; i++) {
        const double *c[3];
        double longest = 0;
        for (int k = 0; k < 3; k++)
            c[k] = positions + 3 * (size_t)triangles[3 * (size_t)i + (size_t)k];
        for (int k = 0; k < 3; k++)
            for (int x = 0; x < 3; x++)
                longest = fmax(longest, fabs(c[k][x] - c[(k + 1) % 3][x]));
        int parts = (int)fmin(1 + 2 * longest / f->step, 100);
        for (int a = 0; a <= parts; a++)
            for (int b = 0; a + b <= parts; b++) {
                double p[3], u = (double)a / parts, v = (double)b / parts;
                for (int x = 0; x < 3; x++)
                    p[x] = c[0][x] + u * (c[1][x] - c[0][x]) + v * (c[2][x] - c[0][x]);
                stamp_way(bare, f, p);
            }
    }
}
