#include "contact_rules.h"

#include "garment.h"
#include "model.h"

#include <string.h>

void toile_contact_rules_place(const toile_model *model, const toile_garment *garments, toile_contact_rules *rules) {
    rules->particle_count = model->particle_count;
    memset(rules->exempt, 0, (size_t)model->particle_count);
    for (int i = 0; i < model->garment_count; i++) {
        const toile_garment *garment = &garments[i];
        rules->layer[i] = garment->layer;
        rules->any_layers = rules->any_layers || garment->layer != garments[0].layer;
        for (int v = 0; v < garment->vertex_count; v++) {
            int p = model->place[model->garment_begin[i] + v];
            rules->garment[p] = i;
            rules->exempt[p] |= garment->exempt ? garment->exempt[v] : 0;
            rules->any_exempt = rules->any_exempt || rules->exempt[p];
        }
    }
}

toile_status toile_contact_rules_make(toile_memory *memory, const toile_model *model, const toile_garment *garments,
                                      int solid_count, const toile_apart *apart, int apart_count,
                                      toile_contact_rules *rules, toile_error *error) {
    size_t n = (size_t)model->garment_begin[model->garment_count], g = (size_t)model->garment_count, s = (size_t)solid_count;
    *rules = (toile_contact_rules){
        .particle_count = model->particle_count, .garment_count = model->garment_count, .solid_count = solid_count};
    rules->layer = toile_alloc(memory, g, sizeof *rules->layer);
    rules->apart_cloth = toile_alloc(memory, g * g, 1);
    rules->apart_solid = toile_alloc(memory, g * s, 1);
    rules->exempt = toile_alloc(memory, n, 1);
    rules->garment = toile_alloc(memory, n, sizeof *rules->garment);
    if (!rules->layer || !rules->apart_cloth || !rules->apart_solid || !rules->exempt || !rules->garment) {
        toile_contact_rules_free(memory, rules);
        return toile_fail_memory(error, "the rules of contact");
    }
    toile_contact_rules_place(model, garments, rules);
    for (int i = 0; i < apart_count; i++) {
        size_t a = (size_t)apart[i].garment, b = (size_t)apart[i].other;
        if (apart[i].solid)
            rules->apart_solid[a * s + b] = 1;
        else
            rules->apart_cloth[a * g + b] = rules->apart_cloth[b * g + a] = 1;
    }
    rules->any_apart = apart_count > 0;
    return TOILE_OK;
}

void toile_contact_rules_free(toile_memory *memory, toile_contact_rules *rules) {
    toile_free(memory, rules->layer);
    toile_free(memory, rules->apart_cloth);
    toile_free(memory, rules->apart_solid);
    toile_free(memory, rules->exempt);
    toile_free(memory, rules->garment);
    *rules = (toile_contact_rules){0};
}
