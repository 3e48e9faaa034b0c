// SPDX-License-Identifier: Apache-2.0
// How a collective is begun: in the calling thread if it is waited for at once, else in the queue.
#pragma once

#include <ATen/core/grad_mode.h>

#include <optional>
#include <utility>

#include "backend.h"

namespace tutti_torch {

template <class Body> class BodyJob : public Job {
  public:
    BodyJob(c10::intrusive_ptr<CollectiveWork> work, Body body)
        : work_(std::move(work)), body_(std::move(body))
    {
    }

    // Once. Lets go of the tensors and of the work, which may refer to the job.
    void run() override
    {
        // Outputs may be parameters; a thread of the queue does not know that gradients are off.
        at::NoGradGuard no_grad;
        std::exception_ptr error;

        try {
            (*body_)();
        } catch (...) {
            error = std::current_exception();
        }
        body_.reset();
        work_->complete(error);
    }

    void tell() override { std::exchange(work_, nullptr)->tell(); }

  private:
    c10::intrusive_ptr<CollectiveWork> work_;
    std::optional<Body> body_;
};

template <class Body>
WorkPtr Backend::launch(c10d::OpType type, const char *title, const Tensors &inputs,
                        Tensors outputs, bool is_async, std::chrono::milliseconds timeout,
                        Body body)
{
    check_alive();
    auto work = c10::make_intrusive<CollectiveWork>(
        getRank(), type, title, inputs, std::move(outputs), ++number_,
        timeout == c10d::kUnsetTimeout ? options_->timeout : timeout);

    if (is_async) {
        auto job = std::make_shared<BodyJob<Body>>(work, std::move(body));

        work->will_run(queue_, job);
        queue_->push(std::move(job));
    } else {
        BodyJob<Body> job(work, std::move(body));

        queue_->run_now(job);
    }
    return note(work);
}

} // namespace tutti_torch
