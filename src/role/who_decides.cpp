#include "role/who_decides.h"

#include <unistd.h>

#include "authority/launcher_register.h"

namespace lockstep::role {

bool launcher_decides(const settings::Settings& settings, const cluster::Spec& spec) {
  return spec.ps.empty() && settings.collective != settings::Engine::mpi && settings.membership == "auto" &&
         !settings.allow_split;
}

std::unique_ptr<authority::Register> make_register(const settings::Settings& settings, const ClusterProcess& process) {
  if (!process.tell_launcher || !launcher_decides(settings, process.spec)) return nullptr;
  return std::make_unique<authority::LauncherRegister>(process.tell_launcher, STDIN_FILENO);
}

}  // namespace lockstep::role
