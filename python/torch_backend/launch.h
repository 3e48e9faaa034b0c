// SPDX-License-Identifier: Apache-2.0
// How a collective is begun. On the host: in the calling thread if it is waited for at once, else in
// the queue. On a device: on one of its streams (on_device.h).
#pragma once

#include <ATen/core/grad_mode.h>

#include <optional>
#include <utility>

#include "backend.h"

namespace tutti_torch {

template <class Body> class BodyJob : public Job {
  public:
    BodyJob(c10::intrusive_ptr<CollectiveWork> work, const Seat &seat, Body body)
        : work_(std::move(work)), seat_(seat), body_(std::move(body))
    {
    }

    // Once. Lets go of the tensors and of the work, which may refer to the job.
    void run() override
    {
        // Outputs may be parameters; a thread of the queue does not know that gradients are off.
        at::NoGradGuard no_grad;
        std::exception_ptr error;

        try {
            (*body_)(seat_);
        } catch (...) {
            error = std::current_exception();
        }
        body_.reset();
        work_->complete(error);
    }

    void tell() override { std::exchange(work_, nullptr)->tell(); }

  private:
    c10::intrusive_ptr<CollectiveWork> work_;
    const Seat seat_;
    std::optional<Body> body_;
};

// All tensors of a call are in one place.
inline c10::Device device_of(const Tensors &inputs, const Tensors &outputs)
{
    c10::Device device = inputs.empty() ? outputs.at(0).device() : inputs[0].device();

    for (const Tensors *list : {&inputs, &outputs})
        for (const auto &tensor : *list)
            TORCH_CHECK_VALUE(tensor.device() == device, "tutti: the tensors of a call are on ",
                              device, " and on ", tensor.device(), "; they must be in one place");
    return device;
}

template <class Body>
WorkPtr Backend::launch_at(c10::Device device, c10d::OpType type, const char *title,
                           const Tensors &inputs, Tensors outputs, bool is_async,
                           std::chrono::milliseconds timeout, Body body)
{
    check_alive();
    if (!device.is_cpu())
        return note(see_to_device(device).launch(getRank(), type, title, inputs,
                                                 std::move(outputs), ++number_, is_async,
                                                 std::move(body)));
    auto work = c10::make_intrusive<CollectiveWork>(
        getRank(), type, title, inputs, std::move(outputs), ++number_,
        timeout == c10d::kUnsetTimeout ? options_->timeout : timeout);

    const Seat seat{comm_, nullptr, &scratch_};

    if (is_async) {
        auto job = std::make_shared<BodyJob<Body>>(work, seat, std::move(body));

        work->will_run(queue_, job);
        queue_->push(std::move(job));
    } else {
        BodyJob<Body> job(work, seat, std::move(body));

        queue_->run_now(job);
    }
    return note(work);
}

template <class Body>
WorkPtr Backend::launch(c10d::OpType type, const char *title, const Tensors &inputs,
                        Tensors outputs, bool is_async, std::chrono::milliseconds timeout,
                        Body body)
{
    const c10::Device device = device_of(inputs, outputs);

    return launch_at(device, type, title, inputs, std::move(outputs), is_async, timeout,
                     std::move(body));
}

} // namespace tutti_torch
