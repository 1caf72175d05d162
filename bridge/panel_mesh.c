#include "panel_mesh.h"

#include "delaunay.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEVELS = 10,   /* a grid square is cut in four at most this often */
    ROUNDS = 10,   /* of moving, adding and taking out points */
    STAR_MOST = 64 /* triangles around a point that is moved */
};

/* Tuned on the patterns of tests/bridge/test_panel_mesh.c, where they give the largest smallest angle. */
#define KEEP 0.58     /* distance of grid points from the outline, as part of the mean of grid and outline spacing */
#define GROWTH 0.6    /* by which edges may grow with the distance from what is fine */
#define SPLIT 0.7     /* a square is cut in four if edges there are to be shorter than this part of its side */
#define SINE_GOOD 0.5 /* sine of the angle, 30 degrees, from which on nothing is moved */
#define SINE_FAIR 0.45 /* below this points are added or taken out */

typedef struct spot {
    int32_t at[2];                  /* on the lattice */
    int32_t size;                   /* of the edges wanted around it, lattice units */
} spot;

typedef struct mesher {
    toile_memory *memory;
    const toile_panel_shape *shape;
    int border;                     /* points of the outline and holes */
    double (*flat)[2];              /* of the outline on the lattice's axes, lattice units, (border) */
    int *after;                     /* the next point of each one's loop, (border) */
    double scale, low[2], turn[2];  /* lattice = scale x (turned point - low); turn: cosine and sine of the grain */
    int cells[2];
    double step[2];                 /* of the grid, lattice units */
    int *bin_begin, *bin_items;     /* segments in each square of the grid, for what is near */
    double *bin_finest;             /* shortest segment in it */
    spot *spots;                    /* points inside */
    int spot_count, spot_room;
    toile_delaunay d;
    toile_panel_fault fault;
} mesher;

static bool fail(mesher *m, toile_panel_fault_kind kind, int a, int b) {
    m->fault = (toile_panel_fault){kind, a, b};
    return false;
}

/* ---- the lattice ---- */

static double length2(const double a[2], const double b[2]) {
    double x = a[0] - b[0], y = a[1] - b[1];
    return sqrt(x * x + y * y); /* places are whole numbers below 2^31: what hypot guards against cannot be */
}

static bool lay_out(mesher *m) {
    const toile_panel_shape *s = m->shape;
    double high[2] = {-INFINITY, -INFINITY};
    m->low[0] = m->low[1] = INFINITY;
    m->turn[0] = cos(s->grain);
    m->turn[1] = sin(s->grain);
    m->flat = toile_alloc(m->memory, (size_t)m->border, sizeof *m->flat);
    m->after = toile_alloc(m->memory, (size_t)m->border, sizeof *m->after);
    if (!m->flat || !m->after)
        return fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
    for (int i = 0; i < m->border; i++) {
        const double *p = s->points + 2 * (size_t)i;
        m->flat[i][0] = m->turn[0] * p[0] + m->turn[1] * p[1];
        m->flat[i][1] = m->turn[0] * p[1] - m->turn[1] * p[0];
        for (int k = 0; k < 2; k++) {
            m->low[k] = fmin(m->low[k], m->flat[i][k]);
            high[k] = fmax(high[k], m->flat[i][k]);
        }
    }
    for (int loop = 0, at = 0; loop < s->loop_count; at += s->loop_sizes[loop++])
        for (int i = 0; i < s->loop_sizes[loop]; i++)
            m->after[at + i] = at + (i + 1) % s->loop_sizes[loop];

    /* A power of two, so that scaling loses nothing. */
    double extent = fmax(high[0] - m->low[0], high[1] - m->low[1]);
    if (!(extent > 0) || !isfinite(extent))
        return fail(m, TOILE_PANEL_TOUCHES, 0, 0);
    m->scale = ldexp(1, (int)floor(log2(TOILE_LATTICE / extent)));
    for (int i = 0; i < m->border; i++)
        for (int k = 0; k < 2; k++)
            m->flat[i][k] = m->scale * (m->flat[i][k] - m->low[k]);
    double squares = 1;
    for (int k = 0; k < 2; k++) {
        double size = high[k] - m->low[k], count = fmax(1, round(size / s->edge_length));
        squares *= count + 2;
        if (squares > 4.0 * TOILE_PANEL_MOST)
            return fail(m, TOILE_PANEL_TOO_FINE, 0, 0);
        m->cells[k] = (int)count;
        m->step[k] = m->scale * fmax(size / count, extent / TOILE_LATTICE);
    }
    return true;
}

/* ---- which segments are near ---- */

static int bin_of(const mesher *m, int k, double x) {
    int i = (int)floor(x / m->step[k]);
    return i < 0 ? 0 : i >= m->cells[k] ? m->cells[k] - 1 : i;
}

static void box_of_segment(const mesher *m, int i, int low[2], int high[2]) {
    const double *a = m->flat[i], *b = m->flat[m->after[i]];
    for (int k = 0; k < 2; k++) {
        low[k] = bin_of(m, k, fmin(a[k], b[k]));
        high[k] = bin_of(m, k, fmax(a[k], b[k]));
    }
}

static bool sort_segments(mesher *m) {
    size_t bins = (size_t)m->cells[0] * (size_t)m->cells[1];
    m->bin_begin = toile_alloc(m->memory, bins + 2, sizeof *m->bin_begin);
    m->bin_finest = toile_alloc(m->memory, bins, sizeof *m->bin_finest);
    if (!m->bin_begin || !m->bin_finest)
        return fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
    for (size_t b = 0; b < bins; b++)
        m->bin_finest[b] = INFINITY;
    /* Counts two places on, so that filling leaves the beginnings in place. */
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < m->border; i++) {
            int low[2], high[2];
            double length = length2(m->flat[i], m->flat[m->after[i]]);
            box_of_segment(m, i, low, high);
            for (int y = low[1]; y <= high[1]; y++)
                for (int x = low[0]; x <= high[0]; x++) {
                    size_t b = (size_t)y * (size_t)m->cells[0] + (size_t)x;
                    if (pass == 0) {
                        m->bin_begin[b + 2]++;
                        m->bin_finest[b] = fmin(m->bin_finest[b], length);
                    } else {
                        m->bin_items[m->bin_begin[b + 1]++] = i;
                    }
                }
        }
        if (pass == 1)
            break;
        for (size_t b = 2; b < bins + 2; b++)
            m->bin_begin[b] += m->bin_begin[b - 1];
        m->bin_items = toile_alloc(m->memory, (size_t)m->bin_begin[bins + 1], sizeof *m->bin_items);
        if (!m->bin_items)
            return fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
    }
    return true;
}

static double distance_to_segment(const double p[2], const double a[2], const double b[2]) {
    double x = b[0] - a[0], y = b[1] - a[1], l = x * x + y * y;
    double t = l > 0 ? ((p[0] - a[0]) * x + (p[1] - a[1]) * y) / l : 0;
    t = t < 0 ? 0 : t > 1 ? 1 : t;
    double foot[2] = {a[0] + t * x, a[1] + t * y};
    return length2(p, foot);
}

/* Calls `see` for the segments in squares around a point. */
typedef bool see_segment(const mesher *m, int segment, void *user);
static bool look_around(const mesher *m, const double p[2], int reach, see_segment *see, void *user) {
    int x = bin_of(m, 0, p[0]), y = bin_of(m, 1, p[1]);
    for (int j = y - reach < 0 ? 0 : y - reach; j <= y + reach && j < m->cells[1]; j++)
        for (int i = x - reach < 0 ? 0 : x - reach; i <= x + reach && i < m->cells[0]; i++) {
            size_t b = (size_t)j * (size_t)m->cells[0] + (size_t)i;
            for (int k = m->bin_begin[b]; k < m->bin_begin[b + 1]; k++)
                if (!see(m, m->bin_items[k], user))
                    return false;
        }
    return true;
}

typedef struct query {
    double at[2], size;
    double finest;
} query;

static bool see_distance(const mesher *m, int i, void *user) {
    const query *q = user;
    const double *a = m->flat[i], *b = m->flat[m->after[i]];
    return distance_to_segment(q->at, a, b) >= KEEP * 0.5 * (q->size + length2(a, b));
}

/* Whether a point is far enough from the outline for edges of this size. */
static bool keeps_distance(const mesher *m, const double p[2], double size) {
    query q = {.at = {p[0], p[1]}, .size = size};
    return look_around(m, p, 1, see_distance, &q);
}

static bool see_finest(const mesher *m, int i, void *user) {
    query *q = user;
    const double *a = m->flat[i], *b = m->flat[m->after[i]];
    double length = length2(a, b);
    if (length < SPLIT * q->size) {
        double away = fmax(0, distance_to_segment(q->at, a, b) - q->size * 0.5);
        q->finest = fmin(q->finest, length + GROWTH * away);
    }
    return true;
}

/* ---- the grid ---- */

/* Length of edges wanted in a square with this middle. */
static double wanted(const mesher *m, const double middle[2], double size) {
    query q = {.at = {middle[0], middle[1]}, .size = size, .finest = INFINITY};
    int x = bin_of(m, 0, middle[0]), y = bin_of(m, 1, middle[1]);
    bool fine = false;
    for (int j = y < 2 ? 0 : y - 2; j <= y + 2 && j < m->cells[1] && !fine; j++)
        for (int i = x < 2 ? 0 : x - 2; i <= x + 2 && i < m->cells[0] && !fine; i++)
            fine = m->bin_finest[(size_t)j * (size_t)m->cells[0] + (size_t)i] < SPLIT * size;
    if (fine)
        look_around(m, middle, 2, see_finest, &q);
    for (int i = 0; i < m->shape->finer_count; i++) {
        const toile_finer *f = &m->shape->finer[i];
        double c[2] = {m->turn[0] * f->center[0] + m->turn[1] * f->center[1],
                       m->turn[0] * f->center[1] - m->turn[1] * f->center[0]};
        for (int k = 0; k < 2; k++)
            c[k] = m->scale * (c[k] - m->low[k]);
        double away = fmax(0, length2(middle, c) - m->scale * f->radius - size * 0.5);
        q.finest = fmin(q.finest, m->scale * f->edge_length + GROWTH * away);
    }
    return q.finest;
}

static bool add_spot(mesher *m, const int32_t at[2], double size) {
    if (m->spot_count == m->spot_room) {
        size_t room = m->spot_room ? 2 * (size_t)m->spot_room : 1024;
        if (room > 16 * (size_t)TOILE_PANEL_MOST)
            return fail(m, TOILE_PANEL_TOO_FINE, 0, 0);
        spot *grown = toile_grow(m->memory, m->spots, (size_t)m->spot_room, room, sizeof *grown);
        if (!grown)
            return fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
        m->spots = grown;
        m->spot_room = (int)room;
    }
    m->spots[m->spot_count++] = (spot){{at[0], at[1]}, (int32_t)size};
    return true;
}

/* A square of the grid, or a part of it: its four corners, or those of its four quarters. Corners are counted in
 * parts of 1 / 2^LEVELS of a square. */
static bool cut_square(mesher *m, int x, int y, int level) {
    int side = 1 << (LEVELS - level);
    double part = 1.0 / (1 << LEVELS), size = fmax(m->step[0], m->step[1]) * side * part;
    double middle[2] = {(x + 0.5 * side) * part * m->step[0], (y + 0.5 * side) * part * m->step[1]};
    if (level < LEVELS && wanted(m, middle, size) < SPLIT * size) {
        int half = side / 2;
        return cut_square(m, x, y, level + 1) && cut_square(m, x + half, y, level + 1) &&
               cut_square(m, x, y + half, level + 1) && cut_square(m, x + half, y + half, level + 1);
    }
    for (int k = 0; k < 4; k++) {
        int32_t corner[2] = {x + (k & 1) * side, y + (k >> 1) * side};
        if (!add_spot(m, corner, size))
            return false;
    }
    return true;
}

static int compare_spots(const void *a, const void *b) {
    const spot *p = a, *q = b;
    if (p->at[1] != q->at[1])
        return p->at[1] < q->at[1] ? -1 : 1;
    if (p->at[0] != q->at[0])
        return p->at[0] < q->at[0] ? -1 : 1;
    return (p->size > q->size) - (p->size < q->size);
}

/* Coarse grids first, each in rows: every point then falls into small triangles near the one before it. */
static int coarseness(const spot *s) {
    uint32_t bits = (uint32_t)s->at[0] | (uint32_t)s->at[1] | 1u << 30;
    return __builtin_ctz(bits);
}

static int compare_order(const void *a, const void *b) {
    const spot *p = a, *q = b;
    int x = coarseness(p), y = coarseness(q);
    return x != y ? (x > y ? -1 : 1) : compare_spots(a, b);
}

/* The grid's points inside and away from the outline, with the length of edges around them. */
static bool make_grid(mesher *m) {
    for (int y = 0; y < m->cells[1]; y++)
        for (int x = 0; x < m->cells[0]; x++)
            if (!cut_square(m, x << LEVELS, y << LEVELS, 0))
                return false;
    qsort(m->spots, (size_t)m->spot_count, sizeof *m->spots, compare_spots);
    int count = 0;
    for (int i = 0; i < m->spot_count; i++)
        if (i == 0 || m->spots[i].at[0] != m->spots[i - 1].at[0] || m->spots[i].at[1] != m->spots[i - 1].at[1])
            m->spots[count++] = m->spots[i];
    qsort(m->spots, (size_t)count, sizeof *m->spots, compare_order);
    m->spot_count = 0;
    for (int i = 0; i < count; i++) {
        spot s = m->spots[i];
        double p[2];
        for (int k = 0; k < 2; k++)
            p[k] = round(s.at[k] * m->step[k] / (1 << LEVELS));
        if (keeps_distance(m, p, s.size))
            m->spots[m->spot_count++] = (spot){{(int32_t)p[0], (int32_t)p[1]}, s.size};
    }
    return m->spot_count + m->border <= TOILE_PANEL_MOST || fail(m, TOILE_PANEL_TOO_FINE, 0, 0);
}

/* ---- triangles ---- */

static int segment_at(const mesher *m, int p, int q) {
    p -= TOILE_DELAUNAY_FIRST;
    q -= TOILE_DELAUNAY_FIRST;
    return m->after[p] == q ? p : q;
}

/* The outline alone, and what is inside of it. Everything that is wrong with it shows here. */
static bool triangulate_border(mesher *m) {
    toile_delaunay *d = &m->d;
    /* first every 2^n-th point, then those between: one after the other, each point of a long side would turn over the
     * triangles of all before it */
    int widest = 1;
    while (2 * widest < m->border)
        widest *= 2;
    for (int step = widest; step > 0; step /= 2)
        for (int i = step == widest ? 0 : step; i < m->border; i += step == widest ? step : 2 * step) {
            int32_t p[2] = {(int32_t)lround(m->flat[i][0]), (int32_t)lround(m->flat[i][1])};
            int made = toile_delaunay_insert(d, TOILE_DELAUNAY_FIRST + i, p, false) - TOILE_DELAUNAY_FIRST;
            if (made != i)
                return fail(m, TOILE_PANEL_TOUCHES, made < i ? made : i, made < i ? i : made);
        }
    for (int i = 0; i < m->border; i++) {
        int meets[2];
        if (toile_delaunay_segment(d, TOILE_DELAUNAY_FIRST + i, TOILE_DELAUNAY_FIRST + m->after[i], meets))
            continue;
        if (d->failed || meets[0] < 0)
            return fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
        if (meets[1] < 0)
            return fail(m, TOILE_PANEL_TOUCHES, i, meets[0] - TOILE_DELAUNAY_FIRST);
        return fail(m, TOILE_PANEL_CROSSES, i, segment_at(m, meets[0], meets[1]));
    }
    toile_delaunay_restore_all(d);
    toile_delaunay_fill(d);
    return !d->failed || fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
}

/* A hole takes away from what is inside: the side of its segments that is in the hole is outside. */
static bool check_holes(mesher *m) {
    for (int loop = 0, at = 0; loop < m->shape->loop_count; at += m->shape->loop_sizes[loop++]) {
        double area = 0;
        for (int i = at; i < at + m->shape->loop_sizes[loop]; i++) {
            const double *a = m->flat[i], *b = m->flat[m->after[i]], *o = m->flat[at];
            area += (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
        }
        int a = TOILE_DELAUNAY_FIRST + at, b = TOILE_DELAUNAY_FIRST + m->after[at], corner;
        int t = area > 0 ? toile_delaunay_edge(&m->d, a, b, &corner) : toile_delaunay_edge(&m->d, b, a, &corner);
        if (t < 0 || m->d.triangles[t].inside != (loop == 0))
            return fail(m, TOILE_PANEL_HOLE_OUTSIDE, at, at);
    }
    return true;
}

static bool triangulate(mesher *m) {
    toile_delaunay_free(&m->d);
    if (!toile_delaunay_make(m->memory, m->border + m->spot_count, &m->d))
        return fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
    if (!triangulate_border(m) || !check_holes(m))
        return false;
    int count = 0;
    for (int i = 0; i < m->spot_count; i++) {
        int point = TOILE_DELAUNAY_FIRST + m->border + count;
        if (toile_delaunay_insert(&m->d, point, m->spots[i].at, true) == point)
            m->spots[count++] = m->spots[i];
    }
    m->spot_count = count;
    return !m->d.failed || fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
}

/* ---- shape of triangles ---- */

/* Sine of the smallest angle: it is opposite of the shortest side, so twice the area over the other two. Zero or less
 * if the triangle is turned over. */
static double sine(const double a[2], const double b[2], const double c[2]) {
    double ab = length2(a, b), bc = length2(b, c), ca = length2(c, a);
    double area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
    double shortest = fmin(ab, fmin(bc, ca)), product = ab * bc * ca;
    return product > 0 ? area * shortest / product : 0;
}

static void place_of(const mesher *m, int point, double p[2]) {
    p[0] = m->d.points[point][0];
    p[1] = m->d.points[point][1];
}

static double sine_of(const mesher *m, int t) {
    double p[3][2];
    for (int k = 0; k < 3; k++)
        place_of(m, m->d.triangles[t].v[k], p[k]);
    return sine(p[0], p[1], p[2]);
}

static bool on_border(const mesher *m, int point) {
    return point < TOILE_DELAUNAY_FIRST + m->border;
}

/* Smallest sine around a point if it were at `p`. */
static double star_sine(const mesher *m, int point, const double p[2], const int *star, int count) {
    double least = 1;
    for (int i = 0; i < count && least > 0; i++) {
        const toile_delaunay_triangle *t = &m->d.triangles[star[i]];
        int k = toile_corner_of(t, point);
        double a[2], b[2];
        place_of(m, t->v[(k + 1) % 3], a);
        place_of(m, t->v[(k + 2) % 3], b);
        least = fmin(least, sine(p, a, b));
    }
    return least;
}

/* ---- moving points ---- */

/* To where the smallest angle around it is largest: the middle of its neighbours, or steps from where it is. */
static bool move_point(mesher *m, int point) {
    static const double WAYS[8][2] = {{1, 0}, {0.7, 0.7}, {0, 1}, {-0.7, 0.7}, {-1, 0}, {-0.7, -0.7}, {0, -1}, {0.7, -0.7}};
    int star[STAR_MOST], count = toile_delaunay_around(&m->d, point, star, STAR_MOST);
    if (count == 0)
        return false;
    double at[2], best[2], middle[2] = {0, 0}, size = 0;
    place_of(m, point, at);
    double before = star_sine(m, point, at, star, count), most = before;
    if (before >= SINE_GOOD)
        return false;
    for (int i = 0; i < count; i++) {
        const toile_delaunay_triangle *t = &m->d.triangles[star[i]];
        double p[2];
        place_of(m, t->v[(toile_corner_of(t, point) + 1) % 3], p);
        for (int k = 0; k < 2; k++)
            middle[k] += p[k] / count;
        size += length2(at, p) / count;
    }
    memcpy(best, at, sizeof best);
    double there = star_sine(m, point, middle, star, count);
    if (there > most) {
        most = there;
        memcpy(best, middle, sizeof best);
    }
    for (double step = 0.2 * size; step > 0.01 * size; step *= 0.5) {
        double from[2] = {best[0], best[1]};
        for (int way = 0; way < 8; way++) {
            double p[2] = {from[0] + step * WAYS[way][0], from[1] + step * WAYS[way][1]};
            there = star_sine(m, point, p, star, count);
            if (there > most) {
                most = there;
                memcpy(best, p, sizeof best);
            }
        }
    }
    if (most < before + 0.005)
        return false;
    int32_t old[2] = {m->d.points[point][0], m->d.points[point][1]};
    for (int k = 0; k < 2; k++)
        m->d.points[point][k] = (int32_t)lround(best[k]);
    /* Rounding may have undone it; so may a triangle that is turned over. */
    for (int i = 0; i < count; i++) {
        const int *v = m->d.triangles[star[i]].v;
        if (toile_delaunay_side(&m->d, v[0], v[1], v[2]) <= 0) {
            memcpy(m->d.points[point], old, sizeof old);
            return false;
        }
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 3; k++)
            toile_delaunay_push(&m->d, star[i], k);
    toile_delaunay_restore(&m->d);
    return true;
}

static void move_points(mesher *m) {
    bool more = true;
    for (int pass = 0; pass < 8 && more; pass++) {
        more = false;
        for (int i = TOILE_DELAUNAY_FIRST + m->border; i < m->d.point_count; i++)
            if (move_point(m, i))
                more = true;
    }
    for (int i = 0; i < m->spot_count; i++)
        memcpy(m->spots[i].at, m->d.points[TOILE_DELAUNAY_FIRST + m->border + i], sizeof m->spots[i].at);
}

/* ---- flips that are not Delaunay ---- */

/* The four corners around an inside edge that is no segment: p, q, s, r, with the edge from q to r. */
static bool quad_of(const mesher *m, int t, int corner, int quad[4]) {
    const toile_delaunay_triangle *a = &m->d.triangles[t];
    if (!a->inside || a->fixed[corner] || a->next[corner] < 0)
        return false;
    const toile_delaunay_triangle *b = &m->d.triangles[a->next[corner]];
    quad[0] = a->v[corner];
    quad[1] = a->v[(corner + 1) % 3];
    quad[3] = a->v[(corner + 2) % 3];
    int k = 0;
    while (k < 2 && (b->v[k] == quad[1] || b->v[k] == quad[3]))
        k++;
    quad[2] = b->v[k];
    return true;
}

/* Smallest sine of the two triangles that the other diagonal would make. */
static double sine_flipped(const mesher *m, const int quad[4]) {
    double p[4][2];
    for (int k = 0; k < 4; k++)
        place_of(m, quad[k], p[k]);
    return fmin(sine(p[0], p[1], p[2]), sine(p[0], p[2], p[3]));
}

/* Squares of the grid are cut by turns one way and the other, so that the cloth has no weaker diagonal. */
static void alternate_diagonals(mesher *m) {
    for (int t = 0; t < m->d.triangle_count; t++)
        for (int k = 0; k < 3; k++) {
            int quad[4];
            if (!quad_of(m, t, k, quad))
                continue;
            double p[4][2], low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
            for (int i = 0; i < 4; i++) {
                place_of(m, quad[i], p[i]);
                for (int j = 0; j < 2; j++) {
                    low[j] = fmin(low[j], p[i][j]);
                    high[j] = fmax(high[j], p[i][j]);
                }
            }
            /* A rectangle along the axes: every point is in a corner of the box, and the edge is its diagonal. */
            double size[2] = {high[0] - low[0], high[1] - low[1]}, slack = 0.02 * fmin(size[0], size[1]);
            bool square = true;
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 2; j++)
                    square = square && (p[i][j] - low[j] < slack || high[j] - p[i][j] < slack);
            if (!square || fmin(size[0], size[1]) < 0.5 * fmax(size[0], size[1]))
                continue;
            long column = lround(low[0] / size[0]), row = lround(low[1] / size[1]);
            bool rising = (p[1][0] < p[3][0]) == (p[1][1] < p[3][1]);
            if (rising != ((column + row) % 2 == 0))
                toile_delaunay_flip(&m->d, t, k);
        }
}

/* An edge across the panel between two points of the outline. Where two panels are sewn together all around it, both
 * could have it, and it would have four triangles. */
static bool is_chord(const mesher *m, const int quad[4]) {
    return on_border(m, quad[1]) && on_border(m, quad[3]);
}

static void flip_chords(mesher *m) {
    for (int t = 0; t < m->d.triangle_count; t++)
        for (int k = 0; k < 3; k++) {
            int quad[4];
            if (quad_of(m, t, k, quad) && is_chord(m, quad) && !(on_border(m, quad[0]) && on_border(m, quad[2])) &&
                sine_flipped(m, quad) > SINE_FAIR)
                toile_delaunay_flip(&m->d, t, k);
        }
}

/* ---- adding and taking out points ---- */

static double size_at(const mesher *m, int point) {
    if (!on_border(m, point))
        return m->spots[point - TOILE_DELAUNAY_FIRST - m->border].size;
    int i = point - TOILE_DELAUNAY_FIRST;
    return length2(m->flat[i], m->flat[m->after[i]]);
}

static bool circumcentre(const mesher *m, const int v[3], double c[2], double *radius) {
    double p[3][2];
    for (int k = 0; k < 3; k++)
        place_of(m, v[k], p[k]);
    double bx = p[1][0] - p[0][0], by = p[1][1] - p[0][1], cx = p[2][0] - p[0][0], cy = p[2][1] - p[0][1];
    double area = 2 * (bx * cy - by * cx);
    if (!(area > 0))
        return false;
    double x = (cy * (bx * bx + by * by) - by * (cx * cx + cy * cy)) / area;
    double y = (bx * (cx * cx + cy * cy) - cx * (bx * bx + by * by)) / area;
    c[0] = p[0][0] + x;
    c[1] = p[0][1] + y;
    *radius = hypot(x, y);
    return c[0] >= 0 && c[1] >= 0 && c[0] <= TOILE_LATTICE && c[1] <= TOILE_LATTICE;
}

/* Looks at what is still badly shaped, and at edges across the panel. Marks points to take out, adds new ones behind the
 * others. Returns how many it changed. */
static int change_points(mesher *m, unsigned char *out) {
    int changes = 0, old = m->spot_count;
    for (int t = 0; t < m->d.triangle_count && m->fault.kind == TOILE_PANEL_FINE; t++) {
        const toile_delaunay_triangle *a = &m->d.triangles[t];
        if (!a->inside)
            continue;
        for (int k = 0; k < 3; k++) {
            int quad[4];
            if (a->next[k] < t || !quad_of(m, t, k, quad) || !is_chord(m, quad))
                continue;
            double p[2], q[2];
            place_of(m, quad[1], p);
            place_of(m, quad[3], q);
            int32_t middle[2] = {(int32_t)lround(0.5 * (p[0] + q[0])), (int32_t)lround(0.5 * (p[1] + q[1]))};
            add_spot(m, middle, length2(p, q));
            changes++;
        }
        if (sine_of(m, t) >= SINE_FAIR)
            continue;
        /* The shortest side of a narrow triangle loses an end; the widest angle of a flat one gets a new neighbour. */
        double side[3], centre[2], radius;
        int shortest = 0, longest = 0;
        for (int k = 0; k < 3; k++) {
            double p[2], q[2];
            place_of(m, a->v[(k + 1) % 3], p);
            place_of(m, a->v[(k + 2) % 3], q);
            side[k] = length2(p, q);
            if (side[k] < side[shortest])
                shortest = k;
            if (side[k] > side[longest])
                longest = k;
        }
        double size = (size_at(m, a->v[0]) + size_at(m, a->v[1]) + size_at(m, a->v[2])) / 3;
        int ends[2] = {a->v[(shortest + 1) % 3], a->v[(shortest + 2) % 3]}, wide = a->v[longest];
        bool narrow = side[shortest] < 0.62 * size;
        int gone = -1;
        for (int k = 0; k < 2 && narrow && gone < 0; k++)
            if (!on_border(m, ends[k]))
                gone = ends[k];
        if (gone < 0 && !on_border(m, wide) && on_border(m, a->v[(longest + 1) % 3]) && on_border(m, a->v[(longest + 2) % 3]))
            gone = wide; /* too near to the outline */
        if (gone >= 0) {
            int i = gone - TOILE_DELAUNAY_FIRST - m->border;
            if (i < old && !out[i]) {
                out[i] = 1;
                changes++;
            }
        } else if (circumcentre(m, a->v, centre, &radius) && radius > 0.75 * size) {
            int32_t c[2] = {(int32_t)lround(centre[0]), (int32_t)lround(centre[1])};
            if (keeps_distance(m, centre, 0.7 * size)) {
                add_spot(m, c, size);
                changes++;
            }
        }
    }
    return changes;
}

static bool apply_changes(mesher *m, const unsigned char *out, int old) {
    int count = 0;
    for (int i = 0; i < m->spot_count; i++)
        if (i >= old || !out[i])
            m->spots[count++] = m->spots[i];
    m->spot_count = count;
    return m->fault.kind == TOILE_PANEL_FINE;
}

/* How good the triangles are: the smallest sine, less what counts as bad as it: edges across. */
static double judge(const mesher *m) {
    double least = 1;
    int chords = 0;
    for (int t = 0; t < m->d.triangle_count; t++) {
        if (!m->d.triangles[t].inside)
            continue;
        least = fmin(least, sine_of(m, t));
        for (int k = 0; k < 3; k++) {
            int quad[4];
            chords += quad_of(m, t, k, quad) && is_chord(m, quad);
        }
    }
    return least - chords;
}

static void finish(mesher *m) {
    alternate_diagonals(m);
    flip_chords(m);
}

/* Rounds of moving, adding and taking out points; the best of them stays. */
static bool improve(mesher *m) {
    double best = -INFINITY;
    spot *kept = NULL;
    int kept_count = 0;
    bool fine = true;
    for (int round = 0; fine && round < ROUNDS; round++) {
        fine = triangulate(m);
        unsigned char *out = fine ? toile_alloc(m->memory, (size_t)m->spot_count, 1) : NULL;
        spot *copy = fine ? toile_alloc(m->memory, (size_t)m->spot_count, sizeof *copy) : NULL;
        if (fine && (!out || !copy))
            fine = fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
        if (fine) {
            move_points(m);
            memcpy(copy, m->spots, (size_t)m->spot_count * sizeof *copy);
            finish(m);
            double now = judge(m);
            bool better = now > best;
            if (better) {
                best = now;
                kept_count = m->spot_count;
                toile_free(m->memory, kept);
                kept = copy;
                copy = NULL;
            }
            int old = m->spot_count;
            if (change_points(m, out) == 0)
                round = ROUNDS;
            fine = apply_changes(m, out, old);
        }
        toile_free(m->memory, out);
        toile_free(m->memory, copy);
    }
    if (fine) {
        memcpy(m->spots, kept, (size_t)kept_count * sizeof *kept);
        m->spot_count = kept_count;
        fine = triangulate(m);
        if (fine)
            finish(m);
    }
    toile_free(m->memory, kept);
    return fine;
}

/* ---- the result ---- */

static bool take_out(mesher *m, toile_panel_mesh *mesh) {
    const toile_delaunay *d = &m->d;
    mesh->vertex_count = m->border + m->spot_count;
    for (int t = 0; t < d->triangle_count; t++)
        mesh->triangle_count += d->triangles[t].inside;
    mesh->points = toile_alloc(m->memory, (size_t)mesh->vertex_count, 2 * sizeof *mesh->points);
    mesh->triangles = toile_alloc(m->memory, (size_t)mesh->triangle_count, 3 * sizeof *mesh->triangles);
    if (!mesh->points || !mesh->triangles)
        return fail(m, TOILE_PANEL_NO_MEMORY, 0, 0);
    memcpy(mesh->points, m->shape->points, 2 * (size_t)m->border * sizeof *mesh->points);
    for (int i = m->border; i < mesh->vertex_count; i++) {
        double p[2];
        place_of(m, TOILE_DELAUNAY_FIRST + i, p);
        for (int k = 0; k < 2; k++)
            p[k] = p[k] / m->scale + m->low[k];
        mesh->points[2 * (size_t)i] = m->turn[0] * p[0] - m->turn[1] * p[1];
        mesh->points[2 * (size_t)i + 1] = m->turn[1] * p[0] + m->turn[0] * p[1];
    }
    double least = 1;
    int *to = mesh->triangles;
    for (int t = 0; t < d->triangle_count; t++) {
        if (!d->triangles[t].inside)
            continue;
        least = fmin(least, sine_of(m, t));
        for (int k = 0; k < 3; k++)
            *to++ = d->triangles[t].v[k] - TOILE_DELAUNAY_FIRST;
    }
    mesh->smallest_angle = asin(fmax(0, fmin(1, least))) * 180 / M_PI;
    return true;
}

toile_panel_fault toile_panel_mesh_make(toile_memory *memory, const toile_panel_shape *shape, toile_panel_mesh *mesh) {
    mesher m = {.memory = memory, .shape = shape};
    memset(mesh, 0, sizeof *mesh);
    for (int i = 0; i < shape->loop_count; i++)
        m.border += shape->loop_sizes[i];
    if (m.border > TOILE_PANEL_MOST)
        fail(&m, TOILE_PANEL_TOO_FINE, 0, 0);
    else if (lay_out(&m) && sort_segments(&m) && make_grid(&m) && improve(&m))
        take_out(&m, mesh);
    toile_delaunay_free(&m.d);
    toile_free(memory, m.flat);
    toile_free(memory, m.after);
    toile_free(memory, m.bin_begin);
    toile_free(memory, m.bin_finest);
    toile_free(memory, m.bin_items);
    toile_free(memory, m.spots);
    if (m.fault.kind != TOILE_PANEL_FINE)
        toile_panel_mesh_free(memory, mesh);
    return m.fault;
}

void toile_panel_mesh_free(toile_memory *memory, toile_panel_mesh *mesh) {
    toile_free(memory, mesh->points);
    toile_free(memory, mesh->triangles);
    memset(mesh, 0, sizeof *mesh);
}
