// One test body for every op and backend; see case.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <string>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "conformance/case.h"
#include "ops/op_table.h"
#include "program/program.h"

namespace lockstep::conformance {
namespace {

constexpr uint64_t kSeed = 20;
constexpr backend::StepContext kStep{11, 3, 5};

/// A case's graph: y and, if it is differentiable, the gradient of sum(y * weights) to every float input.
struct Built {
  Graph graph;
  std::vector<Value> inputs;
  std::vector<Value> outputs;
};

Built build(const Case& c) {
  Built built;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const DType dtype = c.inputs[i].draw == Draw::labels ? DType::i32 : DType::f32;
    built.inputs.push_back(built.graph.input("in" + std::to_string(i), {dtype, c.inputs[i].shape}));
  }
  std::vector<Value> arguments = built.inputs;
  const Value y = c.build(arguments);
  built.outputs.push_back(y);
  if (!c.differentiable) return built;
  const Value weights = built.graph.input("weights", y.type());
  std::vector<Value> targets;
  for (const Value& input : built.inputs) {
    if (input.dtype() == DType::f32) targets.push_back(input);
  }
  built.inputs.push_back(weights);
  const Value loss = ops::reduce_sum(ops::mul(y, weights));
  for (const Value& gradient : ops::gradients(loss, targets)) built.outputs.push_back(gradient);
  return built;
}

using Data = std::vector<std::vector<float>>;  // labels are kept as floats here and converted when bound

std::vector<float> draw(const InputSpec& spec, base::Sequence& random) {
  const auto count = static_cast<size_t>(spec.shape.elements());
  std::vector<float> values(count);
  switch (spec.draw) {
    case Draw::normal:
      for (float& v : values) v = random.normal();
      break;
    case Draw::positive:
      for (float& v : values) v = 0.5F + 1.5F * random.uniform();
      break;
    case Draw::probabilities:
      for (float& v : values) v = 0.05F + 0.9F * random.uniform();
      break;
    case Draw::labels:
      for (float& v : values) v = static_cast<float>(random.below(static_cast<uint32_t>(spec.classes)));
      break;
    case Draw::apart:
      for (size_t i = 0; i < count; ++i) {
        values[i] =
            0.02F * (static_cast<float>(i) - static_cast<float>(count / 2)) + 0.014F + 0.001F * random.uniform();
      }
      for (size_t i = count; i > 1; --i) std::swap(values[i - 1], values[random.below(static_cast<uint32_t>(i))]);
      break;
  }
  return values;
}

Data draw_all(const Case& c, const Built& built) {
  base::Sequence random(kSeed, std::hash<std::string>{}(c.name));
  Data data;
  for (const InputSpec& spec : c.inputs) {
    data.push_back(draw(spec, random));
    const bool shifted = spec.draw == Draw::apart && data.size() % 2 == 0;
    for (float& v : data.back()) v += shifted ? 0.01F : 0.0F;  // keeps the two inputs apart from each other, too
  }
  if (c.differentiable) data.push_back(draw({built.outputs[0].shape()}, random));
  return data;
}

/// A program of some of the outputs, over `data`; its next run sees changes of `data`.
struct Bound {
  Bound(const Built& built, const std::vector<Value>& outputs, const Data& data, const backend::Backend& backend)
      : program(built.graph, outputs, {}, backend), labels(data.size()) {
    for (size_t i = 0; i < data.size(); ++i) {
      if (built.inputs[i].dtype() == DType::i32) {
        labels[i].assign(data[i].begin(), data[i].end());
        program.bind_input(i, labels[i].data());
      } else {
        program.bind_input(i, data[i].data());
      }
    }
  }

  program::Program program;
  std::vector<std::vector<int32_t>> labels;
};

std::vector<std::vector<float>> run(const Built& built, const Data& data, const backend::Backend& backend) {
  Bound bound(built, built.outputs, data, backend);
  program::Program& program = bound.program;
  program.run(kStep);
  std::vector<std::vector<float>> results;
  for (size_t i = 0; i < built.outputs.size(); ++i) {
    const auto values = program.output(i).as<float>();
    results.emplace_back(values.begin(), values.end());
  }
  program.run(kStep);
  for (size_t i = 0; i < built.outputs.size(); ++i) {
    const auto again = program.output(i).as<float>();
    EXPECT_TRUE(std::equal(again.begin(), again.end(), results[i].begin(),
                           [](float a, float b) { return std::memcmp(&a, &b, sizeof(a)) == 0; }))
        << "output " << i << " differs when the same program runs twice";
  }
  return results;
}

void expect_close(const std::vector<float>& got, const std::vector<float>& want, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  double largest = 1e-3;
  for (const float v : want) largest = std::max<double>(largest, std::fabs(v));
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_LE(std::fabs(static_cast<double>(got[i]) - want[i]), tolerance * largest)
        << what << ", element " << i << ": " << got[i] << " instead of " << want[i];
  }
}

double weighted_sum(std::span<const float> y, const std::vector<float>& weights) {
  return std::inner_product(y.begin(), y.end(), weights.begin(), 0.0, std::plus<>(),
                            [](double a, double b) { return a * b; });
}

/// Returns d sum(y * weights) / d one input element, by central differences; `forward` computes y from `data`.
double numeric(program::Program& forward, Data& data, size_t input, size_t element, float step) {
  const float at = data[input][element];
  double ends[2];
  for (int side = 0; side < 2; ++side) {
    data[input][element] = at + (side == 0 ? -step : step);
    forward.run(kStep);
    ends[side] = weighted_sum(forward.output(0).as<float>(), data.back());
  }
  data[input][element] = at;
  return (ends[1] - ends[0]) / (2.0 * step);
}

/// Probes elements of one input's gradient. If two step sizes disagree, there is a kink (of ReLU, of a maximum) and
/// numeric differentiation is meaningless; another element is tried.
void probe_gradient(program::Program& forward, Data& data, size_t input, const std::vector<float>& claimed,
                    base::Sequence& random) {
  double tolerance = 5e-4;
  for (const float v : claimed) tolerance = std::max(tolerance, 0.01 * std::fabs(static_cast<double>(v)));
  int probes = 0;
  for (int attempt = 0; attempt < 40 && probes < 5; ++attempt) {
    const size_t element = random.below(static_cast<uint32_t>(claimed.size()));
    const double fine = numeric(forward, data, input, element, 0.002F);
    if (std::fabs(fine - numeric(forward, data, input, element, 0.005F)) > tolerance) continue;
    ++probes;
    EXPECT_NEAR(claimed[element], fine, tolerance) << "input " << input << ", element " << element;
  }
  EXPECT_GE(probes, 3) << "too many kinks to say anything";
}

class Conformance : public testing::TestWithParam<Case> {};

/// A backend that computes; add a new one as a line here.
struct Contender {
  std::string name;
  std::unique_ptr<backend::Backend> backend;
};

/// More threads than the machine has cores: each case takes one of these numbers.
int many_threads(const Case& c) {
  constexpr std::array kMany{5, 16, 64};
  return kMany[std::hash<std::string>()(c.name) % kMany.size()];
}

std::vector<Contender> contenders(const Case& c) {
  std::vector<Contender> all;
  for (const int threads : {1, 2, 3, many_threads(c)}) {
    all.push_back({"cpu with " + std::to_string(threads) + " threads",
                   backend::make_cpu_backend({.threads = threads, .reference_only = false})});
  }
  all.push_back({"cpu with exact convolutions", backend::make_cpu_backend({.threads = 2, .exact_conv = true})});
  return all;
}

TEST_P(Conformance, FastKernelsAgreeWithTheReference) {
  const Case& c = GetParam();
  const Built built = build(c);
  const Data data = draw_all(c, built);
  const auto reference = backend::make_cpu_backend({.threads = 1, .reference_only = true});
  const auto want = run(built, data, *reference);
  for (const Contender& contender : contenders(c)) {
    const auto got = run(built, data, *contender.backend);
    for (size_t i = 0; i < want.size(); ++i) {
      expect_close(got[i], want[i], c.tolerance,
                   (i == 0 ? "result" : "gradient " + std::to_string(i - 1)) + " on " + contender.name);
    }
  }
}

/// Returns |got - want| / |want|. Single elements are no measure for bfloat16: near a tie of a maximum, the gradient
/// goes to the other element, and the slope of a saturated tanh is the rounding error of 1 - y * y.
double relative_distance(const std::vector<float>& got, const std::vector<float>& want) {
  double distance = 0;
  double norm = 1e-12;
  for (size_t i = 0; i < got.size(); ++i) {
    distance += std::pow(static_cast<double>(got[i]) - want[i], 2);
    norm += std::pow(static_cast<double>(want[i]), 2);
  }
  return std::sqrt(distance / norm);
}

bool any_bf16(const Built& built, const backend::Backend& backend) {
  const program::Program program(built.graph, built.outputs, {}, backend);
  const auto& nodes = program.graph().nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [](const graph::Node& node) { return node.outputs[0].type.dtype == DType::bf16; });
}

/// Backends of bfloat16 with images in both layouts, whatever this CPU's is.
std::vector<Contender> narrow_contenders() {
  std::vector<Contender> all;
  for (const bool last : {false, true}) {
    all.push_back({last ? "channels last" : "blocks of channels",
                   backend::make_cpu_backend({.threads = 2, .bf16 = true, .channels_last = last})});
  }
  return all;
}

TEST_P(Conformance, Bf16StaysNearTheReference) {
  backend::cpu::limit_isa_from_environment();
  if (!backend::cpu::has_avx512_bf16()) return;
  const Case& c = GetParam();
  const Built built = build(c);
  if (!any_bf16(built, *backend::make_cpu_backend({.threads = 2, .bf16 = true}))) return;
  const Data data = draw_all(c, built);
  const auto reference = backend::make_cpu_backend({.threads = 1, .reference_only = true});
  const auto want = run(built, data, *reference);
  for (const Contender& narrow : narrow_contenders()) {
    const auto got = run(built, data, *narrow.backend);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(got[i].size(), want[i].size());
      EXPECT_LE(relative_distance(got[i], want[i]), c.smooth ? 0.05 : 0.25)
          << "of result " << i << " with " << narrow.name;
    }
  }
}

TEST_P(Conformance, GradientsAgreeWithNumericDifferentiation) {
  const Case& c = GetParam();
  if (!c.differentiable || !c.smooth) return;
  const Built built = build(c);
  Data data = draw_all(c, built);
  const auto reference = backend::make_cpu_backend({.threads = 1, .reference_only = true});
  const auto results = run(built, data, *reference);
  Bound forward(built, {built.outputs[0]}, data, *reference);
  base::Sequence random(kSeed, 99);
  size_t gradient = 1;
  for (size_t input = 0; input < c.inputs.size(); ++input) {
    if (c.inputs[input].draw == Draw::labels) continue;
    probe_gradient(forward.program, data, input, results[gradient++], random);
  }
}

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name = std::to_string(info.index) + "_";
  for (const char ch : info.param.name) name += std::isalnum(static_cast<unsigned char>(ch)) != 0 ? ch : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(AllOps, Conformance, testing::ValuesIn(all_cases(kSeed)), test_name);

TEST(ConformanceCoverage, Bf16IsExercisedInEveryOpThatKnowsIt) {
  backend::cpu::limit_isa_from_environment();
  if (!backend::cpu::has_avx512_bf16()) GTEST_SKIP() << "this CPU has no AVX512_BF16";
  const auto narrow = backend::make_cpu_backend({.threads = 1, .bf16 = true, .channels_last = true});
  std::set<graph::Op> seen;
  std::set<graph::Op> last;
  for (const Case& c : all_cases(kSeed)) {
    const Built built = build(c);
    const program::Program program(built.graph, built.outputs, {}, *narrow);
    for (const graph::Node& node : program.graph().nodes()) {
      const bool takes = !node.inputs.empty() && program.graph().output(node.inputs[0]).type.dtype == DType::bf16;
      if (takes) seen.insert(node.op);
      if (takes && program.graph().output(node.inputs[0]).layout.block > 16) last.insert(node.op);
    }
  }
  using graph::Op;
  const std::set<Op> images{
      Op::conv2d,        Op::conv2d_grad_input, Op::conv2d_grad_weights, Op::relu,   Op::relu_grad, Op::max_pool,
      Op::max_pool_grad, Op::avg_pool,          Op::avg_pool_grad,       Op::reorder};
  for (const Op op : images) EXPECT_TRUE(seen.contains(op) && last.contains(op)) << ops::name(op);
  for (const Op op : {Op::matmul, Op::reshape}) EXPECT_TRUE(seen.contains(op)) << ops::name(op);
}

TEST(ConformanceCoverage, EveryOpOfTheTableIsExercised) {
  std::set<graph::Op> seen{graph::Op::parameter};
  const auto fast = backend::make_cpu_backend({.threads = 1, .reference_only = false});
  for (const Case& c : all_cases(kSeed)) {
    const Built built = build(c);
    for (const graph::Node& node : built.graph.nodes()) seen.insert(node.op);
    const program::Program program(built.graph, built.outputs, {}, *fast);
    for (const graph::Node& node : program.graph().nodes()) seen.insert(node.op);
  }
  for (const ops::OpDef& op : ops::op_table()) EXPECT_TRUE(seen.contains(op.op)) << op.name << " has no case";
}

}  // namespace
}  // namespace lockstep::conformance
