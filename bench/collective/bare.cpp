#include "bare.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstring>
#include <new>
#include <thread>

#include "lockstep/error.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kPiece = 128 * 1024;
constexpr int kBuffer = 1 << 20;

[[noreturn]] void fail(const char* what) { throw Error(std::string(what) + ": " + std::strerror(errno)); }

void send_all(int socket, const std::byte* bytes, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) fail("send");
    bytes += sent;
    size -= static_cast<size_t>(sent);
  }
}

/// Returns the two ends of a TCP connection over loopback.
std::array<base::FileHandle, 2> loopback_pair() {
  const base::FileHandle listener(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* name = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener.get(), name, length) != 0 || listen(listener.get(), 1) != 0) fail("listen");
  getsockname(listener.get(), name, &length);
  std::array<base::FileHandle, 2> ends;
  ends[0] = base::FileHandle(socket(AF_INET, SOCK_STREAM, 0));
  if (connect(ends[0].get(), name, length) != 0) fail("connect");
  ends[1] = base::FileHandle(accept(listener.get(), nullptr, nullptr));
  for (const base::FileHandle& end : ends) {
    const int on = 1;
    setsockopt(end.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(end.get(), SOL_SOCKET, SO_SNDBUF, &kBuffer, sizeof(kBuffer));
  }
  return ends;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

}  // namespace

/// Each side writes into its own slots and reads the other's. The counters hold the number of pieces written.
struct BarePartner::Shared {
  static constexpr size_t kSlots = 2;
  struct Side {
    alignas(64) std::atomic<uint64_t> written{0};
    alignas(64) std::atomic<uint64_t> read{0};
    alignas(64) std::array<std::array<std::byte, kPiece>, kSlots> slots;
  };
  std::array<Side, 2> sides;
};

BarePartner::BarePartner(size_t largest, std::chrono::microseconds spin)
    : spin_(spin), out_(largest, std::byte{1}), in_(largest) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("mmap");
  shared_ = new (memory) Shared;
  std::array<base::FileHandle, 2> data = loopback_pair();
  std::array<int, 2> commands{};
  if (pipe(commands.data()) != 0) fail("pipe");
  base::FileHandle command_in(commands[0]);
  base::FileHandle command_out(commands[1]);
  partner_ = fork();
  if (partner_ < 0) fail("fork");
  side_ = partner_ == 0 ? 1 : 0;
  socket_ = std::move(data[static_cast<size_t>(side_)]);
  commands_ = side_ == 0 ? std::move(command_out) : std::move(command_in);
  if (side_ == 1) {
    command_out.reset();
    serve();
  }
}

BarePartner::~BarePartner() {
  kill(partner_, SIGKILL);
  waitpid(partner_, nullptr, 0);
  munmap(shared_, sizeof(Shared));
}

BareTimes BarePartner::exchange(size_t bytes, int times) {
  const Command command{bytes, times};
  if (write(commands_.get(), &command, sizeof(command)) != sizeof(command)) fail("write");
  return measure(command);
}

void BarePartner::serve() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    Command command;
    while (read(commands_.get(), &command, sizeof(command)) == sizeof(command)) measure(command);
  } catch (const std::exception&) {
  }
  _exit(0);
}

BareTimes BarePartner::measure(const Command& command) {
  socket_exchange(1);  // waits until both sides are ready
  auto start = Clock::now();
  for (int i = 0; i < command.times; ++i) socket_exchange(command.bytes);
  const double socket = seconds_since(start) / command.times;
  copy_exchange(1);
  start = Clock::now();
  for (int i = 0; i < command.times; ++i) copy_exchange(command.bytes);
  return {socket, seconds_since(start) / command.times};
}

void BarePartner::socket_exchange(size_t bytes) {
  for (size_t at = 0; at < bytes; at += kPiece) {
    const size_t size = std::min(kPiece, bytes - at);
    send_all(socket_.get(), out_.data() + at, size);
    receive(in_.data() + at, size);
  }
}

void BarePartner::receive(std::byte* to, size_t bytes) {
  const auto until = Clock::now() + spin_;
  while (bytes > 0) {
    const bool poll = spin_.count() > 0 && Clock::now() < until;
    const ssize_t got = recv(socket_.get(), to, bytes, poll ? MSG_DONTWAIT : 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) fail("recv");
    to += got;
    bytes -= static_cast<size_t>(got);
  }
}

void BarePartner::copy_exchange(size_t bytes) {
  Shared::Side& mine = shared_->sides[static_cast<size_t>(side_)];
  Shared::Side& other = shared_->sides[static_cast<size_t>(1 - side_)];
  for (size_t at = 0; at < bytes; at += kPiece) {
    const size_t size = std::min(kPiece, bytes - at);
    const uint64_t number = mine.written.load();
    wait_until([&] { return number - other.read.load() < Shared::kSlots; });
    std::memcpy(mine.slots[number % Shared::kSlots].data(), out_.data() + at, size);
    mine.written.store(number + 1);
    const uint64_t wanted = mine.read.load();
    wait_until([&] { return other.written.load() > wanted; });
    std::memcpy(in_.data() + at, other.slots[wanted % Shared::kSlots].data(), size);
    mine.read.store(wanted + 1);
  }
}

void BarePartner::wait_until(const std::function<bool()>& ready) const {
  const auto until = Clock::now() + spin_;
  while (!ready()) {
    if (Clock::now() >= until) std::this_thread::yield();
  }
}

}  // namespace lockstep::bench
