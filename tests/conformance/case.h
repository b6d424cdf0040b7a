// A conformance case: a small graph over random inputs. Every case runs on every backend and must agree with the plain
// reference. If it is differentiable, its gradients must also agree, with the reference and with numeric
// differentiation.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.h"
#include "lockstep/ops.h"

namespace lockstep::conformance {

using graph::Graph;
using graph::Value;

/// The distribution of an input's values.
enum class Draw {
  normal,    ///< N(0, 1)
  positive,  ///< in [0.5, 2)
  apart,     ///< distinct values with gaps, none near zero: for ops with kinks
  labels,    ///< int32 in [0, classes)
  probabilities,
};

struct InputSpec {
  Shape shape;
  Draw draw = Draw::normal;
  int classes = 0;
};

struct Case {
  std::string name;
  std::vector<InputSpec> inputs;
  std::function<Value(std::vector<Value>&)> build;
  bool differentiable = true;
  double tolerance = 2e-5;  ///< relative to the largest element; fast kernels against the reference
  bool smooth = true;       ///< false: many kinks per input, so numeric differentiation of the whole is meaningless
};

inline std::ostream& operator<<(std::ostream& stream, const Case& c) { return stream << c.name; }

/// All cases, generated from the seed.
std::vector<Case> all_cases(uint64_t seed);

std::vector<Case> dense_cases(base::Sequence& random);
std::vector<Case> window_cases(base::Sequence& random);
std::vector<Case> sampling_cases();
std::vector<Case> lrn_cases();
std::vector<Case> elementwise_cases(base::Sequence& random);
std::vector<Case> softmax_cases(base::Sequence& random);
std::vector<Case> shaping_cases(base::Sequence& random);
std::vector<Case> random_cases(base::Sequence& random);

/// Returns a number in [low, high].
inline int64_t between(base::Sequence& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint32_t>(high - low + 1)));
}

}  // namespace lockstep::conformance
