#include "settings/model_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/suggest.h"
#include "interchange/model_file.h"
#include "lockstep/error.h"
#include "settings/settings.h"

namespace lockstep::settings {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Checks that the training defaults in a model file are valid settings.
void check_defaults(const nn::TrainingDefaults& defaults, const std::string& file) {
  Settings scratch;
  const auto check = [&](const char* name, const std::string& text) {
    const SettingDef* def = find_setting(name);
    if (def != nullptr) assign(scratch, *def, text, fmt::format("{}: defaults: {}", file, name));
  };
  check("optimizer", defaults.optimizer);
  check("lr", fmt::format("{}", defaults.learning_rate));
  check("dataset", defaults.dataset);
  check("pixels", defaults.pixels);
}

/// Loads a model file; `name` is the name the user gave, and `path` may be a copy of the file.
nn::ModelDef load(const std::string& path, const std::string& name) {
  nn::ModelDef model = interchange::load_model(path, name);
  check_defaults(model.defaults, path);
  return model;
}

}  // namespace

const nn::ModelDef& find_model(std::span<const nn::ModelDef> models, const std::string& name) {
  const auto found = std::find_if(models.begin(), models.end(), [&](const auto& model) { return model.name == name; });
  if (found != models.end()) return *found;
  std::vector<std::string> names;
  for (const nn::ModelDef& model : nn::zoo()) {
    if (model.name == name) return model;
    names.push_back(model.name);
  }
  for (const nn::ModelDef& model : models) names.push_back(model.name);
  throw UsageError(
      fmt::format("unknown model '{}'{}; files end in .yaml, .yml or .onnx", name, base::hint(name, names)));
}

std::string kept_model_file(const std::string& run, const std::string& name) {
  return run + "/model" + fs::path(name).extension().string();
}

nn::ModelDef load_kept_model(const std::string& checkpoint, const std::string& name) {
  const fs::path folder = fs::path(checkpoint).parent_path();
  for (const std::string& path :
       {kept_model_file((folder / "..").string(), name), kept_model_file(folder.string(), name), name}) {
    if (is_file(path)) return load(path, name);
  }
  throw UsageError(fmt::format("checkpoint {}: its model file {} is gone, and the run's folder has no copy of it",
                               checkpoint, name));
}

const ModelCatalog::File& ModelCatalog::file(const std::string& name) const {
  const std::string path = run_.empty() ? name : kept_model_file(run_, name);
  std::shared_ptr<const File>& entry = files_[path];
  if (!entry) {
    nn::ModelDef model = load(path, name);
    entry = std::make_shared<const File>(File{std::move(model), base::read_file(path)});
  }
  return *entry;
}

const nn::ModelDef& ModelCatalog::find(const std::string& name) const {
  return interchange::is_model_file(name) ? file(name).model : find_model(models_, name);
}

void ModelCatalog::keep_copy(const std::string& name, const std::string& run) const {
  if (!interchange::is_model_file(name)) return;
  base::write_whole_file(kept_model_file(run, name), file(name).bytes);
}

}  // namespace lockstep::settings
