/* OpenJobDescription 2023-09 (https://github.com/OpenJobDescription/openjd-specifications): a template in
 * YAML with three steps, as AWS Deadline Cloud and others take it. The command is Toile itself, so that the
 * notice before a cancel (SIGTERM) reaches it. */
#include "submit.h"

#include "commands.h"

#include <string.h>

/* Doubled braces are references in a template; a text with some is not to be read as one. */
static const char *plain(const char *text) {
    return strstr(text, "{{") ? "toile" : text;
}

static void put_parameters(FILE *out, const toile_farm *farm) {
    fputs("parameterDefinitions:\n"
          "  - name: Wedges\n    type: PATH\n    objectType: DIRECTORY\n    dataFlow: INOUT\n"
          "    description: The folder of the plan; caches and reports go there too\n"
          "  - name: Toile\n    type: STRING\n    description: The program, as the workers find it\n    "
          "default: ",
          out);
    toile_put_quoted(out, plain(farm->program));
    fputc('\n', out);
}

static void put_tasks(FILE *out, const toile_farm *farm) {
    fprintf(out,
            "    parameterSpace:\n      taskParameterDefinitions:\n"
            "        - name: Index\n          type: INT\n          range: \"0-%d\"\n",
            farm->plan->count - 1);
}

static void put_script(FILE *out, const char *arguments) {
    fprintf(out,
            "    script:\n      actions:\n        onRun:\n          command: \"{{Param.Toile}}\"\n          "
            "args: [%s]\n",
            arguments);
}

static void put_bake(FILE *out, const toile_farm *farm) {
    char arguments[512];
    fputs("  - name: Bake\n", out);
    put_tasks(out, farm);
    fprintf(out,
            "    hostRequirements:\n      amounts:\n        - name: amount.worker.vcpu\n          min: %d\n",
            farm->cpus);
    if (farm->memory > 0)
        fprintf(out, "        - name: amount.worker.memory\n          min: %d\n", farm->memory);
    snprintf(arguments, sizeof arguments,
             "wedge, \"{{Param.Wedges}}\", --index, \"{{Task.Param.Index}}\", --threads, \"%d\",\n           "
             "      --wait, \"%d\", --grace, "
             "\"%d\", --progress, openjd",
             farm->cpus, TOILE_FARM_WAIT, TOILE_FARM_GRACE);
    put_script(out, arguments);
    fprintf(out,
            "          timeout: %d\n"
            "          cancelation:\n            mode: NOTIFY_THEN_TERMINATE\n            "
            "notifyPeriodInSeconds: %d\n",
            60 * farm->minutes, TOILE_FARM_NOTICE);
}

static void put_export(FILE *out, const toile_farm *farm) {
    char arguments[512];
    fputs("  - name: Export\n    dependencies:\n      - dependsOn: Bake\n", out);
    put_tasks(out, farm);
    snprintf(
        arguments, sizeof arguments,
        "wedge, \"{{Param.Wedges}}\", --index, \"{{Task.Param.Index}}\", --export, %s, --progress, openjd",
        farm->formats);
    put_script(out, arguments);
}

/* A template holds no whole paths by default: they come with the job (in the form of Deadline Cloud's
 * bundles). */
static toile_status write_values(const toile_farm *farm, toile_error *error) {
    toile_text_file file;
    toile_status status = toile_text_begin(&file, error);
    if (status < 0)
        return status;
    fputs("parameterValues:\n  - name: Wedges\n    value: ", file.out);
    toile_put_quoted(file.out, farm->folder);
    fputc('\n', file.out);
    return toile_text_end(&file, farm, "parameter_values.yaml", false, error);
}

static toile_status write_openjd(const toile_farm *farm, toile_error *error) {
    toile_text_file file;
    toile_status status = write_values(farm, error);
    if (status >= 0)
        status = toile_text_begin(&file, error);
    if (status < 0)
        return status;
    fprintf(
        file.out,
        "# An OpenJobDescription template, made by `toile submit`. Try it here: openjd run template.yaml "
        "--step Bake -p Wedges=FOLDER\n"
        "# Deadline Cloud: deadline bundle submit THIS_FOLDER\n"
        "specificationVersion: jobtemplate-2023-09\nname: \"%s\"\n"
        "description: Toile bakes each wedge as one task. A task that is run again goes on where it was.\n",
        farm->name);
    put_parameters(file.out, farm);
    fputs("steps:\n", file.out);
    put_bake(file.out, farm);
    if (farm->formats[0])
        put_export(file.out, farm);
    fprintf(file.out, "  - name: Report\n    dependencies:\n      - dependsOn: %s\n",
            farm->formats[0] ? "Export" : "Bake");
    put_script(file.out, "wedge, report, \"{{Param.Wedges}}\"");
    return toile_text_end(&file, farm, "template.yaml", false, error);
}

static int run_openjd(const toile_farm *farm) {
    char *const arguments[] = {"deadline", "bundle", "submit", ".", NULL};
    int code = toile_run_program(farm, arguments);
    if (code == 0)
        return 0;
    if (code < 0)
        return toile_complain(TOILE_EXIT_INPUT,
                              "%s/template.yaml is written, but there is no program `deadline` here to "
                              "submit it with (pip install "
                              "deadline). Give it to your queue, or try it with: openjd run template.yaml "
                              "--step Bake -p Wedges=FOLDER",
                              farm->output);
    return toile_complain(TOILE_EXIT_FAILED, "`deadline bundle submit %s` ended with %d", farm->output, code);
}

const toile_engine toile_engine_openjd = {"openjd", write_openjd, run_openjd};
