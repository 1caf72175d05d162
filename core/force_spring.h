/* Connections of the Choi-Ko model as in Boxerman 2003 section 3.2, 3.3, in plain form. */
#ifndef TOILE_FORCE_SPRING_H
#define TOILE_FORCE_SPRING_H

#include <stdbool.h>

typedef struct toile_spring_element {
    bool bend;        /* else stretch or shear: acts in extension only */
    double length;    /* m */
    double stiffness; /* N/m; bend: 4 k_b / L^2, N */
    double damping;   /* s */
    double curve;     /* stiffening (force_stretch.h), per metre */
    double onset, knee; /* extension from which on it stiffens, and how far, m */
    double limit, stiff_limit; /* length / rest from which on it resists more (force_stretch.h), and how much, N/m */
} toile_spring_element;

/* f(s) of eq. 3.9: force of a bend connection at chord / length = s, in units of 4 k_b / L^2; and its derivative. */
double toile_bend_polynomial(double s, double *derivative);
/* What it approximates: a strip of length L bent to a circular arc, phi^2 / (cos phi - sinc phi) with
 * s = sinc phi (Choi-Ko 2002, eq. 9). */
double toile_bend_arc(double s);

/* Below this strain the bend force is linear, as Choi and Ko do: an arc of any bend would need a force of 3 units at
 * once. 3e-4 is an arc of 5 degrees: a mesh with more than 20 cells to the radius bends too easily. (Smaller values keep
 * finer meshes true, but cloth at rest then trembles at mm/s, because the force is all but a jump.) */
#define TOILE_BEND_LINEAR 3e-4

double toile_spring_energy(const toile_spring_element *e, const double x[2][3]);
/* Force on the first particle; the second gets the opposite. */
void toile_spring_force(const toile_spring_element *e, const double x[2][3], const double v[2][3], double f[3]);
/* d force / d x_1, d force / d v_1 (with respect to the second particle; the first has the opposite), all terms. */
void toile_spring_jacobian(const toile_spring_element *e, const double x[2][3], const double v[2][3], double dx[9],
                           double dv[9]);

#endif
