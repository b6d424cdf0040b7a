#include "lab/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/hash.h"
#include "guest/guest_run.h"

namespace lockstep::lab {
namespace {

namespace fs = std::filesystem;

/// Hash over several texts.
class Hash {
 public:
  void add(std::string_view text) {
    add_bytes(text);
    state_ = base::hashed(state_, uint64_t{0xFF});
  }
  void add_bytes(std::string_view bytes) { state_ = base::hashed(state_, bytes); }
  [[nodiscard]] std::string text() const { return fmt::format("{:016x}", state_); }

 private:
  uint64_t state_ = base::kDigestStart;
};

/// Returns whether a name is a file; names of built-in models and data sets have no extension.
bool is_file(const std::string& name) {
  std::error_code ignored;
  return fs::path(name).has_extension() && fs::is_regular_file(name, ignored);
}

void add_content(Hash& hash, const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string block(size_t{1} << 16, '\0');
  while (stream) {
    stream.read(block.data(), static_cast<std::streamsize>(block.size()));
    hash.add_bytes(std::string_view(block).substr(0, static_cast<size_t>(stream.gcount())));
  }
  hash.add("");
}

/// Adds a data file by size and time: hashing large data would take long.
void add_size_and_time(Hash& hash, const std::string& file) {
  std::error_code ignored;
  hash.add(fmt::format("{} {}", fs::file_size(file, ignored),
                       fs::last_write_time(file, ignored).time_since_epoch().count()));
}

}  // namespace

std::string digest_of(const RunPlan& plan) {
  Hash hash;
  Values sorted = plan.settings;
  std::sort(sorted.begin(), sorted.end());
  for (const auto& [name, value] : sorted) {
    hash.add(name);
    hash.add(value);
  }
  for (const std::string& part : {plan.cluster.emulate, plan.cluster.faults, plan.cluster.hosts}) hash.add(part);
  if (!plan.cluster.hosts.empty()) add_content(hash, plan.cluster.hosts);
  if (plan.is_guest()) {
    hash.add("command");
    for (const std::vector<std::string>* words : {&plan.guest.command, &plan.guest.figures}) {
      for (const std::string& word : *words) hash.add(word);
    }
    for (const std::string& word : plan.guest.command) {
      if (is_file(word)) add_content(hash, word);  // a script
    }
    for (const std::string& log : plan.guest.logs) {
      hash.add(log);
      if (const std::string file = guest::parse_log(log).file; is_file(file)) add_content(hash, file);
    }
  }
  if (const std::string model = value_of(plan.settings, "model"); is_file(model)) add_content(hash, model);
  if (const std::string data = value_of(plan.settings, "dataset"); is_file(data)) add_size_and_time(hash, data);
  return hash.text();
}

}  // namespace lockstep::lab
