/* Every setting of a simulation, one row each. The row makes the struct field, the default, the check, the scene
 * file's schema, `toile settings` and the table in README.md. To add a setting: one row, and its use.
 *
 * REAL  (id, default, hard min, hard max, soft min, soft max, unit, group, label, tooltip)
 * INT   (the same)
 * VEC3  (id, default x, y, z, hard min, hard max, soft min, soft max, unit, group, label, tooltip)
 * BOOL  (id, default, group, label, tooltip)
 * CHOICE(id, choices, default index, group, label, tooltip)       choices: see settings.h
 */
CHOICE(cloth_model, CLOTH_MODELS, 0, "cloth", "Cloth model",
       "continuum: triangles that resist stretch, shear and bend (Baraff-Witkin 1998). springs: stretch, shear and "
       "bend connections that buckle like an arc (Choi-Ko 2002)")

CHOICE(integrator, INTEGRATORS, 0, "time", "Integrator",
       "How a step goes forward in time. backward_euler: semi-implicit, stable at large steps. bdf2: as stable, second "
       "order, livelier. aimex: what is soft enough is left out of the matrix, step by step. sbdf2: aimex of second order. "
       "imex: only stretch is implicit. newton: fully implicit, iterated until forces balance, slowest. forward_euler, "
       "fb_euler, rk4: explicit, for tests and soft cloth; steps are cut to what is stable. auto: Toile chooses")
REAL(time_step, 1.0 / 120.0, 1e-6, 0.1, 1e-4, 1.0 / 24.0, "s", "time", "Largest time step",
     "The longest step taken. Smaller is more exact and less damped, larger is faster")
REAL(time_step_min, 1e-5, 1e-9, 0.1, 1e-6, 1e-3, "s", "time", "Smallest time step",
     "A step is not cut below this; at this length it is accepted as long as every number in it is finite")
REAL(aimex_threshold, 0.2, 0.0, 0.5, 0.05, 0.5, "1", "time", "AIMEX threshold",
     "With aimex and sbdf2: a connection or triangle whose numerical stiffness (step / mass) x "
     "(stiffness x step + 2 x damping) is at most this is treated explicitly; 0.5 is the edge of stability, "
     "0 makes all implicit")
BOOL(aimex_bends_explicit, false, "time", "AIMEX bends explicit",
     "With aimex and sbdf2: bends are explicit whatever their stiffness, as in Boxerman 2003. A third of the matrix less, but "
     "stiff bends tremble and some cloths run away; off: the threshold decides for them too")
REAL(newton_tolerance, 0.1, 1e-9, 100.0, 1e-4, 1.0, "m/s^2", "time", "Newton tolerance",
     "With newton: iterations end when the accelerations that forces do not account for are below this (root mean square)")
INT(newton_iterations_max, 60, 1, 10000, 5, 200, "1", "time", "Newton iterations",
    "With newton: a step that has not converged after so many iterations is cut")
REAL(stretch_change_max, 0.03, 1e-4, 10.0, 0.01, 0.5, "1", "time", "Largest stretch change",
     "A step in which any triangle or connection changes its stretch by more than this is taken again at half "
     "the length")

CHOICE(linear_solver, LINEAR_SOLVERS, 0, "solver", "Linear solver",
       "auto: conjugate gradients in single precision with an incomplete factor, refined in double, or a direct solve where "
       "that is cheaper. The rest are the papers' own, for comparison: mpcg: modified preconditioned conjugate gradients "
       "(Baraff-Witkin 1998, Boxerman 2003); upcg: conjugate gradients on the system without constrained directions, cholmod: "
       "that system solved directly, corepcg: conjugate gradients around a factor of the matrix core (Ye, Webber, Wang 2008). While layers of cloth "
       "touch, these all go by mpcg")
CHOICE(preconditioner, PRECONDITIONERS, 3, "solver", "Preconditioner",
       "Of mpcg: none, diagonal, block (3x3 blocks of the matrix), constrained (blocks that know the constraints), incomplete "
       "(block incomplete Cholesky factor of the matrix core)")
CHOICE(solver_stop, SOLVER_STOPS, 0, "solver", "Stop at",
       "energy: estimated error of the answer in the energy norm, the same for every solver. thesis: residual in the "
       "preconditioner's norm, tol^2 = 0.01 x step (Boxerman 2003; mpcg only)")
REAL(solver_tolerance, 0.01, 1e-12, 1.0, 1e-6, 0.1, "1", "solver", "Solver tolerance",
     "Relative error of the velocity change of a step, in the energy norm, at which the solver stops")
BOOL(decompose, false, "solver", "Decompose",
     "Split the system where connections are slack or explicit and where particles are held, and solve the parts on their own "
     "(Boxerman 2004); with mpcg and aimex")
INT(solver_iterations_max, 2000, 1, 1000000, 50, 5000, "1", "solver", "Most iterations",
    "The solver stops after this many iterations even if the tolerance is not reached; the step is then cut")
INT(threads, 0, 0, 256, 0, 64, "1", "solver", "Threads",
    "Processor threads to use; 0 takes as many as the machine has. Results are the same for any number")

VEC3(gravity, 0.0, 0.0, -9.81, -1e4, 1e4, -20.0, 20.0, "m/s^2", "forces", "Gravity", "Acceleration of free fall")
REAL(gravity_delay, 0.0, 0.0, 1e4, 0.0, 10.0, "s", "forces", "Gravity delay",
     "Time without gravity at the start, for panels that are sewn where they stand")
REAL(gravity_ramp, 0.0, 0.0, 1e4, 0.0, 10.0, "s", "forces", "Gravity ramp",
     "Time in which gravity grows to its full strength after the delay")
CHOICE(drag_model, DRAG_MODELS, 1, "forces", "Air drag",
       "none; particle: along the velocity, at every particle; triangle: along each triangle's normal only")
REAL(air_density, 1.2, 0.0, 2000.0, 0.0, 10.0, "kg/m^3", "forces", "Air density",
     "Density of what the cloth moves in; 1.2 is air, 1000 water")
REAL(drag_coefficient, 1.0, 0.0, 100.0, 0.0, 5.0, "1", "forces", "Drag coefficient",
     "Drag = 1/2 x air density x this x area x speed^2; about 1 for a flat sheet")
VEC3(wind_velocity, 0.0, 0.0, 0.0, -1000.0, 1000.0, -30.0, 30.0, "m/s", "forces", "Wind",
     "Velocity of the air. Acts through drag, so it needs an air drag other than none")
VEC3(gust_pressure, 0.0, 0.0, 0.0, -1e5, 1e5, -20.0, 20.0, "Pa", "forces", "Gust",
     "Push on each square metre that swings as a sine in time and place (Jiang 2021)")
REAL(gust_frequency, 1.0, 0.0, 1e4, 0.0, 10.0, "Hz", "forces", "Gust frequency", "Swings of the gust in a second")
REAL(gust_wavelength, 1.0, 1e-4, 1e6, 0.1, 10.0, "m", "forces", "Gust wavelength",
     "Length of one gust wave; it runs along the diagonal of the axes")

REAL(contact_thickness, 0.002, 0.0, 1.0, 0.0005, 0.02, "m", "contact", "Cloth thickness",
     "Distance kept between cloth and a collider's surface, added to the collider's own thickness")
REAL(contact_correction, 0.9, 0.0, 1.0, 0.1, 1.0, "1", "contact", "Correction",
     "Share of a penetration taken back in one step; below 1 keeps the cloth in touch so that friction can act")
REAL(contact_correction_speed, 2.0, 0.0, 1e4, 0.1, 10.0, "m/s", "contact", "Correction speed",
     "The fastest that a particle inside a collider is moved out")

CHOICE(self_collision, SELF_MODES, 1, "contact", "Self-collision",
       "on: cloth does not pass through cloth, checked along the whole way of every step. cheap: particles keep off each other and "
       "nothing is checked, so that layers can slip through between them. off: cloth passes through cloth")
REAL(self_thickness, 0.0, 0.0, 0.1, 0.0, 0.01, "m", "contact", "Self thickness",
     "Distance kept between layers of cloth. 0: a quarter of the mesh's edges, at most 3 mm; cheap: half. Never "
     "more than half an edge")
REAL(self_friction, 0.3, 0.0, 1000.0, 0.0, 1.0, "1", "contact", "Self friction",
     "Coulomb friction between layers of cloth, times the geometric mean of their fabrics' factors")
