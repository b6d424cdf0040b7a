#include "cluster/keys.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/address.h"
#include "base/file.h"
#include "base/yaml_tree.h"
#include "lockstep/error.h"

namespace lockstep::cluster {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargestFile = 65536;
constexpr size_t kLongestName = 64;
constexpr mode_t kPublic = 0644;
constexpr mode_t kPrivate = 0600;

/// Removes slashes at the end of a path.
std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

std::string read_text(const std::string& path) {
  const std::vector<uint8_t> bytes = base::read_file(path, kLargestFile);
  return {bytes.begin(), bytes.end()};
}

/// Creates files and folders, and removes them again unless all succeed.
class Batch {
 public:
  Batch() = default;
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() {
    std::error_code ignored;
    for (auto path = made_.rbegin(); path != made_.rend(); ++path) fs::remove(*path, ignored);
  }

  void folder(const std::string& path) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) return;
    const std::string above = fs::path(path).parent_path().string();
    if (!above.empty()) base::make_directories(above);
    if (::mkdir(path.c_str(), 0700) != 0) base::throw_io_error("create folder", path, errno);
    made_.push_back(path);
  }

  /// The file appears complete, with its mode from the first byte on, and never replaces another.
  void file(const std::string& path, const std::string& text, mode_t mode) {
    const std::string temporary = fmt::format("{}.tmp-{}", path, ::getpid());
    base::FileHandle file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file.open()) base::throw_io_error("create", path, errno);
    made_.push_back(temporary);
    if (::fchmod(file.get(), mode) != 0) base::throw_io_error("set the mode of", path, errno);
    for (size_t done = 0; done < text.size();) {
      const ssize_t written = ::write(file.get(), text.data() + done, text.size() - done);
      if (written < 0 && errno != EINTR) base::throw_io_error("write", path, errno);
      if (written > 0) done += static_cast<size_t>(written);
    }
    if (::fsync(file.get()) != 0) base::throw_io_error("write", path, errno);
    if (::link(temporary.c_str(), path.c_str()) != 0) base::throw_io_error("create", path, errno);
    ::unlink(temporary.c_str());
    made_.back() = path;
  }

  void keep() { made_.clear(); }

 private:
  std::vector<std::string> made_;
};

void check_name(const std::string& name) {
  const bool taken = name == kAuthorityFile || name == kAuthorityKeyFile || name == kNodeFile || name == kNodeKeyFile;
  if (base::is_host(name) && name.size() <= kLongestName && name.find('%') == std::string::npos && !taken) return;
  throw UsageError(
      fmt::format("'{}' is not a name for a machine's keys; it takes a host name or address of at most {} letters",
                  base::shown(name), kLongestName));
}

/// True if both files of a pair exist. Throws if only one does.
bool has_pair(const std::string& folder, const char* certificate, const char* key) {
  const bool first = exists(folder + "/" + certificate);
  const bool second = exists(folder + "/" + key);
  if (first != second) {
    throw UsageError(
        fmt::format("{} has {} without {}: it can make no keys; use the folder in which they were made, or "
                    "another one",
                    folder, first ? certificate : key, first ? key : certificate));
  }
  return first;
}

template <class Call>
auto naming(const std::string& path, Call call) {
  try {
    return call();
  } catch (const DataError& error) {
    throw DataError(path + ": " + error.what());
  }
}

KeyPair read_authority(const std::string& dir) {
  KeyPair authority{read_text(dir + "/" + kAuthorityFile), read_text(dir + "/" + kAuthorityKeyFile)};
  const bool fits = naming(dir, [&] { return transport::fits_key(authority.certificate, authority.key); });
  if (!fits) throw DataError(fmt::format("{}/{}: is not the key of {}", dir, kAuthorityKeyFile, kAuthorityFile));
  return authority;
}

void write_node(Batch& batch, const std::string& folder, const KeyPair& authority, const KeyPair& node) {
  batch.folder(folder);
  if (!exists(folder + "/" + kAuthorityFile)) batch.file(folder + "/" + kAuthorityFile, authority.certificate, kPublic);
  batch.file(folder + "/" + kNodeKeyFile, node.key, kPrivate);
  batch.file(folder + "/" + kNodeFile, node.certificate, kPublic);
}

void check_private(KeyFacts& facts, const std::string& key) {
  struct stat info {};
  if (::stat(key.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
    facts.problems.push_back(fmt::format("{} can be read by others (mode {:04o}); chmod 600 it",
                                         fs::path(key).filename().string(), info.st_mode & 07777));
  }
}

KeyFacts read_one(const std::string& folder, const char* file, const char* key_file, const std::string& authority) {
  KeyFacts facts{folder + "/" + file, {}, {}};
  const std::string key = folder + "/" + key_file;
  const std::string pem = read_text(facts.path);
  facts.certificate = naming(facts.path, [&] { return transport::read_certificate(pem); });
  if (facts.certificate.expired) facts.problems.push_back("expired on " + facts.certificate.not_after);
  if (!facts.certificate.began) facts.problems.push_back("is valid from " + facts.certificate.not_before + " on");
  if (file == std::string(kNodeFile) && facts.certificate.roles.empty()) {
    facts.problems.emplace_back("names no roles: it was made by an older version; make new keys with --cluster FILE");
  }
  if (!transport::is_signed_by(pem, authority))
    facts.problems.push_back(fmt::format("is not signed by {}", kAuthorityFile));
  if (!exists(key)) {
    if (file == std::string(kNodeFile)) facts.problems.push_back(fmt::format("has no {} beside it", key_file));
    return facts;
  }
  const std::string key_pem = read_text(key);
  if (!naming(key, [&] { return transport::fits_key(pem, key_pem); })) {
    facts.problems.push_back(fmt::format("{} is not its key", key_file));
  }
  check_private(facts, key);
  return facts;
}

/// Reads the certificates of a folder, without the authority if it equals `above`. Returns the authority's text.
std::string read_folder(std::vector<KeyFacts>& all, const std::string& folder, const std::string& above) {
  const std::string authority = read_text(folder + "/" + kAuthorityFile);
  if (authority != above) {
    all.push_back(read_one(folder, kAuthorityFile, kAuthorityKeyFile, authority));
    if (!all.back().certificate.authority) all.back().problems.emplace_back("is not an authority");
  }
  if (exists(folder + "/" + kNodeFile)) all.push_back(read_one(folder, kNodeFile, kNodeKeyFile, authority));
  return authority;
}

/// Makes all pairs, and an authority if there is none. `anew`: no authority may exist.
std::vector<MadeKeys> make_all(const std::string& dir, bool anew, const std::vector<MadeKeys>& wanted) {
  for (const MadeKeys& one : wanted) {
    if (!one.host.empty()) check_name(one.host);
  }
  const bool known = has_pair(dir, kAuthorityFile, kAuthorityKeyFile);
  if (known && anew) {
    throw UsageError(
        fmt::format("{} already holds keys, and keys are never overwritten: use another folder, or add a machine with "
                    "--node NAME --roles LIST",
                    dir));
  }
  const KeyPair authority = known ? read_authority(dir) : make_authority();
  Batch batch;
  batch.folder(dir);
  if (!known) {
    batch.file(dir + "/" + kAuthorityKeyFile, authority.key, kPrivate);
    batch.file(dir + "/" + kAuthorityFile, authority.certificate, kPublic);
  }
  for (const MadeKeys& one : wanted) {
    if (has_pair(one.folder, kNodeFile, kNodeKeyFile)) {
      throw UsageError(fmt::format("{} already holds keys, and keys are never overwritten", one.folder));
    }
    NodeNames names{one.host.empty() ? "shared" : one.host, {}, one.roles};
    if (!one.host.empty()) names.hosts = {one.host};
    write_node(batch, one.folder, authority, make_node(authority, names));
  }
  batch.keep();
  return wanted;
}

}  // namespace

std::vector<MadeKeys> make_cluster_keys(const std::string& given, const ClusterFile& cluster) {
  const std::string dir = without_slash(given);
  std::vector<MadeKeys> wanted;
  for (const Node& node : cluster.nodes) {
    wanted.push_back({dir + "/" + node.host, node.host, {}});
    for (const Task& task : node.tasks) wanted.back().roles.push_back(task.str());
  }
  return make_all(dir, true, wanted);
}

std::vector<MadeKeys> make_shared_keys(const std::string& given) {
  const std::string dir = without_slash(given);
  return make_all(dir, true, {{dir, "", {transport::kAnyRole}}});
}

std::vector<MadeKeys> make_node_keys(const std::string& given, const std::string& host,
                                     const std::vector<Task>& tasks) {
  const std::string dir = without_slash(given);
  MadeKeys wanted{dir + "/" + host, host, {}};
  for (const Task& task : tasks) wanted.roles.push_back(task.str());
  return make_all(dir, false, {wanted});
}

std::vector<KeyFacts> read_keys(const std::string& given) {
  const std::string dir = without_slash(given);
  std::vector<KeyFacts> all;
  const std::string authority = read_folder(all, dir, "");
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir, error)) {
    if (entry.is_directory(error) && exists(entry.path().string() + "/" + kAuthorityFile)) {
      folders.push_back(entry.path().string());
    }
  }
  std::sort(folders.begin(), folders.end());
  for (const std::string& folder : folders) read_folder(all, folder, authority);
  return all;
}

}  // namespace lockstep::cluster
