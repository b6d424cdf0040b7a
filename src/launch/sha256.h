// SHA-256 of bytes in pieces, by OpenSSL. For one thread.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace lockstep::launch {

class Sha256 {
 public:
  /// Throws IoError if this OpenSSL has no SHA-256.
  Sha256();
  void add(std::string_view bytes);
  /// Returns the checksum of all bytes, as `sha256sum` prints it. Ends the use of this object.
  [[nodiscard]] std::string hex();

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest_;
};

}  // namespace lockstep::launch
