/* The geometry of the main sample: a walking, turning figure and the skirt it wears; and the sleeve of
 * arm_bend.
 *
 *   figure OUTDIR [--frames N] [--resolution K]    OUTDIR/skirt/figure_0001.obj ..., skirt/skirt.obj, arm_bend/sleeve.obj
 *   figure --check [--frames N] [--resolution K]   tests all of it and says what it found; exit 1 if anything is wrong
 *   figure --scene FILE                            the scene samples/scenes/skirt.json, waistband keys included
 *   figure --sleeve-scene FILE                     the scene samples/scenes/arm_bend.json
 *
 * Units are metres, z is up, the figure looks along -y and stands on z = 0. --resolution is the number of
 * particles around the waist, 96 if not given; the sleeve has 5 around for every 12 of these.
 *
 * Figure: a signed field of lofted and round shapes, blended smoothly, is polygonised once in the rest pose
 * (dual "surface nets": one vertex per cell that the surface passes, then relaxed along the surface). The
 * mesh is bound to 14 bones with smooth weights. Feet are planted and legs follow by two-bone inverse
 * kinematics, so they never slide.
 *
 * Skirt: a general cone over the body's waist line. A cone is developable, so its panels are flat pieces of
 * cloth: every vertex lies on a straight generator through the apex, the strip between two generators is
 * plane, and laying the strips side by side gives the pattern without any strain (checked to 1e-9 m). Six
 * gores share seam vertices; each has its own material coordinates, u (warp) down its middle.
 */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PI           3.14159265358979323846
#define RAD          (PI / 180.0)
#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

typedef struct {
    double x, y, z;
} vec;
typedef struct {
    double m[3][3];
    vec t;
} frame; /* p -> m p + t */

typedef struct {
    int vertex_count, triangle_count;
    vec *positions;
    int (*triangles)[3];
} mesh;

static void *need(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fprintf(stderr, "figure: out of memory\n");
        exit(1);
    }
    return memory;
}

/* ---- vectors and rigid motions ---- */

static vec v3(double x, double y, double z) { return (vec){x, y, z}; }
static vec add(vec a, vec b) { return v3(a.x + b.x, a.y + b.y, a.z + b.z); }
static vec sub(vec a, vec b) { return v3(a.x - b.x, a.y - b.y, a.z - b.z); }
static vec mul(vec a, double s) { return v3(a.x * s, a.y * s, a.z * s); }
static double dot(vec a, vec b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
static vec cross(vec a, vec b) {
    return v3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x);
}
static double length(vec a) { return sqrt(dot(a, a)); }
static vec unit(vec a) { return mul(a, 1.0 / fmax(length(a), 1e-300)); }
static double clamp(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
static double lerp(double a, double b, double t) { return a + (b - a) * t; }

static double smooth(double low, double high, double x) {
    double t = clamp((x - low) / (high - low), 0, 1);
    return t * t * (3 - 2 * t);
}

static vec turn(const frame *f, vec p) {
    return v3(f->m[0][0] * p.x + f->m[0][1] * p.y + f->m[0][2] * p.z,
              f->m[1][0] * p.x + f->m[1][1] * p.y + f->m[1][2] * p.z,
              f->m[2][0] * p.x + f->m[2][1] * p.y + f->m[2][2] * p.z);
}

static vec apply(const frame *f, vec p) { return add(turn(f, p), f->t); }

static frame compose(const frame *a, const frame *b) {
    frame c;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c.m[i][j] = a->m[i][0] * b->m[0][j] + a->m[i][1] * b->m[1][j] + a->m[i][2] * b->m[2][j];
    c.t = apply(a, b->t);
    return c;
}

static frame inverse(const frame *a) {
    frame c;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            c.m[i][j] = a->m[j][i];
    c.t = v3(0, 0, 0);
    c.t = mul(turn(&c, a->t), -1);
    return c;
}

/* Degrees about x, then y, then z (Blender's XYZ), around a point, then moved. */
static frame rotation(vec degrees, vec about, vec moved) {
    double a = degrees.x * RAD, b = degrees.y * RAD, c = degrees.z * RAD;
    double ca = cos(a), sa = sin(a), cb = cos(b), sb = sin(b), cc = cos(c), sc = sin(c);
    frame f = {{{cc * cb, cc * sb * sa - sc * ca, cc * sb * ca + sc * sa},
                {sc * cb, sc * sb * sa + cc * ca, sc * sb * ca - cc * sa},
                {-sb, cb * sa, cb * ca}},
               {0, 0, 0}};
    f.t = add(sub(about, turn(&f, about)), moved);
    return f;
}

/* Origin, z along a bone, x along its hinge. */
static frame bone_frame(vec origin, vec along, vec hinge) {
    vec z = unit(along), y = unit(cross(z, hinge)), x = cross(y, z);
    return (frame){{{x.x, y.x, z.x}, {x.y, y.y, z.y}, {x.z, y.z, z.z}}, origin};
}

/* ---- the body as a field: negative inside ---- */

/* Cross-sections of an upright part: ellipses with half axes a (x) and b (y) around (x, y) at heights z. */
typedef struct {
    double z, x, y, a, b;
} section;

static const section TORSO[] = {
    {0.775, 0, 0.010, 0.060, 0.045}, {0.800, 0, 0.012, 0.130, 0.088},  {0.830, 0, 0.012, 0.160, 0.104},
    {0.870, 0, 0.011, 0.172, 0.110}, {0.920, 0, 0.009, 0.166, 0.106},  {0.980, 0, 0.004, 0.143, 0.096},
    {1.040, 0, 0.000, 0.123, 0.086}, {1.080, 0, -0.002, 0.116, 0.082}, {1.140, 0, -0.001, 0.122, 0.086},
    {1.200, 0, 0.002, 0.132, 0.093}, {1.260, 0, 0.006, 0.140, 0.096},  {1.320, 0, 0.011, 0.145, 0.090},
    {1.370, 0, 0.015, 0.136, 0.074}, {1.400, 0, 0.017, 0.112, 0.062},  {1.425, 0, 0.016, 0.078, 0.053},
    {1.450, 0, 0.013, 0.052, 0.046},
};

static const section LEG[] = {
    /* the figure's left, x > 0 */
    {0.000, 0.090, 0.012, 0.029, 0.036},  {0.050, 0.090, 0.012, 0.029, 0.036},
    {0.090, 0.091, 0.010, 0.029, 0.033},  {0.160, 0.092, 0.010, 0.033, 0.036},
    {0.250, 0.093, 0.015, 0.044, 0.047},  {0.340, 0.094, 0.016, 0.050, 0.053},
    {0.410, 0.094, 0.008, 0.046, 0.049},  {0.460, 0.094, 0.000, 0.048, 0.052},
    {0.510, 0.094, -0.002, 0.051, 0.055}, {0.580, 0.094, 0.000, 0.059, 0.064},
    {0.660, 0.095, 0.002, 0.068, 0.074},  {0.760, 0.094, 0.004, 0.078, 0.084},
    {0.830, 0.090, 0.006, 0.081, 0.089},  {0.890, 0.084, 0.008, 0.074, 0.084},
    {0.950, 0.074, 0.008, 0.056, 0.068},  {1.000, 0.060, 0.006, 0.030, 0.040},
};

/* Monotone cubic interpolation of one column (Fritsch-Carlson slopes, so a profile never overshoots). */
static double column(const section *table, int count, int k, double z) {
    const double *t = &table[0].z;
    int stride = (int)(sizeof(section) / sizeof(double)), i = 0;
    z = clamp(z, t[0], t[(count - 1) * stride]);
    while (i + 2 < count && z > t[(i + 1) * stride])
        i++;
    double slope[2], h = t[(i + 1) * stride] - t[i * stride];
    for (int e = 0; e < 2; e++) {
        int at = i + e;
        if (at == 0 || at == count - 1) {
            slope[e] = 0;
            continue;
        }
        double h0 = t[at * stride] - t[(at - 1) * stride], h1 = t[(at + 1) * stride] - t[at * stride];
        double d0 = (t[at * stride + k] - t[(at - 1) * stride + k]) / h0;
        double d1 = (t[(at + 1) * stride + k] - t[at * stride + k]) / h1;
        slope[e] = d0 * d1 <= 0 ? 0 : 3 * (h0 + h1) / ((2 * h1 + h0) / d0 + (h1 + 2 * h0) / d1);
    }
    double s = (z - t[i * stride]) / h, s2 = s * s, s3 = s2 * s;
    return t[i * stride + k] * (2 * s3 - 3 * s2 + 1) + t[(i + 1) * stride + k] * (3 * s2 - 2 * s3) +
           h * (slope[0] * (s3 - 2 * s2 + s) + slope[1] * (s3 - s2));
}

static double ellipse(double x, double y, double a, double b) {
    double g = sqrt(x * x / (a * a) + y * y / (b * b)), n = hypot(x / (a * a), y / (b * b));
    return n < 1e-12 ? -fmin(a, b) : g * (g - 1) / n;
}

static double loft(const section *table, int count, vec p) {
    double d = ellipse(p.x - column(table, count, 1, p.z), p.y - column(table, count, 2, p.z),
                       column(table, count, 3, p.z), column(table, count, 4, p.z));
    return fmax(d, fmax(table[0].z - p.z, p.z - table[count - 1].z));
}

static double ellipsoid(vec p, vec centre, vec radii) {
    vec q = sub(p, centre), s = v3(q.x / radii.x, q.y / radii.y, q.z / radii.z);
    double g = length(s), n = length(v3(s.x / radii.x, s.y / radii.y, s.z / radii.z));
    return n < 1e-12 ? -radii.x : g * (g - 1) / n;
}

/* A rod that goes from radius ra to radius rb. */
static double rod(vec p, vec a, vec b, double ra, double rb) {
    vec d = sub(b, a);
    double t = clamp(dot(sub(p, a), d) / dot(d, d), 0, 1);
    return length(sub(p, add(a, mul(d, t)))) - lerp(ra, rb, t);
}

/* Union that is rounded within a distance k. */
static double blend(double a, double b, double k) {
    double h = fmax(k - fabs(a - b), 0) / k;
    return fmin(a, b) - h * h * k * 0.25;
}

static const vec SHOULDER = {0.156, 0.014, 1.366}, ELBOW = {0.318, 0.022, 1.150},
                 WRIST = {0.412, -0.082, 0.962};
static const vec HIP = {0.088, 0.006, 0.895}, KNEE = {0.094, -0.004, 0.468}, ANKLE = {0.091, 0.012, 0.072};
static const vec NECK = {0, 0.012, 1.43}, WAIST = {0, 0, 1.10}, PELVIS = {0, 0.005, 0.930};

static double trunk_field(vec p) {
    vec m = v3(fabs(p.x), p.y, p.z);
    double d = loft(TORSO, COUNT(TORSO), p);
    d = blend(d, ellipsoid(m, v3(0.074, 0.056, 0.862), v3(0.084, 0.076, 0.086)), 0.05);
    d = blend(d, ellipsoid(m, v3(0.064, -0.060, 1.226), v3(0.062, 0.060, 0.064)), 0.05);
    d = blend(d, rod(m, v3(0.03, 0.016, 1.405), SHOULDER, 0.036, 0.043), 0.05);
    d = blend(d, rod(p, v3(0, 0.014, 1.39), v3(0, 0.000, 1.52), 0.048, 0.044), 0.05);
    double head = ellipsoid(p, v3(0, -0.002, 1.600), v3(0.073, 0.090, 0.100));
    head = blend(head, ellipsoid(p, v3(0, -0.040, 1.545), v3(0.052, 0.050, 0.064)), 0.04);
    head = blend(head, rod(p, v3(0, -0.084, 1.600), v3(0, -0.094, 1.570), 0.008, 0.012), 0.025);
    head = blend(head, ellipsoid(p, v3(0, 0.014, 1.616), v3(0.080, 0.092, 0.092)), 0.012); /* hair */
    head = blend(head, ellipsoid(p, v3(0, 0.106, 1.660), v3(0.048, 0.046, 0.046)), 0.02);  /* bun */
    return blend(d, head, 0.02);
}

static double arm_field(vec p) { /* x > 0 */
    vec d = unit(sub(WRIST, ELBOW)), side = unit(cross(d, v3(1, 0, 0.3))), thin = cross(side, d);
    double f = rod(p, SHOULDER, ELBOW, 0.042, 0.034);
    f = blend(f, rod(p, add(SHOULDER, v3(0.014, 0, -0.03)), add(SHOULDER, v3(0.07, 0, -0.09)), 0.042, 0.038),
              0.03);
    f = blend(f, rod(p, ELBOW, WRIST, 0.034, 0.023), 0.015);
    vec q = sub(p, add(WRIST, mul(d, 0.075)));
    f = blend(f, ellipsoid(v3(dot(q, side), dot(q, thin), dot(q, d)), v3(0, 0, 0), v3(0.034, 0.020, 0.084)),
              0.03);
    return f;
}

static double leg_field(vec p) { /* x > 0 */
    double f = loft(LEG, COUNT(LEG), p);
    double foot = rod(p, v3(0.090, 0.045, 0.034), v3(0.084, -0.110, 0.022), 0.032, 0.026);
    foot = blend(foot, rod(p, v3(0.091, 0.045, 0.034), v3(0.110, -0.088, 0.020), 0.030, 0.022), 0.02);
    foot = blend(foot, rod(p, v3(0.086, -0.090, 0.020), v3(0.090, -0.148, 0.014), 0.026, 0.015), 0.03);
    foot = blend(foot, rod(p, v3(0.091, 0.010, 0.075), v3(0.091, -0.060, 0.035), 0.026, 0.026), 0.03);
    f = blend(f, foot, 0.03);
    return -blend(-f, p.z - 0.003, 0.008); /* flat soles */
}

static double body_field(vec p) {
    vec m = v3(fabs(p.x), p.y, p.z), o = v3(-m.x, m.y, m.z);
    double trunk = trunk_field(p);
    double f = fmin(blend(trunk, leg_field(m), 0.045), blend(trunk, leg_field(o), 0.045));
    return blend(f, arm_field(m), 0.035);
}

static vec body_gradient(vec p) {
    const double e = 1e-4;
    return mul(v3(body_field(v3(p.x + e, p.y, p.z)) - body_field(v3(p.x - e, p.y, p.z)),
                  body_field(v3(p.x, p.y + e, p.z)) - body_field(v3(p.x, p.y - e, p.z)),
                  body_field(v3(p.x, p.y, p.z + e)) - body_field(v3(p.x, p.y, p.z - e))),
               0.5 / e);
}

static vec to_surface(vec p) {
    for (int i = 0; i < 4; i++) {
        vec g = body_gradient(p);
        double f = body_field(p), move = -f / fmax(dot(g, g), 0.05);
        p = add(p, mul(g, clamp(move, -0.02, 0.02)));
    }
    return p;
}

/* ---- polygonising ---- */

static void relax(mesh *m, int rounds) {
    int n = m->vertex_count;
    vec *sum = need((size_t)n, sizeof *sum);
    int *valence = need((size_t)n, sizeof *valence);
    for (int round = 0; round < rounds; round++) {
        memset(sum, 0, (size_t)n * sizeof *sum);
        memset(valence, 0, (size_t)n * sizeof *valence);
        for (int t = 0; t < m->triangle_count; t++)
            for (int c = 0; c < 3; c++) {
                int a = m->triangles[t][c], b = m->triangles[t][(c + 1) % 3];
                sum[a] = add(sum[a], m->positions[b]);
                valence[a]++;
            }
        for (int i = 0; i < n; i++) {
            vec p = m->positions[i], g = unit(body_gradient(p)), d = sub(mul(sum[i], 1.0 / valence[i]), p);
            d = sub(d, mul(g, dot(d, g)));
            m->positions[i] = to_surface(add(p, mul(d, 0.5)));
        }
    }
    free(sum);
    free(valence);
}

/* The two triangles of each quad are neighbours in the list: takes the shorter diagonal. */
static void shorter_diagonals(mesh *m) {
    for (int i = 0; i + 1 < m->triangle_count; i += 2) {
        int *t = m->triangles[i], *u = m->triangles[i + 1], q[4] = {t[0], t[1], t[2], u[2]};
        const vec *p = m->positions;
        int s = length(sub(p[q[0]], p[q[2]])) <= length(sub(p[q[1]], p[q[3]])) ? 0 : 1;
        t[0] = q[s], t[1] = q[s + 1], t[2] = q[s + 2];
        u[0] = q[s], u[1] = q[s + 2], u[2] = q[(s + 3) % 4];
    }
}

/* Surface nets on a grid that is mirror-symmetric in x; cells are taller than wide because the body is
 * upright. Where the surface grazes a grid plane the net can meet itself in an edge; another `shift` of the
 * grid avoids it. */
static mesh polygonise_at(double shift) {
    const double h = 0.0190, hz = 0.0245;
    const int nx = 62, ny = 25, nz = 74;
    const vec low = {-h * nx / 2, -h * (ny / 2 + shift), -(1.1 + 0.5 * shift) * hz};
    double *values = need((size_t)(nx + 1) * (size_t)(ny + 1) * (size_t)(nz + 1), sizeof *values);
    int *cells = need((size_t)nx * (size_t)ny * (size_t)nz, sizeof *cells);
#define VALUE(i, j, k) values[((k) * (ny + 1) + (j)) * (nx + 1) + (i)]
#define CELL(i, j, k)  cells[((k)*ny + (j)) * nx + (i)]
    for (int k = 0; k <= nz; k++)
        for (int j = 0; j <= ny; j++)
            for (int i = 0; i <= nx; i++)
                VALUE(i, j, k) = body_field(v3(low.x + h * i, low.y + h * j, low.z + hz * k));

    mesh m = {0, 0, need(40000, sizeof(vec)), need(80000, sizeof(int[3]))};
    for (int k = 0; k < nz; k++)
        for (int j = 0; j < ny; j++)
            for (int i = 0; i < nx; i++) {
                /* One vertex at the mean of the surface's crossings of the cell's edges. */
                vec sum = {0, 0, 0};
                int crossings = 0;
                for (int e = 0; e < 12; e++) {
                    int axis = e / 4, a = e & 1, b = e >> 1 & 1;
                    int p[3] = {axis == 0 ? 0 : a, axis == 1 ? 0 : axis == 0 ? a : b, axis == 2 ? 0 : b};
                    int q[3] = {p[0] + (axis == 0), p[1] + (axis == 1), p[2] + (axis == 2)};
                    double u = VALUE(i + p[0], j + p[1], k + p[2]), w = VALUE(i + q[0], j + q[1], k + q[2]);
                    if ((u < 0) == (w < 0))
                        continue;
                    double t = u / (u - w);
                    sum = add(sum, v3(lerp(p[0], q[0], t), lerp(p[1], q[1], t), lerp(p[2], q[2], t)));
                    crossings++;
                }
                CELL(i, j, k) = -1;
                if (!crossings)
                    continue;
                sum = mul(sum, 1.0 / crossings);
                CELL(i, j, k) = m.vertex_count;
                m.positions[m.vertex_count++] =
                    v3(low.x + h * (i + sum.x), low.y + h * (j + sum.y), low.z + hz * (k + sum.z));
            }

    /* One quad around each grid edge that the surface crosses, split in two. */
    for (int k = 1; k < nz; k++)
        for (int j = 1; j < ny; j++)
            for (int i = 1; i < nx; i++)
                for (int axis = 0; axis < 3; axis++) {
                    bool in = VALUE(i, j, k) < 0;
                    if (in == (VALUE(i + (axis == 0), j + (axis == 1), k + (axis == 2)) < 0))
                        continue;
                    int q[4];
                    for (int c = 0; c < 4; c++) {
                        int a = c == 0 || c == 3, b = c < 2, to = in ? c : (4 - c) % 4;
                        q[to] = axis == 0   ? CELL(i, j - a, k - b)
                                : axis == 1 ? CELL(i - b, j, k - a)
                                            : CELL(i - a, j - b, k);
                    }
                    for (int half = 0; half < 2; half++) {
                        int *t = m.triangles[m.triangle_count++];
                        t[0] = q[0], t[1] = q[1 + half], t[2] = q[2 + half];
                    }
                }
#undef VALUE
#undef CELL
    free(values);
    free(cells);
    return m;
}

/* ---- skeleton and motion ---- */

enum {
    HIPS,
    SPINE,
    CHEST,
    HEAD,
    THIGH,
    SHIN = THIGH + 2,
    FOOT = SHIN + 2,
    ARM = FOOT + 2,
    FOREARM = ARM + 2,
    BONES = FOREARM + 2
}; /* pairs: left (x > 0), then right */

static vec side_of(vec p, int side) { return v3(side ? -p.x : p.x, p.y, p.z); }

static void weights_of(vec p, double w[BONES]) {
    memset(w, 0, BONES * sizeof *w);
    double trunk = trunk_field(p);

    /* Arms against trunk: whichever shape is nearer, softly. */
    int side = p.x < 0;
    double arm = arm_field(side_of(p, side));
    double a =
        smooth(-0.015, 0.045, trunk - arm) * smooth(0.09, 0.15, fabs(p.x)) * (1 - smooth(0.03, 0.06, arm));
    vec elbow = side_of(ELBOW, side), along = unit(sub(side_of(WRIST, side), side_of(SHOULDER, side)));
    double fore = smooth(-0.045, 0.045, dot(sub(p, elbow), along));
    w[ARM + side] = a * (1 - fore);
    w[FOREARM + side] = a * fore;

    /* Legs below the hips, left and right softly parted at the crotch; knees; ankles. */
    double leg = (1 - a) * (1 - smooth(0.79, 0.965, p.z));
    double knee = 1 - smooth(0.405, 0.535, p.z), foot = 1 - smooth(0.055, 0.105, p.z);
    for (int s = 0; s < 2; s++) {
        double share = leg * (s ? 1 - smooth(-0.02, 0.02, p.x) : smooth(-0.02, 0.02, p.x));
        w[THIGH + s] = share * (1 - knee);
        w[SHIN + s] = share * knee * (1 - foot);
        w[FOOT + s] = share * foot;
    }

    /* The trunk from the hips up. */
    double rest = 1 - a - leg;
    double spine = smooth(1.055, 1.17, p.z), chest = smooth(1.12, 1.27, p.z), head = smooth(1.42, 1.51, p.z);
    w[HIPS] = rest * (1 - spine);
    w[SPINE] = rest * spine * (1 - chest);
    w[CHEST] = rest * spine * chest * (1 - head);
    w[HEAD] = rest * spine * chest * head;
}

typedef struct {
    double at, value;
} key;

/* Smooth curve through keys: cubic with slopes from the neighbours, level at the ends and at turning points.
 */
static double curve(const key *keys, int count, double at) {
    if (at <= keys[0].at)
        return keys[0].value;
    for (int i = 0; i + 1 < count; i++) {
        if (at > keys[i + 1].at)
            continue;
        double h = keys[i + 1].at - keys[i].at, s = (at - keys[i].at) / h, slope[2] = {0, 0};
        for (int e = 0; e < 2; e++) {
            int j = i + e;
            if (j == 0 || j == count - 1)
                continue;
            double d0 = (keys[j].value - keys[j - 1].value) / (keys[j].at - keys[j - 1].at);
            double d1 = (keys[j + 1].value - keys[j].value) / (keys[j + 1].at - keys[j].at);
            slope[e] = d0 * d1 <= 0 ? 0 : 2 * d0 * d1 / (d0 + d1);
        }
        double s2 = s * s, s3 = s2 * s;
        return keys[i].value * (2 * s3 - 3 * s2 + 1) + keys[i + 1].value * (3 * s2 - 2 * s3) +
               h * (slope[0] * (s3 - 2 * s2 + s) + slope[1] * (s3 - s2));
    }
    return keys[count - 1].value;
}
#define CURVE(at, ...) curve((const key[]){__VA_ARGS__}, COUNT(((const key[]){__VA_ARGS__})), at)

enum { FPS = 24, FRAMES = 84, SETTLE = 12 };
static const double STRIDE = 0.30;

/* Degrees and metres of the hips at a frame, about PELVIS: the waistband's motion as well as the body's. */
static void hips_at(double f, vec *degrees, vec *moved) {
    moved->x = CURVE(f, {12, 0}, {17, 0.022}, {24, 0.020}, {33, -0.024}, {41, -0.020}, {48, 0}, {56, 0.016},
                     {66, -0.018}, {75, 0.010}, {82, 0});
    moved->y = CURVE(f, {14, 0}, {29, -STRIDE * 0.5}, {46, -STRIDE}, {48, -STRIDE});
    moved->z = CURVE(f, {3, 0}, {12, -0.012}, {20, -0.016}, {28, -0.034}, {36, -0.014}, {43, -0.030},
                     {50, -0.016}, {56, -0.026}, {61, -0.016}, {66, -0.026}, {72, -0.014}, {82, -0.012});
    degrees->x = CURVE(f, {12, 0}, {28, 3}, {48, 0}, {80, 0});
    degrees->y =
        CURVE(f, {12, 0}, {19, -3}, {28, 1}, {36, 3.5}, {45, 0}, {56, -3.5}, {66, 4}, {75, -2}, {82, 0});
    degrees->z = CURVE(f, {12, 0}, {28, 9}, {44, -11}, {47, -12}, {56, 28}, {66, -30}, {75, 17}, {82, 0});
}

/* Ankle and pitch of a foot: planted, one step each in which it swings forward, planted again. */
static vec foot_at(double f, int side, double *pitch) {
    double begin = side ? 29 : 13, end = begin + 15, u = clamp((f - begin) / (end - begin), 0, 1);
    vec p = side_of(ANKLE, side);
    double heel =
        CURVE(f, {begin - 8, 0}, {begin, 14}, {begin + 4, 24}, {begin + 9, -4}, {end - 2, -9}, {end + 2, 0});
    *pitch = side || f > begin - 8 ? heel * (side ? 1 : 0.9) : 0;
    double roll = *pitch * RAD, toe = 0.11; /* with the foot on its toes the ankle rises */
    p.y -= STRIDE * smooth(0, 1, u) + (roll > 0 ? toe * (1 - cos(roll)) : 0);
    p.z += 0.055 * sin(PI * u) * sin(PI * u) + (roll > 0 ? toe * sin(roll) : 0);
    return p;
}

static void pose(double f, frame bones[BONES], frame *hips_frame) {
    vec degrees, moved;
    hips_at(f, &degrees, &moved);
    frame hips = rotation(degrees, PELVIS, moved);
    bones[HIPS] = hips;
    if (hips_frame)
        *hips_frame = hips;

    /* The chest turns against the hips and stays upright, the spine is half way, the head looks ahead. */
    double back = CURVE(f, {12, 0}, {30, -8}, {46, 10}, {48, 10}, {59, -20}, {69, 20}, {77, -9}, {83, 0});
    vec lean = v3(-degrees.x - 1.0 * smooth(3, 12, f), -degrees.y * 1.3, back - degrees.z);
    frame chest = rotation(lean, WAIST, v3(0, 0, 0)), spine = rotation(mul(lean, 0.5), WAIST, v3(0, 0, 0));
    bones[SPINE] = compose(&hips, &spine);
    bones[CHEST] = compose(&hips, &chest);
    frame head = rotation(v3(0, 0, -0.7 * back), NECK, v3(0, 0, 0));
    bones[HEAD] = compose(&bones[CHEST], &head);

    for (int s = 0; s < 2; s++) {
        /* Two-bone inverse kinematics: the knee lies in the plane of hip, ankle and the way the knee points.
         */
        double pitch, sign = s ? -1 : 1;
        vec rest[3] = {side_of(HIP, s), side_of(KNEE, s), side_of(ANKLE, s)};
        vec hip = apply(&hips, rest[0]), ankle = foot_at(f, s, &pitch), reach = sub(ankle, hip);
        double l1 = length(sub(rest[1], rest[0])), l2 = length(sub(rest[2], rest[1]));
        double r = fmin(length(reach), (l1 + l2) * 0.99995);
        reach = mul(unit(reach), r);
        double yaw = degrees.z * 0.4 * RAD;
        vec ahead = v3(sin(yaw), -cos(yaw), 0), down = unit(reach);
        ahead = unit(sub(ahead, mul(down, dot(ahead, down))));
        double c = clamp((l1 * l1 + r * r - l2 * l2) / (2 * l1 * r), -1, 1);
        vec knee = add(hip, add(mul(down, l1 * c), mul(ahead, l1 * sqrt(1 - c * c))));
        vec end = add(hip, reach), hinge = unit(cross(down, ahead)), rest_hinge = v3(1, 0, 0);
        if (dot(hinge, rest_hinge) < 0)
            hinge = mul(hinge, -1);
        frame now = bone_frame(hip, sub(knee, hip), hinge);
        frame was = bone_frame(rest[0], sub(rest[1], rest[0]), rest_hinge), back_to = inverse(&was);
        bones[THIGH + s] = compose(&now, &back_to);
        now = bone_frame(knee, sub(end, knee), hinge);
        was = bone_frame(rest[1], sub(rest[2], rest[1]), rest_hinge), back_to = inverse(&was);
        bones[SHIN + s] = compose(&now, &back_to);
        bones[FOOT + s] = rotation(v3(pitch, 0, 0), rest[2], sub(end, rest[2]));

        /* Arms swing lightly against the legs and trail behind the turn. */
        double swing = CURVE(f, {12, 0}, {28, 10}, {45, -10}, {52, 0}, {84, 0});
        double lag = CURVE(f, {46, 0}, {57, -7}, {67, 8}, {76, -5}, {83, 0});
        frame upper =
            rotation(v3(sign * swing, sign * 1.5 * smooth(3, 14, f), lag), side_of(SHOULDER, s), v3(0, 0, 0));
        frame fore = rotation(v3(sign * swing * 0.5, 0, lag * 0.5), side_of(ELBOW, s), v3(0, 0, 0));
        bones[ARM + s] = compose(&bones[CHEST], &upper);
        bones[FOREARM + s] = compose(&bones[ARM + s], &fore);
    }
}

static void skin(const mesh *rest, const double (*weights)[BONES], double f, vec *out) {
    frame bones[BONES];
    pose(f, bones, NULL);
    for (int i = 0; i < rest->vertex_count; i++) {
        vec p = {0, 0, 0};
        for (int b = 0; b < BONES; b++)
            if (weights[i][b] > 0)
                p = add(p, mul(apply(&bones[b], rest->positions[i]), weights[i][b]));
        out[i] = p;
    }
}

/* ---- the skirt ---- */

enum { GORES = 6 };
static const double WAIST_Z = 1.040, HEM_Z = 0.500, APEX = 0.310, CLEARANCE = 0.006;
static const char *const GORE_NAMES[GORES] = {"front", "front_left", "back_left",
                                              "back",  "back_right", "front_right"};

typedef struct {
    mesh m;
    int around, rows;      /* vertices around, rows of quads from waist to hem */
    double (*uv)[2];       /* (GORES x (rows + 1) x (around / GORES + 1)) */
    int (*triangle_uv)[3]; /* of each triangle's corners */
    int *panels;           /* of each triangle */
} skirt;

/* Radius of the cone at waist height in direction theta: outside the body, all the way down. */
static double waist_radius(double theta) {
    double widest = 0;
    for (double z = WAIST_Z; z > HEM_Z; z -= 0.015) {
        double r = 0.26, step = 0.01;
        while (r > 0 && body_field(v3(r * sin(theta), -r * cos(theta), z)) > 0)
            r -= step;
        for (; step > 1e-4; step *= 0.5) /* the surface is within a step outwards */
            r += body_field(v3((r + step / 2) * sin(theta), -(r + step / 2) * cos(theta), z)) > 0 ? 0
                                                                                                  : step / 2;
        widest = fmax(widest, (r + CLEARANCE) / (1 + (WAIST_Z - z) / APEX));
    }
    return widest;
}

static skirt make_skirt(int around) {
    skirt s = {{0, 0, NULL, NULL}, around, (around + 1) / 2, NULL, NULL, NULL};
    enum { SAMPLES = 240, HARMONICS = 4 };

    /* The waist line as a short Fourier series, which is smooth, widened until it is nowhere too tight. */
    double *radius = need(SAMPLES, sizeof *radius), *line = need(SAMPLES + 1, sizeof *line), lift = 0;
    for (int i = 0; i < SAMPLES; i++)
        radius[i] = waist_radius(2 * PI * i / SAMPLES);
    double cosine[HARMONICS + 1];
    for (int k = 0; k <= HARMONICS; k++) {
        cosine[k] = 0;
        for (int i = 0; i < SAMPLES; i++)
            cosine[k] += radius[i] * cos(2 * PI * i * k / SAMPLES) * (k ? 2.0 : 1.0) / SAMPLES;
    }
#define RADIUS(theta)                                                                                        \
    (cosine[0] + lift + cosine[1] * cos(theta) + cosine[2] * cos(2 * (theta)) +                              \
     cosine[3] * cos(3 * (theta)) + cosine[4] * cos(4 * (theta)))
    for (int i = 0; i < SAMPLES; i++)
        lift = fmax(lift, radius[i] - (RADIUS(2 * PI * i / SAMPLES) - lift));

    /* Vertices at equal distances along the waist, the first one half a gore from the middle of the front. */
    line[0] = 0;
    for (int i = 0; i < SAMPLES; i++) {
        double a = 2 * PI * i / SAMPLES, b = 2 * PI * (i + 1) / SAMPLES, ra = RADIUS(a), rb = RADIUS(b);
        line[i + 1] = line[i] + sqrt(ra * ra + rb * rb - 2 * ra * rb * cos(b - a));
    }
    s.m.vertex_count = around * (s.rows + 1);
    s.m.positions = need((size_t)s.m.vertex_count, sizeof *s.m.positions);
    vec apex = v3(0, 0, WAIST_Z + APEX);
    for (int i = 0; i < around; i++) {
        double want = line[SAMPLES] * fmod((double)i / around - 0.5 / GORES + 1, 1);
        int at = 0;
        while (at + 1 < SAMPLES && line[at + 1] < want)
            at++;
        double theta = 2 * PI * (at + (want - line[at]) / (line[at + 1] - line[at])) / SAMPLES,
               r = RADIUS(theta);
        vec waist = v3(r * sin(theta), -r * cos(theta), WAIST_Z);
        for (int j = 0; j <= s.rows; j++) {
            double stretch = 1 + (WAIST_Z - HEM_Z) / APEX * j / s.rows;
            s.m.positions[j * around + i] = add(apex, mul(sub(waist, apex), stretch));
        }
    }

    /* Each gore laid flat: the angles between neighbouring generators add up, distances from the apex stay.
     */
    int columns = around / GORES, per_gore = (columns + 1) * (s.rows + 1);
    s.uv = need((size_t)(GORES * per_gore), sizeof *s.uv);
    double *angle = need((size_t)columns + 1, sizeof *angle);
    for (int g = 0; g < GORES; g++) {
        for (int c = 0; c < columns; c++) {
            vec a = unit(sub(s.m.positions[g * columns + c], apex));
            vec b = unit(sub(s.m.positions[(g * columns + c + 1) % around], apex));
            angle[c + 1] = angle[c] + 2 * asin(0.5 * length(sub(a, b)));
        }
        for (int j = 0; j <= s.rows; j++)
            for (int c = 0; c <= columns; c++) {
                double far = length(sub(s.m.positions[j * around + (g * columns + c) % around], apex));
                double phi = angle[c] - 0.5 * angle[columns],
                       *uv = s.uv[g * per_gore + j * (columns + 1) + c];
                uv[0] = far * cos(phi);
                uv[1] = far * sin(phi);
            }
    }
    free(angle);

    s.m.triangles = need((size_t)(2 * around * s.rows), sizeof *s.m.triangles);
    s.triangle_uv = need((size_t)(2 * around * s.rows), sizeof *s.triangle_uv);
    s.panels = need((size_t)(2 * around * s.rows), sizeof *s.panels);
    for (int g = 0; g < GORES; g++)
        for (int j = 0; j < s.rows; j++)
            for (int c = 0; c < columns; c++) {
                /* Corners: upper left, lower left, lower right, upper right, seen from outside; the diagonal
                 * turns. */
                static const int DOWN[4] = {0, 1, 1, 0}, RIGHT[4] = {0, 0, 1, 1};
                int v[4], t[4], s0 = (c + j) & 1;
                for (int k = 0; k < 4; k++) {
                    v[k] = (j + DOWN[k]) * around + (g * columns + c + RIGHT[k]) % around;
                    t[k] = g * per_gore + (j + DOWN[k]) * (columns + 1) + c + RIGHT[k];
                }
                for (int half = 0; half < 2; half++) {
                    int n = s.m.triangle_count++, pick[3] = {s0, s0 + 1 + half, (s0 + 2 + half) % 4};
                    for (int k = 0; k < 3; k++) {
                        s.m.triangles[n][k] = v[pick[k]];
                        s.triangle_uv[n][k] = t[pick[k]];
                    }
                    s.panels[n] = g;
                }
            }
#undef RADIUS
    free(radius);
    free(line);
    return s;
}

/* ---- the sleeve: a tube along x around the arm of arm_bend ---- */

static const double SLEEVE_RADIUS = 0.060, SLEEVE_FROM = -0.27, SLEEVE_TO = 0.25, ARM_RADIUS = 0.045,
                    ARM_LENGTH = 0.32;
static const double ARM_Z = 1.0, ARM_DROP = 0.010; /* the sleeve's axis below the arm's: it hangs on it */
enum { BEND_FIRST = 13, BEND_LAST = 43, BEND_DEGREES = 90 };

/* ---- writing ---- */

static FILE *open_file(const char *path) {
    FILE *file = strcmp(path, "-") ? fopen(path, "w") : stdout;
    if (!file) {
        fprintf(stderr, "figure: cannot write %s: %s\n", path, strerror(errno));
        exit(1);
    }
    return file;
}

static void close_file(FILE *file, const char *path) {
    bool bad = ferror(file) != 0;
    if ((file != stdout ? fclose(file) : fflush(file)) || bad) {
        fprintf(stderr, "figure: cannot write %s\n", path);
        exit(1);
    }
}

static void make_folder(const char *out, const char *name) {
    char path[4096];
    snprintf(path, sizeof path, "%s%s", out, name);
    if (mkdir(path, 0777) && errno != EEXIST) {
        fprintf(stderr, "figure: cannot make %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static void write_body(const char *path, const mesh *m, const vec *positions) {
    FILE *file = open_file(path);
    for (int i = 0; i < m->vertex_count; i++)
        fprintf(file, "v %.6f %.6f %.6f\n", positions[i].x, positions[i].y, positions[i].z);
    for (int t = 0; t < m->triangle_count; t++)
        fprintf(file, "f %d %d %d\n", m->triangles[t][0] + 1, m->triangles[t][1] + 1, m->triangles[t][2] + 1);
    close_file(file, path);
}

static void write_skirt(const char *path, const skirt *s) {
    FILE *file = open_file(path);
    fprintf(file, "# Six-gore skirt. Metres; vt are flat material coordinates, u down the middle of each "
                  "gore.\n");
    for (int i = 0; i < s->m.vertex_count; i++)
        fprintf(file, "v %.10g %.10g %.10g\n", s->m.positions[i].x, s->m.positions[i].y, s->m.positions[i].z);
    for (int i = 0; i < GORES * (s->around / GORES + 1) * (s->rows + 1); i++)
        fprintf(file, "vt %.10g %.10g\n", s->uv[i][0], s->uv[i][1]);
    for (int t = 0; t < s->m.triangle_count; t++) {
        if (t == 0 || s->panels[t] != s->panels[t - 1])
            fprintf(file, "g %s\n", GORE_NAMES[s->panels[t]]);
        fprintf(file, "f");
        for (int c = 0; c < 3; c++)
            fprintf(file, " %d/%d", s->m.triangles[t][c] + 1, s->triangle_uv[t][c] + 1);
        fprintf(file, "\n");
    }
    close_file(file, path);
}

static void write_sleeve(const char *path, int around) {
    FILE *file = open_file(path);
    double step = 2 * SLEEVE_RADIUS * sin(PI / around), span = SLEEVE_TO - SLEEVE_FROM;
    int rows = (int)lround(span / step);
    fprintf(file, "# Sleeve: a tube along x. Metres; vt are flat material coordinates, u along the "
                  "sleeve.\n");
    for (int j = 0; j <= rows; j++)
        for (int i = 0; i < around; i++) {
            double a = 2 * PI * i / around; /* begins at the lower side, where the seam is */
            fprintf(file, "v %.10g %.10g %.10g\n", SLEEVE_FROM + span * j / rows, -SLEEVE_RADIUS * sin(a),
                    ARM_Z - ARM_DROP - SLEEVE_RADIUS * cos(a));
        }
    for (int j = 0; j <= rows; j++)
        for (int i = 0; i <= around; i++)
            fprintf(file, "vt %.10g %.10g\n", span * j / rows, step * i);
    fprintf(file, "g sleeve\n");
    for (int j = 0; j < rows; j++)
        for (int i = 0; i < around; i++) {
            int v[4], t[4];
            for (int k = 0; k < 4; k++) {
                int jj = j + (k == 1 || k == 2), ii = i + (k >= 2);
                v[k] = jj * around + ii % around + 1;
                t[k] = jj * (around + 1) + ii + 1;
            }
            int s0 = (i + j) & 1;
            for (int half = 0; half < 2; half++) {
                int pick[3] = {s0, s0 + 1 + half, (s0 + 2 + half) % 4};
                fprintf(file, "f %d/%d %d/%d %d/%d\n", v[pick[0]], t[pick[0]], v[pick[1]], t[pick[1]],
                        v[pick[2]], t[pick[2]]);
            }
        }
    close_file(file, path);
}

static double tidy(double x) { return fabs(x) < 5e-7 ? 0 : x; } /* no minus zeros */

static void write_scene(const char *path) {
    FILE *file = open_file(path);
    fprintf(file, "{\n    \"toile\": 1,\n    \"name\": \"skirt\",\n    \"description\": \"The main sample: a "
                  "six-gore "
                  "cotton skirt on a figure that settles, walks two steps and turns its hips to and fro. "
                  "Meshes are made "
                  "by the build (build/figure build/samples); this file by: build/figure --scene "
                  "samples/scenes/skirt.json. After Baraff-Witkin 1998, figures 5 and 6.\",\n");
    fprintf(file, "    \"fps\": %d,\n    \"frames\": [1, %d],\n", FPS, FRAMES);
    fprintf(file, "    \"garments\": [\n        { \"name\": \"skirt\", \"fabric\": \"cotton\",\n          "
                  "\"obj\": "
                  "\"../../build/samples/skirt/skirt.obj\", \"uv\": \"file\" }\n    ],\n");
    fprintf(file, "    \"colliders\": [\n        { \"name\": \"figure\", \"shape\": \"mesh\",\n          "
                  "\"obj_sequence\": \"../../build/samples/skirt/figure_####.obj\", \"sequence_first\": 1,\n "
                  "         "
                  "\"thickness\": 0.003, \"friction\": 0.3 }\n    ],\n");
    fprintf(file,
            "    \"pins\": [\n        { \"name\": \"waistband\", \"garment\": \"skirt\",\n          "
            "\"select\": "
            "{ \"box\": [[-0.3, -0.3, %.3f], [0.3, 0.3, %.3f]] },\n          \"motion\": { "
            "\"interpolation\": "
            "\"linear\", \"about\": [%g, %g, %g], \"keys\": [\n",
            WAIST_Z - 0.022, WAIST_Z + 0.01, PELVIS.x, PELVIS.y, PELVIS.z);
    for (int f = 1; f <= FRAMES; f++) {
        vec degrees, moved;
        hips_at(f, &degrees, &moved);
        fprintf(file,
                "              { \"frame\": %d, \"translate\": [%.6g, %.6g, %.6g], \"rotate\": [%.6g, %.6g, "
                "%.6g] }%s\n",
                f, tidy(moved.x), tidy(moved.y), tidy(moved.z), tidy(degrees.x), tidy(degrees.y),
                tidy(degrees.z), f < FRAMES ? "," : "");
    }
    fprintf(file, "          ] } }\n    ]\n}\n");
    close_file(file, path);
}

static void write_sleeve_scene(const char *path) {
    FILE *file = open_file(path);
    fprintf(file,
            "{\n    \"toile\": 1,\n    \"name\": \"arm_bend\",\n    \"description\": \"A cotton sleeve on an "
            "arm of "
            "two capsules that bends by %d degrees at the elbow (Boxerman-Ascher 2004, figure 1: no sizes "
            "given; a "
            "person's are chosen). The mesh is made by the build (build/figure "
            "build/samples); this file by: build/figure --sleeve-scene "
            "samples/scenes/arm_bend.json.\",\n",
            BEND_DEGREES);
    fprintf(file, "    \"fps\": %d,\n    \"frames\": [1, 60],\n", FPS);
    fprintf(file, "    \"garments\": [\n        { \"name\": \"sleeve\", \"fabric\": \"cotton\",\n          "
                  "\"obj\": "
                  "\"../../build/samples/arm_bend/sleeve.obj\", \"uv\": \"file\" }\n    ],\n");
    fprintf(file,
            "    \"colliders\": [\n        { \"name\": \"upper_arm\", \"shape\": \"capsule\", \"radius\": "
            "%g, "
            "\"length\": %g, \"friction\": 0.3,\n          \"place\": { \"origin\": [%g, 0, %g], \"rotate\": "
            "[0, 90, "
            "0] } },\n",
            ARM_RADIUS, ARM_LENGTH, -ARM_LENGTH / 2, ARM_Z);
    fprintf(file,
            "        { \"name\": \"forearm\", \"shape\": \"capsule\", \"radius\": %g, \"length\": %g, "
            "\"friction\": "
            "0.3,\n          \"place\": { \"origin\": [%g, 0, %g], \"rotate\": [0, 90, 0] },\n          "
            "\"motion\": "
            "{ \"interpolation\": \"linear\", \"keys\": [\n",
            ARM_RADIUS, ARM_LENGTH, ARM_LENGTH / 2, ARM_Z);
    for (int f = BEND_FIRST - 1; f <= BEND_LAST; f++) {
        /* The forearm turns up about the elbow at the origin of x. */
        double a = BEND_DEGREES * smooth(BEND_FIRST - 1, BEND_LAST, f);
        fprintf(file,
                "              { \"frame\": %d, \"origin\": [%.6g, 0, %.6g], \"rotate\": [0, %.6g, 0] }%s\n",
                f, tidy(ARM_LENGTH / 2 * cos(a * RAD)), ARM_Z + ARM_LENGTH / 2 * sin(a * RAD), 90 - a,
                f < BEND_LAST ? "," : "");
    }
    fprintf(file, "          ] } }\n    ],\n");
    fprintf(file,
            "    \"pins\": [\n        { \"name\": \"shoulder\", \"garment\": \"sleeve\",\n          "
            "\"select\": "
            "{ \"box\": [[%g, -0.1, %g], [%g, 0.1, %g]] } }\n    ]\n}\n",
            SLEEVE_FROM - 0.01, ARM_Z - 0.1, SLEEVE_FROM + 0.02, ARM_Z + 0.1);
    close_file(file, path);
}

/* ---- checking ---- */

typedef struct {
    int64_t edge;
} directed;

static int compare_directed(const void *a, const void *b) {
    int64_t x = ((const directed *)a)->edge, y = ((const directed *)b)->edge;
    return (x > y) - (x < y);
}

/* Every directed edge once and its opposite once, one fan of triangles per vertex, and no hole: Euler's
 * number 2. */
static bool closed_manifold(const mesh *m) {
    int n = 3 * m->triangle_count, *fan = need((size_t)m->vertex_count, sizeof *fan);
    directed *edges = need((size_t)n, sizeof *edges);
    int *next = need((size_t)n, sizeof *next);
    for (int t = 0; t < m->triangle_count; t++)
        for (int c = 0; c < 3; c++)
            edges[3 * t + c].edge =
                (int64_t)m->triangles[t][c] * m->vertex_count + m->triangles[t][(c + 1) % 3];
    qsort(edges, (size_t)n, sizeof *edges, compare_directed);
    bool good = true;
    for (int i = 0; i < n; i++) {
        directed other = {edges[i].edge % m->vertex_count * m->vertex_count +
                          edges[i].edge / m->vertex_count};
        good &= i == 0 || edges[i].edge != edges[i - 1].edge;
        good &= bsearch(&other, edges, (size_t)n, sizeof *edges, compare_directed) != NULL;
        fan[edges[i].edge / m->vertex_count]++;
    }
    /* Walk round each vertex: from the edge (v, a) of triangle (v, a, b) to the edge (v, b); all must be met.
     */
    for (int t = 0; t < m->triangle_count && good; t++)
        for (int c = 0; c < 3; c++) {
            directed from = {(int64_t)m->triangles[t][c] * m->vertex_count + m->triangles[t][(c + 1) % 3]};
            directed to = {(int64_t)m->triangles[t][c] * m->vertex_count + m->triangles[t][(c + 2) % 3]};
            directed *a = bsearch(&from, edges, (size_t)n, sizeof *edges, compare_directed);
            directed *b = bsearch(&to, edges, (size_t)n, sizeof *edges, compare_directed);
            good &= a && b;
            if (a && b)
                next[a - edges] = (int)(b - edges);
        }
    for (int i = 0; i < n && good; i++) {
        int steps = 0, at = i;
        do {
            at = next[at];
            steps++;
        } while (at != i && steps <= n);
        good &= steps == fan[edges[i].edge / m->vertex_count];
    }
    good &= m->vertex_count - n / 2 + m->triangle_count == 2;
    free(edges);
    free(next);
    free(fan);
    return good;
}

static mesh polygonise(void) {
    for (int i = 0;; i++) {
        mesh m = polygonise_at(i / 13.0);
        if (i == 12 || closed_manifold(&m)) {
            relax(&m, 8);
            shorter_diagonals(&m);
            relax(&m, 6);
            return m;
        }
        free(m.positions);
        free(m.triangles);
    }
}

/* Smallest height over longest edge of any triangle: 0.87 when equilateral, 0 when degenerate. */
static double worst_shape(const mesh *m, const vec *p) {
    double worst = 1;
    for (int t = 0; t < m->triangle_count; t++) {
        vec a = p[m->triangles[t][0]], b = p[m->triangles[t][1]], c = p[m->triangles[t][2]];
        double l = fmax(length(sub(a, b)), fmax(length(sub(b, c)), length(sub(c, a))));
        worst = fmin(worst, length(cross(sub(b, a), sub(c, a))) / (l * l));
    }
    return worst;
}

static double volume(const vec *p, int a, int b, int c, int d) {
    return dot(cross(sub(p[b], p[a]), sub(p[c], p[a])), sub(p[d], p[a]));
}

/* Edges of the triangles from `first` on that pass through triangles before `last` without a shared vertex.
 * Space is cut into cells of 4 cm; both lists are one mesh, so that a body can be tested with itself and with
 * a skirt. */
static int crossings(const mesh *m, const vec *p, int first, int last) {
    enum { SIDE = 64, CELLS = SIDE * SIDE * SIDE };
    const double cell = 0.04;
    int *head = need(CELLS, sizeof *head), *next, *item, used = 0, room = 64 * m->triangle_count, found = 0;
    next = need((size_t)room, sizeof *next);
    item = need((size_t)room, sizeof *item);
    for (int i = 0; i < CELLS; i++)
        head[i] = -1;
#define BOUNDS(count, ...)                                                                                   \
    int from[3], to[3];                                                                                      \
    for (int axis = 0; axis < 3; axis++) {                                                                   \
        double low = DBL_MAX, high = -DBL_MAX;                                                               \
        for (int q = 0; q < (count); q++) {                                                                  \
            double x = (&p[(__VA_ARGS__)[q]].x)[axis];                                                       \
            low = fmin(low, x), high = fmax(high, x);                                                        \
        }                                                                                                    \
        double base = axis == 2 ? 0.2 : SIDE * cell / 2;                                                     \
        from[axis] = (int)clamp((low + base) / cell, 0, SIDE - 1);                                           \
        to[axis] = (int)clamp((high + base) / cell, 0, SIDE - 1);                                            \
    }
    for (int t = 0; t < last; t++) {
        BOUNDS(3, m->triangles[t])
        for (int i = from[0]; i <= to[0]; i++)
            for (int j = from[1]; j <= to[1]; j++)
                for (int k = from[2]; k <= to[2] && used < room; k++) {
                    int at = (i * SIDE + j) * SIDE + k;
                    item[used] = t, next[used] = head[at], head[at] = used++;
                }
    }
    for (int t = first; t < m->triangle_count; t++)
        for (int c = 0; c < 3; c++) {
            int e[2] = {m->triangles[t][c], m->triangles[t][(c + 1) % 3]};
            BOUNDS(2, e)
            bool hit = false; /* counted once for the edge */
            for (int i = from[0]; i <= to[0]; i++)
                for (int j = from[1]; j <= to[1]; j++)
                    for (int k = from[2]; k <= to[2] && !hit; k++)
                        for (int at = head[(i * SIDE + j) * SIDE + k]; at >= 0 && !hit; at = next[at]) {
                            const int *q = m->triangles[item[at]];
                            if (q[0] == e[0] || q[1] == e[0] || q[2] == e[0] || q[0] == e[1] ||
                                q[1] == e[1] || q[2] == e[1])
                                continue;
                            double over = volume(p, q[0], q[1], q[2], e[0]),
                                   under = volume(p, q[0], q[1], q[2], e[1]);
                            if ((over > 0) == (under > 0) ||
                                fmin(fabs(over), fabs(under)) < 1e-16) /* flat soles */
                                continue;
                            bool x = volume(p, e[0], e[1], q[0], q[1]) > 0,
                                 y = volume(p, e[0], e[1], q[1], q[2]) > 0;
                            hit = x == y && x == (volume(p, e[0], e[1], q[2], q[0]) > 0);
                        }
            found += hit;
        }
#undef BOUNDS
    free(head);
    free(next);
    free(item);
    return found;
}

/* Times the surface goes round a point: 1 inside, 0 outside (van Oosterom-Strackee solid angles). */
static double winding(const mesh *m, const vec *p, vec at) {
    double sum = 0;
    for (int t = 0; t < m->triangle_count; t++) {
        vec a = sub(p[m->triangles[t][0]], at), b = sub(p[m->triangles[t][1]], at),
            c = sub(p[m->triangles[t][2]], at);
        double la = length(a), lb = length(b), lc = length(c);
        sum +=
            2 * atan2(dot(a, cross(b, c)), la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb);
    }
    return sum / (4 * PI);
}

static double distance_to_triangle(vec p, vec a, vec b, vec c) {
    vec n = cross(sub(b, a), sub(c, a)), q[3] = {a, b, c};
    bool over = true;
    double best = DBL_MAX;
    for (int i = 0; i < 3; i++) {
        vec s = q[i], e = sub(q[(i + 1) % 3], s);
        over &= dot(cross(n, e), sub(p, s)) >= 0;
        best = fmin(best, length(sub(p, add(s, mul(e, clamp(dot(sub(p, s), e) / dot(e, e), 0, 1))))));
    }
    return over ? fabs(dot(sub(p, a), unit(n))) : best;
}

static bool say(bool good, const char *what, double value) {
    printf("%s %-48s %g\n", good ? "ok  " : "BAD ", what, value);
    return good;
}

static bool check(const mesh *body, const double (*weights)[BONES], const skirt *s, int frames) {
    bool good = say(body->triangle_count >= 5000 && body->triangle_count <= 10500, "triangles of the figure",
                    body->triangle_count);
    good &= say(closed_manifold(body), "figure is closed, manifold, without holes", body->vertex_count);
    vec *p = need((size_t)(body->vertex_count + s->m.vertex_count), sizeof *p);
    double tall = 0, sum_worst = 0, shape = 1, slide = 0, low = 0;
    for (int i = 0; i < body->vertex_count; i++) {
        double sum = 0;
        for (int b = 0; b < BONES; b++)
            sum += weights[i][b];
        sum_worst = fmax(sum_worst, fabs(sum - 1));
        tall = fmax(tall, body->positions[i].z);
    }
    good &= say(sum_worst < 1e-12, "weights of a vertex add up to one, error", sum_worst);
    good &= say(tall > 1.65 && tall < 1.75, "height, m", tall);

    int tangled = 0, worst_frame = 0, most = 0;
    for (int f = 1; f <= frames; f++) {
        skin(body, weights, f, p);
        shape = fmin(shape, worst_shape(body, p));
        int n = crossings(body, p, 0, body->triangle_count);
        tangled += n;
        if (n > most)
            most = n, worst_frame = f;
        for (int i = 0; i < body->vertex_count; i++)
            low = fmin(low, p[i].z);
        for (int side = 0; side < 2; side++) { /* where the leg ends against where the foot should be */
            frame bones[BONES];
            double pitch;
            pose(f, bones, NULL);
            slide =
                fmax(slide,
                     length(sub(apply(&bones[FOOT + side], side_of(ANKLE, side)), foot_at(f, side, &pitch))));
        }
    }
    good &= say(shape > 0.02, "thinnest triangle of any frame, height/edge", shape);
    good &= say(tangled == 0, "edges of the figure through itself, all frames", tangled);
    if (tangled)
        printf("     most in frame %d: %d\n", worst_frame, most);
    good &= say(low > -0.012, "lowest point of any frame, m", low);
    good &= say(slide < 0.002, "a foot is out of reach by at most, m", slide);

    /* The pattern is the skirt: every edge as long in uv as in space. */
    double strain = 0;
    for (int t = 0; t < s->m.triangle_count; t++)
        for (int c = 0; c < 3; c++) {
            int d = (c + 1) % 3;
            const double *a = s->uv[s->triangle_uv[t][c]], *b = s->uv[s->triangle_uv[t][d]];
            double flat = hypot(a[0] - b[0], a[1] - b[1]);
            vec e = sub(s->m.positions[s->m.triangles[t][c]], s->m.positions[s->m.triangles[t][d]]);
            strain = fmax(strain, fabs(length(e) - flat));
        }
    good &= say(strain < 1e-9, "skirt and pattern differ in an edge by, m", strain);
    good &= say(worst_shape(&s->m, s->m.positions) > 0.2, "thinnest triangle of the skirt",
                worst_shape(&s->m, s->m.positions));

    /* The skirt is outside of the first frame's figure, with room. */
    skin(body, weights, 1, p);
    double nearest = DBL_MAX, inside = 0;
    for (int i = 0; i < s->m.vertex_count; i++) {
        vec q = s->m.positions[i];
        inside += winding(body, p, q) > 0.5;
        for (int t = 0; t < body->triangle_count; t++) {
            vec a = p[body->triangles[t][0]];
            if (length(sub(q, a)) < nearest + 0.08)
                nearest = fmin(
                    nearest, distance_to_triangle(q, a, p[body->triangles[t][1]], p[body->triangles[t][2]]));
        }
    }
    good &= say(inside == 0, "skirt vertices inside the figure", inside);
    good &= say(nearest > 0.004, "skirt to figure, m", nearest);
    mesh both = {body->vertex_count + s->m.vertex_count, body->triangle_count + s->m.triangle_count, p, NULL};
    both.triangles = need((size_t)both.triangle_count, sizeof *both.triangles);
    memcpy(p + body->vertex_count, s->m.positions, (size_t)s->m.vertex_count * sizeof *p);
    memcpy(both.triangles, body->triangles, (size_t)body->triangle_count * sizeof *both.triangles);
    for (int t = 0; t < s->m.triangle_count; t++)
        for (int c = 0; c < 3; c++)
            both.triangles[body->triangle_count + t][c] = s->m.triangles[t][c] + body->vertex_count;
    int pierced = crossings(&both, p, body->triangle_count, body->triangle_count);
    good &= say(pierced == 0, "skirt edges through the figure", pierced);

    /* The waistband goes with the hips, and nothing of the figure comes into it. */
    double come = DBL_MAX;
    for (int f = 1; f <= frames; f++) {
        frame bones[BONES], hips;
        pose(f, bones, &hips);
        skin(body, weights, f, p);
        for (int i = 0; i < s->around; i++) {
            vec q = apply(&hips, s->m.positions[i]);
            for (int t = 0; t < body->triangle_count; t++) {
                vec a = p[body->triangles[t][0]];
                if (length(sub(q, a)) < 0.06)
                    come = fmin(
                        come, distance_to_triangle(q, a, p[body->triangles[t][1]], p[body->triangles[t][2]]));
            }
        }
    }
    good &= say(come > 0.003, "waistband to figure in any frame, m", come);
    free(both.triangles);
    free(p);
    return good;
}

/* ---- the program ---- */

static int usage(void) {
    fprintf(stderr, "usage: figure OUTDIR [--frames N] [--resolution K]\n"
                    "       figure --check [--frames N] [--resolution K]\n"
                    "       figure --scene FILE | --sleeve-scene FILE\n");
    return 2;
}

int main(int argc, char **argv) {
    const char *out = NULL, *scene = NULL, *sleeve_scene = NULL;
    int frames = FRAMES, resolution = 96;
    bool checking = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!strcmp(argv[i], "--check"))
            checking = true;
        else if (!strcmp(argv[i], "--frames") && value)
            frames = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--resolution") && value)
            resolution = atoi(argv[++i]);
        else if (!strcmp(argv[i], "--scene") && value)
            scene = argv[++i];
        else if (!strcmp(argv[i], "--sleeve-scene") && value)
            sleeve_scene = argv[++i];
        else if (argv[i][0] != '-' && !out)
            out = argv[i];
        else
            return usage();
    }
    if (!(out || scene || sleeve_scene || checking) || frames < 1 || frames > 9999 || resolution < 24 ||
        resolution > 2000)
        return usage();

    if (scene)
        write_scene(scene);
    if (sleeve_scene)
        write_sleeve_scene(sleeve_scene);
    if (!out && !checking)
        return 0;

    /* Around the waist a multiple of twelve, so that every gore has an even number of columns. */
    skirt s = make_skirt((resolution + 6) / 12 * 12);
    mesh body = polygonise();
    double(*weights)[BONES] = need((size_t)body.vertex_count, sizeof *weights);
    for (int i = 0; i < body.vertex_count; i++)
        weights_of(body.positions[i], weights[i]);

    bool good = true;
    if (checking)
        good = check(&body, weights, &s, frames);
    if (out) {
        char path[4096];
        make_folder(out, "");
        make_folder(out, "/skirt");
        make_folder(out, "/arm_bend");
        vec *p = need((size_t)body.vertex_count, sizeof *p);
        for (int f = 1; f <= frames; f++) {
            skin(&body, weights, f, p);
            snprintf(path, sizeof path, "%s/skirt/figure_%04d.obj", out, f);
            write_body(path, &body, p);
        }
        free(p);
        snprintf(path, sizeof path, "%s/arm_bend/sleeve.obj", out);
        write_sleeve(path, (s.around * 5 / 12 + 1) / 2 * 2);
        snprintf(path, sizeof path, "%s/skirt/skirt.obj", out);
        write_skirt(path, &s);
        printf("%s: %d frames of a figure of %d triangles, a skirt of %d vertices, a sleeve\n", out, frames,
               body.triangle_count, s.m.vertex_count);
    }
    free(weights);
    free(body.positions);
    free(body.triangles);
    free(s.m.positions);
    free(s.m.triangles);
    free(s.uv);
    free(s.triangle_uv);
    free(s.panels);
    return good ? 0 : 1;
}
