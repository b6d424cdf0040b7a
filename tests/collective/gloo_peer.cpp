// A member of a group over Gloo, for tests that kill it: gloo_peer RANK SIZE COUNT DEADLINE. Prints its address, reads
// all addresses, sums COUNT numbers until that fails, then prints the first sum's hash and the failure.
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>

#include "collective/gloo/gloo_engine.h"

namespace {

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned char>(c));
    text += digits;
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

uint64_t hash(const std::vector<float>& values) {
  uint64_t state = 14695981039346656037U;
  for (const float value : values) state = (state ^ std::bit_cast<uint32_t>(value)) * 1099511628211U;
  return state;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int rank = std::atoi(argv[1]);
  const int size = std::atoi(argv[2]);
  const size_t count = std::strtoull(argv[3], nullptr, 10);
  using namespace lockstep::collective;
  const auto joining = join_over_gloo("127.0.0.1", rank, size, {.deadline = Seconds(std::atof(argv[4]))});
  std::cout << hex(joining->address()) << std::endl;
  std::vector<std::string> addresses(static_cast<size_t>(size));
  for (std::string& address : addresses) {
    if (!std::getline(std::cin, address)) return 1;
    address = from_hex(address);
  }
  const auto group = joining->connect(addresses, [] { return false; }).value_or_throw();
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.1F * static_cast<float>(rank));
  for (bool first = true;; first = false) {
    const auto result = group->all_reduce(values);
    if (!result) {
      std::cout << result.failure().message() << std::endl;
      return 0;
    }
    if (first) std::cout << "sum " << hash(values) << std::endl;
    for (float& value : values) value *= 0.25F;
  }
}
