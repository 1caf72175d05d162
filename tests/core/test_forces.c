/* Every force: gradient against energy, Jacobian against gradient, what enters the matrix symmetric and positive
 * semi-definite, kernels against the plain forms, and every instruction set against the others. */
#include "check.h"

#include "angle.h"
#include "force_bend.h"
#include "force_spring.h"
#include "force_stretch.h"
#include "world.h"

#define STATES 200

static void random_points(int n, double spread, double x[][3]) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < 3; k++)
            x[i][k] = random_between(-spread, spread);
}

static double largest(const double *a, int n) {
    double m = 0;
    for (int i = 0; i < n; i++)
        m = fmax(m, fabs(a[i]));
    return m;
}

static double difference(const double *a, const double *b, int n) {
    double m = 0;
    for (int i = 0; i < n; i++)
        m = fmax(m, fabs(a[i] - b[i]));
    return m;
}

/* ---- one way to test any element: energy, force and Jacobian as functions of `n` corners ---- */

typedef struct element {
    int corners;
    const void *data;
    double (*energy)(const void *data, const double *x);
    void (*force)(const void *data, const double *x, const double *v, double *f);
    void (*jacobian)(const void *data, const double *x, const double *v, double *dx, double *dv);
} element;

/* Fourth-order central differences: error h^4 / 30 f^(5) against rounding eps / h; 2e-3 balances both. */
static void differentiate(const element *e, const double *x, const double *v, int by_velocity, double h, int j, double *out) {
    int n = 3 * e->corners;
    static const double WEIGHT[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12}, AT[4] = {-2, -1, 1, 2};
    double y[12], f[12];
    memset(out, 0, (size_t)n * sizeof *out);
    for (int s = 0; s < 4; s++) {
        memcpy(y, by_velocity ? v : x, (size_t)n * sizeof *y);
        y[j] += AT[s] * h;
        e->force(e->data, by_velocity ? x : y, by_velocity ? y : v, f);
        for (int i = 0; i < n; i++)
            out[i] += WEIGHT[s] * f[i] / h;
    }
}

static void check_element(const element *e, const char *what, const double *x, const double *v, double h) {
    int n = 3 * e->corners;
    double f[12], zero[12] = {0}, gradient[12], dx[144], dv[144], column[12], worst = 0, scale;

    /* force without velocity is minus the energy's gradient */
    e->force(e->data, x, zero, f);
    for (int j = 0; j < n; j++) {
        static const double WEIGHT[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12}, AT[4] = {-2, -1, 1, 2};
        gradient[j] = 0;
        for (int s = 0; s < 4; s++) {
            double y[12];
            memcpy(y, x, (size_t)n * sizeof *y);
            y[j] += AT[s] * h;
            gradient[j] -= WEIGHT[s] * e->energy(e->data, y) / h;
        }
    }
    scale = fmax(largest(f, n), 1e-12);
    CHECK(difference(f, gradient, n) < 1e-6 * scale, "%s force differs from -dE/dx by %.2e of %.2e", what,
          difference(f, gradient, n), scale);

    e->jacobian(e->data, x, v, dx, dv);
    scale = largest(dx, n * n);
    for (int j = 0; j < n; j++) {
        differentiate(e, x, v, 0, h, j, column);
        for (int i = 0; i < n; i++)
            worst = fmax(worst, fabs(column[i] - dx[n * i + j]));
    }
    CHECK(worst <= 1e-6 * scale, "%s df/dx differs by %.2e of %.2e", what, worst, scale);
    worst = 0, scale = fmax(largest(dv, n * n), 1e-300);
    for (int j = 0; j < n; j++) {
        differentiate(e, x, v, 1, 1e-2, j, column);
        for (int i = 0; i < n; i++)
            worst = fmax(worst, fabs(column[i] - dv[n * i + j]));
    }
    CHECK(worst <= 1e-6 * scale, "%s df/dv differs by %.2e of %.2e", what, worst, scale);

    /* no force from a rigid motion v = a + w x r, in any configuration; and momentum is kept */
    double w[3] = {random_between(-5, 5), random_between(-5, 5), random_between(-5, 5)}, rigid[12], with[12], sum[3] = {0};
    for (int c = 0; c < e->corners; c++) {
        const double *p = x + 3 * c;
        rigid[3 * c] = 1 + w[1] * p[2] - w[2] * p[1];
        rigid[3 * c + 1] = 2 + w[2] * p[0] - w[0] * p[2];
        rigid[3 * c + 2] = 3 + w[0] * p[1] - w[1] * p[0];
    }
    e->force(e->data, x, rigid, with);
    CHECK(difference(with, f, n) <= 1e-10 * (largest(f, n) + largest(dv, n * n) * 10), "%s damps rigid motion by %.2e", what,
          difference(with, f, n));
    e->force(e->data, x, v, with);
    for (int i = 0; i < n; i++)
        sum[i % 3] += with[i];
    CHECK(largest(sum, 3) <= 1e-11 * (largest(with, n) + 1e-300), "%s forces add up to %.2e", what, largest(sum, 3));
}

/* ---- adapters ---- */

static double triangle_energy(const void *d, const double *x) {
    return toile_triangle_energy(d, (const double(*)[3])x);
}
static void triangle_force(const void *d, const double *x, const double *v, double *f) {
    toile_triangle_force(d, (const double(*)[3])x, (const double(*)[3])v, (double(*)[3])f);
}
static void triangle_jacobian(const void *d, const double *x, const double *v, double *dx, double *dv) {
    toile_triangle_jacobian(d, (const double(*)[3])x, (const double(*)[3])v, dx, dv);
}
static double hinge_energy(const void *d, const double *x) {
    return toile_hinge_energy(d, (const double(*)[3])x);
}
static void hinge_force(const void *d, const double *x, const double *v, double *f) {
    toile_hinge_force(d, (const double(*)[3])x, (const double(*)[3])v, (double(*)[3])f);
}
static void hinge_jacobian(const void *d, const double *x, const double *v, double *dx, double *dv) {
    toile_hinge_jacobian(d, (const double(*)[3])x, (const double(*)[3])v, dx, dv);
}
static double spring_energy(const void *d, const double *x) {
    return toile_spring_energy(d, (const double(*)[3])x);
}
static void spring_force(const void *d, const double *x, const double *v, double *f) {
    toile_spring_force(d, (const double(*)[3])x, (const double(*)[3])v, f);
    for (int k = 0; k < 3; k++)
        f[3 + k] = -f[k];
}
static void spring_jacobian(const void *d, const double *x, const double *v, double *dx, double *dv) {
    double bx[9], bv[9];
    toile_spring_jacobian(d, (const double(*)[3])x, (const double(*)[3])v, bx, bv);
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) {
            double sign = (i < 3) == (j < 3) ? -1 : 1;
            dx[6 * i + j] = sign * bx[3 * (i % 3) + j % 3];
            dv[6 * i + j] = sign * bv[3 * (i % 3) + j % 3];
        }
}

/* A triangle with a random material shape. */
static toile_triangle_element random_triangle(void) {
    double du1, dv1, du2, dv2, det;
    do {
        du1 = random_between(-0.05, 0.05), dv1 = random_between(-0.05, 0.05);
        du2 = random_between(-0.05, 0.05), dv2 = random_between(-0.05, 0.05);
        det = du1 * dv2 - du2 * dv1;
    } while (fabs(det) < 2e-4);
    double area = fabs(det) / 2;
    return (toile_triangle_element){dv2 / det, -dv1 / det, -du2 / det, du1 / det, random_between(0.7, 1.3),
                                    random_between(0.7, 1.3), 4000 * area, 1500 * area, 80 * area, 0.004, 0, 0, 0, 0, 0, 0};
}

static void triangles(void) {
    for (int i = 0; i < STATES; i++) {
        toile_triangle_element t = random_triangle();
        element e = {3, &t, triangle_energy, triangle_force, triangle_jacobian};
        double x[3][3], v[3][3];
        random_points(3, 0.05, x);
        random_points(3, 1, v);
        check_element(&e, "triangle", (const double *)x, (const double *)v, 1e-5);
    }
}

static void hinges(void) {
    for (int i = 0; i < STATES; i++) {
        toile_hinge_element t = {1e-5, random_between(-1, 1), 0.01};
        element e = {4, &t, hinge_energy, hinge_force, hinge_jacobian};
        double x[4][3], v[4][3];
        do /* fourth differences need to stay off the fold where the angle jumps from pi to -pi, and off slivers */
            random_points(4, 0.05, x);
        while (fabs(toile_hinge_angle((const double(*)[3])x)) > 2.8 || ({
                   double g[4][3];
                   toile_hinge_gradient((const double(*)[3])x, g);
                   largest((const double *)g, 12) > 100;
               }));
        random_points(4, 1, v);
        check_element(&e, "hinge", (const double *)x, (const double *)v, 1e-5);
    }
}

static void springs(void) {
    for (int i = 0; i < STATES; i++) {
        toile_spring_element t = {i & 1, 0.03, i & 1 ? 1e-3 : 900, 0.003, 0, 0, 0, 0, 0};
        element e = {2, &t, spring_energy, spring_force, spring_jacobian};
        double x[2][3], v[2][3], l, s;
        do { /* off the corners, where derivatives jump */
            random_points(2, 0.02, x);
            l = sqrt(pow(x[1][0] - x[0][0], 2) + pow(x[1][1] - x[0][1], 2) + pow(x[1][2] - x[0][2], 2));
            s = l / t.length;
        } while (fabs(s - 1) < 0.01 || s < 0.1);
        random_points(2, 1, v);
        check_element(&e, t.bend ? "bend spring" : "spring", (const double *)x, (const double *)v, 1e-6);
        double f[6], zero[6] = {0};
        spring_force(&t, (const double *)x, zero, f);
        int pulls = s > 1, acts = t.bend ? !pulls : pulls;
        CHECK(acts == (largest(f, 6) > 0), "a %s at length ratio %.3f %s", t.bend ? "bend" : "stretch", s,
              acts ? "does nothing" : "acts");
    }
    /* inside the linear part of a bend spring, too */
    for (int i = 0; i < 20; i++) {
        toile_spring_element t = {1, 0.03, 1e-3, 0.003, 0, 0, 0, 0, 0};
        element e = {2, &t, spring_energy, spring_force, spring_jacobian};
        double x[2][3] = {{0, 0, 0}, {0, 0, 0.03 * (1 - TOILE_BEND_LINEAR * random_between(0.3, 0.7))}}, v[2][3];
        random_points(2, 1, v);
        check_element(&e, "bend spring near rest", (const double *)x, (const double *)v, 1e-8);
    }
}

/* Stretch that stiffens: the law against its own derivatives, and elements in, at and beyond it, off its two corners, where
 * the second derivative jumps. */
static bool near_corner(double strain) {
    return fabs(strain) < 2e-3 || fabs(strain - TOILE_STRETCH_KNEE) < 2e-3;
}

static void stiffening(void) {
    for (double e = -0.3; e < 0.5; e += 0.0137) {
        double h = 1e-4, value[2], integral[2], slope[2], v, s, b;
        for (int i = 0; i < 2; i++)
            toile_stretch_law(e + (i ? h : -h), 0.05, 9, TOILE_STRETCH_KNEE, &value[i], &slope[i], NULL, &integral[i]);
        toile_stretch_law(e, 0.05, 9, TOILE_STRETCH_KNEE, &v, &s, &b, NULL);
        if (near_corner(e - 0.05))
            continue;
        CHECK(fabs((integral[1] - integral[0]) / (2 * h) - v) < 1e-6, "energy at %g", e);
        CHECK(fabs((value[1] - value[0]) / (2 * h) - s) < 1e-6, "slope at %g", e);
        CHECK(fabs((slope[1] - slope[0]) / (2 * h) - b) < 1e-6, "slope of the slope at %g", e);
    }
    double at_knee;
    toile_stretch_law(TOILE_STRETCH_KNEE, 0, (3.5 - 1) / TOILE_STRETCH_KNEE, TOILE_STRETCH_KNEE, &at_knee, NULL, NULL, NULL);
    CHECK(fabs(at_knee / TOILE_STRETCH_KNEE - 3.5) < 1e-12, "stiffening 3.5 gives %g", at_knee / TOILE_STRETCH_KNEE);

    int region[3] = {0, 0, 0};
    for (int i = 0; i < STATES; i++) {
        toile_triangle_element t = random_triangle();
        t.curve_u = random_between(-2, 40), t.curve_v = random_between(-2, 40);
        element e = {3, &t, triangle_energy, triangle_force, triangle_jacobian};
        double x[3][3], v[3][3], lu, lv;
        do {
            random_points(3, 0.05, x);
            double det = t.a1 * t.b2 - t.a2 * t.b1, wu[3], wv[3];
            for (int k = 0; k < 3; k++) {
                wu[k] = t.a1 * (x[1][k] - x[0][k]) + t.a2 * (x[2][k] - x[0][k]);
                wv[k] = t.b1 * (x[1][k] - x[0][k]) + t.b2 * (x[2][k] - x[0][k]);
            }
            lu = sqrt(wu[0] * wu[0] + wu[1] * wu[1] + wu[2] * wu[2]), lv = sqrt(wv[0] * wv[0] + wv[1] * wv[1] + wv[2] * wv[2]);
            /* turned and stretched anew to strains around the law: x = x0 + w_u du + w_v dv */
            double su = t.scale_u + random_between(-0.1, 0.35), sv = t.scale_v + random_between(-0.1, 0.35);
            for (int k = 0; k < 3; k++) {
                double u = wu[k] * su / lu, w = wv[k] * sv / lv;
                x[1][k] = x[0][k] + (t.b2 * u - t.a2 * w) / det;
                x[2][k] = x[0][k] + (-t.b1 * u + t.a1 * w) / det;
            }
            lu = su - t.scale_u, lv = sv - t.scale_v;
        } while (near_corner(lu) || near_corner(lv));
        region[lu < 0 ? 0 : lu < TOILE_STRETCH_KNEE ? 1 : 2]++;
        random_points(3, 1, v);
        check_element(&e, "stiffening triangle", (const double *)x, (const double *)v, 1e-6);

        toile_spring_element s = {0, 0.03, 900, 0.003, random_between(-2, 40) / 0.03, 0, TOILE_STRETCH_KNEE * 0.03, 0, 0};
        element es = {2, &s, spring_energy, spring_force, spring_jacobian};
        double y[2][3], strain = random_between(0.003, 0.35), length;
        while (near_corner(strain))
            strain = random_between(0.003, 0.35);
        random_points(2, 0.02, y);
        length = sqrt(pow(y[1][0] - y[0][0], 2) + pow(y[1][1] - y[0][1], 2) + pow(y[1][2] - y[0][2], 2));
        for (int k = 0; k < 3; k++)
            y[1][k] = y[0][k] + (y[1][k] - y[0][k]) * s.length * (1 + strain) / length;
        check_element(&es, "stiffening spring", (const double *)y, (const double *)v, 1e-6);
    }
    CHECK(region[0] > 3 && region[1] > 3 && region[2] > 3, "not all of the law was seen: %d %d %d", region[0], region[1], region[2]);
}

/* Threads that jam: triangles sheared to either side, below, in and beyond the lock, and a connection likewise. */
static void locking(void) {
    const double lock = 0.4, sides[] = {0.2, 0.45, 0.7};
    for (int i = 0; i < STATES; i++) {
        toile_triangle_element t = random_triangle();
        t.curve_s = random_between(1, 100), t.lock = lock;
        element e = {3, &t, triangle_energy, triangle_force, triangle_jacobian};
        double v[3][3], det = t.a1 * t.b2 - t.a2 * t.b1, c = (i & 1 ? -1 : 1) * sides[i % 3], su = random_between(0.9, 1.1),
                        sv = random_between(0.9, 1.1);
        /* C = su sv c' / sqrt(su sv): threads at an angle with the cosine c' */
        double cosine = c / sqrt(su * sv), wu[3] = {su, 0, 0}, wv[3] = {sv * cosine, 0, sv * sqrt(1 - cosine * cosine)}, x[3][3] = {{0}};
        for (int k = 0; k < 3; k++) {
            x[1][k] = (t.b2 * wu[k] - t.a2 * wv[k]) / det;
            x[2][k] = (-t.b1 * wu[k] + t.a1 * wv[k]) / det;
        }
        random_points(3, 1, v);
        check_element(&e, "locking triangle", (const double *)x, (const double *)v, 1e-6);

        toile_spring_element s = {0, 0.03, 900, 0.003, random_between(1, 40) / 0.03, 0.006, 0.004, 0, 0};
        element es = {2, &s, spring_energy, spring_force, spring_jacobian};
        double y[2][3] = {{0, 0, 0}, {0.03 * (1 + 0.5 * sides[i % 3]), 0, 0}};
        check_element(&es, "locking spring", (const double *)y, (const double *)v, 1e-6);
    }
}

/* x of a triangle whose principal stretches, relative to its rest scales, are `stretch`, along directions turned by `angle`. */
static void stretch_to(const toile_triangle_element *t, const double stretch[2], double angle, double x[3][3]) {
    double c = cos(angle), s = sin(angle), det = t->a1 * t->b2 - t->a2 * t->b1, about[3], p[3], q[3], m[3], norm = 0, along = 0;
    random_points(1, 1, &about); /* two directions in space at right angles */
    random_points(1, 1, &m);
    for (int k = 0; k < 3; k++)
        norm += about[k] * about[k], along += about[k] * m[k];
    for (int k = 0; k < 3; k++)
        p[k] = about[k] / sqrt(norm), q[k] = m[k] - about[k] * along / norm;
    norm = sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
    for (int k = 0; k < 3; k++) {
        double first = stretch[0] * p[k], second = stretch[1] * q[k] / norm;
        double wu = t->scale_u * (c * first - s * second), wv = t->scale_v * (s * first + c * second);
        x[0][k] = 0;
        x[1][k] = (t->b2 * wu - t->a2 * wv) / det;
        x[2][k] = (-t->b1 * wu + t->a1 * wv) / det;
    }
}

/* The limit in any direction of the cloth: none, one and both principal stretches beyond it, in the knee and behind it, nearly the
 * same, and one all but nothing. Its damping enters df/dx not at all, so that the cloth stands still here. */
static void limiting(void) {
    static const double STRETCH[][2] = {{1.15, 1.1},  {1.23, 1.0},   {1.4, 1.0},  {1.4, 0.3}, {1.4, 1.22},
                                        {1.4, 1.35}, {1.4, 1.3999}, {1.22, 1.215}, {1.27, 1e-3}};
    enum { CASES = sizeof STRETCH / sizeof *STRETCH };
    for (int i = 0; i < STATES; i++) {
        toile_triangle_element t = random_triangle();
        t.limit = 1.2, t.stiff_limit = TOILE_LIMIT_STIFFER * t.stiff_u;
        element e = {3, &t, triangle_energy, triangle_force, triangle_jacobian};
        double x[3][3], still[3][3] = {{0}}, v[3][3], with[9], without[9], elastic[9];
        stretch_to(&t, STRETCH[i % CASES], random_between(0, 3), x);
        check_element(&e, "limited triangle", (const double *)x, (const double *)still, 1e-6);
        toile_triangle_element off = t;
        off.stiff_limit = 0;
        random_points(3, 1, v);
        /* what it adds takes energy out of any motion, and nothing below the limit */
        triangle_force(&t, (const double *)x, (const double *)v, with);
        triangle_force(&off, (const double *)x, (const double *)v, without);
        double power = 0;
        for (int k = 0; k < 9; k++)
            elastic[k] = without[k];
        triangle_force(&t, (const double *)x, (const double *)still, with);
        triangle_force(&off, (const double *)x, (const double *)still, without);
        bool below = i % CASES == 0;
        CHECK(below == (difference(with, without, 9) < 1e-12 * t.stiff_u), "stretches of %g, %g: %.2e", STRETCH[i % CASES][0],
              STRETCH[i % CASES][1], difference(with, without, 9));
        for (int k = 0; k < 9; k++) /* of damping alone */
            elastic[k] -= without[k];
        triangle_force(&t, (const double *)x, (const double *)v, without);
        for (int k = 0; k < 9; k++)
            power += (without[k] - with[k] - elastic[k]) * ((const double *)v)[k];
        CHECK(power <= 1e-9, "the limit's damping drives with %.2e W", power);

        toile_spring_element s = {0, 0.03, 900, 0.003, 0, 0, 0, 1.2, 9000};
        element es = {2, &s, spring_energy, spring_force, spring_jacobian};
        double y[2][3] = {{0, 0, 0}, {0.03 * STRETCH[i % CASES][0], 0, 0}};
        check_element(&es, "limited spring", (const double *)y, (const double *)v, 1e-6);
    }
}

/* The longest diagonal of a soft square that hangs by one corner, ten times as heavy as usual, over its own length. */
static double hanging_diagonal(bool springs, bool locks, const char *integrator) {
    enum { N = 5 };
    toile_world *w;
    int fabric = 0, garment = 0, corner = N * N - 1;
    double x[N * N][3], most = 0;
    bool ok = toile_create(NULL, &w) >= 0 && toile_set(w, "cloth_model", springs ? "springs" : "continuum") >= 0 &&
              toile_set(w, "integrator", integrator) >= 0 && toile_set(w, "gravity", "-69,-69,0") >= 0 && toile_set(w, "self_collision", "off") >= 0 &&
              toile_add_fabric(w, NULL, &fabric) >= 0 && toile_set_fabric(w, fabric, "shear", 1) >= 0 &&
              toile_set(w, "time_step_min", "1e-6") >= 0 && toile_set_fabric(w, fabric, "stretch_warp", 500) >= 0 &&
              toile_set_fabric(w, fabric, "stretch_weft", 500) >= 0 && toile_set_fabric(w, fabric, "bend_warp", 1e-9) >= 0 &&
              toile_set_fabric(w, fabric, "bend_weft", 1e-9) >= 0 &&
              toile_set_fabric(w, fabric, "stretch_limit", 0) >= 0 && (locks || toile_set_fabric(w, fabric, "shear_lock", 0) >= 0);
    toile_grid grid = {.name = "square", .nu = N, .nv = N, .u_axis = {0.2, 0, 0}, .v_axis = {0, 0.2, 0}, .fabric = fabric};
    ok = ok && toile_add_grid(w, &grid, &garment) >= 0;
    toile_pin pin = {garment, 1, &corner, {true, true, true}};
    ok = ok && toile_add_pin(w, &pin, NULL) >= 0 && toile_build(w) >= 0;
    for (int f = 0; f < 12; f++)
        ok = ok && toile_advance(w, 1.0 / 24) >= 0;
    CHECK(ok && toile_get_positions(w, garment, &x[0][0]) >= 0, "%s", toile_message(w));
    for (int j = 0; ok && j < N - 1; j++)
        for (int i = 0; i < N - 1; i++) {
            const double *p = x[N * j + i], *q = x[N * (j + 1) + i + 1];
            most = fmax(most, sqrt(pow(q[0] - p[0], 2) + pow(q[1] - p[1], 2) + pow(q[2] - p[2], 2)) / (0.05 * sqrt(2)));
        }
    toile_destroy(w);
    return most;
}

/* Its threads jam: without that it is sheared all but flat. An explicit integrator's promised step holds there too. */
static void jamming(void) {
    for (int springs = 0; springs < 2; springs++) {
        double with = hanging_diagonal(springs, true, "backward_euler"), without = hanging_diagonal(springs, false, "backward_euler"),
               explicit = hanging_diagonal(springs, true, "fb_euler");
        CHECK(with < 1.27 && without > 1.35 && explicit < 1.27 && explicit > 1.1,
              "%s: longest diagonal %.3f with the lock, %.3f without, %.3f explicit", springs ? "springs" : "continuum", with, without,
              explicit);
    }
}

/* A strip that is cut at any angle to its threads is drawn out by its limit and little more, whatever hangs on it, with either cloth model,
 * and further without. */
static double drawn_out(bool springs, double angle, double limit, const char *integrator) {
    enum { NU = 3, NV = 9 };
    toile_world *w;
    int fabric = 0, garment = 0, top[NU], sizes[(NU - 1) * (NV - 1) * 2], faces[(NU - 1) * (NV - 1) * 6], count = 0;
    double x[NU * NV * 3], uv[(NU - 1) * (NV - 1) * 12], lowest = 0;
    for (int i = 0; i < NU * NV; i++)
        x[3 * i] = 0.02 * (i % NU), x[3 * i + 1] = 0, x[3 * i + 2] = -0.02 * (i / NU);
    for (int i = 0; i < NU; i++)
        top[i] = i;
    for (int j = 0; j < NV - 1; j++)
        for (int i = 0; i < NU - 1; i++) {
            int q = j * NU + i, corner[6] = {q, q + NU, q + 1, q + 1, q + NU, q + NU + 1};
            for (int c = 0; c < 6; c++) {
                double a = x[3 * corner[c]], b = x[3 * corner[c] + 2];
                faces[3 * count + c] = corner[c];
                uv[6 * count + 2 * c] = a * cos(angle) - b * sin(angle);
                uv[6 * count + 2 * c + 1] = a * sin(angle) + b * cos(angle);
            }
            sizes[count] = sizes[count + 1] = 3;
            count += 2;
        }
    bool ok = toile_create(NULL, &w) >= 0 && toile_set(w, "cloth_model", springs ? "springs" : "continuum") >= 0 &&
              toile_set(w, "integrator", integrator) >= 0 && toile_set(w, "gravity", "0,0,-98.1") >= 0 &&
              toile_set(w, "self_collision", "off") >= 0 && toile_set(w, "threads", "1") >= 0 && toile_set(w, "time_step_min", "1e-6") >= 0 &&
              toile_add_fabric(w, NULL, &fabric) >= 0 && toile_set_fabric(w, fabric, "density", 3) >= 0 &&
              toile_set_fabric(w, fabric, "stretch_warp", 60) >= 0 && toile_set_fabric(w, fabric, "stretch_weft", 60) >= 0 &&
              toile_set_fabric(w, fabric, "shear", 20) >= 0 && toile_set_fabric(w, fabric, "stretch_damping", 0.02) >= 0 &&
              toile_set_fabric(w, fabric, "stretch_limit", limit) >= 0;
    toile_mesh mesh = {.name = "strip", .vertex_count = NU * NV, .positions = x, .face_count = count, .face_sizes = sizes,
                       .face_vertices = faces, .corner_uv = uv, .panel_count = 1, .panel_fabrics = &fabric};
    ok = ok && toile_add_mesh(w, &mesh, &garment) >= 0;
    toile_pin pin = {garment, NU, top, {true, true, true}};
    ok = ok && toile_add_pin(w, &pin, NULL) >= 0 && toile_build(w) >= 0;
    for (int f = 0; f < 8; f++)
        ok = ok && toile_advance(w, 1.0 / 24) >= 0;
    CHECK(ok && toile_get_positions(w, garment, x) >= 0, "%s", toile_message(w));
    for (int i = 0; ok && i < NU; i++)
        lowest = fmin(lowest, x[3 * (NU * (NV - 1) + i) + 2]);
    toile_destroy(w);
    return -lowest / (0.02 * (NV - 1));
}

static void limits_hold(void) {
    for (int springs = 0; springs < 2; springs++)
        for (int turned = 0; turned < 3; turned++) {
            double angle = turned * TOILE_PI / 8, with = drawn_out(springs, angle, 0.2, "backward_euler");
            double without = drawn_out(springs, angle, 0, "backward_euler");
            CHECK(with < 1.26 && with > 1.1 && without > 1.3, "%s, threads turned by %g: %.3f as long with the limit, %.3f without",
                  springs ? "springs" : "continuum", angle, with, without);
        }
    /* what is explicit has none */
    double with = drawn_out(false, TOILE_PI / 8, 0.2, "fb_euler"), without = drawn_out(false, TOILE_PI / 8, 0, "fb_euler");
    CHECK(with == without && with > 1.3, "%.6f as long with explicit steps, %.6f without a limit", with, without);
}

/* Cloth that is sheared up to where it begins to jam has not reached its limit in the direction of the bias. */
static void limits_let_shear(void) {
    int count;
    const toile_named_fabric *named = toile_named_fabrics(&count);
    for (int i = -1; i < count; i++) {
        toile_fabric f = i < 0 ? toile_default_fabric() : named[i].fabric;
        double strain = sqrt(1 + sin(f.shear_lock)) - 1;
        CHECK(f.stretch_limit > strain - 0.002, "%s: limit %g, but its bias is strained by %.3f", i < 0 ? "default" : named[i].name, f.stretch_limit, strain);
    }
}

/* Thesis eq. 3.9 against the arc it approximates; and the energy of an arc against 1/2 k_b L kappa^2. */
static void bend_polynomial(void) {
    double worst = 0;
    for (int i = 1; i < 100; i++) {
        double s = i / 100.0, slope, p = toile_bend_polynomial(s, &slope), arc = toile_bend_arc(s);
        worst = fmax(worst, fabs(p - arc) / fabs(arc));
        CHECK(slope > 0, "the bend force falls at s = %.2f: the matrix would be indefinite", s);
        CHECK(p < 0, "the bend force pulls at s = %.2f", s);
    }
    CHECK(worst < 0.02, "the polynomial is %.4f off the arc", worst);
    CHECK(fabs(toile_bend_arc(0.9999999) + 3) < 1e-3, "an almost straight arc pushes with %.5f, not 3 units",
          toile_bend_arc(0.9999999));
    toile_spring_element t = {1, 0.05, 4 * 1e-6 / (0.05 * 0.05), 0, 0, 0, 0, 0, 0};
    for (double phi = 0.5; phi < 3; phi += 0.5) { /* half angle */
        double x[2][3] = {{0, 0, 0}, {0.05 * sin(phi) / phi, 0, 0}};
        double kappa = 2 * phi / 0.05, expected = 0.5 * 1e-6 * 0.05 * kappa * kappa;
        double energy = toile_spring_energy(&t, (const double(*)[3])x);
        CHECK(fabs(energy / expected - 1) < 0.03, "an arc of %.1f rad has energy %.4f of the strip's", 2 * phi,
              energy / expected);
    }
}

static void angles(void) {
    double worst = 0;
    for (int i = 0; i < 20000; i++) {
        double y = random_between(-1, 1) * pow(10, random_between(-8, 2)), x = random_between(-1, 1) * pow(10, random_between(-8, 2));
        worst = fmax(worst, fabs(toile_atan2(y, x) - atan2(y, x)));
    }
    CHECK(worst < 1e-15, "atan2 is %.2e off", worst);
    CHECK(toile_atan2(0, 0) == 0 && toile_atan2(0, 1) == 0 && toile_atan2(1, 0) == TOILE_PI / 2, "atan2 at the axes");
    double flat[4][3] = {{0, 0, 0}, {1, 0, 0}, {0.5, 1, 0}, {0.5, -1, 0}};
    CHECK(toile_hinge_angle((const double(*)[3])flat) == 0, "a flat hinge has an angle");
    flat[3][2] = 1; /* folded up by 45 degrees */
    CHECK(fabs(fabs(toile_hinge_angle((const double(*)[3])flat)) - TOILE_PI / 4) < 1e-15, "45 degrees are %.15f",
          toile_hinge_angle((const double(*)[3])flat));
}

/* ---- the kernels on a whole, shaken garment ---- */

static toile_world *shaken(const char *model, int irregular) {
    toile_world *w;
    int fabric;
    if (toile_create(NULL, &w) != TOILE_OK || toile_set(w, "cloth_model", model) != TOILE_OK ||
        toile_set(w, "threads", "1") != TOILE_OK || toile_add_fabric(w, "cotton", &fabric) != TOILE_OK ||
        toile_set_fabric(w, fabric, "stiffening_warp", 4) != TOILE_OK ||
        toile_set_fabric(w, fabric, "stiffening_weft", 9) != TOILE_OK)
        return NULL;
    enum { N = 9 };
    if (!irregular) {
        toile_grid g = {.name = "g", .nu = N, .nv = N + 2, .u_axis = {0.3, 0, 0}, .v_axis = {0, 0.4, 0}, .fabric = fabric};
        if (toile_add_grid(w, &g, NULL) != TOILE_OK)
            return NULL;
    } else { /* triangles of a shaken grid in two panels with a seam along x = 0.15, each with its own (u, v) */
        double x[N * N * 3], uv[(N - 1) * (N - 1) * 12];
        int sizes[(N - 1) * (N - 1) * 2], vertices[(N - 1) * (N - 1) * 6], panels[(N - 1) * (N - 1) * 2], fabrics[2] = {fabric, fabric};
        double scales[4] = {1, 1, 0.95, 1.05};
        for (int i = 0; i < N * N; i++) {
            x[3 * i] = 0.3 * (i % N) / (N - 1) + random_between(-0.005, 0.005);
            x[3 * i + 1] = 0.3 * (i / N) / (N - 1) + random_between(-0.005, 0.005);
            x[3 * i + 2] = 0;
        }
        int f = 0;
        for (int j = 0; j < N - 1; j++)
            for (int i = 0; i < N - 1; i++) {
                int q[6] = {i + j * N, i + 1 + j * N, i + 1 + (j + 1) * N, i + j * N, i + 1 + (j + 1) * N, i + (j + 1) * N};
                for (int c = 0; c < 6; c++) {
                    vertices[3 * f + c] = q[c];
                    double px = x[3 * q[c]], py = x[3 * q[c] + 1];
                    int right = i >= N / 2; /* the second panel is turned by 30 degrees in its material */
                    uv[2 * (3 * f + c)] = right ? px * cos(0.5) - py * sin(0.5) + 7 : px;
                    uv[2 * (3 * f + c) + 1] = right ? px * sin(0.5) + py * cos(0.5) : py;
                }
                for (int k = 0; k < 2; k++, f++) {
                    sizes[f] = 3;
                    panels[f] = i >= N / 2;
                }
            }
        toile_mesh m = {.name = "m", .vertex_count = N * N, .positions = x, .face_count = f, .face_sizes = sizes,
                        .face_vertices = vertices, .corner_uv = uv, .panel_count = 2, .panel_fabrics = fabrics,
                        .panel_scales = scales, .face_panels = panels, .keep_start_angles = true};
        if (toile_add_mesh(w, &m, NULL) != TOILE_OK) {
            printf("%s\n", toile_message(w));
            return NULL;
        }
    }
    if (toile_build(w) != TOILE_OK)
        return NULL;
    toile_sim *sim = toile_world_sim(w);
    for (int i = 0; i < sim->state.n; i++)
        for (int k = 0; k < 3; k++) {
            sim->state.x[4 * i + k] += random_between(-0.01, 0.01);
            sim->state.v[4 * i + k] = random_between(-1, 1);
            sim->work.ahead[4 * i + k] = random_between(-0.01, 0.01);
        }
    return w;
}

static void evaluate_with(const toile_kernels *k, toile_sim *sim, double h) {
    const toile_model *m = sim->model;
    toile_work *w = &sim->work;
    toile_evaluation at = {.model = m, .x = sim->state.x, .v = sim->state.v, .d = w->ahead, .h = h, .turn = h};
    if (!m->springs_used)
        k->triangles(&at, 0, m->triangles.padded, w->triangle);
    k->hinges(&at, 0, m->hinges.padded, w->bend, w->hinge);
    for (int pass = 0; pass < m->hinges.passes; pass++)
        k->moments(m, pass, 0, m->hinges.padded, w->bend, w->hinge);
    k->springs(&at, 0, m->springs.padded, w->spring);
    toile_assembly a = {m, h, w->triangle, w->hinge, w->spring, w->force, w->drag, NULL, false};
    for (int c = 0; c < m->pattern.chunk_count; c++)
        k->assemble(&a, c, &w->matrix, w->b);
}

/* The matrix as a dense one, without the masses. */
static double *dense_matrix(const toile_sim *sim) {
    const toile_pattern *p = &sim->model->pattern;
    int n = 3 * p->n;
    double *A = calloc((size_t)n * (size_t)n, sizeof *A);
    for (int i = 0; i < p->n; i++) {
        for (int r = 0; r < 3; r++)
            for (int c = 0; c < 3; c++)
                A[(3 * i + r) * n + 3 * i + c] =
                    sim->work.matrix.diagonal[12 * i + 4 * r + c] - (r == c ? sim->model->mass[i] : 0);
        for (int k = p->row_begin[i]; k < p->row_begin[i + 1]; k++)
            for (int r = 0; r < 3; r++)
                for (int c = 0; c < 3; c++) {
                    double value = sim->work.matrix.off[9 * k + 3 * r + c];
                    A[(3 * i + r) * n + 3 * p->column[k] + c] = value;
                    A[(3 * p->column[k] + c) * n + 3 * i + r] = value;
                }
    }
    return A;
}

/* Cholesky of A + shift: fails if A has an eigenvalue below -shift. */
static int positive(const double *A, int n, double shift) {
    double *L = malloc((size_t)n * (size_t)n * sizeof *L);
    memcpy(L, A, (size_t)n * (size_t)n * sizeof *L);
    int ok = 1;
    for (int j = 0; j < n && ok; j++) {
        double d = L[j * n + j] + shift;
        for (int k = 0; k < j; k++)
            d -= L[j * n + k] * L[j * n + k];
        ok = d > 0;
        L[j * n + j] = sqrt(d);
        for (int i = j + 1; i < n && ok; i++) {
            double s = L[i * n + j];
            for (int k = 0; k < j; k++)
                s -= L[i * n + k] * L[j * n + k];
            L[i * n + j] = s / L[j * n + j];
        }
    }
    free(L);
    return ok;
}

/* Force of the whole garment by the plain forms, N. */
static void plain_forces(const toile_sim *sim, const double *x, const double *v, double *f) {
    const toile_model *m = sim->model;
    double cx[4][3], cv[4][3], cf[4][3];
    memset(f, 0, 3 * (size_t)m->particle_count * sizeof *f);
#define CORNERS(vertex, count, e)                                                   \
    for (int c = 0; c < count; c++) {                                               \
        memcpy(cx[c], x + 4 * (vertex)[c][e], sizeof cx[c]);                        \
        memcpy(cv[c], v + 4 * (vertex)[c][e], sizeof cv[c]);                        \
    }
#define ADD(vertex, count, e)                                                       \
    for (int c = 0; c < count; c++)                                                 \
        for (int k = 0; k < 3; k++)                                                 \
            f[3 * (vertex)[c][e] + k] += cf[c][k];
    const toile_triangles *t = &m->triangles;
    for (int e = 0; e < t->count && !m->springs_used; e++) {
        toile_triangle_element element = {t->a1[e], t->a2[e], t->b1[e], t->b2[e], t->scale_u[e], t->scale_v[e],
                                          t->stiff_u[e], t->stiff_v[e], t->stiff_s[e], t->damping[e],
                                          t->curve_u[e], t->curve_v[e], t->curve_s[e], t->lock[e],
                                          t->limit[e], t->stiff_limit[e]};
        CORNERS(t->vertex, 3, e)
        toile_triangle_force(&element, (const double(*)[3])cx, (const double(*)[3])cv, cf);
        ADD(t->vertex, 3, e)
    }
    const toile_hinges *h = &m->hinges;
    double *bend = calloc(3 * (size_t)h->count + 1, sizeof *bend), *moment = bend + h->count;
    for (int e = 0; e < h->count; e++) {
        double g[4][3];
        CORNERS(h->vertex, 4, e)
        toile_hinge_gradient((const double(*)[3])cx, g);
        bend[e] = toile_hinge_angle((const double(*)[3])cx) - h->rest[e];
        for (int c = 0; c < 4; c++)
            for (int k = 0; k < 3; k++)
                bend[e] += h->damping[e] * g[c][k] * cv[c][k];
    }
    toile_hinge_moments(h, bend, moment, moment + h->count);
    for (int e = 0; e < h->count; e++) {
        double g[4][3];
        CORNERS(h->vertex, 4, e)
        toile_hinge_gradient((const double(*)[3])cx, g);
        for (int c = 0; c < 4; c++)
            for (int k = 0; k < 3; k++)
                cf[c][k] = -moment[e] * g[c][k];
        ADD(h->vertex, 4, e)
    }
    free(bend);
    const toile_springs *s = &m->springs;
    for (int e = 0; e < s->padded; e++) {
        toile_spring_element element = {e >= s->axial_padded, s->length[e], s->stiffness[e], s->damping[e],
                                        s->curve[e], s->onset[e], s->knee[e], s->limit[e], s->stiff_limit[e]};
        if (element.stiffness == 0)
            continue;
        CORNERS(s->vertex, 2, e)
        toile_spring_force(&element, (const double(*)[3])cx, (const double(*)[3])cv, cf[0]);
        for (int k = 0; k < 3; k++)
            cf[1][k] = -cf[0][k];
        ADD(s->vertex, 2, e)
    }
}

static void kernels(void) {
    for (int kind = 0; kind < 4; kind++) {
        const char *model = kind & 1 ? "springs" : "continuum";
        toile_world *w = shaken(model, kind >> 1);
        CHECK(w != NULL, "cannot make the %s garment", model);
        if (!w)
            continue;
        toile_sim *sim = toile_world_sim(w);
        int n = sim->state.n;
        double h = 1.0 / 120;
        const toile_kernels *base = toile_kernels_find("sse2");
        /* right side without look-ahead is h times the plain force */
        double *ahead = malloc(4 * (size_t)n * sizeof *ahead), *plain = malloc(3 * (size_t)n * sizeof *plain);
        memcpy(ahead, sim->work.ahead, 4 * (size_t)n * sizeof *ahead);
        memset(sim->work.ahead, 0, 4 * (size_t)n * sizeof *ahead);
        memset(sim->work.force, 0, 4 * (size_t)n * sizeof *ahead);
        memset(sim->work.drag, 0, 8 * (size_t)n * sizeof *ahead);
        double instant = 1e-14; /* what the kernels take off for turning is proportional to the step */
        evaluate_with(base, sim, instant);
        plain_forces(sim, sim->state.x, sim->state.v, plain);
        double worst = 0, scale = instant * largest(plain, 3 * n);
        for (int i = 0; i < n; i++)
            for (int k = 0; k < 3; k++)
                worst = fmax(worst, fabs(sim->work.b[4 * i + k] - instant * plain[3 * i + k]));
        evaluate_with(base, sim, h);
        CHECK(worst < 1e-11 * scale, "%s: kernel and plain forces differ by %.2e of %.2e", model, worst, scale);

        /* the plain forces without velocity are the gradient of the whole energy */
        double *still = calloc(4 * (size_t)n, sizeof *still), gravity_free = 0;
        plain_forces(sim, sim->state.x, still, plain);
        for (int trial = 0; trial < 60; trial++) {
            int at = (int)(random_unit() * 3 * n);
            double *coordinate = sim->state.x + 4 * (at / 3) + at % 3, kept = *coordinate, gradient = 0;
            static const double WEIGHT[4] = {1.0 / 12, -8.0 / 12, 8.0 / 12, -1.0 / 12}, AT[4] = {-2, -1, 1, 2};
            for (int s = 0; s < 4; s++) {
                *coordinate = kept + AT[s] * 1e-6;
                gradient += WEIGHT[s] * toile_sim_energies(sim).elastic / 1e-6;
            }
            *coordinate = kept;
            gravity_free = fmax(gravity_free, fabs(plain[at] + gradient));
        }
        CHECK(gravity_free < 1e-6 * largest(plain, 3 * n), "%s: force and energy gradient differ by %.2e of %.2e", model,
              gravity_free, largest(plain, 3 * n));
        free(still);

        /* what enters the matrix is positive semi-definite: no eigenvalue below -1e-12 of the largest entry */
        double *A = dense_matrix(sim), entry = largest(A, 9 * n * n);
        CHECK(positive(A, 3 * n, 1e-12 * entry), "%s: the matrix has a negative eigenvalue", model);
        CHECK(!positive(A, 3 * n, -1e-3 * entry), "%s: the positivity test cannot fail", model);
        double row_sum = 0; /* a translation meets no resistance */
        for (int i = 0; i < 3 * n; i++)
            for (int k = 0; k < 3; k++) {
                double s = 0;
                for (int j = k; j < 3 * n; j += 3)
                    s += A[i * 3 * n + j];
                row_sum = fmax(row_sum, fabs(s));
            }
        CHECK(row_sum < 1e-12 * entry, "%s: a translation meets %.2e of %.2e", model, row_sum, entry);

        /* products: chunks and half storage against the dense matrix */
        double *x = sim->state.v, *y = sim->work.s;
        for (int c = 0; c < sim->model->pattern.chunk_count; c++)
            base->multiply(&sim->work.matrix, c, x, y);
        for (int c = 0; c < sim->model->pattern.chunk_count; c++)
            base->multiply_spill(&sim->work.matrix, c, y);
        worst = 0;
        for (int i = 0; i < 3 * n; i++) {
            double s = sim->model->mass[i / 3] * x[4 * (i / 3) + i % 3];
            for (int j = 0; j < 3 * n; j++)
                s += A[i * 3 * n + j] * x[4 * (j / 3) + j % 3];
            worst = fmax(worst, fabs(s - y[4 * (i / 3) + i % 3]));
        }
        CHECK(worst < 1e-12 * entry, "%s: product differs by %.2e", model, worst);
        free(A);

        /* every instruction set, bit for bit */
        memcpy(sim->work.ahead, ahead, 4 * (size_t)n * sizeof *ahead);
        evaluate_with(base, sim, h);
        size_t off = 9 * (size_t)sim->model->pattern.off_count;
        double *b = malloc(4 * (size_t)n * sizeof *b), *o = malloc(off * sizeof *o);
        memcpy(b, sim->work.b, 4 * (size_t)n * sizeof *b);
        memcpy(o, sim->work.matrix.off, off * sizeof *o);
        static const char *const SETS[] = {"avx2", "avx512"};
        for (int s = 0; s < 2; s++) {
            const toile_kernels *k = toile_kernels_find(SETS[s]);
            if (!k) {
                SKIP("this machine has no %s", SETS[s]);
                continue;
            }
            evaluate_with(k, sim, h);
            CHECK(memcmp(b, sim->work.b, 4 * (size_t)n * sizeof *b) == 0 && memcmp(o, sim->work.matrix.off, off * sizeof *o) == 0,
                  "%s: %s gives other bits than sse2", model, SETS[s]);
        }
        free(b), free(o), free(ahead), free(plain);
        toile_destroy(w);
    }
}

int main(int argc, char **argv) {
    RUN(triangles);
    RUN(hinges);
    RUN(springs);
    RUN(stiffening);
    RUN(locking);
    RUN(jamming);
    RUN(limiting);
    RUN(limits_hold);
    RUN(limits_let_shear);
    RUN(bend_polynomial);
    RUN(angles);
    RUN(kernels);
    FINISH();
}
