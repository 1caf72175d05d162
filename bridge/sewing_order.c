#include "sewing_order.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More seams are sewn at once: to find tubes takes the fourth power of their number where all join the same
 * two panels. */
#define SEAMS_MOST 200
#define BAND 0.12 /* m; cuffs, collars and waistbands are not higher */

/* Do both seams join the same two panels? */
static bool same_panels(const toile_pattern_seam *a, const toile_pattern_seam *b) {
    int p = a->sides[0]->panel, q = a->sides[1]->panel, r = b->sides[0]->panel, s = b->sides[1]->panel;
    return (p == r && q == s) || (p == s && q == r);
}

/* Are they one line on both panels, so that it is one seam in two pieces? */
static bool is_one_line(const toile_sewing_order *order, const toile_pattern_seam *a, const toile_pattern_seam *b) {
    for (int k = 0; k < 2; k++) {
        const toile_pattern_side *p = a->sides[k], *q = b->sides[b->sides[0]->panel == p->panel ? 0 : 1];
        int apart = abs(p->edge - q->edge);
        if (apart != 1 && apart != order->read->panels[p->panel].loop_sizes[0] - 1)
            return false;
    }
    return true;
}

/* From end to end, m. */
static double length_of(const toile_sewing_order *order, const toile_pattern_side *side) {
    const toile_pattern_panel *p = &order->read->panels[side->panel];
    const double *a = p->edges[side->edge].curve.from, *b = p->edges[(side->edge + 1) % p->loop_sizes[0]].curve.from;
    return hypot(b[0] - a[0], b[1] - a[1]);
}

/* The longest of the seams that make a tube of two panels, of which this is one, m; 0: it is not. */
static double tube_length(const toile_sewing_order *order, int seam) {
    const toile_pattern_seam *s = &order->read->seams[seam];
    bool tube = false;
    double longest = length_of(order, s->sides[0]);
    if (s->sides[0]->panel == s->sides[1]->panel)
        return 0;
    for (int i = 0; i < order->read->pattern.seam_count; i++)
        if (i != seam && same_panels(s, &order->read->seams[i])) {
            longest = fmax(longest, length_of(order, order->read->seams[i].sides[0]));
            tube = tube || !is_one_line(order, s, &order->read->seams[i]);
        }
    return tube ? longest : 0;
}

/* Is the seam a dart, or one of two or more that make a tube of their panels? Bands are not meant: a cuff that is closed where
 * it starts, around the hand, does not go back to the wrist. */
static bool closes_tube(const toile_sewing_order *order, int seam) {
    const toile_pattern_side *const *sides = order->read->seams[seam].sides;
    return sides[0]->panel == sides[1]->panel || tube_length(order, seam) > BAND;
}

/* The shorter side of a box around a panel's corners, m. */
static double height_of(const toile_pattern_panel *p) {
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (int i = 0; i < 2 * p->loop_sizes[0]; i++) {
        low[i % 2] = fmin(low[i % 2], p->edges[i / 2].curve.from[i % 2]);
        high[i % 2] = fmax(high[i % 2], p->edges[i / 2].curve.from[i % 2]);
    }
    return fmin(high[0] - low[0], high[1] - low[1]);
}

/* Is the panel a piece of a cuff or a collar, or of a waistband that nothing holds? */
static bool is_loose_band(const toile_sewing_order *order, int panel) {
    bool band = false;
    if (height_of(&order->read->panels[panel]) > BAND)
        return false;
    for (int i = 0; i < order->read->label_count; i++)
        if (order->read->labels[i].panel == panel && strcmp(order->read->labels[i].label, "lower_interface") == 0)
            return false;
    for (int i = 0; i < order->read->pattern.seam_count && !band; i++) {
        const toile_pattern_side *const *sides = order->read->seams[i].sides;
        double length = sides[0]->panel == panel || sides[1]->panel == panel ? tube_length(order, i) : 0;
        band = length > 0 && length <= BAND;
    }
    return band;
}

/* The panel that an edge is sewn to, in the first seam of it; -1: none. What waits for a waist is not meant.
 */
static int partner_of(const toile_sewing_order *order, int panel, int edge) {
    for (int i = 0; i < order->read->pattern.seam_count; i++)
        for (int k = 0; k < 2 && !order->joins[i]; k++) {
            const toile_pattern_seam *seam = &order->read->seams[i];
            for (int j = 0; j < seam->count[k]; j++)
                if (seam->sides[k][j].panel == panel && seam->sides[k][j].edge == edge)
                    return seam->sides[1 - k]->panel;
        }
    return -1;
}

/* Is the first a panel of a tube, with the second (-1: with any)? */
static bool is_tube(const toile_sewing_order *order, int panel, int with) {
    for (int i = 0; i < order->read->pattern.seam_count; i++) {
        int p = order->read->seams[i].sides[0]->panel, q = order->read->seams[i].sides[1]->panel, other = p == panel ? q : p;
        if (p != q && (p == panel || q == panel) && (with < 0 || other == with) && closes_tube(order, i))
            return true;
    }
    return false;
}

/* The next edge of a panel, or (by -1) the one before. */
static int edge_after(const toile_sewing_order *order, int panel, int edge, int by) {
    int size = order->read->panels[panel].loop_sizes[0];
    return (edge + by + size) % size;
}

/* What the seam of a tube ends at. */
typedef enum seam_end {
    END_FREE, /* nothing, or bands: as an outseam at hem and waist */
    END_BODY, /* a panel of another tube: as a shoulder at an armhole */
    END_PARTS /* both panels go on to the two of another tube: as an inseam at the crotch */
} seam_end;

/* At the end where the sides of a seam begin (way -1), or at the other one (1). */
static seam_end end_at(const toile_sewing_order *order, int seam, int way) {
    const toile_pattern_seam *s = &order->read->seams[seam];
    int next[2];
    bool tube = false;
    for (int k = 0; k < 2; k++) {
        const toile_pattern_side *side = &s->sides[k][way < 0 ? 0 : s->count[k] - 1];
        next[k] = partner_of(order, side->panel, edge_after(order, side->panel, side->edge, side->reverse ? -way : way));
        if (next[k] == s->sides[0]->panel || next[k] == s->sides[1]->panel)
            next[k] = -1;
        tube = tube || (next[k] >= 0 && is_tube(order, next[k], -1));
    }
    if (next[0] >= 0 && next[1] >= 0 && next[0] != next[1] && is_tube(order, next[0], next[1]))
        return END_PARTS;
    return tube ? END_BODY : END_FREE;
}

static seam_end end_of(const toile_sewing_order *order, int seam) {
    seam_end a = end_at(order, seam, -1), b = end_at(order, seam, 1);
    return a > b ? a : b;
}

/* Do tubes part at some of the seams between its two panels, and are the others free? */
static bool is_leg(const toile_sewing_order *order, int seam) {
    int ends[3] = {0, 0, 0};
    for (int i = 0; i < order->read->pattern.seam_count; i++)
        if (same_panels(&order->read->seams[seam], &order->read->seams[i]))
            ends[end_of(order, i)]++;
    return ends[END_PARTS] > 0 && ends[END_FREE] > 0 && ends[END_BODY] == 0;
}

/* From the crotch to the waist along what joins a panel of a leg to the other leg, and over a waistband, m.
 */
static double rise_of(const toile_sewing_order *order, const toile_pattern_side *inseam, int by) {
    int panel = inseam->panel, edge = edge_after(order, panel, inseam->edge, by),
        other = partner_of(order, panel, edge);
    double length = 0;
    for (; edge != inseam->edge && partner_of(order, panel, edge) == other;
         edge = edge_after(order, panel, edge, by))
        length += toile_garmentcode_length(order->read, panel, edge);
    int band = partner_of(order, panel, edge);
    double high = band >= 0 ? height_of(&order->read->panels[band]) : 0;
    return length + (high <= BAND ? high : 0);
}

double toile_sewn_rise(const toile_sewing_order *order) {
    double least = INFINITY;
    for (int i = 0; i < order->read->pattern.seam_count && order->read->pattern.seam_count <= SEAMS_MOST; i++)
        for (int way = -1; way <= 1 && closes_tube(order, i) && is_leg(order, i); way += 2) {
            const toile_pattern_side *const *sides = order->read->seams[i].sides;
            if (end_at(order, i, way) != END_PARTS)
                continue;
            double rise = 0;
            for (int k = 0; k < 2; k++)
                rise += rise_of(order, sides[k], sides[k]->reverse ? -way : way);
            least = fmin(least, rise);
        }
    return least;
}

/* Frames in which a seam of a tube is sewn: in two turns if it is a leg. A sleeve has all of its seams end at
 * the body, and is closed at once. */
static void tube_when(const toile_sewing_order *order, int seam, int frames[2]) {
    bool leg = is_leg(order, seam), inner = leg && end_of(order, seam) == END_PARTS;
    frames[0] = leg && !inner ? TOILE_PLAN_PARTED : TOILE_PLAN_FIRST;
    frames[1] = inner ? TOILE_PLAN_PARTED : TOILE_PLAN_TUBES;
}

bool toile_in_tube(const toile_sewing_order *order, int panel) {
    return order->read->pattern.seam_count <= SEAMS_MOST && is_tube(order, panel, -1);
}

void toile_sewn_when(const toile_sewing_order *order, int seam, int frames[2]) {
    bool late = order->joins[seam] && order->grows, many = order->read->pattern.seam_count > SEAMS_MOST,
         tube = !many && closes_tube(order, seam);
    const toile_pattern_side *const *sides = order->read->seams[seam].sides;
    bool band = !many && is_loose_band(order, sides[0]->panel) != is_loose_band(order, sides[1]->panel);
    frames[0] = late ? TOILE_PLAN_WEIGHT : band ? TOILE_PLAN_FIRST : TOILE_PLAN_TUBES;
    frames[1] = late ? TOILE_PLAN_JOINED : TOILE_PLAN_SEWN;
    if (tube && !late)
        tube_when(order, seam, frames);
}
