#include "ps/server_link.h"

#include <fmt/format.h>

namespace lockstep::ps {
namespace {

constexpr double kLogAfter = 5;                   ///< seconds of waiting that are worth a line
constexpr std::chrono::seconds kRetryControl{1};  ///< delay after keys were refused

double now_in_seconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

ServerLink::ServerLink(ServerLinkOptions options) : options_(std::move(options)) {
  {
    const base::MutexLock lock(mutex_);
    link_watch_.heard(now_in_seconds());
  }
  control_thread_ = std::thread([this] { keep_control(); });
  watch_thread_ = std::thread([this] { watch(); });
}

ServerLink::~ServerLink() { stop(); }

void ServerLink::stop() {
  stopping_ = true;
  {
    const base::MutexLock lock(mutex_);
    if (control_ != nullptr) control_->cancel("this process ends");
    if (data_) data_->cancel("this process ends");
    wake_.notify_all();
  }
  if (control_thread_.joinable()) control_thread_.join();
  if (watch_thread_.joinable()) watch_thread_.join();
}

bool ServerLink::interrupted() const { return options_.interrupt != nullptr && options_.interrupt->load(); }

bool ServerLink::leaving() const { return stopping_ || ended_ || interrupted(); }

base::Status ServerLink::connect() {
  transport::ConnectOptions connect;
  connect.security = options_.security;
  connect.role = options_.server;
  connect.spin = options_.spin;
  connect.meter = options_.meter;
  // A process that does not train may get its answer after the end, too.
  const bool trains = options_.hello.member() >= 0;
  base::Result<std::unique_ptr<transport::Stream>> made =
      transport::connect(options_.address, connect, [&] { return stopping_ || interrupted() || (trains && ended_); });
  if (!made) return made.failure();
  const std::shared_ptr<transport::Stream> stream = std::move(made.value());
  {
    // From here on the server's silence cancels this stream.
    const base::MutexLock lock(mutex_);
    data_ = stream;
    link_watch_.data_connecting(now_in_seconds());
    lost_.clear();
  }
  base::Status sent = send(*stream, header(Kind::hello), options_.hello);
  if (!sent) return sent;
  base::Result<transport::Frame> answer = stream->read();
  if (!answer) return answer.failure();
  if (kind_of(answer.value()) == Kind::refuse) {
    const RefusalReason refusal = read_refusal(answer.value());
    // A server that fails ends; its next process may accept this one.
    if (refusal.kind == RefusalKind::failed) return base::Failure{base::FailureKind::refused, refusal.text};
    throw UsageError(
        fmt::format("{} at {} refused {}: {}", options_.server, options_.address, options_.hello.role(), refusal.text));
  }
  welcome_ = parse<wire::Welcome>(answer.value());
  ++connections_;
  const base::MutexLock lock(mutex_);
  const bool differ = link_watch_.data_welcomed(welcome_.incarnation());
  if (differ && control_ != nullptr) control_->cancel("the server was restarted");
  return {};
}

base::Result<transport::Stream*> ServerLink::stream(const std::string& awaited) {
  std::string why;
  {
    const base::MutexLock lock(mutex_);
    if (data_ && lost_.empty()) return data_.get();
    why = lost_;
  }
  const Clock::time_point start = Clock::now();
  bool told = false;
  for (;;) {
    base::Status connected = connect();
    if (connected) {
      const base::MutexLock lock(mutex_);
      if (told) options_.log("info", fmt::format("{} at {} is back", options_.server, options_.address));
      return data_.get();
    }
    drop(connected.failure().message());
    base::Failure failure = connected.failure();
    failure.roles = {options_.server};
    failure.address = options_.address;
    const double waited = seconds_since(start);
    if (const auto ending = options_.look_for_ending ? options_.look_for_ending() : std::nullopt) {
      note_end(ending->reason);
    }
    if (waited > options_.patience) {
      failure = std::move(failure).because(fmt::format("waiting for {} for {:.0f} s", awaited, options_.patience));
    } else {
      failure = std::move(failure).because("waiting for " + awaited);
    }
    if (leaving() && failure.kind == base::FailureKind::usage) failure.kind = base::FailureKind::interrupted;
    if (leaving() || failure.kind == base::FailureKind::usage || waited > options_.patience) return failure;
    if (!told && waited > kLogAfter) {
      options_.log("warning", fmt::format("{}; retrying for {:.0f} s", failure.message(), options_.patience));
      told = true;
    }
  }
}

void ServerLink::note_end(train::StopReason why) {
  why_ended_ = why;
  ended_ = true;
}

void ServerLink::drop(const std::string& why) {
  const base::MutexLock lock(mutex_);
  if (data_) {
    const transport::Traffic traffic = data_->traffic();
    traffic_before_.sent += traffic.sent;
    traffic_before_.received += traffic.received;
    data_->cancel(why);
  }
  data_.reset();
  lost_ = why;
}

void ServerLink::lose(const std::string& why) {
  const base::MutexLock lock(mutex_);
  if (!data_ || !lost_.empty()) return;
  lost_ = why;
  data_->cancel(why);
}

base::Result<transport::Stream*> ServerLink::current() {
  const base::MutexLock lock(mutex_);
  if (data_ && lost_.empty()) return data_.get();
  return base::Failure{base::FailureKind::gone, lost_};
}

transport::Traffic ServerLink::traffic() const {
  transport::Traffic traffic = traffic_before_;
  return traffic;
}

void ServerLink::keep_control() {
  while (!stopping_ && !ended_) {
    try {
      keep_control_until_the_end();
    } catch (const UsageError&) {  // NOLINT(bugprone-empty-catch): keys that are being replaced, or wrong ones
    }
    // The data stream reports errors if it has to connect. Without heartbeats it is lost in the end.
    const base::MutexLock lock(mutex_);
    if (!stopping_ && !ended_) wake_.wait_for(mutex_, kRetryControl);
  }
}

void ServerLink::keep_control_until_the_end() {
  while (!stopping_ && !ended_) {
    transport::ConnectOptions connect;
    connect.security = options_.security;
    connect.role = options_.server;
    connect.meter = options_.meter;
    base::Result<std::unique_ptr<transport::Stream>> made =
        transport::connect(options_.address, connect, [this] { return stopping_ || ended_; });
    if (!made && made.failure().kind == base::FailureKind::usage) return;
    if (!made) continue;
    {
      const base::MutexLock lock(mutex_);
      control_ = made.value().get();
      link_watch_.control_connected(now_in_seconds());
    }
    listen(*made.value());
    {
      const base::MutexLock lock(mutex_);
      control_ = nullptr;
      link_watch_.control_lost(now_in_seconds());
    }
    if (stopping_ || ended_) return;
    lose("its connection closed");
    if (options_.on_lost) options_.on_lost();
  }
}

void ServerLink::listen(transport::Stream& stream) {
  transport::Header first = header(Kind::hello);
  first.flags = kControl;
  if (!send(stream, first, options_.hello)) return;
  while (!stopping_) {
    const base::Result<transport::Frame> frame = stream.read();
    if (!frame) return;
    {
      const base::MutexLock lock(mutex_);
      link_watch_.heard(now_in_seconds());
    }
    try {
      if (kind_of(frame.value()) == Kind::notice) {
        const auto notice = parse<wire::Notice>(frame.value());
        if (notice.ended()) note_end(stop_reason(notice.stop()));
        if (notice.ended() && !stream.write(header(Kind::notice))) return;
      }
      if (kind_of(frame.value()) == Kind::welcome) compare(parse<wire::Welcome>(frame.value()).incarnation());
    } catch (const Error&) {
      return;
    }
    if (kind_of(frame.value()) == Kind::heartbeat && !stream.write(header(Kind::heartbeat))) return;
  }
}

void ServerLink::compare(uint64_t process) {
  {
    const base::MutexLock lock(mutex_);
    if (link_watch_.back()) options_.log("info", fmt::format("{} at {} is back", options_.server, options_.address));
    if (!link_watch_.control_welcomed(process)) return;
  }
  lose("the server was restarted");
  if (options_.on_lost) options_.on_lost();
}

/// Cancels the waits for a server that has been silent for too long.
void ServerLink::watch() {
  while (!stopping_) {
    // Called without the lock, because it takes another link's, whose thread may take this one's.
    if (silent_too_long() && options_.on_lost) options_.on_lost();
  }
}

/// Waits a while. Returns true if the data stream was lost, unless the end of the control stream says so.
bool ServerLink::silent_too_long() {
  const base::MutexLock lock(mutex_);
  if (!stopping_) wake_.wait_for(mutex_, wire::kHeartbeat / 4);
  const double now = now_in_seconds();
  const std::optional<double> silent = link_watch_.silent(now);
  if (!silent && !leaving() && link_watch_.tell_away(now)) {
    options_.log("warning", fmt::format("{} at {}: its connection closed; connecting again for {:.0f} s",
                                        options_.server, options_.address, options_.patience));
  }
  if (!silent) return data_broke();
  const std::string why = fmt::format("no heartbeat for {:.1f} s", *silent);
  const bool lost = data_ && lost_.empty();
  if (lost) {
    lost_ = why;
    data_->cancel(why);
    link_watch_.told();
    options_.log("warning", fmt::format("{} at {}: {}", options_.server, options_.address, why));
  }
  if (control_ == nullptr) return lost;
  control_->cancel(why);
  return false;
}

/// The same if the data stream has broken alone.
bool ServerLink::data_broke() {
  if (!data_ || !lost_.empty()) return false;
  const std::optional<double> silent = link_watch_.data_silent(data_->unanswered(), now_in_seconds());
  if (!silent) return false;
  lost_ = fmt::format("no answer on the connection of data for {:.1f} s", *silent);
  data_->cancel(lost_);
  options_.log("warning", fmt::format("{} at {}: {}; connecting again", options_.server, options_.address, lost_));
  return true;
}

}  // namespace lockstep::ps
