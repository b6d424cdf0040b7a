// Owning types for OpenSSL's objects; certificates and keys from PEM texts. Any thread.
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

/// Makes a reader of `text`, which must outlive it.
inline Bio bio_over(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// Parses the first certificate of the text. Throws DataError if there is none.
Certificate parse_certificate(const std::string& pem);
/// Parses a private key. Throws DataError if the text is none or needs a password.
Key parse_key(const std::string& pem);

}  // namespace lockstep::transport
