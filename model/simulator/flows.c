/* SPDX-License-Identifier: Apache-2.0
 * Computes max-min fair rates by progressive filling. The rates of all open flows grow together
 * until a link is full, and the flows of this link keep their rates. Rates are recomputed only for
 * the flows that a change can affect. These flows are the region of the change. */
#include "simulator/flows.h"

#include "base/array.h"

#include <math.h>
#include <stdlib.h>

/* Sums of rates have rounding errors. So a link counts as tight only if its demand exceeds its
 * capacity by more than this fraction. */
static const double tolerance = 1e-9;
/* Rates count as equal if their relative difference is at most `same`. Each flow gets at least the
 * fraction `least_part` of the rate that it would have alone. So rounding cannot make a rate 0. */
static const double same = 1e-12, least_part = 1e-12;

static void unlink_use(struct tutti_sim_network_link *link, struct tutti_sim_use *use)
{
    if (use->previous)
        use->previous->next = use->next;
    else
        link->uses = use->next;
    if (use->next)
        use->next->previous = use->previous;
}

static int mark_dirty(struct tutti_sim_flows *flows, uint32_t id)
{
    struct tutti_sim_network_link *link = &flows->network->links[id];

    if (link->is_dirty)
        return TUTTI_OK;
    TUTTI_TRY(TUTTI_ARRAY_ROOM(flows->dirty_links, flows->ndirty, flows->dirty_capacity, "links"));
    flows->dirty_links[flows->ndirty++] = id;
    link->is_dirty = true;
    return TUTTI_OK;
}

static int add_use(struct tutti_sim_flows *flows, uint32_t id, uint32_t at,
                   const struct tutti_sim_crossing *crossing, double now_s)
{
    struct tutti_sim_flow *flow = &flows->flows[id];
    struct tutti_sim_network_link *link = &flows->network->links[crossing->link];
    struct tutti_sim_use *use = &flow->uses[at];

    *use = (struct tutti_sim_use){
        .next = link->uses, .flow = id, .link = crossing->link, .weight = crossing->weight};
    if (link->uses)
        link->uses->previous = use;
    link->uses = use;
    if (link->nuses++ == 0)
        link->busy_since_s = now_s;
    link->demand += flow->alone * use->weight;
    link->bytes += flow->left * crossing->bytes;
    return mark_dirty(flows, crossing->link);
}

static int take_flow(struct tutti_sim_flows *flows, uint32_t *ret_id)
{
    uint32_t id = flows->first_free;

    if (id != TUTTI_SIM_NONE) {
        flows->first_free = flows->flows[id].next_free;
    } else {
        TUTTI_TRY(TUTTI_ARRAY_ROOM(flows->flows, flows->nflows, flows->flow_capacity, "flows"));
        id = flows->nflows++;
        flows->flows[id] = (struct tutti_sim_flow){.version = 0};
    }
    *ret_id = id;
    return TUTTI_OK;
}

int tutti_sim_flow_start(struct tutti_sim_flows *flows, const struct tutti_sim_route *route,
                         double bytes, double mark, uint32_t kind, uint32_t owner, double now_s)
{
    struct tutti_sim_flow *flow;
    uint32_t id;

    TUTTI_TRY(take_flow(flows, &id));
    flow = &flows->flows[id];
    TUTTI_TRY(TUTTI_ARRAY_RESERVE(flow->uses, route->count, flow->capacity, "links of a flow"));
    flow->kind = kind;
    flow->owner = owner;
    flow->version++;
    flow->left = bytes;
    flow->mark = mark;
    flow->alone = route->bytes_per_s;
    flow->growth = route->growth > 0 ? route->growth : flow->alone;
    flow->rate = 0;
    flow->since_s = now_s;
    flow->nuses = route->count;
    flow->is_active = true;
    for (uint32_t i = 0; i < route->count; i++)
        TUTTI_TRY(add_use(flows, id, i, &route->crossings[i], now_s));
    TUTTI_TRY(TUTTI_ARRAY_ROOM(flows->fresh, flows->nfresh, flows->fresh_capacity, "flows"));
    flows->fresh[flows->nfresh++] = id;
    return TUTTI_OK;
}

static int end_flow(struct tutti_sim_flows *flows, uint32_t id, double now_s)
{
    struct tutti_sim_flow *flow = &flows->flows[id];

    for (uint32_t i = 0; i < flow->nuses; i++) {
        struct tutti_sim_use *use = &flow->uses[i];
        struct tutti_sim_network_link *link = &flows->network->links[use->link];

        unlink_use(link, use);
        link->demand -= flow->alone * use->weight;
        if (--link->nuses == 0) {
            link->demand = 0; /* discard rounding errors */
            link->busy_s += now_s - link->busy_since_s;
        }
        TUTTI_TRY(mark_dirty(flows, use->link));
    }
    flow->version++;
    flow->is_active = false;
    flow->next_free = flows->first_free;
    flows->first_free = id;
    return TUTTI_OK;
}

/* Schedules the next event of a flow: that of its mark or, if there is none, of its end. */
static int schedule_next(struct tutti_sim_flows *flows, uint32_t id)
{
    struct tutti_sim_flow *flow = &flows->flows[id];
    double until = flow->mark >= 0 ? flow->mark : 0;

    flow->version++;
    return tutti_sim_events_add(flows->events, flow->since_s + (flow->left - until) / flow->rate,
                                TUTTI_SIM_EVENT_FLOW, id, flow->version);
}

int tutti_sim_flow_reach(struct tutti_sim_flows *flows, uint32_t flow, double now_s,
                         bool *ret_is_over)
{
    struct tutti_sim_flow *at = &flows->flows[flow];

    *ret_is_over = at->mark < 0;
    if (*ret_is_over)
        return end_flow(flows, flow, now_s);
    at->left = at->mark;
    at->mark = TUTTI_SIM_NO_MARK;
    at->since_s = now_s;
    return schedule_next(flows, flow);
}

/* ---- the flows that a change affects ----------------------------------------------- */

static bool is_overbooked(const struct tutti_sim_network_link *link)
{
    return link->demand > link->capacity * (1 + tolerance);
}

static int add_flow_to_region(struct tutti_sim_flows *flows, uint32_t id)
{
    if (flows->flows[id].region == flows->change)
        return TUTTI_OK;
    flows->flows[id].region = flows->change;
    TUTTI_TRY(TUTTI_ARRAY_ROOM(flows->region, flows->nregion, flows->region_capacity, "flows"));
    flows->region[flows->nregion++] = id;
    return TUTTI_OK;
}

/* Adds the flows of a link to the region if the link is, or was, tight. */
static int add_link_to_region(struct tutti_sim_flows *flows, uint32_t id)
{
    struct tutti_sim_network_link *link = &flows->network->links[id];

    if (link->change == flows->change)
        return TUTTI_OK;
    link->change = flows->change;
    link->is_tight = is_overbooked(link);
    if (!link->is_tight && !link->was_tight)
        return TUTTI_OK;
    link->was_tight = link->is_tight;
    if (link->is_tight) {
        TUTTI_TRY(TUTTI_ARRAY_ROOM(flows->tight, flows->ntight, flows->tight_capacity, "links"));
        flows->tight[flows->ntight++] = id;
    }
    for (const struct tutti_sim_use *use = link->uses; use; use = use->next)
        TUTTI_TRY(add_flow_to_region(flows, use->flow));
    return TUTTI_OK;
}

/* Finds the flows that the changes since the last call can affect. These are the new flows, and all
 * flows that share a link which is, or was, tight with a flow of the region. The loop over the
 * region also visits the flows that it adds. */
static int find_region(struct tutti_sim_flows *flows)
{
    flows->change++;
    flows->nregion = 0;
    flows->ntight = 0;
    for (uint32_t i = 0; i < flows->ndirty; i++) {
        flows->network->links[flows->dirty_links[i]].is_dirty = false;
        TUTTI_TRY(add_link_to_region(flows, flows->dirty_links[i]));
    }
    for (uint32_t i = 0; i < flows->nfresh; i++)
        if (flows->flows[flows->fresh[i]].is_active)
            TUTTI_TRY(add_flow_to_region(flows, flows->fresh[i]));
    for (uint32_t i = 0; i < flows->nregion; i++) {
        const struct tutti_sim_flow *flow = &flows->flows[flows->region[i]];

        for (uint32_t u = 0; u < flow->nuses; u++)
            TUTTI_TRY(add_link_to_region(flows, flow->uses[u].link));
    }
    flows->ndirty = 0;
    flows->nfresh = 0;
    return TUTTI_OK;
}

/* ---- filling ------------------------------------------------------------------------- */

/* Gives a flow `part` of its growth, but at most the rate that it would have alone. The flow is no
 * longer open: its rate is subtracted from the spare capacity of its links. */
static int fix_rate(struct tutti_sim_flows *flows, uint32_t id, double part, double now_s)
{
    struct tutti_sim_flow *flow = &flows->flows[id];
    double rate = fmin(part * flow->growth, flow->alone);

    flow->is_fixed = true;
    for (uint32_t u = 0; u < flow->nuses; u++) {
        struct tutti_sim_network_link *link = &flows->network->links[flow->uses[u].link];

        if (!link->is_tight)
            continue;
        link->spare -= rate * flow->uses[u].weight;
        link->wanted -= flow->growth * flow->uses[u].weight;
        link->nopen--;
    }
    if (fabs(rate - flow->rate) <= same * rate)
        return TUTTI_OK;
    flow->left -= flow->rate * (now_s - flow->since_s);
    if (flow->left < 0)
        flow->left = 0;
    flow->since_s = now_s;
    flow->rate = rate;
    return schedule_next(flows, id);
}

/* Makes all flows of the region open, and gives the tight links their whole capacity to
 * distribute. */
static void open_flows(struct tutti_sim_flows *flows)
{
    for (uint32_t i = 0; i < flows->ntight; i++) {
        struct tutti_sim_network_link *link = &flows->network->links[flows->tight[i]];

        link->spare = link->capacity;
        link->wanted = 0;
        link->nopen = link->nuses;
        for (const struct tutti_sim_use *use = link->uses; use; use = use->next)
            link->wanted += flows->flows[use->flow].growth * use->weight;
    }
    for (uint32_t i = 0; i < flows->nregion; i++)
        flows->flows[flows->region[i]].is_fixed = false;
}

/* Returns the part of their growth to which open flows can grow before one of them has the rate
 * that it would have alone. Without paths, all flows reach that at the same time, at 1. INFINITY:
 * there are no open flows. */
static double find_least_end(const struct tutti_sim_flows *flows)
{
    double part = INFINITY;

    for (uint32_t i = 0; i < flows->nregion; i++) {
        const struct tutti_sim_flow *flow = &flows->flows[flows->region[i]];

        if (flow->is_fixed)
            continue;
        if (flows->network->path_links == TUTTI_SIM_NONE)
            return 1;
        part = fmin(part, flow->alone / flow->growth);
    }
    return part;
}

/* Fixes the rates of the open flows that reach the rate that they would have alone. */
static int end_growth(struct tutti_sim_flows *flows, double part, double now_s)
{
    for (uint32_t i = 0; i < flows->nregion; i++) {
        const struct tutti_sim_flow *flow = &flows->flows[flows->region[i]];

        if (!flow->is_fixed && flow->alone <= part * flow->growth * (1 + same))
            TUTTI_TRY(fix_rate(flows, flows->region[i], INFINITY, now_s));
    }
    return TUTTI_OK;
}

/* Returns the part of their growth to which all open flows can grow before the first link is full.
 * `end` means that no link is full before that. */
static double find_growth(const struct tutti_sim_flows *flows, double end)
{
    double part = end;

    for (uint32_t i = 0; i < flows->ntight; i++) {
        const struct tutti_sim_network_link *link = &flows->network->links[flows->tight[i]];

        if (link->nopen > 0 && link->spare < part * link->wanted)
            part = link->spare / link->wanted;
    }
    return part > least_part ? part : least_part;
}

/* Fixes the rates of the open flows on the links that are full when all open flows have grown to
 * `part`. */
static int fill_links(struct tutti_sim_flows *flows, double part, double now_s)
{
    for (uint32_t i = 0; i < flows->ntight; i++) {
        const struct tutti_sim_network_link *link = &flows->network->links[flows->tight[i]];

        if (link->nopen == 0 || link->spare > part * link->wanted * (1 + same))
            continue;
        for (const struct tutti_sim_use *use = link->uses; use; use = use->next)
            if (!flows->flows[use->flow].is_fixed)
                TUTTI_TRY(fix_rate(flows, use->flow, part, now_s));
    }
    return TUTTI_OK;
}

int tutti_sim_flows_share(struct tutti_sim_flows *flows, double now_s)
{
    TUTTI_TRY(find_region(flows));
    open_flows(flows);
    for (double end = find_least_end(flows); isfinite(end); end = find_least_end(flows)) {
        double part;

        for (part = find_growth(flows, end); part < end; part = find_growth(flows, end))
            TUTTI_TRY(fill_links(flows, part, now_s));
        TUTTI_TRY(end_growth(flows, end, now_s));
    }
    return TUTTI_OK;
}

void tutti_sim_flows_fini(struct tutti_sim_flows *flows)
{
    for (uint32_t i = 0; i < flows->nflows; i++)
        free(flows->flows[i].uses);
    free(flows->flows);
    free(flows->dirty_links);
    free(flows->fresh);
    free(flows->region);
    free(flows->tight);
    *flows = (struct tutti_sim_flows){.nflows = 0};
}
