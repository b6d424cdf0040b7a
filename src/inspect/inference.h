// Using a trained model: evaluation on a data set, and predictions for images. Free functions over a loaded model,
// which owns its parameters; for one thread at a time.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "data/dataset.h"
#include "data/fetch.h"
#include "data/pixel_scaling.h"
#include "train/evaluator.h"

namespace lockstep::inspect {

struct ModelSource {
  std::string run;         ///< a run's folder, its name under runs_dir, a checkpoint file, or an ONNX file
  std::string checkpoint;  ///< checkpoint of the run: a file, "newest" (also when empty) or "best"
  std::string runs_dir = "runs";
  std::vector<nn::ModelDef> models;  ///< models besides the zoo's
};

struct TrainedModel {
  std::string file;  ///< path of the checkpoint or ONNX file
  checkpoint::CheckpointHeader header;
  train::ModelSpec spec;
  std::vector<nn::ModelDef> models;  ///< models that spec points into, besides the zoo's
  Buffer parameters;

  /// False for an ONNX file: nothing is known about its training.
  [[nodiscard]] bool of_a_run() const { return !header.optimizer.empty(); }
  [[nodiscard]] const float* values() const { return parameters.as<float>().data(); }
};

/// Throws UsageError if there is no such run or checkpoint, DataError if it is damaged or belongs to another model.
TrainedModel load_model(const ModelSource& source);

/// Loads the named checkpoint; without a name the best of the run, or the newest of a run without evaluations.
TrainedModel load_best_model(ModelSource source);

struct DataRequest {
  std::string dataset = {};  ///< empty: the run's, with the run's splits
  std::string data = {};     ///< folder; empty: the run's
  data::FetchCallback fetch_progress = {};
  std::string label_column = {};  ///< column of a CSV file; empty: the run's
};

/// Loads the data that the model was trained on, or another data set. Throws as data::load does, and UsageError if the
/// classes have other names.
data::Dataset load_data(const TrainedModel& model, const DataRequest& request);

/// Returns the scaling of pixels in the run, computed from its training examples in `folder` (empty: the run's). Empty
/// unless its setting pixels is standard. Throws as data::load does.
data::PixelScaling pixel_scaling(const TrainedModel& model, const std::string& folder = "",
                                 const data::FetchCallback& progress = {});

struct EvaluateRequest {
  std::string dataset = {};    ///< empty: the run's
  std::string data = {};       ///< folder; empty: the run's
  std::string split = "test";  ///< "test", "train" or "validation"
  int64_t batch = 500;
  int64_t limit = 0;  ///< number of examples; 0: all
  int threads = 0;    ///< 0: one per core
  std::string backend = "cpu";
  data::FetchCallback fetch_progress = {};
  std::string label_column = {};  ///< column of a CSV file; empty: the run's
};

/// Returns loss and accuracy of the model on a split. Throws as data::load and Evaluator do.
train::Metrics evaluate(const TrainedModel& model, const EvaluateRequest& request);

struct Prediction {
  int label = 0;
  float probability = 0;
  std::vector<float> probabilities;  ///< probabilities of all classes
};

/// Throws UsageError unless the model is a classifier, because only those have predictions.
void require_classes(const TrainedModel& model);

/// Returns the model's prediction for each image, scaled by `pixels` if given. Throws DataError for images of another
/// shape, and as require_classes does.
std::vector<Prediction> predict(const TrainedModel& model, const data::Examples& images, int threads = 0,
                                const std::string& backend = "cpu", const data::PixelScaling* pixels = nullptr);

}  // namespace lockstep::inspect
