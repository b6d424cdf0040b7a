// Owners of OpenSSL's objects, and certificates and keys from PEM texts. Any thread.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

namespace lockstep::transport {

template <auto Free>
struct OpensslDeleter {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, OpensslDeleter<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, OpensslDeleter<X509_free>>;
using Bio = std::unique_ptr<BIO, OpensslDeleter<BIO_free>>;

/// Reads from `text`, which must live as long.
inline Bio bio_over(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// The first of the text. DataError where there is none.
Certificate parse_certificate(const std::string& pem);
/// DataError where the text is no private key, or asks for a password.
Key parse_key(const std::string& pem);

}  // namespace lockstep::transport
