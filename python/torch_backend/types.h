// SPDX-License-Identifier: Apache-2.0
// How a tensor's elements travel, and how they are reduced.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <tutti.h>

#include <array>

namespace tutti_torch {

// Elements as the library moves them: `type`, `per_element` of them for each of the tensor's.
struct Wire {
    tuttiDataType_t type;
    size_t per_element;

    size_t count(const at::Tensor &tensor) const
    {
        return static_cast<size_t>(tensor.numel()) * per_element;
    }
};

// Memory of the host for lists of tensors, kept from call to call: fresh pages take longer than the
// call. One job uses it at a time.
class Scratch {
  public:
    // A vector; one for each slot is valid at a time.
    at::Tensor get(size_t slot, int64_t count, const at::TensorOptions &options);

  private:
    std::array<at::Tensor, 2> kept_;
};

// Where calls of the library run: on the host, complete when they return (no stream), or on a
// device's stream.
struct Seat {
    tuttiComm_t comm;
    tuttiStream_t stream;
    Scratch *scratch;
};

// Throws unless the tensor is dense, and in memory that the library reaches.
void check_tensor(const at::Tensor &tensor, const char *function);

// Every type can be moved: one that the library does not know travels as bytes.
Wire wire_of(at::ScalarType type);

// A reduction that the library does on `type`, perhaps on a tensor of another type: complex numbers
// are reduced by their parts, and 16-bit parts are widened.
struct Reduction {
    tuttiRedOp_t op;
    at::ScalarType run_type; // convert to it before, and back afterwards
    Wire wire;               // of run_type
};

// Throws where the operation is not defined on the type.
Reduction reduction_of(const c10d::ReduceOp &op, at::ScalarType type);

} // namespace tutti_torch
