/* Welding: between frames, seams whose time is up are gathered (model.c), pairs of stitches that have met become one
 * particle, and released seams come apart. The model is built anew for that, and the state carried over vertex by vertex: a
 * new particle has the mean position and velocity of those it is made of, weighted by their masses, so that momentum and
 * centre of mass stay. Particles that did not change keep their bits.
 *
 * A saved state begins with what is welded, so that a restored one is of the same particles. */
#include "sew.h"

#include "hash.h"
#include "join.h"
#include "pin.h"

#include <math.h>
#include <string.h>

/* Pairs this near have met: part of the seam a stitch stands for, and m. */
#define MET_SHARE 0.1
#define MET_MOST 1e-3
/* What is late, where many layers meet and hold each other apart, is near enough at more: up to so much of the seam a stitch
 * stands for, from 1 to 2 s after its time. 3 of 202 stitches at the crotch of trousers stayed open by 0.5 to 3.6 mm. */
#define LATE_SHARE 0.25
#define LATE_FROM 1.0
/* Where seams meet, as in an armpit, four or more layers hold each other apart; what is sewn around such a point first closes it in, and
 * it stays open. So it comes first: so much of the seam a stitch stands for, which is half an edge at a seam's end. */
#define CORNER_SHARE 0.5

/* ---- which stitches ---- */

static void mix(const double *from, size_t i, double share, double *to, size_t j) {
    for (int k = 0; k < 3; k++)
        to[j + (size_t)k] += share * from[i + (size_t)k];
}

static double gap_of(const toile_sim *sim, int a, int b) {
    const double *p = sim->state.x + 4 * (size_t)sim->model->place[a], *q = sim->state.x + 4 * (size_t)sim->model->place[b];
    return sqrt((q[0] - p[0]) * (q[0] - p[0]) + (q[1] - p[1]) * (q[1] - p[1]) + (q[2] - p[2]) * (q[2] - p[2]));
}

/* How near a pair has met that was to be sewn `late` seconds ago. */
static double near_enough(double length, double late, bool corner) {
    double met = corner ? CORNER_SHARE * length : fmin(MET_SHARE * length, MET_MOST);
    return met + fmax(LATE_SHARE * length - met, 0) * fmin(fmax(late - LATE_FROM, 0), 1);
}

/* What the stitch is to be in the frame that begins now. */
static unsigned char due_flags(const toile_sim *sim, const toile_seam *seam, unsigned char flags, double gap, double length, bool corner) {
    double time = sim->state.time + 1e-9, late = time - (sim->begin_time + seam->begin + seam->duration);
    if (time >= seam->release)
        return 0;
    if (late >= 0)
        flags |= TOILE_STITCH_GATHERED | (gap <= near_enough(length, late, corner) ? TOILE_STITCH_WELDED : 0);
    return flags;
}

static const char *panel_of(const toile_garment *g, int vertex) {
    int i = 0;
    while (i < 3 * g->triangle_count - 1 && g->triangles[i] != vertex)
        i++;
    return g->panels[g->triangle_panels[i / 3]].name;
}

static bool is_open(const toile_sim *sim, const toile_garment *g, int i, int stitch) {
    return !(sim->welded[stitch] & TOILE_STITCH_WELDED) && sim->state.time + 1e-9 < g->seams[g->stitches[i].seam].release;
}

toile_open_seam toile_sim_open_seam(const toile_sim *sim, int garment, int seam) {
    toile_open_seam open = {.widest = -1};
    const toile_garment *own = &sim->garments[garment];
    int stitch = 0, base = 0, worst = -1;
    for (int g = 0; g < garment; g++)
        stitch += sim->garments[g].stitch_count, base += sim->garments[g].vertex_count;
    for (int i = 0; i < own->stitch_count; i++) {
        const toile_stitch *s = &own->stitches[i];
        if (s->seam != seam)
            continue;
        open.of++;
        if (!is_open(sim, own, i, stitch + i))
            continue;
        open.count++;
        double gap = gap_of(sim, base + s->a, base + s->b);
        if (gap > open.widest)
            open.widest = gap, worst = i;
    }
    if (worst >= 0) {
        const toile_stitch *s = &own->stitches[worst];
        memcpy(open.place, sim->state.x + 4 * (size_t)sim->model->place[base + s->a], sizeof open.place);
        open.panels[0] = panel_of(own, s->a), open.panels[1] = panel_of(own, s->b);
    }
    return open;
}

int toile_sim_open_stitches(const toile_sim *sim, double *widest) {
    int open = 0;
    double most = 0;
    for (int g = 0, stitch = 0, base = 0; g < sim->garment_count; base += sim->garments[g++].vertex_count)
        for (int i = 0; i < sim->garments[g].stitch_count; i++, stitch++) {
            const toile_stitch *s = &sim->garments[g].stitches[i];
            if (!is_open(sim, &sim->garments[g], i, stitch))
                continue;
            open++;
            most = fmax(most, gap_of(sim, base + s->a, base + s->b));
        }
    if (widest)
        *widest = most;
    return open;
}

/* Stitches that are to be welded now: `joined` gets one number for particles that become one, and x where those will be (as
 * carry_state puts them). */
static void place_welds(const toile_sim *sim, int *joined, double *x) {
    const toile_model *m = sim->model;
    size_t n = (size_t)m->particle_count;
    for (int i = 0; i < m->particle_count; i++)
        joined[i] = i;
    for (int g = 0, stitch = 0, base = 0; g < sim->garment_count; base += sim->garments[g++].vertex_count)
        for (int i = 0; i < sim->garments[g].stitch_count; i++, stitch++)
            if (sim->next_welded[stitch] & ~sim->welded[stitch] & TOILE_STITCH_WELDED)
                toile_join(joined, m->place[base + sim->garments[g].stitches[i].a], m->place[base + sim->garments[g].stitches[i].b]);
    memset(x, 0, 4 * n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        size_t one = (size_t)(joined[i] = toile_join_find(joined, (int)i));
        mix(sim->state.x, 4 * i, m->mass[i], x, 4 * one);
        x[4 * one + 3] += m->mass[i];
    }
    for (size_t i = 0; i < n; i++) /* the first of those that become one has the least number, so it comes last */
        for (size_t k = 0, at = n - 1 - i, one = (size_t)joined[at]; k < 3; k++)
            x[4 * at + k] = x[4 * one + 3] == sim->model->mass[at] ? sim->state.x[4 * at + k] : x[4 * one + k] / x[4 * one + 3];
    for (size_t i = 0; i < n; i++)
        x[4 * i + 3] = 0;
}

/* Takes back welds whose particles were hit. Returns how many. */
static int put_off(toile_sim *sim, const int *joined) {
    const toile_self *self = &sim->self;
    unsigned char *hit = self->touched;
    int count = 0;
    memset(hit, 0, (size_t)sim->model->particle_count);
    for (int i = 0; i < self->hit_count; i++)
        for (int a = 0; a < 4; a++)
            if (self->hit[i].pair.point[a] < sim->model->particle_count)
                hit[joined[self->hit[i].pair.point[a]]] = 1;
    for (int g = 0, stitch = 0, base = 0; g < sim->garment_count; base += sim->garments[g++].vertex_count)
        for (int i = 0; i < sim->garments[g].stitch_count; i++, stitch++) {
            const toile_stitch *s = &sim->garments[g].stitches[i];
            if (!(sim->next_welded[stitch] & ~sim->welded[stitch] & TOILE_STITCH_WELDED) || !hit[joined[sim->model->place[base + s->a]]])
                continue;
            sim->next_welded[stitch] &= (unsigned char)~TOILE_STITCH_WELDED;
            count++;
        }
    return count;
}

/* Welding moves particles by up to half a gap without a step: whose way there would pass through something waits until the next
 * frame, and as long as it takes. Its stitch pulls on meanwhile, so that a seam that a fold was caught in is open by a few
 * millimetres, and the report tells which it is. (Welded through after a second, such folds stayed crossed for good.) */
static toile_status check_welds(toile_sim *sim, toile_error *error) {
    toile_status status = toile_self_begin(sim, error);
    if (status != TOILE_OK || !sim->self.on)
        return status;
    do
        place_welds(sim, sim->self.zones.leader, sim->work.next_x);
    while (toile_self_meet(sim, sim->work.next_x, sim->self.zones.leader) && put_off(sim, sim->self.zones.leader));
    return TOILE_OK;
}

/* ---- carrying the state over ---- */

/* `from`, `to`: particle of each vertex before and now. Old particles count once each, with the mass they had. */
static toile_status carry_state(const toile_sim *sim, const toile_model *old, const toile_state *was, const toile_model *now,
                                toile_state *is, toile_error *error) {
    double *mass = toile_alloc(sim->memory, (size_t)now->particle_count, sizeof(double));
    int *first = toile_alloc(sim->memory, (size_t)now->particle_count, sizeof(int));
    int *seen = toile_alloc(sim->memory, (size_t)old->particle_count, sizeof(int)); /* new particle + 1 that counted it last */
    if (!mass || !first || !seen) {
        toile_free(sim->memory, mass), toile_free(sim->memory, first), toile_free(sim->memory, seen);
        return toile_fail_memory(error, "welding");
    }
    for (int i = 0; i < now->particle_count; i++)
        first[i] = -1;
    memset(is->x, 0, 4 * (size_t)now->particle_count * sizeof(double));
    double *const sources[] = {was->x, was->v, was->dv, was->older, was->dx};
    double *const targets[] = {is->x, is->v, is->dv, is->older, is->dx};
    for (int v = 0; v < old->vertex_count; v++) {
        int o = old->place[v], n = now->place[v];
        if (seen[o] == n + 1)
            continue;
        seen[o] = n + 1;
        if (first[n] < 0 || (is->touch[n].solid < 0 && was->touch[o].solid >= 0))
            is->touch[n] = was->touch[o];
        if (first[n] < 0) {
            first[n] = o;
            for (int k = 0; k < 5; k++)
                if (sources[k])
                    memcpy(targets[k] + 4 * (size_t)n, sources[k] + 4 * (size_t)o, 4 * sizeof(double));
        } else {
            double share = old->mass[o] / (mass[n] + old->mass[o]);
            for (int k = 0; k < 5; k++) {
                if (!sources[k])
                    continue;
                for (int c = 0; c < 3; c++)
                    targets[k][4 * (size_t)n + (size_t)c] *= 1 - share;
                mix(sources[k], 4 * (size_t)o, share, targets[k], 4 * (size_t)n);
            }
        }
        mass[n] += old->mass[o];
    }
    is->time = was->time;
    is->shift = was->shift;
    is->last_step = 0; /* a two-step integrator begins anew */
    is->level = was->level;
    is->successes = was->successes;
    is->patience = was->patience;
    is->trying = was->trying;
    is->direct_left = was->direct_left;
    toile_free(sim->memory, mass);
    toile_free(sim->memory, first);
    toile_free(sim->memory, seen);
    return TOILE_OK;
}

void toile_sim_place_holds(toile_sim *sim) {
    for (int p = 0; p < sim->hold_count; p++)
        for (int j = 0; j < sim->holds[p].count; j++)
            sim->holds[p].particle[j] = sim->model->place[sim->holds[p].vertex[j]];
}

/* The parts of a simulation that depend on its model change places. */
static void swap_model(toile_sim *a, toile_sim *b) {
    toile_model *model = a->model;
    toile_state state = a->state;
    toile_work work = a->work;
    toile_solvers solvers = a->solvers;
    a->model = b->model, b->model = model;
    a->state = b->state, b->state = state;
    a->work = b->work, b->work = work;
    a->solvers = b->solvers, b->solvers = solvers;
}

toile_status toile_sim_rebuild(toile_sim *sim, const unsigned char *welded, toile_error *error) {
    toile_model *model;
    toile_status status = toile_model_build_welded(sim->memory, sim->settings, sim->fabrics, sim->garments,
                                                   sim->garment_count, welded, &model, error);
    if (status != TOILE_OK)
        return status;
    toile_sim fresh;
    if ((status = toile_sim_make(sim->memory, sim->settings, model, &fresh, error)) != TOILE_OK) {
        toile_model_free(model);
        return status;
    }
    if ((status = carry_state(sim, sim->model, &sim->state, model, &fresh.state, error)) == TOILE_OK) {
        swap_model(sim, &fresh);
        memcpy(sim->welded, welded, (size_t)sim->stitch_count);
        sim->maps_changed = false;
        toile_sim_place_holds(sim);
        toile_contact_rules_place(sim->model, sim->garments, &sim->rules);
        toile_self_free(sim); /* made anew for these particles before the next step */
        toile_tangle_free(sim);
    }
    toile_sim_free(&fresh);
    return status;
}

toile_status toile_sim_sew(toile_sim *sim, toile_error *error) {
    bool changed = sim->maps_changed, welds = false;
    for (int g = 0, stitch = 0, base = 0; g < sim->garment_count; base += sim->garments[g++].vertex_count)
        for (int i = 0; i < sim->garments[g].stitch_count; i++, stitch++) {
            const toile_stitch *s = &sim->garments[g].stitches[i];
            unsigned char due = due_flags(sim, &sim->garments[g].seams[s->seam], sim->welded[stitch],
                                          gap_of(sim, base + s->a, base + s->b), sim->garments[g].stitch_lengths[i],
                                          sim->corner[stitch]);
            welds = welds || due & ~sim->welded[stitch] & TOILE_STITCH_WELDED;
            sim->next_welded[stitch] = due;
        }
    toile_status status = welds ? check_welds(sim, error) : TOILE_OK;
    if (status != TOILE_OK)
        return status;
    changed = changed || (sim->stitch_count && memcmp(sim->next_welded, sim->welded, (size_t)sim->stitch_count) != 0);
    return changed ? toile_sim_rebuild(sim, sim->next_welded, error) : TOILE_OK;
}

/* Which stitches are part of a point that more than two vertices become. */
static toile_status mark_corners(toile_sim *sim, toile_error *error) {
    for (int g = 0, base = 0; g < sim->garment_count; base += sim->garments[g++].stitch_count) {
        const toile_garment *own = &sim->garments[g];
        int *joined = toile_alloc(sim->memory, 2 * (size_t)own->vertex_count, sizeof *joined);
        if (!joined)
            return toile_fail_memory(error, "the seams");
        int *count = joined + own->vertex_count;
        for (int v = 0; v < own->vertex_count; v++)
            joined[v] = v;
        for (int i = 0; i < own->stitch_count; i++)
            toile_join(joined, own->stitches[i].a, own->stitches[i].b);
        for (int v = 0; v < own->vertex_count; v++)
            count[toile_join_find(joined, v)]++;
        for (int i = 0; i < own->stitch_count; i++)
            sim->corner[base + i] = count[toile_join_find(joined, own->stitches[i].a)] > 2;
        toile_free(sim->memory, joined);
    }
    return TOILE_OK;
}

toile_status toile_sim_dress(toile_sim *sim, const toile_fabric *fabrics, const toile_garment *garments, int garment_count,
                             toile_error *error) {
    int stitches = 0, panels = 0;
    for (int g = 0; g < garment_count; g++) {
        stitches += garments[g].stitch_count;
        panels += garments[g].panel_count;
    }
    unsigned char *flags = toile_alloc(sim->memory, 3 * (size_t)stitches, 1);
    double *pressure = toile_alloc(sim->memory, 2 * (size_t)panels, sizeof(double));
    if (!flags || !pressure) {
        toile_free(sim->memory, flags), toile_free(sim->memory, pressure);
        return toile_fail_memory(error, "the seams");
    }
    sim->panel_count = panels;
    sim->pressure_from = pressure;
    sim->pressure_to = pressure + panels;
    sim->fabrics = fabrics;
    sim->garments = garments;
    sim->garment_count = garment_count;
    sim->stitch_count = stitches;
    sim->welded = flags;
    sim->next_welded = flags + stitches;
    sim->corner = flags + 2 * stitches;
    return mark_corners(sim, error);
}

/* ---- the state as bytes ---- */

static size_t flag_bytes(const toile_sim *sim) {
    return ((size_t)sim->stitch_count + 7) / 8 * 8;
}

/* As many as if nothing were welded. */
size_t toile_sim_state_bytes(const toile_sim *sim) {
    toile_state most = sim->state;
    most.n = sim->model->vertex_count;
    return flag_bytes(sim) + toile_holds_bytes(sim) + toile_state_bytes(&most);
}

void toile_sim_state_write(const toile_sim *sim, void *bytes) {
    memset(bytes, 0, toile_sim_state_bytes(sim));
    if (sim->stitch_count)
        memcpy(bytes, sim->welded, (size_t)sim->stitch_count);
    toile_holds_write(sim, (char *)bytes + flag_bytes(sim));
    toile_state_write(&sim->state, (char *)bytes + flag_bytes(sim) + toile_holds_bytes(sim));
}

toile_status toile_sim_state_read(toile_sim *sim, const void *bytes, size_t size, toile_error *error) {
    if (size != toile_sim_state_bytes(sim))
        return toile_fail(error, TOILE_FORMAT,
                          "the saved state has %zu bytes, this scene needs %zu: it belongs to another scene", size,
                          toile_sim_state_bytes(sim));
    const unsigned char *flags = bytes;
    for (int i = 0; i < sim->stitch_count; i++)
        if (flags[i] > (TOILE_STITCH_WELDED | TOILE_STITCH_GATHERED))
            return toile_fail(error, TOILE_FORMAT, "the saved state has an impossible seam: it is damaged");
    bool other = sim->stitch_count && memcmp(flags, sim->welded, (size_t)sim->stitch_count) != 0;
    toile_status status = other || sim->maps_changed ? toile_sim_rebuild(sim, flags, error) : TOILE_OK;
    if (status != TOILE_OK || (status = toile_holds_read(sim, flags + flag_bytes(sim), error)) != TOILE_OK)
        return status;
    const unsigned char *rest = flags + flag_bytes(sim) + toile_holds_bytes(sim);
    return toile_state_read(&sim->state, sim->solid_count, rest, toile_state_bytes(&sim->state), error);
}

uint64_t toile_sim_state_hash(const toile_sim *sim) {
    uint64_t hash = toile_state_hash_of(&sim->state);
    return sim->stitch_count ? toile_hash(hash, sim->welded, (size_t)sim->stitch_count) : hash;
}
