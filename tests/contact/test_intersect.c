/* The judge of `toile verify` against whole numbers: triangles on a small lattice touch, share, overlap and lie in one plane
 * all the time, and 64-bit integers decide exactly whether they meet. The lattice is also put far from the origin and made
 * tiny, which changes no answer. Frames of cloth are in tests/torture, where two other judges count the same frames. */
#include "check.h"

#include "intersect.h"

#include <stdint.h>
#include <time.h>

typedef struct point {
    int64_t x[3];
} point;

static point minus(point a, point b) {
    return (point){{a.x[0] - b.x[0], a.x[1] - b.x[1], a.x[2] - b.x[2]}};
}

static point times(point a, point b) {
    return (point){{a.x[1] * b.x[2] - a.x[2] * b.x[1], a.x[2] * b.x[0] - a.x[0] * b.x[2], a.x[0] * b.x[1] - a.x[1] * b.x[0]}};
}

static int64_t dot_of(point a, point b) {
    return a.x[0] * b.x[0] + a.x[1] * b.x[1] + a.x[2] * b.x[2];
}

static bool zero(point a) {
    return !a.x[0] && !a.x[1] && !a.x[2];
}

static int sign(int64_t value) {
    return (value > 0) - (value < 0);
}

static int volume(point a, point b, point c, point d) {
    return sign(dot_of(minus(a, d), times(minus(b, d), minus(c, d))));
}

/* Is q, on the line through a and b, between them? */
static bool between(point a, point b, point q) {
    return zero(times(minus(b, a), minus(q, a))) && dot_of(minus(q, a), minus(q, b)) <= 0;
}

/* Two segments in one plane. */
static bool segments_meet(point a, point b, point c, point d) {
    if (between(a, b, c) || between(a, b, d) || between(c, d, a) || between(c, d, b))
        return true;
    point n = times(minus(b, a), minus(d, c));
    if (zero(n))
        return false;
    int c_side = sign(dot_of(n, times(minus(b, a), minus(c, a)))), d_side = sign(dot_of(n, times(minus(b, a), minus(d, a))));
    int a_side = sign(dot_of(n, times(minus(d, c), minus(a, c)))), b_side = sign(dot_of(n, times(minus(d, c), minus(b, c))));
    return c_side * d_side < 0 && a_side * b_side < 0;
}

static bool in_triangle(point p, const point t[3]) {
    point n = times(minus(t[1], t[0]), minus(t[2], t[0]));
    for (int i = 0; i < 3; i++)
        if (dot_of(n, times(minus(t[(i + 1) % 3], t[i]), minus(p, t[i]))) < 0)
            return false;
    return true;
}

static bool segment_meets(point p, point q, const point t[3]) {
    int sp = volume(t[0], t[1], t[2], p), sq = volume(t[0], t[1], t[2], q);
    if (sp * sq > 0)
        return false;
    if (sp || sq) {
        int a = volume(p, q, t[0], t[1]), b = volume(p, q, t[1], t[2]), c = volume(p, q, t[2], t[0]);
        return (a >= 0 && b >= 0 && c >= 0) || (a <= 0 && b <= 0 && c <= 0);
    }
    return in_triangle(p, t) || in_triangle(q, t) || segments_meet(p, q, t[0], t[1]) || segments_meet(p, q, t[1], t[2]) ||
           segments_meet(p, q, t[2], t[0]);
}

/* The first `shared` corners are the same. */
static bool meet(const point s[3], const point t[3], int shared) {
    if (shared == 3)
        return true;
    if (shared == 2) { /* folded onto each other */
        point n = times(minus(s[1], s[0]), minus(s[2], s[0])), m = times(minus(t[1], t[0]), minus(t[2], t[0]));
        return zero(times(n, m)) && dot_of(n, m) > 0;
    }
    if (shared == 1)
        return segment_meets(s[1], s[2], t) || segment_meets(t[1], t[2], s);
    for (int i = 0; i < 3; i++)
        if (segment_meets(s[i], s[(i + 1) % 3], t) || segment_meets(t[i], t[(i + 1) % 3], s))
            return true;
    return false;
}

static int random_below(int limit) {
    return (int)(random_unit() * limit);
}

static int64_t count_by_judge(const point *p, int points, const int *triangles, int count, const double from[3], double unit) {
    static toile_memory memory;
    toile_error error;
    toile_surface *surface;
    double x[18];
    for (int i = 0; i < 3 * points; i++)
        x[i] = from[i % 3] + unit * (double)p[i / 3].x[i % 3];
    if (!memory.calls)
        toile_memory_init(&memory, NULL);
    if (toile_surface_create(&memory, points, x, count, triangles, &surface, &error) < 0)
        return -1;
    int64_t pairs = toile_intersect_self(surface);
    toile_surface_free(surface);
    return pairs;
}

static void lattice(void) {
    static const double PLACES[][4] = {{0, 0, 0, 1}, {4096, -2048, 1024, 1.0 / 1024}, {0, 0, 0, 0x1p-60},
                                       {1e6, 1e6, -1e6, 0x1p-20}, {0.1, 0.2, 0.3, 0}};
    int by_kind[4][2] = {{0}}, wrong = 0;
    for (int trial = 0; trial < 200000 && wrong < 5; trial++) {
        int shared = trial % 4 == 3 ? 2 : trial % 4 == 2 ? 1 : 0, points = 6 - shared, range = 2 + trial % 5;
        point p[6];
        for (int i = 0; i < 3 * points; i++)
            p[i / 3].x[i % 3] = random_below(range);
        if (trial % 3 == 0)
            for (int i = 0; i < points; i++)
                p[i].x[2] = p[i].x[0] + p[i].x[1]; /* all in one plane, not along an axis */
        int triangles[6] = {0, 1, 2, shared > 0 ? 0 : 3, shared > 1 ? 1 : 4 - shared, 5 - shared};
        point s[3] = {p[0], p[1], p[2]}, t[3] = {p[triangles[3]], p[triangles[4]], p[triangles[5]]};
        bool twins = false; /* a vertex of its own at the place of another is a touch, but not what sharing means */
        for (int i = 0; i < points; i++)
            for (int j = 0; j < i && shared; j++)
                twins = twins || zero(minus(p[i], p[j]));
        if (twins || zero(times(minus(s[1], s[0]), minus(s[2], s[0]))) || zero(times(minus(t[1], t[0]), minus(t[2], t[0]))))
            continue;
        bool expected = meet(s, t, shared);
        by_kind[shared][expected]++;
        for (int k = 0; k < 4; k++) {
            int64_t found = count_by_judge(p, points, triangles, 2, PLACES[k], PLACES[k][3]);
            if (found != expected && wrong++ < 5)
                CHECK(found == expected, "trial %d, %d shared, place %d: %d found, %d expected", trial, shared, k, (int)found, expected);
        }
    }
    CHECK(wrong == 0, "%d answers differ", wrong);
    for (int shared = 0; shared < 3; shared++)
        CHECK(by_kind[shared][0] > 1000 && by_kind[shared][1] > 100, "%d shared: %d apart, %d meet", shared, by_kind[shared][0],
              by_kind[shared][1]);
}

/* Seam twins: the same place, another number. They touch, and that is told: cloth that is to be sewn shares vertices. */
static void twins(void) {
    const double x[] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0};
    const int triangles[] = {0, 1, 2, 3, 5, 4};
    toile_memory memory;
    toile_error error;
    toile_surface *surface;
    toile_memory_init(&memory, NULL);
    CHECK(toile_surface_create(&memory, 6, x, 2, triangles, &surface, &error) == TOILE_OK, "%s", error.message);
    CHECK(toile_intersect_self(surface) == 1, "an edge on an edge is a touch");
    toile_surface_free(surface);
}

/* A crumpled sheet as large as a garment: what it finds is what all pairs say, and a frame takes a fraction of a second. */
static void garment(void) {
    enum { N = 94 };
    static double x[3 * N * N];
    static int triangles[6 * (N - 1) * (N - 1)];
    int count = 0;
    for (int i = 0; i < N * N; i++) {
        x[3 * i] = i % N * 0.01 + 0.02 * random_unit();
        x[3 * i + 1] = i / N * 0.01 + 0.02 * random_unit();
        x[3 * i + 2] = 0.05 * sin(i % N * 0.3) + 0.02 * random_unit();
    }
    for (int i = 0; i < (N - 1) * (N - 1); i++) {
        int a = i / (N - 1) * N + i % (N - 1);
        int cut[6] = {a, a + 1, a + N + 1, a, a + N + 1, a + N};
        memcpy(triangles + 3 * count, cut, sizeof cut);
        count += 2;
    }
    toile_memory memory;
    toile_error error;
    toile_surface *surface;
    toile_memory_init(&memory, NULL);
    clock_t begin = clock();
    CHECK(toile_surface_create(&memory, N * N, x, count, triangles, &surface, &error) == TOILE_OK, "%s", error.message);
    int64_t pairs = toile_intersect_self(surface);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    toile_surface_free(surface);
    printf("%d triangles, %lld pairs: %.3f s of processor time\n", count, (long long)pairs, seconds);
    CHECK(pairs > 1000, "%lld pairs", (long long)pairs);
    CHECK(seconds < 1, "%.3f s of processor time", seconds);

    /* all pairs of a part, two at a time */
    int64_t each = 0, part;
    enum { PART = 900 };
    for (int i = 0; i < PART; i++)
        for (int j = 0; j < i; j++) {
            int two[6];
            memcpy(two, triangles + 3 * i, 3 * sizeof(int));
            memcpy(two + 3, triangles + 3 * j, 3 * sizeof(int));
            double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
            for (int k = 0; k < 6; k++) {
                low[k / 3] = fmin(low[k / 3], x[3 * two[k]]);
                high[k / 3] = fmax(high[k / 3], x[3 * two[k]]);
            }
            if (low[0] > high[1] || low[1] > high[0])
                continue;
            double own[18];
            int number[6], points = 0;
            for (int k = 0; k < 6; k++) {
                int m = 0;
                while (m < k && two[m] != two[k])
                    m++;
                number[k] = m < k ? number[m] : points++;
                memcpy(own + 3 * number[k], x + 3 * two[k], 3 * sizeof(double));
            }
            toile_surface_create(&memory, points, own, 2, number, &surface, &error);
            each += toile_intersect_self(surface);
            toile_surface_free(surface);
        }
    toile_surface_create(&memory, N * N, x, PART, triangles, &surface, &error);
    part = toile_intersect_self(surface);
    toile_surface_free(surface);
    CHECK(each == part && part > 10, "%lld one by one, %lld with the tree", (long long)each, (long long)part);
}

int main(int argc, char **argv) {
    RUN(lattice);
    RUN(twins);
    RUN(garment);
    FINISH();
}
