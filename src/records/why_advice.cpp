#include "records/why_advice.h"

#include <fmt/format.h>

#include <algorithm>

#include "predict/counterfactual.h"
#include "records/format.h"
#include "records/why_facts.h"

namespace lockstep::records {

using predict::Training;

double Advice::step_of(const Training& training) const { return predict::simulate(training, options_).step; }

Training Advice::doubled(Training training) const {
  training.batch *= 2;
  const double more = 2 - fit_.fixed_compute;
  for (predict::Worker& worker : training.workers) {
    worker.work.forward *= more;
    worker.work.backward *= more;
    worker.work.load *= 2;
  }
  return training;
}

std::string Advice::gain(const Training& changed, double examples) const {
  const double before = fit_.prediction.step;
  const double after = step_of(changed) / examples;
  return after < 0.98 * before ? fmt::format(": {}.", gain_text(before, after)) : ".";
}

std::vector<std::string> Advice::fewer_bytes() const {
  std::vector<std::string> texts;
  if (fit_.training.element_bytes == 4) {
    Training halved = fit_.training;
    halved.element_bytes = 2;
    texts.push_back("Halve the bytes with --wire bf16" + gain(halved));
  }
  texts.push_back("Exchange half as often, with twice the --batch or --accumulate 2" + gain(doubled(fit_.training), 2));
  Training faster = fit_.training;
  for (predict::Node& node : faster.nodes) node.link.rate *= 2;
  texts.push_back("Links of twice the rate" + gain(faster));
  return texts;
}

std::vector<std::string> Advice::stronger_servers(size_t slowest) const {
  std::vector<std::string> texts;
  Training more = fit_.training;
  const predict::Server& server = more.servers[slowest];
  more.nodes.push_back(more.nodes[server.node]);
  more.servers.push_back({more.nodes.size() - 1, server.cost});
  texts.push_back(fmt::format("One more such server (--ps {})", more.servers.size()) + gain(more));
  Training stronger = fit_.training;
  stronger.servers[slowest].cost /= 2;
  texts.push_back(fmt::format("Twice the CPU for {}", fit_.servers[slowest]) + gain(stronger));
  texts.push_back("Or --strategy allreduce, which needs no servers.");
  return texts;
}

std::vector<std::string> Advice::without_straggler(const std::string& role, double even) const {
  std::vector<std::string> texts;
  texts.push_back(
      fmt::format("Check what else runs on the machine of {}, and give it less work or a faster machine: as "
                  "fast as the others, the run is {}.",
                  role, gain_text(1, even)));
  if (fit_.training.strategy != predict::Strategy::servers || fit_.workers.size() < 2) return texts;
  const auto count = static_cast<double>(fit_.workers.size());
  Training backup = fit_.training;
  backup.aggregate = static_cast<int>(fit_.workers.size()) - 1;
  texts.push_back(
      fmt::format("Update without the last worker (--aggregate {}), which drops its gradients", backup.aggregate) +
      gain(backup, (count - 1) / count));
  Training async = fit_.training;
  async.sync = false;
  const double now = fit_.prediction.examples_per_second;
  const double then = predict::simulate(async, options_).examples_per_second;
  if (then > now) {
    texts.push_back(fmt::format("Do not wait (--mode async): {}.", gain_text(1 / now, 1 / then)));
  }
  return texts;
}

std::vector<std::string> Advice::rarer(double cost, const std::string& what) const {
  std::string text = fmt::format("{}: {}.", what, gain_text(1, 1 - cost / 2));
  std::vector<std::string> texts{std::move(text)};
  if (run_.servers() > 0 && !run_.has_evaluator()) texts.emplace_back("Or evaluate elsewhere (--evaluator).");
  return texts;
}

std::vector<std::string> Advice::more_compute() const {
  const ResourceUse node = run_.chief().resource("node_cpu_percent");
  if (run_.chief().samples >= kEnoughSamples && node.mean < 60 && run_.nodes.empty()) {
    const std::string now = known(run_.threads()) ? fmt::format(" (now {})", count_text(run_.threads())) : "";
    return {fmt::format("The node's CPU was {} busy: more --threads{} or workers would use the rest.",
                        percent_text(node.mean), now)};
  }
  return {
      "More workers on other machines, a faster machine, or a smaller model (`lockstep plan` says what workers "
      "would give)."};
}

}  // namespace lockstep::records
