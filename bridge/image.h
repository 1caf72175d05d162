/* A picture in memory: lines, words, PNG. */
#ifndef TOILE_IMAGE_H
#define TOILE_IMAGE_H

#include "error.h"
#include "memory.h"

#include <stdint.h>

typedef struct toile_image {
    int width, height;
    uint8_t *rgb; /* sRGB, rows from the top, (height x width x 3) */
} toile_image;

/* All of one grey. */
toile_status toile_image_create(toile_memory *memory, int width, int height, uint8_t grey, toile_image *image,
                                toile_error *error);
void toile_image_free(toile_memory *memory, toile_image *image);

void toile_image_copy(const toile_image *from, toile_image *to, int left, int top);
void toile_image_box(toile_image *image, int left, int top, int width, int height, const uint8_t colour[3]);
/* Words with their upper left corner there, `height` pixels high; cut off where they would be longer than
 * `room`. Letters that are not of plain ASCII become boxes. */
void toile_image_text(toile_image *image, double left, double top, double height, double room,
                      const uint8_t colour[3], const char *text);

/* Appears under its name when it is whole. */
toile_status toile_image_write_png(toile_memory *memory, const toile_image *image, const char *path,
                                   toile_error *error);

#endif
