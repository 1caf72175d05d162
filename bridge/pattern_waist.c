#include "pattern_waist.h"

#include "join.h"

#include <math.h>
#include <string.h>

/* Labels stand in the order of panels and edges. */
static bool is_waist(const toile_garmentcode *read, int panel, int edge) {
    int low = 0, high = read->label_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        const toile_garmentcode_label *l = &read->labels[middle];
        if (l->panel < panel || (l->panel == panel && l->edge < edge))
            low = middle + 1;
        else
            high = middle;
    }
    const toile_garmentcode_label *l = &read->labels[low];
    return low < read->label_count && l->panel == panel && l->edge == edge && strcmp(l->label, "lower_interface") == 0;
}

/* Where an edge begins and ends in the scene. */
static void ends_of(const toile_garmentcode *read, int panel, int edge, double a[3], double b[3]) {
    const toile_pattern_panel *p = &read->panels[panel];
    toile_pattern_place(p, p->edges[edge].curve.from, a);
    toile_pattern_place(p, p->edges[(edge + 1) % p->loop_sizes[0]].curve.from, b);
}

/* A part is what hangs together without the joining seams. `sums`: length of its waists, m, and that times their height. */
static void measure_waists(const toile_garmentcode *read, int *part, double (*sums)[2]) {
    for (int p = 0; p < read->pattern.panel_count; p++)
        for (int e = 0; e < read->panels[p].loop_sizes[0]; e++) {
            double a[3], b[3], *sum = sums[toile_join_find(part, p)];
            if (!is_waist(read, p, e))
                continue;
            ends_of(read, p, e, a, b);
            double length = sqrt((b[0] - a[0]) * (b[0] - a[0]) + (b[1] - a[1]) * (b[1] - a[1]) + (b[2] - a[2]) * (b[2] - a[2]));
            sum[0] += length;
            sum[1] += length * 0.5 * (a[1] + b[1]);
        }
}

toile_status toile_pattern_raise(toile_memory *memory, toile_garmentcode *read, double height, bool *joins, bool *lower,
                                 toile_error *error) {
    int panels = read->pattern.panel_count;
    int *part = toile_alloc(memory, (size_t)panels, sizeof *part);
    double(*sums)[2] = toile_alloc(memory, (size_t)panels, sizeof *sums);
    if (!part || !sums) {
        toile_free(memory, part), toile_free(memory, sums);
        return toile_fail_memory(error, "waists");
    }
    for (int p = 0; p < panels; p++)
        part[p] = p;
    for (int s = 0; s < read->pattern.seam_count; s++) {
        const toile_pattern_side *a = read->seams[s].sides[0], *b = read->seams[s].sides[1];
        joins[s] = is_waist(read, a->panel, a->edge) != is_waist(read, b->panel, b->edge);
        if (!joins[s])
            toile_join(part, a->panel, b->panel);
    }
    /* a waist sewn to its own part, such as a band around it, is sewn with the rest */
    for (int s = 0; s < read->pattern.seam_count; s++) {
        const toile_pattern_side *const *sides = read->seams[s].sides;
        joins[s] = joins[s] && toile_join_find(part, sides[0]->panel) != toile_join_find(part, sides[1]->panel);
        for (int k = 0; k < 2 && joins[s]; k++)
            if (is_waist(read, sides[k]->panel, sides[k]->edge))
                lower[toile_join_find(part, sides[k]->panel)] = true;
    }
    measure_waists(read, part, sums);
    for (int p = 0; p < panels; p++) {
        const double *sum = sums[toile_join_find(part, p)];
        if (sum[0] > 0)
            read->panels[p].pose.position[1] += height - sum[1] / sum[0];
        lower[p] = lower[toile_join_find(part, p)];
    }
    toile_free(memory, part);
    toile_free(memory, sums);
    return TOILE_OK;
}

double toile_pattern_overhang(const toile_garmentcode *read, double height, const bool *joins, int panel, double *begins) {
    *begins = height;
    for (int s = 0; s < read->pattern.seam_count; s++)
        for (int k = 0; k < 2 && joins[s]; k++) {
            const toile_pattern_side *side = read->seams[s].sides[k];
            double a[3], b[3];
            if (side->panel != panel || is_waist(read, panel, side->edge))
                continue;
            ends_of(read, panel, side->edge, a, b);
            *begins = fmin(*begins, 0.5 * (a[1] + b[1]));
        }
    return height - *begins;
}
