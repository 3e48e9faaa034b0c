/* SPDX-License-Identifier: Apache-2.0
 * Implements the meetings of threads: barriers of a block, and everything that a warp does
 * together. */
#include "simcuda/block.h"
#include "simcuda/sanitizers.h"

#include <string.h>

/* So long a torn line stays so: who polls, and sleeps in between, sees it. */
#define TORN_NS UINT64_C(500000)

static bool lines_are_torn;

static const char *const names[] = {
    [SIM_BARRIER] = "gpu_barrier",
    [SIM_BARRIER_OR] = "gpu_barrier_or",
    [SIM_BALLOT] = "a vote of the warp",
    [SIM_LOAD_LINE] = "gpu_load_line",
    [SIM_STORE_LINE] = "gpu_store_line",
};

/* True if threads afterwards see everything that the others did before. */
static bool orders(enum sim_meeting_kind kind)
{
    return kind != SIM_BALLOT;
}

static void check_arrival(struct runner *self, const struct meeting *meeting,
                          enum sim_meeting_kind kind)
{
    if (meeting->nended > 0)
        runner_die(self, "%s, but %u of those who must come have ended", names[kind],
                   meeting->nended);
    if (meeting->narrived > 0 && meeting->kind != kind)
        runner_die(self, "%s, while thread %u waits in %s", names[kind],
                   meeting->waiting->self.thread, names[meeting->kind]);
}

/* Wait until all have come; true for the last one, who goes on before the others do. */
static bool meet(struct runner *self, struct meeting *meeting, enum sim_meeting_kind kind)
{
    uint64_t *clock = &meeting->clocks[meeting->round & 1];
    bool is_last;

    check_arrival(self, meeting, kind);
    meeting->kind = kind;
    if (orders(kind)) {
        runner_share(self);
        sim_tsan_release(clock);
    }
    is_last = ++meeting->narrived == meeting->nmembers;
    if (is_last) {
        meeting->round++;
        meeting->narrived = 0;
        while (meeting->waiting != NULL) {
            struct runner *woken = meeting->waiting;

            meeting->waiting = woken->next;
            runner_make_ready(woken);
        }
    } else {
        self->next = meeting->waiting;
        meeting->waiting = self;
        runner_wait(self, names[kind]);
    }
    if (orders(kind))
        sim_tsan_acquire(clock);
    return is_last;
}

void meeting_leave(struct runner *self)
{
    struct meeting *meetings[2] = {&self->block->meeting, &self->warp->meeting};

    for (int i = 0; i < 2; i++) {
        if (meetings[i]->narrived > 0)
            runner_die(self, "has ended, while thread %u waits in %s",
                       meetings[i]->waiting->self.thread, names[meetings[i]->kind]);
        meetings[i]->nended++;
    }
}

/* ---- blocks ---------------------------------------------------------------------------------- */

bool sim_barrier(enum sim_meeting_kind kind, bool is_true)
{
    struct runner *self = runner_self();
    struct block *block = self->block;
    uint32_t parity = block->meeting.round & 1;

    if (block->meeting.narrived == 0)
        block->ntrue[parity] = 0;
    block->ntrue[parity] += is_true;
    meet(self, &block->meeting, kind);
    return block->ntrue[parity] > 0;
}

/* ---- warps ----------------------------------------------------------------------------------- */

static struct warp *warp_of(struct runner *self, enum sim_meeting_kind kind)
{
    if (self->warp->meeting.nmembers != SIM_WARP)
        runner_die(self, "%s in a warp of %u threads", names[kind], self->warp->meeting.nmembers);
    return self->warp;
}

uint32_t sim_ballot(bool is_true)
{
    struct runner *self = runner_self();
    struct warp *warp = warp_of(self, SIM_BALLOT);
    uint32_t parity = warp->meeting.round & 1, votes = 0;

    warp->words[parity][self->self.thread % SIM_WARP].low = is_true;
    meet(self, &warp->meeting, SIM_BALLOT);
    for (uint32_t i = 0; i < SIM_WARP; i++)
        votes |= (uint32_t)warp->words[parity][i].low << i;
    return votes;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The last 8 bytes of a line are what its reader looks at first. */
static bool has_flag(const uint64_t *at)
{
    return (uintptr_t)at % 128 == 112;
}

static void store_lines(void *const *addresses, const struct sim_word *words)
{
    for (int i = 0; i < SIM_WARP; i++) {
        uint64_t *at = addresses[i];

        if (at == NULL)
            continue;
        __atomic_store_n(&at[0], words[i].low, __ATOMIC_RELAXED);
        if (!has_flag(at))
            __atomic_store_n(&at[1], words[i].high, __ATOMIC_RELAXED);
    }
    for (int i = 0; i < SIM_WARP; i++) {
        uint64_t *at = addresses[i];

        if (at != NULL && has_flag(at))
            __atomic_store_n(&at[1], words[i].high, __ATOMIC_RELEASE);
    }
}

static void load_lines(void *const *addresses, struct sim_word *words)
{
    for (int i = 0; i < SIM_WARP; i++) {
        const uint64_t *at = addresses[i];

        if (at != NULL && has_flag(at))
            words[i].high = __atomic_load_n(&at[1], __ATOMIC_ACQUIRE);
    }
    for (int i = 0; i < SIM_WARP; i++) {
        const uint64_t *at = addresses[i];

        if (at == NULL)
            continue;
        words[i].low = __atomic_load_n(&at[0], __ATOMIC_RELAXED);
        if (!has_flag(at))
            words[i].high = __atomic_load_n(&at[1], __ATOMIC_RELAXED);
    }
}

static bool is_torn(const struct runner *self, const void *at)
{
    const struct sim_launch *launch = self->block->run->launch;

    return lines_are_torn || (launch->tears != NULL && launch->tears(launch->context, at));
}

/* The line's end now, and the rest when others have had time to look, though its thread may go
 * on. */
static void store_torn(struct runner *self, uint64_t *at, struct sim_word word)
{
    while (self->ntorn == SIM_TORN) {
        self->is_idle = true;
        runner_give_way(self);
    }
    if (has_flag(at))
        __atomic_store_n(&at[1], word.high, __ATOMIC_RELEASE);
    self->torn[self->ntorn++] = (struct sim_torn){at, word, sim_now_ns() + TORN_NS};
}

void runner_mend(struct runner *self)
{
    uint32_t n = 0;

    while (n < self->ntorn && sim_now_ns() >= self->torn[n].due_ns) {
        const struct sim_torn *torn = &self->torn[n++];

        __atomic_store_n(&torn->at[0], torn->word.low, __ATOMIC_RELEASE);
        if (!has_flag(torn->at))
            __atomic_store_n(&torn->at[1], torn->word.high, __ATOMIC_RELEASE);
    }
    self->ntorn -= n;
    memmove(self->torn, self->torn + n, self->ntorn * sizeof *self->torn);
}

/* Begins every operation of a warp, and returns the round's parity. */
static uint32_t begin_line(struct runner *self, enum sim_meeting_kind kind, const void *at,
                           bool is_there)
{
    struct warp *warp = warp_of(self, kind);
    uint32_t parity = warp->meeting.round & 1;

    if (is_there && (uintptr_t)at % 16 != 0)
        sim_misaligned(at, 16);
    if (is_there && self->self.is_watched)
        runner_touch_line(self, at, kind == SIM_STORE_LINE);
    warp->addresses[parity][self->self.thread % SIM_WARP] =
        is_there ? (void *)(uintptr_t)at : NULL;
    return parity;
}

void sim_store_line(void *at, struct sim_word word, bool is_there)
{
    struct runner *self = runner_self();
    uint32_t parity = begin_line(self, SIM_STORE_LINE, at, is_there);
    struct warp *warp = self->warp;
    bool goes_alone = is_there && is_torn(self, at);

    warp->words[parity][self->self.thread % SIM_WARP] = word;
    if (goes_alone)
        warp->addresses[parity][self->self.thread % SIM_WARP] = NULL;
    sim_progress();
    if (meet(self, &warp->meeting, SIM_STORE_LINE))
        store_lines(warp->addresses[parity], warp->words[parity]);
    if (goes_alone)
        store_torn(self, at, word);
    if (is_there && self->block->run->is_weak)
        sim_cache_forget(self->block->cache, at);
}

struct sim_word sim_load_line(const void *at, bool is_there)
{
    struct runner *self = runner_self();
    uint32_t parity = begin_line(self, SIM_LOAD_LINE, at, is_there);
    struct warp *warp = self->warp;
    struct sim_word *word = &warp->words[parity][self->self.thread % SIM_WARP];

    *word = (struct sim_word){0, 0};
    if (meet(self, &warp->meeting, SIM_LOAD_LINE))
        load_lines(warp->addresses[parity], warp->words[parity]);
    if (is_there)
        sim_poll(at, word->low * 31 + word->high);
    return *word;
}

void sim_lines_set_torn(bool are_torn)
{
    lines_are_torn = are_torn;
}
