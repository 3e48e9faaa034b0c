// SPDX-License-Identifier: Apache-2.0
#include "queue.h"

#include <pthread.h>

namespace tutti_torch {

Queue::~Queue()
{
    {
        std::lock_guard<std::mutex> guard(lock_);
        is_closing_ = true;
        work_.notify_all();
    }
    if (thread_.joinable())
        thread_.join();
}

// The first job in the queue. Nobody else serves meanwhile.
void Queue::serve_one(std::unique_lock<std::mutex> &lock)
{
    std::shared_ptr<Job> job = std::move(jobs_.front());

    jobs_.pop_front();
    is_served_ = true;
    lock.unlock();
    job->run();
    lock.lock();
    is_served_ = false;
    job->is_done_ = true;
    news_.notify_all();
}

void Queue::serve()
{
    std::unique_lock<std::mutex> lock(lock_);

    pthread_setname_np(pthread_self(), "tutti-torch");
    for (;;) {
        if (!jobs_.empty() && !is_served_)
            serve_one(lock);
        else if (is_closing_ && jobs_.empty())
            return;
        else if (!jobs_.empty())
            news_.wait(lock);
        else
            work_.wait(lock);
    }
}

void Queue::push(std::shared_ptr<Job> job)
{
    std::lock_guard<std::mutex> guard(lock_);

    if (!thread_.joinable())
        thread_ = std::thread([this] { serve(); });
    jobs_.push_back(std::move(job));
    work_.notify_one();
}

void Queue::run_now(Job &job)
{
    std::unique_lock<std::mutex> lock(lock_);

    while (is_served_ || !jobs_.empty()) {
        if (is_served_)
            news_.wait(lock);
        else
            serve_one(lock);
    }
    is_served_ = true;
    lock.unlock();
    job.run();
    lock.lock();
    is_served_ = false;
    job.is_done_ = true;
    if (!jobs_.empty())
        work_.notify_one();
    news_.notify_all();
}

bool Queue::wait_for(Job &job, std::chrono::steady_clock::time_point deadline)
{
    const bool is_endless = deadline == std::chrono::steady_clock::time_point::max();
    std::unique_lock<std::mutex> lock(lock_);

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
    std::unique_lock<std::mutex> lock(lock_);

    while (is_served_ || !jobs_.empty()) {
        if (is_served_)
            news_.wait(lock);
        else
            serve_one(lock);
    }
}

} // namespace tutti_torch
