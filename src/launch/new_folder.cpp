#include "launch/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "lockstep/error.h"

namespace lockstep::launch {
namespace {

using base::FileHandle;

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

FileHandle open_root(const std::string& path) {
  FileHandle file(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.open()) base::throw_io_error("open", path, errno);
  return file;
}

/// Opens the folder of `path` below `root`, and makes it if missing.
FileHandle open_folder(const FileHandle& root, std::string_view path, const std::string& shown) {
  FileHandle at(::openat(root.get(), ".", kFolderFlags));
  for (size_t begin = 0; at.open() && begin < path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string part(path.substr(begin, end - begin));
    begin = end + 1;
    if (::mkdirat(at.get(), part.c_str(), 0777) != 0 && errno != EEXIST) base::throw_io_error("make", shown, errno);
    at = FileHandle(::openat(at.get(), part.c_str(), kFolderFlags));
    const bool no_folder = !at.open() && (errno == ENOTDIR || errno == ELOOP);
    if (no_folder) throw DataError(fmt::format("'{}' is a file or a link; a folder of that name has arrived", shown));
  }
  if (!at.open()) base::throw_io_error("open", shown, errno);
  return at;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

NewFolder::NewFolder(const std::string& parent) : parent_path_(parent), path_(parent + "/" + kArriving + "XXXXXX") {
  parent_ = open_root(parent);
  if (::mkdtemp(path_.data()) == nullptr) base::throw_io_error("create a folder in", parent, errno);
  root_ = open_root(path_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);  // follows no links
}

std::string NewFolder::shown(const std::string& path) const { return parent_path_ + "/" + path; }

void NewFolder::folder(const std::string& path) {
  open_folder(root_, path, path);
  folders_.push_back(path);
}

void NewFolder::begin_file(const std::string& path, int64_t modified) {
  const FileHandle folder = open_folder(root_, folder_of(path), folder_of(path));
  open_ = FileHandle(
      ::openat(folder.get(), name_of(path).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!open_.open() && errno == EEXIST) throw DataError(fmt::format("its archive has '{}' twice", path));
  if (!open_.open()) base::throw_io_error("create", shown(path), errno);
  digest_ = Sha256();
  open_path_ = path;
  open_modified_ = modified;
}

void NewFolder::data(std::string_view bytes) {
  digest_.add(bytes);
  while (!bytes.empty()) {
    const ssize_t count = ::write(open_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) base::throw_io_error("write", shown(open_path_), errno);
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

void NewFolder::end_file() {
  const std::array<timespec, 2> times{timespec{0, UTIME_OMIT}, timespec{open_modified_, 0}};
  ::futimens(open_.get(), times.data());
  if (::close(open_.release()) != 0) base::throw_io_error("write", shown(open_path_), errno);
  sums_[open_path_] = digest_.hex();
}

void NewFolder::move_out(const std::function<bool(const std::string& path)>& wanted) {
  for (const std::string& path : folders_) {
    if (wanted(path)) open_folder(parent_, path, shown(path));
  }
  for (const auto& [path, sum] : sums_) {
    if (!wanted(path)) continue;
    const FileHandle from = open_folder(root_, folder_of(path), shown(path));
    const FileHandle into = open_folder(parent_, folder_of(path), shown(folder_of(path)));
    const std::string name = name_of(path);
    if (::renameat(from.get(), name.c_str(), into.get(), name.c_str()) != 0) {
      base::throw_io_error("replace", shown(path), errno);
    }
  }
  if (::syncfs(parent_.get()) != 0) base::throw_io_error("write", parent_path_, errno);
}

void NewFolder::remove_leftovers(const std::string& parent) {
  std::error_code ignored;
  std::error_code failed;
  std::filesystem::directory_iterator at(parent, failed);
  for (; !failed && at != std::filesystem::directory_iterator(); at.increment(failed)) {
    if (at->path().filename().string().starts_with(kArriving)) std::filesystem::remove_all(at->path(), ignored);
  }
}

}  // namespace lockstep::launch
