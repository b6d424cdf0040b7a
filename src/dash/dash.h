// The dashboard: a web page over a folder of runs and a lab, served from this process. Read-only. It listens on
// loopback unless told; elsewhere every request needs a token. Paths outside its folders are refused. `serve` returns
// when `stop` is readable; connections then end. See docs/dash.md.
#pragma once

#include <functional>
#include <string>

namespace lockstep::dash {

struct Options {
  std::string runs_dir = "runs";
  std::string lab_dir = "lab";
  std::string host = "127.0.0.1";
  int port = 6007;         ///< 0: any free one
  std::string token = {};  ///< empty: none is asked for, which only loopback may have
  int stop = -1;           ///< a descriptor; readable: stop
};

/// 128 random bits, for a token.
std::string make_token();

/// `ready` is called with the page's address once it listens. Throws UsageError, IoError.
void serve(const Options& options, const std::function<void(const std::string& url)>& ready);

}  // namespace lockstep::dash
