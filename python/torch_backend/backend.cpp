// SPDX-License-Identifier: Apache-2.0
// How a process group begins and ends.
#include <Python.h>

#include "backend.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace tutti_torch {

// ---- beginning -----------------------------------------------------------------------------

// Rank 0 makes the id; the store takes it to the others. torchrun may start all ranks again with a
// store that still has the keys of their last life.
static tuttiUniqueId share_id(c10d::Store &store, const char *name, int rank)
{
    const char *life = std::getenv("TORCHELASTIC_RESTART_COUNT");
    const std::string key = std::string(name) + "/" + (life != nullptr ? life : "0");
    tuttiUniqueId id;

    if (rank == 0) {
        check(tuttiGetUniqueId(&id));
        store.set(key, std::vector<uint8_t>(id.internal, id.internal + sizeof id.internal));
        return id;
    }
    const std::vector<uint8_t> bytes = store.get(key);

    TORCH_CHECK_WITH(DistBackendError, bytes.size() == sizeof id.internal,
                     "tutti: the store holds something else than rank 0's id");
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
    return id;
}

// The library's names are shorter than those of groups that list their ranks: the end of a long one
// becomes a hash of the whole (FNV-1a), the same on all ranks.
static std::string as_comm_name(const std::string &group_name)
{
    constexpr size_t longest = 63, digits = 16;
    uint64_t hash = 0xcbf29ce484222325u;
    char end[digits + 2];

    if (group_name.size() <= longest)
        return group_name;
    for (const char letter : group_name)
        hash = (hash ^ static_cast<uint8_t>(letter)) * 0x100000001b3u;
    std::snprintf(end, sizeof end, "~%016llx", static_cast<unsigned long long>(hash));
    return group_name.substr(0, longest - digits - 1) + end;
}

int as_int_ms(std::chrono::milliseconds limit)
{
    return limit.count() <= 0 || limit.count() > INT_MAX ? 0 : static_cast<int>(limit.count());
}

// A communicator of all ranks, each on its device; -1: on the host.
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

// The first call with tensors on devices forms the communicator for them, so all ranks make it.
OnDevice &Backend::see_to_device(c10::Device device)
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
        (void)see_to_device(device);
}

// ---- end -----------------------------------------------------------------------------------

void Backend::check_alive() const
{
    TORCH_CHECK_WITH(DistBackendError, comm_ != nullptr,
                     "tutti: this process group has been shut down");
}

// A job that ends elsewhere may need the interpreter to let go of its tensors.
class InterpreterFree {
  public:
    InterpreterFree()
    {
        if (Py_IsInitialized() && PyGILState_Check())
            state_ = PyEval_SaveThread();
    }
    ~InterpreterFree()
    {
        if (state_ != nullptr)
            PyEval_RestoreThread(state_);
    }

  private:
    PyThreadState *state_ = nullptr;
};

void Backend::close()
{
    const InterpreterFree free;

    queue_->drain();
    on_device_.reset();
    (void)tuttiMailboxDestroy(mailbox_);
    (void)tuttiCommDestroy(comm_);
    mailbox_ = nullptr;
    comm_ = nullptr;
    orphans_->reap();
}

// Nobody waits any more for what is under way, and its peers may be gone.
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
    // As the options of a group that is split from this one: it may be given another limit.
    options->timeout = options->limit.value_or(options->timeout);
    options->limit.reset();
    options->init_limit = options->init_limit.value_or(options->timeout);
    auto made = c10::make_intrusive<Backend>(store, rank, size, options);
    std::lock_guard<std::mutex> guard(living_lock);

    std::erase_if(living, [](const auto &backend) { return backend.expired(); });
    living.emplace_back(made);
    return made;
}

// A thread of a queue that still held a tensor then would ask for an interpreter that has ended.
void Backend::end_all()
{
    std::unique_lock<std::mutex> guard(living_lock);
    const auto all = std::exchange(living, {});

    guard.unlock();
    for (const auto &backend : all)
        if (auto locked = backend.lock())
            locked->end();
}

// All ranks come to their end: what is under way is completed first.
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

// Operations in progress end with an error here and on the other ranks.
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

// A work on a device does not know when it is complete unless somebody asks, and a stream that is
// being captured must not be asked. Where there are devices, the recorder is told nothing.
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
    // Options of another class, or none, say nothing of how long the ranks may take to come.
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

WorkPtr Backend::note(WorkPtr work)
{
    if (is_coalescing_)
        coalesced_.push_back(work);
    return work;
}

} // namespace tutti_torch
