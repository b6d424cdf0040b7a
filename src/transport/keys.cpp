#include "transport/keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.h"
#include "lockstep/error.h"

namespace lockstep::transport {
namespace {

constexpr uint64_t kLargestFile = 1 << 20;
constexpr int kWarnDays = 14;

std::string read_text(const std::string& path) {
  try {
    const std::vector<uint8_t> bytes = base::read_file(path, kLargestFile);
    return {bytes.begin(), bytes.end()};
  } catch (const Error& error) {
    throw UsageError(fmt::format("keys for TLS: {}; `lockstep keys new` makes a folder of keys", error.what()));
  }
}

template <class Call>
auto naming(const std::string& path, Call call) {
  try {
    return call();
  } catch (const DataError& error) {
    throw UsageError(fmt::format("keys for TLS: {} {}", path, error.what()));
  }
}

void check(const Keys& keys, const Security& security, const std::string& path) {
  const auto refuse = [&](const std::string& why) { throw UsageError(fmt::format("keys for TLS: {} {}", path, why)); };
  const CertificateFacts& facts = keys.facts;
  if (facts.roles.empty()) {
    refuse(
        "names no roles: these keys were made by an older version; make new ones with `lockstep keys new DIR --cluster "
        "FILE` (docs/cluster-spec.md)");
  }
  if (!security.role.empty() && !facts.may_act_as(security.role)) {
    refuse(fmt::format("is for {}, not for {}: pass --tls the key folder of the machine that runs {}",
                       fmt::join(facts.roles, ", "), security.role, security.role));
  }
  if (facts.expired) refuse(fmt::format("expired on {}; make new keys", facts.not_after));
  if (!facts.began) refuse(fmt::format("is valid from {} on; is this machine's clock right?", facts.not_before));
}

}  // namespace

Keys read_keys(const Security& security) {
  const std::string& folder = security.keys;
  const std::string authority_path = folder + "/ca.pem";
  const std::string certificate_path = folder + "/node.pem";
  const std::string key_path = folder + "/node.key";
  Keys keys{read_text(authority_path), read_text(certificate_path), read_text(key_path), {}};
  (void)naming(authority_path, [&] { return read_certificate(keys.authority); });
  keys.facts = naming(certificate_path, [&] { return read_certificate(keys.node_certificate); });
  const bool belongs = naming(key_path, [&] { return fits_key(keys.node_certificate, keys.node_key); });
  if (!belongs) throw UsageError(fmt::format("keys for TLS: {} is not the key of {}", key_path, certificate_path));
  if (!is_signed_by(keys.node_certificate, keys.authority)) {
    throw UsageError(fmt::format("keys for TLS: {} was not made by {}", certificate_path, authority_path));
  }
  check(keys, security, certificate_path);
  return keys;
}

std::string expiry_warning(const Security& security) {
  if (security.keys.empty()) return "";
  const CertificateFacts facts = read_keys(security).facts;
  if (facts.days_left >= kWarnDays) return "";
  return fmt::format("{}/node.pem expires on {}: make new keys before that (docs/cluster-spec.md)", security.keys,
                     facts.not_after);
}

}  // namespace lockstep::transport
