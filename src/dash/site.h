// What the dashboard serves: the page, its data, its reports, and nothing else. Every address is in `answer`; names in
// it are looked up among the runs and experiments there are. Any thread.
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

  /// What changed since the last call, as an event for the page; empty where nothing did.
  std::string changes();

 private:
  http::Response page(const http::Request& request);
  http::Response api(const http::Request& request);
  http::Response runs();
  http::Response one_run(const http::Request& request);
  http::Response compare(const http::Request& request);
  http::Response experiment(const std::string& id);
  http::Response nodes();
  http::Response report(const std::string& folder);

  const std::string runs_dir_;
  const std::string lab_dir_;
  const Access access_;
  RunStore store_;
  base::Mutex lab_mutex_;
  std::optional<uint64_t> lab_told_ LOCKSTEP_GUARDED_BY(lab_mutex_);
};

/// A part of the page, as compiled in: "index.html", "app.js", ... Empty where there is none.
std::string_view web_asset(std::string_view name);

}  // namespace lockstep::dash
