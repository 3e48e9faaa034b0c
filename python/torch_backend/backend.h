// SPDX-License-Identifier: Apache-2.0
// torch.distributed's process group over libtutti.
#pragma once

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <tutti.h>

#include <atomic>

#include "arguments.h"
#include "hooks.h"
#include "on_device.h"
#include "queue.h"
#include "types.h"
#include "work.h"

namespace tutti_torch {

// Converts a limit for the library, where 0 means no limit. Limits of 25 days and more, which do not
// fit an int, become 0.
int as_int_ms(std::chrono::milliseconds limit);

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Messages whose works the caller has dropped. Their memory has to stay until they are complete.
class Orphans {
  public:
    void add(tuttiRequest_t request, at::Tensor tensor);
    // Releases the messages that are complete.
    void reap();

  private:
    std::mutex lock_;
    std::vector<std::pair<tuttiRequest_t, at::Tensor>> requests_;
};

class Backend : public c10d::Backend {
  public:
    // Programs make these options, and each process group has some. The base's `timeout` is the limit of
    // each operation of a process group. In a program's options it is of no use, because PyTorch sets it to
    // its own default before it passes the options on. The limit that the program has asked for is in `limit`.
    struct Options : c10d::Backend::Options {
        using Limit = std::optional<std::chrono::milliseconds>;

        explicit Options(Limit of_operations = {}, Limit of_init = {})
            : c10d::Backend::Options("tutti", of_operations.value_or(kBackendDefaultTimeout)),
              limit(of_operations), init_limit(of_init)
        {
        }

        // Older PyTorch does not have this function, so it is without "override".
        c10::intrusive_ptr<c10d::Backend::Options> clone() const
        {
            return c10::make_intrusive<Options>(*this);
        }

        Limit limit;      // for each operation; empty: that of the call which makes the process group
        Limit init_limit; // for forming the communicator; empty: the limit for operations
    };

    // Forms the communicator of all `size` ranks, which find each other through the store.
    static c10::intrusive_ptr<Backend> make(const c10::intrusive_ptr<c10d::Store> &store, int rank,
                                            int size, const c10::intrusive_ptr<Options> &options);
    // Ends all process groups that the program has not destroyed. To be called before the interpreter
    // ends.
    static void end_all();

    // Use make() instead. This constructor is public only because intrusive_ptr calls it.
    Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
            c10::intrusive_ptr<Options> options);
    ~Backend() override;

    const std::string getBackendName() const override { return "tutti"; }
    c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }

    // ---- collectives ---------------------------------------------------------------------
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
    WorkPtr allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts) override;
    WorkPtr allreduce_coalesced(Tensors &tensors,
                                const c10d::AllreduceCoalescedOptions &opts) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &opts) override;
    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts) override;
    WorkPtr allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                      const c10d::AllgatherOptions &opts) override;
    WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
                            const c10d::AllgatherOptions &opts) override;
    WorkPtr allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &opts) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::AllgatherOptions &opts) override;
    WorkPtr gather(std::vector<Tensors> &outputs, Tensors &inputs,
                   const c10d::GatherOptions &opts) override;
    // Older PyTorch does not have this function, so it is without "override".
    WorkPtr gather_into_tensor(at::Tensor &output, at::Tensor &input,
                               const c10d::GatherOptions &opts);
    WorkPtr scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                    const c10d::ScatterOptions &opts) override;
    WorkPtr reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                           const c10d::ReduceScatterOptions &opts) override;
    WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::ReduceScatterOptions &opts) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::ReduceScatterOptions &opts) override;
    WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input,
                          std::vector<int64_t> &output_sizes, std::vector<int64_t> &input_sizes,
                          const c10d::AllToAllOptions &opts) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs,
                     const c10d::AllToAllOptions &opts) override;
    WorkPtr barrier(const c10d::BarrierOptions &opts) override;
    void monitoredBarrier(const c10d::BarrierOptions &opts, bool names_all) override;

    // ---- messages ------------------------------------------------------------------------
    WorkPtr send(Tensors &tensors, int to, int tag) override;
    WorkPtr recv(Tensors &tensors, int from, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;

    // ---- life ----------------------------------------------------------------------------
    bool supportsSplitting() const override { return true; }
    bool supportsCoalescing() const override { return true; }
    void eagerConnectSingleDevice(at::Device device) override;
    c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store> &store,
                                            const std::vector<int> &ranks,
                                            const c10::intrusive_ptr<c10d::Backend::Options> &opts)
        override;
    void startCoalescing() override;
    WorkPtr endCoalescing() override;
    void setTimeout(std::chrono::milliseconds timeout) override;
    // Older PyTorch sets a first number when a group is made. Here the numbers of all ranks begin with 0.
    void setSequenceNumberForGroup() override {}
    uint64_t getSequenceNumberForGroup() override { return number_; }
    void abort() override;
    void shutdown() override;

#ifdef C10D_BACKEND_HAS_HOOKS // PyTorch 2.14 and newer
    void registerAbortHook(int64_t id, c10d::AbortHook hook) override;
    void unregisterAbortHook(int64_t id) override { hooks_->abort.remove(id); }
#endif
#ifdef TUTTI_TORCH_HAS_COMPLETION_HOOKS // PyTorch 2.15 and newer
    bool supportsAbortHooks() const override { return true; }
    bool supportsCompletionHooks() const override;
    void registerCompletionHook(int64_t id, c10d::CompletionHook hook) override;
    void unregisterCompletionHook(int64_t id) override { hooks_->completion.remove(id); }
#endif

  private:
    template <class Body>
    WorkPtr launch_at(c10::Device device, c10d::OpType type, const char *title,
                      const Tensors &inputs, Tensors outputs, bool is_async,
                      std::chrono::milliseconds timeout, Body body);
    template <class Body>
    WorkPtr launch(c10d::OpType type, const char *title, const Tensors &inputs, Tensors outputs,
                   bool is_async, std::chrono::milliseconds timeout, Body body);
    void check_alive() const;
    tuttiComm_t form(const char *key, int device);
    OnDevice &ensure_device(c10::Device device);
    WorkPtr collect_if_coalescing(WorkPtr work);
    WorkPtr message(Tensors &tensors, int peer, int tag, c10d::OpType type, const char *title);
    WorkPtr begin_message(Tensors &tensors, int peer, int tag, c10d::OpType type,
                          const char *title);
    WorkPtr message_on_device(const OnDevice::Message &message);
    void stop();
    void close();
    void end();

    const c10::intrusive_ptr<c10d::Store> store_;
    const c10::intrusive_ptr<Options> options_;
    const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
    std::shared_ptr<Orphans> orphans_;
    const std::shared_ptr<Hooks> hooks_ = std::make_shared<Hooks>(queue_);
    tuttiComm_t comm_ = nullptr;          // ranks on the host; null after the end
    tuttiMailbox_t mailbox_ = nullptr;    // for messages of CPU tensors; null after the end
    std::unique_ptr<OnDevice> on_device_; // null until the first call with tensors on a device
    Scratch scratch_;                     // for calls on the host
    std::atomic<uint64_t> number_ = 0;    // of the last collective; threads may share a group
    uint64_t barriers_ = 0;               // calls of monitoredBarrier
    bool is_coalescing_ = false;
    std::vector<WorkPtr> coalesced_;          // works since startCoalescing()
    std::vector<OnDevice::Message> messages_; // messages on a device that endCoalescing() will begin
};

} // namespace tutti_torch
