#include "pattern.h"

#include "join.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LENGTH_LEAST 1e-5           /* m; below it an edge has no length */
#define PANEL_MOST 1000.0           /* m; larger ones are in other units */
#define WIDTH_LEAST 1e-3            /* m; narrower ones too */
#define TURN_MOST (M_PI / 4)        /* of the outline from one segment to the next */
#define MEET 0.35                   /* corners of both sides nearer than this part of an edge length are one */

/* One edge while the pattern is made. */
typedef struct work_edge {
    toile_curve curve;              /* with its end */
    toile_curve_measure measure;
    int panel, index;               /* its number in the panel */
    bool against;                   /* its loop runs against the border of the mesh */
    int seam;                       /* that has sampled it, or -1 */
    int sample_count, sample_room;
    double *samples;                /* parts of its length, the first is 0; the end belongs to the next edge */
    int next;                       /* edge of the same loop */
} work_edge;

typedef struct maker {
    toile_memory *memory;
    const toile_pattern *pattern;
    toile_pattern_mesh *mesh;
    toile_pattern_where *where;
    toile_error *error;
    work_edge *edges;
    int edge_count;
    bool *turned;                   /* panels whose triangles are turned over, (panel_count) */
    int stitch_room;
} maker;

static toile_status no_memory(const maker *m) {
    return toile_fail_memory(m->error, "a sewing pattern");
}

/* The names of a panel and an edge for messages. */
typedef struct label {
    char text[200];
} label;

static label label_of(const maker *m, int edge) {
    const work_edge *e = &m->edges[edge];
    const toile_pattern_panel *panel = &m->pattern->panels[e->panel];
    const char *name = panel->edges[e->index].name;
    label l;
    snprintf(l.text, sizeof l.text, "panel \"%.64s\", edge %d%s%.64s%s", panel->name, e->index, name ? " (\"" : "",
             name ? name : "", name ? "\")" : "");
    return l;
}

static label label_of_seam(const maker *m, int seam) {
    const char *name = m->pattern->seams[seam].seam.name;
    label l;
    if (name && *name)
        snprintf(l.text, sizeof l.text, "seam %d (\"%.64s\")", seam, name);
    else
        snprintf(l.text, sizeof l.text, "seam %d", seam);
    return l;
}

static void at_edge(const maker *m, int edge) {
    m->where->panel = m->edges[edge].panel;
    m->where->edge = m->edges[edge].index;
}

/* ---- edges ---- */

static toile_status measure_edge(const maker *m, int edge) {
    work_edge *e = &m->edges[edge];
    const toile_curve *c = &e->curve;
    double points[4][2] = {{c->from[0], c->from[1]}, {c->to[0], c->to[1]}};
    memcpy(points[2], c->control, sizeof c->control);
    for (int i = 0; i < 2 + c->control_count; i++)
        for (int k = 0; k < 2; k++)
            if (!(fabs(points[i][k]) <= PANEL_MOST)) {
                at_edge(m, edge);
                return toile_fail(m->error, TOILE_INVALID,
                                  "%s: is at %g m; a panel is within %g m of its origin, are the units right?",
                                  label_of(m, edge).text, points[i][k], PANEL_MOST);
            }
    if (c->arc && !(c->radius > 0 && c->radius <= PANEL_MOST)) {
        at_edge(m, edge);
        return toile_fail(m->error, TOILE_INVALID, "%s: an arc with radius %g m; use more than 0, up to %g",
                          label_of(m, edge).text, c->radius, PANEL_MOST);
    }
    for (int i = 0; i < 2 * c->point_count; i++)
        if (!(fabs(c->points[i / 2][i % 2]) <= PANEL_MOST)) {
            at_edge(m, edge);
            return toile_fail(m->error, TOILE_INVALID, "%s: goes through %g m; a panel is within %g m of its origin, are the units right?",
                              label_of(m, edge).text, c->points[i / 2][i % 2], PANEL_MOST);
        }
    toile_curve_measure_of(c, &e->measure);
    if (!(e->measure.length >= LENGTH_LEAST) || (c->arc && hypot(c->to[0] - c->from[0], c->to[1] - c->from[1]) < LENGTH_LEAST)) {
        at_edge(m, edge);
        return toile_fail(m->error, TOILE_INVALID,
                          "%s: has no length (%g m from [%g, %g] to [%g, %g]); take it out, or make its ends differ",
                          label_of(m, edge).text, e->measure.length, c->from[0], c->from[1], c->to[0], c->to[1]);
    }
    return TOILE_OK;
}

/* Twice the area that a loop encloses, from its corners and points between. */
static double loop_area(const work_edge *edges, int count) {
    double sum = 0, before[2], now[2];
    for (int i = 0; i < count; i++) {
        memcpy(before, edges[i].curve.from, sizeof before);
        int parts = edges[i].curve.point_count > 16 ? edges[i].curve.point_count : 16;
        for (int k = 1; k <= parts; k++) {
            toile_curve_point(&edges[i].curve, (double)k / parts, now);
            sum += before[0] * now[1] - before[1] * now[0];
            memcpy(before, now, sizeof before);
        }
    }
    return sum;
}

static toile_status take_edges(maker *m) {
    const toile_pattern *p = m->pattern;
    size_t count = 0;
    for (int i = 0; i < p->panel_count; i++) {
        int of_panel = 0;
        for (int l = 0; l < p->panels[i].loop_count; l++)
            of_panel += p->panels[i].loop_sizes[l];
        m->mesh->edge_base[i] = (int)count;
        count += (size_t)of_panel;
    }
    m->mesh->edge_base[p->panel_count] = (int)count;
    m->edge_count = (int)count;
    m->edges = toile_alloc(m->memory, count, sizeof *m->edges);
    m->mesh->edge_first = toile_alloc(m->memory, count, sizeof(int));
    m->mesh->edge_count = toile_alloc(m->memory, count, sizeof(int));
    m->mesh->edge_next = toile_alloc(m->memory, count, sizeof(int));
    if (!m->edges || !m->mesh->edge_first || !m->mesh->edge_count || !m->mesh->edge_next)
        return no_memory(m);
    for (int i = 0; i < p->panel_count; i++) {
        const toile_pattern_panel *panel = &p->panels[i];
        for (int l = 0, at = 0; l < panel->loop_count; at += panel->loop_sizes[l++]) {
            int size = panel->loop_sizes[l], base = m->mesh->edge_base[i] + at;
            if (size < 2) {
                m->where->panel = i;
                m->where->edge = at;
                return toile_fail(m->error, TOILE_INVALID,
                                  "panel \"%.64s\": %s %d has %d edges; a closed line takes at least two", panel->name,
                                  l ? "hole" : "outline", l, size);
            }
            for (int k = 0; k < size; k++) {
                work_edge *e = &m->edges[base + k];
                e->curve = panel->edges[at + k].curve;
                memcpy(e->curve.to, panel->edges[at + (k + 1) % size].curve.from, sizeof e->curve.to);
                e->panel = i;
                e->index = at + k;
                e->seam = -1;
                e->next = base + (k + 1) % size;
                toile_status status = measure_edge(m, base + k);
                if (status != TOILE_OK)
                    return status;
            }
            bool clockwise = loop_area(m->edges + base, size) < 0;
            for (int k = 0; k < size; k++)
                m->edges[base + k].against = clockwise == (l == 0);
        }
    }
    return TOILE_OK;
}

/* ---- sampling ---- */

static double spacing(const maker *m, const work_edge *e) {
    const toile_pattern_panel *panel = &m->pattern->panels[e->panel];
    double own = panel->edges[e->index].edge_length;
    return own > 0 ? fmin(own, panel->edge_length) : panel->edge_length;
}

/* Segments for a part of an edge's length. */
static double segments_of(const maker *m, const work_edge *e, double length) {
    double by_length = round(length / spacing(m, e));
    double by_turning = ceil(e->measure.turning * length / e->measure.length / TURN_MOST - 1e-6);
    return fmax(1, fmax(by_length, by_turning));
}

static bool add_sample(const maker *m, work_edge *e, double part) {
    if (e->sample_count == e->sample_room) {
        size_t room = e->sample_room ? 2 * (size_t)e->sample_room : 16;
        double *grown = toile_grow(m->memory, e->samples, (size_t)e->sample_room, room, sizeof *grown);
        if (!grown || room > INT_MAX / 2)
            return false;
        e->samples = grown;
        e->sample_room = (int)room;
    }
    e->samples[e->sample_count++] = part;
    return true;
}

static toile_status too_many(const maker *m, int edge) {
    at_edge(m, edge);
    return toile_fail(m->error, TOILE_INVALID,
                      "%s: is %g m long and would get more than %d vertices; make edge_length larger (are the units right?)",
                      label_of(m, edge).text, m->edges[edge].measure.length, TOILE_PATTERN_VERTICES);
}

/* One side of a seam as a walk: where each of its edges begins. */
typedef struct walk {
    const toile_pattern_side *sides;
    int count;
    double *upto;                   /* m, (count + 1) */
} walk;

static work_edge *edge_of_side(const maker *m, const toile_pattern_side *side) {
    return &m->edges[m->mesh->edge_base[side->panel] + side->edge];
}

static toile_status take_side(const maker *m, int seam, const toile_pattern_side *side) {
    const toile_pattern *p = m->pattern;
    label name = label_of_seam(m, seam);
    if (side->panel < 0 || side->panel >= p->panel_count)
        return toile_fail(m->error, TOILE_INVALID, "%s: names panel %d; there are %d panels", name.text, side->panel,
                          p->panel_count);
    int edges = m->mesh->edge_base[side->panel + 1] - m->mesh->edge_base[side->panel];
    if (side->edge < 0 || side->edge >= edges)
        return toile_fail(m->error, TOILE_INVALID, "%s: names edge %d of panel \"%.64s\", which has edges 0 to %d",
                          name.text, side->edge, p->panels[side->panel].name, edges - 1);
    work_edge *e = edge_of_side(m, side);
    if (e->seam >= 0)
        return toile_fail(m->error, TOILE_INVALID,
                          "%s: %s is already sewn by %s; cloth has two sides at a seam, so an edge is in one seam",
                          name.text, label_of(m, (int)(e - m->edges)).text, label_of_seam(m, e->seam).text);
    e->seam = seam;
    return TOILE_OK;
}

static toile_status begin_walk(const maker *m, int seam, int which, walk *w) {
    const toile_pattern_seam *s = &m->pattern->seams[seam];
    *w = (walk){.sides = s->sides[which], .count = s->count[which]};
    if (w->count < 1)
        return toile_fail(m->error, TOILE_INVALID, "%s: side %c has no edge", label_of_seam(m, seam).text, "ab"[which]);
    w->upto = toile_alloc(m->memory, (size_t)w->count + 1, sizeof *w->upto);
    if (!w->upto)
        return no_memory(m);
    for (int i = 0; i < w->count; i++) {
        toile_status status = take_side(m, seam, &w->sides[i]);
        if (status != TOILE_OK)
            return status;
        w->upto[i + 1] = w->upto[i] + edge_of_side(m, &w->sides[i])->measure.length;
    }
    return TOILE_OK;
}

static toile_status refuse_gather(const maker *m, int seam, const walk w[2]) {
    double a = w[0].upto[w[0].count], b = w[1].upto[w[1].count];
    if (fmax(a, b) <= TOILE_GATHER_MOST * fmin(a, b))
        return TOILE_OK;
    int longer = a > b ? 0 : 1;
    m->where->seam = seam;
    return toile_fail(m->error, TOILE_INVALID,
                      "%s: %s, on side %c of %g m, would be gathered into %g m; cloth is gathered at most %g to 1",
                      label_of_seam(m, seam).text, label_of(m, (int)(edge_of_side(m, w[longer].sides) - m->edges)).text,
                      "ab"[longer], fmax(a, b), fmin(a, b), TOILE_GATHER_MOST);
}

/* A place where both sides have a vertex, since one of them or both have a corner there: distances along each. */
typedef struct node {
    double at[2];
    bool known[2];
    double part;                    /* of the way between the corners of both around it */
} node;

/* Corners of both sides by part of the length; those of a and b that nearly meet are one. */
static int merge_corners(const maker *m, walk w[2], node *nodes) {
    double whole[2] = {w[0].upto[w[0].count], w[1].upto[w[1].count]}, longer = fmax(whole[0], whole[1]);
    int count = 0, i = 1, j = 1;
    nodes[count++] = (node){{0, 0}, {true, true}, 0};
    while (i < w[0].count || j < w[1].count) {
        double a = i < w[0].count ? w[0].upto[i] / whole[0] : INFINITY;
        double b = j < w[1].count ? w[1].upto[j] / whole[1] : INFINITY;
        double near = 0;
        if (i < w[0].count && j < w[1].count)
            near = MEET * fmin(spacing(m, edge_of_side(m, &w[0].sides[i])), spacing(m, edge_of_side(m, &w[1].sides[j])));
        if (fabs(a - b) * longer <= near)
            nodes[count++] = (node){{w[0].upto[i++], w[1].upto[j++]}, {true, true}, 0};
        else if (a < b)
            nodes[count++] = (node){{w[0].upto[i++], 0}, {true, false}, 0};
        else
            nodes[count++] = (node){{0, w[1].upto[j++]}, {false, true}, 0};
    }
    nodes[count++] = (node){{whole[0], whole[1]}, {true, true}, 0};
    return count;
}

static bool on_both(const node *n) {
    return n->known[0] && n->known[1];
}

/* What one side does not know follows from the nearest corners that are on both. */
static void fill_nodes(node *nodes, int count) {
    for (int before = 0, after; before < count - 1; before = after) {
        const double *a = nodes[before].at;
        for (after = before + 1; !on_both(&nodes[after]);)
            after++;
        const double *b = nodes[after].at;
        for (int i = before + 1; i < after; i++) {
            node n = nodes[i];
            int known = n.known[0] ? 0 : 1, other = 1 - known, to = i;
            n.part = (n.at[known] - a[known]) / (b[known] - a[known]);
            n.at[other] = a[other] + (b[other] - a[other]) * n.part;
            for (; to > before + 1 && nodes[to - 1].part > n.part; to--)
                nodes[to] = nodes[to - 1];
            nodes[to] = n;
        }
    }
}

/* The beginning of a segment of a walk as a part of the edge it is on; of a reversed edge, its end. */
static bool sample_walk(const maker *m, const walk *w, int side, double begin, double end) {
    double length = w->upto[side + 1] - w->upto[side];
    bool reverse = w->sides[side].reverse;
    double part = ((reverse ? end : begin) - w->upto[side]) / length;
    part = reverse ? 1 - part : part;
    return add_sample(m, edge_of_side(m, &w->sides[side]), part < 0 ? 0 : part);
}

static toile_status sample_seam(const maker *m, int seam) {
    walk w[2] = {{0}, {0}};
    node *nodes = NULL;
    toile_status status = begin_walk(m, seam, 0, &w[0]);
    if (status == TOILE_OK)
        status = begin_walk(m, seam, 1, &w[1]);
    if (status == TOILE_OK)
        status = refuse_gather(m, seam, w);
    if (status == TOILE_OK) {
        nodes = toile_alloc(m->memory, (size_t)w[0].count + (size_t)w[1].count + 2, sizeof *nodes);
        if (!nodes)
            status = no_memory(m);
    }
    int count = status == TOILE_OK ? merge_corners(m, w, nodes) : 0;
    fill_nodes(nodes, count);
    for (int i = 0, edge[2] = {0, 0}; i + 1 < count && status == TOILE_OK; i++) {
        double segments = 1;
        for (int k = 0; k < 2; k++) {
            while (edge[k] < w[k].count - 1 && nodes[i].at[k] >= w[k].upto[edge[k] + 1])
                edge[k]++;
            const work_edge *e = edge_of_side(m, &w[k].sides[edge[k]]);
            segments = fmax(segments, segments_of(m, e, nodes[i + 1].at[k] - nodes[i].at[k]));
        }
        if (segments > TOILE_PATTERN_VERTICES)
            status = too_many(m, (int)(edge_of_side(m, &w[0].sides[edge[0]]) - m->edges));
        for (int j = 0; status == TOILE_OK && j < (int)segments; j++)
            for (int k = 0; k < 2; k++) {
                double a = nodes[i].at[k], step = (nodes[i + 1].at[k] - a) / segments;
                if (!sample_walk(m, &w[k], edge[k], a + step * j, a + step * (j + 1)))
                    status = no_memory(m);
            }
    }
    /* Reversed edges were sampled from their end. */
    for (int k = 0; k < 2 && status == TOILE_OK; k++)
        for (int i = 0; i < w[k].count; i++) {
            work_edge *e = edge_of_side(m, &w[k].sides[i]);
            for (int a = 0, b = e->sample_count - 1; w[k].sides[i].reverse && a < b; a++, b--) {
                double swap = e->samples[a];
                e->samples[a] = e->samples[b];
                e->samples[b] = swap;
            }
            e->samples[0] = 0;
        }
    toile_free(m->memory, nodes);
    toile_free(m->memory, w[0].upto);
    toile_free(m->memory, w[1].upto);
    if (status != TOILE_OK)
        m->where->seam = seam;
    return status;
}

static toile_status sample_edges(const maker *m) {
    for (int s = 0; s < m->pattern->seam_count; s++) {
        toile_status status = sample_seam(m, s);
        if (status != TOILE_OK)
            return status;
    }
    size_t all = 0;
    for (int i = 0; i < m->edge_count; i++) {
        work_edge *e = &m->edges[i];
        if (e->seam < 0) {
            double segments = segments_of(m, e, e->measure.length);
            if (segments > TOILE_PATTERN_VERTICES)
                return too_many(m, i);
            for (int j = 0; j < (int)segments; j++)
                if (!add_sample(m, e, j / segments))
                    return no_memory(m);
        }
        all += (size_t)e->sample_count;
        if (all > TOILE_PATTERN_VERTICES)
            return too_many(m, i);
    }
    return TOILE_OK;
}

/* ---- which way panels face ---- */

/* Directions in which the two meshes pass along a seam must differ. Union-find with the parity to the parent. */
static int find_turned(int *parent, unsigned char *odd, int i, unsigned char *parity) {
    int root = i;
    unsigned char sum = 0;
    while (parent[root] != root) {
        sum ^= odd[root];
        root = parent[root];
    }
    *parity = sum;
    while (parent[i] != root && parent[i] != i) {
        int up = parent[i];
        unsigned char left = sum ^ odd[i];
        parent[i] = root;
        odd[i] = sum;
        sum = left;
        i = up;
    }
    return root;
}

static toile_status turn_panels(maker *m) {
    const toile_pattern *p = m->pattern;
    toile_status status = TOILE_OK;
    int *parent = toile_alloc(m->memory, (size_t)p->panel_count, sizeof *parent);
    int *votes = toile_alloc(m->memory, (size_t)p->panel_count, sizeof *votes);
    unsigned char *odd = toile_alloc(m->memory, (size_t)p->panel_count, 1), x, y;
    if (!parent || !odd || !votes) {
        status = no_memory(m);
        goto out;
    }
    for (int i = 0; i < p->panel_count; i++)
        parent[i] = i;
    for (int s = 0; s < p->seam_count; s++) {
        const toile_pattern_seam *seam = &p->seams[s];
        const toile_pattern_side *first = &seam->sides[0][0];
        bool forward = first->reverse == edge_of_side(m, first)->against;
        for (int k = 0; k < 2; k++)
            for (int i = 0; i < seam->count[k]; i++) {
                const toile_pattern_side *side = &seam->sides[k][i];
                bool along = side->reverse == edge_of_side(m, side)->against;
                /* all of side a one way, all of side b the other */
                unsigned char differ = (along != forward) != (k == 1);
                int a = find_turned(parent, odd, first->panel, &x), b = find_turned(parent, odd, side->panel, &y);
                if (a == b && (x ^ y) != differ) {
                    m->where->seam = s;
                    status = toile_fail(m->error, TOILE_INVALID,
                                        "%s: %s would be joined right side to wrong side with %s, as on a strip with a "
                                        "half turn; turn one of them around (\"reverse\", \"right_wrong\" in GarmentCode's files)",
                                        label_of_seam(m, s).text,
                                        label_of(m, (int)(edge_of_side(m, side) - m->edges)).text,
                                        label_of(m, (int)(edge_of_side(m, first) - m->edges)).text);
                    goto out;
                }
                if (a != b) {
                    int low = a < b ? a : b, high = a < b ? b : a;
                    parent[high] = low;
                    odd[high] = x ^ y ^ differ;
                }
            }
    }
    /* Outlines run counter-clockwise seen from the right side: most panels of what hangs together decide. */
    for (int i = 0; i < p->panel_count; i++) {
        int root = find_turned(parent, odd, i, &x);
        votes[root] += (m->edges[m->mesh->edge_base[i]].against ^ x) ? 1 : -1;
    }
    for (int i = 0; i < p->panel_count; i++) {
        int root = find_turned(parent, odd, i, &x);
        bool root_turned = votes[root] > 0 || (votes[root] == 0 && m->edges[m->mesh->edge_base[root]].against);
        m->turned[i] = root_turned != (x != 0);
    }
out:
    toile_free(m->memory, parent);
    toile_free(m->memory, odd);
    toile_free(m->memory, votes);
    return status;
}

/* ---- cutting ---- */

/* The edge that a point of a panel's border is on. */
static int edge_of_point(const maker *m, int panel, int point) {
    int e = m->mesh->edge_base[panel];
    for (; e + 1 < m->mesh->edge_base[panel + 1] && point >= m->edges[e].sample_count; e++)
        point -= m->edges[e].sample_count;
    return e;
}

static toile_status refuse_panel(const maker *m, int panel, toile_panel_fault fault) {
    const toile_pattern_panel *p = &m->pattern->panels[panel];
    int a = edge_of_point(m, panel, fault.a), b = edge_of_point(m, panel, fault.b);
    switch (fault.kind) {
    case TOILE_PANEL_FINE: return TOILE_OK;
    case TOILE_PANEL_TOUCHES:
    case TOILE_PANEL_CROSSES:
        at_edge(m, b);
        if (a == b)
            return toile_fail(m->error, TOILE_INVALID,
                              "%s: %s itself (sampled every %g m); a panel's edge does not", label_of(m, b).text,
                              fault.kind == TOILE_PANEL_TOUCHES ? "touches" : "crosses", p->edge_length);
        return toile_fail(m->error, TOILE_INVALID, "%s: %s edge %d of the same panel; outlines and holes do not meet",
                          label_of(m, b).text, fault.kind == TOILE_PANEL_TOUCHES ? "touches" : "crosses",
                          m->edges[a].index);
    case TOILE_PANEL_HOLE_OUTSIDE:
        at_edge(m, a);
        return toile_fail(m->error, TOILE_INVALID,
                          "%s: the line that begins here is no hole inside the panel's outline", label_of(m, a).text);
    case TOILE_PANEL_TOO_FINE:
        m->where->panel = panel;
        return toile_fail(m->error, TOILE_INVALID,
                          "panel \"%.64s\": edges of %g m would give it more than %d vertices; make edge_length larger (are "
                          "the units right?)",
                          p->name, p->edge_length, TOILE_PANEL_MOST);
    case TOILE_PANEL_NO_MEMORY: break;
    }
    return no_memory(m);
}

/* A strip's width is twice its area by the length of its outline. */
static toile_status refuse_narrow(const maker *m, int panel) {
    const toile_pattern_panel *p = &m->pattern->panels[panel];
    int base = m->mesh->edge_base[panel];
    double around = 0;
    for (int i = 0; i < p->loop_sizes[0]; i++)
        around += m->edges[base + i].measure.length;
    double width = fabs(loop_area(m->edges + base, p->loop_sizes[0])) / around;
    if (width >= WIDTH_LEAST)
        return TOILE_OK;
    m->where->panel = panel;
    return toile_fail(m->error, TOILE_INVALID,
                      "panel \"%.64s\": is %g m wide and %g m around; cloth is at least %g m wide, are the units right?", p->name,
                      width, around, WIDTH_LEAST);
}

static toile_status cut_panel(const maker *m, int panel, toile_panel_mesh *made) {
    const toile_pattern_panel *p = &m->pattern->panels[panel];
    toile_status status = TOILE_OK;
    int begin = m->mesh->edge_base[panel], end = m->mesh->edge_base[panel + 1];
    size_t count = 0;
    for (int e = begin; e < end; e++)
        count += (size_t)m->edges[e].sample_count;
    double *points = toile_alloc(m->memory, count, 2 * sizeof *points), *to = points;
    int *sizes = toile_alloc(m->memory, (size_t)p->loop_count, sizeof *sizes);
    if (!points || !sizes) {
        status = no_memory(m);
        goto out;
    }
    for (int l = 0, e = begin; l < p->loop_count; l++)
        for (int k = 0; k < p->loop_sizes[l]; k++, e++) {
            const work_edge *edge = &m->edges[e];
            sizes[l] += edge->sample_count;
            for (int i = 0; i < edge->sample_count; i++, to += 2)
                toile_curve_point(&edge->curve, toile_curve_at(&edge->curve, &edge->measure, edge->samples[i]), to);
        }
    for (int l = 0, e = begin; l < p->loop_count; e += p->loop_sizes[l++])
        if (sizes[l] < 3) {
            at_edge(m, e);
            status = toile_fail(m->error, TOILE_INVALID,
                                "%s: the closed line that begins here is too small for edges of %g m; make edge_length "
                                "smaller, or it larger",
                                label_of(m, e).text, p->edge_length);
            goto out;
        }
    toile_panel_shape shape = {.loop_count = p->loop_count,
                               .loop_sizes = sizes,
                               .points = points,
                               .edge_length = p->edge_length,
                               .grain = p->grain,
                               .finer_count = p->finer_count,
                               .finer = p->finer};
    status = refuse_panel(m, panel, toile_panel_mesh_make(m->memory, &shape, made));
    if (status == TOILE_OK)
        status = refuse_narrow(m, panel);
out:
    toile_free(m->memory, points);
    toile_free(m->memory, sizes);
    return status;
}

void toile_pattern_place(const toile_pattern_panel *p, const double point[2], double place[3]) {
    double at[3] = {point[0], point[1], 0};
    if (p->bend_radius != 0) {
        double along[2] = {cos(p->bend_axis), sin(p->bend_axis)}, r = p->bend_radius;
        double x = point[0] - p->bend_at[0], y = point[1] - p->bend_at[1];
        double a = x * along[0] + y * along[1], s = y * along[0] - x * along[1];
        double bent = r * sin(s / r);
        at[0] = p->bend_at[0] + a * along[0] - bent * along[1];
        at[1] = p->bend_at[1] + a * along[1] + bent * along[0];
        at[2] = r * (cos(s / r) - 1);
    }
    toile_pose_apply(&p->pose, at, place);
}

/* Adds a panel's mesh to the garment's. */
static toile_status add_panel(maker *m, int panel, const toile_panel_mesh *made, int *vertex_room, int *triangle_room) {
    toile_pattern_mesh *mesh = m->mesh;
    const toile_pattern_panel *p = &m->pattern->panels[panel];
    int v0 = mesh->vertex_count, t0 = mesh->triangle_count;
    if (made->vertex_count > TOILE_PATTERN_VERTICES - v0) {
        m->where->panel = panel;
        return toile_fail(m->error, TOILE_INVALID,
                          "panel \"%.64s\": with it the pattern has more than %d vertices; make edge_length larger (are the "
                          "units right?)",
                          p->name, TOILE_PATTERN_VERTICES);
    }
    int need_v = v0 + made->vertex_count, need_t = t0 + made->triangle_count;
    if (need_v > *vertex_room) {
        size_t old = (size_t)*vertex_room, room = (size_t)need_v + old;
        double *positions = toile_grow(m->memory, mesh->positions, 3 * old, 3 * room, sizeof *positions);
        mesh->positions = positions ? positions : mesh->positions;
        double *flat = toile_grow(m->memory, mesh->flat, 2 * old, 2 * room, sizeof *flat);
        mesh->flat = flat ? flat : mesh->flat;
        if (!positions || !flat)
            return no_memory(m);
        *vertex_room = (int)room;
    }
    if (need_t > *triangle_room) {
        size_t old = (size_t)*triangle_room, room = (size_t)need_t + old;
        int *triangles = toile_grow(m->memory, mesh->triangles, 3 * old, 3 * room, sizeof *triangles);
        mesh->triangles = triangles ? triangles : mesh->triangles;
        int *panels = toile_grow(m->memory, mesh->triangle_panels, old, room, sizeof *panels);
        mesh->triangle_panels = panels ? panels : mesh->triangle_panels;
        double *uv = toile_grow(m->memory, mesh->corner_uv, 6 * old, 6 * room, sizeof *uv);
        mesh->corner_uv = uv ? uv : mesh->corner_uv;
        if (!triangles || !panels || !uv)
            return no_memory(m);
        *triangle_room = (int)room;
    }
    double c = cos(p->grain), s = sin(p->grain);
    for (int i = 0; i < made->vertex_count; i++) {
        const double *point = made->points + 2 * (size_t)i;
        memcpy(mesh->flat + 2 * (size_t)(v0 + i), point, 2 * sizeof *point);
        toile_pattern_place(p, point, mesh->positions + 3 * (size_t)(v0 + i));
    }
    for (int t = 0; t < made->triangle_count; t++) {
        mesh->triangle_panels[t0 + t] = panel;
        for (int k = 0; k < 3; k++) {
            int v = made->triangles[3 * (size_t)t + (size_t)(m->turned[panel] ? 2 - k : k)];
            const double *point = made->points + 2 * (size_t)v;
            size_t corner = 3 * (size_t)(t0 + t) + (size_t)k;
            mesh->triangles[corner] = v0 + v;
            mesh->corner_uv[2 * corner] = c * point[0] + s * point[1];
            mesh->corner_uv[2 * corner + 1] = c * point[1] - s * point[0];
        }
    }
    for (int e = mesh->edge_base[panel], at = v0; e < mesh->edge_base[panel + 1]; e++) {
        mesh->edge_first[e] = at;
        mesh->edge_count[e] = m->edges[e].sample_count;
        at += m->edges[e].sample_count;
    }
    for (int e = mesh->edge_base[panel]; e < mesh->edge_base[panel + 1]; e++)
        mesh->edge_next[e] = mesh->edge_first[m->edges[e].next];
    if (panel == 0 || made->smallest_angle < mesh->smallest_angle) {
        mesh->smallest_angle = made->smallest_angle;
        mesh->smallest_panel = panel;
    }
    mesh->vertex_count = need_v;
    mesh->triangle_count = need_t;
    mesh->panel_begin[panel + 1] = need_v;
    return TOILE_OK;
}

static toile_status cut_panels(maker *m) {
    int vertex_room = 0, triangle_room = 0;
    toile_status status = TOILE_OK;
    for (int i = 0; i < m->pattern->panel_count && status == TOILE_OK; i++) {
        toile_panel_mesh made = {0};
        status = cut_panel(m, i, &made);
        if (status == TOILE_OK)
            status = add_panel(m, i, &made, &vertex_room, &triangle_room);
        toile_panel_mesh_free(m->memory, &made);
    }
    return status;
}

/* ---- stitches ---- */

int toile_pattern_vertex(const toile_pattern_mesh *mesh, int edge, int i) {
    return i < mesh->edge_count[edge] ? mesh->edge_first[edge] + i : mesh->edge_next[edge];
}

static toile_status add_stitch(maker *m, int seam, int a, int b) {
    toile_pattern_mesh *mesh = m->mesh;
    const toile_stitch *last = mesh->stitch_count ? &mesh->stitches[mesh->stitch_count - 1] : NULL;
    if (a == b || (last && last->seam == seam && last->a == a && last->b == b))
        return TOILE_OK;
    if (mesh->stitch_count == m->stitch_room) {
        size_t room = m->stitch_room ? 2 * (size_t)m->stitch_room : 256;
        toile_stitch *grown = toile_grow(m->memory, mesh->stitches, (size_t)m->stitch_room, room, sizeof *grown);
        if (!grown)
            return no_memory(m);
        mesh->stitches = grown;
        m->stitch_room = (int)room;
    }
    mesh->stitches[mesh->stitch_count++] = (toile_stitch){seam, a, b};
    return TOILE_OK;
}

/* Ends of segment i of a side, in the direction of the walk. */
static void segment_ends(const maker *m, const toile_pattern_side *side, int i, int ends[2]) {
    int edge = m->mesh->edge_base[side->panel] + side->edge, count = m->mesh->edge_count[edge];
    for (int k = 0; k < 2; k++)
        ends[k] = toile_pattern_vertex(m->mesh, edge, side->reverse ? count - i - k : i + k);
}

static toile_status stitch_seams(maker *m) {
    toile_status status = TOILE_OK;
    for (int s = 0; s < m->pattern->seam_count; s++) {
        const toile_pattern_seam *seam = &m->pattern->seams[s];
        int side[2] = {0, 0}, at[2] = {0, 0}, ends[2][2];
        while (side[0] < seam->count[0] && side[1] < seam->count[1] && status == TOILE_OK) {
            for (int k = 0; k < 2; k++) {
                const toile_pattern_side *here = &seam->sides[k][side[k]];
                segment_ends(m, here, at[k], ends[k]);
                if (++at[k] == edge_of_side(m, here)->sample_count) {
                    at[k] = 0;
                    side[k]++;
                }
            }
            for (int end = 0; end < 2 && status == TOILE_OK; end++)
                status = add_stitch(m, s, ends[0][end], ends[1][end]);
        }
    }
    return status;
}

/* ---- all of it ---- */

toile_status toile_pattern_make(toile_memory *memory, const toile_pattern *pattern, toile_pattern_mesh *mesh,
                                toile_pattern_where *where, toile_error *error) {
    toile_pattern_where unwanted;
    maker m = {.memory = memory, .pattern = pattern, .mesh = mesh, .where = where ? where : &unwanted, .error = error};
    *m.where = (toile_pattern_where){-1, -1, -1};
    memset(mesh, 0, sizeof *mesh);
    if (pattern->panel_count < 1 || pattern->panel_count > TOILE_PATTERN_PANELS)
        return toile_fail(error, TOILE_INVALID, "the pattern has %d panels; 1 to %d are possible", pattern->panel_count,
                          TOILE_PATTERN_PANELS);
    size_t panels = (size_t)pattern->panel_count;
    mesh->edge_base = toile_alloc(memory, panels + 1, sizeof *mesh->edge_base);
    mesh->panel_begin = toile_alloc(memory, panels + 1, sizeof *mesh->panel_begin);
    m.turned = toile_alloc(memory, panels, sizeof *m.turned);
    toile_status status = mesh->edge_base && mesh->panel_begin && m.turned ? TOILE_OK : no_memory(&m);
    if (status == TOILE_OK)
        status = take_edges(&m);
    if (status == TOILE_OK)
        status = sample_edges(&m);
    if (status == TOILE_OK)
        status = turn_panels(&m);
    if (status == TOILE_OK)
        status = cut_panels(&m);
    if (status == TOILE_OK)
        status = stitch_seams(&m);
    for (int i = 0; m.edges && i < m.edge_count; i++)
        toile_free(memory, m.edges[i].samples);
    toile_free(memory, m.edges);
    toile_free(memory, m.turned);
    if (status != TOILE_OK)
        toile_pattern_mesh_free(memory, mesh);
    return status;
}

void toile_pattern_mesh_free(toile_memory *memory, toile_pattern_mesh *mesh) {
    toile_free(memory, mesh->positions);
    toile_free(memory, mesh->flat);
    toile_free(memory, mesh->panel_begin);
    toile_free(memory, mesh->triangles);
    toile_free(memory, mesh->triangle_panels);
    toile_free(memory, mesh->corner_uv);
    toile_free(memory, mesh->stitches);
    toile_free(memory, mesh->edge_base);
    toile_free(memory, mesh->edge_first);
    toile_free(memory, mesh->edge_count);
    toile_free(memory, mesh->edge_next);
    memset(mesh, 0, sizeof *mesh);
}
