/* Point caches of the kind MDD. */
#define KIND TOILE_MDD
#include "fuzz_pointcache.inl"
