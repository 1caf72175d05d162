/* Stretch and shear of one triangle, Baraff-Witkin 1998 sections 4.2, 4.3, 4.5, in plain form: energy, force and exact
 * Jacobians. The kernels in force_stretch.c compute the same for eight triangles at a time with the Jacobian made
 * positive semi-definite; tests compare the two, and this one with finite differences. */
#ifndef TOILE_FORCE_STRETCH_H
#define TOILE_FORCE_STRETCH_H

/* The stretch law of both models. Measured cloth stiffens: crimp is pulled out, loops close (Wang, O'Brien, Ramamoorthi
 * 2011 measured up to a strain of 1/6). With strain e, b = e - onset and q = b clamped to [0, knee]
 *   tension / stiffness = e + curve q (2 b - q),  slope 1 + 2 curve q:
 * straight up to the onset, a parabola up to the knee, straight on beyond it; once continuously differentiable. Threads stiffen
 * from the beginning (onset 0), and the fabric's stiffening is tension / (stiffness e) at the knee: curve = (stiffening - 1) / knee. */
#define TOILE_STRETCH_KNEE (1.0 / 6)

/* Shear has the same law with e = |C|, the sine of the shear angle. Threads of a weave turn at their crossings until they jam
 * side by side; from that angle on (the fabric's shear_lock) shear pulls at the threads themselves. Without it a square of cloth
 * can be sheared flat, its diagonal 1.41 of what it was. From the knee on the slope is this share of the softer thread's. */
#define TOILE_SHEAR_LOCKED 0.5

/* Whatever its threads do, no direction of the cloth stretches much beyond the fabric's stretch_limit: threads are straight by then and
 * shear has jammed. Both principal stretches s (singular values of w_u / b_u, w_v / b_v) have the energy k phi(s), with k this many
 * times the stiffer thread's; its slope over beyond = s - 1 - limit and q = beyond clamped to [0, knee] is q (2 beyond - q) / (2 knee):
 * a parabola, then straight with slope 1. (Strain limits as energies: Li, Kaufman, Jiang 2021, section 3.4, there without bound.)
 * What is explicit has no limit: its steps would be ten times as short.
 *
 * A shirt that is too narrow for raised arms (R10a, limit 0.2) stretches in its armpits by 0.37 with 10 times and a knee of 0.05, and by
 * 0.26 with these. */
#define TOILE_LIMIT_STIFFER 100.0
#define TOILE_LIMIT_KNEE 0.1

typedef struct toile_triangle_element {
    double a1, a2, b1, b2;            /* 1/m, see model.h */
    double scale_u, scale_v;
    double stiff_u, stiff_v, stiff_s; /* N m */
    double damping;                   /* s */
    double curve_u, curve_v;          /* stiffening, per unit of strain */
    double curve_s, lock;             /* of shear, and from which C on */
    double limit, stiff_limit;        /* principal stretch that resists more, and k of it, N m */
} toile_triangle_element;

/* Shear of both threads' directions: C = w_u . w_v / sqrt(|w_u| |w_v|). Baraff-Witkin's w_u . w_v is the shear angle of cloth
 * that is not stretched; stretched by 10 % on the bias it resists 11 % too much, this one 3 %. (The angle itself, over
 * |w_u| |w_v|, is as far off the other way, and stiff where cloth is crushed.) Below this length a thread counts as so long. */
#define TOILE_SHEAR_FLOOR 0.1

/* The law: value, slope, slope of the slope, and integral at e; any may be null. */
void toile_stretch_law(double e, double onset, double curve, double knee, double *value, double *slope, double *bend,
                       double *integral);

/* phi of force_stretch.h: its slope, slope of the slope, and phi at s; any may be null. */
void toile_limit_law(double s, double limit, double *value, double *slope, double *integral);

double toile_triangle_energy(const toile_triangle_element *e, const double x[3][3]);
/* Elastic and damping force, N. */
void toile_triangle_force(const toile_triangle_element *e, const double x[3][3], const double v[3][3], double f[3][3]);
/* d force / d x and d force / d v, all terms (eq. 8 and 12: not symmetric when damped), (9 x 9) row by row. But how the damping of
 * the limit changes with x is left out. */
void toile_triangle_jacobian(const toile_triangle_element *e, const double x[3][3], const double v[3][3], double dx[81],
                             double dv[81]);

#endif
