/* The garment of a scene that has one, as it starts, as an OBJ file: panels are groups, vt are material coordinates in
 * metres, what is sewn are lines (l) after the number of their seam (o seam N), what is pinned are points (p). */
#include "scene_internal.h"

#include "cache.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct content {
    double *x, *uv; /* (vertices x 3), (triangles x 6) */
    int *triangles, *panels;
    toile_stitch *stitches;
} content;

static toile_status read_content(toile_scene *scene, content *c, toile_error *error) {
    toile_world *w = scene->world;
    size_t vertices = (size_t)toile_vertex_count(w, 0), triangles = (size_t)toile_triangle_count(w, 0);
    c->x = toile_alloc(&scene->memory, vertices, 3 * sizeof *c->x);
    c->uv = toile_alloc(&scene->memory, triangles, 6 * sizeof *c->uv);
    c->triangles = toile_alloc(&scene->memory, triangles, 3 * sizeof *c->triangles);
    c->panels = toile_alloc(&scene->memory, triangles, sizeof *c->panels);
    c->stitches = toile_alloc(&scene->memory, (size_t)toile_stitch_count(w, 0), sizeof *c->stitches);
    if (!c->x || !c->uv || !c->triangles || !c->panels || !c->stitches)
        return toile_fail_memory(error, "the garment");
    toile_status status = toile_get_positions(w, 0, c->x);
    if (status == TOILE_OK)
        status = toile_get_triangles(w, 0, c->triangles, c->panels, c->uv);
    if (status == TOILE_OK)
        status = toile_get_stitches(w, 0, c->stitches);
    return status == TOILE_OK ? TOILE_OK : toile_fail(error, status, "%s", toile_message(w));
}

static void write_content(FILE *file, const toile_scene *scene, const content *c) {
    const toile_world *w = scene->world;
    for (int i = 0; i < toile_vertex_count(w, 0); i++)
        fprintf(file, "v %.9g %.9g %.9g\n", c->x[3 * i], c->x[3 * i + 1], c->x[3 * i + 2]);
    for (int k = 0; k < 3 * toile_triangle_count(w, 0); k++)
        fprintf(file, "vt %.9g %.9g\n", c->uv[2 * k], c->uv[2 * k + 1]);
    for (int t = 0, panel = -1; t < toile_triangle_count(w, 0); t++) {
        if (c->panels[t] != panel)
            fprintf(file, "g %s\n", toile_panel_name(w, 0, panel = c->panels[t]));
        const int *v = c->triangles + 3 * (size_t)t;
        fprintf(file, "f %d/%d %d/%d %d/%d\n", v[0] + 1, 3 * t + 1, v[1] + 1, 3 * t + 2, v[2] + 1, 3 * t + 3);
    }
    for (int i = 0, seam = -1; i < toile_stitch_count(w, 0); i++) {
        const toile_stitch *s = &c->stitches[i];
        if (s->seam != seam)
            fprintf(file, "o seam %d\n", seam = s->seam);
        fprintf(file, "l %d %d\n", s->a + 1, s->b + 1);
    }
    for (int i = 0; i < scene->pin_count; i++) {
        fputc('p', file);
        for (int k = 0; k < scene->pins[i].count; k++)
            fprintf(file, " %d", scene->pins[i].vertices[k] + 1);
        fputc('\n', file);
    }
}

toile_status toile_scene_write_obj(toile_scene *scene, const char *path, toile_error *error) {
    content c = {0};
    toile_status status = read_content(scene, &c, error);
    if (status == TOILE_OK) {
        FILE *file = fopen(path, "w");
        bool written = file != NULL;
        if (file) {
            write_content(file, scene, &c);
            written = !ferror(file);
            written = fclose(file) == 0 && written;
        }
        if (!written)
            status = toile_fail(error, TOILE_IO, "%.500s cannot be written: %s; %s", path, strerror(errno),
                                toile_io_advice(errno));
    }
    toile_free(&scene->memory, c.x);
    toile_free(&scene->memory, c.uv);
    toile_free(&scene->memory, c.triangles);
    toile_free(&scene->memory, c.panels);
    toile_free(&scene->memory, c.stitches);
    return status;
}
