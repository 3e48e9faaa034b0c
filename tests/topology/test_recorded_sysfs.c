/* SPDX-License-Identifier: Apache-2.0
 * Runs detection on the kernel's files of other machines. It works as on this machine, and finds
 * the devices of those machines. */
#include "base/result.h"
#include "topology/detect/detect.h"
#include "topology/recordings.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct machine {
    const char *archive, *folder;
    const char *cpus; /* node, package and mask of each */
    const char *nics; /* address, node, and nets with speed and layer */
} machines[] = {
    {"32em64t-2n8c+dax+nvme+mic+dimms.tar.bz2", "32em64t-2n8c+1mic",
     "0 0 000000ff; 1 1 0000ff00; ",
     "0000:02:00.0 0: eth0 1000 ethernet; 0000:02:00.3 0: ; "
     "0000:82:00.0 1: mlx4_0 56000 infiniband; "},
    /* All devices but the InfiniBand card are of node -1, so the first stands in. */
    {"40intel64-2g2n4c+pcilocality.tar.bz2", "40intel64-2g2n4c+pci",
     "0 0 00000011,11111111; 1 1 00000022,22222222; "
     "2 2 00000044,44444444; 3 3 00000088,88888888; ",
     "0000:02:00.0 0?: eth0 1000 ethernet; 0000:02:00.1 0?: ; 0000:03:00.0 0?: ; "
     "0000:03:00.1 0?: ; 0000:43:00.0 2: qib0 40000 infiniband; "},
};

/* ---- archives -------------------------------------------------------------------------------- */

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)at;
    /* Recorded folders may be closed to their owner. */
    if (type != FTW_SL && type != FTW_SLN)
        chmod(path, 0700);
    return remove(path);
}

static void remove_tree(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* false: there is no such archive, or nothing to unpack it with. */
static bool unpack(const char *archive, const char *folder)
{
    char path[1024];
    int status;
    pid_t child;

    snprintf(path, sizeof path, "%s/sysfs/%s", recordings_root(), archive);
    if (access(path, R_OK) != 0) {
        print_message("skipped: no recorded machine at %s; TUTTI_TEST_TOPOLOGIES names another "
                      "folder\n", path);
        return false;
    }
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execlp("tar", "tar", "--extract", "--file", path, "--directory", folder,
               (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        print_message("skipped: tar does not unpack %s (is bzip2 there?)\n", path);
        return false;
    }
    return true;
}

/* ---- what is in them ------------------------------------------------------------------------- */

static void describe_cpus(const struct tutti_inventory *inventory, char *text)
{
    for (uint32_t cpu = inventory->devices[0].first_child; cpu != TUTTI_NO_DEVICE;
         cpu = inventory->devices[cpu].next)
        text += sprintf(text, "%d %d %s; ",
                        (int)tutti_device_number(inventory, cpu, TUTTI_PROPERTY_NUMA, -1),
                        (int)tutti_device_number(inventory, cpu, TUTTI_PROPERTY_PACKAGE, -1),
                        tutti_device_text(inventory, cpu, TUTTI_PROPERTY_AFFINITY));
}

static void describe_nics(const struct tutti_inventory *inventory, char *text)
{
    uint32_t nic = TUTTI_NO_DEVICE;

    while ((nic = tutti_inventory_next_of(inventory, nic, TUTTI_DEVICE_NIC)) != TUTTI_NO_DEVICE) {
        uint32_t pci = inventory->devices[nic].parent;
        uint32_t cpu = tutti_inventory_above(inventory, nic, TUTTI_DEVICE_CPU);

        text += tutti_device_write(inventory, pci, TUTTI_PROPERTY_BUSID, text, 32);
        text += sprintf(text, " %d%s: ",
                        (int)tutti_device_number(inventory, cpu, TUTTI_PROPERTY_NUMA, -1),
                        inventory->devices[pci].found_by == TUTTI_SOURCE_ASSUMED ? "?" : "");
        for (uint32_t net = inventory->devices[nic].first_child; net != TUTTI_NO_DEVICE;
             net = inventory->devices[net].next)
            text += sprintf(text, "%s %d %s",
                            tutti_device_text(inventory, net, TUTTI_PROPERTY_NET_NAME),
                            (int)tutti_device_number(inventory, net, TUTTI_PROPERTY_SPEED, -1),
                            tutti_device_text(inventory, net, TUTTI_PROPERTY_LAYER));
        text += sprintf(text, "; ");
    }
}

static void check_machine(const struct machine *machine, const char *folder)
{
    struct tutti_inventory *inventory = NULL;
    struct tutti_detect_options options;
    char root[256], text[2048] = "";

    snprintf(root, sizeof root, "%s/%s", folder, machine->folder);
    options = (struct tutti_detect_options){.root = root};
    if (tutti_detect(&options, &inventory) != TUTTI_OK)
        fail_msg("%s", tutti_message_last());
    describe_cpus(inventory, text);
    assert_string_equal(text, machine->cpus);
    *text = '\0';
    describe_nics(inventory, text);
    assert_string_equal(text, machine->nics);
    tutti_inventory_destroy(inventory);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static int make_folder(void **state)
{
    static char folder[128];
    const char *above = getenv("TMPDIR");

    snprintf(folder, sizeof folder, "%.64s/tutti-sysfs-XXXXXX",
             above != NULL && *above != '\0' ? above : "/tmp");
    *state = folder;
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state)
{
    remove_tree(*state);
    return access(*state, F_OK) == 0 ? -1 : 0;
}

static void every_machine_has_its_cpus_and_nics(void **state)
{
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        if (!unpack(machines[i].archive, *state))
            skip();
        check_machine(&machines[i], *state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_machine_has_its_cpus_and_nics, make_folder,
                                        remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
