// The keys of a node as files (`lockstep keys new` makes them), read and checked before they are used.
#pragma once

#include <string>

#include "transport/certificate.h"
#include "transport/stream.h"

namespace lockstep::transport {

/// In PEM.
struct Keys {
  std::string authority;         ///< ca.pem: trusted authorities, mostly one
  std::string node_certificate;  ///< node.pem
  std::string node_key;          ///< node.key
  CertificateFacts facts;        ///< contents of node.pem
};

/// Reads and checks a folder of keys: that key, certificate and authority belong together, the dates, and that the
/// certificate is for the role that this process acts as. Throws UsageError naming the file.
Keys read_keys(const Security& security);

}  // namespace lockstep::transport
