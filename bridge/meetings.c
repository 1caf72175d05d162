#include "meetings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *name_of_other(const toile_meeting *m, const toile_garment_view *garments, const toile_scene *scene) {
    return m->collider ? toile_scene_collider_name(scene, m->other) : garments[m->other].name;
}

void toile_meeting_text(const toile_meeting *m, const toile_garment_view *garments, const toile_scene *scene, char *text,
                        size_t size) {
    char with[160], inside[64] = "";
    if (!m->collider && m->garment == m->other)
        snprintf(with, sizeof with, "itself");
    else
        snprintf(with, sizeof with, "%s\"%.128s\"", m->collider ? "collider " : "", name_of_other(m, garments, scene));
    if (m->inside)
        snprintf(inside, sizeof inside, ", %d vertices inside", m->inside);
    snprintf(text, size, "\"%.128s\" with %s: %" PRId64 " pairs of triangles%s; the first at (%.4g, %.4g, %.4g)",
             garments[m->garment].name, with, m->pairs, inside, m->place[0], m->place[1], m->place[2]);
}

json_t *toile_meetings_json(const toile_judgement *j, const toile_garment_view *garments, const toile_scene *scene) {
    json_t *list = json_array();
    for (int i = 0; i < j->meeting_count; i++) {
        const toile_meeting *m = &j->meetings[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:I, s:i, s:[f,f,f]}", "garment", garments[m->garment].name, "with",
                                              name_of_other(m, garments, scene), "kind", m->collider ? "collider" : "garment",
                                              "pairs", (json_int_t)m->pairs, "inside", m->inside, "at", m->place[0],
                                              m->place[1], m->place[2]));
    }
    return list;
}

typedef struct first_place {
    const double *positions;
    const int *triangles;
    toile_self_crossing *crossing;
} first_place;

static void keep_first(void *user, int triangle, int other) {
    const first_place *f = user;
    if (f->crossing->pairs++)
        return;
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < 3; k++)
            f->crossing->place[k] += f->positions[3 * f->triangles[3 * (i < 3 ? triangle : other) + i % 3] + k] / 6;
}

toile_status toile_collider_crosses(toile_memory *memory, toile_scene *scene, int collider, toile_self_crossing *crossing,
                                    toile_error *error) {
    int vertices, faces;
    first_place first = {.crossing = crossing};
    toile_surface *surface = NULL;
    memset(crossing, 0, sizeof *crossing);
    if (toile_scene_collider_shape(scene, collider) != TOILE_MESH)
        return TOILE_OK;
    toile_status status =
        toile_scene_collider_mesh(scene, collider, &vertices, &first.positions, &faces, &first.triangles, error);
    if (status >= 0)
        status = toile_surface_create(memory, vertices, first.positions, faces, first.triangles, &surface, error);
    if (status < 0)
        return status;
    toile_intersect_each(surface, surface, keep_first, &first);
    toile_surface_free(surface);
    return TOILE_OK;
}
