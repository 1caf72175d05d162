#include "pattern_curve.h"

#include <math.h>

/* Centre, first angle and the angle gone through, as in SVG 1.1 appendix F.6.5 for a circle. */
static void arc_of(const toile_curve *c, double centre[2], double *begin, double *sweep) {
    double x = c->to[0] - c->from[0], y = c->to[1] - c->from[1], chord = hypot(x, y);
    double half = 0.5 * chord, height = sqrt(fmax(0, c->radius * c->radius - half * half));
    /* The centre is left of the chord if the shorter way is counter-clockwise. */
    double side = c->large != c->clockwise ? -height : height;
    if (chord > 0) {
        centre[0] = c->from[0] + 0.5 * x - side * y / chord;
        centre[1] = c->from[1] + 0.5 * y + side * x / chord;
    } else {
        centre[0] = c->from[0];
        centre[1] = c->from[1];
    }
    *begin = atan2(c->from[1] - centre[1], c->from[0] - centre[0]);
    double end = atan2(c->to[1] - centre[1], c->to[0] - centre[0]);
    *sweep = end - *begin;
    if (c->clockwise && *sweep > 0)
        *sweep -= 2 * M_PI;
    if (!c->clockwise && *sweep < 0)
        *sweep += 2 * M_PI;
}

static double radius_of(const toile_curve *c) {
    return fmax(c->radius, 0.5 * hypot(c->to[0] - c->from[0], c->to[1] - c->from[1]));
}

void toile_curve_through(toile_curve *c, double (*points)[3], int count) {
    for (int i = 1; i < count; i++)
        points[i][2] = points[i - 1][2] + hypot(points[i][0] - points[i - 1][0], points[i][1] - points[i - 1][1]);
    c->point_count = count;
    c->points = (const double(*)[3])points;
}

/* The parameter is the part of the length. */
static void through_point(const toile_curve *c, double t, double p[2]) {
    const double(*q)[3] = c->points;
    double wanted = t * q[c->point_count - 1][2];
    int low = 0, high = c->point_count - 1;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        *(q[middle][2] <= wanted ? &low : &high) = middle;
    }
    double size = q[high][2] - q[low][2], part = size > 0 ? (wanted - q[low][2]) / size : 0;
    for (int k = 0; k < 2; k++)
        p[k] = (1 - part) * q[low][k] + part * q[high][k];
}

void toile_curve_point(const toile_curve *c, double t, double p[2]) {
    double s = 1 - t;
    if (c->point_count > 0) {
        through_point(c, t, p);
        return;
    }
    if (c->arc) {
        double centre[2], begin, sweep, r = radius_of(c);
        arc_of(c, centre, &begin, &sweep);
        p[0] = centre[0] + r * cos(begin + t * sweep);
        p[1] = centre[1] + r * sin(begin + t * sweep);
        return;
    }
    for (int k = 0; k < 2; k++) {
        double a = c->from[k], b = c->control[0][k], d = c->control[1][k], e = c->to[k];
        if (c->control_count == 0)
            p[k] = s * a + t * e;
        else if (c->control_count == 1)
            p[k] = s * s * a + 2 * s * t * b + t * t * e;
        else
            p[k] = s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * d + t * t * t * e;
    }
}

static void derivative(const toile_curve *c, double t, double v[2]) {
    double s = 1 - t;
    for (int k = 0; k < 2; k++) {
        double a = c->from[k], b = c->control[0][k], d = c->control[1][k], e = c->to[k];
        if (c->control_count == 0)
            v[k] = e - a;
        else if (c->control_count == 1)
            v[k] = 2 * s * (b - a) + 2 * t * (e - b);
        else
            v[k] = 3 * s * s * (b - a) + 6 * s * t * (d - b) + 3 * t * t * (e - d);
    }
}

static double speed(const toile_curve *c, double t) {
    double v[2];
    derivative(c, t, v);
    return hypot(v[0], v[1]);
}

/* Length between two parameters: Gauss-Legendre with three points, exact for speeds of degree 5. */
static double piece(const toile_curve *c, double a, double b) {
    static const double AT = 0.7745966692414834; /* sqrt(3/5) */
    double half = 0.5 * (b - a), middle = 0.5 * (a + b);
    return half / 9 * (5 * speed(c, middle - AT * half) + 8 * speed(c, middle) + 5 * speed(c, middle + AT * half));
}

static double turn(const double u[2], const double v[2]) {
    return fabs(atan2(u[0] * v[1] - u[1] * v[0], u[0] * v[0] + u[1] * v[1]));
}

static double through_turning(const toile_curve *c) {
    double sum = 0;
    for (int i = 1; i + 1 < c->point_count; i++) {
        const double *a = c->points[i - 1], *b = c->points[i], *d = c->points[i + 1];
        sum += turn((double[2]){b[0] - a[0], b[1] - a[1]}, (double[2]){d[0] - b[0], d[1] - b[1]});
    }
    return sum;
}

void toile_curve_measure_of(const toile_curve *c, toile_curve_measure *m) {
    m->turning = 0;
    m->upto[0] = 0;
    if (c->arc || c->point_count > 0) {
        double centre[2], begin, sweep;
        arc_of(c, centre, &begin, &sweep);
        m->turning = c->arc ? fabs(sweep) : through_turning(c);
        m->length = c->arc ? radius_of(c) * m->turning : c->points[c->point_count - 1][2];
        for (int i = 1; i <= TOILE_CURVE_PARTS; i++)
            m->upto[i] = m->length * i / TOILE_CURVE_PARTS;
        return;
    }
    double before[2], now[2];
    derivative(c, 0, before);
    for (int i = 1; i <= TOILE_CURVE_PARTS; i++) {
        double a = (double)(i - 1) / TOILE_CURVE_PARTS, b = (double)i / TOILE_CURVE_PARTS;
        m->upto[i] = m->upto[i - 1] + piece(c, a, b);
        derivative(c, b, now);
        m->turning += turn(before, now);
        before[0] = now[0];
        before[1] = now[1];
    }
    m->length = m->upto[TOILE_CURVE_PARTS];
}

double toile_curve_at(const toile_curve *c, const toile_curve_measure *m, double part) {
    if (part <= 0 || part >= 1 || c->arc || c->point_count > 0 || c->control_count == 0)
        return part <= 0 ? 0 : part >= 1 ? 1 : part;
    double wanted = part * m->length;
    int low = 0, high = TOILE_CURVE_PARTS;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        *(m->upto[middle] <= wanted ? &low : &high) = middle;
    }
    /* Newton's method within the part, kept inside of it. */
    double a = (double)low / TOILE_CURVE_PARTS, b = (double)high / TOILE_CURVE_PARTS;
    double size = m->upto[high] - m->upto[low];
    double t = size > 0 ? a + (b - a) * (wanted - m->upto[low]) / size : a;
    for (int i = 0; i < 4; i++) {
        double v = speed(c, t);
        if (!(v > 0))
            break;
        t -= (m->upto[low] + piece(c, a, t) - wanted) / v;
        t = t < a ? a : t > b ? b : t;
    }
    return t;
}
