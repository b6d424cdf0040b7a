#include "data/unpack.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "lockstep/error.h"

namespace lockstep::data {
namespace {

constexpr size_t kBufferSize = size_t{64} << 10;
constexpr int kGzipWindow = 15 + 16;

uInt clip(size_t size) { return static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<uInt>::max())); }

}  // namespace

Unpacker::Unpacker(const std::string& path) : name_(path), file_(base::open_for_reading(path, file_size_)) {
  buffer_.resize(kBufferSize);
  refill();
  start();
}

Unpacker::Unpacker(std::span<const uint8_t> memory, std::string name)
    : name_(std::move(name)), file_size_(memory.size()), input_(memory) {
  start();
}

Unpacker::~Unpacker() {
  if (gzip_) inflateEnd(&stream_);
}

void Unpacker::start() {
  if (input_.size() < 2 || input_[0] != 0x1f || input_[1] != 0x8b) return;
  if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw IoError("cannot unpack " + name_ + ": out of memory");
  gzip_ = true;
}

size_t Unpacker::read(std::span<uint8_t> out) { return gzip_ ? read_gzip(out) : read_plain(out); }

bool Unpacker::refill() {
  if (!input_.empty()) return true;
  if (!file_.open()) return false;
  input_ = std::span<const uint8_t>(buffer_).first(base::read_some(file_, buffer_, name_));
  return !input_.empty();
}

size_t Unpacker::read_plain(std::span<uint8_t> out) {
  const size_t buffered = std::min(out.size(), input_.size());
  std::copy_n(input_.begin(), buffered, out.begin());
  input_ = input_.subspan(buffered);
  if (buffered == out.size() || !file_.open()) return buffered;
  return buffered + base::read_some(file_, out.subspan(buffered), name_);
}

size_t Unpacker::read_gzip(std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size() && !ended_) {
    if (!refill()) fail("cut off: the gzip data ends");
    stream_.next_in = const_cast<Bytef*>(input_.data());
    stream_.avail_in = clip(input_.size());
    stream_.next_out = out.data() + done;
    stream_.avail_out = clip(out.size() - done);
    const int status = inflate(&stream_, Z_NO_FLUSH);
    const auto produced = static_cast<size_t>(stream_.next_out - (out.data() + done));
    input_ = input_.subspan(static_cast<size_t>(stream_.next_in - input_.data()));
    done += produced;
    unpacked_ += produced;
    if (status == Z_STREAM_END) {
      ended_ = !next_member();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail(std::string("damaged gzip data (") + (stream_.msg != nullptr ? stream_.msg : zError(status)) + ")");
    }
  }
  return done;
}

/// Returns true if another gzip stream follows the end of one, as in the output of `cat a.gz b.gz`.
bool Unpacker::next_member() {
  if (!refill()) return false;
  if (input_[0] != 0x1f) fail("bytes that are not gzip data follow");
  inflateReset(&stream_);
  return true;
}

void Unpacker::fail(const std::string& reason) const {
  throw DataError(name_ + ": " + reason + " after " + std::to_string(unpacked_) + " unpacked bytes");
}

std::optional<std::string> md5_of_content(const std::string& path, uint64_t most) {
  Unpacker content(path);
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (!context || EVP_DigestInit_ex(context.get(), EVP_md5(), nullptr) != 1) {
    throw IoError("cannot verify " + path + ": this OpenSSL offers no md5");
  }
  std::vector<uint8_t> buffer(kBufferSize);
  uint64_t total = 0;
  while (const size_t size = content.read(buffer)) {
    if ((total += size) > most) return std::nullopt;
    EVP_DigestUpdate(context.get(), buffer.data(), size);
  }
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  EVP_DigestFinal_ex(context.get(), digest, &length);
  constexpr const char* kHex = "0123456789abcdef";
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += {kHex[digest[i] >> 4], kHex[digest[i] & 15]};
  return hex;
}

}  // namespace lockstep::data
