#include "launch/sha256.h"

#include <fmt/format.h>

#include <array>

#include "lockstep/error.h"

namespace lockstep::launch {

Sha256::Sha256() : digest_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
  if (!digest_ || EVP_DigestInit_ex(digest_.get(), EVP_sha256(), nullptr) != 1) {
    throw IoError("cannot verify files: this OpenSSL offers no SHA-256");
  }
}

void Sha256::add(std::string_view bytes) { EVP_DigestUpdate(digest_.get(), bytes.data(), bytes.size()); }

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned size = 0;
  EVP_DigestFinal_ex(digest_.get(), sum.data(), &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{:02x}", sum[i]);
  return text;
}

}  // namespace lockstep::launch
