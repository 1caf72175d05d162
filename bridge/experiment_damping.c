/* Projected damping (thesis 3.3 and 4.2.4, Figs. 4.4 to 4.6): a sheet swings from two corners without
 * damping, with damping of all relative motion (eq. 3.12), and with damping along connections only (eq. 3.14,
 * what Toile does).
 *
 * The library has no damping of the second kind. Its steps are public in pieces (integrate.h), so here it is
 * put into the connections' records between evaluation and assembly: force k_d (v_j - v_i), Jacobian k_d I.
 */
#include "experiment_sheet.h"
#include "experiments.h"
#include "force_spring.h"
#include "integrate.h"

#include <math.h>
#include <string.h>

typedef struct energies {
    double kinetic, stretch, shear, bend, potential;
} energies;

static energies energies_of(const toile_sim *sim) {
    const toile_springs *s = &sim->model->springs;
    toile_energies all = toile_sim_energies(sim);
    energies out = {.kinetic = all.kinetic, .potential = all.potential};
    for (int i = 0; i < s->padded; i++) {
        toile_spring_element element = {.bend = i >= s->axial_padded,
                                        .length = s->length[i],
                                        .stiffness = s->stiffness[i],
                                        .damping = s->damping[i]};
        double x[2][3];
        if (s->stiffness[i] == 0)
            continue;
        for (int end = 0; end < 2; end++)
            memcpy(x[end], sim->state.x + 4 * (size_t)s->vertex[end][i], sizeof x[end]);
        *(i < s->stretch_count  ? &out.stretch
          : i < s->axial_padded ? &out.shear
                                : &out.bend) += toile_spring_energy(&element, (const double(*)[3])x);
    }
    return out;
}

static double sum(const energies *n) {
    return n->kinetic + n->stretch + n->shear + n->bend + n->potential;
}

/* Damps every relative motion of connections that pull (record: force_spring.c). */
static void damp_everything(toile_sim *sim, double k_d, double h) {
    const toile_springs *s = &sim->model->springs;
    for (int i = 0; i < s->axial_count; i++) {
        double *record = sim->work.spring + (size_t)i * TOILE_SPRING_RECORD;
        const double *a = sim->state.v + 4 * (size_t)s->vertex[0][i],
                     *b = sim->state.v + 4 * (size_t)s->vertex[1][i];
        if (record[3] + record[4] == 0)
            continue;
        record[4] += h * k_d;
        for (int c = 0; c < 3; c++)
            record[5 + c] += k_d * (b[c] - a[c]);
    }
}

/* A step of core/step.c for a sheet without contacts, at a fixed length. */
static bool take_step(toile_sim *sim, double h, double k_d) {
    toile_work *w = &sim->work;
    size_t bytes = 4 * (size_t)sim->model->particle_count * sizeof(double);
    toile_scheme scheme = toile_scheme_of(sim, h);
    sim->frame_seconds = h;
    sim->frame_begin = sim->state.time;
    toile_find_contacts(sim, h);
    toile_guess(sim, &scheme);
    toile_set_constraints(sim, h);
    toile_carry_over(sim, &scheme);
    toile_evaluate(sim, &scheme);
    if (k_d > 0)
        damp_everything(sim, k_d, h);
    toile_assemble(sim, &scheme);
    bool solved = toile_solve_step(sim, h);
    toile_propose(sim, &scheme);
    memcpy(sim->state.x, w->next_x, bytes);
    memcpy(sim->state.v, w->next_v, bytes);
    memcpy(sim->state.dv, w->solution, bytes);
    sim->state.time += h;
    return solved;
}

typedef struct swing {
    double lost;    /* of the total energy after 1 s, J */
    double wobble;  /* of the stretch energy: sum of its ups and downs per step, over its mean */
    double fall;    /* of the middle of the free edge within 0.3 s, m */
} swing;

static bool run_case(experiment *e, int number, swing *out, plot **panels) {
    static const char *const NAMES[] = {"none", "all motion, 0.1 N s/m", "projected, 10 N s/m"};
    static const char *const FIGURES[] = {"Fig. 4.4", "Fig. 4.5", "Fig. 4.6"};
    sheet s = {.scene = SHEET_CORNERS,
               .n = 40,
               .spacing = 0.025,
               .density = 0.5,
               .stretch = 1000,
               .shear = 1000,
               .bend = 0.01,
               .step = 0.01,
               .own_stop = true};
    if (number == 2)
        s.damp_stretch = s.damp_shear = 10;
    toile_world *w = sheet_make(e, &s);
    *out = (swing){0};
    if (!w)
        return false;
    toile_sim *sim = toile_world_sim(w);
    ((toile_settings *)sim->settings)->solver_tolerance = 1e-4;
    energies now = energies_of(sim);
    double start = sum(&now), last = 0, ups = 0, mean = 0;
    int edge = sim->model->place[s.n * (s.n - 1) + s.n / 2], steps = 200;
    panels[0] = plot_create(experiment_text("%s damping: %s", FIGURES[number], NAMES[number]), "time, s",
                            "energy, J");
    panels[1] = plot_create(experiment_text("the same, internal"), "time, s", "energy, J");
    static const char *const OUTER[] = {"kinetic", "internal", "gravity", "total"}, *const INNER[] = {
                                                                                        "stretch", "shear",
                                                                                        "bend"};
    for (int i = 0; i < 4; i++)
        plot_series(panels[0], OUTER[i], PLOT_LINE);
    for (int i = 0; i < 3; i++)
        plot_series(panels[1], INNER[i], PLOT_LINE);
    bool good = true;
    for (int k = 1; good && k <= steps && !experiment_stopping(e); k++) {
        good = take_step(sim, s.step, number == 1 ? 0.1 : 0);
        now = energies_of(sim);
        double t = sim->state.time, inner = now.stretch + now.shear + now.bend, whole = sum(&now);
        experiment_row(e, "%s,%.4f,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g",
                       NAMES[number][0] == 'n' ? "none"
                       : number == 1           ? "all"
                                               : "projected",
                       t, now.kinetic, now.potential - start, now.stretch, now.shear, now.bend,
                       whole - start);
        double outer[] = {now.kinetic, inner, now.potential - start, whole - start},
               internal[] = {now.stretch, now.shear, now.bend};
        for (int i = 0; i < 4; i++)
            plot_add(panels[0], i, t, outer[i]);
        for (int i = 0; i < 3; i++)
            plot_add(panels[1], i, t, internal[i]);
        if (k > 30) { /* it hangs by its corners by then */
            ups += fabs(now.stretch - last);
            mean += now.stretch;
        }
        last = now.stretch;
        if (k == 30)
            out->fall = -sim->state.x[4 * (size_t)edge + 2];
        if (k > 90 && k <= 100) /* mean of ten steps */
            out->lost += 0.1 * (start - whole);
    }
    out->wobble = mean > 0 ? ups / mean : 0;
    if (!good)
        toile_fail(&e->error, TOILE_DIVERGED, "a step of the %s case could not be solved", NAMES[number]);
    toile_destroy(w);
    return good;
}

bool experiment_projected_damping(experiment *e) {
    swing s[3];
    plot *panels[6] = {NULL};
    int count = 0;
    if (!experiment_csv(e, "damping,time_s,kinetic,gravity,stretch,shear,bend,total"))
        return false;
    while (count < 3 && !experiment_stopping(e)) {
        if (!run_case(e, count, &s[count], panels + 2 * count))
            return false;
        experiment_tick(e, ++count, 3);
    }
    if (count == 3) {
        experiment_result(e, "energy lost after 1 s, no damping", "slowly",
                          experiment_text("%.3g J", s[0].lost), "numerical damping of backward Euler");
        experiment_result(e, experiment_text("the same, damping of all motion, k_d 0.1"), "far too quickly",
                          experiment_text("%.3g J", s[1].lost),
                          experiment_text("%.2f of no damping", s[1].lost / s[0].lost));
        experiment_result(e, experiment_text("the same, projected damping, k_d 10"), "as without damping",
                          experiment_text("%.3g J", s[2].lost),
                          experiment_text("%.2f of no damping", s[2].lost / s[0].lost));
        experiment_result(e, "free edge has fallen within 0.3 s, by case", "too slow with all motion damped",
                          experiment_text("%.3f, %.3f, %.3f m", s[0].fall, s[1].fall, s[2].fall),
                          "free fall in steps of 0.01 s: 0.456 m");
        experiment_result(e, "ups and downs of the stretch energy per step, by case",
                          "oscillations vanish with projected damping",
                          experiment_text("%.3f, %.3f, %.3f", s[0].wobble, s[1].wobble, s[2].wobble),
                          "over its mean");
    }
    return experiment_plot(e, "", panels, 2 * count, 2);
}
