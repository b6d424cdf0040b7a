#include "e2e/support.h"

namespace lockstep::testing {

nlohmann::json parse_json(const std::string& text) { return nlohmann::json::parse(text); }

}  // namespace lockstep::testing
