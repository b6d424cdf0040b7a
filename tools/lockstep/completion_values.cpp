// The values of placeholders.
#include <algorithm>
#include <exception>
#include <filesystem>

#include "completion.h"
#include "data/catalog.h"
#include "lab/database.h"
#include "records/run_values.h"
#include "settings/model_catalog.h"
#include "settings/settings.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;
using Paths = Completion::Paths;

std::string flag_or(const TypedWords& typed, const std::string& flag, const std::string& otherwise) {
  const auto found = typed.flags.find(flag);
  return found == typed.flags.end() || found->second.empty() ? otherwise : found->second;
}

bool any_begins_with(const Completion& completion, const std::string& text) {
  return std::any_of(completion.candidates.begin(), completion.candidates.end(),
                     [&](const Candidate& candidate) { return candidate.text.starts_with(text); });
}

/// Names come first; files are offered once no name begins as the word does.
void offer_files(const TypedWords& typed, Completion& completion) {
  if (!any_begins_with(completion, typed.value)) completion.paths = Paths::files;
}

void offer_runs(const TypedWords& typed, Completion& completion) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(flag_or(typed, "--runs-dir", "runs"), ignored)) {
    if (fs::exists(entry.path() / "config.yaml", ignored)) {
      completion.candidates.push_back({entry.path().filename().string(), "run"});
    }
  }
  std::sort(completion.candidates.begin(), completion.candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.text < b.text; });
  offer_files(typed, completion);
}

void offer_models(const TypedWords& typed, Completion& completion) {
  for (const nn::ModelDef& model : typed.models) completion.candidates.push_back({model.name, model.description});
  for (const nn::ModelDef& model : nn::zoo()) completion.candidates.push_back({model.name, model.description});
  offer_files(typed, completion);
}

void offer_datasets(const TypedWords& typed, Completion& completion) {
  for (const std::string& name : data::dataset_names()) completion.candidates.push_back({name, "data set"});
  offer_files(typed, completion);
}

void offer_experiments(const TypedWords& typed, Completion& completion) {
  const std::string folder = flag_or(typed, "--lab-dir", "lab");
  if (!lab::is_lab(folder)) return;
  const lab::Database database(folder, lab::Database::Access::read);
  for (const lab::ExperimentRow& row : database.experiments()) {
    completion.candidates.push_back({row.name, row.title});
  }
}

void offer_folders(const TypedWords& /*typed*/, Completion& completion) { completion.paths = Paths::folders; }

void offer_keys(const TypedWords& /*typed*/, Completion& completion) {
  for (const records::RunKey& key : records::run_keys()) {
    completion.candidates.push_back({std::string(key.name), std::string(key.help)});
  }
  for (const settings::SettingDef& def : settings::settings_table()) {
    if (def.keep != settings::Keep::call_only && records::find_run_key(settings::yaml_key(def)) == nullptr) {
      completion.candidates.push_back({settings::yaml_key(def), std::string(def.help)});
    }
  }
}

/// Puts the part of the value up to the last comma before each candidate.
void put_list_before(const TypedWords& typed, Completion& completion) {
  const std::string before = typed.value.substr(0, typed.value.rfind(',') + 1);
  for (Candidate& candidate : completion.candidates) candidate.text.insert(0, before);
}

void offer_key_list(const TypedWords& typed, Completion& completion) {
  offer_keys(typed, completion);
  put_list_before(typed, completion);
}

/// KEY=VALUE terms: keys, and behind "=" the values of keys that have a known set.
void offer_filter(const TypedWords& typed, Completion& completion) {
  const size_t equals = typed.value.find('=');
  if (equals == std::string::npos) {
    Completion keys;
    offer_keys(typed, keys);
    for (Candidate& key : keys.candidates) completion.candidates.push_back({key.text + "=", std::move(key.about)});
    return;
  }
  const std::string key = typed.value.substr(0, equals);
  Completion values;
  if (key == "model") {
    for (const nn::ModelDef& model : nn::zoo()) values.candidates.push_back({model.name, model.description});
  } else if (const records::RunKey* known = records::find_run_key(key); known != nullptr && !known->choices.empty()) {
    for (const std::string& choice : known->choices) {
      if (choice.find(' ') == std::string::npos) values.candidates.push_back({choice, ""});  // it would need quotes
    }
  } else {
    (void)add_choices(key, values);
  }
  for (Candidate& value : values.candidates) {
    completion.candidates.push_back({key + "=" + value.text, std::move(value.about)});
  }
}

/// KEY=VALUE options of the model that was named before.
void offer_model_options(const TypedWords& typed, Completion& completion) {
  if (typed.arguments.empty()) return;
  const nn::ModelDef& model = settings::find_model(typed.models, typed.arguments.front());
  const std::string last = typed.value.substr(typed.value.rfind(',') + 1);
  for (const nn::ModelOption& option : model.options) {
    const std::string key = option.name + "=";
    if (!last.starts_with(key)) {
      completion.candidates.push_back({key, option.description});
      continue;
    }
    for (const std::string& allowed : option.allowed) completion.candidates.push_back({key + allowed, ""});
  }
  put_list_before(typed, completion);
}

struct Placeholder {
  std::string_view name;
  void (*offer)(const TypedWords& typed, Completion& completion);
};

constexpr Placeholder kPlaceholders[] = {
    {"RUN", offer_runs},
    {"MODEL", offer_models},
    {"DATASET", offer_datasets},
    {"EXPERIMENT", offer_experiments},
    {"FILE", offer_files},
    {"PATH", offer_files},
    {"COMMAND", offer_files},
    {"DIR", offer_folders},
    {"KEY", offer_keys},
    {"KEYS", offer_key_list},
    {"RULES", offer_key_list},
    {"FILTER", offer_filter},
    {"KEY=VALUE", offer_model_options},
};

bool is_one_choice(std::string_view word) {
  return !word.empty() && std::none_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

}  // namespace

void add_values(std::string_view placeholder, const TypedWords& typed, Completion& completion) {
  const size_t bar = placeholder.find('|');
  if (bar != std::string_view::npos) {
    add_values(placeholder.substr(0, bar), typed, completion);
    return add_values(placeholder.substr(bar + 1), typed, completion);
  }
  const auto* const found = std::find_if(std::begin(kPlaceholders), std::end(kPlaceholders),
                                         [&](const Placeholder& known) { return known.name == placeholder; });
  if (found != std::end(kPlaceholders)) {
    try {
      found->offer(typed, completion);
    } catch (const std::exception&) {
      // A model that does not exist, a damaged database: Tab offers nothing, and the command will say why.
    }
  } else if (is_one_choice(placeholder)) {
    completion.candidates.push_back({std::string(placeholder), ""});
  }
}

bool add_choices(std::string_view setting, Completion& completion) {
  const settings::SettingDef* def = settings::find_setting(setting);
  if (def == nullptr || def->choices.empty()) return false;
  for (const std::string& choice : def->choices) completion.candidates.push_back({choice, ""});
  return true;
}

}  // namespace lockstep::tools
