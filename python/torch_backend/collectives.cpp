// SPDX-License-Identifier: Apache-2.0
// Collectives: tensors are checked and made contiguous in the calling thread, then one call of the
// library moves them.
#include <ATen/ATen.h>

#include <numeric>

#include "launch.h"

namespace tutti_torch {

// ---- arguments -----------------------------------------------------------------------------

void check_tensor(const at::Tensor &tensor, const char *function)
{
    TORCH_CHECK_VALUE(tensor.defined(), "tutti: ", function, ": a tensor is undefined");
    TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "tutti: ", function,
                      ": only dense tensors can be communicated; this one is ", tensor.layout());
    TORCH_CHECK_VALUE(tensor.device().is_cpu() || tensor.device().is_cuda(), "tutti: ", function,
                      ": the tensor is on ", tensor.device(),
                      "; only tensors on CPUs and CUDA devices can be communicated");
}

static at::Tensor &only(Tensors &tensors, const char *function)
{
    TORCH_CHECK_VALUE(tensors.size() == 1, "tutti: ", function, ": takes one tensor per rank, got ",
                      tensors.size());
    check_tensor(tensors[0], function);
    return tensors[0];
}

static void check_root(int64_t root, int size, const char *function)
{
    TORCH_CHECK_VALUE(root >= 0 && root < size, "tutti: ", function, ": root ", root,
                      " is not a rank of this group of ", size);
}

static void check_same_type(const at::Tensor &a, const at::Tensor &b, const char *function)
{
    TORCH_CHECK_TYPE(a.scalar_type() == b.scalar_type(), "tutti: ", function,
                     ": input and output have different types, ", a.scalar_type(), " and ",
                     b.scalar_type());
}

// The tensor itself where the library can work on it; else a copy with the same elements.
static at::Tensor as_contiguous(const at::Tensor &tensor)
{
    return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()
               ? tensor
               : tensor.resolve_conj().resolve_neg().contiguous();
}

// A place for a result, and the tensor that it belongs in.
struct Output {
    at::Tensor wanted, place;

    explicit Output(const at::Tensor &tensor) : wanted(tensor)
    {
        place = tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg()
                    ? tensor
                    : at::empty(tensor.sizes(), tensor.options());
    }

    void *data() const { return place.data_ptr(); }

    void deliver() const
    {
        if (!place.is_same(wanted))
            wanted.copy_(place);
    }
};

// ---- reductions ------------------------------------------------------------------------------

// The library's operation, alive for one call.
class Operation {
  public:
    Operation(const c10d::ReduceOp &op, const Reduction &reduction, tuttiComm_t comm)
        : comm_(comm), op_(reduction.op)
    {
        if (op.op_ != c10d::ReduceOp::PREMUL_SUM)
            return;
        const auto *supplement = static_cast<c10d::PreMulSumSupplement *>(op.supplement_.get());

        TORCH_CHECK_VALUE(supplement != nullptr, "tutti: ReduceOp.PREMUL_SUM without a factor");
        TORCH_CHECK_VALUE(reduction.wire.per_element == 1,
                          "tutti: ReduceOp.PREMUL_SUM with complex numbers is not defined");
        at::Tensor factor =
            supplement->tensor_factor.defined()
                ? supplement->tensor_factor.to(at::kCPU, reduction.run_type).contiguous()
                : at::full({1}, supplement->double_factor,
                           at::TensorOptions().dtype(reduction.run_type));

        check(tuttiRedOpCreatePreMulSum(&op_, factor.data_ptr(), reduction.wire.type,
                                        tuttiScalarHostImmediate, comm));
        is_ours_ = true;
    }

    ~Operation()
    {
        if (is_ours_)
            (void)tuttiRedOpDestroy(op_, comm_);
    }

    Operation(const Operation &) = delete;
    Operation &operator=(const Operation &) = delete;

    operator tuttiRedOp_t() const { return op_; }

  private:
    tuttiComm_t comm_;
    tuttiRedOp_t op_;
    bool is_ours_ = false;
};

// All ranks' blocks, one above the other.
static at::Tensor gather_all(const at::Tensor &input, int size, const Seat &seat)
{
    const Wire wire = wire_of(input.scalar_type());
    std::vector<int64_t> sizes = input.sizes().vec();

    sizes.insert(sizes.begin(), size);
    at::Tensor all = at::empty(sizes, input.options());
    check(tuttiAllGather(input.data_ptr(), all.data_ptr(), wire.count(input), wire.type, seat.comm, seat.stream));
    return all;
}

// Widened before, narrowed afterwards.
static at::Tensor as_run(const at::Tensor &input, const Reduction &reduction)
{
    return input.scalar_type() == reduction.run_type ? input : input.to(reduction.run_type);
}

static void all_reduce_one(const Output &tensor, const at::Tensor &input, const c10d::ReduceOp &op,
                           const Reduction &reduction, int size, const Seat &seat)
{
    if (reduction.is_gathered) {
        tensor.wanted.copy_(combine(gather_all(input, size, seat), op.op_));
        return;
    }
    const Operation operation(op, reduction, seat.comm);

    if (input.scalar_type() == reduction.run_type) {
        check(tuttiAllReduce(input.data_ptr(), tensor.data(), reduction.wire.count(input),
                             reduction.wire.type, operation, seat.comm, seat.stream));
        tensor.deliver();
        return;
    }
    at::Tensor run = as_run(input, reduction);

    check(tuttiAllReduce(run.data_ptr(), run.data_ptr(), reduction.wire.count(run),
                         reduction.wire.type, operation, seat.comm, seat.stream));
    tensor.wanted.copy_(run);
}

WorkPtr Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    if (tensors.size() == 1 && tensors[0].is_sparse())
        return allreduce_sparse(tensors, opts);
    const at::Tensor &tensor = only(tensors, "all_reduce");
    const Reduction reduction = reduction_of(opts.reduceOp, tensor.scalar_type());

    return launch(c10d::OpType::ALLREDUCE, "tutti:all_reduce", tensors, tensors, opts.asyncOp,
                  opts.timeout,
                  [tensor, reduction, op = opts.reduceOp, size = getSize()](const Seat &seat) {
                      all_reduce_one(Output(tensor), as_contiguous(tensor), op, reduction, size,
                                     seat);
                  });
}

WorkPtr Backend::allreduce_coalesced(Tensors &tensors,
                                     const c10d::AllreduceCoalescedOptions &opts)
{
    for (const auto &tensor : tensors) {
        check_tensor(tensor, "all_reduce_coalesced");
        (void)reduction_of(opts.reduceOp, tensor.scalar_type());
    }
    return launch(c10d::OpType::ALLREDUCE_COALESCED, "tutti:all_reduce", tensors, tensors,
                  opts.asyncOp, opts.timeout,
                  [tensors, op = opts.reduceOp, size = getSize()](const Seat &seat) {
                      for (const auto &tensor : tensors)
                          all_reduce_one(Output(tensor), as_contiguous(tensor), op,
                                         reduction_of(op, tensor.scalar_type()), size, seat);
                  });
}

// The elements of all ranks, one after the other; as many of each as it has.
static at::Tensor concatenate(const at::Tensor &input, const std::vector<size_t> &rows,
                              const Seat &seat)
{
    const Wire wire = wire_of(input.scalar_type());
    std::vector<int64_t> sizes = input.sizes().vec();
    std::vector<size_t> counts = rows;
    size_t per_row = wire.per_element;

    for (size_t i = 1; i < sizes.size(); i++)
        per_row *= static_cast<size_t>(sizes[i]);
    sizes[0] = static_cast<int64_t>(std::accumulate(rows.begin(), rows.end(), size_t{0}));
    for (auto &count : counts)
        count *= per_row;
    at::Tensor all = at::empty(sizes, input.options());

    check(tuttiAllGatherV(input.data_ptr(), all.data_ptr(), counts.data(), nullptr, wire.type,
                          seat.comm, seat.stream));
    return all;
}

// The sum of sparse tensors has the elements of all of them.
static void sum_sparse(const at::Tensor &tensor, int size, const Seat &seat)
{
    at::Tensor input = tensor.coalesce();
    at::Tensor mine = at::full({1}, input._nnz(), input.indices().options());
    at::Tensor everybodys = gather_all(mine, size, seat);
    std::vector<size_t> rows;

    for (int rank = 0; rank < size; rank++)
        rows.push_back(static_cast<size_t>(everybodys[rank].item<int64_t>()));
    at::Tensor indices = concatenate(input.indices().t().contiguous(), rows, seat);
    at::Tensor values = concatenate(input.values().contiguous(), rows, seat);

    tensor.copy_(at::sparse_coo_tensor(indices.t(), values, tensor.sizes()).coalesce());
}

WorkPtr Backend::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    TORCH_CHECK_VALUE(tensors.size() == 1 && tensors[0].layout() == at::kSparse,
                      "tutti: all_reduce: takes one tensor per rank, dense or sparse (COO)");
    TORCH_CHECK_VALUE(opts.reduceOp.op_ == c10d::ReduceOp::SUM,
                      "tutti: all_reduce: sparse tensors can only be summed");
    return launch(c10d::OpType::_ALLREDUCE_SPARSE, "tutti:all_reduce", tensors, tensors,
                  opts.asyncOp, opts.timeout,
                  [tensor = tensors[0], size = getSize()](const Seat &seat) {
                      sum_sparse(tensor, size, seat);
                  });
}

WorkPtr Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
    const at::Tensor &tensor = only(tensors, "reduce");
    const Reduction reduction = reduction_of(opts.reduceOp, tensor.scalar_type());
    const int root = static_cast<int>(opts.rootRank);

    check_root(opts.rootRank, getSize(), "reduce");
    return launch(
        c10d::OpType::REDUCE, "tutti:reduce", tensors, tensors, opts.asyncOp, opts.timeout,
        [tensor, reduction, root, op = opts.reduceOp, rank = getRank(), size = getSize()](const Seat &seat) {
            const at::Tensor input = as_contiguous(tensor);

            if (reduction.is_gathered) {
                at::Tensor result = combine(gather_all(input, size, seat), op.op_);

                if (rank == root)
                    tensor.copy_(result);
                return;
            }
            const Operation operation(op, reduction, seat.comm);
            at::Tensor run = as_run(input, reduction);
            const bool is_direct = run.is_same(tensor);
            at::Tensor result = rank != root || is_direct ? run : at::empty_like(run);

            check(tuttiReduce(run.data_ptr(), result.data_ptr(), reduction.wire.count(run),
                              reduction.wire.type, operation, root, seat.comm, seat.stream));
            if (rank == root && !is_direct)
                tensor.copy_(result);
        });
}

// ---- one to all, all to one ------------------------------------------------------------------

WorkPtr Backend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
    const at::Tensor &tensor = only(tensors, "broadcast");
    const int root = static_cast<int>(opts.rootRank);

    check_root(opts.rootRank, getSize(), "broadcast");
    return launch(c10d::OpType::BROADCAST, "tutti:broadcast", tensors, tensors, opts.asyncOp,
                  opts.timeout, [tensor, root, rank = getRank()](const Seat &seat) {
                      const Wire wire = wire_of(tensor.scalar_type());
                      const Output output(tensor);
                      const at::Tensor input = rank == root ? as_contiguous(tensor) : tensor;

                      check(tuttiBroadcast(rank == root ? input.data_ptr() : nullptr,
                                           output.data(), wire.count(tensor), wire.type, root,
                                           seat.comm, seat.stream));
                      if (rank != root)
                          output.deliver();
                  });
}

static const Tensors &only_list(const std::vector<Tensors> &lists, const at::Tensor &one, int size,
                                const char *function)
{
    TORCH_CHECK_VALUE(lists.size() == 1 && lists[0].size() == static_cast<size_t>(size), "tutti: ",
                      function, ": takes one list of ", size, " tensors, one for each rank; got ",
                      lists.empty() ? 0 : lists[0].size());
    for (const auto &tensor : lists[0]) {
        check_tensor(tensor, function);
        check_same_type(tensor, one, function);
    }
    return lists[0];
}

static void check_gathered(const at::Tensor &output, const at::Tensor &input, int size,
                           const char *function)
{
    check_tensor(output, function);
    check_tensor(input, function);
    check_same_type(output, input, function);
    TORCH_CHECK_VALUE(output.numel() == input.numel() * size, "tutti: ", function, ": ", size,
                      " ranks with inputs of ", input.numel(), " elements need an output of ",
                      input.numel() * size, ", not ", output.numel());
}

// The list of the root of a gather or scatter; elsewhere there is none.
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

// Blocks of a list, one after the other.
static at::Tensor flatten(const Tensors &list)
{
    Tensors flat;

    for (const auto &tensor : list)
        flat.push_back(tensor.resolve_conj().resolve_neg().reshape({-1}));
    return at::cat(flat);
}

// The reverse: `flat` has the list's elements.
static void unflatten(const at::Tensor &flat, const Tensors &list)
{
    int64_t at = 0;

    for (const auto &tensor : list) {
        tensor.copy_(flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
    }
}

static int64_t elements_of(const Tensors &list)
{
    int64_t total = 0;

    for (const auto &tensor : list)
        total += tensor.numel();
    return total;
}

WorkPtr Backend::gather(std::vector<Tensors> &outputs, Tensors &inputs,
                        const c10d::GatherOptions &opts)
{
    const at::Tensor &input = only(inputs, "gather");
    const int root = static_cast<int>(opts.rootRank);
    const Tensors list = list_of_root(outputs, input, root, getRank(), getSize(), "gather");

    return launch(c10d::OpType::GATHER, "tutti:gather", inputs, list, opts.asyncOp, opts.timeout,
                  [input, list, root](const Seat &seat) {
                      const Wire wire = wire_of(input.scalar_type());
                      const at::Tensor send = as_contiguous(input);
                      at::Tensor flat;

                      if (!list.empty())
                          flat = at::empty({elements_of(list)}, input.options());
                      check(tuttiGather(send.data_ptr(), flat.defined() ? flat.data_ptr() : nullptr,
                                        wire.count(send), wire.type, root, seat.comm, seat.stream));
                      if (flat.defined())
                          unflatten(flat, list);
                  });
}

WorkPtr Backend::gather_into_tensor(at::Tensor &output, at::Tensor &input,
                                    const c10d::GatherOptions &opts)
{
    const int root = static_cast<int>(opts.rootRank);
    const bool is_root = getRank() == root;

    check_root(opts.rootRank, getSize(), "gather_single");
    check_tensor(input, "gather_single");
    if (is_root)
        check_gathered(output, input, getSize(), "gather_single");
    return launch(c10d::OpType::GATHER, "tutti:gather", {input},
                  is_root ? Tensors{output} : Tensors{}, opts.asyncOp, opts.timeout,
                  [output, input, is_root, root](const Seat &seat) {
                      const Wire wire = wire_of(input.scalar_type());
                      const at::Tensor send = as_contiguous(input);
                      const Output place(is_root ? output : send);

                      check(tuttiGather(send.data_ptr(), is_root ? place.data() : nullptr,
                                        wire.count(send), wire.type, root, seat.comm,
                                        seat.stream));
                      if (is_root)
                          place.deliver();
                  });
}

WorkPtr Backend::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                         const c10d::ScatterOptions &opts)
{
    const at::Tensor &output = only(outputs, "scatter");
    const int root = static_cast<int>(opts.rootRank);
    const Tensors list = list_of_root(inputs, output, root, getRank(), getSize(), "scatter");

    return launch(c10d::OpType::SCATTER, "tutti:scatter", list, outputs, opts.asyncOp, opts.timeout,
                  [output, list, root](const Seat &seat) {
                      const Wire wire = wire_of(output.scalar_type());
                      const Output place(output);
                      at::Tensor flat;

                      if (!list.empty())
                          flat = flatten(list);
                      check(tuttiScatter(flat.defined() ? flat.data_ptr() : nullptr, place.data(),
                                         wire.count(output), wire.type, root, seat.comm, seat.stream));
                      place.deliver();
                  });
}

// ---- all-gather ------------------------------------------------------------------------------

// Outputs of the ranks may differ in size: each is its rank's input.
static void all_gather_list(const Tensors &outputs, const at::Tensor &input, const Seat &seat)
{
    const Wire wire = wire_of(input.scalar_type());
    const at::Tensor send = as_contiguous(input);
    at::Tensor flat = at::empty({elements_of(outputs)}, input.options());
    std::vector<size_t> counts;
    bool are_equal = true;

    for (const auto &output : outputs) {
        counts.push_back(wire.count(output));
        are_equal = are_equal && counts.back() == counts.front();
    }
    check(are_equal ? tuttiAllGather(send.data_ptr(), flat.data_ptr(), wire.count(send), wire.type,
                                     seat.comm, seat.stream)
                    : tuttiAllGatherV(send.data_ptr(), flat.data_ptr(), counts.data(), nullptr,
                                      wire.type, seat.comm, seat.stream));
    unflatten(flat, outputs);
}

// `outputs` has an entry for each rank.
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
    const at::Tensor &input = only(inputs, "all_gather");

    const Tensors &list = only_list(outputs, input, getSize(), "all_gather");
    check_gathered_list(list, input, getRank(), "all_gather");
    return launch(c10d::OpType::ALLGATHER, "tutti:all_gather", inputs, list, opts.asyncOp,
                  opts.timeout, [list, input](const Seat &seat) {
                      all_gather_list(list, input, seat);
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
    return launch(c10d::OpType::ALLGATHER_COALESCED, "tutti:all_gather", inputs, results,
                  opts.asyncOp, opts.timeout, [lists, inputs](const Seat &seat) {
                      for (size_t i = 0; i < inputs.size(); i++)
                          all_gather_list(lists[i], inputs[i], seat);
                  });
}

static void all_gather_one(const at::Tensor &output, const at::Tensor &input, const Seat &seat)
{
    const Wire wire = wire_of(input.scalar_type());
    const Output place(output);
    const at::Tensor send = as_contiguous(input);

    check(tuttiAllGather(send.data_ptr(), place.data(), wire.count(send), wire.type, seat.comm, seat.stream));
    place.deliver();
}

WorkPtr Backend::_allgather_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::AllgatherOptions &opts)
{
    check_gathered(output, input, getSize(), "all_gather_into_tensor");
    return launch(c10d::OpType::_ALLGATHER_BASE, "tutti:all_gather", {input}, {output},
                  opts.asyncOp, opts.timeout,
                  [output, input](const Seat &seat) { all_gather_one(output, input, seat); });
}

WorkPtr Backend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                 const c10d::AllgatherOptions &opts)
{
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "tutti: all_gather_into_tensor: ",
                      inputs.size(), " inputs, ", outputs.size(), " outputs");
    for (size_t i = 0; i < inputs.size(); i++)
        check_gathered(outputs[i], inputs[i], getSize(), "all_gather_into_tensor");
    return launch(c10d::OpType::ALLGATHER_INTO_TENSOR_COALESCED, "tutti:all_gather", inputs,
                  outputs, opts.asyncOp, opts.timeout, [outputs, inputs](const Seat &seat) {
                      for (size_t i = 0; i < inputs.size(); i++)
                          all_gather_one(outputs[i], inputs[i], seat);
                  });
}

// ---- reduce-scatter --------------------------------------------------------------------------

// `input` is contiguous, with a block of `counts` elements for each rank; all alike if that is
// empty.
static void reduce_scatter_one(const at::Tensor &output, const at::Tensor &input,
                               const std::vector<int64_t> &counts, const c10d::ReduceOp &op,
                               int rank, int size, const Seat &seat)
{
    const Reduction reduction = reduction_of(op, output.scalar_type());
    const bool is_even = counts.empty();

    if (reduction.is_gathered) {
        at::Tensor all = combine(gather_all(input, size, seat), op.op_).reshape({-1});
        int64_t at = is_even ? output.numel() * rank
                             : std::accumulate(counts.begin(), counts.begin() + rank, int64_t{0});

        output.copy_(all.narrow(0, at, output.numel()).view(output.sizes()));
        return;
    }
    const Operation operation(op, reduction, seat.comm);
    const at::Tensor run = as_run(input, reduction);
    const bool is_direct = run.is_same(input);
    const Output place(is_direct ? output
                                 : at::empty(output.sizes(),
                                             output.options().dtype(reduction.run_type)));
    std::vector<size_t> elements;

    for (int64_t count : counts)
        elements.push_back(static_cast<size_t>(count) * reduction.wire.per_element);
    check(is_even ? tuttiReduceScatter(run.data_ptr(), place.data(),
                                       reduction.wire.count(output), reduction.wire.type, operation,
                                       seat.comm, seat.stream)
                  : tuttiReduceScatterV(run.data_ptr(), place.data(), elements.data(), nullptr,
                                        reduction.wire.type, operation, seat.comm, seat.stream));
    if (is_direct)
        place.deliver();
    else
        output.copy_(place.place);
}

WorkPtr Backend::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                const c10d::ReduceScatterOptions &opts)
{
    const at::Tensor &output = only(outputs, "reduce_scatter");
    std::vector<int64_t> counts;
    bool is_even = true;

    const Tensors &list = only_list(inputs, output, getSize(), "reduce_scatter");
    (void)reduction_of(opts.reduceOp, output.scalar_type());
    for (const auto &input : list) {
        counts.push_back(input.numel());
        is_even = is_even && counts.back() == counts.front();
    }
    TORCH_CHECK_VALUE(counts[static_cast<size_t>(getRank())] == output.numel(),
                      "tutti: reduce_scatter: the input for rank ", getRank(), " has ",
                      counts[static_cast<size_t>(getRank())], " elements, the output ",
                      output.numel());
    if (is_even)
        counts.clear();
    return launch(c10d::OpType::REDUCE_SCATTER, "tutti:reduce_scatter", list, outputs,
                  opts.asyncOp, opts.timeout,
                  [output, counts, list, op = opts.reduceOp, rank = getRank(),
                   size = getSize()](const Seat &seat) {
                      reduce_scatter_one(output, flatten(list), counts, op, rank, size, seat);
                  });
}

WorkPtr Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                      const c10d::ReduceScatterOptions &opts)
{
    check_gathered(input, output, getSize(), "reduce_scatter_tensor");
    (void)reduction_of(opts.reduceOp, output.scalar_type());
    return launch(c10d::OpType::_REDUCE_SCATTER_BASE, "tutti:reduce_scatter", {input}, {output},
                  opts.asyncOp, opts.timeout,
                  [output, input, op = opts.reduceOp, rank = getRank(), size = getSize()](const Seat &seat) {
                      reduce_scatter_one(output, as_contiguous(input), {}, op, rank, size, seat);
                  });
}

WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                 const c10d::ReduceScatterOptions &opts)
{
    TORCH_CHECK_VALUE(outputs.size() == inputs.size(), "tutti: reduce_scatter_tensor: ",
                      inputs.size(), " inputs, ", outputs.size(), " outputs");
    for (size_t i = 0; i < inputs.size(); i++) {
        check_gathered(inputs[i], outputs[i], getSize(), "reduce_scatter_tensor");
        (void)reduction_of(opts.reduceOp, outputs[i].scalar_type());
    }
    return launch(c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED, "tutti:reduce_scatter", inputs,
                  outputs, opts.asyncOp, opts.timeout,
                  [outputs, inputs, op = opts.reduceOp, rank = getRank(), size = getSize()](const Seat &seat) {
                      for (size_t i = 0; i < inputs.size(); i++)
                          reduce_scatter_one(outputs[i], as_contiguous(inputs[i]), {}, op, rank,
                                             size, seat);
                  });
}

// ---- all-to-all ------------------------------------------------------------------------------

// Elements for each rank, where the first dimension is split so.
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
        TORCH_CHECK_VALUE(part >= 0, "tutti: all_to_all_single: a split is negative");
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
    return launch(c10d::OpType::ALLTOALL_BASE, "tutti:all_to_all", {input}, {output}, opts.asyncOp,
                  opts.timeout, [=](const Seat &seat) {
                      const Wire wire = wire_of(input.scalar_type());
                      const Output place(output);
                      const at::Tensor send = as_contiguous(input);

                      check(is_even ? tuttiAlltoAll(send.data_ptr(), place.data(), sends[0],
                                                    wire.type, seat.comm, seat.stream)
                                    : tuttiAlltoAllV(send.data_ptr(), sends.data(), nullptr,
                                                     place.data(), receives.data(), nullptr,
                                                     wire.type, seat.comm, seat.stream));
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
    return launch(c10d::OpType::ALLTOALL, "tutti:all_to_all", inputs, outputs, opts.asyncOp,
                  opts.timeout, [outputs, inputs](const Seat &seat) {
                      const Wire wire = wire_of(inputs[0].scalar_type());
                      const at::Tensor send = flatten(inputs);
                      at::Tensor place = at::empty({elements_of(outputs)}, inputs[0].options());
                      std::vector<size_t> sends, receives;

                      for (size_t i = 0; i < inputs.size(); i++) {
                          sends.push_back(wire.count(inputs[i]));
                          receives.push_back(wire.count(outputs[i]));
                      }
                      check(tuttiAlltoAllV(send.data_ptr(), sends.data(), nullptr,
                                           place.data_ptr(), receives.data(), nullptr, wire.type,
                                           seat.comm, seat.stream));
                      unflatten(place, outputs);
                  });
}

// A process group that has worked on a device waits for what is under way there, too.
WorkPtr Backend::barrier(const c10d::BarrierOptions &opts)
{
    const c10::Device device = opts.device.has_value() ? *opts.device
                               : on_device_            ? on_device_->device()
                                                       : c10::Device(at::kCPU);

    return launch_at(device, c10d::OpType::BARRIER, "tutti:barrier", {}, {}, opts.asyncOp,
                     opts.timeout,
                     [](const Seat &seat) { check(tuttiBarrier(seat.comm, seat.stream)); });
}

} // namespace tutti_torch
