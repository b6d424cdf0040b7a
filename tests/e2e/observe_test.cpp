// The records of every run besides its results: event files, resources, phases; and metrics while it trains.
#include <sys/mount.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <map>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "e2e/cluster.h"
#include "http/client.h"
#include "http/listen.h"
#include "lockstep/error.h"
#include "observe/event_reader.h"

namespace lockstep::testing {
namespace {

using Columns = std::map<std::string, std::vector<double>>;

Columns read_csv(const std::string& path) {
  std::istringstream lines(get_file(path));
  std::string line;
  std::getline(lines, line);
  std::vector<std::string> names;
  std::istringstream titles(line);
  for (std::string name; std::getline(titles, name, ',');) names.push_back(name);
  Columns columns;
  while (std::getline(lines, line)) {
    size_t at = 0;
    for (const std::string& name : names) {
      const size_t end = line.find(',', at);
      const std::string field = line.substr(at, end == std::string::npos ? end : end - at);
      columns[name].push_back(field.empty() ? std::nan("") : std::stod(field));
      at = end == std::string::npos ? line.size() : end + 1;
    }
  }
  return columns;
}

/// Returns the total of a column of bytes per second.
double total(const Columns& columns, const std::string& name) {
  const std::vector<double>& seconds = columns.at("seconds");
  double sum = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const double since = i == 0 ? 0 : seconds[i - 1];
    if (!std::isnan(columns.at(name)[i])) sum += columns.at(name)[i] * (seconds[i] - since);
  }
  return sum;
}

std::vector<std::string> event_files(const std::filesystem::path& folder) {
  std::vector<std::string> files;
  if (!std::filesystem::exists(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) files.push_back(entry.path());
  }
  return files;
}

/// Returns all tags of a folder's only event file, and whether it ends with a whole record.
std::set<std::string> tags_of(const std::filesystem::path& folder) {
  std::set<std::string> tags;
  const std::vector<std::string> files = event_files(folder);
  EXPECT_EQ(files.size(), 1U) << folder;
  for (const std::string& file : files) {
    const auto contents = observe::testing::parse_events(get_file(file));
    EXPECT_EQ(contents.left_over, 0U) << file;
    for (const auto& event : contents.events) {
      if (!event.graph_def().empty()) tags.insert("graph");
      for (const auto& value : event.summary().value()) tags.insert(value.tag());
    }
  }
  return tags;
}

double share_sum(const nlohmann::json& summary) {
  double sum = 0;
  for (const auto& phase : summary["phases"]) sum += phase["share"].get<double>();
  return sum;
}

std::set<std::string> phases_of(const nlohmann::json& summary) {
  std::set<std::string> names;
  for (const auto& phase : summary["phases"]) names.insert(phase["phase"].get<std::string>());
  return names;
}

/// Returns the value of a line that begins with this text; NaN if there is none.
double figure(const std::string& answer, const std::string& beginning) {
  const size_t at = answer.find("\n" + beginning);
  if (at == std::string::npos) return std::nan("");
  return std::stod(answer.substr(answer.find(' ', at) + 1));
}

/// Returns this many free ports in a row, above those that launchers and outgoing connections use.
int free_ports(int count) {
  for (int port = 10000 + static_cast<int>(::getpid() % 8000); port < 20000; port += count) {
    try {
      for (int i = 0; i < count; ++i) http::listen_at({"127.0.0.1", port + i}, "test");
      return port;
    } catch (const IoError&) {  // a port is taken
    }
  }
  return 0;
}

class Observe : public ClusterTest {};

TEST_F(Observe, ARunLeavesItsRecordsUnasked) {
  (void)succeed(quick_train("lenet", {"--log-every", "10", "--summary-every", "10", "--monitor-every", "0.05"}));
  const std::filesystem::path run = folder / "runs/lenet-1";
  const std::set<std::string> tags = tags_of(run);
  for (const char* tag :
       {"graph", "train/loss", "train/accuracy", "train/learning_rate", "train/examples_per_second", "train/staleness",
        "train/wait_share", "eval/loss", "eval/accuracy", "phases/forward", "monitor/cpu_percent", "monitor/rss_bytes",
        "weights/conv1/weights", "gradients/conv1/weights", "pictures/samples", "_hparams_/experiment",
        "_hparams_/session_start_info", "_hparams_/session_end_info"}) {
    EXPECT_TRUE(tags.contains(tag)) << tag;
  }
  const Columns monitor = read_csv(run / "monitor.csv");
  ASSERT_TRUE(monitor.contains("cpu_percent"));
  EXPECT_GT(monitor.at("rss_bytes").back(), 1e6);

  const Columns phases = read_csv(run / "phases.csv");
  ASSERT_EQ(phases.at("step").size(), 5U) << "a line every 10 of 40 steps, and one for the end";
  EXPECT_EQ(std::accumulate(phases.at("steps").begin(), phases.at("steps").end(), 0.0), 40);
  const nlohmann::json json = summary("lenet-1");
  EXPECT_NEAR(share_sum(json), 1, 1e-9);
  EXPECT_GT(std::accumulate(phases.at("evaluation").begin(), phases.at("evaluation").end(), 0.0), 0);
  const std::set<std::string> names = phases_of(json);
  for (const char* name : {"forward", "backward", "optimizer", "evaluation", "checkpoint"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  for (const char* name : {"push", "pull", "transfer"}) EXPECT_FALSE(names.contains(name)) << name;
  double seconds = 0;
  for (const auto& phase : json["phases"]) seconds += phase["seconds"].get<double>();
  EXPECT_NEAR(seconds, json["seconds"].get<double>(), 0.05 * json["seconds"].get<double>() + 0.01);
  EXPECT_GT(json["resources"]["cpu_percent"]["max"], 0);
  EXPECT_FALSE(json["host"].get<std::string>().empty());
}

TEST_F(Observe, AnErrorLeavesItsPhasesToo) {
  const Ended ended = run(quick_train("autoencoder", {"--optimizer", "sgd", "--lr", "1000"}));
  EXPECT_NE(ended.code, 0);
  EXPECT_NEAR(share_sum(summary("autoencoder-1")), 1, 1e-9);
}

TEST_F(Observe, NothingIsWrittenWhereNothingIsWanted) {
  (void)succeed(quick_train("lr", {"--summary-every", "never", "--monitor-every", "0", "--log-every", "0"}));
  EXPECT_THAT(event_files(folder / "runs/lr-1"), IsEmpty());
  for (const char* file : {"monitor.csv", "phases.csv", "trace.json"}) {
    EXPECT_FALSE(std::filesystem::exists(folder / ("runs/lr-1/" + std::string(file)))) << file;
  }
  EXPECT_FALSE(summary("lr-1").contains("resources"));
}

TEST_F(Observe, AResumedRunBeginsAnEventFileOfItsOwn) {
  (void)succeed(quick_train("lr"));
  const std::string before = event_files(folder / "runs/lr-1").at(0);
  const std::string content = get_file(before);
  (void)succeed({"train", "--resume", "runs/lr-1", "--epochs", "3"});
  EXPECT_EQ(event_files(folder / "runs/lr-1").size(), 2U);
  EXPECT_EQ(get_file(before), content) << "the first is left alone";
}

TEST_F(Observe, EveryRoleOfAClusterIsRecorded) {
  const Result result = train("run", Words{"lr", "--workers", "2", "--ps", "1", "--evaluator", "--batch", "50",
                                           "--epochs", "4", "--monitor-every", "0.05"} +
                                         data(2000));
  for (const char* role : {"run", "run/worker-1", "run/ps-0", "run/evaluator-0"}) {
    const std::set<std::string> tags = tags_of(folder / role);
    EXPECT_TRUE(tags.contains("monitor/wire_sent")) << role;
    EXPECT_TRUE(std::filesystem::exists(folder / (std::string(role) + "/monitor.csv"))) << role;
    EXPECT_TRUE(nlohmann::json::parse(get_file(folder / (std::string(role) + "/summary.json"))).contains("resources"))
        << role;
  }
  EXPECT_TRUE(tags_of(folder / "run").contains("_hparams_/session_start_info"));
  EXPECT_FALSE(tags_of(folder / "run/worker-1").contains("_hparams_/session_start_info")) << "one session per run";
  EXPECT_TRUE(tags_of(folder / "run/evaluator-0").contains("eval/accuracy"));

  const nlohmann::json worker = nlohmann::json::parse(get_file(folder / "run/worker-1/summary.json"));
  EXPECT_NEAR(share_sum(worker), 1, 1e-9);
  for (const char* name : {"push", "pull", "forward", "backward"})
    EXPECT_TRUE(phases_of(worker).contains(name)) << name;
  const nlohmann::json server = nlohmann::json::parse(get_file(folder / "run/ps-0/summary.json"));
  EXPECT_EQ(server["updates"], result.steps);
  for (const char* name : {"receive", "apply", "send"}) EXPECT_TRUE(phases_of(server).contains(name)) << name;
  const Columns stages = read_csv(folder / "run/ps-0/phases.csv");
  const auto all = [&](const std::string& name) {
    const std::vector<double>& values = stages.at(name);
    return std::accumulate(values.begin(), values.end(), 0.0);
  };
  EXPECT_EQ(all("pushes"), server["pushes"].get<double>());
  for (const nlohmann::json& phase : server["phases"]) {
    const double seconds = phase["seconds"];
    EXPECT_NEAR(all(phase["phase"]), seconds, 1e-6 * seconds) << phase["phase"];
  }

  // A worker sends its gradients and receives the parameters; headers and heartbeats are small beside them.
  const double bytes = 7850 * 4.0 * static_cast<double>(result.steps);
  const Columns sent = read_csv(folder / "run/worker-1/monitor.csv");
  EXPECT_GT(total(sent, "wire_sent"), 0.98 * bytes);
  EXPECT_LT(total(sent, "wire_sent"), 1.15 * bytes);
  EXPECT_GT(total(sent, "wire_received"), 0.98 * bytes);
  EXPECT_LT(total(sent, "wire_received"), 1.25 * bytes);
  EXPECT_GT(total(read_csv(folder / "run/ps-0/monitor.csv"), "wire_received"), 2 * 0.98 * bytes);
}

TEST_F(Observe, AllReduceTellsTransferAndWire) {
  if (std::getenv("LOCKSTEP_HAS_GLOO") == nullptr) GTEST_SKIP() << "without Gloo";  // NOLINT(concurrency-mt-unsafe)
  const Result result = train("run", Words{"lenet", "--workers", "2", "--strategy", "allreduce", "--batch", "50",
                                           "--epochs", "2", "--monitor-every", "0.05"} +
                                         data(2000));
  const nlohmann::json worker = nlohmann::json::parse(get_file(folder / "run/worker-1/summary.json"));
  EXPECT_TRUE(phases_of(worker).contains("transfer"));
  EXPECT_FALSE(phases_of(worker).contains("push"));
  // With two members, each sends half of the gradients and half of the sums.
  const double bytes = 61706 * 4.0 * static_cast<double>(result.steps);
  const double sent = total(read_csv(folder / "run/worker-1/monitor.csv"), "wire_sent");
  EXPECT_GT(sent, 0.95 * bytes);
  EXPECT_LT(sent, 1.3 * bytes);
}

/// Checks what promtool and readers ask for: each metric has a help text of its own, counters and they alone end in
/// _total, and every sample has these labels. Adds the names to `served`.
void expect_documented(const std::string& page, const std::string& labels, std::set<std::string>& served) {
  std::set<std::string> texts;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string mark;
    std::string kind;
    std::string name;
    if (!line.starts_with('#')) {
      EXPECT_THAT(line, HasSubstr(labels));
      continue;
    }
    std::string rest;
    words >> mark >> kind >> name >> std::ws;
    std::getline(words, rest);
    served.insert(name);
    if (kind == "TYPE") {
      EXPECT_EQ(rest == "counter", name.ends_with("_total")) << line;
    }
    if (kind == "HELP") {
      EXPECT_GT(rest.size(), 8U) << line;
      EXPECT_TRUE(texts.insert(rest).second) << line;
    }
  }
  EXPECT_GT(texts.size(), 20U);
}

/// Asks Prometheus' own checker where it is installed.
void expect_promtool_agrees(const std::string& body, const std::string& file) {
  if (std::system("command -v promtool > /dev/null") != 0) return;  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
  put_file(file, {reinterpret_cast<const uint8_t*>(body.data()), body.size()});
  const std::string command = "promtool check metrics < " + file + " > " + file + ".told 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0)  // NOLINT(cert-env33-c,concurrency-mt-unsafe)
      << get_file(file + ".told");
}

/// Returns the names that the queries of the Grafana dashboard use.
std::set<std::string> metrics_of_dashboard() {
  const char* root = std::getenv("LOCKSTEP_SOURCE");  // NOLINT(concurrency-mt-unsafe)
  const auto dashboard = nlohmann::json::parse(get_file(std::string(root) + "/tools/grafana/lockstep.json"));
  std::string queries;
  for (const auto& panel : dashboard["panels"]) {
    for (const auto& target : panel["targets"]) queries += target["expr"].get<std::string>() + " ";
  }
  for (const auto& variable : dashboard["templating"]["list"]) queries += variable.value("definition", "") + " ";
  std::set<std::string> names;
  static const std::regex kName("lockstep_[a-z_]+");
  for (std::sregex_iterator found(queries.begin(), queries.end(), kName), none; found != none; ++found) {
    names.insert(found->str());
  }
  EXPECT_GT(names.size(), 10U);
  return names;
}

TEST_F(Observe, MetricsOfEveryRoleCanBeReadWhileItTrains) {
  const int port = free_ports(3);
  Process process(
      program_path(),
      Words{"train", "lr", "--workers", "2", "--ps", "1", "--epochs", "100000", "--metrics", std::to_string(port)} +
          data(2000),
      options());
  std::map<std::string, double> steps;
  for (int attempt = 0; attempt < 1200 && steps.size() < 3; ++attempt) {
    for (int i = 0; i < 3; ++i) {
      const std::string answer = get(port + i, "/metrics");
      for (const char* role : {"ps:0", "worker:0", "worker:1"}) {
        const double step = figure(answer, std::string("lockstep_step{role=\"") + role + "\"");
        if (step > 0 && figure(answer, std::string("lockstep_rss_bytes{role=\"") + role + "\"") > 0) steps[role] = step;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(steps.size(), 3U) << "of three roles";
  std::set<std::string> served;
  for (int i = 0; i < 3; ++i) {
    const std::string body = body_of(get(port + i, "/metrics"));
    expect_documented(body, "run=\"lr-1\",model=\"lr\",dataset=\"synthetic\"", served);
    expect_promtool_agrees(body, folder / "metrics.txt");
  }
  // An evaluating role serves these two after its first evaluation, which this training has not reached.
  served.insert({"lockstep_eval_loss", "lockstep_eval_accuracy"});
  for (const std::string& name : metrics_of_dashboard()) EXPECT_THAT(served, ::testing::Contains(name));
  const double before = steps["worker:1"];
  double after = before;
  for (int attempt = 0; attempt < 6000 && !(after > before); ++attempt) {
    for (int i = 0; i < 3; ++i)
      after = std::fmax(after, figure(get(port + i, "/metrics"), "lockstep_step{role=\"worker:1\""));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_GT(after, before);
  process.signal(SIGINT);
  (void)process.finish();
}

TEST_F(Observe, BadMetricsAddressesAreRefusedInOneLine) {
  EXPECT_THAT(fail(quick_train("lr", {"--metrics", "91000"}), 2), HasSubstr("91000"));
  EXPECT_THAT(fail(quick_train("lr", {"--metrics", "0.0.0.0:9100"}), 2), HasSubstr("--insecure"));
  EXPECT_THAT(fail(quick_train("lr", {"--summary-every", "0"}), 2), AllOf(HasSubstr("'0'"), HasSubstr("never")));
  EXPECT_THAT(fail(quick_train("lr", {"--monitor-every", "0.0001"}), 2), HasSubstr("0.001"));
  EXPECT_THAT(fail(quick_train("lr", {"--workers", "2", "--metrics", "127.0.0.1:65534"}), 2), HasSubstr("65536"));
  EXPECT_FALSE(std::filesystem::exists(folder / "runs")) << "refused before anything was made";
}

TEST_F(Observe, TrainingGoesOnWhereTheMetricsPortIsTaken) {
  const base::FileHandle taken = http::listen_at({"127.0.0.1", 0}, "test");
  const std::string port = std::to_string(http::port_of(taken));
  const Ended ended = run(quick_train("lr", {"--metrics", "127.0.0.1:" + port}));
  EXPECT_EQ(ended.code, 0);
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err, AllOf(HasSubstr("warning"), HasSubstr(port)));
}

/// A killed worker returns at the group's step, and its earlier records count.
TEST_F(Observe, ARestartedWorkerGoesOnWithItsRecords) {
  Process process(
      program_path(),
      Words{"train", "lr", "--workers", "2", "--ps", "1", "--async", "--epochs", "100000", "--run-dir", "run"} +
          data(2000),
      options());
  const auto lines = [&] { return read_csv(folder / "run/worker-1/phases.csv")["step"]; };
  const auto wait_for = [&](double step) {
    for (int attempt = 0; attempt < 2400; ++attempt) {
      const std::vector<double> steps = lines();
      if (!steps.empty() && steps.back() >= step) return steps;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return std::vector<double>();
  };
  const std::vector<double> before = wait_for(300);
  ASSERT_FALSE(before.empty());
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string words = get_file(entry.path() / "cmdline");
    const bool ours = words.find("--task=worker:1") != std::string::npos;
    std::error_code ignored;
    if (ours &&
        std::filesystem::read_symlink(entry.path() / "cwd", ignored) == std::filesystem::canonical(folder.path())) {
      ::kill(std::stoi(entry.path().filename()), SIGKILL);
    }
  }
  const std::vector<double> after = wait_for(before.back() + 2000);
  process.signal(SIGINT);
  (void)process.finish();
  ASSERT_FALSE(after.empty());
  EXPECT_EQ(after.front(), before.front()) << "its first lines are still there";
  EXPECT_TRUE(std::is_sorted(after.begin(), after.end()));
  EXPECT_EQ(event_files(folder / "run/worker-1").size(), 2U);
  double fastest = 0;
  std::vector<double> starts;
  for (const std::string& file : event_files(folder / "run/worker-1")) {
    for (const auto& event : observe::testing::parse_events(get_file(file)).events) {
      if (event.has_session_log()) starts.push_back(static_cast<double>(event.step()));
      for (const auto& value : event.summary().value()) {
        if (value.tag() == "train/examples_per_second") fastest = std::fmax(fastest, value.simple_value());
      }
    }
  }
  std::sort(starts.begin(), starts.end());
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_LE(starts[0], before.front());
  EXPECT_GT(starts[1], before.back()) << "what it had told before counts";
  EXPECT_LT(fastest, 5e6) << "what others did while it was away is not its speed";
}

TEST_F(Observe, TrainingGoesOnWhereEventFilesCannotBeWritten) {
  put_file(folder / "taken", std::vector<uint8_t>{1});
  const Ended ended = run(quick_train("lr", {"--summary-dir", "taken"}));
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_one_line(ended.err);
  EXPECT_THAT(ended.err, HasSubstr("warning"));
  EXPECT_EQ(summary("lr-1")["stop_reason"], "epochs");
}

TEST_F(Observe, AFullDiskOfEventFilesEndsWithAWholeRecord) {
  std::filesystem::create_directories(folder / "small");
  if (::mount("tmpfs", (folder / "small").c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "cannot mount a tmpfs: " << std::strerror(errno);
  }
  const Ended ended = run(quick_train("lenet", {"--summary-dir", "small", "--summary-every", "1"}));
  size_t left_over = 1;
  size_t events = 0;
  for (const std::string& file : event_files(folder / "small/lenet-1")) {
    const auto contents = observe::testing::parse_events(get_file(file));
    left_over = contents.left_over;
    events = contents.events.size();
  }
  ::umount((folder / "small").c_str());
  EXPECT_EQ(ended.code, 0) << ended.err;
  expect_one_line(ended.err);
  EXPECT_EQ(left_over, 0U);
  EXPECT_GT(events, 1U);
  EXPECT_EQ(summary("lenet-1")["stop_reason"], "epochs");
}

TEST_F(Observe, EventFilesAreWholeAfterAKill) {
  Process process(program_path(),
                  quick_train("lr", {"--epochs", "1000000", "--summary-every", "1", "--run-dir", "run"}), options());
  size_t events = 0;
  for (int attempt = 0; attempt < 2400 && events < 100; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (const std::string& file : event_files(folder / "run")) {
      events = observe::testing::parse_events(get_file(file)).events.size();
    }
  }
  EXPECT_GE(events, 100U);
  process.signal(SIGKILL);
  (void)process.finish();
  for (const std::string& file : event_files(folder / "run")) {
    EXPECT_EQ(observe::testing::parse_events(get_file(file)).left_over, 0U);
  }
}

}  // namespace
}  // namespace lockstep::testing
