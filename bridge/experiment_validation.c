/* toile experiment validation: the cloth against closed forms and measurements, both models.
 *
 *   a cantilever   b heart loop   c fall, pendulum, modes, energy, order   d catenary   e stretch by own
 * weight f friction     g Cusick drape   h waves   i bias of mesh and direction   j rigid motion is not
 * damped
 *
 * Tolerances belong to the protocols and are not to be widened here. What a model cannot do by its nature
 * counts as such, with its figures and the reason, and does not fail the run. TOILE_PROTOCOLS=ag runs a and g
 * only. */
#include "validation.h"

#include <stdlib.h>
#include <string.h>

static bool tell(validation *v, const char *protocol, int model, const char *what, double found,
                 const char *expected, bool good) {
    experiment *e = v->e;
    bool excused = !good && v->nature && isfinite(found);
    const char *verdict = good      ? "pass"
                          : excused ? "by nature"
                                    : "FAIL",
               *name = model < 0 ? "both" : VALIDATION_MODELS[model];
    v->passed += good, v->by_nature += excused, v->failed += !good && !excused;
    experiment_row(e, "%s,%s,\"%s\",%.9g,\"%s\",%s", protocol, name, what, found, expected, verdict);
    fprintf(e->table, "| %s, %s: %s | %s | %.6g | %s%s%s |\n", protocol, name, what, expected, found, verdict,
            excused ? ": " : "", excused ? v->nature : "");
    printf("  %s  %-9s  %-58s %12.6g  %-32s %s\n", protocol, name, what, found, expected, verdict);
    fflush(stdout);
    return good;
}

bool validation_within(validation *v, const char *protocol, int model, const char *what, double found,
                       double expected, double tolerance) {
    return tell(v, protocol, model, what, found, experiment_text("%.6g +- %g %%", expected, 100 * tolerance),
                fabs(found / expected - 1) <= tolerance);
}

bool validation_band(validation *v, const char *protocol, int model, const char *what, double found,
                     double low, double high) {
    const char *text = low == -INFINITY   ? experiment_text("at most %g", high)
                       : high == INFINITY ? experiment_text("at least %g", low)
                                          : experiment_text("%g to %g", low, high);
    return tell(v, protocol, model, what, found, text, found >= low && found <= high);
}

bool experiment_validation(experiment *e) {
    validation v = {.e = e};
    void (*const PROTOCOLS[])(validation *) = {
        validation_cantilever, validation_heart, validation_motion, validation_catenary, validation_stretch,
        validation_friction,   validation_drape, validation_waves,  validation_bias,     validation_rigid};
    int count = sizeof PROTOCOLS / sizeof *PROTOCOLS;
    if (!experiment_csv(e, "protocol,model,what,measured,expected,verdict"))
        return false;
    printf("  protocol, model, what, measured, expected, verdict\n");
    const char *only = getenv("TOILE_PROTOCOLS");
    for (int i = 0; i < count && experiment_tick(e, i, count); i++) {
        if (only && !strchr(only, 'a' + i))
            continue;
        PROTOCOLS[i](&v);
        v.nature = NULL;
    }
    printf("  %d passed, %d failed, %d not possible by the model's nature\n", v.passed, v.failed,
           v.by_nature);
    fprintf(e->table, "\n%d passed, %d failed, %d not possible by the model's nature.\n", v.passed, v.failed,
            v.by_nature);
    if (e->error.status == TOILE_OK && v.failed > 0)
        toile_fail(&e->error, TOILE_DIVERGED, "%d figures are outside their tolerances; see %s/%s.md",
                   v.failed, e->directory, e->name);
    return e->error.status == TOILE_OK;
}
