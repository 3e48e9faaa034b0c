/* SPDX-License-Identifier: Apache-2.0
 * Closes this library's sockets in a child made by fork.
 *
 * The kernel closes a connection when the last process that holds it has closed it. A child that
 * kept copies of its parent's sockets would hide the death of the parent from the parent's peers
 * until the child ends. So each socket is entered in a table of the process when it is made, and a
 * fork handler closes the copies in the child. The table records the inode of each descriptor's
 * socket. A socket may therefore be closed without telling the table: if its number has been
 * reused, the inode differs and the handler leaves the descriptor alone.
 *
 * Children made by vfork, posix_spawn or system() need no handler: they run another program at
 * once, and the sockets are close-on-exec.
 */
#ifndef TUTTI_BASE_FORK_H
#define TUTTI_BASE_FORK_H

/* Call before making one socket, and tutti_fork_release after it on the same thread. A fork waits
 * in between, so that no child gets a socket that is not in the table. A descriptor of another kind
 * may be made in the same way, and does not enter the table. Thread-safe. */
void tutti_fork_hold(void);

/* Enter `fd` in the table and let forks go on. A negative `fd` means that the socket could not be
 * made, and is passed through. Returns `fd`. If the table cannot grow, closes `fd` and returns -1
 * with errno ENOMEM. Keeps errno otherwise. */
int tutti_fork_release(int fd);

#endif
