#include "simulator/stage.h"
#include "tuner/price.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void show(const char *machine, uint32_t nranks, const struct tutti_algorithm *a, size_t bytes, uint32_t root)
{
    struct tutti_sim_report report;
    struct stage stage;
    struct tutti_tuner_query query = {.collective = a->collective, .block_bytes = bytes, .root = root};
    struct tutti_choice choice = {.algorithm = a};
    struct tutti_tuner_view view;
    double price;

    stage_open(&stage, machine, nranks);
    stage.root = root;
    view = (struct tutti_tuner_view){.nranks = nranks, .places = &stage.machine->places, .machine = stage.machine};
    tutti_algorithm_options(a, &choice.options, &choice.options);
    price = tutti_price(&view, &query, &choice);
    stage_play(&stage, a->collective, a->name, bytes, &report);
    printf("%-10s p=%u %-14s %-20s %8zu: price %9.2f sim %9.2f ratio %.3f\n", strlen(machine) < 12 ? machine : "x", nranks, tutti_collective_name(a->collective), a->name, bytes, price * 1e6, report.seconds * 1e6, report.seconds / price);
    tutti_sim_report_fini(&report);
    stage_close(&stage);
}

static void all(void **state)
{
    uint32_t ps[] = {16, 64, 24};
    size_t sizes[] = {8, 4096, 1 << 20};
    (void)state;
    for (size_t s = 0; s < 3; s++)
    for (size_t p = 0; p < 3; p++)
    for (size_t i = 0; i < tutti_algorithm_count(); i++) {
        const struct tutti_algorithm *a = tutti_algorithm(i);
        if (!!a->needs != !!getenv("ONE") || !a->cost) continue;
        bool one = tutti_input_blocks(a->collective, 2) == 1 && tutti_output_blocks(a->collective, 2) == 1;
        show(getenv("MACH") ? getenv("MACH") : "nodes8", ps[p], a, one ? sizes[s] : sizes[s] / ps[p] + 1, getenv("ROOT") ? atoi(getenv("ROOT")) : 0);
    }
}
int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
