// SPDX-License-Identifier: Apache-2.0
// Begins a collective. On the host a blocking call runs in the calling thread, and an asynchronous
// call in the queue. A call on a device is enqueued on one of its streams (on_device.h).
#pragma once

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <optional>
#include <utility>

#include "backend.h"

namespace tutti_torch {

// Deadlines of operations: that of one call, and that of its process group.
struct Limits {
    std::chrono::milliseconds of_call, of_group;
};

// While an object of this class lives, operations of the communicator have the deadline of the call.
class CallLimit {
  public:
    CallLimit(tuttiComm_t comm, const Limits &limits) : comm_(comm), limits_(limits)
    {
        if (limits.of_call != limits.of_group)
            check(tuttiCommSetTimeout(comm, as_int_ms(limits.of_call)));
    }
    ~CallLimit()
    {
        if (limits_.of_call != limits_.of_group)
            (void)tuttiCommSetTimeout(comm_, as_int_ms(limits_.of_group));
    }

  private:
    const tuttiComm_t comm_;
    const Limits limits_;
};

// True if the communicator is lost. An error that was a mistake in one call leaves it usable.
inline bool has_failed(tuttiComm_t comm)
{
    tuttiResult_t error = tuttiSuccess;

    return tuttiCommGetAsyncError(comm, &error) == tuttiSuccess && error != tuttiSuccess;
}

// The job of a collective on the host. `Body` is a function of a const CallContext &, which makes
// the calls of the library and throws if one fails.
template <class Body> class BodyJob : public Job {
  public:
    BodyJob(c10::intrusive_ptr<CollectiveWork> work, const CallContext &context, const Limits &limits,
            Hooks &hooks, Body body)
        : work_(std::move(work)), seat_(context), limits_(limits), hooks_(hooks),
          body_(std::move(body))
    {
    }

    // Runs once, and then releases the tensors. notify() releases the work, which may refer to the
    // job.
    void run() override
    {
        // Outputs may be parameters of a model. The caller's "no gradients" does not hold in a thread
        // of the queue.
        at::NoGradGuard no_grad;
        const uint64_t key = work_->getCompletionKey();
        const bool is_timed = !hooks_.completion.is_empty();
        const auto begun = is_timed ? Clock::now() : Clock::time_point();
        std::optional<float> took_ms;
        std::exception_ptr error;

        try {
            const CallLimit limit(seat_.comm, limits_);

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

    void notify() override { std::exchange(work_, nullptr)->notify(); }

  private:
    using Clock = std::chrono::steady_clock;

    c10::intrusive_ptr<CollectiveWork> work_;
    const CallContext seat_;
    const Limits limits_;
    Hooks &hooks_;
    std::optional<Body> body_;
};

// Returns the device of all tensors of a call. Throws if the tensors are on different devices.
inline c10::Device device_of(const Tensors &inputs, const Tensors &outputs)
{
    c10::Device device = inputs.empty() ? outputs.at(0).device() : inputs[0].device();

    for (const Tensors *list : {&inputs, &outputs})
        for (const auto &tensor : *list)
            TORCH_CHECK_VALUE(tensor.device() == device, "tutti: the tensors of a call are on ",
                              device, " and on ", tensor.device(), "; they must be in one place");
    return device;
}

// True if an operation takes at most about as long as waking a thread for it. It is false for sparse
// tensors, whose size is not known here.
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
        return collect_if_coalescing(ensure_device(device).launch(getRank(), type, title, inputs,
                                                 std::move(outputs), ++number_, is_async,
                                                 std::move(body)));
    const Limits limits{timeout == c10d::kUnsetTimeout ? options_->timeout : timeout,
                        options_->timeout};
    const bool is_small_call = is_small(inputs, outputs);
    auto work = c10::make_intrusive<CollectiveWork>(getRank(), type, title, inputs,
                                                    std::move(outputs), ++number_, limits.of_call);
    const CallContext context{comm_, nullptr, &scratch_};

    if (is_async) {
        auto job = std::make_shared<BodyJob<Body>>(work, context, limits, *hooks_, std::move(body));

        work->will_run(queue_, job);
        queue_->push(std::move(job), is_small_call);
    } else {
        BodyJob<Body> job(work, context, limits, *hooks_, std::move(body));

        queue_->run_now(job);
    }
    return collect_if_coalescing(work);
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
