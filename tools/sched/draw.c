/* SPDX-License-Identifier: Apache-2.0
 * tutti-sched draw: draws a schedule in space and time. Ranks are rows, rounds are columns, and
 * messages are arrows from row to row.
 */
#include "draw/colors.h"
#include "draw/svg.h"
#include "common/memory.h"
#include "common/units.h"
#include "sched/commands.h"
#include "sched/rounds.h"
#include "sched/team.h"

#include <math.h>

#define DRAWN_RANKS 64 /* most ranks in a picture */
#define FAN_RANKS   8  /* most ranks for which lines show what a gather-reduce reads */

/* Pixels. LEFT and TOP are the corner of the grid of ranks and rounds. */
#define LEFT 76.0
#define TOP 108.0
#define MARGIN 24.0
#define SMALL_ROW    26 /* rows below this height have smaller text and thinner lines */
#define SMALL_COLUMN 26 /* columns below this width have a number only at every fifth */

static const char help[] =
    "usage: tutti-sched draw COLLECTIVE ALGORITHM --ranks N [options] -o FILE.svg\n"
    "       tutti-sched draw SCHEDULE-FILE -o FILE.svg\n"
    "\n"
    "Draws all messages: ranks are rows, and rounds are columns. In a round a rank sends one\n"
    "message and receives one. The numbers are chunks. The picture is readable up to about 32\n"
    "ranks; the limit is 64.\n"
    "\n"
    "  -n, --ranks N            ranks (default: those of the machine)\n"
    "      --root R             the root of a rooted collective (default 0)\n"
    "      --option NAME=VALUE  an option of the algorithm; may be repeated\n"
    "  -t, --topo MACHINE       a machine's file, description or name: the places of ranks\n"
    "      --gpu MODEL, --nic RATE, --cpu MODEL  for guesses: b200, 400G, sapphire\n"
    "  -o, --output FILE        the picture\n";

/* What the parts of a picture share while it is being drawn. */
struct scene {
    const struct team *team;
    const struct rounds *rounds;
    struct svg svg;
    double row, column; /* height of a row, and width of a column, in pixels */
};

/* ---- looks ----------------------------------------------------------------------------------- */

/* The kinds of events that the picture and its legend distinguish. The kinds up to LOOK_GET are
 * arrows between ranks. */

enum look { LOOK_MOVED, LOOK_REDUCED, LOOK_PUT, LOOK_GET, LOOK_GATHERED, LOOK_COPY, LOOK_REDUCE,
            LOOK_SIGNAL, LOOK_WAIT, LOOKS };

static const struct {
    const char *name, *color;
} looks[LOOKS] = {
    [LOOK_MOVED] = {"sent and stored", COLOR_BLUE},
    [LOOK_REDUCED] = {"sent and reduced", COLOR_VERMILION},
    [LOOK_PUT] = {"put", COLOR_GREEN},
    [LOOK_GET] = {"get", COLOR_SKY},
    [LOOK_GATHERED] = {"gather-reduce", COLOR_VERMILION},
    [LOOK_COPY] = {"copy", COLOR_GRAY},
    [LOOK_REDUCE] = {"local reduce", COLOR_ORANGE},
    [LOOK_SIGNAL] = {"signal", COLOR_PURPLE},
    [LOOK_WAIT] = {"wait", COLOR_PURPLE},
};

static enum look look_of(const struct event *event)
{
    switch (event->kind) {
    case TUTTI_STEP_RECV_REDUCE:
    case TUTTI_STEP_RECV_REDUCE_SEND:
    case TUTTI_STEP_RECV_REDUCE_COPY_SEND: return LOOK_REDUCED;
    case TUTTI_STEP_COPY: return LOOK_COPY;
    case TUTTI_STEP_REDUCE: return LOOK_REDUCE;
    case TUTTI_STEP_PUT: return LOOK_PUT;
    case TUTTI_STEP_GET: return LOOK_GET;
    case TUTTI_STEP_GATHER_REDUCE: return LOOK_GATHERED;
    case TUTTI_STEP_SIGNAL: return LOOK_SIGNAL;
    case TUTTI_STEP_WAIT: return LOOK_WAIT;
    default: return LOOK_MOVED;
    }
}

static bool is_arrow(const struct event *event)
{
    return event->from != event->to && event->kind != TUTTI_STEP_WAIT;
}

static double x_of(const struct scene *scene, uint32_t round)
{
    return LEFT + round * scene->column;
}

static double y_of(const struct scene *scene, uint32_t rank)
{
    return TOP + (rank + 0.5) * scene->row;
}

/* ---- parts of the picture -------------------------------------------------------------------- */

/* Draws a row for each rank and a column for each round, with their numbers. */
static void draw_grid(struct scene *scene)
{
    uint32_t n = scene->team->ensemble.nranks, nrounds = scene->rounds->nrounds;
    double right = x_of(scene, nrounds), bottom = TOP + n * scene->row;
    struct svg_font small = {.size = 11, .color = COLOR_SOFT, .anchor = SVG_MIDDLE};
    struct svg_font rank = {.size = 12, .color = COLOR_INK, .anchor = SVG_RIGHT};
    uint32_t stride = scene->column < SMALL_COLUMN ? 5 : 1;

    for (uint32_t round = 0; round < nrounds; round += 2)
        svg_rect(&scene->svg, x_of(scene, round), TOP, scene->column, bottom - TOP, "#f5f6f8",
                 (struct svg_stroke){.color = NULL});
    for (uint32_t i = 0; i < n; i++) {
        svg_line(&scene->svg, LEFT, y_of(scene, i), right, y_of(scene, i),
                 (struct svg_stroke){.color = COLOR_RULE, .width = 1});
        svg_text(&scene->svg, LEFT - 12, y_of(scene, i) + 4, rank, "%s%u", i == 0 ? "rank " : "",
                 i);
    }
    for (uint32_t round = 0; round < nrounds; round += stride)
        svg_text(&scene->svg, x_of(scene, round) + scene->column / 2, TOP - 7, small, "%s%u",
                 round == 0 && scene->column > 50 ? "round " : "", round + 1);
}

/* Writes the numbers of the chunks, such as "3" or "0-3". Writes "4-5,0" if the chunks wrap around
 * the end of a buffer. */
static void write_chunks(const struct event *event, char *text, size_t size)
{
    size_t at = (size_t)snprintf(text, size, "%u", event->span.first);

    if (event->span.count == 0)
        text[at = 0] = '\0';
    if (event->span.count > 1)
        at += (size_t)snprintf(text + at, size - at, "–%u",
                               event->span.first + event->span.count - 1);
    if (event->wrapped > 0)
        at += (size_t)snprintf(text + at, size - at, ",0");
    if (event->wrapped > 1)
        snprintf(text + at, size - at, "–%u", event->wrapped - 1);
}

/* Writes the chunks beside the sender, on the side where the arrow does not run. */
static void draw_chunks(struct scene *scene, const struct event *event)
{
    struct svg_font font = {
        .size = scene->row < SMALL_ROW ? 9 : 10.5, .color = COLOR_INK, .has_halo = true};
    double y = y_of(scene, event->from) + (event->to > event->from ? -4 : font.size + 1);
    char text[64];

    write_chunks(event, text, sizeof text);
    if (svg_text_width(text, font.size) < scene->column - 12)
        svg_text(&scene->svg, x_of(scene, event->begin) + 9, y, font, "%s", text);
}

static void draw_arrow(struct scene *scene, const struct event *event)
{
    struct svg_stroke stroke = {
        .color = looks[look_of(event)].color,
        .width = scene->row < SMALL_ROW ? 1.3 : 1.7,
        .dash = dashes[event->channel % DASHES],
    };
    double inset = scene->column < 40 ? 3 : 6;
    double x1 = x_of(scene, event->begin) + inset, x2 = x_of(scene, event->end) - inset / 2;

    svg_circle(&scene->svg, x1, y_of(scene, event->from), 2.5, stroke.color,
               (struct svg_stroke){.color = NULL});
    svg_arrow(&scene->svg, x1, y_of(scene, event->from), x2, y_of(scene, event->to), stroke);
}

/* Draws a local step that takes time, or a step that reads many ranks at once, as a box. If there
 * are few ranks, thin lines show from which ranks the step reads. */
static void draw_box(struct scene *scene, const struct event *event)
{
    struct svg_stroke thin = {.color = looks[look_of(event)].color, .width = 0.7, .dash = "2 3"};
    double y = y_of(scene, event->to), height = fmin(scene->row * 0.6, 18);
    double left = x_of(scene, event->begin) + scene->column * 0.35;
    double width = scene->column * 0.6;
    struct svg_font font = {.size = 10.5, .color = COLOR_PAPER, .anchor = SVG_MIDDLE};
    bool has_fan =
        event->kind == TUTTI_STEP_GATHER_REDUCE && scene->team->ensemble.nranks <= FAN_RANKS;
    char chunks[64];

    for (uint32_t i = 0; has_fan && i < event->among.count; i++)
        if (tutti_step_ranks_at(event->among, i) != event->to)
            svg_line(&scene->svg, x_of(scene, event->begin) + 4,
                     y_of(scene, tutti_step_ranks_at(event->among, i)), left, y, thin);
    svg_rect(&scene->svg, left, y - height / 2, width, height, thin.color,
             (struct svg_stroke){.color = NULL});
    write_chunks(event, chunks, sizeof chunks);
    if (height >= 14 && svg_text_width(chunks, font.size) < width - 20)
        svg_text(&scene->svg, left + width / 2, y + 4, font, "%s%s",
                 event->kind == TUTTI_STEP_GATHER_REDUCE ? "Σ " : "", chunks);
}

/* Draws a local step that takes no time as a small shape. */
static void draw_mark(struct scene *scene, const struct event *event)
{
    const char *color = looks[look_of(event)].color;
    double x = x_of(scene, event->begin), y = y_of(scene, event->to);
    struct svg_stroke none = {.color = NULL};

    switch (look_of(event)) {
    case LOOK_SIGNAL:
        svg_circle(&scene->svg, x, y, 4, color, none);
        break;
    case LOOK_WAIT:
        svg_circle(&scene->svg, x, y, 6, NULL, (struct svg_stroke){.color = color, .width = 1.5});
        break;
    default:
        svg_rect(&scene->svg, x - 3.5, y - 3.5, 7, 7, color,
                 (struct svg_stroke){.color = COLOR_PAPER, .width = 1});
    }
}

/* ---- the legend ------------------------------------------------------------------------------ */

/* Draws an entry of the legend at (x, y). Returns the x at which the next one starts. */
static double draw_key(struct scene *scene, enum look look, double x, double y, bool is_message)
{
    struct svg_font font = {.size = 12, .color = COLOR_SOFT};
    struct svg_stroke stroke = {.color = looks[look].color, .width = 1.7};
    struct svg_stroke none = {.color = NULL};

    if (is_message)
        svg_arrow(&scene->svg, x, y, x + 24, y, stroke);
    else if (look == LOOK_SIGNAL)
        svg_circle(&scene->svg, x + 14, y, 4, stroke.color, none);
    else if (look == LOOK_WAIT)
        svg_circle(&scene->svg, x + 14, y, 6, NULL, stroke);
    else
        svg_rect(&scene->svg, x + 8, y - 4, look == LOOK_GATHERED ? 16 : 8, 8, stroke.color, none);
    svg_text(&scene->svg, x + 30, y + 4, font, "%s", looks[look].name);
    return x + 30 + svg_text_width(looks[look].name, 12) + 20;
}

static void draw_legend(struct scene *scene, double x, double y)
{
    bool is_there[LOOKS] = {false};
    uint32_t nchannels = 1;

    for (size_t i = 0; i < scene->rounds->nevents; i++) {
        is_there[look_of(&scene->rounds->events[i])] = true;
        if (scene->rounds->events[i].channel >= nchannels)
            nchannels = scene->rounds->events[i].channel + 1;
    }
    for (int look = 0; look < LOOKS; look++)
        if (is_there[look])
            x = draw_key(scene, (enum look)look, x, y, look <= LOOK_GET);
    for (uint32_t channel = 0; nchannels > 1 && channel < nchannels && channel < DASHES;
         channel++) {
        struct svg_stroke stroke = {COLOR_INK, 1.5, dashes[channel]};

        svg_line(&scene->svg, x, y, x + 26, y, stroke);
        svg_text(&scene->svg, x + 32, y + 4, (struct svg_font){.size = 12, .color = COLOR_SOFT},
                 "channel %u", channel);
        x += 110;
    }
}

/* ---- the picture ----------------------------------------------------------------------------- */

static void draw_events(struct scene *scene)
{
    const struct rounds *rounds = scene->rounds;

    for (size_t i = 0; i < rounds->nevents; i++)
        if (is_arrow(&rounds->events[i]))
            draw_arrow(scene, &rounds->events[i]);
    for (size_t i = 0; i < rounds->nevents; i++) {
        const struct event *event = &rounds->events[i];

        if (is_arrow(event))
            draw_chunks(scene, event);
        else if (event->end > event->begin)
            draw_box(scene, event);
        else
            draw_mark(scene, event);
    }
}

static void begin_scene(struct scene *scene)
{
    uint32_t n = scene->team->ensemble.nranks, nrounds = scene->rounds->nrounds;
    double width, titles;
    struct svg_font bold = {.size = 16, .color = COLOR_INK, .is_bold = true};
    struct svg_font soft = {.size = 12, .color = COLOR_SOFT};
    char counts[3][UNITS_TEXT], messages[UNITS_TEXT + 16] = "", subtitle[160];

    scene->row = fmin(fmax(560.0 / n, 22), 42);
    scene->column = fmin(fmax(1000.0 / (nrounds > 0 ? nrounds : 1), 30), 150);
    if (scene->rounds->nmessages > 0)
        snprintf(messages, sizeof messages, ", %s messages",
                 units_count(scene->rounds->nmessages, counts[1]));
    snprintf(subtitle, sizeof subtitle, "%s round%s%s; numbers are chunks, %s in a block",
             units_count(nrounds, counts[0]), nrounds == 1 ? "" : "s", messages,
             units_count(scene->team->ensemble.schedules[0]->chunks_per_block, counts[2]));
    titles = fmax(svg_text_width(scene->team->title, 16), svg_text_width(subtitle, 12));
    width = fmax(x_of(scene, nrounds), MARGIN + fmax(titles, 560)) + MARGIN;
    svg_begin(&scene->svg, width, TOP + n * scene->row + MARGIN, scene->team->title);
    svg_text(&scene->svg, MARGIN, 28, bold, "%s", scene->team->title);
    svg_text(&scene->svg, MARGIN, 47, soft, "%s", subtitle);
    draw_legend(scene, MARGIN, 68);
}

static int run(const struct request *request)
{
    struct team team;
    struct rounds rounds = {.events = NULL};
    struct scene scene = {.team = &team, .rounds = &rounds};
    int status, error;

    if (request->output == NULL)
        return mistake(request, "no file is given; add -o FILE.svg");
    status = team_create(request, &team);
    if (status != REQUEST_GO)
        return status;
    if (team.ensemble.nranks > DRAWN_RANKS) {
        status = mistake(request, "%u ranks: a picture shows %d at most; give fewer",
                         team.ensemble.nranks, DRAWN_RANKS);
    } else if (!rounds_play(&team.ensemble, &rounds)) {
        status = mistake(request,
                         "the ranks of %s wait for each other forever; tutti-sched check "
                         "shows where",
                         team.title);
    } else {
        begin_scene(&scene);
        draw_grid(&scene);
        draw_events(&scene);
        error = svg_end(&scene.svg, request->output);
        status = error == 0 ? EXIT_SUCCESS : write_failure(request, request->output, error);
    }
    rounds_fini(&rounds);
    team_fini(&team);
    return status;
}

const struct command sched_draw = {
    .name = "tutti-sched draw",
    .options = "ranks root option topo gpu nic cpu output",
    .help = help,
    .run = run,
};
