// SPDX-License-Identifier: Apache-2.0
#include "on_device.h"

#include <ATen/core/grad_mode.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <thread>

#include "arguments.h"
#include "work.h"

namespace tutti_torch {

static c10::Stream current_stream(c10::Device device)
{
    return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

// Another handle of CUDA's default stream, CU_STREAM_LEGACY. Its usual handle is NULL, by which the
// library understands a call that is complete when it returns.
static void *const default_stream = reinterpret_cast<void *>(1);

static tuttiStream_t handle_of(const c10::Stream &stream)
{
    void *handle = stream.native_handle();

    return reinterpret_cast<tuttiStream_t>(handle != nullptr ? handle : default_stream);
}

// ---- the communicator ------------------------------------------------------------------------

DeviceComm::DeviceComm(tuttiComm_t comm, c10::Device device)
    : comm_(comm),
      stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device))
{
}

DeviceComm::~DeviceComm()
{
    (void)tuttiCommDestroy(comm_);
}

void DeviceComm::check_health() const
{
    tuttiResult_t error = tuttiSuccess;

    check(tuttiCommGetAsyncError(comm_, &error));
    TORCH_CHECK_WITH(DistBackendError, error == tuttiSuccess || error == tuttiInProgress,
                     "tutti: ", tuttiGetErrorString(error), ": ", tuttiGetLastError(comm_));
}

// ---- works -----------------------------------------------------------------------------------

namespace {

class DeviceWork : public NumberedWork {
  public:
    DeviceWork(int rank, c10d::OpType type, const char *title, const std::vector<at::Tensor> &inputs,
               std::vector<at::Tensor> outputs, uint64_t number, std::shared_ptr<DeviceComm> comm,
               const c10::Stream &stream)
        : NumberedWork(rank, type, title, inputs, number), outputs_(std::move(outputs)),
          comm_(std::move(comm)), stream_(stream), end_(stream.device_type())
    {
        end_.record(stream);
        if (recordFunctionEndCallback_)
            recordFunctionEndCallback_();
    }

    bool isCompleted() override { return end_.query(); }

    bool isSuccess() const override
    {
        tuttiResult_t error = tuttiSuccess;

        return end_.query() && tuttiCommGetAsyncError(comm_->comm(), &error) == tuttiSuccess &&
               error == tuttiSuccess;
    }

    std::exception_ptr exception() const override
    {
        try {
            comm_->check_health();
        } catch (...) {
            return std::current_exception();
        }
        return nullptr;
    }

    void synchronize() override { end_.block(current_stream(comm_->device())); }

    // Makes the current stream wait. The host waits as well if a limit is given, and for a barrier.
    bool wait(std::chrono::milliseconds timeout) override
    {
        const bool has_limit = timeout > kNoTimeout;
        const auto deadline = std::chrono::steady_clock::now() + timeout;

        synchronize();
        while ((has_limit || opType_ == c10d::OpType::BARRIER) && !end_.query()) {
            comm_->check_health();
            TORCH_CHECK_WITH(DistBackendError,
                             !has_limit || std::chrono::steady_clock::now() < deadline, "tutti: ",
                             c10d::opTypeToString(opType_), ", number ", number_,
                             ": not complete after ", timeout.count(),
                             " ms, the limit of this wait(); the operation goes on");
            std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
        comm_->check_health();
        return true;
    }

    std::vector<at::Tensor> result() override { return outputs_; }

    // The future is complete at once. PyTorch's futures of device tensors make streams wait, and not
    // the host.
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override
    {
        const c10::StreamGuard guard(stream_);
        auto future = c10::make_intrusive<c10::ivalue::Future>(
            c10::ListType::create(c10::TensorType::get()),
            std::vector<c10::Device>{stream_.device()});

        future->markCompleted(c10::IValue(outputs_));
        return future;
    }

  private:
    const std::vector<at::Tensor> outputs_;
    const std::shared_ptr<DeviceComm> comm_;
    const c10::Stream stream_;
    c10::Event end_;
};

} // namespace

// ---- launching -------------------------------------------------------------------------------

OnDevice::WorkPtr OnDevice::launch(int rank, c10d::OpType type, const char *title,
                                   const Tensors &inputs, Tensors outputs, uint64_t number,
                                   bool is_async, const Body &body)
{
    const c10::impl::VirtualGuardImpl impl(device().type());
    const c10::DeviceGuard device_guard(device());
    const c10::Stream current = current_stream(device());
    const c10::Stream stream = is_async ? comm_->stream() : current;

    comm_->check_health();
    if (is_async) {
        c10::Event ready(device().type());

        ready.record(current);
        ready.block(stream);
        // The allocator must not reuse memory of the tensors before this stream is done with it.
        for (const Tensors *list : {&inputs, &std::as_const(outputs)})
            for (const auto &tensor : *list)
                if (tensor.has_storage())
                    impl.recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
    }
    {
        const at::NoGradGuard no_grad;
        const c10::StreamGuard guard(stream);

        body(CallContext{comm_->comm(), handle_of(stream), &scratch_});
    }
    return c10::make_intrusive<DeviceWork>(rank, type, title, inputs, std::move(outputs), number,
                                           comm_, stream);
}

OnDevice::WorkPtr OnDevice::exchange(int rank, const std::vector<Message> &messages,
                                     uint64_t number)
{
    Tensors tensors;

    for (const auto &message : messages)
        tensors.push_back(message.tensor);
    const bool is_one = messages.size() == 1;
    const auto type = !is_one               ? c10d::OpType::COALESCED
                      : messages[0].is_send ? c10d::OpType::SEND
                                            : c10d::OpType::RECV;

    return launch(rank, type, "tutti:messages", tensors, tensors, number, true,
                  [&](const CallContext &context) {
                      Tensors places;

                      for (const auto &[tensor, peer, is_send] : messages)
                          places.push_back(is_send ? as_contiguous(tensor) : Output(tensor).place);
                      check(tuttiGroupStart());
                      tuttiResult_t result = tuttiSuccess;

                      for (size_t i = 0; i < messages.size() && result == tuttiSuccess; i++) {
                          const Wire wire = wire_of(places[i].scalar_type());
                          const size_t count = wire.count(places[i]);

                          result = messages[i].is_send
                                       ? tuttiSend(places[i].data_ptr(), count, wire.type,
                                                   messages[i].peer, context.comm, context.stream)
                                       : tuttiRecv(places[i].data_ptr(), count, wire.type,
                                                   messages[i].peer, context.comm, context.stream);
                      }
                      const tuttiResult_t ended = tuttiGroupEnd();

                      check(result);
                      check(ended);
                      for (size_t i = 0; i < messages.size(); i++)
                          if (!messages[i].is_send && !places[i].is_same(messages[i].tensor))
                              messages[i].tensor.copy_(places[i]);
                  });
}

} // namespace tutti_torch
