/* SPDX-License-Identifier: Apache-2.0
 * Any text is the value of any environment variable. The test also parses such values as numbers,
 * choices, filters of network interfaces and lists of transports. */
#include "fuzz/fuzz.h"

#include "base/clock.h"
#include "base/param.h"
#include "base/socket.h"
#include "transport/fabric.h"

/* Variables that name libraries would be loaded, and the log is for people. */
static bool is_tried(enum tutti_param param)
{
    return param != TUTTI_PARAM_DEBUG && param != TUTTI_PARAM_CUDA_LIBRARY &&
           param != TUTTI_PARAM_NVML_LIBRARY && param != TUTTI_PARAM_IBVERBS_LIBRARY;
}

static void read_value(enum tutti_param param)
{
    const struct tutti_param_info *info = tutti_param_info(param);

    if (info->kind == TUTTI_PARAM_KIND_TEXT)
        fuzz_require(tutti_param_text(param) != NULL, "a text is never NULL");
    else if (info->kind == TUTTI_PARAM_KIND_INT)
        fuzz_require(tutti_param_int(param) >= info->low && tutti_param_int(param) <= info->high,
                     "a number is in its range");
    else
        fuzz_require(tutti_param_int(param) >= 0, "a choice is one of those there are");
}

/* Reads the part of the environment that says where a rank can be reached. */
static void describe_rank(void)
{
    struct tutti_fabric_args args = {.nranks = 2, .rank = 0, .cells = {-1, -1, -1},
                                     .deadline_ns = tutti_now_ns()};
    struct tutti_fabric *fabric;

    if (tutti_fabric_open(&args, &fabric) == TUTTI_OK)
        tutti_fabric_destroy(fabric);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct fuzz_input input = {.bytes = bytes, .left = size};
    enum tutti_param param = fuzz_byte(&input) % TUTTI_PARAM_COUNT;
    const char *name = tutti_param_info(param)->name;
    char *text = fuzz_text(input.bytes, input.left);

    if (is_tried(param) && setenv(name, text, 1) == 0) {
        tutti_param_reset();
        read_value(param);
        describe_rank();
        unsetenv(name);
        tutti_param_reset();
    }
    free(text);
    return 0;
}
