// Runs a program that is not ours as the roles of a cluster: on emulated nodes, on hosts over ssh, or as processes of
// this machine, each under `lockstep monitor`, which records its use of resources. Every role gets the cluster as
// TF_CONFIG, as torchrun's rank variables and as a file of hosts. Writes a run's folder as a training does, so that
// reports can read it. Ends all processes of the program, whatever they did to get away. Everything happens in
// `run_guest`, in the calling thread, which must live as long as the program (process/child_process.h).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/cluster_file.h"
#include "guest/figures.h"

namespace lockstep::guest {

/// Machines that are reached over ssh.
struct Hosts {
  std::string file;                        ///< a cluster file (docs/cluster-spec.md); empty: this machine
  std::vector<std::string> ssh = {"ssh"};  ///< the command, with its own options
  std::string program = "lockstep";        ///< on the hosts
};

/// A log of another monitor (usage_log.h) as the use of a role.
struct LogSource {
  std::string role;  ///< "worker:0", "process"
  std::string file;
  double every = 0;  ///< seconds between its samples, if it has no times

  /// As parse_log takes it.
  [[nodiscard]] std::string text() const;
};

/// Parses "ROLE=FILE", or "ROLE=FILE@SECONDS". Throws UsageError.
LogSource parse_log(std::string_view text);

struct GuestOptions {
  std::vector<std::string> command;   ///< words; {rank}, {run_dir} and names of settings in braces are replaced
  std::string run_dir;                ///< a new folder
  cluster::LocalCluster cluster;      ///< without workers and layout: one process, without a cluster
  std::string emulate = {};           ///< as --emulate; empty: processes of this machine
  std::string faults = {};            ///< as --faults; not with hosts
  Hosts hosts = {};                   ///< with a file, it assigns the roles
  double deadline = 3600;             ///< seconds
  std::string monitor_every = "0.5";  ///< seconds, as text
  std::vector<FigureSource> figures = {};
  std::vector<LogSource> logs = {};  ///< in place of a command; the first is the chief's
  std::vector<std::pair<std::string, std::string>> settings =
      {};            ///< replace words of the command; kept in config.yaml
  int signals = -1;  ///< CaughtSignals::fd(); -1: none
  std::function<void(const std::string& note)> note = {};
};

struct GuestOutcome {
  int signal = 0;  ///< signal that asked for the end
};

/// True for what may stand in braces: letters, digits, '_', '-' and '.'.
bool is_name(std::string_view text);
/// Returns the words with their names in braces replaced. "{{" is a brace. Throws UsageError for an unknown name.
std::vector<std::string> filled_in(const std::vector<std::string>& words,
                                   const std::vector<std::pair<std::string, std::string>>& values);
/// Returns the names that every role has besides the settings: "rank", "run_dir" ...
const std::vector<std::string>& role_names();
/// Splits a text into words at blanks, with ' and " as in a shell, and \ before any character. Throws UsageError.
std::vector<std::string> words_of(const std::string& text);

/// Parses "90", "90s", "10m" or "2h". `what` names it in the UsageError.
double parse_deadline(const std::string& text, const std::string& what);

/// Throws Error with one line if a role fails, the deadline passes, or a figure is missing.
GuestOutcome run_guest(const GuestOptions& options);

/// Writes a new run's folder from logs of an earlier run, elsewhere. Throws UsageError, DataError, IoError.
void import_logs(const GuestOptions& options);

}  // namespace lockstep::guest
