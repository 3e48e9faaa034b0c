// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <algorithm>

#include <pthread.h>

namespace tutti_torch {

using namespace std::chrono_literals;

// The time between two looks of a thread at its queue. A look takes a few microseconds, so watching
// takes a hundredth of a core. Most programs compute for longer between two calls.
static constexpr auto kInterval = 300us;
// After so many looks without a new job the watching thread sleeps.
static constexpr int kQuietLooks = 50;

Queue::~Queue()
{
    {
        std::lock_guard<std::mutex> guard(lock_);
        is_closing_ = true;
        job_ready_.notify_all();
    }
    for (auto &thread : threads_) {
        if (getpid() == process_)
            thread.join();
        else
            thread.detach(); // this is a child of fork, which does not have the thread
    }
}

// Makes sure that some thread will run the queued jobs. The lock is held.
void Queue::ensure_server()
{
    if (jobs_.empty() || is_served_ || (is_watched_ && !has_due_job()))
        return;
    if (nidle_ > 0)
        job_ready_.notify_one();
    else if (!is_closing_)
        threads_.emplace_back([this] { serve(); });
}

// Lets all queued jobs begin as soon as a thread is free. The lock is held.
void Queue::make_all_due()
{
    if (due_ == npushed_)
        return;
    due_ = npushed_;
    ensure_server();
}

bool Queue::has_due_job() const
{
    return npopped_ < due_;
}

// The queues whose callbacks run in this thread, outermost first. A callback may itself drain its
// queue, which must not wait for that callback.
static thread_local std::vector<const Queue *> calling_back;

// Runs a callback that ncallbacks_ counts already. The lock is held, but not during the callback.
template <class Callback> void Queue::run_callback(Lock &lock, Callback callback)
{
    lock.unlock();
    calling_back.push_back(this);
    callback();
    calling_back.pop_back();
    lock.lock();
    ncallbacks_--;
    job_done_.notify_all();
}

// Runs a job and then its callbacks. No other thread runs a job at the call. The lock is held, but
// not while the job or its callbacks run.
void Queue::run_one(Lock &lock, Job &job)
{
    is_served_ = true;
    lock.unlock();
    job.run();
    lock.lock();
    is_served_ = false;
    job.is_done_ = true;
    ensure_server();
    job_done_.notify_all();
    ncallbacks_++;
    run_callback(lock, [&job] { job.notify(); });
}

void Queue::call_back(std::function<void()> callback)
{
    std::lock_guard<std::mutex> guard(lock_);

    threads_.emplace_back([this, callback = std::move(callback)] {
        Lock lock(lock_);

        pthread_setname_np(pthread_self(), "tutti-torch");
        run_callback(lock, callback);
    });
    ncallbacks_++;
}

void Queue::serve_one(Lock &lock)
{
    std::shared_ptr<Job> job = std::move(jobs_.front());

    jobs_.pop_front();
    npopped_++;
    run_one(lock, *job);
}

// True if an idle thread is to watch the queue instead of sleeping. No watch is needed for jobs that
// wait for a running job: when that job ends, its thread calls ensure_server().
bool Queue::wants_watch() const
{
    if (is_watched_ || is_closing_)
        return false;
    return quiet_looks_ < kQuietLooks || (!jobs_.empty() && !is_served_);
}

// Waits for an interval, or until a job is due. Jobs that were queued before the interval are due
// after it.
void Queue::watch(Lock &lock)
{
    const uint64_t before = npushed_;

    quiet_looks_ = before == looked_at_ ? quiet_looks_ + 1 : 0;
    looked_at_ = before;
    is_watched_ = true;
    job_ready_.wait_for(lock, kInterval);
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
        nidle_++;
        if (wants_watch())
            watch(lock);
        else
            job_ready_.wait(lock);
        nidle_--;
    }
}

// Runs jobs, and waits for those of other threads, until no job is queued or running.
void Queue::serve_all(Lock &lock)
{
    while (is_served_ || !jobs_.empty()) {
        if (is_served_)
            job_done_.wait(lock);
        else
            serve_one(lock);
    }
}

void Queue::push(std::shared_ptr<Job> job, bool is_small)
{
    std::lock_guard<std::mutex> guard(lock_);

    jobs_.push_back(std::move(job));
    npushed_++;
    if (is_small)
        ensure_server();
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
        // With a deadline this thread runs no job, because it could not leave the job in time.
        if (!is_served_ && !jobs_.empty() && is_endless)
            serve_one(lock);
        else if (is_endless)
            job_done_.wait(lock);
        else if (job_done_.wait_until(lock, deadline) == std::cv_status::timeout)
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
    const auto own_callbacks = std::count(calling_back.begin(), calling_back.end(), this);
    Lock lock(lock_);

    serve_all(lock);
    job_done_.wait(lock, [&] { return ncallbacks_ <= static_cast<size_t>(own_callbacks); });
}

} // namespace tutti_torch
