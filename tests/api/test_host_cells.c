/* SPDX-License-Identifier: Apache-2.0
 * Ranks report where they run on their host, all reach the same conclusion about its cells, and
 * the tuner uses them. */
#include "comm/comm.h"
#include "fault/crew.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NRANKS = 6 };

/* A character per rank: its host, and what it says of its cell: a number, '.' for nothing, 'a' for
 * what it finds itself. */
struct example {
    const char *hosts, *says;
    const char *cells; /* that all conclude; "": none */
};

static tuttiResult_t form(struct crew_seat *seat)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    config.initTimeoutMs = 20000;
    return tuttiCommInitRankConfig(&seat->comm, seat->nranks, crew_share_id(seat), seat->rank,
                                   &config);
}

static bool has_cells(const struct tutti_comm *comm, const char *cells)
{
    const struct tutti_placement *places = comm->view.places;
    uint32_t ncells = 0;

    if (*cells == '\0')
        return places->cell == NULL && places->ncells == 0;
    if (places->cell == NULL)
        return false;
    for (uint32_t rank = 0; rank < NRANKS; rank++) {
        if (places->cell[rank] != (uint32_t)(cells[rank] - '0'))
            return false;
        ncells = places->cell[rank] >= ncells ? places->cell[rank] + 1 : ncells;
    }
    return places->ncells == ncells;
}

static tuttiResult_t reduce(tuttiComm_t comm)
{
    float vector[300];
    tuttiResult_t result;

    for (int i = 0; i < 300; i++)
        vector[i] = 1;
    result = tuttiAllReduce(vector, vector, 300, tuttiFloat32, tuttiAvg, comm, NULL);
    for (int i = 0; i < 300 && result == tuttiSuccess; i++)
        result = vector[i] == 1 ? tuttiSuccess : tuttiInternalError;
    return result;
}

static tuttiResult_t look(struct crew_seat *seat)
{
    const struct example *example = seat->crew->context;
    char host[16], says[8] = "auto";
    struct tutti_comm *comm;
    tuttiResult_t result;

    snprintf(host, sizeof host, "host %c", example->hosts[seat->rank]);
    if (example->says[seat->rank] != 'a')
        snprintf(says, sizeof says, "%c", example->says[seat->rank]);
    setenv("TUTTI_HOST_ID", host, 1);
    setenv("TUTTI_CELLS", strcmp(says, ".") == 0 ? "off" : says, 1);
    result = form(seat);
    if (result != tuttiSuccess)
        return result;
    comm = crew_look_inside(seat->comm);
    if (comm == NULL)
        return tuttiInternalError;
    if (!has_cells(comm, example->cells))
        return tuttiInvalidArgument;
    return reduce(seat->comm);
}

static void check_all(struct crew_board *board, int nranks, tuttiResult_t expected,
                      const char *word)
{
    for (int rank = 0; rank < nranks; rank++) {
        const struct crew_report *report = &board->reports[rank];

        if (report->result != expected || strstr(report->text, word) == NULL)
            fail_msg("rank %d got %d: %s", rank, (int)report->result, report->text);
    }
    crew_clear(board);
}

static void ranks_conclude_the_same_cells(void **state)
{
    static const struct example examples[] = {
        {"000000", "111222", "000111"}, {"000000", "212121", "010101"},
        {"000000", "345999", "012333"}, {"000000", "777777", ""},
        {"000000", "......", ""},       {"000000", "11122.", ""},
        {"000000", "aaaaaa", ""}, /* on this machine they may all run anywhere */
        {"001111", "121122", "012233"}, {"010101", "112211", "012301"},
        {"001111", "1.1122", "001122"}, {"001111", "11....", ""},
        {"012345", "111222", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++)
        check_all(crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true,
                                          .timeout_ms = 30000, .run = look,
                                          .context = &examples[i]}),
                  NRANKS, tuttiSuccess, "");
}

/* The user's description has precedence. Detection supplies only what it does not say. */
static void described_cells_count(void **state)
{
    static const struct {
        const char *machine, *cells;
    } cases[] = {
        {"level node bandwidth 9GB/s; node 6; cell 2", "001122"},
        {"level node bandwidth 9GB/s; node 3; cell 2", "001223"},
        {"level node bandwidth 9GB/s; node 6", ""},
        {"level node bandwidth 9GB/s; bridge bandwidth 9GB/s", "000111"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *environment[] = {"TUTTI_MACHINE", cases[i].machine, NULL};
        struct example example = {"000000", "111222", cases[i].cells};

        check_all(crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true,
                                          .environment = environment, .timeout_ms = 30000,
                                          .run = look, .context = &example}),
                  NRANKS, tuttiSuccess, "");
    }
}

static tuttiResult_t split_by_parity(struct crew_seat *seat)
{
    struct tutti_comm *comm;
    tuttiComm_t child;
    tuttiResult_t result;

    setenv("TUTTI_CELLS", seat->rank < 3 ? "0" : "1", 1);
    result = form(seat);
    if (result == tuttiSuccess)
        result = tuttiCommSplit(seat->comm, seat->rank % 2, 0, &child, NULL);
    if (result != tuttiSuccess)
        return result;
    comm = crew_look_inside(child);
    if (comm == NULL || comm->places.cell == NULL)
        result = tuttiInternalError;
    /* 0 2 | 4 and 1 | 3 5 */
    for (uint32_t rank = 0; rank < 3 && result == tuttiSuccess; rank++)
        if (comm->places.cell[rank] != (rank >= (seat->rank % 2 == 0 ? 2u : 1u)))
            result = tuttiInvalidArgument;
    if (result == tuttiSuccess)
        result = reduce(child);
    tuttiCommDestroy(child);
    return result;
}

static void a_split_has_cells_of_its_own(void **state)
{
    (void)state;
    check_all(crew_run(&(struct crew){.nranks = NRANKS, .forms_itself = true, .timeout_ms = 30000,
                                      .run = split_by_parity}),
              NRANKS, tuttiSuccess, "");
}

static void nonsense_is_refused(void **state)
{
    static const char *const environment[] = {"TUTTI_CELLS", "left", NULL};

    (void)state;
    check_all(crew_run(&(struct crew){.nranks = 2, .forms_itself = true,
                                      .environment = environment, .timeout_ms = 30000,
                                      .run = form}),
              2, tuttiInvalidUsage, "TUTTI_CELLS=left");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_conclude_the_same_cells),
        cmocka_unit_test(described_cells_count),
        cmocka_unit_test(a_split_has_cells_of_its_own),
        cmocka_unit_test(nonsense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
