// Owners of namespaces and control groups. These outlive the process that made them, so their names say
// which one that was, by its number, when it began and the PID namespace that both belong to. Processes of another PID
// namespace (a container, or the host of one) cannot be looked up: what they own is locked while they live, and locks
// hold across namespaces. Free functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep::emulate {

/// "lockstep-PID-START-pNAMESPACE-": how all names of this process begin.
std::string owner_prefix();

/// Whether the name is of such a thing.
bool is_owned(std::string_view name);
/// Whether the name is of a process of this PID namespace that has ended; a number that another process has got
/// meanwhile does not deceive.
bool owner_is_gone(std::string_view name);

/// Locks a file or folder of this process until the handle closes.
base::FileHandle hold(const std::string& path);
/// A handle that keeps others from using the file or folder, where its owner is gone; nothing while the owner lives. To
/// be kept until the leftover is removed.
std::optional<base::FileHandle> take_leftover(const std::string& path);

}  // namespace lockstep::emulate
