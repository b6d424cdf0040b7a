// SHA-256 of bytes that come in pieces, by OpenSSL. For one thread.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

namespace lockstep::launch {

class Sha256 {
 public:
  /// IoError where this OpenSSL offers no SHA-256.
  Sha256();
  void add(std::string_view bytes);
  /// The sum of all bytes, as `sha256sum` prints it; the end of this object's use.
  [[nodiscard]] std::string hex();

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> digest_;
};

}  // namespace lockstep::launch
