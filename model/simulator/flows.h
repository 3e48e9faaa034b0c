/* SPDX-License-Identifier: Apache-2.0
 * Shares the links among flows. A flow is a number of bytes in transit over some links.
 *
 * Rates are max-min fair. All flows grow until a link is full. The flows that cross this link stop
 * growing and the others continue, each up to the rate that it would have alone. Flows grow at
 * different speeds:
 *
 *   - Messages on paths of the machine grow at the same speed, because buses and networks serve all
 *     senders in turn, packet by packet. If each byte takes w bytes of a link, the message grows at
 *     a w-th of that speed.
 *   - All other flows grow in proportion to the rate that each would have alone, because they share
 *     the time of ports and cores.
 *
 * The demand of a link is the capacity that its flows would take if each of them were alone. A link
 * whose demand exceeds its capacity is tight. A flow without a tight link gets the rate that it
 * would have alone, and it affects no other flow. So a change propagates only along links that are
 * tight, or were tight before.
 *
 *   a  ====1====                 links 1 and 2 carry 12 each, every flow 12 alone:
 *   b  ====1==========2====      link 2 is full when b, c and d have 4;
 *   c            =====2====      a continues and takes what is left of link 1: 8
 *   d            =====2====
 */
#ifndef TUTTI_SIMULATOR_FLOWS_H
#define TUTTI_SIMULATOR_FLOWS_H

#include "simulator/events.h"
#include "simulator/network.h"

#define TUTTI_SIM_NO_MARK (-1.0) /* as the mark of a flow: there is none */

/* One flow's use of one link, an entry of the link's list. */
struct tutti_sim_use {
    struct tutti_sim_use *next, *previous;
    uint32_t flow, link; /* indices */
    double weight;       /* capacity of the link that each byte of the flow takes */
};

/* An active flow, or an entry that is free for a new flow. */
struct tutti_sim_flow {
    struct tutti_sim_use *uses; /* one for each link of its route */
    uint32_t nuses, capacity;
    uint32_t kind, owner;  /* enum tutti_sim_flow_kind, and the message or step of the flow */
    uint32_t version;      /* grows whenever an event of the flow that is scheduled becomes wrong */
    uint32_t next_free;    /* of a free entry: the next free entry, or TUTTI_SIM_NONE */
    double left;           /* bytes still to go */
    double mark;           /* an event is also due when `left` reaches this; or TUTTI_SIM_NO_MARK */
    double alone, rate;    /* bytes per second: if the flow were alone; now */
    double growth;         /* its rate grows in proportion to this */
    double since_s;        /* the time at which `left` was correct */
    uint32_t region;       /* number of the last change that affected the flow */
    bool is_fixed;         /* its new rate is known (tutti_sim_flows_share) */
    bool is_active;        /* false: the entry is free */
};

struct tutti_sim_flows {
    struct tutti_sim_network *network;
    struct tutti_sim_events *events;
    struct tutti_sim_flow *flows;
    uint32_t nflows, flow_capacity;
    uint32_t first_free; /* head of the list of free entries, or TUTTI_SIM_NONE */
    /* Changes since rates were last computed: the links whose flows have changed, and the new
     * flows, as indices. */
    uint32_t *dirty_links, *fresh;
    uint32_t ndirty, dirty_capacity, nfresh, fresh_capacity;
    /* Scratch: the flows and tight links that one change affects. */
    uint32_t *region, *tight;
    uint32_t nregion, region_capacity, ntight, tight_capacity;
    uint32_t change; /* number of the current change */
};

/* Starts a flow of `bytes` > 0 along a route. The next tutti_sim_flows_share gives it a rate.
 * `mark` and `owner` are as in struct tutti_sim_flow. TUTTI_ERR_SYSTEM: out of memory. */
int tutti_sim_flow_start(struct tutti_sim_flows *flows, const struct tutti_sim_route *route,
                         double bytes, double mark, uint32_t kind, uint32_t owner, double now_s);

/* Handles a flow's event. At its mark the flow continues and *ret_is_over is false. At its end the
 * flow is removed and *ret_is_over is true. */
int tutti_sim_flow_reach(struct tutti_sim_flows *flows, uint32_t flow, double now_s,
                         bool *ret_is_over);

/* Recomputes the rates after changes, and schedules events for the ends and marks of the flows.
 * These events have kind TUTTI_SIM_EVENT_FLOW and the flow as id. Returns TUTTI_ERR_SYSTEM if there
 * is no memory. */
int tutti_sim_flows_share(struct tutti_sim_flows *flows, double now_s);

void tutti_sim_flows_fini(struct tutti_sim_flows *flows);

#endif
