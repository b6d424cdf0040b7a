// The models that a name can mean: those that a program brings, the zoo's, and files (my-model.yaml), which are read
// when first asked for. What it gives lives as long as the catalog or a copy of it. A value type for one thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "lockstep/nn.h"

namespace lockstep::settings {

/// The model of that name, of those given or of the zoo. Throws UsageError that suggests the nearest.
const nn::ModelDef& find_model(std::span<const nn::ModelDef> models, const std::string& name);

/// The copy of its model file that a run keeps: model.yaml in its folder; `name` is what the user gave.
std::string kept_model_file(const std::string& run, const std::string& name);
/// The model of a checkpoint of a run that was trained from the file `name`: from the run's copy, else from the file.
/// Throws UsageError where neither is there.
nn::ModelDef load_kept_model(const std::string& checkpoint, const std::string& name);

class ModelCatalog {
 public:
  /// `models` beyond the zoo's are known too; borrowed.
  explicit ModelCatalog(std::span<const nn::ModelDef> models = {}) : models_(models) {}

  /// Throws UsageError for an unknown name or what is wrong in a file, IoError where a file cannot be read.
  [[nodiscard]] const nn::ModelDef& find(const std::string& name) const;

  /// From now on files are the copies that the run in this folder keeps.
  void use_copies_of(const std::string& run) { run_ = run; }
  /// Leaves a copy of the model's file in a run's folder, as it was when read; nothing for other models.
  void keep_copy(const std::string& name, const std::string& run) const;

 private:
  struct File {
    nn::ModelDef model;
    std::vector<uint8_t> bytes;
  };
  [[nodiscard]] const File& file(const std::string& name) const;

  std::span<const nn::ModelDef> models_;
  std::string run_;
  mutable std::map<std::string, std::shared_ptr<const File>> files_;  ///< by path
};

}  // namespace lockstep::settings
