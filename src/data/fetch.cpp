#include "data/fetch.h"

#include <fmt/format.h>
#include <httplib.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>

#include "base/broken_pipe.h"
#include "base/file.h"
#include "data/unpack.h"
#include "lockstep/error.h"

namespace lockstep::data {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kOk = 200;

struct Url {
  std::string origin;  ///< scheme://host:port
  std::string path;    ///< from the first slash
  bool tls = false;
};

Url parse_url(const std::string& text) {
  Url url;
  url.tls = text.starts_with("https://");
  const size_t host = url.tls ? 8 : 7;
  const size_t slash = text.find('/', host);
  url.origin = text.substr(0, slash);
  if ((!url.tls && !text.starts_with("http://")) || url.origin.size() <= host) {
    throw UsageError(fmt::format("mirror '{}': an address that starts with http:// or https:// is expected", text));
  }
  url.path = slash == std::string::npos ? "/" : text.substr(slash);
  return url;
}

std::string file_url(const std::string& mirror, const std::string& file) {
  return mirror + (mirror.ends_with('/') ? "" : "/") + file;
}

void use_proxy(httplib::Client& client, const std::string& proxy) {
  std::string address = proxy.substr(proxy.find("://") == std::string::npos ? 0 : proxy.find("://") + 3);
  address = address.substr(0, address.find('/'));
  const size_t colon = address.rfind(':');
  const int port = colon == std::string::npos ? 0 : std::atoi(address.c_str() + colon + 1);
  if (port < 1 || port > 65535) {
    throw UsageError(fmt::format("proxy '{}': http://host:port is expected", proxy));
  }
  client.set_proxy(address.substr(0, colon), port);
}

std::string describe(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
    case httplib::Error::BindIPAddress:
      return "cannot connect";
    case httplib::Error::ConnectionTimeout:
      return "no connection in time";
    case httplib::Error::Read:
      return "the connection broke or timed out";
    case httplib::Error::Write:
      return "the request could not be sent";
    case httplib::Error::ExceedRedirectCount:
      return "too many redirections";
    case httplib::Error::SSLConnection:
      return "no TLS connection";
    case httplib::Error::SSLLoadingCerts:
      return "this machine's certificates cannot be read (package ca-certificates)";
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not trusted";
    default:
      return "failed (" + httplib::to_string(error) + ")";
  }
}

/// Stops a client at a deadline, from its own thread: a server that sends headers without end gives no other chance.
class Deadline {
 public:
  Deadline(httplib::Client& client, Clock::time_point when)
      : thread_([this, &client, when](const std::stop_token& stop) {
          std::unique_lock lock(mutex_);
          ended_.wait_until(lock, stop, when, [] { return false; });
          if (!stop.stop_requested()) client.stop();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any ended_;
  std::jthread thread_;
};

/// Downloads one file from one mirror into an open WholeFile.
class Download {
 public:
  Download(std::string url, uint64_t most, base::WholeFile& out, const FetchLimits& limits,
           const FetchCallback& progress)
      : out_(out), most_(most), limits_(limits), progress_(progress), deadline_(Clock::now() + limits.whole_file) {
    report_.url = std::move(url);
    report_.file = report_.url.substr(report_.url.rfind('/') + 1);
  }

  /// Returns the reason of a failure at the mirror; nothing on success. Throws failures of this machine.
  std::optional<std::string> run(const std::string& proxy) {
    const Url url = parse_url(report_.url);
    httplib::Client client(url.origin);
    client.set_connection_timeout(limits_.connect);
    client.set_read_timeout(limits_.read);
    client.set_write_timeout(limits_.read);
    client.set_follow_location(true);
    if (url.tls && !proxy.empty()) use_proxy(client, proxy);
    const Deadline deadline(client, deadline_);
    const auto result = client.Get(
        url.path, {{"Accept-Encoding", "identity"}, {"User-Agent", "lockstep"}},
        [this](const httplib::Response& response) { return begin(response); },
        [this](const char* data, size_t size) { return receive(data, size); });
    if (local_failure_) std::rethrow_exception(local_failure_);
    if (refusal_.empty() && !result && Clock::now() > deadline_) refuse_late();
    if (!refusal_.empty()) return refusal_;
    if (!result) return describe(result.error());
    return std::nullopt;
  }

 private:
  bool begin(const httplib::Response& response) {
    if (response.status != kOk) {
      refusal_ = fmt::format("HTTP status {}", response.status);
      return false;
    }
    report_.total = response.get_header_value<uint64_t>("Content-Length");
    return may_have(report_.total);
  }

  bool may_have(uint64_t bytes) {
    if (bytes > most_)
      refusal_ = fmt::format("too large: it has {} bytes or more, at most {} are expected", bytes, most_);
    return bytes <= most_;
  }

  void refuse_late() {
    refusal_ = fmt::format("not finished after {:.1f} s ({} bytes received)",
                           std::chrono::duration<double>(limits_.whole_file).count(), report_.bytes);
  }

  bool receive(const char* data, size_t size) {
    if (Clock::now() > deadline_) {
      refuse_late();
      return false;
    }
    if (!may_have(report_.bytes + size)) return false;
    try {
      out_.write(std::string_view(data, size));
      report_.bytes += size;
      if (progress_) progress_(report_);
    } catch (...) {
      local_failure_ = std::current_exception();
    }
    return !local_failure_;
  }

  base::WholeFile& out_;
  uint64_t most_;
  const FetchLimits& limits_;
  const FetchCallback& progress_;
  Clock::time_point deadline_;
  FetchProgress report_;
  std::string refusal_;
  std::exception_ptr local_failure_;
};

std::optional<std::string> verify(const std::string& path, const RemoteFile& file) {
  try {
    const std::optional<std::string> seen = md5_of_content(path, file.size);
    if (!seen) return fmt::format("damaged: it unpacks to more than the {} bytes that are expected", file.size);
    if (*seen != file.md5) return fmt::format("damaged: its content has md5 {}, {} is expected", *seen, file.md5);
  } catch (const DataError&) {
    return "damaged: its gzip data is corrupt or cut off";
  }
  return std::nullopt;
}

struct Fetcher {
  const std::string& folder;
  const FetchLimits& limits;
  const std::string& proxy;
  const FetchCallback& progress;
  std::vector<std::string> mirrors;  ///< the one that worked last comes first

  [[nodiscard]] std::string path_of(const RemoteFile& file) const { return folder + "/" + file.name; }

  [[nodiscard]] bool has(const RemoteFile& file) const { return std::filesystem::exists(path_of(file)); }

  std::optional<std::string> try_mirror(const std::string& mirror, const RemoteFile& file) const {
    base::WholeFile out(path_of(file));
    const std::string url = file_url(mirror, file.name);
    if (auto reason = Download(url, file.max_download(), out, limits, progress).run(proxy)) return reason;
    if (auto reason = verify(out.temporary_path(), file)) return reason;
    out.commit();
    if (progress) progress({FetchProgress::Phase::kDone, file.name, url, 0, 0});
    return std::nullopt;
  }

  void fetch(const RemoteFile& file) {
    base::WholeFile::remove_leftovers(path_of(file));
    std::string reasons;
    for (size_t i = 0; i < mirrors.size(); ++i) {
      const auto reason = try_mirror(mirrors[i], file);
      if (!reason) {
        std::rotate(mirrors.begin(), mirrors.begin() + static_cast<std::ptrdiff_t>(i), mirrors.end());
        return;
      }
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", file_url(mirrors[i], file.name), *reason);
    }
    throw IoError(reasons.empty() ? "cannot fetch " + file.name + ": no mirror is given" : reasons);
  }
};

}  // namespace

void fetch_files(const std::vector<RemoteFile>& files, const std::string& folder,
                 const std::vector<std::string>& mirrors, const FetchLimits& limits, const std::string& proxy,
                 const FetchCallback& progress) {
  for (const std::string& mirror : mirrors) parse_url(mirror);
  Fetcher fetcher{folder, limits, proxy, progress, mirrors};
  const auto present = [&](const RemoteFile& file) { return fetcher.has(file); };
  if (std::all_of(files.begin(), files.end(), present)) return;
  base::make_directories(folder);
  const base::LockFile lock = base::LockFile::lock(folder + "/.lock", limits.other_process, [&] {
    if (progress) progress({FetchProgress::Phase::kWaiting, "", "", 0, 0});
  });
  const base::NoBrokenPipe no_broken_pipe;
  for (const RemoteFile& file : files) {
    if (!fetcher.has(file)) fetcher.fetch(file);
  }
}

}  // namespace lockstep::data
