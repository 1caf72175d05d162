/* Flamenco 3.3 and later (https://flamenco.blender.org): a job type, which goes into the folder `scripts`
 * beside flamenco-manager once, and the job as its API takes it (POST /api/v3/jobs). The job type is the same
 * for every job; all that differs is in the settings. */
#include "submit.h"

#include "commands.h"

#include <string.h>

/* In the form that every JavaScript since 2009 reads. */
/* clang-format off */
static const char JOB_TYPE[] =
    "// Toile for Flamenco 3.3 and later: put this file into the folder `scripts` beside flamenco-manager, and restart that.\n"
    "// A task that is run again goes on where it was, so failed tasks may be requeued at will.\n"
    "\n"
    "var JOB_TYPE = {\n"
    "    label: \"Toile Wedge\",\n"
    "    description: \"Bake the wedges of a Toile plan, export them, and make a report\",\n"
    "    settings: [\n"
    "        { key: \"wedges\", type: \"string\", subtype: \"dir_path\", required: true,\n"
    "          description: \"The folder of the plan, on a disk that all workers see\" },\n"
    "        { key: \"tasks\", type: \"int32\", required: true, default: 1, propargs: { min: 1 },\n"
    "          description: \"How many wedges the plan has\" },\n"
    "        { key: \"toile\", type: \"string\", required: true, default: \"toile\",\n"
    "          description: \"The program, as the workers find it\" },\n"
    "        { key: \"threads\", type: \"int32\", required: true, default: 1, propargs: { min: 1 },\n"
    "          description: \"Processor threads of a bake\" },\n"
    "        { key: \"format\", type: \"string\", default: \"\", choices: [\"\", \"abc\", \"pc2\", \"mdd\", \"obj\"],\n"
    "          description: \"What each wedge is exported to; empty: nothing\" },\n"
    "        { key: \"lock_wait\", type: \"int32\", default: 90, visible: \"hidden\",\n"
    "          description: \"Seconds until the lock of a lost worker is gone\" }\n"
    "    ]\n"
    "};\n"
    "\n"
    "// Workers run tasks of these types: give `misc` to those that have Toile.\n"
    "function toileTask(name, settings, args) {\n"
    "    var task = author.Task(name, \"misc\");\n"
    "    task.addCommand(author.Command(\"exec\", { exe: settings.toile, args: args }));\n"
    "    return task;\n"
    "}\n"
    "\n"
    "function compileJob(job) {\n"
    "    var settings = job.settings;\n"
    "    var report = toileTask(\"report\", settings, [\"wedge\", \"report\", settings.wedges]);\n"
    "    for (var i = 0; i < settings.tasks; i++) {\n"
    "        var bake = toileTask(\"bake-\" + i, settings, [\"wedge\", settings.wedges, \"--index\", String(i),\n"
    "            \"--threads\", String(settings.threads), \"--wait\", String(settings.lock_wait)]);\n"
    "        job.addTask(bake);\n"
    "        var last = bake;\n"
    "        if (settings.format) {\n"
    "            last = toileTask(\"export-\" + i, settings, [\"wedge\", settings.wedges, \"--index\", String(i),\n"
    "                \"--export\", settings.format, \"--progress\", \"none\"]);\n"
    "            last.addDependency(bake);\n"
    "            job.addTask(last);\n"
    "        }\n"
    "        report.addDependency(last);\n"
    "    }\n"
    "    job.addTask(report);\n"
    "}\n";
/* clang-format on */

static toile_status write_type(const toile_farm *farm, toile_error *error) {
    toile_text_file file;
    toile_status status = toile_text_begin(&file, error);
    if (status < 0)
        return status;
    fputs(JOB_TYPE, file.out);
    return toile_text_end(&file, farm, "toile_wedge.js", false, error);
}

static toile_status write_job(const toile_farm *farm, toile_error *error) {
    toile_text_file file;
    toile_status status = toile_text_begin(&file, error);
    if (status < 0)
        return status;
    json_t *settings = json_pack("{s:s, s:i, s:s, s:i, s:s, s:i}", "wedges", farm->folder, "tasks",
                                 farm->plan->count, "toile", farm->program, "threads", farm->cpus, "format",
                                 farm->formats, "lock_wait", TOILE_FARM_WAIT);
    json_t *job =
        json_pack("{s:s, s:s, s:i, s:s, s:o, s:{s:s}}", "name", farm->name, "type", "toile-wedge", "priority",
                  50, "submitter_platform", "linux", "settings", settings, "metadata", "project", farm->name);
    if (job)
        json_dumpf(job, file.out, JSON_INDENT(2));
    fputc('\n', file.out);
    json_decref(job);
    return toile_text_end(&file, farm, "job.json", false, error);
}

static toile_status write_submit(const toile_farm *farm, toile_error *error) {
    toile_text_file file;
    toile_status status = toile_text_begin(&file, error);
    if (status < 0)
        return status;
    fputs("#!/bin/bash\n# Gives job.json to the manager, which must know the job type (toile_wedge.js in its "
          "`scripts`).\n"
          "set -euo pipefail\ncd \"$(dirname \"$0\")\"\nmanager=${FLAMENCO_MANAGER:-",
          file.out);
    toile_put_word(file.out, farm->manager);
    fputs("}\ncurl --fail-with-body --silent --show-error --header 'Content-Type: application/json' --data "
          "@job.json "
          "\"$manager/api/v3/jobs\"\n",
          file.out);
    return toile_text_end(&file, farm, "submit.sh", true, error);
}

static toile_status write_flamenco(const toile_farm *farm, toile_error *error) {
    toile_status status = write_type(farm, error);
    if (status >= 0)
        status = write_job(farm, error);
    return status < 0 ? status : write_submit(farm, error);
}

static int run_flamenco(const toile_farm *farm) {
    char *const arguments[] = {"./submit.sh", NULL};
    int code = toile_run_program(farm, arguments);
    return code == 0 ? 0
                     : toile_complain(TOILE_EXIT_FAILED,
                                      "the manager at %s did not take the job (submit.sh ended with %d). Is "
                                      "it there (--manager URL), and "
                                      "is %s/toile_wedge.js in its folder `scripts`?",
                                      farm->manager, code, farm->output);
}

const toile_engine toile_engine_flamenco = {"flamenco", write_flamenco, run_flamenco};
