// Sockets that listen for connections. Free functions; any thread.
#pragma once

#include <string_view>

#include "base/address.h"
#include "base/file.h"

namespace lockstep::http {

/// Listens there; port 0 is any free one. Throws IoError, which `who` begins: "dash: cannot listen at 127.0.0.1:6007:
/// Address already in use"; where the port is taken, `advice` ends it.
base::FileHandle listen_at(const base::Address& address, std::string_view who, std::string_view advice = {});

/// Where it listens.
int port_of(const base::FileHandle& listener);

}  // namespace lockstep::http
