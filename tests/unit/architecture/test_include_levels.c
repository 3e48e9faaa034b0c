/* SPDX-License-Identifier: Apache-2.0
 * Tests the order of include lines. A room includes only headers of lower rooms, and rooms of one
 * level never include one another. Programs for users include only the public header. Inside a
 * room no folders include each other in a circle. The test reads the include lines of the source
 * tree. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The parts of a communicator: its life, its queue, its tuning and its GPU. Each refers to the others,
 * so these rooms may include one another. */
#define LEVEL_COMMUNICATOR 4
#define LEVEL_API 5
/* Outside the library: sees the public header, and its own files. */
#define LEVEL_USER 6
/* As a user, but may look into some rooms. */
#define LEVEL_TOOL 7
/* Code that no call needs. It may include headers of some rooms, and no room includes its own. */
#define LEVEL_MODEL 8

struct room {
    const char *path; /* below the root of the tree */
    int level;
};

static const struct room rooms[] = {
    {"src/base", 0},
    {"src/schedule", 1}, {"src/wrap", 1},
    {"src/algorithms", 2}, {"src/topology", 2}, {"src/transport", 2}, {"src/bootstrap", 2},
    {"src/device", 2},
    {"src/executor", 3}, {"src/mail", 3}, {"src/tuner", 3}, {"src/fault", 3},
    {"src/comm", LEVEL_COMMUNICATOR}, {"src/queue", LEVEL_COMMUNICATOR},
    {"src/tune", LEVEL_COMMUNICATOR}, {"src/gpu", LEVEL_COMMUNICATOR},
    {"src/api", LEVEL_API},
    {"perf", LEVEL_USER}, {"examples", LEVEL_USER},
    {"tools", LEVEL_TOOL},
    {"model/simulator", LEVEL_MODEL}, {"model/import", LEVEL_MODEL}, {"model/describe", LEVEL_MODEL},
};

static const struct room *room_of(const char *path)
{
    for (size_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        size_t length = strlen(rooms[i].path);

        if (strncmp(path, rooms[i].path, length) == 0 && path[length] == '/')
            return &rooms[i];
    }
    return NULL;
}

/* The rooms of the library that the model sees. They describe machines, schedules and their costs.
 * Tools see these, too. */
static const char *const seen_by_model[] = {
    "src/base", "src/schedule", "src/algorithms", "src/topology", "src/tuner", NULL,
};
static const char *const seen_by_tools[] = {"src/wrap", "src/device", NULL};

static bool is_among(const struct room *room, const char *const *paths)
{
    while (*paths != NULL && strcmp(room->path, *paths) != 0)
        paths++;
    return *paths != NULL;
}

/* Returns the error of an include of the file `to` in the file `from`, both relative to the root of
 * the tree, or NULL if there is none. */
static const char *objection(const char *from, const char *to)
{
    const struct room *room = room_of(from), *other = room_of(to);

    if (room == NULL)
        return "a file of no room";
    if (strcmp(to, "include/tutti.h") == 0)
        return room->level < LEVEL_COMMUNICATOR || room->level == LEVEL_MODEL
                   ? "the model and the rooms below the communicator do not see the public header"
                   : NULL;
    if (other == room)
        return NULL;
    if (other == NULL)
        return "a header of no room";
    if (room->level == LEVEL_USER)
        return strcmp(to, "src/base/types.h") == 0 && strcmp(room->path, "perf") == 0
                   ? NULL
                   : "programs for users see only the public header; perf sees the table of types";
    if (room->level == LEVEL_TOOL)
        return other->level == LEVEL_MODEL || is_among(other, seen_by_model) ||
                       is_among(other, seen_by_tools)
                   ? NULL
                   : "tools see base, schedule, wrap, algorithms, device, topology, tuner and the model";
    if (room->level == LEVEL_MODEL)
        return is_among(other, seen_by_model)
                   ? NULL
                   : "the model sees base, schedule, algorithms, topology and tuner";
    if (other->level == room->level)
        return room->level == LEVEL_COMMUNICATOR ? NULL : "rooms of one level do not see each other";
    return other->level > room->level ? "the header stands above" : NULL;
}

/* ---- folders inside a room --------------------------------------------------------------------- */

#define MAX_FOLDERS 64

/* The folders below the rooms, and which of them include which. Files that lie in a room itself, in none
 * of its folders, belong to all of its folders and are left out. */
struct folders {
    char name[MAX_FOLDERS][128];
    int includes[MAX_FOLDERS][MAX_FOLDERS];
    size_t count;
};

/* The number of the file's folder, a new one if need be; -1: it lies in a room itself, or in none. */
static int folder_of(struct folders *folders, const char *path)
{
    const struct room *room = room_of(path);
    const char *below = room != NULL ? strchr(path + strlen(room->path) + 1, '/') : NULL;
    size_t length = below != NULL ? (size_t)(below - path) : 0;

    if (length == 0)
        return -1;
    for (size_t i = 0; i < folders->count; i++)
        if (strlen(folders->name[i]) == length && memcmp(folders->name[i], path, length) == 0)
            return (int)i;
    assert_true(folders->count < MAX_FOLDERS && length < sizeof(folders->name[0]));
    memcpy(folders->name[folders->count], path, length);
    return (int)folders->count++;
}

static void note_include(struct folders *folders, const char *from, const char *to)
{
    int a = folder_of(folders, from), b = folder_of(folders, to);

    if (a >= 0 && b >= 0 && a != b)
        folders->includes[a][b] = 1;
}

/* How many folders reach themselves along include lines; names each. */
static size_t count_circles(const struct folders *folders)
{
    static int reaches[MAX_FOLDERS][MAX_FOLDERS];
    size_t n = folders->count, circles = 0;

    memcpy(reaches, folders->includes, sizeof(reaches));
    for (size_t via = 0; via < n; via++)
        for (size_t a = 0; a < n; a++)
            for (size_t b = 0; b < n; b++)
                reaches[a][b] |= reaches[a][via] && reaches[via][b];
    for (size_t a = 0; a < n; a++) {
        if (!reaches[a][a])
            continue;
        print_error("%s includes itself by way of other folders\n", folders->name[a]);
        circles++;
    }
    return circles;
}

/* ---- reading the tree ------------------------------------------------------------------------ */

struct scan {
    const char *root;
    size_t files, includes, objections;
    struct folders folders;
};

static int exists(const char *root, const char *path)
{
    char full[2048];

    snprintf(full, sizeof(full), "%s/%s", root, path);
    return access(full, R_OK) == 0;
}

/* Finds a quoted or bracketed header as the compiler does: beside the file, in src, in include, and
 * for tools also in their own folder. A header of the model is found from everywhere, so that no
 * file of the library includes one unnoticed. Returns 0 if it is not of this tree. */
static int resolve(const char *root, const char *from, const char *name, char *ret_path,
                   size_t size)
{
    const char *slash = strrchr(from, '/');

    snprintf(ret_path, size, "%.*s/%s", (int)(slash - from), from, name);
    if (exists(root, ret_path))
        return 1;
    snprintf(ret_path, size, "src/%s", name);
    if (exists(root, ret_path))
        return 1;
    snprintf(ret_path, size, "model/%s", name);
    if (exists(root, ret_path))
        return 1;
    snprintf(ret_path, size, "tools/%s", name);
    if (strncmp(from, "tools/", 6) == 0 && exists(root, ret_path))
        return 1;
    snprintf(ret_path, size, "include/%s", name);
    return exists(root, ret_path);
}

/* The name in an include line, or NULL. Cuts the line. */
static char *included(char *line, int *ret_is_quoted)
{
    char *at = line + strspn(line, " \t"), *end;

    if (*at != '#')
        return NULL;
    at += 1 + strspn(at + 1, " \t");
    if (strncmp(at, "include", 7) != 0)
        return NULL;
    at += 7 + strspn(at + 7, " \t");
    *ret_is_quoted = *at == '"';
    end = *at == '"' ? strchr(at + 1, '"') : *at == '<' ? strchr(at + 1, '>') : NULL;
    if (end == NULL)
        return NULL;
    *end = '\0';
    return at + 1;
}

static void scan_file(struct scan *scan, const char *path)
{
    char full[1024], line[1024], header[1024];
    FILE *file;

    snprintf(full, sizeof(full), "%s/%s", scan->root, path);
    file = fopen(full, "r");
    assert_non_null(file);
    scan->files++;
    while (fgets(line, sizeof(line), file) != NULL) {
        int is_quoted;
        const char *why = NULL, *name = included(line, &is_quoted);

        if (name == NULL)
            continue;
        if (resolve(scan->root, path, name, header, sizeof(header)))
            why = objection(path, header);
        else if (is_quoted && strstr(name, "..") != NULL)
            why = "paths do not climb";
        else
            continue;
        scan->includes++;
        if (why != NULL) {
            print_error("%s includes %s: %s\n", path, name, why);
            scan->objections++;
        } else {
            note_include(&scan->folders, path, header);
        }
    }
    fclose(file);
}

static int is_source(const char *name)
{
    const char *dot = strrchr(name, '.');

    static const char *const endings[] = {".c", ".h", ".cu", ".cuh"};

    for (size_t i = 0; dot != NULL && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcmp(dot, endings[i]) == 0)
            return 1;
    return 0;
}

static void scan_folder(struct scan *scan, const char *path)
{
    char full[1024];
    struct dirent *entry;
    DIR *folder;

    snprintf(full, sizeof(full), "%s/%s", scan->root, path);
    folder = opendir(full);
    if (folder == NULL)
        return; /* a room that has not been built */
    while ((entry = readdir(folder)) != NULL) {
        char below[768];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (entry->d_type == DT_DIR)
            scan_folder(scan, below);
        else if (is_source(entry->d_name))
            scan_file(scan, below);
    }
    closedir(folder);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void every_include_of_the_tree_goes_down(void **state)
{
    static struct scan scan = {.root = TUTTI_SOURCE_DIR};
    static const char *const tops[] = {"src", "model", "perf", "examples", "tools"};

    (void)state;
    for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]); i++)
        scan_folder(&scan, tops[i]);
    /* A reader that finds nothing would find nothing wrong. */
    assert_true(scan.files > 30);
    assert_true(scan.includes > 60);
    assert_true(scan.folders.count > 10);
    assert_int_equal(scan.objections, 0);
    assert_int_equal(count_circles(&scan.folders), 0);
}

static void every_file_of_the_library_lies_in_a_room(void **state)
{
    struct dirent *entry;
    DIR *folder = opendir(TUTTI_SOURCE_DIR "/src");

    (void)state;
    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL)
        if (is_source(entry->d_name))
            fail_msg("src/%s lies in no room", entry->d_name);
    closedir(folder);
}

static void folders_that_include_each_other_in_a_circle_are_found(void **state)
{
    static struct folders folders;

    (void)state;
    note_include(&folders, "src/topology/graph/a.h", "src/topology/machine/b.h");
    note_include(&folders, "src/topology/search/c.h", "src/topology/graph/a.h");
    note_include(&folders, "src/topology/graph/a.h", "src/topology/graph/d.h");
    note_include(&folders, "src/transport/fabric.h", "src/transport/shm/fifo.h");
    assert_int_equal(folders.count, 4);
    assert_int_equal(count_circles(&folders), 0);
    note_include(&folders, "src/topology/machine/b.h", "src/topology/search/c.h");
    assert_int_equal(count_circles(&folders), 3);
}

static void an_include_that_goes_up_or_sideways_is_objected_to(void **state)
{
    static const struct {
        const char *from, *to;
        int is_allowed;
    } cases[] = {
        {"src/base/log.c", "src/base/log.h", 1},
        {"src/base/log.c", "src/schedule/step.h", 0},
        {"src/base/log.c", "include/tutti.h", 0},
        {"src/schedule/bind.c", "src/base/types.h", 1},
        {"src/schedule/bind.c", "src/wrap/cuda.h", 0},
        {"src/schedule/bind.c", "src/algorithms/algorithm.h", 0},
        {"src/algorithms/ring.c", "src/schedule/build.h", 1},
        {"src/algorithms/ring.c", "src/topology/graph.h", 0},
        {"src/transport/tcp/tcp.c", "src/bootstrap/bootstrap.h", 0},
        {"src/device/cpu/cpu.c", "src/device/cpu/cpu.h", 1},
        {"src/device/cpu/cpu.c", "src/transport/transport.h", 0},
        {"src/device/cuda/ll.cuh", "src/executor/cuda/gpu.h", 0},
        {"src/executor/host/run.c", "src/transport/transport.h", 1},
        {"src/executor/host/run.c", "src/tuner/tuner.h", 0},
        {"src/executor/host/run.c", "src/comm/comm.h", 0},
        {"src/comm/form.c", "src/executor/plan.h", 1},
        {"src/comm/form.c", "include/tutti.h", 1},
        {"src/comm/end.c", "src/queue/group.h", 1},
        {"src/queue/group.c", "src/api/api.h", 0},
        {"src/api/collectives.c", "src/comm/comm.h", 1},
        {"src/loose.c", "src/comm/comm.h", 0},
        {"perf/main.c", "perf/launch.h", 1},
        {"perf/main.c", "include/tutti.h", 1},
        {"perf/main.c", "src/base/clock.h", 0},
        {"perf/types.c", "src/base/types.h", 1},
        {"examples/01_threads.c", "src/base/types.h", 0},
        {"examples/01_threads.c", "src/base/clock.h", 0},
        {"tools/tutti_params.c", "src/base/param.h", 1},
        {"tools/tutti_params.c", "src/comm/comm.h", 0},
        {"tools/sim/sweep.h", "model/simulator/simulator.h", 1},
        {"model/simulator/score.c", "src/schedule/step.h", 1},
        {"model/simulator/score.c", "src/topology/machine/machine.h", 1},
        {"model/simulator/score.c", "src/tuner/price.h", 1},
        {"model/simulator/score.c", "src/wrap/cuda.h", 0},
        {"model/simulator/score.c", "src/executor/plan.h", 0},
        {"model/simulator/score.c", "src/comm/comm.h", 0},
        {"model/simulator/score.c", "include/tutti.h", 0},
        {"model/simulator/score.c", "model/describe/nccl_graph.h", 0},
        {"model/loose.c", "src/schedule/step.h", 0},
        {"src/topology/search/search.c", "model/simulator/simulator.h", 0},
        {"src/comm/schedules.c", "model/import/load.h", 0},
        {"src/api/call.c", "model/simulator/simulator.h", 0},
        {"perf/main.c", "model/simulator/simulator.h", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *why = objection(cases[i].from, cases[i].to);

        if ((why == NULL) != (cases[i].is_allowed != 0))
            fail_msg("%s including %s: %s", cases[i].from, cases[i].to, why ? why : "allowed");
    }
}

static void include_lines_are_found_in_all_their_forms(void **state)
{
    static const struct {
        const char *line, *name;
    } cases[] = {
        {"#include \"base/log.h\"", "base/log.h"},
        {"#include <tutti.h>", "tutti.h"},
        {"  #  include\t\"a.h\" /* why */", "a.h"},
        {"/* #include \"a.h\" */", NULL},
        {"#include MACRO", NULL},
        {"#define include \"a.h\"", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char line[64];
        const char *name;
        int is_quoted;

        snprintf(line, sizeof(line), "%s", cases[i].line);
        name = included(line, &is_quoted);
        if (cases[i].name == NULL)
            assert_null(name);
        else
            assert_string_equal(name, cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_include_of_the_tree_goes_down),
        cmocka_unit_test(every_file_of_the_library_lies_in_a_room),
        cmocka_unit_test(folders_that_include_each_other_in_a_circle_are_found),
        cmocka_unit_test(an_include_that_goes_up_or_sideways_is_objected_to),
        cmocka_unit_test(include_lines_are_found_in_all_their_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
