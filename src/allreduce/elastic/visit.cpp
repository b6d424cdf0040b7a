#include "allreduce/elastic/visit.h"

#include <fmt/format.h>

#include "cluster.pb.h"
#include "lockstep/error.h"
#include "wire/frames.h"
#include "wire/refusal.h"

namespace lockstep::allreduce {
namespace elastic {

base::Result<std::unique_ptr<transport::Stream>> visit(const ElasticOptions& options, int member, Kind kind,
                                                       Watchdog& watchdog, std::string& run) {
  const cluster::Task there = options.spec.members()[static_cast<size_t>(member)];
  const std::string& address = options.spec.address(there);
  if (address.empty()) return base::Failure{base::FailureKind::unreachable, "its address is not known"};
  if (transport::refuses(address))
    return base::Failure{base::FailureKind::unreachable, "connection refused: no process listens there"};
  transport::ConnectOptions connect;
  connect.security = options.security;
  connect.role = there.str();
  connect.meter = options.meter;
  base::Result<std::unique_ptr<transport::Stream>> made =
      transport::connect(address, connect, [&] { return watchdog.interrupted(); });
  if (!made) return made;
  transport::Stream& stream = *made.value();
  watchdog.watch(&stream);
  wire::Hello hello;
  hello.set_protocol(kProtocol);
  hello.set_role(options.task.str());
  hello.set_member(options.spec.member_index(options.task));
  hello.set_job(options.job);
  const base::Status sent = wire::send(stream, header(kind), hello);
  base::Result<transport::Frame> answer = sent ? stream.read() : sent.failure();
  watchdog.watch(nullptr);
  if (!answer) return answer.failure();
  if (kind_of(answer.value()) == Kind::refuse) {
    const wire::RefusalReason refusal = wire::read_refusal(answer.value());
    if (refusal.kind == wire::RefusalKind::failed) return base::Failure{base::FailureKind::refused, refusal.text};
    throw UsageError(fmt::format("{} at {} refused {}: {}", there.str(), address, options.task.str(), refusal.text));
  }
  if (kind_of(answer.value()) != Kind::welcome) {
    return base::Failure{base::FailureKind::refused, "it is not a member of a training by all-reduce"};
  }
  try {
    run = wire::parse<wire::Welcome>(answer.value()).run();
  } catch (const DataError& error) {
    return base::Failure::of(error);
  }
  return made;
}

}  // namespace elastic

base::Result<std::string> ask_run_name(const ElasticOptions& options) try {
  using std::chrono::milliseconds;
  elastic::Watchdog watchdog(options.interrupt);
  const auto members = static_cast<int>(options.spec.members().size());
  const auto start = std::chrono::steady_clock::now();
  for (int tries = 0;; ++tries) {
    std::string why;
    for (int member = 0; member < members; ++member) {
      const cluster::Task task = options.spec.members()[static_cast<size_t>(member)];
      if (task == options.task) continue;
      std::string run;
      const auto stream = elastic::visit(options, member, elastic::Kind::ask_run, watchdog, run);
      if (stream && !run.empty()) return run;
      why += fmt::format("{}{} at {}: {}", why.empty() ? "" : "; ", task.str(), options.spec.address(task),
                         stream ? "it does not know the name" : stream.failure().message());
      if (watchdog.interrupted()) {
        return base::Failure{base::FailureKind::interrupted, "interrupted while asking for the run's name"};
      }
    }
    const double waited = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (waited > options.patience) {
      return base::Failure{base::FailureKind::timeout,
                           fmt::format("no member told the run's name within {:.0f} s: {}", waited, why)}
          .because(options.task.str());
    }
    watchdog.pause(std::min(milliseconds(20) * (1 << std::min(tries, 5)), milliseconds(500)));
  }
} catch (const UsageError& error) {
  return base::Failure::of(error);
}

}  // namespace lockstep::allreduce
