/* SPDX-License-Identifier: Apache-2.0
 * Tests where a thread runs, on machines made of files: two sockets with two memories each, and
 * two caches of two CPUs in each memory. Other machines have fewer files. */
#include "topology/home/home.h"

#include "base/result.h"
#include "topology/formats/load.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { CPUS = 16 };

static char root[64];

/* ---- a machine of files --------------------------------------------------------------------- */

static void make_folders(const char *path)
{
    char part[256];

    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        mkdir(part, 0700);
    }
}

static void put(const char *text, const char *format, int a, int b)
{
    char name[128], path[256];
    FILE *file;

    snprintf(name, sizeof name, format, a, b);
    snprintf(path, sizeof path, "%s/sys/devices/system/%s", root, name);
    make_folders(path);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void put_range(const char *format, int a, int b, int size)
{
    char text[32];
    int first = a / size * size;

    snprintf(text, sizeof text, "%d-%d\n", first, first + size - 1);
    put(text, format, a, b);
}

enum { HAS_PACKAGE = 1, HAS_MEMORY = 2, HAS_CACHE = 4, HAS_ALL = 7, HAS_OLD_NAMES = 8 };

static void put_cpu(int cpu, int has)
{
    put("1", "cpu/cpu%d/online", cpu, 0);
    if (has & HAS_PACKAGE)
        put_range(has & HAS_OLD_NAMES ? "cpu/cpu%d/topology/core_siblings_list"
                                      : "cpu/cpu%d/topology/package_cpus_list", cpu, 0, 8);
    if (has & HAS_MEMORY)
        put("", "cpu/cpu%d/node%d", cpu, cpu / 4);
    if (has & HAS_CACHE) {
        put_range("cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, 0, 1);
        put_range("cpu/cpu%d/cache/index%d/shared_cpu_list", cpu, 1, 2);
    }
}

static void make_machine(int has)
{
    snprintf(root, sizeof root, "/tmp/tutti-home-XXXXXX");
    assert_non_null(mkdtemp(root));
    for (int cpu = 0; cpu < CPUS; cpu++)
        put_cpu(cpu, has);
    for (int cpu = 0; cpu < CPUS && (has & HAS_MEMORY); cpu += 4)
        put_range("node/node%2$d/cpulist", cpu, cpu / 4, 4);
}

static void remove_machine(void)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r '%s'", root);
    assert_int_equal(system(command), 0);
}

static struct tutti_home home_of(const char *digits)
{
    struct tutti_home home;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    for (int cpu = 0; digits[cpu] != '\0'; cpu++)
        if (digits[cpu] == '1')
            CPU_SET(cpu, &cpus);
    tutti_home_of_cpus(root, &cpus, &home);
    return home;
}

/* ---- tests ---------------------------------------------------------------------------------- */

struct example {
    const char *cpus;
    struct tutti_home home;
};

static void assert_homes(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct tutti_home home = home_of(examples[i].cpus), expected = examples[i].home;

        if (home.package != expected.package || home.memory != expected.memory ||
            home.cache != expected.cache)
            fail_msg("CPUs %s: package %d, memory %d, cache %d", examples[i].cpus, home.package,
                     home.memory, home.cache);
    }
}

static void a_thread_lives_where_all_its_cpus_are(void **state)
{
    static const struct example examples[] = {
        {"1", {0, 0, 0}},
        {"0001", {0, 0, 2}},
        {"0011", {0, 0, 2}},
        {"1111", {0, 0, -1}},
        {"0110", {0, 0, -1}},
        {"0000001", {0, 1, 6}},
        {"0001100", {0, -1, -1}},
        {"11111111", {0, -1, -1}},
        {"0000000000110000", {8, 2, 10}},
        {"0000000000000001", {8, 3, 14}},
        {"0000000110000000", {-1, -1, -1}},
        {"1111111111111111", {-1, -1, -1}},
        {"00000000000000001", {-1, -1, -1}}, /* which there is not */
        {"", {-1, -1, -1}},
    };

    (void)state;
    make_machine(HAS_ALL);
    assert_homes(examples, sizeof examples / sizeof *examples);
    remove_machine();
}

static void what_is_not_told_is_not_known(void **state)
{
    static const struct {
        int has;
        struct example example;
    } cases[] = {
        {HAS_PACKAGE | HAS_OLD_NAMES, {"0011", {0, -1, -1}}},
        {HAS_MEMORY, {"0011", {-1, 0, -1}}},
        {HAS_CACHE, {"0011", {-1, -1, 2}}},
        {0, {"0011", {-1, -1, -1}}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        make_machine(cases[i].has);
        assert_homes(&cases[i].example, 1);
        remove_machine();
    }
}

static void files_of_nonsense_are_as_good_as_none(void **state)
{
    static const char *const lists[] = {"", "\n", "x", "0-", "-1", "3-0", "0,,1", "0;1",
                                        "0-99999999999999999999", "5000", "0 1"};
    static const struct example example = {"1", {-1, 0, -1}};

    (void)state;
    make_machine(HAS_ALL);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        put(lists[i], "cpu/cpu%d/topology/package_cpus_list", 0, 0);
        put(lists[i], "cpu/cpu%d/cache/index%d/shared_cpu_list", 0, 1);
        assert_homes(&example, 1);
    }
    put("", "node/node%d/cpulist", 0, 0);
    assert_homes(&(struct example){"1", {-1, -1, -1}}, 1);
    remove_machine();
}

static void this_thread_lives_somewhere_or_nowhere(void **state)
{
    struct tutti_home home, again;

    (void)state;
    tutti_home_of_thread(&home);
    tutti_home_of_thread(&again);
    assert_memory_equal(&home, &again, sizeof home);
    assert_true(home.package >= -1 && home.memory >= -1 && home.cache >= -1);
}

static void a_user_may_say_it(void **state)
{
    static const struct {
        const char *text;
        uint32_t rank;
        int32_t cell;
    } cases[] = {
        {"off", 3, -1},      {"0,0,1,1", 0, 0}, {"0,0,1,1", 2, 1},          {"0,0,1,1", 5, 0},
        {"7", 0, 7},         {"7", 9, 7},       {"3,2147483647", 1, INT32_MAX},
    };
    static const char *const refused[] = {"",    "on",  "0,",  ",0",         "0,,1", "-1",
                                          "0 1", "a,1", "1,a", "2147483648",
                                          "0,99999999999999999999"};
    struct tutti_home home, found;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(tutti_home_read(cases[i].text, cases[i].rank, &home), TUTTI_OK);
        assert_int_equal(home.package, cases[i].cell);
        assert_int_equal(home.memory, cases[i].cell);
        assert_int_equal(home.cache, cases[i].cell);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        if (tutti_home_read(refused[i], 0, &home) != TUTTI_ERR_USAGE)
            fail_msg("\"%s\" is not refused", refused[i]);
        assert_non_null(strstr(tutti_message_last(), "TUTTI_CELLS"));
    }
    tutti_home_of_thread(&found);
    assert_int_equal(tutti_home_read("auto", 0, &home), TUTTI_OK);
    assert_memory_equal(&home, &found, sizeof home);
}

/* The home of CPUs `first` to `last` by a description, if the kernel says 70, 71 and 72. */
static struct tutti_home described(const char *what, int first, int last)
{
    struct tutti_home home = {.package = 70, .memory = 71, .cache = 72};
    struct tutti_inventory *host;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    for (int cpu = first; cpu <= last; cpu++)
        CPU_SET(cpu, &cpus);
    if (tutti_formats_load(what, &host) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    tutti_home_describe(host, &cpus, &home);
    tutti_inventory_destroy(host);
    return home;
}

static void a_description_knows_more_than_the_kernel(void **state)
{
    static const char sockets[] = "2 cpus cores 8 caches 2";
    static const char memories[] = "<system version=\"1\">"
        "<cpu numaid=\"0\" affinity=\"0000000f\" arch=\"x86_64\"/>"
        "<cpu numaid=\"1\" affinity=\"000000f0\" arch=\"x86_64\"/></system>";
    static const char blind[] = "<system version=\"1\">"
        "<cpu numaid=\"0\" arch=\"x86_64\"/></system>";
    static const struct {
        const char *what;
        bool is_text;
        int first, last;
        struct tutti_home home;
    } cases[] = {
        {sockets, false, 0, 0, {0, 0, 0}},
        {sockets, false, 5, 6, {0, 0, 4}},
        {sockets, false, 3, 4, {0, 0, -1}},
        {sockets, false, 8, 11, {8, 1, 8}},
        {sockets, false, 7, 8, {-1, -1, -1}},
        {sockets, false, 16, 17, {70, 71, 72}}, /* not described */
        {"2 hosts: 2 cpus cores 8 caches 2", false, 8, 8, {70, 71, 72}},
        {memories, true, 4, 5, {70, 1, 72}},
        {memories, true, 3, 4, {70, -1, 72}},
        {blind, true, 0, 0, {70, 71, 72}},
    };
    char path[80];

    (void)state;
    snprintf(path, sizeof path, "%s/topo.xml", root);
    mkdir(root, 0700);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tutti_home home;

        if (cases[i].is_text) {
            FILE *file = fopen(path, "w");

            assert_non_null(file);
            fputs(cases[i].what, file);
            fclose(file);
        }
        home = described(cases[i].is_text ? path : cases[i].what, cases[i].first, cases[i].last);
        if (memcmp(&home, &cases[i].home, sizeof home) != 0)
            fail_msg("row %zu: %d %d %d", i, home.package, home.memory, home.cache);
    }
    unlink(path);
    rmdir(root);
}

/* The port near CPUs `first` to `last`; "": none. */
static const char *port_near(const struct tutti_inventory *host, int first, int last, uint32_t rank)
{
    const char *port;
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    for (int cpu = first; cpu <= last; cpu++)
        CPU_SET(cpu, &cpus);
    port = tutti_home_port(host, &cpus, rank);
    return port != NULL ? port : "";
}

static void ranks_take_turns_at_the_ports_near_them(void **state)
{
    struct tutti_inventory *host;

    (void)state;
    assert_int_equal(tutti_formats_load("2 cpus cores 8, 4 nics 100G", &host), TUTTI_OK);
    assert_string_equal(port_near(host, 0, 3, 5), "mlx5_0");
    assert_string_equal(port_near(host, 4, 7, 5), "mlx5_1");
    assert_string_equal(port_near(host, 2, 2, 6), "mlx5_0");
    assert_string_equal(port_near(host, 3, 3, 6), "mlx5_1");
    assert_string_equal(port_near(host, 12, 13, 6), "mlx5_2");
    /* Ranks 0, 2, 4, ... are on one socket, or ranks 0, 1, 2, ... */
    for (uint32_t rank = 0; rank < 8; rank += 4) {
        assert_string_equal(port_near(host, 8, 15, rank), "mlx5_2");
        assert_string_equal(port_near(host, 8, 15, rank + 1), "mlx5_3");
        assert_string_equal(port_near(host, 8, 15, rank + 2), "mlx5_3");
        assert_string_equal(port_near(host, 8, 15, rank + 3), "mlx5_2");
    }
    assert_string_equal(port_near(host, 7, 8, 0), "");   /* not of one socket */
    assert_string_equal(port_near(host, 16, 16, 0), ""); /* not described */
    tutti_inventory_destroy(host);
    assert_int_equal(tutti_formats_load("2 cpus cores 8", &host), TUTTI_OK);
    assert_string_equal(port_near(host, 0, 3, 0), "");
    tutti_inventory_destroy(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_lives_where_all_its_cpus_are),
        cmocka_unit_test(what_is_not_told_is_not_known),
        cmocka_unit_test(files_of_nonsense_are_as_good_as_none),
        cmocka_unit_test(this_thread_lives_somewhere_or_nowhere),
        cmocka_unit_test(a_user_may_say_it),
        cmocka_unit_test(a_description_knows_more_than_the_kernel),
        cmocka_unit_test(ranks_take_turns_at_the_ports_near_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
