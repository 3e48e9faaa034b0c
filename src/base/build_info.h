/* SPDX-License-Identifier: Apache-2.0
 * Facts about the build of this library. */
#ifndef TUTTI_BASE_BUILD_INFO_H
#define TUTTI_BASE_BUILD_INFO_H

/* Static strings; "" where a fact is not known or does not apply. */
struct tutti_build_info {
    const char *version;    /* "0.1.0" */
    const char *revision;   /* what `git describe` said when the build was configured */
    const char *compiler;   /* "GNU 12.2.0" */
    const char *type;       /* "Release", "Debug", ... */
    const char *flags;      /* of the compiler */
    const char *sanitizers; /* "address,undefined" */
    const char *system;     /* "Linux x86_64": what it was built for */
};

extern const struct tutti_build_info tutti_build_info;

/* "0.1.0", or "0.1.0 (1f2e3d4)" with the revision. */
const char *tutti_build_version(void);

#endif
