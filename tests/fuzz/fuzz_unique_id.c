/* SPDX-License-Identifier: Apache-2.0
 * Any 128 bytes are a unique id, with a wrong checksum and with a right one. The id is refused, or
 * a bootstrap begins. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "bootstrap/bootstrap.h"

#include <sodium.h>

enum { ID_BYTES = 128, SUM_BYTES = 8 };

/* As unique_id.c does it: the last bytes are a hash of those before. */
static void add_sum(uint8_t id[ID_BYTES])
{
    uint8_t sum[crypto_generichash_BYTES_MIN];

    crypto_generichash(sum, sizeof sum, id, ID_BYTES - SUM_BYTES, NULL, 0);
    memcpy(id + ID_BYTES - SUM_BYTES, sum, SUM_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};
    uint8_t id[ID_BYTES] = {0}, shape = fuzz_byte(&input);
    int nranks = 1 + shape % 5, rank = shape >> 5;
    struct tutti_bootstrap *boot;

    fuzz_overwrite(&input, id, sizeof id);
    if ((shape & 8) != 0)
        add_sum(id);
    if (tutti_bootstrap_from_id(id, nranks, rank, tutti_now_ns(), &boot) == TUTTI_OK)
        boot->ops->destroy(boot, NULL);
    return 0;
}
