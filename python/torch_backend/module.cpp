// SPDX-License-Identifier: Apache-2.0
// The module tutti.torch._backend: what makes a process group, and memory of shared windows.
#include <pybind11/chrono.h>
#include <torch/extension.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "backend.h"
#include "shared_memory.h"

namespace tutti_torch {

static c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store> &store,
                                                int rank, int size,
                                                std::chrono::milliseconds timeout,
                                                std::chrono::milliseconds init_timeout,
                                                const std::string &group_name)
{
    auto options = c10::make_intrusive<Backend::Options>(timeout);

    options->init_timeout = init_timeout;
    options->group_name = group_name;
    return Backend::make(store, rank, size, options);
}

static at::Tensor empty(const std::vector<int64_t> &sizes, py::object dtype)
{
    return empty_shared(sizes, dtype.is_none()
                                   ? c10::typeMetaToScalarType(c10::get_default_dtype())
                                   : torch::python::detail::py_object_to_dtype(dtype));
}

} // namespace tutti_torch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.doc() = "torch.distributed over libtutti";
    module.def("create", &tutti_torch::create, py::arg("store"), py::arg("rank"), py::arg("size"),
               py::arg("timeout"), py::arg("init_timeout"), py::arg("group_name"),
               py::call_guard<py::gil_scoped_release>());
    module.def("empty", &tutti_torch::empty, py::arg("sizes"), py::arg("dtype") = py::none());
    module.def("is_shared", &tutti_torch::is_shared);
    module.def("begin_sharing", &tutti_torch::begin_sharing);
    module.def("end_sharing", &tutti_torch::end_sharing);
    module.def("end_all", &tutti_torch::Backend::end_all, py::call_guard<py::gil_scoped_release>());
    module.def("version", [] { return std::string(tuttiGetVersionString()); });
    module.attr("torch_version") = TUTTI_TORCH_VERSION;
}
