// SPDX-License-Identifier: Apache-2.0
// torch.ops.tutti: collectives without torch.distributed's Python layers, for loops in which the time of
// these layers matters, such as tensor parallel inference. torch.compile supports them.
#include <torch/csrc/distributed/c10d/GroupRegistry.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>

#include "backend.h"

namespace tutti_torch {

static void all_reduce_(at::Tensor self, const std::string &group_name)
{
    const auto group = c10d::resolve_process_group(group_name);
    const auto backend = group->getBackend(self.device().type());
    c10d::AllreduceOptions options;
    Tensors tensors{std::move(self)};

    options.asyncOp = false;
    backend->allreduce(tensors, options)->wait();
}

} // namespace tutti_torch

TORCH_LIBRARY(tutti, library)
{
    library.def("all_reduce_(Tensor(a!) self, str group_name) -> ()");
    library.impl("all_reduce_", c10::DispatchKey::CompositeExplicitAutograd,
                 TORCH_FN(tutti_torch::all_reduce_));
}
