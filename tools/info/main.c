/* SPDX-License-Identifier: Apache-2.0
 * tutti-info shows this build, this host, and the TUTTI_* variables that are set. */
#include "base/build_info.h"
#include "common/request.h"
#include "info/facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: tutti-info [--json]\n"
    "\n"
    "Prints the version and the build options of the library, what it finds on this host (GPUs,\n"
    "RDMA devices, memory, limits, network interfaces), and the TUTTI_* variables that are set.\n"
    "Secrets are not shown. Put the output into bug reports.\n"
    "\n"
    "      --json     the same as JSON\n"
    "      --version  the version alone\n"
    "  -h, --help     show this\n"
    "\n"
    "Exit status: 0 if all variables are understood, 1 if one is unknown or has a value that the\n"
    "library does not accept, 2 for a mistake in the command line.\n";

/* Returns the text of a member of an object, or "" if there is no such member. */
static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static void print_section(const char *title, json_t *section)
{
    const char *name;
    json_t *value;

    printf("\n%s\n", title);
    json_object_foreach(section, name, value)
        printf("  %-24s %s\n", name, json_string_value(value));
}

/* Prints variables or interfaces. The entries that have a value are variables. */
static void print_list(const char *title, const json_t *list)
{
    size_t index;
    json_t *entry;

    printf("\n%s\n", title);
    if (json_array_size(list) == 0)
        printf("  none\n");
    json_array_foreach(list, index, entry) {
        const char *problem = text_of(entry, "problem");

        if (json_object_get(entry, "value") != NULL)
            printf("  %s=%s%s%s\n", text_of(entry, "name"), text_of(entry, "value"),
                   *problem ? "   <- " : "", problem);
        else
            printf("  %-12s %-40s %s; used: %s\n", text_of(entry, "name"),
                   text_of(entry, "address"), text_of(entry, "rate"), text_of(entry, "used"));
    }
}

/* Prints all facts as text. The only member that is a string is the version. */
static void print_text(json_t *facts)
{
    const char *title;
    json_t *section;

    json_object_foreach(facts, title, section) {
        if (json_is_string(section))
            printf("Tutti %s\n", json_string_value(section));
        else if (json_is_array(section))
            print_list(title, section);
        else
            print_section(title, section);
    }
}

static int run(const struct request *request)
{
    bool are_right, is_written = true;
    json_t *facts;

    if (request->nwords > 0)
        return mistake(request, "\"%s\" is one word too many; see tutti-info --help",
                       request->words[0]);
    facts = json_object();
    json_object_set_new(facts, "version", json_string(tutti_version_text()));
    json_object_set_new(facts, "build", facts_of_build());
    json_object_set_new(facts, "libraries", facts_of_libraries());
    json_object_set_new(facts, "memory", facts_of_memory());
    json_object_set_new(facts, "processor", facts_of_processor());
    json_object_set_new(facts, "GPUs", facts_of_gpus());
    json_object_set_new(facts, "RDMA", facts_of_rdma());
    json_object_set_new(facts, "limits", facts_of_limits());
    json_object_set_new(facts, "interfaces", facts_of_interfaces());
    json_object_set_new(facts, "variables", facts_of_variables(&are_right));
    if (request->wants_json)
        is_written = json_dumpf(facts, stdout, JSON_INDENT(2)) == 0 && putchar('\n') != EOF;
    else
        print_text(facts);
    json_decref(facts);
    if (!is_written || fflush(stdout) != 0)
        return EXIT_FAILURE;
    return are_right ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    static const struct command command = {
        .name = "tutti-info", .options = "json", .help = help, .run = run};

    return command_run(&command, argc - 1, argv + 1);
}
