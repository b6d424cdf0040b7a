// Models in YAML: valid ones are built as written, and each error is one line with its position.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/temp_dir.h"
#include "interchange/layer_kinds.h"
#include "interchange/model_file.h"
#include "interchange/yaml_model.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"
#include "ops/op_table.h"

namespace lockstep::interchange {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Options = std::map<std::string, std::string>;

struct Built {
  nn::Graph graph;
  nn::ModelGraph model;

  [[nodiscard]] std::vector<std::string> parameters() const {
    std::vector<std::string> result;
    for (const auto& info : graph.parameters()) result.push_back(info.name + " " + info.shape.str());
    return result;
  }
};

std::unique_ptr<Built> build(const nn::ModelDef& def, const Options& options = {}, int64_t batch = 4,
                             bool training = true) {
  auto built = std::make_unique<Built>();
  built->model = nn::build(built->graph, def, {batch, training, def.image, def.classes, options});
  return built;
}

std::unique_ptr<Built> build(const std::string& text, const Options& options = {}, bool training = true) {
  return build(parse_yaml_model(text, "m.yaml"), options, 4, training);
}

/// Adds a small head to the layers, so that a test can be about one layer.
std::string with_head(const std::string& layers) {
  return "image: [2, 8, 8]\nlayers:\n" + layers + "  - flatten: {name: flat}\n  - dense: $classes\n";
}

/// Returns the shape of the value before the head.
std::string shape_of(const std::string& layers, bool training = true) {
  const nn::ModelDef def =
      parse_yaml_model("image: [2, 8, 8]\ndefaults: {batch: 4}\nloss: l2\nlayers:\n" + layers, "m.yaml");
  return build(def, {}, 4, training)->model.scores.shape().str();
}

std::string error_of(const std::string& text) {
  try {
    (void)parse_yaml_model(text, "m.yaml");
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return error.what();
  }
  return "no error";
}

std::string layer_error(const std::string& layers) { return error_of("image: [2, 8, 8]\nlayers:\n" + layers); }

int count(const Built& built, graph::Op op) {
  return static_cast<int>(std::count_if(built.graph.nodes().begin(), built.graph.nodes().end(),
                                        [&](const graph::Node& node) { return node.op == op; }));
}

TEST(YamlModel, TheShortestIsAListOfLayers) {
  const nn::ModelDef def = parse_yaml_model("layers: [flatten, dense: 10]", "folder/my-model.yaml");
  EXPECT_EQ(def.name, "my-model");
  EXPECT_EQ(def.image, (Shape{1, 28, 28}));
  EXPECT_EQ(def.file, "folder/my-model.yaml");
  const auto built = build(def);
  EXPECT_THAT(built->parameters(), ::testing::ElementsAre("dense1/weights [784, 10]", "dense1/bias [10]"));
  EXPECT_TRUE(built->model.correct.valid());
  EXPECT_EQ(built->model.loss_over, nn::LossOver::mean);
}

TEST(YamlModel, HeadAndDefaultsAreRead) {
  const nn::ModelDef def = parse_yaml_model(
      "name: mine\ndescription: what it is\nimage: [3, 16, 16]\nclasses: 5\n"
      "defaults: {optimizer: adam, lr: 2e-3, batch: 7, epochs: 3, dataset: synthetic, pixels: standard}\n"
      "layers: [flatten, dense: $classes]\n",
      "m.yaml");
  EXPECT_EQ(def.name, "mine");
  EXPECT_EQ(def.description, "what it is");
  EXPECT_EQ(def.image, (Shape{3, 16, 16}));
  EXPECT_EQ(def.classes, 5);
  EXPECT_EQ(def.defaults.optimizer, "adam");
  EXPECT_FLOAT_EQ(def.defaults.learning_rate, 2e-3F);
  EXPECT_EQ(def.defaults.batch, 7);
  EXPECT_EQ(def.defaults.epochs, 3);
  EXPECT_EQ(def.defaults.dataset, "synthetic");
  EXPECT_EQ(def.defaults.pixels, "standard");
}

TEST(YamlModel, ALayerCanBeWrittenInFourWays) {
  for (const char* layer :
       {"  - conv: {channels: 4, kernel: 3, name: c}\n", "  - {op: conv, channels: 4, kernel: 3, name: c}\n",
        "  - conv: {channels: 4, kernel: 3}\n    name: c\n",
        "  - op: conv\n    channels: 4\n    kernel: [3, 3]\n    name: c\n    inputs: images\n"}) {
    EXPECT_THAT(build(with_head(layer))->parameters()[0], "c/weights [4, 2, 3, 3]") << layer;
  }
}

TEST(YamlModel, ShapesFollow) {
  EXPECT_EQ(shape_of("  - conv: {channels: 4, kernel: 3}\n"), "[4, 4, 6, 6]");
  EXPECT_EQ(shape_of("  - conv: {channels: 4, kernel: 3, padding: same, stride: 2}\n"), "[4, 4, 4, 4]");
  EXPECT_EQ(shape_of("  - conv: {channels: 4, kernel: [1, 3], padding: [0, 1]}\n"), "[4, 4, 8, 8]");
  EXPECT_EQ(shape_of("  - max_pool: 2\n"), "[4, 2, 4, 4]");
  EXPECT_EQ(shape_of("  - avg_pool: {kernel: 3, stride: 1}\n"), "[4, 2, 6, 6]");
  EXPECT_EQ(shape_of("  - reshape: [4, -1]\n"), "[4, 4, 32]");
  EXPECT_EQ(shape_of("  - flatten\n  - reshape: $image\n"), "[4, 2, 8, 8]");
  EXPECT_EQ(shape_of("  - transpose: [0, 2, 3, 1]\n"), "[4, 8, 8, 2]");
  EXPECT_EQ(shape_of("  - slice: {axis: -1, begin: 2, size: 3}\n"), "[4, 2, 8, 3]");
  EXPECT_EQ(shape_of("  - relu: {name: a}\n  - concat: [a, images, a]\n"), "[4, 6, 8, 8]");
  EXPECT_EQ(shape_of("  - reduce_mean: {axes: [2, 3], keep_dims: true}\n  - broadcast_to: [2, 5, 5]\n"),
            "[4, 2, 5, 5]");
  EXPECT_EQ(shape_of("  - random_normal: {shape: [3]}\n"), "[4, 3]");
  EXPECT_EQ(shape_of("  - constant: {value: 2, shape: [3, 1]}\n"), "[3, 1]");
  EXPECT_EQ(shape_of("  - parameter: {name: w, shape: [128, 3]}\n  - flatten: {name: x, inputs: images}\n"
                     "  - matmul: [x, w]\n"),
            "[4, 3]");
  EXPECT_EQ(shape_of("  - lrn: {radius: 1}\n"), "[4, 2, 8, 8]");
  EXPECT_EQ(shape_of("  - flatten\n  - dense: {units: 6, weights: zeros, bias: [1, 0, 0, 0, 1, 0]}\n"
                     "  - affine_grid: {height: 5, sampling: half_pixel}\n"
                     "  - bilinear_sample: {inputs: [images, affine_grid1], sampling: half_pixel}\n"),
            "[4, 2, 5, 8]");
}

TEST(YamlModel, BranchesGoThroughNames) {
  const auto built =
      build(with_head("  - conv: {name: a, channels: 2, kernel: 3, padding: 1}\n"
                      "  - relu: {inputs: a}\n"
                      "  - add: a\n"  // the previous layer, plus a
                      "  - maximum: [images, add1]\n"));
  const auto& nodes = built->graph.nodes();
  const auto add = std::find_if(nodes.begin(), nodes.end(), [](const auto& n) { return n.op == graph::Op::add; });
  ASSERT_NE(add, nodes.end());
  EXPECT_EQ(built->graph.node(add->inputs[0]).op, graph::Op::relu);
  EXPECT_EQ(built->graph.node(add->inputs[1]).name, "a/bias_add");
}

TEST(YamlModel, StartValuesAreTakenAsWritten) {
  const auto built =
      build(with_head("  - flatten\n"
                      "  - dense: {units: 2, weights: normal(0.1), bias: [1, -2.5]}\n"
                      "  - dense: {units: 3, weights: uniform(0.5), bias: none}\n"
                      "  - dense: {units: 2, weights: 0.25, bias: constant(3)}\n"));
  const auto& infos = built->graph.parameters();
  EXPECT_EQ(infos[0].initializer.kind, graph::Initializer::Kind::normal);
  EXPECT_FLOAT_EQ(infos[0].initializer.scale, 0.1F);
  EXPECT_THAT(infos[1].initializer.values, ::testing::ElementsAre(1.0F, -2.5F));
  EXPECT_EQ(infos[2].initializer.kind, graph::Initializer::Kind::uniform);
  EXPECT_EQ(infos[3].name, "dense3/weights") << "no bias in between";
  EXPECT_FLOAT_EQ(infos[3].initializer.scale, 0.25F);
  EXPECT_FLOAT_EQ(infos[4].initializer.scale, 3);
}

TEST(YamlModel, OptionsChangeTheModel) {
  const std::string text =
      "image: [2, 8, 8]\n"
      "options: {pool: {default: max, allowed: [max, avg]}, units: 12, deep: false}\n"
      "layers:\n  - ${pool}_pool: 2\n  - flatten\n  - dense: $units\n"
      "  - {dense: 7, when: $deep}\n  - dense: $classes\n";
  EXPECT_EQ(count(*build(text), graph::Op::max_pool), 1);
  EXPECT_EQ(count(*build(text, {{"pool", "avg"}}), graph::Op::avg_pool), 1);
  EXPECT_EQ(build(text)->graph.parameters().size(), 4U);
  EXPECT_EQ(build(text, {{"deep", "true"}})->graph.parameters().size(), 6U);
  EXPECT_EQ(build(text, {{"units", "20"}})->parameters()[0], "dense1/weights [32, 20]");
  EXPECT_THROW(build(text, {{"pool", "median"}}), UsageError);
  EXPECT_THROW(build(text, {{"units", "many"}}), UsageError);
}

TEST(YamlModel, LayersLeftOutGiveTheirPlaceToTheirInput) {
  const std::string text =
      "image: [2, 8, 8]\noptions: {norm: none}\n"
      "layers:\n  - relu: {name: a}\n  - tanh: {name: b, inputs: a, when: {norm: [tanh, both]}}\n"
      "  - neg: {name: c, inputs: b}\n  - flatten\n  - dense: $classes\n";
  EXPECT_EQ(count(*build(text), graph::Op::tanh), 0);
  EXPECT_EQ(count(*build(text, {{"norm", "both"}}), graph::Op::tanh), 1);
}

TEST(YamlModel, LayersWithConditionsMayShareAName) {
  const std::string text =
      "image: [2, 8, 8]\noptions: {same: true}\nlayers:\n"
      "  - conv: {name: c, channels: 2, kernel: 3, padding: same, when: {same: true}}\n"
      "  - conv: {name: c, channels: 2, kernel: 3, when: {same: false}}\n"
      "  - relu: {inputs: c}\n  - flatten\n  - dense: $classes\n";
  EXPECT_EQ(build(text)->parameters()[2], "dense1/weights [128, 10]");
  EXPECT_EQ(build(text, {{"same", "false"}})->parameters()[2], "dense1/weights [72, 10]");
  EXPECT_THAT(error_of("image: [2, 8, 8]\nlayers:\n  - relu: {name: c, when: true}\n  - tanh: {name: c, when: true}\n"),
              AllOf(StartsWith("m.yaml:4:"), HasSubstr("line 3 applies too")));
}

TEST(YamlModel, DefaultsMayDependOnOptions) {
  const nn::ModelDef def = parse_yaml_model(
      "options: {kind: plain}\n"
      "defaults:\n  - {optimizer: adam, epochs: 20}\n  - {when: {kind: masking}, epochs: 100}\n"
      "layers: [flatten, dense: $classes]\n",
      "m.yaml");
  EXPECT_EQ(nn::defaults_for(def, {{"kind", "plain"}}).epochs, 20);
  EXPECT_EQ(nn::defaults_for(def, {{"kind", "masking"}}).epochs, 100);
  EXPECT_EQ(nn::defaults_for(def, {{"kind", "masking"}}).optimizer, "adam");
}

TEST(YamlModel, DropoutAndNoiseAreOffOutsideTraining) {
  const std::string text = with_head("  - dropout: {keep: 0.8}\n  - dropout: 0.5\n  - noise: 0.1\n");
  EXPECT_EQ(count(*build(text), graph::Op::dropout), 2);
  EXPECT_EQ(count(*build(text), graph::Op::random_normal), 1);
  EXPECT_EQ(count(*build(text, {}, false), graph::Op::dropout), 0);
  EXPECT_EQ(count(*build(text, {}, false), graph::Op::random_normal), 0);
}

TEST(YamlModel, LossesOfThreeKinds) {
  const std::string coder =
      "image: [1, 4, 4]\nlayers:\n  - flatten: {name: x}\n  - dense: 3\n  - dense: {name: y, units: $pixels}\n";
  const auto sum = build(coder + "loss: {kind: l2, of: [y, x]}\npicture: y\npicture_name: copy\n");
  EXPECT_EQ(sum->model.loss_over, nn::LossOver::sum);
  EXPECT_FALSE(sum->model.labels.valid());
  EXPECT_FALSE(sum->model.correct.valid());
  EXPECT_EQ(sum->model.picture.shape(), (Shape{4, 1, 4, 4}));
  EXPECT_EQ(sum->model.picture_name, "copy");
  const auto own = build(coder + "  - abs\n  - reduce_mean: {name: total}\nscores: y\nloss: {value: total}\n");
  EXPECT_EQ(own->model.loss.name(), "total/reduce_mean");
  EXPECT_EQ(own->model.scores.shape(), (Shape{4, 16}));
  const auto labelled = build(
      with_head("") + "  - softmax_cross_entropy\n  - reduce_mean: {name: l}\nscores: dense1\nloss: {value: l}\n");
  EXPECT_TRUE(labelled->model.labels.valid());
  EXPECT_TRUE(labelled->model.correct.valid());
  EXPECT_THAT(error_of(coder + "loss: {value: y}\n"), AllOf(HasSubstr("m.yaml:6:"), HasSubstr("must be a scalar")));
  EXPECT_THAT(error_of(coder), HasSubstr("must be [64, 10] (batch, classes)"));
}

TEST(YamlModel, EveryOpThatIsNotInternalIsALayer) {
  for (const ops::OpDef& op : ops::op_table()) {
    if (op.family == ops::Family::backward || op.family == ops::Family::internal || op.op == graph::Op::input) continue;
    EXPECT_NE(find_layer_kind(op.name), nullptr) << op.name;
  }
}

TEST(YamlModelErrors, NameFileLineColumnLayerAndShapes) {
  EXPECT_EQ(error_of("layers:\n  - conv: {channels: 16, kernel: 24}\n\n  - dense: {name: fc1, units: 120}\n"),
            "m.yaml:4:5: layer 'fc1' (dense): x [64, 16, 5, 5] must be a matrix; put a flatten before it");
  EXPECT_THAT(layer_error("  - flatten\n  - conv: {channels: 1, kernel: 3}\n"),
              AllOf(StartsWith("m.yaml:4:5: layer 'conv1' (conv): x [64, 128] must be"), HasSubstr("reshape")));
  EXPECT_THAT(layer_error("  - conv: {channels: 1, kernel: 9}\n"), AllOf(HasSubstr("9x9"), HasSubstr("[64, 2, 8, 8]")));
  EXPECT_THAT(layer_error("  - max_pool: 2\n  - add: images\n"),
              AllOf(HasSubstr("[64, 2, 4, 4]"), HasSubstr("[64, 2, 8, 8]")));
  EXPECT_THAT(layer_error("  - reshape: [3, 5]\n"), AllOf(HasSubstr("[64, 2, 8, 8]"), HasSubstr("3, 5")));
  EXPECT_THAT(layer_error("  - flatten\n  - dense: {units: 2, bias: [1]}\n"), HasSubstr("list of 1 values"));
}

TEST(YamlModelErrors, NamesMustBeEarlierOnes) {
  EXPECT_THAT(
      layer_error("  - add: b\n  - relu: {name: b}\n"),
      AllOf(StartsWith("m.yaml:3:10: layer 'add1' (add): inputs: 'b' comes later (line 4)"), HasSubstr("cycles")));
  EXPECT_THAT(layer_error("  - relu: {name: a, inputs: a}\n"), HasSubstr("the layer itself"));
  EXPECT_THAT(layer_error("  - relu: {name: first}\n  - tanh: {inputs: frist}\n"), HasSubstr("did you mean 'first'?"));
  EXPECT_THAT(layer_error("  - relu: {name: a}\n  - tanh: {name: a}\n"), HasSubstr("already the layer on line 3"));
  EXPECT_THAT(layer_error("  - relu: {name: images}\n"), HasSubstr("is reserved"));
  for (const char* name : {"a/", "/a", "a//b", "a b", "''", "[a]", "-a"}) {
    EXPECT_THAT(layer_error("  - relu: {name: " + std::string(name) + "}\n"), HasSubstr("is not a name")) << name;
  }
  EXPECT_THAT(layer_error("  - add: {inputs: images}\n"), HasSubstr("has 1, needs 2"));
  EXPECT_THAT(layer_error("  - relu: {inputs: [images, images]}\n"), HasSubstr("has 2, needs 1"));
  EXPECT_THAT(layer_error("  - add: {}\n"), HasSubstr("has 1, needs 2"));
}

TEST(YamlModelErrors, UnknownThingsSuggestTheNearest) {
  EXPECT_THAT(layer_error("  - rellu\n"), AllOf(StartsWith("m.yaml:3:5: "), HasSubstr("did you mean 'relu'")));
  EXPECT_THAT(layer_error("  - convv: {channels: 3}\n"), HasSubstr("did you mean 'conv'"));
  EXPECT_THAT(layer_error("  - {rellu: 1, when: false}\n"), HasSubstr("did you mean 'relu'"));
  EXPECT_THAT(layer_error("  - conv: {chanels: 3, kernel: 3}\n"),
              AllOf(StartsWith("m.yaml:3:12: layer 'conv1' (conv): unknown key 'chanels'"), HasSubstr("'channels'")));
  EXPECT_THAT(error_of("layer: []\n"), HasSubstr("did you mean 'layers'"));
  EXPECT_THAT(error_of("layers: [relu]\nloss: {kind: cross_entrpy}\n"), HasSubstr("did you mean 'cross_entropy'"));
  EXPECT_THAT(layer_error("  - flatten\n  - dense: $clases\n"), HasSubstr("did you mean 'classes'"));
  EXPECT_THAT(layer_error("  - relu: {when: {knd: 1}}\n"), HasSubstr("no option 'knd'"));
}

TEST(YamlModelErrors, KeysAndTypes) {
  EXPECT_THAT(layer_error("  - conv: {channels: 3, channels: 4}\n"),
              HasSubstr("m.yaml:3:25: key 'channels' is repeated"));
  EXPECT_THAT(layer_error("  - dense: 3\n    units: 4\n"), HasSubstr("is given twice"));
  EXPECT_THAT(layer_error("  - conv: {kernel: 3}\n"), HasSubstr("channels: is missing"));
  EXPECT_THAT(layer_error("  - conv: {channels: six, kernel: 3}\n"), HasSubstr("'six' is not a whole number"));
  EXPECT_THAT(layer_error("  - conv: {channels: 0, kernel: 3}\n"), HasSubstr("'0' is not a whole number from 1"));
  EXPECT_THAT(layer_error("  - conv: {channels: [1, 2], kernel: 3}\n"), HasSubstr("a list is not a whole number"));
  EXPECT_THAT(layer_error("  - conv: {channels: 1, kernel: [3, 3, 3]}\n"), HasSubstr("has 3 numbers"));
  EXPECT_THAT(layer_error("  - conv: {channels: 1, kernel: 3, padding: some}\n"), HasSubstr("'some'"));
  EXPECT_THAT(layer_error("  - conv: 3\n"), HasSubstr("cannot be its value"));
  EXPECT_THAT(layer_error("  - relu: 3\n"), HasSubstr("it takes none"));
  EXPECT_THAT(layer_error("  - dropout: 1.5\n"), HasSubstr("from 0 to 1"));
  EXPECT_THAT(layer_error("  - dropout: {rate: 0.5, keep: 0.5}\n"), HasSubstr("one of them"));
  EXPECT_THAT(layer_error("  - scale: 1e60\n"), HasSubstr("too large"));
  EXPECT_THAT(layer_error("  - flatten\n  - dense: {units: 3, weights: orthogonal}\n"), HasSubstr("xavier"));
  EXPECT_THAT(layer_error("  - []\n"), HasSubstr("not a list"));
  EXPECT_THAT(layer_error("  - {name: a}\n"), HasSubstr("needs an op"));
  EXPECT_THAT(error_of("image: [28, 28]\nlayers: [relu]\n"), HasSubstr("[channels, height, width]"));
  EXPECT_THAT(error_of("options: {classes: 3}\nlayers: [relu]\n"), HasSubstr("is reserved"));
  EXPECT_THAT(error_of("options: {a: {default: x, allowed: [y]}}\nlayers: [relu]\n"),
              HasSubstr("not one of the allowed"));
}

TEST(YamlModelErrors, HugeSizesAreRefusedWithTheMemoryTheyNeed) {
  EXPECT_THAT(layer_error("  - flatten\n  - dense: 2000000000\n  - dense: 2000000000\n"),
              AllOf(HasSubstr("m.yaml:4:5: layer 'dense1' (dense): weights [128, 2000000000] would need"),
                    HasSubstr("GB"), HasSubstr("this machine has")));
  EXPECT_THAT(layer_error("  - conv: {channels: 2147483648, kernel: 1048576, padding: 1048576}\n"),
              HasSubstr("would need"));
  EXPECT_THAT(layer_error("  - constant: {value: 1, shape: [2147483648, 2147483648, 2147483648]}\n"),
              HasSubstr("would need"));
  EXPECT_THAT(layer_error("  - reshape: [2147483648, 2147483648, -1]\n"), HasSubstr("would need"));
  EXPECT_THAT(layer_error("  - max_pool: {kernel: 1048576, stride: 1, padding: 1048575}\n"), HasSubstr("would need"));
  std::string many = "  - flatten\n";
  for (int i = 0; i < 40; ++i) many += "  - dense: 60000\n";
  EXPECT_THAT(layer_error(many), HasSubstr("would need"));
}

TEST(YamlModelErrors, WhatIsNoModelAtAll) {
  EXPECT_THAT(error_of(""), HasSubstr("m.yaml: is empty"));
  EXPECT_THAT(error_of("# nothing\n"), HasSubstr("is empty"));
  EXPECT_THAT(error_of("just text"), HasSubstr("'just text'"));
  EXPECT_THAT(error_of("layers: [}"), AllOf(StartsWith("m.yaml:1:"), HasSubstr("not valid YAML")));
  EXPECT_THAT(error_of("name: x\n"), HasSubstr("has no `layers:`"));
  EXPECT_THAT(error_of("layers: []\n"), HasSubstr("layers: is empty"));
  EXPECT_THAT(error_of("layers: [relu]\n---\nlayers: [relu]\n"), HasSubstr("content after the end"));
  EXPECT_THAT(error_of("layers: &a [relu]\nname: *a\n"), HasSubstr("anchors"));
  EXPECT_THAT(error_of("layers: " + std::string(100, '[') + std::string(100, ']')), HasSubstr("nested deeper"));
  EXPECT_THAT(error_of("layers: " + std::string(100000, '[')), Not(HasSubstr("no error")));
  EXPECT_THAT(error_of(std::string(base::kLargestYaml + 1, '#')), HasSubstr("at most"));
  EXPECT_THAT(error_of("? [a]\n: b\n"), HasSubstr("plain text"));
}

TEST(ModelFile, IsKnownByItsEnding) {
  EXPECT_TRUE(is_model_file("a/b.yaml"));
  EXPECT_TRUE(is_model_file("b.yml"));
  EXPECT_TRUE(is_model_file("b.onnx"));
  EXPECT_FALSE(is_model_file("lenet"));
  EXPECT_THROW(load_model("/does/not/exist.yaml"), IoError);
}

}  // namespace
}  // namespace lockstep::interchange
