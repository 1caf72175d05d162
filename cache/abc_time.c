/* Time samplings: from sample to time and back.
 *
 * Uniform samplings have one stored time, cyclic ones several per period, acyclic ones all of them.
 * The rules for "which sample is at this time" follow the reference library, tolerance included, so
 * that a cache shows the same frame here and in other programs.
 */
#include "abc_internal.h"

#include <float.h>
#include <math.h>

/* Seconds within which two times count as one. */
#define ABC_TIME_CLOSE 1e-5

static bool abc_close(double a, double b) {
    return fabs(a - b) <= ABC_TIME_CLOSE;
}

double abc_acyclic_period(void) {
    return DBL_MAX / 32.0;
}

abc_status abc_time_check(abc_core *core, const abc_time_sampling *s) {
    if (s->time_count == 0 || !s->times)
        return abc_fail(core, ABC_INVALID, "a time sampling has no times; give at least one");
    for (size_t i = 0; i < s->time_count; i++)
        if (!isfinite(s->times[i]) || (i && !(s->times[i] > s->times[i - 1])))
            return abc_fail(
                core, ABC_INVALID,
                "time %llu of a sampling is %g s, but times must be finite and increase",
                (unsigned long long)i, s->times[i]);
    if (s->kind == ABC_ACYCLIC)
        return ABC_OK;
    if (!(s->period > 0.0 && s->period < abc_acyclic_period()))
        return abc_fail(core, ABC_INVALID, "the period of a time sampling is %g s; it must be > 0",
                        s->period);
    if (s->kind == ABC_UNIFORM && s->time_count != 1)
        return abc_fail(core, ABC_INVALID, "a uniform time sampling has exactly one stored time");
    if (s->times[s->time_count - 1] - s->times[0] > s->period)
        return abc_fail(core, ABC_INVALID,
                        "the times of a cycle span %g s, more than its period %g s",
                        s->times[s->time_count - 1] - s->times[0], s->period);
    return ABC_OK;
}

double abc_time_of(const abc_time_sampling *s, uint64_t sample) {
    switch (s->kind) {
    case ABC_UNIFORM: return s->times[0] + s->period * (double)sample;
    case ABC_CYCLIC:
        return s->times[sample % s->time_count] + s->period * (double)(sample / s->time_count);
    case ABC_ACYCLIC: break;
    }
    return sample < s->time_count ? s->times[sample] : NAN;
}

static uint64_t abc_floor_uniform(const abc_time_sampling *s, uint64_t count, double time) {
    double steps = (time - s->times[0]) / s->period;
    uint64_t i = steps >= (double)(count - 1) ? count - 1 : (uint64_t)steps;
    double at = abc_time_of(s, i);
    if (at > time && i > 0 && !abc_close(at, time))
        return i - 1;
    if (i < count - 1 && abc_close(time, abc_time_of(s, i + 1)))
        return i + 1;
    return i;
}

static uint64_t abc_floor_acyclic(const abc_time_sampling *s, double time) {
    size_t low = 0, high = s->time_count - 1;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (s->times[middle] == time)
            return middle;
        if (s->times[middle] < time)
            low = middle;
        else
            high = middle;
    }
    return abc_close(time, s->times[high]) ? high : low;
}

static uint64_t abc_floor_cyclic(const abc_time_sampling *s, uint64_t count, double time) {
    double whole = 0.0;
    double fraction = modf((time - s->times[0]) / s->period, &whole);
    if (abc_close(fraction, 1.0))
        whole += 1.0;
    /* Beyond this the caller's clamp decides anyway; it also keeps the conversion below defined. */
    if (whole > (double)(count / s->time_count + 1))
        return count - 1;
    double rest = time - whole * s->period;
    size_t k = 0;
    while (k < s->time_count - 1 && s->times[k] < rest)
        k++;
    double at = s->times[k] + whole * s->period;
    if (!abc_close(at, time) && k > 0 && time < at)
        k--;
    return (uint64_t)whole * s->time_count + k;
}

/* Samples that have a time: a short acyclic sampling has fewer than the property claims. */
static uint64_t abc_timed(const abc_time_sampling *s, uint64_t count) {
    return s->kind == ABC_ACYCLIC && count > s->time_count ? s->time_count : count;
}

uint64_t abc_time_floor(const abc_time_sampling *s, uint64_t count, double time) {
    count = abc_timed(s, count);
    /* The negated comparison also sends NaN to the first sample. */
    if (count < 1 || !(time > abc_time_of(s, 0)))
        return 0;
    if (time >= abc_time_of(s, count - 1))
        return count - 1;
    uint64_t i = 0;
    switch (s->kind) {
    case ABC_UNIFORM: i = abc_floor_uniform(s, count, time); break;
    case ABC_CYCLIC: i = abc_floor_cyclic(s, count, time); break;
    case ABC_ACYCLIC: i = abc_floor_acyclic(s, time); break;
    }
    return i < count ? i : count - 1;
}

uint64_t abc_time_ceil(const abc_time_sampling *s, uint64_t count, double time) {
    count = abc_timed(s, count);
    uint64_t i = abc_time_floor(s, count, time);
    if (count < 1 || !(time > abc_time_of(s, 0)) || i == count - 1)
        return i;
    return abc_close(time, abc_time_of(s, i)) ? i : i + 1;
}

uint64_t abc_time_near(const abc_time_sampling *s, uint64_t count, double time) {
    count = abc_timed(s, count);
    uint64_t i = abc_time_floor(s, count, time);
    if (count < 1 || !(time > abc_time_of(s, 0)) || i == count - 1)
        return i;
    return fabs(time - abc_time_of(s, i)) <= fabs(abc_time_of(s, i + 1) - time) ? i : i + 1;
}
