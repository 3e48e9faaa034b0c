/* SPDX-License-Identifier: Apache-2.0
 * A board shows descriptors of its owner to other processes of the host. This needs no right to
 * trace a process, which taking a descriptor from another process (pidfd_getfd) would need.
 *
 * A board is a pair of connected Unix sockets. At most one message is in the pair, and it is called
 * the notice. It has the numbers of the descriptors, and the kernel keeps the descriptors with it:
 *
 *     owner   puts a notice in:  near end ---> notice ---> far end
 *     reader  has a copy of the far end, and looks at the notice without taking it out
 *
 * The owner passes the far end to the readers once (pass.h). A reader gets copies of the
 * descriptors in the notice, as often as it looks. The owner replaces the notice when it wants to
 * show others. So a reader that never looks, or that has died, delays no one, and the kernel keeps
 * at most TUTTI_BOARD_ENTRIES descriptors for a board, however many readers there are. If the owner
 * dies, its last notice stays until the readers close their far ends.
 *
 * No call blocks. The owner and the readers need to agree by other means on the time at which a
 * reader should look. */
#ifndef TUTTI_TRANSPORT_SHM_BOARD_H
#define TUTTI_TRANSPORT_SHM_BOARD_H

#include <stdbool.h>
#include <stdint.h>

/* The most descriptors in a notice. The kernel passes at most 253 in a message. */
enum { TUTTI_BOARD_ENTRIES = 32 };

struct tutti_board {
    int near_fd, far_fd; /* -1: there is no board */
};

/* The descriptors on a board, and their numbers. */
struct tutti_board_notice {
    uint32_t count;
    uint32_t numbers[TUTTI_BOARD_ENTRIES];
    int fds[TUTTI_BOARD_ENTRIES];
    bool is_cut; /* set by tutti_board_read: this process had no room for all descriptors */
};

/* Make a board without a notice. TUTTI_ERR_SYSTEM: recorded, but not logged, and *ret_board is no
 * board. */
int tutti_board_open(struct tutti_board *ret_board);

/* Replace the notice. The caller keeps its descriptors. With count 0 there is no notice afterwards.
 * TUTTI_AGAIN: the kernel passes no more descriptors for now, for the recorded reason. Then there
 * is no notice, and the caller may try again later. */
int tutti_board_show(const struct tutti_board *board, const struct tutti_board_notice *notice);

/* Look at the notice, by the far end of a board. Without a notice, the count is 0. The caller
 * closes the descriptors with tutti_board_close_copies, also on failure. TUTTI_ERR_REMOTE: the
 * message is no notice; recorded, but not logged. */
int tutti_board_read(int far_fd, struct tutti_board_notice *ret_notice);

/* Returns the descriptor with this number in a notice; -1: it is not there. */
int tutti_board_find(const struct tutti_board_notice *notice, uint32_t number);

/* Closes all descriptors of a notice. */
void tutti_board_close_copies(struct tutti_board_notice *notice);

/* Closes both ends. Afterwards there is no board. */
void tutti_board_close(struct tutti_board *board);

#endif
