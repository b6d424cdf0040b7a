#include "launch/supervisor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>

#include "base/limits.h"
#include "launch/finishing.h"
#include "launch/under_launcher.h"
#include "lockstep/error.h"
#include "process/watchman.h"

namespace lockstep::launch {
namespace {

using Time = SupervisorOptions::Time;
using Kind = RoleEvent::Kind;

constexpr int kWrongUsage = 2;
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;
constexpr int kNoConnection = 255;  // exit code of ssh itself
constexpr int kHopeless = 3;        // after this many equal failures a restart will not help
constexpr Time kLook{500};          // between checks for stopped roles, and between signs of life to wrappers
constexpr Time kLongestBackoff{5000};
/// Longest time from a program's last line on standard error to its end, on a busy machine.
constexpr Time kLastWord{10'000};
constexpr Time kRemoteKill{3000};  // time for a wrapper to kill its role, before its connection is cut

double seconds(Time time) { return static_cast<double>(time.count()) / 1000; }

/// Returns the text of the failure that a role reported, else its last line on standard error.
std::string last_report(RoleState& role, const process::Ending& ending) {
  const bool recent = !ending.signalled && Clock::now() - role.error_at < kLastWord;
  const std::string line = role.error.empty() && recent ? role.last_line : std::exchange(role.error, "");
  return role.reported && !ending.signalled && !role.reported->text.empty() ? role.reported->text : line;
}

/// Opens the standard streams that the caller has closed; otherwise pipes of children would take their numbers.
void ensure_standard_streams() {
  int fd = 0;
  do {
    fd = open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

}  // namespace

class Supervisor::Impl {
 public:
  Impl(std::vector<RoleProcess> processes, const SupervisorOptions& options, Callback callback)
      : options_(options), callback_(std::move(callback)) {
    ensure_standard_streams();
    watchman_.emplace();
    for (RoleProcess& process : processes) {
      process.command.watchman = watchman_->fd();
      process.command.hold_stdin = process.command.hold_stdin || process.remote;
      roles_.push_back({std::move(process)});
    }
  }

  JobOutcome run();
  void signal(const cluster::Task& task, int number);

 private:
  enum class Phase : uint8_t { running, finishing, interrupted, failed };

  void start(RoleState& role);
  void wait_and_read();
  void handle_signals();
  void pause();
  static void set_paused(RoleState& role, bool paused);
  void look();
  void look_at(RoleState& role, Moment now);
  void check_end(RoleState& role);
  void on_end(RoleState& role, const process::Ending& ending);
  void on_death(RoleState& role, const std::string& reason);
  [[nodiscard]] Time delay_before_start(const RoleState& role) const;
  void compare_with_last_failure(RoleState& role, const process::Ending& ending, const std::string& said);
  [[nodiscard]] std::string why_hopeless(const RoleState& role) const;
  /// Ends the job because no restart can help, unless it can go on without the role.
  void give_up(RoleState& role, const std::string& reason, const std::string& why);
  [[nodiscard]] bool can_do_without(const RoleState& role) const;
  void finish_when_trained();
  void fail(const RoleState& role, int code, const std::string& error);
  void request_end_of_all(int signal, Time patience);
  void request_end(RoleState& role, int signal, Time patience);
  void escalate(RoleState& role);
  static void send(RoleState& role, int signal);
  void read(RoleState& role, process::Stream stream, bool rest);
  static void tell(RoleState& role, const std::string& line);
  void report_error_line(RoleState& role);
  void report(Kind kind, const RoleState& role, const std::string& text = "") const;
  [[nodiscard]] Time time_to_wait() const;
  [[nodiscard]] Time look_every() const { return std::clamp(options_.stopped / 4, Time(10), kLook); }
  [[nodiscard]] bool anyone_left() const;

  SupervisorOptions options_;
  Callback callback_;
  std::optional<process::Watchman> watchman_;  ///< outlives the children
  std::vector<RoleState> roles_;
  RepeatedFailures failures_;
  Phase phase_ = Phase::running;
  JobOutcome outcome_;
  Moment looked_ = {};
  Moment ticked_ = {};
};

JobOutcome Supervisor::Impl::run() {
  for (RoleState& role : roles_) {
    if (phase_ == Phase::running) start(role);
  }
  while (anyone_left()) {
    wait_and_read();
    for (RoleState& role : roles_) check_end(role);
    finish_when_trained();
    if (phase_ == Phase::finishing) hurry_servers(roles_, options_);
    look();
  }
  return outcome_;
}

bool Supervisor::Impl::anyone_left() const {
  return std::any_of(roles_.begin(), roles_.end(),
                     [](const RoleState& role) { return role.child != nullptr || role.start_at.has_value(); });
}

void Supervisor::Impl::report(Kind kind, const RoleState& role, const std::string& text) const {
  callback_({kind, role.process.task, text, role.child ? role.child->pid() : -1, role.restarts, role.process.group,
             role.process.remote});
}

void Supervisor::Impl::start(RoleState& role) {
  const bool again = role.start_at.has_value();
  role.start_at.reset();
  role.stopped_since.reset();
  role.last_line.clear();
  role.reported.reset();
  role.started = Clock::now();
  try {
    role.child = std::make_unique<process::Child>(role.process.command);
  } catch (const IoError& error) {
    if (again && !base::is_limit(error)) return on_death(role, error.what());
    return fail(role, 1, fmt::format("{}: {}", role.process.name(), error.what()));
  }
  report(again ? Kind::restarted : Kind::started, role);
}

Time Supervisor::Impl::time_to_wait() const {
  const Moment now = Clock::now();
  Moment until = std::min(looked_ + look_every(), ticked_ + options_.tick);
  for (const RoleState& role : roles_) {
    for (const std::optional<Moment>& moment : {role.start_at, role.deadline}) {
      if (moment) until = std::min(until, *moment);
    }
  }
  return std::clamp(std::chrono::ceil<Time>(until - now), Time(0), kLook);
}

void Supervisor::Impl::wait_and_read() {
  std::vector<pollfd> fds{{options_.signals, POLLIN, 0}};
  for (const RoleState& role : roles_) {
    if (!role.child) continue;
    for (const int fd :
         {role.child->end_fd(), role.child->fd(process::Stream::out), role.child->fd(process::Stream::err)}) {
      fds.push_back({fd, POLLIN, 0});  // poll ignores negative ones
    }
  }
  if (poll(fds.data(), fds.size(), static_cast<int>(time_to_wait().count())) <= 0) return;
  if (fds.front().revents != 0) handle_signals();
  for (RoleState& role : roles_) {
    if (!role.child) continue;
    read(role, process::Stream::out, false);
    read(role, process::Stream::err, false);
  }
}

void Supervisor::Impl::read(RoleState& role, process::Stream stream, bool rest) {
  const process::LineReader::Sink sink = [&](const std::string& line) {
    if (stream == process::Stream::out) {
      role.heard = true;
      if (std::optional<RoleFailure> failure = parse_failure(line)) {
        role.reported = std::move(failure);
        return;
      }
      if (const auto given = options_.answer ? options_.answer(line) : std::nullopt) return tell(role, *given);
      return report(Kind::out_line, role, line);
    }
    if (line.empty()) return;
    report_error_line(role);
    role.error = line;
    role.error_at = Clock::now();
  };
  if (rest) {
    role.child->read_rest(stream, sink);
  } else {
    role.child->read(stream, sink);
  }
}

/// Writes a line to a role's standard input.
void Supervisor::Impl::tell(RoleState& role, const std::string& line) {
  role.child->write((role.process.remote ? "tell " : "") + line + "\n");
}

void Supervisor::Impl::report_error_line(RoleState& role) {
  if (role.error.empty()) return;
  role.last_line = std::exchange(role.error, "");
  report(Kind::err_line, role, role.last_line);
}

void Supervisor::Impl::handle_signals() {
  signalfd_siginfo info{};
  while (::read(options_.signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo == SIGTSTP) {
      pause();
      continue;
    }
    const bool again = phase_ == Phase::interrupted || phase_ == Phase::failed;
    if (again && info.ssi_signo == SIGHUP) continue;  // the kernel and the shell may both send it
    if (phase_ != Phase::failed) outcome_.code = 128 + static_cast<int>(info.ssi_signo);
    if (!again) phase_ = Phase::interrupted;
    if (again) {
      request_end_of_all(SIGKILL, kRemoteKill);
    } else {
      request_end_of_all(SIGINT, options_.interrupt);
    }
  }
}

/// Stops all roles and then this process, as Ctrl-Z asks. Continues all when this process is continued; the time
/// between does not count.
void Supervisor::Impl::pause() {
  for (RoleState& role : roles_) {
    if (role.child) set_paused(role, true);
  }
  const Moment before = Clock::now();
  raise(SIGSTOP);
  const auto passed = Clock::now() - before;
  for (RoleState& role : roles_) {
    if (role.child) set_paused(role, false);
    role.stopped_since.reset();
    role.started += passed;
    if (role.start_at) *role.start_at += passed;
    if (role.deadline) *role.deadline += passed;
  }
}

void Supervisor::Impl::set_paused(RoleState& role, bool paused) {
  if (role.process.remote) return role.child->write(fmt::format("{}\n", paused ? kPauseWord : kResumeWord));
  // mpirun stops its ranks, which are not in its process group, if it is asked to stop; then it waits itself.
  role.child->signal(!paused ? SIGCONT : role.process.group.empty() ? SIGSTOP : SIGTSTP);
}

void Supervisor::Impl::send(RoleState& role, int signal) {
  if (!role.process.remote) return role.child->signal(signal == SIGINT ? role.process.interrupt : signal);
  role.child->write(signal == SIGINT ? "int\n" : (signal == SIGTERM ? "term\n" : "kill\n"));
}

void Supervisor::Impl::signal(const cluster::Task& task, int number) {
  for (RoleState& role : roles_) {
    if (!role.child || !role.process.group.empty() || !(role.process.task == task)) continue;
    if (role.process.remote) {
      role.child->write(number == SIGSTOP ? "stop\n" : number == SIGCONT ? "continue\n" : "kill\n");
    } else {
      role.child->signal(number);
    }
  }
}

void Supervisor::Impl::request_end(RoleState& role, int signal, Time patience) {
  role.end_signal = signal;
  role.deadline = Clock::now() + patience;
  send(role, signal);
}

void Supervisor::Impl::request_end_of_all(int signal, Time patience) {
  for (RoleState& role : roles_) {
    role.start_at.reset();
    if (role.child) request_end(role, signal, patience);
  }
}

/// Escalates when a role's deadline has passed.
void Supervisor::Impl::escalate(RoleState& role) {
  if (role.end_signal == SIGKILL) {
    role.child->signal(SIGKILL);
    role.deadline.reset();
  } else if (role.end_signal == 0) {
    report(Kind::message, role, "still runs after the end of training; asking it to end");
    request_end(role, SIGTERM, options_.terminate);
  } else {
    const Time patience = role.end_signal == SIGINT ? options_.interrupt : options_.terminate;
    report(Kind::message, role, fmt::format("did not end within {:.3g} s; killed", seconds(patience)));
    request_end(role, SIGKILL, kRemoteKill);
  }
}

void Supervisor::Impl::check_end(RoleState& role) {
  if (!role.child) return;
  const std::optional<process::Ending> ending = role.child->reap();
  if (!ending) return;
  read(role, process::Stream::out, true);
  read(role, process::Stream::err, true);
  on_end(role, *ending);
}

void Supervisor::Impl::on_end(RoleState& role, const process::Ending& ending) {
  const bool asked = role.end_signal != 0;
  role.child.reset();
  role.deadline.reset();
  role.end_signal = 0;
  const bool over = phase_ == Phase::failed || phase_ == Phase::finishing;
  if (ending.ok() || (asked && ending.code() > 128) || (asked && over)) {
    role.done = ending.ok();
    if (ending.ok()) report_error_line(role);
    report(Kind::ended, role, ending.ok() ? "" : ending.text());
    return;
  }
  const std::string said = last_report(role, ending);
  const bool useless = ending.code() == kWrongUsage || ending.code() == kHopelessCode ||
                       ending.code() == kNotExecutable || ending.code() == kNotFound;
  if (useless && phase_ != Phase::interrupted) {
    const int code = ending.code() == kWrongUsage ? kWrongUsage : 1;
    return fail(role, code, fmt::format("{}: {}", role.process.name(), said.empty() ? ending.text() : said));
  }
  compare_with_last_failure(role, ending, said);
  role.unreachable = role.process.remote && !role.heard && !ending.signalled && ending.number == kNoConnection;
  if (role.unreachable) {
    return on_death(
        role, fmt::format("host {} cannot be reached: {}", role.process.host, said.empty() ? ending.text() : said));
  }
  on_death(role, said.empty() ? ending.text() : ending.text() + ": " + said);
}

/// Checks whether it failed as before: by its reported failure, else by its last line.
void Supervisor::Impl::compare_with_last_failure(RoleState& role, const process::Ending& ending,
                                                 const std::string& said) {
  role.seen = {};
  if (role.reported && !ending.signalled) {
    role.seen = failures_.note(role.process.remote ? role.process.host : "", role.process.name(), *role.reported);
  }
  const bool same = !ending.signalled && !said.empty() && said == role.failure;
  role.same_failures = same ? role.same_failures + 1 : 1;
  role.failure = ending.signalled ? "" : said;
}

/// Returns why a restart cannot help; empty if it may.
std::string Supervisor::Impl::why_hopeless(const RoleState& role) const {
  const bool fault = role.seen.times > 0 && role.reported;
  if (fault && role.reported->kind == RoleFailure::Kind::limit) return "would fail again: a restart raises no limit";
  if (fault && role.reported->names_place() && role.seen.times >= kHopeless) {
    return fmt::format("would fail again: {} such failures without a newer checkpoint", role.seen.times);
  }
  // Over ssh the process before may still be ending and hold resources that this one needs, unless it never started.
  const bool quick = !role.process.remote && role.quick_deaths >= role.same_failures;
  const bool again = role.same_failures >= kHopeless && (quick || role.unreachable);
  return again ? "fails in the same way each time" : "";
}

void Supervisor::Impl::on_death(RoleState& role, const std::string& reason) {
  if (phase_ != Phase::running) return report(Kind::died, role, reason);
  const Moment now = Clock::now();
  role.quick_deaths = now - role.started < options_.quick_death ? role.quick_deaths + 1 : 1;
  const std::string hopeless = why_hopeless(role);
  if (!hopeless.empty()) return give_up(role, reason, hopeless);
  if (role.restarts >= options_.restarts) {
    return give_up(role, reason, fmt::format("has no restarts left of {}", options_.restarts));
  }
  const Time delay = delay_before_start(role);
  ++role.restarts;
  role.start_at = now + delay;
  const std::string when = delay.count() > 0 ? fmt::format(" in {:.3g} s", seconds(delay)) : "";
  report(Kind::died, role,
         fmt::format("{}; restarting it{} ({} of {})", reason, when, role.restarts, options_.restarts));
}

Time Supervisor::Impl::delay_before_start(const RoleState& role) const {
  if (role.unreachable) return options_.first_reconnect * (role.same_failures > 1 ? 4 : 1);
  if (role.quick_deaths < 2) return Time(0);
  return std::min(options_.first_backoff * (1 << std::min(role.quick_deaths - 2, 10)), kLongestBackoff);
}

void Supervisor::Impl::give_up(RoleState& role, const std::string& reason, const std::string& why) {
  report(Kind::died, role, reason);
  // Files cannot be collected from a host that was never reached, however the training goes.
  if (role.unreachable) return fail(role, 1, fmt::format("{}: {}", role.process.name(), reason));
  if (can_do_without(role)) return report(Kind::message, role, why + "; training goes on without it");
  fail(role, 1, fmt::format("{} died ({}) and {}", role.process.name(), reason, why));
}

bool Supervisor::Impl::can_do_without(const RoleState& role) const {
  if (!role.process.task.trains()) return role.process.task.role == cluster::Role::evaluator;
  // A limit, or a path that failed for several roles, concerns the machine: other roles on it will fail as well.
  const bool machine =
      role.reported && role.seen.times > 0 && (role.reported->kind == RoleFailure::Kind::limit || role.seen.roles > 1);
  const auto others = std::count_if(roles_.begin(), roles_.end(), [&](const RoleState& other) {
    if (machine && other.process.host == role.process.host) return false;
    return &other != &role && other.process.task.trains() && (other.child || other.start_at || other.done);
  });
  return options_.enough_members > 0 && others >= options_.enough_members;
}

void Supervisor::Impl::fail(const RoleState& role, int code, const std::string& error) {
  if (phase_ == Phase::failed) return;
  phase_ = Phase::failed;
  RoleFailure failure = role.reported.value_or(RoleFailure{});
  if (failure.role.empty()) failure.role = role.process.name();
  failure.text = error;
  outcome_ = {code, std::move(failure)};
  request_end_of_all(SIGTERM, options_.terminate);
}

void Supervisor::Impl::finish_when_trained() {
  if (phase_ != Phase::running || !trained(roles_, options_)) return;
  phase_ = Phase::finishing;
  const Moment now = Clock::now();
  for (RoleState& role : roles_) {
    role.start_at.reset();
    if (role.child) role.deadline = now + time_to_finish(role, roles_, options_);
  }
}

void Supervisor::Impl::look() {
  const Moment now = Clock::now();
  const bool due = now - looked_ >= look_every();
  if (due) looked_ = now;
  for (RoleState& role : roles_) {
    if (role.child && role.deadline && *role.deadline <= now) escalate(role);
    if (role.start_at && *role.start_at <= now) start(role);
    if (role.child && due) look_at(role, now);
  }
  if (now - ticked_ < options_.tick) return;
  ticked_ = now;
  callback_({});
}

void Supervisor::Impl::look_at(RoleState& role, Moment now) {
  if (now - role.error_at >= options_.error_kept) report_error_line(role);
  if (role.process.remote) role.child->write("\n");  // shows that the launcher lives
  if (!role.child->stopped()) {
    role.stopped_since.reset();
    return;
  }
  if (!role.stopped_since) role.stopped_since = now;
  if (now - *role.stopped_since < options_.stopped) return;
  report(Kind::message, role,
         fmt::format("is stopped and was not continued within {:.3g} s; killed", seconds(options_.stopped)));
  role.child->signal(SIGKILL);
  role.stopped_since.reset();
}

Supervisor::Supervisor(std::vector<RoleProcess> roles, const SupervisorOptions& options, Callback callback)
    : impl_(std::make_unique<Impl>(std::move(roles), options, std::move(callback))) {}
Supervisor::~Supervisor() = default;
JobOutcome Supervisor::run() { return impl_->run(); }
void Supervisor::signal(const cluster::Task& task, int number) { impl_->signal(task, number); }

}  // namespace lockstep::launch
