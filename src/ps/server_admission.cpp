// Admission to a parameter server.
#include <fmt/format.h>

#include "lockstep/error.h"
#include "ps/server.h"

namespace lockstep::ps {
namespace {

constexpr size_t kMostImpostors = 100;

}  // namespace

void Server::check_identity(const transport::Stream& stream, const std::string& role) {
  const std::string why = stream.why_not(role);
  if (why.empty()) return;
  const std::string host = stream.peer().substr(0, stream.peer().rfind(':'));
  {
    const base::MutexLock lock(mutex_);
    const bool told = impostors_.size() >= kMostImpostors || !impostors_.insert(host + role + why).second;
    if (!told) log("warning", fmt::format("{} says that it is {} and was refused: {}", stream.peer(), role, why));
  }
  throw RefusedError(RefusalKind::identity, fmt::format("{} says that it is {}: {}", stream.peer(), role, why));
}

wire::Hello Server::check_hello(const transport::Stream& stream, const transport::Frame& frame) {
  if (kind_of(frame) != Kind::hello) throw DataError("the first frame is not a hello");
  auto hello = parse<wire::Hello>(frame);
  check_identity(stream, cluster::parse_task(hello.role()).str());
  if (hello.protocol() != kProtocol) {
    throw RefusedError(RefusalKind::protocol, fmt::format("protocol {} of {}; this server speaks {}", hello.protocol(),
                                                          hello.role(), kProtocol));
  }
  if (hello.job() != options_.job) {
    throw RefusedError(RefusalKind::job,
                       fmt::format("{} and ps:{} differ in model, data or settings", hello.role(), options_.index));
  }
  const cluster::Spec& spec = options_.spec;
  const cluster::Task task = cluster::parse_task(hello.role());
  const int members = static_cast<int>(spec.members().size());
  const bool trains = task.role == cluster::Role::worker || task.role == cluster::Role::chief;
  const bool unlisted = spec.partial && !spec.contains(task);  // only its hello says which member it is
  const bool fits = hello.member() == -1 || (trains && hello.member() >= 0 && hello.member() < members &&
                                             (unlisted || spec.member_index(task) == hello.member()));
  if (!fits)
    throw RefusedError(RefusalKind::role,
                       fmt::format("{} cannot be member {} of {}", hello.role(), hello.member(), members));
  const bool server_of_this =
      task.role != cluster::Role::ps || (coordinates() && task.index > 0 && spec.contains(task));
  if (!server_of_this) throw RefusedError(RefusalKind::role, hello.role() + " is not a server that follows ps:0");
  return hello;
}

/// A process that was killed, or is cut off, frees its role as its connection closes or after the limit for silence.
void Server::claim_role(Session& session, double came) {
  session.claims = true;
  ++claims_;
  const auto holder = [this, &session, came] {
    return control_streams_.other_holder(session.hello.role(), session.hello.incarnation(), came);
  };
  const auto known = [holder] {
    const std::optional<Peers::Holder> another = holder();
    return !another || another->alive;
  };
  wait_until(session, known, [this, &session, holder] {
    mutex_.assert_held();
    session.claims = false;
    --claims_;
    if (const std::optional<Peers::Holder> another = holder()) refuse_claim(session, another->process);
    open(session);
  });
}

void Server::refuse_claim(const Session& session, const std::string& holder) {
  const wire::Hello& hello = session.hello;
  const std::string line =
      fmt::format("{} is {} already; {} is refused", hello.role(), holder, process_of(hello, session.stream.peer()));
  const bool told = impostors_.size() >= kMostImpostors ||
                    !impostors_.insert(fmt::format("{} {}", hello.role(), hello.incarnation())).second;
  if (!told) log("warning", line);
  throw RefusedError(RefusalKind::taken, line);
}

}  // namespace lockstep::ps
