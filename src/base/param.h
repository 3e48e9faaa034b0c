/* SPDX-License-Identifier: Apache-2.0
 * Reads the environment variables of the library. Each is declared once, in param_table.h.
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
    const char *fallback; /* the default, as text */
    int64_t low, high;    /* the range of an integer parameter */
    const char *choices;  /* names of a choice parameter, separated by '|', with the values 0, 1,
                             ... in this order; compared without regard to case */
    const char *help;
};

/* True if `text` is a valid value of the parameter. An empty text counts as unset and is valid. */
bool tutti_param_accepts(const struct tutti_param_info *info, const char *text);

/* Returns the value of an integer parameter, or the index of a choice. The text of an integer may
 * have a unit of base/sizes.h. Thread-safe. */
int64_t tutti_param_int(enum tutti_param param);

/* Returns the value of a text parameter; "" if it is unset and has no fallback. The text is valid
 * until tutti_param_reset. Thread-safe. */
const char *tutti_param_text(enum tutti_param param);

/* Returns the text that the environment holds now; NULL if the variable is unset or empty. The text
 * is neither checked nor copied. Use this function for secrets, and to tell a value that the user
 * gave from the default. As with getenv, no other thread may change the environment meanwhile. */
const char *tutti_param_given(enum tutti_param param);

/* Does the same for a variable given by its name. Use it for variables of other programs, such as
 * launchers. */
const char *tutti_variable_given(const char *name);

/* Returns the declaration of a parameter, from which the documentation is generated. The result is
 * static. */
const struct tutti_param_info *tutti_param_info(enum tutti_param param);

/* Forget the values that were read, so that a test can change the environment. Not thread-safe. */
void tutti_param_reset(void);

#endif
