// X.509 certificates and their keys as PEM texts: a small authority, nodes signed by it, and what a certificate says.
// EC P-256, SHA-256, ten years. Free functions over texts, any thread; failures of OpenSSL are Errors with its reason.
#pragma once

#include <string>
#include <vector>

namespace lockstep::cluster {

/// The name that every node's certificate carries: peers ask for it, so that addresses may change.
inline constexpr const char* kNodeName = "lockstep";

struct KeyPair {
  std::string certificate;
  std::string key;
};

KeyPair make_authority();
/// For servers and clients; valid for kNodeName and `names`, host names or addresses, the first of which is its
/// subject.
KeyPair make_node(const KeyPair& authority, const std::vector<std::string>& names);

struct CertificateFacts {
  std::string subject;     ///< "CN=node"
  std::string not_before;  ///< "2026-01-31"
  std::string not_after;
  std::string fingerprint;         ///< SHA-256, "AB:CD:..."
  std::vector<std::string> names;  ///< hosts and addresses that it is valid for
  bool authority = false;
  bool valid_now = false;
};
/// Throws DataError where the text is no certificate; the caller names the file.
CertificateFacts read_certificate(const std::string& pem);
bool is_signed_by(const std::string& pem, const std::string& authority_pem);
bool fits_key(const std::string& pem, const std::string& key_pem);

}  // namespace lockstep::cluster
