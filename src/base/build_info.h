/* SPDX-License-Identifier: Apache-2.0
 * Gives facts about the build of this library, for reports and for the log. */
#ifndef TUTTI_BASE_BUILD_INFO_H
#define TUTTI_BASE_BUILD_INFO_H

/* All members are static strings. A member is "" if its fact is not known or does not apply. */
struct tutti_version_info {
    const char *version;    /* "0.1.0" */
    const char *revision;   /* the output of `git describe` when the build was configured */
    const char *compiler;   /* "GNU 12.2.0" */
    const char *type;       /* "Release", "Debug", ... */
    const char *flags;      /* the flags of the compiler */
    const char *sanitizers; /* "address,undefined" */
    const char *system;     /* the target of the build: "Linux x86_64" */
};

extern const struct tutti_version_info tutti_version_info;

/* Returns a static string: "0.1.0", or "0.1.0 (1f2e3d4)" if the revision is known. */
const char *tutti_version_text(void);

#endif
