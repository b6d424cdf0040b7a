// The cost of a whole exchange with a parameter server, as a ratio to a bare socket that carries the same bytes.
//
//   ps_exchange_bench [--rounds 30] [--model lr|lenet|alexnet] [--durability process] [--spin MICROSECONDS] [--json]
//
// A real server (ps::Server, one worker, synchronous, plain SGD) in one process and a worker's ps::PsExchange in
// another, on loopback, in turn with the bare socket. The gradients are sent in the order of a backward pass, from the
// last layer to the first, and the exchange ends when the new parameters are in place. The optimizer's time, measured
// in the same run on a shard of the same kind and size, is subtracted. Waits block on both sides unless --spin is
// given.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "bare_socket.h"
#include "base/file.h"
#include "ps/parameter_shard.h"
#include "ps/ps_exchange.h"
#include "ps/server.h"

namespace lockstep::bench {
namespace {

struct Options {
  int rounds = 30;
  std::string model;
  std::string folder = std::filesystem::temp_directory_path();
  std::string durability = "process";
  int threads = 0;
  int spin = 0;
  bool json = false;
  bool only = false;
};

struct Model {
  const char* name;
  std::vector<int64_t> tensors;
  double target;
  int rounds;  ///< multiple of the requested rounds
  int block;   ///< consecutive exchanges of one kind

  [[nodiscard]] size_t count() const {
    size_t count = 0;
    for (const int64_t tensor : tensors) count += static_cast<size_t>(tensor);
    return count;
  }
};

const std::vector<Model>& models() {
  static const std::vector<Model> all{
      {"lr", {7840, 10}, 2.5, 20, 10},
      {"lenet", {150, 6, 2400, 16, 48000, 120, 10080, 84, 840, 10}, 2.8, 10, 5},
      {"alexnet",
       {23232, 64, 307200, 192, 663552, 384, 884736, 256, 589824, 256, 37748736, 4096, 16777216, 4096, 4096000, 1000},
       1.3,
       1,
       1}};
  return all;
}

/// Receives all bytes, then sends as many back.
void serve_bare(const Listener& listener, size_t bytes) {
  const base::FileHandle socket = listener.accept();
  Buffer staging(bytes);
  while (receive_all(socket.get(), staging)) send_all(socket.get(), staging);
}

cluster::Spec spec_of(int port) {
  cluster::Spec spec;
  spec.workers = {"127.0.0.1:1"};
  spec.ps = {"127.0.0.1:" + std::to_string(port)};
  return spec;
}

ps::Durability durability_of(const std::string& name) {
  if (name == "machine") return ps::Durability::machine;
  return name == "checkpoint" ? ps::Durability::checkpoint : ps::Durability::process;
}

int threads_of(const Options& options) {
  return options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
}

/// Values that the server's process passes to the worker's through shared memory.
struct Told {
  std::atomic<uint64_t> pushes = 0;
  std::atomic<uint64_t> bytes_copied = 0;
};

Told* shared_memory() {
  void* memory = mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  return new (memory) Told;
}

/// The server's process: a bare server and ours.
class Host {
 public:
  Host(const Model& model, const Options& options) : folder_(options.folder + "/ps-exchange-bench-XXXXXX") {
    if (mkdtemp(folder_.data()) == nullptr) fail("mkdtemp " + folder_);
    const Listener bare;
    {
      const Listener free;
      port_ = free.port();
    }
    bare_port_ = bare.port();
    process_ = fork();
    if (process_ < 0) fail("fork");
    if (process_ == 0) serve(bare, model, options);
  }
  ~Host() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    munmap(told_, sizeof(Told));
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] int bare_port() const { return bare_port_; }
  [[nodiscard]] const std::string& folder() const { return folder_; }
  /// Returns the CPU time of this process and the server's, in seconds.
  [[nodiscard]] double cpu_seconds() const {
    clockid_t server = 0;
    if (clock_getcpuclockid(process_, &server) != 0) fail("the server's clock");
    double seconds = 0;
    for (const clockid_t clock : {server, static_cast<clockid_t>(CLOCK_PROCESS_CPUTIME_ID)}) {
      timespec time{};
      if (clock_gettime(clock, &time) != 0) fail("clock_gettime");
      seconds += static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
    return seconds;
  }
  /// Returns the bytes copied per update; call it once the server has been idle for a moment.
  [[nodiscard]] double copied_per_update() const {
    std::this_thread::sleep_for(4 * kTell);
    return static_cast<double>(told_->bytes_copied) / static_cast<double>(std::max<uint64_t>(told_->pushes, 1));
  }

 private:
  static constexpr std::chrono::milliseconds kTell{50};

  [[noreturn]] void serve(const Listener& bare, const Model& model, const Options& options) const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::thread([&] { serve_bare(bare, model.count() * sizeof(float)); }).detach();
    try {
      ps::ServerOptions server;
      server.spec = spec_of(port_);
      server.folder = folder_ + "/ps-0";
      server.durability = durability_of(options.durability);
      server.job = model.name;
      server.threads = threads_of(options);
      server.spin = std::chrono::microseconds(options.spin);
      ps::Server made(std::move(server));
      std::thread([&] {
        for (;; std::this_thread::sleep_for(kTell)) {
          const ps::Server::Progress progress = made.progress();
          told_->pushes = progress.pushes;
          told_->bytes_copied = progress.bytes_copied;
        }
      }).detach();
      made.run();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "the server: %s\n", error.what());
    }
    _exit(1);
  }

  std::string folder_;
  pid_t process_ = 0;
  int port_ = 0;
  int bare_port_ = 0;
  Told* told_ = shared_memory();
};

program::ParameterStore make_parameters(const Model& model) {
  std::vector<graph::ParameterInfo> infos;
  size_t offset = 0;
  for (const int64_t tensor : model.tensors) {
    infos.push_back({"p" + std::to_string(infos.size()), Shape{tensor}, offset, {}});
    offset += static_cast<size_t>(tensor);
  }
  return {std::move(infos), 1};
}

/// The worker's process, for one model.
class Worker {
 public:
  Worker(const Model& model, const Host& host, const Options& options)
      : parameters_(make_parameters(model)), bare_(connect_to(host.bare_port())), shard_(shard(host, options)) {
    std::fill(parameters_.gradients().begin(), parameters_.gradients().end(), 1.0F);
    staging_.assign(parameters_.count(), 1.0F);
    in_.resize(parameters_.count() * sizeof(float));
    shard_.initialise(0, parameters_.values(), {}, {});
    ps::PsOptions ps;
    ps.spec = spec_of(host.port());
    ps.job = model.name;
    ps.spin = std::chrono::microseconds(options.spin);
    ps.coordination.examples = kExamples;
    ps.initial = [this] {
      return ps::Initial{0, 0, parameters_.values(), {}, data::remainder_after(0, 0, 1, kExamples)};
    };
    ps.log = [](std::string_view level, const std::string& text) {
      std::fprintf(stderr, "%.*s: %s\n", static_cast<int>(level.size()), level.data(), text.c_str());
    };
    exchange_ = std::make_unique<ps::PsExchange>(parameters_, std::move(ps));
    exchange_->join().value_or_throw();
  }

  double bare() {
    const auto start = Clock::now();
    send_all(bare_.get(), std::as_bytes(parameters_.gradients()));
    if (!receive_all(bare_.get(), in_)) fail("recv");
    return seconds_since(start);
  }

  double exchange() {
    const auto start = Clock::now();
    exchange_->begin({step_, 1, 1});
    for (auto info = parameters_.infos().rbegin(); info != parameters_.infos().rend(); ++info) {
      exchange_->ready({info->offset, info->count()}, {});
    }
    step_ = exchange_->finish({1, 1, 1}).value_or_throw().step;
    return seconds_since(start);
  }

  /// Measures the update alone, as the server makes it.
  double optimizer() {
    const auto start = Clock::now();
    const ps::Contribution one{staging_};
    shard_.apply({&one, 1}, 1, {step_, 0.01F, 1}, {});
    return seconds_since(start);
  }

 private:
  static constexpr int64_t kExamples = 1'000'000'000;

  [[nodiscard]] ps::ParameterShardOptions shard(const Host& host, const Options& options) const {
    ps::ParameterShardOptions shard;
    shard.parameters = parameters_.count();
    shard.durability = durability_of(options.durability);
    shard.file = host.folder() + "/optimizer";
    shard.threads = threads_of(options);
    return shard;
  }

  program::ParameterStore parameters_;
  base::FileHandle bare_;
  ps::ParameterShard shard_;
  std::vector<float> staging_;
  Buffer in_;
  std::unique_ptr<ps::PsExchange> exchange_;
  uint64_t step_ = 0;
};

struct Times {
  std::vector<double> seconds;
  double cpu = 0;

  /// Runs a block of one kind; rounds below 0 warm up.
  template <class Once>
  void add(const Host& host, int count, int round, const Once& once) {
    const double before = host.cpu_seconds();
    for (int i = 0; i < count; ++i) {
      const double time = once();
      if (round >= 0) seconds.push_back(time);
    }
    if (round >= 0) cpu += host.cpu_seconds() - before;
  }
  [[nodiscard]] double cpu_each() const { return cpu / static_cast<double>(seconds.size()); }
  [[nodiscard]] double best() const { return bench::best(seconds); }
  [[nodiscard]] double median() const { return bench::median(seconds); }
};

nlohmann::json measure(Worker& worker, const Host& host, const Model& model, const Options& options) {
  Times bare;
  Times exchange;
  Times optimizer;
  for (int round = -2; round < options.rounds * model.rounds; ++round) {
    if (!options.only) bare.add(host, model.block, round, [&] { return worker.bare(); });
    exchange.add(host, model.block, round, [&] { return worker.exchange(); });
    if (!options.only) optimizer.add(host, model.block, round, [&] { return worker.optimizer(); });
  }
  if (options.only)
    return {{"exchange_best_ms", exchange.best() * 1e3}, {"exchange_median_ms", exchange.median() * 1e3}};
  const auto ratio = [](double whole, double apart, double base) { return (whole - apart) / base; };
  return {{"model", model.name},
          {"bytes", model.count() * sizeof(float)},
          {"target", model.target},
          {"bare_best_ms", bare.best() * 1e3},
          {"bare_median_ms", bare.median() * 1e3},
          {"exchange_best_ms", exchange.best() * 1e3},
          {"exchange_median_ms", exchange.median() * 1e3},
          {"optimizer_best_ms", optimizer.best() * 1e3},
          {"optimizer_median_ms", optimizer.median() * 1e3},
          {"ratio_best", ratio(exchange.best(), optimizer.best(), bare.best())},
          {"ratio_median", ratio(exchange.median(), optimizer.median(), bare.median())},
          {"ratio_with_optimizer", exchange.best() / bare.best()},
          {"cpu_bare_ms", bare.cpu_each() * 1e3},
          {"cpu_exchange_ms", exchange.cpu_each() * 1e3},
          {"cpu_optimizer_ms", optimizer.cpu_each() * 1e3},
          {"cpu_ratio", ratio(exchange.cpu_each(), optimizer.cpu_each(), bare.cpu_each())}};
}

void print(const nlohmann::json& row) {
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  std::printf(
      "%-8s %8.2f MB  bare %9.3f (%9.3f)  exchange %9.3f (%9.3f)  optimizer %8.3f (%8.3f)  ratio %5.2f (%5.2f)"
      "  of CPU time %5.2f  target %.1f\n",
      row.at("model").get<std::string>().c_str(), number("bytes") / 1e6, number("bare_best_ms"),
      number("bare_median_ms"), number("exchange_best_ms"), number("exchange_median_ms"), number("optimizer_best_ms"),
      number("optimizer_median_ms"), number("ratio_best"), number("ratio_median"), number("cpu_ratio"),
      number("target"));
}

int run(const Options& options) {
  // All are forked before gRPC starts its threads here.
  std::vector<std::pair<const Model*, std::unique_ptr<Host>>> hosts;
  for (const Model& model : models()) {
    if (!options.model.empty() && options.model != model.name) continue;
    hosts.emplace_back(&model, std::make_unique<Host>(model, options));
  }
  nlohmann::json report = nlohmann::json::array();
  if (!options.json)
    std::printf("times in ms: best (median); %s waits; durability %s\n", options.spin > 0 ? "spinning" : "blocking",
                options.durability.c_str());
  for (auto& [model, host] : hosts) {
    Worker worker(*model, *host, options);
    report.push_back(measure(worker, *host, *model, options));
    report.back()["server_copied_bytes"] = host->copied_per_update();
    if (options.only) std::printf("%s\n", report.back().dump().c_str());
    if (!options.json && !options.only) print(report.back());
    std::fflush(stdout);
  }
  if (options.json) std::printf("%s\n", report.dump(1).c_str());
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::Options options;
  CLI::App app("Measures the cost of an exchange with a parameter server, as a ratio to a bare socket");
  app.add_option("--rounds", options.rounds, "rounds of the largest model; smaller ones get more");
  app.add_option("--model", options.model, "only this one")->check(CLI::IsMember({"lr", "lenet", "alexnet"}));
  app.add_option("--folder", options.folder, "folder for the server's temporary state");
  app.add_option("--durability", options.durability)->check(CLI::IsMember({"process", "machine", "checkpoint"}));
  app.add_option("--threads", options.threads, "threads of the optimizer; 0: one per core");
  app.add_option("--spin", options.spin, "microseconds that a wait polls before it sleeps");
  app.add_flag("--exchange-only", options.only, "run only exchanges, for a profiler");
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  try {
    return lockstep::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ps_exchange_bench: %s\n", error.what());
    return 1;
  }
}
