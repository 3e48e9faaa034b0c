// SPDX-License-Identifier: Apache-2.0
// Collectives and messages of tensors on a device, with PyTorch's rules for them: a call that is
// waited for at once is enqueued on the current stream; another one on a stream of the process group,
// after what the current stream holds, and its wait() makes the then current stream wait. The host
// does not wait for either.
//
// PyTorch's generic streams and events are used, so that the extension needs neither CUDA's headers
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

// The communicator of the ranks' devices. Works keep it, since they ask it for errors.
class DeviceComm {
  public:
    // Takes `comm`.
    DeviceComm(tuttiComm_t comm, c10::Device device);
    ~DeviceComm();

    DeviceComm(const DeviceComm &) = delete;
    DeviceComm &operator=(const DeviceComm &) = delete;

    c10::Device device() const { return stream_.device(); }
    const c10::Stream &stream() const { return stream_; }
    tuttiComm_t comm() const { return comm_; }

    // Throws what the communicator has failed with.
    void check_health() const;

  private:
    const tuttiComm_t comm_;
    const c10::Stream stream_; // of calls that are not waited for at once
};

class OnDevice {
  public:
    using Body = std::function<void(const Seat &seat)>;
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

    // Run `body`, which makes calls of the library on the stream that it gets.
    WorkPtr launch(int rank, c10d::OpType type, const char *title, const Tensors &inputs,
                   Tensors outputs, uint64_t number, bool is_async, const Body &body);
    // Messages, all at once. Between two ranks they meet in their order; there are no tags.
    WorkPtr exchange(int rank, const std::vector<Message> &messages, uint64_t number);

  private:
    const std::shared_ptr<DeviceComm> comm_;
    Scratch scratch_; // keeps nothing: PyTorch's allocator of device memory does
};

} // namespace tutti_torch
