// JSON from outside this process: files of runs, lines of roles, TF_CONFIG, a lab's database. All of it is parsed here,
// with a limit on nesting, since copying or printing a value uses stack for every level. Free functions; any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lockstep/error.h"

namespace lockstep::base {

/// Deepest nesting of lists and objects that is accepted.
constexpr int kDeepestJson = 64;

/// Returns true if lists and objects nest deeper than kDeepestJson. Brackets in strings do not count.
bool is_too_deep(std::string_view json);

/// Returns "WHAT: is not valid JSON: ..." for an error at a byte, counted from 1, with the text around it.
std::string json_error(std::string_view text, size_t byte, const std::string& what);

/// Parses JSON. The result is discarded (`is_discarded()`) if the text is not valid or too deep.
template <class Json = nlohmann::json>
Json parse_json_or_discard(std::string_view text) {
  return is_too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

/// Parses JSON. Throws DataError "WHAT: ..." if the text is not valid or too deep. Calls `look` for every value parsed.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text, const std::string& what,
                const typename Json::parser_callback_t& look = nullptr) {
  if (is_too_deep(text)) throw DataError(what + ": is nested deeper than " + std::to_string(kDeepestJson) + " levels");
  try {
    return Json::parse(text, look);
  } catch (const typename Json::parse_error& error) {
    throw DataError(json_error(text, error.byte, what));
  } catch (const typename Json::out_of_range&) {
    throw DataError(what + ": has a number that is too large");
  }
}

}  // namespace lockstep::base
