/* What touches what: layers of garments, pairs without contact, vertices exempt from it. Plain data for all kinds of
 * contact to read; gathered before the build, constant afterwards. */
#ifndef TOILE_CONTACT_RULES_H
#define TOILE_CONTACT_RULES_H

#include "error.h"
#include "memory.h"

#include <stdbool.h>

/* Bits of `exempt`. */
enum { TOILE_EXEMPT_CLOTH_BIT = 1, TOILE_EXEMPT_SOLIDS_BIT = 2 };

typedef struct toile_contact_rules {
    int particle_count, garment_count, solid_count;
    int *layer;                   /* of each garment: a higher one lies over a lower one, (garment_count) */
    unsigned char *apart_cloth;   /* 1: no contact of garments a and b, at a * garment_count + b; a == b: with itself */
    unsigned char *apart_solid;   /* 1: no contact of garment g and solid s, at g * solid_count + s */
    unsigned char *exempt;        /* of each particle, in the model's order, (particle_count) */
    int *garment;                 /* of each particle, in the model's order, (particle_count) */
    bool any_apart, any_exempt;   /* false: nobody has to look */
    bool any_layers;              /* garments differ in their layer */
} toile_contact_rules;

/* A pair without contact, of two garments or of a garment and a solid. */
typedef struct toile_apart {
    int garment, other;           /* `other`: a garment, or a solid */
    bool solid;
} toile_apart;

struct toile_garment;
struct toile_model;
toile_status toile_contact_rules_make(toile_memory *memory, const struct toile_model *model,
                                      const struct toile_garment *garments, int solid_count, const toile_apart *apart,
                                      int apart_count, toile_contact_rules *rules, toile_error *error);
/* Which particle is of which garment, and exempt: again when seams have made others of them. */
void toile_contact_rules_place(const struct toile_model *model, const struct toile_garment *garments, toile_contact_rules *rules);
void toile_contact_rules_free(toile_memory *memory, toile_contact_rules *rules);

/* May particle i touch solid s? */
static inline bool toile_touches_solid(const toile_contact_rules *r, int i, int s) {
    return !(r->any_exempt && (r->exempt[i] & TOILE_EXEMPT_SOLIDS_BIT)) &&
           !(r->any_apart && r->apart_solid[(size_t)r->garment[i] * (size_t)r->solid_count + (size_t)s]);
}

/* May particle i touch particle j of another or the same garment? A pair of elements may if all of its particles may. */
static inline bool toile_touches_cloth(const toile_contact_rules *r, int i, int j) {
    return !(r->any_exempt && ((r->exempt[i] | r->exempt[j]) & TOILE_EXEMPT_CLOTH_BIT)) &&
           !(r->any_apart && r->apart_cloth[(size_t)r->garment[i] * (size_t)r->garment_count + (size_t)r->garment[j]]);
}

#endif
