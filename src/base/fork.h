/* SPDX-License-Identifier: Apache-2.0
 * Sockets that a child made by fork does not keep.
 *
 * The kernel closes a connection when the last process that holds it has closed it. A child that
 * kept copies of its parent's sockets would hide the death of the parent from the parent's peers
 * until the child ends. So each socket is entered in a table of the process when it is made, and a
 * fork handler closes the copies in the child. The table remembers which socket each descriptor
 * stood for, so closing needs no word: a number that stands for something else today is left alone.
 *
 * Children that are made by vfork, posix_spawn or system() run another program at once, and
 * descriptors are close-on-exec.
 */
#ifndef TUTTI_BASE_FORK_H
#define TUTTI_BASE_FORK_H

/* Between these two calls the thread makes one socket. No child is made meanwhile, so none has a
 * copy that is not in the table. Thread-safe. */
void tutti_fork_hold(void);

/* Enter `fd` in the table; a negative `fd` is a socket that could not be made. Returns `fd`, or -1
 * with errno ENOMEM when the table cannot grow: then `fd` is closed. Keeps errno otherwise. */
int tutti_fork_release(int fd);

#endif
