#include "shaping.h"

#include "garment.h"
#include "half_edge.h"
#include "settings.h"

#include <math.h>
#include <string.h>

/* Factors beyond these are slips of the pen. */
#define FACTOR_MIN 1e-3
#define FACTOR_MAX 1e3

static toile_status check_factors(const toile_garment *g, const char *property, const double *factors, toile_error *error) {
    for (int v = 0; v < g->vertex_count; v++)
        if (!(factors[v] >= FACTOR_MIN && factors[v] <= FACTOR_MAX))
            return toile_fail(error, TOILE_INVALID,
                              "garment \"%s\": the map of %s has %g at vertex %d; use factors from %g to %g (1 changes nothing)",
                              g->name, property, factors[v], v, FACTOR_MIN, FACTOR_MAX);
    return TOILE_OK;
}

static const char *property_of(const toile_map *map) {
    return map->field ? map->field->id : map->axis ? "scale_v" : "scale_u";
}

toile_status toile_shaping_map(toile_memory *memory, toile_garment *g, const char *property, const double *factors,
                               int *map, toile_error *error) {
    toile_shaping *s = &g->shaping;
    int count;
    const toile_field *fields = toile_fabric_fields(&count);
    toile_map made = {.field = property ? toile_find_field(fields, count, property) : NULL};
    if (!made.field) {
        if (!property || (strcmp(property, "scale_u") != 0 && strcmp(property, "scale_v") != 0))
            return toile_fail(error, TOILE_INVALID,
                              "garment \"%s\": there is no property \"%s\" to map; use scale_u, scale_v or one that `toile "
                              "fabrics` lists",
                              g->name, property ? property : "(null)");
        made.axis = property[6] == 'v';
    }
    toile_status status = check_factors(g, property, factors, error);
    if (status != TOILE_OK)
        return status;
    toile_map *maps = toile_grow(memory, s->maps, (size_t)s->map_count, (size_t)s->map_count + 1, sizeof *maps);
    if (maps)
        s->maps = maps;
    if (!maps || !(made.factors = toile_alloc(memory, (size_t)g->vertex_count, sizeof(double))))
        return toile_fail_memory(error, "a map");
    memcpy(made.factors, factors, (size_t)g->vertex_count * sizeof(double));
    if (map)
        *map = s->map_count;
    s->maps[s->map_count++] = made;
    return TOILE_OK;
}

toile_status toile_shaping_change(toile_garment *g, int map, const double *factors, toile_error *error) {
    toile_status status = check_factors(g, property_of(&g->shaping.maps[map]), factors, error);
    if (status == TOILE_OK)
        memcpy(g->shaping.maps[map].factors, factors, (size_t)g->vertex_count * sizeof(double));
    return status;
}

/* Every pair must be an edge of the mesh. */
static toile_status check_pairs(toile_memory *memory, const toile_garment *g, const char *what, const int *pairs, int count,
                                toile_error *error) {
    int n = 3 * g->triangle_count;
    toile_half_edge *edges = toile_half_edges(memory, g->triangles, g->triangle_count);
    if (!edges)
        return toile_fail_memory(error, "a garment's edges");
    toile_status status = TOILE_OK;
    for (int i = 0; i < count && status == TOILE_OK; i++) {
        int a = pairs[2 * i], b = pairs[2 * i + 1], lo = 0, hi = n;
        int first = a < b ? a : b, second = a < b ? b : a;
        while (lo < hi) { /* half edges are sorted by their ends */
            int mid = (lo + hi) / 2;
            if (edges[mid].a < first || (edges[mid].a == first && edges[mid].b < second))
                lo = mid + 1;
            else
                hi = mid;
        }
        if (lo == n || edges[lo].a != first || edges[lo].b != second)
            status = toile_fail(error, TOILE_INVALID,
                                "garment \"%s\": %s goes from vertex %d to %d, which is not an edge of its triangles; name "
                                "vertices that are neighbours",
                                g->name, what, a, b);
    }
    toile_free(memory, edges);
    return status;
}

toile_status toile_shaping_crease(toile_memory *memory, toile_garment *g, const int *edges, int count, double angle,
                                  toile_error *error) {
    toile_shaping *s = &g->shaping;
    if (!(fabs(angle) <= 3.1416))
        return toile_fail(error, TOILE_INVALID, "garment \"%s\": a crease of %g rad is not possible; use -pi to pi", g->name,
                          angle);
    toile_status status = check_pairs(memory, g, "a crease", edges, count, error);
    if (status != TOILE_OK)
        return status;
    toile_crease *grown =
        toile_grow(memory, s->creases, (size_t)s->crease_count, (size_t)s->crease_count + (size_t)count, sizeof *grown);
    if (!grown)
        return toile_fail_memory(error, "a crease");
    s->creases = grown;
    for (int i = 0; i < count; i++)
        s->creases[s->crease_count++] = (toile_crease){edges[2 * i], edges[2 * i + 1], angle};
    return TOILE_OK;
}

toile_status toile_shaping_elastic(toile_memory *memory, toile_garment *g, const int *edges, int count, double stiffness,
                                   double scale, toile_error *error) {
    toile_shaping *s = &g->shaping;
    if (!(stiffness > 0 && stiffness <= 1e6) || !(scale >= 0.01 && scale <= 100))
        return toile_fail(error, TOILE_INVALID,
                          "garment \"%s\": an elastic band of %g N and rest scale %g is not possible; use more than 0 up to "
                          "1e6 N, and 0.01 to 100",
                          g->name, stiffness, scale);
    toile_status status = check_pairs(memory, g, "an elastic band", edges, count, error);
    if (status != TOILE_OK)
        return status;
    toile_elastic *grown =
        toile_grow(memory, s->elastics, (size_t)s->elastic_count, (size_t)s->elastic_count + (size_t)count, sizeof *grown);
    if (!grown)
        return toile_fail_memory(error, "an elastic band");
    s->elastics = grown;
    for (int i = 0; i < count; i++)
        s->elastics[s->elastic_count++] = (toile_elastic){edges[2 * i], edges[2 * i + 1], stiffness, scale};
    return TOILE_OK;
}

void toile_shaping_free(toile_memory *memory, toile_shaping *s) {
    for (int i = 0; i < s->map_count; i++)
        toile_free(memory, s->maps[i].factors);
    toile_free(memory, s->maps);
    toile_free(memory, s->creases);
    toile_free(memory, s->elastics);
    memset(s, 0, sizeof *s);
}
