#include "nn/option_values.h"

#include <charconv>

#include "lockstep/error.h"

namespace lockstep::nn {
namespace {

constexpr int64_t kMostUnits = 1'000'000;

template <class T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void reject(const std::string& option, const std::string& text, const std::string& allowed) {
  throw UsageError("model option '" + option + "': '" + text + "' is not allowed; it takes " + allowed);
}

}  // namespace

bool flag(const BuildRequest& request, const std::string& option) { return request.options.at(option) == "true"; }

float fraction(const BuildRequest& request, const std::string& option) {
  const std::string& text = request.options.at(option);
  float value = 0;
  if (!parse(text, value) || !(value >= 0 && value < 1)) reject(option, text, "a number from 0 to below 1");
  return value;
}

std::vector<int64_t> sizes(const BuildRequest& request, const std::string& option) {
  const std::string& text = request.options.at(option);
  std::vector<int64_t> result;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('-', begin), text.size());
    int64_t size = 0;
    if (!parse(std::string_view(text).substr(begin, end - begin), size) || size < 1 || size > kMostUnits) {
      reject(option, text, "sizes from 1 to " + std::to_string(kMostUnits) + " with hyphens between, such as 400-200");
    }
    result.push_back(size);
    begin = end + 1;
  }
  return result;
}

}  // namespace lockstep::nn
