/* toile experiment: the papers' experiments by name. */
#include "commands.h"
#include "experiments.h"
#include "progress.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* One line for each. */
static const experiment_entry EXPERIMENTS[] = {
    {"fb_stability", "Boxerman 2003, 4.1.3",
     "Longest stable step of fb_euler over random cloths, as numerical stiffness kappa",
     experiment_fb_stability},
    {"aimex_stability", "Boxerman 2003, 4.4.3 and Figs. 4.8 to 4.10",
     "Adaptive IMEX while connections turn from explicit to implicit and back", experiment_aimex_stability},
    {"projected_damping", "Boxerman 2003, 4.2.4 and Figs. 4.4 to 4.6",
     "Energies of a swinging sheet: no damping, damping of all motion, damping along connections",
     experiment_projected_damping},
    {"aimex", "Boxerman 2003, 4.4.3 and Table 4.1",
     "Adaptive IMEX beside implicit steps: difference of the results, iterations, time", experiment_aimex},
    {"preconditioners", "Boxerman 2003, 5.3.1 and Figs. 5.3 to 5.10",
     "Iterations of MPCG without and with preconditioners, by particles and stiffness",
     experiment_preconditioners},
    {"decompose", "Boxerman 2003, chapter 6; Boxerman and Ascher 2004",
     "Row multiplications and time of the decomposing solver; its parts in colour", experiment_decompose},
    {"ye_table1", "Ye, Webber and Wang 2008, Table 1",
     "Iterations and time of MPCG on A and of PCG on the reduced system", experiment_ye_table1},
    {"ye_table2", "Ye, Webber and Wang 2008, Table 2",
     "MPCG, a direct solver, corePCG and auto by mesh and stretch stiffness", experiment_ye_table2},
    {"bw_resolution", "Baraff and Witkin 1998, section 8",
     "Cost of a frame by number of particles, a sheet on a cylinder", experiment_bw_resolution},
    {"bw_bend", "Baraff and Witkin 1998, section 8",
     "Cost of a frame over bend stiffnesses from 0.1 to 1000 times cotton's", experiment_bw_bend},
    {"jiang_rk4", "Jiang 2021, section 4",
     "Explicit RK4 beside implicit steps: longest step, cost by stiffness, five test systems",
     experiment_jiang_rk4},
    {NULL, NULL, NULL, NULL},
};

static int list_experiments(void) {
    printf("Usage: toile experiment NAME -o DIR\n\n");
    for (int i = 0; EXPERIMENTS[i].name; i++)
        printf("  %-17s %s (%s)\n", EXPERIMENTS[i].name, EXPERIMENTS[i].summary, EXPERIMENTS[i].source);
    printf("\nEach leaves NAME.csv, NAME.svg and NAME.md in DIR. `toile experiment all -o DIR` runs them "
           "all.\n");
    return 0;
}

/* Makes the folder and says why not, before hours are spent. */
static bool make_directory(const char *path) {
    struct stat about;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        toile_complain(TOILE_EXIT_IO, "the folder %s cannot be made: %s. Choose another one with -o", path,
                       strerror(errno));
        return false;
    }
    if (stat(path, &about) != 0 || !S_ISDIR(about.st_mode)) {
        toile_complain(TOILE_EXIT_IO, "%s is not a folder. Choose another one with -o", path);
        return false;
    }
    if (access(path, W_OK | X_OK) != 0) {
        toile_complain(TOILE_EXIT_IO,
                       "nothing can be written into the folder %s: %s. Choose another one with -o", path,
                       strerror(errno));
        return false;
    }
    return true;
}

static bool close_file(experiment *e, FILE *file) {
    if (!file)
        return true;
    bool bad = ferror(file) != 0;
    if (fclose(file) != 0 || bad) {
        if (e->error.status == TOILE_OK)
            toile_fail(&e->error, TOILE_IO, "a file in %s could not be written to the end: is the disk full?",
                       e->directory);
        return false;
    }
    return true;
}

static int run_experiment(const experiment_entry *entry, experiment e) {
    e.name = entry->name;
    e.began = toile_now();
    printf("%s: %s\n", entry->name, entry->summary);
    fflush(stdout);
    bool good = (e.table = experiment_open(&e, ".md")) != NULL;
    if (good) {
        fprintf(e.table, "# %s\n\n%s. %s.%s\n\n| what | paper | Toile | |\n|---|---|---|---|\n", entry->name,
                entry->summary, entry->source,
                e.quick ? " A quick run on small sizes: not for comparison." : "");
        good = entry->run(&e);
        if (e.stopped)
            fprintf(e.table, "\nStopped before the end: these are the figures up to then.\n");
    }
    good = close_file(&e, e.csv) && good;
    good = close_file(&e, e.table) && good;
    if (!good)
        return toile_complain_error(&e.error);
    printf("  wrote %s/%s.csv, .svg, .md\n", e.directory, entry->name);
    if (e.stopped)
        return toile_complain(toile_status_exit_code(TOILE_CANCELLED),
                              "%s was stopped; what was measured is in %s", entry->name, e.directory);
    return 0;
}

int toile_command_experiment(int argc, char **argv) {
    const char *name = "list";
    experiment e = {.threads = 1, .samples = "samples/scenes"};
    int exit_code;
    const toile_option options[] = {
        {"--output", "-o", TOILE_OPTION_TEXT, &e.directory, "DIR",
         "the folder to write into; it is made if need be", NULL},
        {"--quick", NULL, TOILE_OPTION_FLAG, &e.quick, NULL,
         "small sizes and few runs: seconds instead of minutes to hours", NULL},
        {"--threads", NULL, TOILE_OPTION_WHOLE, &e.threads, "N",
         "processor threads of what is not about threads (1)", NULL},
        {"--sets", NULL, TOILE_OPTION_WHOLE, &e.sets, "N",
         "parameter sets to try, where the paper has hundreds", NULL},
        {"--largest", NULL, TOILE_OPTION_WHOLE, &e.largest, "N", "random sheets of at most N x N particles",
         NULL},
        {"--samples", NULL, TOILE_OPTION_TEXT, &e.samples, "DIR",
         "folder of the sample scenes (samples/scenes)", NULL},
    };
    static const char *const operands[] = {"NAME"};
    const toile_syntax syntax = {
        "toile experiment NAME -o DIR [--quick] [--sets N] [--largest N] [--threads N] [--samples DIR]\n     "
        "  toile "
        "experiment list",
        "Runs an experiment of the papers: every measurement as CSV, a plot, and a table with the paper's\n"
        "figure beside ours. Ctrl-C ends it early and keeps what is done.",
        options,
        sizeof options / sizeof *options,
        operands,
        1};
    if (argc > 1 && !toile_parse_options(&syntax, argc, argv, &name, &exit_code))
        return exit_code;
    if (strcmp(name, "list") == 0)
        return list_experiments();
    bool all = strcmp(name, "all") == 0, found = all;
    for (int i = 0; EXPERIMENTS[i].name; i++)
        found = found || strcmp(name, EXPERIMENTS[i].name) == 0;
    if (!found) {
        toile_complain(TOILE_EXIT_USAGE, "there is no experiment \"%s\"; these there are:", name);
        for (int i = 0; EXPERIMENTS[i].name; i++)
            fprintf(stderr, "%s%s", i ? ", " : "  ", EXPERIMENTS[i].name);
        fprintf(stderr, "\n");
        return TOILE_EXIT_USAGE;
    }
    if (!e.directory)
        return toile_complain(TOILE_EXIT_USAGE, "where to? Give a folder: -o DIR");
    if (e.threads < 1)
        return toile_complain(TOILE_EXIT_USAGE, "--threads %d: at least 1", e.threads);
    if (!make_directory(e.directory))
        return TOILE_EXIT_IO;
    experiment_catch_signals();
    exit_code = 0;
    for (int i = 0; EXPERIMENTS[i].name && exit_code == 0; i++)
        if (all || strcmp(name, EXPERIMENTS[i].name) == 0)
            exit_code = run_experiment(&EXPERIMENTS[i], e);
    return exit_code;
}
