// The keys of a cluster as files. A folder for one machine holds ca.pem (the trusted authority), node.pem and node.key
// (the machine's identity, with the roles that it may act as). The folder in which they were made also holds ca.key,
// which signs new nodes and should stay there. Private keys are readable by their owner only. Existing files are never
// overwritten. Free functions; any thread.
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

/// A new pair of keys.
struct MadeKeys {
  std::string folder;
  std::string host;  ///< the machine; "": shared by all
  std::vector<std::string> roles;
};

// All functions throw UsageError if keys exist already or a name is not a host. Then, and when writing fails, they
// leave no files behind.

/// Makes a new authority in `dir`, and a folder dir/HOST for each machine, whose certificate names its roles.
std::vector<MadeKeys> make_cluster_keys(const std::string& dir, const ClusterFile& cluster);
/// Makes a new authority and one pair in `dir`, whose holder may act as any role.
std::vector<MadeKeys> make_shared_keys(const std::string& dir);
/// Makes a folder dir/HOST for one machine, signed by the authority of `dir`, which is made if missing.
std::vector<MadeKeys> make_node_keys(const std::string& dir, const std::string& host, const std::vector<Task>& tasks);

struct KeyFacts {
  std::string path;  ///< path of the certificate
  transport::CertificateFacts certificate;
  std::vector<std::string>
      problems;  ///< "is not signed by ca.pem", ...: reasons for a peer or a careful user to refuse it
};
/// Reads the certificates of a folder and of the machines' folders in it, without their copies of the authority. Throws
/// if there are none.
std::vector<KeyFacts> read_keys(const std::string& dir);

}  // namespace lockstep::cluster
