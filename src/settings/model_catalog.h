// The models that can be named: models of the program, the zoo's, and files (my-model.yaml), which are read on first
// use. References it returns are valid as long as the catalog or a copy of it. A value type for one thread.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "lockstep/nn.h"

namespace lockstep::settings {

/// Returns the model of that name, from `models` or the zoo. Throws UsageError that suggests the nearest.
const nn::ModelDef& find_model(std::span<const nn::ModelDef> models, const std::string& name);

/// Returns the path of a run's copy of its model file: model.yaml in its folder; `name` is the name the user gave.
std::string kept_model_file(const std::string& run, const std::string& name);
/// Returns the model of a checkpoint whose run was trained from the file `name`: from the run's copy, otherwise from
/// the file. Throws UsageError if neither exists.
nn::ModelDef load_kept_model(const std::string& checkpoint, const std::string& name);

class ModelCatalog {
 public:
  /// Also knows `models`, besides the zoo's; borrowed.
  explicit ModelCatalog(std::span<const nn::ModelDef> models = {}) : models_(models) {}

  /// Throws UsageError for an unknown name or errors in a file, IoError if a file cannot be read.
  [[nodiscard]] const nn::ModelDef& find(const std::string& name) const;

  /// Reads files from the copies in this run's folder from now on.
  void use_copies_of(const std::string& run) { run_ = run; }
  /// Copies the model's file, as it was when read, into a run's folder; does nothing for other models.
  void keep_copy(const std::string& name, const std::string& run) const;

 private:
  struct File {
    nn::ModelDef model;
    std::vector<uint8_t> bytes;
  };
  [[nodiscard]] const File& file(const std::string& name) const;

  std::span<const nn::ModelDef> models_;
  std::string run_;
  mutable std::map<std::string, std::shared_ptr<const File>> files_;  ///< files by path
};

}  // namespace lockstep::settings
