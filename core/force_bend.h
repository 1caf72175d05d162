/* Bending of one hinge: the angle between two triangles on an edge (Baraff-Witkin 1998 section 4.3), in plain form.
 * x[0], x[1] are the edge, x[2] the third vertex of the triangle x0 x1 x2, x[3] that of x1 x0 x3. */
#ifndef TOILE_FORCE_BEND_H
#define TOILE_FORCE_BEND_H

typedef struct toile_hinge_element {
    double stiffness; /* N m per rad */
    double rest;      /* rad */
    double damping;   /* s */
} toile_hinge_element;

double toile_hinge_angle(const double x[4][3]);
void toile_hinge_gradient(const double x[4][3], double gradient[4][3]);
double toile_hinge_energy(const toile_hinge_element *e, const double x[4][3]);
void toile_hinge_force(const toile_hinge_element *e, const double x[4][3], const double v[4][3], double f[4][3]);
/* All terms, (12 x 12) row by row. */
void toile_hinge_jacobian(const toile_hinge_element *e, const double x[4][3], const double v[4][3], double dx[144],
                          double dv[144]);

#endif
