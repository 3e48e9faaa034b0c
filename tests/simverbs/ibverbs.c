/* SPDX-License-Identifier: Apache-2.0
 * A simulated libibverbs.so.1: the devices that TUTTI_SIM_VERBS describes, as words,
 *
 *   device NAME [guid HEX] [card HEX] [qps N] [denied] [old] [silent]
 *          { port STATE LAYER WIDTH SPEED }
 *
 * STATE: down, init, armed, active, or "broken" for a port that cannot be asked; LAYER: infiniband
 * or ethernet; WIDTH and SPEED: verbs' codes. `card` is the GUID of the whole card, `denied`
 * devices cannot be opened, `silent` ones do not answer, `old` ones are of a driver that does not
 * tell speeds beyond one byte. "none" alone: the kernel knows no RDMA. Misuse aborts.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEVICES 16
#define MOST_PORTS 4
/* Where headers from 2025 on have a speed of four bytes. */
#define EXTENDED_SPEED_AT 52

/* rdma-core's header turns this name into a macro of another signature. */
#undef ibv_query_port

struct sim_port {
    bool is_broken;
    enum ibv_port_state state;
    uint8_t layer, width;
    uint32_t speed;
};

struct sim_device {
    struct ibv_device device; /* first: what callers hold */
    uint64_t guid, card;
    int qps;
    bool is_denied, is_old, is_silent;
    struct sim_port ports[MOST_PORTS];
    uint32_t nports;
};

struct sim_list {
    struct ibv_device *pointers[MOST_DEVICES + 1]; /* first, likewise */
    struct sim_device devices[MOST_DEVICES];
    int count;
};

struct sim_context {
    struct verbs_context verbs;
    const struct sim_device *device;
    struct sim_context *next;
};

static struct sim_list *list; /* not freed yet */
static struct sim_context *contexts;

_Noreturn static void die(const char *what, const char *of)
{
    fprintf(stderr, "simulated libibverbs: %s: %s\n", what, of);
    abort();
}

/* ---- describing ------------------------------------------------------------------------------ */

static const char *need_word(const char *before)
{
    const char *word = strtok(NULL, " ");

    if (word == NULL)
        die("TUTTI_SIM_VERBS ends after", before);
    return word;
}

static uint64_t need_number(const char *before)
{
    return strtoull(need_word(before), NULL, 0);
}

static void read_port(struct sim_device *device)
{
    static const char *const states[] = {"nop", "down", "init", "armed", "active"};
    struct sim_port *port = &device->ports[device->nports++];
    const char *state = need_word("port");

    if (device->nports > MOST_PORTS)
        die("TUTTI_SIM_VERBS", "too many ports");
    port->is_broken = strcmp(state, "broken") == 0;
    for (int i = 0; i < 5; i++)
        if (strcmp(state, states[i]) == 0)
            port->state = (enum ibv_port_state)i;
    port->layer = strcmp(need_word("state"), "ethernet") == 0 ? IBV_LINK_LAYER_ETHERNET
                                                              : IBV_LINK_LAYER_INFINIBAND;
    port->width = (uint8_t)need_number("layer");
    port->speed = (uint32_t)need_number("width");
}

static void read_devices(struct sim_list *devices, char *text)
{
    struct sim_device *device = NULL;

    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        if (strcmp(word, "device") == 0 && devices->count < MOST_DEVICES) {
            device = &devices->devices[devices->count];
            devices->pointers[devices->count++] = &device->device;
            snprintf(device->device.name, sizeof device->device.name, "%s", need_word(word));
        } else if (device == NULL) {
            die("TUTTI_SIM_VERBS: not a device", word);
        } else if (strcmp(word, "guid") == 0) {
            device->guid = need_number(word);
        } else if (strcmp(word, "card") == 0) {
            device->card = need_number(word);
        } else if (strcmp(word, "qps") == 0) {
            device->qps = (int)need_number(word);
        } else if (strcmp(word, "port") == 0) {
            read_port(device);
        } else if (strcmp(word, "denied") == 0) {
            device->is_denied = true;
        } else if (strcmp(word, "old") == 0) {
            device->is_old = true;
        } else if (strcmp(word, "silent") == 0) {
            device->is_silent = true;
        } else {
            die("TUTTI_SIM_VERBS: unknown word", word);
        }
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

struct ibv_device **ibv_get_device_list(int *ret_count)
{
    const char *described = getenv("TUTTI_SIM_VERBS");
    char *text;

    if (described == NULL)
        die("set", "TUTTI_SIM_VERBS");
    if (list != NULL)
        die("ibv_get_device_list", "again, before ibv_free_device_list");
    if (strcmp(described, "none") == 0) {
        errno = ENOSYS;
        return NULL;
    }
    list = calloc(1, sizeof *list);
    text = strdup(described);
    if (list == NULL || text == NULL)
        die("out of", "memory");
    read_devices(list, text);
    free(text);
    if (ret_count != NULL)
        *ret_count = list->count;
    return list->pointers;
}

static const struct sim_device *device_of(const char *function, const struct ibv_device *device)
{
    for (int i = 0; list != NULL && i < list->count; i++)
        if (list->pointers[i] == device)
            return &list->devices[i];
    die(function, "not a device of the list");
}

void ibv_free_device_list(struct ibv_device **devices)
{
    if (list == NULL || devices != list->pointers)
        die("ibv_free_device_list", "not a list");
    /* The real library keeps open devices alive. No test needs that. */
    if (contexts != NULL)
        die("ibv_free_device_list", "a device is still open");
    free(list);
    list = NULL;
}

const char *ibv_get_device_name(struct ibv_device *device)
{
    device_of(__func__, device);
    return device->name;
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
    return htobe64(device_of(__func__, device)->guid);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static struct sim_context *context_of(const char *function, const struct ibv_context *context)
{
    struct sim_context *i = contexts;

    while (i != NULL && &i->verbs.context != context)
        i = i->next;
    if (i == NULL)
        die(function, "not an open device");
    return i;
}

static int ask_port(struct ibv_context *context, uint8_t number, struct ibv_port_attr *ret_port,
                    size_t size_bytes, bool is_old)
{
    const struct sim_device *device = context_of("ibv_query_port", context)->device;
    const struct sim_port *port = &device->ports[number - 1];

    if (number < 1 || number > device->nports)
        return EINVAL;
    if (port->is_broken)
        return EIO;
    memset(ret_port, 0, size_bytes);
    ret_port->state = port->state;
    ret_port->link_layer = port->layer;
    ret_port->active_width = port->width;
    /* The kernel tells old callers NDR of all that is faster. */
    ret_port->active_speed = port->speed > 128 ? 128 : (uint8_t)port->speed;
    if (!is_old && size_bytes >= EXTENDED_SPEED_AT + sizeof port->speed)
        memcpy((char *)ret_port + EXTENDED_SPEED_AT, &port->speed, sizeof port->speed);
    return 0;
}

static int query_port_extended(struct ibv_context *context, uint8_t number,
                               struct ibv_port_attr *ret_port, size_t size_bytes)
{
    return ask_port(context, number, ret_port, size_bytes, false);
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
    const struct sim_device *opened = device_of(__func__, device);
    struct sim_context *context;

    if (opened->is_denied) {
        errno = EACCES;
        return NULL;
    }
    context = calloc(1, sizeof *context);
    if (context == NULL)
        die("out of", "memory");
    context->device = opened;
    context->verbs.context.device = device;
    if (!opened->is_old) {
        context->verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
        context->verbs.sz = sizeof context->verbs;
        context->verbs.query_port = query_port_extended;
    }
    context->next = contexts;
    contexts = context;
    return &context->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
    struct sim_context *closed = context_of(__func__, context), **at = &contexts;

    while (*at != closed)
        at = &(*at)->next;
    *at = closed->next;
    free(closed);
    return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *ret_attributes)
{
    const struct sim_device *device = context_of(__func__, context)->device;

    if (device->is_silent)
        return EIO;
    memset(ret_attributes, 0, sizeof *ret_attributes);
    ret_attributes->node_guid = htobe64(device->guid);
    ret_attributes->sys_image_guid = htobe64(device->card);
    ret_attributes->max_qp = device->qps;
    ret_attributes->phys_port_cnt = (uint8_t)device->nports;
    return 0;
}

/* Of the first version: what was added to the struct later stays as it is. */
int ibv_query_port(struct ibv_context *context, uint8_t number,
                   struct _compat_ibv_port_attr *ret_port)
{
    struct ibv_port_attr port;
    int error = ask_port(context, number, &port, sizeof port, true);

    if (error == 0)
        memcpy(ret_port, &port, offsetof(struct ibv_port_attr, port_cap_flags2));
    return error;
}
