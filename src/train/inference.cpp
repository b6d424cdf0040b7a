#include "train/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/catalog.h"
#include "interchange/model_file.h"
#include "lockstep/error.h"
#include "train/checkpoint_store.h"
#include "train/configuration.h"
#include "train/machine.h"
#include "train/run_directory.h"

namespace lockstep::train {
namespace {

constexpr int64_t kPredictBatch = 256;

std::string setting_of(const CheckpointHeader& header, const std::string& name) {
  const auto found = header.settings.find(name);
  return found == header.settings.end() ? "" : found->second;
}

Checkpoint load_from_run(const ModelSource& source, std::string& path) {
  const CheckpointStore store(find_run(source.run, source.runs_dir) + "/checkpoints");
  return store.load(source.checkpoint, path);
}

int threads_or_all(int threads) {
  Settings settings;
  settings.threads = threads;
  return resolve_threads(settings);
}

data::Examples& pick_split(data::Dataset& dataset, const std::string& split) {
  if (split == "test") return dataset.test;
  if (split == "train") return dataset.train;
  if (split == "validation") return dataset.validation;
  throw UsageError("split: '" + split + "' is not allowed; it takes one of train, validation, test");
}

int64_t whole_number(const CheckpointHeader& header, const std::string& name) {
  Settings settings;
  const SettingDef& def = *find_setting(name);
  const std::string text = setting_of(header, name);
  if (text.empty()) return 0;
  assign(settings, def, text, "checkpoint: " + name);
  return settings.*std::get<int64_t Settings::*>(def.member);
}

}  // namespace

TrainedModel load_model(const ModelSource& source) {
  TrainedModel model;
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(source.run, ignored);
  if (is_file) model.file = source.run;
  Checkpoint checkpoint = is_file ? read_checkpoint(source.run) : load_from_run(source, model.file);
  model.header = std::move(checkpoint.header);
  model.models = source.models;
  const std::string named = setting_of(model.header, "model");
  if (interchange::is_model_file(named)) {
    model.models.insert(model.models.begin(), load_kept_model(model.file, named));
    if (model.models.front().name != model.header.model) {
      throw DataError(fmt::format("checkpoint {} is of model '{}', but its model file holds '{}'", model.file,
                                  model.header.model, model.models.front().name));
    }
  }
  const nn::ModelDef& def = find_model(model.models, model.header.model);
  model.spec = {&def, nn::resolve_options(def, model.header.options), model.header.image, model.header.classes};
  const auto expected = parameter_entries(make_parameters(model.spec, 0).infos());
  if (expected != model.header.parameters) {
    throw DataError(fmt::format("checkpoint {}: its parameters are not those of model '{}' as this program builds it",
                                model.file, model.header.model));
  }
  const std::span<const float> values = std::span(checkpoint.values).first(model.header.parameter_count());
  model.parameters = Buffer(values.size_bytes());
  std::copy(values.begin(), values.end(), model.parameters.as<float>().begin());
  return model;
}

Metrics evaluate(const TrainedModel& model, const EvaluateRequest& request) {
  const std::string dataset_name = request.dataset.empty() ? setting_of(model.header, "dataset") : request.dataset;
  const std::string folder = request.data.empty() ? setting_of(model.header, "data") : request.data;
  data::LoadOptions options;
  options.source = data::SourceOptions::from_environment(folder);
  // The run's own splits; of another data set, what is held out would be a choice of nobody.
  if (request.dataset.empty()) {
    options.holdout = whole_number(model.header, "holdout");
    options.train_limit = whole_number(model.header, "train-limit");
    options.test_limit = whole_number(model.header, "test-limit");
  }
  data::Dataset dataset = data::load(dataset_name, options, request.fetch_progress);
  data::Examples& examples = pick_split(dataset, request.split);
  if (request.limit > 0) data::keep_first(examples, request.limit, request.split + " examples");
  const auto backend = make_backend(request.backend, threads_or_all(request.threads));
  ModelSpec spec = model.spec;
  const data::ImageShape& shape = examples.shape;
  if (spec.image != Shape{shape.channels, shape.height, shape.width} || spec.classes != dataset.classes()) {
    throw UsageError(fmt::format("model '{}' was trained on images {} of {} classes; {} has {} of {}",
                                 model.header.model, spec.image.str(), spec.classes, dataset_name,
                                 data::to_string(shape), dataset.classes()));
  }
  return Evaluator(spec, *backend, model.values(), examples, request.batch).run();
}

std::vector<Prediction> predict(const TrainedModel& model, const data::Examples& images, int threads,
                                const std::string& backend_name) {
  const Shape& image = model.spec.image;
  const data::ImageShape& shape = images.shape;
  if (image != Shape{shape.channels, shape.height, shape.width}) {
    throw DataError(fmt::format("model '{}' takes images {} (channels, height, width), these are {}",
                                model.header.model, image.str(), data::to_string(shape)));
  }
  std::vector<Prediction> predictions;
  if (images.empty()) return predictions;
  const auto backend = make_backend(backend_name, threads_or_all(threads));
  Programs programs(model.spec, Purpose::prediction, *backend, model.values(), nullptr);
  data::Loader loader(images, data::LoaderOptions::evaluation(kPredictBatch));
  const auto classes = static_cast<size_t>(model.spec.classes);
  while (const data::Batch* batch = loader.next()) {
    graph::Program& program = programs.for_batch(batch->count);
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

}  // namespace lockstep::train
