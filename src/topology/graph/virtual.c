/* SPDX-License-Identifier: Apache-2.0
 * Recognizes virtual network ports by the names that the kernel, container engines and hypervisors
 * give them. */
#include "topology/graph/virtual.h"

#include <string.h>

/* Returns true if a name is the word and a number, such as "tunl0" for "tunl". */
static bool is_numbered(const char *name, const char *word)
{
    size_t length = strlen(word);

    return strncmp(name, word, length) == 0 && name[length] != '\0' &&
           name[length + strspn(name + length, "0123456789")] == '\0';
}

bool tutti_net_is_virtual(const struct tutti_graph *graph, uint32_t net)
{
    static const char *const exact[] = {"lo", "weave", "cbr0"};
    static const char *const numbered[] = {
        "tunl",   "tun",     "tap",   "sit",   "gre",   "gretap", "erspan", "ip6tnl",  "ip6gre",
        "ip_vti", "ip6_vti", "wg",    "dummy", "ifb",   "docker", "podman", "nerdctl", "cni",
        "virbr",  "vnet",    "vmnet", "lxcbr", "lxdbr", "teql",   "nlmon"};
    static const char *const begins[] = {"br-",    "cali",    "veth",  "flannel",     "vxlan",
                                         "geneve", "cilium_", "kube-", "fwbr",        "fwpr",
                                         "fwln",   "ovs-",    "lxc_",  "nodelocaldns"};
    const char *name =
        tutti_device_text(graph->inventory, graph->nodes[net].device, TUTTI_PROPERTY_NET_NAME);

    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
        if (strcmp(name, exact[i]) == 0)
            return true;
    for (size_t i = 0; i < sizeof numbered / sizeof numbered[0]; i++)
        if (is_numbered(name, numbered[i]))
            return true;
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}
