// SPDX-License-Identifier: Apache-2.0
// Tensors in memory that the ranks of a host map, so that large collectives do not copy them first.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace tutti_torch {

// A tensor there.
at::Tensor empty_shared(const std::vector<int64_t> &sizes, at::ScalarType type);

// True if the tensor is there.
bool is_shared(const at::Tensor &tensor);

// From now on PyTorch allocates CPU tensors of 1 MiB and more there, in all threads, until as many calls
// of the second.
void begin_sharing();
void end_sharing();

} // namespace tutti_torch
