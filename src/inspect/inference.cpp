#include "inspect/inference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"
#include "checkpoint/checkpoint_store.h"
#include "data/own_data.h"
#include "interchange/model_file.h"
#include "interchange/onnx_import.h"
#include "lockstep/error.h"
#include "run/run_directory.h"
#include "settings/configuration.h"
#include "settings/machine.h"
#include "train/data_options.h"

namespace lockstep::inspect {
namespace {

constexpr int64_t kPredictBatch = 256;

checkpoint::Checkpoint load_from_run(const ModelSource& source, std::string& path) {
  const checkpoint::CheckpointStore store(run::find_run(source.run, source.runs_dir) + "/checkpoints");
  return store.load(source.checkpoint, path);
}

int threads_or_all(int threads) {
  settings::Settings settings;
  settings.threads = threads;
  return settings::resolve_threads(settings);
}

/// Checks that labels mean the same as in training.
void check_class_names(const TrainedModel& model, const data::Dataset& dataset) {
  const std::vector<std::string>& trained = model.header.class_names;
  const bool known = !trained.empty() && !dataset.class_names.empty();
  if (!known || trained == dataset.class_names || !train::traits_of(model.spec).labels) return;
  const auto shown = [](const std::vector<std::string>& names) {
    const auto count = std::min<size_t>(names.size(), 10);
    return fmt::format("{}{}", fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(count), ", "),
                       names.size() > count ? ", ..." : "");
  };
  throw UsageError(fmt::format("model '{}' was trained on classes {}; {} has {}", model.header.model, shown(trained),
                               dataset.name, shown(dataset.class_names)));
}

data::ImageShape image_shape(const Shape& image) {
  return {static_cast<int>(image[0]), static_cast<int>(image[1]), static_cast<int>(image[2])};
}

/// Returns "images 1x28x28", or "rows of 4 values".
std::string kind_text(const data::ImageShape& shape) {
  return shape.height == 1 ? fmt::format("rows of {} values", shape.size()) : "images " + data::to_string(shape);
}

data::Examples& pick_split(data::Dataset& dataset, const std::string& split) {
  if (split == "test") return dataset.test;
  if (split == "train") return dataset.train;
  if (split == "validation") return dataset.validation;
  throw UsageError("split: '" + split + "' is not allowed; it takes one of train, validation, test");
}

/// Takes over what an exported file says about its data; a path, which may be of another machine, does not count.
void add_facts(checkpoint::CheckpointHeader& header, const std::map<std::string, std::string>& facts) {
  const auto fact = [&](const std::string& key) {
    const auto found = facts.find(key);
    return found == facts.end() ? std::string() : found->second;
  };
  if (const std::string dataset = fact("dataset"); !dataset.empty() && !data::is_own_data(dataset)) {
    header.settings["dataset"] = dataset;
  }
  if (fact("pixels") == "standard") header.settings["pixels"] = "standard";
  std::vector<std::string> names;
  std::istringstream classes(fact("classes"));
  for (std::string name; std::getline(classes, name, ',');) names.push_back(name);
  if (static_cast<int64_t>(names.size()) == header.classes) header.class_names = names;
}

/// Loads an ONNX file as it is; evaluations and predictions use it as they use a checkpoint.
TrainedModel load_onnx(const ModelSource& source) {
  if (!source.checkpoint.empty()) {
    throw UsageError(fmt::format("checkpoint '{}': {} is an ONNX file, which holds one state of a model",
                                 source.checkpoint, source.run));
  }
  TrainedModel model;
  model.file = source.run;
  model.models.push_back(interchange::load_model(source.run));
  const nn::ModelDef& def = model.models.front();
  model.header.model = source.run;
  model.header.image = def.image;
  model.header.classes = def.classes;
  model.header.settings = {{"model", source.run}, {"dataset", def.defaults.dataset}};
  const std::vector<uint8_t> bytes = base::read_file(source.run, interchange::kLargestOnnx);
  add_facts(model.header, interchange::export_facts({bytes.begin(), bytes.end()}, source.run));
  model.spec = {&def, nn::resolve_options(def, {}), def.image, def.classes};
  const program::ParameterStore parameters = train::make_parameters(model.spec, 0);
  model.header.parameters = checkpoint::parameter_entries(parameters.infos());
  model.parameters = Buffer(parameters.values().size_bytes());
  std::copy(parameters.values().begin(), parameters.values().end(), model.parameters.as<float>().begin());
  return model;
}

}  // namespace

TrainedModel load_model(const ModelSource& source) {
  TrainedModel model;
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(source.run, ignored);
  if (is_file && source.run.ends_with(".onnx")) return load_onnx(source);
  if (is_file && interchange::is_model_file(source.run)) {
    throw UsageError(
        fmt::format("{} is a model file without trained parameters; a run, a checkpoint file or an ONNX file is "
                    "allowed. `lockstep describe {}` shows its layers, `lockstep train {}` trains it",
                    source.run, source.run, source.run));
  }
  if (is_file) model.file = source.run;
  checkpoint::Checkpoint checkpoint =
      is_file ? checkpoint::read_checkpoint(source.run) : load_from_run(source, model.file);
  model.header = std::move(checkpoint.header);
  model.models = source.models;
  const std::string named = train::settings_of(model.header).model;
  if (interchange::is_model_file(named)) {
    model.models.insert(model.models.begin(), settings::load_kept_model(model.file, named));
    if (model.models.front().name != model.header.model) {
      throw DataError(fmt::format("checkpoint {} belongs to model '{}', but its model file holds '{}'", model.file,
                                  model.header.model, model.models.front().name));
    }
  }
  const nn::ModelDef& def = settings::find_model(model.models, model.header.model);
  model.spec = {&def, nn::resolve_options(def, model.header.options), model.header.image, model.header.classes};
  const auto expected = checkpoint::parameter_entries(train::make_parameters(model.spec, 0).infos());
  if (expected != model.header.parameters) {
    throw DataError(fmt::format("checkpoint {}: its parameters are not those of model '{}' as this program builds it",
                                model.file, model.header.model));
  }
  const std::span<const float> values = std::span(checkpoint.values).first(model.header.parameter_count());
  model.parameters = Buffer(values.size_bytes());
  std::copy(values.begin(), values.end(), model.parameters.as<float>().begin());
  return model;
}

TrainedModel load_best_model(ModelSource source) {
  const bool named = !source.checkpoint.empty();
  TrainedModel model = load_model(source);
  if (named || !model.header.state.best_checkpoint) return model;
  source.checkpoint = "best";
  return load_model(source);
}

data::Dataset load_data(const TrainedModel& model, const DataRequest& request) {
  const settings::Settings run = train::settings_of(model.header);
  const bool same = request.dataset.empty() || request.dataset == run.dataset;
  settings::Settings settings = same ? run : settings::Settings{};
  settings.data = request.data.empty() ? run.data : request.data;
  if (!request.dataset.empty()) {
    // The run's splits apply only to its own data set.
    settings.dataset = request.dataset;
    settings.holdout = settings.train_limit = settings.test_limit = 0;
    settings.data_scale = 1;
    settings.label_column = data::has_columns(request.dataset) ? run.label_column : "";
  }
  if (!request.label_column.empty()) settings.label_column = request.label_column;
  data::Dataset dataset =
      data::load(settings.dataset, train::data_options(settings, model.header.image), request.fetch_progress);
  check_class_names(model, dataset);
  return dataset;
}

data::PixelScaling pixel_scaling(const TrainedModel& model, const std::string& folder,
                                 const data::FetchCallback& progress) {
  if (train::settings_of(model.header).pixels != settings::PixelValues::standard) return {};
  return *load_data(model, {"", folder, progress}).pixels;
}

train::Metrics evaluate(const TrainedModel& model, const EvaluateRequest& request) {
  data::Dataset dataset =
      load_data(model, {request.dataset, request.data, request.fetch_progress, request.label_column});
  // Pixels are scaled by the run's own data. A folder given for another data set is not searched for it: both data sets
  // may use the same file names.
  const std::string folder = request.dataset.empty() ? request.data : "";
  const data::PixelScaling pixels = pixel_scaling(model, folder, request.fetch_progress);
  data::Examples& examples = pick_split(dataset, request.split);
  examples.repeated = 0;
  if (request.limit > 0) data::keep_first(examples, request.limit, request.split + " examples");
  const auto backend = settings::make_backend(request.backend, threads_or_all(request.threads));
  train::ModelSpec spec = model.spec;
  const data::ImageShape& shape = examples.shape;
  if (spec.image != Shape{shape.channels, shape.height, shape.width} ||
      (train::traits_of(spec).labels && spec.classes != dataset.classes())) {
    throw UsageError(fmt::format("model '{}' {} {} of {} classes; {} has {} of {}", model.header.model,
                                 model.of_a_run() ? "was trained on" : "takes", kind_text(image_shape(spec.image)),
                                 spec.classes, dataset.name, kind_text(shape), dataset.classes()));
  }
  return train::Evaluator(spec, *backend, model.values(), examples, request.batch, &pixels).run();
}

void require_classes(const TrainedModel& model) {
  const train::ModelTraits traits = train::traits_of(model.spec);
  if (traits.accuracy) return;
  const auto folder = std::filesystem::path(model.file).parent_path().parent_path() / "pictures";
  std::error_code ignored;
  const bool shows = !traits.picture.empty() && std::filesystem::is_directory(folder, ignored);
  throw UsageError(fmt::format("predict: model '{}' has no classes{}", model.header.model,
                               shows ? "; see its pictures in " + folder.string() : ""));
}

std::vector<Prediction> predict(const TrainedModel& model, const data::Examples& images, int threads,
                                const std::string& backend_name, const data::PixelScaling* pixels) {
  require_classes(model);
  const Shape& image = model.spec.image;
  const data::ImageShape& shape = images.shape;
  if (image != Shape{shape.channels, shape.height, shape.width}) {
    throw DataError(fmt::format("model '{}' takes {}, these are {}", model.header.model, kind_text(image_shape(image)),
                                kind_text(shape)));
  }
  std::vector<Prediction> predictions;
  if (images.empty()) return predictions;
  const auto backend = settings::make_backend(backend_name, threads_or_all(threads));
  train::Programs programs(model.spec, train::Purpose::prediction, *backend, model.values(), nullptr);
  data::LoaderOptions reading = data::LoaderOptions::evaluation(kPredictBatch);
  reading.pixels = pixels;
  data::Loader loader(images, reading);
  const auto classes = static_cast<size_t>(model.spec.classes);
  while (const data::Batch* batch = loader.next()) {
    program::Program& program = programs.for_batch(batch->count);
    program.bind_input(0, batch->images);
    program.run({});
    const std::span<const float> all = program.output(0).as<float>();
    for (size_t row = 0; row < static_cast<size_t>(batch->count); ++row) {
      const auto mine = all.subspan(row * classes, classes);
      const auto best = std::max_element(mine.begin(), mine.end());
      predictions.push_back({static_cast<int>(best - mine.begin()), *best, {mine.begin(), mine.end()}});
    }
  }
  return predictions;
}

}  // namespace lockstep::inspect
