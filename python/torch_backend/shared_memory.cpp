// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.h"

#include <c10/core/CPUAllocator.h>

#include <map>
#include <mutex>

#include <tutti.h>

#include "work.h"

namespace tutti_torch {

// The smallest allocation in shared memory. Below this size, a mapping costs more than the copy that
// it saves.
static constexpr size_t least_bytes = size_t{1} << 20;

static std::mutex lock; // guards the three variables below
static std::map<uintptr_t, size_t> blocks; // the bytes of each block, by its address
static size_t depth;                       // calls of begin_sharing() that have not been ended
static c10::Allocator *usual;              // PyTorch's allocator before the outermost begin_sharing()

static void *allocate_block(size_t bytes)
{
    void *memory = nullptr;

    check(tuttiMemAllocHost(&memory, bytes));
    std::lock_guard<std::mutex> guard(lock);

    blocks[reinterpret_cast<uintptr_t>(memory)] = bytes;
    return memory;
}

static void free_block(void *memory)
{
    {
        std::lock_guard<std::mutex> guard(lock);

        blocks.erase(reinterpret_cast<uintptr_t>(memory));
    }
    (void)tuttiMemFree(memory);
}

bool is_shared(const at::Tensor &tensor)
{
    const auto address = reinterpret_cast<uintptr_t>(tensor.data_ptr());
    std::lock_guard<std::mutex> guard(lock);
    auto after = blocks.upper_bound(address);

    return after != blocks.begin() &&
           address + tensor.nbytes() <= std::prev(after)->first + std::prev(after)->second;
}

at::Tensor empty_shared(const std::vector<int64_t> &sizes, at::ScalarType type)
{
    const auto options = at::TensorOptions().dtype(type);
    auto bytes = static_cast<int64_t>(c10::elementSize(type));

    for (int64_t size : sizes)
        TORCH_CHECK_VALUE(size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes),
                          "tutti: empty: a dimension is negative, or the tensor is too large");
    if (bytes == 0)
        return at::empty(sizes, options);
    return at::from_blob(allocate_block(static_cast<size_t>(bytes)), sizes, free_block, options);
}

// ---- an allocator for PyTorch ----------------------------------------------------------------

namespace {

class SharedAllocator final : public c10::Allocator {
  public:
    c10::DataPtr allocate(size_t bytes) override
    {
        if (bytes < least_bytes)
            return c10::GetDefaultCPUAllocator()->allocate(bytes);
        void *memory = allocate_block(bytes);

        return {memory, memory, free_block, c10::Device(c10::DeviceType::CPU)};
    }

    void copy_data(void *to, const void *from, size_t bytes) const override
    {
        default_copy_data(to, from, bytes);
    }
};

} // namespace

void begin_sharing()
{
    static SharedAllocator allocator;
    std::lock_guard<std::mutex> guard(lock);

    if (depth++ > 0)
        return;
    usual = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&allocator);
    if (c10::GetCPUAllocator() != &allocator) {
        depth--;
        TORCH_CHECK(false, "tutti: shared_memory: another library has set PyTorch's allocator of CPU "
                    "memory with a higher priority; make tensors with tutti.torch.empty instead");
    }
}

void end_sharing()
{
    std::lock_guard<std::mutex> guard(lock);

    if (depth > 0 && --depth == 0)
        c10::SetCPUAllocator(usual);
}

} // namespace tutti_torch
