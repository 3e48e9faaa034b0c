// SPDX-License-Identifier: Apache-2.0
// The operations of one process group, in their order.
//
// They run one at a time. A call that is waited for at once runs in the calling thread. Others are
// queued, and a thread of the queue runs them while the caller computes. Waking that thread takes
// longer than a small operation, so a caller that waits for a job which nobody has begun serves the
// queue itself, up to that job.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace tutti_torch {

class Job {
  public:
    virtual ~Job() = default;
    virtual void run() = 0;

  private:
    friend class Queue;
    bool is_done_ = false; // guarded by the queue's lock
};

class Queue {
  public:
    ~Queue();

    // Queue a job.
    void push(std::shared_ptr<Job> job);

    // Run a job in this thread, after all that were queued before.
    void run_now(Job &job);

    // Help with the queue until the job is done. False: the deadline has passed.
    bool wait_for(Job &job, std::chrono::steady_clock::time_point deadline);

    // Returns when no job is running, and none is left.
    void drain();
    bool is_idle();

  private:
    void serve_one(std::unique_lock<std::mutex> &lock);
    void serve();

    std::mutex lock_;
    std::condition_variable work_, news_;
    std::deque<std::shared_ptr<Job>> jobs_;
    bool is_served_ = false; // a thread runs a job
    bool is_closing_ = false;
    std::thread thread_;
};

} // namespace tutti_torch
