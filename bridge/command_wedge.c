/* `toile wedge`: one scene with many values. Plans them, bakes or exports one, tells how far all are, and
 * reports. Everything about a task is in the plan and on disk, so that a task can be run again, anywhere, any
 * number of times. */
#include "commands.h"

#include "cache.h"
#include "wedge_plan.h"
#include "wedge_report.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

typedef struct wedge_options {
    const char *source, *output, *list, *format;
    toile_option_list vary, sets;
    int random, seed, index, threads, mode, wait;
    bool again;
    double grace;
    toile_frame_range frames;
} wedge_options;

/* ---- one of them ---- */

/* Whether a bake into this cache can go on: there are frames and a state for one of them. */
static bool can_resume(const char *cache_path) {
    toile_memory memory;
    toile_cache *cache = NULL;
    void *state = NULL;
    size_t size;
    uint64_t fingerprint;
    int frame;
    toile_memory_init(&memory, NULL);
    if (toile_cache_open(&memory, cache_path, &cache, NULL) < 0)
        return access(cache_path, F_OK) == 0; /* what is wrong with it, the bake will say */
    int last = toile_cache_get_header(cache)->first_frame + toile_cache_frame_count(cache) - 1;
    bool found =
        toile_checkpoint_find(&memory, cache_path, last, &fingerprint, &frame, &state, &size, NULL) >= 0;
    toile_free(&memory, state);
    toile_cache_close(cache, NULL);
    return found;
}

/* A task that was moved to another machine finds the lock of the one that was lost, which expires by itself.
 */
static toile_status wait_for_lock(const char *cache_path, int seconds, toile_error *error) {
    toile_memory memory;
    toile_memory_init(&memory, NULL);
    for (int waited = 0;; waited++) {
        toile_lock *lock = NULL;
        toile_status status = toile_lock_take(&memory, cache_path, &lock, error);
        toile_lock_release(lock);
        char path[TOILE_WEDGE_PATH];
        snprintf(path, sizeof path, "%.4000s.lock", cache_path);
        if (status >= 0 || waited >= seconds || access(path, F_OK) != 0)
            return status;
        sleep(1);
    }
}

static int bake_one(const toile_plan *plan, const wedge_options *options) {
    char scene[TOILE_WEDGE_PATH], cache[TOILE_WEDGE_PATH], report[TOILE_WEDGE_PATH],
        heartbeat[TOILE_WEDGE_PATH];
    toile_error error;
    int set_count;
    toile_plan_scene(plan, scene);
    toile_plan_path(plan, options->index, ".h5", cache);
    toile_plan_path(plan, options->index, ".report.json", report);
    toile_plan_path(plan, options->index, ".heartbeat.json", heartbeat);
    if (toile_plan_make_folder(plan, options->index, &error) < 0 ||
        wait_for_lock(cache, options->wait, &error) < 0)
        return toile_complain_error(&error);
    const char **sets = toile_plan_sets(plan, options->index, &set_count);
    if (!sets)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the plan");
    const toile_bake_options bake = {.scene_path = scene,
                                     .cache_path = cache,
                                     .report_path = report,
                                     .heartbeat_path = heartbeat,
                                     .frames = toile_plan_frames(plan),
                                     .resume = !options->again && can_resume(cache),
                                     .threads = options->threads,
                                     .sets = sets,
                                     .set_count = set_count,
                                     .progress = (toile_progress_mode)options->mode,
                                     .grace = options->grace};
    int exit_code = toile_bake(&bake);
    free(sets);
    return exit_code;
}

static bool newer(const char *a, const char *b) {
    struct stat one, other;
    return stat(a, &one) == 0 && stat(b, &other) == 0 &&
           (one.st_mtim.tv_sec > other.st_mtim.tv_sec ||
            (one.st_mtim.tv_sec == other.st_mtim.tv_sec && one.st_mtim.tv_nsec >= other.st_mtim.tv_nsec));
}

static int export_one(const toile_plan *plan, const wedge_options *options) {
    char cache[TOILE_WEDGE_PATH], output[TOILE_WEDGE_PATH], ending[32];
    toile_wedge_state state;
    snprintf(ending, sizeof ending, ".%.20s", options->format);
    toile_plan_path(plan, options->index, ".h5", cache);
    toile_plan_path(plan, options->index, ending, output);
    toile_wedge_look(plan, options->index, &state);
    if (!state.complete)
        return toile_complain(
            TOILE_EXIT_INPUT,
            "%s is not finished (%d of %d frames); bake it first: toile wedge %s --index %d", cache,
            state.done, state.frames, plan->folder, options->index);
    if (newer(output, cache) && !options->again) {
        fprintf(stderr, "%s is there already\n", output);
        return 0;
    }
    char *arguments[] = {
        "export", cache, "-o", output, "--progress", (char *)toile_progress_modes[options->mode], NULL};
    return toile_command_export(COUNT(arguments) - 1, arguments);
}

/* ---- all of them ---- */

static int tell_plan(const toile_plan *plan, const char *notes) {
    printf("%d wedges in %s\n", plan->count, plan->folder);
    for (int i = 0; i < plan->count; i++) {
        if (i == 12 && plan->count > 14) {
            printf("  ... %d more, see %s/plan.json\n", plan->count - i, plan->folder);
            break;
        }
        printf("  %s\n", toile_plan_name(plan, i));
    }
    if (notes[0])
        printf("note: %s\n", notes);
    printf("bake one: toile wedge %s --index 0; all of them: toile submit %s --engine "
           "local|slurm|openjd|flamenco\n",
           plan->folder, plan->folder);
    return 0;
}

static int run_status(int argc, char **argv) {
    static const char *const operand_names[] = {"DIR"};
    const char *folder = NULL;
    bool as_json = false;
    int exit_code;
    const toile_option options[] = {{"--json", NULL, TOILE_OPTION_FLAG, &as_json, NULL, "as JSON", NULL}};
    const toile_syntax syntax = {"toile wedge status DIR [--json]",
                                 "How far every wedge of a plan is, who works on it, what went wrong.",
                                 options,
                                 COUNT(options),
                                 operand_names,
                                 COUNT(operand_names)};
    toile_plan plan;
    toile_error error;
    if (!toile_parse_options(&syntax, argc, argv, &folder, &exit_code))
        return exit_code;
    if (toile_plan_read(folder, &plan, &error) < 0)
        return toile_complain_error(&error);
    json_t *list = json_array();
    for (int i = 0; i < plan.count; i++) {
        toile_wedge_state state;
        char cache[TOILE_WEDGE_PATH];
        toile_wedge_look(&plan, i, &state);
        toile_plan_path(&plan, i, ".h5", cache);
        if (as_json) {
            json_array_append_new(list, json_pack("{s:i, s:s, s:O?, s:s, s:s, s:i, s:i, s:s, s:s}", "index",
                                                  i, "name", toile_plan_name(&plan, i), "values",
                                                  toile_plan_values(&plan, i), "state", state.name, "cache",
                                                  cache, "done", state.done, "frames", state.frames, "host",
                                                  state.host, "message", state.message));
            continue;
        }
        printf("%4d  %-9s %5d/%-5d %-40s %s%s\n", i, state.name, state.done, state.frames,
               toile_plan_name(&plan, i), strcmp(state.name, "running") == 0 ? state.host : "",
               state.message);
    }
    toile_plan_free(&plan);
    if (as_json)
        return toile_print_json(list);
    json_decref(list);
    return 0;
}

static int make_plan(const wedge_options *options, toile_plan *plan) {
    char notes[512];
    toile_error error;
    const toile_plan_request request = {.scene_path = options->source,
                                        .folder = options->output,
                                        .vary = options->vary.items,
                                        .vary_count = options->vary.count,
                                        .sets = options->sets.items,
                                        .set_count = options->sets.count,
                                        .list_path = options->list,
                                        .random = options->random,
                                        .seed = options->seed,
                                        .frames = options->frames};
    if (options->list && (options->vary.count > 0 || options->random > 0))
        return toile_complain(TOILE_EXIT_USAGE, "--list says all; --vary and --random do not go with it");
    if (options->random > 0 && options->vary.count == 0)
        return toile_complain(TOILE_EXIT_USAGE,
                              "--random: what is drawn? Give --vary KEY=lo:hi or KEY=a,b,c");
    if (!options->list && options->vary.count == 0)
        return toile_complain(TOILE_EXIT_USAGE,
                              "what varies? Give --vary KEY=a,b,c or KEY=lo:hi:n, or --list FILE.csv");
    if (toile_plan_make(&request, plan, notes, sizeof notes, &error) < 0)
        return toile_complain_error(&error);
    return options->index < 0 ? tell_plan(plan, notes) : 0;
}

static int run_wedge(wedge_options *options) {
    toile_plan plan = {0};
    toile_error error;
    int exit_code = 0;
    if (!options->output && !toile_plan_exists(options->source))
        return toile_complain(TOILE_EXIT_USAGE, "where to? Give the folder of the wedge: -o DIR");
    if (options->output) {
        exit_code = make_plan(options, &plan);
    } else if (options->vary.count || options->list || options->sets.count || options->frames.given) {
        return toile_complain(TOILE_EXIT_USAGE,
                              "%s has its plan; edit plan.json there, or make another one with -o DIR",
                              options->source);
    } else if (toile_plan_read(options->source, &plan, &error) < 0) {
        return toile_complain_error(&error);
    } else if (options->index < 0) {
        exit_code = tell_plan(&plan, "");
    }
    if (exit_code == 0 && options->index >= plan.count)
        exit_code = toile_complain(TOILE_EXIT_USAGE, "--index %d: %s has wedges 0 to %d", options->index,
                                   plan.folder, plan.count - 1);
    else if (exit_code == 0 && options->index >= 0)
        exit_code = options->format ? export_one(&plan, options) : bake_one(&plan, options);
    toile_plan_free(&plan);
    return exit_code;
}

int toile_command_wedge(int argc, char **argv) {
    static const char *const operand_names[] = {"JOB (or the DIR of a plan)"};
    if (argc > 1 && strcmp(argv[1], "report") == 0)
        return toile_wedge_report_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "status") == 0)
        return run_status(argc - 1, argv + 1);
    wedge_options o = {.index = -1, .threads = -1, .grace = TOILE_BAKE_GRACE, .mode = TOILE_PROGRESS_AUTO};
    o.vary.items = calloc((size_t)argc, sizeof(char *));
    o.sets.items = calloc((size_t)argc, sizeof(char *));
    int exit_code;
    const toile_option options[] = {
        {"--vary", NULL, TOILE_OPTION_LIST, &o.vary, "KEY=VALUES",
         "a,b,c or lo:hi:n or lo:hi:n:log; all combinations of all --vary", NULL},
        {"--output", "-o", TOILE_OPTION_TEXT, &o.output, "DIR",
         "the folder of the plan and of everything made from it", NULL},
        {"--random", NULL, TOILE_OPTION_WHOLE, &o.random, "N",
         "N random draws instead of all combinations; ranges may be lo:hi", NULL},
        {"--seed", NULL, TOILE_OPTION_WHOLE, &o.seed, "S", "of the draws; 0", NULL},
        {"--list", NULL, TOILE_OPTION_TEXT, &o.list, "FILE.csv",
         "keys in the first row (and name, if wanted), a wedge in each other", NULL},
        {"--set", NULL, TOILE_OPTION_LIST, &o.sets, "PATH=VALUE", "for all of them, as for bake", NULL},
        {"--frames", NULL, TOILE_OPTION_FRAMES, &o.frames, "A-B", "for all of them, as for bake", NULL},
        {"--index", NULL, TOILE_OPTION_WHOLE, &o.index, "N",
         "bake this one, from 0; goes on by itself where it was stopped", NULL},
        {"--export", NULL, TOILE_OPTION_TEXT, &o.format, "abc|pc2|mdd|obj",
         "with --index: export it instead, when it is baked", NULL},
        {"--again", NULL, TOILE_OPTION_FLAG, &o.again, NULL, "with --index: anew, whatever is there", NULL},
        {"--wait", NULL, TOILE_OPTION_WHOLE, &o.wait, "S",
         "seconds to wait while another process writes the same cache; 0", NULL},
        {"--threads", NULL, TOILE_OPTION_WHOLE, &o.threads, "N", "as for bake", NULL},
        {"--grace", NULL, TOILE_OPTION_NUMBER, &o.grace, "S", "as for bake", NULL},
        {"--progress", NULL, TOILE_OPTION_CHOICE, &o.mode, "MODE", "auto, bar, json, openjd or none",
         toile_progress_modes},
    };
    const toile_syntax syntax = {
        "toile wedge JOB --vary KEY=VALUES... -o DIR [--random N --seed S | --list FILE.csv] [--set "
        "PATH=VALUE]... [--frames A-B]\n"
        "       toile wedge DIR --index N [--export abc] [--threads N] [--progress MODE] [--wait S] "
        "[--again]\n"
        "       toile wedge status DIR [--json]\n"
        "       toile wedge report DIR [--frame F] [--size N]",
        "Plans one scene or job with many values in a folder that is all another machine needs, and bakes "
        "one by its number. A\n"
        "bake that is done is left as it is, one that was stopped goes on to the same bits. Exit codes as "
        "for bake.\n"
        "Keys: fabric (by name) and its properties for every garment; friction and thickness for every "
        "collider; resolution; every\n"
        "setting; every path that --set takes (garments.NAME.fabric, colliders.NAME.radius).",
        options,
        COUNT(options),
        operand_names,
        COUNT(operand_names)};
    if (!o.vary.items || !o.sets.items)
        exit_code = toile_complain(TOILE_EXIT_FAILED, "not enough memory for the options");
    else if (toile_parse_options(&syntax, argc, argv, &o.source, &exit_code)) {
        if (o.format && o.index < 0)
            exit_code = toile_complain(TOILE_EXIT_USAGE, "--export goes with --index N");
        else if (!(o.grace <= 1e6))
            exit_code = toile_complain(TOILE_EXIT_USAGE, "--grace %g: it is in seconds", o.grace);
        else
            exit_code = run_wedge(&o);
    }
    free(o.vary.items);
    free(o.sets.items);
    return exit_code;
}
