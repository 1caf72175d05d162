/* The plain forms of every internal force (force_stretch.h, force_bend.h, force_spring.h). Written to be read beside
 * the papers; the kernels are the fast ones. */
#include "angle.h"
#include "force_bend.h"
#include "force_spring.h"
#include "force_stretch.h"
#include "vec3.h"

#include <math.h>
#include <string.h>

/* ---- triangles ---- */

/* w_u and w_v (eq. 9) of any vectors on the corners. */
static void material_derivative(const toile_triangle_element *e, const double x[3][3], double wu[3], double wv[3]) {
    for (int k = 0; k < 3; k++) {
        double d1 = x[1][k] - x[0][k], d2 = x[2][k] - x[0][k];
        wu[k] = e->a1 * d1 + e->a2 * d2;
        wv[k] = e->b1 * d1 + e->b2 * d2;
    }
}

void toile_stretch_law(double e, double onset, double curve, double knee, double *value, double *slope, double *bend,
                       double *integral) {
    double b = e - onset, q = fmin(fmax(b, 0), knee), beyond = b - q;
    if (value)
        *value = e + curve * q * (2 * b - q);
    if (slope)
        *slope = 1 + 2 * curve * q;
    if (bend)
        *bend = b > 0 && b < knee ? 2 * curve : 0;
    if (integral)
        *integral = 0.5 * e * e + curve * (q * q * q / 3 + (beyond > 0 ? q * beyond * (q + beyond) : 0));
}

void toile_limit_law(double s, double limit, double *value, double *slope, double *integral) {
    double beyond = fmax(s - limit, 0), q = fmin(beyond, TOILE_LIMIT_KNEE), rest = beyond - q;
    if (value)
        *value = q * (2 * beyond - q) / (2 * TOILE_LIMIT_KNEE);
    if (slope)
        *slope = q / TOILE_LIMIT_KNEE;
    if (integral)
        *integral = (q * q * q / 3 + q * rest * (q + rest)) / (2 * TOILE_LIMIT_KNEE);
}

/* C of the shear and its gradients p by w_u, q by w_v; of each thread its length squared, floored, and whether it is not. */
typedef struct shear {
    double c, m, p[3], q[3], uu, vv;
    double free_u, free_v; /* 1, or 0 where the floor holds */
} shear;

static shear shear_of(const double wu[3], const double wv[3]) {
    const double least = TOILE_SHEAR_FLOOR * TOILE_SHEAR_FLOOR;
    shear s = {.uu = fmax(dot(wu, wu), least), .vv = fmax(dot(wv, wv), least)};
    s.free_u = dot(wu, wu) > least, s.free_v = dot(wv, wv) > least;
    s.m = 1 / sqrt(sqrt(s.uu * s.vv));
    s.c = s.m * dot(wu, wv);
    for (int k = 0; k < 3; k++) {
        s.p[k] = s.m * wv[k] - 0.5 * s.free_u * s.c / s.uu * wu[k];
        s.q[k] = s.m * wu[k] - 0.5 * s.free_v * s.c / s.vv * wv[k];
    }
    return s;
}

/* Principal stretches, the larger first, their directions in the cloth relative to rest, w_i = c_i w_u + s_i w_v, and how hard each
 * pulls. */
typedef struct principal {
    double c[2], s[2], w[2][3], stretch[2], value[2], slope[2];
} principal;

static principal principal_of(const toile_triangle_element *e, const double wu[3], const double wv[3]) {
    principal p;
    double uu = dot(wu, wu) / (e->scale_u * e->scale_u), vv = dot(wv, wv) / (e->scale_v * e->scale_v);
    double uv = dot(wu, wv) / (e->scale_u * e->scale_v), angle = 0.5 * atan2(2 * uv, uu - vv);
    p.c[0] = cos(angle) / e->scale_u, p.s[0] = sin(angle) / e->scale_v;
    p.c[1] = -sin(angle) / e->scale_u, p.s[1] = cos(angle) / e->scale_v;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 3; k++)
            p.w[i][k] = p.c[i] * wu[k] + p.s[i] * wv[k];
        p.stretch[i] = sqrt(dot(p.w[i], p.w[i]));
        toile_limit_law(p.stretch[i], e->limit, &p.value[i], &p.slope[i], NULL);
    }
    return p;
}

double toile_triangle_energy(const toile_triangle_element *e, const double x[3][3]) {
    double wu[3], wv[3], iu, iv, is;
    material_derivative(e, x, wu, wv);
    toile_stretch_law(sqrt(dot(wu, wu)) - e->scale_u, 0, e->curve_u, TOILE_STRETCH_KNEE, NULL, NULL, NULL, &iu);
    toile_stretch_law(sqrt(dot(wv, wv)) - e->scale_v, 0, e->curve_v, TOILE_STRETCH_KNEE, NULL, NULL, NULL, &iv);
    toile_stretch_law(fabs(shear_of(wu, wv).c), e->lock, e->curve_s, TOILE_STRETCH_KNEE, NULL, NULL, NULL, &is);
    double energy = e->stiff_u * iu + e->stiff_v * iv + e->stiff_s * is;
    principal p = principal_of(e, wu, wv);
    for (int i = 0; i < 2; i++) {
        double phi;
        toile_limit_law(p.stretch[i], e->limit, NULL, NULL, &phi);
        energy += e->stiff_limit * phi;
    }
    return energy;
}

/* The law of shear over stiffness: odd in C. */
static void shear_law(const toile_triangle_element *e, double c, double *value, double *slope, double *bend) {
    toile_stretch_law(fabs(c), e->lock, e->curve_s, TOILE_STRETCH_KNEE, value, slope, bend, NULL);
    *value = copysign(*value, c);
    if (bend)
        *bend = copysign(*bend, c);
}

/* Tension over stiffness with its damping, which goes with the slope. */
static double tension_of(double length, double scale, double curve, double damping, double rate) {
    double value, slope;
    toile_stretch_law(length - scale, 0, curve, TOILE_STRETCH_KNEE, &value, &slope, NULL, NULL);
    return value + damping * slope * rate;
}

void toile_triangle_force(const toile_triangle_element *e, const double x[3][3], const double v[3][3], double f[3][3]) {
    double wu[3], wv[3], ru[3], rv[3], fu[3], fv[3];
    material_derivative(e, x, wu, wv);
    material_derivative(e, v, ru, rv);
    double lu = sqrt(dot(wu, wu)), lv = sqrt(dot(wv, wv));
    double tu = e->stiff_u * tension_of(lu, e->scale_u, e->curve_u, e->damping, dot(wu, ru) / lu);
    double tv = e->stiff_v * tension_of(lv, e->scale_v, e->curve_v, e->damping, dot(wv, rv) / lv);
    shear s = shear_of(wu, wv);
    double value, slope;
    shear_law(e, s.c, &value, &slope, NULL);
    double ts = e->stiff_s * (value + e->damping * slope * (dot(ru, s.p) + dot(s.q, rv)));
    for (int k = 0; k < 3; k++) {
        fu[k] = -(tu * wu[k] / lu + ts * s.p[k]);
        fv[k] = -(tv * wv[k] / lv + ts * s.q[k]);
    }
    principal p = principal_of(e, wu, wv);
    for (int i = 0; i < 2 && p.value[0] > 0; i++) {
        double rate = 0;
        for (int k = 0; k < 3; k++)
            rate += p.w[i][k] / p.stretch[i] * (p.c[i] * ru[k] + p.s[i] * rv[k]);
        double t = e->stiff_limit * (p.value[i] + e->damping * p.slope[i] * rate);
        for (int k = 0; k < 3; k++) {
            fu[k] -= t * p.c[i] * p.w[i][k] / p.stretch[i];
            fv[k] -= t * p.s[i] * p.w[i][k] / p.stretch[i];
        }
    }
    for (int k = 0; k < 3; k++) {
        f[1][k] = e->a1 * fu[k] + e->b1 * fv[k];
        f[2][k] = e->a2 * fu[k] + e->b2 * fv[k];
        f[0][k] = -(f[1][k] + f[2][k]);
    }
}

/* Adds d(force in w space)/d(w) for one stretch direction: all terms of eq. 8 and 12. */
static void stretch_blocks(double stiffness, double scale, double curve, double damping, const double *w, const double *r,
                           double dw[9], double dr[9]) {
    double l = sqrt(dot(w, w)), rate = dot(w, r) / l, slope, bend;
    double tension = stiffness * tension_of(l, scale, curve, damping, rate);
    toile_stretch_law(l - scale, 0, curve, TOILE_STRETCH_KNEE, NULL, &slope, &bend, NULL);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double ui = w[i] / l, uj = w[j] / l, across = (i == j) - ui * uj;
            /* d rate / d w_j = (r_j - u_j rate) / l */
            dw[3 * i + j] -= stiffness * ui * ((slope + damping * bend * rate) * uj + damping * slope * (r[j] - uj * rate) / l) +
                             tension * across / l;
            dr[3 * i + j] -= stiffness * damping * slope * ui * uj;
        }
}

/* The same for shear: law l of C with its rate R = r_u . p + q . r_v; force_u = -k (l + d l' R) p, force_v = -k (l + d l' R) q. */
static void shear_blocks(const toile_triangle_element *e, const double *wu, const double *wv, const double *ru, const double *rv,
                         double dw[4][9], double dr[4][9]) {
    shear s = shear_of(wu, wv);
    double value, slope, bend, uu[9], uv[9], vv[9], by_u[3], by_v[3], rate = dot(ru, s.p) + dot(s.q, rv);
    shear_law(e, s.c, &value, &slope, &bend);
    double stiffness = e->stiff_s, damping = e->damping * slope, grows = slope + e->damping * bend * rate;
    double t = stiffness * (value + damping * rate);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) { /* second derivatives of C: p by w_u, p by w_v, q by w_v */
            int k = 3 * i + j;
            double a = 0.5 * s.free_u / s.uu, b = 0.5 * s.free_v / s.vv;
            uu[k] = -s.m * a * wv[i] * wu[j] - a * wu[i] * s.p[j] - a * s.c * ((i == j) - 2 * wu[i] * wu[j] / s.uu);
            uv[k] = s.m * (i == j) - s.m * b * wv[i] * wv[j] - a * wu[i] * s.q[j];
            vv[k] = -s.m * b * wu[i] * wv[j] - b * wv[i] * s.q[j] - b * s.c * ((i == j) - 2 * wv[i] * wv[j] / s.vv);
        }
    for (int j = 0; j < 3; j++) { /* of l + d l' R */
        by_u[j] = grows * s.p[j], by_v[j] = grows * s.q[j];
        for (int i = 0; i < 3; i++) {
            by_u[j] += damping * (ru[i] * uu[3 * i + j] + rv[i] * uv[3 * j + i]);
            by_v[j] += damping * (ru[i] * uv[3 * i + j] + rv[i] * vv[3 * i + j]);
        }
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int k = 3 * i + j;
            dw[0][k] -= stiffness * s.p[i] * by_u[j] + t * uu[k];
            dw[1][k] -= stiffness * s.p[i] * by_v[j] + t * uv[k];
            dw[2][k] -= stiffness * s.q[i] * by_u[j] + t * uv[3 * j + i];
            dw[3][k] -= stiffness * s.q[i] * by_v[j] + t * vv[k];
            dr[0][k] -= stiffness * damping * s.p[i] * s.p[j];
            dr[1][k] -= stiffness * damping * s.p[i] * s.q[j];
            dr[2][k] -= stiffness * damping * s.q[i] * s.p[j];
            dr[3][k] -= stiffness * damping * s.q[i] * s.q[j];
        }
}

/* The same for the limit: each principal direction as a thread, and that they turn in the cloth as it deforms, which is the
 * gradient (w2; w1) of w1 . w2 twice, times (T1 / s1 - T2 / s2) / (s1^2 - s2^2). */
static void limit_blocks(const toile_triangle_element *e, const double *wu, const double *wv, double dw[4][9], double dr[4][9]) {
    principal p = principal_of(e, wu, wv);
    const double *const weight[2] = {p.c, p.s}, *s = p.stretch;
    if (p.value[0] == 0)
        return;
    double apart = s[0] * s[0] - s[1] * s[1];
    double turns = apart > 1e-9 * s[0] * s[0] ? (p.value[0] / s[0] - p.value[1] / s[1]) / apart
                                              : (p.slope[0] - p.value[0] / s[0]) / (2 * s[0] * s[0]);
    for (int row = 0; row < 2; row++) /* by w_u, w_v */
        for (int column = 0; column < 2; column++)
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    double of_w = 0, of_r = 0, gradient[2];
                    for (int d = 0; d < 2 && s[d] > 0; d++) {
                        double ui = p.w[d][i] / s[d], uj = p.w[d][j] / s[d], part = weight[row][d] * weight[column][d];
                        of_w += part * (p.slope[d] * ui * uj + p.value[d] / s[d] * ((i == j) - ui * uj));
                        of_r += part * p.slope[d] * ui * uj;
                    }
                    gradient[0] = weight[row][0] * p.w[1][i] + weight[row][1] * p.w[0][i];
                    gradient[1] = weight[column][0] * p.w[1][j] + weight[column][1] * p.w[0][j];
                    of_w += turns * gradient[0] * gradient[1];
                    dw[2 * row + column][3 * i + j] -= e->stiff_limit * of_w;
                    dr[2 * row + column][3 * i + j] -= e->stiff_limit * e->damping * of_r;
                }
}

void toile_triangle_jacobian(const toile_triangle_element *e, const double x[3][3], const double v[3][3], double dx[81],
                             double dv[81]) {
    double wu[3], wv[3], ru[3], rv[3];
    material_derivative(e, x, wu, wv);
    material_derivative(e, v, ru, rv);
    /* blocks over (w_u, w_v): [0] uu, [1] uv, [2] vu, [3] vv */
    double w[4][9] = {{0}}, r[4][9] = {{0}};
    stretch_blocks(e->stiff_u, e->scale_u, e->curve_u, e->damping, wu, ru, w[0], r[0]);
    stretch_blocks(e->stiff_v, e->scale_v, e->curve_v, e->damping, wv, rv, w[3], r[3]);
    shear_blocks(e, wu, wv, ru, rv, w, r);
    limit_blocks(e, wu, wv, w, r);
    double a[3] = {-(e->a1 + e->a2), e->a1, e->a2}, b[3] = {-(e->b1 + e->b2), e->b1, e->b2};
    for (int p = 0; p < 3; p++)
        for (int q = 0; q < 3; q++)
            for (int i = 0; i < 3; i++)
                for (int j = 0; j < 3; j++) {
                    int k = 3 * i + j, at = (3 * p + i) * 9 + 3 * q + j;
                    dx[at] = a[p] * a[q] * w[0][k] + a[p] * b[q] * w[1][k] + b[p] * a[q] * w[2][k] + b[p] * b[q] * w[3][k];
                    dv[at] = a[p] * a[q] * r[0][k] + a[p] * b[q] * r[1][k] + b[p] * a[q] * r[2][k] + b[p] * b[q] * r[3][k];
                }
}

/* ---- hinges ---- */

double toile_hinge_angle(const double x[4][3]) {
    double e[3], a[3], b[3], n1[3], n2[3], c[3];
    sub(x[1], x[0], e);
    sub(x[2], x[0], a);
    sub(x[3], x[0], b);
    cross(e, a, n1);
    cross(b, e, n2);
    cross(n1, n2, c);
    return toile_atan2(dot(c, e) / sqrt(dot(e, e)), dot(n1, n2));
}

/* The gradient and, when dx is given, its derivative in the direction dx (chain rule, line by line). */
static void gradient_and_tangent(const double x[4][3], const double (*dx)[3], double g[4][3], double dg[4][3]) {
    static const double ZERO[4][3] = {{0}};
    const double(*d)[3] = dx ? dx : ZERO;
    double e[3], a[3], b[3], c[3], f[3], n1[3], n2[3], de[3], da[3], db[3], dc[3], df[3], dn1[3], dn2[3], s[3], t[3];
    sub(x[1], x[0], e), sub(d[1], d[0], de);
    sub(x[2], x[0], a), sub(d[2], d[0], da);
    sub(x[3], x[0], b), sub(d[3], d[0], db);
    sub(x[2], x[1], c), sub(d[2], d[1], dc);
    sub(x[3], x[1], f), sub(d[3], d[1], df);
    cross(e, a, n1), cross(b, e, n2);
    cross(de, a, s), cross(e, da, t);
    for (int k = 0; k < 3; k++)
        dn1[k] = s[k] + t[k];
    cross(db, e, s), cross(b, de, t);
    for (int k = 0; k < 3; k++)
        dn2[k] = s[k] + t[k];
    double l = sqrt(dot(e, e)), dl = dot(e, de) / l;
    double q1 = dot(n1, n1), q2 = dot(n2, n2), dq1 = 2 * dot(n1, dn1), dq2 = 2 * dot(n2, dn2);
    double ce = dot(c, e), fe = dot(f, e), ae = dot(a, e), be = dot(b, e);
    double dce = dot(dc, e) + dot(c, de), dfe = dot(df, e) + dot(f, de);
    double dae = dot(da, e) + dot(a, de), dbe = dot(db, e) + dot(b, de);
    for (int k = 0; k < 3; k++) {
        double m1 = n1[k] / q1, m2 = n2[k] / q2;
        double dm1 = (dn1[k] - m1 * dq1) / q1, dm2 = (dn2[k] - m2 * dq2) / q2;
        g[2][k] = -l * m1;
        g[3][k] = -l * m2;
        g[0][k] = -(ce * m1 + fe * m2) / l;
        g[1][k] = (ae * m1 + be * m2) / l;
        if (!dx)
            continue;
        dg[2][k] = -dl * m1 - l * dm1;
        dg[3][k] = -dl * m2 - l * dm2;
        dg[0][k] = -(dce * m1 + ce * dm1 + dfe * m2 + fe * dm2) / l - g[0][k] * dl / l;
        dg[1][k] = (dae * m1 + ae * dm1 + dbe * m2 + be * dm2) / l - g[1][k] * dl / l;
    }
}

void toile_hinge_gradient(const double x[4][3], double gradient[4][3]) {
    gradient_and_tangent(x, NULL, gradient, NULL);
}

double toile_hinge_energy(const toile_hinge_element *e, const double x[4][3]) {
    double bend = toile_hinge_angle(x) - e->rest;
    return 0.5 * e->stiffness * bend * bend;
}

static double hinge_moment(const toile_hinge_element *e, const double x[4][3], const double v[4][3],
                           const double g[4][3]) {
    double rate = 0;
    for (int c = 0; c < 4; c++)
        rate += dot(g[c], v[c]);
    return e->stiffness * (toile_hinge_angle(x) - e->rest + e->damping * rate);
}

void toile_hinge_force(const toile_hinge_element *e, const double x[4][3], const double v[4][3], double f[4][3]) {
    double g[4][3];
    toile_hinge_gradient(x, g);
    double moment = hinge_moment(e, x, v, (const double(*)[3])g);
    for (int c = 0; c < 4; c++)
        for (int k = 0; k < 3; k++)
            f[c][k] = -moment * g[c][k];
}

void toile_hinge_jacobian(const toile_hinge_element *e, const double x[4][3], const double v[4][3], double dx[144],
                          double dv[144]) {
    double g[4][3], dg[4][3];
    toile_hinge_gradient(x, g);
    double moment = hinge_moment(e, x, v, (const double(*)[3])g);
    for (int j = 0; j < 12; j++) {
        double unit[4][3] = {{0}};
        unit[j / 3][j % 3] = 1;
        gradient_and_tangent(x, (const double(*)[3])unit, g, dg);
        double drate = 0;
        for (int c = 0; c < 4; c++)
            drate += dot(dg[c], v[c]);
        double dmoment = e->stiffness * (g[j / 3][j % 3] + e->damping * drate);
        for (int i = 0; i < 12; i++) {
            dx[12 * i + j] = -dmoment * g[i / 3][i % 3] - moment * dg[i / 3][i % 3];
            dv[12 * i + j] = -e->stiffness * e->damping * g[i / 3][i % 3] * g[j / 3][j % 3];
        }
    }
}

/* ---- springs ---- */

double toile_bend_polynomial(double s, double *derivative) {
    if (derivative)
        *derivative = ((-46.164 * s + 102.579) * s - 78.166) * s + 23.116;
    return (((-11.541 * s + 34.193) * s - 39.083) * s + 23.116) * s - 9.713;
}

double toile_bend_arc(double s) {
    double lo = 0, hi = TOILE_PI; /* sinc falls from 1 to 0 */
    for (int i = 0; i < 80; i++) {
        double mid = 0.5 * (lo + hi);
        if (sin(mid) / mid > s)
            lo = mid;
        else
            hi = mid;
    }
    double phi = 0.5 * (lo + hi);
    return phi < 1e-4 ? -3 : phi * phi / (cos(phi) - sin(phi) / phi);
}

/* Force along the connection (positive pulls together), its derivative by length, and energy. */
static void axial(const toile_spring_element *e, double l, double *force, double *slope, double *energy) {
    double stretch = l - e->length, s = l / e->length;
    *force = *slope = *energy = 0;
    if (!e->bend) {
        if (stretch < 0)
            return;
        toile_stretch_law(stretch, e->onset, e->curve, e->knee, force, slope, NULL, energy);
        *force *= e->stiffness, *slope *= e->stiffness, *energy *= e->stiffness;
        double value, steep, phi;
        toile_limit_law(s, e->limit, &value, &steep, &phi);
        *force += e->stiff_limit * e->length * value, *slope += e->stiff_limit * steep;
        *energy += e->stiff_limit * e->length * e->length * phi;
        return;
    }
    if (stretch >= 0)
        return;
    /* linear up to where it meets the polynomial: strain TOILE_BEND_LINEAR */
    double corner = 1 - TOILE_BEND_LINEAR, at_corner = toile_bend_polynomial(corner, NULL);
    double linear = -at_corner * e->stiffness / (TOILE_BEND_LINEAR * e->length); /* N/m */
    if (s > corner) {
        *force = linear * stretch;
        *slope = linear;
        *energy = 0.5 * linear * stretch * stretch;
        return;
    }
    double slope_s, f = toile_bend_polynomial(s, &slope_s);
    *force = e->stiffness * f;
    *slope = e->stiffness * slope_s / e->length;
    /* integral of the polynomial from the corner, after the linear part's triangle */
    double antiderivative[2];
    for (int i = 0; i < 2; i++) {
        double t = i ? corner : s;
        antiderivative[i] =
            ((((-11.541 / 5 * t + 34.193 / 4) * t - 39.083 / 3) * t + 23.116 / 2) * t - 9.713) * t;
    }
    *energy = 0.5 * linear * TOILE_BEND_LINEAR * TOILE_BEND_LINEAR * e->length * e->length +
              e->stiffness * e->length * (antiderivative[0] - antiderivative[1]);
}

double toile_spring_energy(const toile_spring_element *e, const double x[2][3]) {
    double d[3], force, slope, energy;
    sub(x[1], x[0], d);
    axial(e, sqrt(dot(d, d)), &force, &slope, &energy);
    return energy;
}

void toile_spring_force(const toile_spring_element *e, const double x[2][3], const double v[2][3], double f[3]) {
    double d[3], r[3], force, slope, energy;
    sub(x[1], x[0], d);
    sub(v[1], v[0], r);
    double l = sqrt(dot(d, d));
    axial(e, l, &force, &slope, &energy);
    double rate = dot(d, r) / l;
    for (int k = 0; k < 3; k++)
        f[k] = (force + e->damping * slope * rate) * d[k] / l; /* 3.6, 3.8 and 3.14 */
}

void toile_spring_jacobian(const toile_spring_element *e, const double x[2][3], const double v[2][3], double dx[9],
                           double dv[9]) {
    double d[3], r[3], force, slope, energy;
    sub(x[1], x[0], d);
    sub(v[1], v[0], r);
    double l = sqrt(dot(d, d)), rate = dot(d, r) / l;
    axial(e, l, &force, &slope, &energy);
    double kd = e->damping * slope, curve = 0;
    if (e->bend && slope > 0 && l / e->length <= 1 - TOILE_BEND_LINEAR) { /* the damping follows the slope */
        double s = l / e->length;
        curve = e->stiffness * ((-138.492 * s + 205.158) * s - 78.166) / (e->length * e->length);
    } else if (!e->bend && slope > 0) {
        toile_stretch_law(l - e->length, e->onset, e->curve, e->knee, NULL, NULL, &curve, NULL);
        curve *= e->stiffness;
        double beyond = l / e->length - e->limit;
        curve += beyond > 0 && beyond < TOILE_LIMIT_KNEE ? e->stiff_limit / (e->length * TOILE_LIMIT_KNEE) : 0;
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            double ui = d[i] / l, uj = d[j] / l, across = (i == j) - ui * uj;
            dx[3 * i + j] = slope * ui * uj + (force + kd * rate) / l * across + kd * ui * (r[j] - uj * rate) / l +
                            e->damping * curve * rate * ui * uj;
            dv[3 * i + j] = kd * ui * uj;
        }
}
