// SPDX-License-Identifier: Apache-2.0
// Collectives that move data and reduce nothing. Tensors are checked in the calling thread. Then one
// call of the library moves their elements.
#include <numeric>

#include "arguments.h"
#include "launch.h"

namespace tutti_torch {

// ---- one to all, all to one ------------------------------------------------------------------

WorkPtr Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
    const at::Tensor &tensor = only_tensor(tensors, "broadcast");
    const int root = static_cast<int>(opts.rootRank);

    check_root(opts.rootRank, getSize(), "broadcast");
    if (getRank() != root)
        check_output(tensor, "broadcast");
    return launch(c10d::OpType::BROADCAST, "tutti:broadcast", tensors, tensors, opts.asyncOp,
                  opts.timeout, [tensor, root, rank = getRank()](const CallContext &context) {
                      const Wire wire = wire_of(tensor.scalar_type());
                      const Output output(tensor);
                      const at::Tensor input = rank == root ? as_contiguous(tensor) : tensor;

                      check(tuttiBroadcast(rank == root ? input.data_ptr() : nullptr,
                                           output.data(), wire.count(tensor), wire.type, root,
                                           context.comm, context.stream));
                      if (rank != root)
                          output.deliver();
                  });
}

// Returns the list of a gather or scatter, after checks. Only the root has one, and the others get an
// empty list.
static Tensors list_of_root(const std::vector<Tensors> &lists, const at::Tensor &one, int root,
                            int rank, int size, const char *function)
{
    check_root(root, size, function);
    if (rank != root)
        return {};
    const Tensors &list = only_list(lists, one, size, function);

    for (const auto &tensor : list)
        TORCH_CHECK_VALUE(tensor.numel() == one.numel(), "tutti: ", function,
                          ": a tensor of the list has ", tensor.numel(),
                          " elements, the single tensor ", one.numel());
    return list;
}

// Blocks of at least so many bytes are sent from, and received in, the tensors of the list. Copying
// them to and from one vector would take longer than the messages save. All ranks have blocks of one
// size, so all decide alike.
static constexpr size_t large_block = 256 << 10;

// Gathers or scatters by messages between the root's list and each rank's tensor `mine`.
static void exchange_with_root(const Tensors &list, const at::Tensor &mine, bool is_gather, int root,
                               int rank, const CallContext &context)
{
    const Wire wire = wire_of(mine.scalar_type());
    const size_t count = wire.count(mine);
    const auto send_or_receive = [&](bool sends, const at::Tensor &tensor, int peer) {
        return sends ? tuttiSend(tensor.data_ptr(), count, wire.type, peer, context.comm, context.stream)
                     : tuttiRecv(tensor.data_ptr(), count, wire.type, peer, context.comm, context.stream);
    };
    Tensors sources;
    std::vector<Output> targets;
    tuttiResult_t result = tuttiSuccess;

    for (const auto &tensor : list) {
        if (is_gather)
            targets.emplace_back(tensor);
        else
            sources.push_back(as_contiguous(tensor));
    }
    const at::Tensor source = is_gather ? as_contiguous(mine) : at::Tensor();
    const Output target(mine);

    check(tuttiGroupStart());
    if (rank != root)
        result = send_or_receive(is_gather, is_gather ? source : target.place, root);
    for (size_t peer = 0; peer < list.size() && result == tuttiSuccess; peer++)
        if (static_cast<int>(peer) != root)
            result = send_or_receive(!is_gather, is_gather ? targets[peer].place : sources[peer],
                                     static_cast<int>(peer));
    const tuttiResult_t ended = tuttiGroupEnd();

    check(result);
    check(ended);
    if (rank == root)
        (is_gather ? list[static_cast<size_t>(root)] : mine)
            .copy_(is_gather ? mine : list[static_cast<size_t>(root)]);
    for (size_t peer = 0; peer < targets.size(); peer++)
        if (static_cast<int>(peer) != root)
            targets[peer].deliver();
    if (!is_gather && rank != root)
        target.deliver();
}

static bool is_large(const at::Tensor &tensor)
{
    return tensor.nbytes() >= large_block;
}

WorkPtr Backend::gather(std::vector<Tensors> &outputs, Tensors &inputs,
                        const c10d::GatherOptions &opts)
{
    const at::Tensor &input = only_tensor(inputs, "gather");
    const int root = static_cast<int>(opts.rootRank);
    const Tensors list = list_of_root(outputs, input, root, getRank(), getSize(), "gather");

    check_outputs(list, "gather");
    return launch(c10d::OpType::GATHER, "tutti:gather", inputs, list, opts.asyncOp, opts.timeout,
                  [input, list, root, rank = getRank()](const CallContext &context) {
                      if (is_large(input)) {
                          exchange_with_root(list, input, true, root, rank, context);
                          return;
                      }
                      const Wire wire = wire_of(input.scalar_type());
                      const at::Tensor send = as_contiguous(input);
                      const Flat flat = Flat::output(list.empty() ? Tensors{send} : list, context);

                      check(tuttiGather(send.data_ptr(), list.empty() ? nullptr : flat.data(),
                                        wire.count(send), wire.type, root, context.comm, context.stream));
                      if (!list.empty())
                          flat.deliver();
                  });
}

WorkPtr Backend::gather_into_tensor(at::Tensor &output, at::Tensor &input,
                                    const c10d::GatherOptions &opts)
{
    const int root = static_cast<int>(opts.rootRank);
    const bool is_root = getRank() == root;

    check_root(opts.rootRank, getSize(), "gather_single");
    check_tensor(input, "gather_single");
    if (is_root) {
        check_gathered(output, input, getSize(), "gather_single");
        check_output(output, "gather_single");
    }
    return launch(c10d::OpType::GATHER, "tutti:gather", {input},
                  is_root ? Tensors{output} : Tensors{}, opts.asyncOp, opts.timeout,
                  [output, input, is_root, root](const CallContext &context) {
                      const Wire wire = wire_of(input.scalar_type());
                      const at::Tensor send = as_contiguous(input);
                      const Output place(is_root ? output : send);

                      check(tuttiGather(send.data_ptr(), is_root ? place.data() : nullptr,
                                        wire.count(send), wire.type, root, context.comm,
                                        context.stream));
                      if (is_root)
                          place.deliver();
                  });
}

WorkPtr Backend::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                         const c10d::ScatterOptions &opts)
{
    const at::Tensor &output = only_tensor(outputs, "scatter");
    const int root = static_cast<int>(opts.rootRank);
    const Tensors list = list_of_root(inputs, output, root, getRank(), getSize(), "scatter");

    check_output(output, "scatter");
    return launch(c10d::OpType::SCATTER, "tutti:scatter", list, outputs, opts.asyncOp, opts.timeout,
                  [output, list, root, rank = getRank()](const CallContext &context) {
                      if (is_large(output)) {
                          exchange_with_root(list, output, false, root, rank, context);
                          return;
                      }
                      const Wire wire = wire_of(output.scalar_type());
                      const Output place(output);
                      const Flat flat = Flat::input(list.empty() ? Tensors{place.place} : list, context);

                      check(tuttiScatter(list.empty() ? nullptr : flat.data(), place.data(),
                                         wire.count(output), wire.type, root, context.comm, context.stream));
                      place.deliver();
                  });
}

// ---- all-gather ------------------------------------------------------------------------------

// Gathers into a list of tensors, whose sizes may differ. Each has the size of its rank's input.
static void all_gather_list(const Tensors &outputs, const at::Tensor &input, const CallContext &context)
{
    const Wire wire = wire_of(input.scalar_type());
    const at::Tensor send = as_contiguous(input);
    const Flat flat = Flat::output(outputs, context);
    std::vector<size_t> counts;
    bool are_equal = true;

    for (const auto &output : outputs) {
        counts.push_back(wire.count(output));
        are_equal = are_equal && counts.back() == counts.front();
    }
    check(are_equal ? tuttiAllGather(send.data_ptr(), flat.data(), wire.count(send), wire.type,
                                     context.comm, context.stream)
                    : tuttiAllGatherV(send.data_ptr(), flat.data(), counts.data(), nullptr,
                                      wire.type, context.comm, context.stream));
    flat.deliver();
}

// Checks that this rank's output has the size of its input. `outputs` has an entry for each rank.
static void check_gathered_list(const Tensors &outputs, const at::Tensor &input, int rank,
                                const char *function)
{
    const at::Tensor &mine = outputs[static_cast<size_t>(rank)];

    TORCH_CHECK_VALUE(mine.numel() == input.numel(), "tutti: ", function,
                      ": the output for rank ", rank, " has ", mine.numel(),
                      " elements, the input of that rank ", input.numel());
}

WorkPtr Backend::allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                           const c10d::AllgatherOptions &opts)
{
    const at::Tensor &input = only_tensor(inputs, "all_gather");

    const Tensors &list = only_list(outputs, input, getSize(), "all_gather");
    check_gathered_list(list, input, getRank(), "all_gather");
    check_outputs(list, "all_gather");
    return launch(c10d::OpType::ALLGATHER, "tutti:all_gather", inputs, list, opts.asyncOp,
                  opts.timeout, [list, input](const CallContext &context) {
                      all_gather_list(list, input, context);
                  });
}

WorkPtr Backend::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                     const c10d::AllgatherOptions &opts)
{
    Tensors results;

    TORCH_CHECK_VALUE(outputs.size() == static_cast<size_t>(getSize()),
                      "tutti: all_gather_coalesced: takes a list for each of the ", getSize(),
                      " ranks, got ", outputs.size());
    for (const auto &list : outputs) {
        TORCH_CHECK_VALUE(list.size() == inputs.size(), "tutti: all_gather_coalesced: a rank has ",
                          list.size(), " outputs for ", inputs.size(), " inputs");
        results.insert(results.end(), list.begin(), list.end());
    }
    std::vector<Tensors> lists(inputs.size()); // of each input: the outputs of all ranks

    for (size_t i = 0; i < inputs.size(); i++) {
        check_tensor(inputs[i], "all_gather_coalesced");
        for (const auto &of_rank : outputs)
            lists[i].push_back(of_rank[i]);
        only_list({lists[i]}, inputs[i], getSize(), "all_gather_coalesced");
        check_gathered_list(lists[i], inputs[i], getRank(), "all_gather_coalesced");
    }
    check_outputs(results, "all_gather_coalesced");
    return launch(c10d::OpType::ALLGATHER_COALESCED, "tutti:all_gather", inputs, results,
                  opts.asyncOp, opts.timeout, [lists, inputs](const CallContext &context) {
                      for (size_t i = 0; i < inputs.size(); i++)
                          all_gather_list(lists[i], inputs[i], context);
                  });
}

static void all_gather_one(const at::Tensor &output, const at::Tensor &input, const CallContext &context)
{
    const Wire wire = wire_of(input.scalar_type());
    const Output place(output);
    const at::Tensor send = as_contiguous(input);

    check(tuttiAllGather(send.data_ptr(), place.data(), wire.count(send), wire.type, context.comm,
                         context.stream));
    place.deliver();
}

WorkPtr Backend::_allgather_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::AllgatherOptions &opts)
{
    check_gathered(output, input, getSize(), "all_gather_into_tensor");
    check_output(output, "all_gather_into_tensor");
    return launch(c10d::OpType::_ALLGATHER_BASE, "tutti:all_gather", {input}, {output},
                  opts.asyncOp, opts.timeout,
                  [output, input](const CallContext &context) { all_gather_one(output, input, context); });
}

WorkPtr Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                 const c10d::AllgatherOptions &opts)
{
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "tutti: all_gather_into_tensor: ",
                      inputs.size(), " inputs, ", outputs.size(), " outputs");
    for (size_t i = 0; i < inputs.size(); i++)
        check_gathered(outputs[i], inputs[i], getSize(), "all_gather_into_tensor");
    check_outputs(outputs, "all_gather_into_tensor");
    return launch(c10d::OpType::ALLGATHER_COALESCED, "tutti:all_gather", inputs,
                  outputs, opts.asyncOp, opts.timeout, [outputs, inputs](const CallContext &context) {
                      for (size_t i = 0; i < inputs.size(); i++)
                          all_gather_one(outputs[i], inputs[i], context);
                  });
}

// ---- all-to-all ------------------------------------------------------------------------------

// Returns the number of elements (of the wire type) for each rank if the first dimension is split by
// `split`. An empty split divides it evenly. `name` is "input" or "output", for messages.
static std::vector<size_t> split_counts(const std::vector<int64_t> &split, const at::Tensor &tensor,
                                        int size, const char *name)
{
    const Wire wire = wire_of(tensor.scalar_type());
    const int64_t rows = tensor.dim() > 0 ? tensor.size(0) : 1;
    const size_t per_row = rows > 0 ? wire.count(tensor) / static_cast<size_t>(rows) : 0;
    std::vector<size_t> counts;

    if (split.empty()) {
        TORCH_CHECK_VALUE(rows % size == 0, "tutti: all_to_all_single: the first dimension of the ",
                          name, ", ", rows, ", cannot be divided among ", size, " ranks");
        return std::vector<size_t>(static_cast<size_t>(size),
                                   per_row * static_cast<size_t>(rows / size));
    }
    TORCH_CHECK_VALUE(split.size() == static_cast<size_t>(size) &&
                          std::accumulate(split.begin(), split.end(), int64_t{0}) == rows,
                      "tutti: all_to_all_single: the splits of the ", name, " must be ", size,
                      " numbers with the sum ", rows, ", its first dimension");
    for (int64_t part : split) {
        TORCH_CHECK_VALUE(part >= 0, "tutti: all_to_all_single: a split of the ", name, " is ", part,
                          "; it must not be negative");
        counts.push_back(per_row * static_cast<size_t>(part));
    }
    return counts;
}

WorkPtr Backend::alltoall_base(at::Tensor &output, at::Tensor &input,
                               std::vector<int64_t> &output_sizes,
                               std::vector<int64_t> &input_sizes,
                               const c10d::AllToAllOptions &opts)
{
    check_tensor(output, "all_to_all_single");
    check_tensor(input, "all_to_all_single");
    check_same_type(output, input, "all_to_all_single");
    const bool is_even = output_sizes.empty() && input_sizes.empty();
    auto sends = split_counts(input_sizes, input, getSize(), "input");
    auto receives = split_counts(output_sizes, output, getSize(), "output");

    TORCH_CHECK_VALUE(!is_even || input.numel() == output.numel(),
                      "tutti: all_to_all_single: the input has ", input.numel(),
                      " elements, the output ", output.numel());
    check_output(output, "all_to_all_single");
    return launch(c10d::OpType::ALLTOALL_BASE, "tutti:all_to_all", {input}, {output}, opts.asyncOp,
                  opts.timeout, [=](const CallContext &context) {
                      const Wire wire = wire_of(input.scalar_type());
                      const Output place(output);
                      const at::Tensor send = as_contiguous(input);

                      check(is_even ? tuttiAlltoAll(send.data_ptr(), place.data(), sends[0],
                                                    wire.type, context.comm, context.stream)
                                    : tuttiAlltoAllV(send.data_ptr(), sends.data(), nullptr,
                                                     place.data(), receives.data(), nullptr,
                                                     wire.type, context.comm, context.stream));
                      place.deliver();
                  });
}

WorkPtr Backend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts)
{
    const auto size = static_cast<size_t>(getSize());

    TORCH_CHECK_VALUE(outputs.size() == size && inputs.size() == size,
                      "tutti: all_to_all: takes ", size, " inputs and outputs, one for each rank; "
                      "got ", inputs.size(), " and ", outputs.size());
    for (size_t i = 0; i < size; i++) {
        check_tensor(outputs[i], "all_to_all");
        check_tensor(inputs[i], "all_to_all");
        check_same_type(outputs[i], inputs[0], "all_to_all");
        check_same_type(inputs[i], inputs[0], "all_to_all");
    }
    check_outputs(outputs, "all_to_all");
    return launch(c10d::OpType::ALLTOALL, "tutti:all_to_all", inputs, outputs, opts.asyncOp,
                  opts.timeout, [outputs, inputs](const CallContext &context) {
                      const Wire wire = wire_of(inputs[0].scalar_type());
                      const Flat send = Flat::input(inputs, context);
                      const Flat place = Flat::output(outputs, context);
                      std::vector<size_t> sends, receives;

                      for (size_t i = 0; i < inputs.size(); i++) {
                          sends.push_back(wire.count(inputs[i]));
                          receives.push_back(wire.count(outputs[i]));
                      }
                      check(tuttiAlltoAllV(send.data(), sends.data(), nullptr,
                                           place.data(), receives.data(), nullptr, wire.type,
                                           context.comm, context.stream));
                      place.deliver();
                  });
}

// If the process group has worked on a device, the barrier runs there, and so comes after the work
// that is in progress on the device.
WorkPtr Backend::barrier(const c10d::BarrierOptions &opts)
{
    const c10::Device device = opts.device.has_value() ? *opts.device
                               : on_device_            ? on_device_->device()
                                                       : c10::Device(at::kCPU);

    return launch_at(device, c10d::OpType::BARRIER, "tutti:barrier", {}, {}, opts.asyncOp,
                     opts.timeout,
                     [](const CallContext &context) { check(tuttiBarrier(context.comm, context.stream)); });
}

} // namespace tutti_torch
