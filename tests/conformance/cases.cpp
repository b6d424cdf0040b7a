#include "conformance/case.h"

namespace lockstep::conformance {
namespace {

using Values = std::vector<Value>;

Shape random_matrix(base::Sequence& random) { return {between(random, 1, 20), between(random, 1, 37)}; }

Shape random_shape(base::Sequence& random, int64_t rank) {
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < rank; ++i) dims.push_back(between(random, 1, 6));
  return Shape(dims);
}

template <class... Parts>
void append(std::vector<Case>& all, Parts&&... parts) {
  (all.insert(all.end(), parts.begin(), parts.end()), ...);
}

std::string flag(bool on, const char* text) { return on ? text : ""; }

}  // namespace

std::vector<Case> all_cases(uint64_t seed) {
  base::Sequence random(seed, 7);
  std::vector<Case> all;
  append(all, dense_cases(random), window_cases(random), sampling_cases(), lrn_cases(), elementwise_cases(random),
         softmax_cases(random), shaping_cases(random), random_cases(random));
  return all;
}

std::vector<Case> dense_cases(base::Sequence& random) {
  struct Product {
    int64_t m, n, k;
  };
  std::vector<Product> products{{1, 10, 784},  {100, 10, 30}, {1, 1, 1},    {5, 1, 7},  {7, 16, 16},
                                {33, 120, 40}, {16, 84, 120}, {3, 17, 130}, {2, 10, 84}};
  for (int i = 0; i < 8; ++i) {
    products.push_back({between(random, 1, 40), between(random, 1, 40), between(random, 1, 70)});
  }
  std::vector<Case> cases;
  for (const auto& [m, n, k] : products) {
    for (int trans = 0; trans < 4; ++trans) {
      const bool ta = (trans & 1) != 0;
      const bool tb = (trans & 2) != 0;
      const std::string name = "matmul " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
                               flag(ta, " ta") + flag(tb, " tb");
      cases.push_back({name, {{ta ? Shape{k, m} : Shape{m, k}}, {tb ? Shape{n, k} : Shape{k, n}}}, [=](Values& in) {
                         return ops::matmul(in[0], in[1], ta, tb);
                       }});
    }
    cases.push_back({"dense tanh " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k),
                     {{{m, k}}, {{k, n}}, {{n}}},
                     [](Values& in) { return ops::tanh(ops::bias_add(ops::matmul(in[0], in[1]), in[2])); }});
  }
  cases.push_back({"dense sigmoid", {{{9, 20}}, {{20, 13}}, {{13}}}, [](Values& in) {
                     return ops::sigmoid(ops::bias_add(ops::matmul(in[0], in[1]), in[2]));
                   }});
  cases.push_back({"matmul beyond our own kernel",
                   {{{512, 1000}}, {{1000, 400}}, {{400}}},
                   [](Values& in) { return ops::relu(ops::bias_add(ops::matmul(in[0], in[1]), in[2])); },
                   false});
  cases.push_back({"bias_add matrix", {{{5, 9}}, {{9}}}, [](Values& in) { return ops::bias_add(in[0], in[1]); }});
  cases.push_back({"bias_add image", {{{3, 5, 4, 2}}, {{5}}}, [](Values& in) { return ops::bias_add(in[0], in[1]); }});
  return cases;
}

namespace {

struct ConvShape {
  int64_t batch, in, out, height, width, kernel, stride, padding;
};

std::string describe(const ConvShape& s) {
  return std::to_string(s.batch) + "x" + std::to_string(s.in) + "->" + std::to_string(s.out) + " " +
         std::to_string(s.height) + "x" + std::to_string(s.width) + " k" + std::to_string(s.kernel) + " s" +
         std::to_string(s.stride) + " p" + std::to_string(s.padding);
}

std::vector<ConvShape> conv_shapes(base::Sequence& random) {
  std::vector<ConvShape> shapes{
      {8, 1, 6, 12, 12, 5, 1, 2},   {16, 6, 16, 14, 14, 5, 1, 0}, {1, 1, 6, 12, 12, 5, 1, 2},
      {17, 3, 5, 9, 7, 3, 1, 1},    {4, 2, 3, 8, 11, 3, 2, 1},    {5, 16, 16, 10, 10, 3, 2, 0},
      {2, 32, 32, 6, 6, 3, 1, 1},   {8, 24, 40, 5, 5, 3, 1, 1},   {4, 3, 192, 15, 15, 7, 4, 2},
      {33, 1, 1, 4, 4, 1, 1, 0},    {2, 30, 50, 5, 5, 3, 1, 1},   {3, 5, 7, 6, 5, 3, 1, 2},
      {9, 2, 17, 7, 7, 3, 1, 0},    {8, 32, 32, 8, 8, 3, 1, 1},  // enough tiles for Winograd
      {3, 32, 48, 15, 13, 3, 1, 0}, {9, 16, 48, 10, 9, 5, 1, 2},  {9, 3, 64, 43, 39, 11, 4, 2},
      {2, 1, 64, 9, 9, 3, 1, 1},    {5, 16, 48, 31, 32, 3, 1, 1}};
  for (int i = 0; i < 10; ++i) {
    ConvShape s{};
    s.batch = between(random, 1, 20);
    s.in = between(random, 1, 8);
    s.out = between(random, 1, 18);
    s.kernel = between(random, 1, 5);
    s.stride = between(random, 1, 3);
    s.padding = between(random, 0, 2);
    s.height = between(random, s.kernel, 12);
    s.width = between(random, s.kernel, 12);
    shapes.push_back(s);
  }
  return shapes;
}

Case conv_case(const ConvShape& s, bool fused) {
  const ops::Window w = ops::window(s.kernel, s.stride, s.padding);
  return {(fused ? "conv2d+bias+relu " : "tanh(conv2d)+bias ") + describe(s),
          {{{s.batch, s.in, s.height, s.width}}, {{s.out, s.in, s.kernel, s.kernel}}, {{s.out}}},
          [=](Values& in) {
            const Value y = ops::conv2d(in[0], in[1], w);
            return fused ? ops::relu(ops::bias_add(y, in[2])) : ops::bias_add(ops::tanh(y), in[2]);
          },
          true,
          5e-5,
          !fused};
}

Case pool_case(int64_t batch, int64_t channels, int64_t size, const ops::Window& w, bool largest) {
  return {(largest ? "max_pool " : "avg_pool ") + std::to_string(batch) + "x" + std::to_string(channels) + " " +
              std::to_string(size) + " k" + std::to_string(w.kernel_h) + " s" + std::to_string(w.stride_h) + " p" +
              std::to_string(w.pad_top),
          {{{batch, channels, size, size}, Draw::apart}},
          [=](Values& in) { return largest ? ops::max_pool(in[0], w) : ops::avg_pool(in[0], w); }};
}

/// conv -> relu -> pool, as in LeNet, with every fusion and layout change between them.
Case stack_case(int64_t batch, int64_t channels, bool largest) {
  return {"conv relu pool stack, batch " + std::to_string(batch) + ", " + std::to_string(channels) + " channels",
          {{{batch, 1, 8, 8}}, {{channels, 1, 3, 3}}, {{channels}}, {{channels * 16, 5}}},
          [=](Values& in) {
            const Value y = ops::relu(ops::bias_add(ops::conv2d(in[0], in[1], ops::window(3, 1, 1)), in[2]));
            const Value pooled = largest ? ops::max_pool(y, ops::window(2, 2)) : ops::avg_pool(y, ops::window(2, 2));
            return ops::matmul(ops::flatten(pooled), in[3]);
          },
          true,
          5e-5,
          false};
}

/// Wide convolutions in a row with overlapping pools between, as in AlexNet: bfloat16 throughout if it is requested.
Case deep_case(bool largest, int64_t first, int64_t second, int64_t third) {
  return {std::string("wide convolutions ") + Shape{first, second, third}.str() + (largest ? " max_pool" : " avg_pool"),
          {{{3, 3, 15, 15}}, {{first, 3, 5, 5}}, {{first}}, {{second, first, 3, 3}}, {{third, second, 3, 3}}},
          [=](Values& in) {
            const auto pool = largest ? ops::max_pool : ops::avg_pool;
            Value y = ops::relu(ops::bias_add(ops::conv2d(in[0], in[1], ops::window(5, 1, 2)), in[2]));
            y = pool(y, ops::window(3, 2));
            const Value z = ops::conv2d(y, in[3], ops::window(3, 1, 1));
            y = ops::conv2d(ops::relu(z), in[4], ops::window(3, 2, 0));
            return ops::concat(std::vector<Value>{ops::flatten(pool(y, ops::window(2, 1))), ops::flatten(z)}, 1);
          },
          true,
          5e-5,
          false};
}

}  // namespace

std::vector<Case> window_cases(base::Sequence& random) {
  std::vector<Case> cases;
  for (const ConvShape& s : conv_shapes(random)) {
    cases.push_back(conv_case(s, true));
    cases.push_back(conv_case(s, false));
  }
  const std::vector<ops::Window> windows{ops::window(2, 2), ops::window(3, 2), ops::window(3, 2, 1), ops::window(2, 1),
                                         ops::same_window(3, 2, 7, 7)};
  for (const ops::Window& w : windows) {
    for (const bool largest : {true, false}) {
      cases.push_back(pool_case(1, 3, 7, w, largest));
      cases.push_back(pool_case(5, 2, 7, w, largest));
    }
  }
  for (const int64_t batch : {1, 4, 8, 9, 16, 19}) {
    cases.push_back(stack_case(batch, 6, true));
    cases.push_back(stack_case(batch, 6, false));
  }
  for (const int64_t channels : {520, 560}) {  // too large for our own convolutions: oneDNN's layouts
    cases.push_back(stack_case(2, channels, true));
    cases.push_back(stack_case(2, channels, false));
  }
  for (const bool largest : {true, false}) {
    cases.push_back(deep_case(largest, 40, 48, 33));
    cases.push_back(deep_case(largest, 48, 64, 32));  // whole blocks of channels
  }
  cases.push_back({"asymmetric padding", {{{8, 2, 9, 9}}, {{3, 2, 4, 4}}}, [](Values& in) {
                     return ops::conv2d(in[0], in[1], ops::same_window(4, 2, 9, 9));
                   }});
  return cases;
}

std::vector<Case> sampling_cases() {
  std::vector<Case> cases;
  for (const auto& convention :
       {std::pair{"study", ops::Sampling::study}, std::pair{"half_pixel", ops::Sampling::half_pixel}}) {
    const std::string name = convention.first;
    const ops::Sampling s = convention.second;
    const auto grid_case = [&, s](int64_t batch, int64_t height, int64_t width) {
      cases.push_back({"affine_grid " + name + " " + Shape{batch, height, width}.str(),
                       {{{batch, 6}}},
                       [=](Values& in) { return ops::affine_grid(in[0], height, width, s); }});
    };
    grid_case(3, 5, 7);
    grid_case(1, 1, 1);
    grid_case(7, 40, 40);
    const auto sample_case = [&, s](const Shape& image, int64_t height, int64_t width) {
      cases.push_back({"bilinear_sample " + name + " " + image.str() + " to " + Shape{height, width}.str(),
                       {{image}, {{image[0], height, width, 2}}},
                       [=](Values& in) { return ops::bilinear_sample(in[0], in[1], s); }});
    };
    sample_case({3, 2, 5, 7}, 4, 9);
    sample_case({1, 1, 1, 1}, 2, 2);
    sample_case({2, 1, 2, 3}, 1, 17);
    sample_case({5, 1, 40, 40}, 33, 35);
    cases.push_back({"bilinear_sample of affine_grid " + name, {{{4, 3, 6, 8}}, {{4, 6}}}, [s](Values& in) {
                       return ops::bilinear_sample(in[0], ops::affine_grid(in[1], 2, 3, s), s);
                     }});
  }
  return cases;
}

std::vector<Case> lrn_cases() {
  const auto normalise = [](const Shape& shape, const ops::LrnAttrs& attrs) {
    return Case{"lrn " + shape.str() + " radius " + std::to_string(attrs.radius), {{shape}}, [=](Values& in) {
                  return ops::lrn(in[0], attrs);
                }};
  };
  // A convolution before and after, so that the op meets every layout.
  const auto between_convolutions = [](int64_t batch, int64_t channels) {
    return Case{"lrn after conv2d, batch " + std::to_string(batch) + ", " + std::to_string(channels) + " channels",
                {{{batch, 2, 6, 5}}, {{channels, 2, 3, 3}}, {{3, channels, 3, 3}}},
                [](Values& in) {
                  const Value y = ops::conv2d(in[0], in[1], ops::window(3, 1, 1));
                  const Value z = ops::lrn(y, {.radius = 2, .alpha = 0.3F, .beta = 0.75F, .bias = 1.0F});
                  return ops::conv2d(ops::tanh(z), in[2], ops::window(3, 1, 1));
                },
                true,
                5e-5,
                channels < 16};
  };
  // Pad channels of a block are not 0 after softplus.
  const auto after_softplus = [](int64_t batch, int64_t channels) {
    return Case{"lrn after softplus, " + std::to_string(channels) + " channels",
                {{{batch, 2, 6, 5}}, {{channels, 2, 3, 3}}},
                [](Values& in) {
                  const Value y = ops::softplus(ops::conv2d(in[0], in[1], ops::window(3, 1, 1)));
                  return ops::lrn(y, {.radius = 3, .alpha = 0.5F, .beta = 0.75F, .bias = 1.0F});
                },
                true,
                5e-5,
                false};
  };
  return {normalise({2, 7, 4, 5}, {}),
          normalise({2, 7, 4, 5}, {.radius = 2, .alpha = 0.5F, .beta = 0.75F, .bias = 1.0F}),
          normalise({3, 3, 2, 9}, {.radius = 4, .alpha = 0.5F, .beta = 0.6F, .bias = 2.0F}),
          normalise({1, 33, 5, 7}, {.radius = 1, .alpha = 0.2F, .beta = 1.0F, .bias = 0.5F}),
          normalise({2, 1, 3, 3}, {.radius = 0, .alpha = 1.0F, .beta = 0.5F, .bias = 1.0F}),
          between_convolutions(9, 5),
          between_convolutions(2, 320),
          between_convolutions(3, 277),
          after_softplus(3, 277)};
}

std::vector<Case> elementwise_cases(base::Sequence& random) {
  using Unary = Value (*)(Value);
  const std::vector<std::tuple<std::string, Unary, Draw>> unaries{
      {"relu", ops::relu, Draw::apart},        {"tanh", ops::tanh, Draw::normal},
      {"sigmoid", ops::sigmoid, Draw::normal}, {"softplus", ops::softplus, Draw::normal},
      {"exp", ops::exp, Draw::normal},         {"log", ops::log, Draw::positive},
      {"sqrt", ops::sqrt, Draw::positive},     {"square", ops::square, Draw::normal},
      {"neg", ops::neg, Draw::normal},         {"abs", ops::abs, Draw::apart}};
  std::vector<Case> cases;
  for (const auto& [name, op, draw] : unaries) {
    const Shape shape = random_matrix(random);
    cases.push_back({name + " " + shape.str(), {{shape, draw}}, [op = op](Values& in) { return op(in[0]); }});
    cases.push_back({name + " scalar", {{Shape{}, draw}}, [op = op](Values& in) { return op(in[0]); }});
  }
  cases.push_back({"scale", {{{3, 17}}}, [](Values& in) { return ops::scale(in[0], -1.5F); }});
  cases.push_back({"add_scalar", {{{3, 17}}}, [](Values& in) { return ops::add_scalar(in[0], 0.75F); }});

  using Binary = Value (*)(Value, Value);
  const std::vector<std::tuple<std::string, Binary, Draw>> binaries{
      {"add", ops::add, Draw::normal},        {"sub", ops::sub, Draw::normal},
      {"mul", ops::mul, Draw::normal},        {"div", ops::div, Draw::positive},
      {"maximum", ops::maximum, Draw::apart}, {"minimum", ops::minimum, Draw::apart}};
  const std::vector<std::pair<Shape, Shape>> shapes{{{5, 7}, {5, 7}},    {{5, 7}, {7}},       {{7}, {5, 7}},
                                                    {{5, 7}, {}},        {{}, {5, 7}},        {{5, 1}, {1, 7}},
                                                    {{2, 1, 3}, {4, 1}}, {{3, 4, 5}, {4, 1}}, {{1, 33}, {5, 33}}};
  for (const auto& [name, op, draw] : binaries) {
    for (const auto& [a, b] : shapes) {
      cases.push_back({name + " " + a.str() + " " + b.str(), {{a, draw}, {b, draw}}, [op = op](Values& in) {
                         return op(in[0], in[1]);
                       }});
    }
  }
  return cases;
}

std::vector<Case> softmax_cases(base::Sequence& random) {
  std::vector<Case> cases;
  const std::vector<std::pair<int64_t, int>> sizes{{1, 10}, {7, 10}, {64, 10}, {3, 1},
                                                   {5, 2},  {6, 17}, {4, 100}, {between(random, 1, 50), 11}};
  for (const auto& [rows, classes] : sizes) {
    const std::string size = std::to_string(rows) + "x" + std::to_string(classes);
    const InputSpec scores{{rows, classes}};
    const InputSpec labels{{rows}, Draw::labels, classes};
    cases.push_back({"softmax " + size, {scores}, [](Values& in) { return ops::softmax(in[0]); }});
    cases.push_back({"softmax_cross_entropy " + size, {scores, labels}, [](Values& in) {
                       return ops::softmax_cross_entropy(in[0], in[1]);
                     }});
    cases.push_back({"cross_entropy of softmax " + size, {scores, labels}, [](Values& in) {
                       return ops::cross_entropy(ops::softmax(in[0]), in[1]);
                     }});
    cases.push_back({"cross_entropy " + size, {{{rows, classes}, Draw::probabilities}, labels}, [](Values& in) {
                       return ops::cross_entropy(in[0], in[1]);
                     }});
    cases.push_back(
        {"correct " + size, {scores, labels}, [](Values& in) { return ops::correct(in[0], in[1]); }, false});
  }
  return cases;
}

std::vector<Case> shaping_cases(base::Sequence& random) {
  std::vector<Case> cases;
  using Reduce = Value (*)(Value, std::span<const int>, bool);
  const std::vector<std::pair<std::string, Reduce>> reductions{
      {"reduce_sum", ops::reduce_sum}, {"reduce_mean", ops::reduce_mean}, {"reduce_max", ops::reduce_max}};
  const std::vector<std::vector<int>> axes{{}, {0}, {1}, {-1}, {0, 2}, {1, 2}};
  for (const auto& [name, op] : reductions) {
    for (const auto& along : axes) {
      for (const bool keep : {false, true}) {
        cases.push_back({name + " " + std::to_string(along.size()) + " axes" + flag(keep, " kept"),
                         {{random_shape(random, 3), Draw::apart}},
                         [op = op, along, keep](Values& in) { return op(in[0], along, keep); }});
      }
    }
  }
  cases.push_back({"broadcast_to", {{{3, 1}}}, [](Values& in) { return ops::broadcast_to(in[0], {2, 3, 4}); }});
  cases.push_back({"reshape", {{{4, 6}}}, [](Values& in) { return ops::tanh(ops::reshape(in[0], Shape{2, 12})); }});
  cases.push_back({"identity", {{{4, 6}}}, [](Values& in) { return ops::identity(in[0]); }});
  cases.push_back({"transpose", {{{2, 3, 4}}}, [](Values& in) {
                     return ops::transpose(in[0], std::vector<int64_t>{2, 0, 1});
                   }});
  for (const int axis : {0, 1, -1}) {
    cases.push_back({"concat axis " + std::to_string(axis), {{{2, 3, 4}}, {{2, 3, 4}}, {{2, 3, 4}}}, [=](Values& in) {
                       return ops::concat(in, axis);
                     }});
    cases.push_back({"slice axis " + std::to_string(axis), {{{4, 5, 6}}}, [=](Values& in) {
                       return ops::slice(in[0], axis, 1, 2);
                     }});
  }
  return cases;
}

std::vector<Case> random_cases(base::Sequence&) {
  std::vector<Case> cases;
  cases.push_back({"dropout", {{{6, 37}}}, [](Values& in) { return ops::dropout(in[0], 0.3F); }});
  cases.push_back(
      {"dropout of relu", {{{6, 37}, Draw::apart}}, [](Values& in) { return ops::dropout(ops::relu(in[0]), 0.4F); }});
  cases.push_back({"dropout of images", {{{3, 2, 5, 5}}}, [](Values& in) { return ops::dropout(in[0], 0.5F); }});
  cases.push_back({"noise added", {{{4, 9}}}, [](Values& in) {
                     Graph& g = in[0].graph();
                     const Value noise = ops::add(ops::random_normal(g, {4, 9}, 0.5F, 2.0F),
                                                  ops::random_uniform(g, {4, 9}, -1.0F, 3.0F));
                     return ops::mul(in[0], noise);
                   }});
  cases.push_back({"constant", {{{4, 9}}}, [](Values& in) {
                     return ops::add(in[0], ops::exp(ops::constant(in[0].graph(), {9}, 0.5F)));
                   }});
  return cases;
}

}  // namespace lockstep::conformance
