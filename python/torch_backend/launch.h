// SPDX-License-Identifier: Apache-2.0
// How a collective is begun. On the host: in the calling thread if it is waited for at once, else in
// the queue. On a device: on one of its streams (on_device.h).
#pragma once

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <optional>
#include <utility>

#include "backend.h"

namespace tutti_torch {

struct Limits {
    std::chrono::milliseconds of_call, of_group;
};

// While it lives, operations have the limit of the call.
class LimitOfOne {
  public:
    LimitOfOne(tuttiComm_t comm, const Limits &limits) : comm_(comm), limits_(limits)
    {
        if (limits.of_call != limits.of_group)
            check(tuttiCommSetTimeout(comm, as_int_ms(limits.of_call)));
    }
    ~LimitOfOne()
    {
        if (limits_.of_call != limits_.of_group)
            (void)tuttiCommSetTimeout(comm_, as_int_ms(limits_.of_group));
    }

  private:
    const tuttiComm_t comm_;
    const Limits limits_;
};

// Rather than a mistake in one call.
inline bool has_failed(tuttiComm_t comm)
{
    tuttiResult_t error = tuttiSuccess;

    return tuttiCommGetAsyncError(comm, &error) == tuttiSuccess && error != tuttiSuccess;
}

template <class Body> class BodyJob : public Job {
  public:
    // The limit is that of this operation, if it is not the process group's.
    BodyJob(c10::intrusive_ptr<CollectiveWork> work, const Seat &seat, const Limits &limits,
            Hooks &hooks, Body body)
        : work_(std::move(work)), seat_(seat), limits_(limits), hooks_(hooks),
          body_(std::move(body))
    {
    }

    // Once. Lets go of the tensors and of the work, which may refer to the job.
    void run() override
    {
        // Outputs may be parameters; a thread of the queue does not know that gradients are off.
        at::NoGradGuard no_grad;
        const uint64_t key = work_->getCompletionKey();
        const bool is_timed = !hooks_.completion.is_empty();
        const auto begun = is_timed ? Clock::now() : Clock::time_point();
        std::optional<float> took_ms;
        std::exception_ptr error;

        try {
            const LimitOfOne limit(seat_.comm, limits_);

            (*body_)(seat_);
        } catch (...) {
            error = std::current_exception();
        }
        if (is_timed)
            took_ms = std::chrono::duration<float, std::milli>(Clock::now() - begun).count();
        body_.reset();
        if (error && has_failed(seat_.comm))
            hooks_.fail();
        work_->complete(error, took_ms);
        if (!error)
            hooks_.completion.call(key, took_ms);
    }

    void tell() override { std::exchange(work_, nullptr)->tell(); }

  private:
    using Clock = std::chrono::steady_clock;

    c10::intrusive_ptr<CollectiveWork> work_;
    const Seat seat_;
    const Limits limits_;
    Hooks &hooks_;
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

// Whether an operation takes about as long as waking a thread for it, or less. Sparse tensors do not
// tell their size.
inline bool is_small(const Tensors &inputs, const Tensors &outputs)
{
    constexpr size_t largest = 128 << 10;
    size_t bytes = 0;

    for (const Tensors *list : {&inputs, &outputs}) {
        for (const auto &tensor : *list) {
            if (tensor.is_sparse())
                return false;
            bytes += tensor.nbytes();
        }
    }
    return bytes <= largest;
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
    const Limits limits{timeout == c10d::kUnsetTimeout ? options_->timeout : timeout,
                        options_->timeout};
    const bool is_small_call = is_small(inputs, outputs);
    auto work = c10::make_intrusive<CollectiveWork>(getRank(), type, title, inputs,
                                                    std::move(outputs), ++number_, limits.of_call);
    const Seat seat{comm_, nullptr, &scratch_};

    if (is_async) {
        auto job = std::make_shared<BodyJob<Body>>(work, seat, limits, *hooks_, std::move(body));

        work->will_run(queue_, job);
        queue_->push(std::move(job), is_small_call);
    } else {
        BodyJob<Body> job(work, seat, limits, *hooks_, std::move(body));

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
