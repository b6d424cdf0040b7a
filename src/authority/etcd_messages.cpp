#include "authority/etcd_messages.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "lockstep/error.h"

namespace lockstep::authority {
namespace {

using nlohmann::json;

constexpr std::string_view kScheme = "etcd://";
constexpr size_t kLongestToken = 4096;
constexpr size_t kLongestError = 200;
constexpr size_t kMostEndpoints = 64;

// Codes of gRPC, which etcd's errors carry.
constexpr int kInvalidArgument = 3;
constexpr int kPermissionDenied = 7;
constexpr int kFailedPrecondition = 9;
constexpr int kUnimplemented = 12;
constexpr int kUnauthenticated = 16;

std::string base64(const std::string& text) {
  std::string coded(4 * ((text.size() + 2) / 3) + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(coded.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  coded.resize(static_cast<size_t>(size));
  return coded;
}

/// Decodes base64 as `base64` writes it; nothing for any other text.
std::optional<std::string> from_base64(const std::string& coded) {
  if (coded.size() % 4 != 0) return std::nullopt;
  std::string text(coded.size() / 4 * 3 + 1, '\0');
  const int size =
      EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(coded.data()), static_cast<int>(coded.size()));
  if (size < 0) return std::nullopt;
  const auto padding = static_cast<size_t>(coded.ends_with("==") ? 2 : coded.ends_with('=') ? 1 : 0);
  text.resize(static_cast<size_t>(size) - std::min(padding, static_cast<size_t>(size)));
  if (base64(text) != coded) return std::nullopt;
  return text;
}

base::Failure nonsense(const std::string& what) {
  return {.kind = base::FailureKind::corrupt, .text = "an answer that makes no sense: " + what};
}

/// Returns the member of an object; null if there is none.
const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

std::string text_in(const json& object, const char* name) {
  const json* const found = member(object, name);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

/// Takes the group from a range: no key is group 0.
base::Result<Group> group_in(const json& range, const std::string& key) {
  const json* const header = member(range, "header");
  if (header == nullptr || !header->is_object()) return nonsense("it has no header");
  const json* const pairs = member(range, "kvs");
  if (pairs == nullptr || (pairs->is_array() && pairs->empty())) return Group{};
  if (!pairs->is_array() || pairs->size() != 1) return nonsense("not one value of one key");
  const json& pair = pairs->front();
  if (text_in(pair, "key") != base64(key)) return nonsense("another key");
  const std::optional<std::string> text = from_base64(text_in(pair, "value"));
  std::optional<Group> group = text ? parse_group(*text) : std::nullopt;
  if (!group || group->number == 0) {
    return base::Failure{.kind = base::FailureKind::usage,
                         .text = fmt::format("its key {} holds something else than a group", key)};
  }
  return std::move(*group);
}

}  // namespace

std::string EtcdAddress::str() const {
  std::string text;
  for (const base::Address& endpoint : endpoints) {
    text += (text.empty() ? "" : ", ") + base::join_address(endpoint.host, endpoint.port);
  }
  return text;
}

EtcdAddress parse_etcd_address(std::string_view text) {
  const auto refuse = [text](const std::string& why) {
    return UsageError(fmt::format(
        "membership: '{}': {}; etcd://HOST:PORT,HOST:PORT or etcd://HOST:PORT/PREFIX is expected", text, why));
  };
  if (!text.starts_with(kScheme)) throw refuse("it does not begin with etcd://");
  std::string_view rest = text.substr(kScheme.size());
  EtcdAddress address;
  if (const size_t slash = rest.find('/'); slash != std::string_view::npos) {
    address.prefix = rest.substr(slash + 1);
    rest = rest.substr(0, slash);
    const bool plain = std::all_of(address.prefix.begin(), address.prefix.end(), [](unsigned char c) {
      return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '/';
    });
    if (address.prefix.empty() || !plain) throw refuse("the prefix has letters, digits, '-', '_' and '/'");
  }
  while (true) {
    const size_t comma = rest.find(',');
    try {
      address.endpoints.push_back(base::parse_address(rest.substr(0, comma)));
    } catch (const UsageError& error) {
      throw refuse(error.what());
    }
    if (address.endpoints.size() > kMostEndpoints) throw refuse("too many addresses");
    if (comma == std::string_view::npos) return address;
    rest.remove_prefix(comma + 1);
  }
}

EtcdRequest etcd_read(const std::string& key) { return {"/v3/kv/range", json{{"key", base64(key)}}.dump()}; }

EtcdRequest etcd_swap(const std::string& key, const Swap& swap) {
  const std::string coded = base64(key);
  json compare = {{"key", coded}, {"result", "EQUAL"}};
  if (swap.expected.number == 0) {
    compare["target"] = "VERSION";
    compare["version"] = "0";
  } else {
    compare["target"] = "VALUE";
    compare["value"] = base64(text_of(swap.expected));
  }
  const json put = {{"request_put", {{"key", coded}, {"value", base64(text_of(swap.next))}}}};
  const json read = {{"request_range", {{"key", coded}}}};
  json body;
  body["compare"] = json::array({compare});
  body["success"] = json::array({put});
  body["failure"] = json::array({read});
  return {"/v3/kv/txn", body.dump()};
}

EtcdRequest etcd_login(const std::string& user, const std::string& password) {
  const json body = {{"name", user}, {"password", password}};
  return {"/v3/auth/authenticate", body.dump(-1, ' ', false, json::error_handler_t::replace)};
}

base::Result<Answer> read_answer(std::string_view body, const std::string& key) {
  base::Result<Group> group = group_in(base::parse_json_or_discard(body), key);
  if (!group) return group.failure();
  return Answer{Outcome::present, std::move(group.value()), {}};
}

base::Result<Answer> swap_answer(std::string_view body, const std::string& key, const Swap& swap) {
  const json answer = base::parse_json_or_discard(body);
  const json* const succeeded = member(answer, "succeeded");  // etcd leaves out what is false
  const json* const responses = member(answer, "responses");
  if (succeeded != nullptr && !succeeded->is_boolean()) return nonsense("neither won nor lost");
  if (responses == nullptr || !responses->is_array() || responses->size() != 1) return nonsense("not one response");
  const json& response = responses->front();
  if (succeeded != nullptr && succeeded->get<bool>()) {
    if (member(response, "response_put") == nullptr) return nonsense("a success that wrote nothing");
    return Answer{Outcome::won, swap.next, {}};
  }
  const json* const range = member(response, "response_range");
  if (range == nullptr) return nonsense("a failure without what is there instead");
  json held = *range;
  if (held.is_object() && !held.contains("header")) held["header"] = json::object();
  base::Result<Group> group = group_in(held, key);
  if (!group) return group.failure();
  const Outcome outcome = group.value() == swap.next ? Outcome::won : Outcome::lost;
  if (outcome == Outcome::lost && group.value() == swap.expected) return nonsense("it lost against what it expects");
  return Answer{outcome, std::move(group.value()), {}};
}

base::Result<std::string> login_answer(std::string_view body) {
  std::string token = text_in(base::parse_json_or_discard(body), "token");
  const bool plain = std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (token.empty() || token.size() > kLongestToken || !plain) return nonsense("no token after logging in");
  return token;
}

EtcdError etcd_error(int http_status, std::string_view body) {
  const json answer = base::parse_json_or_discard(body);
  std::string text = text_in(answer, "message");
  if (text.empty()) text = text_in(answer, "error");
  const json* const code = member(answer, "code");
  const bool coded = code != nullptr && code->is_number_integer() && !text.empty();
  EtcdError error;
  if (!coded) {
    error.text = fmt::format("HTTP status {}", http_status);
    // A gateway before etcd may answer 5xx for a while; 404 is a server of something else.
    if (http_status >= 400 && http_status < 500) error.remedy = EtcdRemedy::give_up;
    if (http_status == 404) error.text += ": it does not speak etcd's v3 interface";
    return error;
  }
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  error.text = text.substr(0, kLongestError);
  const json number = *code;
  if (number == kUnauthenticated) error.remedy = EtcdRemedy::log_in;
  for (const int final : {kInvalidArgument, kPermissionDenied, kFailedPrecondition, kUnimplemented}) {
    if (number == final) error.remedy = EtcdRemedy::give_up;
  }
  return error;
}

}  // namespace lockstep::authority
