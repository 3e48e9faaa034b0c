// SPDX-License-Identifier: Apache-2.0
// The module tutti.torch._backend: what makes a process group, and memory of shared windows.
#include <pybind11/chrono.h>
#include <torch/extension.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "backend.h"

namespace tutti_torch {

static c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store> &store,
                                                int rank, int size,
                                                std::chrono::milliseconds timeout,
                                                const std::string &group_name)
{
    auto options = c10::make_intrusive<Backend::Options>(timeout);

    options->group_name = group_name;
    return Backend::make(store, rank, size, options);
}

// A tensor in memory that the ranks of a host map, so that collectives do not copy it.
static at::Tensor empty(const std::vector<int64_t> &sizes, py::object dtype)
{
    const at::ScalarType type = dtype.is_none()
                                    ? c10::typeMetaToScalarType(c10::get_default_dtype())
                                    : torch::python::detail::py_object_to_dtype(dtype);
    const auto options = at::TensorOptions().dtype(type);
    auto bytes = static_cast<int64_t>(c10::elementSize(type));
    void *memory = nullptr;

    for (int64_t size : sizes)
        TORCH_CHECK_VALUE(size >= 0 && !__builtin_mul_overflow(bytes, size, &bytes),
                          "tutti: empty: a dimension is negative, or the tensor is too large");
    if (bytes == 0)
        return at::empty(sizes, options);
    check(tuttiMemAllocHost(&memory, static_cast<size_t>(bytes)));
    return at::from_blob(memory, sizes, [](void *at) { (void)tuttiMemFree(at); }, options);
}

} // namespace tutti_torch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.doc() = "torch.distributed over libtutti";
    module.def("create", &tutti_torch::create, py::arg("store"), py::arg("rank"), py::arg("size"),
               py::arg("timeout"), py::arg("group_name"),
               py::call_guard<py::gil_scoped_release>());
    module.def("empty", &tutti_torch::empty, py::arg("sizes"), py::arg("dtype") = py::none());
    module.def("end_all", &tutti_torch::Backend::end_all, py::call_guard<py::gil_scoped_release>());
    module.def("version", [] { return std::string(tuttiGetVersionString()); });
    module.attr("torch_version") = TUTTI_TORCH_VERSION;
}
