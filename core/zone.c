#include "sim.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

/* What pins and colliders weigh in a zone, against its particles' masses and in kg: they move as they must. */
#define PIN_WEIGHT 1e6
#define COLLIDER_WEIGHT 1e4

/* Inertia that is added in all directions, as a share: points in a line have none about it. */
#define ROUND 1e-9

bool toile_zones_make(toile_memory *memory, int particles, toile_zones *z) {
    size_t n = (size_t)particles;
    z->leader = toile_alloc(memory, n, sizeof *z->leader);
    z->in = toile_alloc(memory, n, 1);
    z->way = toile_alloc(memory, 4 * n, sizeof *z->way);
    z->zone = toile_alloc(memory, n, sizeof *z->zone);
    return z->leader && z->in && z->way && z->zone;
}

void toile_zones_free(toile_memory *memory, toile_zones *z) {
    toile_free(memory, z->leader), toile_free(memory, z->in), toile_free(memory, z->way), toile_free(memory, z->zone);
    memset(z, 0, sizeof *z);
}

int toile_zone_leader(toile_zones *z, int p) {
    while (z->leader[p] != p)
        p = z->leader[p] = z->leader[z->leader[p]];
    return p;
}

void toile_zones_begin(toile_sim *sim) {
    toile_zones *z = &sim->self.zones;
    const toile_skin *skin = &sim->self.skin;
    size_t n = (size_t)skin->cloth_points;
    for (size_t p = 0; p < n; p++)
        z->leader[p] = (int)p;
    for (size_t i = 0; i < 4 * n; i++)
        z->way[i] = skin->end[i] - skin->begin[i];
    memset(z->in, 0, n);
}

static void join_hits(toile_sim *sim) {
    toile_self *s = &sim->self;
    toile_zones *z = &s->zones;
    for (int i = 0; i < s->hit_count; i++) {
        const int *p = s->hit[i].pair.point;
        int first = -1;
        for (int a = 0; a < 4; a++) {
            if (p[a] >= s->skin.cloth_points)
                continue;
            int leader = toile_zone_leader(z, p[a]);
            z->in[p[a]] = 1;
            if (first >= 0 && leader != first)
                z->leader[leader > first ? leader : first] = leader > first ? first : leader;
            first = toile_zone_leader(z, p[a]);
        }
    }
}

/* Sums of all members: first mass, centre and momentum; then, about the centre, what turns. */
static void add_member(toile_zone *zone, bool turns, double mass, const double *x, const double *way) {
    if (!turns) {
        zone->mass += mass;
        for (int k = 0; k < 3; k++)
            zone->centre[k] += mass * x[k], zone->way[k] += mass * way[k];
        return;
    }
    double r[3], d[3], spin[3];
    sub(x, zone->centre, r), sub(way, zone->way, d);
    cross(r, d, spin);
    for (int k = 0; k < 3; k++)
        zone->turn[k] += mass * spin[k];
    double r2 = dot(r, r);
    zone->inertia[0] += mass * (r2 - r[0] * r[0]), zone->inertia[1] -= mass * r[0] * r[1], zone->inertia[2] -= mass * r[0] * r[2];
    zone->inertia[3] += mass * (r2 - r[1] * r[1]), zone->inertia[4] -= mass * r[1] * r[2];
    zone->inertia[5] += mass * (r2 - r[2] * r[2]);
}

static void add_members(toile_sim *sim, bool turns) {
    toile_self *s = &sim->self;
    toile_zones *z = &s->zones;
    const toile_skin *skin = &s->skin;
    int n = skin->cloth_points;
    for (int p = 0; p < n; p++)
        if (z->in[p])
            add_member(&z->zone[toile_zone_leader(z, p)], turns, sim->model->mass[p] * (sim->work.held[p] ? PIN_WEIGHT : 1),
                       skin->begin + 4 * (size_t)p, z->way + 4 * (size_t)p);
    for (int i = 0; i < s->hit_count; i++) {
        const int *p = s->hit[i].pair.point;
        int cloth = -1;
        for (int a = 0; a < 4; a++)
            cloth = p[a] < n ? toile_zone_leader(z, p[a]) : cloth;
        for (int a = 0; cloth >= 0 && a < 4; a++) {
            const double *from = skin->begin + 4 * (size_t)p[a], *to = skin->end + 4 * (size_t)p[a];
            double way[3];
            sub(to, from, way);
            if (p[a] >= n)
                add_member(&z->zone[cloth], turns, COLLIDER_WEIGHT * fabs(s->hit[i].weight[a]) + 1, from, way);
        }
    }
}

/* w = I^-1 L. */
static void find_turn(toile_zone *zone) {
    double I[6], L[3], inverse[6];
    memcpy(I, zone->inertia, sizeof I), memcpy(L, zone->turn, sizeof L);
    double round = ROUND * (I[0] + I[3] + I[5]);
    I[0] += round, I[3] += round, I[5] += round;
    inverse[0] = I[3] * I[5] - I[4] * I[4], inverse[1] = I[2] * I[4] - I[1] * I[5], inverse[2] = I[1] * I[4] - I[2] * I[3];
    inverse[3] = I[0] * I[5] - I[2] * I[2], inverse[4] = I[1] * I[2] - I[0] * I[4], inverse[5] = I[0] * I[3] - I[1] * I[1];
    double det = I[0] * inverse[0] + I[1] * inverse[1] + I[2] * inverse[2], scale = det > 0 ? 1 / det : 0;
    zone->turn[0] = scale * (inverse[0] * L[0] + inverse[1] * L[1] + inverse[2] * L[2]);
    zone->turn[1] = scale * (inverse[1] * L[0] + inverse[3] * L[1] + inverse[4] * L[2]);
    zone->turn[2] = scale * (inverse[2] * L[0] + inverse[4] * L[1] + inverse[5] * L[2]);
}

void toile_zones_join(toile_sim *sim) {
    toile_self *s = &sim->self;
    toile_zones *z = &s->zones;
    int n = s->skin.cloth_points;
    join_hits(sim);
    memset(z->zone, 0, (size_t)n * sizeof *z->zone);
    add_members(sim, false);
    for (int p = 0; p < n; p++)
        for (int k = 0; z->zone[p].mass > 0 && k < 3; k++)
            z->zone[p].centre[k] /= z->zone[p].mass, z->zone[p].way[k] /= z->zone[p].mass;
    add_members(sim, true);
    for (int p = 0; p < n; p++)
        if (z->zone[p].mass > 0)
            find_turn(&z->zone[p]);
    for (int p = 0; p < n; p++) {
        if (!z->in[p])
            continue;
        s->touched[p] = 1;
        if (sim->work.held[p])
            continue;
        const toile_zone *zone = &z->zone[toile_zone_leader(z, p)];
        const double *x = s->skin.begin + 4 * (size_t)p;
        double r[3], around[3];
        sub(x, zone->centre, r);
        cross(zone->turn, r, around);
        for (int k = 0; k < 3; k++)
            s->skin.end[4 * (size_t)p + (size_t)k] = x[k] + zone->way[k] + around[k];
    }
}
