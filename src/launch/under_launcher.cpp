#include "launch/under_launcher.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "launch/supervisor.h"
#include "process/caught_signals.h"
#include "process/descendants.h"
#include "process/watchman.h"

namespace lockstep::launch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kLookMilliseconds = 500;
constexpr std::string_view kTell = "tell ";

class FarEnd {
 public:
  FarEnd(const std::vector<std::string>& argv, const UnderLauncherOptions& options)
      : options_(options), child_(command(argv, watchman_)) {
    if (options_.reap) subreaper_.emplace();
  }

  int run() {
    std::optional<process::Ending> ending;
    while (!(ending = child_.reap())) {
      wait();
      if (paused_) continue;
      const Clock::time_point now = Clock::now();
      if (now - heard_ > options_.silence) end("no sign of life from the launcher");
      look_for_stop(now);
    }
    if (ending->signalled && !told_) say(ending->text());
    if (options_.reap) end_left_behind();
    return ending->code();
  }

 private:
  static process::Command command(const std::vector<std::string>& argv, const process::Watchman& watchman) {
    process::Command command;
    command.argv = argv;
    command.own_output = false;
    command.hold_stdin = true;
    command.watchman = watchman.fd();
    return command;
  }

  void end_left_behind() const {
    const std::vector<std::string> left = process::end_descendants(std::chrono::seconds(5), watchman_.pid());
    if (!left.empty()) say(fmt::format("{}{}", kLeftBehind, fmt::join(left, ", ")));
  }

  void wait() {
    std::array<pollfd, 3> fds{pollfd{gone_ ? -1 : STDIN_FILENO, POLLIN, 0}, pollfd{child_.end_fd(), POLLIN, 0},
                              pollfd{signals_.fd(), POLLIN, 0}};
    if (poll(fds.data(), fds.size(), kLookMilliseconds) <= 0) return;
    if (fds[2].revents != 0) end("told to end");
    if (fds[0].revents != 0) hear();
  }

  void hear() {
    std::array<char, 4096> buffer{};
    const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (count <= 0) return end("the launcher is gone");
    heard_ = Clock::now();
    words_.feed({buffer.data(), static_cast<size_t>(count)}, [this](const std::string& word) {
      if (word == "int") child_.signal(SIGINT);
      if (word == "term") child_.signal(SIGTERM);
      if (word == "kill") child_.signal(SIGKILL);
      if (word == "stop") child_.signal(SIGSTOP);
      if (word == "continue") child_.signal(SIGCONT);
      if (word == kPauseWord || word == kResumeWord) pause(word == kPauseWord);
      if (word.starts_with(kTell)) child_.write(word.substr(kTell.size()) + "\n");
    });
  }

  void pause(bool now) {
    child_.signal(now ? SIGSTOP : SIGCONT);
    paused_ = now;
    stopped_since_.reset();
  }

  void look_for_stop(Clock::time_point now) {
    const bool stopped = child_.stopped();
    if (!stopped) stopped_since_.reset();
    if (stopped && !stopped_since_) stopped_since_ = now;
    if (stopped && now - *stopped_since_ > options_.stopped) end("stopped and not continued");
  }

  void end(const std::string& why) {
    child_.signal(SIGKILL);
    if (!told_) say(why + "; killed");
    told_ = gone_ = true;
  }
  static void say(const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); }

  UnderLauncherOptions options_;
  process::CaughtSignals signals_;
  process::Watchman watchman_;
  process::Child child_;
  std::optional<process::Subreaper> subreaper_;
  process::LineReader words_;
  Clock::time_point heard_ = Clock::now();
  std::optional<Clock::time_point> stopped_since_;
  bool told_ = false;
  bool gone_ = false;    ///< the input has ended
  bool paused_ = false;  ///< the launcher is stopped by its user, and may be silent
};

}  // namespace

int run_under_launcher(const std::vector<std::string>& argv, const UnderLauncherOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  return FarEnd(argv, options).run();
}

}  // namespace lockstep::launch
