// Connections that are no streams yet: strangers. One thread, the server's acceptor, moves all of them on, so that a
// stranger costs a socket and no thread. A connection is nothing but a socket until its first words have come as a
// whole; then gRPC hosts it, through TLS, until the peer's call has come, and where peers speak first until its first
// frame has.
//
// Used by one thread. Internal.
#pragma once

#include <poll.h>

#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "transport/server_host.h"
#include "transport/server_stream.h"

namespace lockstep::transport {

class Lobby {
 public:
  /// A stranger whose stream is ready for a handler.
  struct Ready {
    std::unique_ptr<ServerHost> host;
    std::unique_ptr<ServerStream> stream;  ///< destroyed before the host
  };

  /// `why_full` says why the server takes no more streams; empty: it does. Throws UsageError for keys that cannot be
  /// used.
  Lobby(const ServerOptions& options, std::function<std::string()> why_full);

  [[nodiscard]] size_t size() const { return strangers_.size(); }
  void take(base::FileHandle socket);
  /// Closes the stranger that has been silent for longest; false where all have said something just now.
  bool make_room();
  /// Closes all.
  void clear() { strangers_.clear(); }
  /// The limit of the system that kept a stranger from being hosted since the last call; empty: none.
  std::string take_limit() { return std::exchange(limit_, ""); }

  /// Adds the sockets to wait for, and shortens the time to wait (-1: for ever).
  void add_to(std::vector<pollfd>& polled, int& timeout_ms) const;
  /// Moves all on; `polled` is what add_to() added, after the wait. Gives those that are ready.
  std::vector<Ready> look(std::span<const pollfd> polled);

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    base::FileHandle socket;  ///< until the first bytes
    std::string peer;
    Clock::time_point until;
    Clock::time_point heard;
    core::PeerCheckPtr check;
    std::unique_ptr<ServerHost> host;
    std::unique_ptr<ServerStream> stream;
    bool ending = false;  ///< was told that it is not wanted
  };

  /// False: it is over.
  bool advance(Stranger& stranger, bool readable);
  /// Looks at the first bytes.
  bool open(Stranger& stranger);
  bool host(Stranger& stranger);
  void begin(Stranger& stranger, ServerHost::Call call);
  [[nodiscard]] bool ready(Stranger& stranger) const;
  void report(const Stranger& stranger);
  void report_own_expiry();
  /// Once for each key.
  void report(const std::string& key, const std::string& line);

  const ServerOptions& options_;
  const std::function<std::string()> why_full_;
  std::optional<Keys> keys_;        ///< as last read: files may be replaced while a job runs
  std::set<std::string> reported_;  ///< refusals, a line each
  std::list<Stranger> strangers_;   ///< the oldest first
  std::string limit_;
};

}  // namespace lockstep::transport
