/* The `toile` program: which command, with which options. */
#include "commands.h"

#include "cache.h"
#include "job.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof *(array)))

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} COMMANDS[] = {
    {"bake", toile_command_bake, "simulate a scene into a cache; can be stopped and continued"},
    {"pack", toile_command_pack, "a scene and all its files as one job that any machine can bake"},
    {"wedge", toile_command_wedge, "one scene with many values: plan, bake one, compare them all"},
    {"submit", toile_command_submit, "bakes to a queue: Slurm, OpenJobDescription, Flamenco, or this machine"},
    {"info", toile_command_info, "what is in a file"},
    {"verify", toile_command_verify, "check every frame of a cache: checksums, stretch, intersections"},
    {"export", toile_command_export, "write a cache for other tools"},
    {"import", toile_command_import, "a GarmentCode pattern and a body become a scene"},
    {"recover", toile_command_recover, "what can be saved of a damaged cache, and saving it"},
    {"settings", toile_command_settings, "every setting with unit, range, default and meaning"},
    {"fabrics", toile_command_fabrics, "the fabrics that come with Toile, and their sources"},
    {"solvers", toile_command_solvers, "cloth models, integrators, solvers and what they are for"},
    {"schema", toile_command_schema, "the JSON Schema of a scene file"},
    {"bench", toile_command_bench, "measure speed on this machine"},
    {"experiment", toile_command_experiment, "the papers' experiments: numbers, plots, the paper's figure beside ours"},
};

/* ---- complaints ---- */

int toile_complain(int exit_code, const char *format, ...) {
    fflush(stdout);
    fputs("toile: ", stderr);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return exit_code;
}

int toile_complain_error(const toile_error *error) {
    return toile_complain(toile_status_exit_code(error->status), "%s", error->message);
}

int toile_print_json(json_t *value) {
    if (!value)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the JSON output");
    int failed = json_dumpf(value, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(value);
    if (failed == 0)
        putchar('\n');
    return 0;
}

/* ---- nearest name, for typing mistakes ---- */

static int edit_distance(const char *a, const char *b) {
    enum { LONGEST = 48 };
    int row[LONGEST + 1];
    int length = (int)strlen(b);
    if (length > LONGEST)
        return LONGEST;
    for (int j = 0; j <= length; j++)
        row[j] = j;
    for (int i = 1; *a; a++, i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int best = corner + (*a != b[j - 1]);
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            corner = row[j];
            row[j] = best;
        }
    }
    return row[length];
}

static const char *nearest(const char *word, const char *const *names, int count) {
    const char *best = NULL;
    int least = 4;
    for (int i = 0; i < count; i++) {
        int distance = edit_distance(word, names[i]);
        if (distance < least && distance < (int)strlen(word)) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

static int complain_unknown(const char *kind, const char *word, const char *const *names, int count) {
    char list[1024] = "";
    size_t used = 0;
    for (int i = 0; i < count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    const char *near = nearest(word, names, count);
    if (near)
        return toile_complain(TOILE_EXIT_USAGE, "unknown %s \"%s\"; did you mean %s? Known: %s", kind, word,
                              near, list);
    return toile_complain(TOILE_EXIT_USAGE, "unknown %s \"%s\". Known: %s", kind, word, list);
}

/* ---- options ---- */

static void print_help(const toile_syntax *syntax) {
    printf("Usage: %s\n\n%s\n", syntax->usage, syntax->summary);
    if (syntax->option_count > 0)
        printf("\nOptions:\n");
    for (int i = 0; i < syntax->option_count; i++) {
        const toile_option *option = &syntax->options[i];
        char left[64];
        snprintf(left, sizeof left, "%s%s%s%s%s", option->letter ? option->letter : "",
                 option->letter ? ", " : "", option->name, option->value ? " " : "",
                 option->value ? option->value : "");
        printf("  %-26s %s\n", left, option->help);
    }
    printf("  %-26s %s\n", "--help", "this text");
}

static bool parse_whole(const char *text, int *value, const char **end) {
    char *stop;
    errno = 0;
    long number = strtol(text, &stop, 10);
    if (stop == text || errno || number < INT_MIN || number > INT_MAX)
        return false;
    *value = (int)number;
    *end = stop;
    return true;
}

static bool parse_frames(const char *text, toile_frame_range *range) {
    const char *at;
    if (!parse_whole(text, &range->first, &at))
        return false;
    range->last = range->first;
    if (*at == '-' && !parse_whole(at + 1, &range->last, &at))
        return false;
    range->given = true;
    return *at == 0 && range->last >= range->first;
}

static bool store_option(const toile_option *option, const char *text, int *exit_code) {
    const char *end;
    char *stop;
    switch (option->kind) {
    case TOILE_OPTION_FLAG: *(bool *)option->target = true; return true;
    case TOILE_OPTION_TEXT: *(const char **)option->target = text; return true;
    case TOILE_OPTION_LIST: {
        toile_option_list *list = option->target;
        list->items[list->count++] = text;
        return true;
    }
    case TOILE_OPTION_WHOLE:
        if (parse_whole(text, option->target, &end) && *end == 0 && *(int *)option->target >= 0)
            return true;
        *exit_code = toile_complain(TOILE_EXIT_USAGE, "%s: \"%s\" is not a whole number from 0 up",
                                    option->name, text);
        return false;
    case TOILE_OPTION_NUMBER:
        *(double *)option->target = strtod(text, &stop);
        if (stop != text && *stop == 0)
            return true;
        *exit_code = toile_complain(TOILE_EXIT_USAGE, "%s: \"%s\" is not a number", option->name, text);
        return false;
    case TOILE_OPTION_FRAMES:
        if (parse_frames(text, option->target))
            return true;
        *exit_code = toile_complain(
            TOILE_EXIT_USAGE, "%s: \"%s\" is not a frame range; write for example 1-100", option->name, text);
        return false;
    case TOILE_OPTION_CHOICE: {
        int count = 0;
        for (; option->choices[count]; count++)
            if (strcmp(option->choices[count], text) == 0) {
                *(int *)option->target = count;
                return true;
            }
        char kind[64];
        snprintf(kind, sizeof kind, "value of %s", option->name);
        *exit_code = complain_unknown(kind, text, option->choices, count);
        return false;
    }
    }
    return false;
}

static const toile_option *find_option(const toile_syntax *syntax, const char *text, size_t length) {
    for (int i = 0; i < syntax->option_count; i++) {
        const toile_option *option = &syntax->options[i];
        if ((strlen(option->name) == length && strncmp(option->name, text, length) == 0) ||
            (option->letter && strlen(option->letter) == length &&
             strncmp(option->letter, text, length) == 0))
            return option;
    }
    return NULL;
}

static int complain_option(const toile_syntax *syntax, const char *text, size_t length) {
    enum { MOST = 24 };
    const char *names[MOST];
    int count = 0;
    for (; count < syntax->option_count && count < MOST - 1; count++)
        names[count] = syntax->options[count].name;
    names[count++] = "--help";
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)length, text);
    return complain_unknown("option", word, names, count);
}

bool toile_parse_options(const toile_syntax *syntax, int argc, char **argv, const char **operands,
                         int *exit_code) {
    int operand_count = 0;
    bool only_operands = false;
    *exit_code = TOILE_EXIT_USAGE;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (!only_operands && strcmp(text, "--") == 0) {
            only_operands = true;
            continue;
        }
        if (only_operands || text[0] != '-' || text[1] == 0) {
            if (operand_count == syntax->operand_count) {
                toile_complain(TOILE_EXIT_USAGE, "\"%s\" is one too many. Usage: %s", text, syntax->usage);
                return false;
            }
            operands[operand_count++] = text;
            continue;
        }
        if (strcmp(text, "--help") == 0 || strcmp(text, "-h") == 0) {
            print_help(syntax);
            *exit_code = 0;
            return false;
        }
        const char *equals = text[1] == '-' ? strchr(text, '=') : NULL;
        size_t length = equals ? (size_t)(equals - text) : strlen(text);
        const toile_option *option = find_option(syntax, text, length);
        if (!option) {
            complain_option(syntax, text, length);
            return false;
        }
        const char *value = equals ? equals + 1 : NULL;
        if (option->kind == TOILE_OPTION_FLAG && value) {
            toile_complain(TOILE_EXIT_USAGE, "%s takes no value", option->name);
            return false;
        }
        if (option->kind != TOILE_OPTION_FLAG && !value) {
            if (i + 1 == argc) {
                toile_complain(TOILE_EXIT_USAGE, "%s needs a value: %s %s", option->name, option->name,
                               option->value);
                return false;
            }
            value = argv[++i];
        }
        if (!store_option(option, value, exit_code))
            return false;
    }
    if (operand_count < syntax->operand_count) {
        toile_complain(TOILE_EXIT_USAGE, "%s is missing. Usage: %s", syntax->operands[operand_count],
                       syntax->usage);
        return false;
    }
    *exit_code = 0;
    return true;
}

bool toile_choose_frames(const toile_frame_range *range, const toile_cache *cache, const char *path,
                         int *first_index, int *last_index) {
    int first = toile_cache_get_header(cache)->first_frame, count = toile_cache_frame_count(cache);
    if (count == 0) {
        toile_complain(TOILE_EXIT_INPUT, "%s has no finished frame yet", path);
        return false;
    }
    *first_index = 0;
    *last_index = count - 1;
    if (!range->given)
        return true;
    if (range->first < first || range->last > first + count - 1) {
        toile_complain(TOILE_EXIT_INPUT, "--frames %d-%d: %s has frames %d to %d", range->first, range->last,
                       path, first, first + count - 1);
        return false;
    }
    *first_index = range->first - first;
    *last_index = range->last - first;
    return true;
}

/* ---- bake ---- */

int toile_command_bake(int argc, char **argv) {
    char output[PATH_MAX];
    static const char *const operand_names[] = {"SCENE.json"};
    toile_bake_options bake = {.threads = -1, .grace = TOILE_BAKE_GRACE};
    toile_option_list sets = {calloc((size_t)argc, sizeof(char *)), 0};
    int mode = TOILE_PROGRESS_AUTO, exit_code;
    const toile_option options[] = {
        {"--output", "-o", TOILE_OPTION_TEXT, &bake.cache_path, "CACHE.h5", "the cache to write", NULL},
        {"--frames", NULL, TOILE_OPTION_FRAMES, &bake.frames, "A-B",
         "bake to frame B instead of the scene's last; A is the scene's first, or with --resume a frame from which on the "
         "frames are made anew", NULL},
        {"--resume", NULL, TOILE_OPTION_FLAG, &bake.resume, NULL,
         "go on where a bake into this cache was stopped", NULL},
        {"--force", NULL, TOILE_OPTION_FLAG, &bake.force, NULL,
         "with --resume: even though the scene was changed", NULL},
        {"--position-error", NULL, TOILE_OPTION_NUMBER, &bake.position_error, "M",
         "store positions to within M metres (velocities to M per frame): a smaller cache; else as exact as float32", NULL},
        {"--threads", NULL, TOILE_OPTION_WHOLE, &bake.threads, "N",
         "processor threads; 0 takes all; else as the scene says, within what Slurm or a control group gives",
         NULL},
        {"--set", NULL, TOILE_OPTION_LIST, &sets, "PATH=VALUE",
         "change a value of the scene, such as settings.time_step=0.002", NULL},
        {"--progress", NULL, TOILE_OPTION_CHOICE, &mode, "MODE", "auto, bar, json (lines on stdout), openjd or none",
         toile_progress_modes},
        {"--report", NULL, TOILE_OPTION_TEXT, &bake.report_path, "R.json", "write the figures of the bake",
         NULL},
        {"--heartbeat", NULL, TOILE_OPTION_TEXT, &bake.heartbeat_path, "H.json",
         "a file that is written anew every 2 seconds: how far, by whom", NULL},
        {"--grace", NULL, TOILE_OPTION_NUMBER, &bake.grace, "S",
         "seconds that the frame in work may go on after a signal before it is given up; 10", NULL},
    };
    const toile_syntax syntax = {
        "toile bake SCENE.json -o CACHE.h5 [--frames A-B] [--resume] [--force] [--position-error M] "
        "[--threads N] [--set PATH=VALUE]... "
        "[--progress auto|bar|json|openjd|none] [--report R.json] [--heartbeat H.json] [--grace S]",
        "Simulates a scene and writes every frame into a cache as soon as it is finished. A job (`toile pack`) does for\n"
        "a scene.\n"
        "Ctrl-C, SIGTERM or SIGUSR1 ends the bake after the frame in work, or after 10 s (--grace) and one step of it without\n"
        "it, with exit code 75; --resume goes on from there and gives the same result to the last bit as a bake that was\n"
        "never stopped. A second signal does not wait for the frame.",
        options,
        COUNT(options),
        operand_names,
        COUNT(operand_names)};
    if (!sets.items)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the options");
    if (toile_parse_options(&syntax, argc, argv, &bake.scene_path, &exit_code)) {
        bake.sets = sets.items;
        bake.set_count = sets.count;
        bake.progress = (toile_progress_mode)mode;
        if (bake.cache_path)
            bake.cache_path = toile_output_path(bake.cache_path, output, sizeof output);
        if (!bake.cache_path)
            exit_code = toile_complain(TOILE_EXIT_USAGE, "where to? Give the cache: -o CACHE.h5");
        else if (!(bake.position_error >= 0 && bake.position_error <= 1))
            exit_code = toile_complain(TOILE_EXIT_USAGE, "--position-error %g: it is in metres, from 0 to 1",
                                       bake.position_error);
        else if (bake.force && !bake.resume)
            exit_code = toile_complain(TOILE_EXIT_USAGE,
                                       "--force goes with --resume: it continues a bake whose scene "
                                       "was changed. A bake without --resume starts anew anyway");
        else
            exit_code = toile_bake(&bake);
    }
    free(sets.items);
    return exit_code;
}

/* ---- pack ---- */

int toile_command_pack(int argc, char **argv) {
    static const char *const operand_names[] = {"SCENE.json"};
    toile_option_list sets = {calloc((size_t)argc, sizeof(char *)), 0};
    const char *scene = NULL, *job = NULL;
    int exit_code;
    const toile_option options[] = {
        {"--output", "-o", TOILE_OPTION_TEXT, &job, "JOB.h5", "the job to write", NULL},
        {"--set", NULL, TOILE_OPTION_LIST, &sets, "PATH=VALUE", "change a value of the scene, as for bake", NULL},
    };
    const toile_syntax syntax = {"toile pack SCENE.json -o JOB.h5 [--set PATH=VALUE]...",
                                 "Writes a scene with every mesh file that it names into one file, which `toile bake` "
                                 "takes in place of\nthe scene. The result of the bake is the same to the last bit.",
                                 options, COUNT(options), operand_names, COUNT(operand_names)};
    if (!sets.items)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the options");
    if (toile_parse_options(&syntax, argc, argv, &scene, &exit_code)) {
        toile_error error;
        if (!job)
            exit_code = toile_complain(TOILE_EXIT_USAGE, "where to? Give the job: -o JOB.h5");
        else if (toile_job_pack(scene, sets.items, sets.count, job, &error) < 0)
            exit_code = toile_complain_error(&error);
    }
    free(sets.items);
    return exit_code;
}

/* ---- the program ---- */

static void print_program_help(void) {
    printf("Toile %s: garments made of seamed panels, simulated against moving bodies.\n\n"
           "Usage: toile COMMAND ...\n\nCommands:\n",
           toile_version());
    for (int i = 0; i < COUNT(COMMANDS); i++)
        printf("  %-10s %s\n", COMMANDS[i].name, COMMANDS[i].summary);
    printf(
        "\n`toile COMMAND --help` says more. Exit codes: 0 done, 2 usage, 3 bad input, 4 the simulation "
        "failed or\n"
        "verify found something, 5 a file could not be read or written, 75 stopped by a signal (go on with\n"
        "--resume).\n");
}

static int run_command(int argc, char **argv) {
    if (argc < 2) {
        toile_complain(TOILE_EXIT_USAGE, "what is to be done? Try: toile --help");
        return TOILE_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        print_program_help();
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("toile %s\n", toile_version());
        return 0;
    }
    const char *names[COUNT(COMMANDS)];
    for (int i = 0; i < COUNT(COMMANDS); i++) {
        if (strcmp(argv[1], COMMANDS[i].name) == 0)
            return COMMANDS[i].run(argc - 1, argv + 1);
        names[i] = COMMANDS[i].name;
    }
    return complain_unknown("command", argv[1], names, COUNT(COMMANDS));
}

/* A reader that goes away (`toile info x | head`) is no failure, and must not end a bake. */
static volatile sig_atomic_t reader_gone;

static void on_reader_gone(int number) {
    (void)number;
    reader_gone = 1;
}

/* Threads of OpenMP that wait for each other spin: by gcc's default for milliseconds, longer than the turn the
 * system gives them on a core. Where another program runs as well (Blender's window, a second bake) the one that
 * spins then takes the core from the one it waits for: a bake with two threads took three times as long. 1000
 * turns are some 30 us, enough for the gaps within a step. The library of OpenMP reads this before main, hence
 * the second start; whoever has set it knows better. */
static void wait_calmly(char **argv) {
    if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") || setenv("GOMP_SPINCOUNT", "1000", 0) != 0)
        return;
    execv("/proc/self/exe", argv); /* returns only when it cannot: then as it was */
}

int main(int argc, char **argv) {
    wait_calmly(argv);
    /* Numbers are written and read with a point everywhere, whatever the user's language. */
    setlocale(LC_ALL, "C");
    signal(SIGPIPE, on_reader_gone);
    signal(SIGXFSZ, SIG_IGN); /* a limit on the size of files is a failed write like a full disk */
    int exit_code = run_command(argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && !reader_gone && exit_code == 0)
        exit_code = toile_complain(TOILE_EXIT_IO, "the output could not be written; is the disk full?");
    return exit_code;
}
