// SPDX-License-Identifier: Apache-2.0
// The types in which the library moves and reduces the elements of tensors.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <tutti.h>

#include <array>

namespace tutti_torch {

// The type in which a tensor's elements are passed to the library.
struct Wire {
    tuttiDataType_t type;
    size_t per_element; // elements of `type` for each element of the tensor

    // The number of elements of `type` in the whole tensor.
    size_t count(const at::Tensor &tensor) const
    {
        return static_cast<size_t>(tensor.numel()) * per_element;
    }
};

// Memory in which calls collect lists of tensors. Memory of the host is kept from call to call,
// because touching fresh pages would take longer than the call. One job uses it at a time.
class Scratch {
  public:
    // Returns a vector without defined contents. It is valid until the next call for the same slot.
    // Slots are 0 (inputs) and 1 (outputs).
    at::Tensor get(size_t slot, int64_t count, const at::TensorOptions &options);

  private:
    std::array<at::Tensor, 2> kept_;
};

// What calls of the library need besides their tensors.
struct CallContext {
    tuttiComm_t comm;
    tuttiStream_t stream; // nullptr: host memory, and the call is complete when it returns
    Scratch *scratch;
};

// Throws unless the tensor is dense, and in memory that the library reaches.
void check_tensor(const at::Tensor &tensor, const char *function);

// Returns the type in which tensors of `type` are moved. A type that the library does not know is
// moved as bytes.
Wire wire_of(at::ScalarType type);

// How the library reduces tensors of some type. It reduces the two parts of complex numbers
// separately, after 16-bit parts have been widened.
struct Reduction {
    tuttiRedOp_t op;         // tuttiSum for PREMUL_SUM, whose operation is made for each call
    at::ScalarType run_type; // tensors are converted to this type before the call, and back after it
    Wire wire;               // that of run_type
};

// Throws if the operation is not defined on the type.
Reduction reduction_of(const c10d::ReduceOp &op, at::ScalarType type);

} // namespace tutti_torch
