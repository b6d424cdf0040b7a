#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/error.h"
#include "lockstep/nn.h"
#include "lockstep/ops.h"

namespace lockstep::nn {
namespace {

size_t parameters(const std::string& name, const std::map<std::string, std::string>& options = {}) {
  Graph g;
  const ModelDef& model = find_model(name);
  build(g, model, {4, true, model.image, model.classes, options});
  return g.parameter_count();
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Models, HaveTheirPublishedParameterCounts) {
  EXPECT_EQ(parameters("lr"), 7850U);
  EXPECT_EQ(parameters("lenet"), 61706U);
  EXPECT_EQ(parameters("lenet", {{"pool", "avg"}, {"activation", "tanh"}}), 61706U);
  EXPECT_EQ(parameters("lenet-valid"), 44426U);
  EXPECT_EQ(parameters("alexnet"), 61100840U);
  EXPECT_EQ(parameters("alexnet", {{"features_only", "true"}}), 2469696U);
  EXPECT_EQ(parameters("autoencoder"), 314584U);
  EXPECT_EQ(parameters("autoencoder", {{"kind", "gaussian"}}), 314584U);
  EXPECT_EQ(parameters("autoencoder", {{"kind", "masking"}}), 314584U);
  EXPECT_EQ(parameters("autoencoder", {{"kind", "variational"}}), 471584U);
  EXPECT_EQ(parameters("autoencoder-large"), 788984U);
  EXPECT_EQ(parameters("autoencoder", {{"hidden", "400-200"}}), 788984U);
  EXPECT_EQ(parameters("alexnet", {{"lrn", "true"}}), 61100840U);
  EXPECT_EQ(parameters("stn"), 1684300U);
  EXPECT_EQ(parameters("stn", {{"sampling", "half_pixel"}}), 1684300U);
  EXPECT_EQ(parameters("stn-large"), 1705116U);
}

TEST(Models, SayWhatTheyTrainWithByTheirOptions) {
  const ModelDef& model = find_model("autoencoder");
  const auto defaults = [&](const std::string& kind) {
    return defaults_for(model, resolve_options(model, {{"kind", kind}}));
  };
  EXPECT_EQ(defaults("plain").pixels, "standard");
  EXPECT_EQ(defaults("variational").pixels, "unit");
  EXPECT_EQ(defaults("masking").epochs, 100);
}

TEST(Models, GiveScalarLossAndCount) {
  for (const ModelDef& model : zoo()) {
    Graph g;
    const ModelGraph built = build(g, model, {3, true, model.image, 10, {}});
    EXPECT_EQ(built.loss.shape().rank(), 0) << model.name;
    if (!built.correct.valid()) continue;
    EXPECT_EQ(built.correct.shape().rank(), 0) << model.name;
    EXPECT_EQ(built.scores.shape(), (Shape{3, 10})) << model.name;
  }
}

TEST(Models, AnUnknownNameSuggestsTheNearest) {
  EXPECT_THAT(message_of([] { find_model("lenett"); }), testing::HasSubstr("did you mean 'lenet'"));
  EXPECT_THAT(message_of([] { find_model("transformer"); }), testing::HasSubstr("lr, lenet"));
}

TEST(Models, OptionsAreChecked) {
  EXPECT_THAT(message_of([] { parameters("lenet", {{"pol", "avg"}}); }), testing::HasSubstr("did you mean 'pool'"));
  EXPECT_THAT(message_of([] { parameters("lenet", {{"pool", "median"}}); }), testing::HasSubstr("max, avg"));
  EXPECT_THAT(message_of([] { parameters("lr", {{"pool", "avg"}}); }), testing::HasSubstr("it has none"));
  for (const char* hidden : {"", "0", "20-", "200,100", "-5", "99999999999999999999"}) {
    EXPECT_THAT(message_of([&] {
                  parameters("autoencoder", {{"hidden", hidden}});
                }),
                testing::HasSubstr("'" + std::string(hidden) + "' is not allowed; it takes sizes"));
  }
  EXPECT_THAT(message_of([] { parameters("alexnet", {{"dropout", "1"}}); }), testing::HasSubstr("0 to below 1"));
}

TEST(Models, OnesOwnModelIsCheckedBeforeItTrains) {
  const auto build_own = [](const std::function<ModelGraph(Graph&, const BuildRequest&)>& own) {
    ModelDef model;
    model.name = "own";
    model.image = {1, 28, 28};
    model.build = own;
    Graph g;
    build(g, model, {4, true, {1, 28, 28}, 10, {}});
  };
  const auto message = [&](const std::function<ModelGraph(Graph&, const BuildRequest&)>& own) -> std::string {
    try {
      build_own(own);
    } catch (const ShapeError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message([](Graph& g, const BuildRequest& r) {
              const Value x = image_input(g, r);
              return classifier(x, dense(ops::flatten(x), "fc", 10));
            }),
            "no error");
  EXPECT_THAT(message([](Graph& g, const BuildRequest& r) {
                const Value x = image_input(g, r);
                return classifier(x, dense(ops::flatten(x), "fc", 3));
              }),
              testing::HasSubstr("scores [4, 3] must be [4, 10]"));
  EXPECT_THAT(message([](Graph& g, const BuildRequest& r) {
                const Value x = image_input(g, r);
                g.input("more", {DType::f32, {4}});
                return classifier(x, dense(ops::flatten(x), "fc", 10));
              }),
              testing::HasSubstr("it has 3"));
  EXPECT_THAT(message([](Graph& g, const BuildRequest& r) {
                return ModelGraph{image_input(g, r), {}, {}, {}, {}};
              }),
              testing::HasSubstr("must all be set"));
}

TEST(Models, TakeImagesOfOtherSizesWhereTheyFit) {
  Graph g;
  build(g, find_model("lenet"), {4, true, {3, 32, 32}, 100, {}});
  EXPECT_EQ(g.parameters()[0].shape, (Shape{6, 3, 5, 5}));
}

TEST(Models, WrongImagesAreRefusedWithBothShapes) {
  Graph g;
  const std::string message = message_of([&] { build(g, find_model("lenet"), {4, true, {1, 4, 4}, 10, {}}); });
  EXPECT_THAT(message, testing::AllOf(testing::HasSubstr("[1, 28, 28]"), testing::HasSubstr("[1, 4, 4]")));
}

}  // namespace
}  // namespace lockstep::nn
