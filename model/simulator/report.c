/* SPDX-License-Identifier: Apache-2.0
 * Reports the results of a finished play: its duration, its critical path and the load of its
 * links.
 *
 * The critical path explains the duration. The code walks the path backwards from the last event.
 * It goes from each step to the precondition that was met last, and from each message to the event
 * that made it ready. So the pieces of the path leave no gap between the end and the beginning. */
#include "simulator/simulator.h"

#include "base/array.h"
#include "base/result.h"
#include "simulator/play.h"
#include "simulator/symmetry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the critical path -------------------------------------------------------- */

/* The state of the walk from the last event back to the beginning. */
struct walk {
    const struct tutti_sim_play *play;
    struct tutti_sim_report *report; /* gets the hops, and seconds in place of shares */
    uint32_t hop_capacity, nhops;
    double at_s;                 /* where the walk is, in the time of the play */
    struct tutti_sim_cause next; /* the event at at_s */
};

/* Adds a hop of `step` from begin_s to walk->at_s, for the reason `why`. Adds its time to *share,
 * and moves at_s back to begin_s. Adds nothing if begin_s is not before at_s. */
static int add_hop(struct walk *walk, uint32_t step, double begin_s, const char *why, double *share)
{
    const struct tutti_sim_score *score = &walk->play->score;
    uint32_t rank = score->steps[step].rank;
    struct tutti_sim_hop *hop;

    if (begin_s < 0)
        begin_s = 0;
    if (begin_s >= walk->at_s)
        return TUTTI_OK;
    TUTTI_TRY(TUTTI_ARRAY_ROOM(walk->report->hops, walk->nhops, walk->hop_capacity, "hops"));
    hop = &walk->report->hops[walk->nhops++];
    *hop = (struct tutti_sim_hop){.rank = rank, .step = step - score->first[rank],
                                  .begin_s = begin_s, .end_s = walk->at_s};
    snprintf(hop->why, sizeof(hop->why), "%s", why);
    *share += walk->at_s - begin_s;
    walk->at_s = begin_s;
    return TUTTI_OK;
}

/* Adds the time from begin_s to walk->at_s as up to two hops. The last `alone_s` seconds are work,
 * with reason `why`. The rest is a wait for a shared resource, with reason `why_wait`. */
static int add_work(struct walk *walk, uint32_t step, double begin_s, double alone_s,
                    const char *why, double *share, const char *why_wait)
{
    double from_s = walk->at_s - alone_s;

    TUTTI_TRY(add_hop(walk, step, from_s > begin_s ? from_s : begin_s, why, share));
    return add_hop(walk, step, begin_s, why_wait, &walk->report->wait_share);
}

/* Walks a message back to the time at which it became ready. The walk begins at the time at which
 * the fraction `part` of the message's bytes had been sent. */
static int walk_sending(struct walk *walk, uint32_t id, double part)
{
    const struct tutti_sim_message *message = &walk->play->score.messages[id];
    struct tutti_sim_report *report = walk->report;
    uint32_t sender = message->sender;

    TUTTI_TRY(add_work(walk, sender, message->flow_s, message->alone_s * part, "bandwidth",
                       &report->wire_share, "link"));
    TUTTI_TRY(add_work(walk, sender, message->begin_s, message->overhead_s, "overhead",
                       &report->latency_share, "core"));
    TUTTI_TRY(add_hop(walk, sender, message->ready_s, "port", &report->wait_share));
    walk->next = message->cause;
    return TUTTI_OK;
}

static int walk_received(struct walk *walk, uint32_t id);

/* Walks back from the time at which a message had left its sender. */
static int walk_sent(struct walk *walk, uint32_t id)
{
    const struct tutti_sim_message *message = &walk->play->score.messages[id];
    const struct tutti_sim_step *steps = walk->play->score.steps;
    uint32_t last = message->sender; /* the forwarding step that received its input last */

    if (!message->has_tail)
        return walk_sending(walk, id, 1);
    for (uint32_t at = message->sender; at != TUTTI_SIM_NONE; at = steps[at].next_out)
        if (tutti_sim_is_fused(&steps[at]) &&
            (!tutti_sim_is_fused(&steps[last]) || steps[at].received_s > steps[last].received_s))
            last = at;
    TUTTI_TRY(add_hop(walk, last, steps[last].received_s, "bandwidth", &walk->report->wire_share));
    return walk_received(walk, last);
}

/* Walks back from the time at which a step had received its message and done the arithmetic. */
static int walk_received(struct walk *walk, uint32_t id)
{
    const struct tutti_sim_step *step = &walk->play->score.steps[id];
    const struct tutti_sim_message *message = &walk->play->score.messages[step->in];

    TUTTI_TRY(add_work(walk, id, message->arrived_s, step->alone_s, "reduce",
                       &walk->report->work_share, "core"));
    TUTTI_TRY(add_hop(walk, id, message->sent_s, "latency", &walk->report->latency_share));
    walk->next = (struct tutti_sim_cause){TUTTI_SIM_CAUSE_SENT, step->in};
    return TUTTI_OK;
}

/* Walks back from the time at which a step could pass on the first slice of a message. */
static int walk_head(struct walk *walk, uint32_t id)
{
    const struct tutti_sim_message *message = &walk->play->score.messages[id];
    const struct tutti_sim_step *step = &walk->play->score.steps[message->receiver];
    bool is_whole = message->bytes <= TUTTI_SIM_SLICE_BYTES || tutti_sim_is_gathered(message);
    double head_s = is_whole ? message->sent_s : message->head_s;

    TUTTI_TRY(add_work(walk, message->receiver, head_s + message->latency_s, step->alone_s,
                       "reduce", &walk->report->work_share, "core"));
    TUTTI_TRY(add_hop(walk, message->receiver, head_s, "latency", &walk->report->latency_share));
    if (is_whole)
        return walk_sent(walk, id);
    return walk_sending(walk, id, TUTTI_SIM_SLICE_BYTES / message->bytes);
}

/* Walks back from the time at which a step was complete. */
static int walk_step(struct walk *walk, uint32_t id)
{
    const struct tutti_sim_step *step = &walk->play->score.steps[id];
    struct tutti_sim_report *report = walk->report;
    bool is_arithmetic = step->kind == TUTTI_STEP_REDUCE || step->kind == TUTTI_STEP_GATHER_REDUCE;

    if (step->out != TUTTI_SIM_NONE &&
        walk->play->score.messages[step->out].sent_s >= step->done_s) {
        walk->next = (struct tutti_sim_cause){TUTTI_SIM_CAUSE_SENT, step->out};
        return TUTTI_OK;
    }
    if (step->in != TUTTI_SIM_NONE)
        return walk_received(walk, id);
    walk->next = step->cause;
    switch (step->kind) {
    case TUTTI_STEP_SIGNAL:
    case TUTTI_STEP_WAIT:
        return TUTTI_OK;
    case TUTTI_STEP_PUT:
    case TUTTI_STEP_GET:
        TUTTI_TRY(add_work(walk, id, step->begin_s, step->alone_s, "bandwidth",
                           &report->wire_share, "link"));
        break;
    default:
        TUTTI_TRY(add_work(walk, id, step->begin_s, step->alone_s,
                           is_arithmetic ? "reduce" : "copy", &report->work_share, "link"));
        break;
    }
    return add_hop(walk, id, step->ready_s, "core", &report->wait_share);
}

static int walk_back(struct walk *walk)
{
    while (walk->next.kind != TUTTI_SIM_CAUSE_START) {
        uint32_t id = walk->next.id;

        switch (walk->next.kind) {
        case TUTTI_SIM_CAUSE_SENT: TUTTI_TRY(walk_sent(walk, id)); break;
        case TUTTI_SIM_CAUSE_HEAD: TUTTI_TRY(walk_head(walk, id)); break;
        case TUTTI_SIM_CAUSE_SIGNAL:
            TUTTI_TRY(add_hop(walk, id, walk->play->score.steps[id].done_s, "latency",
                              &walk->report->latency_share));
            TUTTI_TRY(walk_step(walk, id));
            break;
        default: TUTTI_TRY(walk_step(walk, id)); break;
        }
    }
    return TUTTI_OK;
}

static int report_path(const struct tutti_sim_play *play, uint32_t last,
                       struct tutti_sim_report *report)
{
    struct walk walk = {.play = play, .report = report, .at_s = report->seconds,
                        .next = {TUTTI_SIM_CAUSE_STEP, last}};

    TUTTI_TRY(walk_back(&walk));
    report->nhops = walk.nhops;
    if (report->seconds > 0) {
        report->latency_share /= report->seconds;
        report->wire_share /= report->seconds;
        report->work_share /= report->seconds;
        report->wait_share /= report->seconds;
    }
    return TUTTI_OK;
}

/* ---- links ---------------------------------------------------------------------- */

static int by_load(const void *a, const void *b)
{
    const struct tutti_sim_link *x = a, *y = b;
    double load_x = x->bytes / x->bytes_per_s, load_y = y->bytes / y->bytes_per_s;

    if (load_x != load_y)
        return load_x < load_y ? 1 : -1;
    return x->number < y->number ? -1 : 1;
}

static int report_links(const struct tutti_sim_play *play, struct tutti_sim_report *report)
{
    const struct tutti_sim_network *network = &play->network;

    report->links = calloc((size_t)network->nlinks + 1, sizeof(*report->links));
    if (report->links == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to report %u links", network->nlinks);
    for (uint32_t i = 0; i < network->nlinks; i++) {
        const struct tutti_sim_network_link *link = &network->links[i];
        struct tutti_sim_link *entry = &report->links[report->nlinks];

        if (link->bytes == 0)
            continue;
        *entry = (struct tutti_sim_link){.number = i,
                                         .bytes = link->bytes,
                                         .busy_s = link->busy_s,
                                         .bytes_per_s = link->nominal};
        tutti_sim_link_name(network, i, entry->name, sizeof(entry->name));
        report->nlinks++;
    }
    qsort(report->links, report->nlinks, sizeof(*report->links), by_load);
    return TUTTI_OK;
}

/* ---- the whole ---------------------------------------------------------------------- */

static int fill_report(const struct tutti_sim_play *play, struct tutti_sim_report *report)
{
    const struct tutti_sim_score *score = &play->score;
    uint32_t last = TUTTI_SIM_NONE;
    /* The number of ranks that each played rank stands for, itself among them. */
    uint32_t images = score->period > 0 ? score->nranks / score->period : 1;

    report->nmessages = images * play->nmessages;
    report->bytes = images * play->bytes;
    report->rank_seconds = calloc(score->nranks, sizeof(*report->rank_seconds));
    if (report->rank_seconds == NULL)
        return tutti_fail(TUTTI_ERR_SYSTEM, "no memory to report on %u ranks", score->nranks);
    for (uint32_t id = 0; id < score->nsteps; id++) {
        const struct tutti_sim_step *step = &score->steps[id];
        double *seconds = &report->rank_seconds[step->rank];

        if (step->done_s > *seconds)
            *seconds = step->done_s;
        if (last == TUTTI_SIM_NONE || step->done_s > score->steps[last].done_s)
            last = id;
    }
    for (uint32_t rank = 0; rank < score->nranks; rank++)
        report->rank_seconds[rank] =
            report->rank_seconds[tutti_sim_played_rank(score->period, rank)];
    if (last != TUTTI_SIM_NONE) {
        report->seconds = score->steps[last].done_s;
        TUTTI_TRY(report_path(play, last, report));
    }
    return report_links(play, report);
}

int tutti_simulate(const struct tutti_sim_source *source, const struct tutti_machine *machine,
                   struct tutti_sim_report *ret_report)
{
    struct tutti_sim_report report = {.seconds = 0};
    struct tutti_sim_play play;
    int rc;

    TUTTI_TRY(tutti_sim_play_init(&play, source, machine, true));
    TUTTI_TRY_OR(fail, rc, tutti_sim_play(&play));
    if (play.nleft > 0) {
        /* Joining messages into gathered writes can cause a deadlock if the order of steps is
         * unusual. So play again without gathered writes. A schedule that really deadlocks does so
         * again. */
        tutti_sim_play_fini(&play);
        TUTTI_TRY(tutti_sim_play_init(&play, source, machine, false));
        TUTTI_TRY_OR(fail, rc, tutti_sim_play(&play));
    }
    TUTTI_TRY_OR(fail, rc, tutti_sim_play_check(&play));
    TUTTI_TRY_OR(fail, rc, fill_report(&play, &report));
    tutti_sim_play_fini(&play);
    *ret_report = report;
    return TUTTI_OK;

fail:
    tutti_sim_report_fini(&report);
    tutti_sim_play_fini(&play);
    return rc;
}

void tutti_sim_report_fini(struct tutti_sim_report *report)
{
    free(report->rank_seconds);
    free(report->links);
    free(report->hops);
    *report = (struct tutti_sim_report){.seconds = 0};
}
