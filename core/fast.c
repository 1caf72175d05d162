/* Memory of the fast solver. */
#include "fast.h"

#include "fast_pattern.h"

#include <string.h>

bool toile_fast_make(toile_memory *memory, const toile_model *m, double step, toile_fast *f) {
    const toile_pattern *p = &m->pattern;
    memset(f, 0, sizeof *f);
    if (!toile_fast_pattern_make(memory, m, step, &f->pattern))
        return false;
    const toile_fast_pattern *fp = &f->pattern;
    size_t n = (size_t)fp->n, off = (size_t)fp->off_count;
    int middle = fp->stream_begin[TOILE_STREAMS];
    size_t met = (size_t)(fp->n - middle), met_off = off - (size_t)fp->begin[middle];
    bool springs = m->springs_used;
    struct {
        float **field;
        size_t count;
    } fields[] = {{&f->diagonal, 12 * n},
                  {&f->inverse, 12 * n},
                  {&f->lower, 9 * off + 3},
                  {&f->work_off, 12 * off},
                  {&f->work_diagonal, 12 * n},
                  {&f->meet_off, 12 * met_off},
                  {&f->meet_diagonal, 12 * met},
                  {&f->meet_vector, 4 * met},
                  {&f->b, 4 * n},
                  {&f->e, 4 * n},
                  {&f->r, 4 * n},
                  {&f->p, 4 * n},
                  {&f->s, 4 * n},
                  {&f->q, 4 * n},
                  {&f->spring, 4 * ((size_t)m->springs.padded + 1)},
                  {&f->link, 4 * (size_t)fp->links.room},
                  {&f->inertia, 6 * n},
                  {&f->off, 9 * (size_t)p->off_count + 3},
                  {&f->core, 9 * (size_t)p->off_count + 3},
                  {&f->spill, 4 * (size_t)p->spill_begin[p->chunk_count]}};
    bool ok = true;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        bool unused = springs ? fields[i].field == &f->off || fields[i].field == &f->core
                              : fields[i].field == &f->spring || fields[i].field == &f->link || fields[i].field == &f->inertia ||
                                    (fp->bends && fields[i].field == &f->core);
        ok = ok && (unused || (*fields[i].field = toile_alloc(memory, fields[i].count, sizeof(float))));
    }
    ok = ok && (f->constraint_of = toile_alloc(memory, n, sizeof(int)));
    if (springs) /* runs of six links at least, cut at eight at most; shares change which */
        ok = ok && (f->run = toile_alloc(memory, (size_t)fp->links.room / 3 + 1, sizeof *f->run)) &&
             (f->run_count = toile_alloc(memory, (size_t)p->chunk_count, sizeof(int)));
    ok = ok && (f->partial = toile_alloc(memory, TOILE_FAST_SUMS * (size_t)p->chunk_count, sizeof(double)));
    return ok && toile_coarse_make(memory, m, &f->coarse);
}

void toile_fast_free(toile_memory *memory, toile_fast *f) {
    void *blocks[] = {f->diagonal, f->inverse, f->lower, f->work_off, f->work_diagonal, f->meet_off, f->meet_diagonal,
                      f->meet_vector, f->b, f->e, f->r, f->p, f->s, f->q, f->spring, f->link, f->inertia, f->off, f->core, f->spill,
                      f->constraint_of, f->partial, f->run, f->run_count};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(memory, blocks[i]);
    toile_coarse_free(memory, &f->coarse);
    toile_fast_pattern_free(memory, &f->pattern);
    memset(f, 0, sizeof *f);
}
