#include "train/pictures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "data/images.h"
#include "settings/machine.h"
#include "train/evaluator.h"
#include "train/support.h"

namespace lockstep::train {
namespace {

using ::testing::ElementsAre;
using testing::Flags;
using testing::TempDir;
using testing::Training;

struct Taken {
  std::string name;
  uint64_t step = 0;
  std::vector<uint8_t> png;
  data::ImageShape shape;
};

struct Sink {
  std::vector<Taken> taken;
  PictureSink function() {
    return [this](const std::string& name, uint64_t step, const EncodedPicture& picture) {
      taken.push_back(
          {name, step, {picture.png.begin(), picture.png.end()}, {picture.channels, picture.height, picture.width}});
    };
  }
};

data::Examples decoded(const Taken& taken, const TempDir& dir) {
  lockstep::testing::put_file(dir / "taken.png", taken.png);
  return data::read_png(dir / "taken.png", 3);
}

/// Returns how many cells of a picture with 8 columns have pixels of that colour.
int cells_with(const data::Examples& picture, const std::array<int, 3>& colour, int rows) {
  const int width = picture.shape.width;
  const int height = picture.shape.height;
  const size_t plane = static_cast<size_t>(width) * static_cast<size_t>(height);
  std::vector<bool> has(static_cast<size_t>(rows) * 8);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const size_t at = static_cast<size_t>(y) * static_cast<size_t>(width) + static_cast<size_t>(x);
      bool same = true;
      for (size_t c = 0; c < 3; ++c) same = same && picture.bytes[c * plane + at] == colour[c];
      if (same) has[static_cast<size_t>(y * rows / height * 8 + x * 8 / width)] = true;
    }
  }
  return static_cast<int>(std::count(has.begin(), has.end(), true));
}

TEST(Samples, AsManyAreGreenAsAreRight) {
  const TempDir dir;
  Training training(Flags{{"model", "lr"}, {"steps", "6"}, {"batch", "20"}, {"lr", "0.02"}});
  Sink sink;
  const auto samples = training.setup.sample_writer(sink.function());
  ASSERT_NE(samples, nullptr);
  training.run();
  samples->on_eval({.step = 6});
  ASSERT_EQ(sink.taken.size(), 1U);
  EXPECT_EQ(sink.taken[0].name, "samples");
  EXPECT_EQ(sink.taken[0].step, 6U);
  const data::Examples picture = decoded(sink.taken[0], dir);
  EXPECT_EQ(picture.shape, sink.taken[0].shape);

  data::Examples first = training.setup.dataset().test;
  data::keep_first(first, 32, "test");
  const ModelSpec spec{&nn::find_model("lr"), {}, {1, 28, 28}, 10};
  const auto backend = settings::make_backend("cpu", 1, {});
  const Metrics metrics = Evaluator(spec, *backend, training.setup.parameters().values().data(), first, 32).run();
  const auto right = static_cast<int>(std::lround(metrics.accuracy * 32));
  EXPECT_GT(right, 0);
  EXPECT_LT(right, 32) << "both colours should be there";
  EXPECT_EQ(cells_with(picture, {110, 231, 135}, 4), right);
  EXPECT_EQ(cells_with(picture, {255, 138, 128}, 4), 32 - right);
}

TEST(Samples, AreOfClassifiersAlone) {
  Sink sink;
  EXPECT_EQ(Training(Flags{{"model", "autoencoder"}}).setup.sample_writer(sink.function()), nullptr);
}

TEST(Samples, OfASmallSplitShowAllOfIt) {
  const TempDir dir;
  Training training(Flags{{"model", "lr"}, {"batch", "20"}}, testing::small_data(100, 3));
  Sink sink;
  training.setup.sample_writer(sink.function())->on_eval({.step = 0});
  ASSERT_EQ(sink.taken.size(), 1U);
  EXPECT_LT(decoded(sink.taken[0], dir).shape.width, 4 * 130);
}

TEST(Pictures, GoToTheFolderAndToWhoAsks) {
  const TempDir dir;
  Training training(Flags{{"model", "autoencoder"}, {"batch", "20"}});
  Sink sink;
  training.setup.picture_writer(dir.path(), sink.function())->on_eval({.step = 12});
  ASSERT_EQ(sink.taken.size(), 1U);
  EXPECT_EQ(sink.taken[0].name, "reconstruction");
  EXPECT_EQ(sink.taken[0].step, 12U);
  EXPECT_THAT(dir.names(), ElementsAre("reconstruction-00000012.png"));
  const std::string file = lockstep::testing::get_file(dir / "reconstruction-00000012.png");
  EXPECT_EQ(file, std::string(sink.taken[0].png.begin(), sink.taken[0].png.end()));
  const data::Examples picture = data::read_png(dir / "reconstruction-00000012.png");
  EXPECT_EQ(picture.shape, sink.taken[0].shape);
}

TEST(TrainingGraph, HasTheBackwardPass) {
  Training training(Flags{{"model", "lr"}, {"batch", "20"}});
  const graph::Graph graph = training.setup.training_graph();
  EXPECT_TRUE(std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) { return node.backward; }));
  EXPECT_EQ(graph.nodes()[0].outputs[0].type.shape[0], 20);
}

}  // namespace
}  // namespace lockstep::train
