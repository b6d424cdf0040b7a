// Who decides which members may train by all-reduce: a majority of them, or an authority. Free functions; any thread.
#pragma once

#include <memory>
#include <string>

#include "authority/register.h"
#include "role/group_member.h"

namespace lockstep::role {

/// True if a launcher of this cluster holds the register.
bool launcher_decides(const settings::Settings& settings, const cluster::Spec& spec);
/// True if etcd holds it.
bool etcd_decides(const settings::Settings& settings);
/// Checks the settings of who decides. Throws UsageError.
void check_who_decides(const settings::Settings& settings);
/// Makes this member's client of the authority; null if the majority decides. `job`: digest of the settings.
std::unique_ptr<authority::Register> make_register(const settings::Settings& settings, const ClusterProcess& process,
                                                   const std::string& job);

}  // namespace lockstep::role
