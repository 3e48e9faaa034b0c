/* SPDX-License-Identifier: Apache-2.0
 * Holds facts about the build of this library. CMake writes them to build_facts.h when it
 * configures. */
#include "base/build_info.h"

#include <build_facts.h>

const struct tutti_version_info tutti_version_info = {
    .version = TUTTI_BUILD_VERSION,
    .revision = TUTTI_BUILD_REVISION,
    .compiler = TUTTI_BUILD_COMPILER,
    .type = TUTTI_BUILD_TYPE,
    .flags = TUTTI_BUILD_FLAGS,
    .sanitizers = TUTTI_BUILD_SANITIZERS,
    .system = TUTTI_BUILD_SYSTEM,
};

const char *tutti_version_text(void)
{
    return TUTTI_BUILD_REVISION[0] != '\0' ? TUTTI_BUILD_VERSION " (" TUTTI_BUILD_REVISION ")"
                                           : TUTTI_BUILD_VERSION;
}
