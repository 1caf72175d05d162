#include "pattern_aim.h"

#include "join.h"
#include "sewing_order.h"

#include <math.h>
#include <string.h>

enum {
    PANELS_MOST = 200, /* as where they are placed */
    SHIFTS = 6, /* upwards: what is too low cannot be sewn over shoulders, what is too high falls on them */
    TURNS = 10, /* to either side */
    WAY_POINTS = 10, /* looked at between the two vertices of a stitch */
    DEPTHS = 13      /* looked at on either side of a panel, along its normal */
};

#define SHIFT_STEP 0.02       /* m */
#define TURN_STEP (M_PI / 30) /* radians */
#define DEPTH_STEP 0.03       /* m */
#define NEAR 0.006            /* m from the body that count as in it: panels start farther away */
#define BESIDE 0.05           /* m from the body's middle: half a bodice reaches it, sleeves do not */
/* Costs of a stitch beside one that goes through the body: */
#define SHIFT_COST 0.3 /* for a metre upwards */
#define TURN_COST 0.05 /* for a radian */
#define EMPTY_COST 0.5 /* if nothing of the body is in the sleeve */
#define BETTER 0.05    /* what a change has to be better by */

/* Panels on one side of the body that hang together, as a sleeve and its cuff. Its number is that of its
 * first panel. */
typedef struct limb {
    bool turns;
    double pivot[3], axis[3]; /* the middle of what joins it to the rest, the normal of its panels */
    int stitches;             /* between its panels */
    double angle;             /* radians, the best one */
} limb;

typedef struct aim {
    toile_garmentcode *read;
    const bool *joins;
    const toile_body_field *body;
    toile_pattern_mesh mesh;
    int *vertex_panel;
    int *part;   /* of each panel: what hangs together without the joining seams */
    int *member; /* of each panel: its limb */
    limb *limbs; /* (panel_count) */
    bool *hung;  /* of each part: it has a waist or no straps, and is as high as it should be */
} aim;

static int limb_of(const aim *a, int vertex) {
    return a->member[a->vertex_panel[vertex]];
}

/* ---- sleeves ---- */

/* 1 or -1: all of it is beside the body's middle, on that side; 0: it is not. */
static int side_of(const aim *a, int panel) {
    double middle = a->body->low[0] + 0.5 * a->body->step * (a->body->count[0] - 1), low = INFINITY,
           high = -INFINITY;
    for (int i = a->mesh.panel_begin[panel]; i < a->mesh.panel_begin[panel + 1]; i++) {
        low = fmin(low, a->mesh.positions[3 * (size_t)i] - middle);
        high = fmax(high, a->mesh.positions[3 * (size_t)i] - middle);
    }
    return low > BESIDE ? 1 : high < -BESIDE ? -1 : 0;
}

/* Those with a tube, which are sleeves: what hangs at a waist stands on its legs as it is. */
static void find_limbs(aim *a) {
    const toile_pattern *pattern = &a->read->pattern;
    const toile_sewing_order order = {a->read, a->joins, false};
    for (int s = 0; s < pattern->seam_count; s++) {
        int p = a->read->seams[s].sides[0]->panel, q = a->read->seams[s].sides[1]->panel;
        if (!a->joins[s] && side_of(a, p) * side_of(a, q) > 0)
            toile_join(a->member, p, q);
    }
    for (int p = 0; p < pattern->panel_count; p++) {
        limb *l = &a->limbs[a->member[p] = toile_join_find(a->member, p)];
        l->turns = l->turns || (side_of(a, p) && !a->hung[a->part[p]] && toile_in_tube(&order, p));
    }
}

static void find_pivots(aim *a, int *ends) {
    for (int i = 0; i < a->mesh.stitch_count; i++) {
        const toile_stitch *s = &a->mesh.stitches[i];
        int limbs[2] = {limb_of(a, s->a), limb_of(a, s->b)};
        a->limbs[limbs[0]].stitches += limbs[0] == limbs[1] && a->vertex_panel[s->a] != a->vertex_panel[s->b];
        for (int k = 0; k < 2 && limbs[0] != limbs[1]; k++, ends[limbs[k - 1]]++)
            for (int x = 0; x < 3; x++)
                a->limbs[limbs[k]].pivot[x] += a->mesh.positions[3 * (size_t)(k ? s->b : s->a) + (size_t)x];
    }
    for (int p = 0; p < a->read->pattern.panel_count; p++) {
        limb *l = &a->limbs[p];
        l->turns = l->turns && ends[p] > 0 && l->stitches > 0;
        toile_pose_turn(&a->read->panels[p].pose, (double[3]){0, 0, 1}, l->axis);
        for (int x = 0; x < 3 && l->turns; x++)
            l->pivot[x] /= ends[p];
    }
}

/* ---- how good a place is ---- */

/* A vector around the axis of a limb (Rodrigues 1840). */
static void turn(const limb *l, double angle, double v[3]) {
    const double *n = l->axis, c = cos(angle), s = sin(angle),
                 along = n[0] * v[0] + n[1] * v[1] + n[2] * v[2];
    const double across[3] = {n[1] * v[2] - n[2] * v[1], n[2] * v[0] - n[0] * v[2],
                              n[0] * v[1] - n[1] * v[0]};
    for (int x = 0; x < 3; x++)
        v[x] = c * v[x] + s * across[x] + (1 - c) * along * n[x];
}

static void turn_point(const limb *l, double angle, double p[3]) {
    for (int x = 0; x < 3; x++)
        p[x] -= l->pivot[x];
    turn(l, angle, p);
    for (int x = 0; x < 3; x++)
        p[x] += l->pivot[x];
}

static void vertex_at(const aim *a, int vertex, double shift, double angle, double p[3]) {
    memcpy(p, a->mesh.positions + 3 * (size_t)vertex, 3 * sizeof *p);
    if (angle != 0)
        turn_point(&a->limbs[limb_of(a, vertex)], angle, p);
    p[1] += shift;
}

static bool is_through(const aim *a, const toile_stitch *s, double shift, double angle) {
    double from[3], to[3];
    bool through = false;
    vertex_at(a, s->a, shift, angle, from);
    vertex_at(a, s->b, shift, angle, to);
    for (int i = 1; i <= WAY_POINTS && !through; i++) {
        double t = (double)i / (WAY_POINTS + 1), p[3];
        for (int x = 0; x < 3; x++)
            p[x] = (1 - t) * from[x] + t * to[x];
        through = toile_body_distance(a->body, p) < NEAR;
    }
    return through;
}

/* Is there nothing of the body before or behind a vertex? */
static bool is_empty(const aim *a, const limb *l, int vertex, double shift, double angle) {
    double at[3];
    vertex_at(a, vertex, shift, angle, at);
    for (int i = -DEPTHS; i <= DEPTHS; i++) {
        double p[3];
        for (int x = 0; x < 3; x++)
            p[x] = at[x] + DEPTH_STEP * i * l->axis[x];
        if (toile_body_distance(a->body, p) < NEAR)
            return false;
    }
    return true;
}

static double limb_cost(const aim *a, int number, double shift, double angle) {
    const limb *l = &a->limbs[number];
    int through = 0, empty = 0, vertices = 0;
    for (int i = 0; i < a->mesh.stitch_count; i++) {
        const toile_stitch *s = &a->mesh.stitches[i];
        if (limb_of(a, s->a) == number && limb_of(a, s->b) == number &&
            a->vertex_panel[s->a] != a->vertex_panel[s->b])
            through += is_through(a, s, shift, angle);
    }
    for (int i = 0; i < a->mesh.vertex_count; i++)
        if (limb_of(a, i) == number) {
            empty += is_empty(a, l, i, shift, angle);
            vertices++;
        }
    return through + l->stitches * (EMPTY_COST * empty / vertices + TURN_COST * fabs(angle));
}

/* With the best angle of every limb, which is kept there. */
static double part_cost(const aim *a, int part, double shift) {
    double cost = 0;
    int stitches = 0;
    for (int i = 0; i < a->mesh.stitch_count; i++) {
        const toile_stitch *s = &a->mesh.stitches[i];
        int p = a->vertex_panel[s->a], q = a->vertex_panel[s->b];
        if (a->part[p] != part || a->part[q] != part)
            continue;
        stitches++;
        if (p != q && !a->limbs[a->member[p]].turns && !a->limbs[a->member[q]].turns)
            cost += is_through(a, s, shift, 0);
    }
    for (int p = 0; p < a->read->pattern.panel_count; p++) {
        limb *l = &a->limbs[p];
        if (!l->turns || a->part[p] != part)
            continue;
        double straight = limb_cost(a, p, shift, 0), best = straight - BETTER * l->stitches;
        l->angle = 0;
        for (int i = -TURNS; i <= TURNS; i++) {
            double one = limb_cost(a, p, shift, i * TURN_STEP);
            if (one < best) {
                best = one;
                l->angle = i * TURN_STEP;
            }
        }
        cost += l->angle == 0 ? straight : best;
    }
    return cost + SHIFT_COST * stitches * shift;
}

/* ---- the search ---- */

/* A rotation as angles about x, then y, then z, degrees. */
static void angles_of(const toile_pose *pose, double degrees[3]) {
    double m[3][3]; /* columns */
    for (int k = 0; k < 3; k++)
        toile_pose_turn(pose, (double[3]){k == 0, k == 1, k == 2}, m[k]);
    degrees[0] = atan2(m[1][2], m[2][2]) * 180 / M_PI;
    degrees[1] = asin(fmax(-1, fmin(1, -m[0][2]))) * 180 / M_PI;
    degrees[2] = atan2(m[0][1], m[0][0]) * 180 / M_PI;
}

static void move_panel(aim *a, int panel, double shift) {
    toile_pose *pose = &a->read->panels[panel].pose;
    const limb *l = &a->limbs[a->member[panel]];
    if (l->turns && l->angle != 0) {
        double s = sin(0.5 * l->angle);
        toile_pose by = {{0, 0, 0}, {cos(0.5 * l->angle), s * l->axis[0], s * l->axis[1], s * l->axis[2]}},
                   at = *pose;
        turn_point(l, l->angle, at.position);
        *pose = toile_pose_join(&by, pose);
        memcpy(pose->position, at.position, sizeof at.position);
        angles_of(pose, a->read->rotate[panel]);
    }
    pose->position[1] += shift;
}

static void aim_part(aim *a, int part) {
    int stitches = 0;
    for (int i = 0; i < a->mesh.stitch_count; i++)
        stitches += a->part[a->vertex_panel[a->mesh.stitches[i].a]] == part;
    double best = part_cost(a, part, 0) - BETTER * stitches, shift = 0;
    for (int i = 1; i <= SHIFTS && !a->hung[part]; i++) {
        double cost = part_cost(a, part, i * SHIFT_STEP);
        if (cost < best) {
            best = cost;
            shift = i * SHIFT_STEP;
        }
    }
    part_cost(a, part, shift);
    for (int p = 0; p < a->read->pattern.panel_count; p++)
        if (a->part[p] == part)
            move_panel(a, p, shift);
}

static void find_parts(aim *a) {
    const toile_pattern *pattern = &a->read->pattern;
    for (int p = 0; p < pattern->panel_count; p++) {
        a->part[p] = a->member[p] = p;
        for (int i = a->mesh.panel_begin[p]; i < a->mesh.panel_begin[p + 1]; i++)
            a->vertex_panel[i] = p;
    }
    for (int s = 0; s < pattern->seam_count; s++)
        if (!a->joins[s])
            toile_join(a->part, a->read->seams[s].sides[0]->panel, a->read->seams[s].sides[1]->panel);
    for (int p = 0; p < pattern->panel_count; p++)
        a->part[p] = toile_join_find(a->part, p);
    for (int i = 0; i < a->read->label_count; i++)
        if (strcmp(a->read->labels[i].label, "lower_interface") == 0 ||
            strcmp(a->read->labels[i].label, "strapless_top") == 0)
            a->hung[a->part[a->read->labels[i].panel]] = true;
}

/* A coarse mesh: it is only looked at. */
static toile_status make_mesh(toile_memory *memory, aim *a, double edge_length, toile_error *error) {
    toile_pattern coarse = a->read->pattern;
    toile_pattern_panel *panels = toile_alloc(memory, (size_t)coarse.panel_count, sizeof *panels);
    if (!panels)
        return toile_fail_memory(error, "panels");
    for (int p = 0; p < coarse.panel_count; p++) {
        panels[p] = a->read->panels[p];
        panels[p].edge_length = fmax(edge_length, panels[p].edge_length);
    }
    coarse.panels = panels;
    toile_status status = toile_pattern_make(memory, &coarse, &a->mesh, NULL, error);
    toile_free(memory, panels);
    return status;
}

toile_status toile_pattern_aim(toile_memory *memory, toile_garmentcode *read, const bool *joins,
                               const toile_body_field *body, double edge_length, toile_error *error) {
    size_t count = (size_t)read->pattern.panel_count;
    aim a = {.read = read, .joins = joins, .body = body};
    if (count > PANELS_MOST)
        return TOILE_OK;
    toile_status status = make_mesh(memory, &a, edge_length, error);
    if (status != TOILE_OK)
        return status;
    a.vertex_panel = toile_alloc(memory, (size_t)a.mesh.vertex_count, sizeof *a.vertex_panel);
    a.part = toile_alloc(memory, count, sizeof *a.part);
    a.member = toile_alloc(memory, count, sizeof *a.member);
    a.limbs = toile_alloc(memory, count, sizeof *a.limbs);
    a.hung = toile_alloc(memory, count, sizeof *a.hung);
    int *ends = toile_alloc(memory, count, sizeof *ends);
    if (a.vertex_panel && a.part && a.member && a.limbs && a.hung && ends) {
        find_parts(&a);
        find_limbs(&a);
        find_pivots(&a, ends);
        for (int p = 0; p < (int)count; p++)
            if (a.part[p] == p)
                aim_part(&a, p);
    } else {
        status = toile_fail_memory(error, "panels");
    }
    toile_free(memory, ends);
    toile_free(memory, a.hung);
    toile_free(memory, a.limbs);
    toile_free(memory, a.member);
    toile_free(memory, a.part);
    toile_free(memory, a.vertex_panel);
    toile_pattern_mesh_free(memory, &a.mesh);
    return status;
}
