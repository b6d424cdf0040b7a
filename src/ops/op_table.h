// The table of all ops, one line each. An op without a gradient rule (labels, random numbers, the backward ops
// themselves) has null there.
#pragma once

#include <span>
#include <string_view>

#include "ops/rules.h"

namespace lockstep::ops {

enum class Family : uint8_t {
  source,
  dense,
  window,
  sampling,
  unary,
  binary,
  softmax,
  reduce,
  shape,
  random,
  backward,
  internal
};

struct OpDef {
  Op op;
  std::string_view name;
  Family family;
  std::string_view formula;  ///< one line for docs/ops.md
  GradientRule gradient;
};

/// Returns all ops in the order of graph::Op.
std::span<const OpDef> op_table();
const OpDef& definition(Op op);
std::string_view name(Op op);
std::string_view name(Family family);

}  // namespace lockstep::ops
