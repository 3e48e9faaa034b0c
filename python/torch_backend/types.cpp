// SPDX-License-Identifier: Apache-2.0
#include "types.h"

#include <optional>

namespace tutti_torch {

static std::optional<tuttiDataType_t> type_of(at::ScalarType type)
{
    switch (type) {
    case at::kBool: return tuttiBool;
    case at::kChar: return tuttiInt8;
    case at::kByte: return tuttiUint8;
    case at::kInt: return tuttiInt32;
    case at::kLong: return tuttiInt64;
    case at::kShort: return tuttiInt16;
    case at::ScalarType::UInt16: return tuttiUint16;
    case at::ScalarType::UInt32: return tuttiUint32;
    case at::ScalarType::UInt64: return tuttiUint64;
    case at::kHalf: return tuttiFloat16;
    case at::kBFloat16: return tuttiBfloat16;
    case at::kFloat: return tuttiFloat32;
    case at::kDouble: return tuttiFloat64;
    case at::ScalarType::Float8_e4m3fn: return tuttiFloat8e4m3;
    case at::ScalarType::Float8_e5m2: return tuttiFloat8e5m2;
    default: return std::nullopt;
    }
}

Wire wire_of(at::ScalarType type)
{
    if (auto known = type_of(type))
        return {*known, 1};
    if (type == at::kComplexFloat)
        return {tuttiFloat32, 2};
    if (type == at::kComplexDouble)
        return {tuttiFloat64, 2};
    return {tuttiUint8, c10::elementSize(type)};
}

static bool is_bitwise(c10d::ReduceOp::RedOpType op)
{
    return op == c10d::ReduceOp::BAND || op == c10d::ReduceOp::BOR || op == c10d::ReduceOp::BXOR;
}

static const char *name_of(c10d::ReduceOp::RedOpType op)
{
    static const char *const names[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR",
                                        "BXOR", "PREMUL_SUM"};

    return op <= c10d::ReduceOp::PREMUL_SUM ? names[op] : "this operation";
}

static tuttiRedOp_t plain_op(c10d::ReduceOp::RedOpType op)
{
    switch (op) {
    case c10d::ReduceOp::AVG: return tuttiAvg;
    case c10d::ReduceOp::PRODUCT: return tuttiProd;
    case c10d::ReduceOp::MIN: return tuttiMin;
    case c10d::ReduceOp::MAX: return tuttiMax;
    case c10d::ReduceOp::BAND: return tuttiBand;
    case c10d::ReduceOp::BOR: return tuttiBor;
    case c10d::ReduceOp::BXOR: return tuttiBxor;
    default: return tuttiSum; // for PREMUL_SUM, class Operation replaces it (reductions.cpp)
    }
}

Reduction reduction_of(const c10d::ReduceOp &reduce_op, at::ScalarType type)
{
    const auto op = reduce_op.op_;

    TORCH_CHECK(op <= c10d::ReduceOp::PREMUL_SUM, "tutti: reduction ", static_cast<int>(op),
                " is unknown; use one of torch.distributed.ReduceOp");
    TORCH_CHECK(!is_bitwise(op) || at::isIntegralType(type, true) ||
                    at::isBarebonesUnsignedType(type),
                "tutti: cannot use ReduceOp.", name_of(op), " with ", c10::toString(type),
                ": bitwise operations need integers");
    TORCH_CHECK(type != at::kBool ||
                    (op != c10d::ReduceOp::AVG && op != c10d::ReduceOp::PREMUL_SUM),
                "tutti: cannot use ReduceOp.", name_of(op),
                " with bool; convert the tensor to a number type first");
    if (at::isComplexType(type)) {
        TORCH_CHECK(op == c10d::ReduceOp::SUM || op == c10d::ReduceOp::AVG ||
                        op == c10d::ReduceOp::PREMUL_SUM,
                    "tutti: cannot use ReduceOp.", name_of(op), " with ", c10::toString(type),
                    ": complex numbers can be summed and averaged");
        const auto run_type = type == at::kComplexHalf ? at::kComplexFloat : type;

        return {plain_op(op), run_type, wire_of(run_type)};
    }
    TORCH_CHECK(type_of(type).has_value(), "tutti: cannot reduce ", c10::toString(type),
                "; convert it to a type of torch.float32, float64, float16, bfloat16, "
                "float8_e4m3fn, float8_e5m2, or an integer");
    return {plain_op(op), type, wire_of(type)};
}

} // namespace tutti_torch
