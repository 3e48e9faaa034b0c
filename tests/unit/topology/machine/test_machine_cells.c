/* SPDX-License-Identifier: Apache-2.0
 * Tests cells and bridges in descriptions of machines: their meaning, errors, and that writing
 * them loses nothing. */
#include "base/result.h"
#include "topology/machine/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LEVEL "level top overhead 5us bandwidth 50GB/s"

static void assert_cells(const struct tutti_machine *machine, const char *text, const char *digits)
{
    if (*digits == '\0') {
        if (machine->places.cell != NULL || machine->places.ncells != 0)
            fail_msg("\"%s\" has cells", text);
        return;
    }
    assert_non_null(machine->places.cell);
    assert_int_equal(machine->places.nranks, strlen(digits));
    for (uint32_t rank = 0; digits[rank] != '\0'; rank++)
        if (machine->places.cell[rank] != (uint32_t)(digits[rank] - '0'))
            fail_msg("\"%s\": rank %u lives in cell %u, not in %c", text, rank,
                     machine->places.cell[rank], digits[rank]);
}

static void cells_are_what_a_description_says_and_writing_them_loses_nothing(void **state)
{
    static const struct {
        const char *text, *cells; /* "": there are none */
        uint32_t ncells;
    } cases[] = {
        {"node 8; cell 4; ranks 8", "00001111", 2},
        {"node 8; cell 3; ranks 8", "00011122", 3},
        {"node 4; cell 2; ranks 8", "00112233", 4},
        {"node 4; cell 2; ranks 7", "0011223", 4},
        {"node 3 5; cell 2 1; ranks 8", "00122344", 5},
        {"node 4; cell 2; place cyclic; ranks 8", "01012323", 4},
        {"node of 0 1 1 0 0 1; cell 2", "011023", 4},
        {"node of 0 1 1 0 0 1; cell of 0 1 2 3 0 1", "012301", 4},
        {"ranks 8; node 4; cell of 0 1 0 1 2 2 2 3", "01012223", 4},
        {"node 4; cell 4; ranks 8", "", 0},
        {"node 4; cell 100; ranks 8", "", 0},
        {"ranks 8; node 4; cell of 0 0 0 0 1 1 1 1", "", 0},
        {"node 8; ranks 8", "", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_machine *machine, *again;
        char text[200], *written;

        snprintf(text, sizeof text, "%s; " LEVEL "; bridge bandwidth 40GB/s latency 0.1us",
                 cases[i].text);
        if (tutti_machine_parse("m", text, 0, &machine) != TUTTI_OK)
            fail_msg("%s", tutti_message_last());
        assert_cells(machine, cases[i].text, cases[i].cells);
        assert_int_equal(machine->places.ncells, cases[i].ncells);
        assert_true(machine->bridge_bytes_per_s == 40e9);
        assert_true(machine->bridge_latency_s == 0.1 / 1e6);

        assert_int_equal(tutti_machine_write(machine, &written), TUTTI_OK);
        assert_int_equal(tutti_machine_parse("written", written, 0, &again), TUTTI_OK);
        assert_cells(again, written, cases[i].cells);
        assert_int_equal(again->places.ncells, cases[i].ncells);
        assert_true(again->bridge_bytes_per_s == machine->bridge_bytes_per_s);
        assert_true(again->bridge_latency_s == machine->bridge_latency_s);
        tutti_machine_destroy(machine);
        tutti_machine_destroy(again);
        free(written);
    }
}

static void what_fits_no_machine_is_refused(void **state)
{
    static const struct {
        const char *text, *where, *what;
    } cases[] = {
        {"ranks 8; cell 4; " LEVEL, "m:1:10: ", "a cell is a part of a node"},
        {"ranks 8; group 4; cell 4; " LEVEL, "m:1:19: ", "a cell is a part of a node"},
        {"ranks 4; node 4; cell; " LEVEL, "m:1:22: ", ""},
        {"ranks 4; node 4; cell 0; " LEVEL, "m:1:23: ", ""},
        {"ranks 4; node 4; cell 2\ncell 2; " LEVEL, "m:2:1: ", "\"cell\" again; line 1 has it"},
        {"ranks 4; node 4; cell of 0 1 1; " LEVEL, "m:1:26: ", "the places of 3 ranks"},
        {"ranks 4; node 4; cell of 1 0 0 0; " LEVEL, "m:1:26: ", "1 stands before 0"},
        {"ranks 4; node 2; cell of 0 1 1 2; " LEVEL, "m:1:26: ", "cell 1 has ranks of nodes 0 "},
        {"ranks 4; bridge; " LEVEL, "m:1:16: ", "neither latency nor bandwidth"},
        {"ranks 4; bridge latency 1us latency 1us; " LEVEL, "m:1:29: ", "each once"},
        {"ranks 4; bridge overhead 1us; " LEVEL, "m:1:17: ", "a bridge has latency and bandwidth"},
        {"ranks 4; bridge bandwidth 5; " LEVEL, "m:1:27: ", "a rate"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_machine *machine = NULL;

        if (tutti_machine_parse("m", cases[i].text, 0, &machine) != TUTTI_ERR_ARGUMENT)
            fail_msg("\"%s\" is not refused", cases[i].text);
        if (strstr(tutti_message_last(), cases[i].where) == NULL ||
            strstr(tutti_message_last(), cases[i].what) == NULL)
            fail_msg("\"%s\" is refused by: %s", cases[i].text, tutti_message_last());
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cells_are_what_a_description_says_and_writing_them_loses_nothing),
        cmocka_unit_test(what_fits_no_machine_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
