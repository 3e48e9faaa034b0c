/* SPDX-License-Identifier: Apache-2.0
 * Shows what a tool is doing, in one line on stderr. Does nothing if stderr is not a terminal, so
 * that files and pipes get only results and messages. */
#ifndef TUTTI_TOOLS_PROGRESS_H
#define TUTTI_TOOLS_PROGRESS_H

/* Replaces the line that is shown. */
void progress_show(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Removes the line. Call this before anything else is written to the terminal. */
void progress_clear(void);

#endif
