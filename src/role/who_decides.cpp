#include "role/who_decides.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "authority/etcd_register.h"
#include "authority/launcher_register.h"
#include "base/hash.h"
#include "lockstep/error.h"

namespace lockstep::role {
namespace {

constexpr const char* kPassword = "LOCKSTEP_ETCD_PASSWORD";

authority::EtcdOptions etcd_options(const settings::Settings& settings) {
  authority::EtcdOptions options;
  options.address = authority::parse_etcd_address(settings.membership);
  options.authority = settings.etcd_ca;
  options.certificate = settings.etcd_cert;
  options.key = settings.etcd_key;
  options.user = settings.etcd_user;
  const char* const password = std::getenv(kPassword);
  if (password != nullptr) options.password = password;
  return options;
}

/// Names a training by its settings and its members' addresses, at which no other one can run.
std::string training_name(const std::string& job, const cluster::Spec& spec) {
  uint64_t hash = base::kDigestStart;
  for (const cluster::Task& task : spec.members()) {
    hash = base::hashed(base::hashed(hash, spec.address(task)), uint64_t{0xFF});
  }
  return fmt::format("{}-{:016x}", job, hash);
}

}  // namespace

bool launcher_decides(const settings::Settings& settings, const cluster::Spec& spec) {
  return spec.ps.empty() && settings.collective != settings::Engine::mpi && settings.membership == "auto" &&
         !settings.allow_split;
}

bool etcd_decides(const settings::Settings& settings) {
  return settings.membership != "auto" && settings.membership != "majority";
}

void check_who_decides(const settings::Settings& settings) {
  if (!etcd_decides(settings)) {
    for (const char* name : {"etcd-ca", "etcd-cert", "etcd-key", "etcd-user"}) {
      if (!value_text(settings, name).empty()) {
        throw UsageError(fmt::format("{}: only with --membership etcd://HOST:PORT", name));
      }
    }
    return;
  }
  if (settings.collective == settings::Engine::mpi) {
    throw UsageError("membership: etcd decides for members that come and go; the ranks of an MPI job do not");
  }
  if (settings.allow_split) throw UsageError("allow-split: etcd lets one group train; leave out one of the two");
  const authority::EtcdOptions options = etcd_options(settings);
  authority::EtcdRegister::check_files(options);
  if (!options.user.empty() && options.password.empty()) {
    throw UsageError(
        fmt::format("etcd-user: the password of {} is missing in the environment: {}", options.user, kPassword));
  }
  const bool beyond = std::any_of(options.address.endpoints.begin(), options.address.endpoints.end(),
                                  [](const base::Address& there) { return !base::is_loopback(there.host); });
  if (beyond && options.authority.empty() && !settings.insecure) {
    throw UsageError("membership: etcd is beyond this machine: give --etcd-ca to use TLS, or --insecure");
  }
}

std::unique_ptr<authority::Register> make_register(const settings::Settings& settings, const ClusterProcess& process,
                                                   const std::string& job) {
  if (etcd_decides(settings)) {
    authority::EtcdOptions options = etcd_options(settings);
    options.job = training_name(job, process.spec);
    return std::make_unique<authority::EtcdRegister>(std::move(options));
  }
  if (!process.tell_launcher || !launcher_decides(settings, process.spec)) return nullptr;
  return std::make_unique<authority::LauncherRegister>(process.tell_launcher, STDIN_FILENO);
}

}  // namespace lockstep::role
