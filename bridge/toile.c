/* The public interface: check what the caller gave, call the core, keep the message. */
#include "toile.h"

#include "garment.h"
#include "pin.h"
#include "sew.h"
#include "shell.h"
#include "stability.h"
#include "world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct toile_world {
    toile_memory memory;
    toile_hooks hooks;
    toile_error error;
    toile_settings settings;
    toile_fabric *fabrics;
    int fabric_count;
    toile_garment *garments;
    int garment_count;
    toile_solid *solids;
    int solid_count;
    toile_hold *holds;
    int hold_count;
    int *hold_garments;
    toile_apart *apart;
    int apart_count;
    bool built;
    toile_sim sim;
};

/* The public enums repeat the core's: the public header stands alone. */
_Static_assert((int)TOILE_MESH == (int)TOILE_SOLID_MESH && (int)TOILE_CYLINDER == (int)TOILE_SOLID_CYLINDER, "shapes");
_Static_assert((int)TOILE_INSIDE == (int)TOILE_SOLID_INSIDE && (int)TOILE_BOTH_SIDES == (int)TOILE_SOLID_BOTH, "sides");
_Static_assert((int)TOILE_STAGE_COUNT == (int)STAGE_COUNT, "stages");

static void *host_allocate(void *user, size_t size) {
    const toile_hooks *hooks = user;
    return hooks->allocate(hooks->user, size);
}

static void host_release(void *user, void *pointer) {
    const toile_hooks *hooks = user;
    hooks->release(hooks->user, pointer);
}

const char *toile_version(void) {
    return TOILE_VERSION;
}

toile_status toile_create(const toile_hooks *hooks, toile_world **world) {
    if (!world)
        return TOILE_MISUSE;
    *world = NULL;
    toile_hooks none = {0}, *kept = &none;
    if (hooks)
        none = *hooks;
    toile_memory memory;
    toile_allocator allocator = {host_allocate, host_release, kept};
    bool own = none.allocate && none.release;
    toile_memory_init(&memory, own ? &allocator : NULL);
    toile_world *w = toile_alloc(&memory, 1, sizeof *w);
    if (!w)
        return TOILE_NO_MEMORY;
    w->hooks = none;
    w->memory = memory;
    w->memory.allocator.user = &w->hooks; /* the hooks now live in the world */
    w->settings = toile_default_settings();
    *world = w;
    return TOILE_OK;
}

void toile_destroy(toile_world *w) {
    if (!w)
        return;
    toile_memory *m = &w->memory;
    toile_sim_free(&w->sim);
    for (int i = 0; i < w->garment_count; i++)
        toile_garment_free(m, &w->garments[i]);
    for (int i = 0; i < w->solid_count; i++)
        toile_solid_free(m, &w->solids[i]);
    for (int i = 0; i < w->hold_count; i++)
        toile_hold_free(m, &w->holds[i]);
    toile_free(m, w->fabrics);
    toile_free(m, w->garments);
    toile_free(m, w->solids);
    toile_free(m, w->holds);
    toile_free(m, w->hold_garments);
    toile_free(m, w->apart);
    toile_hooks hooks = w->hooks;
    toile_memory last = *m;
    last.allocator.user = &hooks;
    toile_free(&last, w);
}

toile_sim *toile_world_sim(toile_world *w) {
    return w && w->built ? &w->sim : NULL;
}

const char *toile_message(const toile_world *w) {
    return w ? w->error.message : "there is no world: toile_create failed or was not called";
}

/* ---- guards ---- */

static toile_status not_built(toile_world *w) {
    if (!w)
        return TOILE_MISUSE;
    if (w->built)
        return toile_fail(&w->error, TOILE_MISUSE, "the world is built; add and set everything before toile_build");
    return TOILE_OK;
}

static toile_status is_built(const toile_world *w) {
    if (!w)
        return TOILE_MISUSE;
    if (!w->built)
        return toile_fail((toile_error *)&w->error, TOILE_MISUSE, "the world is not built; call toile_build first");
    return TOILE_OK;
}

static toile_status in_range(const toile_world *w, const char *what, int index, int count) {
    if (index < 0 || index >= count)
        return toile_fail((toile_error *)&w->error, TOILE_INVALID, "%s %d does not exist; there are %d", what, index, count);
    return TOILE_OK;
}

static toile_status missing(toile_world *w, const char *what) {
    return toile_fail(&w->error, TOILE_MISUSE, "%s is null", what);
}

/* Makes room for one more in an array of the world. */
static toile_status extend(toile_world *w, void **array, int count, size_t size, const char *what) {
    if (count & (count - 1)) /* room grows at powers of two */
        return TOILE_OK;
    void *grown = toile_grow(&w->memory, *array, (size_t)count, count ? 2 * (size_t)count : 1, size);
    if (!grown)
        return toile_fail_memory(&w->error, what);
    *array = grown;
    return TOILE_OK;
}

/* ---- settings and fabrics ---- */

static toile_status find_setting(toile_world *w, const char *id, const toile_field **field) {
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    *field = id ? toile_find_field(fields, count, id) : NULL;
    if (!*field)
        return toile_fail(&w->error, TOILE_INVALID, "there is no setting \"%s\"; `toile settings` lists them",
                          id ? id : "(null)");
    return TOILE_OK;
}

toile_status toile_set(toile_world *w, const char *id, const char *text) {
    const toile_field *field;
    toile_status status = not_built(w);
    if (status == TOILE_OK && !text)
        status = missing(w, "the value");
    if (status == TOILE_OK && (status = find_setting(w, id, &field)) == TOILE_OK)
        status = toile_set_field_text(field, &w->settings, text, &w->error);
    return status;
}

toile_status toile_set_numbers(toile_world *w, const char *id, const double *values, int count) {
    const toile_field *field;
    toile_status status = not_built(w);
    if (status == TOILE_OK && !values)
        status = missing(w, "the value");
    if (status == TOILE_OK && (status = find_setting(w, id, &field)) == TOILE_OK)
        status = toile_set_field_numbers(field, &w->settings, values, count, &w->error);
    return status;
}

toile_status toile_get_numbers(toile_world *w, const char *id, double values[3], int *count) {
    const toile_field *field;
    if (!w || !values)
        return TOILE_MISUSE;
    toile_status status = find_setting(w, id, &field);
    if (status == TOILE_OK) {
        int n = toile_get_field(field, &w->settings, values);
        if (count)
            *count = n;
    }
    return status;
}

toile_status toile_add_fabric(toile_world *w, const char *base, int *fabric) {
    toile_status status = not_built(w);
    if (status != TOILE_OK)
        return status;
    toile_fabric made = toile_default_fabric();
    if (base) {
        const toile_named_fabric *named = toile_find_fabric(base);
        if (!named)
            return toile_fail(&w->error, TOILE_INVALID, "there is no fabric \"%s\"; `toile fabrics` lists them", base);
        made = named->fabric;
    }
    if ((status = extend(w, (void **)&w->fabrics, w->fabric_count, sizeof *w->fabrics, "fabrics")) != TOILE_OK)
        return status;
    w->fabrics[w->fabric_count] = made;
    if (fabric)
        *fabric = w->fabric_count;
    w->fabric_count++;
    return TOILE_OK;
}

toile_status toile_set_fabric(toile_world *w, int fabric, const char *id, double value) {
    toile_status status = not_built(w);
    if (status != TOILE_OK || (status = in_range(w, "fabric", fabric, w->fabric_count)) != TOILE_OK)
        return status;
    int count;
    const toile_field *fields = toile_fabric_fields(&count), *field = id ? toile_find_field(fields, count, id) : NULL;
    if (!field)
        return toile_fail(&w->error, TOILE_INVALID, "a fabric has no property \"%s\"; `toile fabrics` lists them",
                          id ? id : "(null)");
    return toile_set_field_numbers(field, &w->fabrics[fabric], &value, 1, &w->error);
}

/* ---- garments ---- */

static toile_status add_garment(toile_world *w, const toile_garment_input *input, int *garment) {
    toile_status status;
    for (int g = 0; input->name && g < w->garment_count; g++)
        if (strcmp(w->garments[g].name, input->name) == 0)
            return toile_fail(&w->error, TOILE_INVALID, "there are two garments named \"%s\"; names must differ",
                              input->name);
    if ((status = extend(w, (void **)&w->garments, w->garment_count, sizeof *w->garments, "garments")) != TOILE_OK)
        return status;
    status = toile_garment_make(&w->memory, input, w->fabric_count, &w->garments[w->garment_count], &w->error);
    if (status == TOILE_OK) {
        if (garment)
            *garment = w->garment_count;
        w->garment_count++;
    }
    return status;
}

toile_status toile_add_mesh(toile_world *w, const toile_mesh *mesh, int *garment) {
    toile_status status = not_built(w);
    if (status != TOILE_OK)
        return status;
    if (!mesh)
        return missing(w, "the mesh");
    toile_garment_input input = {.name = mesh->name,
                                 .vertex_count = mesh->vertex_count,
                                 .positions = mesh->positions,
                                 .face_count = mesh->face_count,
                                 .face_sizes = mesh->face_sizes,
                                 .face_vertices = mesh->face_vertices,
                                 .corner_uv = mesh->corner_uv,
                                 .panel_count = mesh->panel_count,
                                 .panel_names = mesh->panel_names,
                                 .panel_fabrics = mesh->panel_fabrics,
                                 .panel_scales = mesh->panel_scales,
                                 .face_panels = mesh->face_panels,
                                 .keep_start_angles = mesh->keep_start_angles,
                                 .seam_count = mesh->seam_count,
                                 .stitch_count = mesh->stitch_count,
                                 .seams = mesh->seams,
                                 .stitches = mesh->stitches};
    return add_garment(w, &input, garment);
}

static toile_status check_edges(toile_world *w, int garment, const int *edges, int count) {
    toile_status status = not_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK)
        return status;
    if (!edges || count < 1)
        return missing(w, "the list of edges");
    return TOILE_OK;
}

toile_status toile_add_seam(toile_world *w, int garment, const toile_seam *seam, const int *pairs, int count) {
    toile_status status = check_edges(w, garment, pairs, count);
    if (status != TOILE_OK)
        return status;
    if (!seam)
        return missing(w, "the seam");
    return toile_garment_sew(&w->memory, &w->garments[garment], seam, pairs, count, &w->error);
}

toile_status toile_add_map(toile_world *w, int garment, const char *property, const double *factors, int *map) {
    toile_status status = not_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK)
        return status;
    if (!factors)
        return missing(w, "the factors");
    return toile_shaping_map(&w->memory, &w->garments[garment], property, factors, map, &w->error);
}

toile_status toile_add_crease(toile_world *w, int garment, const int *edges, int count, double angle) {
    toile_status status = check_edges(w, garment, edges, count);
    return status != TOILE_OK ? status
                              : toile_shaping_crease(&w->memory, &w->garments[garment], edges, count, angle, &w->error);
}

toile_status toile_add_elastic(toile_world *w, int garment, const int *edges, int count, double stiffness, double scale) {
    toile_status status = check_edges(w, garment, edges, count);
    return status != TOILE_OK
               ? status
               : toile_shaping_elastic(&w->memory, &w->garments[garment], edges, count, stiffness, scale, &w->error);
}

static toile_status check_grid(toile_world *w, const toile_grid *g, double size[2]) {
    const char *name = g->name ? g->name : "(null)";
    if (g->nu < 2 || g->nv < 2 || (int64_t)g->nu * g->nv > 1 << 24)
        return toile_fail(&w->error, TOILE_INVALID,
                          "garment \"%s\": a grid of %d x %d particles is not possible; use 2 or more each way, and not more "
                          "than 16 million",
                          name, g->nu, g->nv);
    double along = 0;
    size[0] = size[1] = 0;
    for (int k = 0; k < 3; k++) {
        size[0] += g->u_axis[k] * g->u_axis[k];
        size[1] += g->v_axis[k] * g->v_axis[k];
        along += g->u_axis[k] * g->v_axis[k];
    }
    size[0] = sqrt(size[0]);
    size[1] = sqrt(size[1]);
    if (!(size[0] > 0 && size[0] < 1e6 && size[1] > 0 && size[1] < 1e6))
        return toile_fail(&w->error, TOILE_INVALID, "garment \"%s\": its size is %g x %g m; use lengths greater than 0", name,
                          size[0], size[1]);
    if (!(fabs(along) < 1e-6 * size[0] * size[1]))
        return toile_fail(&w->error, TOILE_INVALID, "garment \"%s\": the grid's axes are not at right angles", name);
    return TOILE_OK;
}

toile_status toile_add_grid(toile_world *w, const toile_grid *g, int *garment) {
    double size[2] = {0, 0};
    toile_status status = not_built(w);
    if (status != TOILE_OK)
        return status;
    if (!g)
        return missing(w, "the grid");
    if ((status = check_grid(w, g, size)) != TOILE_OK)
        return status;
    size_t n = (size_t)g->nu * (size_t)g->nv, faces = (size_t)(g->nu - 1) * (size_t)(g->nv - 1);
    toile_memory *m = &w->memory;
    double *positions = toile_alloc(m, 3 * n, sizeof(double)), *uv = toile_alloc(m, 8 * faces, sizeof(double));
    int *sizes = toile_alloc(m, faces, sizeof(int)), *vertices = toile_alloc(m, 4 * faces, sizeof(int));
    unsigned char *cuts = toile_alloc(m, faces, 1);
    if (!positions || !uv || !sizes || !vertices || !cuts) {
        status = toile_fail_memory(&w->error, "a grid");
        goto out;
    }
    for (int j = 0; j < g->nv; j++)
        for (int i = 0; i < g->nu; i++)
            for (int k = 0; k < 3; k++)
                positions[3 * (i + j * g->nu) + k] =
                    g->origin[k] + g->u_axis[k] * i / (g->nu - 1) + g->v_axis[k] * j / (g->nv - 1);
    for (int j = 0, f = 0; j < g->nv - 1; j++)
        for (int i = 0; i < g->nu - 1; i++, f++) {
            static const int DI[4] = {0, 1, 1, 0}, DJ[4] = {0, 0, 1, 1};
            sizes[f] = 4;
            for (int c = 0; c < 4; c++) {
                vertices[4 * f + c] = i + DI[c] + (j + DJ[c]) * g->nu;
                uv[2 * (4 * f + c)] = size[0] * (i + DI[c]) / (g->nu - 1);
                uv[2 * (4 * f + c) + 1] = size[1] * (j + DJ[c]) / (g->nv - 1);
            }
            cuts[f] = g->diagonals == TOILE_DIAGONALS_ALTERNATE ? (i + j) & 1 : g->diagonals == TOILE_DIAGONALS_LEFT;
        }
    toile_garment_input input = {.name = g->name,
                                 .vertex_count = (int)n,
                                 .positions = positions,
                                 .face_count = (int)faces,
                                 .face_sizes = sizes,
                                 .face_vertices = vertices,
                                 .corner_uv = uv,
                                 .panel_count = 1,
                                 .panel_fabrics = &g->fabric,
                                 .nu = g->nu,
                                 .nv = g->nv,
                                 .diagonals = cuts};
    status = add_garment(w, &input, garment);
out:
    toile_free(m, positions);
    toile_free(m, uv);
    toile_free(m, sizes);
    toile_free(m, vertices);
    toile_free(m, cuts);
    return status;
}

/* ---- colliders and pins ---- */

toile_status toile_add_collider(toile_world *w, const toile_collider *c, int *index) {
    toile_status status = not_built(w);
    if (status != TOILE_OK)
        return status;
    if (!c)
        return missing(w, "the collider");
    for (int s = 0; c->name && s < w->solid_count; s++)
        if (strcmp(w->solids[s].name, c->name) == 0)
            return toile_fail(&w->error, TOILE_INVALID, "there are two colliders named \"%s\"; names must differ", c->name);
    if ((status = extend(w, (void **)&w->solids, w->solid_count, sizeof *w->solids, "colliders")) != TOILE_OK)
        return status;
    toile_solid_input input = {.name = c->name,
                               .shape = (toile_solid_shape)c->shape,
                               .thickness = c->thickness,
                               .friction_static = c->friction_static,
                               .friction_kinetic = c->friction_kinetic,
                               .vertex_count = c->vertex_count,
                               .triangle_count = c->triangle_count,
                               .positions = c->positions,
                               .triangles = c->triangles,
                               .side = (toile_solid_side)c->side};
    if (c->side < TOILE_OUTSIDE || c->side > TOILE_BOTH_SIDES)
        return toile_fail(&w->error, TOILE_INVALID, "collider \"%s\": side %d is none of outside, inside and both",
                          c->name ? c->name : "", (int)c->side);
    memcpy(input.size, c->size, sizeof input.size);
    memcpy(input.position, c->position, sizeof input.position);
    memcpy(input.rotation, c->rotation, sizeof input.rotation);
    status = toile_solid_make(&w->memory, &input, &w->solids[w->solid_count], &w->error);
    if (status == TOILE_OK) {
        if (index)
            *index = w->solid_count;
        w->solid_count++;
    }
    return status;
}

static toile_status check_positions(toile_world *w, const char *what, const char *name, const double *positions, int count) {
    for (int i = 0; i < 3 * count; i++)
        if (!(fabs(positions[i]) < 1e6))
            return toile_fail(&w->error, TOILE_INVALID,
                              "%s \"%s\": vertex %d goes to coordinate %g; use finite numbers below 1000 km", what, name,
                              i / 3, positions[i]);
    return TOILE_OK;
}

toile_status toile_add_pin(toile_world *w, const toile_pin *pin, int *index) {
    toile_status status = not_built(w);
    if (status != TOILE_OK)
        return status;
    if (!pin || !pin->vertices)
        return missing(w, "the pin");
    if ((status = in_range(w, "garment", pin->garment, w->garment_count)) != TOILE_OK)
        return status;
    const toile_garment *g = &w->garments[pin->garment];
    if (pin->count < 1 || (!pin->axes[0] && !pin->axes[1] && !pin->axes[2]))
        return toile_fail(&w->error, TOILE_INVALID, "a pin of garment \"%s\" holds %d vertices in no direction or none",
                          g->name, pin->count);
    for (int i = 0; i < pin->count; i++)
        if (pin->vertices[i] < 0 || pin->vertices[i] >= g->vertex_count)
            return toile_fail(&w->error, TOILE_INVALID, "a pin holds vertex %d of garment \"%s\", which has %d vertices",
                              pin->vertices[i], g->name, g->vertex_count);
    if ((status = extend(w, (void **)&w->holds, w->hold_count, sizeof *w->holds, "pins")) != TOILE_OK ||
        (status = extend(w, (void **)&w->hold_garments, w->hold_count, sizeof(int), "pins")) != TOILE_OK)
        return status;
    toile_hold hold = {.count = pin->count, .on = true, .was_on = true};
    size_t n = (size_t)pin->count;
    hold.vertex = toile_alloc(&w->memory, n, sizeof(int));
    hold.particle = toile_alloc(&w->memory, n, sizeof(int));
    hold.from = toile_alloc(&w->memory, 3 * n, sizeof(double));
    hold.to = toile_alloc(&w->memory, 3 * n, sizeof(double));
    if (!hold.vertex || !hold.particle || !hold.from || !hold.to) {
        toile_hold_free(&w->memory, &hold);
        return toile_fail_memory(&w->error, "a pin");
    }
    memcpy(hold.axes, pin->axes, sizeof hold.axes);
    for (int i = 0; i < pin->count; i++) {
        hold.vertex[i] = pin->vertices[i]; /* the garment's numbers until toile_build */
        memcpy(hold.from + 3 * i, g->positions + 3 * pin->vertices[i], 3 * sizeof(double));
    }
    memcpy(hold.to, hold.from, 3 * n * sizeof(double));
    w->holds[w->hold_count] = hold;
    w->hold_garments[w->hold_count] = pin->garment;
    if (index)
        *index = w->hold_count;
    w->hold_count++;
    return TOILE_OK;
}

/* ---- what touches what ---- */

enum { LAYER_MOST = 1000 };

toile_status toile_set_layer(toile_world *w, int garment, int layer) {
    toile_status status = not_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK)
        return status;
    if (layer < -LAYER_MOST || layer > LAYER_MOST)
        return toile_fail(&w->error, TOILE_INVALID, "garment \"%s\": layer %d is out of range; use %d to %d",
                          w->garments[garment].name, layer, -LAYER_MOST, LAYER_MOST);
    w->garments[garment].layer = layer;
    return TOILE_OK;
}

static toile_status add_apart(toile_world *w, toile_apart apart) {
    toile_status status = extend(w, (void **)&w->apart, w->apart_count, sizeof *w->apart, "pairs without contact");
    if (status == TOILE_OK)
        w->apart[w->apart_count++] = apart;
    return status;
}

toile_status toile_exclude_garments(toile_world *w, int garment, int other) {
    toile_status status = not_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK ||
        (status = in_range(w, "garment", other, w->garment_count)) != TOILE_OK)
        return status;
    return add_apart(w, (toile_apart){garment, other, false});
}

toile_status toile_exclude_collider(toile_world *w, int garment, int collider) {
    toile_status status = not_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK ||
        (status = in_range(w, "collider", collider, w->solid_count)) != TOILE_OK)
        return status;
    return add_apart(w, (toile_apart){garment, collider, true});
}

toile_status toile_exempt_vertices(toile_world *w, int garment, int count, const int *vertices, bool from_cloth,
                                   bool from_colliders) {
    toile_status status = not_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK)
        return status;
    if (count < 0 || (count > 0 && !vertices))
        return missing(w, "the list of vertices");
    toile_garment *g = &w->garments[garment];
    for (int i = 0; i < count; i++)
        if (vertices[i] < 0 || vertices[i] >= g->vertex_count)
            return toile_fail(&w->error, TOILE_INVALID, "vertex %d is to be exempt from contact; garment \"%s\" has %d vertices",
                              vertices[i], g->name, g->vertex_count);
    if (!g->exempt && !(g->exempt = toile_alloc(&w->memory, (size_t)g->vertex_count, 1)))
        return toile_fail_memory(&w->error, "vertices exempt from contact");
    for (int i = 0; i < count; i++)
        g->exempt[vertices[i]] |= (unsigned char)((from_cloth ? TOILE_EXEMPT_CLOTH_BIT : 0) |
                                                  (from_colliders ? TOILE_EXEMPT_SOLIDS_BIT : 0));
    return TOILE_OK;
}

static toile_status find_pin(toile_world *w, int pin, toile_hold **hold) {
    toile_status status = not_built(w);
    if (status == TOILE_OK && (status = in_range(w, "pin", pin, w->hold_count)) == TOILE_OK)
        *hold = &w->holds[pin];
    return status;
}

toile_status toile_soften_pin(toile_world *w, int pin, double stiffness) {
    toile_hold *hold;
    toile_status status = find_pin(w, pin, &hold);
    if (status != TOILE_OK)
        return status;
    if (!(stiffness >= 0 && stiffness <= 1e9))
        return toile_fail(&w->error, TOILE_INVALID, "a pin of garment \"%s\" has stiffness %g; use 0 (rigid) to 1e9 N/m",
                          w->garments[w->hold_garments[pin]].name, stiffness);
    size_t n = 3 * (size_t)hold->count;
    if ((!hold->target && !(hold->target = toile_alloc(&w->memory, n, sizeof(double)))) ||
        (!hold->normal && !(hold->normal = toile_alloc(&w->memory, n, sizeof(double)))))
        return toile_fail_memory(&w->error, "a pin");
    hold->stiffness = stiffness;
    return TOILE_OK;
}

/* A pin goes to one thing besides points. */
static toile_status is_plain(toile_world *w, int pin) {
    const toile_hold *hold = &w->holds[pin];
    if (hold->anchor || hold->curve_from)
        return toile_fail(&w->error, TOILE_INVALID, "pin %d of garment \"%s\" is on a surface or a curve already; use another pin", pin,
                          w->garments[w->hold_garments[pin]].name);
    return TOILE_OK;
}

toile_status toile_pin_to_collider(toile_world *w, int pin, int collider) {
    toile_hold *hold;
    toile_status status = find_pin(w, pin, &hold);
    if (status != TOILE_OK || (status = in_range(w, "collider", collider, w->solid_count)) != TOILE_OK ||
        (status = is_plain(w, pin)) != TOILE_OK)
        return status;
    hold->triangle = toile_alloc(&w->memory, (size_t)hold->count, sizeof(int));
    double *anchor = hold->triangle ? toile_alloc(&w->memory, 5 * (size_t)hold->count, sizeof(double)) : NULL;
    if (!anchor) {
        toile_free(&w->memory, hold->triangle);
        hold->triangle = NULL;
        return toile_fail_memory(&w->error, "a pin");
    }
    hold->solid = collider;
    hold->anchor = anchor;
    return TOILE_OK;
}

toile_status toile_pin_to_curve(toile_world *w, int pin, const double *points, int count) {
    toile_hold *hold;
    toile_status status = find_pin(w, pin, &hold);
    if (status != TOILE_OK || (status = is_plain(w, pin)) != TOILE_OK)
        return status;
    if (!points)
        return missing(w, "the points");
    const char *garment = w->garments[w->hold_garments[pin]].name;
    if (count < 2 || count > 1 << 20 || !hold->axes[0] || !hold->axes[1] || !hold->axes[2])
        return toile_fail(&w->error, TOILE_INVALID,
                          "a pin of garment \"%s\" has a curve of %d points; use 2 or more, and hold all three axes", garment, count);
    if ((status = check_positions(w, "a pin's curve of garment", garment, points, count)) != TOILE_OK)
        return status;
    size_t n = 3 * (size_t)count;
    double *from = toile_alloc(&w->memory, n, sizeof(double)), *to = toile_alloc(&w->memory, n, sizeof(double));
    if (!from || !to) {
        toile_free(&w->memory, from), toile_free(&w->memory, to);
        return toile_fail_memory(&w->error, "a pin");
    }
    memcpy(from, points, n * sizeof(double));
    memcpy(to, points, n * sizeof(double));
    hold->curve_count = count;
    hold->curve_from = from;
    hold->curve_to = to;
    return TOILE_OK;
}

/* ---- running ---- */

toile_status toile_build(toile_world *w) {
    toile_status status = not_built(w);
    if (status != TOILE_OK)
        return status;
    if (!w->garment_count)
        return toile_fail(&w->error, TOILE_INVALID, "there is no garment; add one with toile_add_mesh or toile_add_grid");
    if ((status = toile_check_settings(&w->settings, "settings", &w->error)) != TOILE_OK)
        return status;
    toile_model *model;
    if ((status = toile_model_build(&w->memory, &w->settings, w->fabrics, w->garments, w->garment_count, &model,
                                    &w->error)) != TOILE_OK)
        return status;
    if ((status = toile_sim_make(&w->memory, &w->settings, model, &w->sim, &w->error)) != TOILE_OK) {
        toile_model_free(model);
        return status;
    }
    if ((status = toile_contact_rules_make(&w->memory, model, w->garments, w->solid_count, w->apart, w->apart_count,
                                           &w->sim.rules, &w->error)) != TOILE_OK ||
        (status = toile_sim_dress(&w->sim, w->fabrics, w->garments, w->garment_count, &w->error)) != TOILE_OK) {
        toile_sim_free(&w->sim);
        return status;
    }
    for (int p = 0; p < w->hold_count; p++)
        for (int i = 0; i < w->holds[p].count; i++)
            w->holds[p].vertex[i] += model->garment_begin[w->hold_garments[p]];
    w->sim.solids = w->solids;
    w->sim.solid_count = w->solid_count;
    w->sim.holds = w->holds;
    w->sim.hold_count = w->hold_count;
    toile_sim_place_holds(&w->sim);
    w->built = true;
    char note[300];
    if (w->hooks.log && toile_stability_note(&w->sim, note, sizeof note))
        w->hooks.log(w->hooks.user, 1, note);
    return TOILE_OK;
}

toile_status toile_pose_collider(toile_world *w, int collider, const double position[3], const double rotation[4]) {
    toile_status status = is_built(w);
    if (status != TOILE_OK || (status = in_range(w, "collider", collider, w->solid_count)) != TOILE_OK)
        return status;
    if (!position || !rotation)
        return missing(w, "the pose");
    toile_solid *s = &w->solids[collider];
    if (s->shape == TOILE_SOLID_MESH)
        return toile_fail(&w->error, TOILE_MISUSE, "collider \"%s\" is a mesh; move it with toile_deform_collider", s->name);
    status = toile_pose_make(position, rotation, s->name, &s->to, &w->error);
    toile_shell_pose(s);
    return status;
}

toile_status toile_deform_collider(toile_world *w, int collider, const double *positions) {
    toile_status status = is_built(w);
    if (status != TOILE_OK || (status = in_range(w, "collider", collider, w->solid_count)) != TOILE_OK)
        return status;
    toile_solid *s = &w->solids[collider];
    if (!positions)
        return missing(w, "the positions");
    if (s->shape != TOILE_SOLID_MESH)
        return toile_fail(&w->error, TOILE_MISUSE, "collider \"%s\" is not a mesh; move it with toile_pose_collider", s->name);
    if ((status = check_positions(w, "collider", s->name, positions, s->vertex_count)) != TOILE_OK)
        return status;
    memcpy(s->to_x, positions, 3 * (size_t)s->vertex_count * sizeof(double));
    return TOILE_OK;
}

toile_status toile_move_pin(toile_world *w, int pin, const double *positions) {
    toile_status status = is_built(w);
    if (status != TOILE_OK || (status = in_range(w, "pin", pin, w->hold_count)) != TOILE_OK)
        return status;
    if (!positions)
        return missing(w, "the positions");
    toile_hold *hold = &w->holds[pin];
    const char *name = w->garments[w->hold_garments[pin]].name;
    if ((status = check_positions(w, "a pin of garment", name, positions, hold->count)) != TOILE_OK)
        return status;
    memcpy(hold->to, positions, 3 * (size_t)hold->count * sizeof(double));
    return TOILE_OK;
}

toile_status toile_move_curve(toile_world *w, int pin, const double *points) {
    toile_status status = is_built(w);
    if (status != TOILE_OK || (status = in_range(w, "pin", pin, w->hold_count)) != TOILE_OK)
        return status;
    toile_hold *hold = &w->holds[pin];
    const char *name = w->garments[w->hold_garments[pin]].name;
    if (!points)
        return missing(w, "the points");
    if (!hold->curve_to)
        return toile_fail(&w->error, TOILE_MISUSE, "pin %d of garment \"%s\" has no curve; move it with toile_move_pin", pin, name);
    if ((status = check_positions(w, "a pin's curve of garment", name, points, hold->curve_count)) != TOILE_OK)
        return status;
    memcpy(hold->curve_to, points, 3 * (size_t)hold->curve_count * sizeof(double));
    return TOILE_OK;
}

toile_status toile_set_pressure(toile_world *w, int garment, int panel, double pressure) {
    toile_status status = is_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK)
        return status;
    const toile_garment *g = &w->garments[garment];
    if (panel != -1 && (status = in_range(w, "panel", panel, g->panel_count)) != TOILE_OK)
        return status;
    if (!(fabs(pressure) <= 1e6))
        return toile_fail(&w->error, TOILE_INVALID, "garment \"%s\": a pressure of %g N/m^2 is not possible; use up to 1e6", g->name,
                          pressure);
    int first = 0;
    for (int k = 0; k < garment; k++)
        first += w->garments[k].panel_count;
    for (int p = 0; p < g->panel_count; p++)
        if (panel == -1 || p == panel)
            w->sim.pressure_to[first + p] = pressure;
    return TOILE_OK;
}

toile_status toile_change_map(toile_world *w, int garment, int map, const double *factors) {
    toile_status status = is_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK ||
        (status = in_range(w, "map", map, w->garments[garment].shaping.map_count)) != TOILE_OK)
        return status;
    if (!factors)
        return missing(w, "the factors");
    const toile_garment *g = &w->garments[garment];
    if (memcmp(g->shaping.maps[map].factors, factors, (size_t)g->vertex_count * sizeof(double)) == 0)
        return TOILE_OK;
    if ((status = toile_shaping_change(&w->garments[garment], map, factors, &w->error)) == TOILE_OK)
        w->sim.maps_changed = true;
    return status;
}

toile_status toile_set_start(toile_world *w, int garment, const double *positions, const double *velocities) {
    toile_status status = is_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK)
        return status;
    if (!positions)
        return missing(w, "the positions");
    const toile_garment *g = &w->garments[garment];
    if ((status = check_positions(w, "the start of garment", g->name, positions, g->vertex_count)) != TOILE_OK ||
        (velocities && (status = check_positions(w, "the start velocities of garment", g->name, velocities, g->vertex_count)) != TOILE_OK))
        return status;
    const int *place = w->sim.model->place + w->sim.model->garment_begin[garment];
    for (int i = 0; i < g->vertex_count; i++) {
        size_t at = 4 * (size_t)place[i];
        memcpy(w->sim.state.x + at, positions + 3 * i, 3 * sizeof(double));
        memset(w->sim.state.v + at, 0, 3 * sizeof(double));
        if (velocities)
            memcpy(w->sim.state.v + at, velocities + 3 * i, 3 * sizeof(double));
    }
    return TOILE_OK;
}

toile_status toile_set_time(toile_world *w, double seconds) {
    toile_status status = is_built(w);
    if (status != TOILE_OK)
        return status;
    if (!(fabs(seconds) <= 1e6))
        return toile_fail(&w->error, TOILE_INVALID, "a time of %g s is not possible; use up to 1e6", seconds);
    w->sim.state.time = seconds;
    if (w->sim.total.frames == 0)
        w->sim.begin_time = seconds;
    return TOILE_OK;
}

toile_status toile_enable_pin(toile_world *w, int pin, bool on) {
    toile_status status = is_built(w);
    if (status == TOILE_OK && (status = in_range(w, "pin", pin, w->hold_count)) == TOILE_OK)
        w->holds[pin].on = on;
    return status;
}

toile_status toile_grab_pin(toile_world *w, int pin, bool grabs) {
    toile_status status = w ? in_range(w, "pin", pin, w->hold_count) : TOILE_MISUSE;
    if (status == TOILE_OK)
        w->holds[pin].grabs = grabs;
    return status;
}

toile_status toile_place_inputs(toile_world *w) {
    toile_status status = is_built(w);
    if (status != TOILE_OK)
        return status;
    for (int s = 0; s < w->solid_count; s++) {
        toile_solid_arrive(&w->solids[s]);
        toile_solid_move(&w->solids[s], 1, 1, 1);
    }
    toile_holds_arrive(&w->sim);
    toile_pressure_arrive(&w->sim);
    return TOILE_OK;
}

/* What went wrong in a frame without ending it. */
static void tell_troubles(toile_world *w, int64_t rode_before) {
    const toile_counters *f = &w->sim.frame;
    double time = w->sim.state.time;
    char line[240];
    if (!w->hooks.log)
        return;
    if (f->forced) {
        snprintf(line, sizeof line,
                 "at %.3f s %lld of %lld steps were taken at the smallest step length although the stretch changed by more "
                 "than stretch_change_max",
                 time, (long long)f->forced, (long long)f->steps);
        w->hooks.log(w->hooks.user, 1, line);
    }
    if (f->rested) {
        snprintf(line, sizeof line,
                 "at %.3f s %lld steps had no answer, however short: the cloth went with colliders and pins instead, and may cross",
                 time, (long long)f->rested);
        w->hooks.log(w->hooks.user, 1, line);
    }
    if (f->riders && !rode_before) {
        snprintf(line, sizeof line,
                 "at %.3f s colliders close on %lld particles of the cloth from two sides: these go with them until there is room",
                 time, (long long)f->riders);
        w->hooks.log(w->hooks.user, 1, line);
    }
}

toile_status toile_advance(toile_world *w, double seconds) {
    toile_status status = is_built(w);
    if (status != TOILE_OK)
        return status;
    if (!(seconds > 0 && seconds <= 10))
        return toile_fail(&w->error, TOILE_INVALID, "a frame of %g s is not possible; use more than 0 and at most 10", seconds);
    int64_t rode_before = w->sim.frame.riders;
    if ((status = toile_sim_advance(&w->sim, seconds, &w->error)) == TOILE_OK)
        tell_troubles(w, rode_before);
    return status;
}

void toile_cancel(toile_world *w, bool cancel) {
    if (w)
        atomic_store(&w->sim.cancel, cancel);
}

/* ---- results ---- */

int toile_garment_count(const toile_world *w) {
    return w ? w->garment_count : 0;
}

const char *toile_garment_name(const toile_world *w, int garment) {
    return w && garment >= 0 && garment < w->garment_count ? w->garments[garment].name : "";
}

int toile_vertex_count(const toile_world *w, int garment) {
    return w && garment >= 0 && garment < w->garment_count ? w->garments[garment].vertex_count : 0;
}

int toile_triangle_count(const toile_world *w, int garment) {
    return w && garment >= 0 && garment < w->garment_count ? w->garments[garment].triangle_count : 0;
}

int toile_panel_count(const toile_world *w, int garment) {
    return w && garment >= 0 && garment < w->garment_count ? w->garments[garment].panel_count : 0;
}

const char *toile_panel_name(const toile_world *w, int garment, int panel) {
    return panel >= 0 && panel < toile_panel_count(w, garment) ? w->garments[garment].panels[panel].name : "";
}

static toile_status read_vectors(const toile_world *w, int garment, bool velocities, double *xyz) {
    toile_status status = is_built(w);
    if (status != TOILE_OK || (status = in_range(w, "garment", garment, w->garment_count)) != TOILE_OK)
        return status;
    if (!xyz)
        return missing((toile_world *)w, "the array");
    const double *source = velocities ? w->sim.state.v : w->sim.state.x;
    const int *place = w->sim.model->place + w->sim.model->garment_begin[garment];
    for (int i = 0; i < w->garments[garment].vertex_count; i++)
        memcpy(xyz + 3 * i, source + 4 * (size_t)place[i], 3 * sizeof(double));
    return TOILE_OK;
}

toile_status toile_get_positions(const toile_world *w, int garment, double *xyz) {
    return read_vectors(w, garment, false, xyz);
}

toile_status toile_get_velocities(const toile_world *w, int garment, double *xyz) {
    return read_vectors(w, garment, true, xyz);
}

toile_status toile_get_triangles(const toile_world *w, int garment, int *vertices, int *panels, double *corner_uv) {
    if (!w)
        return TOILE_MISUSE;
    toile_status status = in_range(w, "garment", garment, w->garment_count);
    if (status != TOILE_OK)
        return status;
    const toile_garment *g = &w->garments[garment];
    size_t n = (size_t)g->triangle_count;
    if (vertices)
        memcpy(vertices, g->triangles, 3 * n * sizeof(int));
    if (panels)
        memcpy(panels, g->triangle_panels, n * sizeof(int));
    if (corner_uv)
        memcpy(corner_uv, g->corner_uv, 6 * n * sizeof(double));
    return TOILE_OK;
}

int toile_stitch_count(const toile_world *w, int garment) {
    return w && garment >= 0 && garment < w->garment_count ? w->garments[garment].stitch_count : 0;
}

toile_status toile_get_stitches(const toile_world *w, int garment, toile_stitch *stitches) {
    if (!w)
        return TOILE_MISUSE;
    toile_status status = in_range(w, "garment", garment, w->garment_count);
    if (status == TOILE_OK && !stitches)
        status = missing((toile_world *)w, "the array");
    for (int i = 0; status == TOILE_OK && i < w->garments[garment].stitch_count; i++)
        stitches[i] = w->garments[garment].stitches[i];
    return status;
}

toile_status toile_get_statistics(const toile_world *w, bool whole_run, toile_statistics *out) {
    toile_status status = is_built(w);
    if (status != TOILE_OK)
        return status;
    if (!out)
        return missing((toile_world *)w, "the statistics");
    const toile_counters *c = whole_run ? &w->sim.total : &w->sim.frame;
    toile_energies energies = toile_sim_energies(&w->sim);
    *out = (toile_statistics){.frames = c->frames,
                              .steps = c->steps,
                              .rejected_steps = c->rejected,
                              .forced_steps = c->forced,
                              .iterations = c->iterations,
                              .row_multiplies = c->row_multiplies,
                              .seconds = c->seconds,
                              .max_stretch = c->max_stretch,
                              .step_min = c->step_min,
                              .step_max = c->step_max,
                              .kinetic_energy = energies.kinetic,
                              .elastic_energy = energies.elastic,
                              .potential_energy = energies.potential};
    memcpy(out->stages, c->stages, sizeof out->stages);
    for (int i = 0; i < w->sim.state.n; i++)
        out->contacts += w->sim.state.touch[i].solid >= 0;
    double mass = 0;
    for (int i = 0; i < w->sim.state.n; i++)
        mass += w->sim.model->mass[i];
    out->speed = sqrt(2 * energies.kinetic / mass);
    out->open_stitches = toile_sim_open_stitches(&w->sim, &out->widest_gap);
    out->particles = w->sim.model->particle_count;
    out->penetrations = toile_sim_penetrations(&w->sim, &out->deepest);
    return TOILE_OK;
}

uint64_t toile_state_hash(const toile_world *w) {
    return w && w->built ? toile_sim_state_hash(&w->sim) : 0;
}

double toile_time(const toile_world *w) {
    return w && w->built ? w->sim.state.time : 0;
}

int toile_threads(const toile_world *w) {
    return w && w->built ? w->sim.threads : 0;
}

size_t toile_state_size(const toile_world *w) {
    return w && w->built ? toile_sim_state_bytes(&w->sim) : 0;
}

toile_status toile_save_state(const toile_world *w, void *bytes, size_t size) {
    toile_status status = is_built(w);
    if (status != TOILE_OK)
        return status;
    if (!bytes || size != toile_sim_state_bytes(&w->sim))
        return toile_fail((toile_error *)&w->error, TOILE_MISUSE, "the state needs a buffer of %zu bytes, not %zu",
                          toile_sim_state_bytes(&w->sim), size);
    toile_sim_state_write(&w->sim, bytes);
    return TOILE_OK;
}

toile_status toile_restore_state(toile_world *w, const void *bytes, size_t size) {
    toile_status status = is_built(w);
    if (status != TOILE_OK)
        return status;
    if (!bytes)
        return missing(w, "the saved state");
    return toile_sim_state_read(&w->sim, bytes, size, &w->error);
}

void toile_memory_use(const toile_world *w, uint64_t *calls, uint64_t *live, size_t *bytes, size_t *peak) {
    toile_memory none = {0};
    const toile_memory *m = w ? &w->memory : &none;
    if (calls)
        *calls = m->calls;
    if (live)
        *live = m->live;
    if (bytes)
        *bytes = m->bytes;
    if (peak)
        *peak = m->peak_bytes;
}
