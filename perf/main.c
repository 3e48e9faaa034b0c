/* SPDX-License-Identifier: Apache-2.0
 * The main function that all perf programs share. Each program adds one file that defines
 * `perf_collective`, the collective that it measures. */
#include "launch.h"

int main(int argc, char **argv)
{
    struct perf_options options;
    int rc = perf_options_parse(argc, argv, &options);

    if (rc != 0)
        return rc < 0 ? 0 : rc;
    return perf_launch(&options);
}
