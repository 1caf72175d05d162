/* The commands of the `toile` program, and what they share: options and complaints. A command gets argv with
 * its own name first and returns the program's exit code. */
#ifndef TOILE_COMMANDS_H
#define TOILE_COMMANDS_H

#include "bake.h"
#include "error.h"

#include <stdbool.h>

enum { TOILE_EXIT_USAGE = 2, TOILE_EXIT_INPUT = 3, TOILE_EXIT_FAILED = 4, TOILE_EXIT_IO = 5 };

int toile_command_bake(int argc, char **argv);
int toile_command_bench(int argc, char **argv);
/* bench_ccd.c */
int toile_bench_ccd(const char *path, const char *kind_name, bool json);
int toile_command_experiment(int argc, char **argv);
int toile_command_export(int argc, char **argv);
int toile_command_fabrics(int argc, char **argv);
int toile_command_info(int argc, char **argv);
int toile_command_pack(int argc, char **argv);
int toile_command_recover(int argc, char **argv);
int toile_command_schema(int argc, char **argv);
int toile_command_settings(int argc, char **argv);
int toile_command_solvers(int argc, char **argv);
int toile_command_submit(int argc, char **argv);
int toile_command_verify(int argc, char **argv);
int toile_command_wedge(int argc, char **argv);

/* ---- options ---- */

typedef enum toile_option_kind {
    TOILE_OPTION_FLAG,   /* bool */
    TOILE_OPTION_TEXT,   /* const char * */
    TOILE_OPTION_WHOLE,  /* int, not negative */
    TOILE_OPTION_NUMBER, /* double */
    TOILE_OPTION_FRAMES, /* toile_frame_range, written A-B or A */
    TOILE_OPTION_CHOICE, /* int, position in `choices` */
    TOILE_OPTION_LIST    /* toile_option_list: may be given again and again */
} toile_option_kind;

typedef struct toile_option_list {
    const char **items;
    int count;
} toile_option_list;

typedef struct toile_option {
    const char *name;   /* "--frames" */
    const char *letter; /* "-o", or null */
    toile_option_kind kind;
    void *target;      /* stays as it is when the option is not given */
    const char *value; /* name of the value in --help; null for a flag */
    const char *help;
    const char *const *choices; /* null-terminated, for a choice */
} toile_option;

typedef struct toile_syntax {
    const char *usage; /* "toile info FILE [--json]" */
    const char *summary;
    const toile_option *options;
    int option_count;
    const char *const *operands; /* names of what must be given without a dash, for messages */
    int operand_count;
} toile_syntax;

/* Fills the options' targets and `operands`. False when the command ends here, after --help or a mistake that
 * was complained about: *exit_code says how. */
bool toile_parse_options(const toile_syntax *syntax, int argc, char **argv, const char **operands,
                         int *exit_code);

/* One line on stderr that begins with `toile: `. Returns exit_code. */
int toile_complain(int exit_code, const char *format, ...) __attribute__((format(printf, 2, 3)));
int toile_complain_error(const toile_error *error);

/* Prints a JSON value on stdout and drops it. Returns the exit code. */
struct json_t;
int toile_print_json(struct json_t *value);

/* Indices of the cache's finished frames that `range` asks for; false with a complaint when there is none. */
struct toile_cache;
bool toile_choose_frames(const toile_frame_range *range, const struct toile_cache *cache, const char *path,
                         int *first_index, int *last_index);

/* The scene that a cache keeps, or the one at scene_path if that is not null. Null on failure. */
struct toile_scene;
struct toile_scene *toile_open_cache_scene(const struct toile_cache *cache, const char *scene_path,
                                           toile_error *error);

#endif
