/* Every property of a fabric, one row each, in the form of settings_table.inl. Warp is the material direction u,
 * weft is v. Stiffnesses belong to the cloth, not to the mesh: any resolution gives the same fabric. */
REAL(density, 0.15, 1e-4, 100.0, 0.03, 1.0, "kg/m^2", "fabric", "Density", "Mass of one square metre")
REAL(stretch_warp, 4000.0, 0.0, 1e7, 10.0, 2e4, "N/m", "fabric", "Stretch, warp",
     "Tension per width and per unit of strain along the warp (u)")
REAL(stretch_weft, 4000.0, 0.0, 1e7, 10.0, 2e4, "N/m", "fabric", "Stretch, weft",
     "Tension per width and per unit of strain along the weft (v)")
REAL(stiffening_warp, 1.0, 0.55, 200.0, 1.0, 20.0, "1", "fabric", "Stiffening, warp",
     "How much more than in proportion the warp resists at a strain of 1/6: tension = stretch_warp x strain x this there; "
     "1 is proportional, knits have 2 to 10")
REAL(stiffening_weft, 1.0, 0.55, 200.0, 1.0, 20.0, "1", "fabric", "Stiffening, weft", "The same along the weft (v)")
REAL(shear, 50.0, 0.0, 1e7, 1.0, 1e3, "N/m", "fabric", "Shear",
     "Shear force per width and per unit of shear angle (radians)")
REAL(shear_lock, 0.45, 0.0, 1.5, 0.2, 0.9, "rad", "fabric", "Shear lock",
     "Shear angle at which threads begin to jam: beyond it shear is resisted more and more, up to half of what the softer thread "
     "resists stretch. Tight weaves 0.35 to 0.5, loose ones and knits more; 0: never")
REAL(stretch_limit, 0.2, 0.0, 100.0, 0.05, 1.0, "1", "fabric", "Stretch limit",
     "Strain, in whatever direction, beyond which the cloth resists ever more, up to a hundred times what the stiffer thread does. "
     "Sheared by 0.45 rad, cloth is strained by 0.2 on the bias. Woven cloth 0.15 to 0.3, knits and rubber more; 0: never. "
     "Not with explicit integrators")
REAL(bend_warp, 1e-5, 0.0, 10.0, 1e-7, 1e-3, "N m", "fabric", "Bend, warp",
     "Moment per width and per unit of curvature when the warp is bent")
REAL(bend_weft, 1e-5, 0.0, 10.0, 1e-7, 1e-3, "N m", "fabric", "Bend, weft",
     "Moment per width and per unit of curvature when the weft is bent")
REAL(bend_bias, 0.0, 0.0, 10.0, 0.0, 1e-3, "N m", "fabric", "Bend, bias",
     "The same when it is bent at 45 degrees to both; 0: as warp and weft suggest, and the continuum takes no less than that")
REAL(stretch_damping, 0.002, 0.0, 10.0, 0.0, 0.02, "s", "fabric", "Stretch damping",
     "Decay time of stretch and shear: what is stretched and let go is back to a third (1/e) after this; a swing of f hertz has "
     "the damping ratio pi x f x this. Falling and turning are not braked")
REAL(bend_damping, 0.002, 0.0, 10.0, 0.0, 0.02, "s", "fabric", "Bend damping",
     "Decay time of bending, as for stretch")
REAL(thickness, 0.0, 0.0, 0.1, 0.0, 0.003, "m", "fabric", "Thickness",
     "Thickness of the cloth; half of it is kept from colliders, on top of contact_thickness")
REAL(friction, 1.0, 0.0, 10.0, 0.3, 2.0, "1", "fabric", "Friction",
     "Factor on the friction of colliders and layers: 1 is a plain woven cotton, smooth silk is less")
REAL(air, 1.0, 0.0, 10.0, 0.0, 1.5, "1", "fabric", "Air",
     "Factor on drag, wind and gusts: 1 is a closed cloth, an open knit lets air through and has less")
