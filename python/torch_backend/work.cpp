// SPDX-License-Identifier: Apache-2.0
#include "work.h"

#include <atomic>
#include <utility>

#include <c10/util/Exception.h>

namespace tutti_torch {

void check(tuttiResult_t result)
{
    // Programs for PyTorch's own backends look for the words "Timed out".
    TORCH_CHECK_WITH(DistBackendError, result == tuttiSuccess, "tutti: ",
                     result == tuttiTimeout ? "Timed out because " : "", tuttiGetErrorString(result),
                     ": ", tuttiGetLastError(nullptr));
}

static std::chrono::steady_clock::time_point deadline_after(std::chrono::milliseconds timeout)
{
    return timeout <= kNoTimeout ? std::chrono::steady_clock::time_point::max()
                                 : std::chrono::steady_clock::now() + timeout;
}

// ---- all works ---------------------------------------------------------------------------

static std::atomic<uint64_t> last_key{0};

NumberedWork::NumberedWork(int rank, c10d::OpType type, const char *title,
                           const std::vector<at::Tensor> &inputs, uint64_t number)
    : Work(rank, type, title, inputs), number_(number), key_(++last_key)
{
}

// ---- collectives on the host -------------------------------------------------------------

CollectiveWork::CollectiveWork(int rank, c10d::OpType type, const char *title,
                               const std::vector<at::Tensor> &inputs,
                               std::vector<at::Tensor> outputs, uint64_t number,
                               std::chrono::milliseconds timeout)
    : NumberedWork(rank, type, title, inputs, number), outputs_(std::move(outputs)),
      timeout_(timeout)
{
}

void CollectiveWork::will_run(std::shared_ptr<Queue> queue, std::shared_ptr<Job> job)
{
    queue_ = std::move(queue);
    job_ = std::move(job);
}

void CollectiveWork::complete(std::exception_ptr error, std::optional<float> duration_ms)
{
    duration_ms_ = duration_ms;
    finish(error);
}

float CollectiveWork::getDuration() const
{
    TORCH_CHECK(duration_ms_, "tutti: ", c10d::opTypeToString(opType_), ", number ", number_,
                ": was not timed, because no completion hook (such as the flight recorder) is "
                "registered");
    return *duration_ms_;
}

static void complete_future(c10::ivalue::Future &future, std::exception_ptr error,
                            const std::vector<at::Tensor> &outputs)
{
    if (error)
        future.setErrorIfNeeded(error);
    else
        future.markCompleted(c10::IValue(outputs));
}

void CollectiveWork::notify()
{
    std::unique_lock<std::mutex> guard(mutex_);
    const auto future = std::exchange(unnotified_, nullptr);

    guard.unlock();
    if (future)
        complete_future(*future, exception_, outputs_);
}

bool CollectiveWork::isCompleted()
{
    const std::lock_guard<std::mutex> guard(mutex_);

    // PyTorch itself asks once after each call. So only the second question shows that a program
    // polls, and needs the job to begin.
    if (!completed_ && job_ && is_polled_)
        queue_->hurry();
    is_polled_ = true;
    return completed_ && (!future_ || future_->completed());
}

bool CollectiveWork::wait(std::chrono::milliseconds timeout)
{
    if (job_ && !queue_->wait_for(*job_, deadline_after(timeout)))
        TORCH_CHECK_WITH(DistBackendError, false, "tutti: ", c10d::opTypeToString(opType_),
                         ", number ", number_, ": not complete after ", timeout.count(),
                         " ms, the limit of this wait(); the operation goes on");
    std::unique_lock<std::mutex> guard(mutex_);
    const auto future = future_;

    guard.unlock();
    if (future)
        future->wait(); // short: the job is done, and notify() comes next
    return Work::wait(kNoTimeout);
}

std::vector<at::Tensor> CollectiveWork::result()
{
    return outputs_;
}

c10::intrusive_ptr<c10::ivalue::Future> CollectiveWork::getFuture()
{
    const std::lock_guard<std::mutex> guard(mutex_);

    if (!future_) {
        future_ = c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()));
        if (completed_)
            complete_future(*future_, exception_, outputs_); // it has no callbacks yet
        else
            unnotified_ = future_;
    }
    if (!completed_ && job_)
        queue_->hurry();
    return future_;
}

// ---- several coalesced calls -------------------------------------------------------------

WorkOfMany::WorkOfMany(int rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
    : Work(rank, c10d::OpType::COALESCED), works_(std::move(works))
{
}

bool WorkOfMany::isCompleted()
{
    for (auto &work : works_)
        if (!work->isCompleted())
            return false;
    return true;
}

bool WorkOfMany::isSuccess() const
{
    for (auto &work : works_)
        if (!work->isSuccess())
            return false;
    return true;
}

bool WorkOfMany::wait(std::chrono::milliseconds timeout)
{
    for (auto &work : works_)
        work->wait(timeout);
    return true;
}

} // namespace tutti_torch
