#include "transport/certificate.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/error.h"
#include "transport/openssl.h"

namespace lockstep::transport {
namespace {

using Names = std::unique_ptr<GENERAL_NAMES, OpensslDeleter<GENERAL_NAMES_free>>;
using Store = std::unique_ptr<X509_STORE, OpensslDeleter<X509_STORE_free>>;
using StoreContext = std::unique_ptr<X509_STORE_CTX, OpensslDeleter<X509_STORE_CTX_free>>;

constexpr const char* kMakeNew = "make new ones with `lockstep keys new DIR --cluster FILE` (docs/cluster-spec.md)";

/// Gives no password; without it OpenSSL would ask at the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*writing*/, void* /*user*/) { return 0; }

Certificate next_certificate(BIO* bio) {
  Certificate certificate(PEM_read_bio_X509(bio, nullptr, no_password, nullptr));
  ERR_clear_error();
  return certificate;
}

std::string date_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return "?";
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string name_text(const X509_NAME* name) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), name, 0, XN_FLAG_RFC2253);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<size_t>(size)};
}

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  X509_digest(certificate, EVP_sha256(), digest.data(), &size);
  std::string text;
  for (unsigned i = 0; i < size; ++i) text += fmt::format("{}{:02X}", i == 0 ? "" : ":", digest[i]);
  return text;
}

std::string text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)), static_cast<size_t>(ASN1_STRING_length(text))};
}

std::string address_text(const ASN1_OCTET_STRING* bytes) {
  const int size = ASN1_STRING_length(bytes);
  if (size != 4 && size != 16) return "?";
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(bytes), text.data(), text.size());
  return text.data();
}

void read_names(const X509* certificate, CertificateFacts& facts) {
  const Names list(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; list && i < sk_GENERAL_NAME_num(list.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(list.get(), i);
    if (name->type == GEN_DNS) facts.names.push_back(text_of(name->d.dNSName));
    if (name->type == GEN_IPADD) facts.names.push_back(address_text(name->d.iPAddress));
    if (name->type != GEN_URI) continue;
    const std::string uri = text_of(name->d.uniformResourceIdentifier);
    if (uri.starts_with(kRoleScheme)) facts.roles.push_back(uri.substr(std::string_view(kRoleScheme).size()));
  }
}

/// Several while a cluster changes from one authority to the next.
std::vector<Certificate> all_certificates(const std::string& pem) {
  std::vector<Certificate> all;
  const Bio bio = bio_over(pem);
  while (Certificate certificate = next_certificate(bio.get())) all.push_back(std::move(certificate));
  return all;
}

Store trusting(const std::string& authority_pem) {
  Store store(X509_STORE_new());
  for (const Certificate& authority : all_certificates(authority_pem)) {
    X509_STORE_add_cert(store.get(), authority.get());
  }
  return store;
}

/// Returns OpenSSL's verdict.
int verify(X509* certificate, const std::string& authority_pem, Purpose purpose) {
  const Store store = trusting(authority_pem);
  const StoreContext context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_CTX_init(context.get(), store.get(), certificate, nullptr) != 1) {
    return X509_V_ERR_UNSPECIFIED;
  }
  X509_STORE_CTX_set_purpose(context.get(),
                             purpose == Purpose::server ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
  const bool good = X509_verify_cert(context.get()) == 1;
  const int error = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  return good ? X509_V_OK : error == X509_V_OK ? X509_V_ERR_UNSPECIFIED : error;
}

std::string subjects_of(const std::string& pem) {
  std::vector<std::string> subjects;
  for (const Certificate& one : all_certificates(pem)) {
    subjects.push_back(fmt::format("'{}'", name_text(X509_get_subject_name(one.get()))));
  }
  return fmt::format("{}", fmt::join(subjects, " or "));
}

}  // namespace

Certificate parse_certificate(const std::string& pem) {
  Certificate certificate = next_certificate(bio_over(pem).get());
  if (!certificate) throw DataError("is not a certificate in PEM form");
  return certificate;
}

Key parse_key(const std::string& pem) {
  Key key(PEM_read_bio_PrivateKey(bio_over(pem).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (!key) throw DataError("is not a private key in PEM form without password");
  return key;
}

bool CertificateFacts::may_act_as(const std::string& role) const {
  return std::any_of(roles.begin(), roles.end(),
                     [&](const std::string& one) { return one == role || one == kAnyRole; });
}

std::string CertificateFacts::str() const {
  return roles.empty() ? subject : fmt::format("{} for {}", subject, fmt::join(roles, ", "));
}

CertificateFacts read_certificate(const std::string& pem) {
  const Certificate certificate = parse_certificate(pem);
  const X509* x509 = certificate.get();
  CertificateFacts facts;
  facts.subject = name_text(X509_get_subject_name(x509));
  facts.not_before = date_of(X509_get0_notBefore(x509));
  facts.not_after = date_of(X509_get0_notAfter(x509));
  facts.fingerprint = fingerprint_of(x509);
  read_names(x509, facts);
  facts.authority = X509_check_ca(certificate.get()) == 1;
  facts.began = X509_cmp_current_time(X509_get0_notBefore(x509)) < 0;
  facts.expired = X509_cmp_current_time(X509_get0_notAfter(x509)) <= 0;
  int seconds = 0;
  ASN1_TIME_diff(&facts.days_left, &seconds, nullptr, X509_get0_notAfter(x509));
  return facts;
}

bool is_signed_by(const std::string& pem, const std::string& authority_pem) {
  const Certificate certificate = parse_certificate(pem);
  (void)parse_certificate(authority_pem);
  const std::vector<Certificate> authorities = all_certificates(authority_pem);
  const bool good = std::any_of(authorities.begin(), authorities.end(), [&](const Certificate& authority) {
    return X509_check_issued(authority.get(), certificate.get()) == X509_V_OK &&
           X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1;
  });
  ERR_clear_error();
  return good;
}

bool fits_key(const std::string& pem, const std::string& key_pem) {
  const Certificate certificate = parse_certificate(pem);
  const Key key = parse_key(key_pem);
  const bool fits = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  return fits;
}

std::string why_no_role(const CertificateFacts& facts, const std::string& role) {
  if (facts.roles.empty()) {
    return fmt::format("its certificate ({}) names no roles: its keys were made by an older version; {}", facts.subject,
                       kMakeNew);
  }
  if (role.empty() || facts.may_act_as(role)) return "";
  return fmt::format("its certificate ({}) is not for {}", facts.str(), role);
}

std::string why_refused(const std::string& pem, const std::string& authority_pem, Purpose purpose,
                        const std::string& role) {
  const Certificate certificate = next_certificate(bio_over(pem).get());
  if (!certificate) return "it shows no certificate";
  const CertificateFacts facts = read_certificate(pem);
  switch (const int error = verify(certificate.get(), authority_pem, purpose)) {
    case X509_V_OK:
      return why_no_role(facts, role);
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return fmt::format("its certificate ({}) expired on {}", facts.str(), facts.not_after);
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return fmt::format("its certificate ({}) is valid from {} on, and today is before that", facts.str(),
                         facts.not_before);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
      return fmt::format("its certificate ({}) is signed by another authority: '{}'; ours is {}", facts.str(),
                         name_text(X509_get_issuer_name(certificate.get())), subjects_of(authority_pem));
    default:
      return fmt::format("its certificate ({}) is not accepted: {}", facts.str(), X509_verify_cert_error_string(error));
  }
}

}  // namespace lockstep::transport
