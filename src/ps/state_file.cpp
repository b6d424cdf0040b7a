#include "ps/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::ps {
namespace {

static_assert(std::endian::native == std::endian::little, "state files are little-endian");

constexpr std::array<char, 8> kMagic{'L', 'S', 'S', 'H', 'A', 'R', 'D', '\n'};
constexpr uint32_t kFormat = 1;
constexpr std::chrono::seconds kLockPatience{2};  // patience for a dying process to release the lock

uint32_t checksum(uint32_t before, const void* data, size_t bytes) {
  return static_cast<uint32_t>(crc32_z(before, static_cast<const Bytef*>(data), bytes));
}

/// Returns the boot id, which differs from one boot of the machine to the next; zeros if the system has none.
std::array<char, 40> boot_id() {
  std::array<char, 40> id{};
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  if (file >> text) std::copy_n(text.begin(), std::min(text.size(), id.size()), id.begin());
  return id;
}

}  // namespace

struct StateFile::Header {
  std::array<char, 8> magic = kMagic;
  uint32_t format = kFormat;
  uint32_t page = 0;
  uint64_t identity = 0;
  uint64_t parameters = 0;
  uint64_t slots = 0;
  uint64_t ledger_bytes = 0;
  std::array<char, 40> boot{};
  uint32_t synced = 0;
  uint32_t crc = 0;

  [[nodiscard]] uint32_t right_crc() const { return checksum(0, this, offsetof(Header, crc)); }
};

struct StateFile::Record {
  std::atomic<uint64_t> sequence;  // 0: none; stored last
  uint64_t version;
  uint64_t buffer;
  uint64_t ledger_bytes;
  uint32_t crc;

  std::byte* ledger() { return reinterpret_cast<std::byte*>(this) + sizeof(Record); }
  /// Returns the checksum of a commit with this sequence number; `ledger_bytes` must have been checked.
  [[nodiscard]] uint32_t right_crc(uint64_t number) {
    const std::array<uint64_t, 4> fields{number, version, buffer, ledger_bytes};
    return checksum(checksum(0, fields.data(), sizeof(fields)), ledger(), ledger_bytes);
  }
};

Mapping::Mapping(const base::FileHandle& file, const std::string& path, size_t offset, size_t bytes) : bytes_(bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), static_cast<off_t>(offset));
  if (data == MAP_FAILED) base::throw_io_error(fmt::format("map {} bytes of", bytes), path, errno);
  data_ = static_cast<std::byte*>(data);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

void Mapping::sync(const std::string& path) const {
  if (::msync(data_, bytes_, MS_SYNC) != 0) base::throw_io_error("sync", path, errno);
}

StateFile::StateFile(const StateFileOptions& options, const BufferLayout& layout, size_t page)
    : options_(options),
      page_(page),
      count_(layout.count()),
      slots_(layout.slots()),
      buffer_bytes_(layout.bytes()),
      record_bytes_(round_up(sizeof(Record) + options.ledger_bytes, page)),
      lock_(base::LockFile::lock(options.path + ".lock", kLockPatience)) {
  base::WholeFile::remove_leftovers(options_.path);
  if (::access(options_.path.c_str(), F_OK) != 0 && errno == ENOENT) create();
  open();
  check_header();
  map();
  recover();
}

StateFile::Header StateFile::wanted_header() const {
  Header header;
  header.page = static_cast<uint32_t>(page_);
  header.identity = options_.identity;
  header.parameters = count_;
  header.slots = slots_;
  header.ledger_bytes = options_.ledger_bytes;
  header.boot = boot_id();
  header.synced = options_.synced ? 1 : 0;
  header.crc = header.right_crc();
  return header;
}

size_t StateFile::buffer_offset(size_t i) const { return page_ + 2 * record_bytes_ + i * buffer_bytes_; }

void StateFile::reject(const std::string& why) const {
  throw DataError("parameter server's state " + options_.path + ": " + why);
}

void StateFile::create() const {
  base::WholeFile whole(options_.path);
  const Header header = wanted_header();
  whole.write({reinterpret_cast<const uint8_t*>(&header), sizeof(header)});
  const base::FileHandle file(::open(whole.temporary_path().c_str(), O_RDWR | O_CLOEXEC));
  if (!file.open()) base::throw_io_error("open", options_.path, errno);
  const size_t bytes = buffer_offset(options_.buffers);
  const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (error != 0) base::throw_io_error(fmt::format("reserve {} bytes for", bytes), options_.path, error);
  whole.commit();
}

void StateFile::open() {
  file_ = base::FileHandle(::open(options_.path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK));
  if (!file_.open()) base::throw_io_error("open", options_.path, errno);
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) base::throw_io_error("examine", options_.path, errno);
  if (!S_ISREG(info.st_mode)) throw IoError("cannot open " + options_.path + ": it is not a regular file");
  size_ = static_cast<size_t>(info.st_size);
}

void StateFile::check_header() {
  Header found;
  const ssize_t read = ::pread(file_.get(), &found, sizeof(found), 0);
  if (read < 0) base::throw_io_error("read", options_.path, errno);
  if (read < static_cast<ssize_t>(sizeof(found))) reject(fmt::format("is truncated: {} bytes", size_));
  if (found.magic != kMagic) reject("is not a state file of a parameter server");
  if (found.format != kFormat) reject(fmt::format("has format {}; {} is known", found.format, kFormat));
  if (found.crc != found.right_crc()) reject("is damaged: the checksum of its header is wrong");
  const Header wanted = wanted_header();
  if (found.identity != wanted.identity) reject("belongs to another run, placement or optimizer");
  const auto sizes = [](const Header& h) {
    return fmt::format("{} parameters, {} slots, {} bytes of ledger, pages of {}", h.parameters, h.slots,
                       h.ledger_bytes, h.page);
  };
  if (sizes(found) != sizes(wanted)) reject("holds " + sizes(found) + "; expected " + sizes(wanted));
  was_synced_ = found.synced != 0;
  if (!was_synced_ && found.boot != wanted.boot) {
    reject("was written before this machine was started, with durability process, which does not survive that");
  }
  const size_t least = buffer_offset(options_.buffers);
  if (size_ < least) reject(fmt::format("is truncated: {} bytes, expected at least {}", size_, least));
  // A commit of a killed process may not be on the disk yet. It must be before others hear of it.
  if (options_.synced && ::fsync(file_.get()) != 0) base::throw_io_error("sync", options_.path, errno);
  if (found.crc == wanted.crc) return;
  // The header is less than a sector within one page: neither a kill nor a power cut leaves half of it.
  const ssize_t written = ::pwrite(file_.get(), &wanted, sizeof(wanted), 0);
  if (written != static_cast<ssize_t>(sizeof(wanted)) || ::fsync(file_.get()) != 0) {
    base::throw_io_error("write", options_.path, errno);
  }
}

/// Reserves existing parts, too: a file copied with holes would fail in the middle of a store.
int StateFile::reserve(size_t end) const { return ::posix_fallocate(file_.get(), 0, static_cast<off_t>(end)); }

void StateFile::map() {
  const size_t count = (size_ - buffer_offset(0)) / buffer_bytes_;
  const int error = reserve(buffer_offset(count));
  if (error != 0) {
    base::throw_io_error(fmt::format("reserve {} bytes for", buffer_offset(count)), options_.path, error);
  }
  for (size_t i = 0; i < records_.size(); ++i) {
    records_[i] = Mapping(file_, options_.path, page_ + i * record_bytes_, record_bytes_);
  }
  for (size_t i = 0; i < count; ++i) buffers_.emplace_back(file_, options_.path, buffer_offset(i), buffer_bytes_);
}

StateFile::Record& StateFile::record(size_t i) const { return *reinterpret_cast<Record*>(records_[i].data()); }

StateFile::RecordState StateFile::state_of(size_t i) const {
  Record& found = record(i);
  const uint64_t number = found.sequence.load(std::memory_order_acquire);
  if (number == 0) return RecordState::none;
  if (found.ledger_bytes > options_.ledger_bytes || found.crc != found.right_crc(number)) return RecordState::damaged;
  return RecordState::whole;
}

void StateFile::recover() {
  std::optional<size_t> newest;
  std::array<RecordState, 2> states{state_of(0), state_of(1)};
  for (size_t i = 0; i < states.size(); ++i) {
    if (states[i] != RecordState::whole) continue;
    if (!newest || record(i).sequence > record(*newest).sequence) newest = i;
  }
  const auto damaged = std::ranges::count(states, RecordState::damaged);
  // A commit torn by a power cut was not acknowledged.
  if (damaged > (was_synced_ ? 1 : 0)) reject("is damaged: the checksum of its newest version is wrong");
  if (!newest) return;
  Record& found = record(*newest);
  if (found.buffer >= buffers_.size()) {
    reject(
        fmt::format("is truncated: version {} lies in buffer {} of {}", found.version, found.buffer, buffers_.size()));
  }
  sequence_ = found.sequence;
  next_ = 1 - *newest;
  recovered_ = Recovered{found.version, found.buffer, {found.ledger(), found.ledger() + found.ledger_bytes}};
}

bool StateFile::grow() {
  const size_t count = buffers_.size();
  if (reserve(buffer_offset(count + 1)) == 0) {
    try {
      buffers_.emplace_back(file_, options_.path, buffer_offset(count), buffer_bytes_);
      return true;
    } catch (const IoError&) {  // no address space left; handled as a full disk
    }
  }
  // Returns partly reserved space. If this fails, the file is only longer than needed.
  [[maybe_unused]] const int kept = ::ftruncate(file_.get(), static_cast<off_t>(buffer_offset(count)));
  return false;
}

void StateFile::sync(size_t buffer) {
  if (options_.synced) buffers_[buffer].sync(options_.path);
}

void StateFile::commit(const Commit& commit) {
  Record& target = record(next_);
  target.sequence.exchange(0);  // an exchange, not a plain store: later stores must not move before it
  target.version = commit.version;
  target.buffer = commit.buffer;
  target.ledger_bytes = commit.ledger.size();
  std::ranges::copy(commit.ledger, target.ledger());
  target.crc = target.right_crc(sequence_ + 1);
  target.sequence.store(sequence_ + 1, std::memory_order_release);
  if (options_.synced) records_[next_].sync(options_.path);
  ++sequence_;
  next_ = 1 - next_;
}

}  // namespace lockstep::ps
