#include "data/source.h"

#include <algorithm>
#include <cstdlib>

namespace lockstep::data {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing here sets it
  return value == nullptr ? "" : value;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(", ", begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

SourceOptions SourceOptions::from_environment(const std::string& data_dir) {
  SourceOptions options;
  options.data_dir = data_dir;
  options.env_dir = environment("LOCKSTEP_DATA");
  const std::string cache = environment("XDG_CACHE_HOME");
  const std::string home = environment("HOME");
  if (cache.starts_with('/')) {
    options.cache_dir = cache + "/lockstep";
  } else if (!home.empty()) {
    options.cache_dir = home + "/.cache/lockstep";
  }
  options.mirrors = split_list(environment("LOCKSTEP_MNIST_MIRROR"));
  options.proxy = environment("https_proxy");
  if (options.proxy.empty()) options.proxy = environment("HTTPS_PROXY");
  return options;
}

}  // namespace lockstep::data
