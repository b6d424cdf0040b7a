#include <fmt/format.h>

#include <optional>

#include "base/suggest.h"
#include "interchange/file_model.h"
#include "lockstep/error.h"
#include "lockstep/ops.h"

namespace lockstep::interchange {
namespace {

using nn::Value;

/// Builds the layers in order and keeps their values by name.
class GraphBuilder {
 public:
  GraphBuilder(const FileModel& model, nn::Graph& graph, const nn::BuildRequest& request)
      : model_(model),
        graph_(graph),
        request_(request),
        variables_(make_variables(request.options, request.image, request.classes)) {}

  nn::ModelGraph build();

 private:
  /// The value of a name; unset if its `when` leaves the layer out.
  struct Named {
    Value value;
    int line = 0;
    bool built = false;  ///< false: left out
  };

  void add(const LayerSpec& layer);
  /// Skips a layer that is left out: its name stands for its only input, and the previous layer stays the same.
  void leave_out(const std::string& name, const LayerCall& call, const LayerSpec& layer);
  Value run(const LayerSpec& layer, const std::string& name, const LayerCall& call);
  std::string name_of(const LayerSpec& layer, const std::string& op);
  Value find(const std::string& name, const Arguments& user, std::string_view key, const std::string& self = "");
  Value labels();
  /// Returns the value that a top-level key names.
  Value named(const std::optional<YamlNode>& node, const char* key);

  void add_loss(nn::ModelGraph& built);
  void add_cross_entropy(nn::ModelGraph& built, const Arguments& loss);
  void add_squares(nn::ModelGraph& built, const Arguments& loss);
  void add_value(nn::ModelGraph& built, const Arguments& loss);
  void add_picture(nn::ModelGraph& built);
  /// Returns the value that a key of the loss names; it must be a scalar.
  Value scalar(const Arguments& loss, std::string_view key);
  /// Throws ShapeError with the key's position.
  [[noreturn]] void misfit(const Arguments& where, std::string_view key, const std::string& message) const;

  const FileModel& model_;
  nn::Graph& graph_;
  const nn::BuildRequest& request_;
  Variables variables_;
  std::map<std::string, Named> values_;
  std::map<std::string, int> counts_;
  Value images_;
  Value labels_;
  Value previous_;
};

nn::ModelGraph GraphBuilder::build() {
  images_ = nn::image_input(graph_, request_);
  previous_ = images_;
  for (const LayerSpec& layer : model_.layers) add(layer);
  nn::ModelGraph built;
  built.images = images_;
  built.scores = model_.scores ? named(model_.scores, "scores") : previous_;
  add_loss(built);
  add_picture(built);
  return built;
}

std::string GraphBuilder::name_of(const LayerSpec& layer, const std::string& op) {
  if (!layer.name.empty()) return layer.name;
  std::string name;
  do {
    name = op + std::to_string(++counts_[op]);
  } while (model_.names.contains(name) || values_.contains(name));
  return name;
}

void GraphBuilder::add(const LayerSpec& layer) {
  const std::string op = expand(layer.op, variables_, model_.file);
  const std::string name = name_of(layer, op);
  const std::string title = fmt::format("layer '{}' ({})", name, shown(op));
  const LayerCall call = make_call(layer, op, title, variables_, model_.file);
  const auto other = values_.find(name);
  const bool applied = other != values_.end() && other->second.built;
  if (layer.when && !applies(*layer.when, variables_, model_.file)) {
    if (!applied) leave_out(name, call, layer);
    return;
  }
  if (applied) {
    call.args.reject("name", fmt::format("the `when` of the layer on line {} applies too", other->second.line));
  }
  previous_ = run(layer, name, call);
  values_[name] = {previous_, layer.where.line, true};
}

void GraphBuilder::leave_out(const std::string& name, const LayerCall& call, const LayerSpec& layer) {
  Value stand_in;
  const size_t count = call.inputs.size() + (call.from_previous ? 1 : 0);
  if (count == 1 && call.from_previous) {
    stand_in = previous_;
  } else if (count == 1) {
    const auto found = values_.find(call.inputs[0]);
    if (found == values_.end() || found->second.value.valid()) {
      stand_in = find(call.inputs[0], call.args, "inputs", name);
    }
  }
  values_[name] = {stand_in, layer.where.line, false};
}

Value GraphBuilder::run(const LayerSpec& layer, const std::string& name, const LayerCall& call) {
  std::vector<Value> inputs;
  if (call.from_previous) inputs.push_back(previous_);
  for (const std::string& input : call.inputs) inputs.push_back(find(input, call.args, "inputs", name));
  const Scoping scoping = call.kind->scoping;
  const bool scoped = scoping == Scoping::always || (scoping == Scoping::named && !layer.name.empty());
  try {
    std::optional<graph::Scope> scope;
    if (scoped) scope.emplace(graph_, name);
    const Value result = call.kind->build({graph_, request_, name, std::move(inputs), call.args});
    check_size("its result", result.shape().dims());
    return result;
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("{}: {}: {}", place(model_.file, layer.where), call.args.subject(), error.what()));
  }
}

Value GraphBuilder::labels() {
  if (!labels_.valid()) labels_ = graph_.input("labels", {DType::i32, {request_.batch}});
  return labels_;
}

Value GraphBuilder::find(const std::string& name, const Arguments& user, std::string_view key,
                         const std::string& self) {
  if (name == "images") return images_;
  if (name == "labels") return labels();
  if (const auto found = values_.find(name); found != values_.end()) {
    if (found->second.value.valid()) return found->second.value;
    user.reject(key, fmt::format("'{}' (line {}) is left out by its `when`", shown(name), found->second.line));
  }
  if (name == self) user.reject(key, "'" + shown(name) + "' is the layer itself; it can use earlier ones only");
  if (const auto later = model_.names.find(name); later != model_.names.end()) {
    user.reject(key, fmt::format("'{}' comes later (line {}); a layer can use earlier ones only: no cycles",
                                 shown(name), later->second.line));
  }
  std::vector<std::string> known{"images", "labels"};
  for (const auto& [other, value] : values_) known.push_back(other);
  const std::string nearest = base::nearest(shown(name), known);
  user.reject(key, "there is no '" + shown(name) + "' before it" +
                       (nearest.empty() ? "" : " (did you mean '" + nearest + "'?)"));
}

Value GraphBuilder::named(const std::optional<YamlNode>& node, const char* key) {
  Arguments args(model_.file, variables_, "model", *node);
  args.add(key, *node);
  return find(args.text(key, ""), args, key);
}

void GraphBuilder::misfit(const Arguments& where, std::string_view key, const std::string& message) const {
  const YamlNode* node = where.find(key);
  const YamlNode& at = node == nullptr ? where.where() : *node;
  throw ShapeError(fmt::format("{}: {}: {}", place(model_.file, at), where.subject(), message));
}

void GraphBuilder::add_loss(nn::ModelGraph& built) {
  const graph::Scope scope(graph_, "loss");
  const Arguments loss = section(model_.loss, variables_, model_.file, "loss", "kind");
  loss.check_keys({"kind", "of", "factor", "value", "over", "plus"});
  if (loss.has("value")) {
    if (loss.has("kind")) loss.reject("value", "cannot be combined with kind; give one of them");
    add_value(built, loss);
  } else if (loss.choice("kind", {"cross_entropy", "l2"}) == "l2") {
    add_squares(built, loss);
  } else {
    add_cross_entropy(built, loss);
  }
  for (const char* key : {"of", "factor"}) {
    if (loss.has(key) && loss.text("kind", "") != "l2") loss.reject(key, "applies only to kind l2");
  }
  if (loss.has("plus")) built.loss = ops::add(built.loss, scalar(loss, "plus"));
  const bool counts = labels_.valid() && built.scores.shape() == Shape{request_.batch, request_.classes};
  if (counts) {
    built.labels = labels_;
    built.correct = ops::reduce_sum(ops::correct(built.scores, labels_));
  } else if (labels_.valid()) {
    built.labels = labels_;
  }
}

void GraphBuilder::add_cross_entropy(nn::ModelGraph& built, const Arguments& loss) {
  const Shape wanted{request_.batch, request_.classes};
  if (built.scores.shape() != wanted || built.scores.dtype() != DType::f32) {
    misfit(loss, "kind",
           fmt::format("scores {} of '{}' must be {} (batch, classes)", built.scores.shape().str(), built.scores.name(),
                       wanted.str()));
  }
  const Value each = ops::softmax_cross_entropy(built.scores, labels());
  built.loss_over = loss.choice("over", {"mean", "sum"}) == "sum" ? nn::LossOver::sum : nn::LossOver::mean;
  built.loss = built.loss_over == nn::LossOver::sum ? ops::reduce_sum(each) : ops::reduce_mean(each);
}

void GraphBuilder::add_squares(nn::ModelGraph& built, const Arguments& loss) {
  std::vector<std::string> of = loss.names("of");
  if (of.size() > 2) loss.reject("of", "names more than two values");
  Value x = of.empty() ? built.scores : find(of[0], loss, "of");
  built.loss_over = loss.choice("over", {"sum", "mean"}) == "sum" ? nn::LossOver::sum : nn::LossOver::mean;
  auto factor = static_cast<float>(loss.number("factor", 0.5));
  try {
    if (of.size() == 2) {
      const Value y = find(of[1], loss, "of");
      if (y.shape() != x.shape()) {
        throw ShapeError(fmt::format("'{}' {} and '{}' {} must have one shape", shown(of[0]), x.shape().str(),
                                     shown(of[1]), y.shape().str()));
      }
      x = ops::sub(x, y);
    }
    if (built.loss_over == nn::LossOver::mean) factor /= static_cast<float>(request_.batch);
    built.loss = ops::scale(ops::reduce_sum(ops::square(x)), factor);
  } catch (const ShapeError& error) {
    misfit(loss, "of", error.what());
  }
}

void GraphBuilder::add_value(nn::ModelGraph& built, const Arguments& loss) {
  built.loss = scalar(loss, "value");
  built.loss_over = loss.choice("over", {"mean", "sum"}) == "sum" ? nn::LossOver::sum : nn::LossOver::mean;
}

Value GraphBuilder::scalar(const Arguments& loss, std::string_view key) {
  const std::string name = loss.text(key, "");
  const Value value = find(name, loss, key);
  if (value.shape() == Shape{} && value.dtype() == DType::f32) return value;
  misfit(loss, key,
         fmt::format("{} '{}' {} must be a scalar []; put a reduce_mean or reduce_sum before it", key, shown(name),
                     value.shape().str()));
}

void GraphBuilder::add_picture(nn::ModelGraph& built) {
  if (!model_.picture) return;
  Value picture = named(model_.picture, "picture");
  const Shape& image = request_.image;
  if (picture.shape() == Shape{request_.batch, image.elements()}) {
    picture = ops::reshape(picture, Shape{request_.batch, image[0], image[1], image[2]});
  }
  if (picture.shape().rank() != 4 || picture.shape()[0] != request_.batch || picture.dtype() != DType::f32) {
    throw ShapeError(fmt::format("{}: picture {} must be [batch, channels, height, width]",
                                 place(model_.file, *model_.picture), picture.shape().str()));
  }
  built.picture = picture;
  built.picture_name = "picture";
  if (model_.picture_name) {
    Arguments args(model_.file, variables_, "model", *model_.picture_name);
    args.add("picture_name", *model_.picture_name);
    built.picture_name = shown(args.text("picture_name", ""));
  }
}

}  // namespace

nn::ModelGraph build_graph(const FileModel& model, nn::Graph& graph, const nn::BuildRequest& request) {
  return GraphBuilder(model, graph, request).build();
}

}  // namespace lockstep::interchange
