// SPDX-License-Identifier: Apache-2.0
// The operations of one process group, in their order.
//
// They run one at a time. A call that is waited for at once runs in the calling thread. Others are
// queued, and a thread of the queue runs them while the caller computes. A caller that waits for a
// job which nobody has begun serves the queue itself, up to that job.
//
// Waking a thread takes longer than a small operation, and callers most often wait for a small one
// soon. So while the queue is in use, one of its threads looks at it at intervals, and a small job
// that is queued wakes no thread. A job that was in the queue for a whole interval is run by the
// thread that looks. After some intervals without a new job that thread sleeps until a job wakes
// it.
//
// When a job is done, the thread that has run it calls back whoever wants to know. A callback may
// queue jobs and wait for them, so meanwhile another thread serves: the queue starts one if it has
// none that is idle.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <unistd.h>

namespace tutti_torch {

class Job {
  public:
    virtual ~Job() = default;
    virtual void run() = 0;
    // After it, when the next job may run: the callbacks.
    virtual void tell() = 0;

  private:
    friend class Queue;
    bool is_done_ = false; // guarded by the queue's lock
};

class Queue {
  public:
    ~Queue();

    // Queue a job. A small one may begin two intervals later, unless a caller waits for it.
    void push(std::shared_ptr<Job> job, bool is_small);

    // The queued jobs begin as soon as a thread is free: a caller polls for them.
    void hurry();

    // Call back in a thread of its own, and not in that of a caller which waits for other jobs.
    // drain() waits for it.
    void call_back(std::function<void()> callback);

    // Run a job in this thread, after all that were queued before.
    void run_now(Job &job);

    // Help with the queue until the job is done. False: the deadline has passed.
    bool wait_for(Job &job, std::chrono::steady_clock::time_point deadline);

    // Returns when no job is running or calling back, and none is left.
    void drain();
    bool is_idle();

  private:
    using Lock = std::unique_lock<std::mutex>;

    template <class Callback> void tell(Lock &lock, Callback callback);
    void run_one(Lock &lock, Job &job);
    void serve_one(Lock &lock);
    void make_all_due();
    bool has_due_job() const;
    bool wants_watch() const;
    void look_later(Lock &lock);
    void serve_all(Lock &lock);
    void serve();
    void see_to_jobs();

    std::mutex lock_;                     // of all below
    std::condition_variable work_, news_; // for idle threads; for those who wait for a job
    std::deque<std::shared_ptr<Job>> jobs_;
    uint64_t pushed_ = 0, popped_ = 0; // jobs; they have numbers in their order
    uint64_t due_ = 0;        // jobs up to this number are to begin as soon as a thread is free
    bool is_watched_ = false; // a thread looks at the queue at intervals
    uint64_t looked_at_ = 0;  // pushed_ as the last look found it
    int quiet_looks_ = 0;     // since a look last found a new job
    bool is_served_ = false;  // a thread runs a job
    bool is_closing_ = false;
    size_t telling_ = 0; // jobs that call back
    size_t idle_ = 0;    // threads of the queue that wait for jobs
    std::vector<std::thread> threads_;
    const pid_t process_ = getpid();
};

} // namespace tutti_torch
