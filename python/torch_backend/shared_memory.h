// SPDX-License-Identifier: Apache-2.0
// Tensors in shared memory, which here is memory of the library that the ranks of a host map. Large
// collectives do not copy such tensors first.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace tutti_torch {

// Returns a tensor in shared memory, without defined contents.
at::Tensor empty_shared(const std::vector<int64_t> &sizes, at::ScalarType type);

// True if the tensor is in shared memory.
bool is_shared(const at::Tensor &tensor);

// From begin_sharing() on, PyTorch allocates CPU tensors of 1 MiB and more in shared memory, in all
// threads. Calls may be nested. The end_sharing() of the outermost one ends this.
void begin_sharing();
void end_sharing();

} // namespace tutti_torch
