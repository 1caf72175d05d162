/* Union-find over indices: parent[i] = i at first; the smallest of a set stands for it. */
#ifndef TOILE_JOIN_H
#define TOILE_JOIN_H

static inline int toile_join_find(int *parent, int i) {
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static inline void toile_join(int *parent, int a, int b) {
    a = toile_join_find(parent, a);
    b = toile_join_find(parent, b);
    parent[a > b ? a : b] = a > b ? b : a;
}

#endif
