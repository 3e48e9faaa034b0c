/* SPDX-License-Identifier: Apache-2.0
 * Every environment variable of the library, declared once in param_table.h.
 *
 * A value is read from the environment at its first use and kept. A value that
 * is malformed or out of range is reported in one warning line that names the
 * variable, the value and what is allowed; the default is used instead.
 */
#ifndef TUTTI_BASE_PARAM_H
#define TUTTI_BASE_PARAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tutti_param {
#define TUTTI_PARAM_INT(id, name, fallback, low, high, help) TUTTI_PARAM_##id,
#define TUTTI_PARAM_TEXT(id, name, fallback, help) TUTTI_PARAM_##id,
#define TUTTI_PARAM_CHOICE(id, name, fallback, choices, help) TUTTI_PARAM_##id,
#include "base/param_table.h"
#undef TUTTI_PARAM_INT
#undef TUTTI_PARAM_TEXT
#undef TUTTI_PARAM_CHOICE
    TUTTI_PARAM_COUNT
};

enum tutti_param_kind { TUTTI_PARAM_KIND_INT, TUTTI_PARAM_KIND_TEXT, TUTTI_PARAM_KIND_CHOICE };

struct tutti_param_info {
    const char *name;
    enum tutti_param_kind kind;
    const char *fallback; /* as text */
    int64_t low, high;    /* of an integer */
    const char *choices;  /* of a choice: names separated by '|', with the values 0, 1, ... in this
                             order; compared without regard to case */
    const char *help;
};

/* True if `text` is a valid value of the parameter. An empty text counts as unset and is valid. */
bool tutti_param_accepts(const struct tutti_param_info *info, const char *text);

/* Value of an integer parameter (with the units of base/sizes.h), or index of a choice.
 * Thread-safe. */
int64_t tutti_param_int(enum tutti_param param);

/* Value of a text parameter; "" if it is unset and has no fallback. Valid until tutti_param_reset.
 * Thread-safe. */
const char *tutti_param_text(enum tutti_param param);

/* The text that the environment holds now; NULL if the variable is unset or empty. It is neither
 * checked nor kept: for secrets, and to tell a value that was given from the default. As with
 * getenv, no other thread may change the environment meanwhile. */
const char *tutti_param_given(enum tutti_param param);

/* The same for a variable by its name: those of other programs, such as launchers. All of the
 * library's reading of the environment goes through this function. */
const char *tutti_variable_given(const char *name);

/* The declaration of a parameter. The documentation is printed from it. */
const struct tutti_param_info *tutti_param_info(enum tutti_param param);

/* Forget cached values: for tests that change the environment. Not thread-safe. */
void tutti_param_reset(void);

#endif
