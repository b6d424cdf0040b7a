#include "cluster/certificate.h"

#include <fmt/format.h>
#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/address.h"
#include "lockstep/error.h"
#include "transport/certificate.h"
#include "transport/openssl.h"

namespace lockstep::cluster {
namespace {

using transport::Bio;
using transport::bio_over;
using transport::Certificate;
using transport::Key;
using transport::OpensslDeleter;
using transport::parse_certificate;
using transport::parse_key;

constexpr int kValidDays = 3652;
constexpr int kSerialBits = 127;

using Number = std::unique_ptr<BIGNUM, OpensslDeleter<BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, OpensslDeleter<X509_EXTENSION_free>>;

void require(bool done, const char* what) {
  if (done) return;
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  const std::string text = fmt::format("cannot {}: {}", what, reason == nullptr ? "OpenSSL gives no reason" : reason);
  ERR_clear_error();
  throw Error(text);
}

std::string text_of(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<size_t>(size)};
}

std::string random_hex() {
  const Number number(BN_new());
  require(number && BN_rand(number.get(), 32, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1, "make a random number");
  return fmt::format("{:08x}", BN_get_word(number.get()));
}

void set_serial(X509* certificate) {
  const Number number(BN_new());
  require(number && BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1,
          "make a serial number");
  require(BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr, "set a serial number");
}

void add_extension(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  require(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "add to a certificate");
}

/// Makes a certificate for that subject, valid from today, not signed yet.
Certificate new_certificate(EVP_PKEY* key, const std::string& subject) {
  Certificate certificate(X509_new());
  require(certificate && X509_set_version(certificate.get(), X509_VERSION_3) == 1, "make a certificate");
  set_serial(certificate.get());
  X509_time_adj_ex(X509_getm_notBefore(certificate.get()), -1, 0, nullptr);
  X509_time_adj_ex(X509_getm_notAfter(certificate.get()), kValidDays, 0, nullptr);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  const auto* text = reinterpret_cast<const unsigned char*>(subject.c_str());
  require(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1, "name a certificate");
  require(X509_set_pubkey(certificate.get(), key) == 1, "make a certificate");
  return certificate;
}

KeyPair to_pem(X509* certificate, EVP_PKEY* key) {
  const Bio first(BIO_new(BIO_s_mem()));
  const Bio second(BIO_new(BIO_s_mem()));
  require(PEM_write_bio_X509(first.get(), certificate) == 1, "write a certificate");
  require(PEM_write_bio_PrivateKey(second.get(), key, nullptr, nullptr, 0, nullptr, nullptr) == 1, "write a key");
  return {text_of(first.get()), text_of(second.get())};
}

Key new_key() {
  Key key(EVP_EC_gen("P-256"));
  require(key != nullptr, "make a key");
  return key;
}

}  // namespace

KeyPair make_authority() {
  const Key key = new_key();
  const Certificate certificate = new_certificate(key.get(), "lockstep authority " + random_hex());
  X509* self = certificate.get();
  require(X509_set_issuer_name(self, X509_get_subject_name(self)) == 1, "make a certificate");
  add_extension(self, self, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(self, self, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(self, self, NID_subject_key_identifier, "hash");
  require(X509_sign(self, key.get(), EVP_sha256()) > 0, "sign a certificate");
  return to_pem(self, key.get());
}

KeyPair make_node(const KeyPair& authority, const NodeNames& names) {
  const Certificate issuer = parse_certificate(authority.certificate);
  const Key issuer_key = parse_key(authority.key);
  const Key key = new_key();
  const Certificate certificate = new_certificate(key.get(), names.subject);
  X509* node = certificate.get();
  X509_time_adj_ex(X509_getm_notBefore(node), names.first_day, 0, nullptr);
  X509_time_adj_ex(X509_getm_notAfter(node), names.last_day, 0, nullptr);
  // A certificate is useless after its authority has expired.
  require((names.last_day != 0 || X509_set1_notAfter(node, X509_get0_notAfter(issuer.get())) == 1) &&
              X509_set_issuer_name(node, X509_get_subject_name(issuer.get())) == 1,
          "make a certificate");
  std::string valid_for;
  for (const std::string& role : names.roles) valid_for += fmt::format(",URI:{}{}", transport::kRoleScheme, role);
  for (const std::string& host : names.hosts) {
    valid_for += fmt::format(",{}:{}", base::is_ip_address(host) ? "IP" : "DNS", host);
  }
  add_extension(node, issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  add_extension(node, issuer.get(), NID_key_usage, "critical,digitalSignature");
  add_extension(node, issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  if (!valid_for.empty()) add_extension(node, issuer.get(), NID_subject_alt_name, valid_for.substr(1));
  add_extension(node, issuer.get(), NID_subject_key_identifier, "hash");
  add_extension(node, issuer.get(), NID_authority_key_identifier, "keyid:always");
  require(X509_sign(node, issuer_key.get(), EVP_sha256()) > 0, "sign a certificate");
  return to_pem(node, key.get());
}

}  // namespace lockstep::cluster
