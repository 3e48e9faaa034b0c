/* SPDX-License-Identifier: Apache-2.0
 * Declares a load/store domain: the ranks of one host, called its members, and the segment of
 * memory that they share.
 *
 * The segment is one memfd. The first of these ranks makes it and passes it to the others over a
 * Unix socket, so it needs no common file system and no IPC namespace. The kernel allocates its
 * pages when they are first touched. A process maps it once, however many of the ranks are its
 * threads. This is its layout for n members:
 *
 *     header | members[n] | waiters[n] | activities[n] | posts[n][TUTTI_POSTS]
 *            | slots[n][TUTTI_POSTS] | windows[n][2] | fifos[channel][n][n]
 *            | lend_slots[n] | mapped[n][n] | areas[n] | counts[n]
 *
 * `lend_slots` and `mapped` belong to the protocol of lend.h. `areas` has the memory that
 * tutti_domain_area returns, and `counts` the counts that tutti_domain_counts returns. The memory
 * of a member that is not in the segment is called its own memory.
 *
 * One-sided schedules synchronize by posts. A round is one run of a one-sided schedule, over one
 * piece of a call. Each member owns a ring of posts, and successive rounds use these one after the
 * other. Only the owner writes a post, and all members read it. The counter, the signature and the
 * addresses are in one cache line, so that a reader gets all of them at once.
 *
 * A window is memory of a member that all members may load from and store to in a round. The window
 * of a round is in one of three places. A tiny window is in the post, in place of the addresses. A
 * small window is in the slot of the post. Each post has a slot of its own, because a member that
 * only writes may be some rounds ahead of a member that reads. A large window is one of two halves,
 * which rounds use in turn. There are only two of them, so that they stay in the cache. */
#ifndef TUTTI_TRANSPORT_DOMAIN_H
#define TUTTI_TRANSPORT_DOMAIN_H

#include "base/fence.h"
#include "base/result.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TUTTI_POSTS = 8,            /* posts of a member */
    TUTTI_POST_BYTES = 256,
    TUTTI_POST_HEAD_BYTES = 32, /* the part of a post before its addresses or tiny window */
    TUTTI_SLOT_BYTES = 16384,
};

struct tutti_post {
    /* The round and the number of signals given in it, as tutti_domain_signal combines them. The
     * owner stores it with release order, after everything else of the post and of the window.
     * Readers load it with acquire order. */
    alignas(TUTTI_CACHE_LINE) uint64_t counter;
    uint64_t signature[2]; /* the owner's call in this round; other ranks compare it */
    uint64_t chain;        /* a hash of the owner's earlier calls (call_history.h) */
    union {
        struct {
            uint64_t input; /* addresses of the owner's buffers in the owner's memory */
            uint64_t output;
            /* Numbers by which peers may use the two buffers in memory that they map (lend.h); 0:
             * none. last_lent is the last number on the owner's list. */
            uint32_t input_lent, output_lent, last_lent;
        };
        /* the tiny window */
        uint8_t window[TUTTI_POST_BYTES - TUTTI_POST_HEAD_BYTES];
    };
};
_Static_assert(sizeof(struct tutti_post) == TUTTI_POST_BYTES, "whole lines, the window at the end");

/* The state in which a member waits and sleeps. */
struct tutti_waiter {
    alignas(TUTTI_CACHE_LINE) uint32_t rings; /* futex word: every ring increments it */
    uint32_t sleep_kind;                      /* the kind of sleep (below): the owner sets it
                                                 before its last check; the owner, or a rank that
                                                 rings, clears it */
    uint32_t core;                            /* 1 + the number of the core on which the owner
                                                 last waited; 0: not known. Ranks set it only if
                                                 ranks outnumber cores. */
};
enum { TUTTI_AWAKE, TUTTI_SLEEPS_ON_FUTEX, TUTTI_SLEEPS_ON_SOCKETS };

/* The last operations that a member began, with any schedule. Others read them when they have
 * waited for long, or find that calls differ. The first word is the operation's number, from 1 on;
 * number n is at n modulo TUTTI_ACTIVITIES. Only the executor interprets the other words. */
#define TUTTI_ACTIVITIES 8
#define TUTTI_ACTIVITY_WORDS 4
struct tutti_activities {
    alignas(TUTTI_CACHE_LINE) uint64_t words[TUTTI_ACTIVITIES][TUTTI_ACTIVITY_WORDS];
};

#define TUTTI_ABORT_REASON_BYTES TUTTI_MESSAGE_BYTES

/* The reason why a member has given up. The first member that gives up writes it, once. */
struct tutti_abort_note {
    alignas(TUTTI_CACHE_LINE) uint32_t state; /* enum below */
    int32_t code, rank;
    char reason[TUTTI_ABORT_REASON_BYTES];
};
enum { TUTTI_NOTE_EMPTY, TUTTI_NOTE_BEING_WRITTEN, TUTTI_NOTE_WRITTEN };

/* This rank's access to a member's own memory: none, reads by system calls (another process), or
 * plain loads and stores (the same process). */
enum tutti_domain_access {
    TUTTI_DOMAIN_ACCESS_NONE,
    TUTTI_DOMAIN_ACCESS_READ,
    TUTTI_DOMAIN_ACCESS_STORE
};

/* One rank's view of its domain. It is the first member of struct tutti_shm_segment. */
struct tutti_domain {
    uint32_t nmembers, me;           /* this rank's index among the members */
    const uint32_t *ranks;           /* [nmembers]: index -> rank of the communicator, ascending */
    struct tutti_post *posts;        /* [nmembers][TUTTI_POSTS]; use tutti_domain_post */
    struct tutti_waiter *waiters;    /* [nmembers] */
    struct tutti_activities *activities; /* [nmembers] */
    uint8_t *slots;                  /* [nmembers][TUTTI_POSTS][TUTTI_SLOT_BYTES]; use
                                        tutti_domain_slot */
    uint8_t *windows;                /* [nmembers][2][half_bytes]; use tutti_domain_window */
    size_t half_bytes;               /* size of a half; a multiple of the cache line */
    struct tutti_lend_slot *lend_slots; /* [nmembers][TUTTI_LEND_SLOTS] (lend.h) */
    uint32_t *mapped;                /* [nmembers][mapped_stride]: how much of each list each
                                        member has mapped (lend.h) */
    size_t mapped_stride;            /* elements of a row of `mapped` */
    uint8_t *areas;                  /* [nmembers][TUTTI_AREA_BYTES] */
    uint64_t *counts;                /* [nmembers][TUTTI_DOMAIN_COUNTS_SIDES][TUTTI_ACTIVITIES]
                                        [1 + nmembers] */
    const enum tutti_domain_access *access; /* [nmembers]: this rank's access to that member's own
                                        memory */
    uint32_t *sleepers;              /* in the header: the number of members that sleep, so
                                        that a signal reads one word */
    uint32_t patience;               /* how often a member checks again at once for a late signal
                                        (TUTTI_PATIENT_LOOKS); 0 if ranks outnumber cores */
    bool has_joint_fences;           /* a member that sets a flag, as before a sleep, also runs the
                                        fences of all other members (base/fence.h) */
    struct tutti_abort_note *note;   /* in the header: the reason of the first member that gave
                                        up */
};

/* tutti_domain_ring_all wakes every other member that sleeps; tutti_domain_give_signals calls it
 * where it is needed. tutti_domain_ring wakes one member, whether it sleeps or not. Both may be
 * called on any thread. */
void tutti_domain_ring_all(struct tutti_domain *domain);
void tutti_domain_ring(struct tutti_domain *domain, uint32_t index);

/* Returns the post of member `index` for a round. */
static inline struct tutti_post *tutti_domain_post(const struct tutti_domain *domain,
                                                   uint32_t index, uint64_t round)
{
    return &domain->posts[TUTTI_POSTS * index + round % TUTTI_POSTS];
}

/* Returns TUTTI_AREA_BYTES of memory that a member writes and all members may read. They are zero
 * at first. The ranks on GPUs use them (executor/cuda). */
#define TUTTI_AREA_BYTES 8192
static inline uint8_t *tutti_domain_area(const struct tutti_domain *domain, uint32_t index)
{
    return domain->areas + (size_t)index * TUTTI_AREA_BYTES;
}

/* Returns the small window of member `index` for a round, of TUTTI_SLOT_BYTES. */
static inline uint8_t *tutti_domain_slot(const struct tutti_domain *domain, uint32_t index,
                                         uint64_t round)
{
    return domain->slots + (TUTTI_POSTS * index + round % TUTTI_POSTS) * TUTTI_SLOT_BYTES;
}

/* Returns the large window of member `index` for a round, of half_bytes. */
static inline uint8_t *tutti_domain_window(const struct tutti_domain *domain, uint32_t index,
                                           uint64_t round)
{
    return domain->windows + (2 * index + (round & 1)) * domain->half_bytes;
}

/* Returns the value of a post's counter after `nsignals` signals of a round. */
#define TUTTI_SIGNAL_BITS 24
static inline uint64_t tutti_domain_signal(uint64_t round, uint32_t nsignals)
{
    return round << TUTTI_SIGNAL_BITS | nsignals;
}

/* How often a member checks for an answer that is on its way before it does something else. It
 * pauses between two checks, so that all of them take less than a microsecond. */
#define TUTTI_PATIENT_LOOKS 2

/* Write this rank's call into its post of a round, before the first signal of the round. */
static inline void tutti_domain_begin_post(const struct tutti_domain *domain, uint64_t round,
                                           const uint64_t signature[2], uint64_t chain)
{
    struct tutti_post *post = tutti_domain_post(domain, domain->me, round);

    /* release, all: a reader that sees a word sees the zero before it; pairs with the acquire in
     * tutti_domain_post_has and in mismatch.c */
    tutti_store_release(&post->counter, 0);
    tutti_store_release(&post->signature[0], signature[0]);
    tutti_store_release(&post->signature[1], signature[1]);
    tutti_store_release(&post->chain, chain);
}

/* Give this rank's signals of a round, up to number `nsignals`, in its post. A rank that sees the
 * signal also sees everything that this rank wrote before. */
static inline void tutti_domain_give_signals(struct tutti_domain *domain, struct tutti_post *post,
                                             uint64_t round, uint32_t nsignals)
{
    /* release: pairs with the acquire in tutti_domain_post_has */
    tutti_store_release(&post->counter, tutti_domain_signal(round, nsignals));
    /* Pairs with the fence of a member that goes to sleep: at least one of the two sees the
     * other. */
    tutti_fence_before_look(domain->has_joint_fences);
    if (tutti_load_relaxed(domain->sleepers) != 0)
        tutti_domain_ring_all(domain);
}

/* True if the owner of the post has given signal `signal` of that round, or has begun a later round
 * in the same post. */
static inline bool tutti_domain_post_has(const struct tutti_post *post, uint64_t round,
                                         uint32_t signal)
{
    /* acquire: pairs with the release in tutti_domain_give_signals */
    return tutti_load_acquire(&post->counter) >= tutti_domain_signal(round, signal);
}

/* Does the same as tutti_domain_post_has for the post of member `index`. */
static inline bool tutti_domain_has_signal(const struct tutti_domain *domain, uint32_t index,
                                           uint64_t round, uint32_t signal)
{
    return tutti_domain_post_has(tutti_domain_post(domain, index, round), round, signal);
}

/* Publish the operation that this rank begins. words[0] is its number. */
static inline void tutti_domain_announce(struct tutti_domain *domain,
                                         const uint64_t words[TUTTI_ACTIVITY_WORDS])
{
    uint64_t *mine = domain->activities[domain->me].words[words[0] % TUTTI_ACTIVITIES];

    /* release, all: a reader that sees a word sees the zero before it; pairs with
     * tutti_domain_activity */
    tutti_store_release(&mine[0], 0);
    for (int i = 1; i < TUTTI_ACTIVITY_WORDS; i++)
        tutti_store_release(&mine[i], words[i]);
    tutti_store_release(&mine[0], words[0]);
}

/* Gets operation `number` of member `index`. Returns false if the member has not begun the
 * operation, or has since begun so many others that it is overwritten. */
static inline bool tutti_domain_activity(const struct tutti_domain *domain, uint32_t index,
                                         uint64_t number, uint64_t ret_words[TUTTI_ACTIVITY_WORDS])
{
    const uint64_t *theirs = domain->activities[index].words[number % TUTTI_ACTIVITIES];

    /* acquire, all: pairs with tutti_domain_announce */
    for (int i = 0; i < TUTTI_ACTIVITY_WORDS; i++)
        ret_words[i] = tutti_load_acquire(&theirs[i]);
    return ret_words[0] == number && tutti_load_acquire(&theirs[0]) == number;
}

/* The counts that a member passed to its last collectives with one count per rank, in a domain of
 * all ranks. An entry has the number of the call, and as many counts as there are members. Other
 * members read them to name the count that differs. Calls on host memory and calls on device memory
 * are numbered separately. */
enum tutti_domain_counts_side {
    TUTTI_DOMAIN_COUNTS_OF_HOST,
    TUTTI_DOMAIN_COUNTS_OF_GPU,
    TUTTI_DOMAIN_COUNTS_SIDES
};

/* Returns the entry of member `index` for call `number`: the number, and then the counts. */
static inline uint64_t *tutti_domain_counts(const struct tutti_domain *domain, uint32_t index,
                                            enum tutti_domain_counts_side side, uint64_t number)
{
    size_t place = ((size_t)index * TUTTI_DOMAIN_COUNTS_SIDES + side) * TUTTI_ACTIVITIES +
                   number % TUTTI_ACTIVITIES;

    return domain->counts + place * (1 + (size_t)domain->nmembers);
}

/* Publish this rank's counts of call `number`, from 1 on. */
static inline void tutti_domain_show_counts(struct tutti_domain *domain,
                                            enum tutti_domain_counts_side side, uint64_t number,
                                            const size_t *counts)
{
    uint64_t *mine = tutti_domain_counts(domain, domain->me, side, number);

    /* release, all: a reader that sees a count sees the zero before it; pairs with
     * tutti_domain_compare_counts */
    tutti_store_release(&mine[0], 0);
    for (uint32_t i = 0; i < domain->nmembers; i++)
        tutti_store_release(&mine[1 + i], (uint64_t)counts[i]);
    tutti_store_release(&mine[0], number);
}

/* Finds the first count of call `number` in which member `index` and this rank differ. Returns the
 * rank of that count, and both values. Returns -1 if there is none, if one of the two has not begun
 * that call, or if it has since made so many others that the counts are overwritten. */
int tutti_domain_compare_counts(const struct tutti_domain *domain, uint32_t index,
                                enum tutti_domain_counts_side side, uint64_t number,
                                uint64_t *ret_mine, uint64_t *ret_theirs);

/* Copy `size` bytes from an address that member `index` has posted. The copy is by plain loads
 * within a process, and by system calls between processes. TUTTI_ERR_REMOTE: the memory cannot be
 * read; the message names the rank. */
int tutti_domain_read(struct tutti_domain *domain, uint32_t index, void *dst, uint64_t address,
                      size_t size);

/* These do the work of tutti_fabric_enter, tutti_fabric_exit and tutti_fabric_drain (fabric.h) if a
 * member reads another's own memory. */
bool tutti_domain_enter(struct tutti_domain *domain);
bool tutti_domain_exit(struct tutti_domain *domain);
void tutti_domain_drain(struct tutti_domain *domain);

#endif
