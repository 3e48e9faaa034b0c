// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <algorithm>

#include <pthread.h>

namespace tutti_torch {

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

// Jobs that are queued will be run by somebody. The lock is held.
void Queue::see_to_jobs()
{
    if (!jobs_.empty() && !is_served_ && idle_ > 0)
        work_.notify_one();
    else if (!jobs_.empty() && !is_served_ && !is_closing_)
        threads_.emplace_back([this] { serve(); });
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
    run_one(lock, *job);
}

void Queue::serve()
{
    Lock lock(lock_);

    pthread_setname_np(pthread_self(), "tutti-torch");
    while (!is_closing_ || !jobs_.empty()) {
        if (!jobs_.empty() && !is_served_) {
            serve_one(lock);
            continue;
        }
        idle_++;
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

void Queue::push(std::shared_ptr<Job> job)
{
    std::lock_guard<std::mutex> guard(lock_);

    jobs_.push_back(std::move(job));
    see_to_jobs();
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
