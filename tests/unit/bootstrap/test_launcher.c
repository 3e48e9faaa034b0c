/* SPDX-License-Identifier: Apache-2.0
 * Recognizes launchers by their environment. */
#include "bootstrap/launcher.h"

#include "base/param.h"
#include "base/result.h"
#include "bootstrap/bootstrap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

struct launch_case {
    const char *variables[12];
    int rc;
    const char *launcher; /* or, of a failure, words of the message */
    int rank, nranks;
    const char *store, *secret, *job;
};

static const struct launch_case cases[] = {
    {{NULL}, 0, "none", 0, 1, "", "", ""},
    {{"HOME=/root", "TUTTI_DEBUG=info"}, 0, "none", 0, 1, "", "", ""},

    {{"TUTTI_RANK=2", "TUTTI_NRANKS=4", "TUTTI_ROOT=h:4711", "TUTTI_SECRET=hush"},
     0, "tutti-run", 2, 4, "tcp:h:4711", "hush", ""},
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=4", "TUTTI_ROOT=file:/tmp/x"},
     0, "tutti-run", 0, 4, "file:/tmp/x", "", ""},
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=4", "TUTTI_ROOT=unix:x"},
     0, "tutti-run", 0, 4, "unix:x", "", ""},
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=4", "TUTTI_ROOT=tcp:[::1]:80"},
     0, "tutti-run", 0, 4, "tcp:[::1]:80", "", ""},
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=1"}, 0, "tutti-run", 0, 1, "", "", ""},
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=4"}, TUTTI_ERR_USAGE, "TUTTI_ROOT", 0, 0, "", "", ""},
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=4", "TUTTI_ROOT=h"}, TUTTI_ERR_USAGE, "TUTTI_ROOT=h", 0, 0, "",
     "", ""},
    {{"TUTTI_RANK=0"}, TUTTI_ERR_USAGE, "TUTTI_NRANKS is not set", 0, 0, "", "", ""},
    {{"TUTTI_NRANKS=2"}, TUTTI_ERR_USAGE, "TUTTI_RANK is not set", 0, 0, "", "", ""},
    {{"TUTTI_RANK=4", "TUTTI_NRANKS=4"}, TUTTI_ERR_USAGE, "TUTTI_RANK=4", 0, 0, "", "", ""},
    {{"TUTTI_RANK=-1", "TUTTI_NRANKS=4"}, TUTTI_ERR_USAGE, "TUTTI_RANK=-1", 0, 0, "", "", ""},
    {{"TUTTI_RANK=1x", "TUTTI_NRANKS=4"}, TUTTI_ERR_USAGE, "TUTTI_RANK=1x", 0, 0, "", "", ""},
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=0"}, TUTTI_ERR_USAGE, "TUTTI_NRANKS=0", 0, 0, "", "", ""},
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=99999999999999999999"}, TUTTI_ERR_USAGE, "TUTTI_NRANKS", 0, 0,
     "", "", ""},

    {{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=head", "MASTER_PORT=29500"},
     0, "torchrun", 1, 2, "tcp:head:29500", "", ""},
    {{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=head", "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=j7",
      "TORCHELASTIC_RESTART_COUNT=2"},
     0, "torchrun", 1, 2, "tcp:head:29501-29516", "", "torchrun j7 2 head:29500"},
    {{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=head", "MASTER_PORT=29501", "TORCHELASTIC_RUN_ID=none",
      "TUTTI_SECRET=s"},
     0, "torchrun", 1, 2, "tcp:head:29502-29517", "s", "torchrun none 0 head:29501"},
    {{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=fd00::2", "MASTER_PORT=29500"},
     0, "torchrun", 1, 2, "tcp:[fd00::2]:29500", "", ""},
    {{"RANK=1", "WORLD_SIZE=2", "TUTTI_ROOT=h:1", "TUTTI_SECRET=s"}, 0, "torchrun", 1, 2, "tcp:h:1",
     "s", ""},
    {{"RANK=0", "WORLD_SIZE=1"}, 0, "torchrun", 0, 1, "", "", ""},
    {{"RANK=0"}, 0, "none", 0, 1, "", "", ""},
    {{"RANK=1", "WORLD_SIZE=2", "MASTER_PORT=29500"}, TUTTI_ERR_USAGE, "MASTER_ADDR", 0, 0, "", "",
     ""},
    {{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=head"}, TUTTI_ERR_USAGE, "MASTER_PORT", 0, 0, "", "",
     ""},
    {{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=head", "MASTER_PORT=70000"},
     TUTTI_ERR_USAGE, "MASTER_PORT=70000", 0, 0, "", "", ""},

    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "OMPI_MCA_ess_base_jobid=123/4"},
     0, "Open MPI", 1, 2, "unix:openmpi-123-4-", "", "openmpi 123/4"},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "PMIX_NAMESPACE=prterun-vm-23210@1", "PMIX_RANK=1"},
     0, "Open MPI", 1, 2, "unix:openmpi-prterun-vm-23210-1-", "", "openmpi prterun-vm-23210@1"},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "PMIX_NAMESPACE=j"},
     TUTTI_ERR_USAGE, "set TUTTI_ROOT=host:port", 0, 0, "", "", ""},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=2",
      "TUTTI_ROOT=n1:4711", "PMIX_NAMESPACE=j"},
     0, "Open MPI", 1, 4, "tcp:n1:4711", "", "openmpi j"},
    {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2"},
     TUTTI_ERR_USAGE, "which job", 0, 0, "", "", ""},
    {{"OMPI_COMM_WORLD_RANK=1"}, TUTTI_ERR_USAGE, "OMPI_COMM_WORLD_SIZE", 0, 0, "", "", ""},

    {{"PMI_RANK=3", "PMI_SIZE=4", "MPI_LOCALNRANKS=2"}, TUTTI_ERR_USAGE, "set TUTTI_ROOT=host:port",
     0, 0, "", "", ""},
    {{"PMI_RANK=3", "PMI_SIZE=4"}, TUTTI_ERR_USAGE, "set TUTTI_ROOT=host:port", 0, 0, "", "", ""},
    {{"PMI_RANK=3", "PMI_SIZE=4", "TUTTI_ROOT=h:1"}, 0, "MPICH", 3, 4, "tcp:h:1", "", ""},
    {{"PMI_RANK=0", "PMI_SIZE=1"}, 0, "MPICH", 0, 1, "", "", ""},
    {{"PMI_RANK=3", "PMI_SIZE=3"}, TUTTI_ERR_USAGE, "PMI_RANK=3", 0, 0, "", "", ""},

    {{"SLURM_PROCID=5", "SLURM_NTASKS=8", "SLURM_JOB_ID=1", "SLURM_STEP_ID=0",
      "SLURM_STEP_NODELIST=n[07-09,12]"},
     0, "Slurm", 5, 8, "tcp:n07:27919-27934", "", "slurm  1.0"},
    {{"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_NTASKS=8", "SLURM_JOB_ID=0",
      "SLURM_STEP_ID=0", "SLURM_JOB_NODELIST=a,b", "SLURM_CLUSTER_NAME=big"},
     0, "Slurm", 1, 2, "tcp:a:20000-20015", "", "slurm big 0.0"},
    {{"SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_JOB_ID=1"}, 0, "none", 0, 1, "", "", ""},
    {{"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_JOB_ID=1", "SLURM_STEP_ID=0"},
     TUTTI_ERR_USAGE, "SLURM_STEP_NODELIST", 0, 0, "", "", ""},
    {{"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_ID=0", "SLURM_STEP_NODELIST=a"},
     TUTTI_ERR_USAGE, "SLURM_JOB_ID", 0, 0, "", "", ""},

    /* The nearer launcher is believed. */
    {{"TUTTI_RANK=0", "TUTTI_NRANKS=1", "RANK=1", "WORLD_SIZE=2", "PMI_RANK=3", "PMI_SIZE=4"},
     0, "tutti-run", 0, 1, "", "", ""},
    {{"RANK=0", "WORLD_SIZE=1", "OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4"},
     0, "torchrun", 0, 1, "", "", ""},
    {{"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1", "PMI_RANK=3", "PMI_SIZE=4",
      "SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_STEP_ID=0"},
     0, "Open MPI", 0, 1, "", "", ""},
};

/* A Unix socket's name ends in a hash, and may hold the number of our ancestor. */
static bool is_store(const char *store, const char *expected)
{
    if (strncmp(expected, "unix:", 5) == 0 && expected[strlen(expected) - 1] == '-')
        return strncmp(store, expected, strlen(expected)) == 0;
    return strcmp(store, expected) == 0;
}

static void check_case(size_t number, const struct launch_case *launch_case)
{
    struct tutti_launch launch = {.rank = -7};
    int rc;

    clearenv();
    for (size_t i = 0; launch_case->variables[i] != NULL; i++) {
        char pair[128], *equals;

        snprintf(pair, sizeof pair, "%s", launch_case->variables[i]);
        equals = strchr(pair, '=');
        *equals = '\0';
        setenv(pair, equals + 1, 1);
    }
    tutti_param_reset();
    rc = tutti_launch_detect(&launch);
    if (rc != launch_case->rc)
        fail_msg("case %zu: result %d: %s", number, rc, tutti_message_last());
    if (rc != TUTTI_OK) {
        if (strstr(tutti_message_last(), launch_case->launcher) == NULL)
            fail_msg("case %zu: '%s' does not say '%s'", number, tutti_message_last(),
                     launch_case->launcher);
        assert_int_equal(launch.rank, -7);
        return;
    }
    if (strcmp(launch.launcher, launch_case->launcher) != 0 || launch.rank != launch_case->rank ||
        launch.nranks != launch_case->nranks || !is_store(launch.store, launch_case->store) ||
        strcmp(launch.secret, launch_case->secret) != 0 ||
        strcmp(launch.job, launch_case->job) != 0)
        fail_msg("case %zu: %s, rank %d of %d, store '%s', secret '%s', job '%s'", number,
                 launch.launcher, launch.rank, launch.nranks, launch.store, launch.secret,
                 launch.job);
}

static void each_environment_is_understood_or_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_case(i, &cases[i]);
    clearenv();
    tutti_param_reset();
}

static void the_first_host_of_a_node_list_is_found(void **state)
{
    static const struct {
        const char *list, *host;
    } lists[] = {
        {"node1", "node1"},           {"node1,node2", "node1"},       {"n[1-3]", "n1"},
        {"n[007-009,12]", "n007"},    {"n[5,7]", "n5"},               {"n[5]-ib,m1", "n5-ib"},
        {"rack[2-3]n[04-08]", "rack2n04"}, {"a.b.c,d", "a.b.c"},      {"n[1-2],m[3-4]", "n1"},
        {"", NULL},                   {",", NULL},                    {"n[", NULL},
        {"n[1", NULL},                {"n[]", NULL},                  {"n[x]", NULL},
        {"n 1", NULL},                {"n[1;rm]", NULL},              {"n$(x)", NULL},
    };
    char host[64];

    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        bool is_found = tutti_slurm_first_host(lists[i].list, host, sizeof host);

        if (is_found != (lists[i].host != NULL) || (is_found && strcmp(host, lists[i].host) != 0))
            fail_msg("'%s' gives '%s'", lists[i].list, is_found ? host : "nothing");
    }
    for (size_t size = 1; size < 6; size++)
        assert_false(tutti_slurm_first_host("n[0001-2]x", host, size));
    assert_true(tutti_slurm_first_host("n[0001-2]", host, 6));
}

static void ports_of_jobs_stay_in_their_range(void **state)
{
    (void)state;
    for (unsigned long job = 0; job < 100000; job += 37)
        assert_in_range(tutti_launch_port(job, job % 5), 20000, 59999);
    assert_in_range(tutti_launch_port(UINT32_MAX, UINT32_MAX), 20000, 59999);
    assert_int_not_equal(tutti_launch_port(1, 0), tutti_launch_port(1, 1));
}

/* Run this test again as a rank: under a shell that inherits PMI_RANK, or directly. */
static void as_rank(const char *self, bool is_through_shell, char *ret_store, size_t size)
{
    int fds[2], status;
    ssize_t length;
    pid_t child;

    assert_int_equal(pipe(fds), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(fds[1], STDOUT_FILENO);
        setenv("PMI_RANK", "1", 1);
        setenv("PMI_SIZE", "2", 1);
        setenv("MPI_LOCALNRANKS", "2", 1);
        if (is_through_shell)
            execl("/bin/sh", "sh", "-c", "\"$0\" print-store; exit $?", self, (char *)NULL);
        else
            execl(self, self, "print-store", (char *)NULL);
        _exit(127);
    }
    close(fds[1]);
    length = read(fds[0], ret_store, size - 1);
    assert_true(length > 0);
    ret_store[length] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static char self[4096]; /* this program */

static void ranks_of_one_hydra_meet_also_when_started_by_scripts(void **state)
{
    char direct[512], through_shell[512], prefix[64];

    (void)state;
    if (access("/proc/self/stat", R_OK) != 0) {
        print_message("[  SKIPPED ] no /proc, by which hydra is found behind a script\n");
        skip();
    }
    as_rank(self, false, direct, sizeof direct);
    as_rank(self, true, through_shell, sizeof through_shell);
    assert_string_equal(direct, through_shell);
    snprintf(prefix, sizeof prefix, "unix:mpich-%d.", (int)getpid());
    assert_int_equal(strncmp(direct, prefix, strlen(prefix)), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_environment_is_understood_or_refused_by_name),
        cmocka_unit_test(the_first_host_of_a_node_list_is_found),
        cmocka_unit_test(ports_of_jobs_stay_in_their_range),
        cmocka_unit_test(ranks_of_one_hydra_meet_also_when_started_by_scripts),
    };
    struct tutti_launch launch;

    if (realpath(argv[0], self) == NULL)
        return 1;
    if (argc == 2 && strcmp(argv[1], "print-store") == 0) {
        if (tutti_launch_detect(&launch) != TUTTI_OK)
            return 1;
        printf("%s", launch.store);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
