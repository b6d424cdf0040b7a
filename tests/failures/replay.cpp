// Computes a run again, in this process, from the record of its updates:
//    replay CONFIG.yaml < UPDATES A line of UPDATES is a version and its batches as in contributions.csv; prints
// "VERSION LOSS" for each.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <sstream>

#include "optim/update_kernels.h"
#include "settings/configuration.h"
#include "train/data_options.h"
#include "train/setup.h"

namespace lockstep {
namespace {

data::PassPart parse(const std::string& text) {
  data::PassPart part;
  const size_t colon = text.find(':');
  part.pass = std::stoll(text.substr(0, colon));
  std::istringstream ranges(text.substr(colon + 1));
  for (std::string range; std::getline(ranges, range, '+');) {
    const size_t dash = range.find('-');
    part.ranges.push_back({std::stoll(range.substr(0, dash)), std::stoll(range.substr(dash + 1))});
  }
  return part;
}

class Replay {
 public:
  explicit Replay(train::Setup& setup)
      : setup_(setup), parts_(setup.parts()), sum_(parts_.parameters->gradients().size()) {}

  /// Makes an update from its batches and returns their mean loss.
  double update(std::istream& batches) {
    exchange::BatchReport report;
    int64_t first = 0;
    for (std::string text; batches >> text;) {
      const data::Batch& batch = load(parse(text));
      program::Program& program = parts_.programs->bind(batch);
      program.run({setup_.settings().seed, step_, 0});
      const train::BatchResult found = parts_.programs->result(program, batch.count);
      report.loss_sum += found.loss_sum;
      report.examples += static_cast<uint64_t>(batch.count);
      const std::span<const float> gradients = parts_.parameters->gradients();
      if (first == 0) {
        first = batch.count;
        sum_.assign(gradients.begin(), gradients.end());
      } else {
        const float weight = static_cast<float>(batch.count) / static_cast<float>(first);
        optim::add_weighted(weight, 1, gradients.data(), sum_.data(), sum_.size(), 1);
      }
    }
    const float mean = static_cast<float>(first) / static_cast<float>(report.examples);
    std::transform(sum_.begin(), sum_.end(), parts_.parameters->gradients().begin(),
                   [mean](float value) { return value * mean; });
    parts_.exchange->begin({step_++, report.examples, 1});
    parts_.exchange->ready({0, sum_.size()}, {});
    static_cast<void>(parts_.exchange->finish(report).value_or_throw());
    parts_.programs->parameters_changed();
    return report.loss_sum / static_cast<double>(report.examples);
  }

 private:
  /// Loads exactly those examples, through a plan of only these.
  const data::Batch& load(const data::PassPart& part) {
    data::Plan plan = parts_.loader->plan();
    ++plan.id;
    plan.data = {{part}, part.pass + 1};
    plan.shard = {0, 1};
    plan.batch = part.size();
    parts_.loader->restart(plan);
    return *parts_.loader->next();
  }

  train::Setup& setup_;
  train::Parts parts_;
  std::vector<float> sum_;
  uint64_t step_ = 0;
};

void run(const std::string& config) {
  settings::Configuration configuration;
  configuration.load_yaml(config);
  settings::Settings settings = configuration.resolve();
  settings.threads = 1;
  const nn::ModelDef& model = configuration.model(settings.model);
  train::Setup setup(settings, model, data::load(settings.dataset, train::data_options(settings, model.image), {}));
  Replay replay(setup);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string version;
    words >> version;
    fmt::print("{} {}\n", version, replay.update(words));
  }
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    lockstep::run(argv[1]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "replay: {}\n", error.what());
    return 1;
  }
  return 0;
}
