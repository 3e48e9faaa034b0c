// SPDX-License-Identifier: Apache-2.0
// Checks of arguments, and contiguous memory for tensors of any layout.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "types.h"

namespace tutti_torch {

using Tensors = std::vector<at::Tensor>;

// ---- checks: each throws an error that begins with the name of `function` --------------------

// Returns the only tensor of a list of one, after check_tensor().
at::Tensor &only_tensor(Tensors &tensors, const char *function);
// Refuses a result in which several elements share memory, as in an expanded tensor.
void check_output(const at::Tensor &tensor, const char *function);
void check_outputs(const Tensors &tensors, const char *function);
void check_root(int64_t root, int size, const char *function);
void check_same_type(const at::Tensor &a, const at::Tensor &b, const char *function);
// Returns the only list of a list of lists. It must have a tensor for each of `size` ranks, each of
// the type of `one`.
const Tensors &only_list(const std::vector<Tensors> &lists, const at::Tensor &one, int size,
                         const char *function);
// Checks that `output` has room for the inputs of all `size` ranks, one after the other.
void check_gathered(const at::Tensor &output, const at::Tensor &input, int size,
                    const char *function);

// ---- memory ------------------------------------------------------------------------------------

// True if the library can work on the tensor's memory: it is contiguous, and no conjugation or
// negation is pending.
bool is_plain(const at::Tensor &tensor);

// Returns the tensor itself if it is plain, or else a plain copy.
at::Tensor as_contiguous(const at::Tensor &tensor);

// Memory into which the library writes a result: that of the caller's tensor if it is plain, or else
// a new tensor.
struct Output {
    at::Tensor wanted; // the caller's tensor
    at::Tensor place;  // the tensor into which the library writes

    explicit Output(const at::Tensor &tensor);
    void *data() const { return place.data_ptr(); }
    // Copies the result into the caller's tensor, unless it is there already.
    void deliver() const;
};

// A list of tensors as one vector, for one call of the library. If the tensors of the list are
// adjacent in memory, as those of torch.chunk are, the vector is their own memory. Otherwise it is
// scratch memory of the context.
class Flat {
  public:
    // Makes a vector with the elements of the list.
    static Flat input(const Tensors &list, const CallContext &context);
    // Makes a vector for a result. deliver() copies the result into the list.
    static Flat output(const Tensors &list, const CallContext &context);

    void *data() const { return whole_.data_ptr(); }
    const at::Tensor &whole() const { return whole_; }
    void deliver() const;

  private:
    Flat(const Tensors &list, const CallContext &context, size_t slot);

    const Tensors list_;
    at::Tensor whole_;
    bool is_copy_ = false; // whole_ is scratch memory
};

} // namespace tutti_torch
