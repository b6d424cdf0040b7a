// One member of a training by all-reduce as a process, over Gloo. Its state is one number, to which every step adds
// one, so state and step must always agree.
//   elastic_member INDEX MIN-WORKERS ADDRESS...
// SIGTERM asks all to stop. Lines on standard output: "group NUMBER MEMBER...", "step N" now and then, "led", "ended
// N", "failed REASON", and log lines of the membership after the word "log".
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "allreduce/elastic/elastic_membership.h"
#include "collective/gloo/gloo_engine.h"
#include "lockstep/error.h"

namespace {

using namespace lockstep;

volatile std::sig_atomic_t asked_to_stop = 0;

void say(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

/// Transfers the source's state to all; returns false if that failed.
bool transfer(const allreduce::Formed& formed, float& state) {
  return formed.collective->broadcast(std::as_writable_bytes(std::span(&state, 1)), formed.source).ok();
}

enum class Outcome { broken, regroup, stop };

Outcome steps(allreduce::Membership& membership, collective::Collective& group, allreduce::Standing& standing,
              float& state) {
  for (;;) {
    const bool regroup = group.rank() == 0 && membership.wants_regroup();
    std::vector<float> values{1, asked_to_stop != 0 ? 1.0F : 0.0F, regroup ? 1.0F : 0.0F};
    if (!group.all_reduce(values)) return Outcome::broken;
    if (values[1] > 0) return Outcome::stop;
    state += values[0] / static_cast<float>(group.size());
    ++standing.step;
    if (state != static_cast<float>(standing.step)) {
      say("wrong state");
      std::abort();
    }
    if (standing.step % 50 == 0) say("step " + std::to_string(standing.step));
    if (values[2] > 0) return Outcome::regroup;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int take_part(allreduce::Membership& membership) {
  allreduce::Standing standing;
  float state = 0;
  for (;;) {
    base::Result<allreduce::Formed> formed = membership.form(standing);
    if (!formed) {
      say((membership.over() ? "over " : "failed ") + formed.failure().message());
      return membership.over() ? 0 : 1;
    }
    const bool source = formed.value().collective->rank() == formed.value().source;
    if (formed.value().transfer) {
      if (!source) standing.whole = standing.live = false;
      if (!transfer(formed.value(), state)) continue;
    }
    standing = formed.value().standing;
    standing.whole = standing.live = true;
    std::string line = "group " + std::to_string(formed.value().number);
    for (const int member : formed.value().members) line += " " + std::to_string(member);
    say(line);
    if (steps(membership, *formed.value().collective, standing, state) == Outcome::stop) break;
    formed.value().collective->abort("the group is made anew");
  }
  const base::Result<allreduce::Parting> parting = membership.close(train::StopReason::data);
  if (!parting) return 1;
  if (parting.value() == allreduce::Parting::closes) {
    say("led");
    membership.end();
  }
  say("ended " + std::to_string(standing.step));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  std::signal(SIGTERM, [](int) { asked_to_stop = 1; });
  allreduce::ElasticOptions options;
  for (int i = 3; i < argc; ++i) options.spec.workers.emplace_back(argv[i]);
  options.task = {cluster::Role::worker, std::atoi(argv[1])};
  options.min_workers = std::atoi(argv[2]);
  options.job = "the job";
  options.group.deadline = collective::Seconds(60);
  options.engine = [&](int rank, int size) {
    return collective::join_over_gloo("127.0.0.1", rank, size, options.group);
  };
  options.log = [](std::string_view level, const std::string& text) { say("log " + std::string(level) + ": " + text); };
  try {
    allreduce::ElasticMembership membership(options);
    return take_part(membership);
  } catch (const Error& error) {
    say(std::string("failed ") + error.what());
    return 1;
  }
}
