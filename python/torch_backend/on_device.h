// SPDX-License-Identifier: Apache-2.0
// Collectives and messages of tensors on a device, with PyTorch's rules for them. A blocking call is
// enqueued on the current stream. An asynchronous call is enqueued on a stream of the process group,
// after the work that the current stream holds. Its wait() makes the stream that is current then
// wait. The host waits for neither.
//
// This code uses PyTorch's generic streams and events, so the extension needs neither CUDA's headers
// nor its libraries.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "types.h"

namespace tutti_torch {

// The communicator of the ranks' devices. Each work shares it, because it asks the communicator for
// errors.
class DeviceComm {
  public:
    // Owns `comm` from now on, and destroys it at the end.
    DeviceComm(tuttiComm_t comm, c10::Device device);
    ~DeviceComm();

    DeviceComm(const DeviceComm &) = delete;
    DeviceComm &operator=(const DeviceComm &) = delete;

    c10::Device device() const { return stream_.device(); }
    const c10::Stream &stream() const { return stream_; }
    tuttiComm_t comm() const { return comm_; }

    // Throws the error of the communicator, if it has failed.
    void check_health() const;

  private:
    const tuttiComm_t comm_;
    const c10::Stream stream_; // asynchronous calls are enqueued here
};

class OnDevice {
  public:
    using Body = std::function<void(const CallContext &context)>;
    using Tensors = std::vector<at::Tensor>;
    using WorkPtr = c10::intrusive_ptr<c10d::Work>;

    struct Message {
        at::Tensor tensor;
        int peer;
        bool is_send;
    };

    explicit OnDevice(std::shared_ptr<DeviceComm> comm) : comm_(std::move(comm)) {}

    c10::Device device() const { return comm_->device(); }
    tuttiComm_t comm() const { return comm_->comm(); }

    // Runs `body`, which makes calls of the library on the stream of its context.
    WorkPtr launch(int rank, c10d::OpType type, const char *title, const Tensors &inputs,
                   Tensors outputs, uint64_t number, bool is_async, const Body &body);
    // Enqueues messages that progress at the same time. The k-th send to a rank matches its k-th
    // receive from this rank, because there are no tags.
    WorkPtr exchange(int rank, const std::vector<Message> &messages, uint64_t number);

  private:
    const std::shared_ptr<DeviceComm> comm_;
    Scratch scratch_; // keeps no device memory, because PyTorch's allocator does that
};

} // namespace tutti_torch
