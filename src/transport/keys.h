// The keys of a node as files: what its peers must have (`lockstep keys new` makes them) and what this node shows.
#pragma once

#include <string>

namespace lockstep::transport {

/// The name that every node's certificate is for (subjectAltName DNS:lockstep), whatever its address.
constexpr const char* kKeyName = "lockstep";

/// In PEM.
struct Keys {
  std::string authority;         ///< ca.pem
  std::string node_certificate;  ///< node.pem
  std::string node_key;          ///< node.key
};

/// Reads and checks a folder of keys: that the parts can be read, that key and certificate belong together and that the
/// authority made the certificate. Throws UsageError naming the file.
Keys read_keys(const std::string& folder);

}  // namespace lockstep::transport
