/* A depth buffer with twice as many samples as pixels in each direction, smooth normals, one lamp with a
 * shadow map (Williams 1978), light from the sky. Cloth is seen from both sides: a normal is turned towards
 * the viewer. */
#include "picture.h"

#include "vec3.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 2, SHADOW = 1024 };
static const double LAMP[3] = {-0.45, -0.6, 0.66}; /* towards it, length 1 */

typedef struct corner {
    double position[3], normal[3];
} corner;

struct toile_picture {
    toile_memory *memory;
    int size; /* pixels; all else counts samples */
    corner *corners;
    int *triangles;  /* (x 3) */
    double *colours; /* per triangle, (x 3) */
    size_t corner_count, corner_room, triangle_count, triangle_room;
    float *depth;  /* inverse distance, (samples) */
    float *shadow; /* distance along the lamp's ray, (SHADOW x SHADOW) */
    float *light;  /* linear colour, (samples x 3) */
    double lamp_axes[3][3], lamp_low[2], lamp_scale;
};

/* ---- meshes ---- */

toile_status toile_picture_create(toile_memory *memory, int size, toile_picture **result,
                                  toile_error *error) {
    toile_picture *p = *result = toile_alloc(memory, 1, sizeof *p);
    size_t samples = (size_t)(SAMPLES * size) * (size_t)(SAMPLES * size);
    if (p)
        *p = (toile_picture){.memory = memory,
                             .size = size,
                             .depth = toile_alloc(memory, samples, sizeof(float)),
                             .light = toile_alloc(memory, 3 * samples, sizeof(float)),
                             .shadow = toile_alloc(memory, (size_t)SHADOW * SHADOW, sizeof(float))};
    if (p && p->depth && p->light && p->shadow)
        return TOILE_OK;
    toile_picture_free(p);
    *result = NULL;
    return toile_fail_memory(error, "a picture");
}

void toile_picture_free(toile_picture *p) {
    if (!p)
        return;
    toile_memory *memory = p->memory;
    toile_free(memory, p->corners);
    toile_free(memory, p->triangles);
    toile_free(memory, p->colours);
    toile_free(memory, p->depth);
    toile_free(memory, p->light);
    toile_free(memory, p->shadow);
    toile_free(memory, p);
}

void toile_picture_clear(toile_picture *p) {
    p->corner_count = p->triangle_count = 0;
}

static bool grow(toile_memory *memory, void *block, size_t used, size_t room, size_t wanted, size_t size) {
    void **at = block;
    void *grown = wanted > room || !*at ? toile_grow(memory, *at, used, wanted, size) : *at;
    if (!grown)
        return false;
    *at = grown;
    return true;
}

static toile_status make_room(toile_picture *p, size_t corners, size_t triangles, toile_error *error) {
    size_t c = p->corner_count + corners, t = p->triangle_count + triangles;
    if (!grow(p->memory, &p->corners, p->corner_count, p->corner_room, c, sizeof *p->corners) ||
        !grow(p->memory, &p->triangles, 3 * p->triangle_count, 3 * p->triangle_room, 3 * t,
              sizeof *p->triangles) ||
        !grow(p->memory, &p->colours, 3 * p->triangle_count, 3 * p->triangle_room, 3 * t, sizeof *p->colours))
        return toile_fail_memory(error, "a picture");
    p->corner_room = c > p->corner_room ? c : p->corner_room;
    p->triangle_room = t > p->triangle_room ? t : p->triangle_room;
    return TOILE_OK;
}

static bool finite_triangle(const double *positions, const int *triangle, int vertex_count) {
    for (int k = 0; k < 3; k++) {
        if (triangle[k] < 0 || triangle[k] >= vertex_count)
            return false;
        for (int i = 0; i < 3; i++)
            if (!(fabs(positions[3 * (size_t)triangle[k] + (size_t)i]) < 1e9))
                return false;
    }
    return true;
}

toile_status toile_picture_add(toile_picture *p, int vertex_count, const double *positions,
                               int triangle_count, const int *triangles, const double colour[3],
                               toile_error *error) {
    toile_status status = make_room(p, (size_t)vertex_count, (size_t)triangle_count, error);
    if (status < 0)
        return status;
    corner *corners = p->corners + p->corner_count;
    for (int v = 0; v < vertex_count; v++) {
        corners[v] = (corner){0};
        memcpy(corners[v].position, positions + 3 * (size_t)v, sizeof corners[v].position);
    }
    for (int t = 0; t < triangle_count; t++) {
        const int *triangle = triangles + 3 * (size_t)t;
        if (!finite_triangle(positions, triangle, vertex_count))
            continue;
        double a[3], b[3], n[3];
        const double *x = corners[triangle[0]].position;
        for (int i = 0; i < 3; i++) {
            a[i] = corners[triangle[1]].position[i] - x[i];
            b[i] = corners[triangle[2]].position[i] - x[i];
        }
        n[0] = a[1] * b[2] - a[2] * b[1];
        n[1] = a[2] * b[0] - a[0] * b[2];
        n[2] = a[0] * b[1] - a[1] * b[0];
        for (int k = 0; k < 3; k++) {
            for (int i = 0; i < 3; i++)
                corners[triangle[k]].normal[i] += n[i]; /* weighted by area */
            p->triangles[3 * p->triangle_count + (size_t)k] = (int)p->corner_count + triangle[k];
        }
        memcpy(p->colours + 3 * p->triangle_count, colour, 3 * sizeof(double));
        p->triangle_count++;
    }
    p->corner_count += (size_t)vertex_count;
    return TOILE_OK;
}

static void normalise(double *a) {
    double length = sqrt(dot(a, a));
    for (int i = 0; i < 3 && length > 0; i++)
        a[i] /= length;
}

/* ---- cameras ---- */

static toile_camera turned_camera(void) {
    toile_camera camera = {.forward = {-0.42, 0.84, -0.34}, .focal = 3.2};
    const double upward[3] = {0, 0, 1};
    normalise(camera.forward);
    cross(camera.forward, upward, camera.right);
    normalise(camera.right);
    cross(camera.right, camera.forward, camera.up);
    return camera;
}

void toile_camera_see(const double point[3], double seen[3]) {
    toile_camera camera = turned_camera();
    seen[0] = dot(point, camera.right);
    seen[1] = dot(point, camera.up);
    seen[2] = dot(point, camera.forward);
}

toile_camera toile_camera_to_fit(const double low[3], const double high[3]) {
    toile_camera camera = turned_camera();
    double half = fmax(high[0] - low[0], high[1] - low[1]) / 2, centre[3];
    for (int i = 0; i < 3; i++)
        centre[i] = (low[i] + high[i]) / 2;
    /* The front of the box is what reaches farthest to the sides. */
    double away = low[2] - fmax(1e-3, 1.06 * camera.focal * half);
    for (int i = 0; i < 3; i++)
        camera.eye[i] = centre[0] * camera.right[i] + centre[1] * camera.up[i] + away * camera.forward[i];
    return camera;
}

/* ---- triangles to samples ---- */

/* Calls `paint` for every sample of a triangle with its weights. a, b, c: places in samples, x and y. */
typedef struct raster {
    int width, height;
    void *user;
    void (*paint)(void *user, int x, int y, const double weights[3]);
} raster;

static void fill(const raster *r, const double a[2], const double b[2], const double c[2]) {
    double area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    if (!(fabs(area) > 1e-12) || !isfinite(area))
        return;
    double left = fmin(a[0], fmin(b[0], c[0])), right = fmax(a[0], fmax(b[0], c[0]));
    double top = fmin(a[1], fmin(b[1], c[1])), bottom = fmax(a[1], fmax(b[1], c[1]));
    if (right < 0 || bottom < 0 || left >= r->width || top >= r->height)
        return;
    int x0 = left > 0 ? (int)left : 0, x1 = right < r->width - 1 ? (int)right : r->width - 1;
    int y0 = top > 0 ? (int)top : 0, y1 = bottom < r->height - 1 ? (int)bottom : r->height - 1;
    for (int y = y0; y <= y1; y++)
        for (int x = x0; x <= x1; x++) {
            double px = x + 0.5, py = y + 0.5, w[3];
            w[0] = ((b[0] - px) * (c[1] - py) - (b[1] - py) * (c[0] - px)) / area;
            w[1] = ((c[0] - px) * (a[1] - py) - (c[1] - py) * (a[0] - px)) / area;
            w[2] = 1 - w[0] - w[1];
            if (w[0] >= 0 && w[1] >= 0 && w[2] >= 0)
                r->paint(r->user, x, y, w);
        }
}

/* ---- shadows ---- */

static void to_lamp(const toile_picture *p, const double position[3], double out[3]) {
    for (int i = 0; i < 2; i++)
        out[i] = (dot(position, p->lamp_axes[i]) - p->lamp_low[i]) * p->lamp_scale;
    out[2] = dot(position, p->lamp_axes[2]);
}

typedef struct shade_job {
    toile_picture *p;
    double depths[3];
} shade_job;

static void paint_shadow(void *user, int x, int y, const double w[3]) {
    shade_job *job = user;
    float *at = &job->p->shadow[(size_t)y * SHADOW + (size_t)x];
    float depth = (float)(w[0] * job->depths[0] + w[1] * job->depths[1] + w[2] * job->depths[2]);
    if (depth > *at)
        *at = depth;
}

static void draw_shadows(toile_picture *p) {
    const double upward[3] = {0, 0, 1};
    double low[2] = {1e30, 1e30}, high[2] = {-1e30, -1e30};
    memcpy(p->lamp_axes[2], LAMP, sizeof LAMP);
    normalise(p->lamp_axes[2]);
    cross(upward, p->lamp_axes[2], p->lamp_axes[0]);
    normalise(p->lamp_axes[0]);
    cross(p->lamp_axes[2], p->lamp_axes[0], p->lamp_axes[1]);
    for (size_t i = 0; i < 3 * p->triangle_count; i++)
        for (int k = 0; k < 2; k++) {
            double along = dot(p->corners[p->triangles[i]].position, p->lamp_axes[k]);
            low[k] = fmin(low[k], along);
            high[k] = fmax(high[k], along);
        }
    memcpy(p->lamp_low, low, sizeof low);
    p->lamp_scale = SHADOW / (fmax(high[0] - low[0], high[1] - low[1]) + 1e-9);
    for (size_t i = 0; i < (size_t)SHADOW * SHADOW; i++)
        p->shadow[i] = -1e30f;
    shade_job job = {.p = p};
    raster r = {SHADOW, SHADOW, &job, paint_shadow};
    for (size_t t = 0; t < p->triangle_count; t++) {
        double at[3][3];
        for (int k = 0; k < 3; k++) {
            to_lamp(p, p->corners[p->triangles[3 * t + (size_t)k]].position, at[k]);
            job.depths[k] = at[k][2];
        }
        fill(&r, at[0], at[1], at[2]);
    }
}

/* Share of the lamp's light at a place: the mean over a few samples, so that edges are soft. */
static double lit(const toile_picture *p, const double position[3], const double normal[3]) {
    double texel = 1 / p->lamp_scale, at[3], moved[3];
    int seen = 0, count = 0;
    for (int i = 0; i < 3; i++)
        moved[i] = position[i] + 4 * texel * normal[i];
    to_lamp(p, moved, at);
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int x = (int)at[0] + dx, y = (int)at[1] + dy;
            bool outside = x < 0 || y < 0 || x >= SHADOW || y >= SHADOW;
            seen += outside || p->shadow[(size_t)y * SHADOW + (size_t)x] <= at[2] + 2 * texel;
            count++;
        }
    return (double)seen / count;
}

/* ---- light ---- */

typedef struct draw_job {
    toile_picture *p;
    const toile_camera *camera;
    const corner *corners[3];
    double inverse[3]; /* 1 / distance of the corners */
    const double *colour;
} draw_job;

static void paint_sample(void *user, int x, int y, const double w[3]) {
    draw_job *job = user;
    toile_picture *p = job->p;
    size_t at = (size_t)y * (size_t)(SAMPLES * p->size) + (size_t)x;
    double inverse = w[0] * job->inverse[0] + w[1] * job->inverse[1] + w[2] * job->inverse[2];
    if (inverse <= p->depth[at])
        return;
    p->depth[at] = (float)inverse;
    double position[3] = {0}, normal[3] = {0}, view[3];
    for (int k = 0; k < 3; k++) {
        double share = w[k] * job->inverse[k] / inverse; /* straight in space, not on the picture */
        for (int i = 0; i < 3; i++) {
            position[i] += share * job->corners[k]->position[i];
            normal[i] += share * job->corners[k]->normal[i];
        }
    }
    for (int i = 0; i < 3; i++)
        view[i] = job->camera->eye[i] - position[i];
    normalise(view);
    normalise(normal);
    double facing = dot(normal, view), inside = facing < 0 ? 0.8 : 1;
    for (int i = 0; i < 3 && facing < 0; i++)
        normal[i] = -normal[i];
    double lamp = fmax(0, dot(normal, p->lamp_axes[2]));
    double sky = 0.5 + 0.5 * normal[2], rim = pow(1 - fabs(facing), 4);
    double light = 0.95 * lamp * (lamp > 0 ? lit(p, position, normal) : 0) + 0.22 + 0.3 * sky;
    for (int i = 0; i < 3; i++)
        p->light[3 * at + (size_t)i] = (float)(inside * light * job->colour[i] + 0.06 * rim);
}

static void draw_triangles(toile_picture *p, const toile_camera *camera) {
    double half = SAMPLES * p->size / 2.0;
    draw_job job = {.p = p, .camera = camera};
    raster r = {SAMPLES * p->size, SAMPLES * p->size, &job, paint_sample};
    for (size_t t = 0; t < p->triangle_count; t++) {
        double at[3][2], nearest = 1e30;
        for (int k = 0; k < 3; k++) {
            const corner *c = job.corners[k] = &p->corners[p->triangles[3 * t + (size_t)k]];
            double d[3] = {c->position[0] - camera->eye[0], c->position[1] - camera->eye[1],
                           c->position[2] - camera->eye[2]};
            double away = dot(d, camera->forward);
            nearest = fmin(nearest, away);
            job.inverse[k] = 1 / away;
            at[k][0] = half + half * camera->focal * dot(d, camera->right) / away;
            at[k][1] = half - half * camera->focal * dot(d, camera->up) / away;
        }
        job.colour = p->colours + 3 * t;
        if (nearest > 1e-6) /* a triangle that reaches behind the eye is not of the box that was fitted */
            fill(&r, at[0], at[1], at[2]);
    }
}

/* ---- the picture ---- */

static uint8_t to_srgb(double light) {
    double v = light <= 0.0031308 ? 12.92 * light : 1.055 * pow(fmin(1, light), 1 / 2.4) - 0.055;
    return (uint8_t)lrint(255 * fmin(1, fmax(0, v)));
}

toile_status toile_picture_draw(toile_picture *p, const toile_camera *camera, toile_image *image,
                                toile_error *error) {
    int samples = SAMPLES * p->size;
    for (int y = 0; y < samples; y++) {
        float ground = (float)(0.78 - 0.22 * y / samples); /* lighter above */
        for (int x = 0; x < samples; x++) {
            size_t at = (size_t)y * (size_t)samples + (size_t)x;
            p->depth[at] = 0;
            p->light[3 * at] = p->light[3 * at + 1] = p->light[3 * at + 2] = ground;
        }
    }
    draw_shadows(p);
    draw_triangles(p, camera);
    toile_status status = toile_image_create(p->memory, p->size, p->size, 0, image, error);
    for (int y = 0; y < p->size && status >= 0; y++)
        for (int x = 0; x < p->size; x++)
            for (int i = 0; i < 3; i++) {
                double sum = 0;
                for (int s = 0; s < SAMPLES * SAMPLES; s++)
                    sum += p->light[3 * ((size_t)(SAMPLES * y + s / SAMPLES) * (size_t)samples +
                                         (size_t)(SAMPLES * x + s % SAMPLES)) +
                                    (size_t)i];
                image->rgb[3 * ((size_t)y * (size_t)p->size + (size_t)x) + (size_t)i] =
                    to_srgb(sum / (SAMPLES * SAMPLES));
            }
    return status;
}
