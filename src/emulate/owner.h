// Owners of namespaces and control groups. These outlive the process that made them, so their names contain its number,
// its start time and its PID namespace. Processes of another PID namespace (a container, or the host of one) cannot be
// looked up. Their files and folders are locked while they live, and locks work across namespaces. Free functions; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace lockstep::emulate {

/// Returns the prefix of all names that this process gives: "lockstep-PID-START-pNAMESPACE-".
std::string owner_prefix();

/// True if the name has such a prefix.
bool is_owned(std::string_view name);
/// True if the name belongs to a process of this PID namespace that has ended, even if another process has its number
/// now.
bool owner_is_gone(std::string_view name);

/// Locks a file or folder that this process has made, until the handle closes. The lock shows that its owner lives.
base::FileHandle hold(const std::string& path);
/// Locks a file or folder whose owner is gone, so that no other process takes it; returns nothing while the owner
/// lives. Keep the handle until the leftover is removed.
std::optional<base::FileHandle> take_leftover(const std::string& path);

}  // namespace lockstep::emulate
