/* Links of springs (core/fast_links.h): every implicit spring once, runs that are what they say, and the same product as by rows. */
#include "check.h"

#include "fast.h"
#include "world.h"

/* A sheet of n x n, regular or with vertices moved and in another order and diagonals this way or that, some steps into its fall. */
static toile_world *build(int n, bool regular, const char *integrator) {
    toile_world *w = NULL;
    int fabric, sheet = 0, faces = 0, pins[2] = {0, 1}, size = 2 * (n - 1) * (n - 1);
    double *x = calloc((size_t)(3 * n * n), sizeof *x);
    int *sizes = calloc((size_t)size, sizeof *sizes), *corners = calloc(3 * (size_t)size, sizeof *corners);
    unsigned seed = 5;
    for (int i = 0; i < n * n; i++) {
        int at = regular ? i : (int)((long)i * 7919 % (n * n)), inner = !regular;
        for (int k = 0; k < 2; k++) {
            seed = seed * 1664525u + 1013904223u;
            x[3 * at + k] = 0.02 * ((k ? i / n : i % n) + (inner ? 0.5 * (seed / 4294967296.0 - 0.5) : 0));
        }
    }
    for (int j = 0; j + 1 < n; j++)
        for (int i = 0; i + 1 < n; i++) {
            int quad[4] = {i + j * n, i + 1 + j * n, i + 1 + (j + 1) * n, i + (j + 1) * n};
            for (int k = 0; k < 4 && !regular; k++)
                quad[k] = (int)((long)quad[k] * 7919 % (n * n));
            int two[6] = {quad[0], quad[1], quad[2], quad[0], quad[2], quad[3]};
            int other[6] = {quad[0], quad[1], quad[3], quad[1], quad[2], quad[3]};
            seed = seed * 1664525u + 1013904223u;
            memcpy(corners + 3 * faces, !regular && seed > 2147483648u ? other : two, sizeof two);
            sizes[faces] = sizes[faces + 1] = 3;
            faces += 2;
        }
    double *uv = calloc(6 * (size_t)size, sizeof *uv);
    for (int k = 0; k < 6 * faces; k++)
        uv[k] = x[3 * corners[k / 2] + k % 2];
    toile_mesh mesh = {.name = "sheet", .vertex_count = n * n, .positions = x, .face_count = faces, .face_sizes = sizes,
                       .face_vertices = corners, .corner_uv = uv, .panel_count = 1, .panel_fabrics = &fabric};
    bool ok = toile_create(NULL, &w) >= 0 && toile_set(w, "cloth_model", "springs") >= 0 &&
              toile_set(w, "threads", "1") >= 0 && toile_set(w, "integrator", integrator) >= 0 &&
              toile_set(w, "self_collision", "off") >= 0 &&
              toile_add_fabric(w, "cotton", &fabric) >= 0 && toile_add_mesh(w, &mesh, &sheet) >= 0;
    toile_pin pin = {sheet, 2, pins, {true, true, true}};
    ok = ok && toile_add_pin(w, &pin, NULL) >= 0 && toile_build(w) >= 0;
    for (int f = 0; ok && f < 3; f++)
        ok = toile_advance(w, 1.0 / 48) >= 0;
    CHECK(ok, "%s", w ? toile_message(w) : "no memory");
    free(x), free(sizes), free(corners), free(uv);
    return w;
}

/* Link number k goes from `row` to `column`: counts its springs. */
static void see(const toile_model *m, const toile_fast_links *l, int k, int row, int column, int *seen) {
    for (int s = 0; s < 2; s++) {
        int e = l->order[2 * k + s];
        seen[e]++;
        if (e == m->springs.padded)
            continue;
        int a = m->springs.vertex[0][e], b = m->springs.vertex[1][e];
        CHECK((a == row && b == column) || (a == column && b == row), "link %d from %d to %d has spring %d", k, row, column, e);
    }
}

static void check_lists(toile_world *w, double least_in_runs) {
    const toile_sim *sim = toile_world_sim(w);
    const toile_model *m = sim->model;
    const toile_pattern *p = &m->pattern;
    const toile_fast_links *l = &sim->work.fast.pattern.links;
    const double *share = sim->work.stability.spring_share;
    int *seen = calloc((size_t)m->springs.padded + 1, sizeof *seen), in_runs = 0;
    for (int c = 0; c < p->chunk_count; c++) {
        int at = l->run_link[c], end = p->chunk_begin[c + 1];
        for (int r = l->run_begin[c]; r < l->run_begin[c + 1]; r++) {
            const toile_link_run *run = &l->run[r];
            CHECK(run->count > 0 && run->count % 2 == 0, "a run of %d", run->count);
            CHECK(run->row >= p->chunk_begin[c] && run->row + run->count <= end, "a run leaves its chunk");
            CHECK(run->column >= end || run->column + run->count <= end, "a run crosses the end of its chunk");
            for (int k = 0; k < run->count; k++)
                see(m, l, at++, run->row + k, run->column + k, seen);
        }
        CHECK(at == l->run_link[c + 1], "%d links in runs, expected %d", at, l->run_link[c + 1]);
    }
    in_runs = l->run_link[p->chunk_count];
    for (int i = 0; i < p->n; i++)
        for (int k = l->loose_begin[i]; k < l->loose_begin[i + 1]; k++) {
            bool beyond = k >= l->loose_split[i];
            int c = 0;
            while (p->chunk_begin[c + 1] <= i)
                c++;
            CHECK((l->to[k] >= p->chunk_begin[c + 1]) == beyond, "link %d of row %d", k, i);
            see(m, l, k, i, l->to[k], seen);
        }
    CHECK(l->loose_begin[p->n] <= l->room, "%d links in room for %d", l->loose_begin[p->n], l->room);
    int implicit = 0;
    for (int e = 0; e < m->springs.padded; e++) {
        bool there = m->springs.vertex[0][e] != m->springs.vertex[1][e] && (!share || share[e] != 0);
        implicit += there;
        CHECK(seen[e] == there, "spring %d is in %d links", e, seen[e]);
    }
    printf("  %d springs, %d of %d links in runs\n", implicit, in_runs, l->loose_begin[p->n]);
    CHECK(in_runs >= least_in_runs * l->loose_begin[p->n], "%d of %d links in runs", in_runs, l->loose_begin[p->n]);
    free(seen);
}

typedef void multiply(const toile_fast *f, const toile_pattern *p, int chunk, const float *x, float *y);
typedef void add_spill(const toile_fast *f, const toile_pattern *p, int chunk, float *y);
extern multiply toile_fast_multiply_sse2, toile_fast_multiply_avx2, toile_fast_multiply_avx512;
extern add_spill toile_fast_multiply_spill_sse2, toile_fast_multiply_spill_avx2, toile_fast_multiply_spill_avx512;

static void check_product(toile_world *w) {
    static const struct {
        const char *name;
        multiply *product;
        add_spill *spill;
    } SETS[] = {{"sse2", toile_fast_multiply_sse2, toile_fast_multiply_spill_sse2},
                {"avx2", toile_fast_multiply_avx2, toile_fast_multiply_spill_avx2},
                {"avx512", toile_fast_multiply_avx512, toile_fast_multiply_spill_avx512}};
    toile_sim *sim = toile_world_sim(w);
    toile_fast *f = &sim->work.fast;
    const toile_pattern *p = &sim->model->pattern;
    size_t n = 4 * (size_t)p->n;
    double *x = sim->work.p, *y = sim->work.q, worst = 0, most = 0;
    float *first = malloc(n * sizeof *first);
    for (size_t i = 0; i < n; i++) {
        f->p[i] = i % 4 == 3 ? 0 : (float)sin(1.7 * (double)i);
        x[i] = f->p[i];
    }
    for (int c = 0; c < p->chunk_count; c++)
        sim->kernels->fast_multiply_springs(f, &sim->work.matrix, sim->work.spring, c, x, y);
    for (int s = 0; s < 3; s++) {
        if (!toile_kernels_find(SETS[s].name)) {
            SKIP("this processor has no %s", SETS[s].name);
            continue;
        }
        for (int c = 0; c < p->chunk_count; c++)
            SETS[s].product(f, p, c, f->p, f->s);
        for (int c = 0; c < p->chunk_count; c++)
            SETS[s].spill(f, p, c, f->s);
        for (size_t i = 0; i < n; i++) {
            worst = fmax(worst, fabs(f->s[i] - y[i]));
            most = fmax(most, fabs(y[i]));
        }
        CHECK(worst < 2e-6 * most, "%s: off by %g of %g", SETS[s].name, worst, most);
        if (s == 0)
            memcpy(first, f->s, n * sizeof *first);
        CHECK(memcmp(first, f->s, n * sizeof *first) == 0, "%s gives other bits", SETS[s].name);
    }
    free(first);
}

static void grid(void) {
    toile_world *w = build(41, true, "backward_euler");
    check_lists(w, 0.9);
    check_product(w);
    toile_destroy(w);
}

/* Many are loose. */
static void irregular(void) {
    toile_world *w = build(30, false, "backward_euler");
    check_lists(w, 0);
    check_product(w);
    toile_destroy(w);
}

/* Explicit springs are in no link. */
static void explicit_ones(void) {
    toile_world *w = build(41, true, "imex");
    check_lists(w, 0.9);
    check_product(w);
    toile_destroy(w);
}

int main(int argc, char **argv) {
    RUN(grid);
    RUN(irregular);
    RUN(explicit_ones);
    FINISH();
}
