// SPDX-License-Identifier: Apache-2.0
// Functions that PyTorch's flight recorder registers. They are called when an operation is complete,
// and when a process group is about to end with an error.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include <c10/util/Exception.h>

#include "queue.h"

namespace tutti_torch {

// Functions by their ids. A function may be removed while it runs: the table is copied when it
// changes, and its lock is not held during a call.
template <class... Arguments> class HookTable {
  public:
    using Hook = std::function<void(Arguments...)>;

    void add(int64_t id, Hook hook)
    {
        change([&](Hooks &hooks) { hooks[id] = std::move(hook); });
    }
    void remove(int64_t id)
    {
        change([&](Hooks &hooks) { hooks.erase(id); });
    }
    bool is_empty() const { return is_empty_.load(std::memory_order_relaxed); }

    // Calls all functions. One that throws causes a warning, so that the operation does not fail.
    void call(Arguments... arguments) const
    {
        if (is_empty())
            return;
        std::unique_lock<std::mutex> guard(lock_);
        const auto hooks = hooks_;

        guard.unlock();
        for (const auto &[id, hook] : *hooks) {
            try {
                hook(arguments...);
            } catch (const std::exception &error) {
                TORCH_WARN("tutti: a hook of the process group has failed: ", error.what());
            }
        }
    }

  private:
    using Hooks = std::map<int64_t, Hook>;

    template <class Change> void change(Change make)
    {
        std::lock_guard<std::mutex> guard(lock_);
        auto changed = std::make_shared<Hooks>(*hooks_);

        make(*changed);
        is_empty_ = changed->empty();
        hooks_ = std::move(changed);
    }

    mutable std::mutex lock_; // guards hooks_
    std::shared_ptr<const Hooks> hooks_ = std::make_shared<Hooks>();
    std::atomic<bool> is_empty_ = true;
};

// The hooks of one process group.
class Hooks : public std::enable_shared_from_this<Hooks> {
  public:
    explicit Hooks(std::weak_ptr<Queue> queue) : queue_(std::move(queue)) {}

    HookTable<> abort;
    // Called for each work that has succeeded, with its key (NumberedWork) and the time that its
    // operation took, in ms.
    HookTable<uint64_t, std::optional<float>> completion;

    // Calls the abort hooks, once, because the process group has failed. They run in a thread of
    // their own: the flight recorder takes seconds to write its file, and callers must get their
    // exceptions before.
    void fail();

  private:
    const std::weak_ptr<Queue> queue_;
    std::atomic<bool> has_failed_ = false;
};

} // namespace tutti_torch
