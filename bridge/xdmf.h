/* The XDMF side file: XML that tells ParaView, VisIt and others what the numbers in a cache mean. */
#ifndef TOILE_XDMF_H
#define TOILE_XDMF_H

#include "cache.h"

/* Writes `path` for frames first to last (by position) of a cache; whole or not at all. A null path is CACHE.xmf, which
 * refers to the cache without its folder: the two are moved together. */
toile_status toile_xdmf_write(toile_memory *memory, toile_cache *cache, const char *cache_path, const char *path, int first,
                              int last, toile_error *error);

#endif
