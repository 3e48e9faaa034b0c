/* SPDX-License-Identifier: Apache-2.0
 * A load/store domain: the ranks of one host and the segment that they share.
 *
 * The segment is one memfd, made by the first of these ranks and passed to the
 * others over a Unix socket (so it needs no common file system and no IPC
 * namespace). Its pages exist once touched. A process maps it once, however many
 * of the ranks are its threads. For n members:
 *
 *     header | members[n] | doors[n] | activities[n] | posts[n][TUTTI_POSTS]
 *            | slots[n][TUTTI_POSTS] | windows[n][2] | fifos[channel][n][n]
 *            | shelves[n] | come[n][n] | boards[n] | counts[n]
 *
 * Posts are how one-sided schedules synchronise. Member m owns a ring of them,
 * used in turns by successive rounds (a round is one run of a one-sided
 * schedule, over one piece). The owner alone writes; everybody reads. Counter,
 * signature and addresses are one cache line, so that they travel together; so
 * does a tiny window, which takes the place of the addresses. Small windows lie
 * in slots, one per post: who only gives may be some rounds ahead of who takes.
 * Large ones are two halves, which stay in the cache.
 */
#ifndef TUTTI_TRANSPORT_DOMAIN_H
#define TUTTI_TRANSPORT_DOMAIN_H

#include "base/fence.h"
#include "base/result.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TUTTI_POSTS = 8,
    TUTTI_POST_BYTES = 256,
    TUTTI_POST_HEAD_BYTES = 32,
    TUTTI_SLOT_BYTES = 16384,
};

struct tutti_post {
    /* The round, and the signals given in it: tutti_domain_signal. Released by its owner after
     * everything else of the post and of the window; acquired by readers. */
    alignas(TUTTI_CACHE_LINE) uint64_t counter;
    uint64_t signature[2]; /* what the owner is doing in this round: ranks compare */
    uint64_t chain;        /* and what it did before */
    union {
        struct {
            uint64_t input; /* addresses of the owner's buffers in the owner's memory */
            uint64_t output;
            /* what peers may map them by (lend.h), 0: nothing */
            uint32_t input_lent, output_lent, last_lent;
        };
        /* of a round that needs no more */
        uint8_t window[TUTTI_POST_BYTES - TUTTI_POST_HEAD_BYTES];
    };
};
_Static_assert(sizeof(struct tutti_post) == TUTTI_POST_BYTES, "whole lines, the window at the end");

/* Where a member sleeps. */
struct tutti_door {
    alignas(TUTTI_CACHE_LINE) uint32_t rings; /* futex word: grows with every ring */
    uint32_t is_sleeping;                     /* how (below): set by the owner before its last look,
                                                 cleared by it or by whoever rings */
    uint32_t core;                            /* where the owner last waited: 1 + the core's number,
                                                 0 when unknown; only of crowded ranks */
};
enum { TUTTI_AWAKE, TUTTI_SLEEPS_ON_DOOR, TUTTI_SLEEPS_ON_SOCKETS };

/* The last operations that a member began, by whatever schedule: what others look at when they have
 * waited for long, or find that calls differ. Words that mean something to the executor alone, but
 * for the first: the operation's number, from 1 on; number n is at n modulo TUTTI_ACTIVITIES. */
#define TUTTI_ACTIVITIES 8
#define TUTTI_ACTIVITY_WORDS 4
struct tutti_activities {
    alignas(TUTTI_CACHE_LINE) uint64_t words[TUTTI_ACTIVITIES][TUTTI_ACTIVITY_WORDS];
};

#define TUTTI_ABORT_REASON_BYTES TUTTI_MESSAGE_BYTES

/* Written once, by the first member that gives up. */
struct tutti_abort_note {
    alignas(TUTTI_CACHE_LINE) uint32_t state; /* enum below */
    int32_t code, rank;
    char reason[TUTTI_ABORT_REASON_BYTES];
};
enum { TUTTI_NOTE_EMPTY, TUTTI_NOTE_BEING_WRITTEN, TUTTI_NOTE_WRITTEN };

enum tutti_access { TUTTI_ACCESS_NONE, TUTTI_ACCESS_READ, TUTTI_ACCESS_STORE };

/* Hot members are public for the executor's inner loop; all else is domain.c's. */
struct tutti_domain {
    uint32_t nmembers, me;           /* my index among the members */
    const uint32_t *ranks;           /* [nmembers]: index -> rank of the communicator, ascending */
    struct tutti_post *posts;        /* [nmembers][TUTTI_POSTS] */
    struct tutti_door *doors;        /* [nmembers] */
    struct tutti_activities *activities; /* [nmembers] */
    uint8_t *slots;                  /* [nmembers][TUTTI_POSTS][TUTTI_SLOT_BYTES] */
    uint8_t *windows;                /* [nmembers][2][half_bytes] */
    size_t half_bytes;               /* a multiple of the cache line */
    struct tutti_shelf_place *shelves; /* [nmembers][TUTTI_SHELF_PLACES] (lend.h) */
    uint32_t *come;                  /* [nmembers][come_stride]: how far each has come with whose */
    size_t come_stride;
    uint8_t *boards;                 /* [nmembers][TUTTI_BOARD_BYTES] */
    uint64_t *counts;                /* [nmembers][TUTTI_COUNTS_SIDES][TUTTI_ACTIVITIES]
                                        [1 + nmembers] */
    const enum tutti_access *access; /* [nmembers]: what I can do with that member's own memory */
    uint32_t *sleepers;              /* in the header: how many of is_sleeping are set, so that a
                                        signal looks at one word */
    uint32_t patience;               /* how often to look again at once for a signal that is late:
                                        not at all where ranks share cores */
    bool has_joint_fences;           /* whoever raises a flag, as before a sleep, fences for all */
    struct tutti_abort_note *note;   /* in the header */
};

/* Rouse every other member that sleeps (the rare half of tutti_domain_give), or one, sleeping
 * or not. Any thread. */
void tutti_domain_ring_all(struct tutti_domain *domain);
void tutti_domain_ring(struct tutti_domain *domain, uint32_t index);

static inline struct tutti_post *tutti_domain_post(const struct tutti_domain *domain,
                                                   uint32_t index, uint64_t round)
{
    return &domain->posts[TUTTI_POSTS * index + round % TUTTI_POSTS];
}

/* Where a member writes what all may read and only others understand; zeros at first. */
#define TUTTI_BOARD_BYTES 8192
static inline uint8_t *tutti_domain_board(const struct tutti_domain *domain, uint32_t index)
{
    return domain->boards + (size_t)index * TUTTI_BOARD_BYTES;
}

static inline uint8_t *tutti_domain_slot(const struct tutti_domain *domain, uint32_t index,
                                         uint64_t round)
{
    return domain->slots + (TUTTI_POSTS * index + round % TUTTI_POSTS) * TUTTI_SLOT_BYTES;
}

static inline uint8_t *tutti_domain_window(const struct tutti_domain *domain, uint32_t index,
                                           uint64_t round)
{
    return domain->windows + (2 * index + (round & 1)) * domain->half_bytes;
}

/* What a counter says after that many signals of a round. */
#define TUTTI_SIGNAL_BITS 24
static inline uint64_t tutti_domain_signal(uint64_t round, uint32_t nsignals)
{
    return round << TUTTI_SIGNAL_BITS | nsignals;
}

/* How an answer that is on its way is met: some hundred nanoseconds' worth of looks. */
#define TUTTI_PATIENT_LOOKS 100

/* Begin my post of a round: say what it is about. */
static inline struct tutti_post *tutti_domain_open(const struct tutti_domain *domain,
                                                   uint64_t round, const uint64_t signature[2],
                                                   uint64_t chain)
{
    struct tutti_post *post = tutti_domain_post(domain, domain->me, round);

    /* release, all: a reader who sees a word sees the zero before it; pairs with the acquire in
     * tutti_domain_gave and in mismatch.c */
    tutti_store_release(&post->counter, 0);
    tutti_store_release(&post->signature[0], signature[0]);
    tutti_store_release(&post->signature[1], signature[1]);
    tutti_store_release(&post->chain, chain);
    return post;
}

/* Give my signals of a round, up to that number, in its post: everything I wrote before is visible
 * to whoever sees it. */
static inline void tutti_domain_give(struct tutti_domain *domain, struct tutti_post *post,
                                     uint64_t round, uint32_t nsignals)
{
    /* release: pairs with the acquire in tutti_domain_gave */
    tutti_store_release(&post->counter, tutti_domain_signal(round, nsignals));
    /* Pairs with the fence of a member going to sleep: one of us sees the other. */
    tutti_fence_before_look(domain->has_joint_fences);
    if (tutti_load_relaxed(domain->sleepers) != 0)
        tutti_domain_ring_all(domain);
}

/* Has the owner of that round's post given signal `signal` of it, or begun a later round there? */
static inline bool tutti_domain_gave(const struct tutti_post *post, uint64_t round, uint32_t signal)
{
    /* acquire: pairs with the release in tutti_domain_give */
    return tutti_load_acquire(&post->counter) >= tutti_domain_signal(round, signal);
}

static inline bool tutti_domain_has(const struct tutti_domain *domain, uint32_t index,
                                    uint64_t round, uint32_t signal)
{
    return tutti_domain_gave(tutti_domain_post(domain, index, round), round, signal);
}

/* Say what I begin. */
static inline void tutti_domain_announce(struct tutti_domain *domain,
                                         const uint64_t words[TUTTI_ACTIVITY_WORDS])
{
    uint64_t *mine = domain->activities[domain->me].words[words[0] % TUTTI_ACTIVITIES];

    /* release, all: a reader who sees a word sees the zero before it; pairs with
     * tutti_domain_activity */
    tutti_store_release(&mine[0], 0);
    for (int i = 1; i < TUTTI_ACTIVITY_WORDS; i++)
        tutti_store_release(&mine[i], words[i]);
    tutti_store_release(&mine[0], words[0]);
}

/* Member `index`'s operation of that number; false when it has not begun it, or has begun so many
 * since that it is forgotten. */
static inline bool tutti_domain_activity(const struct tutti_domain *domain, uint32_t index,
                                         uint64_t number, uint64_t ret_words[TUTTI_ACTIVITY_WORDS])
{
    const uint64_t *theirs = domain->activities[index].words[number % TUTTI_ACTIVITIES];

    /* acquire, all: pairs with tutti_domain_announce */
    for (int i = 0; i < TUTTI_ACTIVITY_WORDS; i++)
        ret_words[i] = tutti_load_acquire(&theirs[i]);
    return ret_words[0] == number && tutti_load_acquire(&theirs[0]) == number;
}

/* The counts that a member passed to its last v-forms, in a domain of all ranks: a number and as
 * many counts as there are members. Others look there to name the count that differs. Calls of the
 * host and those on GPUs count by themselves. */
enum tutti_counts_side { TUTTI_COUNTS_OF_HOST, TUTTI_COUNTS_OF_GPU, TUTTI_COUNTS_SIDES };

static inline uint64_t *tutti_domain_counts(const struct tutti_domain *domain, uint32_t index,
                                            enum tutti_counts_side side, uint64_t number)
{
    size_t place = ((size_t)index * TUTTI_COUNTS_SIDES + side) * TUTTI_ACTIVITIES +
                   number % TUTTI_ACTIVITIES;

    return domain->counts + place * (1 + (size_t)domain->nmembers);
}

/* Show mine of call `number`, from 1 on. */
static inline void tutti_domain_show_counts(struct tutti_domain *domain,
                                            enum tutti_counts_side side, uint64_t number,
                                            const size_t *counts)
{
    uint64_t *mine = tutti_domain_counts(domain, domain->me, side, number);

    /* release, all: a reader who sees a count sees the zero before it; pairs with
     * tutti_domain_compare_counts */
    tutti_store_release(&mine[0], 0);
    for (uint32_t i = 0; i < domain->nmembers; i++)
        tutti_store_release(&mine[1 + i], (uint64_t)counts[i]);
    tutti_store_release(&mine[0], number);
}

/* The first count of call `number` that member `index` and I have shown differently: returns whose
 * count it is, and both values. -1: none, or one of us has not begun that call, or has made so many
 * since that it is forgotten. */
int tutti_domain_compare_counts(const struct tutti_domain *domain, uint32_t index,
                                enum tutti_counts_side side, uint64_t number, uint64_t *ret_mine,
                                uint64_t *ret_theirs);

/* Copy from memory of member `index` (an address it posted) by what access allows: plain loads in
 * one process, one system call otherwise. TUTTI_ERR_REMOTE names the rank. */
int tutti_domain_read(struct tutti_domain *domain, uint32_t index, void *dst, uint64_t address,
                      size_t size);

/* tutti_fabric_enter, exit and expel (fabric.h), where a member reads another's own memory. */
bool tutti_domain_enter(struct tutti_domain *domain);
bool tutti_domain_exit(struct tutti_domain *domain);
void tutti_domain_expel(struct tutti_domain *domain);

#endif
