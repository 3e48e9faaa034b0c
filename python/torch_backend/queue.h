// SPDX-License-Identifier: Apache-2.0
// The operations of one process group, in their order.
//
// Operations run one at a time. Each is a job. A blocking call runs its job in the calling thread.
// Other jobs are queued, and a thread of the queue runs them while the caller computes. A caller
// that waits for a job that has not begun runs the queued jobs itself, up to that job.
//
// Waking a thread takes longer than a small operation, and callers usually wait for a small one
// soon. So while the queue is in use, one of its threads watches the queue: it looks for jobs at
// intervals. A small job then wakes no thread. The watching thread runs a job that was in the queue
// for a whole interval. After some intervals without a new job the thread sleeps until a job wakes
// it.
//
// When a job is done, the thread that has run it also runs its callbacks. A callback may queue jobs
// and wait for them. So another thread runs jobs meanwhile. The queue starts a thread if none is
// idle.
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
    // Does the work. Throws nothing. No other job of the queue runs at the same time.
    virtual void run() = 0;
    // Runs the callbacks, after run(). The next job may run at the same time.
    virtual void notify() = 0;

  private:
    friend class Queue;
    bool is_done_ = false; // guarded by the queue's lock
};

class Queue {
  public:
    // Runs the queued jobs, and ends the threads.
    ~Queue();

    // Queues a job. A small one may begin up to two intervals later, unless a caller waits for it.
    void push(std::shared_ptr<Job> job, bool is_small);

    // Lets all queued jobs begin as soon as a thread is free. Called when a caller polls for a job.
    void hurry();

    // Runs the callback in a new thread, so that no caller that waits for other jobs has to run it.
    // drain() waits for the callback.
    void call_back(std::function<void()> callback);

    // Runs a job in this thread, after all jobs that were queued before it.
    void run_now(Job &job);

    // Returns true when the job is done. Without a deadline (time_point::max()) this thread runs
    // queued jobs meanwhile. Returns false if the deadline passes first.
    bool wait_for(Job &job, std::chrono::steady_clock::time_point deadline);

    // Returns when no job is queued or running, and no callback runs, except those that have called
    // this function.
    void drain();

    // True if no job is queued or running. Callbacks may be running.
    bool is_idle();

  private:
    using Lock = std::unique_lock<std::mutex>;

    template <class Callback> void run_callback(Lock &lock, Callback callback);
    void run_one(Lock &lock, Job &job);
    void serve_one(Lock &lock);
    void make_all_due();
    bool has_due_job() const;
    bool wants_watch() const;
    void watch(Lock &lock);
    void serve_all(Lock &lock);
    void serve();
    void ensure_server();

    std::mutex lock_;                   // guards all members below, and Job::is_done_
    std::condition_variable job_ready_; // idle threads of the queue wait for it
    std::condition_variable job_done_;  // waits for jobs and callbacks use it
    std::deque<std::shared_ptr<Job>> jobs_;
    // Jobs that were queued, and jobs that were taken from the queue. The count after a job was
    // queued is its number.
    uint64_t npushed_ = 0, npopped_ = 0;
    uint64_t due_ = 0;        // jobs up to this number are to begin as soon as a thread is free
    bool is_watched_ = false; // a thread looks at the queue at intervals
    uint64_t looked_at_ = 0;  // npushed_ at the last look
    int quiet_looks_ = 0;     // looks in a row that found no new job
    bool is_served_ = false;  // a thread runs a job
    bool is_closing_ = false; // the destructor has begun
    size_t ncallbacks_ = 0;   // callbacks, and notify() of jobs, that run or are about to
    size_t nidle_ = 0;        // threads of the queue that wait for jobs
    std::vector<std::thread> threads_;
    const pid_t process_ = getpid(); // in a child of fork the threads do not exist
};

} // namespace tutti_torch
