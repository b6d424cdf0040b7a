#include "http/server.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <list>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "base/keep_alive.h"
#include "base/limits.h"
#include "base/mutex.h"
#include "base/signals.h"
#include "http/connection.h"
#include "lockstep/error.h"

namespace lockstep::http {
namespace {

using base::FileHandle;
using Stage = Connection::Stage;

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

Response not_allowed() {
  Response response = plain_response(405, "only GET and HEAD are served");
  response.headers = {{"Allow", "GET, HEAD"}};
  return response;
}

}  // namespace

class Server::Impl {
 public:
  Impl(FileHandle listener, ServerOptions options, Handler handler)
      : listener_(std::move(listener)),
        options_(std::move(options)),
        handler_(std::move(handler)),
        bell_(make_event()) {
    start();
  }
  ~Impl() { end(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void publish(std::string_view event) {
    {
      const base::MutexLock lock(mutex_);
      events_ += event;
    }
    ring();
  }
  [[nodiscard]] size_t streams() const { return streams_; }

 private:
  void start();
  void end();
  void ring();

  void work();
  Answer answer_to(const Job& job);

  void run();
  /// Waits until a socket is ready or a connection's deadline has passed.
  void wait();
  void accept_one();
  /// Closes the oldest connection that is not a stream; returns false if all are streams.
  bool make_room();
  /// Handles the mail of workers and publishers; returns false if the server must end.
  bool take_mail();
  /// Advances one connection; returns false once it is over.
  bool advance(Connection& connection);
  void understand(Connection& connection);
  void begin_answer(Connection& connection, Answer answer);
  void forget(const Connection& connection);

  const FileHandle listener_;
  const ServerOptions options_;
  const Handler handler_;
  const FileHandle bell_;  ///< signals mail, or the end
  std::atomic<size_t> streams_{0};

  // Used by the thread in `run` only.
  std::list<Connection> connections_;  ///< oldest first
  std::vector<pollfd> polled_;
  uint64_t next_number_ = 0;

  base::Mutex mutex_;
  base::Condition job_came_;
  bool ended_ LOCKSTEP_GUARDED_BY(mutex_) = false;
  std::deque<Job> jobs_ LOCKSTEP_GUARDED_BY(mutex_);
  std::vector<Answer> answers_ LOCKSTEP_GUARDED_BY(mutex_);
  std::string events_ LOCKSTEP_GUARDED_BY(mutex_);

  std::vector<std::thread> threads_;
};

void Server::Impl::start() {
  const base::SignalsBlocked blocked;
  try {
    for (size_t i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { work(); });
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error& error) {
    end();
    throw LimitError(fmt::format("{}: {}", options_.name, base::error_text(error)));
  }
}

void Server::Impl::end() {
  {
    const base::MutexLock lock(mutex_);
    ended_ = true;
  }
  job_came_.notify_all();
  ring();
  for (std::thread& thread : threads_) thread.join();
}

void Server::Impl::ring() {
  const uint64_t one = 1;
  (void)!::write(bell_.get(), &one, sizeof(one));
}

void Server::Impl::work() {
  pthread_setname_np(pthread_self(), options_.name.c_str());
  for (;;) {
    Job job;
    {
      const base::MutexLock lock(mutex_);
      while (jobs_.empty() && !ended_) job_came_.wait(mutex_);
      if (ended_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    Answer answer = answer_to(job);
    {
      const base::MutexLock lock(mutex_);
      answers_.push_back(std::move(answer));
    }
    ring();
  }
}

Answer Server::Impl::answer_to(const Job& job) {
  const bool head = job.request.method == "HEAD";
  try {
    const Response response = handler_(job.request);
    return {job.connection, response_text(response, head), response.events && !head};
  } catch (const std::exception& error) {
    return {job.connection, response_text(plain_response(500, error.what()), head), false};
  }
}

void Server::Impl::run() {
  pthread_setname_np(pthread_self(), options_.name.c_str());
  while (take_mail()) {
    connections_.remove_if([this](Connection& one) { return !advance(one); });
    wait();
    if ((polled_[0].revents & POLLIN) != 0) accept_one();
  }
  connections_.clear();
  streams_ = 0;
}

void Server::Impl::wait() {
  polled_.assign({{listener_.get(), POLLIN, 0}, {bell_.get(), POLLIN, 0}});
  int timeout = -1;
  for (const Connection& one : connections_) {
    polled_.push_back(one.poll_request());
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(one.deadline() - Connection::Clock::now());
    const int most = static_cast<int>(std::max<int64_t>(0, left.count()));
    timeout = timeout < 0 ? most : std::min(timeout, most);
  }
  ::poll(polled_.data(), polled_.size(), timeout);
}

void Server::Impl::accept_one() {
  FileHandle socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!socket.open()) {
    const bool used_up = errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    // Without an older connection to close, poll would report the new one again at once.
    if (used_up && !make_room()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return;
  }
  base::keep_alive(socket.get());
  if (connections_.size() >= options_.limits.connections && !make_room()) return;
  connections_.emplace_back(next_number_++, std::move(socket), options_.limits);
}

bool Server::Impl::make_room() {
  const auto oldest = std::find_if(connections_.begin(), connections_.end(),
                                   [](const Connection& one) { return one.stage() != Stage::streaming; });
  if (oldest == connections_.end()) return false;
  forget(*oldest);
  connections_.erase(oldest);
  return true;
}

bool Server::Impl::take_mail() {
  uint64_t rings = 0;
  (void)!::read(bell_.get(), &rings, sizeof(rings));
  std::vector<Answer> answers;
  std::string events;
  {
    const base::MutexLock lock(mutex_);
    if (ended_) return false;
    answers.swap(answers_);
    events.swap(events_);
  }
  for (Answer& answer : answers) {
    const auto asker = std::find_if(connections_.begin(), connections_.end(),
                                    [&](const Connection& one) { return one.number() == answer.connection; });
    if (asker != connections_.end()) begin_answer(*asker, std::move(answer));
  }
  for (Connection& one : connections_) {
    if (one.stage() == Stage::streaming) one.publish(events);
  }
  return true;
}

bool Server::Impl::advance(Connection& connection) {
  const bool goes_on = connection.advance();
  if (!goes_on) forget(connection);
  if (goes_on && connection.stage() == Stage::asked) understand(connection);
  return goes_on;
}

void Server::Impl::understand(Connection& connection) {
  Response refused;
  std::optional<Request> request = parse_request(connection.take_request(), refused);
  if (!request) return connection.answer(refused);
  if (request->method != "GET" && request->method != "HEAD") return connection.answer(not_allowed());
  Job job{connection.number(), std::move(*request)};
  if (options_.workers == 0) return begin_answer(connection, answer_to(job));
  {
    const base::MutexLock lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  job_came_.notify_one();
}

void Server::Impl::begin_answer(Connection& connection, Answer answer) {
  if (answer.events && streams_ >= options_.limits.streams) {
    return connection.answer(plain_response(503, "too many pages are open"));
  }
  connection.answer(std::move(answer.text), answer.events);
  if (answer.events) ++streams_;
}

void Server::Impl::forget(const Connection& connection) {
  if (connection.stage() == Stage::streaming) --streams_;
  if (connection.stage() != Stage::waiting) return;
  const base::MutexLock lock(mutex_);
  std::erase_if(jobs_, [&](const Job& job) { return job.connection == connection.number(); });
}

Server::Server(FileHandle listener, ServerOptions options, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(listener), std::move(options), std::move(handler))) {}
Server::~Server() = default;
void Server::publish(std::string_view event) { impl_->publish(event); }
size_t Server::streams() const { return impl_->streams(); }

}  // namespace lockstep::http
