/* OBJ: one file per frame with all wanted garments, and one beside it with the colliders. A single frame goes
 * to OUT.obj, several to OUT_0001.obj and so on. Nine digits bring every float32 back to the same bits. */
#include "export_job.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct obj_file {
    toile_export_file file;
    FILE *stream;
} obj_file;

/* OUT.obj and what goes between name and ending: "_collider", the frame. */
static toile_status open_obj(toile_export *job, const char *insert, int frame, obj_file *obj) {
    char path[TOILE_PATH_SIZE], number[16] = "";
    size_t stem = strlen(job->output) - strlen(".obj");
    if (job->last > job->first)
        snprintf(number, sizeof number, "_%04d", frame + job->offset);
    if (snprintf(path, sizeof path, "%.*s%s%s.obj", (int)stem, job->output, insert, number) >=
        TOILE_PATH_SIZE)
        return toile_fail(&job->error, TOILE_INVALID, "the name is too long: %.200s...", job->output);
    toile_status status = toile_export_file_begin(&obj->file, path, &job->error);
    if (status < 0)
        return status;
    obj->stream = fopen(obj->file.temporary, "wb");
    if (!obj->stream) {
        status = toile_fail(&job->error, TOILE_IO, "%s cannot be written: %s; %s", path, strerror(errno),
                            toile_io_advice(errno));
        toile_export_file_drop(&obj->file);
    }
    return status;
}

static toile_status close_obj(toile_export *job, obj_file *obj, toile_status status) {
    errno = 0;
    bool whole = fflush(obj->stream) == 0 && !ferror(obj->stream) && fsync(fileno(obj->stream)) == 0;
    int failure = errno;
    whole = fclose(obj->stream) == 0 && whole;
    if (status >= 0 && !whole)
        status = toile_fail(&job->error, TOILE_IO, "%s cannot be written: %s; %s", obj->file.path,
                            strerror(failure ? failure : EIO), toile_io_advice(failure));
    if (status >= 0)
        status = toile_export_file_keep(&obj->file, &job->error);
    toile_export_file_drop(&obj->file);
    return status;
}

/* Spaces end a name in OBJ. */
static void print_name(FILE *file, const char *key, const char *name) {
    fprintf(file, "%s ", key);
    for (; *name; name++)
        fputc(*name == ' ' || *name == '\t' || *name == '\n' || *name == '\r' ? '_' : *name, file);
    fputc('\n', file);
}

static void print_head(const toile_export *job, FILE *file, const char *what, const char *name, int frame) {
    fprintf(file, "# Toile %s, %s", toile_version(), what);
    for (; *name; name++)
        fputc(*name == '\n' || *name == '\r' ? ' ' : *name, file);
    fprintf(file, ", frame %d, ", frame);
    if (job->scale == 1)
        fprintf(file, "metres");
    else
        fprintf(file, "metres times %.9g", job->scale);
    fprintf(file, ", %s up\n", job->up == TOILE_UP_Y ? "Y" : "Z");
}

static void print_vertex(const toile_export *job, FILE *file, double x, double y, double z) {
    double p[3];
    toile_export_place(job, (const double[3]){x, y, z}, p);
    fprintf(file, "v %.9g %.9g %.9g\n", p[0], p[1], p[2]);
}

static void print_garment(const toile_export *job, FILE *file, const toile_garment_view *garment,
                          const float *positions, int vertex_base, int uv_base) {
    print_name(file, "o", garment->name);
    for (int i = 0; i < garment->vertex_count; i++) {
        const float *p = positions + 3 * (size_t)i;
        print_vertex(job, file, (double)p[0], (double)p[1], (double)p[2]);
    }
    for (int i = 0; i < 3 * garment->triangle_count; i++)
        fprintf(file, "vt %.9g %.9g\n", (double)garment->corner_uv[2 * i],
                (double)garment->corner_uv[2 * i + 1]);
    for (int p = 0; p < garment->panel_count; p++) {
        print_name(file, "g", garment->panel_names[p]);
        for (int t = 0; t < garment->triangle_count; t++) {
            const int *v = garment->triangles + 3 * (size_t)t;
            if (garment->triangle_panels[t] == p)
                fprintf(file, "f %d/%d %d/%d %d/%d\n", vertex_base + v[0] + 1, uv_base + 3 * t + 1,
                        vertex_base + v[1] + 1, uv_base + 3 * t + 2, vertex_base + v[2] + 1,
                        uv_base + 3 * t + 3);
        }
    }
}

static toile_status write_garments(toile_export *job, int frame) {
    const toile_cache_header *header = toile_cache_get_header(job->cache);
    obj_file obj;
    toile_status status = open_obj(job, "", frame, &obj);
    if (status < 0)
        return status;
    print_head(job, obj.stream, "scene ", header->scene_name, frame);
    int vertex_base = 0, uv_base = 0;
    for (int i = 0; i < job->garment_count && status >= 0; i++) {
        const toile_garment_view *garment = &header->garments[job->garments[i]];
        status = toile_export_read(job, frame, job->garments[i], job->positions, NULL);
        if (status >= 0)
            print_garment(job, obj.stream, garment, job->positions, vertex_base, uv_base);
        vertex_base += garment->vertex_count;
        uv_base += 3 * garment->triangle_count;
    }
    return close_obj(job, &obj, status);
}

static toile_status write_colliders(toile_export *job, int frame) {
    obj_file obj;
    toile_status status = open_obj(job, "_collider", frame, &obj);
    if (status < 0)
        return status;
    print_head(job, obj.stream, "colliders", "", frame);
    int base = 1;
    for (int c = 0; c < toile_scene_collider_count(job->scene) && status >= 0; c++) {
        int vertices, faces;
        const double *positions;
        const int *triangles;
        status =
            toile_scene_collider_mesh(job->scene, c, &vertices, &positions, &faces, &triangles, &job->error);
        if (status < 0)
            break;
        print_name(obj.stream, "g", toile_scene_collider_name(job->scene, c));
        for (int i = 0; i < vertices; i++)
            print_vertex(job, obj.stream, positions[3 * i], positions[3 * i + 1], positions[3 * i + 2]);
        for (int t = 0; t < faces; t++)
            fprintf(obj.stream, "f %d %d %d\n", base + triangles[3 * t], base + triangles[3 * t + 1],
                    base + triangles[3 * t + 2]);
        base += vertices;
    }
    return close_obj(job, &obj, status);
}

static toile_status begin(toile_export *job, void **state) {
    (void)job, (void)state;
    return TOILE_OK;
}

static toile_status write_frame(toile_export *job, void *state, int frame) {
    (void)state;
    toile_status status = write_garments(job, frame);
    return status >= 0 && job->scene ? write_colliders(job, frame) : status;
}

static toile_status end(toile_export *job, void *state, bool keep) {
    (void)job, (void)state, (void)keep;
    return TOILE_OK;
}

const toile_export_format toile_export_obj = {
    ".obj", "OBJ, a file per frame", TOILE_UP_Z, true, true, begin, write_frame, end};
