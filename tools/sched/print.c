/* SPDX-License-Identifier: Apache-2.0
 * tutti-sched print: prints the schedules of all ranks as a file, or the steps of one rank as a
 * table for people. */
#include "base/result.h"
#include "common/table.h"
#include "describe/ensemble.h"
#include "sched/commands.h"
#include "sched/team.h"
#include "schedule/access.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: tutti-sched print COLLECTIVE ALGORITHM --ranks N [options]\n"
    "       tutti-sched print SCHEDULE-FILE [options]\n"
    "\n"
    "Prints the schedules of all ranks as a file that can be edited and read again. With --rank\n"
    "it explains the steps of one rank: the chunks that each step moves, their source and\n"
    "destination, and the earlier steps for which it waits. docs/schedule-files.md has the\n"
    "format.\n"
    "\n"
    "  -n, --ranks N            ranks (default: those of the machine)\n"
    "  -r, --rank R             explain this rank\n"
    "      --root R             the root of a rooted collective (default 0)\n"
    "      --option NAME=VALUE  an option of the algorithm; may be repeated\n"
    "  -t, --topo MACHINE       a machine's file, description or name: the places of ranks\n"
    "      --gpu MODEL, --nic RATE, --cpu MODEL  for guesses: b200, 400G, sapphire\n";

/* Writes a span such as "input 0-3". Returns "" if the span is empty. */
static const char *write_span(struct tutti_span span, char *text, size_t size)
{
    if (span.buffer == TUTTI_BUF_NONE || span.count == 0)
        return "";
    if (span.count == 1)
        snprintf(text, size, "%s %u", tutti_buffer_name((enum tutti_buffer)span.buffer),
                 span.first);
    else
        snprintf(text, size, "%s %u-%u", tutti_buffer_name((enum tutti_buffer)span.buffer),
                 span.first, span.first + span.count - 1);
    return text;
}

/* Returns "all", or writes the ranks, such as "0 2 4". A list that is too long ends with dots. */
static const char *write_among(const struct tutti_schedule *schedule,
                               const struct tutti_step *step, char *text, size_t size)
{
    struct tutti_step_ranks among = tutti_step_ranks(schedule, step);
    size_t length = 0;

    if (step->among_count == 0)
        return "all";
    for (uint32_t i = 0; i < among.count; i++) {
        if (length + 16 > size) {
            snprintf(text + length, size - length, "...");
            break;
        }
        length += (size_t)snprintf(text + length, size - length, "%s%u", i == 0 ? "" : " ",
                                   tutti_step_ranks_at(among, i));
    }
    return text;
}

/* Writes the peers of a step, such as "from 1 to 2". */
static void write_peers(const struct tutti_schedule *schedule, const struct tutti_step *step,
                        char *text, size_t size)
{
    char buffer[40];
    const char *all = write_among(schedule, step, buffer, sizeof buffer);

    text[0] = '\0';
    if (step->from == TUTTI_ALL_RANKS)
        snprintf(text, size, "from %s", all);
    else if (step->from >= 0)
        snprintf(text, size, "from %d", step->from);
    if (step->to == TUTTI_ALL_RANKS)
        snprintf(text + strlen(text), size - strlen(text), "%sto %s", *text == '\0' ? "" : " ",
                 all);
    else if (step->to >= 0)
        snprintf(text + strlen(text), size - strlen(text), "%sto %d", *text == '\0' ? "" : " ",
                 step->to);
}

/* Writes the source and the destination of a step's data, such as "input 0 -> output 0". A "+"
 * stands for a reduction. An arrow without a source starts at a received message, and one without a
 * destination ends in a sent message. "its window 0" is memory of the peer, and "all window 0" is
 * memory of all peers. */
static void write_flow(const struct tutti_step *step, char *text, size_t size)
{
    char src[40], dst[40], remote[40], also[40], remote_dst[40];
    const char *from = write_span(step->src, src, sizeof src);
    const char *to = write_span(step->dst, dst, sizeof dst);
    const char *peer = write_span(step->remote, remote, sizeof remote);
    const char *second = write_span(step->also, also, sizeof also);
    const char *peer_to = write_span(step->remote_dst, remote_dst, sizeof remote_dst);

    switch (step->kind) {
    case TUTTI_STEP_SEND: snprintf(text, size, "%s ->", from); return;
    case TUTTI_STEP_RECV: snprintf(text, size, "-> %s", to); return;
    case TUTTI_STEP_RECV_REDUCE: snprintf(text, size, "%s + -> %s", from, to); return;
    case TUTTI_STEP_RECV_COPY_SEND: snprintf(text, size, "-> %s ->", to); return;
    case TUTTI_STEP_RECV_REDUCE_SEND: snprintf(text, size, "%s + ->", from); return;
    case TUTTI_STEP_RECV_REDUCE_COPY_SEND: snprintf(text, size, "%s + -> %s ->", from, to); return;
    case TUTTI_STEP_COPY: snprintf(text, size, "%s -> %s", from, to); return;
    case TUTTI_STEP_REDUCE: snprintf(text, size, "%s + %s -> %s", to, from, to); return;
    case TUTTI_STEP_PUT:
        if (step->to >= 0)
            snprintf(text, size, "%s -> its %s", from, peer);
        else
            snprintf(text, size, "%s -> %s, all %s", from, to, peer);
        return;
    case TUTTI_STEP_GET: snprintf(text, size, "its %s -> %s", peer, to); return;
    case TUTTI_STEP_GATHER_REDUCE:
        if (step->to >= 0)
            snprintf(text, size, "%s + all %s -> its %s", from, peer, peer_to);
        else
            snprintf(text, size, "%s + all %s -> %s%s%s%s%s", from, peer, to, *second ? ", " : "",
                     second, *peer_to ? ", all " : "", peer_to);
        return;
    case TUTTI_STEP_WAIT: snprintf(text, size, "signal %u", step->signal); return;
    default: text[0] = '\0';
    }
}

/* Writes the numbers of the steps for which a step waits, or "-". */
static void write_deps(const struct tutti_schedule *schedule, const struct tutti_step *step,
                       char *text, size_t size)
{
    snprintf(text, size, "%s", step->dep_count == 0 ? "-" : "");
    for (uint32_t i = 0; i < step->dep_count; i++) {
        size_t at = strlen(text);

        if (size - at < 16) {
            snprintf(text + at, size - at, " ...");
            return;
        }
        snprintf(text + at, size - at, "%s%u", i > 0 ? " " : "",
                 schedule->deps[step->dep_first + i]);
    }
}

static void print_rank(const struct tutti_schedule *schedule)
{
    struct table table;
    char text[256];

    printf("rank %u of %u: %u steps, %u chunks in a block, %u scratch, %u window, %u signals\n",
           schedule->rank, schedule->nranks, schedule->nsteps, schedule->chunks_per_block,
           schedule->scratch_chunks, schedule->window_chunks, schedule->nsignals);
    if (schedule->nsteps == 0)
        return;
    table_init(&table, ">STEP|KIND|PEERS|>CHANNEL|CHUNKS|WAITS FOR");
    for (uint32_t i = 0; i < schedule->nsteps; i++) {
        const struct tutti_step *step = &schedule->steps[i];

        table_add(&table, "%u", i);
        table_add(&table, "%s", tutti_step_name((enum tutti_step_kind)step->kind));
        write_peers(schedule, step, text, sizeof text);
        table_add(&table, "%s", text);
        snprintf(text, sizeof text, tutti_step_is_two_sided(step) ? "%u" : "-", step->channel);
        table_add(&table, "%s", text);
        write_flow(step, text, sizeof text);
        table_add(&table, "%s", text);
        write_deps(schedule, step, text, sizeof text);
        table_add(&table, "%s", text);
    }
    table_print(&table, stdout);
    table_fini(&table);
}

/* Prints the schedules of all ranks as a file that the tools can read again. */
static int print_file(const struct request *request, const struct team *team)
{
    char *text;
    int rc = tutti_describe_ensemble(&team->ensemble, &text);

    if (rc != TUTTI_OK)
        return failure(request, rc);
    fputs(text, stdout);
    free(text);
    return EXIT_SUCCESS;
}

static int run(const struct request *request)
{
    struct team team;
    int status = team_create(request, &team);

    if (status != REQUEST_GO)
        return status;
    status = EXIT_SUCCESS;
    if (!request->has_rank) {
        status = print_file(request, &team);
    } else if (request->rank >= team.ensemble.nranks) {
        status = mistake(request, "--rank %u: give a rank from 0 to %u", request->rank,
                         team.ensemble.nranks - 1);
    } else {
        printf("%s\n", team.title);
        print_rank(team.ensemble.schedules[request->rank]);
    }
    team_fini(&team);
    return status;
}

const struct command sched_print = {
    .name = "tutti-sched print",
    .options = "ranks rank root option topo gpu nic cpu",
    .help = help,
    .run = run,
};
