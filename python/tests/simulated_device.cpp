// SPDX-License-Identifier: Apache-2.0
// Implements PyTorch's streams, events and tensors of a CUDA device on the simulated driver, for
// machines without a GPU. PyTorch's own kernels do not run on that driver, so this module fills and
// reads the tensors.
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/extension.h>

#include <cstdlib>
#include <dlfcn.h>
#include <vector>

namespace {

using Handle = void *; // of a context, stream or event of the driver

// Calls a function of the driver by its name, and returns its result.
template <class... Arguments> int drive(const char *name, Arguments... arguments)
{
    static void *library = dlopen(std::getenv("TUTTI_CUDA_LIBRARY"), RTLD_NOW);
    using Function = int (*)(Arguments...);

    TORCH_CHECK(library != nullptr, dlerror());
    return reinterpret_cast<Function>(dlsym(library, name))(arguments...);
}

void must(int code, const char *name)
{
    TORCH_CHECK(code == 0, "the simulated driver: ", name, " gives ", code);
}

#define DRIVE(name, ...) must(drive(#name __VA_OPT__(, ) __VA_ARGS__), #name)

// Stream n of PyTorch is streams[n]; 0 is the default stream.
std::vector<Handle> streams{nullptr};
thread_local c10::StreamId current = 0;

class Guard final : public c10::impl::DeviceGuardImplInterface {
  public:
    c10::DeviceType type() const override { return c10::DeviceType::CUDA; }
    c10::Device exchangeDevice(c10::Device) const override { return getDevice(); }
    c10::Device getDevice() const override { return {c10::DeviceType::CUDA, 0}; }
    void setDevice(c10::Device) const override {}
    void uncheckedSetDevice(c10::Device) const noexcept override {}
    c10::DeviceIndex deviceCount() const noexcept override { return 1; }

    c10::Stream stream(c10::StreamId id) const
    {
        return c10::Stream(c10::Stream::UNSAFE, getDevice(), id);
    }
    c10::Stream getStream(c10::Device) const override { return stream(current); }
    c10::Stream getDefaultStream(c10::Device) const override { return stream(0); }
    c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override
    {
        Handle made = nullptr;

        DRIVE(cuStreamCreate, &made, 1u);
        streams.push_back(made);
        return stream(static_cast<c10::StreamId>(streams.size() - 1));
    }
    c10::Stream exchangeStream(c10::Stream to) const override
    {
        return stream(std::exchange(current, to.id()));
    }
    void *getStreamNativeHandle(const c10::Stream of) const override
    {
        return streams.at(static_cast<size_t>(of.id()));
    }
    bool queryStream(const c10::Stream &of) const override
    {
        return drive("cuStreamQuery", getStreamNativeHandle(of)) == 0;
    }
    void synchronizeStream(const c10::Stream &of) const override
    {
        DRIVE(cuStreamSynchronize, getStreamNativeHandle(of));
    }

    void record(void **event, const c10::Stream &on, const c10::DeviceIndex,
                const c10::EventFlag) const override
    {
        if (*event == nullptr)
            DRIVE(cuEventCreate, event, 2u);
        DRIVE(cuEventRecord, *event, getStreamNativeHandle(on));
    }
    void block(void *event, const c10::Stream &waiting) const override
    {
        if (event != nullptr)
            DRIVE(cuStreamWaitEvent, getStreamNativeHandle(waiting), event, 0u);
    }
    bool queryEvent(void *event) const override
    {
        return event == nullptr || drive("cuEventQuery", event) == 0;
    }
    void synchronizeEvent(void *event) const override { DRIVE(cuEventSynchronize, event); }
    void destroyEvent(void *event, const c10::DeviceIndex) const noexcept override
    {
        if (event != nullptr)
            (void)drive("cuEventDestroy_v2", event);
    }
    void recordDataPtrOnStream(const c10::DataPtr &, const c10::Stream &) const override {}
};

// Replaces PyTorch's own streams and events, which need a GPU.
void install()
{
    static Guard guard;
    static Handle context;

    DRIVE(cuInit, 0u);
    DRIVE(cuDevicePrimaryCtxRetain, &context, 0);
    DRIVE(cuCtxSetCurrent, context);
    c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::DeviceType::CUDA)].store(&guard);
}

// Returns a tensor on device 0 with the elements of a CPU tensor.
at::Tensor to_device(const at::Tensor &from)
{
    const at::Tensor flat = from.contiguous();
    const c10::Device device(c10::DeviceType::CUDA, 0);
    uintptr_t memory = 0;

    DRIVE(cuMemAlloc_v2, &memory, std::max<size_t>(flat.nbytes(), 1));
    DRIVE(cuMemcpy, memory, reinterpret_cast<uintptr_t>(flat.data_ptr()), flat.nbytes());
    return at::from_blob(reinterpret_cast<void *>(memory), from.sizes(),
                         [memory](void *) { (void)drive("cuMemFree_v2", memory); },
                         flat.options().device(device), device);
}

// Returns a CPU tensor with the elements of a tensor on the device, after the work of the current
// stream.
at::Tensor to_host(const at::Tensor &from)
{
    at::Tensor host = at::empty(from.sizes(), from.options().device(at::kCPU));

    DRIVE(cuStreamSynchronize, streams.at(static_cast<size_t>(current)));
    DRIVE(cuMemcpy, reinterpret_cast<uintptr_t>(host.data_ptr()),
          reinterpret_cast<uintptr_t>(from.data_ptr()), host.nbytes());
    return host;
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.def("install", install);
    module.def("to_device", to_device);
    module.def("to_host", to_host);
    // Makes a new stream the current one, as torch.cuda.stream does.
    module.def("use_new_stream", [] {
        const Guard guard;

        guard.exchangeStream(guard.getStreamFromGlobalPool(guard.getDevice(), false));
    });
}
