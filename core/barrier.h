/* A barrier for the threads of one solve. libgomp's own spins for milliseconds when a thread of the team has lost its
 * processor to another program; on a busy machine that made a solve 30 times slower. This one spins for a few
 * microseconds and then sleeps. */
#ifndef TOILE_BARRIER_H
#define TOILE_BARRIER_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct toile_barrier {
    atomic_int waiting, round;
    int threads;
} toile_barrier;

enum { TOILE_BARRIER_SPINS = 2000 };

static inline void toile_barrier_wait(toile_barrier *b) {
    if (b->threads == 1)
        return;
    int round = atomic_load_explicit(&b->round, memory_order_acquire);
    if (atomic_fetch_add_explicit(&b->waiting, 1, memory_order_acq_rel) == b->threads - 1) {
        atomic_store_explicit(&b->waiting, 0, memory_order_relaxed);
        atomic_fetch_add_explicit(&b->round, 1, memory_order_release);
        syscall(SYS_futex, &b->round, FUTEX_WAKE_PRIVATE, b->threads, NULL, NULL, 0);
        return;
    }
    for (int spin = 0; spin < TOILE_BARRIER_SPINS; spin++) {
        if (atomic_load_explicit(&b->round, memory_order_acquire) != round)
            return;
        __builtin_ia32_pause();
    }
    while (atomic_load_explicit(&b->round, memory_order_acquire) == round)
        syscall(SYS_futex, &b->round, FUTEX_WAIT_PRIVATE, round, NULL, NULL, 0);
}

#endif
