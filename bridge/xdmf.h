/* The XDMF side file: XML that tells ParaView, VisIt and others what the numbers in a cache mean. */
#ifndef TOILE_XDMF_H
#define TOILE_XDMF_H

#include "cache.h"

/* Writes `path` (null: CACHE.xmf) for the finished frames of a cache; whole or not at all. */
toile_status toile_xdmf_write(toile_memory *memory, toile_cache *cache, const char *cache_path, const char *path,
                              toile_error *error);

#endif
