/* SPDX-License-Identifier: Apache-2.0
 * Flows: bytes on their way over links that they share.
 *
 * Rates are max-min fair: all flows grow alike, in proportion to what each would have alone, until
 * a link is full; those that cross it stay as they are, the others grow on. Flows on links that are
 * not wanted by more than they can serve have what they would have alone, and nobody else cares. So
 * a change is felt only along links that are, or were, overbooked.
 *
 *   a  ====1====                 links 1 and 2 carry 12 each, every flow 12 alone:
 *   b  ====1==========2====      link 2 is full when b, c and d have 4;
 *   c            =====2====      a goes on and takes what is left of link 1: 8
 *   d            =====2====
 */
#ifndef TUTTI_SIMULATOR_FLOWS_H
#define TUTTI_SIMULATOR_FLOWS_H

#include "simulator/events.h"
#include "simulator/network.h"

/* One flow on one link, in the link's list. */
struct sim_use {
    struct sim_use *next, *previous;
    uint32_t flow, link;
    double weight;
};

struct sim_flow {
    struct sim_use *uses;
    uint32_t nuses, capacity;
    uint32_t kind, owner;  /* whose it is: play.h */
    uint32_t version;
    uint32_t next_free;
    double left;           /* bytes */
    double mark;           /* an event is due when so many are left, too; less than 0: none */
    double alone, rate;    /* bytes per second */
    double since_s;        /* when `left` was right */
    uint32_t region;
    bool is_fixed, is_active;
};

struct sim_flows {
    struct sim_network *network;
    struct sim_events *events;
    struct sim_flow *flows;
    uint32_t nflows, flow_capacity, free;
    /* What has changed since rates were right. */
    uint32_t *dirty_links, *fresh;
    uint32_t ndirty, dirty_capacity, nfresh, fresh_capacity;
    /* Scratch: the flows and overbooked links of one change. */
    uint32_t *region, *tight;
    uint32_t nregion, region_capacity, ntight, tight_capacity;
    uint32_t number; /* of the change */
};

/* Start a flow along a route: bytes > 0. It moves after the next share. */
int tutti_sim_flow_start(struct sim_flows *flows, const struct sim_route *route, double bytes,
                         double mark, uint32_t kind, uint32_t owner, double now_s);

/* The flow's event has come: its mark, or else its end, and then it is no more. */
int tutti_sim_flow_reach(struct sim_flows *flows, uint32_t flow, double now_s, bool *ret_is_over);

/* Make the rates right, and foresee ends and marks: events of kind 0 with the flow as id. */
int tutti_sim_flows_share(struct sim_flows *flows, double now_s);

void tutti_sim_flows_fini(struct sim_flows *flows);

#endif
