/* SPDX-License-Identifier: Apache-2.0
 * Defines the table of transports from the list in registry.h. */
#include "transport/registry.h"

TUTTI_TRANSPORT_TABLE(TUTTI_TRANSPORT_LIST);
