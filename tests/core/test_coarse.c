/* The coarse level of the fast solver: its patches, its system, and that it changes the way to an answer but not the answer. */
#include "check.h"

#include "fast.h"
#include "solve_linear.h"
#include "world.h"

/* What a solve takes from the table of its instruction set. */
void toile_coarse_factor_sse2(toile_coarse *c);
void toile_coarse_restrict_sse2(const toile_coarse *c, const float *r, int from, int to);
void toile_coarse_solve_sse2(const toile_coarse *c);

/* Sheets of n x n beside each other, pinned at their first row or all over, after some frames. */
static toile_world *build(const char *model, int n, int sheets, bool all_pinned, int frames) {
    toile_world *w = NULL;
    int fabric, sheet, *pins = calloc((size_t)(n * n), sizeof *pins);
    bool ok = pins && toile_create(NULL, &w) >= 0 && toile_set(w, "cloth_model", model) >= 0 &&
              toile_set(w, "self_collision", "off") >= 0 && toile_add_fabric(w, "cotton", &fabric) >= 0;
    for (int s = 0; ok && s < sheets; s++) {
        toile_grid grid = {.name = s ? "second" : "first", .fabric = fabric, .nu = n, .nv = n, .origin = {1.5 * s, 0, 0},
                           .u_axis = {0.5, 0, 0}, .v_axis = {0, 0.5, 0}};
        ok = toile_add_grid(w, &grid, &sheet) >= 0;
        for (int i = 0; i < n * n; i++)
            pins[i] = i;
        toile_pin pin = {sheet, all_pinned ? n * n : n, pins, {true, true, true}};
        ok = ok && toile_add_pin(w, &pin, NULL) >= 0;
    }
    ok = ok && toile_build(w) >= 0;
    for (int f = 0; ok && f < frames; f++)
        ok = toile_advance(w, 1.0 / 24) >= 0;
    CHECK(ok, "%s", w ? toile_message(w) : "no memory");
    free(pins);
    return w;
}

static toile_coarse *coarse_of(toile_world *w) {
    return &toile_world_sim(w)->work.fast.coarse;
}

/* Every row is in one patch, patches are of a size, none spans two sheets. */
static void patches(void) {
    toile_world *w = build("continuum", 41, 2, false, 0);
    const toile_model *m = toile_world_sim(w)->model;
    const toile_coarse *c = coarse_of(w);
    int *seen = calloc((size_t)m->particle_count, sizeof *seen);
    CHECK(c->count >= 24 && c->count <= 40, "%d patches", c->count);
    for (int g = 0; g < c->count; g++) {
        int size = c->begin[g + 1] - c->begin[g];
        bool first = c->row[c->begin[g]] < m->component_begin[1];
        CHECK(size >= 30 && size <= 200, "a patch of %d rows", size);
        for (int q = c->begin[g]; q < c->begin[g + 1]; q++) {
            seen[c->row[q]]++;
            CHECK(c->patch[c->row[q]] == g, "row %d", c->row[q]);
            CHECK((c->row[q] < m->component_begin[1]) == first, "a patch on both sheets");
        }
    }
    for (int i = 0; i < m->particle_count; i++)
        CHECK(seen[i] == 1, "row %d is in %d patches", i, seen[i]);
    free(seen);
    toile_destroy(w);
}

/* A mesh of a few patches does without. */
static void tiny(void) {
    for (int n = 2; n <= 15; n += 13) {
        toile_world *w = build("springs", n, 1, false, 2);
        CHECK(coarse_of(w)->count == 0 && !coarse_of(w)->sound, "%d patches", coarse_of(w)->count);
        toile_destroy(w);
    }
}

/* C of the last step is P' S A S P, and its factor solves it. */
static void system_of_patches(const char *model, bool all_pinned) {
    toile_world *w = build(model, 41, 1, all_pinned, 3);
    toile_sim *sim = toile_world_sim(w);
    const toile_pattern *p = &sim->model->pattern;
    toile_coarse *c = coarse_of(w);
    toile_work *k = &sim->work;
    int n = 3 * c->count;
    size_t rows = 4 * (size_t)p->n;
    double *answer = calloc((size_t)n, sizeof(double)), *x = toile_alloc(sim->memory, rows, sizeof(double)),
           *y = toile_alloc(sim->memory, rows, sizeof(double)), worst = 0;
    float *r = calloc(rows, sizeof(float));
    CHECK(c->count > 0 && c->sound, "%d patches", c->count);
    if (k->assembly.diagonal_only) {
        k->assembly.diagonal_only = false;
        for (int chunk = 0; chunk < p->chunk_count; chunk++)
            sim->kernels->assemble(&k->assembly, chunk, &k->matrix, y);
    }
    for (int i = 0; i < n; i++)
        answer[i] = random_unit() - 0.5;
    for (int i = 0; i < p->n; i++)
        for (int a = 0; a < 3; a++)
            x[4 * i + a] = answer[3 * c->patch[i] + a];
    for (int q = 0; q < k->constraints.count; q++)
        memset(x + 4 * (size_t)k->constraints.particle[q], 0, 3 * sizeof(double)); /* pins: S = 0 */
    toile_multiply(sim->kernels, &k->matrix, x, y, 1);
    for (int q = 0; q < k->constraints.count; q++) { /* and what stands for them in C */
        int i = k->constraints.particle[q];
        const double *D = k->matrix.diagonal + 12 * (size_t)i;
        for (int a = 0; a < 3; a++)
            y[4 * i + a] = (D[0] + D[5] + D[10]) / 3 * answer[3 * c->patch[i] + a];
    }
    for (size_t i = 0; i < rows; i++)
        r[i] = (float)y[i];
    toile_coarse_restrict_sse2(c, r, 0, c->count);
    toile_coarse_solve_sse2(c);
    for (int i = 0; i < n; i++)
        worst = fmax(worst, fabs(c->shift[4 * (i / 3) + i % 3] - answer[i]));
    CHECK(worst < 1e-3, "%s: off by %g", model, worst); /* the right side is in single precision */
    free(answer);
    free(r);
    toile_free(sim->memory, x);
    toile_free(sim->memory, y);
    toile_destroy(w);
}

static void systems(void) {
    system_of_patches("continuum", false);
    system_of_patches("springs", false);
    system_of_patches("continuum", true);
}

/* What is no number or not definite leaves it out; the solver goes on without, to the same answer within its tolerance. */
static void breakdown(void) {
    toile_world *w = build("continuum", 41, 1, false, 3);
    toile_coarse *c = coarse_of(w);
    double kept = c->pair[0];
    c->pair[0] = NAN;
    toile_coarse_factor_sse2(c);
    CHECK(!c->sound, "a factor of NaN");
    c->pair[0] = -kept;
    toile_coarse_factor_sse2(c);
    CHECK(!c->sound, "a factor of what is not definite");
    c->pair[0] = kept;
    toile_coarse_factor_sse2(c);
    CHECK(c->sound, "and back");
    toile_destroy(w);
}

/* One step with the coarse level and without, from the same state and with a small tolerance: the same cloth. */
static void same_answer(const char *model) {
    toile_world *with = build(model, 41, 2, false, 3), *without = build(model, 41, 2, false, 3);
    toile_sim *a = toile_world_sim(with), *b = toile_world_sim(without);
    toile_settings tight = *a->settings;
    tight.solver_tolerance = 1e-5;
    a->settings = b->settings = &tight;
    coarse_of(without)->count = 0;
    toile_advance(with, 1.0 / 120);
    toile_advance(without, 1.0 / 120);
    double worst = 0;
    for (int i = 0; i < 4 * a->model->particle_count; i++)
        worst = fmax(worst, fabs(a->state.x[i] - b->state.x[i]));
    CHECK(worst < 1e-6, "%s: %g m apart", model, worst);
    CHECK(a->frame.iterations < b->frame.iterations && !a->frame.direct_solves, "%s: %ld iterations with, %ld without", model,
          (long)a->frame.iterations, (long)b->frame.iterations);
    toile_destroy(with);
    toile_destroy(without);
}

static void same_answers(void) {
    same_answer("continuum");
    same_answer("springs");
}

int main(int argc, char **argv) {
    RUN(patches);
    RUN(tiny);
    RUN(systems);
    RUN(breakdown);
    RUN(same_answers);
    FINISH();
}
