/* SPDX-License-Identifier: Apache-2.0
 * Runs the searches that a command asks for, and describes their results. */
#include "topo/plans.h"

#include "base/result.h"
#include "common/memory.h"
#include "common/topo_machine.h"
#include "common/topo_remarks.h"
#include "common/units.h"

#include <math.h>
#include <string.h>

/* ---- wishes ---------------------------------------------------------------------------------- */

static int read_pattern(const struct request *request, const char *usual, struct wish *wish)
{
    const char *name = request->pattern == NULL ? usual : request->pattern;
    bool is_all = strcmp(name, "all") == 0, is_known = is_all;

    for (int i = 0; i < TUTTI_PATTERN_COUNT; i++) {
        wish->has_pattern[i] = is_all || strcmp(name, tutti_pattern_name(i)) == 0;
        is_known = is_known || wish->has_pattern[i];
    }
    return is_known ? REQUEST_GO
                    : mistake(request, "--pattern %s: give ring, tree, broadcast or all", name);
}

static int by_number(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Reads one item of --gpus, such as "4" or "0-3". Changes the text of the item. */
static int add_gpus(const struct request *request, const struct subject *subject, char *item,
                    struct wish *wish)
{
    uint32_t ngpus = subject->graph->count[TUTTI_NODE_GPU];
    char *dash = strchr(item, '-');
    uint64_t first, last;
    bool is_valid;

    if (dash != NULL)
        *dash = '\0';
    is_valid = units_read_count(item, 0, UINT32_MAX, &first);
    last = first;
    if (is_valid && dash != NULL)
        is_valid = units_read_count(dash + 1, first, UINT32_MAX, &last);
    if (!is_valid)
        return mistake(request, "--gpus %s: give numbers such as 0,1,4 or 0-3", request->gpus);
    if (last >= ngpus)
        return mistake(request, "--gpus %s: there is no gpu %llu; %s has %u, numbered from 0",
                       request->gpus, (unsigned long long)last, subject->name, ngpus);
    for (uint64_t gpu = first; gpu <= last; gpu++) {
        if (wish->ngpus == ngpus)
            return mistake(request, "--gpus %s: some gpu is listed twice; give each once",
                           request->gpus);
        wish->gpus[wish->ngpus++] = (uint32_t)gpu;
    }
    return REQUEST_GO;
}

/* Sorts the gpus, finds their host, and reports gpus that are listed twice or of several hosts. */
static int check_gpus(const struct request *request, const struct subject *subject,
                      struct wish *wish)
{
    qsort(wish->gpus, wish->ngpus, sizeof *wish->gpus, by_number);
    wish->host = subject->graph->nodes[tutti_graph_gpu(subject->graph, wish->gpus[0])].host;
    for (uint32_t i = 1; i < wish->ngpus; i++) {
        uint32_t node = tutti_graph_gpu(subject->graph, wish->gpus[i]);

        if (wish->gpus[i] == wish->gpus[i - 1])
            return mistake(request, "--gpus %s: gpu %u is listed twice; give each once",
                           request->gpus, wish->gpus[i]);
        if (subject->graph->nodes[node].host != wish->host)
            return mistake(request,
                           "--gpus %s: gpu %u is in host %u, gpu %u in host %u; give gpus "
                           "of one host",
                           request->gpus, wish->gpus[0], wish->host, wish->gpus[i],
                           subject->graph->nodes[node].host);
    }
    return REQUEST_GO;
}

static int read_gpus(const struct request *request, const struct subject *subject,
                     struct wish *wish)
{
    char *copy = must_have(strdup(request->gpus)), *rest = copy, *item;
    int status = REQUEST_GO;

    wish->gpus = must_calloc(subject->graph->count[TUTTI_NODE_GPU], sizeof *wish->gpus);
    while (status == REQUEST_GO && (item = strsep(&rest, ",")) != NULL)
        status = add_gpus(request, subject, item, wish);
    if (status == REQUEST_GO)
        status = check_gpus(request, subject, wish);
    free(copy);
    return status;
}

int wish_read(const struct request *request, const struct subject *subject, const char *usual,
              struct wish *ret_wish)
{
    bool has_others = subject->graph->nhosts > 1 && !tutti_graph_is_one_domain(&subject->parts);
    struct wish wish = {.has_peers = request->has_peers || has_others,
                        .may_cross = request->may_cross, .nchannels = request->nchannels};
    int status = read_pattern(request, usual, &wish);

    if (status == REQUEST_GO && request->may_cross && !wish.has_peers)
        status = mistake(request, "--cross: channels do not leave the host; add --peers");
    if (subject->graph->count[TUTTI_NODE_GPU] > 0)
        wish.host = subject->graph->nodes[tutti_graph_gpu(subject->graph, 0)].host;
    if (status == REQUEST_GO && request->gpus != NULL)
        status = read_gpus(request, subject, &wish);
    if (status != REQUEST_GO) {
        wish_fini(&wish);
        return status;
    }
    *ret_wish = wish;
    return REQUEST_GO;
}

void wish_fini(struct wish *wish)
{
    free(wish->gpus);
    *wish = (struct wish){.ngpus = 0};
}

bool wish_has_host(const struct wish *wish, const struct subject *subject, uint32_t host)
{
    uint32_t ngpus;

    if (wish->gpus != NULL)
        return wish->host == host;
    subject_first(subject, host, TUTTI_NODE_GPU, &ngpus);
    return ngpus > 0;
}

/* Returns the number of like parts of the cluster, or 0, which stands for many, if the other hosts
 * are not described or only some gpus take part. */
static uint32_t parts_of(const struct subject *subject, const struct wish *wish)
{
    return wish->gpus == NULL && subject->parts.nall > 1 ? subject->parts.nall : 0;
}

int plans_search(const struct subject *subject, const struct wish *wish, uint32_t host,
                 enum tutti_pattern pattern, struct tutti_channels **ret_plan)
{
    const struct tutti_search_options options = {
        .host = host, .nhosts = wish->gpus == NULL ? subject_planned_hosts(subject, host) : 1,
        .gpus = wish->gpus, .ngpus = wish->ngpus, .may_cross = wish->may_cross,
        /* A search of all hosts together leaves no other hosts. */
        .has_peers = wish->has_peers && host != TUTTI_ALL_HOSTS, .nchannels = wish->nchannels,
        .nparts = parts_of(subject, wish), .for_rate_only = wish->for_rate_only,
    };

    return tutti_search(subject->paths, pattern, &options, ret_plan);
}

/* ---- hosts ----------------------------------------------------------------------------------- */

/* Returns the part of a host. */
static const struct tutti_graph_part *part_of(const struct subject *subject, uint32_t host)
{
    return &subject->parts.part[tutti_graph_part_of_host(&subject->parts, host)];
}

/* Returns true if a host is planned together with others. */
static bool is_planned_together(const struct subject *subject, uint32_t host)
{
    return subject_planned_hosts(subject, part_of(subject, host)->first_host) > 1;
}

/* Returns true if a host is planned together with a host before it. */
static bool is_planned_before(const struct subject *subject, uint32_t host)
{
    return is_planned_together(subject, host) && part_of(subject, host)->first_host < host;
}

/* Prints lines such as "host 1 as host 0" or "hosts 1-17 as host 0". These hosts have the same gpus
 * and links, so they have the same rings and trees. */
static void print_alike(const struct subject *subject, const struct wish *wish)
{
    uint32_t nhosts = subject->graph->nhosts, last;

    for (uint32_t host = 1; host < nhosts && wish->gpus == NULL; host = last + 1) {
        uint32_t alike = subject_first_alike(subject, host);

        last = host;
        if (is_planned_together(subject, host))
            continue;
        if (alike == host || !wish_has_host(wish, subject, host))
            continue;
        while (last + 1 < nhosts && subject_first_alike(subject, last + 1) == alike)
            last++;
        if (last == host)
            printf("host %u as host %u, with its own gpus and nets\n", host, alike);
        else
            printf("hosts %u-%u as host %u, each with its own gpus and nets\n", host, last, alike);
    }
}

/* Runs the selected searches on one host, or on all hosts together. */
static int visit_host(const struct request *request, const struct subject *subject,
                      const struct wish *wish, uint32_t host, plans_visit_fn *visit)
{
    int status = REQUEST_GO;

    for (int pattern = 0; pattern < TUTTI_PATTERN_COUNT && status == REQUEST_GO; pattern++) {
        struct tutti_channels *plan;
        int rc;

        if (!wish->has_pattern[pattern])
            continue;
        rc = plans_search(subject, wish, host, (enum tutti_pattern)pattern, &plan);
        if (rc != TUTTI_OK)
            return failure(request, rc);
        status = visit(request, subject, wish, host, plan);
        tutti_channels_destroy(plan);
    }
    return status;
}

/* Runs the selected searches on all selected hosts. Returns the exit status. */
static int visit_hosts(const struct request *request, const struct subject *subject,
                       const struct wish *wish, plans_visit_fn *visit)
{
    int status = REQUEST_GO;
    bool has_some = false;

    if (wish->gpus == NULL && tutti_graph_is_one_domain(&subject->parts)) {
        has_some = true;
        status = visit_host(request, subject, wish, TUTTI_ALL_HOSTS, visit);
    }
    for (uint32_t host = 0; host < subject->graph->nhosts && status == REQUEST_GO; host++) {
        if (!wish_has_host(wish, subject, host) ||
            (wish->gpus == NULL && is_planned_before(subject, host)))
            continue;
        has_some = true;
        if (wish->gpus != NULL || subject_first_alike(subject, host) == host)
            status = visit_host(request, subject, wish, host, visit);
    }
    if (!has_some)
        return mistake(request, "%s has no gpus, so there are no rings and trees of them; give "
                       "another machine with --from", subject->name);
    if (status == REQUEST_GO)
        print_alike(subject, wish);
    if (status == REQUEST_GO)
        subject_print_copies(subject);
    return status == REQUEST_GO ? EXIT_SUCCESS : status;
}

int plans_run(const struct request *request, const char *usual, plans_visit_fn *visit)
{
    struct subject subject;
    struct wish wish;
    int status;

    if (request->nwords > 0)
        return mistake(request, "\"%s\" is one word too many; see %s --help", request->words[0],
                       request->command);
    status = subject_open(request, true, &subject);
    if (status != REQUEST_GO)
        return status;
    status = wish_read(request, &subject, usual, &wish);
    if (status == REQUEST_GO) {
        status = visit_hosts(request, &subject, &wish, visit);
        if (status == EXIT_SUCCESS)
            topo_remarks_print(subject.graph, stdout);
        wish_fini(&wish);
    }
    subject_close(&subject);
    return status;
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* Returns true if two channels of a plan have the same order. */
static bool is_same(const struct tutti_channels *plan, const struct tutti_channel *a,
                    const struct tutti_channel *b)
{
    return a->net_in == b->net_in && a->net_out == b->net_out &&
           memcmp(a->gpu, b->gpu, plan->ngpus * sizeof *a->gpu) == 0;
}

uint32_t plans_orders(const struct tutti_channels *plan, struct order *ret_orders)
{
    uint32_t count = 0;

    for (uint32_t c = 0; c < plan->nchannels; c++) {
        uint32_t at = 0;

        while (at < count && !is_same(plan, ret_orders[at].channel, &plan->channel[c]))
            at++;
        if (at == count)
            ret_orders[count++] = (struct order){.channel = &plan->channel[c]};
        ret_orders[at].count++;
    }
    return count;
}

uint32_t plans_root(const struct tutti_channels *plan, const struct tutti_channel *channel)
{
    uint32_t root = 0;

    while (root + 1 < plan->ngpus && channel->gpu[root] != TUTTI_NO_NODE)
        root++;
    return root;
}

/* Writes the tree below a gpu, such as "0(1 2(3))". */
static void write_tree(FILE *out, const struct tutti_channels *plan,
                       const struct tutti_channel *channel, uint32_t at)
{
    bool has_child = false;

    fprintf(out, "%u", plan->gpus[at]);
    for (uint32_t i = 0; i < plan->ngpus; i++) {
        if (channel->gpu[i] != at)
            continue;
        fputc(has_child ? ' ' : '(', out);
        has_child = true;
        write_tree(out, plan, channel, i);
    }
    if (has_child)
        fputc(')', out);
}

char *plans_order_text(const struct tutti_channels *plan, const struct tutti_channel *channel)
{
    char *text = NULL;
    size_t size;
    FILE *out = must_have(open_memstream(&text, &size));

    if (plan->pattern == TUTTI_PATTERN_RING)
        for (uint32_t i = 0; i < plan->ngpus; i++)
            fprintf(out, "%s%u", i > 0 ? " " : "", plan->gpus[channel->gpu[i]]);
    else
        write_tree(out, plan, channel, plans_root(plan, channel));
    if (fclose(out) != 0)
        must_have(NULL);
    return text;
}

/* ---- load ------------------------------------------------------------------------------------ */

/* Adds traffic from one node to another to the load of the links on their path. */
static void load_path(const struct subject *subject, uint32_t from, uint32_t to, double bytes_per_s,
                      double *load)
{
    const struct tutti_path *path = tutti_paths_between(subject->paths, from, to);

    for (uint32_t i = 0; i < path->nhops; i++) {
        const struct tutti_hop *hop = &subject->paths->hop[path->first + i];

        load[hop->link] += hop->demand * bytes_per_s;
    }
}

/* Adds a channel's traffic from and to its nets. A tree that is used in both directions counts as
 * often as the search counts it. */
static void load_nets(const struct subject *subject, const struct tutti_channels *plan,
                      const struct tutti_channel *channel, uint32_t first, uint32_t last,
                      double *load)
{
    double rate = plan->channel_bytes_per_s *
                  (plan->pattern == TUTTI_PATTERN_TREE ? plan->joint_load : 1);

    load_path(subject, tutti_graph_net(subject->graph, channel->net_in), first, rate, load);
    load_path(subject, last, tutti_graph_net(subject->graph, channel->net_out), rate, load);
}

static void load_channel(const struct subject *subject, const struct tutti_channels *plan,
                         const struct tutti_channel *channel, double *load)
{
    bool has_nets = channel->net_in != TUTTI_NO_NODE, is_ring = plan->pattern == TUTTI_PATTERN_RING;
    uint32_t n = plan->ngpus, root = is_ring ? 0 : plans_root(plan, channel);
    uint32_t *node = must_calloc(n, sizeof *node);
    double rate = plan->channel_bytes_per_s;

    for (uint32_t i = 0; i < n; i++)
        node[i] = tutti_graph_gpu(subject->graph, plan->gpus[i]);
    for (uint32_t i = 0; i < n; i++) {
        if (is_ring && (i + 1 < n || (!has_nets && n > 1))) {
            load_path(subject, node[channel->gpu[i]], node[channel->gpu[(i + 1) % n]], rate, load);
        } else if (!is_ring && i != root) {
            load_path(subject, node[channel->gpu[i]], node[i], rate, load);
            if (plan->pattern == TUTTI_PATTERN_TREE)
                load_path(subject, node[i], node[channel->gpu[i]], rate, load);
        }
    }
    if (has_nets)
        load_nets(subject, plan, channel, node[is_ring ? channel->gpu[0] : root],
                  node[is_ring ? channel->gpu[n - 1] : root], load);
    free(node);
}

double *plans_load(const struct subject *subject, const struct tutti_channels *plan)
{
    double *load = must_calloc(subject->graph->nlinks, sizeof *load);

    for (uint32_t c = 0; c < plan->nchannels && isfinite(plan->channel_bytes_per_s); c++)
        load_channel(subject, plan, &plan->channel[c], load);
    return load;
}

/* ---- texts ----------------------------------------------------------------------------------- */

const char *plans_rate(double bytes_per_s, char text[NAME_BYTES])
{
    char rate[UNITS_TEXT];

    snprintf(text, NAME_BYTES, "%s",
             isfinite(bytes_per_s) ? units_rate(bytes_per_s, rate) : "any rate");
    return text;
}

const char *plans_pattern_name(enum tutti_pattern pattern)
{
    static const char *const names[TUTTI_PATTERN_COUNT] = {"ring", "tree", "broadcast tree"};

    return names[pattern];
}
