// The placement of the parameter buffer's elements on parameter servers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lockstep/graph.h"
#include "schedule/range.h"

namespace lockstep::schedule {

enum class Placement : uint8_t {
  balanced,    ///< equal parts of the buffer, cut at multiples of 16 elements: large tensors are split
  round_robin  ///< whole parameters in creation order, parameter i on server i % servers, as TensorFlow does
};
Placement parse_placement(std::string_view text);

/// Returns the ranges of each server, ascending; together they cover every element once. A server may get none.
std::vector<std::vector<ParameterRange>> place(const std::vector<graph::ParameterInfo>& parameters, int servers,
                                               Placement placement);

/// The part of `ranges` that lies in `within`, both as positions in the whole buffer, and its start if `ranges` are
/// laid one after the other.
struct Slice {
  ParameterRange global;
  size_t local = 0;
};
std::vector<Slice> intersect(const std::vector<ParameterRange>& ranges, ParameterRange within);

}  // namespace lockstep::schedule
