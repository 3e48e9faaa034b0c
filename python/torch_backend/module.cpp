// SPDX-License-Identifier: Apache-2.0
// The module tutti.torch._backend. It makes process groups, and tensors in shared memory.
#include <pybind11/chrono.h>
#include <pybind11/stl.h>
#include <torch/extension.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "backend.h"
#include "shared_memory.h"

namespace tutti_torch {

static c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store> &store,
                                                int rank, int size,
                                                std::chrono::milliseconds timeout,
                                                const std::string &group_name,
                                                const Backend::Options *given)
{
    auto options = given ? c10::make_intrusive<Backend::Options>(*given)
                         : c10::make_intrusive<Backend::Options>();

    options->timeout = timeout;
    options->group_name = group_name;
    return Backend::make(store, rank, size, options);
}

static at::Tensor empty(const std::vector<int64_t> &sizes, py::object dtype)
{
    return empty_shared(sizes, dtype.is_none()
                                   ? c10::typeMetaToScalarType(c10::get_default_dtype())
                                   : torch::python::detail::py_object_to_dtype(dtype));
}

static std::string text_of(const Backend::Options::Limit &limit)
{
    return limit ? py::repr(py::cast(*limit)).cast<std::string>() : "None";
}

// The base class of Options is PyTorch's, whose module must have been imported before.
static void bind_options(py::module &module)
{
    using Options = Backend::Options;

    py::module::import("torch._C._distributed_c10d");
    py::class_<Options, c10d::Backend::Options, c10::intrusive_ptr<Options>>(
        module, "Options",
        "Options of a process group: the pg_options of init_process_group, new_group and split_group.")
        .def(py::init<Options::Limit, Options::Limit>(), py::arg("timeout") = py::none(),
             py::arg("init_timeout") = py::none())
        .def_readonly("timeout", &Options::limit,
                      "Limit for each operation. None: that of the call that makes the process group.")
        .def_readonly("init_timeout", &Options::init_limit,
                      "Limit for forming the group. None: the limit for operations.")
        .def("__repr__",
             [](const Options &options) {
                 return "tutti.torch.Options(timeout=" + text_of(options.limit) +
                        ", init_timeout=" + text_of(options.init_limit) + ")";
             })
        .attr("__module__") = "tutti.torch";
}

} // namespace tutti_torch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.doc() = "torch.distributed over libtutti";
    tutti_torch::bind_options(module);
    module.def("create", &tutti_torch::create, py::arg("store"), py::arg("rank"), py::arg("size"),
               py::arg("timeout"), py::arg("group_name"), py::arg("options"),
               py::call_guard<py::gil_scoped_release>());
    module.def("empty", &tutti_torch::empty, py::arg("sizes"), py::arg("dtype") = py::none());
    module.def("is_shared", &tutti_torch::is_shared);
    module.def("begin_sharing", &tutti_torch::begin_sharing);
    module.def("end_sharing", &tutti_torch::end_sharing);
    module.def("end_all", &tutti_torch::Backend::end_all, py::call_guard<py::gil_scoped_release>());
    module.def("version", [] { return std::string(tuttiGetVersionString()); });
    module.attr("torch_version") = TUTTI_TORCH_VERSION;
}
