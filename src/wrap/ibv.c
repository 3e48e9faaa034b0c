/* SPDX-License-Identifier: Apache-2.0
 * Loading of libibverbs, and queries of devices and ports. The queries hide differences between
 * versions of the library. */
#include "wrap/ibv.h"

#include "base/log.h"
#include "base/param.h"
#include "base/result.h"
#include "wrap/library.h"

#include <assert.h>
#include <endian.h>
#include <infiniband/verbs.h>
#include <string.h>

#define DEFAULT_LIBRARY "libibverbs.so.1"

#define AT(member) offsetof(struct tutti_ibv, member)
static const struct tutti_library_function functions[] = {
    {"ibv_get_device_list", AT(get_device_list), true},
    {"ibv_free_device_list", AT(free_device_list), true},
    {"ibv_get_device_name", AT(get_device_name), true},
    {"ibv_get_device_guid", AT(get_device_guid), true},
    {"ibv_open_device", AT(open_device), true},
    {"ibv_close_device", AT(close_device), true},
    {"ibv_query_device", AT(query_device), true},
    {"ibv_query_port", AT(query_port), true},
};
#undef AT

int tutti_ibv_open(struct tutti_ibv *ret_ibv)
{
    const char *wanted = tutti_param_text(TUTTI_PARAM_IBVERBS_LIBRARY);
    const char *file = wanted[0] != '\0' ? wanted : DEFAULT_LIBRARY;
    struct tutti_ibv ibv = {0};
    int rc;

    rc = tutti_library_open(file, functions, sizeof functions / sizeof functions[0], &ibv,
                            &ibv.library);
    if (rc != TUTTI_OK) {
        tutti_log(wanted[0] != '\0' ? TUTTI_LOG_WARN : TUTTI_LOG_INFO,
                  "no libibverbs, so RDMA devices are not asked for: %s", tutti_message_last());
        return rc;
    }
    *ret_ibv = ibv;
    return TUTTI_OK;
}

void tutti_ibv_close(struct tutti_ibv *ibv)
{
    tutti_library_close(ibv->library);
    *ibv = (struct tutti_ibv){0};
}

int tutti_ibv_query_device(const struct tutti_ibv *ibv, struct ibv_context *context,
                           struct tutti_ibv_device *ret_device)
{
    struct ibv_device_attr attributes;
    int error;

    memset(&attributes, 0, sizeof attributes);
    error = ibv->query_device(context, &attributes);
    if (error != 0)
        return tutti_note(TUTTI_ERR_SYSTEM, "ibv_query_device: %s", strerror(error));
    *ret_device = (struct tutti_ibv_device){
        /* If each port of a card is a device of its own, only the system image guid is the same for
         * all of them. */
        .guid = be64toh(attributes.sys_image_guid != 0 ? attributes.sys_image_guid
                                                       : attributes.node_guid),
        .nports = attributes.phys_port_cnt,
        .max_connections = attributes.max_qp > 0 ? (uint32_t)attributes.max_qp : 0,
    };
    return TUTTI_OK;
}

/* ---- ports ----------------------------------------------------------------------------------- */

/* New versions of struct ibv_port_attr have more fields at the end. This union has room for all
 * bytes that any version of the library writes. */
union port_attributes {
    struct ibv_port_attr port;
    unsigned char bytes[256];
};

/* This is the offset of the field for speeds that do not fit into one byte, such as XDR (200 Gbit/s
 * per lane). In older headers the struct ends at this offset. */
#define EXTENDED_SPEED_AT 52
static_assert(offsetof(struct ibv_port_attr, port_cap_flags2) == 48, "the last of them, two bytes");

/* Returns the rate of one lane, for a code of active_speed; 0: the code is unknown. */
static uint32_t lane_mbits_per_s(uint32_t speed)
{
    switch (speed) {
    case 1: /* SDR */
        return 2500;
    case 2: /* DDR */
        return 5000;
    case 4: /* QDR */
    case 8: /* FDR-10 */
        return 10000;
    case 16: /* FDR */
        return 14000;
    case 32: /* EDR */
        return 25000;
    case 64: /* HDR */
        return 50000;
    case 128: /* NDR */
        return 100000;
    case 256: /* XDR */
        return 200000;
    default:
        return 0;
    }
}

/* Returns the number of lanes, for a code of active_width; 0: the code is unknown. */
static uint32_t lanes(uint32_t width)
{
    switch (width) {
    case 1:
        return 1;
    case 2:
        return 4;
    case 4:
        return 8;
    case 8:
        return 12;
    case 16:
        return 2;
    default:
        return 0;
    }
}

static const char *state_name(enum ibv_port_state state)
{
    static const char *const names[] = {
        [IBV_PORT_NOP] = "unknown",     [IBV_PORT_DOWN] = "down",
        [IBV_PORT_INIT] = "initialized, but not active; start a subnet manager",
        [IBV_PORT_ARMED] = "armed",     [IBV_PORT_ACTIVE] = "active",
        [IBV_PORT_ACTIVE_DEFER] = "active, deferred",
    };

    return state <= IBV_PORT_ACTIVE_DEFER ? names[state] : "unknown";
}

static enum tutti_ibv_layer layer_of(uint8_t link_layer)
{
    switch (link_layer) {
    case IBV_LINK_LAYER_INFINIBAND:
        return TUTTI_IBV_INFINIBAND;
    case IBV_LINK_LAYER_ETHERNET:
        return TUTTI_IBV_ETHERNET;
    default:
        return TUTTI_IBV_LAYER_UNKNOWN;
    }
}

int tutti_ibv_query_port(const struct tutti_ibv *ibv, struct ibv_context *context, uint32_t port,
                         struct tutti_ibv_port *ret_port)
{
    struct verbs_context *verbs = verbs_get_ctx_op(context, query_port);
    union port_attributes attributes;
    uint32_t speed = 0;
    int error;

    memset(&attributes, 0, sizeof attributes);
    /* The exported function does not report speeds above NDR, but the one in the context does. */
    error = verbs != NULL ? verbs->query_port(context, (uint8_t)port, &attributes.port,
                                              sizeof attributes)
                          : ibv->query_port(context, (uint8_t)port, &attributes);
    if (error != 0)
        return tutti_note(TUTTI_ERR_SYSTEM, "ibv_query_port: %s", strerror(error));
    memcpy(&speed, attributes.bytes + EXTENDED_SPEED_AT, sizeof speed);
    if (speed == 0)
        speed = attributes.port.active_speed;
    *ret_port = (struct tutti_ibv_port){
        .is_active = attributes.port.state == IBV_PORT_ACTIVE,
        .state = state_name(attributes.port.state),
        .layer = layer_of(attributes.port.link_layer),
        .rate_mbits_per_s = lane_mbits_per_s(speed) * lanes(attributes.port.active_width),
    };
    return TUTTI_OK;
}
