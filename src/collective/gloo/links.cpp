#include "collective/gloo/links.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gloo/transport/tcp/address.h>
#include <gloo/transport/tcp/device.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <new>
#include <random>
#include <set>

#include "base/host.h"
#include "base/keep_alive.h"
#include "schedule/all_reduce_steps.h"

namespace lockstep::collective::gloo_engine {
namespace {

namespace tcp = gloo::transport::tcp;
using base::FailureKind;

constexpr std::string_view kMagic = "lockstep gloo 3\n";
constexpr std::string_view kSpins = "spins";
constexpr std::string_view kSleeps = "sleeps";
constexpr size_t kTokenSize = 16;
constexpr size_t kStageAlignment = 64;
/// Size that always fits into a send buffer unless the receiver has left many messages unread.
constexpr size_t kAlwaysFits = 4096;
/// Linux's default limit for any user. Linux then gives twice as much, and uses a little of it for itself.
constexpr int kRoomWanted = 212'992;

std::string make_token() {
  std::random_device random;
  std::string token;
  while (token.size() < kTokenSize) token.push_back(static_cast<char>(random() & 0xff));
  return token;
}

/// Makes an error about one other member.
LinkError fault_of(int rank, FailureKind kind, std::string text, int error_number = 0) {
  base::Failure failure{kind, std::move(text)};
  failure.ranks = {rank};
  failure.error_number = error_number;
  return LinkError(std::move(failure));
}

/// Removes the "[file:line] " in front of Gloo's messages.
std::string without_place(std::string_view text) {
  const size_t end = text.find("] ");
  if (text.starts_with("[") && end != std::string_view::npos && text.substr(0, end).find(".cc:") != std::string::npos) {
    text.remove_prefix(end + 2);
  }
  return std::string(text);
}

/// Returns the first address of a host that accepts listening, in numbers: Gloo crashes on a name that cannot be
/// resolved.
std::string listenable(std::string host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) throw LinkError({FailureKind::io, fmt::format("the host cannot be found: {}", gai_strerror(error))});
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    const base::FileHandle socket(::socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.open() || ::bind(socket.get(), address->ai_addr, address->ai_addrlen) != 0) continue;
    std::array<char, NI_MAXHOST> text{};
    getnameinfo(address->ai_addr, address->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST);
    return text.data();
  }
  throw LinkError({FailureKind::io, std::strerror(errno)});
}

bool same_address(const sockaddr_storage& a, const sockaddr_storage& b) {
  if (a.ss_family != b.ss_family) return false;
  if (a.ss_family == AF_INET6) {
    const auto& x = reinterpret_cast<const sockaddr_in6&>(a);
    const auto& y = reinterpret_cast<const sockaddr_in6&>(b);
    return x.sin6_port == y.sin6_port && std::memcmp(&x.sin6_addr, &y.sin6_addr, sizeof(x.sin6_addr)) == 0;
  }
  const auto& x = reinterpret_cast<const sockaddr_in&>(a);
  const auto& y = reinterpret_cast<const sockaddr_in&>(b);
  return x.sin_port == y.sin_port && x.sin_addr.s_addr == y.sin_addr.s_addr;
}

/// Returns another handle of the connected socket at this local address; Gloo does not give out its own. A port may be
/// used again while an earlier connection of it lasts. So the socket that leads to the peer's listener is the one; if
/// the peer called, the one with the largest inode is, the newest.
base::FileHandle find_socket(const sockaddr_storage& local, const sockaddr_storage& listener) {
  const auto matches = [&](int fd) {
    sockaddr_storage name{};
    socklen_t length = sizeof(name);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0 || !same_address(name, local)) return false;
    length = sizeof(name);
    return getpeername(fd, reinterpret_cast<sockaddr*>(&name), &length) == 0;
  };
  const auto leads_to_listener = [&](int fd) {
    sockaddr_storage name{};
    socklen_t length = sizeof(name);
    return getpeername(fd, reinterpret_cast<sockaddr*>(&name), &length) == 0 && same_address(name, listener);
  };
  base::FileHandle newest;
  ino_t inode = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const int fd = std::stoi(entry.path().filename());
    struct stat about {};
    if (!matches(fd) || fstat(fd, &about) != 0 || (about.st_ino <= inode && !leads_to_listener(fd))) continue;
    base::FileHandle handle(fcntl(fd, F_DUPFD_CLOEXEC, 0));
    if (!handle.open() || !matches(handle.get())) continue;
    fcntl(fd, F_SETFD, FD_CLOEXEC);  // a child process must not keep our connection open
    if (leads_to_listener(handle.get())) return handle;
    newest = std::move(handle);
    inode = about.st_ino;
  }
  return newest;
}

const sockaddr_storage& address_of(const gloo::transport::Pair& pair) {
  return static_cast<const tcp::Address&>(pair.address()).getSockaddr();
}

/// Makes the send buffer large enough for both ends, so that writing before reading cannot block for good.
void make_room(int socket) {
  setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &kRoomWanted, sizeof(kRoomWanted));
  int room = 0;
  socklen_t length = sizeof(room);
  getsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, &length);
  if (room >= static_cast<int>(kRoom)) return;
  throw LinkError(
      {FailureKind::limit, fmt::format("the system limits send buffers to {} bytes (net.core.wmem_max); {} are needed",
                                       room / 2, kRoomWanted)});
}

/// Returns a text that members of one machine share. Emulated nodes are separate machines: each has its own cores.
std::string machine() {
  if (const std::optional<base::OwnNode> node = base::own_node()) return node->name;
  return std::to_string(base::machine_number());
}

std::string greeting(int from, int to, int size, std::string_view token) {
  std::string text = fmt::format("{}{} to {} of {}\n{}", kMagic, from, to, size, token);
  text.resize(kPiece);
  return text;
}

void append_field(std::string& blob, std::string_view field) {
  const auto length = static_cast<uint16_t>(field.size());
  blob.append(reinterpret_cast<const char*>(&length), sizeof(length));
  blob.append(field);
}

std::string_view take_field(std::string_view& blob, int rank) {
  uint16_t length = 0;
  if (blob.size() >= sizeof(length)) std::memcpy(&length, blob.data(), sizeof(length));
  if (blob.size() < sizeof(length) + length) {
    throw fault_of(rank, FailureKind::corrupt, fmt::format("its address is cut off: {} bytes are left", blob.size()));
  }
  const std::string_view field = blob.substr(sizeof(length), length);
  blob.remove_prefix(sizeof(length) + length);
  return field;
}

}  // namespace

void Links::FreeStage::operator()(std::byte* bytes) const {
  ::operator delete[](bytes, std::align_val_t(kStageAlignment));
}

Links::Links(const std::string& host, int rank, int size, const GroupOptions& options)
    : rank_(rank),
      size_(size),
      options_(options),
      token_(make_token()),
      peers_(static_cast<size_t>(std::max(size, 0))) {
  if (size < 1 || rank < 0 || rank >= size)
    throw UsageError(fmt::format("rank {} cannot be in a group of {}", rank, size));
  try {
    device_ = tcp::CreateDevice(tcp::attr(listenable(host).c_str()));
    context_ = device_->createContext(rank, size);
    context_->setTimeout(std::chrono::ceil<std::chrono::milliseconds>(options.deadline));
    neighbours_ = schedule::all_reduce_neighbours(rank, size);
    for (const int peer : neighbours_) peers_[static_cast<size_t>(peer)].pair = context_->createPair(peer).get();
  } catch (const std::exception& error) {
    throw IoError(fmt::format("gloo: cannot listen at {}: {}", host, without_place(error.what())));
  }
}

Links::~Links() { unbind(); }

std::string Links::address() const {
  std::string blob(kMagic);
  append_field(blob, token_);
  append_field(blob, options_.spin.count() > 0 ? kSpins : kSleeps);
  append_field(blob, machine());
  for (const int rank : neighbours_) {
    const std::vector<char> bytes = peers_[static_cast<size_t>(rank)].pair->address().bytes();
    append_field(blob, {bytes.data(), bytes.size()});
  }
  return blob;
}

void Links::connect(const std::vector<std::string>& addresses) {
  if (addresses.size() != peers_.size()) {
    throw LinkError({FailureKind::corrupt, fmt::format("{} addresses for a group of {}", addresses.size(), size_)});
  }
  until_ = Clock::now() + std::chrono::duration_cast<Clock::duration>(options_.deadline);
  std::vector<std::string> tokens;
  std::set<std::string> machines;
  bool sleeps = false;
  bool shared = false;
  for (int rank = 0; rank < size_; ++rank) {
    std::string_view blob = addresses[static_cast<size_t>(rank)];
    if (!blob.starts_with(kMagic)) throw fault_of(rank, FailureKind::corrupt, "its address is not a Gloo address");
    blob.remove_prefix(kMagic.size());
    tokens.emplace_back(take_field(blob, rank));
    sleeps = take_field(blob, rank) != kSpins || sleeps;
    shared = !machines.emplace(take_field(blob, rank)).second || shared;
    if (peers_[static_cast<size_t>(rank)].pair == nullptr) continue;
    std::string_view mine;
    for (const int peer : schedule::all_reduce_neighbours(rank, size_)) {
      const std::string_view field = take_field(blob, rank);
      if (peer == rank_) mine = field;
    }
    connect_peer(rank, mine);
  }
  crowded_ = sleeps && shared;
  for (const int rank : neighbours_) greet(rank, tokens[static_cast<size_t>(rank)]);
  for (const int rank : neighbours_) check_greeting(rank);
}

void Links::connect_peer(int rank, std::string_view address) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  if (address.size() != peer.pair->address().bytes().size()) {
    throw fault_of(rank, FailureKind::corrupt, fmt::format("its address has {} bytes", address.size()));
  }
  try {
    if (interrupted_) throw LinkError({FailureKind::interrupted, "interrupted"});
    peer.pair->connect({address.begin(), address.end()});
    peer.pair->setSync(true, false);
  } catch (const std::exception& error) {
    throw fault_of(rank, FailureKind::unreachable, "connecting: " + without_place(error.what()));
  }
  const tcp::Address theirs(std::vector<char>(address.begin(), address.end()));
  base::FileHandle socket = find_socket(address_of(*peer.pair), theirs.getSockaddr());
  if (!socket.open()) throw fault_of(rank, FailureKind::gone, "the connection is gone");
  const std::lock_guard lock(sockets_);
  if (interrupted_) throw LinkError({FailureKind::interrupted, "interrupted"});
  peer.socket = std::move(socket);
}

/// Pads the greeting to the longest message: Gloo sizes its send buffer by the first and must not do so again.
void Links::greet(int rank, std::string_view token) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  peer.stage.reset(static_cast<std::byte*>(::operator new[](kPiece, std::align_val_t(kStageAlignment))));
  const std::string text = greeting(rank_, rank, size_, token);
  bind(std::as_bytes(std::span(text)), {});
  send(rank, Lane::stage, 0, text.size());
  unbind();
  make_room(peer.socket.get());
  base::keep_alive(peer.socket.get());
}

void Links::check_greeting(int rank) {
  receive(rank, Lane::stage, kPiece);
  const std::string expected = greeting(rank, rank_, size_, token_);
  if (std::memcmp(stage(rank), expected.data(), kPiece) != 0) {
    throw fault_of(rank, FailureKind::corrupt, "a process that is not in this group connected in its place");
  }
}

void Links::bind(std::span<const std::byte> out, std::span<std::byte> in) {
  out_ = out;
  in_ = in;
}

void Links::unbind() {
  for (Peer& peer : peers_) {
    for (Buffer& buffer : peer.out) buffer.reset();
    peer.in[static_cast<size_t>(Lane::place)].reset();
  }
}

void Links::send(int rank, Lane lane, size_t offset, size_t length) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  Buffer& buffer = peer.out[static_cast<size_t>(lane)];
  if (length > kAlwaysFits) wait_for(rank, POLLOUT);
  try {
    // Gloo declares memory that it only reads as writable.
    if (!buffer) {
      buffer = peer.pair->createSendBuffer(slot(lane, rank_, rank), const_cast<std::byte*>(out_.data()), out_.size());
    }
    buffer->send(offset, length, lane == Lane::place ? offset : 0);
    buffer->waitSend();
  } catch (const std::exception& error) {
    throw fault_of(rank, FailureKind::gone, "sending to it: " + without_place(error.what()));
  }
  sent_.fetch_add(length, std::memory_order_relaxed);
  if (options_.meter != nullptr) options_.meter->sent(length);
}

void Links::receive(int rank, Lane lane, size_t length) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  Buffer& buffer = peer.in[static_cast<size_t>(lane)];
  wait_for(rank, POLLIN);
  try {
    if (!buffer) {
      buffer = lane == Lane::stage ? peer.pair->createRecvBuffer(slot(lane, rank, rank_), peer.stage.get(), kPiece)
                                   : peer.pair->createRecvBuffer(slot(lane, rank, rank_), in_.data(), in_.size());
    }
    buffer->waitRecv();
  } catch (const std::exception& error) {
    throw fault_of(rank, FailureKind::gone, "waiting for it: " + without_place(error.what()));
  }
  received_.fetch_add(length, std::memory_order_relaxed);
  if (options_.meter != nullptr) options_.meter->received(length);
}

void Links::wait_for(int rank, short event) {
  pollfd watched{.fd = peers_[static_cast<size_t>(rank)].socket.get(), .events = event, .revents = 0};
  if (options_.spin.count() > 0) {
    const auto spin_until = Clock::now() + options_.spin;
    do {
      if (poll(&watched, 1, 0) > 0) return;
    } while (Clock::now() < spin_until);
  }
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until_ - Clock::now());
    const auto ready = poll(&watched, 1, static_cast<int>(std::clamp<int64_t>(left.count(), 0, 60'000)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw fault_of(rank, FailureKind::io, strerror(errno), errno);
    if (Clock::now() >= until_) {
      const char* what = event == POLLIN ? "sent nothing" : "received nothing";
      throw fault_of(rank, FailureKind::timeout, fmt::format("{} within {:g} s", what, options_.deadline.count()));
    }
  }
}

void Links::interrupt() {
  const std::lock_guard lock(sockets_);
  interrupted_ = true;
  for (Peer& peer : peers_) {
    if (peer.socket.open()) {
      shutdown(peer.socket.get(), SHUT_RDWR);
    } else if (peer.pair != nullptr) {
      peer.pair->close();
    }
  }
}

}  // namespace lockstep::collective::gloo_engine
