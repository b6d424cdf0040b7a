// How a member keeps checkpoints, and how it ends.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "simulation/elastic_member.h"

namespace lockstep::simulation {
namespace {

constexpr double kFarewell = 20;
constexpr double kShortFarewell = 2;
constexpr double kSync = 0.02;      ///< seconds between a rename and its arrival on the disk
constexpr double kRestarted = 0.5;  ///< seconds until a launcher has started a process again
constexpr size_t kKeep = 3;

std::string file_of(uint64_t step) { return fmt::format("step-{:09}", step); }

/// A checkpoint's text: "STATE GROUP ." with the dot as proof that it is whole.
std::optional<std::pair<uint64_t, uint64_t>> parse_checkpoint(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == std::string::npos || !text.ends_with(" .")) return std::nullopt;
  std::pair<uint64_t, uint64_t> found;
  std::from_chars(text.data(), text.data() + space, found.first);
  std::from_chars(text.data() + space + 1, text.data() + text.size() - 2, found.second);
  return found;
}

}  // namespace

// Checkpoints.

/// Returns the number of the group that wrote it.
uint64_t ElasticMember::read_checkpoint() {
  const std::vector<std::string> names = disk().names();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!name->starts_with("step-")) continue;
    const auto kept = parse_checkpoint(disk().read(*name).value_or(""));
    if (!kept) continue;
    state_ = kept->first;
    here_.step = judge_.state(state_).step;
    here_.examples = static_cast<uint64_t>(judge_.state(state_).examples);
    here_.data = judge_.state(state_).data;
    return kept->second;
  }
  return 0;
}

/// Returns the highest step that the folder holds.
uint64_t ElasticMember::newest_kept() {
  uint64_t newest = 0;
  for (const std::string& name : disk().names()) {
    const auto kept = name.starts_with("step-") ? parse_checkpoint(disk().read(name).value_or("")) : std::nullopt;
    if (kept) newest = std::max(newest, judge_.state(kept->first).step);
  }
  return newest;
}

void ElasticMember::look_for_ending() {
  const std::string summary = disk().read("summary").value_or("");
  if (summary.empty()) return;
  assembly_->found_ending(std::stoull(summary), summary.ends_with("interrupted"), now());
}

void ElasticMember::begin_saving(bool summary) {
  enter_stage(summary ? Stage::finishing : Stage::saving);
  until_ = now() + world_.disk(me_).write_delay;
  written_ = 0;
}

/// Writes, asks the fence, renames into place, and waits for the disk.
bool ElasticMember::work_saving() {
  if (now() < until_) return false;
  if (written_ == 0) {
    ++written_;
    assembly_->begin_check(now());
    return true;
  }
  if (written_ == 1) {
    const std::optional<std::string> why = assembly_->checked(now());
    if (!why) return false;
    ++written_;
    const bool older = stage_ == Stage::finishing && newest_kept() > here_.step;
    if (why->empty() && !older) {
      if (!disk().write(file_of(here_.step), fmt::format("{} {} .", state_, assembly_->group().number))) {
        world_.note(me_, [] { return std::string("ends: no space left on device"); });
        world_.crash(me_, kRestarted);
        return false;
      }
      until_ = now() + kSync;
      return true;
    }
    world_.note(me_, [&] { return fmt::format("does not keep step {}: {}", here_.step, older ? "older" : *why); });
  } else {
    keep();
  }
  if (stage_ == Stage::saving) {
    after_step(regroup_after_, false);
  } else if (!in_group_) {
    leave();  // alone
  } else {
    assembly_->end(now());
    enter_stage(Stage::telling);
    until_ = now() + (interrupted_ ? kShortFarewell : kFarewell);
  }
  return true;
}

void ElasticMember::keep() {
  const bool results = stage_ == Stage::finishing;
  disk().sync(file_of(here_.step));
  std::vector<std::string> all = disk().names();
  std::erase_if(all, [](const std::string& file) { return !file.starts_with("step-"); });
  for (size_t i = 0; i + kKeep < all.size(); ++i) {
    disk().remove(all[i]);
    disk().sync(all[i]);
  }
  // A lock keeps others from writing between the look and the write.
  const bool newest = newest_kept() <= here_.step;
  if (results && newest && disk().write("summary", std::to_string(here_.step) + (by_user_ ? " interrupted" : ""))) {
    disk().sync("summary");
  }
  judge_.saved(me_, state_, assembly_->group().number, results && newest, by_user_);
  world_.note(me_, [&] { return fmt::format("keeps step {}{}", here_.step, results ? " as the result" : ""); });
}

// The end.

/// A user interrupts this process.
void ElasticMember::interrupt() {
  interrupted_ = true;
  judge_.interrupts();
  if (stage_ == Stage::starting) return leave();
  pump();
}

/// It is interrupted while it forms a group, or another one is: it tells the others, and ends.
void ElasticMember::part() {
  by_user_ = true;
  assembly_->withdraw(interrupted_);
  enter_stage(Stage::parting);
  until_ = now() + kShortFarewell;
}

bool ElasticMember::work_parting() {
  const bool told = !assembly_->interrupted() || (assembly_->all_informed() && assembly_->all_accounted_for());
  if (!told && now() < until_) return false;
  const bool keeps = here_.whole && here_.live && assembly_->first_survivor() && newest_kept() <= here_.step;
  if (keeps) {
    begin_saving(true);
    return true;
  }
  leave();
  return false;
}

bool ElasticMember::work_closing() {
  if (assembly_->knows_end()) {
    enter_stage(Stage::telling);
    until_ = now() + kShortFarewell;
    return true;
  }
  const int leader = assembly_->leader(now());
  if (leader >= 0 && leader != me_) {
    // Leaving before all have heard of the end would break the step that tells them.
    const bool may_leave = assembly_->all_informed() || now() > since_ + kShortFarewell;
    if (interrupted_ && may_leave) leave();
    return false;
  }
  begin_saving(true);
  return true;
}

bool ElasticMember::work_telling() {
  if (assembly_->may_leave(now()) || now() > until_) leave();
  return false;
}

void ElasticMember::leave() {
  judge_.leaves(me_);
  world_.exit(me_);
}

}  // namespace lockstep::simulation
