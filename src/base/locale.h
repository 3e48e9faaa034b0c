/* SPDX-License-Identifier: Apache-2.0
 * Lets a thread read and write numbers as the locale "C" has them. A program's own locale may
 * require 2,5 instead of 2.5. */
#ifndef TUTTI_BASE_LOCALE_H
#define TUTTI_BASE_LOCALE_H

#include <locale.h>

struct tutti_c_locale {
    locale_t c;       /* 0: there was no memory for it */
    locale_t program; /* the thread's locale before */
};

/* Gives the calling thread the numbers of the locale "C" until tutti_c_locale_leave, which must be
 * called in any case. If there is no memory, `c` of the result is 0, and the thread keeps its
 * locale. */
static inline struct tutti_c_locale tutti_c_locale_enter(void)
{
    locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);

    return (struct tutti_c_locale){.c = c, .program = uselocale(c)};
}

static inline void tutti_c_locale_leave(struct tutti_c_locale locale)
{
    uselocale(locale.program);
    if (locale.c != (locale_t)0)
        freelocale(locale.c);
}

#endif
