/* Reverse Cuthill-McKee: an order of the particles in which neighbours are near, so that the matrix is narrow.
 * George and Liu 1981. Incomplete factors also want it (numerics: a random order costs 15 times the iterations). */
#ifndef TOILE_ORDER_H
#define TOILE_ORDER_H

#include "memory.h"

#include <stdbool.h>

/* Graph in CSR form without self loops. place[i] becomes the new number of i. False when memory is out. */
bool toile_order_rcm(toile_memory *memory, int n, const int *begin, const int *neighbour, int *place);

#endif
