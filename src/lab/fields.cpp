#include "lab/fields.h"

#include <algorithm>

#include "base/suggest.h"

namespace lockstep::lab {
namespace {

using U = Unit;
constexpr bool kEach = true;  ///< measured for each role that trains, too

std::vector<FieldDef> results_and_times() {
  return {
      {"accuracy", "test accuracy", U::share, kEach, "of the last evaluation; of a worker its own, where all evaluate"},
      {"loss", "test loss", U::none, kEach, "of the last evaluation; likewise"},
      {"train_loss", "training loss", U::none, false, "mean over the last epoch"},
      {"best_accuracy", "best accuracy", U::share, false, "of all evaluations"},
      {"seconds", "time", U::seconds, kEach, "of the training, with evaluations; of a worker, when it had finished"},
      {"epoch_seconds", "time of an epoch", U::seconds, false,
       "training time without evaluations and checkpoints, by epochs; only where epochs, not steps, time or a result, "
       "ended the training. With steps_per_epoch an epoch is that many steps, not a pass"},
      {"step_seconds", "time of a step", U::seconds, false,
       "training time without evaluations and checkpoints, by updates"},
      {"steps", "steps", U::count, false, "updates of the parameters"},
      {"loss_roughness", "roughness of the loss", U::none, kEach,
       "mean bend of the curve of evaluated losses (of training losses, where it has few), by their mean"},
      {"epochs", "epochs", U::count, false, "passes over the data that were begun"},
      {"iterations", "iterations", U::count, kEach, "batches that workers computed, all together; of a worker its own"},
      {"examples", "examples", U::count, kEach, "behind the updates; of a worker its own"},
      {"examples_per_second", "examples per second", U::count, kEach, "without evaluations and checkpoints"},
      {"finish_spread", "spread of finishing", U::seconds, false, "from the first worker's end to the last one's"},
      {"staleness", "staleness", U::none, kEach,
       "updates by others between a worker's pull and its push, mean (async)"},
      {"restarts", "restarts", U::count, kEach, "how often roles were started again"},
      {"speed_up", "speed-up", U::times, false, "examples per second over those with one trainer; needs that run"},
      {"efficiency", "efficiency", U::share, false, "speed-up over the number of trainers"},
  };
}

std::vector<FieldDef> resources() {
  return {
      {"cpu_percent", "CPU of the node", U::percent, kEach,
       "100: all cores of the node (of the emulated one); mean over time and trainers"},
      {"cpu_max", "largest CPU of the node", U::percent, kEach, "of all looks and trainers"},
      {"process_cpu_percent", "CPU of the process", U::percent, kEach, "100: one core"},
      {"memory", "memory", U::bytes, kEach,
       "the most that a trainer held, from its start with the reading of its data; mean over trainers"},
      {"memory_max", "largest memory", U::bytes, false, "of all trainers"},
      {"network_received", "received", U::bytes_per_second, kEach,
       "per trainer: its node's interfaces where nodes have their own (emulated, hosts), else what it says to other "
       "roles"},
      {"network_sent", "sent", U::bytes_per_second, kEach, "likewise"},
      {"network_per_second", "network", U::bytes_per_second, kEach, "received and sent"},
      {"network_per_step", "network per step", U::bytes, kEach,
       "what a trainer receives and sends for one of its own steps"},
      {"network_total", "network of all", U::bytes_per_second, false, "received by all roles together"},
      {"network_per_update", "network per update", U::bytes, false,
       "what all roles together receive for one update of the parameters"},
      {"loopback_received", "loopback received", U::bytes_per_second, kEach, "within the node"},
      {"loopback_sent", "loopback sent", U::bytes_per_second, kEach, "within the node"},
      {"packets_received", "packets received", U::count, kEach, "per second, of interfaces other than loopback"},
      {"packets_sent", "packets sent", U::count, kEach, "per second, likewise"},
      {"disk_read", "disk read", U::bytes_per_second, kEach, "by the process"},
      {"disk_written", "disk written", U::bytes_per_second, kEach, "by the process"},
      {"throttled_share", "held back", U::share, kEach,
       "time that a CPU quota held the node or role back, its start included, by the time of the training"},
  };
}

std::vector<FieldDef> servers_and_phases() {
  return {
      {"ps_cpu_percent", "CPU of the server", U::percent, false, "of its process, 100: one core; mean over servers"},
      {"ps_cpu_max", "largest CPU of the server", U::percent, false, "of its process, of all looks and servers"},
      {"ps_node_cpu_percent", "CPU of the server's node", U::percent, false, "100: all cores of the node"},
      {"ps_memory", "memory of the server", U::bytes, false, "the most it held, mean over servers"},
      {"ps_received", "received by the server", U::bytes_per_second, false, "from all roles, mean over servers"},
      {"ps_received_max", "most received by the server", U::bytes_per_second, false, "of all looks and servers"},
      {"ps_sent", "sent by the server", U::bytes_per_second, false, "to all roles, mean over servers"},
      {"ps_received_over_sent", "received over sent", U::times, false, "of the servers"},
      {"ps_loopback_received", "loopback of the server", U::bytes_per_second, false, "received within its node"},
      {"ps_seconds", "time of the server", U::seconds, false, "that it spent receiving, applying, sending and storing"},
      {"ps_wait_share", "waiting of the server", U::share, false, "of its time, for other contributors"},
      {"wait_share", "waiting for others", U::share, kEach,
       "of the time of steps: the phase `others`; wait_share of summary.json is all waiting for an exchange, the "
       "servers' part "
       "included"},
      {"share_compute", "computing", U::share, kEach, "of the time of steps: forward, backward, optimizer"},
      {"share_exchange", "exchanging", U::share, kEach, "push, pull and transfer, without waiting for others"},
      {"share_data", "waiting for data", U::share, kEach, "of the time of steps"},
      {"share_evaluation", "evaluating", U::share, kEach, "with checkpoints"},
      {"share_rest", "everything else", U::share, kEach, "logs, displays"},
  };
}

}  // namespace

const std::vector<FieldDef>& fields() {
  static const std::vector<FieldDef> all = [] {
    std::vector<FieldDef> made = results_and_times();
    for (const auto& part : {resources(), servers_and_phases()}) made.insert(made.end(), part.begin(), part.end());
    return made;
  }();
  return all;
}

const FieldDef* find_field(std::string_view name) {
  const auto found = std::find_if(fields().begin(), fields().end(), [&](const FieldDef& f) { return f.name == name; });
  return found == fields().end() ? nullptr : &*found;
}

std::string field_hint(std::string_view name) {
  std::vector<std::string> names;
  for (const FieldDef& def : fields()) names.emplace_back(def.name);
  const std::string nearest = base::nearest(name.substr(0, 60), names);
  return nearest.empty() ? "" : " (did you mean '" + nearest + "'?)";
}

}  // namespace lockstep::lab
