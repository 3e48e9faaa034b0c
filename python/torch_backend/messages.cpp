// SPDX-License-Identifier: Apache-2.0
// Sends and receives, each of which is a message of the group's mailbox, and the monitored barrier.
#include <mutex>

#include "backend.h"

namespace tutti_torch {

namespace {

// True for an error that has ended the mailbox. The others are mistakes in one call.
bool has_ended_mailbox(tuttiResult_t error)
{
    return error != tuttiInvalidArgument && error != tuttiInvalidUsage;
}

class MessageWork : public NumberedWork {
  public:
    // `wanted` is the caller's tensor, and `place` the one that the library reads or writes. They are
    // the same if the caller's tensor is plain (arguments.h).
    MessageWork(int rank, c10d::OpType type, const char *title, at::Tensor wanted,
                at::Tensor place, uint64_t number, std::chrono::milliseconds timeout,
                std::shared_ptr<Orphans> orphans, std::shared_ptr<Hooks> hooks)
        : NumberedWork(rank, type, title, Tensors{wanted}, number), wanted_(std::move(wanted)),
          place_(std::move(place)), timeout_(timeout), orphans_(std::move(orphans)),
          hooks_(std::move(hooks))
    {
    }

    // The caller has dropped the work. A receive that has not matched a message is canceled. Any other
    // message continues, and keeps its memory.
    ~MessageWork() override
    {
        if (request == nullptr ||
            tuttiRequestWait(&request, 0, nullptr, nullptr) != tuttiInProgress)
            return;
        if (opType_ != c10d::OpType::SEND)
            (void)tuttiRequestCancel(request);
        if (tuttiRequestWait(&request, 0, nullptr, nullptr) == tuttiInProgress)
            orphans_->add(request, place_);
    }

    bool isCompleted() override
    {
        std::unique_lock<std::mutex> guard(request_lock_, std::try_to_lock);

        if (!guard.owns_lock())
            return false; // another thread waits for the message
        try {
            return try_complete(0);
        } catch (...) {
            return true; // the message has ended with this error, which wait() throws
        }
    }

    bool isSuccess() const override
    {
        std::lock_guard<std::mutex> guard(request_lock_);

        return request == nullptr && !error_;
    }

    std::exception_ptr exception() const override
    {
        std::lock_guard<std::mutex> guard(request_lock_);

        return error_;
    }

    bool wait(std::chrono::milliseconds timeout) override
    {
        std::lock_guard<std::mutex> guard(request_lock_);

        if (!try_complete(timeout == kNoTimeout ? -1 : static_cast<int>(timeout.count())))
            TORCH_CHECK_WITH(DistBackendError, false, "tutti: ", c10d::opTypeToString(opType_),
                             ": not complete after ", timeout.count(),
                             " ms, the limit of this wait(); the message can still come");
        return true;
    }

    void synchronize() override {}
    int sourceRank() const override { return peer_; }
    std::vector<at::Tensor> result() override { return {wanted_}; }
    std::chrono::milliseconds getTimeout() const { return timeout_; } // not in older PyTorch

    // The time from the call until a query or a wait found the message complete.
    float getDuration() const override
    {
        std::lock_guard<std::mutex> guard(request_lock_);

        TORCH_CHECK(request == nullptr, "tutti: the message is not complete");
        return duration_ms_;
    }

    tuttiRequest_t request = nullptr; // null before the message has begun and after its end

  private:
    using Clock = std::chrono::steady_clock;

    // Waits for at most `timeout_ms` (-1: without a limit). Returns true if the message is complete. If
    // it has ended with an error, every call throws that error. The caller holds request_lock_.
    bool try_complete(int timeout_ms)
    {
        if (error_)
            std::rethrow_exception(error_);
        if (request == nullptr)
            return true;
        const tuttiResult_t result = tuttiRequestWait(&request, timeout_ms, &peer_, nullptr);

        if (result == tuttiInProgress)
            return false;
        try {
            check(result);
            if (!place_.is_same(wanted_) && opType_ != c10d::OpType::SEND) {
                at::NoGradGuard no_grad;

                wanted_.copy_(place_);
            }
        } catch (...) {
            error_ = std::current_exception();
        }
        duration_ms_ = std::chrono::duration<float, std::milli>(Clock::now() - begun_).count();
        finish(error_);
        if (!error_)
            hooks_->completion.call(getCompletionKey(), duration_ms_);
        else if (has_ended_mailbox(result))
            hooks_->fail();
        if (error_)
            std::rethrow_exception(error_);
        return true;
    }

    const at::Tensor wanted_, place_;
    const std::chrono::milliseconds timeout_;
    const std::shared_ptr<Orphans> orphans_;
    const std::shared_ptr<Hooks> hooks_;
    mutable std::mutex request_lock_; // guards `request` and the members below
    std::exception_ptr error_;
    int peer_ = -1; // the other rank, when the message is complete
    const Clock::time_point begun_ = Clock::now();
    float duration_ms_ = 0; // set when the message is complete
};

} // namespace

// Begins a message. If that throws in a batch, it also ends the coalescing of the batch, which PyTorch
// does not do.
WorkPtr Backend::message(Tensors &tensors, int peer, int tag, c10d::OpType type, const char *title)
{
    try {
        return begin_message(tensors, peer, tag, type, title);
    } catch (...) {
        is_coalescing_ = false;
        coalesced_.clear();
        messages_.clear();
        throw;
    }
}

WorkPtr Backend::begin_message(Tensors &tensors, int peer, int tag, c10d::OpType type,
                               const char *title)
{
    const bool is_send = type == c10d::OpType::SEND;
    const char *const function = is_send ? "send" : "recv";

    check_alive();
    const at::Tensor &tensor = only_tensor(tensors, function);

    if (!is_send)
        check_output(tensor, function);
    if (!tensor.device().is_cpu())
        return message_on_device({tensor, peer, is_send});
    const Wire wire = wire_of(tensor.scalar_type());
    at::Tensor place = is_send ? as_contiguous(tensor) : Output(tensor).place;
    auto work = c10::make_intrusive<MessageWork>(getRank(), type, title, tensor, place, number_,
                                                 options_->timeout, orphans_, hooks_);

    orphans_->reap();

    check(is_send ? tuttiMailboxSend(place.data_ptr(), wire.count(place), wire.type, peer, tag,
                                     mailbox_, &work->request)
                  : tuttiMailboxRecv(place.data_ptr(), wire.count(place), wire.type, peer, tag,
                                     mailbox_, &work->request));
    return collect_if_coalescing(work);
}

WorkPtr Backend::message_on_device(const OnDevice::Message &message)
{
    TORCH_CHECK_VALUE(message.peer != TUTTI_ANY_RANK,
                      "tutti: recv: a tensor on a device cannot be received from any rank; name it, "
                      "or receive into a CPU tensor");
    OnDevice &on_device = ensure_device(message.tensor.device());

    if (!is_coalescing_)
        return on_device.exchange(getRank(), {message}, ++number_);
    messages_.push_back(message);
    return nullptr; // endCoalescing() returns the work of all messages
}

WorkPtr Backend::send(Tensors &tensors, int to, int tag)
{
    return message(tensors, to, tag, c10d::OpType::SEND, "tutti:send");
}

WorkPtr Backend::recv(Tensors &tensors, int from, int tag)
{
    return message(tensors, from, tag, c10d::OpType::RECV, "tutti:recv");
}

WorkPtr Backend::recvAnysource(Tensors &tensors, int tag)
{
    return message(tensors, TUTTI_ANY_RANK, tag, c10d::OpType::RECVANYSOURCE, "tutti:recv");
}

void Orphans::add(tuttiRequest_t request, at::Tensor tensor)
{
    std::lock_guard<std::mutex> guard(lock_);

    requests_.emplace_back(request, std::move(tensor));
}

void Orphans::reap()
{
    std::lock_guard<std::mutex> guard(lock_);

    std::erase_if(requests_, [](auto &request) {
        return tuttiRequestWait(&request.first, 0, nullptr, nullptr) != tuttiInProgress;
    });
}

// ---- monitored barrier -----------------------------------------------------------------------

// This barrier uses the store only. So it can find ranks that call nothing, and its failure leaves the
// communicator usable.
void Backend::monitoredBarrier(const c10d::BarrierOptions &opts, bool names_all)
{
    const auto limit = opts.timeout == c10d::kUnsetTimeout ? options_->timeout : opts.timeout;
    const auto deadline = std::chrono::steady_clock::now() + limit;
    const std::string prefix = "tutti/barrier/" + std::to_string(++barriers_) + "/";
    std::string missing;

    if (getRank() != 0) {
        store_->set(prefix + std::to_string(getRank()), "here");
        try {
            store_->wait({prefix + "all"}, limit);
        } catch (const std::exception &) {
            TORCH_CHECK(false, "Rank ", getRank(),
                        " successfully reached monitoredBarrier, but received errors while waiting "
                        "for send/recv from rank 0. Please check rank 0 logs for faulty rank. It "
                        "did not answer within ", limit.count(), " ms.");
        }
        return;
    }
    for (int rank = 1; rank < getSize(); rank++) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());

        TORCH_CHECK(left.count() > 0 || !missing.empty(), "Rank 0 timed out in monitoredBarrier "
                    "after ", limit.count(), " ms, before it could look for rank ", rank);
        try {
            store_->wait({prefix + std::to_string(rank)},
                         std::max(left, std::chrono::milliseconds(1)));
            continue;
        } catch (const std::exception &) {
            missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
        }
        if (!names_all)
            break;
    }
    TORCH_CHECK(missing.empty(), names_all ? "Ranks " : "Rank ", missing,
                " failed to pass monitoredBarrier in ", limit.count(), " ms");
    store_->set(prefix + "all", "here");
}

} // namespace tutti_torch
