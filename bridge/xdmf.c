/* XDMF 3: one temporal collection of frames, each a spatial collection of the garments. Topology is written
 * once per garment and referred to; positions and velocities of a frame are hyperslabs of the datasets that
 * grow. */
#include "xdmf.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As a link of the cache (FORMAT.md) and as XML. */
static void put_name(FILE *file, const char *name, bool link) {
    for (const char *c = name; *c; c++) {
        if (link && (*c == '/' || *c == '%' || (*c == '.' && c == name)))
            fprintf(file, "%%%02X", (unsigned char)*c);
        else if (strchr("&<>\"'", *c))
            fprintf(file, "&#%d;", *c);
        else
            fputc(*c, file);
    }
}

static void put_reference(FILE *file, const char *base, const char *garment, const char *dataset) {
    put_name(file, base, false);
    fputs(":/garments/", file);
    put_name(file, garment, true);
    fprintf(file, "/%s", dataset);
}

/* One frame of a dataset that grows. */
static void put_frame(FILE *file, const char *base, const toile_garment_view *g, const char *dataset,
                      int index, int count) {
    fprintf(
        file,
        "<DataItem ItemType=\"HyperSlab\" Dimensions=\"%d 3\"><DataItem Dimensions=\"3 3\" Format=\"XML\">%d "
        "0 0 1 1 1 1 %d "
        "3</DataItem><DataItem Dimensions=\"%d %d 3\" NumberType=\"Float\" Precision=\"4\" Format=\"HDF\">",
        g->vertex_count, index, g->vertex_count, count, g->vertex_count);
    put_reference(file, base, g->name, dataset);
    fputs("</DataItem></DataItem>", file);
}

static void put_garment(FILE *file, const char *base, const toile_garment_view *g, int number, bool topology,
                        int index, int count) {
    fputs("      <Grid Name=\"", file);
    put_name(file, g->name, false);
    fputs("\" GridType=\"Uniform\">\n", file);
    if (topology) {
        fprintf(file,
                "        <Topology TopologyType=\"Triangle\" NumberOfElements=\"%d\"><DataItem "
                "Dimensions=\"%d 3\" NumberType=\"Int\" "
                "Precision=\"4\" Format=\"HDF\">",
                g->triangle_count, g->triangle_count);
        put_reference(file, base, g->name, "triangles");
        fputs("</DataItem></Topology>\n", file);
    } else {
        fprintf(file, "        <Topology Reference=\"/Xdmf/Domain/Grid/Grid[1]/Grid[%d]/Topology\"/>\n",
                number + 1);
    }
    fputs("        <Geometry GeometryType=\"XYZ\">", file);
    put_frame(file, base, g, "positions", index, count);
    fputs("</Geometry>\n        <Attribute Name=\"velocity\" AttributeType=\"Vector\" Center=\"Node\">",
          file);
    put_frame(file, base, g, "velocities", index, count);
    fprintf(file,
            "</Attribute>\n        <Attribute Name=\"panel\" AttributeType=\"Scalar\" "
            "Center=\"Cell\"><DataItem Dimensions=\"%d\" "
            "NumberType=\"Int\" Precision=\"4\" Format=\"HDF\">",
            g->triangle_count);
    put_reference(file, base, g->name, "triangle_panels");
    fputs("</DataItem></Attribute>\n      </Grid>\n", file);
}

static toile_status put_all(FILE *file, toile_cache *cache, const char *base, int first, int last,
                            toile_error *error) {
    const toile_cache_header *header = toile_cache_get_header(cache);
    int count = toile_cache_frame_count(cache);
    fputs("<?xml version=\"1.0\"?>\n<Xdmf Version=\"3.0\">\n  <Domain>\n    <Grid Name=\"", file);
    put_name(file, header->scene_name, false);
    fputs("\" GridType=\"Collection\" CollectionType=\"Temporal\">\n", file);
    for (int i = first; i <= last; i++) {
        toile_cache_frame frame;
        toile_status status = toile_cache_read_frame(cache, i, &frame, error);
        if (status < 0)
            return status;
        fprintf(file,
                "    <Grid Name=\"frame %d\" GridType=\"Collection\" CollectionType=\"Spatial\">\n      "
                "<Time Value=\"%.17g\"/>\n",
                frame.frame, frame.time);
        for (int g = 0; g < header->garment_count; g++)
            put_garment(file, base, &header->garments[g], g, i == first, i, count);
        fputs("    </Grid>\n", file);
    }
    fputs("    </Grid>\n  </Domain>\n</Xdmf>\n", file);
    return TOILE_OK;
}

toile_status toile_xdmf_write(toile_memory *memory, toile_cache *cache, const char *cache_path,
                              const char *path, int first, int last, toile_error *error) {
    const char *slash = strrchr(cache_path, '/');
    char *whole = path ? realpath(cache_path, NULL) : NULL;
    const char *base = whole ? whole : slash ? slash + 1 : cache_path;
    size_t size = strlen(path ? path : cache_path) + 32;
    char *target = toile_alloc(memory, size, 1), *temporary = toile_alloc(memory, size, 1);
    toile_status status = TOILE_OK;
    FILE *file = NULL;
    if (!target || !temporary) {
        status = toile_fail_memory(error, "the XDMF file");
        goto out;
    }
    snprintf(target, size, "%s%s", path ? path : cache_path, path ? "" : ".xmf");
    snprintf(temporary, size, "%s.%ld.tmp", target, (long)getpid());
    file = fopen(temporary, "w");
    if (file)
        status = put_all(file, cache, base, first, last, error);
    bool written = file && !ferror(file) && fflush(file) == 0;
    if (file)
        written = fclose(file) == 0 && written;
    if (status >= 0 && (!written || rename(temporary, target)))
        status = toile_fail(error, TOILE_IO, "cannot write %.400s: %s; %s", target, strerror(errno),
                            toile_io_advice(errno));
    if (status < 0)
        unlink(temporary);
out:
    toile_free(memory, target);
    toile_free(memory, temporary);
    free(whole);
    return status;
}
