#include "guest/guest_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>

#include "base/address.h"
#include "base/file.h"
#include "base/host.h"
#include "base/own_program.h"
#include "base/yaml_tree.h"
#include "emulate/faults.h"
#include "guest/host_roles.h"
#include "guest/role_environment.h"
#include "guest/run_folder.h"
#include "launch/collect.h"
#include "launch/emulated_nodes.h"
#include "launch/fault_maker.h"
#include "launch/local_launch.h"
#include "lockstep/error.h"
#include "process/child_process.h"
#include "process/descendants.h"

namespace lockstep::guest {
namespace {

using process::Stream;
using Steady = std::chrono::steady_clock;

constexpr int kTickMilliseconds = 100;
constexpr double kGraceSeconds = 3;      ///< from SIGTERM to SIGKILL
constexpr double kLeavingSeconds = 0.5;  ///< for children that end a little later than their parent
constexpr std::chrono::seconds kPatience{10};
constexpr int kMasterPort = 29500;  ///< on nodes with a network of their own
constexpr int kSignalled = 128;
constexpr int kSshFailed = 255;
constexpr double kBeatSeconds = 1;        ///< between signs of life to hosts
constexpr double kHostGraceSeconds = 20;  ///< from SIGTERM to the end of the connection

double since(Steady::time_point then) { return std::chrono::duration<double>(Steady::now() - then).count(); }

struct Role {
  Role(cluster::Task wanted, const std::vector<FigureSource>& sources) : task(wanted), reader(sources) {}

  cluster::Task task;
  std::string name;  ///< "worker:1", "process"
  std::string folder;
  Values names;  ///< values of names in braces, as the role sees them
  std::unique_ptr<process::Child> child = {};
  std::optional<process::Ending> ending = {};
  std::optional<Steady::time_point> ended = {};  ///< first look that found it ended
  double finished = records::kUnknown;
  OutputReader reader;
  std::ofstream log = {};
  std::string last_line = {};
  std::string last_error = {};

  [[nodiscard]] bool trains(bool alone) const { return alone || task.trains(); }
};

class GuestRun {
 public:
  explicit GuestRun(const GuestOptions& options) : options_(options) {}

  GuestOutcome run();

 private:
  void place();
  void place_on_hosts();
  void beat();
  void ask_to_end(Role& role, double waited) const;
  void bring_files();
  [[nodiscard]] process::Command command_of(const Role& role) const;
  [[nodiscard]] std::string host_of(const Role& role);
  [[nodiscard]] std::vector<cluster::Task> tasks() const;
  [[nodiscard]] std::string role_of(const cluster::Task& task) const { return alone() ? "process" : task.str(); }
  void add_roles();
  void plan_faults(const std::vector<emulate::Fault>& faults);
  void signal_program(const std::string& role, int number) const;
  void start(Role& role);
  void watch();
  void pause();
  void read(Role& role);
  void look(Role& role);
  void stop();
  void end_left_behind();
  void collect();
  [[nodiscard]] Figures figures_of(const Role& role) const;
  [[nodiscard]] std::vector<FigureSource> sources_of(const Role& role) const;
  [[nodiscard]] std::set<std::string> adopted() const;
  [[nodiscard]] bool done() const;
  [[nodiscard]] bool alone() const { return places_.cluster.nodes.empty(); }
  [[nodiscard]] Role& chief() const { return *roles_.front(); }

  const GuestOptions& options_;
  process::Subreaper subreaper_;
  Places places_;
  std::optional<launch::EmulatedNodes> nodes_;
  std::optional<launch::SshJob> hosts_;
  std::optional<launch::FaultMaker> faults_;
  std::vector<std::unique_ptr<Role>> roles_;  ///< the chief first
  RunResult result_;
  Steady::time_point began_;
  Steady::time_point beat_;
  double began_at_ = 0;  ///< seconds since 1970
  std::string failure_;
  int signal_ = 0;
  double paused_ = 0;  ///< seconds
  std::set<std::string> left_behind_;
};

/// Sets the places of the roles, and the nodes.
void GuestRun::place() {
  if (!options_.hosts.file.empty()) return place_on_hosts();
  cluster::LocalCluster wanted = options_.cluster;
  if (!options_.emulate.empty()) wanted.network = launch::kEmulatedNetwork;
  if (wanted.workers > 0 || !wanted.layout.empty()) places_.cluster = cluster::local_cluster(wanted);
  places_.one_host = options_.emulate.empty();
  places_.hosts_file = std::filesystem::absolute(options_.run_dir + "/hosts").string();
  if (!options_.emulate.empty()) {
    std::vector<launch::NodeRoles> roles;
    for (const cluster::Node& node : places_.cluster.nodes) {
      launch::NodeRoles& here = roles.emplace_back();
      for (const cluster::Task& task : node.tasks) here.push_back(task.str());
    }
    if (roles.empty()) roles.push_back({"process"});
    nodes_.emplace(options_.emulate, std::move(roles));
    places_.master_port = kMasterPort;
    if (!alone()) places_.master_host = places_.cluster.nodes[node_of(places_, places_.cluster.spec.chief_task())].host;
  } else {
    cluster::LocalCluster one;
    one.workers = 1;
    one.ps = 0;
    places_.master_port = base::parse_address(cluster::local_spec(one).workers.front()).port;
  }
}

void GuestRun::place_on_hosts() {
  hosts_ = job_on(options_.hosts, options_.run_dir);
  places_ = places_of(*hosts_);
}

/// Returns the tasks of the roles, the chief's first.
std::vector<cluster::Task> GuestRun::tasks() const {
  std::vector<cluster::Task> all{alone() ? cluster::Task{} : places_.cluster.spec.chief_task()};
  for (const cluster::Task& task : places_.cluster.spec.tasks()) {
    if (!(task == all.front())) all.push_back(task);
  }
  return all;
}

void GuestRun::add_roles() {
  for (const cluster::Task& task : tasks()) {
    auto role = std::make_unique<Role>(task, options_.figures);
    role->name = role_of(task);
    role->folder = roles_.empty() ? options_.run_dir : options_.run_dir + "/" + task.folder();
    role->names = names_of(places_, task, hosts_ ? hosts_->run_dir : options_.run_dir);
    role->names.insert(role->names.end(), options_.settings.begin(), options_.settings.end());
    base::make_directories(role->folder);
    role->log.open(role->folder + "/output.log", std::ios::trunc);
    roles_.push_back(std::move(role));
  }
}

/// Returns the faults that are wanted.
std::vector<emulate::Fault> faults_of(const GuestOptions& options) {
  if (options.faults.empty()) return {};
  if (!options.hosts.file.empty())
    throw UsageError("faults: they apply only to programs on this machine or on its emulated nodes");
  return emulate::parse_faults(options.faults);
}

/// Throws UsageError for a fault of an unknown role or node.
void GuestRun::plan_faults(const std::vector<emulate::Fault>& faults) {
  if (faults.empty()) return;
  std::vector<std::string> names;
  for (const cluster::Task& task : tasks()) names.push_back(role_of(task));
  launch::check_faults(faults, names, nodes_ ? std::max<size_t>(places_.cluster.nodes.size(), 1) : 0);
  faults_.emplace(faults, nodes_ ? &nodes_->cluster() : nullptr);
  faults_->signal_by([this](const std::string& role, int number) { signal_program(role, number); });
}

/// Signals the program of a role and all that it started, but not the monitor, which records what follows. Before the
/// program has started, its monitor gets the signal.
void GuestRun::signal_program(const std::string& name, int number) const {
  const auto role = std::find_if(roles_.begin(), roles_.end(), [&](const auto& each) { return each->name == name; });
  if (role == roles_.end() || (*role)->child == nullptr || (*role)->ending) return;
  const pid_t monitor = (*role)->child->pid();
  const std::vector<process::Descendant> all = process::descendants();
  std::set<pid_t> tree{monitor};
  for (size_t before = 0; before != tree.size();) {
    before = tree.size();
    for (const process::Descendant& each : all) {
      if (tree.contains(each.parent)) tree.insert(each.pid);
    }
  }
  if (tree.size() > 1 && number != SIGCONT) tree.erase(monitor);
  for (const pid_t pid : tree) ::kill(pid, number);
}

process::Command GuestRun::command_of(const Role& role) const {
  std::string folder = role.folder;
  if (hosts_) folder = hosts_->run_dir + (&role == &chief() ? "" : "/" + role.task.folder());
  std::vector<std::string> words{
      hosts_ ? hosts_->program : "lockstep", "monitor", "--quiet", "--every=" + options_.monitor_every,
      "--csv=" + folder + "/monitor.csv",    "--"};
  for (std::string& word : filled_in(options_.command, role.names)) words.push_back(std::move(word));
  Values environment = environment_of(places_, role.task);
  environment.emplace_back("PYTHONUNBUFFERED", "1");  // figures arrive when they are printed
  const size_t node = node_of(places_, role.task);
  if (hosts_) return on_host(*hosts_, places_.cluster.nodes[node], folder, environment, words);
  process::Command command;
  command.program = base::own_program();
  command.argv = std::move(words);
  command.environment = std::move(environment);
  return command;
}

void GuestRun::start(Role& role) {
  process::Command command = command_of(role);
  if (nodes_) {
    nodes_->put_on_node(command, node_of(places_, role.task));
    // The host's name does not lead to the node's address.
    for (const char* name : {"GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"})
      command.environment.emplace_back(name, "eth0");
  }
  role.child = std::make_unique<process::Child>(command);
  if (faults_) faults_->started(role.name, role.child->pid());
}

std::string GuestRun::host_of(const Role& role) {
  const size_t node = node_of(places_, role.task);
  if (hosts_) return places_.cluster.nodes[node].ssh;
  return nodes_ ? nodes_->cluster().name(node) : base::host_name();
}

/// Shows the hosts that this launcher lives.
void GuestRun::beat() {
  if (!hosts_ || since(beat_) < kBeatSeconds) return;
  beat_ = Steady::now();
  for (const auto& role : roles_) {
    if (role->child && !role->ending) role->child->write("\n");
  }
}

/// Returns processes that lost their parents and came to this one.
std::set<std::string> GuestRun::adopted() const {
  std::set<std::string> names;
  for (const process::Descendant& each : process::descendants()) {
    const bool ours = std::any_of(roles_.begin(), roles_.end(), [&](const auto& role) {
      return role->child != nullptr && role->child->pid() == each.pid;
    });
    if (each.parent == getpid() && !ours && !each.ended) names.insert(fmt::format("{} ({})", each.name, each.pid));
  }
  return names;
}

void GuestRun::read(Role& role) {
  const double now = since(began_);
  const auto take = [&](const std::string& line, bool error) {
    role.log << line << '\n';
    if (const std::string left = hosts_ ? left_on_host(line) : ""; !left.empty()) {
      left_behind_.insert(fmt::format("{} on {}", left, host_of(role)));
      return;
    }
    if (!line.empty()) (error ? role.last_error : role.last_line) = line;
    role.reader.read(line, now);
  };
  role.child->read(Stream::out, [&](const std::string& line) { take(line, false); });
  role.child->read(Stream::err, [&](const std::string& line) { take(line, true); });
}

/// Reaps a role that has ended. Gives its children a moment to end, too, and remembers those that did not.
void GuestRun::look(Role& role) {
  pollfd end{role.child->end_fd(), POLLIN, 0};
  if (role.ending || ::poll(&end, 1, 0) != 1) return;
  if (!role.ended) role.ended = Steady::now();
  const std::set<std::string> others = adopted();
  if (!others.empty() && since(*role.ended) < kLeavingSeconds) return;
  left_behind_.insert(others.begin(), others.end());
  role.finished = std::chrono::duration<double>(*role.ended - began_).count();
  read(role);
  role.ending = role.child->reap();
  // `lockstep monitor` ends as a shell would.
  const bool unreached = hosts_ && role.ending && role.ending->number == kSshFailed;
  if (role.ending && !role.ending->signalled && role.ending->number > kSignalled && !unreached) {
    role.ending = process::Ending{true, role.ending->number - kSignalled};
  }
  if (role.ending && faults_) faults_->ended(role.name);
  if (!role.ending || role.ending->ok() || !failure_.empty()) return;
  const std::string& line = role.last_error.empty() ? role.last_line : role.last_error;
  const std::string where = hosts_ ? " on " + host_of(role) : "";
  failure_ = fmt::format("{}{}: {}{}{}", role.name, where, unreached ? "the connection failed" : role.ending->text(),
                         line.empty() ? "" : ": ", line);
}

bool GuestRun::done() const {
  return std::all_of(roles_.begin(), roles_.end(),
                     [&](const auto& role) { return role->ending || !role->trains(alone()); });
}

void GuestRun::watch() {
  while (!done() && failure_.empty() && signal_ == 0) {
    std::vector<pollfd> fds;
    if (options_.signals >= 0) fds.push_back({options_.signals, POLLIN, 0});
    for (const auto& role : roles_) {
      if (role->ending) continue;
      // One that has ended waits for its children; its descriptor would not let this thread sleep.
      if (!role->ended) fds.push_back({role->child->end_fd(), POLLIN, 0});
      for (const Stream stream : {Stream::out, Stream::err}) fds.push_back({role->child->fd(stream), POLLIN, 0});
    }
    ::poll(fds.data(), fds.size(), kTickMilliseconds);
    beat();
    if (faults_) faults_->make_due(options_.run_dir + "/faults.jsonl");
    for (const auto& role : roles_) {
      if (!role->ending) read(*role);
      if (!role->ending) look(*role);
    }
    signalfd_siginfo info{};
    if (options_.signals >= 0 && (fds.front().revents & POLLIN) != 0 &&
        ::read(options_.signals, &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGTSTP) {
        if (!hosts_) pause();  // hosts would take a suspended launcher for dead
      } else {
        signal_ = static_cast<int>(info.ssi_signo);
      }
    }
    if (since(began_) - paused_ <= options_.deadline || done() || !failure_.empty()) continue;
    std::vector<std::string> running;
    for (const auto& role : roles_) {
      if (!role->ending && role->trains(alone())) running.push_back(role->name);
    }
    failure_ = fmt::format("{} still ran at the deadline of {:g} s", fmt::join(running, ", "), options_.deadline);
  }
}

/// Stops all roles and then this process, as Ctrl-Z asks, until this process is continued. The time between counts, but
/// not for the deadline nor for scheduled faults.
void GuestRun::pause() {
  const auto tell = [&](int number) {
    for (const auto& role : roles_) {
      if (role->child != nullptr && !role->ending) role->child->signal(number);
    }
  };
  tell(SIGSTOP);
  const Steady::time_point before = Steady::now();
  raise(SIGSTOP);
  paused_ += since(before);
  tell(SIGCONT);
  if (faults_) faults_->resumed(Steady::now() - before);
}

void GuestRun::ask_to_end(Role& role, double waited) const {
  const bool patient = waited < kGraceSeconds;
  if (hosts_ && waited < kHostGraceSeconds) {
    role.child->write(patient ? "term\n" : "kill\n");
  } else if (!patient) {
    role.child->signal(SIGKILL);
  }
}

/// Ends the roles that still run: servers, evaluators, or all after a failure.
void GuestRun::stop() {
  const Steady::time_point asked = Steady::now();
  const auto runs = [](const auto& role) { return role->child != nullptr && !role->ending; };
  for (const auto& role : roles_) {
    if (runs(role) && !hosts_) role->child->signal(SIGTERM);
  }
  while (std::any_of(roles_.begin(), roles_.end(), runs)) {
    for (const auto& role : roles_) {
      if (!runs(role)) continue;
      ask_to_end(*role, since(asked));
      read(*role);
      role->ending = role->child->reap();
    }
    ::poll(nullptr, 0, kTickMilliseconds / 5);
  }
}

void GuestRun::end_left_behind() {
  for (std::string& name : process::end_descendants(kPatience)) left_behind_.insert(std::move(name));
  if (left_behind_.empty() || !failure_.empty() || signal_ != 0 || !options_.note) return;
  options_.note(fmt::format("the program left processes behind, which were ended: {}", fmt::join(left_behind_, ", ")));
}

/// Copies the files of the hosts into the run's folder, and removes them there.
void GuestRun::bring_files() {
  if (!hosts_) return;
  const std::string problems = launch::collect(*hosts_, options_.run_dir, true);
  if (!problems.empty() && failure_.empty()) failure_ = "cannot collect the run's files: " + problems;
}

std::vector<FigureSource> GuestRun::sources_of(const Role& role) const {
  std::vector<FigureSource> sources = options_.figures;
  Values names = names_of(places_, role.task, options_.run_dir);  // the files are here now
  names.insert(names.end(), options_.settings.begin(), options_.settings.end());
  for (FigureSource& source : sources) {
    if (source.kind != FigureSource::Kind::output) source.where = filled_in({source.where}, names).front();
  }
  return sources;
}

/// Reads the figures of a role. A file that is the same for all roles has the chief's.
Figures GuestRun::figures_of(const Role& role) const {
  std::vector<FigureSource> sources = sources_of(role);
  const bool is_chief = &role == &chief();
  if (!is_chief) {
    const std::vector<FigureSource> shared = sources_of(chief());
    for (size_t i = sources.size(); i-- > 0;) {
      if (sources[i].where == shared[i].where) sources.erase(sources.begin() + static_cast<ptrdiff_t>(i));
    }
  }
  Points points = role.reader.points();
  try {
    for (Point& point : read_files(sources, began_at_)) points.push_back(std::move(point));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: figures: {}", role.name, error.what()));
  }
  if (is_chief) {
    if (const std::vector<std::string> names = missing(sources, points); !names.empty()) {
      const auto source =
          std::find_if(sources.begin(), sources.end(), [&](const auto& s) { return s.figure == names.front(); });
      throw Error(fmt::format("{}: reported no {}: nothing fits {}; its output is in {}/output.log", role.name,
                              fmt::join(names, ", no "), base::shown(source->text()), role.folder));
    }
  }
  return join(points);
}

void GuestRun::collect() {
  for (const auto& role : roles_) {
    RoleResult one;
    one.role = role->name;
    one.folder = role->folder;
    one.host = host_of(*role);
    one.trains = role->trains(alone());
    one.finished = role->finished;
    if (one.trains) {
      one.figures = figures_of(*role);
      result_.seconds = std::max(result_.seconds, role->finished);
    }
    result_.roles.push_back(std::move(one));
  }
  write_results(result_);
}

GuestOutcome GuestRun::run() {
  check_is_new(options_.run_dir);
  const std::vector<emulate::Fault> faults = faults_of(options_);
  place();
  plan_faults(faults);
  base::make_directories(options_.run_dir);
  add_roles();
  result_.run_dir = options_.run_dir;
  result_.settings = options_.settings;
  result_.command = options_.command;
  write_config(result_);
  base::write_whole_file(options_.run_dir + "/hosts", hosts_text(places_));
  if (hosts_) send_hosts_file(*hosts_, options_.run_dir + "/hosts");
  if (!alone()) base::write_whole_file(options_.run_dir + "/cluster.yaml", launch::cluster_yaml(places_.cluster.spec));
  if (nodes_) nodes_->write(options_.run_dir, false);
  began_ = Steady::now();
  began_at_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (const auto& role : roles_) start(*role);
  if (faults_) faults_->begin();
  watch();
  stop();
  end_left_behind();
  if (nodes_) nodes_->write(options_.run_dir, true);
  bring_files();
  if (signal_ != 0) return {signal_};
  if (!failure_.empty()) throw Error(failure_);
  collect();
  return {};
}

}  // namespace

GuestOutcome run_guest(const GuestOptions& options) { return GuestRun(options).run(); }

}  // namespace lockstep::guest
