#include "self.h"

#include "press.h"
#include "sim.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

/* Of an edge in the material: the thickest that cloth may be against itself without neighbours but one touching. */
#define THICKEST 0.5
/* Default thickness in edges, and its largest, m. */
#define USUAL 0.25
#define USUAL_MAX 0.003
/* What is about to be sewn to each other keeps this share of its thickness: half of the gap at which stitches become one (weld.c),
 * for that is a tenth of an edge. */
#define SEWN_SHARE 0.2

/* How near counts as near, in thicknesses. */
#define NEAR 2.0

/* How far, in edges, points may go before pairs are looked for again. */
#define DRIFT 0.05

/* How deep inside a solid cloth is still known to be inside, m. */
#define INSIDE 0.05

/* ---- making ---- */

/* Between two of its particles cloth comes nearer to what is round, by the square of their distance over 8 radii. If that is
 * little and no other solid makes a corner with it, the particles are enough, and its shell would only cost. Without contact between
 * layers all primitives go without: that is how the papers have them, and their solvers know no couplings. */
static void find_smooth(toile_sim *sim) {
    int solids = 0;
    double widest = 0;
    bool off = sim->settings->self_collision == TOILE_SELF_OFF;
    for (int i = 0; i < sim->solid_count; i++)
        solids += sim->solids[i].shape != TOILE_SOLID_PLANE;
    for (int p = 0; p < sim->model->particle_count; p++)
        widest = fmax(widest, 2 * sim->model->area[p]); /* square of the diagonal of its cell */
    for (int i = 0; i < sim->solid_count; i++) {
        toile_solid *s = &sim->solids[i];
        bool round = s->shape == TOILE_SOLID_SPHERE || s->shape == TOILE_SOLID_CAPSULE;
        double sag = round ? widest / (8 * s->size[0]) : INFINITY;
        s->smooth = s->shell && (off || (solids == 1 && sag < 0.5 * (s->thickness + sim->settings->contact_thickness)));
    }
}

static bool wanted(const toile_sim *sim) {
    if (sim->settings->self_collision != TOILE_SELF_OFF)
        return true;
    for (int i = 0; i < sim->solid_count; i++)
        if (toile_has_edges(&sim->solids[i]))
            return true;
    return false;
}

/* Do the solids still have the meshes that the skin was made from? */
static bool fits(const toile_sim *sim) {
    const toile_skin *skin = &sim->self.skin;
    int k = 0;
    if (!skin->memory)
        return false;
    for (int i = 0; i < sim->solid_count; i++) {
        const toile_solid *s = &sim->solids[i];
        if (!toile_has_edges(s))
            continue;
        if (k == skin->solid_count || skin->solids[k].solid != i || skin->solids[k].tree.count != s->triangle_count)
            return false;
        const int *first = skin->triangle + 3 * skin->solids[k].triangle_begin;
        for (int j = 0; j < 3 * s->triangle_count; j++)
            if (first[j] != skin->solids[k].point_begin + s->triangles[j])
                return false;
        k++;
    }
    return k == skin->solid_count;
}

void toile_self_free(toile_sim *sim) {
    toile_self *s = &sim->self;
    toile_skin_free(&s->skin);
    void *blocks[] = {s->nearest, s->clear, s->asked, s->solid_way, s->tangled, s->particles.pair, s->thickness, s->near.pair, s->found.pair, s->hit, s->touched, s->votes};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(sim->memory, blocks[i]);
    toile_couplings_free(sim->memory, &s->couplings);
    toile_zones_free(sim->memory, &s->zones);
    toile_voxels_free(sim->memory, &s->voxels);
    memset(s, 0, sizeof *s);
}

static double collider_gap(const toile_sim *sim, int solid) {
    return TOILE_EDGE_SHARE * (sim->solids[sim->self.skin.solids[solid].solid].thickness + sim->settings->contact_thickness);
}

/* A property of the mesh unless it is set. */
static void set_thickness(toile_sim *sim) {
    toile_self *s = &sim->self;
    double given = sim->settings->self_thickness, most = 0, mean = 0;
    int n = sim->model->particle_count;
    for (int i = 0; i < n; i++)
        mean += s->skin.mean_edge[i] / n;
    bool cheap = sim->settings->self_collision == TOILE_SELF_CHEAP;
    for (int i = 0; i < n; i++) {
        double usual = cheap ? THICKEST * mean : fmin(USUAL * mean, USUAL_MAX);
        s->thickness[i] = fmin(given > 0 ? given : usual, THICKEST * s->skin.mean_edge[i]);
        most = fmax(most, s->thickness[i]);
    }
    bool self = sim->settings->self_collision == TOILE_SELF_ON;
    s->reach = (toile_reach){self ? NEAR * most : -1, -1, DRIFT * mean};
    s->voxel = NEAR * most;
    for (int i = 0; i < s->skin.solid_count; i++)
        s->reach.solid = fmax(s->reach.solid, NEAR * collider_gap(sim, i));
}

/* Nothing is known of where colliders are; how far do they go in this frame? */
static void forget_clearance(toile_sim *sim) {
    toile_self *s = &sim->self;
    memset(s->clear, 0, (size_t)sim->model->particle_count * (size_t)s->nearest_count * sizeof *s->clear);
    for (int i = 0; i < s->nearest_count && i < sim->solid_count; i++) {
        const toile_solid *solid = &sim->solids[i];
        double longest2 = 0;
        for (int v = 0; v < solid->vertex_count; v++) {
            double way[3];
            sub(solid->to_x + 3 * v, solid->from_x + 3 * v, way);
            longest2 = fmax(longest2, dot(way, way));
        }
        s->solid_way[i] = sqrt(longest2);
    }
}

toile_status toile_self_begin(toile_sim *sim, toile_error *error) {
    toile_self *s = &sim->self;
    s->near_known = s->skin.listed = false;
    find_smooth(sim);
    for (int i = 0; i < sim->model->particle_count; i++)
        sim->work.found[i].solid = -1; /* of the last frame */
    s->on = wanted(sim);
    if (!s->on)
        return TOILE_OK;
    if (fits(sim)) {
        forget_clearance(sim);
        return TOILE_OK;
    }
    toile_self_free(sim);
    s->on = true;
    const toile_model *m = sim->model;
    toile_status status = toile_skin_make(sim->memory, m, sim->solids, sim->solid_count, sim->threads, &s->skin, error);
    if (status != TOILE_OK)
        return status;
    size_t n = (size_t)m->particle_count, points = (size_t)s->skin.point_count;
    s->thickness = toile_alloc(sim->memory, n, sizeof(double));
    s->touched = toile_alloc(sim->memory, points, 1);
    s->votes = toile_alloc(sim->memory, 4 * n, sizeof(double));
    s->tangled = toile_alloc(sim->memory, n, 1);
    s->nearest = toile_alloc(sim->memory, n * (size_t)sim->solid_count, sizeof(int)); /* 0 does as well as any */
    s->clear = toile_alloc(sim->memory, n * (size_t)sim->solid_count, sizeof(float));
    s->asked = toile_alloc(sim->memory, 4 * n, sizeof(double));
    s->solid_way = toile_alloc(sim->memory, (size_t)sim->solid_count, sizeof(double));
    s->nearest_count = sim->solid_count;
    int usual = toile_skin_usual_pairs(&s->skin);
    s->near.pair = toile_alloc(sim->memory, (size_t)usual, sizeof *s->near.pair);
    s->found.pair = toile_alloc(sim->memory, (size_t)usual, sizeof *s->found.pair);
    s->hit = toile_alloc(sim->memory, 1024, sizeof *s->hit);
    s->near.capacity = s->found.capacity = usual;
    s->hit_capacity = 1024;
    bool ok = s->nearest && s->clear && s->asked && s->solid_way && s->near.pair && s->found.pair && s->hit && s->tangled && s->thickness && s->touched && s->votes && toile_zones_make(sim->memory, m->particle_count, &s->zones) &&
              toile_couplings_make(sim->memory, m->particle_count, m->pattern.chunk_count, &s->couplings) &&
              (sim->settings->self_collision != TOILE_SELF_CHEAP ||
               toile_voxels_make(sim->memory, m->particle_count, &s->voxels));
    if (!ok) {
        toile_self_free(sim);
        return toile_fail_memory(error, "what keeps cloth off cloth");
    }
    set_thickness(sim);
    forget_clearance(sim);
    return TOILE_OK;
}

/* ---- geometry of a pair ---- */

bool toile_pair_shares(const toile_pair *pair, const int *number, int count) {
    int split = toile_pair_kind(pair) == TOILE_CCD_VF ? 1 : 2;
    for (int a = 0; a < split; a++)
        for (int b = split; b < 4; b++) {
            int p = pair->point[a], q = pair->point[b];
            if (p < count && q < count && number[p] == number[q])
                return true;
        }
    return false;
}

/* The distance that a pair keeps, m. */
double toile_pair_thickness(const toile_sim *sim, const toile_pair *pair) {
    const toile_self *s = &sim->self;
    double least = INFINITY;
    for (int i = 0; i < 4; i++) {
        int p = pair->point[i], solid = s->skin.solid_of[p];
        double own = solid >= 0 ? collider_gap(sim, solid) : s->thickness[p];
        least = own < least ? own : least;
    }
    return s->skin.sewing && toile_pair_shares(pair, s->skin.same, s->skin.cloth_points) ? SEWN_SHARE * least : least;
}

bool toile_pair_with_solid(const toile_self *s, const toile_pair *pair) {
    int n = s->skin.cloth_points;
    return pair->point[0] >= n || pair->point[1] >= n || pair->point[3] >= n;
}

/* A particle of the cloth against a collider's face: contact.c holds it off. */
bool toile_pair_held_off(const toile_self *s, const toile_pair *pair) {
    return toile_pair_kind(pair) == TOILE_CCD_VF && pair->point[1] >= s->skin.cloth_points;
}

/* ---- the search ---- */

/* Points at the step's begin, and the candidate's (or the state again) at its end. */
void toile_self_set_points(toile_sim *sim, const double *end) {
    toile_skin *skin = &sim->self.skin;
    size_t n = 4 * (size_t)skin->cloth_points;
    memcpy(skin->begin, sim->state.x, n * sizeof(double));
    memcpy(skin->end, end, n * sizeof(double));
    double begin = (sim->state.time - sim->frame_begin) / sim->frame_seconds;
    bool moves = end != sim->state.x;
    for (int i = 0; i < skin->solid_count; i++) {
        const toile_solid *solid = &sim->solids[skin->solids[i].solid];
        double *from = skin->begin + 4 * (size_t)skin->solids[i].point_begin, *to = skin->end + 4 * (size_t)skin->solids[i].point_begin;
        for (int p = 0; p < solid->vertex_count; p++)
            for (int k = 0; k < 3; k++) {
                double a = solid->from_x[3 * p + k], b = solid->to_x[3 * p + k];
                double here = a == b ? a : (1 - begin) * a + begin * b;
                from[4 * p + k] = here;
                to[4 * p + k] = a != b && moves ? solid->x[3 * p + k] : here;
            }
    }
}

/* Do the scene's rules let all particles of the one touch all of the other? */
bool toile_pair_may_touch(const toile_sim *sim, const toile_pair *pair) {
    const toile_skin *skin = &sim->self.skin;
    int split = toile_pair_kind(pair) == TOILE_CCD_VF ? 1 : 2;
    for (int a = 0; a < split; a++)
        for (int b = split; b < 4; b++) {
            int p = pair->point[a], q = pair->point[b];
            int solid = p >= skin->cloth_points ? skin->solid_of[p] : skin->solid_of[q];
            bool may = solid < 0 ? toile_touches_cloth(&sim->rules, p, q)
                                 : toile_touches_solid(&sim->rules, p < q ? p : q, skin->solids[solid].solid);
            if (!may)
                return false;
        }
    return true;
}

/* Of the crossings that were found those that the rules forbid: the others are meant. */
static void keep_crossings(toile_sim *sim) {
    toile_skin *skin = &sim->self.skin;
    int kept = 0;
    skin->crossings[0] = skin->crossings[1] = 0;
    memset(skin->tangled, 0, (size_t)skin->point_count);
    for (int i = 0; i < skin->crossed.count; i++) {
        int a = (int)(skin->crossed.pair[i].key >> 31 & 0x7fffffff), b = (int)(skin->crossed.pair[i].key & 0x7fffffff);
        bool may = true;
        for (int c = 0; may && c < 3; c++) { /* each corner of the one against the other, as if it were near */
            const int *t = skin->triangle + 3 * b;
            toile_pair corner = {.key = 0, .point = {skin->triangle[3 * a + c], t[0], t[1], t[2]}};
            may = toile_pair_may_touch(sim, &corner);
        }
        if (!may)
            continue;
        skin->crossed.pair[kept++] = skin->crossed.pair[i];
        toile_skin_mark_crossing(skin, a, b);
    }
    skin->crossed.count = kept;
}

void toile_self_search(toile_sim *sim, bool crossings) {
    toile_self *s = &sim->self;
    toile_error error;
    bool same_begin = s->searched == sim->state.time;
    s->searched = sim->state.time;
    if (toile_skin_search(&s->skin, sim->model, s->reach, same_begin, crossings, sim->threads, &s->found, &error) != TOILE_OK) {
        sim->trouble = error;
        s->found.count = 0;
    }
    if (s->skin.flooded)
        s->hit_count = 0;
    if (!sim->rules.any_apart && !sim->rules.any_exempt)
        return;
    int kept = 0;
    for (int i = 0; i < s->found.count; i++)
        if (toile_pair_may_touch(sim, &s->found.pair[i]))
            s->found.pair[kept++] = s->found.pair[i];
    s->found.count = kept;
    if (crossings)
        keep_crossings(sim);
}

/* Particles that are tangled where the search was made for. Where solids hold cloth that has no side left to go to, it may be
 * inside without a triangle that says so. Solids are where they will be in `ahead` s. */
static void keep_tangles(toile_sim *sim, double ahead) {
    toile_self *s = &sim->self;
    const toile_skin *skin = &s->skin;
    memcpy(s->tangled, skin->tangled, (size_t)skin->cloth_points);
    memcpy(s->crossings, skin->crossings, sizeof s->crossings);
    toile_tangle_keep(sim);
    if (!skin->crossings[1])
        return;
#pragma omp parallel for schedule(dynamic, 64) num_threads(sim->threads) if (sim->threads > 1)
    for (int p = 0; p < skin->cloth_points; p++)
        for (int i = 0; i < skin->solid_count && !(s->tangled[p] & TOILE_TANGLED_SOLID); i++) {
            const toile_solid *solid = &sim->solids[skin->solids[i].solid];
            toile_hit hit;
            if (solid->closed && toile_solid_nearest(solid, skin->end + 4 * (size_t)p, INSIDE, 0, 1, &hit) &&
                hit.distance + ahead * dot(hit.velocity, hit.normal) < 0)
                s->tangled[p] |= TOILE_TANGLED_SOLID;
        }
}

static bool before_face(const toile_skin *skin, int triangle, const double way[3]) {
    const float *n = skin->normal + 4 * (size_t)triangle;
    return n[0] * way[0] + n[1] * way[1] + n[2] * way[2] > 0;
}

/* Does a way that begins on an edge of a solid lead out of it? */
static bool leads_out(const toile_skin *skin, int edge, const double way[3]) {
    int a = skin->beside[2 * edge], b = skin->beside[2 * edge + 1];
    if (b < 0)
        return before_face(skin, a, way);
    const int *e = skin->edge + 2 * edge, *t = skin->triangle + 3 * b;
    double across[3]; /* from the edge to the third corner of b: all three, less the two of the edge */
    for (int k = 0; k < 3; k++) {
        const double *x = skin->begin + k;
        across[k] = x[4 * (size_t)t[0]] + x[4 * (size_t)t[1]] + x[4 * (size_t)t[2]] - x[4 * (size_t)e[1]] - 2 * x[4 * (size_t)e[0]];
    }
    bool hollow = before_face(skin, a, across);
    return hollow ? before_face(skin, a, way) && before_face(skin, b, way) : before_face(skin, a, way) || before_face(skin, b, way);
}

/* Is the cloth of a pair, where the two are nearest, outside of the solid, which has an outside? */
static bool is_outside(const toile_sim *sim, const toile_pair *pair) {
    const toile_skin *skin = &sim->self.skin;
    int n = skin->cloth_points, second = (int)(pair->key & 0x7fffffff);
    bool cloth_first = pair->point[0] < n;
    const toile_solid *solid = &sim->solids[skin->solids[skin->solid_of[cloth_first ? pair->point[3] : pair->point[0]]].solid];
    double x[4][3], way[3];
    toile_near near;
    if (!solid->closed || solid->side != TOILE_SOLID_OUTSIDE)
        return false;
    toile_pair_points(skin->begin, pair, x);
    toile_nearest(toile_pair_kind(pair), (const double(*)[3])x, &near);
    for (int k = 0; k < 3; k++)
        way[k] = cloth_first ? near.vector[k] : -near.vector[k];
    if (toile_pair_kind(pair) == TOILE_CCD_EE)
        return leads_out(skin, second, way);
    return before_face(skin, cloth_first ? second : skin->point_owner[pair->point[0]], way);
}

/* Is a pair let go because it crosses already? Of cloth that crosses a solid only what is inside of it, or beside what is pinched: let go
 * as a whole, taut cloth sank in around a crossing until an arm was through it (R10b, turned: 24 pairs when the body let go, 149 after
 * four frames). */
bool toile_pair_tangled(const toile_sim *sim, const toile_pair *pair) {
    const toile_self *s = &sim->self;
    int n = s->skin.cloth_points, split = toile_pair_kind(pair) == TOILE_CCD_VF ? 1 : 2;
    bool first = false, second = false, solid = false, rides = false;
    for (int i = 0; i < 4; i++) {
        int p = pair->point[i];
        if (p >= n)
            continue;
        solid = solid || s->tangled[p] & TOILE_TANGLED_SOLID || toile_rides(sim, p);
        rides = rides || (sim->work.riders && toile_beside_rider(sim, p)); /* or does itself */
        if (i < split)
            first = first || s->tangled[p] & TOILE_TANGLED_CLOTH;
        else
            second = second || s->tangled[p] & TOILE_TANGLED_CLOTH;
    }
    if (toile_pair_with_solid(s, pair))
        return solid && (rides || !is_outside(sim, pair));
    return first && second;
}

/* Of the found pairs those that are near at the end. */
void toile_self_keep_near(toile_sim *sim, double ahead) {
    toile_self *s = &sim->self;
    if (s->near.capacity < s->found.count) {
        toile_pair *more = toile_grow(sim->memory, s->near.pair, 0, (size_t)s->found.capacity, sizeof *more);
        if (!more) {
            toile_fail_memory(&sim->trouble, "contacts of cloth with cloth");
            return;
        }
        s->near.pair = more;
        s->near.capacity = s->found.capacity;
    }
    s->near.count = 0;
    for (int i = 0; i < s->found.count; i++) {
        toile_pair *pair = &s->found.pair[i];
        double x[4][3];
        toile_near near;
        pair->clear = -1;
        if (toile_pair_held_off(s, pair))
            continue;
        toile_pair_points(s->skin.end, pair, x);
        toile_nearest(toile_pair_kind(pair), (const double(*)[3])x, &near);
        pair->clear = (float)near.distance; /* the end is where the next step begins */
        if (near.distance < 0.999 * (toile_pair_with_solid(s, pair) ? s->reach.solid : s->reach.cloth))
            s->near.pair[s->near.count++] = *pair;
    }
    toile_pairs_sort(&s->near);
    keep_tangles(sim, ahead);
    s->near_known = true;
}

void toile_self_look(toile_sim *sim, double ahead) {
    if (!sim->self.on || sim->self.near_known)
        return;
    toile_self_set_points(sim, sim->state.x);
    toile_self_search(sim, true);
    toile_self_keep_near(sim, ahead);
}

void toile_self_commit(toile_sim *sim) {
    toile_self *s = &sim->self;
    if (!s->on)
        return;
    toile_press_remember(sim);
    /* who crosses is looked for where that can change: a checked way from a state without crossings ends without */
    if (s->hit_count || s->crossings[0] || s->crossings[1] || sim->work.riders)
        s->near_known = false;
    else
        toile_self_keep_near(sim, 0);
}
