#include "emulate/owner.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

namespace lockstep::emulate {
namespace {

constexpr std::string_view kPrefix = "lockstep-";

/// Returns a process's start time in clock ticks after boot; nothing if it does not exist or is a zombie.
std::optional<uint64_t> start_of(uint64_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = stat.rfind(')');  // the name may contain anything
  if (name_end == std::string::npos || name_end + 2 > stat.size()) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 2));
  std::string skipped;
  fields >> skipped;
  if (skipped == "Z" || skipped == "X") return std::nullopt;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  uint64_t start = 0;
  if (!(fields >> start)) return std::nullopt;
  return start;
}

/// Parses the number at the start of the text and removes it with the following '-'.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto length = static_cast<size_t>(stop - text.data());
  if (error != std::errc() || length >= text.size() || text[length] != '-') return std::nullopt;
  text.remove_prefix(length + 1);
  return number;
}

/// Returns the number of this process's PID namespace; 0: unknown.
uint64_t own_namespace() {
  struct stat status {};
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

struct Owner {
  uint64_t pid = 0;
  uint64_t start = 0;
  bool elsewhere = false;  ///< the owner belongs to another PID namespace
};

std::optional<Owner> owner_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::optional<uint64_t> pid = take_number(name);
  const std::optional<uint64_t> start = pid ? take_number(name) : std::nullopt;
  if (!start) return std::nullopt;
  Owner owner{*pid, *start};
  if (name.starts_with('p')) {
    name.remove_prefix(1);
    const std::optional<uint64_t> name_space = take_number(name);
    owner.elsewhere = name_space && *name_space != own_namespace();
  }
  return owner;
}

}  // namespace

std::string owner_prefix() {
  const auto pid = static_cast<uint64_t>(getpid());
  return fmt::format("{}{}-{}-p{}-", kPrefix, pid, start_of(pid).value_or(0), own_namespace());
}

bool is_owned(std::string_view name) { return owner_of(name).has_value(); }

bool owner_is_gone(std::string_view name) {
  const std::optional<Owner> owner = owner_of(name);
  return owner && !owner->elsewhere && start_of(owner->pid) != owner->start;
}

base::FileHandle hold(const std::string& path) {
  base::FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // A process that checks for leftovers may hold the lock for a moment.
  while (file.open() && flock(file.get(), LOCK_SH) != 0 && errno == EINTR) {
  }
  return file;
}

std::optional<base::FileHandle> take_leftover(const std::string& path) {
  const std::optional<Owner> owner = owner_of(std::filesystem::path(path).filename().string());
  if (!owner || (!owner->elsewhere && start_of(owner->pid) == owner->start)) return std::nullopt;
  base::FileHandle file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const bool free = file.open() && flock(file.get(), LOCK_EX | LOCK_NB) == 0;
  if (owner->elsewhere && !free) return std::nullopt;
  return file;
}

}  // namespace lockstep::emulate
