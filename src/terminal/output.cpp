#include "terminal/output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "lockstep/error.h"

namespace lockstep::terminal {

void write_out(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void flush_out() { std::fflush(stdout); }

void print_note(const Terminal& terminal, std::string_view level, std::string_view text) {
  const std::string line = fmt::format("{}lockstep: {}: {}\n", terminal.interactive ? "\r\033[K" : "", level, text);
  std::fputs(line.c_str(), stderr);
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  if (errno == EPIPE || errno == 0) return;
  throw IoError(std::string("cannot write to standard output: ") +
                std::strerror(errno));  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace lockstep::terminal
