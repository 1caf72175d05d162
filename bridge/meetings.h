/* Who meets whom where it should not, in words and in JSON: for verify, for what a bake says of its start, for its report. */
#ifndef TOILE_MEETINGS_H
#define TOILE_MEETINGS_H

#include "intersect.h"

#include <jansson.h>

/* "shirt" with itself, with "jacket", with collider "body". The scene may be null if no collider was judged. */
void toile_meeting_text(const toile_meeting *meeting, const toile_garment_view *garments, const toile_scene *scene, char *text,
                        size_t size);
json_t *toile_meetings_json(const toile_judgement *judgement, const toile_garment_view *garments, const toile_scene *scene);

/* A collider that crosses itself: cloth between its parts may have no place to go. */
typedef struct toile_self_crossing {
    int64_t pairs;
    double place[3]; /* middle of the first, m */
} toile_self_crossing;
toile_status toile_collider_crosses(toile_memory *memory, toile_scene *scene, int collider, toile_self_crossing *crossing,
                                    toile_error *error);

#endif
