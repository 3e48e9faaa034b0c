// SPDX-License-Identifier: Apache-2.0
// Collectives that reduce. Tensors are checked in the calling thread. Then one call of the library
// reduces them.
#include <numeric>

#include "arguments.h"
#include "launch.h"

namespace tutti_torch {

// ---- reductions ------------------------------------------------------------------------------

// The library's operation of a reduction. It exists for one call, because a premultiplied sum has to
// be created before the call and destroyed after it.
class Operation {
  public:
    Operation(const c10d::ReduceOp &op, const Reduction &reduction, tuttiComm_t comm)
        : comm_(comm), op_(reduction.op)
    {
        if (op.op_ != c10d::ReduceOp::PREMUL_SUM)
            return;
        const auto *supplement = static_cast<c10d::PreMulSumSupplement *>(op.supplement_.get());

        TORCH_CHECK_VALUE(supplement != nullptr,
                          "tutti: ReduceOp.PREMUL_SUM has no factor; make it by "
                          "torch.distributed._make_nccl_premul_sum(factor)");
        TORCH_CHECK_VALUE(reduction.wire.per_element == 1,
                          "tutti: cannot use ReduceOp.PREMUL_SUM with complex numbers; multiply the "
                          "tensor first, and use ReduceOp.SUM");
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
    bool is_ours_ = false; // op_ was created here
};

// Returns a tensor with one more dimension: entry r is the input of rank r.
static at::Tensor gather_all(const at::Tensor &input, int size, const CallContext &context)
{
    const Wire wire = wire_of(input.scalar_type());
    std::vector<int64_t> sizes = input.sizes().vec();

    sizes.insert(sizes.begin(), size);
    at::Tensor all = at::empty(sizes, input.options());
    check(tuttiAllGather(input.data_ptr(), all.data_ptr(), wire.count(input), wire.type, context.comm,
                         context.stream));
    return all;
}

// Returns the input in the type in which the library reduces it.
static at::Tensor as_run(const at::Tensor &input, const Reduction &reduction)
{
    return input.scalar_type() == reduction.run_type ? input : input.to(reduction.run_type);
}

static void all_reduce_one(const Output &tensor, const at::Tensor &input, const c10d::ReduceOp &op,
                           const Reduction &reduction, const CallContext &context)
{
    const Operation operation(op, reduction, context.comm);

    if (input.scalar_type() == reduction.run_type) {
        check(tuttiAllReduce(input.data_ptr(), tensor.data(), reduction.wire.count(input),
                             reduction.wire.type, operation, context.comm, context.stream));
        tensor.deliver();
        return;
    }
    at::Tensor run = as_run(input, reduction);

    check(tuttiAllReduce(run.data_ptr(), run.data_ptr(), reduction.wire.count(run),
                         reduction.wire.type, operation, context.comm, context.stream));
    tensor.wanted.copy_(run);
}

WorkPtr Backend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    if (tensors.size() == 1 && tensors[0].is_sparse())
        return allreduce_sparse(tensors, opts);
    const at::Tensor &tensor = only_tensor(tensors, "all_reduce");
    const Reduction reduction = reduction_of(opts.reduceOp, tensor.scalar_type());

    check_output(tensor, "all_reduce");
    return launch(c10d::OpType::ALLREDUCE, "tutti:all_reduce", tensors, tensors, opts.asyncOp,
                  opts.timeout,
                  [tensor, reduction, op = opts.reduceOp](const CallContext &context) {
                      all_reduce_one(Output(tensor), as_contiguous(tensor), op, reduction, context);
                  });
}

WorkPtr Backend::allreduce_coalesced(Tensors &tensors,
                                     const c10d::AllreduceCoalescedOptions &opts)
{
    for (const auto &tensor : tensors) {
        check_tensor(tensor, "all_reduce_coalesced");
        (void)reduction_of(opts.reduceOp, tensor.scalar_type());
    }
    check_outputs(tensors, "all_reduce_coalesced");
    return launch(c10d::OpType::ALLREDUCE_COALESCED, "tutti:all_reduce", tensors, tensors,
                  opts.asyncOp, opts.timeout,
                  [tensors, op = opts.reduceOp](const CallContext &context) {
                      for (const auto &tensor : tensors)
                          all_reduce_one(Output(tensor), as_contiguous(tensor), op,
                                         reduction_of(op, tensor.scalar_type()), context);
                  });
}

// Returns the rows of all ranks, one after the other. Rank r has rows[r] of them.
static at::Tensor concatenate(const at::Tensor &input, const std::vector<size_t> &rows,
                              const CallContext &context)
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
                          context.comm, context.stream));
    return all;
}

// Sums sparse tensors: concatenates the elements of all ranks, and adds those of equal indices.
static void sum_sparse(const at::Tensor &tensor, int size, const CallContext &context)
{
    at::Tensor input = tensor.coalesce();
    at::Tensor count = at::full({1}, input._nnz(), input.indices().options());
    at::Tensor counts = gather_all(count, size, context);
    std::vector<size_t> rows;

    for (int rank = 0; rank < size; rank++)
        rows.push_back(static_cast<size_t>(counts[rank].item<int64_t>()));
    at::Tensor indices = concatenate(input.indices().t().contiguous(), rows, context);
    at::Tensor values = concatenate(input.values().contiguous(), rows, context);

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
                  [tensor = tensors[0], size = getSize()](const CallContext &context) {
                      sum_sparse(tensor, size, context);
                  });
}

WorkPtr Backend::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
    const at::Tensor &tensor = only_tensor(tensors, "reduce");
    const Reduction reduction = reduction_of(opts.reduceOp, tensor.scalar_type());
    const int root = static_cast<int>(opts.rootRank);

    check_root(opts.rootRank, getSize(), "reduce");
    if (getRank() == root)
        check_output(tensor, "reduce");
    return launch(
        c10d::OpType::REDUCE, "tutti:reduce", tensors, tensors, opts.asyncOp, opts.timeout,
        [tensor, reduction, root, op = opts.reduceOp, rank = getRank()](const CallContext &context) {
            const at::Tensor input = as_contiguous(tensor);
            const Operation operation(op, reduction, context.comm);
            at::Tensor run = as_run(input, reduction);
            const bool is_direct = run.is_same(tensor);
            at::Tensor result = rank != root || is_direct ? run : at::empty_like(run);

            check(tuttiReduce(run.data_ptr(), result.data_ptr(), reduction.wire.count(run),
                              reduction.wire.type, operation, root, context.comm, context.stream));
            if (rank == root && !is_direct)
                tensor.copy_(result);
        });
}

// ---- reduce-scatter --------------------------------------------------------------------------

// `input` is contiguous. It has a block for each rank, of counts[rank] elements. If `counts` is
// empty, all blocks have the size of `output`.
static void reduce_scatter_one(const at::Tensor &output, const at::Tensor &input,
                               const std::vector<int64_t> &counts, const c10d::ReduceOp &op,
                               const CallContext &context)
{
    const Reduction reduction = reduction_of(op, output.scalar_type());
    const bool is_even = counts.empty();
    const Operation operation(op, reduction, context.comm);
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
                                       context.comm, context.stream)
                  : tuttiReduceScatterV(run.data_ptr(), place.data(), elements.data(), nullptr,
                                        reduction.wire.type, operation, context.comm, context.stream));
    if (is_direct)
        place.deliver();
    else
        output.copy_(place.place);
}

WorkPtr Backend::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                const c10d::ReduceScatterOptions &opts)
{
    const at::Tensor &output = only_tensor(outputs, "reduce_scatter");
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
    check_output(output, "reduce_scatter");
    if (is_even)
        counts.clear();
    return launch(c10d::OpType::REDUCE_SCATTER, "tutti:reduce_scatter", list, outputs,
                  opts.asyncOp, opts.timeout,
                  [output, counts, list, op = opts.reduceOp](const CallContext &context) {
                      reduce_scatter_one(output, Flat::input(list, context).whole(), counts, op, context);
                  });
}

WorkPtr Backend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                      const c10d::ReduceScatterOptions &opts)
{
    check_gathered(input, output, getSize(), "reduce_scatter_tensor");
    check_output(output, "reduce_scatter_tensor");
    (void)reduction_of(opts.reduceOp, output.scalar_type());
    return launch(c10d::OpType::_REDUCE_SCATTER_BASE, "tutti:reduce_scatter", {input}, {output},
                  opts.asyncOp, opts.timeout,
                  [output, input, op = opts.reduceOp](const CallContext &context) {
                      reduce_scatter_one(output, as_contiguous(input), {}, op, context);
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
    check_outputs(outputs, "reduce_scatter_tensor");
    return launch(c10d::OpType::REDUCE_SCATTER_TENSOR_COALESCED, "tutti:reduce_scatter", inputs,
                  outputs, opts.asyncOp, opts.timeout,
                  [outputs, inputs, op = opts.reduceOp](const CallContext &context) {
                      for (size_t i = 0; i < inputs.size(); i++)
                          reduce_scatter_one(outputs[i], as_contiguous(inputs[i]), {}, op, context);
                  });
}

} // namespace tutti_torch
