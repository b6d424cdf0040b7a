// Connections that are not streams yet: strangers. One thread, the server's acceptor, serves all of them, so a stranger
// costs a socket and no thread. A connection is only a socket until its first bytes have arrived complete. Then gRPC
// hosts it: through TLS, until the peer's call has arrived, and until its first frame if peers speak first.
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
#include "transport/hand.h"
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

  /// `why_full` returns why the server takes no more streams; empty: it does. Throws UsageError for unusable keys.
  Lobby(const ServerOptions& options, const Hands& hands, std::function<std::string()> why_full);

  [[nodiscard]] size_t size() const { return strangers_.size(); }
  void take(base::FileHandle socket);
  /// Closes the stranger that has been silent for longest. Returns false if all have sent something just now.
  bool make_room();
  /// Closes all strangers.
  void clear() { strangers_.clear(); }
  /// Returns the system limit that kept a stranger from being hosted since the last call; empty: none.
  std::string take_limit() { return std::exchange(limit_, ""); }

  /// Adds the sockets to wait for, and shortens the timeout (-1: none).
  void add_to(std::vector<pollfd>& polled, int& timeout_ms) const;
  /// Advances all strangers; `polled` is the part that add_to() added, after the wait. Returns those that are ready.
  std::vector<Ready> advance_all(std::span<const pollfd> polled);

 private:
  using Clock = std::chrono::steady_clock;
  struct Stranger {
    base::FileHandle socket;  ///< open until gRPC takes the connection over
    std::string peer;
    Clock::time_point until;
    Clock::time_point heard;
    core::PeerCheckPtr check;
    std::unique_ptr<ServerHost> host;
    std::unique_ptr<ServerStream> stream;
    HandShare hand;       ///< until the stream has it
    bool ending = false;  ///< true once it was told that it is refused
  };

  /// Returns false if the stranger is done.
  bool advance(Stranger& stranger, bool readable);
  /// Checks the first bytes.
  bool open(Stranger& stranger);
  bool host(Stranger& stranger);
  void begin(Stranger& stranger, ServerHost::Call call);
  [[nodiscard]] bool ready(Stranger& stranger) const;
  void report(const Stranger& stranger);
  void report_own_expiry();
  /// Reports a line once for each key.
  void report(const std::string& key, const std::string& line);

  const ServerOptions& options_;
  const Hands& hands_;
  const std::function<std::string()> why_full_;
  std::optional<Keys> keys_;        ///< keys as last read: the files may be replaced while a job runs
  std::set<std::string> reported_;  ///< refusals already reported, one line each
  std::list<Stranger> strangers_;   ///< oldest first
  std::string limit_;
};

}  // namespace lockstep::transport
