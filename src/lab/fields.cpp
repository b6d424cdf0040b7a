#include "lab/fields.h"

#include <algorithm>

#include "base/suggest.h"

namespace lockstep::lab {
namespace {

using U = Unit;
using V = Varies;
constexpr bool kEach = true;  ///< measured for each training role, too

std::vector<FieldDef> results_and_times() {
  return {
      {"accuracy", "test accuracy", U::share, kEach,
       "at the last evaluation; per worker its own, if all workers evaluate", V::seed},
      {"loss", "test loss", U::none, kEach, "at the last evaluation; per worker as above", V::seed},
      {"train_loss", "training loss", U::none, false, "mean over the last epoch", V::seed},
      {"best_accuracy", "best accuracy", U::share, false, "over all evaluations", V::seed},
      {"seconds", "time", U::seconds, kEach,
       "training time with evaluations; per worker, the time at which it finished"},
      {"epoch_seconds", "time of an epoch", U::seconds, false,
       "training time without evaluations and checkpoints, per epoch; only if epochs, not steps, time or a result, "
       "ended the training. With steps_per_epoch an epoch is that many steps, not a pass"},
      {"step_seconds", "time of a step", U::seconds, false,
       "training time without evaluations and checkpoints, per update"},
      {"steps", "steps", U::count, false, "updates of the parameters", V::nothing},
      {"loss_roughness", "roughness of the loss", U::none, kEach,
       "median distance of an evaluated loss (of training losses if there are few) from the line between its "
       "neighbours, relative to the mean loss",
       V::seed},
      {"accuracy_gain", "rise of the accuracy", U::share, false, "from the first evaluation to the last", V::seed},
      {"loss_fall", "fall of the loss", U::share, false, "from the first evaluation to the last, relative to the first",
       V::seed},
      {"loss_area", "mean loss over the training", U::none, false,
       "area under the curve of evaluated losses over the steps, divided by its length", V::seed},
      {"converge_seconds", "time to converge", U::seconds, false,
       "training time until the evaluated loss has gone 90 % of its way from the first evaluation to its lowest value"},
      {"converge_steps", "steps to converge", U::count, false, "updates until then", V::seed},
      {"epochs", "epochs", U::count, false, "passes over the data, including one that was begun", V::nothing},
      {"iterations", "iterations", U::count, kEach, "batches computed by all workers together; per worker its own",
       V::nothing},
      {"examples", "examples", U::count, kEach, "examples used for the updates; per worker its own", V::nothing},
      {"examples_per_second", "examples per second", U::count, kEach,
       "time of evaluations and checkpoints not counted"},
      {"finish_spread", "spread of finishing", U::seconds, false, "time from the first worker's end to the last one's"},
      {"staleness", "staleness", U::none, kEach,
       "updates by others between a worker's pull and its push, mean (async)"},
      {"restarts", "restarts", U::count, kEach, "how often roles were restarted", V::nothing},
      {"speed_up", "speed-up", U::times, false, "examples per second relative to one trainer; needs that run"},
      {"train_cores", "cores of the trainers", U::count, false, "cores that their threads use, all trainers together",
       V::nothing},
      {"efficiency", "efficiency per core", U::share, false,
       "speed-up divided by the ratio of the cores that the trainers use; needs the run with one trainer"},
  };
}

std::vector<FieldDef> resources() {
  return {
      {"cpu_percent", "CPU of the node", U::percent, kEach,
       "100: all cores of the (emulated) node; mean over time and trainers"},
      {"cpu_max", "largest CPU of the node", U::percent, kEach, "over all samples and trainers"},
      {"process_cpu_percent", "CPU of the process", U::percent, kEach, "100: one core"},
      {"memory", "memory", U::bytes, kEach,
       "largest memory of a trainer, including the reading of its data; mean over trainers"},
      {"memory_max", "largest memory", U::bytes, false, "over all trainers"},
      {"node_memory", "memory of the node", U::bytes, kEach,
       "largest memory in use on the (emulated) node, all its processes together; mean over trainers"},
      {"node_memory_drop", "fall of the node's memory", U::share, kEach,
       "largest fall from an earlier peak, relative to that peak"},
      {"network_received", "received", U::bytes_per_second, kEach,
       "per trainer: traffic of its node if nodes have their own network (emulated, hosts), otherwise traffic with "
       "other "
       "roles"},
      {"network_sent", "sent", U::bytes_per_second, kEach, "as above"},
      {"network_per_second", "network", U::bytes_per_second, kEach, "received and sent"},
      {"network_max", "largest network", U::bytes_per_second, kEach,
       "received and sent, over all samples and trainers"},
      {"network_received_max", "most received", U::bytes_per_second, kEach, "over all samples and trainers"},
      {"network_sent_max", "most sent", U::bytes_per_second, kEach, "over all samples and trainers"},
      {"network_variation", "variation of the network", U::none, kEach,
       "coefficient of variation: standard deviation of the samples of received and sent, relative to their mean"},
      {"network_period", "period of the network", U::seconds, kEach,
       "strongest period of these samples, by their autocorrelation, if that is at least 0.3; at least two samples "
       "long"},
      {"network_per_step", "network per step", U::bytes, kEach, "bytes that a trainer receives and sends per own step",
       V::nothing},
      {"network_total", "network of all", U::bytes_per_second, false, "received by all roles together"},
      {"network_per_update", "network per update", U::bytes, false,
       "bytes that all roles together receive per update of the parameters", V::nothing},
      {"loopback_received", "loopback received", U::bytes_per_second, kEach, "within the node"},
      {"loopback_sent", "loopback sent", U::bytes_per_second, kEach, "within the node"},
      {"packets_received", "packets received", U::count, kEach, "per second, on interfaces other than loopback"},
      {"packets_sent", "packets sent", U::count, kEach, "per second, as above"},
      {"disk_read", "disk read", U::bytes_per_second, kEach, "by the process"},
      {"disk_written", "disk written", U::bytes_per_second, kEach, "by the process"},
      {"disk_read_max", "most disk read", U::bytes_per_second, kEach, "by the process, over all samples and trainers"},
      {"node_disk_read", "disk read on the node", U::bytes_per_second, kEach,
       "by all disks of the machine; on an emulated node by all its processes"},
      {"node_disk_written", "disk written on the node", U::bytes_per_second, kEach, "as above"},
      {"disk_over_network", "disk over network", U::times, kEach,
       "bytes that the node's processes read from disks and write, relative to those of its network"},
      {"throttled_share", "held back", U::share, kEach,
       "time for which a CPU quota held the node or role back, including its start, relative to the training time"},
      {"others_share", "use by other programs", U::share, false,
       "CPU time of programs that are not part of the run, relative to all cores; sampled by the lab, not with hosts"},
      {"stolen_share", "stolen time", U::share, false,
       "CPU time that the host of a virtual machine gave to others, relative to all cores"},
      {"missed_share", "missed CPU", U::share, false,
       "CPU time promised to emulated nodes, but used by others while no core was idle"},
      {"stopped_share", "time stopped", U::share, false,
       "time for which Ctrl-Z stopped the lab and the run; only if it did"},
      {"disturbed", "disturbed", U::count, false,
       "1 if others used more than 10 % of the machine, the host stole more than 2 %, nodes missed more than 5 %, or "
       "Ctrl-Z "
       "stopped it"},
  };
}

std::vector<FieldDef> servers_and_phases() {
  return {
      {"ps_cpu_percent", "CPU of the server", U::percent, false,
       "CPU of its process, 100: one core; mean over servers"},
      {"ps_cpu_max", "largest CPU of the server", U::percent, false,
       "CPU of its process, over all samples and servers"},
      {"ps_node_cpu_percent", "CPU of the server's node", U::percent, false, "100: all cores of the node"},
      {"ps_memory", "memory of the server", U::bytes, false, "largest memory of a server; mean over servers"},
      {"ps_received", "received by the server", U::bytes_per_second, false, "from all roles, mean over servers"},
      {"ps_received_max", "most received by the server", U::bytes_per_second, false, "over all samples and servers"},
      {"ps_sent", "sent by the server", U::bytes_per_second, false, "to all roles, mean over servers"},
      {"ps_received_over_sent", "received over sent", U::times, false, "ratio of the servers' traffic"},
      {"server_intake", "intake of the server", U::times, false,
       "received by the servers' nodes, relative to what all other nodes send"},
      {"ps_loopback_received", "loopback of the server", U::bytes_per_second, false, "received within its node"},
      {"ps_seconds", "time of the server", U::seconds, false, "time spent receiving, applying, sending and storing"},
      {"ps_wait_share", "waiting of the server", U::share, false,
       "share of its time spent waiting for other contributors"},
      {"wait_share", "waiting for others", U::share, kEach,
       "share of the step time: the phase `others`; wait_share in summary.json is all waiting for an exchange, with "
       "the "
       "servers' part"},
      {"share_compute", "computing", U::share, kEach, "share of the step time: forward, backward, optimizer"},
      {"share_exchange", "exchanging", U::share, kEach, "share of push, pull and transfer, without waiting for others"},
      {"share_data", "waiting for data", U::share, kEach, "share of the step time"},
      {"share_evaluation", "evaluating", U::share, kEach, "share of evaluations and checkpoints"},
      {"share_rest", "everything else", U::share, kEach, "share of logs and displays"},
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
