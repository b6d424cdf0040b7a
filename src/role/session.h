// A training run from settings to summary: loads the data, makes the model and its parts, claims or reopens the run
// directory, trains, and writes config.yaml, the logs, checkpoints and summary.json. `lockstep train` is this plus a
// display. A Session owns all of it and is used by one thread; the interrupt flag may be set from anywhere.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/fetch.h"
#include "lockstep/train.h"
#include "settings/configuration.h"

namespace lockstep::role {

struct ClusterProcess;

struct SessionOptions {
  std::vector<train::Hooks*> hooks = {};         ///< borrowed
  const std::atomic<bool>* interrupt = nullptr;  ///< borrowed
  data::FetchCallback fetch_progress = {};
  std::function<void(std::string_view level, const std::string& text)> log = {};  ///< any thread; of a cluster, as its
  const ClusterProcess* group = nullptr;  ///< this process of a cluster that trains together (group_member.h); borrowed
  const data::Dataset* dataset = nullptr;  ///< taken as it is instead of loading the one that the settings name
};

class Session {
 public:
  /// Prepares everything, so that what is wrong is found before training: a new run, or the one that `resume` names.
  Session(settings::Configuration configuration, SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The resolved settings; of a resumed run, its own with the changes.
  [[nodiscard]] const settings::Settings& settings() const;
  [[nodiscard]] const std::string& run_dir() const;
  /// A resumed run whose stop rule is already met: run() then only reports.
  [[nodiscard]] bool finished() const;
  [[nodiscard]] train::StartEvent start_event() const;

  /// Trains to the end. Whatever happens, summary.json says how it ended. Throws what training throws.
  train::Outcome run();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep::role
