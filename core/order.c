#include "order.h"

/* Breadth first from `root` into queue[0..], neighbours by ascending degree (ties by index). Returns the number
 * reached, and the first position of the last level. `mark` holds `stamp` for the reached. */
static int sweep(int root, const int *begin, const int *neighbour, int *queue, int *mark, int stamp, int *last_level) {
    int head = 0, tail = 0, level_end = 1;
    queue[tail++] = root;
    mark[root] = stamp;
    *last_level = 0;
    while (head < tail) {
        if (head == level_end) {
            *last_level = head;
            level_end = tail;
        }
        int v = queue[head++], first = tail;
        for (int k = begin[v]; k < begin[v + 1]; k++)
            if (mark[neighbour[k]] != stamp) {
                mark[neighbour[k]] = stamp;
                queue[tail++] = neighbour[k];
            }
        for (int i = first + 1; i < tail; i++) { /* insertion sort: a particle has a dozen neighbours */
            int w = queue[i], degree = begin[w + 1] - begin[w], j = i;
            for (; j > first; j--) {
                int u = queue[j - 1], du = begin[u + 1] - begin[u];
                if (du < degree || (du == degree && u < w))
                    break;
                queue[j] = u;
            }
            queue[j] = w;
        }
    }
    return tail;
}

bool toile_order_rcm(toile_memory *memory, int n, const int *begin, const int *neighbour, int *place) {
    int *queue = toile_alloc(memory, (size_t)n, sizeof(int));
    int *mark = toile_alloc(memory, (size_t)n, sizeof(int));
    int *done = toile_alloc(memory, (size_t)n, sizeof(int));
    bool ok = queue && mark && done;
    int stamp = 0, placed = 0;
    for (int seed = 0; ok && seed < n; seed++) {
        if (done[seed])
            continue;
        /* walk to the far end twice: a particle whose distance to the rest is nearly the largest */
        int root = seed, last = 0, count = 0;
        for (int turn = 0; turn < 3; turn++) {
            count = sweep(root, begin, neighbour, queue, mark, ++stamp, &last);
            int best = queue[last];
            for (int i = last; i < count; i++)
                if (begin[queue[i] + 1] - begin[queue[i]] < begin[best + 1] - begin[best])
                    best = queue[i];
            root = best;
        }
        count = sweep(root, begin, neighbour, queue, mark, ++stamp, &last);
        for (int i = 0; i < count; i++) {
            done[queue[i]] = 1;
            place[queue[i]] = n - 1 - placed++; /* reversed */
        }
    }
    toile_free(memory, queue);
    toile_free(memory, mark);
    toile_free(memory, done);
    return ok;
}
