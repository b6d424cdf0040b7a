// Questions to etcd and its answers, as JSON of its v3 interface (`/v3/kv/range`, `/v3/kv/txn`). The
// register is one key, whose value is the latest group's text. Answers come from the network and are read strictly:
// what does not fit is a failure, never a group. Plain values; free functions; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "authority/register.h"
#include "base/address.h"

namespace lockstep::authority {

struct EtcdAddress {
  std::vector<base::Address> endpoints;
  std::string prefix = "lockstep";  ///< its keys begin with it

  /// "10.0.0.1:2379, 10.0.0.2:2379"
  [[nodiscard]] std::string str() const;
};
/// Parses "etcd://HOST:PORT,HOST:PORT" with "/PREFIX" after it, or not. Throws UsageError.
EtcdAddress parse_etcd_address(std::string_view text);

struct EtcdRequest {
  std::string path;
  std::string body;
};
EtcdRequest etcd_read(const std::string& key);
/// Puts the next group in the place of the expected one if that is there, else reads what is.
EtcdRequest etcd_swap(const std::string& key, const Swap& swap);
EtcdRequest etcd_login(const std::string& user, const std::string& password);

/// Returns the answer to `etcd_read`. A failure: the body is none.
base::Result<Answer> read_answer(std::string_view body, const std::string& key);
/// Returns the answer to `etcd_swap`, likewise.
base::Result<Answer> swap_answer(std::string_view body, const std::string& key, const Swap& swap);
/// Returns the token that `etcd_login` gave.
base::Result<std::string> login_answer(std::string_view body);

/// The remedy for an error that etcd answers.
enum class EtcdRemedy : uint8_t {
  ask_again,  ///< here or elsewhere: no leader, too busy, another kind of trouble that may pass
  log_in,     ///< the token is not valid any more
  give_up     ///< it would fail again: wrong password, no permission, not etcd
};
struct EtcdError {
  EtcdRemedy remedy = EtcdRemedy::ask_again;
  std::string text;  ///< one line
};
EtcdError etcd_error(int http_status, std::string_view body);

}  // namespace lockstep::authority
