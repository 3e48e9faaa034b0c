// SPDX-License-Identifier: Apache-2.0
// What calls check, and how tensors of any layout become memory that the library works on.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "types.h"

namespace tutti_torch {

using Tensors = std::vector<at::Tensor>;

// ---- checks: each throws, and names the function --------------------------------------------

// The only one of a list.
at::Tensor &only(Tensors &tensors, const char *function);
// An element of a result needs memory of its own, which those of an expanded tensor do not have.
void check_output(const at::Tensor &tensor, const char *function);
void check_outputs(const Tensors &tensors, const char *function);
void check_root(int64_t root, int size, const char *function);
void check_same_type(const at::Tensor &a, const at::Tensor &b, const char *function);
// The only list: a tensor for each of `size` ranks, of the type of `one`.
const Tensors &only_list(const std::vector<Tensors> &lists, const at::Tensor &one, int size,
                         const char *function);
// One tensor for the inputs of all ranks.
void check_gathered(const at::Tensor &output, const at::Tensor &input, int size,
                    const char *function);

// ---- memory ------------------------------------------------------------------------------------

// The tensor itself where the library can work on it; else a copy with the same elements.
at::Tensor as_contiguous(const at::Tensor &tensor);

// A place for a result, and the tensor that it belongs in.
struct Output {
    at::Tensor wanted, place;

    explicit Output(const at::Tensor &tensor);
    void *data() const { return place.data_ptr(); }
    void deliver() const;
};

// A list of tensors as one vector, for a call on it: the list's own memory where its tensors lie one
// after the other, as those of torch.chunk do; else memory of the seat.
class Flat {
  public:
    // With the list's elements.
    static Flat input(const Tensors &list, const Seat &seat);
    // For a result; deliver() puts it into the list.
    static Flat output(const Tensors &list, const Seat &seat);

    void *data() const { return whole_.data_ptr(); }
    const at::Tensor &whole() const { return whole_; }
    void deliver() const;

  private:
    Flat(const Tensors &list, const Seat &seat, size_t slot);

    const Tensors list_;
    at::Tensor whole_;
    bool is_copy_ = false;
};

} // namespace tutti_torch
