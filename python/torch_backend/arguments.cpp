// SPDX-License-Identifier: Apache-2.0
#include "arguments.h"

#include <ATen/MemoryOverlap.h>

namespace tutti_torch {

void check_tensor(const at::Tensor &tensor, const char *function)
{
    TORCH_CHECK_VALUE(tensor.defined(), "tutti: ", function, ": a tensor is undefined");
    TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "tutti: ", function,
                      ": only dense tensors can be communicated; this one is ", tensor.layout());
    TORCH_CHECK_VALUE(tensor.device().is_cpu() || tensor.device().is_cuda(), "tutti: ", function,
                      ": the tensor is on ", tensor.device(),
                      "; only tensors on CPUs and CUDA devices can be communicated");
}

at::Tensor &only_tensor(Tensors &tensors, const char *function)
{
    TORCH_CHECK_VALUE(tensors.size() == 1, "tutti: ", function, ": takes one tensor per rank, got ",
                      tensors.size());
    check_tensor(tensors[0], function);
    return tensors[0];
}

void check_output(const at::Tensor &tensor, const char *function)
{
    TORCH_CHECK(at::has_internal_overlap(tensor) != at::MemOverlap::Yes, "tutti: ", function,
                ": unsupported operation: more than one element of the written-to tensor refers to a "
                "single memory location. Please clone() the tensor before the call");
}

void check_outputs(const Tensors &tensors, const char *function)
{
    for (const auto &tensor : tensors)
        check_output(tensor, function);
}

void check_root(int64_t root, int size, const char *function)
{
    TORCH_CHECK_VALUE(root >= 0 && root < size, "tutti: ", function, ": root ", root,
                      " is not a rank of this group of ", size);
}

void check_same_type(const at::Tensor &a, const at::Tensor &b, const char *function)
{
    TORCH_CHECK_TYPE(a.scalar_type() == b.scalar_type(), "tutti: ", function,
                     ": input and output have different types, ", a.scalar_type(), " and ",
                     b.scalar_type());
}

bool is_plain(const at::Tensor &tensor)
{
    return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

at::Tensor as_contiguous(const at::Tensor &tensor)
{
    return is_plain(tensor) ? tensor : tensor.resolve_conj().resolve_neg().contiguous();
}

Output::Output(const at::Tensor &tensor)
    : wanted(tensor),
      place(is_plain(tensor) ? tensor : at::empty(tensor.sizes(), tensor.options()))
{
}

void Output::deliver() const
{
    if (!place.is_same(wanted))
        wanted.copy_(place);
}

// ---- lists ---------------------------------------------------------------------------------------

at::Tensor Scratch::get(size_t slot, int64_t count, const at::TensorOptions &options)
{
    constexpr size_t most_kept = size_t{64} << 20;
    const size_t bytes = static_cast<size_t>(count) * options.dtype().itemsize();

    if (options.device() != at::kCPU || bytes > most_kept)
        return at::empty({count}, options);
    at::Tensor &kept = kept_.at(slot);

    if (!kept.defined() || kept.nbytes() < bytes)
        kept = at::empty({static_cast<int64_t>(bytes)}, at::TensorOptions().dtype(at::kByte));
    return at::from_blob(kept.data_ptr(), {count}, options);
}

// True if the tensors are plain, and follow each other without gaps in one piece of memory.
static bool are_adjacent(const Tensors &list)
{
    const char *next = static_cast<const char *>(list[0].data_ptr());

    for (const auto &tensor : list) {
        if (!is_plain(tensor) || tensor.storage().data() != list[0].storage().data() ||
            tensor.data_ptr() != next)
            return false;
        next += tensor.nbytes();
    }
    return true;
}

Flat::Flat(const Tensors &list, const CallContext &context, size_t slot) : list_(list)
{
    int64_t count = 0;

    for (const auto &tensor : list)
        count += tensor.numel();
    if (count > 0 && are_adjacent(list)) {
        whole_ = list[0].as_strided({count}, {1});
        return;
    }
    whole_ = context.scratch->get(slot, count, list[0].options());
    is_copy_ = true;
}

Flat Flat::input(const Tensors &list, const CallContext &context)
{
    Flat flat(list, context, 0);
    int64_t at = 0;

    for (const auto &tensor : flat.is_copy_ ? list : Tensors{}) {
        flat.whole_.narrow(0, at, tensor.numel()).view(tensor.sizes()).copy_(tensor);
        at += tensor.numel();
    }
    return flat;
}

Flat Flat::output(const Tensors &list, const CallContext &context)
{
    return Flat(list, context, 1);
}

void Flat::deliver() const
{
    int64_t at = 0;

    for (const auto &tensor : is_copy_ ? list_ : Tensors{}) {
        tensor.copy_(whole_.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
    }
}

const Tensors &only_list(const std::vector<Tensors> &lists, const at::Tensor &one, int size,
                                const char *function)
{
    TORCH_CHECK_VALUE(lists.size() == 1 && lists[0].size() == static_cast<size_t>(size), "tutti: ",
                      function, ": takes one list of ", size, " tensors, one for each rank; got ",
                      lists.empty() ? 0 : lists[0].size());
    for (const auto &tensor : lists[0]) {
        check_tensor(tensor, function);
        check_same_type(tensor, one, function);
    }
    return lists[0];
}

void check_gathered(const at::Tensor &output, const at::Tensor &input, int size,
                           const char *function)
{
    check_tensor(output, function);
    check_tensor(input, function);
    check_same_type(output, input, function);
    TORCH_CHECK_VALUE(output.numel() == input.numel() * size, "tutti: ", function, ": ", size,
                      " ranks with inputs of ", input.numel(), " elements need an output of ",
                      input.numel() * size, ", not ", output.numel());
}

} // namespace tutti_torch
