#include "pcg.h"

#include "barrier.h"
#include "solve_stop.h"

#include <math.h>
#include <omp.h>
#include <string.h>

toile_status toile_pcg_make(toile_memory *memory, const toile_pattern *pattern, toile_pcg *pcg,
                            toile_error *error) {
    double **fields[] = {&pcg->y, &pcg->right, &pcg->plain, &pcg->r, &pcg->p, &pcg->s, &pcg->q};
    bool ok = true;
    memset(pcg, 0, sizeof *pcg);
    pcg->memory = memory;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        ok = (*fields[i] = toile_alloc(memory, 3 * (size_t)pattern->n, sizeof(double))) && ok;
    ok = (pcg->partial = toile_alloc(memory, 4 * (size_t)pattern->chunk_count, sizeof(double))) && ok;
    if (ok)
        return TOILE_OK;
    toile_pcg_free(pcg);
    return toile_fail_memory(error, "the vectors of the linear solver");
}

void toile_pcg_free(toile_pcg *pcg) {
    if (!pcg->memory)
        return;
    double *blocks[] = {pcg->y, pcg->right, pcg->plain, pcg->r, pcg->p, pcg->s, pcg->q, pcg->partial};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        toile_free(pcg->memory, blocks[i]);
    memset(pcg, 0, sizeof *pcg);
}

/* What one thread of the team knows. Sums are made per chunk, and added in order by every thread for itself.
 */
typedef struct worker {
    toile_pcg *pcg;
    const toile_reduced *matrix;
    toile_barrier *barrier;
    const int *bounds; /* particles of the chunks */
    int chunks, mine, mine_end, thread;
    bool *sound; /* of the preconditioner, shared */
} worker;

#define FOR_MY_CHUNKS(w, c) for (int c = (w)->mine; c < (w)->mine_end; c++)
#define FOR_ROWS(w, c, i)                                                                                    \
    for (int i = (w)->matrix->first[(w)->bounds[c]]; i < (w)->matrix->first[(w)->bounds[(c) + 1]]; i++)

static double sum_of(const worker *w, const double *partial) {
    double sum = 0;
    for (int c = 0; c < w->chunks; c++)
        sum += partial[c];
    return sum;
}

/* out = U' A U in, for the whole team. */
static void multiply(const worker *w, const double *in, double *out) {
    FOR_MY_CHUNKS(w, c) toile_reduced_multiply(w->matrix, c, in, out);
    toile_barrier_wait(w->barrier);
    FOR_MY_CHUNKS(w, c) toile_reduced_multiply_spill(w->matrix, c, out);
}

/* out = P^-1 r; returns r' P^-1 r. */
static double precondition(const worker *w, const double *r, double *out, double *partial) {
    toile_pcg *pcg = w->pcg;
    if (!pcg->chunk) {
        toile_barrier_wait(w->barrier);
        if (w->thread == 0)
            *w->sound = pcg->whole(pcg->self, r, out) && *w->sound;
        toile_barrier_wait(w->barrier);
    }
    FOR_MY_CHUNKS(w, c) {
        if (pcg->chunk)
            pcg->chunk(pcg->self, c, r, out);
        double sum = 0;
        FOR_ROWS(w, c, i) sum += r[i] * out[i];
        partial[c] = sum;
    }
    toile_barrier_wait(w->barrier);
    return sum_of(w, partial);
}

typedef struct outcome {
    int iterations, products;
    bool converged;
} outcome;

/* `energy` is that of the constrained directions alone. */
static outcome iterate(const worker *w, const toile_system *system, double energy) {
    toile_pcg *pcg = w->pcg;
    double *y = pcg->y, *r = pcg->r, *p = pcg->p, *s = pcg->s, *q = pcg->q;
    double *sum_a = pcg->partial, *sum_b = sum_a + w->chunks, *sum_c = sum_b + w->chunks,
           *sum_d = sum_c + w->chunks;

    /* r = right - A~ y, and |x|_A^2 = y' (A~ y + 2 U' A (I - S) z) + that of (I - S) z */
    multiply(w, y, s);
    FOR_MY_CHUNKS(w, c) {
        double sum = 0;
        FOR_ROWS(w, c, i) {
            sum += y[i] * (s[i] + 2 * (pcg->plain[i] - pcg->right[i]));
            r[i] = pcg->right[i] - s[i];
        }
        sum_c[c] = sum;
    }
    double delta = precondition(w, r, p, sum_a);
    toile_stop stop = toile_stop_begin(system->tolerance, energy + sum_of(w, sum_c));
    outcome out = {0, 1, toile_stop_at_once(delta)};
    bool sound = delta == delta;
    while (sound && !out.converged && out.iterations < system->iterations_max) {
        toile_barrier_wait(w->barrier); /* sum_c has been read */
        multiply(w, p, s);
        FOR_MY_CHUNKS(w, c) {
            double curvature = 0, along = 0;
            FOR_ROWS(w, c, i) {
                curvature += p[i] * s[i];
                along += p[i] * pcg->plain[i];
            }
            sum_c[c] = curvature;
            sum_d[c] = along;
        }
        toile_barrier_wait(w->barrier);
        double curvature = sum_of(w, sum_c), pb = sum_of(w, sum_d);
        out.iterations++;
        out.products++;
        sound = curvature > 0; /* false for NaN too */
        double alpha = sound ? delta / curvature : 0;
        FOR_MY_CHUNKS(w, c) FOR_ROWS(w, c, i) {
            y[i] += alpha * p[i];
            r[i] -= alpha * s[i];
        }
        double last = delta;
        out.converged = sound && toile_stop_step(&stop, alpha, delta, pb);
        if (out.converged)
            break;
        delta = precondition(w, r, q,
                             out.iterations & 1 ? sum_b : sum_a); /* in turn: the other may still be read */
        sound = sound && delta == delta && *w->sound;
        out.converged = sound && toile_stop_at_once(delta);
        double beta = delta / last;
        FOR_MY_CHUNKS(w, c) FOR_ROWS(w, c, i) p[i] = q[i] + beta * p[i];
    }
    return out;
}

void toile_pcg_solve(toile_pcg *pcg, toile_reduced *matrix, toile_system *system) {
    const toile_pattern *pattern = matrix->pattern;
    int chunks = pattern->chunk_count, threads = system->threads < chunks ? system->threads : chunks;
    double energy;
    bool sound = true;
    outcome result = {0};
    toile_barrier barrier = {0};

    system->components = 1;
    system->row_multiplies =
        toile_reduced_right_side(matrix, system->kernels, system->matrix, system->constraints, system->b,
                                 pcg->right, &energy, system->threads);
    toile_reduced_restrict(matrix, system->b, pcg->plain);
    toile_reduced_restrict(matrix, system->x, pcg->y);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        int thread = omp_get_thread_num(), team = omp_get_num_threads();
#pragma omp single
        barrier.threads = team; /* may be fewer than asked for */
        worker w = {.pcg = pcg,
                    .matrix = matrix,
                    .barrier = &barrier,
                    .bounds = pattern->chunk_begin,
                    .chunks = chunks,
                    .mine = chunks * thread / team,
                    .mine_end = chunks * (thread + 1) / team,
                    .thread = thread,
                    .sound = &sound};
        outcome own = iterate(&w, system, energy);
        if (thread == 0) /* all threads have the same numbers */
            result = own;
    }
    for (int i = 0; i < matrix->size; i++)
        result.converged = result.converged && isfinite(pcg->y[i]);
    toile_reduced_expand(matrix, system->constraints, pcg->y, system->x);
    system->iterations = result.iterations;
    system->row_multiplies += (int64_t)result.products * ((matrix->size + 2) / 3);
    system->converged = result.converged;
}
