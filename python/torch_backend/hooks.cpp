// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

namespace tutti_torch {

void Hooks::fail()
{
    const auto queue = queue_.lock();

    if (queue != nullptr && !abort.is_empty() && !has_failed_.exchange(true))
        queue->call_back([hooks = shared_from_this()] { hooks->abort.call(); });
}

} // namespace tutti_torch
