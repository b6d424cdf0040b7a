// The header of a checkpoint as JSON. Writing and reading are side by side, so that they stay consistent.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "lockstep/error.h"

namespace lockstep::checkpoint {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargest = int64_t{1} << 53;  // largest integer range that JSON numbers hold exactly
constexpr uint64_t kMostValues = uint64_t{1} << 40;
constexpr size_t kMostArrays = 64;
constexpr size_t kMostRanges = size_t{1} << 24;

/// A value of the header with its path, so that errors can name it.
class Field {
 public:
  Field(const Json& value, std::string path, const std::string& file)
      : value_(value), path_(std::move(path)), file_(file) {}

  [[nodiscard]] Field operator[](const char* key) const {
    if (!value_.is_object()) reject("a map");
    const auto found = value_.find(key);
    if (found == value_.end()) {
      throw DataError(fmt::format("checkpoint {}: header lacks '{}{}'", file_, path_.empty() ? "" : path_ + ".", key));
    }
    return {*found, path_.empty() ? key : path_ + "." + key, file_};
  }

  [[nodiscard]] bool has(const char* key) const { return value_.is_object() && value_.contains(key); }
  [[nodiscard]] bool null() const { return value_.is_null(); }

  [[nodiscard]] std::string text() const {
    if (!value_.is_string()) reject("text");
    return value_.get<std::string>();
  }

  [[nodiscard]] int64_t whole(int64_t least = 0, int64_t most = kLargest) const {
    if (!value_.is_number_integer()) reject("a whole number");
    const bool fits = !value_.is_number_unsigned() || value_.get<uint64_t>() <= static_cast<uint64_t>(kLargest);
    const int64_t number = fits ? value_.get<int64_t>() : -1;
    if (!fits || number < least || number > most) reject(fmt::format("a whole number from {} to {}", least, most));
    return number;
  }

  [[nodiscard]] uint64_t count() const { return static_cast<uint64_t>(whole()); }

  /// Returns the number; values that are not finite were written as null.
  [[nodiscard]] double number() const {
    if (value_.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value_.is_number()) reject("a number");
    return value_.get<double>();
  }

  [[nodiscard]] std::vector<Field> list(size_t most) const {
    if (!value_.is_array() || value_.size() > most) reject(fmt::format("a list of at most {}", most));
    std::vector<Field> items;
    for (size_t i = 0; i < value_.size(); ++i) items.emplace_back(value_[i], fmt::format("{}[{}]", path_, i), file_);
    return items;
  }

  [[nodiscard]] settings::Options texts() const {
    if (!value_.is_object()) reject("a map");
    settings::Options result;
    for (const auto& [key, item] : value_.items()) result[key] = Field(item, path_ + "." + key, file_).text();
    return result;
  }

  [[nodiscard]] Shape shape() const {
    std::vector<int64_t> dims;
    uint64_t elements = 1;
    for (const Field& dim : list(Shape::kMaxRank)) {
      dims.push_back(dim.whole(1, int64_t{1} << 40));
      const auto size = static_cast<uint64_t>(dims.back());
      if (size > kMostValues / elements) reject(fmt::format("a shape of at most {} elements", kMostValues));
      elements *= size;
    }
    return Shape(std::span<const int64_t>(dims));
  }

  [[noreturn]] void reject(const std::string& expected) const {
    std::string seen = value_.dump(-1, ' ', true, Json::error_handler_t::replace);
    if (seen.size() > 40) seen = seen.substr(0, 40) + "...";
    throw DataError(fmt::format("checkpoint {}: header has {} for '{}', expected {}", file_, seen, path_, expected));
  }

 private:
  const Json& value_;
  std::string path_;
  const std::string& file_;
};

Json shape_json(const Shape& shape) { return std::vector<int64_t>(shape.dims().begin(), shape.dims().end()); }

Json number_json(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json eval_json(const std::optional<EvalRecord>& eval) {
  if (!eval) return nullptr;
  return {{"step", eval->step},
          {"epoch", eval->epoch},
          {"loss", number_json(eval->loss)},
          {"accuracy", number_json(eval->accuracy)},
          {"examples", eval->examples}};
}

std::optional<EvalRecord> read_eval(const Field& field) {
  if (field.null()) return std::nullopt;
  return EvalRecord{field["step"].count(), field["epoch"].whole(), field["loss"].number(), field["accuracy"].number(),
                    field["examples"].whole()};
}

Json remainder_json(const data::Remainder& left) {
  Json parts = Json::array();
  for (const data::PassPart& part : left.parts) {
    Json ranges = Json::array();
    for (const base::Range& range : part.ranges) ranges.push_back({range.begin, range.end});
    parts.push_back({{"pass", part.pass}, {"ranges", std::move(ranges)}});
  }
  return {{"next_pass", left.next_pass}, {"parts", std::move(parts)}};
}

std::vector<base::Range> read_ranges(const Field& field, int64_t examples) {
  std::vector<base::Range> ranges;
  int64_t least = 0;
  for (const Field& item : field.list(kMostRanges)) {
    const std::vector<Field> ends = item.list(2);
    if (ends.size() != 2 || least >= examples) {
      item.reject(fmt::format("two ascending positions of the {} of a pass, behind those before", examples));
    }
    const int64_t begin = ends[0].whole(least, examples - 1);
    ranges.push_back({begin, ends[1].whole(begin + 1, examples)});
    least = ranges.back().end + 1;
  }
  if (ranges.empty()) field.reject("at least one range");
  return ranges;
}

data::Remainder read_remainder(const Field& field, int64_t examples) {
  data::Remainder left;
  left.next_pass = field["next_pass"].whole();
  int64_t least = 0;
  for (const Field& item : field["parts"].list(kMostRanges)) {
    if (least >= left.next_pass) item.reject("no part of next_pass or later");
    const int64_t pass = item["pass"].whole(least, left.next_pass - 1);
    left.parts.push_back({pass, read_ranges(item["ranges"], examples)});
    least = pass + 1;
  }
  return left;
}

/// Reads the position as older programs wrote it: the number of a batch in a pass.
data::Remainder read_position(const Field& state, const CheckpointHeader& header) {
  const int64_t pass = state["pass"].whole();
  const int64_t batches = state["batch"].whole();
  if (batches == 0) return {{}, pass};
  const auto found = header.settings.find("batch");
  const std::string text = found == header.settings.end() ? "" : found->second;
  int64_t size = 0;
  std::from_chars(text.data(), text.data() + text.size(), size);
  if (size < 1 || batches > (header.train_examples - 1) / size) {
    state["batch"].reject(
        fmt::format("a batch of {} examples in batches of settings.batch '{}'", header.train_examples, text));
  }
  return data::remainder_after(pass, batches, size, header.train_examples);
}

Json state_json(const TrainingState& state) {
  Json json = {{"step", state.step},
               {"examples", state.examples},
               {"epochs", state.epochs},
               {"remainder", remainder_json(state.data)},
               {"seconds", number_json(state.seconds)},
               {"aside_seconds", number_json(state.aside_seconds)},
               {"epoch_loss_sum", number_json(state.epoch_loss_sum)},
               {"epoch_correct", state.epoch_correct},
               {"epoch_examples", state.epoch_examples},
               {"epoch_loss", number_json(state.epoch_loss)},
               {"epoch_accuracy", number_json(state.epoch_accuracy)},
               {"last_eval", eval_json(state.last_eval)},
               {"best_eval", eval_json(state.best_eval)},
               {"best_checkpoint", eval_json(state.best_checkpoint)}};
  if (state.group > 0) json["group"] = state.group;
  return json;
}

TrainingState read_state(const Field& field, const CheckpointHeader& header) {
  TrainingState state;
  state.step = field["step"].count();
  state.examples = field["examples"].count();
  state.epochs = field["epochs"].whole();
  state.data =
      field.has("remainder") ? read_remainder(field["remainder"], header.train_examples) : read_position(field, header);
  state.seconds = field["seconds"].number();
  if (field.has("group")) state.group = field["group"].count();
  // missing in older checkpoints
  if (field.has("aside_seconds")) state.aside_seconds = field["aside_seconds"].number();
  state.epoch_loss_sum = field["epoch_loss_sum"].number();
  state.epoch_correct = field["epoch_correct"].count();
  state.epoch_examples = field["epoch_examples"].count();
  state.epoch_loss = field["epoch_loss"].number();
  state.epoch_accuracy = field["epoch_accuracy"].number();
  state.last_eval = read_eval(field["last_eval"]);
  state.best_eval = read_eval(field["best_eval"]);
  state.best_checkpoint = read_eval(field["best_checkpoint"]);
  return state;
}

std::vector<std::string> read_texts(const Field& field, size_t most) {
  std::vector<std::string> texts;
  for (const Field& item : field.list(most)) texts.push_back(item.text());
  return texts;
}

std::vector<ParameterEntry> read_parameters(const Field& field) {
  std::vector<ParameterEntry> parameters;
  uint64_t total = 0;
  for (const Field& item : field.list(size_t{1} << 20)) {
    parameters.push_back({item["name"].text(), item["shape"].shape()});
    total += static_cast<uint64_t>(parameters.back().shape.elements());
    if (total > kMostValues) field.reject(fmt::format("at most {} values in all", kMostValues));
  }
  return parameters;
}

}  // namespace

std::string header_to_json(const CheckpointHeader& header) {
  Json parameters = Json::array();
  for (const ParameterEntry& entry : header.parameters) {
    parameters.push_back({{"name", entry.name}, {"shape", shape_json(entry.shape)}});
  }
  const Json all = {{"model", header.model},
                    {"options", header.options},
                    {"image", shape_json(header.image)},
                    {"classes", header.classes},
                    {"train_examples", header.train_examples},
                    {"class_names", header.class_names},
                    {"parameters", parameters},
                    {"optimizer", header.optimizer},
                    {"slots", header.slots},
                    {"settings", header.settings},
                    {"state", state_json(header.state)},
                    {"version", header.version}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

CheckpointHeader header_from_json(std::string_view text, const std::string& file) {
  const auto all = base::parse_json<Json>(text, "checkpoint " + file + ": header");
  const Field root(all, "", file);
  CheckpointHeader header;
  header.model = root["model"].text();
  header.options = root["options"].texts();
  header.image = root["image"].shape();
  if (header.image.rank() != 3) root["image"].reject("three sizes: channels, height, width");
  header.classes = root["classes"].whole(1, 1 << 30);
  header.train_examples = root["train_examples"].whole();
  header.class_names = read_texts(root["class_names"], size_t{1} << 20);
  header.parameters = read_parameters(root["parameters"]);
  header.optimizer = root["optimizer"].text();
  header.slots = read_texts(root["slots"], kMostArrays);
  header.settings = root["settings"].texts();
  header.state = read_state(root["state"], header);
  header.version = root["version"].text();
  return header;
}

}  // namespace lockstep::checkpoint
