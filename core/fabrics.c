/* The fabrics that come with Toile, each with its sources.
 *
 * measured    Wang, O'Brien, Ramamoorthi 2011, "Data-driven elastic models for cloth". Stretch: their coefficients at zero
 *             strain, doubled as their model does; stiffening: warp (row 0 degrees) and weft (row 90) at a strain of 1/6
 *             against those, with their Green strain and stress turned into tension per width (a factor of 1.264 there).
 *             Shear: half of c33, because our angle is twice their strain. Bend: their hinge coefficient (mean over
 *             curvature) times 0.106, one factor for all: with it their cotton drapes as Gan, Ly, Steven 1991 measured, 68.4 %
 *             (66.7, 69.1 and 70.2 on one diagonal, alternating ones and an irregular mesh of 7.5 mm).
 *             (A smooth sheet of hinges k l^2 angle^2 / (8 (A1 + A2)) would have a quarter of k, and drape at 86 %; hinges on
 *             their irregular, refined meshes are softer.) How one thread direction contracts the other (c12) is left out.
 * MIT         Bouman 2013, the MIT fabric properties: weights. Its mean bending is of a strip whose width is not told, so one
 *             factor for all (7.2e-4 N m per lbf in^2) makes its light cotton drape at 68 % too.
 * drape       bend made so that the Cusick drape coefficient falls into the band that is named; `toile experiment validation`
 *             checks it.
 * estimated   no measurement at hand; of the order that instruments of the Kawabata kind give for such cloth. Damping,
 *             thickness, friction, air, shear_lock (20 degrees for tight weaves, 40 for knits; leather and felt have no
 *             threads that could jam) and stretch_limit (none of those measured had locked at a strain of 1/6; and no
 *             less than what shear strains the bias by where it begins to jam) are estimated unless a source is named. */
#include "settings.h"

#include <string.h>

#define WANG "measured (bend by one factor for all): Wang, O'Brien, Ramamoorthi 2011, "
static const toile_named_fabric FABRICS[] = {
    {"cotton", "Cotton twill", WANG "royal-target (trousers, 65 % cotton 35 % polyester)",
     {.density = 0.220, .stretch_warp = 4034, .stretch_weft = 4070, .stiffening_warp = 1.32, .stiffening_weft = 1.34,
      .shear = 52.5, .shear_lock = 0.45, .bend_warp = 2.01e-5, .bend_weft = 2.01e-5, .bend_bias = 1.41e-5, .stretch_damping = 0.002,
      .bend_damping = 0.002, .stretch_limit = 0.2, .thickness = 4.5e-4, .friction = 1, .air = 1}},
    {"cotton_light", "Cotton, light plain weave",
     "weight: MIT fabric set (Bouman 2013); drape: Gan, Ly, Steven 1991 measured 68.4 %; stretch: 5500 N/m (Zhang 2019, as "
     "quoted by ppf-contact-solver); shear estimated",
     {.density = 0.100, .stretch_warp = 5500, .stretch_weft = 5500, .stiffening_warp = 1, .stiffening_weft = 1, .shear = 25, .shear_lock = 0.5,
      .bend_warp = 7.2e-6, .bend_weft = 7.2e-6, .bend_bias = 0, .stretch_damping = 0.002, .bend_damping = 0.002,
      .stretch_limit = 0.22, .thickness = 2.5e-4, .friction = 1, .air = 1}},
    {"polyester", "Polyester, plain weave", WANG "white-dots-on-blk (tablecloth, 100 % polyester)",
     {.density = 0.128, .stretch_warp = 4004, .stretch_weft = 4055, .stiffening_warp = 1.33, .stiffening_weft = 1.34,
      .shear = 9.6, .shear_lock = 0.5, .bend_warp = 4.71e-6, .bend_weft = 2.71e-6, .bend_bias = 2.45e-6, .stretch_damping = 0.002,
      .bend_damping = 0.002, .stretch_limit = 0.22, .thickness = 2.5e-4, .friction = 0.8, .air = 1}},
    {"denim", "Denim, 11 oz, firm",
     "weight, stretch, shear: Wang, O'Brien, Ramamoorthi 2011, 11oz-black-denim; bend from drape: 70 to 90 % for heavy twill "
     "denim (band quoted by ppf-contact-solver)",
     {.density = 0.324, .stretch_warp = 411, .stretch_weft = 2028, .stiffening_warp = 1.43, .stiffening_weft = 1.31,
      .shear = 26.7, .shear_lock = 0.4, .bend_warp = 5e-5, .bend_weft = 5e-5, .bend_bias = 0, .stretch_damping = 0.002,
      .bend_damping = 0.002, .stretch_limit = 0.25, .thickness = 7e-4, .friction = 1.2, .air = 1}},
    {"stretch_denim", "Denim, 11 oz, soft, with spandex", WANG "11oz-black-denim (jeans, 99 % cotton 1 % spandex)",
     {.density = 0.324, .stretch_warp = 411, .stretch_weft = 2028, .stiffening_warp = 1.43, .stiffening_weft = 1.31,
      .shear = 26.7, .shear_lock = 0.45, .bend_warp = 5.68e-6, .bend_weft = 1.1e-5, .bend_bias = 6.32e-6, .stretch_damping = 0.002,
      .bend_damping = 0.002, .stretch_limit = 0.35, .thickness = 6e-4, .friction = 1.2, .air = 1}},
    {"silk", "Silk, light",
     "weight: MIT fabric set (Bouman 2013); bend from drape: 20 to 40 % (Matsudaira and Yang 2003); stretch: 500 N/m "
     "(ppf-contact-solver's target); shear estimated",
     {.density = 0.067, .stretch_warp = 500, .stretch_weft = 500, .stiffening_warp = 1, .stiffening_weft = 1, .shear = 5, .shear_lock = 0.6,
      .bend_warp = 1e-6, .bend_weft = 1e-6, .bend_bias = 0, .stretch_damping = 0.002, .bend_damping = 0.002,
      .stretch_limit = 0.26, .thickness = 1.2e-4, .friction = 0.6, .air = 1}},
    {"wool", "Wool, worsted suiting",
     "weight, thickness: Penava et al. 2014, wool; stretch: 2000 to 3000 N/m (SiroFAST extension, as quoted by "
     "ppf-contact-solver); bend from drape: 40 to 70 %; shear estimated",
     {.density = 0.2348, .stretch_warp = 2500, .stretch_weft = 2000, .stiffening_warp = 1, .stiffening_weft = 1, .shear = 40, .shear_lock = 0.5,
      .bend_warp = 1.2e-5, .bend_weft = 1e-5, .bend_bias = 0, .stretch_damping = 0.003, .bend_damping = 0.003,
      .stretch_limit = 0.25, .thickness = 5.68e-4, .friction = 1.2, .air = 1}},
    {"linen", "Linen, plain weave",
     "weight and bend: MIT fabric set (Bouman 2013; bend by the factor for light cotton); stretch and shear estimated",
     {.density = 0.152, .stretch_warp = 6000, .stretch_weft = 5000, .stiffening_warp = 1, .stiffening_weft = 1, .shear = 45, .shear_lock = 0.45,
      .bend_warp = 1.62e-5, .bend_weft = 1.62e-5, .bend_bias = 0, .stretch_damping = 0.002, .bend_damping = 0.003,
      .stretch_limit = 0.2, .thickness = 3.5e-4, .friction = 1.1, .air = 0.9}},
    {"jersey", "Jersey, interlock knit", WANG "gray-interlock (T-shirt, 60 % cotton 40 % polyester)",
     {.density = 0.187, .stretch_warp = 33.2, .stretch_weft = 69, .stiffening_warp = 3.53, .stiffening_weft = 14.9,
      .shear = 18.4, .shear_lock = 0.7, .bend_warp = 3.24e-6, .bend_weft = 1.69e-6, .bend_bias = 1.99e-6, .stretch_damping = 0.004,
      .bend_damping = 0.002, .stretch_limit = 0.5, .thickness = 7e-4, .friction = 1.2, .air = 0.8}},
    {"rib_knit", "Rib knit", WANG "ivory-rib-knit (underwear, 95 % cotton 5 % spandex)",
     {.density = 0.276, .stretch_warp = 85.7, .stretch_weft = 130.3, .stiffening_warp = 1.55, .stiffening_weft = 4.94,
      .shear = 41.6, .shear_lock = 0.7, .bend_warp = 7.84e-6, .bend_weft = 3.79e-6, .bend_bias = 3.09e-6, .stretch_damping = 0.004,
      .bend_damping = 0.002, .stretch_limit = 0.8, .thickness = 1e-3, .friction = 1.2, .air = 0.8}},
    {"ponte", "Ponte di Roma, double knit", WANG "camel-ponte-roma (jacket, 60 % polyester 40 % rayon)",
     {.density = 0.284, .stretch_warp = 62.3, .stretch_weft = 88.1, .stiffening_warp = 3.19, .stiffening_weft = 5.51,
      .shear = 15.9, .shear_lock = 0.7, .bend_warp = 4.24e-6, .bend_weft = 3.17e-6, .bend_bias = 3.1e-6, .stretch_damping = 0.004,
      .bend_damping = 0.002, .stretch_limit = 0.5, .thickness = 1e-3, .friction = 1.2, .air = 0.9}},
    {"swimwear", "Swimwear knit", WANG "white-swim-solid (87 % nylon 13 % spandex)",
     {.density = 0.204, .stretch_warp = 95.9, .stretch_weft = 209.2, .stiffening_warp = 1.06, .stiffening_weft = 1.5,
      .shear = 30.4, .shear_lock = 0.7, .bend_warp = 5.85e-6, .bend_weft = 4.79e-6, .bend_bias = 5.3e-6, .stretch_damping = 0.004,
      .bend_damping = 0.002, .stretch_limit = 0.8, .thickness = 6e-4, .friction = 1, .air = 1}},
    {"fleece", "Fleece blanket", WANG "pink-ribbon-brown (blanket, 100 % polyester)",
     {.density = 0.228, .stretch_warp = 303, .stretch_weft = 490, .stiffening_warp = 1.37, .stiffening_weft = 1.86,
      .shear = 15.1, .shear_lock = 0.7, .bend_warp = 2.34e-5, .bend_weft = 6.32e-6, .bend_bias = 8.82e-6, .stretch_damping = 0.004,
      .bend_damping = 0.003, .stretch_limit = 0.4, .thickness = 2e-3, .friction = 1.3, .air = 0.9}},
    {"leather", "Leather, sheep, for garments",
     "bend from drape: 47 to 70 % measured (Memon et al. 2021); weight: MIT fabric set (Bouman 2013), pleather; thickness "
     "0.75 mm (Efendioglu 2025) and stretch 13000 N/m as quoted by ppf-contact-solver; shear estimated",
     {.density = 0.565, .stretch_warp = 13000, .stretch_weft = 13000, .stiffening_warp = 1, .stiffening_weft = 1,
      .shear = 2000, .shear_lock = 0, .bend_warp = 1.3e-5, .bend_weft = 1.3e-5, .bend_bias = 0, .stretch_damping = 0.003, .bend_damping = 0.004,
      .stretch_limit = 0.4, .thickness = 7.5e-4, .friction = 1.4, .air = 1}},
    {"nylon_ripstop", "Nylon ripstop",
     "weight and bend: MIT fabric set (Bouman 2013; bend by the factor for light cotton); stretch and shear estimated",
     {.density = 0.059, .stretch_warp = 8000, .stretch_weft = 8000, .stiffening_warp = 1, .stiffening_weft = 1, .shear = 120, .shear_lock = 0.4,
      .bend_warp = 1.19e-5, .bend_weft = 1.19e-5, .bend_bias = 0, .stretch_damping = 0.001, .bend_damping = 0.002,
      .stretch_limit = 0.2, .thickness = 1e-4, .friction = 0.7, .air = 1}},
    {"canvas", "Canvas, cotton",
     "weight and bend: MIT fabric set (Bouman 2013; bend by the factor for light cotton); stretch and shear estimated",
     {.density = 0.393, .stretch_warp = 10000, .stretch_weft = 8000, .stiffening_warp = 1, .stiffening_weft = 1, .shear = 200, .shear_lock = 0.35,
      .bend_warp = 7.2e-5, .bend_weft = 7.2e-5, .bend_bias = 0, .stretch_damping = 0.002, .bend_damping = 0.004,
      .stretch_limit = 0.16, .thickness = 8e-4, .friction = 1.2, .air = 1}},
    {"felt", "Felt, wool, 1 mm", "estimated throughout: no measurement at hand",
     {.density = 0.22, .stretch_warp = 1500, .stretch_weft = 1500, .stiffening_warp = 1, .stiffening_weft = 1, .shear = 500, .shear_lock = 0,
      .bend_warp = 3e-5, .bend_weft = 3e-5, .bend_bias = 0, .stretch_damping = 0.005, .bend_damping = 0.005,
      .stretch_limit = 0.3, .thickness = 1e-3, .friction = 1.4, .air = 0.9}},
};
enum { FABRICS_COUNT = sizeof FABRICS / sizeof *FABRICS };

const toile_named_fabric *toile_named_fabrics(int *count) {
    *count = FABRICS_COUNT;
    return FABRICS;
}

const toile_named_fabric *toile_find_fabric(const char *name) {
    for (int i = 0; i < FABRICS_COUNT; i++)
        if (strcmp(FABRICS[i].name, name) == 0)
            return &FABRICS[i];
    return NULL;
}
