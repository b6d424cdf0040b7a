// A training run from settings to summary: loads the data, makes the model and its parts, claims or reopens the run
// directory, trains, and writes config.yaml, the logs, checkpoints and summary.json. `lockstep train` is this plus a
// display. A Session owns all of it and is used by one thread; any thread may set the interrupt flag.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/fetch.h"
#include "lockstep/train_events.h"
#include "settings/configuration.h"

namespace lockstep::role {

struct ClusterProcess;

struct SessionOptions {
  std::vector<train::Hooks*> hooks = {};         ///< borrowed
  const std::atomic<bool>* interrupt = nullptr;  ///< borrowed
  data::FetchCallback fetch_progress = {};
  /// called by any thread; a member of a cluster uses its own instead
  std::function<void(std::string_view level, const std::string& text)> log = {};
  /// place of this process in a cluster that trains together (group_member.h); borrowed
  const ClusterProcess* process = nullptr;
  const data::Dataset* dataset = nullptr;  ///< data set to use instead of loading the one in the settings
};

class Session {
 public:
  /// Prepares everything, so that errors are found before training: a new run, or the one that `resume` names.
  Session(settings::Configuration configuration, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The resolved settings; for a resumed run its own settings with the changes.
  [[nodiscard]] const settings::Settings& settings() const;
  [[nodiscard]] const std::string& run_dir() const;
  /// Returns true if a resumed run has already met a stop rule: run() then only reports.
  [[nodiscard]] bool finished() const;
  [[nodiscard]] train::StartEvent start_event() const;

  /// Trains to the end. In every case summary.json says how it ended. Throws the errors of training.
  train::Outcome run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::role
