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
#include "dash/http.h"
#include "dash/run_store.h"

namespace lockstep::dash {

class Site {
 public:
  Site(const Options& options, Access access);

  Response answer(const Request& request);

  /// What changed since the last call, as an event for the page; empty where nothing did.
  std::string changes();

 private:
  Response page(const Request& request);
  Response api(const Request& request);
  Response runs();
  Response one_run(const Request& request);
  Response compare(const Request& request);
  Response experiment(const std::string& id);
  Response nodes();
  Response report(const std::string& folder);

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
