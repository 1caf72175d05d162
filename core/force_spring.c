/* Choi-Ko connections, eight at a time (Boxerman 2003, eq. 3.6-3.10, 3.14, 3.15; plain form: force_plain.c).
 *
 * Stretch and shear act in extension only, bend in compression only. Damping is projected on the connection (3.14) and
 * acts while the connection does; its d/dx (3.16) is left out as in the thesis. The bend Jacobian keeps the axial term
 * only (3.10), with the slope that leads back to rest (below). Everything that enters the matrix is positive semi-definite. */
#include "force_spring.h"
#include "force_stretch.h"
#include "kernels_table.h"
#include "stretch_law.h"

TOILE_INLINE void write_springs(double *to, v8x3 u, v8 along, v8 across, v8x3 g) {
    v8 out[8] = {u.x, u.y, u.z, along, across, g.x, g.y, g.z};
    for (int k = 0; k < 8; k += 4)
        v8_scatter4(to + k, TOILE_SPRING_RECORD, out + k);
}

void TOILE_KERNEL(toile_springs)(const toile_evaluation *at, int begin, int end, double *record) {
    const toile_springs *s = &at->model->springs;
    const double *x = at->x, *v = at->v, *d = at->d;
    const double corner = 1 - TOILE_BEND_LINEAR;
    const double at_corner = (((-11.541 * corner + 34.193) * corner - 39.083) * corner + 23.116) * corner - 9.713;
    v8 h = v8_set(at->h), turn = v8_set(at->turn), zero = v8_set(0);
    for (int e = begin; e < end; e += 8) {
        const int *i = s->vertex[0] + e, *j = s->vertex[1] + e;
        v8x3 dx = v8_sub(v8_gather(x, j), v8_gather(x, i));
        v8x3 dv = v8_sub(v8_gather(v, j), v8_gather(v, i));
        v8x3 dd = {zero, zero, zero};
        v8 share = at->spring_share ? v8_load(at->spring_share + e) : v8_set(1);
        if (v8_any(share != zero)) /* what is explicit is asked for its force only */
            dd = v8_scale(share, v8_sub(v8_gather(d, j), v8_gather(d, i)));
        h = at->h * share;
        turn = at->turn * share;
        v8 rest = v8_load(s->length + e), k = v8_load(s->stiffness + e), damping = v8_load(s->damping + e);
        v8 length = v8_max(v8_sqrt(v8_dot(dx, dx)), v8_set(1e-12));
        v8x3 u = v8_scale(1 / length, dx);
        v8 force, slope, stiffness, across, ahead = v8_dot(u, dd);
        v8 parting = v8_dot(u, dv), turning = (v8_dot(dv, dv) - parting * parting) / length;
        if (e < s->axial_padded) {
            /* a slack connection that this step will pull taut is linearised as taut: else nothing in the system
             * resists until it is overstretched */
            m8 active = v8_max(length, length + ahead) >= rest;
            v8 law_slope, law = stretch_law(length - rest, v8_load(s->onset + e), v8_load(s->curve + e),
                                            v8_load(s->knee + e), &law_slope);
            force = v8_select(active, k * law, zero);
            slope = v8_select(active, k * law_slope, zero);
            v8 limit = v8_load(s->limit + e);
            if (v8_any(length > limit * rest)) {
                v8 stiff_limit = v8_load(s->stiff_limit + e), steep, value = limit_law(length / rest - limit, &steep);
                force += stiff_limit * rest * value;
                slope += stiff_limit * steep;
            }
            stiffness = slope;
            /* k (1 - L / |x|) of eq. 3.7, less the false tension of turning (force_stretch.c) */
            across = v8_max(force - 0.5 * turn * turn * slope * turning, zero) / length;
        } else {
            v8 r = length / rest;
            v8 poly = (((-11.541 * r + 34.193) * r - 39.083) * r + 23.116) * r - 9.713;
            v8 poly_slope = ((-46.164 * r + 102.579) * r - 78.166) * r + 23.116;
            v8 linear = -at_corner * k / (TOILE_BEND_LINEAR * rest);
            m8 near_rest = r > corner, active = length < rest;
            force = v8_select(active, v8_select(near_rest, linear * (length - rest), k * poly), zero);
            slope = v8_select(active, v8_select(near_rest, linear, k * poly_slope / rest), zero);
            /* The push is all but a jump: nearly constant down to rest and nothing beyond, so that its slope promises a
             * push without end, and cloth that is pressed flat throws single particles about in long steps. In the system
             * it goes down to zero at rest, unless the connection is on its way to more than twice its compression. */
            v8 pressed = v8_max(rest - length, v8_set(1e-12));
            stiffness = v8_select(ahead > -pressed, v8_max(slope, -force / pressed), slope);
            across = zero;
        }
        v8 pull = force + slope * damping * (parting + 0.5 * turn * turning) + (stiffness - across) * ahead;
        v8x3 g = v8_blend(pull, u, across, dd);
        v8 inner = h * h * across;
        write_springs(record + (size_t)e * TOILE_SPRING_RECORD, u, h * (h * stiffness + slope * damping) - inner, inner, g);
    }
}
