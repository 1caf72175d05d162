/* Continuous collision against made queries: motions built to meet at a known moment (the answer may not be
 * later), motions kept apart by a moving plane (the answer must be no), and a sampled minimum of the distance
 * in long double. */
#include "check.h"

#include "ccd.h"

typedef struct query {
    double begin[4][3], end[4][3];
} query;

static void at_time(const query *q, double t, double x[4][3]) {
    for (int i = 0; i < 12; i++)
        x[i / 3][i % 3] = q->begin[i / 3][i % 3] + t * (q->end[i / 3][i % 3] - q->begin[i / 3][i % 3]);
}

/* Least distance over the motion, sampled: never below the true one. */
static double sampled(toile_ccd_kind kind, const query *q, int samples, double *when) {
    double least = INFINITY, x[4][3];
    for (int s = 0; s <= samples; s++) {
        toile_near near;
        at_time(q, (double)s / samples, x);
        toile_nearest(kind, (const double(*)[3])x, &near);
        if (near.distance < least) {
            least = near.distance;
            *when = (double)s / samples;
        }
    }
    return least;
}

static double extent(const query *q) {
    double most = 0;
    for (int k = 0; k < 3; k++) {
        double lo = INFINITY, hi = -INFINITY;
        for (int i = 0; i < 4; i++) {
            lo = fmin(lo, fmin(q->begin[i][k], q->end[i][k]));
            hi = fmax(hi, fmax(q->begin[i][k], q->end[i][k]));
        }
        most = fmax(most, hi - lo);
    }
    return most;
}

/* A motion whose primitives meet at time t up to rounding: points there first, then velocities. */
static query meeting(toile_ccd_kind kind, double t, double scale, double origin, double speed, bool flat) {
    query q;
    double x[4][3], w[2] = {random_unit(), random_unit()};
    for (int i = 1; i < 4; i++)
        for (int k = 0; k < 3; k++)
            x[i][k] = flat && k == 2 ? 0 : scale * random_between(-1, 1);
    if (kind == TOILE_CCD_VF) {
        double u = w[0], v = w[1] * (1 - w[0]);
        for (int k = 0; k < 3; k++)
            x[0][k] = (1 - u - v) * x[1][k] + u * x[2][k] + v * x[3][k];
    } else { /* the first edge passes through a point of the second, at parameter w0 of itself */
        double s = 0.1 + 0.8 * w[0];
        for (int k = 0; k < 3; k++) {
            double p = (1 - w[1]) * x[2][k] + w[1] * x[3][k];
            x[0][k] = (p - s * x[1][k]) / (1 - s);
        }
    }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 3; k++) {
            double v = flat && k == 2 ? 0 : speed * scale * random_between(-1, 1);
            q.begin[i][k] = origin + x[i][k] - t * v;
            q.end[i][k] = origin + x[i][k] + (1 - t) * v;
        }
    return q;
}

static void test_never_late(void) {
    static const double SCALES[] = {1, 1e-6, 1e5}, ORIGINS[] = {0, 1, 1e4}, SPEEDS[] = {1e-3, 1, 100};
    int missed = 0, late = 0, asked = 0;
    for (int trial = 0; trial < 20000; trial++) {
        toile_ccd_kind kind = trial & 1 ? TOILE_CCD_VF : TOILE_CCD_EE;
        double scale = SCALES[trial / 2 % 3], origin = ORIGINS[trial / 6 % 3] * scale, t = random_unit(),
               found = 2;
        query q = meeting(kind, t, scale, origin, SPEEDS[trial / 18 % 3], trial / 54 % 2);
        double tolerance = 1e-6 * extent(&q);
        bool hit =
            toile_ccd(kind, (const double(*)[3])q.begin, (const double(*)[3])q.end, 0, tolerance, &found);
        asked++;
        missed += !hit;
        late += hit && found > t;
    }
    CHECK(missed == 0, "%d of %d meetings missed", missed, asked);
    CHECK(late == 0, "%d of %d meetings found too late", late, asked);
}

/* Hits are near: at the time told the distance is within separation + tolerance, for all but a few. */
static void test_hits_are_near(void) {
    int far = 0, asked = 0;
    for (int trial = 0; trial < 20000; trial++) {
        toile_ccd_kind kind = trial & 1 ? TOILE_CCD_VF : TOILE_CCD_EE;
        query q = meeting(kind, random_unit(), 1, 0, 1, trial / 2 % 2);
        double found, x[4][3], tolerance = 1e-6 * extent(&q), separation = trial / 4 % 2 ? 1e-3 : 0;
        if (!toile_ccd(kind, (const double(*)[3])q.begin, (const double(*)[3])q.end, separation, tolerance,
                       &found))
            continue;
        toile_near near;
        at_time(&q, found, x);
        toile_nearest(kind, (const double(*)[3])x, &near);
        asked++;
        far += near.distance > separation + 1.001 * tolerance;
    }
    CHECK(asked > 19000 && far == 0, "%d of %d hits told while still apart", far, asked);
}

static void test_separation(void) {
    int wrong = 0, yes = 0, no = 0;
    for (int trial = 0; trial < 6000; trial++) {
        toile_ccd_kind kind = trial & 1 ? TOILE_CCD_VF : TOILE_CCD_EE;
        query q;
        for (int i = 0; i < 12; i++) {
            q.begin[i / 3][i % 3] = random_between(-1, 1);
            q.end[i / 3][i % 3] = q.begin[i / 3][i % 3] + random_between(-0.5, 0.5);
        }
        double when = 0, found = 2, separation = 0.1, tolerance = 1e-4, least = sampled(kind, &q, 400, &when);
        bool hit = toile_ccd(kind, (const double(*)[3])q.begin, (const double(*)[3])q.end, separation,
                             tolerance, &found);
        if (least <= separation) {
            wrong += !hit || found > when;
            yes++;
        } else if (least >
                   separation + tolerance + 3.0 / 400) { /* sampling cannot have missed the least by more */
            wrong += hit;
            no++;
        }
    }
    CHECK(wrong == 0 && yes > 500 && no > 500, "%d wrong of %d near and %d far", wrong, yes, no);
}

/* Grazing: a vertex that just reaches the plane at t = 1/2 and turns, seen in a frame that makes it linear:
 * an edge that turns over another. Distance has a double root. */
static void test_double_root(void) {
    for (int trial = 0; trial < 200; trial++) {
        double h = ldexp(1, -(trial % 30)), found = 2;
        query q = {{{-1, 0, h}, {1, 0, h}, {0, -1, 0}, {0, 1, 0}},
                   {{-1, 0, -h}, {1, 0, h}, {0, -1, 0}, {0, 1, 0}}};
        /* middle of the first edge goes from h to 0: touches exactly at the end */
        bool hit =
            toile_ccd(TOILE_CCD_EE, (const double(*)[3])q.begin, (const double(*)[3])q.end, 0, 1e-9, &found);
        CHECK(hit && found <= 1, "h %g: hit %d at %g", h, hit, found);
    }
}

static void test_degenerate(void) {
    double found = 2;
    query point = {{{0, 0, 1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}},
                   {{0, 0, -1}, {0, 0, 0}, {0, 0, 0}, {0, 0, 0}}};
    CHECK(toile_ccd(TOILE_CCD_VF, (const double(*)[3])point.begin, (const double(*)[3])point.end, 0, 1e-6,
                    &found) &&
              found <= 0.5 && found > 0.49,
          "a triangle that is a point: %g", found);
    CHECK(toile_ccd(TOILE_CCD_EE, (const double(*)[3])point.begin, (const double(*)[3])point.begin, 0, 1e-6,
                    &found) == false ||
              found == 0,
          "a resting pair: %g", found);
    query parallel = {{{0, 0, 1}, {1, 0, 1}, {0, 0, 0}, {1, 0, 0}},
                      {{0, 0, -1}, {1, 0, -1}, {0, 0, 0}, {1, 0, 0}}};
    CHECK(toile_ccd(TOILE_CCD_EE, (const double(*)[3])parallel.begin, (const double(*)[3])parallel.end, 0,
                    1e-6, &found) &&
              found <= 0.5 && found > 0.499,
          "parallel edges: %g", found);
    query past = {{{5, 0.1, 0}, {6, 0.1, 0}, {0, 0, 0}, {1, 0, 0}},
                  {{-6, 0.1, 0}, {-5, 0.1, 0}, {0, 0, 0}, {1, 0, 0}}};
    CHECK(!toile_ccd(TOILE_CCD_EE, (const double(*)[3])past.begin, (const double(*)[3])past.end, 0, 1e-6,
                     &found),
          "parallel edges that slide past each other: %g", found);
}

int main(int argc, char **argv) {
    RUN(test_never_late);
    RUN(test_hits_are_near);
    RUN(test_separation);
    RUN(test_double_root);
    RUN(test_degenerate);
    FINISH();
}
