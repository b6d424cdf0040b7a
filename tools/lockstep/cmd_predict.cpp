// lockstep predict: a trained model's predictions for your own images or for test data.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
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

namespace lockstep::tools {
namespace {

using Json = nlohmann::ordered_json;

struct PredictArguments {
  inspect::ModelSource source;
  std::vector<std::string> files;
  std::string dataset;
  std::string data;
  int64_t test = 0;
  int64_t top = 3;
  int64_t threads = 0;
  bool mistakes = false;
  bool json = false;
};

/// Images of a file or of the test data, with the model's predictions.
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

std::vector<Seen> see_files(const inspect::TrainedModel& model, const PredictArguments& arguments,
                            const terminal::Terminal& terminal) {
  const data::PixelScaling pixels =
      inspect::pixel_scaling(model, arguments.data, display::fetch_display(terminal, arguments.json));
  std::vector<Seen> all;
  for (const std::string& file : arguments.files) {
    Seen seen{file, data::read_images(file, {image_shape(model.header.image), "", ""}), {}};
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
    throw UsageError(fmt::format("predict: {} has no labels to compare with; name image files instead", dataset.name));
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

void print_predictions(const terminal::Terminal& terminal, const std::vector<Seen>& all, const ClassNames& names,
                       int64_t top) {
  terminal::Table table({{"image"}, {"prediction"}, {"probability", terminal::Table::Align::right}, {"then"}});
  for (const Seen& seen : all) {
    for (size_t i = 0; i < seen.predictions.size(); ++i) {
      const inspect::Prediction& prediction = seen.predictions[i];
      table.add({seen.predictions.size() == 1 ? seen.name : fmt::format("{}[{}]", seen.name, i),
                 terminal.bold(names(prediction.label)), terminal::percent(static_cast<double>(prediction.probability)),
                 others(prediction, names, top)});
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

std::vector<size_t> choose(const Seen& seen, const PredictArguments& arguments) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < seen.predictions.size(); ++i) {
    const bool wanted = arguments.test == 0 || chosen.size() < static_cast<size_t>(arguments.test);
    if (wanted && (!arguments.mistakes || !seen.right(i))) chosen.push_back(i);
  }
  return chosen;
}

void print_test(const terminal::Terminal& terminal, const Seen& seen, const PredictArguments& arguments,
                const ClassNames& names) {
  print_gallery(terminal, seen, choose(seen, arguments), names);
  size_t right = 0;
  for (size_t i = 0; i < seen.predictions.size(); ++i) right += seen.right(i) ? 1 : 0;
  terminal::print("{} of {} right\n", terminal::grouped(right),
                  terminal::counted(seen.predictions.size(), "test image"));
}

void check(const PredictArguments& arguments) {
  const bool test = arguments.test > 0 || arguments.mistakes;
  if (arguments.files.empty() && !test) throw UsageError("predict: give image files, or --test N for test images");
  if (!arguments.files.empty() && test) throw UsageError("predict: give either image files or --test, not both");
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
    terminal::print("{}\n", results.dump(2));
  } else if (test) {
    print_test(terminal, all.front(), arguments, names);
  } else {
    print_predictions(terminal, all, names, arguments.top);
  }
  return 0;
}

}  // namespace

void add_predict(const Command& program, Invocation& invocation) {
  const Command app = program.add_command("predict", "Predict the classes of images with a trained model");
  const auto arguments = std::make_shared<PredictArguments>();
  app.add_option("RUN", arguments->source.run, "A run's folder or name, or a checkpoint file").required();
  app.add_option("FILE", arguments->files, "Image files: idx (plain or gzip), npz, npy or PNG");
  app.add_number("--test", arguments->test, "Show N images of the run's test data, with their labels", 1);
  app.add_flag("--mistakes", arguments->mistakes, "Show only test images that the model gets wrong");
  app.add_number("--top", arguments->top, "Number of classes to show [3]", 1);
  app.add_option("--checkpoint", arguments->source.checkpoint, "Checkpoint of the run [best]")
      .type_name("best|newest|FILE");
  app.add_option("--dataset", arguments->dataset, "Data set of the test data [the run's]").type_name("NAME|PATH");
  app.add_option("--data", arguments->data, "Folder to search first for the data set").type_name("DIR");
  app.add_number("--threads", arguments->threads, "Computing threads [0: one per core]");
  app.add_option("--runs-dir", arguments->source.runs_dir, "Folder of the runs [runs]").type_name("DIR");
  app.add_flag("--json", arguments->json, "Print JSON");
  app.footer(
      "A PNG must have the size of the model's images. It is converted to grey for one-channel models. Digits must be\n"
      "white on black, as in MNIST.\n\n"
      "Examples:\n"
      "  lockstep predict runs/lenet-1 digit.png\n"
      "  lockstep predict runs/lenet-1 t10k-images-idx3-ubyte.gz --json\n"
      "  lockstep predict runs/lenet-1 --test 6\n"
      "  lockstep predict runs/lenet-1 --test 6 --mistakes");
  app.callback([arguments, &invocation] {
    invocation.run = [arguments, &invocation] { return run_predict(*arguments, invocation.models); };
  });
}

}  // namespace lockstep::tools
