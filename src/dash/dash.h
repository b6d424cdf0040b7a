// The dashboard: a web page over a folder of runs and a lab, served by this process. Read-only. It listens on loopback
// by default; on any other address every request needs a token. Paths outside its folders are refused. `serve` returns
// once `stop` is readable; connections then end. See docs/dash.md.
#pragma once

#include <functional>
#include <string>

namespace lockstep::dash {

struct Options {
  std::string runs_dir = "runs";
  std::string lab_dir = "lab";
  std::string host = "127.0.0.1";
  int port = 6007;         ///< 0: any free port
  std::string token = {};  ///< empty: none is needed, which only loopback allows
  int stop = -1;           ///< descriptor; serve() returns once it is readable
};

/// Returns a token of 128 random bits.
std::string make_token();

/// Serves until stopped. Calls `ready` with the page's address once it listens. Throws UsageError, IoError.
void serve(const Options& options, const std::function<void(const std::string& url)>& ready);

}  // namespace lockstep::dash
