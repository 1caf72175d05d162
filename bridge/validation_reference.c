/* Reference curves of the protocols, from their differential equations or sums. */
#include "validation.h"

/* ---- a: cantilever ---- */

enum { STEPS = 4000 };

/* theta' at the tip for a curvature at the clamp; lengths in L. */
static double shoot_cantilever(double gamma, double bend, double *drop, double *reach, int count, double *x,
                               double *z) {
    double theta = 0, rate = bend, h = 1.0 / STEPS, px = 0, pz = 0;
    for (int i = 0; i < STEPS; i++) {
        if (x && i % (STEPS / count) == 0)
            x[i / (STEPS / count)] = px, z[i / (STEPS / count)] = -pz;
        double s = i * h, k[4][4], at[2] = {theta, rate};
        for (int n = 0; n < 4; n++) {
            double part = n == 0 ? 0 : n == 3 ? h : h / 2;
            double t = n ? theta + part * k[n - 1][0] : at[0], r = n ? rate + part * k[n - 1][1] : at[1];
            k[n][0] = r;
            k[n][1] = -gamma * (1 - s - part) * cos(t);
            k[n][2] = cos(t);
            k[n][3] = sin(t);
        }
        double sum[4];
        for (int c = 0; c < 4; c++)
            sum[c] = h * (k[0][c] + 2 * k[1][c] + 2 * k[2][c] + k[3][c]) / 6;
        theta += sum[0], rate += sum[1], px += sum[2], pz += sum[3];
        if (fabs(theta) > 20)
            return theta;
    }
    if (x)
        x[count] = px, z[count] = -pz;
    *drop = pz, *reach = px;
    return rate;
}

void reference_cantilever(double gamma, double *drop, double *reach, int count, double *x, double *z) {
    double low = 0, high = gamma;
    for (int i = 0; i < 200; i++) {
        double mid = 0.5 * (low + high);
        if (shoot_cantilever(gamma, mid, drop, reach, 1, NULL, NULL) > 0)
            high = mid;
        else
            low = mid;
    }
    shoot_cantilever(gamma, low, drop, reach, count, x, z);
}

/* ---- b: heart loop ---- */

/* From the clamp, leaving upwards, to the lowest point at half the length: how far phi is from -pi/2 and x
 * from 0. */
static void shoot_heart(double gamma, double rate, double c, double miss[2], double *height, int count,
                        double *x, double *z) {
    double phi = PI, h = 0.5 / STEPS, px = 0, pz = 0;
    *height = 0;
    for (int i = 0; i < STEPS; i++) {
        if (x && i % (STEPS / count) == 0)
            x[i / (STEPS / count)] = px, z[i / (STEPS / count)] = -pz;
        double s = i * h, k[4][4];
        for (int n = 0; n < 4; n++) {
            double part = n == 0 ? 0 : n == 3 ? h : h / 2;
            double p = n ? phi + part * k[n - 1][0] : phi, r = n ? rate + part * k[n - 1][1] : rate;
            k[n][0] = r;
            k[n][1] = gamma * (0.5 - s - part) * sin(p) - c * cos(p);
            k[n][2] = sin(p);
            k[n][3] = cos(p);
        }
        double sum[4];
        for (int d = 0; d < 4; d++)
            sum[d] = h * (k[0][d] + 2 * k[1][d] + 2 * k[2][d] + k[3][d]) / 6;
        phi += sum[0], rate += sum[1], px += sum[2], pz += sum[3];
        *height = fmax(*height, pz);
    }
    if (x)
        x[count] = px, z[count] = -pz;
    miss[0] = phi + PI / 2, miss[1] = px;
}

double reference_heart(double gamma, int count, double *x, double *z) {
    double rate = -3 * PI, c = 0, height = 0, miss[2];
    int levels = gamma > 0 ? 20 + (int)(20 * log10(1 + gamma)) : 0;
    for (int l = 0; l <= levels; l++) { /* weight comes on by and by, so that Newton's start is near */
        double now = levels ? gamma * pow((double)l / levels, 3) : 0;
        for (int i = 0; i < 60; i++) {
            double a[2], b[2], d = 1e-6, unused;
            shoot_heart(now, rate, c, miss, &height, 1, NULL, NULL);
            if (fabs(miss[0]) + fabs(miss[1]) < 1e-10)
                break;
            shoot_heart(now, rate + d, c, a, &unused, 1, NULL, NULL);
            shoot_heart(now, rate, c + d, b, &unused, 1, NULL, NULL);
            double j[4] = {(a[0] - miss[0]) / d, (b[0] - miss[0]) / d, (a[1] - miss[1]) / d,
                           (b[1] - miss[1]) / d};
            double det = j[0] * j[3] - j[1] * j[2], dr = (j[3] * miss[0] - j[1] * miss[1]) / det;
            double dc = (-j[2] * miss[0] + j[0] * miss[1]) / det, most = fmax(fabs(dr) / 2, fabs(dc) / 20),
                   share = most > 1 ? 1 / most : 1;
            rate -= share * dr, c -= share * dc;
        }
    }
    shoot_heart(gamma, rate, c, miss, &height, count, x, z);
    return fabs(miss[0]) + fabs(miss[1]) < 1e-6 ? height : NAN;
}

/* ---- c: pendulum and hanging chain ---- */

/* T = 4 K(sin^2(a/2)) sqrt(l/g), and K = pi / (2 agm(1, cos(a/2))). */
double reference_pendulum(double amplitude) {
    double a = 1, b = cos(amplitude / 2);
    for (int i = 0; i < 30; i++) {
        double mean = 0.5 * (a + b);
        b = sqrt(a * b);
        a = mean;
    }
    return 2 * PI / a;
}

/* N links, particles of 1/N of the mass, half at the tip: shapes from the top down; what is left over at the
 * tip. */
static double shoot_chain(int n, double omega2, double *y) {
    double above = 0, here = 1.0 / n, h = 1.0 / n, m = 1.0 / n;
    if (y)
        y[0] = 0, y[1] = here;
    for (int i = 1; i < n; i++) {
        double up = (n - i + 0.5) * m / h, down = (n - i - 0.5) * m / h; /* tension / link length, in g */
        double below = here + (up * (here - above) - m * omega2 * here) / down;
        above = here, here = below;
        if (y)
            y[i + 1] = here;
    }
    return 0.5 * m / h * (here - above) - 0.5 * m * omega2 * here;
}

double reference_chain_mode(int links, int mode, double *shape) {
    double last = shoot_chain(links, 0, NULL), at = 0, step = 0.01;
    for (int found = 0; at < 1e4; at += step) {
        double now = shoot_chain(links, at + step, NULL);
        if ((now > 0) != (last > 0) && ++found == mode) {
            double low = at, high = at + step;
            for (int i = 0; i < 100; i++) {
                double mid = 0.5 * (low + high);
                if ((shoot_chain(links, mid, NULL) > 0) == (last > 0))
                    low = mid;
                else
                    high = mid;
            }
            shoot_chain(links, low, shape);
            return sqrt(low);
        }
        last = now;
    }
    return NAN;
}

/* ---- d: catenary ---- */

double reference_catenary(double length, int links, double *a) {
    double low = 1e-3, high = 1e3;
    for (int i = 0; i < 200; i++) { /* 2 a sinh(1 / (2 a)) = length falls with a */
        double mid = sqrt(low * high);
        if (2 * mid * sinh(0.5 / mid) > length)
            low = mid;
        else
            high = mid;
    }
    *a = low;
    double sag = 0;
    low = 1e-9, high = 1e6; /* slope of link i is q (i - (N - 1) / 2) */
    for (int i = 0; i < 300; i++) {
        double q = sqrt(low * high), span = 0;
        sag = 0;
        for (int k = 0; k < links; k++) {
            double slope = q * (k - 0.5 * (links - 1)), along = length / links / sqrt(1 + slope * slope);
            span += along;
            sag -= k < links / 2 ? slope * along : 0;
        }
        if (span > 1)
            low = q;
        else
            high = q;
    }
    return sag;
}
