// The keys of a cluster as files. A folder for one machine holds ca.pem (who is trusted), node.pem and node.key (who
// one is, with the roles that the machine may act as); the folder in which they were made also holds ca.key, which
// signs new nodes and should stay where it is. Private keys are readable by their owner only. Existing files are never
// written over. Free functions; any thread.
#pragma once

#include <string>
#include <vector>

#include "cluster/certificate.h"
#include "cluster/cluster_file.h"
#include "transport/certificate.h"

namespace lockstep::cluster {

inline constexpr const char* kAuthorityFile = "ca.pem";
inline constexpr const char* kAuthorityKeyFile = "ca.key";
inline constexpr const char* kNodeFile = "node.pem";
inline constexpr const char* kNodeKeyFile = "node.key";

/// A pair of keys that was made.
struct MadeKeys {
  std::string folder;
  std::string host;  ///< the machine; "" for a pair that all share
  std::vector<std::string> roles;
};

// All throw UsageError where keys are there already or a name is no host; then, and when writing fails, nothing is left
// behind.

/// A new authority in `dir`, and a folder dir/HOST for each machine of the cluster, whose certificate names its roles.
std::vector<MadeKeys> make_cluster_keys(const std::string& dir, const ClusterFile& cluster);
/// A new authority and one pair in `dir`, with which its holder may act as any role.
std::vector<MadeKeys> make_shared_keys(const std::string& dir);
/// A folder dir/HOST for one machine, by the authority of `dir`, which is made where there is none.
std::vector<MadeKeys> make_node_keys(const std::string& dir, const std::string& host, const std::vector<Task>& tasks);

struct KeyFacts {
  std::string path;  ///< of the certificate
  transport::CertificateFacts certificate;
  std::vector<std::string> problems;  ///< "is not signed by ca.pem", ...: why a peer or a cautious user refuses it
};
/// The certificates of a folder and of the machines' folders in it, their copies of its authority left out. Throws
/// where it holds none.
std::vector<KeyFacts> read_keys(const std::string& dir);

}  // namespace lockstep::cluster
