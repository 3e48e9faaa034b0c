/* SPDX-License-Identifier: Apache-2.0
 * The table of transports. */
#include "transport/registry.h"

TUTTI_TRANSPORT_TABLE(TUTTI_TRANSPORT_LIST);
