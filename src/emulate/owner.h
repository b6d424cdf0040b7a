// Owners of namespaces and control groups. These outlive the process that made them, so their names contain its number,
// its start time and its PID namespace. Processes of another PID namespace (a container, or the host of one) cannot be
// looked up. Their property is locked while they live, and locks work across namespaces. Free functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep::emulate {

/// Returns the prefix of all names of this process: "lockstep-PID-START-pNAMESPACE-".
std::string owner_prefix();

/// True if the name has such a prefix.
bool is_owned(std::string_view name);
/// True if the name belongs to a process of this PID namespace that has ended, even if another process has its number
/// now.
bool owner_is_gone(std::string_view name);

/// Locks a file or folder of this process until the handle closes.
base::FileHandle hold(const std::string& path);
/// Returns a handle that keeps others from using the file or folder if its owner is gone; nothing while the owner
/// lives. Keep it until the leftover is removed.
std::optional<base::FileHandle> take_leftover(const std::string& path);

}  // namespace lockstep::emulate
