/* Every property of a fabric, one row each, in the form of settings_table.inl. Warp is the material direction u,
 * weft is v. Stiffnesses belong to the cloth, not to the mesh: any resolution gives the same fabric. */
REAL(density, 0.15, 1e-4, 100.0, 0.03, 1.0, "kg/m^2", "fabric", "Density", "Mass of one square metre")
REAL(stretch_warp, 4000.0, 0.0, 1e7, 10.0, 2e4, "N/m", "fabric", "Stretch, warp",
     "Tension per width and per unit of strain along the warp (u)")
REAL(stretch_weft, 4000.0, 0.0, 1e7, 10.0, 2e4, "N/m", "fabric", "Stretch, weft",
     "Tension per width and per unit of strain along the weft (v)")
REAL(shear, 50.0, 0.0, 1e7, 1.0, 1e3, "N/m", "fabric", "Shear",
     "Shear force per width and per unit of shear angle (radians)")
REAL(bend_warp, 1e-5, 0.0, 10.0, 1e-7, 1e-3, "N m", "fabric", "Bend, warp",
     "Moment per width and per unit of curvature when the warp is bent")
REAL(bend_weft, 1e-5, 0.0, 10.0, 1e-7, 1e-3, "N m", "fabric", "Bend, weft",
     "Moment per width and per unit of curvature when the weft is bent")
REAL(stretch_damping, 0.002, 0.0, 10.0, 0.0, 0.02, "s", "fabric", "Stretch damping",
     "Damping of stretch and shear as a time: damping = this x stiffness")
REAL(bend_damping, 0.002, 0.0, 10.0, 0.0, 0.02, "s", "fabric", "Bend damping",
     "Damping of bending as a time: damping = this x stiffness")
