/* Drawings of pattern pieces: DXF and SVG, and the companion that sews them; cut as they come. */
#include "fuzz.h"

#include "pattern_drawing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DXF(layer, x, y) "8\n" layer "\n10\n" x "\n20\n" y "\n"

static const char SQUARE[] =
    "<svg width=\"40cm\" height=\"40cm\" viewBox=\"0 0 40 40\"><g id=\"a\"><path d=\"M1 1h20v20h-20z\"/></g>"
    "<g id=\"b\"><path d=\"M1 1h20v20l-10 5-10-5z\"/></g></svg>";

static void ignore(void *user, const char *line) {
    size_t *length = user;
    *length += strlen(line);
}

/* Every panel that was accepted has an outline of at least two edges that goes around. */
static void check_pattern(const toile_garmentcode *read) {
    for (int i = 0; i < read->pattern.panel_count; i++) {
        const toile_pattern_panel *p = &read->panels[i];
        if (p->loop_sizes[0] < 2 || !isfinite(p->grain))
            abort();
        for (int e = 0; e < p->loop_sizes[0]; e++) {
            const toile_curve *c = &p->edges[e].curve, *next = &p->edges[(e + 1) % p->loop_sizes[0]].curve;
            if (c->point_count > 0 &&
                memcmp(c->points[c->point_count - 1], next->from, sizeof next->from) != 0)
                abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_limit limit = {0, 2 << 20}; /* some 4000 vertices, as in fuzz_pattern.c */
    const toile_allocator allocator = fuzz_allocator(&limit);
    toile_memory memory;
    toile_error error;
    toile_drawing drawing;
    size_t length = 0;
    json_t *root = NULL, *companion = NULL;
    const char *text = (const char *)data;
    toile_memory_init(&memory, &allocator);
    toile_drawing_init(&drawing, &memory, "drawing", &error);
    if (size > 0 && data[0] == '{') { /* a companion of two squares */
        companion = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
        text = SQUARE;
        size = companion ? sizeof SQUARE - 1 : 0;
    }
    toile_status status =
        (size > 0 && text[0] == '<' ? toile_svg_read : toile_dxf_read)(&drawing, text, size, 0);
    if (status == TOILE_OK)
        status = toile_pattern_from_drawing(&drawing, companion, "companion", ignore, &length, &root);
    toile_drawing_free(&drawing);
    if (status == TOILE_OK) {
        toile_garmentcode read;
        toile_pattern_mesh mesh;
        toile_pattern_where where;
        if (toile_garmentcode_take(&memory, "drawing", root, 0.05, ignore, &length, &read, &error) ==
            TOILE_OK) {
            check_pattern(&read);
            if (toile_pattern_make(&memory, &read.pattern, &mesh, &where, &error) == TOILE_OK)
                toile_pattern_mesh_free(&memory, &mesh);
            toile_garmentcode_free(&memory, &read);
        }
    }
    json_decref(companion);
    fuzz_check_memory(&memory, &limit);
    return 0;
}

void fuzz_seeds(fuzz_put *put, void *user) {
    static const char *const SEEDS[] = {
        SQUARE,
        "<?xml version=\"1.0\"?><!DOCTYPE svg [<!ENTITY a \"b\">]><svg width=\"300mm\" height=\"200mm\" "
        "viewBox=\"0 0 300 200\"><!-- c -->"
        "<style><![CDATA[ a ]]></style><defs><g id=\"x\"><circle r=\"3\"/></g></defs><g "
        "id=\"fs-stack-a-part-a\" transform=\"translate(3,4) "
        "rotate(10) scale(.9)\"><path class=\"fabric\" d=\"M 0,0 L 90,0 C 99,30 99,60 90,90 S 40 95 20 99 Q "
        "9 99 5 60 t -3 -20 a 9 9 0 01-2 "
        "-9 H 0 V 3 z\"/><path class=\"fabric sa\" d=\"m-9-9h110v120h-110z\"/><path class=\"note\" "
        "marker-start=\"url(#grainlineFrom)\" "
        "d=\"M 30 10 V 80\"/></g><use href=\"#x\"/></svg>",
        "<svg xmlns=\"a\"><g><rect x=\"9\" y=\"9\" width=\"300\" height=\"400\" rx=\"20\"/><circle "
        "cx=\"900\" cy=\"90\" r=\"80\"/><ellipse "
        "cx=\"600\" cy=\"600\" rx=\"99\" ry=\"50\"/><polygon points=\"700,0 900,10 800 300\"/><polyline "
        "points=\"1000,1000 1200,1000 1200,"
        "1200 1000,1000\"/><line x1=\"3\" y1=\"4\" x2=\"9\" y2=\"9\"/></g></svg>",
        "0\nSECTION\n2\nHEADER\n9\n$"
        "INSUNITS\n70\n4\n0\nENDSEC\n0\nSECTION\n2\nBLOCKS\n0\nBLOCK\n8\n1\n2\nFRONT\n0\nPOLYLINE\n8\n1\n66\n"
        "1\n70\n1\n"
        "0\nVERTEX\n" DXF("1", "0", "0") "0\nVERTEX\n" DXF("1", "300", "0") "42\n0.3\n0\nVERTEX\n" DXF(
            "1", "300",
            "400") "0\nVERTEX\n" DXF("1", "0",
                                     "400") "0\nSEQEND\n0\nLINE\n" DXF("7", "100",
                                                                       "50") "11\n100\n21\n300\n0\nTEXT\n8\n1"
                                                                             "\n1\nPiece Name: "
                                                                             "Front\n0\nLWPOLYLINE\n8\n8\n"
                                                                             "90\n4\n70\n1\n10\n10\n20\n10\n1"
                                                                             "0\n290\n20\n10\n42\n-."
                                                                             "1\n10\n290\n20\n390\n10\n10\n20"
                                                                             "\n390\n0\nENDBLK\n0\nENDSEC\n0"
                                                                             "\nEOF\n",
        "0\nSECTION\n2\nENTITIES\n0\nLINE\n" DXF("0", "0", "0") "11\n9\n21\n0\n0\nARC\n" DXF(
            "0", "9",
            "9") "40\n9\n50\n270\n51\n90\n0\nSPLINE\n8\n0\n"
                 "70\n8\n71\n2\n40\n0\n40\n0\n40\n0\n40\n1\n40\n1\n40\n1\n10\n9\n20\n18\n10\n0\n20\n18\n10\n0"
                 "\n20\n0\n0\nCIRCLE\n" DXF(
                     "0", "40",
                     "40") "40\n9\n0\n"
                           "ELLIPSE\n" DXF(
                               "0", "90",
                               "90") "11\n20\n21\n0\n40\n.5\n41\n0\n42\n6.283185307\n0\nTEXT\n8\n1\n1\nUNITS:"
                                     " ENGLISH\n0\nENDSEC\n0\nEOF\n",
        "{\"pattern\":{\"panels\":{\"l\":{\"piece\":\"a\",\"translation\":[0,100,20]},\"r\":{\"piece\":\"a\","
        "\"mirror\":true,\"translation\":[9,9,"
        "9],\"rotation\":[0,90,0]},\"b\":{}},\"stitches\":[[{\"panel\":\"l\",\"edge\":3},{\"panel\":\"r\","
        "\"edge\":3}],[[{\"panel\":\"l\","
        "\"edge\":0},{\"panel\":\"r\",\"edge\":0}],{\"panel\":\"b\",\"edge\":1},\"right_wrong\"]]},"
        "\"properties\":{\"units_in_meter\":100}}"};
    for (size_t i = 0; i < sizeof SEEDS / sizeof *SEEDS; i++)
        put(user, SEEDS[i], strlen(SEEDS[i]));
}
