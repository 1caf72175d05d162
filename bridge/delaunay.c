#include "delaunay.h"

#include <stddef.h>
#include <string.h>

typedef toile_delaunay_triangle triangle;

#define NEXT(i) ((i) == 2 ? 0 : (i) + 1)
#define BEFORE(i) ((i) == 0 ? 2 : (i)-1)

/* ---- exact tests ---- */

static int64_t side(const int32_t a[2], const int32_t b[2], const int32_t c[2]) {
    return ((int64_t)b[0] - a[0]) * ((int64_t)c[1] - a[1]) - ((int64_t)b[1] - a[1]) * ((int64_t)c[0] - a[0]);
}

int64_t toile_delaunay_side(const toile_delaunay *d, int a, int b, int c) {
    return side(d->points[a], d->points[b], d->points[c]);
}

/* Whether d is inside the circle through a, b, c, which are counter-clockwise. Differences are below 2^28, so every
 * product of four is below 2^114. */
static bool in_circle(const int32_t a[2], const int32_t b[2], const int32_t c[2], const int32_t d[2]) {
    int64_t ax = (int64_t)a[0] - d[0], ay = (int64_t)a[1] - d[1];
    int64_t bx = (int64_t)b[0] - d[0], by = (int64_t)b[1] - d[1];
    int64_t cx = (int64_t)c[0] - d[0], cy = (int64_t)c[1] - d[1];
    __extension__ typedef __int128 wide;
    wide sum = (wide)(ax * ax + ay * ay) * (bx * cy - by * cx) + (wide)(bx * bx + by * by) * (cx * ay - cy * ax) +
               (wide)(cx * cx + cy * cy) * (ax * by - ay * bx);
    return sum > 0;
}

/* ---- making ---- */

bool toile_delaunay_make(toile_memory *memory, int points, toile_delaunay *d) {
    memset(d, 0, sizeof *d);
    size_t room = (size_t)points + TOILE_DELAUNAY_FIRST;
    d->memory = memory;
    d->point_room = (int)room;
    d->points = toile_alloc(memory, room, sizeof *d->points);
    d->any = toile_alloc(memory, room, sizeof *d->any);
    d->triangles = toile_alloc(memory, 2 * room, sizeof *d->triangles); /* Euler: 2 (points - 1) - 4 of the hull */
    d->stack_room = 64;
    d->stack = toile_alloc(memory, (size_t)d->stack_room, sizeof *d->stack);
    if (!d->points || !d->any || !d->triangles || !d->stack) {
        toile_delaunay_free(d);
        return false;
    }
    static const int32_t CORNERS[4][2] = {{-TOILE_LATTICE, -TOILE_LATTICE},
                                          {2 * TOILE_LATTICE, -TOILE_LATTICE},
                                          {2 * TOILE_LATTICE, 2 * TOILE_LATTICE},
                                          {-TOILE_LATTICE, 2 * TOILE_LATTICE}};
    memcpy(d->points, CORNERS, sizeof CORNERS);
    d->point_count = 4;
    d->triangles[0] = (triangle){.v = {0, 1, 2}, .next = {-1, 1, -1}};
    d->triangles[1] = (triangle){.v = {0, 2, 3}, .next = {-1, -1, 0}};
    d->triangle_count = 2;
    d->any[3] = 1;
    return true;
}

void toile_delaunay_free(toile_delaunay *d) {
    if (!d->memory)
        return;
    toile_free(d->memory, d->points);
    toile_free(d->memory, d->any);
    toile_free(d->memory, d->triangles);
    toile_free(d->memory, d->stack);
    memset(d, 0, sizeof *d);
}

/* ---- neighbours ---- */

/* The corner of `t` that is opposite of its neighbour `of`. */
static int corner_towards(const triangle *t, int of) {
    return t->next[0] == of ? 0 : t->next[1] == of ? 1 : 2;
}

static void relink(toile_delaunay *d, int at, int from, int to) {
    if (at >= 0)
        d->triangles[at].next[corner_towards(&d->triangles[at], from)] = to;
}

static void remember(toile_delaunay *d, int t) {
    for (int k = 0; k < 3; k++)
        d->any[d->triangles[t].v[k]] = t;
}

int toile_delaunay_around(const toile_delaunay *d, int point, int *list, int room) {
    int begin = d->any[point], t = begin, count = 0;
    do {
        if (count == room)
            return 0;
        list[count++] = t;
        const triangle *at = &d->triangles[t];
        t = at->next[NEXT(toile_corner_of(at, point))]; /* across the edge from the point to the last corner */
    } while (t != begin && t >= 0);
    return count;
}

int toile_delaunay_edge(const toile_delaunay *d, int a, int b, int *corner) {
    int begin = d->any[a], t = begin;
    do {
        const triangle *at = &d->triangles[t];
        int k = toile_corner_of(at, a);
        if (at->v[NEXT(k)] == b) {
            *corner = BEFORE(k);
            return t;
        }
        t = at->next[NEXT(k)];
    } while (t != begin && t >= 0);
    /* Only corners of the square have an open circle of triangles: look the other way too. */
    for (t = t < 0 ? d->triangles[begin].next[BEFORE(toile_corner_of(&d->triangles[begin], a))] : -1; t >= 0;) {
        const triangle *at = &d->triangles[t];
        int k = toile_corner_of(at, a);
        if (at->v[NEXT(k)] == b) {
            *corner = BEFORE(k);
            return t;
        }
        t = at->next[BEFORE(k)];
    }
    return -1;
}

/* ---- flips ---- */

void toile_delaunay_push(toile_delaunay *d, int t, int corner) {
    if (d->stack_count == d->stack_room) {
        int *grown = toile_grow(d->memory, d->stack, (size_t)d->stack_room, 2 * (size_t)d->stack_room, sizeof *grown);
        if (!grown) {
            d->failed = true;
            return;
        }
        d->stack = grown;
        d->stack_room *= 2;
    }
    d->stack[d->stack_count++] = 3 * t + corner;
}

/* Triangles (p, q, r) and (s, r, q) on both sides of q r become (p, q, s) and (p, s, r). */
void toile_delaunay_flip(toile_delaunay *d, int t, int corner) {
    triangle *a = &d->triangles[t];
    int u = a->next[corner];
    triangle *b = &d->triangles[u];
    int i = corner, j = corner_towards(b, t);
    int p = a->v[i], q = a->v[NEXT(i)], r = a->v[BEFORE(i)], s = b->v[j];
    int pq = a->next[BEFORE(i)], rp = a->next[NEXT(i)], sr = b->next[BEFORE(j)], qs = b->next[NEXT(j)];
    bool pq_fixed = a->fixed[BEFORE(i)], rp_fixed = a->fixed[NEXT(i)], sr_fixed = b->fixed[BEFORE(j)],
         qs_fixed = b->fixed[NEXT(j)];
    *a = (triangle){.v = {p, q, s}, .next = {qs, u, pq}, .fixed = {qs_fixed, false, pq_fixed}, .inside = a->inside};
    *b = (triangle){.v = {p, s, r}, .next = {sr, rp, t}, .fixed = {sr_fixed, rp_fixed, false}, .inside = b->inside};
    relink(d, qs, u, t);
    relink(d, rp, t, u);
    remember(d, t);
    remember(d, u);
}

/* Whether the edge opposite of the corner may and should be flipped. */
static bool should_flip(const toile_delaunay *d, int t, int corner) {
    const triangle *a = &d->triangles[t];
    int u = a->next[corner];
    if (u < 0 || a->fixed[corner])
        return false;
    const triangle *b = &d->triangles[u];
    return in_circle(d->points[a->v[0]], d->points[a->v[1]], d->points[a->v[2]],
                     d->points[b->v[corner_towards(b, t)]]);
}

void toile_delaunay_restore(toile_delaunay *d) {
    while (d->stack_count > 0) {
        int edge = d->stack[--d->stack_count], t = edge / 3, corner = edge % 3;
        if (!should_flip(d, t, corner))
            continue;
        int u = d->triangles[t].next[corner];
        toile_delaunay_flip(d, t, corner);
        toile_delaunay_push(d, t, 0);
        toile_delaunay_push(d, t, 2);
        toile_delaunay_push(d, u, 0);
        toile_delaunay_push(d, u, 1);
    }
}

void toile_delaunay_restore_all(toile_delaunay *d) {
    for (int t = 0; t < d->triangle_count; t++)
        for (int k = 0; k < 3; k++) {
            toile_delaunay_push(d, t, k);
            toile_delaunay_restore(d);
        }
}

/* ---- points ---- */

/* The triangle that a point is in or on, by walking towards it. A walk that takes too long, which only happens when
 * triangles are far from Delaunay, becomes a search through all of them. */
static int locate(const toile_delaunay *d, const int32_t p[2]) {
    int t = d->last;
    for (int steps = 0; steps < 4 * d->triangle_count; steps++) {
        const triangle *at = &d->triangles[t];
        int away = -1;
        for (int k = 0; k < 3 && away < 0; k++)
            if (side(d->points[at->v[NEXT(k)]], d->points[at->v[BEFORE(k)]], p) < 0)
                away = at->next[k];
        if (away < 0)
            return t;
        t = away;
    }
    for (t = 0; t < d->triangle_count; t++) {
        const int *v = d->triangles[t].v;
        if (side(d->points[v[0]], d->points[v[1]], p) >= 0 && side(d->points[v[1]], d->points[v[2]], p) >= 0 &&
            side(d->points[v[2]], d->points[v[0]], p) >= 0)
            break;
    }
    return t;
}

/* One triangle becomes three around the point. */
static void split_triangle(toile_delaunay *d, int t, int point) {
    int u = d->triangle_count, w = u + 1;
    d->triangle_count += 2;
    triangle old = d->triangles[t];
    const int *v = old.v;
    d->triangles[t] = (triangle){{v[0], v[1], point}, {u, w, old.next[2]}, {false, false, old.fixed[2]}, old.inside};
    d->triangles[u] = (triangle){{v[1], v[2], point}, {w, t, old.next[0]}, {false, false, old.fixed[0]}, old.inside};
    d->triangles[w] = (triangle){{v[2], v[0], point}, {t, u, old.next[1]}, {false, false, old.fixed[1]}, old.inside};
    relink(d, old.next[0], t, u);
    relink(d, old.next[1], t, w);
    int made[3] = {t, u, w};
    for (int k = 0; k < 3; k++) {
        remember(d, made[k]);
        toile_delaunay_push(d, made[k], 2);
    }
}

/* The two triangles at an edge become four around the point on it. */
static void split_edge(toile_delaunay *d, int t, int corner, int point) {
    int u = d->triangles[t].next[corner];
    triangle a = d->triangles[t], b = d->triangles[u];
    int i = corner, j = corner_towards(&b, t), ta = d->triangle_count, ub = ta + 1;
    d->triangle_count += 2;
    int p = a.v[i], q = a.v[NEXT(i)], r = a.v[BEFORE(i)], s = b.v[j];
    bool fixed = a.fixed[i];
    /* (p, q, point), (p, point, r) on one side, (s, r, point), (s, point, q) on the other */
    d->triangles[t] = (triangle){{p, q, point}, {ub, ta, a.next[BEFORE(i)]}, {fixed, false, a.fixed[BEFORE(i)]}, a.inside};
    d->triangles[ta] = (triangle){{p, point, r}, {u, a.next[NEXT(i)], t}, {fixed, a.fixed[NEXT(i)], false}, a.inside};
    d->triangles[u] = (triangle){{s, r, point}, {ta, ub, b.next[BEFORE(j)]}, {fixed, false, b.fixed[BEFORE(j)]}, b.inside};
    d->triangles[ub] = (triangle){{s, point, q}, {t, b.next[NEXT(j)], u}, {fixed, b.fixed[NEXT(j)], false}, b.inside};
    relink(d, a.next[NEXT(i)], t, ta);
    relink(d, b.next[NEXT(j)], u, ub);
    int made[4] = {t, ta, u, ub}, outer[4] = {2, 1, 2, 1};
    for (int k = 0; k < 4; k++) {
        remember(d, made[k]);
        toile_delaunay_push(d, made[k], outer[k]);
    }
}

int toile_delaunay_insert(toile_delaunay *d, int point, const int32_t p[2], bool only_inside) {
    int t = locate(d, p), on = -1;
    const triangle *at = &d->triangles[t];
    d->last = t;
    for (int k = 0; k < 3; k++)
        if (memcmp(d->points[at->v[k]], p, sizeof d->points[0]) == 0)
            return at->v[k];
    for (int k = 0; k < 3; k++)
        if (side(d->points[at->v[NEXT(k)]], d->points[at->v[BEFORE(k)]], p) == 0)
            on = k;
    if (only_inside && (!at->inside || (on >= 0 && at->fixed[on])))
        return -1;
    d->point_count = point < d->point_count ? d->point_count : point + 1;
    memcpy(d->points[point], p, sizeof d->points[0]);
    if (on >= 0)
        split_edge(d, t, on, point);
    else
        split_triangle(d, t, point);
    toile_delaunay_restore(d);
    return point;
}

/* ---- segments ---- */

static void fix(toile_delaunay *d, int t, int corner) {
    triangle *a = &d->triangles[t];
    a->fixed[corner] = true;
    if (a->next[corner] >= 0)
        d->triangles[a->next[corner]].fixed[corner_towards(&d->triangles[a->next[corner]], t)] = true;
}

/* The first edge that the way from a to b crosses, as triangle and corner (a). False: it goes through a point. */
static bool first_crossed(const toile_delaunay *d, int a, int b, int *t, int *corner, int *through) {
    int begin = d->any[a];
    *t = begin;
    do {
        const triangle *at = &d->triangles[*t];
        int k = toile_corner_of(at, a);
        int q = at->v[NEXT(k)], r = at->v[BEFORE(k)];
        int64_t right = toile_delaunay_side(d, a, b, q), left = toile_delaunay_side(d, a, b, r);
        const int32_t *pa = d->points[a], *pb = d->points[b], *pq = d->points[q];
        int64_t ahead = ((int64_t)pb[0] - pa[0]) * ((int64_t)pq[0] - pa[0]) +
                        ((int64_t)pb[1] - pa[1]) * ((int64_t)pq[1] - pa[1]);
        if (right == 0 && ahead > 0) {
            *through = q;
            return false;
        }
        if (right < 0 && left > 0) {
            *corner = k;
            return true;
        }
        *t = at->next[NEXT(k)];
    } while (*t != begin);
    *through = a;
    return false;
}

static void push_pair(toile_delaunay *d, int a, int b) {
    toile_delaunay_push(d, 0, a);
    toile_delaunay_push(d, 0, b);
}

/* Puts the edges between a and b on the stack as pairs of points. False if a point or a segment is in the way. */
static bool list_crossed(toile_delaunay *d, int a, int b, int meets[2]) {
    int t, k;
    if (!first_crossed(d, a, b, &t, &k, &meets[0]))
        return false;
    for (;;) {
        const triangle *at = &d->triangles[t];
        int q = at->v[NEXT(k)], r = at->v[BEFORE(k)], u = at->next[k];
        if (at->fixed[k]) {
            meets[0] = q;
            meets[1] = r;
            return false;
        }
        push_pair(d, q, r);
        const triangle *n = &d->triangles[u];
        int s = n->v[corner_towards(n, t)];
        if (s == b)
            return true;
        int64_t where = toile_delaunay_side(d, a, b, s);
        if (where == 0) {
            meets[0] = s;
            return false;
        }
        k = toile_corner_of(n, where > 0 ? r : q); /* s takes the place of the one on its side */
        t = u;
    }
}

/* Flips the edges on the stack until none crosses a b. One that cannot be flipped yet, or still crosses, goes to the
 * end of the line (Sloan 1993). */
static bool clear_way(toile_delaunay *d, int a, int b) {
    int count = d->stack_count / 2;
    long long patience = 64 + 4LL * count * count;
    for (int first = 0; 2 * first < d->stack_count && !d->failed; first++) {
        int q = d->stack[2 * first], r = d->stack[2 * first + 1], k, t = toile_delaunay_edge(d, q, r, &k);
        if (--patience < 0 || t < 0)
            return false;
        int u = d->triangles[t].next[k], p = d->triangles[t].v[k];
        int s = d->triangles[u].v[corner_towards(&d->triangles[u], t)];
        if (toile_delaunay_side(d, p, q, s) > 0 && toile_delaunay_side(d, p, s, r) > 0) {
            toile_delaunay_flip(d, t, k);
            bool ends = p == a || p == b || s == a || s == b;
            int64_t x = toile_delaunay_side(d, a, b, p), y = toile_delaunay_side(d, a, b, s);
            if (!ends && ((x > 0) != (y > 0)))
                push_pair(d, p, s);
        } else {
            push_pair(d, q, r);
        }
    }
    return !d->failed;
}

bool toile_delaunay_segment(toile_delaunay *d, int a, int b, int meets[2]) {
    int corner, t = toile_delaunay_edge(d, a, b, &corner);
    meets[0] = meets[1] = -1;
    if (t < 0) {
        d->stack_count = 0;
        bool clear = list_crossed(d, a, b, meets) && clear_way(d, a, b);
        d->stack_count = 0;
        t = clear ? toile_delaunay_edge(d, a, b, &corner) : -1;
    }
    if (t >= 0)
        fix(d, t, corner);
    return t >= 0;
}

void toile_delaunay_fill(toile_delaunay *d) {
    /* Two lists: triangles of this region, and those behind its segments, which begin the next. */
    for (int t = 0; t < d->triangle_count; t++)
        d->triangles[t].inside = false;
    int *list = toile_alloc(d->memory, 2 * (size_t)d->triangle_count, sizeof *list);
    unsigned char *seen = toile_alloc(d->memory, (size_t)d->triangle_count, 1);
    if (!list || !seen) {
        d->failed = true;
        goto out;
    }
    int *ahead = list + d->triangle_count, count = 1, later = 0;
    list[0] = d->any[0];
    seen[list[0]] = 1;
    for (bool inside = false; count > 0; inside = !inside) {
        for (; count > 0;) {
            int t = list[--count];
            d->triangles[t].inside = inside;
            for (int k = 0; k < 3; k++) {
                int u = d->triangles[t].next[k];
                if (u < 0 || seen[u])
                    continue;
                if (d->triangles[t].fixed[k]) {
                    ahead[later++] = u;
                    seen[u] = 2;
                } else {
                    list[count++] = u;
                    seen[u] = 1;
                }
            }
        }
        for (int i = 0; i < later; i++)
            list[count++] = ahead[i];
        later = 0;
    }
out:
    toile_free(d->memory, list);
    toile_free(d->memory, seen);
}
