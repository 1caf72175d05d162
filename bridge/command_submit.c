/* `toile submit`: the wedges of a plan, or one job, to a queue. What is asked for is kept in DIR/farm.json,
 * so that the same description goes to any engine, and can be changed by hand. */
#include "commands.h"

#include "allocation.h"
#include "submit.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const toile_engine *const ENGINES[] = {&toile_engine_slurm, &toile_engine_openjd,
                                              &toile_engine_flamenco, &toile_engine_local};
static const char *const ENGINE_NAMES[] = {"slurm", "openjd", "flamenco", "local",
                                           NULL}; /* in the same order */

typedef struct submit_options {
    const char *source, *folder, *write_only;
    const char *name, *program, *format, *partition, *manager;
    int engine, cpus, memory, minutes, slots, mode;
    toile_option_list sets;
    toile_frame_range frames;
} submit_options;

/* ---- shared by engines ---- */

void toile_put_word(FILE *out, const char *text) {
    fputc('\'', out);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", out);
        else
            fputc(*text, out);
    fputc('\'', out);
}

void toile_put_quoted(FILE *out, const char *text) {
    json_t *value = json_string(text);
    if (!value || json_dumpf(value, out, JSON_ENCODE_ANY) != 0)
        fputs("\"\"", out);
    json_decref(value);
}

toile_status toile_text_begin(toile_text_file *file, toile_error *error) {
    *file = (toile_text_file){0};
    file->out = open_memstream(&file->text, &file->size);
    return file->out ? TOILE_OK : toile_fail_memory(error, "a file");
}

toile_status toile_text_end(toile_text_file *file, const toile_farm *farm, const char *name, bool executable,
                            toile_error *error) {
    char path[TOILE_WEDGE_PATH];
    bool whole = fclose(file->out) == 0;
    snprintf(path, sizeof path, "%.4000s/%s", farm->output, name);
    toile_status status = whole ? toile_write_text(path, file->text, file->size, executable, error)
                                : toile_fail_memory(error, "a file");
    free(file->text);
    return status;
}

int toile_run_program(const toile_farm *farm, char *const arguments[]) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (chdir(farm->output) == 0)
            execvp(arguments[0], arguments);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127))
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- the description ---- */

static void take_text(const json_t *root, const char *key, const char *given, const char *otherwise,
                      char *text, size_t size) {
    const char *kept = json_string_value(json_object_get(root, key));
    snprintf(text, size, "%s", given ? given : kept ? kept : otherwise);
}

static int take_number(const json_t *root, const char *key, int given, int otherwise) {
    const json_t *kept = json_object_get(root, key);
    json_int_t value = json_integer_value(kept);
    return given >= 0                                                ? given
           : json_is_integer(kept) && value >= 0 && value <= INT_MAX ? (int)value
                                                                     : otherwise;
}

static void name_job(const toile_plan *plan, char name[64]) {
    char *whole = realpath(plan->folder, NULL);
    const char *slash = whole ? strrchr(whole, '/') : NULL;
    toile_plain_name(slash ? slash + 1 : "wedge", name, 64);
    if (!name[0])
        snprintf(name, 64, "wedge");
    free(whole);
}

static bool is_word(const char *text) {
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-,") == strlen(text);
}

static bool is_format(const char *text) {
    static const char *const FORMATS[] = {"", "abc", "pc2", "mdd", "obj"};
    for (int i = 0; i < COUNT(FORMATS); i++)
        if (strcmp(text, FORMATS[i]) == 0)
            return true;
    return false;
}

/* What was given, what farm.json has, what is usual: in this order. */
static toile_status describe(const submit_options *o, const toile_plan *plan, toile_farm *farm,
                             toile_error *error) {
    char path[TOILE_WEDGE_PATH], name[64], self[TOILE_WEDGE_PATH] = "toile", export[64];
    snprintf(path, sizeof path, "%.4000s/farm.json", plan->folder);
    json_error_t problem;
    json_t *root = json_load_file(path, 0, &problem);
    if (!root && json_error_code(&problem) != json_error_cannot_open_file)
        return toile_fail(error, TOILE_INVALID, "%s:%d: %s", path, problem.line, problem.text);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0)
        self[length] = 0;
    *farm = (toile_farm){.plan = plan, .mode = o->mode};
    name_job(plan, name);
    take_text(root, "name", o->name, name, path, sizeof path);
    toile_plain_name(path, farm->name, sizeof farm->name);
    take_text(root, "program", o->program, self, farm->program, sizeof farm->program);
    take_text(root, "export", o->format, "", export, sizeof export);
    snprintf(farm->formats, sizeof farm->formats, "%s", strcmp(export, "none") == 0 ? "" : export);
    take_text(root, "partition", o->partition, "", farm->partition, sizeof farm->partition);
    take_text(root, "manager", o->manager, "http://localhost:8080", farm->manager, sizeof farm->manager);
    farm->cpus = take_number(root, "cpus", o->cpus, 1);
    farm->memory = take_number(root, "memory_mb", o->memory, 0);
    farm->minutes = take_number(root, "minutes", o->minutes, 240);
    farm->slots = take_number(root, "slots", o->slots, 0);
    json_decref(root);
    char *whole = realpath(plan->folder, NULL);
    snprintf(farm->folder, sizeof farm->folder, "%s", whole ? whole : plan->folder);
    free(whole);
    if (!farm->name[0])
        snprintf(farm->name, sizeof farm->name, "wedge");
    if (farm->cpus < 1 || farm->cpus > 256 || farm->minutes < 3 || farm->minutes > 1000000)
        return toile_fail(error, TOILE_INVALID,
                          "cpus %d, minutes %d: a bake has 1 to 256 processors and 3 to 1000000 minutes",
                          farm->cpus, farm->minutes);
    if (!is_format(farm->formats))
        return toile_fail(error, TOILE_INVALID, "export %s: there is abc, pc2, mdd, obj, none",
                          farm->formats);
    if (!is_word(farm->partition))
        return toile_fail(error, TOILE_INVALID, "partition %s: a name of letters, digits, dots, dashes",
                          farm->partition);
    if (strpbrk(farm->manager, "\"'\\ \n$`}") || strpbrk(farm->folder, "\n") || strpbrk(farm->program, "\n"))
        return toile_fail(error, TOILE_INVALID,
                          "a path or address has a quote or a line break in it; choose another");
    return TOILE_OK;
}

static toile_status keep(const toile_farm *farm, toile_error *error) {
    char path[TOILE_WEDGE_PATH];
    json_t *root =
        json_pack("{s:i, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:s, s:s}", "toile_farm", 1, "name",
                  farm->name, "plan", "plan.json", "program", farm->program, "cpus", farm->cpus, "memory_mb",
                  farm->memory, "minutes", farm->minutes, "slots", farm->slots, "export", farm->formats,
                  "partition", farm->partition, "manager", farm->manager);
    char *text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
    snprintf(path, sizeof path, "%.4000s/farm.json", farm->folder);
    toile_status status = text ? toile_write_text(path, text, strlen(text), false, error)
                               : toile_fail_memory(error, "the description");
    free(text);
    json_decref(root);
    return status;
}

/* ---- the command ---- */

/* A folder with a plan; or a scene or job, which becomes a plan of one. */
static toile_status find_plan(const submit_options *o, toile_plan *plan, toile_error *error) {
    if (toile_plan_exists(o->source) && !o->folder) {
        if (o->sets.count || o->frames.given)
            return toile_fail(error, TOILE_INVALID,
                              "%s has its plan; --set and --frames go with a scene or job", o->source);
        return toile_plan_read(o->source, plan, error);
    }
    if (!o->folder)
        return toile_fail(
            error, TOILE_INVALID,
            "%s is not a folder with a plan. A scene or job needs a folder for what is made from it: -o DIR",
            o->source);
    char notes[512];
    const toile_plan_request request = {.scene_path = o->source,
                                        .folder = o->folder,
                                        .sets = o->sets.items,
                                        .set_count = o->sets.count,
                                        .frames = o->frames};
    toile_status status = toile_plan_make(&request, plan, notes, sizeof notes, error);
    if (status >= 0 && notes[0])
        printf("note: %s\n", notes);
    return status;
}

static int submit(const submit_options *o) {
    toile_plan plan = {0};
    toile_farm farm;
    toile_error error;
    const toile_engine *engine = ENGINES[o->engine];
    toile_status status = find_plan(o, &plan, &error);
    if (status >= 0)
        status = describe(o, &plan, &farm, &error);
    if (status >= 0)
        status = keep(&farm, &error);
    if (status >= 0) {
        if (o->write_only)
            snprintf(farm.output, sizeof farm.output, "%s", o->write_only);
        else
            snprintf(farm.output, sizeof farm.output, "%.4000s/farm/%s", farm.folder, engine->name);
        if (engine == &toile_engine_local && farm.slots == 0) {
            int slots = toile_allocated_cpus() / farm.cpus;
            farm.slots = slots > 1 ? slots : 1;
        }
        status = toile_make_folder(farm.output, &error);
    }
    if (status >= 0)
        status = engine->write(&farm, &error);
    int exit_code = status < 0 ? toile_complain_error(&error) : 0;
    if (status >= 0 && o->write_only)
        fprintf(stderr, "written to %s\n", farm.output);
    else if (status >= 0)
        exit_code = engine->run(&farm);
    toile_plan_free(&plan);
    return exit_code;
}

int toile_command_submit(int argc, char **argv) {
    static const char *const operand_names[] = {"DIR (of a plan; or a job)"};
    submit_options o = {
        .engine = -1, .cpus = -1, .memory = -1, .minutes = -1, .slots = -1, .mode = TOILE_PROGRESS_AUTO};
    o.sets.items = calloc((size_t)argc, sizeof(char *));
    int exit_code;
    const toile_option options[] = {
        {"--engine", NULL, TOILE_OPTION_CHOICE, &o.engine, "ENGINE", "slurm, openjd, flamenco or local",
         ENGINE_NAMES},
        {"--write-only", NULL, TOILE_OPTION_TEXT, &o.write_only, "OUT",
         "write the engine's files there and submit nothing", NULL},
        {"--export", NULL, TOILE_OPTION_TEXT, &o.format, "abc|pc2|mdd|obj|none",
         "export each wedge after its bake", NULL},
        {"--cpus", NULL, TOILE_OPTION_WHOLE, &o.cpus, "N", "processors of one bake; 1", NULL},
        {"--memory", NULL, TOILE_OPTION_WHOLE, &o.memory, "MB", "memory of one bake; as the queue has it",
         NULL},
        {"--minutes", NULL, TOILE_OPTION_WHOLE, &o.minutes, "M",
         "longest run of one task; it goes on in another. 240", NULL},
        {"--slots", NULL, TOILE_OPTION_WHOLE, &o.slots, "N",
         "bakes at the same time; local: as many as there are processors", NULL},
        {"--name", NULL, TOILE_OPTION_TEXT, &o.name, "NAME", "of the job; else the folder's", NULL},
        {"--program", NULL, TOILE_OPTION_TEXT, &o.program, "PATH",
         "toile as the nodes find it; else where this one is", NULL},
        {"--partition", NULL, TOILE_OPTION_TEXT, &o.partition, "P", "of Slurm", NULL},
        {"--manager", NULL, TOILE_OPTION_TEXT, &o.manager, "URL", "of Flamenco; http://localhost:8080", NULL},
        {"--output", "-o", TOILE_OPTION_TEXT, &o.folder, "DIR",
         "for a scene or job: the folder for its plan and cache", NULL},
        {"--set", NULL, TOILE_OPTION_LIST, &o.sets, "PATH=VALUE", "for a scene or job: as for bake", NULL},
        {"--frames", NULL, TOILE_OPTION_FRAMES, &o.frames, "A-B", "for a scene or job: as for bake", NULL},
        {"--progress", NULL, TOILE_OPTION_CHOICE, &o.mode, "MODE", "of local: auto, json or none",
         toile_progress_modes},
    };
    const toile_syntax syntax = {
        "toile submit DIR --engine slurm|openjd|flamenco|local [--write-only OUT] [--export abc] [--cpus N] "
        "[--memory MB]\n"
        "       [--minutes M] [--slots N] [--name NAME] [--program PATH] [--partition P] [--manager URL]\n"
        "       toile submit JOB -o DIR --engine ... (one bake)",
        "Gives the wedges of a plan to a queue: bakes, exports after them, a report at the end. Every engine "
        "runs the same commands on\n"
        "the same folder, which all nodes must see, from one description, DIR/farm.json, where options are "
        "kept for the next time. The\n"
        "engine's files (DIR/farm/ENGINE) are for reading and changing. local runs a few processes here "
        "until all are done; Ctrl-C\n"
        "stops them in order (75), and the same command goes on.",
        options,
        COUNT(options),
        operand_names,
        COUNT(operand_names)};
    if (!o.sets.items)
        exit_code = toile_complain(TOILE_EXIT_FAILED, "not enough memory for the options");
    else if (toile_parse_options(&syntax, argc, argv, &o.source, &exit_code))
        exit_code = o.engine < 0
                        ? toile_complain(TOILE_EXIT_USAGE,
                                         "to which queue? Give --engine slurm, openjd, flamenco or local")
                        : submit(&o);
    free(o.sets.items);
    return exit_code;
}
