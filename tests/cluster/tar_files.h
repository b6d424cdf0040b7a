// Makes tar archives entry by entry, for tests: normal ones, and ones that only an attacker would make.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace lockstep::testing {

struct TarEntry {
  std::string name;
  std::string content = {};
  char type = '0';
  std::string link = {};
  std::string size = {};  ///< size in the header; empty: the content's size
};

inline std::string tar_block(const TarEntry& entry) {
  std::string block(512, '\0');
  const auto put = [&](size_t at, const std::string& text) { block.replace(at, text.size(), text); };
  put(0, entry.name.substr(0, 100));
  put(100, "0000644");
  put(124, entry.size.empty() ? fmt::format("{:011o}", entry.content.size()) : entry.size);
  put(136, "14000000000");
  put(148, "        ");
  put(156, std::string(1, entry.type));
  put(157, entry.link);
  put(257, std::string("ustar\00000", 8));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  put(148, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

inline std::string make_tar(const std::vector<TarEntry>& entries) {
  std::string archive;
  for (const TarEntry& entry : entries) {
    archive += tar_block(entry) + entry.content;
    archive.resize((archive.size() + 511) / 512 * 512);
  }
  return archive + std::string(1024, '\0');
}

}  // namespace lockstep::testing
