#include "base/limits.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <new>
#include <optional>
#include <system_error>

#include "lockstep/error.h"

namespace lockstep::base {
namespace {

using Resource = decltype(RLIMIT_NOFILE);

/// Returns the soft limit; nothing if it is unlimited.
std::optional<uint64_t> limit_of(Resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

/// Returns the smaller of the two memory limits, in `ulimit` units; empty if there is none.
std::string memory_limit() {
  const std::optional<uint64_t> space = limit_of(RLIMIT_AS);
  const std::optional<uint64_t> data = limit_of(RLIMIT_DATA);
  if (!space && !data) return "";
  const bool smaller = space && (!data || *space <= *data);
  return fmt::format("this process may use {} kB of memory (`ulimit -{}`)", (smaller ? *space : *data) / 1024,
                     smaller ? "v" : "d");
}

const std::system_error* failed_thread(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && system->code() == std::errc::resource_unavailable_try_again ? system : nullptr;
}

}  // namespace

void raise_open_files() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

void check_open_files(uint64_t needed, const std::string& who) {
  const std::optional<uint64_t> allowed = limit_of(RLIMIT_NOFILE);
  if (!allowed || *allowed >= needed) return;
  throw LimitError(
      fmt::format("this process may open {} files, and {} needs about {}: raise `ulimit -n`", *allowed, who, needed),
      EMFILE);
}

std::string limit_text(int error_number) {
  if (error_number == ENFILE) return "this machine allows no more open files: raise fs.file-max";
  if (error_number == ENOMEM) return memory_limit_text();
  if (error_number != EMFILE) return "";
  return fmt::format("this process may open {} files: raise `ulimit -n`", limit_of(RLIMIT_NOFILE).value_or(0));
}

std::string memory_limit_text() {
  const std::string limit = memory_limit();
  return limit.empty() ? "out of memory" : "out of memory: " + limit + "; raise it, or use less";
}

std::string thread_limit_text() {
  std::string text = "cannot start a thread or process";
  const std::string memory = memory_limit();
  const std::optional<uint64_t> threads = limit_of(RLIMIT_NPROC);
  const std::string user =
      threads ? fmt::format("this user may run {} threads and processes (`ulimit -u`)", *threads) : "";
  if (memory.empty() && user.empty()) return text + ": the machine or its control group allows no more";
  text += ": " + memory + (memory.empty() || user.empty() ? "" : ", and ") + user;
  return text + "; raise the limit that is too low";
}

bool is_limit(const std::exception& error) {
  return dynamic_cast<const LimitError*>(&error) != nullptr || dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
         failed_thread(error) != nullptr;
}

std::string error_text(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return memory_limit_text();
  return failed_thread(error) != nullptr ? thread_limit_text() : error.what();
}

}  // namespace lockstep::base
