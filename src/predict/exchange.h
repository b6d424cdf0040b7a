// How simulated workers exchange gradients: an interface, and the world that its implementations act in. Internal to
// this room; single-threaded.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "predict/events.h"
#include "predict/network.h"
#include "predict/node_cpu.h"
#include "predict/simulate.h"
#include "predict/step_parts.h"
#include "predict/training.h"

namespace lockstep::predict {

/// The simulated machines, and what is measured on them.
struct World {
  explicit World(const Training& of);

  const Training& training;
  Events events;
  Machine machine;
  std::deque<NodeCpu> cpus;
  Network network;
  std::vector<WorkerTimes> times;  ///< sums of the counted steps, by worker
  std::vector<double> server_cpu;  ///< seconds of a core that each server has asked for
  bool counting = false;           ///< the first steps are over
  std::vector<Span>* spans = nullptr;

  [[nodiscard]] NodeCpu& cpu_of_worker(size_t worker) { return cpus[training.workers[worker].node]; }
  /// Works on a worker's messages.
  void run_messages(size_t worker, double cost, Action done) {
    cost *= training.workers[worker].cost;
    if (counting) times[worker].messages += cost;
    cpu_of_worker(worker).run(cost, 1, std::move(done));
  }
  [[nodiscard]] NodeCpu& cpu_of_server(size_t server) { return cpus[training.servers[server].node]; }
  void span(const std::string& role, size_t index, const char* name, double begin) {
    if (spans != nullptr && counting && events.now() > begin) {
      spans->push_back({role + ":" + std::to_string(index), name, begin, events.now()});
    }
  }
};

struct ExchangeTotals {
  double updates = 0;
  double offered = 0;  ///< gradients
  double dropped = 0;
  double staleness = 0;  ///< sum over the applied gradients
};

class ExchangeModel {
 public:
  virtual ~ExchangeModel() = default;

  /// The parts of every worker's backward pass.
  [[nodiscard]] virtual const std::vector<StepPart>& parts() const = 0;
  /// A worker begins a step.
  virtual void begin(size_t worker) = 0;
  /// Part `part` of its backward pass is computed; calls `next` when the training thread may go on. After the last part
  /// that is when the step is over, with its optimizer, and without the rest.
  virtual void computed(size_t worker, size_t part, Action next) = 0;
  [[nodiscard]] virtual ExchangeTotals totals() const = 0;
};

std::unique_ptr<ExchangeModel> make_local(World& world);
std::unique_ptr<ExchangeModel> make_servers(World& world);
std::unique_ptr<ExchangeModel> make_all_reduce(World& world);

}  // namespace lockstep::predict
