/* Bending of a sheet of flat triangles, the same on every mesh: the lowest order of Hellan, Herrmann and Johnson (Arnold,
 * Walker 2020, "The Hellan-Herrmann-Johnson method with curved elements", section 2; on flat triangles Morley's plate).
 *
 * Every hinge has a moment m_e, every triangle the one constant moment tensor M whose normal parts l n'M n on its edges of
 * length l are the moments of its hinges. The energy is the largest of
 *   sum m_e (angle_e - rest_e) - sum over triangles of area/2 M D^-1 M,     D = (B_u, B_v, D_uv) by k_uu, k_vv, k_uv,
 * so S m = angle - rest with the compliance S = sum over triangles of area A^-T D^-1 A^-1, A the rows l n n'. A sheet of
 * constant curvature k has m = A D k on every mesh: its energy is exact, and its forces cancel, because sum l n'M n angle is the
 * integral of M over the second derivatives of the heights and depends on the border only. Then no pattern of vertices can
 * take bending off the hinges. (Fits of each triangle's curvature to its hinges have exact energies too but forces that do
 * not cancel; couplings within triangles that make them cancel leave patterns that cost nothing: on alternating diagonals a
 * cotton disc draped 5 to 7 points lower than on one diagonal. Hinges one by one, however weighted, are 1.5 to 3 times too
 * stiff along a diagonal.)
 *
 * On a border n'M n is 0 at the edge but not in the middle of the triangle, which stands for both. Taken as 0, sheets rolled up to
 * their end lose 0.61 cells there; taken as what costs least (the edge does not bend), 0.55, but then strips of four triangles to a
 * cell, whose sides lie across their hinges, are 6 % too stiff. BORDER is between: 0.59 cells, 1 to 4 %.
 *
 * S is as well conditioned as a mass matrix: over its diagonal its eigenvalues lie between those of the triangles (Wathen 1987),
 * [1/3, 2] for right-angled ones. Chebyshev's iteration therefore solves it to 0.1 % in 10 passes (irregular meshes to 0.4 % in
 * 12), from nothing, so that moments are a fixed linear map of the angles, a polynomial of S: symmetric, and positive definite
 * on any mesh because no eigenvalue is above `high`. What is below LEAST (slivers) is left softer than it is.
 *
 * bound: a triangle's compliance is at least its least eigenvalue times its diagonal, so the inverse of the sum of these is no
 * softer than the moments in any mode; 1.0 to 1.04 times what is needed on the meshes of the validation. */
#include "hinge.h"

#include <math.h>
#include <string.h>

#define LEAST 0.2    /* least eigenvalue that counts: irregular meshes (20 % jitter) are right to 1 %; 0.1 costs 4 passes more */
#define BORDER (2.0 / 3) /* part of the least costly moment that is let through to a border */
#define EXACT 0.001  /* relative error of the moments, if as many passes are to be had */
#define SLIVER 0.02  /* least share of a triangle in the bound; the polynomial is below 16 there */

/* Compliance of a triangle by the moments of its edges, edge c across from corner c. */
static void compliance(const double p[3][2], const double stiffness[3], double S[3][3]) {
    double A[3][3], I[3][3];
    for (int c = 0; c < 3; c++) {
        const double *a = p[(c + 1) % 3], *b = p[(c + 2) % 3];
        double x = b[0] - a[0], y = b[1] - a[1], over = 1 / hypot(x, y);
        A[c][0] = y * y * over, A[c][1] = x * x * over, A[c][2] = -x * y * over;
    }
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            int a = (j + 1) % 3, b = (j + 2) % 3, c = (i + 1) % 3, d = (i + 2) % 3;
            I[i][j] = A[a][c] * A[b][d] - A[a][d] * A[b][c];
        }
    double det = A[0][0] * I[0][0] + A[0][1] * I[1][0] + A[0][2] * I[2][0];
    double area = 0.5 * fabs((p[1][0] - p[0][0]) * (p[2][1] - p[0][1]) - (p[1][1] - p[0][1]) * (p[2][0] - p[0][0]));
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            S[i][j] = 0;
            for (int c = 0; c < 3; c++)
                S[i][j] += area * (I[c][i] / det) * (I[c][j] / det) / stiffness[c];
        }
}

/* On a border: part of the moment of edge c that costs least, see above. */
static void leave_free(double S[3][3], int c) {
    double row[3] = {S[c][0], S[c][1], S[c][2]};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            S[i][j] -= i == c || j == c ? S[i][j] : BORDER * (row[i] * row[j] / row[c]);
    S[c][c] = 1;
}

/* Least and largest eigenvalue of a symmetric matrix (cyclic Jacobi; 12 sweeps are far more than 3 x 3 needs). */
static toile_hinge_range eigenvalues(double a[3][3]) {
    for (int sweep = 0; sweep < 12; sweep++)
        for (int p = 0; p < 2; p++)
            for (int q = p + 1; q < 3; q++) {
                if (fabs(a[p][q]) < 1e-300)
                    continue;
                double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
                double t = copysign(1, theta) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1), s = t * c;
                for (int k = 0; k < 3; k++) {
                    double x = a[k][p], y = a[k][q];
                    a[k][p] = c * x - s * y, a[k][q] = s * x + c * y;
                }
                for (int k = 0; k < 3; k++) {
                    double x = a[p][k], y = a[q][k];
                    a[p][k] = c * x - s * y, a[q][k] = s * x + c * y;
                }
            }
    return (toile_hinge_range){fmin(fmin(a[0][0], a[1][1]), a[2][2]), fmax(fmax(a[0][0], a[1][1]), a[2][2])};
}

static void add_share(toile_hinges *h, int e, int f, double value) {
    int slot = 0;
    while (slot < TOILE_HINGE_PARTNERS - 1 && h->partner[slot][e] != f && h->partner[slot][e] != e)
        slot++;
    h->partner[slot][e] = f;
    h->share[slot][e] += value;
}

void toile_hinge_add(toile_hinges *h, const int hinge[3], const double p[3][2], const double stiffness[3],
                     toile_hinge_range *range) {
    double S[3][3], scaled[3][3];
    compliance(p, stiffness, S);
    for (int c = 0; c < 3; c++)
        if (hinge[c] < 0)
            leave_free(S, c);
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            scaled[i][j] = i == j ? 1 : hinge[i] < 0 || hinge[j] < 0 ? 0 : S[i][j] / sqrt(S[i][i] * S[j][j]);
    toile_hinge_range own = eigenvalues(scaled);
    range->low = fmin(range->low, own.low);
    range->high = fmax(range->high, own.high);
    for (int i = 0; i < 3; i++) {
        if (hinge[i] < 0)
            continue;
        h->stiffness[hinge[i]] += S[i][i];
        h->bound[hinge[i]] += fmax(own.low, SLIVER) * S[i][i];
        for (int j = 0; j < 3; j++)
            if (j != i && hinge[j] >= 0)
                add_share(h, hinge[i], hinge[j], S[i][j]);
    }
}

void toile_hinge_finish(toile_hinges *h, toile_hinge_range range) {
    double low = fmax(range.low, LEAST), middle = 0.5 * (range.high + low), half = fmax(0.5 * (range.high - low), 1e-3);
    double ratio = middle / half, grows = acosh(ratio);
    h->passes = (int)fmin(ceil(acosh(1 / EXACT) / grows), TOILE_HINGE_PASSES_MAX);
    h->relax[0] = 1 / middle, h->carry[0] = 0;
    for (int pass = 1, last = 0; pass < h->passes; last = pass++) { /* Saad 2003, algorithm 12.1 */
        double before = last ? h->relax[last] * half / 2 : 1 / ratio, now = 1 / (2 * ratio - before);
        h->relax[pass] = 2 * now / half;
        h->carry[pass] = now * before;
    }
    double error = 1 / cosh(h->passes * grows);
    for (int e = 0; e < h->count; e++) {
        for (int k = 0; k < TOILE_HINGE_PARTNERS; k++)
            h->share[k][e] /= h->stiffness[e];
        h->stiffness[e] = 1 / h->stiffness[e];
        h->bound[e] = (1 + error) / h->bound[e];
    }
}

void toile_hinge_moments(const toile_hinges *h, const double *bend, double *moment, double *other) {
    double *now = h->passes % 2 ? other : moment, *next = h->passes % 2 ? moment : other;
    memset(now, 0, (size_t)h->count * sizeof *now);
    memset(next, 0, (size_t)h->count * sizeof *next);
    for (int pass = 0; pass < h->passes; pass++) {
        for (int e = 0; e < h->count; e++) {
            double left = h->stiffness[e] * bend[e] - now[e];
            for (int k = 0; k < TOILE_HINGE_PARTNERS; k++)
                left -= h->share[k][e] * now[h->partner[k][e]];
            next[e] = now[e] + h->carry[pass] * (now[e] - next[e]) + h->relax[pass] * left;
        }
        double *swap = now;
        now = next, next = swap;
    }
}
