/* Point caches of the kind PC2. */
#define KIND TOILE_PC2
#include "fuzz_pointcache.inl"
