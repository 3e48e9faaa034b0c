/* SPDX-License-Identifier: Apache-2.0
 * Prints docs/environment.md from the table of parameters. `make docs` runs this program, so that
 * the page matches the table. */
#include "base/param.h"

#include <stdio.h>
#include <string.h>

/* Prints the default of a parameter. */
static void print_fallback(const struct tutti_param_info *info)
{
    if (info->fallback[0] == '\0')
        printf("unset");
    else
        printf("`%s`", info->fallback);
}

/* Prints the values that a parameter accepts. */
static void print_values(const struct tutti_param_info *info)
{
    switch (info->kind) {
    case TUTTI_PARAM_KIND_INT:
        printf("Whole number from %lld to %lld; K, M, G, T are powers of 1024.",
               (long long)info->low, (long long)info->high);
        break;
    case TUTTI_PARAM_KIND_CHOICE:
        printf("One of");
        for (const char *at = info->choices; at != NULL;) {
            size_t length = strcspn(at, "|");

            printf(" `%.*s`%s", (int)length, at, at[length] == '|' ? "," : ".");
            at = at[length] == '|' ? at + length + 1 : NULL;
        }
        break;
    case TUTTI_PARAM_KIND_TEXT:
        printf("Text.");
        break;
    }
}

int main(void)
{
    printf("# Environment variables\n\n"
           "This page is printed from `src/base/param_table.h` by `make docs`; do not edit it.\n\n"
           "A variable is read once, at its first use. A number or word that is malformed or\n"
           "out of range is reported in one line on stderr, and the default is used. A malformed\n"
           "text is `tuttiInvalidUsage` where it is used. An empty value counts as unset.\n"
           "Variables override `tuttiConfig_t`.\n");
    for (int param = 0; param < TUTTI_PARAM_COUNT; param++) {
        const struct tutti_param_info *info = tutti_param_info((enum tutti_param)param);

        printf("\n## %s\n\n", info->name);
        print_values(info);
        printf(" Default: ");
        print_fallback(info);
        printf(".\n\n%s\n", info->help);
    }
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}
