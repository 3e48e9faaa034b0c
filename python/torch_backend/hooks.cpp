// SPDX-License-Identifier: Apache-2.0
#include "hooks.h"

namespace tutti_torch {

namespace {

class AbortJob : public Job {
  public:
    explicit AbortJob(std::shared_ptr<const Hooks> hooks) : hooks_(std::move(hooks)) {}

    void run() override {}
    void tell() override { hooks_->abort.call(); } // not in run(), during which nothing else can run

  private:
    const std::shared_ptr<const Hooks> hooks_;
};

} // namespace

void Hooks::fail()
{
    const auto queue = queue_.lock();

    if (queue != nullptr && !abort.is_empty() && !has_failed_.exchange(true))
        queue->push(std::make_shared<AbortJob>(shared_from_this()));
}

} // namespace tutti_torch
