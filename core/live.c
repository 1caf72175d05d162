#include "live.h"

#include "sim.h"

#include <string.h>

toile_live *toile_live_make(toile_memory *memory, const toile_pattern *p) {
    toile_live *live = toile_alloc(memory, 1, sizeof *live);
    if (!live)
        return NULL;
    live->begin = toile_alloc(memory, (size_t)p->n + 1, sizeof(int));
    live->split = toile_alloc(memory, (size_t)p->n, sizeof(int));
    live->block = toile_alloc(memory, (size_t)p->off_count, sizeof(int));
    live->soft = toile_alloc(memory, (size_t)p->n, sizeof(int));
    if (live->begin && live->split && live->block && live->soft)
        return live;
    toile_live_free(memory, live);
    return NULL;
}

void toile_live_free(toile_memory *memory, toile_live *live) {
    if (!live)
        return;
    toile_free(memory, live->begin);
    toile_free(memory, live->split);
    toile_free(memory, live->block);
    toile_free(memory, live->soft);
    toile_free(memory, live);
}

/* Has one of the elements of a block, listed by codes, a share? */
static bool any_implicit(const int *begin, const int *code, int block, int digits, const double *share) {
    for (int k = begin[block]; k < begin[block + 1]; k++)
        if (share[code[k] >> digits] != 0)
            return true;
    return false;
}

static bool is_live(const toile_model *m, const toile_stability *s, int block) {
    const toile_pattern *p = &m->pattern;
    return any_implicit(p->spring_begin, p->spring_code, block, 1, s->spring_share) ||
           (!m->springs_used && (any_implicit(p->triangle_begin, p->triangle_code, block, 4, s->stretch_share) ||
                                 any_implicit(p->triangle_begin, p->triangle_code, block, 4, s->shear_share) ||
                                 any_implicit(p->hinge_begin, p->hinge_code, block, 4, s->hinge_share)));
}

static void bury(toile_work *w, int k) {
    memset(w->matrix.off + 9 * (size_t)k, 0, 9 * sizeof(double));
    if (w->fast.off)
        memset(w->fast.off + 9 * (size_t)k, 0, 9 * sizeof(float));
    if (w->fast.core)
        memset(w->fast.core + 9 * (size_t)k, 0, 9 * sizeof(float));
}

void toile_live_list(toile_sim *sim) {
    toile_work *w = &sim->work;
    const toile_model *m = sim->model;
    const toile_pattern *p = &m->pattern;
    toile_live *live = w->stability.live;
    int count = 0;
    for (int i = 0; i < p->n; i++) {
        live->begin[i] = live->split[i] = count;
        for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++) {
            if (is_live(m, &w->stability, p->n + k))
                live->block[count++] = k;
            else
                bury(w, k);
            if (k < p->row_split[i])
                live->split[i] = count;
        }
        int soft = p->spring_begin[i + 1];
        while (soft > p->spring_begin[i] && w->stability.spring_share[p->spring_code[soft - 1] >> 1] == 0)
            soft--;
        live->soft[i] = soft;
    }
    live->begin[p->n] = count;
    w->matrix.live = w->fast.live = count < p->off_count ? live : NULL;
    if (w->fast.link)
        toile_fast_links_list(m, w->stability.spring_share, &w->fast.pattern.links);
}
