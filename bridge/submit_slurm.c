/* Slurm: an array job that bakes, one that exports each wedge when its bake is done, one for the report.
 *
 * A task whose time is nearly over is told by USR1, which goes to the script (B:) since nothing else of a
 * batch job would get it. It passes it on, Toile leaves with 75, and the script puts the task back into the
 * queue; so it does, a few times, when Toile was killed or a disk failed. A drained, lost or preempted node
 * needs nothing of this: --requeue does. */
#include "submit.h"

#include "commands.h"

#include <string.h>

static void put_head(FILE *out, const toile_farm *farm, const char *what, const char *about) {
    fprintf(out, "#!/bin/bash\n# %s Made by `toile submit`; change what you like, then run submit.sh.\n",
            about);
    fprintf(out, "#SBATCH --job-name=%s-%s\n", farm->name, what);
    fputs("#SBATCH --requeue\n#SBATCH --open-mode=append\n", out);
    if (farm->partition[0])
        fprintf(out, "#SBATCH --partition=%s\n", farm->partition);
}

static void put_array(FILE *out, const toile_farm *farm, const char *what) {
    fprintf(out, "#SBATCH --array=0-%d", farm->plan->count - 1);
    if (farm->slots > 0)
        fprintf(out, "%%%d", farm->slots);
    fprintf(out, "\n#SBATCH --output=%s_%%a.log\n", what);
}

static void put_names(FILE *out, const toile_farm *farm) {
    fputs("\ntoile=", out);
    toile_put_word(out, farm->program);
    fputs("\nwedges=", out);
    toile_put_word(out, farm->folder);
    fputc('\n', out);
}

static void put_bake(FILE *out, const toile_farm *farm) {
    put_head(out, farm, "bake", "Bakes one wedge per task; a task that is run again goes on where it was.");
    put_array(out, farm, "bake");
    fprintf(out, "#SBATCH --cpus-per-task=%d\n#SBATCH --time=%d\n", farm->cpus, farm->minutes);
    if (farm->memory > 0)
        fprintf(out, "#SBATCH --mem=%dM\n", farm->memory);
    fprintf(out, "#SBATCH --signal=B:USR1@%d      # seconds before the time is over\n", TOILE_FARM_NOTICE);
    put_names(out, farm);
    fprintf(out,
            "retries=%d                              # after a crash or a failed disk\n"
            "\n"
            "\"$toile\" wedge \"$wedges\" --index \"$SLURM_ARRAY_TASK_ID\" --wait %d --grace %d &\n"
            "bake=$!\n"
            "over=no\n"
            "trap 'over=yes; kill -USR1 $bake' USR1     # time is nearly over: write a checkpoint and leave\n"
            "trap 'kill -TERM $bake 2>/dev/null' TERM\n"
            "wait $bake\n"
            "code=$?\n"
            "while kill -0 $bake 2>/dev/null; do        # a signal ends a wait\n"
            "    wait $bake\n"
            "    code=$?\n"
            "done\n"
            "\n"
            "# 75: stopped, resumable. 5: a file could not be written. Above 128: killed.\n"
            "again=no\n"
            "[ $code -eq 75 ] && again=$over\n"
            "if [ $code -eq 5 ] || [ $code -gt 128 ]; then\n"
            "    [ \"${SLURM_RESTART_COUNT:-0}\" -lt $retries ] && again=yes\n"
            "fi\n"
            "# Slurm ends the task that it puts back: to end by ourselves meanwhile would confuse it.\n"
            "[ $again = yes ] && scontrol requeue \"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\" && exec "
            "sleep 60\n"
            "exit $code\n",
            TOILE_FARM_RETRIES, TOILE_FARM_WAIT, TOILE_FARM_GRACE);
}

static void put_export(FILE *out, const toile_farm *farm) {
    put_head(out, farm, "export", "Exports each wedge when its bake is done.");
    put_array(out, farm, "export");
    fputs(
        "#SBATCH --cpus-per-task=1\n#SBATCH --kill-on-invalid-dep=yes     # of a bake that failed for good\n",
        out);
    put_names(out, farm);
    fprintf(
        out,
        "\nexec \"$toile\" wedge \"$wedges\" --index \"$SLURM_ARRAY_TASK_ID\" --export %s --progress none\n",
        farm->formats);
}

static void put_report(FILE *out, const toile_farm *farm) {
    put_head(out, farm, "report", "Table and contact sheet of what is there.");
    fputs("#SBATCH --output=report.log\n#SBATCH --cpus-per-task=1\n", out);
    put_names(out, farm);
    fputs("\nexec \"$toile\" wedge report \"$wedges\"\n", out);
}

static void put_submit(FILE *out, const toile_farm *farm) {
    bool exports = farm->formats[0];
    fputs("#!/bin/bash\n# Puts the jobs into Slurm's queue, each after what it needs.\n"
          "set -euo pipefail\n"
          "cd \"$(dirname \"$0\")\"\n"
          "bake=$(sbatch --parsable bake.sbatch)\n"
          "bake=${bake%%;*}                           # clusters add their name\n",
          out);
    if (exports)
        fputs("export=$(sbatch --parsable --dependency=aftercorr:$bake export.sbatch)\n"
              "export=${export%%;*}\n",
              out);
    fprintf(out, "report=$(sbatch --parsable --dependency=afterany:$bake%s report.sbatch)\n",
            exports ? ":$export" : "");
    fprintf(out, "echo \"bake $bake%s report ${report%%%%;*}\"\n", exports ? " export $export" : "");
}

static toile_status write_file(const toile_farm *farm, const char *name,
                               void (*put)(FILE *, const toile_farm *), toile_error *error) {
    toile_text_file file;
    toile_status status = toile_text_begin(&file, error);
    if (status < 0)
        return status;
    put(file.out, farm);
    return toile_text_end(&file, farm, name, strcmp(name, "submit.sh") == 0, error);
}

static toile_status write_slurm(const toile_farm *farm, toile_error *error) {
    toile_status status = write_file(farm, "bake.sbatch", put_bake, error);
    if (status >= 0 && farm->formats[0])
        status = write_file(farm, "export.sbatch", put_export, error);
    if (status >= 0)
        status = write_file(farm, "report.sbatch", put_report, error);
    return status < 0 ? status : write_file(farm, "submit.sh", put_submit, error);
}

static int run_slurm(const toile_farm *farm) {
    char *const arguments[] = {"./submit.sh", NULL};
    int code = toile_run_program(farm, arguments);
    return code == 0 ? 0
                     : toile_complain(TOILE_EXIT_FAILED,
                                      "Slurm did not take the jobs (%s/submit.sh ended with %d). Is this "
                                      "machine one that can submit?",
                                      farm->output, code);
}

const toile_engine toile_engine_slurm = {"slurm", write_slurm, run_slurm};
