/* What a bake was made from, kept in its cache, and how that differs from the present: for --resume. */
#ifndef TOILE_BAKE_CHANGE_H
#define TOILE_BAKE_CHANGE_H

#include "cache.h"

#include <jansson.h>

/* Makes the file names of the scene's meshes absolute, so that the scene in the cache can be read from
 * anywhere. */
void toile_point_to_files(json_t *scene, const char *scene_path);

/* {"file": "size and hash"} of every file that a scene with absolute names names; null when memory is out. */
json_t *toile_describe_inputs(const json_t *scene);

/* One sentence: what of scene, settings, files or library is not as the cache's header has it. */
void toile_describe_change(const toile_cache_header *before, const json_t *scene, const char *cache_path,
                           char *text, size_t size);

#endif
