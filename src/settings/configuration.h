// Configuration: settings as a person gave them, in layers. Flags win over the YAML file, which wins over what a
// resumed run was started with, which wins over the model's defaults, which win over everyone's. Nothing is lost on the
// way: each value remembers where it came from, so that an error can name the flag, or the file and line. A value type
// for one thread.
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
  /// `models` beyond the zoo's and files are known too; borrowed.
  explicit Configuration(std::span<const nn::ModelDef> models = {}) : models_(models) {}

  /// A flag or its equivalent in a program: `name` without dashes. Throws UsageError for an unknown name or bad value.
  /// Given twice, the later counts; `options` (key=value, commas between) adds up. Errors call the place `where`:
  /// empty, the flag.
  void set(std::string_view name, std::string_view text, std::string where = "");

  /// Settings from a YAML file, one `key: value` per line. Throws IoError if it cannot be read and UsageError with
  /// file, line and column for what is wrong in it: unknown or repeated keys, nesting, wrong types or ranges.
  void load_yaml(const std::string& path);
  /// The same from memory; `file` stands for the file in errors.
  void parse_yaml(const std::string& text, const std::string& file);

  /// The settings of a run that is to go on (its config.yaml): the lowest layer of those given. From then on what
  /// flags or the file change must be free to change, and a model that is a file is the run's copy of it.
  void resume_from(const std::string& path);

  /// Whether a flag or the file gave it.
  [[nodiscard]] bool given(std::string_view name) const;
  /// A flag's or the file's text, or "".
  [[nodiscard]] std::string given_text(std::string_view name) const;

  /// Everything put together and checked. Throws UsageError: no model, unknown model or option, a setting changed that
  /// a resumed run has fixed, settings that contradict each other.
  [[nodiscard]] Settings resolve() const;

  /// Lives as long as this configuration or a copy of its models.
  [[nodiscard]] const nn::ModelDef& model(const std::string& name) const { return models_.find(name); }
  [[nodiscard]] const ModelCatalog& models() const { return models_; }

 private:
  struct Given {
    std::string text;
    std::string where;  ///< "--lr", "run.yaml:3: lr"
  };
  using Layer = std::map<std::string, Given, std::less<>>;

  /// `of_run`: a config.yaml, where what belongs to one call is passed over (older versions wrote some of it).
  static Layer read_yaml(const std::string& text, const std::string& file, bool of_run = false);
  static void apply(Settings& settings, const Layer& layer);
  [[nodiscard]] const Given* find(std::string_view name) const;
  void fill_model_defaults(Settings& settings) const;
  /// Where the value came from: flag, or file and line; the name alone for a default.
  [[nodiscard]] std::string where(std::string_view name) const;
  void check_together(const Settings& settings) const;
  void check_resume(const Settings& before, const Settings& now) const;

  ModelCatalog models_;
  Layer run_;
  Layer file_;
  Layer flags_;
};

/// All settings as YAML with a heading per group: what config.yaml holds. Reads back as the same settings.
std::string to_yaml(const Settings& settings);

}  // namespace lockstep::settings
