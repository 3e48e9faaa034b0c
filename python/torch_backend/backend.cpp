// SPDX-License-Identifier: Apache-2.0
// Forms, splits and ends process groups, and coalesces operations.
#include <Python.h>

#include "backend.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tutti_torch {

// ---- forming -------------------------------------------------------------------------------

// Returns the id of a new communicator. Rank 0 makes the id, and the others get it from the store.
// torchrun may restart all ranks with a store that still has the keys of the last start, so the
// number of restarts is a part of the key.
static tuttiUniqueId share_id(c10d::Store &store, const char *name, int rank)
{
    const char *restarts = std::getenv("TORCHELASTIC_RESTART_COUNT");
    const std::string key = std::string(name) + "/" + (restarts != nullptr ? restarts : "0");
    tuttiUniqueId id;

    if (rank == 0) {
        check(tuttiGetUniqueId(&id));
        store.set(key, std::vector<uint8_t>(id.internal, id.internal + sizeof id.internal));
        return id;
    }
    const std::vector<uint8_t> bytes = store.get(key);

    TORCH_CHECK_WITH(DistBackendError, bytes.size() == sizeof id.internal,
                     "tutti: the store has ", bytes.size(), " bytes under \"", key,
                     "\" instead of the unique id of rank 0 (", sizeof id.internal,
                     " bytes); give this process group a store of its own");
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
    return id;
}

// Returns the name of a communicator for a process group. Names of groups that list their ranks are
// too long for the library. The end of a long name is replaced by a hash of the whole name (FNV-1a),
// which is the same on all ranks.
static std::string as_comm_name(const std::string &group_name)
{
    constexpr size_t longest = 63, digits = 16;
    constexpr uint64_t fnv_offset = 0xcbf29ce484222325u, fnv_prime = 0x100000001b3u;
    uint64_t hash = fnv_offset;
    char end[digits + 2];

    if (group_name.size() <= longest)
        return group_name;
    for (const char letter : group_name)
        hash = (hash ^ static_cast<uint8_t>(letter)) * fnv_prime;
    std::snprintf(end, sizeof end, "~%016llx", static_cast<unsigned long long>(hash));
    return group_name.substr(0, longest - digits - 1) + end;
}

int as_int_ms(std::chrono::milliseconds limit)
{
    return limit.count() <= 0 || limit.count() > INT_MAX ? 0 : static_cast<int>(limit.count());
}

// Forms a communicator of all ranks, each on its device. With -1 the ranks are on the host. `key` is
// the key in the store by which the ranks share the id.
tuttiComm_t Backend::form(const char *key, int device)
{
    const tuttiUniqueId id = share_id(*store_, key, getRank());
    const std::string name = as_comm_name(options_->group_name);
    tuttiConfig_t config = TUTTI_CONFIG_INITIALIZER;
    tuttiComm_t comm = nullptr;

    config.timeoutMs = as_int_ms(options_->timeout);
    config.initTimeoutMs = as_int_ms(options_->init_limit.value_or(options_->timeout));
    if (config.initTimeoutMs == 0)
        config.initTimeoutMs = INT_MAX;
    config.commName = name.c_str();
    config.device = device;
    check(tuttiCommInitRankConfig(&comm, getSize(), id, getRank(), &config));
    return comm;
}

Backend::Backend(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                 c10::intrusive_ptr<Options> options)
    : c10d::Backend(rank, size), store_(std::move(store)), options_(std::move(options)),
      orphans_(std::make_shared<Orphans>())
{
    comm_ = form("tutti/host", -1);
    const tuttiResult_t result = tuttiMailboxCreate(comm_, &mailbox_);

    if (result != tuttiSuccess) {
        const std::string message = tuttiGetLastError(nullptr);

        (void)tuttiCommDestroy(comm_);
        TORCH_CHECK_WITH(DistBackendError, false, "tutti: ", message);
    }
    init();
}

// The first call with tensors on devices forms the communicator for devices. Forming is collective,
// and so is that call.
OnDevice &Backend::ensure_device(c10::Device device)
{
    if (!on_device_)
        on_device_ = std::make_unique<OnDevice>(std::make_shared<DeviceComm>(
            form("tutti/device", device.has_index() ? device.index() : 0), device));
    TORCH_CHECK_VALUE(on_device_->device() == device, "tutti: this rank of the process group works on ",
                      on_device_->device(), "; the tensors are on ", device);
    return *on_device_;
}

void Backend::eagerConnectSingleDevice(at::Device device)
{
    if (!device.is_cpu())
        (void)ensure_device(device);
}

// ---- ending --------------------------------------------------------------------------------

void Backend::check_alive() const
{
    TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr,
                     "tutti: this process group has been shut down");
}

// Releases the interpreter's lock, if this thread holds it, for the life of the object. A job that
// ends in another thread may need the lock to release its tensors.
class GilRelease {
  public:
    GilRelease()
    {
        if (Py_IsInitialized() && PyGILState_Check())
            state_ = PyEval_SaveThread();
    }
    ~GilRelease()
    {
        if (state_ != nullptr)
            PyEval_RestoreThread(state_);
    }

  private:
    PyThreadState *state_ = nullptr;
};

void Backend::close()
{
    const GilRelease release;

    queue_->drain();
    on_device_.reset();
    (void)tuttiMailboxDestroy(mailbox_);
    (void)tuttiCommDestroy(comm_);
    mailbox_ = nullptr;
    comm_ = nullptr;
    orphans_->reap();
}

// Ends the process group without waiting for peers: operations in progress are aborted, because no
// caller waits for them any more, and their peers may be gone.
void Backend::end()
{
    if (comm_ == nullptr)
        return;
    if (!queue_->is_idle())
        stop();
    close();
}

Backend::~Backend()
{
    end();
}

// ---- the end of the interpreter --------------------------------------------------------------

static std::mutex living_lock;
static std::vector<c10::weak_intrusive_ptr<Backend>> living;

c10::intrusive_ptr<Backend> Backend::make(const c10::intrusive_ptr<c10d::Store> &store, int rank,
                                          int size, const c10::intrusive_ptr<Options> &options)
{
    // From here on `timeout` is the limit. `limit` is reset, so that a group that is split from this
    // one can be given another timeout.
    options->timeout = options->limit.value_or(options->timeout);
    options->limit.reset();
    options->init_limit = options->init_limit.value_or(options->timeout);
    auto made = c10::make_intrusive<Backend>(store, rank, size, options);
    std::lock_guard<std::mutex> guard(living_lock);

    std::erase_if(living, [](const auto &backend) { return backend.expired(); });
    living.emplace_back(made);
    return made;
}

// After this, no thread of a queue holds a tensor. Such a thread would need the interpreter to release
// the tensor, even after the interpreter has ended.
void Backend::end_all()
{
    std::unique_lock<std::mutex> guard(living_lock);
    const auto all = std::exchange(living, {});

    guard.unlock();
    for (const auto &backend : all)
        if (auto locked = backend.lock())
            locked->end();
}

// All ranks end the process group. Operations in progress are completed first.
void Backend::shutdown()
{
    if (comm_ != nullptr)
        close();
}

void Backend::abort()
{
    hooks_->abort.call();
    if (comm_ != nullptr)
        stop();
}

// Ends operations in progress with an error, here and on the other ranks.
void Backend::stop()
{
    (void)tuttiCommAbort(comm_);
    if (on_device_)
        (void)tuttiCommAbort(on_device_->comm());
    (void)tuttiMailboxAbort(mailbox_);
}

void Backend::setTimeout(std::chrono::milliseconds timeout)
{
    options_->timeout = timeout;
    check_alive();
    queue_->drain();
    check(tuttiCommSetTimeout(comm_, as_int_ms(timeout)));
    if (on_device_)
        check(tuttiCommSetTimeout(on_device_->comm(), as_int_ms(timeout)));
    check(tuttiMailboxSetTimeout(mailbox_, as_int_ms(timeout)));
}

// ---- the flight recorder ---------------------------------------------------------------------

#ifdef C10D_BACKEND_HAS_HOOKS

void Backend::registerAbortHook(int64_t id, c10d::AbortHook hook)
{
    hooks_->abort.add(id, std::move(hook));
}

#endif
#ifdef TUTTI_TORCH_HAS_COMPLETION_HOOKS

// A work on a device notices its completion only when a caller queries its stream, and a stream that
// is being captured must not be queried. So on a machine with devices no completion is reported.
bool Backend::supportsCompletionHooks() const
{
    return !c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA) ||
           c10::impl::VirtualGuardImpl(c10::DeviceType::CUDA).deviceCount() == 0;
}

void Backend::registerCompletionHook(int64_t id, c10d::CompletionHook hook)
{
    hooks_->completion.add(id, [hook = std::move(hook)](uint64_t key, std::optional<float> took) {
        hook({key, took});
    });
}

#endif

// ---- groups of this group ------------------------------------------------------------------

c10::intrusive_ptr<c10d::Backend>
Backend::split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
               const c10::intrusive_ptr<c10d::Backend::Options> &opts)
{
    const auto mine = std::find(ranks.begin(), ranks.end(), getRank());

    if (mine == ranks.end())
        return nullptr;
    // Options of another class do not have our limits. Then those of this group apply.
    const auto *given = dynamic_cast<const Options *>(opts.get());
    auto options = c10::make_intrusive<Options>(given ? *given : *options_);

    if (opts) {
        options->timeout = opts->timeout;
        options->group_name = opts->group_name;
    }
    return make(store->clone(), static_cast<int>(mine - ranks.begin()),
                static_cast<int>(ranks.size()), options);
}

// ---- several operations as one ---------------------------------------------------------------

void Backend::startCoalescing()
{
    TORCH_CHECK_VALUE(!is_coalescing_, "tutti: operations are being coalesced already");
    is_coalescing_ = true;
}

WorkPtr Backend::endCoalescing()
{
    TORCH_CHECK_VALUE(is_coalescing_, "tutti: no operations are being coalesced");
    is_coalescing_ = false;
    if (!messages_.empty())
        coalesced_.push_back(
            on_device_->exchange(getRank(), std::exchange(messages_, {}), ++number_));
    return c10::make_intrusive<WorkOfMany>(getRank(), std::exchange(coalesced_, {}));
}

// Adds the work to those that endCoalescing() returns as one.
WorkPtr Backend::collect_if_coalescing(WorkPtr work)
{
    if (is_coalescing_)
        coalesced_.push_back(work);
    return work;
}

} // namespace tutti_torch
