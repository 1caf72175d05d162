/* The step as a whole: same bits for any number of threads and any instruction set, no allocation, state saved and
 * restored, cancelled and refused calls without a trace, every failing allocation survived. */
#include "check.h"
#include "counting.h"

#include "solve_linear.h"
#include "world.h"

#include <stdint.h>

/* A sheet with a corner pinned and moving, falling over a mesh block and a sphere. Returns the first failure. */
static toile_status build_scene(toile_world *w, const char *model, const char *threads) {
    static const double CUBE[24] = {-1, -1, -1, 1, -1, -1, 1, 1, -1, -1, 1, -1, -1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, 1};
    static const int FACES[36] = {0, 2, 1, 0, 3, 2, 4, 5, 6, 4, 6, 7, 0, 1, 5, 0, 5, 4,
                                  2, 3, 7, 2, 7, 6, 1, 2, 6, 1, 6, 5, 0, 4, 7, 0, 7, 3};
    double block[24];
    int fabric, sheet, corner[1] = {0};
    toile_status s;
    for (int i = 0; i < 24; i++)
        block[i] = 0.1 * CUBE[i] + (i % 3 == 0 ? 0.2 : 0);
    toile_grid grid = {.name = "sheet", .nu = 21, .nv = 19, .origin = {-0.4, -0.4, 0.13}, .u_axis = {0.8, 0, 0},
                       .v_axis = {0, 0.8, 0}};
    toile_collider ball = {.name = "ball", .shape = TOILE_SPHERE, .size = {0.12}, .position = {-0.2, 0, 0},
                           .friction_static = 0.4, .friction_kinetic = 0.3};
    toile_collider cube = {.name = "cube", .shape = TOILE_MESH, .vertex_count = 8, .positions = block, .triangle_count = 12,
                           .triangles = FACES, .friction_static = 0.4, .friction_kinetic = 0.3, .thickness = 0.001};
    toile_pin pin = {0, 1, corner, {true, true, true}};
    if ((s = toile_set(w, "cloth_model", model)) < 0 || (s = toile_set(w, "threads", threads)) < 0 ||
        (s = toile_add_fabric(w, "polyester", &fabric)) < 0)
        return s;
    grid.fabric = fabric;
    if ((s = toile_add_grid(w, &grid, &sheet)) < 0 || (s = toile_add_collider(w, &ball, NULL)) < 0 ||
        (s = toile_add_collider(w, &cube, NULL)) < 0 || (s = toile_add_pin(w, &pin, NULL)) < 0)
        return s;
    return toile_build(w);
}

/* Frame f: the ball rises, the cube slides, the pinned corner goes up. */
static toile_status move_scene(toile_world *w, int f) {
    static const double CUBE[24] = {-1, -1, -1, 1, -1, -1, 1, 1, -1, -1, 1, -1, -1, -1, 1, 1, -1, 1, 1, 1, 1, -1, 1, 1};
    double at[3] = {-0.2, 0, 0.004 * f}, turn[4] = {cos(0.02 * f), 0, 0, sin(0.02 * f)}, block[24];
    double corner[3] = {-0.4, -0.4, 0.13 + 0.005 * f};
    toile_status s;
    for (int i = 0; i < 24; i++)
        block[i] = 0.1 * CUBE[i] + (i % 3 == 0 ? 0.2 + 0.003 * f : 0);
    if ((s = toile_pose_collider(w, 0, at, turn)) < 0 || (s = toile_deform_collider(w, 1, block)) < 0)
        return s;
    return toile_move_pin(w, 0, corner);
}

static toile_world *make(const char *model, const char *threads, const char *isa) {
    toile_world *w = NULL;
    if (toile_create(NULL, &w) < 0 || build_scene(w, model, threads) < 0) {
        printf("cannot build: %s\n", toile_message(w));
        exit(1);
    }
    if (isa)
        toile_world_sim(w)->kernels = toile_kernels_find(isa);
    return w;
}

static void run(toile_world *w, int from, int to) {
    for (int f = from; f <= to; f++)
        if (move_scene(w, f) < 0 || toile_advance(w, 1.0 / 24) < 0) {
            printf("frame %d: %s\n", f, toile_message(w));
            exit(1);
        }
}

static void same_bits(void) {
    static const char *const MODELS[] = {"continuum", "springs"}, *const THREADS[] = {"1", "2", "3", "5"};
    for (int m = 0; m < 2; m++) {
        uint64_t first = 0;
        for (int t = 0; t < 4; t++) {
            toile_world *w = make(MODELS[m], THREADS[t], NULL);
            run(w, 1, 12);
            uint64_t hash = toile_state_hash(w);
            first = t ? first : hash;
            toile_statistics s;
            toile_get_statistics(w, true, &s);
            CHECK(hash == first, "%s: %s threads give %016llx, 1 thread %016llx", MODELS[m], THREADS[t],
                  (unsigned long long)hash, (unsigned long long)first);
            CHECK(s.contacts > 10 && s.iterations > 100, "%s: the scene does too little (%d contacts)", MODELS[m], s.contacts);
            toile_destroy(w);
        }
        static const char *const SETS[] = {"sse2", "avx2", "avx512"};
        for (int i = 0; i < 3; i++) {
            if (!toile_kernels_find(SETS[i])) {
                SKIP("this machine has no %s", SETS[i]);
                continue;
            }
            toile_world *w = make(MODELS[m], "1", SETS[i]);
            run(w, 1, 12);
            CHECK(toile_state_hash(w) == first, "%s: %s gives other bits", MODELS[m], SETS[i]);
            toile_destroy(w);
        }
    }
}

static void no_allocation(void) {
    static const char *const MODELS[] = {"continuum", "springs"};
    for (int m = 0; m < 2; m++) {
        toile_world *w = make(MODELS[m], "2", NULL);
        uint64_t before, after;
        toile_statistics s;
        run(w, 1, 2);
        toile_memory_use(w, &before, NULL, NULL, NULL);
        run(w, 3, 22);
        toile_memory_use(w, &after, NULL, NULL, NULL);
        toile_get_statistics(w, true, &s);
        CHECK(s.steps >= 100, "only %lld steps", (long long)s.steps);
        CHECK(after == before, "%s: %llu allocations in %lld steps", MODELS[m], (unsigned long long)(after - before),
              (long long)s.steps);
        toile_destroy(w);
    }
}

static void save_and_restore(void) {
    static const char *const MODELS[] = {"continuum", "springs"};
    for (int m = 0; m < 2; m++) {
        toile_world *a = make(MODELS[m], "1", NULL), *b = make(MODELS[m], "2", NULL);
        run(a, 1, 7);
        size_t size = toile_state_size(a);
        void *bytes = malloc(size);
        CHECK(toile_save_state(a, bytes, size) == TOILE_OK, "%s", toile_message(a));
        run(a, 8, 14);
        CHECK(toile_restore_state(b, bytes, size) == TOILE_OK, "%s", toile_message(b));
        CHECK(move_scene(b, 7) == TOILE_OK && toile_place_inputs(b) == TOILE_OK, "%s", toile_message(b));
        run(b, 8, 14);
        CHECK(toile_state_hash(a) == toile_state_hash(b), "%s: restored state leads elsewhere", MODELS[m]);
        CHECK(toile_restore_state(b, bytes, size - 1) == TOILE_FORMAT, "a short state was taken");
        ((double *)bytes)[5] = NAN;
        uint64_t hash = toile_state_hash(b);
        CHECK(toile_restore_state(b, bytes, size) == TOILE_FORMAT && toile_state_hash(b) == hash, "a damaged state was taken");
        free(bytes);
        toile_destroy(a);
        toile_destroy(b);
    }
}

static void cancelling(void) {
    toile_world *w = make("continuum", "1", NULL);
    run(w, 1, 3);
    uint64_t hash = toile_state_hash(w);
    toile_cancel(w, true);
    move_scene(w, 4);
    CHECK(toile_advance(w, 1.0 / 24) == TOILE_CANCELLED, "it was not cancelled");
    CHECK(toile_state_hash(w) == hash, "a cancelled frame left a trace");
    toile_cancel(w, false);
    run(w, 4, 6);
    toile_world *other = make("continuum", "1", NULL);
    run(other, 1, 6);
    CHECK(toile_state_hash(w) == toile_state_hash(other), "after a cancelled frame it goes elsewhere");
    toile_destroy(w);
    toile_destroy(other);
}

/* Baraff-Witkin section 7: drastic changes are rejected, the step halves and recovers. */
static void step_control(void) {
    toile_world *w = NULL;
    toile_statistics s;
    toile_create(NULL, &w);
    /* below 0.0015 a blow needs more than the smallest step has, by chance (0.0005: 0 to 8 steps, as rounding falls) */
    toile_set(w, "stretch_change_max", "0.003");
    CHECK(build_scene(w, "continuum", "1") == TOILE_OK, "%s", toile_message(w));
    run(w, 1, 10);
    toile_get_statistics(w, true, &s);
    CHECK(s.rejected_steps > 5, "only %lld steps were rejected", (long long)s.rejected_steps);
    CHECK(s.step_min < s.step_max, "the step length did not change");
    CHECK(s.forced_steps == 0, "%lld steps were forced", (long long)s.forced_steps);
    toile_destroy(w);
    /* at the smallest step a step is forced, counted and told */
    toile_create(NULL, &w);
    toile_set(w, "stretch_change_max", "0.0001");
    toile_set(w, "time_step_min", "0.008");
    build_scene(w, "continuum", "1");
    run(w, 1, 6);
    toile_get_statistics(w, true, &s);
    CHECK(s.forced_steps > 0, "no step was forced");
    toile_destroy(w);
}

static void failing_memory(void) {
    static const char *const MODELS[] = {"continuum", "springs"};
    for (int m = 0; m < 2; m++) {
        int64_t n = 0;
        for (;; n++) {
            counter c = {0, n, 0};
            toile_hooks hooks = {count_allocate, count_release, NULL, &c};
            toile_world *w = NULL;
            toile_status s = toile_create(&hooks, &w);
            if (s == TOILE_OK)
                s = build_scene(w, MODELS[m], "1");
            if (s == TOILE_OK && (s = move_scene(w, 1)) == TOILE_OK)
                s = toile_advance(w, 1.0 / 24);
            if (s < 0 && s != TOILE_NO_MEMORY)
                CHECK(0, "%s: allocation %lld failing gives %s: %s", MODELS[m], (long long)n, toile_status_name(s),
                      toile_message(w));
            if (s == TOILE_NO_MEMORY && w)
                CHECK(strstr(toile_message(w), "memory") != NULL, "the message is \"%s\"", toile_message(w));
            toile_destroy(w);
            CHECK(c.live == 0, "%s: allocation %lld failing leaves %lld blocks", MODELS[m], (long long)n, (long long)c.live);
            if (c.calls <= n)
                break; /* it was never reached: everything worked */
            CHECK(s == TOILE_NO_MEMORY, "%s: allocation %lld failed unnoticed", MODELS[m], (long long)n);
        }
        CHECK(n > 50, "%s: only %lld allocations were failed", MODELS[m], (long long)n);
    }
}

/* The preconditioners lead to one answer, constrained or not. */
static void preconditioners(void) {
    static const char *const KINDS[] = {"none", "diagonal", "block", "constrained", "incomplete"};
    double first[21 * 19 * 3], now[21 * 19 * 3];
    int64_t iterations[5];
    for (int k = 0; k < 5; k++) {
        toile_world *w = NULL;
        toile_statistics s;
        toile_create(NULL, &w);
        toile_set(w, "linear_solver", "mpcg");
        toile_set(w, "preconditioner", KINDS[k]);
        toile_set(w, "solver_tolerance", "1e-10");
        toile_set(w, "solver_iterations_max", "20000");
        if (build_scene(w, "continuum", "1") < 0)
            exit(1);
        /* release and sticking are decisions: compare where tiny differences have not yet decided otherwise */
        run(w, 1, 2);
        toile_get_positions(w, 0, k ? now : first);
        toile_get_statistics(w, true, &s);
        iterations[k] = s.iterations;
        double worst = 0;
        for (int i = 0; k && i < 21 * 19 * 3; i++)
            worst = fmax(worst, fabs(now[i] - first[i]));
        CHECK(worst < 1e-7, "%s differs from none by %.2e m", KINDS[k], worst);
        toile_destroy(w);
    }
    CHECK(iterations[3] <= iterations[0], "constrained takes %lld iterations, none %lld", (long long)iterations[3],
          (long long)iterations[0]);
    CHECK(iterations[4] < iterations[3], "incomplete takes %lld iterations, constrained %lld", (long long)iterations[4],
          (long long)iterations[3]);
}

/* The incomplete factor is made chunk by chunk: the same bits for any number of threads and any instruction set. */
static void incomplete_same_bits(void) {
    static const char *const MODELS[] = {"continuum", "springs"}, *const THREADS[] = {"1", "2", "3"};
    for (int m = 0; m < 2; m++) {
        uint64_t first = 0;
        for (int t = 0; t < 4; t++) { /* the last with the plainest instructions */
            toile_world *w = NULL;
            toile_create(NULL, &w);
            toile_set(w, "linear_solver", "mpcg");
            toile_set(w, "preconditioner", "incomplete");
            if (build_scene(w, MODELS[m], THREADS[t % 3]) < 0)
                exit(1);
            if (t == 3)
                toile_world_sim(w)->kernels = toile_kernels_find("sse2");
            run(w, 1, 8);
            first = t ? first : toile_state_hash(w);
            CHECK(toile_state_hash(w) == first, "%s, run %d: other bits", MODELS[m], t);
            toile_destroy(w);
        }
    }
}

/* The constraint: velocity changes are exactly z in the constrained directions, whatever the tolerance. */
static void constraints_are_exact(void) {
    toile_world *w = make("continuum", "1", NULL);
    double x[21 * 19 * 3];
    for (int f = 1; f <= 8; f++) {
        run(w, f, f);
        toile_get_positions(w, 0, x);
        CHECK(fabs(x[2] - (0.13 + 0.005 * f)) < 1e-12 && fabs(x[0] + 0.4) < 1e-12, "frame %d: the pinned corner is %.2e off", f,
              x[2] - (0.13 + 0.005 * f));
    }
    toile_destroy(w);
}

static void misuse(void) {
    toile_world *w = NULL;
    double x[9];
    int index;
    CHECK(toile_create(NULL, NULL) == TOILE_MISUSE && toile_build(NULL) == TOILE_MISUSE, "null worlds");
    CHECK(*toile_message(NULL), "no message for no world");
    toile_destroy(NULL);
    toile_create(NULL, &w);
    CHECK(toile_advance(w, 0.04) == TOILE_MISUSE && strstr(toile_message(w), "toile_build"), "%s", toile_message(w));
    CHECK(toile_build(w) == TOILE_INVALID && strstr(toile_message(w), "no garment"), "%s", toile_message(w));
    CHECK(toile_set(w, "no_such", "1") == TOILE_INVALID && strstr(toile_message(w), "no_such"), "%s", toile_message(w));
    CHECK(toile_set(w, "time_step", "-1") == TOILE_INVALID && strstr(toile_message(w), "time_step"), "%s", toile_message(w));
    CHECK(toile_set(w, "cloth_model", "jelly") == TOILE_INVALID && strstr(toile_message(w), "springs"), "%s", toile_message(w));
    CHECK(toile_set(w, "gravity", "0,0") == TOILE_INVALID, "two numbers for a vector");
    CHECK(toile_add_fabric(w, "chainmail", &index) == TOILE_INVALID, "an unknown fabric");
    CHECK(toile_add_fabric(w, "cotton", &index) == TOILE_OK, "%s", toile_message(w));
    CHECK(toile_set_fabric(w, index, "density", -1) == TOILE_INVALID && strstr(toile_message(w), "density"), "%s", toile_message(w));
    CHECK(toile_set_fabric(w, 7, "density", 1) == TOILE_INVALID, "fabric 7");
    toile_grid grid = {.name = "a", .nu = 3, .nv = 3, .u_axis = {1, 0, 0}, .v_axis = {0, 1, 0}, .fabric = index};
    CHECK(toile_add_grid(w, &grid, NULL) == TOILE_OK, "%s", toile_message(w));
    CHECK(toile_add_grid(w, &grid, NULL) == TOILE_INVALID && strstr(toile_message(w), "\"a\""), "%s", toile_message(w));
    grid.name = "b";
    grid.v_axis[0] = 1;
    CHECK(toile_add_grid(w, &grid, NULL) == TOILE_INVALID && strstr(toile_message(w), "right angles"), "%s", toile_message(w));
    toile_collider c = {.name = "c", .shape = TOILE_SPHERE, .size = {-1}};
    CHECK(toile_add_collider(w, &c, NULL) == TOILE_INVALID && strstr(toile_message(w), "\"c\""), "%s", toile_message(w));
    c.size[0] = 1;
    c.friction_kinetic = 0.5;
    CHECK(toile_add_collider(w, &c, NULL) == TOILE_INVALID && strstr(toile_message(w), "friction"), "%s", toile_message(w));
    int bad[1] = {9};
    toile_pin pin = {0, 1, bad, {true, false, false}};
    CHECK(toile_add_pin(w, &pin, NULL) == TOILE_INVALID && strstr(toile_message(w), "9"), "%s", toile_message(w));
    CHECK(toile_build(w) == TOILE_OK, "%s", toile_message(w));
    CHECK(toile_add_grid(w, &grid, NULL) == TOILE_MISUSE, "adding after build");
    CHECK(toile_advance(w, NAN) == TOILE_INVALID && toile_advance(w, -1) == TOILE_INVALID, "impossible frames");
    CHECK(toile_get_positions(w, 3, x) == TOILE_INVALID, "garment 3");
    CHECK(toile_vertex_count(w, 0) == 9 && toile_vertex_count(w, 5) == 0, "vertex counts");
    toile_destroy(w);
}

int main(int argc, char **argv) {
    RUN(same_bits);
    RUN(no_allocation);
    RUN(save_and_restore);
    RUN(cancelling);
    RUN(step_control);
    RUN(failing_memory);
    RUN(preconditioners);
    RUN(incomplete_same_bits);
    RUN(constraints_are_exact);
    RUN(misuse);
    FINISH();
}
