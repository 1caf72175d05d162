/* A step, from top to bottom. Which way it goes forward in time is the integrator's (integrate.h); the usual one is
 * semi-implicit backward Euler of Baraff-Witkin 1998 eq. 18,
 *
 *   (M - h df/dv - h^2 df/dx) dv = h (f + df/dx (h v + y)),    x += h (v + dv) + y,    v += dv,
 *
 * with constraints S and z in the solve, and the step length of their section 7. The result goes to spare buffers; only
 * commit changes the state, so a rejected step leaves no trace.
 *
 * Between the solve and the commit the candidate next_x may still be changed: elements that only the linear step has
 * overstretched are brought back (limit.h), and cloth is kept off cloth, which may also ask for a shorter step (self.h). */
#include "integrate.h"

#include "limit.h"
#include "pin.h"
#include "rest.h"
#include "sew.h"
#include "stability.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* The longest wait between attempts at a longer step (Baraff-Witkin section 7). */
#define PATIENCE_MAX 40

/* How often a step is solved again because free particles would end inside a collider. */
#define CONTACT_PASSES 4

/* How often a candidate's overstretched elements are brought back before the step is cut. */
#define LIMIT_ROUNDS 12

/* How often a candidate that the guard has overstretched is brought back and guarded again before the step is cut. */
#define GUARD_ROUNDS 3

/* Steps of time_step / 2 to this power after one that had no answer: if they have none either, that is soon known. */
#define LEVEL_AFTER_REST 4

typedef enum verdict { ACCEPTED, REJECTED, BROKEN } verdict;

double toile_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void end_stage(toile_sim *sim, toile_stage_index stage, double *clock) {
    double now = toile_clock();
    sim->frame.stages[stage] += now - *clock;
    *clock = now;
}

/* ---- stages ---- */

/* Largest stretch, and largest change of it against the state's, over all triangles or stretch connections. */
static void measure_stretch(toile_sim *sim, const double *x, const double *before, double *now, double *change,
                            double *largest) {
    const toile_model *m = sim->model;
    int count = toile_stretch_elements(m);
    double *extreme = sim->work.extreme;
#define END(count) (e + TOILE_STRETCH_BLOCK < count ? e + TOILE_STRETCH_BLOCK : count)
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1)
    for (int e = 0; e < count; e += TOILE_STRETCH_BLOCK) {
        double *own = extreme + 2 * (e / TOILE_STRETCH_BLOCK);
        own[0] = own[1] = 0;
        sim->kernels->stretch(m, x, e, END(count), before, now, &own[0], &own[1]);
    }
    *change = *largest = 0;
    for (int e = 0; e < count; e += TOILE_STRETCH_BLOCK) {
        const double *own = extreme + 2 * (e / TOILE_STRETCH_BLOCK);
        *change = own[0] > *change ? own[0] : *change;
        *largest = own[1] > *largest ? own[1] : *largest;
    }
}

/* Is the candidate finite, and has no stretch changed drastically? */
static verdict judge(toile_sim *sim, bool solved, double *change, double *largest) {
    toile_work *w = &sim->work;
    int broken = 0;
#pragma omp parallel for schedule(static) num_threads(sim->threads) if (sim->threads > 1) reduction(| : broken)
    for (int i = 0; i < 4 * sim->model->particle_count; i++)
        broken |= !(fabs(w->next_x[i]) < 1e7) || !(fabs(w->next_v[i]) < 1e7); /* true for NaN */
    if (broken)
        return BROKEN;
    measure_stretch(sim, w->next_x, w->stretch, w->next_stretch, change, largest);
    bool calm = *change <= sim->settings->stretch_change_max || toile_limit_excuses(sim);
    return solved && calm ? ACCEPTED : REJECTED;
}

static void swap(double **a, double **b) {
    double *t = *a;
    *a = *b;
    *b = t;
}

static void commit(toile_sim *sim, const toile_scheme *scheme) {
    toile_state *s = &sim->state;
    toile_work *w = &sim->work;
    swap(&s->x, &w->next_x);
    swap(&s->v, &w->next_v);
    swap(&s->dv, &w->solution);
    swap(&s->older, &w->solution);
    swap(&w->stretch, &w->next_stretch);
    s->time += scheme->h;
    toile_update_contacts(sim, w->r, scheme->reach);
    toile_remember(sim, scheme, w->next_x);
    toile_self_commit(sim);
}

static void count_step(toile_sim *sim, double h, bool forced, double largest_stretch) {
    toile_counters *f = &sim->frame;
    f->max_stretch = fmax(f->max_stretch, largest_stretch - 1);
    f->step_min = f->steps ? fmin(f->step_min, h) : h;
    f->step_max = fmax(f->step_max, h);
    f->steps++;
    f->forced += forced;
    f->limited += sim->work.stability.step < sim->settings->time_step;
    f->implicit_share += sim->work.stability.implicit_share;
}

/* ---- the three procedures (integrate.h); each leaves a candidate, false if it is not to be trusted ---- */

static bool step_linear(toile_sim *sim, const toile_scheme *s, double *clock) {
    toile_carry_over(sim, s);
    toile_evaluate(sim, s);
    end_stage(sim, STAGE_EVALUATE, clock);
    toile_assemble(sim, s);
    toile_self_assemble(sim);
    end_stage(sim, STAGE_ASSEMBLE, clock);
    bool solved = toile_solve_step(sim, s->reach);
    toile_propose(sim, s);
    end_stage(sim, STAGE_SOLVE, clock);
    return solved;
}

static bool step_explicit(toile_sim *sim, const toile_scheme *s, double *clock) {
    bool stable = toile_step_explicitly(sim, s);
    end_stage(sim, STAGE_EVALUATE, clock);
    return stable;
}

static bool step_newton(toile_sim *sim, const toile_scheme *s, double *clock) {
    bool balanced = false, moves = true;
    toile_newton_start(sim, s);
    for (int k = 0; moves && !(balanced = toile_newton_balanced(sim, s)) && k < sim->settings->newton_iterations_max; k++) {
        end_stage(sim, STAGE_EVALUATE, clock);
        toile_newton_assemble(sim, s);
        end_stage(sim, STAGE_ASSEMBLE, clock);
        moves = toile_solve_step(sim, s->h);
        end_stage(sim, STAGE_SOLVE, clock);
        moves = moves && toile_newton_advance(sim, s);
    }
    toile_newton_finish(sim, s);
    end_stage(sim, STAGE_EVALUATE, clock);
    return balanced;
}

/* ---- one step ---- */

/* Is a candidate worth going on with? What is rejected is not checked for contacts either: it may have flown apart, and then
 * everything meets everything. */
static bool worth(verdict v, bool last_chance) {
    return v == ACCEPTED || (v == REJECTED && last_chance);
}

/* Would the candidate end inside a collider, or pass through cloth or edges on its way? Then, unless it was the last pass, the
 * step is to be solved again with those contacts. */
static bool contacts_missed(toile_sim *sim, const toile_scheme *scheme, int pass, double *clock) {
    bool last = pass == CONTACT_PASSES;
    bool solids = !last && toile_find_missed(sim, scheme->h);
    end_stage(sim, STAGE_SOLID, clock);
    bool layers = toile_self_missed(sim, scheme->h, !last && scheme->procedure == TOILE_LINEAR);
    end_stage(sim, STAGE_SELF, clock);
    return solids || layers;
}

/* Is the candidate within its limits, if need be after elements were brought back? */
static verdict limit(toile_sim *sim, const toile_scheme *scheme, bool solved, double *change, double *largest) {
    verdict v = judge(sim, solved, change, largest);
    for (int k = 0; k < LIMIT_ROUNDS && solved && v != BROKEN && toile_limit_stretch(sim, scheme, *change); k++)
        v = judge(sim, solved, change, largest);
    return v;
}

/* Keeps cloth off cloth. What is pushed apart stretches a few elements beside it: brought back and checked again, most such steps need
 * not be cut. In a funnel (R4, frames 51 to 61) nearly all cut steps were cut for this, and the shorter ones had as many hits. And what is
 * beyond its fabric's limit and was let go by the solve is not to be stretched anew: of cloth that is pinched a few triangles stayed so at up
 * to 1.8 (R10b; 1.33 and 1.38 since). What is taken in any case has to end with the guard. */
static verdict guard(toile_sim *sim, const toile_scheme *scheme, verdict v, bool solved, bool last_chance, double *change,
                     double *largest) {
    int rounds = solved && !last_chance ? GUARD_ROUNDS : 0;
    if (sim->self.on && sim->self.hit_count)
        toile_limit_keep(sim);
    for (int round = 0;; round++) {
        bool clean = toile_self_guard(sim, scheme->h, scheme->h < 0.3 * sim->settings->time_step);
        if (!clean || sim->self.moved)
            v = judge(sim, solved && clean, change, largest);
        if (!clean || round == rounds || v == BROKEN || (v == ACCEPTED && !toile_limit_relax(sim, scheme)))
            return v;
        if (limit(sim, scheme, solved, change, largest) != ACCEPTED)
            return REJECTED;
        v = ACCEPTED;
        toile_self_missed(sim, scheme->h, false);
    }
}

static verdict step(toile_sim *sim, double h, bool last_chance) {
    static bool (*const PROCEDURES[])(toile_sim *, const toile_scheme *, double *) = {
        [TOILE_LINEAR] = step_linear, [TOILE_EXPLICIT] = step_explicit, [TOILE_NEWTON] = step_newton};
    double clock = toile_clock(), change = 0, largest = 0;
    toile_scheme scheme = toile_scheme_of(sim, h);
    bool solved = false;

    toile_set_shares(sim, h);
    toile_find_contacts(sim, h);
    end_stage(sim, STAGE_SOLID, &clock);
    toile_self_look(sim, h);
    toile_pinch_find(sim, h);
    toile_self_find(sim, h, scheme.procedure == TOILE_LINEAR);
    toile_tangle_pull(sim, h, scheme.procedure == TOILE_LINEAR);
    end_stage(sim, STAGE_SELF, &clock);
    toile_limit_begin(sim);
    toile_guess(sim, &scheme);
    verdict v;
    for (int pass = 0;; pass++) {
        toile_set_constraints(sim, h);
        end_stage(sim, STAGE_SOLID, &clock);
        solved = PROCEDURES[scheme.procedure](sim, &scheme, &clock);
        if (pass < CONTACT_PASSES && toile_hold_thrown(sim))
            continue;
        v = limit(sim, &scheme, solved, &change, &largest);
        end_stage(sim, STAGE_EVALUATE, &clock);
        if (!worth(v, last_chance) || !contacts_missed(sim, &scheme, pass, &clock))
            break;
    }
    if (worth(v, last_chance)) {
        v = guard(sim, &scheme, v, solved, last_chance, &change, &largest);
        end_stage(sim, STAGE_SELF, &clock);
    }

    if (sim->self.on && sim->self.skin.flooded)
        v = BROKEN;
    if (worth(v, last_chance)) {
        commit(sim, &scheme);
        count_step(sim, h, v == REJECTED, largest);
        v = ACCEPTED;
    } else {
        sim->frame.rejected++;
    }
    end_stage(sim, STAGE_EVALUATE, &clock);
    return v;
}

/* Growth of stretch, in parts of what is allowed, below which a longer step is tried at once, and above which it is not: growth
 * goes with the square of the step where cloth turns. */
#define GROWTH_SMALL 0.25
#define GROWTH_LARGE 0.35

/* The share of the blocks of elements that may grow by more: in a few places elements are brought back (limit.h). */
#define GROWTH_PLACES 0.1

typedef enum pace { CALM, LIVELY, FAST } pace;

/* How fast stretch grew in the last candidate, nearly everywhere. */
static pace pace_of(const toile_sim *sim) {
    double most = sim->settings->stretch_change_max;
    int blocks = (toile_stretch_elements(sim->model) + TOILE_STRETCH_BLOCK - 1) / TOILE_STRETCH_BLOCK, lively = 0, fast = 0;
    for (int b = 0; b < blocks; b++) {
        lively += sim->work.extreme[2 * b] >= GROWTH_SMALL * most;
        fast += sim->work.extreme[2 * b] >= GROWTH_LARGE * most;
    }
    int few = (int)(GROWTH_PLACES * blocks);
    return fast > few ? FAST : lively > few ? LIVELY : CALM;
}

/* Halve after a failure; after enough successes double again, and wait longer each time that fails. */
static void adapt(toile_state *s, verdict v, pace pace) {
    if (v != ACCEPTED) {
        if (s->trying)
            s->patience = s->patience * 2 > PATIENCE_MAX ? PATIENCE_MAX : s->patience * 2;
        s->level++;
        s->successes = 0;
        s->trying = 0;
        s->last_step = 0; /* what led here is no trend: a two-step method begins anew */
        return;
    }
    s->successes += pace == CALM ? s->patience : 1;
    if (s->trying) { /* the longer step held */
        s->trying = 0;
        s->patience = 2;
    }
    if (s->level > 0 && s->successes >= s->patience && pace != FAST) {
        s->level--;
        s->successes = 0;
        s->trying = 1;
    }
}

static void add_counters(toile_counters *total, const toile_counters *frame) {
    total->frames++;
    total->steps += frame->steps;
    total->rejected += frame->rejected;
    total->forced += frame->forced;
    total->limited += frame->limited;
    total->implicit_share += frame->implicit_share;
    total->couplings += frame->couplings;
    total->hits += frame->hits;
    total->zones += frame->zones;
    total->pinched += frame->pinched;
    total->rested += frame->rested;
    total->riders = frame->riders > total->riders ? frame->riders : total->riders;
    total->newton_iterations += frame->newton_iterations;
    total->iterations += frame->iterations;
    total->row_multiplies += frame->row_multiplies;
    total->solves += frame->solves;
    total->fast_solves += frame->fast_solves;
    total->direct_solves += frame->direct_solves;
    total->components += frame->components;
    total->seconds += frame->seconds;
    for (int k = 0; k < STAGE_COUNT; k++)
        total->stages[k] += frame->stages[k];
    total->max_stretch = fmax(total->max_stretch, frame->max_stretch);
    total->step_min = total->frames > 1 ? fmin(total->step_min, frame->step_min) : frame->step_min;
    total->step_max = fmax(total->step_max, frame->step_max);
}

/* ---- one frame ---- */

toile_status toile_sim_advance(toile_sim *sim, double seconds, toile_error *error) {
    toile_state *s = &sim->state;
    const toile_settings *set = sim->settings;
    double begin = toile_clock(), change, largest;
    sim->frame_seconds = seconds;
    sim->frame_begin = s->time;
    toile_status status = toile_sim_sew(sim, error);
    if (status != TOILE_OK)
        return status;

    if ((status = toile_self_begin(sim, error)) != TOILE_OK)
        return status;
    memset(&sim->frame, 0, sizeof sim->frame);
    sim->frame.frames = 1;
    toile_state_copy(s, &sim->work.backup);
    s->shift = toile_shift_before(s->shift);
    toile_prepare_holds(sim);
    measure_stretch(sim, s->x, NULL, sim->work.stretch, &change, &largest);
    toile_self_look(sim, 0); /* the first contacts ask who is tangled: now, not when the last frame's last step was made */

    double end = sim->frame_begin + seconds;
    while (s->time < end - 1e-9 * seconds) {
        if (atomic_load(&sim->cancel)) {
            status = toile_fail(error, TOILE_CANCELLED, "stopped on request before the frame was finished");
            break;
        }
        /* steps of equal length up to the frame's end */
        double remaining = end - s->time, longest = ldexp(fmin(set->time_step, sim->work.stability.step), -s->level);
        double h = remaining / fmax(1, ceil(remaining / longest - 1e-6));
        bool last_chance = h / 2 < set->time_step_min;
        verdict v = step(sim, h, last_chance);
        if (v == BROKEN && last_chance && toile_rest(sim, fmin(set->time_step, remaining))) {
            measure_stretch(sim, s->x, NULL, sim->work.stretch, &change, &largest);
            s->level = LEVEL_AFTER_REST;
            continue;
        }
        if (v == BROKEN && last_chance) {
            status = toile_fail(error, TOILE_DIVERGED,
                                "the simulation broke down at %.4f s: numbers became infinite even at a step of %.2g s; "
                                "check masses and stiffnesses for extreme values, or make time_step_min smaller",
                                s->time, h);
            break;
        }
        if (sim->trouble.status != TOILE_OK) {
            status = toile_fail(error, sim->trouble.status, "%s", sim->trouble.message);
            sim->trouble.status = TOILE_OK;
            break;
        }
        adapt(s, v, pace_of(sim));
    }
    if (status != TOILE_OK) {
        toile_state_copy(&sim->work.backup, s);
        return status;
    }
    s->time = end; /* without the rounding of many small steps */

    for (int i = 0; i < sim->solid_count; i++)
        toile_solid_arrive(&sim->solids[i]);
    toile_holds_arrive(sim);
    toile_pressure_arrive(sim);
    sim->frame.seconds = toile_clock() - begin;
    add_counters(&sim->total, &sim->frame);
    return TOILE_OK;
}
