// Listening sockets. Free functions; any thread.
#pragma once

#include <string_view>

#include "base/address.h"
#include "base/file.h"

namespace lockstep::http {

/// Listens at the address; port 0 means any free port. Throws IoError "dash: cannot listen at 127.0.0.1:6007: Address
/// already in use", where `who` is "dash". `advice` ends the message if the port is taken.
base::FileHandle listen_at(const base::Address& address, std::string_view who, std::string_view advice = {});

/// Returns the port of the listening socket.
int port_of(const base::FileHandle& listener);

}  // namespace lockstep::http
