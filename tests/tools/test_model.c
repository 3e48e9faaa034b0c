/* SPDX-License-Identifier: Apache-2.0
 * Runs the commands of docs/model.md, and compares their results with the page: our figure, and its
 * error against the published one. */
#include "tools/running.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LEAST_ROWS = 12 };

/* A row of the table, as text. */
struct row {
    char machine[128], published[256], ours[32], error[32];
    char tool[32], command[512]; /* the rest of the command's name, and its arguments */
};

/* Reads "| machine | [230](URL) | 230 | +0 % | `tutti-sim ...` |", or `tutti-topo ...`. Returns
 * false for other lines. */
static bool read_row(const char *line, struct row *ret_row)
{
    return sscanf(line,
                  "| %127[^|]| [%255[^]]](%*[^)]) | %31[0-9.] | %31[^|%%]%% | `tutti-%31s %511[^`]`",
                  ret_row->machine, ret_row->published, ret_row->ours, ret_row->error,
                  ret_row->tool, ret_row->command) == 6;
}

static void check_row(const struct row *row)
{
    double published = strtod(row->published, NULL), ours = strtod(row->ours, NULL);
    long error = lround(100 * (ours / published - 1));
    char wanted[64];
    bool is_topo = strcmp(row->tool, "topo") == 0;
    int status = running_run(is_topo ? TUTTI_TOPO : TUTTI_SIM, "%s", row->command);

    if (status != 0 || *running.err != '\0')
        fail_msg("%s: exit status %d\n%s", row->machine, status, running.err);
    snprintf(wanted, sizeof wanted, " %s GB/s ", row->ours);
    if (strstr(running.out, wanted) == NULL)
        fail_msg("%s: the page has %s GB/s, not what tutti-%s says:\n%s", row->machine, row->ours,
                 row->tool, running.out);
    if (strtol(row->error, NULL, 10) != error)
        fail_msg("%s: the error is %+ld %%, the page has %s%%", row->machine, error, row->error);
}

static void the_page_has_what_the_simulator_says(void **state)
{
    static char page[1 << 16];
    FILE *file = fopen(MODEL_PAGE, "re");
    char *rest = page, *line;
    size_t length, rows = 0;

    (void)state;
    if (file == NULL)
        fail_msg("cannot open %s", MODEL_PAGE);
    length = fread(page, 1, sizeof page - 1, file);
    fclose(file);
    assert_true(length < sizeof page - 1);
    while ((line = strsep(&rest, "\n")) != NULL) {
        struct row row;
        bool is_row = read_row(line, &row);

        /* A row with a mistake in it must not be left out. */
        if (!is_row && strstr(line, "% | `tutti-") != NULL)
            fail_msg("this row cannot be read: %s", line);
        if (!is_row)
            continue;
        check_row(&row);
        rows++;
    }
    assert_true(rows >= LEAST_ROWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_has_what_the_simulator_says),
    };

    return cmocka_run_group_tests(tests, running_begin, running_end);
}
