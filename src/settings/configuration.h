// Configuration: settings from the user, in layers. Flags override the YAML file, which overrides the settings a
// resumed run was started with, which override the model's defaults, which override the general defaults. Each value
// keeps its source, so that an error can name the flag, or the file and line. A value type for one thread.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "settings/model_catalog.h"
#include "settings/settings.h"

namespace lockstep::settings {

class Configuration {
 public:
  /// Also knows `models`, besides the zoo's and files; borrowed.
  explicit Configuration(std::span<const nn::ModelDef> models = {}) : models_(models) {}

  /// Sets a flag or its equivalent in a program; `name` has no dashes. Throws UsageError for an unknown name or bad
  /// value. A later value overrides an earlier one; `options` (key=value, commas between) add up. Errors call the
  /// source `where`; if empty, the flag. Throws UsageError where another source gave another value: --sync and --async.
  void set(std::string_view name, std::string_view text, std::string where = "");

  /// Adds settings from a YAML file, one `key: value` per line. Throws IoError if it cannot be read, and UsageError
  /// with file, line and column for errors in it: unknown or repeated keys, nesting, wrong types or ranges.
  void load_yaml(const std::string& path);
  /// Adds settings from YAML text; `file` stands for the file in errors.
  void parse_yaml(const std::string& text, const std::string& file);

  /// Loads the settings of a run to resume (its config.yaml) as the lowest layer given. From then on flags and the file
  /// may only change settings that are free to change, and a model that is a file means the run's copy of it.
  void resume_from(const std::string& path);

  /// Returns true if a flag or the file gave it.
  [[nodiscard]] bool given(std::string_view name) const;
  /// Returns the text that a flag or the file gave, or "".
  [[nodiscard]] std::string given_text(std::string_view name) const;

  /// Combines and checks all layers. Throws UsageError: no model, unknown model or option, a change of a setting that
  /// is fixed in a resumed run, settings that contradict each other.
  [[nodiscard]] Settings resolve() const;

  /// Returns a reference that is valid as long as this configuration or a copy of its models.
  [[nodiscard]] const nn::ModelDef& model(const std::string& name) const { return models_.find(name); }
  [[nodiscard]] const ModelCatalog& models() const { return models_; }

 private:
  struct Given {
    std::string text;
    std::string where;  ///< "--lr", "run.yaml:3: lr"
  };
  using Layer = std::map<std::string, Given, std::less<>>;

  /// `of_run`: reads a config.yaml and skips settings of a single call (older versions wrote some).
  static Layer read_yaml(const std::string& text, const std::string& file, bool of_run = false);
  static void apply(Settings& settings, const Layer& layer);
  [[nodiscard]] const Given* find(std::string_view name) const;
  void fill_model_defaults(Settings& settings) const;
  /// Returns the value's source: flag, or file and line; the name alone for a default.
  [[nodiscard]] std::string where(std::string_view name) const;
  void check_together(const Settings& settings) const;
  void check_resume(const Settings& before, const Settings& now) const;

  ModelCatalog models_;
  Layer run_;
  Layer file_;
  Layer flags_;
};

/// Returns all settings as YAML with a heading per group, as in config.yaml. Reads back as the same settings.
std::string to_yaml(const Settings& settings);

}  // namespace lockstep::settings
