// Answers the dashboard's requests: the page, its data, its reports, and nothing else. `answer` knows every address and
// looks up names in it among the known runs and experiments. Any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "dash/access.h"
#include "dash/dash.h"
#include "dash/run_store.h"
#include "http/message.h"

namespace lockstep::dash {

class Site {
 public:
  Site(const Options& options, Access access);

  http::Response answer(const http::Request& request);

  /// Returns what changed since the last call, as an event for the page; empty if nothing did.
  std::string changes();

 private:
  http::Response page(const http::Request& request);
  http::Response api(const http::Request& request);
  http::Response runs(const http::Request& request);
  http::Response one_run(const http::Request& request);
  http::Response compare(const http::Request& request);
  http::Response experiment(const std::string& id);
  http::Response nodes();
  http::Response report(const std::string& folder);
  http::Response picture(const std::string& id, const std::string& file);

  const std::string runs_dir_;
  const std::string lab_dir_;
  const Access access_;
  RunStore store_;
  base::Mutex lab_mutex_;
  std::optional<uint64_t> lab_told_ LOCKSTEP_GUARDED_BY(lab_mutex_);
};

/// Returns a compiled-in part of the page: "index.html", "app.js", ... Empty for any other name.
std::string_view web_asset(std::string_view name);

}  // namespace lockstep::dash
