// SPDX-License-Identifier: Apache-2.0
// The works that calls of torch.distributed return, by which programs wait for operations.
#pragma once

#include <optional>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tutti.h>

#include "queue.h"

namespace tutti_torch {

// Throws torch.distributed.DistBackendError with the library's message, unless `result` is
// tuttiSuccess. Call it in the thread that made the failed call.
void check(tuttiResult_t result);

// A work that knows the number of its call in the process group. It also has a key that no other
// work of this process has.
class NumberedWork : public c10d::Work {
  public:
    NumberedWork(int rank, c10d::OpType type, const char *title,
                 const std::vector<at::Tensor> &inputs, uint64_t number);

    uint64_t getSequencenumber() const override { return number_; }
    uint64_t getCompletionKey() const { return key_; } // not in older PyTorch

  protected:
    const uint64_t number_;

  private:
    const uint64_t key_;
};

// A collective on the host. Its job runs in a queue, or has run already.
class CollectiveWork : public NumberedWork {
  public:
    CollectiveWork(int rank, c10d::OpType type, const char *title,
                   const std::vector<at::Tensor> &inputs, std::vector<at::Tensor> outputs,
                   uint64_t number, std::chrono::milliseconds timeout);

    // Says in which queue the job will run, so that callers can wait for it.
    void will_run(std::shared_ptr<Queue> queue, std::shared_ptr<Job> job);
    // The job calls these two once when it has ended, in this order. complete() ends the waits for
    // the work. `error` is null after a success, and `duration_ms` is empty if it was not measured.
    // notify() completes the future and so runs its callbacks.
    void complete(std::exception_ptr error, std::optional<float> duration_ms);
    void notify();

    // When isCompleted() or wait() has returned true, the future is complete, too, because PyTorch
    // reads its value after wait().
    bool isCompleted() override;
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override {}
    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    std::chrono::milliseconds getTimeout() const { return timeout_; } // not in older PyTorch
    float getDuration() const override;

  private:
    const std::vector<at::Tensor> outputs_;
    std::optional<float> duration_ms_; // set when the work is complete
    const std::chrono::milliseconds timeout_;
    std::shared_ptr<Queue> queue_; // null if the job ran in the calling thread
    std::shared_ptr<Job> job_;     // null with queue_
    // These three are guarded by Work's lock.
    bool is_polled_ = false;                             // isCompleted() was called
    c10::intrusive_ptr<c10::ivalue::Future> future_;     // null until a caller asks for it
    c10::intrusive_ptr<c10::ivalue::Future> unnotified_; // future_, if notify() has to complete it
};

// The work of several coalesced calls. It completes when all of their works have.
class WorkOfMany : public c10d::Work {
  public:
    WorkOfMany(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works);

    bool isCompleted() override;
    bool isSuccess() const override;
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override {}

  private:
    std::vector<c10::intrusive_ptr<c10d::Work>> works_;
};

} // namespace tutti_torch
