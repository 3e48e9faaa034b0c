/* SPDX-License-Identifier: Apache-2.0
 * Determines the settings of a new communicator from its configuration, the environment, and its
 * parent. */
#include "base/limits.h"
#include "base/param.h"
#include "comm/comm.h"

#include <string.h>

static int check_range(const char *field, int value, int low)
{
    if (value == TUTTI_CONFIG_UNDEF_INT || value >= low)
        return TUTTI_OK;
    return tutti_fail(TUTTI_ERR_ARGUMENT, "config.%s is %d; it must be at least %d, or "
                      "TUTTI_CONFIG_UNDEF_INT for the default", field, value, low);
}

/* The caller may be compiled against a version whose struct has fewer or more fields. */
static int read_config(const tuttiConfig_t *given, tuttiConfig_t *ret_config)
{
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;

    if (given->magic != TUTTI_CONFIG_MAGIC || given->size < offsetof(tuttiConfig_t, blocking))
        return tutti_fail(TUTTI_ERR_ARGUMENT, "config is not initialized (magic %#x, size %zu); "
                          "start from TUTTI_CONFIG_INITIALIZER", given->magic, given->size);
    memcpy(&config, given, given->size < sizeof config ? given->size : sizeof config);
    TUTTI_TRY(check_range("blocking", config.blocking, 0));
    TUTTI_TRY(check_range("initTimeoutMs", config.initTimeoutMs, 1));
    TUTTI_TRY(check_range("timeoutMs", config.timeoutMs, 0));
    TUTTI_TRY(check_range("device", config.device, -1));
    *ret_config = config;
    return TUTTI_OK;
}

static void set(int *field, int value)
{
    if (value != TUTTI_CONFIG_UNDEF_INT)
        *field = value;
}

int tutti_settings_read(const tuttiConfig_t *config, const struct tutti_comm *parent,
                        struct tutti_settings *ret_settings)
{
    struct tutti_settings settings = {
        .parent = parent,
        .is_blocking = parent ? parent->is_blocking : true,
        .init_timeout_ms = parent ? parent->init_timeout_ms
                                  : (int)tutti_param_int(TUTTI_PARAM_INIT_TIMEOUT_MS),
        .timeout_ms = parent ? parent->timeout_ms : (int)tutti_param_int(TUTTI_PARAM_TIMEOUT_MS),
    };
    tuttiConfig_t known = TUTTI_CONFIG_INITIALIZER;

    /* All functions that make a communicator call this one before they open a socket. */
    tutti_limits_raise();
    if (config != NULL)
        TUTTI_TRY(read_config(config, &known));
    if (known.blocking != TUTTI_CONFIG_UNDEF_INT)
        settings.is_blocking = known.blocking != 0;
    if (tutti_param_given(TUTTI_PARAM_INIT_TIMEOUT_MS) == NULL)
        set(&settings.init_timeout_ms, known.initTimeoutMs);
    if (tutti_param_given(TUTTI_PARAM_TIMEOUT_MS) == NULL)
        set(&settings.timeout_ms, known.timeoutMs);
    settings.device = known.device;
    if (known.commName != NULL)
        strncpy(settings.name, known.commName, sizeof settings.name - 1);
    *ret_settings = settings;
    return TUTTI_OK;
}
