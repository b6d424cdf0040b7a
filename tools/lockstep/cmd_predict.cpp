// lockstep predict: a trained model's predictions for your own images or for test data.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "command_line.h"
#include "data/images.h"
#include "display/fetch_display.h"
#include "inspect/inference.h"
#include "lockstep/error.h"
#include "terminal/output.h"
#include "terminal/picture.h"
#include "terminal/table.h"
#include "terminal/text.h"
#include "train/data_options.h"

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;

struct PredictArguments {
  inspect::ModelSource source;
  std::vector<std::string> files;
  std::string dataset;
  std::string data;
  std::string resize = "pad";
  int64_t test = 0;
  int64_t top = 3;
  int64_t threads = 0;
  bool mistakes = false;
  bool json = false;
};

/// Examples of a file or of the test data, with the model's predictions.
struct Seen {
  std::string name;
  data::Examples images;
  std::vector<inspect::Prediction> predictions;

  [[nodiscard]] bool right(size_t i) const { return images.labels[i] == predictions[i].label; }
};

class ClassNames {
 public:
  explicit ClassNames(std::vector<std::string> names) : names_(std::move(names)) {}
  [[nodiscard]] std::string operator()(int label) const {
    const auto i = static_cast<size_t>(label);
    return i < names_.size() ? names_[i] : std::to_string(label);
  }

 private:
  std::vector<std::string> names_;
};

std::vector<int> best_classes(const inspect::Prediction& prediction, int64_t count) {
  std::vector<int> classes(prediction.probabilities.size());
  std::iota(classes.begin(), classes.end(), 0);
  std::stable_sort(classes.begin(), classes.end(), [&](int a, int b) {
    return prediction.probabilities[static_cast<size_t>(a)] > prediction.probabilities[static_cast<size_t>(b)];
  });
  classes.resize(std::min(classes.size(), static_cast<size_t>(count)));
  return classes;
}

double probability(const inspect::Prediction& prediction, int label) {
  return static_cast<double>(prediction.probabilities[static_cast<size_t>(label)]);
}

data::ImageShape image_shape(const Shape& image) {
  return {static_cast<int>(image[0]), static_cast<int>(image[1]), static_cast<int>(image[2])};
}

/// True if the examples are rows of numbers, of which no picture can be drawn.
bool are_rows(const data::ImageShape& shape) { return shape.height < 2; }

std::optional<data::Fit> fit(const std::string& name) {
  if (name == "pad") return data::Fit::pad;
  if (name == "crop") return data::Fit::crop;
  if (name == "stretch") return data::Fit::stretch;
  if (name == "off") return std::nullopt;
  throw UsageError(fmt::format("--resize: '{}' is not allowed; it takes one of pad, crop, stretch, off", name));
}

std::vector<Seen> see_files(const inspect::TrainedModel& model, const PredictArguments& arguments,
                            const terminal::Terminal& terminal) {
  const data::PixelScaling pixels =
      inspect::pixel_scaling(model, arguments.data, display::fetch_display(terminal, arguments.json));
  data::ReadImagesOptions reading{image_shape(model.header.image), "", ""};
  reading.label_column = train::settings_of(model.header).label_column;
  reading.classes = model.header.class_names;
  reading.fit = fit(arguments.resize);
  std::vector<Seen> all;
  for (const std::string& file : arguments.files) {
    Seen seen{file, data::read_images(file, reading), {}};
    seen.predictions = inspect::predict(model, seen.images, static_cast<int>(arguments.threads), "cpu", &pixels);
    all.push_back(std::move(seen));
  }
  return all;
}

Seen see_test_data(const inspect::TrainedModel& model, const PredictArguments& arguments,
                   const terminal::Terminal& terminal) {
  const data::FetchCallback progress = display::fetch_display(terminal, arguments.json);
  data::Dataset dataset = inspect::load_data(model, {arguments.dataset, arguments.data, progress});
  Seen seen{dataset.name, std::move(dataset.test), {}};
  if (seen.images.labels.empty()) {
    throw UsageError(fmt::format("predict: {} has no labels to compare with; name files instead", dataset.name));
  }
  if (!arguments.mistakes) {
    data::keep_first(seen.images, std::min(arguments.test, seen.images.count()), "test examples");
  }
  const data::PixelScaling pixels = inspect::pixel_scaling(model, arguments.data, progress);
  seen.predictions = inspect::predict(model, seen.images, static_cast<int>(arguments.threads), "cpu", &pixels);
  return seen;
}

Json to_json(const Seen& seen, size_t i, const ClassNames& names, int64_t top) {
  const inspect::Prediction& prediction = seen.predictions[i];
  Json result{{"source", seen.name},
              {"index", i},
              {"label", prediction.label},
              {"class", names(prediction.label)},
              {"probability", prediction.probability}};
  if (!seen.images.labels.empty()) {
    result["true_label"] = seen.images.labels[i];
    result["true_class"] = names(seen.images.labels[i]);
  }
  for (const int label : best_classes(prediction, top)) {
    result["top"].push_back(
        {{"label", label}, {"class", names(label)}, {"probability", probability(prediction, label)}});
  }
  return result;
}

std::string others(const inspect::Prediction& prediction, const ClassNames& names, int64_t top) {
  std::string text;
  for (const int label : best_classes(prediction, top)) {
    if (label == prediction.label) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", names(label),
                        terminal::percent(probability(prediction, label), 1));
  }
  return text;
}

std::vector<size_t> choose(const Seen& seen, const PredictArguments& arguments) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < seen.predictions.size(); ++i) {
    const bool wanted = arguments.test == 0 || chosen.size() < static_cast<size_t>(arguments.test);
    if (wanted && (!arguments.mistakes || !seen.right(i))) chosen.push_back(i);
  }
  return chosen;
}

/// Prints how many of the examples with labels are predicted right.
void print_right(const std::vector<Seen>& all, const std::string& what) {
  size_t labelled = 0;
  size_t right = 0;
  for (const Seen& seen : all) {
    if (seen.images.labels.empty()) continue;
    labelled += seen.predictions.size();
    for (size_t i = 0; i < seen.predictions.size(); ++i) right += seen.right(i) ? 1 : 0;
  }
  if (labelled == 0) return;
  terminal::print("{} of {} right\n", terminal::grouped(right), terminal::counted(labelled, what));
}

void print_predictions(const terminal::Terminal& terminal, const std::vector<Seen>& all, const PredictArguments& chosen,
                       const ClassNames& names) {
  const bool labels = std::any_of(all.begin(), all.end(), [](const Seen& seen) { return !seen.images.labels.empty(); });
  const bool rows = are_rows(all.front().images.shape);
  std::vector<terminal::Table::Column> columns{{rows ? "example" : "image"}, {"prediction"}};
  if (labels) columns.push_back({"label"});
  columns.push_back({"probability", terminal::Table::Align::right});
  columns.push_back({"then"});
  terminal::Table table(columns);
  for (const Seen& seen : all) {
    for (const size_t i : choose(seen, chosen)) {
      const inspect::Prediction& prediction = seen.predictions[i];
      const bool wrong = !seen.images.labels.empty() && !seen.right(i);
      const std::string guess = names(prediction.label);
      std::vector<std::string> cells{seen.predictions.size() == 1 ? seen.name : fmt::format("{}[{}]", seen.name, i),
                                     wrong ? terminal.red(guess) : terminal.bold(guess)};
      if (labels) cells.push_back(seen.images.labels.empty() ? "" : names(seen.images.labels[i]));
      cells.push_back(terminal::percent(static_cast<double>(prediction.probability)));
      cells.push_back(others(prediction, names, chosen.top));
      table.add(std::move(cells));
    }
  }
  terminal::write_out(table.text(terminal));
}

/// Draws a test image with two lines below: the prediction, and the true class.
std::vector<std::string> captioned(const terminal::Terminal& terminal, const Seen& seen, size_t i,
                                   const ClassNames& names) {
  std::vector<std::string> lines = terminal::picture(seen.images, static_cast<int64_t>(i), terminal.unicode);
  const inspect::Prediction& prediction = seen.predictions[i];
  const std::string guess = fmt::format("{} ({})", names(prediction.label),
                                        terminal::percent(static_cast<double>(prediction.probability), 1));
  lines.push_back("seen as " + (seen.right(i) ? terminal.green(guess) : terminal.red(guess)));
  lines.push_back((seen.right(i) ? "right, it is " : "wrong, it is ") + names(seen.images.labels[i]));
  return lines;
}

void print_gallery(const terminal::Terminal& terminal, const Seen& seen, const std::vector<size_t>& chosen,
                   const ClassNames& names) {
  const size_t width = std::max<size_t>(static_cast<size_t>(seen.images.shape.width), 28);
  const size_t across = std::max<size_t>(1, (terminal::Terminal::width() + 3) / (width + 3));
  for (size_t begin = 0; begin < chosen.size(); begin += across) {
    std::vector<std::vector<std::string>> blocks;
    for (size_t i = begin; i < std::min(begin + across, chosen.size()); ++i) {
      blocks.push_back(captioned(terminal, seen, chosen[i], names));
    }
    for (const std::string& line : terminal::side_by_side(blocks, width)) terminal::print("{}\n", line);
    terminal::print("\n");
  }
}

void print_all(const terminal::Terminal& terminal, const std::vector<Seen>& all, const PredictArguments& arguments,
               const ClassNames& names) {
  const Seen& first = all.front();
  const bool test = arguments.files.empty();
  const bool rows = are_rows(first.images.shape);
  if (test && !rows) {
    print_gallery(terminal, first, choose(first, arguments), names);
  } else {
    print_predictions(terminal, all, arguments, names);
  }
  print_right(all, fmt::format("{}{}", test ? "test " : "", rows ? "example" : "image"));
}

void check(const PredictArguments& arguments) {
  const bool test = arguments.test > 0 || arguments.mistakes;
  if (arguments.files.empty() && !test) throw UsageError("predict: give files, or --test N for test examples");
  (void)fit(arguments.resize);
  if (!arguments.files.empty() && test) throw UsageError("predict: give either files or --test, not both");
}

int run_predict(const PredictArguments& arguments, std::span<const nn::ModelDef> models) {
  check(arguments);
  const terminal::Terminal terminal = terminal::Terminal::detect();
  inspect::ModelSource source = arguments.source;
  source.models.assign(models.begin(), models.end());
  const inspect::TrainedModel model = inspect::load_best_model(source);
  inspect::require_classes(model);  // checked before data is loaded
  const ClassNames names(model.header.class_names);
  const bool test = arguments.files.empty();
  const std::vector<Seen> all =
      test ? std::vector<Seen>{see_test_data(model, arguments, terminal)} : see_files(model, arguments, terminal);
  if (arguments.json) {
    Json results = Json::array();
    for (const Seen& seen : all) {
      for (const size_t i : choose(seen, arguments)) results.push_back(to_json(seen, i, names, arguments.top));
    }
    terminal::print("{}\n", results.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    print_all(terminal, all, arguments, names);
  }
  return 0;
}

}  // namespace

void add_predict(const Command& program, Invocation& invocation) {
  const Command app =
      program.add_command("predict", "Predict the classes of images, or of rows of a CSV file, with a trained model");
  const auto arguments = std::make_shared<PredictArguments>();
  app.add_option("RUN", arguments->source.run, "A run's folder or name, a checkpoint file, or an ONNX file").required();
  app.add_option("FILE", arguments->files, "Files: PNG, JPEG, npz, npy, idx (plain or gzip) or CSV");
  app.add_number("--test", arguments->test, "Show N examples of the run's test data, with their labels", 1);
  app.add_flag("--mistakes", arguments->mistakes, "Show only test examples that the model gets wrong");
  app.add_option("--resize", arguments->resize, "Make a PNG or JPEG as large as the model's images [pad]")
      .type_name("pad|crop|stretch|off");
  app.add_number("--top", arguments->top, "Number of classes to show [3]", 1);
  app.add_option("--checkpoint", arguments->source.checkpoint, "Checkpoint of the run [best]")
      .type_name("best|newest|FILE");
  app.add_option("--dataset", arguments->dataset, "Data set of the test data [the run's]").type_name("NAME|PATH");
  app.add_option("--data", arguments->data, "Folder to search first for the data set").type_name("DIR");
  app.add_number("--threads", arguments->threads, "Computing threads [0: one per core]");
  app.add_option("--runs-dir", arguments->source.runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(
      "A PNG or JPEG is made as large as the model's images: pad keeps all of it and fills up with black, crop takes "
      "its\n"
      "middle, stretch ignores its proportions. It becomes grey for models of one channel. Digits must be white on "
      "black,\n"
      "as in MNIST. A CSV file has the columns that the model was trained on, with labels or without.\n\n"
      "Examples:\n"
      "  lockstep predict runs/lenet-1 digit.png\n"
      "  lockstep predict runs/lenet-1 photo.jpg --resize crop\n"
      "  lockstep predict runs/lr-1 flowers.csv\n"
      "  lockstep predict runs/lenet-1 t10k-images-idx3-ubyte.gz --json\n"
      "  lockstep predict runs/lenet-1 --test 6\n"
      "  lockstep predict runs/lenet-1 --test 6 --mistakes");
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_predict(*arguments, invocation.models); };
  });
}

}  // namespace lockstep::tools
