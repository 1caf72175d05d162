/* The queue of one machine: a bounded number of processes, each a wedge's bake or export as any farm would
 * run it. Ctrl-C ends them all in order; submitted again, they go on. */
#include "submit.h"

#include "commands.h"
#include "wedge_report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TELL_SECONDS 2.0

typedef enum task_state { WAITS_TO_BAKE, BAKES, WAITS_TO_EXPORT, EXPORTS, DONE, FAILED, STOPPED } task_state;
static const char *const STATES[] = {"waiting",  "baking", "baked",  "exporting",
                                     "complete", "failed", "stopped"};

typedef struct task {
    task_state state;
    pid_t process;
    int code, tries;
} task;

typedef struct queue {
    const toile_farm *farm;
    task *tasks;
    int count, running, slots;
    bool bar; /* the cursor stands behind a line that is written over */
    double told;
} queue;

/* ---- signals ---- */

static volatile sig_atomic_t stops;

static void on_signal(int number) {
    (void)number;
    stops++;
}

static void catch_signals(void) {
    static const int SIGNALS[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    struct sigaction action = {.sa_handler = on_signal}; /* not SA_RESTART: a sleep ends */
    sigemptyset(&action.sa_mask);
    stops = 0;
    for (size_t i = 0; i < sizeof SIGNALS / sizeof *SIGNALS; i++)
        sigaction(SIGNALS[i], &action, NULL);
}

/* ---- processes ---- */

static bool is_running(task_state state) {
    return state == BAKES || state == EXPORTS;
}

static void open_log(const toile_farm *farm, const char *what, int index) {
    char path[TOILE_WEDGE_PATH];
    snprintf(path, sizeof path, "%.4000s/%s_%d.log", farm->output, what, index);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log >= 0) {
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
    }
}

/* In a group of its own, so that Ctrl-C reaches us alone and is passed on once; and ended when we are. */
static void become(const toile_farm *farm, int index, bool export) {
    char number[16], cpus[16], grace[16], wait[16];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    open_log(farm, export ? "export" : "bake", index);
    setenv("OMP_WAIT_POLICY", "passive", 0); /* threads that spin harm the neighbours */
    snprintf(number, sizeof number, "%d", index);
    snprintf(cpus, sizeof cpus, "%d", farm->cpus);
    snprintf(grace, sizeof grace, "%d", TOILE_FARM_GRACE);
    snprintf(wait, sizeof wait, "%d", TOILE_FARM_WAIT);
    if (export)
        execlp(farm->program, farm->program, "wedge", farm->folder, "--index", number, "--export",
               farm->formats, "--progress", "none", (char *)NULL);
    else
        execlp(farm->program, farm->program, "wedge", farm->folder, "--index", number, "--threads", cpus,
               "--grace", grace, "--wait", wait, (char *)NULL);
    toile_complain(TOILE_EXIT_IO, "%s cannot be run: %s", farm->program, strerror(errno));
    _exit(TOILE_EXIT_IO);
}

static void tell_task(queue *q, int index);

static void start_some(queue *q) {
    for (int i = 0; i < q->count && q->running < q->slots && !stops; i++) {
        task *t = &q->tasks[i];
        if (t->state != WAITS_TO_BAKE && t->state != WAITS_TO_EXPORT)
            continue;
        bool export = t->state == WAITS_TO_EXPORT;
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            become(q->farm, i, export);
        if (child < 0) /* later, when others have ended */
            return;
        t->process = child;
        t->state = export ? EXPORTS : BAKES;
        q->running++;
        tell_task(q, i);
    }
}

/* What comes after a process has ended. Killed, or a disk that failed: once more, a few times. */
static void ended(queue *q, task *t, int status) {
    bool export = t->state == EXPORTS;
    t->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    q->running--;
    if (t->code == 0)
        t->state = !export && q->farm->formats[0] ? WAITS_TO_EXPORT : DONE;
    else if (t->code == 75 || stops)
        t->state = STOPPED;
    else if ((t->code > 128 || t->code == TOILE_EXIT_IO) && t->tries++ < TOILE_FARM_RETRIES)
        t->state = export ? WAITS_TO_EXPORT : WAITS_TO_BAKE;
    else
        t->state = FAILED;
}

static void collect(queue *q) {
    int status;
    for (int i = 0; i < q->count; i++)
        if (is_running(q->tasks[i].state) &&
            waitpid(q->tasks[i].process, &status, WNOHANG) == q->tasks[i].process) {
            ended(q, &q->tasks[i], status);
            tell_task(q, i);
        }
}

static void pass_on(queue *q) {
    for (int i = 0; i < q->count; i++)
        if (is_running(q->tasks[i].state))
            kill(q->tasks[i].process, SIGTERM);
}

/* ---- telling ---- */

static int count_of(const queue *q, task_state state) {
    int count = 0;
    for (int i = 0; i < q->count; i++)
        count += q->tasks[i].state == state;
    return count;
}

static void print_event(json_t *event) {
    char *text = event ? json_dumps(event, JSON_COMPACT | JSON_REAL_PRECISION(6)) : NULL;
    if (text) {
        puts(text);
        fflush(stdout);
    }
    free(text);
    json_decref(event);
}

static void end_bar(queue *q) {
    if (q->bar)
        fputc('\n', stderr);
    q->bar = false;
}

static void tell_task(queue *q, int index) {
    const task *t = &q->tasks[index];
    const char *name = toile_plan_name(q->farm->plan, index);
    if (q->farm->mode == TOILE_PROGRESS_JSON)
        print_event(json_pack("{s:s, s:i, s:s, s:s, s:i, s:i, s:i}", "event", "wedge", "index", index, "name",
                              name, "state", STATES[t->state], "exit_code", t->code, "done",
                              count_of(q, DONE), "of", q->count));
    else if (t->state == FAILED || (t->state == WAITS_TO_BAKE && t->tries > 0)) {
        end_bar(q);
        fprintf(stderr, "toile: %s ended with %d%s; see %s/bake_%d.log\n", name, t->code,
                t->state == FAILED ? "" : " and is started again", q->farm->output, index);
    }
}

static double percent_of(const toile_plan *plan, int wedge) {
    char path[TOILE_WEDGE_PATH];
    toile_plan_path(plan, wedge, ".heartbeat.json", path);
    json_t *beat = json_load_file(path, 0, NULL);
    double percent = json_number_value(json_object_get(beat, "percent"));
    json_decref(beat);
    return percent >= 0 && percent <= 100 ? percent : 0;
}

static void tell_all(queue *q) {
    double sum = 0;
    if (toile_now() - q->told < TELL_SECONDS || q->farm->mode == TOILE_PROGRESS_NONE)
        return;
    q->told = toile_now();
    for (int i = 0; i < q->count; i++)
        sum += q->tasks[i].state == BAKES ? percent_of(q->farm->plan, i)
               : q->tasks[i].state == WAITS_TO_BAKE || q->tasks[i].state == FAILED ? 0
                                                                                   : 100;
    double percent = sum / q->count;
    if (q->farm->mode == TOILE_PROGRESS_JSON) {
        print_event(json_pack("{s:s, s:i, s:i, s:i, s:f}", "event", "farm", "done", count_of(q, DONE),
                              "running", q->running, "of", q->count, "percent", percent));
        return;
    }
    bool terminal = isatty(STDERR_FILENO);
    fprintf(stderr, "%s%d of %d done, %d running, %.0f %%%s", terminal ? "\r" : "", count_of(q, DONE),
            q->count, q->running, percent, terminal ? "\033[K" : "\n");
    fflush(stderr);
    q->bar = terminal;
}

/* ---- the engine ---- */

static toile_status write_local(const toile_farm *farm, toile_error *error) {
    toile_text_file file;
    toile_status status = toile_text_begin(&file, error);
    if (status < 0)
        return status;
    FILE *out = file.out;
    fputs("#!/bin/bash\n# Everything on this machine, a few at a time. Made by `toile submit`; run again, it "
          "goes on where it was.\n"
          "set -uo pipefail\ntoile=",
          out);
    toile_put_word(out, farm->program);
    fputs("\nwedges=", out);
    toile_put_word(out, farm->folder);
    fprintf(out,
            "\nslots=%d\nexport OMP_WAIT_POLICY=passive toile wedges\n\n"
            "seq 0 %d | xargs -P $slots -I N \"$toile\" wedge \"$wedges\" --index N --threads %d\n",
            farm->slots, farm->plan->count - 1, farm->cpus);
    if (farm->formats[0])
        fprintf(out,
                "seq 0 %d | xargs -P $slots -I N \"$toile\" wedge \"$wedges\" --index N --export %s "
                "--progress none\n",
                farm->plan->count - 1, farm->formats);
    fputs("\"$toile\" wedge report \"$wedges\"\n", out);
    return toile_text_end(&file, farm, "run.sh", true, error);
}

static int tell_end(queue *q) {
    int first = 0;
    end_bar(q);
    for (int i = q->count - 1; i >= 0; i--)
        if (q->tasks[i].state == FAILED)
            first = q->tasks[i].code;
    if (stops) {
        fprintf(stderr, "toile: stopped; %d of %d are done. The same command goes on\n", count_of(q, DONE),
                q->count);
        return 75;
    }
    int stopped = count_of(q, STOPPED);
    if (stopped > 0) /* by someone else, one by one */
        fprintf(stderr, "toile: %d of %d were stopped; the same command goes on\n", stopped, q->count);
    int reported = toile_wedge_report(q->farm->plan, INT_MIN, 400);
    return first ? (first > 128 ? TOILE_EXIT_FAILED : first) : stopped ? 75 : reported;
}

static int run_local(const toile_farm *farm) {
    queue q = {.farm = farm, .count = farm->plan->count, .slots = farm->slots, .told = toile_now()};
    q.tasks = calloc((size_t)q.count, sizeof *q.tasks);
    if (!q.tasks)
        return toile_complain(TOILE_EXIT_FAILED, "not enough memory for the queue");
    catch_signals();
    int passed = 0;
    for (;;) {
        collect(&q);
        start_some(&q);
        if (q.running == 0)
            break;
        if (stops > passed) {
            passed = stops;
            pass_on(&q);
        }
        tell_all(&q);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    int exit_code = tell_end(&q);
    free(q.tasks);
    return exit_code;
}

const toile_engine toile_engine_local = {"local", write_local, run_local};
