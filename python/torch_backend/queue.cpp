// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <algorithm>

#include <pthread.h>

namespace tutti_torch {

using namespace std::chrono_literals;

// The time between two looks of a thread at its queue. A look takes a few microseconds, so that a
// hundredth of a core is busy with looking. Programs most often compute for longer between two calls.
static constexpr auto kInterval = 300us;
static constexpr int kQuietLooks = 50;

Queue::~Queue()
{
    {
        std::lock_guard<std::mutex> guard(lock_);
        is_closing_ = true;
        work_.notify_all();
    }
    for (auto &thread : threads_) {
        if (getpid() == process_)
            thread.join();
        else
            thread.detach(); // of a child of fork, which does not have it
    }
}

// Jobs that are queued will be run by some thread. The lock is held.
void Queue::see_to_jobs()
{
    if (jobs_.empty() || is_served_ || (is_watched_ && !has_due_job()))
        return;
    if (idle_ > 0)
        work_.notify_one();
    else if (!is_closing_)
        threads_.emplace_back([this] { serve(); });
}

// The lock is held.
void Queue::make_all_due()
{
    if (due_ == pushed_)
        return;
    due_ = pushed_;
    see_to_jobs();
}

bool Queue::has_due_job() const
{
    return popped_ < due_;
}

// The queues that call back in this thread: a callback may itself end a queue.
static thread_local std::vector<const Queue *> calling_back;

// The lock is held, but not during the callback; telling_ counts it already.
template <class Callback> void Queue::tell(Lock &lock, Callback callback)
{
    lock.unlock();
    calling_back.push_back(this);
    callback();
    calling_back.pop_back();
    lock.lock();
    telling_--;
    news_.notify_all();
}

// Nobody else serves. The lock is held, but not while the job runs and calls back.
void Queue::run_one(Lock &lock, Job &job)
{
    is_served_ = true;
    lock.unlock();
    job.run();
    lock.lock();
    is_served_ = false;
    job.is_done_ = true;
    see_to_jobs();
    news_.notify_all();
    telling_++;
    tell(lock, [&job] { job.tell(); });
}

void Queue::call_back(std::function<void()> callback)
{
    std::lock_guard<std::mutex> guard(lock_);

    threads_.emplace_back([this, callback = std::move(callback)] {
        Lock lock(lock_);

        pthread_setname_np(pthread_self(), "tutti-torch");
        tell(lock, callback);
    });
    telling_++;
}

void Queue::serve_one(Lock &lock)
{
    std::shared_ptr<Job> job = std::move(jobs_.front());

    jobs_.pop_front();
    popped_++;
    run_one(lock, *job);
}

// After a job that is running, its thread sees to the next.
bool Queue::wants_watch() const
{
    if (is_watched_ || is_closing_)
        return false;
    return quiet_looks_ < kQuietLooks || (!jobs_.empty() && !is_served_);
}

// Waits for an interval, or until a job is due. Jobs that were queued before it are due after it.
void Queue::look_later(Lock &lock)
{
    const uint64_t before = pushed_;

    quiet_looks_ = before == looked_at_ ? quiet_looks_ + 1 : 0;
    looked_at_ = before;
    is_watched_ = true;
    work_.wait_for(lock, kInterval);
    is_watched_ = false;
    due_ = std::max(due_, before);
}

void Queue::serve()
{
    Lock lock(lock_);

    pthread_setname_np(pthread_self(), "tutti-torch");
    while (!is_closing_ || !jobs_.empty()) {
        if (!is_served_ && (has_due_job() || (is_closing_ && !jobs_.empty()))) {
            serve_one(lock);
            continue;
        }
        idle_++;
        if (wants_watch())
            look_later(lock);
        else
            work_.wait(lock);
        idle_--;
    }
}

// Until no job is running, and none is left.
void Queue::serve_all(Lock &lock)
{
    while (is_served_ || !jobs_.empty()) {
        if (is_served_)
            news_.wait(lock);
        else
            serve_one(lock);
    }
}

void Queue::push(std::shared_ptr<Job> job, bool is_small)
{
    std::lock_guard<std::mutex> guard(lock_);

    jobs_.push_back(std::move(job));
    pushed_++;
    if (is_small)
        see_to_jobs();
    else
        make_all_due();
}

void Queue::hurry()
{
    std::lock_guard<std::mutex> guard(lock_);

    make_all_due();
}

void Queue::run_now(Job &job)
{
    Lock lock(lock_);

    serve_all(lock);
    run_one(lock, job);
}

bool Queue::wait_for(Job &job, std::chrono::steady_clock::time_point deadline)
{
    const bool is_endless = deadline == std::chrono::steady_clock::time_point::max();
    Lock lock(lock_);

    if (!is_endless)
        make_all_due();
    while (!job.is_done_) {
        // A job that is run here cannot be left when a deadline passes.
        if (!is_served_ && !jobs_.empty() && is_endless)
            serve_one(lock);
        else if (is_endless)
            news_.wait(lock);
        else if (news_.wait_until(lock, deadline) == std::cv_status::timeout)
            return job.is_done_;
    }
    return true;
}

bool Queue::is_idle()
{
    std::lock_guard<std::mutex> guard(lock_);

    return !is_served_ && jobs_.empty();
}

void Queue::drain()
{
    const auto mine = std::count(calling_back.begin(), calling_back.end(), this);
    Lock lock(lock_);

    serve_all(lock);
    news_.wait(lock, [&] { return telling_ <= static_cast<size_t>(mine); });
}

} // namespace tutti_torch
