#include "dash/http_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <list>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/signals.h"
#include "lockstep/error.h"

namespace lockstep::dash {
namespace {

using base::FileHandle;
using Clock = std::chrono::steady_clock;

constexpr size_t kMostRequestBytes = 16384;
constexpr size_t kMostConnections = 192;           ///< streams included
constexpr size_t kMostUnsent = size_t{256} << 10;  ///< events that a stream has not taken
constexpr size_t kWorkers = 4;
constexpr std::chrono::seconds kLongestRequest{10};
constexpr std::chrono::seconds kLongestAnswer{60};
constexpr std::chrono::seconds kBeat{15};  ///< streams get a sign of life, so that those who are gone are found

struct Connection {
  enum class Stage : uint8_t { receiving, waiting, sending, streaming };
  uint64_t number = 0;
  FileHandle socket;
  Stage stage = Stage::receiving;
  Clock::time_point until;
  std::string request;
  std::string unsent;
};

struct Job {
  uint64_t connection = 0;
  Request request;
};

struct Answer {
  uint64_t connection = 0;
  std::string text;
  bool events = false;
};

FileHandle make_event() {
  FileHandle made(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!made.open()) base::throw_io_error("make", "an eventfd", errno);
  return made;
}

void ring(const FileHandle& bell) {
  const uint64_t one = 1;
  (void)!::write(bell.get(), &one, sizeof(one));
}

bool try_again(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

class HttpServer::Impl {
 public:
  Impl(FileHandle listener, Handler handler)
      : listener_(std::move(listener)), handler_(std::move(handler)), bell_(make_event()) {
    const base::SignalsBlocked blocked;
    for (size_t i = 0; i < kWorkers; ++i) workers_.emplace_back([this] { work(); });
  }
  ~Impl() {
    {
      const base::MutexLock lock(mutex_);
      ended_ = true;
    }
    job_came_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void run(int stop);
  void publish(std::string_view event) {
    {
      const base::MutexLock lock(mutex_);
      events_ += event;
    }
    ring(bell_);
  }
  [[nodiscard]] size_t streams() const { return streams_; }

 private:
  using Stage = Connection::Stage;

  void work();
  std::string make_text(const Job& job, bool& events);

  /// Until something can be done or a connection's time is over; false: to stop.
  bool wait(int stop);
  void accept_one();
  void make_room();
  void take_answers();
  void take_events();
  /// Goes on with one; false: it is over.
  bool advance(Connection& connection);
  bool receive(Connection& connection);
  bool understand(Connection& connection);
  static bool refuse(Connection& connection, const Response& response);
  static bool send(Connection& connection);
  /// What a stream's reader sends means nothing; that it is gone does.
  static bool listens(const Connection& connection);
  void begin_answer(Connection& connection, Answer& answer);

  const FileHandle listener_;
  const Handler handler_;
  const FileHandle bell_;  ///< there are answers or events
  std::atomic<size_t> streams_{0};

  // Of the thread in `run`.
  std::list<Connection> connections_;  ///< the oldest first
  std::vector<pollfd> polled_;
  uint64_t next_number_ = 0;
  Clock::time_point next_beat_ = Clock::now() + kBeat;

  base::Mutex mutex_;
  base::Condition job_came_;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::deque<Job> jobs_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<Answer> answers_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string events_ LOCKSTEP_GUARDED_BY(mutex_);

  std::vector<std::thread> workers_;
};

void HttpServer::Impl::work() {
  pthread_setname_np(pthread_self(), "dash");
  for (;;) {
    Job job;
    {
      const base::MutexLock lock(mutex_);
      while (jobs_.empty() && !ended_) job_came_.wait(mutex_);
      if (ended_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    bool events = false;
    std::string text = make_text(job, events);
    {
      const base::MutexLock lock(mutex_);
      answers_.push_back({job.connection, std::move(text), events});
    }
    ring(bell_);
  }
}

std::string HttpServer::Impl::make_text(const Job& job, bool& events) {
  const bool head = job.request.method == "HEAD";
  try {
    const Response response = handler_(job.request);
    events = response.events && !head;
    return response_text(response, head);
  } catch (const std::exception& error) {
    return response_text(plain_response(500, error.what()), head);
  }
}

void HttpServer::Impl::run(int stop) {
  while (wait(stop)) {
    if ((polled_[1].revents & POLLIN) != 0) accept_one();
    if (polled_[2].revents != 0) {
      uint64_t rings = 0;
      (void)!::read(bell_.get(), &rings, sizeof(rings));
    }
    take_answers();
    take_events();
    connections_.remove_if([this](Connection& one) {
      const bool over = (one.stage != Stage::streaming && Clock::now() >= one.until) || !advance(one);
      if (over && one.stage == Stage::streaming) --streams_;
      return over;
    });
  }
  connections_.clear();
  streams_ = 0;
}

bool HttpServer::Impl::wait(int stop) {
  polled_.assign({{stop, POLLIN, 0}, {listener_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}});
  auto until = next_beat_;
  for (const Connection& one : connections_) {
    const bool reads = one.stage == Stage::receiving || one.stage == Stage::streaming;
    const int wanted = (reads ? POLLIN : 0) | (one.unsent.empty() ? 0 : POLLOUT);
    polled_.push_back({one.socket.get(), static_cast<short>(wanted), 0});
    if (one.stage != Stage::streaming) until = std::min(until, one.until);
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  ::poll(polled_.data(), polled_.size(), static_cast<int>(std::max<int64_t>(0, left.count())));
  return polled_[0].revents == 0;
}

void HttpServer::Impl::accept_one() {
  FileHandle socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.open()) {
    const bool used_up = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (used_up) std::this_thread::sleep_for(std::chrono::milliseconds(50));  // it would be reported again at once
    return;
  }
  if (connections_.size() >= kMostConnections) make_room();
  Connection& made = connections_.emplace_back();
  made.number = next_number_++;
  made.socket = std::move(socket);
  made.until = Clock::now() + kLongestRequest;
}

void HttpServer::Impl::make_room() {
  const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                   [](const Connection& one) { return one.stage != Stage::streaming; });
  if (oldest != connections_.end()) connections_.erase(oldest);
}

void HttpServer::Impl::take_answers() {
  std::vector<Answer> answers;
  {
    const base::MutexLock lock(mutex_);
    answers.swap(answers_);
  }
  for (Answer& answer : answers) {
    const auto asker = std::find_if(connections_.begin(), connections_.end(),
                                    [&](const Connection& one) { return one.number == answer.connection; });
    if (asker != connections_.end()) begin_answer(*asker, answer);
  }
}

void HttpServer::Impl::begin_answer(Connection& connection, Answer& answer) {
  if (answer.events && streams_ >= kMostStreams) {
    refuse(connection, plain_response(503, "too many pages are open"));
    return;
  }
  connection.unsent = std::move(answer.text);
  connection.stage = answer.events ? Stage::streaming : Stage::sending;
  connection.until = Clock::now() + kLongestAnswer;
  if (answer.events) ++streams_;
}

void HttpServer::Impl::take_events() {
  std::string events;
  {
    const base::MutexLock lock(mutex_);
    events.swap(events_);
  }
  if (Clock::now() >= next_beat_) {
    events += ": still here\n\n";
    next_beat_ = Clock::now() + kBeat;
  }
  if (events.empty()) return;
  for (Connection& one : connections_) {
    if (one.stage == Stage::streaming) one.unsent += events;
  }
}

bool HttpServer::Impl::advance(Connection& connection) {
  switch (connection.stage) {
    case Stage::receiving:
      return receive(connection) && (connection.unsent.empty() || send(connection));
    case Stage::waiting:
      return true;
    case Stage::sending:
      return send(connection);
    case Stage::streaming:
      return listens(connection) && connection.unsent.size() <= kMostUnsent && send(connection);
  }
  return false;
}

bool HttpServer::Impl::receive(Connection& connection) {
  std::array<char, kMostRequestBytes> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t count = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  if (count < 0) return try_again(errno);
  if (count == 0) return false;
  connection.request.append(buffer.data(), static_cast<size_t>(count));
  if (connection.request.size() > kMostRequestBytes) {
    return refuse(connection, plain_response(431, "the request is too large"));
  }
  return !is_whole_request(connection.request) || understand(connection);
}

bool HttpServer::Impl::understand(Connection& connection) {
  Response refused;
  std::optional<Request> request = parse_request(connection.request, refused);
  if (!request) return refuse(connection, refused);
  if (request->method != "GET" && request->method != "HEAD") {
    return refuse(connection, plain_response(405, "only GET and HEAD are served"));
  }
  connection.stage = Stage::waiting;
  connection.until = Clock::now() + kLongestAnswer;
  {
    const base::MutexLock lock(mutex_);
    jobs_.push_back({connection.number, std::move(*request)});
  }
  job_came_.notify_one();
  return true;
}

bool HttpServer::Impl::refuse(Connection& connection, const Response& response) {
  connection.unsent = response_text(response, false);
  connection.stage = Stage::sending;
  connection.until = Clock::now() + kLongestRequest;
  return true;
}

bool HttpServer::Impl::send(Connection& connection) {
  if (connection.unsent.empty()) return true;
  const ssize_t count =
      ::send(connection.socket.get(), connection.unsent.data(), connection.unsent.size(), MSG_NOSIGNAL);
  if (count < 0) return try_again(errno);
  connection.unsent.erase(0, static_cast<size_t>(count));
  if (!connection.unsent.empty() || connection.stage == Stage::streaming) return true;
  ::shutdown(connection.socket.get(), SHUT_WR);
  return false;
}

bool HttpServer::Impl::listens(const Connection& connection) {
  std::array<char, 256> buffer;  // NOLINT(cppcoreguidelines-pro-type-member-init): recv fills it
  const ssize_t count = ::recv(connection.socket.get(), buffer.data(), buffer.size(), 0);
  return count > 0 || (count < 0 && try_again(errno));
}

HttpServer::HttpServer(FileHandle listener, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(listener), std::move(handler))) {}
HttpServer::~HttpServer() = default;
void HttpServer::run(int stop) { impl_->run(stop); }
void HttpServer::publish(std::string_view event) { impl_->publish(event); }
size_t HttpServer::streams() const { return impl_->streams(); }

}  // namespace lockstep::dash
