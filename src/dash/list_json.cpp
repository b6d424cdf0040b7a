#include "dash/list_json.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "dash/json_values.h"
#include "lockstep/error.h"
#include "records/run_filter.h"

namespace lockstep::dash {
namespace {

using records::KeyKind;
using records::RunValues;

/// Returns a value of each key that some run has; a number where one of the runs has a number.
RunValues any_values(const std::vector<RowPtr>& rows) {
  RunValues all;
  for (const RowPtr& row : rows) {
    for (const auto& [key, value] : row->values) {
      const auto [place, added] = all.try_emplace(key, value);
      if (!added && !records::known(place->second.number) && records::known(value.number)) place->second = value;
    }
  }
  return all;
}

std::string_view name(KeyKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {"text", "number", "share", "list", "time"};
  return kNames.at(static_cast<size_t>(kind));
}

ordered_json key_json(const std::string& key, const RunValues& any) {
  if (const records::RunKey* known_one = records::find_run_key(key)) {
    return {{"key", key}, {"title", known_one->title}, {"kind", name(known_one->kind)}, {"help", known_one->help}};
  }
  const auto found = any.find(key);
  const bool number = found != any.end() && records::known(found->second.number);
  return {{"key", key}, {"title", key}, {"kind", number ? "number" : "text"}, {"help", "setting"}};
}

/// Adds the values of keys to the row's JSON, which is an object.
std::string with_values(const RunRow& row, const std::vector<std::string>& keys) {
  if (keys.empty()) return row.json;
  ordered_json values = ordered_json::object();
  for (const std::string& key : keys) {
    const auto found = row.values.find(key);
    if (found == row.values.end() || found->second.text.empty()) continue;
    values[key] =
        records::known(found->second.number) ? number(found->second.number) : ordered_json(found->second.text);
  }
  return row.json.substr(0, row.json.size() - 1) + ",\"values\":" + dumped(values) + "}";
}

/// Returns the ids of runs that are not there (any more).
ordered_json gone_ids(const std::vector<RowPtr>& rows, std::set<std::string> ids) {
  for (const RowPtr& row : rows) ids.erase(row->place.id);
  return ids;
}

}  // namespace

std::string list_json(const std::string& runs_dir, const std::vector<RowPtr>& rows, const ListQuestion& question) {
  ordered_json json{{"folder", runs_dir}, {"all", rows.size()}, {"problem", ""}};
  std::error_code ignored;
  json["there"] = std::filesystem::is_directory(runs_dir, ignored);
  json["training"] = std::count_if(rows.begin(), rows.end(),
                                   [](const RowPtr& row) { return row->state == records::RunState::running; });
  json["columns"] = ordered_json::array();
  json["gone"] = question.ids ? gone_ids(rows, *question.ids) : ordered_json::array();
  const std::vector<std::string> terms = records::RunFilter::terms_of(question.filter);
  std::string list;
  try {
    std::vector<RunValues> any;
    if (!terms.empty() || !question.keys.empty()) any.push_back(any_values(rows));
    const records::RunFilter filter(terms, any);
    std::vector<std::string> keys;
    for (const std::string& key : question.keys) {
      keys.push_back(records::known_key(key, any));
      json["columns"].push_back(key_json(keys.back(), any.front()));
    }
    for (const RowPtr& row : rows) {
      if (question.ids && !question.ids->contains(row->place.id)) continue;
      if (!filter.matches(row->values)) continue;
      list += (list.empty() ? "" : ",") + with_values(*row, keys);
    }
  } catch (const UsageError& error) {
    json["problem"] = error.what();
    list.clear();
  }
  const std::string head = dumped(json);
  return head.substr(0, head.size() - 1) + ",\"runs\":[" + list + "]}";
}

std::string keys_json(const std::vector<RowPtr>& rows) {
  const RunValues any = any_values(rows);
  ordered_json keys = ordered_json::array();
  for (const records::RunKey& key : records::run_keys()) keys.push_back(key_json(std::string(key.name), any));
  for (const auto& [key, value] : any) {
    if (records::find_run_key(key) == nullptr) keys.push_back(key_json(key, any));
  }
  return dumped({{"keys", std::move(keys)}});
}

}  // namespace lockstep::dash
