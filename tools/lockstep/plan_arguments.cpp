#include "plan_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "emulate/cluster.h"
#include "emulate/quantities.h"
#include "lockstep/error.h"

namespace lockstep::tools {
namespace {

[[noreturn]] void refuse(const std::string& flag, std::string_view seen, const std::string& allowed) {
  throw UsageError(fmt::format("plan: {} '{}': {}", flag, seen, allowed));
}

std::vector<std::string_view> words_of(const std::string& flag, const std::string& text, const std::string& allowed) {
  std::vector<std::string_view> words;
  for (const std::string_view word : emulate::split(text, ',')) {
    words.push_back(emulate::trimmed(word));
    if (words.back().empty()) refuse(flag, text, allowed);
  }
  return words;
}

/// Returns bytes per second.
std::vector<double> rates_of(const std::string& text) {
  constexpr double kBits = 1.0 / 8;
  const std::string allowed = "rates such as 100mbit or 1gbit are allowed, more than 0 and with commas between";
  std::vector<double> rates;
  for (const std::string_view word : words_of("--rate", text, allowed)) {
    const auto rate =
        emulate::parse_quantity(word, {{"kbit", 1e3 * kBits}, {"mbit", 1e6 * kBits}, {"gbit", 1e9 * kBits}});
    if (!rate || !(*rate > 0) || *rate > 1e13) refuse("--rate", word, allowed);
    rates.push_back(*rate);
  }
  return rates;
}

std::vector<double> delays_of(const std::string& text) {
  const std::string allowed = "delays such as 0.1ms are allowed, up to 10s and with commas between";
  std::vector<double> delays;
  for (const std::string_view word : words_of("--delay", text, allowed)) {
    const auto delay = emulate::parse_seconds(word);
    if (!delay || *delay < 0 || *delay > 10) refuse("--delay", word, allowed);
    delays.push_back(*delay);
  }
  return delays;
}

std::vector<predict::Strategy> strategies_of(const std::string& text) {
  const std::string allowed = "ps and allreduce are allowed, with a comma between";
  std::vector<predict::Strategy> strategies;
  for (const std::string_view word : words_of("--strategy", text, allowed)) {
    if (word != "ps" && word != "allreduce") refuse("--strategy", word, allowed);
    strategies.push_back(word == "ps" ? predict::Strategy::servers : predict::Strategy::all_reduce);
  }
  return strategies;
}

/// Returns the number behind the "=" of a word of --node; more than 0 and up to `most`.
double number_of_node(std::string_view word, double most, const std::string& allowed) {
  const std::string_view text = word.substr(word.find('=') + 1);
  const auto number = emulate::parse_quantity(text, {{"", 1}});
  if (!number || !(*number > 0) || *number > most) refuse("--node", word, allowed);
  return *number;
}

/// Sets what --node says: cores, memory, speed and the machine.
void set_node(const std::string& text, plan::Choices& choices) {
  std::string rest;  // what an emulated node knows, too
  for (const std::string_view each : emulate::split(text, ',')) {
    const std::string_view word = emulate::trimmed(each);
    if (word.starts_with("speed=")) {
      choices.speed = number_of_node(word, 1000, "a speed of more than 0 is allowed, 1: as here");
    } else if (word.starts_with("machine=")) {
      choices.machine_cores = number_of_node(word, 1e5, "cores of the machine that emulates all nodes are allowed");
    } else {
      rest += (rest.empty() ? "" : ",") + std::string(each);
    }
  }
  if (rest.empty()) return;
  const auto nodes = static_cast<size_t>(*std::max_element(choices.nodes.begin(), choices.nodes.end()));
  const std::vector<emulate::NodeSpec> all = emulate::parse_nodes(rest, nodes);
  std::map<double, size_t> sizes;
  for (const emulate::NodeSpec& each : all) ++sizes[each.cores];
  const double usual = std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
                         return a.second < b.second;
                       })->first;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].cores != usual) choices.other_cores.emplace_back(static_cast<int64_t>(i) + 1, all[i].cores);
  }
  emulate::NodeSpec node = all.front();
  node.cores = usual;
  if (node.rate > 0 || node.delay_seconds > 0 || node.loss > 0) {
    refuse("--node", text, "cores, memory, speed and machine are allowed; --rate and --delay say what links are");
  }
  choices.cores = node.cores;
  choices.memory = node.memory_bytes;
}

/// Returns the price of a node's hour from "0.5/h" or "0.5".
double price_of(const std::string& text) {
  const auto price = emulate::parse_quantity(text, {{"", 1}, {"/h", 1}});
  if (!price || *price < 0 || *price > 1e9)
    refuse("--cost", text, "a price of a node's hour is allowed, such as 0.5/h");
  return *price;
}

plan::Goal goal_of(const std::string& text) {
  const std::string allowed = "accuracy=X (0 to 1) or loss=X is allowed";
  const size_t equals = text.find('=');
  if (equals == std::string::npos) refuse("--until", text, allowed);
  plan::Goal goal{.field = text.substr(0, equals)};
  const auto value = emulate::parse_quantity(text.substr(equals + 1), {{"", 1}});
  if ((goal.field != "accuracy" && goal.field != "loss") || !value) refuse("--until", text, allowed);
  if (goal.field == "accuracy" && (*value < 0 || *value > 1)) refuse("--until", text, allowed);
  goal.value = *value;
  return goal;
}

}  // namespace

std::vector<int64_t> whole_numbers(const std::string& flag, const std::string& text, int64_t least, int64_t most) {
  const std::string allowed = fmt::format("whole numbers of {} to {} are allowed, with commas between", least, most);
  std::vector<int64_t> numbers;
  for (const std::string_view word : words_of(flag, text, allowed)) {
    const auto number = emulate::parse_quantity(word, {{"", 1}});
    if (!number || *number != std::floor(*number) || *number < static_cast<double>(least) ||
        *number > static_cast<double>(most)) {
      refuse(flag, word, allowed);
    }
    numbers.push_back(static_cast<int64_t>(*number));
  }
  return numbers;
}

plan::Choices choices_of(const PlanArguments& arguments) {
  plan::Choices choices;
  choices.nodes = whole_numbers("--nodes", arguments.nodes, 1, 10'000);
  if (!arguments.rate.empty()) choices.rates = rates_of(arguments.rate);
  if (!arguments.delay.empty()) choices.delays = delays_of(arguments.delay);
  choices.strategies = strategies_of(arguments.strategy);
  choices.sync.clear();
  if (arguments.sync || !arguments.async) choices.sync.push_back(true);
  if (arguments.async) choices.sync.push_back(false);
  if (!arguments.batch.empty()) {
    for (const int64_t batch : whole_numbers("--batch", arguments.batch, 1, 1'000'000)) {
      choices.batches.push_back(static_cast<double>(batch));
    }
  }
  choices.backups = arguments.backups;
  choices.servers = whole_numbers("--ps", arguments.ps, 1, 1000);
  if (!arguments.node.empty()) set_node(arguments.node, choices);
  if (!arguments.cost.empty()) choices.price = price_of(arguments.cost);
  if (!arguments.epochs.empty()) {
    const std::vector<int64_t> epochs = whole_numbers("--epochs", arguments.epochs, 1, 1'000'000);
    if (epochs.size() > 1) refuse("--epochs", arguments.epochs, "a single number is allowed");
    choices.epochs = static_cast<double>(epochs.front());
  }
  if (!arguments.until.empty()) choices.goal = goal_of(arguments.until);
  constexpr size_t kMostRows = 2000;
  const size_t rows = choices.nodes.size() * std::max<size_t>(choices.rates.size(), 1) *
                      std::max<size_t>(choices.delays.size(), 1) * std::max<size_t>(choices.batches.size(), 1) *
                      choices.strategies.size() * choices.servers.size() * choices.sync.size();
  if (rows > kMostRows) throw UsageError(fmt::format("plan: {} choices; up to {} are allowed", rows, kMostRows));
  return choices;
}

}  // namespace lockstep::tools
