#include "simulation/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace lockstep::simulation {

World::World(uint64_t seed, bool record, NetworkOptions network) : random_(seed), network_(network), record_(record) {}

Machine World::add_machine(std::string name) {
  MachineState machine;
  machine.name = std::move(name);
  machine.clock_offset = random_.between(1, 100000);
  machine.clock_speed = random_.between(0.9999, 1.0001);
  machines_.push_back(std::move(machine));
  for (auto& row : cuts_) row.push_back(0);
  cuts_.emplace_back(machines_.size(), 0);
  for (auto& row : rejects_) row.push_back(0);
  rejects_.emplace_back(machines_.size(), 0);
  return static_cast<Machine>(machines_.size()) - 1;
}

Process World::add_process(std::string name, Machine machine, MakeActor make) {
  const auto number = static_cast<Process>(processes_.size());
  ProcessState& process = processes_.emplace_back();
  process.name = std::move(name);
  process.machine = static_cast<size_t>(machine);
  process.make = std::move(make);
  schedule_at(0, [this, number] { restart(number); });
  return number;
}

void World::schedule(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    healed_at_ = std::max(healed_at_, fault.at + std::max(fault.seconds, 0.0));
    schedule_at(fault.at, [this, fault] { apply(fault); });
  }
}

bool World::run(const std::function<bool()>& done, double limit) {
  while (failure_.empty()) {
    if (done()) return true;
    if (queue_.empty() || queue_.top().at > limit) return false;
    const Event event = std::move(const_cast<Event&>(queue_.top()));  // the queue gives no other way to move it out
    queue_.pop();
    now_ = event.at;
    uint64_t bits = 0;
    std::memcpy(&bits, &now_, sizeof(bits));
    digest_ = (digest_ ^ bits ^ event.number) * 0x100000001B3U;
    ++events_;
    event.what();
    dead_.clear();
    if (check_) check_();
  }
  return false;
}

void World::fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = fmt::format("{:.4f} s: {}", now_, what);
  if (record_) history_.push_back("FAILED at " + failure_);
}

void World::add_line(const std::string& name, const std::string& text) {
  history_.push_back(fmt::format("{:10.4f}  {:<12} {}", now_, name, text));
}

double World::clock(Process process) const {
  const MachineState& machine = machines_[at(process).machine];
  return machine.clock_offset + now_ * machine.clock_speed;
}

void World::schedule_at(double at, std::function<void()> what) {
  queue_.push({std::max(at, now_), numbers_++, std::move(what)});
}

void World::run_in(Process process, uint64_t life, const std::function<void()>& what) {
  ProcessState& state = at(process);
  if (state.life != life || !state.actor) return;
  if (state.stopped) {
    state.backlog.push_back(what);
  } else {
    what();
  }
}

void World::after(Process process, double seconds, std::function<void()> what) {
  schedule_at(now_ + seconds,
              [this, process, life = life(process), what = std::move(what)] { run_in(process, life, what); });
}

// The network.

double World::delay() {
  if (random_.chance(network_.slow_share)) return random_.between(network_.most_delay, network_.slow_delay);
  return random_.between(network_.least_delay, network_.most_delay);
}

size_t World::side(Process process, Link link) const {
  return links_[static_cast<size_t>(link)].ends[0].process == process ? 0 : 1;
}

bool World::is_cut(const LinkState& link, size_t to) const {
  const size_t from_machine = at(link.ends[1 - to].process).machine;
  const size_t to_machine = at(link.ends[to].process).machine;
  return cuts_[from_machine][to_machine] > 0 || !machines_[to_machine].powered;
}

Link World::connect(Process from, Process to) {
  const auto link = static_cast<Link>(links_.size());
  LinkState& state = links_.emplace_back();
  state.ends[0] = {from, life(from), true, now_, {}, false, now_, false};
  state.ends[1] = {to, 0, false, now_, {}, false, now_, false};
  schedule_at(now_ + delay(), [this, link, to] {
    LinkState& asked = links_[static_cast<size_t>(link)];
    if (is_cut(asked, 1) || is_cut(asked, 0)) return;
    const bool rejected = rejects_[at(asked.ends[0].process).machine][at(to).machine] > 0;
    if (!alive(to) || rejected) return lose_end(link, 0, "connection refused");
    asked.ends[1].life = life(to);
    run_in(to, asked.ends[1].life, [this, link, to] {
      LinkState& made = links_[static_cast<size_t>(link)];
      if (!made.ends[0].open || !lives(made.ends[0])) return;
      made.made = made.ends[1].open = true;
      made.ends[0].latest_arrival = now_ + delay();
      actor(to)->accepted(link, made.ends[0].process);
      schedule_at(made.ends[0].latest_arrival, [this, link] {
        const End& asker = links_[static_cast<size_t>(link)].ends[0];
        run_in(asker.process, asker.life, [this, link] {
          const End& end = links_[static_cast<size_t>(link)].ends[0];
          if (end.open) actor(end.process)->connected(link);
        });
      });
    });
  });
  schedule_at(now_ + network_.connect_patience, [this, link] {
    if (!links_[static_cast<size_t>(link)].made) lose_end(link, 0, "no connection within 1 s");
  });
  return link;
}

void World::send_packet(Process from, Link link, std::any message, std::string text) {
  const size_t me = side(from, link);
  if (!links_[static_cast<size_t>(link)].ends[me].open) return;
  if (record_)
    add_line(name(from), fmt::format("-> {}: {}", name(links_[static_cast<size_t>(link)].ends[1 - me].process), text));
  transmit(link, 1 - me, {std::move(message), std::move(text), false});
}

std::optional<double> World::unanswered(Process process, Link link) const {
  constexpr double kKeepAlive = 5;  // seconds after which an idle connection is asked
  const LinkState& state = links_[static_cast<size_t>(link)];
  const End& end = state.ends[state.ends[0].process == process ? 0 : 1];
  if (!end.open) return std::numeric_limits<double>::infinity();
  const double silent = now_ - end.heard;
  if (!state.half_open || (!end.asked && silent < kKeepAlive)) return std::nullopt;
  return silent;
}

void World::close(Process from, Link link) {
  const size_t me = side(from, link);
  End& mine = links_[static_cast<size_t>(link)].ends[me];
  if (!mine.open) return;
  mine.open = false;
  transmit(link, 1 - me, {{}, "end of the connection", true});
}

void World::transmit(Link link, size_t to, Packet packet) {
  LinkState& state = links_[static_cast<size_t>(link)];
  state.ends[1 - to].asked = state.ends[1 - to].asked || state.half_open;
  if (state.half_open) return;
  End& end = state.ends[to];
  end.latest_arrival = std::max(end.latest_arrival, now_ + delay());
  schedule_at(end.latest_arrival, [this, link, to, packet = std::move(packet)] {
    LinkState& there = links_[static_cast<size_t>(link)];
    there.ends[1 - to].asked = there.half_open;
    if (there.half_open) return;
    if (is_cut(there, to) || !there.ends[to].held.empty()) {
      there.ends[to].held.push_back(packet);
    } else {
      arrive(link, to, packet);
    }
  });
}

void World::arrive(Link link, size_t to, const Packet& packet) {
  End& end = links_[static_cast<size_t>(link)].ends[to];
  end.heard = now_;
  if (packet.last) return lose_end(link, to, "the connection closed");
  if (!end.open || !lives(end)) {
    // A machine that knows nothing of the connection answers with a reset.
    schedule_at(now_ + delay(), [this, link, to] {
      const LinkState& state = links_[static_cast<size_t>(link)];
      if (!state.half_open && !is_cut(state, 1 - to)) lose_end(link, 1 - to, "connection reset");
    });
    return;
  }
  run_in(end.process, end.life, [this, link, to, packet] {
    const End& here = links_[static_cast<size_t>(link)].ends[to];
    if (!here.open) return;
    if (record_) add_line(name(here.process), "got " + packet.text);
    actor(here.process)->received(link, packet.message);
  });
}

void World::flush_held() {
  for (size_t i = 0; i < links_.size(); ++i) {
    for (size_t to = 0; to < 2; ++to) {
      End& end = links_[i].ends[to];
      if (end.held.empty() || end.flushing || is_cut(links_[i], to)) continue;
      end.flushing = true;
      schedule_at(now_ + delay(), [this, i, to] {
        End& waiting = links_[i].ends[to];
        waiting.flushing = false;
        while (!waiting.held.empty() && !is_cut(links_[i], to)) {
          const Packet packet = std::move(waiting.held.front());
          waiting.held.pop_front();
          if (!links_[i].half_open) arrive(static_cast<Link>(i), to, packet);
        }
      });
    }
  }
}

void World::lose_end(Link link, size_t which, const std::string& why) {
  End& end = links_[static_cast<size_t>(link)].ends[which];
  if (!end.open || !lives(end)) return;
  run_in(end.process, end.life, [this, link, which, why] {
    End& lost = links_[static_cast<size_t>(link)].ends[which];
    if (!lost.open) return;
    lost.open = false;
    const Process other = links_[static_cast<size_t>(link)].ends[1 - which].process;
    note(lost.process, [&] { return "lost its connection to " + name(other) + ": " + why; });
    actor(lost.process)->closed(link, why);
  });
}

bool World::joins(const LinkState& link, Process a, Process b) {
  const bool between = (link.ends[0].process == a && link.ends[1].process == b) ||
                       (link.ends[0].process == b && link.ends[1].process == a);
  return between && (link.ends[0].open || link.ends[1].open);
}

void World::break_link(size_t link, bool silently) {
  links_[link].half_open = true;
  if (silently) return;
  for (const size_t which : {0U, 1U}) lose_end(static_cast<Link>(link), which, "connection reset");
}

void World::break_links(Process a, Process b, bool silently) {
  for (size_t i = 0; i < links_.size(); ++i) {
    if (joins(links_[i], a, b)) break_link(i, silently);
  }
}

void World::break_one(Process a, Process b, bool silently) {
  std::vector<size_t> all;
  for (size_t i = 0; i < links_.size(); ++i) {
    if (joins(links_[i], a, b)) all.push_back(i);
  }
  if (!all.empty()) break_link(all[random_.below(all.size())], silently);
}

// Processes and machines.

void World::end_process(Process process, bool silently) {
  ProcessState& state = at(process);
  if (!state.actor) return;
  dead_.push_back(std::move(state.actor));
  state.stopped = false;
  state.stops = 0;
  state.backlog.clear();
  for (size_t i = 0; i < links_.size(); ++i) {
    for (const size_t which : {0U, 1U}) {
      End& end = links_[i].ends[which];
      if (end.process != process || end.life != state.life || !end.open) continue;
      end.open = false;
      end.held.clear();
      if (!silently) transmit(static_cast<Link>(i), 1 - which, {{}, "end of the connection", true});
    }
  }
}

void World::kill(Process process) {
  note(process, [] { return std::string("is killed"); });
  end_process(process, false);
}

void World::exit(Process process) {
  note(process, [] { return std::string("ends"); });
  at(process).exited = true;
  end_process(process, false);
}

void World::crash(Process process, double seconds) {
  end_process(process, false);
  schedule_at(now_ + seconds, [this, process] { restart(process); });
}

void World::restart(Process process) {
  ProcessState& state = at(process);
  if (state.actor || state.exited || !machines_[state.machine].powered) return;
  ++state.life;
  state.actor = state.make(*this, process);
  note(process, [] { return std::string("starts"); });
  state.actor->start();
}

void World::stop(Process process) {
  if (!alive(process)) return;
  note(process, [] { return std::string("is stopped"); });
  ++at(process).stops;
  at(process).stopped = true;
}

void World::go_on(Process process) {
  ProcessState& state = at(process);
  if (!state.stopped || --state.stops > 0) return;
  note(process, [] { return std::string("goes on"); });
  state.stopped = false;
  const uint64_t life = state.life;
  std::deque<std::function<void()>> waiting = std::move(state.backlog);
  state.backlog.clear();
  for (const auto& what : waiting) run_in(process, life, what);
}

void World::power_cut(Machine machine) {
  machines_[static_cast<size_t>(machine)].powered = false;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i].machine != static_cast<size_t>(machine)) continue;
    note(static_cast<Process>(i), [] { return std::string("loses its power"); });
    end_process(static_cast<Process>(i), true);
  }
  machines_[static_cast<size_t>(machine)].disk.power_cut(random_);
}

void World::power_back(Machine machine) {
  MachineState& state = machines_[static_cast<size_t>(machine)];
  if (state.powered) return;
  state.powered = true;
  ++state.boots;
  state.clock_offset = random_.between(1, 100) - now_;
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (processes_[i].machine == static_cast<size_t>(machine)) restart(static_cast<Process>(i));
  }
  flush_held();
}

void World::cut(Machine from, Machine to, bool on) {
  cuts_[static_cast<size_t>(from)][static_cast<size_t>(to)] += on ? 1 : -1;
  if (!on) flush_held();
}

void World::reject(Machine a, Machine b, bool on) {
  for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
    rejects_[static_cast<size_t>(from)][static_cast<size_t>(to)] += on ? 1 : -1;
  }
  if (!on) return;
  for (size_t i = 0; i < processes_.size(); ++i) {
    for (size_t j = 0; j < processes_.size(); ++j) {
      const bool between =
          processes_[i].machine == static_cast<size_t>(a) && processes_[j].machine == static_cast<size_t>(b);
      if (between) break_links(static_cast<Process>(i), static_cast<Process>(j), false);
    }
  }
}

void World::apply(const Fault& fault) {
  const auto process_name = [this](int process) { return name(process); };
  const auto machine_name = [this](int machine) { return machines_[static_cast<size_t>(machine)].name; };
  if (record_) history_.push_back("FAULT at " + describe(fault, process_name, machine_name));
  const auto heal = [&](std::function<void()> what) { schedule_at(now_ + fault.seconds, std::move(what)); };
  const bool both = fault.kind == FaultKind::cut;
  const auto machine = static_cast<size_t>(fault.a);
  switch (fault.kind) {
    case FaultKind::kill:
      kill(fault.a);
      if (fault.seconds >= 0) heal([this, fault] { restart(fault.a); });
      return;
    case FaultKind::stop:
      if (!alive(fault.a)) return;
      stop(fault.a);
      return heal([this, fault, life = life(fault.a)] {
        if (life == this->life(fault.a)) go_on(fault.a);
      });
    case FaultKind::interrupt:
      return run_in(fault.a, life(fault.a), [this, fault] { actor(fault.a)->interrupt(); });
    case FaultKind::power_cut:
    case FaultKind::disk_lost:
      if (!machines_[machine].powered) return;
      power_cut(fault.a);
      if (fault.kind == FaultKind::disk_lost) machines_[machine].disk.lose();
      return heal([this, fault] { power_back(fault.a); });
    case FaultKind::cut:
    case FaultKind::cut_one_way:
      if (fault.a == fault.b) return;
      cut(fault.a, fault.b, true);
      if (both) cut(fault.b, fault.a, true);
      return heal([this, fault, both] {
        cut(fault.a, fault.b, false);
        if (both) cut(fault.b, fault.a, false);
      });
    case FaultKind::reject:
      if (fault.a == fault.b) return;
      reject(fault.a, fault.b, true);
      return heal([this, fault] { reject(fault.a, fault.b, false); });
    case FaultKind::half_open:
      return break_links(fault.a, fault.b, true);
    case FaultKind::reset:
      return break_links(fault.a, fault.b, false);
    case FaultKind::half_open_one:
      return break_one(fault.a, fault.b, true);
    case FaultKind::reset_one:
      return break_one(fault.a, fault.b, false);
    case FaultKind::disk_full:
      machines_[machine].disk.full = true;
      return heal([this, machine] { machines_[machine].disk.full = false; });
    case FaultKind::disk_slow:
      machines_[machine].disk.write_delay = 0.2;
      return heal([this, machine] { machines_[machine].disk.write_delay = 0; });
  }
}

}  // namespace lockstep::simulation
