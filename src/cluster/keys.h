// The keys of a cluster as files. A folder for one machine holds ca.pem (who is trusted), node.pem and node.key (who
// one is); the folder in which they were made also holds ca.key, which signs new nodes and should stay where it is.
// Private keys are readable by their owner only. Existing files are never written over. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "cluster/certificate.h"

namespace lockstep::cluster {

inline constexpr const char* kAuthorityFile = "ca.pem";
inline constexpr const char* kAuthorityKeyFile = "ca.key";
inline constexpr const char* kNodeFile = "node.pem";
inline constexpr const char* kNodeKeyFile = "node.key";

/// Makes what is missing of: an authority and a pair for any node in `dir`, and for each name a folder dir/NAME for
/// that machine. Gives the folders that it made a pair in. Throws UsageError where nothing is missing, a name is no
/// host or a pair is there by half; then, and when writing fails, nothing is left behind.
std::vector<std::string> make_keys(const std::string& dir, const std::vector<std::string>& names);

struct KeyFacts {
  std::string path;  ///< of the certificate
  CertificateFacts certificate;
  std::vector<std::string> problems;  ///< "is not signed by ca.pem", ...: why a peer or a cautious user refuses it
};
/// The certificates of a folder and of the machines' folders in it, their copies of its authority left out. Throws
/// where it holds none.
std::vector<KeyFacts> read_keys(const std::string& dir);

}  // namespace lockstep::cluster
