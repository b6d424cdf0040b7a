// Peers that speak the transport and send nonsense, in every state, while a real worker trains: the server answers or
// hangs up, and the run is bit-identical to an undisturbed one.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <atomic>
#include <cmath>
#include <random>
#include <thread>

#include "base/temp_dir.h"
#include "cluster/keys.h"
#include "ps/ps_exchange.h"
#include "ps/server.h"
#include "transport/streams.h"

namespace lockstep::ps {
namespace {

using ::testing::AllOf;
using ::testing::Field;
using ::testing::HasSubstr;
using transport::Header;
using transport::Stream;
using transport::testing::eventually;

constexpr const char* kJob = "0123456789abcdef";
constexpr int64_t kExamples = 400;
constexpr int64_t kBatch = 4;
constexpr int64_t kPasses = 15;
constexpr int64_t kParameters = 3000;

/// A server in this process.
class Host {
 public:
  explicit Host(int workers = 1, base::TrafficMeter* meter = nullptr, const std::string& keys = "") {
    options_.meter = meter;
    options_.security.keys = keys;
    options_.spec.ps = {port_.address()};
    for (int i = 0; i < workers; ++i) options_.spec.workers.push_back("127.0.0.1:" + std::to_string(i + 1));
    options_.spec.evaluator = {"127.0.0.1:9"};
    options_.folder = folder_ / "ps-0";
    options_.job = kJob;
    options_.run = "run";
    options_.interrupt = &interrupt_;
    server_ = std::make_unique<Server>(options_);
    thread_ = std::thread([this] { server_->run(); });
  }
  ~Host() {
    interrupt_ = true;
    thread_.join();
  }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  [[nodiscard]] const cluster::Spec& spec() const { return options_.spec; }
  [[nodiscard]] const std::string& address() const { return options_.spec.ps.front(); }

 private:
  ::lockstep::testing::TempDir folder_;
  transport::testing::KeptPort port_;
  ServerOptions options_;
  std::atomic<bool> interrupt_ = false;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

PsOptions worker_options(const Host& host, program::ParameterStore& parameters, bool sync) {
  PsOptions options;
  options.spec = host.spec();
  options.task = {cluster::Role::worker, 0};
  options.job = kJob;
  options.rules.optimizer.method = optim::Method::momentum;
  options.rules.schedule.base = 0.05F;
  options.coordination.sync = sync;
  options.coordination.members = static_cast<int>(host.spec().workers.size());
  options.coordination.batch = kBatch;
  options.coordination.examples = kExamples;
  options.coordination.passes = kPasses;
  options.coordination.start_wait = 0.1;
  options.patience = 200;
  options.log = [](std::string_view, const std::string&) {};
  options.initial = [&parameters] { return Initial{0, 0, parameters.values(), {}, {}}; };
  return options;
}

/// Computes gradients that depend on the parameters and on the examples.
void compute(const program::ParameterStore& parameters, const data::Round& round) {
  float seed = static_cast<float>(round.pass);
  for (const base::Range& range : round.ranges) seed += static_cast<float>(range.begin) * 0.01F;
  const std::span<float> values = parameters.values();
  const std::span<float> gradients = parameters.gradients();
  for (size_t i = 0; i < values.size(); ++i) {
    gradients[i] = 0.1F * values[i] + std::sin(seed + static_cast<float>(i));
  }
}

/// Runs a whole training; returns the final parameters.
std::vector<float> train(const Host& host, bool sync, std::atomic<bool>* started = nullptr,
                         base::TrafficMeter* meter = nullptr) {
  program::ParameterStore parameters({{"weights", {kParameters}, {}, {}}}, 1);
  PsOptions options = worker_options(host, parameters, sync);
  options.meter = meter;
  PsExchange exchange(parameters, std::move(options));
  std::optional<exchange::StepInfo> info = exchange.join().value_or_throw();
  if (started != nullptr) *started = true;
  while (info && !info->stop) {
    auto rounds = std::make_unique<data::Rounds>(info->plan.value());
    data::Round round;
    for (int64_t next = 0;;) {
      rounds->read(next, round);
      if (round.pass >= kPasses) break;
      compute(parameters, round);
      exchange.begin({info->step, static_cast<uint64_t>(round.count), 1});
      exchange.ready({0, parameters.count()}, {});
      info = exchange.finish({1, 0, static_cast<uint64_t>(round.count)}).value_or_throw();
      if (info->stop) break;
      if (info->applied()) ++next;
      if (info->plan) {
        rounds = std::make_unique<data::Rounds>(*info->plan);
        next = 0;
      }
    }
    info = exchange.leave({train::StopReason::data}).value_or_throw();
  }
  std::vector<float> values(parameters.values().begin(), parameters.values().end());
  exchange.end();
  return values;
}

wire::Hello hello_of(const std::string& role, int member, uint64_t incarnation = 1) {
  wire::Hello hello;
  hello.set_protocol(kProtocol);
  hello.set_role(role);
  hello.set_member(member);
  hello.set_incarnation(incarnation);
  hello.set_job(kJob);
  return hello;
}

/// Says hello, on a control stream or a data stream, and returns the refusal; without a text if it was accepted.
RefusalReason greet(Stream& stream, const wire::Hello& hello, bool control = false) {
  Header first = header(Kind::hello);
  first.flags = control ? kControl : 0;
  if (!send(stream, first, hello)) return {RefusalKind::other, "closed"};
  base::Result<transport::Frame> answer = stream.read();
  if (!answer) return {RefusalKind::other, "closed"};
  return kind_of(answer.value()) == Kind::refuse ? read_refusal(answer.value()) : RefusalReason{};
}

auto IsRefusal(RefusalKind kind, const std::string& text) {
  return AllOf(Field(&RefusalReason::kind, kind), Field(&RefusalReason::text, HasSubstr(text)));
}

std::unique_ptr<Stream> connect(const Host& host) { return transport::testing::connected(host.address()); }

/// Frames that a broken or hostile program may send.
class Garbage {
 public:
  explicit Garbage(unsigned seed) : random_(seed) {}

  uint64_t number() {
    constexpr std::array<uint64_t, 8> kOdd{0, 1, 2, 255, 1ULL << 31U, 1ULL << 40U, 1ULL << 63U, ~0ULL};
    return pick(2) == 0 ? kOdd[pick(kOdd.size())] : random_() % 5000;
  }
  size_t pick(size_t below) { return random_() % below; }

  Header frame_header(Kind kind) {
    Header h = header(kind);
    h.flags = static_cast<uint16_t>(pick(4));
    if (pick(2) == 0) h.element = static_cast<uint32_t>(pick(6));
    h.sequence = number();
    h.version = number();
    h.offset = number();
    h.count = number();
    h.extra = number();
    return h;
  }
  /// Returns a message of some kind, cut or changed somewhere, or plain noise.
  std::string payload() {
    std::string bytes;
    switch (pick(6)) {
      case 0:
        bytes = job().SerializeAsString();
        break;
      case 1:
        bytes = ledger().SerializeAsString();
        break;
      case 2:
        bytes = push_end().SerializeAsString();
        break;
      case 3:
        bytes = std::string(pick(3) == 0 ? 20000 : pick(300), static_cast<char>(pick(256)));
        break;
      case 4:
        for (size_t i = pick(200); i > 0; --i) bytes.push_back(static_cast<char>(pick(256)));
        break;
      default:
        break;
    }
    if (!bytes.empty() && pick(2) == 0) bytes.resize(pick(bytes.size()));
    if (!bytes.empty() && pick(2) == 0) bytes[pick(bytes.size())] = static_cast<char>(pick(256));
    return bytes;
  }

 private:
  wire::JobConfig job() {
    wire::JobConfig job;
    job.set_members(static_cast<int32_t>(number()));
    job.set_servers(static_cast<int32_t>(pick(3)));
    job.set_batch(static_cast<int64_t>(number()));
    job.set_accumulate(static_cast<int64_t>(number()));
    job.set_examples(static_cast<int64_t>(number()));
    job.set_parameters(number());
    job.set_job(kJob);
    job.set_wire(static_cast<uint32_t>(number()));
    job.mutable_optimizer()->set_method(static_cast<uint32_t>(pick(9)));
    wire::Range& range = *job.add_ranges();
    range.set_offset(number());
    range.set_count(number());
    return job;
  }
  wire::Ledger ledger() {
    wire::Ledger ledger;
    ledger.mutable_plan()->set_next_pass(static_cast<int64_t>(number()));
    wire::PassPart& part = *ledger.mutable_plan()->add_parts();
    part.set_pass(static_cast<int64_t>(number()));
    for (size_t i = pick(5); i > 0; --i) part.add_bounds(static_cast<int64_t>(number()));
    return ledger;
  }
  wire::PushEnd push_end() {
    wire::PushEnd end;
    end.set_plan(number());
    end.set_rounds(static_cast<int64_t>(number()));
    end.set_examples(number());
    end.set_loss_sum(std::nan(""));
    end.set_gradient_scale(pick(2) == 0 ? INFINITY : 1);
    end.set_wait_seconds(std::nan(""));
    return end;
  }

  std::mt19937_64 random_;
};

bool send_garbage(Stream& stream, Garbage& garbage, Kind kind) {
  const auto payload = std::make_shared<const std::string>(garbage.payload());
  return stream.write(garbage.frame_header(kind), std::as_bytes(std::span(*payload)), payload).ok();
}

/// Returns any kind, known or not, except those with which the chief or the evaluator may end the job.
Kind any_kind(Garbage& garbage) {
  for (;;) {
    const auto kind = static_cast<Kind>(garbage.pick(30));
    if (kind != Kind::end && kind != Kind::leave && kind != Kind::stop) return kind;
  }
}

/// One visit of a hostile peer.
void attack(const Host& host, Garbage& garbage, const std::string& role, int member) {
  base::Result<std::unique_ptr<Stream>> made = transport::connect(host.address(), {});
  if (!made) return;
  Stream& stream = *made.value();
  const bool control = garbage.pick(3) == 0;
  switch (garbage.pick(6)) {
    case 0:
      static_cast<void>(send_garbage(stream, garbage, any_kind(garbage)));
      break;  // sends no hello
    case 1:
      static_cast<void>(send_garbage(stream, garbage, Kind::hello));
      break;
    default:
      static_cast<void>(greet(stream, hello_of(role, member, garbage.number()), control));
      break;
  }
  for (size_t i = garbage.pick(6); i > 0; --i) {
    if (!send_garbage(stream, garbage, any_kind(garbage))) return;
  }
  stream.cancel("enough");
}

void expect_undisturbed(const std::string& role, int member, bool sync, unsigned seeds) {
  const std::vector<float> alone = [&] {
    Host quiet;
    return train(quiet, sync);
  }();
  Host host;
  std::atomic<bool> done = false;
  std::atomic<bool> started = false;
  std::atomic<int> visits = 0;
  std::vector<std::thread> peers;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    peers.emplace_back([&, seed] {
      Garbage garbage(seed);
      while (!done && (member < 0 || !started)) {
        attack(host, garbage, role, member);
        ++visits;
      }
      // Some visits in the worker's name, with time in between for the worker to reconnect.
      while (!done) {
        attack(host, garbage, role, member);
        ++visits;
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return visits > 20; }));
  const std::vector<float> disturbed = train(host, sync, &started);
  done = true;
  for (std::thread& peer : peers) peer.join();
  EXPECT_EQ(disturbed, alone);
}

TEST(PsTraffic, MetersOfBothSidesCountWhatTheyExchange) {
  base::TrafficMeter worker;
  base::TrafficMeter server;
  {
    const Host host(1, &server);
    train(host, true, nullptr, &worker);
  }
  constexpr uint64_t kSteps = kExamples * kPasses / kBatch;
  constexpr uint64_t kFrame = transport::kHeaderBytes + sizeof(float) * kParameters;
  const base::TrafficMeter::Totals here = worker.totals();
  const base::TrafficMeter::Totals there = server.totals();
  EXPECT_GE(here.sent_bytes, kSteps * kFrame);
  EXPECT_GE(here.received_bytes, kSteps * kFrame);
  EXPECT_GE(here.sent_messages, kSteps);
  // Traffic in flight when one side ended is missing on the other side, or here if it was being sent.
  constexpr uint64_t kStreams = 2;
  EXPECT_LE(there.received_messages, here.sent_messages + kStreams) << "heartbeats count, too";
  EXPECT_LE(here.received_messages, there.sent_messages + kStreams);
  EXPECT_NEAR(static_cast<double>(there.received_bytes), static_cast<double>(here.sent_bytes), 0.01 * kSteps * kFrame);
  EXPECT_NEAR(static_cast<double>(there.sent_bytes), static_cast<double>(here.received_bytes), 0.01 * kSteps * kFrame);
}

TEST(HostilePeers, TheKeyOfOneRoleGetsNothingAsAnother) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not see what OpenSSL does";
#endif
  const ::lockstep::testing::TempDir folder;
  const std::string keys = folder / "keys";
  cluster::make_node_keys(keys, "n0", {{cluster::Role::ps, 0}});
  cluster::make_node_keys(keys, "n1", {{cluster::Role::worker, 1}});
  const Host host(2, nullptr, keys + "/n0");
  const auto answer = [&](const std::string& role, int member, bool control) {
    const auto stream = transport::testing::connected(host.address(), {.security = {keys + "/n1"}, .role = "ps:0"});
    return greet(*stream, hello_of(role, member), control);
  };
  EXPECT_EQ(answer("worker:1", 1, false).text, "");
  for (const bool control : {false, true}) {
    EXPECT_THAT(answer("worker:0", 0, control),
                IsRefusal(RefusalKind::identity,
                          "says that it is worker:0: its certificate (CN=n1 for worker:1) is not for worker:0"));
    EXPECT_THAT(answer("worker:0", -1, control), IsRefusal(RefusalKind::identity, "is not for worker:0"));
    EXPECT_THAT(answer("evaluator:0", -1, control), IsRefusal(RefusalKind::identity, "is not for evaluator:0"));
    EXPECT_THAT(answer("ps:1", -1, control), IsRefusal(RefusalKind::identity, "is not for ps:1"));
  }
}

/// Idle connections leave a place for the worker, and the server ends none of its handlers for them.
TEST(HostilePeers, ACrowdThatSaysNothingDoesNotKeepTheWorkerOut) {
  const Host host;
  std::vector<std::unique_ptr<Stream>> silent;
  for (int i = 0; i < 60; ++i) silent.push_back(connect(host));
  const size_t threads = transport::testing::threads_here();
  EXPECT_EQ(greet(*connect(host), hello_of("worker:0", 0)).text, "");
  EXPECT_LE(transport::testing::threads_here(), threads + 4);
}

TEST(HostilePeers, StrangersAndFalseEvaluatorsDoNotChangeABit) {
  for (const bool sync : {true, false}) expect_undisturbed("evaluator:0", -1, sync, 3);
}

TEST(HostilePeers, WorkersThatTheClusterDoesNotHaveDoNotChangeABit) {
  expect_undisturbed("worker:7", 7, true, 2);
  expect_undisturbed("ps:3", -1, true, 2);
  expect_undisturbed("nobody", -1, true, 2);
}

TEST(HostilePeers, OneThatTakesTheWorkersPlaceNowAndThenDoesNotChangeABit) {
  for (const bool sync : {true, false}) expect_undisturbed("worker:0", 0, sync, 1);
}

TEST(HostilePeers, AStrangerToTheJobIsToldWhy) {
  Host host;
  wire::Hello hello = hello_of("worker:0", 0);
  hello.set_job("other");
  EXPECT_THAT(greet(*connect(host), hello), IsRefusal(RefusalKind::job, "differ in model, data or settings"));
  hello = hello_of("worker:0", 0);
  hello.set_protocol(99);
  EXPECT_THAT(greet(*connect(host), hello), IsRefusal(RefusalKind::protocol, "protocol 99"));
  EXPECT_THAT(greet(*connect(host), hello_of("worker:1", 1)),
              IsRefusal(RefusalKind::role, "worker:1 cannot be member 1 of 1"));
  EXPECT_THAT(greet(*connect(host), hello_of("evaluator:0", 0)),
              IsRefusal(RefusalKind::role, "evaluator:0 cannot be member 0"));
  EXPECT_THAT(greet(*connect(host), hello_of("worker:0", -7)), IsRefusal(RefusalKind::role, "member -7"));
  EXPECT_THAT(greet(*connect(host), hello_of("ps:1", -1), true),
              IsRefusal(RefusalKind::role, "is not a server that follows ps:0"));
  EXPECT_THAT(greet(*connect(host), hello_of("ps:0", -1), true),
              IsRefusal(RefusalKind::role, "is not a server that follows ps:0"));
  EXPECT_THAT(greet(*connect(host), hello_of("king", -1)), IsRefusal(RefusalKind::message, "'king' is not a task"));
}

TEST(HostilePeers, EachRoleMayOnlyAskWhatIsItsOwn) {
  Host host(2);
  const auto refused = [&](const std::string& role, int member, Kind kind) {
    const auto stream = connect(host);
    EXPECT_EQ(greet(*stream, hello_of(role, member)).text, "");
    EXPECT_TRUE(stream->write(header(kind)).ok());
    base::Result<transport::Frame> answer = stream->read();
    return answer && kind_of(answer.value()) == Kind::refuse;
  };
  for (const Kind kind : {Kind::init_begin, Kind::init, Kind::init_end, Kind::snapshot, Kind::end}) {
    EXPECT_TRUE(refused("worker:1", 1, kind)) << static_cast<int>(kind);
    EXPECT_TRUE(refused("evaluator:0", -1, kind)) << static_cast<int>(kind);
  }
  for (const Kind kind : {Kind::push, Kind::join, Kind::leave, Kind::wait_end, Kind::pull}) {
    EXPECT_TRUE(refused("evaluator:0", -1, kind)) << static_cast<int>(kind);
  }
  for (const Kind kind : {Kind::follow, Kind::stop, Kind::commit, Kind::welcome, Kind::parameters}) {
    EXPECT_TRUE(refused("worker:1", 1, kind)) << static_cast<int>(kind);
  }
}

TEST(HostilePeers, AnnouncedParametersCostNoMemoryBeforeTheyCome) {
  Host host;
  const auto stream = connect(host);
  ASSERT_EQ(greet(*stream, hello_of("worker:0", 0)).text, "");
  wire::JobConfig job;
  to_wire(CoordinatorOptions{}, job);
  to_wire(Rules{}, *job.mutable_optimizer());
  job.set_job(kJob);
  job.set_wire(static_cast<uint32_t>(Element::kFloat32));
  constexpr uint64_t kMany = uint64_t{1} << 36U;
  job.set_parameters(kMany);
  wire::Range& range = *job.add_ranges();
  range.set_count(kMany);
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  ASSERT_TRUE(send(*stream, header(Kind::init_begin), job).ok());
  ASSERT_TRUE(send(*stream, header(Kind::init_end), wire::Ledger()).ok());
  base::Result<transport::Frame> answer = stream->read();
  ASSERT_TRUE(answer.ok());
  EXPECT_THAT(answer.value().text(), HasSubstr("received 0 of 68719476736 first parameters"));
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 100 << 10);
}

TEST(HostilePeers, StrangersWhoSayNothingAreGivenUp) {
  Host host;
  const auto silent = connect(host);
  const base::Result<transport::Frame> nothing = silent->read();
  EXPECT_FALSE(nothing.ok());
}

TEST(HostilePeers, AWorkerWithoutHeartbeatsHoldsNobodyUpForLong) {
  Host host(2);
  const auto frozen = connect(host);
  EXPECT_EQ(greet(*frozen, hello_of("worker:1", 1)).text, "");
  EXPECT_TRUE(frozen->write(header(Kind::join)).ok());
  // It waits for worker:1's push up to the limit.
  EXPECT_EQ(train(host, true).size(), static_cast<size_t>(kParameters));
}

}  // namespace
}  // namespace lockstep::ps
