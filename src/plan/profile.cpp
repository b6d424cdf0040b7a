#include "plan/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "lockstep/error.h"

namespace lockstep::plan {
namespace {

using nlohmann::ordered_json;

constexpr int kVersion = 1;
constexpr double kMostCores = 1e5;  ///< also of threads

/// Reads numbers and lists, and throws with the key if one is missing or impossible.
class Reader {
 public:
  Reader(const ordered_json& object, const std::string& file) : object_(object), file_(file) {
    if (!object.is_object()) fail("a JSON object is expected");
  }

  [[nodiscard]] double number(const char* key, double least = 0, double most = 1e15) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_number()) fail(std::string("'") + key + "' is no number");
    const auto value = found->get<double>();
    if (!std::isfinite(value) || value < least || value > most) fail(std::string("'") + key + "' is out of range");
    return value;
  }
  [[nodiscard]] std::string text(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_string()) fail(std::string("'") + key + "' is no text");
    return found->get<std::string>();
  }
  [[nodiscard]] Reader object(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) fail(std::string("'") + key + "' is missing");
    return {*found, file_};
  }
  [[nodiscard]] std::vector<Reader> list(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_array()) fail(std::string("'") + key + "' is no list");
    std::vector<Reader> items;
    for (const ordered_json& item : *found) items.emplace_back(item, file_);
    return items;
  }
  [[noreturn]] void fail(const std::string& what) const { throw DataError(file_ + ": not a profile: " + what); }

 private:
  const ordered_json& object_;
  const std::string& file_;
};

ModelProfile read_model(const Reader& reader) {
  ModelProfile model;
  model.model = reader.text("model");
  model.memory_fixed = reader.number("memory_fixed");
  model.memory_each = reader.number("memory_each");
  for (const Reader& tensor : reader.list("tensors")) {
    model.tensors.push_back(
        {static_cast<size_t>(tensor.number("count", 1)), std::min(1.0, tensor.number("announced"))});
  }
  for (const Reader& point : reader.list("points")) {
    model.points.push_back({static_cast<int64_t>(point.number("batch", 1)),
                            static_cast<int>(point.number("threads", 1, kMostCores)), point.number("forward"),
                            point.number("backward"), point.number("optimizer"), point.number("spread")});
  }
  if (model.points.empty() || model.tensors.empty()) reader.fail("model '" + model.model + "' has no measurements");
  return model;
}

predict::Costs read_costs(const Reader& reader) {
  return {.message = reader.number("message"),
          .byte = reader.number("byte"),
          .wake = reader.number("wake"),
          .add = reader.number("add"),
          .update = reader.number("update"),
          .update_byte = reader.number("update_byte")};
}

}  // namespace

const ModelProfile* Profile::model(const std::string& name) const {
  const auto found = std::find_if(models.begin(), models.end(), [&](const ModelProfile& m) { return m.model == name; });
  return found == models.end() ? nullptr : &*found;
}

std::string note_of_other_machine(const Profile& profile, const std::string& file, const MachineKind& here) {
  if (profile.host == here.host && profile.isa == here.isa && profile.cores == here.cores) return "";
  const auto text = [](const std::string& host, int cores, const std::string& isa) {
    return fmt::format("{} ({} core{}, {})", host, cores, cores == 1 ? "" : "s", isa);
  };
  return fmt::format("{} is a profile of {}, not of this machine, {}: the plan is for nodes like that one.", file,
                     text(profile.host, profile.cores, profile.isa), text(here.host, here.cores, here.isa));
}

std::string to_json(const Profile& profile) {
  ordered_json json{{"lockstep_profile", kVersion},
                    {"host", profile.host},
                    {"isa", profile.isa},
                    {"cores", profile.cores},
                    {"memory_bytes", profile.memory_bytes},
                    {"memory_rate", profile.memory_rate},
                    {"link_rate", profile.link_rate}};
  const predict::Costs& costs = profile.costs;
  json["costs"] = {{"message", costs.message}, {"byte", costs.byte},     {"wake", costs.wake},
                   {"add", costs.add},         {"update", costs.update}, {"update_byte", costs.update_byte}};
  json["models"] = ordered_json::array();
  for (const ModelProfile& model : profile.models) {
    ordered_json item{{"model", model.model}, {"memory_fixed", model.memory_fixed}, {"memory_each", model.memory_each}};
    for (const predict::Tensor& tensor : model.tensors) {
      item["tensors"].push_back({{"count", tensor.count}, {"announced", tensor.announced}});
    }
    for (const ComputePoint& point : model.points) {
      item["points"].push_back({{"batch", point.batch},
                                {"threads", point.threads},
                                {"forward", point.forward},
                                {"backward", point.backward},
                                {"optimizer", point.optimizer},
                                {"spread", point.spread}});
    }
    json["models"].push_back(std::move(item));
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Profile parse_profile(const std::string& text, const std::string& file) {
  const auto json = base::parse_json_or_discard<ordered_json>(text);
  if (json.is_discarded()) throw DataError(file + ": not a profile: no JSON, or cut off");
  const Reader reader(json, file);
  if (reader.number("lockstep_profile") != kVersion) reader.fail("it is of another version; make it again");
  Profile profile;
  profile.host = reader.text("host");
  profile.isa = reader.text("isa");
  profile.cores = static_cast<int>(reader.number("cores", 1, kMostCores));
  profile.memory_bytes = reader.number("memory_bytes");
  profile.memory_rate = reader.number("memory_rate");
  profile.link_rate = reader.number("link_rate");
  profile.costs = read_costs(reader.object("costs"));
  for (const Reader& model : reader.list("models")) profile.models.push_back(read_model(model));
  return profile;
}

}  // namespace lockstep::plan
