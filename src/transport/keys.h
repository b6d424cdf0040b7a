// Keys of a node as files (`lockstep keys new` makes them), read and checked before use.
#pragma once

#include <string>

#include "transport/certificate.h"
#include "transport/stream.h"

namespace lockstep::transport {

/// A node's keys, as PEM texts.
struct Keys {
  std::string authority;         ///< ca.pem: trusted authorities, usually one
  std::string node_certificate;  ///< node.pem
  std::string node_key;          ///< node.key
  CertificateFacts facts;        ///< contents of node.pem
};

/// Reads and checks a folder of keys: key, certificate and authority belong together, the dates are valid, and the
/// certificate names this process's role. Throws UsageError naming the file.
Keys read_keys(const Security& security);

}  // namespace lockstep::transport
