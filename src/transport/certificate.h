// Reads X.509 certificates, and says why a peer that shows one is not believed. A node's certificate names the roles
// that its holder may act as: subjectAltName URI "lockstep:worker:1", or "lockstep:any" for a key that all roles share.
// Free functions over PEM texts, any thread.
#pragma once

#include <string>
#include <vector>

namespace lockstep::transport {

/// Scheme of the names that are roles.
inline constexpr const char* kRoleScheme = "lockstep:";
/// In place of a role: every role.
inline constexpr const char* kAnyRole = "any";

struct CertificateFacts {
  std::string subject;     ///< "CN=node"
  std::string not_before;  ///< "2026-01-31"
  std::string not_after;
  std::string fingerprint;         ///< SHA-256, "AB:CD:..."
  std::vector<std::string> names;  ///< hosts and addresses
  std::vector<std::string> roles;  ///< "worker:1", kAnyRole
  bool authority = false;
  bool began = false;    ///< its first day has come
  bool expired = false;  ///< its last day is over
  int days_left = 0;     ///< whole days until it expires

  [[nodiscard]] bool may_act_as(const std::string& role) const;
  /// "CN=n1 for ps:0, worker:1"
  [[nodiscard]] std::string str() const;
};
/// Throws DataError where the text is no certificate; the caller names the file.
CertificateFacts read_certificate(const std::string& pem);
/// By one of the authorities, which may be several: while a cluster changes from one to the next, all trust both.
bool is_signed_by(const std::string& pem, const std::string& authority_pem);
/// Throws DataError where one of the texts is not what it should be.
bool fits_key(const std::string& pem, const std::string& key_pem);

enum class Purpose { server, client };
/// Why a peer with this certificate ("" where it showed none) is refused by a node that trusts `authority_pem`: another
/// authority, the dates, the role that it should act as (empty: any). "" where it is not.
std::string why_refused(const std::string& pem, const std::string& authority_pem, Purpose purpose,
                        const std::string& role);
/// The part of it about roles.
std::string why_no_role(const CertificateFacts& facts, const std::string& role);

}  // namespace lockstep::transport
