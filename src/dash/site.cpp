#include "dash/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>

#include "dash/charts_json.h"
#include "dash/json_values.h"
#include "dash/lab_json.h"
#include "dash/list_json.h"
#include "dash/nodes.h"
#include "dash/pictures.h"
#include "dash/run_json.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

constexpr size_t kMostCompared = 16;

constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// A report contains its script and loads nothing.
constexpr const char* kReportPolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

http::Response json_response(std::string body) {
  return {.type = "application/json", .body = std::move(body), .headers = {{"Content-Security-Policy", kPagePolicy}}};
}

http::Response not_found(std::string_view what) { return http::plain_response(404, what); }

std::string_view type_of(std::string_view name) {
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/html; charset=utf-8";
}

http::Response asset_response(std::string_view name) {
  const std::string_view text = web_asset(name);
  if (text.empty()) return not_found("there is no such page");
  return {.type = std::string(type_of(name)),
          .body = std::string(text),
          .headers = {{"Content-Security-Policy", kPagePolicy}}};
}

/// Decodes the names in "a,b", each once.
std::vector<std::string> ids_in(std::string_view list) {
  std::vector<std::string> ids;
  std::set<std::string> seen;
  while (!list.empty()) {
    const std::string_view part = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), part.size() + 1));
    const std::optional<std::string> id = http::url_decoded(part);
    if (id && !id->empty() && seen.insert(*id).second) ids.push_back(*id);
  }
  return ids;
}

/// Renames a run: curves are told apart by name, and runs of different folders may share one.
RunPtr renamed(records::RunRecord run, const std::string& name) {
  run.name = name;
  return std::make_shared<const records::RunRecord>(std::move(run));
}

}  // namespace

Site::Site(const Options& options, Access access)
    : runs_dir_(options.runs_dir),
      lab_dir_(options.lab_dir),
      access_(std::move(access)),
      store_(options.runs_dir, options.lab_dir) {}

http::Response Site::answer(const http::Request& request) {
  if (const std::optional<http::Response> refused = access_.refusal(request)) return *refused;
  const std::vector<std::string>& path = request.path;
  if (!path.empty() && path[0] == "api") return api(request);
  if (path.size() == 1 && path[0] == "events") {
    return {.type = "text/event-stream", .body = "retry: 2000\nevent: hello\ndata: {}\n\n", .events = true};
  }
  if (path.size() == 2 && path[0] == "report") return report(path[1]);
  if (path.size() == 3 && path[0] == "picture") return picture(path[1], path[2]);
  return page(request);
}

http::Response Site::page(const http::Request& request) {
  if (request.path.empty()) return asset_response("index.html");
  if (request.path.size() == 2 && request.path[0] == "static") return asset_response(request.path[1]);
  return not_found("there is no such page");
}

http::Response Site::api(const http::Request& request) {
  const std::vector<std::string>& path = request.path;
  const std::string what = path.size() > 1 ? path[1] : "";
  if (path.size() == 2 && what == "runs") return runs(request);
  if (path.size() == 2 && what == "keys") return json_response(keys_json(store_.rows()));
  if (path.size() == 2 && what == "compare") return compare(request);
  if (path.size() == 2 && what == "nodes") return nodes();
  if (path.size() == 2 && what == "experiments") return json_response(experiments_json(lab_dir_, store_));
  if (path.size() == 3 && what == "experiment") return experiment(path[2]);
  if (what == "run" && (path.size() == 3 || (path.size() == 4 && path[3] == "charts"))) return one_run(request);
  return not_found("there is no such page");
}

http::Response Site::runs(const http::Request& request) {
  ListQuestion question{.filter = request.parameter("q")};
  if (const auto keys = request.query.find("columns"); keys != request.query.end())
    question.keys = ids_in(keys->second);
  if (const auto ids = request.query.find("ids"); ids != request.query.end()) {
    const std::vector<std::string> list = ids_in(ids->second);
    question.ids.emplace(list.begin(), list.end());
  }
  return json_response(list_json(runs_dir_, store_.rows(), question));
}

http::Response Site::one_run(const http::Request& request) {
  const std::string& id = request.path[2];
  const RunPtr run = store_.find(id);
  if (!run) return not_found("there is no such run");
  if (request.path.size() == 4) return json_response(run_charts_json(*run, request.parameter("over")));
  return json_response(run_json(id, *run, now()));
}

http::Response Site::compare(const http::Request& request) {
  const auto list = request.query.find("runs");
  const std::vector<std::string> ids = list == request.query.end() ? std::vector<std::string>() : ids_in(list->second);
  if (ids.empty()) return http::plain_response(400, "runs: no ids; it takes ids of runs, separated by commas");
  if (ids.size() > kMostCompared) {
    return http::plain_response(
        400, fmt::format("runs: {} ids are too many; at most {} can be compared", ids.size(), kMostCompared));
  }
  std::vector<std::pair<std::string, RunPtr>> chosen;
  std::vector<RunPtr> found;
  std::set<std::string> names;
  ordered_json missing = ordered_json::array();
  for (const std::string& id : ids) {
    if (RunPtr run = store_.find(id)) {
      found.push_back(names.insert(run->name).second ? run : renamed(*run, id));
      chosen.emplace_back(id, std::move(run));
    } else {
      missing.push_back(id);
    }
  }
  return json_response(fmt::format("{{\"missing\":{},\"table\":{},\"curves\":{}}}", dumped(missing),
                                   compare_json(chosen), compare_charts_json(found, request.parameter("over"))));
}

http::Response Site::experiment(const std::string& text) {
  int64_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return not_found("there is no such experiment");
  std::optional<std::string> json = experiment_json(lab_dir_, store_, id);
  return json ? json_response(std::move(*json)) : not_found("there is no such experiment");
}

http::Response Site::nodes() {
  std::string list;
  for (const RowPtr& row : store_.rows()) {
    if (row->state != records::RunState::running) continue;
    const RunPtr run = store_.find(row->place.id);
    if (run) list += (list.empty() ? "" : ",") + nodes_json(row->place.id, *run, now());
  }
  return json_response("{\"runs\":[" + list + "]}");
}

http::Response Site::report(const std::string& folder) {
  std::optional<std::string> html = read_report(store_, folder);
  if (!html) return not_found("there is no such report");
  return {.type = "text/html; charset=utf-8",
          .body = std::move(*html),
          .headers = {{"Content-Security-Policy", kReportPolicy}}};
}

http::Response Site::picture(const std::string& id, const std::string& file) {
  const RunPtr run = store_.find(id);
  std::optional<std::string> bytes = run ? read_picture(run->path, file) : std::nullopt;
  if (!bytes) return not_found("there is no such picture");
  return {.type = "image/png", .body = std::move(*bytes), .headers = {{"Content-Security-Policy", kPagePolicy}}};
}

std::string Site::changes() {
  const std::vector<std::string> runs = store_.changes();
  const uint64_t lab = lab_stamp(lab_dir_);
  bool lab_changed = false;
  {
    const base::MutexLock lock(lab_mutex_);
    lab_changed = lab_told_ != lab;
    lab_told_ = lab;
  }
  if (runs.empty() && !lab_changed) return "";
  const ordered_json json{{"runs", runs}, {"lab", lab_changed}};
  return "event: change\ndata: " + dumped(json) + "\n\n";
}

}  // namespace lockstep::dash
