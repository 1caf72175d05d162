#include "report.h"

#include "settings.h"
#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

toile_status toile_report_start(toile_report *report, toile_error *error) {
    *report = (toile_report){.frame = json_array(),
                             .seconds = json_array(),
                             .max_stretch = json_array(),
                             .contacts = json_array()};
    if (report->frame && report->seconds && report->max_stretch && report->contacts)
        return TOILE_OK;
    toile_report_free(report);
    return toile_fail_memory(error, "the report");
}

void toile_report_free(toile_report *report) {
    json_decref(report->frame);
    json_decref(report->seconds);
    json_decref(report->max_stretch);
    json_decref(report->contacts);
    *report = (toile_report){0};
}

void toile_report_frame(toile_report *report, int frame, const toile_statistics *statistics) {
    json_array_append_new(report->frame, json_integer(frame));
    json_array_append_new(report->seconds, json_real(statistics->seconds));
    json_array_append_new(report->max_stretch, json_real(statistics->max_stretch));
    json_array_append_new(report->contacts, json_integer(statistics->contacts));
}

/* The choice in force of a setting, as text. */
static json_t *chosen(toile_world *world, const char *id) {
    int count;
    const toile_field *fields = toile_settings_fields(&count);
    const toile_field *field = toile_find_field(fields, count, id);
    double values[3];
    int n;
    if (!field || !field->choices || toile_get_numbers(world, id, values, &n) < 0)
        return json_null();
    return json_string(field->choices[(int)values[0]]);
}

static void put(json_t *object, const char *key, json_t *value) {
    json_object_set_new(object, key, value);
}

/* json_real refuses infinities and NaN; a failed bake may have them. */
static json_t *real(double value) {
    json_t *number = json_real(value);
    return number ? number : json_null();
}

static json_t *stages(const toile_statistics *run, double write_seconds) {
    static const char *const names[TOILE_STAGE_COUNT] = {
        [TOILE_STAGE_EVALUATE] = "evaluate",
        [TOILE_STAGE_ASSEMBLE] = "assemble",
        [TOILE_STAGE_SOLVE] = "solve",
        [TOILE_STAGE_COLLIDE_SOLID] = "collide_solid",
        [TOILE_STAGE_COLLIDE_SELF] = "collide_self",
    };
    json_t *object = json_object();
    for (int i = 0; i < TOILE_STAGE_COUNT; i++)
        put(object, names[i], real(run->stages[i]));
    put(object, "write", real(write_seconds));
    return object;
}

/* What `auto` did, and why. */
static json_t *solver_choice(toile_world *world, const toile_counters *counters) {
    json_t *object = json_object();
    int64_t fast = counters ? counters->fast_solves : 0, direct = counters ? counters->direct_solves : 0;
    const char *why = "the solver was named in the settings";
    json_t *name = chosen(world, "linear_solver");
    if (name && strcmp(json_string_value(name), "auto") == 0)
        why = direct ? "iterations would have cost more than a direct solve in some steps" : "iterating was cheaper than a direct solve in every step";
    json_decref(name);
    put(object, "iterative", json_integer(fast));
    put(object, "direct", json_integer(direct));
    put(object, "why", json_string(why));
    return object;
}

static json_t *compose(const toile_report *report, toile_world *world, const toile_report_facts *facts) {
    toile_statistics run = {0}, last = {0};
    toile_get_statistics(world, true, &run);
    toile_get_statistics(world, false, &last);
    json_int_t vertices = 0, triangles = 0;
    for (int g = 0; g < toile_garment_count(world); g++) {
        vertices += toile_vertex_count(world, g);
        triangles += toile_triangle_count(world, g);
    }
    const toile_sim *sim = toile_world_sim(world);
    const toile_counters *counters = sim ? &sim->total : NULL;
    size_t simulated = json_array_size(report->frame);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, toile_state_hash(world));

    json_t *object = json_object();
    put(object, "outcome", json_string(facts->outcome));
    put(object, "message", json_string(facts->message));
    put(object, "version", json_string(toile_version()));
    put(object, "scene", json_string(facts->scene_path));
    put(object, "cache", json_string(facts->cache_path));
    put(object, "fps", real(facts->fps));
    put(object, "first_frame", json_integer(facts->first_frame));
    put(object, "last_frame", json_integer(facts->last_frame));
    put(object, "frames", json_integer(facts->finished));
    put(object, "resumed_from", json_integer(facts->resumed_from));
    put(object, "frames_simulated", json_integer((json_int_t)simulated));
    put(object, "vertices", json_integer(vertices));
    put(object, "triangles", json_integer(triangles));
    put(object, "steps", json_integer(run.steps));
    put(object, "rejected_steps", json_integer(run.rejected_steps));
    put(object, "forced_steps", json_integer(run.forced_steps));
    put(object, "limited_steps", json_integer(counters ? counters->limited : 0));
    put(object, "step_min", real(run.step_min));
    put(object, "step_max", real(run.step_max));
    put(object, "seconds", real(run.seconds));
    put(object, "seconds_per_frame", real(simulated ? run.seconds / (double)simulated : 0));
    put(object, "stages", stages(&run, report->write_seconds));
    put(object, "iterations", json_integer(run.iterations));
    put(object, "row_multiplies", json_integer(run.row_multiplies));
    put(object, "cloth_model", chosen(world, "cloth_model"));
    put(object, "integrator", chosen(world, "integrator"));
    put(object, "implicit_share", real(counters && run.steps ? counters->implicit_share / (double)run.steps : 1));
    put(object, "newton_iterations", json_integer(counters ? counters->newton_iterations : 0));
    put(object, "self_contacts", json_integer(counters ? counters->couplings : 0));
    put(object, "self_hits", json_integer(counters ? counters->hits : 0));
    put(object, "pinched", json_integer(counters ? counters->pinched : 0));
    put(object, "pinched_particles", json_integer(counters ? counters->riders : 0));
    put(object, "rested_steps", json_integer(counters ? counters->rested : 0));
    put(object, "self_zones", json_integer(counters ? counters->zones : 0));
    put(object, "linear_solver", chosen(world, "linear_solver"));
    put(object, "preconditioner", chosen(world, "preconditioner"));
    put(object, "components_mean",
        real(counters && counters->solves ? (double)counters->components / (double)counters->solves : 1));
    put(object, "solver_choice", solver_choice(world, counters));
    put(object, "threads", json_integer(toile_threads(world)));
    put(object, "max_stretch", real(run.max_stretch));
    put(object, "contacts", json_integer(last.contacts));
    put(object, "penetrations", json_integer(last.penetrations));
    put(object, "deepest", real(last.deepest));
    put(object, "intersections", json_integer(facts->intersections));
    put(object, "intersections_at_start", facts->start ? json_incref(facts->start) : json_array());
    put(object, "intersections_left", facts->left ? json_incref(facts->left) : json_array());
    put(object, "colliders_crossing", facts->colliders ? json_incref(facts->colliders) : json_array());
    put(object, "particles", json_integer(last.particles));
    put(object, "open_stitches", json_integer(last.open_stitches));
    put(object, "widest_gap", real(last.widest_gap));
    put(object, "speed", real(last.speed));
    put(object, "kinetic_energy", real(last.kinetic_energy));
    put(object, "elastic_energy", real(last.elastic_energy));
    put(object, "potential_energy", real(last.potential_energy));
    put(object, "peak_rss_mb", real((double)usage.ru_maxrss / 1024));
    put(object, "state_hash", json_string(hash));
    json_t *per_frame = json_object();
    json_object_set(per_frame, "frame", report->frame);
    json_object_set(per_frame, "seconds", report->seconds);
    json_object_set(per_frame, "max_stretch", report->max_stretch);
    json_object_set(per_frame, "contacts", report->contacts);
    put(object, "per_frame", per_frame);
    return object;
}

toile_status toile_report_write(const toile_report *report, const char *path, toile_world *world,
                                const toile_report_facts *facts, toile_error *error) {
    /* A pipe or /dev/stdout is written as it is: it cannot be replaced by a file. */
    struct stat info;
    bool direct = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    char temporary[4096];
    if (snprintf(temporary, sizeof temporary, "%s.%ld.tmp", path, (long)getpid()) >= (int)sizeof temporary)
        return toile_fail(error, TOILE_INVALID, "the report's name is too long: %s", path);
    json_t *object = compose(report, world, facts);
    toile_status status = TOILE_OK;
    FILE *file = fopen(direct ? path : temporary, "w");
    bool written = false;
    if (file) {
        written = json_dumpf(object, file, JSON_INDENT(2) | JSON_REAL_PRECISION(12)) == 0;
        written = fputc('\n', file) != EOF && written;
        written = fclose(file) == 0 && written;
    }
    if (!written || (!direct && rename(temporary, path) != 0)) {
        status = toile_fail(error, TOILE_IO, "the report %s cannot be written: %s", path, strerror(errno));
        if (!direct)
            unlink(temporary);
    }
    json_decref(object);
    return status;
}
