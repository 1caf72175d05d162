#include "image.h"

#include "wedge_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

toile_status toile_image_create(toile_memory *memory, int width, int height, uint8_t grey, toile_image *image,
                                toile_error *error) {
    *image = (toile_image){width, height, NULL};
    if (width < 1 || height < 1 || width > 32767 || height > 32767)
        return toile_fail(error, TOILE_INVALID, "a picture of %d x %d is not possible", width, height);
    image->rgb = toile_alloc(memory, (size_t)width * (size_t)height, 3);
    if (!image->rgb)
        return toile_fail_memory(error, "a picture");
    memset(image->rgb, grey, (size_t)width * (size_t)height * 3);
    return TOILE_OK;
}

void toile_image_free(toile_memory *memory, toile_image *image) {
    toile_free(memory, image->rgb);
    *image = (toile_image){0};
}

void toile_image_copy(const toile_image *from, toile_image *to, int left, int top) {
    int columns = from->width < to->width - left ? from->width : to->width - left;
    for (int y = 0; y < from->height && top + y < to->height && columns > 0; y++)
        memcpy(to->rgb + 3 * ((size_t)(top + y) * (size_t)to->width + (size_t)left),
               from->rgb + 3 * (size_t)y * (size_t)from->width, 3 * (size_t)columns);
}

void toile_image_box(toile_image *image, int left, int top, int width, int height, const uint8_t colour[3]) {
    for (int y = top < 0 ? 0 : top; y < top + height && y < image->height; y++)
        for (int x = left < 0 ? 0 : left; x < left + width && x < image->width; x++)
            memcpy(image->rgb + 3 * ((size_t)y * (size_t)image->width + (size_t)x), colour, 3);
}

/* ---- words: letters as strokes ---- */

/* From '!' on. Strokes are separated by blanks; a stroke is points of two digits, x from 0 to 4 and y from 0
 * to 8, where 2 is the line that letters stand on, 6 the height of small ones, 8 that of capitals. */
/* clang-format off */
static const char *const LETTERS[] = {
    /* ! " # $ */ "2824 2322", "1816 3836", "1218 3238 0646 0444", "473818070615354443321203 2921",
    /* % & ' ( */ "0248 0817 4332", "42071828371603123243", "2826", "38262432",
    /* ) * + , */ "18262412", "2327 0644 0446", "1434 2325", "2321",
    /* - . / 0 */ "1434", "2223", "0248", "180703123243473818",
    /* 1 2 3 4 */ "072822 1232", "07183847460242", "07183847463525 354443321203", "32380444",
    /* 5 6 7 8 */ "480805354443321203", "473818070312324344351504", "084812", "180706153546473818 150403123243443515",
    /* 9 : ; < */ "031232434738180706153546", "2625 2322", "2625 2321", "460442",
    /* = > ? @ */ "0545 0343", "064402", "0718384746352524 2322", "3335253433434538180703123242",
    /* A B C D */ "022842 1434", "020838474635053544433202", "4738180703123243", "02082846442202",
    /* E F G H */ "48080242 0535", "480802 0535", "47381807031232434525", "0802 4842 0545",
    /* I J K L */ "1838 2822 1232", "4843321203", "0802 4804 2642", "080242",
    /* M N O P */ "0208254842", "02084248", "180703123243473818", "02083847463505",
    /* Q R S T */ "180703123243473818 2442", "02083847463505 2542", "473818070615354443321203", "0848 2822",
    /* U V W X */ "080312324348", "082248", "0812263248", "0842 4802",
    /* Y Z [ \ */ "082548 2522", "08480242", "38282232", "0842",
    /* ] ^ _ ` */ "18282212", "062846", "0141", "1827",
    /* a b c d */ "4642 4536160503123243", "0802 0516364543321203", "4536160503123243", "4842 4536160503123243",
    /* e f g h */ "04444536160503123243", "48382722 1646", "4641301001 4536160503123243", "0802 0516364542",
    /* i j k l */ "2622 2827", "26211000 2827", "0802 4604 2542", "282332",
    /* m n o p */ "0602 05162522 25364542", "0602 0516364542", "160503123243453616", "0600 0516364543321203",
    /* q r s t */ "4640 4536160503123243", "0602 051636", "45361605143443321203", "28233242 0646",
    /* u v w x */ "0603123243 4642", "062246", "0612253246", "0642 4602",
    /* y z { | */ "0622 4610", "06460242", "38272615242332", "2822",
    /* } ~     */ "18272635242312", "0415253435"};
/* clang-format on */
static const char BOX[] = "0208484202";

static void dab(toile_image *image, int x, int y, double cover, const uint8_t colour[3]) {
    if (x < 0 || y < 0 || x >= image->width || y >= image->height || !(cover > 0))
        return;
    uint8_t *pixel = image->rgb + 3 * ((size_t)y * (size_t)image->width + (size_t)x);
    for (int k = 0; k < 3; k++)
        pixel[k] = (uint8_t)lrint(pixel[k] + fmin(1, cover) * (colour[k] - pixel[k]));
}

/* A line with round ends: every pixel by its distance. */
static void draw_line(toile_image *image, const double a[2], const double b[2], double radius,
                      const uint8_t colour[3]) {
    double u[2] = {b[0] - a[0], b[1] - a[1]}, length = u[0] * u[0] + u[1] * u[1];
    for (int y = (int)(fmin(a[1], b[1]) - radius - 1); y <= (int)(fmax(a[1], b[1]) + radius + 1); y++)
        for (int x = (int)(fmin(a[0], b[0]) - radius - 1); x <= (int)(fmax(a[0], b[0]) + radius + 1); x++) {
            double px = x + 0.5 - a[0], py = y + 0.5 - a[1];
            double t = length > 0 ? fmin(1, fmax(0, (px * u[0] + py * u[1]) / length)) : 0;
            dab(image, x, y, 0.5 + radius - hypot(px - t * u[0], py - t * u[1]), colour);
        }
}

static void draw_letter(toile_image *image, double left, double top, double unit, const uint8_t colour[3],
                        const char *strokes) {
    double from[2] = {0, 0};
    bool pen = false;
    for (const char *at = strokes; *at;) {
        if (*at == ' ' || !at[1]) {
            pen = false;
            at++;
            continue;
        }
        double to[2] = {left + unit * (at[0] - '0' + 0.5), top + unit * (8.5 - (at[1] - '0'))};
        if (pen)
            draw_line(image, from, to, 0.42 * unit, colour);
        memcpy(from, to, sizeof to);
        pen = true;
        at += 2;
    }
}

void toile_image_text(toile_image *image, double left, double top, double height, double room,
                      const uint8_t colour[3], const char *text) {
    double unit = height / 9, advance = 5.8 * unit, end = left + room;
    for (; *text && left + 5 * unit <= end; left += advance, text++) {
        unsigned char c = (unsigned char)*text;
        if (c == ' ' || (c & 0xc0) == 0x80) { /* the rest of a letter that has its box */
            left -= c == ' ' ? 0 : advance;
            continue;
        }
        draw_letter(image, left, top, unit, colour, c > ' ' && c < 0x7f ? LETTERS[c - '!'] : BOX);
    }
}

/* ---- PNG (ISO/IEC 15948) ---- */

static void put32(uint8_t *at, uint32_t value) {
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* Length, name, data, checksum of name and data; returns the size. */
static size_t put_chunk(uint8_t *at, const char *name, const uint8_t *data, size_t size) {
    put32(at, (uint32_t)size);
    memcpy(at + 4, name, 4);
    if (size > 0)
        memmove(at + 8, data, size);
    put32(at + 8 + size, (uint32_t)crc32(crc32(0, NULL, 0), at + 4, (uInt)(size + 4)));
    return size + 12;
}

toile_status toile_image_write_png(toile_memory *memory, const toile_image *image, const char *path,
                                   toile_error *error) {
    size_t row = 3 * (size_t)image->width, raw_size = (row + 1) * (size_t)image->height;
    uLongf packed = compressBound((uLong)raw_size);
    uint8_t *raw = toile_alloc(memory, raw_size, 1), *file = toile_alloc(memory, packed + 128, 1);
    toile_status status = raw && file ? TOILE_OK : toile_fail_memory(error, "a picture");
    if (status == TOILE_OK) {
        /* Each byte less that of the pixel to its left (filter 1), which packs better. */
        for (int y = 0; y < image->height; y++) {
            const uint8_t *from = image->rgb + (size_t)y * row;
            uint8_t *to = raw + (size_t)y * (row + 1);
            *to++ = 1;
            for (size_t i = 0; i < row; i++)
                to[i] = (uint8_t)(from[i] - (i >= 3 ? from[i - 3] : 0));
        }
        if (compress2(file + 64, &packed, raw, (uLong)raw_size, 6) != Z_OK)
            status = toile_fail_memory(error, "a picture");
    }
    if (status == TOILE_OK) {
        uint8_t head[13] = {0};
        size_t used = 8;
        memcpy(file, "\x89PNG\r\n\x1a\n", 8);
        put32(head, (uint32_t)image->width);
        put32(head + 4, (uint32_t)image->height);
        head[8] = 8; /* bits */
        head[9] = 2; /* RGB */
        used += put_chunk(file + used, "IHDR", head, sizeof head);
        used += put_chunk(file + used, "IDAT", file + 64, packed);
        used += put_chunk(file + used, "IEND", NULL, 0);
        status = toile_write_text(path, (const char *)file, used, false, error);
    }
    toile_free(memory, raw);
    toile_free(memory, file);
    return status;
}
