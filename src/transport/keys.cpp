#include "transport/keys.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/file.h"
#include "lockstep/error.h"

namespace lockstep::transport {
namespace {

constexpr uint64_t kLargestFile = 1 << 20;

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using BioPtr = std::unique_ptr<BIO, Free>;
using CertificatePtr = std::unique_ptr<X509, Free>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Free>;

std::string read_text(const std::string& path) {
  try {
    const std::vector<uint8_t> bytes = base::read_file(path, kLargestFile);
    return {bytes.begin(), bytes.end()};
  } catch (const Error& error) {
    throw UsageError(fmt::format("keys for TLS: {}; `lockstep keys new` makes a folder of keys", error.what()));
  }
}

BioPtr as_bio(const std::string& text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

CertificatePtr parse_certificate(const std::string& text, const std::string& path) {
  CertificatePtr result(PEM_read_bio_X509(as_bio(text).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!result) throw UsageError(fmt::format("keys for TLS: {} is not a certificate in PEM", path));
  return result;
}

KeyPtr parse_key(const std::string& text, const std::string& path) {
  const auto no_password = [](char*, int, int, void*) { return 0; };
  KeyPtr result(PEM_read_bio_PrivateKey(as_bio(text).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (!result) throw UsageError(fmt::format("keys for TLS: {} is not a private key in PEM without a password", path));
  return result;
}

}  // namespace

Keys read_keys(const std::string& folder) {
  const std::string authority_path = folder + "/ca.pem";
  const std::string certificate_path = folder + "/node.pem";
  const std::string key_path = folder + "/node.key";
  Keys keys{read_text(authority_path), read_text(certificate_path), read_text(key_path)};
  const CertificatePtr authority = parse_certificate(keys.authority, authority_path);
  const CertificatePtr certificate = parse_certificate(keys.node_certificate, certificate_path);
  const KeyPtr key = parse_key(keys.node_key, key_path);
  const bool belongs = X509_check_private_key(certificate.get(), key.get()) == 1;
  const bool signed_by = X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  const bool named = X509_check_host(certificate.get(), kKeyName, 0, 0, nullptr) == 1;
  const bool expired = X509_cmp_current_time(X509_get0_notAfter(certificate.get())) < 0;
  ERR_clear_error();
  if (!belongs) throw UsageError(fmt::format("keys for TLS: {} is not the key of {}", key_path, certificate_path));
  if (!signed_by)
    throw UsageError(fmt::format("keys for TLS: {} was not made by {}", certificate_path, authority_path));
  if (!named) throw UsageError(fmt::format("keys for TLS: {} is not for the name {}", certificate_path, kKeyName));
  if (expired) throw UsageError(fmt::format("keys for TLS: {} has expired", certificate_path));
  return keys;
}

}  // namespace lockstep::transport
