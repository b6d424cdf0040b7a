// Reads X.509 certificates, and explains why a peer's certificate is not accepted. A node's certificate names the roles
// that its holder may act as: subjectAltName URI "lockstep:worker:1", or "lockstep:any" for a key that all roles share.
// Free functions over PEM texts, any thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep::transport {

/// URI scheme of the names that are roles.
inline constexpr const char* kRoleScheme = "lockstep:";
/// Stands for every role.
inline constexpr const char* kAnyRole = "any";

struct CertificateFacts {
  std::string subject;     ///< "CN=node"
  std::string not_before;  ///< "2026-01-31"
  std::string not_after;
  std::string fingerprint;         ///< SHA-256, "AB:CD:..."
  std::vector<std::string> names;  ///< host names and addresses
  std::vector<std::string> roles;  ///< "worker:1", kAnyRole
  bool authority = false;
  bool began = false;    ///< true from its first day on
  bool expired = false;  ///< true after its last day
  int days_left = 0;     ///< whole days until it expires

  [[nodiscard]] bool may_act_as(const std::string& role) const;
  /// "CN=n1 for ps:0, worker:1"
  [[nodiscard]] std::string str() const;
};
/// Throws DataError if the text is not a certificate; the caller names the file.
CertificateFacts read_certificate(const std::string& pem);
/// True if one of the authorities signed the certificate. While a cluster changes its authority, all nodes trust both.
bool is_signed_by(const std::string& pem, const std::string& authority_pem);
/// True if the certificate belongs to the private key. Throws DataError if a text is not valid.
bool fits_key(const std::string& pem, const std::string& key_pem);

enum class Purpose { server, client };
/// Returns why a node that trusts `authority_pem` refuses a peer with this certificate ("" if it showed none): another
/// authority, its dates, or the role that it should act as (empty: any). Returns "" if the peer is accepted.
std::string why_refused(const std::string& pem, const std::string& authority_pem, Purpose purpose,
                        const std::string& role);
/// Returns the part of why_refused() about roles.
std::string why_no_role(const CertificateFacts& facts, const std::string& role);

}  // namespace lockstep::transport
