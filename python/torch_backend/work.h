// SPDX-License-Identifier: Apache-2.0
// What callers of torch.distributed wait for.
#pragma once

#include <optional>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include <tutti.h>

#include "queue.h"

namespace tutti_torch {

// Throws torch.distributed.DistBackendError with the library's own line, unless `result` is
// tuttiSuccess.
void check(tuttiResult_t result);

// The number of its call in the process group, and a key that no other work of this process has.
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

// A collective: its job runs in a queue, or has run already.
class CollectiveWork : public NumberedWork {
  public:
    CollectiveWork(int rank, c10d::OpType type, const char *title,
                   const std::vector<at::Tensor> &inputs, std::vector<at::Tensor> outputs,
                   uint64_t number, std::chrono::milliseconds timeout);

    // Where the job will run; for the waiting.
    void will_run(std::shared_ptr<Queue> queue, std::shared_ptr<Job> job);
    // The job has ended, after so many milliseconds if they were measured; then tell those who wait
    // for the future. Each is called once.
    void complete(std::exception_ptr error, std::optional<float> duration_ms);
    void tell();

    // After either the future is complete, too: PyTorch reads its value after wait().
    bool isCompleted() override;
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override {}
    std::vector<at::Tensor> result() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    std::chrono::milliseconds getTimeout() const { return timeout_; } // not in older PyTorch
    float getDuration() const override;

  private:
    const std::vector<at::Tensor> outputs_;
    std::optional<float> duration_ms_; // once complete
    const std::chrono::milliseconds timeout_;
    std::shared_ptr<Queue> queue_;
    std::shared_ptr<Job> job_;
    bool is_polled_ = false; // guarded by Work's lock, as the two below
    c10::intrusive_ptr<c10::ivalue::Future> future_; // made when somebody asks for it
    c10::intrusive_ptr<c10::ivalue::Future> untold_; // the same, if tell() is to complete it
};

// Completes when all of the others have.
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
