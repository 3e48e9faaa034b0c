/* SPDX-License-Identifier: Apache-2.0
 * Sums numbers, and listens to the library. */
#include "gpu/listening.h"

#include "support/stderr_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

void sum_often(struct member *member, int32_t *numbers, const char *what)
{
    for (int i = 0; i < SUM_TIMES && !member_is_unhappy(member); i++) {
        numbers_write(member, numbers, SUM_COUNT, member->rank + i, 1);
        EXPECT_OK(member, tuttiAllReduce(numbers, numbers, SUM_COUNT, tuttiInt32, tuttiSum,
                                         member->comm, NULL));
        numbers_expect(member, numbers, SUM_COUNT,
                       triangle(member->nranks - 1) + member->nranks * i, member->nranks, what);
    }
}

const char *run_and_listen(const struct place *place, bool forms_world, const char *debug,
                           const char *faults, member_fn fn)
{
    const char *said;

    setenv("TUTTI_DEBUG", debug, 1);
    setenv("SIMCUDA_FAULTS", faults, 1);
    stderr_text_begin();
    at_place(place, forms_world, fn);
    said = stderr_text_end();
    unsetenv("TUTTI_DEBUG");
    unsetenv("SIMCUDA_FAULTS");
    return said;
}

void expect_lines(const char *said, const char *word, size_t count)
{
    if (count_lines_with(said, word) != count)
        fail_msg("\"%s\" in %zu lines, not %zu: %s", word, count_lines_with(said, word), count,
                 said);
}
