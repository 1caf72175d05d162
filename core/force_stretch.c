/* Stretch and shear of triangles, eight at a time (Baraff-Witkin 1998, 4.2, 4.3, 4.5; plain form: force_plain.c).
 *
 * With C_u = |w_u| - b_u, unit direction u = w_u / |w_u| and tension T = k (C + tau dC/dt):
 *   force in w space   F_u = -T u
 *   Jacobian           -(k u u' + T/|w_u| (I - u u')),  damping -(k tau u u')
 * The second term is indefinite under compression, so only T > 0 enters the matrix; Baraff-Witkin's eq. 12 without
 * the term they leave out is in T.
 *
 * Turning. A particle that moves on the tangent of its circle stretches every turning edge by h^2 t / 2, with
 * t = (rate across u)^2 / |w_u|, and seems to part from its neighbours at h t / 2 before the step and to approach them
 * after it. That is the step's doing, not the cloth's. So damping takes the mean of both, which is nothing, and the
 * second term takes T without the false tension: left in, they brake every rotation (k = 4000 N/m at 1 rev/s and
 * h = 1/240 s: half of the spin lost in 1 s, where backward Euler itself loses 13 %).
 *
 * Beyond its limit cloth resists in its principal directions too (add_limit).
 *
 * The law between C and T stiffens (force_stretch.h); k is its slope where C is.
 *
 * Shear C (force_stretch.h) keeps k (p; q)(p; q)' with its gradients p, q, k again the slope of its law, and drops the term with d2C/dx2 C, which is
 * indefinite whatever its sign. */
#include "force_stretch.h"
#include "kernels_table.h"
#include "stretch_law.h"

/* One direction that pulls with `tension`, whose slope is `slope` (both N m): gives force + K d, and H (6 numbers). */
TOILE_INLINE v8x3 pull(v8x3 w, v8 length, v8x3 rate, v8x3 d, v8 tension, v8 slope, v8 damping, v8 h, v8 turn, v8 H[6]) {
    v8x3 u = v8_scale(1 / length, w);
    v8 parting = v8_dot(u, rate), turning = (v8_dot(rate, rate) - parting * parting) / length;
    tension += slope * damping * (parting + 0.5 * turn * turning);
    v8 false_tension = slope * turn * turning * (0.5 * turn + damping);
    v8 across = v8_max(tension - false_tension, v8_set(0)) / length;
    v8 along = v8_dot(u, d);
    v8 inner = h * h * across, outer = h * slope * (h + damping) - inner; /* outer factor x u u' + inner x I */
    H[0] = outer * u.x * u.x + inner;
    H[1] = outer * u.x * u.y;
    H[2] = outer * u.x * u.z;
    H[3] = outer * u.y * u.y + inner;
    H[4] = outer * u.y * u.z;
    H[5] = outer * u.z * u.z + inner;
    return v8_blend(-(tension + (slope - across) * along), u, -across, d);
}

/* One direction of threads. */
TOILE_INLINE v8x3 stretch(v8x3 w, v8x3 rate, v8x3 d, v8 stiffness, v8 scale, v8 curve, v8 damping, v8 h, v8 turn, v8 H[6]) {
    v8 length = v8_max(v8_sqrt(v8_dot(w, w)), v8_set(1e-12)), slope;
    v8 strain = stretch_law(length - scale, v8_set(0), curve, v8_set(TOILE_STRETCH_KNEE), &slope);
    return pull(w, length, rate, d, stiffness * strain, stiffness * slope, damping, h, turn, H);
}

/* C of the shear and its gradients by w_u and w_v. */
TOILE_INLINE v8 shear_gradients(v8x3 wu, v8x3 wv, v8x3 *p, v8x3 *q) {
    v8 least = v8_set(TOILE_SHEAR_FLOOR * TOILE_SHEAR_FLOOR), zero = v8_set(0), u2 = v8_dot(wu, wu), v2 = v8_dot(wv, wv);
    v8 uu = v8_max(u2, least), vv = v8_max(v2, least), m = 1 / v8_sqrt(v8_sqrt(uu * vv)), c = m * v8_dot(wu, wv);
    *p = v8_blend(m, wv, v8_select(u2 > least, -0.5 * c / uu, zero), wu);
    *q = v8_blend(m, wu, v8_select(v2 > least, -0.5 * c / vv, zero), wv);
    return c;
}

TOILE_INLINE v8x3 derivative(v8 c1, v8 c2, v8x3 d1, v8x3 d2) {
    return v8_blend(c1, d1, c2, d2);
}

/* What the limit adds (force_stretch.h), where any of eight triangles is beyond it. The principal directions (c, s) and (-s, c) are
 * threads of their own, w1 and w2 at right angles. They turn in the material as the cloth deforms: of the exact second
 * derivative that is one term more, k (p1; p2)(p1; p2)' with k = (T1 / s1 - T2 / s2) / (s1^2 - s2^2), which is never negative, and the
 * gradients p1 = w2, p2 = w1 of w1 . w2. Where both are equal k is the derivative of T / s by s^2. */
TOILE_INLINE void add_limit(v8x3 w[2], v8x3 r[2], v8x3 d[2], v8 scale_u, v8 scale_v, v8 limit, v8 stiffness, v8 damping, v8 h,
                            v8 turn, v8x3 *gu, v8x3 *gv, v8 *uu, v8 *vv, v8 *uv) {
    v8 zero = v8_set(0), tiny = v8_set(1e-12), iu = 1 / v8_max(scale_u, tiny), iv = 1 / v8_max(scale_v, tiny);
    v8 e = v8_dot(w[0], w[0]) * iu * iu, g = v8_dot(w[1], w[1]) * iv * iv, m = v8_dot(w[0], w[1]) * iu * iv;
    v8 half = 0.5 * (e - g), mean = 0.5 * (e + g), root = v8_sqrt(half * half + m * m);
    v8 c = v8_select(half > zero, half + root, m), s = v8_select(half > zero, m, root - half), n = v8_sqrt(c * c + s * s);
    m8 round = n < tiny; /* any direction is principal */
    c = v8_select(round, v8_set(1), c / v8_max(n, tiny)), s = v8_select(round, zero, s / v8_max(n, tiny));
    v8 cu = c * iu, cv = c * iv, su = s * iu, sv = s * iv;
    v8 square[2] = {mean + root, v8_max(mean - root, zero)}, length[2], slope[2], t[2], h11[6], h22[6];
    v8x3 w1 = v8_blend(cu, w[0], sv, w[1]), w2 = v8_blend(-su, w[0], cv, w[1]);
    v8x3 d1 = v8_blend(cu, d[0], sv, d[1]), d2 = v8_blend(-su, d[0], cv, d[1]);
    v8x3 r1 = v8_blend(cu, r[0], sv, r[1]), r2 = v8_blend(-su, r[0], cv, r[1]);
    for (int k = 0; k < 2; k++) {
        length[k] = v8_max(v8_sqrt(square[k]), tiny);
        t[k] = stiffness * limit_law(length[k] - limit, &slope[k]);
        slope[k] *= stiffness;
    }
    v8x3 g1 = pull(w1, length[0], r1, d1, t[0], slope[0], damping, h, turn, h11);
    v8x3 g2 = pull(w2, length[1], r2, d2, t[1], slope[1], damping, h, turn, h22);
    m8 same = 2 * root <= 1e-9 * mean;
    v8 turns = v8_select(same, (slope[0] - t[0] / length[0]) / (2 * v8_max(square[0], tiny)),
                         (t[0] / length[0] - t[1] / length[1]) / v8_select(same, v8_set(1), 2 * root));
    turns = v8_max(turns, zero); /* rounding */
    v8 shear = turns * (v8_dot(w1, d2) + v8_dot(w2, d1)), factor = h * h * turns;
    g1 = v8_sub(g1, v8_scale(shear, w2));
    g2 = v8_sub(g2, v8_scale(shear, w1));
    *gu = v8_add(*gu, v8_blend(cu, g1, -su, g2));
    *gv = v8_add(*gv, v8_blend(sv, g1, cv, g2));
    const v8 a[3] = {w1.x, w1.y, w1.z}, b[3] = {w2.x, w2.y, w2.z};
    for (int i = 0, k = 0; i < 3; i++)
        for (int j = i; j < 3; j++, k++) {
            v8 first = h11[k] + factor * b[i] * b[j], second = h22[k] + factor * a[i] * a[j];
            v8 mixed = factor * (b[i] * a[j] + a[i] * b[j]);
            uu[k] += cu * cu * first + su * su * second - cu * su * mixed;
            vv[k] += sv * sv * first + cv * cv * second + cv * sv * mixed;
        }
    static const int AT[3][3] = {{0, 1, 2}, {1, 3, 4}, {2, 4, 5}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            v8 first = h11[AT[i][j]] + factor * b[i] * b[j], second = h22[AT[i][j]] + factor * a[i] * a[j];
            uv[3 * i + j] += cu * sv * first - su * cv * second + factor * (cu * cv * b[i] * a[j] - su * sv * a[i] * b[j]);
        }
}

void TOILE_KERNEL(toile_triangles)(const toile_evaluation *at, int begin, int end, double *record) {
    const toile_triangles *t = &at->model->triangles;
    const double *x = at->x, *v = at->v, *d = at->d;
    v8 h = v8_set(at->h), h_shear = h, turn = v8_set(at->turn);
    for (int e = begin; e < end; e += 8) {
        const int *i0 = t->vertex[0] + e, *i1 = t->vertex[1] + e, *i2 = t->vertex[2] + e;
        v8 a1 = v8_load(t->a1 + e), a2 = v8_load(t->a2 + e), b1 = v8_load(t->b1 + e), b2 = v8_load(t->b2 + e);
        v8 damping = v8_load(t->damping + e), ks = v8_load(t->stiff_s + e);

        v8x3 x0 = v8_gather(x, i0), x1 = v8_sub(v8_gather(x, i1), x0), x2 = v8_sub(v8_gather(x, i2), x0);
        v8x3 v0 = v8_gather(v, i0), v1 = v8_sub(v8_gather(v, i1), v0), v2 = v8_sub(v8_gather(v, i2), v0);
        v8x3 d0 = v8_gather(d, i0), d1 = v8_sub(v8_gather(d, i1), d0), d2 = v8_sub(v8_gather(d, i2), d0);
        v8x3 wu = derivative(a1, a2, x1, x2), wv = derivative(b1, b2, x1, x2);
        v8x3 ru = derivative(a1, a2, v1, v2), rv = derivative(b1, b2, v1, v2);
        v8x3 du = derivative(a1, a2, d1, d2), dv = derivative(b1, b2, d1, d2);

        v8x3 du_shear = du, dv_shear = dv;
        if (at->stretch_share) {
            v8 stretch_share = v8_load(at->stretch_share + e), shear_share = v8_load(at->shear_share + e);
            du_shear = v8_scale(shear_share, du), dv_shear = v8_scale(shear_share, dv);
            du = v8_scale(stretch_share, du), dv = v8_scale(stretch_share, dv);
            h = at->h * stretch_share, turn = at->turn * stretch_share, h_shear = at->h * shear_share;
        }

        v8 out[28], *uu = out + 6, *vv = out + 12, *uv = out + 18;
        v8x3 gu = stretch(wu, ru, du, v8_load(t->stiff_u + e), v8_load(t->scale_u + e), v8_load(t->curve_u + e), damping, h,
                          turn, uu);
        v8x3 gv = stretch(wv, rv, dv, v8_load(t->stiff_v + e), v8_load(t->scale_v + e), v8_load(t->curve_v + e), damping, h,
                          turn, vv);

        v8x3 p, q;
        v8 c = shear_gradients(wu, wv, &p, &q), slope;
        v8 law = stretch_law(v8_max(c, -c), v8_load(t->lock + e), v8_load(t->curve_s + e), v8_set(TOILE_STRETCH_KNEE), &slope);
        v8 shear = ks * v8_select(c < 0, -law, law);
        ks *= slope;
        shear += ks * (damping * (v8_dot(ru, p) + v8_dot(q, rv)) + v8_dot(du_shear, p) + v8_dot(q, dv_shear));
        gu = v8_sub(gu, v8_scale(shear, p));
        gv = v8_sub(gv, v8_scale(shear, q));
        v8 factor = h_shear * ks * (h_shear + damping);
        v8x3 fp = v8_scale(factor, p), fq = v8_scale(factor, q);
        uu[0] += fp.x * p.x, uu[1] += fp.x * p.y, uu[2] += fp.x * p.z;
        uu[3] += fp.y * p.y, uu[4] += fp.y * p.z, uu[5] += fp.z * p.z;
        vv[0] += fq.x * q.x, vv[1] += fq.x * q.y, vv[2] += fq.x * q.z;
        vv[3] += fq.y * q.y, vv[4] += fq.y * q.z, vv[5] += fq.z * q.z;
        uv[0] = fp.x * q.x, uv[1] = fp.x * q.y, uv[2] = fp.x * q.z;
        uv[3] = fp.y * q.x, uv[4] = fp.y * q.y, uv[5] = fp.y * q.z;
        uv[6] = fp.z * q.x, uv[7] = fp.z * q.y, uv[8] = fp.z * q.z;

        v8 longer2 = v8_max(v8_dot(wu, wu), v8_dot(wv, wv));
        if (v8_any(longer2 + v8_abs(v8_dot(wu, wv)) > v8_load(t->reach + e))) {
            v8x3 w[2] = {wu, wv}, r[2] = {ru, rv}, way[2] = {du, dv};
            add_limit(w, r, way, v8_load(t->scale_u + e), v8_load(t->scale_v + e), v8_load(t->limit + e), v8_load(t->stiff_limit + e),
                      damping, h, turn, &gu, &gv, uu, vv, uv);
        }
        out[0] = gu.x, out[1] = gu.y, out[2] = gu.z;
        out[3] = gv.x, out[4] = gv.y, out[5] = gv.z;

        double *to = record + (size_t)e * TOILE_TRIANGLE_RECORD;
        out[27] = v8_set(0);
        for (int k = 0; k < 28; k += 4)
            v8_scatter4(to + k, TOILE_TRIANGLE_RECORD, out + k);
    }
}

/* What gets shorter counts for less: cloth that lands is crowded for a moment and buckles out of it. */
#define SHRINK_SHARE 0.25

/* |w_u| / b_u and |w_v| / b_v of triangles, or length / rest of stretch springs: what Baraff-Witkin section 7 watches. */
void TOILE_KERNEL(toile_stretch)(const toile_model *m, const double *x, int begin, int end, const double *before,
                                 double *now, double *largest_change, double *largest) {
    const toile_triangles *t = &m->triangles;
    const toile_springs *s = &m->springs;
    v8 change = v8_set(0), most = v8_set(0);
    for (int e = begin; e < end; e += 8) {
        v8 value[2];
        int values = 0;
        if (m->springs_used) {
            v8x3 d = v8_sub(v8_gather(x, s->vertex[1] + e), v8_gather(x, s->vertex[0] + e));
            /* a connection shorter than at rest has no force: how short is of no interest */
            value[values] = v8_max(v8_sqrt(v8_dot(d, d)) / v8_load(s->length + e), v8_set(1));
            for (int l = 0; l < 8; l++) /* the last eight may reach into the shear springs */
                value[values][l] = e + l < s->stretch_count ? value[values][l] : 0;
            values++;
        } else {
            v8x3 x0 = v8_gather(x, t->vertex[0] + e);
            v8x3 x1 = v8_sub(v8_gather(x, t->vertex[1] + e), x0), x2 = v8_sub(v8_gather(x, t->vertex[2] + e), x0);
            v8x3 wu = derivative(v8_load(t->a1 + e), v8_load(t->a2 + e), x1, x2);
            v8x3 wv = derivative(v8_load(t->b1 + e), v8_load(t->b2 + e), x1, x2);
            /* padding has scale 0 and no extent: 0 / tiny = 0 */
            value[values++] = v8_sqrt(v8_dot(wu, wu)) / v8_max(v8_load(t->scale_u + e), v8_set(1e-12));
            value[values++] = v8_sqrt(v8_dot(wv, wv)) / v8_max(v8_load(t->scale_v + e), v8_set(1e-12));
        }
        for (int k = 0; k < values; k++) {
            size_t at = (size_t)e * (size_t)values + 8 * (size_t)k;
            if (before) {
                v8 one = v8_set(1), last = v8_load(before + at), over = v8_max(value[k], one) - 1, under = v8_max(last, one) - 1;
                /* to grow fast to much more than there was counts for more, or a few steps in a row would add up */
                v8 grown = (over - under) * v8_max(one, over / v8_max(under, v8_set(TOILE_STRETCH_USUAL)));
                change = v8_max(v8_max(grown, SHRINK_SHARE * (last - value[k])), change);
            }
            most = v8_max(value[k], most);
            memcpy(now + at, &value[k], sizeof value[k]);
        }
    }
    for (int l = 0; l < 8; l++) {
        *largest_change = change[l] > *largest_change ? change[l] : *largest_change;
        *largest = most[l] > *largest ? most[l] : *largest;
    }
}
