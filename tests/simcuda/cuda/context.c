/* SPDX-License-Identifier: Apache-2.0
 * Contexts: each device has its primary one, and each thread of the process has a stack of those
 * that it has made current. */
#include "simcuda/cuda/api.h"
#include "simcuda/cuda/memory.h"
#include "simcuda/cuda/state.h"
#include "simcuda/cuda/stream.h"

enum { DEPTH = 32 };

static __thread struct tutti_cu_context *stack[DEPTH];
static __thread int depth;

struct tutti_cu_context *sim_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

static bool is_context(const struct tutti_cu_context *context)
{
    for (int i = 0; i < sim_ndevices; i++)
        if (context == &sim_devices[i].primary)
            return true;
    return false;
}

bool sim_context_lives(const struct tutti_cu_context *context)
{
    return is_context(context) && context->nretained > 0;
}

/* ---- primary contexts ------------------------------------------------------------------------ */

int cuDevicePrimaryCtxRetain(struct tutti_cu_context **ret_context, tutti_cu_device device)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (device < 0 || device >= sim_ndevices)
        return sim_leave(TUTTI_CU_INVALID_DEVICE);
    if (sim_device_lost(&sim_devices[device]) != 0)
        return sim_leave(sim_device_lost(&sim_devices[device]));
    sim_devices[device].primary.nretained++;
    *ret_context = &sim_devices[device].primary;
    return sim_leave(0);
}

/* With the last one who held it, all that it has goes away. */
static void end_context(struct tutti_cu_context *context)
{
    sim_context_wait(context);
    sim_streams_end(context);
    sim_modules_end(context);
    sim_memory_end(context);
    __atomic_store_n(&context->peers, 0, __ATOMIC_RELAXED);
    sim_rights_shrink();
}

int cuDevicePrimaryCtxRelease_v2(tutti_cu_device device)
{
    struct tutti_cu_context *context;
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (device < 0 || device >= sim_ndevices)
        return sim_leave(TUTTI_CU_INVALID_DEVICE);
    context = &sim_devices[device].primary;
    if (context->nretained == 0)
        return sim_leave(TUTTI_CU_INVALID_CONTEXT);
    if (context->nretained == 1)
        end_context(context);
    context->nretained--;
    return sim_leave(0);
}

/* ---- current ones ---------------------------------------------------------------------------- */

int cuCtxGetCurrent(struct tutti_cu_context **ret_context)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    *ret_context = sim_current();
    return sim_leave(0);
}

int cuCtxSetCurrent(struct tutti_cu_context *context)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (context != NULL && !is_context(context))
        return sim_leave(TUTTI_CU_INVALID_CONTEXT);
    if (context != NULL && !sim_context_lives(context))
        return sim_leave(TUTTI_CU_CONTEXT_IS_DESTROYED);
    if (depth > 0)
        depth--;
    if (context != NULL)
        stack[depth++] = context;
    return sim_leave(0);
}

int cuCtxPushCurrent_v2(struct tutti_cu_context *context)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (context == NULL || !is_context(context) || depth == DEPTH)
        return sim_leave(context != NULL && is_context(context) ? TUTTI_CU_INVALID_VALUE
                                                                : TUTTI_CU_INVALID_CONTEXT);
    if (!sim_context_lives(context))
        return sim_leave(TUTTI_CU_CONTEXT_IS_DESTROYED);
    stack[depth++] = context;
    return sim_leave(0);
}

int cuCtxPopCurrent_v2(struct tutti_cu_context **ret_context)
{
    int code = sim_enter(__func__, SIM_NEEDS_NOTHING);

    if (code != 0)
        return code;
    if (depth == 0)
        return sim_leave(TUTTI_CU_INVALID_CONTEXT);
    depth--;
    if (ret_context != NULL)
        *ret_context = stack[depth];
    return sim_leave(0);
}

int cuCtxGetDevice(tutti_cu_device *ret_device)
{
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    *ret_device = sim_current()->device->ordinal;
    return sim_leave(0);
}

int cuCtxSynchronize(void)
{
    struct tutti_cu_context *context;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT | SIM_NOT_IN_CAPTURE);

    if (code != 0)
        return code;
    context = sim_current();
    sim_context_wait(context);
    return sim_leave(sim_device_lost(context->device));
}

int cuCtxEnablePeerAccess(struct tutti_cu_context *peer, unsigned flags)
{
    struct tutti_cu_context *context;
    uint64_t bit;
    int code = sim_enter(__func__, SIM_NEEDS_CONTEXT);

    if (code != 0)
        return code;
    context = sim_current();
    if (peer == NULL || !sim_context_lives(peer) || peer == context)
        return sim_leave(TUTTI_CU_INVALID_CONTEXT);
    if (flags != 0)
        return sim_leave(TUTTI_CU_INVALID_VALUE);
    if (!sim_can_access_peer(context->device, peer->device))
        return sim_leave(TUTTI_CU_PEER_ACCESS_UNSUPPORTED);
    bit = (uint64_t)1 << peer->device->ordinal;
    if (context->peers & bit)
        return sim_leave(TUTTI_CU_PEER_ACCESS_ALREADY_ENABLED);
    __atomic_or_fetch(&context->peers, bit, __ATOMIC_RELAXED);
    return sim_leave(0);
}
