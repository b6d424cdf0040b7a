#include <fmt/format.h>

#include <algorithm>

#include "simulation/ps_cluster.h"

namespace lockstep::simulation {
namespace {

uint64_t mixed(uint64_t digest, uint64_t value) {
  digest = (digest ^ value) * 0x9E3779B97F4A7C15U;
  return digest ^ (digest >> 29U);
}

}  // namespace

uint64_t Truth::digest_after(uint64_t digest, const ps::Update& update) {
  for (const ps::Update::Part& part : update.parts) {
    for (const float value : *part.values) digest = mixed(digest, static_cast<uint64_t>(value));
  }
  return mixed(digest, update.decision.version);
}

void Truth::enter(Line& line, const std::vector<data::PassPart>& parts) {
  if (!options_.rules.sharded) return;
  for (const data::PassPart& part : parts) {
    for (const base::Range& range : part.ranges) {
      for (int64_t i = range.begin; i < range.end; ++i) {
        if (!line.applied.insert({part.pass, i}).second) {
          world_.fail(fmt::format("position {} of pass {} counts twice", i, part.pass));
        }
      }
    }
  }
}

void Truth::set(int server, uint64_t generation, const Place& from) {
  holds_[server] = {generation, from.version};
  const auto known = lines_.find(generation);
  if (known != lines_.end() && known->second.first == from.version && known->second.given_to.insert(server).second) {
    return;
  }
  // A number is used again only if nobody knows of its first use.
  for (const auto& [other, place] : holds_) {
    if (other == server || place.generation != generation || !world_.alive(other)) continue;
    world_.fail(fmt::format("generation {} begins again while ps:{} has it", generation, other));
  }
  Line line;
  line.first = from.version;
  line.given_to.insert(server);
  const auto before = lines_.find(from.generation);
  if (from.generation != 0 && before != lines_.end()) {
    for (const auto& [version, made] : before->second.made) {
      if (version > from.version) break;
      line.made[version] = made;
      enter(line, made.parts);
    }
  }
  lines_[generation] = std::move(line);
  std::erase_if(acknowledged_, [&](const auto& one) { return one.first.second == generation; });
}

uint64_t Truth::digest_at(const Place& place) const {
  const auto line = lines_.find(place.generation);
  if (line == lines_.end()) return 0;
  const auto made = line->second.made.find(place.version);
  return made == line->second.made.end() ? 0 : made->second.digest;
}

void Truth::stored(int server, const ps::Update& update, const std::vector<ps::Contributed>* parts, uint64_t digest) {
  const ps::Decision& decision = update.decision;
  const std::string who = fmt::format("ps:{} at version {}", server, decision.version);
  Place& place = holds_[server];
  if (place.generation == update.generation && decision.version != place.version + 1) {
    world_.fail(fmt::format("{} follows version {}", who, place.version));
  }
  place = {update.generation, decision.version};
  Line& line = lines_[update.generation];
  for (const ps::Update::Part& part : update.parts) {
    const std::vector<float> named = {static_cast<float>(part.from.incarnation),
                                      static_cast<float>(part.from.sequence)};
    if (*part.values != named) world_.fail(who + ": the gradient is another one than was counted");
  }
  if (server == 0) {
    if (line.made.contains(decision.version)) world_.fail(who + " was made before");
    if (!update.missing.empty() || update.parts.size() != decision.contributors.size()) {
      world_.fail(who + ": a gradient that was counted is not there");
    }
    if (options_.exact && all_train_ && parts->size() != static_cast<size_t>(options_.workers)) {
      world_.fail(
          fmt::format("{} has {} pushes of {} workers, none of which failed", who, parts->size(), options_.workers));
    }
    Made& made = line.made[decision.version];
    made.contributors = decision.contributors;
    made.digest = digest;
    for (const ps::Contributed& one : *parts) made.parts.insert(made.parts.end(), one.parts.begin(), one.parts.end());
    newest_ = std::max(newest_, decision.version);
    return enter(line, made.parts);
  }
  const auto found = line.made.find(decision.version);
  if (found == line.made.end()) return world_.fail(who + " has an update that ps:0 has not counted");
  const auto same = [](const ps::Contributor& a, const ps::Contributor& b) {
    return a.member == b.member && ps::name_of(a) == ps::name_of(b) && a.weight == b.weight;
  };
  if (!std::equal(decision.contributors.begin(), decision.contributors.end(), found->second.contributors.begin(),
                  found->second.contributors.end(), same)) {
    return world_.fail(who + " has another update than ps:0");
  }
  for (const ps::Contributor& missing : update.missing) {
    line.lossy.insert(server);
    if (options_.exact) world_.fail(who + " goes on without a gradient, though no worker failed");
    if (lost_[server].contains({missing.incarnation, missing.sequence})) continue;
    world_.fail(fmt::format("{} goes on without push {} of worker:{}, which it never lost", who, missing.sequence,
                            missing.member));
  }
  const bool exact = !line.lossy.contains(server) && !options_.lock_free;
  if (exact && digest != found->second.digest) world_.fail(who + " is another state than ps:0's");
}

void Truth::died(int server) {
  lost_[server].insert(here_[server].begin(), here_[server].end());
  here_[server].clear();
  holds_.erase(server);
}

void Truth::resumed(int server, const Place& place) {
  const auto known = acknowledged_.find({server, place.generation});
  if (known != acknowledged_.end() && place.version < known->second) {
    world_.fail(fmt::format("ps:{} is back at version {}, but version {} was acknowledged", server, place.version,
                            known->second));
  }
  holds_[server] = place;
}

void Truth::acknowledged(int server, const Place& place) {
  uint64_t& version = acknowledged_[{server, place.generation}];
  version = std::max(version, place.version);
  const Place& held = holds_[server];
  if (held.generation == place.generation && held.version < place.version) {
    world_.fail(fmt::format("ps:{} acknowledged version {} and has stored {}", server, place.version, held.version));
  }
}

void Truth::checkpoint(const Place& place, const std::vector<uint64_t>& digests) {
  const auto line = lines_.find(place.generation);
  if (line == lines_.end() || options_.lock_free) return;
  const uint64_t wanted = digest_at(place);
  for (size_t i = 0; i < digests.size(); ++i) {
    if (line->second.lossy.contains(static_cast<int>(i)) || digests[i] == wanted) continue;
    world_.fail(fmt::format("the checkpoint of version {} has another state of ps:{}", place.version, i));
  }
}

void Truth::finish() {
  for (const auto& [server, place] : ends_) {
    const Place& first = ends_.begin()->second;
    if (place.version == first.version && place.generation == first.generation) continue;
    world_.fail(fmt::format("ps:{} ends at version {} of generation {} and ps:{} at {} of {}", server, place.version,
                            place.generation, ends_.begin()->first, first.version, first.generation));
  }
  const bool all_data = options_.rules.passes > 0 && options_.rules.limit_steps == 0 && !options_.goal;
  if (!all_data || !options_.rules.sharded || ends_.empty()) return;
  const size_t applied = lines_[ends_.begin()->second.generation].applied.size();
  const auto wanted = static_cast<size_t>(options_.rules.passes * options_.rules.examples);
  if (applied != wanted) world_.fail(fmt::format("{} of {} examples are in the parameters", applied, wanted));
}

bool PsCluster::asks_to_end() {
  constexpr double kPatience = 25;  // more than servers stay for an evaluator that lives
  const auto all_before = [this](Process last) {
    for (Process process = options.servers; process < last; ++process) {
      if (!left.contains(process)) return false;
    }
    return true;
  };
  const Process evaluator = options.servers + options.workers;
  if (!all_before(evaluator)) return false;
  if (workers_left_at_ < 0) workers_left_at_ = world.now();
  return !options.evaluator || left.contains(evaluator) || world.now() > workers_left_at_ + kPatience;
}

void PsCluster::check_that_servers_look() {
  constexpr double kMost = 4;
  for (const auto& [server, last] : looked_) {
    if (!world.alive(server) || world.life(server) != last.first) continue;
    if (world.stopped(server)) {
      looked(server);
    } else if (world.now() - last.second > kMost) {
      world.fail(fmt::format("{} has stood still for {} s", world.name(server), kMost));
    }
  }
}

void PsCluster::crash(Process process, const std::string& why) {
  world.note(process, [&] { return "ends with an error: " + why; });
  world.apply({FaultKind::kill, world.now(), 1, process, 0});
}

std::string describe(const Frame& frame) {
  static const std::vector<std::string> kNames = {
      "?",          "hello", "welcome",  "refusal", "heartbeat", "notice",       "received",   "commit",
      "init_begin", "init",  "init_end", "join",    "pull",      "push",         "parameters", "leave",
      "wait_end",   "hold",  "snapshot", "release", "state",     "snapshot_end", "follow",     "stop",
      "end",        "ok"};
  const auto kind = static_cast<size_t>(frame.kind);
  std::string text = kind < kNames.size() ? kNames[kind] : "another frame";
  if (frame.control && frame.kind == ps::Kind::hello) text += " (control)";
  if (frame.sequence != 0) text += fmt::format(" {}", frame.sequence);
  if (frame.version != 0) text += fmt::format(" version {}", frame.version);
  return frame.text.empty() ? text : text + ": " + frame.text;
}

}  // namespace lockstep::simulation
