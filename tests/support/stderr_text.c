/* SPDX-License-Identifier: Apache-2.0
 * Catches stderr. */
#include "support/stderr_text.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static int kept = -1, caught = -1;
static pid_t catcher;

/* A test that fails between begin and end leaves its reason in the file. The forked ranks of a test
 * do not show it. */
static void show_rest(void)
{
    if (kept >= 0 && catcher == getpid())
        fputs(stderr_text_end(), stderr);
}

void stderr_text_begin(void)
{
    static bool is_registered;

    show_rest();
    if (!is_registered)
        is_registered = atexit(show_rest) == 0;
    fflush(stderr);
    catcher = getpid();
    kept = dup(STDERR_FILENO);
    caught = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(kept >= 0 && caught >= 0);
    /* Processes that write at the same time would overwrite each other's lines. */
    assert_int_equal(fcntl(caught, F_SETFL, O_APPEND), 0);
    assert_true(dup2(caught, STDERR_FILENO) >= 0);
}

const char *stderr_text_end(void)
{
    static char text[65536];
    ssize_t length;

    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    length = pread(caught, text, sizeof text - 1, 0);
    close(caught);
    kept = caught = -1;
    assert_true(length >= 0);
    text[length] = '\0';
    return text;
}

size_t count_lines_with(const char *text, const char *word)
{
    size_t count = 0;

    while ((text = strstr(text, word)) != NULL) {
        count++;
        text += strcspn(text, "\n");
    }
    return count;
}
