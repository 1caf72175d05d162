/* Cloth against cloth: the search finds every near pair, couplings multiply as the matrix they stand for, zones move as
 * one, layers rest on each other, nothing depends on the number of threads, a saved state leads on, failing memory is told. */
#include "check.h"
#include "counting.h"

#include "world.h"

#include <stdint.h>

/* ---- scenes ---- */

/* Two sheets, one over the other, that fall on a sphere and fold. */
static toile_world *make_layers(const toile_hooks *hooks, const char *threads, toile_status *status) {
    toile_world *w = NULL;
    toile_grid lower = {.name = "lower", .nu = 15, .nv = 15, .origin = {-0.2, -0.2, 0.11}, .u_axis = {0.4, 0, 0},
                        .v_axis = {0, 0.4, 0}};
    toile_grid upper = lower;
    upper.name = "upper";
    upper.origin[0] += 0.011;
    upper.origin[2] += 0.01;
    toile_collider ball = {.name = "ball", .shape = TOILE_SPHERE, .size = {0.1}, .friction_static = 0.3,
                           .friction_kinetic = 0.3};
    int fabric;
    toile_status s = toile_create(hooks, &w);
    if (s == TOILE_OK && (s = toile_set(w, "threads", threads)) == TOILE_OK &&
        (s = toile_add_fabric(w, "cotton", &fabric)) == TOILE_OK &&
        (s = toile_add_grid(w, &lower, NULL)) == TOILE_OK && (s = toile_add_grid(w, &upper, NULL)) == TOILE_OK &&
        (s = toile_add_collider(w, &ball, NULL)) == TOILE_OK)
        s = toile_build(w);
    *status = s;
    return w;
}

static toile_world *layers(const char *threads) {
    toile_status s;
    toile_world *w = make_layers(NULL, threads, &s);
    if (s != TOILE_OK) {
        printf("cannot build: %s\n", toile_message(w));
        exit(1);
    }
    return w;
}

static void run(toile_world *w, int frames) {
    for (int f = 0; f < frames; f++)
        if (toile_advance(w, 1.0 / 24) < 0) {
            printf("%s\n", toile_message(w));
            exit(1);
        }
}

/* ---- the search ---- */

static double random_number(uint64_t *seed) {
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / 9007199254740992.0 - 0.5;
}

static int compare_keys(const void *a, const void *b) {
    uint64_t p = *(const uint64_t *)a, q = *(const uint64_t *)b;
    return p < q ? -1 : p > q;
}

/* Every pair without a common point whose nearest distance somewhere at the begin or end is below reach, the slow way. */
static int slow_search(const toile_skin *s, double reach, uint64_t *keys) {
    int count = 0;
    double x[4][3];
    toile_near near;
    for (int kind = 0; kind < 2; kind++)
        for (int a = 0; a < (kind ? s->cloth_edges : s->cloth_points); a++)
            for (int b = kind ? a + 1 : 0; b < (kind ? s->cloth_edges : s->cloth_triangles); b++) {
                toile_pair pair = {.key = (uint64_t)kind << 62 | (uint64_t)a << 31 | (uint64_t)b, .point = {a, 0, 0, 0}};
                if (kind)
                    memcpy(pair.point, s->edge + 2 * a, 2 * sizeof(int)), memcpy(pair.point + 2, s->edge + 2 * b, 2 * sizeof(int));
                else
                    memcpy(pair.point + 1, s->triangle + 3 * b, 3 * sizeof(int));
                bool common = false;
                for (int i = 0; i < 1 + kind; i++)
                    for (int j = 1 + kind; j < 4; j++)
                        common = common || pair.point[i] == pair.point[j];
                double least = INFINITY;
                for (int end = 0; end < 2 && !common; end++) {
                    toile_pair_points(end ? s->end : s->begin, &pair, x);
                    toile_nearest(toile_pair_kind(&pair), (const double(*)[3])x, &near);
                    least = fmin(least, near.distance);
                }
                if (least < reach)
                    keys[count++] = pair.key;
            }
    return count;
}

static bool has_all(const toile_skin *s, int triangle, const int *points, int count) {
    for (int i = 0; i < count; i++) {
        const int *t = s->triangle + 3 * triangle;
        if (t[0] != points[i] && t[1] != points[i] && t[2] != points[i])
            return false;
    }
    return true;
}

/* May the search leave a pair out? Only where it lies in two triangles that share an edge, or in the fan of a calm point. */
static bool left_out(const toile_skin *s, uint64_t key) {
    int first = (int)(key >> 31 & 0x7fffffff), second = (int)(key & 0x7fffffff);
    bool edges = key >> 62;
    const int *a = edges ? s->edge + 2 * first : &first, *b = edges ? s->edge + 2 * second : s->triangle + 3 * second;
    for (int t = 0; t < s->cloth_triangles; t++)
        for (int u = 0; has_all(s, t, a, edges ? 2 : 1) && u < s->cloth_triangles; u++) {
            if (!has_all(s, u, b, edges ? 2 : 3))
                continue;
            int common = 0;
            for (int c = 0; c < 3; c++) {
                int p = s->triangle[3 * u + c];
                bool shared = has_all(s, t, &p, 1);
                common += shared;
                if (shared && s->calm[p])
                    return true;
            }
            if (common >= 2)
                return true;
        }
    return false;
}

/* Do the two of a pair come nearer than this on their way? */
static bool meets(const toile_skin *s, uint64_t key, double distance) {
    int first = (int)(key >> 31 & 0x7fffffff), second = (int)(key & 0x7fffffff);
    toile_pair pair = {.key = key, .point = {first, 0, 0, 0}};
    double begin[4][3], end[4][3], time;
    if (key >> 62)
        memcpy(pair.point, s->edge + 2 * first, 2 * sizeof(int)), memcpy(pair.point + 2, s->edge + 2 * second, 2 * sizeof(int));
    else
        memcpy(pair.point + 1, s->triangle + 3 * second, 3 * sizeof(int));
    toile_pair_points(s->begin, &pair, begin), toile_pair_points(s->end, &pair, end);
    return toile_ccd(toile_pair_kind(&pair), (const double(*)[3])begin, (const double(*)[3])end, distance, 0.1 * distance, &time);
}

/* A crumpled sheet that moves at random: nothing calm, so everything near has to be found; and found again when a tenth of it
 * goes elsewhere, the rest within the drift. Then one that is calm but for single points: there what is near in a patch that lies
 * as in the material may be left out, not what meets. */
static void finds_all(void) {
    toile_world *w = layers("2");
    toile_sim *sim = toile_world_sim(w);
    toile_skin skin;
    toile_error error;
    toile_pairs pairs = {0};
    uint64_t seed = 7;
    CHECK(toile_skin_make(sim->memory, sim->model, NULL, 0, 2, &skin, &error) == TOILE_OK, "%s", error.message);
    uint64_t *keys = malloc(4000000 * sizeof *keys), *found = malloc(4000000 * sizeof *found);
    for (int trial = 0; trial < 48; trial++) {
        double crumple = trial < 4 ? 0.03 : trial < 8 ? 0.01 : 0.001, way = trial / 2 % 2 ? 0.02 : 0.001, reach = 0.004, drift = 0.0005;
        bool again = trial % 2, turns = trial >= 8;
        for (int p = 0; again && p < skin.cloth_points; p++) {
            bool far = random_number(&seed) > 0.4;
            double most = fmin(drift, skin.hold[p]);
            for (int k = 0; k < 3; k++)
                skin.end[4 * p + k] += (far ? way : 0.5 * most) * random_number(&seed);
        }
        for (int i = 0; !again && i < 4 * skin.cloth_points; i++) {
            skin.begin[i] = i % 4 == 3 ? 0 : sim->state.x[i] + crumple * random_number(&seed);
            skin.end[i] = i % 4 == 3 ? 0 : skin.begin[i] + way * random_number(&seed);
        }
        for (int p = 0; turns && p < skin.cloth_points; p++) /* a sheet that lies flat but for triangles that a point turns over */
            for (int k = 0; random_number(&seed) > 0.45 && k < 2; k++)
                skin.end[4 * p + k] += 0.1 * random_number(&seed);
        CHECK(toile_skin_search(&skin, sim->model, (toile_reach){reach, -1, drift}, again, false, 2, &pairs, &error) == TOILE_OK, "%s",
              error.message);
        int fresh = 0;
        for (int t = 0; t < skin.cloth_triangles; t++)
            fresh += skin.fresh[skin.point_count + t];
        CHECK(again ? fresh < 0.9 * skin.cloth_triangles : fresh == skin.cloth_triangles, "trial %d: %d of %d triangles were looked for", trial,
              fresh, skin.cloth_triangles);
        for (int i = 0; i < pairs.count; i++)
            found[i] = pairs.pair[i].key;
        qsort(found, (size_t)pairs.count, sizeof *found, compare_keys);
        int twice = 0;
        for (int i = 1; i < pairs.count; i++)
            twice += found[i] == found[i - 1];
        CHECK(twice == 0, "%d pairs were found twice", twice);
        int near = slow_search(&skin, reach, keys), missed = 0;
        for (int i = 0; i < near; i++)
            missed += !bsearch(&keys[i], found, (size_t)pairs.count, sizeof *found, compare_keys) && !left_out(&skin, keys[i]) &&
                      (!turns || meets(&skin, keys[i], 1e-9));
        CHECK(missed == 0, "trial %d: %d of %d near pairs were missed", trial, missed, near);
        CHECK(near > 100, "trial %d has only %d near pairs", trial, near);
    }
    free(keys);
    free(found);
    toile_free(sim->memory, pairs.pair);
    toile_skin_free(&skin);
    toile_destroy(w);
}

/* At the end of every frame the list that steps kept up is what a search from nothing finds. */
static void lists_hold(void) {
    toile_world *w = layers("1");
    toile_sim *sim = toile_world_sim(w);
    toile_self *self = &sim->self;
    int most = 0, other = 0;
    for (int frame = 0; frame < 24; frame++) {
        run(w, 1);
        int count = self->near.count;
        toile_pair *kept = malloc(((size_t)count + 1) * sizeof *kept);
        memcpy(kept, self->near.pair, (size_t)count * sizeof *kept);
        CHECK(self->near_known, "frame %d: pairs at its end are not known", frame);
        self->skin.listed = false;
        toile_self_set_points(sim, sim->state.x);
        toile_self_search(sim, true);
        toile_self_keep_near(sim, 0);
        other += count != self->near.count;
        for (int i = 0; i < count && count == self->near.count; i++)
            other += kept[i].key != self->near.pair[i].key;
        most = count > most ? count : most;
        free(kept);
    }
    CHECK(other == 0, "%d pairs are in one list and not in the other", other);
    CHECK(most > 100, "only %d pairs were near", most);
    toile_destroy(w);
}

/* A mesh whose faces are shuffled and lie apart in the material, as one that is cut to its own shape: neighbours stand together in the
 * tree all the same. By their order in the file the boxes of eight triangles were as large as the sheet. */
static void shuffled_faces(void) {
    enum { N = 24, VERTICES = (N + 1) * (N + 1), FACES = N * N };
    static double x[3 * VERTICES], uv[8 * FACES];
    static int sizes[FACES], corners[4 * FACES], order[FACES], panels[FACES];
    uint64_t seed = 5;
    for (int v = 0; v < VERTICES; v++)
        x[3 * v] = v % (N + 1), x[3 * v + 1] = v / (N + 1), x[3 * v + 2] = 0;
    for (int f = 0; f < FACES; f++)
        order[f] = f;
    for (int f = FACES - 1; f > 0; f--) {
        int other = (int)((random_number(&seed) + 0.5) * (f + 1)), kept = order[f];
        order[f] = order[other], order[other] = kept;
    }
    for (int f = 0; f < FACES; f++) {
        int a = order[f] / N * (N + 1) + order[f] % N;
        sizes[f] = 4;
        memcpy(corners + 4 * f, (int[]){a, a + 1, a + N + 2, a + N + 1}, 4 * sizeof(int));
        memcpy(uv + 8 * f, (double[]){0, 0, 1, 0, 1, 1, 0, 1}, 8 * sizeof(double));
    }
    int fabric;
    toile_world *w = NULL;
    toile_mesh mesh = {.name = "sheet", .vertex_count = VERTICES, .positions = x, .face_count = FACES, .face_sizes = sizes,
                       .face_vertices = corners, .corner_uv = uv, .panel_count = 1, .panel_names = (const char *const[]){"panel"},
                       .panel_fabrics = (int[]){0}, .face_panels = panels};
    CHECK(toile_create(NULL, &w) == TOILE_OK && toile_add_fabric(w, "cotton", &fabric) == TOILE_OK &&
              toile_add_mesh(w, &mesh, NULL) == TOILE_OK && toile_build(w) == TOILE_OK, "%s", toile_message(w));
    run(w, 1);
    const toile_tree *tree = &toile_world_sim(w)->self.skin.tree;
    double widest = 0;
    int seen = 0;
    for (int i = 0; i < 2 * tree->count - 1; i++)
        if (tree->nodes[i].right && tree->nodes[i].item <= 9) {
            seen++;
            for (int k = 0; k < 2; k++)
                widest = fmax(widest, tree->box[i].hi[k] - tree->box[i].lo[k]);
        }
    CHECK(seen > 2 * FACES / 9 && widest < 4.5, "%d boxes, the widest %g edges", seen, widest);
    toile_destroy(w);
}

/* ---- couplings ---- */

static void couplings_are_a_matrix(void) {
    enum { N = 9, COUNT = 7 };
    toile_memory memory;
    toile_couplings c;
    static const int CHUNKS[3] = {0, 4, N};
    static const int PLACE[9] = {0, 1, 2, 1, 3, 4, 2, 4, 5};
    double A[3 * N][3 * N] = {{0}}, diagonal[12 * N] = {0}, b[4 * N] = {0}, x[4 * N], y[4 * N] = {0}, expected[3 * N] = {0};
    float single[12 * N] = {0}, xs[4 * N], ys[4 * N] = {0};
    uint64_t seed = 3;
    toile_memory_init(&memory, NULL);
    CHECK(toile_couplings_make(&memory, N, 2, &c), "no memory");
    for (int i = 0; i < COUNT; i++) {
        toile_coupling *item = toile_couplings_add(&memory, &c);
        memset(item, 0, sizeof *item);
        for (int k = 0; k < 4; k++) {
            item->particle[k] = k == 3 && i % 2 ? -1 : (i + 2 * k) % N;
            item->weight[k] = item->particle[k] < 0 ? 0 : random_number(&seed);
        }
        for (int k = 0; k < 6; k++)
            item->tensor[k] = random_number(&seed);
        for (int p = 0; p < 4; p++)
            for (int q = 0; q < 4; q++)
                for (int k = 0; item->particle[p] >= 0 && item->particle[q] >= 0 && k < 9; k++)
                    A[3 * item->particle[p] + k / 3][3 * item->particle[q] + k % 3] +=
                        item->weight[p] * item->weight[q] * item->tensor[PLACE[k]];
    }
    toile_couplings_sort(&c, N, CHUNKS, 2);
    toile_couplings_assemble(&c, diagonal, single, NULL, b);
    for (int i = 0; i < 4 * N; i++) {
        x[i] = i % 4 == 3 ? 0 : random_number(&seed);
        xs[i] = (float)x[i];
    }
    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            for (int l = 0; l < 3; l++)
                y[4 * i + k] += diagonal[12 * i + 4 * k + l] * x[4 * i + l];
            ys[4 * i + k] = (float)y[4 * i + k];
            for (int j = 0; j < 3 * N; j++)
                expected[3 * i + k] += A[3 * i + k][j] * x[4 * (j / 3) + j % 3];
        }
    toile_couplings_pull(&c, 0, c.count, x);
    toile_couplings_pull_single(&c, 0, c.count, xs);
    for (int chunk = 0; chunk < 2; chunk++) {
        toile_couplings_add_rows(&c, chunk, x, y);
        toile_couplings_add_rows_single(&c, chunk, xs, ys);
    }
    for (int i = 0; i < 3 * N; i++) {
        CHECK(fabs(y[4 * (i / 3) + i % 3] - expected[i]) < 1e-13, "row %d: %g, expected %g", i, y[4 * (i / 3) + i % 3], expected[i]);
        CHECK(fabs(ys[4 * (i / 3) + i % 3] - expected[i]) < 1e-5, "row %d: %g in single, expected %g", i,
              (double)ys[4 * (i / 3) + i % 3], expected[i]);
    }
    toile_couplings_free(&memory, &c);
    CHECK(memory.live == 0, "%llu blocks are left", (unsigned long long)memory.live);
}

/* ---- zones ---- */

/* Momentum and momentum about the origin of what goes from begin to end in a step, kg m, kg m^2. */
static void momenta(const toile_sim *sim, int count, double sum[6]) {
    memset(sum, 0, 6 * sizeof *sum);
    for (int p = 0; p < count; p++) {
        const double *x = sim->self.skin.begin + 4 * p, *y = sim->self.skin.end + 4 * p;
        double m = sim->model->mass[p], d[3] = {m * (y[0] - x[0]), m * (y[1] - x[1]), m * (y[2] - x[2])};
        for (int k = 0; k < 3; k++) {
            sum[k] += d[k];
            sum[3 + k] += x[(k + 1) % 3] * d[(k + 2) % 3] - x[(k + 2) % 3] * d[(k + 1) % 3];
        }
    }
}

/* Points in any disorder, and points in a line: a zone keeps both momenta, and nothing in it comes nearer to anything else. */
static void zones_turn(void) {
    enum { COUNT = 24 };
    toile_world *w = layers("1");
    run(w, 1);
    toile_sim *sim = toile_world_sim(w);
    toile_self *self = &sim->self;
    uint64_t seed = 5;
    for (int trial = 0; trial < 8; trial++) {
        double before[6], after[6], nearer = 0, size = 0;
        for (int i = 0; i < 4 * self->skin.cloth_points; i++) {
            double turn = trial % 2 ? self->skin.begin[i] : random_number(&seed);
            self->skin.begin[i] = i % 4 == 3 ? 0 : trial % 4 == 3 && i % 4 ? 0.1 : random_number(&seed);
            self->skin.end[i] = i % 4 == 3 ? 0 : self->skin.begin[i] + 0.3 * turn;
        }
        for (int i = 0; i + 3 < COUNT; i++) /* a chain: all of them are one zone */
            self->hit[i] = (toile_press){.pair = {.point = {i, i + 1, i + 2, i + 3}}};
        self->hit_count = COUNT - 3;
        momenta(sim, COUNT, before);
        toile_zones_begin(sim);
        toile_zones_join(sim);
        momenta(sim, COUNT, after);
        self->hit_count = 0;
        for (int k = 0; k < 6; k++)
            size = fmax(size, fabs(before[k]));
        for (int k = 0; k < 6; k++)
            CHECK(fabs(after[k] - before[k]) < 1e-6 * size, "trial %d: momentum %d of %g has become %g", trial, k, before[k], after[k]);
        for (int p = 0; p < COUNT; p++)
            for (int q = 0; q < p; q++)
                for (double t = 0.25; t <= 1; t += 0.25) {
                    double then = 0, now = 0;
                    for (int k = 0; k < 3; k++) {
                        double x = self->skin.begin[4 * p + k] - self->skin.begin[4 * q + k];
                        double y = self->skin.end[4 * p + k] - self->skin.end[4 * q + k];
                        then += x * x;
                        now += (x + t * (y - x)) * (x + t * (y - x));
                    }
                    nearer = fmax(nearer, sqrt(then) - sqrt(now));
                }
        CHECK(nearer < 1e-12, "trial %d: two in a zone came nearer by %g m", trial, nearer);
    }
    toile_destroy(w);
}

/* ---- steps ---- */

/* Two layers of cotton, factor 1, of silk, factor 0.6, and silk on cotton. */
static void fabrics_rub(void) {
    toile_world *w = layers("1");
    toile_sim *sim = toile_world_sim(w);
    int n = sim->model->particle_count, seen = 0, wrong = 0;
    for (int i = 0; i < n; i++)
        sim->model->friction[i] = sim->rules.garment[i] ? 0.6 : 1;
    for (int frame = 0; frame < 12; frame++) {
        run(w, 1);
        for (int i = 0; i < sim->self.couplings.count; i++) {
            const toile_coupling *c = &sim->self.couplings.item[i];
            int silk = 0, cotton = 0;
            for (int a = 0; a < 4; a++)
                if (c->particle[a] >= 0)
                    *(sim->rules.garment[c->particle[a]] ? &silk : &cotton) += 1;
            double expected = sim->settings->self_friction * (silk && cotton ? sqrt(0.6) : silk ? 0.6 : 1);
            wrong += !(fabs(c->friction - expected) < 1e-9);
            seen += silk && cotton;
        }
    }
    CHECK(wrong == 0 && seen > 100, "%d of %d contacts have another friction than their fabrics'", wrong, seen);
    toile_destroy(w);
}

static void same_bits(void) {
    static const char *const THREADS[] = {"1", "2", "3"};
    uint64_t first = 0;
    for (int t = 0; t < 3; t++) {
        toile_world *w = layers(THREADS[t]);
        run(w, 14);
        first = t ? first : toile_state_hash(w);
        CHECK(toile_state_hash(w) == first, "%s threads give other bits", THREADS[t]);
        CHECK(toile_world_sim(w)->total.couplings > 200, "the layers touch in %lld contacts only",
              (long long)toile_world_sim(w)->total.couplings);
        toile_destroy(w);
    }
    toile_world *a = layers("1"), *b = layers("2");
    run(a, 8);
    size_t size = toile_state_size(a);
    void *bytes = malloc(size);
    CHECK(toile_save_state(a, bytes, size) == TOILE_OK && toile_restore_state(b, bytes, size) == TOILE_OK, "%s", toile_message(b));
    CHECK(toile_place_inputs(b) == TOILE_OK, "%s", toile_message(b));
    run(b, 6);
    CHECK(toile_state_hash(b) == first, "a restored state leads elsewhere");
    free(bytes);
    toile_destroy(a);
    toile_destroy(b);
}

/* One sheet on another that is held: it sinks in by a small part of thickness, and stays at rest. */
static void rests(void) {
    toile_world *w = NULL;
    int held, fabric, corners[25 * 25];
    double x[3 * 81];
    toile_create(NULL, &w);
    toile_set(w, "threads", "1");
    toile_set(w, "self_thickness", "0.002");
    toile_set(w, "drag_model", "none");
    toile_add_fabric(w, "cotton", &fabric);
    toile_grid lower = {.name = "lower", .nu = 25, .nv = 25, .origin = {-0.5, -0.5, 0}, .u_axis = {1, 0, 0}, .v_axis = {0, 1, 0}};
    toile_grid upper = {.name = "upper", .nu = 9, .nv = 9, .origin = {-0.15, -0.16, 0.0021}, .u_axis = {0.3, 0, 0},
                        .v_axis = {0, 0.3, 0}};
    for (int i = 0; i < 25 * 25; i++)
        corners[i] = i;
    toile_pin pin = {0, 25 * 25, corners, {true, true, true}};
    CHECK(toile_add_grid(w, &lower, &held) == TOILE_OK && toile_add_grid(w, &upper, NULL) == TOILE_OK &&
              toile_add_pin(w, &pin, NULL) == TOILE_OK && toile_build(w) == TOILE_OK,
          "%s", toile_message(w));
    run(w, 12);
    CHECK(toile_get_positions(w, 1, x) == TOILE_OK, "%s", toile_message(w));
    double low = 1, high = -1;
    for (int i = 0; i < 81; i++) {
        low = fmin(low, x[3 * i + 2]);
        high = fmax(high, x[3 * i + 2]);
    }
    CHECK(low > 0.0017 && high < 0.0022, "heights %g to %g m, expected about 0.002", low, high);
    toile_energies e = toile_sim_energies(toile_world_sim(w));
    double mass = 0;
    for (int i = 0; i < toile_world_sim(w)->model->particle_count; i++)
        mass += toile_world_sim(w)->model->mass[i];
    CHECK(e.kinetic < mass * 1e-5, "kinetic energy is %g J", e.kinetic);
    CHECK(toile_world_sim(w)->total.hits == 0 && toile_world_sim(w)->total.zones == 0, "resting needs the guard");
    toile_destroy(w);
}

/* A plate that leans by `degrees` from upright, to the left (-1) or to the right (1), both around one line. */
static void leaning(int side, double degrees, double position[3], double rotation[4]) {
    double turn = side * degrees * M_PI / 180, x = side * 0.01, z = 0.06;
    memcpy(position, (double[]){x * cos(turn) + z * sin(turn), 0, z * cos(turn) - x * sin(turn)}, 3 * sizeof *position);
    memcpy(rotation, (double[]){cos(turn / 2), 0, sin(turn / 2), 0}, 4 * sizeof *rotation);
}

/* A strip of cloth over the line that two plates lean around, by `degrees`. */
static toile_world *plates(double degrees, const char *gravity) {
    static const char *const NAMES[] = {"left", "right"};
    toile_world *w = NULL;
    toile_grid strip = {.name = "strip", .nu = 33, .nv = 9, .origin = {-0.08, -0.02, 0.06}, .u_axis = {0.16, 0, 0},
                        .v_axis = {0, 0.04, 0}};
    if (degrees < 30) /* between the plates, and folded by them */
        strip = (toile_grid){.name = "strip", .nu = 9, .nv = 9, .origin = {-0.01, -0.02, 0.11}, .u_axis = {0.02, 0, 0},
                             .v_axis = {0, 0.04, 0}};
    toile_create(NULL, &w);
    toile_set(w, "threads", "1");
    toile_set(w, "gravity", gravity);
    toile_add_fabric(w, "cotton", &strip.fabric);
    toile_add_grid(w, &strip, NULL);
    for (int c = 0; c < 2; c++) {
        toile_collider plate = {.name = NAMES[c], .shape = TOILE_BOX, .size = {0.01, 0.1, 0.06}, .friction_static = 0.3,
                                .friction_kinetic = 0.3};
        leaning(c ? 1 : -1, degrees, plate.position, plate.rotation);
        CHECK(toile_add_collider(w, &plate, NULL) == TOILE_OK, "%s", toile_message(w));
    }
    CHECK(toile_build(w) == TOILE_OK, "%s", toile_message(w));
    return w;
}

/* Two plates close on cloth between them and open wide: it rides, is let go, and is outside of both, as deep in the crease as ever. */
static void rides_end(void) {
    static const double KEYS[][2] = {{0, 60}, {8, 60}, {24, 1}, {30, 1}, {54, 55}, {66, 55}};
    toile_world *w = plates(KEYS[0][1], "0,0,-9.81");
    int64_t most = 0;
    for (int frame = 1, k = 0; frame <= 66; frame++) {
        k += frame > KEYS[k + 1][0];
        double part = (frame - KEYS[k][0]) / (KEYS[k + 1][0] - KEYS[k][0]), position[3], rotation[4], deepest;
        for (int c = 0; c < 2; c++) {
            leaning(c ? 1 : -1, KEYS[k][1] + part * (KEYS[k + 1][1] - KEYS[k][1]), position, rotation);
            toile_pose_collider(w, c, position, rotation);
        }
        run(w, 1);
        int64_t riders = toile_world_sim(w)->frame.riders;
        most = riders > most ? riders : most;
        CHECK(frame < 60 || (riders == 0 && toile_sim_penetrations(toile_world_sim(w), &deepest) == 0),
              "frame %d: %lld particles ride between plates that are open", frame, (long long)riders);
    }
    CHECK(most > 20, "%lld particles rode at most: the plates did not close", (long long)most);
    CHECK(toile_world_sim(w)->total.rested == 0, "no answer in %lld steps", (long long)toile_world_sim(w)->total.rested);
    toile_destroy(w);
}

/* Cloth that a load draws into a narrow crease of what stands still is not pinched: it stays outside of both walls. */
static void creases_hold(void) {
    toile_world *w = plates(6, "0,0,-40");
    int64_t most = 0;
    double deepest;
    int inside = 0;
    for (int frame = 1; frame <= 48; frame++) {
        run(w, 1);
        most = toile_world_sim(w)->frame.riders > most ? toile_world_sim(w)->frame.riders : most;
        inside += toile_sim_penetrations(toile_world_sim(w), &deepest);
    }
    CHECK(most == 0 && inside == 0, "%lld particles ride, %d were inside, in a crease that stands still", (long long)most, inside);
    toile_destroy(w);
}

/* Particles against particles: an even sheet is carried by one of the same mesh, the same way for any number of threads. */
static void cheap(void) {
    uint64_t first = 0;
    for (int t = 0; t < 2; t++) {
        toile_world *w = NULL;
        int fabric, all[13 * 13];
        double x[3 * 13 * 13], low = 1;
        toile_create(NULL, &w);
        toile_set(w, "threads", t ? "2" : "1");
        toile_set(w, "self_collision", "cheap");
        toile_add_fabric(w, "cotton", &fabric);
        toile_grid lower = {.name = "lower", .nu = 13, .nv = 13, .origin = {-0.15, -0.15, 0}, .u_axis = {0.3, 0, 0},
                            .v_axis = {0, 0.3, 0}};
        toile_grid upper = lower;
        upper.name = "upper";
        upper.origin[2] = 0.03;
        upper.origin[0] += 0.002;
        for (int i = 0; i < 13 * 13; i++)
            all[i] = i;
        toile_pin pin = {0, 13 * 13, all, {true, true, true}};
        CHECK(toile_add_grid(w, &lower, NULL) == TOILE_OK && toile_add_grid(w, &upper, NULL) == TOILE_OK &&
                  toile_add_pin(w, &pin, NULL) == TOILE_OK && toile_build(w) == TOILE_OK,
              "%s", toile_message(w));
        run(w, 12);
        toile_get_positions(w, 1, x);
        for (int i = 0; i < 13 * 13; i++)
            low = fmin(low, x[3 * i + 2]);
        CHECK(low > 0.004, "the upper sheet is at %g m, expected about 0.0125", low);
        CHECK(toile_world_sim(w)->total.couplings > 500, "only %lld contacts", (long long)toile_world_sim(w)->total.couplings);
        first = t ? first : toile_state_hash(w);
        CHECK(toile_state_hash(w) == first, "2 threads give other bits");
        toile_destroy(w);
    }
}

/* Two sheets that cross and may: nothing pulls them apart. Without that rule they are. */
static void crossing_allowed(void) {
    for (int allowed = 0; allowed < 2; allowed++) {
        toile_world *w = NULL;
        int fabric;
        double x[3 * 81], moved = 0;
        toile_create(NULL, &w);
        toile_set(w, "threads", "1");
        toile_set(w, "gravity", "0,0,0");
        toile_add_fabric(w, "cotton", &fabric);
        toile_grid flat = {.name = "flat", .nu = 9, .nv = 9, .origin = {-0.1, -0.1, 0}, .u_axis = {0.2, 0, 0}, .v_axis = {0, 0.2, 0}};
        /* askew: of two sheets that stand straight on each other neither knows where to go */
        toile_grid upright = {.name = "upright", .nu = 9, .nv = 9, .origin = {-0.1, 0.013, -0.04}, .u_axis = {0.2, 0.03, 0},
                              .v_axis = {-0.0075, 0.05, 0.2}};
        CHECK(toile_add_grid(w, &flat, NULL) == TOILE_OK && toile_add_grid(w, &upright, NULL) == TOILE_OK &&
                  (!allowed || toile_exclude_garments(w, 0, 1) == TOILE_OK) && toile_build(w) == TOILE_OK,
              "%s", toile_message(w));
        run(w, 4);
        toile_get_positions(w, 0, x);
        for (int i = 0; i < 81; i++)
            moved = fmax(moved, fabs(x[3 * i + 2]));
        CHECK(allowed ? moved < 1e-9 : moved > 1e-4, "crossing is %s, and the flat sheet moved by %g m",
              allowed ? "allowed" : "not allowed", moved);
        toile_destroy(w);
    }
}

static void failing_memory(void) {
    counter all = {0, -1, 0};
    toile_hooks hooks = {count_allocate, count_release, NULL, &all};
    toile_status s;
    toile_world *w = make_layers(&hooks, "1", &s);
    int64_t built = all.calls;
    for (int f = 0; f < 8; f++)
        toile_advance(w, 1.0 / 24);
    toile_destroy(w);
    CHECK(all.calls > built + 10, "frames make only %lld allocations", (long long)(all.calls - built));
    for (int64_t n = built; n < all.calls; n++) {
        counter c = {0, n, 0};
        hooks.user = &c;
        w = make_layers(&hooks, "1", &s);
        for (int f = 0; f < 8 && s == TOILE_OK; f++)
            s = toile_advance(w, 1.0 / 24);
        CHECK(s == TOILE_NO_MEMORY && strstr(toile_message(w), "memory"), "allocation %lld failing gives %s: %s", (long long)n,
              toile_status_name(s), toile_message(w));
        toile_destroy(w);
        CHECK(c.live == 0, "allocation %lld failing leaves %lld blocks", (long long)n, (long long)c.live);
    }
}

int main(int argc, char **argv) {
    RUN(finds_all);
    RUN(lists_hold);
    RUN(shuffled_faces);
    RUN(couplings_are_a_matrix);
    RUN(zones_turn);
    RUN(fabrics_rub);
    RUN(rests);
    RUN(rides_end);
    RUN(creases_hold);
    RUN(cheap);
    RUN(crossing_allowed);
    RUN(same_bits);
    RUN(failing_memory);
    FINISH();
}
