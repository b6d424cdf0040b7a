// Makes X.509 certificates and their keys, as PEM texts: a small authority and nodes signed by it. EC P-256, SHA-256,
// ten years. Free functions over texts, any thread. Failures of OpenSSL are Errors with its reason. Certificates are
// read in transport/certificate.h.
#pragma once

#include <string>
#include <vector>

namespace lockstep::cluster {

struct KeyPair {
  std::string certificate;
  std::string key;
};

KeyPair make_authority();

struct NodeNames {
  std::string subject;
  std::vector<std::string> hosts;  ///< names and addresses of the machine
  std::vector<std::string> roles;  ///< "worker:1", or transport::kAnyRole
  int first_day = -1;              ///< days from today; default yesterday, because clocks of machines differ
  int last_day = 0;                ///< days from today; 0: as long as its authority
};
/// Makes a certificate for servers and clients.
KeyPair make_node(const KeyPair& authority, const NodeNames& names);

}  // namespace lockstep::cluster
