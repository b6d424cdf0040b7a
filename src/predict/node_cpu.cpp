#include "predict/node_cpu.h"

#include <algorithm>
#include <cmath>

namespace lockstep::predict {
namespace {

constexpr double kTiny = 1e-12;
/// Steps of the clock, relative to its time: what is shorter cannot pass.
constexpr double kClockStep = 1e-15;

}  // namespace

NodeCpu::NodeCpu(Events& events, const Node& node, Machine* machine)
    : events_(events), node_(node), machine_(machine), left_(time_of_period()), period_ends_(node.quota_period) {
  if (machine_ != nullptr) machine_->add(*this);
}

double NodeCpu::wanted() const {
  if (tasks_.empty() || out_of_time()) return 0;
  return std::min(threads_, std::ceil(node_.cores));
}

void NodeCpu::grant(double cores) {
  if (cores == granted_) return;
  advance();
  granted_ = cores;
  plan();
}

void NodeCpu::changed() {
  plan();
  if (machine_ != nullptr) machine_->divide();
}

double NodeCpu::pace() const {
  // A quota of less than a core is given on one core, of which it may use all.
  const double cores = std::min(limited() ? std::ceil(node_.cores) : node_.cores, granted_);
  const double wanted = threads_ + (limited() ? 0 : node_.others);
  return wanted > cores ? cores / wanted : 1;
}

bool NodeCpu::out_of_time() const { return limited() && left_ <= kTiny + kClockStep * events_.now(); }

void NodeCpu::refill() {
  if (!limited() || events_.now() < period_ends_ - kTiny) return;
  const double periods = std::floor((events_.now() - period_ends_ + kTiny) / node_.quota_period) + 1;
  const double each = time_of_period();
  left_ = std::min(left_ + periods * each, 2 * each);
  period_ends_ += periods * node_.quota_period;
}

void NodeCpu::advance() {
  const double passed = events_.now() - last_;
  last_ = events_.now();
  if (!tasks_.empty() && passed > 0) {
    if (out_of_time()) {
      paused_ += passed;
    } else {
      const double busy = threads_ * pace() * passed;
      progress_ += pace() * node_.speed * passed;
      used_ += busy;
      if (limited()) left_ = std::max(0.0, left_ - busy);
    }
  }
  refill();
}

void NodeCpu::plan() {
  ++plans_;
  if (tasks_.empty()) return;
  double next = limited() ? period_ends_ : kUnlimited;
  if (!out_of_time()) {
    next = std::min(next, last_ + std::max(0.0, tasks_.top().finish - progress_) / (pace() * node_.speed));
    if (limited()) next = std::min(next, last_ + left_ / (threads_ * pace()));
  }
  events_.at(next, [this, plan = plans_] {
    if (plan == plans_) happen();
  });
}

void NodeCpu::happen() {
  advance();
  std::vector<Action> done;
  const double slack = kTiny * (1 + progress_) + kClockStep * events_.now() * node_.speed;
  while (!tasks_.empty() && tasks_.top().finish <= progress_ + slack) {
    threads_ -= tasks_.top().threads;
    done.push_back(std::move(const_cast<Task&>(tasks_.top()).done));
    tasks_.pop();
  }
  if (tasks_.empty()) threads_ = 0;  // without the errors of many sums
  changed();
  for (const Action& action : done) action();
}

void NodeCpu::run(double seconds, double threads, Action done) {
  if (!(seconds > 0)) {
    events_.after(0, std::move(done));
    return;
  }
  advance();
  tasks_.push({progress_ + seconds, next_++, threads, std::move(done)});
  threads_ += threads;
  changed();
}

void Machine::divide() {
  std::vector<NodeCpu*> hungry;
  for (NodeCpu* node : nodes_) {
    if (node->wanted() > 0) hungry.push_back(node);
  }
  std::sort(hungry.begin(), hungry.end(), [](const NodeCpu* a, const NodeCpu* b) { return a->wanted() < b->wanted(); });
  double left = cores_;
  auto count = static_cast<double>(hungry.size());
  for (NodeCpu* node : hungry) {
    const double share = std::min(node->wanted(), left / count);
    left -= share;
    count -= 1;
    node->grant(share);
  }
}

}  // namespace lockstep::predict
