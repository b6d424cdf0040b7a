// The transport cost of an exchange with a parameter server, as a ratio to a bare socket that carries the same bytes.
//
//   exchange_bench [--rounds 30] [--model lr|lenet|alexnet] [--slice BYTES] [--spin MICROSECONDS] [--keys DIR] [--json]
//
// Two processes on loopback, all in one run and in turn. Bare: send N bytes, then receive N bytes into a prepared
// buffer. Exchange: push N bytes in frames; the server copies them to their place and answers with N bytes once it has
// all of them; the client copies those to their place. Pipelined: the server answers every frame on arrival. A second
// stream is open and idle meanwhile, like the heartbeats' stream in a cluster.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "bare_socket.h"
#include "base/file.h"
#include "transport/stream.h"

namespace lockstep::bench {
namespace {

using transport::Frame;
using transport::Header;
using transport::Stream;

struct Options {
  int rounds = 30;
  std::string model;
  size_t slice = size_t{1} << 20;
  int spin = 0;
  std::string keys;
  bool json = false;
};

struct Model {
  const char* name;
  size_t floats;
  double target;
  int rounds;  ///< multiple of the requested rounds
  int block;   ///< consecutive exchanges of one kind
};
constexpr Model kModels[] = {
    {"lr", 7850, 2.5, 20, 10}, {"lenet", 61706, 2.8, 10, 5}, {"alexnet", 61'000'000, 1.3, 1, 1}};

enum Kind : uint16_t { kPush = 1, kPushPipelined = 2, kParameters = 3 };

struct Ports {
  int bare = 0;
  int stream = 0;
};

/// Receives all bytes, then sends as many back.
void serve_bare(const Listener& listener) {
  const base::FileHandle socket = listener.accept();
  Buffer staging;
  uint64_t size = 0;
  while (receive_all(socket.get(), std::as_writable_bytes(std::span(&size, 1)))) {
    staging.resize(size);
    if (!receive_all(socket.get(), staging)) return;
    send_all(socket.get(), staging);
  }
}

bool send_slice(Stream& stream, const Header& header, std::span<const std::byte> bytes) {
  const auto result = stream.write(header, bytes);
  if (!result) std::fprintf(stderr, "%s\n", result.failure().message().c_str());
  return result.ok();
}

/// Sends the frames of a whole buffer.
bool send_slices(Stream& stream, Header header, std::span<const std::byte> bytes, size_t slice) {
  header.count = bytes.size();
  for (size_t at = 0; at < bytes.size(); at += slice) {
    header.offset = at;
    if (!send_slice(stream, header, bytes.subspan(at, std::min(slice, bytes.size() - at)))) return false;
  }
  return true;
}

bool receive_slices(Stream& stream, std::span<std::byte> bytes) {
  for (size_t got = 0; got < bytes.size();) {
    const base::Result<Frame> frame = stream.read();
    if (!frame) return false;
    const size_t size = frame.value().payload_size();
    frame.value().copy_to(bytes.subspan(frame.value().header.offset, size));
    got += size;
  }
  return true;
}

void serve_stream(Stream& stream, size_t slice) {
  Buffer staging;
  Buffer parameters;
  size_t got = 0;
  while (true) {
    const base::Result<Frame> frame = stream.read();
    if (!frame) return;
    const Header header = frame.value().header;
    const size_t size = frame.value().payload_size();
    if (staging.size() != header.count) {
      staging.resize(header.count);
      parameters.resize(header.count);
    }
    frame.value().copy_to(std::span(staging).subspan(header.offset, size));
    got += size;
    Header reply;
    reply.kind = kParameters;
    if (header.kind == kPushPipelined) {
      reply.offset = header.offset;
      if (!send_slice(stream, reply, std::span(parameters).subspan(header.offset, size))) return;
    } else if (got == header.count) {
      if (!send_slices(stream, reply, parameters, slice)) return;
    }
    if (got == header.count) got = 0;
  }
}

[[noreturn]] void serve(int ports_out, const Options& options) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Listener listener;
  const transport::Server server(
      {.address = "127.0.0.1:0", .security = {options.keys}, .spin = std::chrono::microseconds(options.spin)},
      [&](Stream& stream) { serve_stream(stream, options.slice); });
  const Ports ports{listener.port(), server.port()};
  if (write(ports_out, &ports, sizeof(ports)) != sizeof(ports)) fail("write");
  std::thread([&] { serve_bare(listener); }).detach();
  while (true) pause();
}

/// The client's ends of both connections.
class Client {
 public:
  Client(const Ports& ports, const Options& options) : options_(options), bare_(connect_to(ports.bare)) {
    stream_ = transport::connect("127.0.0.1:" + std::to_string(ports.stream),
                                 {.security = {options.keys}, .spin = std::chrono::microseconds(options.spin)})
                  .value_or_throw();
    control_ =
        transport::connect("127.0.0.1:" + std::to_string(ports.stream), {.security = {options.keys}}).value_or_throw();
    control_reader_ = std::thread([this] { (void)control_->read(); });
  }
  ~Client() {
    control_->cancel("the end");
    control_reader_.join();
  }

  double bare(std::span<const std::byte> out, std::span<std::byte> in) {
    const auto start = Clock::now();
    const uint64_t size = out.size();
    send_all(bare_.get(), std::as_bytes(std::span(&size, 1)));
    send_all(bare_.get(), out);
    if (!receive_all(bare_.get(), in)) fail("recv");
    return seconds_since(start);
  }

  double exchange(std::span<const std::byte> out, std::span<std::byte> in) {
    const auto start = Clock::now();
    Header header;
    header.kind = kPush;
    if (!send_slices(*stream_, header, out, options_.slice) || !receive_slices(*stream_, in)) fail("exchange");
    return seconds_since(start);
  }

  double pipelined(std::span<const std::byte> out, std::span<std::byte> in) {
    const auto start = Clock::now();
    Header header;
    header.kind = kPushPipelined;
    bool sent = true;
    const bool one = out.size() <= options_.slice;  // a single slice leaves nothing to pipeline
    std::thread writer;
    if (one) {
      sent = send_slices(*stream_, header, out, options_.slice);
    } else {
      writer = std::thread([&] { sent = send_slices(*stream_, header, out, options_.slice); });
    }
    const bool received = receive_slices(*stream_, in);
    if (writer.joinable()) writer.join();
    if (!sent || !received) fail("pipelined exchange");
    return seconds_since(start);
  }

 private:
  const Options options_;
  base::FileHandle bare_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> control_;  ///< idle, like the stream of heartbeats
  std::thread control_reader_;
};

struct Times {
  std::vector<double> seconds;
  void add(double time, int round) {
    if (round >= 0) seconds.push_back(time);  // rounds below 0 warm up
  }
  [[nodiscard]] double best() const { return bench::best(seconds); }
  [[nodiscard]] double median() const { return bench::median(seconds); }
};

void measure(Client& client, const Model& model, const Options& options, nlohmann::json& report) {
  const Buffer out(model.floats * sizeof(float), std::byte{1});
  Buffer in(out.size());
  Times bare;
  Times exchange;
  Times pipelined;
  for (int round = -2; round < options.rounds * model.rounds; ++round) {
    for (int i = 0; i < model.block; ++i) bare.add(client.bare(out, in), round);
    for (int i = 0; i < model.block; ++i) exchange.add(client.exchange(out, in), round);
    for (int i = 0; i < model.block; ++i) pipelined.add(client.pipelined(out, in), round);
  }
  report.push_back({{"model", model.name},
                    {"bytes", out.size()},
                    {"target", model.target},
                    {"bare_best_ms", bare.best() * 1e3},
                    {"bare_median_ms", bare.median() * 1e3},
                    {"exchange_best_ms", exchange.best() * 1e3},
                    {"exchange_median_ms", exchange.median() * 1e3},
                    {"pipelined_best_ms", pipelined.best() * 1e3},
                    {"pipelined_median_ms", pipelined.median() * 1e3},
                    {"ratio_best", exchange.best() / bare.best()},
                    {"ratio_median", exchange.median() / bare.median()},
                    {"pipelined_ratio_best", pipelined.best() / bare.best()},
                    {"pipelined_ratio_median", pipelined.median() / bare.median()}});
  if (options.json) return;
  const nlohmann::json& row = report.back();
  const auto number = [&](const char* key) { return row.at(key).get<double>(); };
  std::printf(
      "%-8s %8.2f MB  bare %9.3f (%9.3f)  exchange %9.3f (%9.3f)  ratio %5.2f (%5.2f)  pipelined %5.2f (%5.2f)"
      "  target %.1f\n",
      model.name, static_cast<double>(out.size()) / 1e6, number("bare_best_ms"), number("bare_median_ms"),
      number("exchange_best_ms"), number("exchange_median_ms"), number("ratio_best"), number("ratio_median"),
      number("pipelined_ratio_best"), number("pipelined_ratio_median"), model.target);
}

int run(const Options& options) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) fail("pipe");
  const pid_t server = fork();
  if (server < 0) fail("fork");
  if (server == 0) serve(pipe_ends[1], options);
  Ports ports;
  if (read(pipe_ends[0], &ports, sizeof(ports)) != sizeof(ports)) fail("the server did not start");
  nlohmann::json report = nlohmann::json::array();
  if (!options.json) std::printf("times in ms: best (median); %s waits\n", options.spin > 0 ? "spinning" : "blocking");
  {
    Client client(ports, options);
    for (const Model& model : kModels) {
      if (options.model.empty() || options.model == model.name) measure(client, model, options, report);
    }
  }
  if (options.json) std::printf("%s\n", report.dump(1).c_str());
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  return 0;
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  lockstep::bench::Options options;
  CLI::App app("Measures the transport cost of an exchange, as a ratio to a bare socket");
  app.add_option("--rounds", options.rounds, "rounds of the largest model; smaller ones get more");
  app.add_option("--model", options.model, "only this one: lr, lenet, alexnet");
  app.add_option("--slice", options.slice, "bytes per frame");
  app.add_option("--spin", options.spin, "microseconds that a wait polls before it sleeps");
  app.add_option("--keys", options.keys, "use TLS with the keys in this folder");
  app.add_flag("--json", options.json);
  CLI11_PARSE(app, argc, argv);
  try {
    return lockstep::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "exchange_bench: %s\n", error.what());
    return 1;
  }
}
